//! What the agent at the terminal has before it begins: settings, models, session, permissions, context, commands.
//!
//! Reads the files of the user's and of the project's that it is told of, and makes the home.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use super::login::ChatKey;
use super::{ChatOptions, models};
use crate::agent::chat::accounts::key::AccountKey;
use crate::agent::chat::commands::{self, CommandFile};
use crate::agent::chat::context::ContextFiles;
use crate::agent::chat::permissions::file::PermissionFile;
use crate::agent::chat::permissions::{NotPermitted, closed_paths};
use crate::agent::chat::reminders::Reminders;
use crate::agent::chat::seen::SeenFiles;
use crate::agent::chat::settings::ChatSettings;
use crate::agent::conversation::{Conversation, HistoryMessage, transcript};
use crate::agent::home::{CHAT, System};
use crate::agent::memory::Compressed;
use crate::agent::memory::truncate::{Meter, sent, tokens_of};
use crate::agent::session::{SessionState, SessionStore};
use crate::agent::tools::place::Outside;
use crate::exec::process::Processes;
use crate::model::message::{ReplyPart, Role, Thought};
use crate::model::usage::Usage;
use crate::model::{ModelTable, Purpose};
use crate::project::mode::SharedMode;
use crate::record::run_files::CONVERSATION;
use crate::record::todos::Todo;
use crate::record::{Action, LimitsRecord, Seconds, input_text};
use crate::ui::Event;
use crate::ui::tui::{CommandHint, Entry, Menu};
use crate::workflow::Context;
use crate::workflow::error::Error;
use crate::workflow::keeping::Keeping;
use crate::workflow::run::not_ready::NotReady;
use crate::workflow::run::selection::{self, Models};
use crate::workflow::workspace::{
    self, AnswerSource, KeptSession, SessionChoice, check_keys, open_session, processes,
};

/// Where a project's commands are, from its root on.
const COMMANDS: &str = ".agent/commands";
/// How many replies in a row may not be understood.
const TRIES: u32 = 5;
/// How many calls to the model a request may take.
const MOST_LOOPS: u16 = 500;
/// How long a command has to end by itself where the user stops it: they wait for that.
const GRACE: Duration = Duration::from_millis(300);
/// How long a command may take before it goes on in the background, unless its call says otherwise.
const PATIENCE: Duration = Duration::from_secs(120);
/// The window of a model whose entry says none, in tokens.
const USUAL_WINDOW: u64 = 200_000;

/// Where the agent keeps what is its user's.
///
/// # Errors
/// When no variable says so.
pub fn home(context: &Context<'_>) -> Result<PathBuf, Error> {
    let home = CHAT.directory(context.environment, System::current());
    Ok(home.map_err(NotReady::from)?)
}

/// What the user has set there.
///
/// # Errors
/// When there is a mistake in it.
pub fn settings(home: &Path) -> Result<ChatSettings, Error> {
    Ok(ChatSettings::load(home).map_err(NotReady::from)?)
}

/// The session of an agent at the terminal: what is kept of it besides what was said.
pub struct KeptChat<'c> {
    /// The session.
    pub inner: KeptSession<'c>,
    /// Knows how full the model's window is.
    pub meter: Meter,
    /// What is to be done.
    pub todos: RefCell<Vec<Todo>>,
    /// Whether a call was made since the reminders were looked at last.
    pub asked: Cell<bool>,
    /// Whether the conversation is another since, or shorter: what it was told of the project is to be told anew.
    pub is_renewed: Cell<bool>,
    /// The tools that were used since the model was told last, and their paths.
    pub acted: RefCell<Vec<(String, Option<String>)>>,
}

