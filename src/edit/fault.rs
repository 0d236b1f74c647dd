//! The edits requested in a reply, and the possible faults of a reply. Plain data.

use std::borrow::Cow;
use std::collections::BTreeSet;

use memchr::memchr_iter;

use super::form::EditForm;
use super::rule::Rule;
use super::spelling::{self, PathScope};
use crate::sys::numbers::counted;

/// An edit's effect on a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditKind {
    /// The file gets this content, and is created if it does not exist.
    Write(String),
    /// The file is removed.
    Remove,
}

impl EditKind {
    /// Returns the new content; `None` if the file is removed.
    pub fn content(&self) -> Option<&str> {
        match self {
            Self::Write(content) => Some(content),
            Self::Remove => None,
        }
    }
}

/// An edit as requested in the reply; its path is untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// The path as written in the reply.
    pub path: String,
    /// The line of the reply that names the path, starting at 1.
    pub line: usize,
    /// The effect on the file.
    pub kind: EditKind,
    /// The replacements that the file's content was computed from; none if the reply has the whole file.
    pub parts: Vec<Replacement>,
}

impl FileEdit {
    /// Returns a fault of the file as a whole.
    pub(super) fn fault(&self, kind: FaultKind) -> ReplyFault {
        let line = self.line;
        ReplyFault { line, kind }
    }
}

/// A replacement of lines in a file, as written in the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The line of the reply with the `^^^find`, starting at 1.
    pub line: usize,
    /// The lines to find, with their line ends.
    pub find: String,
    /// The new lines, with their line ends.
    pub put: String,
}

impl Replacement {
    /// Returns the line of the reply with the `^^^put`, starting at 1.
    pub fn put_line(&self) -> usize {
        self.line + memchr_iter(b'\n', self.find.as_bytes()).count() + 1
    }
}

/// A fault found in a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("line {line}: {kind}")]
#[diagnostic(forward(kind))]
pub struct ReplyFault {
    /// The line of the reply, starting at 1.
    pub line: usize,
    /// The fault.
    pub kind: FaultKind,
}

impl ReplyFault {
    /// Shifts the fault of a text that begins after this line of the reply.
    pub(super) fn behind(self, line: usize) -> Self {
        let line = line + self.line;
        Self { line, ..self }
    }

    /// Returns whether the fault is about a replacement in the file at `path`.
    pub(super) fn is_unlocated(&self, path: &str) -> bool {
        matches!(&self.kind, FaultKind::Unlocated { path: of, .. } if of == path)
    }
}

impl Rejection {
    /// Returns whether one of the faults forbids writing the file at `path`, whatever its content.
    pub(crate) fn is_of(&self, path: &str) -> bool {
        self.faults.iter().any(|fault| match &fault.kind {
            FaultKind::Path { path: of, .. } | FaultKind::Decorated { path: of, .. } => of == path,
            _ => false,
        })
    }
}

/// The explanation of a line that is meant to end a list of edits.
const DONE: &str = ": only a list of edits ends with `^^^done`, and then with `^^^done N`";

/// The kinds of faults.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum FaultKind {
    /// `^^^` without a path.
    #[error("`^^^` without a path")]
    NoPath,
    /// A mark of a block without an open block.
    #[error("`^^^{mark}` outside a block")]
    Stray { mark: String },
    /// `^^^delete` that does not directly follow an opening line.
    #[error("`^^^delete` that is not right under its `^^^path` line")]
    StrayDelete,
    /// A line inside a block that begins like a fence.
    #[error(
        "`{}` inside the block of `{}` from line {opened}, whose `{}end` is missing",
        .found.escape_debug(), .path.escape_debug(), "^".repeat(*.carets)
    )]
    FenceInBlock {
        /// The line without its line ending.
        found: String,
        /// The path of the open block.
        path: String,
        /// The block's first line.
        opened: usize,
        /// The number of carets that the block's marks have.
        carets: usize,
    },
    /// The reply ends inside a block.
    #[error(
        "the block of `{}` has no `{}end`{}",
        .path.escape_debug(), "^".repeat(*.carets), if path == "done" { DONE } else { "" }
    )]
    NoEnd {
        /// The path of the open block.
        path: String,
        /// The number of carets that the block's marks have.
        carets: usize,
    },
    /// The marks of a block are not in order.
    #[error(
        "`{}`: `^^^{mark}` out of place: right below its path, a block has `^^^find` and `^^^put` by turns, then `^^^end`",
        .path.escape_debug()
    )]
    OutOfPlace { path: String, mark: String },
    /// A tag that ends a thought follows a block.
    #[error("this ends a thought, and blocks stand before it: put all blocks behind it")]
    Thought,
    /// Two blocks name the same file.
    #[error("`{}` has a block on line {first} already: put all of a file into one block", .path.escape_debug())]
    NamedTwice { path: String, first: usize },
    /// A replacement cannot be made.
    #[error("`{}`: {why}", .path.escape_debug())]
    Unlocated { path: String, why: Unlocated },
    /// A path is used both as a file and as a directory.
    #[error(
        "`{}` is to be a file, but `{}` is written too",
        .path.escape_debug(), .below.escape_debug()
    )]
    FileAndDirectory { path: String, below: String },
    /// A request for files cannot be granted.
    #[error("{0}")]
    Need(Cow<'static, str>),
    /// A path breaks a rule of the policy.
    #[error("`{}`: {rule}", .path.escape_debug())]
    #[diagnostic(code("reply-rejected/path"))]
    Path { path: String, rule: Rule },
    /// A path is enclosed in quotes, brackets or the like.
    #[error(
        "`{}` is a path with something around it: write `{}`",
        .path.escape_debug(), .plain.escape_debug()
    )]
    #[diagnostic(code("reply-rejected/path"))]
    Decorated { path: String, plain: String },
    /// A value in the file, named by its JSON Pointer, is protected.
    #[error("`{}`: its `{pointer}` is protected, and must stay as it is", .path.escape_debug())]
    #[diagnostic(code("reply-rejected/path"))]
    Value { path: String, pointer: String },
    /// A mark replaces a secret in the file.
    #[error(
        "`{}`: `{mark}` stands for a secret in prompts and logs, and must not be written in its place",
        .path.escape_debug()
    )]
    #[diagnostic(code("reply-rejected/incomplete-code"))]
    Redacted { path: String, mark: String },
    /// A comment replaces code of the file.
    #[error(
        "`{}`: a comment on line {line} of the new text takes the place of {lost} lines of code: write them out",
        .path.escape_debug()
    )]
    #[diagnostic(code("reply-rejected/incomplete-code"))]
    Elided {
        /// The path of the file.
        path: String,
        /// The line of the comment in the new text, starting at 1.
        line: usize,
        /// The number of code lines removed, less those added.
        lost: usize,
    },
    /// Most of a file would be lost.
    #[error(
        "`{}` would shrink from {before} lines to {after}: write the whole file, or write what moves elsewhere first",
        .path.escape_debug()
    )]
    #[diagnostic(code("reply-rejected/incomplete-code"))]
    Shrunk {
        /// The path of the file.
        path: String,
        /// The current number of lines.
        before: usize,
        /// The number of lines after the edit.
        after: usize,
    },
    /// The new text is in another edit format, such as a diff.
    #[error("`{}`: {form}, on line {line} of the new text: write the file's own text alone", .path.escape_debug())]
    #[diagnostic(code("reply-rejected/incomplete-code"))]
    Foreign {
        /// The path of the file.
        path: String,
        /// The line of the new text that shows the format, starting at 1.
        line: usize,
        /// The format.
        form: EditForm,
    },
}

