//! The model's view of the project's files, held against the disk before a reply replaces them.
//!
//! Reads the files, and changes nothing. Guarantees that a file which somebody has changed while the model was at
//! work is not replaced, and that one which the model was not shown as it is is named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::edit::beneath::{OpenDirectory, Root, open_regular, split};
use crate::edit::{Digest, Stamp, VerifiedEdits};
use crate::project::rollup::{RollupFile, RollupState};

/// Files changed while the model was at work on a reply that replaces them.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("nothing of the reply was applied: changed while the model was at work: {}", listed(.0))]
#[diagnostic(
    code("reply-rejected"),
    help(
        "the reply is kept in the run's folder: put the files back as the model was shown them, or allow to replace them with `--allow-stale`; then `code-commit --resume RUN` applies it"
    )
)]
pub struct ChangedMeanwhile(Vec<String>);

fn listed(paths: &[String]) -> String {
    let paths = paths
        .iter()
        .map(|path| format!("`{}`", path.escape_debug()));
    paths.collect::<Vec<_>>().join(", ")
}

/// The model's view of the files.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    root: PathBuf,
    /// By path.
    files: BTreeMap<String, ShownFile>,
    /// True if these are all that the model knows; else what the code base holds cannot be told.
    is_known: bool,
    /// The time when the model was asked.
    asked: Stamp,
    /// True if a reply may replace what it does not know.
    may_be_stale: bool,
}

/// A file that the model was shown, or has made.
#[derive(Debug, Clone, Copy)]
struct ShownFile {
    /// As the model knows it; `None`: it is not there.
    shown: Option<Digest>,
    /// As it was on the disk when the model was asked.
    asked: Option<Digest>,
    /// True if a reply of this run has made it.
    is_own: bool,
}

impl Shown {
    /// The files of a rollup that is about to be sent; `None`: of one that cannot be compared.
    pub fn of(sections: Option<&[RollupFile<'_>]>, root: &Path, may_be_stale: bool) -> Self {
        let mut disk = DiskFiles::below(root);
        let file = |section: &RollupFile<'_>| {
            let path = Path::new(section.path).components();
            let path = path.filter(|part| *part != Component::CurDir);
            let path = path.collect::<PathBuf>().to_string_lossy().into_owned();
            let shown = Some(Digest::of(section.own_content()));
            let asked = match section.state {
                RollupState::Same => shown,
                RollupState::Changed | RollupState::Gone => disk.digest(&path),
            };
            let is_own = false;
            (
                path,
                ShownFile {
                    shown,
                    asked,
                    is_own,
                },
            )
        };
        Self {
            root: root.to_path_buf(),
            files: sections.unwrap_or_default().iter().map(file).collect(),
            is_known: sections.is_some(),
            asked: Stamp::default(),
            may_be_stale,
        }
    }

    /// The directories of the files, relative to the root.
    pub fn directories(&self) -> BTreeSet<&Path> {
        let files = self.files.keys();
        files.filter_map(|path| Path::new(path).parent()).collect()
    }

    /// Looks at the files that `edits` would replace or remove. For each that the model does not know as it is, a
    /// warning.
    ///
    /// # Errors
    /// When one has changed since the model was asked.
    pub fn check(&self, edits: &VerifiedEdits) -> Result<Vec<String>, ChangedMeanwhile> {
        let (mut changed, mut warnings) = (Vec::new(), Vec::new());
        let mut disk = DiskFiles::below(&self.root);
        // What is replaced is told before what is removed.
        let mut edits: Vec<_> = edits.all().collect();
        edits.sort_by_key(|(_, content)| content.is_none());
        for (path, content) in edits {
            let (now, touched) = disk.look(path).unzip();
            if now.is_none() && content.is_none() || now.is_some_and(|now| is_content(now, content))
            {
                continue;
            }
            let known = self.files.get(path);
            let is_known = known.map_or(now.is_none(), |file| now == file.shown);
            let is_changed = match known {
                Some(file) => !is_known && now != file.asked,
                // What was in it before is not known.
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
        if changed.is_empty() {
            Ok(warnings)
        } else {
            Err(ChangedMeanwhile(changed))
        }
    }

    /// Notes that `edits` were applied: the model knows what it has written.
    pub fn remember(&mut self, edits: &VerifiedEdits) {
        let own = edits.all().map(|(path, content)| {
            let made = content.map(|content| Digest::of(content.as_bytes()));
            (path.to_owned(), ShownFile::own(made))
        });
        self.files.extend(own);
    }

    /// Notes that files are as an earlier part of this work has left them, which the model knows.
    pub fn adopt(&mut self, paths: &[String]) {
        let mut disk = DiskFiles::below(&self.root);
        let own = paths
            .iter()
            .map(|path| (path.clone(), ShownFile::own(disk.digest(path))));
        self.files.extend(own);
    }

    /// Notes that the model is asked from now on, and what somebody has made of other files before then is not looked
    /// at.
    pub fn asked(self, now: Stamp) -> Self {
        Self { asked: now, ..self }
    }

    /// Notes how the files are now, after a build and before the model is asked again. What the build has made of the
    /// run's own files is the run's doing, too.
    pub fn refresh(&mut self, now: Stamp) {
        self.asked = now;
        let mut disk = DiskFiles::below(&self.root);
        for (path, file) in &mut self.files {
            file.asked = disk.digest(path);
            if file.is_own {
                file.shown = file.asked;
            }
        }
    }
}

impl ShownFile {
    /// A file that a reply of this run has made or, with `None`, removed.
    fn own(made: Option<Digest>) -> Self {
        Self {
            shown: made,
            asked: made,
            is_own: true,
        }
    }
}

fn is_content(digest: Digest, content: Option<&str>) -> bool {
    content.is_some_and(|content| Digest::of(content.as_bytes()) == digest)
}

/// The files below a root, which is opened once. Sorted paths open each directory but once.
pub struct DiskFiles {
    root: Option<Root>,
    directory: OpenDirectory,
}

impl DiskFiles {
    /// The files of the project in `root`.
    pub fn below(root: &Path) -> Self {
        Self {
            root: Root::open(root).ok(),
            directory: OpenDirectory::default(),
        }
    }

    /// The content of the file at `path`; `None` where there is none that can be read.
    pub fn digest(&mut self, path: &str) -> Option<Digest> {
        self.look(path).map(|(digest, _)| digest)
    }

    /// The same, with the time of the last change to the file, be it to its content or its name.
    fn look(&mut self, path: &str) -> Option<(Digest, Stamp)> {
        let file = self.open(path)?;
        let metadata = file.metadata().ok()?;
        let touched = (metadata.ctime(), metadata.ctime_nsec());
        Some((Digest::of_file(file).ok()?, touched))
    }

    fn open(&mut self, path: &str) -> Option<File> {
        let (parent, name) = split(path);
        let directory = self.directory.at(self.root.as_ref()?, parent).ok()?;
        open_regular(directory, name).ok()?
    }
}
