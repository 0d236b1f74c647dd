//! Renders the page about one run. Pure.

use std::time::Duration;

use maud::{Markup, html};

use super::changes::DiffRenderer;
use super::elements::{
    badge, bar, columns, fact, left_out, mark_and_class, numbers, prose, unseen_column,
};
use super::text::{HtmlEscaper, beginning};
use super::words::{self, bytes, count, seconds};
use super::{Row, Table, orchestration, promise, shell, steps, tables};
use crate::commands::choice;
use crate::model::usage::Usage;
use crate::record::choice::ChoiceRecord;
use crate::record::gate::{GateRecord, OldGate};
use crate::record::result::{self, AgentRecord, RunRecord};
use crate::record::step::Step;
use crate::run::past::figures::{self, cost_of_run};
use crate::run::past::history::{PastRun, RunChanges};
use crate::run::past::past_step::PastStep;
use crate::secret::Redactor;
use crate::sys::numbers::{counted, grouped, percent};

/// The limits of the collapsed query, in lines and bytes.
const QUERY: (usize, usize) = (12, 1500);
/// The limits of the expanded query, in lines and bytes.
const WHOLE_QUERY: (usize, usize) = (2000, 64 << 10);
/// The maximum number of warnings shown.
const WARNINGS: usize = 100;
/// The maximum number of the user's answers shown.
const ANSWERS: usize = 50;
/// The maximum number of steps listed; by default, an agent takes up to a thousand.
const ROWS: usize = 1000;

/// Renders the page about one run.
///
/// Shows the `query`, or an agent's request from the record, and the total `changes` if the steps do not record
/// them. `elapsed` returns the time since some fixed point; highlighting stops when it takes too long.
pub fn page(
    run: &PastRun,
    query: Option<&str>,
    steps: &[PastStep],
    changes: Option<&RunChanges>,
    redactor: &Redactor,
    interactive: bool,
    elapsed: &dyn Fn() -> Duration,
) -> String {
    let escaper = HtmlEscaper::new(redactor);
    let record = run.record.as_ref();
    let mut diffs = DiffRenderer::new(escaper, elapsed);
    let title = format!("{}: {}", words::headline(run), run.name);
    let listed = &steps[..steps.len().min(ROWS)];
    let sections = record.and_then(|record| record.sections.as_deref());
    let shown = steps::show(escaper, listed, sections.unwrap_or_default(), &mut diffs);
    let body = html! {
        (head(escaper, run))
        main {
            @if let Some(record) = record { (problems(escaper, record)) (facts(escaper, record)) }
            @if let Some(choice) = run.choice() { (attempts(escaper, &choice)) }
            @if let Some(agent) = run.agent() { (request(escaper, agent)) }
            @else if let Some(query) = query {
                section { h2 { "The query" } (quoted(escaper, "query", query)) }
            }
            @if let Some(report) = record.and_then(|record| record.orchestration.as_ref()) {
                (orchestration::report(escaper, report))
            }
            @if let Some(lineage) = run.lineage() { (orchestration::branches(escaper, run, &lineage)) }
            @if !listed.is_empty() { (calls(escaper, listed, record, shown.len())) }
            @if let Some(whole) = changes { (whole_run(whole, listed, &mut diffs)) }
            @for step in &shown { (step) }
            (left_out(steps.len() - shown.len(), "later call", &run.relative()))
        }
        footer { p { "Written by code-commit " (env!("CARGO_PKG_VERSION")) (promise(interactive)) } }
    };
    shell(&escaper.name(&title), &body, interactive)
}

fn head(escaper: HtmlEscaper<'_>, run: &PastRun) -> Markup {
    let (mark, class) = mark_and_class(words::status(run));
    let began = run.started();
    let began = began.map(|at| at.format("%A, %-d %B %Y, %H:%M:%S %:z").to_string());
    let model = run.record.as_ref().and_then(|record| record.model.as_ref());
    let code = run.record.as_ref().map(|record| record.exit.code);
    let code = code.map(|code| format!("exit code {code}"));
    let parts = [began, model.map(|model| escaper.name(model)), code];
    html! {
        header {
            p.kicker { "code-commit \u{b7} " (escaper.name(words::workflow(run.workflow()))) }
            h1 {
                span class={ "sign " (class) } aria-hidden="true" { (mark) }
                " " (escaper.name(&words::headline(run)))
            }
            p.sub {
                @for part in parts.iter().flatten() { (part) " \u{b7} " }
                code { (escaper.name(&run.relative())) }
            }
        }
    }
}

