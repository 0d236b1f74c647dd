//! The loop shared by all agents: asks the model, carries out its decision and returns the result to it, until the work
//! is done.
//!
//! Guarantees that every call is answered in the conversation, and that the conversation is saved after each reply's
//! calls, and before each of them unless they only read.

use std::time::Duration;

use crate::model::message::Call;
use crate::model::{End, ModelError, Purpose, Reply, ToolChoice};
use crate::record::event::Event;
use crate::record::question::Answer;
use crate::record::tool::Verb;
use crate::sys::excerpt::text::bounded;

use super::conversation::{Conversation, HistoryMessage, UserRequest};
use super::ending::{Ended, Next, Objection, ToolTries};
use super::error::AgentError;
use super::host::{Env, Note};
use super::memory::Memory;
use super::permissions::{Permission, Permissions};
use super::protocol::{Decision, Fault, MAX_CALLS, Protocol, Turn};
use super::tool::{
    CallFailure, Effect, OUTPUT_LIMIT, Tool, ToolCall, ToolError, ToolOutput, Toolbox,
};

/// The instructions and tools of an agent's next step.
#[derive(Default)]
pub struct Brief<'a> {
    /// The agent's role and working method, for the model; the protocol adds the reply format.
    pub instructions: String,
    /// Further system messages after the instructions, such as the context of the project.
    pub context: Vec<String>,
    /// The tools available to the agent.
    pub tools: Toolbox<'a>,
    /// The choice of tools allowed, to the extent that the protocol can express it.
    pub tool_choice: ToolChoice,
    /// Reminders since the last step: sent once, before the next step, and kept in the conversation.
    pub reminders: Vec<HistoryMessage>,
}

/// An agent, assembled from the parts that a profile chooses.
#[derive(Clone)]
pub struct Agent<'a> {
    /// The purpose of its model calls.
    pub purpose: Purpose,
    /// Builds its instructions and tools before each step.
    pub brief: &'a dyn Fn() -> Brief<'a>,
    /// The form of its replies.
    pub protocol: &'a dyn Protocol,
    /// Decides which calls it may make.
    pub permissions: &'a dyn Permissions,
    /// Chooses the part of a conversation to send.
    pub memory: &'a dyn Memory,
    /// Checks its final message and may object; receives the number of successful tool calls.
    pub ending: &'a dyn Fn(&Ended, u32) -> Result<(), Objection>,
    /// The number of consecutive replies that may be malformed; 0 counts as 1.
    pub tries: u32,
    /// The number of consecutive tool calls that may fail.
    pub tool_tries: ToolTries,
    /// The number of model calls allowed for the work; `None` leaves the limit to the host.
    pub calls: Option<u32>,
    /// The temperature, unless the model's entry sets one; `None` leaves it to the server.
    pub temperature: Option<f64>,
    /// The run, the reporter, the clock and the redactor.
    pub env: Env<'a>,
}

/// The progress of an agent within a piece of work.
#[derive(Default)]
pub(super) struct Progress {
    /// Failures since the last success.
    pub failures: u32,
    /// Tool failures since the last successful call.
    pub tool_failures: u32,
    /// The last call of the latest reply with its problem, if it has failed.
    pub failed: Option<(String, String)>,
    /// Successful tool calls.
    pub succeeded: u32,
    /// Calls to the model so far.
    pub calls: u32,
    /// The system prompt sent last, which the run log already has.
    pub system: Vec<String>,
    /// Digests of the messages sent last after the system prompt, which the run log already has, too.
    pub sent: Vec<u64>,
}

impl Progress {
    /// Counts the success or failure of a tool.
    fn count(&mut self, call: &Call, failure: Option<CallFailure>) {
        self.failed = None;
        if let Some(failure) = failure {
            self.tool_failures += u32::from(failure.code != CallFailure::NOT_ALLOWED);
            self.failed = Some((call.name.clone(), failure.message));
        } else {
            (self.failures, self.tool_failures) = (0, 0);
            self.succeeded += 1;
        }
    }
}

/// A piece of work that an agent does.
pub(super) struct Work<'c> {
    /// The conversation in which the work takes place.
    pub conversation: &'c mut Conversation,
    /// The agent's progress.
    pub progress: Progress,
}

