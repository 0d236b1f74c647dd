//! A step as the parts that the log and the pages tell of it, in their order. Pure.

use super::history::{IdleReply, PastStep};
use crate::model::Purpose;
use crate::record::step::{Action, BuildRecord};

/// A part of a step's story.
#[derive(Debug, Clone, Copy)]
pub enum Part<'p> {
    /// A model was asked, and there is no reply.
    NoReply,
    /// The error in place of a reply.
    Error(&'p str),
    /// A consistency report.
    Report(&'p str),
    /// A reply of edits.
    Edits(&'p str),
    /// An agent's thoughts.
    Thoughts(&'p str),
    /// An agent's reply as it came.
    Reply(&'p str),
    /// The tools that were used.
    Actions(&'p [Action]),
    /// The same as runs of before have it.
    Tools(&'p str),
    /// The words with which an agent ended its work.
    Answer(&'p str),
    /// A reply that was followed by nothing.
    Idle(IdleReply, &'p str),
    /// The end of the build, and its output.
    Build(&'p str, &'p str),
}

impl PastStep {
    /// The parts of the step's story.
    pub fn story(&self) -> Vec<Part<'_>> {
        let step = &self.step;
        let mut parts = Vec::new();
        let reply = match &self.reply {
            _ if step.is_own() => None,
            None => Some(Part::NoReply),
            Some(Err(error)) => Some(Part::Error(error)),
            Some(Ok(text)) if step.purpose == Purpose::REPORT => Some(Part::Report(text)),
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
        parts
    }
}

/// The verb for how a build went; `None` if only its log tells of it.
pub fn build_verb(record: Option<&BuildRecord>) -> &'static str {
    match record.map(BuildRecord::passed) {
        None => "ran",
        Some(true) => "passed",
        Some(false) => "failed",
    }
}
