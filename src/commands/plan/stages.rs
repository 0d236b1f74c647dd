//! The stages in which the model works on a request: making the plan, and executing it step by step.
//!
//! Checks the model's claims against known facts: a step that needs a tool cannot be completed by words alone, and the
//! project must build after a step that may have changed files.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use serde_json::Value;

use super::args::{PlanArgs, StepGate};
use super::criteria::{add_open, tick};
use super::document::PlanDocument;
use super::ends::{are_over, not_understood, step_failed};
use super::error::PlanError;
use super::file::PlanFile;
use super::forms::{ANALYZE, TaskList};
use super::instructions::{
    COMMAND_FAILED, EXAMPLES, NO_QUESTION, REMINDER, RESPONSE_FORMAT, USE_TOOLS,
};
use super::place::{self, PlanPlace, TRIES};
use super::progress::{begin_of, note_status, shown, tools_used};
use super::session::{StepsEnd, WorkEnd};
use super::tools::{NO_TOOLS, PlanTools};
use super::types::{Criterion, Plan, PlanStatus, PlanTask, PlanTaskStatus};
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::agent::memory::recent::Recent;
use crate::agent::permissions::{AskFirst, Consent, DenyPaths, Everything, Permissions};
use crate::agent::protocol::Protocol;
use crate::agent::protocol::tool_calls::{CLAUDE_CODE, ToolCalls};
use crate::agent::tool::{Arguments, Tool as _, Toolbox};
use crate::agent::tools::command::{AllowedCommand, Shell};
use crate::agent::tools::files::{FileAccess, ReadAccess};
use crate::agent::tools::list::ListDirectory;
use crate::agent::tools::resolved_path::Outside;
use crate::agent::{Agent, AgentError, Brief, Ended, Host, Objection, ToolTries};
use crate::commands::agent_run::{AgentRun, FailedBuild};
use crate::commands::cli::replies::OnFailure;
use crate::exec::build_script::BUILD_SCRIPT;
use crate::model::Purpose;
use crate::record::event::Event;
use crate::run::context::Context;
use crate::sys::error::Error;
use crate::sys::excerpt::text::bounded;

/// The maximum number of model calls in a step.
const CALLS_OF_A_STEP: u32 = 10;
/// The maximum number of user messages, including tool results, in a step's prompt.
const MESSAGES: usize = 5;
/// The number of claims of completion after which a step fails, if each was rejected for a reason other than the build.
const EMPTY_WORDS: u32 = 3;
/// The number of latest log entries to send if the whole log does not fit.
const FEWER_ENTRIES: usize = 10;
/// The maximum length of a failed build's output in a prompt, in bytes.
const BUILD_OUTPUT: usize = 8 << 10;

/// The maximum length of the list of the project's files in a prompt, in bytes.
const TREE: usize = 2 << 10;

/// The role of the planning model: `spec/plan-prompts.md`, 3.4.
const PLANNER: &str = "You are a planning model. Break requests into executable steps.";
pub const WORKER: &str = "Execute the current task step.";

/// The protocol of the steps' replies.
pub const PROTOCOL: ToolCalls = ToolCalls {
    are_words_tagged: false,
    keys: &CLAUDE_CODE,
    format: RESPONSE_FORMAT,
    examples: EXAMPLES,
    no_tools: NO_TOOLS,
};

/// The dependencies of a request's stages.
pub struct Stages<'s, 'c, 'r> {
    /// The context of every command.
    pub context: &'s Context<'s>,
    /// The user's flags.
    pub arguments: &'s PlanArgs,
    /// The session, models, limits and other resources of the agent.
    pub place: &'s PlanPlace<'c>,
    /// The run that records the work.
    pub run: &'s AgentRun<'r>,
    /// The plan.
    pub document: PlanFile<'s>,
    /// Recognises commands that may run without the user's consent, and without a shell.
    pub harmless: &'s dyn Fn(&str) -> Option<AllowedCommand>,
    /// Chooses a new output file for each command.
    pub output_files: &'s dyn Fn() -> PathBuf,
    /// `true` if `build.sh` existed when the run began.
    pub has_gate: bool,
    /// `true` if the current step may have changed files.
    pub may_have_changed: Cell<bool>,
    /// `true` if a call of the current step was refused for lack of the user's consent.
    pub lacks_consent: Cell<bool>,
    /// `true` if the current step's last command has failed.
    pub has_failed_command: Cell<bool>,
    /// The criteria that the model has reported as met during the current step.
    pub claimed: RefCell<Vec<Criterion>>,
}

