//! An item of the transcript, and its layout as lines. Pure.
//!
//! Guarantees that untrusted text reaches the terminal only as text.

use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use crate::ui::blocks::{fitted, one_line, wrapped};
use crate::ui::markdown::rendered;
use crate::ui::steps::{Folding, Look};
use crate::ui::tui::code_colors::CodeColors;
use crate::ui::tui::{Entry, theme};

/// The maximum number of lines shown of a user's message.
const SENT: usize = 40;
/// The maximum width of text.
pub(super) const COLUMNS: usize = 100;

impl Entry {
    /// Returns whether it continues the previous item, without a blank line between.
    pub(super) fn continues(&self, before: &Self) -> bool {
        match (before, self) {
            (Self::Tool(_), Self::Tool(_)) => true,
            (_, Self::Thought { continues, .. }) => *continues,
            _ => false,
        }
    }

    /// Returns the lines of the item.
    pub(in crate::ui) fn lines(&self, look: Look, code: &CodeColors) -> Vec<Line<'static>> {
        // Wider text is hard to read; commands, changes and output take the whole screen.
        let whole = look;
        let width = look.width.min(COLUMNS);
        let look = Look { width, ..look };
        match self {
            Self::User { shown, text } => {
                let is_whole = look.folding == Folding::Unfolded;
                let text = if is_whole { text } else { shown };
                let bold = theme::PLAIN.add_modifier(Modifier::BOLD);
                let lines = fitted(text, width.saturating_sub(2), look.limit(SENT)).into_iter();
                let rows = lines.enumerate().map(|(at, line)| {
                    let sign = if at == 0 { "> " } else { "  " };
                    Line::from(vec![
                        Span::styled(sign, theme::ACCENT),
                        Span::styled(line, bold),
                    ])
                });
                rows.collect()
            }
            Self::Agent(text) => {
                let colors = |language: &str, text: &str| code.of(language, text);
                rendered(text, width, true, Some(&colors))
            }
            Self::Thought { text, .. } => {
                let style = theme::DIM.add_modifier(Modifier::ITALIC);
                look.behind("  ", text, usize::MAX, style)
            }
            Self::Tool(tool) => whole.tool(tool),
            Self::Event(shown) => look.shown(shown),
        }
    }
}

/// Returns the first line of a text, wrapped to `width` columns.
pub fn first_line(text: &str, width: usize) -> String {
    let line = wrapped(&one_line(text), width.max(1));
    line.into_iter().next().unwrap_or_default()
}
