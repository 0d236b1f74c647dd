//! Dialogs with the user: permission for something, a choice from a list, a line of text. Pure.
//!
//! Guarantees that nothing is allowed but by its own key: neither Enter nor a paste answers a question. Nothing of what
//! is shown is obeyed by the terminal, and of a secret nothing is shown but its length.

mod question;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Widget as _};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

use self::question::QuestionDialog;
use super::theme;
use super::{FromScreen, Menu};
use crate::record::question::{Question, Verdict};
use crate::sys::text::printable;

/// The hint on how to close a dialog, shown in each.
const CANCEL: &str = "Press Esc to cancel";
/// The number of rows and columns its border takes.
const BORDER: u16 = 2;

/// The user's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum DialogAction {
    /// To a question.
    Answered(Verdict),
    /// To a menu.
    Chosen(Option<usize>),
    /// A line, as it was typed.
    Typed(Option<String>),
}

impl From<DialogAction> for FromScreen {
    fn from(action: DialogAction) -> Self {
        match action {
            DialogAction::Answered(verdict) => Self::Answered(verdict),
            DialogAction::Chosen(item) => Self::Chosen(item),
            DialogAction::Typed(line) => Self::Typed(line),
        }
    }
}

/// Something that the user is asked.
#[derive(Debug)]
pub struct Dialog(Kind);

#[derive(Debug)]
enum Kind {
    Question(QuestionDialog),
    Menu(MenuDialog),
    Line(LineDialog),
}

impl Dialog {
    /// Asks whether something is allowed; `preview` is what it would change.
    #[must_use]
    pub fn question(question: Question, preview: Option<&str>) -> Self {
        Self(Kind::Question(QuestionDialog::new(question, preview)))
    }

    /// Asks which of a list.
    #[must_use]
    pub fn menu(menu: Menu) -> Self {
        let (at, typed) = (
            menu.at.min(menu.items.len().saturating_sub(1)),
            String::new(),
        );
        Self(Kind::Menu(MenuDialog { menu, at, typed }))
    }

    /// Asks for a line; what is typed is not shown if it is a secret.
    #[must_use]
    pub fn line(prompt: String, is_secret: bool) -> Self {
        let line = TypedLine {
            text: String::new(),
            is_secret,
        };
        Self(Kind::Line(LineDialog { prompt, line }))
    }

    /// Returns the number of rows it wants at this width.
    #[must_use]
    pub fn height(&self, width: u16) -> u16 {
        let rows = match &self.0 {
            Kind::Question(question) => question.height(inner_width(width)),
            // What is typed, the items, and what closes it.
            Kind::Menu(menu) => menu.menu.items.len() + 2,
            Kind::Line(_) => 2,
        };
        u16::try_from(rows)
            .unwrap_or(u16::MAX)
            .saturating_add(BORDER)
    }

    /// Draws it.
    pub fn render(&self, area: Rect, buf: &mut Buffer) {
        let title = match &self.0 {
            Kind::Question(question) => question.title(),
            Kind::Menu(menu) => printable(&menu.menu.title, &[]),
            Kind::Line(line) => printable(&line.prompt, &[]),
        };
        let block = Block::bordered().border_style(theme::BORDER);
        let inner = block.inner(area);
        let mut below = <[String; 2]>::default();
        match &self.0 {
            Kind::Question(question) => {
                question.render(inner, buf);
                below = question.border(inner.width.into());
            }
            Kind::Menu(menu) => menu.render(inner, buf),
            Kind::Line(line) => line.render(inner, buf),
        }
        let block = block
            .title(format!(" {title} "))
            .title_style(theme::HEADING);
        let [left, right] = below.map(Line::from);
        let block = block.title_bottom(left).title_bottom(right.right_aligned());
        block.render(area, buf);
    }

