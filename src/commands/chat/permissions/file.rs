//! The file `.agent/permissions.json`, with the permissions of each tool in a project.
//!
//! Reads the file, and writes it atomically. Guarantees that a mistake is reported with its position and never
//! misinterpreted, that unknown fields are preserved, and that the file can only restrict what is allowed unless the
//! user trusts its exact content.

mod form;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, SecondsFormat};

pub(crate) use self::form::rule_words;
pub use self::form::{Choice, PermissionAction};
use self::form::{CommandRule, PermissionForm};
use crate::agent::judge::{JudgedCommand, JudgedProgram, ScriptState, judge};
use crate::commands::chat::commands::CommandFile;
use crate::commands::chat::trust::TrustedFiles;
use crate::project::home::AGENT_FOLDER;
use crate::run::not_ready::NotReady;
use crate::sys::diff::FileChange;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::{atomic_file, diff};

/// The file, relative to the project's root.
pub const FILE: &str = crate::project::home::PERMISSIONS;
/// Content that the user has rejected.
pub const REFUSED: &str = ".agent/permissions.json.refused";
/// Maximum size of the file, in bytes.
const LARGEST: u64 = 2 * MIB;
/// Consequence of removing the file, for error messages.
const WITHOUT: &str = "then the defaults hold";

/// Errors from reading and saving permissions.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PermissionsProblem {
    /// The file or its directory is a link, or not of the expected type.
    #[error("`{}` is a link, or not a {wanted}", path.display())]
    #[diagnostic(code("/settings"), help("replace `{}` with a {wanted}, or remove it", path.display()))]
    NoFile {
        /// The path.
        path: PathBuf,
        /// `regular file` or `directory`.
        wanted: &'static str,
    },
    /// The file cannot be read, or contains a mistake.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Unusable(#[from] HomeFileProblem),
    /// The file cannot be written.
    #[error("`{}` cannot be written: {}", .0.path.display(), .0.source)]
    #[diagnostic(help("make `{}` writable", .0.path.parent().unwrap_or(&.0.path).display()))]
    Unwritable(PathError),
    /// The file was written, but trust in it could not be saved.
    #[error(transparent)]
    #[diagnostic(help("what it allows holds until the program ends"))]
    Untrusted(HomeFileProblem),
    /// The file has changed since it was read, and the user has not seen the change yet.
    #[error("`{}` has been changed meanwhile and was not written; the choice holds until the program ends", .0.display())]
    #[diagnostic(help("the next request shows you the change"))]
    Changed(PathBuf),
}

/// Permissions of each tool in a project, as last seen or chosen by the user.
#[derive(Debug, Clone)]
pub struct PermissionFile {
    root: PathBuf,
    /// The file's bytes as last read, saved or rejected; `None` if there was no file.
    known: Option<Vec<u8>>,
    /// The content of the file.
    form: PermissionForm,
    /// The permissions in effect.
    holding: PermissionForm,
    /// The project's files that the user trusts.
    trusted: TrustedFiles,
    /// `true` if the whole file is in effect, because it does not exist or the user trusts its content.
    is_trusted: bool,
    /// `true` once the user has declined to trust the file.
    pub is_declined: bool,
}

/// A change on disk: its unified diff, empty if the file cannot be read, and the permissions that take effect if the
/// user agrees, or an error if the file cannot be used.
pub type ChangedOnDisk = (String, Result<PermissionFile, PermissionsProblem>);

impl PermissionFile {
    /// Loads the permissions of the project at `root`: those in the file, or the defaults if it does not exist. An
    /// untrusted file grants no permissions beyond the defaults.
    ///
    /// # Errors
    /// Fails if the file exists but cannot be used.
    fn load(root: &Path, trusted: TrustedFiles) -> Result<Self, PermissionsProblem> {
        Self::of(root, read(root)?, trusted)
    }

