//! Talks with the user at the screen: requests, slash commands and commands for the shell, one after another.
//!
//! Failures are shown on the screen and do not end the conversation.

use super::entries::STOPPED_SHOWN;
use super::login::Said;
use super::place::ChatPlace;
use super::{
    attach, checklist, commands, login, proposals, request, shell, slash, spending, trusting,
};
use crate::agent::AgentError;
use crate::agent::conversation::UserRequest;
use crate::commands::last;
use crate::commands::screen::Screen;
use crate::commands::talk::tally::Tally;
use crate::commands::talk::undo_last;
use crate::commands::workspace::{AnswerSource, Keeping as _, SessionChoice};
use crate::edit::undo_log;
use crate::exec::process::ProcessState;
use crate::model::Provider;
use crate::project::conventions::AGENTS_FILE;
use crate::record::event::Event;
use crate::record::mode::Mode;
use crate::record::question::Question;
use crate::record::todos::{Todo, TodoStatus};
use crate::run::accounts;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::exit::Exit;
use crate::ui::tui::history::is_secret;
use crate::ui::tui::{Connection, Menu, Submission, ToScreen};

/// The maximum number of sessions offered for a choice.
const LISTED: usize = 50;

/// The end of a talk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TalkEnd {
    /// The user has left.
    Left,
    /// All is to be set up anew with another account: this one, or that of the accounts' file.
    Reopen(Option<String>),
}

/// A user at the screen.
pub struct Talk<'t, 'c> {
    place: &'t mut ChatPlace<'c>,
    screen: &'t Screen,
    /// The runs that can be undone, and the usage so far.
    tally: Tally,
    end: Option<TalkEnd>,
}

/// Talks until the user ends it, or everything is to be set up anew.
///
/// # Errors
/// When a signal came that lasts.
pub fn talk(place: &mut ChatPlace<'_>, screen: &Screen) -> Result<TalkEnd, Failure> {
    let mut talk = Talk {
        place,
        screen,
        tally: Tally::default(),
        end: None,
    };
    talk.show();
    trusting::ask_at_start(talk.place, screen)?;
    screen.tell(ToScreen::Settled);
    while let Some(submission) = screen.next() {
        talk.hear(&submission)?;
        if let Some(end) = talk.end.take() {
            // What a command has made of the permissions must not count unseen.
            talk.look_at_permissions()?;
            return Ok(end);
        }
        screen.tell(ToScreen::Settled);
    }
    let context = talk.place.context;
    let _ = context.interrupt.take();
    context.interrupt.check().map_err(AgentError::from)?;
    Ok(TalkEnd::Left)
}

impl Talk<'_, '_> {
    /// Shows the session as it is.
    fn show(&mut self) {
        self.screen
            .tell(ToScreen::Todos(self.place.todos.borrow().clone()));
        self.show_commands();
        self.show_model();
        self.screen
            .status(|status| status.connection = Connection::Connected);
        self.remember_changes();
    }

    /// Shows which model is asked, and how much of its window is used.
    fn show_model(&self) {
        self.screen.status(|status| {
            status
                .model
                .clone_from(&self.place.base.models.first.spec.name);
            status.window = self.place.window();
            status.used = self.place.used();
        });
    }

    fn show_commands(&self) {
        self.screen.tell(ToScreen::Commands(self.place.hints()));
    }

    /// Does what a line says, and tells what fails.
    fn hear(&mut self, submission: &Submission) -> Result<(), Failure> {
        let done = self.take(submission);
        self.screen
            .tell(ToScreen::Todos(self.place.todos.borrow().clone()));
        // What was done beside the conversation counts for nothing in it.
        let used = self.place.used();
        self.screen.status(|status| status.used = used);
        let _ = self.place.context.interrupt.take();
        self.place
            .context
            .interrupt
            .check()
            .map_err(AgentError::from)?;
        let Err(failure) = done else {
            return Ok(());
        };
        if matches!(failure.error.exit(), Exit::Interrupted(_)) {
            self.place.context.notice(STOPPED_SHOWN);
            return Ok(());
        }
        if failure.error.exit() == Exit::ModelFailed {
            self.screen
                .status(|status| status.connection = Connection::Error);
        }
        self.place.context.reporter.event(&Event::Failed {
            error: failure.error.to_string(),
            hint: failure.hint(),
            log: failure.log,
        });
        Ok(())
    }

