//! The story of each step: the request, the reply and its result. Pure.

use std::time::Duration;

use super::block::{Block, Extent, Form, Outcome, Section};
use crate::edit::{self, EditKind, Sent};
use crate::model::Purpose;
use crate::model::usage::Usage;
use crate::record::result::SectionRecord;
use crate::record::step::{Action, BuildRecord, PartRecord, Step};
use crate::run::past::past_step::{IdleReply, PastStep};
use crate::run::past::table::{RESULT, Row, Table};
use crate::run::past::words::{self, bytes, count, seconds};
use crate::sys::numbers::{grouped, percent};
use crate::sys::text::{escaped, first_lines};

/// The maximum number of steps in the table; by default, an agent takes up to a thousand.
const ROWS: usize = 1000;
/// The maximum number of files named per step.
const FILES: usize = 50;
/// The maximum number of prompt parts; a prompt has at most five.
const PARTS: usize = 12;
/// The length of a tool's subject, in bytes, above which its input is shown as well.
const SUBJECT: usize = 76;
/// The text for a reply without effect.
const NOT_APPLIED: &str = "This reply was not applied";

/// Describes a step. `sections` are those of a consistency report.
pub fn section<'a>(past: &'a PastStep, sections: &'a [SectionRecord]) -> Section<'a> {
    let step = &past.step;
    let mut blocks: Vec<Block> = asked(step).map(Block::Note).into_iter().collect();
    if !step.is_agents() {
        blocks.extend(prompt(step));
    }
    match &past.reply {
        _ if step.is_own() => {}
        None => blocks.push(Block::note("There is no reply.")),
        Some(Err(error)) => blocks.push(Block::code(error)),
        Some(Ok(text)) if step.purpose.is_reports() => {
            let is_report = step.purpose == Purpose::REPORT;
            let form = Form::Report(if is_report { sections } else { &[] });
            blocks.push(Block::Text(form, text.into(), Extent::First));
        }
        Some(Ok(text)) if step.is_agents() => answer(past, text, &mut blocks),
        Some(Ok(text)) => edits(past, text, &mut blocks),
    }
    if step.is_agents() {
        actions(past, &mut blocks);
    }
    if let Some(log) = past.build_log() {
        build(step.build.as_ref(), log, &mut blocks);
    }
    if step.is_agents() && step.changed_files().next().is_some() {
        let files = step
            .changed_files()
            .map(|(did, path)| format!("{did} {path}"));
        blocks.push(Block::Items(first_lines(files, FILES)));
    }
    Section {
        outcome: Some(ended(past)),
        ..Section::new(step.id().title(), blocks)
    }
}

/// Describes the model asked, its usage and its time; after a kill, nothing may be known.
fn asked(step: &Step) -> Option<String> {
    let model = step.model.as_ref()?;
    let served = step
        .served
        .as_ref()
        .filter(|served| *served != model)
        .map(|served| format!("{served} for "));
    let tier = step.tier.map(|tier| format!(" ({})", tier.into_str()));
    let used = step.usage.map(|usage| {
        let (input, output) = (grouped(usage.input_tokens), grouped(usage.answered()));
        format!(", {input} tokens in, {output} out")
    });
    let cost = step.cost.map(|cost| format!(", {cost}"));
    let [served, tier, used, cost] = [served, tier, used, cost].map(Option::unwrap_or_default);
    let took = seconds(step.seconds.0);
    Some(format!("{served}{model}{tier}{used}{cost}, {took}"))
}