    /// Loads the permissions, with the trust recorded in the user's `home`.
    ///
    /// # Errors
    /// Fails if a file cannot be used: the project is not ready.
    pub fn open(home: &Path, root: &Path) -> Result<Self, Error> {
        let trusted = TrustedFiles::load(home, root).map_err(NotReady::of)?;
        Ok(Self::load(root, trusted).map_err(NotReady::of)?)
    }

    fn of(
        root: &Path,
        known: Option<Vec<u8>>,
        trusted: TrustedFiles,
    ) -> Result<Self, PermissionsProblem> {
        let path = root.join(FILE);
        let form: PermissionForm = home_file::parse_file(known.as_deref(), path, WITHOUT)?;
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

    /// Returns the action for calls of this tool; a tool that is not listed is asked about.
    pub fn action(&self, tool: &str) -> PermissionAction {
        self.holding.action(tool)
    }

    /// Returns the action for a command run by this tool. For each of the command's programs, the longest rule that
    /// covers it applies, or else the tool's own entry; the most restrictive result wins. No rule can allow a tool that
    /// is forbidden, or a command that is always asked about. An unclear command that contains a forbidden prefix is
    /// forbidden.
    pub fn action_on(&self, tool: &str, command: &JudgedCommand) -> PermissionAction {
        let of_tool = self.action(tool);
        let rule = |program| self.rule(program).unwrap_or(of_tool);
        let forbids = |rule: &CommandRule| {
            rule.action == PermissionAction::Never && command.may_run(&rule.prefix)
        };
        match command.programs.iter().map(rule).max().unwrap_or(of_tool) {
            _ if of_tool == PermissionAction::Never => of_tool,
            _ if self.holding.commands.iter().any(forbids) => PermissionAction::Never,
            PermissionAction::Always if !command.reasons.is_empty() => PermissionAction::Ask,
            action => action,
        }
    }

    /// Returns the action of the longest rule that covers a program; the most restrictive one of rules of equal length.
    pub fn rule(&self, program: &JudgedProgram) -> Option<PermissionAction> {
        let rules = self.holding.commands.iter();
        let covered = |rule: &CommandRule| match rule.action {
            PermissionAction::Never => program.forbidden_by(&rule.prefix),
            _ => program.covered_by(&rule.prefix),
        };
        let found = rules.filter_map(|rule| Some((covered(rule)?, rule.action)));
        found.max().map(|(_, action)| action)
    }

    /// Formats the permissions in effect as Markdown.
    pub fn markdown(&self) -> String {
        let line = |what: &str, action: &str| format!("| {what} | {action} |\n");
        let tools = self.holding.permissions.iter();
        let rules = self.holding.commands.iter();
        let lines: String = tools
            .map(|rule| line(&rule.tool, rule.action.into_str()))
            .chain(rules.map(|rule| line(&rule_words(&rule.prefix), rule.action.into_str())))
            .collect();
        let path = self.path();
        let origin = if path.exists() {
            "stand in"
        } else {
            "are the defaults: there is no"
        };
        format!(
            "| tool | permission |\n|---|---|\n{lines}\nThese {origin} `{}`. Other tools are asked about, but for \
             `update_todos` and `spawn_agent`, which change nothing by themselves.",
            path.display()
        )
    }

    /// Returns the permissions that the file would add if it were trusted, as phrases.
    pub fn withheld(&self) -> Vec<String> {
        if self.is_trusted {
            return Vec::new();
        }
        self.form.allowed()
    }

    /// Returns a copy in which the file counts as trusted.
    pub fn as_trusted(&self) -> Self {
        Self {
            holding: self.form.clone(),
            is_trusted: true,
            ..self.clone()
        }
    }

    /// Returns `true` if a command would run without asking, assuming that it runs no script new to the project.
    pub fn allows_command(&self, command: &str) -> bool {
        let judged = judge(command, &|_| ScriptState::Tracked);
        self.action_on("execute_command", &judged) == PermissionAction::Always
    }

    /// Returns `true` if the user trusts the file of a project's command; the user's own commands need no trust.
    pub fn trusts(&self, command: &CommandFile) -> bool {
        let source = command.source();
        source.is_none_or(|(path, content)| self.trusted.has(path, content))
    }

    /// Records that the user trusts the file and these command files.
    ///
    /// # Errors
    /// Fails if the trust cannot be saved; the files are then not trusted.
    pub fn trust(&mut self, commands: &[CommandFile]) -> Result<(), HomeFileProblem> {
        let commands = commands.iter().filter_map(CommandFile::source);
        let own = self.known.iter().map(|content| (FILE, &**content));
        self.trusted.add(own.chain(commands))?;
        *self = self.as_trusted();
        Ok(())
    }

    /// Records that the user trusts only this command file.
    ///
    /// # Errors
    /// Same as for [`trust`](Self::trust).
    pub fn trust_command(&mut self, command: &CommandFile) -> Result<(), HomeFileProblem> {
        self.trusted.add(command.source())
    }

    /// Returns `true` if the user must trust the file before this choice can be written to it.
    pub fn needs_trust(&self, choice: &Choice) -> bool {
        !self.is_trusted && !matches!(choice, Choice::Tool(_, PermissionAction::Never))
    }

    /// Applies a choice from now on, and saves it in the file unless that requires trust.
    ///
    /// # Errors
    /// Fails if the file was not written; the choice still applies until the program ends.
    pub fn remember(
        &mut self,
        choice: &Choice,
        now: DateTime<FixedOffset>,
    ) -> Result<(), PermissionsProblem> {
        self.holding.set(choice);
        if self.needs_trust(choice) {
            return Ok(());
        }
        // Changes that the user has not seen must not be overwritten.
        if read(&self.root)? != self.known {
            return Err(PermissionsProblem::Changed(self.path()));
        }
        self.form.set(choice);
        self.form.timestamp = Some(now.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true));
        // Serialization cannot fail, since all keys are strings.
        let json = serde_json::to_string_pretty(&self.form).unwrap_or_default();
        let content = format!("{json}\n").into_bytes();
        self.write(&content)?;
        if self.is_trusted {
            let saved = self.trusted.add([(FILE, &*content)]);
            saved.map_err(PermissionsProblem::Untrusted)?;
        }
        self.known = Some(content);
        Ok(())
    }

