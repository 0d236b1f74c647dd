//! One task: a run of its workflow in a clone of its own.
//!
//! Writes the task's folder. Guarantees that one process at a time works on a task, that `result.json` is written last
//! and whole, and that a call that was paid for is not made again: a run that was killed, or has failed in a way that
//! may pass, is taken up.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::args::ResultArgs;
use super::child::{Child, own_key, remove_keys, write_inputs};
use super::clone::{Change, Repositories, write};
use super::error::FleetError;
use super::ledger::{Ledger, Micros};
use super::manifest::{CheckWords, Manifest, Start, Task, Workflow};
use super::pins;
use crate::commands::report::command::{ReportArgs, report};
use crate::model::Purpose;
use crate::model::price::Usd;
use crate::project::Project;
use crate::record::result::RunRecord;
use crate::record::run_files::RESULT;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::history::{self, PastRun, PastStep};
use crate::sys::error::Error;
use crate::sys::exit::REQUEUED;
use crate::sys::file_lock::{FileLock, LockProblem};
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::interrupt::Signal;

/// Maximum size of a result, in bytes.
const LARGEST: u64 = 64 * MIB;
/// Exit code of a run that an interrupt has ended, at least.
const INTERRUPTED: u8 = 128;

/// The end of a task, as its `result.json` has it.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The run's record, as a document with the task's own data.
    document: Value,
    /// The record.
    pub record: RunRecord,
}

impl Ended {
    /// Reads the result in a task's folder; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>, PathError> {
        let path = folder.join(RESULT);
        let content = files::read(&path, Links::Refused, LARGEST).if_there();
        let content = content.map_err(PathError::of("read", &path))?;
        let ended = content.map(|content| Self::parse(&content).map_err(io::Error::from));
        ended.transpose().map_err(PathError::of("read", path))
    }

    fn parse(content: &[u8]) -> serde_json::Result<Self> {
        let document: Value = serde_json::from_slice(content)?;
        let record = RunRecord::deserialize(&document)?;
        Ok(Self { document, record })
    }

    /// Returns whether another start would do nothing.
    pub fn is_final(&self) -> bool {
        is_final(&self.record)
    }

    /// Ends the command as the run has ended.
    fn told(self, id: &str) -> Result<Outcome, Failure> {
        let Some(error) = &self.record.error else {
            return Ok(Outcome {
                data: Some(self.document),
                ..Outcome::said(format!("done: the task `{id}`"))
            });
        };
        let code = self.record.exit.code;
        let mut signals = [Signal::Int, Signal::Term, Signal::Hup].into_iter();
        let signal = signals.find(|signal| INTERRUPTED + signal.number() == code);
        let exit = signal.map_or(&*self.record.exit.name, |signal| signal.name());
        let failed = TaskFailed {
            code: format!("{exit}/{}", error.code()),
            message: format!("the task `{id}`: {}", error.message),
            hint: error.hint.clone(),
        };
        Err(Failure {
            record: Some(Box::new(self.record.clone())),
            ..failed.into()
        })
    }
}

/// Returns whether a task has ended for good: another start might not succeed.
fn is_final(record: &RunRecord) -> bool {
    let code = record.exit.code;
    let error = record.error.as_ref();
    code < INTERRUPTED && !REQUEUED.contains(&code) && !error.is_some_and(|error| error.retryable)
}

/// The failure of a task's run.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct TaskFailed {
    code: String,
    message: String,
    hint: Option<String>,
}

impl Diagnostic for TaskFailed {
    fn code(&self) -> Option<Box<dyn std::fmt::Display + '_>> {
        Some(Box::new(&self.code))
    }

    fn help(&self) -> Option<Box<dyn std::fmt::Display + '_>> {
        let hint = self.hint.as_ref()?;
        Some(Box::new(hint))
    }
}

/// Does the task on a line of the manifest, unless it is done.
///
/// # Errors
/// When the task cannot begin, or fails.
pub fn task(
    context: &Context<'_>,
    (path, index): (&Path, usize),
    results: &ResultArgs,
    words: CheckWords<'_>,
) -> Result<Outcome, Failure> {
    let manifest = Manifest::read(context, path)?;
    let task = &manifest.task(index, words)?;
    if results.max_cost.is_some() && task.max_cost.is_none() {
        let id = task.id.clone();
        return Err(FleetError::NoLimit { id }.into());
    }
    let commits = pins::commits(context, &manifest, &[task])?;
    let out = context.project.root().join(&results.out);
    let folder = TaskFolder::new(out.join(&task.id));
    let ended = || Ok::<_, Error>(Ended::read(&folder.path)?.filter(Ended::is_final));
    let done = ended()?.filter(|_| !folder.clone.exists());
    if let Some(ended) = done {
        return ended.told(&task.id);
    }
    let lock = folder.lock(&task.id)?;
    // Another process may have ended it meanwhile.
    let ended = match ended()? {
        Some(ended) => ended,
        None => Attempt {
            context,
            manifest: &manifest,
            task,
            index,
            commit: commits.first().map_or("", String::as_str),
            folder: &folder,
            ledger: Ledger::of(&out),
            limit: results.max_cost,
        }
        .run()?,
    };
    if ended.is_final() {
        remove(&folder.clone)?;
    }
    lock.remove()
        .map_err(PathError::of("remove", &folder.path))?;
    ended.told(&task.id)
}

