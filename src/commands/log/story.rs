//! One run, step by step, as text.

mod orchestration;

use std::vec::IntoIter;

use crate::agent::tools::notes::DONE;
use crate::commands::choice;
use crate::commands::orchestrate::report::FinalReport;
use crate::edit::{self, EditKind, Sent};
use crate::model::Purpose;
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::project::Project;
use crate::record::gate::GateRecord;
use crate::record::orchestration::{EXECUTE_AGENT, READ_ARTIFACT};
use crate::record::result::{self, AgentRecord, RunRecord};
use crate::record::run_files::ORCHESTRATE;
use crate::record::step::{Action, BuildRecord, Step};
use crate::run::code_context::CodeContext;
use crate::run::context::Context;
use crate::run::past::figures::taken_back;
use crate::run::past::findings;
use crate::run::past::history::{PastRun, RunChanges, UnrecordedState};
use crate::run::past::past_step::{IdleReply, PastStep};
use crate::run::past::story::{Part, build_verb};
use crate::sys::diff::{self, FileChange};
use crate::sys::numbers::grouped;
use crate::sys::text::escaped;
use crate::ui::columns;

/// The number of lines of a build's output quoted.
const QUOTED: usize = 12;
/// The width of a stat, in columns.
const WIDTH: usize = 76;

/// Returns the story of a run, folded to the terminal's width.
pub(super) fn story(context: &Context<'_>, run: &PastRun) -> String {
    let answers = run.agent().map(|agent| agent.answers.clone());
    let mut told = Story {
        text: String::new(),
        answers: answers.unwrap_or_default().into_iter(),
        is_killed: run.record.is_none(),
    };
    told.beginning(run, &context.project);
    let steps = run.steps(&context.project);
    for past in &steps {
        told.step(past);
    }
    if steps.iter().any(|past| past.step.is_agents()) {
        told.changed(&run.changes(&context.project).unwrap_or_default());
    }
    told.branches(run);
    if let Some(choice) = run.choice() {
        told.line("");
        for line in choice::table(&choice) {
            told.line(line);
        }
    }
    if let Some(record) = &run.record {
        told.end(record);
    }
    told.lines("Its changes were undone by ", run.undone_by.as_deref());
    columns::folded(&told.text, context.reporter.columns(), 2)
}

/// Returns the first line of a tool's input, truncated.
fn first_of(input: &str) -> String {
    let input = input.trim();
    let line = input.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(WIDTH).collect();
    let more = if shown.len() == input.len() {
        ""
    } else {
        " …"
    };
    shown + more
}

/// The description of a run, as text being built.
struct Story {
    text: String,
    /// The user's answers to the model of an orchestration that have not been shown yet.
    answers: IntoIter<Option<String>>,
    /// True if the run has no record.
    is_killed: bool,
}

