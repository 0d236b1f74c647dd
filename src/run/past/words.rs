//! The words for a run's outcome, for times and for amounts. Pure.

use std::time::Duration;

use super::figures::taken_back;
use super::history::{PastRun, UnrecordedState};
use crate::model::Purpose;
use crate::record::result::{AgentRecord, RunRecord, TreeState};
use crate::sys::diff::Stat;
use crate::sys::numbers::{counted, grouped};

/// Returns the symbol for an outcome, which does not rely on colour.
pub fn mark(is_good: Option<bool>) -> &'static str {
    match is_good {
        Some(true) => "\u{2713}",
        Some(false) => "\u{2717}",
        None => "\u{2026}",
    }
}

/// Returns whether a run was successful; `None` if that is unknown.
pub fn status(run: &PastRun) -> Option<bool> {
    run.record.as_ref().map(|record| record.exit.code == 0)
}

/// Names how a run ended.
pub fn result(record: &RunRecord) -> String {
    format!("{}{}", record.outcome(), taken_back(record.tree))
}

/// Returns the outcome of a run as a sentence without its full stop. `state` is that of a run without a record.
pub fn headline(run: &PastRun, state: UnrecordedState) -> String {
    let Some(record) = &run.record else {
        let state = match state {
            UnrecordedState::Running => "it is still running",
            UnrecordedState::Unfinished => "it is still running, or it was killed",
            UnrecordedState::Killed => "it was killed",
        };
        return format!("Not finished: {state}");
    };
    let text = match (&*record.exit.name, &*record.workflow) {
        ("done", "commit") => after_repairs("The build passed", record),
        ("build-failed", _) => after_repairs("The build still fails", record),
        (name, workflow) => match ended(name, workflow, record) {
            Some(text) => text.to_owned(),
            None => format!("Ended as {name}"),
        },
    };
    match record.tree {
        TreeState::PutBack => format!("{text}; the edits were taken back"),
        _ if run.undone_by.is_some() => format!("{text}; the changes were undone later"),
        _ => text,
    }
}

fn ended(name: &str, workflow: &str, record: &RunRecord) -> Option<&'static str> {
    let mut steps = record.steps.iter();
    Some(match (name, workflow) {
        ("done", "consistency") => "The report is written",
        ("done", "undo") => "The project was put back",
        ("done", _)
            if record
                .agent
                .as_ref()
                .is_some_and(AgentRecord::directs_agents) =>
        {
            "A review has passed the work"
        }
        ("done", _) if steps.any(|step| step.purpose == Purpose::AUDIT) => {
            "The work is done, and the audit has passed it"
        }
        ("done", _) => "Done",
        ("audit-failed", _) => "The audit did not pass the work",
        ("tools-failed", _) => "The agent's tools failed again and again",
        ("loop-limit", _) => "The agent asked the model as often as it may",
        ("iteration-limit", _) => "No review has passed the work",
        ("branch-timeout", _) => "A branch has taken too long",
        ("publish-failed", _) => "The work could not be published",
        ("mcp-failed", _) => "The tool server could not be reached",
        ("gate-changed", _) => "The build has changed a protected file",
        ("warnings-denied", _) => "The build passed, but there are warnings that are denied",
        ("gate-weakened", _) => "The build passed, but the change weakens the gate",
        ("not-proven", _) => "The build passed, but that proves nothing",
        ("findings", _) => "The report has findings that are denied",
        ("over-budget", _) => "The next call might have exceeded the budget",
        ("not-permitted", _) => "The agent was not permitted what it tried",
        ("step-failed", _) => "A step of the plan failed",
        ("stopped", _) => "The user stopped the work",
        ("unreliable", _) => "The model's replies were malformed too often",
        ("usage", _) => "The run was refused",
        ("not-ready", _) => "The project was not ready",
        ("model-failed", _) => "There is no whole reply",
        ("reply-rejected", _) if record.agent.is_some() => {
            "The agent's replies were not understood"
        }
        ("reply-rejected", _) => "The reply was rejected",
        ("local-io", _) => "A local file or program failed",
        ("interrupted", _) => "The run was interrupted",
        _ => return None,
    })
}

fn after_repairs(text: &str, record: &RunRecord) -> String {
    match record.repairs() {
        0 => text.to_owned(),
        repairs => format!("{text} after {}", count(repairs, "repair")),
    }
}

/// Returns the number of calls an agent made, by purpose.
pub fn calls(record: &RunRecord) -> String {
    let mut calls: Vec<(&str, usize)> = Vec::new();
    for step in record.steps.iter().filter(|step| !step.is_own()) {
        let name = step.purpose.name();
        match calls.iter_mut().find(|(known, _)| *known == name) {
            Some((_, calls)) => *calls += 1,
            None => calls.push((name, 1)),
        }
    }
    let name = |name| match name {
        "audit" => "audit call",
        "summary" => "summary call",
        name => name,
    };
    let words = calls.iter().map(|&(of, calls)| count(calls, name(of)));
    words.collect::<Vec<_>>().join(", ")
}

/// Formats a duration in at most two units.
pub fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    match whole {
        0 => format!("{}\u{a0}ms", duration.as_millis()),
        1..60 => format!("{:.1}\u{a0}s", duration.as_secs_f64()),
        60..3600 => format!("{}\u{a0}min {:02}\u{a0}s", whole / 60, whole % 60),
        _ => format!("{}\u{a0}h {:02}\u{a0}min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats a size in bytes, KB or MB.
pub fn bytes(bytes: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = bytes.saturating_mul(10) / unit;
        format!("{}.{}", grouped(tenths / 10), tenths % 10)
    };
    match bytes {
        1 => "1\u{a0}byte".to_owned(),
        0..1000 => format!("{bytes}\u{a0}bytes"),
        1000..1_000_000 => format!("{}\u{a0}KB", tenths(1000)),
        _ => format!("{}\u{a0}MB", tenths(1_000_000)),
    }
}

/// Counts the lines of a change.
pub fn lines(added: u64, removed: u64) -> String {
    format!("+{} \u{2212}{} lines", grouped(added), grouped(removed))
}

/// Sums up a change in a sentence without its full stop.
pub fn changed(stat: &Stat) -> String {
    let files = count(stat.files.len(), "file");
    format!("{files} changed, {}", lines(stat.added(), stat.removed()))
}

/// Returns a count and its noun.
pub fn count(count: usize, what: &str) -> String {
    counted(count as u64, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_put_into_words() {
        for (millis, expected) in [
            (0, "0\u{a0}ms"),
            (41, "41\u{a0}ms"),
            (41_830, "41.8\u{a0}s"),
            (65_000, "1\u{a0}min 05\u{a0}s"),
            (3_700_000, "1\u{a0}h 01\u{a0}min"),
        ] {
            assert_eq!(seconds(Duration::from_millis(millis)), expected);
        }
        for (size, expected) in [
            (0, "0\u{a0}bytes"),
            (1, "1\u{a0}byte"),
            (2853, "2.8\u{a0}KB"),
            (1_250_000, "1.2\u{a0}MB"),
            (u64::MAX, "1,844,674,407,370.9\u{a0}MB"),
        ] {
            assert_eq!(bytes(size), expected);
        }
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(5000, "file"), "5,000 files");
    }
}