/// Lists the parts of the prompt with their sizes.
fn prompt(step: &Step) -> Option<Block<'static>> {
    let sizes = step.prompt.iter().map(|part| part.bytes);
    let total = sizes.fold(0, u64::saturating_add);
    if total == 0 {
        return None;
    }
    // The vendor counts the whole prompt; divide its tokens among the parts by size.
    let tokens = step.usage.map(|usage| u128::from(usage.input_tokens));
    let row = |part: &PartRecord| {
        let share = tokens
            .map(|tokens| tokens * u128::from(part.bytes) / u128::from(total))
            .map(|share| grouped(u64::try_from(share).unwrap_or(u64::MAX)));
        let percent = percent(part.bytes, total) + "\u{a0}%";
        let numbers = [bytes(part.bytes), percent, share.unwrap_or_else(unknown)];
        Row::new([part.part.to_string()], numbers).with_bar(part.bytes, 0)
    };
    let heads = ["size", "share", "tokens, about"];
    let table = Table::new(
        &["part"],
        &heads,
        "time",
        step.prompt.iter().map(row),
        PARTS,
    );
    Some(Block::Details("The prompt", Box::new(Block::Table(table))))
}

/// Shows a reply with edits, or a request for files.
fn edits<'a>(past: &'a PastStep, reply: &'a str, blocks: &mut Vec<Block<'a>>) {
    let step = &past.step;
    let parsed = edit::read(reply, step.reply_format, &|_| Sent::NotShown);
    let is_applied = step.edits.is_some();
    let asked = parsed.request().filter(|_| !is_applied);
    let has_changed = step.changed_files().next().is_some() || !past.changes.is_empty();
    let note = match asked.map(|edit| &edit.kind) {
        _ if let Some(why) = &step.rejected => format!("{why}\n{NOT_APPLIED}."),
        _ if step.is_on_disk => "The reply's edits were on disk already.".to_owned(),
        Some(EditKind::Write(list)) => {
            let files: Vec<String> = list.lines().map(escaped).collect();
            format!("The reply asks for {}.", files.join(", "))
        }
        // A killed run may have been applying it.
        _ if !is_applied && past.is_attempt && past.log.is_some() => {
            "This reply was built in a scratch tree of its own.".to_owned()
        }
        _ if !is_applied => format!("{NOT_APPLIED}."),
        _ if !has_changed => "The reply changed no files.".to_owned(),
        _ => String::new(),
    };
    if is_applied || past.is_attempt || asked.is_some() {
        let prose = Some(parsed.prose).filter(|prose| !prose.trim().is_empty());
        blocks.extend(prose.map(Block::prose));
        blocks.push(as_it_came(reply));
    } else {
        blocks.extend([Block::title("Reply"), Block::code(reply)]);
    }
    if !note.is_empty() {
        blocks.push(Block::Note(note));
    }
    if !past.changes.is_empty() {
        blocks.push(Block::Changes(&past.changes));
        return;
    }
    // Replacements located in lines that a build has changed cannot be recomputed.
    for (did, path) in step.changed_files().take(FILES) {
        let edit = parsed.unlocated.iter().find(|edit| edit.path == path);
        let lines = edit
            .into_iter()
            .flat_map(|edit| &edit.parts)
            .flat_map(|part| {
                let found = part.find.lines().map(|line| format!("-{line}\n"));
                found.chain(part.put.lines().map(|line| format!("+{line}\n")))
            });
        let diff = Block::Text(Form::Diff, lines.collect::<String>().into(), Extent::First);
        blocks.extend([Block::Note(format!("{did} {path}")), diff]);
    }
}

fn as_it_came(reply: &str) -> Block<'_> {
    Block::Details("The reply as it came", Box::new(Block::code(reply)))
}

/// Shows an agent's reply.
fn answer<'a>(past: &'a PastStep, reply: &'a str, blocks: &mut Vec<Block<'a>>) {
    let step = &past.step;
    blocks.extend(step.thoughts.as_deref().map(Block::prose));
    if step.purpose == Purpose::COMPRESSION {
        blocks.push(Block::note("The reply summarizes the conversation so far."));
        blocks.push(as_it_came(reply));
    } else if step.purpose == Purpose::AUDIT && step.actions.is_empty() {
        blocks.push(Block::note(match step.passed {
            Some(true) => "The audit passed the work.",
            Some(false) => "The audit did not pass the work.",
            None => "The reply has no verdict.",
        }));
        blocks.push(Block::Text(Form::Prose, reply.into(), Extent::Last));
    } else if let Some(idle) = past.idle() {
        // The call stands at the end of the reply.
        let extent = match idle {
            IdleReply::Call => Extent::Last,
            IdleReply::Words | IdleReply::NotUnderstood => Extent::First,
        };
        let text = Block::Text(Form::Prose, reply.into(), extent);
        blocks.extend([text, Block::note(describe_idle(idle).2)]);
    } else {
        blocks.push(as_it_came(reply));
    }
}

