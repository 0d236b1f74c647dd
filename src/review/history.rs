//! The runs that were: reads their folders below `logs`, and what they changed.
//!
//! Reads `logs`, the files that are kept beside the keys, and the project's files where they are what a
//! run has left; changes nothing. What a run did is told by its steps: those of `steps.jsonl`, or, of runs
//! from before there was one, those of `result.json`. What it changed is told from its own record too: the
//! files that were replaced, and the replies' edits. So it can be told without git, and long after. Folders
//! are what anybody may have made of them: what is damaged or missing there is told as missing.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Take};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use chrono::{DateTime, FixedOffset, NaiveDateTime};

use crate::edit::changes::{Before, Changes, kept_path};
use crate::edit::undo_log;
use crate::edit::{self, Action, Digest};
use crate::model::REPAIRS;
use crate::model::{Purpose, StepId};
use crate::project::LOGS;
use crate::project::Project;
use crate::record::diff::{FileChange, FileState, NEW_MODE};
use crate::record::run_files::{self, Artifact, RESULT, STEPS};
use crate::record::{RunRecord, Step};
use crate::sys::excerpt::lossy;
use crate::sys::files::IfThere as _;

/// A file of a run's folder that is larger than this is not read as a text, in bytes.
const MAX_TEXT: u64 = 64 << 20;
/// The same for the steps, which are read line by line.
const MAX_STEPS: u64 = 512 << 20;

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

/// A step of a run, with the texts that its files hold.
#[derive(Debug, Clone)]
pub struct PastStep {
    /// What is recorded of it.
    pub step: Step,
    /// The reply, or the error in its place.
    pub reply: Option<Result<String, String>>,
    /// The build's log. Of an agent's step that does not tell it itself: what its tools were given, and what
    /// came of it.
    pub log: Option<String>,
    /// What the reply changed, compared to what the steps before it had left.
    pub changes: Vec<FileChange>,
}

impl PastStep {
    /// Whether an agent's reply was followed by nothing: it was not understood, or the run ended before.
    #[must_use]
    pub fn came_to_nothing(&self) -> bool {
        let step = &self.step;
        let acts =
            step.is_agents() && ![Purpose::AUDIT, Purpose::COMPRESSION].contains(&step.purpose);
        acts && step.actions.is_empty()
            && step.passed.is_none()
            && self.log.is_none()
            && matches!(self.reply, Some(Ok(_)))
    }

    /// How the build ended, by the first line of its log, and its output.
    #[must_use]
    pub fn build_log(&self) -> Option<(&str, &str)> {
        let log = self.log.as_ref().filter(|_| !self.step.is_agents())?;
        let (status, output) = log.split_once('\n').unwrap_or((log, ""));
        Some((status.trim_end(), output))
    }
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
        let run = Self::unread(project, name);
        let record = read_limited(&run.folder.join(RESULT));
        Self {
            record: record.and_then(|json| serde_json::from_slice(&json).ok()),
            ..run
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
        // Runs of one second have numbers behind their names.
        let number = |c: char| c == '-' || c.is_ascii_digit();
        let by_name = || match self.name.trim_matches(number) {
            "committing-code" => "commit",
            "consistency-report" => "consistency",
            name @ ("undo" | "dev") => name,
            _ => "?",
        };
        self.record
            .as_ref()
            .map_or_else(by_name, |record| &record.workflow)
    }

    /// The folder's path, relative to the root.
    #[must_use]
    pub fn relative(&self) -> String {
        relative(&self.name)
    }

    /// The text of a file in the folder, what is not UTF-8 replaced.
    #[must_use]
    pub fn text(&self, step: &StepId, artifact: Artifact) -> Option<String> {
        let bytes = read_limited(&self.folder.join(run_files::name(step, artifact)))?;
        Some(lossy(bytes))
    }

