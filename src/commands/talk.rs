//! A user's conversation with an agent: requests and slash commands, in sequence, on the screen or in line mode.
//!
//! Ctrl-C stops the current work and returns to the prompt. In line mode, a second Ctrl-C ends the program if it
//! follows immediately or arrives before the work has stopped. Failures are reported and do not end the conversation.

pub(crate) mod menu;
pub(crate) mod question;
mod session_facts;
pub(crate) mod slash;
pub(crate) mod tally;

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use miette::MietteDiagnostic;

use self::menu::{chosen_model, chosen_session, table_menu};
pub use self::session_facts::SessionFacts;
use self::slash::{Slash, SlashLine};
use self::tally::Tally;
use super::stored_session::SessionChoice;
use super::{diff, last, undo};
use crate::agent::AgentError;
use crate::record::event::Event;
use crate::record::result;
use crate::record::todos::Todo;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome, TextForm, record_of};
use crate::sys::exit::Exit;
use crate::sys::interrupt::Interrupted;
use crate::ui::input::{Typed, User};
use crate::ui::tui::{CommandHint, Connection, Menu, Status, Submission, ToScreen};

/// A second Ctrl-C within this time ends the program.
const AT_ONCE: Duration = Duration::from_secs(2);
/// The hint for a user who has stopped the work on the screen.
const INSTEAD: &str = "say what to do instead";
/// The hint for a user who has stopped the work in line mode.
const INSTEAD_OR_END: &str = "say what to do instead; Ctrl-C again ends";

/// The message for a conversation whose last request has failed.
const UNFINISHED: &str = "the last request was not completed";
/// The hint for a conversation whose last request has failed.
const IS_ABOVE: &str = "its error is above; `--resume` continues the session";

/// An agent that a user can talk to.
pub trait Talker {
    /// The built-in commands that the agent supports.
    const COMMANDS: &'static [Slash] = &slash::COMMON;
    /// The prompt at the start of a line.
    const PROMPT: &'static str;
    /// `true` if a stop ends the program, as does the first Ctrl-C at the prompt in line mode: there is no next
    /// request.
    const LEAVES_AT_ONCE: bool = false;
    /// The introduction of `/help` in line mode.
    const INTRODUCTION: &'static str = slash::AT_REQUEST;
    /// The answer to `/resume` if there is nothing else to continue.
    const NO_SESSIONS: &'static str = "there is no other session in this directory";
    /// The rows of `/help` on the screen for the keys that only this agent has.
    const KEYS: &'static str = "";
    /// The additional lines of `/help` in line mode, for input that only this agent understands.
    const SIGNS: &'static str = "";

    /// Returns `true` if the previous request is unfinished.
    ///
    /// # Errors
    /// Fails if the session cannot be read.
    fn has_more_to_do(&self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Returns the facts about the session.
    fn facts(&self) -> SessionFacts;

    /// Returns the session's to-do list.
    fn todos(&self) -> Vec<Todo> {
        Vec::new()
    }

    /// Returns the user-defined commands.
    fn own_commands(&self) -> Vec<CommandHint> {
        Vec::new()
    }

    /// Returns the answer to a built-in command that has nothing to act on; such a command is not listed.
    fn idle(&self, _command: Slash) -> Option<&'static str> {
        None
    }

    /// Returns the commands that have something to act on, for help and completion.
    fn hints(&self) -> Vec<CommandHint> {
        let mut acting = Self::COMMANDS.to_vec();
        acting.retain(|command| self.idle(*command).is_none());
        slash::listed(&acting, &self.own_commands())
    }

    /// Inspects a line before it is parsed as a command or request; returns `None` if it is handled completely.
    ///
    /// # Errors
    /// Fails if handling the line fails.
    fn hear(&mut self, line: Submission) -> Result<Option<Submission>, Failure> {
        Ok(Some(line))
    }

    /// Shows pending information before the next line is read.
    fn show(&self) {}

    /// Works on a request; `None` continues the previous one. The outcome of a request with which the conversation
    /// [is over](Self::is_over) is not reported.
    ///
    /// # Errors
    /// Fails if the work fails.
    fn attend(
        &mut self,
        talk: &mut Talk<'_>,
        request: Option<Submission>,
    ) -> Result<Outcome, Failure>;

