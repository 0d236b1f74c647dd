//! The file `.agent/permissions.json`: what may be done with each tool in a project.
//!
//! Reads the file, and writes it in one step. Guarantees that a mistake in it is told with its place and never taken
//! for something else, that what others keep in it stays, and that no change on the disk counts before the user has
//! looked at it.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::agent::chat::context::AGENT_FOLDER;
use crate::record::diff::{self, FileChange, FileState, NEW_MODE};
use crate::sys::atomic_file;
use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::positions::{self, Entries, Misplaced, Positions};
use crate::sys::text::one_line;

/// The file, relative to the project's root.
pub const FILE: &str = ".agent/permissions.json";
/// What stood there and was not agreed with.
pub const REFUSED: &str = ".agent/permissions.json.refused";
/// The file may have so many bytes.
const LARGEST: u64 = 2 * MIB;
/// How much of a tool's name is told that is none, in characters.
const LONGEST_NAME: usize = 64;
/// The one version of the form that there is.
const VERSION: u64 = 1;

/// What holds where there is no file.
const DEFAULTS: [(&str, PermissionAction); 5] = [
    ("read_file", PermissionAction::Always),
    ("list_files", PermissionAction::Always),
    ("write_file", PermissionAction::Ask),
    ("edit_file", PermissionAction::Ask),
    ("execute_command", PermissionAction::Ask),
];

/// The tools that may be listed: all that there are.
pub(crate) const TOOLS: [&str; 13] = [
    "read_file",
    "list_files",
    "search_project",
    "write_file",
    "edit_file",
    "replace_in_files",
    "delete_file",
    "execute_command",
    "read_background",
    "list_background",
    "kill_background",
    "update_todos",
    "spawn_agent",
];

/// What becomes of the calls of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionAction {
    /// They are carried out, but for what is asked about always.
    Always,
    /// The user decides each time.
    Ask,
    /// They are refused.
    Never,
}

impl PermissionAction {
    const ALL: [Self; 3] = [Self::Always, Self::Ask, Self::Never];

    /// Its name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Ask => "ask",
            Self::Never => "never",
        }
    }
}

/// Why the permissions cannot be read or saved.
#[derive(Debug, thiserror::Error)]
pub enum PermissionsProblem {
    /// The file, or its directory, is a link, or is no file at all.
    #[error("`{}` is a link or no regular file", .path.display())]
    NoFile {
        /// The file, or its directory.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("`{}` cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// There is a mistake in the file.
    #[error("`{}`, {mistake}", .path.display())]
    Mistake {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        mistake: Misplaced,
    },
    /// The file cannot be written.
    #[error("`{}` cannot be written: {source}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The file has been changed since it was read, and nobody has looked at that yet.
    #[error("`{}` has been changed meanwhile and was not written; the choice holds until the program ends", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl PermissionsProblem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoFile { path } => {
                let path = path.display();
                format!("put a regular file or directory in the place of `{path}`, or remove it")
            }
            Self::Unreadable { path, source } if files::is_too_large(source) => {
                format!("make `{}` smaller, or remove it", path.display())
            }
            Self::Unreadable { path, .. } => format!("make `{}` readable", path.display()),
            Self::Mistake { .. } => {
                "correct it there, or remove the file: then the defaults hold".to_owned()
            }
            Self::Unwritable { path, .. } => {
                let directory = path.parent().unwrap_or(path);
                format!("make `{}` writable", directory.display())
            }
            Self::Changed { .. } => "with the next request you are shown the change".to_owned(),
        }
    }
}

/// What may be done with each tool in a project, as the user has last seen or chosen it.
#[derive(Debug, Clone)]
pub struct PermissionFile {
    root: PathBuf,
    /// The file's bytes as they were read, saved or turned down last; `None`: there was no file.
    known: Option<Vec<u8>>,
    /// All that is in the file.
    json: Value,
    actions: HashMap<String, PermissionAction>,
}

/// The file is not what it was.
#[derive(Debug)]
pub struct ChangedOnDisk {
    /// What has changed, a unified diff; "" where the file cannot be read.
    pub diff: String,
    /// The permissions that hold if the user agrees; an error where the file cannot be used as it is now.
    pub file: Result<PermissionFile, PermissionsProblem>,
}

