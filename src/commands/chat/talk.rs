//! The conversation with the user, on the full screen or in line mode: requests, slash commands and shell commands.
//!
//! Failures are shown and do not end the conversation.

use super::attach::submission;
use super::checklist::checklist;
use super::commands;
use super::entries::STOPPED_SHOWN;
use super::login::SignIn;
use super::place::ChatPlace;
use super::{attach, login, proposals, request, shell, spending, trusting};
use crate::agent::AgentError;
use crate::agent::conversation::UserRequest;
use crate::commands::answers::AnswerSource;
use crate::commands::screen::Screen;
use crate::commands::stored_session::{SessionChoice, SessionLog as _};
use crate::commands::talk::menu::chosen_number;
use crate::commands::talk::slash::Slash;
use crate::commands::talk::tally::Tally;
use crate::commands::talk::{SessionFacts, Talk, Talker, Unfinished, say, tell};
use crate::edit::undo_log;
use crate::model::Provider;
use crate::project::conventions::AGENTS_FILE;
use crate::record::event::Event;
use crate::record::mode::Mode;
use crate::record::question::Question;
use crate::record::todos::{Todo, TodoStatus};
use crate::run::accounts;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::exit::Exit;
use crate::ui::input::{Typed, User};
use crate::ui::tui::history::is_secret;
use crate::ui::tui::{CommandHint, Menu, Submission, ToScreen};

/// The outcome of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TalkEnd {
    /// The user has left.
    Left,
    /// Everything must be set up again, with this account for the vendor; `None` selects one by the usual rules.
    Reopen(Provider, Option<String>),
}

/// The answer to `/copy` without a screen.
const NO_CLIPBOARD: &str = "`/copy` needs the full screen: `chat` without `--plain`";

/// The agent that a user talks to.
struct Chat<'t, 'c> {
    place: &'t mut ChatPlace<'c>,
    user: &'t User,
    /// The screen; `None` in line mode.
    screen: Option<&'t Screen>,
    /// The outcome so far; [`TalkEnd::Left`] unless something else was decided.
    end: TalkEnd,
    /// The last request, if no key was available for it.
    without_key: Option<Submission>,
}

/// Talks until the user leaves, or everything must be set up again.
///
/// # Errors
/// Fails if a signal ends the program.
pub fn talk(
    place: &mut ChatPlace<'_>,
    (user, unfinished): (&User, &Unfinished),
    screen: Option<&Screen>,
) -> Result<TalkEnd, Failure> {
    let context = place.context;
    let mut chat = Chat {
        place,
        user,
        screen,
        end: TalkEnd::Left,
        without_key: None,
    };
    let mut talk = Talk::new(context, user, unfinished);
    talk.show_status_bar(&chat);
    chat.show();
    trusting::ask_at_start(chat.place, user)?;
    talk.run(&mut chat)?;
    if chat.is_over() {
        // Changes that a command has made to the permissions must not take effect unseen.
        proposals::look_at_permissions(chat.place, user)?;
    }
    Ok(chat.end)
}

impl Talker for Chat<'_, '_> {
    const COMMANDS: &'static [Slash] = Slash::ALL;
    const PROMPT: &'static str = "chat> ";
    const KEYS: &'static str = "\
| Shift+Tab | switch modes |
| Ctrl-V | attach an image |
| `@path` | attach a file |
| `!command` | run a command yourself |
";
    const SIGNS: &'static str = "
  !COMMAND           run a command yourself
  @PATH              attach a file";

    fn todos(&self) -> Vec<Todo> {
        self.place.todos.borrow().clone()
    }

    fn facts(&self) -> SessionFacts {
        SessionFacts {
            session: Some(self.place.id()),
            tokens: Some(self.place.base.stored.session.borrow().file.total_tokens),
            // Calls made outside the conversation do not count towards its size.
            used: Some(self.place.used()),
            mode: Some(self.place.mode.get()),
            ..SessionFacts::of(&self.place.base.models.first.spec, self.place.window())
        }
    }

    fn own_commands(&self) -> Vec<CommandHint> {
        self.place.own_commands()
    }

