//! The models that can be asked: reads their table, and lists it.

use std::path::Path;

use chrono::NaiveDate;
use clap::Args;
use serde_json::{Value, json};

use super::add_model::add_model;
use crate::model::price::{Price, Usd};
use crate::model::{ModelSpec, ModelTable, Origin, Place, TableFile, TaskType, catalogue};
use crate::project::home::{PLAN_MODELS, System};
use crate::project::{Project, ProjectProblem, home};
use crate::run::context::{Context, ModelsProblem};
use crate::run::keys::KeySource;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::{keys, selection};
use crate::sys::environment::Environment;
use crate::sys::error::Problem as _;
use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::numbers::grouped;
use crate::ui::columns::{
    self,
    Align::{Left, Right},
};

/// Arguments of `models`.
#[derive(Debug, Clone, Args)]
pub struct ModelsArgs {
    /// Write the entry of this model, one that is known to the program but not built in, into
    /// agent-config/models.json
    #[arg(long, value_name = "NAME")]
    pub add: Option<String>,
}

/// The indent of continuation lines, in columns.
const HANG: usize = 6;

/// The table's file in the home of the agent `chat`, for every agent.
pub const HOME_FILE: &str = "models.json";

/// The table of models of a project and its user, at the prices of `today`; for the agent `plan`, with the content of
/// its own file at that path.
///
/// # Errors
/// When a file is there and cannot be used.
pub fn table(
    project: &Project,
    environment: &Environment,
    plans: Option<(&Path, &[u8])>,
    today: NaiveDate,
) -> Result<ModelTable, ModelsProblem> {
    let home = home::CHAT.directory(environment, System::current()).ok();
    let home = home.map(|home| home.join(HOME_FILE));
    let homes = home.as_deref().map(|path| {
        let read = files::read(path, Links::Followed, MIB).if_there();
        read.map_err(|error| {
            ModelsProblem::Unreadable(format!("cannot read `{}`: {error}", path.display()))
        })
    });
    let homes = homes.transpose()?.flatten();
    let projects = match project.models() {
        Ok(json) => Some(json),
        Err(ProjectProblem::Missing(_)) => None,
        Err(problem @ (ProjectProblem::Tracked { .. } | ProjectProblem::Index { .. })) => {
            return Err(ModelsProblem::NotUsers {
                problem: problem.to_string(),
                hint: problem.hint().unwrap_or_default(),
            });
        }
        Err(problem) => return Err(ModelsProblem::Unreadable(problem.to_string())),
    };
    let shown = |path: Option<&Path>| path.map(|path| path.display().to_string());
    let home = shown(home.as_deref()).unwrap_or_default();
    let plan = shown(plans.map(|(path, _)| path)).unwrap_or_default();
    let files = [
        (Place::Home, &*home, homes.as_deref()),
        (Place::Plan, &*plan, plans.map(|(_, content)| content)),
        (
            Place::Project,
            ModelTable::FILE,
            projects.as_deref().map(str::as_bytes),
        ),
    ];
    let files = files.into_iter().filter_map(|(place, path, content)| {
        Some(TableFile {
            place,
            path,
            content: content?,
        })
    });
    Ok(ModelTable::read(files, today)?)
}

/// Lists the models, or adds one to the project's table.
///
/// # Errors
/// When their table cannot be used.
pub fn models(context: &Context<'_>, arguments: &ModelsArgs) -> Result<Outcome, Failure> {
    if let Some(name) = &arguments.add {
        return add_model(context, name);
    }
    let table = context.models.as_ref();
    let table = table.map_err(|problem| NotReady::of(problem.clone()))?;
    let mut warnings = selection::near_ends(context, table.models());
    let plans = plans_table(context).unwrap_or_else(|problem| {
        warnings.push(problem.to_string());
        None
    });
    let own = table.models().iter().map(|spec| (table, spec));
    let is_other = |spec: &&ModelSpec| table.named(&spec.name).is_none();
    let others = plans.iter().flat_map(|plans| {
        let others = plans.models().iter().filter(is_other);
        others.map(move |spec| (plans, spec))
    });
    let rows = own.chain(others);
    let rows: Vec<Row<'_>> = rows
        .map(|(of, spec)| Row {
            is_plans: !std::ptr::eq(of, table),
            ..Row::of(context, of, spec)
        })
        .collect();
    let json: Vec<Value> = rows.iter().map(Row::json).collect();
    Ok(Outcome {
        warnings,
        ..Outcome::shown(
            columns::folded(&text(&rows), context.reporter.columns(), HANG),
            json!({"schema": 1, "models": json}),
        )
    })
}

