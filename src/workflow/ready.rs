//! Looks whether a run can start, before anything is sent or written, and lists all that is missing.

use std::fmt;

use super::builds::{self, BuildOptions, Containment};
use super::models::ModelsProblem;
use super::sending::{self, SendingProblem};
use super::{Context, ModelChoice, Secrets};
use crate::agent::home::NoHome;
use crate::agent::settings::SettingsProblem;
use crate::build_script::{self, ScriptProblem};
use crate::credentials::{self, Finding};
use crate::edit;
use crate::edit::recovery::Recovered;
use crate::error::Error;
use crate::model::{
    Endpoint, EndpointProblem, HttpModel, Model, ModelSpec, ModelTable, Origin, Provider, Proxies,
    Recording, ReplayModel, Route, Task,
};
use crate::price::Usd;
use crate::project::{EXAMPLE_QUERY, ProjectLock, ProjectProblem, QUERY, ROLLUP};
use crate::prompt::Inputs;
use crate::record::Attempt;
use crate::report::Event;
use crate::sandbox::SandboxProblem;
use crate::secret::ApiKey;

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
    #[error("builds and commands cannot be shut in strictly: {0}")]
    Sandbox(#[from] SandboxProblem),
    /// What is not to travel would.
    #[error("what looks like credentials would be sent:{}", listed(.0))]
    Secrets(Vec<Finding>),
    /// The way to the model.
    #[error(transparent)]
    Endpoint(#[from] EndpointProblem),
    /// The table of models.
    #[error(transparent)]
    Models(#[from] ModelsProblem),
    /// What is to be sent.
    #[error(transparent)]
    Sending(#[from] SendingProblem),
    /// Where agents keep what is theirs.
    #[error(transparent)]
    Home(#[from] NoHome),
    /// What the user has set for agents.
    #[error(transparent)]
    Settings(#[from] SettingsProblem),
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
            Self::Models(problem) => problem.hint(),
            Self::Sending(problem) => problem.hint(),
            Self::Home(problem) => problem.hint(),
            Self::Settings(problem) => problem.hint(),
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

impl<P: Into<Problem>> From<P> for NotReady {
    fn from(problem: P) -> Self {
        let problems = vec![problem.into()];
        Self { problems }
    }
}

/// What a workflow needs besides the query, the code base and a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// What the model is asked for.
    pub task: Task,
    /// A build script, and what it is to be run with.
    pub build: Option<BuildOptions>,
}

/// All that a run starts from.
pub struct Ready<'a> {
    /// The supervisor's inputs, without keys.
    pub inputs: Inputs,
    /// What the supervisor should know of them.
    pub warnings: Vec<String>,
    /// Whom to ask.
    pub models: Models<'a>,
    /// Keeps other runs out of the project.
    _lock: ProjectLock,
}

/// The models that a run asks, and what that may cost.
pub struct Models<'a> {
    /// What the run may cost.
    pub max_cost: Option<Usd>,
    /// Whether nothing is sent, because replies are replayed.
    pub is_replay: bool,
    /// The one for every query, unless `repair` is set.
    pub first: Chosen<'a>,
    /// The one for repairs, where that is another.
    pub repair: Option<Chosen<'a>>,
}

impl Models<'_> {
    /// The model for a query.
    pub fn model(&self, attempt: Attempt) -> &Chosen<'_> {
        match (&self.repair, attempt) {
            (Some(repair), Attempt::Repair(_)) => repair,
            _ => &self.first,
        }
    }
}

/// A model that is to be asked.
pub struct Chosen<'a> {
    /// Its entry in the table.
    pub spec: ModelSpec,
    /// The model.
    pub model: Box<dyn Model + 'a>,
}

/// What was found where a run is to start: all of it, whatever is missing.
pub struct Survey<'a> {
    /// The supervisor's inputs, without keys.
    pub inputs: Option<Inputs>,
    /// The model of the first query.
    pub spec: Option<ModelSpec>,
    /// The model of the repairs, where that is another.
    pub repair_spec: Option<ModelSpec>,
    /// What the supervisor should know.
    pub warnings: Vec<String>,
    /// What is missing.
    pub problems: Vec<Problem>,
    max_cost: Option<Usd>,
    is_replay: bool,
    first: Option<Chosen<'a>>,
    repair: Option<Chosen<'a>>,
    lock: Option<ProjectLock>,
}

impl<'a> Survey<'a> {
    /// What a run starts from.
    ///
    /// # Errors
    /// When anything is missing.
    pub fn ready(self) -> Result<Ready<'a>, NotReady> {
        match (self.inputs, self.first, self.lock) {
            (Some(inputs), Some(first), Some(lock)) if self.problems.is_empty() => Ok(Ready {
                inputs,
                warnings: self.warnings,
                models: Models {
                    max_cost: self.max_cost,
                    is_replay: self.is_replay,
                    first,
                    repair: self.repair,
                },
                _lock: lock,
            }),
            _ => Err(NotReady {
                problems: self.problems,
            }),
        }
    }
}

