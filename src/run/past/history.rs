//! Past runs: their folders below `logs`, and the changes they made.
//!
//! Reads `logs`, the saved files next to the keys, and project files still as a run left them; changes nothing.
//! The steps of a run are read from `steps.jsonl`; if that is missing, from `result.json`; and if that is missing too,
//! they are derived from the names of the query files in the folder. Its changes are read from its own record: the
//! saved files and the edits in the replies. Git is not needed, and the age of a run does not matter. Folders are
//! untrusted input: anything damaged is treated as missing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, NaiveDate, Utc};
use strum::IntoStaticStr;

use super::folders::{names, relative};
use super::past_step::PastStep;
use crate::edit::changes::{Before, saved_path};
use crate::edit::{self, Digest, Sent, undo_log};
use crate::model::prompt::Inputs;
use crate::model::{Purpose, ReplyFormat, StepId};
use crate::project::Project;
use crate::record::branches::Lineage;
use crate::record::choice::ChoiceRecord;
use crate::record::logged::{self, json};
use crate::record::result::{AgentRecord, RunRecord};
use crate::record::run_files::{self, AGENT, Artifact, LINEAGE, RESULT, STEPS, holds_project};
use crate::record::step::Step;
use crate::record::verdict;
use crate::sys::diff::{FileChange, FileState, NEW_MODE};
use crate::sys::excerpt::lossy;
use crate::sys::file_lock;
use crate::sys::files::{self, Links, MIB, PathError, beginning, read};

/// Maximum size, in bytes, of a text file read from a run's folder.
pub(super) const MAX_TEXT: u64 = 64 * MIB;
/// Number of bytes read from a prompt to find the request: the query comes before the code base.
const BEGINNING: u64 = 64 << 10;

/// A past run, read from its folder.
#[derive(Debug, Clone)]
pub struct PastRun {
    /// The folder's name below `logs`.
    pub name: String,
    /// The run's record; `None` if the run is still in progress, was killed, or its record is damaged.
    pub record: Option<RunRecord>,
    /// The folder of the undo that took the changes back, if it was looked for.
    pub undone_by: Option<String>,
    /// For a run without a record: the record of its agent, if it has one.
    agent: Option<AgentRecord>,
    /// For a run without a record: the branches, if it is an orchestration.
    lineage: Option<Lineage>,
    pub(super) folder: PathBuf,
}

/// The state of a run that has no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum UnrecordedState {
    /// The run is in progress.
    Running,
    /// The run is in progress, or was killed.
    Unfinished,
    /// The run was killed.
    Killed,
}

/// The changes made by a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunChanges {
    /// The changed files, sorted by path.
    pub files: Vec<FileChange>,
    /// Notes on changes that could not be reconstructed exactly.
    pub doubts: Vec<String>,
}

impl PastRun {
    /// Reads the run whose folder has this name.
    pub fn read(project: &Project, name: &str) -> Self {
        let folder = project.logs().join(name);
        let record: Option<RunRecord> = json(&folder, RESULT);
        let is_killed = record.is_none();
        Self {
            name: name.to_owned(),
            agent: is_killed.then(|| json(&folder, AGENT)).flatten(),
            lineage: is_killed.then(|| json(&folder, LINEAGE)).flatten(),
            record,
            undone_by: None,
            folder,
        }
    }

    /// Reads the run whose folder has this path, relative to the root.
    pub fn at(project: &Project, folder: &str) -> Self {
        Self::read(project, folder.rsplit('/').next().unwrap_or_default())
    }

    /// Reads the run whose folder has this name, and whether a later undo took its changes back.
    pub fn find(project: &Project, name: &str) -> Self {
        let mut runs = latest(project).into_iter().flatten();
        let found = runs.find(|run| run.name == name);
        found.unwrap_or_else(|| Self::read(project, name))
    }

    /// Returns the start time from the record.
    pub fn started(&self) -> Option<DateTime<FixedOffset>> {
        self.record.as_ref().map(|record| record.started)
    }

