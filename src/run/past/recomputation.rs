//! The files of a commit's run, made again from its recorded replies.
//!
//! Reads the run's folder and its saved files; never the project's files as they are now. Guarantees that every file is
//! one of the states that the run recorded while it lasted.

use std::collections::BTreeMap;

use super::history::{PastRun, apply, read_limited};
use crate::edit::changes::{ChangeLog, kept_path, vault};
use crate::edit::{Digest, Rejection};
use crate::project::Project;
use crate::record::run_files::{self, Artifact};
use crate::sys::diff::{FileState, NEW_MODE};
use crate::sys::text::escaped;

/// Reasons that a run cannot be attested, or its statement does not hold.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[diagnostic(
    code("not-proven"),
    help("restore the run's folder from a copy; a run that was pruned or edited proves nothing")
)]
pub enum NotRecomputed {
    /// The run has no record.
    #[error("`{0}` has no record: it is not there, still going on, or was killed")]
    NoRecord(String),
    /// The run asked no model.
    #[error("`{0}` asked no model, so that there is nothing to attest")]
    NoModel(String),
    /// A file of the record is missing.
    #[error("`{0}` is gone, or cannot be read")]
    Missing(String),
    /// A recorded reply cannot have been applied.
    #[error("the run cannot have applied `{path}`: {rejection}")]
    Rejected {
        /// The reply's file.
        path: String,
        /// Its faults.
        rejection: Rejection,
    },
    /// A file is not as recorded.
    #[error("what the recorded replies make of `{path}` is not what `{folder}/changes.json` has")]
    Other {
        /// The file, relative to the root.
        path: String,
        /// The run's folder, relative to the root.
        folder: String,
    },
    /// The digest of a file's last state is not recorded.
    #[error("the run did not record the digest of `{}`, which no reply gives", escaped(.0))]
    NoDigest(String),
}

/// Files by path; `None` if the file does not exist.
pub type Contents = BTreeMap<String, Option<Vec<u8>>>;

/// The states of the files that a run changed.
#[derive(Debug, Default)]
pub struct Recomputed {
    /// Before the run.
    pub before: Contents,
    /// After its last reply; empty if the replies are an agent's.
    pub replied: Contents,
    /// The number of replies that were applied.
    pub replies: usize,
}

impl Recomputed {
    /// Applies the run's replies again to the files before it.
    ///
    /// # Errors
    /// When something is missing from the run's record, or does not fit the rest of it.
    pub fn of(project: &Project, run: &PastRun, log: &ChangeLog) -> Result<Self, NotRecomputed> {
        let folder = run.relative();
        let mut files = run.files_before(project);
        for (path, change) in &log.files {
            let is_there = files.get(path).is_some_and(Option::is_some);
            if let Some(before) = change.before.as_ref().filter(|_| !is_there) {
                return Err(NotRecomputed::Missing(kept_path(&folder, before)));
            }
        }
        let content = |(path, state): (&String, &Option<FileState>)| {
            let content = state.as_ref().map(|state| state.content.clone());
            (path.clone(), content)
        };
        let mut recomputed = Self {
            before: files.iter().map(content).collect(),
            ..Self::default()
        };
        let mut saved = 1;
        for step in run.recorded_steps() {
            let Some(edits) = step.edits.as_ref().filter(|_| !step.is_agents()) else {
                continue;
            };
            // A build may have changed what an earlier reply wrote: edits are located in what the next one replaced.
            let mut paths: Vec<_> = edits.written.iter().chain(&edits.removed).collect();
            paths.sort_unstable();
            for path in paths {
                let state = log.files.get(path).and_then(|change| {
                    let saved = saved_file(project, &folder, saved)?;
                    let digest = Some(Digest::of(&saved));
                    let before = change.before.as_ref().map(|before| before.digest);
                    (digest == before || change.after.contains(&digest)).then_some(saved)
                });
                if let Some(content) = state {
                    saved += 1;
                    let mode = NEW_MODE;
                    files.insert(path.clone(), Some(FileState { content, mode }));
                }
            }
            let path = format!(
                "{folder}/{}",
                run_files::name(&step.id(), Artifact::ResponseText)
            );
            let Some(reply) = run.text(&step.id(), Artifact::ResponseText) else {
                return Err(NotRecomputed::Missing(path));
            };
            apply(&mut files, &reply, step.reply_format)
                .map_err(|rejection| NotRecomputed::Rejected { path, rejection })?;
            recomputed.replies += 1;
        }
        if run.agent().is_some() {
            return Ok(recomputed);
        }
        for (path, change) in &log.files {
            let content = files.remove(path).flatten().map(|state| state.content);
            if !change.after.contains(&content.as_deref().map(Digest::of)) {
                let (path, folder) = (escaped(path), folder);
                return Err(NotRecomputed::Other { path, folder });
            }
            recomputed.replied.insert(path.clone(), content);
        }
        Ok(recomputed)
    }
}

/// Returns the `nth` file that the run saved before a reply replaced or removed it, counted from 1.
fn saved_file(project: &Project, folder: &str, nth: u32) -> Option<Vec<u8>> {
    [false, true].into_iter().find_map(|beside_keys| {
        let vault = vault(folder, beside_keys);
        read_limited(&project.root().join(format!("{vault}/{nth}")))
    })
}
