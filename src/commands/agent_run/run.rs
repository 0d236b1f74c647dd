//! A run in which agents work, shared by all agents.
//!
//! Implements [`Host`] for the agents, and provides what their tools need from the run: `worktree` writes files, if the
//! run may change any, and questions go to the user. A run that may not change files touches nothing in the project but
//! its own folder in `logs`.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use serde_json::Value;

use super::worktree::Worktree;
use crate::agent::conversation::Conversation;
use crate::agent::session::SessionState;
use crate::agent::tagged::{Tag, tagged};
use crate::agent::tool::{Effect, ToolError, ToolOutput};
use crate::agent::tools::notes::User;
use crate::agent::{AgentError, Compressed, Env, Host, Note, ToolUse};
use crate::commands::answers::AnswerSource;
use crate::commands::error::CommandError;
use crate::commands::stored_session::SessionLog;
use crate::commands::talk::question::{AT_WORK, Help, asked, later, line, permission, show};
use crate::commands::talk::slash::Slash;
use crate::edit::Allowances;
use crate::model::message::Call;
use crate::model::prompt::Prompt;
use crate::model::{Purpose, Reply, StepId, tokens};
use crate::project::conventions::AGENTS_FILE;
use crate::record::event::Event;
use crate::record::mode::Mode;
use crate::record::orchestration::OrchestrationSettings;
use crate::record::question::{Answer, Question};
use crate::record::result::{AgentRecord, LimitsRecord};
use crate::record::run_files::{AGENT, CONVERSATION};
use crate::record::seconds::Seconds;
use crate::record::step::{Action, Step, input_text};
use crate::record::tool::Verb;
use crate::run::active::Run;
use crate::run::builds::{BuildOptions, check_script};
use crate::run::context::Context;
use crate::run::outcome::{Advice, Failure, Outcome};
use crate::run::pin::FilesThen;
use crate::run::selection::Models;
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::interrupt::Interrupted;

/// Number of a reply's calls that are written to `steps.jsonl` immediately; the rest follow when the step is over.
const LOGGED_AT_ONCE: usize = 8;

/// Introduction to the project's conventions.
const CONVENTIONS: &str = include_str!("../../../prompts/conventions.txt").trim_ascii_end();

/// The profile-specific parts of a run.
pub struct AgentSetup<'s> {
    /// The command's name, in `result.json` and in the folder's name.
    pub name: &'static str,
    /// Returns the hint for an error that ends the run.
    pub advice: Advice,
    /// The models that the agents ask.
    pub models: &'s Models<'s>,
    /// Limits of the run.
    pub limits: LimitsRecord,
    /// Stores the conversation; `None` to discard it after the run.
    pub session: Option<&'s dyn SessionLog>,
    /// Source of answers to the agents' questions.
    pub answers: AnswerSource<'s>,
    /// Warnings from before the run.
    pub warnings: Vec<String>,
    /// Content of the project's `AGENTS.md`.
    pub conventions: Option<String>,
    /// `true` to end the work when the user refuses permission; otherwise, the agent is told and continues.
    pub stops_at_no: bool,
    /// The losses allowed in changes to the project's files, whose lock the agents hold; `None` if they may not change
    /// any.
    pub changes: Option<Allowances>,
    /// Settings of an orchestration.
    pub orchestration: Option<OrchestrationSettings>,
    /// The agent's mode; `None` for agents without modes.
    pub mode: Option<Mode>,
    /// The build that proves finished work; in a conversation, only if files have changed.
    pub proof: Option<BuildOptions<'s>>,
}

/// A run in which agents work.
pub struct AgentRun<'c> {
    pub(super) context: &'c Context<'c>,
    pub(super) setup: AgentSetup<'c>,
    pub(super) run: RefCell<Run<'c>>,
    /// The project's files; `None` if the agents have no access to them.
    pub(super) worktree: Option<Worktree<'c>>,
    /// The project's files before the run, if a build must prove it.
    pub(super) files: Option<FilesThen>,
    /// The most recent step.
    pub(super) latest: RefCell<StepId>,
    /// Number of commands run since the last call.
    commands: Cell<u32>,
}