    /// Reports how a request or command ended. Returns `true` if the user stopped it.
    ///
    /// # Errors
    /// Returns the failure if the user wants to leave.
    fn ended(&self, talk: &Talk<'_>, done: Result<Outcome, Failure>) -> Result<bool, Failure> {
        tell(talk.context, done, talk.user)
    }

    /// Records that the changes of this run were undone.
    ///
    /// # Errors
    /// Fails if this cannot be saved.
    fn undone(&mut self, _run: String) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the other sessions of this directory, newest first, each with its id and a one-line description.
    ///
    /// # Errors
    /// Fails if the sessions cannot be read.
    fn sessions(&self) -> Result<Vec<(String, String)>, Failure>;

    /// Switches to another session or a new one, and returns the message for the user.
    ///
    /// # Errors
    /// Fails if the session cannot be opened or created.
    fn change_session(&mut self, which: SessionChoice) -> Result<String, Failure>;

    /// Returns the model in the agent's own settings, which tables need not list.
    fn own_model(&self) -> Option<String> {
        None
    }

    /// Returns the models to choose from.
    ///
    /// # Errors
    /// Fails if the user interrupts the listing.
    fn models(&mut self, context: &Context<'_>) -> Result<Menu, Failure> {
        let own = self.own_model();
        Ok(table_menu(context, own, &self.facts().model))
    }

    /// Switches to the model of this name.
    ///
    /// # Errors
    /// Fails if the model is unknown or its configuration is incomplete.
    fn choose_model(&mut self, name: &str) -> Result<(), Failure>;

    /// Describes the usage so far.
    ///
    /// # Errors
    /// Fails if the usage cannot be read.
    fn cost(&self, tally: &Tally) -> Result<String, Failure> {
        let tokens = self.facts().tokens;
        Ok(tally.cost(tokens.unwrap_or(tally.session.spent.tokens)))
    }

    /// Replaces the conversation by a summary, with `focus` in view. Returns the message for the user.
    ///
    /// # Errors
    /// Fails if no summary is made.
    fn compact(&mut self, _talk: &mut Talk<'_>, _focus: &str) -> Result<String, Failure> {
        Ok(String::new())
    }

    /// Executes one of the agent's additional commands. Returns the message for the user, if any.
    ///
    /// # Errors
    /// Fails if the command fails.
    fn execute(
        &mut self,
        _talk: &mut Talk<'_>,
        _command: Slash,
        _argument: &str,
    ) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Executes a user-defined command. Returns `true` if its request was made.
    ///
    /// # Errors
    /// Fails if the command fails.
    fn execute_own(
        &mut self,
        _talk: &mut Talk<'_>,
        _name: &str,
        _argument: &str,
    ) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Returns `true` if the conversation ends here, because it must be set up again or the work can begin.
    fn is_over(&self) -> bool {
        false
    }
}

/// The failure of the last request of a conversation, if the exit code reports it; kept when an agent is set up again.
pub type Unfinished = RefCell<Option<MietteDiagnostic>>;

/// A conversation in progress.
pub struct Talk<'t> {
    /// The context of the command.
    pub context: &'t Context<'t>,
    /// The user who types requests and answers.
    pub user: &'t User,
    /// The usage so far, and the runs that can be undone.
    pub tally: Tally,
    /// Time of the last request to stop; `None` after any other input.
    stopped: Option<Duration>,
    connection: Connection,
    /// `true` if the user has left with `/exit`, including at a question.
    pub has_left: bool,
    unfinished: &'t Unfinished,
}

impl<'t> Talk<'t> {
    /// Starts a conversation with this user.
    pub fn new(context: &'t Context<'t>, user: &'t User, unfinished: &'t Unfinished) -> Self {
        Self {
            context,
            user,
            tally: Tally::default(),
            stopped: None,
            connection: Connection::default(),
            has_left: false,
            unfinished,
        }
    }

    /// Runs until the user ends the conversation, or the agent must be set up again.
    ///
    /// # Errors
    /// Fails if the user ends the conversation with Ctrl-C, or no input can be read; also if the last request has
    /// failed, and was piped in or left at a question.
    pub fn run<T: Talker>(&mut self, agent: &mut T) -> Result<(), Failure> {
        self.take_up(agent);
        if agent.has_more_to_do()? {
            self.show_status_bar(agent);
            let done = agent.attend(self, None);
            let done = self.note_failure(done);
            self.end(agent, done)?;
        } else {
            self.show_status(agent);
        }
        while !self.has_left && !agent.is_over() {
            agent.show();
            let Some(line) = self.next_line::<T>()? else {
                break;
            };
            if let Some(done) = self.take(agent, line).transpose() {
                self.end(agent, done)?;
            }
        }
        let is_left = !agent.is_over();
        let unfinished = is_left.then(|| self.unfinished.take()).flatten();
        unfinished.map_or(Ok(()), |unfinished| Err(unfinished.into()))
    }

