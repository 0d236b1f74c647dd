//! One step of a run: a call to the model and its outcome. Plain data.
//!
//! A run is a list of steps, whatever its workflow. Code that shows a run (page, story, summary, events) learns from
//! them what happened, and reads the texts of replies and builds from their own files. A run's folder stores the steps
//! in `steps.jsonl`, with the inputs and results of an agent's tools, and in `result.json` without these.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::finding::Finding;
use super::seconds::Seconds;
use crate::exec::sandbox::SandboxMode;
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::model::{Provider, Purpose, Reply, ReplyFormat, StepId, Tier};
use crate::project::changed_files::EditsRecord;
use crate::sys::defaults::is_default;
use std::fmt::{self, Display};

/// The outcome of `build.sh`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildRecord {
    /// The exit code; null if a signal ended the build.
    pub code: Option<i32>,
    /// The signal that ended the build.
    pub signal: Option<i32>,
    /// True if the build was ended because it ran out of time.
    #[serde(default)]
    pub timed_out: bool,
    /// The duration of the build.
    pub seconds: Seconds,
    /// The sandbox mode that the build ran in.
    #[serde(default)]
    pub sandbox: SandboxMode,
    /// The SHA-256 digest of the `build.sh` that ran; left out in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

impl BuildRecord {
    /// Returns whether the build succeeded.
    pub fn passed(&self) -> bool {
        self.code == Some(0)
    }
}

impl Display for BuildRecord {
    /// Formats the outcome: `passed`, `exit code 1`, `signal 9`, `timed out`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(0), _) => f.write_str("passed"),
            (Some(code), _) if !self.timed_out => write!(f, "exit code {code}"),
            (None, Some(signal)) if !self.timed_out => write!(f, "signal {signal}"),
            _ => f.write_str("timed out"),
        }
    }
}

/// A part of a prompt or reply, and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    /// `system`, `build.sh output`, `query`, `codebase` or `file replacements`.
    pub part: Cow<'static, str>,
    /// The part's length in bytes, as UTF-8.
    pub bytes: u64,
}

impl PartRecord {
    /// Returns the parts of a reply. Its text has a file of its own.
    pub fn of_reply(reply: &Reply) -> Vec<Self> {
        let text = (!reply.text.is_empty()).then(|| Self {
            part: "text".into(),
            bytes: reply.text.len() as u64,
        });
        let calls = reply.calls.iter().map(|call| Self {
            part: "call".into(),
            bytes: call.input.to_string().len() as u64,
        });
        text.into_iter().chain(calls).collect()
    }
}

/// A call to the model and its outcome. Fields that do not apply are null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The purpose of the call to the model.
    #[serde(rename = "kind")]
    pub purpose: Purpose,
    /// The number of the repair or of an agent's call, counted from 1; otherwise 0.
    #[serde(default)]
    pub number: u16,
    /// The number of earlier replies to this query that were rejected, each of which caused it to be repeated.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reask: u16,
    /// The requested model.
    pub model: Option<String>,
    /// The model that answered, by its vendor's name, if it is a different one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    /// The version of the model that answered, if its vendor reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_version: Option<String>,
    /// The service tier that answered, if it is not the standard one, or a different one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The parts of the prompt, in order.
    #[serde(default)]
    pub prompt: Vec<PartRecord>,
    /// The format of the reply, if it has edits: a replay reads it in the same format.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reply_format: ReplyFormat,
    /// The parts of the reply, in order: `text`, `call`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply: Vec<PartRecord>,
    /// The provider of the requested model; only in `steps.jsonl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// The time from the start of the run to the start of the step; only in `steps.jsonl`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Seconds>,
    /// The time the model took, retries included.
    #[serde(default)]
    pub seconds: Seconds,
    /// The vendor's finish reason.
    pub finish: Option<String>,
    /// The tokens that the call used, as counted by the vendor.
    pub usage: Option<Usage>,
    /// The cost of the call, at the model's price; zero if its server refused it; null if the
    /// price or the tokens are unknown.
    pub cost: Option<Usd>,
    /// The maximum cost of the call under a limit on the run's cost, as long as its cost is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<Usd>,
    /// The folder of the run that this one resumes, if the reply was taken from there; that run paid for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// True if the reply's edits were already on disk.
    #[serde(rename = "on_disk", default, skip_serializing_if = "is_default")]
    pub is_on_disk: bool,
    /// True if a secret in the reply was redacted, so that the log lacks it.
    #[serde(rename = "redacted", default, skip_serializing_if = "is_default")]
    pub is_redacted: bool,
    /// The reason that the reply was not applied, with all of its mistakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// The files that the reply changed.
    pub edits: Option<EditsRecord>,
    /// The build that followed the edits.
    pub build: Option<BuildRecord>,
    /// The problems in the build's output; left out if it passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// An agent's thoughts on its work, from the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thoughts: Option<String>,
    /// The agent's final answer, given instead of using a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The verdict of the audit that this step ends: true if the work passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The tools that an agent used, in order.
    #[serde(rename = "tools", default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

