//! Compares the new text of a file with the old one; silent losses are faults. Pure.

use std::collections::{BTreeSet, HashMap};

use memchr::memmem;

use super::form::{self, EditForm};
use super::loss::{self, Elision};
use super::{Allowances, FaultKind, ReplyFault};
use crate::secret::{ANY_MARK, MARK, credentials};

/// Limits on what files may lose in a reply.
#[derive(Debug, Clone, Default)]
pub struct LossGuard {
    /// The losses permitted by the user.
    pub allowances: Allowances,
    /// The user's request; files that it names may shrink.
    pub query: String,
    /// Texts written before the reply; lines found in them are not lost.
    pub written: Vec<String>,
    /// The marks that stand for secrets in what the model was shown, or in the record of its reply.
    pub marks: BTreeSet<String>,
}

/// The losses found in a file.
#[derive(Debug, Default)]
pub struct Loss {
    /// The faults, each with its line in the new text, starting at 1; 0 if it concerns the whole text.
    pub faults: Vec<ReplyFault>,
    /// Warnings, as sentence fragments to follow the file's name.
    pub warnings: Vec<String>,
}

impl LossGuard {
    /// Creates a guard that permits everything, for texts not written by a model.
    pub fn off() -> Self {
        Self {
            allowances: Allowances {
                elision: true,
                shrink: true,
                form: true,
            },
            ..Self::default()
        }
    }

    /// Finds the losses in the file at `path` if `new` replaces `old`, which is `None` for a new file; `others` are the
    /// other texts in the reply.
    pub(super) fn loss<'t>(
        &'t self,
        path: &str,
        old: Option<&'t str>,
        new: &'t str,
        others: impl Iterator<Item = &'t str>,
    ) -> Loss {
        let mut found = Loss::default();
        if let Some(old) = old {
            self.elisions(path, old, new, &mut found);
            // An elision also shrinks the file, and is reported only once.
            if found.faults.is_empty() {
                found.faults.extend(self.shrinkage(path, old, new, others));
            }
        }
        let foreign = form::foreign(path, old, new);
        found.faults.extend(self.foreign(path, foreign));
        found
    }

    /// Returns the fault of a file that gains a mark for a secret: the mark of a key in the path of a new file, or a
    /// mark on a line that `before` lacks or has fewer times. The mark of a credential only counts if `before` has a
    /// credential.
    pub(super) fn mark<'b>(
        &self,
        path: &str,
        is_new: bool,
        new: &str,
        before: impl FnOnce() -> &'b MarkedLines,
    ) -> Option<FaultKind> {
        let mark_in = |text: &[u8]| {
            let has = |mark: &&String| memmem::find(text, mark.as_bytes()).is_some();
            // A quick check, since most texts contain no mark, and there may be many marks.
            memmem::find(text, ANY_MARK.as_bytes())?;
            self.marks.iter().find(has)
        };
        let in_path = mark_in(path.as_bytes()).filter(|mark| is_new && mark.starts_with(MARK));
        let on_line = || {
            mark_in(new.as_bytes())?;
            let before = before();
            let mut seen: HashMap<&[u8], usize> = HashMap::new();
            marked(new.as_bytes()).find_map(|line| {
                let count = seen.entry(line).or_default();
                *count += 1;
                let is_new = before.lines.get(line).is_none_or(|had| *count > *had);
                let mark = mark_in(line).filter(|_| is_new)?;
                (mark.starts_with(MARK) || before.has_credential).then_some(mark)
            })
        };
        let mark = in_path.or_else(on_line)?.clone();
        let path = path.to_owned();
        Some(FaultKind::Redacted { path, mark })
    }

    /// Finds the faults in `put`, which replaces the lines `find` of the file at `path`.
    pub(super) fn loss_in_part(&self, path: &str, find: &str, put: &str) -> Vec<ReplyFault> {
        let mut found = Loss::default();
        self.elisions(path, find, put, &mut found);
        // A few lines may well be numbered, and prose may contain fenced blocks, as in a new file.
        let form =
            |text| form::foreign(path, None, text).filter(|(_, form)| *form != EditForm::Numbered);
        let foreign = form(put).filter(|(_, new)| form(find).is_none_or(|(_, old)| old != *new));
        found.faults.extend(self.foreign(path, foreign));
        found.faults
    }

    /// Returns the fault of a text in another edit format, unless it is allowed.
    fn foreign(&self, path: &str, found: Option<(usize, EditForm)>) -> Option<ReplyFault> {
        let (line, form) = found.filter(|_| !self.allowances.form)?;
        let path = path.to_owned();
        let kind = FaultKind::Foreign { path, line, form };
        Some(ReplyFault { line, kind })
    }

    fn elisions(&self, path: &str, old: &str, new: &str, found: &mut Loss) {
        for elision in loss::elisions(path, old, new) {
            let Elision { line, lost, .. } = elision;
            if !elision.is_explicit {
                let warning =
                    format!("has a comment in place of {lost} lines of code, on line {line}");
                found.warnings.push(warning);
            } else if !self.allowances.elision {
                let path = path.to_owned();
                let kind = FaultKind::Elided { path, line, lost };
                found.faults.push(ReplyFault { line, kind });
            }
        }
    }

    fn shrinkage<'t>(
        &'t self,
        path: &str,
        old: &'t str,
        new: &'t str,
        others: impl Iterator<Item = &'t str>,
    ) -> Option<ReplyFault> {
        let Allowances {
            elision, shrink, ..
        } = self.allowances;
        let (before, after) = loss::shrinkage(old, new).filter(|_| !(elision || shrink))?;
        let others = others.chain(self.written.iter().map(String::as_str));
        let is_meant = loss::names(&self.query, path) || loss::is_moved(old, new, others);
        let kind = FaultKind::Shrunk {
            path: path.to_owned(),
            before,
            after,
        };
        (!is_meant).then_some(ReplyFault { line: 0, kind })
    }
}

/// The lines, in the texts that a new text replaces, that may contain a mark for a secret.
#[derive(Debug, Default)]
pub(super) struct MarkedLines {
    /// The number of occurrences of each line.
    lines: HashMap<Vec<u8>, usize>,
    /// True if one of the texts contains a likely credential.
    has_credential: bool,
}

impl MarkedLines {
    /// Collects the lines from these texts, holding one text at a time.
    pub fn of(texts: impl Iterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut found = Self::default();
        for text in texts {
            for line in marked(text.as_ref()) {
                *found.lines.entry(line.to_vec()).or_default() += 1;
            }
            found.has_credential |= credentials::is_in(text.as_ref());
        }
        found
    }
}

/// Returns the lines that may contain a mark for a secret, without the white space around them.
fn marked(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| memmem::find(line, ANY_MARK.as_bytes()).is_some())
}
