//! Everything an agent starts with: settings, session, model, and a place where
//! its commands run.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use chrono::SubsecRound as _;
use uuid::Uuid;

use super::sessions;
use crate::agent::Compressed;
use crate::agent::conversation::Conversation;
use crate::agent::session::{
    self, Compression, SESSIONS, Session, SessionFile, SessionState, SessionStore,
};
use crate::agent::settings::{self, Settings};
use crate::agent::tool::Effect;
use crate::agent::tools::place::Outside;
use crate::commands::error::CommandError;
use crate::exec::hosts::AllowedHost;
use crate::exec::process::{Processes, SpawnOptions};
use crate::exec::sandbox::SandboxMode;
use crate::exec::subreaper;
use crate::model::Purpose;
use crate::model::usage::Usage;
use crate::project::conventions;
use crate::project::home::{AgentHome, DEV, System};
use crate::record::event::Event;
use crate::record::question::{Answer, Question};
use crate::record::replay::Recording;
use crate::record::result::{AgentRecord, LimitsRecord};
use crate::record::run_files::CONVERSATION;
use crate::record::run_log::make_ignored_directory;
use crate::record::seconds::Seconds;
use crate::record::step::Action;
use crate::run::context::{Context, ModelChoice};
use crate::run::not_ready::NotReady;
use crate::run::selection::Models;
use crate::run::{builds, selection};
use crate::sys::environment::Clock;
use crate::sys::error::Error;
use crate::sys::files::{self, Links};
use crate::ui::history;
use crate::ui::input::User;

/// Choice of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    New,
    /// The last one of the directory.
    Last,
    /// The one of this id.
    Named(String),
}

impl SessionChoice {
    /// The one of this id, where there is an id; else the last or a new one.
    pub fn of(id: Option<impl ToString>, resumes: bool) -> Self {
        match id {
            Some(id) => Self::Named(id.to_string()),
            None if resumes => Self::Last,
            None => Self::New,
        }
    }
}

/// Options of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOptions {
    /// The task. A blank request goes on with what was asked for before; `None`: the user says it at
    /// the terminal.
    pub request: Option<String>,
    /// The session.
    pub session: SessionChoice,
    /// The model to ask.
    pub choice: ModelChoice,
    /// The sandbox of commands.
    pub sandbox: SandboxMode,
    /// Hosts that commands may reach, in a strict sandbox.
    pub hosts: Vec<AllowedHost>,
    /// Access outside the current directory.
    pub outside: Outside,
}

impl AgentOptions {
    /// Returns `true` if no user takes part.
    pub fn is_headless(&self) -> bool {
        self.request.is_some() || self.choice.replay.is_some()
    }
}

/// Keeps the conversation and the progress of a run.
pub trait Keeping {
    /// The session's name.
    fn id(&self) -> String;

    /// The conversation.
    fn conversation(&self) -> Conversation;

    /// Index of the first message of the request under way, if the profile needs it.
    fn from(&self) -> usize {
        0
    }

    /// A further request follows: what is done, is not asked for any more.
    fn settle(&self);

    /// Records the progress of the work.
    ///
    /// # Errors
    /// When that cannot be kept.
    fn note_state(&self, state: SessionState) -> Result<(), Error>;

    /// Keeps what was said by an agent of this purpose and to it.
    ///
    /// # Errors
    /// When that cannot be kept.
    fn keep(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error>;

    /// Records the usage that the vendor reports for a call for an agent of this purpose.
    fn answered(&self, _purpose: &Purpose, _usage: &Usage) {}

    /// Notes that a tool was used, or was to be; the effect is that of the tool, where an agent has called one.
    fn acted(&self, _action: &Action, _effect: Option<Effect>) {}

    /// Notes that the agents' tools have changed these files, by their paths from the root.
    fn wrote(&self, _paths: &[String]) {}

    /// Records the tokens of a call for an agent of this purpose.
    fn count(&self, _purpose: &Purpose, _tokens: u64) {}

    /// Notes that the conversation was compressed.
    fn compressed(&self, _purpose: &Purpose, _compressed: Compressed) {}
}

/// The session that a run's conversation is kept in.
pub struct KeptSession<'s> {
    /// The conversation, which grows as the agent works.
    pub session: RefCell<Session<SessionFile>>,
    /// The store.
    pub store: SessionStore<'s, SessionFile>,
    /// Gives the time of a save.
    pub clock: &'s dyn Clock,
}