impl Keeping for KeptChat<'_> {
    fn id(&self) -> String {
        self.inner.id()
    }

    fn conversation(&self) -> Conversation {
        self.inner.conversation()
    }

    fn settle(&self) {
        self.inner.settle();
    }

    fn note_state(&self, state: SessionState) -> Result<(), Error> {
        self.inner.note_state(state)
    }

    fn keep(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error> {
        if *purpose != Purpose::STEP {
            return Ok(());
        }
        self.inner.change(|session| {
            session.conversation.clone_from(conversation);
            session.conversation.todos.clone_from(&self.todos.borrow());
        })
    }

    fn acted(&self, action: &Action) {
        let path = action
            .input
            .as_ref()
            .and_then(|input| input["path"].as_str());
        let acted = (action.tool.to_string(), path.map(str::to_owned));
        self.acted.borrow_mut().push(acted);
    }

    fn count(&self, purpose: &Purpose, tokens: u64) {
        if *purpose == Purpose::STEP {
            self.asked.set(true);
        }
        self.inner.count(purpose, tokens);
    }

    fn answered(&self, purpose: &Purpose, usage: &Usage) {
        if *purpose == Purpose::STEP {
            self.meter.answered(usage);
        }
    }

    fn compressed(&self, purpose: &Purpose, compressed: Compressed) {
        if *purpose == Purpose::STEP {
            self.is_renewed.set(true);
        }
        self.inner.compressed(purpose, compressed);
    }
}

/// What the agent has.
pub struct ChatPlace<'c> {
    /// Where what is its user's is kept.
    pub home: PathBuf,
    /// What the user has set.
    pub settings: ChatSettings,
    /// The models that there are.
    pub table: ModelTable,
    /// The one that is asked.
    pub models: Models<'c>,
    /// The account that pays for it.
    key: ChatKey,
    /// The session.
    pub kept: KeptChat<'c>,
    /// How far the agent can go.
    pub limits: LimitsRecord,
    /// What the agent has started. Ended with the place.
    pub processes: RefCell<Processes<'c>>,
    /// What the record of a run is to say where commands are not sandboxed, though they should be.
    pub uncontained: Option<String>,
    /// Whether it may leave the project.
    pub outside: Outside,
    /// How freely it may act.
    pub mode: SharedMode,
    /// What is allowed for good.
    pub permissions: RefCell<PermissionFile>,
    /// What nobody was there to allow.
    pub refused: RefCell<NotPermitted>,
    /// The paths that are not for the agent's tools, links resolved.
    pub closed: Vec<PathBuf>,
    /// What the project tells the agent.
    pub context_files: RefCell<ContextFiles>,
    /// What the model is told of how things stand.
    pub reminders: RefCell<Reminders>,
    /// The files that it has seen.
    pub seen: RefCell<SeenFiles>,
    /// The commands that the user has written.
    pub commands: Vec<CommandFile>,
    /// Whether what looks like credentials is sent.
    pub allow_secrets: bool,
    /// What the user should look at.
    warnings: Vec<String>,
}

impl<'c> ChatPlace<'c> {
    /// Sets it up.
    ///
    /// # Errors
    /// When something is missing or wrong: settings, models, permissions, session, sandbox.
    pub fn open(
        context: &'c Context<'c>,
        options: &ChatOptions,
        key: ChatKey,
    ) -> Result<Self, Error> {
        check_keys(context)?;
        let root = context.project.root();
        let home = home(context)?;
        let settings = settings(&home)?;
        let table = models::table(context, &home)?;
        let models = models::models(context, &options.choice, &table, &key)?;
        let mut warnings = models.warnings(context);
        let permissions = PermissionFile::load(root).map_err(NotReady::from)?;
        let (context_files, unused) = ContextFiles::load(root, context.directory);
        let (commands, bad) = commands_of(root, &home);
        warnings.extend(unused.into_iter().chain(bad));
        // Who can be asked for a key may come without.
        if options.request.is_some() {
            key.required()?;
        }
        let store = SessionStore::at(&CHAT, &home, context.redactor)?;
        let model = &models.first.spec.name;
        let mut session = open_session(context, &store, options.session, model)?;
        if options.choice.replay.is_some() {
            session.detach();
        }
        let key_file = home.join(crate::agent::chat::accounts::FILE);
        let (processes, uncontained) =
            processes(context, options.sandbox, &options.hosts, &key_file)?;
        session.conversation.thinks_as(&thinker(&key, model));
        let window = models.first.spec.prompt_window();
        Ok(Self {
            limits: LimitsRecord {
                max_context_tokens: window,
                max_retries: TRIES,
                max_retries_automated: TRIES,
                max_loops: MOST_LOOPS,
                command_timeout: Some(Seconds(PATIENCE)),
            },
            closed: closed_paths(root, &home),
            kept: KeptChat {
                todos: RefCell::new(session.conversation.todos.clone()),
                inner: KeptSession {
                    session: RefCell::new(session),
                    store,
                    clock: context.clock,
                },
                meter: Meter::default(),
                asked: Cell::default(),
                is_renewed: Cell::default(),
                acted: RefCell::default(),
            },
            processes: RefCell::new(processes.with_grace(GRACE)),
            uncontained,
            outside: options.outside,
            mode: SharedMode::new(options.mode),
            permissions: RefCell::new(permissions),
            refused: RefCell::default(),
            context_files: RefCell::new(context_files),
            reminders: RefCell::default(),
            seen: RefCell::default(),
            commands,
            allow_secrets: options.choice.allow_secrets,
            warnings,
            home,
            settings,
            table,
            models,
            key,
        })
    }