impl Agent<'_> {
    /// Works like [`work_on_request`](Self::work_on_request), with a request that consists of text only.
    ///
    /// # Errors
    /// Fails if the work does not finish.
    pub fn work_on(
        &self,
        conversation: &mut Conversation,
        request: Option<&str>,
    ) -> Result<Ended, AgentError> {
        self.work_on_request(conversation, request.map(UserRequest::from).as_ref())
    }

    /// Works on `prompt` alone, in a new conversation that is not resumed, and returns the final message. The host
    /// decides by the agent's purpose whether to save the conversation.
    ///
    /// # Errors
    /// Fails if the work does not finish.
    pub fn work_apart(&self, prompt: &str) -> Result<String, AgentError> {
        let ended = self.work_on(&mut Conversation::default(), Some(prompt))?;
        Ok(ended.words)
    }

    /// Resumes a conversation, with a further request if given, and works until the agent reports that it is done.
    ///
    /// The session may have been interrupted while the agent was using tools. Calls that change nothing are repeated,
    /// unless there is something else to do now; the agent is told about the others.
    ///
    /// # Errors
    /// Fails if the work does not finish.
    pub fn work_on_request(
        &self,
        conversation: &mut Conversation,
        request: Option<&UserRequest>,
    ) -> Result<Ended, AgentError> {
        let mut work = Work {
            conversation,
            progress: Progress::default(),
        };
        let mut next = self.resume_calls(request, &mut work)?;
        self.save(work.conversation)?;
        loop {
            if let Next::Done(ended) = next {
                return Ok(ended);
            }
            self.env.host.check()?;
            let stepped = self.step(&mut work);
            // The messages so far are saved even after a failure.
            self.save(work.conversation)?;
            next = stepped?;
        }
    }

    fn step(&self, work: &mut Work<'_>) -> Result<Next, AgentError> {
        let brief = (self.brief)();
        for reminder in &brief.reminders {
            work.conversation.say(HistoryMessage {
                content: self.env.redactor.text(&reminder.content).into(),
                ..reminder.clone()
            });
        }
        if !brief.reminders.is_empty() {
            // If the process is killed during the call, the record of what was sent must remain correct.
            self.save(work.conversation)?;
        }
        let reply = match self.ask(&brief, work) {
            // The last try ends with the model's own error.
            Err(AgentError::Model(error))
                if error.is_incomplete_reply() && work.progress.failures + 1 < self.tries =>
            {
                let fault = Fault::of_all(error.to_string());
                // With native tool calls, there is no advice on the form.
                return match advice_on(&error).filter(|_| self.protocol.remembers_calls()) {
                    Some(advice) => self.report_fault(fault, advice, work),
                    None => self.return_fault(fault, "", work),
                };
            }
            asked => asked?,
        };
        if reply.end == End::Paused {
            return Ok(Self::keep_paused(reply, work.conversation));
        }
        let reply = Reply {
            text: (work.conversation.paused() + &reply.text).into(),
            ..reply
        };
        match self.protocol.read(&reply, &brief.tools) {
            Ok(turn) => self.carry_out_turn(turn, &brief.tools, work),
            Err(fault) => {
                self.report_words(&bounded(&reply.text, OUTPUT_LIMIT));
                let around = fault
                    .line
                    .map(|line| around(&reply.text, line))
                    .unwrap_or_default();
                self.return_fault(fault, &around, work)
            }
        }
    }

    /// Carries out the agent's decision.
    fn carry_out_turn(
        &self,
        turn: Turn,
        tools: &Toolbox<'_>,
        work: &mut Work<'_>,
    ) -> Result<Next, AgentError> {
        let mut message = HistoryMessage::of_agent(turn.remembered);
        if let (Decision::Use(calls), true) = (&turn.decision, self.protocol.remembers_calls()) {
            message.calls.clone_from(calls);
        }
        message.parts = turn.parts;
        work.conversation.say(message);
        self.report_words(&turn.outside);
        if !turn.thoughts.trim().is_empty() {
            self.report(&Event::Thoughts(turn.thoughts.trim().to_owned()));
            self.env.host.note(Note::Thoughts(turn.thoughts.trim()))?;
        }
        if let Some(tasks) = turn.tasks {
            self.report(&Event::Tasks(tasks.clone()));
            work.conversation.tasks = tasks;
        }
        let calls = match turn.decision {
            Decision::Answer(words) => {
                let next = self.end(Ended { words, by: None }, work)?;
                if let Next::Done(Ended { words, .. }) = &next {
                    self.env.host.note(Note::Answered(words))?;
                }
                return Ok(next);
            }
            Decision::Use(calls) => calls,
        };
        self.reset_failures(&mut work.progress);
        let next = self.carry_out_all(&calls, tools, work)?;
        // The model learns of its errors only after the reply, so they are one failure.
        self.check_tries(&mut work.progress)?;
        if let Some(note) = turn.note {
            work.conversation.say(HistoryMessage::note(note));
        }
        Ok(next)
    }

    /// Carries out calls in order until one ends the work; the model is told that the remaining ones were not carried
    /// out.
    pub(super) fn carry_out_all(
        &self,
        calls: &[Call],
        tools: &Toolbox<'_>,
        work: &mut Work<'_>,
    ) -> Result<Next, AgentError> {
        // Only vendors' native tool calls need a result for each call.
        let reported = if self.protocol.remembers_calls() {
            calls.len()
        } else {
            calls.len().min(MAX_CALLS + 1)
        };
        let calls = &calls[..reported];
        let effect = |call: &Call| tools.named(&call.name).map(|tool| tool.effect);
        let only_reads = calls.iter().all(|call| effect(call) == Some(Effect::Reads));
        for (at, call) in calls.iter().enumerate().take(MAX_CALLS) {
            if let Err(stopped) = self.env.host.check() {
                // If no call has begun, all of them can still be carried out when the work is resumed.
                if at > 0 {
                    self.skip_calls(&calls[at..], NOT_BEGUN, work.conversation);
                }
                return Err(stopped);
            }
            if effect(call).is_some_and(|effect| !effect.may_be_repeated()) {
                work.conversation.is_unapplied |= self.env.host.is_in_scratch();
            }
            // If the process is killed during the call, the record of the call must not be lost.
            if !only_reads {
                self.save(work.conversation)?;
            }
            if let Next::Done(ended) = self.call(call, tools, work)? {
                self.skip_calls(&calls[at + 1..], NOT_DONE, work.conversation);
                return Ok(Next::Done(ended));
            }
        }
        let rest = calls.get(MAX_CALLS..).unwrap_or_default();
        self.skip_calls(rest, TOO_MANY, work.conversation);
        Ok(Next::GoOn)
    }

    /// Counts a reply whose last call has failed, if replies are counted.
    ///
    /// # Errors
    /// Fails if there were too many failures in a row.
    fn check_tries(&self, progress: &mut Progress) -> Result<(), AgentError> {
        let Some((tool, problem)) = progress.failed.take() else {
            return Ok(());
        };
        progress.failures += u32::from(self.tool_tries == ToolTries::AsReplies);
        let (tries, allowed) = match self.tool_tries {
            ToolTries::AsReplies => (progress.failures, self.tries),
            ToolTries::Unlimited => (0, 1),
            ToolTries::UpTo(tries) => (progress.tool_failures, tries),
        };
        if tries < allowed {
            return Ok(());
        }
        // An interruption does not count as a failure.
        self.env.host.check()?;
        Err(AgentError::ToolsFailed {
            tries,
            tool,
            problem,
        })
    }

    /// Uses a tool and returns the result to the model.
    fn call(
        &self,
        call: &Call,
        tools: &Toolbox<'_>,
        work: &mut Work<'_>,
    ) -> Result<Next, AgentError> {
        let resolved = self.resolve(call, tools);
        let known = resolved.as_ref().ok().map(|(_, call)| call);
        let subject = known.map(|call| call.subject().to_owned());
        let done = |since: &mut Duration| match &resolved {
            Ok((tool, call)) => self.use_tool(*tool, call, since),
            Err(failure) => Err(ToolError::Failed(failure.clone())),
        };
        let tool = known.map(|call| &call.tool);
        // An invalid call is shown with its verb, too.
        let verb = tools.named(&call.name).map_or(Verb::Use, |tool| tool.verb);
        let used = self.env.carry_out(call, subject, (tool, verb), done)?;
        let (words, failed) = (used.text, used.failure.is_some());
        if used.output.is_end {
            // The end is what counts.
            work.progress.failed = None;
            let by = Some((call.name.clone(), call.id.clone()));
            return self.end(Ended { words, by }, work);
        }
        let data = used.output.data.map(|data| self.env.redactor.json(&data));
        let message = match &used.failure {
            None => self.protocol.result(Ok((&words, data.as_ref()))),
            Some(failure) => self.protocol.result(Err(failure)),
        };
        work.conversation.say(HistoryMessage {
            is_failed: failed,
            command: used.output.command,
            brief: used.output.brief,
            ..HistoryMessage::of_tool(&call.name, &call.id, message)
        });
        work.progress.count(call, used.failure);
        if self.tool_tries != ToolTries::AsReplies {
            self.check_tries(&mut work.progress)?;
        }
        Ok(Next::GoOn)
    }

    /// Finds the tool for a call and validates the arguments. Errors are redacted, since they quote the model's input.
    fn resolve<'t>(
        &self,
        call: &Call,
        tools: &'t Toolbox<'_>,
    ) -> Result<(&'t (dyn Tool + 't), ToolCall), CallFailure> {
        tools.resolve(call).map_err(|failure| {
            let redacted = call.redacted(self.env.redactor);
            tools.resolve(&redacted).err().unwrap_or(failure)
        })
    }

    /// Uses a tool if permitted; `since` is set to the time of the user's answer if the user is asked.
    fn use_tool(
        &self,
        tool: &dyn Tool,
        call: &ToolCall,
        since: &mut Duration,
    ) -> Result<ToolOutput, ToolError> {
        match self.permissions.decide(call) {
            Permission::Allowed => tool.run(&call.arguments),
            Permission::Refused(reason) => Err(not_allowed(reason)),
            Permission::Ask(question) => {
                let preview = self.env.preview(tool, &call.arguments)?;
                let answer = self.env.host.confirm(&question, preview.as_deref())?;
                *since = self.env.clock.elapsed();
                match answer {
                    // The effect must be the one that the user was shown.
                    Answer::Yes if self.env.preview(tool, &call.arguments)? != preview => {
                        Err(CHANGED_MEANWHILE.to_owned().into())
                    }
                    // Permissions may have been restricted while the user was deciding.
                    Answer::Yes => match self.permissions.decide(call) {
                        Permission::Refused(reason) => Err(not_allowed(reason)),
                        Permission::Allowed | Permission::Ask(_) => tool.run(&call.arguments),
                    },
                    Answer::No => Err(not_allowed(NOT_ALLOWED)),
                    Answer::Instead(words) => Err(not_allowed(format!(
                        "the user does not allow this, and says what to do instead: {words}"
                    ))),
                }
            }
        }
    }

    /// Ends the work with the agent's final message, unless there is an objection to it.
    pub(super) fn end(&self, ended: Ended, work: &mut Work<'_>) -> Result<Next, AgentError> {
        match (self.ending)(&ended, work.progress.succeeded) {
            Ok(()) => Ok(Next::Done(ended)),
            Err(Objection::Over(error)) => Err(error),
            Err(Objection::NotDone(text)) => {
                // The reply itself was understood.
                self.reset_failures(&mut work.progress);
                work.conversation.say(text);
                Ok(Next::GoOn)
            }
            Err(Objection::Words(fault)) => {
                if ended.by.is_some() && self.protocol.remembers_calls() {
                    let text = self.protocol.result(Err(&fault.message().into()));
                    work.conversation.say(ended.message(text));
                }
                self.return_fault(fault, "", work)
            }
        }
    }

    /// Resets the count of failures after a reply that was understood, unless that count includes tool failures.
    fn reset_failures(&self, progress: &mut Progress) {
        if self.tool_tries != ToolTries::AsReplies {
            progress.failures = 0;
        }
    }

    /// Reports the fault in its reply to the model.
    fn return_fault(
        &self,
        fault: Fault,
        around: &str,
        work: &mut Work<'_>,
    ) -> Result<Next, AgentError> {
        // An example sent with an earlier fault stays in the conversation until a reply is understood.
        let is_shown = |note: &HistoryMessage| note.is_fault && note.content.contains(fault.remedy);
        let is_repeated =
            fault.remedy.starts_with('\n') && work.conversation.history.iter().any(is_shown);
        let remedy = if is_repeated { "" } else { fault.remedy };
        let fault = fault.with_remedy(remedy);
        let problem = self.env.redactor.text(&fault.message()).into_owned();
        let message = format!(
            "Your last reply was not understood: {problem}\n{around}Nothing of it was done. Reply again, in the form \
             that was described."
        );
        self.report_fault(fault, &message, work)
    }

    /// Counts an unusable reply, and reports it to the model.
    fn report_fault(
        &self,
        fault: Fault,
        message: &str,
        work: &mut Work<'_>,
    ) -> Result<Next, AgentError> {
        work.progress.failures += 1;
        self.report(&Event::Malformed {
            fault: self.env.redactor.text(&fault.to_string()).into_owned(),
            failures: work.progress.failures,
            allowed: self.tries,
        });
        if work.progress.failures >= self.tries {
            let tries = work.progress.failures;
            return Err(AgentError::NotUnderstood { tries, fault });
        }
        work.conversation.say(if self.protocol.remembers_calls() {
            // A conversation with native calls is sent back unchanged.
            HistoryMessage::note(message)
        } else {
            HistoryMessage::of_fault(message)
        });
        Ok(Next::GoOn)
    }

    pub(super) fn save(&self, conversation: &Conversation) -> Result<(), AgentError> {
        self.env.host.save(&self.purpose, conversation)
    }

    pub(super) fn report(&self, event: &Event) {
        self.env.reporter.event(event);
    }

    /// Reports words that no other event shows.
    fn report_words(&self, words: &str) {
        if !words.trim().is_empty() {
            self.report(&Event::Words(words.trim().to_owned()));
        }
    }
}