impl PermissionFile {
    /// What the file of the project with this root says, or the defaults where there is none.
    ///
    /// # Errors
    /// When there is one that cannot be used.
    pub fn load(root: &Path) -> Result<Self, PermissionsProblem> {
        Self::of(root, read(root)?)
    }

    fn of(root: &Path, known: Option<Vec<u8>>) -> Result<Self, PermissionsProblem> {
        let (json, actions) = match &known {
            None => {
                let entry = |(tool, action): &(&str, PermissionAction)| json!({"tool": tool, "action": action.name()});
                let entries: Vec<Value> = DEFAULTS.iter().map(entry).collect();
                let actions = DEFAULTS.map(|(tool, action)| (tool.to_owned(), action));
                let json = json!({"version": VERSION, "permissions": entries});
                (json, HashMap::from(actions))
            }
            Some(content) => parse(content).map_err(|mistake| PermissionsProblem::Mistake {
                path: root.join(FILE),
                mistake,
            })?,
        };
        Ok(Self {
            root: root.to_owned(),
            known,
            json,
            actions,
        })
    }

    /// What becomes of the calls of this tool: one that is not listed is asked about.
    #[must_use]
    pub fn action(&self, tool: &str) -> PermissionAction {
        let known = self.actions.get(tool);
        known.copied().unwrap_or(PermissionAction::Ask)
    }

    /// The tools that are listed, in the file's order, and what becomes of their calls.
    pub fn listed(&self) -> impl Iterator<Item = (&str, PermissionAction)> {
        let entries = self.json["permissions"].as_array();
        let tools = entries.into_iter().flatten();
        let tools = tools.filter_map(|entry| entry["tool"].as_str());
        tools.map(|tool| (tool, self.action(tool)))
    }

    /// From now on this becomes of the calls of a tool, and the file says so.
    ///
    /// # Errors
    /// When the file was not written; until the program ends it holds all the same.
    pub fn remember(
        &mut self,
        tool: &str,
        action: PermissionAction,
        now: DateTime<FixedOffset>,
    ) -> Result<(), PermissionsProblem> {
        self.actions.insert(tool.to_owned(), action);
        self.set(tool, action);
        // What somebody else has written there is not overwritten unseen.
        if read(&self.root)? != self.known {
            let path = self.path();
            return Err(PermissionsProblem::Changed { path });
        }
        let now = now.with_timezone(&Utc);
        self.json["timestamp"] = now.to_rfc3339_opts(SecondsFormat::Millis, true).into();
        let content = format!("{:#}\n", self.json).into_bytes();
        self.write(&content)?;
        self.known = Some(content);
        Ok(())
    }

    fn set(&mut self, tool: &str, action: PermissionAction) {
        let Some(entries) = self.json["permissions"].as_array_mut() else {
            return;
        };
        let mut is_listed = false;
        for entry in entries.iter_mut().filter(|entry| entry["tool"] == tool) {
            entry["action"] = action.name().into();
            is_listed = true;
        }
        if !is_listed {
            entries.push(json!({"tool": tool, "action": action.name()}));
        }
    }

    /// What the file has become since it was read, saved or put back; `None`: it is the same. What holds does not change
    /// by that.
    #[must_use]
    pub fn changed_on_disk(&self) -> Option<ChangedOnDisk> {
        let found = match read(&self.root) {
            Ok(found) if found == self.known => return None,
            Ok(found) => found,
            Err(problem) => {
                return Some(ChangedOnDisk {
                    diff: String::new(),
                    file: Err(problem),
                });
            }
        };
        let state = |content: &Option<Vec<u8>>| {
            content.clone().map(|content| FileState {
                content,
                mode: NEW_MODE,
            })
        };
        let change = FileChange {
            path: FILE.to_owned(),
            before: state(&self.known),
            after: state(&found),
        };
        Some(ChangedOnDisk {
            diff: diff::text(&[change]),
            file: Self::of(&self.root, found),
        })
    }

