//! Parallel attempts at a commit: asks in parallel, builds each reply in a separate scratch tree, and takes one.
//!
//! Changes the project once, in one transaction, to the result of the attempt that is taken. No call waits for a build.
//! The number of builds that run at the same time is at most one less than the number of cores, but at least one.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{iter, thread};

use super::asking::Asking;
use super::replacements::Work;
use super::search::CommitSearch;
use crate::commands::cli::gate::GateMode;
use crate::commands::command_line::Cli;
use crate::commands::error::CommandError;
use crate::commands::log;
use crate::edit::{EditKind, VerifiedEdits};
use crate::model::prompt::{Inputs, Prompt};
use crate::model::{Purpose, StepId};
use crate::record::choice::{AttemptRecord, ChoiceRecord, ENDED};
use crate::record::event::{Event, Reporter};
use crate::record::gate::{GateRecord, listed};
use crate::record::result::RunRecord;
use crate::record::run_files::GATE;
use crate::record::run_log::RunLog;
use crate::record::seconds::Seconds;
use crate::run::active::Run;
use crate::run::budget::Budget;
use crate::run::builds::Builds;
use crate::run::choice::choose;
use crate::run::closing;
use crate::run::context::Context;
use crate::run::past::story::attempts;
use crate::run::pin::Pin;
use crate::run::proof;
use crate::run::ready::Ready;
use crate::run::resumption::ResumedTree;
use crate::run::scratch::ScratchMode;
use crate::run::search::{Search, State, files_of};
use crate::run::selection::Models;
use crate::run::shown::{ChangedMeanwhile, Shown};
use crate::run::tree::RunTree;
use crate::run::verdict::{self, PassedChange};
use crate::sys::diff::{self, FileChange};
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::files::PathError;
use crate::sys::parallel::{Turn, Turns};

/// Maximum number of attempts.
const MOST: usize = 8;

/// The attempts at a commit.
pub struct Attempts<'c> {
    /// The context, with a separate interrupt for the commit.
    pub context: &'c Context<'c>,
    /// The flags.
    pub cli: &'c Cli,
}

/// An attempt whose reply was built.
struct Built {
    edits: VerifiedEdits,
    /// Changes that the reply and its build made to the reply's files.
    changes: Vec<FileChange>,
    /// The state that it has made, for a search to begin from if its build has failed.
    state: State,
}

/// A finished attempt.
struct Made {
    nth: usize,
    /// The last step that was asked.
    step: StepId,
    run: RunRecord,
    record: AttemptRecord,
    built: Result<Built, Error>,
}

/// The verdict that the end of the run would reach on an attempt.
#[derive(Default)]
struct Verdict {
    /// The verdict on the gate, if it was judged.
    gate: Option<GateRecord>,
    /// The error with which the run would end.
    fault: Option<Error>,
}

/// A message from an attempt's thread.
enum AttemptEvent {
    Event(StepId, Event),
    Made(Box<Made>),
}

