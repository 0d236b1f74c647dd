//! A step split into the parts shown in the log and on the HTML pages, in order. Pure.

use super::past_step::{IdleReply, PastStep};
use crate::model::Purpose;
use crate::record::step::{Action, BuildRecord};

/// A part of a step, as shown to the user.
#[derive(Debug, Clone, Copy)]
pub enum Part<'p> {
    /// A model was asked and gave no reply.
    NoReply,
    /// An error in place of a reply.
    Error(&'p str),
    /// A consistency report.
    Report(&'p str),
    /// The findings of a part for a consistency report, or its findings as data.
    Findings(&'p str),
    /// A reply with edits.
    Edits(&'p str),
    /// An agent's thinking.
    Thoughts(&'p str),
    /// An agent's reply as received.
    Reply(&'p str),
    /// The tool calls that were made.
    Actions(&'p [Action]),
    /// The tool calls as older runs record them.
    Tools(&'p str),
    /// The final answer of an agent.
    Answer(&'p str),
    /// A reply that led to no action.
    Idle(IdleReply, &'p str),
    /// The build's status and its output.
    Build(&'p str, &'p str),
    /// The files that an agent changed.
    Files,
}

impl PastStep {
    /// Splits the step into the parts to show.
    pub fn story(&self) -> Vec<Part<'_>> {
        let step = &self.step;
        let mut parts = Vec::new();
        let reply = match &self.reply {
            _ if step.is_own() => None,
            None => Some(Part::NoReply),
            Some(Err(error)) => Some(Part::Error(error)),
            Some(Ok(text)) if step.purpose == Purpose::REPORT => Some(Part::Report(text)),
            Some(Ok(text)) if step.purpose.is_reports() => Some(Part::Findings(text)),
            Some(Ok(text)) if step.is_agents() => Some(Part::Reply(text)),
            Some(Ok(text)) => Some(Part::Edits(text)),
        };
        if step.is_agents() {
            parts.extend(step.thoughts.as_deref().map(Part::Thoughts));
            parts.extend(reply);
            parts.push(Part::Actions(&step.actions));
            parts.extend(self.tools.as_deref().map(Part::Tools));
            let answer = step.answer.as_deref();
            let answer = answer.filter(|_| step.purpose != Purpose::AUDIT);
            parts.extend(answer.map(Part::Answer));
            if let (Some(idle), Some(Part::Reply(text))) = (self.idle(), reply) {
                parts.push(Part::Idle(idle, text));
            }
        } else {
            parts.extend(reply);
        }
        let log = self.build_log();
        parts.extend(log.map(|(status, output)| Part::Build(status, output)));
        if step.is_agents() && step.changed_files().next().is_some() {
            parts.push(Part::Files);
        }
        parts
    }
}

/// The verb for a build's result; `ran` if the result is not recorded.
pub fn build_verb(record: Option<&BuildRecord>) -> &'static str {
    match record.map(BuildRecord::passed) {
        None => "ran",
        Some(true) => "passed",
        Some(false) => "failed",
    }
}
