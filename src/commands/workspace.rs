//! Everything that an agent needs to start: session, models, and the runner of its commands.

use std::cell::RefCell;
use std::mem::replace;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use super::agent_run::AgentSetup;
use super::answers::{AnswerSource, recorded};
use super::stored_session::{SessionChoice, SessionLog, StoredSession, report_session};
use super::talk::slash;
use super::{query, sessions};
use crate::agent::permissions::{DenyPaths, Permissions};
use crate::agent::session::{Session, SessionFile, SessionForm, SessionState, SessionStore};
use crate::agent::tools::command::{RunCommand, Shell};
use crate::agent::tools::files::ReadAccess;
use crate::agent::tools::resolved_path::resolved;
use crate::commands::cli::agent::AgentArgs;
use crate::commands::cli::build::SandboxArgs;
use crate::commands::error::CommandError;
use crate::exec::process::{Processes, SpawnOptions};
use crate::exec::subreaper;
use crate::project::home::{AgentHome, PERMISSIONS, SLASH_COMMANDS};
use crate::project::{CONFIG, LOGS, conventions, home};
use crate::record::event::Event;
use crate::record::result::{AgentRecord, LimitsRecord};
use crate::record::run_log::make_ignored_directory;
use crate::run::builds;
use crate::run::context::{Context, ModelChoice};
use crate::run::not_ready::NotReady;
use crate::run::selection::Models;
use crate::sys::error::Error;
use crate::ui::input::InputError;

/// Time limit of the build that proves an agent's work.
pub const PROOF_TIMEOUT: Duration = Duration::from_mins(30);

/// The options with which an agent is started.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// The task. A blank one continues the previous request; `None` if the user enters it at the terminal.
    pub request: Option<String>,
    /// The choice of a session.
    pub session: SessionChoice,
    /// The model to ask.
    pub choice: ModelChoice,
    /// The flags common to all agents.
    pub agent: AgentArgs,
}

impl AgentOptions {
    /// Combines an agent's own flags with those common to all agents. If the prompt is `-`, reads it from standard
    /// input.
    ///
    /// # Errors
    /// Fails if standard input is blank or cannot be read, or the prompt is a slash command.
    pub fn new(
        context: &Context<'_>,
        agent: &AgentArgs,
        prompt: Option<&str>,
        session: SessionChoice,
        choice: ModelChoice,
        has_own_commands: bool,
    ) -> Result<Self, Error> {
        let request = query::prompt(context, prompt)?;
        if let Some(request) = &request {
            slash::check_request(request, has_own_commands)?;
        }
        Ok(Self {
            request,
            session,
            choice: ModelChoice {
                replay: agent.replay.clone(),
                require_model: agent.calls.require_model,
                tier: agent.calls.tier,
                max_cost: agent.calls.max_cost,
                ..choice
            },
            agent: agent.clone(),
        })
    }

    /// Returns `true` if the session's previous request is to be continued.
    ///
    /// # Errors
    /// Fails if the session is new, and so has none.
    pub fn goes_on(&self) -> Result<bool, InputError> {
        let request = self.request.as_deref();
        let goes_on = request.is_some_and(|request| request.trim().is_empty());
        if goes_on && self.session == SessionChoice::New {
            return Err(InputError::Blank);
        }
        Ok(goes_on)
    }

    /// Returns the task, unless it is blank.
    pub fn asked(&self) -> Option<&str> {
        let request = self.request.as_deref();
        request.filter(|request| !request.trim().is_empty())
    }

    /// Returns `true` if the agent runs without a user.
    pub fn is_headless(&self) -> bool {
        self.request.is_some() || self.choice.replay.is_some()
    }
}

/// Everything that an agent with sessions needs to start.
pub struct Workspace<'c, F: SessionForm = SessionFile> {
    /// Limits of a run.
    pub limits: LimitsRecord,
    /// The models that the agents ask.
    pub models: Models<'c>,
    /// The session.
    pub stored: StoredSession<'c, F>,
    /// The agent's processes, which end with the workspace.
    pub processes: RefCell<Processes<'c>>,
    /// Commands that the user allows an auditor to run, each split into words.
    pub audit_commands: Vec<Vec<String>>,
    /// Paths that agents may not access, with links resolved.
    pub closed: Vec<PathBuf>,
    /// Record of the replayed run, if any.
    pub recorded: Option<AgentRecord>,
    /// The flags common to all agents.
    pub flags: AgentArgs,
    /// Warning for the record if commands should be sandboxed but are not.
    pub uncontained: Option<String>,
}

