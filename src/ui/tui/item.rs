//! An item of the transcript, and its layout as lines. Pure.
//!
//! Guarantees that untrusted text reaches the terminal only as text.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::ui::blocks::{fitted, one_line, wrapped};
use crate::ui::markdown::rendered;
use crate::ui::present::{Shown, ToolUse};
use crate::ui::steps::{Folding, Look};
use crate::ui::tui::code_colors::CodeColors;
use crate::ui::tui::theme;

/// The maximum number of lines shown of a user's message.
const SENT: usize = 40;
/// The content of an item.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemBody {
    /// A message from the user.
    User {
        /// The shortened form of the message.
        shown: String,
        /// The full text.
        text: String,
    },
    /// A block of the agent's message, in Markdown.
    Agent(String),
    /// A part of the agent's thoughts.
    Thought {
        /// The text.
        text: String,
        /// True if it continues the previous part, without a blank line between.
        continues: bool,
    },
    /// A tool call.
    Tool(Box<ToolUse>),
    /// A warning for the user.
    Warning(String),
    /// Any other event.
    Event(Box<Shown>),
}

impl ItemBody {
    /// Returns whether it continues the previous item, without a blank line between.
    pub fn continues(&self, before: &Self) -> bool {
        match (before, self) {
            (Self::Tool(_), Self::Tool(_)) => true,
            (_, Self::Thought { continues, .. }) => *continues,
            _ => false,
        }
    }

    /// Returns the lines of the item.
    pub(in crate::ui) fn lines(&self, look: Look, code: &CodeColors) -> Vec<Line<'static>> {
        let width = look.width;
        match self {
            Self::User { shown, text } => {
                let is_whole = look.folding == Folding::Unfolded;
                let text = if is_whole { text } else { shown };
                let bold = theme::PLAIN.add_modifier(Modifier::BOLD);
                let lines = fitted(text, width.saturating_sub(2), look.limit(SENT)).into_iter();
                let lines = lines.enumerate().map(|(at, line)| {
                    let sign = if at == 0 { "> " } else { "  " };
                    Line::from(vec![
                        Span::styled(sign, theme::ACCENT),
                        Span::styled(line, bold),
                    ])
                });
                lines.collect()
            }
            Self::Agent(text) => {
                let colors = |language: &str, text: &str| code.of(language, text);
                rendered(text, width, true, &colors)
            }
            Self::Thought { text, .. } => {
                let style = theme::DIM.add_modifier(Modifier::ITALIC);
                look.behind("  ", text, usize::MAX, style)
            }
            Self::Tool(tool) => look.tool(tool),
            Self::Warning(text) => {
                let text = format!("warning: {text}");
                look.behind("", &text, look.limit(SENT), Style::new().yellow())
            }
            Self::Event(shown) => look.shown(shown),
        }
    }
}

/// Returns the first line of a text, wrapped to `width` columns.
pub fn first_line(text: &str, width: usize) -> String {
    let line = wrapped(&one_line(text), width.max(1));
    line.into_iter().next().unwrap_or_default()
}