    /// Goes back to where the run began that is to be replayed, if any; what was asked for in it, and what the user
    /// answered.
    ///
    /// # Errors
    /// When there is no such run, or nothing was asked for in it.
    pub fn replay(
        &mut self,
        context: &Context<'_>,
        options: &ChatOptions,
    ) -> Result<Option<(Option<String>, AnswerSource<'static>)>, Error> {
        let Some(recording) = selection::find_recording(context, &options.choice)? else {
            return Ok(None);
        };
        let conversation = workspace::read(recording.folder(), CONVERSATION);
        let conversation: Conversation = conversation.unwrap_or_default();
        let record = recording.agent().ok_or(Error::NothingAsked)?;
        let answers = AnswerSource::recorded(&record);
        self.limits = record.limits;
        if let Some(mode) = record.mode {
            self.mode.set(mode);
        }
        self.kept.inner.session.get_mut().conversation = conversation;
        Ok(Some((record.request, answers)))
    }

    /// Sees that there is a key, where one is needed.
    ///
    /// # Errors
    /// When there is none.
    pub fn check_key(&self) -> Result<(), Error> {
        if self.models.is_replay {
            return Ok(());
        }
        self.key.required().map(drop)
    }

    /// Notes what is to be done, and shows it.
    pub fn update_todos(&self, context: &Context<'_>, todos: Vec<Todo>) {
        context.reporter.event(&Event::Todos(todos.clone()));
        self.kept.todos.replace(todos);
    }

    /// The session's id.
    pub fn id(&self) -> Uuid {
        self.kept.inner.session.borrow().id()
    }

    /// Tells what the user should look at, behind what was said before.
    pub fn tell_warnings(&self, context: &Context<'_>) {
        self.models.tell_base_urls(context);
        for warning in &self.warnings {
            context.warn(warning.clone());
        }
    }

    /// Whether anything was ever asked for in the session.
    pub fn is_begun(&self) -> bool {
        self.requests() > 0
    }

    /// How many requests the user has made in the session.
    pub fn requests(&self) -> usize {
        let session = self.kept.inner.session.borrow();
        session.conversation.requests.len()
    }

    /// How many tokens the model takes.
    pub fn window(&self) -> u64 {
        self.limits.max_context_tokens.unwrap_or(USUAL_WINDOW)
    }

    /// How many of them the conversation has.
    pub fn used(&self) -> u64 {
        let session = self.kept.inner.session.borrow();
        let counted = self.kept.meter.used(&session.conversation);
        // Of a session that is taken up, the vendor has counted nothing yet.
        if counted == 0 {
            return tokens_of(&sent(&session.conversation));
        }
        counted
    }

    /// How many tokens the session has taken so far.
    pub fn tokens(&self) -> u64 {
        self.kept.inner.session.borrow().file.total_tokens
    }

