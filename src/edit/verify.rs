//! Holds each edit against the path policy: its spelling, and what lies on the disk.
//!
//! Looks and never writes. Guarantees that a [`VerifiedEdits`] comes from here alone, and only of a
//! reply without any fault; all faults of a reply are found, not only the first.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::beneath::{ancestors, split};
use super::digest::{Fingerprint, Present};
use super::{Action, Content, Fault, FileEdit, ParsedReply, Rejection, Rule, comparison, spelling};
use crate::project::gitignore::IgnoreRules;

/// The file identity that a system gives: device and inode.
type Identity = (u64, u64);

/// The running program's own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its absolute path, links resolved.
    pub path: PathBuf,
}

/// An edit that may be applied. Only [`PathPolicy::verify`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedEdit {
    path: String,
    action: Action,
    present: Option<Present>,
}

impl VerifiedEdit {
    /// The path, relative to the root.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What to do there.
    #[must_use]
    pub fn action(&self) -> &Action {
        &self.action
    }

    /// The file that is there now.
    #[must_use]
    pub fn present(&self) -> Option<Present> {
        self.present
    }
}

/// The edits of a reply, all of them allowed, sorted by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifiedEdits {
    edits: Vec<VerifiedEdit>,
    warnings: Vec<String>,
}

impl VerifiedEdits {
    /// The edits.
    #[must_use]
    pub fn edits(&self) -> &[VerifiedEdit] {
        &self.edits
    }

    /// What the supervisor should know about them.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The paths to be written, with their content.
    pub fn written(&self) -> impl Iterator<Item = (&str, &Content)> {
        self.edits.iter().filter_map(|edit| match &edit.action {
            Action::Write(content) => Some((edit.path.as_str(), content)),
            Action::Remove => None,
        })
    }

    /// The paths to be removed.
    pub fn removed(&self) -> impl Iterator<Item = &str> {
        let removals = self
            .edits
            .iter()
            .filter(|edit| edit.action == Action::Remove);
        removals.map(|edit| edit.path.as_str())
    }
}

/// Why a reply is not verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It breaks the grammar or the policy.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// What is on the disk could not be looked at.
    #[error("cannot look at `{}`: {source}", .path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// What becomes of a reply that leaves out most of a file and says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elision {
    /// It is rejected.
    Rejected,
    /// It is taken at its word.
    Allowed,
}

/// A directory below the root, as far as edits are concerned.
#[derive(Clone)]
enum Directory {
    Real,
    Absent,
    Barred(Rule),
}

/// The path policy of one project, as its disk is now.
pub struct PathPolicy {
    root: PathBuf,
    elision: Elision,
    mount: Mount,
    ignored: IgnoreRules,
    program: Option<(PathBuf, Option<Identity>)>,
    protected: Vec<(Identity, Rule)>,
    directories: RefCell<HashMap<String, Directory>>,
    names: RefCell<HashMap<String, Rc<HashMap<String, String>>>>,
}

impl PathPolicy {
    /// The policy for the project at `root`, an absolute path.
    ///
    /// # Errors
    /// When the root or one of git's ignore files cannot be read.
    pub fn load(root: &Path, program: Option<&Program>) -> Result<Self, VerifyError> {
        let failed = |source| VerifyError::Io {
            path: root.to_path_buf(),
            source,
        };
        let metadata = root.metadata().map_err(failed)?;
        let ignored = IgnoreRules::load(root).map_err(failed)?;
        let directories = spelling::PROTECTED_DIRECTORIES;
        let protected = directories.map(|name| (name, Rule::ProtectedDirectory));
        let protected = protected.into_iter().chain([(".git", Rule::ProtectedGit)]);
        let identified = protected.filter_map(|(name, rule)| {
            Some((identity(&root.join(name).symlink_metadata().ok()?), rule))
        });
        let program = program.map(|program| {
            (
                program.path.clone(),
                program.path.metadata().ok().as_ref().map(identity),
            )
        });
        Ok(Self {
            elision: Elision::Rejected,
            mount: Mount::of(root, &metadata).map_err(failed)?,
            ignored,
            program,
            protected: identified.collect(),
            directories: RefCell::default(),
            names: RefCell::default(),
            root: root.to_path_buf(),
        })
    }

    /// The same policy with another answer to replies that leave code out.
    #[must_use]
    pub fn with_elision(self, elision: Elision) -> Self {
        Self { elision, ..self }
    }

