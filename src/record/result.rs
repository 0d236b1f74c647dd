//! The content of `result.json`, as the contract defines it. Plain data.

use crate::record::mode::Mode;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, SecondsFormat};
use serde::{Deserialize, Serialize, Serializer};

use crate::model::Purpose;
use crate::model::price::Usd;

use super::choice::ChoiceRecord;
use super::finding::ReportFinding;
use super::search::SearchRecord;
use super::seconds::Seconds;
use super::step::{BuildRecord, Step};
use crate::exec::scratch::ScratchKind;
use crate::model::usage::Usage;
use crate::record::branches::Lineage;
use crate::record::gate::GateRecord;
use crate::record::orchestration::{OrchestrationRecord, OrchestrationSettings};
use crate::sys::defaults::is_default;
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::identity::Fingerprint;
use crate::sys::interrupt::Signal;

/// The version of the record, which is raised when the meaning of a field changes.
pub const SCHEMA: u32 = 1;

/// The record of an agent's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// The session's id; null if the conversation was not stored.
    pub session: Option<String>,
    /// The user's request; null if the run continued an earlier one.
    pub request: Option<String>,
    /// True if a user was present to answer.
    pub interactive: bool,
    /// The user's answers to the agent's questions, in order; null for a question that was not answered.
    pub answers: Vec<Option<String>>,
    /// The questions that were answered; left out in older runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// The agent's final answer; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The agent's limits.
    pub limits: LimitsRecord,
    /// The text of the project's `AGENTS.md`; left out if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conventions: Option<String>,
    /// The index in the earlier conversation at which the messages about the request begin; left out if 0.
    #[serde(default, skip_serializing_if = "is_default")]
    pub from: usize,
    /// The settings of an orchestration; left out in other runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<OrchestrationSettings>,
    /// The agent's mode at the start of the run; left out if it cannot be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

impl AgentRecord {
    /// Returns whether the agent directs other agents, in which case its text is addressed to the user or is a report.
    pub fn directs_agents(&self) -> bool {
        self.orchestration.is_some()
    }

    /// Returns the questions to the user, where known, with their answers.
    pub fn asked(&self) -> impl Iterator<Item = (Option<&str>, Option<&str>)> {
        self.answers.iter().enumerate().map(|(nth, answer)| {
            let question = self.questions.get(nth);
            (question.map(String::as_str), answer.as_deref())
        })
    }
}

/// A plan, as it was at the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// The path of the plan's document.
    pub document: String,
    /// The state of the plan: `planning`, `in_progress`, `blocked`, `completed` or `failed`.
    pub status: Cow<'static, str>,
    /// The plan's steps, in order.
    pub steps: Vec<PlanStepRecord>,
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStepRecord {
    /// The step's number, counted from 1.
    pub step: usize,
    /// A description of the step.
    pub description: String,
    /// The tool that it needs; `analyze` if it needs none.
    pub tool: String,
    /// The state of the step: `todo`, `active`, `done`, `failed` or `skipped`.
    pub status: Cow<'static, str>,
}

/// The placeholder for a missing answer.
pub const NO_ANSWER: &str = "(nothing)";

/// The limits of an agent, which a replay reuses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LimitsRecord {
    /// The maximum number of tokens of a conversation that are sent: the rest is summarized or left out, or ends the
    /// work. Null if the model's limit is unknown.
    pub max_context_tokens: Option<u64>,
    /// The number of consecutive failures that ends the work if a user is present.
    pub max_retries: u32,
    /// The number of consecutive failures that ends the work without a user, and in audits.
    pub max_retries_automated: u32,
    /// The maximum number of calls to the model.
    pub max_loops: u16,
    /// The time after which a command continues in the background or is ended; left out if no commands are run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_timeout: Option<Seconds>,
}

impl LimitsRecord {
    /// Creates limits that are the same with and without a user.
    pub fn new(
        max_context_tokens: Option<u64>,
        tries: u32,
        max_loops: u16,
        command_timeout: Option<Duration>,
    ) -> Self {
        Self {
            max_context_tokens,
            max_retries: tries,
            max_retries_automated: tries,
            max_loops,
            command_timeout: command_timeout.map(Seconds),
        }
    }

    /// Returns the time limit for a command.
    pub fn command_timeout(&self) -> Duration {
        self.command_timeout.unwrap_or_default().0
    }

    /// Returns the maximum number of tokens of a conversation that are sent.
    pub fn context(&self) -> u64 {
        self.max_context_tokens.unwrap_or(u64::MAX)
    }
}

