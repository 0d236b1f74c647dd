//! Describes events for display, independently of whether they go to a pipe, a terminal or the screen. Pure.

use std::time::Duration;

use ratatui::style::Style;

use super::change::sums;
use crate::model::StepId;
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::project::changed_files::EditsRecord;
use crate::record::event::Event;
use crate::record::seconds::Seconds;
use crate::record::tasks::{Task, TaskStatus};
use crate::record::tool::{ToolEnd, Verb};
use crate::sys::numbers::{counted, elapsed, grouped};
use crate::sys::text::{first_lines, one_line};

/// The maximum number of characters shown of a branch's id or status.
const LONGEST_WORD: usize = 80;
/// The duration above which a tool's time is shown.
const LONG: Duration = Duration::from_secs(2);
/// The maximum number of a reply's files listed by name.
const LISTED: usize = 20;

/// A headline, such as `• Read src/lib.rs (575 lines)`, and the text below it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shown {
    /// The sign of success or failure; "" for none.
    pub sign: &'static str,
    /// The verb, or a label or title; "" for a sentence without one.
    pub verb: String,
    /// The object of the verb, or the sentence.
    pub subject: String,
    /// The outcome in a few words.
    pub aside: String,
    /// The style of the sign or, without one, of the whole headline.
    pub style: Style,
    /// The text below.
    pub body: Vec<Part>,
    /// True if the verb is a title that can be omitted at a terminal.
    pub is_title_spared: bool,
    /// True if it is the error with which the command ended.
    pub is_error: bool,
}

/// A part of the text below a headline, on its own lines.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text in a style.
    Text(String, Style),
    /// An agent's Markdown.
    Markdown(String),
    /// A unified diff.
    Diff(String),
    /// A task in a list.
    Task(Task),
    /// The output of a command, whose end matters most.
    Output(String),
}

impl Part {
    /// Returns the plain text.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text, _) | Self::Markdown(text) | Self::Diff(text) | Self::Output(text) => {
                text.clone()
            }
            Self::Task(task) => task.to_string(),
        }
    }
}

impl Shown {
    fn line(verb: &str, subject: String, style: Style) -> Self {
        Self {
            verb: verb.to_owned(),
            subject,
            style,
            ..Self::default()
        }
    }

    fn titled(verb: &str, style: Style, body: Vec<Part>) -> Self {
        Self {
            verb: verb.to_owned(),
            style,
            body,
            ..Self::default()
        }
    }

    fn spared(verb: &str, body: Vec<Part>) -> Self {
        Self {
            is_title_spared: true,
            ..Self::titled(verb, Style::new(), body)
        }
    }
}

