//! A run that agents work in: what every workflow with agents has in common.
//!
//! Is the [`Host`] of the agents, and what their tools need of the run: files are written by the commit
//! workflow's verified apply, so that they can be undone; questions go to the user.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;

use chrono::SubsecRound as _;

use super::run::closing;
use super::run::tree::RunTree;
use super::run::{Names, Run};
use super::workplace::{Answers, Workplace};
use super::{Context, Failure, Outcome};
use crate::agent::conversation::Conversation;
use crate::agent::memory::Compressed;
use crate::agent::session::{Compression, Session, SessionState};
use crate::agent::tool::Effect;
use crate::agent::tools::notes::User;
use crate::agent::tools::{Files, WriteError};
use crate::agent::{AgentError, Host, Surroundings, Used};
use crate::edit::error::ApplyError;
use crate::edit::{Fault, ParsedReply, PathPolicy, VerifyError};
use crate::model::Reply;
use crate::model::prompt::Prompt;
use crate::model::tokens;
use crate::model::{Purpose, StepId};
use crate::record::{Action, AgentRecord};
use crate::sys::interrupt::{Interrupted, Signal};
use crate::ui::input::{Input, InputError, Typed};
use crate::workflow::error::{Error, Exit};

/// A run that agents work in.
pub struct AgentRun<'c, 'w> {
    context: &'c Context<'c>,
    place: &'c Workplace<'w>,
    answers: Answers<'c>,
    run: RefCell<Run<'c>>,
    tree: RefCell<RunTree<'c>>,
    /// The call that was made last.
    latest: RefCell<StepId>,
    /// How many commands have run since.
    commands: Cell<u32>,
}

impl<'c, 'w> AgentRun<'c, 'w> {
    /// Makes the run's folder, and notes what it is about: a request of the user's, or, without one, what
    /// was asked for before.
    pub fn start(
        context: &'c Context<'c>,
        names: Names,
        place: &'c Workplace<'w>,
        answers: Answers<'c>,
        request: Option<&str>,
    ) -> Result<Self, Error> {
        let mut run = Run::start(context, names)?;
        run.record.model = Some(place.models.first.spec.name.clone());
        let about = AgentRecord {
            session: place.session.borrow().id().to_string(),
            request: request.map(str::to_owned),
            interactive: answers.are_there(),
            answers: Vec::new(),
            limits: place.limits(),
        };
        if !context.project.ignores(run.log.name()) {
            run.log.keep_from_git()?;
        }
        run.log.agent(&about)?;
        run.record.agent = Some(about);
        let earlier = &place.session.borrow().conversation;
        if !earlier.history.is_empty() {
            run.log.conversation(earlier)?;
        }
        Ok(Self {
            tree: RefCell::new(RunTree::new(context, &run)),
            run: RefCell::new(run),
            context,
            place,
            answers,
            latest: RefCell::new(StepId::new(Purpose::STEP, 0)),
            commands: Cell::new(0),
        })
    }

    /// Whether the agent may ask questions.
    pub fn is_interactive(&self) -> bool {
        self.answers.are_there()
    }

    /// What the agents in it do not have by themselves.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            host: self,
            reporter: self.context.reporter,
            clock: self.context.clock,
            redactor: self.context.redactor,
        }
    }

    /// How many failures in a row end the work.
    pub fn tries(&self) -> u32 {
        if self.is_interactive() {
            self.place.settings.max_retries
        } else {
            self.unattended_tries()
        }
    }

    /// The same of an agent that nobody can help.
    pub fn unattended_tries(&self) -> u32 {
        self.place.settings.max_retries_automated
    }

    /// Where the output of the next command goes.
    pub fn command_output(&self) -> PathBuf {
        let nth = self.commands.get() + 1;
        self.commands.set(nth);
        self.run
            .borrow()
            .log
            .command_output(&self.latest.borrow(), nth)
    }

    /// Lets agents work on the session, and notes what has become of it.
    pub fn work(
        &self,
        work: impl FnOnce(&mut Conversation) -> Result<String, Error>,
    ) -> Result<String, Error> {
        self.note(SessionState::Active)?;
        let mut conversation = self.place.session.borrow().conversation.clone();
        let result = work(&mut conversation);
        let (state, result) = match result.map_err(|error| (error.exit(), error)) {
            Ok(words) => (SessionState::Complete, Ok(words)),
            Err((Exit::Interrupted(signal), _)) => {
                let interrupted = AgentError::Interrupted(Interrupted { signal });
                (SessionState::Interrupted, Err(interrupted.into()))
            }
            Err((_, error)) => (SessionState::Failed, Err(error)),
        };
        // Why the work has ended is the news.
        let noted = self.note(state);
        result.and_then(|words| noted.map(|()| words))
    }

    fn note(&self, state: SessionState) -> Result<(), Error> {
        let mut session = self.place.session.borrow_mut();
        session.state = state;
        self.save(&mut session)
    }

    fn save(&self, session: &mut Session) -> Result<(), Error> {
        let now = self.context.clock.now().to_utc();
        Ok(self.place.store.save(session, now)?)
    }

    /// Writes the record, and says how the run has ended.
    pub fn finish(self, result: Result<String, Error>) -> Result<Outcome, Failure> {
        let mut run = self.run.into_inner();
        let mut tree = self.tree.into_inner();
        tree.flushing(&mut run, || ());
        let files = tree.changed().map(|path| (path, None));
        closing::review(self.context, &mut run, &tree, files);
        let outcome = run.finish(result, |_| {});
        tree.end();
        outcome
    }
}