/// The folder of a task.
struct TaskFolder {
    path: PathBuf,
    clone: PathBuf,
    log: PathBuf,
    /// The task's clone as a project.
    project: Project,
}

impl TaskFolder {
    fn new(path: PathBuf) -> Self {
        let (clone, log) = (path.join("clone"), path.join("log"));
        let project = Project::new(&clone, &clone);
        Self {
            path,
            clone,
            log,
            project,
        }
    }

    fn lock(&self, id: &str) -> Result<FileLock, Error> {
        fs::create_dir_all(&self.path).map_err(PathError::of("make", &self.path))?;
        let held = || FleetError::Held { id: id.to_owned() };
        let path = self.path.join("lock");
        let lock = FileLock::take(&path).map_err(|problem| match problem {
            LockProblem::Held { .. } => held().into(),
            LockProblem::Unlockable(error) => Error::from(PathError::of("lock", &path)(error)),
        })?;
        // The run of a process that was killed may go on.
        if self.clone.is_dir() && self.project.is_held() {
            return Err(held().into());
        }
        Ok(lock)
    }
}

/// A start of a task.
struct Attempt<'a> {
    context: &'a Context<'a>,
    manifest: &'a Manifest,
    task: &'a Task,
    index: usize,
    commit: &'a str,
    folder: &'a TaskFolder,
    ledger: Ledger,
    /// Maximum cost of all tasks.
    limit: Option<Usd>,
}

