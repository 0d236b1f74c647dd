//! The state of the screen, and what keys and messages make of it. Pure: what is to be done outside comes back as
//! [`ScreenEffect`]s, and time comes as an argument.

use std::time::Duration;

use crossterm::event::KeyEvent;
use ratatui::Frame;

use super::composer::Composer;
use super::theme::Theme;
use super::{FromScreen, ToScreen};
use crate::record::mode::SharedMode;

/// What the loop of the terminal has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum ScreenEffect {
    /// The engine is to be told this.
    Send(FromScreen),
    /// What the engine does is to end: the interrupt is raised.
    Stop,
    /// This text is to be in the terminal's clipboard.
    Copy(String),
    /// This text is to be read in the user's pager.
    Page(String),
    /// This text is to be edited in the user's editor; what becomes of it goes to [`App::edited`].
    Editor(String),
    /// The screen is over: the terminal is given back, and this is written there.
    Leave {
        /// What stands on the normal screen then.
        farewell: String,
    },
    /// All of the screen is to be drawn anew.
    Redraw,
}

/// The state of the screen.
pub struct App {
    theme: Theme,
    mode: SharedMode,
    composer: Composer,
}

impl App {
    /// One that shows nothing yet.
    #[must_use]
    pub fn new(theme: Theme, mode: SharedMode, composer: Composer) -> Self {
        Self {
            theme,
            mode,
            composer,
        }
    }

    /// Takes what the engine tells.
    pub fn tell(&mut self, _message: ToScreen, _now: Duration) -> Vec<ScreenEffect> {
        Vec::new()
    }

    /// Takes a key.
    pub fn key(&mut self, _key: KeyEvent, _now: Duration) -> Vec<ScreenEffect> {
        Vec::new()
    }

    /// Takes what was pasted.
    pub fn paste(&mut self, _text: &str) {}

    /// Takes what the wheel does: so many lines up, where they are negative.
    pub fn wheel(&mut self, _lines: i32) {}

    /// Takes what the user's editor has made of the text.
    pub fn edited(&mut self, _text: &str) {}

    /// Says something to the user for a while, as why something cannot be done.
    pub fn hint(&mut self, _text: &str, _now: Duration) {}

    /// Time has passed; whether anything looks different now, through this or what was taken since it was drawn last.
    pub fn tick(&mut self, _now: Duration) -> bool {
        false
    }

    /// How long until [`Self::tick`] is due, if nothing else happens; `None`: not at all.
    #[must_use]
    pub fn next_tick(&self, _now: Duration) -> Option<Duration> {
        None
    }

    /// Whether something stands in the input: a question that comes now interrupts somebody.
    #[must_use]
    pub fn is_typing(&self) -> bool {
        !self.composer.is_empty()
    }

    /// Takes what was typed or pasted before the question that stands there was seen: it goes into the input.
    pub fn typed_ahead(&mut self, text: &str) {
        self.composer.paste(text);
    }

    /// Draws all of it.
    pub fn draw(&mut self, _frame: &mut Frame<'_>) {}
}
