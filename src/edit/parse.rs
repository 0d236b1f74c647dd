//! Finds the edits in a reply, by the contract's grammar. Pure.
//!
//! Guarantees that bodies are the reply's bytes exactly, and that no block ever swallows another:
//! a line in a body that begins like a fence is a fault.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memmem};

use super::beneath::ancestors;
use super::{Content, EditKind, FaultKind, FileEdit, ReplyFault};

/// A fence has at least this many carets.
const FENCE: &str = "^^^";

/// What a reply asks for, and what is wrong with its grammar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedReply {
    /// The edits, at most one a path, sorted by path.
    pub edits: Vec<FileEdit>,
    /// The grammar's faults; a reply with one is not to be applied.
    pub faults: Vec<ReplyFault>,
    /// The paths that more than one block names; the last block counts.
    pub repeated: Vec<String>,
}

impl ParsedReply {
    /// What a reply of one block would ask for: that the file at `path`, untrusted text, gets `content`.
    #[must_use]
    pub fn of_file(path: &str, content: String) -> Self {
        let range = 0..content.len();
        let reply = Arc::new(content);
        let edit = FileEdit {
            path: path.to_owned(),
            line: 1,
            action: EditKind::Write(Content { reply, range }),
        };
        Self {
            edits: vec![edit],
            ..Self::default()
        }
    }
}

/// Parses a reply.
#[must_use]
pub fn parse(reply: &Arc<String>) -> ParsedReply {
    let mut parser = Parser {
        reply,
        open: None,
        edits: Vec::new(),
        faults: Vec::new(),
        all_crlf: true,
    };
    for fence in fence_lines(reply) {
        parser.fence(&fence);
    }
    parser.finish()
}

/// A line of the reply that begins with a fence.
struct FenceLine<'r> {
    /// Its number, from 1 on.
    line: usize,
    /// Offset of its first byte.
    start: usize,
    /// Offset of the line behind it.
    next: usize,
    /// How many carets it begins with.
    carets: usize,
    /// What stands behind the carets, less the line end.
    rest: &'r str,
    /// Whether the line ends with `\r\n`; `None` where it does not end at all.
    crlf: Option<bool>,
}

/// What a fence line says.
enum Word<'r> {
    End,
    Delete,
    Path(&'r str),
}

impl<'r> FenceLine<'r> {
    fn at(reply: &'r str, start: usize, line: usize) -> Self {
        let text = &reply[start..];
        let newline = memchr(b'\n', text.as_bytes());
        let whole = &text[..newline.unwrap_or(text.len())];
        let rest = whole.trim_start_matches('^');
        Self {
            line,
            start,
            next: start + newline.map_or(text.len(), |end| end + 1),
            carets: whole.len() - rest.len(),
            rest,
            crlf: newline.map(|_| rest.ends_with('\r')),
        }
    }

    fn word(&self) -> Word<'r> {
        match self.rest.trim_end_matches([' ', '\t', '\r']) {
            "end" => Word::End,
            "delete" => Word::Delete,
            "" => Word::Path(""),
            _ => Word::Path(self.rest),
        }
    }
}

fn fence_lines(reply: &str) -> impl Iterator<Item = FenceLine<'_>> {
    let first = reply.starts_with(FENCE).then_some(0);
    let others = memmem::find_iter(reply.as_bytes(), b"\n^^^").map(|newline| newline + 1);
    let (mut counted, mut line) = (0, 1);
    first.into_iter().chain(others).map(move |start| {
        line += memchr_iter(b'\n', &reply.as_bytes()[counted..start]).count();
        counted = start;
        FenceLine::at(reply, start, line)
    })
}

/// A block that has been opened.
struct Open<'r> {
    path: &'r str,
    carets: usize,
    /// The number of the opening line.
    line: usize,
    /// Offset of the body.
    body: usize,
}

struct Parser<'r> {
    reply: &'r Arc<String>,
    open: Option<Open<'r>>,
    edits: Vec<FileEdit>,
    faults: Vec<ReplyFault>,
    /// Whether every fence line so far ends with `\r\n`.
    all_crlf: bool,
}

