//! The format of `session.json`: the specification's fields, followed by additional ones. Pure.

use std::path::{Path, PathBuf};

use chrono::serde::ts_milliseconds;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::agent::conversation::Conversation;
use crate::agent::session::{
    Outline, SessionForm, SessionState, SessionSummary, redacted_conversation,
};
use crate::secret::Redactor;
use crate::sys::text::first_line;

/// The name of the document in the session's folder.
pub(super) const DOCUMENT: &str = "plan_doc.md";

/// The stages of a request, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanStage {
    /// The request becomes a list of steps.
    #[default]
    Planning,
    /// The steps are carried out.
    Execution,
    /// The work is summed up.
    Summary,
    /// All stages are complete.
    Done,
}

/// The state needed to resume. Missing fields have default values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanState {
    /// The project's root, with known keys redacted, and escaped if it is not UTF-8.
    #[serde(rename = "workingDirectory")]
    pub(crate) directory: String,
    /// The document's path in the project, relative to its root; `None` if it is in the session's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_file: Option<String>,
    /// All requests of the session, in order.
    pub requests: Vec<String>,
    /// The current stage of the last request.
    pub stage: PlanStage,
    /// The conversation of the steps of all requests.
    pub conversation: Conversation,
    /// The index of the first message of the last request's steps.
    pub from: usize,
    /// The files that these steps have changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The result of these steps, until it has been summed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<StepsEnd>,
    /// The document's version before the stage's result is written into it; a later version contains the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The state to return to while the session works in a scratch tree whose changes are not applied yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
}

/// A state and its document before changes that may be discarded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The state.
    pub state: PlanState,
    /// The document's text; `None` if the document is in the project.
    pub document: Option<String>,
}

/// The outcome of a request's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkEnd {
    /// All steps are done, and their changes build.
    Done,
    /// The user has stopped the steps.
    Stopped,
    /// A step has failed.
    Failed,
}

/// The outcome of a request's steps, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepsEnd {
    /// The outcome.
    pub end: WorkEnd,
    /// The reason for stopping or failing; empty if all steps are done.
    pub why: String,
}

/// The maximum number of messages kept from earlier requests.
const KEPT: usize = 40;

impl PlanState {
    /// Enters another stage.
    pub fn enter(&mut self, stage: PlanStage) {
        self.stage = stage;
        self.version = None;
        self.ended = None;
    }

    /// Begins a request; `None` resumes the previous one.
    pub fn begin(&mut self, request: Option<&str>) {
        match request {
            // The session's first save already contains the request.
            Some(request) if self.is_unbegun(request) => {}
            Some(request) => {
                self.requests.push(request.to_owned());
                self.enter(PlanStage::Planning);
            }
            // The user has added steps, or wants to retry a failed one.
            None if self.stage == PlanStage::Done => self.enter(PlanStage::Execution),
            // Without a request, the steps are those written by the user.
            None if self.stage == PlanStage::Planning && self.requests.is_empty() => {
                self.enter(PlanStage::Execution);
            }
            None => return,
        }
        // The model knows earlier requests only from the plan and the last messages.
        let history = &mut self.conversation.history;
        history.retain(|said| !said.is_fault);
        history.drain(..history.len().saturating_sub(KEPT));
        self.conversation.requests.clear();
        self.from = history.len();
        self.files.clear();
    }

    /// Returns `true` if this is the session's first request, and nothing has been done for it.
    fn is_unbegun(&self, request: &str) -> bool {
        let is_first = self.requests.len() == 1 && self.requests[0] == request;
        is_first && self.stage == PlanStage::Planning
    }

    /// Redacts keys in each text separately, so that the file stays valid whatever a key looks like.
    fn redact(&mut self, redactor: &Redactor) {
        let redact = |text: &mut String| *text = redactor.text(text).into_owned();
        redact(&mut self.directory);
        let lists = self.requests.iter_mut().chain(&mut self.files);
        lists.chain(&mut self.plan_file).for_each(redact);
        self.conversation = redacted_conversation(&self.conversation, redactor);
        if let Some(ended) = &mut self.ended {
            redact(&mut ended.why);
        }
        if let Some(saved) = &mut self.checkpoint {
            saved.state.redact(redactor);
            saved.document.iter_mut().for_each(redact);
        }
    }
}

/// The content of `session.json`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanSessionFile {
    pub(crate) id: String,
    #[serde(with = "ts_milliseconds")]
    pub(crate) started_at: DateTime<Utc>,
    /// The model that executes the steps; empty if another program's file does not name it.
    #[serde(default)]
    pub model: String,
    /// The progress of the session.
    #[serde(serialize_with = "status")]
    pub status: SessionState,
    /// The state needed to resume.
    #[serde(flatten)]
    pub state: PlanState,
    /// Unknown fields, from later versions or other programs.
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

impl PlanSessionFile {
    /// Returns the document's path, in the session's `folder` or in the project at `root`.
    pub(super) fn document(&self, folder: &Path, root: &Path) -> PathBuf {
        match &self.state.plan_file {
            Some(file) => root.join(file),
            None => folder.join(DOCUMENT),
        }
    }
}

impl SessionForm for PlanSessionFile {
    const IS_FOLDER: bool = true;
    const TIME: &'static str = "started";
    type Outlined = OutlinedPlan;

    fn id(&self) -> String {
        self.id.clone()
    }

    fn directory(&self) -> &str {
        &self.state.directory
    }

    fn model(&mut self) -> &mut String {
        &mut self.model
    }

    fn opened(self, id: &str) -> Self {
        let id = id.to_owned();
        Self { id, ..self }
    }

    fn written(&mut self, redactor: &Redactor) -> impl Serialize {
        let mut file = self.clone();
        file.model = redactor.text(&self.model).into_owned();
        file.state.redact(redactor);
        for value in file.other.values_mut() {
            *value = redactor.json(value);
        }
        file
    }

    fn state_name(state: SessionState) -> &'static str {
        match state {
            SessionState::Complete => "completed",
            other => other.into_str(),
        }
    }

    fn json(summary: &SessionSummary) -> Value {
        let outline = summary.outline.as_ref();
        json!({
            "id": summary.id,
            "startedAt": summary.time.timestamp_millis(),
            "model": outline.map_or("", |outline| &outline.model),
            "status": summary.state::<Self>(),
            "workingDirectory": outline.ok().map(|outline| &outline.directory),
            "prompt": outline.ok().map(|outline| &outline.prompt),
            "problem": outline.err(),
        })
    }
}

/// The fields of a session file that a listing shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutlinedPlan {
    #[serde(with = "ts_milliseconds")]
    started_at: DateTime<Utc>,
    #[serde(default)]
    model: String,
    status: SessionState,
    #[serde(default)]
    working_directory: String,
    #[serde(default)]
    requests: Vec<String>,
}

impl From<OutlinedPlan> for Outline {
    fn from(outlined: OutlinedPlan) -> Self {
        Self {
            time: outlined.started_at,
            directory: outlined.working_directory,
            model: outlined.model,
            prompt: first_line(outlined.requests.first().map_or("", |it| it)).to_owned(),
            state: outlined.status,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn status<S: Serializer>(status: &SessionState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(PlanSessionFile::state_name(*status))
}
