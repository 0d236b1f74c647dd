//! Renders changed files and their diffs on a page, with syntax highlighting. Pure.
//!
//! Guarantees that the markup it adds is bounded, however much was changed. Omitted parts are counted, and the
//! page says where to find them.

use std::time::Duration;

use maud::{Markup, html};

use super::elements::{anchor, left_out, within};
use super::tables;
use super::text::{HtmlEscaper, beginning};
use crate::record::run_files::STEPS;
use crate::run::past::table;
use crate::run::past::words::{bytes, count};
use crate::sys::diff::{self, FileChange, FileStat, Hunk, Line, LineKind};
use crate::sys::numbers::grouped;
use crate::ui::syntax::{self, Highlighter, Pieces};

/// The markup budget for the diffs of a page, in bytes.
const MARKUP: usize = 4 << 20;
/// The markup budget for the diff of one file, in bytes.
const FILE_MARKUP: usize = 400 << 10;
/// The maximum number of rows in a list of files.
const ROWS: usize = 5000;
/// The maximum number of files in a step whose diffs are initially expanded.
const OPENED: usize = 6;
/// The maximum number of files for which the list is initially expanded.
const LISTED: usize = 40;
/// The number of diff lines above which layout is deferred until the diff is scrolled to.
const LAZY: usize = 200;

/// The command that shows everything a page omits.
const ELSEWHERE: &str = "code-commit diff";

/// Renders the changes of a page until its markup budget is spent.
pub struct DiffRenderer<'a> {
    escaper: HtmlEscaper<'a>,
    colors: Highlighter<'a>,
    markup: usize,
}

impl<'a> DiffRenderer<'a> {
    /// Creates a renderer. `elapsed` returns the time since some fixed point; highlighting stops when it takes
    /// too long.
    pub fn new(escaper: HtmlEscaper<'a>, elapsed: &'a dyn Fn() -> Duration) -> Self {
        Self {
            escaper,
            colors: Highlighter::new(elapsed),
            markup: MARKUP,
        }
    }

    /// Renders the list of changed files and each file's diff. `id` is the prefix of the anchors.
    pub fn show(&mut self, id: &str, changes: &[FileChange]) -> Markup {
        let stat = diff::stat(changes);
        let files = &stat.files;
        let opened = files.len() <= OPENED;
        let (list, prefix) = (table::of_files(&stat, ROWS), format!("{id}-f"));
        let mut shown = Vec::new();
        for (number, (file, change)) in files.iter().zip(diff::in_order(changes)).enumerate() {
            if self.markup == 0 {
                break;
            }
            shown.push(self.file(&anchor(&prefix, number), file, change, opened));
        }
        html! {
            p.stat { (count(files.len(), "file")) " changed, " (lines(stat.added(), stat.removed())) }
            @if files.len() > 1 { details.list open[files.len() <= LISTED] {
                summary { "The files, by name" }
                (tables::shown(self.escaper, &list, (&prefix, shown.len())))
                (left_out(list.left_out, "more file", ELSEWHERE))
            } }
            @for file in &shown { (file) }
            (left_out(files.len() - shown.len(), "more file", ELSEWHERE))
        }
    }

    fn file(&mut self, anchor: &str, file: &FileStat, change: &FileChange, opened: bool) -> Markup {
        let body = self.body(change);
        let markup = html! {
            details.file id=(anchor) open[opened] {
                summary {
                    code.path { (self.escaper.name(&file.path)) } " "
                    @if let Some(word) = kind(change) { span.tag { (word) } " " }
                    (lines(file.added, file.removed))
                }
                (body)
            }
        };
        self.markup = self.markup.saturating_sub(markup.0.len());
        markup
    }

    fn body(&mut self, change: &FileChange) -> Markup {
        let (before, after) = (change.before(), change.after());
        let Some(hunks) = diff::hunks(before, after) else {
            let (before, after) = (bytes(before.len() as u64), bytes(after.len() as u64));
            return html! { p.note { "Not shown as text: " (before) " before, " (after) " after." } };
        };
        if hunks.is_empty() {
            return html! { p.note { "No line is different." } };
        }
        let colors = self.colors(&change.path, [before, after]);
        let width = digits(&hunks);
        let rows = hunks.iter().flat_map(|hunk| {
            let lines = hunk.lines.iter().map(move |line| (hunk, Some(line)));
            std::iter::once((hunk, None)).chain(lines)
        });
        let count = rows.clone().count();
        let budget = FILE_MARKUP.min(self.markup);
        let lines = within(budget, 0, rows, |_, row, _| match row {
            (_, Some(line)) => self.line(line, &colors, width),
            (hunk, None) => self.heading(hunk, width),
        });
        html! {
            pre.d tabindex="0" style=[later(lines.len())] { code { @for line in &lines { (line) } } }
            (left_out(count - lines.len(), "more line", ELSEWHERE))
        }
    }

