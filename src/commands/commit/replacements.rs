//! The project's files after a run's replies, for its repairs and its summary.
//!
//! Reads files that the run has changed, and their saved states.

use std::io;

use crate::edit::{self, Sent, VerifiedEdits};
use crate::run::active::Run;
use crate::run::present::PresentFile;
use crate::run::resumption::PastApplied;
use crate::run::search::{Files, files_of};
use crate::run::tree::RunTree;
use crate::secret::{Redactor, credentials};
use crate::sys::files::{self, Links, MIB};

/// Maximum size, in bytes, of a file whose state before the run is read for a repair.
const LARGEST: u64 = 64 * MIB;

/// Text shown for a path that no longer holds a regular file.
const NO_FILE: &str = "[No regular file any more: a link, a directory or the like is in its place. No reply can replace it.]\n";

/// A commit's run, the project's files, and the effect of its replies on them.
pub struct Work<'c> {
    pub run: Run<'c>,
    pub tree: RunTree<'c>,
    pub replacements: Replacements,
}

/// Reads a file's text; `None` if there is no such file.
fn present(tree: &RunTree<'_>, path: &str) -> io::Result<Option<String>> {
    let text = tree.read(path)?;
    Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
}

/// Converts files to the form shown to a repair. If `tree` is given, also reads their states before the run, for
/// regions.
pub fn shown(files: Files, tree: Option<&RunTree<'_>>) -> Vec<PresentFile> {
    let shown = files.into_iter().map(|(path, now)| {
        let before = tree
            .and_then(|tree| tree.first_saved(&path))
            .and_then(|saved| {
                String::from_utf8(files::read(&saved.path, Links::Refused, LARGEST).ok()?).ok()
            });
        PresentFile::of(path, before.as_deref(), now)
    });
    shown.collect()
}

/// The effect of the replies of this run.
#[derive(Debug, Default)]
pub struct Replacements {
    /// The latest state of every file that a reply changed.
    pub files: Files,
    /// `true` if a reply left a file's content unchanged.
    pub has_same: bool,
}

impl Replacements {
    pub fn remember(&mut self, edits: &VerifiedEdits) {
        self.files.extend(files_of(edits));
        self.has_same |= !edits.unchanged().is_empty();
    }

    /// Records the edits of a reply that are already on disk.
    pub fn remember_reply(&mut self, applied: &PastApplied, tree: &RunTree<'_>) {
        let parsed = edit::read(&applied.reply, applied.format, &|_| Sent::NotShown);
        let edits = parsed.edits.into_iter();
        self.files
            .extend(edits.map(|edit| (edit.path, edit.kind.content().map(str::to_owned))));
        for edit in parsed.unlocated {
            let now = present(tree, &edit.path).ok().flatten();
            self.files.insert(edit.path, now);
        }
    }

    /// Returns the current content of the files, which builds or other programs may have changed since a reply wrote
    /// them. Content in which `search` finds credentials is not returned; that of the reply is kept.
    pub fn current(&self, tree: &RunTree<'_>, search: Option<&Redactor>) -> Files {
        let may_be_sent = |text: &str| {
            search.is_none_or(|redactor| credentials::find("", text, redactor).is_empty())
        };
        let mut files = self.files.clone();
        for (path, known) in &mut files {
            let no_file = || tree.is_no_file(path).then(|| NO_FILE.to_owned());
            // A file that cannot be read or sent is shown as the reply wrote it.
            if let Ok(now) = present(tree, path).map(|now| now.or_else(no_file))
                && now != *known
                && now.as_deref().is_none_or(may_be_sent)
            {
                *known = now;
            }
        }
        files
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.files
            .iter()
            .map(|(path, content)| (path.as_str(), content.as_deref()))
    }

    /// Describes a passing change, after this many repairs; `is_as_before` if no file differs from its state before.
    pub fn summary(&self, repairs: u16, is_as_before: bool) -> String {
        if self.files.is_empty() {
            let why = if self.has_same {
                "the reply's files are as they were"
            } else {
                "the reply has no edits"
            };
            return format!("nothing changed: {why}; build.sh passed");
        }
        if is_as_before {
            return "nothing changed: the files are as they were before the run; build.sh passed"
                .to_owned();
        }
        let written = self.files.values().filter(|state| state.is_some()).count();
        let removed = self.files.len() - written;
        let repairs = match repairs {
            0 => "at the first try".to_owned(),
            1 => "after 1 repair".to_owned(),
            n => format!("after {n} repairs"),
        };
        format!("done: build.sh passed {repairs}; {written} written, {removed} removed")
    }
}
