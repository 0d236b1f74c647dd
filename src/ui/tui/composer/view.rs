//! Draws the input: the text after its prompt sign, and above it the completions of the word at the cursor.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::Composer;
use crate::sys::text::printable;
use crate::ui::tui::buffer::{placeholder, row_of, shown};
use crate::ui::tui::completion::Completion;
use crate::ui::tui::history::is_secret;
use crate::ui::tui::{list, theme};

/// The maximum number of rows of text shown.
const MOST_ROWS: usize = 10;
/// The maximum number of candidates shown.
const MOST_CANDIDATES: usize = 16;
/// The width of the prompt sign and the space after it.
const SIGN: u16 = 2;
/// The character shown in place of a hidden one.
const HIDDEN: &str = "•";
/// The hint in an empty input.
const HINT: &str = "Ask for something, or / for commands";

impl Composer {
    /// Returns the number of rows needed at this width.
    pub fn height(&self, width: u16) -> u16 {
        if self.search.is_some() {
            return 2;
        }
        let columns = columns(width);
        self.columns.set(Some(columns));
        let rows = self.rows(columns, &self.labels()).len().min(MOST_ROWS);
        let candidates = self.candidates().len().min(MOST_CANDIDATES);
        u16::try_from(rows + candidates).unwrap_or(u16::MAX)
    }

    /// Draws the input and returns the cursor's position.
    pub fn render(&self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        if area.is_empty() {
            return None;
        }
        if let Some(search) = &self.search {
            let label = match search.at {
                None if !search.wanted.is_empty() => "no such entry: ",
                _ => "search: ",
            };
            let line = printable(&format!("{label}{}", search.wanted), &[]);
            let (x, _) = buf.set_stringn(area.x, area.y, &line, area.width.into(), theme::ACCENT);
            let found = search.at.and_then(|at| self.recall.entry(at));
            if let Some(found) = found.filter(|_| area.height > 1) {
                let found = printable(&search.seen(found, area.width.into()), &[]);
                buf.set_stringn(area.x, area.y + 1, found, area.width.into(), theme::PLAIN);
            }
            let x = x.min(area.right().saturating_sub(1));
            return Some(Position { x, y: area.y });
        }
        let labels = self.labels();
        let rows = self.rows(columns(area.width), &labels);
        let candidates = self.candidates();
        // The text takes precedence over the candidates.
        let text_rows = rows.len().min(MOST_ROWS).min(area.height.into());
        let room = usize::from(area.height) - text_rows;
        let listed = candidates.len().min(MOST_CANDIDATES).min(room);
        self.draw_candidates(&candidates, listed, area, buf);

        let top = area.y + u16::try_from(listed).unwrap_or_default();
        let cursor = self.buffer.cursor();
        let at = row_of(&rows, cursor);
        let first = (at + 1).saturating_sub(text_rows);
        let text = self.buffer.text();
        let (sign, style) = if text.starts_with('!') {
            ("!", theme::WARNING)
        } else {
            (">", theme::ACCENT)
        };
        buf.set_stringn(area.x, top, sign, area.width.into(), style);
        if text.is_empty() && self.aside.is_none() {
            let room = usize::from(area.width.saturating_sub(SIGN));
            buf.set_stringn(area.x + SIGN.min(area.width), top, HINT, room, theme::DIM);
        }
        // Hide a key, and anything that may become one.
        let secret = || is_secret(text).then(|| secret_start(text));
        let hidden = self.is_masked.then_some(0).or_else(secret);
        let mut position = Position {
            x: area.x + SIGN,
            y: top,
        };
        for (nth, row) in rows.iter().enumerate().skip(first).take(text_rows) {
            let y = top + u16::try_from(nth - first).unwrap_or_default();
            let mut x = area.x + SIGN;
            for (start, grapheme) in text[row.clone()].grapheme_indices(true) {
                let start = row.start + start;
                if start == cursor {
                    position = Position { x, y };
                }
                if x >= area.right() {
                    break;
                }
                let is_hidden = hidden.is_some_and(|from| start >= from);
                let piece = if is_hidden {
                    Cow::Borrowed(HIDDEN)
                } else {
                    shown(grapheme, &labels)
                };
                let style = match placeholder(grapheme) {
                    Some(_) => theme::ACCENT,
                    None => theme::PLAIN,
                };
                let room = usize::from(area.right() - x);
                (x, _) = buf.set_stringn(x, y, piece, room, style);
            }
            if cursor == row.end && nth == at {
                position = Position { x, y };
            }
        }
        position.x = position.x.min(area.right().saturating_sub(1));
        Some(position)
    }

    fn draw_candidates(&self, all: &[Completion], listed: usize, area: Rect, buf: &mut Buffer) {
        if listed == 0 {
            return;
        }
        let marked = self.marked.min(all.len().saturating_sub(1));
        let items = all.iter().map(|one| (&*one.text, &*one.note));
        let rows = Rect {
            height: u16::try_from(listed).unwrap_or_default(),
            ..area
        };
        let first = list::render(&items.collect::<Vec<_>>(), marked, "  ", rows, buf);
        if listed < all.len() {
            let position = format!(" {}-{} of {} ↑↓", first + 1, first + listed, all.len());
            let width = u16::try_from(position.width()).unwrap_or(u16::MAX);
            let x = area.right().saturating_sub(width).max(area.x);
            let row = area.y + u16::try_from(listed - 1).unwrap_or_default();
            let room = usize::from(area.right() - x);
            buf.set_stringn(x, row, position, room, theme::DIM);
        }
    }
}

/// Returns the width of the text; the last column is left for the cursor.
fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(SIGN + 1)).max(1)
}

/// Returns the start of the arguments after a command.
fn secret_start(text: &str) -> usize {
    let command = text
        .trim_start()
        .trim_start_matches(|c: char| !c.is_whitespace());
    text.len() - command.trim_start().len()
}