    /// What tells the account that pays from others; `None`: there is none.
    pub fn account(&self) -> Option<String> {
        self.key.found().ok().map(AccountKey::identity)
    }

    /// What was said so far, for the screen.
    pub fn transcript(&self) -> Vec<Entry> {
        let session = self.kept.inner.session.borrow();
        entries(&session.conversation)
    }

    /// The agent's last words, if it has said any.
    pub fn last_words(&self) -> Option<String> {
        let session = self.kept.inner.session.borrow();
        let history = session.conversation.history.iter().rev();
        // What answers an earlier request does not answer this one.
        let mut since = history.take_while(|said| said.role != Role::User || said.is_tagged);
        let said =
            since.find(|said| said.role == Role::Assistant && !said.content.trim().is_empty())?;
        Some(said.content.clone())
    }

    /// What stands on the terminal in the end: the last exchange, and how to go on.
    pub fn farewell(&self) -> String {
        let session = self.kept.inner.session.borrow();
        let Some(request) = session.conversation.requests.last() else {
            return String::new();
        };
        let words = self.last_words();
        let words = words.map(|words| format!("\n\n{words}"));
        format!(
            "> {request}{}\n\ncode-commit chat --session {}\n",
            words.unwrap_or_default(),
            session.id()
        )
    }

    /// All commands that can be typed, the user's own behind those of the program.
    pub fn hints(&self) -> Vec<CommandHint> {
        let own = self.commands.iter().map(|command| CommandHint {
            name: command.name.clone(),
            argument: command.argument_hint.clone(),
            description: command.description.clone(),
        });
        super::slash::hints().into_iter().chain(own).collect()
    }

    /// The user's own command of this name.
    pub fn command(&self, name: &str) -> Option<&CommandFile> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// Reads the user's commands anew.
    pub fn reload_commands(&mut self, context: &Context<'_>) {
        let (commands, bad) = commands_of(context.project.root(), &self.home);
        for warning in bad {
            context.warn(warning);
        }
        self.commands = commands;
    }

    /// All that was said, as a text.
    pub fn transcript_text(&self) -> String {
        let session = self.kept.inner.session.borrow();
        let Conversation {
            earlier, history, ..
        } = &session.conversation;
        format!(
            "{}{}",
            transcript(earlier, usize::MAX),
            transcript(history, usize::MAX)
        )
    }

    /// The name of the model at this place of the menu.
    pub fn model_at(&self, at: usize) -> String {
        let model = self.table.models().get(at);
        model.map(|spec| spec.name.clone()).unwrap_or_default()
    }

    /// The models to choose from, those besides that the vendor tells of.
    pub fn model_menu(&mut self, context: &Context<'_>) -> Menu {
        // What the vendor adds is told where it can be had.
        let listed = self.key.found().ok().and_then(|found| {
            let server = super::login::server(context, &found.key).ok()?;
            server.models().ok()
        });
        self.table.add_listed(listed.as_deref().unwrap_or_default());
        let current = &self.models.first.spec.name;
        models::menu(&self.table, listed.as_deref(), current)
    }

    /// Has another model asked from now on.
    ///
    /// # Errors
    /// When there is none of that name, or it is retired.
    pub fn choose_model(
        &mut self,
        context: &'c Context<'c>,
        options: &ChatOptions,
        name: &str,
    ) -> Result<(), Error> {
        let choice = crate::workflow::ModelChoice {
            model: Some(name.to_owned()),
            ..options.choice.clone()
        };
        self.models = models::models(context, &choice, &self.table, &self.key)?;
        let spec = &self.models.first.spec;
        self.limits.max_context_tokens = spec.prompt_window();
        let thinker = thinker(&self.key, &spec.name);
        let session = self.kept.inner.session.get_mut();
        session.file.model.clone_from(&spec.name);
        session.conversation.thinks_as(&thinker);
        Ok(())
    }

