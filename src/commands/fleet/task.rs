//! One task: a run of its workflow in a separate clone.
//!
//! Writes the task's folder. Guarantees that only one process at a time works on a task, that `result.json` is written
//! last and complete, and that no call is paid for twice: a run that was killed, or that failed in a transient way, is
//! resumed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use miette::MietteDiagnostic;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::args::ResultArgs;
use super::child::{Child, own_key, remove_keys, write_inputs};
use super::clone::{Origin, Repositories, place};
use super::error::FleetError;
use super::ledger::Ledger;
use super::manifest::{CheckWords, Manifest, Start, Task};
use super::pins;
use crate::commands::cli::values::PROGRAM;
use crate::commands::report::command::{ReportArgs, report};
use crate::model::price::Usd;
use crate::project::Project;
use crate::record::result::{ExitRecord, RunRecord, StatRecord};
use crate::record::run_files::RESULT;
use crate::record::step::Step;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::history::{self, PastRun};
use crate::run::past::sarif;
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::exit::{Exit, REQUEUED};
use crate::sys::file_lock::{self, FileLock, LockProblem};
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::reason;
use crate::sys::text::{cut, first_line};

/// Maximum size of a result, in bytes.
const LARGEST: u64 = 64 * MIB;
/// Maximum length of a task's title, in characters.
const LONGEST_TITLE: usize = 72;
/// Name of the file with a run's output, in a task's folder.
const OUTPUT: &str = ".output.json";
/// Name of the copy of the clone's repository from before the first build, in a task's folder.
const APART: &str = "change.new";
/// Name of the lock in a task's folder.
pub const LOCK: &str = "lock";
/// Lowest exit code that means that a run was interrupted.
const INTERRUPTED: u8 = 128;
/// Workflow in the record of a task that has not begun.
pub const NOT_BEGUN: &str = "fleet";

/// The part of a result that describes the task.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskPart {
    id: String,
    /// The task's line in the manifest, counted from 0.
    pub index: usize,
    /// The path or URL of its repository.
    pub repository: String,
    /// The first line of its query.
    pub title: String,
    commit: Option<String>,
    /// The task's labels.
    pub labels: BTreeMap<String, String>,
    /// The cost of all its runs.
    pub cost: Usd,
    max_cost: Option<Usd>,
    /// The size of its whole change; null in older results, and if it is not known.
    pub stat: Option<StatRecord>,
}

/// The end of a task, as in its `result.json`: the record of its last run, and the part about the task.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The record of the last run.
    pub record: RunRecord,
    /// The part about the task.
    pub task: TaskPart,
}

impl Ended {
    /// Reads the result in a task's folder; `None` if there is none.
    ///
    /// # Errors
    /// Fails if the result cannot be read.
    pub fn read(folder: &Path) -> Result<Option<Self>, PathError> {
        let path = folder.join(RESULT);
        let content = files::read(&path, Links::Refused, LARGEST)
            .if_there()
            .map_err(PathError::of("read", &path))?;
        let ended = content.map(|content| Self::parse(&content).map_err(io::Error::from));
        ended.transpose().map_err(PathError::of("read", path))
    }

    fn parse(content: &[u8]) -> serde_json::Result<Self> {
        #[derive(Deserialize)]
        struct Part {
            task: TaskPart,
        }
        let Part { task } = serde_json::from_slice(content)?;
        let record = serde_json::from_slice(content)?;
        Ok(Self { record, task })
    }

    /// Returns the content of `result.json`.
    fn document(&self) -> Value {
        let mut document = crate::ui::json::record(&self.record);
        document["task"] = json!(self.task);
        if let Some(log) = self.record.log.as_deref() {
            document["log"] = log.replacen("logs/", "log/", 1).into();
        }
        document
    }

    /// Returns `true` if another start would do nothing. A larger limit reopens a task that ended because its budget
    /// was used up.
    pub fn is_final(&self, limit: Option<Usd>) -> bool {
        let earlier = self.task.max_cost;
        let is_raised = || limit.is_none_or(|limit| earlier.is_some_and(|earlier| limit > earlier));
        is_final(&self.record) && !(is_short(&self.record) && is_raised())
    }