impl<'r> Parser<'r> {
    fn fence(&mut self, fence: &FenceLine<'r>) {
        // A shorter fence inside a block is a line of the body.
        let carets = self.open.as_ref().map_or(0, |open| open.carets);
        if fence.carets < carets {
            return;
        }
        self.all_crlf &= fence.crlf.unwrap_or(true);
        match (self.open.take(), fence.word()) {
            (None, Word::End) => self.fault(fence.line, FaultKind::StrayEnd),
            (None, Word::Delete) => self.fault(fence.line, FaultKind::StrayDelete),
            (None, Word::Path(path)) => self.opening(path, fence),
            (Some(open), Word::End) if fence.carets == carets => {
                let content = Content {
                    reply: Arc::clone(self.reply),
                    range: open.body..fence.start,
                };
                self.edit(&open, EditKind::Write(content));
            }
            (Some(open), Word::Delete) if fence.carets == carets && fence.start == open.body => {
                self.edit(&open, EditKind::Remove);
            }
            (Some(open), word) => {
                let fault = FaultKind::FenceInBlock {
                    found: format!("{}{}", "^".repeat(fence.carets), fence.rest),
                    path: open.path.to_owned(),
                    opened: open.line,
                };
                self.fault(fence.line, fault);
                // Most likely the block's end is missing: what follows is judged from here on.
                if let Word::Path(path) = word {
                    self.opening(path, fence);
                }
            }
        }
    }

    fn opening(&mut self, path: &'r str, fence: &FenceLine<'r>) {
        if path.is_empty() {
            self.fault(fence.line, FaultKind::NoPath);
        }
        self.open = Some(Open {
            path,
            carets: fence.carets,
            line: fence.line,
            body: fence.next,
        });
    }

    fn edit(&mut self, open: &Open<'r>, action: EditKind) {
        // A block without a path is a fault already.
        if !open.path.is_empty() {
            self.edits.push(FileEdit {
                path: open.path.to_owned(),
                line: open.line,
                action,
            });
        }
    }

    fn fault(&mut self, line: usize, kind: FaultKind) {
        self.faults.push(ReplyFault { line, kind });
    }

    fn finish(mut self) -> ParsedReply {
        if let Some(open) = self.open.take() {
            let path = open.path.to_owned();
            self.fault(open.line, FaultKind::NoEnd { path });
        }
        if self.all_crlf {
            for edit in &mut self.edits {
                if edit.path.ends_with('\r') {
                    edit.path.pop();
                }
            }
        }
        let (edits, repeated) = last_of_each_path(self.edits);
        let mut faults = self.faults;
        faults.extend(files_that_are_directories(&edits));
        ParsedReply {
            edits,
            faults,
            repeated,
        }
    }
}

fn last_of_each_path(edits: Vec<FileEdit>) -> (Vec<FileEdit>, Vec<String>) {
    let mut last: HashMap<String, FileEdit> = HashMap::with_capacity(edits.len());
    let mut repeated = Vec::new();
    for edit in edits {
        if let Some(earlier) = last.insert(edit.path.clone(), edit) {
            repeated.push(earlier.path);
        }
    }
    repeated.sort();
    repeated.dedup();
    let mut edits: Vec<FileEdit> = last.into_values().collect();
    edits.sort_by(|a, b| a.path.cmp(&b.path));
    (edits, repeated)
}

/// Faults for files that would have to be directories at the same time.
fn files_that_are_directories(edits: &[FileEdit]) -> Vec<ReplyFault> {
    let is_written = |edit: &&FileEdit| edit.action != EditKind::Remove;
    let written = || edits.iter().filter(is_written);
    let paths: HashSet<&str> = written().map(|edit| edit.path.as_str()).collect();
    let mut faults = Vec::new();
    for edit in written() {
        for path in ancestors(&edit.path).filter(|path| paths.contains(path)) {
            let (path, below) = (path.to_owned(), edit.path.clone());
            let kind = FaultKind::FileAndDirectory { path, below };
            faults.push(ReplyFault {
                line: edit.line,
                kind,
            });
        }
    }
    faults
}

#[cfg(test)]
mod tests;
