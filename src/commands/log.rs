//! Lists past runs, or shows one step by step; removes old ones on request.

mod story;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use chrono::{DateTime, Days, FixedOffset, NaiveDate, NaiveTime};
use clap::Args;
use serde_json::{Value, json};

pub(super) use self::story::table;
use crate::commands::cli::values::{parse_count, parse_number};
use crate::commands::spent::Spent;
use crate::edit::changes::vault;
use crate::project::Project;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::history::{PastRun, UnrecordedState};
use crate::run::past::words::Figures;
use crate::run::past::{folders, history, naming, words};
use crate::run::recovery;
use crate::sys::error::Error;
use crate::sys::files::PathError;
use crate::sys::numbers::counted;
use crate::sys::text::{first_line, one_line};
use crate::ui::columns::{
    self, Align,
    Align::{Left, Right},
};
use crate::ui::json::record;

/// The maximum length of a query in the list, in characters.
const QUERY: usize = 200;

#[derive(Debug, Clone, Args)]
pub struct LogArgs {
    /// Run to show: its folder, the beginning of its name, a time today (14:05), last, or -2 for the
    /// one before [default: list all runs]
    #[arg(allow_negative_numbers = true)]
    pub run: Option<PathBuf>,

    /// List only the last N runs
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true, value_parser = parse_count, conflicts_with = "run")]
    pub number: Option<NonZeroUsize>,

    /// List only runs since a date, such as 2026-01-31, or from the last days, such as 7d
    #[arg(long, value_name = "DATE", value_parser = parse_since, conflicts_with = "run")]
    pub since: Option<Since>,

    /// Show the total cost of the runs instead
    #[arg(long, conflicts_with = "run")]
    pub total: bool,

    /// Remove the folders of runs older than DAYS days, which can then no longer be shown or undone
    #[arg(long, value_name = "DAYS", allow_hyphen_values = true, value_parser = parse_number::<u16>, conflicts_with_all = ["run", "number", "since", "total"])]
    pub prune: Option<u16>,
}

/// The beginning of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// A date, at midnight.
    Date(NaiveDate),
    /// A number of days ago.
    Days(u16),
}

fn parse_since(text: &str) -> Result<Since, &'static str> {
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    let date = || text.parse().ok().map(Since::Date);
    let since = days.map(Since::Days).or_else(date);
    since.ok_or("neither a date such as 2026-01-31 nor a number of days such as 7d")
}

impl Since {
    fn time(self, now: DateTime<FixedOffset>) -> DateTime<FixedOffset> {
        let time = match self {
            Self::Date(date) => {
                let midnight = date.and_time(NaiveTime::MIN);
                midnight.and_local_timezone(*now.offset()).single()
            }
            Self::Days(days) => now.checked_sub_days(Days::new(days.into())),
        };
        time.unwrap_or(now)
    }
}

/// Lists the runs, newest last, or shows one.
///
/// # Errors
/// Fails if there is no such run, `logs` cannot be read, or a folder cannot be removed.
pub fn log(context: &Context<'_>, arguments: &LogArgs) -> Result<Outcome, Failure> {
    let (project, now) = (&context.project, context.clock.now());
    if let Some(days) = arguments.prune {
        return Ok(prune(context, Since::Days(days).time(now))?);
    }
    let since = arguments.since.map(|since| since.time(now));
    let is_since = |run: &PastRun| since.is_none_or(|since| run.began() >= since);
    let mut outcome = if let Some(run) = &arguments.run {
        let run = PastRun::find(project, &naming::find(project, run, context.today())?);
        let mut document = data(project, &run);
        document["schema"] = 1.into();
        Outcome::shown(story::story(context, &run), document)
    } else {
        let runs = if let Some(number) = arguments.number {
            let latest = history::latest(project)?.take_while(is_since);
            let mut runs: Vec<_> = latest.take(number.get()).collect();
            runs.reverse();
            runs
        } else {
            let mut runs = history::runs(project)?;
            runs.retain(is_since);
            runs
        };
        if arguments.total {
            total(&runs)
        } else {
            let when = since.map_or("yet", |_| "since then");
            list(project, &runs, when, context.reporter.columns())
        }
    };
    outcome.is_paged = true;
    Ok(outcome)
}

/// Sums up the cost of runs.
fn total(runs: &[PastRun]) -> Outcome {
    let each = runs.iter().map(|run| Spent::on(&run.known_record().steps));
    let spent = each.fold(Spent::default(), Spent::plus);
    let number = runs.len();
    Outcome::shown(
        format!("{}: {spent}", counted(number as u64, "run")),
        json!({"schema": 1, "runs": number, "total": spent}),
    )
}

