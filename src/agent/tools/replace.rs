//! The tool FIND_AND_REPLACE_IN_FILE: replaces one passage of a file.
//!
//! Guarantees that nothing is changed unless the passage is there exactly once; all else of the file stays
//! byte by byte. Writes as [`write`](super::write) does.

use std::ops::Range;
use std::path::Path;

use memchr::{memchr_iter, memmem};

use super::place::{Outside, ResolvedPath};
use super::write::put;
use super::{Files, at_lines, line_count};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};

/// The largest file that is changed, in bytes.
const LARGEST: u64 = 10 << 20;
/// Matches are not counted beyond.
const MOST_MATCHES: usize = 11;
/// How many lines around a change are shown.
const AROUND: usize = 2;

/// Its description.
pub static FIND_AND_REPLACE_IN_FILE: ToolSpec = ToolSpec::new(
    "FIND_AND_REPLACE_IN_FILE",
    "Replaces a passage of a file. It must be there exactly once: take as many lines around it as that needs.",
    &[
        Parameter::new("path", ParameterKind::Path, "the file"),
        Parameter::new(
            "find",
            ParameterKind::Block,
            "the passage, letter by letter",
        ),
        Parameter::new("replace", ParameterKind::Block, "what takes its place"),
    ],
    Effect::Writes,
);

/// Replaces passages of files.
#[derive(Clone, Copy)]
pub struct FindAndReplace<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Whether files elsewhere may be changed.
    pub outside: Outside,
    /// Where the project's files are put.
    pub files: &'a dyn Files,
}

impl Tool for FindAndReplace<'_> {
    fn spec(&self) -> &ToolSpec {
        &FIND_AND_REPLACE_IN_FILE
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let path = arguments.get("path");
        let place = ResolvedPath::of(self.root, path, self.outside).map_err(ToolError::Failed)?;
        let shown = place.shown();
        let failed = |problem: String| ToolError::Failed(format!("{shown}: {problem}"));
        let content = place.read(self.root, LARGEST)?;
        let text = String::from_utf8(content).map_err(|error| {
            let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
            failed(format!(
                "it is not UTF-8, see line {line}; only a command can change it"
            ))
        })?;
        let change = replaced(&text, arguments.get("find"), arguments.get("replace"));
        let change = change.map_err(failed)?;
        let excerpt = excerpt(&change);
        let said = format!("changed {shown}:\n{excerpt}");
        put(self.files, &place, change.text, said.trim_end())
    }
}

/// A text with a passage replaced.
#[derive(Debug, PartialEq, Eq)]
struct Replaced {
    text: String,
    /// Where the replacement stands in it.
    range: Range<usize>,
}

/// `text` with `replace` in the place of `find`.
fn replaced(text: &str, find: &str, replace: &str) -> Result<Replaced, String> {
    if find.is_empty() {
        return Err(
            "nothing is to be found: `find` is empty; to change all of a file, write it as a whole"
                .into(),
        );
    }
    if find == replace {
        return Err("it changes nothing: `find` and `replace` are the same".into());
    }
    // New lines of a file that has CRLF throughout end so too; and a reply may have other line ends than the file.
    let is_crlf = !find.contains('\n') && has_crlf_throughout(text);
    let as_it_is = if is_crlf {
        with_crlf(replace)
    } else {
        replace.to_owned()
    };
    for (find, replace) in [
        (find.to_owned(), as_it_is),
        (with_crlf(find), with_crlf(replace)),
        (with_lf(find), with_lf(replace)),
    ] {
        match matches(text, &find).as_slice() {
            [] => {}
            [start] => return Ok(spliced(text, *start, find.len(), &replace)),
            several => return Err(ambiguous(text, several)),
        }
    }
    Err(not_found(text, find))
}

fn spliced(text: &str, start: usize, length: usize, replace: &str) -> Replaced {
    let (before, rest) = text.split_at(start);
    let behind = rest.get(length..).unwrap_or_default();
    Replaced {
        text: [before, replace, behind].concat(),
        range: start..start + replace.len(),
    }
}

