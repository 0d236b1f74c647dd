//! Parses the edits in a reply, by the contract's grammar. Pure.
//!
//! Guarantees that bodies are exactly the reply's bytes, and that no block ever swallows another: a line in a body that
//! begins like a fence is a fault.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem;

use memchr::{memchr, memchr_iter, memmem};

use super::beneath::ancestors;
use super::{EditKind, FaultKind, FileEdit, Replacement, ReplyFault};
use crate::model::ReplyFormat;
use crate::model::thoughts::{ends_thought, without_thoughts};
use crate::sys::numbers::counted;

/// The shortest fence: three carets.
const FENCE: &str = "^^^";
/// The name of the block with which a reply asks for files.
const NEED: &str = "need";

/// The edits of a reply, and its syntax faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedReply {
    /// The edits, at most one per path, sorted by path.
    pub edits: Vec<FileEdit>,
    /// The syntax faults; a reply with any must not be applied.
    pub faults: Vec<ReplyFault>,
    /// The paths named by more than one block; the last block wins.
    pub repeated: Vec<String>,
    /// The files in which not all replacements were found.
    pub unlocated: Vec<FileEdit>,
    /// The reason why the reply must be incomplete, whatever the server says.
    pub incomplete: Option<String>,
    /// The text outside of blocks.
    pub prose: String,
}

impl ParsedReply {
    /// Returns the request for files, if the reply is one.
    pub fn request(&self) -> Option<&FileEdit> {
        self.edits.iter().find(|edit| edit.path == NEED)
    }

    /// Creates a parsed reply with these blocks, at most one per path; the paths are untrusted text.
    pub fn of_files(mut edits: Vec<(String, EditKind)>) -> Self {
        edits.sort_by(|(one, _), (other, _)| one.cmp(other));
        let edits = edits.into_iter().map(|(path, kind)| FileEdit {
            path,
            line: 1,
            kind,
            parts: Vec::new(),
        });
        Self {
            edits: edits.collect(),
            ..Self::default()
        }
    }
}

/// Parses a reply of whole files.
#[cfg(test)]
pub fn parse(reply: &str) -> ParsedReply {
    parse_as(reply, ReplyFormat::Whole)
}

/// Parses a reply, without the thoughts at its beginning. Files with replacements have these as their `parts`, not
/// located yet, and no content.
pub(super) fn parse_as(reply: &str, format: ReplyFormat) -> ParsedReply {
    let Some(rest) = without_thoughts(reply) else {
        let endless = "all of it is thought, since no `</think>` follows".to_owned();
        return ParsedReply {
            incomplete: Some(endless),
            ..ParsedReply::default()
        };
    };
    let begin = reply.len() - rest.len();
    let mut parser = Parser {
        reply,
        has_thoughts: begin > 0,
        has_marks: format == ReplyFormat::Edits,
        all_crlf: true,
        ..Parser::default()
    };
    let bytes = reply.as_bytes();
    let mut done = begin;
    let mut number = 1 + memchr_iter(b'\n', &bytes[..done]).count();
    for start in memmem::find_iter(rest.as_bytes(), FENCE).map(|at| at + begin) {
        if start > begin && bytes[start - 1] != b'\n' {
            continue;
        }
        parser.text(number, &reply[done..start]);
        number += memchr_iter(b'\n', &bytes[done..start]).count();
        done = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |end| start + end + 1);
        parser.fence(number, start, &reply[start..done]);
        number += 1;
    }
    parser.text(number, &reply[done..]);
    parser.finish()
}

/// Parses a reply that is incomplete according to its `^^^done N`, or the lack of it; `None` if it is complete.
pub fn incomplete(reply: &str, format: ReplyFormat) -> Option<ParsedReply> {
    // Most replies of whole files have no such line, and need not be parsed.
    let has_done = || memmem::find(reply.as_bytes(), b"^^^done ").is_some();
    if format == ReplyFormat::Whole && without_thoughts(reply).is_some() && !has_done() {
        return None;
    }
    let parsed = parse_as(reply, format);
    parsed.incomplete.is_some().then_some(parsed)
}

/// The block whose end has not been found yet.
struct OpenBlock<'r> {
    path: &'r str,
    carets: usize,
    /// The number of the opening line.
    line: usize,
    /// The byte offset of the piece that is open: the body, or the lines of a mark.
    body: usize,
    piece: Piece,
    parts: Vec<Replacement>,
}

