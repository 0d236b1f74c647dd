//! The commit workflow: ask, verify, apply, build, and repair up to three times.

use std::collections::BTreeMap;
use std::path::Path;

use super::run::Run;
use super::run::builds::{BuildOptions, Builds, describe, record};
use super::run::closing;
use super::run::gate::Gate;
use super::run::ready::{self, Ready};
use super::run::tree::RunTree;
use super::{Context, Failure, ModelChoice, Outcome};
use crate::cli::OnFailure;
use crate::edit::{self, PathPolicy, VerifiedEdits, VerifyError};
use crate::exec::build_script::{BuildError, BuildStatus};
use crate::exec::hosts::AllowedHost;
use crate::exec::sandbox::SandboxProblem;
use crate::model::REPAIRS;
use crate::model::prompt::{Prompt, Replacement};
use crate::model::{Reply, StepId};
use crate::record::run_files::GATE;
use crate::record::run_log::BuildLog;
use crate::sys::text::line_end;
use crate::ui::Event;
use crate::workflow::error::{Error, Exit};

/// How a commit is to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitOptions {
    /// Where replies come from.
    pub choice: ModelChoice,
    /// How builds are run.
    pub build: BuildOptions,
    /// What builds may reach, in a strict sandbox.
    pub hosts: Vec<AllowedHost>,
    /// Whether a reply may leave code out.
    pub allow_elision: bool,
    /// What becomes of the edits when the run fails.
    pub on_failure: OnFailure,
    /// Whether the whole change is shown at the end.
    pub show_diff: bool,
}

/// Runs the workflow.
///
/// # Errors
/// When the build does not pass on an applied reply, for whatever reason.
pub fn commit(context: &Context<'_>, options: &CommitOptions) -> Result<Outcome, Failure> {
    let ready = ready::check(context, &options.choice, Some(options.build))?;
    let mut run = Run::start(context, "commit", "committing-code")?;
    run.begin(&ready);
    let mut tree = RunTree::new(context, &run).with_shown(ready.shown.clone());
    let mut replacements = Replacements::default();
    let commit = Commit::new(context, options);
    let result = commit.and_then(|mut commit| {
        commit.until_the_build_passes(&mut run, &ready, &mut tree, &mut replacements)
    });
    match &result {
        // Where the project itself was moved, what is at its path now is something else.
        Err(Error::Build(BuildError::Sandbox(SandboxProblem::Moved(_)))) => {}
        Err(error) if options.on_failure == OnFailure::Revert || error.exit() == Exit::LocalIo => {
            tree.put_back(&mut run);
        }
        _ => {}
    }
    closing::review(context, &mut run, &tree, replacements.files());
    tree.note_lost(&mut run);
    let outcome = run.finish(result, |run| tree.put_back(run));
    tree.end();
    if options.show_diff {
        return closing::with_diff(context, outcome);
    }
    outcome
}

struct Commit<'c> {
    context: &'c Context<'c>,
    options: &'c CommitOptions,
    builds: Builds<'c>,
    gate: Gate,
}

impl<'c> Commit<'c> {
    fn new(context: &'c Context<'c>, options: &'c CommitOptions) -> Result<Self, Error> {
        let gate = Gate::new(context.project.root(), context.home())?;
        let repositories = gate.repositories().map(Path::to_path_buf).collect();
        Ok(Self {
            context,
            options,
            builds: Builds::new(context, options.build, &options.hosts, repositories)?,
            gate,
        })
    }

    fn until_the_build_passes(
        &mut self,
        run: &mut Run<'_>,
        ready: &Ready<'_>,
        tree: &mut RunTree<'_>,
        replacements: &mut Replacements,
    ) -> Result<String, Error> {
        let inputs = &ready.inputs;
        let mut step = StepId::INITIAL;
        let mut prompt = Prompt::initial(inputs);
        loop {
            let (_, edits) = run.ask(&ready.models, &step, prompt, |reply| self.verify(reply))?;
            let edits = edits?;
            for warning in edits.warnings() {
                run.warn(warning.clone());
            }
            tree.check(run, &edits)?;
            // Opened before anything changes, so that a log that cannot be written changes nothing.
            let log = run.log.build(&step)?;
            tree.apply(run, &edits)?;
            run.log_step()?;
            replacements.remember(&edits);
            let (status, output) = self.build(run, tree, log)?;
            if status.passed() {
                return Ok(replacements.summary(step.number));
            }
            if step.number == REPAIRS {
                return Err(Error::BuildFailed {
                    repairs: REPAIRS,
                    status: describe(status),
                });
            }
            tree.look_again();
            step = StepId::repair(step.number + 1);
            prompt = Prompt::repair(output, inputs, replacements.for_query());
        }
    }