    /// Executes a line. Returns the outcome to report if it was a request.
    fn take<T: Talker>(
        &mut self,
        agent: &mut T,
        line: Submission,
    ) -> Result<Option<Outcome>, Failure> {
        let Some(line) = agent.hear(line)? else {
            return Ok(None);
        };
        let text = line.text.clone();
        match slash::read(&text, T::COMMANDS, &agent.hints()) {
            SlashLine::Request => {
                let done = agent.attend(self, Some(line));
                let outcome = self.note_failure(done)?;
                return Ok((!agent.is_over()).then_some(outcome));
            }
            SlashLine::Refused(problem) => self.context.notice(problem),
            SlashLine::Own(name, argument) => {
                let done = agent.execute_own(self, name, argument);
                if !matches!(done, Ok(false)) {
                    self.note_failure(done)?;
                }
            }
            SlashLine::Command(Slash::Exit, _) => self.has_left = true,
            SlashLine::Command(command, argument) => {
                let text = self.execute(agent, command, argument)?;
                if let Some(text) = text.filter(|text| !text.is_empty()) {
                    say(self.context, self.user, &text);
                }
            }
        }
        self.show_status_bar(agent);
        Ok(None)
    }

    /// Adds the usage of a request to the tally.
    pub fn count(&mut self, done: &Result<Outcome, Failure>) {
        if let Some(record) = record_of(done) {
            self.tally.add(record);
        }
    }

    /// Adds the usage of a command to the tally, without replacing the last request's.
    pub fn spend(&mut self, done: &Result<Outcome, Failure>) {
        if let Some(record) = record_of(done) {
            self.tally.spend(record);
        }
    }

    /// Records whether a request has failed in a way that the exit code reports.
    fn note_failure<T>(&self, done: Result<T, Failure>) -> Result<T, Failure> {
        let is_person = self.user.borrow().is_person();
        let is_reported = |it: &&Failure| !is_person || AgentError::has_left(&it.error);
        let failure = done.as_ref().err().filter(is_reported);
        self.unfinished.replace(failure.map(|failure| {
            let unfinished = MietteDiagnostic::new(UNFINISHED).with_help(IS_ABOVE);
            let code = failure.error.code().map(|code| code.to_string());
            unfinished.with_code(code.unwrap_or_default())
        }));
        done
    }

    /// Reports how a request, or a command that failed, has ended.
    fn end<T: Talker>(
        &mut self,
        agent: &T,
        mut done: Result<Outcome, Failure>,
    ) -> Result<(), Failure> {
        let is_models = |failure: &Failure| failure.error.exit() == Exit::ModelFailed;
        self.connection = if done.as_ref().is_err_and(is_models) {
            Connection::Error
        } else {
            Connection::Connected
        };
        let has_left = |failure: &Failure| AgentError::has_left(&failure.error);
        self.has_left = done.as_ref().is_err_and(has_left);
        if self.has_left {
            done = self.note_failure(done);
        }
        if agent.ended(self, done)? {
            self.stopped = Some(self.context.clock.elapsed());
            // Input typed ahead was not meant to run after an interruption.
            self.user.borrow_mut().forget_typed_ahead();
        }
        self.show_status(agent);
        Ok(())
    }

