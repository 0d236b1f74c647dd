//! The talk of a user with an agent: requests and slash commands, one after another, on the screen or by lines.
//!
//! Ctrl-C stops what is being done and returns to the prompt; by lines a second one, at once after the first or before
//! what is being done has stopped, ends. What fails is told and does not end the talk.

pub(crate) mod slash;
pub(crate) mod tally;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use self::slash::{Slash, SlashLine};
use self::tally::Tally;
use super::workspace::SessionChoice;
use super::{diff, last, undo};
use crate::agent::AgentError;
use crate::model::ModelTable;
use crate::record::event::Event;
use crate::record::result;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::exit::Exit;
use crate::sys::interrupt::{Interrupted, Signal};
use crate::ui::input::{Typed, User};
use crate::ui::tui::{CommandHint, Connection, Menu, Status, Submission};

/// A second Ctrl-C that comes within this time is meant for the program.
const AT_ONCE: Duration = Duration::from_secs(2);
/// The hint for a user who has stopped the work.
const INSTEAD: &str = "say what is to be done instead; Ctrl-C again ends";
/// The maximum number of sessions offered for a choice.
const LISTED: usize = 50;

/// An agent that a user talks with.
pub trait Talker {
    /// The commands of the program that it has.
    const COMMANDS: &'static [Slash];
    /// The prompt before a line.
    const PROMPT: &'static str;

    /// Returns whether what was asked for before is not done.
    ///
    /// # Errors
    /// When that cannot be read.
    fn has_more_to_do(&self) -> Result<bool, Failure>;

    /// The facts about its session.
    fn standing(&self) -> Standing;

    /// The commands that its user has written.
    fn own_commands(&self) -> Vec<CommandHint> {
        Vec::new()
    }

    /// Takes a line before it is read as a command or request; `None` where that was all.
    ///
    /// # Errors
    /// When what it says fails.
    fn hear(&mut self, line: Submission) -> Result<Option<Submission>, Failure> {
        Ok(Some(line))
    }

    /// Shows what there is before the next line.
    fn show(&self, _talk: &Talk<'_>) {}

    /// Works on a request, or goes on with what was asked for before.
    ///
    /// # Errors
    /// When it is not done.
    fn attend(
        &mut self,
        talk: &mut Talk<'_>,
        request: Option<Submission>,
    ) -> Result<Outcome, Failure>;

    /// Tells how a request or a command has ended; whether the user has stopped it.
    ///
    /// # Errors
    /// The failure, where the user wants to leave.
    fn ended(&self, talk: &Talk<'_>, done: Result<Outcome, Failure>) -> Result<bool, Failure> {
        tell(talk.context, done, talk.user)
    }

    /// Notes that the changes of this run were undone.
    ///
    /// # Errors
    /// When that cannot be kept.
    fn undone(&mut self, _run: String) -> Result<(), Failure> {
        Ok(())
    }

    /// The other sessions of this directory, the newest first: the id of each, and a line that tells of it.
    ///
    /// # Errors
    /// When they cannot be read.
    fn sessions(&self) -> Result<Vec<(String, String)>, Failure>;

    /// Goes on with another session, or with a new one; what is said of that.
    ///
    /// # Errors
    /// When it cannot be opened or made.
    fn change_session(&mut self, which: SessionChoice) -> Result<String, Failure>;

    /// The models to choose from.
    ///
    /// # Errors
    /// When the user has stopped it.
    fn models(&mut self) -> Result<Menu, Failure>;

    /// Switches to the model of this name.
    ///
    /// # Errors
    /// When there is none of that name, or it lacks something.
    fn choose_model(&mut self, name: &str) -> Result<(), Failure>;

    /// The usage so far, in words.
    ///
    /// # Errors
    /// When that cannot be read.
    fn cost(&self, tally: &Tally) -> Result<String, Failure> {
        Ok(tally.cost(self.standing().tokens))
    }

    /// Does what another of its commands says; `None` where nothing is said of that.
    ///
    /// # Errors
    /// When it fails.
    fn obey(
        &mut self,
        _talk: &mut Talk<'_>,
        _command: Slash,
        _argument: &str,
    ) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Carries out a command that the user has written.
    ///
    /// # Errors
    /// When it fails.
    fn obey_own(
        &mut self,
        _talk: &mut Talk<'_>,
        _name: &str,
        _argument: &str,
    ) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns whether the talk ends here, for it to be set up anew.
    fn is_over(&self) -> bool {
        false
    }
}

/// The facts about an agent's session that its user is told.
#[derive(Debug, Default)]
pub struct Standing {
    /// The session's id; `None` before its first request.
    pub session: Option<String>,
    /// The model that is asked.
    pub model: String,
    /// The tokens that the model takes.
    pub window: u64,
    /// The tokens that the session has taken.
    pub tokens: u64,
    /// The tokens of the conversation; `None`: as the last call has counted them, which a line tells behind each request.
    pub used: Option<u64>,
}

/// A talk under way.
pub struct Talk<'t> {
    /// The surroundings.
    pub context: &'t Context<'t>,
    /// The user.
    pub user: &'t User,
    /// The usage so far, and the runs that can be undone.
    pub tally: Tally,
    /// The time when the user asked to stop, if nothing else has come since.
    stopped: Option<Duration>,
    connection: Connection,
}

