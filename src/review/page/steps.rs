//! The calls of an agent's run: what was asked for, each reply, the tools with what came of them. Pure.
//!
//! Guarantees that what it adds to a page is bounded, however much an agent did. What is beyond is counted.

use maud::{Markup, html};

use super::attempt::{self, name_anchor};
use super::output;
use super::step::{self, Came, UsedTool};
use super::text::{Ink, beginning};
use super::words::{Sign, count};
use crate::model::Purpose;
use crate::record::{self, AgentRecord};
use crate::review::history::PastAttempt;

/// How many calls have a row in the lists; an agent makes up to a thousand, unless it is set otherwise.
pub const CALLS: usize = 1000;
/// How much markup the calls of a page may take, in bytes; the last one may go beyond.
const MARKUP: usize = 4 << 20;
/// How much of a reply is shown, in lines and bytes.
const REPLY: (usize, usize) = (1000, 32 << 10);
/// How many of the user's answers are shown.
const ANSWERS: usize = 50;
/// How many tools of a call, and how many of its files are named.
const NAMED: usize = 50;
/// A result of up to so many lines is shown opened.
const OPENED: usize = 12;

/// What the run was about.
#[must_use]
pub fn about(ink: Ink<'_>, agent: &AgentRecord, request: Option<&Markup>) -> Markup {
    let more = agent.answers.len().saturating_sub(ANSWERS);
    html! {
        section {
            h2 { "The request" }
            @if let Some(request) = request { (request) }
            @else { p.note { "The run went on with what was asked for before." } }
            @if !agent.answers.is_empty() {
                h3 { "The user's answers" }
                ol {
                    @for answer in agent.answers.iter().take(ANSWERS) { li { (ink.passage(answer.as_deref().unwrap_or(record::NO_ANSWER))) } }
                    @if more > 0 { li { "and " (count(more, "more answer")) } }
                }
            }
            p.note { "Session " code { (ink.name(&agent.session)) } }
        }
    }
}

/// The calls in their order, as many as the page may hold.
#[must_use]
pub fn show(ink: Ink<'_>, attempts: &[PastAttempt]) -> Vec<Markup> {
    let mut left = MARKUP;
    let mut shown = Vec::new();
    for (number, attempt) in attempts.iter().enumerate() {
        if left == 0 {
            break;
        }
        let markup = call(ink, number, attempt, left);
        left = left.saturating_sub(markup.0.len());
        shown.push(markup);
    }
    shown
}

/// How a call ended that was answered with `reply`, in a word or two.
#[must_use]
pub fn ended(attempt: &PastAttempt, reply: &str) -> (Sign, String) {
    match step::came_of(attempt, reply) {
        Came::Tools(tools) => tools_ended(&tools),
        Came::Verdict { passed: true } => (Sign::Good, "passed".to_owned()),
        Came::Verdict { passed: false } => (Sign::Bad, "not passed".to_owned()),
        // Whether it was short enough is the run's error.
        Came::Summary => (Sign::Open, "a summary".to_owned()),
        Came::Nothing if attempt.step.purpose == Purpose::AUDIT => {
            (Sign::Bad, "no verdict".to_owned())
        }
        Came::Nothing => (Sign::Bad, "nothing done".to_owned()),
    }
}

fn tools_ended(tools: &[UsedTool<'_>]) -> (Sign, String) {
    let failed = tools.iter().filter(|tool| tool.failed).count();
    let sign = if failed == 0 { Sign::Good } else { Sign::Bad };
    let said = match (tools, failed) {
        ([tool], 0) => tool.name.to_owned(),
        ([tool], _) => format!("{} failed", tool.name),
        (tools, 0) => count(tools.len(), "tool"),
        (tools, failed) => format!("{failed} of {} failed", count(tools.len(), "tool")),
    };
    (sign, said)
}

fn call(ink: Ink<'_>, number: usize, attempt: &PastAttempt, left: usize) -> Markup {
    let id = name_anchor(number);
    let (sign, ended) = attempt::ended(attempt);
    html! {
        section.attempt id=(id) {
            h2 {
                (attempt.step.title()) " "
                span class={ "ended " (sign.class()) } { (sign.mark()) " " (ink.name(&ended)) }
            }
            @match &attempt.reply {
                None => { h3 { "Reply" } p.note { "There is none." } }
                Some(Err(error)) => (attempt::failure(ink, error)),
                Some(Ok(reply)) => {
                    (self::reply(ink, reply))
                    (came(ink, &id, attempt, reply, left))
                }
            }
        }
    }
}

fn reply(ink: Ink<'_>, reply: &str) -> Markup {
    let text = ink.text(reply);
    let (shown, is_all) = beginning(text.trim_matches('\n'), REPLY.0, REPLY.1);
    html! {
        h3 { "Reply" }
        pre.prose { (shown.trim_end()) @if !is_all { "\n\u{2026}" } }
    }
}

fn came(ink: Ink<'_>, id: &str, attempt: &PastAttempt, reply: &str, left: usize) -> Markup {
    let came = step::came_of(attempt, reply);
    html! {
        @match came {
            Came::Tools(tools) => (self::tools(ink, id, &tools, left)),
            Came::Nothing => p.note {
                "Nothing came of this reply: it was not understood, or the run ended before."
            }
            Came::Verdict { .. } | Came::Summary => {}
        }
        (files(ink, attempt))
    }
}

fn tools(ink: Ink<'_>, id: &str, tools: &[UsedTool<'_>], mut left: usize) -> Markup {
    let mut shown = Vec::new();
    for (number, used) in tools.iter().take(NAMED).enumerate() {
        if left == 0 {
            break;
        }
        let markup = tool(ink, &format!("{id}-t{}", number + 1), used);
        left = left.saturating_sub(markup.0.len());
        shown.push(markup);
    }
    let more = tools.len() - shown.len();
    html! {
        @for tool in &shown { (tool) }
        @if more > 0 { p.left-out { (count(more, "more tool")) " of this reply left out." } }
    }
}

/// A tool, its input, and what came of it.
fn tool(ink: Ink<'_>, id: &str, used: &UsedTool<'_>) -> Markup {
    let (sign, ended) = if used.failed {
        (Sign::Bad, "failed")
    } else {
        (Sign::Good, "done")
    };
    let opened = used.failed || used.result.lines().count() <= OPENED;
    html! {
        h3 {
            code { (ink.name(used.name)) } " "
            span class={ "ended " (sign.class()) } { (sign.mark()) " " (ended) }
        }
        // The reply has it, too, as a rule.
        @if !used.input.trim().is_empty() {
            (part("Its input", &output::text(ink, used.input), false))
        }
        (part("Its result", &output::show(ink, id, used.result), opened))
    }
}

fn part(name: &str, content: &Markup, opened: bool) -> Markup {
    html! { details.build open[opened] { summary { (name) } (content) } }
}

fn files(ink: Ink<'_>, attempt: &PastAttempt) -> Markup {
    let edits = step::edits(attempt.record.as_ref());
    let more = edits.len().saturating_sub(NAMED);
    html! {
        @if !edits.is_empty() {
            h3 { "Files" }
            ul {
                @for (did, path) in edits.iter().take(NAMED) {
                    li { (did) " " code { (ink.name(path)) } }
                }
                @if more > 0 { li { "and " (count(more, "more file")) } }
            }
        }
    }
}