/// Describes a reply that led to no action: its outcome, in a word or two and in a sentence.
fn describe_idle(idle: IdleReply) -> (Option<bool>, &'static str, &'static str) {
    let (words, sentence) = match idle {
        IdleReply::Words => (
            "words",
            "This reply did not end the work: it is a question, or a report that did not count.",
        ),
        IdleReply::Call => (
            "not ended",
            "The call did not come to its end: the run ended first.",
        ),
        IdleReply::NotUnderstood => (
            "nothing done",
            "Nothing was done: the reply was not understood, or the run ended first.",
        ),
    };
    ((idle != IdleReply::Words).then_some(false), words, sentence)
}

/// Lists an agent's actions.
fn actions<'a>(past: &'a PastStep, blocks: &mut Vec<Block<'a>>) {
    let step = &past.step;
    if step.is_own() && step.actions.is_empty() && step.build.is_none() {
        blocks.push(Block::note("It did not come to its end."));
    }
    blocks.push(Block::Tools(step.actions.iter().map(tool).collect()));
    if let Some(tools) = &past.tools {
        let title = "The tools, and what came of them";
        blocks.push(Block::output(title, tools, Extent::First));
    }
    let answer = step.answer.as_deref();
    if let Some(answer) = answer.filter(|_| step.purpose != Purpose::AUDIT) {
        blocks.extend([Block::title("Answer"), Block::prose(answer)]);
    }
}

/// Shows a tool call with its input and result.
fn tool(action: &Action) -> Section<'_> {
    let (input, subject) = (action.input_text(), action.subject());
    let mut blocks = Vec::new();
    let title = format!("{} {subject}", action.tool);
    if subject.len() > SUBJECT || subject != input.trim().replace('\n', " ") {
        blocks.push(Block::Details("Its input", Box::new(Block::code(input))));
    }
    if let Some(diff) = &action.diff {
        let diff = Block::Text(Form::Diff, diff.into(), Extent::First);
        blocks.push(Block::Details("What it changed", Box::new(diff)));
    }
    if let Some(result) = &action.result {
        let few_or_end = [Extent::Few, Extent::Last][usize::from(action.is_bad())];
        blocks.push(Block::output("Its result", result, few_or_end));
    }
    let took = action.seconds.map(|took| format!(", {}", seconds(took.0)));
    let words = done_in_words(action) + &took.unwrap_or_default();
    Section {
        outcome: Some((Some(!action.is_bad()), words)),
        ..Section::new(title.trim_end(), blocks)
    }
}

/// Shows a build with its output.
fn build<'a>(
    record: Option<&BuildRecord>,
    (status, output): (&'a str, &'a str),
    blocks: &mut Vec<Block<'a>>,
) {
    let outcome = record.map_or((None, status.to_owned()), |build| {
        let (passed, words) = built(build);
        (passed, format!("{words}, {}", seconds(build.seconds.0)))
    });
    let extent = match outcome.0 {
        Some(true) => Extent::Nothing,
        _ => Extent::Errors,
    };
    blocks.push(Block::Title("build.sh".to_owned(), Some(outcome)));
    blocks.push(Block::output("Its output", output, extent));
}

fn built(build: &BuildRecord) -> Outcome {
    let failed = if build.passed() { "" } else { "failed, " };
    (Some(build.passed()), format!("{failed}{build}"))
}

