//! The verdict on a change to the gate: to the tests, and to the settings by which a change is judged.
//!
//! Builds in scratch trees: the new code with the old gate, and the old code with the new tests. The files that no
//! build may change are the concern of `gate`.

mod changed;
mod data;
mod ending;
mod named;
mod parts;
mod silenced;
mod table;
#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use self::changed::{Changed, Side};
use self::ending::Ending;
use self::table::MISFIT;
use super::active::Run;
use super::builds::{self, BuildOptions, Builds, describe};
use super::context::Context;
use super::error::RunError;
use super::pin::Pin;
use crate::exec::build_script::BuildStatus;
use crate::exec::sandbox::SandboxMode;
use crate::exec::scratch::Scratch;
use crate::model::StepId;
use crate::record::gate::{GateChange, GateFault, GateRecord, NewTests, OldGate, listed};
use crate::record::run_files;
use crate::run::past::warnings::build_commands;
use crate::sys::diff::{FileChange, FileState};
use crate::sys::error::Error;
use crate::sys::files::PathError;
use crate::sys::interrupt::Interrupted;

/// A change that has passed its build.
#[derive(Clone, Copy)]
pub struct PassedChange<'f> {
    /// The changed files.
    pub files: &'f [FileChange],
    /// Files that something else has changed, in an unknown way.
    pub unjudged: &'f [String],
    /// The query that asked for it.
    pub query: &'f str,
    /// For one of several attempts, whose change is not in the project: the tree that it was built over, and its step.
    pub apart: Option<(&'f Pin, &'f StepId)>,
}

/// Judges a change that has passed its build, for the record, using a scratch tree for each build. A build that cannot
/// be run is inconclusive, and causes a warning.
///
/// # Errors
/// Fails if a signal arrives, or `is_strict` and the change does not pass.
pub fn judge(
    context: &Context<'_>,
    how: BuildOptions<'_>,
    run: &mut Run<'_>,
    change: PassedChange<'_>,
    is_strict: bool,
) -> Result<(), Error> {
    let changed = changed(context, change.files);
    let mut record = GateRecord {
        files: changed.gate_files().map(str::to_owned).collect(),
        change: changed.gate_change(),
        ..GateRecord::default()
    };
    let mut judge = Judge {
        context,
        how,
        run,
        changed,
        change,
        old_log: run_files::OLD_GATE,
        builds: None,
    };
    if !record.files.is_empty() {
        record.old_gate = judge.old_gate(&mut record.excused)?;
        record.new_tests = judge.new_tests()?;
    }
    record.leave_open(change.unjudged);
    let old_log = judge.old_log;
    let has_to_prove = judge.changed.has_code() && judge.changed.has_new_assertions();
    let mut faults = record.faults().into_iter();
    let fault = faults.find(|fault| has_to_prove || *fault != GateFault::NotProven);
    if change.apart.is_none() {
        report(context, &record);
    }
    let files = listed(&record.files);
    run.record.gate = Some(record);
    let log = |name: &str| format!("{}/{}", run.log.name(), change.log(name));
    match fault.filter(|_| is_strict) {
        Some(GateFault::GateWeakened) => {
            let log = log(old_log);
            Err(RunError::GateWeakened { files, log }.into())
        }
        Some(GateFault::NotProven) => Err(RunError::NotProven {
            log: log(run_files::NEW_TESTS),
        }
        .into()),
        None => Ok(()),
    }
}

/// Shows the verdict to the user.
pub fn report(context: &Context<'_>, record: &GateRecord) {
    for line in record.summary() {
        context.notice(line);
    }
}

impl PassedChange<'_> {
    /// Returns the name of a build's log; for an attempt other than the first, it begins with the name of the attempt's
    /// step.
    fn log(&self, name: &str) -> String {
        let step = self.apart.map(|(_, step)| step.clone());
        run_files::of_verdict(&step.unwrap_or(StepId::INITIAL), name)
    }
}

