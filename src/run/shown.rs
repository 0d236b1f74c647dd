//! What the model was shown of the project's files, held against the disk before a reply replaces them.
//!
//! Reads the files, and changes nothing. Guarantees that a file which somebody has changed while the model was at
//! work is not replaced, and that one which the model was not shown as it is is named.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use crate::edit::beneath::{Root, open_regular, split};
use crate::edit::{Digest, Stamp, VerifiedEdits};
use crate::project::rollup::{RollupFile, RollupState};

/// Files changed while the model was at work on a reply that replaces them.
#[derive(Debug, thiserror::Error)]
#[error("nothing of the reply was applied: changed while the model was at work: {}", listed(.0))]
pub struct ChangedMeanwhile(Vec<String>);

fn listed(paths: &[String]) -> String {
    let paths = paths
        .iter()
        .map(|path| format!("`{}`", path.escape_debug()));
    paths.collect::<Vec<_>>().join(", ")
}

/// What the model was shown of the files.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    root: PathBuf,
    /// By path.
    files: BTreeMap<String, ShownFile>,
    /// Whether these are all that the model knows; else what the code base holds cannot be told.
    is_known: bool,
    /// When the model was asked.
    asked: Stamp,
    /// Whether a reply may replace what it does not know.
    may_be_stale: bool,
}

/// A file that the model was shown, or has made.
#[derive(Debug, Clone, Copy)]
struct ShownFile {
    /// As the model knows it; `None`: it is not there.
    shown: Option<Digest>,
    /// As it was on the disk when the model was asked.
    asked: Option<Digest>,
    /// Whether a reply of this run has made it.
    is_own: bool,
}

impl Shown {
    /// The files of a rollup that is about to be sent; `None`: of one that cannot be compared.
    pub fn of(sections: Option<&[RollupFile<'_>]>, root: &Path, may_be_stale: bool) -> Self {
        let file = |section: &RollupFile<'_>| {
            let path = Path::new(section.path).components();
            let path = path.filter(|part| *part != Component::CurDir);
            let path = path.collect::<PathBuf>().to_string_lossy().into_owned();
            let shown = Some(Digest::of(section.own_content()));
            let asked = match section.state {
                RollupState::Same => shown,
                RollupState::Changed | RollupState::Gone => on_disk(root, &path),
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
        let made = |content: &str| Some(Digest::of(content.as_bytes()));
        let written = edits.written().map(|(path, content)| (path, made(content)));
        let removed = edits.removed().map(|path| (path, None));
        for (path, then) in written.chain(removed) {
            let now = on_disk(&self.root, path);
            if now == then {
                continue;
            }
            let known = self.files.get(path);
            let is_known = known.map_or(now.is_none(), |file| now == file.shown);
            let is_changed = match known {
                Some(file) => !is_known && now != file.asked,
                None => self.has_changed_since(path),
            };
            if is_changed && !self.may_be_stale {
                changed.push(path.to_owned());
            } else if !is_known && now.is_some() && (is_changed || self.is_known) {
                let is_shown = known.is_some() || !self.is_known;
                let how = if is_shown { "it as it is" } else { "it" };
                let fate = then.map_or("removed", |_| "replaced");
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

    /// Whether somebody has written to the file at `path` since the model was asked, or has put another in its place: what
    /// was in it before is not known.
    fn has_changed_since(&self, path: &str) -> bool {
        let metadata = opened(&self.root, path).and_then(|file| file.metadata().ok());
        metadata.is_some_and(|metadata| (metadata.ctime(), metadata.ctime_nsec()) > self.asked)
    }

    /// Notes that `edits` were applied: the model knows what it has written.
    pub fn remember(&mut self, edits: &VerifiedEdits) {
        let written = edits.written();
        let written = written.map(|(path, content)| (path, Some(Digest::of(content.as_bytes()))));
        let removed = edits.removed().map(|path| (path, None));
        let own = written.chain(removed).map(|(path, made)| {
            let file = ShownFile {
                shown: made,
                asked: made,
                is_own: true,
            };
            (path.to_owned(), file)
        });
        self.files.extend(own);
    }

    /// Notes that files are as an earlier part of this work has left them, which the model knows.
    pub fn adopt(&mut self, paths: &[String]) {
        let own = paths.iter().map(|path| {
            let now = on_disk(&self.root, path);
            let file = ShownFile {
                shown: now,
                asked: now,
                is_own: true,
            };
            (path.clone(), file)
        });
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
        for (path, file) in &mut self.files {
            file.asked = on_disk(&self.root, path);
            if file.is_own {
                file.shown = file.asked;
            }
        }
    }
}

/// What is in the file at `path`; `None` where there is none that can be read.
pub fn on_disk(root: &Path, path: &str) -> Option<Digest> {
    Digest::of_file(opened(root, path)?).ok()
}

fn opened(root: &Path, path: &str) -> Option<File> {
    let (directory, name) = split(path);
    let directory = Root::open(root).ok()?.directory(directory).ok()?;
    open_regular(directory.as_fd(), name).ok()?
}
