//! Replays the replies in the folder of an earlier run, in place of a vendor.
//!
//! Reads that folder and nothing else. Needs neither network nor key.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use crate::model::price::Usd;
use crate::model::{
    Answer, Listener, Model, ModelError, ModelSpec, ModelTable, Purpose, REPAIRS, Reply,
    ReplyFormat, Request, StepId,
};
use crate::record::choice::{ChoiceRecord, ENDED};
use crate::record::logged;
use crate::record::result::{AgentRecord, ErrorRecord};
use crate::record::run_files::{self, Artifact};
use crate::record::step::Step;
use crate::sys::excerpt::lossy;
use crate::sys::files::{self, IfThere as _, Links, MIB};

/// Maximum size of a recorded answer or reply, in bytes.
const LARGEST: u64 = 256 * MIB;

/// A recorded run: its folder, and the models that it was made with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    folder: PathBuf,
    run: Arc<RecordedRun>,
}

/// Errors from replaying a recorded run.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[diagnostic(code("usage"))]
pub enum RecordingProblem {
    /// The folder does not exist.
    #[error("there is no recorded run at `{}`", .0.display())]
    #[diagnostic(help("name a folder in `logs` by its path or its name"))]
    Missing(PathBuf),
    /// The run was not made by `orchestrate`.
    #[error("the recorded run `{}` is no orchestration", .0.display())]
    #[diagnostic(help("`code-commit log` lists the runs: name one of `orchestrate`"))]
    NoOrchestration(PathBuf),
    /// The run was made with a model other than the requested one.
    #[error("the recorded run `{}` was made with `{recorded}`, not with `{asked}`", .folder.display())]
    #[diagnostic(help("leave `--model` out, or use `--model {recorded}`"))]
    OtherModel {
        /// The run's folder.
        folder: PathBuf,
        /// The model that the run was made with.
        recorded: String,
        /// The requested model.
        asked: String,
    },
    /// The run was made with a model that is not in the table.
    #[error("the recorded run `{}` was made with `{recorded}`, which is not known", .folder.display())]
    #[diagnostic(help("give `{recorded}` an entry in `agent-config/models.json`, as it had then"))]
    UnknownModel { folder: PathBuf, recorded: String },
}

impl Recording {
    /// Finds the run called `name`: a path relative to `root`, or the name of a folder in `logs`.
    ///
    /// # Errors
    /// Fails if the folder does not exist.
    pub fn find(root: &Path, logs: &Path, name: &Path) -> Result<Self, RecordingProblem> {
        let folder = [root.join(name), logs.join(name)]
            .into_iter()
            .find(|folder| folder.is_dir())
            .ok_or_else(|| RecordingProblem::Missing(name.to_path_buf()))?;
        let mut run: RecordedRun = logged::json(&folder, run_files::RESULT).unwrap_or_default();
        let steps = logged::steps(&folder);
        // Only the log has the steps of a killed run, and the providers. Older runs have none.
        if !steps.is_empty() {
            run.steps = steps;
        }
        let run = Arc::new(run);
        Ok(Self { folder, run })
    }

    /// Returns the steps that a model has answered, each with the model's name and the format of the reply.
    fn steps(&self) -> impl Iterator<Item = (StepId, &str, ReplyFormat)> {
        let steps = self.run.steps.iter();
        steps.filter_map(|step| Some((step.id(), step.model.as_deref()?, step.reply_format)))
    }

    /// Returns whether the attempt of this step was ended because another one had passed.
    fn was_ended(&self, step: &StepId) -> bool {
        let mut attempts = self.run.choice.iter().flat_map(|choice| &choice.attempts);
        let was_ended = |error: &Option<String>| error.as_deref() == Some(ENDED);
        attempts.any(|attempt| attempt.step == step.to_string() && was_ended(&attempt.error))
    }

    /// Returns the model of the first query, if recorded.
    pub fn first_model(&self) -> Option<&str> {
        let first = || self.steps().next().map(|(_, model, _)| model);
        self.run.model.as_deref().or_else(first)
    }

    /// Returns the first model that was asked for this purpose, if recorded.
    pub fn model_of(&self, purpose: &Purpose) -> Option<&str> {
        let mut steps = self.steps();
        steps.find_map(|(id, model, _)| (id.purpose == *purpose).then_some(model))
    }

