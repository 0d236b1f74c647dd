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
use crate::ui::tui::streaming::MarkdownBlock;
use crate::ui::tui::theme;

/// Lines that are shown of what the user has sent.
const SENT: usize = 40;
/// Lines that are shown of anything that is unfolded.
const UNFOLDED: usize = 2000;

/// The conditions that lines depend on besides the item.
#[derive(Clone, Copy)]
pub struct ItemLook<'l> {
    /// The number of columns.
    pub width: usize,
    /// The colours of code.
    pub code: &'l CodeColors,
    /// True if all of it is shown.
    pub is_unfolded: bool,
}

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
    Agent(MarkdownBlock),
    /// A block of its thoughts.
    Thought(MarkdownBlock),
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
            (_, Self::Agent(block) | Self::Thought(block)) => block.continues,
            _ => false,
        }
    }

    /// Its lines.
    pub fn lines(&self, look: ItemLook<'_>) -> Vec<Line<'static>> {
        let width = look.width;
        let limit = |folded| if look.is_unfolded { UNFOLDED } else { folded };
        let painter = Look {
            width,
            is_styled: true,
            folding: if look.is_unfolded {
                Folding::Unfolded
            } else {
                Folding::Folded
            },
        };
        match self {
            Self::User { shown, text } => {
                let text = if look.is_unfolded { text } else { shown };
                let bold = theme::PLAIN.add_modifier(Modifier::BOLD);
                let lines = fitted(text, width.saturating_sub(2), limit(SENT)).into_iter();
                let lines = lines.enumerate().map(|(at, line)| {
                    let sign = if at == 0 { "> " } else { "  " };
                    Line::from(vec![
                        Span::styled(sign, theme::ACCENT),
                        Span::styled(line, bold),
                    ])
                });
                lines.collect()
            }
            Self::Agent(block) => {
                let code = |language: &str, code: &str| look.code.of(language, code);
                rendered(&block.text, width, true, &code)
            }
            Self::Thought(block) => {
                let style = theme::DIM.add_modifier(Modifier::ITALIC);
                painter.behind("  ", &block.text, usize::MAX, style)
            }
            Self::Tool(tool) => painter.tool(tool),
            Self::Warning(text) => {
                let text = format!("warning: {text}");
                painter.behind("", &text, limit(SENT), Style::new().yellow())
            }
            Self::Event(shown) => painter.shown(shown),
        }
    }
}

/// The first line of some text in at most `width` columns.
pub fn first_line(text: &str, width: usize) -> String {
    let line = wrapped(&one_line(text), width.max(1));
    line.into_iter().next().unwrap_or_default()
}
