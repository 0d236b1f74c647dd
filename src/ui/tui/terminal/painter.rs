//! Frames as bytes: what has changed since the last one, within a synchronized update.
//!
//! Asks the terminal nothing, and writes nothing itself. Guarantees that a frame that looks like the last one is no
//! byte, and that the cursor is not seen wandering.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use crossterm::QueueableCommand as _;
use crossterm::cursor::Hide;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Rect, Size};
use ratatui::{Frame, Terminal};

/// What is drawn, until somebody takes it.
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

/// A terminal of a known size that is written to later.
struct Drawing {
    bytes: CrosstermBackend<DrawnBytes>,
    size: Size,
    /// Whether anything but the cursor was drawn.
    has_cells: bool,
    /// Where the cursor is; `None`: it is hidden.
    cursor: Option<Position>,
}

impl Backend for Drawing {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut content = content.peekable();
        if content.peek().is_some() {
            self.has_cells = true;
            self.bytes.draw(content)?;
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.cursor = None;
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // The terminal is not asked: it would answer among the keys.
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
        self.bytes.clear_region(clear_type)
    }

    fn size(&self) -> io::Result<Size> {
        Ok(self.size)
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        let (columns_rows, pixels) = (self.size, Size::ZERO);
        Ok(WindowSize {
            columns_rows,
            pixels,
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
    /// Where the cursor is on the terminal itself.
    cursor: Option<Position>,
}

impl Painter {
    /// One for a terminal of this size, of which nothing is known.
    ///
    /// # Errors
    /// None that is known of.
    pub fn new(size: Size) -> io::Result<Self> {
        let bytes = DrawnBytes::default();
        let drawing = Drawing {
            bytes: CrosstermBackend::new(bytes.clone()),
            size,
            has_cells: false,
            cursor: None,
        };
        let terminal = Terminal::new(drawing)?;
        let cursor = None;
        Ok(Self {
            bytes,
            terminal,
            cursor,
        })
    }

    /// The terminal has this size now.
    pub fn resize(&mut self, size: Size) {
        self.terminal.backend_mut().size = size;
    }

    /// Forgets what stands there: the next frame is drawn as a whole.
    ///
    /// # Errors
    /// None that is known of.
    pub fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.backend().size;
        self.terminal.resize(Rect::from((Position::ORIGIN, size)))
    }

    /// The bytes that make the terminal show what `draw` draws; none where it does already.
    ///
    /// # Errors
    /// None that is known of.
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
            bytes.queue(crossterm::cursor::MoveTo(x, y))?;
            bytes.queue(crossterm::cursor::Show)?;
        }
        bytes.queue(EndSynchronizedUpdate)?;
        Ok(bytes)
    }
}
