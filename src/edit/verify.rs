//! Checks each edit against the path policy: its spelling, and the state of the disk.
//!
//! Only reads. Guarantees that a [`VerifiedEdits`] is created only here, and only for a reply without faults; all
//! faults of a reply are found, not just the first.

use std::cell::{OnceCell, RefCell};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::attributes::Rights;
use super::beneath::{ancestors, split};
use super::digest::Present;
use super::error::VerifyError;
use super::executed::{self, WITH_GIT};
use super::guard::{LossGuard, MarkedLines};
use super::mount::{Mount, mount_of};
use super::not_checked_out::NotCheckedOut;
use super::operation::{FileOperation, Operation};
use super::protection::Protection;
use super::spelling::{PROTECTED_FILES, PathScope};
use super::tree_after::TreeAfter;
use super::{
    EditKind, FaultKind, FileEdit, ParsedReply, Rejection, ReplyFault, Rule, comparison, spelling,
};
use crate::project::gitignore::IgnoreRules;
use crate::sys::files::{self, IfThere as _, Links, PathError};
use crate::sys::identity::{FileId, file_id};

/// Maximum size of a file, in bytes, that is compared with its new content.
const LARGEST_COMPARED: u64 = 64 << 20;

/// An edit that may be applied; created only by [`PathPolicy::verify`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedEdit {
    edit: FileEdit,
    present: Option<Present>,
}

impl VerifiedEdit {
    /// Returns the operation on the tree.
    pub(super) fn operation(&self) -> FileOperation<'_> {
        FileOperation {
            path: &self.edit.path,
            action: match &self.edit.kind {
                EditKind::Write(content) => Operation::Write(content),
                EditKind::Remove => Operation::Remove,
            },
            present: self.present,
        }
    }
}

/// The edits of an accepted reply, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifiedEdits {
    edits: Vec<VerifiedEdit>,
    unchanged: Vec<String>,
    warnings: Vec<String>,
}

impl VerifiedEdits {
    /// Returns the edits, ordered by path.
    pub fn edits(&self) -> &[VerifiedEdit] {
        &self.edits
    }

    /// Returns the files whose content the reply does not change.
    pub fn unchanged(&self) -> &[String] {
        &self.unchanged
    }

    /// Warnings for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the paths, with the new content of files to write; `None` for files to remove.
    pub fn all(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let edits = self.edits.iter().map(|VerifiedEdit { edit, .. }| edit);
        edits.map(|edit| (edit.path.as_str(), edit.kind.content()))
    }

    /// Returns the paths of files to write, with their content.
    pub fn written(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all()
            .filter_map(|(path, content)| Some((path, content?)))
    }

    /// Returns the paths of files to remove.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        self.all()
            .filter_map(|(path, content)| content.is_none().then_some(path))
    }

    fn admit(&mut self, edit: FileEdit, present: Option<Present>, policy: &PathPolicy) {
        let path = &edit.path;
        if edit.kind == EditKind::Remove && present.is_none() {
            let warning = format!("`{path}` is to be removed, but is not there");
            self.warnings.push(warning);
            return self.unchanged.push(edit.path);
        }
        if let Some(words) = policy.warning(path) {
            self.warnings.push(format!("`{path}` {words}"));
        }
        self.edits.push(VerifiedEdit { edit, present });
    }
}

/// Reasons that a path may not be written to, or could not be checked.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    Rule(#[from] Rule),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Rules(#[from] PathError),
}

/// The path policy of one project, for the current state of its disk.
pub struct PathPolicy {
    root: PathBuf,
    scope: PathScope,
    guard: LossGuard,
    protection: Protection,
    /// The existing files that a reply may replace or remove; `None`: all.
    seen: Option<BTreeSet<String>>,
    mount: Mount,
    ignored: IgnoreRules,
    not_checked_out: NotCheckedOut,
    program: Option<(PathBuf, Option<FileId>)>,
    /// The paths that the configuration of git names.
    configured: BTreeSet<PathBuf>,
    protected: Vec<(FileId, Rule)>,
    /// Directories that were looked up; true if one exists.
    directories: RefCell<HashMap<String, bool>>,
    /// The names in each directory, by folded form.
    names: RefCell<HashMap<String, HashMap<String, String>>>,
}

impl PathPolicy {
    /// Loads the policy for replies in the project at `root`, an absolute path.
    ///
    /// # Errors
    /// Fails if the root or one of git's ignore files cannot be read.
    pub fn load(root: &Path, program: Option<&Path>) -> Result<Self, VerifyError> {
        Self::of(PathScope::Reply, root, program)
    }

