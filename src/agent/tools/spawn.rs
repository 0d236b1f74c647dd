//! `spawn_agent`: has another agent work on a part of the task, and returns its findings.
//!
//! The helper knows its prompt and nothing of the conversation. Its profile decides what it shares with its parent:
//! permissions, budget, interruption. Since its own tools do not include this one, helpers cannot be nested.

use crate::agent::AgentError;
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::model::ModelError;

/// The description of `spawn_agent`.
pub static SPAWN_AGENT: ToolSpec = ToolSpec::new(
    "spawn_agent",
    "Has another agent work on a part of the task, and gives its last words. It has the same tools but this one, and knows \
     nothing but its prompt: say all that it needs, and what it is to report. Use it to look into what would fill your \
     own context.",
    &[
        Parameter::text(
            "description",
            "What it does, in three to five words, for the user",
        ),
        Parameter::block(
            "prompt",
            "All that it is to know and to do, and what it is to report",
        ),
    ],
    Effect::Delegates,
);

/// Has an agent work on this prompt, and returns its final message.
pub type Work<'a> = dyn Fn(&str) -> Result<String, AgentError> + 'a;

/// Starts helper agents, which this function runs.
pub struct SpawnAgent<'a>(pub &'a Work<'a>);

impl Tool for SpawnAgent<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let prompt = arguments.get("prompt").trim();
        if prompt.is_empty() {
            return Err("the prompt is blank; the helper knows nothing else"
                .to_owned()
                .into());
        }
        match (self.0)(prompt) {
            Ok(words) if words.trim().is_empty() => Ok(ToolOutput::text("(it has said nothing)")),
            Ok(words) => Ok(ToolOutput::text(words)),
            Err(error) if is_its_own(&error) => {
                Err(format!("the helper did not get to its end: {error}").into())
            }
            Err(error) => Err(ToolError::Fatal(error)),
        }
    }
}

/// Returns whether a helper's error leaves its parent able to continue; with any other error, the parent's own next
/// call would fail as well.
fn is_its_own(error: &AgentError) -> bool {
    match error {
        AgentError::Model(ModelError::Interrupted(_)) => false,
        AgentError::Model(error) => !error.refuses_key() && !error.is_local(),
        AgentError::NotUnderstood { .. }
        | AgentError::ToolsFailed { .. }
        | AgentError::LoopLimit(_)
        | AgentError::NotCompressed { .. }
        | AgentError::TooLong { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sys::interrupt::{Interrupted, Signal};

    fn spawn(prompt: &str, work: &Work<'_>) -> Result<String, ToolError> {
        let input = json!({"description": "look around", "prompt": prompt});
        let arguments = SPAWN_AGENT.check(&input).unwrap();
        SpawnAgent(work).run(&arguments).map(|output| output.text)
    }

    #[test]
    fn the_helpers_last_words_are_the_result() {
        let work = |prompt: &str| Ok(format!("did {prompt}"));
        assert_eq!(spawn(" find it\n", &work).unwrap(), "did find it");
        let silent = |_: &str| Ok(" ".to_owned());
        assert_eq!(spawn("x", &silent).unwrap(), "(it has said nothing)");
    }

    #[test]
    fn a_helper_that_fails_is_reported_and_a_stop_stops_both() {
        let limited = |_: &str| Err(AgentError::LoopLimit(3));
        let refused = |_: &str| {
            Err(ModelError::Refused {
                message: "no".to_owned(),
                finish: "stop".to_owned(),
                spent: Box::default(),
            }
            .into())
        };
        let cut = |_: &str| Err(ModelError::NoBody.into());
        for (prompt, work, said) in [
            (
                "x",
                &limited as &Work<'_>,
                "did not get to its end: the loop limit",
            ),
            ("x", &refused, "the model refused to answer: no"),
            ("x", &cut, "no content at all"),
            (" \n", &limited, "the prompt is blank"),
        ] {
            let Err(ToolError::Failed(failure)) = spawn(prompt, work) else {
                panic!("{said} is told");
            };
            assert!(failure.message.contains(said), "{failure}");
        }
        let signal = Signal::Int;
        let stopped = |_: &str| Err(Interrupted { signal }.into());
        assert!(matches!(
            spawn("x", &stopped).unwrap_err(),
            ToolError::Fatal(AgentError::Interrupted(_))
        ));
    }
}
