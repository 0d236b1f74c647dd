//! The `orchestrate` agent: two remote agents implement, review and fix a task until a review is clean; then the work
//! is published.
//!
//! Defines which parts of the engine the agent uses, and in which order. Guarantees that a run whose folder exists ends
//! with a report, whether or not it succeeds.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::HeaderMap;

use super::args::OrchestrateArgs;
use super::branches::Specialist;
use super::error::OrchestrateError;
use super::handover::{instructions, unknown_branch};
use super::instructions::{FORM, initial_messages, system_prompt};
use super::lineage::BranchTracker;
use super::pantheon::{self, Pantheon};
use super::place::OrchestratePlace;
use super::publish::publish;
use super::report::{FinalReport, ending, missing_review};
use super::resume::{self, Begun};
use super::specialists::{FinishedBranch, MAX_REVIEWS, Specialists, Watcher};
use super::talk::{AT_QUESTION, GREETING, in_task};
use super::tools::{self, ExecuteAgent, ReadArtifact};
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::agent::mcp::McpClient;
use crate::agent::memory::whole::Whole;
use crate::agent::permissions::Everything;
use crate::agent::protocol::native::{Native, ResultForm};
use crate::agent::tool::{ToolError, Toolbox};
use crate::agent::{Agent, AgentError, Brief, Ended, Objection, ToolTries};
use crate::commands::agent_run::{AgentRun, AgentSetup};
use crate::commands::answers::AnswerSource;
use crate::commands::mcp_server::{ExchangeLog, connect, require_tools};
use crate::commands::query;
use crate::commands::screen::with_user;
use crate::commands::spent::Spent;
use crate::commands::talk::{Talk, Unfinished, slash};
use crate::commands::workspace::home;
use crate::model::Purpose;
use crate::project::home::DEV;
use crate::record::event::Event;
use crate::record::orchestration::{EXECUTE_AGENT, OrchestrationRecord, OrchestrationStatus};
use crate::record::run_files::LINEAGE;
use crate::run::context::{Context, Stdin};
use crate::run::outcome::{Failure, Outcome, RunOutput};
use crate::sys::environment::{Clock as _, RecordedClock};
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::interrupt::Interrupted;
use crate::ui::input::{InputError, OpenUser};
use crate::ui::tui::ToScreen;

/// The command's name.
const NAME: &str = "orchestrate";

/// The prompt for the user's replies to the model.
const PROMPT: &str = "you> ";

/// The number of consecutive tool failures that ends the work.
const TOOL_TRIES: u32 = 10;

/// Has a task implemented, reviewed and published.
///
/// # Errors
/// Fails if the work passes no review, or was not published although it should have been.
pub fn orchestrate(
    context: &Context<'_>,
    arguments: &OrchestrateArgs,
    stdin: Stdin,
) -> Result<Outcome, Failure> {
    let begun = match resume::begun(context, arguments)? {
        Some(Begun::Published(report)) => {
            let mut outcome = Outcome::new("the work is published already: nothing was done");
            outcome.output.report = serde_json::to_value(report).ok().map(Box::new);
            return Ok(outcome);
        }
        Some(Begun::Work(work)) => Some(*work),
        None => None,
    };
    let given = query::prompt(context, arguments.task.as_deref())?;
    if let Some(task) = &given {
        slash::check_request(task, false)?;
    }
    if given.as_deref().is_some_and(|task| task.trim().is_empty()) {
        return Err(InputError::Blank.into());
    }
    let (arguments, task, begun) = match begun {
        Some((arguments, task, begun)) => (arguments, Some(task), Some(begun)),
        None => (arguments.clone(), given, None),
    };
    // A headless run has no user to talk to, so standard output carries only the report.
    let is_plain = arguments.headless || arguments.replay.is_some() || arguments.plain;
    // Without a home directory, no history is stored, and line-based input suffices.
    let home = (!is_plain).then(|| home(context, &DEV).ok()).flatten();
    with_user(context, stdin, home.as_deref(), |context, open| {
        let place = OrchestratePlace::open(context, arguments, task, begun)?;
        serve(place, stdin, open)
    })
}

