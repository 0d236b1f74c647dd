//! The runs that were: reads their folders below `logs`, and what they changed.
//!
//! Reads `logs`, the files that are kept beside the keys, and the project's files where they are what a
//! run has left; changes nothing. What a run changed is told from its own record: the files that were
//! replaced, and the replies. So it can be told without git, and long after. Folders are what anybody
//! may have made of them: what is damaged or missing there is told as missing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use chrono::{DateTime, FixedOffset};

use crate::diff::{FileChange, State};
use crate::edit::undo_log::{self, Before, Changes};
use crate::edit::{self, Action, Digest};
use crate::project::Project;
use crate::record::{Attempt, AttemptRecord, RunRecord};
use crate::run_files::{self, Artifact, LOGS, RESULT};

/// How many repairs are looked for where a run has no record.
const REPAIRS: u8 = 3;
/// A file of a run's folder that is larger than this is not read as a text, in bytes.
const LARGEST_TEXT: u64 = 64 << 20;
/// What a new file's mode is taken for: what almost every umask makes of it.
const NEW_MODE: u32 = 0o644;

/// There is no such run.
#[derive(Debug, thiserror::Error)]
pub enum NoSuchRun {
    /// No folder of that name.
    #[error("there is no run at `{}`", .0.display())]
    Missing(PathBuf),
    /// There is no run at all, or none that is meant.
    #[error("no run in `logs` has {0}")]
    NoRun(&'static str),
    /// The runs could not be looked through.
    #[error("cannot read `{}`: {source}", .path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// A run, by its folder.
#[derive(Debug, Clone)]
pub struct PastRun {
    /// The folder's name below `logs`.
    pub name: String,
    /// Its record; `None`: the run goes on, was killed, or somebody has damaged it.
    pub record: Option<RunRecord>,
    folder: PathBuf,
}

/// A query of a run, as far as it is recorded.
#[derive(Debug, Clone)]
pub struct PastAttempt {
    /// Which one.
    pub attempt: Attempt,
    /// Its record.
    pub record: Option<AttemptRecord>,
    /// The reply, or the error in its place.
    pub reply: Option<Result<String, String>>,
    /// How the build ended, by the first line of its log, and its output.
    pub build: Option<(String, String)>,
    /// What the reply changed, compared to what the attempts before it had left.
    pub changes: Vec<FileChange>,
}

impl PastRun {
    /// Reads the run whose folder has this name.
    #[must_use]
    pub fn read(project: &Project, name: &str) -> Self {
        let folder = project.logs().join(name);
        let record = read_limited(&folder.join(RESULT));
        Self {
            name: name.to_owned(),
            record: record.and_then(|json| serde_json::from_slice(&json).ok()),
            folder,
        }
    }

    /// When it began; by its record, or by its folder's name.
    #[must_use]
    pub fn started(&self) -> Option<DateTime<FixedOffset>> {
        self.record.as_ref().map(|record| record.started)
    }

    /// The workflow, by its record or its folder's name.
    #[must_use]
    pub fn workflow(&self) -> &str {
        let by_name = || match self.name.get(STAMP_LENGTH..) {
            Some(name) if name.starts_with("committing-code") => "commit",
            Some(name) if name.starts_with("consistency-report") => "consistency",
            Some(name) if name.starts_with("undo") => "undo",
            _ => "?",
        };
        self.record
            .as_ref()
            .map_or_else(by_name, |record| &record.workflow)
    }

    /// The folder's path, relative to the root.
    #[must_use]
    pub fn relative(&self) -> String {
        format!("{LOGS}/{}", self.name)
    }

    /// The text of a file in the folder, what is not UTF-8 replaced.
    #[must_use]
    pub fn text(&self, attempt: Attempt, artifact: Artifact) -> Option<String> {
        let bytes = read_limited(&self.folder.join(run_files::name(attempt, artifact)))?;
        Some(lossy(bytes))
    }

    /// The queries in their order, with what each reply changed. Read anew each time: the texts may be
    /// large.
    #[must_use]
    pub fn attempts(&self, project: &Project) -> Vec<PastAttempt> {
        let mut states = Replayed::of(project, self);
        let found = self.found_attempts();
        let read = found.into_iter().map(|(attempt, record)| {
            let reply = self.reply(attempt);
            let applied = record.as_ref().is_none_or(|record| record.edits.is_some());
            let changes = match &reply {
                Some(Ok(text)) if applied => states.apply(text),
                _ => Vec::new(),
            };
            let build = self.text(attempt, Artifact::Build).map(|log| {
                let (status, output) = log.split_once('\n').unwrap_or((&log, ""));
                (status.trim_end().to_owned(), output.to_owned())
            });
            PastAttempt {
                attempt,
                record,
                reply,
                build,
                changes,
            }
        });
        read.collect()
    }

    /// What the run as a whole has changed, by path.
    ///
    /// # Errors
    /// When its record of that cannot be read.
    pub fn changes(&self, project: &Project) -> Result<Vec<FileChange>, undo_log::UndoLogError> {
        let Some(log) = undo_log::read(project.root(), &self.relative())? else {
            return Ok(Vec::new());
        };
        let attempts = self.attempts(project);
        let mut replied: BTreeMap<&str, &Option<State>> = BTreeMap::new();
        for attempt in &attempts {
            let changes = attempt.changes.iter();
            replied.extend(changes.map(|change| (change.path.as_str(), &change.after)));
        }
        let all = log.files.iter().map(|(path, change)| {
            let before = change
                .before
                .as_ref()
                .map(|before| self.kept(project, before));
            let left = change.after.last().copied().flatten();
            let after = left.map(|digest| {
                let replied = replied.get(path.as_str()).and_then(|state| state.as_ref());
                let mode = before.as_ref().map_or(NEW_MODE, |before| before.mode);
                left_behind(project, self, path, digest, replied, mode)
            });
            FileChange {
                path: path.clone(),
                before,
                after,
            }
        });
        Ok(all.filter(|change| change.before != change.after).collect())
    }

    /// A file as it was before the run.
    fn kept(&self, project: &Project, before: &Before) -> State {
        let path = project
            .root()
            .join(undo_log::kept_path(&self.relative(), before));
        let content = read_limited(&path).unwrap_or_default();
        State {
            content,
            mode: before.mode,
        }
    }

    fn reply(&self, attempt: Attempt) -> Option<Result<String, String>> {
        let text = self.text(attempt, Artifact::ResponseText)?;
        Some(match text.strip_prefix(run_files::ERROR_LINE) {
            Some(error) => Err(error.to_owned()),
            None => Ok(text),
        })
    }

    /// The queries that there were: by the record, or else by the files.
    fn found_attempts(&self) -> Vec<(Attempt, Option<AttemptRecord>)> {
        if let Some(record) = &self.record {
            let attempts = record.attempts.iter();
            return attempts
                .map(|record| (record.attempt(), Some(record.clone())))
                .collect();
        }
        let repairs = (1..=REPAIRS).map(Attempt::Repair);
        let all = [Attempt::Initial]
            .into_iter()
            .chain(repairs)
            .chain([Attempt::Report]);
        let was = |attempt: &Attempt| {
            let query = run_files::name(*attempt, Artifact::Query);
            self.folder.join(query).is_file()
        };
        all.filter(was).map(|attempt| (attempt, None)).collect()
    }
}

/// The length of a folder's time stamp and the hyphen behind it.
const STAMP_LENGTH: usize = "2026-11-21-20-15-03-".len();

/// The files that a run has changed, as they were before, and then as each reply leaves them.
struct Replayed {
    before: BTreeMap<String, Option<State>>,
}

impl Replayed {
    fn of(project: &Project, run: &PastRun) -> Self {
        let changes = undo_log::read(project.root(), &run.relative());
        let files = changes.ok().flatten().map(|changes: Changes| changes.files);
        let before = files.into_iter().flatten().map(|(path, change)| {
            let before = change.before.map(|before| run.kept(project, &before));
            (path, before)
        });
        Self {
            before: before.collect(),
        }
    }

    /// What the reply changes.
    fn apply(&mut self, reply: &str) -> Vec<FileChange> {
        let parsed = edit::parse(&Arc::new(reply.to_owned()));
        if !parsed.faults.is_empty() {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for edit in parsed.edits {
            let before = self.before.get(&edit.path).cloned().flatten();
            let after = match edit.action {
                Action::Write(content) => Some(State {
                    content: content.as_bytes().to_vec(),
                    mode: before.as_ref().map_or(NEW_MODE, |before| before.mode),
                }),
                Action::Remove => None,
            };
            self.before.insert(edit.path.clone(), after.clone());
            if before != after {
                changes.push(FileChange {
                    path: edit.path,
                    before,
                    after,
                });
            }
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        changes
    }
}

/// A file as a run has left it: the reply's, where the builds left that alone; the one on the disk, where
/// it is still the same; one that a later run has kept; or else what the reply said.
fn left_behind(
    project: &Project,
    run: &PastRun,
    path: &str,
    digest: Digest,
    replied: Option<&State>,
    mode: u32,
) -> State {
    let is_it = |content: &[u8]| Digest::of(content) == digest;
    if let Some(state) = replied.filter(|state| is_it(&state.content)) {
        return state.clone();
    }
    let on_disk = read_limited(&project.root().join(path)).filter(|content| is_it(content));
    let kept = || {
        let others = names(project)
            .ok()?
            .into_iter()
            .filter(|name| *name != run.name);
        others
            .map(|name| PastRun::read(project, &name))
            .find_map(|other| {
                let changes = undo_log::read(project.root(), &other.relative()).ok()??;
                let before = changes.files.get(path)?.before.clone()?;
                let state = other.kept(project, &before);
                is_it(&state.content).then(|| state.content.clone())
            })
    };
    let content = on_disk.or_else(kept);
    let content = content.or_else(|| replied.map(|state| state.content.clone()));
    State {
        content: content.unwrap_or_default(),
        mode,
    }
}

/// All runs, the oldest first.
///
/// # Errors
/// When `logs` cannot be read.
pub fn runs(project: &Project) -> Result<Vec<PastRun>, NoSuchRun> {
    let names = names(project)?.into_iter();
    Ok(names.map(|name| PastRun::read(project, &name)).collect())
}

/// The names of all runs' folders, by time.
fn names(project: &Project) -> Result<Vec<String>, NoSuchRun> {
    let logs = project.logs();
    let unreadable = |source| NoSuchRun::Unreadable {
        path: logs.clone(),
        source,
    };
    let entries = match fs::read_dir(&logs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let is_run = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if let (true, Ok(name)) = (is_run, entry.file_name().into_string()) {
            names.push(name);
        }
    }
    names.sort_by_cached_key(|name| order(&logs, name));
    Ok(names)
}

/// By the stamp in the name; runs of one second by when they ended, and by their numbers.
fn order(logs: &Path, name: &str) -> (String, bool, Option<SystemTime>, u32) {
    let stamp = name.get(..STAMP_LENGTH - 1).unwrap_or(name);
    let result = logs.join(name).join(RESULT).metadata();
    let ended = result.and_then(|found| found.modified()).ok();
    let number = name
        .rsplit_once('-')
        .and_then(|(_, number)| number.parse().ok());
    // What has not ended is later than what has.
    (
        stamp.to_owned(),
        ended.is_none(),
        ended,
        number.unwrap_or(1),
    )
}

/// The name of the folder of the run that is meant by `run`: its name, or its path from the root.
///
/// # Errors
/// When there is none.
pub fn find(project: &Project, run: &Path) -> Result<String, NoSuchRun> {
    let missing = || NoSuchRun::Missing(run.to_path_buf());
    let base = run
        .file_name()
        .and_then(|base| base.to_str())
        .ok_or_else(missing)?;
    let logs = project.logs();
    let is_the_run = |path: PathBuf| path.is_dir() && path.parent() == Some(logs.as_path());
    // Only what lies right below `logs` is a run: its kept files are looked for there.
    let named = [project.root().join(run), logs.join(run)];
    let found = named
        .into_iter()
        .any(|path| is_the_run(path_clean::clean(path)));
    found.then(|| base.to_owned()).ok_or_else(missing)
}

/// A regular file's content, where it is not too large.
fn read_limited(path: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > LARGEST_TEXT {
        return None;
    }
    let mut content = Vec::new();
    let mut file = File::open(path).ok()?.take(LARGEST_TEXT);
    file.read_to_end(&mut content).ok()?;
    Some(content)
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
