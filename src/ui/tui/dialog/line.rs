//! The lines of a dialog: printed ones, and the text field. Pure.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use crate::sys::text::printable;
use crate::ui::tui::keys::is_letter;
use crate::ui::tui::theme;

/// The hint on closing a dialog, shown in each.
pub const CANCEL: &str = "Press Esc to cancel";
/// Returns whether a key closes a dialog.
pub fn is_cancel(key: KeyEvent) -> bool {
    let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
    key.code == KeyCode::Esc || is_ctrl_c
}

/// Prints a line of a dialog, if the row is within the area.
pub fn put(buf: &mut Buffer, area: Rect, row: usize, text: &str, style: Style) {
    let row = u16::try_from(row).unwrap_or(u16::MAX);
    if row < area.height {
        let text = printable(text, &[]);
        buf.set_stringn(area.x, area.y + row, text, area.width.into(), style);
    }
}

/// A text field of one line.
#[derive(Debug, Default)]
pub struct TypedLine {
    /// The text so far.
    pub text: String,
    /// True if the text is shown only by its length.
    pub is_secret: bool,
}

impl TypedLine {
    /// Handles a key. Returns `true` when the line is complete.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return true,
            KeyCode::Backspace => drop(self.text.pop()),
            KeyCode::Char('h') if control => drop(self.text.pop()),
            KeyCode::Char('u') if control => self.text.clear(),
            KeyCode::Char(c) if is_letter(key) => self.text.push(c),
            _ => {}
        }
        false
    }

    /// Inserts the first line of a paste.
    pub fn paste(&mut self, text: &str) {
        self.text.push_str(text.lines().next().unwrap_or_default());
    }

    /// Draws the end of the text, with the cursor after it.
    pub fn render(&self, area: Rect, row: usize, buf: &mut Buffer) {
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
