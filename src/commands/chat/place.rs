//! Everything the terminal agent needs: settings, models, session, permissions, context, commands.
//!
//! Reads files of the user and of the project, creates the agent's home, and asks the vendor's server for the list of
//! its models.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::briefing::Briefing;
use super::commands::CommandFile;
use super::entries::{STOPPED, ending, entries};
use super::login::{self, ChatKey, home};
use super::models::ChosenModel;
use super::permissions::file::PermissionFile;
use super::permissions::untrusted::Untrusted;
use super::permissions::{ChatPermissions, NotPermitted};
use super::settings::ChatSettings;
use super::{commands, models};
use crate::agent::Compressed;
use crate::agent::conversation::{Conversation, HistoryMessage, transcript};
use crate::agent::memory::truncate::{Meter, sent, tokens_of};
use crate::agent::session::SessionState;
use crate::agent::tool::Effect;
use crate::commands::sessions::KEEPS_ALL;
use crate::commands::stored_session::{SessionChoice, SessionLog};
use crate::commands::workspace::{AgentOptions, Workspace, check_project, stored};
use crate::exec::sandbox::SandboxMode;
use crate::model::message::Role;
use crate::model::usage::Usage;
use crate::model::{ModelTable, Provider, Purpose};
use crate::project::home::{AGENT_FOLDER, CHAT};
use crate::record::event::Event;
use crate::record::mode::{Mode, SharedMode};
use crate::record::result::LimitsRecord;
use crate::record::step::Action;
use crate::record::todos::Todo;
use crate::run::accounts;
use crate::run::context::{Context, ModelChoice};
use crate::run::keys;
use crate::run::not_ready::NotReady;
use crate::sys::error::Error;
use crate::ui::tui::{CommandHint, Entry, Menu};

/// Maximum number of consecutive unintelligible replies.
const TRIES: u32 = 5;
/// Maximum number of model calls for a request.
const MOST_LOOPS: u16 = 500;
/// Time that a stopped command has to exit on its own, while the user waits.
const GRACE: Duration = Duration::from_millis(300);
/// Time after which a command continues in the background, unless its call sets another.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(2);
/// Context window of a model whose entry does not specify one, in tokens.
const USUAL_WINDOW: u64 = 200_000;

/// Reads the user's settings.
///
/// # Errors
/// Fails if the file cannot be read or is invalid.
pub fn settings(home: &Path) -> Result<ChatSettings, Error> {
    Ok(ChatSettings::load(home).map_err(NotReady::of)?)
}

/// Everything the agent works with.
pub struct ChatPlace<'c> {
    /// The context of the command.
    pub context: &'c Context<'c>,
    /// The model options on the command line.
    pub choice: ModelChoice,
    /// Session, models, limits and processes.
    pub base: Workspace<'c>,
    /// The agent's home.
    pub home: PathBuf,
    /// The user's settings.
    pub settings: ChatSettings,
    /// The available models.
    pub table: ModelTable,
    /// The key for the current model.
    key: ChatKey,
    /// The accounts that the user has chosen in the session, by vendor.
    accounts: BTreeMap<Provider, String>,
    /// Measures how much of the model's window is used.
    pub meter: Meter,
    /// The to-do list.
    pub todos: RefCell<Vec<Todo>>,
    /// The model's briefing.
    pub briefing: RefCell<Briefing>,
    /// The mode.
    pub mode: SharedMode,
    /// Permanent permissions.
    pub permissions: RefCell<PermissionFile>,
    /// Calls refused because no user was present to allow them.
    pub refused: RefCell<NotPermitted>,
    /// The user-defined commands.
    pub commands: Vec<CommandFile>,
    /// Warnings for the user.
    warnings: Vec<String>,
}

