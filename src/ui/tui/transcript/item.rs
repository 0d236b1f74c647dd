//! One thing in the transcript, and the lines that it becomes. Pure.
//!
//! Guarantees that nothing of what others wrote reaches the terminal as anything but text.

use std::time::Duration;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use crate::record::event::Event;
use crate::record::tool::CommandEnd;
use crate::sys::numbers::counted;
use crate::ui::blocks::{fitted, one_line, wrapped};
use crate::ui::steps::{Look, Steps, diff_lines, last_lines, sums};
use crate::ui::tui::code_colors::CodeColors;
use crate::ui::tui::markdown::{self, MarkdownBlock, styled};
use crate::ui::tui::theme::Theme;

/// How many lines of what a command prints are shown while it runs, and of one that has failed.
const PRINTED: usize = 5;
/// How many lines are shown of what a call is about, where it is too long to stand behind its name.
const SUBJECT: usize = 6;
/// How many lines of a failure are shown.
const FAILURE: usize = 3;
/// How many lines of a change are shown.
const DIFF: usize = 40;
/// How many lines of what the user has sent are shown.
const SENT: usize = 40;
/// How many lines of anything are shown when it is unfolded.
const UNFOLDED: usize = 2000;
/// What stands before what belongs to the line above.
const INDENT: &str = "    ";
/// A tool that took longer says how long.
const LONG: Duration = Duration::from_secs(2);

/// What lines depend on besides the item.
#[derive(Clone, Copy)]
pub struct ItemLook<'l> {
    /// How many columns there are.
    pub width: usize,
    /// The styles.
    pub theme: &'l Theme,
    /// The colours of code.
    pub code: &'l CodeColors,
    /// Whether all of it is shown.
    pub is_unfolded: bool,
}

/// Something in the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum ItemBody {
    /// What the user has sent.
    User {
        /// What is shown of it.
        shown: String,
        /// All of it.
        text: String,
    },
    /// What the agent says, a block of it.
    Agent(MarkdownBlock),
    /// What it thinks, a part of it.
    Thought(MarkdownBlock),
    /// A tool that it uses, or has used.
    Tool(Box<ShownTool>),
    /// What the user should look at.
    Warning(String),
    /// Something else that has happened, as the console tells it.
    Event(Box<Event>),
}

/// The use of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownTool {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub subject: String,
    /// The end of what it has printed.
    pub printed: String,
    /// What it has changed.
    pub diff: String,
    /// What came of it; `None`: it is at work.
    pub result: Option<ToolEnd>,
}

/// What came of the use of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolEnd {
    /// What the model is told.
    pub text: String,
    /// The same in a few words.
    pub brief: Option<String>,
    /// Whether it came to nothing.
    pub failed: bool,
    /// How the command came out that it ran.
    pub command: CommandEnd,
    /// How long it took.
    pub took: Duration,
}

impl ItemBody {
    /// Whether it goes on with the one before, so that nothing stands between them.
    pub fn continues(&self, before: &Self) -> bool {
        match (before, self) {
            (Self::Tool(_), Self::Tool(_)) => true,
            (_, Self::Agent(block) | Self::Thought(block)) => block.continues,
            _ => false,
        }
    }

