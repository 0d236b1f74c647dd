//! Measures how reliably a model sticks to the reply format of a step: asks it repeatedly, and parses its replies
//! without executing them. Changes nothing in the project.

use serde_json::json;

use super::args::ReliabilityArgs;
use super::stages::{PROTOCOL, WORKER};
use super::tools::described;
use super::{instructions, place};
use crate::agent::AgentError;
use crate::agent::protocol::Protocol as _;
use crate::commands::error::CommandError;
use crate::commands::models::rates::{Rate, Verdict};
use crate::commands::models::trial::tried;
use crate::commands::workspace::home;
use crate::model::message::{Message, Role};
use crate::model::{Form, ModelTable, Purpose, Request, StepId, TaskType, Tier};
use crate::project::home::PLAN;
use crate::run::agent_models;
use crate::run::context::{Context, ModelChoice};
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::selection::ModelKey;
use crate::sys::error::Error;

/// The task for the model.
const TASK: &str = "Current task: Read README.md to understand the project";
/// The plan shown to the model: `spec/plan-prompts.md`, 11.3.
const TEST_PLAN: &str = "# Current Plan\n\nTest plan";

/// Asks the model the requested number of times, and reports the percentage of well-formed replies.
///
/// # Errors
/// Fails if too few replies are well-formed, or the model cannot be asked.
pub fn reliability(context: &Context<'_>, wanted: &ReliabilityArgs) -> Result<Outcome, Failure> {
    let choice = &ModelChoice::streamed(wanted.model.as_deref(), wanted.timeout);
    let home = home(context, &PLAN)?;
    let table: Result<ModelTable, _> = Ok(place::table(context, &home)?);
    let context = &Context {
        models: &table,
        ..context.clone()
    };
    let spec = place::selected(context, choice, TaskType::Coding)?;
    let models = agent_models::one_model(context, choice, None, spec, ModelKey::ByRule)?;
    place::keep_models(context, &home)?;
    let tools = described();
    let offer = PROTOCOL.offer(&tools);
    let read = instructions::read(context.home(), context.project.root(), context.redactor);
    let text = read.map_err(NotReady::of)?.text;
    let system = [
        format!("{text}\n\n{}", offer.instructions),
        place::model_and(&models.first.spec, WORKER),
        TEST_PLAN.to_owned(),
    ]
    .map(|text| Message::text(Role::System, text));
    let task = Message::text(Role::User, TASK.to_owned());
    let mut request = Request {
        step: StepId::new(Purpose::STEP, 1),
        messages: system.into_iter().chain([task]).collect(),
        form: Form {
            temperature: Some(0.2),
            ..offer.form
        },
        max_output_tokens: models.first.spec.max_output_tokens,
        tier: Tier::Standard,
        cached_by_marks: false,
        once: false,
        deadline: None,
    };
    let mut rate = Rate::default();
    let ask = |step: &StepId, (): &()| {
        request.step = step.clone();
        let model = &models.first.model;
        let answer = model.ask(&request, &());
        let read = |reply| match PROTOCOL.read(&reply, &tools) {
            Ok(_) => Verdict::Right,
            Err(_) => Verdict::Unreadable,
        };
        let reply = answer.and_then(|answer| model.read(step, &answer.json));
        let setup = || models.first.setup(context.models);
        let reply = reply.map_err(|error| error.with_setup(setup()));
        (reply.map(read).map_err(Error::from), None)
    };
    let count = |(), verdict, cost| {
        rate.add(verdict, cost);
        let is_live = context.reporter.is_live();
        is_live.then(|| format!("{} of the form", rate.right))
    };
    let tries = vec![(); wanted.number.into()];
    tried(context, &Purpose::STEP, tries, ask, count).map_err(|error| {
        let error = error.downcast().map(AgentError::Model);
        error.map_or_else(|other| other, Error::from)
    })?;
    let percent = u8::try_from(rate.percent(rate.right)).unwrap_or(100);
    let text = format!("Reliability: {percent}%\n");
    let at_least = wanted.at_least;
    if percent < at_least {
        let error = CommandError::Unreliable { percent, at_least };
        return Err(Failure::from(error).with_text(text));
    }
    let data = json!({"schema": 1, "asked": rate.asked, "right": rate.right, "percent": percent});
    Ok(Outcome::shown(text, data))
}
