//! The last stage: the work is summed up, the user corrects the summary, and it is added to the plan's log.
//!
//! The model describes the work; the program supplies the facts: the tools used, the outcome, and the criteria met.

use super::criteria::{objection, tick};
use super::ends::not_understood;
use super::forms::WorkSummary;
use super::progress::tools_used;
use super::session::{PlanState, WorkEnd};
use super::stages::Stages;
use super::types::{Criterion, LogEntry, Plan, PlanStatus, PlanTask, line};
use crate::agent::AgentError;
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::model::Purpose;
use crate::record::event::Event;
use crate::record::question::Answer;

/// The role of the model: `spec/plan-prompts.md`, 3.4.4.
const SUMMARIZER: &str = "You are a summarizer. Create concise log entries for what was just done.";
/// The request to the model.
const ASKED: &str = "Write the log entry for what was just done.";

/// The question in the specification's words.
const LOOKS_CORRECT: &str = "Does this summary look correct? (yes/no/edit): ";

/// The symbol of each [`WorkEnd`], in the order of its variants.
const SIGNS: [&str; 3] = ["✓", "🚧", "❌"];

impl Stages<'_, '_, '_> {
    /// Has the model sum up the steps' messages, and writes the summary and the plan's progress into the document.
    /// Returns the text that has yet to be shown.
    ///
    /// # Errors
    /// Fails if the model does not return a summary, or it cannot be written.
    pub fn sum_up(&self, history: &[HistoryMessage], end: WorkEnd) -> Result<String, AgentError> {
        let mut conversation = Conversation {
            history: history.to_vec(),
            ..Conversation::default()
        };
        let mut summary = self.summary(&mut conversation)?;
        let tools = tools_used(history);
        let mut text = self.shown(&mut summary, &tools, end)?;
        let is_interactive = self.run.is_interactive();
        if is_interactive {
            self.context.reporter.event(&Event::Shown(text.clone()));
            let is_corrected = loop {
                let answer = self.run.answer(LOOKS_CORRECT)?.unwrap_or_default();
                if matches!(answer.trim().to_ascii_lowercase().as_str(), "edit" | "e") {
                    break self.edit(&mut summary).map(|()| true)?;
                }
                let wrong = match Answer::read(&answer) {
                    Answer::No if answer.trim().is_empty() => break false,
                    Answer::Yes => break false,
                    Answer::No => self.run.answer("What is wrong? ")?.unwrap_or_default(),
                    Answer::Instead(words) => words,
                };
                if !wrong.trim().is_empty() {
                    let words = format!("The user says what is wrong with this log entry: {wrong}");
                    conversation.say(HistoryMessage::of_user(words));
                    summary = self.summary(&mut conversation)?;
                    break true;
                }
            };
            if is_corrected {
                text = self.shown(&mut summary, &tools, end)?;
                self.context.reporter.event(&Event::Shown(text.clone()));
            }
        }
        let entry = LogEntry {
            timestamp: self.context.clock.now().timestamp_millis(),
            ..summary.log_entry
        };
        let mut untold = Vec::new();
        self.note_version()?;
        self.change(|plan| {
            plan.execution_log.push(entry);
            if end == WorkEnd::Done {
                untold = tick(plan, &summary.acceptance_criteria_updates);
            }
            plan.decisions_made
                .extend(self.decided(summary.decisions_made));
            conclude(plan, end);
        })?;
        for text in untold {
            self.run.warn(format!("the summary ticks nothing: {text}"));
        }
        let noted = "the plan's log has it".to_owned();
        Ok(if is_interactive { noted } else { text })
    }

    fn summary(&self, conversation: &mut Conversation) -> Result<WorkSummary, AgentError> {
        let protocol = WorkSummary::protocol();
        conversation.say(HistoryMessage::of_user(ASKED));
        let words = self.ask(&Purpose::SUMMARY, SUMMARIZER, 0.1, &protocol, conversation)?;
        WorkSummary::read(&words).map_err(not_understood)
    }

    /// Replaces the model's words with the user's.
    fn edit(&self, summary: &mut WorkSummary) -> Result<(), AgentError> {
        let entry = &mut summary.log_entry;
        for (prompt, text) in [
            ("Action: ", &mut entry.action),
            ("Details: ", &mut entry.details),
        ] {
            let typed = self.run.answer(prompt)?.unwrap_or_default();
            if let Some(line) = line(&typed) {
                *text = line;
            }
        }
        Ok(())
    }

    /// Formats the summary as specified, with facts from the program.
    fn shown(
        &self,
        summary: &mut WorkSummary,
        tools: &[String],
        end: WorkEnd,
    ) -> Result<String, AgentError> {
        let entry = &mut summary.log_entry;
        let words = SIGNS.iter().fold(entry.result.trim(), |words, sign| {
            words.trim_start_matches(sign).trim_start()
        });
        entry.result = format!("{} {words}", SIGNS[end as usize]);
        entry.tools_used = tools.to_vec();
        let known = self.read()?.plan().acceptance_criteria;
        let updates = summary.acceptance_criteria_updates.iter();
        let is_met = |update: &&Criterion| {
            end == WorkEnd::Done && update.completed && objection(&known, update).is_none()
        };
        let met = updates
            .filter(is_met)
            .map(|update| format!("\n  ✓ {}", update.description));
        let mut completed: String = met.collect();
        if !completed.is_empty() {
            completed.insert_str(0, "\n\nAcceptance Criteria Completed:");
        }
        Ok(format!("{entry}{completed}"))
    }

    /// Records work without a model's summary, as an entry written by the program. If the work has ended, also records
    /// the plan's progress.
    ///
    /// # Errors
    /// Fails if the document cannot be changed.
    pub fn conclude(&self, end: Option<WorkEnd>) -> Result<(), AgentError> {
        let now = self.context.clock.now().timestamp_millis();
        let state = self.place.base.stored.state(PlanState::clone);
        self.change(|plan| {
            note_unsummed(&state, plan, now);
            if let Some(end) = end {
                conclude(plan, end);
            }
        })
    }

    /// Records the work so far if the model has not answered, since its server may be unavailable for a long time.
    pub fn note_stop(&self, error: &AgentError) {
        if matches!(error, AgentError::Model(_)) {
            // The model's error takes precedence over a failure to record the work.
            let _ = self.conclude(None);
        }
    }
}

