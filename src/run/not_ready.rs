//! What a run needs and does not have, in words.
//!
//! Pure. Guarantees that each thing comes with what the user can do about it.

use std::fmt;

use super::context::Context;
use super::context::ModelsProblem;
use super::env_file::EnvFileProblem;
use super::keys::NoKey;
use super::problems::{BaselineProblem, ResumeProblem};
use super::sending::SendingProblem;
use crate::agent::settings::SettingsProblem;
use crate::commands::chat::permissions::file::PermissionsProblem;
use crate::commands::chat::trust::TrustProblem;
use crate::commands::orchestrate::config::ConfigProblem;
use crate::commands::plan::file::PlanFileError;
use crate::commands::plan::instructions::InstructionsProblem;
use crate::exec::build_script::ScriptProblem;
use crate::exec::sandbox::SandboxProblem;
use crate::model::{EndpointProblem, ServerProblem};
use crate::project::ProjectProblem;
use crate::project::home::NoHome;
use crate::secret::KeyProblem;
use crate::secret::credentials::Finding;
use crate::sys::home_file::HomeFileProblem;

/// Something that a run needs and the project does not have.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A file of the user's.
    #[error(transparent)]
    Project(#[from] ProjectProblem),
    /// The model's key.
    #[error(transparent)]
    Key(#[from] NoKey),
    /// The build script.
    #[error(transparent)]
    Script(#[from] ScriptProblem),
    /// The project as it is.
    #[error(transparent)]
    Baseline(#[from] BaselineProblem),
    /// The run that is to be resumed.
    #[error(transparent)]
    Resume(#[from] ResumeProblem),
    /// The sandbox that was asked for.
    #[error("builds and commands cannot be sandboxed strictly: {0}")]
    Sandbox(#[from] SandboxProblem),
    /// What is not to travel would.
    #[error("what looks like credentials would be sent:{}", listed(.0))]
    Secrets(Vec<Finding>),
    /// The way to the model.
    #[error(transparent)]
    Endpoint(#[from] EndpointProblem),
    /// Ollama's server, or a model in it.
    #[error(transparent)]
    Server(#[from] ServerProblem),
    /// What a user or a project tells agents.
    #[error(transparent)]
    Instructions(#[from] InstructionsProblem),
    /// A plan.
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    /// The table of models.
    #[error(transparent)]
    Models(#[from] ModelsProblem),
    /// What is to be sent.
    #[error(transparent)]
    Sending(#[from] SendingProblem),
    /// Where agents keep what is theirs.
    #[error(transparent)]
    Home(#[from] NoHome),
    /// A token in a variable.
    #[error("`{0}` {1}")]
    Token(&'static str, KeyProblem),
    /// What the user has set for agents.
    #[error(transparent)]
    Settings(#[from] SettingsProblem),
    /// What the user keeps for the agent at the terminal.
    #[error(transparent)]
    HomeFile(#[from] HomeFileProblem),
    /// The MCP server.
    #[error("the MCP server at `{server}` has no tool `{missing}`: it has {known}")]
    Tools {
        /// Its URL, without a query.
        server: String,
        /// What it lacks.
        missing: String,
        /// What it has.
        known: String,
    },
    /// The user's `.env`.
    #[error(transparent)]
    EnvFile(#[from] EnvFileProblem),
    /// What an orchestration is configured with.
    #[error(transparent)]
    Config(#[from] ConfigProblem),
    /// What the agent at the terminal may do.
    #[error(transparent)]
    Permissions(#[from] PermissionsProblem),
    /// What the user trusts.
    #[error(transparent)]
    Trust(#[from] TrustProblem),
    /// The code base that was to be rolled up.
    #[error("{problem}")]
    RollUp {
        /// Why there is none.
        problem: String,
        /// What the user can do about it.
        hint: String,
    },
}

impl Problem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Project(problem) => problem.hint(),
            Self::Key(problem) => problem.hint(),
            Self::Baseline(problem) => problem.hint(),
            Self::Resume(problem) => problem.hint(),
            Self::Script(problem) => problem.hint().to_owned(),
            Self::Secrets(_) => "take them out, or send them all the same by `--allow-secrets` \
                (which leaves this project's own keys out)"
                .to_owned(),
            Self::Sandbox(_) => {
                "install bubblewrap and let it make user namespaces, or use `--sandbox auto`"
                    .to_owned()
            }
            Self::Endpoint(problem) => problem.hint(),
            Self::Server(problem) => problem.hint(),
            Self::Permissions(problem) => problem.hint(),
            Self::Trust(problem) => problem.hint(),
            Self::Instructions(_) => InstructionsProblem::hint().to_owned(),
            Self::Plan(problem) => problem.hint().to_owned(),
            Self::Models(problem) => problem.hint(),
            Self::Sending(problem) => problem.hint(),
            Self::Home(problem) => problem.hint(),
            Self::Settings(problem) => problem.hint(),
            Self::HomeFile(problem) => problem.hint(),
            Self::Tools { .. } => {
                "set `MCP_BASE_URL` to a server whose agents work on branches".to_owned()
            }
            Self::EnvFile(problem) => problem.hint().to_owned(),
            Self::Config(problem) => problem.hint(),
            Self::Token(name, _) => format!("set `{name}` to the token alone, or unset it"),
            Self::RollUp { hint, .. } => hint.clone(),
        }
    }

    /// Whether `code-commit init` makes what is missing.
    fn is_inits(&self) -> bool {
        match self {
            Self::Project(ProjectProblem::NoGitignore | ProjectProblem::NotIgnored)
            | Self::Script(ScriptProblem::Missing) => true,
            Self::Project(ProjectProblem::Missing(path)) => path.ends_with("query.txt"),
            _ => false,
        }
    }
}

/// How many findings are told one by one.
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
#[derive(Debug, Default)]
pub struct NotReady {
    /// All that is missing; where it is an error, at least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the project is not ready")?;
        let inits = |problem: &&Problem| f.alternate() && problem.is_inits();
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
    problems: impl IntoIterator<Item = &'p Problem>,
) -> fmt::Result {
    problems
        .into_iter()
        .try_for_each(|problem| write!(f, "\n  {problem}\n    hint: {}", problem.hint()))
}

impl std::error::Error for NotReady {}

impl<P: Into<Problem>> From<P> for NotReady {
    fn from(problem: P) -> Self {
        let problems = vec![problem.into()];
        Self { problems }
    }
}

impl NotReady {
    /// Notes why the `.env` cannot be used, and warns of one that git would take.
    pub fn note_env_file(&mut self, context: &Context<'_>) {
        if let Some(exposure) = context.env_file.exposure() {
            context.warn(exposure);
        }
        self.extend(context.env_file.problems());
    }

    /// What is there; what is not is noted, once.
    pub fn note<T, E: Into<Problem>>(&mut self, result: Result<T, E>) -> Option<T> {
        let note = |problem: E| {
            let problem = problem.into();
            let text = problem.to_string();
            if !self.problems.iter().any(|known| known.to_string() == text) {
                self.problems.push(problem);
            }
        };
        result.map_err(note).ok()
    }

    /// Notes further problems, found elsewhere.
    pub fn extend<P: Into<Problem>>(&mut self, problems: impl IntoIterator<Item = P>) {
        self.problems.extend(problems.into_iter().map(P::into));
    }
}