/// The open piece of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// The file's text, before any `^^^find`.
    Whole,
    /// The lines of the `^^^find` on this line.
    Find(usize),
    /// The lines of a `^^^put`.
    Put,
}

#[derive(Default)]
struct Parser<'r> {
    reply: &'r str,
    /// True if the reply begins with thoughts, so that no other end of one is looked for.
    has_thoughts: bool,
    /// True if `^^^find`, `^^^put` and `^^^done N` are always marks; otherwise they may be paths.
    has_marks: bool,
    open: Option<OpenBlock<'r>>,
    parsed: ParsedReply,
    /// True if every fence line so far ends with `\r\n`.
    all_crlf: bool,
    /// The number of files stated in `^^^done N`.
    done: Option<usize>,
    /// The line of the first fence after `^^^done N`.
    behind: Option<usize>,
}

impl<'r> Parser<'r> {
    /// Handles the text up to the next fence; `number` is that of its first line.
    fn text(&mut self, number: usize, text: &str) {
        if self.open.is_some() {
            return;
        }
        self.parsed.prose.push_str(text);
        if self.has_thoughts || self.parsed.edits.is_empty() {
            return;
        }
        if let Some(at) = text.lines().position(ends_thought) {
            self.fault(number + at, FaultKind::Thought);
        }
    }

