//! The story of a run as a whole: its outcome, its problems, the request and the result. Pure.

use super::attempts;
use super::block::{Block, Extent, Fact, Form, Section};
use super::sources::Sources;
use crate::record::branches::{BranchRecord, Lineage, ReviewVerdict};
use crate::record::finding::Severity;
use crate::record::gate::{GateRecord, OldGate};
use crate::record::orchestration::OrchestrationRecord;
use crate::record::result::{AgentRecord, ErrorRecord, NO_ANSWER, RunRecord};
use crate::run::past::history::PastRun;
use crate::run::past::table::{RESULT, Row, Table};
use crate::run::past::words::{self, cost_of_run, count, seconds};
use crate::sys::numbers::{counted, grouped, percent};
use crate::sys::text::first_lines;

/// The maximum number of warnings.
const WARNINGS: usize = 100;
/// The maximum number of the user's answers.
const ANSWERS: usize = 50;
/// The maximum number of branches.
const BRANCHES: usize = 200;

/// Describes the kind of run, and whether it was undone.
pub fn about(run: &PastRun) -> Vec<String> {
    let did = run.record.as_ref().map(|record| {
        if run.name.is_empty() {
            return "The run did not begin: nothing was sent, and nothing was changed.".to_owned();
        }
        let model = record.model.as_deref().unwrap_or_default();
        let did = match (&*record.workflow, &record.agent) {
            (_, Some(agent)) if agent.directs_agents() => {
                format!("ran {model} as an orchestrator")
            }
            (_, Some(_)) => format!("ran {model} as an agent"),
            ("commit", _) => format!("asked {model} for a change"),
            ("consistency", _) => format!("asked {model} for a consistency report"),
            ("undo", _) => "restored the project".to_owned(),
            ("trial", _) => format!("tried {model}"),
            (other, _) => other.to_owned(),
        };
        let began = record.started.format("%Y-%m-%d %H:%M:%S %:z");
        format!("On {began}, code-commit {} {did}.", record.version)
    });
    let undone = run
        .undone_by
        .as_ref()
        .map(|undo| format!("Its changes were undone by {undo}."));
    did.into_iter().chain(undone).collect()
}

/// Describes the run in numbers.
pub fn facts(record: &RunRecord) -> Vec<Fact> {
    let asked = !record.steps.is_empty();
    let (calls, changes_files) = match &record.agent {
        Some(agent) => (words::calls(record), !agent.directs_agents()),
        None => (
            count(record.repairs(), "repair"),
            record.workflow == "commit",
        ),
    };
    let code = format!("exit code {}", record.exit.code);
    let mut facts = vec![("Result", words::result(record), Some(code))];
    if let Some(model) = &record.model {
        let version = record
            .model_version
            .clone()
            .filter(|version| version != model);
        facts.push(("Model", model.clone(), version));
    }
    facts.push((
        "Took",
        seconds(record.seconds.0),
        Some(calls).filter(|calls| asked && !calls.is_empty()),
    ));
    if asked {
        facts.push(("Cost", cost_of_run(record), None));
    }
    if let Some(usage) = record.usage() {
        let share = percent(usage.cached_tokens, usage.input_tokens);
        let cached = among(usage.cached_tokens, &format!("cached, {share} %"));
        let thoughts = among(usage.thought_tokens, "thoughts");
        facts.push(("Tokens in", grouped(usage.input_tokens), cached));
        facts.push(("Tokens out", grouped(usage.answered()), thoughts));
    }
    if changes_files {
        let files = record.stat.map(|stat| counted(stat.files, "file"));
        let lines = record
            .stat
            .map(|stat| words::lines(stat.added, stat.removed));
        let is_dropped = record.scratch.is_some() && record.exit.code != 0;
        let dropped = is_dropped.then(|| "its scratch tree was discarded".to_owned());
        // Changes made by an agent's commands are not recorded.
        let by = record
            .agent
            .is_some()
            .then(|| "by its file tools".to_owned());
        let aside = lines.or(dropped).or(by);
        facts.push(("Changed", files.unwrap_or("nothing".to_owned()), aside));
    }
    facts
}

fn among(tokens: u64, what: &str) -> Option<String> {
    (tokens > 0).then(|| format!("{} {what}", grouped(tokens)))
}

/// Describes everything except the changes and the steps.
pub fn sections<'a>(run: &'a PastRun, request: Option<&'a str>) -> Vec<Section<'a>> {
    let record = run.record.as_ref();
    let request = match (run.agent(), request) {
        (Some(agent), _) => Some(Section::new("The request", of_agent(agent))),
        (None, Some(query)) => Some(Section::new("The query", vec![asked_for(query)])),
        (None, None) => None,
    };
    let report = record.and_then(|record| record.orchestration.as_ref());
    let attempts = run.choice().map(|choice| {
        let taken = Block::Note(attempts::taken(&choice));
        let table = Block::Table(attempts::table(&choice));
        Section::new("Attempts", vec![table, taken])
    });
    let parts = [
        record.and_then(|record| Some(error(record.error.as_ref()?))),
        record.and_then(|record| Some(gate(record.gate.as_ref()?))),
        record.and_then(warnings),
        attempts,
        request,
        report.map(result),
        run.lineage().as_ref().map(branches),
    ];
    parts.into_iter().flatten().collect()
}

