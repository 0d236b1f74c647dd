//! Holds the new text of a file against the old one: what is lost in silence is a fault. Pure.

use super::loss::{self, Elision};
use super::{Allowances, FaultKind, form};

/// Limits on what files may lose by a reply.
#[derive(Debug, Clone, Default)]
pub struct LossGuard {
    /// The losses that the user allows.
    pub allowances: Allowances,
    /// The user's request: a file that it names may shrink.
    pub query: String,
    /// Texts that were written before the reply: lines that stand there are not lost.
    pub written: Vec<String>,
}

/// The losses of a file.
#[derive(Debug, Default)]
pub struct Loss {
    /// Each with its line of the new text, from 1 on, or 0 where it is of all of it.
    pub faults: Vec<(usize, FaultKind)>,
    /// Ends of sentences whose subject is the file.
    pub warnings: Vec<String>,
}

impl LossGuard {
    /// A guard that lets everything pass, for what no model has written.
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

    /// Finds the losses of the file at `path` if `new` replaces `old`, which is `None` for a new file; `others` are
    /// the other texts of the reply.
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
            // A file that is cut shrinks, too.
            if found.faults.is_empty() {
                found.faults.extend(self.shrinkage(path, old, new, others));
            }
        }
        let foreign = form::foreign(path, old, new).filter(|_| !self.allowances.form);
        found.faults.extend(foreign.map(|(line, form)| {
            let path = path.to_owned();
            (line, FaultKind::Foreign { path, line, form })
        }));
        found
    }

    fn elisions(&self, path: &str, old: &str, new: &str, found: &mut Loss) {
        for Elision {
            line,
            lost,
            is_said,
        } in loss::elisions(path, old, new)
        {
            if !is_said {
                let warning =
                    format!("has a comment in place of {lost} lines of code, on line {line}");
                found.warnings.push(warning);
            } else if !self.allowances.elision {
                let path = path.to_owned();
                found
                    .faults
                    .push((line, FaultKind::Elided { path, line, lost }));
            }
        }
    }

    fn shrinkage<'t>(
        &'t self,
        path: &str,
        old: &'t str,
        new: &'t str,
        others: impl Iterator<Item = &'t str>,
    ) -> Option<(usize, FaultKind)> {
        let Allowances {
            elision, shrink, ..
        } = self.allowances;
        let (before, after) = loss::shrinkage(old, new).filter(|_| !(elision || shrink))?;
        let others = others.chain(self.written.iter().map(String::as_str));
        let is_meant = loss::names(&self.query, path) || loss::is_moved(old, new, others);
        let path = path.to_owned();
        (!is_meant).then_some((
            0,
            FaultKind::Shrunk {
                path,
                before,
                after,
            },
        ))
    }
}
