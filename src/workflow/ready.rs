//! Looks whether a run can start, before anything is sent or written, and lists all that is missing.

use std::fmt;

use super::builds::{self, BuildOptions, Containment};
use super::{Context, ModelChoice, Secrets};
use crate::build_script::{self, ScriptProblem};
use crate::credentials::{self, Finding};
use crate::edit;
use crate::edit::recovery::Recovered;
use crate::error::Error;
use crate::model::{
    Endpoint, EndpointProblem, HttpModel, MODELS, Model, ModelSpec, Proxies, Recording, ReplayModel,
};
use crate::project::{ProjectLock, ProjectProblem, QUERY, ROLLUP};
use crate::prompt::Inputs;
use crate::report::Event;
use crate::sandbox::SandboxProblem;

/// Something that a run needs and the project does not have.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A file of the supervisor's.
    #[error(transparent)]
    Project(#[from] ProjectProblem),
    /// The build script.
    #[error(transparent)]
    Script(#[from] ScriptProblem),
    /// The sandbox that was asked for.
    #[error("builds cannot be shut in strictly: {0}")]
    Sandbox(#[from] SandboxProblem),
    /// What is not to travel would.
    #[error("what looks like credentials would be sent:{}", listed(.0))]
    Secrets(Vec<Finding>),
    /// The way to the model.
    #[error(transparent)]
    Endpoint(#[from] EndpointProblem),
}

impl Problem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Project(problem) => problem.hint(),
            Self::Script(problem) => problem.hint().to_owned(),
            Self::Secrets(_) => "take them out, or send them all the same by `--allow-secrets` \
                (which leaves this project's own keys out)"
                .to_owned(),
            Self::Sandbox(_) => {
                "install bubblewrap and let it make user namespaces, or use `--sandbox auto`"
                    .to_owned()
            }
            Self::Endpoint(problem) => problem.hint(),
        }
    }
}

/// How many findings are told one by one.
const LISTED: usize = 20;

fn listed(findings: &[Finding]) -> String {
    let told = findings.iter().take(LISTED);
    let mut list: String = told.map(|finding| format!("\n    {finding}")).collect();
    if findings.len() > LISTED {
        list.push_str(&format!("\n    and {} more", findings.len() - LISTED));
    }
    list
}

const KEY_IN_INPUTS: &str =
    "an API key stands in the query or the code base; it was left out of the prompt";

/// The project is not ready; nothing was sent or written.
#[derive(Debug)]
pub struct NotReady {
    /// All that is missing; at least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the project is not ready")?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(f, "\n  {problem}\n    hint: {}", problem.hint()))
    }
}

impl std::error::Error for NotReady {}

impl From<ProjectProblem> for NotReady {
    fn from(problem: ProjectProblem) -> Self {
        let problems = vec![problem.into()];
        Self { problems }
    }
}

/// What a workflow needs besides the query, the code base and a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// A query that is not empty.
    pub nonempty_query: bool,
    /// A build script, and what it is to be run with.
    pub build: Option<BuildOptions>,
}

/// All that a run starts from.
pub struct Ready<'a> {
    /// The supervisor's inputs, without keys.
    pub inputs: Inputs,
    /// What the supervisor should know of them.
    pub warnings: Vec<String>,
    /// The model's entry in the table.
    pub spec: ModelSpec,
    /// The model.
    pub model: Box<dyn Model + 'a>,
    /// Keeps other runs out of the project.
    _lock: ProjectLock,
}

/// Looks for everything at once.
pub fn check<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    needs: Needs,
) -> Result<Ready<'a>, Error> {
    let recording = find_recording(context, choice)?;
    let lock = recovery(context)?.map(|taken| taken.with_warning(context));
    let spec = match &recording {
        Some(recording) => recording.model(choice.model, MODELS[0])?,
        None => choice.model.unwrap_or(MODELS[0]),
    };
    let project = &context.project;
    let mut problems = Problems::default();
    problems.note(project.check_gitignore());
    let query = problems.note(query(context, needs));
    let rollup = problems.note(project.rollup());
    let mut findings = credentials(context, query.as_deref(), rollup.as_deref());
    // Nothing is sent where replies are replayed.
    let refused = choice.secrets == Secrets::Refused && choice.replay.is_none();
    if refused && !findings.is_empty() {
        problems.0.push(Problem::Secrets(findings.clone()));
    }
    let model = match recording {
        Some(recording) => Some(Box::new(ReplayModel::new(recording, spec)) as Box<dyn Model>),
        None => problems.vendor_model(context, spec, choice),
    };
    if let Some(build) = needs.build {
        problems.note(build_script::inspect(
            project.root(),
            context.environment.os("PATH"),
        ));
        if build.containment == Containment::Strict {
            match builds::check_strict(context) {
                Err(SandboxProblem::Interrupted(interrupted)) => return Err(interrupted.into()),
                checked => problems.note(checked),
            };
        }
    }
    let lock = problems.note(lock);
    match (query, rollup, model, lock) {
        (Some(query), Some(rollup), Some(model), Some(lock)) if problems.0.is_empty() => {
            let (inputs, redacted) = without_keys(context, Inputs { query, rollup });
            let mut warnings = Vec::new();
            if redacted {
                warnings.push(KEY_IN_INPUTS.to_owned());
            }
            findings.retain(|finding| choice.replay.is_none() && !finding.is_own_key());
            if !findings.is_empty() {
                let list = listed(&findings);
                warnings.push(format!(
                    "what looks like credentials is sent, as allowed:{list}"
                ));
            }
            Ok(Ready {
                inputs,
                warnings,
                spec,
                model,
                _lock: lock,
            })
        }
        _ => Err(NotReady {
            problems: problems.0,
        }
        .into()),
    }
}

