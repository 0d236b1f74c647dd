//! The files of a commit's run, recomputed from its recorded replies.
//!
//! Reads the run's folder and its saved files; never the project's current files. Guarantees that every file is in one
//! of the states that the run recorded.

use std::collections::BTreeMap;
use std::fs::File;

use super::chain::{Chain, ChainedChange};
use super::history::{MAX_TEXT, PastRun, saved_state};
use crate::edit::changes::{saved_path, vault};
use crate::edit::undo_log::UndoLogError;
use crate::edit::{self, Digest, Rejection, Sent};
use crate::model::ReplyFormat;
use crate::project::Project;
use crate::record::run_files::{self, Artifact};
use crate::sys::files::{self, Links};
use crate::sys::text::escaped;

/// Reasons that a run cannot be attested, or its statement does not hold.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[diagnostic(
    code("not-proven"),
    help(
        "restore the run's folder from a copy; a run that was pruned or edited, or whose replies held a secret, \
         proves nothing"
    )
)]
pub enum NotRecomputed {
    /// The run has no record.
    #[error("`{0}` has no record: the run does not exist, is still going on, or was killed")]
    NoRecord(String),
    /// The run asked no model.
    #[error("`{0}` asked no model, so there is nothing to attest: name a run that did")]
    NoModel(String),
    /// A file of the record is missing.
    #[error("`{0}` is gone, or cannot be read")]
    Missing(String),
    /// The record of changes cannot be read.
    #[error(transparent)]
    Changes(#[from] UndoLogError),
    /// A recorded reply cannot have been applied.
    #[error("the run cannot have applied `{path}`: {rejection}")]
    Rejected { path: String, rejection: Rejection },
    /// The record of a reply lacks a secret.
    #[error(
        "`{reply}` lacks a secret that was redacted: what the reply made of `{path}` is not known"
    )]
    Redacted { path: String, reply: String },
    /// A file differs from its record.
    #[error("what the recorded replies make of `{path}` is not what `{folder}/changes.json` has")]
    Other { path: String, folder: String },
    /// The digest of a file's last state is not recorded.
    #[error("the run did not record the digest of `{}`, which no reply gives", escaped(.0))]
    NoDigest(String),
}

/// Files by path; `None` if the file does not exist.
pub type Contents = BTreeMap<String, Option<Vec<u8>>>;

/// Changes by path.
type Changes = BTreeMap<String, ChainedChange>;

/// The states of the files that a run changed.
#[derive(Debug, Default)]
pub struct Recomputed {
    /// The states before the run.
    pub before: Contents,
    /// The states after the run's last reply; empty if the replies are an agent's.
    pub replied: Contents,
    /// The number of replies that were applied.
    pub replies: usize,
}

