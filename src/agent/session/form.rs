//! The form of a session's file: the specification's fields, and ours behind them. Pure.

use std::mem::take;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Compression, Outline, Session, SessionLock, SessionState};
use crate::agent::conversation::{Conversation, HistoryMessage, Truncation, is_zero};
use crate::model::message::Call;
use crate::record::tasks::Task;
use crate::record::todos::Todo;
use crate::secret::Redactor;

/// A whole file. While a session is used, what was said is in its [`Conversation`] instead.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFile {
    pub(crate) id: Uuid,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    #[serde(rename = "workingDirectory")]
    pub(crate) directory: String,
    pub(crate) original_prompt: String,
    pub(crate) task_list: Vec<Task>,
    pub(crate) history: Vec<HistoryMessage>,
    /// What was said before, and is in the history as a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<HistoryMessage>,
    /// What is to be done, as an agent's user sees it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) todos: Vec<Todo>,
    /// Whose thoughts are in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) thinker: Option<String>,
    /// What of the history is not sent any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) truncation: Option<Truncation>,
    /// How many tokens were sent and received so far.
    pub total_tokens: u64,
    #[serde(default)]
    pub(crate) compression_count: u64,
    #[serde(default)]
    pub(crate) compressions: Vec<Compression>,
    /// How far the session has come.
    #[serde(default)]
    pub state: SessionState,
    /// The model that was asked last; blank where a file of another program's does not say.
    #[serde(default)]
    pub model: String,
    /// All requests, the original prompt being the first.
    #[serde(default)]
    pub(crate) requests: Vec<String>,
    /// How many of them are not asked for any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) settled: usize,
    /// How many tokens of the model's window the history takes, as far as that is known; 0: it is not.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub context_tokens: u64,
    /// What the agent's profile has to know of the conversation besides, in a form of its own.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub briefing: Value,
    /// What the file holds besides, of a later version or of another program.
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

impl SessionFile {
    /// A session as it is written: every text less the keys. Texts are redacted one by one, before they are escaped: so
    /// whatever a key looks like, the file stays JSON.
    pub(crate) fn of(session: &Session, redactor: &Redactor) -> Self {
        let Conversation {
            requests,
            settled,
            tasks,
            history,
            earlier,
            todos,
            thinker,
            truncation,
        } = redacted_conversation(&session.conversation, redactor);
        let other = session.file.other.iter();
        Self {
            original_prompt: requests.first().cloned().unwrap_or_default(),
            task_list: tasks,
            history,
            earlier,
            todos,
            thinker,
            truncation,
            model: redactor.text(&session.file.model).into_owned(),
            requests,
            settled,
            briefing: redactor.json(&session.file.briefing),
            other: other
                .map(|(name, value)| (name.clone(), redactor.json(value)))
                .collect(),
            ..session.file.clone()
        }
    }

    /// The session whose file it is. The file's name decides on the id: a copy is a session of its own.
    pub(crate) fn into_session(mut self, id: Uuid, hold: SessionLock) -> Session {
        self.id = id;
        let prompt = take(&mut self.original_prompt);
        let mut requests = take(&mut self.requests);
        match requests.first_mut() {
            // Another program may know of no other field than this.
            Some(first) => *first = prompt,
            None if prompt.is_empty() => {}
            None => requests.push(prompt),
        }
        Session {
            conversation: Conversation {
                requests,
                settled: self.settled,
                tasks: take(&mut self.task_list),
                history: take(&mut self.history),
                earlier: take(&mut self.earlier),
                todos: take(&mut self.todos),
                thinker: self.thinker.take(),
                truncation: self.truncation.take(),
            },
            file: self,
            _hold: hold,
            is_noted: false,
        }
    }
}

/// What was said, as it is written: every text less the keys.
pub(crate) fn redacted_conversation(
    conversation: &Conversation,
    redactor: &Redactor,
) -> Conversation {
    let text = |text: &str| redactor.text(text).into_owned();
    let tasks = conversation.tasks.iter().map(|task| Task {
        status: task.status,
        text: text(&task.text),
    });
    let requests = conversation.requests.iter();
    Conversation {
        requests: requests.map(|request| text(request)).collect(),
        settled: conversation.settled,
        tasks: tasks.collect(),
        history: redacted_messages(&conversation.history, redactor),
        earlier: redacted_messages(&conversation.earlier, redactor),
        todos: conversation
            .todos
            .iter()
            .map(|todo| Todo {
                content: text(&todo.content),
                active_form: todo.active_form.as_deref().map(text),
                ..todo.clone()
            })
            .collect(),
        thinker: conversation.thinker.clone(),
        truncation: conversation.truncation,
    }
}

/// The same of messages by themselves.
pub(crate) fn redacted_messages(
    messages: &[HistoryMessage],
    redactor: &Redactor,
) -> Vec<HistoryMessage> {
    let text = |text: &str| redactor.text(text).into_owned();
    let call = |call: &Call| call.redacted(redactor);
    let redacted = messages.iter().map(|message| HistoryMessage {
        content: text(&message.content),
        tool: message.tool.as_deref().map(text),
        calls: message.calls.iter().map(call).collect(),
        parts: message
            .parts
            .iter()
            .filter_map(|part| part.redacted(redactor))
            .collect(),
        ..message.clone()
    });
    redacted.collect()
}

/// What of a file a list shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outlined {
    pub updated_at: DateTime<Utc>,
    working_directory: String,
    original_prompt: String,
    #[serde(default)]
    state: SessionState,
}

impl Outlined {
    /// What it tells who only looks.
    pub fn into_outline(self, is_held: impl FnOnce() -> bool) -> Outline {
        Outline {
            directory: self.working_directory,
            prompt: first_line(&self.original_prompt).to_owned(),
            state: self.state.seen(is_held),
        }
    }
}

/// The first line of a request that is not blank; "" where there is none.
pub(crate) fn first_line(request: &str) -> &str {
    let mut lines = request.lines().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}
