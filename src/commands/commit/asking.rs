//! A commit's requests for edits: asks again after a rejected reply, and adds the files that a reply asks for.

use std::mem;

use crate::commands::command_line::Cli;
use crate::commands::error::CommandError;
use crate::edit::{
    self, LossGuard, ParsedReply, PathPolicy, Rejection, Sent, VerifiedEdits, VerifyError,
};
use crate::model::estimate::{OverBudget, room};
use crate::model::prompt::{Prompt, PromptOrder};
use crate::model::{Purpose, Reply, ReplyFormat, StepId};
use crate::record::event::Event;
use crate::record::run_files::SHOWN;
use crate::run::active::Run;
use crate::run::code_context::CodeContext;
use crate::run::context::Context;
use crate::run::error::DoesNotFit;
use crate::run::resumption::ResumedTree;
use crate::run::selection::Models;
use crate::secret::{MARK, credentials};
use crate::sys::error::Error;

/// Asks for edits and verifies them.
pub struct Asking<'c> {
    pub context: &'c Context<'c>,
    pub cli: &'c Cli,
    /// The user's request.
    pub query: String,
    pub resumed: ResumedTree,
    /// The code base, if only part of it is sent.
    pub code: Option<CodeContext>,
}

impl Asking<'_> {
    /// Logs the files shown to the model by the first query, if only part of the code is sent.
    pub fn log_shown(&self, run: &Run<'_>) -> Result<(), Error> {
        let code = self.code.as_ref();
        code.map_or(Ok(()), |code| Ok(run.log.json(SHOWN, &code.first)?))
    }

    /// Asks for edits with the `prompt` for the model's order and reply format. If the reply is rejected, asks again up
    /// to the configured limit, with the same query and the reasons for the rejection; files that the model asks for
    /// are added to the query. Leaves `step` at the last query sent.
    pub fn ask<'p>(
        &mut self,
        run: &mut Run<'_>,
        models: &Models<'_>,
        step: &mut StepId,
        prompt: impl Fn(PromptOrder, ReplyFormat) -> Prompt<'p>,
        sent: &dyn Fn(&str) -> Sent,
    ) -> Result<VerifiedEdits, Error> {
        let model = models.model(step);
        let (order, format) = (model.spec.prompt_order, model.reply_format(step));
        // A repair without edits is an attempt like any other.
        let needs_edits = self.cli.replies.require_edits && step.purpose != Purpose::REPAIR;
        let allowed = self.cli.replies.reask.max(models.reasks);
        let mut rejected: Option<Error> = None;
        loop {
            let mut prompt = prompt(order, format);
            if let Some(code) = &self.code {
                prompt = prompt.with("needed files", code.needed());
            }
            if let Some(rejection) = &rejected {
                prompt = prompt.after_rejection(&rejection.to_string());
            }
            let answering = &models.of(&Purpose::CONTEXT).spec;
            let room = self.code.as_ref().map(|_| room(&prompt, answering));
            let is_applied = self.resumed.applied(step).is_some();
            let rounds = self.code.as_ref().map_or(0, CodeContext::rounds);
            let next = StepId::new(Purpose::CONTEXT, rounds + 1);
            // A request that the recorded run refused was repeated.
            let was_granted =
                models.has_recorded(&next) && !models.has_recorded(&step.clone().again());
            let examine = |reply: &Reply| {
                let sent = |path: &str| match &self.code {
                    Some(code) => code.sent(path, sent(path)),
                    None => sent(path),
                };
                let parsed = edit::read(&reply.text, format, &sent);
                // Edits that are already on disk cannot be located there again.
                if is_applied && format == ReplyFormat::Edits {
                    return (parsed.prose, Ok(Some(VerifiedEdits::default())));
                }
                let guard = self.guard(step, reply);
                self.verify(parsed, guard, was_granted, room.unwrap_or_default())
            };
            let asked = run.ask(models, step, prompt, examine);
            let (_, (prose, verified)) = match (asked, rejected) {
                // Report the rejection as the reason for the failure, not the limit that prevents another call.
                (Err(why), Some(rejection)) if why.is::<OverBudget>() || why.is::<DoesNotFit>() => {
                    run.warn(format!("the model is not asked again: {why}"));
                    return Err(rejection);
                }
                (asked, _) => asked?,
            };
            self.context.reporter.event(&Event::Prose(prose));
            let rejection = match verified {
                // Edits that are already on disk count, although they change nothing now.
                Ok(Some(edits)) if is_applied || !needs_edits || !edits.edits().is_empty() => {
                    return Ok(edits);
                }
                Ok(Some(_)) => Error::from(CommandError::NoEdits),
                Ok(None) => {
                    run.log_step()?;
                    self.log_shown(run)?;
                    let rounds = self.code.as_ref().map_or(0, CodeContext::rounds);
                    *step = StepId::new(Purpose::CONTEXT, rounds);
                    rejected = None;
                    continue;
                }
                Err(VerifyError::Rejected(rejection)) => {
                    let run = run.log.name().to_owned();
                    CommandError::Rejected { rejection, run }.into()
                }
                Err(error) => return Err(error.into()),
            };
            run.note(|step| step.rejected = Some(rejection.to_string()));
            run.log_step()?;
            if run.record.reasks() >= allowed {
                return Err(rejection);
            }
            run.warn(format!("{rejection}\nthe model is asked again"));
            *step = step.clone().again();
            rejected = Some(rejection);
        }
    }

    /// Returns the limits on what a reply may delete; none for a recorded reply whose edits are already on disk, since
    /// they have been checked.
    fn guard(&self, step: &StepId, reply: &Reply) -> LossGuard {
        if self.resumed.applied(step).is_some() {
            return LossGuard::off();
        }
        let mut marks = credentials::marks(self.context.redactor);
        // The secret may no longer be known.
        marks.extend(reply.is_redacted.then(|| MARK.to_owned()));
        LossGuard {
            allowances: self.cli.losses.into(),
            query: self.query.clone(),
            marks,
            ..LossGuard::default()
        }
    }

    /// Checks all edits of a reply against the policy. Returns `None` for a request for files,
    /// which is then granted. The prose around the edits is not judged.
    fn verify(
        &mut self,
        mut parsed: ParsedReply,
        guard: LossGuard,
        was_granted: bool,
        room: u64,
    ) -> (String, Result<Option<VerifiedEdits>, VerifyError>) {
        let prose = mem::take(&mut parsed.prose);
        let request = parsed.request();
        if let Some((code, request)) = self.code.as_mut().zip(request) {
            let granted = code.grant(&parsed, request, was_granted, room);
            let done = granted.map(|files| {
                let files = files.join(", ");
                self.context
                    .notice(format!("the model gets what it asks for: {files}"));
                None
            });
            return (prose, done.map_err(|faults| Rejection { faults }.into()));
        }
        let seen = self.code.as_ref().map(|code| code.sight.whole.clone());
        let policy = PathPolicy::load(self.context.project.root(), self.context.sandbox.program);
        let protection = self.context.protection.clone();
        let verified = policy.and_then(|policy| {
            let policy = policy.guarded(guard).protecting(protection);
            let policy = policy.configured(self.context.configured_paths());
            policy.seeing(seen).verify(parsed)
        });
        (prose, verified.map(Some))
    }
}
