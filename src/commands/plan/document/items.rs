//! The items of a plan document: the status, the goal, each criterion, decision, task and log entry, read from the
//! user's text and written in normal form. Pure.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::sections::{ChunkKind, ListItem, PlanPart, Section};
use super::text::{
    escape, field, harmless, one_line, read_list, read_time, split_notes, unescape, with_notes,
    write_list, write_time,
};
use crate::commands::plan::types::{
    Criterion, DONE, LogEntry, Plan, PlanDecision, PlanTask, PlanTaskStatus, is_done,
};
use crate::sys::text::{regex, with_unix_line_ends};

/// The mark and the lines of a list item.
fn lines(item: &str) -> (char, Vec<String>) {
    let (mark, start) = ListItem::of(item).map_or((' ', 0), |item| (item.mark, item.mark_box.end));
    let text = COMMENT.replace_all(item[start..].trim(), "");
    (
        mark,
        text.lines().map(|line| line.trim().to_owned()).collect(),
    )
}

/// Puts an item in the place of a former one, both given in normal form. Where a criterion or a task changes in its
/// mark alone, its text stays as the user has written it.
pub fn rewritten(part: PlanPart, raw: &str, old: &str, new: &str, end: &str) -> String {
    if let [Some(own), Some(was), Some(is)] = [raw, old, new].map(ListItem::of)
        && matches!(part, PlanPart::Criteria | PlanPart::Tasks)
        && old[was.mark_box.end..] == new[is.mark_box.end..]
    {
        let blank = if own.mark_box.is_empty() { " " } else { "" };
        let mut rewritten = raw.to_owned();
        rewritten.replace_range(own.mark_box, &format!("{}{blank}", &new[is.mark_box]));
        return rewritten;
    }
    new.replace('\n', end) + end
}

/// Gives a task its number.
pub fn number(raw: &mut String, step: usize) {
    let marker = ListItem::of(raw)
        .map(|item| item.marker)
        .unwrap_or_default();
    if raw[marker.clone()].trim_end_matches(['.', ')']).parse() != Ok(step) {
        raw.replace_range(marker, &format!("{step}."));
    }
}

/// Reads the goal from its sections.
pub fn goal<'s>(sections: impl Iterator<Item = &'s Section>) -> String {
    let chunks = sections.flat_map(|section| &section.chunks);
    let text = chunks.filter(|chunk| matches!(chunk.kind, ChunkKind::Item | ChunkKind::Blank));
    let lines = text.flat_map(|chunk| chunk.raw.lines());
    let lines: Vec<_> = lines.map(|line| unescape(line.trim_end())).collect();
    lines.join("\n").trim().to_owned()
}

/// Reads a criterion.
pub fn criterion(item: &str) -> Criterion {
    let (mark, lines) = lines(item);
    let (description, notes) = split_notes(&lines.join("\n"));
    Criterion {
        description,
        completed: is_done(mark),
        notes,
    }
}

/// Reads a task.
pub fn task(step: usize, item: &str) -> PlanTask {
    let (mark, lines) = lines(item);
    let fields = lines.iter().map(|line| field(line)).enumerate().skip(1);
    let (end, tool) = fields
        .filter_map(|(at, field)| Some((at, field?)))
        .find_map(|(at, (name, text))| (name == "tool").then_some((at, text)))
        .unwrap_or((lines.len(), ""));
    let (tool, params) = tool.split_once(char::is_whitespace).unwrap_or((tool, ""));
    PlanTask {
        step,
        description: lines[..end].join("\n"),
        tool: Some(tool.trim_matches('`'))
            .filter(|tool| !tool.is_empty())
            .unwrap_or("analyze")
            .to_owned(),
        params: serde_json::from_str(params).unwrap_or_default(),
        status: PlanTaskStatus::of(mark),
    }
}

/// Reads a decision; `saved` is the time of one without a time.
pub fn decision(entry: &str, saved: i64) -> PlanDecision {
    let (title, fields) = entry_fields(entry);
    PlanDecision {
        title,
        rationale: text_of(&fields, &["rationale"]),
        alternatives: read_list(&text_of(&fields, &["alternative"])),
        timestamp: read_time(&text_of(&fields, &["decided", "rejected"]))
            .map_or(saved, |(time, _)| time),
    }
}

/// Reads a log entry; `saved` is the time of one without a time.
pub fn log_entry(entry: &str, saved: i64) -> LogEntry {
    let (title, fields) = entry_fields(entry);
    let (timestamp, action) = read_time(&title).unwrap_or((saved, &title));
    LogEntry {
        timestamp,
        action: action.to_owned(),
        details: text_of(&fields, &["actions", "details"]),
        result: text_of(&fields, &["result"]),
        tools_used: read_list(&text_of(&fields, &["tools"])),
    }
}