    /// Returns the time at which the run began; without a record, its latest modification time.
    pub fn began(&self) -> DateTime<Utc> {
        let last_modified = || self.last_modified();
        self.started().map_or_else(last_modified, |at| at.to_utc())
    }

    /// Returns the sort key: the second in which the run began, then its latest modification time, which orders runs of
    /// the same second.
    fn time(&self) -> (i64, DateTime<Utc>) {
        (self.began().timestamp(), self.last_modified())
    }

    fn last_modified(&self) -> DateTime<Utc> {
        let traces = [RESULT, STEPS, "."].map(|name| self.folder.join(name));
        let mut found = traces
            .iter()
            .filter_map(|path| path.symlink_metadata().ok());
        let last_modified = found.find_map(|found| Some(found.modified().ok()?.into()));
        last_modified.unwrap_or_default()
    }

    /// Returns the workflow, from the record or the folder's name.
    pub fn workflow(&self) -> &str {
        let record = self.record.as_ref();
        record.map_or_else(
            || run_files::workflow(&self.name),
            |record| &record.workflow,
        )
    }

    /// Returns the folder's path, relative to the root.
    pub fn relative(&self) -> String {
        relative(&self.name)
    }

    /// Describes the run as one that has changed nothing; what an agent's commands change is not recorded.
    pub fn changed_nothing(&self) -> String {
        let record = self.record.as_ref();
        let is_agents = record.is_some_and(|record| record.agent.is_some());
        let by = if is_agents { " by its file tools" } else { "" };
        format!("{} changed nothing{by}", self.relative())
    }

    /// Returns the text of a file in the folder, with invalid UTF-8 replaced.
    pub fn text(&self, step: &StepId, artifact: Artifact) -> Option<String> {
        let bytes = read_limited(&self.folder.join(run_files::name(step, artifact)))?;
        Some(lossy(bytes))
    }

    /// Returns the request: of an agent's run, its own; otherwise, the beginning of the query.
    pub fn request(&self) -> Option<String> {
        if let Some(agent) = self.agent() {
            return agent.request.clone();
        }
        let first = match self.workflow() {
            "consistency" => StepId::REPORT,
            _ => StepId::INITIAL,
        };
        let prompt = run_files::name(&first, Artifact::Query);
        let beginning = beginning(&self.folder.join(prompt), Links::Refused, BEGINNING);
        query_of(&lossy(beginning.ok()?)).map(str::to_owned)
    }

    /// Extracts the inputs that the run sent with its `first` query from that query's file, by the recorded sizes of its
    /// parts.
    pub fn sent(&self, first: &Step) -> Option<Inputs> {
        let text = self.text(&first.id(), Artifact::Query)?;
        let mut rest = text.as_str();
        let mut parts = BTreeMap::new();
        for part in &first.prompt {
            let (content, behind) = rest.split_at_checked(usize::try_from(part.bytes).ok()?)?;
            parts.insert(part.part.as_ref(), content);
            rest = behind;
        }
        let part = |name: &str| {
            let content = parts.get(name)?.strip_prefix(&format!("[{name}]\n"))?;
            Some(content.to_owned())
        };
        let (query, rollup) = (part("query")?, part("codebase")?);
        rest.is_empty().then_some(Inputs {
            query,
            rollup,
            is_part: false,
        })
    }

    /// Returns the record of the agent's work, from the run's record or, if it was killed, from a separate file.
    pub fn agent(&self) -> Option<&AgentRecord> {
        let record = self.record.as_ref();
        record.map_or(self.agent.as_ref(), |record| record.agent.as_ref())
    }

    /// Returns the branches that agents worked on, from the run's record or, if it was killed, from a separate file.
    pub fn lineage(&self) -> Option<Lineage> {
        let record = self.record.as_ref();
        record.map_or_else(|| self.lineage.clone(), RunRecord::lineage)
    }

