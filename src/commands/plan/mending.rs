//! Repairs a damaged plan: copies the document, and asks a model once to restore it.

use super::document::{PlanDocument, PlanDocumentError, retry_prompt};
use super::session::PlanStage;
use super::stages::Stages;
use crate::agent::conversation::Conversation;
use crate::agent::protocol::native::Native;
use crate::agent::protocol::object::unfenced;
use crate::agent::{AgentError, Brief};
use crate::model::Purpose;
use crate::sys::error::Error;
use crate::sys::excerpt::text::bounded;

/// The role of the model: `spec/plan-prompts.md`, 4.3.6.
const FORMATTER: &str =
    "You are a plan formatter. Fix the malformed plan to match the required format.";
/// The request to the model.
const ASKED: &str = "Reply with the whole plan in that format, and nothing else.";

/// The maximum length of a damaged plan in a prompt, in bytes.
const MOST_SENT: usize = 32 << 10;

impl Stages<'_, '_, '_> {
    /// Repairs the plan if it is damaged; replaces it with an empty one if the model cannot repair it. The request is
    /// planned again if its steps are lost.
    ///
    /// # Errors
    /// Fails if the document cannot be read or replaced, or a fatal error ends the run.
    pub fn mend(&self) -> Result<(), AgentError> {
        let Err(problem) = self.document.read() else {
            return Ok(());
        };
        let Some(damage) = problem.damage() else {
            return Err(Error::from(problem).into());
        };
        let now = self.context.clock.now().timestamp_millis();
        let mended = match self.mended(damage, now) {
            // Models put the document into a code fence.
            Ok(reply) => {
                PlanDocument::parse(format!("{}\n", unfenced(reply.trim())).as_bytes()).ok()
            }
            Err(AgentError::NotUnderstood { .. } | AgentError::TooLong { .. }) => None,
            Err(AgentError::Model(error)) if error.is_incomplete_reply() => None,
            Err(error) => return Err(error),
        };
        if self.document.read().is_ok() {
            // The user has repaired it in the meantime.
            return Ok(());
        }
        let stored = &self.place.base.stored;
        let (by, is_lost) = match &mended {
            Some(mended) => {
                let stage = stored.state(|state| state.stage);
                let needs_steps = matches!(stage, PlanStage::Execution | PlanStage::Summary);
                let has_none = mended.plan().tasks.is_empty();
                ("what the model made of it", needs_steps && has_none)
            }
            None => ("an empty plan", true),
        };
        let document = mended.unwrap_or_else(|| PlanDocument::empty(now));
        let copy = self.document.replace(&document).map_err(Error::from)?;
        if is_lost {
            // There are no steps to continue with.
            stored.change_state(|state| state.enter(PlanStage::Planning))?;
        }
        self.run.warn(format!(
            "{problem}: {by} has taken its place, and it is kept as `{}`",
            copy.display()
        ));
        Ok(())
    }

    /// Asks the model to repair a damaged plan.
    fn mended(&self, problem: &PlanDocumentError, now: i64) -> Result<String, AgentError> {
        let bytes = self.document.bytes().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).replace('\0', "");
        let content = bounded(&self.context.redactor.text(&text), MOST_SENT);
        let instructions = format!(
            "{}\n\n# Response Format\n\n{}",
            self.place.instructions,
            retry_prompt(problem, now)
        );
        let purpose = Purpose::PLAN_REPAIR;
        let brief = || Brief {
            instructions: instructions.clone(),
            context: vec![
                self.model_and(&purpose, FORMATTER),
                format!("# Current Plan\n\n{content}"),
            ],
            ..Brief::default()
        };
        let mut repair = Conversation::default();
        repair.request(ASKED);
        self.ask_apart(&purpose, 0.1, 1, &Native::default(), brief, &mut repair)
    }
}
