//! The `plan` agent: a model breaks a request down into steps, executes them one by one, and sums up the work in a plan
//! that the user reads, edits and owns.
//!
//! Defines which parts of the engine the agent uses, and in which order.

use std::cell::{Cell, RefCell};
use std::path::Path;

use super::args::{PlanArgs, PlanCommand};
use super::chat_log::{ChatLog, SYSTEM, USER};
use super::ends::{are_over, end_of};
use super::file::{PlanFile, PlanFileError};
use super::place::{OpenPlan, PlanPlace, keep_models, models, open_session, plan_file_of, table};
use super::progress::shown;
use super::session::{PlanStage, PlanState, StepsEnd, WorkEnd};
use super::stages::{PROTOCOL, Stages};
use super::summary::note_unsummed;
use super::types::PlanTask;
use super::{checkpoint, instructions, reliability, show};
use crate::agent::AgentError;
use crate::agent::conversation::Conversation;
use crate::agent::restricted::AuditCommands;
use crate::commands::agent_run::{AgentRun, AgentSetup, NOTHING_TO_COMPACT, SUMMARY, compact};
use crate::commands::answers::AnswerSource;
use crate::commands::error::CommandError;
use crate::commands::screen::with_user;
use crate::commands::stored_session::{SessionChoice, SessionLog as _};
use crate::commands::talk::tally::Tally;
use crate::commands::talk::{SessionFacts, Talk, Talker, Unfinished, left};
use crate::commands::workspace::{AgentOptions, check_project, home};
use crate::exec::build_script::BUILD_SCRIPT;
use crate::model::ModelTable;
use crate::project::ProjectLock;
use crate::project::home::PLAN;
use crate::record::event::Event;
use crate::record::result::{PlanRecord, PlanStepRecord};
use crate::record::run_files;
use crate::record::todos::Todo;
use crate::run::context::{Context, ModelChoice, Stdin};
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::{recovery, selection};
use crate::sys::error::Error;
use crate::ui::input::{OpenUser, User};
use crate::ui::tui::Submission;

/// The command's name.
const NAME: &str = "plan";

/// The opening question to the user: `spec/plan-prompts.md`, 4.3.2.
const QUESTION: &str = "What would you like to build?";

/// The answer to `/compact` between a request and its summary.
const UNDER_WAY: &str = "the request is not done, and its steps are summed up from what was said: `--resume` finishes it, \
                         and then `/compact` works; `/clear` begins a new session";

/// Runs the agent, or another of its commands.
///
/// # Errors
/// Fails if the command fails, or the last request was not completed.
pub fn plan(context: &Context<'_>, arguments: &PlanArgs, stdin: Stdin) -> Result<Outcome, Failure> {
    match &arguments.command {
        Some(PlanCommand::Show {
            session, plan_file, ..
        }) => return show::show(context, session.as_deref(), plan_file.as_deref()),
        Some(PlanCommand::Sessions(_)) => return show::sessions(context),
        Some(PlanCommand::Reliability(wanted)) => {
            let measured = reliability::reliability(context, wanted);
            let advice = AgentError::hint_without_config;
            return measured.map_err(|failure| Failure { advice, ..failure });
        }
        None => {}
    }
    let options = AgentOptions::new(
        context,
        &arguments.agent,
        arguments.prompt.as_deref(),
        SessionChoice::of(arguments.session.as_ref(), arguments.resume),
        ModelChoice::streamed(arguments.model.as_deref(), arguments.timeout),
        false,
    )?;
    let home = home(context, &PLAN)?;
    let wants_screen = !options.is_headless() && !arguments.agent.plain;
    let screen = wants_screen.then_some(&*home);
    with_user(context, stdin, screen, |context, open| {
        in_sessions(context, arguments, options, &home, open)
    })
}

/// Works on one request, or on the requests that the user types at the terminal, in one session after another.
fn in_sessions(
    context: &Context<'_>,
    arguments: &PlanArgs,
    mut options: AgentOptions,
    home: &Path,
    open: OpenUser<'_>,
) -> Result<Outcome, Failure> {
    options.goes_on()?;
    // Mistakes on the command line are reported before a file is created or a server contacted.
    if let Some(path) = &arguments.plan_file {
        plan_file_of(&context.project, path, &options.session)?;
    }
    selection::find_recording(context, options.choice.replay.as_deref())?;
    let is_asked = !options.is_headless();
    let user = is_asked.then(open).transpose()?.map(RefCell::new);
    let user = &(user, Unfinished::default());
    loop {
        let (outcome, next) = in_session(context, arguments, options, home, user)?;
        match next {
            Some(next) => options = next,
            None => return Ok(outcome),
        }
    }
}

