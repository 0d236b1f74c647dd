//! The model's view of the project's files, compared with the disk before a reply replaces them.
//!
//! Reads the files; changes nothing. Guarantees that a file changed while the model was at work is not replaced, and
//! that the user is warned of replaced files whose current content the model was not shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use memchr::memmem;

use super::error::quoted;
use crate::edit::beneath::Beneath;
use crate::edit::{Digest, Sent, VerifiedEdits};
use crate::project::dirty;
use crate::project::rollup::{self, RollupFile, RollupState};
use crate::sys::diff::FileState;
use crate::sys::files::{MIB, read_open};
use crate::sys::git::Git;
use crate::sys::identity::Stamp;
use crate::sys::interrupt::Interrupt;

/// Maximum size of a file, in bytes, in which lines are replaced.
const LARGEST: u64 = 128 * MIB;

/// The files of a reply that were changed while the model was at work.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the reply was not applied: changed while the model was at work: {}", quoted(.files))]
#[diagnostic(
    code("reply-rejected/changed-meanwhile"),
    help("the reply is kept in the run's folder: {}", if *is_attempt { REPLAYED } else { RESUMED })
)]
pub struct ChangedMeanwhile {
    /// The paths of the files, in order.
    pub files: Vec<String>,
    /// True if the reply is one of several attempts, which cannot be resumed.
    pub is_attempt: bool,
}

const RESUMED: &str = "put the files back as the model was shown them, or allow replacing them with `--allow-stale`; then `code-commit --resume RUN` applies it";
const REPLAYED: &str = "put the files back as the model was shown them; then `code-commit --replay RUN` makes all attempts again, without a call";

/// The model's view of the project's files.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    root: PathBuf,
    /// The files, by path.
    files: BTreeMap<String, ShownFile>,
    /// True if these are all files known to the model; false if the content of the code base cannot be determined.
    is_known: bool,
    /// Time at which the model was asked.
    asked: Stamp,
    /// True if a reply may replace files that have changed since.
    may_be_stale: bool,
}

/// A file that was shown to the model, or written by it.
#[derive(Debug, Clone, Copy)]
struct ShownFile {
    /// The content known to the model; `None` if it knows the file to be absent.
    shown: Option<Digest>,
    /// The content on disk when the model was asked.
    asked: Option<Digest>,
    /// True if a reply of this run wrote the file.
    is_own: bool,
}

impl Shown {
    /// Creates the view of the files in a rollup about to be sent; `sections` is `None` if the rollup cannot be
    /// compared.
    pub fn of(sections: Option<&[RollupFile<'_>]>, root: &Path, may_be_stale: bool) -> Self {
        let mut disk = DiskFiles::below(root);
        let file = |section: &RollupFile<'_>| {
            let path = plain(section.path);
            let shown = Some(Digest::of(section.own_content()));
            let asked = match section.state {
                RollupState::Same => shown,
                RollupState::Changed | RollupState::Gone => disk.digest(&path),
            };
            let file = ShownFile {
                shown,
                asked,
                is_own: false,
            };
            (path, file)
        };
        Self {
            root: root.to_path_buf(),
            files: sections.unwrap_or_default().iter().map(file).collect(),
            is_known: sections.is_some(),
            asked: Stamp::default(),
            may_be_stale,
        }
    }

    /// Returns the text of a file as last sent to the model: the current text, if that is what the model knows,
    /// otherwise the text in `rollup`, the code base that was sent. If the rollup cannot be compared with the disk, a
    /// current text that it contains counts as sent.
    pub fn sent(&self, path: &str, rollup: &str) -> Sent {
        let known = self.files.get(path);
        let on_disk = DiskFiles::below(&self.root).read(path);
        let is_shown = match (known, &on_disk) {
            (Some(ShownFile { shown: None, .. }), _) | (None, None) => return Sent::Missing,
            (Some(file), Some(text)) => file.is_own || file.shown == Some(Digest::of(text)),
            (Some(_), None) => false,
            (None, Some(_)) if self.is_known => return Sent::NotShown,
            (None, Some(text)) => memmem::find(rollup.as_bytes(), text).is_some(),
        };
        let text = on_disk
            .filter(|_| is_shown)
            .or_else(|| {
                let sections = rollup::sections(rollup, &self.root);
                let section = sections.iter().find(|file| plain(file.path) == path)?;
                Some(section.own_content().to_vec())
            })
            .and_then(|text| String::from_utf8(text).ok());
        text.map_or(Sent::NotShown, Sent::Text)
    }

    /// Returns the directories of the files, relative to the root.
    pub fn directories(&self) -> BTreeSet<&Path> {
        let files = self.files.keys();
        files.filter_map(|path| Path::new(path).parent()).collect()
    }

