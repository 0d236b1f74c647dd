//! The proof that applied edits work: `build.sh` passes, and has not changed the files that it is judged by.

use super::active::Run;
use super::builds::{BuildOptions, Builds, Built, describe};
use super::context::Context;
use super::tree::RunTree;
use crate::exec::build_script::BuildStatus;
use crate::exec::process::ProcessError;
use crate::record::run_files::GATE;
use crate::record::run_log::BuildLog;
use crate::sys::error::Error;
use crate::sys::text::line_end;

/// A runner of builds that checks the gate after each.
pub struct Proof<'c> {
    context: &'c Context<'c>,
    how: BuildOptions<'c>,
    /// True if passing trees are always remembered.
    remembers: bool,
    builds: Builds<'c>,
}

impl<'c> Proof<'c> {
    /// Records the state of the gate before anything is changed, and finds a sandbox for builds.
    ///
    /// # Errors
    /// Fails if a file cannot be examined, or a required sandbox is not available.
    pub fn new(
        context: &'c Context<'c>,
        how: BuildOptions<'c>,
        remembers: bool,
    ) -> Result<Self, Error> {
        Ok(Self {
            builds: Builds::new(context, how)?,
            context,
            how,
            remembers,
        })
    }

    /// Runs a build. Returns its status, and the report for the model.
    ///
    /// # Errors
    /// Fails if the build could not be run, or has changed the files that it is judged by.
    pub fn build(
        &mut self,
        run: &mut Run<'_>,
        tree: &mut RunTree<'_>,
        log: BuildLog<'_>,
    ) -> Result<(BuildStatus, String), Error> {
        self.context.interrupt.check()?;
        let trees = self.how.passed_trees(self.context);
        let is_remembered = self.remembers || trees.are_kept();
        let before = is_remembered.then(|| trees.digest()).flatten();
        let ended = self.builds.build(run.spent(), log, true);
        tree.observe(run);
        run.record.warnings.extend(self.builds.uncontained.take());
        let built = ended.inspect_err(|error| self.warn_of_gate(run, error))?;
        note(run, &built);
        run.log_step()?;
        // The build's own result does not count here: it may have come from a changed gate.
        self.check_gate(run)?;
        if built.status.passed()
            && let Err(unwritten) = trees.remember(before)
        {
            run.warn(unwritten.to_string());
        }
        Ok((built.status, with_timeout_note(built.output, built.status)))
    }

    /// Warns if a build that did not complete has changed the gate.
    fn warn_of_gate(&self, run: &mut Run<'_>, error: &Error) {
        // If the project itself was moved, its path now holds something else.
        let may_have_run = |error: &ProcessError| !matches!(error, ProcessError::Sandbox(_));
        if error.downcast_ref().is_some_and(may_have_run)
            && let Err(changed) = self.check_gate(run)
        {
            run.warn(changed.to_string());
        }
    }

    fn check_gate(&self, run: &mut Run<'_>) -> Result<(), Error> {
        let Some(changed) = self.builds.gate_change()? else {
            return Ok(());
        };
        if let Err(unlogged) = run.log.text(GATE, &changed.diff) {
            run.warn(unlogged.to_string());
        }
        Err(changed.into())
    }
}

/// Records a build of the current step, and reports its warnings.
pub fn note(run: &mut Run<'_>, built: &Built) {
    run.warn_all(&built.warnings);
    run.note(|step| {
        step.build = Some(built.record.clone());
        step.findings.clone_from(&built.findings);
    });
}

/// Adds a note if the build timed out: the model cannot tell from the output alone.
fn with_timeout_note(output: String, status: BuildStatus) -> String {
    let BuildStatus::TimedOut(_) = status else {
        return output;
    };
    let line_end = line_end(&output);
    format!("{output}{line_end}[build.sh was {}]\n", describe(status))
}
