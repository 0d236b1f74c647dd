//! Lists the runs that were, or tells one as a story. Changes nothing.

use std::path::Path;

use serde_json::{Value, json};

use super::{Context, Failure, Outcome};
use crate::agent::tools::notes::DONE;
use crate::model::usage::Usage;
use crate::record::diff;
use crate::record::{self, AgentRecord, RunRecord, TreeState};
use crate::review::history::{self, PastAttempt, PastRun, RunChanges};
use crate::review::page::step::{self, Came, UsedTool};
use crate::sys::numbers::grouped;
use crate::ui::columns::{
    self,
    Align::{Left, Right},
};
use crate::ui::json::record;
use crate::workflow::error::Error;

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
        None => {
            let runs = history::runs(project).map_err(Error::from)?;
            Ok(list(&runs))
        }
        Some(run) => {
            let name = history::find(project, run).map_err(Error::from)?;
            let run = PastRun::read(project, &name);
            let data = data(&run);
            Ok(Outcome::shown(story(context, &run), data))
        }
    }
}

const HEAD: [&str; 9] = [
    "run",
    "workflow",
    "model",
    "result",
    "repairs",
    "tokens in",
    "out",
    "cost",
    "seconds",
];

fn list(runs: &[PastRun]) -> Outcome {
    let data = json!({"schema": 1, "runs": runs.iter().map(data).collect::<Vec<_>>()});
    if runs.is_empty() {
        return Outcome {
            summary: "there is no run in `logs` yet".to_owned(),
            data: Some(data),
            ..Outcome::default()
        };
    }
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(row));
    let aligns = [Left, Left, Left, Left, Right, Right, Right, Right, Right];
    Outcome::shown(columns::aligned(&rows, &aligns).join("\n"), data)
}

fn data(run: &PastRun) -> Value {
    let result = run.record.as_ref().map(record);
    json!({"log": run.relative(), "workflow": run.workflow(), "result": result})
}

fn row(run: &PastRun) -> Vec<String> {
    let Some(record) = &run.record else {
        let mut row = vec![String::new(); HEAD.len()];
        row[0].clone_from(&run.name);
        run.workflow().clone_into(&mut row[1]);
        "unfinished".clone_into(&mut row[3]);
        return row;
    };
    // An undo asks nobody.
    let asked = !record.attempts.is_empty();
    let only = |text: String| if asked { text } else { String::new() };
    let tokens = |of: fn(Usage) -> u64| {
        only(
            record
                .usage()
                .map_or("?".to_owned(), |usage| grouped(of(usage))),
        )
    };
    vec![
        run.name.clone(),
        run.workflow().to_owned(),
        record.model.clone().unwrap_or_default(),
        result(record),
        only(repairs(record)),
        tokens(|usage| usage.input_tokens),
        tokens(|usage| usage.answered()),
        only(record.cost.map_or("?".to_owned(), |cost| cost.to_string())),
        format!("{:.1}", record.seconds.0.as_secs_f64()),
    ]
}

/// An agent does not repair: it goes on.
fn repairs(record: &RunRecord) -> String {
    match record.agent {
        Some(_) => String::new(),
        None => record.repairs().to_string(),
    }
}

fn tokens_text(usage: Usage) -> String {
    let (input, output) = (grouped(usage.input_tokens), grouped(usage.answered()));
    format!(", {input} tokens in, {output} out")
}

fn result(record: &RunRecord) -> String {
    let taken_back = if record.tree == TreeState::PutBack {
        ", taken back"
    } else {
        ""
    };
    format!("{}{taken_back}", record.exit.name)
}

fn story(context: &Context<'_>, run: &PastRun) -> String {
    let mut told = Story::default();
    told.beginning(run);
    let attempts = run.attempts(&context.project);
    for attempt in &attempts {
        told.attempt(attempt);
    }
    if run
        .record
        .as_ref()
        .is_some_and(|record| record.agent.is_some())
    {
        let changes = run.changes(&context.project).unwrap_or_default();
        told.changed(&changes);
    }
    told.end(run);
    told.0
}

