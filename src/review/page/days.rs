//! Sums up runs by their days. Pure.
//!
//! A day is the run's own: the date where and when it began.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::words::{self, Status};
use crate::model::price::Usd;
use crate::review::history::PastRun;

/// How many repairs are told apart; the last stands for more.
pub const REPAIRS: usize = 4;

/// Runs, summed up.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sum {
    /// Those that did what they were started for.
    pub good: u64,
    /// Those that did not.
    pub bad: u64,
    /// Those without a record.
    pub open: u64,
    /// How many finished changes took how many repairs, and how many of these passed.
    pub repairs: [(u64, u64); REPAIRS],
    /// What the calls cost, as far as it is known.
    pub cost: Usd,
    /// The runs whose cost is not known.
    pub cost_unknown: u64,
    /// The prompts' tokens.
    pub tokens_in: u64,
    /// The answers' tokens, thoughts included.
    pub tokens_out: u64,
    /// How long each finished run took, in milliseconds.
    millis: Vec<u64>,
}

/// All runs, and the same by day.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Days {
    /// All of them.
    pub all: Sum,
    /// By day, the first one first. What has no date is only among all.
    pub days: BTreeMap<NaiveDate, Sum>,
}

impl Days {
    /// Sums up the runs that asked a model.
    pub fn of(runs: &[PastRun]) -> Self {
        let mut sums = Self::default();
        for run in runs.iter().filter(|run| asks(run)) {
            sums.all.add(run);
            if let Some(day) = day(run) {
                sums.days.entry(day).or_default().add(run);
            }
        }
        sums
    }
}

/// Whether the run is of a kind that asks a model.
fn asks(run: &PastRun) -> bool {
    matches!(run.workflow(), "commit" | "consistency" | "dev")
}

/// The run's day, by its record, or its folder's name.
#[must_use]
pub fn day(run: &PastRun) -> Option<NaiveDate> {
    let by_name = || NaiveDate::parse_from_str(run.name.get(..10)?, "%Y-%m-%d").ok();
    let recorded = run.started().map(|began| began.date_naive());
    recorded.or_else(by_name)
}

impl Sum {
    fn add(&mut self, run: &PastRun) {
        let status = words::status(run);
        match status {
            Status::Good => self.good += 1,
            Status::Bad => self.bad += 1,
            Status::Open => self.open += 1,
        }
        let Some(record) = &run.record else {
            return;
        };
        // A change that was never built took no repairs, but does not tell anything by that.
        let built = record
            .attempts
            .iter()
            .any(|attempt| attempt.build.is_some());
        if built {
            let (all, passed) = &mut self.repairs[record.repairs().min(REPAIRS - 1)];
            *all += 1;
            *passed += u64::from(status == Status::Good);
        }
        let usage = record.usage().unwrap_or_default();
        self.tokens_in = self.tokens_in.saturating_add(usage.input_tokens);
        self.tokens_out = self.tokens_out.saturating_add(usage.answered());
        if !record.attempts.is_empty() {
            let known = record.attempts.iter().filter_map(|attempt| attempt.cost);
            self.cost = self.cost + known.sum();
            self.cost_unknown += u64::from(record.cost.is_none());
        }
        let millis = record.seconds.0.as_millis();
        self.millis.push(u64::try_from(millis).unwrap_or(u64::MAX));
    }

    /// How many runs these are.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.good + self.bad + self.open
    }

    /// How many of them have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.good + self.bad
    }

    /// How many repairs a change took on average, in hundredths; `None` where none was built.
    #[must_use]
    pub fn repairs_on_average(&self) -> Option<u64> {
        let built: u64 = self.repairs.iter().map(|(all, _)| all).sum();
        let repairs = (0..)
            .zip(&self.repairs)
            .map(|(repairs, (all, _))| repairs * all);
        (repairs.sum::<u64>() * 100).checked_div(built)
    }

    /// The duration that half of the ended runs stay below, in milliseconds.
    #[must_use]
    pub fn median_millis(&self) -> Option<u64> {
        let mut sorted = self.millis.clone();
        sorted.sort_unstable();
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let lower = if sorted.len().is_multiple_of(2) {
            sorted[middle - 1]
        } else {
            upper
        };
        Some(lower.midpoint(upper))
    }
}