impl Recomputed {
    /// Reapplies the run's replies to the files as they were before it, and before the runs that it resumed.
    ///
    /// # Errors
    /// Fails if something is missing from the run's record, or contradicts the rest of it.
    pub fn of(
        project: &Project,
        run: &PastRun,
        (chain, changes): (&Chain, &Changes),
    ) -> Result<Self, NotRecomputed> {
        let folder = run.relative();
        let mut before = Contents::new();
        for (path, ChainedChange { folder, change }) in changes {
            let saved = change.before.as_ref().map(|before| {
                let content = saved_state(project, folder, before).map(|state| state.content);
                content.ok_or_else(|| NotRecomputed::Missing(saved_path(folder, before)))
            });
            before.insert(path.clone(), saved.transpose()?);
        }
        let mut recomputed = Self {
            before: before.clone(),
            ..Self::default()
        };
        let steps = run.recorded_steps();
        let mut formats = steps.iter().map(|step| step.reply_format);
        let has_edits = formats.any(|format| format == ReplyFormat::Edits);
        let saved: Vec<_> = chain
            .found()
            .flat_map(|chained| saved_files(project, chained.run.relative()))
            .take_while(|_| has_edits)
            .map_while(|file| files::read_open(file, MAX_TEXT).ok())
            .map(|saved| (Digest::of(&saved), saved))
            .collect();
        // The states of each file that a reply may refer to, latest last.
        let mut states: BTreeMap<&String, Vec<Option<Vec<u8>>>> = BTreeMap::new();
        for (path, ChainedChange { change, .. }) in changes {
            let mut known: Vec<_> = saved
                .iter()
                .filter(|(digest, _)| change.after.contains(&Some(*digest)))
                .map(|(_, saved)| Some(saved.clone()))
                .collect();
            known.extend(before.get(path).cloned());
            states.insert(path, known);
        }
        let mut redacted = None;
        for step in steps {
            if step.is_agents() || !step.is_applied() {
                continue;
            }
            let name = run_files::name(&step.id(), Artifact::ResponseText);
            let path = format!("{folder}/{name}");
            let Some(reply) = run.text(&step.id(), Artifact::ResponseText) else {
                return Err(NotRecomputed::Missing(path));
            };
            let read = |sent: &dyn Fn(&str) -> Sent| edit::read(&reply, step.reply_format, sent);
            // The reply may refer to a file as changed by a build or an earlier attempt; the result shows which.
            let made_of = |path: &str| {
                let mut states = states
                    .get(&path.to_owned())
                    .into_iter()
                    .flatten()
                    .rev()
                    .flatten();
                let is_it = |state: &&Vec<u8>| {
                    let parsed = read(&|other| sent(Some(*state).filter(|_| other == path)));
                    parsed.edits.into_iter().any(|edit| {
                        edit.path == path
                            && is_state(changes, path, edit.kind.content().map(str::as_bytes))
                    })
                };
                states.find(is_it)
            };
            let parsed = read(&|path| sent(made_of(path)));
            let faults = parsed.faults;
            if step.is_redacted {
                // The redacted text may also be text that an edit has to find.
                redacted.get_or_insert(path);
            } else if !faults.is_empty() {
                let rejection = Rejection { faults };
                return Err(NotRecomputed::Rejected { path, rejection });
            }
            for edit in parsed.edits {
                let content = edit.kind.content().map(|text| text.as_bytes().to_vec());
                let Some(ChainedChange { change, .. }) = changes.get(&edit.path) else {
                    continue;
                };
                if let Some(states) = states.get_mut(&edit.path) {
                    states.push(content.clone());
                }
                let last = change.after.last().copied().flatten();
                let known = recomputed.replied.get(&edit.path);
                // In a search, the final state may be an earlier one.
                let counts = |known: &Option<Vec<u8>>| known.as_deref().map(Digest::of) == last;
                if !known.is_some_and(counts) || counts(&content) {
                    recomputed.replied.insert(edit.path, content);
                }
            }
            recomputed.replies += 1;
        }
        for path in changes.keys().filter(|_| run.agent().is_none()) {
            let replied = recomputed.replied.get(path);
            if !replied.is_some_and(|replied| is_state(changes, path, replied.as_deref())) {
                let path = escaped(path);
                return Err(match redacted {
                    Some(reply) => NotRecomputed::Redacted { path, reply },
                    None => NotRecomputed::Other { path, folder },
                });
            }
        }
        Ok(recomputed)
    }
}

/// Returns whether the run recorded this state of a file.
fn is_state(changes: &Changes, path: &str, content: Option<&[u8]>) -> bool {
    let chained = changes.get(path);
    chained.is_some_and(|chained| chained.change.after.contains(&content.map(Digest::of)))
}

fn sent(state: Option<&Vec<u8>>) -> Sent {
    let text = state.and_then(|state| String::from_utf8(state.clone()).ok());
    text.map_or(Sent::Missing, Sent::Text)
}

/// Opens the files that the run in `folder` saved before a reply or a repair replaced or removed them, oldest first.
pub fn saved_files(project: &Project, folder: String) -> impl Iterator<Item = File> {
    (1..).map_while(move |nth: u32| {
        let vaults = [false, true].map(|beside_keys| vault(&folder, beside_keys));
        vaults.iter().find_map(|vault| {
            let path = project.root().join(format!("{vault}/{nth}"));
            files::open(&path, Links::Refused).ok()
        })
    })
}