/// Works in one session on one request, or on the requests typed at the terminal. Also returns the options for the next
/// session if the user switches to one.
fn in_session(
    context: &Context<'_>,
    arguments: &PlanArgs,
    options: AgentOptions,
    home: &Path,
    (user, unfinished): &(Option<User>, Unfinished),
) -> Result<(Outcome, Option<AgentOptions>), Failure> {
    let user = user.as_ref();
    // A session that cannot be resumed is reported before any server is contacted; a new session is created only once
    // everything else is ready.
    let is_resumed = options.session != SessionChoice::New;
    let open = || open_session(context, home, arguments, &options);
    let resumed = is_resumed.then(open).transpose()?;
    if let Some(stored) = &resumed {
        checkpoint::roll_back(context, stored, &document_of(context, stored))?;
    }
    let is_over = |stored: &OpenPlan<'_>| {
        let read = document_of(context, stored).read();
        let is_open = |tasks: Vec<PlanTask>| tasks.iter().any(PlanTask::is_open);
        !stored.is_under_way() && read.is_ok_and(|read| !is_open(read.plan().tasks))
    };
    if options.goes_on()? && resumed.as_ref().is_some_and(is_over) {
        return Err(CommandError::NothingAsked.into());
    }
    let table: Result<ModelTable, _> = Ok(table(context, home)?);
    let context = &Context {
        models: &table,
        ..context.clone()
    };
    let models = models(context, &options.choice, arguments.pull, user)?;
    check_project(context)?;
    keep_models(context, home)?;
    let root = context.project.root();
    let instructions =
        instructions::read(context.home(), root, context.redactor).map_err(NotReady::of)?;
    // A request that is refused because another run has locked the project must leave no session: `--resume` would
    // mistake it for the last one.
    let is_locked = options.is_headless() || !is_resumed;
    let lock = is_locked.then(|| recovery::take(context)).transpose()?;
    let stored = resumed.map_or_else(open, Ok)?;
    if is_resumed && !options.is_headless() {
        recap(context, &stored);
    }
    // At the terminal, the project is locked only while a request is worked on.
    let lock = lock.filter(|_| options.is_headless());
    let path = stored.session.borrow().chat_log();
    let chat = ChatLog::open(&path, context.clock, context.redactor, context.reporter)?;
    let mut context = context.with_reporter(&chat);
    context.sandbox.document = Some(stored.session.borrow().document(root));
    if user.is_none() && !is_resumed {
        chat.append(SYSTEM, QUESTION);
    }
    let place = PlanPlace::open(&context, &options, home, models, stored, instructions);
    let done = place.map_err(Failure::from).and_then(|place| {
        let mut worker = Worker {
            context: &context,
            arguments,
            options,
            place,
            chat: &chat,
            user,
            unfinished,
            next: None,
            lock: RefCell::new(lock),
        };
        Ok((worker.serve()?, worker.next))
    });
    // Recorded only in the chat log, since the caller shows the outcome.
    chat.record(&ended(&done));
    done
}

/// Returns the document of a session's plan.
fn document_of<'p>(context: &'p Context<'_>, open: &OpenPlan<'_>) -> PlanFile<'p> {
    PlanFile {
        path: open.session.borrow().document(context.project.root()),
        is_private: open.state(|state| state.plan_file.is_none()),
        clock: context.clock,
        redactor: context.redactor,
    }
}

/// Shows the last request of a resumed session and, if it is done, the summary of the work.
fn recap(context: &Context<'_>, stored: &OpenPlan<'_>) {
    let state = stored.state(PlanState::clone);
    let is_done = state.stage == PlanStage::Done;
    let read = document_of(context, stored).read().ok();
    let mut log = read.map_or_else(Vec::new, |read| read.plan().execution_log);
    let summary = log.pop().filter(|_| is_done);
    let summary = summary.map_or_else(String::new, |entry| format!("\n\n{entry}"));
    if let Some(request) = state.requests.last() {
        let shown = format!("> {}{summary}", request.replace('\n', "\n> "));
        context.reporter.event(&Event::Shown(shown));
    }
}

