//! The parts of a code base that exceeds a model's context window, for a report on each of them and one that joins
//! them.
//!
//! Reads the project's files for comparison with the rollup only. Each file is in exactly one part, in the order of
//! paths; the files of a directory are split only if a part cannot hold them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use super::code_base::Rolled;
use crate::edit::beneath;
use crate::model::estimate::{self, CostRange, Fit};
use crate::model::price::Usd;
use crate::model::prompt::{CONSISTENCY_JOIN, CONSISTENCY_PART, Inputs, Prompt};
use crate::model::tokens::{self, Size};
use crate::model::{ModelSpec, Purpose, StepId};
use crate::project::outline::outline;
use crate::project::rollup::{self, RollupFile, header};
use crate::sys::excerpt::text::bounded;
use crate::sys::numbers::{counted, grouped};
use crate::sys::text::{escaped, line_end};

/// The file that a report compares the code base with.
pub const SPECIFICATION: &str = "UserSpecification.md";

/// Maximum number of words of a part's findings.
const MAX_WORDS: u64 = 2_000;

/// A code base in parts, and the prompts about them.
pub struct Parts {
    query: String,
    /// The specification, which accompanies each part; empty if it is too long, and then treated like any other file.
    specification: String,
    /// The files, or pieces of those that are larger than a part.
    files: Vec<Rolled>,
    /// The files of each part.
    parts: Vec<Range<usize>>,
    /// Maximum number of tokens of an outline.
    outline_limit: u64,
    /// Maximum number of tokens of a part's files, and of all findings.
    room: u64,
    /// The calls for all parts.
    pub estimate: PartsEstimate,
}

impl Parts {
    /// Splits the code base for this model; `None` if its prompt may fit into the context window, or if those of its
    /// parts would not.
    pub fn of(inputs: &Inputs, root: &Path, spec: &ModelSpec) -> Option<Self> {
        let whole = Prompt::consistency(inputs, spec.prompt_order);
        if estimate::fits_in_any_case(whole.bytes(), spec) {
            return None;
        }
        let Fit::TooLarge { window } = estimate::fit(&estimate::measure(&whole), spec) else {
            return None;
        };
        let mut sections = rollup::comparable(&inputs.rollup, root)?;
        sections.sort_by_key(|section| section.path);
        // Prompts of this size fit even if the estimate is too low by its margin.
        let limit = window / 5 * 4;
        let quarter = limit / 4;
        let is_specification =
            |section: &RollupFile<'_>| Path::new(section.path).ends_with(SPECIFICATION);
        let own = sections.iter().filter(|section| is_specification(section));
        let mut specification: String = own.map(|file| rolled(file.path, file.content)).collect();
        if tokens::count(&specification) <= quarter {
            sections.retain(|section| !is_specification(section));
        } else {
            specification.clear();
        }
        let mut parts = Self {
            query: inputs.query.clone(),
            specification,
            files: Vec::new(),
            parts: Vec::new(),
            outline_limit: quarter,
            room: 0,
            estimate: PartsEstimate::default(),
        };
        let frames = [CONSISTENCY_PART, CONSISTENCY_JOIN].map(|system| {
            let empty = parts.prompt(system, String::new(), String::new(), ("", String::new()));
            estimate::measure(&empty).tokens
        });
        let frame = frames[0].max(frames[1]);
        let room = limit.checked_sub(quarter + frame);
        parts.room = room.filter(|room| *room >= quarter)?;
        let files = sections.iter().flat_map(|file| pieces(file, parts.room));
        parts.files = files.collect();
        parts.parts = packed(&parts.files, parts.room);
        parts.estimate = parts.estimated(frame, spec);
        // A step's number is a `u16`.
        (parts.parts.len() < usize::from(u16::MAX)).then_some(parts)
    }

    /// Returns the steps of the parts, in order.
    pub fn steps(&self) -> impl Iterator<Item = StepId> {
        (1..)
            .take(self.parts.len())
            .map(|number| StepId::new(Purpose::PART, number))
    }