impl<'t> Talk<'t> {
    /// A talk that begins with this user.
    pub fn new(context: &'t Context<'t>, user: &'t User) -> Self {
        Self {
            context,
            user,
            tally: Tally::default(),
            stopped: None,
            connection: Connection::default(),
        }
    }

    /// Talks until the user ends it, or the agent is to be set up anew.
    ///
    /// # Errors
    /// When the user has ended it by Ctrl-C, or cannot be asked.
    pub fn run<T: Talker>(&mut self, agent: &mut T) -> Result<(), Failure> {
        self.remember_changes(agent);
        if agent.has_more_to_do()? {
            let done = agent.attend(self, None);
            self.end(agent, done)?;
        } else {
            self.show_status(agent);
        }
        while !agent.is_over() {
            agent.show(self);
            let Some(line) = next_line(self.context, self.user, T::PROMPT, &mut self.stopped)?
            else {
                break;
            };
            match self.take(agent, line) {
                Ok(ControlFlow::Break(())) => break,
                Ok(ControlFlow::Continue(None)) => {}
                Ok(ControlFlow::Continue(Some(outcome))) => self.end(agent, Ok(outcome))?,
                Err(failure) => self.end(agent, Err(failure))?,
            }
        }
        Ok(())
    }

    /// Does what a line says; the outcome where it was a request. Breaks where it ends the talk.
    fn take<T: Talker>(
        &mut self,
        agent: &mut T,
        line: Submission,
    ) -> Result<ControlFlow<(), Option<Outcome>>, Failure> {
        let Some(line) = agent.hear(line)? else {
            return Ok(ControlFlow::Continue(None));
        };
        let text = line.text.clone();
        match slash::read(&text, T::COMMANDS, &agent.own_commands()) {
            SlashLine::Request => {
                let outcome = agent.attend(self, Some(line))?;
                return Ok(ControlFlow::Continue(Some(outcome)));
            }
            SlashLine::Refused(problem) => self.context.notice(problem),
            SlashLine::Own(name, argument) => agent.obey_own(self, name, argument)?,
            SlashLine::Command(Slash::Exit, _) => return Ok(ControlFlow::Break(())),
            SlashLine::Command(command, argument) => {
                let said = self.obey(agent, command, argument)?;
                if let Some(said) = said.filter(|said| !said.is_empty()) {
                    self.say(&said);
                }
            }
        }
        self.show_status_bar(agent);
        Ok(ControlFlow::Continue(None))
    }

