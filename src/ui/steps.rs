//! An agent's work at a terminal: a line for each tool, edits as diffs, what is said as rendered Markdown. Pure.
//!
//! Guarantees that nothing of what others wrote moves the cursor, that lines fit the terminal, and that all but the
//! agent's answer is bounded.

use std::mem::take;

use console::{Style, measure_text_width, truncate_str};

use super::agent::{awaited, connected, task_style};
use super::blocks::{fitted, one_line, visible};
use super::columns::folded;
use super::markdown;
use crate::record::event::Event;
use crate::record::tasks::Task;
use crate::record::tool::{CommandEnd, Verb};
use crate::sys::numbers::{counted, elapsed, grouped};

/// How many lines of what a model says beside its answer are shown.
const SAID: usize = 12;
/// How many lines of an edit are shown.
const DIFF: usize = 40;
/// How many lines of a command's output are shown when it has ended.
const PRINTED: usize = 5;
/// The same of a failure.
const PRINTED_OF_FAILURE: usize = 15;
/// What stands before what belongs to the line above.
const INDENT: &str = "    ";
/// How much further in a line of a diff goes on that does not fit.
pub(super) const HANG: usize = 2;
/// What stands before what the agent says.
const SAID_INDENT: &str = "  ";
/// What stands above what an auditor says.
const AUDIT_BEGINS: &str = "An independent audit begins.";
/// Where nobody says how wide the terminal is.
const COLUMNS: usize = 80;

/// How text may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// How many columns the terminal has.
    pub columns: usize,
    /// Whether colours may be used.
    pub colors: bool,
}

impl Look {
    /// The columns that are written to: in the last one, some terminals begin a new line.
    fn width(self) -> usize {
        let columns = if self.columns == 0 {
            COLUMNS
        } else {
            self.columns
        };
        columns.saturating_sub(1).max(INDENT.len() * 2)
    }

    fn paint(self, text: &str, style: Style) -> String {
        style.force_styling(self.colors).apply_to(text).to_string()
    }

    /// One line of somebody's text, cut where it does not fit.
    fn line(self, text: &str, style: Style) -> String {
        self.paint(&truncate_str(&one_line(text), self.width(), "…"), style)
    }

    /// Somebody's text below a line, at most `limit` lines of it.
    fn below(self, text: &str, limit: usize, style: &Style) -> Vec<String> {
        self.behind(INDENT, text, limit, style)
    }

    /// The same behind another indentation.
    fn behind(self, indent: &str, text: &str, limit: usize, style: &Style) -> Vec<String> {
        let lines = fitted(text, self.width() - indent.len(), limit).into_iter();
        let painted = lines.map(|line| match line.as_str() {
            "" => String::new(),
            line => format!("{indent}{}", self.paint(line, style.clone())),
        });
        painted.collect()
    }
}

/// What was shown so far of the work.
#[derive(Debug, Default)]
pub(super) struct Steps {
    tasks: Vec<Task>,
    /// What the tool that is under way has changed, as a diff.
    diff: String,
    /// What it has printed last.
    printed: String,
    /// What it is about.
    subject: String,
    /// What it does.
    verb: Verb,
}