/// The table of the agent `plan`, if it has one of its own by now.
fn plans_table(context: &Context<'_>) -> Result<Option<ModelTable>, ModelsProblem> {
    let home = home::PLAN.directory(context.environment, System::current());
    let Ok(path) = home.map(|home| home.join(PLAN_MODELS)) else {
        return Ok(None);
    };
    let Ok(own) = files::read(&path, Links::Followed, MIB) else {
        return Ok(None);
    };
    let (project, environment) = (&context.project, context.environment);
    table(project, environment, Some((&path, &own)), context.today()).map(Some)
}

/// A model, as the list shows it.
struct Row<'m> {
    spec: &'m ModelSpec,
    /// The table that it is of.
    table: &'m ModelTable,
    /// True if that is the one of the agent `plan`.
    is_plans: bool,
    /// The source of its key.
    key: Option<KeySource>,
    /// The missing prerequisites for asking it.
    missing: Vec<String>,
}

impl<'m> Row<'m> {
    fn of(context: &Context<'_>, table: &'m ModelTable, spec: &'m ModelSpec) -> Self {
        let (key, no_key) = match keys::find(context, spec) {
            Ok(found) => (found.map(|found| found.source), None),
            Err(problem) => (None, Some(problem.to_string())),
        };
        let route = selection::route(context, spec, spec.key_file.is_some()).err();
        let route = route.map(|problem| problem.to_string());
        Self {
            spec,
            table,
            is_plans: false,
            key,
            missing: no_key.into_iter().chain(route).collect(),
        }
    }

    fn cells(&self) -> [String; 6] {
        let tokens = |tokens: Option<u64>| tokens.map_or("?".to_owned(), grouped);
        let price = |of: fn(&Price) -> Usd| {
            let price = self.spec.price.as_ref();
            price.map_or("?".to_owned(), |price| of(price).to_string())
        };
        [
            self.spec.name.clone(),
            self.spec.provider.vendor().word.to_owned(),
            tokens(self.spec.context_window),
            tokens(self.spec.max_output_tokens.map(u64::from)),
            price(|price| price.rates.input),
            price(|price| price.rates.output),
        ]
    }

    fn json(&self) -> Value {
        let spec = self.spec;
        json!({
            "name": spec.name,
            "displayName": spec.display_name,
            "provider": spec.provider,
            "id": spec.id,
            "baseUrl": spec.base_url,
            "apiVersion": spec.api_version,
            "keyFile": spec.key_file,
            "key": self.key.as_ref().map(KeySource::to_string),
            "contextWindow": spec.context_window,
            "maxOutputTokens": spec.max_output_tokens,
            "thinking": spec.thinking,
            "reasoningEffort": spec.reasoning_effort,
            "temperature": spec.temperature,
            "tools": spec.tools,
            "numCtx": spec.num_ctx,
            "keepAlive": spec.keep_alive,
            "serviceTier": spec.tier,
            "promptOrder": spec.prompt_order,
            "price": spec.price,
            "fallback": spec.fallback,
            "capabilities": spec.capabilities,
            "recommendedFor": spec.recommended_for,
            "prompt": spec.prompt,
            "tiers": catalogue::known(&spec.id).map(|known| &known.tiers),
            "origin": spec.origin,
            "tasks": self.table.tasks(&spec.name).collect::<Vec<_>>(),
            "plan": self.is_plans,
            "missing": self.missing,
        })
    }
}

const HEAD: [&str; 6] = ["model", "provider", "window", "output", "$/M in", "$/M out"];

fn text(rows: &[Row<'_>]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(|row| row.cells().to_vec()));
    let mut lines = columns::aligned(&lines, &[Left, Left, Right, Right, Right, Right]).into_iter();
    let mut text = lines.next().unwrap_or_default();
    for (row, line) in rows.iter().zip(lines) {
        text.push_str(&format!("\n{line}"));
        let tasks = row.table.tasks(&row.spec.name).map(TaskType::word);
        let tasks: Vec<&str> = tasks.collect();
        if !tasks.is_empty() {
            text.push_str(&format!("  for {}", tasks.join(", ")));
        }
        if let Some(name) = &row.spec.display_name {
            text.push_str(&format!("\n    {name}"));
        }
        if let Some(variable) = row.key.as_ref().filter(|key| key.is_elsewhere()) {
            text.push_str(&format!("\n    key: {variable}"));
        }
        for missing in &row.missing {
            text.push_str(&format!("\n    {missing}"));
        }
        if row.is_plans {
            text.push_str("\n    of the agent `plan`");
        }
        if row.spec.origin == Origin::Overridden {
            text.push_str("\n    built in, changed by `agent-config/models.json`");
        }
    }
    text
}
