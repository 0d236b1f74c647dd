//! Renders Markdown as styled lines: headings, lists, code, tables, bold. Pure.
//!
//! Guarantees that nothing in the text moves the cursor, and that lines are wrapped to fit. Without styles,
//! inline code keeps its backticks to distinguish it from prose.

use std::mem::{replace, take};
use std::ops::Range;

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::blocks::{visible, wrapped};
use super::syntax::{CssClass, Pieces};
use crate::sys::text::text_width;

/// The minimum width of text, however deeply nested its list.
const NARROWEST: usize = 20;
/// The indentation of code blocks.
const CODE_INDENT: &str = "    ";

/// A function that highlights code in a language and returns the pieces of each line: only of the first lines while the
/// rest is being computed, and `None` if the language is unknown.
pub type CodePainter<'c> = &'c dyn Fn(&str, &str) -> Option<Vec<Pieces>>;

/// Renders `text` in `columns` columns, with styles if `is_styled`, and with code highlighted by `code`.
pub fn rendered(
    text: &str,
    columns: usize,
    is_styled: bool,
    code_colors: Option<CodePainter<'_>>,
) -> Vec<Line<'static>> {
    let text = visible(text);
    let mut lines = Renderer {
        columns,
        is_styled,
        code_colors,
        ..Renderer::default()
    };
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    for (event, range) in Parser::new_ext(&text, options).into_offset_iter() {
        match event {
            Event::Start(Tag::Strikethrough) => lines.strike(&text[range], 1),
            Event::End(TagEnd::Strikethrough) => lines.strike(&text[range], 0),
            event => lines.event(event),
        }
    }
    lines.end_block();
    lines.out
}

#[derive(Default)]
struct Renderer<'c> {
    columns: usize,
    is_styled: bool,
    out: Vec<Line<'static>>,
    /// The current paragraph, line by line.
    lines: Vec<Vec<Span<'static>>>,
    /// True if the current line ends in a word, which a space may follow.
    is_open: bool,
    /// The prefixes of the next line and of the lines after it, for each enclosing list or quotation.
    prefixes: Vec<(String, String)>,
    /// The number of the next item of each list; `None` for bulleted lists.
    lists: Vec<Option<u64>>,
    bold: usize,
    italic: usize,
    struck: usize,
    code_block: bool,
    /// The text of the current code block, and its language.
    code: String,
    language: String,
    code_colors: Option<CodePainter<'c>>,
    /// The address of the current link.
    link: Option<String>,
    /// The alignment of each column of the current table.
    aligns: Vec<Alignment>,
    /// The rows of the current table, including its head.
    rows: Vec<Vec<Line<'static>>>,
}