    /// Highlights the lines of both versions; returns no colours if they are too large.
    fn colors(&mut self, path: &str, versions: [&[u8]; 2]) -> [Vec<Pieces>; 2] {
        if versions.iter().map(|content| content.len()).sum::<usize>() > syntax::FILE {
            return Default::default();
        }
        let lines = versions.map(|content| {
            let lines = content.split(|byte| *byte == b'\n');
            lines.map(|line| self.cut(line).0).collect::<Vec<_>>()
        });
        let colors = self.colors.of(path, lines.each_ref().map(Vec::as_slice));
        colors.unwrap_or_default()
    }

    /// Returns the line as shown, and whether it ends in CRLF.
    fn cut(&self, line: &[u8]) -> (String, bool) {
        let without = line.strip_suffix(b"\r");
        let cut = self.escaper.cut_line(without.unwrap_or(line));
        (cut, without.is_some())
    }

    fn heading(&self, hunk: &Hunk<'_>, width: usize) -> Markup {
        let heading = self.escaper.cut_line(hunk.heading.unwrap_or_default());
        html! {
            span.at data-n=(" ".repeat(2 * width + 1)) {
                "@@ \u{2212}" (hunk.before_start) "," (hunk.before_count())
                " +" (hunk.after_start) "," (hunk.after_count()) " @@ " (heading) "\n"
            }
        }
    }

    fn line(&self, line: &Line<'_>, [before, after]: &[Vec<Pieces>; 2], width: usize) -> Markup {
        let (class, sign, colors, number) = match line.kind {
            LineKind::Context => ("x", " ", after, line.after_line),
            LineKind::Added => ("a", "+", after, line.after_line),
            LineKind::Removed => ("r", "-", before, line.before_line),
        };
        let (text, returns) = self.cut(line.text);
        let pieces = number.and_then(|number| colors.get(number.checked_sub(1)?));
        let number = |line: Option<usize>| line.map_or(String::new(), |line| line.to_string());
        let numbers = format!(
            "{:>width$} {:>width$}",
            number(line.before_line),
            number(line.after_line)
        );
        html! {
            span class=(class) data-n=(numbers) {
                (sign) (colored(&text, pieces))
                @if returns && line.kind != LineKind::Context { em { "\u{240d}" } }
                "\n"
            }
            @if !line.newline {
                span.at data-n=(" ".repeat(2 * width + 1)) { "\\ No newline at end of file\n" }
            }
        }
    }
}

/// Renders a diff recorded as text, from its first hunk on, up to the given number of lines and bytes.
pub fn recorded(escaper: HtmlEscaper<'_>, diff: &str, limit: (usize, usize)) -> Markup {
    let text = escaper.text(diff);
    let from = text.find("\n@@ ").map_or(0, |at| at + 1);
    let (shown, is_all) = beginning(&text[from..], limit.0, limit.1);
    let class = |line: &str| match line.as_bytes().first() {
        Some(b'+') => "a",
        Some(b'-') => "r",
        Some(b' ') => "x",
        _ => "at",
    };
    html! {
        pre.d tabindex="0" style=[later(shown.lines().count())] { code {
            @for line in shown.split_inclusive('\n') { span class=(class(line)) data-n="" { (line) } }
        } }
        @if !is_all { p.left-out { "The rest of the diff is left out: see " code { (STEPS) } "." } }
    }
}

/// Returns the style that defers rendering of a long diff until it is scrolled into view, with an estimate of its
/// height.
pub fn later(lines: usize) -> Option<String> {
    let height = lines + lines / 4;
    (lines > LAZY)
        .then(|| format!("content-visibility:auto;contain-intrinsic-size:auto {height}rem"))
}

/// Renders a line with syntax highlighting.
fn colored(text: &str, pieces: Option<&Pieces>) -> Markup {
    let mut from = 0;
    let classed = pieces.into_iter().flatten().filter_map(|(to, class)| {
        let piece = text.get(from..*to)?;
        from = *to;
        Some((piece, *class))
    });
    let pieces: Vec<_> = classed.collect();
    html! {
        @for (piece, class) in pieces {
            @if let Some(class) = class { i class=(class) { (piece) } } @else { (piece) }
        }
        (text.get(from..).unwrap_or_default())
    }
}

/// Returns a note on changes to the file other than its lines.
fn kind(change: &FileChange) -> Option<String> {
    match (&change.before, &change.after) {
        (None, _) => Some("new".to_owned()),
        (_, None) => Some("deleted".to_owned()),
        (Some(before), Some(after)) => {
            let (before, after) = (before.mode & 0o777, after.mode & 0o777);
            (before != after).then(|| format!("mode {before:o} \u{2192} {after:o}"))
        }
    }
}

/// Renders counts of lines in the same words as the other renderers of stories.
fn lines(added: u64, removed: u64) -> Markup {
    html! {
        span.plus { "+" (grouped(added)) } " " span.minus { "\u{2212}" (grouped(removed)) } " lines"
    }
}

/// Returns the number of digits in the largest line number.
fn digits(hunks: &[Hunk<'_>]) -> usize {
    let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
    let numbers = lines.flat_map(|line| [line.before_line, line.after_line]);
    numbers.flatten().max().unwrap_or(0).to_string().len()
}
