//! All tasks of a manifest, run on this machine, several at a time.
//!
//! Starts `fleet task` processes, and reads the ledger. Guarantees that a finished task is not started again, that a
//! task with a transient failure is retried at most twice, and that a signal shuts down all tasks in an orderly way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{BufReader, Seek as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::args::RunArgs;
use super::child::Child;
use super::error::FleetError;
use super::ledger::{self, Accounts, Ledger};
use super::manifest::{CheckWords, Manifest, NO_TASKS, Task};
use super::pins;
use super::policy::RETRIES;
use super::table::Progress;
use super::task::{Ended, NOT_BEGUN, is_held};
use crate::commands::cli::values::PROGRAM;
use crate::model::pace::{self, PACE};
use crate::model::price::Usd;
use crate::record::result::{ExitRecord, RunRecord};
use crate::record::run_files::RESULT;
use crate::record::seconds::Seconds;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::files::PathError;
use crate::sys::reason;
use crate::sys::text::{self, one_line};
use crate::ui::OutputFormat;
use crate::ui::columns;
use crate::ui::live::LiveLines;

/// Maximum length of a task's error, in characters.
const LONGEST_PROBLEM: usize = 200;
/// Interval between checks of the clock and for signals.
const TICK: Duration = Duration::from_millis(100);
/// Interval between reads of the ledger, for the live table.
const SUMMING: Duration = Duration::from_secs(2);

/// Runs all unfinished tasks.
///
/// # Errors
/// Fails if the manifest has mistakes, or not all tasks succeed.
pub fn run(
    context: &Context<'_>,
    arguments: &RunArgs,
    format: OutputFormat,
    words: CheckWords<'_>,
) -> Result<Outcome, Failure> {
    let manifest = Manifest::read(context, &arguments.manifest)?;
    let tasks = manifest.tasks(words)?;
    let unlimited = tasks.iter().find(|task| task.max_cost.is_none());
    if let (Some(_), Some(task)) = (arguments.results.max_cost, unlimited) {
        return Err(FleetError::NoLimit(task.id.clone()).into());
    }
    let out = context.project.root().join(&arguments.results.out);
    fs::create_dir_all(&out).map_err(PathError::of("make", &out))?;
    let all: Vec<&Task> = tasks.iter().collect();
    let pins = pins::pins(context, &manifest, &all, true)?;
    let accounts = Ledger::of(&out).claim(&all, &pins)?;
    let mut campaign = Campaign::new(context, arguments, (&manifest, &tasks), (out, accounts))?;
    if format == OutputFormat::JsonL {
        // A program that follows the events gets one for each task instead.
        campaign.live = LiveLines::new(false);
    }
    let worked = campaign.work();
    campaign.outcome(worked)
}

/// The state of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// Waiting, running or interrupted.
    Open,
    /// Ended with this exit code and name.
    Ended(u8, String),
    /// Not covered by the remaining budget.
    Unpaid,
}

/// An ended process: the index of its task, and the record that it printed.
type Reaped = (usize, Result<Option<RunRecord>, Error>);

struct Campaign<'c> {
    context: &'c Context<'c>,
    arguments: &'c RunArgs,
    manifest: &'c Manifest,
    tasks: &'c [Task],
    out: PathBuf,
    states: Vec<State>,
    /// Number of tries of each task since the campaign was started this time.
    tries: Vec<u32>,
    queue: VecDeque<usize>,
    /// Queued tasks on which another process is working.
    held: BTreeSet<usize>,
    /// Tasks that begin once the first ones have ended.
    rest: Vec<usize>,
    running: BTreeMap<usize, Duration>,
    /// `true` if the remaining budget did not cover another task; `false` again once a task ends.
    is_short: bool,
    spent: Usd,
    /// The time at which `spent` was read from the ledger.
    summed: Duration,
    began: Duration,
    ended: usize,
    live: LiveLines,
    reaper: (Sender<Reaped>, Receiver<Reaped>),
}