    /// Puts the file back as it was: the user does not agree with its change. What stood there goes to [`REFUSED`], in the
    /// place of what went there before: it may be the user's own.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put_back(&self) -> Result<(), PermissionsProblem> {
        check_directory(&self.root)?;
        let moved = fs::rename(self.path(), self.root.join(REFUSED)).if_there();
        moved.map_err(|source| self.unwritable(source))?;
        let content = self.known.as_ref();
        content.map_or(Ok(()), |content| self.write(content))
    }

    /// The absolute path of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.root.join(FILE)
    }

    fn write(&self, content: &[u8]) -> Result<(), PermissionsProblem> {
        check_directory(&self.root)?;
        let written = fs::create_dir_all(self.root.join(AGENT_FOLDER))
            .and_then(|()| atomic_file::replace(&self.path(), |file| file.write_all(content)));
        written.map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: io::Error) -> PermissionsProblem {
        let path = self.path();
        PermissionsProblem::Unwritable { path, source }
    }
}

/// The file's bytes; `None` where it is missing.
fn read(root: &Path) -> Result<Option<Vec<u8>>, PermissionsProblem> {
    check_directory(root)?;
    let path = root.join(FILE);
    match files::read(&path, Links::Refused, LARGEST).if_there() {
        Err(error) if files::is_no_file(&error) => Err(PermissionsProblem::NoFile { path }),
        read => read.map_err(|source| PermissionsProblem::Unreadable { path, source }),
    }
}

/// The directory may be missing, but nothing else: a link might lead to another project's permissions.
fn check_directory(root: &Path) -> Result<(), PermissionsProblem> {
    let path = root.join(AGENT_FOLDER);
    match path.symlink_metadata() {
        Ok(metadata) if !metadata.is_dir() => Err(PermissionsProblem::NoFile { path }),
        _ => Ok(()),
    }
}

/// All that is in the file, and what becomes of each tool's calls.
fn parse(content: &[u8]) -> Result<(Value, HashMap<String, PermissionAction>), Misplaced> {
    let text = positions::text(content)?;
    let at = Positions(text);
    let fields: Entries<'_> = at.object(text)?;
    let field = |name: &str| {
        let found = fields.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.get())
    };
    let missing = |name: &str| at.problem(text.trim_start(), format!("`{name}` is missing"));
    let version = field("version").ok_or_else(|| missing("version"))?;
    if serde_json::from_str(version).ok() != Some(VERSION) {
        return Err(at.problem(version, format!("`version` must be {VERSION}")));
    }
    if let Some(timestamp) = field("timestamp")
        && string(timestamp).is_none()
    {
        return Err(at.problem(timestamp, "`timestamp` must be a string, in quotes"));
    }
    let permissions = field("permissions").ok_or_else(|| missing("permissions"))?;
    if !permissions.starts_with('[') {
        return Err(at.problem(permissions, "`permissions` must be a list, in `[` and `]`"));
    }
    let entries: Vec<&RawValue> = at.parse(permissions)?;
    let mut actions = HashMap::new();
    for entry in entries {
        let (tool, action) = parse_entry(&at, entry.get())?;
        let known = actions.insert(tool.clone(), action);
        if known.is_some_and(|known| known != action) {
            let reason = format!("`{}` is there twice, with two actions", tool.escape_debug());
            return Err(at.problem(entry.get(), reason));
        }
    }
    Ok((at.parse(text)?, actions))
}

fn parse_entry(at: &Positions<'_>, entry: &str) -> Result<(String, PermissionAction), Misplaced> {
    let fields: Entries<'_> = at.object(entry)?;
    let field = |name: &str| {
        let found = fields.0.iter().find(|(known, _)| known == name);
        let value = found.map(|(_, value)| value.get());
        value.ok_or_else(|| at.problem(entry, format!("`{name}` is missing")))
    };
    let (tool, action) = (field("tool")?, field("action")?);
    let Some(name) = string(tool).filter(|name| !name.trim().is_empty()) else {
        return Err(at.problem(tool, "`tool` must be the name of a tool, in quotes"));
    };
    let written = string(action);
    let mut known = PermissionAction::ALL.into_iter();
    let known = known.find(|known| written.as_deref() == Some(known.name()));
    let expected = "`action` must be `\"always\"`, `\"ask\"` or `\"never\"`";
    let action = known.ok_or_else(|| at.problem(action, expected))?;
    // One that is misspelt would forbid nothing.
    if !TOOLS.contains(&&*name) {
        let name = one_line(&name, LONGEST_NAME);
        let reason = format!("there is no tool `{name}`: known are {}", TOOLS.join(", "));
        return Err(at.problem(tool, reason));
    }
    Ok((name, action))
}

fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

#[cfg(test)]
mod tests;
