//! What an agent's workflow needs before the agent begins: settings, session, model, and a place where
//! its commands run.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use chrono::Utc;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::run::builds;
use super::run::not_ready::NotReady;
use super::run::selection::{self, Models, OwnModel};
use super::{Context, ModelChoice};
use crate::agent::conversation::Conversation;
use crate::agent::home::{self, System};
use crate::agent::session::{SESSIONS, Session, SessionState, SessionStore};
use crate::agent::settings::{self, Settings};
use crate::agent::tools::place::Outside;
use crate::exec::process::{Processes, SpawnOptions};
use crate::exec::sandbox::SandboxMode;
use crate::exec::subreaper;
use crate::record::run_files::{AGENT, CONVERSATION, RESULT};
use crate::record::run_log::make_ignored_directory;
use crate::record::{LimitsRecord, RunRecord, Seconds};
use crate::sys::files::read_regular;
use crate::ui::Event;
use crate::ui::input::Input;
use crate::workflow::error::Error;

/// Which session is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    New,
    /// The last one of the current directory.
    Last,
    /// The one of this id; a new one where there is none.
    Named(Uuid),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestInput {
    /// What the user says at the terminal.
    AskUser,
    /// What was asked for before.
    GoOn,
    /// This.
    Request(String),
}

impl RequestInput {
    /// By what the command line says; the blank request goes on.
    #[must_use]
    pub fn of(request: Option<String>) -> Self {
        match request {
            None => Self::AskUser,
            Some(request) if request.trim().is_empty() => Self::GoOn,
            Some(request) => Self::Request(request),
        }
    }
}

/// How an agent is to work.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOptions {
    /// What is to be done.
    pub input: RequestInput,
    /// In which session.
    pub session: SessionChoice,
    /// Whom to ask.
    pub choice: ModelChoice,
    /// How far commands are sandboxed.
    pub sandbox: SandboxMode,
    /// Whether it may leave the current directory.
    pub outside: Outside,
}

/// The session that a run's conversation is kept in.
#[derive(Clone, Copy)]
pub struct KeptSession<'s> {
    /// The session.
    pub session: &'s RefCell<Session>,
    /// Where it is kept.
    pub store: &'s SessionStore<'s>,
}

/// What an agent has before it begins.
pub struct Workspace<'c> {
    /// What the user has set.
    pub settings: Settings,
    /// Whom to ask.
    pub models: Models<'c>,
    /// Where sessions are kept.
    pub store: SessionStore<'c>,
    /// What was said so far.
    pub session: RefCell<Session>,
    /// What the agent has started. Ended with the workspace.
    pub processes: RefCell<Processes<'c>>,
    /// Whether it may leave the current directory.
    pub outside: Outside,
    /// Where the settings and the sessions are, which are not for agents.
    pub closed: Vec<PathBuf>,
}

impl<'c> Workspace<'c> {
    /// Sets it up.
    ///
    /// # Errors
    /// When something is missing or wrong: a key that git does not ignore, settings, model, session, sandbox.
    pub fn open(context: &'c Context<'c>, options: &AgentOptions) -> Result<Self, Error> {
        let ignored = context.project.check_keys_ignored(context.key_files());
        ignored.map_err(NotReady::from)?;
        let (home, settings) = settings(context)?;
        let own = OwnModel {
            url: settings.api_url.as_deref(),
            key: settings.api_key.as_ref(),
            name: &settings.model,
        };
        let models = selection::agent_model(context, &options.choice, own)?;
        let store = sessions(context, &home, &settings)?;
        let model = &models.first.spec.name;
        let mut session = open_session(context, &store, options.session, model)?;
        if options.choice.replay.is_some() {
            session.detach();
        }
        // Many a project is not set up for this program, and an agent commits what git does not ignore.
        for directory in [context.project.config(), context.project.logs()] {
            make_ignored_directory(&directory)?;
        }
        let sandbox =
            builds::command_sandbox(context, options.sandbox, &home.join(settings::FILE))?;
        // Where that is refused, fewer are found of those that hide.
        let _ = subreaper::install();
        let processes = Processes::new(SpawnOptions {
            root: context.project.root(),
            program: context.program.map(|program| program.path.as_path()),
            hidden: builds::key_variables(context),
            clock: context.clock,
            interrupt: context.interrupt,
            redactor: context.redactor,
            sandbox,
        });
        Ok(Self {
            settings,
            models,
            store,
            session: RefCell::new(session),
            processes: RefCell::new(processes),
            outside: options.outside,
            closed: own_paths(&home),
        })
    }

    /// How long the conversation may become: what the user has set, and no more than the model takes.
    pub fn context_limit(&self) -> u64 {
        let set = self.settings.max_context_tokens;
        let window = self.models.first.spec.context_window;
        window.map_or(set, |window| window.min(set))
    }

    /// How far an agent can go.
    pub fn limits(&self) -> LimitsRecord {
        let settings = &self.settings;
        LimitsRecord {
            max_context_tokens: self.context_limit(),
            max_retries: settings.max_retries,
            max_retries_automated: settings.max_retries_automated,
            max_loops: settings.max_loops,
            command_timeout: Seconds(settings.command_timeout),
        }
    }

    /// Begins where a recorded run began, and can go as far as that.
    pub fn set_back(&mut self, conversation: Conversation, limits: Option<LimitsRecord>) {
        self.session.get_mut().conversation = conversation;
        if let Some(limits) = limits {
            let settings = &mut self.settings;
            settings.max_context_tokens = limits.max_context_tokens;
            settings.max_retries = limits.max_retries;
            settings.max_retries_automated = limits.max_retries_automated;
            settings.max_loops = limits.max_loops;
            settings.command_timeout = limits.command_timeout.0;
        }
    }