/// A tool that an agent used, and its outcome. Everything but the name and the failure is left out of `result.json`,
/// and was left out of older runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The tool's name.
    #[serde(rename = "name")]
    pub tool: Cow<'static, str>,
    /// True if the tool failed.
    pub failed: bool,
    /// The call's id, which its result refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The result, as sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The exit code of the command that it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The time from the start of the run to the start of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Seconds>,
    /// The time that the tool took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Seconds>,
    /// The change to the project's files, as a unified diff; left out if it would be very long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Step {
    /// Returns whether the reply's edits were applied, by this run or one that it resumed.
    pub fn is_applied(&self) -> bool {
        self.edits.is_some() || self.is_on_disk
    }

    /// Creates a step about which nothing else is known yet.
    pub fn new(id: StepId, model: &str, prompt: Vec<PartRecord>) -> Self {
        Self {
            model: Some(model.to_owned()),
            prompt,
            ..Self::from(id)
        }
    }

    /// Creates a step that the program takes itself, at no cost.
    pub fn own(id: StepId) -> Self {
        Self {
            cost: Some(Usd::ZERO),
            ..Self::from(id)
        }
    }

    /// Returns whether the program took the step itself: no model was asked, and the cost is known to be zero.
    pub fn is_own(&self) -> bool {
        self.model.is_none() && self.cost == Some(Usd::ZERO)
    }

    /// Returns the call's identifier within the run.
    pub fn id(&self) -> StepId {
        StepId {
            purpose: self.purpose.clone(),
            number: self.number,
            reask: self.reask,
        }
    }

    /// Returns whether an agent took the step: it used tools, or ended in a verdict or a summary.
    pub fn is_agents(&self) -> bool {
        !self.purpose.is_workflows()
    }

    /// Returns the files that the step changed, each with the action taken: `wrote` or `removed`.
    pub fn changed_files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.edits.iter().flat_map(|edits| {
            let written = edits.written.iter().map(|path| ("wrote", path.as_str()));
            written.chain(edits.removed.iter().map(|path| ("removed", path.as_str())))
        })
    }

    /// Removes the fields that only `steps.jsonl` stores.
    pub fn shorten(&mut self) {
        (self.thoughts, self.answer) = (None, None);
        (self.provider, self.at) = (None, None);
        for action in &mut self.actions {
            *action = Action {
                tool: std::mem::take(&mut action.tool),
                failed: action.failed,
                ..Action::default()
            };
        }
    }
}

impl From<StepId> for Step {
    /// Creates a step known only by its identifier.
    fn from(id: StepId) -> Self {
        Self {
            purpose: id.purpose,
            number: id.number,
            reask: id.reask,
            ..Self::default()
        }
    }
}

impl Action {
    /// Returns whether it was unsuccessful: it failed, or the command that it ran did.
    pub fn is_bad(&self) -> bool {
        self.failed || self.exit_code.is_some_and(|code| code != 0)
    }

    /// Formats the input for a person.
    pub fn input_text(&self) -> String {
        self.input.as_ref().map(input_text).unwrap_or_default()
    }

    /// Formats what it acts on: the arguments of one line, or else the first line, with an ellipsis for the rest.
    pub fn subject(&self) -> String {
        let texts = self.input.as_ref().map(texts).unwrap_or_default();
        let trimmed = texts.iter().map(|text| text.trim());
        let mut lines: Vec<&str> = trimmed.take_while(|text| !text.contains('\n')).collect();
        if lines.len() < texts.len() {
            let first = texts[0].trim().lines().next().filter(|_| lines.is_empty());
            lines.extend(first.into_iter().chain(["\u{2026}"]));
        }
        lines.join(" ")
    }
}

/// Serializes the steps in the short form of `result.json`.
pub(super) fn brief<S: Serializer>(steps: &[Step], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(steps.iter().map(|step| {
        let mut step = step.clone();
        step.shorten();
        step
    }))
}

/// Formats a tool's input for a person: one argument per line, single lines first; strings as they are, and everything
/// else as JSON.
pub fn input_text(input: &Value) -> String {
    texts(input).join("\n")
}

/// Returns the arguments of a tool as texts, single lines first.
fn texts(input: &Value) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let Value::Object(arguments) = input else {
        return vec![text(input)];
    };
    let mut texts: Vec<String> = arguments.values().map(text).collect();
    texts.sort_by_key(|text| text.contains('\n'));
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_input_is_reported_as_text() {
        for (input, expected) in [
            (Value::Null, ""),
            (json!({}), ""),
            (
                json!({"content": "a\nb\n", "path": "x.txt"}),
                "x.txt\na\nb\n",
            ),
            (
                json!({"command": "ls", "limit": 3, "lines": [1, 2]}),
                "ls\n3\n[1,2]",
            ),
            (json!("text"), "text"),
        ] {
            let input = (!input.is_null()).then_some(input);
            let action = Action {
                input,
                ..Action::default()
            };
            assert_eq!(action.input_text(), expected);
        }
    }
}