impl Steps {
    /// The lines that tell of an event; none where there is nothing to be seen.
    pub fn lines(&mut self, event: &Event, look: Look) -> Vec<String> {
        let dim = Style::new().dim();
        match event {
            Event::Session { id, resumed } => {
                let state = if *resumed { "resumed" } else { "new session" };
                vec![look.line(&format!("session {id} ({state})"), dim)]
            }
            Event::Notice(text) | Event::Status(text) => {
                let lines = fitted(text, look.width(), SAID * 4).into_iter();
                lines.map(|line| look.paint(&line, dim.clone())).collect()
            }
            Event::Thoughts(text) | Event::Words(text) => {
                look.behind(SAID_INDENT, text, SAID, &dim)
            }
            Event::Tasks(tasks) => self.tasks(tasks, look),
            Event::Tool {
                subject,
                asks,
                verb,
                ..
            } => {
                *self = Self {
                    tasks: take(&mut self.tasks),
                    subject: subject.clone(),
                    verb: *verb,
                    ..Self::default()
                };
                let asked = asks.then(|| question(subject, look));
                asked.unwrap_or_default()
            }
            Event::Changed { diff } => {
                self.diff.clone_from(diff);
                Vec::new()
            }
            Event::Printed(text) => {
                self.printed.clone_from(text);
                Vec::new()
            }
            Event::ToolResult { is_end: true, .. } => Vec::new(),
            Event::ToolResult { .. } => self.tool(event, look),
            Event::Malformed {
                fault,
                failures,
                allowed,
            } => {
                let text = format!("reply not understood ({failures} of {allowed}): {fault}");
                let lines = fitted(&text, look.width(), SAID).into_iter();
                let red = |line: String| look.paint(&line, Style::new().red());
                lines.map(red).collect()
            }
            Event::Auditing => vec![look.paint(AUDIT_BEGINS, Style::new().cyan())],
            Event::Audited { passed, text } => {
                let (title, style) = match passed {
                    true => ("✓ Audit passed", Style::new().green()),
                    false => ("✗ Audit failed", Style::new().red()),
                };
                let mut lines = vec![look.paint(title, style)];
                lines.extend(look.behind(SAID_INDENT, text, SAID, &dim));
                lines
            }
            Event::Compressed {
                tokens_before,
                tokens_after,
            } => {
                let (before, after) = (grouped(*tokens_before), grouped(*tokens_after));
                vec![look.line(
                    &format!("context compressed: {before} → {after} tokens"),
                    dim,
                )]
            }
            Event::Connected { server, protocol } => {
                let text = format!("server {}", connected(server, protocol));
                vec![look.line(&text, dim)]
            }
            Event::Waiting { .. } => vec![look.line(&awaited(event, usize::MAX), dim)],
            Event::BranchEnded { took, .. } => {
                let text = format!("{}, {}", awaited(event, usize::MAX), elapsed(*took));
                vec![look.line(&text, dim)]
            }
            Event::Finished { summary, log } => finished(summary, log.as_deref(), look),
            Event::Failed { error, hint, log } => {
                let mut lines = Vec::new();
                let style = Style::new().red();
                let error = format!("error: {error}");
                for (text, style) in [
                    (Some(error), style),
                    (
                        hint.as_ref().map(|hint| format!("hint: {hint}")),
                        Style::new(),
                    ),
                    (log.as_ref().map(|log| format!("log: {log}")), dim),
                ] {
                    let text = text.unwrap_or_default();
                    let fitted = fitted(&text, look.width(), SAID * 4).into_iter();
                    lines.extend(fitted.map(|line| look.paint(&line, style.clone())));
                }
                lines
            }
            Event::Shown(text) => shown(text, look),
            _ => Vec::new(),
        }
    }

    /// What the tool that is under way does: `Running cargo test`.
    pub fn doing(&self, name: &str, look: Look) -> String {
        let text = format!("{} {}", self.verb.words(name).0, one_line(&self.subject));
        // The time stands behind it, and what it prints.
        truncate_str(text.trim_end(), look.width() / 2, "…").into_owned()
    }

    /// The last line that it has printed.
    pub fn printing(&self, look: Look) -> String {
        let last = self.printed.lines().rfind(|line| !line.trim().is_empty());
        let last = last.map(visible).unwrap_or_default();
        look.line(last.lines().last().unwrap_or_default(), Style::new().dim())
    }

    /// The task list, where it is another than before.
    fn tasks(&mut self, tasks: &[Task], look: Look) -> Vec<String> {
        if tasks.is_empty() || tasks == self.tasks {
            return Vec::new();
        }
        self.tasks = tasks.to_vec();
        let mut lines = vec![look.paint("Task List", Style::new().cyan())];
        let shown = tasks.iter().take(DIFF);
        lines.extend(shown.map(|task| {
            let style = task_style(task.status);
            look.line(&format!("  {task}"), style)
        }));
        if let Some(more) = tasks.len().checked_sub(DIFF).filter(|more| *more > 0) {
            lines.push(format!("  … {} …", counted(more as u64, "more task")));
        }
        lines
    }

    /// A tool that has ended: a line, and below it what it has changed or printed.
    fn tool(&mut self, event: &Event, look: Look) -> Vec<String> {
        let Event::ToolResult {
            name,
            verb,
            text,
            failed,
            brief,
            command,
            took,
            ..
        } = event
        else {
            return Vec::new();
        };
        let (subject, diff) = (take(&mut self.subject), take(&mut self.diff));
        let printed = take(&mut self.printed);
        let (_, done) = verb.words(name);
        // The list itself is shown, and the question was.
        if !failed && matches!(verb, Verb::Note | Verb::Ask) {
            return Vec::new();
        }
        if *failed {
            let line = look.line(&format!("✗ {done} {subject}: failed"), Style::new().red());
            let mut lines = vec![line];
            lines.extend(look.below(text, PRINTED_OF_FAILURE, &Style::new().red()));
            return lines;
        }
        let mut aside: Vec<String> = brief.iter().cloned().collect();
        if !diff.is_empty() {
            aside.push(sums(&diff));
        }
        if *command != CommandEnd::None {
            aside.push(format!("{:.1}s", took.as_secs_f64()));
        }
        let aside = match aside.join(", ") {
            aside if aside.is_empty() => aside,
            aside => format!(" ({aside})"),
        };
        let bullet = if command.is_failure() {
            look.paint("✗", Style::new().red())
        } else {
            look.paint("•", Style::new().green())
        };
        let mut lines = vec![headline(&bullet, done, &subject, &aside, look)];
        lines.extend(diff_lines(&diff, DIFF, look));
        // Behind what was done stands what to be warned of.
        let warnings = text.lines().filter(|line| line.starts_with("warning: "));
        if matches!(verb, Verb::Write | Verb::Edit) {
            let yellow = Style::new().yellow();
            lines.extend(warnings.flat_map(|line| look.below(line, SAID, &yellow)));
        }
        let limit = match command {
            CommandEnd::None | CommandEnd::Exited(0) => PRINTED,
            _ => PRINTED_OF_FAILURE,
        };
        lines.extend(last_lines(&printed, limit, look));
        lines
    }
}