    /// Ends the command as the run has ended.
    fn outcome(self, id: &str) -> Result<Outcome, Failure> {
        let Some(error) = &self.record.error else {
            let done = Outcome::new(format!("done: the task `{id}`"));
            return Ok(done.with_data(self.document()));
        };
        let exit = match self.record.exit.exit() {
            Some(Exit::Interrupted(signal)) => signal.name(),
            _ => &self.record.exit.name,
        };
        let failed = MietteDiagnostic {
            help: error.hint.clone(),
            ..MietteDiagnostic::new(format!("the task `{id}`: {}", error.message))
                .with_code(format!("{exit}/{}", error.code()))
        };
        let mut failure = Failure::from(failed);
        failure.output.record = Some(Box::new(self.record.clone()));
        Err(failure)
    }
}

/// Returns `true` if a task has ended for good, so that another start is not expected to succeed. A project that was
/// not ready may be by then.
fn is_final(record: &RunRecord) -> bool {
    let code = record.exit.code;
    let may_pass = record.error.as_ref().is_some_and(|error| error.retryable);
    let is_tried_again = code >= INTERRUPTED || REQUEUED.contains(&code) || may_pass;
    let is_unready = code == Exit::NotReady.code() && !is_short(record);
    record.workflow != NOT_BEGUN && !is_unready && !is_tried_again
}

/// Returns `true` if a run ended because its budget was used up.
fn is_short(record: &RunRecord) -> bool {
    let error = record.error.as_ref();
    error.is_some_and(|error| error.reason == reason::BUDGET)
}

/// Runs the task on a line of the manifest, unless it is done.
///
/// # Errors
/// Fails if the task cannot begin, or fails.
pub fn task(
    context: &Context<'_>,
    (path, index): (&Path, usize),
    results: &ResultArgs,
    words: CheckWords<'_>,
) -> Result<Outcome, Failure> {
    let manifest = Manifest::read(context, path)?;
    let tasks = manifest.tasks(words)?;
    let no_task = || FleetError::NoTask {
        path: manifest.path.clone(),
        index,
        count: tasks.len(),
    };
    let task = tasks.get(index).ok_or_else(no_task)?;
    if results.max_cost.is_some() && task.max_cost.is_none() {
        return Err(FleetError::NoLimit(task.id.clone()).into());
    }
    let mut pins = pins::pins(context, &manifest, &[task], true)?;
    let out = context.project.root().join(&results.out);
    fs::create_dir_all(&out).map_err(PathError::of("make", &out))?;
    let (folder, ledger) = (TaskFolder::new(out.join(&task.id)), Ledger::of(&out));
    ledger.claim(&[task], &pins)?;
    // There is one pin for each task.
    let pin = pins.pop().transpose();
    let is_final = |ended: &Ended| ended.is_final(task.max_cost);
    let earlier = || Ok::<_, Error>(Ended::read(&folder.path)?.filter(is_final));
    if let Some(ended) = earlier()?.filter(|_| !folder.clone.exists()) {
        return ended.outcome(&task.id);
    }
    let lock = folder.lock(&task.id)?;
    // Another process may have finished the task in the meantime.
    let ended = match earlier()? {
        Some(ended) => ended,
        None => Attempt {
            context,
            manifest: &manifest,
            tasks: &tasks,
            task,
            index,
            commit: pin.map(|pin| pin.map_or_else(String::new, |pin| pin.commit)),
            folder: &folder,
            ledger,
            limit: results.max_cost,
        }
        .run()?,
    };
    if is_final(&ended) {
        remove(&folder.clone)?;
    }
    lock.remove()
        .map_err(PathError::of("remove", &folder.path))?;
    ended.outcome(&task.id)
}

