//! One query of a run and what came of it: the prompt's parts, the reply, its changes, the build. Pure.

use maud::{Markup, html};

use super::changes::Changes;
use super::output;
use super::text::{Ink, beginning};
use super::words::{self, Sign, bytes, percent};
use super::{step, steps};
use crate::model::Purpose;
use crate::record::{PartRecord, RunRecord, SectionRecord, Step};
use crate::review::history::PastAttempt;
use crate::sys::numbers::grouped;

/// How much of a reply is shown beside its changes, in lines and bytes.
const PROSE: (usize, usize) = (1000, 32 << 10);
/// How much of a report is shown.
const REPORT: (usize, usize) = (20_000, 1 << 20);
/// How many parts of a prompt are shown; it has five at the most.
const PARTS: usize = 12;

/// How many sections of a report are listed; it has five.
const SECTIONS: usize = 50;

/// The name of an attempt's anchor.
#[must_use]
pub fn name_anchor(number: usize) -> String {
    format!("a{}", number + 1)
}

/// How the attempt ended, in a word or two.
#[must_use]
pub fn ended(attempt: &PastAttempt) -> (Sign, String) {
    let build = attempt.record.as_ref();
    let build = build.and_then(|record| record.build.as_ref());
    match (&attempt.reply, build) {
        (_, Some(build)) => words::build(build),
        (None, None) => (Sign::Open, "no answer".to_owned()),
        (Some(Err(_)), None) => (Sign::Bad, "no reply".to_owned()),
        (Some(Ok(reply)), None) if step::is_agents(&attempt.step) => steps::ended(attempt, reply),
        (Some(Ok(_)), None) if attempt.step.purpose == Purpose::REPORT => {
            (Sign::Good, "answered".to_owned())
        }
        (Some(Ok(_)), None) => match &attempt.record {
            Some(record) if record.edits.is_none() => (Sign::Bad, "not applied".to_owned()),
            // Without a record, the build's own log tells how it ended.
            _ => match &attempt.build {
                Some((status, _)) if status == "exit code: 0" => (Sign::Good, "passed".to_owned()),
                Some((status, _)) => (Sign::Bad, status.clone()),
                None => (Sign::Open, "not built".to_owned()),
            },
        },
    }
}

/// The attempt of this number, from 0 on.
#[must_use]
pub fn show(
    ink: Ink<'_>,
    number: usize,
    attempt: &PastAttempt,
    run: Option<&RunRecord>,
    changes: &mut Changes<'_>,
) -> Markup {
    let id = name_anchor(number);
    let (sign, ended) = ended(attempt);
    let sections = run.and_then(|run| run.sections.as_deref());
    let sections = sections.unwrap_or_default();
    let sections = &sections[..sections.len().min(SECTIONS)];
    html! {
        section.attempt id=(id) {
            h2 {
                (attempt.step.title()) " "
                span class={ "ended " (sign.class()) } { (sign.mark()) " " (ended) }
            }
            @if let Some(record) = &attempt.record { (prompt(ink, record)) }
            @match &attempt.reply {
                None => { h3 { "Reply" } p.note { "There is none." } }
                Some(Err(error)) => (failure(ink, error)),
                Some(Ok(reply)) if attempt.step.purpose == Purpose::REPORT => {
                    (report(ink, &id, reply, sections))
                }
                Some(Ok(reply)) => (self::reply(ink, &id, reply, attempt, changes)),
            }
            @if let Some((status, output)) = &attempt.build {
                (build(ink, &id, attempt, status, output))
            }
        }
    }
}

/// What the prompt is made of, by size.
fn prompt(ink: Ink<'_>, record: &Step) -> Markup {
    let parts = &record.prompt[..record.prompt.len().min(PARTS)];
    let total = parts.iter().map(|part| part.bytes);
    let total = total.fold(0, u64::saturating_add);
    if total == 0 {
        return html! {};
    }
    let tokens = record.usage.map(|usage| usage.input_tokens);
    html! {
        h3 { "Prompt" }
        figure {
            div.parts aria-hidden="true" {
                @for (number, part) in parts.iter().enumerate() {
                    span class={ "p" (number % 5 + 1) }
                        style={ "width:" (percent(part.bytes, total)) "%" } {}
                }
            }
            div.scroll { table.narrow {
                thead { tr {
                    th scope="col" { "part" }
                    th.n scope="col" { "size" }
                    th.n scope="col" { "share" }
                    @if tokens.is_some() { th.n scope="col" { "tokens, about" } }
                } }
                tbody {
                    @for (number, part) in parts.iter().enumerate() {
                        (row(ink, number, part, total, tokens))
                    }
                }
            } }
        }
    }
}

