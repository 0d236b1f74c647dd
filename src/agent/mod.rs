//! The engine of every agent: a loop that asks a model, does what it asks for, and tells it what came of it.
//!
//! | part | what it is for |
//! |---|---|
//! | [`protocol`] | how a reply names tools, and how they are described to the model |
//! | [`tool`], [`tools`] | what a tool is, and one implementation of each |
//! | [`permissions`], [`restricted`] | which calls may be carried out, and which commands of an auditor |
//! | [`memory`] | what becomes of a conversation that grows too long |
//! | [`conversation`], [`tagged`] | what was said so far, and how it is told from the program's own words |
//! | [`audit`] | an agent that judges another's work |
//! | [`session`], [`settings`], [`home`] | conversations that outlive the process, and what the user has set |
//!
//! A workflow is a profile over these: it chooses the parts, and has none of its own. Stands above the
//! stages and below the workflows.

pub mod audit;
pub mod conversation;
pub mod home;
pub mod memory;
pub mod permissions;
pub mod protocol;
pub mod restricted;
pub mod session;
pub mod settings;
pub mod tagged;
pub mod tool;
pub mod tools;

use crate::model::estimate::OverBudget;
use crate::model::message::Message;
use crate::model::prompt::Prompt;
use crate::model::{ModelError, Purpose, Reply};
use crate::secret::Redactor;
use crate::sys::environment::Clock;
use crate::sys::excerpt::text::bounded;
use crate::sys::interrupt::Interrupted;
use crate::sys::numbers::counted;
use crate::ui::{Event, Reporter};
use crate::workflow::error::Error;

use self::conversation::{Conversation, Remark};
use self::memory::{Compressed, Memory};
use self::permissions::Permissions;
use self::protocol::{Decision, Fault, Protocol, Turn};
use self::tool::{Effect, ToolCall, ToolError, ToolOutput, ToolSpec, Toolbox};
use self::tools::OUTPUT_LIMIT;

/// Why an agent did not get to the end of its work.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// Its replies were not understood, or its tools failed, again and again; at last a reply.
    #[error("nothing went well {} in a row; the last reply was not understood: {fault}", counted((*.tries).into(), "time"))]
    NotUnderstood {
        /// How often.
        tries: u32,
        /// What is wrong with the last one, and where.
        fault: Fault,
    },
    /// Its replies were not understood, or its tools failed, again and again; at last a tool.
    #[error("nothing went well {} in a row; at last `{tool}` failed: {problem}", counted((*.tries).into(), "time"))]
    ToolsFailed {
        /// How often.
        tries: u32,
        /// The tool that failed last.
        tool: &'static str,
        /// What the model was told.
        problem: String,
    },
    /// The audit has not passed the work, again and again.
    #[error("the audit has failed {}; the last one says: {feedback}", counted((*.audits).into(), "time"))]
    AuditFailed {
        /// How often.
        audits: u32,
        /// What it says.
        feedback: String,
    },
    /// The model was asked as often as it may be.
    #[error("the loop limit is reached: {} to the model", counted((*.loops).into(), "call"))]
    LoopLimit {
        /// How often.
        loops: u32,
    },
    /// A signal came.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The next call may cost more than is left.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// The conversation is too long, and a summary of it is not shorter.
    #[error(
        "the conversation has {before} tokens, of {limit} that it may have, and the summary of it would \
         make it {after}"
    )]
    NotCompressed {
        /// Its tokens.
        before: u64,
        /// The tokens it would have.
        after: u64,
        /// The tokens it may have.
        limit: u64,
    },
}

impl AgentError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotUnderstood { .. } => {
                "another model may keep to the form better; the replies are in the run's folder"
            }
            Self::ToolsFailed { .. } => {
                "read the last steps in the run's folder; `--resume` goes on with the session"
            }
            Self::AuditFailed { .. } => {
                "read the audit's findings; `--resume` with a further request goes on with the session"
            }
            Self::LoopLimit { .. } => {
                "`--resume` goes on with the session; `maxLoops` in the configuration sets the limit"
            }
            Self::OverBudget(_) => {
                "give it more with `--max-cost`; `--resume` goes on with the session"
            }
            Self::Interrupted(_) => "`--resume` goes on with the session",
            Self::NotCompressed { .. } => {
                "the session is kept as it is: give `maxContextTokens` in the configuration a larger \
                 value, if the model takes that, or begin a new session"
            }
        }
    }
}

