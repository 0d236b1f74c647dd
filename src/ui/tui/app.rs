//! The state of the screen, and what keys and messages make of it. Pure: what is to be done outside comes back as
//! [`ScreenEffect`]s.

use super::FromScreen;

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
    /// What is in the input is to be edited in the user's editor.
    Editor,
    /// The screen is over.
    Leave,
    /// All of the screen is to be drawn anew.
    Redraw,
}
