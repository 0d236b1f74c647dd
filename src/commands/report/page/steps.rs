//! The steps of a run: each reply, and what came of it: changes and a build, tools, or a verdict. Pure.
//!
//! Guarantees that what it adds to a page is bounded, however much was done. What is beyond is counted.

use maud::{Markup, html};

use super::changes::{DiffRenderer, recorded};
use super::elements::{code, left_out, prose, within};
use super::text::HtmlEscaper;
use super::words::{self, StatusMark, count};
use super::{output, reply};
use crate::model::Purpose;
use crate::record::result::SectionRecord;
use crate::record::run_files::STEPS;
use crate::record::step::{Action, Step};
use crate::run::past::history::{IdleReply, PastStep};

/// The number of steps shown in any case; a commit has four at the most.
const LEAST: usize = 12;
/// The markup budget for the steps of a page beyond these, in bytes; the last one may exceed it.
const MARKUP: usize = 4 << 20;
/// The maximum number of a step's tools shown, and of its files named.
const NAMED: usize = 50;
/// The limits of a tool's shown input, in lines and bytes.
const INPUT: (usize, usize) = (1000, 32 << 10);
/// The maximum number of lines of a result that is shown expanded.
const OPENED: usize = 12;

/// The name of a step's anchor; steps are counted from 0 on.
pub fn anchor(number: usize) -> String {
    format!("a{}", number + 1)
}

/// Returns the outcome of a step, in a word or two.
pub fn ended(past: &PastStep) -> (StatusMark, String) {
    let step = &past.step;
    let (status, words) = match (&past.reply, &step.build, step.passed) {
        (_, Some(build), _) => return words::build(build),
        _ if step.is_own() => match step.actions.as_slice() {
            [] => (StatusMark::Open, "not ended"),
            actions => return actions_ended(actions),
        },
        (None, ..) => (StatusMark::Open, "no answer"),
        (Some(Err(_)), ..) => (StatusMark::Bad, "no reply"),
        _ if !step.actions.is_empty() => return actions_ended(&step.actions),
        (.., Some(true)) => (StatusMark::Good, "passed"),
        (.., Some(false)) => (StatusMark::Bad, "not passed"),
        _ if step.purpose == Purpose::REPORT || step.answer.is_some() => {
            (StatusMark::Good, "answered")
        }
        _ if let Some(idle) = past.idle() => match idle {
            IdleReply::Words => (StatusMark::Open, "words"),
            IdleReply::Call => (StatusMark::Bad, "not ended"),
            IdleReply::NotUnderstood => (StatusMark::Bad, "nothing done"),
        },
        _ if step.is_agents() => (StatusMark::Open, "answered"),
        _ if step.edits.is_none() => (StatusMark::Bad, "not applied"),
        // Of a run that was killed, the build's log may tell more.
        _ => match past.build_log() {
            Some((status, _)) => (StatusMark::Open, status),
            None => (StatusMark::Open, "not built"),
        },
    };
    (status, words.to_owned())
}

fn actions_ended(actions: &[Action]) -> (StatusMark, String) {
    let failed = actions.iter().filter(|action| action.is_bad()).count();
    match (actions, failed) {
        ([action], 0) => (StatusMark::Good, action.tool.to_string()),
        ([action], _) => (
            StatusMark::Bad,
            format!("{} {}", action.tool, done_in_words(action)),
        ),
        (all, 0) => (StatusMark::Good, count(all.len(), "tool")),
        (all, _) => {
            let words = format!("{failed} of {} failed", count(all.len(), "tool"));
            (StatusMark::Bad, words)
        }
    }
}

/// Returns the outcome of a tool call in words.
fn done_in_words(action: &Action) -> String {
    match action.exit_code {
        Some(code) if !action.failed => format!("exit code {code}"),
        _ if action.failed => "failed".to_owned(),
        _ => "done".to_owned(),
    }
}

