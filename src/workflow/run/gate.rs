//! The gate: the files that say how a change is judged. No build may change what the next one is judged by; nor may it
//! make a repository, or put another in its place.
//!
//! Reads these files, and lists the project's directories before the run and after each build. Guarantees that no link is followed, that nothing
//! but a file is read, and that no more than [`ROOM`] bytes of them are held at a time, or twice that while two states
//! are compared.

mod repositories;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use self::repositories::{Repositories, RepositoryChange};
use crate::edit::PROTECTED_FILES;
use crate::edit::beneath::{OpenDirectory, PathEntry, Root};
use crate::project::repositories::ProjectSearch;
use crate::project::{Project, ProjectProblem};
use crate::record::diff::{self, FileChange, FileState, NEW_MODE};
use crate::record::run_files;
use crate::sys::files::PathError;
use crate::sys::text::escaped;

/// So many bytes are held of all these files together. Of what goes beyond, anything done to it counts as a change.
const ROOM: usize = 8 << 20;
/// So many of the files that have changed are named.
const NAMED: usize = 10;

/// The files and the repositories as they were before the run.
#[derive(Debug)]
pub struct Gate {
    files: BTreeMap<String, GateFile>,
    repositories: Repositories,
}

/// What is at the path of such a file.
#[derive(Debug, PartialEq, Eq)]
enum GateFile {
    Missing,
    File(FileState),
    /// A file that there is no room for.
    Large {
        size: u64,
        inode: u64,
        /// When anything was last done to it. Nobody can set that.
        changed: (i64, i64),
    },
    Link(PathBuf),
    /// A directory, a pipe or the like; or a file that cannot be read.
    SomethingElse,
}

impl Gate {
    /// Looks at the files below `root`: the protected ones, but for `Cargo.lock`, which builds write, and every
    /// `.gitignore` that git reads. Looks at the repositories, too.
    ///
    /// # Errors
    /// When a file cannot be looked at.
    pub fn new(root: &Path) -> Result<Self, PathError> {
        let search = ProjectSearch::new(root);
        let found = search.run();
        let at_root = PROTECTED_FILES.iter().map(|name| (*name).to_owned());
        let paths = at_root
            .chain(found.ignore_files)
            .filter(|path| path != "Cargo.lock");
        let mut room = ROOM;
        let mut files = BTreeMap::new();
        for path in paths {
            let found = look(root, &path, room)?;
            if let GateFile::File(state) = &found {
                room -= state.content.len();
            }
            files.insert(path, found);
        }
        Ok(Self {
            files,
            repositories: Repositories::new(search, found.repositories),
        })
    }

    /// The repositories in the project and around it, before the run.
    pub fn repositories(&self) -> impl Iterator<Item = &Path> {
        self.repositories.paths()
    }

    /// Sees whether files and repositories are still what they were, and git still ignores these keys of the project;
    /// what has changed.
    ///
    /// # Errors
    /// When one cannot be looked at.
    pub fn change(
        &self,
        project: &Project,
        key_files: &[&str],
    ) -> Result<Option<GateChanged>, PathError> {
        let (mut files, mut diff) = (Vec::new(), String::new());
        for (path, before) in &self.files {
            let room = match before {
                GateFile::Large { .. } => 0,
                _ => ROOM,
            };
            let after = look(project.root(), path, room)?;
            if after != *before {
                diff.push_str(&difference(path, before, &after));
                files.push((path.clone(), Change::of(before, &after)));
            }
        }
        let exposes_keys = match project.check_gitignore(key_files.iter().copied()) {
            Ok(()) => false,
            Err(ProjectProblem::Unreadable { path, source }) if !is_denied(&source) => {
                return Err(PathError::of("read", path)(source));
            }
            Err(_) => true,
        };
        let repositories = self.repositories.changes(project.root());
        diff.push_str(&repositories::lines(&repositories));
        let has_changed = exposes_keys || !files.is_empty() || !repositories.is_empty();
        Ok(has_changed.then_some(GateChanged {
            files,
            repositories,
            exposes_keys,
            diff,
        }))
    }
}

/// What has become of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Made,
    Changed,
    Removed,
    Replaced,
}

impl Change {
    fn of(before: &GateFile, after: &GateFile) -> Self {
        let is_file =
            |state: &GateFile| matches!(state, GateFile::File(_) | GateFile::Large { .. });
        match (before, after) {
            (GateFile::Missing, _) => Self::Made,
            (_, GateFile::Missing) => Self::Removed,
            _ if is_file(before) && is_file(after) => Self::Changed,
            _ => Self::Replaced,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Made => "created",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Replaced => "replaced by something else",
        }
    }
}

