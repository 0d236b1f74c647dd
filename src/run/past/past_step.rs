//! A step of a past run, with the contents of its files. Pure.

use crate::model::Purpose;
use crate::record::step::Step;
use crate::sys::diff::FileChange;

/// A step of a run, with the contents of its files.
#[derive(Debug, Clone)]
pub struct PastStep {
    /// The record of the step.
    pub step: Step,
    /// The reply, or the error that was logged in its place.
    pub reply: Option<Result<String, String>>,
    /// The log of the build that followed.
    pub log: Option<String>,
    /// The inputs and results of an agent's tools, from their own file: only for older runs, whose steps do not record
    /// them.
    pub tools: Option<String>,
    /// The reply's changes relative to the state left by earlier steps.
    pub changes: Vec<FileChange>,
    /// True if the model directs other agents, in which case its text is addressed to the user or is a report.
    pub directs_agents: bool,
    /// True if it is the last step of a run without a record, which ended before the step did.
    pub is_cut_short: bool,
    /// True if it is one of several parallel attempts.
    pub is_attempt: bool,
}

/// A reply from an agent that led to no action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReply {
    /// Text that did not end the work: a question, or a report that did not count.
    Words,
    /// A tool call that was not completed because the run ended first.
    Call,
    /// A reply that was not understood, or the run ended before it was used.
    NotUnderstood,
}

impl PastStep {
    /// Returns whether the reply is complete and need not be requested again.
    pub fn is_whole(&self) -> bool {
        self.step.finish.is_some() && matches!(self.reply, Some(Ok(_)))
    }

    /// Returns the kind of idle reply, if an agent's reply led to no action.
    pub fn idle(&self) -> Option<IdleReply> {
        let step = &self.step;
        let acts =
            step.is_agents() && ![Purpose::AUDIT, Purpose::COMPRESSION].contains(&step.purpose);
        let has_end = step.passed.is_some() || step.answer.is_some();
        let has_worked = step.build.is_some() || self.tools.is_some();
        let is_idle = step.actions.is_empty() && !has_end && !has_worked;
        let reply = self.reply.as_ref()?.as_ref().ok()?;
        let has_call = step.reply.iter().any(|part| part.part == "call");
        (acts && is_idle).then(|| match has_call {
            true => IdleReply::Call,
            false if self.directs_agents && !reply.trim().is_empty() => IdleReply::Words,
            false if self.is_cut_short => IdleReply::Call,
            false => IdleReply::NotUnderstood,
        })
    }

    /// Returns the build's status, from the first line of its log, and its output.
    pub fn build_log(&self) -> Option<(&str, &str)> {
        let log = self.log.as_ref()?;
        let (status, output) = log.split_once('\n').unwrap_or((log, ""));
        Some((status.trim_end(), output))
    }
}
