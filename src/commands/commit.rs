//! The commit workflow: asks for edits, verifies, applies and builds them, and repairs them up to three times.

mod asking;
mod attempts;
mod replacements;
mod search;

use std::mem;
use std::path::Path;

use self::asking::Asking;
use self::attempts::Attempts;
use self::replacements::{Replacements, Work, shown};
use self::search::CommitSearch;
use super::cli::gate::GateMode;
use super::cli::replies::{OnFailure, Strategy};
use super::command_line::Cli;
use super::error::CommandError;
use super::query;
use crate::edit::VerifiedEdits;
use crate::exec::process::ProcessError;
use crate::exec::sandbox::SandboxProblem;
use crate::model::prompt::Prompt;
use crate::model::{Delivery, ReplyFormat, StepId};
use crate::record::choice::ChoiceRecord;
use crate::record::result::{RunEdits, TreeState};
use crate::record::run_files::{Artifact, COMMIT};
use crate::record::run_log::BuildLog;
use crate::record::step::Step;
use crate::run::active::Run;
use crate::run::baseline::Passed;
use crate::run::builds::explain;
use crate::run::context::{Context, ModelChoice};
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::present::PresentFile;
use crate::run::proof::Proof;
use crate::run::ready::Ready;
use crate::run::resumption::{ResumedTree, Resumption};
use crate::run::search::Search;
use crate::run::selection::{Models, RecordedReplies};
use crate::run::tree::{Brought, RunTree};
use crate::run::verdict::{self, PassedChange};
use crate::run::{closing, ready};
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::files::PathError;

/// Returns the model and the inputs that the flags select.
///
/// # Errors
/// Fails if the query is blank, or cannot be read.
pub fn choice(context: &Context<'_>, cli: &Cli) -> Result<ModelChoice, Error> {
    let (model, others) = attempts::models(cli)?;
    Ok(ModelChoice {
        replay: cli.replay.clone(),
        resume: cli.replies.resume.clone(),
        delivery: if cli.stream || !others.is_empty() {
            Delivery::Streamed
        } else {
            Delivery::Whole
        },
        allow_secrets: cli.allow_secrets,
        require_clean: cli.gate.require_clean,
        inputs: query::inputs(context, &cli.inputs)?,
        require_model: cli.calls.require_model,
        tier: cli.calls.tier,
        max_cost: cli.calls.max_cost,
        reply_format: cli.replies.reply_format,
        others,
        ..ModelChoice::streamed(model.as_deref(), cli.timeout)
    })
}

/// Runs a commit.
///
/// # Errors
/// Fails unless an applied reply passes the build.
pub fn commit(context: &Context<'_>, cli: &Cli, choice: &ModelChoice) -> Result<Outcome, Failure> {
    let root = context.project.root();
    // A separate interrupt stops attempts without a signal.
    let stop = context.interrupt.child();
    let context = &Context {
        interrupt: &stop.map_err(PathError::of("listen for signals in", root))?,
        ..context.clone()
    };
    let (mut ready, baseline, mut resumed) = prepare(context, cli, choice)?;
    let are_several = !ready.others.is_empty();
    let searches = cli.replies.strategy == Strategy::Search || are_several;
    if searches && ready.code.is_some() {
        return Err(Error::from(CommandError::SearchInPart).into());
    }
    if searches && resumed.has_edits() {
        return Err(Error::from(CommandError::SearchOnEdits).into());
    }
    let mut work = begin(context, &ready, baseline, &mut resumed)?;
    let code = ready.code.take();
    let proof = Proof::new(context, cli.build.options(), cli.build.baseline);
    let reverts = cli.on_failure() == OnFailure::Revert;
    let result = proof.and_then(|proof| {
        let mut commit = Commit {
            asking: Asking {
                context,
                cli,
                query: ready.inputs.query.clone(),
                resumed,
                code,
            },
            proof,
            repairs: 0,
            are_several,
            search: searches.then(|| CommitSearch {
                context,
                search: Search::default(),
                begun: ready.shown.clone(),
            }),
        };
        let result = commit.until_the_build_passes(&mut work, &mut ready);
        // A search that ends early keeps the best state.
        if let (Err(error), Some(search)) = (&result, &commit.search)
            && !reverts
            && !is_moved(error)
            && error.exit() != Exit::LocalIo
        {
            search.keep_best(&mut work);
        }
        result
    });
    end(context, cli, work, &ready.inputs.query, result)
}

