//! Delivery of requests to an agent: from the command line, from a recorded run, or from the user at the terminal, who
//! is asked again and again and has the program's own commands.
//!
//! At the terminal, Ctrl-C stops what is being done and returns to the prompt; a second one, at once after the first
//! or before what is being done has stopped, ends.

mod command;
pub(crate) mod tally;

use std::cell::RefCell;
use std::mem::take;
use std::path::Path;
use std::time::Duration;

use self::command::ReplCommand;
use self::tally::Tally;
use super::workspace::{AgentOptions, AnswerSource, SessionChoice, Workspace};
use super::{diff, last, undo};
use crate::agent::AgentError;
use crate::commands::error::CommandError;
use crate::record::event::Event;
use crate::record::result;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::recovery;
use crate::sys::exit::Exit;
use crate::sys::interrupt::{Interrupted, Signal};
use crate::ui::input::{InputError, LineReader, Typed};
use crate::ui::tui::{Menu, Status};

/// Makes the input when somebody is to be asked.
pub type OpenInput<'i> = &'i dyn Fn() -> Result<Box<dyn LineReader>, InputError>;

/// Works on one request: gets where answers come from, and the request, unless it is to go on with what was
/// asked for before.
pub type WorkOn<'w> = &'w dyn Fn(
    &Context<'_>,
    &Workspace<'_>,
    AnswerSource<'_>,
    Option<&str>,
) -> Result<Outcome, Failure>;

/// Runs the agent of this name on the request in the options, or on those made at the terminal.
///
/// # Errors
/// When it is not done; at the terminal, when the user has ended by Ctrl-C or nobody can be asked.
pub fn serve<'c>(
    context: &'c Context<'c>,
    name: &str,
    options: &AgentOptions,
    input: OpenInput<'_>,
    work: WorkOn<'_>,
) -> Result<Outcome, Failure> {
    let request = options.request.as_deref();
    let goes_on = request.is_some_and(|request| request.trim().is_empty());
    if goes_on && options.session == SessionChoice::New {
        return Err(CommandError::NothingAsked.into());
    }
    let mut place = Workspace::open(context, options)?;
    let recorded = place.replay(context, options)?;
    if let Some((request, answers)) = recorded {
        return on(context, work, &place, answers, request.as_deref());
    }
    if goes_on && !place.has_more_to_do() {
        return Err(CommandError::NothingAsked.into());
    }
    if request.is_some() {
        let request = request.filter(|_| !goes_on);
        return on(context, work, &place, AnswerSource::Nowhere, request);
    }
    let mut talk = Talk {
        context,
        options,
        input: RefCell::new(input()?),
        place,
        work,
        prompt: format!("{name}> "),
        tally: Tally::default(),
        undone: Vec::new(),
        stopped: None,
    };
    talk.remember_changes();
    talk.run()?;
    if !talk.place.is_begun() {
        return Ok(Outcome::said("nothing was asked for"));
    }
    let id = talk.place.kept.session.borrow().id;
    Ok(Outcome::said(format!(
        "session {id}: `--resume` goes on with it"
    )))
}

/// Works on one request. Between requests, others may have the project.
fn on(
    context: &Context<'_>,
    work: WorkOn<'_>,
    place: &Workspace<'_>,
    answers: AnswerSource<'_>,
    request: Option<&str>,
) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    work(context, place, answers, request)
}

/// The error for a Ctrl-C typed at the prompt.
const INTERRUPTED: AgentError = AgentError::Interrupted(Interrupted {
    signal: Signal::Int,
});

/// A second Ctrl-C that comes within this time is meant for the program.
const AT_ONCE: Duration = Duration::from_secs(2);

/// The hint for a user who has stopped the work.
const INSTEAD: &str = "say what is to be done instead; Ctrl-C again ends";

/// The maximum number of sessions offered for a choice.
const LISTED: usize = 10;

/// A user at the prompt.
struct Talk<'t, 'c> {
    context: &'c Context<'c>,
    options: &'t AgentOptions,
    place: Workspace<'c>,
    input: RefCell<Box<dyn LineReader>>,
    work: WorkOn<'t>,
    /// The prompt, shown before the user's input.
    prompt: String,
    tally: Tally,
    /// The runs that were undone since the last request: the agent is to know.
    undone: Vec<String>,
    /// The time when the user asked to stop, if nothing else has come since.
    stopped: Option<Duration>,
}