    /// The steps in their order, with their texts and what each reply changed. Read anew each time: the texts
    /// may be large.
    #[must_use]
    pub fn steps(&self, project: &Project) -> Vec<PastStep> {
        let mut files = FileStates::before(project, self);
        let read = self.recorded_steps().into_iter().map(|step| {
            let reply = self.reply(&step.id());
            // What an agent writes stands in its tools' inputs.
            let changes = match &reply {
                Some(Ok(text)) if !step.is_agents() && step.edits.is_some() => files.apply(text),
                _ => Vec::new(),
            };
            let tells_all = step.is_agents()
                && !step.actions.is_empty()
                && step.actions.iter().all(|action| action.result.is_some());
            let log = (!tells_all).then(|| self.text(&step.id(), Artifact::Build));
            PastStep {
                step,
                reply,
                log: log.flatten(),
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
        let steps = self.steps(project);
        let replied = steps.iter().flat_map(|step| &step.changes);
        let replied = replied.map(|change| (&change.path, change.after()));
        let replied: BTreeMap<_, _> = replied.collect();
        let others = LazyCell::new(|| self.others(project));
        for (path, change) in &log.files {
            let before = change.before.as_ref().map(|before| {
                self.kept(project, before).unwrap_or_else(|| {
                    changes.doubts.push(format!(
                        "what `{}` was before is not in the run's record any more: it is shown as empty",
                        path.escape_debug()
                    ));
                    FileState::empty(before.mode)
                })
            });
            let mode = before.as_ref().map_or(NEW_MODE, |before| before.mode);
            let after = change.after.last().copied().flatten().map(|digest| {
                let is_it = |content: &Vec<u8>| Digest::of(content) == digest;
                let kept = |(run, log): &(Self, Changes)| {
                    let before = log.files.get(path)?.before.as_ref()?;
                    (before.digest == digest).then(|| run.kept(project, before))?
                };
                let reply = replied.get(path).copied().unwrap_or_default().to_vec();
                if is_it(&reply) {
                    return FileState { content: reply, mode };
                }
                // The build has changed it: perhaps it is still there, or another run has kept it.
                let on_disk = read_limited(&project.root().join(path)).filter(is_it);
                let kept = || Some(others.iter().find_map(kept)?.content);
                let content = on_disk.or_else(kept).unwrap_or_else(|| {
                    changes.doubts.push(format!(
                        "what the build made of `{}` is not recorded: it is shown as the reply left it",
                        path.escape_debug()
                    ));
                    reply
                });
                FileState { content, mode }
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

    /// What other runs have changed.
    fn others(&self, project: &Project) -> Vec<(Self, Changes)> {
        let names = names(project).unwrap_or_default().into_iter();
        let others = names.filter(|name| *name != self.name);
        let read = others.filter_map(|name| {
            let run = Self::unread(project, &name);
            let changes = undo_log::read(project.root(), &run.relative()).ok()??;
            Some((run, changes))
        });
        read.collect()
    }

    /// A file as it was before the run; `None` where that is not kept any more.
    fn kept(&self, project: &Project, before: &Before) -> Option<FileState> {
        let path = kept_path(&self.relative(), before);
        let content = read_limited(&project.root().join(path))?;
        (Digest::of(&content) == before.digest).then_some(FileState {
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

    /// The steps that there were, as far as they are recorded.
    fn recorded_steps(&self) -> Vec<Step> {
        let mut steps = self.logged_steps();
        let Some(record) = &self.record else {
            let unlogged = self.unlogged_steps(&steps);
            steps.extend(unlogged);
            for step in &mut steps {
                // Nobody knows whether a run that was killed had applied its last reply: it counts as applied.
                step.edits.get_or_insert_default();
            }
            return steps;
        };
        if steps.is_empty() {
            steps.clone_from(&record.steps);
        }
        steps
    }

    /// The steps of `steps.jsonl`, each by the last whole line about it.
    fn logged_steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut places = BTreeMap::new();
        let file = open_limited(&self.folder.join(STEPS), MAX_STEPS).map(BufReader::new);
        let lines = file.into_iter().flat_map(|file| file.split(b'\n'));
        let read = lines.map_while(Result::ok);
        // The last line may be torn.
        for step in read.filter_map(|line| serde_json::from_slice::<Step>(&line).ok()) {
            let place = *places.entry(step.id()).or_insert(steps.len());
            match steps.get_mut(place) {
                Some(known) => *known = step,
                None => steps.push(step),
            }
        }
        steps
    }

    /// The steps behind those that are logged, by their files: a run that was killed may have logged none, or
    /// not the one that was under way.
    fn unlogged_steps(&self, logged: &[Step]) -> Vec<Step> {
        let is_new = |id: &StepId| {
            let query = self.folder.join(run_files::name(id, Artifact::Query));
            query.is_file() && logged.iter().all(|step| step.id() != *id)
        };
        let fixed = [StepId::INITIAL, StepId::REPORT].into_iter();
        let fixed = fixed.chain((1..=REPAIRS).map(StepId::repair));
        // An agent's calls are numbered from 1 on, whatever they are for.
        let last = logged.iter().map(|step| step.number).max();
        let calls = (last.unwrap_or(0).saturating_add(1)..=u16::MAX).map_while(|number| {
            let purposes = [Purpose::STEP, Purpose::AUDIT, Purpose::COMPRESSION];
            let mut ids = purposes
                .map(|purpose| StepId::new(purpose, number))
                .into_iter();
            ids.find(is_new)
        });
        let found = fixed.filter(is_new).chain(calls);
        found
            .map(|id| Step {
                model: None,
                ..Step::new(id, "", Vec::new())
            })
            .collect()
    }
}

/// The length of a folder's time stamp and the hyphen behind it.
const STAMP_LENGTH: usize = "2026-11-21-20-15-03-".len();

/// The files that a run has changed, as they were before, and then as each reply leaves them.
struct FileStates(BTreeMap<String, Option<FileState>>);

impl FileStates {
    fn before(project: &Project, run: &PastRun) -> Self {
        let changes = undo_log::read(project.root(), &run.relative());
        let files = changes.ok().flatten().map(|changes: Changes| changes.files);
        let before = files.into_iter().flatten().map(|(path, change)| {
            let before = change.before.and_then(|before| run.kept(project, &before));
            (path, before)
        });
        Self(before.collect())
    }

    /// What the reply changes.
    fn apply(&mut self, reply: &str) -> Vec<FileChange> {
        let parsed = edit::parse(&Arc::new(reply.to_owned()));
        if !parsed.faults.is_empty() {
            return Vec::new();
        }
        let mut changes = Vec::new();
        for edit in parsed.edits {
            let before = self.0.get(&edit.path).cloned().flatten();
            let after = match edit.action {
                Action::Write(content) => Some(FileState {
                    content: content.as_bytes().to_vec(),
                    mode: before.as_ref().map_or(NEW_MODE, |before| before.mode),
                }),
                Action::Remove => None,
            };
            self.0.insert(edit.path.clone(), after.clone());
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

/// All runs, the oldest first.
///
/// # Errors
/// When `logs` cannot be read.
pub fn runs(project: &Project) -> Result<Vec<PastRun>, NoSuchRun> {
    let names = names(project)?.into_iter();
    Ok(names.map(|name| PastRun::read(project, &name)).collect())
}

/// The path of the folder of this name, relative to the root.
#[must_use]
pub fn relative(name: &str) -> String {
    format!("{LOGS}/{name}")
}

/// The names of all runs' folders, by time.
///
/// # Errors
/// When `logs` cannot be read.
pub fn names(project: &Project) -> Result<Vec<String>, NoSuchRun> {
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
    let stamp = name.get(..STAMP_LENGTH).unwrap_or_default();
    NaiveDateTime::parse_from_str(stamp, "%Y-%m-%d-%H-%M-%S-").is_ok()
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
    let mut content = Vec::new();
    let mut file = open_limited(path, MAX_TEXT)?;
    file.read_to_end(&mut content).ok()?;
    Some(content)
}

/// Opens a regular file, where it is not too large.
fn open_limited(path: &Path, max_bytes: u64) -> Option<Take<File>> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > max_bytes {
        return None;
    }
    Some(File::open(path).ok()?.take(max_bytes))
}
