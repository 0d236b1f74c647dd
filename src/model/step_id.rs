//! Which call of a run something belongs to. Plain data.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// How many repairs a commit may have.
pub const REPAIRS: u16 = 3;

/// What a model is called for. An open name: a workflow or a profile may bring its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Purpose(Cow<'static, str>);

impl Purpose {
    /// A commit's first query.
    pub const INITIAL: Self = Self::new("initial");
    /// A commit's repair.
    pub const REPAIR: Self = Self::new("repair");
    /// The one query of a consistency report.
    pub const REPORT: Self = Self::new("report");
    /// The next step of an agent's work.
    pub const STEP: Self = Self::new("step");
    /// The next step of the agent that judges another's work.
    pub const AUDIT: Self = Self::new("audit");
    /// The summary of a conversation that has grown too long.
    pub const COMPRESSION: Self = Self::new("compression");

    /// The purpose of this name: lower-case letters and hyphens, since it becomes part of file names.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether it is one of the commit workflow and its report, whose files the contract names.
    #[must_use]
    pub fn is_workflows(&self) -> bool {
        [Self::INITIAL, Self::REPAIR, Self::REPORT].contains(self)
    }
}

impl From<String> for Purpose {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

/// A call of a run: what it is for, and its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId {
    /// What the model is called for.
    pub purpose: Purpose,
    /// The number of the repair, or of the call among all calls of an agent's run, from 1 on; else 0.
    pub number: u16,
}

impl StepId {
    /// A commit's first query.
    pub const INITIAL: Self = Self::new(Purpose::INITIAL, 0);
    /// The one query of a consistency report.
    pub const REPORT: Self = Self::new(Purpose::REPORT, 0);

    /// The call of this number.
    #[must_use]
    pub const fn new(purpose: Purpose, number: u16) -> Self {
        Self { purpose, number }
    }

    /// A commit's repair, from 1 on.
    #[must_use]
    pub const fn repair(number: u16) -> Self {
        Self::new(Purpose::REPAIR, number)
    }

    /// What it is called where a line begins with it: `The change`, `Repair 2`.
    #[must_use]
    pub fn title(&self) -> String {
        let name = self.to_string();
        let mut letters = name.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    }
}

impl fmt::Display for StepId {
    /// As people are told of it: `the change`, `repair 2`, `audit 7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.purpose.name(), self.number) {
            ("initial", _) => f.write_str("the change"),
            ("report", _) => f.write_str("the report"),
            (name, number) => write!(f, "{name} {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_by_their_purpose_whatever_that_is() {
        for (step, expected) in [
            (StepId::INITIAL, "the change"),
            (StepId::REPORT, "the report"),
            (StepId::repair(2), "repair 2"),
            (StepId::new(Purpose::new("plan"), 3), "plan 3"),
        ] {
            assert_eq!(step.to_string(), expected);
        }
    }
}