    /// Checks the files that `edits` would replace or remove. Returns a warning for each whose current content the
    /// model does not know, and one that names those with uncommitted changes.
    ///
    /// # Errors
    /// Fails if a file has changed since the model was asked.
    pub fn check(
        &self,
        edits: &VerifiedEdits,
        git: Option<&Git>,
        interrupt: &Interrupt,
    ) -> Result<Vec<String>, ChangedMeanwhile> {
        let (mut changed, mut warnings) = (Vec::new(), Vec::new());
        let mut replaced = BTreeSet::new();
        let mut disk = DiskFiles::below(&self.root);
        // Replaced files are reported before removed ones.
        let mut edits: Vec<_> = edits.all().collect();
        edits.sort_by_key(|(_, content)| content.is_none());
        for (path, content) in edits {
            let (now, touched) = disk.look(path).unzip();
            if now.is_none() && content.is_none() || now.is_some_and(|now| is_content(now, content))
            {
                continue;
            }
            let known = self.files.get(path);
            if now.is_some() && !known.is_some_and(|file| file.is_own) {
                replaced.insert(path);
            }
            let is_known = known.map_or(now.is_none(), |file| now == file.shown);
            let is_changed = match known {
                Some(file) => !is_known && now != file.asked,
                // The earlier content of the file is unknown.
                None => touched.is_some_and(|touched| touched > self.asked),
            };
            if is_changed && !self.may_be_stale {
                changed.push(path.to_owned());
            } else if !is_known && now.is_some() && (is_changed || self.is_known) {
                let is_shown = known.is_some() || !self.is_known;
                let how = if is_shown { "it as it is" } else { "it" };
                let fate = content.map_or("removed", |_| "replaced");
                warnings.push(format!(
                    "`{path}` is {fate}, though the model was not shown {how}"
                ));
            }
        }
        if !changed.is_empty() {
            return Err(ChangedMeanwhile {
                files: changed,
                is_attempt: false,
            });
        }
        // Without a readable repository, there are no uncommitted changes to warn of.
        let uncommitted = dirty::changed(&self.root, &replaced, git, interrupt).unwrap_or_default();
        if !uncommitted.is_empty() {
            let files = quoted(&uncommitted);
            warnings.push(format!(
                "the reply replaces uncommitted changes, which `code-commit undo` brings back: {files}"
            ));
        }
        Ok(warnings)
    }

    /// Records files as applied: the model knows what it has written.
    pub fn remember<'p>(&mut self, made: impl Iterator<Item = (&'p str, Option<Digest>)>) {
        let own = made.map(|(path, made)| (path.to_owned(), ShownFile::own(made)));
        self.files.extend(own);
    }

    /// Records that files are as an earlier part of this work left them, which the model knows.
    pub fn adopt(&mut self, paths: &[String]) {
        let mut disk = DiskFiles::below(&self.root);
        let own = paths
            .iter()
            .map(|path| (path.clone(), ShownFile::own(disk.digest(path))));
        self.files.extend(own);
    }

    /// Sets the time at which the model is asked; earlier changes to files it was not shown are ignored.
    pub fn asked(self, now: Stamp) -> Self {
        Self { asked: now, ..self }
    }

    /// Updates the state of the files after a build, before the model is asked again. A build's changes to the run's
    /// own files count as the run's. Returns the files that the build changed.
    pub fn refresh(&mut self, now: Stamp) -> Vec<String> {
        self.asked = now;
        let mut disk = DiskFiles::below(&self.root);
        let mut changed = Vec::new();
        for (path, file) in &mut self.files {
            let now = disk.digest(path);
            if now != file.asked {
                changed.push(path.clone());
            }
            file.asked = now;
            if file.is_own {
                file.shown = file.asked;
            }
        }
        changed
    }
}

impl ShownFile {
    /// Creates the entry for a file that a reply of this run wrote or, with `None`, removed.
    fn own(made: Option<Digest>) -> Self {
        Self {
            shown: made,
            asked: made,
            is_own: true,
        }
    }
}

/// Returns the path of a rollup's file without `./`.
fn plain(path: &str) -> String {
    let path = Path::new(path)
        .components()
        .filter(|part| *part != Component::CurDir);
    path.collect::<PathBuf>().to_string_lossy().into_owned()
}

fn is_content(digest: Digest, content: Option<&str>) -> bool {
    content.is_some_and(|content| Digest::of(content.as_bytes()) == digest)
}

/// The readable files below a root, which is opened once. With sorted paths, each directory is opened only once.
pub struct DiskFiles(Option<Beneath>);

impl DiskFiles {
    /// Opens the root of the project's files; without it, no file is readable.
    pub fn below(root: &Path) -> Self {
        Self(Beneath::open(root).ok())
    }

    /// Returns the digest of the file at `path`; `None` if there is no readable file.
    pub fn digest(&mut self, path: &str) -> Option<Digest> {
        self.look(path).map(|(digest, _)| digest)
    }

    /// Returns the content of the file at `path`; `None` if there is no readable file, or a very large one.
    pub fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        read_open(self.open(path)?, LARGEST).ok()
    }

    /// Returns the content and the mode of the file at `path`, under the same conditions.
    pub fn state(&mut self, path: &str) -> Option<FileState> {
        let file = self.open(path)?;
        let mode = file.metadata().ok()?.mode() & 0o777;
        let content = read_open(file, LARGEST).ok()?;
        Some(FileState { content, mode })
    }

    /// Returns the digest of the file, with the time of its last change of content or metadata.
    pub fn look(&mut self, path: &str) -> Option<(Digest, Stamp)> {
        let file = self.open(path)?;
        let metadata = file.metadata().ok()?;
        let touched = (metadata.ctime(), metadata.ctime_nsec());
        Some((Digest::of_file(file).ok()?, touched))
    }

    fn open(&mut self, path: &str) -> Option<File> {
        self.0.as_mut()?.file(path).ok()?
    }
}