/// Describes an event; `None` if there is nothing to show.
pub fn present(event: &Event) -> Option<Shown> {
    let (plain, dim) = (Style::new(), Style::new().dim());
    let (red, cyan) = (Style::new().red(), Style::new().cyan());
    let labelled = |label: &str, text: &Option<String>, style| {
        let part = |text: &String| Part::Text(format!("{label}: {text}"), style);
        text.as_ref().map(part)
    };
    Some(match event {
        Event::Session { id, resumed } => {
            let state = if *resumed { "resumed" } else { "new session" };
            Shown::line("session", format!("{id} ({state})"), dim)
        }
        Event::Notice(text) | Event::Status(text) => Shown::line("", text.clone(), dim),
        Event::Thoughts(text) if text.trim().is_empty() => return None,
        Event::Thoughts(text) => Shown::spared("Thoughts", vec![Part::Text(text.clone(), dim)]),
        Event::Words(text) => Shown::spared("Agent", vec![Part::Text(text.clone(), dim)]),
        Event::Shown(text) => Shown::spared("Output", vec![Part::Output(text.clone())]),
        Event::ShownDiff(diff) => Shown::spared("Changes", vec![Part::Diff(diff.clone())]),
        Event::Tasks(tasks) if tasks.is_empty() => return None,
        Event::Tasks(tasks) => {
            let tasks = tasks.iter().cloned().map(Part::Task);
            Shown::titled("Task List", cyan, tasks.collect())
        }
        Event::Tool { name, input, .. } => {
            let input = vec![Part::Text(input.clone(), plain)];
            Shown::titled(&format!("Tool: {name}"), plain, input)
        }
        // The audit reports the end.
        Event::ToolResult { is_end: true, .. } => return None,
        Event::ToolResult { end, .. } => {
            let text = match end.text.trim() {
                "" => "(nothing)",
                _ => &end.text,
            };
            Shown {
                subject: String::from(if end.failed { "failed" } else { "" }),
                ..Shown::titled("Result", plain, vec![Part::Text(text.to_owned(), plain)])
            }
        }
        Event::Malformed {
            fault,
            failures,
            allowed,
        } => {
            let text = format!("reply not understood ({failures} of {allowed}): {fault}");
            Shown::line("", text, red)
        }
        Event::Auditing => Shown::line("", "An independent audit begins.".to_owned(), cyan),
        Event::Audited { passed, text } => {
            let (sign, subject, style) = match passed {
                true => ("✓", "passed", Style::new().green()),
                false => ("✗", "failed", red),
            };
            Shown {
                sign,
                subject: subject.to_owned(),
                ..Shown::titled("Audit", style, vec![Part::Markdown(text.clone())])
            }
        }
        Event::Compressed {
            tokens_before,
            tokens_after,
        } => {
            let (before, after) = (grouped(*tokens_before), grouped(*tokens_after));
            let text = format!("context compressed: {before} → {after} tokens");
            Shown::line("", text, dim)
        }
        Event::Connected { server, protocol } => {
            Shown::line("server", format!("{server} (MCP {protocol})"), dim)
        }
        Event::Waiting { waited, .. } => Shown::line("waiting", awaited_since(event, *waited), dim),
        Event::BranchEnded { took, .. } => {
            let text = format!("{}, {}", awaited(event), elapsed(*took));
            Shown::line("ended", text, dim)
        }
        Event::Finished { summary, log } => {
            let summary = Part::Markdown(summary.clone());
            let body = std::iter::once(summary).chain(labelled("log", log, dim));
            Shown::spared("Done", body.collect())
        }
        Event::Failed { error, hint, log } => {
            let rest = [labelled("hint", hint, plain), labelled("log", log, dim)];
            let error = Part::Text(error.clone(), red);
            let body = std::iter::once(error).chain(rest.into_iter().flatten());
            Shown {
                is_error: true,
                ..Shown::titled("Error", red, body.collect())
            }
        }
        event => return of_run(event),
    })
}

/// Describes an event of a run, which has a label; `None` for any other.
pub fn of_run(event: &Event) -> Option<Shown> {
    let plain = Style::new();
    Some(match event {
        Event::Started { log } => Shown::line("log", log.clone(), plain),
        Event::Asking {
            step,
            model,
            prompt,
            spent,
        } => {
            let prompt = prompt.as_ref().map(|size| format!("  {} in", size.text()));
            Shown {
                aside: prompt.unwrap_or_default() + &dollars(*spent),
                ..Shown::line("asking", format!("{model} for {step}"), plain)
            }
        }
        Event::Retrying {
            next_try,
            wait,
            reason,
        } => {
            let text = format!("{reason}; try {next_try} in {}s", Seconds(*wait));
            Shown::line("retry", text, plain)
        }
        Event::Answered {
            model,
            usage,
            cost,
            tier,
            took,
        } => {
            let usage = usage.map_or(String::new(), |usage| format!(": {}", tokens(usage)));
            let tier = tier.map_or(String::new(), |tier| format!(" ({})", tier.into_str()));
            let paid = cost.filter(|cost| *cost != Usd::ZERO);
            let cost = paid.map_or(String::new(), |cost| format!(", {cost}{tier}"));
            let text = format!("{model}{usage}{cost}, {}s", Seconds(*took));
            Shown::line("answered", text, plain)
        }
        Event::Applied(edits) => edited("applied", "written", edits),
        Event::PutBack(edits) => edited("undone", "put back", edits),
        Event::Uncontained { reason } => {
            let text = format!("none: {reason}; builds and commands can read the keys");
            Shown::line("sandbox", text, Style::new().yellow())
        }
        Event::Building { spent } => Shown {
            aside: dollars(*spent),
            ..Shown::line("build", "build.sh".to_owned(), plain)
        },
        Event::Built {
            status,
            passed,
            reasons,
            took,
        } => {
            let (label, style) = match passed {
                true => ("passed", Style::new().green()),
                false => ("failed", Style::new().red()),
            };
            let text = format!("build.sh, {}s ({status})", Seconds(*took));
            Shown {
                body: vec![Part::Output(reasons.join("\n"))],
                ..Shown::line(label, text, style)
            }
        }
        Event::Warning(text) => Shown::line("warning:", text.clone(), Style::new().yellow()),
        _ => return None,
    })
}

