//! The available models: reads their table and lists them, with the rates of those that were tried.

pub mod rates;
pub mod trial;

use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use clap::Args;
use serde_json::{Value, json};

use self::rates::{ModelRates, Rates};
use self::trial::trial;
use super::add_model::add_model;
use super::cli::values::parse_dollars;
use crate::model::price::{Price, Usd};
use crate::model::{
    KeySource, ModelSpec, ModelTable, Origin, Place, TableFile, TaskType, catalogue,
};
use crate::project::home::PLAN_MODELS;
use crate::project::{Project, ProjectProblem, home};
use crate::run::context::{Context, ModelsProblem};
use crate::run::outcome::{Failure, Outcome};
use crate::run::{keys, selection};
use crate::sys::environment::Environment;
use crate::sys::error::Problem as _;
use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::numbers::grouped;
use crate::sys::text::text_width;
use crate::ui::columns::{
    self, Align,
    Align::{Left, Right},
};

#[derive(Debug, Clone, Args)]
pub struct ModelsArgs {
    /// Add this model, which the program knows but does not list, to agent-config/models.json
    #[arg(long, value_name = "NAME")]
    pub add: Option<String>,

    /// Ask this model for eight small changes to a sample project in each reply format, and record how
    /// many it gets right
    #[arg(long = "try", value_name = "NAME", conflicts_with = "add")]
    pub tried: Option<String>,

    /// With --try, ask for each change N times
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 1, requires = "tried", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub runs: u16,

    /// With --try, make no call that could raise the cost above this many US dollars
    #[arg(long, value_name = "USD", allow_hyphen_values = true, value_parser = parse_dollars, requires = "tried")]
    pub max_cost: Option<Usd>,
}

/// The indent of continuation lines, in columns.
const HANG: usize = 6;

/// The name of the models file in the home of the agent `chat`; all agents read the file.
pub const HOME_FILE: &str = "models.json";

/// Reads the models of the project and the user, with the prices of `today`. `plans` is the path and the content of the
/// agent `plan`'s own table; `None` for other agents.
///
/// # Errors
/// Fails if a file exists but cannot be used.
pub fn table(
    project: &Project,
    environment: &Environment,
    plans: Option<(&Path, &[u8])>,
    today: NaiveDate,
) -> Result<ModelTable, ModelsProblem> {
    let shared = home::SHARED.directory(environment);
    let home = shared.map_or(PathBuf::new(), |home| home.join(HOME_FILE));
    let homes = files::read(&home, Links::Followed, MIB)
        .if_there()
        .map_err(|error| {
            ModelsProblem::Unreadable(format!("cannot read `{}`: {error}", home.display()))
        })?;
    let table = match project.models() {
        Ok(json) => json,
        Err(problem @ (ProjectProblem::Tracked { .. } | ProjectProblem::Index { .. })) => {
            return Err(ModelsProblem::NotUsers {
                problem: problem.to_string(),
                hint: problem.hint().unwrap_or_default(),
            });
        }
        Err(problem) => return Err(ModelsProblem::Unreadable(problem.to_string())),
    };
    let (plan, plans) = plans.unzip();
    let [home, plan] = [&*home, plan.unwrap_or(Path::new(""))].map(|path| path.to_string_lossy());
    let projects = table.as_deref().map(str::as_bytes);
    let file = |place, path, content: Option<_>| {
        Some(TableFile {
            place,
            path,
            content: content?,
        })
    };
    let files = [
        file(Place::Home, &*home, homes.as_deref()),
        file(Place::Plan, &*plan, plans),
        file(Place::Project, ModelTable::FILE, projects),
    ];
    Ok(ModelTable::read(files.into_iter().flatten(), today)?)
}

/// Lists the models, adds one to the project's table, or tries one out.
///
/// # Errors
/// Fails if the table of models cannot be used.
pub fn models(context: &Context<'_>, arguments: &ModelsArgs) -> Result<Outcome, Failure> {
    if let Some(name) = &arguments.add {
        return add_model(context, name);
    }
    if let Some(name) = &arguments.tried {
        return trial(context, name, arguments.runs, arguments.max_cost);
    }
    let table = selection::table_of(context.models)?;
    let mut warnings = selection::near_ends(context, table.models());
    let plans = plans_table(context).unwrap_or_else(|problem| {
        warnings.push(problem.to_string());
        None
    });
    let rates = Rates::read(&context.project).unwrap_or_else(|problem| {
        warnings.push(problem.to_string());
        Rates::default()
    });
    let models = table.models().iter();
    let own = models.map(|spec| (table, spec, false));
    let others = plans.iter().flat_map(|plans| {
        let is_other = |spec: &&ModelSpec| table.named(&spec.name).is_none();
        let others = plans.models().iter().filter(is_other);
        others.map(move |spec| (plans, spec, true))
    });
    let all = own.chain(others);
    let rows: Vec<_> = all.map(|listed| Row::of(context, &rates, listed)).collect();
    let json: Vec<Value> = rows.iter().map(Row::json).collect();
    let width = context.reporter.columns();
    let text = columns::folded(&text(&rows, width), width, HANG);
    Ok(Outcome {
        warnings,
        ..Outcome::shown(text, json!({"schema": 1, "models": json}))
    })
}

