//! A run's changes to the project's files: applies replies, reverts them, and tracks how builds change these files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::active::Run;
use super::context::Context;
use super::error::RunError;
use super::scratch::ScratchRun;
use super::shown::{ChangedMeanwhile, DiskFiles, Shown};
use crate::edit::apply::{Applied, Tree};
use crate::edit::beneath::Beneath;
use crate::edit::changes::{ChangeLog, SavedFile};
use crate::edit::error::ApplyError;
use crate::edit::undo::{Journalling, UndoError, Undone, undo};
use crate::edit::undo_log::UndoLog;
use crate::edit::{
    self, Digest, EditKind, LossGuard, ParsedReply, PathPolicy, VerifiedEdits, VerifyError,
};
use crate::model::StepId;
use crate::project::changed_files::EditsRecord;
use crate::project::repository::DOT_GIT;
use crate::project::run_folder::CHANGES;
use crate::record::event::Event;
use crate::record::gate::listed;
use crate::record::result::TreeState;
use crate::sys::counter::Counter;
use crate::sys::diff::FileChange;
use crate::sys::error::Error;
use crate::sys::files::{MIB, PathError, read_open};
use crate::sys::git::Git;
use crate::sys::identity::{Stamp, stamp};
use crate::sys::numbers::counted;
use crate::sys::text::escaped;

/// Maximum size, in bytes, of a file that is checked for changes by a build.
const LARGEST: u64 = 64 * MIB;

/// The changes that are brought from a scratch tree to the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brought {
    /// The files that replies have written or removed
    Replies,
    /// Every text file that differs, unless git ignores it
    All,
}

/// Edits by path.
type FileEdits = Vec<(String, EditKind)>;

/// The project's files, as changed by one run.
pub struct RunTree<'c> {
    context: &'c Context<'c>,
    /// The run's folder, relative to the root.
    folder: String,
    /// The root of the tree that edits are applied to.
    root: PathBuf,
    journal: PathBuf,
    /// The scratch tree, until its changes are brought to the project or dropped.
    scratch: Option<&'c ScratchRun>,
    undo_log: UndoLog<'c>,
    /// The model's view of the files.
    pub shown: Shown,
    /// The files that the resumed runs have changed, as they were before the first of them.
    pub resumed: BTreeMap<String, Option<SavedFile>>,
    /// Files that replies have replaced only in the scratch tree, because others had changed them in the project.
    changed_meanwhile: BTreeSet<String>,
    /// Time at which the latest edits were completely applied.
    installed: Stamp,
}

impl<'c> RunTree<'c> {
    /// Creates the tree before any change by the run.
    pub fn new(context: &'c Context<'c>, run: &Run<'_>) -> Self {
        let root = context.project.root();
        Self {
            context,
            folder: run.log.name().to_owned(),
            root: root.to_path_buf(),
            scratch: context.scratch,
            journal: context.project.journal_directory(),
            undo_log: UndoLog::new(root, run.log.folder(), context.redactor),
            shown: Shown::default(),
            resumed: BTreeMap::new(),
            changed_meanwhile: BTreeSet::new(),
            installed: Stamp::default(),
        }
    }

    /// Marks the changes as an agent's.
    pub fn of_agent(mut self) -> Self {
        self.undo_log.is_agents = true;
        self
    }

    /// Sets the model's view of the files.
    pub fn with_shown(self, shown: Shown) -> Self {
        let shown = shown.asked(now(self.context));
        Self { shown, ..self }
    }

    /// Checks what a reply would replace against the model's view.
    ///
    /// # Errors
    /// Fails if others have changed a file. In a scratch tree, it is replaced nevertheless: the project keeps its own.
    pub fn check(
        &mut self,
        run: &mut Run<'_>,
        edits: &VerifiedEdits,
    ) -> Result<(), ChangedMeanwhile> {
        let path = self.context.environment.os("PATH");
        let git = Git::find(path, self.context.project.root());
        match self
            .shown
            .check(edits, git.as_ref(), self.context.interrupt)
        {
            Err(changed) if self.is_apart() => self.changed_meanwhile.extend(changed.files),
            checked => run.warn_all(&checked?),
        }
        Ok(())
    }