    /// Counts what a request has taken.
    pub fn count(&mut self, done: &Result<Outcome, Failure>) {
        let (record, log) = match done {
            Ok(outcome) => (&outcome.record, &outcome.log),
            Err(failure) => (&failure.record, &failure.log),
        };
        if let Some(record) = record {
            self.tally.add(record, log.as_deref());
        }
    }

    /// Counts what a command has taken, which leaves the last request the last one.
    pub fn spend(&mut self, done: &Result<Outcome, Failure>) {
        let record = match done {
            Ok(outcome) => &outcome.record,
            Err(failure) => &failure.record,
        };
        if let Some(record) = record {
            self.tally.spend(record);
        }
    }

    /// Tells how a request, or a command that failed, has ended.
    fn end<T: Talker>(&mut self, agent: &T, done: Result<Outcome, Failure>) -> Result<(), Failure> {
        let is_models = |failure: &Failure| failure.error.exit() == Exit::ModelFailed;
        self.connection = if done.as_ref().is_err_and(is_models) {
            Connection::Error
        } else {
            Connection::Connected
        };
        if agent.ended(self, done)? {
            self.stopped = Some(self.context.clock.elapsed());
            // What was typed ahead was not meant to begin now.
            self.user.borrow_mut().forget_typed_ahead();
        }
        self.show_status(agent);
        Ok(())
    }

    /// Says the answer to a command.
    pub fn say(&self, words: &str) {
        if !self.user.borrow_mut().say(words) {
            self.context.notice(words);
        }
    }

    fn obey<T: Talker>(
        &mut self,
        agent: &mut T,
        command: Slash,
        argument: &str,
    ) -> Result<Option<String>, Failure> {
        Ok(Some(match command {
            Slash::Help => {
                let hints = slash::listed(T::COMMANDS, &agent.own_commands());
                if self.user.borrow().is_screen() {
                    slash::screen_help(&hints)
                } else {
                    slash::help(&hints)
                }
            }
            Slash::Cost => agent.cost(&self.tally)?,
            Slash::Undo => self.undo(agent)?,
            Slash::Diff => self.diff()?,
            Slash::Model => self.model(agent, argument)?,
            Slash::Clear => self.change_session(agent, SessionChoice::New)?,
            Slash::Resume => self.resume(agent, argument)?,
            command => return agent.obey(self, command, argument),
        }))
    }

    /// Takes back what the last request has changed that was not taken back yet.
    fn undo<T: Talker>(&mut self, agent: &mut T) -> Result<String, Failure> {
        let Some(run) = self.tally.changed.last().cloned() else {
            let said = "nothing was changed here that is still there; `code-commit undo` takes back earlier runs";
            return Ok(said.to_owned());
        };
        let outcome = undo::undo(self.context, Some(Path::new(&run)))?;
        self.tally.changed.pop();
        self.tally.is_latest = false;
        agent.undone(run)?;
        Ok(outcome.summary)
    }

    fn diff(&self) -> Result<String, Failure> {
        let run = self.tally.changed.last();
        let Some(run) = run.filter(|_| self.tally.is_latest) else {
            let said = "the last request has changed nothing that is still there";
            return Ok(said.to_owned());
        };
        let outcome = diff::diff(self.context, Some(Path::new(run)), false)?;
        for warning in outcome.warnings {
            self.context.warn(warning);
        }
        if let Some(text) = outcome.text.filter(|text| !text.is_empty()) {
            self.context.reporter.event(&Event::Shown(text));
        }
        Ok(outcome.summary)
    }

    fn model<T: Talker>(&mut self, agent: &mut T, name: &str) -> Result<String, Failure> {
        let mut name = name.to_owned();
        if name.is_empty() {
            let menu = agent.models()?;
            let names: Vec<String> = menu.items.iter().map(|(name, _)| name.clone()).collect();
            let Some(chosen) = self.user.borrow_mut().choose(menu).transpose()? else {
                let (asked, names) = (agent.standing().model, names.join(", "));
                return Ok(format!(
                    "`{asked}` is asked; `/model NAME` asks another: {names}"
                ));
            };
            match chosen.and_then(|at| names.get(at)) {
                Some(chosen) => name.clone_from(chosen),
                None => return Ok("the model stays the same".to_owned()),
            }
        }
        agent.choose_model(&name)?;
        Ok(format!("`{}` is asked from now on", agent.standing().model))
    }

