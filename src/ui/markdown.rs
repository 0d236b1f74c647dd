//! An answer's Markdown as lines for a terminal: headings, lists, code, tables, bold. Pure.
//!
//! Guarantees that nothing in the text moves the cursor, and that lines are broken to fit. Without colours, marks of
//! inline code stay, since nothing else would tell it from words.

use std::mem::take;
use std::ops::Range;

use console::{Style, measure_text_width, strip_ansi_codes};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::blocks::{visible, wrapped};
use super::columns::{Align::Left, aligned};
use super::syntax::{CssClass, Pieces};

/// However deep lists are, their text has so many columns.
const NARROWEST: usize = 20;
/// What stands before each line of a code block.
const CODE_INDENT: &str = "    ";

/// The pieces of the lines of some code in a language, as `syntax` finds them; of fewer lines, where more are not known
/// yet, and `None` where the language is not known.
pub type CodePainter<'c> = &'c dyn Fn(&str, &str) -> Option<Vec<Pieces>>;

/// The lines of `text` in `columns` columns.
#[must_use]
pub fn rendered(text: &str, columns: usize, colors: bool) -> Vec<String> {
    colored(text, columns, colors, &|_, _| None)
}

/// The same with code in the colours of its syntax.
#[must_use]
pub fn colored(text: &str, columns: usize, colors: bool, code: CodePainter<'_>) -> Vec<String> {
    let text = visible(text);
    let mut lines = Renderer {
        columns,
        colors,
        code_colors: Some(code),
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

/// A piece of text between blanks, as pieces of one style each.
type Word = Vec<(String, Style)>;

#[derive(Default)]
struct Renderer<'c> {
    columns: usize,
    colors: bool,
    out: Vec<String>,
    /// The words of the paragraph that is under way, line by line.
    lines: Vec<Vec<Word>>,
    /// Whether the next text goes on with the last word.
    is_open: bool,
    /// What stands before the next line, and before those after it, for each list or quotation around it.
    prefixes: Vec<(String, String)>,
    /// The number of the next item of each list; `None`: it has bullets.
    lists: Vec<Option<u64>>,
    bold: usize,
    italic: usize,
    struck: usize,
    code_block: bool,
    /// The code block that is under way, and its language.
    code: String,
    language: String,
    code_colors: Option<CodePainter<'c>>,
    /// The address of the link that is under way.
    link: Option<String>,
    /// The rows of the table that is under way, its head the first.
    rows: Vec<Vec<String>>,
}

impl Renderer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) if self.code_block => self.code.push_str(&text),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                let style = self.style();
                self.words(&text, &style);
            }
            Event::Code(code) => {
                let style = self.style().cyan();
                let mark = if self.colors { "" } else { "`" };
                self.words(&format!("{mark}{code}{mark}"), &style);
            }
            // What a model breaks is meant to be broken: an address, say.
            Event::SoftBreak | Event::HardBreak => {
                self.lines.push(Vec::new());
                self.is_open = false;
            }
            Event::Rule => {
                self.begin_block();
                let width = self.columns.min(40);
                self.out.push("─".repeat(width));
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::Table(_) => self.begin_block(),
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
                    if !self.colors {
                        self.push_line(&format!("{CODE_INDENT}[{language}]"));
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
        let words = take(&mut self.lines).into_iter().flatten();
        let words = words.map(|word| {
            let pieces = word.iter();
            pieces
                .map(|(text, style)| style.apply_to(text).to_string())
                .collect::<String>()
        });
        let cell = words.collect::<Vec<_>>().join(" ");
        if let Some(row) = self.rows.last_mut() {
            row.push(cell);
        }
    }

    /// Writes the table that is under way: in columns or, where these are too wide, each cell on a line of its own behind
    /// the head of its column.
    fn end_table(&mut self) {
        let rows = take(&mut self.rows);
        let Some((head, body)) = rows.split_first() else {
            return;
        };
        let mut lines = aligned(&rows, &vec![Left; head.len()]);
        let width = lines.iter().map(|line| measure_text_width(line)).max();
        let width = width.unwrap_or_default();
        if width <= self.width() {
            lines.insert(1, "─".repeat(width));
            for line in lines {
                self.push_line(&line);
            }
            return;
        }
        for (at, row) in body.iter().enumerate() {
            if at > 0 {
                self.push_line("");
            }
            for (name, cell) in head.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
                let line = format!("{name}: {cell}");
                // Where it is broken, no colour must be.
                for line in wrapped(&strip_ansi_codes(&line), self.width()) {
                    self.push_line(&line);
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
        let rest = " ".repeat(measure_text_width(&mark));
        self.prefixes.push((mark, rest));
    }

    /// A link's address is said, where its words are others.
    fn end_link(&mut self) {
        let Some(url) = self.link.take() else { return };
        let last = self.lines.iter().flatten().last();
        let said: String = last
            .into_iter()
            .flatten()
            .map(|(text, _)| text.as_str())
            .collect();
        if !url.is_empty() && !said.ends_with(&url) {
            let style = self.style().dim();
            self.words(&format!(" ({url})"), &style);
        }
    }

    /// `passage` begins or ends, between `~~`. Between single ones, as in `HEAD~1 and HEAD~2`, these are letters.
    fn strike(&mut self, passage: &str, struck: usize) {
        let style = self.style();
        match passage.starts_with("~~") {
            true if self.colors => self.struck = struck,
            true => self.words("~~", &style),
            false => self.words("~", &style),
        }
    }

    fn style(&self) -> Style {
        let style = Style::new().force_styling(self.colors);
        let style = if self.bold > 0 { style.bold() } else { style };
        let style = if self.italic > 0 {
            style.italic()
        } else {
            style
        };
        if self.struck > 0 {
            style.strikethrough()
        } else {
            style
        }
    }

    fn words(&mut self, text: &str, style: &Style) {
        // A reference like `&#27;` has become the character.
        let text = visible(text);
        for (at, part) in text.split([' ', '\n']).enumerate() {
            if at > 0 {
                self.is_open = false;
            }
            if part.is_empty() {
                continue;
            }
            if self.lines.is_empty() {
                self.lines.push(Vec::new());
            }
            let Some(line) = self.lines.last_mut() else {
                return;
            };
            let piece = (part.to_owned(), style.clone());
            match line.last_mut() {
                Some(word) if self.is_open => word.push(piece),
                _ => line.push(vec![piece]),
            }
            self.is_open = true;
        }
    }

    fn code_lines(&mut self, code: &str) {
        if code.is_empty() {
            return;
        }
        // Behind the language may stand more: `rust,ignore`.
        let language = take(&mut self.language);
        let token = language.split([',', ' ', '{']).next().unwrap_or_default();
        let pieces = self.code_colors.and_then(|colors| colors(token, code));
        let width = self.width().saturating_sub(CODE_INDENT.len());
        for (at, line) in code.split('\n').enumerate() {
            let pieces = pieces.as_ref().map(|lines| lines.get(at));
            let mut from = 0;
            for part in wrapped(line, width.max(NARROWEST)) {
                // Blanks may be left out between the parts.
                from += line[from..].find(&part).unwrap_or_default();
                let to = from + part.len();
                let painted = match pieces {
                    None => self.paint(&part, code_style("")),
                    Some(None) => part,
                    Some(Some(pieces)) => self.painted(line, from..to, pieces),
                };
                self.push_line(&format!("{CODE_INDENT}{painted}"));
                from = to;
            }
        }
    }

    /// A part of a line in the colours of its pieces.
    fn painted(&self, line: &str, part: Range<usize>, pieces: &Pieces) -> String {
        let (mut out, mut from) = (String::new(), part.start);
        for (end, class) in pieces {
            let to = (*end).min(part.end);
            if let Some(text) = line.get(from..to).filter(|text| !text.is_empty()) {
                out += &class.map_or(text.to_owned(), |class| self.paint(text, code_style(class)));
                from = to;
            }
        }
        out + line.get(from..part.end).unwrap_or_default()
    }

    fn paint(&self, text: &str, style: Style) -> String {
        style.force_styling(self.colors).apply_to(text).to_string()
    }

    /// Something new begins; on the outermost level, behind a blank line.
    fn begin_block(&mut self) {
        self.end_block();
        if self.prefixes.is_empty() && !self.out.is_empty() {
            self.out.push(String::new());
        }
    }

    /// Writes the paragraph that is under way.
    fn end_block(&mut self) {
        self.is_open = false;
        for words in take(&mut self.lines) {
            let (mut line, mut taken) = (String::new(), 0);
            let width = self.width();
            for word in words.into_iter().flat_map(|word| broken(word, width)) {
                let plain: String = word.iter().map(|(text, _)| text.as_str()).collect();
                let length = measure_text_width(&plain);
                if taken > 0 && taken + 1 + length > width {
                    self.push_line(&take(&mut line));
                    taken = 0;
                }
                if taken > 0 {
                    line.push(' ');
                    taken += 1;
                }
                taken += length;
                line.extend(
                    word.iter()
                        .map(|(text, style)| style.apply_to(text).to_string()),
                );
            }
            self.push_line(&line);
        }
    }

    /// How many columns there are beside the prefixes.
    fn width(&self) -> usize {
        let prefixes = self.prefixes.iter();
        let taken: usize = prefixes.map(|(_, rest)| measure_text_width(rest)).sum();
        self.columns.saturating_sub(taken).max(NARROWEST)
    }

    fn push_line(&mut self, line: &str) {
        let mut prefix = String::new();
        for (first, rest) in &mut self.prefixes {
            prefix.push_str(first);
            first.clone_from(rest);
        }
        let line = format!("{prefix}{line}");
        self.out.push(line.trim_end().to_owned());
    }
}

/// How a piece of code looks; code of which no pieces are known is of no class.
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

/// A word as one or, where it is too long for a line, as several.
fn broken(word: Word, width: usize) -> Vec<Word> {
    let length: usize = word.iter().map(|(text, _)| measure_text_width(text)).sum();
    if length <= width {
        return vec![word];
    }
    let pieces = word.into_iter().flat_map(|(text, style)| {
        let pieces = wrapped(&text, width).into_iter();
        pieces.map(move |piece| vec![(piece, style.clone())])
    });
    pieces.collect()
}

#[cfg(test)]
mod tests;
