//! Lays out an agent's work for a terminal or the screen: a line per tool, edits as diffs, answers as rendered
//! Markdown. Pure.
//!
//! Guarantees that untrusted text does not move the cursor, that lines fit the width, and that everything
//! except the answers of the agent and of its auditor is bounded.

use std::mem::take;

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::blocks::{fitted, limited, one_line, visible};
use super::change::{CONTEXT, broken, numbered};
use super::columns::folded;
use super::markdown::rendered;
use super::paint::diff_style;
use super::present::{Part, Shown, ToolUse, asked, present, task_style};
use crate::record::event::Event;
use crate::record::tasks::Task;
use crate::sys::excerpt::text::FOLLOWED;
use crate::sys::numbers::counted;
use crate::sys::text::{text_width, truncated};

/// The maximum number of lines of a model's text other than its answer.
const PROSE: usize = 12;
/// The maximum number of lines of other text.
const OTHER_TEXT: usize = 48;
/// The maximum number of lines of an edit, and of tasks in a list.
const DIFF: usize = 40;
/// The maximum number of lines of a command's output.
const PRINTED: usize = 5;
/// The maximum number of lines of a failed command's output.
const PRINTED_OF_FAILURE: usize = 15;
/// The maximum number of lines of a tool's error that can be unfolded.
const FAILURE: usize = 3;
/// The maximum number of lines of a subject that does not fit after its verb.
const SUBJECT: usize = 6;
/// The maximum number of lines of unfolded text.
const UNFOLDED: usize = 2000;
/// The indentation of text below a headline.
const INDENT: &str = "    ";
/// The additional indentation of a diff's continuation lines.
pub(super) const HANG: usize = 2;
/// The indentation of the agent's text.
const PROSE_INDENT: &str = "  ";

/// The available width, and the amount of text to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// The number of usable columns.
    pub width: usize,
    /// True if lines are shown in their styles.
    pub is_styled: bool,
    /// The amount of text shown.
    pub folding: Folding,
}

/// The amount of a tool's output that is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Folding {
    /// Everything that cannot be unfolded later.
    Fixed,
    /// The most important part; the rest can be unfolded.
    #[default]
    Folded,
    /// The whole output.
    Unfolded,
}

impl Look {
    /// Returns the layout for a terminal of this many columns. Leaves the last column free, where some terminals wrap.
    pub fn of_terminal(columns: usize, is_styled: bool) -> Self {
        Self {
            width: columns.saturating_sub(1).max(INDENT.len() * 2),
            is_styled,
            folding: Folding::Fixed,
        }
    }

    pub(super) fn limit(self, folded: usize) -> usize {
        match self.folding {
            Folding::Unfolded => UNFOLDED,
            _ => folded,
        }
    }