/// Returns the final event of a run, for the chat log.
fn ended<T>(done: &Result<(Outcome, T), Failure>) -> Event {
    match done {
        Ok((outcome, _)) => outcome.event(),
        Err(failure) => failure.event(),
    }
}

/// Works on requests in sequence.
struct Worker<'w> {
    context: &'w Context<'w>,
    arguments: &'w PlanArgs,
    options: AgentOptions,
    place: PlanPlace<'w>,
    chat: &'w ChatLog<'w>,
    user: Option<&'w User>,
    unfinished: &'w Unfinished,
    /// The options for the session to switch to; `None` to stay in this one.
    next: Option<AgentOptions>,
    /// The lock for the first request, if it is already taken.
    lock: RefCell<Option<ProjectLock>>,
}

impl Talker for Worker<'_> {
    const PROMPT: &'static str = "plan> ";

    fn todos(&self) -> Vec<Todo> {
        let read = self.document().read();
        let tasks = read.map_or_else(|_| Vec::new(), |read| read.plan().tasks);
        tasks.iter().map(|task| Todo::from(&shown(task))).collect()
    }

    fn has_more_to_do(&self) -> Result<bool, Failure> {
        Ok(self.is_open()?)
    }

    fn facts(&self) -> SessionFacts {
        let base = &self.place.base;
        let is_begun = base.stored.state(|state| !state.requests.is_empty());
        let window = base.limits.max_context_tokens.unwrap_or_default();
        SessionFacts {
            session: is_begun.then(|| base.stored.id()),
            ..SessionFacts::of(&base.models.first.spec, window)
        }
    }

    fn show(&self) {
        self.context.notice(QUESTION);
    }

    fn attend(
        &mut self,
        talk: &mut Talk<'_>,
        request: Option<Submission>,
    ) -> Result<Outcome, Failure> {
        let request = request.map(|request| request.text);
        let answers = AnswerSource::Typed(talk.user);
        let done = self.work_on(answers, request.as_deref().map(str::trim));
        talk.count(&done);
        done
    }

    fn sessions(&self) -> Result<Vec<(String, String)>, Failure> {
        self.place.base.stored.others(self.context.project.root())
    }

    fn change_session(&mut self, session: SessionChoice) -> Result<String, Failure> {
        if let SessionChoice::Named(id) = &session {
            // Fails if the session cannot be resumed.
            self.place.base.stored.store.open(id)?;
        }
        self.next = Some(AgentOptions {
            session,
            ..self.options.clone()
        });
        Ok(String::new())
    }

    fn choose_model(&mut self, name: &str) -> Result<(), Failure> {
        let choice = self.options.choice.with_model(name);
        let models = models(self.context, &choice, self.arguments.pull, self.user)?;
        self.place.model_warnings = models.report(self.context);
        let window = models.first.spec.prompt_window();
        self.place.base.set_models(models, window);
        self.options.choice = choice;
        Ok(())
    }

    fn cost(&self, tally: &Tally) -> Result<String, Failure> {
        Ok(tally.cost_of_session())
    }

    fn compact(&mut self, talk: &mut Talk<'_>, focus: &str) -> Result<String, Failure> {
        let base = &self.place.base;
        if base.stored.is_under_way() {
            return Ok(UNDER_WAY.to_owned());
        }
        if base.stored.conversation().history.is_empty() {
            return Ok(NOTHING_TO_COMPACT.to_owned());
        }
        let setup = AgentSetup {
            advice: AgentError::hint_without_config,
            ..base.setup(NAME, AnswerSource::Nowhere)
        };
        let done = compact(self.context, setup, &PROTOCOL, (SUMMARY, focus));
        talk.spend(&done);
        Ok(done?.summary)
    }

    fn is_over(&self) -> bool {
        self.next.is_some()
    }
}