/// Renders errors, the verdict on the gate, and warnings.
fn problems(escaper: HtmlEscaper<'_>, record: &RunRecord) -> Markup {
    let more = record.warnings.len().saturating_sub(WARNINGS);
    let holds = |gate: &GateRecord| gate.old_gate != OldGate::Failed || !gate.excused.is_empty();
    html! {
        @if let Some(error) = &record.error {
            section.box.bad {
                h2 { span aria-hidden="true" { "\u{2717} " } "Error" }
                p.message { (escaper.passage(&error.message)) }
                @if let Some(hint) = &error.hint { p { b { "Hint: " } (escaper.passage(hint)) } }
            }
        }
        @if let Some(gate) = &record.gate {
            section.box.bad[!holds(gate)] {
                h2 { "The gate" }
                @for line in gate.told() { p { (escaper.passage(&line)) } }
            }
        }
        @if !record.warnings.is_empty() {
            section.box.warn {
                h2 { span aria-hidden="true" { "! " } (count(record.warnings.len(), "warning")) }
                ul {
                    @for warning in record.warnings.iter().take(WARNINGS) { li { (escaper.passage(warning)) } }
                    @if more > 0 { li { "and " (grouped(more as u64)) " more" } }
                }
            }
        }
    }
}

/// Renders the attempts that were made at once.
fn attempts(escaper: HtmlEscaper<'_>, choice: &ChoiceRecord) -> Markup {
    let [texts, numbers] = choice::HEADS.map(<[&str]>::to_vec);
    let rows = choice::rows(choice).map(|[texts, numbers]| Row {
        texts,
        numbers,
        ..Row::default()
    });
    let table = Table {
        title: "Attempts",
        texts,
        numbers,
        rows: rows.collect(),
        left_out: 0,
    };
    html! { section {
        (tables::shown(escaper, &table))
        p { (escaper.passage(&choice::taken(choice))) }
    } }
}

/// Renders the request to an agent.
fn request(escaper: HtmlEscaper<'_>, agent: &AgentRecord) -> Markup {
    let more = agent.answers.len().saturating_sub(ANSWERS);
    let asked = agent.asked().take(ANSWERS);
    html! {
        section {
            h2 { "The request" }
            @if let Some(request) = &agent.request { (quoted(escaper, "request", request)) }
            @else { p.note { "The run went on with what was asked for before." } }
            @if !agent.answers.is_empty() {
                h3 { "The user's answers" }
                ol {
                    @for (question, answer) in asked { li {
                        @if let Some(question) = question { (escaper.passage(question)) " " }
                        (escaper.passage(answer.unwrap_or(result::NO_ANSWER)))
                    } }
                    @if more > 0 { li { "and " (count(more, "more answer")) } }
                }
            }
            @if let Some(session) = &agent.session { p.note { "Session " code { (escaper.name(session)) } } }
        }
    }
}

fn quoted(escaper: HtmlEscaper<'_>, what: &str, text: &str) -> Markup {
    let (_, is_all) = beginning(text.trim_matches('\n'), QUERY.0, QUERY.1);
    html! {
        blockquote { (prose(escaper, text, QUERY)) }
        @if !is_all { details {
            summary { "The whole " (what) ", " (bytes(text.len() as u64)) }
            (prose(escaper, text, WHOLE_QUERY))
        } }
    }
}

fn facts(escaper: HtmlEscaper<'_>, record: &RunRecord) -> Markup {
    let asked = !record.steps.is_empty();
    let version = record.model_version.as_deref();
    let version = version.filter(|version| Some(*version) != record.model.as_deref());
    let (calls, changes_files) = match &record.agent {
        Some(agent) => (words::calls(record), agent.orchestration.is_none()),
        None => (
            count(record.repairs(), "repair"),
            record.workflow == "commit",
        ),
    };
    let files = record.stat.map(|stat| counted(stat.files, "file"));
    let files = files.unwrap_or_else(|| "nothing".to_owned());
    let lines = record.stat.map(|stat| {
        let (added, removed) = (grouped(stat.added), grouped(stat.removed));
        format!("+{added} \u{2212}{removed} lines")
    });
    html! {
        section aria-label="Facts" { dl.facts {
            @if let Some(model) = &record.model {
                (fact("Model", &escaper.name(model), version.map(|version| escaper.name(version))))
            }
            (fact("Took", &seconds(record.seconds.0), asked.then_some(calls)))
            @if asked { (fact("Cost", &cost_of_run(record), None)) }
            @if let Some(usage) = record.usage() {
                (fact("Tokens in", &grouped(usage.input_tokens), from_cache(usage)))
                (fact("Tokens out", &grouped(usage.answered()), among(usage.thought_tokens, "thoughts")))
            }
            @if changes_files { (fact("Changed", &files, lines)) }
        } }
    }
}

