//! Converts frames to bytes: the changes since the last frame, in a synchronized update.
//!
//! Queries nothing from the terminal, and writes nothing itself. Guarantees that an unchanged frame produces no
//! bytes, that the cursor is not seen moving about, and that no remnants of earlier frames stay even if the
//! terminal disagrees with this program about a character's width.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::rc::Rc;

use crossterm::QueueableCommand as _;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, EndSynchronizedUpdate};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::{Color, Modifier};
use ratatui::{Frame, Terminal};
use unicode_width::UnicodeWidthStr as _;

/// A buffer for drawn bytes.
#[derive(Clone, Default)]
struct DrawnBytes(Rc<RefCell<Vec<u8>>>);

impl Write for DrawnBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A terminal of known size whose output is buffered.
struct Drawing {
    bytes: CrosstermBackend<DrawnBytes>,
    size: Size,
    /// The drawn cells.
    cells: Buffer,
    /// True if anything but the cursor was drawn.
    has_cells: bool,
    /// The cursor's position; `None` if it is hidden.
    cursor: Option<Position>,
}

/// Returns whether terminals disagree on the width of a cell: it has several characters, or is half of a flag.
fn is_disputed(cell: &Cell) -> bool {
    let mut chars = cell.symbol().chars();
    let first = chars.next();
    chars.next().is_some() || matches!(first, Some('\u{1f1e6}'..='\u{1f1ff}'))
}

/// Returns whether a cell looks the same as one of a cleared line.
fn is_blank(cell: &Cell) -> bool {
    let is_plain =
        cell.bg == Color::Reset && (cell.modifier - Modifier::DIM - Modifier::BOLD).is_empty();
    cell.symbol() == " " && is_plain
}

impl Drawing {
    fn has_disputed(&self, y: u16) -> bool {
        (0..self.cells.area.width).any(|x| is_disputed(&self.cells[(x, y)]))
    }

    /// Draws a whole line, moving to each word and leaving the gaps cleared.
    fn draw_line(&mut self, y: u16) -> io::Result<()> {
        self.bytes.queue(MoveTo(0, y))?;
        self.bytes
            .queue(Clear(crossterm::terminal::ClearType::UntilNewLine))?;
        let mut word = Vec::new();
        let mut x = 0;
        while x < self.cells.area.width {
            let cell = &self.cells[(x, y)];
            if is_blank(cell) {
                // Even without cells, crossterm would write colours.
                if !word.is_empty() {
                    self.bytes.draw(std::mem::take(&mut word).into_iter())?;
                }
            } else {
                // Use consecutive columns, so that crossterm does not move the cursor within a word but leaves
                // it where the terminal put it.
                let next = word.last().map_or(x, |(last, ..)| last + 1);
                word.push((next, y, cell));
            }
            x += u16::try_from(cell.symbol().width().max(1)).unwrap_or(1);
        }
        self.bytes.draw(word.into_iter())
    }
}

impl Backend for Drawing {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut content: Vec<_> = content.collect();
        if content.is_empty() {
            return Ok(());
        }
        self.has_cells = true;
        if self.cells.area.as_size() != self.size {
            self.cells = Buffer::empty(Rect::from((Position::ORIGIN, self.size)));
        }
        let mut lines: BTreeSet<u16> = content.iter().map(|(_, y, _)| *y).collect();
        let mut disputed = lines.clone();
        disputed.retain(|y| self.has_disputed(*y));
        for (x, y, cell) in &content {
            self.cells[(*x, *y)] = (*cell).clone();
            // The cells behind a wide character are not sent.
            let width = u16::try_from(cell.symbol().width()).unwrap_or(1);
            for behind in x + 1..(x + width).min(self.size.width) {
                self.cells[(behind, *y)].reset();
            }
        }
        lines.retain(|y| self.has_disputed(*y));
        disputed.append(&mut lines);
        content.retain(|(_, y, _)| !disputed.contains(y));
        self.bytes.draw(content.into_iter())?;
        disputed.into_iter().try_for_each(|y| self.draw_line(y))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.cursor = None;
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // Do not query the terminal: its answer would arrive among the keys.
        Ok(self.cursor.unwrap_or_default())
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = Some(position.into());
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, clear_type: ClearType) -> io::Result<()> {
        self.has_cells = true;
        self.cells.reset();
        self.bytes.clear_region(clear_type)
    }

    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize {
            columns_rows: self.size,
            pixels: Size::ZERO,
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Draws frames.
pub struct Painter {
    bytes: DrawnBytes,
    terminal: Terminal<Drawing>,
    /// The cursor's position on the real terminal.
    cursor: Option<Position>,
}

impl Painter {
    /// Creates a painter for a terminal of this size and unknown content.
    ///
    /// # Errors
    /// None are known, since it only writes to memory.
    pub fn new(size: Size) -> io::Result<Self> {
        let bytes = DrawnBytes::default();
        let drawing = Drawing {
            bytes: CrosstermBackend::new(bytes.clone()),
            size,
            cells: Buffer::default(),
            has_cells: false,
            cursor: None,
        };
        Ok(Self {
            bytes,
            terminal: Terminal::new(drawing)?,
            cursor: None,
        })
    }

    /// Sets the terminal's size.
    pub fn resize(&mut self, size: Size) {
        self.terminal.backend_mut().size = size;
    }

    /// Discards the known content, so that the next frame is drawn in full.
    ///
    /// # Errors
    /// None are known, since it only writes to memory.
    pub fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.backend().size;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// Returns the bytes that make the terminal show what `draw` draws; empty if it already does.
    ///
    /// # Errors
    /// None are known, since it only writes to memory.
    pub fn frame(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<Vec<u8>> {
        self.terminal.backend_mut().cursor = None;
        self.terminal.draw(draw)?;
        let drawing = self.terminal.backend_mut();
        let cells = self.bytes.0.take();
        let (has_cells, cursor) = (std::mem::take(&mut drawing.has_cells), drawing.cursor);
        let is_moved = std::mem::replace(&mut self.cursor, cursor) != cursor;
        if !has_cells && !is_moved {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::with_capacity(cells.len() + 64);
        bytes.queue(BeginSynchronizedUpdate)?.queue(Hide)?;
        bytes.extend_from_slice(&cells);
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
        let mut painter = Painter::new(Size::new(30, 5)).unwrap();
        let size = |length| NonZero::new(length).unwrap();
        let mut terminal = vt100::Parser::new(size(5), size(30), 0);
        for top in tops {
            let frame = painter.frame(|frame| {
                for (nth, row) in frame.area().rows().enumerate() {
                    let line = LINES[(top + nth) % LINES.len()];
                    frame.render_widget(Line::raw(line), row);
                }
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