/// A build has changed what it is judged by.
#[derive(Debug, thiserror::Error)]
pub struct GateChanged {
    files: Vec<(String, Change)>,
    repositories: Vec<(String, RepositoryChange)>,
    /// Whether git would take the keys now.
    exposes_keys: bool,
    /// The change, for the log.
    pub diff: String,
}

impl GateChanged {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        let diff = format!("see `{}` in the run's folder", run_files::GATE);
        let is_known = |(_, change): &&(String, Change)| *change != Change::Made;
        let names = self.files.iter().filter(is_known);
        let names: Vec<String> = names.map(|(path, _)| escaped(path)).take(NAMED).collect();
        let mut hint = match names.join(" ") {
            none if none.is_empty() => format!("{diff}, and undo it by hand"),
            names => format!(
                "{diff}; these files stay as the build left them: `git checkout -- {names}` restores what git tracks"
            ),
        };
        if !self.repositories.is_empty() {
            hint.push_str(
                "; run no git command there before: it may run programs of the build's choice",
            );
        }
        hint
    }
}

impl fmt::Display for GateChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = self.files.iter().map(|(path, change)| {
            let word = change.word();
            format!("`{}` was {word}", escaped(path))
        });
        let repositories = self.repositories.iter().map(|(path, change)| {
            let words = change.words();
            format!("`{}` {words}", escaped(path))
        });
        let mut told: Vec<String> = files.chain(repositories).collect();
        let more = told.len().saturating_sub(NAMED);
        told.truncate(NAMED);
        if more > 0 {
            told.push(format!("and {more} more"));
        }
        if self.exposes_keys {
            told.push("git no longer ignores the keys in `agent-config`".to_owned());
        }
        let told = told.join(", ");
        write!(
            f,
            "the build changed files that no build may change: {told}"
        )
    }
}

/// What is at the path, without following a link.
fn look(root: &Path, path: &str, room: usize) -> Result<GateFile, PathError> {
    let look = || match OpenDirectory::default().entry(&Root::open(root)?, path)? {
        PathEntry::Nothing => Ok(GateFile::Missing),
        PathEntry::File(file) => read(file, room),
        PathEntry::SomethingElse => match root.join(path).read_link() {
            // It is no link.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                Ok(GateFile::SomethingElse)
            }
            target => target.map(GateFile::Link),
        },
    };
    match look() {
        // A build may have seen to that.
        Err(error) if is_denied(&error) => Ok(GateFile::SomethingElse),
        found => found.map_err(PathError::of("read", path)),
    }
}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn read(file: File, room: usize) -> io::Result<GateFile> {
    let metadata = file.metadata()?;
    let mut content = Vec::new();
    if metadata.len() <= room as u64 {
        // It may grow meanwhile.
        file.take(room as u64 + 1).read_to_end(&mut content)?;
    }
    if content.len() > room || metadata.len() > room as u64 {
        return Ok(GateFile::Large {
            size: metadata.len(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        });
    }
    // Whether it can be executed is all that counts.
    let mode = if metadata.mode() & 0o111 == 0 {
        NEW_MODE
    } else {
        NEW_MODE | 0o111
    };
    Ok(GateFile::File(FileState { content, mode }))
}

/// The change of a file as a diff; of what is no file, or a large one, in words.
fn difference(path: &str, before: &GateFile, after: &GateFile) -> String {
    let state = |file: &GateFile| match file {
        GateFile::Missing => Some(None),
        GateFile::File(state) => Some(Some(state.clone())),
        _ => None,
    };
    if let (Some(before), Some(after)) = (state(before), state(after)) {
        let path = path.to_owned();
        return diff::text(&[FileChange {
            path,
            before,
            after,
        }]);
    }
    let (before, after) = (words(before), words(after));
    format!("`{}` was {before}, and is {after}\n", escaped(path))
}

fn words(file: &GateFile) -> String {
    match file {
        GateFile::Missing => "missing".to_owned(),
        GateFile::File(state) => format!("a file of {} bytes", state.content.len()),
        GateFile::Large { size, .. } => format!("a file of {size} bytes"),
        GateFile::Link(target) => format!("a link to `{}`", escaped(&target.to_string_lossy())),
        GateFile::SomethingElse => "something that cannot be read as a file".to_owned(),
    }
}
