//! Setup of a plan run: the agent's home, the models of its stages, the session with the plan, and the runner of
//! commands.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use super::args::{PlanArgs, StepGate};
use super::document::{PlanDocument, PlanDocumentError};
use super::file::PlanFileError;
use super::instructions::Instructions;
use super::session::{self, PlanSessionFile, PlanSessionStore, PlanStage, PlanState};
use crate::agent::conversation::Conversation;
use crate::agent::session::{SessionForm as _, SessionState};
use crate::commands::answers::recorded;
use crate::commands::error::CommandError;
use crate::commands::stored_session::{SessionChoice, SessionLog, StoredSession, report_session};
use crate::commands::talk::question::permission;
use crate::commands::workspace::{AgentOptions, Workspace};
use crate::model::{ModelSpec, ModelTable, Provider, Purpose, TaskType};
use crate::project::home::PLAN_MODELS;
use crate::project::repository::DOT_GIT;
use crate::project::{Project, home, place};
use crate::record::question::{Answer, Question};
use crate::record::result::LimitsRecord;
use crate::record::run_files::PLAN;
use crate::run::agent_models;
use crate::run::builds::check_script;
use crate::run::context::{Context, ModelChoice, ModelsProblem};
use crate::run::not_ready::NotReady;
use crate::run::selection::{self, Models};
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::interrupt::Interrupted;
use crate::ui::input::User;

/// The session in which a plan is worked on.
pub type OpenPlan<'s> = StoredSession<'s, PlanSessionFile>;

impl OpenPlan<'_> {
    /// Calls `look` with the state, and returns its result.
    pub fn state<T>(&self, look: impl FnOnce(&PlanState) -> T) -> T {
        look(&self.session.borrow().file.state)
    }

    /// Returns `true` if a request is in progress.
    pub fn is_under_way(&self) -> bool {
        self.state(|state| !state.requests.is_empty() && state.stage != PlanStage::Done)
    }

    /// Changes the state and saves it.
    ///
    /// # Errors
    /// Fails if the state cannot be saved.
    pub fn change_state(&self, change: impl FnOnce(&mut PlanState)) -> Result<(), Error> {
        self.change(|session| change(&mut session.state))
    }
}

impl SessionLog for OpenPlan<'_> {
    fn id(&self) -> String {
        self.session.borrow().id()
    }

    fn conversation(&self) -> Conversation {
        self.state(|state| state.conversation.clone())
    }

    fn from(&self) -> usize {
        self.state(|state| state.from)
    }

    fn settle(&self) {}

    fn wrote(&self, paths: &[String]) {
        let files = &mut self.session.borrow_mut().file.state.files;
        files.extend(paths.iter().cloned());
        files.sort();
        files.dedup();
    }

    fn note_state(&self, state: SessionState) -> Result<(), Error> {
        // Making the plan does not complete the session; only executing it does.
        self.change(|session| {
            session.status = match state {
                SessionState::Complete if session.state.stage != PlanStage::Done => {
                    SessionState::Active
                }
                state => state,
            };
        })
    }

    fn save(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error> {
        // Interrupted planning and summaries are repeated, so their conversations are not saved.
        if *purpose != Purpose::STEP {
            return Ok(());
        }
        self.change(|session| session.state.conversation.follow(conversation))
    }
}

/// Reads the agent's own table of models, or its defaults if there is none. The project's table takes precedence.
///
/// # Errors
/// Fails if a table is invalid or cannot be read.
pub fn table(context: &Context<'_>, home: &Path) -> Result<ModelTable, Error> {
    let path = home.join(PLAN_MODELS);
    let read = files::read(&path, Links::Followed, MIB).if_there();
    let found = read.map_err(PathError::of("read", &path))?;
    let own = found.unwrap_or_else(|| ModelTable::PLAN_DEFAULTS.into());
    let (project, environment) = (&context.project, context.environment);
    let plans = Some((&*path, &*own));
    let table = crate::commands::models::table(project, environment, plans, context.today());
    Ok(table.map_err(NotReady::of)?)
}

