//! Dialogs with the user: a permission, a choice from a list, a line of text. Pure.
//!
//! Guarantees that only its own key grants a permission: neither Enter without a preceding arrow key nor a paste
//! answers a question. Nothing shown controls the terminal, and only the length of a secret is shown.

mod question;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Widget as _};

use crossterm::event::{KeyCode, KeyEvent};
use nucleo_matcher::pattern::CaseMatching;
use nucleo_matcher::{Config, Matcher};

use self::question::QuestionDialog;
use super::completion::pattern;
use super::keys::{is_cancel, is_letter, moved};
use super::list::{self, ANSWERS, CANCEL, SENDS, put};
use super::{FromScreen, Menu, theme};
use crate::record::question::{Answer, Question, Verdict};
use crate::sys::text::{printable, text_width};
use crate::ui::blocks::wrapped;

/// The number of rows or columns taken by the border.
const BORDER: u16 = 2;
/// A dialog that asks the user something.
#[derive(Debug)]
pub enum Dialog {
    /// A question of permission.
    Question(Box<QuestionDialog>),
    /// A choice from a list.
    Menu(MenuDialog),
    /// A line, which is typed in the input, after this prompt; true if it is a secret.
    Line(String, bool),
}

impl Dialog {
    /// Creates a dialog that asks for a permission; `preview` is the proposed change.
    pub fn question(question: Question, preview: Option<&str>) -> Self {
        Self::Question(Box::new(QuestionDialog::new(question, preview)))
    }

    /// Creates a dialog that offers a choice from a list.
    pub fn menu(menu: Menu) -> Self {
        let at = menu.at.min(menu.items.len().saturating_sub(1));
        let typed = String::new();
        Self::Menu(MenuDialog { menu, at, typed })
    }

    /// Returns whether the answer is the text in the input.
    pub fn wants_text(&self) -> bool {
        match self {
            Self::Question(question) => question.is_redirecting,
            Self::Menu(_) => false,
            Self::Line(..) => true,
        }
    }

    /// Returns the answer for a text from the input.
    pub fn typed(&self, text: String) -> FromScreen {
        match self {
            Self::Line(..) => FromScreen::Typed(Some(text)),
            Self::Question(_) | Self::Menu(_) => FromScreen::Answered(Verdict {
                answer: Answer::Instead(text),
                is_for_good: false,
            }),
        }
    }

    /// Returns the number of rows needed at this width.
    pub fn height(&self, width: u16) -> u16 {
        let rows = match self {
            Self::Question(question) => question.height(inner_width(width)),
            // The filter, the items, and the hint on closing.
            Self::Menu(menu) => menu.menu.items.len() + 2,
            Self::Line(prompt, _) => 1 + below_title(prompt, width).len(),
        };
        u16::try_from(rows)
            .unwrap_or(u16::MAX)
            .saturating_add(BORDER)
    }

    /// Draws the dialog.
    pub fn render(&self, area: Rect, buf: &mut Buffer) {
        let title = match self {
            Self::Question(question) => question.title(inner_width(area.width)),
            Self::Menu(menu) => printable(&menu.menu.title, &[]),
            Self::Line(prompt, _) if below_title(prompt, area.width).is_empty() => {
                printable(prompt, &[])
            }
            Self::Line(..) => "Question".to_owned(),
        };
        let block = Block::bordered().border_style(theme::BORDER);
        let inner = block.inner(area);
        let mut below = <[String; 2]>::default();
        match self {
            Self::Question(question) => {
                question.render(inner, buf);
                below = question.border(inner.width.into());
            }
            Self::Menu(menu) => menu.render(inner, buf),
            Self::Line(prompt, is_secret) => {
                let keys = if *is_secret { SENDS } else { ANSWERS };
                let lines = below_title(prompt, area.width);
                for (row, line) in lines.iter().enumerate() {
                    put(buf, inner, row, line, theme::HEADING);
                }
                put(buf, inner, lines.len(), keys, theme::DIM);
            }
        }
        let [left, right] = below.map(Line::from);
        block
            .title(format!(" {title} "))
            .title_style(theme::HEADING)
            .title_bottom(left)
            .title_bottom(right.right_aligned())
            .render(area, buf);
    }

    /// Handles a key. Returns the user's answer, if the key gives one.
    pub fn key(&mut self, key: KeyEvent) -> Option<FromScreen> {
        match self {
            Self::Question(question) => question.key(key).map(FromScreen::Answered),
            Self::Menu(menu) => menu.key(key),
            Self::Line(..) => is_cancel(key).then_some(FromScreen::Typed(None)),
        }
    }

    /// Returns whether a key is a letter that answers a question.
    pub fn is_letter(&self, key: KeyEvent) -> bool {
        matches!(self, Self::Question(question) if question.is_letter(key))
    }