/// Works on the task. If there is none, the user is asked for it, after everything else has been prepared.
fn serve(
    mut place: OrchestratePlace<'_>,
    stdin: Stdin,
    open: OpenUser<'_>,
) -> Result<Outcome, Failure> {
    let (context, is_headless) = (place.context, place.arguments.headless);
    if place.task.is_empty() && is_headless && !stdin.is_terminal {
        // The task is the whole of standard input, since nothing else is read from it.
        place.task = query::from_stdin(context)?;
    }
    let is_asked = place.task.is_empty();
    let has_user = place.recorded.is_none() && (is_asked || !is_headless);
    let user = has_user.then(open).transpose()?.map(RefCell::new);
    if let Some(user) = &user {
        let unfinished = Unfinished::default();
        let mut talk = Talk::new(context, user, &unfinished);
        talk.show_status_bar(&place);
        if is_asked {
            user.borrow_mut().show(ToScreen::Said(GREETING.to_owned()));
            talk.run(&mut place)?;
        }
        if place.task.is_empty() {
            if talk.has_left || user.borrow().is_person() {
                return Ok(Outcome::new("nothing was asked for"));
            }
            return Err(InputError::Blank.into());
        }
    }
    let answers = match (&place.recorded, &user) {
        (Some(record), _) => AnswerSource::recorded(record),
        (None, Some(user)) if !is_headless => AnswerSource::Typed(user),
        _ => AnswerSource::Nowhere,
    };
    carry_out(&place, answers)
}

/// Connects to the server, and works until the run has its report.
fn carry_out(place: &OrchestratePlace<'_>, answers: AnswerSource<'_>) -> Result<Outcome, Failure> {
    let context = place.context;
    let exchanges = ExchangeLog::new(context);
    // Connect before the model is asked, so that an unreachable server costs nothing.
    let clock = RecordedClock::new(context.clock);
    let client = connect(
        context,
        &place.server,
        place.arguments.timeout,
        &HeaderMap::new(),
        &exchanges,
        &clock,
    )?;
    let tools = require_tools(&client, &pantheon::TOOLS)?;
    context.reporter.event(&Event::Connected {
        server: client.server().to_owned(),
        protocol: client.protocol().to_owned(),
    });
    let setup = AgentSetup {
        advice,
        name: NAME,
        models: &place.models,
        limits: place.limits,
        session: None,
        answers,
        warnings: place.models.report(context),
        conventions: None,
        stops_at_no: false,
        changes: None,
        orchestration: Some(place.settings.clone()),
        mode: None,
        proof: None,
    };
    let run = AgentRun::start(context, setup, Some(&place.task))?;
    let begun = place.settings.begun.as_ref();
    if let Some(agent) = begun.and_then(|begun| begun.lineage.starting.as_ref()) {
        run.warn(unknown_branch(agent));
    }
    let (report, result) = {
        let orchestration = Orchestration {
            place,
            run: &run,
            exchanges: &exchanges,
            clock: &clock,
            output: Pantheon::output_tool(&tools),
            summary: RefCell::default(),
        };
        orchestration.carry_out(&client)
    };
    drop(client);
    run.with(|run| run.record.orchestration = Some(report.clone()));
    let report = serde_json::to_value(report).unwrap_or_default();
    let mut done = run.finish(result.map(|()| String::new()));
    RunOutput::of(&mut done).report = Some(Box::new(report));
    done
}

/// An orchestration in progress.
struct Orchestration<'o, 'c> {
    place: &'o OrchestratePlace<'o>,
    run: &'o AgentRun<'c>,
    exchanges: &'o ExchangeLog<'c>,
    /// Measures how long agents take; a replay uses the recorded times.
    clock: &'o RecordedClock<'o>,
    /// The arguments of the server's tool for an agent's response, if it has one.
    output: Option<Value>,
    /// The summary in the model's accepted final report.
    summary: RefCell<String>,
}