    /// Updates the model's view of the files before it is asked again. Returns those that the build has changed.
    pub fn read_again(&mut self) -> Vec<String> {
        self.shown.refresh(now(self.context))
    }

    /// Records that the model knows files with these texts.
    pub fn show<'p>(&mut self, files: impl Iterator<Item = (&'p str, &'p str)>) {
        let digest = |text: &str| Some(Digest::of(text.as_bytes()));
        self.shown
            .remember(files.map(|(path, text)| (path, digest(text))));
    }

    /// Returns the files changed by the run.
    pub fn changed(&self) -> impl Iterator<Item = &str> {
        self.undo_log.changes().files.keys().map(String::as_str)
    }

    /// Returns the files changed by the run, and by those that it resumes.
    pub fn changed_in_all(&self) -> BTreeSet<&str> {
        let resumed = self.resumed.keys().map(String::as_str);
        self.changed().chain(resumed).collect()
    }

    /// Returns whether every file is in its state before the run itself.
    pub fn has_changed_nothing(&self) -> bool {
        self.undo_log.changes().are_none()
    }

    /// Returns whether every file is in its state before the run, and before those that it resumes.
    pub fn is_as_before(&self) -> bool {
        if self.resumed.is_empty() {
            return self.has_changed_nothing();
        }
        let mut disk = DiskFiles::below(&self.root);
        let mut changed = self.changed_in_all().into_iter();
        changed.all(|path| disk.digest(path) == self.first_saved(path).map(|saved| saved.digest))
    }

    /// Returns the saved copy of the file that was at `path` before the run; `None` if there was none.
    pub fn saved(&self, path: &str) -> Option<SavedFile> {
        let before = self.undo_log.changes().files.get(path)?.before.as_ref()?;
        Some(before.saved(self.context.project.home(), &self.folder))
    }

    /// Like [`Self::saved`], but before the runs that the run resumes.
    pub fn first_saved(&self, path: &str) -> Option<SavedFile> {
        let resumed = self.resumed.get(path).cloned();
        resumed.unwrap_or_else(|| self.saved(path))
    }

    /// Returns the content that a build or a resumed run gave to a file, if it differs from the reply's.
    pub fn built(&self, path: &str, replied: Option<&str>) -> Option<Vec<u8>> {
        let Some(changed) = self.undo_log.changes().files.get(path) else {
            return self.read(path).ok()?;
        };
        let left = changed.after.last()?.as_ref()?;
        if replied.is_some_and(|replied| Digest::of(replied.as_bytes()) == *left) {
            return None;
        }
        let content = self.read(path).ok()??;
        (Digest::of(&content) == *left).then_some(content)
    }

    /// Returns whether the run, or its last build, has left no file at `path`.
    pub fn is_gone(&self, path: &str) -> bool {
        let changed = self.undo_log.changes().files.get(path);
        changed.is_some_and(|changed| changed.after.last() == Some(&None))
    }

    /// Reads a file; `None` if it is not a regular file: a later command may have replaced it with a pipe, for
    /// instance.
    pub fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let file = Beneath::open(&self.root)?.file(path)?;
        file.map(|file| read_open(file, LARGEST)).transpose()
    }

    /// Returns whether the path of a file leads to something other than a regular file, such as a link.
    pub fn is_no_file(&self, path: &str) -> bool {
        let found = self.root.join(path).symlink_metadata();
        found.is_ok_and(|found| !found.is_file())
    }

    /// Applies a reply's edits, and records and reports them.
    pub fn apply(&mut self, run: &mut Run<'_>, edits: &VerifiedEdits) -> Result<(), Error> {
        self.context.interrupt.check()?;
        self.put(run, edits)?;
        let record = self.report(edits);
        run.note(|step| {
            // Several calls of one reply may write, one after another.
            step.edits = Some(step.edits.take().unwrap_or_default().then(&record));
        });
        Ok(())
    }

    /// Applies a step's edits as changed by a build in another tree, in one transaction, and reports and records them.
    pub fn take(
        &mut self,
        run: &mut Run<'_>,
        (step, edits): (&StepId, &VerifiedEdits),
        built: &VerifiedEdits,
    ) -> Result<(), Error> {
        self.undo_log.replied(edits.written());
        self.put(run, built)?;
        let record = self.report(edits);
        let mut steps = run.record.steps.iter_mut();
        if let Some(taken) = steps.find(|taken| taken.id() == *step) {
            taken.edits = Some(record);
            run.log.step(taken)?;
        }
        Ok(())
    }

    /// Reports the edits of a reply, and returns their record.
    fn report(&self, edits: &VerifiedEdits) -> EditsRecord {
        let record = EditsRecord {
            written: edits.written().map(|(path, _)| path.to_owned()).collect(),
            removed: edits.removed().map(str::to_owned).collect(),
            unchanged: edits.unchanged().to_vec(),
        };
        self.context.reporter.event(&Event::Applied(record.clone()));
        record
    }

    /// Verifies files that the run itself has made, all of which are within the limits on losses.
    ///
    /// # Errors
    /// Fails if they conflict with existing files.
    pub fn verified(&self, files: FileEdits) -> Result<VerifiedEdits, VerifyError> {
        PathPolicy::load(&self.root, self.context.sandbox.program)?
            .guarded(LossGuard::off())
            .protecting(self.context.protection.clone())
            .verify(ParsedReply::of_files(files))
    }

    /// Applies edits that no step has to record.
    pub fn put(&mut self, run: &mut Run<'_>, edits: &VerifiedEdits) -> Result<(), Error> {
        let done = self.follow("Changing", edits.edits().len());
        let tree = tree_at(self.context, &self.root, &self.journal, &done);
        let applied = recorded(run, edit::apply(tree, edits, Some(&mut self.undo_log)))?;
        if let Some(applied) = applied {
            self.installed = applied.installed;
        }
        let files = &self.undo_log.changes().files;
        let made = |path: &str| files.get(path)?.after.last().copied().flatten();
        let applied = edits.all().map(|(path, _)| (path, made(path)));
        self.shown.remember(applied);
        Ok(())
    }

    /// Reverts the run's changes in order to start again; `shown` is what the model had seen before them.
    pub fn restart(&mut self, run: &mut Run<'_>, shown: Shown) -> Result<(), UndoError> {
        let (folder, changes) = (self.folder.clone(), self.undo_log.changes().clone());
        self.undo(run, &folder, &changes, Journalling::On)?;
        self.shown = shown.asked(now(self.context));
        Ok(())
    }

    /// Records what a build has done to the files changed by the run.
    pub fn observe(&mut self, run: &mut Run<'_>) {
        if let Err(error) = self.undo_log.observe(self.installed) {
            run.warn(format!(
                "what the build made of the changed files is not known, so that they may not be \
                 undone: {error}"
            ));
        }
    }

    /// Applies the run's changes in its scratch tree to the project, if it works in one. From then on, the run's tree
    /// is the project.
    ///
    /// # Errors
    /// Fails if a file has changed in the project meanwhile, or cannot be written; the project is then as it was,
    /// unless it [is no longer apart](Self::is_apart).
    pub fn bring(&mut self, run: &mut Run<'_>, scope: Brought) -> Result<(), Error> {
        let Some(scratch) = self.scratch else {
            return Ok(());
        };
        let root = scratch.scratch.original();
        let (mut files, mut left) = self.to_bring(scratch, scope)?;
        let program = self.context.sandbox.program;
        let loaded = match scope {
            Brought::Replies => PathPolicy::load(&root, program)?,
            Brought::All => PathPolicy::load_for_agent(&root, program)?,
        };
        // The replies have passed all limits in the scratch tree.
        let policy = loaded.guarded(LossGuard::off());
        let verify = |files| policy.verify(ParsedReply::of_files(files));
        let mut edits = verify(files.clone());
        if let Err(VerifyError::Rejected(rejection)) = &edits {
            // Commands may write files that tools may not. Such files must not hold up the others.
            let logged = &self.undo_log.changes().files;
            let is_barred = |path: &str| !logged.contains_key(path) && rejection.is_of(path);
            let barred = files.extract_if(.., |(path, _)| is_barred(path));
            left.extend(barred.map(|(path, _)| path));
            edits = verify(files.clone());
        }
        let edits = edits?;
        if !left.is_empty() {
            let paths: Vec<_> = left.iter().map(|path| escaped(path)).collect();
            run.warn(format!(
                "left behind in the scratch tree (only text files are applied): {}",
                listed(&paths)
            ));
        }
        let mode_of = |(path, _): &(String, EditKind)| Some((path.clone(), self.made_mode(path)?));
        let modes: Vec<_> = files.iter().filter_map(mode_of).collect();
        let adopted = self.undo_log.adopt_modes(&root);
        adopted.map_err(PathError::of("write", CHANGES))?;
        let journal = scratch.journal.clone();
        let done = Counter::default();
        let tree = tree_at(self.context, &root, &journal, &done);
        // Files that replies have changed are saved already.
        let undo_log = (scope == Brought::All).then_some(&mut self.undo_log);
        if let Err(error) = recorded(run, edit::apply(tree, &edits, undo_log)) {
            if let ApplyError::NotRolledBack { .. } = error {
                run.warn(match scratch.scratch.keep() {
                    Ok(kept) => format!("what the run has made is kept in `{}`", kept.display()),
                    Err(error) => format!("what the run has made cannot be kept: {error}"),
                });
                (self.root, self.journal, self.scratch) = (root, journal, None);
            }
            return Err(error.into());
        }
        for (path, mode) in modes {
            let opened = Beneath::open(&root).and_then(|mut root| root.file(&path));
            let set = opened.and_then(|file| match file {
                // Setting the same mode would make the file look changed.
                Some(file) if file.metadata()?.permissions() == mode => Ok(()),
                // Without a saved copy, `undo` could not take the new mode back.
                Some(_) if !self.undo_log.changes().files.contains_key(&path) => {
                    Err(io::Error::other("its content is as it was"))
                }
                Some(file) => file.set_permissions(mode),
                None => Ok(()),
            });
            if let Err(error) = set {
                run.warn(format!(
                    "the mode of `{path}` was not brought over: {error}"
                ));
            }
        }
        (self.root, self.journal, self.scratch) = (root, journal, None);
        let failures = scratch.bring_ignored(&self.context.project);
        if let Some(first) = failures.first() {
            let count = counted(failures.len() as u64, "failure");
            run.warn(format!(
                "not all ignored files were brought over ({count}): {first}"
            ));
        }
        Ok(())
    }

    /// Returns the files to change in the project for it to match the scratch tree, and those that are not transferred.
    fn to_bring(
        &self,
        scratch: &ScratchRun,
        scope: Brought,
    ) -> Result<(FileEdits, BTreeSet<String>), Error> {
        let mut project = DiskFiles::below(&scratch.scratch.original());
        let (mut paths, mut changed, mut left) = (Vec::new(), Vec::new(), BTreeSet::new());
        let logged = &self.undo_log.changes().files;
        for (path, change) in logged {
            let before = change.before.as_ref().map(|before| before.digest);
            let after = change.after.last().copied().flatten();
            let now = project.digest(path);
            if before != after && now != after {
                if now != before || self.changed_meanwhile.contains(path) {
                    changed.push(path.clone());
                }
                paths.push((path.clone(), after.is_none()));
            }
        }
        if scope == Brought::All {
            for change in scratch.changes(&self.context.project, false)? {
                let path = change.path.to_string_lossy().into_owned();
                let mut within = change.path.ancestors();
                let found = self.root.join(&change.path).symlink_metadata();
                let is_file = found.is_ok_and(|found| found.is_file());
                if logged.contains_key(&path) {
                } else if let Some(git) = within.find(|path| path.ends_with(".git")) {
                    left.insert(git.to_string_lossy().into_owned());
                } else if !is_file && !change.is_gone {
                    left.insert(path);
                } else {
                    if scratch.is_touched(&change.path) {
                        changed.push(path.clone());
                    }
                    paths.push((path, change.is_gone));
                }
            }
        }
        let mut files = Vec::new();
        for (path, is_gone) in paths {
            let text = match self.read(&path) {
                Err(error) if logged.contains_key(&path) => {
                    return Err(PathError::of("read", &path)(error).into());
                }
                read => read.map(|content| content.map(String::from_utf8).transpose()),
            };
            match text {
                Ok(Ok(None)) if is_gone => files.push((path, EditKind::Remove)),
                Ok(Ok(Some(text))) => files.push((path, EditKind::Write(text))),
                // Of the replies' files, all are brought or none.
                _ if scope == Brought::Replies => {
                    let folder = self.folder.clone();
                    return Err(RunError::NoText { path, folder }.into());
                }
                _ => _ = left.insert(path),
            }
        }
        if !changed.is_empty() {
            let folder = self.folder.clone();
            return Err(RunError::ProjectChanged { changed, folder }.into());
        }
        Ok((files, left))
    }

    /// Returns the changes in the scratch tree beyond those that the run wrote; `None` without a scratch tree.
    ///
    /// # Errors
    /// Fails if the tree cannot be read.
    pub fn changed_besides(&self) -> Result<Option<Vec<FileChange>>, Error> {
        let Some(scratch) = self.scratch else {
            return Ok(None);
        };
        let mut original = DiskFiles::below(&scratch.scratch.original());
        let mut disk = DiskFiles::below(&self.root);
        let changes = scratch.changes(&self.context.project, false)?;
        let paths = changes
            .into_iter()
            .map(|change| change.path)
            .filter(|path| !path.iter().any(|name| name == DOT_GIT))
            .map(|path| path.to_string_lossy().into_owned());
        let besides = paths
            .filter(|path| !self.undo_log.changes().files.contains_key(path))
            // Anything but a readable file stays behind when the others are applied.
            .map(|path| FileChange {
                before: original.state(&path),
                after: disk.state(&path),
                path,
            })
            .filter(|change| {
                let [before, after] = [&change.before, &change.after].map(Option::is_some);
                before != after || change.before() != change.after()
            });
        Ok(Some(besides.collect()))
    }

    /// Returns the mode that a file has in the scratch tree, if the run has changed it.
    fn made_mode(&self, path: &str) -> Option<Permissions> {
        let opened = Beneath::open(&self.root).and_then(|mut root| root.file(path));
        let made = opened.ok()??.metadata().ok()?;
        let before = self.saved(path).map(|saved| saved.mode & 0o777);
        let mode = made.permissions().mode() & 0o777;
        (before != Some(mode)).then(|| Permissions::from_mode(mode))
    }

    /// Returns whether the changes of the run have yet to be brought to the project.
    pub fn is_apart(&self) -> bool {
        self.scratch.is_some()
    }

    /// Reverts everything that the run has applied. If that fails, the run still completes, with a warning.
    pub fn put_back(&mut self, run: &mut Run<'_>) {
        // Changes made by resumed runs stay.
        if self.scratch.take().is_some() || self.undo_log.changes().files.is_empty() {
            self.undo_log.forget();
            run.record.tree = TreeState::Unchanged;
            return;
        }
        let changes = self.undo_log.changes().clone();
        let folder = self.folder.clone();
        self.undo_log.release();
        // A second attempt may succeed. If the disk is full, the last attempt works without a journal.
        let mut undo = |journalling| self.undo(run, &folder, &changes, journalling);
        let undone = undo(Journalling::On).or_else(|_| undo(Journalling::On));
        match undone.or_else(|_| undo(Journalling::Off)) {
            Ok(_) if run.record.tree == TreeState::Unchanged => {}
            Ok(edits) => {
                run.record.tree = TreeState::PutBack;
                self.context.reporter.event(&Event::PutBack(edits.clone()));
            }
            Err(error) => run.warn(format!("what was applied cannot be taken back: {error}")),
        }
    }

    /// Warns if changes can no longer be undone because saved files were removed.
    pub fn note_lost(&self, run: &mut Run<'_>) {
        if run.record.tree != TreeState::Changed {
            return;
        }
        if let Some(lost) = self.undo_log.lost() {
            run.warn(format!(
                "`{lost}`, which was saved before it was replaced, is gone: `code-commit undo` cannot take the run back"
            ));
            run.record.tree = TreeState::Lost;
        }
    }

    /// Undoes the `changes` of the run in `folder`, which may be another run.
    pub fn undo(
        &mut self,
        run: &mut Run<'_>,
        folder: &str,
        changes: &ChangeLog,
        journalling: Journalling,
    ) -> Result<EditsRecord, UndoError> {
        let done = self.follow("Taking back", changes.files.len());
        let tree = tree_at(self.context, &self.root, &self.journal, &done);
        let undo_log = Some(&mut self.undo_log);
        let Undone { edits, applied } = undo(tree, folder, changes, undo_log, journalling)?;
        if let Some(applied) = applied {
            warn_of(run, &applied);
        }
        Ok(edits)
    }

    /// Reports that files are being changed. Returns the counter of finished files.
    fn follow(&self, what: &str, files: usize) -> Counter {
        let (done, total) = (Counter::default(), files as u64);
        if total > 1 {
            self.context.reporter.event(&Event::Progress {
                message: format!("{what} {}", counted(total, "file")),
                done: done.clone(),
                total,
            });
        }
        done
    }

    /// Releases the disk space reserved by the run.
    pub fn end(self) {
        self.undo_log.release();
    }
}

