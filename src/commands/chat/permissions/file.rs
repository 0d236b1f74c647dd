//! The file `.agent/permissions.json`: what may be done with each tool in a project.
//!
//! Reads the file, and writes it in one step. Guarantees that a mistake in it is told with its place and never taken
//! for something else, that what others keep in it stays, and that it only narrows what may be done unless the user has
//! agreed to its very bytes.

mod form;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, SecondsFormat};

use self::form::PermissionForm;
#[cfg(test)]
pub(crate) use self::form::TOOLS;
pub(crate) use self::form::rule_words;
pub use self::form::{Choice, PermissionAction};
use crate::agent::judge::{JudgedCommand, JudgedProgram, ScriptState, judge};
use crate::commands::chat::commands::CommandFile;
use crate::commands::chat::trust::{TrustProblem, TrustedFiles};
use crate::project::home::AGENT_FOLDER;
use crate::run::not_ready::NotReady;
use crate::sys::diff::FileChange;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::{atomic_file, diff};

/// The file, relative to the project's root.
pub const FILE: &str = ".agent/permissions.json";
/// Content that the user has turned down.
pub const REFUSED: &str = ".agent/permissions.json.refused";
/// The file may have so many bytes.
const LARGEST: u64 = 2 * MIB;
/// Effect of removing the file.
const WITHOUT: &str = "then the defaults hold";

/// Errors of reading and saving permissions.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PermissionsProblem {
    /// The file, or its directory, is a link, or is no file at all.
    #[error("`{}` is a link or no regular file", .path.display())]
    #[diagnostic(help("put a regular file or directory in the place of `{}`, or remove it", path.display()))]
    NoFile {
        /// The file, or its directory.
        path: PathBuf,
    },
    /// The file cannot be read, or has a mistake in it.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unusable(#[from] HomeFileProblem),
    /// The file cannot be written.
    #[error("`{}` cannot be written: {}", .0.path.display(), .0.source)]
    #[diagnostic(help("make `{}` writable", .0.path.parent().unwrap_or(&.0.path).display()))]
    Unwritable(PathError),
    /// The file was written, but trust in it could not be kept.
    #[error(transparent)]
    #[diagnostic(help("what it allows holds until the program ends"))]
    Untrusted(#[from] TrustProblem),
    /// The file has been changed since it was read, and nobody has looked at that yet.
    #[error("`{}` has been changed meanwhile and was not written; the choice holds until the program ends", .path.display())]
    #[diagnostic(help("with the next request you are shown the change"))]
    Changed {
        /// The file.
        path: PathBuf,
    },
}

/// Permissions of each tool in a project, as the user has last seen or chosen it.
#[derive(Debug, Clone)]
pub struct PermissionFile {
    root: PathBuf,
    /// The file's bytes as last read, saved or rejected; `None` if there was no file.
    known: Option<Vec<u8>>,
    /// The content of the file.
    form: PermissionForm,
    /// The permissions that hold.
    holding: PermissionForm,
    /// The files of the project that the user has agreed to.
    trusted: TrustedFiles,
    /// `true` if all of the file is in effect: there is none, or the user has agreed to these bytes.
    is_trusted: bool,
    /// `true` once the user has declined to trust the file.
    pub is_declined: bool,
}

/// Unified diff of a change on the disk, "" where the file cannot be read; and the permissions that hold if the user
/// agrees, or an error where the file cannot be used as it is now.
pub type ChangedOnDisk = (String, Result<PermissionFile, PermissionsProblem>);

impl PermissionFile {
    /// The permissions of the project with this root: the file's, as far as it is trusted or narrows them, or the
    /// defaults where there is none.
    ///
    /// # Errors
    /// When there is one that cannot be used.
    fn load(root: &Path, trusted: TrustedFiles) -> Result<Self, PermissionsProblem> {
        Self::of(root, read(root)?, trusted)
    }

    /// Loads them likewise, by the trust that is kept in the user's `home`.
    ///
    /// # Errors
    /// When a file cannot be used: the project is not ready.
    pub fn open(home: &Path, root: &Path) -> Result<Self, Error> {
        let trusted = TrustedFiles::load(home, root).map_err(NotReady::of)?;
        Ok(Self::load(root, trusted).map_err(NotReady::of)?)
    }

    fn of(
        root: &Path,
        known: Option<Vec<u8>>,
        trusted: TrustedFiles,
    ) -> Result<Self, PermissionsProblem> {
        let parsed = known.as_deref().map(home_file::parse_json).transpose();
        let form: PermissionForm = parsed
            .map_err(|mistake| HomeFileProblem::Mistake {
                path: root.join(FILE),
                mistake,
                without: WITHOUT,
            })?
            .unwrap_or_default();
        let is_trusted = known
            .as_ref()
            .is_none_or(|content| trusted.has(FILE, content));
        Ok(Self {
            root: root.to_owned(),
            known,
            holding: form.holding(is_trusted),
            form,
            trusted,
            is_trusted,
            is_declined: false,
        })
    }

    /// Action for calls of this tool: a tool that is not listed is asked about.
    pub fn action(&self, tool: &str) -> PermissionAction {
        self.holding.action(tool)
    }

    /// Action for a command that this tool runs: each of its programs goes by the longest rule that covers it, else by
    /// the tool's own entry. No rule covers what is asked about always.
    pub fn action_on(&self, tool: &str, command: &JudgedCommand) -> PermissionAction {
        let of_tool = self.action(tool);
        let programs = command.programs.iter();
        let by_rules = programs.map(|program| self.rule(program).unwrap_or(of_tool));
        let by_rules = by_rules
            .max()
            .filter(|_| of_tool != PermissionAction::Never);
        match by_rules.unwrap_or(of_tool) {
            PermissionAction::Always if !command.reasons.is_empty() => PermissionAction::Ask,
            action => action,
        }
    }

