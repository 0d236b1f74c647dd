//! The tools `initialize_plan` and `update_plan`, which let an agent change its own plan.
//!
//! Only parses arguments; the [`PlanUpdater`] decides which changes to apply.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::forms::{CRITERIA, CRITERION_UPDATES, DECISIONS};
use super::types::{Criterion, PlanDecision, line};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};

/// The description of `initialize_plan`.
pub static INITIALIZE_PLAN: ToolSpec = ToolSpec::new(
    "initialize_plan",
    "Give the plan its goal, and the criteria by which it is done. Use this when the plan has no goal yet.",
    &[
        Parameter::text("goal", "What is to be reached, in a sentence")
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

/// The description of `update_plan`.
pub static UPDATE_PLAN: ToolSpec = ToolSpec::new(
    "update_plan",
    "Change the goal, add or complete criteria, or note decisions in the plan. Use this when requirements change or a \
     decision is made. The plan document is changed by this tool alone.",
    &[
        Parameter::text("goal", "The new goal").optional(),
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

/// Changes to a plan. An empty field leaves its part unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PlanUpdate {
    /// The new goal.
    pub goal: Option<String>,
    /// Criteria to add, or to mark as met.
    pub acceptance_criteria: Vec<Criterion>,
    /// Decisions in favour of an option.
    pub decisions_made: Vec<PlanDecision>,
    /// Decisions against an option.
    pub decisions_rejected: Vec<PlanDecision>,
}

/// Applies changes to the plan.
pub trait PlanUpdater {
    /// Changes the plan, and returns a report of the changes.
    ///
    /// # Errors
    /// Fails if a change is refused or cannot be saved.
    fn update(&self, update: PlanUpdate) -> Result<String, ToolError>;
}

/// The tool `initialize_plan`.
pub struct InitializePlan<'a>(pub &'a dyn PlanUpdater);

impl Tool for InitializePlan<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        #[derive(Deserialize)]
        struct Given {
            goal: String,
            acceptance_criteria: Vec<String>,
        }
        let given: Given = read(arguments)?;
        let criteria = given.acceptance_criteria.iter().map(|text| Criterion {
            description: line(text).unwrap_or_default(),
            ..Criterion::default()
        });
        let update = PlanUpdate {
            goal: Some(given.goal),
            acceptance_criteria: criteria.collect(),
            ..PlanUpdate::default()
        };
        let number = update.acceptance_criteria.len();
        self.0.update(update.checked()?)?;
        Ok(ToolOutput::text(format!(
            "Plan initialized with {number} acceptance criteria"
        )))
    }
}

/// The tool `update_plan`.
pub struct UpdatePlan<'a>(pub &'a dyn PlanUpdater);

impl Tool for UpdatePlan<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let update: PlanUpdate = read(arguments)?;
        self.0.update(update.checked()?).map(ToolOutput::text)
    }
}

impl PlanUpdate {
    /// Checks that the update contains a change and no blank text.
    fn checked(mut self) -> Result<Self, ToolError> {
        if let Some(goal) = &mut self.goal {
            *goal = goal.trim().to_owned();
        }
        let is_blank = |known: &Criterion| known.description.is_empty();
        let problem = if self == Self::default() {
            "nothing is to be changed: give `goal`, `acceptance_criteria`, `decisions_made` or `decisions_rejected`"
        } else if self.goal.as_deref() == Some("") {
            "the goal is blank"
        } else if self.acceptance_criteria.iter().any(is_blank) {
            "a criterion is blank"
        } else {
            return Ok(self);
        };
        Err(problem.to_owned().into())
    }
}

/// Deserializes the arguments, whose types have already been checked.
fn read<T: DeserializeOwned>(arguments: &Arguments) -> Result<T, ToolError> {
    let read = serde_json::from_value(arguments.to_value());
    read.map_err(|error| ToolError::from(error.to_string()))
}
