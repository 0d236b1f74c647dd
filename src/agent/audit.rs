//! An agent that judges another's work, and the work that goes on until it passes.

pub mod verdict;

use super::conversation::{Conversation, Remark};
use super::tagged::tagged;
use super::tools::notes::DONE;
use super::{Agent, AgentError};
use crate::error::Error;
use crate::report::Event;
use crate::tasks::Task;

use self::verdict::Verdict;

/// Whether an auditor's last words are a verdict.
///
/// # Errors
/// What is missing, for the auditor.
pub fn is_verdict(words: &str) -> Result<(), String> {
    verdict::read(words).map(drop)
}

/// Takes up `conversation`, with a further request where there is one, and lets `worker` work until `auditor`
/// passes what it has done; gives the worker's summary.
///
/// # Errors
/// When the worker does not get to its end, or the audit fails as often as the worker may fail.
pub fn work_until_passed(
    worker: &Agent<'_>,
    auditor: &Agent<'_>,
    conversation: &mut Conversation,
    request: Option<&str>,
) -> Result<String, Error> {
    let mut done = worker.take_up(conversation, request)?;
    let mut audits = 0;
    loop {
        let summary = match done.take() {
            Some(summary) => summary,
            None => worker.work(conversation)?,
        };
        worker.tell(Event::Auditing);
        let verdict = judge(auditor, conversation, &summary)?;
        audits += 1;
        worker.tell(Event::Audited {
            passed: verdict.passed,
            text: &verdict.feedback,
        });
        let result = if verdict.passed { "PASS" } else { "FAIL" };
        let told = format!("Audit: {result}\n\n{}", verdict.feedback);
        conversation.say(Remark::of_tool(DONE.name, told));
        worker.keep(conversation)?;
        if verdict.passed {
            return Ok(summary);
        }
        if audits >= worker.tries {
            return Err(AgentError::AuditFailed {
                audits,
                feedback: verdict.feedback,
            }
            .into());
        }
    }
}

fn judge(
    auditor: &Agent<'_>,
    conversation: &Conversation,
    summary: &str,
) -> Result<Verdict, Error> {
    let mut audit = Conversation::default();
    audit.requests.clone_from(&conversation.requests);
    let brief = brief(&conversation.requests, &conversation.tasks, summary);
    audit.history.push(Remark {
        // It consists of tagged parts.
        is_summary: true,
        ..Remark::of_user(brief)
    });
    let words = auditor.work(&mut audit)?;
    // The auditor's ending has seen to it that this is a verdict.
    Ok(verdict::read(&words).unwrap_or_else(Verdict::unclear))
}

/// What the auditor is told.
fn brief(requests: &[String], tasks: &[Task], summary: &str) -> String {
    let requests = requests
        .iter()
        .map(|text| tagged("user_request", &[], text));
    let requests = requests.collect::<Vec<_>>().join("\n\n");
    let tasks = tasks
        .iter()
        .map(|task| format!("{} {}", task.status.sign(), task.text));
    let tasks = tagged("task_list", &[], &tasks.collect::<Vec<_>>().join("\n"));
    let summary = tagged("work_summary", &[], summary);
    format!("{requests}\n\n{tasks}\n\n{summary}")
}