impl KeptSession<'_> {
    /// Changes the session, and keeps it.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn change(&self, change: impl FnOnce(&mut Session<SessionFile>)) -> Result<(), Error> {
        let mut session = self.session.borrow_mut();
        change(&mut session);
        Ok(self.store.save(&mut session, self.clock.now().to_utc())?)
    }
}

impl Keeping for KeptSession<'_> {
    fn id(&self) -> String {
        self.session.borrow().id.to_string()
    }

    fn conversation(&self) -> Conversation {
        self.session.borrow().conversation.clone()
    }

    fn settle(&self) {
        let mut session = self.session.borrow_mut();
        if matches!(
            session.state,
            SessionState::Complete | SessionState::Interrupted
        ) {
            session.conversation.settle();
        }
    }

    fn note_state(&self, state: SessionState) -> Result<(), Error> {
        self.change(|session| session.file.state = state)
    }

    fn keep(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error> {
        // What an auditor or a helper says to itself is in the run's folder.
        if *purpose != Purpose::STEP {
            return Ok(());
        }
        self.change(|session| session.conversation.clone_from(conversation))
    }

    fn count(&self, _purpose: &Purpose, tokens: u64) {
        let file = &mut self.session.borrow_mut().file;
        file.total_tokens = file.total_tokens.saturating_add(tokens);
    }

    fn compressed(&self, purpose: &Purpose, compressed: Compressed) {
        if *purpose != Purpose::STEP {
            return;
        }
        self.session.borrow_mut().compressed(Compression {
            timestamp: self.clock.now().to_utc().trunc_subsecs(3),
            tokens_before: compressed.tokens_before,
            tokens_after: compressed.tokens_after,
        });
    }
}

/// Everything an agent with sessions starts with.
pub struct Workspace<'c> {
    /// Limits of a run.
    pub limits: LimitsRecord,
    /// The models that the agents ask.
    pub models: Models<'c>,
    /// The session.
    pub kept: KeptSession<'c>,
    /// The agent's processes. Ended with the workspace.
    pub processes: RefCell<Processes<'c>>,
    /// Access outside the current directory.
    pub outside: Outside,
    /// The commands that the user allows an auditor, each as its words.
    pub audit_commands: Vec<Vec<String>>,
    /// Paths that are closed to agents, links resolved.
    pub closed: Vec<PathBuf>,
    /// The record of the run that is replayed, if any.
    pub recorded: Option<AgentRecord>,
    /// Warning for the record if commands are not sandboxed, though they should be.
    pub uncontained: Option<String>,
}

/// The parts of a workspace that a system brings.
pub struct Parts<'p, 'c> {
    /// The system's home, and its directory.
    pub home: (&'static AgentHome, &'p Path),
    /// Days after which unused sessions are removed; 0 for never.
    pub retention_days: u32,
    /// The file of the home that commands do not see.
    pub key_file: &'p str,
    /// The models that the agents ask.
    pub models: Models<'c>,
    /// Limits of a run.
    pub limits: LimitsRecord,
    /// Paths that are closed to agents, links resolved.
    pub closed: Vec<PathBuf>,
}

impl<'c> Workspace<'c> {
    /// Sets it up for `dev`.
    ///
    /// # Errors
    /// When something is missing or wrong: a key that git does not ignore or tracks, settings, model, session, sandbox.
    pub fn open(context: &'c Context<'c>, options: &AgentOptions) -> Result<Self, Error> {
        check_keys(context)?;
        let (home, settings) = settings(context)?;
        let models =
            selection::agent_model(context, &options.choice, &settings.model, settings.server())?;
        models.tell_base_urls(context);
        for end in models.warnings(context) {
            context.warn(end);
        }
        let limits = LimitsRecord {
            max_context_tokens: Some(context_limit(&settings, &models)),
            max_retries: settings.max_retries,
            max_retries_automated: settings.max_retries_automated,
            max_loops: settings.max_loops,
            command_timeout: Some(Seconds(settings.command_timeout)),
        };
        let parts = Parts {
            home: (&DEV, &home),
            retention_days: settings.session_retention_days,
            key_file: settings::FILE,
            models,
            limits,
            closed: own_paths(&home, &[settings::FILE, SESSIONS, history::FILE]),
        };
        Ok(Self {
            audit_commands: settings.audit_commands,
            ..Self::of(context, options, parts)?
        })
    }