    /// Returns the steps that this model answered, with the formats of its replies.
    pub fn steps_of(&self, model: &str) -> Vec<(StepId, ReplyFormat)> {
        let steps = self.steps().filter(|(_, answered, _)| *answered == model);
        steps.map(|(id, _, format)| (id, format)).collect()
    }

    /// Returns the models of the attempts besides the first one, in order.
    pub fn others(&self) -> Vec<Option<String>> {
        let others: BTreeMap<_, _> = self
            .steps()
            .filter(|(id, ..)| id.purpose == Purpose::ATTEMPT && id.reask == 0)
            .map(|(id, model, _)| (id.number, Some(model.to_owned())))
            .collect();
        others.into_values().collect()
    }

    /// Returns the format of the last reply, if there is one.
    pub fn reply_format(&self) -> Option<ReplyFormat> {
        self.steps().last().map(|(.., format)| format)
    }

    /// Returns the models that answered, without duplicates.
    pub fn models(&self) -> BTreeSet<&str> {
        self.steps().map(|(_, model, _)| model).collect()
    }

    /// Returns the number of the last repair allowed: the usual limit, or more if a resumed run had more.
    pub fn repairs(&self) -> u16 {
        let ids = self.steps().map(|(id, ..)| id);
        let repairs = ids.filter(|id| id.purpose == Purpose::REPAIR);
        repairs.map(|id| id.number).fold(REPAIRS, u16::max)
    }

    /// Returns how many queries were repeats, sent because a reply was rejected.
    pub fn reasks(&self) -> usize {
        self.steps().filter(|(id, ..)| id.reask > 0).count()
    }

    /// Returns the server that was used for the model, if it was not the vendor's own.
    pub fn base_url(&self, model: &str) -> Option<&str> {
        self.run.base_urls.get(model).map(String::as_str)
    }

    /// Returns the record of the agent's work, if the run was an agent's.
    pub fn agent(&self) -> Option<AgentRecord> {
        let ended = self.run.agent.clone();
        // A run that was killed has no `result.json`.
        ended.or_else(|| logged::json(&self.folder, run_files::AGENT))
    }

    /// Returns the recorded run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the model to replay `purpose` with: the recorded one, which is also the only one that may be requested;
    /// `None` if none is recorded.
    ///
    /// # Errors
    /// Fails if a different model is requested, or the recorded one is not in the table.
    pub fn model<'t>(
        &self,
        purpose: &Purpose,
        asked: Option<&str>,
        table: &'t ModelTable,
    ) -> Result<Option<&'t ModelSpec>, RecordingProblem> {
        // If the fallback of the first model made the repair, the first model is the one that was requested.
        let first = self.first_model().and_then(|first| table.named(first));
        let fallback = first.and_then(|first| first.fallback.as_deref());
        let is_asked = |model: &&str| *purpose == Purpose::REPAIR && Some(*model) != fallback;
        let repair = self.model_of(purpose).filter(is_asked);
        let Some(recorded) = repair.or(self.first_model()).map(str::to_owned) else {
            return Ok(None);
        };
        let folder = self.folder.clone();
        match (asked, table.named(&recorded)) {
            (Some(asked), _) if asked != recorded => Err(RecordingProblem::OtherModel {
                folder,
                recorded,
                asked: asked.to_owned(),
            }),
            (_, None) => Err(RecordingProblem::UnknownModel { folder, recorded }),
            (_, known) => Ok(known),
        }
    }
}

/// The parts of a run's record that a replay needs; a recording that was written by hand need not have the others.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct RecordedRun {
    model: Option<String>,
    base_urls: BTreeMap<String, String>,
    #[serde(rename = "attempts")]
    steps: Vec<Step>,
    error: Option<ErrorRecord>,
    choice: Option<ChoiceRecord>,
    agent: Option<AgentRecord>,
}

/// A model that returns recorded replies.
#[derive(Debug)]
pub struct ReplayModel {
    recording: Recording,
    spec: ModelSpec,
}

impl ReplayModel {
    /// Replays `recording`, whose answers are read as those of `spec`.
    pub fn new(recording: &Recording, spec: ModelSpec) -> Self {
        let recording = recording.clone();
        Self { recording, spec }
    }

    fn step(&self, id: &StepId) -> Option<&Step> {
        let mut steps = self.recording.run.steps.iter();
        steps.find(|step| step.id() == *id)
    }

