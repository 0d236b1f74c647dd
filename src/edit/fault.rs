//! The edits that a reply asks for, and what can be wrong with them. Plain data.

use std::collections::BTreeSet;
use std::fmt;

use super::form::EditForm;
use super::rule::Rule;
use crate::sys::numbers::counted;

/// An edit's effect on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditKind {
    /// It gets this content, and is made where it is not there.
    Write(String),
    /// It is removed.
    Remove,
}

/// An edit as the reply asks for it; its path is untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The path as it stands in the reply.
    pub path: String,
    /// The line of the reply that names it, from 1 on.
    pub line: usize,
    /// The effect.
    pub kind: EditKind,
}

/// One thing that is wrong with a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct ReplyFault {
    /// The reply's line, from 1 on.
    pub line: usize,
    /// The fault.
    pub kind: FaultKind,
}

/// A way for a reply to be wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// `^^^` with nothing behind it.
    #[error("`^^^` without a path")]
    NoPath,
    /// `^^^end` where no block is open.
    #[error("`^^^end` outside a block")]
    StrayEnd,
    /// `^^^delete` that is not right under an opening line.
    #[error("`^^^delete` that is not right under its `^^^path` line")]
    StrayDelete,
    /// A line of a body that begins like a fence.
    #[error(
        "`{}` inside the block of `{}` from line {opened}, whose `^^^end` is missing",
        .found.escape_debug(), .path.escape_debug()
    )]
    FenceInBlock {
        /// The line, less its end.
        found: String,
        /// The path of the block that is open.
        path: String,
        /// The block's first line.
        opened: usize,
    },
    /// The reply ends inside a block.
    #[error("the block of `{}` has no `^^^end`", .path.escape_debug())]
    NoEnd { path: String },
    /// A file and a file below it are both to be written.
    #[error(
        "`{}` is to be a file, but `{}` is written too",
        .path.escape_debug(), .below.escape_debug()
    )]
    FileAndDirectory { path: String, below: String },
    /// A path is not allowed.
    #[error("`{}`: {rule}", .path.escape_debug())]
    Path { path: String, rule: Rule },
    /// A path is not written as it is.
    #[error(
        "`{}` is a path with something around it: write `{}`",
        .path.escape_debug(), .plain.escape_debug()
    )]
    Decorated { path: String, plain: String },
    /// A comment stands for code of the file that is to be replaced.
    #[error(
        "`{}`: a comment on line {line} of the new text takes the place of {lost} lines of code: write them out",
        .path.escape_debug()
    )]
    Elided {
        /// The path of the file.
        path: String,
        /// The line of its new text, from 1 on.
        line: usize,
        /// The lines of code removed, less those added.
        lost: usize,
    },
    /// Most of a file is to be lost.
    #[error(
        "`{}` would shrink from {before} lines to {after}: write the whole file, or write what moves elsewhere first",
        .path.escape_debug()
    )]
    Shrunk {
        /// The path of the file.
        path: String,
        /// The lines it has,
        before: usize,
        /// and those it would have.
        after: usize,
    },
    /// A file's new text is in another form of edits.
    #[error("`{}`: {form}, on line {line} of the new text: write the file's own text alone", .path.escape_debug())]
    Foreign {
        /// The path of the file.
        path: String,
        /// The line of its new text that shows the form, from 1 on.
        line: usize,
        /// The form.
        form: EditForm,
    },
}

impl FaultKind {
    /// The flag that lets it pass, if there is one.
    pub fn flag(&self) -> Option<&'static str> {
        match self {
            Self::Elided { .. } => Some("--allow-elision"),
            Self::Shrunk { .. } => Some("--allow-shrink"),
            Self::Foreign { .. } => Some("--allow-form"),
            _ => None,
        }
    }
}

/// Losses that a reply may cause in the files that it replaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowances {
    /// Code that a comment stands for, and most of a file.
    pub elision: bool,
    /// Most of a file.
    pub shrink: bool,
    /// The form of a whole file's text.
    pub form: bool,
}

/// A reply of which nothing is applied, with all that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// At least one, in the order of the reply's lines.
    pub faults: Vec<ReplyFault>,
}

impl Rejection {
    /// The flags that together let all of the reply pass; none where something in it is wrong in any case.
    pub fn flags(&self) -> Option<String> {
        let flags = self.faults.iter().map(|fault| fault.kind.flag());
        let flags: BTreeSet<&str> = flags.collect::<Option<_>>()?;
        Some(flags.into_iter().collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = counted(self.faults.len() as u64, "fault");
        write!(f, "the reply is rejected for {faults}")?;
        self.faults
            .iter()
            .try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for Rejection {}
