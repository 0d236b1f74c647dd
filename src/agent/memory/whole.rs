//! A memory that sends all that was said. Pure.
//!
//! For work whose every message matters. Guarantees that nothing is left out: where all of it does not fit, nothing is
//! sent.

use std::borrow::Cow;

use super::{Host, Memory, View, size};
use crate::agent::AgentError;
use crate::agent::conversation::Conversation;
use crate::agent::protocol::Protocol;
use crate::model::estimate::FRAMING;

/// Sends the conversation as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// How many tokens a prompt may have; `None`: nobody knows, and the model says it.
    pub window: Option<u64>,
}

impl Memory for Whole {
    fn view<'c>(
        &self,
        _host: &dyn Host,
        system: &[String],
        protocol: &dyn Protocol,
        conversation: &'c mut Conversation,
    ) -> Result<View<'c>, AgentError> {
        if let Some(window) = self.window {
            let tokens = size(system, &protocol.render(&conversation.history)) + FRAMING;
            if tokens > window {
                return Err(AgentError::TooLong {
                    tokens,
                    window,
                    larger: None,
                });
            }
        }
        Ok(View {
            history: Cow::Borrowed(&conversation.history),
            system: None,
            compressed: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::conversation::HistoryMessage;
    use crate::agent::protocol::native::{Native, ResultForm};
    use crate::model::Purpose;
    use crate::model::Reply;
    use crate::model::prompt::Prompt;

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
            let view = Whole { window }.view(&Nobody, &system, &native, &mut said);
            match view {
                Ok(view) => assert!(fits && *view.history == *conversation.history),
                Err(error) => {
                    assert!(!fits && matches!(error, AgentError::TooLong { window: 1000, .. }));
                }
            }
        }
    }
}
