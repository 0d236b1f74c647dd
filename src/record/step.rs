//! One step of a run: a call to the model and what came of it. Plain data.
//!
//! A run is a list of steps, whatever its workflow. What shows a run (page, story, summary, events) is told by them
//! what happened, and shows the texts of replies and builds from their own files. A run's folder holds the steps in
//! `steps.jsonl`, with the inputs and results of an agent's tools, and in `result.json` without these.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::seconds::Seconds;
use crate::exec::sandbox::SandboxMode;
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::model::{Purpose, StepId, Tier};
use crate::project::changed_files::EditsRecord;
use std::fmt::{self, Display};

/// The way build.sh ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BuildRecord {
    /// Its exit code; null where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// True if it was ended because its time was over.
    #[serde(default)]
    pub timed_out: bool,
    /// The time it ran.
    pub seconds: Seconds,
    /// The sandbox mode it ran in.
    #[serde(default)]
    pub sandbox: SandboxMode,
}

impl BuildRecord {
    /// Returns whether it ended as it was to.
    pub fn passed(&self) -> bool {
        self.code == Some(0)
    }
}

impl Display for BuildRecord {
    /// Returns how it ended: `passed`, `exit code 1`, `signal 9`, `timed out`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(0), _) => f.write_str("passed"),
            (Some(code), _) if !self.timed_out => write!(f, "exit code {code}"),
            (None, Some(signal)) if !self.timed_out => write!(f, "signal {signal}"),
            _ => f.write_str("timed out"),
        }
    }
}

/// A part of a prompt, and how large it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    /// `system`, `build.sh output`, `query`, `codebase` or `file replacements`.
    pub part: Cow<'static, str>,
    /// Its length in bytes, as UTF-8.
    pub bytes: u64,
}

/// A call to the model and what came of it. What did not happen is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The purpose of the call to the model.
    #[serde(rename = "kind")]
    pub purpose: Purpose,
    /// The number of the repair, from 1 on, or of an agent's call, from 1 on; else 0.
    pub number: u16,
    /// The number of replies to this query that were rejected before, so that it was asked again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reask: u16,
    /// The model that was asked.
    pub model: Option<String>,
    /// The model that has answered, by its vendor's word, where that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    /// The tier of service that has answered, where it is not the standard one, or another one was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// The parts of the prompt, in their order.
    #[serde(default)]
    pub prompt: Vec<PartRecord>,
    /// The parts of the reply, in their order: `text`, `call`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reply: Vec<PartRecord>,
    /// The time the model took, retries included.
    pub seconds: Seconds,
    /// The vendor's finish reason.
    pub finish: Option<String>,
    /// The tokens that the call took, as the vendor counts them.
    pub usage: Option<Usage>,
    /// The cost of the call, by the model's price; null where the price or the tokens are not known.
    pub cost: Option<Usd>,
    /// The folder of the run that the reply was taken from, since this one resumes that; it was paid there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// True if the reply's edits were on the disk already.
    #[serde(
        rename = "on_disk",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_on_disk: bool,
    /// The reason nothing of the reply was applied, with all of its mistakes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// The files that the reply changed.
    pub edits: Option<EditsRecord>,
    /// The build that followed.
    pub build: Option<BuildRecord>,
    /// An agent's thoughts on its work, from the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thoughts: Option<String>,
    /// The words with which an agent has ended its work, in the place of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// True if the step ends an audit, and the audit passes the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The tools that an agent used, in their order.
    #[serde(rename = "tools", default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_zero(number: &u16) -> bool {
    *number == 0
}

/// A tool that an agent used, and what came of it. Everything but the name and the failure is left out of
/// `result.json`, and in runs of before.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The tool's name.
    #[serde(rename = "name")]
    pub tool: Cow<'static, str>,
    /// True if it failed.
    pub failed: bool,
    /// The call's id, by which its result is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The result, as the model received it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The exit code of the command that it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The time it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Seconds>,
    /// The change to the project's files, as a unified diff; none where that would be very long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

impl Step {
    /// A step of which no more is known yet.
    pub fn new(id: StepId, model: &str, prompt: Vec<PartRecord>) -> Self {
        Self {
            purpose: id.purpose,
            number: id.number,
            reask: id.reask,
            model: Some(model.to_owned()),
            prompt,
            ..Self::default()
        }
    }

    /// One that the program takes by itself, which costs nothing.
    pub fn own(id: StepId) -> Self {
        Self {
            purpose: id.purpose,
            number: id.number,
            cost: Some(Usd::ZERO),
            ..Self::default()
        }
    }

    /// Returns whether the program has taken it by itself: no model was asked, and that it cost nothing is known.
    pub fn is_own(&self) -> bool {
        self.model.is_none() && self.cost == Some(Usd::ZERO)
    }

    /// Returns the call's id within the run.
    pub fn id(&self) -> StepId {
        StepId {
            purpose: self.purpose.clone(),
            number: self.number,
            reask: self.reask,
        }
    }

    /// Returns whether an agent took it: it used tools, or ended in a verdict or a summary.
    pub fn is_agents(&self) -> bool {
        !self.purpose.is_workflows()
    }

    /// The files that it changed, each with what was done to it: `wrote` or `removed`.
    pub fn changed_files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.edits.iter().flat_map(|edits| {
            let written = edits.written.iter().map(|path| ("wrote", path.as_str()));
            written.chain(edits.removed.iter().map(|path| ("removed", path.as_str())))
        })
    }

    /// Leaves out what only `steps.jsonl` holds.
    pub fn shorten(&mut self) {
        (self.thoughts, self.answer) = (None, None);
        for action in &mut self.actions {
            *action = Action {
                tool: std::mem::take(&mut action.tool),
                failed: action.failed,
                ..Action::default()
            };
        }
    }
}

impl Action {
    /// Returns whether it came to nothing: it failed, or the command that it ran did.
    pub fn is_bad(&self) -> bool {
        self.failed || self.exit_code.is_some_and(|code| code != 0)
    }

    /// The input as a person reads it.
    pub fn input_text(&self) -> String {
        self.input.as_ref().map(input_text).unwrap_or_default()
    }
}

/// The steps as `result.json` has them.
pub(super) fn brief<S: Serializer>(steps: &[Step], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(steps.iter().map(|step| {
        let mut step = step.clone();
        step.shorten();
        step
    }))
}

/// Formats a tool's input for a person: each argument below the other, those of one line first; texts as they are, and
/// the rest as JSON.
pub fn input_text(input: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let Value::Object(arguments) = input else {
        return text(input);
    };
    let mut texts: Vec<String> = arguments.values().map(text).collect();
    texts.sort_by_key(|text| text.contains('\n'));
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_input_is_told_as_text() {
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
