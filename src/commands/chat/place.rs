//! Everything the agent at the terminal starts with: settings, models, session, permissions, context, commands.
//!
//! Reads the files of the user's and of the project's that it is told of, makes the home, and asks the vendor's server
//! which models there are to choose from.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::briefing::Briefing;
use super::commands::{CommandFile, FOLDER};
use super::entries::{STOPPED, ending, entries};
use super::login::{self, ChatKey, home};
use super::models::ChosenModel;
use super::options::{COMMANDS, ChatOptions};
use super::permissions::file::{PermissionFile, rule_words};
use super::permissions::untrusted::Untrusted;
use super::permissions::{ChatPermissions, NotPermitted, closed_paths};
use super::settings::ChatSettings;
use super::trust::TrustedFiles;
use super::{commands, models};
use crate::agent::Compressed;
use crate::agent::conversation::{Conversation, HistoryMessage, transcript};
use crate::agent::memory::truncate::{Meter, sent, tokens_of};
use crate::agent::session::SessionState;
use crate::agent::tool::Effect;
use crate::agent::tools::place::Outside;
use crate::commands::keeping::Keeping;
use crate::commands::sessions::{self, KEEPS_ALL};
use crate::commands::talk::slash;
use crate::commands::workspace::{
    AnswerSource, KeptSession, Recorded, SessionChoice, check_keys, open_session, processes,
    recorded,
};
use crate::exec::process::Processes;
use crate::exec::sandbox::SandboxMode;
use crate::model::message::Role;
use crate::model::usage::Usage;
use crate::model::{ModelTable, Provider, Purpose};
use crate::project::home::{AGENT_FOLDER, CHAT};
use crate::record::event::Event;
use crate::record::mode::{Mode, SharedMode};
use crate::record::result::LimitsRecord;
use crate::record::seconds::Seconds;
use crate::record::step::Action;
use crate::record::todos::Todo;
use crate::run::context::Context;
use crate::run::keys::FoundKey;
use crate::run::not_ready::NotReady;
use crate::run::selection::Models;
use crate::sys::error::Error;
use crate::ui::tui::{CommandHint, Entry, Menu};

/// Limit of replies in a row that are not understood.
const TRIES: u32 = 5;
/// Limit of a request's calls to the model.
const MOST_LOOPS: u16 = 500;
/// Time that a stopped command has to end by itself: the user waits for it.
const GRACE: Duration = Duration::from_millis(300);
/// Time after which a command goes on in the background, unless its call says otherwise.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
/// The window of a model whose entry says none, in tokens.
const USUAL_WINDOW: u64 = 200_000;

/// Reads the user's settings.
///
/// # Errors
/// When there is a mistake in it.
pub fn settings(home: &Path) -> Result<ChatSettings, Error> {
    Ok(ChatSettings::load(home).map_err(NotReady::of)?)
}

/// The session of an agent at the terminal: what is kept of it besides what was said.
pub struct KeptChat<'c> {
    /// The session.
    pub inner: KeptSession<'c>,
    /// Measures the use of the model's window.
    pub meter: Meter,
    /// The to-do list.
    pub todos: RefCell<Vec<Todo>>,
    /// The model's briefing.
    pub briefing: RefCell<Briefing>,
}

impl KeptChat<'_> {
    /// The user has taken back what the last request has changed in these files.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub fn undone(&self, paths: &[String]) -> Result<(), Error> {
        self.briefing.borrow_mut().undone(paths);
        let known = self.briefing.borrow().known();
        self.inner.change(|session| session.file.briefing = known)
    }
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
        // A call may follow: what was changed before is nothing that it has changed.
        self.briefing.borrow_mut().look();
        if *purpose != Purpose::STEP {
            return Ok(());
        }
        self.inner.change(|session| {
            session.conversation.clone_from(conversation);
            session.conversation.todos.clone_from(&self.todos.borrow());
            session.file.context_tokens = self.meter.used(conversation);
            session.file.briefing = self.briefing.borrow().known();
        })
    }

    fn acted(&self, action: &Action, effect: Option<Effect>) {
        self.briefing.borrow_mut().acted(action, effect);
    }

    fn wrote(&self, paths: &[String]) {
        self.briefing.borrow_mut().wrote(paths);
    }

    fn count(&self, purpose: &Purpose, tokens: u64) {
        if *purpose == Purpose::STEP {
            self.briefing.borrow_mut().told();
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
            self.briefing.borrow_mut().renewed();
        }
        self.inner.compressed(purpose, compressed);
    }
}