static COMMENT: LazyLock<Regex> = LazyLock::new(|| regex(r"(?ms)^\s*<!--.*?-->[^\n]*\n?"));

/// The title of an entry, and its fields by their names in lower case, each up to the next one or to a blank line.
fn entry_fields(entry: &str) -> (String, Vec<(String, String)>) {
    let entry = COMMENT.replace_all(entry, "");
    let mut lines = entry.lines().map(str::trim);
    let title = lines.next().unwrap_or_default().trim_start_matches('#');
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut is_open = false;
    for line in lines {
        match (field(line), fields.last_mut()) {
            (Some((name, text)), _) => {
                fields.push((name, text.to_owned()));
                is_open = true;
            }
            (None, Some((_, text))) if is_open && !line.is_empty() => {
                text.push('\n');
                text.push_str(line);
            }
            _ => is_open = false,
        }
    }
    (title.trim().to_owned(), fields)
}

/// The text of the first field whose name begins with one of these; "" where there is none.
fn text_of(fields: &[(String, String)], names: &[&str]) -> String {
    let mut fields = fields.iter();
    let found = fields.find(|(name, _)| names.iter().any(|own| name.starts_with(own)));
    found.map_or("", |(_, text)| text.trim()).to_owned()
}

/// Writes the items of a part, each in normal form: lines without the end of the last one.
pub fn write(part: PlanPart, plan: &Plan) -> Vec<String> {
    let made = |decision| write_decision(decision, "Alternatives considered", "Decided");
    let rejected = |decision| write_decision(decision, "Alternative", "Rejected");
    let is_described = |task: &&PlanTask| !task.description.trim().is_empty();
    let tasks = (1..).zip(plan.tasks.iter().filter(is_described));
    match part {
        PlanPart::Title => vec![format!("**Status:** {}", plan.status.word())],
        PlanPart::Goal => write_goal(&plan.goal).into_iter().collect(),
        PlanPart::Criteria => plan
            .acceptance_criteria
            .iter()
            .map(write_criterion)
            .collect(),
        PlanPart::Made => plan.decisions_made.iter().map(made).collect(),
        PlanPart::Rejected => plan.decisions_rejected.iter().map(rejected).collect(),
        PlanPart::Tasks => tasks.map(|(step, task)| write_task(step, task)).collect(),
        PlanPart::Log => plan.execution_log.iter().map(write_log_entry).collect(),
    }
}

fn write_goal(goal: &str) -> Option<String> {
    let goal = harmless(&with_unix_line_ends(goal.trim()));
    let lines: Vec<_> = goal.lines().map(|line| escape(line.trim_end())).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn write_criterion(criterion: &Criterion) -> String {
    let mark = if criterion.completed { DONE } else { ' ' };
    let text = with_notes(&criterion.description, &criterion.notes);
    format!("- [{mark}] {text}")
}

fn write_task(step: usize, task: &PlanTask) -> String {
    let tool = one_line(&task.tool);
    let tool = if tool.is_empty() { "analyze" } else { &tool };
    let params = match &task.params {
        none if none.is_empty() => String::new(),
        // In JSON, only texts can hold the end of a comment.
        params => Value::from(params.clone())
            .to_string()
            .replace("-->", r"--\u003e"),
    };
    let (mark, description) = (task.status.mark(), one_line(&task.description));
    let task = format!("{step}. [{mark}] {description}\n   **Tool:** {tool} {params}");
    task.trim_end().to_owned()
}

fn write_decision(decision: &PlanDecision, alternatives: &str, decided: &str) -> String {
    let mut fields = vec![("Rationale", one_line(&decision.rationale))];
    if !decision.alternatives.is_empty() {
        fields.push((alternatives, write_list(&decision.alternatives)));
    }
    fields.push((decided, write_time(decision.timestamp)));
    write_entry(&one_line(&decision.title), &fields)
}

fn write_log_entry(entry: &LogEntry) -> String {
    let title = format!(
        "{} - {}",
        write_time(entry.timestamp),
        one_line(&entry.action)
    );
    let tools = ("Tools", write_list(&entry.tools_used));
    let result = ("Result", one_line(&entry.result));
    match one_line(&entry.details) {
        none if none.is_empty() => write_entry(&title, &[tools, result]),
        details => write_entry(&title, &[("Actions", details), tools, result]),
    }
}

fn write_entry(title: &str, fields: &[(&str, String)]) -> String {
    let lines = fields
        .iter()
        .map(|(name, text)| format!("\n**{name}:** {text}").trim_end().to_owned());
    format!("### {title}{}", lines.collect::<String>())
}