/// The size of a run's change, as counted by `git diff --shortstat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatRecord {
    /// The number of files changed.
    pub files: u64,
    /// The number of lines added.
    pub added: u64,
    /// The number of lines removed.
    pub removed: u64,
}

/// A section of the consistency report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionRecord {
    /// The section's title, as the prompt specifies it.
    pub title: Cow<'static, str>,
    /// The line of the section's heading, counted from 1; null if the section is missing.
    pub first_line: Option<usize>,
    /// The section's last line.
    pub last_line: Option<usize>,
}

/// The exit status of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The exit code.
    pub code: u8,
    /// The code's name in the contract.
    pub name: Cow<'static, str>,
}

impl From<Exit> for ExitRecord {
    fn from(exit: Exit) -> Self {
        Self {
            code: exit.code(),
            name: exit.name().into(),
        }
    }
}

impl ExitRecord {
    /// Returns the exit; `None` if only another version of the program has it.
    pub fn exit(&self) -> Option<Exit> {
        let mut signals = Signal::ALL.map(Exit::Interrupted).into_iter();
        let signal = signals.find(|exit| exit.code() == self.code);
        signal.or_else(|| Exit::named(&self.name))
    }
}

/// The state of the project's files after a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeState {
    /// The files are as they were.
    #[default]
    Unchanged,
    /// At least one reply was applied.
    Changed,
    /// At least one reply was applied, and the saved copies of the earlier files are gone.
    #[serde(rename = "changed", skip_deserializing)]
    Lost,
    /// The applied edits were undone.
    PutBack,
}

/// The scratch tree of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScratchRecord {
    /// The way in which it was separated from the project.
    pub how: ScratchKind,
}

/// The net effect of a commit's replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEdits {
    /// None of the replies contains edits.
    None,
    /// The replies' edits, together with the changes made by builds, leave every file as it was.
    Same,
    /// The replies changed files; `tree` says whether the changes were undone.
    Made,
}

/// Appends the state of the project's files to a hint, unless they are unchanged.
pub fn hint(hint: Option<String>, tree: TreeState) -> Option<String> {
    let tree = match tree {
        TreeState::Unchanged => return hint,
        TreeState::Changed => {
            "what was applied is still there: see `git diff`; `code-commit undo` takes it back"
        }
        TreeState::Lost => {
            "what was applied is still there: see `git diff`; what it replaced was saved in the run's folder, and is \
             gone, so that `code-commit undo` cannot take it back"
        }
        TreeState::PutBack => {
            "the project is as it was before the run, but for what builds have left in it"
        }
    };
    Some(hint.map_or(tree.to_owned(), |hint| format!("{hint}; {tree}")))
}

/// An error, as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorRecord {
    /// The error message.
    pub message: String,
    /// A suggestion for the user.
    pub hint: Option<String>,
    /// The reason: one of the contract's closed list; left out in older runs.
    #[serde(default)]
    pub reason: Cow<'static, str>,
    /// True if the same command may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// The status that a server answered with, if that is the reason.
    pub http_status: Option<u16>,
    /// The problems that the error consists of; at least one, except in older runs.
    #[serde(default)]
    pub problems: Vec<ProblemRecord>,
}

impl ErrorRecord {
    /// Returns the reason in the form of an error's code.
    pub fn code(&self) -> String {
        let later = if self.retryable { "later" } else { "never" };
        let status = self.http_status.map(|status| status.to_string());
        format!("{}/{}", self.reason, status.as_deref().unwrap_or(later))
    }
}

/// A warning as data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningRecord {
    /// The stable code of its kind, such as `test-skipped`.
    pub code: Cow<'static, str>,
    /// The file; null if the warning is about several.
    pub path: Option<String>,
    /// The line, counted from 1, if the warning is about one.
    pub line: Option<usize>,
    /// The message, which is also among the other warnings.
    pub message: String,
}

/// One of several problems, as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemRecord {
    /// The message.
    pub message: String,
    /// A suggestion for the user.
    pub hint: Option<String>,
}