impl Orchestration<'_, '_> {
    /// Works on the task, has the work published, and returns the report with the result.
    fn carry_out(&self, client: &McpClient<'_>) -> (OrchestrationRecord, Result<(), Error>) {
        let place = self.place;
        let specialists = Specialists {
            branches: Pantheon {
                tools: client,
                redactor: self.place.context.redactor,
                output: self.output.clone(),
            },
            watcher: self,
            clock: self.clock,
            polling: place.settings.polling,
            project: &place.settings.project_name,
            workspace: &place.settings.workspace_dir,
            lineage: RefCell::new(match &place.settings.begun {
                Some(begun) => BranchTracker::resumed(begun.lineage.clone()),
                None => BranchTracker::new(&place.settings.parent_branch_id),
            }),
            asks_parents: place.settings.asks_parents,
            started: self.clock.elapsed(),
        };
        let worked = self.work(&specialists);
        let published = self.publish(&worked, &specialists);
        let worked = worked.and_then(|()| self.exchanges.check());
        let summary = match &worked {
            Ok(()) => self.summary.take(),
            Err(error) => format!("The work is not done: {error}."),
        };
        let publish_error = published.as_ref().err().map(ToString::to_string);
        let (publish_report, result) = match published {
            Ok(report) => (report, worked),
            Err(error) if worked.is_ok() || matches!(error.exit(), Exit::Interrupted(_)) => {
                (None, Err(error))
            }
            Err(_) => (None, worked),
        };
        let status = status(&result);
        let lineage = specialists.lineage.borrow();
        let latest = lineage.latest().to_owned();
        let mut report = OrchestrationRecord {
            task: place.task.clone(),
            summary,
            status,
            is_finished: status.is_finished(),
            start_branch_id: lineage.record.start_branch_id.clone(),
            latest_branch_id: latest.clone(),
            instructions: String::new(),
            publish_pantheon_branch_id: publish_report.as_ref().map(|_| latest),
            publish_report,
            publish_error,
            iterations: lineage.record.iterations,
            log: self.run.with(|run| run.log.name().to_owned()),
            branches: lineage.record.branches.clone(),
        };
        report.instructions = instructions(&report, &place.settings, &lineage);
        (report, result)
    }

    /// Lets the model lead the work until its final report is accepted.
    fn work(&self, specialists: &Specialists<'_>) -> Result<(), Error> {
        self.exchanges.begin(self.run.with(|run| run.log.clone()))?;
        specialists.report_change().map_err(Error::from)?;
        let settings = &self.place.settings;
        let begun = settings.begun.as_ref();
        if let Some(begun) = begun {
            let lineage = specialists.lineage.borrow().clone();
            if begun.publish_only || lineage.publishing().is_some() {
                return self.check_passed(specialists);
            }
            if lineage.record.publishes && lineage.record.starting.is_some() {
                return Err(OrchestrateError::MayBePublished.into());
            }
        }
        let begun = begun.map(|_| take_up(specialists)).transpose()?;
        let brief = || Brief {
            instructions: system_prompt(&settings.workspace_dir),
            tools: Toolbox::default()
                .with(&tools::EXECUTE_AGENT, ExecuteAgent(specialists))
                .with(&tools::READ_ARTIFACT, ReadArtifact(specialists)),
            ..Brief::default()
        };
        let agent = Agent {
            purpose: Purpose::STEP,
            brief: &brief,
            protocol: &Native {
                instructions: FORM,
                results: ResultForm::Json,
            },
            permissions: &Everything,
            memory: &Whole {
                window: self.place.limits.max_context_tokens,
            },
            ending: &|ended, _| self.ending(ended, specialists),
            tries: self.run.tries(),
            tool_tries: ToolTries::UpTo(TOOL_TRIES),
            calls: None,
            temperature: None,
            env: self.run.env(),
        };
        self.run.work(|conversation: &mut Conversation| {
            let (branch, project) = (&*settings.parent_branch_id, &*settings.project_name);
            let place = [branch, project, &settings.workspace_dir];
            conversation.history = initial_messages(&self.place.task, place, begun);
            Ok(agent.work_on(conversation, None)?.words)
        })?;
        Ok(())
    }