/// Removes the folders of runs that began before this time, and the files saved for them next to the keys. Keeps the
/// newest run and runs in progress.
fn prune(context: &Context<'_>, before: DateTime<FixedOffset>) -> Result<Outcome, Error> {
    // This also recovers the tree after an unfinished run, which requires that run's folder.
    let _lock = recovery::take(context)?;
    // A link in the path could lead to another project's runs.
    let own = |folder: &str| {
        let path = context.project.root().join(folder);
        let is_own = path.canonicalize().is_ok_and(|real| real == path);
        is_own.then_some(path)
    };
    let mut runs = history::runs(&context.project)?;
    runs.pop();
    let is_running = |run: &PastRun| {
        run.record.is_none() && run.state(&context.project) == UnrecordedState::Running
    };
    runs.retain(|run| run.began() < before && !is_running(run));
    let mut removed: Vec<String> = runs.iter().map(PastRun::relative).collect();
    removed.retain(|folder| own(folder).is_some());
    for folder in &removed {
        context.interrupt.check()?;
        let folders = [&vault(folder, true), folder];
        for path in folders.into_iter().filter_map(|folder| own(folder)) {
            fs::remove_dir_all(&path).map_err(PathError::of("remove", path))?;
        }
    }
    let lines = removed.iter().map(|folder| format!("removed {folder}\n"));
    let data = json!({"schema": 1, "removed": removed});
    let summary = format!("done: {} removed", counted(removed.len() as u64, "run"));
    Ok(Outcome::shown(lines.collect::<String>(), data).with_summary(summary))
}

/// The columns of the list. The request is last and takes up the rest of the line.
const HEAD: [(&str, Align); 10] = [
    ("run", Left),
    ("workflow", Left),
    ("model", Left),
    ("result", Left),
    ("repairs", Right),
    ("tokens in", Right),
    ("out", Right),
    ("cost", Right),
    ("seconds", Right),
    ("query", Left),
];
/// The columns dropped on a narrow terminal, in this order.
const DISPENSABLE: [&str; 6] = ["seconds", "out", "tokens in", "repairs", "model", "cost"];

fn list(project: &Project, runs: &[PastRun], when: &str, columns: Option<usize>) -> Outcome {
    let data =
        json!({"schema": 1, "runs": runs.iter().map(|run| data(project, run)).collect::<Vec<_>>()});
    if runs.is_empty() {
        return Outcome::new(format!("no runs in `logs` {when}")).with_data(data);
    }
    let mut rows = vec![HEAD.map(|(name, _)| name.to_owned()).to_vec()];
    rows.extend(runs.iter().map(|run| row(project, run)));
    if columns.is_some() {
        shorten_names(&mut rows);
    }
    let text = columns::table(HEAD.to_vec(), rows, &DISPENSABLE, columns);
    Outcome::shown(text, data)
}

/// Shortens each name to its time, if the time identifies the run.
fn shorten_names(rows: &mut [Vec<String>]) {
    let stamp = |row: &Vec<String>| folders::stamp(&row[0]).to_owned();
    let mut counts = BTreeMap::new();
    for stamp in rows.iter().map(stamp) {
        *counts.entry(stamp).or_insert(0) += 1;
    }
    for row in rows {
        let stamp = stamp(row);
        if counts[&stamp] == 1 {
            row[0] = stamp;
        }
    }
}

fn data(project: &Project, run: &PastRun) -> Value {
    let result = run.record.as_ref().map(record);
    json!({"log": run.relative(), "workflow": run.workflow(), "query": run.request(), "result": result,
        "state": run.record.is_none().then(|| run.state(project).into_str()), "undone_by": run.undone_by})
}

/// Returns the first line of the request, after a note if the run was undone.
fn asked(run: &PastRun) -> String {
    let request = run.request().unwrap_or_default();
    let undone = run.undone_by.as_ref().map_or("", |_| "(undone) ");
    one_line(&format!("{undone}{}", first_line(&request)), QUERY)
}

fn row(project: &Project, run: &PastRun) -> Vec<String> {
    let record = run.record.as_ref();
    let known = run.known_record();
    let figures = Figures::of(&known);
    let seconds = record.map(|record| record.seconds.to_string());
    vec![
        run.name.clone(),
        run.workflow().to_owned(),
        known.model.clone().unwrap_or_default(),
        record.map_or_else(|| run.state(project).into_str().to_owned(), words::result),
        figures.repairs,
        figures.tokens_in,
        figures.tokens_out,
        figures.cost,
        seconds.unwrap_or_default(),
        asked(run),
    ]
}
