//! The tools `initialize_plan` and `update_plan`: what an agent itself may say of the plan that it works by.
//!
//! Reads arguments alone; who keeps the plan decides what of it is done.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::forms::{CRITERIA, CRITERION_UPDATES, DECISIONS};
use super::types::{Criterion, PlanDecision, line};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};

/// The description of the tool that begins a plan.
pub static INITIALIZE_PLAN: ToolSpec = ToolSpec::new(
    "initialize_plan",
    "Give the plan its goal, and the criteria by which it is done. Use this when the plan has no goal yet.",
    &[
        Parameter::new(
            "goal",
            ParameterKind::Text,
            "What is to be reached, in a sentence",
        )
        .example("Create user authentication API"),
        Parameter::new(
            "acceptance_criteria",
            ParameterKind::Json(CRITERIA),
            "Texts; each says what must be true when the goal is reached",
        )
        .or("[]"),
    ],
    Effect::Writes,
);

/// The description of the tool that changes a plan.
pub static UPDATE_PLAN: ToolSpec = ToolSpec::new(
    "update_plan",
    "Change the goal, add or complete criteria, or note decisions in the plan. Use this when requirements change or a \
     decision is made. The plan document is changed by this tool alone.",
    &[
        Parameter::new("goal", ParameterKind::Text, "The new goal").optional(),
        Parameter::new(
            "acceptance_criteria",
            ParameterKind::Json(CRITERION_UPDATES),
            "Objects {description, completed (default: false)}; new ones are added, known ones are updated",
        )
        .optional(),
        Parameter::new(
            "decisions_made",
            ParameterKind::Json(DECISIONS),
            "Objects {title, rationale, alternatives (optional, texts)}",
        )
        .optional(),
        Parameter::new(
            "decisions_rejected",
            ParameterKind::Json(DECISIONS),
            "Objects like those of decisions_made, for what is not to be done",
        )
        .optional(),
    ],
    Effect::Writes,
);

/// The changes to a plan; an empty field stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PlanUpdate {
    /// The new goal.
    pub goal: Option<String>,
    /// Criteria to add, or to mark.
    pub acceptance_criteria: Vec<Criterion>,
    /// Decisions for something.
    pub decisions_made: Vec<PlanDecision>,
    /// Decisions against something.
    pub decisions_rejected: Vec<PlanDecision>,
}

/// Keeps the plan.
pub trait PlanKeeper {
    /// Gives the plan its goal and its criteria, each of one line, and returns a report of what was done.
    ///
    /// # Errors
    /// If that may not be, or cannot be kept.
    fn initialize(&self, goal: &str, criteria: &[String]) -> Result<String, ToolError>;

    /// Changes the plan, and returns a report of what was done.
    ///
    /// # Errors
    /// If that may not be, or cannot be kept.
    fn update(&self, update: PlanUpdate) -> Result<String, ToolError>;
}

/// Begins the plan.
#[derive(Clone, Copy)]
pub struct InitializePlan<'a>(pub &'a dyn PlanKeeper);

impl Tool for InitializePlan<'_> {
    fn spec(&self) -> &ToolSpec {
        &INITIALIZE_PLAN
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        #[derive(Deserialize)]
        struct Given {
            goal: String,
            acceptance_criteria: Vec<String>,
        }
        let given: Given = read(arguments)?;
        let goal = stated("the goal", &given.goal)?;
        let criteria = given.acceptance_criteria.iter();
        let criteria: Result<Vec<String>, ToolError> = criteria
            .map(|text| line(text).ok_or_else(|| blank("a criterion")))
            .collect();
        self.0.initialize(goal, &criteria?).map(ToolOutput::said)
    }
}

/// Changes the plan.
#[derive(Clone, Copy)]
pub struct UpdatePlan<'a>(pub &'a dyn PlanKeeper);

impl Tool for UpdatePlan<'_> {
    fn spec(&self) -> &ToolSpec {
        &UPDATE_PLAN
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let mut update: PlanUpdate = read(arguments)?;
        if update == PlanUpdate::default() {
            return Err(ToolError::failed(
                "nothing is to be changed: give `goal`, `acceptance_criteria`, `decisions_made` or \
                 `decisions_rejected`"
                    .to_owned(),
            ));
        }
        if let Some(goal) = &mut update.goal {
            *goal = stated("the goal", goal)?.to_owned();
        }
        self.0.update(update).map(ToolOutput::said)
    }
}

/// The arguments as what they stand for; their types are checked already.
fn read<T: DeserializeOwned>(arguments: &Arguments) -> Result<T, ToolError> {
    let read = serde_json::from_value(arguments.to_value());
    read.map_err(|error| ToolError::failed(error.to_string()))
}

fn stated<'t>(what: &str, text: &'t str) -> Result<&'t str, ToolError> {
    let text = text.trim();
    if text.is_empty() {
        Err(blank(what))
    } else {
        Ok(text)
    }
}

fn blank(what: &str) -> ToolError {
    ToolError::failed(format!("{what} is blank"))
}