/// Starts the run and its record, with what the build before the change and resumed runs have left.
fn begin<'a>(
    context: &'a Context<'a>,
    ready: &Ready<'_>,
    baseline: Option<Passed>,
    resumed: &mut ResumedTree,
) -> Result<Work<'a>, Failure> {
    let mut run = Run::start(context, COMMIT)?;
    run.begin(ready);
    if let Some(passed) = baseline {
        if let Err(unmoved) = passed.hand_over(context, &run.log) {
            run.warn(unmoved.to_string());
        }
        run.record.baseline = passed.build;
        run.warn_all(&passed.warnings);
    }
    run.warn_all(&resumed.warnings);
    let mut tree = RunTree::new(context, &run).with_shown(ready.shown.clone());
    tree.shown.adopt(&resumed.own);
    tree.resumed = mem::take(&mut resumed.before);
    Ok(Work {
        run,
        tree,
        replacements: Replacements::default(),
    })
}

/// Judges the change, keeps it or puts the tree back, and ends the run.
fn end(
    context: &Context<'_>,
    cli: &Cli,
    mut work: Work<'_>,
    query: &str,
    mut result: Result<String, Error>,
) -> Result<Outcome, Failure> {
    let reverts = cli.on_failure() == OnFailure::Revert;
    work.run.record.edits = edits_of(&work);
    let (mut run, mut tree, replacements) = (work.run, work.tree, work.replacements);
    let is_as_before = tree.is_as_before();
    if result.is_ok() && is_as_before && cli.replies.require_edits {
        result = Err(CommandError::NothingChanged.into());
    }
    match &result {
        Err(error) if is_moved(error) && !tree.is_apart() => {}
        Err(error) if reverts || error.exit() == Exit::LocalIo => {
            closing::take_back(&mut run, &mut tree);
        }
        // Changes that resumed runs left on disk are part of this change.
        _ if !is_as_before => run.record.tree = TreeState::Changed,
        _ if tree.has_changed_nothing() => run.record.tree = TreeState::Unchanged,
        _ => {}
    }
    // The latest replies do not show the state of files changed by a resumed run.
    let files = tree.changed_in_all().into_iter().map(|path| {
        let after = replacements
            .files
            .get(path)
            .filter(|_| !tree.resumed.contains_key(path));
        (path, after.and_then(Option::as_deref))
    });
    let changes = closing::review(context, &mut run, &tree, files);
    let has_passed = result.is_ok();
    let change = PassedChange {
        files: &changes,
        unjudged: &[],
        query,
        apart: None,
    };
    result = judged(context, cli, &mut run, change, result);
    if has_passed && result.is_err() && reverts {
        closing::take_back(&mut run, &mut tree);
        run.record.stat = None;
    }
    let result = bring(&mut run, &mut tree, result);
    tree.note_lost(&mut run);
    let outcome = run.finish(result, |run| tree.put_back(run));
    tree.end();
    if cli.diff {
        return closing::with_diff(&context.project, outcome);
    }
    outcome
}

/// Judges a change that has passed its build by the gate, and by the warnings that the user denies.
fn judged<T>(
    context: &Context<'_>,
    cli: &Cli,
    run: &mut Run<'_>,
    change: PassedChange<'_>,
    result: Result<T, Error>,
) -> Result<T, Error> {
    if let Some(gate) = &run.record.gate {
        // The attempt was judged before it was taken.
        verdict::report(context, gate);
    } else if let (Ok(_), Some(how)) = (&result, cli.gate.gate) {
        let is_strict = how == GateMode::Strict;
        verdict::judge(context, cli.build.options(), run, change, is_strict)?;
    }
    match CommandError::denied(&run.record.warning_details, &cli.gate.deny_warnings) {
        Some(denied) if result.is_ok() => Err(denied.into()),
        _ => result,
    }
}

/// Applies the run's changes to the project if it works in a scratch tree. If that fails, they are discarded, unless
/// some have already been applied.
fn bring<T>(
    run: &mut Run<'_>,
    tree: &mut RunTree<'_>,
    result: Result<T, Error>,
) -> Result<T, Error> {
    let Err(error) = tree.bring(run, Brought::Replies) else {
        return result;
    };
    if tree.is_apart() {
        closing::drop_unapplied(run, tree);
        run.record.stat = None;
        run.record.choice.iter_mut().for_each(ChoiceRecord::forget);
        if let Some(search) = &mut run.record.search {
            (search.kept, search.why) = (None, None);
        }
    }
    if result.is_err() {
        run.warn(error.to_string());
    }
    result.and(Err(error))
}