/// Adds the program's own entry to the plan's log, unless the last entry says the same.
pub fn note_unsummed(state: &PlanState, plan: &mut Plan, timestamp: i64) {
    let entry = own_entry(state, plan, timestamp);
    let is_same =
        |last: &LogEntry| (&last.action, &last.details) == (&entry.action, &entry.details);
    if !plan.execution_log.last().is_some_and(is_same) {
        plan.execution_log.push(entry);
    }
}

/// Creates the program's own entry for work without a summary by a model: the request, the completed and open tasks,
/// and the files.
fn own_entry(state: &PlanState, plan: &Plan, timestamp: i64) -> LogEntry {
    let steps = |is_open: bool| {
        let tasks = plan.tasks.iter().filter(|task| task.is_open() == is_open);
        let names: Vec<&str> = tasks.map(|task| &*task.description).collect();
        listed(names.join("; "))
    };
    let request = state.requests.last().and_then(|request| line(request));
    let details = format!(
        "Not summed up. Done: {}. Open: {}. Files: {}.",
        steps(false),
        steps(true),
        listed(state.files.join(", "))
    );
    let open = plan.tasks.iter().filter(|task| task.is_open()).count();
    let end = match &state.ended {
        Some(ended) => ended.end,
        None if open == 0 => WorkEnd::Done,
        None => WorkEnd::Stopped,
    };
    let (sign, all) = (SIGNS[end as usize], plan.tasks.len());
    let history = state.conversation.history.get(state.from..);
    LogEntry {
        timestamp,
        action: request.unwrap_or_else(|| "The steps in the plan".to_owned()),
        details: line(&details).unwrap_or_default(),
        result: format!("{sign} {} of {all} steps are done", all - open),
        tools_used: tools_used(history.unwrap_or_default()),
    }
}

/// Formats a list for a sentence; "nothing" if it is empty.
fn listed(items: String) -> String {
    Some(items)
        .filter(|items| !items.is_empty())
        .unwrap_or_else(|| "nothing".to_owned())
}

/// Records the plan's progress in the document.
fn conclude(plan: &mut Plan, end: WorkEnd) {
    let are_over = !plan.tasks.iter().any(PlanTask::is_open);
    let hold = plan.acceptance_criteria.iter().all(|known| known.completed);
    plan.status = match end {
        WorkEnd::Done if are_over && hold => PlanStatus::Completed,
        WorkEnd::Stopped => PlanStatus::Blocked,
        WorkEnd::Failed => PlanStatus::Failed,
        WorkEnd::Done => PlanStatus::InProgress,
    };
}
