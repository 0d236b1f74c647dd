//! The page about one run. Pure.

use std::time::Duration;

use maud::{Markup, html};

use super::attempt::{self, name_anchor};
use super::changes::Changes;
use super::steps;
use super::text::{Ink, beginning};
use super::words::{self, Sign, bytes, count, percent, seconds};
use super::{RunPage, shell};
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::record::{RunRecord, Step};
use crate::review::history::{PastAttempt, PastRun};
use crate::sys::numbers::grouped;

/// How much of the query is shown at once, in lines and bytes.
const QUERY: (usize, usize) = (12, 1500);
/// How much of it can be opened.
const WHOLE_QUERY: (usize, usize) = (2000, 64 << 10);
/// How many warnings are shown.
const WARNINGS: usize = 100;
/// How many attempts are shown; a run has four at the most.
const ATTEMPTS: usize = 12;

/// The page.
#[must_use]
pub fn page(page: &RunPage<'_>) -> String {
    let ink = Ink::new(page.redactor);
    let run = page.run;
    let mut changes = Changes::new(ink, page.elapsed);
    let title = format!("{}: {}", words::headline(run), run.name);
    let is_agents = run
        .record
        .as_ref()
        .is_some_and(|record| record.agent.is_some());
    let (attempts, shown) = if is_agents {
        let attempts = first(page.attempts, steps::CALLS);
        (attempts, steps::show(ink, attempts))
    } else {
        let attempts = first(page.attempts, ATTEMPTS);
        (attempts, replies(ink, attempts, run, &mut changes))
    };
    let body = html! {
        (head(ink, run))
        main {
            @if let Some(record) = &run.record { (problems(ink, record)) (facts(ink, record)) }
            (asked(ink, page))
            @if !attempts.is_empty() {
                (timeline(ink, attempts, run, shown.len()))
                (usage(ink, attempts, run))
            }
            @if is_agents || attempts.is_empty() { (whole(page, &mut changes)) }
            @for markup in &shown { (markup) }
            (left_out(page.attempts.len() - shown.len()))
        }
        footer {
            p { (ink.name(&written_by(run))) ". This page loads nothing and runs no script." }
        }
    };
    shell(&ink.name(&title), &body)
}

/// The queries, each with its reply and what came of it.
fn replies(
    ink: Ink<'_>,
    attempts: &[PastAttempt],
    run: &PastRun,
    changes: &mut Changes<'_>,
) -> Vec<Markup> {
    let record = run.record.as_ref();
    let attempts = attempts.iter().enumerate();
    attempts
        .map(|(number, attempt)| attempt::show(ink, number, attempt, record, changes))
        .collect()
}

/// How many calls are not on the page.
fn left_out(calls: usize) -> Markup {
    html! {
        @if calls > 0 {
            p.left-out { (count(calls, "later call")) " left out: see the run's folder." }
        }
    }
}

fn first(attempts: &[PastAttempt], most: usize) -> &[PastAttempt] {
    &attempts[..attempts.len().min(most)]
}

/// The page's program, and the run's, where that was another.
fn written_by(run: &PastRun) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let theirs = run.record.as_ref().map(|record| &*record.version);
    let theirs = theirs.filter(|theirs| *theirs != own);
    let theirs = theirs.map(|theirs| format!("; the run was made by {theirs}"));
    format!("Written by code-commit {own}{}", theirs.unwrap_or_default())
}

fn head(ink: Ink<'_>, run: &PastRun) -> Markup {
    let sign = words::sign(run);
    let began = run.started();
    let began = began.map(|at| at.format("%A, %-d %B %Y, %H:%M:%S %:z").to_string());
    let model = run.record.as_ref().and_then(|record| record.model.as_ref());
    let code = run.record.as_ref().map(|record| record.exit.code);
    let code = code.map(|code| format!("exit code {code}"));
    html! {
        header {
            p.kicker { "code-commit \u{b7} " (ink.name(words::workflow(run.workflow()))) }
            h1 {
                span class={ "sign " (sign.class()) } aria-hidden="true" { (sign.mark()) }
                " " (ink.name(&words::headline(run)))
            }
            p.sub {
                @for part in [began, model.map(|model| ink.name(model)), code].into_iter().flatten() {
                    (part) " \u{b7} "
                }
                code { (ink.name(&run.relative())) }
            }
        }
    }
}