/// The steps in their order, as many as the page may hold.
pub fn show(
    escaper: HtmlEscaper<'_>,
    steps: &[PastStep],
    sections: &[SectionRecord],
    changes: &mut DiffRenderer<'_>,
) -> Vec<Markup> {
    within(MARKUP, LEAST, steps, |number, past, left| {
        let id = anchor(number);
        let (status, words) = ended(past);
        html! {
            section.step id=(id) {
                h2 { (past.step.id().title()) " " (status.badge(&escaper.name(&words))) }
                @if !past.step.is_agents() { (reply::prompt(escaper, &past.step)) }
                @match &past.reply {
                    None if past.step.is_own() => {}
                    None => { h3 { "Reply" } p.note { "There is none." } }
                    Some(Err(error)) => (reply::error(escaper, error)),
                    Some(Ok(text)) if past.step.purpose == Purpose::REPORT => {
                        (reply::report(escaper, &id, text, sections))
                    }
                    Some(Ok(text)) if past.step.is_agents() => (said(escaper, &past.step, text)),
                    Some(Ok(text)) => (edits(escaper, &id, past, text, changes)),
                }
                @if past.step.is_agents() { (done(escaper, &id, past, left)) }
                @if let Some(log) = past.build_log() {
                    (reply::build(escaper, &id, past.step.build.as_ref(), log))
                }
            }
        }
    })
}

/// Renders an agent's message: its words and its whole reply; for a reply that was not understood, the latter alone.
fn said(escaper: HtmlEscaper<'_>, step: &Step, text: &str) -> Markup {
    let thoughts = step.thoughts.as_deref();
    if thoughts.is_none() && [Purpose::AUDIT, Purpose::COMPRESSION].contains(&step.purpose) {
        return reply::words(escaper, text);
    }
    html! {
        @if let Some(thoughts) = thoughts { (prose(escaper, thoughts, INPUT)) }
        (reply::reply(escaper, text, thoughts.is_none() && step.actions.is_empty() && step.answer.is_none()))
    }
}

/// A reply of edits, and what it changed.
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

/// Renders an agent's actions in a step.
fn done(escaper: HtmlEscaper<'_>, id: &str, past: &PastStep, left: usize) -> Markup {
    let step = &past.step;
    let actions = step.actions.iter().take(NAMED);
    let shown = within(left, 0, actions, |number, action, _| {
        tool(escaper, &format!("{id}-t{}", number + 1), action)
    });
    html! {
        @for tool in &shown { (tool) }
        (left_out(step.actions.len() - shown.len(), "more tool", STEPS))
        @if let Some(tools) = &past.tools {
            @let opened = tools.lines().count() <= OPENED;
            (part("The tools, and what came of them", &output::show(escaper, &format!("{id}-tools"), tools), opened))
        }
        @if let Some(answer) = step.answer.as_ref().filter(|_| step.purpose != Purpose::AUDIT) {
            h3 { "Answer" }
            (prose(escaper, answer, INPUT))
        }
        @if let Some(idle) = past.idle() { p.note { (why_idle(idle)) } }
        (files(escaper, step))
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

/// A tool, its input, and what came of it.
fn tool(escaper: HtmlEscaper<'_>, id: &str, action: &Action) -> Markup {
    let status = if action.is_bad() {
        StatusMark::Bad
    } else {
        StatusMark::Good
    };
    let input = action.input_text();
    let input = input.trim_end();
    let is_line = input.lines().count() == 1;
    html! {
        h3 { code { (escaper.name(&action.tool)) } " " (status.badge(&done_in_words(action))) }
        @if let Some(took) = action.seconds { p.took { (words::seconds(took.0)) } }
        @if is_line { (code(escaper, input, INPUT)) }
        // The reply has it, too, as a rule.
        @else if !input.is_empty() { (part("Its input", &code(escaper, input, INPUT), false)) }
        @if let Some(diff) = &action.diff { (part("What it changed", &recorded(escaper, diff, INPUT), true)) }
        @if let Some(result) = &action.result {
            @let opened = action.failed || result.lines().count() <= OPENED;
            (part("Its result", &output::show(escaper, id, result), opened))
        }
    }
}

fn part(name: &str, content: &Markup, opened: bool) -> Markup {
    html! { details.build open[opened] { summary { (name) } (content) } }
}

fn files(escaper: HtmlEscaper<'_>, step: &Step) -> Markup {
    let more = step.changed_files().count().saturating_sub(NAMED);
    html! {
        @if step.changed_files().next().is_some() {
            h3 { "Files" }
            ul {
                @for (did, path) in step.changed_files().take(NAMED) {
                    li { (did) " " code { (escaper.name(path)) } }
                }
                @if more > 0 { li { "and " (count(more, "more file")) } }
            }
        }
    }
}