impl Renderer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code_block => self.code.push_str(&text),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                let style = self.style();
                self.words(&text, style);
            }
            Event::Code(code) => {
                let style = self.style().cyan();
                let mark = if self.is_styled { "" } else { "`" };
                self.words(&format!("{mark}{code}{mark}"), style);
            }
            // Keep the model's line breaks, which are usually deliberate, as in an address.
            Event::SoftBreak | Event::HardBreak => {
                self.lines.push(Vec::new());
                self.is_open = false;
            }
            Event::Rule => {
                self.begin_block();
                let width = self.columns.min(40);
                self.out.push("─".repeat(width).into());
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Table(aligns) => {
                self.begin_block();
                self.aligns = aligns;
            }
            Tag::Heading { .. } => {
                self.begin_block();
                self.bold += 1;
            }
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.prefixes.push(("│ ".to_owned(), "│ ".to_owned()));
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                self.code_block = true;
                self.language.clear();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    if !self.is_styled {
                        self.push_line(format!("{CODE_INDENT}[{language}]"));
                    }
                    self.language = language.into_string();
                }
            }
            Tag::List(first) => {
                self.begin_block();
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::Strong => self.bold += 1,
            Tag::Emphasis => self.italic += 1,
            Tag::Link { dest_url, .. } => self.link = Some(dest_url.into_string()),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::Heading(_) => {
                self.end_block();
                self.bold = self.bold.saturating_sub(1);
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.end_block();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => {
                self.code_block = false;
                let code = take(&mut self.code);
                self.code_lines(code.trim_end_matches('\n'));
            }
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Link => self.end_link(),
            TagEnd::TableCell => self.end_cell(),
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    fn end_cell(&mut self) {
        self.is_open = false;
        let cell = take(&mut self.lines).into_iter().flatten().collect();
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Writes the current table: in columns, of which the widest is wrapped if need be, or, if they are still too wide,
    /// with each cell on its own line after the column's heading.
    fn end_table(&mut self) {
        let rows = take(&mut self.rows);
        let Some((head, body)) = rows.split_first() else {
            return;
        };
        let width = |at: usize| {
            rows.iter()
                .filter_map(move |row| row.get(at))
                .map(Line::width)
        };
        let mut widths: Vec<usize> = (0..head.len())
            .map(|at| width(at).max().unwrap_or_default())
            .collect();
        let gaps = 2 * head.len().saturating_sub(1);
        let excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(self.width());
        if let Some(widest) = widths.iter_mut().max() {
            let narrower = widest.saturating_sub(excess);
            *widest = if narrower < NARROWEST {
                *widest
            } else {
                narrower
            };
        }
        let taken = widths.iter().sum::<usize>() + gaps;
        if taken <= self.width() {
            for (at, row) in rows.iter().enumerate() {
                for line in in_columns(row, &widths, &self.aligns) {
                    self.push_line(line);
                }
                if at == 0 {
                    self.push_line("─".repeat(taken));
                }
            }
            return;
        }
        for (at, row) in body.iter().enumerate() {
            if at > 0 {
                self.push_line("");
            }
            let cells = head.iter().zip(row);
            for (name, cell) in cells.filter(|(_, cell)| !cell.spans.is_empty()) {
                for line in wrapped(&format!("{name}: {cell}"), self.width()) {
                    self.push_line(line);
                }
            }
        }
    }

    fn item(&mut self) {
        self.end_block();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        };
        let rest = " ".repeat(text_width(&mark));
        self.prefixes.push((mark, rest));
    }

    /// Writes a link's address, unless it is the same as its text.
    fn end_link(&mut self) {
        let Some(url) = self.link.take() else { return };
        let last = self.lines.last().into_iter().flatten();
        let text: String = last.map(|span| &*span.content).collect();
        if !url.is_empty() && !text.ends_with(&url) {
            let style = self.style().dim();
            self.words(&format!(" ({url})"), style);
        }
    }

    /// Handles the beginning or end of a `passage` between tildes. Only `~~` strikes text out; single ones, as
    /// in `HEAD~1 and HEAD~2`, are literal.
    fn strike(&mut self, passage: &str, struck: usize) {
        let style = self.style();
        match passage.starts_with("~~") {
            true if self.is_styled => self.struck = struck,
            true => self.words("~~", style),
            false => self.words("~", style),
        }
    }

    fn style(&self) -> Style {
        let depths = [
            (self.bold, Modifier::BOLD),
            (self.italic, Modifier::ITALIC),
            (self.struck, Modifier::CROSSED_OUT),
        ];
        let set = depths.into_iter().filter(|(depth, _)| *depth > 0);
        set.fold(Style::new(), |style, (_, set)| style.add_modifier(set))
    }

    /// Adds text to the current paragraph, with a single space between words.
    fn words(&mut self, text: &str, style: Style) {
        // A reference like `&#27;` has been decoded to the character.
        let mut words = visible(text).replace('\n', " ");
        words.retain(|c| {
            let was_open = replace(&mut self.is_open, c != ' ');
            was_open || c != ' '
        });
        if self.lines.is_empty() {
            self.lines.push(Vec::new());
        }
        if let Some(line) = self.lines.last_mut() {
            line.push(Span::styled(words, style));
        }
    }

    fn code_lines(&mut self, code: &str) {
        if code.is_empty() {
            return;
        }
        // More may follow the language: `rust,ignore`.
        let language = take(&mut self.language);
        let token = language.split([',', ' ', '{']).next().unwrap_or_default();
        let pieces = self.code_colors.and_then(|colors| colors(token, code));
        let width = self.width().saturating_sub(CODE_INDENT.len());
        for (at, line) in code.split('\n').enumerate() {
            let spans = match pieces.as_ref().map(|lines| lines.get(at)) {
                None => vec![Span::styled(line.to_owned(), code_style(""))],
                Some(None) => vec![Span::raw(line.to_owned())],
                Some(Some(pieces)) => colored(line, pieces),
            };
            for mut part in wrapped_spans(&spans, width.max(NARROWEST)) {
                part.insert(0, Span::raw(CODE_INDENT));
                self.push_line(part);
            }
        }
    }

    /// Begins a new block, after a blank line at the outermost level.
    fn begin_block(&mut self) {
        self.end_block();
        if self.prefixes.is_empty() && !self.out.is_empty() {
            self.out.push(Line::default());
        }
    }

    /// Writes the current paragraph.
    fn end_block(&mut self) {
        self.is_open = false;
        for line in take(&mut self.lines) {
            for part in wrapped_spans(&line, self.width()) {
                self.push_line(part);
            }
        }
    }

    /// Returns the number of columns left after the prefixes.
    fn width(&self) -> usize {
        let prefixes = self.prefixes.iter();
        let taken: usize = prefixes.map(|(_, rest)| text_width(rest)).sum();
        self.columns.saturating_sub(taken).max(NARROWEST)
    }

    /// Writes a line after the prefixes, without trailing spaces.
    fn push_line(&mut self, line: impl Into<Line<'static>>) {
        let mut spans: Vec<Span<'static>> = Vec::new();
        for (first, rest) in &mut self.prefixes {
            spans.push(Span::raw(replace(first, rest.clone())));
        }
        spans.extend(line.into().spans);
        while let Some(last) = spans.last_mut() {
            last.content = last.content.trim_end().to_owned().into();
            if !last.content.is_empty() {
                break;
            }
            spans.pop();
        }
        if !self.is_styled {
            for span in &mut spans {
                span.style = Style::new();
            }
        }
        self.out.push(spans.into());
    }
}

/// Returns a line of code, styled by its pieces.
fn colored(line: &str, pieces: &Pieces) -> Vec<Span<'static>> {
    let mut from = 0;
    let rest = [(line.len(), None)];
    let spans = pieces.iter().chain(&rest).filter_map(|(end, class)| {
        let text = line.get(from..*end)?.to_owned();
        from = *end;
        Some(Span::styled(text, code_style(class.unwrap_or("p"))))
    });
    spans.collect()
}