    /// Returns the next non-blank line that the user types, or `None` at the end of input. A second request to stop
    /// shortly after the first, with no other input between, means that they want to leave.
    ///
    /// # Errors
    /// Fails if the user leaves, or no input can be read.
    fn next_line<T: Talker>(&mut self) -> Result<Option<Submission>, Failure> {
        loop {
            let typed = self.user.borrow_mut().request(T::PROMPT)?;
            match typed {
                Typed::Line(line) => {
                    self.stopped = None;
                    if !line.text.trim().is_empty() {
                        return Ok(Some(line));
                    }
                }
                Typed::End => return Ok(None),
                Typed::Interrupted => {
                    // Ctrl-C can arrive as a key or as a signal; clear the signal.
                    let _ = self.context.interrupt.take();
                    if T::LEAVES_AT_ONCE {
                        return Err(Interrupted::CTRL_C.into());
                    }
                    let now = self.context.clock.elapsed();
                    let at_once = |at: Duration| now.saturating_sub(at) <= AT_ONCE;
                    if self.stopped.is_some_and(at_once) {
                        return Err(AgentError::Interrupted(Interrupted::CTRL_C).into());
                    }
                    self.stopped = Some(now);
                    self.context.notice("Ctrl-C again ends");
                }
            }
        }
    }

    fn execute<T: Talker>(
        &mut self,
        agent: &mut T,
        command: Slash,
        argument: &str,
    ) -> Result<Option<String>, Failure> {
        if let Some(text) = agent.idle(command) {
            return Ok(Some(text.to_owned()));
        }
        Ok(Some(match command {
            Slash::Help => {
                if self.user.borrow().is_screen() {
                    slash::screen_help(&agent.hints(), T::KEYS, T::LEAVES_AT_ONCE)
                } else {
                    slash::help(T::INTRODUCTION, &agent.hints()) + T::SIGNS
                }
            }
            Slash::Cost => agent.cost(&self.tally)?,
            Slash::Undo => self.undo(agent)?,
            Slash::Diff => self.diff()?,
            Slash::Model => self.model(agent, argument)?,
            Slash::Clear => self.change_session(agent, SessionChoice::New)?,
            Slash::Resume => self.resume(agent, argument)?,
            Slash::Compact => agent.compact(self, argument)?,
            command => return agent.execute(self, command, argument),
        }))
    }

    /// Undoes the most recent run of this session that changed files and has not been undone.
    fn undo<T: Talker>(&mut self, agent: &mut T) -> Result<String, Failure> {
        let Some(run) = self.tally.session.changed.last().cloned() else {
            let text = "nothing to undo in this session; `code-commit undo` undoes earlier runs";
            return Ok(text.to_owned());
        };
        let outcome = undo::undo(self.context, Some(Path::new(&run)))?;
        self.tally.session.changed.pop();
        self.tally.session.is_latest = false;
        agent.undone(run)?;
        Ok(outcome.summary)
    }

    fn diff(&self) -> Result<String, Failure> {
        let session = &self.tally.session;
        let last = session.changed.last();
        let Some(run) = last.filter(|_| session.is_latest) else {
            let earlier = last.map_or(String::new(), |run| {
                let run = run.trim_start_matches("logs/");
                format!(
                    "; the next for `/undo` is an earlier one: `code-commit diff {run}` shows it"
                )
            });
            let text = "the last request's file tools have changed nothing that is still there";
            return Ok(format!("{text}{earlier}"));
        };
        let outcome = diff::diff(self.context, Some(Path::new(run)), false)?;
        for warning in outcome.warnings {
            self.context.warn(warning);
        }
        if let Some(text) = outcome.output.text.filter(|text| !text.is_empty()) {
            let shown = if outcome.output.form == TextForm::Diff {
                Event::ShownDiff
            } else {
                Event::Shown
            };
            self.context.reporter.event(&shown(text));
        }
        Ok(outcome.summary)
    }

    fn model<T: Talker>(&mut self, agent: &mut T, name: &str) -> Result<String, Failure> {
        if name.is_empty() {
            let menu = agent.models(self.context)?;
            match chosen_model(self.user, menu, &agent.facts().model)? {
                Ok(name) => agent.choose_model(&name)?,
                Err(text) => return Ok(text),
            }
        } else {
            agent.choose_model(name)?;
        }
        Ok(format!("`{}` is asked from now on", agent.facts().model))
    }

    /// Resumes the session with this number, or lets the user choose one of this directory.
    fn resume<T: Talker>(&mut self, agent: &mut T, number: &str) -> Result<String, Failure> {
        let sessions = agent.sessions()?;
        if sessions.is_empty() {
            return Ok(T::NO_SESSIONS.to_owned());
        }
        match chosen_session(self.context, self.user, &sessions, number)? {
            Ok(id) => self.change_session(agent, SessionChoice::Named(id)),
            Err(text) => Ok(text),
        }
    }