/// The content of `result.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The version of this format: [`SCHEMA`].
    pub schema: u32,
    /// The program's version.
    pub version: Cow<'static, str>,
    /// The program's file; left out in older runs, and where there was no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Fingerprint>,
    /// `commit`, `consistency` or the name of the command.
    pub workflow: Cow<'static, str>,
    /// The exit status of the run.
    pub exit: ExitRecord,
    /// The run's folder, relative to the project's root; null if the command has none. Left out in older runs.
    pub log: Option<String>,
    /// The state of the project's files.
    #[serde(default)]
    pub tree: TreeState,
    /// The net effect of the replies; only in a commit's run that received a reply to apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edits: Option<RunEdits>,
    /// The folder of the run whose changes this undo reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undid: Option<String>,
    /// The requested model.
    pub model: Option<String>,
    /// The servers that were asked, by model, if they are not the vendors' own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub base_urls: BTreeMap<String, String>,
    /// The version of the model that answered, as reported by the vendor.
    pub model_version: Option<String>,
    /// The time at which the run began.
    #[serde(serialize_with = "local_time")]
    pub started: DateTime<FixedOffset>,
    /// The duration of the run.
    pub seconds: Seconds,
    /// The total cost of the calls; null if the cost of one is unknown.
    pub cost: Option<Usd>,
    /// The size of the change, in lines; null if nothing was changed.
    pub stat: Option<StatRecord>,
    /// The scratch tree that the run worked in, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<ScratchRecord>,
    /// The build before anything was sent; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BuildRecord>,
    /// The steps, in order. Their actions are reduced to the tool's name and whether it failed.
    #[serde(rename = "attempts", serialize_with = "crate::record::step::brief")]
    pub steps: Vec<Step>,
    /// The verdict on the gate; only in a run that was asked for it and passed its build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateRecord>,
    /// The report's sections; only in a consistency report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Vec<SectionRecord>>,
    /// The report's findings; only in a consistency report that was asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<ReportFinding>>,
    /// The record of an agent's work; only in an agent's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentRecord>,
    /// The plan that an agent followed, as it was at the end; only if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<PlanRecord>,
    /// An orchestration's report; only in its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<OrchestrationRecord>,
    /// The parallel attempts of a commit, and the one that was taken; left out if there was only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<ChoiceRecord>,
    /// The failing states of a commit with `--strategy search`; left out if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// Warnings that the user should look at.
    pub warnings: Vec<String>,
    /// The warnings about the change that have a code.
    #[serde(default)]
    pub warning_details: Vec<WarningRecord>,
    /// The error that the run failed with.
    pub error: Option<ErrorRecord>,
}

impl RunRecord {
    /// Creates the record of a run about which nothing else is known yet.
    pub fn new(workflow: &'static str, exit: Exit, started: DateTime<FixedOffset>) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").into(),
            workflow: workflow.into(),
            exit: exit.into(),
            started,
            ..Self::default()
        }
    }

    /// Records why the run failed.
    pub fn end_with(&mut self, error: &Error, advice: Option<String>) {
        self.exit = error.exit().into();
        let reason = error.reason();
        let problems = error.problems().into_iter();
        self.error = Some(ErrorRecord {
            message: error.to_string(),
            hint: hint(advice, self.tree),
            reason: reason.name.into(),
            retryable: reason.retryable,
            http_status: reason.http_status,
            problems: problems
                .map(|(message, hint)| ProblemRecord { message, hint })
                .collect(),
        });
    }

    /// Returns the tokens of all calls together; `None` if no vendor reports them.
    pub fn usage(&self) -> Option<Usage> {
        let used = self.steps.iter().filter_map(|step| step.usage);
        used.reduce(Usage::plus)
    }

    /// Returns the total cost of the calls; `None` if the cost of one is unknown.
    pub fn total_cost(&self) -> Option<Usd> {
        self.steps.iter().map(|step| step.cost).sum()
    }

    /// Returns the name of the outcome: of an orchestration its status, otherwise the exit's.
    pub fn outcome(&self) -> &str {
        let report = self.orchestration.as_ref();
        report.map_or(&self.exit.name, |report| report.status.into_str())
    }

    /// Returns the branches that agents worked on; `None` if the agent did not direct others.
    pub fn lineage(&self) -> Option<Lineage> {
        let report = self.orchestration.as_ref();
        report.map(OrchestrationRecord::lineage)
    }

    /// Returns the number of repairs that were attempted.
    pub fn repairs(&self) -> usize {
        let is_repair = |step: &&Step| step.purpose == Purpose::REPAIR && step.reask == 0;
        self.steps.iter().filter(is_repair).count()
    }

    /// Returns how many queries were repeats, sent because a reply was rejected.
    pub fn reasks(&self) -> usize {
        self.steps.iter().filter(|step| step.reask > 0).count()
    }
}

fn local_time<S: Serializer>(at: &DateTime<FixedOffset>, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Secs, false))
}