impl Worker<'_> {
    /// Works on the request from the command line or from a recorded run, or on those that the user types.
    fn serve(&mut self) -> Result<Outcome, Failure> {
        self.make_plan()?;
        let request = self.options.request.clone();
        match (&self.place.base.recorded, request.as_deref(), self.user) {
            (Some(recorded), _, _) => {
                let answers = AnswerSource::recorded(recorded);
                self.work_on(answers, recorded.request.as_deref())
            }
            (None, Some(_), _) if self.options.asked().is_some() => {
                self.work_on(AnswerSource::Nowhere, self.options.asked())
            }
            (None, Some(_), _) if self.is_open()? => self.work_on(AnswerSource::Nowhere, None),
            (None, None, Some(user)) => {
                let talked = Talk::new(self.context, user, self.unfinished).run(self);
                left(self.facts().session, talked)
            }
            (None, _, _) => Err(CommandError::NothingAsked.into()),
        }
    }

    /// Works on a request; `None` continues the previous one. Locks the project only while it works.
    fn work_on(
        &self,
        answers: AnswerSource<'_>,
        request: Option<&str>,
    ) -> Result<Outcome, Failure> {
        let taken = self.lock.take();
        let _lock = taken.map_or_else(|| recovery::take(self.context), Ok)?;
        self.check_plan()?;
        self.place.check_gate(self.context, self.arguments)?;
        let (stored, document) = (&self.place.base.stored, self.document());
        // Log the steps of a request that was not summed up, since they are about to be replaced.
        let state = stored.state(PlanState::clone);
        if request.is_some() && matches!(state.stage, PlanStage::Execution | PlanStage::Summary) {
            let now = self.context.clock.now().timestamp_millis();
            unless_damaged(document.change(|plan| note_unsummed(&state, plan, now)))?;
        }
        stored.change_state(|state| state.begin(request))?;
        if let Some(request) = request {
            self.chat.append(USER, request);
        }
        let asked = stored.state(|state| match state.stage {
            PlanStage::Planning => state.requests.last().cloned(),
            _ => None,
        });
        let setup = AgentSetup {
            warnings: [&*self.place.model_warnings, &*self.place.warnings].concat(),
            stops_at_no: true,
            advice: AgentError::hint_without_config,
            proof: self.arguments.agent.proof(self.arguments.build_timeout),
            ..self.place.base.setup(NAME, answers)
        };
        let is_scratch = self.options.agent.scratch.is_some();
        if is_scratch {
            checkpoint::save(stored, &document)?;
        }
        let run = AgentRun::start(self.context, setup, asked.as_deref())?;
        let bytes = document.bytes()?;
        run.with(|run| run.log.text(run_files::PLAN, bytes))?;
        let root = self.context.project.root();
        let harmless = AuditCommands {
            root,
            path: self.context.environment.os("PATH"),
            own: &[],
            check_timeout: self.place.base.limits.command_timeout(),
        };
        let stages = Stages {
            context: self.context,
            arguments: self.arguments,
            place: &self.place,
            run: &run,
            document: document.clone(),
            harmless: &|command| harmless.harmless(command),
            output_files: &|| run.command_output(),
            has_gate: root.join(BUILD_SCRIPT).is_file(),
            may_have_changed: Cell::new(false),
            lacks_consent: Cell::new(false),
            has_failed_command: Cell::new(false),
            claimed: RefCell::default(),
        };
        let result = run.work(|conversation| self.work(&stages, conversation));
        run.with(|run| run.record.plan = Some(self.record()));
        let outcome = run.finish(result);
        if outcome.is_ok() && is_scratch {
            stored.change_state(|state| state.checkpoint = None)?;
        } else if let Err(error) = checkpoint::roll_back(self.context, stored, &document) {
            // The next resumption tries again.
            self.context.warn(error.to_string());
        }
        outcome
    }

    /// Runs the remaining stages, starting with the session's current one.
    fn work(
        &self,
        stages: &Stages<'_, '_, '_>,
        conversation: &mut Conversation,
    ) -> Result<String, AgentError> {
        let stored = &self.place.base.stored;
        let enter = |stage| Ok::<(), AgentError>(stored.change_state(|state| state.enter(stage))?);
        let stage = || stored.state(|state| state.stage);
        stages.mend()?;
        if stage() == PlanStage::Planning {
            if !stages.is_written()? {
                let request = stored.state(|state| state.requests.last().cloned());
                stages.plan(&request.unwrap_or_default())?;
            }
            enter(PlanStage::Execution)?;
            self.show_plan();
            let is_saved = stored.state(|state| state.checkpoint.is_some());
            if is_saved && stages.document.is_private {
                // The plan itself is kept, so that it is not made again.
                checkpoint::save(stored, &stages.document)?;
            }
        }
        if self.arguments.plan_only || self.place.is_plan_only {
            stages.show_tasks()?;
            let path = stages.document.path.display();
            return Ok(format!(
                "the plan is made: read and edit `{path}`, then `code-commit plan --resume -p \"\"` continues it"
            ));
        }
        let executed = if stage() == PlanStage::Execution {
            let executed = stages.execute(conversation);
            if let Err(error) = &executed
                && !are_over(error)
            {
                stages.note_stop(error);
                return executed.map(|()| String::new());
            }
            stored.change_state(|state| {
                state.enter(PlanStage::Summary);
                state.ended = Some(end_of(&executed));
            })?;
            executed
        } else {
            let done = StepsEnd {
                end: WorkEnd::Done,
                why: String::new(),
            };
            let ended = stored.state(|state| state.ended.clone());
            stages.ended_before(ended.unwrap_or(done))
        };
        let end = end_of(&executed).end;
        let summed = self.sum_up(stages, conversation, end);
        let shown = match (executed, summed) {
            (Err(error), Ok(shown)) => {
                self.context.reporter.event(&Event::Shown(shown));
                Err(error)
            }
            // A failed step's error takes precedence over the summary's, unless the user interrupted the run.
            (Err(error), Err(unsummed)) if !matches!(unsummed, AgentError::Interrupted(_)) => {
                stages
                    .run
                    .warn(format!("what was done is not summed up: {unsummed}"));
                stages.conclude(Some(end))?;
                Err(error)
            }
            // The stage stays the same, so that a resumed session writes the summary.
            (_, Err(unsummed)) => {
                stages.note_stop(&unsummed);
                return Err(unsummed);
            }
            (Ok(()), Ok(shown)) => {
                stages.warn_of_open_criteria();
                Ok(shown)
            }
        };
        enter(PlanStage::Done)?;
        self.show_plan();
        if stored.state(|state| state.files.is_empty()) && stages.run.changed().is_empty() {
            self.context
                .notice("no file of the project was changed by a file tool");
        }
        shown
    }

    /// Sums up the work unless the plan already contains the summary. Returns the text to show.
    fn sum_up(
        &self,
        stages: &Stages<'_, '_, '_>,
        conversation: &Conversation,
        end: WorkEnd,
    ) -> Result<String, AgentError> {
        if stages.is_written()? {
            let path = stages.document.path.display();
            return Ok(format!("what was done is summed up in `{path}`"));
        }
        if end == WorkEnd::Done {
            stages.check_criteria()?;
        }
        let from = self.place.base.stored.state(|state| state.from);
        let history = conversation.history.get(from..).unwrap_or_default();
        stages.sum_up(history, end)
    }

    /// Creates the plan document if it is missing, unless the session has steps to execute or sum up.
    fn make_plan(&self) -> Result<(), NotReady> {
        let stage = self.place.base.stored.state(|state| state.stage);
        let has_steps = matches!(stage, PlanStage::Execution | PlanStage::Summary);
        self.document().make(has_steps).map_err(NotReady::of)
    }

    /// Creates the plan document if it is missing. Fails if it cannot be read and only the user can repair it.
    fn check_plan(&self) -> Result<(), NotReady> {
        self.make_plan()?;
        unless_damaged(self.document().read())
    }

    /// Returns `true` if the session has a request in progress or open steps.
    fn is_open(&self) -> Result<bool, Error> {
        if self.place.base.stored.is_under_way() {
            return Ok(true);
        }
        let tasks = self.document().read()?.plan().tasks;
        Ok(tasks.iter().any(PlanTask::is_open))
    }

    fn document(&self) -> PlanFile<'_> {
        document_of(self.context, &self.place.base.stored)
    }

    /// Records the current document in the chat log.
    fn show_plan(&self) {
        if let Ok(document) = self.document().read() {
            self.chat.plan_shown(&document.text());
        }
    }

    /// Returns the plan's entry in the run record.
    fn record(&self) -> PlanRecord {
        let read = self.document().read().map(|document| document.plan());
        let plan = read.unwrap_or_default();
        let steps = plan.tasks.into_iter().map(|task| PlanStepRecord {
            step: task.step,
            status: task.status.into_str().into(),
            tool: task.tool,
            description: task.description,
        });
        PlanRecord {
            document: self.document().path.display().to_string(),
            status: plan.status.into_str().into(),
            steps: steps.collect(),
        }
    }
}

/// Returns an error for a plan that only the user can repair; a damaged one is repaired first.
fn unless_damaged<T>(result: Result<T, PlanFileError>) -> Result<(), NotReady> {
    match result {
        Err(problem) if problem.damage().is_none() => Err(NotReady::of(problem)),
        Ok(_) | Err(_) => Ok(()),
    }
}