impl Attempts<'_> {
    /// Makes all attempts and applies one: the best of those that pass or, if none does, the best for the search, whose
    /// build output is returned for a repair. From then on, `ready.models` are that attempt's.
    ///
    /// # Errors
    /// Fails if no attempt is built, a signal arrives, or the chosen attempt cannot be applied.
    pub fn make(
        &self,
        work: &mut Work<'_>,
        ready: &mut Ready<'_>,
        search: &mut CommitSearch<'_>,
    ) -> Result<Option<String>, Error> {
        let run = &mut work.run;
        let pin = Pin::new(self.context)?;
        let mut made = self.side_by_side(run, ready, &pin)?;
        let (changed, new) = pin.changed();
        let how = [
            "the attempts were built without what somebody has changed meanwhile",
            "the attempts may have been built with files that somebody has made meanwhile",
        ];
        let named = [changed, new].into_iter().zip(how);
        for (files, how) in named.filter(|(files, _)| !files.is_empty()) {
            run.warn(format!("{how}: {}", listed(&files)));
        }
        let attempts: Vec<_> = made.iter().map(|made| made.record.clone()).collect();
        let mut verdicts = BTreeMap::new();
        let passing = choose(&attempts, |at| {
            let verdict = self.verdict(run, (&made[at], &pin), &ready.inputs.query);
            let accepts = verdict.fault.is_none();
            verdicts.insert(at, verdict);
            accepts
        });
        let is_interrupted = self.context.interrupt.check().is_err();
        let mut chosen = passing.filter(|_| !is_interrupted);
        let mut output = None;
        if chosen.is_none() && !is_interrupted {
            let built = made.iter().filter_map(|made| {
                let built = made.built.as_ref().ok()?;
                Some((made.nth, built.state.clone()))
            });
            let best = search.begin(run, built.collect());
            output = best.as_ref().map(|(_, _, output)| output.clone());
            chosen = best.map(|(nth, why, _)| (nth, why));
        }
        let (taken, why) = chosen.clone().unzip();
        let choice = ChoiceRecord {
            taken: taken.map(|at| attempts[at].step.clone()),
            attempts,
            why,
        };
        let lines = log::table(&attempts::table(&choice), None).into_iter();
        for line in lines.chain([attempts::taken(&choice)]) {
            self.context.notice(line);
        }
        run.record.choice = Some(choice);
        self.context.interrupt.check()?;
        let Some((at, _)) = chosen else {
            let mut errors = made.into_iter().filter_map(|made| made.built.err());
            return errors.next().map_or(Ok(None), Err);
        };
        if at > 0 {
            ready.models = ready.others.swap_remove(at - 1);
        }
        let made = made.swap_remove(at);
        run.record.model_version = made.run.model_version;
        let built = made.built?;
        let taken = take(run, &mut work.tree, (&made.step, &built));
        if taken.is_err() {
            // Without an applied attempt, a search has no state to return to.
            search.search = Search::default();
            run.record.choice.iter_mut().for_each(ChoiceRecord::forget);
        }
        taken?;
        work.replacements.remember(&built.edits);
        let Verdict { gate, fault } = verdicts.remove(&at).unwrap_or_default();
        run.record.gate = gate;
        // Other faults are reported at the end of the run.
        let fault = fault.filter(|_| run.record.gate.is_some());
        fault.map_or(Ok(output), Err)
    }

    /// Judges an attempt that has passed with the checks that could later fail the run.
    fn verdict(&self, run: &mut Run<'_>, (made, pin): (&Made, &Pin), query: &str) -> Verdict {
        let (Ok(built), gate) = (&made.built, &self.cli.gate) else {
            return Verdict::default();
        };
        let found = closing::warnings(self.context, &built.changes);
        let mut verdict = Verdict::default();
        if let Some(denied) = CommandError::denied(&found, &gate.deny_warnings) {
            verdict.fault = Some(denied.into());
        } else if gate.gate == Some(GateMode::Strict) {
            let change = PassedChange {
                files: &built.changes,
                unjudged: &[],
                query,
                apart: Some((pin, &made.step)),
            };
            let how = self.cli.build.options();
            verdict.fault = verdict::judge(self.context, how, run, change, true).err();
            verdict.gate = run.record.gate.take();
        }
        if let Some(fault) = &verdict.fault {
            self.context.notice(format!("{}: {fault}", made.step));
        }
        verdict
    }

    /// Makes all attempts, each on a separate thread. Further attempts with the first one's model are sent once its
    /// answer begins, so that they can use the cached prompt.
    fn side_by_side(
        &self,
        run: &mut Run<'_>,
        ready: &mut Ready<'_>,
        pin: &Pin,
    ) -> Result<Vec<Made>, Error> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let (log, budget) = run.shared();
        let maker = Maker {
            context: self.context.shared(),
            cli: self.cli,
            inputs: &ready.inputs,
            shown: &ready.shown,
            pin,
            log,
            budget,
            begun: Turns::new(1),
            builds: Turns::new((cores - 1).max(1)),
            deadline: self.context.clock.elapsed() + self.cli.timeout,
        };
        let first_model = ready.models.first.spec.name.clone();
        let models = iter::once(&mut ready.models).chain(&mut ready.others);
        let root = self.context.project.root();
        let mut made = Vec::new();
        thread::scope(|scope| -> Result<(), Error> {
            let (sender, receiver) = channel();
            let mut turn = Some(maker.begun.take());
            for (number, models) in (1..).zip(models) {
                let step = match number {
                    1 => StepId::INITIAL,
                    number => StepId::new(Purpose::ATTEMPT, number),
                };
                let reporter = AttemptReporter {
                    step,
                    sender: sender.clone(),
                    turn: Mutex::new(turn.take()),
                };
                let waits = number > 1 && models.first.spec.name == first_model;
                let maker = &maker;
                let make = move || {
                    if waits {
                        drop(maker.begun.take());
                    }
                    let made = maker.make(usize::from(number) - 1, models, &reporter);
                    // If another thread could not be started, nothing receives this event.
                    let _ = reporter.sender.send(AttemptEvent::Made(Box::new(made)));
                };
                let started = thread::Builder::new().spawn_scoped(scope, make);
                started.map_err(PathError::of("start a thread for", root))?;
            }
            drop(sender);
            let mut has_passed = false;
            for event in receiver {
                match event {
                    AttemptEvent::Event(step, event) => self.pass_on(&step, &event),
                    AttemptEvent::Made(mut one) => {
                        has_passed |= one.record.passed;
                        if has_passed && self.cli.replies.first_pass {
                            self.context.interrupt.raise();
                            one.note_ended();
                        }
                        self.context.notice(attempts::line(&one.record));
                        made.push(*one);
                    }
                }
            }
            Ok(())
        })?;
        // Clears the interrupt that ended the other attempts, but not a signal.
        let _ = self.context.interrupt.take();
        made.sort_by_key(|made| made.nth);
        for made in &mut made {
            run.join(&mut made.run);
        }
        Ok(made)
    }

    /// Forwards an event of an attempt's thread to the run's reporter.
    fn pass_on(&self, step: &StepId, event: &Event) {
        let reporter = self.context.reporter;
        match event {
            Event::Receiving { .. } if *step != StepId::INITIAL || !reporter.is_live() => {}
            Event::Asking { .. } | Event::Receiving { .. } | Event::Answered { .. } => {
                reporter.event(event);
            }
            Event::Warning(text) => self.context.warn(format!("{step}: {text}")),
            Event::Retrying { reason, .. } => {
                self.context
                    .notice(format!("{step}: {reason}: it is asked again"));
            }
            _ => {}
        }
    }
}

