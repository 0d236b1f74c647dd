//! The report on a campaign: a table, a page, and the same data for programs.
//!
//! Writes only the page.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use super::sum::{self, Sum, Sums, TaskRow};
use crate::commands::report::command::write_page;
use crate::commands::report::page::tables;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::sarif::MergedLog;
use crate::run::past::table::{REQUEST, RESULT, Row, Table};
use crate::sys::files::PathError;
use crate::sys::numbers::{counted, elapsed, grouped};
use crate::sys::text::one_line;
use crate::ui::OutputFormat;
use crate::ui::columns::{self, Align};

/// Name of the page in the directory of the results.
const PAGE: &str = "report.html";
/// Maximum number of tasks listed on the page.
const LISTED: usize = 2000;
/// Maximum number of values of a label, a model or an outcome in a table.
const VALUES: usize = 20;
/// Maximum length of a text in a table, in characters.
const TEXT: usize = 40;
/// Maximum length of an error on the page, in characters.
const ERROR: usize = 200;
/// The columns of the CSV output, as pointers into a task's data.
const COLUMNS: &str = "id index repository title workflow model exit/code exit/name cost input_tokens output_tokens \
    seconds stat/files stat/added stat/removed gate_changed labels error";
/// Columns dropped on a narrow terminal, in this order.
const DISPENSABLE: [&str; 4] = ["out", "tokens in", "removed", "time"];

/// Sums up the results in a directory.
///
/// # Errors
/// Fails if there are no results, one cannot be read, or the page cannot be written.
pub fn report(
    context: &Context<'_>,
    (directory, page): (&Path, Option<&Path>),
    format: OutputFormat,
) -> Result<Outcome, Failure> {
    let place = context.project.root().join(directory);
    let mut log = MergedLog::default();
    let rows = sum::read(context, &place, |id, record| {
        if format == OutputFormat::Sarif {
            log.add(id, record);
        }
    })?;
    let sums = Sums::of(&rows);
    let first = sum::first(&rows);
    let page = written_page(context, (directory, page), (&rows, &sums, &first))?;
    Ok(match format {
        OutputFormat::Sarif => Outcome::document(log.finish()),
        OutputFormat::Csv => Outcome::shown(csv(&rows), Value::Null),
        OutputFormat::Json | OutputFormat::JsonL => {
            let report = Report {
                schema: 1,
                page,
                total: sums.total,
                by: sums.json(),
                look_first: first.iter().map(|row| &*row.id).collect(),
                tasks: &rows,
            };
            if format == OutputFormat::JsonL {
                return Ok(Outcome::shown("", json!(report)));
            }
            // Serialization cannot fail, since all keys are strings and all numbers are finite.
            Outcome::document(serde_json::to_string_pretty(&report).unwrap_or_default())
        }
        OutputFormat::Text => {
            let tables = [by(&sums), to_look_at(&first, |_| false)];
            let columns = context.reporter.columns();
            let texts = tables.into_iter().map(|table| text(&table, columns));
            Outcome {
                is_paged: true,
                output: texts.collect::<String>().into(),
                ..Outcome::new(format!("done: the page is in {}", page.display()))
            }
        }
    })
}

/// The report as data.
#[derive(Serialize)]
struct Report<'r> {
    schema: u32,
    page: PathBuf,
    total: Sum,
    by: Value,
    look_first: Vec<&'r str>,
    tasks: &'r [TaskRow],
}

/// Writes the page, and returns its path.
fn written_page(
    context: &Context<'_>,
    (directory, page): (&Path, Option<&Path>),
    (rows, sums, first): (&[TaskRow], &Sums, &[&TaskRow]),
) -> Result<PathBuf, PathError> {
    let project = &context.project;
    // The relative links would be broken on a page elsewhere.
    let has_page =
        |id: &str| page.is_none() && project.root().join(directory).join(id).join(PAGE).is_file();
    let [tasks, done, cost, input, output, time] = sums.total.texts();
    let facts = [
        ("Done", format!("{done} of {tasks}")),
        ("Cost", cost),
        ("Tokens in", input),
        ("Tokens out", output),
        ("Time", time),
    ];
    let tables = [by(sums), to_look_at(first, has_page), all(rows, has_page)];
    let headline = format!("{done} of {} are done", counted(sums.total.tasks, "task"));
    let place = directory.display().to_string();
    let about = ("a fleet of tasks", &*headline, &*place);
    let text = tables::page(about, &facts, &tables, context.redactor);
    write_page(project, page, directory.join(PAGE), &text)
}

