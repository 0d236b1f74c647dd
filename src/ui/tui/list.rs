//! Lines of a list or a dialog. Pure.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr as _;

use super::theme;
use crate::sys::text::printable;

/// The hint on closing a dialog, shown in each.
pub const CANCEL: &str = "Press Esc to cancel";
/// The hint of a dialog that waits for the text in the input.
pub const SENDS: &str = "Enter sends it | Press Esc to cancel";
/// The hint for an agent's question, after which the work continues even without an answer.
pub const ANSWERS: &str = "Enter sends it | Esc skips it";

/// Prints a line, if the row is within the area.
pub fn put(buf: &mut Buffer, area: Rect, row: usize, text: &str, style: Style) {
    let row = u16::try_from(row).unwrap_or(u16::MAX);
    if row < area.height {
        let text = printable(text, &[]);
        buf.set_stringn(area.x, area.y + row, text, area.width.into(), style);
    }
}

/// Draws names with notes next to them, as many as fit, always including the selected one, which follows `sign`.
/// Returns the index of the first.
pub fn render(
    items: &[(&str, &str)],
    at: usize,
    sign: &str,
    area: Rect,
    buf: &mut Buffer,
) -> usize {
    let first = (at + 1).saturating_sub(area.height.into());
    let widest = items.iter().map(|(name, _)| name.width()).max();
    let indent = widest.unwrap_or_default().min(usize::from(area.width) / 2) + 4;
    let column = u16::try_from(indent).unwrap_or(u16::MAX).min(area.width);
    let beside = Rect {
        x: area.x + column,
        width: area.width - column,
        ..area
    };
    for (row, (name, note)) in items[first.min(items.len())..].iter().enumerate() {
        let (sign, style) = if first + row == at {
            (sign, theme::SELECTED)
        } else {
            ("  ", theme::PLAIN)
        };
        put(buf, area, row, &format!("{sign}{name}"), style);
        if !note.is_empty() {
            put(buf, beside, row, note, theme::DIM);
        }
    }
    first
}