    /// Lays out untrusted text after an indentation, at most `limit` lines.
    pub fn behind(
        self,
        indent: &'static str,
        text: &str,
        limit: usize,
        style: Style,
    ) -> Vec<Line<'static>> {
        let lines = fitted(text, self.width.saturating_sub(indent.len()), limit);
        let shown = lines.into_iter().map(|line| match line.as_str() {
            "" => Line::default(),
            _ => Line::from(vec![Span::raw(indent), Span::styled(line, style)]),
        });
        shown.collect()
    }

    /// Lays out the last lines of a command's output.
    fn output(self, printed: &str, limit: usize) -> Vec<Line<'static>> {
        let lines: Vec<&str> = printed.trim_end().lines().collect();
        let hidden = lines.len().saturating_sub(limit);
        let width = self.width.saturating_sub(INDENT.len());
        // Only the screen can show them later.
        let can_be_unfolded = self.folding == Folding::Folded;
        let more = (hidden > 0 && can_be_unfolded).then(|| {
            // Of a longer output, this may be the end.
            more_lines((printed.len() < FOLLOWED / 2).then_some(hidden), INDENT)
        });
        let shown = lines[hidden..]
            .iter()
            .map(|line| match visible(line).lines().last() {
                // Leave out text that a progress bar has overwritten.
                Some(line) if !line.is_empty() => {
                    let line = truncated(line, width).into_owned();
                    indented(INDENT, Span::styled(line, Style::new().dim()).into())
                }
                _ => Line::default(),
            });
        more.into_iter().chain(shown).collect()
    }

    /// Lays out a change in the same way as the question about it.
    fn change(self, diff: &str) -> Vec<Line<'static>> {
        let columns = self.width.saturating_sub(INDENT.len()).max(1);
        let context = CONTEXT[usize::from(self.folding != Folding::Unfolded)];
        let lines = numbered(diff, context).into_iter();
        let rows = lines.flat_map(|(line, style)| {
            let pieces = broken(&line, columns, HANG).into_iter();
            pieces.map(move |piece| Line::styled(format!("{INDENT}{piece}"), style))
        });
        bounded(rows.collect(), self.limit(DIFF), INDENT)
    }

    /// Lays out the hunks of a diff in git's colours; includes the headers if there is no limit.
    pub(super) fn diff(self, diff: &str, limit: usize) -> Vec<Line<'static>> {
        let all = limit == usize::MAX;
        let lines = diff
            .lines()
            .skip_while(|line| !all && !line.starts_with("@@"));
        let indent = if all { "" } else { INDENT };
        let columns = self.width.saturating_sub(indent.len()).max(1);
        let rows = lines.flat_map(|line| {
            let style = diff_style(line, !all);
            let text = folded(&one_line(line), Some(columns), HANG);
            let row = |row: &str| indented(indent, Span::styled(row.to_owned(), style).into());
            text.split('\n').map(row).collect::<Vec<_>>()
        });
        bounded(rows.collect(), limit, indent)
    }

    /// Wraps a line, and indents continuation lines by `hang`.
    fn folded(self, line: &str, hang: usize, style: Style) -> Vec<Line<'static>> {
        let text = folded(&one_line(line), Some(self.width.max(1)), hang);
        let row = |row: &str| Line::styled(row.to_owned(), style);
        text.split('\n').map(row).collect()
    }

    /// Lays out an event other than a tool call.
    pub(super) fn shown(self, shown: &Shown) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        let mut before = "";
        match (shown.sign, &*shown.verb) {
            _ if shown.is_title_spared => {}
            _ if shown.is_error => before = "error: ",
            ("", verb) => {
                let text = format!("{verb} {}", shown.subject);
                lines.extend(self.behind("", text.trim_start(), OTHER_TEXT, shown.style));
            }
            (sign, verb) => {
                let text = format!("{sign} {verb} {}", shown.subject);
                lines.push(Line::styled(text.trim_end().to_owned(), shown.style));
            }
        }
        let is_done = shown.verb == "Done";
        let (indent, limit) = match shown.sign {
            "" if is_done || !before.is_empty() => ("", OTHER_TEXT),
            "?" => (INDENT, PROSE),
            _ => (PROSE_INDENT, PROSE),
        };
        for (at, part) in shown.body.iter().enumerate() {
            match part {
                Part::Text(text, style) => {
                    let text = format!("{}{text}", take(&mut before));
                    lines.extend(self.behind(indent, &text, limit, *style));
                }
                Part::Markdown(text) => {
                    let width = self.width.saturating_sub(indent.len());
                    let block = rendered(text, width, self.is_styled, None).into_iter();
                    // A blank line sets an answer apart.
                    lines.extend(is_done.then(Line::default));
                    lines.extend(block.map(|line| indented(indent, line)));
                    lines.extend(is_done.then(Line::default));
                }
                Part::Diff(diff) => lines.extend(self.diff(diff, usize::MAX)),
                // Not shortened: a question may be about this output.
                Part::Output(text) => {
                    let folded = |line| self.folded(line, 0, Style::new());
                    lines.extend(text.lines().flat_map(folded));
                }
                Part::Task(_) if at == DIFF => {
                    let more = counted((shown.body.len() - at) as u64, "more task");
                    lines.push(Line::raw(format!("  … {more} …")));
                }
                Part::Task(_) if at > DIFF => {}
                Part::Task(task) => {
                    let style = task_style(task.status);
                    lines.extend(self.folded(&format!("  {task}"), HANG, style));
                }
            }
        }
        lines
    }

    /// Lays out a tool call: a headline and, below it, the subject if it does not fit there, then the changes
    /// or output.
    pub(super) fn tool(self, tool: &ToolUse) -> Vec<Line<'static>> {
        let Some(shown) = tool.shown() else {
            return Vec::new();
        };
        let end = tool.result.as_ref();
        let aside = match truncated(&one_line(&shown.aside), self.width / 2) {
            aside if aside.is_empty() => String::new(),
            aside => format!(" ({aside})"),
        };
        let verb = one_line(&shown.verb);
        let around = text_width(&format!("{} {verb} {aside}", shown.sign));
        // For an imperative, the question has already shown every character.
        let line = if tool.is_order {
            shown.subject.clone()
        } else {
            visible(&shown.subject)
        };
        let subject = line.trim();
        let has_room = !subject.contains('\n') && around + text_width(subject) <= self.width;
        let mut headline = vec![
            Span::styled(shown.sign, shown.style),
            Span::raw(" "),
            Span::styled(verb, Style::new().bold()),
        ];
        if has_room && !subject.is_empty() {
            headline.push(Span::raw(format!(" {subject}")));
        }
        headline.push(Span::styled(aside, Style::new().dim()));
        let mut lines = vec![Line::from(headline)];
        if !has_room {
            let limit = if tool.is_asked {
                UNFOLDED
            } else {
                self.limit(SUBJECT)
            };
            let (text, dim) = (shown.subject.trim(), Style::new().dim());
            if tool.is_order {
                let columns = self.width.saturating_sub(INDENT.len()).max(1);
                let rows = limited(broken(text, columns, 0), limit).into_iter();
                lines.extend(rows.map(|line| Line::styled(format!("{INDENT}{line}"), dim)));
            } else {
                lines.extend(self.behind(INDENT, text, limit, dim));
            }
        }
        let failure = match self.folding {
            Folding::Fixed => PRINTED_OF_FAILURE,
            Folding::Folded => FAILURE,
            Folding::Unfolded => UNFOLDED,
        };
        if self.folding == Folding::Unfolded
            && let Some(end) = end.filter(|end| !end.is_error() && tool.diff.is_empty())
        {
            lines.extend(self.behind(INDENT, &end.text, UNFOLDED, Style::new().dim()));
            return lines;
        }
        let is_fixed = self.folding == Folding::Fixed;
        let printed = match end {
            Some(end) if end.command.is_failure() && is_fixed => PRINTED_OF_FAILURE,
            _ => PRINTED,
        };
        for part in &shown.body {
            lines.extend(match part {
                Part::Text(text, style) => self.behind(INDENT, text, failure, *style),
                Part::Diff(diff) if tool.is_order => self.change(diff),
                Part::Diff(diff) => self.diff(diff, self.limit(DIFF)),
                Part::Output(text) => self.output(text, printed),
                Part::Markdown(_) | Part::Task(_) => Vec::new(),
            });
        }
        lines
    }
}