fn row(ink: Ink<'_>, number: usize, part: &PartRecord, total: u64, tokens: Option<u64>) -> Markup {
    // What the vendor counted is shared out by size.
    let share = tokens.map(|tokens| {
        let share = u128::from(tokens) * u128::from(part.bytes) / u128::from(total.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    });
    html! {
        tr {
            th scope="row" {
                span class={ "key p" (number % 5 + 1) } {} " " (ink.name(&part.part))
            }
            td.n { (bytes(part.bytes)) }
            td.n { (percent(part.bytes, total)) "\u{a0}%" }
            @if let Some(share) = share { td.n { (grouped(share)) } }
        }
    }
}

/// The error in place of a reply.
#[must_use]
pub fn failure(ink: Ink<'_>, error: &str) -> Markup {
    let error = ink.text(error);
    let (shown, is_all) = beginning(&error, PROSE.0, PROSE.1);
    html! {
        h3 { "No reply" }
        pre.prose.error { (shown.trim_end()) @if !is_all { "\n\u{2026}" } }
    }
}

fn reply(
    ink: Ink<'_>,
    id: &str,
    reply: &str,
    attempt: &PastAttempt,
    changes: &mut Changes<'_>,
) -> Markup {
    let record = attempt.record.as_ref();
    let rejected = record.is_some_and(|record| record.edits.is_none());
    // Where nothing of it was applied, all of it may tell why.
    let text = if rejected {
        reply.to_owned()
    } else {
        prose(reply)
    };
    let text = ink.text(&text);
    let (shown, is_all) = beginning(text.trim_matches('\n'), PROSE.0, PROSE.1);
    let is_prose = !shown.trim().is_empty();
    html! {
        @if rejected || is_prose { h3 { "Reply" } }
        @if rejected { p.note { "Nothing of this reply was applied." } }
        @if is_prose {
            pre.prose { (shown.trim_end()) @if !is_all { "\n\u{2026}" } }
        }
        @if !rejected {
            h3 { "Changes" }
            @if attempt.changes.is_empty() { p.note { "The reply changed no file." } }
            @else { (changes.show(id, &attempt.changes)) }
        }
    }
}

/// What a reply says outside of its blocks.
fn prose(reply: &str) -> String {
    let mut text = String::new();
    let mut open: Option<usize> = None;
    for line in reply.split_inclusive('\n') {
        let rest = line.trim_start_matches('^');
        let carets = line.len() - rest.len();
        let word = rest.trim_end();
        match open {
            Some(opened) if carets == opened && matches!(word, "end" | "delete") => open = None,
            Some(_) => {}
            None if carets >= 3 => {
                open = (!matches!(word, "end" | "delete" | "")).then_some(carets);
            }
            // Where blocks were, there is not more than one empty line.
            None if word.is_empty() && (text.is_empty() || text.ends_with("\n\n")) => {}
            None => text.push_str(line),
        }
    }
    text
}

/// A report as it is, with its sections as headings.
fn report(ink: Ink<'_>, id: &str, text: &str, sections: &[SectionRecord]) -> Markup {
    // Line by line, so that the lines are those that the sections tell of.
    let text = ink.text(text);
    let (shown, is_all) = beginning(&text, REPORT.0, REPORT.1);
    let lines: Vec<&str> = shown.split_inclusive('\n').collect();
    let mut starts: Vec<(usize, &SectionRecord)> = sections
        .iter()
        .filter_map(|section| Some((section.first_line?.checked_sub(1)?, section)))
        .filter(|(start, _)| *start < lines.len())
        .collect();
    starts.sort_by_key(|(start, _)| *start);
    let first = starts.first().map_or(lines.len(), |(start, _)| *start);
    let ends = starts.iter().skip(1).map(|(start, _)| *start);
    let ends: Vec<usize> = ends.chain([lines.len()]).collect();
    html! {
        h3 { "Report" }
        @if !sections.is_empty() {
            ol.sections {
                @for (number, section) in sections.iter().enumerate() {
                    li {
                        @if starts.iter().any(|(_, shown)| std::ptr::eq(*shown, section)) {
                            a href={ "#" (id) "-s" (number + 1) } { (ink.name(&section.title)) }
                        } @else {
                            (ink.name(&section.title)) " "
                            @if section.first_line.is_none() { span.quiet { "is missing" } }
                        }
                    }
                }
            }
        }
        @if first > 0 { pre.prose { (lines[..first].concat()) } }
        @for ((start, section), end) in starts.iter().zip(ends) {
            @let number = sections.iter().position(|other| std::ptr::eq(other, *section));
            pre.prose id={ (id) "-s" (number.unwrap_or_default() + 1) } {
                (lines[*start..end].concat())
            }
        }
        @if !is_all { p.left-out { "The rest of the report is left out." } }
    }
}

fn build(ink: Ink<'_>, id: &str, attempt: &PastAttempt, status: &str, output: &str) -> Markup {
    let record = attempt.record.as_ref();
    let record = record.and_then(|record| record.build.as_ref());
    let (sign, _) = record.map_or((Sign::Open, String::new()), words::build);
    html! {
        h3 { "Build" }
        details.build open[sign != Sign::Good] {
            summary {
                code { "build.sh" } " "
                span class={ "ended " (sign.class()) } {
                    (sign.mark()) " "
                    @match sign { Sign::Good => "passed", Sign::Bad => "failed", Sign::Open => "ran" }
                }
                " " span.quiet {
                    (ink.name(status))
                    @if let Some(record) = record { ", " (words::seconds(record.seconds.0)) }
                }
            }
            (output::show(ink, id, output))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_what_stands_outside_of_the_blocks() {
        for (reply, expected) in [
            ("Done.\n^^^a\nx\n^^^end\nBye.\n", "Done.\nBye.\n"),
            ("A\n\n^^^a\n^^^delete\n\nB", "A\n\nB"),
            ("^^^^a\n^^^end\n^^^^end\nB", "B"),
            ("A\n^^^a\r\nx\r\n^^^end\r\nB", "A\nB"),
            ("A\n^^^a\nnever closed", "A\n"),
            ("^^^end\nB ^^^c\n", "B ^^^c\n"),
        ] {
            assert_eq!(prose(reply), expected, "{reply:?}");
        }
    }
}
