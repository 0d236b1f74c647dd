//! Renders tables, and pages that consist of them, such as the results of many tasks. Pure.

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::elements::{anchor, badge, fact, left_out};
use super::text::HtmlEscaper;
use super::{promise, shell};
use crate::run::past::table::{REQUEST, RESULT, Row, Table};
use crate::secret::Redactor;
use crate::sys::numbers::percent;

/// The characters left unescaped in a link. A folder may have any name, even `javascript:`.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Renders a page of named facts and tables. `place` names their source.
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
            @for table in tables.iter().filter(|table| !table.rows.is_empty()) {
                (section(escaper, table.title, table, ("more", "fleet report --output-format csv")))
            }
        }
        footer { p {
            "Written by code-commit " (env!("CARGO_PKG_VERSION")) " from " code { (escaper.name(place)) } (promise(false))
        } }
    };
    shell(&format!("code-commit: {kind}"), &body, false)
}

/// Renders a table as a section. `what` names the omitted rows, and `elsewhere` says where to find
/// them.
pub fn section(
    escaper: HtmlEscaper<'_>,
    title: &str,
    table: &Table,
    (what, elsewhere): (&str, &str),
) -> Markup {
    html! { section {
        h2 { (title) }
        (shown(escaper, table, ("", 0)))
        (left_out(table.left_out, what, elsewhere))
    } }
}

/// Renders a table. `links` gives the number of rows that link to anchors on the page, and the
/// anchors' prefix.
pub fn shown(escaper: HtmlEscaper<'_>, table: &Table, links: (&str, usize)) -> Markup {
    let length = |row: &Row| row.bar[0].saturating_add(row.bar[1]);
    let most = table.rows.iter().map(length).max().filter(|most| *most > 0);
    html! {
        div.scroll { table class={ "tasks " (table.bars) } {
            thead { tr {
                @for name in &table.texts { th scope="col" { (name) } }
                @for name in &table.numbers { th.n scope="col" { (name) } }
                @if most.is_some() { th scope="col" { span.unseen { "in proportion" } } }
            } }
            tbody { @for (at, row) in table.rows.iter().enumerate() { tr {
                @let anchor = (at < links.1).then(|| anchor(links.0, at));
                (texts(escaper, row, &table.texts, anchor.as_deref()))
                @for number in &row.numbers { td.n { (escaper.name(number)) } }
                @if let Some(most) = most { td { (bar(table.bars, row.bar, most)) } }
            } } }
        } }
    }
}

fn texts(escaper: HtmlEscaper<'_>, row: &Row, heads: &[&str], anchor: Option<&str>) -> Markup {
    let link = |name| format!("./{}/report.html", utf8_percent_encode(name, PLAIN));
    let page = row.folder.as_deref().map(link);
    let note = row.note.iter().map(|note| escaper.name(note));
    html! {
        @for (at, (text, head)) in row.texts.iter().zip(heads).enumerate() {
            @let text = escaper.name(text);
            @match *head {
                _ if at == 0 => th scope="row" {
                    @if let Some(page) = &page { a href=(page) { code { (text) } } }
                    @else if let Some(anchor) = anchor { a href={ "#" (anchor) } { (text) } }
                    @else { (text) }
                    @for note in note.clone() { small { (note) } }
                },
                RESULT => td { @if !text.is_empty() { (badge(row.outcome, &text)) } },
                REQUEST => td.request { span title=(text) { (text) } },
                _ => td { (text) },
            }
        }
    }
}

/// Renders two amounts as a bar in proportion to `most`.
fn bar(kind: &str, [one, other]: [u64; 2], most: u64) -> Markup {
    html! {
        span class={ "bar " (kind) } aria-hidden="true" {
            b style={ "width:" (percent(one, most)) "%" } {}
            s style={ "width:" (percent(other, most)) "%" } {}
        }
    }
}
