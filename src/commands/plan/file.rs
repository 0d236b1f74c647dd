//! The plan document on disk, which the user may edit at any time.
//!
//! Reads and replaces that file; a document that cannot be read is first copied to a file beside it. Guarantees that a
//! change applies to the file's current content, that the file is complete at all times, and that no known key is
//! written.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::path::PathBuf;

use super::document::{PlanDocument, PlanDocumentError};
use super::types::Plan;
use crate::secret::Redactor;
use crate::sys::atomic_file;
use crate::sys::environment::Clock;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};

/// The maximum number of bytes read. It exceeds a plan's own limit, so that an overlong document can be copied and
/// repaired.
const MOST_READ: u64 = 64 * MIB;

/// The maximum number of copies of damaged documents beside a plan.
const COPIES: usize = 100;

/// The file of a plan document.
#[derive(Clone)]
pub struct PlanFile<'p> {
    /// The path of the file.
    pub path: PathBuf,
    /// `true` in a session's folder, where only the user may read the file.
    pub is_private: bool,
    /// Supplies the time of each save.
    pub clock: &'p dyn Clock,
    /// Redacts known keys.
    pub redactor: &'p Redactor,
}

/// Errors from choosing, reading and writing the file of a plan.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PlanFileError {
    /// The file cannot be read or written.
    #[error(transparent)]
    #[diagnostic(help("make the document readable and writable, then `--resume`"))]
    File(#[from] PathError),
    /// The content is not a plan.
    #[error("`{}`: {source}", .path.display())]
    #[diagnostic(
        code("not-ready"),
        help("fix the document, and `--resume` continues it")
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: PlanDocumentError,
    },
    /// The path given for a plan leads outside the project, into a reserved directory, or to a link or a directory.
    #[error("`{}` is not a file of the project", .0.display())]
    #[diagnostic(code("usage"), help("{ANOTHER}"))]
    Outside(PathBuf),
    /// The session already has another plan file.
    #[error("the session's plan is `{}`, not `{}`", .known.display(), .path.display())]
    #[diagnostic(
        code("usage"),
        help("leave `--plan-file` out: the session knows its plan")
    )]
    Elsewhere {
        /// The requested file.
        path: PathBuf,
        /// The session's plan file.
        known: PathBuf,
    },
    /// The file exists and is not a plan.
    #[error("`{}` exists, but is not a plan: it has no heading such as `## Goal`", .0.display())]
    #[diagnostic(code("usage"), help("{ANOTHER}"))]
    NoPlan(PathBuf),
}

/// The hint for a file that cannot hold the plan.
const ANOTHER: &str = "name another file in an existing directory of the project, not a link";

impl PlanFileError {
    /// Returns the damage that a model may repair; `None` if only the user can repair it.
    pub fn damage(&self) -> Option<&PlanDocumentError> {
        match self {
            Self::Unreadable { source, .. } => match source {
                PlanDocumentError::ConflictMarkers(_) | PlanDocumentError::Unclear(_) => None,
                PlanDocumentError::NoHeading | PlanDocumentError::Damaged(_) => Some(source),
            },
            _ => None,
        }
    }
}

