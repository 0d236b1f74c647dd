//! Resumption of a conversation that was cut short: calls that change nothing are made again, the rest are told.

use super::conversation::{CUT_SHORT, Conversation, HistoryMessage, UserRequest};
use super::ending::{Ended, Next};
use super::engine::{Agent, NOT_BEGUN, Work};
use super::error::AgentError;
use super::protocol::Decision;
use super::tool::{CallFailure, Effect, Toolbox};
use crate::model::Reply;
use crate::model::message::Call;

impl Agent<'_> {
    /// Does or tells what was cut short, and notes the request.
    pub(super) fn take_up(
        &self,
        request: Option<&UserRequest>,
        work: &mut Work<'_>,
    ) -> Result<Next, AgentError> {
        let tools = (self.brief)().tools;
        let calls = match (self.last_decision(work.conversation, &tools), request) {
            (Some(Decision::Answer(words)), None) => {
                return self.end(Ended { words, by: None }, work);
            }
            (Some(Decision::Use(calls)), _) => unanswered(calls, work.conversation),
            (Some(Decision::Answer(_)) | None, _) => Vec::new(),
        };
        for (at, call) in calls.iter().enumerate() {
            let effect = tools.named(&call.name).map(|tool| tool.effect);
            match (request, effect) {
                (None, Some(effect)) if effect.may_be_repeated() => {
                    let rest = &calls[at..=at];
                    if let Next::Done(ended) = self.carry_out_all(rest, &tools, work)? {
                        return Ok(Next::Done(ended));
                    }
                }
                // Who was done goes on with something else.
                (Some(_), Some(Effect::Ends)) if !self.protocol.remembers_calls() => {}
                _ => {
                    // Those behind the first had to wait for it.
                    let told = if at == 0 { CUT_SHORT } else { NOT_BEGUN };
                    self.tell_not_done(&calls[at..=at], told, work.conversation);
                }
            }
        }
        if let Some(request) = request {
            work.conversation.ask(request.redacted(self.env.redactor));
        } else if matches!(work.conversation.last_turn(), Some((_, []))) {
            // Of a call that can no longer be read, there is no result to tell.
            work.conversation.say(HistoryMessage::note(CUT_SHORT));
        }
        Ok(Next::GoOn)
    }

    /// Tells of calls that were not carried out, or not to their end.
    pub(super) fn tell_not_done(&self, calls: &[Call], why: &str, conversation: &mut Conversation) {
        let failure = CallFailure::new(CallFailure::NOT_DONE, why, "");
        let told = self.protocol.result(Err(&failure));
        for call in calls {
            conversation.say(HistoryMessage::not_done(call, &told));
        }
    }

    /// The agent's last decision, where nothing but results was said since.
    fn last_decision(&self, conversation: &Conversation, tools: &Toolbox<'_>) -> Option<Decision> {
        let (last, _) = conversation.last_turn()?;
        if !last.calls.is_empty() {
            return Some(Decision::Use(last.calls.clone()));
        }
        let reply = Reply::said(last.content.clone());
        let read = self.protocol.read(&reply, tools);
        read.ok().map(|turn| turn.decision)
    }
}

/// The calls of which nothing was heard.
fn unanswered(mut calls: Vec<Call>, conversation: &Conversation) -> Vec<Call> {
    let (_, results) = conversation.last_turn().unzip();
    let heard = results.into_iter().flatten().map(|result| &result.call);
    calls.retain(|call| !heard.clone().any(|id| id.as_ref() == Some(&call.id)));
    calls
}