    /// Its lines.
    pub fn lines(&self, look: ItemLook<'_>) -> Vec<Line<'static>> {
        let ItemLook { width, theme, .. } = look;
        let limit = |folded| if look.is_unfolded { UNFOLDED } else { folded };
        match self {
            Self::User { shown, text } => {
                let text = if look.is_unfolded { text } else { shown };
                let bold = theme.plain.add_modifier(Modifier::BOLD);
                let lines = fitted(text, width.saturating_sub(2), limit(SENT)).into_iter();
                let lines = lines.enumerate().map(|(at, line)| {
                    let sign = if at == 0 { "> " } else { "  " };
                    Line::from(vec![
                        Span::styled(sign, theme.accent),
                        Span::styled(line, bold),
                    ])
                });
                lines.collect()
            }
            Self::Agent(block) => {
                let code = |language: &str, code: &str| look.code.of(language, code);
                markdown::lines(&block.text, width, theme, &code)
            }
            Self::Thought(block) => {
                let style = theme.dim.add_modifier(Modifier::ITALIC);
                behind("  ", &block.text, width, usize::MAX, style)
            }
            Self::Tool(tool) => tool.lines(look),
            Self::Warning(text) => {
                let text = format!("warning: {text}");
                behind("", &text, width, limit(SENT), theme.warning)
            }
            Self::Event(event) => {
                let lines = Steps::default().lines(event, console_look(width));
                lines.iter().map(|line| styled(line, theme)).collect()
            }
        }
    }
}

impl ShownTool {
    fn lines(&self, look: ItemLook<'_>) -> Vec<Line<'static>> {
        let ItemLook { width, theme, .. } = look;
        let (headline, is_whole) = self.headline(look);
        let mut lines = vec![headline];
        let console = console_look(width);
        let limit = |folded| if look.is_unfolded { UNFOLDED } else { folded };
        if !is_whole {
            let subject = behind(
                INDENT,
                self.subject.trim(),
                width,
                limit(SUBJECT),
                theme.dim,
            );
            lines.extend(subject);
        }
        let printed = |lines: &mut Vec<Line<'static>>| {
            let printed = last_lines(&self.printed, PRINTED, console);
            lines.extend(printed.iter().map(|line| styled(line, theme)));
        };
        match &self.result {
            None => printed(&mut lines),
            Some(end) if end.failed => {
                let failure = behind(INDENT, &end.text, width, limit(FAILURE), theme.error);
                lines.extend(failure);
            }
            Some(_) if !self.diff.is_empty() => {
                let diff = diff_lines(&self.diff, limit(DIFF), console);
                lines.extend(diff.iter().map(|line| styled(line, theme)));
            }
            Some(end) if look.is_unfolded => {
                lines.extend(behind(INDENT, &end.text, width, UNFOLDED, theme.dim));
            }
            Some(_) if self.has_failed() => printed(&mut lines),
            Some(_) => {}
        }
        lines
    }

    fn has_failed(&self) -> bool {
        self.result
            .as_ref()
            .is_some_and(|end| end.failed || end.command.is_failure())
    }

    /// `● read_file src/x.rs — 575 lines`, and whether there was room for what it is about: else it stands below.
    fn headline(&self, look: ItemLook<'_>) -> (Line<'static>, bool) {
        let theme = look.theme;
        let (sign, style) = match &self.result {
            None => ("○", theme.warning),
            Some(_) if self.has_failed() => ("✗", theme.error),
            Some(_) => ("●", theme.success),
        };
        let name = one_line(&self.name);
        let aside = one_line(&self.aside());
        let aside = match aside.as_str() {
            "" => aside,
            aside => format!(" — {aside}"),
        };
        let taken = Line::raw(format!("● {name} {aside}")).width();
        let subject = one_line(&self.subject);
        let subject = subject.trim();
        let has_room = taken + subject.width() <= look.width;
        let subject = if has_room && !subject.is_empty() {
            format!(" {subject}")
        } else {
            String::new()
        };
        let bold = theme.plain.add_modifier(Modifier::BOLD);
        let headline = Line::from(vec![
            Span::styled(format!("{sign} "), style),
            Span::styled(name, bold),
            Span::raw(subject),
            Span::styled(aside, theme.dim),
        ]);
        (headline, has_room)
    }

    /// What came of it, in a few words.
    fn aside(&self) -> String {
        let Some(end) = &self.result else {
            return String::new();
        };
        let mut aside: Vec<String> = Vec::new();
        if let Some(brief) = &end.brief {
            aside.push(brief.clone());
        } else if end.failed {
            aside.push("failed".to_owned());
        } else if self.diff.is_empty() && !end.text.trim().is_empty() {
            aside.push(counted(end.text.trim_end().lines().count() as u64, "line"));
        }
        if !self.diff.is_empty() {
            aside.push(sums(&self.diff));
        }
        if end.took >= LONG {
            aside.push(format!("{:.1}s", end.took.as_secs_f64()));
        }
        aside.join(", ")
    }
}

/// What the console's renderers are given; they leave the last column free.
fn console_look(width: usize) -> Look {
    Look {
        columns: width + 1,
        colors: true,
    }
}

/// Somebody's text behind an indentation, at most `limit` lines of it.
fn behind(
    indent: &'static str,
    text: &str,
    width: usize,
    limit: usize,
    style: Style,
) -> Vec<Line<'static>> {
    let lines = fitted(text, width.saturating_sub(indent.len()), limit).into_iter();
    let lines = lines.map(|line| Line::from(vec![Span::raw(indent), Span::styled(line, style)]));
    lines.collect()
}

/// The first line of some text in at most `width` columns.
pub fn first_line(text: &str, width: usize) -> String {
    let line = wrapped(&one_line(text), width.max(1));
    line.into_iter().next().unwrap_or_default()
}
