//! Parses and formats the items of a plan document: the status, the goal, criteria, decisions, tasks and log entries.
//! Items are parsed from the user's text and written in normal form. Pure.
//!
//! Guarantees that text written here is never parsed as structure: each text except the goal is on one line, and a line
//! of the goal that looks like structure is prefixed with `\`.

use std::sync::LazyLock;

use chrono::{DateTime, NaiveDateTime};
use regex::Regex;
use serde_json::Value;

use super::chunks::{PlanPart, field, heading, is_conflict_marker, is_placeholder, list_item};
use crate::commands::plan::types::{
    Criterion, LogEntry, Plan, PlanDecision, PlanStatus, PlanTask, PlanTaskStatus,
};
use crate::sys::fences::Fence;
use crate::sys::text::{regex, with_unix_line_ends};

/// Returns the text of the first field whose name begins with `name`; empty if there is none.
fn text_of<'e>(entry: &'e str, name: &str) -> &'e str {
    let mut fields = entry.lines().filter_map(field);
    let found = fields.find(|(known, _)| known.starts_with(name));
    found.map_or("", |(_, text)| text)
}

/// Parses the status from its line.
pub fn status(line: &str) -> Option<PlanStatus> {
    Some(PlanStatus::of(field(line)?.1))
}

/// Parses the goal from its lines.
pub fn goal<'l>(chunks: impl Iterator<Item = &'l str>) -> String {
    let lines = chunks.flat_map(str::lines);
    let goal: Vec<_> = lines.map(|line| unescape(line.trim_end())).collect();
    goal.join("\n").trim().to_owned()
}

/// Parses a criterion.
pub fn criterion(item: &str) -> Criterion {
    static NOTES: LazyLock<Regex> = LazyLock::new(|| regex(r"(?s)^(.+?)\s+\*\((.*)\)\*$"));
    let (mark, raw) = list_item(item).unwrap_or((' ', item));
    let text = trimmed(raw);
    let parts = NOTES.captures(&text).map(|found| found.extract().1);
    let [description, notes] = parts.unwrap_or([&text, ""]);
    Criterion {
        description: description.replace(r"\*(", "*("),
        completed: PlanTaskStatus::of(mark) == PlanTaskStatus::Done,
        notes: notes.trim().to_owned(),
    }
}

/// Parses a task.
pub fn task(step: usize, item: &str) -> PlanTask {
    let (mark, text) = list_item(item).unwrap_or((' ', item));
    let (above, last) = text.rsplit_once('\n').unwrap_or((text, ""));
    let tool_line = field(last).filter(|(name, _)| name == "tool");
    let (description, call) = tool_line.map_or((text, ""), |(_, call)| (above, call));
    let (tool, params) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
    PlanTask {
        step,
        description: trimmed(description),
        tool: Some(tool.trim_matches('`'))
            .filter(|tool| !tool.is_empty())
            .unwrap_or("analyze")
            .to_owned(),
        params: serde_json::from_str(params).unwrap_or_default(),
        status: PlanTaskStatus::of(mark),
    }
}

/// Parses a decision. If it has no time, `saved` is used.
pub fn decision(entry: &str, saved: i64) -> PlanDecision {
    let mut times = ["decided", "rejected"].iter();
    let time = times.find_map(|name| read_time(text_of(entry, name)));
    PlanDecision {
        title: title_of(entry).to_owned(),
        rationale: text_of(entry, "rationale").to_owned(),
        alternatives: read_list(text_of(entry, "alternative")),
        timestamp: time.map_or(saved, |(time, _)| time),
    }
}

/// Parses a log entry. If it has no time, `saved` is used.
pub fn log_entry(entry: &str, saved: i64) -> LogEntry {
    let title = title_of(entry);
    let (timestamp, action) = read_time(title).unwrap_or((saved, title));
    LogEntry {
        timestamp,
        action: action.to_owned(),
        details: text_of(entry, "actions").to_owned(),
        result: text_of(entry, "result").to_owned(),
        tools_used: read_list(text_of(entry, "tools")),
    }
}

/// Returns the title of an entry.
fn title_of(entry: &str) -> &str {
    let heading = entry.lines().next().and_then(heading);
    heading.map_or("", |(_, title)| title)
}

/// Parses a comma-separated list.
fn read_list(list: &str) -> Vec<String> {
    let texts = list.split(',').map(|text| text.trim().to_owned());
    texts.filter(|text| !text.is_empty()).collect()
}

/// Parses the time at the beginning of a text. Also returns the rest, without the separator before it.
fn read_time(text: &str) -> Option<(i64, &str)> {
    let (stamp, rest) = text.split_at_checked("2026-11-25 20:15".len())?;
    let time = NaiveDateTime::parse_from_str(&stamp.replace('T', " "), "%Y-%m-%d %H:%M").ok()?;
    let is_between = |c: char| c.is_whitespace() || "-\u{2013}\u{2014}:".contains(c);
    Some((
        time.and_utc().timestamp_millis(),
        rest.trim_start_matches(is_between),
    ))
}

