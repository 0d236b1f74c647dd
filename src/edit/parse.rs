//! Parses the edits in a reply, by the contract's grammar. Pure.
//!
//! Guarantees that bodies are exactly the reply's bytes, and that no block ever swallows another: a line in a body that
//! begins like a fence is a fault.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use memchr::{memchr, memchr_iter, memmem};

use super::beneath::ancestors;
use super::{EditKind, FaultKind, FileEdit, ReplyFault};

/// The shortest fence: three carets.
const FENCE: &str = "^^^";

/// The edits of a reply, and its syntax faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedReply {
    /// The edits, at most one per path, sorted by path.
    pub edits: Vec<FileEdit>,
    /// The syntax faults; a reply with any must not be applied.
    pub faults: Vec<ReplyFault>,
    /// The paths named by more than one block; the last block counts.
    pub repeated: Vec<String>,
    /// The text outside of blocks.
    pub prose: String,
}

impl ParsedReply {
    /// A parsed reply with these blocks, at most one per path; the paths are untrusted text.
    pub fn of_files(mut edits: Vec<(String, EditKind)>) -> Self {
        edits.sort_by(|(one, _), (other, _)| one.cmp(other));
        let edits = edits.into_iter().map(|(path, kind)| FileEdit {
            path,
            line: 1,
            kind,
        });
        Self {
            edits: edits.collect(),
            ..Self::default()
        }
    }
}

/// Parses a reply.
#[must_use]
pub fn parse(reply: &str) -> ParsedReply {
    let mut parser = Parser {
        reply,
        open: None,
        edits: Vec::new(),
        faults: Vec::new(),
        prose: String::new(),
        all_crlf: true,
    };
    let bytes = reply.as_bytes();
    let (mut number, mut done) = (1, 0);
    for start in memmem::find_iter(bytes, FENCE) {
        if start > 0 && bytes[start - 1] != b'\n' {
            continue;
        }
        parser.text(&reply[done..start]);
        number += memchr_iter(b'\n', &bytes[done..start]).count();
        done = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |end| start + end + 1);
        parser.fence(number, start, &reply[start..done]);
        number += 1;
    }
    parser.text(&reply[done..]);
    parser.finish()
}

/// An open block.
struct OpenBlock<'r> {
    path: &'r str,
    carets: usize,
    /// The number of the opening line.
    line: usize,
    /// The byte offset of the body.
    body: usize,
}

struct Parser<'r> {
    reply: &'r str,
    open: Option<OpenBlock<'r>>,
    edits: Vec<FileEdit>,
    faults: Vec<ReplyFault>,
    prose: String,
    /// True if every fence line so far ends with `\r\n`.
    all_crlf: bool,
}

impl<'r> Parser<'r> {
    /// Handles the lines up to the next fence.
    fn text(&mut self, text: &str) {
        if self.open.is_none() {
            self.prose.push_str(text);
        }
    }

    /// Handles the next fence line, given its number and offset.
    fn fence(&mut self, number: usize, start: usize, line: &'r str) {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let rest = text.trim_start_matches('^');
        let carets = text.len() - rest.len();
        // A shorter fence inside a block is a line of the body.
        if self.open.as_ref().is_some_and(|open| carets < open.carets) {
            return;
        }
        self.all_crlf &= text.len() == line.len() || text.ends_with('\r');
        let word = rest.trim_end_matches([' ', '\t', '\r']);
        let opening = OpenBlock {
            path: if word.is_empty() { word } else { rest },
            carets,
            line: number,
            body: start + line.len(),
        };
        match (self.open.take(), word) {
            (None, "end") => self.fault(number, FaultKind::StrayEnd),
            (None, "delete") => self.fault(number, FaultKind::StrayDelete),
            (None, _) => self.open(opening),
            (Some(open), "end") if carets == open.carets => {
                let content = self.reply[open.body..start].to_owned();
                self.edit(&open, EditKind::Write(content));
            }
            (Some(open), "delete") if carets == open.carets && start == open.body => {
                self.edit(&open, EditKind::Remove);
            }
            (Some(open), _) => {
                let fault = FaultKind::FenceInBlock {
                    found: text.to_owned(),
                    path: open.path.to_owned(),
                    opened: open.line,
                };
                self.fault(number, fault);
                // Most likely the end of the block is missing, so a new block is opened for what follows.
                if !matches!(word, "end" | "delete") {
                    self.open(opening);
                }
            }
        }
    }

    fn open(&mut self, block: OpenBlock<'r>) {
        if block.path.is_empty() {
            self.fault(block.line, FaultKind::NoPath);
        }
        self.open = Some(block);
    }

    fn edit(&mut self, block: &OpenBlock<'r>, kind: EditKind) {
        // A missing path has already been reported.
        if !block.path.is_empty() {
            self.edits.push(FileEdit {
                path: block.path.to_owned(),
                line: block.line,
                kind,
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
        let (mut last, mut repeated) = (BTreeMap::new(), BTreeSet::new());
        for mut edit in self.edits {
            if self.all_crlf && edit.path.ends_with('\r') {
                edit.path.pop();
            }
            if let Some(earlier) = last.insert(edit.path.clone(), edit) {
                repeated.insert(earlier.path);
            }
        }
        let edits: Vec<FileEdit> = last.into_values().collect();
        let mut faults = self.faults;
        faults.extend(files_that_are_directories(&edits));
        ParsedReply {
            edits,
            faults,
            repeated: repeated.into_iter().collect(),
            prose: self.prose,
        }
    }
}

/// Finds files that would also have to be directories.
fn files_that_are_directories(edits: &[FileEdit]) -> Vec<ReplyFault> {
    let written = edits.iter();
    let written = written.filter(|edit| edit.kind != EditKind::Remove);
    let paths: HashSet<&str> = written.clone().map(|edit| edit.path.as_str()).collect();
    let fault = |edit: &FileEdit, path: &str| ReplyFault {
        line: edit.line,
        kind: FaultKind::FileAndDirectory {
            path: path.to_owned(),
            below: edit.path.clone(),
        },
    };
    let faults = written.flat_map(|edit| {
        let files = ancestors(&edit.path).filter(|path| paths.contains(path));
        files.map(move |path| fault(edit, path))
    });
    faults.collect()
}

#[cfg(test)]
mod tests;