    /// Returns the query about a part.
    pub fn part(&self, step: &StepId) -> Prompt<'_> {
        let range = &self.parts[usize::from(step.number) - 1];
        let files = self.files[range.clone()].iter();
        let words = grouped((self.share() / 2).min(MAX_WORDS));
        let note = format!("{}. Write at most {words} words.\n", self.described(step));
        let codebase = ("codebase", files.flat_map(Rolled::parts).collect());
        self.prompt(CONSISTENCY_PART, note, self.outline(range), codebase)
    }

    /// Returns the query that joins the findings of all parts.
    pub fn join(&self, findings: &[String]) -> Prompt<'_> {
        let findings = self.steps().zip(findings).map(|(step, text)| {
            let (part, shown) = (self.described(&step), cut(text, self.share()));
            format!("--- {part} ---\n{shown}{}", line_end(&shown))
        });
        let (outline, findings) = (self.outline(&(0..0)), ("findings", findings.collect()));
        self.prompt(CONSISTENCY_JOIN, String::new(), outline, findings)
    }

    /// Describes a part: `Part 1 of 3: 12 files, about 3,400 tokens, from Cargo.toml to src/lib.rs`.
    pub fn described(&self, step: &StepId) -> String {
        let files = &self.files[self.parts[usize::from(step.number) - 1].clone()];
        let path = |file: Option<&Rolled>| escaped(file.map_or("", |file| &file.path));
        format!(
            "{} of {}: {}, about {}, from {} to {}",
            step.title(),
            self.parts.len(),
            counted(files.len() as u64, "file"),
            counted(total(files), "token"),
            path(files.first()),
            path(files.last())
        )
    }

    /// Lists the parts.
    pub fn listed(&self) -> Vec<String> {
        self.steps().map(|step| self.described(&step)).collect()
    }

    /// Estimates all calls as equal in size: each has this frame and an outline, and each file is in exactly one.
    fn estimated(&self, frame: u64, spec: &ModelSpec) -> PartsEstimate {
        let calls = self.parts.len() as u64 + 1;
        let outline = tokens::count(&self.outline(&(0..0)));
        let least = calls * (frame + outline) + total(&self.files);
        let cost = spec.price.map(|price| {
            let call = |tokens| {
                let (tokens, parts) = (tokens / calls, Vec::new());
                estimate::first_call(&Size { parts, tokens }, spec, &price)
            };
            let all = |one: Usd| (0..calls).map(|_| one).sum();
            CostRange {
                least: all(call(least).least),
                most: call(least + self.room).most.map(all),
            }
        });
        PartsEstimate { calls, cost }
    }

    /// Returns the number of tokens that the last query can hold of each part's findings.
    fn share(&self) -> u64 {
        self.room / (self.parts.len() as u64).max(1)
    }

    /// Returns the outline of the files outside this range.
    fn outline(&self, without: &Range<usize>) -> String {
        let (before, behind) = (&self.files[..without.start], &self.files[without.end..]);
        let rest: Vec<_> = before
            .iter()
            .chain(behind)
            .map(|file| (&*file.path, &*file.content))
            .collect();
        outline(&rest, &tokens::count, self.outline_limit)
    }

    fn prompt(
        &self,
        system: &'static str,
        note: String,
        outline: String,
        last: (&'static str, String),
    ) -> Prompt<'_> {
        let optional: [(_, Cow<'_, str>); 2] = [
            ("specification", (&*self.specification).into()),
            ("part", note.into()),
        ];
        let others = [
            ("outline", outline.into()),
            ("query", (&*self.query).into()),
            (last.0, last.1.into()),
        ];
        let optional = optional.into_iter().filter(|(_, text)| !text.is_empty());
        Prompt::of_sections(system, optional.chain(others))
    }
}

/// The calls of a report by parts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PartsEstimate {
    /// The number of calls, the last of which joins the findings.
    pub calls: u64,
    /// The cost of the calls; `None` if the model's price is unknown.
    pub cost: Option<CostRange>,
}