/// Describes the changes made to files.
fn edited(label: &str, verb: &str, edits: &EditsRecord) -> Shown {
    let (written, removed) = (edits.written.len(), edits.removed.len());
    let marked = |mark: &'static str| move |path: &String| format!("{path} ({mark})");
    let gone = edits.removed.iter().map(marked("removed"));
    let unchanged = edits.unchanged.iter().map(marked("unchanged"));
    let paths = edits.written.iter().cloned().chain(gone).chain(unchanged);
    let lines = first_lines(paths, LISTED).into_iter();
    let text = format!("{written} {verb}, {removed} removed");
    Shown {
        body: lines.map(|line| Part::Text(line, Style::new())).collect(),
        ..Shown::line(label, text, Style::new())
    }
}

/// Formats the tokens of a call.
fn tokens(usage: Usage) -> String {
    let cached = aside(usage.cached_tokens, "cached");
    let thoughts = aside(usage.thought_tokens, "thought");
    let [input, output] = [usage.input_tokens, usage.output_tokens].map(grouped);
    format!("{input} tokens in{cached}, {output} out{thoughts}")
}

/// Formats a part of a token count in parentheses; empty for zero.
pub(super) fn aside(tokens: u64, such: &str) -> String {
    match tokens {
        0 => String::new(),
        tokens => format!(" ({} {such})", grouped(tokens)),
    }
}

/// Returns the cost with two spaces before it; empty for zero.
pub(super) fn dollars(spent: Usd) -> String {
    if spent == Usd::ZERO {
        return String::new();
    }
    format!("  {spent}")
}

/// Describes a question asked by a tool.
pub fn asked(question: &str) -> Shown {
    let style = Style::new().yellow().bold();
    let question = vec![Part::Markdown(question.to_owned())];
    Shown {
        sign: "?",
        ..Shown::titled("The agent asks", style, question)
    }
}

/// Returns the activity of an agent's model during a call; `None` if the call is not an agent's.
pub fn doing(step: &StepId) -> Option<&'static str> {
    match step.purpose.name() {
        _ if step.purpose.is_workflows() => None,
        "audit" => Some("Auditing..."),
        "compression" => Some("Compressing..."),
        _ => Some("Thinking..."),
    }
}

/// The number of characters of a branch's id shown while waiting for it.
const SHORT_ID: usize = 8;

/// Describes a branch on a server as [`awaited`] does, with the time from a minute on.
fn awaited_since(event: &Event, waited: Duration) -> String {
    let minutes = (waited.as_secs() >= 60).then(|| format!(", {}", elapsed(waited)));
    awaited(event) + &minutes.unwrap_or_default()
}

/// Describes a branch on a server as [`awaited`] does, but briefly, beginning with the details that a narrow screen
/// must not cut: the number of the review, and the total time of the work.
pub fn awaited_in_all(event: &Event) -> String {
    let [agent, review] = on_branch(event, SHORT_ID);
    match event {
        Event::Waiting { total, .. } => format!("{review}, {} in all: {agent}", elapsed(*total)),
        _ => agent,
    }
}