impl Story {
    fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(text.as_ref());
        self.text.push('\n');
    }

    fn lines<'t>(&mut self, indent: &str, lines: impl IntoIterator<Item = &'t str>) {
        for line in lines {
            self.line(format!("{indent}{line}"));
        }
    }

    fn beginning(&mut self, run: &PastRun, project: &Project) {
        self.line(run.relative());
        if let Some(record) = &run.record {
            let began = record.started.format("%Y-%m-%d %H:%M:%S %:z");
            let model = record.model.as_deref().unwrap_or_default();
            let what = match &*record.workflow {
                "commit" => format!("asked {model} for a change"),
                "consistency" => format!("asked {model} for a consistency report"),
                "undo" => "restored the project".to_owned(),
                "trial" => format!("tried {model}"),
                "dev" => format!("ran {model} as an agent"),
                ORCHESTRATE => format!("ran {model} as an orchestrator"),
                other => other.to_owned(),
            };
            let version = &record.version;
            self.line(format!("On {began}, code-commit {version} {what}."));
        } else {
            let state = match run.state(project) {
                UnrecordedState::Running => "is still running",
                UnrecordedState::Unfinished => "is still running, or it was killed",
                UnrecordedState::Killed => "was killed",
            };
            self.line(format!("This run has no record: it {state}."));
        }
        if let Some(agent) = run.agent() {
            self.request(agent);
        } else if let Some(query) = run.request() {
            self.line("The query:");
            self.beginning_of(&query, "    ");
        }
    }

    fn request(&mut self, agent: &AgentRecord) {
        if let Some(session) = &agent.session {
            self.line(format!("Session: {session}"));
        }
        match &agent.request {
            None => self.line("It continued the previous task."),
            Some(request) => {
                self.line("The task:");
                self.beginning_of(request, "  ");
            }
        }
        if let Some(settings) = &agent.orchestration {
            return self.started_from(settings);
        }
        for (question, answer) in agent.asked() {
            if let Some(question) = question {
                self.line("The user was asked:");
                self.beginning_of(question, "  ");
            }
            self.answer(answer);
        }
    }

    /// Adds the first lines of a text.
    fn beginning_of(&mut self, text: &str, indent: &str) {
        let mut lines = text.trim().lines();
        self.lines(indent, lines.by_ref().take(QUOTED));
        let left = lines.count();
        if left > 0 {
            self.line(format!("{indent}… {left} more lines"));
        }
    }

    /// Adds the last lines of a text.
    fn end_of(&mut self, text: &str) {
        let from = text.lines().count().saturating_sub(QUOTED);
        if from > 0 {
            self.line(format!("    … {from} earlier lines"));
        }
        self.lines("    ", text.lines().skip(from));
    }

    fn step(&mut self, past: &PastStep) {
        self.line(format!("\n{}", heading(&past.step)));
        for part in past.story() {
            self.part(past, part);
        }
    }

    /// Tells the changes of a reply with edits, or the files that it asks for.
    fn edits(&mut self, past: &PastStep, reply: &str) {
        let step = &past.step;
        let parsed = edit::read(reply, step.reply_format, &|_| Sent::NotShown);
        self.beginning_of(&parsed.prose, "    ");
        let asked = CodeContext::request(&parsed).filter(|_| step.edits.is_none());
        if let Some(EditKind::Write(list)) = asked.map(|edit| &edit.kind) {
            let files: Vec<String> = list.lines().map(escaped).collect();
            return self.line(format!("  The reply asks for {}.", files.join(", ")));
        }
        if step.edits.is_none() && past.is_attempt {
            let applied = if self.is_killed {
                "It was"
            } else {
                "Nothing of it was applied: it was"
            };
            self.line(format!("  {applied} built in a scratch tree of its own."));
        } else if past.changes.is_empty() {
            // What is located in lines that a build has changed cannot be computed again.
            for (did, path) in step.changed_files() {
                self.line(format!("  {did} {path}"));
                let edit = parsed.unlocated.iter().find(|edit| edit.path == path);
                let parts = edit.into_iter().flat_map(|edit| &edit.parts);
                let lines = parts.flat_map(|part| {
                    let found = part.find.lines().map(|line| format!("-{line}\n"));
                    found.chain(part.put.lines().map(|line| format!("+{line}\n")))
                });
                self.beginning_of(&lines.collect::<String>(), "    ");
            }
            if step.changed_files().next().is_none() {
                self.line("  The reply changed no files.");
            }
        }
        self.stat(&past.changes);
    }

    fn part(&mut self, past: &PastStep, part: Part<'_>) {
        let step = &past.step;
        match part {
            Part::NoReply => self.line("  There is no reply."),
            Part::Error(error) => self.lines("  ", error.lines()),
            Part::Findings(findings) => self.beginning_of(findings, "    "),
            Part::Report(_) => self.line("  The reply is the report."),
            Part::Edits(_) if let Some(why) = &step.rejected => self.lines("  ", why.lines()),
            Part::Edits(_) if step.is_on_disk => {
                self.line("  The reply's edits were on disk already.");
            }
            Part::Edits(reply) => self.edits(past, reply),
            Part::Thoughts(thoughts) => self.beginning_of(thoughts, "  "),
            Part::Reply(_) if step.purpose == Purpose::COMPRESSION => {
                self.line("  The reply summarizes the conversation so far.");
            }
            Part::Reply(reply) if step.purpose == Purpose::AUDIT && step.actions.is_empty() => {
                self.line(match step.passed {
                    Some(true) => "  The audit passed the work:",
                    Some(false) => "  The audit did not pass the work:",
                    None => "  The audit's verdict is not recorded:",
                });
                self.end_of(reply.trim_end());
            }
            Part::Reply(_) => {}
            Part::Actions([]) if step.is_own() => self.line("  It did not come to its end."),
            Part::Actions(actions) => actions.iter().for_each(|action| self.action(action)),
            Part::Tools(tools) => self.beginning_of(tools, "    "),
            Part::Answer(answer) => {
                self.line("  Answer:");
                self.beginning_of(answer, "    ");
            }
            Part::Idle(idle, reply) => self.idle(idle, reply),
            Part::Build(status, output) => self.build(step, status, output),
            Part::Files => {
                for (did, path) in step.changed_files() {
                    self.line(format!("  {did} {path}"));
                }
            }
        }
    }

    fn stat(&mut self, changes: &[FileChange]) {
        if !changes.is_empty() {
            self.lines(" ", diff::stat(changes).text(WIDTH).lines());
        }
    }

    fn build(&mut self, step: &Step, status: &str, output: &str) {
        let build = step.build.as_ref();
        let took = build.map(|build| format!(", {}s", build.seconds));
        let (verb, took) = (build_verb(build), took.unwrap_or_default());
        self.line(format!("  build.sh {verb} ({status}){took}"));
        if build.is_some_and(BuildRecord::passed) {
            return;
        }
        // Short output is shown in full.
        let is_short = output.lines().count() <= QUOTED;
        let errors = if is_short {
            Vec::new()
        } else {
            findings::errors(output)
        };
        if errors.is_empty() {
            return self.end_of(output);
        }
        self.lines("    ", errors.iter().map(String::as_str));
    }

    /// Adds a reply that had no effect.
    fn idle(&mut self, idle: IdleReply, reply: &str) {
        match idle {
            IdleReply::Words if FinalReport::read(reply).is_ok() => {
                self.line("  It said that it is done, which did not count:");
                self.beginning_of(reply, "    ");
            }
            IdleReply::Words => {
                self.line("  It said:");
                self.beginning_of(reply, "    ");
                // Each reply in words is put to the user, if there is one.
                if let Some(answer) = self.answers.next() {
                    self.answer(answer.as_deref());
                }
            }
            IdleReply::Call => {
                self.beginning_of(reply, "    ");
                self.line("  The call did not come to its end: the run ended first.");
            }
            IdleReply::NotUnderstood => self
                .line("  Nothing was done: the reply was not understood, or the run ended first."),
        }
    }

    fn answer(&mut self, answer: Option<&str>) {
        self.line("The user answered:");
        self.beginning_of(answer.unwrap_or(result::NO_ANSWER), "  ");
    }

    fn action(&mut self, action: &Action) {
        match &*action.tool {
            EXECUTE_AGENT => return self.execution(action),
            READ_ARTIFACT if !action.failed => return self.artifact(action),
            _ => {}
        }
        let result = action.result.as_deref().unwrap_or_default();
        let call = format!("  {} {}", action.tool, first_of(&action.input_text()));
        let call = call.trim_end();
        // Older runs do not record the result in the step.
        let colon = if result.is_empty() { "" } else { ":" };
        if action.failed {
            self.line(format!("{call} failed{colon}"));
            self.end_of(result);
        } else if action.tool == DONE.name {
            self.line(format!("  DONE{colon}"));
            self.beginning_of(result, "    ");
        } else {
            self.line(call);
        }
    }

    /// Adds the total changes of a run.
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

    fn end(&mut self, record: &RunRecord) {
        if let Some(report) = &record.orchestration {
            self.report(report);
        }
        self.line("");
        for warning in &record.warnings {
            self.line(format!("warning: {warning}"));
        }
        for line in record.gate.iter().flat_map(GateRecord::told) {
            self.line(line);
        }
        if let Some(error) = &record.error {
            self.line(format!("error: {}", error.message));
            self.lines("hint: ", error.hint.as_deref());
        }
        let cost = record.cost.filter(|_| !record.steps.is_empty());
        let (seconds, spent) = (record.seconds, spent(record.usage(), cost));
        self.line(format!(
            "It ended as {} after {seconds}s{spent}.",
            result_of(record)
        ));
    }
}