impl Talk<'_, '_> {
    /// Talks until the user ends it.
    fn run(&mut self) -> Result<(), Failure> {
        if self.place.has_more_to_do() {
            self.attend(None)?;
        } else {
            self.recap();
            self.tell_status();
        }
        loop {
            let line = next_line(self.context, &self.input, &self.prompt, &mut self.stopped)?;
            let Some(line) = line else {
                return Ok(());
            };
            match ReplCommand::read(&line) {
                Some(Ok(ReplCommand::Exit)) => return Ok(()),
                Some(Ok(command)) => self.obey(&command)?,
                Some(Err(problem)) => self.context.notice(problem),
                None => self.attend(Some(line.trim()))?,
            }
        }
    }

    /// Works on a request, and tells how that has ended.
    fn attend(&mut self, request: Option<&str>) -> Result<(), Failure> {
        let told = request.map(|request| match take(&mut self.undone).as_slice() {
            [] => request.to_owned(),
            undone => format!(
                "[I have undone what you changed in {}: those files are as they were before.]\n\n{request}",
                undone.join(" and ")
            ),
        });
        let answers = AnswerSource::Typed(&self.input);
        let done = on(
            self.context,
            self.work,
            &self.place,
            answers,
            told.as_deref(),
        );
        let (record, log) = match &done {
            Ok(outcome) => (&outcome.record, &outcome.log),
            Err(failure) => (&failure.record, &failure.log),
        };
        if let Some(record) = record {
            self.tally.add(record, log.as_deref());
        }
        if tell(self.context, done, &self.input)? {
            self.stopped = Some(self.context.clock.elapsed());
            // What was typed ahead was not meant to begin now.
            self.input.borrow_mut().forget_typed_ahead();
        }
        self.tell_status();
        Ok(())
    }

    /// Does what a command says. What fails is told, and is no end.
    fn obey(&mut self, command: &ReplCommand<'_>) -> Result<(), Failure> {
        let done = match command {
            ReplCommand::Help => Ok(command::help()),
            ReplCommand::Undo => self.undo(),
            ReplCommand::Diff => self.diff(),
            ReplCommand::Model(name) => self.model(name),
            ReplCommand::Cost => Ok(self.tally.cost(self.tokens())),
            ReplCommand::Clear => self.change_session(SessionChoice::New),
            ReplCommand::Resume(number) => self.resume(number),
            ReplCommand::Exit => Ok(String::new()),
        };
        match done {
            Ok(said) if said.is_empty() => Ok(()),
            Ok(said) => {
                self.context.notice(said);
                Ok(())
            }
            Err(failure) => {
                let stopped = tell(self.context, Err(failure), &self.input)?;
                self.stopped = stopped.then(|| self.context.clock.elapsed());
                Ok(())
            }
        }
    }

