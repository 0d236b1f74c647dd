//! Resumption of an interrupted conversation: calls that change nothing are repeated, and the agent is told about the
//! others.

use std::mem::take;

use super::conversation::{CUT_SHORT, Conversation, DISCARDED, HistoryMessage, UserRequest};
use super::ending::{Ended, Next};
use super::engine::{Agent, NOT_BEGUN, Work};
use super::error::AgentError;
use super::protocol::Decision;
use super::tool::{CallFailure, Effect, Toolbox};
use crate::model::Reply;
use crate::model::message::Call;

impl Agent<'_> {
    /// Repeats the interrupted calls or reports them to the agent, and adds the request.
    pub(super) fn resume_calls(
        &self,
        request: Option<&UserRequest>,
        work: &mut Work<'_>,
    ) -> Result<Next, AgentError> {
        let tools = (self.brief)().tools;
        let is_discarded = take(&mut work.conversation.is_unapplied);
        let calls = match (self.last_decision(work.conversation, &tools), request) {
            (Some(Decision::Answer(words)), None) if !is_discarded => {
                return self.end(Ended { words, by: None }, work);
            }
            (Some(Decision::Use(calls)), _) => unanswered(calls, work.conversation),
            (Some(Decision::Answer(_)) | None, _) => Vec::new(),
        };
        for (at, call) in calls.iter().enumerate() {
            let effect = tools.named(&call.name).map(|tool| tool.effect);
            match (request, effect) {
                (None, Some(effect)) if effect.may_be_repeated() => {
                    if let Next::Done(ended) = self.carry_out_all(&calls[at..=at], &tools, work)? {
                        return Ok(Next::Done(ended));
                    }
                }
                // An agent that had finished simply continues with the new request.
                (Some(_), Some(Effect::Ends)) if !self.protocol.remembers_calls() => {}
                _ => {
                    // Only the first call can have begun; the others were waiting for it.
                    let message = if at == 0 { CUT_SHORT } else { NOT_BEGUN };
                    self.skip_calls(&calls[at..=at], message, work.conversation);
                }
            }
        }
        if is_discarded {
            work.conversation.say(HistoryMessage::note(DISCARDED));
        }
        if let Some(request) = request {
            work.conversation.ask(request.redacted(self.env.redactor));
        } else if matches!(work.conversation.last_turn(), Some((_, []))) {
            // The call can no longer be parsed, so a note takes the place of its result.
            work.conversation.say(HistoryMessage::note(CUT_SHORT));
        }
        Ok(Next::GoOn)
    }

    /// Adds results saying that these calls were not carried out, or not completed.
    pub(super) fn skip_calls(&self, calls: &[Call], why: &str, conversation: &mut Conversation) {
        let failure = CallFailure::new(CallFailure::NOT_DONE, why, "");
        let message = self.protocol.result(Err(&failure));
        for call in calls {
            conversation.say(HistoryMessage::not_done(call, &message));
        }
    }

    /// Returns the agent's last decision, if only results have followed it.
    fn last_decision(&self, conversation: &Conversation, tools: &Toolbox<'_>) -> Option<Decision> {
        let (last, _) = conversation.last_turn()?;
        if !last.calls.is_empty() {
            return Some(Decision::Use(last.calls.clone()));
        }
        let reply = Reply::of_text(&*last.content);
        let read = self.protocol.read(&reply, tools);
        read.ok().map(|turn| turn.decision)
    }
}

/// Returns the calls that have no result yet.
fn unanswered(mut calls: Vec<Call>, conversation: &Conversation) -> Vec<Call> {
    let (_, results) = conversation.last_turn().unzip();
    let heard = results.into_iter().flatten().map(|result| &result.call);
    calls.retain(|call| !heard.clone().any(|id| id.as_ref() == Some(&call.id)));
    calls
}