/// Returns `true` if the project itself was moved, so that a different directory is now at its path.
fn is_moved(error: &Error) -> bool {
    let error = error.downcast_ref();
    matches!(error, Some(ProcessError::Sandbox(SandboxProblem::Moved(_))))
}

/// The starting point of a run: its prerequisites, the build of the unmodified project, and the state left by a resumed
/// run.
type Prepared<'c> = (Ready<'c>, Option<Passed>, ResumedTree);

/// Checks the prerequisites and, if requested, that the unmodified project passes its build.
fn prepare<'c>(
    context: &Context<'c>,
    cli: &Cli,
    choice: &ModelChoice,
) -> Result<Prepared<'c>, Error> {
    if let Some(run) = &choice.resume {
        return prepare_again(context, cli, choice, run);
    }
    let check = |choice: &_| ready::check(context, choice, Some(cli.build.options()));
    let mut ready = check(choice)?;
    let prove = || cli.build.options().prove(context);
    let baseline = cli.build.baseline.then(prove).transpose()?;
    if baseline.as_ref().is_some_and(|passed| passed.has_changed) {
        drop(ready);
        // Changes made by the build are not the user's.
        ready = check(&ModelChoice {
            require_clean: false,
            ..choice.clone()
        })?;
    }
    Ok((ready, baseline, ResumedTree::default()))
}

/// Prepares a resumed run with its query and replies.
fn prepare_again<'c>(
    context: &Context<'c>,
    cli: &Cli,
    choice: &ModelChoice,
    run: &Path,
) -> Result<Prepared<'c>, Error> {
    let resumption = Resumption::read(context, run)?;
    let choice = ModelChoice {
        inputs: resumption.inputs(&choice.inputs),
        resume: Some(resumption.folder.clone().into()),
        // Changes made by the earlier run are not the user's.
        require_clean: false,
        ..choice.clone()
    };
    let mut ready = ready::check(context, &choice, Some(cli.build.options()))?;
    let mut resumed = resumption.tree(context, choice.inputs.freshness)?;
    if let Some(lost) = resumed.lost.take() {
        if cli.gate.gate == Some(GateMode::Strict) || !cli.gate.deny_warnings.is_empty() {
            return Err(NotReady::of(lost).into());
        }
        resumed.warnings.push(lost.to_string());
    }
    context.notice(resumption.notice(&resumed));
    let replies = RecordedReplies::new(context, &resumption.folder, resumption.recorded())?;
    ready.models.recorded = Some(replies);
    ready.models.reasks = resumption.reasks() + cli.replies.reask;
    ready.models.repairs = resumption.repairs();
    Ok((ready, None, resumed))
}

struct Commit<'c> {
    asking: Asking<'c>,
    proof: Proof<'c>,
    /// The number of the repair in progress, or 0.
    repairs: u16,
    /// `true` if the run begins with several attempts.
    are_several: bool,
    /// The states seen, with `--strategy search`.
    search: Option<CommitSearch<'c>>,
}