/// The result of a call that the user refused.
const NOT_ALLOWED: &str = "the user does not allow this; ask, or do it another way";

/// The result of a call whose effect changed after the user agreed to it.
const CHANGED_MEANWHILE: &str = "this changed while the user was deciding, and nothing was done; read it again, and repeat the \
                                 call if it still applies";

fn not_allowed(why: impl Into<String>) -> ToolError {
    ToolError::Failed(CallFailure::new(CallFailure::NOT_ALLOWED, why, ""))
}

/// The result of calls that follow one that ended the work.
const NOT_DONE: &str = "This was not done: the work had ended before.";

/// The result of the calls beyond [`MAX_CALLS`].
const TOO_MANY: &str =
    "This was not done, nor was any call after it: a reply has at most 100 calls.";

/// The result of calls that had not begun when the session was interrupted.
pub(super) const NOT_BEGUN: &str = "This was not done: the session was interrupted first.";

/// The messages to a model whose reply was truncated, and to one whose reply was empty.
const CUT: &str = "Your last reply was cut at the length limit (max_tokens): it is gone, and no call in it was carried out. Go on in \
                   smaller pieces: fewer words, and less in one call.";
const EMPTY: &str = "Your last reply was empty: no text, and no call. Continue the work, or report the result in words.";

/// Returns the message to a model after an incomplete reply, if there is specific advice.
fn advice_on(error: &ModelError) -> Option<&'static str> {
    match error {
        ModelError::CutShort {
            end: End::MaxTokens,
            ..
        } => Some(CUT),
        ModelError::Empty { .. } | ModelError::NoBody => Some(EMPTY),
        _ => None,
    }
}

/// Number of lines of a reply shown before and after the faulty one.
const AROUND: usize = 3;
/// Maximum length of a shown line, in characters.
const LONGEST_LINE: usize = 200;

/// Formats the lines of a reply around a given one, so that the model sees which part is meant.
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
mod profile_tests;
#[cfg(test)]
pub(in crate::agent) mod tests;