/// Where `find` stands; no more than [`MOST_MATCHES`].
fn matches(text: &str, find: &str) -> Vec<usize> {
    let (text, find) = (text.as_bytes(), find.as_bytes());
    let found: Vec<usize> = memmem::find_iter(text, find).take(MOST_MATCHES).collect();
    match (found.as_slice(), memmem::rfind(text, find)) {
        // They overlap.
        ([first], Some(last)) if *first != last => vec![*first, last],
        _ => found,
    }
}

fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn with_crlf(text: &str) -> String {
    with_lf(text).replace('\n', "\r\n")
}

fn has_crlf_throughout(text: &str) -> bool {
    let newlines = text.matches('\n').count();
    newlines > 0 && newlines == text.matches("\r\n").count()
}

/// The line of a byte, from 1 on.
fn line_of(text: &[u8], at: usize) -> usize {
    memchr_iter(b'\n', text.get(..at).unwrap_or(text)).count() + 1
}

fn ambiguous(text: &str, found: &[usize]) -> String {
    let lines = found.iter().map(|at| line_of(text.as_bytes(), *at));
    let lines: Vec<usize> = lines.collect();
    format!(
        "`find` is found more than once: {}; add lines around it, so that it is there once",
        at_lines(&lines)
    )
}

/// Says that nothing was found, and where the passage may have been meant.
fn not_found(text: &str, find: &str) -> String {
    let first = find.lines().map(str::trim).find(|line| !line.is_empty());
    let lines: Vec<usize> = first.map_or_else(Vec::new, |first| {
        let numbered = text.lines().zip(1..);
        let holding = numbered.filter(|(line, _)| line.contains(first));
        holding.map(|(_, number)| number).take(11).collect()
    });
    if lines.is_empty() {
        return "`find` is not found, nor is its first line; read the file to see what is there"
            .into();
    }
    format!(
        "`find` is not found; its first line is at {}, but what is around it differs, often in blanks or line \
         ends; read the file to see what is there",
        at_lines(&lines)
    )
}

