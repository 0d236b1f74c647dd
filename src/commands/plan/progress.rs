//! The progress of a plan's steps: their status, and the use of tools in their conversations. Pure.

use super::types::{Plan, PlanTask, PlanTaskStatus};
use crate::agent::conversation::HistoryMessage;
use crate::model::message::Role;
use crate::record::tasks::{Task, TaskStatus};

/// Records the status of a step. The step is found by its description, since the user may have moved it; a step that
/// the user has reworded or removed is ignored.
pub fn note_status(plan: &mut Plan, task: &PlanTask, status: PlanTaskStatus) {
    // Compare word by word, since the document joins a description into one line when the status is written.
    let words = || task.description.split_whitespace();
    let tasks = plan.tasks.iter_mut();
    let same = tasks.filter(|known| known.description.split_whitespace().eq(words()));
    // If several match, the nearest one is activated; after that, the active one is updated.
    let is_other = |known: &PlanTask| {
        status != PlanTaskStatus::Active && known.status != PlanTaskStatus::Active
    };
    let nearest = |known: &&mut PlanTask| (is_other(known), known.step.abs_diff(task.step));
    if let Some(found) = same.min_by_key(nearest) {
        found.status = status;
    }
}

/// Returns the index of the message with which a step begins; the length of the history if there is none.
pub fn begin_of(history: &[HistoryMessage], step: &str) -> usize {
    let found = history
        .iter()
        .rposition(|message| *message.content == *step);
    found.unwrap_or(history.len())
}

/// Returns the tools used, without duplicates, in order of first use. Calls that failed or were refused do not count,
/// nor does the build.
pub fn tools_used(history: &[HistoryMessage]) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    let used = |message: &&HistoryMessage| message.role == Role::Tool && !message.is_failed;
    for message in history.iter().filter(used) {
        if let Some(tool) = message.tool.as_ref().filter(|tool| !tools.contains(tool)) {
            tools.push(tool.clone());
        }
    }
    tools
}

/// Converts a task for display in a list.
pub fn shown(task: &PlanTask) -> Task {
    Task {
        status: match task.status {
            PlanTaskStatus::Active => TaskStatus::InProgress,
            PlanTaskStatus::Done => TaskStatus::Complete,
            PlanTaskStatus::Todo | PlanTaskStatus::Failed | PlanTaskStatus::Skipped => {
                TaskStatus::Pending
            }
        },
        text: task.description.clone(),
    }
}