impl Attempt<'_> {
    fn run(&self) -> Result<Ended, Error> {
        let (context, task, folder) = (self.context, self.task, self.folder);
        own_key(context, task)?;
        let repositories = Repositories::find(context, self.manifest.directory())?;
        self.prepare(&repositories)?;
        let last = history::latest(&folder.project)?.next();
        let ended = last.as_ref().and_then(|last| last.record.as_ref());
        let document = match ended.filter(|record| is_final(record)) {
            // It was killed before it could write its result.
            Some(record) => crate::ui::json::record(record),
            None => self.ask(last.as_ref())?,
        };
        let ended = serde_json::to_vec(&document).and_then(|json| Ended::parse(&json));
        let ended =
            ended.map_err(|error| PathError::of("read", &folder.path)(io::Error::from(error)))?;
        let spent = spent(&folder.project)?;
        let exit = &ended.record.exit;
        if exit.code >= INTERRUPTED {
            self.ledger.settle(&task.id, spent, None)?;
            context.interrupt.check()?;
            return Ok(ended);
        }
        self.collect(&repositories, ended, spent)
    }

    /// Runs the workflow, and returns its record.
    fn ask(&self, last: Option<&PastRun>) -> Result<Value, Error> {
        let (context, task, folder) = (self.context, self.task, self.folder);
        let start = last.map_or(Start::Anew, |last| self.start(last));
        let spent = spent(&folder.project)?;
        let reserved = self
            .ledger
            .reserve(&task.id, task.max_cost, spent, self.limit)?;
        let limit = task.max_cost.map(|_| reserved.into());
        let words = task.words(&folder.clone, &start, limit);
        let (output, errors) = (
            folder.path.join(".output.json"),
            folder.clone.join("logs/stderr.txt"),
        );
        let query = self.manifest.query(task).unwrap_or_default();
        write_inputs(context, task, &query, &folder.clone)?;
        fs::create_dir_all(folder.project.logs())
            .map_err(PathError::of("make", folder.project.logs()))?;
        let ran =
            Child::new(context, &words)?.run_task(context, task, &folder.clone, (&output, &errors));
        remove_keys(context, &folder.clone);
        ran?;
        let printed = files::read(&output, Links::Refused, LARGEST);
        let document = printed
            .ok()
            .and_then(|json| serde_json::from_slice(&json).ok());
        let killed = || FleetError::Killed {
            id: task.id.clone(),
        };
        let _ = fs::remove_file(&output);
        Ok(document.ok_or_else(killed)?)
    }

    /// Makes the clone, unless an earlier start has.
    fn prepare(&self, repositories: &Repositories) -> Result<(), Error> {
        let (task, folder) = (self.task, self.folder);
        if !folder.clone.is_dir() {
            let staged = folder.path.join("clone.new");
            remove(&staged)?;
            repositories.clone(&task.repository, self.commit, &self.branch(), &staged)?;
            let build = self.manifest.build(task).unwrap_or_default();
            build.map_or(Ok(()), |build| Repositories::lay_build(&staged, &build))?;
            fs::rename(&staged, &folder.clone).map_err(PathError::of("make", &folder.clone))?;
        }
        // An earlier start has ended, but may be tried again.
        if folder.log.is_dir() && !folder.project.logs().exists() {
            rename(&folder.log, &folder.project.logs())?;
        }
        Ok(())
    }

    fn branch(&self) -> String {
        format!("code-commit/{}", self.task.id)
    }

    /// Returns how to go on after a run that has not ended for good: with its replies, if it has any.
    fn start(&self, last: &PastRun) -> Start {
        let steps = last.steps(&self.folder.project);
        let has_reply =
            |past: &PastStep| past.step.finish.is_some() && matches!(past.reply, Some(Ok(_)));
        let goes_on = match self.task.workflow {
            Workflow::Commit => steps.first().is_some_and(has_reply),
            // A replay needs all of them.
            Workflow::Consistency => steps
                .iter()
                .any(|past| past.step.purpose == Purpose::REPORT && has_reply(past)),
            Workflow::Dev | Workflow::Plan => steps.iter().any(has_reply),
        };
        if goes_on {
            Start::From(last.name.clone())
        } else {
            Start::Anew
        }
    }

    /// Leaves the task's results in its folder, `result.json` last.
    fn collect(
        &self,
        repositories: &Repositories,
        ended: Ended,
        spent: (Micros, bool),
    ) -> Result<Ended, Error> {
        let (task, folder) = (self.task, self.folder);
        let exit = ended.record.exit.clone();
        let message = format!("{}: {}", task.id, self.title());
        let bundle = folder.path.join("branch.bundle");
        remove(&bundle)?;
        let place = (self.commit, &*self.branch());
        let patch = match repositories.change(&folder.clone, place, &message, &bundle)? {
            Change::Made(patch) => patch,
            Change::None => Vec::new(),
            Change::Unsafe => {
                let problem = "a build has changed git's settings: there is no patch";
                self.context.warn(format!("`{}`: {problem}", task.id));
                Vec::new()
            }
        };
        write(&folder.path.join("change.patch"), &patch)?;
        self.report()?;
        if folder.project.logs().is_dir() {
            remove(&folder.log)?;
            rename(&folder.project.logs(), &folder.log)?;
        }
        let account = ended
            .is_final()
            .then(|| (exit.code, exit.name.into_owned()));
        self.ledger.settle(&task.id, spent, account)?;
        let mut document = ended.document;
        document["task"] = json!({
            "id": task.id,
            "index": self.index,
            "repository": repositories.place(&task.repository),
            "title": self.title(),
            "commit": self.commit,
            "labels": task.labels,
            "cost": Usd::from(spent.0),
        });
        if let Some(log) = ended.record.log.as_deref() {
            document["log"] = log.replacen("logs/", "log/", 1).into();
        }
        let result = format!("{document:#}\n");
        write(&folder.path.join(RESULT), result.as_bytes())?;
        Ok(Ended {
            document,
            record: ended.record,
        })
    }

    /// The first line of the query.
    fn title(&self) -> String {
        let query = self.manifest.query(self.task).unwrap_or_default();
        let line = query.lines().find(|line| !line.trim().is_empty());
        line.map_or("a report", str::trim)
            .chars()
            .take(72)
            .collect()
    }

    /// Writes the page about the last run, if there is one.
    fn report(&self) -> Result<(), Error> {
        let folder = self.folder;
        let Some(last) = history::latest(&folder.project)?.next() else {
            return Ok(());
        };
        let context = Context {
            project: Project::new(&folder.clone, &folder.clone),
            ..self.context.clone()
        };
        let options = ReportArgs {
            run: Some(last.name.clone().into()),
            all: false,
            page: None,
            interactive: false,
            open: false,
        };
        report(&context, &options).map_err(|failure| failure.error)?;
        let page = folder.clone.join(last.relative()).join("report.html");
        rename(&page, &folder.path.join("report.html"))
    }
}

/// Returns the cost of all runs in a task's clone, and whether that is all: a call that was cut off may have cost more.
fn spent(project: &Project) -> Result<(Micros, bool), PathError> {
    let (mut spent, mut is_known) = (Micros::ZERO, true);
    for run in history::latest(project)? {
        for past in run.steps(project) {
            spent = spent.plus(past.step.cost.unwrap_or_default().into());
            let is_open = run.record.is_none() && past.reply.is_none();
            let is_unpriced = past.step.finish.is_some() && past.step.cost.is_none();
            is_known &= !is_open && !is_unpriced;
        }
    }
    Ok((spent, is_known))
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    Ok(fs::rename(from, to).map_err(PathError::of("write", to))?)
}

/// Removes a file or a directory, if it is there.
fn remove(path: &Path) -> Result<(), Error> {
    let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    let removed = if is_directory {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed
        .if_there()
        .map(drop)
        .map_err(PathError::of("remove", path))?;
    Ok(())
}