/// Reasons that a replacement cannot be made in a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unlocated {
    /// The `^^^find` is empty.
    #[error("the `^^^find` has no line")]
    Empty,
    /// The `^^^put` equals the `^^^find`.
    #[error("the `^^^put` is the same as the `^^^find`")]
    Same,
    /// A line is not in the file.
    #[error("there is no line `{sought}` in the file as it was sent{}", nearest_line(.nearest.as_ref()))]
    NoLine {
        /// The line that was sought.
        sought: String,
        /// The nearest line of the file: its number, its text, and the difference.
        nearest: Option<(usize, String, &'static str)>,
    },
    /// Some of the lines are not in the file, or they are not consecutive.
    #[error("the lines are not in the file as it was sent, in a row")]
    NotInARow,
    /// The lines are in the file more than once.
    #[error(
        "the lines are in the file {count} times, on lines {lines}: add lines around them until they are there once"
    )]
    Repeated { count: String, lines: String },
    /// Another replacement covers some of the same lines.
    #[error(
        "the lines overlap those of the `^^^find` on line {other}, from line {line} of the file on: join the two"
    )]
    Overlapping { other: usize, line: usize },
    /// The lines, which begin at this line number, are in a part of the file that was not shown.
    #[error("the lines, from line {0} of the file on, are not among those that were shown")]
    LinesNotShown(usize),
    /// The file's text was not sent.
    #[error("the file was not shown, so nothing can be found in it")]
    NotShown,
    /// The file does not exist.
    #[error("the file does not exist: to create it, write it as a whole")]
    NoFile,
}

fn nearest_line(nearest: Option<&(usize, String, &'static str)>) -> String {
    nearest.map_or(String::new(), |(line, text, how)| {
        format!("; the nearest is line {line}{how}: `{text}`")
    })
}

impl FaultKind {
    /// Returns the fault of a path that breaks a rule.
    pub fn breach(path: &str, rule: Rule) -> Self {
        let path = path.to_owned();
        Self::Path { path, rule }
    }

    /// Returns the fault of a path that decorates `plain`; a rule broken by `plain` takes precedence.
    pub fn misnamed(path: &str, plain: &str, scope: PathScope) -> Self {
        match spelling::broken_rule(plain, scope) {
            Some(rule) => Self::breach(path, rule),
            None => Self::Decorated {
                path: path.to_owned(),
                plain: plain.to_owned(),
            },
        }
    }

    /// Returns the flag that permits the fault, if any.
    pub fn flag(&self) -> Option<&'static str> {
        match self {
            Self::Elided { .. } => Some("--allow-elision"),
            Self::Shrunk { .. } => Some("--allow-shrink"),
            Self::Foreign { .. } => Some("--allow-form"),
            _ => None,
        }
    }
}

/// The losses that a reply may cause in files that it replaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowances {
    /// True if comments may replace code, and files may shrink.
    pub elision: bool,
    /// True if files may lose most of their lines.
    pub shrink: bool,
    /// True if new texts may be in another edit format.
    pub form: bool,
}

/// A rejected reply with all its faults; nothing was applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("the reply is rejected for {}:{}", counted(.faults.len() as u64, "fault"), lines(.faults))]
pub struct Rejection {
    /// The faults, in order of the reply's lines; at least one.
    #[related]
    pub faults: Vec<ReplyFault>,
}

impl Rejection {
    /// Returns the flags that together permit the reply; `None` if some fault cannot be permitted.
    pub fn flags(&self) -> Option<String> {
        let flags = self.faults.iter().map(|fault| fault.kind.flag());
        Some(Vec::from_iter(flags.collect::<Option<BTreeSet<&str>>>()?).join(" "))
    }
}

fn lines(faults: &[ReplyFault]) -> String {
    faults.iter().map(|fault| format!("\n  {fault}")).collect()
}
