//! Finds the edits in a reply, by the contract's grammar. Pure.
//!
//! Guarantees that bodies are the reply's bytes exactly, and that no block ever swallows another:
//! a line in a body that begins like a fence is a fault.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memmem};

use super::beneath::ancestors;
use super::{Action, Content, Fault, FaultKind, FileEdit};

/// A fence has at least this many carets.
const FENCE: &str = "^^^";

/// What a reply asks for, and what is wrong with its grammar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedReply {
    /// The edits, at most one a path, sorted by path.
    pub edits: Vec<FileEdit>,
    /// The grammar's faults; a reply with one is not to be applied.
    pub faults: Vec<Fault>,
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
            action: Action::Write(Content { reply, range }),
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
    faults: Vec<Fault>,
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
                self.edit(&open, Action::Write(content));
            }
            (Some(open), Word::Delete) if fence.carets == carets && fence.start == open.body => {
                self.edit(&open, Action::Remove);
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

    fn edit(&mut self, open: &Open<'r>, action: Action) {
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
        self.faults.push(Fault { line, kind });
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
fn files_that_are_directories(edits: &[FileEdit]) -> Vec<Fault> {
    let is_written = |edit: &&FileEdit| edit.action != Action::Remove;
    let written = || edits.iter().filter(is_written);
    let paths: HashSet<&str> = written().map(|edit| edit.path.as_str()).collect();
    let mut faults = Vec::new();
    for edit in written() {
        for path in ancestors(&edit.path).filter(|path| paths.contains(path)) {
            let (path, below) = (path.to_owned(), edit.path.clone());
            let kind = FaultKind::FileAndDirectory { path, below };
            faults.push(Fault {
                line: edit.line,
                kind,
            });
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The edits as `path=content`, removals as `path!`; or the faults.
    fn summary(reply: &str) -> Result<Vec<String>, Vec<String>> {
        let parsed = parse(&Arc::new(reply.to_owned()));
        if !parsed.faults.is_empty() {
            return Err(parsed.faults.iter().map(ToString::to_string).collect());
        }
        Ok(parsed
            .edits
            .iter()
            .map(|edit| match &edit.action {
                Action::Write(content) => format!("{}={}", edit.path, &**content),
                Action::Remove => format!("{}!", edit.path),
            })
            .collect())
    }

    #[test]
    fn a_reply_writes_and_removes_files() {
        let reply = "Done.\n^^^src/lib.rs\npub mod cli;\n^^^end\n^^^src/old.rs\n^^^delete\n";
        assert_eq!(
            summary(reply),
            Ok(vec![
                "src/lib.rs=pub mod cli;\n".to_owned(),
                "src/old.rs!".to_owned()
            ])
        );
    }

    #[test]
    fn one_file_is_what_a_reply_of_one_block_asks_for() {
        let content = "x\r\n^^^end\n";
        let parsed = ParsedReply::of_file("a/b", content.to_owned());
        let Action::Write(written) = &parsed.edits[0].action else {
            panic!("a file is written");
        };
        assert_eq!(&**written, content);
        let reply = parse(&Arc::new("^^^a/b\nx\n^^^end\n".to_owned()));
        assert_eq!(ParsedReply::of_file("a/b", "x\n".to_owned()).edits.len(), 1);
        assert_eq!(parsed.edits[0].path, reply.edits[0].path);
        assert_eq!((parsed.edits[0].line, parsed.faults.len()), (1, 0));
    }

    #[test]
    fn a_block_is_taken_byte_by_byte() {
        for (reply, expected) in [
            ("^^^a\nx\n^^^end\n", vec!["a=x\n"]),
            ("^^^a\nx\n^^^end", vec!["a=x\n"]),
            (
                "prose\n^^^a\n\n  x\t \n\n^^^end\nmore prose",
                vec!["a=\n  x\t \n\n"],
            ),
            ("^^^a\n^^^end\n", vec!["a="]),
            ("^^^a\n\n^^^end\n", vec!["a=\n"]),
            ("^^^a\n^^^delete\n", vec!["a!"]),
            (
                "^^^a\n^^^delete \t\r\n^^^b\nx\n^^^end \n",
                vec!["a!", "b=x\n"],
            ),
            ("^^^b\n1\n^^^end\n^^^a\n2\n^^^end", vec!["a=2\n", "b=1\n"]),
            (" ^^^a\n ^^^end\n", vec![]),
            ("just prose, no ^^^a fences\n^^ nor these", vec![]),
            ("", vec![]),
            ("^^^a\nx^^^end\n^^^end", vec!["a=x^^^end\n"]),
            (
                "^^^a\n\u{1F600}\0\r\n\u{feff}\n^^^end",
                vec!["a=\u{1F600}\0\r\n\u{feff}\n"],
            ),
            ("^^^a\nstray \r here\r\n^^^end", vec!["a=stray \r here\r\n"]),
        ] {
            assert_eq!(summary(reply).unwrap(), expected, "{reply:?}");
        }
    }

    #[test]
    fn crlf_belongs_to_the_path_unless_every_fence_line_ends_so() {
        assert_eq!(summary("^^^a\r\nx\r\n^^^end\r\n").unwrap(), ["a=x\r\n"]);
        assert_eq!(
            summary("^^^a\r\n^^^delete\r\n^^^b\r\nx\n^^^end\r\n").unwrap(),
            ["a!", "b=x\n"]
        );
        // The last line does not end at all, so it says nothing.
        assert_eq!(summary("^^^a\r\nx\r\n^^^end").unwrap(), ["a=x\r\n"]);
        assert_eq!(summary("^^^a\r\nx\n^^^end\n").unwrap(), ["a\r=x\n"]);
        assert_eq!(summary("^^^a\r\r\nx\n^^^end\r\n").unwrap(), ["a\r=x\n"]);
        assert_eq!(summary("^^^a \nx\n^^^end\n").unwrap(), ["a =x\n"]);
    }

    #[test]
    fn a_longer_fence_holds_shorter_ones() {
        for (reply, expected) in [
            ("^^^^a\n^^^b\n^^^end\n^^^^end", vec!["a=^^^b\n^^^end\n"]),
            ("^^^^a\n^^^delete\n^^^^end", vec!["a=^^^delete\n"]),
            (
                "^^^^^^a\n^^^^^x\n^^^^^^end\n^^^b\n^^^end",
                vec!["a=^^^^^x\n", "b="],
            ),
            ("^^^^a\n^^^^delete", vec!["a!"]),
        ] {
            assert_eq!(summary(reply).unwrap(), expected, "{reply:?}");
        }
    }

    #[test]
    fn every_fault_is_named_with_its_line() {
        for (reply, expected) in [
            ("^^^\nx\n^^^end", vec!["line 1: `^^^` without a path"]),
            ("^^^ \t\r\n^^^end", vec!["line 1: `^^^` without a path"]),
            ("x\n^^^end", vec!["line 2: `^^^end` outside a block"]),
            ("^^^^end", vec!["line 1: `^^^end` outside a block"]),
            (
                "^^^delete",
                vec!["line 1: `^^^delete` that is not right under its `^^^path` line"],
            ),
            (
                "^^^a\n^^^delete\n^^^end",
                vec!["line 3: `^^^end` outside a block"],
            ),
            ("^^^a\nx", vec!["line 1: the block of `a` has no `^^^end`"]),
            (
                "^^^a\nx\n^^^ end",
                vec![
                    "line 3: `^^^ end` inside the block of `a` from line 1, whose `^^^end` is missing",
                    "line 3: the block of ` end` has no `^^^end`",
                ],
            ),
            (
                "^^^a\nx\n^^^b\ny\n^^^end",
                vec![
                    "line 3: `^^^b` inside the block of `a` from line 1, whose `^^^end` is missing",
                ],
            ),
            (
                "^^^a\nx\n^^^delete\n",
                vec![
                    "line 3: `^^^delete` inside the block of `a` from line 1, whose `^^^end` is missing",
                ],
            ),
            (
                "^^^a\nx\n^^^^end\n",
                vec![
                    "line 3: `^^^^end` inside the block of `a` from line 1, whose `^^^end` is missing",
                ],
            ),
            (
                "^^^^a\nx\n^^^end\n",
                vec!["line 1: the block of `a` has no `^^^end`"],
            ),
            (
                "^^^a/b\n^^^end\n^^^a\n^^^end\n",
                vec!["line 1: `a` is to be a file, but `a/b` is written too"],
            ),
            (
                "^^^end\n^^^\n^^^end\n^^^x",
                vec![
                    "line 1: `^^^end` outside a block",
                    "line 2: `^^^` without a path",
                    "line 4: the block of `x` has no `^^^end`",
                ],
            ),
        ] {
            assert_eq!(summary(reply).unwrap_err(), expected, "{reply:?}");
        }
    }

    #[test]
    fn the_later_block_of_a_path_counts() {
        let parsed = parse(&Arc::new(
            "^^^a\n1\n^^^end\n^^^a\n^^^delete\n^^^a\n2\n^^^end".to_owned(),
        ));
        assert_eq!(parsed.repeated, ["a"]);
        assert_eq!(parsed.edits.len(), 1);
        assert_eq!(parsed.edits[0].line, 6);
        // A removed file makes way for a directory of its name as far as the grammar goes.
        assert!(summary("^^^a\n^^^delete\n^^^a/b\n^^^end").is_ok());
    }

    proptest! {
        #[test]
        fn any_bodies_come_back_as_they_went_in(
            bodies in prop::collection::btree_map("[a-z]{1,4}[.][a-z]", "([^^\n][^\n]{0,9}|\\^{0,2}[a-z ]?|)(\n([^^\n][^\n]{0,9}|))*\n|", 0..6),
            prose in "([^^\n][^\n]{0,20}\n)?",
        ) {
            let reply: String = bodies.iter()
                .map(|(path, body)| format!("{prose}^^^{path}\n{body}^^^end\n")).collect();
            let expected: Vec<String> = bodies.iter().map(|(path, body)| format!("{path}={body}")).collect();
            prop_assert_eq!(summary(&reply).unwrap(), expected);
        }

        #[test]
        fn no_text_makes_it_panic(reply in "([\\^ab/\r\n ]|\\^\\^\\^|end|delete|\n)*") {
            let parsed = parse(&Arc::new(reply));
            for edit in &parsed.edits {
                prop_assert!(!edit.path.is_empty() && !edit.path.contains('\n'));
            }
        }
    }
}