impl fmt::Display for PartsEstimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} calls", self.calls)?;
        match self.cost {
            Some(cost) => write!(f, ", which cost {cost}"),
            None => f.write_str(", at an unknown price"),
        }
    }
}

/// Returns the file of this section, or its pieces for parts of `room` tokens, cut at line ends.
fn pieces(section: &RollupFile<'_>, room: u64) -> Vec<Rolled> {
    let whole = Rolled::of(section.path.to_owned(), section.content.to_owned());
    if whole.tokens <= room {
        return vec![whole];
    }
    let all = section.content.lines().count();
    let title = |first, last| format!("{} (lines {first}-{last} of {all})", section.path);
    let room = room.saturating_sub(tokens::count(&header(&title(all, all))));
    let mut first = 1;
    let pieces = split(section.content, room).into_iter().map(|piece| {
        let last = first + piece.lines().count().saturating_sub(1);
        let title = title(first, last);
        first = last + usize::from(piece.ends_with('\n'));
        Rolled::of(title, piece.to_owned())
    });
    pieces.collect()
}

/// Splits a text into pieces of at most `room` tokens, at line ends, or anywhere in a longer line.
fn split(text: &str, room: u64) -> Vec<&str> {
    let (mut pieces, mut from, mut at, mut left) = (Vec::new(), 0, 0, room);
    for line in text.split_inclusive('\n') {
        let tokens = tokens::count(line);
        if tokens > left && at > from {
            pieces.push(&text[from..at]);
            (from, left) = (at, room);
        }
        at += line.len();
        left = left.saturating_sub(tokens);
        // No token is shorter than a byte.
        let most = usize::try_from(room).unwrap_or(usize::MAX).max(4);
        while tokens > room && at - from > most {
            let end = text.floor_char_boundary(from + most);
            pieces.push(&text[from..end]);
            from = end;
        }
    }
    pieces.extend((from < at).then(|| &text[from..at]));
    pieces
}

/// Formats a file as in a rollup.
pub fn rolled(path: &str, content: &str) -> String {
    format!("{}{content}{}", header(path), line_end(content))
}

fn total(files: &[Rolled]) -> u64 {
    files.iter().map(|file| file.tokens).sum()
}

/// Shortens a text to its beginning and its end, of at most about `room` tokens; a line between them counts the rest.
fn cut(text: &str, room: u64) -> Cow<'_, str> {
    let (mut cut, mut bytes) = (Cow::Borrowed(text), text.len() as u64);
    loop {
        let tokens = tokens::count(&cut);
        if tokens <= room || bytes == 0 {
            return cut;
        }
        bytes = bytes.saturating_mul(room) / (tokens + 1);
        cut = bounded(text, usize::try_from(bytes).unwrap_or(usize::MAX)).into();
    }
}

