//! The parts of a story. Plain data.

use std::borrow::Cow;

use crate::record::finding::Severity;
use crate::record::result::SectionRecord;
use crate::run::past::findings;
use crate::run::past::table::Table;
use crate::sys::diff::FileChange;
use crate::sys::numbers::counted;

/// Success or failure, if known, and a few words about it.
pub type Outcome = (Option<bool>, String);

/// A name and a value, with an optional note on it.
pub type Fact = (&'static str, String, Option<String>);

/// Formats the value of a fact with its note.
pub fn value((_, value, note): &Fact) -> String {
    let note = note.as_ref().map(|note| format!(" ({note})"));
    format!("{value}{}", note.unwrap_or_default())
}

/// The story of a run, from its outcome to each of its steps.
#[derive(Debug)]
pub struct Story<'a> {
    /// The run's folder, relative to the root.
    pub folder: String,
    /// The outcome in a sentence, without its full stop.
    pub headline: String,
    /// Success or failure, if known.
    pub is_good: Option<bool>,
    /// Sentences about the run as a whole.
    pub about: Vec<String>,
    /// The run in numbers.
    pub facts: Vec<Fact>,
    /// Problems, the request, and the result.
    pub sections: Vec<Section<'a>>,
    /// The steps in a table.
    pub calls: Option<Section<'a>>,
    /// The changes of the whole run, unless those of its one step are the same.
    pub changes: Option<Section<'a>>,
    /// The steps in detail.
    pub steps: Vec<Section<'a>>,
}

/// A part of a story under a title.
#[derive(Debug, Default)]
pub struct Section<'a> {
    /// The title.
    pub title: String,
    /// The outcome of the section's subject, if it has one.
    pub outcome: Option<Outcome>,
    /// The severity of a problem.
    pub severity: Option<Severity>,
    /// The content.
    pub blocks: Vec<Block<'a>>,
}

/// A part of a section.
#[derive(Debug)]
pub enum Block<'a> {
    /// A sentence, or a message of one or more lines.
    Note(String),
    /// The title of the following blocks, with the outcome of their subject.
    Title(String, Option<Outcome>),
    /// A list.
    Items(Vec<String>),
    /// A quoted text.
    Text(Form<'a>, Cow<'a, str>, Extent),
    /// Changed files.
    Changes(&'a [FileChange]),
    /// A table.
    Table(Table),
    /// The tools that an agent used.
    Tools(Vec<Section<'a>>),
    /// A titled block that is only shown on a page, which has room for it.
    Details(&'static str, Box<Self>),
}

/// The kind of a text.
#[derive(Debug, Clone, Copy)]
pub enum Form<'a> {
    /// The user's request.
    Request,
    /// A model's words.
    Prose,
    /// A report with its sections.
    Report(&'a [SectionRecord]),
    /// Text for a program.
    Code,
    /// A unified diff.
    Diff,
    /// The output of a program, with its title.
    Output(&'static str),
}

/// The part of a text that is quoted if there is not enough room for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// The first lines.
    First,
    /// A few lines.
    Few,
    /// The last lines.
    Last,
    /// The errors in it, or the last lines.
    Errors,
    /// Nothing: the text is left out.
    Nothing,
}

impl Extent {
    /// Returns the lines to quote, about `most` of them, and counts the others.
    pub fn lines(self, text: &str, most: usize) -> Vec<String> {
        let text = text.trim_start_matches(['\n', '\r']).trim_end();
        let count = text.lines().count();
        let most = if self == Self::Few { most / 3 } else { most };
        let left = count.saturating_sub(most);
        if self == Self::Nothing {
            return Vec::new();
        }
        if self == Self::Errors && left > 0 {
            let errors = findings::errors(text);
            if !errors.is_empty() {
                return errors;
            }
        }
        let is_end = matches!(self, Self::Last | Self::Errors);
        let line = if is_end { "earlier line" } else { "more line" };
        let others = (left > 0).then(|| format!("\u{2026} {}", counted(left as u64, line)));
        let (before, after) = if is_end {
            (others, None)
        } else {
            (None, others)
        };
        let lines = text.lines().skip(if is_end { left } else { 0 }).take(most);
        let quoted = before.into_iter().chain(lines.map(str::to_owned));
        quoted.chain(after).collect()
    }
}

impl<'a> Section<'a> {
    /// Creates a section without an outcome.
    pub fn new(title: impl Into<String>, blocks: Vec<Block<'a>>) -> Self {
        Self {
            title: title.into(),
            blocks,
            ..Self::default()
        }
    }
}

impl<'a> Block<'a> {
    /// Creates a sentence.
    pub fn note(text: impl Into<String>) -> Self {
        Self::Note(text.into())
    }

    /// Creates a title without an outcome.
    pub fn title(text: impl Into<String>) -> Self {
        Self::Title(text.into(), None)
    }

    /// Creates a block of a model's words; if not all of it fits, its beginning is shown.
    pub fn prose(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(Form::Prose, text.into(), Extent::First)
    }

    /// Creates a block with the output of a program.
    pub fn output(title: &'static str, text: &'a str, extent: Extent) -> Self {
        Self::Text(Form::Output(title), text.into(), extent)
    }

    /// Creates a block with text for a program.
    pub fn code(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(Form::Code, text.into(), Extent::First)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_left_out_are_counted() {
        assert_eq!(
            Extent::First.lines("a\nb", 1),
            ["a", "\u{2026} 1 more line"]
        );
        assert_eq!(
            Extent::Last.lines("a\nb\nc", 1),
            ["\u{2026} 2 earlier lines", "c"]
        );
        assert_eq!(Extent::First.lines("a\nb", 2), ["a", "b"]);
    }
}