    /// Takes the reply apart and holds all of it against the policy.
    fn verify(&self, reply: &Reply) -> Result<VerifiedEdits, VerifyError> {
        let parsed = edit::parse(&reply.text);
        let policy = PathPolicy::load(self.context.project.root(), self.context.program)?
            .allow_elision(self.options.allow_elision);
        policy.verify(parsed)
    }

    /// Builds; how that has ended, and what the next query is told of it.
    fn build(
        &mut self,
        run: &mut Run<'_>,
        tree: &mut RunTree<'_>,
        mut log: BuildLog<'_>,
    ) -> Result<(BuildStatus, String), Error> {
        self.context.interrupt.check()?;
        self.gate.before_build()?;
        let spent = run.spent;
        self.context.reporter.event(&Event::Building { spent });
        let built = tree.flushing(run, || self.builds.run(&mut log));
        run.record.warnings.extend(self.builds.take_warning());
        let report = match built {
            Ok(report) => report,
            Err(error) => {
                // That the log is unfinished follows from what stopped the build.
                let _ = log.finish(&error.to_string());
                self.warn_of_gate(run, &error);
                return Err(error.into());
            }
        };
        for refusal in self.builds.new_refusals() {
            run.warn(format!("build.sh could not reach a host: {refusal}"));
        }
        if report.left_behind && !matches!(report.status, BuildStatus::TimedOut(_)) {
            run.warn("build.sh has left something running that held its output: it was ended, where it could be, and what it still had to print is not in the log".to_owned());
        }
        let status = describe(report.status);
        let output = log.finish(&status)?;
        if !output.redacted.is_empty() {
            run.warn(format!(
                "the build printed secrets, which are neither in its log nor sent: {}",
                output.redacted.join(", ")
            ));
        }
        let passed = report.status.passed();
        self.context.reporter.event(&Event::Built {
            status: status.clone(),
            passed,
            took: report.took,
        });
        let record = record(&report, self.builds.record());
        run.note(|step| step.build = Some(record));
        run.log_step()?;
        // Whatever the build says of itself: it may have said it of a gate of its own.
        self.check_gate(run)?;
        Ok((report.status, with_timeout_note(output.text, report.status)))
    }

    /// A build that has not come to its end may have changed the gate all the same.
    fn warn_of_gate(&self, run: &mut Run<'_>, error: &BuildError) {
        // Where the project itself was moved, what is at its path now is something else.
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

/// The model cannot know from the output alone that the time was over.
fn with_timeout_note(output: String, status: BuildStatus) -> String {
    let BuildStatus::TimedOut(_) = status else {
        return output;
    };
    let line_end = line_end(&output);
    format!("{output}{line_end}[build.sh was {}]\n", describe(status))
}

/// The latest state of every file that a reply of this run changed; `None`: it was removed.
#[derive(Debug, Default)]
struct Replacements(BTreeMap<String, Option<String>>);

impl Replacements {
    fn remember(&mut self, edits: &VerifiedEdits) {
        let written = edits.written();
        let written = written.map(|(path, content)| (path.to_owned(), Some(content.to_owned())));
        let removed = edits.removed().map(|path| (path.to_owned(), None));
        self.0.extend(written.chain(removed));
    }

    fn files(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let files = self.0.iter();
        files.map(|(path, content)| (path.as_str(), content.as_deref()))
    }

    fn for_query(&self) -> impl Iterator<Item = (&str, Replacement<'_>)> {
        let state = |content: Option<_>| content.map_or(Replacement::Removed, Replacement::Written);
        self.files()
            .map(move |(path, content)| (path, state(content)))
    }

    fn summary(&self, repairs: u16) -> String {
        let written = self.0.values().filter(|state| state.is_some()).count();
        let removed = self.0.len() - written;
        let repairs = match repairs {
            0 => "at the first try".to_owned(),
            1 => "after 1 repair".to_owned(),
            n => format!("after {n} repairs"),
        };
        format!("done: build.sh passed {repairs}; {written} written, {removed} removed")
    }
}