    /// Returns the state of a run without a record: running if a process holds its folder; unfinished if one holds the
    /// project, which may be this run; else killed.
    pub fn state(&self, project: &Project) -> UnrecordedState {
        let folder = files::open_directory(&self.folder);
        if folder.is_ok_and(|folder| file_lock::is_locked(&folder).unwrap_or(false)) {
            UnrecordedState::Running
        } else if holds_project(&self.name) && project.is_held() {
            UnrecordedState::Unfinished
        } else {
            UnrecordedState::Killed
        }
    }

    /// Returns the steps in order, with their texts and the changes of each reply. They are read again on each call
    /// because the texts may be large.
    pub fn steps(&self, project: &Project) -> Vec<PastStep> {
        let mut files = self.files_before(project);
        let directs_agents = self.agent().is_some_and(AgentRecord::directs_agents);
        let steps = self.recorded_steps();
        let are_several = has_attempts(&steps);
        let last = self.record.is_none().then_some(steps.len());
        let read = (1..).zip(steps).map(|(nth, step)| {
            let reply = self.reply(&step.id());
            // An agent's changes are in the inputs of its tools.
            let changes = match &reply {
                Some(Ok(text)) if !step.is_agents() && step.edits.is_some() => {
                    apply(&mut files, text, step.reply_format)
                }
                _ => Vec::new(),
            };
            let tells = step.actions.iter().any(|action| action.result.is_some());
            let is_built = step.build.is_some();
            let has_file = (is_built || !tells) && step.rejected.is_none();
            let file = || self.text(&step.id(), Artifact::Build);
            let mut log = has_file.then(file).flatten();
            let tools = log.take_if(|_| step.is_agents() && !is_built);
            PastStep {
                is_attempt: are_several && is_attempt(&step),
                step,
                reply,
                log,
                tools,
                changes,
                directs_agents,
                is_cut_short: last == Some(nth),
            }
        });
        read.collect()
    }

    /// Returns the files that the run has changed, in their state before it, if that is known.
    fn files_before(&self, project: &Project) -> FileStates {
        let folder = self.relative();
        let changes = undo_log::read(project.home(), &folder);
        let files = changes.ok().flatten().unwrap_or_default().files;
        let before = files.into_iter().filter_map(|(path, change)| {
            let state = match &change.before {
                Some(before) => Some(saved_state(project, &folder, before)?),
                None => None,
            };
            Some((path, state))
        });
        before.collect()
    }

    fn reply(&self, step: &StepId) -> Option<Result<String, String>> {
        let text = self.text(step, Artifact::ResponseText)?;
        Some(match text.strip_prefix(run_files::ERROR_LINE) {
            Some(error) => Err(error.to_owned()),
            None => Ok(text),
        })
    }

    /// Returns the steps, from the best available record.
    pub fn recorded_steps(&self) -> Vec<Step> {
        let mut steps = logged::steps(&self.folder);
        // Older runs do not log their steps.
        if steps.is_empty() {
            let recorded = self.record.as_ref().map(|record| record.steps.clone());
            steps = recorded.unwrap_or_else(|| self.named_steps());
            for step in &mut steps {
                self.add_verdict(step);
            }
        }
        if self.record.is_none() {
            let are_several = has_attempts(&steps);
            // It is unknown whether a killed run applied its last reply; it is assumed to have. Attempts are applied
            // when all are over.
            let is_unknown =
                |step: &&mut Step| step.rejected.is_none() && !(are_several && is_attempt(step));
            for step in steps.iter_mut().filter(is_unknown) {
                step.edits.get_or_insert_default();
            }
        }
        steps
    }