/// Looks for everything at once.
///
/// # Errors
/// When what is asked for does not exist, or the tree cannot be put in order after an earlier run.
pub fn survey<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    needs: Needs,
) -> Result<Survey<'a>, Error> {
    let recording = find_recording(context, choice)?;
    let specs = choose(context, choice, needs.task, recording.as_ref())?;
    let lock = recovery(context)?.map(|taken| taken.with_warning(context));
    let project = &context.project;
    let mut problems = Problems::default();
    problems.note(context.models.as_ref().map_err(Clone::clone));
    problems.note(project.check_gitignore(context.key_files()));
    let query = problems.note(query(context, needs));
    let rollup = problems.note(project.rollup());
    let findings = credentials(context, query.as_deref(), rollup.as_deref());
    // Nothing is sent where replies are replayed.
    let sends = choice.replay.is_none();
    if sends && choice.secrets == Secrets::Refused && !findings.is_empty() {
        problems.0.push(Problem::Secrets(findings.clone()));
    }
    let mut models = specs.iter().map(|spec| match &recording {
        Some(recording) => Some(Chosen {
            spec: spec.clone(),
            model: Box::new(ReplayModel::new(recording, spec.clone())) as Box<dyn Model>,
        }),
        None => problems.vendor_model(context, spec, choice),
    });
    let (first, repair) = (models.next().flatten(), models.next().flatten());
    drop(models);
    if let Some(build) = needs.build {
        problems.build(context, build)?;
    }
    let lock = problems.note(lock);
    let inputs = query.zip(rollup);
    let inputs = inputs.map(|(query, rollup)| without_keys(context, Inputs { query, rollup }));
    let mut warnings = Vec::new();
    if inputs.as_ref().is_some_and(|(_, redacted)| *redacted) {
        warnings.push(KEY_IN_INPUTS.to_owned());
    }
    let inputs = inputs.map(|(inputs, _)| inputs);
    if sends {
        warnings.extend(sent_secrets(choice, findings));
        if let (Some(inputs), Some(spec)) = (&inputs, specs.first()) {
            let (refused, noticed) = sending::examine(context, choice, needs.task, inputs, spec);
            problems.0.extend(refused.into_iter().map(Problem::from));
            let others = specs.iter().skip(1);
            let unpriced = others.filter_map(|spec| sending::without_price(choice, spec));
            problems.0.extend(unpriced.map(Problem::from));
            warnings.extend(noticed);
        }
    }
    Ok(Survey {
        inputs,
        repair_spec: specs.get(1).cloned(),
        spec: specs.into_iter().next(),
        warnings,
        problems: problems.0,
        max_cost: choice.max_cost.filter(|_| sends),
        is_replay: !sends,
        first,
        repair,
        lock,
    })
}

/// Looks for everything, and starts from it.
///
/// # Errors
/// When anything is missing.
pub fn check<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    needs: Needs,
) -> Result<Ready<'a>, Error> {
    Ok(survey(context, choice, needs)?.ready()?)
}

/// The models of the first query and, where that is another, of the repairs. None, where the table of
/// models cannot be read and what is asked for may be in it.
fn choose(
    context: &Context<'_>,
    choice: &ModelChoice,
    task: Task,
    recording: Option<&Recording>,
) -> Result<Vec<ModelSpec>, Error> {
    let Ok(table) = &context.models else {
        return Ok(Vec::new());
    };
    let choose = |task| -> Result<ModelSpec, Error> {
        let asked = choice.model.as_deref();
        if let Some(recording) = recording
            && let Some(recorded) = recording.model(task, asked, table)?
        {
            return Ok(recorded.clone());
        }
        let Some(asked) = asked else {
            return Ok(table.chosen(task).clone());
        };
        table
            .named(asked)
            .cloned()
            .ok_or_else(|| Error::UnknownModel {
                name: asked.to_owned(),
                known: table.names(),
            })
    };
    let mut specs = vec![choose(task)?];
    if task == Task::Commit {
        let repair = choose(Task::Repair)?;
        if repair != specs[0] {
            specs.push(repair);
        }
    }
    Ok(specs)
}

/// What is sent though it looks like a credential.
fn sent_secrets(choice: &ModelChoice, mut findings: Vec<Finding>) -> Option<String> {
    findings.retain(|finding| !finding.is_own_key());
    let sent = choice.secrets == Secrets::Allowed && !findings.is_empty();
    sent.then(|| {
        let list = listed(&findings);
        format!("what looks like credentials is sent, as allowed:{list}")
    })
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

/// The run that is to be replayed, if any.
pub fn find_recording(
    context: &Context<'_>,
    choice: &ModelChoice,
) -> Result<Option<Recording>, Error> {
    let project = &context.project;
    let find = |run| Recording::find(project.root(), &project.logs(), run);
    Ok(choice.replay.as_deref().map(find).transpose()?)
}

fn query(context: &Context<'_>, needs: Needs) -> Result<String, ProjectProblem> {
    let query = context.project.query()?;
    // A report's prompt says itself what to do where the query says nothing.
    if needs.task != Task::Consistency && query.trim().is_empty() {
        return Err(ProjectProblem::EmptyQuery);
    }
    if query == EXAMPLE_QUERY {
        return Err(ProjectProblem::ExampleQuery);
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

    fn build(&mut self, context: &Context<'_>, build: BuildOptions) -> Result<(), Error> {
        let path = context.environment.os("PATH");
        self.note(build_script::inspect(context.project.root(), path));
        if build.containment == Containment::Strict {
            match builds::check_strict(context) {
                Err(SandboxProblem::Interrupted(interrupted)) => return Err(interrupted.into()),
                checked => self.note(checked),
            };
        }
        Ok(())
    }

    fn vendor_model<'a>(
        &mut self,
        context: &Context<'a>,
        spec: &ModelSpec,
        choice: &ModelChoice,
    ) -> Option<Chosen<'a>> {
        let key = match &spec.key_file {
            Some(file) => self.note(context.project.key(file)).map(Some),
            None => Some(None),
        };
        let route = self.note(route(context, spec));
        Some(vendor_model(context, spec, route?, key?, choice))
    }
}