/// Leaves out the lines beyond a limit, and says so.
fn bounded(mut lines: Vec<Line<'static>>, limit: usize, indent: &str) -> Vec<Line<'static>> {
    if let Some(more) = lines.len().checked_sub(limit).filter(|more| *more > 0) {
        lines.truncate(limit);
        lines.push(more_lines(Some(more), indent));
    }
    lines
}

/// Says how many lines are left out, if that is known.
fn more_lines(count: Option<usize>, indent: &str) -> Line<'static> {
    let more = count.map_or("earlier lines".to_owned(), |count| {
        counted(count as u64, "more line")
    });
    Line::styled(format!("{indent}… {more} …"), Style::new().dim())
}

/// Indents a line.
pub(super) fn indented(indent: impl Into<Span<'static>>, mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, indent.into());
    line
}

/// The agent's work shown so far on a terminal.
#[derive(Debug, Default)]
pub(super) struct Steps {
    tasks: Vec<Task>,
    /// The running tool.
    tool: ToolUse,
    /// True if the tool talks to the user, who sees the conversation directly.
    asks: bool,
}

impl Steps {
    /// Returns the lines for an event; empty if there is nothing to show.
    pub fn lines(&mut self, event: &Event, look: Look) -> Vec<Line<'static>> {
        match event {
            Event::Tasks(tasks) if *tasks == self.tasks => return Vec::new(),
            Event::Tasks(tasks) => self.tasks.clone_from(tasks),
            Event::Tool {
                name,
                verb,
                subject,
                asks,
                ..
            } => {
                self.asks = *asks;
                self.tool = ToolUse::new(name, *verb, subject);
                let question = asks.then(|| look.shown(&asked(subject)));
                return question.unwrap_or_default();
            }
            Event::Changed { diff } => {
                self.tool.diff.clone_from(diff);
                return Vec::new();
            }
            Event::Printed(text) => {
                self.tool.printed.clone_from(text);
                return Vec::new();
            }
            Event::ToolResult { end, is_end, .. } => {
                let mut tool = take(&mut self.tool);
                // The end and the question are shown separately.
                if *is_end || self.asks && !end.failed {
                    return Vec::new();
                }
                tool.result = Some(end.clone());
                return look.tool(&tool);
            }
            _ => {}
        }
        present(event).map_or_else(Vec::new, |shown| look.shown(&shown))
    }

    /// Returns the activity of the running tool: `Running cargo test`.
    pub fn doing(&self, look: Look) -> String {
        // Leave room for the time and the tool's output.
        truncated(&one_line(&self.tool.doing()), look.width / 2).into_owned()
    }

    /// Returns the last line that the running tool has printed.
    pub fn printing(&self, look: Look) -> String {
        let mut lines = self.tool.printed.lines();
        let last = lines.rfind(|line| !line.trim().is_empty());
        let shown = visible(last.unwrap_or_default());
        let end = shown.lines().last().unwrap_or_default();
        truncated(&one_line(end), look.width).into_owned()
    }
}

#[cfg(test)]
mod tests;