/// Reads the table of the agent `plan`, if it exists.
fn plans_table(context: &Context<'_>) -> Result<Option<ModelTable>, ModelsProblem> {
    let (project, environment) = (&context.project, context.environment);
    let Ok(home) = home::PLAN.directory(environment) else {
        return Ok(None);
    };
    let path = home.join(PLAN_MODELS);
    let own = files::read(&path, Links::Followed, MIB).ok();
    let table = |own: Vec<u8>| table(project, environment, Some((&path, &own)), context.today());
    own.map(table).transpose()
}

/// A row of the list.
struct Row<'m> {
    spec: &'m ModelSpec,
    /// The table that lists the model.
    table: &'m ModelTable,
    /// `true` if it is the agent `plan`'s table.
    is_plans: bool,
    /// The source of its key.
    key: Option<KeySource>,
    /// The missing prerequisites for using the model.
    missing: Vec<String>,
    /// The model's rates, if it was tried.
    rates: Option<&'m ModelRates>,
}

impl<'m> Row<'m> {
    fn of(
        context: &Context<'_>,
        rates: &'m Rates,
        (table, spec, is_plans): (&'m ModelTable, &'m ModelSpec, bool),
    ) -> Self {
        let (key, no_key) = match keys::find(context, spec) {
            Ok(found) => (found.map(|found| found.source), None),
            Err(problem) => (None, Some(problem.to_string())),
        };
        let refused = selection::route(context, spec, spec.key_file.is_some()).err();
        let route = refused.map(|problem| problem.to_string());
        Self {
            spec,
            table,
            is_plans,
            key,
            missing: no_key.into_iter().chain(route).collect(),
            rates: rates.of(&spec.name),
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
        let mut json = json!(self.spec);
        json["key"] = json!(self.key.as_ref().map(KeySource::to_string));
        json["tiers"] = json!(catalogue::known(&self.spec.id).map(|known| &known.tiers));
        json["tasks"] = json!(self.table.tasks(&self.spec.name).collect::<Vec<_>>());
        json["plan"] = self.is_plans.into();
        json["missing"] = json!(self.missing);
        json["rates"] = json!(self.rates);
        json
    }
}

const HEAD: [(&str, Align); 6] = [
    ("model", Left),
    ("provider", Left),
    ("window", Right),
    ("output", Right),
    ("$/M in", Right),
    ("$/M out", Right),
];

/// The columns left out on a terminal that is too narrow for all, in this order.
const DISPENSABLE: [&str; 2] = ["output", "provider"];

fn text(rows: &[Row<'_>], width: Option<usize>) -> String {
    let mut cells = vec![HEAD.map(|(name, _)| name.to_owned()).to_vec()];
    cells.extend(rows.iter().map(|row| row.cells().to_vec()));
    let table = columns::table(HEAD.to_vec(), cells, &DISPENSABLE, width);
    let mut lines = table.lines();
    let mut text = lines.next().unwrap_or_default().to_owned();
    for (row, line) in rows.iter().zip(lines) {
        text += &format!("\n{line}");
        let types = row.table.tasks(&row.spec.name);
        let tasks: Vec<&str> = types.map(TaskType::word).collect();
        if !tasks.is_empty() {
            let tasks = format!("  for {}", tasks.join(", "));
            let fits = width.is_none_or(|width| text_width(line) + tasks.len() <= width);
            text += if fits { "" } else { "\n  " };
            text += &tasks;
        }
        if let Some(name) = &row.spec.display_name {
            text += &format!("\n    {name}");
        }
        if let Some(variable) = row.key.as_ref().filter(|key| key.is_elsewhere()) {
            text += &format!("\n    key: {variable}");
        }
        text.extend(row.missing.iter().map(|missing| format!("\n    {missing}")));
        for (format, rate) in row.rates.into_iter().flatten() {
            let (asked, right) = (rate.asked, rate.percent(rate.right));
            text += &format!("\n    {right} % of {asked} replies right in the format `{format}`");
        }
        if row.is_plans {
            text += "\n    of the agent `plan`";
        }
        if row.spec.origin == Origin::Overridden {
            text += "\n    built in, changed by `agent-config/models.json`";
        }
    }
    text
}
