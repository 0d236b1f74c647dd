//! The proof that applied edits work: `build.sh` passes, and has not changed the files that it is judged by.

use std::path::Path;

use super::active::Run;
use super::baseline::Baseline;
use super::builds::{Builds, describe, record};
use super::context::Context;
use super::gate::Gate;
use super::tree::RunTree;
use crate::exec::build_script::{BuildError, BuildStatus};
use crate::record::event::Event;
use crate::record::run_files::GATE;
use crate::record::run_log::BuildLog;
use crate::run::past::findings;
use crate::sys::error::Error;
use crate::sys::text::line_end;

/// Runs builds, and checks the gate after each.
pub struct Proof<'c> {
    context: &'c Context<'c>,
    how: Baseline<'c>,
    /// True if passing trees are always remembered.
    remembers: bool,
    builds: Builds<'c>,
    gate: Gate,
}

impl<'c> Proof<'c> {
    /// Records the state of the gate before anything is changed, and finds a sandbox for builds.
    ///
    /// # Errors
    /// When a file cannot be examined, or a required sandbox is not available.
    pub fn new(
        context: &'c Context<'c>,
        how: Baseline<'c>,
        remembers: bool,
    ) -> Result<Self, Error> {
        let gate = Gate::new(context.project.root(), context.home())?;
        let repositories = gate.repositories().map(Path::to_path_buf).collect();
        Ok(Self {
            builds: Builds::new(context, how.build, how.hosts, repositories)?,
            context,
            how,
            remembers,
            gate,
        })
    }

    /// Runs a build. Returns its status, and the report for the model.
    ///
    /// # Errors
    /// When the build could not be run, or has changed the files that it is judged by.
    pub fn build(
        &mut self,
        run: &mut Run<'_>,
        tree: &mut RunTree<'_>,
        mut log: BuildLog<'_>,
    ) -> Result<(BuildStatus, String), Error> {
        self.context.interrupt.check()?;
        self.gate.before_build()?;
        let trees = self.how.passed_trees(self.context);
        let is_remembered = self.remembers || trees.are_kept();
        let before = is_remembered.then(|| trees.digest()).flatten();
        let spent = run.spent;
        self.context.reporter.event(&Event::Building { spent });
        let built = self.builds.run(&mut log);
        tree.observe(run);
        run.record.warnings.extend(self.builds.take_warning());
        let report = match built {
            Ok(report) => report,
            Err(error) => {
                // An error is ignored: the one that stopped the build explains the unfinished log.
                let _ = log.finish(&error.to_string());
                self.warn_of_gate(run, &error);
                return Err(error.into());
            }
        };
        let status = describe(report.status);
        let (output, warnings) = self.builds.finish(&report, log)?;
        for warning in warnings {
            run.warn(warning);
        }
        let passed = report.status.passed();
        self.context.reporter.event(&Event::Built {
            status: status.clone(),
            passed,
            reasons: if passed {
                Vec::new()
            } else {
                findings::reasons(&output.text)
            },
            took: report.took,
        });
        let record = record(&report, self.builds.record());
        run.note(|step| step.build = Some(record));
        run.log_step()?;
        // The build's own result does not count here: it may have come from a changed gate.
        self.check_gate(run)?;
        if passed && let Err(unwritten) = trees.remember(before) {
            run.warn(unwritten.to_string());
        }
        Ok((report.status, with_timeout_note(output.text, report.status)))
    }

    /// Warns if a build that did not complete has changed the gate.
    fn warn_of_gate(&self, run: &mut Run<'_>, error: &BuildError) {
        // If the project itself was moved, its path now holds something else.
        if !matches!(error, BuildError::Sandbox(_))
            && let Err(changed) = self.check_gate(run)
        {
            run.warn(changed.to_string());
        }
    }

    fn check_gate(&self, run: &mut Run<'_>) -> Result<(), Error> {
        let context = self.context;
        let changed = self.gate.change(&context.project, &context.key_files())?;
        let Some(changed) = changed else {
            return Ok(());
        };
        if let Err(unlogged) = run.log.text(GATE, &changed.diff) {
            run.warn(unlogged.to_string());
        }
        Err(changed.into())
    }
}

/// Adds a note if the build timed out: the model cannot tell from the output alone.
fn with_timeout_note(output: String, status: BuildStatus) -> String {
    let BuildStatus::TimedOut(_) = status else {
        return output;
    };
    let line_end = line_end(&output);
    format!("{output}{line_end}[build.sh was {}]\n", describe(status))
}