/// `• Read src/lib.rs (575 lines)`: what it is about is cut where there is no room for all of it.
fn headline(bullet: &str, done: &str, subject: &str, aside: &str, look: Look) -> String {
    let done = one_line(done);
    let aside = one_line(aside);
    let around = measure_text_width(&format!("• {done} {aside}"));
    let subject = one_line(subject);
    let subject = truncate_str(&subject, look.width().saturating_sub(around).max(8), "…");
    let done = look.paint(&done, Style::new().bold());
    let aside = look.paint(&aside, Style::new().dim());
    format!("{bullet} {done} {subject}{aside}")
}

fn question(text: &str, look: Look) -> Vec<String> {
    let mut lines = vec![look.paint("? The agent asks", Style::new().yellow().bold())];
    let said = markdown::rendered(text, look.width() - INDENT.len(), look.colors);
    lines.extend(said.into_iter().map(|line| format!("{INDENT}{line}")));
    lines
}

fn finished(summary: &str, log: Option<&str>, look: Look) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(markdown::rendered(summary, look.width(), look.colors));
    lines.push(String::new());
    lines.extend(log.map(|log| look.line(&format!("log: {log}"), Style::new().dim())));
    lines
}

/// What was asked for: a diff in colours, or a text.
fn shown(text: &str, look: Look) -> Vec<String> {
    if text.starts_with("diff --git ") {
        return diff_lines(text, usize::MAX, look);
    }
    text.lines()
        .map(|line| look.line(line, Style::new()))
        .collect()
}

/// The last lines of what a command prints.
pub(super) fn last_lines(printed: &str, limit: usize, look: Look) -> Vec<String> {
    let lines: Vec<&str> = printed.trim_end().lines().collect();
    let shown = lines.iter().skip(lines.len().saturating_sub(limit));
    let inner = Look {
        columns: look.width() + 1 - INDENT.len(),
        ..look
    };
    let shown = shown.map(|line| match visible(line).lines().last() {
        // What a progress bar has written over is not shown.
        Some(line) if !line.is_empty() => {
            format!("{INDENT}{}", inner.line(line, Style::new().dim()))
        }
        _ => String::new(),
    });
    shown.collect()
}

/// `+3 -1`
pub(super) fn sums(diff: &str) -> String {
    let hunks = diff.lines().skip_while(|line| !line.starts_with("@@"));
    let (mut added, mut removed) = (0, 0);
    for line in hunks {
        added += usize::from(line.starts_with('+'));
        removed += usize::from(line.starts_with('-'));
    }
    format!("+{added} -{removed}")
}

/// The hunks of a diff in the colours that git gives them; with its headers, if there is no limit.
pub(super) fn diff_lines(diff: &str, limit: usize, look: Look) -> Vec<String> {
    let all = limit == usize::MAX;
    let lines = diff
        .lines()
        .skip_while(|line| !all && !line.starts_with("@@"));
    let indent = if all { "" } else { INDENT };
    let columns = look.width().saturating_sub(indent.len()).max(1);
    let rows = lines.flat_map(|line| {
        let style = match line.as_bytes().first() {
            Some(b'+') => Style::new().green(),
            Some(b'-') => Style::new().red(),
            Some(b'@') => Style::new().cyan(),
            Some(b' ') | None => Style::new(),
            Some(_) => Style::new().bold(),
        };
        let text = folded(&one_line(line), Some(columns), HANG);
        let row = |row| format!("{indent}{}", look.paint(row, style.clone()));
        text.split('\n').map(row).collect::<Vec<_>>()
    });
    let mut painted: Vec<String> = rows.collect();
    if let Some(more) = painted.len().checked_sub(limit).filter(|more| *more > 0) {
        painted.truncate(limit);
        let more = format!("{indent}… {} …", counted(more as u64, "more line"));
        painted.push(look.paint(&more, Style::new().dim()));
    }
    painted
}

#[cfg(test)]
mod tests;
