//! The plan's document on the disk, which the user may edit at any time.
//!
//! Reads and replaces that file, and copies it beside itself before anything that cannot be read is replaced.
//! Guarantees that a change is made to what stands there now, that the file is whole at any time, and that no known key
//! is in what is written.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::document::{PlanDocument, PlanDocumentError};
use super::types::Plan;
use crate::secret::Redactor;
use crate::sys::atomic_file;
use crate::sys::environment::Clock;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};

/// No more is read, in bytes: what is no plan for its length is still copied and mended.
const MOST_READ: u64 = 64 * MIB;

/// The maximum number of copies of damaged documents kept.
const COPIES: usize = 100;

/// The plan's document.
#[derive(Clone, Copy)]
pub struct PlanFile<'p> {
    /// Its path.
    pub path: &'p Path,
    /// True in a session's folder: only the user may read it.
    pub is_private: bool,
    /// Gives the time of a save.
    pub clock: &'p dyn Clock,
    /// Redacts the keys.
    pub redactor: &'p Redactor,
}

/// Errors from reading and writing the plan's document.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PlanFileError {
    /// The file cannot be read or written.
    #[error(transparent)]
    #[diagnostic(help("the document is as it was: let it be read and written, and `--resume`"))]
    File(#[from] PathError),
    /// The content is not a plan.
    #[error("`{}`: {source}", .path.display())]
    #[diagnostic(
        code("not-ready"),
        help("mend the document, and `--resume` goes on with it")
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: PlanDocumentError,
    },
}

/// A file that cannot be the plan's.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum NoPlanFile {
    /// The path leads out of the project.
    #[error("`{}` is no file of the project", .0.display())]
    #[diagnostic(code("usage"), help("{ANOTHER}"))]
    Outside(PathBuf),
    /// The session's plan is another.
    #[error("the session's plan is `{}`, not `{}`", .known.display(), .path.display())]
    #[diagnostic(
        code("usage"),
        help("leave `--plan-file` out: the session knows its plan")
    )]
    Elsewhere {
        /// The file that is named.
        path: PathBuf,
        /// The plan.
        known: PathBuf,
    },
    /// The file is no plan.
    #[error("`{}` is there, and is no plan: it has no heading of one, like `## Goal`", .0.display())]
    #[diagnostic(code("usage"), help("{ANOTHER}"))]
    NoPlan(PathBuf),
}

/// The way out where a file cannot be the plan.
const ANOTHER: &str = "name another file, in a directory of the project that is there; not a link";

impl PlanFileError {
    /// The damage of the document; `None` if only the user can repair it.
    pub fn damage(&self) -> Option<&PlanDocumentError> {
        match self {
            Self::File(_) => None,
            Self::Unreadable { source, .. } => Some(source)
                .filter(|source| !matches!(source, PlanDocumentError::ConflictMarkers(_))),
        }
    }
}

impl PlanFile<'_> {
    /// Makes the document, an empty one, where there is none.
    ///
    /// # Errors
    /// If it cannot be made, or is not to be written to.
    pub fn make(&self) -> Result<(), PlanFileError> {
        match self.permissions()? {
            Some(permissions) if permissions.readonly() => {
                let error = io::Error::from(io::ErrorKind::PermissionDenied);
                Err(PathError::of("write", self.path)(error).into())
            }
            Some(_) => Ok(()),
            None => self.write(&PlanDocument::empty(self.now())),
        }
    }

    /// The file's permissions; `None` if it does not exist.
    fn permissions(&self) -> Result<Option<Permissions>, PathError> {
        let found = self.path.symlink_metadata().if_there();
        let found = found.map_err(PathError::of("read", self.path))?;
        Ok(found.map(|found| found.permissions()))
    }

    /// The content of the file, whatever it is.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn bytes(&self) -> Result<Vec<u8>, PlanFileError> {
        let content = files::read(self.path, Links::Refused, MOST_READ);
        Ok(content.map_err(PathError::of("read", self.path))?)
    }

    /// The document as it is now.
    ///
    /// # Errors
    /// If it cannot be read, or is no plan.
    pub fn read(&self) -> Result<PlanDocument, PlanFileError> {
        PlanDocument::parse(&self.bytes()?).map_err(self.unreadable())
    }

    fn unreadable(&self) -> impl FnOnce(PlanDocumentError) -> PlanFileError {
        let path = self.path.to_owned();
        |source| PlanFileError::Unreadable { path, source }
    }

    /// Changes the document as it is now, and saves it.
    ///
    /// # Errors
    /// If it cannot be read or written; it is then as it was.
    pub fn change(&self, change: impl FnOnce(&mut Plan)) -> Result<(), PlanFileError> {
        let mut document = self.read()?;
        if !document.edit(change) {
            return Ok(());
        }
        document.save(self.now()).map_err(self.unreadable())?;
        self.write(&document)
    }

    /// Puts another document in the place of one that cannot be read; where that has been copied to.
    ///
    /// # Errors
    /// If it cannot be copied or replaced; it is then as it was.
    pub fn replace(&self, by: &PlanDocument) -> Result<PathBuf, PlanFileError> {
        let content = self.bytes()?;
        let copy = self
            .copy(&content)
            .map_err(PathError::of("copy", self.path))?;
        self.write(by)?;
        Ok(copy)
    }

    /// Copies the document beside itself, under a name that is free.
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

    fn write(&self, document: &PlanDocument) -> Result<(), PlanFileError> {
        let text = document.text();
        let text = self.redactor.text(&text);
        // In the project, it stays whose it is.
        let kept = self.permissions()?.filter(|_| !self.is_private);
        let write = |file: &mut File| {
            file.write_all(text.as_bytes())?;
            kept.map_or(Ok(()), |kept| file.set_permissions(kept))
        };
        if self.is_private {
            atomic_file::replace_private(self.path, write)
        } else {
            atomic_file::replace(self.path, write)
        }
        .map_err(PathError::of("write", self.path))?;
        Ok(())
    }

    fn now(&self) -> i64 {
        self.clock.now().timestamp_millis()
    }
}