impl<'c> AgentRun<'c> {
    /// Creates the run's folder and records the task: the user's request or, without one, the previous requests.
    pub fn start(
        context: &'c Context<'c>,
        setup: AgentSetup<'c>,
        request: Option<&str>,
    ) -> Result<Self, Error> {
        // In a conversation, `build.sh` can still be fixed before there is work to prove.
        if setup.proof.is_some() && !setup.answers.can_answer() {
            check_script(context)?;
        }
        let mut run = Run::start(context, setup.name)?;
        run.advice = setup.advice;
        run.note_models(setup.models);
        run.record.warnings.clone_from(&setup.warnings);
        if !context.project.ignores(run.log.name()) {
            run.log.keep_from_git()?;
        }
        let session = setup.session;
        if let Some(session) = session.filter(|_| request.is_some()) {
            session.settle();
        }
        let about = AgentRecord {
            session: session.map(SessionLog::id),
            request: request.map(str::to_owned),
            interactive: setup.answers.can_answer(),
            answers: Vec::new(),
            questions: Vec::new(),
            answer: None,
            limits: setup.limits,
            conventions: setup.conventions.clone(),
            from: session.map_or(0, SessionLog::from),
            orchestration: setup.orchestration.clone(),
            mode: setup.mode,
        };
        run.log.json(AGENT, &about)?;
        run.record.agent = Some(about);
        let conversation = session.map(SessionLog::conversation);
        if let Some(said) = conversation.filter(|said| !said.history.is_empty()) {
            run.log.json(CONVERSATION, &said)?;
        }
        Ok(Self {
            worktree: setup.changes.map(|_| Worktree::new(context, &run)),
            run: RefCell::new(run),
            files: setup.proof.and_then(|_| FilesThen::now(context)),
            context,
            setup,
            latest: RefCell::new(StepId::new(Purpose::STEP, 0)),
            commands: Cell::new(0),
        })
    }