/// What went wrong, and what the supervisor should look at.
fn problems(ink: Ink<'_>, record: &RunRecord) -> Markup {
    let more = record.warnings.len().saturating_sub(WARNINGS);
    html! {
        @if let Some(error) = &record.error {
            section.box.bad {
                h2 { span aria-hidden="true" { "\u{2717} " } "Error" }
                p.message { (ink.passage(&error.message)) }
                @if let Some(hint) = &error.hint { p { b { "Hint: " } (ink.passage(hint)) } }
            }
        }
        @if !record.warnings.is_empty() {
            section.box.warn {
                h2 { span aria-hidden="true" { "! " } (count(record.warnings.len(), "warning")) }
                ul {
                    @for warning in record.warnings.iter().take(WARNINGS) {
                        li { (ink.passage(warning)) }
                    }
                    @if more > 0 { li { "and " (grouped(more as u64)) " more" } }
                }
            }
        }
    }
}

/// What was asked for.
fn asked(ink: Ink<'_>, page: &RunPage<'_>) -> Markup {
    let record = page.run.record.as_ref();
    if let Some(agent) = record.and_then(|record| record.agent.as_ref()) {
        let request = agent.request.as_deref();
        let request = request.map(|request| quoted(ink, "request", request));
        return steps::about(ink, agent, request.as_ref());
    }
    html! {
        @if let Some(query) = page.query {
            section { h2 { "The query" } (quoted(ink, "query", query)) }
        }
    }
}

fn quoted(ink: Ink<'_>, what: &str, text: &str) -> Markup {
    let text = ink.text(text);
    let text = text.trim_matches('\n');
    let (first, is_all) = beginning(text, QUERY.0, QUERY.1);
    let (whole, is_whole) = beginning(text, WHOLE_QUERY.0, WHOLE_QUERY.1);
    html! {
        blockquote { pre.prose { (first.trim_end()) @if !is_all { "\n\u{2026}" } } }
        @if !is_all {
            details {
                summary { "The whole " (what) ", " (bytes(text.len() as u64)) }
                pre.prose { (whole) @if !is_whole { "\n\u{2026}" } }
            }
        }
    }
}

fn facts(ink: Ink<'_>, record: &RunRecord) -> Markup {
    let asked = !record.attempts.is_empty();
    let version = record.model_version.as_deref();
    let version = version.filter(|version| Some(*version) != record.model.as_deref());
    let calls = match &record.agent {
        Some(_) => words::calls(record),
        None => count(record.repairs(), "repair"),
    };
    let changes_files = record.workflow == "commit" || record.agent.is_some();
    let files = record.stat.map_or("nothing".to_owned(), |stat| {
        count(usize::try_from(stat.files).unwrap_or(usize::MAX), "file")
    });
    let lines = record.stat.map(|stat| {
        let (added, removed) = (grouped(stat.added), grouped(stat.removed));
        format!("+{added} \u{2212}{removed} lines")
    });
    html! {
        section aria-label="Facts" { dl.facts {
            @if let Some(model) = &record.model {
                (fact("Model", &ink.name(model), version.map(|version| ink.name(version))))
            }
            (fact("Took", &seconds(record.seconds.0), asked.then_some(calls)))
            @if asked {
                (fact("Cost", &cost(record.cost), None))
            }
            @if let Some(usage) = record.usage() {
                (fact("Tokens in", &grouped(usage.input_tokens), among(usage.cached_tokens, "cached")))
                (fact("Tokens out", &grouped(usage.answered()), among(usage.thought_tokens, "thoughts")))
            }
            @if changes_files { (fact("Changed", &files, lines)) }
        } }
    }
}

fn fact(name: &str, value: &str, more: Option<String>) -> Markup {
    html! {
        div {
            dt { (name) }
            dd { (value) @if let Some(more) = more { small { (more) } } }
        }
    }
}

fn among(tokens: u64, what: &str) -> Option<String> {
    (tokens > 0).then(|| format!("{} {what}", grouped(tokens)))
}

fn cost(cost: Option<Usd>) -> String {
    cost.map_or("not known".to_owned(), |cost| cost.to_string())
}