/// Creates the agent's own table with the defaults if it does not exist.
///
/// # Errors
/// Fails if the table cannot be created.
pub fn keep_models(context: &Context<'_>, home: &Path) -> Result<(), Error> {
    let path = home.join(PLAN_MODELS);
    if !path.exists() {
        let made = home::PLAN.create(&path, ModelTable::PLAN_DEFAULTS.as_bytes());
        made.map_err(NotReady::of)?;
        context.notice(format!(
            "`{}` was made: it lists the models, and says which is asked in which stage",
            path.display()
        ));
    }
    Ok(())
}

/// Selects the models of the stages, the one for steps first; plans are repaired by the model that makes them. Models
/// that Ollama lacks are pulled if `pull` is set or the user agrees.
///
/// # Errors
/// Fails if a model is unknown or its configuration is incomplete.
pub fn models<'c>(
    context: &Context<'c>,
    choice: &ModelChoice,
    pull: bool,
    typing: Option<&User>,
) -> Result<Models<'c>, Error> {
    let may_pull = |model: &str| {
        typing
            .filter(|_| !pull)
            .map_or(Ok(pull), |typing| wants(context, typing, model))
    };
    let pulled = |error: Error, task| {
        let is_ollamas = pull || error.is::<NotReady>();
        let named = choice.model.as_deref().filter(|_| is_ollamas);
        let spec = ModelSpec::new(named.ok_or(error)?, Provider::LOCAL);
        agent_models::stage_models(context, choice, vec![(Purpose::STEP, spec)], &may_pull)?;
        selected(context, choice, task)
    };
    let mut stages: Vec<(Purpose, ModelSpec)> = Vec::new();
    for (purpose, task) in STAGES {
        let spec = match stages.first() {
            // A server that may have the named model is asked for it only once.
            Some((_, named)) if choice.model.is_some() => named.clone(),
            _ => selected(context, choice, task).or_else(|error| pulled(error, task))?,
        };
        stages.push((purpose, spec));
    }
    agent_models::stage_models(context, choice, stages, &may_pull)
}

/// Selects the model of a stage: the one given with `--model`, which Ollama may have without an entry, or else the one
/// that the tables' rules choose.
///
/// # Errors
/// Fails if there is no such model.
pub fn selected(
    context: &Context<'_>,
    choice: &ModelChoice,
    task: TaskType,
) -> Result<ModelSpec, Error> {
    let table = selection::table_of(context.models)?;
    let mut spec = if let Some(name) = choice.model.as_deref() {
        selection::named_or_installed(context, table, name)?
    } else {
        let selected = table.for_task(task).map_err(ModelsProblem::from);
        selected.map_err(NotReady::of)?.clone()
    };
    // Without this, Ollama would unload the model while commands run or the user reads.
    spec.keep_alive.get_or_insert_with(|| KEEP_ALIVE.into());
    Ok(spec)
}

/// Returns the prompt of a model's entry, if any, followed by a sentence about its task.
pub fn model_and(spec: &ModelSpec, sentence: &str) -> String {
    match &spec.prompt {
        Some(own) => format!("{}\n\n{sentence}", own.trim_end()),
        None => sentence.to_owned(),
    }
}

/// Asks the user whether to pull a model.
fn wants(context: &Context<'_>, typing: &User, model: &str) -> Result<bool, Interrupted> {
    let question = Question::from(format!("Ollama does not have `{model}`. Pull it?"));
    let verdict = permission(context, typing, &question, None);
    context.interrupt.check()?;
    match verdict.map_err(|error| error.exit()) {
        Err(Exit::Interrupted(signal)) => Err(Interrupted { signal }),
        verdict => Ok(verdict.is_ok_and(|verdict| verdict.answer == Answer::Yes)),
    }
}

/// The purposes of model calls, each with the task type whose rule in `models.json` selects its model.
const STAGES: [(Purpose, TaskType); 4] = [
    (Purpose::STEP, TaskType::Coding),
    (Purpose::PLAN, TaskType::Planning),
    (Purpose::SUMMARY, TaskType::Summarization),
    (Purpose::PLAN_REPAIR, TaskType::Planning),
];

