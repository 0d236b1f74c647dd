//! Renders a page that consists of tables, such as the sum of many tasks. Pure.

use maud::{Markup, html};
use percent_encoding::utf8_percent_encode;

use super::elements::{badge, columns, fact, left_out, numbers};
use super::overview::PLAIN;
use super::text::HtmlEscaper;
use super::{promise, shell};
use crate::secret::Redactor;

/// The head of a column of outcomes.
pub const RESULT: &str = "result";
/// The head of a column of long texts, which are wrapped.
pub const REQUEST: &str = "request";

/// A table of text columns, then numeric ones.
#[derive(Debug, Default)]
pub struct Table {
    /// The heading.
    pub title: &'static str,
    /// The heads of the text columns.
    pub texts: Vec<&'static str>,
    /// The heads of the numeric columns.
    pub numbers: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The number of rows that are not shown.
    pub left_out: usize,
}

/// A row of a table.
#[derive(Debug, Default)]
pub struct Row {
    /// The folder beside the page that has the row's own page, if there is one.
    pub folder: Option<String>,
    /// Success or failure, if it is known, which a last text column of the name [`RESULT`] states.
    pub outcome: Option<bool>,
    /// The text cells.
    pub texts: Vec<String>,
    /// A text below the first cell.
    pub note: Option<String>,
    /// The numeric cells.
    pub numbers: Vec<String>,
}

/// Renders a page of facts, each with its name, and tables. `place` says what they were read from.
pub fn page(
    (kind, headline, place): (&str, &str, &str),
    facts: &[(&str, String)],
    tables: &[Table],
    redactor: &Redactor,
) -> String {
    let escaper = HtmlEscaper::new(redactor);
    let body = html! {
        header {
            p.kicker { "code-commit \u{b7} " (kind) }
            h1 { (headline) }
        }
        main {
            section aria-label="In numbers" { dl.facts {
                @for (name, value) in facts { (fact(name, value, None)) }
            } }
            @for table in tables.iter().filter(|table| !table.rows.is_empty()) { section {
                (shown(escaper, table))
                (left_out(table.left_out, "more", "fleet report --output-format csv"))
            } }
        }
        footer { p {
            "Written by code-commit " (env!("CARGO_PKG_VERSION")) " from " code { (escaper.name(place)) } (promise(false))
        } }
    };
    shell(&format!("code-commit: {kind}"), &body, false)
}

/// Renders a table below its heading.
pub fn shown(escaper: HtmlEscaper<'_>, table: &Table) -> Markup {
    html! {
        h2 { (table.title) }
        div.scroll { table.tasks {
            thead { tr { (columns(&table.texts, &table.numbers)) } }
            tbody { @for row in &table.rows { (line(escaper, row, &table.texts)) } }
        } }
    }
}

fn line(escaper: HtmlEscaper<'_>, row: &Row, heads: &[&str]) -> Markup {
    let folder = row.folder.as_deref();
    let page = folder.map(|name| format!("./{}/report.html", utf8_percent_encode(name, PLAIN)));
    let note = row.note.iter().map(|note| escaper.name(note));
    html! {
        tr {
            @for (at, (text, head)) in row.texts.iter().zip(heads).enumerate() {
                @let text = escaper.name(text);
                @match *head {
                    _ if at == 0 => th scope="row" {
                        @if let Some(page) = &page { a href=(page) { code { (text) } } } @else { (text) }
                        @for note in note.clone() { small { (note) } }
                    },
                    RESULT => td { (badge(row.outcome, &text)) },
                    REQUEST => td.long { (text) },
                    _ => td { (text) },
                }
            }
            (numbers(row.numbers.iter().cloned()))
        }
    }
}