/// What an agent needs of the run that it works in.
pub trait Host {
    /// Asks the model, and logs what is asked and answered.
    ///
    /// # Errors
    /// When there is no whole reply, or no further call may be made.
    fn ask(&self, purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, Error>;

    /// Notes what came of a tool that the latest reply has named.
    ///
    /// # Errors
    /// When it cannot be logged.
    fn used(&self, use_: &Used<'_>) -> Result<(), Error>;

    /// Keeps the conversation of an agent with this purpose, as it is after a step.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn keep(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error>;

    /// Notes that the conversation of an agent with this purpose was compressed.
    fn compressed(&self, purpose: &Purpose, compressed: Compressed);

    /// A signal may have come.
    ///
    /// # Errors
    /// When one has.
    fn check(&self) -> Result<(), Error>;
}

/// What came of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Used<'u> {
    /// The call.
    pub call: &'u ToolCall,
    /// What the model is told.
    pub text: &'u str,
    /// Whether the tool failed.
    pub failed: bool,
}

impl Used<'_> {
    /// What the conversation has of it.
    fn remark(&self) -> Remark {
        let mark = if self.failed { "ERROR: " } else { "" };
        Remark::of_tool(self.call.tool.name, format!("{mark}{}", self.text))
    }
}

/// What an agent does not have by itself.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The run.
    pub host: &'a dyn Host,
    /// Hears what happens.
    pub reporter: &'a dyn Reporter,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Knows the keys.
    pub redactor: &'a Redactor,
}

/// An agent: the parts that a workflow has chosen.
pub struct Agent<'a> {
    /// What it asks the model for.
    pub purpose: Purpose,
    /// Who it is and how it works, for the model; the protocol adds how to reply.
    pub instructions: &'a str,
    /// How it replies.
    pub protocol: &'a dyn Protocol,
    /// What it can use.
    pub tools: Toolbox<'a>,
    /// What of that it may.
    pub permissions: &'a dyn Permissions,
    /// What becomes of a conversation that grows too long.
    pub memory: &'a dyn Memory,
    /// Whether its last words are what they should be; else what is wrong with them.
    pub ending: &'a dyn Fn(&str) -> Result<(), String>,
    /// How many failures in a row end the work; 0 counts as 1.
    pub tries: u32,
    /// The rest.
    pub surroundings: Surroundings<'a>,
}

/// How far an agent has come within a piece of work.
#[derive(Default)]
struct Progress {
    /// Failures since the last thing that went well.
    failures: u32,
    /// What was sent last, and is in the run log.
    sent: Vec<Message<'static>>,
}

impl Progress {
    /// How many of these messages are in the run log already.
    fn known(&self, messages: &[Message<'_>]) -> usize {
        let pairs = self.sent.iter().zip(messages);
        pairs.take_while(|(sent, message)| sent == message).count()
    }
}

/// How an agent has come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its last words.
    pub words: String,
    /// The tool by which it has said them; `None`: in the place of a tool.
    pub by: Option<&'static ToolSpec>,
}

impl Ended {
    /// What others make of it, for the agent: the result of its tool, or a note where there was none.
    fn remark(&self, told: String) -> Remark {
        match self.by {
            Some(tool) => Remark::of_tool(tool.name, told),
            None => Remark::note(told),
        }
    }
}

/// What a step has led to.
enum Next {
    /// There is more to do.
    Step,
    /// The agent says that it is done.
    End(Ended),
}