/// Returns the effect of a change on the gate.
pub fn gate_change(context: &Context<'_>, changes: &[FileChange]) -> GateChange {
    changed(context, changes).gate_change()
}

fn changed<'f>(context: &Context<'_>, changes: &'f [FileChange]) -> Changed<'f> {
    let root = context.project.root();
    let commands = build_commands(root, changes);
    let data = data::named(root, changes, &commands);
    Changed::of(changes, &commands).with_data(&data)
}

struct Judge<'j, 'c, 'r> {
    context: &'c Context<'c>,
    how: BuildOptions<'c>,
    run: &'j mut Run<'r>,
    changed: Changed<'j>,
    change: PassedChange<'j>,
    /// The log of the decisive build with the old gate.
    old_log: &'static str,
    /// The builds, once one was needed.
    builds: Option<Builds<'c>>,
}

impl<'c> Judge<'_, 'c, '_> {
    /// Builds the new code with the old gate; if that fails, without the tests that the query names, which are
    /// `excused` if that passes.
    fn old_gate(&mut self, excused: &mut Vec<String>) -> Result<OldGate, Interrupted> {
        let mut end = OldGate::NotRun;
        if self.changed.has_gate() {
            let tree = self.changed.tree(Side::New, Side::Old, None);
            end = match self.ending(&tree, run_files::OLD_GATE)? {
                Ending::Passed => OldGate::Passed,
                Ending::NotBuilt => OldGate::Inconclusive,
                _ => OldGate::Failed,
            };
        }
        let query = self.change.query;
        let named = self.changed.named(query);
        if end == OldGate::Failed && !named.is_empty() {
            let tree = self.changed.tree(Side::New, Side::Old, Some(query));
            let rest = if tree.is_empty() {
                Ending::Passed
            } else {
                self.ending(&tree, run_files::OLD_GATE_REST)?
            };
            match rest {
                Ending::Passed => *excused = named,
                Ending::NotBuilt => end = OldGate::Inconclusive,
                _ => {}
            }
        }
        // The rest of the old gate may not fit the new code.
        let loud = Some(self.changed.tree_without_silencers(query))
            .filter(|tree| end == OldGate::Inconclusive && !tree.is_empty());
        let check = self.changed.tree_with_check(query);
        for (tree, log) in [(loud, run_files::OLD_LINTS), (check, run_files::OLD_CHECK)] {
            if let Some(tree) = tree.filter(|_| end != OldGate::Failed)
                && let Ending::TestFailed | Ending::Failed = self.ending(&tree, log)?
            {
                (end, self.old_log) = (OldGate::Failed, log);
            }
        }
        let is_unclear = self.changed.is_unclear() && end != OldGate::Failed;
        Ok(if is_unclear {
            OldGate::Inconclusive
        } else {
            end
        })
    }

    /// Builds the old code with the new tests.
    fn new_tests(&mut self) -> Result<NewTests, Interrupted> {
        if self.changed.tests().all(|(_, [_, new])| new.is_empty()) {
            return Ok(NewTests::None);
        }
        // If no code has changed, the build has passed on that tree.
        let ending = if self.changed.has_code() {
            let tree = self.changed.tree(Side::Old, Side::New, None);
            self.ending(&tree, run_files::NEW_TESTS)?
        } else {
            Ending::Passed
        };
        Ok(match ending {
            Ending::Passed if self.changed.has_orphans() => NewTests::Inconclusive,
            Ending::Passed if self.changed.tree_with_check(self.change.query).is_some() => {
                NewTests::Inconclusive
            }
            Ending::Passed => NewTests::NotDiscriminating,
            Ending::TestFailed => NewTests::Proven,
            _ => NewTests::Inconclusive,
        })
    }

