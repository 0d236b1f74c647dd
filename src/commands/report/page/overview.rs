//! Renders the page about all runs: success rate, repairs and cost by day, and a list. Pure.
//!
//! A day is the run's local date when it began.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::NaiveDate;
use maud::{Markup, html};

use super::elements::fact;
use super::tables;
use super::text::HtmlEscaper;
use super::{promise, shell};
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::project::LOGS;
use crate::run::past::history::PastRun;
use crate::run::past::table::{REQUEST, RESULT, Row, Table};
use crate::run::past::words::{self, Figures, cost_of_run, count, seconds};
use crate::secret::Redactor;
use crate::sys::numbers::{counted, grouped, percent};
use crate::sys::text::first_line;

/// The maximum number of runs listed, latest first.
const ROWS: usize = 2000;
/// The command that lists all runs.
const LIST: &str = "code-commit log";
/// The maximum number of days listed, latest first.
const DAYS: usize = 400;

/// Renders the page about all runs, given oldest first. `has_page` returns true if a run has a page, `report.html` in
/// its folder; `request` returns the run's request.
pub fn page(
    runs: &[PastRun],
    has_page: impl Fn(&PastRun) -> bool,
    request: impl Fn(&PastRun) -> Option<String>,
    redactor: &Redactor,
    interactive: bool,
) -> String {
    let escaper = HtmlEscaper::new(redactor);
    let mut all = Sum::default();
    let mut days: BTreeMap<NaiveDate, Sum> = BTreeMap::new();
    let asks = |run: &&PastRun| run.workflow() != "undo";
    for run in runs.iter().filter(asks) {
        all.add(run);
        // A run without a date counts only toward the total.
        if let Some(day) = day(run) {
            days.entry(day).or_default().add(run);
        }
    }
    let mut ends: Vec<_> = days.keys().take(1).chain(days.keys().next_back()).collect();
    ends.dedup();
    let date = |day: &&NaiveDate| day.format("%-d %B %Y").to_string();
    let body = html! {
        header {
            p.kicker { "code-commit \u{b7} all runs" }
            h1 { (headline(runs, &all)) }
            p.sub { (ends.iter().map(date).collect::<Vec<String>>().join(" to ")) }
        }
        main {
            @if all.runs() > 0 { (facts(&all)) (by_day(escaper, &days)) }
            @if !runs.is_empty() { (list(escaper, runs, has_page, request)) }
        }
        footer { p {
            "Written by code-commit " (env!("CARGO_PKG_VERSION")) " from " code { (LOGS) } (promise(interactive))
        } }
    };
    shell("code-commit: all runs", &body, interactive)
}

/// Returns the run's date, from its record or its folder's name.
fn day(run: &PastRun) -> Option<NaiveDate> {
    let recorded = run.started().map(|began| began.date_naive());
    recorded.or_else(|| NaiveDate::parse_from_str(run.name.get(..10)?, "%Y-%m-%d").ok())
}

/// The totals of runs that ask a model.
#[derive(Debug, Default)]
struct Sum {
    /// The number of successful runs.
    good: u64,
    /// The number of failed runs.
    bad: u64,
    /// The number of runs without a record.
    open: u64,
    /// The number of changes built, and the number of repairs that they took.
    built: u64,
    repairs: u64,
    /// The known cost of the calls.
    cost: Usd,
    /// The number of runs whose cost is unknown.
    cost_unknown: u64,
    /// The tokens used.
    usage: Usage,
    /// The duration of each finished run.
    took: Vec<Duration>,
}

impl Sum {
    fn add(&mut self, run: &PastRun) {
        match words::status(run) {
            Some(true) => self.good += 1,
            Some(false) => self.bad += 1,
            None => self.open += 1,
        }
        let known = run.known_record();
        self.usage = self.usage.plus(known.usage().unwrap_or_default());
        if !known.steps.is_empty() {
            self.cost = self.cost + known.steps.iter().filter_map(|step| step.cost).sum();
            self.cost_unknown += u64::from(known.cost.is_none());
        }
        let Some(record) = &run.record else {
            return;
        };
        // A change that was never built has no repairs, which says nothing about its quality.
        if record.steps.iter().any(|step| step.build.is_some()) {
            self.built += 1;
            self.repairs += record.repairs() as u64;
        }
        self.took.push(record.seconds.0);
    }

    fn runs(&self) -> u64 {
        self.good + self.bad + self.open
    }