    /// Compares the file with its content when last read, saved or restored; `None` if it is unchanged. The permissions
    /// in effect stay the same.
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

    /// Restores the file after the user has rejected a change. The rejected content may be the user's own work, so it
    /// is moved to [`REFUSED`], replacing an earlier file there.
    ///
    /// # Errors
    /// Fails if the file cannot be moved or written.
    pub fn put_back(&self) -> Result<(), PermissionsProblem> {
        check_directory(&self.root)?;
        let moved = fs::rename(self.path(), self.root.join(REFUSED)).if_there();
        moved.map_err(|source| self.unwritable(source))?;
        let content = self.known.as_ref();
        content.map_or(Ok(()), |content| self.write(content))
    }

    /// Returns the absolute path of the file.
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

/// Reads the file; `None` if it does not exist.
fn read(root: &Path) -> Result<Option<Vec<u8>>, PermissionsProblem> {
    check_directory(root)?;
    let path = root.join(FILE);
    match files::read(&path, Links::Refused, LARGEST).if_there() {
        Err(error) if files::is_no_file(&error) => Err(PermissionsProblem::NoFile {
            path,
            wanted: "regular file",
        }),
        read => Ok(read.map_err(|source| HomeFileProblem::Unreadable { path, source })?),
    }
}

/// Checks that the directory is missing or a real one: a link could lead to another project's permissions.
fn check_directory(root: &Path) -> Result<(), PermissionsProblem> {
    let path = root.join(AGENT_FOLDER);
    match path.symlink_metadata() {
        Ok(metadata) if !metadata.is_dir() => Err(PermissionsProblem::NoFile {
            path,
            wanted: "directory",
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