    fn idle(&self, command: Slash) -> Option<&'static str> {
        (command == Slash::Copy && self.screen.is_none()).then_some(NO_CLIPBOARD)
    }

    fn hear(&mut self, mut line: Submission) -> Result<Option<Submission>, Failure> {
        let text = line.text.trim();
        if let Some(command) = text.strip_prefix('!') {
            shell::run_for_user(self.place, command.trim(), self.screen.is_some())?;
            return Ok(None);
        }
        line.text = if is_secret(text) {
            text.to_owned()
        } else {
            request::censored(self.place, text)
        };
        if line.text.starts_with('/') {
            // The command files may have changed.
            self.place.reload_commands();
        }
        Ok(Some(line))
    }

    fn show(&self) {
        self.user.borrow_mut().show(ToScreen::Todos(self.todos()));
    }

    fn attend(
        &mut self,
        talk: &mut Talk<'_>,
        request: Option<Submission>,
    ) -> Result<Outcome, Failure> {
        let mut request = request.unwrap_or_default();
        let has_key = self.place.check_key().is_ok();
        self.without_key = (!has_key).then(|| request.clone());
        if self.screen.is_none() {
            request = submission(self.place.context, &request.text)?;
        }
        self.work_on(talk, &attach::request(self.place, &request))
    }

    fn ended(&self, talk: &Talk<'_>, done: Result<Outcome, Failure>) -> Result<bool, Failure> {
        let context = self.place.context;
        if self.screen.is_none() && done.is_err() {
            return tell(context, done, talk.user);
        }
        let _ = context.interrupt.take();
        context.interrupt.check().map_err(AgentError::from)?;
        let Err(failure) = done else {
            return Ok(false);
        };
        if matches!(failure.error.exit(), Exit::Interrupted(_)) {
            context.notice(STOPPED_SHOWN);
            return Ok(true);
        }
        context.reporter.event(&failure.event());
        Ok(false)
    }

    fn undone(&mut self, run: String) -> Result<(), Failure> {
        let changes = undo_log::read(self.place.context.project.root(), &run)?;
        let files = changes.into_iter().flat_map(|changes| changes.files);
        let paths: Vec<String> = files.map(|(path, _)| path).collect();
        Ok(self.place.undone(&paths)?)
    }

    fn sessions(&self) -> Result<Vec<(String, String)>, Failure> {
        let here = self.place.context.project.directory();
        self.place.base.stored.others(here)
    }

    fn change_session(&mut self, which: SessionChoice) -> Result<String, Failure> {
        let text = match which {
            SessionChoice::New => "a new session",
            SessionChoice::Last | SessionChoice::Named(_) => "the session goes on",
        };
        self.place.change_session(&which)?;
        show_conversation(self.place, self.screen);
        Ok(text.to_owned())
    }

    fn models(&mut self, _context: &Context<'_>) -> Result<Menu, Failure> {
        Ok(self.place.model_menu()?)
    }

    fn choose_model(&mut self, name: &str) -> Result<(), Failure> {
        Ok(self.place.choose_model(name)?)
    }

    fn cost(&self, _tally: &Tally) -> Result<String, Failure> {
        Ok(spending::summary(self.place)?)
    }

    fn execute(
        &mut self,
        talk: &mut Talk<'_>,
        command: Slash,
        argument: &str,
    ) -> Result<Option<String>, Failure> {
        Ok(Some(match command {
            Slash::Mode => self.place.mode.switch(argument),
            Slash::Permissions => self.place.permissions.borrow().markdown(),
            Slash::Copy => match self.place.last_words() {
                Some(words) => {
                    self.user.borrow_mut().show(ToScreen::Copy(words));
                    "the last reply is in the clipboard".to_owned()
                }
                None => "there is no reply yet".to_owned(),
            },
            Slash::Transcript => {
                let text = self.place.transcript_text();
                match self.screen {
                    Some(screen) => screen.post(ToScreen::Page(text)),
                    None => talk.context.reporter.event(&Event::Shown(text)),
                }
                return Ok(None);
            }
            Slash::Login => self.login(argument)?,
            Slash::Logout => self.reopen(login::log_out(self.place.context)?),
            Slash::Init => self.init(talk)?,
            Slash::Command => self.new_command(talk, argument)?,
            _ => return Ok(None),
        }))
    }

    fn compact(&mut self, _talk: &mut Talk<'_>, focus: &str) -> Result<String, Failure> {
        proposals::compact(self.place, focus)
    }

    /// Executes a user-defined command with the model that it names, then returns to the previous model.
    fn execute_own(
        &mut self,
        talk: &mut Talk<'_>,
        name: &str,
        argument: &str,
    ) -> Result<bool, Failure> {
        let command = self.place.command(name);
        let Some(model) = command.and_then(|command| command.model.clone()) else {
            return self.carry_out(talk, name, argument);
        };
        let before = self.place.base.models.first.spec.name.clone();
        self.place.choose_model_of(name, &model)?;
        talk.show_status_bar(self);
        let done = self.carry_out(talk, name, argument);
        self.choose_model(&before)?;
        done
    }

    fn is_over(&self) -> bool {
        self.end != TalkEnd::Left
    }
}

