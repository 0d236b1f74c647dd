//! Where a model's key comes from: its file in `agent-config`, or else the variable that the vendor's SDKs read.
//!
//! Reads key files and the environment. Guarantees that a key from the environment goes nowhere but to the server
//! that the environment or the vendor names, or, for Azure, which has none of its own, the user's entry.

use std::fmt;

use super::context::Context;
use crate::model::{ModelSpec, Provider};
use crate::project::ProjectProblem;
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::error::Problem as _;

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file in `agent-config`, by its name.
    File(String),
    /// An environment variable.
    Variable(&'static str),
}

impl KeySource {
    /// Whether it is an environment variable.
    #[must_use]
    pub fn is_variable(&self) -> bool {
        matches!(self, Self::Variable(_))
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "agent-config/{name}"),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// There is no key.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum NoKey {
    /// Neither the file nor a variable has one.
    #[error("{problem}{}", if .is_empty.is_some() { format!(", and `{}` is empty", .is_empty.unwrap_or_default()) } else { String::new() })]
    #[diagnostic(help("{}", or_set(problem, *variable)))]
    Missing {
        /// What is said of the file.
        problem: ProjectProblem,
        /// The variable that would do, too.
        variable: Option<&'static str>,
        /// The variable that is set to nothing.
        is_empty: Option<&'static str>,
    },
    /// The file is there and has none.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(ProjectProblem),
    /// What the variable holds is no key.
    #[error("the key in the environment variable `{variable}` {problem}")]
    #[diagnostic(help("set `{variable}` to the API key alone, or unset it"))]
    Variable {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        problem: KeyProblem,
    },
}

/// The way out of a missing key file, and the variable that would do, too.
fn or_set(problem: &ProjectProblem, variable: Option<&str>) -> String {
    let variable = variable.map(|variable| format!(", or set `{variable}`"));
    problem.hint().unwrap_or_default() + &variable.unwrap_or_default()
}

/// The key of a model, and where it comes from; `None` where it needs none.
///
/// # Errors
/// When it needs one, and there is none.
pub fn find(context: &Context<'_>, spec: &ModelSpec) -> Result<Option<(ApiKey, KeySource)>, NoKey> {
    let Some(file) = &spec.key_file else {
        return Ok(None);
    };
    match context.project.key(file) {
        Ok(key) => Ok(Some((key, KeySource::File(file.clone())))),
        Err(problem @ ProjectProblem::Missing(_)) => {
            in_environment(context, spec, problem).map(Some)
        }
        Err(problem) => Err(NoKey::File(problem)),
    }
}

fn in_environment(
    context: &Context<'_>,
    spec: &ModelSpec,
    problem: ProjectProblem,
) -> Result<(ApiKey, KeySource), NoKey> {
    let variables = variables(spec);
    let mut set = variables.iter().copied();
    let set = set.find_map(|name| Some((name, context.environment.os(name)?)));
    let Some((variable, value)) = set else {
        let mut empty = variables.iter().copied();
        return Err(NoKey::Missing {
            problem,
            variable: variables.first().copied(),
            is_empty: empty.find(|name| context.environment.is_empty(name)),
        });
    };
    let key = ApiKey::parse(value.as_encoded_bytes());
    let key = key.map_err(|problem| NoKey::Variable { variable, problem })?;
    Ok((key, KeySource::Variable(variable)))
}

/// The variables that may hold the key, the first one first. They are the vendor's: an entry's own server has its own
/// key.
fn variables(spec: &ModelSpec) -> &'static [&'static str] {
    match (&spec.base_url, spec.provider) {
        (None, Provider::Gemini) => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        (None, Provider::OpenAi) => &["OPENAI_API_KEY"],
        (None, Provider::Anthropic) => &["ANTHROPIC_API_KEY"],
        // Nobody but the user names its server.
        (_, Provider::Azure) => &["AZURE_OPENAI_API_KEY"],
        (Some(_), _) | (None, Provider::Ollama) => &[],
    }
}