    /// Takes back what the last request has changed that was not taken back yet.
    fn undo(&mut self) -> Result<String, Failure> {
        let (run, said) = undo_last(self.context, &mut self.tally)?;
        self.undone.extend(run);
        Ok(said)
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

    fn model(&mut self, name: &str) -> Result<String, Failure> {
        if !name.is_empty() {
            self.place.choose_model(self.context, self.options, name)?;
        }
        let table = self.context.models.as_ref();
        let names = table.map_or_else(|_| String::new(), crate::model::ModelTable::names);
        let asked = &self.place.models.first.spec.name;
        Ok(match name {
            "" => format!("`{asked}` is asked; `/model NAME` asks another: {names}"),
            _ => format!("`{asked}` is asked from now on"),
        })
    }

    /// Lists the sessions of this directory, and goes on with the one that the user chooses.
    fn resume(&mut self, number: &str) -> Result<String, Failure> {
        let sessions = self.place.sessions_here(self.context)?;
        let sessions = &sessions[..sessions.len().min(LISTED)];
        if sessions.is_empty() {
            return Ok("there is no other session in this directory".to_owned());
        }
        let mut number = number.to_owned();
        if number.is_empty() {
            let items = sessions.iter();
            let items = items.map(|(_, line)| (line.clone(), String::new()));
            let menu = Menu {
                title: "Resume a session".to_owned(),
                items: items.collect(),
                at: 0,
            };
            let chosen = self.input.borrow_mut().choose(menu);
            if let Some(chosen) = chosen.transpose()? {
                return match chosen.and_then(|at| sessions.get(at)) {
                    Some((id, _)) => self.change_session(SessionChoice::Named(id.clone())),
                    None => Ok("the session stays the same".to_owned()),
                };
            }
            let lines = sessions.iter().zip(1..);
            let lines = lines.map(|((_, line), nth)| format!("{nth:>3}  {line}\n"));
            let list = lines.collect::<String>();
            self.context.notice(list.trim_end());
            number = match self.input.borrow_mut().line("session> ")? {
                Typed::Line(line) => line.trim().to_owned(),
                Typed::End | Typed::Interrupted => String::new(),
            };
            // Whether it came as a key or as a signal.
            let _ = self.context.interrupt.take();
        }
        if number.is_empty() {
            return Ok("the session stays the same".to_owned());
        }
        let chosen = number.parse::<usize>().ok();
        let chosen = chosen.and_then(|nth| sessions.get(nth.checked_sub(1)?));
        let Some((id, _)) = chosen else {
            let said = format!(
                "there is no session `{number}`: choose from 1 to {}",
                sessions.len()
            );
            return Ok(said);
        };
        self.change_session(SessionChoice::Named(id.clone()))
    }

    fn change_session(&mut self, choice: SessionChoice) -> Result<String, Failure> {
        self.place.change_session(self.context, choice)?;
        self.tally.forget_context();
        self.undone.clear();
        self.remember_changes();
        self.recap();
        let unfinished = "this session was not finished: say what is to be done next";
        let said = self.place.has_more_to_do().then_some(unfinished);
        Ok(said.unwrap_or_default().to_owned())
    }

    /// Finds what the session's requests have changed that is still there.
    fn remember_changes(&mut self) {
        let id = self.place.kept.session.borrow().id.to_string();
        let found = self.place.is_begun();
        let found = found.then(|| last::changed_in(self.context, &id));
        // Runs that cannot be read are no reason not to go on.
        let found = found.and_then(Result::ok).unwrap_or_default();
        (self.tally.changed, self.tally.is_latest) = found;
    }

    /// Shows the end of the session so far.
    fn recap(&self) {
        let session = self.place.kept.session.borrow();
        if let Some(recap) = session.conversation.recap() {
            self.context.reporter.event(&Event::Words(recap));
        }
    }

    fn tokens(&self) -> u64 {
        self.place.kept.session.borrow().file.total_tokens
    }

    fn tell_status(&self) {
        let root = self.context.project.root();
        let directory = root.file_name().unwrap_or(root.as_os_str());
        let line = self.tally.line(
            &self.place.models.first.spec.name,
            &directory.to_string_lossy(),
            self.tokens(),
            self.place.limits.context(),
        );
        let spec = &self.place.models.first.spec;
        let status = Status {
            model: spec.name.clone(),
            used: self.tally.context(),
            window: self.place.limits.context(),
            ..Status::default()
        };
        self.input.borrow_mut().stands(status, command::hints());
        self.context.reporter.event(&Event::Status(line));
    }
}

/// Takes back what the last request has changed that was not taken back yet: its run, if there is one, and what is said
/// of that.
///
/// # Errors
/// When it cannot be taken back.
pub fn undo_last(
    context: &Context<'_>,
    tally: &mut Tally,
) -> Result<(Option<String>, String), Failure> {
    let Some(run) = tally.changed.last().cloned() else {
        let said = "nothing was changed here that is still there; `code-commit undo` takes back earlier runs";
        return Ok((None, said.to_owned()));
    };
    let outcome = undo::undo(context, Some(Path::new(&run)))?;
    tally.changed.pop();
    tally.is_latest = false;
    Ok((Some(run), outcome.summary))
}

/// Returns `true` for the command that ends the program.
pub fn is_exit(line: &str) -> bool {
    matches!(ReplCommand::read(line), Some(Ok(ReplCommand::Exit)))
}

/// Returns the error message for a line with any command but `/exit`, for agents that have no other; `None` for others.
pub fn refused(line: &str) -> Option<String> {
    let command = ReplCommand::read(line)?;
    let name = line.split_whitespace().next().unwrap_or_default();
    (command != Ok(ReplCommand::Exit))
        .then(|| format!("there is no command `{name}` here: `/exit` or Ctrl-D ends"))
}

/// Returns the next non-blank line that the user types, or `None` if they end the input. `stopped` is the time of their
/// last request to stop, if nothing else has come since: a second one at once means that they want to leave.
///
/// # Errors
/// When they do, or cannot be asked.
pub fn next_line(
    context: &Context<'_>,
    input: &RefCell<Box<dyn LineReader>>,
    prompt: &str,
    stopped: &mut Option<Duration>,
) -> Result<Option<String>, Failure> {
    loop {
        let typed = input.borrow_mut().request(prompt)?;
        match typed {
            Typed::Line(line) => {
                *stopped = None;
                if !line.trim().is_empty() {
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
                    return Err(INTERRUPTED.into());
                }
                *stopped = Some(now);
                context.notice("Ctrl-C again ends");
            }
        }
    }
}

/// Reports the end of a piece of work, and notes a request of the user's to stop it.
///
/// # Errors
/// The failure, where the user wants to leave.
pub fn tell(
    context: &Context<'_>,
    done: Result<Outcome, Failure>,
    input: &RefCell<Box<dyn LineReader>>,
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
    if taken > 1 && !input.borrow().is_screen() || taken == 0 && context.interrupt.check().is_err()
    {
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