impl Chat<'_, '_> {
    /// Works on a request.
    fn work_on(&mut self, talk: &mut Talk<'_>, asked: &UserRequest) -> Result<Outcome, Failure> {
        // Completed items stay on the list, struck out, until the next request.
        let is_open = |todo: &Todo| todo.status != TodoStatus::Completed;
        self.place.todos.borrow_mut().retain(is_open);
        // An estimate, until the vendor reports the usage.
        let tokens = request::tokens_of(asked);
        if let Some(screen) = self.screen {
            screen.status(|status| status.used = status.used.saturating_add(tokens));
        }
        proposals::look_at_permissions(self.place, self.user)?;
        let take_begun = || self.screen.map(Screen::take_begun).unwrap_or_default();
        let _ = take_begun();
        let (place, user) = (&*self.place, self.user);
        let ask = |question: &Question, preview: Option<&str>| {
            request::ask(place, user, question, preview)
        };
        let done = request::work(self.place, AnswerSource::Permissions(&ask), Some(asked));
        talk.count(&done);
        let begun = take_begun();
        if matches!(&done, Err(failure) if matches!(failure.error.exit(), Exit::Interrupted(_)))
            && let Err(problem) = self.place.keep_begun(&begun)
        {
            self.place.context.warn(problem.to_string());
        }
        // The user must see a command's changes to the permissions before they take effect.
        let looked = proposals::look_at_permissions(self.place, self.user);
        let outcome = done?;
        talk.context.reporter.event(&outcome.event());
        looked?;
        match self.plan_to_carry_out(&outcome)? {
            Some(asked) => self.work_on(talk, &asked),
            None => Ok(outcome),
        }
    }

    /// Asks how to carry out a plan that ends in a checklist. Returns the request to do so, if the user wants it.
    fn plan_to_carry_out(&mut self, outcome: &Outcome) -> Result<Option<UserRequest>, Failure> {
        if self.place.mode.get() != Mode::Planning {
            return Ok(None);
        }
        let Some(todos) = checklist(&outcome.summary) else {
            return Ok(None);
        };
        let menu = Menu {
            title: "The plan ends in a checklist".to_owned(),
            items: [
                ("Carry it out in Regular", "asks before it changes anything"),
                ("Carry it out in Auto-Pilot", "asks nothing"),
                ("Go on planning", ""),
            ]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into(),
            at: 2,
            is_unasked: true,
        };
        let mode = match self.choose(menu)? {
            Some(0) => Mode::Regular,
            Some(1) => Mode::AutoPilot,
            _ => return Ok(None),
        };
        self.place.mode.set(mode);
        self.place.todos.replace(todos);
        let words = "Carry out the plan, item by item.";
        say(self.place.context, self.user, &format!("> {words}"));
        Ok(Some(UserRequest::from(words)))
    }

    fn login(&mut self, argument: &str) -> Result<String, Failure> {
        let message = match argument {
            "" => self.choose_account()?,
            argument => Some(self.log_in(argument)?),
        };
        Ok(match message {
            Some(message) => self.reopen(message),
            None => "the account stays the same".to_owned(),
        })
    }

    /// Ends the conversation, so that everything is set up again; this also ends background processes. The returned
    /// message and a reminder to the model name these processes.
    fn reopen(&mut self, message: SignIn) -> String {
        let text = message.markdown();
        if let Some(request) = self.without_key.take_if(|_| message.account.is_some()) {
            self.user.borrow_mut().send(request);
        }
        self.end = TalkEnd::Reopen(message.provider, message.account);
        let mut processes = self.place.base.processes.borrow_mut().list();
        processes.retain(|process| process.status.is_none());
        let running: Vec<String> = processes.into_iter().map(|process| process.id).collect();
        if running.is_empty() {
            return text;
        }
        self.place.briefing.borrow_mut().ended(&running);
        format!(
            "{text}; that has ended these background processes: {}",
            running.join(", ")
        )
    }

    fn log_in(&self, argument: &str) -> Result<SignIn, Failure> {
        Ok(login::log_in(
            self.place.context,
            argument,
            self.provider(),
        )?)
    }

    /// Returns the vendor of the model if it has accounts, or else the usual one.
    fn provider(&self) -> Provider {
        let provider = self.place.base.models.first.spec.provider;
        if provider.vendor().key_file.is_some() {
            provider
        } else {
            accounts::USUAL
        }
    }

