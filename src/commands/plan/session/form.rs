//! The form of `session.json`: the specification's fields, and ours behind them. Pure.

use std::path::{Path, PathBuf};

use chrono::serde::ts_milliseconds;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::agent::conversation::Conversation;
use crate::agent::session::{
    Outline, SessionForm, SessionState, SessionSummary, first_line, redacted_conversation,
};
use crate::secret::Redactor;

/// The document, unless it is in the project.
pub(super) const DOCUMENT: &str = "plan_doc.md";

/// Stages of a request, one after the other.
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
    /// All of it is done.
    Done,
}

/// State that a resume needs. A field that a file lacks has its default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanState {
    /// The project's root, as it stands in files.
    #[serde(rename = "workingDirectory")]
    pub(crate) directory: String,
    /// The document's path in the project, relative to its root; `None` if it is in the session's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_file: Option<String>,
    /// All that was asked for in the session, in its order.
    pub requests: Vec<String>,
    /// The stage of the last request that is under way.
    pub stage: PlanStage,
    /// Conversation of the steps, of all requests.
    pub conversation: Conversation,
    /// Index of the first message of the last request's steps.
    pub from: usize,
    /// End of these steps, as long as it is not summed up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<StepsEnd>,
    /// The document's version, as it was before what ends the stage was written into it: a later one has that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// End of a request's steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkEnd {
    /// All are done, and what they changed builds.
    Done,
    /// The user has stopped them.
    Stopped,
    /// One has failed.
    Failed,
}

/// End of a request's steps, with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepsEnd {
    /// The end.
    pub end: WorkEnd,
    /// Reason for not being done; "" if they are.
    pub why: String,
}

/// Messages of earlier requests that are kept.
const KEPT: usize = 40;

impl PlanState {
    /// Another stage begins.
    pub fn enter(&mut self, stage: PlanStage) {
        self.stage = stage;
        self.version = None;
        self.ended = None;
    }

    /// Begins a request; `None` resumes the previous one.
    pub fn begin(&mut self, request: Option<&str>) {
        match request {
            Some(request) => {
                self.requests.push(request.to_owned());
                self.enter(PlanStage::Planning);
            }
            // The user has added steps, or wants one that has failed to be done again.
            None if self.stage == PlanStage::Done => self.enter(PlanStage::Execution),
            // Nothing was asked for: the steps are those that the user has written.
            None if self.stage == PlanStage::Planning && self.requests.is_empty() => {
                self.enter(PlanStage::Execution);
            }
            None => return,
        }
        // What was said before is told the model in the plan, and by the last messages alone.
        let history = &mut self.conversation.history;
        history.retain(|said| !said.is_fault);
        history.drain(..history.len().saturating_sub(KEPT));
        self.conversation.requests.clear();
        self.from = history.len();
    }

    /// State as it is written, without keys. Texts are redacted one by one: whatever a key looks like,
    /// what is written can be read.
    fn redacted(&self, redactor: &Redactor) -> Self {
        let text = |text: &String| redactor.text(text).into_owned();
        Self {
            directory: text(&self.directory),
            plan_file: self.plan_file.as_ref().map(text),
            requests: self.requests.iter().map(text).collect(),
            stage: self.stage,
            conversation: redacted_conversation(&self.conversation, redactor),
            from: self.from,
            ended: self.ended.as_ref().map(|ended| StepsEnd {
                why: text(&ended.why),
                ..*ended
            }),
            version: self.version,
        }
    }
}

/// A whole file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanSessionFile {
    pub(crate) id: String,
    #[serde(with = "ts_milliseconds")]
    pub(crate) started_at: DateTime<Utc>,
    /// The model of the execution; blank where a file of another program's does not say.
    #[serde(default)]
    pub model: String,
    /// Progress of the session.
    #[serde(serialize_with = "status")]
    pub status: SessionState,
    /// State that a resume needs.
    #[serde(flatten)]
    pub state: PlanState,
    /// Fields of later versions and of other programs.
    #[serde(flatten)]
    pub(crate) other: Map<String, Value>,
}

impl PlanSessionFile {
    /// The document's path, in the session's `folder` or in the project in `root`.
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

    fn opened(self, id: &str) -> Self {
        let id = id.to_owned();
        Self { id, ..self }
    }

    fn written(&mut self, redactor: &Redactor) -> impl Serialize {
        let other = self.other.iter();
        Self {
            id: self.id.clone(),
            started_at: self.started_at,
            model: redactor.text(&self.model).into_owned(),
            status: self.status,
            state: self.state.redacted(redactor),
            other: other
                .map(|(name, value)| (name.clone(), redactor.json(value)))
                .collect(),
        }
    }

    fn state_name(state: SessionState) -> &'static str {
        match state {
            SessionState::Complete => "completed",
            other => other.name(),
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

/// The fields of a file that a list needs.
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