    /// Opens the session and prepares commands.
    ///
    /// # Errors
    /// When the session or the sandbox cannot be used.
    pub fn of(
        context: &'c Context<'c>,
        options: &AgentOptions,
        parts: Parts<'_, 'c>,
    ) -> Result<Self, Error> {
        let (agent, home) = parts.home;
        let store = sessions::store(context, agent, home, parts.retention_days)?;
        let model = &parts.models.first.spec.name;
        let mut session = open_session(context, &store, options.session.clone(), model)?;
        if options.choice.replay.is_some() {
            session.detach();
        }
        let key_file = home.join(parts.key_file);
        let (processes, uncontained) =
            processes(context, options.sandbox, &options.hosts, &key_file)?;
        Ok(Self {
            limits: parts.limits,
            models: parts.models,
            kept: KeptSession {
                session: RefCell::new(session),
                store,
                clock: context.clock,
            },
            processes: RefCell::new(processes),
            outside: options.outside,
            audit_commands: Vec::new(),
            closed: parts.closed,
            recorded: None,
            uncontained,
        })
    }

    /// Goes back to where the run began that is to be replayed, if any; what was asked for in it, and what the
    /// user answered.
    ///
    /// # Errors
    /// When there is no such run, or nothing was asked for in it.
    pub fn replay(
        &mut self,
        context: &Context<'_>,
        options: &AgentOptions,
    ) -> Result<Option<(Option<String>, AnswerSource<'static>)>, Error> {
        let Some(Recorded {
            record,
            conversation,
            ..
        }) = recorded(context, &options.choice)?
        else {
            return Ok(None);
        };
        if record.request.is_none() && conversation.history.is_empty() {
            return Err(CommandError::NothingAsked.into());
        }
        self.limits = record.limits;
        self.kept.session.get_mut().conversation = conversation;
        let record = self.recorded.insert(record);
        Ok(Some((
            record.request.clone(),
            AnswerSource::recorded(record),
        )))
    }

    /// Content of the project's `AGENTS.md`, if there is one; of a recorded run, as it was then.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn conventions(&self, context: &Context<'_>) -> Result<Option<String>, String> {
        if let Some(recorded) = &self.recorded {
            let text = recorded.conventions.clone();
            return Ok(text.filter(|text| !text.is_empty()));
        }
        let read = conventions::read(context.project.root());
        let text = read.map_err(|problem| format!("`AGENTS.md` is not used: {problem}"))?;
        Ok(text.map(|text| context.redactor.text(&text).into_owned()))
    }

    /// Switches `dev` to another model: one of the table, or the user's own again.
    ///
    /// # Errors
    /// When there is none of that name, or it lacks something.
    pub fn choose_model(
        &mut self,
        context: &'c Context<'c>,
        options: &AgentOptions,
        name: &str,
    ) -> Result<(), Error> {
        let (_, settings) = settings(context)?;
        let choice = ModelChoice {
            model: (name != settings.model).then(|| name.to_owned()),
            ..options.choice.clone()
        };
        let models = selection::agent_model(context, &choice, &settings.model, settings.server())?;
        models.tell_base_urls(context);
        let limit = context_limit(&settings, &models);
        self.set_models(models, Some(limit));
        Ok(())
    }

    /// Asks these models from now on, with at most `limit` tokens.
    pub fn set_models(&mut self, models: Models<'c>, limit: Option<u64>) {
        self.models = models;
        self.limits.max_context_tokens = limit;
        let session = self.kept.session.get_mut();
        session.file.model.clone_from(&self.models.first.spec.name);
    }

    /// Goes on with another session, or with a new one.
    ///
    /// # Errors
    /// When it cannot be opened or made; the session is then the same as before.
    pub fn change_session(
        &mut self,
        context: &Context<'_>,
        which: SessionChoice,
    ) -> Result<(), Error> {
        let model = &self.models.first.spec.name;
        *self.kept.session.get_mut() = open_session(context, &self.kept.store, which, model)?;
        Ok(())
    }

    /// Tests if the session has a request.
    pub fn is_begun(&self) -> bool {
        !self.kept.session.borrow().conversation.history.is_empty()
    }

    /// Tests if the session has an unfinished request.
    pub fn has_more_to_do(&self) -> bool {
        self.is_begun() && self.kept.session.borrow().file.state != SessionState::Complete
    }
}

