//! Conversations without keys, as they are written. Pure.

use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::record::tasks::Task;
use crate::record::todos::Todo;
use crate::secret::Redactor;

/// A conversation with every text redacted.
pub fn redacted_conversation(conversation: &Conversation, redactor: &Redactor) -> Conversation {
    let message = |message: &HistoryMessage| redacted_message(message, redactor);
    let messages = |messages: &[HistoryMessage]| messages.iter().map(message).collect();
    Conversation {
        history: messages(&conversation.history),
        earlier: messages(&conversation.earlier),
        ..redacted_state(conversation, redactor)
    }
}

/// The rest of a conversation, without its messages.
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
    // Every field by its name: a new one is not to be forgotten here.
    let Conversation {
        requests,
        settled,
        tasks,
        todos,
        thinker,
        history: _,
        earlier: _,
        truncation,
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
    }
}

/// A message with every text redacted.
pub(super) fn redacted_message(message: &HistoryMessage, redactor: &Redactor) -> HistoryMessage {
    let text = |text: &String| redactor.text(text).into_owned();
    let calls = message.calls.iter().map(|call| call.redacted(redactor));
    let parts = message.parts.iter();
    let parts = parts.filter_map(|part| part.redacted(redactor));
    HistoryMessage {
        content: text(&message.content),
        tool: message.tool.as_ref().map(text),
        calls: calls.collect(),
        parts: parts.collect(),
        ..message.clone()
    }
}