/// Fills parts of `room` tokens with the files, in order; those of a directory stay together if a part has room.
fn packed(files: &[Rolled], room: u64) -> Vec<Range<usize>> {
    let is_together =
        |one: &Rolled, next: &Rolled| beneath::split(&one.path).0 == beneath::split(&next.path).0;
    let units = files.chunk_by(is_together).flat_map(|directory| {
        let fits = total(directory) <= room;
        directory.chunks(if fits { directory.len() } else { 1 })
    });
    let (mut parts, mut left): (Vec<Range<usize>>, u64) = (Vec::new(), 0);
    for unit in units {
        let tokens = total(unit);
        let begin = parts.last().map_or(0, |part| part.end);
        let end = begin + unit.len();
        if let Some(part) = parts.last_mut().filter(|_| tokens <= left) {
            part.end = end;
        } else {
            parts.push(begin..end);
            left = room;
        }
        left = left.saturating_sub(tokens);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, tokens: u64) -> Rolled {
        Rolled {
            path: path.to_owned(),
            content: String::new(),
            tokens,
        }
    }

    #[test]
    fn a_directory_stays_together_where_a_part_has_room_for_it() {
        for (files, expected) in [
            (&[("a", 4)][..], &["a"][..]),
            (&[("a/1", 4), ("a/2", 4), ("b/1", 4)], &["a/1 a/2", "b/1"]),
            (&[("a", 4), ("b/1", 4), ("b/2", 4)], &["a", "b/1 b/2"]),
            (
                &[("a", 4), ("b/1", 4), ("b/2", 4), ("b/3", 4)],
                &["a b/1", "b/2 b/3"],
            ),
            (
                &[("a/b/1", 4), ("a/c/1", 4), ("a/c/2", 4), ("a/d", 4)],
                &["a/b/1", "a/c/1 a/c/2", "a/d"],
            ),
            (
                &[("a-b/1", 4), ("a.c", 4), ("a/1", 2), ("a/2", 8)],
                &["a-b/1 a.c", "a/1", "a/2"],
            ),
            // No part has room for it.
            (&[("a", 20), ("b", 4), ("b", 4)], &["a", "b b"]),
        ] {
            let files: Vec<_> = files
                .iter()
                .map(|(path, tokens)| file(path, *tokens))
                .collect();
            let paths = |part: Range<usize>| {
                let paths: Vec<&str> = files[part].iter().map(|file| &*file.path).collect();
                paths.join(" ")
            };
            let parts: Vec<String> = packed(&files, 9).into_iter().map(paths).collect();
            assert_eq!(parts, expected);
        }
    }

    #[test]
    fn directories_may_be_as_deep_as_they_like() {
        let path = "a/".repeat(100_000);
        let files = [file(&path, 9), file(&path, 9)];
        assert_eq!(packed(&files, 9), [0..1, 1..2]);
    }

    #[test]
    fn a_file_that_is_larger_than_a_part_is_read_in_pieces() {
        let lines: String = (1..=1000)
            .map(|line| format!("let line_{line} = {line};\n"))
            .collect();
        let long = "let ä = \"many words\"; ".repeat(500);
        for text in [
            &lines,
            &format!("{lines}last"),
            &long,
            &format!("a\n{long}\nb\n"),
        ] {
            let section = RollupFile {
                path: "src/a.rs",
                content: text,
                added: 0,
                state: rollup::RollupState::Same,
            };
            let pieces = pieces(&section, 500);
            assert!(pieces.len() > 2);
            assert!(pieces.iter().all(|piece| piece.tokens <= 500));
            let joined: String = pieces.iter().map(|piece| &*piece.content).collect();
            assert_eq!(joined, *text);
        }
        let section = RollupFile {
            path: "a.rs",
            content: &lines,
            added: 0,
            state: rollup::RollupState::Same,
        };
        let found = pieces(&section, 4000);
        let [first, .., last] = &*found else {
            panic!("{}", found.len())
        };
        let count = first.content.lines().count();
        assert_eq!(first.path, format!("a.rs (lines 1-{count} of 1000)"));
        assert!(last.path.ends_with("-1000 of 1000)"), "{}", last.path);
        assert!(first.content.ends_with('\n'));
        assert_eq!(pieces(&section, 1 << 20)[0].path, "a.rs");
    }

    #[test]
    fn a_text_that_is_cut_has_room_and_says_what_is_missing() {
        let text: String = (1..=1000)
            .map(|line| format!("let line_{line} = {line};\n"))
            .collect();
        assert_eq!(cut(&text, 1 << 20), text);
        for room in [0, 1, 30, 100, 5000] {
            let cut = cut(&text, room);
            assert!(tokens::count(&cut) <= room.max(20), "{room}: {cut}");
            assert!(cut.contains(" left out ...]") || room < 20, "{room}: {cut}");
        }
        let cut = cut(&text, 100);
        assert!(cut.starts_with("let line_1 = 1;\n") && cut.ends_with("let line_1000 = 1000;\n"));
    }
}
