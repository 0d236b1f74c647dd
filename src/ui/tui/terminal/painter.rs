//! Converts frames to bytes: the changes since the last frame, in a synchronized update.
//!
//! Queries nothing from the terminal, and writes nothing itself. Guarantees that an unchanged frame produces no
//! bytes, that the cursor is not seen moving about, and that no remnants of earlier frames stay even if the
//! terminal disagrees with this program about a character's width.

use std::collections::BTreeSet;
use std::io;

use crossterm::QueueableCommand as _;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr as _;

/// Returns whether terminals disagree on the width of a cell: it has several characters, or is half of a flag.
fn is_disputed(cell: &Cell) -> bool {
    let mut chars = cell.symbol().chars();
    let first = chars.next();
    chars.next().is_some() || matches!(first, Some('\u{1f1e6}'..='\u{1f1ff}'))
}

fn has_disputed(buf: &Buffer, y: u16) -> bool {
    (0..buf.area.width).any(|x| is_disputed(&buf[(x, y)]))
}

/// Returns whether a cell looks the same as one of a cleared line.
fn is_blank(cell: &Cell) -> bool {
    let is_plain =
        cell.bg == Color::Reset && (cell.modifier - Modifier::DIM - Modifier::BOLD).is_empty();
    cell.symbol() == " " && is_plain
}

/// Draws a whole line, moving to each word and leaving the gaps cleared.
fn draw_line(bytes: &mut Vec<u8>, buf: &Buffer, y: u16) -> io::Result<()> {
    bytes
        .queue(MoveTo(0, y))?
        .queue(Clear(ClearType::UntilNewLine))?;
    let mut bytes = CrosstermBackend::new(bytes);
    let mut word = Vec::new();
    let mut x = 0;
    while x < buf.area.width {
        let cell = &buf[(x, y)];
        if is_blank(cell) {
            // Even without cells, crossterm would write colours.
            if !word.is_empty() {
                bytes.draw(std::mem::take(&mut word).into_iter())?;
            }
        } else {
            // Use consecutive columns, so that crossterm does not move the cursor within a word but leaves
            // it where the terminal put it.
            let next = word.last().map_or(x, |(last, ..)| last + 1);
            word.push((next, y, cell));
        }
        x += u16::try_from(cell.symbol().width().max(1)).unwrap_or(1);
    }
    bytes.draw(word.into_iter())
}

/// Draws what differs between two frames.
fn draw_changes(bytes: &mut Vec<u8>, shown: &Buffer, next: &Buffer) -> io::Result<()> {
    let mut changes = shown.diff(next);
    let mut disputed: BTreeSet<u16> = changes.iter().map(|(_, y, _)| *y).collect();
    disputed.retain(|y| has_disputed(shown, *y) || has_disputed(next, *y));
    changes.retain(|(_, y, _)| !disputed.contains(y));
    if !changes.is_empty() {
        CrosstermBackend::new(&mut *bytes).draw(changes.into_iter())?;
    }
    disputed
        .into_iter()
        .try_for_each(|y| draw_line(bytes, next, y))
}

/// A converter of frames to bytes.
#[derive(Default)]
pub struct Painter {
    /// The frame on the terminal; `None` if that is not known.
    shown: Option<Buffer>,
    /// The cursor's position on the terminal; `None` if it is hidden.
    cursor: Option<Position>,
}

impl Painter {
    /// Discards the known content, so that the next frame is drawn in full.
    pub fn forget(&mut self) {
        self.shown = None;
    }

    /// Returns the bytes that make a terminal of this size show what `draw` draws, with the cursor where it says; empty
    /// if it already does.
    ///
    /// # Errors
    /// None are known, since it only writes to memory.
    pub fn frame(
        &mut self,
        size: Size,
        draw: impl FnOnce(&mut Buffer) -> Option<Position>,
    ) -> io::Result<Vec<u8>> {
        let area = Rect::from((Position::ORIGIN, size));
        let mut next = Buffer::empty(area);
        let cursor = draw(&mut next);
        let mut changes = Vec::new();
        let known = self.shown.take().filter(|shown| shown.area == area);
        if known.is_none() {
            changes.queue(Clear(ClearType::All))?;
        }
        let known = known.unwrap_or_else(|| Buffer::empty(area));
        draw_changes(&mut changes, &known, &next)?;
        self.shown = Some(next);
        let is_moved = std::mem::replace(&mut self.cursor, cursor) != cursor;
        if changes.is_empty() && !is_moved {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::with_capacity(changes.len() + 64);
        bytes.queue(BeginSynchronizedUpdate)?.queue(Hide)?;
        bytes.append(&mut changes);
        if let Some(Position { x, y }) = cursor {
            bytes.queue(MoveTo(x, y))?.queue(Show)?;
        }
        bytes.queue(EndSynchronizedUpdate)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::text::Line;
    use ratatui::widgets::Widget as _;
    use std::num::NonZero;

    const LINES: [&str; 9] = [
        "A தமிழ் நான் বাংলা ಕನ್ನಡ",
        "b",
        "မြန်မာ ကြ x",
        "🇪🇸🇫🇷 flags |",
        "हिन्दी नी",
        "plain text, of some length",
        "❤️ 👍🏽 👩‍💻 é",
        "你好 e\u{301}",
        "",
    ];

    /// Returns the lines of a terminal that receives frames with these first lines of `tops`.
    fn shown(tops: &[usize]) -> Vec<String> {
        let mut painter = Painter::default();
        let size = |length| NonZero::new(length).unwrap();
        let mut terminal = vt100::Parser::new(size(5), size(30), 0);
        for top in tops {
            let frame = painter.frame(Size::new(30, 5), |buf| {
                for (nth, row) in buf.area.rows().enumerate() {
                    let line = LINES[(top + nth) % LINES.len()];
                    Line::raw(line).render(row, buf);
                }
                None
            });
            terminal.process(&frame.unwrap());
        }
        let lines = terminal.screen().rows(0, 30);
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn a_frame_looks_the_same_whatever_stood_there_before() {
        for top in 0..LINES.len() {
            let alone = shown(&[top]);
            for before in 0..LINES.len() {
                for first in 0..LINES.len() {
                    let tops = [first, before, top];
                    assert_eq!(shown(&tops), alone, "{tops:?}");
                }
            }
        }
    }
}