    /// Returns the project's files.
    ///
    /// # Errors
    /// Fails if the agents have no access to them.
    pub(super) fn worktree(&self) -> Result<&Worktree<'c>, Error> {
        Ok(self.worktree.as_ref().ok_or(CommandError::NoWorktree)?)
    }

    /// Returns `true` if the agent may ask questions.
    pub fn is_interactive(&self) -> bool {
        self.setup.answers.can_answer()
    }

    /// Appends the project's conventions for agents, if any, to these instructions.
    pub fn with_conventions(&self, instructions: &str) -> String {
        let Some(conventions) = &self.setup.conventions else {
            return instructions.to_owned();
        };
        let path = [("path", AGENTS_FILE)];
        let conventions = tagged(Tag::ProjectConventions, &path, conventions);
        format!("{instructions}\n{CONVENTIONS}\n\n{conventions}\n")
    }

    /// Returns the engine's view of the run.
    pub fn env(&self) -> Env<'_> {
        Env {
            host: self,
            reporter: self.context.reporter,
            clock: self.context.clock,
            redactor: self.context.redactor,
            censor: None,
        }
    }

    /// Returns the number of consecutive failures that ends the work.
    pub fn tries(&self) -> u32 {
        if self.is_interactive() {
            self.setup.limits.max_retries
        } else {
            self.unattended_tries()
        }
    }

    /// Returns the number of consecutive failures that ends the work of an agent that cannot ask
    /// the user.
    pub fn unattended_tries(&self) -> u32 {
        self.setup.limits.max_retries_automated
    }

    /// Returns the path for the output of the next command.
    pub fn command_output(&self) -> PathBuf {
        let nth = self.commands.get() + 1;
        self.commands.set(nth);
        let run = self.run.borrow();
        let latest = || self.latest.borrow().clone();
        let step = run.current().map_or_else(latest, Step::id);
        run.log.command_output(&step, nth)
    }

    /// Takes a request out of the session, which is again as it was `before`.
    pub fn take_out(&self, conversation: &mut Conversation, before: Conversation) {
        let is_unapplied = conversation.is_unapplied || before.is_unapplied;
        *conversation = Conversation {
            is_unapplied,
            ..before
        };
        if let Err(problem) = self.save(&Purpose::STEP, conversation) {
            self.warn(problem.to_string());
        }
    }

    /// Runs `work` on the session's conversation, or on a new one, and records how it ends.
    pub fn work(
        &self,
        work: impl FnOnce(&mut Conversation) -> Result<String, AgentError>,
    ) -> Result<String, Error> {
        self.note_state(SessionState::Active)?;
        let conversation = self.setup.session.map(SessionLog::conversation);
        let result = work(&mut conversation.unwrap_or_default()).map_err(|error| match error {
            AgentError::TooLong { .. } if self.run.borrow().record.steps.is_empty() => {
                Error::from(error.at_once())
            }
            error => error.into(),
        });
        if let (Some(agent), Ok(words)) = (&mut self.run.borrow_mut().record.agent, &result) {
            agent.answer = Some(self.context.redactor.text(words).into_owned());
        }
        let state = result
            .as_ref()
            .err()
            .map_or(SessionState::Complete, state_after);
        let result = result.map_err(|error| match error.exit() {
            Exit::Interrupted(signal) if !AgentError::has_left(&error) => {
                AgentError::Interrupted(Interrupted { signal }).into()
            }
            _ => error,
        });
        // The reason why the work ended takes precedence over a failure to record it.
        let noted = self.note_state(state);
        result.and_then(|words| noted.map(|()| words))
    }

    fn note_state(&self, state: SessionState) -> Result<(), Error> {
        let session = self.setup.session;
        session.map_or(Ok(()), |session| session.note_state(state))
    }

    /// Shows the user a warning.
    pub fn warn(&self, text: String) {
        self.run.borrow_mut().warn(text);
    }

    /// Returns the files that the agents have changed.
    pub fn changed(&self) -> Vec<String> {
        let tree = self.worktree.as_ref().map(|tree| tree.tree.borrow());
        let changed = tree.iter().flat_map(|tree| tree.changed());
        changed.map(str::to_owned).collect()
    }

    /// Calls `with` with the run, to add to its record or its folder.
    pub fn with<T>(&self, with: impl FnOnce(&mut Run<'c>) -> T) -> T {
        with(&mut self.run.borrow_mut())
    }

    /// Uses a tool in a step of the run itself, which no model requested. The step takes the next number, but makes no
    /// call.
    ///
    /// # Errors
    /// Fails if the tool's failure ends the work, or the step cannot be logged.
    pub fn own_step(
        &self,
        purpose: Purpose,
        (tool, input): (&str, Value),
        use_tool: impl FnOnce() -> Result<ToolOutput, ToolError>,
    ) -> Result<ToolUse, AgentError> {
        self.begin_own_step(purpose)?;
        let call = Call {
            name: tool.to_owned(),
            input: self.context.redactor.json(&input),
            ..Call::default()
        };
        self.env()
            .carry_out(&call, None, (None, Verb::Use), |_| use_tool())
    }

    /// Has another agent work, and makes the caller's step the current one again.
    ///
    /// # Errors
    /// Fails if the work fails, or a step cannot be logged.
    pub fn delegate(
        &self,
        work: impl FnOnce() -> Result<String, AgentError>,
    ) -> Result<String, AgentError> {
        let caller = self.run.borrow().current().cloned();
        let commands = self.commands.get();
        let done = work();
        if let Some(caller) = caller {
            let returned = self.run.borrow_mut().return_to(caller);
            returned.map_err(Error::from)?;
            self.commands.set(commands);
        }
        done
    }

    /// Begins a step of the run itself.
    pub(super) fn begin_own_step(&self, purpose: Purpose) -> Result<(), Error> {
        let number = self.latest.borrow().number.saturating_add(1);
        let step = StepId::new(purpose, number);
        self.latest.replace(step.clone());
        Ok(self.run.borrow_mut().begin_step(Step::own(step))?)
    }

    /// Asks the user for permission.
    ///
    /// # Errors
    /// Fails if the work must end, for example because the user's refusal ends it.
    pub fn asks(&self, question: &str) -> Result<bool, AgentError> {
        let question = Question::from(question.to_owned());
        Ok(Host::confirm(self, &question, None)? == Answer::Yes)
    }

    /// Writes the record, and returns the outcome of the run.
    pub fn finish(self, result: Result<String, Error>) -> Result<Outcome, Failure> {
        let (mut result, unproven) = match result.is_ok().then(|| self.prove()).transpose() {
            Ok(_) => (result, None),
            Err(error) => {
                if let Err(unnoted) = self.note_state(state_after(&error)) {
                    self.warn(unnoted.to_string());
                }
                // The answer is worth reading even if the build fails.
                (Err(error), result.ok())
            }
        };
        let mut run = self.run.into_inner();
        if let Some(worktree) = &self.worktree {
            result = worktree.settle(&mut run, result);
            let is_applied = result.is_ok() && self.context.scratch.is_some();
            if let Some(session) = self.setup.session.filter(|_| is_applied) {
                let tree = worktree.tree.borrow();
                let changed: Vec<_> = tree.changed().map(str::to_owned).collect();
                drop(tree);
                result = session.applied(&changed).and(result);
            }
            worktree.review(self.context, &mut run);
        }
        let outcome = run.finish(result, |_| {});
        if let Some(worktree) = self.worktree {
            worktree.tree.into_inner().end();
        }
        outcome.map_err(|failure| failure.with_text(unproven))
    }

    /// Returns the number of the next call, or an error if the limit is reached.
    fn next_call(&self) -> Result<u16, AgentError> {
        let made = self.latest.borrow().number;
        let is_allowed = |next: &u16| *next <= self.setup.limits.max_loops;
        let next = made.checked_add(1).filter(is_allowed);
        next.ok_or(AgentError::LoopLimit(made.into()))
    }

    /// Calls the model and records the usage.
    fn call(&self, purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, Error> {
        let step = StepId::new(purpose.clone(), self.next_call()?);
        self.latest.replace(step.clone());
        self.commands.set(0);
        let mut run = self.run.borrow_mut();
        let text = prompt.to_string();
        let before = run.record.steps.len();
        let asked = run.ask(self.setup.models, &step, prompt, |_| ());
        // A call that was not made has no step.
        let made = run.record.steps.get(before);
        let tokens = match (made.and_then(|made| made.usage), &asked) {
            (Some(used), _) => used.input_tokens.saturating_add(used.answered()),
            // Not every server reports usage; the spinner uses the same estimate.
            (None, Ok((reply, ()))) => tokens::count(&text) + tokens::count(&reply.text),
            (None, Err(_)) => 0,
        };
        if let Some(session) = self.setup.session {
            if let Some(usage) = made.and_then(|made| made.usage) {
                session.answered(purpose, &usage);
            }
            session.count(purpose, tokens);
        }
        let mut reply = asked.map(|(reply, ())| reply)?;
        if self.worktree.is_none() {
            // A call may need the real keys only when it writes files.
            let redacted = |call: &Call| call.redacted(self.context.redactor);
            reply.calls = reply.calls.iter().map(redacted).collect();
        }
        Ok(reply)
    }

    /// Records the result of a tool use.
    fn acted(&self, mut action: Action, effect: Option<Effect>) -> Result<(), Error> {
        if let Some(session) = self.setup.session {
            session.acted(&action, effect);
            if effect == Some(Effect::Writes) {
                session.wrote(&self.changed());
            }
        }
        let worktree = self.worktree.as_ref();
        action.diff = worktree.and_then(|worktree| worktree.diff.take());
        let mut run = self.run.borrow_mut();
        let took = action.seconds.unwrap_or_default().0;
        action.at = Some(Seconds(run.elapsed().0.saturating_sub(took)));
        let runs = effect == Some(Effect::Runs);
        if runs && run.log.restore()? {
            if let Some(about) = &run.record.agent {
                run.log.json(AGENT, about)?;
            }
            run.warn(
                "a command has removed the run's folder: what was logged before is gone".to_owned(),
            );
        }
        let input = action.input.as_ref().map(input_text).unwrap_or_default();
        let result = action.result.as_deref().unwrap_or_default();
        if let Some(step) = run.current() {
            run.log.tool(&step.id(), &action.tool, &input, result)?;
        }
        let mut calls = 0;
        run.note(|step| {
            step.actions.push(action);
            calls = step.actions.len();
        });
        // Each write repeats the whole step, which would be too slow for very many calls.
        if calls <= LOGGED_AT_ONCE {
            run.log_step()?;
        }
        if let Some(worktree) = worktree.filter(|_| runs) {
            worktree.tree.borrow_mut().observe(&mut run);
        }
        Ok(())
    }
}

impl Host for AgentRun<'_> {
    fn ask(&self, purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, AgentError> {
        Ok(self.call(purpose, prompt)?)
    }

    fn note(&self, note: Note<'_>) -> Result<(), AgentError> {
        let run = || self.run.borrow_mut();
        match note {
            Note::Thoughts(text) => run().note(|step| step.thoughts = Some(text.to_owned())),
            Note::Answered(words) => run().note(|step| step.answer = Some(words.to_owned())),
            Note::Judged(passed) => run().note(|step| step.passed = Some(passed)),
            Note::Acted(action, effect) => return Ok(self.acted(*action, effect)?),
        }
        run().log_step().map_err(|error| Error::from(error).into())
    }

    fn save(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), AgentError> {
        let session = self.setup.session;
        Ok(session.map_or(Ok(()), |session| session.save(purpose, conversation))?)
    }

    fn compressed(&self, purpose: &Purpose, compressed: Compressed) {
        if let Some(session) = self.setup.session {
            session.compressed(purpose, compressed);
        }
    }

    fn confirm(&self, question: &Question, preview: Option<&str>) -> Result<Answer, AgentError> {
        // A user who has stopped the agent is not asked again, and a late answer is ignored.
        self.check()?;
        self.prompted(&question.sentence);
        let answer = match &self.setup.answers {
            AnswerSource::Permissions(ask) => ask(question, preview),
            AnswerSource::Typed(user) => {
                permission(self.context, user, question, preview).map(|verdict| verdict.answer)
            }
            AnswerSource::Recorded(_) | AnswerSource::Nowhere => {
                show(self.context, question, preview);
                self.context.notice(question.sentence.clone());
                let written = self.typed(&question.sentence, "")?;
                Ok(question.verdict(&written.unwrap_or_default()).answer)
            }
        };
        let sentence = &question.sentence;
        if answer.as_ref().is_err_and(AgentError::has_left) {
            self.heard(sentence, sentence, Some("/exit"))?;
        }
        let answer = answer?;
        self.check()?;
        self.heard(sentence, sentence, Some(&answer.written()))?;
        if answer == Answer::No && self.setup.stops_at_no {
            return Err(AgentError::Rejected(sentence.clone()));
        }
        Ok(answer)
    }

    fn changes(&self) -> String {
        let worktree = self.worktree.as_ref();
        worktree.map(Worktree::changes).unwrap_or_default()
    }

    fn is_in_scratch(&self) -> bool {
        self.context.scratch.is_some()
    }

    fn check(&self) -> Result<(), AgentError> {
        Ok(self.context.interrupt.check()?)
    }
}

impl User for AgentRun<'_> {
    fn ask(&self, question: &str) -> Result<Option<String>, AgentError> {
        Ok(self.answered((question, "answer> "), AT_WORK, later)?)
    }
}

