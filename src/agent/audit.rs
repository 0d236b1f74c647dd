//! An agent that judges another's work, and the work that goes on until it passes.

use super::conversation::{Conversation, HistoryMessage};
use super::protocol::{Decision, Fault, Offer, Protocol, Turn};
use super::tagged::{Tag, tagged, tagged_requests};
use super::tool::Toolbox;
use super::{Agent, AgentError, Note};
use crate::model::message::Message;
use crate::model::{Purpose, Reply};
use crate::record::tasks::Task;
use crate::record::verdict::{self, Verdict};
use crate::ui::Event;

/// Takes up `conversation`, with a further request where there is one, and lets `worker` work until `auditor`
/// passes what it has done; gives the worker's summary. The auditor's last words are to be a verdict.
///
/// # Errors
/// When the worker does not get to its end, or the audit fails as often as the worker may fail.
pub fn work_until_passed(
    worker: &Agent<'_>,
    auditor: &Agent<'_>,
    conversation: &mut Conversation,
    mut request: Option<&str>,
) -> Result<String, AgentError> {
    let auditor = Agent {
        purpose: Purpose::AUDIT,
        ending: &|words| verdict::read(words).map(drop),
        ..auditor.clone()
    };
    let mut audits = 0;
    loop {
        let ended = worker.work_on(conversation, request.take())?;
        worker.tell(&Event::Auditing);
        let verdict = judge(&auditor, conversation, &ended.words)?;
        audits += 1;
        worker.env.host.note(Note::Judged(verdict.passed))?;
        worker.tell(&Event::Audited {
            passed: verdict.passed,
            text: verdict.told(),
        });
        let result = if verdict.passed { "PASS" } else { "FAIL" };
        conversation.say(ended.message(format!("Audit: {result}\n\n{}", verdict.feedback)));
        worker.keep(conversation)?;
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
    let mut audit = Conversation::default();
    audit.requests.clone_from(&conversation.requests);
    let brief = brief(&conversation.requests, &conversation.tasks, summary);
    audit.history.push(HistoryMessage::tagged(brief));
    let ended = auditor.work_on(&mut audit, None)?;
    // The auditor's ending has seen to it that this is a verdict.
    let unclear = |feedback| Verdict {
        passed: false,
        feedback,
        seen: String::new(),
    };
    Ok(verdict::read(&ended.words).unwrap_or_else(unclear))
}

/// What the auditor is told.
fn brief(requests: &[String], tasks: &[Task], summary: &str) -> String {
    let requests = tagged_requests(requests);
    let tasks: Vec<String> = tasks.iter().map(Task::to_string).collect();
    let tasks = tagged(Tag::TaskList, &[], &tasks.join("\n"));
    let summary = tagged(Tag::WorkSummary, &[], summary);
    format!("{requests}\n\n{tasks}\n\n{summary}")
}

/// The auditor's protocol, which tells an auditor that is not understood how to end. Many answer in the form of
/// a reply that uses a tool: a verdict in that form is one.
pub struct Judging<'a>(pub &'a dyn Protocol);

impl Protocol for Judging<'_> {
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        self.0.offer(tools)
    }

    fn remembers_calls(&self) -> bool {
        self.0.remembers_calls()
    }

    fn render(&self, history: &[HistoryMessage]) -> Vec<Message<'static>> {
        self.0.render(history)
    }

    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        self.0.read(reply, tools).or_else(|fault| {
            let words = verdict_in_template(&reply.text, tools).ok_or_else(|| Fault {
                problem: format!("{}; {}", fault.problem, verdict::FORM),
                ..fault
            })?;
            Ok(Turn {
                thoughts: String::new(),
                tasks: None,
                decision: Decision::Answer(words.to_owned()),
                note: None,
                remembered: words.to_owned(),
            })
        })
    }
}

/// What a reply says that has the template's header and chooses no tool that there is, but ends with a verdict:
/// behind `Tool Choice`, where it has that. What was only thought is no verdict.
fn verdict_in_template<'r>(reply: &'r str, tools: &Toolbox<'_>) -> Option<&'r str> {
    let (before, words) = reply.rsplit_once("# Agent Response")?;
    let said = words.rsplit("Tool Choice").next()?;
    let names_tool = tools.specs().any(|tool| said.contains(&*tool.name));
    let may_be_thought = before.contains("<think") || said.contains("<think");
    (!names_tool && !may_be_thought && verdict::read(said).is_ok()).then_some(words)
}
