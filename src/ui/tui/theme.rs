//! The styles of the screen, named by meaning. Pure.
//!
//! Guarantees that everything is distinguishable without colours: by bold, dim, underlined and reversed text.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Normal text.
pub const PLAIN: Style = Style::new();
/// Secondary text.
pub const DIM: Style = PLAIN.add_modifier(Modifier::DIM);
/// Text that should catch the eye: the prompt, names.
pub const ACCENT: Style = PLAIN.fg(Color::Cyan);
/// Success, and lines added by a change.
pub const SUCCESS: Style = PLAIN.fg(Color::Green);
/// Warnings, and text that needs attention.
pub const WARNING: Style = PLAIN.fg(Color::Yellow);
/// Errors, and lines removed by a change.
pub const ERROR: Style = PLAIN.fg(Color::Red);
/// Headings, titles and labels.
pub const HEADING: Style = PLAIN.add_modifier(Modifier::BOLD);
/// Borders of boxes.
pub const BORDER: Style = PLAIN.fg(Color::DarkGray);
/// The selected item of a list.
pub const SELECTED: Style = PLAIN.add_modifier(Modifier::REVERSED);

/// Removes the colours from a drawn screen, for users who want none. Within `text`, code is underlined instead,
/// to distinguish it from prose.
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