impl<'c, F: SessionForm> Workspace<'c, F> {
    /// Prepares a session and the runner of commands, which hides `key_file` from them.
    ///
    /// # Errors
    /// Fails if the sandbox cannot be used.
    pub fn of(
        context: &'c Context<'c>,
        options: &AgentOptions,
        mut stored: StoredSession<'c, F>,
        models: Models<'c>,
        limits: LimitsRecord,
        key_file: &Path,
    ) -> Result<Self, Error> {
        let session = stored.session.get_mut();
        let is_chosen = options.choice.model.is_some() || options.choice.replay.is_some();
        note_model(context, session, &models.first.spec.name, is_chosen);
        if options.choice.replay.is_some() {
            session.detach();
        }
        let (processes, uncontained) = processes(context, &options.agent.sandbox, key_file)?;
        Ok(Self {
            limits,
            models,
            stored,
            processes: RefCell::new(processes),
            audit_commands: Vec::new(),
            closed: closed_paths(context),
            recorded: None,
            flags: options.agent.clone(),
            uncontained,
        })
    }

    /// Switches to these models, with at most `limit` tokens per conversation.
    pub fn set_models(&mut self, models: Models<'c>, limit: Option<u64>) {
        self.models = models;
        self.limits.max_context_tokens = limit;
        let session = self.stored.session.get_mut();
        session.model().clone_from(&self.models.first.spec.name);
    }

    /// Returns the setup of a run on the session, for the command of this name.
    pub fn setup<'s>(&'s self, name: &'static str, answers: AnswerSource<'s>) -> AgentSetup<'s>
    where
        StoredSession<'c, F>: SessionLog,
    {
        AgentSetup {
            advice: Error::hint,
            name,
            models: &self.models,
            limits: self.limits,
            session: Some(&self.stored),
            answers,
            warnings: self.uncontained.iter().cloned().collect(),
            conventions: None,
            stops_at_no: false,
            changes: Some(self.flags.losses.into()),
            orchestration: None,
            mode: None,
            proof: None,
        }
    }

    /// Returns the agent's access to the project of this context.
    pub fn access<'p>(&'p self, context: &'p Context<'_>) -> ReadAccess<'p> {
        ReadAccess {
            root: context.project.root(),
            outside: self.flags.outside(),
            closed: &self.closed,
            interrupt: context.interrupt,
        }
    }

    /// Returns these permissions, except for the paths that agents may not access.
    pub fn closed_to<'p>(
        &'p self,
        context: &'p Context<'_>,
        permissions: &'p dyn Permissions,
    ) -> DenyPaths<'p> {
        DenyPaths {
            permissions,
            root: context.project.root(),
            paths: &self.closed,
            instead: None,
        }
    }

    /// Returns the tool that runs commands in this way, and writes their output to new files.
    pub fn command<'p>(
        &'p self,
        shell: Shell<'p>,
        output_files: &'p dyn Fn() -> PathBuf,
    ) -> RunCommand<'p, 'c> {
        RunCommand {
            processes: &self.processes,
            patience: self.limits.command_timeout(),
            shell,
            output_files,
        }
    }
}

impl Workspace<'_> {
    /// Restores the state at the start of the run to replay, if any, and returns its request and the user's answers.
    ///
    /// # Errors
    /// Fails if the run does not exist or contains no request.
    pub fn replay(
        &mut self,
        context: &Context<'_>,
        options: &AgentOptions,
    ) -> Result<Option<(Option<String>, AnswerSource<'static>)>, Error> {
        let Some(recorded) = recorded(context, &options.choice)? else {
            return Ok(None);
        };
        let record = self.recorded.insert(recorded.record);
        if record.request.is_none() && recorded.conversation.history.is_empty() {
            return Err(CommandError::NothingAsked.into());
        }
        self.limits = record.limits;
        self.stored.session.get_mut().conversation = recorded.conversation;
        Ok(Some((
            record.request.clone(),
            AnswerSource::recorded(record),
        )))
    }

    /// Returns the content of the project's `AGENTS.md`, if it exists; in a replay, the recorded content.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be used.
    pub fn conventions(&self, context: &Context<'_>) -> Result<Option<String>, String> {
        if let Some(recorded) = &self.recorded {
            let text = recorded.conventions.clone();
            return Ok(text.filter(|text| !text.is_empty()));
        }
        let read = conventions::read(context.project.root());
        let text = read.map_err(|problem| format!("`AGENTS.md` is not used: {problem}"))?;
        Ok(text.map(|text| context.redactor.text(&text).into_owned()))
    }

    /// Switches to another session, or to a new one.
    ///
    /// # Errors
    /// Fails if the session cannot be opened or created; the current session then stays open.
    pub fn change_session(
        &mut self,
        context: &Context<'_>,
        which: &SessionChoice,
    ) -> Result<(), Error> {
        let mut session = open_session(context, &self.stored.store, which)?;
        note_model(context, &mut session, &self.models.first.spec.name, false);
        *self.stored.session.get_mut() = session;
        Ok(())
    }

    /// Returns `true` if the session has a request.
    pub fn is_begun(&self) -> bool {
        !self.stored.session.borrow().conversation.history.is_empty()
    }

    /// Returns `true` if the session has an unfinished request.
    pub fn has_more_to_do(&self) -> bool {
        let session = self.stored.session.borrow();
        self.is_begun()
            && (session.file.state != SessionState::Complete || session.conversation.is_unapplied)
    }
}