impl AgentRun<'_> {
    /// Returns the user's answer to this prompt, and records it.
    pub fn answer(&self, prompt: &str) -> Result<Option<String>, Error> {
        self.answered((prompt, prompt), AT_WORK, later)
    }

    /// Returns the user's answer to a question that is shown with a prompt, and records both; `reply` answers commands
    /// other than `/exit`, which ends the work, and `/help`.
    ///
    /// # Errors
    /// Fails if the user leaves or interrupts the prompt, or no input can be read.
    pub fn answered(
        &self,
        (question, prompt): (&str, &str),
        help: Help<'_>,
        reply: impl Fn(Slash) -> String,
    ) -> Result<Option<String>, Error> {
        let execute = |command| match command {
            Slash::Exit => {
                self.heard(question, prompt, Some("/exit"))?;
                Err(Error::from(AgentError::Left))
            }
            command => Ok(reply(command)),
        };
        self.prompted(prompt);
        let ask = || self.typed(question, prompt);
        let answer = asked(self.context, help, ask, execute)?;
        self.heard(question, prompt, answer.as_deref())?;
        Ok(answer)
    }

    /// Returns the text that the user types at a prompt; `None` if there is no user, or they type nothing.
    fn typed(&self, asked: &str, prompt: &str) -> Result<Option<String>, Error> {
        match &self.setup.answers {
            AnswerSource::Nowhere | AnswerSource::Permissions(_) => Ok(None),
            AnswerSource::Recorded(answers) => {
                let asked = self.context.redactor.text(asked);
                Ok(answers.borrow_mut().to(&asked))
            }
            AnswerSource::Typed(input) => line(self.context, input, prompt),
        }
    }

    /// Reports that the user is asked at this prompt.
    fn prompted(&self, prompt: &str) {
        let prompted = Event::Prompted(prompt.to_owned());
        self.context.reporter.event(&prompted);
    }

    /// Records a question and the answer that the user gave at `prompt`.
    fn heard(&self, question: &str, prompt: &str, answer: Option<&str>) -> Result<(), Error> {
        self.context.reporter.event(&Event::Heard {
            question: prompt.to_owned(),
            answer: answer.map(str::to_owned),
        });
        let run = &mut *self.run.borrow_mut();
        if let Some(agent) = &mut run.record.agent {
            let redacted = |text: &str| self.context.redactor.text(text).into_owned();
            agent.questions.push(redacted(question));
            agent.answers.push(answer.map(redacted));
            run.log.json(AGENT, agent)?;
        }
        Ok(())
    }
}

/// Returns the state of a session whose work has ended with this error.
fn state_after(error: &Error) -> SessionState {
    let is_interrupted = matches!(error.exit(), Exit::Interrupted(_));
    if is_interrupted || AgentError::has_left(error) {
        SessionState::Interrupted
    } else {
        SessionState::Failed
    }
}

#[cfg(test)]
mod tests;