    /// Returns whether a key types text into the draft next to a question.
    pub fn leaves(&self, key: KeyEvent, has_draft: bool) -> bool {
        let is_text = match key.code {
            KeyCode::Char(c) if !has_draft => c != ' ' && is_letter(key) && !self.is_letter(key),
            KeyCode::Char(_) => !is_cancel(key),
            KeyCode::Backspace | KeyCode::Delete | KeyCode::Tab => has_draft,
            _ => false,
        };
        is_text && self.is_beside_draft()
    }

    /// Returns whether the keys for pages scroll the transcript.
    pub fn leaves_pages(&self) -> bool {
        self.is_beside_draft() && !matches!(self, Self::Question(_))
            || matches!(self, Self::Line(..))
    }

    /// Returns whether the user goes on typing their draft while the dialog is open.
    fn is_beside_draft(&self) -> bool {
        match self {
            Self::Question(_) => true,
            Self::Menu(dialog) => dialog.menu.is_unasked,
            Self::Line(..) => false,
        }
    }

    /// Returns whether only a letter can answer: no answer is selected.
    pub fn awaits_letter(&self) -> bool {
        matches!(self, Self::Question(question) if question.awaits_letter())
    }

    /// Returns whether a key clears the draft next to a question.
    pub fn clears_draft(&self, key: KeyEvent) -> bool {
        is_cancel(key) && key.code != KeyCode::Esc && self.is_beside_draft()
    }

    /// Inserts a paste into the filter of a menu. Returns `false` if there is none.
    pub fn paste(&mut self, text: &str) -> bool {
        match self {
            Self::Menu(dialog) if !dialog.menu.is_unasked => dialog.typed(text),
            _ => return false,
        }
        true
    }

    /// Scrolls the proposed change by this many rows, up if negative.
    pub fn scroll(&mut self, rows: i32) {
        if let Self::Question(question) = self {
            question.scroll(rows);
        }
    }
}

/// Returns the lines of a prompt that is too long for the title.
fn below_title(prompt: &str, width: u16) -> Vec<String> {
    let columns = inner_width(width);
    let prompt = printable(prompt, &[]);
    if text_width(&prompt) + 2 > columns {
        wrapped(&prompt, columns)
    } else {
        Vec::new()
    }
}

fn inner_width(width: u16) -> usize {
    usize::from(width.saturating_sub(BORDER)).max(1)
}

/// A dialog with a list to choose from.
#[derive(Debug)]
pub struct MenuDialog {
    menu: Menu,
    /// The index of the selected item among the matching ones.
    at: usize,
    /// The filter typed by the user.
    typed: String,
}

impl MenuDialog {
    /// Returns the items that match the filter, in order.
    fn matching(&self) -> Vec<usize> {
        let all = 0..self.menu.items.len();
        if self.typed.is_empty() {
            return all.collect();
        }
        let pattern = pattern(&self.typed, CaseMatching::Ignore);
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

    fn key(&mut self, key: KeyEvent) -> Option<FromScreen> {
        if is_cancel(key) {
            return Some(FromScreen::Chosen(None));
        }
        let matching = self.matching();
        let last = matching.len().saturating_sub(1);
        if let Some(at) = moved(key, self.at, matching.len()) {
            self.at = at;
            return None;
        }
        // Other keys belong to a draft that the user may be typing.
        if self.menu.is_unasked && key != KeyEvent::from(KeyCode::Enter) {
            return None;
        }
        match key.code {
            KeyCode::Enter => {
                let item = matching.get(self.at).copied();
                return item.map(|item| FromScreen::Chosen(Some(item)));
            }
            KeyCode::PageUp => self.at = self.at.saturating_sub(10),
            KeyCode::PageDown => self.at = (self.at + 10).min(last),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = last,
            KeyCode::Backspace => {
                self.typed.pop();
                self.at = 0;
            }
            KeyCode::Char(c) if is_letter(key) => self.typed(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        None
    }

    fn render(&self, area: Rect, buf: &mut Buffer) {
        let matching = self.matching();
        let mut head = match self.typed.as_str() {
            "" if self.menu.is_unasked => String::new(),
            "" => "type to filter".to_owned(),
            typed => format!("filter: {typed}"),
        };
        if matching.is_empty() {
            head += "  (nothing matches)";
        }
        let rows = usize::from(area.height);
        // The selected item takes precedence over the hints.
        let top = usize::from(rows > 2);
        if top > 0 {
            put(buf, area, 0, &head, theme::DIM);
        }
        let found = matching.iter().map(|item| &self.menu.items[*item]);
        let items: Vec<_> = found.map(|(name, note)| (&**name, &**note)).collect();
        let inset = u16::try_from(top).unwrap_or_default();
        let list = Rect {
            y: area.y + inset,
            height: area.height - 2 * inset,
            ..area
        };
        list::render(&items, self.at, "> ", list, buf);
        if top > 0 {
            let keys = format!("Enter chooses | {CANCEL}");
            put(buf, area, rows - 1, &keys, theme::DIM);
        }
    }
}

#[cfg(test)]
mod tests;