    /// Builds a tree that differs from the run's in these files.
    fn ending(
        &mut self,
        tree: &[(&str, Option<FileState>)],
        log: &str,
    ) -> Result<Ending, Interrupted> {
        self.context.interrupt.check()?;
        self.build(tree, log).or_else(|error| {
            self.context.interrupt.check()?;
            self.run.warn(format!("the gate is not judged: {error}"));
            Ok(Ending::NotBuilt)
        })
    }

    fn build(&mut self, tree: &[(&str, Option<FileState>)], name: &str) -> Result<Ending, Error> {
        self.wait_for_the_next_second()?;
        let builds = match self.builds.take() {
            Some(builds) => builds,
            None => self.new_builds()?,
        };
        let build = |scratch: &Scratch| {
            self.lay(scratch, tree)?;
            let mut log = self.run.log.named_build(&self.change.log(name))?;
            let report = builds.build_in(scratch, &mut log)?;
            let output = log.finish(&describe(report.status))?;
            Ok((report, output))
        };
        let built = match self.change.apart {
            None => build(&builds::fork(self.context)?),
            Some((pin, _)) => pin.build(self.context, build),
        };
        self.builds = Some(builds);
        let (report, output) = built?;
        let tests: Vec<&str> = self.changed.tests().map(|(path, _)| path).collect();
        let ending = Ending::of(report.status, &output.text, &tests);
        let has_ended = matches!(report.status, BuildStatus::Exited(_));
        let only_silences = name == run_files::OLD_LINTS || self.changed.only_silences();
        Ok(match ending {
            // The code can be built when these lints are silenced.
            Ending::NotBuilt if has_ended && only_silences => Ending::Failed,
            // A program that fits only the old code is not a check.
            _ if name == run_files::OLD_CHECK && MISFIT.is_match(&output.text) => Ending::NotBuilt,
            ending => ending,
        })
    }

    /// Writes these files to a tree and, if an attempt began from that tree, the rest of the change.
    fn lay(&self, scratch: &Scratch, tree: &[(&str, Option<FileState>)]) -> Result<(), PathError> {
        let is_apart = self.change.apart.is_some();
        let is_laid = |path: &str| tree.iter().any(|(laid, _)| *laid == path);
        let rest = self
            .change
            .files
            .iter()
            .filter(|change| is_apart && !is_laid(&change.path))
            .map(|change| (change.path.as_str(), change.after.as_ref()));
        let tree = tree.iter().map(|(path, state)| (*path, state.as_ref()));
        for (path, state) in tree.chain(rest) {
            // For an attempt, only contents are known, so the permissions stay.
            let mode = |state: &FileState| (!is_apart).then_some(state.mode);
            let written = match state {
                Some(state) => scratch.write(path, &state.content, mode(state)),
                None => scratch.remove(path),
            };
            written.map_err(PathError::of("write", path))?;
        }
        Ok(())
    }

    /// Prepares builds; a change that passed in a sandbox is built in one.
    fn new_builds(&self) -> Result<Builds<'c>, Error> {
        let mut built = self
            .run
            .record
            .steps
            .iter()
            .filter_map(|step| step.build.as_ref());
        let is_sandboxed = built.any(|build| build.sandbox != SandboxMode::Off);
        Builds::after(self.context, self.how, is_sandboxed)
    }

    /// Waits until files written now are newer than the changed ones in whole seconds, which interpreters compare.
    fn wait_for_the_next_second(&self) -> Result<(), Interrupted> {
        let second = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = second(self.context.clock.now().into());
        let root = self.context.project.root();
        let changed = self
            .changed
            .paths()
            .filter_map(|path| root.join(path).metadata().ok());
        let mut times = changed.filter_map(|found| found.modified().ok());
        if times.any(|time| second(time).as_secs() == now.as_secs()) {
            let next = Duration::from_secs(now.as_secs() + 1);
            self.context.interrupt.sleep(next.saturating_sub(now))?;
        }
        Ok(())
    }
}