    /// Takes a key; what the user has answered by it.
    pub fn key(&mut self, key: KeyEvent) -> Option<DialogAction> {
        match &mut self.0 {
            Kind::Question(question) => question.key(key).map(DialogAction::Answered),
            Kind::Menu(menu) => menu.key(key),
            Kind::Line(line) => line.key(key),
        }
    }

    /// Returns whether a key is a letter that may answer a question.
    #[must_use]
    pub fn is_letter(&self, key: KeyEvent) -> bool {
        matches!(&self.0, Kind::Question(question) if question.is_letter(key))
    }

    /// Takes what was pasted into a line that is being typed; whether there was one.
    pub fn paste(&mut self, text: &str) -> bool {
        match &mut self.0 {
            Kind::Question(question) => return question.paste(text),
            Kind::Menu(menu) => menu.typed(text),
            Kind::Line(line) => line.line.paste(text),
        }
        true
    }

    /// Scrolls what would be changed by so many rows, up where they are negative.
    pub fn scroll(&mut self, rows: i32) {
        if let Kind::Question(question) = &mut self.0 {
            question.scroll(rows);
        }
    }
}

fn inner_width(width: u16) -> usize {
    usize::from(width.saturating_sub(BORDER)).max(1)
}

/// Writes a line of a dialog, where it has that row.
fn put(buf: &mut Buffer, area: Rect, row: usize, text: &str, style: Style) {
    let row = u16::try_from(row).unwrap_or(u16::MAX);
    if row < area.height {
        let text = printable(text, &[]);
        buf.set_stringn(area.x, area.y + row, text, area.width.into(), style);
    }
}

/// A line that is being typed.
#[derive(Debug, Default)]
struct TypedLine {
    text: String,
    is_secret: bool,
}

impl TypedLine {
    /// Takes a key; whether the line is done.
    fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return true,
            KeyCode::Backspace => {
                self.text.pop();
            }
            KeyCode::Char('h') if control => {
                self.text.pop();
            }
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.text.push(c);
            }
            _ => {}
        }
        false
    }

    /// A line ends where its newline is.
    fn paste(&mut self, text: &str) {
        self.text.push_str(text.lines().next().unwrap_or_default());
    }

    /// Draws its end, with a cursor behind it.
    fn render(&self, area: Rect, row: usize, buf: &mut Buffer) {
        let shown = if self.is_secret {
            "•".repeat(self.text.chars().count())
        } else {
            printable(&self.text, &[])
        };
        let room = usize::from(area.width).saturating_sub(3);
        let mut columns = 0;
        let fitting = shown.grapheme_indices(true).rev().take_while(|(_, one)| {
            columns += one.width();
            columns <= room
        });
        let rest = &shown[fitting.last().map_or(shown.len(), |(at, _)| at)..];
        put(buf, area, row, &format!("> {rest}"), theme::PLAIN);
        let row = u16::try_from(row).unwrap_or(u16::MAX);
        let column = u16::try_from(rest.width() + 2).unwrap_or(u16::MAX);
        if row < area.height && column < area.width {
            buf.set_string(area.x + column, area.y + row, " ", theme::SELECTED);
        }
    }
}

/// A line that is asked for.
#[derive(Debug)]
struct LineDialog {
    prompt: String,
    line: TypedLine,
}

impl LineDialog {
    fn key(&mut self, key: KeyEvent) -> Option<DialogAction> {
        if is_cancel(key) {
            return Some(DialogAction::Typed(None));
        }
        let is_done = self.line.key(key) && !self.line.text.trim().is_empty();
        is_done.then(|| DialogAction::Typed(Some(std::mem::take(&mut self.line.text))))
    }

    fn render(&self, area: Rect, buf: &mut Buffer) {
        self.line.render(area, 0, buf);
        put(buf, area, 1, CANCEL, theme::DIM);
    }
}

/// Returns whether a key closes a dialog.
pub(super) fn is_cancel(key: KeyEvent) -> bool {
    let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
    key.code == KeyCode::Esc || is_ctrl_c
}