/// The changed lines with some around them, numbered.
fn excerpt(change: &Replaced) -> String {
    let bytes = change.text.as_bytes();
    let first = line_of(bytes, change.range.start);
    // A replacement that ends its line changes nothing of the next one.
    let replacement = bytes.get(change.range.clone()).unwrap_or_default();
    let last = first + line_count(replacement).max(1) - 1;
    let from = first.saturating_sub(AROUND).max(1);
    let to = last + AROUND;
    let width = to.to_string().len();
    let lines = change.text.lines().zip(1..).skip(from - 1);
    let lines = lines.take_while(|(_, number)| *number <= to);
    let shown = lines.map(|(line, number)| {
        let mark = if (first..=last).contains(&number) {
            '>'
        } else {
            ' '
        };
        format!("{mark}{number:>width$} | {line}\n")
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::super::write::tests::Plain;
    use super::*;

    #[test]
    fn one_passage_is_replaced_and_all_else_stays() {
        for (text, find, replace, expected) in [
            ("a b c", "b", "x", "a x c"),
            ("a b c", "a b c", "", ""),
            ("a\nb\nc", "b\n", "", "a\nc"),
            ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
            ("a\r\nb\r\n", "a\r\nb", "x\ny", "x\ny\r\n"),
            ("a\nb\nc\n", "a\r\nb", "x\r\ny\r\nz", "x\ny\nz\nc\n"),
            ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
            ("a\r\nb\nc\n", "b", "x\ny", "a\r\nx\ny\nc\n"),
            ("a\r\nb\nc\n", "a\nb", "x\ny", "x\r\ny\nc\n"),
            ("äöü", "ö", "€", "ä€ü"),
            ("\u{feff}a", "a", "b", "\u{feff}b"),
            ("a", "a", "$1\\0", "$1\\0"),
        ] {
            let change = replaced(text, find, replace).map(|change| change.text);
            assert_eq!(change.as_deref(), Ok(expected), "{text:?} {find:?}");
        }
    }

    #[test]
    fn what_is_not_there_exactly_once_is_told_with_the_lines() {
        let many = "x\n".repeat(500);
        for (text, find, replace, said) in [
            ("a", "", "b", "`find` is empty"),
            ("a", "a", "a", "changes nothing"),
            (
                "a\nb\na",
                "a",
                "b",
                "found more than once: lines 1 and 3; add lines around it",
            ),
            ("aaa", "aa", "b", "found more than once: lines 1 and 1"),
            (
                "a\r\nb\r\na\r\nb",
                "a\nb",
                "c",
                "found more than once: lines 1 and 3",
            ),
            (
                &many,
                "x",
                "y",
                "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more",
            ),
            ("a\nb", "c", "d", "nor is its first line"),
            (
                "fn a() {\n\tb\n}\n",
                "fn a() {\n    b\n}",
                "c",
                "its first line is at line 1, but",
            ),
            ("  x = 1", "    x = 1", "y", "often in blanks"),
            ("a", "\n", "b", "nor is its first line"),
        ] {
            let problem = replaced(text, find, replace).unwrap_err();
            assert!(problem.contains(said), "{find:?}: {problem}");
        }
    }

    #[test]
    fn counting_matches_of_a_long_passage_ends() {
        let text = "a".repeat(2 << 20);
        let problem = replaced(&text, &text[..1 << 20], "b").unwrap_err();
        assert!(
            problem.contains("more than once: lines 1 and 1;"),
            "{problem}"
        );
    }

    #[test]
    fn the_excerpt_shows_the_change_and_what_is_around_it() {
        let text: String = (1..=12).map(|line| format!("line {line}\n")).collect();
        let change = replaced(&text, "line 9\n", "new\nlines\n").unwrap();
        let expected =
            "  7 | line 7\n  8 | line 8\n> 9 | new\n>10 | lines\n 11 | line 10\n 12 | line 11\n";
        assert_eq!(excerpt(&change), expected);
        let change = replaced("a\nb\nc\n", "b\n", "").unwrap();
        assert_eq!(excerpt(&change), " 1 | a\n>2 | c\n");
        let change = replaced("a", "a", "").unwrap();
        assert_eq!(excerpt(&change), "");
    }

    #[test]
    fn a_file_is_changed_on_the_disk_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a.rs"), "let a = 1;\r\nlet b = 2;\r\n").unwrap();
        fs::write(root.join("bad"), b"x\n\xff").unwrap();
        let files = Plain::below(&root);
        let tool = FindAndReplace {
            root: &root,
            outside: Outside::Refused,
            files: &files,
        };
        let run = |path: &str, find: &str| {
            let mut arguments = Arguments::default();
            arguments.set("path", path.to_owned());
            arguments.set("find", find.to_owned());
            arguments.set("replace", "let c = 3;".to_owned());
            tool.run(&arguments)
        };
        for (path, find, said) in [
            ("bad", "x", "`bad`: it is not UTF-8, see line 2"),
            ("none", "x", "does not exist"),
            (
                "a.rs",
                "let",
                "`a.rs`: `find` is found more than once: lines 1 and 2",
            ),
        ] {
            let Err(ToolError::Failed(problem)) = run(path, find) else {
                panic!("{path} is not changed");
            };
            assert!(problem.contains(said), "{problem}");
        }
        assert!(files.written.borrow().is_empty());
        let output = run("a.rs", "let b = 2;").unwrap();
        assert_eq!(
            output.text,
            "changed `a.rs`:\n 1 | let a = 1;\n>2 | let c = 3;"
        );
        let content = fs::read_to_string(root.join("a.rs")).unwrap();
        assert_eq!(content, "let a = 1;\r\nlet c = 3;\r\n");
    }

    proptest! {
        #[test]
        fn a_passage_that_is_there_once_is_the_only_thing_that_changes(
            before in "[ab\r\n ]{0,30}", find in "[abä\n]{1,8}", behind in "[ab\r\n ]{0,30}", replace in "[xy\n]{0,8}",
        ) {
            prop_assume!(find != replace);
            let text = format!("{before}{find}{behind}");
            match replaced(&text, &find, &replace) {
                Ok(change) => {
                    // New lines may end as the file's do.
                    let expected = format!("{before}{replace}{behind}");
                    prop_assert_eq!(change.text.replace('\r', ""), expected.replace('\r', ""));
                }
                Err(_) => prop_assert!(matches(&text, &find).len() > 1),
            }
        }
    }
}
