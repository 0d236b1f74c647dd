//! A resumed run: its recorded query and replies, and the state of the tree relative to them.
//!
//! Reads the run's folder and the files that it changed; changes nothing. Guarantees that a reply counts as applied
//! only if the disk still holds what the run left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::code_context::{CodeLimit, SeenCode};
use super::context::{Context, Freshness, InputOptions, QuerySource};
use super::error::RunError;
use super::not_ready::NotReady;
use super::shown::DiskFiles;
use crate::edit::Digest;
use crate::edit::changes::{LoggedChange, SavedFile};
use crate::model::prompt::Inputs;
use crate::model::{Purpose, REPAIRS, ReplyFormat, StepId};
use crate::project::Project;
use crate::project::changed_files::EditsRecord;
use crate::project::rollup::{self, RollupState};
use crate::record::run_files::COMMIT;
use crate::run::past::chain::{Chain, ChainedChange};
use crate::run::past::history::PastRun;
use crate::run::past::naming;
use crate::run::past::past_step::PastStep;
use crate::sys::error::Error;
use crate::sys::excerpt::Excerpt;
use crate::sys::excerpt::text::bounded;
use crate::sys::exit::Exit;
use crate::sys::files::{self, Links};
use crate::sys::numbers::counted;
use crate::sys::text::{escaped, first_lines};

/// Maximum number of files named.
const NAMED: usize = 20;

/// A run to resume, as read from its folder.
pub struct Resumption {
    /// The run's folder, relative to the root.
    pub folder: String,
    /// The run's inputs as they were sent.
    inputs: Inputs,
    /// The part of the code base that the run showed first, if there was a limit.
    shown: Option<SeenCode>,
    /// The steps with complete replies, in order.
    steps: Vec<PastStep>,
    /// True if all repairs were used up.
    used_up: bool,
    /// The number of the last repair requested, with or without a reply.
    last_repair: u16,
}

/// The state of the tree relative to a resumed run.
#[derive(Debug, Default)]
pub struct ResumedTree {
    /// The steps whose edits are on the disk.
    applied: BTreeMap<StepId, PastApplied>,
    /// The files that the run changed, if its edits are on the disk.
    pub own: Vec<String>,
    /// The same files before the first resumed run, even if others have changed them all since.
    pub before: BTreeMap<String, Option<SavedFile>>,
    /// The reason why the change as a whole is unknown; `None` if it is known.
    pub lost: Option<RunError>,
    /// Warnings to the user.
    pub warnings: Vec<String>,
}

/// A reply whose edits are on the disk.
#[derive(Debug)]
pub struct PastApplied {
    /// The reply's text.
    pub reply: String,
    /// The reply's format.
    pub format: ReplyFormat,
    /// The output of the build that followed; `None` if the build must be run again.
    pub output: Option<String>,
}

impl Resumption {
    /// Reads the named run.
    ///
    /// # Errors
    /// Fails if the run does not exist or cannot be resumed.
    pub fn read(context: &Context<'_>, run: &Path) -> Result<Self, Error> {
        let found = naming::find_asked(&context.project, run, context.today())?;
        let run = PastRun::read(&context.project, &found);
        let folder = run.relative();
        let not = |problem: RunError| Err(NotReady::of(problem).into());
        if run.workflow() != COMMIT {
            return not(RunError::OtherWorkflow(folder, "a change"));
        }
        let exit = run.record.as_ref().and_then(|record| record.exit.exit());
        if exit == Some(Exit::Done) {
            return not(RunError::NothingToResume(folder));
        }
        let mut steps = run.steps(&context.project);
        if steps.iter().any(|past| past.is_attempt) {
            return not(RunError::SeveralAttempts(folder));
        }
        let inputs = steps.first().and_then(|first| run.sent(&first.step));
        let Some(inputs) = inputs else {
            return not(RunError::NoQuery(folder));
        };
        // A step without a complete reply is asked again, as are all later ones.
        let repairs = steps
            .iter()
            .map(|past| &past.step)
            .filter(|step| step.purpose == Purpose::REPAIR);
        let last_repair = repairs.map(|step| step.number).max().unwrap_or_default();
        let whole = steps.iter().take_while(|past| past.is_whole()).count();
        steps.truncate(whole);
        Ok(Self {
            shown: SeenCode::of_run(&context.project.home().join(&folder)),
            folder,
            inputs,
            steps,
            used_up: exit == Some(Exit::BuildFailed),
            last_repair,
        })
    }