/// Wraps a styled line as [`wrapped`] does.
fn wrapped_spans(line: &[Span<'static>], width: usize) -> Vec<Vec<Span<'static>>> {
    let text: String = line.iter().map(|span| &*span.content).collect();
    let mut from = 0;
    let parts = wrapped(&text, width).into_iter().map(|part| {
        // Wrapping may have dropped spaces between the parts.
        from += text[from..].find(&part).unwrap_or_default();
        let start = from;
        from += part.len();
        cut(line, start..from)
    });
    parts.collect()
}

/// Returns the part of a styled line in this byte range.
fn cut(line: &[Span<'static>], range: Range<usize>) -> Vec<Span<'static>> {
    let mut start = 0;
    let parts = line.iter().filter_map(|span| {
        let [from, to] = [range.start, range.end].map(|at| at.saturating_sub(start));
        start += span.content.len();
        let text = span.content.get(from..to.min(span.content.len()))?;
        (!text.is_empty()).then(|| Span::styled(text.to_owned(), span.style))
    });
    parts.collect()
}

/// Returns the style of a piece of code; unclassified code has none.
fn code_style(class: CssClass) -> Style {
    let style = Style::new();
    match class {
        "c" => style.dim(),
        "s" => style.green(),
        "k" => style.magenta(),
        "f" => style.blue(),
        "t" => style.yellow(),
        "h" => style.bold(),
        "p" => style,
        _ => style.cyan(),
    }
}

/// Returns a row of a table whose columns have these widths, over several lines if a cell is wider.
fn in_columns(row: &[Line<'static>], widths: &[usize], aligns: &[Alignment]) -> Vec<Line<'static>> {
    let cells = row.iter().zip(widths);
    let cells: Vec<_> = cells
        .map(|(cell, width)| wrapped_spans(&cell.spans, *width))
        .collect();
    let height = cells.iter().map(Vec::len).fold(1, usize::max);
    let line = |nth: usize| {
        let mut line = Line::default();
        for ((cell, width), align) in cells.iter().zip(widths).zip(aligns) {
            let part = Line::from(cell.get(nth).cloned().unwrap_or_default());
            let blanks = width.saturating_sub(part.width());
            let before = match align {
                Alignment::Right => blanks,
                Alignment::Center => blanks / 2,
                Alignment::Left | Alignment::None => 0,
            };
            line.push_span(" ".repeat(before));
            line.spans.extend(part.spans);
            line.push_span(" ".repeat(blanks - before + 2));
        }
        line
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests;