impl Agent<'_> {
    /// Takes up a conversation, with a further request where there is one, and works until the agent says that
    /// it is done.
    ///
    /// The session may have been cut short while the agent used tools. What changes nothing is done again,
    /// unless there is something else to do now; of the rest the agent is told.
    ///
    /// # Errors
    /// When it does not get there.
    pub fn work_on(
        &self,
        conversation: &mut Conversation,
        request: Option<&str>,
    ) -> Result<Ended, Error> {
        let system = format!(
            "{}\n{}",
            self.instructions,
            self.protocol.instructions(&self.tools)
        );
        let mut progress = Progress::default();
        let mut next = self.take_up(conversation, request, &mut progress)?;
        self.keep(conversation)?;
        loop {
            if let Next::End(ended) = next {
                return Ok(ended);
            }
            self.surroundings.host.check()?;
            if let Some(compressed) =
                self.memory
                    .make_room(self.surroundings.host, &system, conversation)?
            {
                self.tell_compressed(compressed, conversation)?;
            }
            let stepped = self.step(&system, conversation, &mut progress);
            // Whatever comes of it, what was said is kept.
            self.keep(conversation)?;
            next = stepped?;
        }
    }

    fn step(
        &self,
        system: &str,
        conversation: &mut Conversation,
        progress: &mut Progress,
    ) -> Result<Next, Error> {
        let messages = conversation.messages();
        let known = progress.known(&messages);
        progress.sent.clone_from(&messages);
        let prompt = Prompt::of_agent(system, messages, known);
        let reply = match self.surroundings.host.ask(&self.purpose, prompt) {
            Err(Error::Model(error)) if error.is_no_whole_reply() => {
                return self.ask_again(error, conversation, progress);
            }
            asked => asked?,
        };
        match self.protocol.read(&reply, &self.tools) {
            Ok(turn) => self.take(turn, conversation, progress),
            Err(fault) => {
                let around = fault.line.map(|line| around(&reply.text, line));
                let around = around.unwrap_or_default();
                self.return_fault(fault, &around, conversation, progress)
            }
        }
    }

    /// Does what the agent has decided.
    fn take(
        &self,
        turn: Turn,
        conversation: &mut Conversation,
        progress: &mut Progress,
    ) -> Result<Next, Error> {
        conversation.say(Remark::of_agent(turn.remembered));
        if !turn.thoughts.trim().is_empty() {
            self.tell(Event::Thoughts(turn.thoughts.trim()));
        }
        if let Some(tasks) = turn.tasks {
            self.tell(Event::Tasks(&tasks));
            conversation.tasks = tasks;
        }
        let calls = match turn.decision {
            Decision::Answer(words) => {
                let ended = Ended { words, by: None };
                return self.end(ended, conversation, progress);
            }
            decision @ Decision::Use(..) => decision.calls(),
        };
        let mut next = Next::Step;
        for call in &calls {
            // A kill during the call must not lose that it was made.
            self.keep(conversation)?;
            next = self.call(call, conversation, progress)?;
            if matches!(next, Next::End(_)) {
                break;
            }
        }
        if let Some(note) = turn.note {
            conversation.say(Remark::note(note));
        }
        Ok(next)
    }

    /// Uses a tool, and tells the model what came of it.
    fn call(
        &self,
        call: &ToolCall,
        conversation: &mut Conversation,
        progress: &mut Progress,
    ) -> Result<Next, Error> {
        self.tell(Event::Tool {
            name: call.tool.name,
            input: &call.shown,
            asks: call.tool.effect == Effect::Asks,
        });
        let before = self.surroundings.clock.elapsed();
        let (output, failed) = match self.carry_out(call) {
            Ok(output) => (output, false),
            Err(ToolError::Failed(problem)) => (ToolOutput::said(problem), true),
            Err(ToolError::Fatal(error)) => return Err(error),
        };
        let took = self.surroundings.clock.elapsed().saturating_sub(before);
        // In this order: a cut through a key would leave a part of it.
        let text = bounded(&self.surroundings.redactor.text(&output.text), OUTPUT_LIMIT);
        let used = Used {
            call,
            text: &text,
            failed,
        };
        self.surroundings.host.used(&used)?;
        self.tell(Event::ToolResult {
            name: call.tool.name,
            text: &text,
            failed,
            is_end: output.is_end,
            took,
        });
        if output.is_end {
            let by = Some(call.tool);
            return self.end(Ended { words: text, by }, conversation, progress);
        }
        conversation.say(used.remark());
        if failed {
            return self.after_failure(&used, progress);
        }
        progress.failures = 0;
        Ok(Next::Step)
    }

    fn after_failure(&self, used: &Used<'_>, progress: &mut Progress) -> Result<Next, Error> {
        progress.failures += 1;
        if progress.failures < self.tries {
            return Ok(Next::Step);
        }
        let error = AgentError::ToolsFailed {
            tries: progress.failures,
            tool: used.call.tool.name,
            problem: used.text.to_owned(),
        };
        Err(error.into())
    }

    fn carry_out(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        self.permissions.check(call)?;
        // The protocol has taken the call from this toolbox.
        let tool = self.tools.named(call.tool.name);
        tool.map_or_else(
            || {
                Err(ToolError::Failed(format!(
                    "there is no tool `{}`",
                    call.tool.name
                )))
            },
            |tool| tool.run(&call.arguments),
        )
    }

    /// The agent's last words, unless they are not what they should be.
    fn end(
        &self,
        ended: Ended,
        conversation: &mut Conversation,
        progress: &mut Progress,
    ) -> Result<Next, Error> {
        match (self.ending)(&ended.words) {
            Ok(()) => Ok(Next::End(ended)),
            Err(problem) => self.return_fault(Fault::of_all(problem), "", conversation, progress),
        }
    }

    /// Tells the model that its reply has not come whole, and asks again.
    fn ask_again(
        &self,
        error: ModelError,
        conversation: &mut Conversation,
        progress: &mut Progress,
    ) -> Result<Next, Error> {
        if progress.failures + 1 >= self.tries {
            return Err(error.into());
        }
        self.return_fault(Fault::of_all(error.to_string()), "", conversation, progress)
    }

    /// Tells the model what is wrong with its reply.
    fn return_fault(
        &self,
        fault: Fault,
        around: &str,
        conversation: &mut Conversation,
        progress: &mut Progress,
    ) -> Result<Next, Error> {
        progress.failures += 1;
        let told = self
            .surroundings
            .redactor
            .text(&fault.to_string())
            .into_owned();
        self.tell(Event::Malformed {
            fault: &told,
            failures: progress.failures,
            allowed: self.tries,
        });
        if progress.failures >= self.tries {
            let tries = progress.failures;
            return Err(AgentError::NotUnderstood { tries, fault }.into());
        }
        conversation.say(Remark::of_fault(format!(
            "Your last reply was not understood: {told}\n{around}Nothing of it was done. Reply again, in the form \
             that was described."
        )));
        Ok(Next::Step)
    }

    fn tell_compressed(
        &self,
        compressed: Compressed,
        conversation: &Conversation,
    ) -> Result<(), Error> {
        self.tell(Event::Compressed {
            tokens_before: compressed.tokens_before,
            tokens_after: compressed.tokens_after,
        });
        self.surroundings.host.compressed(&self.purpose, compressed);
        self.keep(conversation)
    }

    fn keep(&self, conversation: &Conversation) -> Result<(), Error> {
        self.surroundings.host.keep(&self.purpose, conversation)
    }

    fn tell(&self, event: Event<'_>) {
        self.surroundings.reporter.event(event);
    }

    /// Does or tells what was cut short, and notes the request.
    fn take_up(
        &self,
        conversation: &mut Conversation,
        request: Option<&str>,
        progress: &mut Progress,
    ) -> Result<Next, Error> {
        let (decision, results) = self.last_decision(conversation);
        let calls = match (decision, request) {
            (Some(Decision::Answer(words)), None) => {
                return self.end(Ended { words, by: None }, conversation, progress);
            }
            (decision, _) => decision.map(Decision::calls).unwrap_or_default(),
        };
        // Of the others, nothing was ever heard.
        for call in calls.into_iter().skip(results) {
            match (request, call.tool.effect) {
                (None, effect) if effect.may_be_repeated() => {
                    if let end @ Next::End(_) = self.call(&call, conversation, progress)? {
                        return Ok(end);
                    }
                }
                // Who was done goes on with something else.
                (Some(_), Effect::Ends) => {}
                _ => conversation.say(Remark::of_tool(call.tool.name, CUT_SHORT)),
            }
        }
        if let Some(request) = request {
            conversation.request(&self.surroundings.redactor.text(request));
        } else if matches!(conversation.last_turn(), Some((_, 0))) {
            // Of a call that can no longer be read, there is no result to tell.
            conversation.say(Remark::note(CUT_SHORT));
        }
        Ok(Next::Step)
    }

    /// What the agent has decided last, and how many of its calls came to a result, where nothing else was said
    /// since.
    fn last_decision(&self, conversation: &Conversation) -> (Option<Decision>, usize) {
        let Some((last, results)) = conversation.last_turn() else {
            return (None, 0);
        };
        let reply = Reply {
            text: last.to_owned().into(),
            finish: String::new(),
            usage: None,
            model_version: None,
        };
        let read = self.protocol.read(&reply, &self.tools);
        (read.ok().map(|turn| turn.decision), results)
    }
}

/// What a model is told of a tool during whose use the session was cut short.
const CUT_SHORT: &str = "The session was cut short while this was being done: it may have been done, in part \
                         or not at all. Look before you do it again.";

/// How many lines of a reply are shown around the one that is wrong.
const AROUND: usize = 3;
/// How long a line of a reply is shown.
const LONGEST_LINE: usize = 200;

/// The reply around a line of it, so that the model sees what is meant.
fn around(reply: &str, line: usize) -> String {
    let first = line.saturating_sub(AROUND + 1);
    let lines = reply.lines().enumerate().skip(first).take(2 * AROUND + 1);
    let shown = lines.map(|(at, text)| {
        let cut: String = text.chars().take(LONGEST_LINE).collect();
        format!("{:>6}  {cut}\n", at + 1)
    });
    format!("It says there:\n{}", shown.collect::<String>())
}

#[cfg(test)]
mod tests;