/// Applies the files of the reply, as left by the attempt's build.
fn take(
    run: &mut Run<'_>,
    tree: &mut RunTree<'_>,
    (step, built): (&StepId, &Built),
) -> Result<(), Error> {
    let of_attempts = |error| ChangedMeanwhile {
        is_attempt: true,
        ..error
    };
    tree.check(run, &built.edits).map_err(of_attempts)?;
    let replied = |path: &str| {
        let edit = built.edits.all().find(|(other, _)| *other == path);
        edit.and_then(|(_, content)| content).map(str::to_owned)
    };
    let edits = built.changes.iter().map(|change| {
        let text = change.after.as_ref().and_then(|after| {
            let text = String::from_utf8(after.content.clone());
            // If the build left something other than text, use the reply's content.
            text.ok().or_else(|| replied(&change.path))
        });
        let kind = text.map_or(EditKind::Remove, EditKind::Write);
        (change.path.clone(), kind)
    });
    let files = tree.verified(edits.collect())?;
    tree.take(run, (step, &built.edits), &files)
}

impl Made {
    /// Replaces the error of an interrupted attempt with a note that another one has passed.
    fn note_ended(&mut self) {
        let ended = self.built.as_ref().err();
        if ended.is_some_and(|error| matches!(error.exit(), Exit::Interrupted(_))) {
            self.record.error = Some(ENDED.to_owned());
        }
    }
}

/// State shared by the threads of all attempts.
struct Maker<'m> {
    context: Context<'m, ()>,
    cli: &'m Cli,
    inputs: &'m Inputs,
    shown: &'m Shown,
    pin: &'m Pin,
    log: RunLog<'m>,
    budget: Budget,
    /// A turn held until the first attempt's answer begins.
    begun: Turns,
    /// One turn for each build that may run at the same time.
    builds: Turns,
    /// The time at which all calls end.
    deadline: Duration,
}

