//! The events of a run, as data, and the reporters that receive them.
//!
//! Pure. An event has all of its text, so it can cross a channel to another thread.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::seconds::seconds;
use super::tasks::Task;
use super::todos::Todo;
use super::tool::{CommandEnd, Verb};
use crate::model::price::Usd;
use crate::model::tokens::Size;
use crate::model::usage::Usage;
use crate::model::{Category, StepId, Tier};
use crate::project::changed_files::EditsRecord;
use crate::secret::Redactor;
use crate::sys::counter::Counter;
use crate::sys::diff::Stat;

/// Something that happened, with all of its text: it can cross a channel to another thread. Programs read it as
/// `json` writes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The run has its folder.
    Started {
        /// The folder, relative to the project's root.
        log: String,
    },
    /// The model is being asked.
    #[serde(skip)]
    Asking {
        /// The call that it is asked for.
        step: StepId,
        /// The model's name, as `--model` takes it.
        model: String,
        /// The size of the prompt, where that was counted.
        prompt: Option<Size>,
        /// The run's cost so far.
        spent: Usd,
    },
    /// A piece of a streamed reply has come.
    Receiving {
        /// The piece; of a thought as of an answer.
        #[serde(skip)]
        piece: String,
        /// True if the model thinks it, rather than says it.
        #[serde(skip)]
        is_thought: bool,
        /// The approximate number of tokens of the answer.
        output_tokens: u64,
        /// The number of tokens of the thoughts, as far as the model shows them.
        thought_tokens: u64,
        /// The run's approximate cost so far, this call included.
        spent: Usd,
    },
    /// A try failed; the next one follows.
    Retrying {
        /// The number of the next try.
        next_try: u32,
        /// The time until then.
        #[serde(serialize_with = "seconds")]
        wait: Duration,
        /// The reason the last one failed.
        reason: String,
    },
    /// The reply is there.
    Answered {
        /// The model's name, as `--model` takes it.
        model: String,
        /// The tokens it used, where the vendor reports them.
        usage: Option<Usage>,
        /// The cost of those, where the price is known.
        cost: Option<Usd>,
        /// The tier of service, where it is not the standard one, or another one was wanted.
        #[serde(skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
        /// The time it took.
        #[serde(rename = "seconds", serialize_with = "seconds")]
        took: Duration,
    },
    /// The reply's text around its edits.
    #[serde(skip)]
    Prose(String),
    /// The reply's edits are on the disk.
    Applied(EditsRecord),
    /// More than one file is being changed, or taken back.
    #[serde(skip)]
    Progress {
        /// A description of the operation.
        message: String,
        /// The number of files that are done by now.
        done: Counter,
        /// Of how many.
        total: u64,
    },
    /// The edits that a run had applied were taken back.
    PutBack(EditsRecord),
    /// Builds are not sandboxed.
    Uncontained {
        /// The reason there is no sandbox.
        reason: String,
    },
    /// build.sh is running.
    Building {
        /// The run's cost so far.
        spent: Usd,
    },
    /// build.sh has ended.
    Built {
        /// A description of how it ended.
        status: String,
        /// True if it passed.
        passed: bool,
        /// The reasons it failed: a few lines of its output.
        #[serde(skip)]
        reasons: Vec<String>,
        /// The time it took.
        #[serde(rename = "seconds", serialize_with = "seconds")]
        took: Duration,
    },
    /// The user should look at something.
    Warning(String),
    /// The run is over and has changed something: what a reviewer reads first.
    Reviewed {
        /// All warnings of the run.
        warnings: Vec<String>,
        /// The number of warnings that were shown before.
        #[serde(skip)]
        told: usize,
        /// The change in lines, file by file.
        #[serde(rename = "files")]
        stat: Stat,
    },
    /// The user should know of something.
    Notice(String),
    /// The user has been asked, and has answered: they have seen both.
    #[serde(skip)]
    Heard {
        /// The question, as shown before the answer.
        question: String,
        /// The answer; `None`: there was none.
        answer: Option<String>,
    },
    /// The session's status, before the user is asked again.
    #[serde(skip)]
    Status(String),
    /// Output that the user asked for: a diff, a list.
    #[serde(skip)]
    Shown(String),
    /// A command given at the terminal has succeeded.
    Finished {
        /// A summary of the result.
        summary: String,
        /// The run's folder, relative to the project's root.
        log: Option<String>,
    },
    /// A command given at the terminal has failed.
    Failed {
        /// The error message.
        error: String,
        /// A suggestion for the user.
        hint: Option<String>,
        /// The run's folder, relative to the project's root.
        log: Option<String>,
    },
    /// An agent works in a session.
    Session {
        /// The session's id, by which it is resumed.
        id: String,
        /// True if it goes on with an earlier one.
        resumed: bool,
    },
    /// An agent has said what it thinks.
    Thoughts(String),
    /// An agent's text outside the form of its replies.
    #[serde(skip)]
    Words(String),
    /// An agent's task list has changed.
    Tasks(Vec<Task>),
    /// An agent's todo list has changed.
    Todos(Vec<Todo>),
    /// An agent uses a tool.
    Tool {
        /// The tool's name.
        name: String,
        /// The tool's input, in readable form.
        input: String,
        /// The same as the model wrote it.
        #[serde(skip)]
        arguments: Value,
        /// The main argument: a path, a command, a question.
        #[serde(skip)]
        subject: String,
        /// The category of what the tool works on, where it is known.
        #[serde(skip)]
        category: Option<Category>,
        /// True if it talks with the user: what moves on the screen would disturb their typing.
        #[serde(skip)]
        asks: bool,
        /// The verb for the tool's action.
        #[serde(skip)]
        verb: Verb,
    },
    /// The command that a tool runs has printed something.
    #[serde(skip)]
    Printed(String),
    /// A tool has changed a file.
    #[serde(skip)]
    Changed {
        /// The change, as a unified diff.
        diff: String,
    },
    /// A tool has ended.
    ToolResult {
        /// The tool's name.
        name: String,
        /// The result, as the model receives it.
        text: String,
        /// The same for a person, in a few words.
        #[serde(skip)]
        brief: Option<String>,
        /// The warnings for the user, which stand in the text, too.
        #[serde(skip)]
        warnings: Vec<String>,
        /// The verb for the tool's action.
        #[serde(skip)]
        verb: Verb,
        /// True if the tool failed.
        failed: bool,
        /// The way the command that it ran ended.
        #[serde(skip)]
        command: CommandEnd,
        /// True if the agent says by it that it is done.
        #[serde(skip)]
        is_end: bool,
        /// The time it took.
        #[serde(rename = "seconds", serialize_with = "seconds")]
        took: Duration,
    },
    /// A reply is not of the protocol's form; the model is told.
    Malformed {
        /// A description of the mistake and its place.
        fault: String,
        /// The number of failures in a row, this one included.
        failures: u32,
        /// The maximum number of failures in a row.
        allowed: u32,
    },
    /// A tool server has answered.
    Connected {
        /// Its address, without a query: that may be a key.
        server: String,
        /// The version of its protocol.
        protocol: String,
    },
    /// An agent on a remote branch is being waited for; told each time that the server was asked how it stands.
    Waiting {
        /// The agent.
        agent: String,
        /// The branch's id.
        branch: String,
        /// The branch's status, in the server's words.
        status: String,
        /// The time since it was started.
        #[serde(serialize_with = "seconds")]
        waited: Duration,
    },
    /// An agent on a remote branch has come to its end.
    BranchEnded {
        /// The agent.
        agent: String,
        /// The branch's id.
        branch: String,
        /// The branch's status, in the server's words.
        status: String,
        /// The time it took.
        #[serde(rename = "seconds", serialize_with = "seconds")]
        took: Duration,
    },
    /// An independent agent begins to judge the work.
    Auditing,
    /// The work was judged.
    Audited {
        /// True if it passed.
        passed: bool,
        /// The auditor's text.
        text: String,
    },
    /// A conversation that had grown too long was replaced by a summary.
    Compressed {
        /// Its tokens before.
        tokens_before: u64,
        /// Its tokens now.
        tokens_after: u64,
    },
}

