//! Renders the steps of a run: each reply and its result, such as changes and a build, tools, or a verdict.
//! Pure.
//!
//! Guarantees that the markup it adds is bounded, however much was done. Omitted parts are counted.

use maud::{Markup, html};

use super::changes::{DiffRenderer, recorded};
use super::elements::{badge, code, left_out, prose, within};
use super::text::HtmlEscaper;
use super::words::{self, count};
use super::{output, reply};
use crate::model::Purpose;
use crate::record::result::SectionRecord;
use crate::record::run_files::STEPS;
use crate::record::step::{Action, BuildRecord, Step};
use crate::run::past::past_step::{IdleReply, PastStep};
use crate::run::past::story::{Part, build_verb};

/// The number of steps always shown; a commit has at most four.
const LEAST: usize = 12;
/// The markup budget for further steps on a page, in bytes; the last one may exceed it.
const MARKUP: usize = 4 << 20;
/// The maximum number of tools shown and of files named per step.
const NAMED: usize = 50;
/// The limits of a tool's input, in lines and bytes.
const INPUT: (usize, usize) = (1000, 32 << 10);
/// The maximum number of lines for which a result is initially expanded.
const OPENED: usize = 12;

/// Returns the name of a step's anchor; steps are numbered from 0.
pub fn anchor(number: usize) -> String {
    format!("a{}", number + 1)
}

/// Returns the outcome of a step: whether it is good, if that is known, and a word or two.
pub fn ended(past: &PastStep) -> (Option<bool>, String) {
    let step = &past.step;
    let (status, words) = match (&past.reply, step.passed) {
        _ if let Some(build) = &step.build => {
            let words = if build.passed() { "" } else { "failed, " };
            return (Some(build.passed()), format!("{words}{build}"));
        }
        _ if step.is_own() && step.actions.is_empty() => (None, "not ended"),
        (None, _) if !step.is_own() => (None, "no answer"),
        (Some(Err(_)), _) if !step.is_own() => (Some(false), "no reply"),
        _ if !step.actions.is_empty() => return actions_ended(&step.actions),
        (_, Some(true)) => (Some(true), "passed"),
        (_, Some(false)) => (Some(false), "not passed"),
        _ if step.purpose.is_reports() || step.answer.is_some() => (Some(true), "answered"),
        _ if let Some(idle) = past.idle() => match idle {
            IdleReply::Words => (None, "words"),
            IdleReply::Call => (Some(false), "not ended"),
            IdleReply::NotUnderstood => (Some(false), "nothing done"),
        },
        _ if step.is_agents() => (None, "answered"),
        _ if step.edits.is_none() => (Some(false), "not applied"),
        // After a kill, the build's log may still tell the status.
        _ => (
            None,
            past.build_log().map_or("not built", |(status, _)| status),
        ),
    };
    (status, words.to_owned())
}

fn actions_ended(actions: &[Action]) -> (Option<bool>, String) {
    let failed = actions.iter().filter(|action| action.is_bad()).count();
    let words = match (actions, failed) {
        ([action], 0) => action.tool.to_string(),
        ([action], _) => format!("{} {}", action.tool, done_in_words(action)),
        (all, 0) => count(all.len(), "tool"),
        (all, _) => format!("{failed} of {} failed", count(all.len(), "tool")),
    };
    (Some(failed == 0), words)
}

/// Returns the outcome of a tool call in words.
fn done_in_words(action: &Action) -> String {
    match action.exit_code {
        _ if action.failed => "failed".to_owned(),
        Some(code) => format!("exit code {code}"),
        None => "done".to_owned(),
    }
}

/// Renders the steps in order, as many as the page has room for.
pub fn show(
    escaper: HtmlEscaper<'_>,
    steps: &[PastStep],
    sections: &[SectionRecord],
    changes: &mut DiffRenderer<'_>,
) -> Vec<Markup> {
    within(MARKUP, LEAST, steps, |number, past, left| {
        let (id, (status, words)) = (anchor(number), ended(past));
        html! {
            section.step id=(id) {
                h2 { (past.step.id().title()) " " (badge(status, &escaper.name(&words))) }
                @if !past.step.is_agents() { (reply::prompt(escaper, &past.step)) }
                @for part in past.story() {
                    @match part {
                        Part::Findings(text) => (reply::report(escaper, &id, text, &[])),
                        Part::Report(text) => (reply::report(escaper, &id, text, sections)),
                        Part::Edits(text) => (edits(escaper, &id, past, text, changes)),
                        part => (told(escaper, &id, past, part, left)),
                    }
                }
            }
        }
    })
}

/// Renders a reply with edits, and its changes.
fn edits(
    escaper: HtmlEscaper<'_>,
    id: &str,
    past: &PastStep,
    reply: &str,
    changes: &mut DiffRenderer<'_>,
) -> Markup {
    let rejected = past.step.edits.is_none();
    html! {
        (reply::reply(escaper, reply, rejected))
        @if rejected { p.note { "Nothing of this reply was applied." } }
        @else {
            h3 { "Changes" }
            @if past.changes.is_empty() { p.note { "The reply changed no file." } }
            @else { (changes.show(id, &past.changes)) }
        }
    }
}