/// The folder of a task, with the paths and the project in it.
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
        let path = self.path.join(LOCK);
        let lock = FileLock::take(&path).map_err(|problem| match problem {
            LockProblem::Held { .. } => held(id),
            LockProblem::Unlockable(error) => Error::from(PathError::of("lock", &path)(error)),
        })?;
        if self.has_run() {
            return Err(held(id));
        }
        Ok(lock)
    }

    /// Returns `true` if a run is in progress in the clone. This is possible if the process that started it was killed.
    fn has_run(&self) -> bool {
        self.clone.is_dir() && self.project.is_held()
    }
}

fn held(id: &str) -> Error {
    FleetError::Held(id.to_owned()).into()
}

/// Returns `true` if another process is working on the task in this folder.
pub fn is_held(folder: PathBuf) -> bool {
    let folder = TaskFolder::new(folder);
    file_lock::is_held(&folder.path.join(LOCK)) || folder.has_run()
}

/// A start of a task.
struct Attempt<'a> {
    context: &'a Context<'a>,
    manifest: &'a Manifest,
    /// All tasks of the manifest.
    tasks: &'a [Task],
    task: &'a Task,
    index: usize,
    /// The commit at which to begin, or the reason why it cannot be found.
    commit: Result<String, FleetError>,
    folder: &'a TaskFolder,
    ledger: Ledger,
    /// Maximum cost of all tasks.
    limit: Option<Usd>,
}

