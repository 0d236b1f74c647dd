//! Errors as they are propagated to `main`: each has a message, a hint for the user and an exit code.
//!
//! All error types derive [`miette::Diagnostic`]: `help` is the hint, and `code` is the exit's name in the contract,
//! followed by a slash and the reason's. Without the first, the error counts as a local I/O failure; without the
//! second, the exit's own reason applies. `related` are the problems that an error consists of; their reasons take
//! precedence.

use std::fmt;
use std::ops::Deref;

use miette::{Diagnostic, Report};

use super::exit::Exit;
use super::reason::Reason;

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
        let code = self.code().map(|code| code.to_string());
        let name = code.as_deref().map(|code| code.split('/').next());
        name.flatten()
            .and_then(Exit::named)
            .unwrap_or(Exit::LocalIo)
    }

    /// Returns the reason, for programs; with several problems, that of the first one that a retry cannot resolve.
    pub fn reason(&self) -> Reason {
        let of = |problem: &dyn Diagnostic| {
            Reason::parse(problem.code()?.to_string().split_once('/')?.1)
        };
        // The contract has a reason for every exit.
        let own = of(&**self)
            .or_else(|| Reason::parse(self.exit().reason()))
            .unwrap_or_default();
        let problems = self.related().into_iter().flatten();
        let reasons = problems.map(|problem| of(problem).unwrap_or(own));
        reasons.min_by_key(|reason| reason.retryable).unwrap_or(own)
    }

    /// Returns the problems that the error consists of, each with its hint; if it has no parts, only the error itself.
    pub fn problems(&self) -> Vec<(String, Option<String>)> {
        let related = self.related().into_iter().flatten();
        let problems: Vec<_> = related.map(|one| (one.to_string(), one.hint())).collect();
        if problems.is_empty() {
            return vec![(self.to_string(), self.hint())];
        }
        problems
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