    fn cells(&self) -> [String; 8] {
        let none = || "\u{2013}".to_owned();
        let success = match self.good + self.bad {
            0 => none(),
            ended => format!("{}\u{a0}%", percent(self.good, ended)),
        };
        let average = (self.repairs * 100).checked_div(self.built);
        let repairs = average.map_or_else(none, |hundredths| {
            format!("{}.{:02}", hundredths / 100, hundredths % 100)
        });
        let mut took = self.took.clone();
        took.sort_unstable();
        let lower = took.get(took.len().saturating_sub(1) / 2);
        let middle = lower.zip(took.get(took.len() / 2));
        let median = middle.map_or_else(none, |(lower, upper)| {
            seconds(lower.saturating_add(*upper) / 2)
        });
        [
            grouped(self.runs()),
            success,
            grouped(self.bad),
            repairs,
            words::cost(self.cost, self.cost_unknown == 0),
            grouped(self.usage.input_tokens),
            grouped(self.usage.answered()),
            median,
        ]
    }
}

fn headline(runs: &[PastRun], all: &Sum) -> String {
    match (runs.len(), all.good + all.bad) {
        (0, _) => "There is no run yet".to_owned(),
        (some, 0) => format!("{}, none of a model that has ended", count(some, "run")),
        (_, ended) => format!("{} of {} runs succeeded", grouped(all.good), grouped(ended)),
    }
}

fn facts(all: &Sum) -> Markup {
    let [runs, success, _, repairs, cost, input, output, median] = all.cells();
    let of = format!("{} of {}", grouped(all.good), grouped(all.good + all.bad));
    let open = format!("{} of them not finished", grouped(all.open));
    let unknown = format!("unknown for {}", counted(all.cost_unknown, "run"));
    html! {
        section aria-label="In numbers" { dl.facts {
            (fact("Success", &success, Some(of)))
            (fact("Runs", &runs, (all.open > 0).then_some(open)))
            (fact("Repairs", &repairs, Some("a change, on average".to_owned())))
            (fact("Cost", &cost, (all.cost_unknown > 0).then_some(unknown)))
            (fact("Tokens in", &input, Some(format!("{output} out"))))
            (fact("Time", &median, Some("median of a run".to_owned())))
        } }
    }
}

fn by_day(escaper: HtmlEscaper<'_>, days: &BTreeMap<NaiveDate, Sum>) -> Markup {
    let latest = days.iter().rev();
    let rows = latest
        .map(|(day, sum)| Row::new([day.to_string()], sum.cells()).with_bar(sum.good, sum.bad));
    let names = "runs,success,failed,repairs,cost,tokens in,out,median";
    let heads: Vec<_> = names.split(',').collect();
    let table = Table::new(&["day"], &heads, "runs", rows, DAYS);
    tables::section(escaper, "By day", &table, ("earlier day", LIST))
}

/// Renders the list of runs, latest first.
fn list(
    escaper: HtmlEscaper<'_>,
    runs: &[PastRun],
    has_page: impl Fn(&PastRun) -> bool,
    request: impl Fn(&PastRun) -> Option<String>,
) -> Markup {
    let latest = runs.iter().rev().take(ROWS);
    let rows = latest.map(|run| row(run, has_page(run), request(run)));
    let heads = ["repairs", "files", "cost", "tokens in", "out", "took"];
    let table = Table {
        left_out: runs.len().saturating_sub(ROWS),
        ..Table::new(&["run", REQUEST, RESULT, "model"], &heads, "", rows, ROWS)
    };
    tables::section(escaper, "The runs", &table, ("earlier run", LIST))
}

fn row(run: &PastRun, has_page: bool, request: Option<String>) -> Row {
    let record = run.record.as_ref();
    let undone = run.undone_by.as_ref().map_or("", |_| ", undone");
    let exit = record.map_or("unfinished", |record| &record.exit.name);
    let result = format!("{exit}{undone}");
    let known = run.known_record();
    let files = record.and_then(|record| Some(grouped(record.stat?.files)));
    let took = record.map_or_else(String::new, |record| seconds(record.seconds.0));
    let model = known.model.clone().unwrap_or_default();
    let figures = Figures::of(&known);
    let line = request.map(|request| first_line(&request).to_owned());
    let request = line.unwrap_or_else(|| run.workflow().to_owned());
    let cost = (!known.steps.is_empty()).then(|| cost_of_run(&known));
    let [files, cost] = [files, cost].map(Option::unwrap_or_default);
    let first = [figures.repairs, files, cost];
    let tokens = [figures.tokens_in, figures.tokens_out, took];
    Row {
        folder: has_page.then(|| run.name.clone()),
        outcome: words::status(run),
        ..Row::new(
            [run.name.clone(), request, result, model],
            [first, tokens].concat(),
        )
    }
}
