//! Audited work: one agent judges another's work, which continues until it passes.

use super::conversation::{Conversation, HistoryMessage};
use super::protocol::Fault;
use super::tagged::{Tag, tagged, tagged_requests};
use super::{Agent, AgentError, Note};
use crate::model::Purpose;
use crate::record::event::Event;
use crate::record::tasks::Task;
use crate::record::verdict::{self, Verdict};

/// Resumes `conversation`, with a further request if given, and lets `worker` work until `auditor` passes the result;
/// returns the worker's summary. The auditor must end with a verdict.
///
/// # Errors
/// Fails if the worker does not finish, or the audit fails as often as the worker is allowed to fail.
pub fn work_until_passed(
    worker: &Agent<'_>,
    auditor: &Agent<'_>,
    conversation: &mut Conversation,
    mut request: Option<&str>,
) -> Result<String, AgentError> {
    let auditor = Agent {
        purpose: Purpose::AUDIT,
        ending: &|ended, _| Ok(verdict(&ended.words).map(drop)?),
        ..auditor.clone()
    };
    let mut audits = 0;
    loop {
        let ended = worker.work_on(conversation, request.take())?;
        worker.report(&Event::Auditing);
        let verdict = judge(&auditor, conversation, &ended.words)?;
        audits += 1;
        worker.env.host.note(Note::Judged(verdict.passed))?;
        worker.report(&Event::Audited {
            passed: verdict.passed,
            text: verdict.message(),
        });
        let result = if verdict.passed { "PASS" } else { "FAIL" };
        conversation.say(ended.message(format!("Audit: {result}\n\n{}", verdict.feedback)));
        worker.save(conversation)?;
        if verdict.passed {
            return Ok(ended.words);
        }
        if audits >= worker.tries {
            return Err(AgentError::AuditFailed {
                audits,
                feedback: verdict.feedback,
            });
        }
    }
}

fn judge(
    auditor: &Agent<'_>,
    conversation: &Conversation,
    summary: &str,
) -> Result<Verdict, AgentError> {
    let mut audit = Conversation {
        requests: conversation.open_requests().to_vec(),
        ..Conversation::default()
    };
    let changes = auditor.env.host.changes();
    let brief = brief(&audit.requests, &conversation.tasks, summary, &changes);
    audit.history.push(HistoryMessage::tagged(brief));
    let ended = auditor.work_on(&mut audit, None)?;
    // The auditor's `ending` has already checked that this is a verdict.
    verdict(&ended.words).map_err(|fault| AgentError::NotUnderstood {
        tries: auditor.tries,
        fault,
    })
}

/// Reads the verdict in an auditor's answer.
fn verdict(words: &str) -> Result<Verdict, Fault> {
    verdict::read(words).map_err(|problem| Fault::of_all(problem).with_remedy(verdict::FORM))
}

/// Builds the auditor's first message.
fn brief(requests: &[String], tasks: &[Task], summary: &str, changes: &str) -> String {
    let requests = tagged_requests(requests);
    let lines: Vec<String> = tasks.iter().map(Task::to_string).collect();
    let tasks = tagged(Tag::TaskList, &[], &lines.join("\n"));
    let summary = tagged(Tag::WorkSummary, &[], summary);
    let changes = match changes {
        "" => String::new(),
        changes => format!("\n\n{}", tagged(Tag::ProjectChanges, &[], changes)),
    };
    format!("{requests}\n\n{tasks}\n\n{summary}{changes}")
}
