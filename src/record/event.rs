//! What happens in a run, as data, and who hears of it.
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
        /// What the run has cost so far.
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
        /// The number of tokens of answer, about.
        output_tokens: u64,
        /// The number of tokens the model has thought with, as far as it shows that.
        thought_tokens: u64,
        /// What the run has cost so far, this call included, about.
        spent: Usd,
    },
    /// A try failed; the next one follows.
    Retrying {
        /// The number of the next try.
        next_try: u32,
        /// The time until then.
        #[serde(serialize_with = "seconds")]
        wait: Duration,
        /// Why the last one failed.
        reason: String,
    },
    /// The reply is there.
    Answered {
        /// The model's name, as `--model` takes it.
        model: String,
        /// What it took, where the vendor tells.
        usage: Option<Usage>,
        /// What that costs, where the price is known.
        cost: Option<Usd>,
        /// The tier of service, where it is not the standard one, or another one was wanted.
        #[serde(skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
        /// The time it took.
        #[serde(rename = "seconds", serialize_with = "seconds")]
        took: Duration,
    },
    /// What the reply says around its edits.
    #[serde(skip)]
    Prose(String),
    /// The reply's edits are on the disk.
    Applied(EditsRecord),
    /// More than one file is being changed, or taken back.
    #[serde(skip)]
    Progress {
        /// What is done.
        message: String,
        /// The number of files that are done by now.
        done: Counter,
        /// Of how many.
        total: u64,
    },
    /// What a run had applied was taken back.
    PutBack(EditsRecord),
    /// Builds are not sandboxed.
    Uncontained {
        /// What stands in the sandbox's way.
        reason: String,
    },
    /// build.sh is running.
    Building {
        /// What the run has cost so far.
        spent: Usd,
    },
    /// build.sh has ended.
    Built {
        /// How, in words.
        status: String,
        /// True if it passed.
        passed: bool,
        /// Why it failed: a few lines of its output.
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
        /// The number of them that were told before.
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
        /// What stood before the answer.
        question: String,
        /// The answer; `None`: there was none.
        answer: Option<String>,
    },
    /// How the session stands, before the user is asked again.
    #[serde(skip)]
    Status(String),
    /// What the user wanted to see: a diff, a list.
    #[serde(skip)]
    Shown(String),
    /// What was asked for at the terminal is done.
    Finished {
        /// What was done.
        summary: String,
        /// The run's folder, relative to the project's root.
        log: Option<String>,
    },
    /// What was asked for at the terminal is not done.
    Failed {
        /// What went wrong.
        error: String,
        /// What to do about it.
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
    /// What an agent says outside of the form that its replies have.
    #[serde(skip)]
    Words(String),
    /// An agent's task list has changed.
    Tasks(Vec<Task>),
    /// What an agent has still to do has changed.
    Todos(Vec<Todo>),
    /// An agent uses a tool.
    Tool {
        /// The tool's name.
        name: String,
        /// What it is given, as a person reads it.
        input: String,
        /// The same as the model wrote it.
        #[serde(skip)]
        arguments: Value,
        /// What of that it is about: a path, a command, a question.
        #[serde(skip)]
        subject: String,
        /// What the tool works on, where it is known.
        #[serde(skip)]
        category: Option<Category>,
        /// True if it talks with the user: what moves on the screen would disturb their typing.
        #[serde(skip)]
        asks: bool,
        /// What the tool does.
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
        /// What the model is told.
        text: String,
        /// The same for a person, in a few words.
        #[serde(skip)]
        brief: Option<String>,
        /// What the tool does.
        #[serde(skip)]
        verb: Verb,
        /// True if the tool failed.
        failed: bool,
        /// How the command came out that it ran.
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
        /// What is wrong, and where.
        fault: String,
        /// The number of failures in a row this is.
        failures: u32,
        /// The number of there that may be.
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
        /// What the auditor says.
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
            Self::ToolResult { text, brief, .. } => std::iter::once(text).chain(brief).collect(),
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
    /// Who is told.
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
