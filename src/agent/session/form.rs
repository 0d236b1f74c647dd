//! The form of a session's file: the specification's fields, and ours behind them. Pure.

use std::mem::take;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Compression, Outline, Session, SessionLock, SessionState};
use crate::agent::conversation::{Conversation, HistoryMessage, is_zero};
use crate::model::message::Call;
use crate::record::tasks::Task;
use crate::secret::Redactor;

/// A whole file. While a session is used, what was said is in its [`Conversation`] instead.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFile {
    pub(super) id: Uuid,
    pub(super) created_at: DateTime<Utc>,
    pub(super) updated_at: DateTime<Utc>,
    #[serde(rename = "workingDirectory")]
    pub(super) directory: String,
    pub(super) original_prompt: String,
    pub(super) task_list: Vec<Task>,
    pub(super) history: Vec<HistoryMessage>,
    /// What was said before, and is in the history as a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) earlier: Vec<HistoryMessage>,
    /// How many tokens were sent and received so far.
    pub total_tokens: u64,
    #[serde(default)]
    pub(super) compression_count: u64,
    #[serde(default)]
    pub(super) compressions: Vec<Compression>,
    /// How far the session has come.
    #[serde(default)]
    pub state: SessionState,
    /// The model that was asked last; blank where a file of another program's does not say.
    #[serde(default)]
    pub model: String,
    /// All requests, the original prompt being the first.
    #[serde(default)]
    pub(super) requests: Vec<String>,
    /// How many of them are not asked for any more.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) settled: usize,
    /// What the file holds besides, of a later version or of another program.
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

impl SessionFile {
    /// A session as it is written: every text less the keys. Texts are redacted one by one, before they are escaped: so
    /// whatever a key looks like, the file stays JSON.
    pub(super) fn of(session: &Session, redactor: &Redactor) -> Self {
        let text = |text: &str| redactor.text(text).into_owned();
        let Conversation {
            requests,
            settled,
            tasks,
            history,
            earlier,
        } = &session.conversation;
        let tasks = tasks.iter().map(|task| Task {
            status: task.status,
            text: text(&task.text),
        });
        let message = |message: &HistoryMessage| HistoryMessage {
            content: text(&message.content),
            tool: message.tool.as_deref().map(text),
            calls: message
                .calls
                .iter()
                .map(|call| redacted_call(call, redactor))
                .collect(),
            ..message.clone()
        };
        let requests: Vec<String> = requests.iter().map(|request| text(request)).collect();
        let other = session.file.other.iter();
        Self {
            original_prompt: requests.first().cloned().unwrap_or_default(),
            task_list: tasks.collect(),
            history: history.iter().map(message).collect(),
            earlier: earlier.iter().map(message).collect(),
            model: text(&session.file.model),
            requests,
            settled: *settled,
            other: other
                .map(|(name, value)| (name.clone(), redacted(value, redactor)))
                .collect(),
            ..session.file.clone()
        }
    }

    /// The session whose file it is. The file's name decides on the id: a copy is a session of its own.
    pub(super) fn into_session(mut self, id: Uuid, hold: SessionLock) -> Session {
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
            },
            file: self,
            _hold: hold,
            is_noted: false,
        }
    }
}

fn redacted_call(call: &Call, redactor: &Redactor) -> Call {
    Call {
        id: call.id.clone(),
        name: redactor.text(&call.name).into_owned(),
        input: redacted(&call.input, redactor),
    }
}

fn redacted(value: &Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => redactor.text(text).into_owned().into(),
        Value::Array(values) => {
            let values = values.iter();
            values.map(|value| redacted(value, redactor)).collect()
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields
                .map(|(name, value)| (redactor.text(name).into_owned(), redacted(value, redactor)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
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
        let mut lines = self.original_prompt.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty());
        Outline {
            directory: self.working_directory,
            prompt: first.unwrap_or_default().to_owned(),
            state: self.state.seen(is_held),
        }
    }
}