fn heading(step: &Step) -> String {
    let id = step.id();
    // The first call has no number to refer to.
    let (title, to) = match id.number {
        0 => (format!("The call for {id}"), ", to"),
        _ => (id.title(), " to"),
    };
    // After a kill, nothing more may be known.
    let Some(model) = &step.model else {
        return title + ":";
    };
    let served = step.served.as_ref().filter(|served| *served != model);
    let served = served
        .map(|served| format!("{served} for "))
        .unwrap_or_default();
    let tier = step
        .tier
        .map(|tier| format!(" ({})", tier.word()))
        .unwrap_or_default();
    let (spent, seconds) = (spent(step.usage, step.cost), step.seconds);
    format!("{title}{to} {served}{model}{tier}{spent}, {seconds}s:")
}

fn spent(usage: Option<Usage>, cost: Option<Usd>) -> String {
    let tokens = usage.map(|usage| {
        let (input, output) = (grouped(usage.input_tokens), grouped(usage.answered()));
        format!(", {input} tokens in, {output} out")
    });
    let cost = cost.map(|cost| format!(", {cost}"));
    tokens.into_iter().chain(cost).collect()
}

/// Names how a run ended.
pub(super) fn result_of(record: &RunRecord) -> String {
    let status = record.orchestration.as_ref().map(|told| told.status.word());
    let name = status.unwrap_or(&record.exit.name);
    format!("{name}{}", taken_back(record.tree))
}