    fn take(&mut self, submission: &Submission) -> Result<(), Failure> {
        let text = submission.text.trim();
        if let Some(command) = text.strip_prefix('!') {
            return shell::run_for_user(self.place, command.trim());
        }
        let text = if is_secret(text) {
            text.to_owned()
        } else {
            request::censored(self.place, text)
        };
        if text.starts_with('/') {
            // They may have been written since.
            self.place.reload_commands();
            self.show_commands();
        }
        let own = |name: &str| self.place.command(name).is_some();
        match slash::read(&text, own) {
            Some(Ok((name, argument))) => self.obey(name, argument),
            Some(Err(problem)) => {
                self.screen.say(problem);
                Ok(())
            }
            None => {
                let submission = Submission {
                    text,
                    ..submission.clone()
                };
                let asked = attach::request(self.place, &submission);
                self.attend(&asked)
            }
        }
    }

    /// Works on a request.
    fn attend(&mut self, asked: &UserRequest) -> Result<(), Failure> {
        // What was done is struck until the next request.
        let is_open = |todo: &Todo| todo.status != TodoStatus::Completed;
        self.place.todos.borrow_mut().retain(is_open);
        // Until the vendor counts it.
        let tokens = request::tokens_of(asked);
        self.screen
            .status(|status| status.used = status.used.saturating_add(tokens));
        self.look_at_permissions()?;
        let _ = self.screen.take_begun();
        let (place, screen) = (&*self.place, self.screen);
        let ask = |question: &Question, preview: Option<&str>| {
            request::ask(place, screen, self.place.context.clock, question, preview)
        };
        let done = request::work(self.place, AnswerSource::Screen(&ask), Some(asked));
        let (record, log) = match &done {
            Ok(outcome) => (&outcome.record, &outcome.log),
            Err(failure) => (&failure.record, &failure.log),
        };
        if let Some(record) = record {
            self.tally.add(record, log.as_deref());
        }
        let begun = self.screen.take_begun();
        if matches!(&done, Err(failure) if matches!(failure.error.exit(), Exit::Interrupted(_)))
            && let Err(problem) = self.place.keep_begun(&begun)
        {
            self.place.context.warn(problem.to_string());
        }
        // What a command has made of the permissions counts for nothing until the user has looked.
        let looked = self.look_at_permissions();
        let outcome = done?;
        looked?;
        self.offer_to_carry_out(&outcome)
    }

    /// Asks about permissions that somebody else has changed since they were read.
    fn look_at_permissions(&self) -> Result<(), Failure> {
        proposals::look_at_permissions(self.place, self.screen)?;
        Ok(())
    }

    /// Asks how to carry out a plan that ends in a checklist.
    fn offer_to_carry_out(&mut self, outcome: &Outcome) -> Result<(), Failure> {
        if self.place.mode.get() != Mode::Planning {
            return Ok(());
        }
        let Some(todos) = checklist::checklist(&outcome.summary) else {
            return Ok(());
        };
        let menu = Menu {
            title: "The plan ends in a checklist".to_owned(),
            items: [
                ("Carry it out in Regular", "asks before it changes anything"),
                ("Carry it out in Auto-Pilot", "asks nothing"),
                ("Go on planning", ""),
            ]
            .map(|(name, said)| (name.to_owned(), said.to_owned()))
            .into(),
            at: 2,
        };
        let mode = match self.screen.choose(menu)? {
            Some(0) => Mode::Regular,
            Some(1) => Mode::AutoPilot,
            _ => return Ok(()),
        };
        self.place.mode.set(mode);
        self.place.todos.replace(todos);
        let words = "Carry out the plan, item by item.";
        self.screen.say(format!("> {words}"));
        self.attend(&UserRequest::from(words))
    }