impl Maker<'_> {
    /// Makes an attempt.
    fn make(&self, nth: usize, models: &mut Models<'_>, reporter: &AttemptReporter<'_>) -> Made {
        let context = self.context.with_reporter(reporter);
        let began = context.clock.elapsed();
        let mut run = Run::part(&context, (self.log.clone(), self.budget.clone()));
        let mut step = reporter.step.clone();
        models.deadline = Some(self.deadline);
        let asked = self.ask(&context, &mut run, models, &mut step);
        models.deadline = None;
        let built = asked.and_then(|edits| self.build(&context, &mut run, &step, edits));
        // The record of the whole run also contains the step.
        let _ = run.log_step();
        let done = built.as_ref().ok();
        let record = AttemptRecord {
            step: step.to_string(),
            model: models.first.spec.name.clone(),
            passed: done.is_some_and(|built| built.state.status.passed()),
            gate: done.map(|built| verdict::gate_change(&context, &built.changes)),
            lines: done.map(|built| built.state.lines),
            findings: done.map(|built| built.state.findings.len()),
            cost: run.record.total_cost(),
            seconds: Seconds(context.clock.elapsed().saturating_sub(began)),
            error: built.as_ref().err().map(ToString::to_string),
        };
        Made {
            nth,
            step,
            run: run.record,
            record,
            built,
        }
    }

    /// Asks for edits and verifies them.
    fn ask(
        &self,
        context: &Context<'_>,
        run: &mut Run<'_>,
        models: &Models<'_>,
        step: &mut StepId,
    ) -> Result<VerifiedEdits, Error> {
        let mut asking = Asking {
            context,
            cli: self.cli,
            query: self.inputs.query.clone(),
            resumed: ResumedTree::default(),
            code: None,
        };
        let prompt = |order, format| Prompt::initial(self.inputs, order, format);
        let sent = |path: &str| self.shown.sent(path, &self.inputs.rollup);
        let edits = asking.ask(run, models, step, prompt, &sent)?;
        run.warn_all(edits.warnings());
        Ok(edits)
    }

    /// Builds a reply in a scratch tree.
    fn build(
        &self,
        context: &Context<'_>,
        run: &mut Run<'_>,
        step: &StepId,
        edits: VerifiedEdits,
    ) -> Result<Built, Error> {
        let _turn = self.builds.take();
        context.interrupt.check()?;
        let mut builds = Builds::new(context, self.cli.build.options())?;
        let (built, changed, changes) = self.pin.build(context, |scratch| {
            let read = |path: &str| scratch.read(path).map_err(PathError::of("read", path));
            let mut before = Vec::new();
            for (path, content) in edits.all() {
                before.push((path, read(path)?));
                let laid = match content {
                    Some(content) => scratch.write(path, content.as_bytes(), None),
                    None => scratch.remove(path),
                };
                laid.map_err(PathError::of("write", path))?;
            }
            let (built, changed) = builds.build_apart(scratch, run.log.build(step)?)?;
            let mut changes = Vec::new();
            for (path, before) in before {
                changes.push(FileChange::of(path.to_owned(), before, read(path)?));
            }
            changes.retain(|change| change.before != change.after);
            Ok((built, changed, changes))
        })?;
        run.record.warnings.extend(builds.uncontained.take());
        proof::note(run, &built);
        if let Some(changed) = changed {
            run.log.text(GATE, &changed.diff)?;
            return Err(changed.into());
        }
        let files = files_of(&edits);
        let stat = diff::stat(&changes);
        let state = State {
            step: step.clone(),
            edits: files.clone(),
            files,
            findings: built.findings,
            lines: stat.added() + stat.removed(),
            status: built.status,
            output: built.output,
        };
        Ok(Built {
            edits,
            changes,
            state,
        })
    }
}

/// Forwards an attempt's events to the main thread.
struct AttemptReporter<'t> {
    step: StepId,
    sender: Sender<AttemptEvent>,
    /// The turn to send a request, held until the answer begins.
    turn: Mutex<Option<Turn<'t>>>,
}

impl Reporter for AttemptReporter<'_> {
    fn event(&self, event: &Event) {
        if matches!(event, Event::Receiving { .. } | Event::Answered { .. }) {
            *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        let _ = self
            .sender
            .send(AttemptEvent::Event(self.step.clone(), event.clone()));
    }

    /// Returns `true` for the first attempt, which needs the pieces of its answer to tell when the answer begins.
    fn is_live(&self) -> bool {
        self.step == StepId::INITIAL
    }
}

/// Returns the model of the first attempt, and the models of the others; `None` stands for the
/// first attempt's.
///
/// # Errors
/// Fails if flags conflict.
pub fn models(cli: &Cli) -> Result<(Option<String>, Vec<Option<String>>), CommandError> {
    let mut names = cli.model.iter().flat_map(|names| names.split(','));
    let first = names.next().map(str::to_owned);
    let mut others: Vec<_> = names.map(|name| Some(name.to_owned())).collect();
    let (attempts, is_list) = (usize::from(cli.replies.attempts), !others.is_empty());
    others.resize(others.len().max(attempts.saturating_sub(1)), None);
    let is_one = others.is_empty();
    let asks_one = cli.replay.is_some() || cli.replies.resume.is_some() || cli.consistency_check;
    let problems = [
        (
            is_list && (attempts > 1 || asks_one),
            "several models are asked for one attempt at a change each: `--attempts`, `--replay`, `--resume` and `--consistency-check` do not go with them",
        ),
        (
            others.len() >= MOST,
            "at most 8 models can be asked: name fewer",
        ),
        (
            !is_one && cli.scratch == Some(ScratchMode::KeepIgnored),
            "what several attempts build in ignored files is not kept: `--scratch=keep-ignored` does not go with them",
        ),
        (
            is_one && cli.replies.first_pass && cli.replay.is_none(),
            "`--first-pass` is for several attempts: give `--attempts`, too",
        ),
    ];
    match problems.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, problem)) => Err(CommandError::Attempts(problem)),
        None => Ok((first, others)),
    }
}