    /// Returns the inputs of the run, in place of the project's files.
    pub fn inputs(&self, given: &InputOptions) -> InputOptions {
        InputOptions {
            query: QuerySource::Recorded(self.inputs.clone()),
            limit: CodeLimit {
                shown: self.shown.clone(),
                ..CodeLimit::default()
            },
            ..given.clone()
        }
    }

    /// Returns the notice for the user.
    pub fn notice(&self, tree: &ResumedTree) -> String {
        if self.steps.is_empty() {
            return format!(
                "resuming {}: it has no whole reply to use again",
                self.folder
            );
        }
        let steps = counted(self.steps.len() as u64, "step");
        let edits = if tree.applied.is_empty() {
            "applied again"
        } else {
            "on disk already"
        };
        format!(
            "resuming {}: {steps} recorded, which cost nothing, {edits}",
            self.folder
        )
    }

    /// Returns the steps that need no call because their replies are recorded.
    pub fn recorded(&self) -> BTreeSet<StepId> {
        self.steps.iter().map(|past| past.step.id()).collect()
    }

    /// Returns the number of extra times that a rejected reply may be asked again: as often as recorded, plus once if
    /// the last reply was rejected.
    pub fn reasks(&self) -> usize {
        let asked = self.steps.iter().filter(|past| past.step.reask > 0).count();
        let is_open = self.steps.last();
        asked + usize::from(is_open.is_some_and(|past| past.step.rejected.is_some()))
    }

    /// Returns the number of the last repair allowed: raised by another full set if all were used up.
    pub fn repairs(&self) -> u16 {
        let whole = self.last_repair.next_multiple_of(REPAIRS).max(REPAIRS);
        let more = if self.used_up && self.last_repair == whole {
            REPAIRS
        } else {
            0
        };
        whole.saturating_add(more)
    }