/// Builds the table of sums.
fn by(sums: &Sums) -> Table {
    let all = ("all", String::new(), sums.total);
    let mut shown: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    let mut rows = Vec::new();
    for (by, value, sum) in std::iter::once(&all).chain(&sums.groups) {
        let number = shown.entry((by, sum::label(value))).or_default();
        *number += 1;
        if *number <= VALUES {
            let texts = [(*by).to_owned(), one_line(value, TEXT)];
            rows.push(Row::new(texts, sum.texts()));
        }
    }
    Table {
        title: "Sums",
        texts: vec!["by", ""],
        numbers: vec!["tasks", "done", "cost", "tokens in", "out", "time"],
        left_out: 1 + sums.groups.len() - rows.len(),
        rows,
        ..Table::default()
    }
}

/// Builds the table of changes to look at first.
fn to_look_at(first: &[&TaskRow], has_page: impl Fn(&str) -> bool) -> Table {
    let rows = first.iter().map(|row| {
        let why = if row.gate_changed {
            "the gate"
        } else {
            "the size"
        };
        let numbers = [row.stat.files, row.stat.added, row.stat.removed].map(grouped);
        let texts = [row.id.clone(), why.to_owned(), row.outcome().to_owned()];
        task(row, Row::new(texts, numbers), &has_page)
    });
    Table {
        title: "Changes to look at first",
        texts: vec!["task", "for", RESULT],
        numbers: vec!["files", "added", "removed"],
        rows: rows.collect(),
        ..Table::default()
    }
}

/// Builds the table of all tasks.
fn all(rows: &[TaskRow], has_page: impl Fn(&str) -> bool) -> Table {
    let listed = rows.iter().take(LISTED).map(|row| {
        let texts = [
            row.id.clone(),
            one_line(&row.title, 2 * TEXT),
            row.model.clone(),
            row.outcome().to_owned(),
        ];
        let numbers = [
            grouped(row.stat.files),
            grouped(row.lines()),
            row.cost.to_string(),
            elapsed(row.seconds.0),
        ];
        let error = row.error.as_ref();
        Row {
            note: error.map(|error| one_line(error, ERROR)),
            ..task(row, Row::new(texts, numbers), &has_page)
        }
    });
    Table {
        title: "The tasks",
        texts: vec!["task", REQUEST, "model", RESULT],
        numbers: vec!["files", "lines", "cost", "time"],
        rows: listed.collect(),
        left_out: rows.len().saturating_sub(LISTED),
        ..Table::default()
    }
}

/// Returns a row of a task, with a link to the task's page if there is one.
fn task(row: &TaskRow, shown: Row, has_page: impl Fn(&str) -> bool) -> Row {
    Row {
        folder: has_page(&row.id).then(|| row.id.clone()),
        outcome: row.is_done(),
        ..shown
    }
}

/// Formats a table as text; empty if it has no rows.
fn text(table: &Table, columns: Option<usize>) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let texts = table.texts.iter().map(|name| (*name, Align::Left));
    let numbers = table.numbers.iter().map(|name| (*name, Align::Right));
    let head = texts.chain(numbers).collect();
    let mut rows = table.cells();
    if let Some(columns) = columns {
        columns::shorten(&mut rows, table.texts.len(), columns);
    }
    let lines = columns::table(head, rows, &DISPENSABLE, columns);
    let more = table.others().map(|others| others + "\n");
    let more = more.unwrap_or_default();
    format!("{}\n\n{lines}\n{more}\n", table.title)
}

/// Formats all tasks as CSV, one task per line.
fn csv(rows: &[TaskRow]) -> String {
    let mut text = COLUMNS.replace(' ', ",").replace('/', "_") + "\n";
    for row in rows {
        let row = json!(row);
        let cells = COLUMNS
            .split(' ')
            .map(|name| match row.pointer(&format!("/{name}")) {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(text)) => cell(text),
                Some(Value::Object(labels)) => {
                    let labels = labels.iter().map(|(name, value)| format!("{name}={value}"));
                    cell(&labels.collect::<Vec<_>>().join(";").replace('"', ""))
                }
                Some(other) => other.to_string(),
            });
        text += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

/// Formats a cell on one line, quoted where necessary, so that no spreadsheet interprets it as a
/// formula.
fn cell(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let guard = if text.starts_with(['=', '+', '-', '@', '\t']) {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"']) {
        return format!("\"{guard}{}\"", text.replace('"', "\"\""));
    }
    format!("{guard}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_where_it_must_be_and_is_never_a_formula() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("-1,5", "\"'-1,5\""),
            ("two\nlines", "two lines"),
        ] {
            assert_eq!(cell(text), expected);
        }
    }
}
