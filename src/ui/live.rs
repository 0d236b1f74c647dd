//! Lines at the bottom of a terminal that are drawn again and again.
//!
//! Touches stderr, which must be a terminal. Texts are printed unchanged: callers must remove keys and anything that
//! moves the cursor.

use std::io;

use super::paint::{COLUMNS, columns};
use super::stderr;
use crate::sys::text::truncated;

/// Lines that show the state of long-running work.
#[derive(Debug)]
pub struct LiveLines {
    is_live: bool,
    drawn: usize,
}

impl LiveLines {
    /// Creates lines that are only drawn if someone is watching.
    pub fn new(is_live: bool) -> Self {
        Self { is_live, drawn: 0 }
    }

    /// Returns `true` if the lines are drawn.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Draws the lines in place of the earlier ones, each cut to the terminal's width.
    pub fn draw(&mut self, lines: &[String]) {
        if !self.is_live {
            return;
        }
        let room = columns(io::stderr()).unwrap_or(COLUMNS).saturating_sub(1);
        let mut text = self.back();
        for line in lines {
            text += &format!("{}\x1b[K\r\n", truncated(line, room));
        }
        stderr::print(&format!("{text}\x1b[J"));
        self.drawn = lines.len();
    }

    /// Removes the lines, so that something else can be printed there.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            stderr::print(&format!("{}\x1b[J", self.back()));
            self.drawn = 0;
        }
    }

    /// Moves the cursor to the first line.
    fn back(&self) -> String {
        match self.drawn {
            0 => "\r".to_owned(),
            drawn => format!("\r\x1b[{drawn}A"),
        }
    }
}
