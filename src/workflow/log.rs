//! Lists the runs that were, or tells one as a story. Changes nothing.

use std::path::Path;

use serde_json::{Value, json};

use super::{Context, Failure, Outcome};
use crate::agent::tools::notes::DONE;
use crate::model::Purpose;
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::record::diff::{self, FileChange};
use crate::record::{self, Action, AgentRecord, BuildRecord, RunRecord, Step};
use crate::review::figures::{Figures, taken_back};
use crate::review::history::{self, PastRun, PastStep, RunChanges};
use crate::sys::numbers::grouped;
use crate::ui::columns::{
    self,
    Align::{Left, Right},
};
use crate::ui::json::record;

/// How many lines of a build's output a story quotes.
const QUOTED: usize = 12;
/// How many columns a stat takes.
const WIDTH: usize = 76;

/// Lists all runs, or tells of `run`.
///
/// # Errors
/// When there is no such run, or `logs` cannot be read.
pub fn log(context: &Context<'_>, run: Option<&Path>) -> Result<Outcome, Failure> {
    let project = &context.project;
    match run {
        None => Ok(list(&history::runs(project)?)),
        Some(run) => {
            let run = PastRun::read(project, &history::find(project, run)?);
            let data = data(&run);
            Ok(Outcome::shown(story(context, &run), data))
        }
    }
}

const HEAD: &str = "run|workflow|model|result|repairs|tokens in|out|cost|seconds";