impl Host for AgentRun<'_, '_> {
    fn ask(&self, purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, Error> {
        let number = self.next_call()?;
        let step = StepId::new(purpose.clone(), number);
        self.latest.replace(step.clone());
        self.commands.set(0);
        let mut run = self.run.borrow_mut();
        let text = prompt.to_string();
        let before = run.record.attempts.len();
        let asked = run.ask(&self.place.models, &step, prompt, |_| ());
        // A call that was not made has none.
        let made = run.record.attempts.get(before);
        let tokens = match (made.and_then(|made| made.usage), &asked) {
            (Some(used), _) => used.input_tokens.saturating_add(used.answered()),
            // Not every server tells; this is what the spinner counts by.
            (None, Ok((reply, ()))) => {
                let counted = tokens::count_each(&[&text, &reply.text]);
                counted.into_iter().sum()
            }
            (None, Err(_)) => 0,
        };
        let mut session = self.place.session.borrow_mut();
        session.total_tokens = session.total_tokens.saturating_add(tokens);
        let (reply, ()) = asked.map_err(in_agents_words)?;
        Ok(reply)
    }

    fn used(&self, used: &Used<'_>) -> Result<(), Error> {
        let mut run = self.run.borrow_mut();
        if used.call.tool.effect == Effect::Runs && run.log.restore()? {
            if let Some(about) = &run.record.agent {
                run.log.agent(about)?;
            }
            run.warn(
                "a command has removed the run's folder: what was logged before is gone".to_owned(),
            );
        }
        let name = used.call.tool.name;
        run.log
            .tool(&self.latest.borrow(), name, &used.call.shown, used.text)?;
        run.note(|step| {
            step.actions.push(Action {
                tool: name.into(),
                failed: used.failed,
                ..Action::default()
            });
        });
        if used.call.tool.effect == Effect::Runs {
            // A command may have written to the files that the run has changed.
            self.tree.borrow_mut().flushing(&mut run, || ());
        }
        Ok(())
    }

    fn keep(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error> {
        // What an auditor says to itself is in the run's folder.
        if *purpose == Purpose::AUDIT {
            return Ok(());
        }
        let mut session = self.place.session.borrow_mut();
        session.conversation.clone_from(conversation);
        self.save(&mut session)
    }

    fn compressed(&self, purpose: &Purpose, compressed: Compressed) {
        if *purpose != Purpose::AUDIT {
            self.place.session.borrow_mut().compressed(Compression {
                timestamp: self.context.clock.now().to_utc().trunc_subsecs(3),
                tokens_before: compressed.tokens_before,
                tokens_after: compressed.tokens_after,
            });
        }
    }

    fn check(&self) -> Result<(), Error> {
        Ok(self.context.interrupt.check()?)
    }
}

impl Files for AgentRun<'_, '_> {
    fn write(&self, path: &str, content: String) -> Result<Vec<String>, WriteError> {
        let edits = self.verified(path, content)?;
        let mut run = self.run.borrow_mut();
        let applied = self.tree.borrow_mut().apply(&mut run, &edits);
        applied.map_err(|error| match error {
            Error::Apply(error @ ApplyError::RolledBack { .. }) => {
                WriteError::Refused(error.to_string())
            }
            error => WriteError::Fatal(error),
        })?;
        Ok(edits.warnings().to_vec())
    }
}

impl AgentRun<'_, '_> {
    /// The number of the next call, if there may be one.
    fn next_call(&self) -> Result<u16, AgentError> {
        let made = self.latest.borrow().number;
        let next = made
            .checked_add(1)
            .filter(|next| *next <= self.place.settings.max_loops);
        next.ok_or(AgentError::LoopLimit { loops: made.into() })
    }

    /// Holds a file against the policy that every reply is held against.
    fn verified(
        &self,
        path: &str,
        content: String,
    ) -> Result<crate::edit::VerifiedEdits, WriteError> {
        let load = PathPolicy::load(self.context.project.root(), self.context.program);
        let verified = load.and_then(|policy| policy.verify(ParsedReply::of_file(path, content)));
        verified.map_err(|error| match error {
            VerifyError::Rejected(rejection) => {
                let faults = rejection.faults.iter();
                let faults: Vec<String> = faults.map(Fault::unplaced).collect();
                WriteError::Refused(faults.join("; "))
            }
            error @ VerifyError::Io { .. } => WriteError::Refused(error.to_string()),
        })
    }
}

/// What an agent's call fails with, where the commit workflow has its own words for that.
fn in_agents_words(error: Error) -> Error {
    match error {
        Error::OverBudget(over) => Error::Agent(AgentError::OverBudget(over)),
        other => other,
    }
}

fn ask(user: &mut dyn Input) -> Result<Typed, InputError> {
    user.forget_typed_ahead();
    user.line("answer> ")
}

impl User for AgentRun<'_, '_> {
    fn ask(&self, _question: &str) -> Result<Option<String>, Error> {
        let answer = match &self.answers {
            Answers::Nowhere => None,
            Answers::Recorded(answers) => answers.borrow_mut().pop_front().flatten(),
            Answers::Typed(input) => match ask(&mut **input.borrow_mut())? {
                Typed::Line(answer) => Some(answer),
                Typed::End => None,
                Typed::Interrupted => {
                    let signal = Signal::Int;
                    return Err(Interrupted { signal }.into());
                }
            },
        };
        let run = &mut *self.run.borrow_mut();
        if let Some(agent) = &mut run.record.agent {
            let answer = answer.as_deref();
            let answer = answer.map(|answer| self.context.redactor.text(answer).into_owned());
            agent.answers.push(answer);
            run.log.agent(agent)?;
        }
        Ok(answer)
    }
}
