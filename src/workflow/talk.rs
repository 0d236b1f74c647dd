//! How a request gets to an agent: from the command line, from a recorded run, or from the user at the
//! terminal, who is asked again and again.
//!
//! At the terminal, Ctrl-C stops what is being done and returns to the prompt; a second one, there or before
//! what is being done has stopped, ends.

use std::cell::RefCell;

use super::run::recovery;
use super::workspace::{AgentOptions, AnswerSource, SessionChoice, Workspace};
use super::{Context, Failure, Outcome};
use crate::agent::AgentError;
use crate::record;
use crate::sys::interrupt::{Interrupted, Signal};
use crate::ui::Event;
use crate::ui::input::{InputError, LineReader, Typed};
use crate::workflow::error::{Error, Exit};

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

/// Has the agent of this name work on what the options say, or on what is asked for at the terminal.
///
/// # Errors
/// When it is not done; at the terminal, when the user has ended by Ctrl-C or nobody can be asked.
pub fn serve(
    context: &Context<'_>,
    name: &str,
    options: &AgentOptions,
    input: OpenInput<'_>,
    work: WorkOn<'_>,
) -> Result<Outcome, Failure> {
    let request = options.request.as_deref();
    let goes_on = request.is_some_and(|request| request.trim().is_empty());
    if goes_on && options.session == SessionChoice::New {
        return Err(Error::NothingAsked.into());
    }
    let mut place = Workspace::open(context, options)?;
    let recorded = place.replay(context, options)?;
    let on = |answers: AnswerSource<'_>, request: Option<&str>| {
        // Between requests, others may have the project.
        let _lock = recovery::take(context)?;
        work(context, &place, answers, request)
    };
    if let Some((request, answers)) = recorded {
        return on(answers, request.as_deref());
    }
    if goes_on && !place.has_more_to_do() {
        return Err(Error::NothingAsked.into());
    }
    if request.is_some() {
        return on(AnswerSource::Nowhere, request.filter(|_| !goes_on));
    }
    let input = RefCell::new(input()?);
    let prompt = format!("{name}> ");
    talk(
        context,
        &prompt,
        &input,
        place.has_more_to_do(),
        |request| on(AnswerSource::Typed(&input), request),
    )?;
    if !place.is_begun() {
        return Ok(Outcome::said("nothing was asked for"));
    }
    let id = place.kept.session.borrow().id();
    Ok(Outcome::said(format!(
        "session {id}: `--resume` goes on with it"
    )))
}

/// What can be typed.
const HELP: &str =
    "say what is to be done; `/exit` or Ctrl-D ends, Ctrl-C stops what is being done";

/// What a Ctrl-C that was typed at the prompt comes to.
const INTERRUPTED: AgentError = AgentError::Interrupted(Interrupted {
    signal: Signal::Int,
});

/// Talks until the user ends it. `prompt` stands before what they type; `begin` is whether something is to be
/// done before anything is asked; `work` does it, with a request where there is one.
fn talk(
    context: &Context<'_>,
    prompt: &str,
    input: &RefCell<Box<dyn LineReader>>,
    begin: bool,
    mut work: impl FnMut(Option<&str>) -> Result<Outcome, Failure>,
) -> Result<(), Failure> {
    // How often the user has asked to stop, without anything else in between.
    let mut stops = 0;
    if begin {
        stops = attend(context, work(None))?;
    }
    loop {
        let typed = input.borrow_mut().line(prompt)?;
        match &typed {
            Typed::Line(line) => match line.trim() {
                "" => {}
                "/exit" | "/quit" => return Ok(()),
                // No path: what was meant as a command is no request.
                command if is_command(command) => context.notice(HELP),
                request => {
                    stops = attend(context, work(Some(request)))?;
                    if stops > 0 {
                        // What was typed ahead was not meant to begin now.
                        input.borrow_mut().forget_typed_ahead();
                    }
                }
            },
            Typed::End => return Ok(()),
            Typed::Interrupted => {
                // Whether it came as a key or as a signal.
                let _ = context.interrupt.take();
                if stops > 0 {
                    return Err(Error::Agent(INTERRUPTED).into());
                }
                stops += 1;
                context.notice("Ctrl-C again ends");
            }
        }
    }
}

/// Whether it looks like a command: a slash and letters, or a question mark, and nothing else.
fn is_command(line: &str) -> bool {
    let name = line.strip_prefix('/').unwrap_or_default();
    name == "?" || !name.is_empty() && name.chars().all(char::is_alphabetic)
}

/// What a user who has stopped the work can do.
const INSTEAD: &str = "say what is to be done instead; Ctrl-C again ends";

/// Tells how a piece of work has ended, and how often the user has asked to stop it.
fn attend(context: &Context<'_>, done: Result<Outcome, Failure>) -> Result<u32, Failure> {
    let failure = match done {
        Ok(Outcome { summary, log, .. }) => {
            context.reporter.event(&Event::Finished { summary, log });
            return Ok(0);
        }
        Err(failure) => failure,
    };
    let taken = context.interrupt.take();
    // Who asks twice wants to leave; and a SIGTERM is not taken back.
    if taken > 1 || taken == 0 && context.interrupt.check().is_err() {
        return Err(failure);
    }
    // At a question of the agent's, it comes as a key.
    let is_stopped = taken > 0 || matches!(failure.error.exit(), Exit::Interrupted(_));
    let (error, hint) = if is_stopped {
        let hint = record::hint(Some(INSTEAD.to_owned()), failure.tree);
        ("stopped".to_owned(), hint)
    } else {
        (failure.error.to_string(), failure.hint())
    };
    let log = failure.log;
    context.reporter.event(&Event::Failed { error, hint, log });
    Ok(is_stopped.into())
}
