//! Requests to the model: the conversation as the memory renders it, and a shortened one if the model rejects the first
//! as too long.

use super::conversation::{Conversation, HistoryMessage};
use super::ending::Next;
use super::engine::{Agent, Brief, Work};
use super::error::AgentError;
use super::host::Compressed;
use super::memory::Frame;
use crate::model::message::{Message, Role};
use crate::model::prompt::Prompt;
use crate::model::{Form, Reply};
use crate::record::event::Event;

/// Maximum temperature for retries; a low one makes the model keep to the required form.
const COOL: f64 = 0.1;

/// Returns whether the prompt was too long, according to the model or to the program's own count.
fn is_too_long(error: &AgentError) -> bool {
    match error {
        AgentError::Model(error) => error.is_context_exceeded(),
        AgentError::TooLong { .. } => true,
        _ => false,
    }
}

impl Agent<'_> {
    /// Records the parts of a paused reply unchanged, with nothing after them, so that the model can continue it.
    pub(super) fn keep_paused(reply: Reply, conversation: &mut Conversation) -> Next {
        if !reply.parts.is_empty() {
            conversation.say(HistoryMessage {
                parts: reply.parts,
                ..HistoryMessage::of_agent(reply.text.as_str())
            });
        }
        Next::GoOn
    }

    /// Asks the model for the next step.
    ///
    /// # Errors
    /// Fails if no complete reply arrives, even after shortening a conversation that the model rejected as too long.
    pub(super) fn ask(&self, brief: &Brief<'_>, work: &mut Work<'_>) -> Result<Reply, AgentError> {
        let offer = self.protocol.offer(&brief.tools);
        let form = Form {
            tool_choice: brief.tool_choice,
            ..offer.form
        };
        let first = format!("{}\n{}", brief.instructions, offer.instructions);
        let system = [&[first][..], &brief.context].concat();
        match self.send(&system, form.clone(), work) {
            Err(error) if is_too_long(&error) => {
                self.shorten(&system, work.conversation, error)?;
                self.send(&system, form, work)
            }
            sent => sent,
        }
    }

    fn send(
        &self,
        system: &[String],
        form: Form,
        work: &mut Work<'_>,
    ) -> Result<Reply, AgentError> {
        let view = self.memory.view(self.frame(system), work.conversation)?;
        if let Some(compressed) = view.compressed {
            self.note_compressed(compressed, work.conversation)?;
        }
        let messages = view.messages;
        let system = view.system.unwrap_or_else(|| system.to_vec());
        let progress = &mut work.progress;
        // Messages that are already in the run log.
        let now: Vec<u64> = messages.iter().map(Message::digest).collect();
        let pairs = progress.sent.iter().zip(&now);
        let same = pairs.take_while(|(sent, now)| sent == now).count();
        let known = if progress.system == system { same } else { 0 };
        progress.sent = now;
        progress.system.clone_from(&system);
        if self.calls.is_some_and(|most| progress.calls >= most) {
            return Err(AgentError::LoopLimit(progress.calls));
        }
        progress.calls += 1;
        let history = &work.conversation.history;
        let continues = history
            .last()
            .is_some_and(|last| last.role == Role::Assistant && last.calls.is_empty());
        let mut prompt = Prompt::of_agent(system, messages, known);
        let is_again = progress.failures > 0;
        let temperature = |warm: f64| if is_again { warm.min(COOL) } else { warm };
        prompt.form = Form {
            temperature: self.temperature.map(temperature),
            continues,
            ..form
        };
        self.env.host.ask(&self.purpose, prompt)
    }

    /// Shortens a conversation that the model rejected; if that fails, returns `refusal`.
    fn shorten(
        &self,
        system: &[String],
        conversation: &mut Conversation,
        refusal: AgentError,
    ) -> Result<(), AgentError> {
        match self.memory.shorten(self.frame(system), conversation) {
            Ok(Some(compressed)) => self.note_compressed(compressed, conversation),
            Ok(None) | Err(AgentError::Model(_) | AgentError::NotCompressed { .. }) => Err(refusal),
            Err(error) => Err(error),
        }
    }

    /// Builds the frame in which a conversation is sent, with the system prompt `system`.
    pub(crate) fn frame<'f>(&'f self, system: &'f [String]) -> Frame<'f> {
        Frame {
            host: self.env.host,
            system,
            protocol: self.protocol,
        }
    }

    fn note_compressed(
        &self,
        compressed: Compressed,
        conversation: &Conversation,
    ) -> Result<(), AgentError> {
        if let Some(notice) = self.memory.notice() {
            self.report(&Event::Notice(notice.to_owned()));
        }
        self.report(&Event::Compressed {
            tokens_before: compressed.tokens_before,
            tokens_after: compressed.tokens_after,
        });
        self.env.host.compressed(&self.purpose, compressed);
        self.save(conversation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::End;
    use crate::model::message::{ReplyPart, Thought};

    #[test]
    fn reply_before_a_pause_is_resent_unchanged() {
        let thought = Thought::Shown {
            text: "hm".to_owned(),
            signature: "s".to_owned(),
        };
        let parts = vec![
            ReplyPart::Thought(thought),
            ReplyPart::Text("so".to_owned()),
        ];
        let reply = Reply {
            parts: parts.clone(),
            end: End::Paused,
            ..Reply::of_text("so")
        };
        let mut conversation = Conversation::default();
        conversation.request("do it");
        assert!(matches!(
            Agent::keep_paused(reply, &mut conversation),
            Next::GoOn
        ));
        let [_, said] = &conversation.history[..] else {
            panic!("{conversation:?}");
        };
        assert_eq!((said.role, &said.parts), (Role::Assistant, &parts));
    }
}