/// Describes a branch on a server: `codex on branch 1f2e3d4c-5b6a (running), review 3 of 8`, or `publishing`.
pub fn awaited(event: &Event) -> String {
    let mut parts = on_branch(event, LONGEST_WORD).to_vec();
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

/// Describes the agent on a branch, with at most `id_length` characters of the branch's id, and the number of its
/// or the next review, or that it publishes, if it is awaited.
fn on_branch(event: &Event, id_length: usize) -> [String; 2] {
    let (Event::Waiting {
        agent,
        branch,
        status,
        ..
    }
    | Event::BranchEnded {
        agent,
        branch,
        status,
        ..
    }) = event
    else {
        return Default::default();
    };
    let branch = one_line(branch, id_length);
    let status = match &*one_line(status, LONGEST_WORD) {
        "" => String::new(),
        status => format!(" ({status})"),
    };
    let review = match event {
        Event::Waiting {
            publishes: true, ..
        } => "publishing".to_owned(),
        Event::Waiting {
            is_review,
            review,
            reviews,
            ..
        } => {
            let before = if *is_review { "" } else { "before " };
            format!("{before}review {review} of {reviews}")
        }
        _ => String::new(),
    };
    [format!("{agent} on branch {branch}{status}"), review]
}

/// Returns the style of a task.
pub fn task_style(status: TaskStatus) -> Style {
    match status {
        TaskStatus::Pending => Style::new(),
        TaskStatus::InProgress => Style::new().yellow(),
        TaskStatus::Complete => Style::new().green(),
    }
}

/// The state of a tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolUse {
    /// The tool's name.
    pub name: String,
    /// The tool's verb; the name is used if it has none.
    pub verb: Verb,
    /// True if the verb is shown as an imperative: `$ cargo build`.
    pub is_order: bool,
    /// The path, command or question that the call is about.
    pub subject: String,
    /// True if the user was asked about the call, and so has seen all of it.
    pub is_asked: bool,
    /// The end of its output so far.
    pub printed: String,
    /// The changes that it made.
    pub diff: String,
    /// The tool's result; `None` while it is running.
    pub result: Option<ToolEnd>,
}

impl ToolUse {
    /// Creates a call that has just begun.
    pub(crate) fn new(name: &str, verb: Verb, subject: &str) -> Self {
        Self {
            name: name.to_owned(),
            verb,
            subject: subject.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the tool's activity: `Running cargo test`.
    pub(crate) fn doing(&self) -> String {
        let (doing, _) = self.verb.words(&self.name);
        format!("{doing} {}", self.subject).trim_end().to_owned()
    }

    /// Returns the headline and, below it, the changes, output or failure; `None` if these are shown
    /// separately.
    pub(crate) fn shown(&self) -> Option<Shown> {
        let (doing, done) = self.verb.words(&self.name);
        let verb = match &self.result {
            Some(end) if matches!(self.verb, Verb::Note | Verb::Finish) && !end.failed => {
                return None;
            }
            _ if self.is_order => self.verb.order(&self.name),
            None => doing,
            // It was not done.
            Some(end) if end.failed => self.verb.order(&self.name),
            Some(_) => done,
        };
        let (sign, style) = match &self.result {
            None => ("○", Style::new().yellow()),
            Some(end) if end.failed || end.command.is_failure() => ("✗", Style::new().red()),
            Some(_) => ("•", Style::new().green()),
        };
        let body = match &self.result {
            Some(end) if end.is_error() => vec![Part::Text(end.text.clone(), Style::new().red())],
            Some(end) => {
                // Warnings follow the headline.
                let warnings = end
                    .warnings
                    .iter()
                    .map(|text| Part::Text(format!("warning: {text}"), Style::new().yellow()));
                let diff = (!self.diff.is_empty()).then(|| Part::Diff(self.diff.clone()));
                let output = (self.verb != Verb::Use || end.command.is_failure())
                    .then(|| Part::Output(self.printed.clone()));
                diff.into_iter().chain(warnings).chain(output).collect()
            }
            None => vec![Part::Output(self.printed.clone())],
        };
        Some(Shown {
            sign,
            subject: self.subject.clone(),
            aside: self.aside(),
            ..Shown::titled(verb, style, body)
        })
    }

    fn aside(&self) -> String {
        let Some(end) = &self.result else {
            return String::new();
        };
        let lines = end.text.trim_end().lines().count() as u64;
        let brief = match &end.brief {
            Some(brief) => Some(brief.clone()),
            None if end.failed => Some("failed".to_owned()),
            None if self.diff.is_empty() && lines > 0 => Some(counted(lines, "line")),
            None => None,
        };
        let sums = sums(&self.diff);
        let took = (end.took >= LONG).then(|| format!("{:.1}s", end.took.as_secs_f64()));
        let parts: Vec<String> = [brief, sums, took].into_iter().flatten().collect();
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests;
