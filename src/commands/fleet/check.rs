//! The check of a manifest: the readiness and the cost of its tasks.
//!
//! Creates clones in a temporary directory and starts a dry run in each. Sends nothing to a model, and writes no
//! result.

use std::path::Path;
use std::time::Duration;
use std::{fmt, fs};

use miette::MietteDiagnostic;
use serde::Serialize;
use serde_json::{Value, json};

use super::child::{Child, own_key, write_inputs};
use super::clone::{Origin, Repositories};
use super::error::FleetError;
use super::manifest::{CheckWords, Manifest, NO_TASKS, Start, Task, Workflow};
use super::pins;
use crate::commands::dev::place as dev;
use crate::commands::plan::place as plan;
use crate::commands::workspace;
use crate::model::price::Usd;
use crate::project::home::PLAN;
use crate::run::context::{Context, ModelChoice};
use crate::run::outcome::{Failure, Outcome};
use crate::sys::environment::Environment;
use crate::sys::error::Error;
use crate::sys::files::{self, Links, MIB, PathError};
use crate::sys::numbers::counted;
use crate::ui::columns;

/// Maximum size of a dry run's document, in bytes.
const LARGEST: u64 = 16 * MIB;

/// The likely and the highest cost of a task, where known.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Cost {
    likely: Option<Usd>,
    most: Option<Usd>,
}

impl Cost {
    /// Returns the cost, capped by a limit.
    fn within(self, limit: Option<Usd>) -> Self {
        let lesser = |cost: Usd| limit.filter(|limit| *limit < cost).unwrap_or(cost);
        Self {
            likely: self.likely.map(lesser),
            most: self.most.map(lesser).or(limit),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [likely, most] = [self.likely, self.most]
            .map(|cost| cost.map_or("unknown".to_owned(), |cost| cost.to_string()));
        write!(f, "likely {likely}, at most {most}")
    }
}

/// A checked task.
#[derive(Serialize)]
struct Checked<'t> {
    id: &'t str,
    #[serde(flatten)]
    cost: Cost,
}

/// Checks all tasks.
///
/// # Errors
/// Fails if the manifest has mistakes, or a task could not begin.
pub fn check(
    context: &Context<'_>,
    path: &Path,
    words: CheckWords<'_>,
) -> Result<Outcome, Failure> {
    let manifest = Manifest::read(context, path)?;
    let tasks = manifest.tasks(words)?;
    let pins = pins::pins(context, &manifest, &tasks.iter().collect::<Vec<_>>(), false)?;
    let repositories = Repositories::find(context, manifest.directory())?;
    let room = tempfile::tempdir().map_err(PathError::of("make", "a temporary directory"))?;
    let (mut lines, mut rows, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for (task, pin) in tasks.iter().zip(pins) {
        context.interrupt.check()?;
        let clone = room.path().join(&task.id);
        let checked = pin.map_err(Error::from).and_then(|pin| {
            let origin = Origin {
                repository: &task.repository,
                commit: &pin.commit,
                branch: "check",
                build: task.script.as_deref(),
            };
            dry_run(context, &repositories, task, (&origin, &clone))
        });
        // The clone is in a temporary directory, so a failure to remove it does no harm.
        let _ = fs::remove_dir_all(&clone);
        let id = &*task.id;
        let cost = checked.map(|cost| cost.within(task.max_cost));
        let cost = cost.inspect(|cost| lines.push(format!("{id}: {cost}")));
        let cost = cost.unwrap_or_else(|error| {
            let mut problem = MietteDiagnostic::new(format!("{id}: not ready: {error}"));
            problem.help = error.hint();
            lines.push(problem.to_string());
            problems.push(problem);
            Cost::default()
        });
        rows.push(Checked { id, cost });
    }
    let count = rows.len();
    // The sum is unknown if the cost of any task is.
    let sum = Cost {
        likely: rows.iter().map(|row| row.cost.likely).sum(),
        most: rows.iter().map(|row| row.cost.most).sum(),
    };
    lines.push(format!("{}: {sum}", counted(count as u64, "task")));
    let json = json!({"schema": 1, "tasks": rows, "likely": sum.likely, "most": sum.most});
    let text = columns::folded(&lines.join("\n"), context.reporter.columns(), 2);
    if !problems.is_empty() {
        let error = FleetError::NotReady { problems, count };
        return Err(Failure::from(error).with_text(text));
    }
    let summary = match count {
        0 => NO_TASKS,
        _ => "done: the tasks are ready; nothing was sent",
    };
    Ok(Outcome::shown(text, json).with_summary(summary))
}

/// Starts a dry run in a clone for the task. Agents have no dry run: for them, only makes the clone and finds the
/// models, with keys and prices.
fn dry_run(
    context: &Context<'_>,
    repositories: &Repositories,
    task: &Task,
    (origin, clone): (&Origin<'_>, &Path),
) -> Result<Cost, Error> {
    let key = own_key(context, task)?;
    repositories.clone(origin, clone)?;
    if matches!(task.workflow, Workflow::Dev | Workflow::Plan) {
        let pairs = key.into_iter().map(|(name, key)| (name.into(), key.into()));
        let own: Environment = pairs.collect();
        let environment = &own.with_defaults(context.environment);
        let context = Context {
            environment,
            ..context.clone()
        };
        find_models(&context, task)?;
        return Ok(Cost::default());
    }
    write_inputs(context, task, clone)?;
    let words = task.words(clone, &Start::Dry, task.max_cost);
    let room = clone.parent().unwrap_or(clone);
    let (output, errors) = (room.join(".dry-run.json"), room.join(".dry-run.txt"));
    Child::new(context, &words)?.run_task(context, task, clone, (&output, &errors))?;
    context.interrupt.check()?;
    let document: Value = files::read(&output, Links::Refused, LARGEST)
        .and_then(|document| Ok(serde_json::from_slice(&document)?))
        .map_err(PathError::of("read", output))?;
    if let Some(problem) = document.pointer("/error/message").and_then(Value::as_str) {
        return Err(FleetError::DryRun(problem.to_owned()).into());
    }
    let amount = |place: &str| {
        let dollars = document.pointer(place).and_then(Value::as_f64);
        dollars.and_then(|dollars| Usd::try_from(dollars).ok())
    };
    let first = amount("/by_parts/cost/most").or_else(|| amount("/cost/first/most"));
    let findings = amount("/cost/findings/most").unwrap_or_default();
    Ok(Cost {
        likely: amount("/cost/likely"),
        most: amount("/cost/with_repairs/most").or(first.map(|first| first + findings)),
    })
}

/// Finds the models of an agent's task as a run would, without checking which ones Ollama would have to pull.
fn find_models(context: &Context<'_>, task: &Task) -> Result<(), Error> {
    let choice = &ModelChoice {
        max_cost: task.max_cost,
        ..ModelChoice::streamed(task.model.as_deref(), Duration::ZERO)
    };
    if task.workflow == Workflow::Dev {
        let (_, settings) = dev::settings(context)?;
        return dev::models(context, choice, &settings).map(drop);
    }
    let models = &Ok(plan::table(context, &workspace::home(context, &PLAN)?)?);
    if task.pulls() {
        return Ok(());
    }
    let context = &Context {
        models,
        ..context.clone()
    };
    plan::models(context, choice, false, None).map(drop)
}
