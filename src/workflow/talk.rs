//! How a request gets to an agent: from the command line, from a recorded run, or from whoever sits at the
//! terminal and is asked again and again.
//!
//! At the terminal, Ctrl-C stops what is being done and returns to the prompt; a second one, there or before
//! what is being done has stopped, ends.

use std::cell::RefCell;

use super::run::recovery;
use super::workspace::{AgentOptions, Answers, Recorded, RequestInput, SessionChoice, Workspace};
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
pub type WorkOn<'w> =
    &'w dyn Fn(&Context<'_>, &Workspace<'_>, Answers<'_>, Option<&str>) -> Result<Outcome, Failure>;

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
    if options.session == SessionChoice::New && options.input == RequestInput::GoOn {
        return Err(Error::NothingAsked.into());
    }
    let mut place = Workspace::open(context, options)?;
    let recorded = Recorded::find(context, options)?;
    let recorded = recorded.map(|recorded| {
        place.set_back(recorded.conversation, recorded.limits);
        (recorded.request, recorded.answers)
    });
    let on = |answers: Answers<'_>, request: Option<&str>| {
        // Between requests, others may have the project.
        let _lock = recovery::take(context)?;
        work(context, &place, answers, request)
    };
    if let Some((request, answers)) = recorded {
        return on(answers, request.as_deref());
    }
    match &options.input {
        RequestInput::Request(request) => return on(Answers::Nowhere, Some(request)),
        RequestInput::GoOn if place.has_more_to_do() => return on(Answers::Nowhere, None),
        RequestInput::GoOn => return Err(Error::NothingAsked.into()),
        RequestInput::AskUser => {}
    }
    let input = RefCell::new(input().map_err(Error::from)?);
    let prompt = format!("{name}> ");
    talk(
        context,
        &prompt,
        &input,
        place.has_more_to_do(),
        |request| on(Answers::Typed(&input), request),
    )?;
    if !place.is_begun() {
        return Ok(Outcome::said("nothing was asked for"));
    }
    let id = place.session.borrow().id();
    Ok(Outcome::said(format!(
        "session {id}: `--resume` goes on with it"
    )))
}

/// What is said to whoever does not know what to type.
const HELP: &str =
    "say what is to be done; `/exit` or Ctrl-D ends, Ctrl-C stops what is being done";

/// What the user wants.
enum ReplCommand {
    /// Something is to be done.
    Request(String),
    /// Nothing more.
    End,
    /// To be told what can be said.
    Help,
    /// Nothing yet.
    Nothing,
    /// To stop, by Ctrl-C.
    Stop,
}

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
        match next_command(context, prompt, input)? {
            ReplCommand::Request(request) => {
                stops = attend(context, work(Some(&request)))?;
                if stops > 0 {
                    // Whoever stops it does not want the next one to begin.
                    input.borrow_mut().forget_typed_ahead();
                }
            }
            ReplCommand::End => return Ok(()),
            ReplCommand::Help => context.reporter.event(&Event::Notice(HELP.to_owned())),
            ReplCommand::Nothing => {}
            ReplCommand::Stop if stops > 0 => return Err(Error::Agent(INTERRUPTED).into()),
            ReplCommand::Stop => {
                stops += 1;
                context
                    .reporter
                    .event(&Event::Notice("Ctrl-C again ends".to_owned()));
            }
        }
    }
}

/// What a Ctrl-C that was typed at the prompt comes to.
const INTERRUPTED: AgentError = AgentError::Interrupted(Interrupted {
    signal: Signal::Int,
});

fn next_command(
    context: &Context<'_>,
    prompt: &str,
    input: &RefCell<Box<dyn LineReader>>,
) -> Result<ReplCommand, Error> {
    Ok(match input.borrow_mut().line(prompt)? {
        Typed::Line(line) => match line.trim() {
            "" => ReplCommand::Nothing,
            "/exit" | "/quit" => ReplCommand::End,
            "/help" | "/?" => ReplCommand::Help,
            // No path: what was meant as a command is no request.
            command if is_command(command) => ReplCommand::Help,
            request => ReplCommand::Request(request.to_owned()),
        },
        Typed::End => ReplCommand::End,
        Typed::Interrupted => {
            // Whether it came as a key or as a signal.
            let _ = context.interrupt.take();
            ReplCommand::Stop
        }
    })
}

/// Whether it looks like a command: a slash and letters, and nothing else.
fn is_command(line: &str) -> bool {
    let name = line.strip_prefix('/');
    name.is_some_and(|name| !name.is_empty() && name.chars().all(char::is_alphabetic))
}

/// What whoever has stopped the work can do.
const INSTEAD: &str = "say what is to be done instead; Ctrl-C again ends";

/// Tells how a piece of work has ended, and how often the user has asked to stop it.
fn attend(context: &Context<'_>, done: Result<Outcome, Failure>) -> Result<u32, Failure> {
    let failure = match done {
        Ok(outcome) => {
            context.reporter.event(&Event::Finished {
                summary: outcome.summary.clone(),
                log: outcome.log.clone(),
            });
            return Ok(0);
        }
        Err(failure) => failure,
    };
    let taken = context.interrupt.take();
    // Who asks twice wants to leave; and a SIGTERM is not taken back.
    if taken > 1 || taken == 0 && context.interrupt.check().is_err() {
        return Err(failure);
    }
    let log = failure.log.as_deref();
    // At a question of the agent's, it comes as a key.
    let is_stopped = taken > 0 || matches!(failure.error.exit(), Exit::Interrupted(_));
    if is_stopped {
        let hint = record::hint(Some(INSTEAD.to_owned()), failure.tree);
        context.reporter.event(&Event::Failed {
            error: "stopped".to_owned(),
            hint,
            log: log.map(str::to_owned),
        });
        return Ok(1);
    }
    context.reporter.event(&Event::Failed {
        error: failure.error.to_string(),
        hint: failure.hint(),
        log: log.map(str::to_owned),
    });
    Ok(0)
}
