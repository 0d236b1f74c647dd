//! One thing in the transcript, and the lines that it becomes. Pure.
//!
//! Guarantees that nothing of what others wrote reaches the terminal as anything but text.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::ui::blocks::{fitted, one_line, wrapped};
use crate::ui::markdown::rendered;
use crate::ui::present::{Shown, ToolUse};
use crate::ui::steps::{Folding, Look};
use crate::ui::tui::code_colors::CodeColors;
use crate::ui::tui::theme;

/// Lines that are shown of what the user has sent.
const SENT: usize = 40;
/// Something in the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemBody {
    /// A message by the user.
    User {
        /// The visible form of the message.
        shown: String,
        /// All of it.
        text: String,
    },
    /// A block of the agent's message.
    Agent(String),
    /// A part of its thoughts.
    Thought {
        /// The text.
        text: String,
        /// True if it goes on with the part before, so that nothing stands between them.
        continues: bool,
    },
    /// A tool that it uses, or has used.
    Tool(Box<ToolUse>),
    /// A warning for the user.
    Warning(String),
    /// Something else that has happened.
    Event(Box<Shown>),
}

impl ItemBody {
    /// Returns whether it goes on with the one before, so that nothing stands between them.
    pub fn continues(&self, before: &Self) -> bool {
        match (before, self) {
            (Self::Tool(_), Self::Tool(_)) => true,
            (_, Self::Thought { continues, .. }) => *continues,
            _ => false,
        }
    }

    /// Its lines.
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

/// The first line of some text in at most `width` columns.
pub fn first_line(text: &str, width: usize) -> String {
    let line = wrapped(&one_line(text), width.max(1));
    line.into_iter().next().unwrap_or_default()
}
