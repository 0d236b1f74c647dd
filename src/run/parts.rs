//! The parts of a code base that exceeds a model's context window, for a report on each of them and one that joins
//! them.
//!
//! Reads the project's files for comparison with the rollup only. Each file is in exactly one part, in the order of
//! paths; a directory is split only if a part cannot hold it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::model::estimate::{self, CostRange, Fit};
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
/// Depth of directories that are kept together; no project has deeper ones.
const MAX_DEPTH: usize = 64;

/// A code base in parts, and the prompts about them.
pub struct Parts<'t> {
    query: &'t str,
    spec: &'t ModelSpec,
    /// The specification, which accompanies each part; empty if it is too long, and then a file like any other.
    specification: String,
    files: Vec<PartFile<'t>>,
    /// The files of each part.
    parts: Vec<Range<usize>>,
    /// Maximum number of tokens of an outline.
    outline_limit: u64,
    /// Maximum number of tokens of all findings.
    findings_limit: u64,
}

struct PartFile<'t> {
    path: &'t str,
    content: &'t str,
    /// The content as a part shows it; owned if some of it is left out.
    shown: Cow<'t, str>,
    tokens: u64,
}

impl<'t> Parts<'t> {
    /// Splits the code base for this model; `None` if its prompt may fit into the context window, or if those of its
    /// parts would not.
    pub fn of(inputs: &'t Inputs, root: &Path, spec: &'t ModelSpec) -> Option<Self> {
        let whole = Prompt::consistency(inputs, spec.prompt_order);
        if estimate::fits_in_any_case(whole.bytes(), spec) {
            return None;
        }
        let Fit::TooLarge { window } = estimate::fit(&estimate::measure(&whole), spec) else {
            return None;
        };
        let sections = rollup::sections(&inputs.rollup, root);
        if !rollup::is_comparable(&inputs.rollup, &sections) {
            return None;
        }
        // Prompts of this size fit even if the estimate is too low by its margin.
        let limit = window / 5 * 4;
        let quarter = limit / 4;
        let (own, others): (Vec<_>, Vec<_>) = sections
            .iter()
            .partition(|section| Path::new(section.path).ends_with(SPECIFICATION));
        let own: String = own
            .into_iter()
            .map(|file| rolled(file.path, file.content))
            .collect();
        let accompanies = tokens::count(&own) <= quarter;
        let mut parts = Self {
            query: &inputs.query,
            spec,
            specification: if accompanies { own } else { String::new() },
            files: Vec::new(),
            parts: Vec::new(),
            outline_limit: quarter,
            findings_limit: 0,
        };
        let left = |prompt: &Prompt<'_>| {
            let used = estimate::measure(prompt).tokens + quarter;
            limit.checked_sub(used).filter(|left| *left >= quarter)
        };
        let empty = |system| parts.prompt(system, None, String::new(), ("", String::new()));
        let room = left(&empty(CONSISTENCY_PART))?;
        parts.findings_limit = left(&empty(CONSISTENCY_JOIN))?;
        let files = if accompanies {
            others
        } else {
            sections.iter().collect()
        };
        parts.files = files
            .into_iter()
            .map(|file| PartFile::of(file, room))
            .collect();
        parts.files.sort_by_key(|file| file.path);
        parts.parts = packed(&parts.files, room);
        // A step's number is no larger.
        (parts.parts.len() < usize::from(u16::MAX)).then_some(parts)
    }

    /// The steps of the parts, in order.
    pub fn steps(&self) -> impl Iterator<Item = StepId> {
        (1..)
            .take(self.parts.len())
            .map(|number| StepId::new(Purpose::PART, number))
    }

    /// The query about a part.
    pub fn part(&self, step: &StepId) -> Prompt<'_> {
        let range = &self.parts[usize::from(step.number) - 1];
        let files = self.files[range.clone()].iter();
        let words = (self.share() / 2).min(MAX_WORDS);
        let note = format!(
            "{}. Write at most {} words.\n",
            self.described(step),
            grouped(words)
        );
        let codebase = files.map(|file| rolled(file.path, &file.shown)).collect();
        self.prompt(
            CONSISTENCY_PART,
            Some(note),
            self.outline(range),
            ("codebase", codebase),
        )
    }

    /// The query that joins the findings of all parts.
    pub fn join(&self, findings: &[String]) -> Prompt<'_> {
        let findings = self.steps().zip(findings).map(|(step, text)| {
            let shown = cut(text, self.share());
            format!(
                "--- {} ---\n{shown}{}",
                self.described(&step),
                line_end(&shown)
            )
        });
        self.prompt(
            CONSISTENCY_JOIN,
            None,
            self.outline(&(0..0)),
            ("findings", findings.collect()),
        )
    }

    /// Describes a part: `Part 1 of 3: 12 files, about 3,400 tokens, from Cargo.toml to src/lib.rs`.
    pub fn described(&self, step: &StepId) -> String {
        let files = &self.files[self.parts[usize::from(step.number) - 1].clone()];
        let path = |file: Option<&PartFile<'_>>| escaped(file.map_or("", |file| file.path));
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

    /// Describes what no part, or not each part, shows.
    pub fn gaps(&self) -> Vec<String> {
        let is_cut = |file: &&PartFile<'_>| matches!(file.shown, Cow::Owned(_));
        let gaps = self.files.iter().filter(is_cut).map(|file| {
            let path = escaped(file.path);
            format!("`{path}` is larger than a part: its middle is left out")
        });
        let is_specification = |file: &PartFile<'_>| Path::new(file.path).ends_with(SPECIFICATION);
        let alone = self.files.iter().any(is_specification).then(|| {
            format!(
                "`{SPECIFICATION}` is too long to accompany each part: it is a file like any other"
            )
        });
        gaps.chain(alone).collect()
    }

    /// Estimates all calls.
    pub fn estimate(&self) -> PartsEstimate {
        let call = |size: &Size| {
            Some(estimate::first_call(
                size,
                self.spec,
                self.spec.price.as_ref()?,
            ))
        };
        let parts = self
            .steps()
            .map(|step| call(&estimate::measure(&self.part(&step))));
        let join = estimate::measure(&self.join(&[]));
        let longest = Size {
            tokens: join.tokens + self.findings_limit,
            ..join.clone()
        };
        let join = call(&join)
            .zip(call(&longest))
            .map(|(least, most)| CostRange {
                least: least.least,
                most: most.most,
            });
        PartsEstimate {
            calls: self.parts.len() + 1,
            cost: parts.fold(join, |sum, part| Some(sum? + part?)),
        }
    }

    /// Returns whether the last query shortens these findings of a part.
    pub fn is_too_long(&self, findings: &str) -> bool {
        tokens::count(findings) > self.share()
    }

    /// The number of tokens of a part's findings that the last query has room for.
    fn share(&self) -> u64 {
        self.findings_limit / (self.parts.len() as u64).max(1)
    }

    /// The outline of the files outside this range.
    fn outline(&self, without: &Range<usize>) -> String {
        let rest = self
            .files
            .iter()
            .enumerate()
            .filter(|(at, _)| !without.contains(at));
        let rest: Vec<_> = rest.map(|(_, file)| (file.path, file.content)).collect();
        outline(&rest, &tokens::count, self.outline_limit).text
    }

    fn prompt(
        &self,
        system: &'static str,
        note: Option<String>,
        outline: String,
        last: (&'static str, String),
    ) -> Prompt<'_> {
        let specification = Some(&self.specification).filter(|text| !text.is_empty());
        let specification = specification.map(|text| ("specification", text.as_str().into()));
        let note = note.map(|note| ("part", note.into()));
        let others: [(_, Cow<'_, str>); 3] = [
            ("outline", outline.into()),
            ("query", self.query.into()),
            (last.0, last.1.into()),
        ];
        let sections = specification.into_iter().chain(note).chain(others);
        Prompt::of_sections(system, sections)
    }
}

/// The calls of a report by parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartsEstimate {
    /// The number of calls, the last of which joins the findings.
    pub calls: usize,
    /// Their cost; `None` if the model's price is unknown.
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

impl<'t> PartFile<'t> {
    /// Creates the file of this section, shortened to a part of `room` tokens.
    fn of(section: &RollupFile<'t>, room: u64) -> Self {
        let header = tokens::count(&header(section.path));
        let shown = cut(section.content, room.saturating_sub(header));
        Self {
            path: section.path,
            content: section.content,
            tokens: header + tokens::count(&shown),
            shown,
        }
    }
}

/// Formats a file as a rollup has it.
fn rolled(path: &str, content: &str) -> String {
    format!("{}{content}{}", header(path), line_end(content))
}

fn total(files: &[PartFile<'_>]) -> u64 {
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

/// Fills parts of `room` tokens with the files, in order.
fn packed(files: &[PartFile<'_>], room: u64) -> Vec<Range<usize>> {
    let (mut parts, mut left): (Vec<Range<usize>>, u64) = (Vec::new(), 0);
    for count in units(files, 0, room) {
        let begin = parts.last().map_or(0, |part| part.end);
        let unit = begin..begin + count;
        let tokens = total(&files[unit.clone()]);
        if let Some(part) = parts.last_mut().filter(|_| tokens <= left) {
            part.end = unit.end;
        } else {
            parts.push(unit);
            left = room;
        }
        left = left.saturating_sub(tokens);
    }
    parts
}

/// Divides the files, which are below the same directory of this depth, into those that stay together: whole
/// directories if a part has room for them, otherwise what is in them. Returns the number of files of each.
fn units(files: &[PartFile<'_>], depth: usize, room: u64) -> Vec<usize> {
    if files.len() == 1 || total(files) <= room {
        return vec![files.len()];
    }
    if depth == MAX_DEPTH {
        return vec![1; files.len()];
    }
    let directory = |path: &str| path.match_indices('/').nth(depth).map(|(slash, _)| slash);
    let is_together = |one: &PartFile<'_>, next: &PartFile<'_>| {
        let slash = directory(one.path);
        slash.is_some_and(|slash| one.path.get(..=slash) == next.path.get(..=slash))
    };
    let groups = files.chunk_by(is_together);
    groups
        .flat_map(|group| units(group, depth + 1, room))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, tokens: u64) -> PartFile<'_> {
        PartFile {
            path,
            content: "",
            shown: "".into(),
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
                let paths: Vec<&str> = files[part].iter().map(|file| file.path).collect();
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
