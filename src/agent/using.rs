//! The use of a tool, regardless of the caller: it is reported before and after, and recorded with its outcome.
//!
//! Guarantees that nothing reported, recorded or returned contains a key or exceeds the size limit of an output.

use std::time::Duration;

use serde_json::Value;

use super::error::AgentError;
use super::host::{Env, Note};
use super::tool::{
    Arguments, CallFailure, Effect, OUTPUT_LIMIT, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::model::message::Call;
use crate::record::event::Event;
use crate::record::seconds::Seconds;
use crate::record::step::{Action, input_text};
use crate::record::tool::{ToolEnd, Verb};
use crate::sys::excerpt::text::bounded;

/// The result of using a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolUse {
    /// The tool's output; for a failure, only its text.
    pub output: ToolOutput,
    /// The text of the output or the failure, redacted and limited in size.
    pub text: String,
    /// The failure, if any.
    pub failure: Option<CallFailure>,
}

impl Env<'_> {
    /// Carries out a call with `use_tool`. Events describe it by `subject`, or else by its input; `tool` is the called
    /// tool if the call is valid. `use_tool` may reset the start time passed to it, to exclude time spent asking the
    /// user.
    ///
    /// # Errors
    /// Fails if the tool's failure ends the work, or the call cannot be recorded.
    pub(crate) fn carry_out(
        &self,
        call: &Call,
        subject: Option<String>,
        (tool, verb): (Option<&ToolSpec>, Verb),
        use_tool: impl FnOnce(&mut Duration) -> Result<ToolOutput, ToolError>,
    ) -> Result<ToolUse, AgentError> {
        let effect = tool.map(|tool| tool.effect);
        let input = input_text(&call.input);
        self.reporter.event(&Event::Tool {
            name: call.name.clone(),
            subject: subject.unwrap_or_else(|| input.clone()),
            input,
            arguments: call.input.clone(),
            category: tool.map(|tool| tool.category),
            asks: effect == Some(Effect::Asks),
            verb,
        });
        let mut since = self.clock.elapsed();
        let (output, failure) = match use_tool(&mut since) {
            Ok(output) => {
                let failure = output.is_failure.then(|| output.text.clone().into());
                (output, failure.map(|failure| self.redacted(&failure)))
            }
            Err(ToolError::Failed(failure)) => {
                let failure = self.redacted(&failure);
                let is_refused = failure.code == CallFailure::NOT_ALLOWED;
                let brief = is_refused.then(|| "not allowed".to_owned());
                let output = ToolOutput::text(failure.to_string()).in_brief(brief);
                (output, Some(failure))
            }
            Err(ToolError::Fatal(error)) => {
                let end = ToolEnd {
                    text: "stopped".to_owned(),
                    brief: Some("stopped".to_owned()),
                    failed: true,
                    took: self.clock.elapsed().saturating_sub(since),
                    ..ToolEnd::default()
                };
                self.reporter.event(&Event::ToolResult {
                    name: call.name.clone(),
                    end,
                    is_end: false,
                });
                return Err(error);
            }
        };
        let failed = failure.is_some();
        let took = self.clock.elapsed().saturating_sub(since);
        let text = self.outgoing(&output.text);
        let action = Action {
            tool: call.name.clone().into(),
            failed,
            id: Some(call.id.clone()).filter(|id| !id.is_empty()),
            input: Some(call.input.clone()).filter(|input| *input != Value::Null),
            result: Some(text.clone()),
            exit_code: output.command.code(),
            seconds: Some(Seconds(took)),
            ..Action::default()
        };
        self.host.note(Note::Acted(Box::new(action), effect))?;
        self.reporter.event(&Event::ToolResult {
            name: call.name.clone(),
            end: ToolEnd {
                text: text.clone(),
                brief: output.brief.clone(),
                warnings: output.warnings.clone(),
                failed,
                command: output.command,
                took,
            },
            is_end: output.is_end,
        });
        Ok(ToolUse {
            output,
            text,
            failure,
        })
    }

    /// Previews a call, redacted.
    pub(crate) fn preview(
        &self,
        tool: &dyn Tool,
        arguments: &Arguments,
    ) -> Result<Option<String>, ToolError> {
        let preview = tool.preview(arguments)?;
        Ok(preview.map(|preview| self.redactor.text(&preview).into_owned()))
    }

    /// Returns the failure with keys redacted and its message limited in size.
    fn redacted(&self, failure: &CallFailure) -> CallFailure {
        CallFailure {
            message: self.outgoing(&failure.message),
            hint: self.outgoing(&failure.hint),
            code: failure.code,
        }
    }

    /// Redacts and then truncates the text: in this order, since a cut through a key would leave part of it.
    fn outgoing(&self, text: &str) -> String {
        let redacted = self.redactor.text(text);
        let censored = self.censor.map(|censor| censor(&redacted));
        bounded(censored.as_deref().unwrap_or(&redacted), OUTPUT_LIMIT)
    }
}