/// A list of which one is chosen.
#[derive(Debug)]
struct MenuDialog {
    menu: Menu,
    /// The one that is marked, among those that match.
    at: usize,
    /// The text that the items are to match.
    typed: String,
}

impl MenuDialog {
    /// The items that match what was typed, in their order.
    fn matching(&self) -> Vec<usize> {
        let all = 0..self.menu.items.len();
        if self.typed.is_empty() {
            return all.collect();
        }
        let (case, letters) = (CaseMatching::Ignore, Normalization::Smart);
        let pattern = Pattern::new(&self.typed, case, letters, AtomKind::Fuzzy);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut matches = |at: &usize| {
            let (name, note) = &self.menu.items[*at];
            !pattern
                .match_list([format!("{name} {note}")], &mut matcher)
                .is_empty()
        };
        all.filter(|at| matches(at)).collect()
    }

    fn typed(&mut self, text: &str) {
        self.typed.push_str(text.lines().next().unwrap_or_default());
        self.at = 0;
    }

    fn key(&mut self, key: KeyEvent) -> Option<DialogAction> {
        if is_cancel(key) {
            return Some(DialogAction::Chosen(None));
        }
        let matching = self.matching();
        let last = matching.len().saturating_sub(1);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => {
                let item = matching.get(self.at).copied();
                return item.map(|item| DialogAction::Chosen(Some(item)));
            }
            KeyCode::Up => self.at = self.at.checked_sub(1).unwrap_or(last),
            KeyCode::Char('p') if control => self.at = self.at.checked_sub(1).unwrap_or(last),
            KeyCode::Down => self.at = if self.at < last { self.at + 1 } else { 0 },
            KeyCode::Char('n') if control => self.at = if self.at < last { self.at + 1 } else { 0 },
            KeyCode::PageUp => self.at = self.at.saturating_sub(10),
            KeyCode::PageDown => self.at = (self.at + 10).min(last),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = last,
            KeyCode::Backspace => {
                self.typed.pop();
                self.at = 0;
            }
            KeyCode::Char(c) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.typed(c.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
        None
    }

    fn render(&self, area: Rect, buf: &mut Buffer) {
        let matching = self.matching();
        let filter = match self.typed.as_str() {
            "" => "type to filter".to_owned(),
            typed => format!("filter: {typed}"),
        };
        let head = if matching.is_empty() {
            format!("{filter}  (nothing matches)")
        } else {
            filter
        };
        let rows = usize::from(area.height);
        // What Enter would choose goes before what the keys do.
        let top = usize::from(rows > 2);
        if top > 0 {
            put(buf, area, 0, &head, theme::DIM);
        }
        let room = rows - 2 * top;
        let first = (self.at + 1).saturating_sub(room);
        let names = self.menu.items.iter().map(|(name, _)| name.width()).max();
        let column = names.unwrap_or_default() + 2;
        for (row, (nth, item)) in matching
            .iter()
            .enumerate()
            .skip(first)
            .take(room)
            .enumerate()
        {
            let (name, note) = &self.menu.items[*item];
            let is_marked = nth == self.at;
            let sign = if is_marked { "> " } else { "  " };
            let style = if is_marked {
                theme::SELECTED
            } else {
                theme::PLAIN
            };
            put(buf, area, row + top, &format!("{sign}{name}"), style);
            let beside = u16::try_from(column + 2).unwrap_or(u16::MAX);
            if beside < area.width {
                let right = Rect {
                    x: area.x + beside,
                    width: area.width - beside,
                    ..area
                };
                put(buf, right, row + top, note, theme::DIM);
            }
        }
        if top > 0 {
            let keys = format!("Enter chooses | {CANCEL}");
            put(buf, area, rows - 1, &keys, theme::DIM);
        }
    }
}

#[cfg(test)]
mod tests;