    /// Checks that a review has passed work that is only to be published.
    fn check_passed(&self, specialists: &Specialists<'_>) -> Result<(), Error> {
        if let Some((reason, _)) = missing_review(specialists)? {
            let limit = limit_hit(&specialists.lineage.borrow());
            return Err(limit
                .unwrap_or(OrchestrateError::NotReviewed(reason))
                .into());
        }
        let summary = "A review has passed the work of an earlier run, which is only published.";
        self.summary.replace(summary.to_owned());
        Ok(())
    }

    /// Checks the model's last message. If it is not a report, the user can reply in an interactive run.
    fn ending(&self, ended: &Ended, specialists: &Specialists<'_>) -> Result<(), Objection> {
        let words = &ended.words;
        self.place
            .context
            .reporter
            .event(&Event::Words(words.clone()));
        let report = FinalReport::read(words);
        let answer = if report.is_err() && self.run.is_interactive() {
            self.answer(specialists)
                .map_err(|error| Objection::Over(error.into()))?
        } else {
            None
        };
        if let Some(answer) = answer.filter(|answer| !answer.trim().is_empty()) {
            return Err(Objection::NotDone(HistoryMessage::of_user(answer)));
        }
        let signed_off = report.map_err(Objection::from).and_then(|report| {
            ending(specialists)?;
            Ok(report.summary)
        });
        match signed_off {
            Ok(summary) => {
                self.summary.replace(summary);
                Ok(())
            }
            // The model has no options left: starting another agent would also end the work.
            Err(Objection::Words(_))
                if specialists.lineage.borrow().record.iterations >= MAX_REVIEWS =>
            {
                let reviews = MAX_REVIEWS;
                Err(Objection::Over(
                    OrchestrateError::IterationLimit(reviews).into(),
                ))
            }
            Err(objection) => Err(objection),
        }
    }

    /// Asks the user to reply to the model; `None` if they do not reply.
    fn answer(&self, specialists: &Specialists<'_>) -> Result<Option<String>, Error> {
        let reply = |command| {
            let (lineage, model) = (specialists.lineage.borrow(), &self.place.settings.model);
            self.run.with(|run| {
                let names = (run.log.name(), &**model, lineage.latest());
                in_task(command, names, &Spent::on(&run.record.steps))
            })
        };
        self.run.answered((PROMPT, PROMPT), AT_QUESTION, reply)
    }

    /// Has the work published if that is enabled and the work is done or has reached the limit of reviews or time.
    /// Returns the agent's report; `None` if nothing was published.
    fn publish(
        &self,
        worked: &Result<(), Error>,
        specialists: &Specialists<'_>,
    ) -> Result<Option<String>, Error> {
        let place = self.place;
        let has_work = specialists.lineage.borrow().last_success().is_some();
        let is_over = worked.as_ref().map_or_else(
            |error| {
                let is_limit = matches!(error.exit(), Exit::IterationLimit | Exit::BranchTimeout);
                is_limit && has_work
            },
            |()| true,
        );
        let Some(publishing) = place.publishing.as_ref().filter(|_| is_over) else {
            return Ok(None);
        };
        let prompt = publishing.prompt(&place.task, &place.settings.workspace_dir);
        let mut input = json!({"agent": Specialist::ClaudeCode.into_str(), "prompt": prompt});
        if let Some((agent, at)) = specialists.lineage.borrow().publishing() {
            input = json!({"agent": agent.into_str(), "branch_id": at.id});
        }
        let used = self
            .run
            .own_step(Purpose::PUBLISH, (EXECUTE_AGENT, input), || {
                publish(specialists, &prompt)
            })?;
        match used.failure {
            None => Ok(Some(used.text)),
            Some(failure) => Err(OrchestrateError::PublishFailed(failure.message).into()),
        }
    }
}

/// Returns the limit that the work has reached, if it is being published without having passed a review.
fn limit_hit(lineage: &BranchTracker) -> Option<OrchestrateError> {
    let record = lineage.publishing().map(|_| &lineage.record)?;
    if record.iterations >= MAX_REVIEWS {
        return Some(OrchestrateError::IterationLimit(record.iterations));
    }
    let late = record.branches.iter().nth_back(1)?;
    let agent = late.agent.parse::<Specialist>().ok()?.into_str();
    (late.id != record.latest_branch_id).then(|| OrchestrateError::BranchTimeout {
        branch: late.id.clone(),
        agent,
        waited: late.seconds.0,
    })
}

