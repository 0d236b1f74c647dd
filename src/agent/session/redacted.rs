//! Conversations without keys, as they are written. Pure.

use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::record::tasks::Task;
use crate::record::todos::Todo;
use crate::secret::Redactor;

/// A conversation with every text redacted.
#[must_use]
pub fn redacted_conversation(conversation: &Conversation, redactor: &Redactor) -> Conversation {
    let messages = |messages: &[HistoryMessage]| {
        let messages = messages.iter();
        messages
            .map(|message| redacted_message(message, redactor))
            .collect()
    };
    Conversation {
        history: messages(&conversation.history),
        earlier: messages(&conversation.earlier),
        ..redacted_state(conversation, redactor)
    }
}

/// The rest of a conversation, without its messages.
pub(super) fn redacted_state(conversation: &Conversation, redactor: &Redactor) -> Conversation {
    let text = |text: &String| redactor.text(text).into_owned();
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
        tasks: tasks
            .iter()
            .map(|task| Task {
                status: task.status,
                text: text(&task.text),
            })
            .collect(),
        todos: todos
            .iter()
            .map(|todo| Todo {
                content: text(&todo.content),
                active_form: todo.active_form.as_ref().map(text),
                ..todo.clone()
            })
            .collect(),
        thinker: thinker.clone(),
        history: Vec::new(),
        earlier: Vec::new(),
        truncation: *truncation,
    }
}

/// A message with every text redacted.
pub(super) fn redacted_message(message: &HistoryMessage, redactor: &Redactor) -> HistoryMessage {
    let text = |text: &String| redactor.text(text).into_owned();
    HistoryMessage {
        content: text(&message.content),
        tool: message.tool.as_ref().map(text),
        calls: message
            .calls
            .iter()
            .map(|call| call.redacted(redactor))
            .collect(),
        parts: message
            .parts
            .iter()
            .filter_map(|part| part.redacted(redactor))
            .collect(),
        ..message.clone()
    }
}