/// Returns the tree at `root`, which counts the finished files in `done`.
fn tree_at<'t>(
    context: &'t Context<'_>,
    root: &'t Path,
    journal: &'t Path,
    done: &'t Counter,
) -> Tree<'t> {
    Tree {
        root,
        staged: Some(done),
        ..context.tree(journal)
    }
}

/// Returns the current time in the format of file time stamps.
fn now(context: &Context<'_>) -> Stamp {
    stamp(context.clock.now())
}

/// Records the outcome of a change to the files.
fn recorded(
    run: &mut Run<'_>,
    applied: Result<Option<Applied>, ApplyError>,
) -> Result<Option<Applied>, ApplyError> {
    if let Ok(Some(_)) | Err(ApplyError::NotRolledBack { .. }) = &applied {
        run.record.tree = TreeState::Changed;
    }
    if let Ok(Some(applied)) = &applied {
        warn_of(run, applied);
    }
    applied
}

/// Maximum number of warnings about lost rights or attributes.
const MAX_NAMED: usize = 20;

/// Warns of imperfections in files that were replaced.
fn warn_of(run: &mut Run<'_>, applied: &Applied) {
    for lost in applied.lost.iter().take(MAX_NAMED) {
        run.warn(lost.clone());
    }
    if let Some(more @ 1..) = applied.lost.len().checked_sub(MAX_NAMED) {
        run.warn(format!("{more} more files have lost rights or attributes"));
    }
    if let Some(left) = &applied.left {
        run.warn(format!(
            "the files that were replaced are not all removed yet: {left}"
        ));
    }
}