    /// The action of the longest rule that covers a program; of two, the one that allows less.
    pub fn rule(&self, program: &JudgedProgram) -> Option<PermissionAction> {
        let covering = self.holding.commands.iter();
        let covering =
            covering.filter_map(|rule| Some((program.covered_by(&rule.prefix)?, rule.action)));
        covering.max().map(|(_, action)| action)
    }

    /// The permissions that hold, as Markdown.
    pub fn markdown(&self) -> String {
        let tools = self.holding.permissions.iter();
        let tools = tools.map(|rule| (rule.tool.clone(), rule.action));
        let rules = self.holding.commands.iter();
        let rules = rules.map(|rule| (rule_words(&rule.prefix), rule.action));
        let line = |(what, action): (String, PermissionAction)| {
            format!("| {what} | {} |\n", action.name())
        };
        let lines: String = tools.chain(rules).map(line).collect();
        let path = self.path();
        let kept = if path.exists() {
            "stand in"
        } else {
            "are the defaults: there is no"
        };
        format!(
            "| tool | permission |\n|---|---|\n{lines}\nThese {kept} `{}`. Other tools are asked about, but for \
             `update_todos` and `spawn_agent`, which change nothing by themselves.",
            path.display()
        )
    }

    /// Permissions that the file would add with trust, as phrases.
    pub fn withheld(&self) -> Vec<String> {
        if self.is_trusted {
            return Vec::new();
        }
        self.form.allowed()
    }

    /// A copy for which the user counts as having agreed to the file.
    pub fn as_trusted(&self) -> Self {
        Self {
            holding: self.form.clone(),
            is_trusted: true,
            ..self.clone()
        }
    }

    /// Tests if a command that is not about a new script is carried out unasked.
    pub fn allows_command(&self, command: &str) -> bool {
        let judged = judge(command, &|_| ScriptState::Tracked);
        self.action_on("execute_command", &judged) == PermissionAction::Always
    }

    /// Tests if the user has agreed to what a command of the project's runs; a command of the user's own needs no
    /// trust.
    pub fn trusts(&self, command: &CommandFile) -> bool {
        let source = command.source();
        source.is_none_or(|(path, content)| self.trusted.has(path, content))
    }

    /// Records that the user trusts the file and these command files.
    ///
    /// # Errors
    /// When that cannot be kept; then it does not hold.
    pub fn trust(&mut self, commands: &[CommandFile]) -> Result<(), TrustProblem> {
        let commands = commands.iter().filter_map(CommandFile::source);
        let own = self.known.iter().map(|content| (FILE, &**content));
        self.trusted.add(own.chain(commands))?;
        *self = self.as_trusted();
        Ok(())
    }

    /// Records that the user trusts a command file alone.
    ///
    /// # Errors
    /// Those of [`trust`](Self::trust).
    pub fn trust_command(&mut self, command: &CommandFile) -> Result<(), TrustProblem> {
        self.trusted.add(command.source())
    }

    /// Tests if the user must trust the file before this can be written there.
    pub fn needs_trust(&self, choice: &Choice) -> bool {
        !self.is_trusted && !matches!(choice, Choice::Tool(_, PermissionAction::Never))
    }

    /// Has this hold from now on, and the file say so, if it may.
    ///
    /// # Errors
    /// When the file was not written; until the program ends it holds all the same.
    pub fn remember(
        &mut self,
        choice: &Choice,
        now: DateTime<FixedOffset>,
    ) -> Result<(), PermissionsProblem> {
        self.holding.set(choice);
        if self.needs_trust(choice) {
            return Ok(());
        }
        // What somebody else has written there is not overwritten unseen.
        if read(&self.root)? != self.known {
            let path = self.path();
            return Err(PermissionsProblem::Changed { path });
        }
        self.form.set(choice);
        let now = now.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true);
        self.form.timestamp = Some(now);
        // All keys are strings.
        let json = serde_json::to_string_pretty(&self.form).unwrap_or_default();
        let content = format!("{json}\n").into_bytes();
        self.write(&content)?;
        if self.is_trusted {
            self.trusted.add([(FILE, &*content)])?;
        }
        self.known = Some(content);
        Ok(())
    }

    /// Compares the file with its state when read, saved or put back; `None` if it is the same. The permissions do not
    /// change by that.
    pub fn changed_on_disk(&self) -> Option<ChangedOnDisk> {
        let found = match read(&self.root) {
            Ok(found) if found == self.known => return None,
            Ok(found) => found,
            Err(problem) => return Some((String::new(), Err(problem))),
        };
        let change = FileChange::of(FILE.to_owned(), self.known.clone(), found.clone());
        let file = Self::of(&self.root, found, self.trusted.clone());
        Some((diff::text(&[change]), file))
    }

    /// Puts the file back as it was: the user does not agree with its change. What stood there goes to [`REFUSED`], in
    /// the place of what went there before: it may be the user's own.
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
        PermissionsProblem::Unwritable(PathError::of("write", self.path())(source))
    }
}

/// The file's bytes; `None` where it is missing.
fn read(root: &Path) -> Result<Option<Vec<u8>>, PermissionsProblem> {
    check_directory(root)?;
    let path = root.join(FILE);
    match files::read(&path, Links::Refused, LARGEST).if_there() {
        Err(error) if files::is_no_file(&error) => Err(PermissionsProblem::NoFile { path }),
        read => Ok(read.map_err(|source| HomeFileProblem::Unreadable { path, source })?),
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

#[cfg(test)]
mod tests;