/// Everything the agent works with.
pub struct ChatPlace<'c> {
    /// The agent's home.
    pub home: PathBuf,
    /// The user's settings.
    pub settings: ChatSettings,
    /// The models that there are.
    pub table: ModelTable,
    /// The one that is asked.
    pub models: Models<'c>,
    /// The account that pays for it.
    key: ChatKey,
    /// The session.
    pub kept: KeptChat<'c>,
    /// Limits of a run.
    pub limits: LimitsRecord,
    /// The agent's processes. Ended with the place.
    pub processes: RefCell<Processes<'c>>,
    /// Warning for the record if commands are not sandboxed, though they should be.
    pub uncontained: Option<String>,
    /// Access outside the project.
    pub outside: Outside,
    /// The mode.
    pub mode: SharedMode,
    /// The project's root, links resolved.
    root: PathBuf,
    /// Permanent permissions.
    pub permissions: RefCell<PermissionFile>,
    /// Calls that nobody was there to allow.
    pub refused: RefCell<NotPermitted>,
    /// The paths that are not for the agent's tools, links resolved.
    pub closed: Vec<PathBuf>,
    /// The commands that the user has written.
    pub commands: Vec<CommandFile>,
    /// `true` to send what looks like credentials.
    pub allow_secrets: bool,
    /// Warnings for the user.
    warnings: Vec<String>,
}