/// Checks that git ignores the keys and does not track them.
///
/// # Errors
/// When it does.
pub fn check_keys(context: &Context<'_>) -> Result<(), NotReady> {
    let project = &context.project;
    project
        .check_keys_ignored(context.key_files())
        .and_then(|()| project.check_keys_untracked(context.key_files()))
        .map_err(NotReady::of)
}

/// The runner of an agent's commands, with `key_file` hidden from them besides the project's own keys; and what the
/// run's record is to say where they are not sandboxed, though they should be.
///
/// # Errors
/// When there is no strict sandbox, or the directories that are to be out of git's sight cannot be made.
pub fn processes<'c>(
    context: &'c Context<'_>,
    mode: SandboxMode,
    hosts: &[AllowedHost],
    key_file: &Path,
) -> Result<(Processes<'c>, Option<String>), Error> {
    // Many a project is not set up for this program, and an agent commits what git does not ignore.
    for directory in [context.project.config(), context.project.logs()] {
        make_ignored_directory(&directory)?;
    }
    let (sandbox, uncontained) = builds::command_sandbox(context, mode, key_file)?;
    let sandbox = sandbox.map(|sandbox| sandbox.with_hosts(hosts));
    // Where that is refused, fewer are found of those that hide.
    let _ = subreaper::install();
    let processes = Processes::new(SpawnOptions {
        root: context.project.root(),
        program: context.program,
        env: builds::command_env(context, mode),
        clock: context.clock,
        interrupt: context.interrupt,
        redactor: context.redactor,
        sandbox,
        follower: Some(Box::new(|printed| {
            let printed = printed.to_owned();
            context.reporter.event(&Event::Printed(printed));
        })),
    });
    Ok((processes, uncontained))
}

/// Limit of a conversation, in tokens.
fn context_limit(settings: &Settings, models: &Models<'_>) -> u64 {
    let window = models.first.spec.prompt_window().unwrap_or(u64::MAX);
    settings.max_context_tokens.min(window)
}

/// Asks a user at a screen for leave to do what a preview shows; fails when the run is over.
pub type Ask<'a> = &'a dyn Fn(&Question, Option<&str>) -> Result<Answer, Error>;

/// Source of answers to an agent's questions.
pub enum AnswerSource<'i> {
    /// The user at the terminal.
    Typed(&'i User),
    /// The user at a screen.
    Screen(Ask<'i>),
    /// A recorded run.
    Recorded(RefCell<RecordedAnswers>),
    /// Nobody is there.
    Nowhere,
}

/// The questions of a recorded run, where they are known, and their answers, as far as they were not given again.
pub struct RecordedAnswers(VecDeque<(Option<String>, Option<String>)>);

impl RecordedAnswers {
    /// The answer to this question. One that was not asked in the run has none: another's yes is not its own.
    pub fn to(&mut self, question: &str) -> Option<String> {
        let is_it = |asked: &Option<String>| asked.as_deref().is_none_or(|asked| asked == question);
        let at = self.0.iter().position(|(asked, _)| is_it(asked))?;
        // Those before it are asked no more: what they were about has gone another way.
        self.0.drain(..=at).next_back()?.1
    }
}

impl AnswerSource<'_> {
    /// The answers of a recorded run.
    pub fn recorded(record: &AgentRecord) -> Self {
        if !record.interactive {
            return Self::Nowhere;
        }
        let asked = record.asked();
        let asked = asked.map(|(question, answer)| {
            let [question, answer] = [question, answer].map(|text| text.map(str::to_owned));
            (question, answer)
        });
        Self::Recorded(RefCell::new(RecordedAnswers(asked.collect())))
    }

    /// Tests if the agent may ask questions.
    pub fn are_there(&self) -> bool {
        !matches!(self, Self::Nowhere)
    }
}