    /// Loads the policy for an agent's tools: files that a reply may not touch, and files that git ignores, may be
    /// written with a warning; `.git` and the program's own directories may not.
    ///
    /// # Errors
    /// Same as for [`load`](Self::load).
    pub fn load_for_agent(root: &Path, program: Option<&Path>) -> Result<Self, VerifyError> {
        Self::of(PathScope::Agent, root, program)
    }

    fn of(scope: PathScope, root: &Path, program: Option<&Path>) -> Result<Self, VerifyError> {
        let failed = || PathError::of("look at", root);
        let metadata = root.metadata().map_err(failed())?;
        let directories = scope.directories().iter();
        let protected = directories
            .map(|name| (*name, Rule::ProtectedDirectory))
            .chain([(".git", Rule::ProtectedGit)])
            .filter_map(|(name, rule)| Some((file_id(&root.join(name).metadata().ok()?), rule)));
        // A protected name may be a link; where it leads is protected, too.
        let files = (scope == PathScope::Reply).then_some(PROTECTED_FILES);
        let targets = files.into_iter().flatten().filter_map(|name| {
            let path = root.join(name);
            let found = path.symlink_metadata().ok()?;
            let target = path.metadata().ok().filter(|_| found.is_symlink())?;
            Some((file_id(&target), Rule::ProtectedFile))
        });
        let program =
            program.map(|path| (path.to_owned(), path.metadata().ok().as_ref().map(file_id)));
        Ok(Self {
            scope,
            guard: LossGuard::default(),
            protection: Protection::default(),
            seen: None,
            mount: mount_of(root, &metadata).map_err(failed())?,
            ignored: IgnoreRules::load(root)?,
            not_checked_out: NotCheckedOut::default(),
            program,
            configured: BTreeSet::new(),
            protected: protected.chain(targets).collect(),
            directories: RefCell::default(),
            names: RefCell::default(),
            root: root.to_path_buf(),
        })
    }

    /// Sets the guard against losses in replaced files.
    pub fn guarded(self, guard: LossGuard) -> Self {
        Self { guard, ..self }
    }

    /// Sets the files and values that the project protects.
    pub fn protecting(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }

    /// Sets the existing files that a reply may replace or remove; `None`: all.
    pub fn seeing(self, seen: Option<BTreeSet<String>>) -> Self {
        Self { seen, ..self }
    }

    /// Sets the paths, relative to the root, that the configuration of git names, such as its hooks.
    pub fn configured(self, configured: BTreeSet<PathBuf>) -> Self {
        Self { configured, ..self }
    }