/// Returns the title line for a plan with this goal.
pub fn title(goal: &str) -> String {
    let first = joined(goal.trim().lines().next().unwrap_or_default());
    let stated = Some(&*first).filter(|first| !first.is_empty());
    let title = stated.unwrap_or(PlanPart::Title.placeholder());
    harmless(&format!("{} {title}", PlanPart::Title.heading()))
}

/// Formats the items of a part in normal form, each without its last line ending.
pub fn write(part: PlanPart, plan: &Plan) -> Vec<String> {
    let made = |decision| write_decision(decision, "Alternatives considered", "Decided");
    let rejected = |decision| write_decision(decision, "Alternative", "Rejected");
    let criteria = plan.acceptance_criteria.iter();
    let items: Vec<String> = match part {
        PlanPart::Title => vec![format!("**Status:** {}", plan.status.into_str())],
        PlanPart::Goal => write_goal(&plan.goal).into_iter().collect(),
        PlanPart::Criteria => criteria.map(write_criterion).collect(),
        PlanPart::Made => plan.decisions_made.iter().map(made).collect(),
        PlanPart::Rejected => plan.decisions_rejected.iter().map(rejected).collect(),
        PlanPart::Tasks => (1..).zip(&plan.tasks).map(write_task).collect(),
        PlanPart::Log => plan.execution_log.iter().map(write_log_entry).collect(),
    };
    items.iter().map(|item| harmless(item)).collect()
}

/// Replaces NUL, which would make the document unreadable, and `-->`, which could end a comment that the user has left
/// open.
fn harmless(text: &str) -> String {
    text.replace("-->", "-- >").replace('\0', "\u{fffd}")
}

/// Trims each line of a text.
fn trimmed(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// Joins a text into one line.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn write_goal(goal: &str) -> Option<String> {
    let goal = with_unix_line_ends(goal.trim());
    let lines: Vec<_> = goal.lines().map(|line| escaped(line.trim_end())).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Formats a line of the goal, with an escape if it would be parsed as structure or as an escaped line.
fn escaped(line: &str) -> String {
    let escape = if is_structure(line) { r"\" } else { "" };
    format!("{escape}{line}")
}

/// Removes the escape from a line of the goal.
fn unescape(line: &str) -> &str {
    let rest = line.strip_prefix('\\').filter(|rest| is_structure(rest));
    rest.unwrap_or(line)
}

fn is_structure(line: &str) -> bool {
    let line = line.trim_start_matches('\\');
    heading(line).is_some_and(|(level, _)| level <= 2)
        || Fence::of(line).is_some()
        || line.trim_start().starts_with("<!--")
        || is_conflict_marker(line)
        || is_placeholder(list_item(line).map_or(line, |(_, text)| text))
}

fn write_criterion(criterion: &Criterion) -> String {
    let mark = if criterion.completed { 'x' } else { ' ' };
    let description = joined(&criterion.description).replace("*(", r"\*(");
    match &*joined(&criterion.notes) {
        "" => format!("- [{mark}] {description}"),
        notes => format!("- [{mark}] {description} *({notes})*"),
    }
}

fn write_task((step, task): (usize, &PlanTask)) -> String {
    let params = match &task.params {
        none if none.is_empty() => String::new(),
        params => format!(" {}", Value::from(params.clone())),
    };
    let (mark, description, tool) = (
        task.status.mark(),
        joined(&task.description),
        joined(&task.tool),
    );
    format!("{step}. [{mark}] {description}\n   **Tool:** {tool}{params}")
}

fn write_decision(decision: &PlanDecision, alternatives: &str, decided: &str) -> String {
    let rationale = ("Rationale", joined(&decision.rationale));
    let list = write_list(&decision.alternatives);
    let others = Some((alternatives, list)).filter(|(_, list)| !list.is_empty());
    let time = (decided, write_time(decision.timestamp));
    let fields = [rationale].into_iter().chain(others).chain([time]);
    write_entry(&decision.title, fields)
}

fn write_log_entry(entry: &LogEntry) -> String {
    let title = format!("{} - {}", write_time(entry.timestamp), entry.action);
    let details = Some(("Actions", joined(&entry.details))).filter(|(_, text)| !text.is_empty());
    let tools = ("Tools", write_list(&entry.tools_used));
    let result = ("Result", joined(&entry.result));
    write_entry(&title, details.into_iter().chain([tools, result]))
}

fn write_entry<'f>(title: &str, fields: impl Iterator<Item = (&'f str, String)>) -> String {
    let lines = fields.map(|(name, text)| format!("\n**{name}:** {text}").trim_end().to_owned());
    format!("### {}{}", joined(title), lines.collect::<String>())
}

/// Formats a comma-separated list. Commas within a text become semicolons.
fn write_list(texts: &[String]) -> String {
    let texts = texts.iter().map(|text| joined(text).replace(',', ";"));
    texts.collect::<Vec<_>>().join(", ")
}

/// Formats a time in milliseconds since 1970, to the minute, in UTC.
fn write_time(milliseconds: i64) -> String {
    let time = DateTime::from_timestamp_millis(milliseconds).unwrap_or_default();
    time.format("%Y-%m-%d %H:%M").to_string()
}