/// Everything a plan run needs, prepared before it starts.
pub struct PlanPlace<'c> {
    /// Session, models, limits and processes.
    pub base: Workspace<'c, PlanSessionFile>,
    /// The content of `AGENTS.md`, used as instructions for the models.
    pub instructions: String,
    /// Warnings from before the run.
    pub warnings: Vec<String>,
    /// The warnings about the models, for the record of each run.
    pub model_warnings: Vec<String>,
    /// `true` if the replayed run ended once the plan was made.
    pub is_plan_only: bool,
}

/// Number of consecutive unintelligible replies that ends a run.
pub const TRIES: u32 = 3;

/// Time for which Ollama keeps a model loaded after a call, unless its entry says otherwise.
const KEEP_ALIVE: &str = "30m";

/// Time limit of a command. `spec/plan-prompts.md` sets none, but a command that hangs must not block the run.
const LONGEST_COMMAND: Duration = Duration::from_mins(10);

/// Maximum number of replies in a run; effectively unlimited, since each step has its own limit.
const MOST_LOOPS: u16 = u16::MAX;

impl<'c> PlanPlace<'c> {
    /// Prepares a run in this session, with these instructions.
    ///
    /// # Errors
    /// Fails if the plan or the sandbox cannot be used.
    pub fn open(
        context: &'c Context<'c>,
        options: &AgentOptions,
        home: &Path,
        models: Models<'c>,
        stored: OpenPlan<'c>,
        read: Instructions,
    ) -> Result<Self, Error> {
        let (model_warnings, mut warnings) = (models.report(context), Vec::new());
        if let Some(warning) = read.warning {
            context.warn(warning.clone());
            warnings.push(warning);
        }
        let window = models.first.spec.prompt_window();
        let limits = LimitsRecord::new(window, TRIES, MOST_LOOPS, Some(LONGEST_COMMAND));
        let key_file = home.join(PLAN_MODELS);
        let base = Workspace::of(context, options, stored, models, limits, &key_file)?;
        warnings.extend(base.uncontained.clone());
        let mut place = Self {
            base,
            instructions: read.text,
            model_warnings,
            warnings,
            is_plan_only: false,
        };
        place.replay(context, &options.choice)?;
        Ok(place)
    }

    /// Checks that `build.sh`, if there is one, can be started if steps will need it.
    ///
    /// # Errors
    /// Fails if it cannot be started.
    pub fn check_gate(&self, context: &Context<'_>, arguments: &PlanArgs) -> Result<(), NotReady> {
        let has_steps = !arguments.plan_only && !self.is_plan_only;
        if has_steps && arguments.gate == StepGate::Build {
            check_script(context)?;
        }
        Ok(())
    }

    /// Restores the state at the start of the run to replay, if any.
    fn replay(&mut self, context: &Context<'_>, choice: &ModelChoice) -> Result<(), Error> {
        let Some(recorded) = recorded(context, choice)? else {
            return Ok(());
        };
        let recording = &recorded.recording;
        let document = files::read(&recording.folder().join(PLAN), Links::Refused, 64 * MIB)
            .map_err(|_| CommandError::NothingAsked)?;
        let session = &self.base.stored.session;
        let path = session.borrow().document(context.project.root());
        let made = atomic_file::replace_private(&path, |file| file.write_all(&document));
        made.map_err(PathError::of("write", path))?;
        let has = |purpose| recording.model_of(&purpose).is_some();
        self.is_plan_only = !has(Purpose::STEP) && !has(Purpose::SUMMARY);
        let stage = if has(Purpose::PLAN) {
            PlanStage::Planning
        } else if has(Purpose::STEP) {
            PlanStage::Execution
        } else {
            PlanStage::Summary
        };
        self.base.stored.change_state(|state| {
            state.from = recorded.record.from;
            state.conversation = recorded.conversation;
            state.stage = stage;
        })?;
        self.base.recorded = Some(recorded.record);
        Ok(())
    }
}