    /// Returns the warning about the file at `path`, if there is one.
    fn warning(&self, path: &str) -> Option<&'static str> {
        let mut above = Path::new(path).ancestors();
        let is_configured = above.any(|path| self.configured.contains(path));
        executed::warning(path).or(is_configured.then_some(WITH_GIT))
    }

    fn is_unseen(&self, path: &str) -> bool {
        matches!(&self.seen, Some(seen) if !seen.contains(path))
    }

    /// Verifies a reply as a whole.
    ///
    /// # Errors
    /// `Rejection` with all faults of the reply, or an error from reading the disk.
    pub fn verify(&self, reply: ParsedReply) -> Result<VerifiedEdits, VerifyError> {
        let mut faults = reply.faults;
        faults.extend(collisions(&reply.edits, self.scope));
        faults.extend(self.repositories(&reply.edits));
        let mut verified = VerifiedEdits::default();
        if reply.edits.is_empty() && faults.is_empty() {
            verified.warnings.push("the reply has no edits".to_owned());
        }
        for path in &reply.repeated {
            verified.warnings.push(format!(
                "the reply has more than one block for `{}`; the last one counts",
                path.escape_debug()
            ));
        }
        let mut looked_at = Vec::new();
        let moved_from = OnceCell::new();
        for edit in &reply.edits {
            match self.present(&edit.path)? {
                Err(kind) => faults.push(edit.fault(kind)),
                // Replacements are located only in lines that were shown.
                Ok(Some(_)) if edit.parts.is_empty() && self.is_unseen(&edit.path) => {
                    faults.push(edit.fault(FaultKind::breach(&edit.path, Rule::NotShown)));
                }
                Ok(present) => {
                    let warnings = &mut verified.warnings;
                    warnings.extend(self.beyond_replies(&edit.path)?);
                    let lost = self
                        .compare(edit, present, (&reply.edits, &moved_from), warnings)
                        .map_err(PathError::of("look at", &edit.path))?;
                    looked_at.push(lost.is_some().then_some(present));
                    faults.extend(lost.into_iter().flatten());
                }
            }
        }
        for edit in reply.unlocated {
            if let Some(kind) = self.present(&edit.path)?.err() {
                // Such faults reveal lines of a file that no reply may name.
                faults.retain(|fault| !fault.is_unlocated(&edit.path));
                faults.push(edit.fault(kind));
            }
        }
        if !faults.is_empty() {
            faults.sort_by_key(|fault| fault.line);
            // Paths of the reply may collide with each other and with files.
            faults.dedup();
            return Err(Rejection { faults }.into());
        }
        for (edit, looked_at) in reply.edits.into_iter().zip(looked_at) {
            match looked_at {
                Some(present) => verified.admit(edit, present, self),
                None => verified.unchanged.push(edit.path),
            }
        }
        Ok(verified)
    }

    /// Returns the state of the file at `path`, or the fault of naming it.
    fn present(&self, path: &str) -> Result<Result<Option<Present>, FaultKind>, VerifyError> {
        if let Some(plain) = self.undecorated(path) {
            return Ok(Err(FaultKind::misnamed(path, plain, self.scope)));
        }
        match self.look(path) {
            Err(Obstacle::Io(error)) => Err(PathError::of("look at", path)(error).into()),
            Err(Obstacle::Rules(error)) => Err(error.into()),
            Err(Obstacle::Rule(rule)) => Ok(Err(FaultKind::breach(path, rule))),
            Ok(present) => Ok(Ok(present)),
        }
    }

    /// Returns the path inside a decorated one, unless a file of exactly that name exists.
    fn undecorated<'p>(&self, path: &'p str) -> Option<&'p str> {
        let plain = spelling::undecorated(path)?;
        let is_there = self.root.join(path).symlink_metadata().is_ok();
        (!is_there).then_some(plain)
    }

    /// Returns a warning if no reply could write to the path.
    fn beyond_replies(&self, path: &str) -> Result<Option<String>, PathError> {
        Ok(if self.scope == PathScope::Reply {
            None
        } else if spelling::broken_rule(path, PathScope::Reply).is_some() {
            Some(format!(
                "`{path}` is protected: in the commit workflow, no reply may change it"
            ))
        } else {
            let ignored = self.ignored.is_ignored(path, false)?;
            ignored.then(|| format!("git ignores `{path}`, so it shows no change to it"))
        })
    }

    /// Compares the new content of a file with the old one, if any; `None` if they are the same. `edits` are all edits
    /// of the reply; what they replace is read once, if needed, into `moved_from`.
    fn compare(
        &self,
        edit: &FileEdit,
        present: Option<Present>,
        (edits, moved_from): (&[FileEdit], &OnceCell<MarkedLines>),
        warnings: &mut Vec<String>,
    ) -> io::Result<Option<Vec<ReplyFault>>> {
        let path = &edit.path;
        if let Some(fault) = self.changed_value(edit, present)? {
            return Ok(Some(vec![fault]));
        }
        let EditKind::Write(new) = &edit.kind else {
            let is_executable = |found: &Present| found.rights.mode & 0o111 != 0;
            let program = present.filter(is_executable);
            let copy = program.and_then(|_| self.new_copy(path, edits));
            warnings.extend(copy.map(|copy| {
                format!("`{copy}` is `{path}`, but not executable, as no new file is")
            }));
            return Ok(Some(Vec::new()));
        };
        let mut warn = |change: &str| warnings.push(format!("`{path}` {change}"));
        let read =
            |path: &str| files::read(&self.root.join(path), Links::Refused, LARGEST_COMPARED);
        let old = match present.map(|present| present.fingerprint.size) {
            None => None,
            Some(size) if size > LARGEST_COMPARED => {
                warn("is too large to compare and is replaced as a whole");
                return Ok(Some(Vec::new()));
            }
            Some(_) => {
                let old = read(path)?;
                if old == new.as_bytes() {
                    return Ok(None);
                }
                let changes = comparison::silent_changes(&old, new).into_iter();
                changes.for_each(&mut warn);
                Some(old)
            }
        };
        let is_there = |edit: &&FileEdit| matches!(self.look(&edit.path), Ok(Some(_)));
        let there = edits.iter().filter(is_there);
        let texts = there.filter_map(|edit| read(&edit.path).ok());
        let own = OnceCell::new();
        let before = || match &old {
            Some(old) => own.get_or_init(|| MarkedLines::of([old].into_iter())),
            None => moved_from.get_or_init(|| MarkedLines::of(texts)),
        };
        if let Some(kind) = self.guard.mark(path, old.is_none(), new, before) {
            return Ok(Some(vec![edit.fault(kind)]));
        }
        let old = old.map(|old| String::from_utf8_lossy(&old).into_owned());
        let others = edits.iter().filter_map(|other| match &other.kind {
            EditKind::Write(text) if other.path != *path => Some(text.as_str()),
            _ => None,
        });
        let mut in_parts = Vec::new();
        for part in &edit.parts {
            let lost = self.guard.loss_in_part(path, &part.find, &part.put);
            in_parts.extend(lost.into_iter().map(|fault| fault.behind(part.put_line())));
        }
        if !in_parts.is_empty() {
            return Ok(Some(in_parts));
        }
        let loss = self.guard.loss(path, old.as_deref(), new, others);
        loss.warnings.iter().for_each(|warning| warn(warning));
        let faults = loss.faults.into_iter().map(|fault| ReplyFault {
            // A text computed from replacements has lines of its own, not the reply's.
            line: edit.line + if edit.parts.is_empty() { fault.line } else { 0 },
            ..fault
        });
        Ok(Some(faults.collect()))
    }

    /// Returns the new file to which the reply gives the text of the file at `path`, if there is one.
    fn new_copy<'e>(&self, path: &str, edits: &'e [FileEdit]) -> Option<&'e String> {
        let text = files::read(&self.root.join(path), Links::Refused, LARGEST_COMPARED).ok()?;
        let is_it = |edit: &&FileEdit| {
            let content = edit.kind.content().map(str::as_bytes);
            content == Some(&*text) && matches!(self.look(&edit.path), Ok(None))
        };
        Some(&edits.iter().find(is_it)?.path)
    }

    /// Returns the fault of an edit that changes a protected value.
    fn changed_value(
        &self,
        edit: &FileEdit,
        present: Option<Present>,
    ) -> io::Result<Option<ReplyFault>> {
        if !self.protection.has_values(&edit.path) {
            return Ok(None);
        }
        let path = self.root.join(&edit.path);
        let content = match present {
            Some(_) => files::read(&path, Links::Refused, LARGEST_COMPARED)?,
            None => Vec::new(),
        };
        let new = edit.kind.content().unwrap_or_default();
        let old = String::from_utf8_lossy(&content);
        let changed = self.protection.changed(&edit.path, &old, new);
        Ok(changed.map(|pointer| {
            let (path, pointer) = (edit.path.clone(), pointer.to_owned());
            edit.fault(FaultKind::Value { path, pointer })
        }))
    }

    /// Checks a path on disk; returns an error if it may not be written to.
    fn look(&self, path: &str) -> Result<Option<Present>, Obstacle> {
        if let Some(rule) = spelling::broken_rule(path, self.scope) {
            return Err(rule.into());
        }
        if self.protection.covers(path) {
            return Err(Rule::ProtectedByProject.into());
        }
        let (parent, name) = split(path);
        let absolute = self.root.join(path);
        let found = if self.directory(parent)? {
            absolute.symlink_metadata().if_there()?
        } else {
            None
        };
        let rule = match &found {
            _ if self.is_program(&absolute, found.as_ref()) => Some(Rule::ProtectedProgram),
            None if self.collides(parent, name)? => Some(Rule::CaseCollision),
            None if let Some(rule) = self.not_checked_out.rule(&self.root, path) => Some(rule),
            Some(found) if found.is_symlink() => Some(Rule::Symlink),
            Some(found) if !found.is_file() => Some(Rule::NotRegular),
            Some(found) if self.protected(found).is_some() => self.protected(found),
            Some(found) if self.is_mounted(&absolute, found)? => Some(Rule::CrossDevice),
            _ if self.scope == PathScope::Reply && self.ignored.is_ignored(path, false)? => {
                Some(Rule::Ignored)
            }
            _ => None,
        };
        match rule {
            Some(rule) => Err(rule.into()),
            None => Ok(found.map(|found| Present {
                fingerprint: (&found).into(),
                rights: Rights::of_metadata(&found),
            })),
        }
    }

    /// Returns whether a file is mounted from elsewhere. In an overlay, its device may differ from its directory's.
    fn is_mounted(&self, path: &Path, found: &Metadata) -> io::Result<bool> {
        let ((device, mount), own) = (mount_of(path, found)?, self.mount);
        Ok(mount != own.1 || mount.is_none() && device != own.0)
    }

    /// Finds edits that write below a directory that git takes for a repository, whether or not the reply makes it one.
    fn repositories(&self, edits: &[FileEdit]) -> Vec<ReplyFault> {
        let after = TreeAfter::of(&self.root, edits);
        let mut known: HashMap<&str, bool> = HashMap::new();
        let mut faults = Vec::new();
        for edit in edits.iter().filter(|edit| edit.kind != EditKind::Remove) {
            // Such paths are reported already, and are not looked up on disk.
            if spelling::broken_rule(&edit.path, self.scope).is_some() {
                continue;
            }
            let is_made = ancestors(&edit.path).chain([""]).any(|directory| {
                let is_repository = || after.is_repository(directory);
                *known.entry(directory).or_insert_with(is_repository)
            });
            if is_made {
                faults.push(edit.fault(FaultKind::breach(&edit.path, Rule::MadeRepo)));
            }
        }
        faults
    }

    fn is_program(&self, path: &Path, found: Option<&Metadata>) -> bool {
        let Some((program, program_id)) = &self.program else {
            return false;
        };
        path == program || found.is_some() && found.map(file_id) == *program_id
    }

    /// Returns whether `path`, which is "" for the root, is a directory. Each is looked up only once.
    fn directory(&self, path: &str) -> Result<bool, Obstacle> {
        if path.is_empty() {
            return Ok(true);
        }
        if let Some(is_there) = self.directories.borrow().get(path) {
            return Ok(*is_there);
        }
        let is_there = self.inspect_directory(path)?;
        let known = &self.directories;
        known.borrow_mut().insert(path.to_owned(), is_there);
        Ok(is_there)
    }

    fn inspect_directory(&self, path: &str) -> Result<bool, Obstacle> {
        let (parent, name) = split(path);
        if !self.directory(parent)? {
            return Ok(false);
        }
        let absolute = self.root.join(path);
        let Some(found) = absolute.symlink_metadata().if_there()? else {
            if self.collides(parent, name)? {
                return Err(Rule::CaseCollision.into());
            }
            return Ok(false);
        };
        let rule = match self.protected(&found) {
            _ if found.is_symlink() => Rule::Symlink,
            _ if !found.is_dir() => Rule::NotDirectory,
            Some(rule) => rule,
            None if self.mount != mount_of(&absolute, &found)? => Rule::CrossDevice,
            None if absolute.join(".git").symlink_metadata().is_ok() => Rule::NestedRepo,
            None => return Ok(true),
        };
        Err(rule.into())
    }

    /// Returns the rule that protects an existing file or directory, however it is named.
    fn protected(&self, found: &Metadata) -> Option<Rule> {
        let mut protected = self.protected.iter();
        let (_, rule) = protected.find(|(known, _)| *known == file_id(found))?;
        Some(*rule)
    }

    /// Returns whether the directory contains a name that differs from `name` only in letter case or composition.
    fn collides(&self, directory: &str, name: &str) -> Result<bool, Obstacle> {
        if !self.directory(directory)? {
            return Ok(false);
        }
        let mut known = self.names.borrow_mut();
        let names = match known.entry(directory.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(read_names(&self.root.join(directory))?),
        };
        let other = names.get(&spelling::fold(name));
        Ok(other.is_some_and(|other| other != name))
    }
}

/// Finds paths that differ from others, their directories included, only in letter case.
fn collisions(edits: &[FileEdit], scope: PathScope) -> Vec<ReplyFault> {
    let mut spellings: HashMap<String, &str> = HashMap::new();
    let mut faults = Vec::new();
    for edit in edits {
        let mut paths = ancestors(&edit.path).chain([edit.path.as_str()]);
        let collides = paths.any(|path| {
            let folded: Vec<String> = path.split('/').map(spelling::fold).collect();
            *spellings.entry(folded.join("/")).or_insert(path) != path
        });
        if collides && spelling::broken_rule(&edit.path, scope).is_none() {
            faults.push(edit.fault(FaultKind::breach(&edit.path, Rule::CaseCollision)));
        }
    }
    faults
}

/// Reads the names in a directory, by folded form.
fn read_names(directory: &Path) -> io::Result<HashMap<String, String>> {
    let names = fs::read_dir(directory)?.map(|entry| {
        let name = entry?.file_name().to_string_lossy().into_owned();
        Ok((spelling::fold(&name), name))
    });
    names.collect()
}

#[cfg(test)]
mod tests;