    /// Lists the sessions of this directory, and goes on with the one that the user chooses.
    fn resume<T: Talker>(&mut self, agent: &mut T, number: &str) -> Result<String, Failure> {
        let mut sessions = agent.sessions()?;
        sessions.truncate(LISTED);
        if sessions.is_empty() {
            return Ok("there is no other session in this directory".to_owned());
        }
        let Some(number) = self.chosen_session(&sessions, number)? else {
            return Ok("the session stays the same".to_owned());
        };
        let chosen = number.parse::<usize>().ok();
        let Some((id, _)) = chosen.and_then(|nth| sessions.get(nth.checked_sub(1)?)) else {
            return Ok(format!(
                "there is no session `{number}`: choose from 1 to {}",
                sessions.len()
            ));
        };
        self.change_session(agent, SessionChoice::Named(id.clone()))
    }

    /// The number of the session that the user has named, or chooses now.
    fn chosen_session(
        &self,
        sessions: &[(String, String)],
        number: &str,
    ) -> Result<Option<String>, Failure> {
        if !number.is_empty() {
            return Ok(Some(number.to_owned()));
        }
        let items = sessions
            .iter()
            .map(|(_, line)| (line.clone(), String::new()));
        let menu = Menu {
            title: "Resume a session".to_owned(),
            items: items.collect(),
            at: 0,
        };
        let mut user = self.user.borrow_mut();
        if let Some(chosen) = user.choose(menu).transpose()? {
            return Ok(chosen.map(|at| (at + 1).to_string()));
        }
        let lines = sessions.iter().zip(1..);
        let lines = lines.map(|((_, line), nth)| format!("{nth:>3}  {line}\n"));
        self.context.notice(lines.collect::<String>().trim_end());
        let typed = user.line("session> ")?;
        // Whether it came as a key or as a signal.
        let _ = self.context.interrupt.take();
        Ok(match typed {
            Typed::Line(line) => Some(line.trim().to_owned()).filter(|line| !line.is_empty()),
            Typed::End | Typed::Interrupted => None,
        })
    }

    fn change_session<T: Talker>(
        &mut self,
        agent: &mut T,
        which: SessionChoice,
    ) -> Result<String, Failure> {
        let said = agent.change_session(which)?;
        self.tally.forget_context();
        self.remember_changes(agent);
        Ok(said)
    }

    /// Finds what the session's requests have changed that is still there.
    pub fn remember_changes<T: Talker>(&mut self, agent: &T) {
        let session = agent.standing().session;
        let found = session.map(|id| last::changed_in(self.context, &id));
        // Runs that cannot be read are no reason not to go on.
        (self.tally.changed, self.tally.is_latest) = found.and_then(Result::ok).unwrap_or_default();
    }

    /// Shows how things stand, by lines too.
    fn show_status<T: Talker>(&self, agent: &T) {
        self.show_status_bar(agent);
        let standing = agent.standing();
        if standing.used.is_none() {
            let root = self.context.project.root();
            let directory = root.file_name().unwrap_or(root.as_os_str());
            let line = self.tally.line(
                &standing.model,
                &directory.to_string_lossy(),
                standing.tokens,
                standing.window,
            );
            self.context.reporter.event(&Event::Status(line));
        }
    }

    /// Shows how things stand on the screen.
    pub fn show_status_bar<T: Talker>(&self, agent: &T) {
        let standing = agent.standing();
        let status = Status {
            used: standing.used.unwrap_or(self.tally.context()),
            model: standing.model,
            window: standing.window,
            connection: self.connection,
        };
        let hints = slash::listed(T::COMMANDS, &agent.own_commands());
        self.user.borrow_mut().stands(status, hints);
    }
}

