//! The words for a run's outcome and its figures, for times and for amounts. Pure.

use std::time::Duration;

use super::history::{PastRun, UnrecordedState};
use crate::model::Purpose;
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::record::result::{AgentRecord, RunRecord, TreeState};
use crate::sys::diff::Stat;
use crate::sys::exit::Exit;
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
    let is_reverted = record.tree == TreeState::PutBack;
    let reverted = if is_reverted { ", reverted" } else { "" };
    format!("{}{reverted}", record.outcome())
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
    let text = match record.exit.exit() {
        Some(exit) => ended(exit, record),
        None => format!("Ended as {}", record.exit.name),
    };
    match record.tree {
        TreeState::PutBack => format!("{text}; the edits were taken back"),
        _ if run.undone_by.is_some() => format!("{text}; the changes were undone later"),
        _ => text,
    }
}

fn ended(exit: Exit, record: &RunRecord) -> String {
    let text = match exit {
        Exit::Done => return done(record),
        Exit::BuildFailed => return after_repairs("The build still fails", record),
        Exit::AuditFailed => "The audit did not pass the work",
        Exit::ToolsFailed => "The agent's tools failed again and again",
        Exit::LoopLimit => "The agent asked the model as often as it may",
        Exit::IterationLimit => "No review has passed the work",
        Exit::BranchTimeout => "A branch has taken too long",
        Exit::PublishFailed => "The work could not be published",
        Exit::McpFailed => "The tool server could not be reached",
        Exit::GateChanged => "The build has changed a protected file",
        Exit::WarningsDenied => "The build passed, but there are warnings that are denied",
        Exit::GateWeakened => "The build passed, but the change weakens the gate",
        Exit::NotProven => "The build passed, but that proves nothing",
        Exit::Findings => "The report has findings that are denied",
        Exit::OverBudget => "The next call might have exceeded the budget",
        Exit::NotPermitted => "The agent was not permitted what it tried",
        Exit::StepFailed => "A step of the plan failed",
        Exit::Stopped => "The user stopped the work",
        Exit::Unreliable => "The model's replies were malformed too often",
        Exit::Usage => "The run was refused",
        Exit::NotReady => "The project was not ready",
        Exit::ModelFailed => "There is no whole reply",
        Exit::ReplyRejected if record.agent.is_some() => "The agent's replies were not understood",
        Exit::ReplyRejected => "The reply was rejected",
        Exit::LocalIo => "A local file or program failed",
        Exit::Interrupted(_) => "The run was interrupted",
    };
    text.to_owned()
}

fn done(record: &RunRecord) -> String {
    let agent = record.agent.as_ref();
    let mut steps = record.steps.iter();
    let text = match &*record.workflow {
        "commit" => return after_repairs("The build passed", record),
        "consistency" => "The report is written",
        "undo" => "The project was put back",
        _ if agent.is_some_and(AgentRecord::directs_agents) => "A review has passed the work",
        _ if steps.any(|step| step.purpose == Purpose::AUDIT) => {
            "The work is done, and the audit has passed it"
        }
        _ => "Done",
    };
    text.to_owned()
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

/// The figures of a run as table cells: empty if not applicable, `?` if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of repairs; empty for an agent, which continues instead.
    pub repairs: String,
    /// Tokens of the prompts.
    pub tokens_in: String,
    /// Tokens of the answers, including thinking.
    pub tokens_out: String,
    /// Total cost of the calls.
    pub cost: String,
}

impl Figures {
    /// Returns the figures of a run; all empty if it asked no model.
    pub fn of(record: &RunRecord) -> Self {
        let usage = record.usage();
        let only = |wanted: bool, text: Option<String>| {
            let text = text.unwrap_or_else(|| "?".to_owned());
            if wanted { text } else { String::new() }
        };
        let (asked, repairs) = (!record.steps.is_empty(), record.repairs().to_string());
        let tokens = |of: fn(Usage) -> u64| only(asked, usage.map(|usage| grouped(of(usage))));
        Self {
            repairs: only(asked && record.agent.is_none(), Some(repairs)),
            tokens_in: tokens(|usage| usage.input_tokens),
            tokens_out: tokens(|usage| usage.answered()),
            cost: only(asked, record.cost.map(|cost| cost.to_string())),
        }
    }
}

/// Formats the total cost of calls; `is_all` is false if some costs are unknown, which makes `known` a lower bound.
pub fn cost(known: Usd, is_all: bool) -> String {
    match (is_all, known == Usd::ZERO) {
        (true, _) => known.to_string(),
        (false, true) => "unknown".to_owned(),
        (false, false) => format!("at least {known}"),
    }
}

/// Formats the total cost of a run.
pub fn cost_of_run(record: &RunRecord) -> String {
    let known = record.steps.iter().filter_map(|step| step.cost).sum();
    cost(record.cost.unwrap_or(known), record.cost.is_some())
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
