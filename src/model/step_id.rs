//! Identifiers of the calls in a run. Plain data.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Maximum number of repairs of a commit.
pub const REPAIRS: u16 = 3;
/// Maximum length of a purpose's name, in bytes.
const LONGEST_NAME: usize = 64;

/// The purpose of a call to a model. The set is open: a workflow or a profile may define its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Purpose(#[serde(deserialize_with = "name")] Cow<'static, str>);

/// Validates a purpose's name, which becomes part of file names; a record may contain anything.
fn name<'d, D: Deserializer<'d>>(input: D) -> Result<Cow<'static, str>, D::Error> {
    let name = String::deserialize(input)?;
    let is_plain = name.len() <= LONGEST_NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    is_plain
        .then_some(Cow::Owned(name))
        .ok_or_else(|| D::Error::custom("a purpose is of lower-case letters and hyphens"))
}

impl Purpose {
    /// The first query of a commit.
    pub const INITIAL: Self = Self::new("initial");
    /// Another first query of a commit, made in parallel; numbered from 2.
    pub const ATTEMPT: Self = Self::new("attempt");
    /// A repair query of a commit.
    pub const REPAIR: Self = Self::new("repair");
    /// A query of a commit that adds the files requested by the previous reply.
    pub const CONTEXT: Self = Self::new("context");
    /// The one query of a consistency report.
    pub const REPORT: Self = Self::new("report");
    /// The findings of a part of the code base, for a consistency report.
    pub const PART: Self = Self::new("part");
    /// A consistency report's findings as data.
    pub const FINDINGS: Self = Self::new("findings");
    /// A change with which a model is tested.
    pub const TRIAL: Self = Self::new("trial");
    /// The next step of an agent's work.
    pub const STEP: Self = Self::new("step");
    /// The next step of an auditor, an agent that judges another's work.
    pub const AUDIT: Self = Self::new("audit");
    /// A helper, an agent to which another one has delegated part of its work.
    pub const HELPER: Self = Self::new("helper");
    /// A command that the user runs.
    pub const COMMAND: Self = Self::new("command");
    /// The summary of a conversation that has grown too long.
    pub const COMPRESSION: Self = Self::new("compression");
    /// The plan agent's list of steps.
    pub const PLAN: Self = Self::new("plan");
    /// The plan agent's summary of its work.
    pub const SUMMARY: Self = Self::new("summary");
    /// The publication of an orchestration's result, a step that the program takes itself.
    pub const PUBLISH: Self = Self::new("publish");
    /// The build that proves an agent's work, a step that the program takes itself.
    pub const PROOF: Self = Self::new("proof");
    /// A request to restore a plan document that can no longer be read.
    pub const PLAN_REPAIR: Self = Self::new("plan-repair");

    /// Creates a purpose. Its name consists of lower-case letters and hyphens, since it becomes part of file names.
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Returns the name, as used in records and file names.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Returns whether it belongs to the commit workflow or its report, whose file names the contract defines.
    pub fn is_workflows(&self) -> bool {
        [Self::INITIAL, Self::ATTEMPT, Self::REPAIR, Self::CONTEXT].contains(self)
            || self.is_reports()
    }

    /// Returns whether its replies are a consistency report, the findings of a part for one, or its findings as data.
    pub fn is_reports(&self) -> bool {
        [Self::REPORT, Self::PART, Self::FINDINGS].contains(self)
    }
}

impl From<String> for Purpose {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

/// The identity of a call in a run: its purpose and number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId {
    /// The purpose of the call.
    pub purpose: Purpose,
    /// The number of the attempt, the repair, the part of the code base, or the call of an agent's run, counted from 1;
    /// otherwise 0.
    pub number: u16,
    /// The number of earlier replies to this query that were rejected, each of which caused it to be repeated.
    pub reask: u16,
}

impl StepId {
    /// The first query of a commit.
    pub const INITIAL: Self = Self::new(Purpose::INITIAL, 0);
    /// The one query of a consistency report.
    pub const REPORT: Self = Self::new(Purpose::REPORT, 0);
    /// The query for a consistency report's findings as data.
    pub const FINDINGS: Self = Self::new(Purpose::FINDINGS, 0);

    /// Creates the identifier of the call with this purpose and number.
    pub const fn new(purpose: Purpose, number: u16) -> Self {
        Self {
            purpose,
            number,
            reask: 0,
        }
    }

    /// Creates the identifier of a commit's repair; `number` counts from 1.
    pub const fn repair(number: u16) -> Self {
        Self::new(Purpose::REPAIR, number)
    }

    /// Returns the identifier of the same query, repeated because its reply was rejected.
    pub fn again(self) -> Self {
        Self {
            reask: self.reask + 1,
            ..self
        }
    }

    /// Returns the name capitalized, as the title of a line: `The change`, `Repair 2`.
    pub fn title(&self) -> String {
        let name = self.to_string();
        let mut letters = name.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

impl fmt::Display for StepId {
    /// Formats the call's name for users: `the change`, `repair 2`, `repair 2, again`, `audit 7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.purpose.name(), self.number) {
            ("initial", _) => f.write_str("the change"),
            ("report" | "findings", _) => write!(f, "the {}", self.purpose.name()),
            (name, number) => write!(f, "{name} {number}"),
        }?;
        match self.reask {
            0 => Ok(()),
            1 => f.write_str(", again"),
            nth => write!(f, ", again ({nth})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purpose_that_is_read_is_part_of_a_file_name_and_no_more() {
        for (json, is_read) in [
            (r#""step""#, true),
            (r#""final-check""#, true),
            (r#""""#, true),
            (r#""x/../../y""#, false),
            (r#""..""#, false),
            (r#""A""#, false),
            ("\"a\0\"", false),
        ] {
            assert_eq!(
                serde_json::from_str::<Purpose>(json).is_ok(),
                is_read,
                "{json}"
            );
        }
        let long = format!("\"{}\"", "a".repeat(LONGEST_NAME + 1));
        assert!(serde_json::from_str::<Purpose>(&long).is_err());
    }

    #[test]
    fn steps_are_reported_by_their_purpose_whatever_that_is() {
        for (step, expected) in [
            (StepId::INITIAL, "the change"),
            (StepId::REPORT, "the report"),
            (StepId::FINDINGS, "the findings"),
            (StepId::repair(2), "repair 2"),
            (StepId::new(Purpose::ATTEMPT, 2), "attempt 2"),
            (StepId::new(Purpose::PLAN_REPAIR, 3), "plan-repair 3"),
        ] {
            assert_eq!(step.to_string(), expected);
        }
    }
}