/// A step in progress.
struct StepUnderWay<'t> {
    task: &'t PlanTask,
    /// `true` if a tool call succeeded before the step was resumed.
    has_used_tools: bool,
    /// The number of claims of completion that were rejected for a reason other than the build.
    empty_words: Cell<u32>,
    /// The last failed build.
    failed: RefCell<Option<FailedBuild>>,
}

impl Stages<'_, '_, '_> {
    /// Has a model break a request down into steps, and writes them into the plan.
    ///
    /// # Errors
    /// Fails if the model does not return a valid list of steps, or the plan cannot be written.
    pub fn plan(&self, request: &str) -> Result<(), AgentError> {
        self.change(|plan| plan.status = PlanStatus::Planning)?;
        let mut conversation = Conversation::default();
        conversation.request(&self.context.redactor.text(request));
        let protocol = TaskList::protocol(&self.tools());
        let words = self.ask(&Purpose::PLAN, PLANNER, 0.3, &protocol, &mut conversation)?;
        let list = TaskList::read(&words).map_err(not_understood)?;
        self.note_version()?;
        self.change(|plan| {
            if plan.goal.is_empty() {
                request.trim().clone_into(&mut plan.goal);
            }
            add_open(plan, &list.acceptance_criteria);
            plan.tasks = list.tasks(&self.tools());
            plan.status = PlanStatus::InProgress;
        })
    }

    /// Returns the names at the top of the project, as a section for the planning model.
    fn top_level(&self) -> String {
        let mut arguments = Arguments::default();
        arguments.set("path", "*");
        let listed = ListDirectory(ReadAccess {
            outside: Outside::Refused,
            ..self.place.base.access(self.context)
        })
        .run(&arguments);
        let section = |text: &str| format!("\n\n# Project Files\n\n{}", bounded(text, TREE));
        listed.map_or_else(|_| String::new(), |listed| section(&listed.text))
    }

    /// Executes the open steps in order until one fails.
    ///
    /// # Errors
    /// Fails if a step is not completed.
    pub fn execute(&self, conversation: &mut Conversation) -> Result<(), AgentError> {
        while let Some(task) = self.next_task()? {
            self.run.begin_part();
            let resumed = task.status == PlanTaskStatus::Active;
            self.may_have_changed.set(resumed);
            self.claimed.take();
            self.has_failed_command.set(false);
            self.lacks_consent.set(false);
            self.change(|plan| {
                note_status(plan, &task, PlanTaskStatus::Active);
                plan.status = PlanStatus::InProgress;
            })?;
            self.show_tasks()?;
            let worked = self.work_on(&task, resumed, conversation);
            match &worked {
                Ok(()) => self.change(|plan| {
                    tick(plan, &self.claimed.take());
                    note_status(plan, &task, PlanTaskStatus::Done);
                })?,
                Err(error) if are_over(error) => {
                    // The step's own error takes precedence over a failure to record its status.
                    let _ = self.change(|plan| note_status(plan, &task, PlanTaskStatus::Failed));
                    let _ = self.show_tasks();
                    self.take_back();
                }
                Err(_) => {}
            }
            worked?;
        }
        self.show_tasks()
    }

    /// Restores the saved outcome of the steps after a run was cut short before the summary.
    ///
    /// # Errors
    /// Fails if the steps failed or were stopped.
    pub fn ended_before(&self, ended: StepsEnd) -> Result<(), AgentError> {
        let StepsEnd { end, why } = ended;
        match (end, self.next_task()?) {
            (WorkEnd::Done, _) => Ok(()),
            (WorkEnd::Failed, Some(task)) => Err(step_failed(&task, why)),
            (WorkEnd::Failed | WorkEnd::Stopped, _) => Err(AgentError::Rejected(why)),
        }
    }

    /// Shows the list of steps.
    ///
    /// # Errors
    /// Fails if the plan cannot be read.
    pub fn show_tasks(&self) -> Result<(), AgentError> {
        let tasks = self.read()?.plan().tasks;
        let list = tasks.iter().map(shown).collect();
        self.context.reporter.event(&Event::Tasks(list));
        Ok(())
    }

    /// Warns of criteria that are open though all steps are done.
    pub fn warn_of_open_criteria(&self) {
        let criteria = self.read().map(|read| read.plan().acceptance_criteria);
        let criteria = criteria.unwrap_or_default();
        let open = criteria.iter().filter(|criterion| !criterion.completed);
        let open: Vec<_> = open.map(|it| format!("`{}`", it.description)).collect();
        if !open.is_empty() {
            self.run.warn(format!(
                "all steps are done, but these acceptance criteria are still open: {}",
                open.join(", ")
            ));
        }
    }

    /// Returns the next open step in the current document.
    fn next_task(&self) -> Result<Option<PlanTask>, AgentError> {
        let tasks = self.read()?.plan().tasks;
        if tasks.is_empty() {
            return Err(Error::from(self.document.no_task()).into());
        }
        Ok(tasks.into_iter().find(PlanTask::is_open))
    }

    fn work_on(
        &self,
        task: &PlanTask,
        resumed: bool,
        conversation: &mut Conversation,
    ) -> Result<(), AgentError> {
        let line = format!("Current task: {}", task.description);
        let begin = |it: &Conversation| begin_of(&it.history, &line);
        let used = |it: &Conversation| tools_used(&it.history[begin(it)..]);
        let step = StepUnderWay {
            task,
            has_used_tools: resumed && !used(conversation).is_empty(),
            empty_words: Cell::new(0),
            failed: RefCell::default(),
        };
        let is_new = !resumed || begin(conversation) == conversation.history.len();
        let ended = self.permitted(|permissions| {
            let brief = || self.brief(&Purpose::STEP, WORKER);
            let ending = |ended: &Ended, succeeded| self.ending(&step, ended, succeeded);
            let shorter = || self.document_shown(Some(FEWER_ENTRIES));
            let memory = self.memory(&Purpose::STEP, MESSAGES, &line, &shorter);
            let agent = Agent {
                purpose: Purpose::STEP,
                brief: &brief,
                protocol: &PROTOCOL,
                permissions,
                memory: &memory,
                ending: &ending,
                tries: TRIES,
                tool_tries: ToolTries::Unlimited,
                calls: Some(CALLS_OF_A_STEP),
                temperature: Some(0.2),
                env: self.run.env(),
            };
            // A resumed step continues its conversation instead of stating the task again.
            agent.work_on(conversation, is_new.then_some(&*line))
        });
        match ended {
            Ok(ended) => {
                self.context.reporter.event(&Event::Words(ended.words));
                Ok(())
            }
            Err(AgentError::LoopLimit(loops)) => {
                if let Some(FailedBuild { status, log, .. }) = step.failed.take() {
                    let step = task.step;
                    return Err(PlanError::GateFailed { step, status, log }.into());
                }
                let used = match &*used(conversation).join(", ") {
                    "" => "no tool has succeeded".to_owned(),
                    tools => format!("{tools} succeeded"),
                };
                let refusal_note = self.refusal_note();
                let reason = format!("it was not done in {loops} calls; {used}{refusal_note}");
                Err(step_failed(task, reason))
            }
            Err(error @ AgentError::TooLong { .. }) => {
                // The same messages would not fit again; a resumed session starts the step over.
                conversation.history.truncate(begin(conversation));
                Host::save(self.run, &Purpose::STEP, conversation)?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// Checks the model's claim that the step is done.
    fn ending(
        &self,
        step: &StepUnderWay<'_>,
        ended: &Ended,
        succeeded: u32,
    ) -> Result<(), Objection> {
        let has_used_tools = succeeded > 0 || step.has_used_tools;
        if let Some((why, message)) = self.objection(step, &ended.words, has_used_tools) {
            let times = step.empty_words.get() + 1;
            step.empty_words.set(times);
            if times >= EMPTY_WORDS {
                let reason = format!("{why}, and all that was said is: {}", ended.words);
                let reason = bounded(&reason, 1000) + self.refusal_note();
                let failed = step_failed(step.task, reason);
                return Err(Objection::Over(failed));
            }
            self.context.notice(format!(
                "{why}, and the model is told so ({times} of {EMPTY_WORDS})"
            ));
            return Err(Objection::NotDone(HistoryMessage::of_fault(message)));
        }
        match self.failed_build().map_err(Objection::Over)? {
            None => Ok(()),
            Some(failed) => {
                let output = bounded(&failed.output, BUILD_OUTPUT);
                let text = format!("ERROR: build.sh: {}\n{output}", failed.status);
                step.failed.replace(Some(failed));
                let mut result = HistoryMessage::of_tool("build.sh", "build", text);
                result.is_failed = true;
                Err(Objection::NotDone(result))
            }
        }
    }

    /// Returns the reason why words do not complete the step, and the reply to the model; `None` if they do.
    fn objection(
        &self,
        step: &StepUnderWay<'_>,
        words: &str,
        has_used_tools: bool,
    ) -> Option<(&'static str, &'static str)> {
        let needs_tool = step.task.tool != ANALYZE && self.tools().named(&step.task.tool).is_some();
        if self.has_failed_command.get() {
            Some(("its last command has failed", COMMAND_FAILED))
        } else if needs_tool && !has_used_tools {
            Some(("no tool has succeeded in it", USE_TOOLS))
        } else if !has_used_tools && words.trim_end().ends_with('?') {
            Some(("it has ended with a question", NO_QUESTION))
        } else {
            None
        }
    }

    /// Runs the build if the step requires one. Returns `None` if it passes or is not required.
    fn failed_build(&self) -> Result<Option<FailedBuild>, AgentError> {
        let is_there = self.context.project.root().join(BUILD_SCRIPT).is_file();
        let is_wanted = self.arguments.gate == StepGate::Build && (is_there || self.has_gate);
        if !is_wanted || !self.may_have_changed.get() {
            return Ok(None);
        }
        if !is_there {
            return Ok(Some(FailedBuild {
                status: "it is gone, and was there when the run began".to_owned(),
                output: String::new(),
                log: BUILD_SCRIPT.to_owned(),
            }));
        }
        let sandbox = &self.arguments.agent.sandbox;
        let how = sandbox.build(self.arguments.build_timeout);
        self.run.build(how).map_err(AgentError::from)
    }

    /// Reverts the step's changes if the options say so. A failure is only a warning.
    fn take_back(&self) {
        if self.arguments.on_failure == OnFailure::Revert
            && let Err(error) = self.run.revert_part()
        {
            self.run
                .warn(format!("what the step has written is still there: {error}"));
        }
    }

    /// Asks a model for a JSON object, in a separate conversation.
    ///
    /// # Errors
    /// Fails if the model does not return an object of the required form.
    pub fn ask(
        &self,
        purpose: &Purpose,
        sentence: &str,
        temperature: f64,
        protocol: &dyn Protocol,
        conversation: &mut Conversation,
    ) -> Result<Value, AgentError> {
        let brief = || self.brief(purpose, sentence);
        let words = self.ask_apart(purpose, temperature, TRIES, protocol, brief, conversation)?;
        // The protocol accepts only JSON.
        Ok(serde_json::from_str(&words).unwrap_or_default())
    }

    /// Asks a model for a text, in a separate conversation.
    ///
    /// # Errors
    /// Fails if the model does not return a valid reply.
    pub fn ask_apart<'b>(
        &self,
        purpose: &Purpose,
        temperature: f64,
        tries: u32,
        protocol: &dyn Protocol,
        brief: impl Fn() -> Brief<'b>,
        conversation: &mut Conversation,
    ) -> Result<String, AgentError> {
        let shorter = || self.document_shown(Some(FEWER_ENTRIES));
        let agent = Agent {
            purpose: purpose.clone(),
            brief: &|| brief(),
            protocol,
            permissions: &Everything,
            memory: &self.memory(purpose, usize::MAX, "", &shorter),
            ending: &|_, _| Ok(()),
            tries,
            tool_tries: ToolTries::Unlimited,
            calls: None,
            temperature: Some(temperature),
            env: self.run.env(),
        };
        Ok(agent.work_on(conversation, None)?.words)
    }

    fn brief(&self, purpose: &Purpose, sentence: &str) -> Brief<'_> {
        let files = if *purpose == Purpose::PLAN {
            self.top_level()
        } else {
            String::new()
        };
        Brief {
            // The extra newline leaves a blank line before the reply format.
            instructions: format!("{}\n", self.place.instructions),
            context: vec![
                self.model_and(purpose, sentence),
                self.document_shown(None) + &files,
            ],
            // The summary is written without tools.
            tools: if *purpose == Purpose::SUMMARY {
                Toolbox::default()
            } else {
                self.tools()
            },
            ..Brief::default()
        }
    }

    /// Returns the prompt in the model's table entry, followed by a sentence about the task.
    pub fn model_and(&self, purpose: &Purpose, sentence: &str) -> String {
        place::model_and(&self.place.base.models.of(purpose).spec, sentence)
    }

    /// Returns the plan as shown to models, with only the latest `entries` of its log; `None` keeps all of them.
    fn document_shown(&self, entries: Option<usize>) -> String {
        // A read error does not end the work here; the next change to the document reports it.
        let document = self.document.read();
        let text = document.map_or_else(
            |error| format!("({error})"),
            |document| match entries {
                Some(entries) => document.recent(entries),
                None => document.text(),
            },
        );
        format!("# Current Plan\n\n{}", self.context.redactor.text(&text))
    }

    /// Selects the part of a conversation to send for this purpose.
    pub fn memory<'m>(
        &'m self,
        purpose: &Purpose,
        most: usize,
        task: &'m str,
        shorter: &'m dyn Fn() -> String,
    ) -> Recent<'m> {
        let spec = &self.place.base.models.of(purpose).spec;
        let window = spec.prompt_window();
        Recent {
            most,
            task,
            reminder: REMINDER,
            window: window.unwrap_or(u64::MAX),
            answer: spec.answer_share(),
            shorter,
            larger: place::larger(self.context.models, spec),
        }
    }

    /// Calls `work` with the permissions for tool calls: the agent's own files and direct changes to the plan document
    /// are forbidden, and calls that may do harm need the user's consent.
    pub fn permitted<T>(&self, work: impl FnOnce(&dyn Permissions) -> T) -> T {
        let root = self.context.project.root();
        let is_harmless = |command: &str| (self.harmless)(command).is_some();
        work(&AskFirst {
            permissions: &DenyPaths {
                permissions: &self.place.base.closed_to(self.context, &Everything),
                root,
                paths: std::slice::from_ref(&self.document.path),
                instead: Some("this is the plan document, which update_plan changes"),
            },
            root,
            is_harmless: &is_harmless,
            consent: self.consent(),
            lacks_consent: &self.lacks_consent,
            may_have_changed: &self.may_have_changed,
        })
    }

    /// Returns the suffix of the reason for a failed step if a call lacked the user's consent; otherwise, an empty
    /// string.
    pub fn refusal_note(&self) -> &'static str {
        if self.lacks_consent.get() {
            "; a call was refused that `--yes` allows"
        } else {
            ""
        }
    }

    /// Returns the source of the user's consent.
    fn consent(&self) -> Consent {
        match (self.arguments.yes, self.run.is_interactive()) {
            (true, _) => Consent::Given,
            (false, true) => Consent::Asked,
            (false, false) => Consent::Unattended,
        }
    }

    /// Returns the tools available in steps.
    pub fn tools(&self) -> Toolbox<'_> {
        // Harmless commands run without a shell.
        let shell = Shell::Foreground(self.harmless);
        let tools = PlanTools {
            access: FileAccess {
                read: self.place.base.access(self.context),
                files: self.run,
            },
            command: self.place.base.command(shell, self.output_files),
            has_failed: &self.has_failed_command,
            changes: Box::new(|| self.run.diff()),
            updater: self,
            user: self.run.is_interactive().then_some(self.run),
        };
        tools.toolbox()
    }

    /// Saves the document's version before the result of a stage is written into it.
    ///
    /// # Errors
    /// Fails if the document cannot be read or the session cannot be saved.
    pub fn note_version(&self) -> Result<(), AgentError> {
        let version = self.read()?.plan().metadata.version;
        let stored = &self.place.base.stored;
        Ok(stored.change_state(|state| state.version = Some(version))?)
    }

    /// Returns `true` if the document already contains the stage's result, as is possible if an earlier run was cut
    /// short right after writing it.
    ///
    /// # Errors
    /// Fails if the document cannot be read or the session cannot be saved.
    pub fn is_written(&self) -> Result<bool, AgentError> {
        let stored = &self.place.base.stored;
        let Some(before) = stored.state(|state| state.version) else {
            return Ok(false);
        };
        let is_written = self.read()?.plan().metadata.version > before;
        if !is_written {
            // A later change by others must not be mistaken for the stage's result.
            stored.change_state(|state| state.version = None)?;
        }
        Ok(is_written)
    }

    /// Reads the current document.
    ///
    /// # Errors
    /// Fails if the document cannot be read.
    pub fn read(&self) -> Result<PlanDocument, AgentError> {
        Ok(self.document.read().map_err(Error::from)?)
    }

    /// Applies a change to the current document.
    ///
    /// # Errors
    /// Fails if the document cannot be changed.
    pub fn change(&self, change: impl FnOnce(&mut Plan)) -> Result<(), AgentError> {
        Ok(self.document.change(change).map_err(Error::from)?)
    }
}