impl<'c> ChatPlace<'c> {
    /// Sets it up, with the model that was chosen.
    ///
    /// # Errors
    /// When something is missing or wrong: settings, models, permissions, session, sandbox.
    pub fn open(
        context: &'c Context<'c>,
        options: &ChatOptions,
        chosen: ChosenModel,
        mode: SharedMode,
    ) -> Result<Self, Error> {
        let ChosenModel { table, spec, key } = chosen;
        check_keys(context)?;
        let root = context.project.root();
        let home = home(context)?;
        let settings = settings(&home)?;
        let models = models::models(context, &options.choice, spec, &key)?;
        let mut warnings = models.warnings(context);
        let trusted = TrustedFiles::load(&home, root).map_err(NotReady::of)?;
        let permissions = PermissionFile::load(root, trusted).map_err(NotReady::of)?;
        let mut briefing = Briefing::load(root, context.directory);
        let (commands, bad) = commands_of(root, &home);
        warnings.extend(briefing.warnings().into_iter().chain(bad));
        if options.is_headless() && mode.get() == Mode::Regular {
            warnings.extend(Untrusted::find(&permissions, &commands).warning());
        }
        // Who can be asked for a key may come without.
        if options.request.is_some() {
            key.required()?;
        }
        let store = sessions::store(context, &CHAT, &home, KEEPS_ALL)?;
        let model = &models.first.spec.name;
        let mut session = open_session(context, &store, options.session.clone(), model)?;
        if options.choice.replay.is_some() {
            session.detach();
        }
        let key_file = home.join(crate::run::accounts::FILE);
        // A command must not make it; one that is there is closed to what is sandboxed.
        if options.sandbox != SandboxMode::Off {
            let _ = fs::create_dir(root.join(AGENT_FOLDER));
        }
        let (processes, uncontained) =
            processes(context, options.sandbox, &options.hosts, &key_file)?;
        session.conversation.set_thinker(&thinker(&key, model));
        briefing.take_up(&session.file.briefing);
        let meter = Meter::default();
        meter.estimated(session.file.context_tokens, &session.conversation);
        let window = models.first.spec.prompt_window();
        Ok(Self {
            limits: LimitsRecord {
                max_context_tokens: window,
                max_retries: TRIES,
                max_retries_automated: TRIES,
                max_loops: MOST_LOOPS,
                command_timeout: Some(Seconds(COMMAND_TIMEOUT)),
            },
            closed: closed_paths(root, &home),
            root: root.to_owned(),
            kept: KeptChat {
                todos: RefCell::new(session.conversation.todos.clone()),
                inner: KeptSession {
                    session: RefCell::new(session),
                    store,
                    clock: context.clock,
                },
                meter,
                briefing: RefCell::new(briefing),
            },
            processes: RefCell::new(
                processes
                    .with_grace(GRACE)
                    .showing_credentials(options.choice.allow_secrets),
            ),
            uncontained,
            outside: options.outside,
            mode,
            permissions: RefCell::new(permissions),
            refused: RefCell::default(),
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
        let Some(Recorded {
            record,
            conversation,
            ..
        }) = recorded(context, &options.choice)?
        else {
            return Ok(None);
        };
        let answers = AnswerSource::recorded(&record);
        self.limits = record.limits;
        if let Some(mode) = record.mode.filter(|_| options.mode.is_none()) {
            self.mode.set(mode);
        }
        self.kept.inner.session.get_mut().conversation = conversation;
        Ok(Some((record.request, answers)))
    }

    /// Checks that there is a key, if one is needed.
    ///
    /// # Errors
    /// When there is none.
    pub fn check_key(&self) -> Result<(), Error> {
        if self.models.is_replay {
            return Ok(());
        }
        self.key.required().map(drop)
    }

    /// Updates the todo list, and shows it.
    pub fn update_todos(&self, context: &Context<'_>, todos: Vec<Todo>) {
        context.reporter.event(&Event::Todos(todos.clone()));
        self.kept.todos.replace(todos);
    }

    /// The session's id.
    pub fn id(&self) -> String {
        self.kept.inner.id()
    }

    /// Shows the warnings, below the conversation so far.
    pub fn tell_warnings(&self, context: &Context<'_>) {
        self.models.tell_base_urls(context);
        for warning in &self.warnings {
            context.warn(warning.clone());
        }
    }

    /// Keeps the beginning of a reply that was stopped; "" if there is none.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub fn keep_begun(&self, begun: &str) -> Result<(), Error> {
        let begun = begun.trim();
        if begun.is_empty() {
            return Ok(());
        }
        self.kept.inner.change(|session| {
            session.conversation.say(HistoryMessage::of_agent(begun));
            session.conversation.say(HistoryMessage::note(STOPPED));
        })
    }

    /// Tests if the session has a request.
    pub fn is_begun(&self) -> bool {
        self.requests() > 0
    }

    /// Number of the session's requests.
    pub fn requests(&self) -> usize {
        let session = self.kept.inner.session.borrow();
        session.conversation.requests.len()
    }

    /// Size of the model's window, in tokens.
    pub fn window(&self) -> u64 {
        self.limits.max_context_tokens.unwrap_or(USUAL_WINDOW)
    }

    /// Tokens that the conversation takes of it.
    pub fn used(&self) -> u64 {
        let session = self.kept.inner.session.borrow();
        let counted = self.kept.meter.used(&session.conversation);
        // The vendor has counted nothing yet.
        if counted == 0 {
            return tokens_of(&sent(&session.conversation));
        }
        counted
    }

    /// Tokens that the session has taken so far.
    pub fn tokens(&self) -> u64 {
        self.kept.inner.session.borrow().file.total_tokens
    }

    /// Identity of the account that pays, if there is one.
    pub fn account(&self) -> Option<String> {
        self.key.found().map(FoundKey::identity)
    }

    /// The conversation, for the screen.
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

    /// Text left on the terminal: the last exchange, and the command to resume.
    pub fn farewell(&self) -> String {
        let session = self.kept.inner.session.borrow();
        let Some(request) = session.conversation.requests.last() else {
            return String::new();
        };
        let request = ending(request);
        let words = self.last_words();
        let words = words.map(|words| format!("\n\n{}", ending(&words)));
        format!(
            "> {request}{}\n\ncode-commit chat --session {}\n",
            words.unwrap_or_default(),
            session.id
        )
    }

    /// The user's own commands, for who types one.
    pub fn own_commands(&self) -> Vec<CommandHint> {
        let own = self.commands.iter().map(|command| CommandHint {
            name: command.name.clone(),
            argument: command.argument_hint.clone(),
            description: command.description.clone(),
        });
        own.collect()
    }

    /// The user's own command of this name.
    pub fn command(&self, name: &str) -> Option<&CommandFile> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// Reads the user's commands anew, and warns of what is none and was one, or was not there, before.
    pub fn reload_commands(&mut self, context: &Context<'_>) {
        let (commands, bad) = commands_of(context.project.root(), &self.home);
        for warning in bad {
            if !self.warnings.contains(&warning) {
                context.warn(warning.clone());
                self.warnings.push(warning);
            }
        }
        self.commands = commands;
    }

    /// All that was said, as a text.
    pub fn transcript_text(&self) -> String {
        let session = self.kept.inner.session.borrow();
        let Conversation {
            earlier, history, ..
        } = &session.conversation;
        // What stands between tags is not for people.
        let said = earlier.iter().chain(history).filter(|said| !said.is_tagged);
        transcript(said, usize::MAX)
    }

    /// The models to choose from, those besides that the vendor tells of, where it does.
    ///
    /// # Errors
    /// When the user has stopped it.
    pub fn model_menu(&mut self, context: &Context<'_>) -> Result<Menu, Error> {
        // What the vendor adds is told where it can be had.
        let is_anthropics = self.models.first.spec.provider == Provider::Anthropic;
        let found = self.key.found().filter(|_| is_anthropics);
        let listed = found.and_then(|found| {
            let server = login::server(context, Provider::Anthropic, &found.key).ok()?;
            server.models().ok()
        });
        context.interrupt.check()?;
        let mut table = self.table.clone();
        table.add_listed(listed.as_deref().unwrap_or_default());
        self.table = table.for_chat();
        let current = &self.models.first.spec.name;
        Ok(models::menu(&self.table, listed.as_deref(), current))
    }

    /// Switches to another model.
    ///
    /// # Errors
    /// When there is none of that name, or it is retired.
    pub fn choose_model(
        &mut self,
        context: &'c Context<'c>,
        options: &ChatOptions,
        name: &str,
    ) -> Result<(), Error> {
        let choice = crate::run::context::ModelChoice {
            model: Some(name.to_owned()),
            ..options.choice.clone()
        };
        let spec = models::spec(context, &choice, &self.table)?;
        let account = options.account.as_deref();
        let key = login::key(context, &choice, account, &spec)?.known_to(context.redactor)?;
        self.models = models::models(context, &choice, spec, &key)?;
        self.key = key;
        let spec = &self.models.first.spec;
        self.limits.max_context_tokens = spec.prompt_window();
        let thinker = thinker(&self.key, &spec.name);
        let session = self.kept.inner.session.get_mut();
        session.file.model.clone_from(&spec.name);
        session.conversation.set_thinker(&thinker);
        Ok(())
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
        session.conversation.set_thinker(&thinker(&self.key, model));
        let (file, conversation) = (&session.file, &session.conversation);
        self.kept.meter.estimated(file.context_tokens, conversation);
        self.kept.todos.replace(conversation.todos.clone());
        let mut briefing = Briefing::load(context.project.root(), context.directory);
        briefing.take_up(&file.briefing);
        self.kept.briefing.replace(briefing);
        *self.kept.inner.session.get_mut() = session;
        Ok(())
    }

    /// The agent's permissions.
    pub fn permitted(&self, is_headless: bool) -> ChatPermissions<'_> {
        ChatPermissions {
            mode: &self.mode,
            file: &self.permissions,
            counts: true,
            root: &self.root,
            briefing: &self.kept.briefing,
            headless: is_headless.then_some(&self.refused),
        }
    }