    /// Returns the run's record; for a run without one, a record with only its model, agent, steps and cost.
    pub fn known_record(&self) -> Cow<'_, RunRecord> {
        if let Some(record) = &self.record {
            return Cow::Borrowed(record);
        }
        let steps = self.recorded_steps();
        let mut known = RunRecord {
            model: steps.first().and_then(|step| step.model.clone()),
            agent: self.agent.clone(),
            steps,
            ..RunRecord::default()
        };
        known.cost = known.total_cost();
        Cow::Owned(known)
    }

    /// Returns the parallel attempts and the choice of one; for a killed run, as its steps and undo log show them.
    pub fn choice(&self) -> Option<ChoiceRecord> {
        if let Some(record) = &self.record {
            return record.choice.clone();
        }
        let steps = self.recorded_steps();
        let attempts = steps.iter().filter(|step| is_attempt(step));
        let taken = attempts.clone().find(|step| step.edits.is_some());
        // A query that was repeated is the same attempt.
        let last: BTreeMap<_, _> = attempts.map(|step| (step.number, step.into())).collect();
        let home = self.folder.ancestors().nth(2)?;
        let changes = undo_log::read(home, &self.relative()).ok().flatten();
        let has_changed = changes.is_some_and(|changes| !changes.are_none());
        let unknown = "one was being applied when the run was killed";
        let why = (taken.is_none() && has_changed).then(|| unknown.to_owned());
        has_attempts(&steps).then(|| ChoiceRecord {
            attempts: last.into_values().collect(),
            taken: taken.map(|step| step.id().to_string()),
            why,
        })
    }

    /// Derives steps from the queries in the folder, when nothing else is recorded.
    fn named_steps(&self) -> Vec<Step> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| run_files::asked(entry.file_name().to_str()?));
        let mut steps: Vec<_> = named.map(Step::from).collect();
        steps.sort_by_key(|step| (step.number, step.reask));
        steps
    }

    /// Adds the verdict, read from the reply, to the last step of an audit if it does not record one.
    fn add_verdict(&self, step: &mut Step) {
        let ends = step.purpose == Purpose::AUDIT && step.actions.is_empty();
        if ends && step.passed.is_none() {
            let reply = self.reply(&step.id()).and_then(Result::ok);
            let verdict = reply.and_then(|reply| verdict::read(&reply).ok());
            step.passed = verdict.map(|verdict| verdict.passed);
        }
    }
}

/// Returns whether these are the steps of a run that made several attempts in parallel.
fn has_attempts(steps: &[Step]) -> bool {
    steps.iter().any(|step| step.purpose == Purpose::ATTEMPT)
}

/// Returns whether the step is an attempt, if its run has made several.
fn is_attempt(step: &Step) -> bool {
    [Purpose::INITIAL, Purpose::ATTEMPT].contains(&step.purpose)
}

/// Returns the `[query]` section of a prompt in the format of the run log. All versions log the query there, and most
/// of them log it nowhere else.
pub fn query_of(prompt: &str) -> Option<&str> {
    let (_, behind) = prompt.split_once("\n[query]\n")?;
    // The query of a report may be empty.
    let query = behind.split("\n[codebase]\n").next()?;
    (!query.starts_with("[codebase]\n")).then_some(query)
}

/// Files by path; `None` if the file does not exist.
type FileStates = BTreeMap<String, Option<FileState>>;

