//! The baseline build: checks that the project passes before anything is sent.
//!
//! Runs `build.sh` in the same way as the builds of a run, unless the tree has passed before. Writes the log to `logs`,
//! from where it is moved into the run's folder, and the digests of passing trees to `agent-config`, where no sandboxed
//! build can write.

use std::fs;

use super::builds::{BuildOptions, Builds, explain};
use super::context::Context;
use super::error::RunError;
use super::not_ready::NotReady;
use super::passed_trees::PassedTrees;
use crate::model::price::Usd;
use crate::record::run_files::BASELINE;
use crate::record::run_log::{LogError, RunLog};
use crate::record::step::BuildRecord;
use crate::sys::error::Error;

/// Number of trailing lines shown when the build fails.
const LAST_LINES: usize = 20;

/// The result of a baseline build that passed.
#[derive(Debug, Default)]
pub struct Passed {
    /// The build; `None` if the tree has passed before.
    pub build: Option<BuildRecord>,
    /// Warnings to the user.
    pub warnings: Vec<String>,
    /// True if the build has changed the tree, so anything read from it earlier is out of date.
    pub has_changed: bool,
}

impl BuildOptions<'_> {
    /// Builds the project in its current state, unless it has passed before. The caller must hold the project's lock.
    ///
    /// # Errors
    /// Fails if the build fails or cannot be run.
    pub fn prove(self, context: &Context<'_>) -> Result<Passed, Error> {
        let passed = self.passed_trees(context);
        let before = passed.digest();
        if passed.contains(before) {
            context.notice("baseline: build.sh has passed on this tree before");
            return Ok(Passed::default());
        }
        let (record, mut warnings) = self.run_baseline(context)?;
        let after = passed.digest();
        if let Err(unwritten) = passed.remember(before) {
            warnings.push(unwritten.to_string());
        }
        Ok(Passed {
            build: Some(record),
            warnings,
            has_changed: before.is_none() || before != after,
        })
    }

    /// Returns the trees that have passed with these build options.
    pub fn passed_trees<'c>(&self, context: &'c Context<'_>) -> PassedTrees<'c> {
        let (passed, sockets) = (context.sandbox.passed, context.sandbox.allowed_sockets);
        let how = format!("{self:?} {passed:?} {sockets:?}");
        PassedTrees::new(&context.project, how)
    }

    fn run_baseline(self, context: &Context<'_>) -> Result<(BuildRecord, Vec<String>), Error> {
        context.interrupt.check()?;
        context.notice("baseline: build.sh runs on the project as it is");
        let mut builds = Builds::new(context, self)?;
        let log = RunLog::baseline(context.project.home(), context.redactor)?;
        // The error gives the reasons in more detail.
        let built = builds.build(Usd::ZERO, log, false)?;
        if let Some(changed) = builds.gate_change()? {
            return Err(NotReady::of(RunError::BaselineChangesGate(changed.to_string())).into());
        }
        if !built.status.passed() {
            let (status, end) = (explain(built.status), end_of(&built.output));
            return Err(NotReady::of(RunError::BaselineFails { status, end }).into());
        }
        let uncontained = builds.uncontained.take().into_iter();
        Ok((built.record, uncontained.chain(built.warnings).collect()))
    }
}

/// Returns the last lines of an output, each on an indented line.
fn end_of(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(LAST_LINES));
    last.map(|line| format!("\n    {line}")).collect()
}

impl Passed {
    /// Moves the build's log into the folder of the run that follows.
    ///
    /// # Errors
    /// Fails if it cannot be moved.
    pub fn hand_over(&self, context: &Context<'_>, log: &RunLog<'_>) -> Result<(), LogError> {
        if self.build.is_none() {
            return Ok(());
        }
        let from = context.project.logs().join(BASELINE);
        let to = context.project.home().join(log.name()).join(BASELINE);
        fs::rename(from, &to).map_err(LogError::of("write", to))
    }
}