    /// Does what a command of the program's own says, or what the user has written under that name.
    fn obey(&mut self, name: &str, argument: &str) -> Result<(), Failure> {
        let said = match name {
            "help" => slash::help(&self.place.hints()),
            "exit" => {
                self.end = Some(TalkEnd::Left);
                return Ok(());
            }
            "clear" => {
                self.change_session(SessionChoice::New)?;
                "a new session".to_owned()
            }
            "resume" => self.resume()?,
            "cost" => spending::told(self.place)?,
            "undo" => self.undo()?,
            "mode" => self.place.mode.switch(argument),
            "model" => self.model(argument)?,
            "permissions" => self.place.permissions.borrow().markdown(),
            "copy" => match self.place.last_words() {
                Some(words) => {
                    self.screen.tell(ToScreen::Copy(words));
                    "the last reply is in the clipboard".to_owned()
                }
                None => "there is no reply yet".to_owned(),
            },
            "transcript" => {
                self.screen
                    .tell(ToScreen::Page(self.place.transcript_text()));
                return Ok(());
            }
            "compact" => proposals::compact(self.place, argument)?,
            "login" => self.login(argument)?,
            "logout" => {
                let said = login::log_out(self.place.context)?;
                self.reopen(said)
            }
            "init" => self.init()?,
            "command" => self.new_command(argument)?,
            own => return self.own(own, argument),
        };
        self.screen.say(said);
        Ok(())
    }

    fn model(&mut self, name: &str) -> Result<String, Failure> {
        let name = match name {
            "" => {
                let menu = self.place.model_menu()?;
                let names = menu.items.clone();
                let chosen = self.screen.choose(menu)?;
                let Some((name, _)) = chosen.and_then(|at| names.get(at).cloned()) else {
                    return Ok("the model stays the same".to_owned());
                };
                name
            }
            name => name.to_owned(),
        };
        self.place.choose_model(&name)?;
        self.show_model();
        Ok(format!("`{name}` is asked from now on"))
    }

    fn undo(&mut self) -> Result<String, Failure> {
        let (run, said) = undo_last(self.place.context, &mut self.tally)?;
        if let Some(run) = run {
            let changes = undo_log::read(self.place.context.project.root(), &run)?;
            let files = changes.into_iter().flat_map(|changes| changes.files);
            let paths: Vec<String> = files.map(|(path, _)| path).collect();
            self.place.undone(&paths)?;
        }
        Ok(said)
    }

    /// Finds what the session's requests have changed that is still there.
    fn remember_changes(&mut self) {
        let id = self.place.id();
        let found = last::changed_in(self.place.context, &id);
        // Runs that cannot be read are no reason not to go on.
        (self.tally.changed, self.tally.is_latest) = found.unwrap_or_default();
    }

    fn resume(&mut self) -> Result<String, Failure> {
        let mut sessions = self.place.base.sessions_here(self.place.context)?;
        sessions.truncate(LISTED);
        if sessions.is_empty() {
            return Ok("there is no other session in this directory".to_owned());
        }
        let items = sessions
            .iter()
            .map(|(_, line)| (line.clone(), String::new()));
        let menu = Menu {
            title: "Resume a session".to_owned(),
            items: items.collect(),
            at: 0,
        };
        let chosen = self.screen.choose(menu)?;
        let Some((id, _)) = chosen.and_then(|at| sessions.get(at)) else {
            return Ok("the session stays the same".to_owned());
        };
        self.change_session(SessionChoice::Named(id.clone()))?;
        Ok("the session goes on".to_owned())
    }

    fn change_session(&mut self, choice: SessionChoice) -> Result<(), Failure> {
        self.place.change_session(choice)?;
        self.screen
            .tell(ToScreen::Transcript(self.place.transcript()));
        self.show();
        Ok(())
    }

    fn login(&mut self, argument: &str) -> Result<String, Failure> {
        let said = match argument {
            "" => self.choose_account()?,
            argument => Some(login::log_in(
                self.place.context,
                argument,
                self.provider(),
            )?),
        };
        Ok(match said {
            Some(said) => self.reopen(said),
            None => "the account stays the same".to_owned(),
        })
    }