/// Renders any other part of a step.
fn told(
    escaper: HtmlEscaper<'_>,
    id: &str,
    past: &PastStep,
    part: Part<'_>,
    left: usize,
) -> Markup {
    let step = &past.step;
    match part {
        Part::NoReply => html! { h3 { "Reply" } p.note { "There is none." } },
        Part::Error(error) => {
            html! { h3 { "No reply" } div.error { (prose(escaper, error, reply::REPLY)) } }
        }
        Part::Thoughts(thoughts) => prose(escaper, thoughts, INPUT),
        Part::Reply(text)
            if step.thoughts.is_none()
                && [Purpose::AUDIT, Purpose::COMPRESSION].contains(&step.purpose) =>
        {
            html! { h3 { "Reply" } (prose(escaper, text, reply::REPLY)) }
        }
        // An unrecognised reply is all there is to show, so show it expanded.
        Part::Reply(text) => {
            let is_told =
                step.thoughts.is_some() || !step.actions.is_empty() || step.answer.is_some();
            reply::reply(escaper, text, !is_told)
        }
        Part::Actions(actions) => {
            let shown = within(left, 0, actions.iter().take(NAMED), |number, action, _| {
                tool(escaper, &format!("{id}-t{}", number + 1), action)
            });
            html! {
                @for tool in &shown { (tool) }
                (left_out(actions.len() - shown.len(), "more tool", STEPS))
            }
        }
        Part::Tools(text) => {
            let output = output::show(escaper, &format!("{id}-tools"), text);
            fold(
                "The tools, and what came of them",
                &output,
                text.lines().count() <= OPENED,
            )
        }
        Part::Answer(answer) => html! { h3 { "Answer" } (prose(escaper, answer, INPUT)) },
        Part::Idle(idle, _) => html! { p.note { (why_idle(idle)) } },
        Part::Build(status, output) => build(escaper, id, step.build.as_ref(), (status, output)),
        Part::Files => files(escaper, step),
        Part::Report(_) | Part::Findings(_) | Part::Edits(_) => html! {},
    }
}

fn why_idle(idle: IdleReply) -> &'static str {
    match idle {
        IdleReply::Words => {
            "This reply did not end the work: it is a question, or a report that did not count."
        }
        IdleReply::Call => "The call did not come to its end: the run ended first.",
        IdleReply::NotUnderstood => {
            "Nothing came of this reply: it was not understood, or the run ended before."
        }
    }
}

/// Renders a tool call with its input and result.
fn tool(escaper: HtmlEscaper<'_>, id: &str, action: &Action) -> Markup {
    let input = action.input_text();
    let input = input.trim_end();
    let shown = code(escaper, input, INPUT);
    html! {
        h3 {
            code { (escaper.name(&action.tool)) } " "
            (badge(Some(!action.is_bad()), &done_in_words(action)))
        }
        @if let Some(took) = action.seconds { p.took { (words::seconds(took.0)) } }
        // The reply usually contains the input as well.
        @match input.lines().count() { 0 => {}, 1 => (shown), _ => (fold("Its input", &shown, false)) }
        @if let Some(diff) = &action.diff { (fold("What it changed", &recorded(escaper, diff, INPUT), true)) }
        @if let Some(result) = &action.result {
            @let opened = action.failed || result.lines().count() <= OPENED;
            (fold("Its result", &output::show(escaper, id, result), opened))
        }
    }
}

fn fold(name: &str, content: &Markup, opened: bool) -> Markup {
    html! { details.build open[opened] { summary { (name) } (content) } }
}

/// Renders the outcome of a build, and its output from the log.
fn build(
    escaper: HtmlEscaper<'_>,
    id: &str,
    record: Option<&BuildRecord>,
    (status, output): (&str, &str),
) -> Markup {
    let passed = record.map(BuildRecord::passed);
    html! {
        h3 { "Build" }
        details.build open[passed != Some(true)] {
            summary { code { "build.sh" } " " (badge(passed, build_verb(record))) " " span.quiet {
                (escaper.name(status))
                @if let Some(record) = record { ", " (words::seconds(record.seconds.0)) }
            } }
            (output::show(escaper, id, output))
        }
    }
}

/// Renders the files that an agent changed.
fn files(escaper: HtmlEscaper<'_>, step: &Step) -> Markup {
    let more = step.changed_files().count().saturating_sub(NAMED);
    html! {
        h3 { "Files" }
        ul {
            @for (did, path) in step.changed_files().take(NAMED) { li { (did) " " code { (escaper.name(path)) } } }
            @if more > 0 { li { "and " (count(more, "more file")) } }
        }
    }
}