/// Records the model that the session asks, and says so if it asked another one before, unless the user has chosen it.
fn note_model<F: SessionForm>(
    context: &Context<'_>,
    session: &mut Session<F>,
    name: &str,
    is_chosen: bool,
) {
    let before = replace(session.model(), name.to_owned());
    if !before.is_empty() && before != name && !is_chosen {
        let table = context.models.as_ref().ok();
        let is_known = table.is_some_and(|table| table.named(&before).is_some());
        let flag = is_known.then(|| format!(" (`--model {before}`)"));
        let flag = flag.unwrap_or_default();
        context.notice(format!(
            "`{name}` is asked; the session's last model was `{before}`{flag}"
        ));
    }
}

/// Opens the session of `dev` or `chat` in this home, and removes sessions unused for `days` days; 0 keeps them all.
///
/// # Errors
/// Fails if the session does not exist, or cannot be used or created.
pub fn stored<'c>(
    context: &'c Context<'_>,
    options: &AgentOptions,
    (agent, home): (&'static AgentHome, &Path),
    days: u32,
) -> Result<StoredSession<'c>, Error> {
    let store = sessions::store(context, agent, home, days);
    Ok(StoredSession {
        session: RefCell::new(open_session(context, &store, &options.session)?),
        store,
        clock: context.clock,
    })
}

/// Opens the chosen session, or creates a new one.
fn open_session(
    context: &Context<'_>,
    store: &SessionStore<'_, SessionFile>,
    which: &SessionChoice,
) -> Result<Session<SessionFile>, Error> {
    let directory = context.project.directory();
    let found = which.open(store, directory)?;
    let resumed = found.is_some();
    let create = || {
        let id = match which {
            SessionChoice::Named(id) => Uuid::try_parse(id).ok(),
            SessionChoice::New | SessionChoice::Last => None,
        };
        store.create(SessionFile::new(
            id.unwrap_or_else(Uuid::new_v4),
            context.clock.now().to_utc(),
            store.written(directory),
        ))
    };
    let session = found.map_or_else(create, Ok)?;
    report_session(context, &session, resumed);
    if session.conversation.is_unapplied {
        context.warn(
            "what the session last did in a scratch tree was not applied, and the agent is told so",
        );
    }
    Ok(session)
}

/// Checks that git ignores the key files and does not track them, and that `logs` and `agent-config`, where an agent
/// writes, are directories if they exist.
///
/// # Errors
/// Fails if git tracks a key file or does not ignore it, or `logs` or `agent-config` is not a directory.
pub fn check_project(context: &Context<'_>) -> Result<(), NotReady> {
    let project = &context.project;
    project
        .check_keys_ignored(&context.key_files())
        .and_then(|()| project.check_keys_untracked(&context.key_files()))
        .and_then(|()| project.check_directory(LOGS))
        .and_then(|()| project.check_directory(CONFIG))
        .map_err(NotReady::of)
}

/// Creates the runner of an agent's commands, which hides `key_file` and the project's own keys from them. Also returns
/// a warning for the run's record if the commands should be sandboxed but are not.
///
/// # Errors
/// Fails if a strict sandbox is not available, or the directories that git must ignore cannot be created.
fn processes<'c>(
    context: &'c Context<'_>,
    flags: &SandboxArgs,
    key_file: &Path,
) -> Result<(Processes<'c>, Option<String>), Error> {
    // The project may not be set up for this program yet, and agents commit everything that git does not ignore.
    for directory in [context.project.config(), context.project.logs()] {
        make_ignored_directory(&directory)?;
    }
    let (sandbox, uncontained) = builds::command_sandbox(context, flags.mode, key_file)?;
    let sandbox = sandbox.map(|sandbox| sandbox.with_hosts(&flags.allow_host));
    // Without a subreaper, daemonized processes may escape cleanup.
    let _ = subreaper::install();
    let processes = Processes::new(SpawnOptions {
        root: context.project.root(),
        program: context.sandbox.program,
        env: builds::command_env(context, flags.mode),
        clock: context.clock,
        interrupt: context.interrupt,
        redactor: context.redactor,
        sandbox,
        follower: Box::new(|printed| {
            context.reporter.event(&Event::Printed(printed.to_owned()));
        }),
    });
    Ok((processes, uncontained))
}

/// Returns the directory of an agent's home.
///
/// # Errors
/// Fails if the environment does not determine it.
pub fn home(context: &Context<'_>, agent: &AgentHome) -> Result<PathBuf, Error> {
    let home = agent.directory(context.environment);
    Ok(home.map_err(NotReady::of)?)
}

/// Returns the paths that the agents' file tools may not access, with links resolved: the homes of all agents, and the
/// project's files that control agents.
fn closed_paths(context: &Context<'_>) -> Vec<PathBuf> {
    let root = context.project.root();
    home::ALL
        .iter()
        .flat_map(|home| home.hidden(context.environment))
        .chain([PERMISSIONS, SLASH_COMMANDS].map(|path| root.join(path)))
        .map(|path| resolved(&path))
        // If a home contains the project, only its keys and sessions are closed.
        .filter(|path| !root.starts_with(path))
        .collect()
}