/// How long model and build took, one below the other, as they came. The first `linked` of them are on the
/// page.
fn timeline(ink: Ink<'_>, attempts: &[PastAttempt], run: &PastRun, linked: usize) -> Markup {
    let took = |attempt: &PastAttempt| {
        let record = attempt.record.as_ref();
        let build = record.and_then(|record| record.build.as_ref());
        let model = record.map(|record| record.seconds.0);
        (
            model.unwrap_or_default(),
            build.map(|build| build.seconds.0),
        )
    };
    let sum: Duration = attempts
        .iter()
        .map(|attempt| {
            let (model, build) = took(attempt);
            model.saturating_add(build.unwrap_or_default())
        })
        .fold(Duration::ZERO, Duration::saturating_add);
    let whole = run.record.as_ref().map(|record| record.seconds.0);
    let whole = whole.unwrap_or_default().max(sum);
    let has_builds = run
        .record
        .as_ref()
        .is_none_or(|record| record.agent.is_none());
    let mut at = Duration::ZERO;
    let mut rows = Vec::new();
    for (number, attempt) in attempts.iter().enumerate() {
        let (model, build) = took(attempt);
        let bars = html! {
            (bar("model", at, model, whole))
            @if let Some(build) = build { (bar("build", at + model, build, whole)) }
        };
        at = at
            .saturating_add(model)
            .saturating_add(build.unwrap_or_default());
        let anchor = (number < linked).then(|| name_anchor(number));
        rows.push(row(ink, anchor, attempt, (model, build), &bars));
    }
    html! {
        section {
            h2 { "Timeline" }
            figure {
                ol.timeline { @for row in &rows { (row) } }
                figcaption {
                    span.key.model {} " the model  "
                    @if has_builds { span.key.build {} " the build  " }
                    span.quiet { "over " (seconds(whole)) " in all" }
                }
            }
        }
    }
}

fn row(
    ink: Ink<'_>,
    anchor: Option<String>,
    attempt: &PastAttempt,
    (model, build): (Duration, Option<Duration>),
    bars: &Markup,
) -> Markup {
    let (sign, ended) = attempt::ended(attempt);
    let name = attempt.step.title();
    html! {
        li {
            div.who {
                @if let Some(anchor) = anchor { a href={ "#" (anchor) } { (name) } }
                @else { span { (name) } }
                span class={ "ended " (sign.class()) } { (sign.mark()) " " (ink.name(&ended)) }
            }
            div.track aria-hidden="true" { (bars) }
            div.took {
                "model " (seconds(model))
                @if let Some(build) = build { ", build " (seconds(build)) }
            }
        }
    }
}

fn bar(class: &str, at: Duration, length: Duration, whole: Duration) -> Markup {
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let share = |part| percent(micros(part), micros(whole));
    html! {
        span class=(class) style={ "left:" (share(at)) "%;width:" (share(length)) "%" } {}
    }
}

/// Tokens and cost, call by call.
fn usage(ink: Ink<'_>, attempts: &[PastAttempt], run: &PastRun) -> Markup {
    let records = attempts.iter();
    let records: Vec<_> = records
        .filter_map(|attempt| attempt.record.as_ref())
        .collect();
    let known = |record: &&Step| record.usage.is_some() || record.cost.is_some();
    if !records.iter().any(known) {
        return html! {};
    }
    let cell = |usage: Option<Usage>, of: fn(Usage) -> u64| {
        usage.map_or("\u{2013}".to_owned(), |usage| grouped(of(usage)))
    };
    let cells = |usage: Option<Usage>| {
        html! {
            td.n { (cell(usage, |usage| usage.input_tokens)) }
            td.n { (cell(usage, |usage| usage.cached_tokens)) }
            td.n { (cell(usage, |usage| usage.thought_tokens)) }
            td.n { (cell(usage, |usage| usage.output_tokens)) }
        }
    };
    let record = run.record.as_ref();
    let total = record.filter(|_| records.len() > 1);
    html! {
        section {
            h2 { "Tokens and cost" }
            div.scroll { table.usage {
                thead { tr {
                    th scope="col" { "call" }
                    th.n scope="col" { "in" }
                    th.n scope="col" { "cached" }
                    th.n scope="col" { "thought" }
                    th.n scope="col" { "out" }
                    th.n scope="col" { "cost" }
                    th scope="col" { "finish" }
                    th scope="col" { "model" }
                } }
                tbody {
                    @for record in &records {
                        tr {
                            th scope="row" { (record.id().title()) }
                            (cells(record.usage))
                            td.n { (cost(record.cost)) }
                            td { (ink.name(record.finish.as_deref().unwrap_or("\u{2013}"))) }
                            td { (ink.name(record.model.as_deref().unwrap_or("\u{2013}"))) }
                        }
                    }
                }
                @if let Some(total) = total {
                    tfoot { tr {
                        th scope="row" { "together" }
                        (cells(total.usage()))
                        td.n { (cost(total.cost)) }
                        td {} td {}
                    } }
                }
            } }
        }
    }
}

/// What a run as a whole has changed: an undo's, or an agent's.
fn whole(page: &RunPage<'_>, changes: &mut Changes<'_>) -> Markup {
    html! {
        section {
            h2 { "Changes" }
            @if page.changes.is_empty() {
                p.note {
                    @if words::sign(page.run) == Sign::Open { "None are recorded." }
                    @else { "The run changed no file." }
                }
            } @else { (changes.show("run", page.changes)) }
            @if page.has_lost {
                p.note {
                    "What was in some of these files is not known any more: it is shown as nothing."
                }
            }
        }
    }
}
