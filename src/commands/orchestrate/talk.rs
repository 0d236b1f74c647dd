//! The conversation with the user: before there is a task, and at questions during the work.
//!
//! Reads earlier runs; changes nothing.

use super::args::OrchestrateArgs;
use super::place::{OrchestratePlace, models};
use super::resume::{Begun, begun};
use crate::commands::agent_run::NOTHING_TO_COMPACT;
use crate::commands::spent::Spent;
use crate::commands::stored_session::SessionChoice;
use crate::commands::talk::question::Help;
use crate::commands::talk::slash::Slash;
use crate::commands::talk::{SessionFacts, Talk, Talker};
use crate::record::run_files::ORCHESTRATE;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::history::{self, PastRun, UnrecordedState};
use crate::sys::error::Error;
use crate::sys::text::one_line;
use crate::ui::tui::Submission;

/// The first message on the screen, where no prompt is shown.
pub const GREETING: &str = "What should be done? Two remote agents implement and review it. Enter sends, `/help` lists commands";

/// The help at a question.
pub const AT_QUESTION: Help<'_> = (
    "answer the agent; Esc, or by lines an empty one or Ctrl-D, lets it go on by itself; `/exit` or Ctrl-C ends the run",
    &[Slash::Cost, Slash::Exit, Slash::Help],
);

/// The answer to `/undo` and `/diff`.
const NO_CHANGES: &str =
    "nothing in this project was changed: the agents work on branches of the server";

/// The maximum length of a task in a list, in characters.
const TASK: usize = 60;

/// Asks for the task, or for an earlier run to continue.
impl Talker for OrchestratePlace<'_> {
    const PROMPT: &'static str = "task> ";
    const LEAVES_AT_ONCE: bool = true;
    const INTRODUCTION: &'static str =
        "describe the task in one line (`--task -` reads several); `/exit`, Ctrl-C or Ctrl-D ends";
    const NO_SESSIONS: &'static str = "there is no earlier run to resume";

    fn facts(&self) -> SessionFacts {
        let spec = &self.models.first.spec;
        SessionFacts {
            used: Some(0),
            ..SessionFacts::of(spec, spec.context_window.unwrap_or_default())
        }
    }

    fn idle(&self, command: Slash) -> Option<&'static str> {
        match command {
            Slash::Cost => Some("nothing was spent yet"),
            Slash::Clear => Some("there is nothing to clear: each task is a run of its own"),
            Slash::Compact => Some(NOTHING_TO_COMPACT),
            Slash::Diff | Slash::Undo => Some(NO_CHANGES),
            _ => None,
        }
    }

    fn attend(
        &mut self,
        _talk: &mut Talk<'_>,
        request: Option<Submission>,
    ) -> Result<Outcome, Failure> {
        self.task = request.unwrap_or_default().text;
        Ok(Outcome::default())
    }

    fn sessions(&self) -> Result<Vec<(String, String)>, Failure> {
        Ok(resumable(self.context)?)
    }

    fn change_session(&mut self, which: SessionChoice) -> Result<String, Failure> {
        let mut arguments = self.arguments.clone();
        if let SessionChoice::Named(run) = which {
            arguments.resume = Some(run.into());
        }
        let Some(Begun::Work(work)) = begun(self.context, &arguments)? else {
            return Ok("there is nothing to resume".to_owned());
        };
        let (arguments, task, begun) = *work;
        *self = Self::open(self.context, arguments, Some(task), Some(begun))?;
        Ok(format!("the run goes on: {}", self.task))
    }

    fn own_model(&self) -> Option<String> {
        self.azure.as_ref().map(|azure| azure.spec.name.clone())
    }

    fn choose_model(&mut self, name: &str) -> Result<(), Failure> {
        let azure = self.azure.as_ref().filter(|azure| azure.spec.name == name);
        let arguments = OrchestrateArgs {
            model: azure.is_none().then(|| name.to_owned()),
            ..self.arguments.clone()
        };
        self.models = models(self.context, &arguments.choice(), None, azure)?;
        self.arguments = arguments;
        let spec = &self.models.first.spec;
        self.limits.max_context_tokens = spec.context_window;
        self.settings.model.clone_from(&spec.name);
        self.settings.names_model = self.arguments.model.is_some();
        self.settings.provider = spec.provider;
        Ok(())
    }

    fn is_over(&self) -> bool {
        !self.task.is_empty()
    }
}

/// Answers a command given at a question. The names are those of the run's folder, of the model, and of the last branch
/// that succeeded, or else of the start branch; `spent` is the spending so far.
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
            "this conversation is kept whole: `/exit` ends the run, and {resume}` continues in a new one, which is \
             told the branches and reviews alone"
        ),
        Slash::Clear | Slash::Resume => {
            format!("a task is in progress: `/exit` ends the run, and {resume}` continues it later")
        }
        _ => format!("{NO_CHANGES}, the last of them `{branch}`"),
    }
}

/// Returns the earlier orchestrations that have ended without completing, newest first, each with its folder and a line
/// that describes it.
///
/// # Errors
/// Fails if the runs cannot be read.
fn resumable(context: &Context<'_>) -> Result<Vec<(String, String)>, Error> {
    let project = &context.project;
    let state = |run: &PastRun| match &run.record {
        None => Some(run.state(project))
            .filter(|state| *state != UnrecordedState::Running)
            .map(|state| state.into_str().to_owned()),
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
