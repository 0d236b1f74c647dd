//! The verdict on the gate: the results of the old tests on the new code, and of the new tests on the old code. Plain
//! data.

use serde::{Deserialize, Serialize};

use crate::sys::text;

/// Maximum number of names in a line.
const NAMED: usize = 5;

/// The effect of a change on the gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateChange {
    /// The gate is as before.
    #[default]
    None,
    /// Something was added to the gate, and nothing removed.
    Added,
    /// Part of the gate is different or gone.
    Changed,
}

/// The outcome of the build with the old gate and the new code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OldGate {
    /// The build passed: the new code passes the old tests.
    Passed,
    /// The build failed: the new code fails old tests.
    Failed,
    /// The build ended too early, or gate and code cannot be separated.
    Inconclusive,
    /// No build was needed: the gate is as before.
    #[default]
    NotRun,
}

/// The outcome of the build with the new tests and the old code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewTests {
    /// The build failed in a test.
    Proven,
    /// The build passed: the tests do not distinguish the old code from the new.
    NotDiscriminating,
    /// The build ended before the tests.
    Inconclusive,
    /// No build was needed: no test is new or changed.
    #[default]
    #[serde(rename = "no-new-tests")]
    None,
}

/// A reason why a strict gate fails a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateFault {
    /// The new code fails old tests.
    GateWeakened,
    /// New tests pass without the change.
    NotProven,
}

/// The verdict on the gate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRecord {
    /// The files of the gate that the change touches.
    pub files: Vec<String>,
    /// The effect on them.
    pub change: GateChange,
    /// The result of the tests as they were before.
    pub old_gate: OldGate,
    /// The proof of the change by the new tests.
    pub new_tests: NewTests,
    /// The files and tests that the query names, if the old gate passes without exactly these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excused: Vec<String>,
    /// Files with unknown changes, made by something other than an agent's own tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<String>,
}

impl GateFault {
    /// Returns the fault's name, and the message for each file of the gate.
    pub fn name_and_message(self) -> [&'static str; 2] {
        match self {
            Self::GateWeakened => [
                "gate-weakened",
                "what was tested before does not hold: with this file as it was, the build fails",
            ],
            Self::NotProven => [
                "not-proven",
                "the new tests prove nothing: they pass without the change, too",
            ],
        }
    }
}

impl GateRecord {
    /// Returns the reasons why a strict gate fails the change. New tests that assert nothing need not prove anything.
    pub fn faults(&self) -> Vec<GateFault> {
        let is_weakened = self.old_gate == OldGate::Failed && self.excused.is_empty();
        let proves_nothing = self.new_tests == NewTests::NotDiscriminating;
        let weakened = is_weakened.then_some(GateFault::GateWeakened);
        let unproven = proves_nothing.then_some(GateFault::NotProven);
        weakened.into_iter().chain(unproven).collect()
    }

    /// Marks the results as inconclusive where changes to these files may have caused them.
    pub fn leave_open(&mut self, unjudged: &[String]) {
        if unjudged.is_empty() {
            return;
        }
        self.unjudged = unjudged.to_vec();
        if self.old_gate != OldGate::Failed {
            self.old_gate = OldGate::Inconclusive;
        }
        if self.new_tests != NewTests::Proven {
            self.new_tests = NewTests::Inconclusive;
        }
    }

    /// Returns the verdict in two lines.
    pub fn summary(&self) -> [String; 2] {
        let old = match (self.old_gate, self.change) {
            (OldGate::NotRun, _) => "the gate is as it was".to_owned(),
            (OldGate::Passed, GateChange::Added) => "passed, what is new is added".to_owned(),
            (OldGate::Passed, _) => "passed: what was tested before holds".to_owned(),
            (OldGate::Failed, _) if !self.excused.is_empty() => format!(
                "failed, but the query names what changed: {}",
                listed(&self.excused)
            ),
            (OldGate::Failed, _) => "failed: what was tested before does not hold".to_owned(),
            (OldGate::Inconclusive, _) if !self.unjudged.is_empty() => format!(
                "inconclusive: others than the agent's own tools have changed {}",
                listed(&self.unjudged)
            ),
            (OldGate::Inconclusive, _) => "inconclusive".to_owned(),
        };
        let files = match self.files.as_slice() {
            [] => String::new(),
            files => format!(" ({})", listed(files)),
        };
        let new = match self.new_tests {
            NewTests::Proven => "proven: they fail without the change",
            NewTests::NotDiscriminating => "not discriminating: they pass without the change",
            NewTests::Inconclusive => "inconclusive",
            NewTests::None => "no test is new",
        };
        [
            format!("old gate, new code: {old}{files}"),
            format!("new tests, old code: {new}"),
        ]
    }
}

/// Lists the first names.
pub fn listed(names: &[String]) -> String {
    text::listed(names.iter().map(|name| format!("`{name}`")), NAMED)
}
