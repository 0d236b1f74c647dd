//! A run's figures and result in the words that every list of runs uses. Pure.

use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::record::result::RunRecord;
use crate::sys::numbers::grouped;

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
