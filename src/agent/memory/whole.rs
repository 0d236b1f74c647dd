//! A memory that sends the whole conversation. Pure.
//!
//! For work in which every message matters. Guarantees that nothing is omitted: if the conversation does not fit,
//! nothing is sent.

use super::{Frame, Memory, View, size};
use crate::agent::AgentError;
use crate::agent::conversation::Conversation;
use crate::model::estimate::FRAMING;

/// Sends the conversation unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// The maximum number of tokens in a prompt; `None` leaves it to the model to reject a prompt.
    pub window: Option<u64>,
}

impl Memory for Whole {
    fn view(&self, frame: Frame<'_>, conversation: &mut Conversation) -> Result<View, AgentError> {
        let messages = frame.protocol.render(&conversation.history);
        if let Some(window) = self.window {
            let tokens = size(frame.system, &messages) + FRAMING;
            if tokens > window {
                return Err(AgentError::too_long(tokens, window));
            }
        }
        Ok(View::of(messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::conversation::HistoryMessage;
    use crate::agent::host::Host;
    use crate::agent::protocol::Protocol as _;
    use crate::agent::protocol::native::{Native, ResultForm};
    use crate::model::prompt::Prompt;
    use crate::model::{Purpose, Reply};

    struct Nobody;

    impl Host for Nobody {
        fn ask(&self, _: &Purpose, _: Prompt<'_>) -> Result<Reply, AgentError> {
            panic!("no model is asked")
        }

        fn note(&self, _: crate::agent::Note<'_>) -> Result<(), AgentError> {
            Ok(())
        }

        fn check(&self) -> Result<(), AgentError> {
            Ok(())
        }
    }

    #[test]
    fn all_is_sent_or_nothing() {
        let native = Native {
            instructions: "",
            results: ResultForm::Json,
        };
        let mut conversation = Conversation::default();
        let said = [
            HistoryMessage::of_user("task"),
            HistoryMessage::of_agent(""),
            HistoryMessage::of_tool("look", "1", "word ".repeat(1000)),
        ];
        for message in said {
            conversation.say(message);
        }
        let system = ["system".to_owned()];
        for (window, fits) in [(None, true), (Some(10_000), true), (Some(1000), false)] {
            let mut said = conversation.clone();
            let frame = Frame {
                host: &Nobody,
                system: &system,
                protocol: &native,
            };
            let view = Whole { window }.view(frame, &mut said);
            match view {
                Ok(view) => assert!(fits && view.messages == native.render(&conversation.history)),
                Err(error) => {
                    assert!(!fits && matches!(error, AgentError::TooLong { window: 1000, .. }));
                }
            }
        }
    }
}