    fn change_session<T: Talker>(
        &mut self,
        agent: &mut T,
        which: SessionChoice,
    ) -> Result<String, Failure> {
        let text = agent.change_session(which)?;
        self.tally.last_took = None;
        self.take_up(agent);
        Ok(text)
    }

    /// Reads the session's runs, and shows its to-do list on the screen.
    pub fn take_up<T: Talker>(&mut self, agent: &T) {
        let facts = agent.facts();
        self.user.borrow_mut().show(ToScreen::Todos(agent.todos()));
        let found = facts.session.map(|id| last::runs_of(self.context, &id));
        // Unreadable runs must not prevent the conversation.
        self.tally.session = found.and_then(Result::ok).unwrap_or_default();
    }

    /// Shows the status, in line mode as well.
    fn show_status<T: Talker>(&self, agent: &T) {
        self.show_status_bar(agent);
        let facts = agent.facts();
        if facts.used.is_none() || !self.user.borrow().is_screen() {
            let root = self.context.project.root();
            let directory = root.file_name().unwrap_or(root.as_os_str());
            let model = match facts.mode {
                Some(mode) => format!("{} Mode · {}", mode.into_str(), facts.model),
                None => facts.model,
            };
            let line = self.tally.line(
                &model,
                &directory.to_string_lossy(),
                facts.tokens.unwrap_or(self.tally.session.spent.tokens),
                facts.window,
            );
            self.context.reporter.event(&Event::Status(line));
        }
    }

    /// Shows the status on the screen.
    pub fn show_status_bar<T: Talker>(&self, agent: &T) {
        let facts = agent.facts();
        let status = Status {
            used: facts.used.unwrap_or(self.tally.context()),
            model: facts.model,
            vendor: facts.vendor,
            window: facts.window,
            connection: self.connection,
            is_one_task: T::LEAVES_AT_ONCE,
        };
        self.user.borrow_mut().show_status(status, agent.hints());
    }
}

/// Shows the answer to a command.
pub fn say(context: &Context<'_>, user: &User, words: &str) {
    if !user.borrow_mut().show(ToScreen::Said(words.to_owned())) {
        context.notice(words);
    }
}

/// Returns the outcome of a conversation that the user has ended; `session` is `None` if the last session has no
/// request.
///
/// # Errors
/// Fails if the conversation has failed.
pub fn left(session: Option<String>, talked: Result<(), Failure>) -> Result<Outcome, Failure> {
    let text = session.map_or_else(
        || "nothing was asked for".to_owned(),
        |id| format!("session {id}: `--resume` continues it"),
    );
    match talked {
        Ok(()) => Ok(Outcome::new(text)),
        Err(failure) if failure.error.is::<MietteDiagnostic>() => Err(failure.with_text(text)),
        Err(failure) => Err(failure),
    }
}

/// Reports how the work has ended. Returns `true` if the user stopped it.
///
/// # Errors
/// Returns the failure if the user wants to leave.
pub fn tell(
    context: &Context<'_>,
    done: Result<Outcome, Failure>,
    user: &User,
) -> Result<bool, Failure> {
    let failure = match done {
        Ok(outcome) => {
            context.reporter.event(&outcome.event());
            return Ok(false);
        }
        Err(failure) => failure,
    };
    let (taken, is_screen) = (context.interrupt.take(), user.borrow().is_screen());
    // A second Ctrl-C means leaving, except on the screen, which has another key for that; SIGTERM always does.
    if taken > 1 && !is_screen || taken == 0 && context.interrupt.check().is_err() {
        return Err(failure);
    }
    // At a question, Ctrl-C arrives as a key.
    let is_stopped = taken > 0 || matches!(failure.error.exit(), Exit::Interrupted(_));
    let (error, hint) = if is_stopped {
        let instead = if is_screen { INSTEAD } else { INSTEAD_OR_END };
        let hint = result::hint(Some(instead.to_owned()), failure.tree);
        ("stopped".to_owned(), hint)
    } else {
        (failure.error.to_string(), failure.hint())
    };
    // The screen has shown the answer as it came.
    if let Some(summary) = failure.output.text.filter(|_| !is_screen) {
        let finished = Event::Finished { summary, log: None };
        context.reporter.event(&finished);
    }
    let log = failure.output.log;
    context.reporter.event(&Event::Failed { error, hint, log });
    Ok(is_stopped)
}
