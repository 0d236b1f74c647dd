//! Conversations with keys removed, as they are written to disk. Pure.

use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::record::tasks::Task;
use crate::record::todos::Todo;
use crate::secret::Redactor;

/// Redacts every text of a conversation.
pub fn redacted_conversation(conversation: &Conversation, redactor: &Redactor) -> Conversation {
    let message = |message: &HistoryMessage| redacted_message(message, redactor);
    let messages = |messages: &[HistoryMessage]| messages.iter().map(message).collect();
    Conversation {
        history: messages(&conversation.history),
        earlier: messages(&conversation.earlier),
        ..redacted_state(conversation, redactor)
    }
}

/// Redacts a conversation without its messages.
pub(super) fn redacted_state(conversation: &Conversation, redactor: &Redactor) -> Conversation {
    let text = |text: &String| redactor.text(text).into_owned();
    let task = |task: &Task| Task {
        text: text(&task.text),
        ..*task
    };
    let todo = |todo: &Todo| Todo {
        content: text(&todo.content),
        active_form: todo.active_form.as_ref().map(text),
        ..*todo
    };
    // Destructures every field by name, so that a new one cannot be forgotten here.
    let Conversation {
        requests,
        settled,
        tasks,
        todos,
        thinker,
        history: _,
        earlier: _,
        truncation,
        is_unapplied,
    } = conversation;
    Conversation {
        requests: requests.iter().map(text).collect(),
        settled: *settled,
        tasks: tasks.iter().map(task).collect(),
        todos: todos.iter().map(todo).collect(),
        thinker: thinker.clone(),
        history: Vec::new(),
        earlier: Vec::new(),
        truncation: *truncation,
        is_unapplied: *is_unapplied,
    }
}

/// Redacts every text of a message.
pub(super) fn redacted_message(message: &HistoryMessage, redactor: &Redactor) -> HistoryMessage {
    let text = |text: &String| redactor.text(text).into_owned();
    let calls = message.calls.iter().map(|call| call.redacted(redactor));
    let parts = message
        .parts
        .iter()
        .filter_map(|part| part.redacted(redactor));
    HistoryMessage {
        content: redactor.text(&message.content).into(),
        tool: message.tool.as_ref().map(text),
        brief: message.brief.as_ref().map(text),
        calls: calls.collect(),
        parts: parts.collect(),
        ..message.clone()
    }
}