    /// Compares the tree with the state before and after the run.
    ///
    /// # Errors
    /// Fails if the tree is in neither state, and stale files are not allowed.
    pub fn tree(&self, context: &Context<'_>, freshness: Freshness) -> Result<ResumedTree, Error> {
        let root = context.project.root();
        let run = PastRun::at(&context.project, &self.folder);
        let chain = Chain::read(&context.project, &run)?;
        let changes = chain.all_changes();
        let mut disk = DiskFiles::below(root);
        let now: BTreeMap<&String, Option<Digest>> = changes
            .keys()
            .map(|path| (path, disk.digest(path)))
            .collect();
        let is_as = |state: &dyn Fn(&String, &LoggedChange) -> Option<Digest>| {
            let mut changes = changes.iter();
            changes.all(|(path, chained)| now[path] == state(path, &chained.change))
        };
        let is_before = is_as(&|_, change| before(change));
        // The tree is as the run found it: it resumed another run, and its own edits were reverted.
        let last = chain.runs.first().map(|last| &last.log.files);
        let found = |path: &String, change: &LoggedChange| {
            let own = last.and_then(|last| last.get(path));
            own.map_or_else(|| after(change), before)
        };
        let is_found = !is_before && is_as(&found);
        let others =
            |(path, chained): &(&String, &ChainedChange)| now[*path] != after(&chained.change);
        let mut differing: Vec<String> = Vec::new();
        if !is_before && !is_found {
            differing.extend(changes.iter().filter(others).map(|(path, _)| path.clone()));
        }
        // Some or all of the edits are on the disk.
        let is_after = !is_before && differing.len() < changes.len();
        let is_own = |path: &str| changes.contains_key(path);
        if let Some(shown) = &self.shown {
            let other = shown.digests.iter().filter(|(path, shown)| {
                !is_own(path) && disk.digest(path).as_ref() != Some(*shown)
            });
            differing.extend(other.map(|(path, _)| path.clone()));
        } else {
            let sections = rollup::comparable(&self.inputs.rollup, root).unwrap_or_default();
            let is_other = |section: &rollup::RollupFile<'_>| {
                section.state != RollupState::Same && !is_own(section.path)
            };
            let other = sections.into_iter().filter(is_other);
            differing.extend(other.map(|section| section.path.to_owned()));
        }
        let mut found = ResumedTree::default();
        if !differing.is_empty() {
            let files = differing.iter().map(|path| format!("`{}`", escaped(path)));
            let problem = RunError::OtherTree {
                folder: self.folder.clone(),
                files: first_lines(files, NAMED),
            };
            if freshness != Freshness::Stale {
                return Err(NotReady::of(problem).into());
            }
            found.warnings.push(problem.to_string());
        }
        if is_after {
            found.applied = self.applied(is_found);
            found.own = changes.keys().cloned().collect();
        }
        if !is_before {
            let home = context.project.home();
            let saved = changes.into_iter().map(|(path, chained)| {
                let before = chained.change.before.as_ref();
                (
                    path,
                    before.map(|before| before.saved(home, &chained.folder)),
                )
            });
            found.before = saved.collect();
        }
        found.lost = lost(context.project.home(), chain.gap, &found.before);
        Ok(found)
    }

    /// Returns the replies whose edits are on the disk; with `found`, only those that the run itself found there. The
    /// last build is always repeated.
    fn applied(&self, found: bool) -> BTreeMap<StepId, PastApplied> {
        // It is unknown whether a killed run applied its last reply; applying it again does no harm.
        let has_edits = |edits: &EditsRecord| *edits != EditsRecord::default();
        let is_on_disk = |past: &&PastStep| {
            past.step.is_on_disk || !found && past.step.edits.as_ref().is_some_and(has_edits)
        };
        let steps: Vec<&PastStep> = self.steps.iter().filter(is_on_disk).collect();
        let last = steps.len().saturating_sub(1);
        let applied = steps.into_iter().enumerate().map(|(at, past)| {
            let output = past
                .build_log()
                .map(|(_, output)| bounded(output, Excerpt::LIMIT));
            let applied = PastApplied {
                reply: past.reply.clone().and_then(Result::ok).unwrap_or_default(),
                format: past.step.reply_format,
                output: Some(output.unwrap_or_default()).filter(|_| at < last),
            };
            (past.step.id(), applied)
        });
        applied.collect()
    }
}

/// Returns the state of a file before a change.
fn before(change: &LoggedChange) -> Option<Digest> {
    change.before.as_ref().map(|before| before.digest)
}

/// Returns the state of a file after a change.
fn after(change: &LoggedChange) -> Option<Digest> {
    change.after.last().copied().flatten()
}

/// Returns an error if saved states from before a chain of runs are missing.
fn lost(
    home: &Path,
    gap: Option<String>,
    before: &BTreeMap<String, Option<SavedFile>>,
) -> Option<RunError> {
    let is_gone = |saved: &&SavedFile| {
        !files::open(&saved.path, Links::Refused)
            .and_then(Digest::of_file)
            .is_ok_and(|digest| digest == saved.digest)
    };
    let gone = || before.values().flatten().find(is_gone);
    let relative =
        |path: &Path| escaped(&path.strip_prefix(home).unwrap_or(path).to_string_lossy());
    let gap = gap.or_else(|| Some(relative(&gone()?.path)));
    gap.map(RunError::Lost)
}

impl ResumedTree {
    /// Returns whether edits of the resumed run are on the disk.
    pub fn has_edits(&self) -> bool {
        !self.applied.is_empty()
    }

    /// Returns the reply of a step whose edits are on the disk.
    pub fn applied(&self, step: &StepId) -> Option<&PastApplied> {
        self.applied.get(step)
    }
}

/// Returns the query that the run in `folder` sent first; `None` if its record does not hold it.
pub fn recorded_query(project: &Project, folder: &Path) -> Option<String> {
    let run = PastRun::read(project, folder.to_str()?);
    let first = run.recorded_steps().into_iter().next()?;
    run.sent(&first).map(|inputs| inputs.query)
}