    /// Verifies a reply as a whole.
    ///
    /// # Errors
    /// [`Rejection`] with everything that is wrong with the reply; or the disk could not be read.
    pub fn verify(&self, reply: ParsedReply) -> Result<VerifiedEdits, VerifyError> {
        let mut faults = reply.faults;
        faults.extend(collisions(&reply.edits));
        let mut verified = VerifiedEdits {
            edits: Vec::new(),
            warnings: Vec::new(),
        };
        if reply.edits.is_empty() && faults.is_empty() {
            verified.warnings.push("the reply has no edits".to_owned());
        }
        for path in &reply.repeated {
            verified.warnings.push(format!(
                "the reply has more than one block for `{}`; the last one counts",
                path.escape_debug()
            ));
        }
        for edit in reply.edits {
            match self.check(&edit)? {
                Err(rule) => faults.push(Fault::Path {
                    line: edit.line,
                    path: edit.path,
                    rule,
                }),
                Ok(present) => {
                    faults.extend(self.compare(&edit, present, &mut verified.warnings)?);
                    verified.admit(edit, present);
                }
            }
        }
        if faults.is_empty() {
            return Ok(verified);
        }
        faults.sort_by_key(|fault| match fault {
            Fault::Grammar { line, .. } | Fault::Path { line, .. } | Fault::Elided { line, .. } => {
                *line
            }
        });
        Err(Rejection { faults }.into())
    }