impl Attempt<'_> {
    fn run(&self) -> Result<Ended, Error> {
        let folder = self.folder;
        let problem = match self.try_again() {
            Err(error) => error,
            ended => return ended,
        };
        let earlier = Ended::read(&folder.path)?;
        if earlier.is_some_and(|earlier| earlier.record.workflow != NOT_BEGUN) {
            // The task has not begun; the earlier result and its log stay.
            move_log(&folder.project.logs(), &folder.log)?;
            return Err(problem);
        }
        // Another process has the task, its run was killed, or the budget is used up: no result is written.
        let passes =
            [reason::LOCKED, reason::DISK, reason::BUDGET].contains(&problem.reason().name);
        if passes || !problem.is::<FleetError>() {
            return Err(problem);
        }
        let mut record = RunRecord::new(NOT_BEGUN, problem.exit(), self.context.clock.now());
        record.end_with(&problem, problem.hint());
        self.leave(record, None, spent_in(&folder.project)?)
    }

    fn try_again(&self) -> Result<Ended, Error> {
        let (context, task, folder) = (self.context, self.task, self.folder);
        let commit = self.commit.as_deref().map_err(Clone::clone)?;
        own_key(context, task)?;
        let repositories = Repositories::find(context, self.manifest.directory())?;
        let origin = Origin {
            repository: &task.repository,
            commit,
            branch: &format!("code-commit/{}", task.id),
            build: task.script.as_deref(),
        };
        self.prepare(&repositories, &origin)?;
        let mut runs: Vec<PastRun> = history::latest(&folder.project)?.collect();
        let ended = runs.first().and_then(|last| last.record.as_ref());
        let has_ended = |record: &&RunRecord| is_final(record) && !is_short(record);
        let mut record = if let Some(record) = ended.filter(has_ended) {
            // The task was killed before it could write its result.
            record.clone()
        } else {
            // If several runs have the same number of replies, the last one is taken.
            runs.reverse();
            let start = self.start(&runs);
            self.ask(&repositories, commit, &start)?
        };
        if is_short(&record) && cut_off_in(&folder.project)? > Usd::ZERO {
            // The run knows only the amount that was left for it.
            let error = self.used_up()?;
            record.end_with(&error, error.hint());
        }
        if record.exit.code >= INTERRUPTED {
            context.interrupt.check()?;
            let task = TaskPart::default();
            return Ok(Ended { record, task });
        }
        self.collect(&repositories, &origin, record)
    }

    /// Runs the workflow, and returns its record.
    fn ask(
        &self,
        repositories: &Repositories,
        commit: &str,
        start: &Start,
    ) -> Result<RunRecord, Error> {
        let (context, task, folder) = (self.context, self.task, self.folder);
        write_inputs(context, task, &folder.clone)?;
        let spent = spent_in(&folder.project)?;
        if task
            .max_cost
            .is_some_and(|limit| spent.rounded() >= limit.rounded())
        {
            return Err(self.used_up()?);
        }
        let ledger = &self.ledger;
        let reserved = ledger.reserve(&task.id, task.max_cost, spent, self.limit)?;
        let limit = task.max_cost.map(|_| reserved);
        remove(&folder.path.join(RESULT))?;
        if task.searches() && *start != Start::Anew {
            let mut words = [PROGRAM, "recover", "--root"].map(OsString::from).to_vec();
            words.push(folder.clone.clone().into());
            let child = Child::new(context, &words)?;
            child.without_keys(self.tasks).wait()?;
            repositories.reset(&task.id, &folder.clone, commit)?;
        }
        let words = task.words(&folder.clone, start, limit);
        let output = folder.path.join(OUTPUT);
        let errors = folder.project.logs().join("stderr.txt");
        let child = Child::new(context, &words)?.without_keys(self.tasks);
        let ran = child.run_task(context, task, &folder.clone, (&output, &errors));
        remove_keys(context, &folder.clone);
        let spent = spent_in(&folder.project)?;
        ledger.settle(&task.id, spent, None)?;
        ran?;
        let printed = files::read(&output, Links::Refused, LARGEST).ok();
        let parsed = printed.and_then(|json| serde_json::from_slice(&json).ok());
        remove(&output)?;
        let record: RunRecord = parsed.ok_or_else(|| FleetError::Killed(task.id.clone()))?;
        let error = record.error.as_ref();
        if error.is_some_and(|error| error.reason == reason::LOCKED) {
            return Err(held(&task.id));
        }
        Ok(record)
    }

    /// Returns the error for a task whose own limit does not cover another call.
    fn used_up(&self) -> Result<Error, PathError> {
        let (task, project) = (self.task, &self.folder.project);
        let error = FleetError::UsedUp {
            id: task.id.clone(),
            spent: spent_in(project)?,
            cut_off: cut_off_in(project)?,
            limit: task.max_cost.unwrap_or_default(),
        };
        Ok(error.into())
    }

    /// Creates the clone, unless an earlier start has done so.
    fn prepare(&self, repositories: &Repositories, origin: &Origin<'_>) -> Result<(), Error> {
        let folder = self.folder;
        if !folder.clone.is_dir() {
            let (staged, apart) = (folder.path.join("clone.new"), folder.path.join(APART));
            remove(&staged)?;
            remove(&apart)?;
            repositories.clone(origin, &staged)?;
            repositories.set_apart(origin, (&staged, &folder.clone), &apart)?;
            fs::rename(&staged, &folder.clone).map_err(PathError::of("make", &folder.clone))?;
        }
        // An earlier start has ended, but the task is retried.
        move_log(&folder.log, &folder.project.logs())
    }

    /// Chooses how to continue after these runs: with the replies of the run that has the most, if there are any. Runs
    /// with several attempts cannot be resumed.
    fn start(&self, runs: &[PastRun]) -> Start {
        let replies = |run: &&PastRun| {
            let steps = run.steps(&self.folder.project);
            let has_attempts = steps.iter().any(|past| past.is_attempt);
            let whole = steps.iter().filter(|past| !has_attempts && past.is_whole());
            whole.count()
        };
        let has_any = |run: &&PastRun| replies(run) > 0;
        let most = runs.iter().max_by_key(replies).filter(has_any);
        most.map_or(Start::Anew, |run| Start::From(run.name.clone()))
    }

    /// Writes the task's results to its folder, `result.json` last.
    fn collect(
        &self,
        repositories: &Repositories,
        origin: &Origin<'_>,
        mut record: RunRecord,
    ) -> Result<Ended, Error> {
        let (task, folder) = (self.task, self.folder);
        let message = format!("{}: {}", task.id, self.title());
        // A killed task may have left any of these files.
        let files =
            ["change.patch", "branch.bundle", "change", OUTPUT].map(|name| folder.path.join(name));
        let [patch, bundle, own, _] = &files;
        files.iter().try_for_each(|path| remove(path))?;
        let places = (&*folder.clone, &*folder.path.join(APART), &**own);
        let change = repositories.change(&task.id, origin, places, &message, (patch, bundle));
        remove(own)?;
        let stat = match change {
            Ok(stat) => Some(stat),
            Err(error) if !matches!(error.downcast_ref(), Some(FleetError::Unsafe { .. })) => {
                return Err(error);
            }
            Err(error) => {
                if record.exit.code == 0 {
                    record.end_with(&error, error.hint());
                }
                None
            }
        };
        // The clone is removed later, so locations must be verified now.
        sarif::verify_places(&mut record, &folder.clone);
        let spent = spent_in(&folder.project)?;
        // A build may have put a link there.
        if files::is_directory(&folder.project.logs()) {
            self.report()?;
            remove(&folder.log)?;
            rename(&folder.project.logs(), &folder.log)?;
        }
        let ExitRecord { code, name } = record.exit.clone();
        let exit =
            Some((code, name.into_owned())).filter(|_| is_final(&record) && !is_short(&record));
        self.ledger.settle(&task.id, spent, exit)?;
        self.leave(record, stat, spent)
    }

    /// Writes the task's result to its folder.
    fn leave(
        &self,
        record: RunRecord,
        stat: Option<StatRecord>,
        spent: Usd,
    ) -> Result<Ended, Error> {
        let (task, folder) = (self.task, self.folder);
        let part = TaskPart {
            id: task.id.clone(),
            index: self.index,
            repository: place(self.manifest.directory(), &task.repository),
            title: self.title(),
            commit: self.commit.as_ref().ok().cloned(),
            labels: task.labels.clone(),
            cost: spent,
            max_cost: task.max_cost,
            stat,
        };
        let ended = Ended { record, task: part };
        let result = format!("{:#}\n", ended.document());
        let path = folder.path.join(RESULT);
        atomic_file::replace(&path, |file| file.write_all(result.as_bytes()))
            .map_err(PathError::of("write", path))?;
        Ok(ended)
    }

    /// Returns the first line of the query.
    fn title(&self) -> String {
        let title = match first_line(&self.task.text) {
            "" => "a report",
            line => line,
        };
        cut(title, LONGEST_TITLE).into_owned()
    }

    /// Writes the page about the last run, if there is one.
    fn report(&self) -> Result<(), Error> {
        let folder = self.folder;
        let Some(last) = history::latest(&folder.project)?.next() else {
            return Ok(());
        };
        let context = Context {
            project: folder.project.clone(),
            ..self.context.clone()
        };
        let options = ReportArgs {
            run: Some(last.name.clone().into()),
            ..ReportArgs::default()
        };
        report(&context, &options).map_err(|failure| failure.error)?;
        let page = folder.clone.join(last.relative()).join("report.html");
        rename(&page, &folder.path.join("report.html"))
    }
}

