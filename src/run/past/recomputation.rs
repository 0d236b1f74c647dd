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
use crate::edit::{self, Digest, FileEdit, ParsedReply, Rejection, Sent};
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
        let before = states_before(project, changes)?;
        let steps = run.recorded_steps();
        let mut formats = steps.iter().map(|step| step.reply_format);
        let saved = if formats.any(|format| format == ReplyFormat::Edits) {
            saved_states(project, chain)
        } else {
            Vec::new()
        };
        let mut files = Files {
            changes,
            states: known_states(changes, &before, &saved),
            replied: Contents::new(),
        };
        let mut replies = 0;
        let mut redacted = None;
        for step in steps {
            if step.is_agents() || !step.is_applied() {
                continue;
            }
            let name = run_files::name(&step.id(), Artifact::ResponseText);
            let path = format!("{}/{name}", run.relative());
            let Some(reply) = run.text(&step.id(), Artifact::ResponseText) else {
                return Err(NotRecomputed::Missing(path));
            };
            let ParsedReply { edits, faults, .. } = files.read(&reply, step.reply_format);
            if step.is_redacted {
                // The redacted text may also be text that an edit has to find.
                redacted.get_or_insert(path);
            } else if !faults.is_empty() {
                let rejection = Rejection { faults };
                return Err(NotRecomputed::Rejected { path, rejection });
            }
            files.apply(edits);
            replies += 1;
        }
        let unknown = files.first_unknown().filter(|_| run.agent().is_none());
        if let Some(path) = unknown.map(|path| escaped(path)) {
            let folder = run.relative();
            return Err(match redacted {
                Some(reply) => NotRecomputed::Redacted { path, reply },
                None => NotRecomputed::Other { path, folder },
            });
        }
        Ok(Self {
            before,
            replied: files.replied,
            replies,
        })
    }
}

/// Returns the states of the changed files before the run.
fn states_before(project: &Project, changes: &Changes) -> Result<Contents, NotRecomputed> {
    let states = changes
        .iter()
        .map(|(path, ChainedChange { folder, change })| {
            let saved = change.before.as_ref().map(|before| {
                let content = saved_state(project, folder, before).map(|state| state.content);
                content.ok_or_else(|| NotRecomputed::Missing(saved_path(folder, before)))
            });
            Ok((path.clone(), saved.transpose()?))
        });
    states.collect()
}

/// Returns what the runs of this chain saved before a reply or a repair replaced or removed it.
fn saved_states(project: &Project, chain: &Chain) -> Vec<(Digest, Vec<u8>)> {
    let runs = chain.found();
    runs.flat_map(|chained| saved_files(project, chained.run.relative()))
        .map_while(|file| files::read_open(file, MAX_TEXT).ok())
        .map(|saved| (Digest::of(&saved), saved))
        .collect()
}

/// Returns the states of each file that a reply may refer to, latest last.
fn known_states<'a>(
    changes: &'a Changes,
    before: &Contents,
    saved: &[(Digest, Vec<u8>)],
) -> BTreeMap<&'a str, Vec<Option<Vec<u8>>>> {
    let states = changes.iter().map(|(path, ChainedChange { change, .. })| {
        let recorded = |digest: &Digest| change.after.contains(&Some(*digest));
        let saved = saved.iter().filter(|(digest, _)| recorded(digest));
        let saved = saved.map(|(_, saved)| Some(saved.clone()));
        let before = before.get(path).cloned();
        (path.as_str(), saved.chain(before).collect())
    });
    states.collect()
}

/// The changed files, while the replies are applied again.
struct Files<'a> {
    /// The changes that the run recorded.
    changes: &'a Changes,
    /// The states of each file that a reply may refer to, latest last.
    states: BTreeMap<&'a str, Vec<Option<Vec<u8>>>>,
    /// The states after the replies so far.
    replied: Contents,
}

impl Files<'_> {
    /// Parses a reply. It may refer to a file as changed by a build or an earlier attempt; the result shows which.
    fn read(&self, reply: &str, format: ReplyFormat) -> ParsedReply {
        edit::read(reply, format, &|path| {
            let states = self.states.get(path).into_iter().flatten().rev().flatten();
            let of_reply = |state: &&Vec<u8>| {
                let read = |other: &str| Sent::of(Some(&state[..]).filter(|_| other == path));
                let mut edits = edit::read(reply, format, &read).edits.into_iter();
                edits.any(|edit| {
                    let content = edit.kind.content().map(str::as_bytes);
                    edit.path == path && is_state(self.changes, path, content)
                })
            };
            Sent::of({ states }.find(of_reply).map(Vec::as_slice))
        })
    }

    /// Applies the edits of a reply to the files that the run has changed.
    fn apply(&mut self, edits: Vec<FileEdit>) {
        for edit in edits {
            let content = edit.kind.content().map(|text| text.as_bytes().to_vec());
            let Some(ChainedChange { change, .. }) = self.changes.get(&edit.path) else {
                continue;
            };
            if let Some(states) = self.states.get_mut(&*edit.path) {
                states.push(content.clone());
            }
            let last = change.after.last().copied().flatten();
            let is_last = |known: &Option<Vec<u8>>| known.as_deref().map(Digest::of) == last;
            // In a search, the final state may be an earlier one.
            if !self.replied.get(&edit.path).is_some_and(is_last) || is_last(&content) {
                self.replied.insert(edit.path, content);
            }
        }
    }

    /// Returns the first file that the replies left in no state that the run recorded.
    fn first_unknown(&self) -> Option<&String> {
        self.changes.keys().find(|path| {
            let replied = self.replied.get(*path);
            !replied.is_some_and(|content| is_state(self.changes, path, content.as_deref()))
        })
    }
}

/// Returns whether the run recorded this state of a file.
fn is_state(changes: &Changes, path: &str, content: Option<&[u8]>) -> bool {
    let chained = changes.get(path);
    chained.is_some_and(|chained| chained.change.after.contains(&content.map(Digest::of)))
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
