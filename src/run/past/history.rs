//! The runs that were: reads their folders below `logs`, and what they changed.
//!
//! Reads `logs`, the files that are kept beside the keys, and the project's files where they are what a
//! run has left; changes nothing. What a run did is told by its steps: those of `steps.jsonl`, or, where that
//! is gone, those of `result.json`, or, where that is gone too, those that the queries in the folder are named
//! after. What it changed is told from its own record too: the files that were replaced, and the replies' edits.
//! So it can be told without git, and long after. Folders are what anybody may have made of them: what is damaged
//! or missing there is told as missing.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, Utc};
use serde::de::DeserializeOwned;

use crate::edit::changes::{Before, ChangeLog, kept_path};
use crate::edit::{self, Digest, EditKind, undo_log};
use crate::model::{Purpose, StepId};
use crate::project::{LOGS, Project};
use crate::record::orchestration::Lineage;
use crate::record::result::{AgentRecord, RunRecord};
use crate::record::run_files::{self, AGENT, Artifact, LINEAGE, RESULT, STEPS, holds_project};
use crate::record::step::Step;
use crate::record::verdict;
use crate::sys::diff::{FileChange, FileState, NEW_MODE};
use crate::sys::excerpt::lossy;
use crate::sys::files::{IfThere as _, Links, MIB, PathError, beginning, check_size, open, read};

/// A file of a run's folder that is larger than this is not read as a text, in bytes.
const MAX_TEXT: u64 = 64 * MIB;
/// The same for a run's record.
const MAX_RECORD: u64 = 8 * MIB;
/// The same for the steps, which are read line by line.
const MAX_STEPS: u64 = 512 * MIB;
/// A line of them that is longer is read as several, of which none is a step.
const MAX_STEP: u64 = 16 * MIB;

/// The length of a prompt's beginning, in bytes, that is read for the request: the query stands before the code base.
const BEGINNING: u64 = 64 << 10;

/// A run, by its folder.
#[derive(Debug, Clone)]
pub struct PastRun {
    /// The folder's name below `logs`.
    pub name: String,
    /// Its record; `None`: the run goes on, was killed, or somebody has damaged it.
    pub record: Option<RunRecord>,
    /// Of a run without a record: what its agent was about, if it has one.
    agent: Option<AgentRecord>,
    /// Of a run without a record: its branches, if it is an orchestration.
    lineage: Option<Lineage>,
    folder: PathBuf,
}

/// A step of a run, with the texts that its files hold.
#[derive(Debug, Clone)]
pub struct PastStep {
    /// The record of the step.
    pub step: Step,
    /// The reply, or the error in its place.
    pub reply: Option<Result<String, String>>,
    /// The log of the build that followed.
    pub log: Option<String>,
    /// The inputs and results of an agent's tools, as their file has them: where the step itself does not tell, in runs
    /// of before.
    pub tools: Option<String>,
    /// The reply's changes, compared to what the steps before it had left.
    pub changes: Vec<FileChange>,
    /// True if the model leads an orchestration: its words are for the user, or a report.
    pub is_orchestrators: bool,
}

/// An agent's reply that was followed by nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleReply {
    /// Words that have not ended the work: a question, or a report that did not count.
    Words,
    /// A call that did not come to its end, since the run ended first.
    Call,
    /// It was not understood, or the run ended before.
    NotUnderstood,
}

impl PastStep {
    /// Returns the reason an agent's reply was followed by nothing, if it was.
    pub fn idle(&self) -> Option<IdleReply> {
        let step = &self.step;
        let acts =
            step.is_agents() && ![Purpose::AUDIT, Purpose::COMPRESSION].contains(&step.purpose);
        let has_end = step.passed.is_some() || step.answer.is_some();
        let is_idle = step.actions.is_empty() && !has_end && self.tools.is_none();
        let reply = self.reply.as_ref()?.as_ref().ok()?;
        (acts && is_idle).then(|| match step.reply.iter().any(|part| part.part == "call") {
            true => IdleReply::Call,
            false if self.is_orchestrators && !reply.trim().is_empty() => IdleReply::Words,
            false => IdleReply::NotUnderstood,
        })
    }

