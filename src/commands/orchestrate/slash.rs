//! The answers to slash commands that find nothing to act on: no task was given yet, or one is in progress.
//!
//! Reads earlier runs; changes nothing.

use crate::commands::agent_run::NOTHING_TO_COMPACT;
use crate::commands::last::Spent;
use crate::commands::talk::slash::Slash;
use crate::record::orchestration::OrchestrationStatus;
use crate::record::run_files::ORCHESTRATE;
use crate::run::context::Context;
use crate::run::past::history::{self, PastRun, UnrecordedState};
use crate::sys::error::Error;
use crate::sys::text::one_line;

/// The introduction of `/help` at a question.
pub const AT_QUESTION: &str = "answer the agent; an empty line or Ctrl-D lets it go on by itself, `/exit` or Ctrl-C ends the run";

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

/// An orchestration that waits for an answer.
pub struct WaitingRun<'r> {
    /// The run's folder.
    pub log: &'r str,
    /// The model's name.
    pub model: &'r str,
    /// The last branch that succeeded, or else the one that the run began from.
    pub branch: &'r str,
    /// The spending so far.
    pub spent: Spent,
}

impl WaitingRun<'_> {
    /// Returns the answer to a command.
    pub fn told(&self, command: Slash) -> String {
        let (log, model, branch, spent) = (self.log, self.model, self.branch, &self.spent);
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
            .map(UnrecordedState::word),
        Some(record) => {
            let status = record.orchestration.as_ref()?.status;
            (status != OrchestrationStatus::Completed).then(|| status.word())
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