    fn read_file(&self, step: &StepId, artifact: Artifact) -> Result<Option<Vec<u8>>, ModelError> {
        let path = self.recording.folder.join(run_files::name(step, artifact));
        let read = files::read(&path, Links::Refused, LARGEST).if_there();
        read.map_err(|source| ModelError::Unreadable { path, source })
    }

    /// Returns the text of the response file, and the error that it contains if there was no reply.
    fn recorded(&self, step: &StepId) -> Result<(String, Option<ModelError>), ModelError> {
        let text = lossy(
            self.read_file(step, Artifact::ResponseText)?
                .unwrap_or_default(),
        );
        let error = text.strip_prefix(run_files::ERROR_LINE).map(|error| {
            let (mut message, rest) = error.split_once('\n').unwrap_or((error, ""));
            if self.recording.was_ended(step) {
                message = ENDED;
            }
            // A step does not record its error: only the log file contains the hint, in runs of every version.
            let hint = rest.trim_end().strip_prefix("hint: ");
            // The run's record describes its last error in more detail.
            let last = self.recording.run.error.as_ref();
            let known = last.filter(|last| last.message == message);
            ModelError::Recorded {
                message: message.to_owned(),
                hint: hint.unwrap_or("this error was recorded").to_owned(),
                reason: known.map_or("server".to_owned(), ErrorRecord::code),
                is_free: self.step(step).and_then(|known| known.cost) == Some(Usd::ZERO),
            }
        });
        Ok((text, error))
    }
}

impl Model for ReplayModel {
    fn ask(&self, request: &Request<'_>, _listener: &dyn Listener) -> Result<Answer, ModelError> {
        if let Some(json) = self.read_file(&request.step, Artifact::ResponseJson)? {
            let tier = self.step(&request.step).and_then(|step| step.tier);
            return Ok(Answer { json, tier });
        }
        let name = run_files::name(&request.step, Artifact::ResponseJson);
        let (_, recorded) = self.recorded(&request.step)?;
        Err(recorded.unwrap_or(ModelError::NotRecorded(name)))
    }

    fn read(&self, step: &StepId, answer: &[u8]) -> Result<Reply, ModelError> {
        let known = self.step(step);
        // A resumed run, or a fallback, may have asked a model of another vendor.
        let provider = known.and_then(|known| known.provider);
        let mut reply = provider.unwrap_or(self.spec.provider).read_reply(answer);
        if let Ok(reply) = &mut reply {
            reply.is_redacted = known.is_some_and(|known| known.is_redacted);
        }
        match (reply, self.recorded(step)?) {
            // The reply's own text happens to begin like an error.
            (Ok(reply), (text, Some(_))) if *reply.text == text => Ok(reply),
            // An error read from the answer has more detail; an HTTP status is known only from the recorded message.
            (Err(error), (_, Some(recorded))) if error.to_string() == recorded.to_string() => {
                Err(error)
            }
            (_, (_, Some(recorded))) => Err(recorded),
            (reply, _) => reply,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Provider;

    #[test]
    fn a_run_that_was_killed_names_its_models_in_its_steps() {
        let root = tempfile::tempdir().unwrap();
        let steps = concat!(
            r#"{"kind": "initial", "number": 0, "model": "one"}"#,
            "\n",
            r#"{"kind": "repair", "number": 1, "model": "other"}"#,
            "\n{\"kind\": \"rep",
        );
        std::fs::write(root.path().join(run_files::STEPS), steps).unwrap();
        let found = Recording::find(root.path(), root.path(), Path::new("")).unwrap();
        assert_eq!(found.first_model(), Some("one"));
        assert_eq!(found.model_of(&Purpose::REPAIR), Some("other"));
    }

    #[test]
    fn the_reply_is_the_whole_text_and_none_where_it_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording {
            folder: folder.path().to_owned(),
            ..Recording::default()
        };
        let model = ReplayModel::new(&recording, ModelSpec::new("gemini", Provider::Gemini));
        for (finish, expected) in [("STOP", Some("a\nb")), ("MAX_TOKENS", None)] {
            let answer = serde_json::json!({"candidates": [{
                "content": {"parts": [{"text": "a\n"}, {"text": "b"}]}, "finishReason": finish,
            }]});
            let reply = model.read(&StepId::INITIAL, answer.to_string().as_bytes());
            let text = reply.ok().map(|reply| reply.text.to_string());
            assert_eq!(text.as_deref(), expected, "{finish}");
        }
    }
}