    /// Returns how the build ended, by the first line of its log, and its output.
    pub fn build_log(&self) -> Option<(&str, &str)> {
        let log = self.log.as_ref()?;
        let (status, output) = log.split_once('\n').unwrap_or((log, ""));
        Some((status.trim_end(), output))
    }
}

/// The changes made by a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunChanges {
    /// File by file, sorted by path.
    pub files: Vec<FileChange>,
    /// Doubts about the changes, in words.
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
            folder,
        }
    }

    /// Returns the time when it began, by its record.
    pub fn started(&self) -> Option<DateTime<FixedOffset>> {
        self.record.as_ref().map(|record| record.started)
    }

    /// The second in which it began, and when it was heard of last: for runs of one second, and for those without a
    /// record.
    fn time(&self) -> (i64, DateTime<Utc>) {
        let traces = [RESULT, STEPS, "."].map(|name| self.folder.join(name));
        let mut found = traces
            .iter()
            .filter_map(|path| path.symlink_metadata().ok());
        let heard_of = found.find_map(|found| Some(found.modified().ok()?.into()));
        let heard_of = heard_of.unwrap_or_default();
        let began = self.started().map_or(heard_of, |started| started.to_utc());
        (began.timestamp(), heard_of)
    }

    /// The workflow, by its record or its folder's name.
    pub fn workflow(&self) -> &str {
        let Some(record) = &self.record else {
            return match run_files::workflow(&self.name) {
                "committing-code" => "commit",
                "consistency-report" => "consistency",
                name if name.bytes().all(|byte| byte.is_ascii_lowercase()) => name,
                _ => "?",
            };
        };
        &record.workflow
    }

    /// The folder's path, relative to the root.
    pub fn relative(&self) -> String {
        relative(&self.name)
    }

    /// The text of a file in the folder, what is not UTF-8 replaced.
    pub fn text(&self, step: &StepId, artifact: Artifact) -> Option<String> {
        let bytes = read_limited(&self.folder.join(run_files::name(step, artifact)))?;
        Some(lossy(bytes))
    }

    /// Returns the request: that of an agent's run, or the beginning of a change's query.
    pub fn request(&self) -> Option<String> {
        if let Some(agent) = self.agent() {
            return agent.request.clone();
        }
        let prompt = run_files::name(&StepId::INITIAL, Artifact::Query);
        let beginning = beginning(&self.folder.join(prompt), Links::Refused, BEGINNING);
        query_of(&lossy(beginning.ok()?)).map(str::to_owned)
    }

    /// Returns the record of the agent's work: by the run's record, or, where it was killed, by a file of its own.
    pub fn agent(&self) -> Option<&AgentRecord> {
        match &self.record {
            Some(record) => record.agent.as_ref(),
            None => self.agent.as_ref(),
        }
    }

    /// The branches of an orchestration, as far as it has come: by its report, or, where it was killed, by a file of
    /// its own.
    pub fn lineage(&self) -> Option<Lineage> {
        let Some(record) = &self.record else {
            return self.lineage.clone();
        };
        let report = record.orchestration.as_ref()?;
        Some(Lineage {
            start_branch_id: report.start_branch_id.clone(),
            latest_branch_id: report.latest_branch_id.clone(),
            waiting_for: None,
            starting: None,
            iterations: report.iterations,
            branches: report.branches.clone(),
        })
    }

    /// Returns whether it does not hold the project while it goes on: nobody can tell whether it does, or was killed.
    pub fn may_go_on(&self) -> bool {
        self.record.is_none() && !holds_project(&self.name)
    }

    /// The steps in their order, with their texts and what each reply changed. Read anew each time: the texts
    /// may be large.
    pub fn steps(&self, project: &Project) -> Vec<PastStep> {
        let mut files = self.files_before(project);
        let agent = self.agent();
        let is_orchestrators = agent.is_some_and(|agent| agent.orchestration.is_some());
        let read = self.recorded_steps().into_iter().map(|step| {
            let reply = self.reply(&step.id());
            // What an agent writes stands in its tools' inputs.
            let changes = match &reply {
                Some(Ok(text)) if !step.is_agents() && step.edits.is_some() => {
                    apply(&mut files, text)
                }
                _ => Vec::new(),
            };
            let tells = step.actions.iter().any(|action| action.result.is_some());
            let has_file = !tells && step.rejected.is_none();
            let file = has_file
                .then(|| self.text(&step.id(), Artifact::Build))
                .flatten();
            let (tools, log) = if step.is_agents() {
                (file, None)
            } else {
                (None, file)
            };
            PastStep {
                step,
                reply,
                log,
                tools,
                changes,
                is_orchestrators,
            }
        });
        read.collect()
    }

    /// Returns the changes of the run as a whole, by path.
    ///
    /// # Errors
    /// When its record of that cannot be read.
    pub fn changes(&self, project: &Project) -> Result<RunChanges, undo_log::UndoLogError> {
        let (mut files, mut doubts) = (Vec::new(), Vec::new());
        let Some(log) = undo_log::read(project.root(), &self.relative())? else {
            return Ok(RunChanges::default());
        };
        let steps = self.steps(project);
        let replied = steps.iter().flat_map(|step| &step.changes);
        let replied: BTreeMap<_, _> = replied
            .map(|change| (&change.path, change.after()))
            .collect();
        let others = LazyCell::new(|| self.others(project));
        for (path, change) in &log.files {
            let before = change.before.as_ref().map(|before| {
                kept(project, &self.name, before).unwrap_or_else(|| {
                    doubts.push(format!(
                        "what `{}` was before is not in the run's record any more: it is shown as empty",
                        path.escape_debug()
                    ));
                    FileState::empty(before.mode)
                })
            });
            let mode = before.as_ref().map_or(NEW_MODE, |before| before.mode);
            let after = change.after.last().copied().flatten().map(|digest| {
                let is_it = |content: &Vec<u8>| Digest::of(content) == digest;
                let reply = replied.get(path).copied().unwrap_or_default().to_vec();
                // The build may have changed it: perhaps it is still there, or another run has kept it.
                let on_disk = || read_limited(&project.root().join(path)).filter(is_it);
                let elsewhere = || {
                    others.iter().find_map(|(name, log)| {
                        let before = log.files.get(path)?.before.as_ref()?;
                        (before.digest == digest).then(|| kept(project, name, before))?
                    })
                };
                let known = Some(reply.clone()).filter(is_it).or_else(on_disk);
                let known = known.or_else(|| Some(elsewhere()?.content));
                let content = known.unwrap_or_else(|| {
                    doubts.push(format!(
                        "what the build made of `{}` is not recorded: it is shown as the reply left it",
                        path.escape_debug()
                    ));
                    reply
                });
                FileState { content, mode }
            });
            files.extend(file_change(path, before, after));
        }
        Ok(RunChanges { files, doubts })
    }

    /// The changes that other runs have made, by their names.
    fn others(&self, project: &Project) -> Vec<(String, ChangeLog)> {
        let names = names(project).unwrap_or_default().into_iter();
        let read = names.filter(|name| *name != self.name).filter_map(|name| {
            let changes = undo_log::read(project.root(), &relative(&name)).ok()??;
            Some((name, changes))
        });
        read.collect()
    }

    /// The files that the run has changed, as they were before.
    fn files_before(&self, project: &Project) -> FileStates {
        let changes = undo_log::read(project.root(), &self.relative())
            .ok()
            .flatten();
        let files = changes
            .into_iter()
            .flat_map(|changes: ChangeLog| changes.files);
        let before = files.map(|(path, change)| {
            let before = change
                .before
                .and_then(|before| kept(project, &self.name, &before));
            (path, before)
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

    /// The steps that there were, as far as they are recorded.
    fn recorded_steps(&self) -> Vec<Step> {
        let mut steps = self.logged_steps();
        // Runs of before have no such steps.
        if steps.is_empty() {
            let recorded = self.record.as_ref().map(|record| record.steps.clone());
            steps = recorded.unwrap_or_else(|| self.named_steps());
            for step in &mut steps {
                self.add_verdict(step);
            }
        }
        if self.record.is_none() {
            // Nobody knows whether a run that was killed had applied its last reply: it counts as applied.
            for step in steps.iter_mut().filter(|step| step.rejected.is_none()) {
                step.edits.get_or_insert_default();
            }
        }
        steps
    }

    /// The steps whose queries lie in the folder, of which nothing else is recorded.
    fn named_steps(&self) -> Vec<Step> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| run_files::asked(entry.file_name().to_str()?));
        let mut steps: Vec<_> = named
            .map(|id| Step {
                purpose: id.purpose,
                number: id.number,
                reask: id.reask,
                ..Step::default()
            })
            .collect();
        steps.sort_by_key(|step| (step.number, step.reask));
        steps
    }

    /// Adds the verdict, read from the reply, to an audit's last step that does not record one.
    fn add_verdict(&self, step: &mut Step) {
        let ends = step.purpose == Purpose::AUDIT && step.actions.is_empty();
        if ends && step.passed.is_none() {
            let reply = self.reply(&step.id()).and_then(Result::ok);
            let verdict = reply.and_then(|reply| verdict::read(&reply).ok());
            step.passed = verdict.map(|verdict| verdict.passed);
        }
    }

    /// The steps of `steps.jsonl`, each by the last whole line about it.
    fn logged_steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut places = BTreeMap::new();
        let lines = lines_of(&self.folder.join(STEPS)).into_iter().flatten();
        // The last line may be torn.
        for step in lines.filter_map(|line| serde_json::from_slice::<Step>(&line).ok()) {
            let place = *places.entry(step.id()).or_insert(steps.len());
            match steps.get_mut(place) {
                Some(known) => *known = step,
                None => steps.push(step),
            }
        }
        steps
    }
}