/// Returns the cost of all runs in a task's clone. An interrupted call counts with its maximum cost.
fn spent_in(project: &Project) -> Result<Usd, PathError> {
    costs_in(project, |step| step.cost.or(step.at_most))
}

/// Returns the maximum cost of the interrupted calls in a task's clone.
fn cut_off_in(project: &Project) -> Result<Usd, PathError> {
    costs_in(project, |step| step.at_most.filter(|_| step.cost.is_none()))
}

fn costs_in(project: &Project, cost: fn(&Step) -> Option<Usd>) -> Result<Usd, PathError> {
    let runs = history::latest(project)?;
    let steps = runs.flat_map(|run| run.steps(project));
    Ok(steps.filter_map(|past| cost(&past.step)).sum())
}

/// Moves the runs' folders into the clone or out of it.
fn move_log(from: &Path, to: &Path) -> Result<(), Error> {
    let is_there = files::is_directory(from) && to.symlink_metadata().is_err();
    if is_there { rename(from, to) } else { Ok(()) }
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    Ok(fs::rename(from, to).map_err(PathError::of("write", to))?)
}

/// Removes a file or a directory, if it exists.
fn remove(path: &Path) -> Result<(), Error> {
    let removed = if files::is_directory(path) {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    removed.if_there().map_err(PathError::of("remove", path))?;
    Ok(())
}
