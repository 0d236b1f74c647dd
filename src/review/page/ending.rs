//! How a query or an agent's step ended, in a word or two. Pure.

use super::step::{self, Came, UsedTool};
use super::words::{self, Sign, count};
use crate::model::Purpose;
use crate::review::history::PastAttempt;

/// How the attempt ended, in a word or two.
#[must_use]
pub fn ended(attempt: &PastAttempt) -> (Sign, String) {
    let build = attempt.record.as_ref();
    let build = build.and_then(|record| record.build.as_ref());
    match (&attempt.reply, build) {
        (_, Some(build)) => words::build(build),
        (None, None) => (Sign::Open, "no answer".to_owned()),
        (Some(Err(_)), None) => (Sign::Bad, "no reply".to_owned()),
        (Some(Ok(reply)), None) if step::is_agents(&attempt.step) => agents_step(attempt, reply),
        (Some(Ok(_)), None) if attempt.step.purpose == Purpose::REPORT => {
            (Sign::Good, "answered".to_owned())
        }
        (Some(Ok(_)), None) => match &attempt.record {
            Some(record) if record.edits.is_none() => (Sign::Bad, "not applied".to_owned()),
            // Without a record, the build's own log tells how it ended.
            _ => match &attempt.build {
                Some((status, _)) if status == "exit code: 0" => (Sign::Good, "passed".to_owned()),
                Some((status, _)) => (Sign::Bad, status.clone()),
                None => (Sign::Open, "not built".to_owned()),
            },
        },
    }
}

/// How a call ended that was answered with `reply`, in a word or two.
fn agents_step(attempt: &PastAttempt, reply: &str) -> (Sign, String) {
    match step::came_of(attempt, reply) {
        Came::Tools(tools) => tools_ended(&tools),
        Came::Verdict { passed: true } => (Sign::Good, "passed".to_owned()),
        Came::Verdict { passed: false } => (Sign::Bad, "not passed".to_owned()),
        // Whether it was short enough is the run's error.
        Came::Summary => (Sign::Open, "a summary".to_owned()),
        Came::Nothing if attempt.step.purpose == Purpose::AUDIT => {
            (Sign::Bad, "no verdict".to_owned())
        }
        Came::Nothing => (Sign::Bad, "nothing done".to_owned()),
    }
}

fn tools_ended(tools: &[UsedTool<'_>]) -> (Sign, String) {
    let failed = tools.iter().filter(|tool| tool.failed).count();
    let sign = if failed == 0 { Sign::Good } else { Sign::Bad };
    let said = match (tools, failed) {
        ([tool], 0) => tool.name.to_owned(),
        ([tool], _) => format!("{} failed", tool.name),
        (tools, 0) => count(tools.len(), "tool"),
        (tools, failed) => format!("{failed} of {} failed", count(tools.len(), "tool")),
    };
    (sign, said)
}