impl<'c> Campaign<'c> {
    fn new(
        context: &'c Context<'c>,
        arguments: &'c RunArgs,
        (manifest, tasks): (&'c Manifest, &'c [Task]),
        (out, accounts): (PathBuf, Accounts),
    ) -> Result<Self, Error> {
        let state = |task: &Task| -> Result<State, Error> {
            let folder = out.join(&task.id);
            if folder.join(RESULT).symlink_metadata().is_err() {
                return Ok(State::Open);
            }
            let known = accounts.get(&task.id);
            let exit = known.and_then(|account| account.exit.clone());
            // After exit 3, only the task's result shows whether another start could succeed.
            if let Some((code, name)) = exit.filter(|(code, _)| *code != Exit::NotReady.code()) {
                return Ok(State::Ended(code, name));
            }
            let ended = Ended::read(&folder)?.filter(|ended| ended.is_final(task.max_cost));
            Ok(ended.map_or(State::Open, |ended| {
                let exit = ended.record.exit;
                State::Ended(exit.code, exit.name.into_owned())
            }))
        };
        let states = tasks.iter().map(state).collect::<Result<Vec<_>, _>>()?;
        let first = arguments.first.map_or(usize::MAX, Into::into);
        let open = (0..tasks.len()).filter(|index| states[*index] == State::Open);
        let (now, rest): (Vec<_>, Vec<_>) = open.partition(|index| *index < first);
        Ok(Self {
            context,
            arguments,
            manifest,
            tasks,
            out,
            tries: vec![0; states.len()],
            states,
            queue: now.into(),
            held: BTreeSet::new(),
            rest,
            running: BTreeMap::new(),
            is_short: false,
            spent: ledger::spent(&accounts),
            summed: context.clock.elapsed(),
            began: context.clock.elapsed(),
            ended: 0,
            live: LiveLines::new(context.reporter.is_live()),
            reaper: channel(),
        })
    }