/// The first line of a tool's input, not too long.
fn first_of(input: &str) -> String {
    let input = input.trim();
    let line = input.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(WIDTH).collect();
    let more = if shown.len() < input.len() {
        " …"
    } else {
        ""
    };
    format!("{shown}{more}")
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
            self.line("This run has no record: it goes on, or it was killed.");
            return;
        };
        let began = record.started.format("%Y-%m-%d %H:%M:%S %:z");
        let model = record.model.as_deref().unwrap_or_default();
        let what = match &*record.workflow {
            "commit" => format!("asked {model} for a change"),
            "consistency" => format!("asked {model} for a consistency report"),
            "undo" => "put the project back".to_owned(),
            "dev" => format!("let {model} work as an agent"),
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
        self.line(&format!("Session: {}", agent.session));
        match &agent.request {
            None => self.line("It went on with what was asked for before."),
            Some(request) => {
                self.line("It was asked:");
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
            self.line(&format!("{indent}… {left} lines more"));
        }
    }

    /// The last lines of a text.
    fn end_of(&mut self, text: &str) {
        let lines: Vec<&str> = text.lines().collect();
        let from = lines.len().saturating_sub(QUOTED);
        if from > 0 {
            self.line(&format!("    … {from} lines before"));
        }
        for line in &lines[from..] {
            self.line(&format!("    {line}"));
        }
    }

    fn attempt(&mut self, attempt: &PastAttempt) {
        let name = attempt.step.title();
        self.line("");
        self.line(&format!("{name}{}", Self::figures(attempt)));
        match &attempt.reply {
            None => self.line("  There is no answer."),
            Some(Err(error)) => {
                for line in error.lines() {
                    self.line(&format!("  {line}"));
                }
            }
            Some(Ok(reply)) if step::is_agents(&attempt.step) => self.agents(attempt, reply),
            Some(Ok(_)) if attempt.changes.is_empty() => self.line("  The answer changed no file."),
            Some(Ok(_)) => {
                let stat = diff::stat(&attempt.changes).text(WIDTH);
                for line in stat.lines() {
                    self.line(&format!(" {line}"));
                }
            }
        }
        let build = attempt.build.as_ref();
        if let Some((status, output)) = build.filter(|_| !step::is_agents(&attempt.step)) {
            self.build(attempt, status, output);
        }
    }

    fn figures(attempt: &PastAttempt) -> String {
        let Some(record) = &attempt.record else {
            return ":".to_owned();
        };
        let model = record.model.as_ref().map(|model| format!(" to {model}"));
        let tokens = record.usage.map(tokens_text);
        let cost = record.cost.map(|cost| format!(", {cost}"));
        let figures = [model, tokens, cost].into_iter().flatten();
        let seconds = record.seconds.0.as_secs_f64();
        format!("{}, {seconds:.1}s:", figures.collect::<String>())
    }

    fn build(&mut self, attempt: &PastAttempt, status: &str, output: &str) {
        let record = attempt
            .record
            .as_ref()
            .and_then(|record| record.build.as_ref());
        let took = record.map(|build| format!(", {:.1}s", build.seconds.0.as_secs_f64()));
        let passed = status == "exit code: 0";
        let ended = status.starts_with("exit code: ")
            || status.starts_with("signal: ")
            || status.starts_with("ended after");
        let verb = match (passed, ended) {
            (true, _) => "passed",
            (false, true) => "failed",
            (false, false) => "did not end",
        };
        self.line(&format!(
            "  build.sh {verb} ({status}){}",
            took.unwrap_or_default()
        ));
        if passed {
            return;
        }
        self.end_of(output);
    }

    /// What an agent did in a call.
    fn agents(&mut self, attempt: &PastAttempt, reply: &str) {
        self.beginning_of(&step::thoughts(reply), "  ");
        match step::came_of(attempt, reply) {
            Came::Tools(tools) => tools.iter().for_each(|used| self.tool(used)),
            Came::Verdict { passed } => {
                let verdict = if passed { "passed" } else { "did not pass" };
                self.line(&format!("  The audit {verdict} the work:"));
                self.end_of(reply.trim_end());
            }
            Came::Summary => self.line("  The reply sums up what was said before."),
            Came::Nothing => {
                self.line(
                    "  Nothing came of it: the reply was not understood, or the run ended before.",
                );
            }
        }
        for (did, path) in step::edits(attempt.record.as_ref()) {
            self.line(&format!("  {did} {path}"));
        }
    }

    fn tool(&mut self, used: &UsedTool<'_>) {
        let failed = if used.failed { " failed:" } else { "" };
        if used.name == DONE.name && !used.failed {
            self.line("  DONE:");
            self.beginning_of(used.result, "    ");
        } else {
            let call = format!("{} {}", used.name, first_of(used.input));
            self.line(&format!("  {}{failed}", call.trim_end()));
        }
        if used.failed {
            self.end_of(used.result);
        }
    }

    /// What a run as a whole has changed.
    fn changed(&mut self, changes: &RunChanges) {
        if changes.files.is_empty() {
            return;
        }
        self.line("");
        self.line("All in all, it changed:");
        for line in diff::stat(&changes.files).text(WIDTH).lines() {
            self.line(&format!(" {line}"));
        }
        if !changes.doubts.is_empty() {
            self.line(
                "  What was in some of these files is not known any more: it counts as nothing.",
            );
        }
    }

    fn end(&mut self, run: &PastRun) {
        let Some(record) = &run.record else {
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
        let tokens = record.usage().map(tokens_text);
        let cost = record.cost.map(|cost| format!(", {cost}"));
        let spent = [tokens, cost.filter(|_| !record.attempts.is_empty())];
        let spent: String = spent.into_iter().flatten().collect();
        let seconds = record.seconds.0.as_secs_f64();
        self.line(&format!(
            "It ended as {} after {seconds:.1}s{spent}.",
            result(record)
        ));
    }
}
