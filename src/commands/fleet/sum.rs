//! The results of many tasks, read in sequence, and their sums.
//!
//! Reads the folders of tasks. Guarantees that only one row of each result stays in memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::error::FleetError;
use super::ledger::Ledger;
use super::task::{Ended, LOCK};
use crate::model::price::Usd;
use crate::record::gate::GateChange;
use crate::record::result::{ExitRecord, RunRecord, StatRecord};
use crate::record::seconds::Seconds;
use crate::run::context::Context;
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::files::{self, IfThere as _, PathError};
use crate::sys::numbers::{elapsed, grouped};

/// Maximum number of changes to look at first.
const FIRST: usize = 10;

/// A task as shown in reports.
#[derive(Debug, Default, Serialize)]
pub struct TaskRow {
    /// The task's id.
    pub id: String,
    /// The task's line number in the manifest, counted from 0; null if it has no result yet.
    pub index: Option<usize>,
    /// The path or URL of its repository.
    pub repository: String,
    /// The first line of its query.
    pub title: String,
    /// The name of the workflow.
    pub workflow: String,
    /// The requested model.
    pub model: String,
    /// The exit of its last run; null if it has no result yet.
    pub exit: Option<ExitRecord>,
    /// The cost of all its runs.
    pub cost: Usd,
    /// The number of input tokens in its last run.
    pub input_tokens: u64,
    /// The number of output tokens in its last run.
    pub output_tokens: u64,
    /// The duration of its last run.
    pub seconds: Seconds,
    /// The size of its change.
    pub stat: StatRecord,
    /// `true` if its change affects files that judge it.
    pub gate_changed: bool,
    /// The task's labels.
    pub labels: BTreeMap<String, String>,
    /// The error that ended its last run, or the reason why its result cannot be read.
    pub error: Option<String>,
    /// `true` if the task has not begun: it has no result, and nothing was reserved for it.
    #[serde(skip)]
    is_not_begun: bool,
}

impl TaskRow {
    fn new(id: String, Ended { record, task }: Ended) -> Self {
        let usage = record.usage().unwrap_or_default();
        let gate = record.gate.as_ref().map(|gate| gate.change);
        let exit = record.exit.exit();
        let gate_changed = gate == Some(GateChange::Changed)
            || matches!(exit, Some(Exit::GateChanged | Exit::GateWeakened))
            || !record.warning_details.is_empty();
        Self {
            id,
            index: Some(task.index),
            repository: task.repository,
            title: task.title,
            workflow: record.workflow.into_owned(),
            model: record.model.unwrap_or_default(),
            exit: Some(record.exit),
            cost: task.cost,
            input_tokens: usage.input_tokens,
            output_tokens: usage.answered(),
            seconds: record.seconds,
            stat: task.stat.or(record.stat).unwrap_or_default(),
            gate_changed,
            labels: task.labels,
            error: record.error.map(|error| error.message),
            is_not_begun: false,
        }
    }

    /// Returns the name of the task's outcome.
    pub fn outcome(&self) -> &str {
        match &self.exit {
            Some(exit) => &exit.name,
            None if self.error.is_some() => "unreadable",
            None if self.is_not_begun => "not-begun",
            None => "unfinished",
        }
    }

    /// Returns `true` if the task has succeeded; `None` if it has not ended.
    pub fn is_done(&self) -> Option<bool> {
        self.exit.as_ref().map(|exit| exit.code == 0)
    }

    /// Returns the number of lines that the task's change adds and removes.
    pub fn lines(&self) -> u64 {
        self.stat.added.saturating_add(self.stat.removed)
    }
}

