//! Errors as they are propagated to `main`: each has a message, a hint for the user and an exit code.
//!
//! All error types derive [`miette::Diagnostic`]: `help` is the hint, and `code` is the exit's name in the contract.
//! Without a code, the error counts as a local I/O failure.

use std::fmt;
use std::ops::Deref;

use miette::{Diagnostic, Report};

use super::exit::Exit;

/// Any error of this program.
#[derive(Debug)]
pub struct Error(Report);

impl Error {
    /// Returns the hint for the user.
    pub fn hint(&self) -> Option<String> {
        Problem::hint(&**self)
    }

    /// Returns the exit status of the process.
    pub fn exit(&self) -> Exit {
        let name = self.code().map(|name| name.to_string());
        name.map_or(Exit::LocalIo, |name| Exit::named(&name))
    }

    /// Returns whether the error is of type `E`.
    pub fn is<E: Diagnostic + Send + Sync + 'static>(&self) -> bool {
        self.0.downcast_ref::<E>().is_some()
    }

    /// Returns the error as an `E` if it is of that type.
    pub fn downcast_ref<E: Diagnostic + Send + Sync + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }

    /// Converts to the concrete error type.
    ///
    /// # Errors
    /// Returns `self` if it is of another type.
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

/// An error with a hint for the user.
pub trait Problem: Diagnostic {
    /// Returns the hint for the user.
    fn hint(&self) -> Option<String> {
        self.help().map(|hint| hint.to_string())
    }
}

impl<D: Diagnostic + ?Sized> Problem for D {}