/// Takes the project, and puts its tree in order, for a workflow that needs nothing else.
///
/// # Errors
/// When another run has the project, or the tree cannot be put in order.
pub fn take(context: &Context<'_>) -> Result<ProjectLock, Error> {
    let taken = recovery(context)?.map_err(NotReady::from)?;
    Ok(taken.with_warning(context))
}

/// A project that no other run has, and whose tree is in order.
struct Taken {
    lock: ProjectLock,
    /// What there was to do about the tree, in words.
    recovered: Option<&'static str>,
}

impl Taken {
    /// For a command that has something else to do: what was recovered is told by the way.
    fn with_warning(self, context: &Context<'_>) -> ProjectLock {
        if let Some(recovered) = self.recovered {
            context.reporter.event(Event::Warning(recovered));
        }
        self.lock
    }
}

/// Takes the project, and puts its tree in order where an earlier run was cut short.
fn recovery(context: &Context<'_>) -> Result<Result<Taken, ProjectProblem>, Error> {
    let lock = match context.project.lock() {
        Ok(lock) => lock,
        Err(problem) => return Ok(Err(problem)),
    };
    let recovered = put_in_order(context)?;
    Ok(Ok(Taken { lock, recovered }))
}

/// Puts the tree in order, and says in words what there was to do. The project is locked.
fn put_in_order(context: &Context<'_>) -> Result<Option<&'static str>, Error> {
    let mut recovered = None;
    for journal in context.project.journal_directories() {
        recovered = recovered.or(edit::recovery::recover(context.tree(&journal))?);
    }
    Ok(recovered.map(|recovered| match recovered {
        Recovered::RolledBack => {
            "an earlier command was cut short while it changed files: the tree is as it was before that"
        }
        Recovered::Torn => {
            "what an earlier command changed did not reach the disk whole: the tree is as it was before \
             that; what was there of it lies in `agent-config/torn`"
        }
        Recovered::Completed => {
            "an earlier command was cut short after it changed files: the tree is the new one"
        }
    }))
}

/// The command `recover`: does what every run does first, and nothing else.
///
/// # Errors
/// When another run has the project, or the tree cannot be put in order.
pub fn recover(context: &Context<'_>) -> Result<String, Error> {
    let taken = recovery(context)?.map_err(NotReady::from)?;
    let done = taken.recovered.unwrap_or("there was nothing to recover");
    Ok(format!("done: {done}"))
}

fn find_recording(context: &Context<'_>, choice: &ModelChoice) -> Result<Option<Recording>, Error> {
    let project = &context.project;
    let find = |run| Recording::find(project.root(), &project.logs(), run);
    Ok(choice.replay.as_deref().map(find).transpose()?)
}

fn query(context: &Context<'_>, needs: Needs) -> Result<String, ProjectProblem> {
    let query = context.project.query()?;
    if needs.nonempty_query && query.trim().is_empty() {
        return Err(ProjectProblem::EmptyQuery);
    }
    Ok(query)
}

/// What in the inputs looks like a credential.
fn credentials(context: &Context<'_>, query: Option<&str>, rollup: Option<&str>) -> Vec<Finding> {
    let texts = [(QUERY, query), (ROLLUP, rollup)];
    let read = texts
        .into_iter()
        .filter_map(|(file, text)| Some((file, text?)));
    read.flat_map(|(file, text)| credentials::find(file, text, context.redactor))
        .collect()
}

/// A key in the inputs would travel to the vendor and into every log.
fn without_keys(context: &Context<'_>, inputs: Inputs) -> (Inputs, bool) {
    let redact = |text: String| match context.redactor.text(&text) {
        std::borrow::Cow::Borrowed(_) => (text, false),
        std::borrow::Cow::Owned(redacted) => (redacted, true),
    };
    let (query, in_query) = redact(inputs.query);
    let (rollup, in_rollup) = redact(inputs.rollup);
    (Inputs { query, rollup }, in_query || in_rollup)
}

#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn note<T, E: Into<Problem>>(&mut self, result: Result<T, E>) -> Option<T> {
        result.map_err(|problem| self.0.push(problem.into())).ok()
    }

    fn vendor_model<'a>(
        &mut self,
        context: &Context<'a>,
        spec: ModelSpec,
        choice: &ModelChoice,
    ) -> Option<Box<dyn Model + 'a>> {
        let key = self.note(context.project.key(spec.key_file));
        let endpoint = self.note(Endpoint::of(spec.provider, context.environment));
        let endpoint = endpoint?;
        // Calls to this machine go straight there, whatever proxy is named.
        let proxies = if endpoint.is_secure() {
            self.note(Proxies::from_environment(context.environment))
        } else {
            Some(Proxies::default())
        };
        let (key, proxies) = (key?, proxies?);
        let interrupt = context.interrupt.clone();
        let timeout = choice.timeout;
        let model = HttpModel::new(
            spec,
            endpoint,
            &proxies,
            key,
            timeout,
            context.clock,
            interrupt,
        );
        Some(Box::new(model))
    }
}
