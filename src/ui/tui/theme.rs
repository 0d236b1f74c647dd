//! The styles of the screen, by what they mean. Pure.
//!
//! Guarantees that without colours everything is still told apart: by bold, dim, underlined and reversed text.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Text.
pub const PLAIN: Style = Style::new();
/// Secondary text.
pub const DIM: Style = PLAIN.add_modifier(Modifier::DIM);
/// Text that should catch the eye: the prompt, names.
pub const ACCENT: Style = PLAIN.fg(Color::Cyan);
/// Success, and a line that a change adds.
pub const SUCCESS: Style = PLAIN.fg(Color::Green);
/// Warnings.
pub const WARNING: Style = PLAIN.fg(Color::Yellow);
/// Errors, and a line that a change takes away.
pub const ERROR: Style = PLAIN.fg(Color::Red);
/// A heading.
pub const HEADING: Style = PLAIN.add_modifier(Modifier::BOLD);
/// Lines around things.
pub const BORDER: Style = PLAIN.fg(Color::DarkGray);
/// The one of a list that is marked.
pub const SELECTED: Style = PLAIN.add_modifier(Modifier::REVERSED);

/// Takes the colours out of a drawn screen, for users who want none. In `text`, code is underlined in their place, which
/// is to be told from words.
pub fn take_colors_out(buf: &mut Buffer, text: Rect) {
    for position in buf.area.positions() {
        let cell = &mut buf[position];
        match cell.fg {
            Color::DarkGray => cell.modifier |= Modifier::DIM,
            Color::Cyan if text.contains(position) && !cell.modifier.contains(Modifier::BOLD) => {
                cell.modifier |= Modifier::UNDERLINED;
            }
            _ => {}
        }
        cell.fg = Color::Reset;
    }
}