impl PlanFile<'_> {
    /// Creates an empty document if the file does not exist. `has_steps` states that the session is already executing
    /// its steps.
    ///
    /// # Errors
    /// Fails if the file is missing and `has_steps`, cannot be created, or is read-only.
    pub fn make(&self, has_steps: bool) -> Result<(), PlanFileError> {
        match self.permissions()? {
            Some(permissions) if permissions.readonly() => {
                let error = io::Error::from(io::ErrorKind::PermissionDenied);
                Err(PathError::of("write", &self.path)(error).into())
            }
            Some(_) => Ok(()),
            None if has_steps => {
                let what = "the plan is gone, and its steps are not done";
                Err(self.unreadable()(PlanDocumentError::Unclear(
                    what.to_owned(),
                )))
            }
            None => self.write(&PlanDocument::empty(self.now()).text()),
        }
    }

    /// Returns the file's permissions; `None` if the file does not exist.
    fn permissions(&self) -> Result<Option<Permissions>, PathError> {
        let metadata = self.path.symlink_metadata().if_there();
        let found = metadata.map_err(PathError::of("read", &self.path))?;
        Ok(found.map(|metadata| metadata.permissions()))
    }

    /// Reads the file's content, valid or not.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn bytes(&self) -> Result<Vec<u8>, PlanFileError> {
        let content = files::read(&self.path, Links::Refused, MOST_READ);
        Ok(content.map_err(PathError::of("read", &self.path))?)
    }

    /// Reads the current document.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a plan.
    pub fn read(&self) -> Result<PlanDocument, PlanFileError> {
        PlanDocument::parse(&self.bytes()?).map_err(self.unreadable())
    }

    /// Returns the error for a plan without tasks, which must not count as one whose tasks are done.
    pub fn no_task(&self) -> PlanFileError {
        let what = "there is no task in a section `## Tasks`";
        self.unreadable()(PlanDocumentError::Unclear(what.to_owned()))
    }

    fn unreadable(&self) -> impl FnOnce(PlanDocumentError) -> PlanFileError {
        let path = self.path.clone();
        |source| PlanFileError::Unreadable { path, source }
    }

    /// Applies a change to the current document and saves it.
    ///
    /// # Errors
    /// Fails if the file cannot be read or written; it is then unchanged.
    pub fn change(&self, change: impl FnOnce(&mut Plan)) -> Result<(), PlanFileError> {
        let mut document = self.read()?;
        if !document.edit(change) {
            return Ok(());
        }
        document.save(self.now()).map_err(self.unreadable())?;
        self.write(&document.text())
    }

    /// Replaces a document that cannot be read. Returns the path of its copy.
    ///
    /// # Errors
    /// Fails if the file cannot be copied or replaced; it is then unchanged.
    pub fn replace(&self, by: &PlanDocument) -> Result<PathBuf, PlanFileError> {
        let copied = self.copy(&self.bytes()?);
        let copy = copied.map_err(PathError::of("copy", &self.path))?;
        self.write(&by.text())?;
        Ok(copy)
    }

    /// Restores an earlier text, after copying a document that differs from it.
    ///
    /// # Errors
    /// Fails if the file cannot be read, copied or written.
    pub fn put_back(&self, text: &str) -> Result<(), PlanFileError> {
        if self.permissions()?.is_some() {
            let content = self.bytes()?;
            if content == text.as_bytes() {
                return Ok(());
            }
            self.copy(&content)
                .map_err(PathError::of("copy", &self.path))?;
        }
        self.write(text)
    }

    /// Copies the document to an unused name beside it, and returns the copy's path.
    fn copy(&self, content: &[u8]) -> io::Result<PathBuf> {
        let others = (2..=COPIES).map(|nth| format!(".damaged-{nth}"));
        for ending in [".damaged".to_owned()].into_iter().chain(others) {
            let mut name = self.path.as_os_str().to_owned();
            name.push(ending);
            let copy = PathBuf::from(name);
            match atomic_file::create_private(&copy, |file| file.write_all(content)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| copy),
            }
        }
        Err(io::Error::other(
            "there are too many damaged copies beside it: remove some",
        ))
    }

    fn write(&self, text: &str) -> Result<(), PlanFileError> {
        let redacted = self.redactor.text(text);
        // A file in the project keeps its permissions.
        let kept = self.permissions()?.filter(|_| !self.is_private);
        let write = |file: &mut File| {
            file.write_all(redacted.as_bytes())?;
            kept.map_or(Ok(()), |kept| file.set_permissions(kept))
        };
        if self.is_private {
            atomic_file::replace_private(&self.path, write)
        } else {
            atomic_file::replace(&self.path, write)
        }
        .map_err(PathError::of("write", &self.path))?;
        Ok(())
    }

    fn now(&self) -> i64 {
        self.clock.now().timestamp_millis()
    }
}