impl Event {
    /// The same without what `redactor` knows, as far as it tells of an agent's work.
    #[must_use]
    pub fn redacted(&self, redactor: &Redactor) -> Self {
        let mut event = self.clone();
        let texts: Vec<&mut String> = match &mut event {
            Self::Notice(text)
            | Self::Warning(text)
            | Self::Receiving { piece: text, .. }
            | Self::Status(text)
            | Self::Shown(text)
            | Self::Thoughts(text)
            | Self::Words(text)
            | Self::Printed(text)
            | Self::Changed { diff: text }
            | Self::Audited { text, .. }
            | Self::Malformed { fault: text, .. }
            | Self::Finished { summary: text, .. } => vec![text],
            Self::Tool { input, subject, .. } => vec![input, subject],
            Self::ToolResult {
                text,
                brief,
                warnings,
                ..
            } => std::iter::once(text).chain(brief).chain(warnings).collect(),
            Self::Connected { server, protocol } => vec![server, protocol],
            Self::Waiting { branch, status, .. } | Self::BranchEnded { branch, status, .. } => {
                vec![branch, status]
            }
            Self::Failed { error, hint, .. } => std::iter::once(error).chain(hint).collect(),
            Self::Tasks(tasks) => tasks.iter_mut().map(|task| &mut task.text).collect(),
            _ => Vec::new(),
        };
        for text in texts {
            *text = redactor.text(text).into_owned();
        }
        event
    }
}

/// Hears what happens.
pub trait Reporter {
    /// Tells of what has just happened.
    fn event(&self, event: &Event);

    /// Returns whether somebody looks on while things happen, so that counting along is worth the while.
    fn is_live(&self) -> bool;

    /// Returns the number of columns a result may take; `None`: as many as it likes.
    fn columns(&self) -> Option<usize> {
        None
    }
}

/// Tells another what happens, without what this redactor knows.
pub struct WithoutKeys<'r> {
    /// The reporter that receives the events.
    pub inner: &'r dyn Reporter,
    /// Knows the keys.
    pub redactor: &'r Redactor,
}

impl Reporter for WithoutKeys<'_> {
    fn event(&self, event: &Event) {
        self.inner.event(&event.redacted(self.redactor));
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }

    fn columns(&self) -> Option<usize> {
        self.inner.columns()
    }
}