    /// Runs tasks until none is left to run, or a signal arrives.
    fn work(&mut self) -> Result<(), Error> {
        let mut fault = None;
        loop {
            let mut is_stopped = fault.is_some() || self.context.interrupt.check().is_err();
            if !is_stopped {
                // Tasks that have been started are still awaited.
                fault = self.start_some().err();
                is_stopped = fault.is_some();
            }
            if self.running.is_empty() && (is_stopped || self.queue.is_empty()) {
                break;
            }
            self.show();
            match self.reaper.1.recv_timeout(TICK) {
                Ok((index, reaped)) => {
                    self.running.remove(&index);
                    let noted = reaped.map(|record| self.note(index, record.as_ref()));
                    fault = fault.or(noted.err());
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        self.live.clear();
        self.context.interrupt.check()?;
        fault.map_or(Ok(()), Err)
    }

    /// Starts tasks while fewer than the requested number are running.
    fn start_some(&mut self) -> Result<(), Error> {
        if self.queue.is_empty() && self.running.is_empty() && !self.rest.is_empty() {
            self.check_first()?;
            self.queue.extend(std::mem::take(&mut self.rest));
        }
        let now = self.context.clock.elapsed();
        while self.running.len() < self.arguments.jobs.into() {
            let mut queue = self.queue.iter();
            let Some(at) = queue.position(|index| self.may_begin(*index)) else {
                break;
            };
            if let Some(index) = self.queue.remove(at) {
                self.held.remove(&index);
                self.start(index)?;
                self.running.insert(index, now);
            }
        }
        Ok(())
    }

    /// Returns `true` if the budget covers a task, and no other process is working on it.
    fn may_begin(&self, index: usize) -> bool {
        if self.held.contains(&index) {
            // Once the lock is released, the task may have a result.
            return !is_held(self.out.join(&self.tasks[index].id));
        }
        !self.is_short
    }

    fn start(&self, index: usize) -> Result<(), Error> {
        let mut words: Vec<_> = [PROGRAM, "fleet", "task"].map(Into::into).to_vec();
        words.push(self.manifest.path.clone().into());
        words.push(index.to_string().into());
        words.extend(["--out".into(), self.out.clone().into()]);
        words.extend(["--output-format", "json", "--root"].map(Into::into));
        words.push(self.context.project.root().into());
        let limit = self.arguments.results.max_cost;
        words.extend(limit.map(|limit| format!("--max-cost={:.6}", limit.dollars()).into()));
        let mut printed =
            tempfile::tempfile().map_err(PathError::of("make", "a temporary file"))?;
        let file = printed
            .try_clone()
            .map_err(PathError::of("open", "a temporary file"))?;
        let child = Child::new(self.context, &words)?.printing_to(file);
        let reaper = self.reaper.0.clone();
        let reap = move || {
            let record = child.wait().map(|_| {
                printed.rewind().ok()?;
                serde_json::from_reader(BufReader::new(printed)).ok()
            });
            // The receiver lives as long as tasks are running.
            let _ = reaper.send((index, record));
        };
        let started = thread::Builder::new().spawn(reap);
        Ok(started.map(drop).map_err(PathError::of("start", PROGRAM))?)
    }

    /// Records how a task's process ended, and requeues the task if it is to be retried.
    fn note(&mut self, index: usize, record: Option<&RunRecord>) {
        let is_alone = self.running.is_empty() && self.held.is_empty();
        // A killed process has not reported how it ended.
        let killed = Exit::LocalIo.into();
        let exit = record.map_or(&killed, |record| &record.exit);
        let error = record.and_then(|record| record.error.as_ref());
        let reason = error.map_or("", |error| &*error.reason);
        let is_retryable = error.map_or(record.is_none(), |error| error.retryable);
        let has_begun = record.is_some_and(|record| record.workflow != NOT_BEGUN);
        self.is_short = false;
        if reason == reason::LOCKED {
            self.held.insert(index);
            return self.queue.push_back(index);
        }
        if !has_begun && reason == reason::BUDGET && !is_alone {
            self.is_short = true;
            return self.queue.push_back(index);
        }
        let cost = record.and_then(|record| record.cost);
        self.spent = self.spent + cost.unwrap_or_default();
        if self.context.interrupt.check().is_err() && exit.code >= 128 {
            return;
        }
        // Another start would pay again for the calls of several attempts.
        let pays_again = self.tasks[index].has_attempts() && cost != Some(Usd::ZERO);
        let may_retry = self.tries[index] < RETRIES && !pays_again;
        if is_retryable && may_retry {
            self.tries[index] += 1;
            return self.queue.push_back(index);
        }
        self.ended += 1;
        self.states[index] = if !has_begun && reason == reason::BUDGET {
            State::Unpaid
        } else {
            State::Ended(exit.code, exit.name.clone().into_owned())
        };
        let line = index + 1;
        let problem = error.map(|error| match one_line(&error.message, LONGEST_PROBLEM) {
            problem if has_begun => format!("  {problem}"),
            problem => format!("  line {line}: {problem}"),
        });
        // A task that was resumed has paid for earlier runs, too.
        let ended = Ended::read(&self.out.join(&self.tasks[index].id)).ok();
        let in_all = ended.flatten().map(|ended| ended.task.cost);
        let cost = cost.map(|cost| in_all.unwrap_or(cost));
        self.report_task(index, exit, cost, &problem.unwrap_or_default());
    }

    /// Reports an ended task. On a terminal, where a table counts the others, reports only failures.
    fn report_task(&mut self, index: usize, exit: &ExitRecord, cost: Option<Usd>, problem: &str) {
        let id = &self.tasks[index].id;
        let cost = cost.map_or_else(String::new, |cost| format!("  {cost}"));
        if !self.live.is_live() || exit.code != 0 {
            self.live.clear();
            self.context
                .notice(format!("{id}  {}{cost}{problem}", exit.name));
        }
    }

    fn show(&mut self) {
        let now = self.context.clock.elapsed();
        if self.live.is_live() && now.saturating_sub(self.summed) >= SUMMING {
            // Only the ledger has the cost of interrupted calls.
            self.spent = Ledger::of(&self.out).spent().unwrap_or(self.spent);
            self.summed = now;
        }
        let mut progress = Progress {
            tasks: self.tasks.len(),
            spent: self.spent,
            limit: self.arguments.results.max_cost,
            paced: self.paced(),
            pace: (self.ended, now.saturating_sub(self.began)),
            ..Progress::default()
        };
        for state in &self.states {
            if let State::Ended(_, name) = state {
                *progress.ended.entry(name).or_default() += 1;
            }
        }
        for (index, began) in &self.running {
            let id = &*self.tasks[*index].id;
            progress.running.push((id, now.saturating_sub(*began)));
        }
        self.live.draw(&progress.lines());
    }

    /// Formats the time until which calls are paused; `None` if they are not.
    fn paced(&self) -> Option<String> {
        let pause = pace::latest(&self.out.join(PACE))?;
        let now = self.context.clock.now();
        let until = pause.with_timezone(&now.timezone());
        (until > now).then(|| until.format("%H:%M:%S").to_string())
    }

    /// Returns the number of failed tasks among the first ones.
    fn failed(&self, first: usize) -> usize {
        let has_failed = |state: &&State| !matches!(state, State::Open | State::Ended(0, _));
        self.states.iter().take(first).filter(has_failed).count()
    }

    /// Checks that no more than the allowed share of the first tasks has failed.
    fn check_first(&self) -> Result<(), FleetError> {
        let (Some(first), Some(percent)) = (self.arguments.first, self.arguments.stop_above) else {
            return Ok(());
        };
        let first = self.tasks.len().min(first.into());
        let failed = self.failed(first);
        if failed * 100 > percent * first {
            return Err(FleetError::Stopped {
                failed,
                first,
                percent,
            });
        }
        Ok(())
    }

    fn outcome(self, worked: Result<(), Error>) -> Result<Outcome, Failure> {
        let spent = Ledger::of(&self.out).spent()?;
        let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
        for state in &self.states {
            let name = match state {
                State::Ended(_, name) => name,
                State::Unpaid => Exit::OverBudget.name(),
                State::Open => "open",
            };
            *ends.entry(name).or_default() += 1;
        }
        let count = self.tasks.len();
        let counts = ends.iter().map(|(name, count)| format!("{name} {count}"));
        let listed = match count {
            0 => "no tasks".to_owned(),
            _ => text::listed(counts, ends.len()),
        };
        let columns = self.context.reporter.columns();
        let text = columns::folded(&format!("{listed}; {spent}"), columns, 2);
        let json = json!({"schema": 1, "tasks": count, "ended": ends, "cost": spent});
        let unpaid = self.states.iter().position(|state| *state == State::Unpaid);
        let failed = self.failed(count);
        let error = match (worked, unpaid.zip(self.arguments.results.max_cost)) {
            (Err(error), _) => error,
            _ if failed == 0 => {
                let summary = match count {
                    0 => NO_TASKS.to_owned(),
                    _ => format!("done: {count} of {count} tasks"),
                };
                return Ok(Outcome::shown(text, json).with_summary(summary));
            }
            (_, Some((index, limit))) => Error::from(FleetError::OverBudget {
                id: self.tasks[index].id.clone(),
                needed: self.tasks[index].max_cost.unwrap_or_default(),
                spent,
                limit,
            }),
            (_, None) => FleetError::Failed { failed, count }.into(),
        };
        let took = self.context.clock.elapsed().saturating_sub(self.began);
        let started = self.context.clock.now() - took;
        let mut record = RunRecord::new(NOT_BEGUN, error.exit(), started);
        record.end_with(&error, error.hint());
        (record.cost, record.seconds) = (Some(spent), Seconds(took));
        let mut failure = Failure::from(error).with_text(text);
        failure.output.record = Some(Box::new(record));
        Err(failure)
    }
}
