//! The things that a run needs and does not have, in words.
//!
//! Pure. Guarantees that each thing comes with what the user can do about it.

use std::fmt;

use super::context::Context;
use crate::exec::build_script::ScriptProblem;
use crate::exec::sandbox::SandboxProblem;
use crate::project::ProjectProblem;
use crate::secret::credentials::Finding;
use crate::sys::error::Error;

/// The sandbox that was asked for cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("builds and commands cannot be sandboxed strictly: {0}")]
#[diagnostic(help("install bubblewrap and let it make user namespaces, or use `--sandbox auto`"))]
pub struct NotSandboxed(pub SandboxProblem);

/// Something would be sent that must not be.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("what looks like credentials would be sent:{}", listed(.0))]
#[diagnostic(help(
    "take them out, or send them all the same by `--allow-secrets` (which leaves this project's own keys out)"
))]
pub struct SecretsFound(pub Vec<Finding>);

/// Returns whether `code-commit init` makes what is missing.
fn is_inits(problem: &Error) -> bool {
    use ProjectProblem::{Missing, NoGitignore, NotIgnored};
    match (problem.downcast_ref(), problem.downcast_ref()) {
        (Some(NoGitignore | NotIgnored), _) | (_, Some(ScriptProblem::Missing)) => true,
        (Some(Missing(path)), _) => path.ends_with("query.txt"),
        _ => false,
    }
}

/// The maximum number of findings listed one by one.
const LISTED: usize = 20;

/// Findings in a list; of many, the first.
pub fn listed(findings: &[Finding]) -> String {
    let told = findings.iter().take(LISTED);
    let mut list: String = told.map(|finding| format!("\n    {finding}")).collect();
    if findings.len() > LISTED {
        list.push_str(&format!("\n    and {} more", findings.len() - LISTED));
    }
    list
}

/// The project is not ready; nothing was sent or written. In its short form, for a person, one hint stands for all that
/// `code-commit init` makes.
#[derive(Debug, Default, thiserror::Error, miette::Diagnostic)]
#[diagnostic(code("not-ready"))]
pub struct NotReady {
    /// All that is missing; where it is an error, at least one.
    pub problems: Vec<Error>,
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
    /// The one problem.
    pub fn of(problem: impl Into<Error>) -> Self {
        Self {
            problems: vec![problem.into()],
        }
    }

    /// Notes why the `.env` cannot be used, and warns of one that git would take.
    pub fn note_env_file(&mut self, context: &Context<'_>) {
        if let Some(exposure) = context.env_file.exposure() {
            context.warn(exposure);
        }
        self.extend(context.env_file.problems());
    }

    /// Returns the value if there is one; notes the error, once, if not.
    pub fn note<T, E: Into<Error>>(&mut self, result: Result<T, E>) -> Option<T> {
        let note = |problem: E| {
            let problem: Error = problem.into();
            let text = problem.to_string();
            if !self.problems.iter().any(|known| known.to_string() == text) {
                self.problems.push(problem);
            }
        };
        result.map_err(note).ok()
    }

    /// Notes further problems, found elsewhere.
    pub fn extend<P: Into<Error>>(&mut self, problems: impl IntoIterator<Item = P>) {
        self.problems.extend(problems.into_iter().map(P::into));
    }
}