    /// Compares a file that is to be replaced with its new content.
    fn compare(
        &self,
        edit: &FileEdit,
        present: Option<Present>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Fault>, VerifyError> {
        let (Action::Write(new), Some(_)) = (&edit.action, present) else {
            return Ok(None);
        };
        let path = &edit.path;
        let old = open_regular(&self.root.join(path)).and_then(comparison::Properties::read);
        let old = old.map_err(|source| VerifyError::Io {
            path: PathBuf::from(path),
            source,
        })?;
        for change in comparison::silent_changes(old, new) {
            warnings.push(format!("`{path}` {change}"));
        }
        let elided = match self.elision {
            Elision::Rejected => comparison::elided_at(old.size, new),
            Elision::Allowed => None,
        };
        Ok(elided.map(|line| Fault::Elided {
            line: edit.line + line,
            path: path.clone(),
        }))
    }

    /// The rule that an edit breaks, or what is there now.
    fn check(&self, edit: &FileEdit) -> Result<Result<Option<Present>, Rule>, VerifyError> {
        if let Some(rule) = spelling::broken_rule(&edit.path) {
            return Ok(Err(rule));
        }
        let looked = self.look(&edit.path).map_err(|source| VerifyError::Io {
            path: PathBuf::from(&edit.path),
            source,
        })?;
        Ok(looked)
    }

    fn look(&self, path: &str) -> io::Result<Result<Option<Present>, Rule>> {
        let (parent, name) = split(path);
        let metadata = match self.directory(parent)? {
            Directory::Barred(rule) => return Ok(Err(rule)),
            Directory::Absent => None,
            Directory::Real => metadata(&self.root.join(path))?,
        };
        if let Some(rule) = self.file_rule(path, parent, name, metadata.as_ref())? {
            return Ok(Err(rule));
        }
        if self.ignored.is_ignored(path)? {
            return Ok(Err(Rule::Ignored));
        }
        Ok(Ok(metadata.map(|metadata| Present {
            fingerprint: Fingerprint {
                inode: metadata.ino(),
                size: metadata.size(),
                modified: (metadata.mtime(), metadata.mtime_nsec()),
            },
            mode: metadata.mode() & 0o7777,
            owner: (metadata.uid(), metadata.gid()),
        })))
    }

    /// The rule that is broken by what is, or is not, at a path whose parent is no obstacle.
    fn file_rule(
        &self,
        path: &str,
        parent: &str,
        name: &str,
        metadata: Option<&Metadata>,
    ) -> io::Result<Option<Rule>> {
        let absolute = self.root.join(path);
        if self.is_program(&absolute, metadata) {
            return Ok(Some(Rule::ProtectedProgram));
        }
        let Some(metadata) = metadata else {
            return Ok(self.collides(parent, name)?.then_some(Rule::CaseCollision));
        };
        let kind = metadata.file_type();
        Ok(if kind.is_symlink() {
            Some(Rule::Symlink)
        } else if !kind.is_file() {
            Some(Rule::NotRegular)
        } else if self.mount != Mount::of(&absolute, metadata)? {
            Some(Rule::CrossDevice)
        } else {
            None
        })
    }

    fn is_program(&self, path: &Path, metadata: Option<&Metadata>) -> bool {
        self.program
            .as_ref()
            .is_some_and(|(program, program_identity)| {
                let same_file = metadata
                    .map(identity)
                    .is_some_and(|id| Some(id) == *program_identity);
                same_file || path == program
            })
    }

    /// What is at `path`, which is "" for the root. Looks at every directory once.
    fn directory(&self, path: &str) -> io::Result<Directory> {
        if path.is_empty() {
            return Ok(Directory::Real);
        }
        if let Some(known) = self.directories.borrow().get(path) {
            return Ok(known.clone());
        }
        let (parent, name) = split(path);
        let directory = match self.directory(parent)? {
            Directory::Real => self.inspect_directory(path, parent, name)?,
            other => other,
        };
        self.directories
            .borrow_mut()
            .insert(path.to_owned(), directory.clone());
        Ok(directory)
    }

    fn inspect_directory(&self, path: &str, parent: &str, name: &str) -> io::Result<Directory> {
        let absolute = self.root.join(path);
        let Some(metadata) = metadata(&absolute)? else {
            let collides = self.collides(parent, name)?;
            return Ok(if collides {
                Directory::Barred(Rule::CaseCollision)
            } else {
                Directory::Absent
            });
        };
        let id = identity(&metadata);
        let protected = self
            .protected
            .iter()
            .find(|(known, _)| *known == id)
            .map(|(_, rule)| *rule);
        let rule = if metadata.is_symlink() {
            Some(Rule::Symlink)
        } else if !metadata.is_dir() {
            Some(Rule::NotDirectory)
        } else if protected.is_some() {
            protected
        } else if self.mount != Mount::of(&absolute, &metadata)? {
            Some(Rule::CrossDevice)
        } else if absolute.join(".git").symlink_metadata().is_ok() {
            Some(Rule::NestedRepo)
        } else {
            None
        };
        Ok(rule.map_or(Directory::Real, Directory::Barred))
    }

    /// The names in a directory; read once.
    fn names_in(&self, directory: &str) -> io::Result<Rc<HashMap<String, String>>> {
        if let Some(known) = self.names.borrow().get(directory) {
            return Ok(Rc::clone(known));
        }
        let names = Rc::new(read_names(&self.root.join(directory))?);
        self.names
            .borrow_mut()
            .insert(directory.to_owned(), Rc::clone(&names));
        Ok(names)
    }

    /// Whether the directory has a name that differs from `name` in letter case or composition only.
    fn collides(&self, directory: &str, name: &str) -> io::Result<bool> {
        if !matches!(self.directory(directory)?, Directory::Real) {
            return Ok(false);
        }
        let names = self.names_in(directory)?;
        Ok(names
            .get(&spelling::fold(name))
            .is_some_and(|other| other != name))
    }
}

impl VerifiedEdits {
    fn admit(&mut self, edit: FileEdit, present: Option<Present>) {
        let FileEdit { path, action, .. } = edit;
        if action == Action::Remove && present.is_none() {
            self.warnings
                .push(format!("`{path}` is to be removed, but is not there"));
            return;
        }
        if runs_in_builds(&path) {
            self.warnings
                .push(format!("`{path}` runs code when the project is built"));
        }
        self.edits.push(VerifiedEdit {
            path,
            action,
            present,
        });
    }
}

/// Paths of which no two may differ in letter case only, their directories included.
fn collisions(edits: &[FileEdit]) -> Vec<Fault> {
    let mut spellings: HashMap<String, &str> = HashMap::new();
    let mut faults = Vec::new();
    for edit in edits {
        let mut paths = ancestors(&edit.path).chain([edit.path.as_str()]);
        let collides = paths.any(|path| {
            let folded: Vec<String> = path.split('/').map(spelling::fold).collect();
            *spellings.entry(folded.join("/")).or_insert(path) != path
        });
        if collides && spelling::broken_rule(&edit.path).is_none() {
            let (line, path) = (edit.line, edit.path.clone());
            faults.push(Fault::Path {
                line,
                path,
                rule: Rule::CaseCollision,
            });
        }
    }
    faults
}

/// Whether a file runs code in builds or CI though it does not look like it.
fn runs_in_builds(path: &str) -> bool {
    let (parent, name) = split(path);
    matches!(name, "build.rs" | "rust-toolchain.toml" | "rust-toolchain")
        || parent.split('/').next_back() == Some(".cargo") && name.starts_with("config")
        || [".github/workflows/", ".husky/", ".githooks/"]
            .iter()
            .any(|folder| path.starts_with(folder))
        || matches!(
            path,
            ".gitlab-ci.yml" | ".envrc" | ".vscode/tasks.json" | ".gitattributes" | ".gitmodules"
        )
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// What is at `path`, links not followed; `None` where nothing is.
fn metadata(path: &Path) -> io::Result<Option<Metadata>> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file that was regular a moment ago; should it have become a pipe or a link since, that is
/// an error and no wait.
fn open_regular(path: &Path) -> io::Result<fs::File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(fs::File::from(open(path, flags, Mode::empty())?))
}

/// The names in a directory, by their folded form.
fn read_names(directory: &Path) -> io::Result<HashMap<String, String>> {
    let mut names = HashMap::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.insert(spelling::fold(&name), name);
    }
    Ok(names)
}

/// The mount that something lies on: the device alone does not tell a bind mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mount {
    device: u64,
    id: Option<u64>,
}

impl Mount {
    fn of(path: &Path, metadata: &Metadata) -> io::Result<Self> {
        Ok(Self {
            device: metadata.dev(),
            id: mount_id(path)?,
        })
    }
}

#[cfg(target_os = "linux")]
fn mount_id(path: &Path) -> io::Result<Option<u64>> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    use rustix::io::Errno;
    match statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID) {
        Ok(stat) => {
            let known = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
            Ok(known.then_some(stat.stx_mnt_id))
        }
        // An old kernel, or a filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn mount_id(_path: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}

#[cfg(test)]
mod tests;