/// Reads the results of all tasks in a directory, in the order of the manifest; `look` receives each id and record.
/// Warns about unreadable results.
///
/// # Errors
/// Fails if there are no results, or the directory or its ledger cannot be read.
pub fn read(
    context: &Context<'_>,
    directory: &Path,
    mut look: impl FnMut(&str, &RunRecord),
) -> Result<Vec<TaskRow>, Error> {
    let found = files::names(directory).if_there();
    let found = found.map_err(PathError::of("read", directory))?;
    let ledger = Ledger::of(directory);
    let known = ledger.is_there().then(|| ledger.accounts()).transpose()?;
    let accounts = known.unwrap_or_default();
    let folders = found.into_iter().flatten();
    let mut names: BTreeSet<String> = folders
        .filter(|name| directory.join(name).is_dir())
        .collect();
    // Tasks that have not begun, or whose folders are gone, have no folder.
    names.extend(accounts.keys().cloned());
    let mut rows = Vec::new();
    for name in names {
        let folder = directory.join(&name);
        let account = accounts.get(&name);
        let error = match Ended::read(&folder) {
            Ok(Some(ended)) => {
                look(&name, &ended.record);
                rows.push(TaskRow::new(name, ended));
                continue;
            }
            Ok(None) if account.is_none() && !folder.join(LOCK).is_file() => continue,
            Ok(None) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = &error {
            context.warn(error);
        }
        // Of a folder that is gone, the ledger has the end.
        let known = account.filter(|_| !folder.is_dir());
        let exit = known.and_then(|account| account.exit.clone());
        rows.push(TaskRow {
            id: name,
            exit: exit.map(|(code, name)| ExitRecord {
                code,
                name: name.into(),
            }),
            cost: account.map_or(Usd::ZERO, |account| account.spent),
            is_not_begun: account.is_none_or(|account| !account.is_begun),
            error,
            ..TaskRow::default()
        });
    }
    if rows.is_empty() {
        return Err(FleetError::NoResults(directory.to_owned()).into());
    }
    rows.sort_by_cached_key(|row| (row.index.is_none(), row.index));
    Ok(rows)
}

/// The sum of several tasks.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Sum {
    /// The number of tasks.
    pub tasks: u64,
    /// The number of tasks that have succeeded.
    pub done: u64,
    /// The cost of all their runs.
    pub cost: Usd,
    /// The number of input tokens.
    pub input_tokens: u64,
    /// The number of output tokens.
    pub output_tokens: u64,
    /// The duration of their last runs.
    pub seconds: Seconds,
}

impl Sum {
    /// Formats the figures: tasks, successful tasks, cost, input tokens, output tokens, and time.
    pub fn texts(&self) -> [String; 6] {
        let counts = [self.tasks, self.done, self.input_tokens, self.output_tokens];
        let [tasks, done, input, output] = counts.map(grouped);
        let (cost, time) = (self.cost.to_string(), elapsed(self.seconds.0));
        [tasks, done, cost, input, output, time]
    }

    fn add(&mut self, row: &TaskRow) {
        self.tasks += 1;
        self.done += u64::from(row.is_done() == Some(true));
        self.cost = self.cost + row.cost;
        self.input_tokens = self.input_tokens.saturating_add(row.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(row.output_tokens);
        self.seconds = Seconds(self.seconds.0.saturating_add(row.seconds.0));
    }
}

/// The sums of a campaign.
#[derive(Debug, Default)]
pub struct Sums {
    /// The sum of all tasks.
    pub total: Sum,
    /// The sums by outcome, label and model, largest first: the kind of group, its value, and its sum.
    pub groups: Vec<(&'static str, String, Sum)>,
}

impl Sums {
    /// Sums up the tasks.
    pub fn of(rows: &[TaskRow]) -> Self {
        let mut total = Sum::default();
        let mut sums: BTreeMap<(&str, String), Sum> = BTreeMap::new();
        for row in rows {
            total.add(row);
            let pairs = row.labels.iter();
            let labels = pairs.map(|(name, value)| ("label", format!("{name}={value}")));
            // The last run may have ended before it chose a model.
            let is_unknown = row.model.is_empty() && row.cost > Usd::ZERO;
            let model = if is_unknown { "unknown" } else { &row.model };
            let named = [("outcome", row.outcome()), ("model", model)];
            let known = named.into_iter().filter(|(_, value)| !value.is_empty());
            let owned = known.map(|(by, value)| (by, value.to_owned()));
            for group in owned.chain(labels) {
                sums.entry(group).or_default().add(row);
            }
        }
        let flat = |((by, value), sum)| (by, value, sum);
        let mut groups: Vec<_> = sums.into_iter().map(flat).collect();
        let kinds = ["outcome", "label", "model"];
        groups.sort_by_cached_key(|(by, value, sum)| {
            let kind = kinds.iter().position(|kind| kind == by);
            (kind, label(value).map(str::to_owned), Reverse(sum.tasks))
        });
        Self { total, groups }
    }

    /// Returns the sums as data, by kind of group.
    pub fn json(&self) -> Value {
        let mut by: Map<String, Value> = Map::new();
        for (kind, value, sum) in &self.groups {
            by.entry(*kind).or_insert_with(|| json!({}))[value] = json!(sum);
        }
        by.into()
    }
}

/// Returns the name of a label, without its value.
pub fn label(group: &str) -> Option<&str> {
    group.split_once('=').map(|(name, _)| name)
}

/// Returns the changes to review first: those that affect the files that judge them, then the largest.
pub fn first(rows: &[TaskRow]) -> Vec<&TaskRow> {
    let mut changes: Vec<&TaskRow> = rows.iter().filter(|row| row.stat.files > 0).collect();
    changes.sort_by_key(|row| (Reverse(row.gate_changed), Reverse(row.lines())));
    changes.truncate(FIRST);
    changes
}