/// Returns the next line that the user types and that says something, or `None` if they end the input. `stopped` is the
/// time of their last request to stop, if nothing else has come since: a second one at once means that they want to
/// leave.
///
/// # Errors
/// When they do, or cannot be asked.
fn next_line(
    context: &Context<'_>,
    user: &User,
    prompt: &str,
    stopped: &mut Option<Duration>,
) -> Result<Option<Submission>, Failure> {
    loop {
        let typed = user.borrow_mut().request(prompt)?;
        match typed {
            Typed::Line(line) => {
                *stopped = None;
                if !line.text.trim().is_empty() {
                    return Ok(Some(line));
                }
            }
            Typed::End => return Ok(None),
            Typed::Interrupted => {
                // Whether it came as a key or as a signal.
                let _ = context.interrupt.take();
                let now = context.clock.elapsed();
                let at_once = |at: Duration| now.saturating_sub(at) <= AT_ONCE;
                if stopped.is_some_and(at_once) {
                    let signal = Signal::Int;
                    return Err(AgentError::Interrupted(Interrupted { signal }).into());
                }
                *stopped = Some(now);
                context.notice("Ctrl-C again ends");
            }
        }
    }
}

/// Reports the end of a piece of work; whether the user has stopped it.
///
/// # Errors
/// The failure, where the user wants to leave.
fn tell(
    context: &Context<'_>,
    done: Result<Outcome, Failure>,
    user: &User,
) -> Result<bool, Failure> {
    let failure = match done {
        Ok(Outcome { summary, log, .. }) => {
            context.reporter.event(&Event::Finished { summary, log });
            return Ok(false);
        }
        Err(failure) => failure,
    };
    let taken = context.interrupt.take();
    // Who asks twice wants to leave, but at the screen, which has another key for that; and a SIGTERM is not taken back.
    if taken > 1 && !user.borrow().is_screen() || taken == 0 && context.interrupt.check().is_err() {
        return Err(failure);
    }
    // At a question of the agent's, it comes as a key.
    let is_stopped = taken > 0 || matches!(failure.error.exit(), Exit::Interrupted(_));
    let (error, hint) = if is_stopped {
        let hint = result::hint(Some(INSTEAD.to_owned()), failure.tree);
        ("stopped".to_owned(), hint)
    } else {
        (failure.error.to_string(), failure.hint())
    };
    let log = failure.log;
    context.reporter.event(&Event::Failed { error, hint, log });
    Ok(is_stopped)
}

/// The commands where words are asked for, and nothing else can be done.
const AT_QUESTION: &[Slash] = &[Slash::Exit, Slash::Help];

/// Reads a line that answers a question in words; `None` for a command that was answered, after which the question is to
/// be asked again.
pub fn answer(context: &Context<'_>, line: String) -> Option<Typed> {
    match slash::read(&line, AT_QUESTION, &[]) {
        SlashLine::Request | SlashLine::Own(..) => return Some(Typed::Line(line)),
        SlashLine::Command(Slash::Exit, _) => return Some(Typed::End),
        SlashLine::Command(..) => context.notice(slash::help(&slash::listed(AT_QUESTION, &[]))),
        SlashLine::Refused(problem) => context.notice(problem),
    }
    None
}

/// The commands where words are asked for, for who types one.
pub fn hints_at_question() -> Vec<CommandHint> {
    slash::listed(AT_QUESTION, &[])
}

/// The models of the table to choose from, of which the one called `now` is marked.
pub fn model_menu(context: &Context<'_>, now: &str) -> Menu {
    let models = context.models.as_ref().map_or(&[][..], ModelTable::models);
    let items = models.iter().map(|spec| {
        (
            spec.name.clone(),
            spec.display_name.clone().unwrap_or_default(),
        )
    });
    Menu {
        title: "Choose a model".to_owned(),
        items: items.collect(),
        at: models.iter().position(|spec| spec.name == now).unwrap_or(0),
    }
}
