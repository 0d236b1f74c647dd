//! Replies from the folder of an earlier run, in place of a vendor.
//!
//! Reads that folder and nothing else; needs neither network nor key.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Listener, Model, ModelError, ModelSpec, Reply, Request};
use crate::record::Attempt;
use crate::run_files::{self, Artifact};

/// A recorded run: where it lies, and which model it was made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    folder: PathBuf,
    model: Option<ModelSpec>,
}

/// Why a folder cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum RecordingProblem {
    /// There is no such folder.
    #[error("there is no recorded run at `{}`", .0.display())]
    Missing(PathBuf),
    /// The run was made with another model than the one asked for.
    #[error("the recorded run `{}` was made with `{recorded}`, not with `{asked}`", .folder.display())]
    OtherModel {
        /// The run's folder.
        folder: PathBuf,
        /// The model that it was made with.
        recorded: &'static str,
        /// The model that was asked for.
        asked: &'static str,
    },
}

impl RecordingProblem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Missing(_) => "name a folder below `logs`, by its path or its name".to_owned(),
            Self::OtherModel { recorded, .. } => {
                format!("leave `--model` out, or use `--model {recorded}`")
            }
        }
    }
}

impl Recording {
    /// Finds the run `name`, as a path relative to `root` or as a folder's name below `logs`.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn find(root: &Path, logs: &Path, name: &Path) -> Result<Self, RecordingProblem> {
        let folder = [root.join(name), logs.join(name)]
            .into_iter()
            .find(|folder| folder.is_dir())
            .ok_or_else(|| RecordingProblem::Missing(name.to_path_buf()))?;
        let model = recorded_model(&folder);
        Ok(Self { folder, model })
    }

    /// The model to replay with: the one asked for, else the recorded one, else `default`.
    ///
    /// # Errors
    /// When the one asked for is not the recorded one.
    pub fn model(
        &self,
        asked: Option<ModelSpec>,
        default: ModelSpec,
    ) -> Result<ModelSpec, RecordingProblem> {
        match (asked, self.model) {
            (Some(asked), Some(recorded)) if asked != recorded => {
                Err(RecordingProblem::OtherModel {
                    folder: self.folder.clone(),
                    recorded: recorded.name,
                    asked: asked.name,
                })
            }
            (asked, recorded) => Ok(asked.or(recorded).unwrap_or(default)),
        }
    }
}

/// The model that `result.json` names; an aborted run has none.
fn recorded_model(folder: &Path) -> Option<ModelSpec> {
    #[derive(Deserialize)]
    struct Result {
        model: String,
    }
    let json = fs::read(folder.join(run_files::RESULT)).ok()?;
    let result: Result = serde_json::from_slice(&json).ok()?;
    ModelSpec::named(&result.model)
}

/// Gives the recorded replies.
#[derive(Debug)]
pub struct ReplayModel {
    folder: PathBuf,
    spec: ModelSpec,
}

impl ReplayModel {
    /// Replays `recording`, read as answers of `spec`.
    #[must_use]
    pub fn new(recording: Recording, spec: ModelSpec) -> Self {
        Self {
            folder: recording.folder,
            spec,
        }
    }

    fn read_file(
        &self,
        attempt: Attempt,
        artifact: Artifact,
    ) -> Result<Option<Vec<u8>>, ModelError> {
        let path = self.path(attempt, artifact);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ModelError::Unreadable { path, source }),
        }
    }

    /// The response file's text, and the error that it holds in place of a reply.
    fn recorded(&self, attempt: Attempt) -> Result<(String, Option<ModelError>), ModelError> {
        let text = self
            .read_file(attempt, Artifact::ResponseText)?
            .unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let error = text.strip_prefix(run_files::ERROR_LINE).map(|error| {
            let (message, rest) = error.split_once('\n').unwrap_or((error, ""));
            let hint = rest
                .trim_end()
                .strip_prefix("hint: ")
                .unwrap_or("this error was recorded");
            ModelError::Recorded {
                message: message.to_owned(),
                hint: hint.to_owned(),
            }
        });
        Ok((text, error))
    }

    fn path(&self, attempt: Attempt, artifact: Artifact) -> PathBuf {
        self.folder.join(run_files::name(attempt, artifact))
    }
}

impl Model for ReplayModel {
    fn ask(&self, request: &Request<'_>, _listener: &dyn Listener) -> Result<Vec<u8>, ModelError> {
        if let Some(answer) = self.read_file(request.attempt, Artifact::ResponseJson)? {
            return Ok(answer);
        }
        let path = run_files::name(request.attempt, Artifact::ResponseJson).into();
        Err(self
            .recorded(request.attempt)?
            .1
            .unwrap_or(ModelError::NotRecorded { path }))
    }

    fn read(
        &self,
        attempt: Attempt,
        answer: &[u8],
        listener: &dyn Listener,
    ) -> Result<Reply, ModelError> {
        let reply = self.spec.provider.wire().read_reply(answer);
        let reply = match (reply, self.recorded(attempt)?) {
            // A reply whose own words begin like an error.
            (Ok(reply), (text, Some(_))) if *reply.text == text => reply,
            // The error that is read again knows its details; a status only the recorded words know.
            (Err(error), (_, Some(recorded))) if error.to_string() == recorded.to_string() => {
                return Err(error);
            }
            (_, (_, Some(recorded))) => return Err(recorded),
            (reply, _) => reply?,
        };
        listener.text(&reply.text);
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::model::MODELS;

    #[derive(Default)]
    struct Heard(Mutex<String>);

    impl Listener for Heard {
        fn retrying(&self, _next_try: u32, _wait: Duration, _reason: &str) {}

        fn text(&self, piece: &str) {
            self.0.lock().unwrap().push_str(piece);
        }
    }

    #[test]
    fn the_listener_hears_the_whole_text_and_nothing_of_a_reply_that_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let model = ReplayModel {
            folder: folder.path().to_owned(),
            spec: MODELS[0],
        };
        for (finish, expected) in [("STOP", "a\nb"), ("MAX_TOKENS", "")] {
            let answer = serde_json::json!({"candidates": [{
                "content": {"parts": [{"text": "a\n"}, {"text": "b"}]}, "finishReason": finish,
            }]});
            let heard = Heard::default();
            let answer = answer.to_string();
            let reply = model.read(Attempt::Initial, answer.as_bytes(), &heard);
            assert_eq!(reply.is_ok(), finish == "STOP");
            assert_eq!(*heard.0.lock().unwrap(), expected, "{finish}");
        }
    }
}