    /// Handles the next fence line, given its number and offset.
    fn fence(&mut self, number: usize, start: usize, line: &'r str) {
        let text = line.strip_suffix('\n').unwrap_or(line);
        let rest = text.trim_start_matches('^');
        let carets = text.len() - rest.len();
        let word = rest.trim_end_matches([' ', '\t', '\r']);
        // A shorter fence inside a block is a line of the body.
        if let Some(open) = self.open.as_ref().filter(|open| carets < open.carets) {
            // Otherwise, an overlong fence of a path would turn the marks into the file's text.
            let is_first = (start, open.piece) == (open.body, Piece::Whole);
            if self.has_marks && is_first && word == "find" {
                self.out_of_place(open.path, word, number);
            }
            return;
        }
        self.all_crlf &= text.len() == line.len() || text.ends_with('\r');
        if self.done.is_some() {
            self.behind = self.behind.or(Some(number));
        }
        let done = count_in(word).filter(|_| self.has_marks);
        let is_mark = self.has_marks && matches!(word, "find" | "put");
        let opening = OpenBlock {
            path: if word.is_empty() { word } else { rest },
            carets,
            line: number,
            body: start + line.len(),
            piece: Piece::Whole,
            parts: Vec::new(),
        };
        match (self.open.take(), word) {
            (None, "delete") => self.fault(number, FaultKind::StrayDelete),
            (None, mark) if is_mark || mark == "end" => {
                let mark = mark.to_owned();
                self.fault(number, FaultKind::Stray { mark });
            }
            (None, _) if done.is_some() => self.done = done,
            (None, _) => self.open(opening),
            (Some(open), "end") if carets == open.carets => self.close(open, number, start),
            (Some(open), "delete")
                if carets == open.carets && start == open.body && open.piece == Piece::Whole =>
            {
                self.edit(&open, EditKind::Remove, Vec::new());
            }
            (Some(open), _) if is_mark && carets == open.carets => {
                self.mark(open, word, number, start..opening.body);
            }
            (Some(open), _) => {
                let fault = FaultKind::FenceInBlock {
                    found: text.to_owned(),
                    path: open.path.to_owned(),
                    opened: open.line,
                    carets: open.carets,
                };
                self.fault(number, fault);
                self.done = done.or(self.done);
                // Most likely the end of the block is missing, so a new block is opened for what follows.
                if done.is_none() && !is_mark && !matches!(word, "end" | "delete") {
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

    /// Handles `^^^find` or `^^^put`, whose line has this range, in a block.
    fn mark(
        &mut self,
        mut open: OpenBlock<'r>,
        word: &str,
        line: usize,
        range: std::ops::Range<usize>,
    ) {
        let text = &self.reply[open.body..range.start];
        match (word, open.piece) {
            ("find", Piece::Whole) if text.is_empty() => {}
            ("find", Piece::Put) => open.put(text),
            ("put", Piece::Find(of)) => open.parts.push(Replacement {
                line: of,
                find: text.to_owned(),
                put: String::new(),
            }),
            _ => self.out_of_place(open.path, word, line),
        }
        open.piece = match word {
            "find" => Piece::Find(line),
            _ => Piece::Put,
        };
        open.body = range.end;
        self.open = Some(open);
    }

    /// Handles the `^^^end` of a block, on this line and at this offset.
    fn close(&mut self, mut open: OpenBlock<'r>, line: usize, end: usize) {
        let text = &self.reply[open.body..end];
        match open.piece {
            Piece::Whole => self.edit(&open, EditKind::Write(text.to_owned()), Vec::new()),
            Piece::Find(_) => self.out_of_place(open.path, "end", line),
            Piece::Put => {
                open.put(text);
                let parts = mem::take(&mut open.parts);
                self.edit(&open, EditKind::Write(String::new()), parts);
            }
        }
    }

    fn edit(&mut self, block: &OpenBlock<'r>, kind: EditKind, parts: Vec<Replacement>) {
        // A missing path has already been reported.
        if !block.path.is_empty() {
            self.parsed.edits.push(FileEdit {
                path: block.path.to_owned(),
                line: block.line,
                kind,
                parts,
            });
        }
    }

    fn out_of_place(&mut self, path: &str, mark: &str, line: usize) {
        let (path, mark) = (path.to_owned(), mark.to_owned());
        self.fault(line, FaultKind::OutOfPlace { path, mark });
    }

    fn fault(&mut self, line: usize, kind: FaultKind) {
        self.parsed.faults.push(ReplyFault { line, kind });
    }

    fn finish(mut self) -> ParsedReply {
        if let Some(open) = self.open.take() {
            // Without marks, `^^^done N` is known by having no `^^^end`.
            self.done = self
                .done
                .or(count_in(open.path.trim_end()).filter(|_| !self.has_marks));
            if self.done.is_some() && !self.has_marks {
                self.parsed.prose.push_str(&self.reply[open.body..]);
            } else {
                let (path, carets) = (open.path.to_owned(), open.carets);
                self.fault(open.line, FaultKind::NoEnd { path, carets });
            }
        }
        let (mut last, mut repeated) = (BTreeMap::new(), BTreeSet::new());
        let mut parsed = self.parsed;
        for mut edit in mem::take(&mut parsed.edits) {
            if self.all_crlf && edit.path.ends_with('\r') {
                edit.path.pop();
            }
            let line = edit.line;
            let Some(earlier) = last.insert(edit.path.clone(), edit) else {
                continue;
            };
            if self.has_marks {
                let (path, first) = (earlier.path, earlier.line);
                let kind = FaultKind::NamedTwice { path, first };
                parsed.faults.push(ReplyFault { line, kind });
            } else {
                repeated.insert(earlier.path);
            }
        }
        parsed.edits = last.into_values().collect();
        parsed
            .faults
            .extend(files_that_are_directories(&parsed.edits));
        parsed.repeated = repeated.into_iter().collect();
        parsed.incomplete = match (self.done, self.behind) {
            (None, _) => self.has_marks.then(|| {
                "it does not end with `^^^done N`, N being the number of its files".to_owned()
            }),
            (Some(_), Some(line)) => {
                Some(format!("there is more after its `^^^done`, on line {line}"))
            }
            // The number of files in a malformed reply is anyone's guess.
            (Some(count), None) => {
                let named = parsed.edits.len();
                let is_other = count != named && parsed.faults.is_empty();
                is_other.then(|| {
                    let files = counted(named as u64, "file");
                    format!("it says `^^^done {count}`, and names {files}")
                })
            }
        };
        parsed
    }
}

impl OpenBlock<'_> {
    /// Ends the lines of the last `^^^put`.
    fn put(&mut self, text: &str) {
        if let Some(part) = self.parts.last_mut() {
            text.clone_into(&mut part.put);
        }
    }
}

/// Returns the number in `done N`.
fn count_in(word: &str) -> Option<usize> {
    word.strip_prefix("done ")?.trim_start().parse().ok()
}

/// Finds files that would also have to be directories.
fn files_that_are_directories(edits: &[FileEdit]) -> Vec<ReplyFault> {
    let written = edits.iter().filter(|edit| edit.kind != EditKind::Remove);
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
