//! `READ_FILE`: shows the content of a file.
//!
//! Refuses files whose name suggests that they contain credentials. The caller redacts other keys and truncates long
//! output in the middle.

use std::fmt;

use super::files::{COUNT, ReadAccess, line_count};
use super::resolved_path::{ResolvedPath, quoted};
use crate::agent::tool::{
    Arguments, Effect, OUTPUT_LIMIT, Parameter, ParameterKind, Tool, ToolError, ToolOutput,
    ToolSpec,
};
use crate::sys::numbers::counted;
use crate::sys::text::line_of;

/// Maximum size of a shown line range, in bytes; with the line above it, it fits in any output.
const SHOWN: usize = OUTPUT_LIMIT - 512;
/// Minimum size of a long file's beginning that is shown, in bytes.
const BEGINNING: usize = OUTPUT_LIMIT / 2 - 512;

/// Maximum size of a file, in bytes.
const LARGEST: u64 = 64 << 20;

/// File extensions of images, which a model sees only when the user attaches them.
const PICTURES: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// The description of `READ_FILE`.
pub static READ_FILE: ToolSpec = ToolSpec::new(
    "READ_FILE",
    "Shows what is in a file of at most 64 MiB: all of it, or some lines. At most 32 KiB are shown at once; of a longer \
     file, that is the beginning and the end; of a longer range, the first lines.",
    &[
        Parameter::path("path", "the file").example("src/index.ts"),
        Parameter::new(
            "lines",
            ParameterKind::Lines,
            "which lines, counted from 1: `10-80`, `10-` to the end, or `10`; left out, the whole file is shown",
        )
        .example("10-80"),
    ],
    Effect::Reads,
);

/// Reads whole files, or ranges of their lines.
#[derive(Debug, Clone, Copy)]
pub struct ReadFile<'a>(pub ReadAccess<'a>);

impl Tool for ReadFile<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let range = match arguments.get("lines").trim() {
            "" => None,
            text => Some(LineRange::parse(text)?),
        };
        self.read(arguments, range, |next| format!("`lines` {next}-"), Ok)
    }
}

/// Reads whole files, for agents that cannot select lines; they read the middle of a long file with a command.
pub struct ReadWhole<'a>(pub ReadFile<'a>);

impl Tool for ReadWhole<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let from = |next| format!("a command, such as `tail -n +{next}` with its path");
        self.0.read(arguments, None, from, Ok)
    }
}

/// The description of `read_file`, which reads a number of lines from a given one.
pub static READ_PART: ToolSpec = ToolSpec::new(
    "read_file",
    "Shows what is in a text file of at most 64 MiB: all of it, or some lines. At most 32 KiB are shown at once; of a \
     longer file, that is the beginning and the end; of a longer range, the first lines.",
    &[
        Parameter::path("path", "The file, relative to the project's root"),
        Parameter::new(
            "offset",
            ParameterKind::Json(COUNT),
            "The first line to show, counted from 1",
        )
        .optional(),
        Parameter::new(
            "limit",
            ParameterKind::Json(COUNT),
            "How many lines to show",
        )
        .optional(),
    ],
    Effect::Reads,
);

/// Reads files by first line and number of lines; binary files are an error.
pub struct ReadPart<'a>(pub ReadFile<'a>);

impl Tool for ReadPart<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let path = arguments.get("path");
        let name = path.to_ascii_lowercase();
        if PICTURES.iter().any(|ending| name.ends_with(ending)) {
            return Err(format!(
                "{} is a picture, and this tool shows text; the user can attach it: ask for `@` and its path",
                quoted(path)
            ).into());
        }
        let number = |name| {
            let number = arguments.number(name);
            number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let (first, count) = (number("offset"), number("limit"));
        let range = (first.or(count)).map(|_| {
            let first = first.unwrap_or(1);
            let last = count.map_or(usize::MAX, |count| first.saturating_add(count - 1));
            LineRange { first, last }
        });
        self.0
            .read(arguments, range, |next| format!("`offset` {next}"), Err)
    }
}

impl ReadFile<'_> {
    /// Reads the file; `from` describes how to continue at a line, and `binary` decides how a binary file is treated.
    fn read(
        self,
        arguments: &Arguments,
        range: Option<LineRange>,
        from: fn(usize) -> String,
        binary: fn(String) -> Result<String, String>,
    ) -> Result<ToolOutput, ToolError> {
        let ReadAccess { root, outside, .. } = self.0;
        let place =
            ResolvedPath::of(root, arguments.get("path"), outside).map_err(ToolError::Failed)?;
        let content = place.read(root, LARGEST)?;
        let brief = match range {
            None => counted(line_count(&content) as u64, "line"),
            Some(range) => format!("lines {range}"),
        };
        let shown = shown(&place.shown(), content, range, from, binary)?;
        Ok(ToolOutput::text(shown).in_brief(brief))
    }
}