/// The beginning of a run that is replayed.
pub struct Recorded {
    /// The run.
    pub recording: Recording,
    /// The request, the limits and the answers.
    pub record: AgentRecord,
    /// The conversation before the run.
    pub conversation: Conversation,
}

/// The run that is to be replayed, if any.
///
/// # Errors
/// When there is no such run, or nothing was asked for in it.
pub fn recorded(context: &Context<'_>, choice: &ModelChoice) -> Result<Option<Recorded>, Error> {
    let Some(recording) = selection::find_recording(context, choice)? else {
        return Ok(None);
    };
    let record = recording.agent().ok_or(CommandError::NothingAsked)?;
    // It may be as large as a session. A run that began a session has none.
    let path = recording.folder().join(CONVERSATION);
    let conversation = files::read(&path, Links::Refused, session::LARGEST)
        .ok()
        .and_then(|content| serde_json::from_slice(&content).ok())
        .unwrap_or_default();
    Ok(Some(Recorded {
        recording,
        record,
        conversation,
    }))
}

/// The directory of a system's home.
///
/// # Errors
/// When no variable says so.
pub fn home(context: &Context<'_>, agent: &AgentHome) -> Result<PathBuf, Error> {
    let home = agent.directory(context.environment, System::current());
    Ok(home.map_err(NotReady::of)?)
}

/// Home of `dev`, and the user's settings in it.
///
/// # Errors
/// When the settings are wrong, or cannot be read or made.
pub fn settings(context: &Context<'_>) -> Result<(PathBuf, Settings), Error> {
    let home = home(context, &DEV)?;
    let (settings, created) = Settings::load(&home, context.environment).map_err(NotReady::of)?;
    if let Some(created) = created {
        let path = created.display();
        let Settings { api_url, model, .. } = Settings::default();
        let url = api_url.unwrap_or_default();
        context.notice(format!(
            "`{path}` was made, with the defaults: the model `{model}` at `{url}`; `dev config` changes them, and \
             `--model NAME` asks a model of `code-commit models` instead"
        ));
    }
    Ok((home, settings))
}

/// The paths of these files in a system's home, and what they lead to where they are links.
pub fn own_paths(home: &Path, names: &[&str]) -> Vec<PathBuf> {
    let resolved = |path: PathBuf| path.canonicalize().unwrap_or(path);
    let home = resolved(home.to_path_buf());
    let own = names.iter().map(|name| home.join(name));
    own.flat_map(|path| [path.clone(), resolved(path)])
        .collect()
}

/// The session that is meant, or a new one.
///
/// # Errors
/// When there is no such session, or it cannot be used or made.
pub fn open_session(
    context: &Context<'_>,
    store: &SessionStore<'_, SessionFile>,
    which: SessionChoice,
    model: &str,
) -> Result<Session<SessionFile>, Error> {
    let directory = context.directory;
    let found = match &which {
        SessionChoice::New => None,
        SessionChoice::Last => Some(store.last_in(directory)?),
        SessionChoice::Named(id) => store.has(id).then(|| id.clone()),
    };
    let session = if let Some(id) = &found {
        let mut session = store.open(id)?;
        store.check_directory(&session, directory)?;
        model.clone_into(&mut session.model);
        session
    } else {
        let id = match which {
            SessionChoice::Named(id) => Uuid::try_parse(&id).ok(),
            SessionChoice::New | SessionChoice::Last => None,
        };
        let now = context.clock.now().to_utc();
        store.create(SessionFile::new(
            id.unwrap_or_else(Uuid::new_v4),
            now,
            store.written(directory),
            model,
        ))?
    };
    context.reporter.event(&Event::Session {
        id: session.id.to_string(),
        resumed: found.is_some(),
    });
    Ok(session)
}