    /// The other sessions of this directory, the newest first, each with a line that tells of it.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn sessions_here(&self, context: &Context<'_>) -> Result<Vec<(Uuid, String)>, Error> {
        self.kept.inner.others_in(context)
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
        let mut session = open_session(context, &self.kept.inner.store, which, model)?;
        session.conversation.thinks_as(&thinker(&self.key, model));
        self.kept.meter.reset();
        self.kept.todos.replace(session.conversation.todos.clone());
        self.reminders.take();
        self.seen.take();
        self.kept.acted.take();
        self.kept.is_renewed.set(true);
        *self.kept.inner.session.get_mut() = session;
        Ok(())
    }

    /// What is allowed for good, as Markdown.
    pub fn permissions_told(&self) -> String {
        let permissions = self.permissions.borrow();
        let lines = permissions
            .listed()
            .map(|(tool, action)| format!("| {tool} | {} |\n", action.name()));
        let lines: String = lines.collect();
        format!(
            "| tool | permission |\n|---|---|\n{lines}\nOther tools are asked about. `{}` has it.",
            permissions.path().display()
        )
    }
}

/// The file for a command of this name, from the project's root on; `None` where that is no name, or the program's own.
pub fn command_file(name: &str) -> Option<String> {
    let mut own = super::slash::hints().into_iter();
    let file = commands::file_for(name).filter(|_| !own.any(|hint| hint.name == name))?;
    Some(format!("{COMMANDS}/{}", file.display()))
}

/// The user's commands, and warnings of files that are none.
fn commands_of(root: &Path, home: &Path) -> (Vec<CommandFile>, Vec<String>) {
    let own = super::slash::hints();
    let taken: Vec<&str> = own.iter().map(|hint| &*hint.name).collect();
    commands::load(root, Some(home), &taken)
}

/// Whose thoughts a model of this name has, by this key: others do not take them.
fn thinker(key: &ChatKey, model: &str) -> String {
    key.found().map_or_else(
        |_| model.to_owned(),
        |found| format!("{} {model}", found.identity()),
    )
}

/// A conversation as a screen shows it.
fn entries(conversation: &Conversation) -> Vec<Entry> {
    let history = conversation.earlier.iter().chain(&conversation.history);
    let mut entries = Vec::new();
    let mut calls: HashMap<&str, usize> = HashMap::new();
    for said in history {
        match (said.role, &said.tool) {
            // What stands between tags is not for people.
            _ if said.is_tagged => {}
            (Role::User, _) => entries.push(Entry::User(said.content.clone())),
            (Role::Assistant, _) => {
                entries.extend(replied(said));
                let first = entries.len() - said.calls.len();
                calls = said
                    .calls
                    .iter()
                    .map(|call| &*call.id)
                    .zip(first..)
                    .collect();
            }
            (Role::Tool, Some(_)) => {
                let call = said.call.as_deref().and_then(|id| calls.get(id));
                if let Some(entry) = call.and_then(|at| entries.get_mut(*at)) {
                    answer(entry, said);
                }
            }
            (Role::Tool | Role::System, _) => entries.push(Entry::Notice(said.content.clone())),
        }
    }
    entries
}

/// What the agent has said, and which tools it has called.
fn replied(said: &HistoryMessage) -> impl Iterator<Item = Entry> {
    let thoughts = said.parts.iter().filter_map(|part| match part {
        ReplyPart::Thought(Thought::Shown { text, .. }) if !text.trim().is_empty() => {
            Some(Entry::Thought(text.clone()))
        }
        _ => None,
    });
    let words = Some(said.content.trim()).filter(|words| !words.is_empty());
    let words = words.map(|words| Entry::Agent(words.to_owned()));
    let calls = said.calls.iter().map(|call| Entry::Tool {
        name: call.name.clone(),
        subject: input_text(&call.input),
        result: String::new(),
        failed: false,
        diff: None,
    });
    thoughts.chain(words).chain(calls)
}

/// Notes what came of a call.
fn answer(entry: &mut Entry, said: &HistoryMessage) {
    if let Entry::Tool { result, failed, .. } = entry {
        result.clone_from(&said.content);
        *failed = said.is_failed;
    }
}