/// A model behind its server.
fn vendor_model<'a>(
    context: &Context<'a>,
    spec: &ModelSpec,
    (endpoint, proxies): (Endpoint, Proxies),
    key: Option<ApiKey>,
    choice: &ModelChoice,
) -> Chosen<'a> {
    let route = Route {
        endpoint,
        proxies,
        key,
    };
    let model = HttpModel::new(
        spec.clone(),
        route,
        choice.delivery,
        choice.timeout,
        context.clock,
        context.interrupt.clone(),
    );
    Chosen {
        spec: spec.clone(),
        model: Box::new(model),
    }
}

/// The model that an agent asks: the one that `--model` names, or the recorded one, or else `own`, which
/// is the user's own server with its key; where the user has none, the table's entry of that name.
///
/// # Errors
/// When there is no such model, or it lacks something.
pub fn agent_model<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    own: OwnModel<'_>,
) -> Result<Models<'a>, Error> {
    let recording = find_recording(context, choice)?;
    let recorded = recording.as_ref().and_then(Recording::first_model);
    let asked = choice.model.as_deref();
    let table = match context.models {
        Ok(table) => table,
        Err(problem) => return Err(NotReady::from(problem.clone()).into()),
    };
    let named = |name: &str| {
        let unknown = || Error::UnknownModel {
            name: name.to_owned(),
            known: table.names(),
        };
        table.named(name).cloned().ok_or_else(unknown)
    };
    let (spec, key) = match (asked, own.url, recorded) {
        (Some(name), _, _) => (named(name)?, None),
        (None, _, Some(name)) if table.named(name).is_some() => (named(name)?, None),
        (None, Some(url), _) => (own_spec(own.name, url, table), own.key.cloned()),
        (None, None, _) => (named(own.name)?, None),
    };
    let first = if let Some(recording) = &recording {
        Chosen {
            model: Box::new(ReplayModel::new(recording, spec.clone())) as Box<dyn Model>,
            spec,
        }
    } else {
        let mut problems = Problems::default();
        let unpriced = sending::without_price(choice, &spec).map(Problem::from);
        problems.0.extend(unpriced);
        let key = match (&spec.key_file, key) {
            (Some(file), None) => problems.note(context.project.key(file)),
            (_, key) => key,
        };
        match problems.note(route(context, &spec)) {
            Some(route) if problems.0.is_empty() => {
                vendor_model(context, &spec, route, key, choice)
            }
            _ => {
                let problems = problems.0;
                return Err(NotReady { problems }.into());
            }
        }
    };
    let is_replay = recording.is_some();
    Ok(Models {
        max_cost: choice.max_cost.filter(|_| !is_replay),
        is_replay,
        first,
        repair: None,
    })
}

/// The model of the user's own configuration.
#[derive(Debug, Clone, Copy)]
pub struct OwnModel<'o> {
    /// The base URL of its server; `None`: the model is one of the table's.
    pub url: Option<&'o str>,
    /// The key for that server.
    pub key: Option<&'o ApiKey>,
    /// The model's name.
    pub name: &'o str,
}

/// A model behind the user's own server, which is compatible with OpenAI's. The table may have more to say of
/// it, like its price.
fn own_spec(name: &str, url: &str, table: &ModelTable) -> ModelSpec {
    let known = table.named(name);
    let known = known.filter(|spec| spec.provider == Provider::OpenAi);
    let new = || ModelSpec::new(name, Provider::OpenAi);
    ModelSpec {
        base_url: Some(url.to_owned()),
        key_file: None,
        origin: Origin::Added,
        ..known.cloned().unwrap_or_else(new)
    }
}

/// The model's server, and the proxies on the way there.
pub fn route(
    context: &Context<'_>,
    spec: &ModelSpec,
) -> Result<(Endpoint, Proxies), EndpointProblem> {
    let endpoint = Endpoint::of(spec, context.environment)?;
    // Calls to this machine go straight there, whatever proxy is named.
    let proxies = if endpoint.is_secure() {
        Proxies::from_environment(context.environment)?
    } else {
        Proxies::default()
    };
    Ok((endpoint, proxies))
}