    /// Sets everything up anew, which ends background processes: the user and the model are told.
    fn reopen(&mut self, said: Said) -> String {
        let told = said.markdown();
        self.end = Some(TalkEnd::Reopen(said.account));
        let listed = self.place.base.processes.borrow_mut().list();
        let running = listed.iter();
        let running = running.filter(|process| process.state == ProcessState::Running);
        let running: Vec<String> = running.map(|process| process.id.clone()).collect();
        if running.is_empty() {
            return told;
        }
        self.place.briefing.borrow_mut().ended(&running);
        format!(
            "{told}; that has ended these background processes: {}",
            running.join(", ")
        )
    }

    /// The vendor of the model, if it has accounts; else the usual one.
    fn provider(&self) -> Provider {
        let provider = self.place.base.models.first.spec.provider;
        if provider.vendor().key_file.is_some() {
            provider
        } else {
            accounts::USUAL
        }
    }

    /// Signs in with the account that the user chooses, or with a key that they type unseen.
    fn choose_account(&self) -> Result<Option<Said>, Failure> {
        let accounts = login::accounts(self.place.context)?;
        let active = accounts.active().map(|account| &*account.name);
        let another = ("another key".to_owned(), "type it unseen".to_owned());
        let told = |name: &str| if Some(name) == active { "active" } else { "" };
        let items = accounts.names();
        let items = items.map(|name| (name.to_owned(), told(name).to_owned()));
        let at = accounts.names().position(|name| Some(name) == active);
        let menu = Menu {
            title: "Sign in".to_owned(),
            items: items.chain([another]).collect(),
            at: at.unwrap_or_default(),
        };
        let chosen = match active {
            Some(_) => self.screen.choose(menu)?,
            None => Some(0),
        };
        let Some(at) = chosen else {
            return Ok(None);
        };
        if let Some(name) = accounts.names().nth(at) {
            return Ok(Some(login::log_in(
                self.place.context,
                name,
                self.provider(),
            )?));
        }
        let Some(key) = self.screen.typed("API key: ", true)? else {
            return Ok(None);
        };
        let provider = login::provider_of(&key).unwrap_or(self.provider());
        let said = login::log_in_with(self.place.context, &key, None, provider)?;
        Ok(Some(said))
    }

    fn init(&mut self) -> Result<String, Failure> {
        if self.place.mode.get() == Mode::Planning {
            let said = "`/init` has to look around, and nothing is executed in Planning: switch modes first";
            return Ok(said.to_owned());
        }
        let proposed = proposals::proposed(self.place, "/init", proposals::INIT)?;
        let said = proposals::offer(self.place, self.screen, AGENTS_FILE, &proposed)?;
        self.remember_changes();
        Ok(said)
    }

    fn new_command(&mut self, argument: &str) -> Result<String, Failure> {
        let (name, description) = argument
            .split_once(char::is_whitespace)
            .unwrap_or((argument, ""));
        let Some(path) = commands::file_for(name).filter(|_| !description.trim().is_empty()) else {
            let what = "say a name and what it is to do: `/command NAME DESCRIPTION`";
            let names = "names have a-z, 0-9, `_` and `-`, and are none of the program's own";
            return Ok(format!("{what}; {names}"));
        };
        let content = proposals::command(self.place, name, description)?;
        let said = proposals::offer(self.place, self.screen, &path, &content)?;
        self.remember_changes();
        self.place.reload_commands();
        self.show_commands();
        trusting::trust_written(self.place, name, &content)?;
        Ok(said)
    }

    /// Carries out one of the user's own commands, by the model that it names, which is asked no longer than that.
    fn own(&mut self, name: &str, argument: &str) -> Result<(), Failure> {
        let command = self.place.command(name);
        let model = command.and_then(|command| command.model.clone());
        let Some(model) = model else {
            return self.carry_out(name, argument);
        };
        let before = self.place.base.models.first.spec.name.clone();
        self.model(&model)?;
        let done = self.carry_out(name, argument);
        self.model(&before)?;
        done
    }

    fn carry_out(&mut self, name: &str, argument: &str) -> Result<(), Failure> {
        let screen = Some(self.screen);
        match attach::expand(self.place, screen, name, argument)? {
            Ok(asked) => self.attend(&asked),
            Err(problem) => {
                self.screen
                    .say(format!("`/{name}` is not carried out: {problem}"));
                Ok(())
            }
        }
    }
}