/// Returns the known model with the next larger window than this one's. Models of other providers are not considered,
/// since they could send a local plan to a cloud.
pub fn larger<'m>(
    models: &'m Result<ModelTable, ModelsProblem>,
    asked: &ModelSpec,
) -> Option<&'m str> {
    let specs = models.as_ref().ok()?.models().iter();
    let own = specs.filter(|spec| spec.provider == asked.provider);
    let windows = own.filter_map(|spec| Some((spec.prompt_window()?, &*spec.name)));
    let window = asked.prompt_window()?;
    let larger = windows.filter(|(known, _)| *known > window).min();
    larger.map(|(_, name)| name)
}

/// Opens the chosen session, or creates a new one.
///
/// # Errors
/// Fails if the session does not exist, or cannot be used or created.
pub fn open_session<'c>(
    context: &'c Context<'_>,
    home: &Path,
    arguments: &PlanArgs,
    options: &AgentOptions,
) -> Result<OpenPlan<'c>, Error> {
    let choice = &options.session;
    let store = PlanSessionStore::at(&home::PLAN, home, context.redactor);
    let root = context.project.root();
    // The session of a replay cannot be resumed, and changes no plan but its own.
    let is_replay = arguments.agent.replay.is_some();
    let plan_file = arguments.plan_file.as_deref().filter(|_| !is_replay);
    let relative = |path| plan_file_of(&context.project, path, choice);
    let in_project = plan_file.map(relative).transpose()?;
    let found = choice.open(&store, root)?;
    if let (Some(session), Some(path)) = (&found, plan_file)
        && session.state.plan_file != in_project
    {
        return Err(PlanFileError::Elsewhere {
            path: path.to_owned(),
            known: session.document(root),
        }
        .into());
    }
    let resumed = found.is_some();
    let create = || {
        let directory = if is_replay { Path::new("") } else { root };
        let state = PlanState {
            directory: store.written(directory),
            plan_file: in_project,
            // Even a session that is killed immediately can be resumed.
            requests: options.asked().map(str::to_owned).into_iter().collect(),
            ..PlanState::default()
        };
        let now = context.clock.now();
        session::create(&store, now, context.clock.zone(now).as_deref(), state)
    };
    let session = found.map_or_else(create, Ok)?;
    report_session(context, &session, resumed);
    Ok(OpenPlan {
        session: RefCell::new(session),
        store,
        clock: context.clock,
    })
}

/// Returns `true` if the file is something other than a plan; a damaged plan still counts as a plan.
fn is_no_plan(path: &Path) -> bool {
    let content = files::read(path, Links::Refused, MIB).unwrap_or_default();
    let parsed = PlanDocument::parse(content.trim_ascii());
    // Nothing is lost if an empty file is overwritten.
    !content.trim_ascii().is_empty() && matches!(parsed, Err(PlanDocumentError::NoHeading))
}

/// Returns the path of a document in the project, relative to its root.
///
/// # Errors
/// Fails if the file is outside the project, or is something other than a plan.
pub fn plan_file_of(
    project: &Project,
    path: &Path,
    choice: &SessionChoice,
) -> Result<String, Error> {
    let outside = || PlanFileError::Outside(path.to_owned());
    let root = project.root();
    let whole = path_clean::clean(root.join(path));
    // The directory may be a link, but not the file itself.
    let directory = whole.parent().and_then(|parent| parent.canonicalize().ok());
    let name = whole.file_name();
    let (Some(directory), Some(name)) = (directory, name) else {
        return Err(outside().into());
    };
    let real = directory.join(name);
    let is_ours = [project.config(), project.logs()]
        .iter()
        .any(|directory| real.starts_with(directory));
    let is_gits = real.iter().any(|part| part == DOT_GIT);
    if !real.starts_with(root) || is_ours || is_gits || real.is_symlink() || real.is_dir() {
        return Err(outside().into());
    }
    if *choice == SessionChoice::New && is_no_plan(&real) {
        return Err(PlanFileError::NoPlan(path.to_owned()).into());
    }
    let relative = place::relative(root, &real);
    Ok(relative.to_str().ok_or_else(outside)?.to_owned())
}