    /// The session that a run's conversation is kept in.
    pub fn kept_session(&self) -> KeptSession<'_> {
        KeptSession {
            session: &self.session,
            store: &self.store,
        }
    }

    /// Whether anything was ever asked for in the session.
    pub fn is_begun(&self) -> bool {
        !self.session.borrow().conversation.history.is_empty()
    }

    /// Whether the session has something that was asked for and is not done.
    pub fn has_more_to_do(&self) -> bool {
        self.is_begun() && self.session.borrow().file.state != SessionState::Complete
    }
}

/// Where answers to an agent's questions come from.
pub enum Answers<'i> {
    /// From whoever sits there.
    Typed(&'i RefCell<Box<dyn Input>>),
    /// From a recorded run.
    Recorded(RefCell<VecDeque<Option<String>>>),
    /// Nobody is there.
    Nowhere,
}

impl Answers<'_> {
    /// Whether the agent may ask questions.
    pub fn are_there(&self) -> bool {
        !matches!(self, Self::Nowhere)
    }
}

/// What a recorded run of an agent began with.
pub struct Recorded {
    /// What was asked for.
    pub request: Option<String>,
    /// What the user answered.
    pub answers: Answers<'static>,
    /// What was said before.
    pub conversation: Conversation,
    /// How far it could go; a run that was cut short does not tell.
    pub limits: Option<LimitsRecord>,
}

impl Recorded {
    /// Reads it, where a run is to be replayed.
    ///
    /// # Errors
    /// When there is no such run, or nothing was asked for in it.
    pub fn find(context: &Context<'_>, options: &AgentOptions) -> Result<Option<Self>, Error> {
        let Some(recording) = selection::find_recording(context, &options.choice)? else {
            return Ok(None);
        };
        let record: Option<RunRecord> = read(recording.folder(), RESULT);
        let record = record.and_then(|record| record.agent);
        // A run that was killed has no result.
        let record = record.or_else(|| read(recording.folder(), AGENT));
        let limits = record.as_ref().map(|record| record.limits);
        let (request, answers) = match record {
            Some(record) if record.interactive => {
                let answers = Answers::Recorded(RefCell::new(record.answers.into()));
                (record.request, answers)
            }
            Some(record) => (record.request, Answers::Nowhere),
            None => (None, Answers::Nowhere),
        };
        let conversation: Conversation = read(recording.folder(), CONVERSATION).unwrap_or_default();
        if request.is_none() && conversation.history.is_empty() {
            return Err(Error::NothingAsked);
        }
        Ok(Some(Self {
            request,
            answers,
            conversation,
            limits,
        }))
    }
}

/// What a file of a run's folder holds, where it can be read: a run that was cut short has no record.
fn read<T: DeserializeOwned>(folder: &Path, file: &str) -> Option<T> {
    serde_json::from_slice(&read_regular(&folder.join(file)).ok()?).ok()
}

/// Where agents keep what outlives them.
///
/// # Errors
/// When no variable says so.
pub fn home(context: &Context<'_>) -> Result<PathBuf, Error> {
    let home = home::directory(context.environment, System::current());
    Ok(home.map_err(NotReady::from)?)
}

/// The same, and what the user has set there.
///
/// # Errors
/// When the settings are wrong, or cannot be read or made.
pub fn settings(context: &Context<'_>) -> Result<(PathBuf, Settings), Error> {
    let home = home(context)?;
    let (settings, created) = Settings::load(&home, context.environment).map_err(NotReady::from)?;
    if let Some(created) = created {
        let made = format!("`{}` was made, with the defaults", created.display());
        context.reporter.event(&Event::Notice(made.clone()));
    }
    Ok((home, settings))
}

/// The paths of the settings and the sessions, and what they lead to where they are links.
fn own_paths(home: &Path) -> Vec<PathBuf> {
    let resolved = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let home = resolved(home.to_path_buf());
    let own = [settings::FILE, SESSIONS].map(|name| home.join(name));
    let targets = own.clone().map(resolved);
    own.into_iter().chain(targets).collect()
}

/// Where sessions are kept, less those that are too old.
///
/// # Errors
/// When the directory cannot be made.
pub fn sessions<'c>(
    context: &'c Context<'_>,
    home: &Path,
    settings: &Settings,
) -> Result<SessionStore<'c>, Error> {
    let store = SessionStore::at(home, context.redactor)?;
    let now = context.clock.now().to_utc();
    if let Err(problem) = store.clean(now, settings.session_retention_days) {
        // Old sessions are no reason to refuse a new one.
        context.reporter.event(&Event::Warning(problem.to_string()));
    }
    Ok(store)
}

/// The session that is meant, or a new one.
fn open_session(
    context: &Context<'_>,
    store: &SessionStore<'_>,
    which: SessionChoice,
    model: &str,
) -> Result<Session, Error> {
    let directory = context.project.root();
    let found = match which {
        SessionChoice::New => None,
        SessionChoice::Last => Some(store.last_in(directory)?),
        SessionChoice::Named(id) => store.has(id).then_some(id),
    };
    let session = if let Some(id) = found {
        let mut session = store.open(id)?;
        store.check_directory(&session, directory)?;
        model.clone_into(&mut session.file.model);
        session
    } else {
        let id = match which {
            SessionChoice::Named(id) => id,
            SessionChoice::New | SessionChoice::Last => Uuid::new_v4(),
        };
        let now = context.clock.now().with_timezone(&Utc);
        store.create(id, now, directory, model)?
    };
    context.reporter.event(&Event::Session {
        id: session.id().to_string(),
        resumed: found.is_some(),
    });
    Ok(session)
}