/// Returns the outcome of a step.
fn ended(past: &PastStep) -> Outcome {
    let step = &past.step;
    let (is_good, words) = match (&past.reply, step.passed) {
        _ if let Some(build) = &step.build => return built(build),
        _ if step.is_own() && step.actions.is_empty() => (None, "not ended"),
        (None, _) if !step.is_own() => (None, "no answer"),
        (Some(Err(_)), _) if !step.is_own() => (Some(false), "no reply"),
        _ if !step.actions.is_empty() => return actions_ended(&step.actions),
        (_, Some(true)) => (Some(true), "passed"),
        (_, Some(false)) => (Some(false), "not passed"),
        _ if step.rejected.is_some() => (Some(false), "rejected"),
        _ if step.purpose.is_reports() || step.answer.is_some() => (Some(true), "answered"),
        _ if let Some(idle) = past.idle() => {
            let (is_good, words, _) = describe_idle(idle);
            (is_good, words)
        }
        _ if step.is_agents() => (None, "answered"),
        (Some(Ok(reply)), _) if step.edits.is_none() && asks_for_files(step, reply) => {
            (Some(true), "answered")
        }
        _ if step.edits.is_none() => (Some(false), "not applied"),
        // After a kill, the build's log may still contain the status.
        _ => (
            None,
            past.build_log().map_or("not built", |(status, _)| status),
        ),
    };
    (is_good, words.to_owned())
}

/// Returns whether a reply is a request for files.
fn asks_for_files(step: &Step, reply: &str) -> bool {
    let parsed = edit::read(reply, step.reply_format, &|_| Sent::NotShown);
    parsed.request().is_some()
}

fn actions_ended(actions: &[Action]) -> Outcome {
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

/// Lists the steps with result, model and build time, tokens and cost.
pub fn calls(steps: &[PastStep]) -> Option<Section<'static>> {
    let took = ["took (+ build)", "files"];
    let heads = [&took[..], &["in", "cached", "thought", "out", "cost"]].concat();
    let texts = ["call", RESULT, "finish", "model"];
    let table = Table::new(&texts, &heads, "time", steps.iter().map(row), ROWS);
    (!steps.is_empty()).then(|| Section::new("Calls", vec![Block::Table(table)]))
}

fn row(past: &PastStep) -> Row {
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let step = &past.step;
    let (outcome, words) = ended(past);
    let tier = step.tier.map(|tier| format!(" ({})", tier.into_str()));
    let model = step
        .model
        .as_ref()
        .map(|model| format!("{model}{}", tier.unwrap_or_default()));
    let [finish, model] = [step.finish.clone(), model].map(|text| text.unwrap_or_else(unknown));
    let built = step.build.as_ref().map(|build| build.seconds.0);
    let build = built.map(|built| format!(" (+ {})", seconds(built)));
    let took = seconds(step.seconds.0) + &build.unwrap_or_default();
    let files = grouped(step.changed_files().count() as u64);
    let cost = words::cost(step.cost.unwrap_or_default(), step.cost.is_some());
    let numbers = [took, files]
        .into_iter()
        .chain(used(step.usage))
        .chain([cost]);
    let row = Row::new([step.id().title(), words, finish, model], numbers);
    let (model, build) = (micros(step.seconds.0), micros(built.unwrap_or_default()));
    Row { outcome, ..row }.with_bar(model, build)
}

fn unknown() -> String {
    "\u{2013}".to_owned()
}

/// Returns the cells for token counts.
fn used(usage: Option<Usage>) -> [String; 4] {
    let Some(usage) = usage else {
        return [(); 4].map(|()| unknown());
    };
    let (read, cached) = (usage.input_tokens, usage.cached_tokens);
    let mut cells = [read, cached, usage.thought_tokens, usage.output_tokens].map(grouped);
    if cached > 0 {
        cells[1] += &format!(" ({} %)", percent(cached, read));
    }
    cells
}
