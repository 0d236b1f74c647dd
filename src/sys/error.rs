//! Errors as they travel up: each says beside its message what the user can do about it, and how the process ends.
//!
//! Every room's errors derive [`miette::Diagnostic`]: `help` is the hint, `code` the exit's name in the contract; where
//! there is none, something local has failed.

use std::fmt;
use std::ops::Deref;

use miette::{Diagnostic, Report};

use super::exit::Exit;

/// Any error of any room.
#[derive(Debug)]
pub struct Error(Report);

impl Error {
    /// The way out, for the user.
    pub fn hint(&self) -> Option<String> {
        Problem::hint(&**self)
    }

    /// Returns the exit status of the process.
    pub fn exit(&self) -> Exit {
        let name = self.code().map(|name| name.to_string());
        name.map_or(Exit::LocalIo, |name| Exit::named(&name))
    }

    /// Returns whether it is an error of this type.
    pub fn is<E: Diagnostic + Send + Sync + 'static>(&self) -> bool {
        self.0.downcast_ref::<E>().is_some()
    }

    /// The error itself, where it is of this type.
    pub fn downcast_ref<E: Diagnostic + Send + Sync + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }

    /// The error itself.
    ///
    /// # Errors
    /// This error, where it is of another type.
    pub fn downcast<E: Diagnostic + Send + Sync + 'static>(self) -> Result<E, Self> {
        self.0.downcast().map_err(Self)
    }
}

impl<E: Diagnostic + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl Deref for Error {
    type Target = dyn Diagnostic + Send + Sync;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// A problem and the way out of it.
pub trait Problem: Diagnostic {
    /// The way out, for the user.
    fn hint(&self) -> Option<String> {
        self.help().map(|hint| hint.to_string())
    }
}

impl<D: Diagnostic + ?Sized> Problem for D {}