    /// Permanent permissions, as Markdown.
    pub fn permissions_told(&self) -> String {
        let permissions = self.permissions.borrow();
        let lines = permissions
            .listed()
            .map(|(tool, action)| format!("| {tool} | {} |\n", action.name()));
        let rules = permissions.rules();
        let rules = rules
            .map(|(prefix, action)| format!("| {} | {} |\n", rule_words(prefix), action.name()));
        let lines: String = lines.chain(rules).collect();
        let path = permissions.path();
        let kept = if path.exists() {
            "stand in"
        } else {
            "are the defaults: there is no"
        };
        format!(
            "| tool | permission |\n|---|---|\n{lines}\nThese {kept} `{}`. Other tools are asked about, but for \
             `update_todos` and `spawn_agent`, which change nothing by themselves.",
            path.display()
        )
    }
}

/// The file for a command of this name, from the project's root on; `None` where that is no name, or the program's own.
pub fn command_file(name: &str) -> Option<String> {
    let file = commands::file_for(name).filter(|_| slash::named(name, COMMANDS).is_none())?;
    Some(format!("{AGENT_FOLDER}/{FOLDER}/{}", file.display()))
}

/// The user's commands, and warnings of files that are none.
pub fn commands_of(root: &Path, home: &Path) -> (Vec<CommandFile>, Vec<String>) {
    commands::load(root, home, &|name| slash::named(name, COMMANDS).is_some())
}

/// Identifies the account and model that sign thoughts; others reject them.
fn thinker(key: &ChatKey, model: &str) -> String {
    key.found().map_or_else(
        || model.to_owned(),
        |found| format!("{} {model}", found.identity()),
    )
}