    /// Signs in with the account that the user chooses, or with a key that they type without echo.
    fn choose_account(&self) -> Result<Option<SignIn>, Failure> {
        let accounts = login::accounts(self.place.context)?;
        let active = accounts.active().map(|account| &*account.name);
        let another = ("another key".to_owned(), "type it unseen".to_owned());
        let state = |name: &str| if Some(name) == active { "active" } else { "" };
        let item = |name: &str| (name.to_owned(), state(name).to_owned());
        let at = accounts.names().position(|name| Some(name) == active);
        let menu = Menu {
            title: "Sign in".to_owned(),
            items: accounts.names().map(item).chain([another]).collect(),
            at: at.unwrap_or_default(),
            is_unasked: false,
        };
        let chosen = match active {
            Some(_) => self.choose(menu)?,
            None => Some(0),
        };
        let Some(at) = chosen else {
            return Ok(None);
        };
        if let Some(name) = accounts.names().nth(at) {
            return Ok(Some(self.log_in(name)?));
        }
        let Typed::Line(key) = self.user.borrow_mut().secret(login::PROMPT)? else {
            return Ok(None);
        };
        if key.trim().is_empty() {
            return Ok(None);
        }
        let provider = login::provider_of(&key).unwrap_or(self.provider());
        let message = login::log_in_with(self.place.context, &key, None, provider)?;
        Ok(Some(message))
    }

    fn init(&mut self, talk: &mut Talk<'_>) -> Result<String, Failure> {
        if self.place.mode.get() == Mode::Planning {
            let text = "`/init` has to look around, and nothing is executed in Planning: switch modes first";
            return Ok(text.to_owned());
        }
        let proposed = proposals::proposed(self.place, "/init", proposals::INIT)?;
        self.offer(talk, AGENTS_FILE, &proposed)
    }

    /// Offers to write a file proposed by the agent. Returns a message about the outcome.
    fn offer(&self, talk: &mut Talk<'_>, path: &str, content: &str) -> Result<String, Failure> {
        let text = proposals::offer(self.place, self.user, path, content)?;
        talk.take_up(self);
        Ok(text)
    }

    fn new_command(&mut self, talk: &mut Talk<'_>, argument: &str) -> Result<String, Failure> {
        let words = argument.split_once(char::is_whitespace);
        let (name, description) = words.unwrap_or((argument, ""));
        let Some(path) = commands::file_for(name).filter(|_| !description.trim().is_empty()) else {
            let what = "say a name and what it is to do: `/command NAME DESCRIPTION`";
            let names = "names have a-z, 0-9, `_` and `-`, and are none of the program's own";
            return Ok(format!("{what}; {names}"));
        };
        let content = proposals::command(self.place, name, description)?;
        let text = self.offer(talk, &path, &content)?;
        self.place.reload_commands();
        trusting::trust_written(self.place, name, &content)?;
        Ok(text)
    }

    /// Expands a user-defined command and works on the resulting request. Returns `false` if the command cannot be run.
    fn carry_out(
        &mut self,
        talk: &mut Talk<'_>,
        name: &str,
        argument: &str,
    ) -> Result<bool, Failure> {
        match attach::expand(self.place, Some(self.user), name, argument)? {
            Ok(asked) => self.work_on(talk, &asked).map(|_| true),
            Err(problem) => {
                let text = format!("`/{name}` was not run: {problem}");
                say(talk.context, self.user, &text);
                Ok(false)
            }
        }
    }

    /// Lets the user choose an entry; `None` if they cancel.
    fn choose(&self, menu: Menu) -> Result<Option<usize>, Failure> {
        if let Some(screen) = self.screen {
            return Ok(screen.choose(menu)?);
        }
        let last = menu.items.len();
        let number = chosen_number(self.place.context, self.user, menu, "number> ")?;
        let chosen = number.and_then(|number| number.parse::<usize>().ok()?.checked_sub(1));
        Ok(chosen.filter(|chosen| *chosen < last))
    }
}

/// Shows a resumed conversation: all of it on the screen, only its end in line mode.
pub fn show_conversation(place: &ChatPlace<'_>, screen: Option<&Screen>) {
    if let Some(screen) = screen {
        screen.post(ToScreen::Transcript(place.transcript()));
    } else if let Some(recap) = place.base.stored.session.borrow().conversation.recap() {
        place.context.reporter.event(&Event::Words(recap));
    }
}
