//! The answers to slash commands that find nothing to act on: no task was given yet, or one is in progress.
//!
//! Reads earlier runs; changes nothing.

use crate::commands::agent_run::NOTHING_TO_COMPACT;
use crate::commands::last::Spent;
use crate::commands::talk::question::Help;
use crate::commands::talk::slash::Slash;
use crate::record::run_files::ORCHESTRATE;
use crate::run::context::Context;
use crate::run::past::history::{self, PastRun, UnrecordedState};
use crate::sys::error::Error;
use crate::sys::text::one_line;

/// The help before a task.
pub const BEFORE_TASK: Help<'_> = (
    "say what is to be done, in one line (`--task -` reads several); `/exit`, Ctrl-C or Ctrl-D ends",
    &[Slash::Exit, Slash::Help, Slash::Model, Slash::Resume],
);

/// The help at a question.
pub const AT_QUESTION: Help<'_> = (
    "answer the agent; an empty line or Ctrl-D lets it go on by itself, `/exit` or Ctrl-C ends the run",
    &[Slash::Cost, Slash::Exit, Slash::Help],
);

/// The answer to `/undo` and `/diff`.
const NO_CHANGES: &str =
    "nothing in this project was changed: the agents work on branches of the server";

/// The maximum length of a task in a list, in characters.
const TASK: usize = 60;

/// Returns the answer to a command before there is a task.
pub fn before_task(command: Slash) -> &'static str {
    match command {
        Slash::Cost => "nothing was spent yet",
        Slash::Clear => "there is nothing to clear: each task is a run of its own",
        Slash::Compact => NOTHING_TO_COMPACT,
        _ => NO_CHANGES,
    }
}

/// Returns the answer to a command at a question: by the names of the run's folder, of the model and of the last branch
/// that succeeded, or else the one that the run began from, and by the spending so far.
pub fn in_task(command: Slash, (log, model, branch): (&str, &str, &str), spent: &Spent) -> String {
    let resume = format!("`dev-agent --resume {log}");
    match command {
        Slash::Cost => {
            format!("this run so far: {spent}; what the remote agents cost is not known")
        }
        Slash::Model => format!(
            "`{model}` is asked until the task is done: `/exit` ends the run, and {resume} --model NAME` goes on \
             with another model"
        ),
        Slash::Compact => format!(
            "this conversation is kept whole: `/exit` ends the run, and {resume}` goes on in a new one, which is \
             told the branches and reviews alone"
        ),
        Slash::Clear | Slash::Resume => format!(
            "a task is in progress: `/exit` ends the run, and {resume}` goes on with it later"
        ),
        _ => format!("{NO_CHANGES}, the last of them `{branch}`"),
    }
}

/// Returns the earlier orchestrations that have ended before they were complete, newest first, each with its folder and
/// a line about it.
///
/// # Errors
/// When they cannot be read.
pub fn resumable(context: &Context<'_>) -> Result<Vec<(String, String)>, Error> {
    let project = &context.project;
    let state = |run: &PastRun| match &run.record {
        None => Some(run.state(project))
            .filter(|state| *state != UnrecordedState::Running)
            .map(|state| state.word().to_owned()),
        Some(record) => {
            let is_finished = record.orchestration.as_ref()?.is_finished;
            (!is_finished).then(|| record.exit.name.to_string())
        }
    };
    let runs = history::latest(project)?.filter(|run| run.workflow() == ORCHESTRATE);
    let found = runs.filter_map(|run| {
        let began = run.began().with_timezone(context.clock.now().offset());
        let (began, state) = (began.format("%Y-%m-%d %H:%M"), state(&run)?);
        let task = one_line(&run.request()?, TASK);
        Some((run.relative(), format!("{began}  {state:<15}  {task}")))
    });
    Ok(found.collect())
}
