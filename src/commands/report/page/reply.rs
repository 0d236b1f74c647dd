//! Renders a step's exchange: the prompt's parts, the reply or report, and the build. Pure.

use maud::{Markup, html};

use super::elements::{bar, code, columns, numbers, unseen_column};
use super::text::{HtmlEscaper, beginning};
use super::words::bytes;
use crate::record::result::SectionRecord;
use crate::record::step::{PartRecord, Step};
use crate::sys::numbers::{grouped, percent};

/// The limits of a reply, in lines and bytes.
pub const REPLY: (usize, usize) = (1000, 32 << 10);
/// The limits of a report, in lines and bytes.
const REPORT: (usize, usize) = (20_000, 1 << 20);
/// The maximum number of prompt parts shown; a prompt has at most five.
const PARTS: usize = 12;
/// The maximum number of report sections listed; a report has five.
const SECTIONS: usize = 50;

/// Renders the parts of the prompt by size.
pub fn prompt(escaper: HtmlEscaper<'_>, step: &Step) -> Markup {
    let parts = &step.prompt[..step.prompt.len().min(PARTS)];
    let total = parts
        .iter()
        .fold(0, |sum: u64, part| sum.saturating_add(part.bytes));
    if total == 0 {
        return html! {};
    }
    // The vendor counts the whole prompt; divide its tokens among the parts by size.
    let tokens = step.usage.map(|usage| u128::from(usage.input_tokens));
    let share = |part: &PartRecord| {
        let share = tokens? * u128::from(part.bytes) / u128::from(total);
        Some(grouped(u64::try_from(share).unwrap_or(u64::MAX)))
    };
    let heads = &["size", "share", "tokens, about"][..2 + usize::from(tokens.is_some())];
    html! {
        h3 { "Prompt" }
        div.scroll { table.narrow {
            thead { tr { (columns(&["part"], heads)) (unseen_column()) } }
            tbody { @for part in parts { tr {
                th scope="row" { (escaper.name(&part.part)) }
                (numbers([bytes(part.bytes), percent(part.bytes, total) + "\u{a0}%"]))
                (numbers(share(part)))
                td { (bar("time", part.bytes, 0, total)) }
            } } }
        } }
    }
}

/// Renders a reply verbatim; collapsed unless `opened`.
pub fn reply(escaper: HtmlEscaper<'_>, reply: &str, opened: bool) -> Markup {
    let shown = code(escaper, reply, REPLY);
    html! {
        h3 { "Reply" }
        @if opened { (shown) }
        @else { details { summary { "As it came, " (bytes(reply.len() as u64)) } (shown) } }
    }
}

/// Renders a report verbatim, with its sections as headings. `id` is the prefix of the anchors.
pub fn report(
    escaper: HtmlEscaper<'_>,
    id: &str,
    text: &str,
    sections: &[SectionRecord],
) -> Markup {
    let sections = &sections[..sections.len().min(SECTIONS)];
    // Split by line, so that line numbers match those of the recorded sections.
    let text = escaper.text(text);
    let (shown, is_all) = beginning(&text, REPORT.0, REPORT.1);
    let count = shown.lines().count();
    let starts = sections.iter().enumerate().map(|(number, section)| {
        let start = section.first_line.and_then(|line| line.checked_sub(1));
        (
            start.filter(|start| *start < count),
            format!("{id}-s{}", number + 1),
        )
    });
    let starts: Vec<_> = starts.collect();
    html! {
        h3 { "Report" }
        @if !sections.is_empty() {
            ol.sections { @for (section, (start, anchor)) in sections.iter().zip(&starts) {
                @let title = escaper.name(&section.title);
                li {
                    @if start.is_some() { a href={ "#" (anchor) } { (title) } } @else { (title) " " }
                    @if section.first_line.is_none() { span.quiet { "is missing" } }
                }
            } }
        }
        pre.prose { @for (at, line) in shown.split_inclusive('\n').enumerate() {
            @for (_, anchor) in starts.iter().filter(|(start, _)| *start == Some(at)) {
                span id=(anchor) {}
            }
            (line)
        } }
        @if !is_all { p.left-out { "The rest of the report is left out." } }
    }
}