/// The range of lines to show, counted from 1; the last one is included.
#[derive(Debug, Clone, Copy)]
struct LineRange {
    first: usize,
    last: usize,
}

impl fmt::Display for LineRange {
    /// Formats the range as a model writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.first, self.last) {
            (first, usize::MAX) => write!(f, "{first}-"),
            (first, last) if first == last => write!(f, "{first}"),
            (first, last) => write!(f, "{first}-{last}"),
        }
    }
}

impl LineRange {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok();
        let ends = match text.split_once('-') {
            None => number(text).map(|line| (line, line)),
            Some((first, "")) => number(first).map(|first| (first, usize::MAX)),
            Some((first, last)) => number(first).zip(number(last)),
        };
        ends.filter(|(first, last)| (1..=*last).contains(first))
            .map(|(first, last)| Self { first, last })
            .ok_or_else(|| {
                format!(
                    "{} is no range of lines: `lines` is like `10-80`, `10-` or `10`, counted from 1",
                    quoted(text)
                )
            })
    }

    /// Returns the lines of `text` in this range that fit in one output, and the number of the last one.
    fn of(self, text: &str) -> (&str, usize) {
        let lines = text.split_inclusive('\n');
        let start = lines.clone().take(self.first - 1).map(str::len).sum();
        let (mut end, mut last) = (start, self.first - 1);
        for line in lines.skip(last).take(self.last - last) {
            // A line that is too long by itself is shown anyway, without its middle.
            if end > start && end + line.len() - start > SHOWN {
                break;
            }
            end += line.len();
            last += 1;
        }
        (text.get(start..end).unwrap_or_default(), last)
    }
}

/// Renders a file's content for the model.
fn shown(
    name: &str,
    content: Vec<u8>,
    range: Option<LineRange>,
    from: fn(usize) -> String,
    binary: fn(String) -> Result<String, String>,
) -> Result<String, String> {
    let bytes = counted(content.len() as u64, "byte");
    let count = line_count(&content);
    let lines = counted(count as u64, "line");
    let (text, not_utf8) = match String::from_utf8(content) {
        Ok(text) if text.is_empty() => return Ok(format!("{name} is empty")),
        Ok(text) => (text, None),
        Err(error) if is_mostly_text(error.as_bytes()) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Some("what is not UTF-8 in it is shown as \u{fffd}".to_owned()),
        ),
        Err(_) => return binary(format!("{name} is a binary file, {bytes}")),
    };
    let (shown, part) = match range {
        Some(range) if range.first > count => return Err(format!("{name} has {lines}")),
        Some(range) => {
            let (shown, last) = range.of(&text);
            (shown, Some(note(range, last, count, from)))
        }
        None if text.len() > OUTPUT_LIMIT => (text.as_str(), Some(left_out(&text, count, from))),
        None => (text.as_str(), None),
    };
    let notes: Vec<String> = not_utf8.into_iter().chain(part).collect();
    Ok(if notes.is_empty() {
        text
    } else {
        format!(
            "[{name} has {lines}, {bytes}; {}]\n{shown}",
            notes.join("; ")
        )
    })
}

/// Describes the lines shown of a range, and how to continue if that is not all of it.
fn note(range: LineRange, last: usize, count: usize, from: fn(usize) -> String) -> String {
    let shown = format!("these are lines {}-{last}", range.first);
    if last < range.last.min(count) {
        format!("{shown}, no more fit; read on with {}", from(last + 1))
    } else {
        shown
    }
}

/// Describes how to continue if the middle of a file with `count` lines is left out.
fn left_out(text: &str, count: usize, from: fn(usize) -> String) -> String {
    let next = line_of(text.as_bytes(), BEGINNING);
    let mut lines = text.split_inclusive('\n');
    // Only the beginning and the end of such a line are shown.
    let is_long = lines.nth(next - 1).is_some_and(|line| line.len() > SHOWN);
    let message = match (is_long, next == count) {
        (false, _) => format!("read on with {}", from(next)),
        (true, true) => format!("a command shows the rest of line {next}"),
        (true, false) => format!(
            "a command shows the rest of line {next}; read on with {}",
            from(next + 1)
        ),
    };
    format!("the middle is left out; {message}")
}

/// Returns whether so few bytes are not UTF-8 that the rest is readable, as in Latin-1.
fn is_mostly_text(content: &[u8]) -> bool {
    let chunks = content.utf8_chunks();
    let bad: usize = chunks.map(|chunk| chunk.invalid().len()).sum();
    !content.contains(&0) && bad <= content.len() / 10
}

#[cfg(test)]
mod tests;