fn list(runs: &[PastRun]) -> Outcome {
    let data = json!({"schema": 1, "runs": runs.iter().map(data).collect::<Vec<_>>()});
    if runs.is_empty() {
        return Outcome {
            data: Some(data),
            ..Outcome::said("no runs in `logs` yet".to_owned())
        };
    }
    let mut rows = vec![HEAD.split('|').map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(runs.iter().map(row));
    let aligns = [Left, Left, Left, Left, Right, Right, Right, Right, Right];
    Outcome::shown(columns::aligned(&rows, &aligns).join("\n"), data)
}

fn data(run: &PastRun) -> Value {
    let result = run.record.as_ref().map(record);
    json!({"log": run.relative(), "workflow": run.workflow(), "result": result})
}

fn row(run: &PastRun) -> Vec<String> {
    let record = run.record.as_ref();
    let figures = record.map(Figures::of).unwrap_or_default();
    let model = record.and_then(|record| record.model.clone());
    let seconds = record.map(|record| format!("{:.1}", record.seconds.0.as_secs_f64()));
    vec![
        run.name.clone(),
        run.workflow().to_owned(),
        model.unwrap_or_default(),
        record.map_or("unfinished".to_owned(), result),
        figures.repairs,
        figures.tokens_in,
        figures.tokens_out,
        figures.cost,
        seconds.unwrap_or_default(),
    ]
}

fn result(record: &RunRecord) -> String {
    format!("{}{}", record.exit.name, taken_back(record.tree))
}

fn story(context: &Context<'_>, run: &PastRun) -> String {
    let mut told = Story::default();
    told.beginning(run);
    let steps = run.steps(&context.project);
    for past in &steps {
        told.step(past);
    }
    if steps.iter().any(|past| past.step.is_agents()) {
        let changes = run.changes(&context.project).unwrap_or_default();
        told.changed(&changes);
    }
    told.end(run.record.as_ref());
    told.0
}

/// The first line of a tool's input, not too long.
fn first_of(input: &str) -> String {
    let input = input.trim();
    let line = input.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(WIDTH).collect();
    let is_all = shown.len() == input.len();
    if is_all { shown } else { shown + " …" }
}

/// A run in words, as it is being told.
#[derive(Default)]
struct Story(String);

impl Story {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn beginning(&mut self, run: &PastRun) {
        self.line(&run.relative());
        let Some(record) = &run.record else {
            self.line("This run has no record: it is still running, or it was killed.");
            return;
        };
        let began = record.started.format("%Y-%m-%d %H:%M:%S %:z");
        let model = record.model.as_deref().unwrap_or_default();
        let what = match &*record.workflow {
            "commit" => format!("asked {model} for a change"),
            "consistency" => format!("asked {model} for a consistency report"),
            "undo" => "restored the project".to_owned(),
            "dev" => format!("ran {model} as an agent"),
            other => other.to_owned(),
        };
        self.line(&format!(
            "On {began}, code-commit {} {what}.",
            record.version
        ));
        if let Some(agent) = &record.agent {
            self.request(agent);
        }
    }

    fn request(&mut self, agent: &AgentRecord) {
        if let Some(session) = &agent.session {
            self.line(&format!("Session: {session}"));
        }
        match &agent.request {
            None => self.line("It continued the previous task."),
            Some(request) => {
                self.line("The task:");
                self.beginning_of(request, "  ");
            }
        }
        for answer in &agent.answers {
            self.line("The user answered:");
            self.beginning_of(answer.as_deref().unwrap_or(record::NO_ANSWER), "  ");
        }
    }

    /// The first lines of a text.
    fn beginning_of(&mut self, text: &str, indent: &str) {
        let mut lines = text.trim().lines();
        for line in lines.by_ref().take(QUOTED) {
            self.line(&format!("{indent}{line}"));
        }
        let left = lines.count();
        if left > 0 {
            self.line(&format!("{indent}… {left} more lines"));
        }
    }

    /// The last lines of a text.
    fn end_of(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(QUOTED);
        if from > 0 {
            self.line(&format!("    … {from} earlier lines"));
        }
        for line in &lines[from..] {
            self.line(&format!("    {line}"));
        }
    }

    fn step(&mut self, past: &PastStep) {
        self.line(&format!("\n{}", heading(&past.step)));
        match &past.reply {
            None => self.line("  There is no reply."),
            Some(Err(error)) => error
                .lines()
                .for_each(|line| self.line(&format!("  {line}"))),
            Some(Ok(reply)) if past.step.is_agents() => self.agents(past, reply),
            Some(Ok(_)) if past.step.purpose == Purpose::REPORT => {
                self.line("  The reply is the report.");
            }
            Some(Ok(_)) if past.step.rejected.is_some() => {
                let why = past.step.rejected.iter().flat_map(|why| why.lines());
                why.for_each(|line| self.line(&format!("  {line}")));
            }
            Some(Ok(_)) if past.step.is_on_disk => {
                self.line("  The reply's edits were on disk already.");
            }
            Some(Ok(_)) if past.changes.is_empty() => self.line("  The reply changed no files."),
            Some(Ok(_)) => self.stat(&past.changes),
        }
        if let Some((status, output)) = past.build_log() {
            self.build(&past.step, status, output);
        }
    }

    fn stat(&mut self, changes: &[FileChange]) {
        for line in diff::stat(changes).text(WIDTH).lines() {
            self.line(&format!(" {line}"));
        }
    }

    fn build(&mut self, step: &Step, status: &str, output: &str) {
        let build = step.build.as_ref();
        let verb = match build.map(BuildRecord::passed) {
            None => "ran",
            Some(true) => "passed",
            Some(false) => "failed",
        };
        let took = build.map(|build| format!(", {:.1}s", build.seconds.0.as_secs_f64()));
        let took = took.unwrap_or_default();
        self.line(&format!("  build.sh {verb} ({status}){took}"));
        if verb != "passed" {
            self.end_of(output);
        }
    }

    /// What an agent did in a step.
    fn agents(&mut self, past: &PastStep, reply: &str) {
        let step = &past.step;
        if let Some(thoughts) = &step.thoughts {
            self.beginning_of(thoughts, "  ");
        }
        step.actions.iter().for_each(|action| self.action(action));
        if let Some(tools) = &past.tools {
            self.beginning_of(tools, "    ");
        }
        if let Some(answer) = step
            .answer
            .as_ref()
            .filter(|_| step.purpose != Purpose::AUDIT)
        {
            self.line("  Answer:");
            self.beginning_of(answer, "    ");
        } else if past.came_to_nothing() {
            self.line("  Nothing was done: the reply was not understood, or the run ended first.");
        } else if step.purpose == Purpose::COMPRESSION {
            self.line("  The reply summarizes the conversation so far.");
        } else if step.purpose == Purpose::AUDIT && step.actions.is_empty() {
            self.line(match step.passed {
                Some(true) => "  The audit passed the work:",
                Some(false) => "  The audit did not pass the work:",
                None => "  The audit's verdict is not recorded:",
            });
            self.end_of(reply.trim_end());
        }
        for (did, path) in step.changed_files() {
            self.line(&format!("  {did} {path}"));
        }
    }

    fn action(&mut self, action: &Action) {
        let result = action.result.as_deref().unwrap_or_default();
        let call = format!("  {} {}", action.tool, first_of(&action.input_text()));
        let call = call.trim_end();
        // In runs of before, the step does not tell the result.
        let colon = if result.is_empty() { "" } else { ":" };
        if action.failed {
            self.line(&format!("{call} failed{colon}"));
            self.end_of(result);
        } else if action.tool == DONE.name {
            self.line(&format!("  DONE{colon}"));
            self.beginning_of(result, "    ");
        } else {
            self.line(call);
        }
    }

    /// What a run as a whole has changed.
    fn changed(&mut self, changes: &RunChanges) {
        if changes.files.is_empty() {
            return;
        }
        self.line("\nIn total, it changed:");
        self.stat(&changes.files);
        if !changes.doubts.is_empty() {
            self.line(
                "  What was in some of these files is not known any more: it counts as nothing.",
            );
        }
    }

    fn end(&mut self, record: Option<&RunRecord>) {
        let Some(record) = record else {
            return;
        };
        self.line("");
        for warning in &record.warnings {
            self.line(&format!("warning: {warning}"));
        }
        if let Some(error) = &record.error {
            self.line(&format!("error: {}", error.message));
            if let Some(hint) = &error.hint {
                self.line(&format!("hint: {hint}"));
            }
        }
        let cost = record.cost.filter(|_| !record.steps.is_empty());
        let spent = spent(record.usage(), cost);
        let seconds = record.seconds.0.as_secs_f64();
        self.line(&format!(
            "It ended as {} after {seconds:.1}s{spent}.",
            result(record)
        ));
    }
}

fn heading(step: &Step) -> String {
    let id = step.id();
    // The first call has no number to be told by.
    let (title, to) = match id.number {
        0 => (format!("The call for {id}"), ", to"),
        _ => (id.title(), " to"),
    };
    // Of a run that was killed, nothing more may be known.
    let Some(model) = &step.model else {
        return title + ":";
    };
    let spent = spent(step.usage, step.cost);
    let tier = step.tier.map(|tier| format!(" ({})", tier.word()));
    let tier = tier.unwrap_or_default();
    let seconds = step.seconds.0.as_secs_f64();
    format!("{title}{to} {model}{tier}{spent}, {seconds:.1}s:")
}

fn spent(usage: Option<Usage>, cost: Option<Usd>) -> String {
    let tokens = usage.map(|usage| {
        let (input, output) = (grouped(usage.input_tokens), grouped(usage.answered()));
        format!(", {input} tokens in, {output} out")
    });
    let cost = cost.map(|cost| format!(", {cost}"));
    [tokens, cost].into_iter().flatten().collect()
}