/// The section `[query]` of a prompt, as the run log keeps it.
pub fn query_of(prompt: &str) -> Option<&str> {
    let (_, behind) = prompt.split_once("\n[query]\n")?;
    let end = behind.find("\n[codebase]\n");
    Some(&behind[..end.unwrap_or(behind.len())])
}

/// Files by their paths; `None` where there is none.
type FileStates = BTreeMap<String, Option<FileState>>;

/// Applies a reply to the files. Returns its changes.
fn apply(files: &mut FileStates, reply: &str) -> Vec<FileChange> {
    let parsed = edit::parse(reply);
    if !parsed.faults.is_empty() {
        return Vec::new();
    }
    let edits = parsed.edits.into_iter().filter_map(|edit| {
        let before = files.get(&edit.path).cloned().flatten();
        let mode = before.as_ref().map_or(NEW_MODE, |before| before.mode);
        let after = match edit.kind {
            EditKind::Write(content) => Some(FileState {
                content: content.into_bytes(),
                mode,
            }),
            EditKind::Remove => None,
        };
        files.insert(edit.path.clone(), after.clone());
        file_change(&edit.path, before, after)
    });
    let mut changes: Vec<_> = edits.collect();
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

/// The change of a file from one state to the other, if they differ.
fn file_change(
    path: &str,
    before: Option<FileState>,
    after: Option<FileState>,
) -> Option<FileChange> {
    let path = path.to_owned();
    (before != after).then_some(FileChange {
        path,
        before,
        after,
    })
}

/// A file as it was before the run of that name; `None` where that is not kept any more.
fn kept(project: &Project, run: &str, before: &Before) -> Option<FileState> {
    let path = kept_path(&relative(run), before);
    let content = read_limited(&project.root().join(path))?;
    let mode = before.mode;
    (Digest::of(&content) == before.digest).then_some(FileState { content, mode })
}

/// All runs, the oldest first: by when they began. Folders' names have the local time, which leaps.
///
/// # Errors
/// When `logs` cannot be read.
pub fn runs(project: &Project) -> Result<Vec<PastRun>, PathError> {
    let names = names(project)?.into_iter();
    let mut runs: Vec<_> = names.map(|name| PastRun::read(project, &name)).collect();
    runs.sort_by_cached_key(PastRun::time);
    Ok(runs)
}

/// So many runs are looked past for one that began later, where the clock has leapt.
const LOOKED_PAST: usize = 64;

/// All runs, the latest first, each read when it is asked for.
///
/// # Errors
/// When `logs` cannot be read.
pub fn latest(project: &Project) -> Result<impl Iterator<Item = PastRun>, PathError> {
    let mut names = names(project)?.into_iter().rev();
    let mut ahead: Vec<((i64, DateTime<Utc>), PastRun)> = Vec::new();
    Ok(std::iter::from_fn(move || {
        let missing = (LOOKED_PAST + 1).saturating_sub(ahead.len());
        for name in names.by_ref().take(missing) {
            let run = PastRun::read(project, &name);
            ahead.push((run.time(), run));
        }
        // The sort is stable: of several at one time, the one whose name comes last stands first.
        ahead.sort_by(|(one, _), (other, _)| other.cmp(one));
        (!ahead.is_empty()).then(|| ahead.remove(0).1)
    }))
}

/// The last run, by its folder's name, where it has not come to its end; of a project that is locked, in which no run
/// goes on.
pub fn cut_short(project: &Project) -> Option<String> {
    let mut names = names(project).ok()?.into_iter();
    let last = names.rfind(|name| holds_project(name))?;
    let result = project.logs().join(&last).join(RESULT);
    result.symlink_metadata().is_err().then_some(last)
}

/// The path of the folder of this name, relative to the root.
pub fn relative(name: &str) -> String {
    format!("{LOGS}/{name}")
}

/// The names of all runs' folders, in their order.
///
/// # Errors
/// When `logs` cannot be read.
pub(crate) fn names(project: &Project) -> Result<Vec<String>, PathError> {
    let logs = project.logs();
    let unreadable = || PathError::of("read", &logs);
    let entries = fs::read_dir(&logs).if_there().map_err(unreadable())?;
    let mut names = Vec::new();
    for entry in entries.into_iter().flatten() {
        let entry = entry.map_err(unreadable())?;
        let is_run = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().into_string();
        names.extend(name.ok().filter(|name| is_run && has_stamp(name)));
    }
    names.sort_unstable();
    for of_one_second in names.chunk_by_mut(|one, next| stamp(one) == stamp(next)) {
        of_one_second.sort_by_key(|name| number(name));
    }
    Ok(names)
}

/// The form of a time stamp and the hyphen behind it.
const STAMP: &str = "0000-00-00-00-00-00-";

/// The time in the name of a run's folder: `2026-11-21-20-15-03`.
pub fn stamp(name: &str) -> &str {
    name.get(..STAMP.len() - 1).unwrap_or(name)
}

/// Returns whether the name begins with a run's stamp: `2026-11-21-20-15-03-`.
fn has_stamp(name: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| match form {
        b'-' => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    name.len() >= STAMP.len() && name.bytes().zip(STAMP.bytes()).all(fits)
}

/// The number behind the name, which runs of one second have.
fn number(name: &str) -> u32 {
    let number = name
        .rsplit_once('-')
        .and_then(|(_, number)| number.parse().ok());
    number.unwrap_or(1)
}

/// A record in a run's folder, as far as it can be read.
fn json<T: DeserializeOwned>(folder: &Path, name: &str) -> Option<T> {
    let json = read(&folder.join(name), Links::Refused, MAX_RECORD).ok()?;
    serde_json::from_slice(&json).ok()
}

/// A file's content, where it is no link and not too large.
fn read_limited(path: &Path) -> Option<Vec<u8>> {
    read(path, Links::Refused, MAX_TEXT).ok()
}

/// The lines of a file, where it is no link and not too large. One that is too long comes in pieces.
fn lines_of(path: &Path) -> Option<impl Iterator<Item = Vec<u8>> + use<>> {
    let file = open(path, Links::Refused).ok()?;
    check_size(&file, MAX_STEPS).ok()?;
    let mut file = BufReader::new(file.take(MAX_STEPS));
    Some(std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = file.by_ref().take(MAX_STEP).read_until(b'\n', &mut line);
        read.ok().filter(|amount| *amount > 0).map(|_| line)
    }))
}