/// Waits for the agent that an earlier run has left working, and continues from its branch. Returns a description of
/// that run for the model.
fn take_up(specialists: &Specialists<'_>) -> Result<Value, Error> {
    let waiting = specialists.lineage.borrow().waiting();
    let last = match waiting.map(|waiting| specialists.take_up(waiting)) {
        None => None,
        Some(Ok(FinishedBranch { id, response, .. })) => {
            specialists.go_on_from_last()?;
            Some(json!({"branch_id": id, "response": response}))
        }
        Some(Err(ToolError::Failed(failure))) => Some(json!({"error": failure.to_string()})),
        Some(Err(ToolError::Fatal(error))) => return Err(error.into()),
    };
    let record = &specialists.lineage.borrow().record;
    let (reviews, latest) = (record.iterations, &record.latest_branch_id);
    Ok(
        json!({"reviews": reviews, "branches": record.branches, "last_run": last, "latest_branch_id": latest}),
    )
}

impl Watcher for Orchestration<'_, '_> {
    fn event(&self, event: &Event) {
        self.place.context.reporter.event(event);
    }

    /// Saves the branches in the run's folder, so that even a killed run leaves a record of them.
    fn changed(&self, lineage: &BranchTracker) -> Result<(), AgentError> {
        self.exchanges.check()?;
        let logged = self.run.with(|run| run.log.json(LINEAGE, &lineage.record));
        Ok(logged.map_err(Error::from)?)
    }

    fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        let interrupt = &self.place.context.interrupt;
        if self.place.recorded.is_some() {
            // Replays do not wait, since everything has already happened.
            return interrupt.check();
        }
        interrupt.sleep(duration)
    }
}

/// Returns the hint for an error that ends an orchestration. It points to the report rather than to `config.json`,
/// which `orchestrate` does not read.
pub(crate) fn advice(error: &Error) -> Option<String> {
    use AgentError::{Interrupted, Left, LoopLimit, OverBudget, TooLong, ToolsFailed};
    let is_in_report = match AgentError::of(error) {
        Some(ToolsFailed { .. } | LoopLimit(_) | OverBudget(_) | Interrupted(_) | Left) => true,
        // A resumed run begins with a short conversation.
        Some(TooLong { .. }) => error.exit() == Exit::ModelFailed,
        _ => false,
    };
    if is_in_report {
        return Some("the report's `instructions` say how to go on".to_owned());
    }
    AgentError::hint_without_config(error)
}

/// Returns the status of an orchestration with this result.
fn status(result: &Result<(), Error>) -> OrchestrationStatus {
    let Err(error) = result else {
        return OrchestrationStatus::Completed;
    };
    match error.exit() {
        Exit::IterationLimit => OrchestrationStatus::IterationLimit,
        Exit::BranchTimeout => OrchestrationStatus::Timeout,
        Exit::PublishFailed => OrchestrationStatus::PublishFailed,
        Exit::Interrupted(_) | Exit::Stopped => OrchestrationStatus::Interrupted,
        _ => OrchestrationStatus::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::Specialist::{ClaudeCode, Codex};
    use super::*;

    #[test]
    fn work_that_no_review_has_passed_is_published_at_a_limit() {
        let mut lineage = BranchTracker::new("b0");
        lineage.started("b1", "b0", ClaudeCode);
        lineage.ended();
        lineage.succeeded();
        assert!(limit_hit(&lineage).is_none());
        lineage.started("b2", "b1", Codex);
        assert!(limit_hit(&lineage).is_none());
        lineage.starting(ClaudeCode, true);
        lineage.started("b3", "b1", ClaudeCode);
        let timeout = limit_hit(&lineage).unwrap().to_string();
        assert!(
            timeout.starts_with("`codex` has not ended within"),
            "{timeout}"
        );
        lineage.record.iterations = MAX_REVIEWS;
        let limit = limit_hit(&lineage);
        assert!(matches!(
            limit,
            Some(OrchestrateError::IterationLimit(MAX_REVIEWS))
        ));
    }
}