/// Returns the number of prompt tokens read from the vendor's cache, and their share.
fn from_cache(usage: Usage) -> Option<String> {
    let cached = among(usage.cached_tokens, "cached")?;
    let share = percent(usage.cached_tokens, usage.input_tokens);
    Some(format!("{cached}, {share} %"))
}

fn among(tokens: u64, what: &str) -> Option<String> {
    (tokens > 0).then(|| format!("{} {what}", grouped(tokens)))
}

/// Renders the calls in order, with result, model and build time, tokens and cost. The first `linked` of them
/// link to their step on the page.
fn calls(
    escaper: HtmlEscaper<'_>,
    steps: &[PastStep],
    record: Option<&RunRecord>,
    linked: usize,
) -> Markup {
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let took = |step: &Step| {
        let build = step.build.as_ref();
        let build = build.map_or(Duration::ZERO, |build| build.seconds.0);
        (micros(step.seconds.0), micros(build))
    };
    let sums = steps.iter().map(|past| took(&past.step));
    let longest = sums.map(|(model, build)| model.saturating_add(build));
    let longest = longest.max().unwrap_or(0);
    let has_builds = steps.iter().any(|past| !past.step.is_agents());
    let word = |text: Option<&str>| escaper.name(text.unwrap_or("\u{2013}"));
    let total = record.filter(|_| steps.len() > 1);
    html! {
        section {
            h2 { "Calls" }
            div.scroll { table.usage {
                thead { tr {
                    (columns(&["call"], &["took", "build"][..=usize::from(has_builds)]))
                    (unseen_column())
                    (columns(&[], &["in", "cached", "thought", "out", "cost"]))
                    (columns(&["finish", "model"], &[]))
                } }
                tbody { @for (number, past) in steps.iter().enumerate() {
                    @let (step, (status, ended)) = (&past.step, steps::ended(past));
                    @let (model, build) = took(step);
                    tr {
                        th scope="row" {
                            @if number < linked { a href={ "#" (steps::anchor(number)) } { (step.id().title()) } }
                            @else { span { (step.id().title()) } }
                            (badge(status, &escaper.name(&ended)))
                        }
                        td.n { (seconds(step.seconds.0)) }
                        @if has_builds { td.n { @if let Some(build) = &step.build { (seconds(build.seconds.0)) } } }
                        td { (bar("time", model, build, longest)) }
                        (token_cells(step.usage))
                        td.n { (figures::cost(step.cost.unwrap_or_default(), step.cost.is_some())) }
                        td { (word(step.finish.as_deref())) }
                        td { (word(step.model.as_deref())) @if let Some(tier) = step.tier { " (" (tier.word()) ")" } }
                    }
                } }
                @if let Some(total) = total { tfoot { tr {
                    th scope="row" { "together" }
                    td.n { (seconds(total.seconds.0)) }
                    @if has_builds { td {} }
                    td {}
                    (token_cells(total.usage()))
                    td.n { (cost_of_run(total)) }
                    td {} td {}
                } } }
            } }
        }
    }
}

fn token_cells(usage: Option<Usage>) -> Markup {
    let Some(usage) = usage else {
        return numbers(["\u{2013}"; 4].map(str::to_owned));
    };
    let (read, cached) = (usage.input_tokens, usage.cached_tokens);
    let mut cells = [read, cached, usage.thought_tokens, usage.output_tokens].map(grouped);
    if cached > 0 {
        cells[1] += &format!(" ({} %)", percent(cached, read));
    }
    numbers(cells)
}

/// Renders the total changes of a run: an undo, an agent's run, or one with repairs.
fn whole_run(whole: &RunChanges, steps: &[PastStep], changes: &mut DiffRenderer<'_>) -> Markup {
    let has_own = steps.iter().any(|past| !past.step.is_agents());
    html! {
        section {
            @if has_own {
                h2 { "The whole change" }
                p.note { "From before the run to its end. What each reply changed stands below." }
            } @else { h2 { "Changes" } }
            @if !whole.files.is_empty() { (changes.show("run", &whole.files)) }
            @else { p.note { "None are recorded." } }
            @if !whole.doubts.is_empty() { p.note {
                "What was in some of these files is not known any more: it is shown as nothing."
            } }
        }
    }
}
