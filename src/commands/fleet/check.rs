//! The check of a manifest: whether its tasks could begin, and what they would cost.
//!
//! Makes clones in a temporary directory and starts a dry run in each. Nothing is sent to a model, and no result is
//! written.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::child::{Child, own_key, write_inputs};
use super::clone::{Origin, Repositories};
use super::error::FleetError;
use super::manifest::{CheckWords, Manifest, Start, Task, Workflow};
use super::pins::{self, TaskPin};
use crate::commands::plan::place as plan;
use crate::commands::workspace;
use crate::model::price::Usd;
use crate::project::home::PLAN;
use crate::run::agent_models;
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
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    likely: Option<Usd>,
    most: Option<Usd>,
}

/// Checks all tasks.
///
/// # Errors
/// When the manifest has mistakes, or a task could not begin.
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
    let (mut lines, mut rows, mut problems) = (Vec::new(), Vec::new(), 0);
    let mut estimated: HashMap<String, Result<Cost, String>> = HashMap::new();
    for (task, pin) in tasks.iter().zip(pins) {
        context.interrupt.check()?;
        let query = manifest.query(task).unwrap_or_default();
        let build = manifest.build(task).unwrap_or_default();
        let digest = pin.as_ref().map_or(String::new(), TaskPin::digest);
        let own = (
            &task.repository,
            &task.reference,
            &task.env_key,
            task.max_cost,
        );
        let key = format!("{digest} {own:?}");
        let checked = estimated.entry(key).or_insert_with(|| {
            let clone = room.path().join(&task.id);
            let checked = pin.map_err(Error::from).and_then(|pin| {
                let origin = Origin {
                    repository: &task.repository,
                    commit: &pin.commit,
                    branch: "check",
                    build: build.as_deref(),
                };
                dry_run(context, &repositories, (task, &query), (&origin, &clone))
            });
            // It is in a temporary directory.
            let _ = fs::remove_dir_all(&clone);
            checked.map_err(|error| error.to_string())
        });
        let cost = checked.as_ref().map(|cost| Cost {
            likely: cost
                .likely
                .map(|likely| task.max_cost.map_or(likely, |limit| lesser(likely, limit))),
            most: match (cost.most, task.max_cost) {
                (Some(most), Some(limit)) => Some(lesser(most, limit)),
                (most, limit) => most.or(limit),
            },
        });
        lines.push(match cost {
            Ok(cost) => format!("{}: {}", task.id, told(cost)),
            Err(problem) => format!("{}: not ready: {problem}", task.id),
        });
        problems += usize::from(cost.is_err());
        rows.push((task.id.clone(), cost.map_err(Clone::clone)));
    }
    let costs = || rows.iter().filter_map(|(_, cost)| cost.as_ref().ok());
    let sum = Cost {
        likely: costs().map(|cost| cost.likely).sum(),
        most: costs().map(|cost| cost.most).sum(),
    };
    let count = counted(tasks.len() as u64, "task");
    lines.push(format!("{count}: {}", told(sum)));
    let listed = rows.iter().map(|(id, cost)| match cost {
        Ok(cost) => json!({"id": id, "likely": cost.likely, "most": cost.most, "problem": null}),
        Err(problem) => json!({"id": id, "likely": null, "most": null, "problem": problem}),
    });
    let json = json!({"schema": 1, "tasks": listed.collect::<Vec<_>>(), "likely": sum.likely, "most": sum.most});
    let text = columns::folded(&lines.join("\n"), context.reporter.columns(), 2);
    if problems > 0 {
        let count = tasks.len();
        let error = FleetError::NotReady { problems, count };
        return Err(Failure {
            text: Some(text),
            ..Failure::from(error)
        });
    }
    Ok(Outcome {
        summary: "done: the tasks are ready; nothing was sent".to_owned(),
        ..Outcome::shown(text, json)
    })
}

fn lesser(one: Usd, other: Usd) -> Usd {
    if one < other { one } else { other }
}

fn told(cost: Cost) -> String {
    let amount = |cost: Option<Usd>| cost.map_or("unknown".to_owned(), |cost| cost.to_string());
    format!(
        "likely {}, at most {}",
        amount(cost.likely),
        amount(cost.most)
    )
}

/// Starts a dry run in a clone of the task. An agent's task has none: it is cloned, and its models are found, with their
/// keys and prices.
fn dry_run(
    context: &Context<'_>,
    repositories: &Repositories,
    (task, query): (&Task, &str),
    (origin, clone): (&Origin<'_>, &Path),
) -> Result<Cost, Error> {
    let key = own_key(context, task)?;
    repositories.clone(origin, clone)?;
    if matches!(task.workflow, Workflow::Dev | Workflow::Plan) {
        let key = key.into_iter();
        let key: Environment = key.map(|(name, key)| (name.into(), key.into())).collect();
        let environment = &key.with_defaults(context.environment);
        let context = Context {
            environment,
            ..context.clone()
        };
        find_models(&context, task)?;
        return Ok(Cost::default());
    }
    write_inputs(context, task, query, clone)?;
    let words = task.words(clone, &Start::Dry, task.max_cost);
    let room = clone.parent().unwrap_or(clone);
    let (output, errors) = (room.join(".dry-run.json"), room.join(".dry-run.txt"));
    Child::new(context, &words)?.run_task(context, task, clone, (&output, &errors))?;
    context.interrupt.check()?;
    let document = files::read(&output, Links::Refused, LARGEST);
    let document: Value = document
        .and_then(|document| Ok(serde_json::from_slice(&document)?))
        .map_err(PathError::of("read", output))?;
    let problem = document.pointer("/error/message").and_then(Value::as_str);
    if let Some(problem) = problem {
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

/// Finds the models that an agent's task asks, as its start does. What Ollama would have to load is not looked for.
fn find_models(context: &Context<'_>, task: &Task) -> Result<(), Error> {
    let choice = &ModelChoice {
        max_cost: task.max_cost,
        ..ModelChoice::streamed(task.model.as_deref(), Duration::ZERO)
    };
    if task.workflow == Workflow::Dev {
        let (_, settings) = workspace::settings(context)?;
        let (own, server) = (&settings.model, settings.server());
        return agent_models::agent_model(context, choice, own, server).map(drop);
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