/// Applies a reply to the files and returns its changes, without those of files whose earlier state is unknown.
fn apply(files: &mut FileStates, reply: &str, format: ReplyFormat) -> Vec<FileChange> {
    let sent = |path: &str| {
        let file = files.get(path).and_then(Option::as_ref);
        Sent::of(file.map(|file| &*file.content))
    };
    let parsed = edit::read(reply, format, &sent);
    if !parsed.faults.is_empty() {
        return Vec::new();
    }
    let edits = parsed.edits.into_iter().filter_map(|edit| {
        let before = files.get(&edit.path).cloned()?;
        let after = edit.kind.content().map(|text| text.as_bytes().to_vec());
        let change = file_change(&edit.path, before, after)?;
        files.insert(edit.path, change.after.clone());
        Some(change)
    });
    let mut changes: Vec<_> = edits.collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// Returns the change from a file's state to new content, if they differ. The mode stays.
pub fn file_change(
    path: &str,
    before: Option<FileState>,
    after: Option<Vec<u8>>,
) -> Option<FileChange> {
    let mode = before.as_ref().map_or(NEW_MODE, |before| before.mode);
    let after = after.map(|content| FileState { content, mode });
    (before != after).then_some(FileChange {
        path: path.to_owned(),
        before,
        after,
    })
}

/// Returns a file as it was before the run in `folder`; `None` if its saved copy is gone.
pub(super) fn saved_state(project: &Project, folder: &str, before: &Before) -> Option<FileState> {
    let content = read_limited(&project.home().join(saved_path(folder, before)))?;
    let mode = before.mode;
    (Digest::of(&content) == before.digest).then_some(FileState { content, mode })
}

/// Returns all runs by start time, the oldest first. The local time in folder names is no substitute: it is subject to
/// clock changes.
///
/// # Errors
/// Fails if `logs` cannot be read.
pub fn runs(project: &Project) -> Result<Vec<PastRun>, PathError> {
    let names = names(project)?.into_iter();
    let mut runs: Vec<_> = names.map(|name| PastRun::read(project, &name)).collect();
    runs.sort_by_cached_key(PastRun::time);
    let mut undone = Undone::default();
    runs.iter_mut().rev().for_each(|run| undone.mark(run));
    Ok(runs)
}

/// The folders of runs that were undone, each with that of the undo.
#[derive(Debug, Default)]
struct Undone(BTreeMap<String, String>);

impl Undone {
    /// Marks the run if a later one has undone it. Runs are passed in order, the latest first.
    fn mark(&mut self, run: &mut PastRun) {
        run.undone_by = self.0.remove(&run.relative());
        let undid = run.record.as_ref().and_then(|record| record.undid.clone());
        // An undo that was itself undone has no effect.
        if let Some(undid) = undid.filter(|_| run.undone_by.is_none()) {
            self.0.entry(undid).or_insert_with(|| run.relative());
        }
    }
}

/// Number of further runs considered when looking for the latest, in case of clock changes.
const LOOKED_PAST: usize = 64;

/// Returns all runs, the latest first; each is read only when requested.
///
/// # Errors
/// Fails if `logs` cannot be read.
pub fn latest(project: &Project) -> Result<impl Iterator<Item = PastRun>, PathError> {
    let mut names = names(project)?.into_iter().rev();
    let mut ahead: Vec<((i64, DateTime<Utc>), PastRun)> = Vec::new();
    let mut undone = Undone::default();
    Ok(std::iter::from_fn(move || {
        let missing = (LOOKED_PAST + 1).saturating_sub(ahead.len());
        for name in names.by_ref().take(missing) {
            let run = PastRun::read(project, &name);
            ahead.push((run.time(), run));
        }
        // Stable sort: among runs with equal times, the last name comes first.
        ahead.sort_by(|(one, _), (other, _)| other.cmp(one));
        let mut run = (!ahead.is_empty()).then(|| ahead.remove(0).1)?;
        undone.mark(&mut run);
        Some(run)
    }))
}

/// Returns the records of the runs that began on this day and have ended, the first one first.
pub fn records_of(project: &Project, day: NaiveDate) -> impl Iterator<Item = RunRecord> {
    let names = names(project).unwrap_or_default().into_iter();
    let of_day = names.filter(move |name| name.starts_with(&day.to_string()));
    of_day.filter_map(|name| PastRun::read(project, &name).record)
}

/// Returns the folder name of the last run if it did not complete. The caller must hold the project's lock, so that no
/// run is in progress.
pub fn cut_short(project: &Project) -> Option<String> {
    let mut names = names(project).ok()?.into_iter();
    let last = names.rfind(|name| holds_project(name))?;
    let result = project.logs().join(&last).join(RESULT);
    result.symlink_metadata().is_err().then_some(last)
}

/// Reads a file; `None` if it is a link or too large.
pub(super) fn read_limited(path: &Path) -> Option<Vec<u8>> {
    read(path, Links::Refused, MAX_TEXT).ok()
}