impl SessionLog for ChatPlace<'_> {
    fn id(&self) -> String {
        self.base.stored.id()
    }

    fn conversation(&self) -> Conversation {
        self.base.stored.conversation()
    }

    fn settle(&self) {
        self.base.stored.settle();
    }

    fn note_state(&self, state: SessionState) -> Result<(), Error> {
        self.base.stored.note_state(state)
    }

    fn save(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error> {
        // A tool call may follow; changes made before it must not be attributed to it.
        self.briefing.borrow_mut().look();
        if *purpose != Purpose::STEP {
            return Ok(());
        }
        self.base.stored.change(|session| {
            session.conversation.follow(conversation);
            session.conversation.todos.clone_from(&self.todos.borrow());
            session.file.context_tokens = self.meter.used(conversation);
            session.file.briefing = self.briefing.borrow().known();
        })
    }

    fn applied(&self, paths: &[String]) -> Result<(), Error> {
        let mut briefing = self.briefing.borrow_mut();
        briefing.look();
        if let Some(scratch) = self.context.scratch {
            briefing.applied(scratch, paths);
        }
        self.base.stored.change(|session| {
            session.conversation.is_unapplied = false;
            session.file.briefing = briefing.known();
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
            self.briefing.borrow_mut().delivered();
        }
        self.base.stored.count(purpose, tokens);
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
        self.base.stored.compressed(purpose, compressed);
    }
}

impl<'c> ChatPlace<'c> {
    /// Sets everything up, with the chosen model.
    ///
    /// # Errors
    /// Fails if settings, models, permissions, session, key files or sandbox cannot be used.
    pub fn open(
        context: &'c Context<'c>,
        options: &AgentOptions,
        chosen: ChosenModel,
        mode: SharedMode,
    ) -> Result<Self, Error> {
        let ChosenModel { key, spec, .. } = chosen;
        check_project(context)?;
        let root = context.project.root();
        let home = home(context)?;
        let settings = settings(&home)?;
        let models = models::models(context, &options.choice, spec, &key)?;
        let mut warnings = models.warnings(context);
        let permissions = PermissionFile::open(&home, root)?;
        let (commands, bad) = commands::load(root, &home);
        warnings.extend(bad);
        if options.is_headless() && mode.get() == Mode::Regular {
            warnings.extend(Untrusted::find(&permissions, &commands).warning());
        }
        // A user at the screen can still enter a key later.
        if options.request.is_some() {
            key.required()?;
        }
        // A sandbox closes the directory only if it exists, and a command must not be able to create it.
        if options.agent.sandbox.mode != SandboxMode::Off {
            let _ = fs::create_dir(root.join(AGENT_FOLDER));
        }
        let window = models.first.spec.prompt_window();
        let limits = LimitsRecord::new(window, TRIES, MOST_LOOPS, Some(COMMAND_TIMEOUT));
        let stored = stored(context, options, (&CHAT, &home), KEEPS_ALL)?;
        let key_file = home.join(accounts::FILE);
        let mut base = Workspace::of(context, options, stored, models, limits, &key_file)?;
        let processes = base.processes.into_inner().with_grace(GRACE);
        base.processes = RefCell::new(processes.showing_credentials(options.choice.allow_secrets));
        let mut place = Self {
            context,
            choice: options.choice.clone(),
            base,
            meter: Meter::default(),
            todos: RefCell::default(),
            briefing: RefCell::default(),
            mode,
            permissions: RefCell::new(permissions),
            refused: RefCell::default(),
            commands,
            warnings,
            home,
            settings,
            table: chosen.table,
            key,
            accounts: chosen.accounts,
        };
        place.take_up();
        place.warnings.extend(place.briefing.get_mut().warnings());
        Ok(place)
    }

    /// Adopts the state of the session that is now open.
    fn take_up(&mut self) {
        let thinker = &self.base.models.first.thinker;
        let session = self.base.stored.session.get_mut();
        session.conversation.set_thinker(thinker);
        let (file, conversation) = (&session.file, &session.conversation);
        self.meter.estimated(file.context_tokens, conversation);
        self.todos.replace(conversation.todos.clone());
        let project = &self.context.project;
        let mut briefing = Briefing::load(project.root(), project.directory(), &file.briefing);
        if conversation.is_unapplied {
            briefing.discarded();
        }
        self.briefing.replace(briefing);
    }

    /// Checks that a key exists if one is needed.
    ///
    /// # Errors
    /// Fails if the key is missing.
    pub fn check_key(&self) -> Result<(), Error> {
        if self.base.models.is_replay {
            return Ok(());
        }
        self.key.required()
    }

    /// Replaces the to-do list, and shows it.
    pub fn update_todos(&self, todos: Vec<Todo>) {
        self.context.reporter.event(&Event::Todos(todos.clone()));
        self.todos.replace(todos);
    }

    /// Shows the warnings below the conversation so far.
    pub fn report_warnings(&self) {
        self.base.models.report_base_urls(self.context);
        for warning in &self.warnings {
            self.context.warn(warning.clone());
        }
    }

    /// Records that the user has undone the last request's changes to these files.
    ///
    /// # Errors
    /// Fails if this cannot be saved.
    pub fn undone(&self, paths: &[String]) -> Result<(), Error> {
        self.briefing.borrow_mut().undone(paths);
        let known = self.briefing.borrow().known();
        self.base
            .stored
            .change(|session| session.file.briefing = known)
    }

    /// Saves the beginning of a stopped reply; does nothing if it is blank.
    ///
    /// # Errors
    /// Fails if the session cannot be saved.
    pub fn keep_begun(&self, begun: &str) -> Result<(), Error> {
        let begun = begun.trim();
        if begun.is_empty() {
            return Ok(());
        }
        self.base.stored.change(|session| {
            session.conversation.say(HistoryMessage::of_agent(begun));
            session.conversation.say(HistoryMessage::note(STOPPED));
        })
    }

    /// Returns the size of the model's window, in tokens.
    pub fn window(&self) -> u64 {
        self.base.limits.max_context_tokens.unwrap_or(USUAL_WINDOW)
    }

    /// Returns the number of tokens in the window that the conversation uses.
    pub fn used(&self) -> u64 {
        let session = self.base.stored.session.borrow();
        match self.meter.used(&session.conversation) {
            // The vendor has not reported any usage yet; estimate it.
            0 => tokens_of(&sent(&session.conversation)),
            counted => counted,
        }
    }

    /// Returns the identity of the account whose key is used, if any.
    pub fn account(&self) -> Option<String> {
        self.key.found().map(|found| keys::identity(&found.key))
    }

    /// Returns the conversation as shown on the screen.
    pub fn transcript(&self) -> Vec<Entry> {
        entries(&self.base.stored.session.borrow().conversation)
    }

    /// Returns the agent's last reply to the latest request, if any.
    pub fn last_words(&self) -> Option<String> {
        let session = self.base.stored.session.borrow();
        let conversation = &session.conversation;
        // After `/compact`, the last reply is among the earlier messages.
        let history = conversation
            .earlier
            .iter()
            .chain(&conversation.history)
            .rev();
        // Replies to earlier requests do not count.
        let mut since = history.take_while(|said| said.role != Role::User || said.is_tagged);
        let said =
            since.find(|said| said.role == Role::Assistant && !said.content.trim().is_empty())?;
        Some(said.content.to_string())
    }

    /// Returns the text left on the terminal at the end: the last exchange, and the command that resumes the session.
    pub fn farewell(&self) -> String {
        let session = self.base.stored.session.borrow();
        let Some(request) = session.conversation.requests.last() else {
            return String::new();
        };
        let words = self.last_words();
        let reply = words.map(|words| format!("\n\n{}", ending(&words)));
        format!(
            "> {}{}\n\ncode-commit chat --session {}\n",
            ending(request),
            reply.unwrap_or_default(),
            session.id
        )
    }

    /// Returns the user-defined commands, for help and completion.
    pub fn own_commands(&self) -> Vec<CommandHint> {
        let own = self.commands.iter().map(|command| CommandHint {
            name: command.name.clone(),
            argument: command.argument_hint.clone(),
            description: command.description.clone(),
        });
        own.collect()
    }

    /// Returns the user-defined command of this name.
    pub fn command(&self, name: &str) -> Option<&CommandFile> {
        self.commands.iter().find(|command| command.name == name)
    }

    /// Reads the user-defined commands again, and warns about unusable files, once for each.
    pub fn reload_commands(&mut self) {
        let (commands, bad) = commands::load(self.context.project.root(), &self.home);
        for warning in bad {
            if !self.warnings.contains(&warning) {
                self.context.warn(warning.clone());
                self.warnings.push(warning);
            }
        }
        self.commands = commands;
    }

    /// Returns the whole conversation as text.
    pub fn transcript_text(&self) -> String {
        let session = self.base.stored.session.borrow();
        let conversation = &session.conversation;
        let said = conversation.earlier.iter().chain(&conversation.history);
        // Tagged messages are meant only for the model.
        transcript(said.filter(|said| !said.is_tagged), usize::MAX)
    }

    /// Returns the menu of models, including those that the vendor lists, if it can be asked.
    ///
    /// # Errors
    /// Fails if the user interrupts the call to the vendor.
    pub fn model_menu(&mut self) -> Result<Menu, Error> {
        let asked = &self.base.models.first.spec;
        let provider = asked.provider;
        let found = self.key.found().filter(|_| provider.vendor().is_listed);
        // Without the vendor's list, the table is enough.
        let listed = found.and_then(|found| {
            let server = login::server(self.context, provider, &found.key).ok()?;
            server.models().ok()
        });
        self.context.interrupt.check()?;
        self.table
            .add_listed(provider, listed.as_deref().unwrap_or_default());
        Ok(models::menu(&self.table, listed.as_deref(), &asked.name))
    }

    /// Switches to another model.
    ///
    /// # Errors
    /// Fails if the model is unknown or retired, or its key cannot be used.
    pub fn choose_model(&mut self, name: &str) -> Result<(), Error> {
        let context = self.context;
        let choice = self.choice.with_model(name);
        let table = Some(self.table.clone());
        let chosen = models::choose(context, &choice, self.accounts.clone(), table)?;
        let key = chosen.key.known_to(context.redactor)?;
        let models = models::models(context, &choice, chosen.spec, &key)?;
        models.report(context);
        let window = models.first.spec.prompt_window();
        self.base.set_models(models, window);
        self.key = key;
        let thinker = &self.base.models.first.thinker;
        let session = self.base.stored.session.get_mut();
        session.conversation.set_thinker(thinker);
        Ok(())
    }

    /// Switches to the model that a user-defined command names.
    ///
    /// # Errors
    /// Same as [`choose_model`](Self::choose_model); a warning tells where the model is named.
    pub fn choose_model_of(&mut self, command: &str, model: &str) -> Result<(), Error> {
        let context = self.context;
        self.choose_model(model)
            .inspect_err(|_| context.warn(format!("`/{command}` names the model `{model}`")))
    }

    /// Switches to another session, or to a new one.
    ///
    /// # Errors
    /// Fails if the session cannot be opened or created; the current session then stays open.
    pub fn change_session(&mut self, which: &SessionChoice) -> Result<(), Error> {
        self.base.change_session(self.context, which)?;
        self.take_up();
        Ok(())
    }

    /// Returns the agent's permissions.
    pub fn permitted(&self, is_headless: bool) -> ChatPermissions<'_> {
        ChatPermissions {
            mode: &self.mode,
            file: &self.permissions,
            counts: true,
            root: self.context.project.root(),
            briefing: &self.briefing,
            headless: is_headless.then_some(&self.refused),
        }
    }
}