impl Commit<'_> {
    fn until_the_build_passes(
        &mut self,
        work: &mut Work<'_>,
        ready: &mut Ready<'_>,
    ) -> Result<String, Error> {
        self.asking.log_shown(&work.run)?;
        let mut step = StepId::INITIAL;
        // The last build, if it failed.
        let mut failed: Option<FailedBuild> = None;
        if let Some(search) = self.search.as_mut().filter(|_| self.are_several) {
            let Asking { context, cli, .. } = self.asking;
            let attempts = Attempts { context, cli };
            let Some(output) = attempts.make(work, ready, search)? else {
                return Ok(work.replacements.summary(0, work.tree.is_as_before()));
            };
            let built = (Some(output), work.tree.read_again());
            (step, failed) = self.next_repair(&ready.models, built, work)?;
        }
        let inputs = &ready.inputs;
        // A description of earlier attempts, once a search starts over.
        let mut tried = String::new();
        loop {
            let prompt = |order, format| match &failed {
                None => Prompt::initial(inputs, order, format).with("tried before", &tried),
                Some(failed) => {
                    let files = failed.present.iter().map(PresentFile::for_query);
                    Prompt::repair(&failed.output, inputs, files, order, format)
                        .with("places named by the build", &failed.places)
                }
            };
            let (run, tree) = (&mut work.run, &mut work.tree);
            let sent = |path: &str| tree.shown.sent(path, &inputs.rollup);
            let asking = &mut self.asking;
            let edits = asking.ask(run, &ready.models, &mut step, prompt, &sent)?;
            let log = if let Some(applied) = self.asking.resumed.applied(&step) {
                run.note(|step| step.is_on_disk = true);
                // Log the step now, since a killed run is resumed from its record of the previous ones.
                run.log_step()?;
                work.replacements.remember_reply(applied, tree);
                if applied.output.is_some() {
                    let built = (applied.output.clone(), Vec::new());
                    (step, failed) = self.next_repair(&ready.models, built, work)?;
                    continue;
                }
                run.log.build(&step)?
            } else {
                let log = apply(run, tree, &step, &edits)?;
                work.replacements.remember(&edits);
                log
            };
            let (status, output) = self.proof.build(run, tree, log)?;
            if status.passed() {
                return Ok(work
                    .replacements
                    .summary(self.repairs, work.tree.is_as_before()));
            }
            if let Some(search) = &mut self.search {
                search.add(work, (&step, &edits), (status, output.clone()));
            }
            if self.repairs >= ready.models.repairs {
                let best = self.search.as_ref().and_then(CommitSearch::best);
                let (step, status) = best.unwrap_or((&step, status));
                return Err(CommandError::BuildFailed {
                    repairs: self.repairs,
                    status: explain(status),
                    log: work.run.log.path_of(step, Artifact::Build),
                    can_go_on: !self.are_several,
                }
                .into());
            }
            let mut output = Some(output);
            if let Some(search) = &self.search {
                output = search.restore_next(work)?;
                tried = search.search.tried();
            }
            let built = (output, work.tree.read_again());
            (step, failed) = self.next_repair(&ready.models, built, work)?;
        }
    }

    /// Returns the step of the next repair, with the failed build that has this output and changed these files. `None`
    /// as the output means that the repair does not follow a build.
    fn next_repair(
        &mut self,
        models: &Models<'_>,
        (output, changed): (Option<String>, Vec<String>),
        Work {
            tree, replacements, ..
        }: &mut Work<'_>,
    ) -> Result<(StepId, Option<FailedBuild>), Error> {
        self.repairs += 1;
        let step = StepId::repair(self.repairs);
        let Some(output) = output else {
            return Ok((step, None));
        };
        let format = models.model(&step).reply_format(&step);
        let search = (!self.asking.cli.allow_secrets).then_some(self.asking.context.redactor);
        let files = replacements.current(tree, search);
        // Whole files are repeated in full, so their states before the run need not be read.
        let is_read = self.asking.code.is_some() || format == ReplyFormat::Edits;
        let mut present = shown(files, is_read.then_some(&*tree));
        let mut places = String::new();
        if let Some(code) = &mut self.asking.code {
            let root = self.asking.context.project.root();
            present = code.read_again(present, changed, format, (root, search))?;
            tree.show(code.changed());
            places = code.places(&output, root);
        }
        let failed = FailedBuild {
            output,
            places,
            present,
        };
        Ok((step, Some(failed)))
    }
}

/// A failed build, with its context for a repair.
struct FailedBuild {
    output: String,
    /// The code around the locations named in the output, if only part of the code is sent.
    places: String,
    /// The files that the run has changed, and others whose earlier state is in the part of the code that was sent.
    present: Vec<PresentFile>,
}

/// Applies edits, and returns the log for the build that follows.
fn apply<'r>(
    run: &mut Run<'r>,
    tree: &mut RunTree<'_>,
    step: &StepId,
    edits: &VerifiedEdits,
) -> Result<BuildLog<'r>, Error> {
    run.warn_all(edits.warnings());
    tree.check(run, edits)?;
    // Open the log before any changes, so that a failure to open it leaves the project untouched.
    let log = run.log.build(step)?;
    tree.apply(run, edits)?;
    run.log_step()?;
    Ok(log)
}

/// Returns the net effect of the replies; `None` if none was applied.
fn edits_of(work: &Work<'_>) -> Option<RunEdits> {
    let (mut steps, made) = (work.run.record.steps.iter(), &work.replacements);
    let is_applied = steps.any(Step::is_applied);
    is_applied.then(|| match made.files.is_empty() {
        true if !made.has_same => RunEdits::None,
        false if !work.tree.is_as_before() => RunEdits::Made,
        _ => RunEdits::Same,
    })
}