fn error(error: &ErrorRecord) -> Section<'_> {
    let hint = error.hint.as_ref().map(|hint| format!("Hint: {hint}"));
    let notes = [Some(error.message.clone()), hint].into_iter().flatten();
    Section {
        severity: Some(Severity::Error),
        ..Section::new("Error", notes.map(Block::Note).collect())
    }
}

fn gate(gate: &GateRecord) -> Section<'_> {
    let holds = gate.old_gate != OldGate::Failed || !gate.excused.is_empty();
    Section {
        severity: (!holds).then_some(Severity::Error),
        ..Section::new("The gate", gate.summary().map(Block::Note).into())
    }
}

fn warnings(record: &RunRecord) -> Option<Section<'_>> {
    let warnings = &record.warnings;
    let title = count(warnings.len(), "warning");
    let items = first_lines(warnings.iter().cloned(), WARNINGS);
    (!warnings.is_empty()).then(|| Section {
        severity: Some(Severity::Warning),
        ..Section::new(title, vec![Block::Items(items)])
    })
}

fn asked_for(text: &str) -> Block<'_> {
    Block::Text(Form::Request, text.into(), Extent::First)
}

/// Describes the request to an agent, and its questions to the user.
fn of_agent(agent: &AgentRecord) -> Vec<Block<'_>> {
    let mut blocks = vec![match &agent.request {
        Some(request) => asked_for(request),
        None => Block::note("It continued the previous task."),
    }];
    if let Some(settings) = &agent.orchestration {
        let (branch, project) = (&settings.parent_branch_id, &settings.project_name);
        let began = format!("It began from branch {branch} of the project {project}.");
        blocks.push(Block::Note(began));
    }
    for (question, answer) in agent.asked().take(ANSWERS) {
        if let Some(question) = question {
            blocks.extend([Block::title("The user was asked"), Block::prose(question)]);
        }
        let answer = answer.unwrap_or(NO_ANSWER);
        blocks.extend([Block::title("The user answered"), Block::prose(answer)]);
    }
    let more = agent.answers.len().saturating_sub(ANSWERS);
    if more > 0 {
        blocks.push(Block::Note(format!("and {}", count(more, "more answer"))));
    }
    let session = agent.session.as_ref();
    blocks.extend(session.map(|id| Block::Note(format!("Session: {id}"))));
    blocks
}

/// Shows the final report on the agents' work.
fn result(report: &OrchestrationRecord) -> Section<'_> {
    let mut blocks = vec![Block::prose(&report.summary)];
    if let Some(published) = &report.publish_report {
        let branch = report
            .publish_pantheon_branch_id
            .as_ref()
            .map(|branch| format!(" from branch {branch}"));
        let title = format!("Published{}", branch.unwrap_or_default());
        blocks.extend([Block::title(title), Block::prose(published)]);
    }
    let failure = report.publish_error.as_ref();
    blocks.extend(failure.map(|why| Block::Note(format!("It was not published: {why}"))));
    blocks.extend([
        Block::title("What to do now"),
        Block::prose(&report.instructions),
    ]);
    Section::new("The result", blocks)
}

/// Lists the branches and, for a run without a record, the point that it had reached.
fn branches(lineage: &Lineage) -> Section<'static> {
    let starting = lineage
        .starting
        .as_ref()
        .map(|agent| format!("{agent} was being started, on a branch that is not known."));
    let waiting = lineage
        .waiting_for
        .as_ref()
        .map(|branch| format!("It was waiting for branch {branch}, which may go on remotely."));
    let last = format!(
        "It began from branch {}; the last one that succeeded is {}, after {}.",
        lineage.start_branch_id,
        lineage.latest_branch_id,
        counted(lineage.iterations.into(), "review")
    );
    let heads = ["branch", "from", "agent", "status", RESULT];
    let mut blocks = vec![Block::Table(Table::new(
        &heads,
        &["took"],
        "",
        lineage.branches.iter().map(branch),
        BRANCHES,
    ))];
    let notes = [starting, waiting, Some(last)].into_iter().flatten();
    blocks.extend(notes.map(Block::Note));
    Section::new("Branches", blocks)
}

fn branch(branch: &BranchRecord) -> Row {
    let status = match &*branch.status {
        "" => "not heard of",
        status => status,
    };
    let verdict = branch.verdict.map_or("", |verdict| verdict.into_str());
    let texts = [&branch.id, &branch.parent, &branch.agent, status, verdict];
    Row {
        outcome: branch.verdict.map(|it| it == ReviewVerdict::Clean),
        ..Row::new(texts.map(str::to_owned), [seconds(branch.seconds.0)])
    }
}

/// Shows the total changes of a run: an undo, an agent's run, or one with repairs.
pub fn changes(sources: &Sources) -> Option<Section<'_>> {
    let all = sources.changes.as_ref()?;
    let are_there = !all.files.is_empty();
    let mut blocks = Vec::from_iter(are_there.then_some(Block::Changes(&all.files)));
    if !all.doubts.is_empty() {
        blocks.push(Block::note(
            "What was in some of these files is not known any more: it counts as nothing, or is left out.",
        ));
    }
    if sources.steps.iter().all(|past| past.step.is_agents()) {
        return Some(Section::new("Changes", blocks));
    }
    let whole = "From before the run to its end. What each reply changed stands below.";
    blocks.insert(0, Block::note(whole));
    Some(Section::new("The whole change", blocks))
}
