//! The form of a session's file: the specification's fields, and ours behind them. Pure.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Compression, Outline, Session, SessionLock, SessionState};
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::model::message::Call;
use crate::record::tasks::Task;
use crate::secret::Redactor;

/// A whole file. It lives for a moment, on the way from a session to the disk or back.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Form {
    id: Uuid,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    working_directory: String,
    original_prompt: String,
    task_list: Vec<Task>,
    history: Vec<HistoryMessage>,
    /// What was said before, and is in the history as a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<HistoryMessage>,
    total_tokens: u64,
    #[serde(default)]
    compression_count: u64,
    #[serde(default)]
    compressions: Vec<Compression>,
    #[serde(default)]
    state: SessionState,
    #[serde(default)]
    model: String,
    /// All requests, the original prompt being the first.
    #[serde(default)]
    requests: Vec<String>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Form {
    /// A session as it is written: every text less the keys. Texts are redacted one by one, before they are escaped: so
    /// whatever a key looks like, the file stays JSON.
    pub fn of(session: &Session, redactor: &Redactor) -> Self {
        let text = |text: &str| redactor.text(text).into_owned();
        let Conversation {
            requests,
            tasks,
            history,
            earlier,
        } = &session.conversation;
        let tasks = tasks.iter().map(|task| Task {
            status: task.status,
            text: text(&task.text),
        });
        let message = |message: &HistoryMessage| HistoryMessage {
            role: message.role,
            content: text(&message.content),
            tool: message.tool.as_deref().map(text),
            call: message.call.clone(),
            calls: message
                .calls
                .iter()
                .map(|call| redacted_call(call, redactor))
                .collect(),
            is_tagged: message.is_tagged,
            is_fault: message.is_fault,
        };
        let requests: Vec<String> = requests.iter().map(|request| text(request)).collect();
        let other = session.other.iter();
        Self {
            id: session.id,
            created_at: session.created_at,
            updated_at: session.updated_at,
            working_directory: session.directory.clone(),
            original_prompt: requests.first().cloned().unwrap_or_default(),
            task_list: tasks.collect(),
            history: history.iter().map(message).collect(),
            earlier: earlier.iter().map(message).collect(),
            total_tokens: session.total_tokens,
            compression_count: session.compression_count,
            compressions: session.compressions.clone(),
            state: session.state,
            model: text(&session.model),
            requests,
            other: other
                .map(|(name, value)| (name.clone(), redacted(value, redactor)))
                .collect(),
        }
    }

    /// The session whose file it is. The file's name decides on the id: a copy is a session of its own.
    pub fn into_session(self, id: Uuid, hold: SessionLock) -> Session {
        let mut requests = self.requests;
        match requests.first_mut() {
            // Another program may know of no other field than this.
            Some(first) => *first = self.original_prompt,
            None if self.original_prompt.is_empty() => {}
            None => requests.push(self.original_prompt),
        }
        let compressions = self.compressions;
        Session {
            conversation: Conversation {
                requests,
                tasks: self.task_list,
                history: self.history,
                earlier: self.earlier,
            },
            state: self.state,
            model: self.model,
            total_tokens: self.total_tokens,
            id,
            created_at: self.created_at,
            updated_at: self.updated_at,
            directory: self.working_directory,
            compression_count: self.compression_count.max(compressions.len() as u64),
            compressions,
            other: self.other,
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

/// What of a file says how old it is.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dated {
    pub updated_at: DateTime<Utc>,
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
    /// One that is active and that nobody holds was killed.
    pub fn into_outline(self, is_held: impl FnOnce() -> bool) -> Outline {
        let state = match self.state {
            SessionState::Active if !is_held() => SessionState::Interrupted,
            state => state,
        };
        let mut lines = self.original_prompt.lines().map(str::trim);
        let first = lines.find(|line| !line.is_empty());
        Outline {
            directory: self.working_directory,
            prompt: first.unwrap_or_default().to_owned(),
            state,
        }
    }
}
