//! The runs that were: reads their folders below `logs`, and what they changed.
//!
//! Reads `logs`, the files that are kept beside the keys, and the project's files where they are what a
//! run has left; changes nothing. Stands on top of `edit`, whose undo log and grammar it reads. What a run
//! changed is told from its own record: the files that were
//! replaced, and the replies. So it can be told without git, and long after. Folders are what anybody
//! may have made of them: what is damaged or missing there is told as missing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use chrono::{DateTime, FixedOffset};

use crate::edit::changes::{Before, Changes, kept_path};
use crate::edit::undo_log;
use crate::edit::{self, Action, Digest};
use crate::model::{Purpose, StepId};
use crate::project::LOGS;
use crate::project::Project;
use crate::record::diff::{FileChange, NEW_MODE, State};
use crate::record::run_files::{self, Artifact, RESULT};
use crate::record::{REPAIRS, RunRecord, Step};
use crate::sys::files::IfThere as _;

/// A file of a run's folder that is larger than this is not read as a text, in bytes.
const LARGEST_TEXT: u64 = 64 << 20;

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
    pub step: StepId,
    /// Its record.
    pub record: Option<Step>,
    /// The reply, or the error in its place.
    pub reply: Option<Result<String, String>>,
    /// How the build ended, by the first line of its log, and its output.
    pub build: Option<(String, String)>,
    /// What the reply changed, compared to what the attempts before it had left.
    pub changes: Vec<FileChange>,
}

