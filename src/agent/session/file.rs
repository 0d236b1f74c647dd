//! The session file of `dev` and `chat`: the specification's fields, followed by this program's own. Pure.

use std::mem::take;

use chrono::{DateTime, SecondsFormat, SubsecRound as _, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::history::{WrittenMessage, update};
use super::redacted::redacted_state;
use super::{Compression, Outline, SessionForm, SessionState, SessionSummary};
use crate::agent::conversation::{Conversation, Truncation};
use crate::record::tasks::Task;
use crate::record::todos::Todo;
use crate::secret::Redactor;
use crate::sys::defaults::is_default;
use crate::sys::text::first_line;

/// The file of a session. While the session is in use, `conversation` is authoritative; the fields copied from it are
/// as last written.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFile {
    /// The conversation, which the file's other fields partly copy.
    #[serde(skip)]
    pub conversation: Conversation,
    /// The session's id.
    pub id: Uuid,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    #[serde(rename = "workingDirectory")]
    pub(crate) directory: String,
    original_prompt: String,
    task_list: Vec<Task>,
    history: Vec<WrittenMessage>,
    /// Earlier messages, which a summary replaces in the history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<WrittenMessage>,
    /// The todo list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    todos: Vec<Todo>,
    /// The account and model that signed the thoughts in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    thinker: Option<String>,
    /// The part of the history that is no longer sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    truncation: Option<Truncation>,
    /// Set while the changes of the last run are only in a scratch tree.
    #[serde(default, skip_serializing_if = "is_default")]
    is_unapplied: bool,
    /// The number of tokens sent and received so far.
    pub total_tokens: u64,
    #[serde(default)]
    compression_count: u64,
    #[serde(default)]
    pub(crate) compressions: Vec<Compression>,
    /// The progress of the session.
    #[serde(default)]
    pub state: SessionState,
    /// The model used last; blank if a file written by another program does not name it.
    #[serde(default)]
    pub model: String,
    /// All requests; the first is the original prompt.
    #[serde(default)]
    requests: Vec<String>,
    /// The number of requests that are finished or were stopped.
    #[serde(default, skip_serializing_if = "is_default")]
    settled: usize,
    /// The number of tokens that the history takes of the model's window; 0 if unknown.
    #[serde(default, skip_serializing_if = "is_default")]
    pub context_tokens: u64,
    /// The state of the agent's profile, in the profile's own format.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub briefing: Value,
    /// Unknown fields, as written by later versions and other programs.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl SessionFile {
    /// Creates the file of a new session in `directory`, which is given in the form used in files.
    pub fn new(id: Uuid, now: DateTime<Utc>, directory: String) -> Self {
        let now = now.trunc_subsecs(3);
        Self {
            id,
            created_at: now,
            updated_at: now,
            directory,
            ..Self::default()
        }
    }

    /// Records a compression of the history.
    pub fn compressed(&mut self, compression: Compression) {
        self.compression_count = self.compression_count.saturating_add(1);
        self.compressions.push(compression);
    }
}

impl SessionForm for SessionFile {
    const IS_FOLDER: bool = false;
    const TIME: &'static str = "updated";
    type Outlined = Outlined;

    fn id(&self) -> String {
        self.id.to_string()
    }

    fn directory(&self) -> &str {
        &self.directory
    }

    fn model(&mut self) -> &mut String {
        &mut self.model
    }

    fn opened(mut self, id: &str) -> Self {
        self.id = Uuid::try_parse(id).unwrap_or(self.id);
        let mut requests = take(&mut self.requests);
        match requests.first_mut() {
            // Other programs may write only `originalPrompt`.
            Some(first) => first.clone_from(&self.original_prompt),
            None if self.original_prompt.is_empty() => {}
            None => requests.push(self.original_prompt.clone()),
        }
        let messages = |all: Vec<WrittenMessage>| all.into_iter().map(|it| it.message).collect();
        self.conversation = Conversation {
            requests,
            settled: self.settled,
            tasks: take(&mut self.task_list),
            history: messages(take(&mut self.history)),
            earlier: messages(take(&mut self.earlier)),
            todos: take(&mut self.todos),
            thinker: self.thinker.take(),
            truncation: self.truncation.take(),
            is_unapplied: self.is_unapplied,
        };
        self
    }

    fn written(&mut self, redactor: &Redactor) -> impl Serialize {
        let state = redacted_state(&self.conversation, redactor);
        self.original_prompt = state.requests.first().cloned().unwrap_or_default();
        self.requests = state.requests;
        self.settled = state.settled;
        self.task_list = state.tasks;
        self.todos = state.todos;
        self.thinker = state.thinker;
        self.truncation = state.truncation;
        self.is_unapplied = state.is_unapplied;
        update(&mut self.history, &self.conversation.history, redactor);
        update(&mut self.earlier, &self.conversation.earlier, redactor);
        self.model = redactor.text(&self.model).into_owned();
        self.briefing = redactor.json(&self.briefing);
        for value in self.other.values_mut() {
            *value = redactor.json(value);
        }
        &*self
    }

    fn changed(&mut self, now: DateTime<Utc>) {
        self.updated_at = now.trunc_subsecs(3);
    }

    fn json(summary: &SessionSummary) -> Value {
        let outline = summary.outline.as_ref();
        json!({
            "id": summary.id,
            "updatedAt": summary.time.to_rfc3339_opts(SecondsFormat::AutoSi, true),
            "state": summary.state::<Self>(),
            "workingDirectory": outline.ok().map(|outline| &outline.directory),
            "prompt": outline.ok().map(|outline| &outline.prompt),
            "problem": outline.err(),
        })
    }
}

/// The fields of a session file that a list needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outlined {
    updated_at: DateTime<Utc>,
    working_directory: String,
    original_prompt: String,
    #[serde(default)]
    state: SessionState,
}

impl From<Outlined> for Outline {
    fn from(outlined: Outlined) -> Self {
        Self {
            time: outlined.updated_at,
            directory: outlined.working_directory,
            model: String::new(),
            prompt: first_line(&outlined.original_prompt).to_owned(),
            state: outlined.state,
        }
    }
}
