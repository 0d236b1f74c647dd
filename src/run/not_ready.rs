//! Unmet requirements for a run, and their messages.
//!
//! Pure. Guarantees that each problem comes with what the user can do about it.

use std::fmt;

use miette::Diagnostic;

use super::context::Context;
use crate::exec::process::ScriptProblem;
use crate::project::ProjectProblem;
use crate::sys::error::Error;

/// Returns whether `code-commit init` creates what is missing.
fn is_inits(problem: &Error) -> bool {
    use ProjectProblem::{Missing, NoGitignore, NotIgnored};
    match (problem.downcast_ref(), problem.downcast_ref()) {
        (Some(NoGitignore | NotIgnored), _) | (_, Some(ScriptProblem::Missing)) => true,
        (Some(Missing(path)), _) => path.ends_with("query.txt"),
        _ => false,
    }
}

/// The project is not ready; nothing was sent or written. The short form, for a person, has one hint for everything
/// that `code-commit init` creates.
#[derive(Debug, Default, thiserror::Error)]
pub struct NotReady {
    /// The problems; at least one if this is returned as an error.
    pub problems: Vec<Error>,
}

impl Diagnostic for NotReady {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new("not-ready"))
    }

    fn related(&self) -> Option<Box<dyn Iterator<Item = &dyn Diagnostic> + '_>> {
        let problems = self.problems.iter();
        Some(Box::new(
            problems.map(|problem| &**problem as &dyn Diagnostic),
        ))
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the project is not ready")?;
        let inits = |problem: &&Error| f.alternate() && is_inits(problem);
        let (made, others): (Vec<_>, Vec<_>) = self.problems.iter().partition(inits);
        if made.len() < 2 {
            return list(f, &self.problems);
        }
        let count = made.len();
        write!(
            f,
            "\n  hint: run `code-commit init`, which makes the first {count} of these"
        )?;
        made.iter()
            .try_for_each(|problem| write!(f, "\n  {problem}"))?;
        list(f, others)
    }
}

fn list<'p>(
    f: &mut fmt::Formatter<'_>,
    problems: impl IntoIterator<Item = &'p Error>,
) -> fmt::Result {
    problems.into_iter().try_for_each(|problem| {
        write!(f, "\n  {problem}")?;
        let hint = problem.hint();
        hint.map_or(Ok(()), |hint| write!(f, "\n    hint: {hint}"))
    })
}

impl NotReady {
    /// Wraps a single problem.
    pub fn of(problem: impl Into<Error>) -> Self {
        Self {
            problems: vec![problem.into()],
        }
    }

    /// Adds the reasons that the `.env` cannot be used, and warns if git does not ignore it.
    pub fn note_env_file(&mut self, context: &Context<'_>) {
        if let Some(exposure) = context.env_file.exposure() {
            context.warn(exposure);
        }
        self.extend(context.env_file.problems());
    }

    /// Returns the value, or adds the error unless it is already listed, or another reports the same index problem.
    pub fn note<T, E: Into<Error>>(&mut self, result: Result<T, E>) -> Option<T> {
        let note = |problem: E| {
            let problem: Error = problem.into();
            let text = problem.to_string();
            let index = text.find("git's index").map(|at| &text[at..]);
            let mut known = self.problems.iter().map(ToString::to_string);
            if !known.any(|known| known == text || index.is_some_and(|end| known.ends_with(end))) {
                self.problems.push(problem);
            }
        };
        result.map_err(note).ok()
    }

    /// Adds problems found elsewhere.
    pub fn extend<P: Into<Error>>(&mut self, problems: impl IntoIterator<Item = P>) {
        self.problems.extend(problems.into_iter().map(P::into));
    }
}