/// What a run has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunChanges {
    /// By path.
    pub files: Vec<FileChange>,
    /// What of it is not certain, in words.
    pub doubts: Vec<String>,
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

    /// The run of that name, without its record.
    fn unread(project: &Project, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            record: None,
            folder: project.logs().join(name),
        }
    }

    /// When it began, by its record.
    #[must_use]
    pub fn started(&self) -> Option<DateTime<FixedOffset>> {
        self.record.as_ref().map(|record| record.started)
    }

    /// The workflow, by its record or its folder's name.
    #[must_use]
    pub fn workflow(&self) -> &str {
        let by_name = || match self.name.get(STAMP_LENGTH..).map(without_number) {
            Some("committing-code") => "commit",
            Some("consistency-report") => "consistency",
            Some("undo") => "undo",
            Some("dev") => "dev",
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
    pub fn text(&self, step: &StepId, artifact: Artifact) -> Option<String> {
        let bytes = read_limited(&self.folder.join(run_files::name(step, artifact)))?;
        Some(lossy(bytes))
    }

    /// The queries in their order, with what each reply changed. Read anew each time: the texts may be
    /// large.
    #[must_use]
    pub fn attempts(&self, project: &Project) -> Vec<PastAttempt> {
        let mut states = Replayed::of(project, self);
        let found = self.found_attempts();
        let read = found.into_iter().map(|(step, record)| {
            let reply = self.reply(&step);
            // What an agent writes stands in its tools' inputs.
            let holds_edits = [Purpose::INITIAL, Purpose::REPAIR].contains(&step.purpose);
            let applied =
                holds_edits && record.as_ref().is_none_or(|record| record.edits.is_some());
            let changes = match &reply {
                Some(Ok(text)) if applied => states.apply(text),
                _ => Vec::new(),
            };
            let build = self.text(&step, Artifact::Build).map(|log| {
                let (status, output) = log.split_once('\n').unwrap_or((&log, ""));
                (status.trim_end().to_owned(), output.to_owned())
            });
            PastAttempt {
                step,
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
    pub fn changes(&self, project: &Project) -> Result<RunChanges, undo_log::UndoLogError> {
        let mut changes = RunChanges::default();
        let Some(log) = undo_log::read(project.root(), &self.relative())? else {
            return Ok(changes);
        };
        let attempts = self.attempts(project);
        let mut sought = Sought::new(project, self);
        for attempt in &attempts {
            for change in &attempt.changes {
                sought.replied.insert(&change.path, change.after.as_ref());
            }
        }
        for (path, change) in &log.files {
            let before = change.before.as_ref().map(|before| {
                let kept = self.kept(project, before);
                if kept.is_none() {
                    changes.doubts.push(format!(
                        "what `{}` was before is not in the run's record any more: it is shown as empty",
                        path.escape_debug()
                    ));
                }
                kept.unwrap_or_else(|| State::empty(before.mode))
            });
            let mode = before.as_ref().map_or(NEW_MODE, |before| before.mode);
            let after = change.after.last().copied().flatten().map(|digest| {
                let left = sought.left_behind(path, digest);
                let content = left.unwrap_or_else(|reply| {
                    changes.doubts.push(format!(
                        "what the build made of `{}` is not recorded: it is shown as the reply left it",
                        path.escape_debug()
                    ));
                    reply
                });
                State { content, mode }
            });
            if before != after {
                changes.files.push(FileChange {
                    path: path.clone(),
                    before,
                    after,
                });
            }
        }
        Ok(changes)
    }

    /// A file as it was before the run; `None` where that is not kept any more.
    fn kept(&self, project: &Project, before: &Before) -> Option<State> {
        let path = kept_path(&self.relative(), before);
        let content = read_limited(&project.root().join(path))?;
        (Digest::of(&content) == before.digest).then_some(State {
            content,
            mode: before.mode,
        })
    }

    fn reply(&self, step: &StepId) -> Option<Result<String, String>> {
        let text = self.text(step, Artifact::ResponseText)?;
        Some(match text.strip_prefix(run_files::ERROR_LINE) {
            Some(error) => Err(error.to_owned()),
            None => Ok(text),
        })
    }

    /// The queries that there were: by the record, or else by the files.
    fn found_attempts(&self) -> Vec<(StepId, Option<Step>)> {
        if let Some(record) = &self.record {
            let attempts = record.attempts.iter();
            return attempts
                .map(|record| (record.id(), Some(record.clone())))
                .collect();
        }
        let repairs = (1..=REPAIRS).map(StepId::repair);
        let all = [StepId::INITIAL]
            .into_iter()
            .chain(repairs)
            .chain([StepId::REPORT]);
        let was = |step: &StepId| {
            let query = run_files::name(step, Artifact::Query);
            self.folder.join(query).is_file()
        };
        // An agent's calls are numbered from 1 on, whatever they are for.
        let call = |number| {
            let purposes = [Purpose::STEP, Purpose::AUDIT, Purpose::COMPRESSION];
            let ids = purposes.map(|purpose| StepId::new(purpose, number));
            ids.into_iter().find(was)
        };
        let calls = (1..=u16::MAX).map_while(call);
        let found = all.filter(was).chain(calls);
        found.map(|step| (step, None)).collect()
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
            let before = change.before.and_then(|before| run.kept(project, &before));
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

/// Looks for files as a run has left them.
struct Sought<'s> {
    project: &'s Project,
    run: &'s PastRun,
    /// What the replies have made of files.
    replied: BTreeMap<&'s str, Option<&'s State>>,
    /// What other runs have changed, once that was asked for.
    others: Option<Vec<(PastRun, Changes)>>,
}

impl<'s> Sought<'s> {
    fn new(project: &'s Project, run: &'s PastRun) -> Self {
        Self {
            project,
            run,
            replied: BTreeMap::new(),
            others: None,
        }
    }

    /// The content with this digest: the reply's, where the builds left that alone; the one on the disk,
    /// where it is still the same; or one that another run has kept. Where it is none of these, what the
    /// reply said, as an error.
    fn left_behind(&mut self, path: &str, digest: Digest) -> Result<Vec<u8>, Vec<u8>> {
        let is_it = |content: &Vec<u8>| Digest::of(content) == digest;
        let replied = self.replied.get(path).copied().flatten();
        let replied = replied
            .map(|state| state.content.clone())
            .unwrap_or_default();
        if is_it(&replied) {
            return Ok(replied);
        }
        let on_disk = read_limited(&self.project.root().join(path)).filter(is_it);
        let found = on_disk.or_else(|| self.kept_by_others(path, digest));
        found.ok_or(replied)
    }

    fn kept_by_others(&mut self, path: &str, digest: Digest) -> Option<Vec<u8>> {
        let project = self.project;
        let others = self.others.get_or_insert_with(|| {
            let names = names(project).unwrap_or_default().into_iter();
            let others = names.filter(|name| *name != self.run.name);
            let read = others.filter_map(|name| {
                let run = PastRun::unread(project, &name);
                let changes = undo_log::read(project.root(), &run.relative()).ok()??;
                Some((run, changes))
            });
            read.collect()
        });
        others.iter().find_map(|(run, changes)| {
            let before = changes.files.get(path)?.before.as_ref()?;
            let kept = (before.digest == digest).then(|| run.kept(project, before));
            kept.flatten().map(|state| state.content)
        })
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
    let Some(entries) = fs::read_dir(&logs).if_there().map_err(unreadable)? else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let is_run = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().into_string();
        names.extend(name.ok().filter(|name| is_run && has_stamp(name)));
    }
    names.sort_by_cached_key(|name| order(&logs, name));
    Ok(names)
}

/// Whether the name begins with a run's stamp: `2026-11-21-20-15-03-`.
fn has_stamp(name: &str) -> bool {
    let stamp = name.as_bytes().get(..STAMP_LENGTH);
    let mut bytes = stamp.into_iter().flatten().enumerate();
    stamp.is_some()
        && bytes.all(|(at, byte)| match at {
            4 | 7 | 10 | 13 | 16 | 19 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// The name of a run's folder, its stamp taken off, without the number that runs of one second have.
fn without_number(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
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
    let is_dir = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let is_the_run = |path: PathBuf| is_dir(&path) && path.parent() == Some(logs.as_path());
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
