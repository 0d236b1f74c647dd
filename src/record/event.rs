//! The events of a run, as data, and the reporters that receive them.
//!
//! Pure. An event owns all of its text, so that it can be sent to another thread.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::seconds::seconds;
use super::tasks::Task;
use super::todos::Todo;
use super::tool::{Category, ToolEnd, Verb};
use crate::model::price::Usd;
use crate::model::tokens::Size;
use crate::model::usage::Usage;
use crate::model::{StepId, Tier};
use crate::project::changed_files::EditsRecord;
use crate::secret::Redactor;
use crate::sys::counter::Counter;
use crate::sys::diff::Stat;

/// Something that happened in a run. It owns all of its text, so that it can be sent to another thread, and is
/// serialized for programs that read the output as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The run's folder was created.
    Started {
        /// The folder, relative to the project's root.
        log: String,
    },
    /// A request is being sent to the model.
    #[serde(skip)]
    Asking {
        /// The identity of the call.
        step: StepId,
        /// The model's name, as passed to `--model`.
        model: String,
        /// The estimated size of the prompt, if it was counted.
        prompt: Option<Size>,
        /// The run's cost so far.
        spent: Usd,
    },
    /// A piece of a streamed reply has arrived.
    Receiving {
        /// The piece, of thinking or of the answer.
        #[serde(skip)]
        piece: String,
        /// True if the piece is thinking, not part of the answer.
        #[serde(skip)]
        is_thought: bool,
        /// The approximate number of tokens of the answer so far.
        output_tokens: u64,
        /// The approximate number of tokens of thinking so far, if the model shows any.
        thought_tokens: u64,
        /// The run's approximate cost so far, including this call.
        spent: Usd,
    },
    /// A try failed, and another one follows.
    Retrying {
        /// The number of the next try.
        next_try: u32,
        /// The time until the next try.
        #[serde(serialize_with = "seconds")]
        wait: Duration,
        /// The reason for the failure.
        reason: String,
    },
    /// The reply is complete.
    Answered {
        /// The model's name, as passed to `--model`.
        model: String,
        /// The tokens used, if the vendor reports them.
        usage: Option<Usage>,
        /// The cost of those tokens, if the price is known.
        cost: Option<Usd>,
        /// The service tier, if it is not the standard one, or a different one was requested.
        #[serde(skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
        /// The duration.
        #[serde(rename = "seconds", serialize_with = "seconds")]
        took: Duration,
    },
    /// The reply's text around its edits.
    #[serde(skip)]
    Prose(String),
    /// The reply's edits are on disk.
    Applied(EditsRecord),
    /// Several files are being changed or restored.
    #[serde(skip)]
    Progress {
        /// A description of the operation.
        message: String,
        /// The number of files that are done so far.
        done: Counter,
        /// The total number of files.
        total: u64,
    },
    /// The edits that a run had applied were undone.
    PutBack(EditsRecord),
    /// Builds are not sandboxed.
    Uncontained {
        /// The reason that there is no sandbox.
        reason: String,
    },
    /// `build.sh` is running.
    Building {
        /// The run's cost so far.
        spent: Usd,
    },
    /// `build.sh` has ended.
    Built {
        /// A description of the outcome.
        status: String,
        /// True if it passed.
        passed: bool,
        /// The reasons for a failure: a few lines of the output.
        #[serde(skip)]
        reasons: Vec<String>,
        /// The duration.
        #[serde(rename = "seconds", serialize_with = "seconds")]
        took: Duration,
    },
    /// A warning for the user.
    Warning(String),
    /// The run is over and has changed something: the summary that a reviewer reads first.
    Reviewed {
        /// All warnings of the run.
        warnings: Vec<String>,
        /// The number of warnings that were shown earlier.
        #[serde(skip)]
        shown: usize,
        /// The changed lines, file by file.
        #[serde(rename = "files")]
        stat: Stat,
    },
    /// A notice for the user.
    Notice(String),
    /// The user is asked at this prompt.
    #[serde(skip)]
    Prompted(String),
    /// The user was asked and has answered, and so has seen both texts.
    #[serde(skip)]
    Heard {
        /// The question, as shown before the answer.
        question: String,
        /// The answer; `None` if there was none.
        answer: Option<String>,
    },
    /// The session's status, shown before the user is asked again.
    #[serde(skip)]
    Status(String),
    /// Output that the user asked for, such as a list.
    #[serde(skip)]
    Shown(String),
    /// Changes that the user asked for, or is asked about, as a unified diff.
    #[serde(skip)]
    ShownDiff(String),
    /// A command given at the terminal succeeded.
    Finished {
        /// A summary of the result.
        summary: String,
        /// The run's folder, relative to the project's root.
        log: Option<String>,
    },
    /// A command given at the terminal failed.
    Failed {
        /// The error message.
        error: String,
        /// A suggestion for the user.
        hint: Option<String>,
        /// The run's folder, relative to the project's root.
        log: Option<String>,
    },
    /// An agent's session has begun or was resumed.
    Session {
        /// The session's id, by which it can be resumed.
        id: String,
        /// True if an earlier session was resumed.
        resumed: bool,
    },
    /// An agent's thoughts, as stated in its reply.
    Thoughts(String),
    /// An agent's text outside the format of its replies.
    #[serde(skip)]
    Words(String),
    /// An agent's task list changed.
    Tasks(Vec<Task>),
    /// An agent's todo list changed.
    Todos(Vec<Todo>),
    /// An agent uses a tool.
    Tool {
        /// The tool's name.
        name: String,
        /// The tool's input, in readable form.
        input: String,
        /// The tool's input, as the model wrote it.
        #[serde(skip)]
        arguments: Value,
        /// The main argument, such as a path, a command or a question.
        #[serde(skip)]
        subject: String,
        /// The category of what the tool works on, if known.
        #[serde(skip)]
        category: Option<Category>,
        /// True if the tool talks with the user, whose typing would be disturbed by an animation.
        #[serde(skip)]
        asks: bool,
        /// The verb for the tool's action.
        #[serde(skip)]
        verb: Verb,
    },
    /// The command that a tool runs has printed this text.
    #[serde(skip)]
    Printed(String),
    /// A tool changed a file.
    #[serde(skip)]
    Changed {
        /// The change, as a unified diff.
        diff: String,
    },
    /// A tool has finished.
    ToolResult {
        /// The tool's name.
        name: String,
        /// The tool's result.
        #[serde(flatten)]
        end: ToolEnd,
        /// True if the agent uses the tool to say that it is done.
        #[serde(skip)]
        is_end: bool,
    },
    /// A reply is not in the format that the protocol requires; the model gets an error.
    Malformed {
        /// A description of the mistake and its position.
        fault: String,
        /// The number of consecutive failures, this one included.
        failures: u32,
        /// The maximum number of consecutive failures.
        allowed: u32,
    },
    /// A tool server was connected.
    Connected {
        /// The server's address, without its query, which may contain a key.
        server: String,
        /// The version of the server's protocol.
        protocol: String,
    },
    /// An agent on a remote branch is still working; reported each time the server is polled.
    Waiting {
        /// The agent's name.
        agent: String,
        /// The branch's id.
        branch: String,
        /// The branch's status, in the server's words.
        status: String,
        /// The time since the agent was started.
        #[serde(serialize_with = "seconds")]
        waited: Duration,
        /// True if the agent is reviewing the work.
        is_review: bool,
        /// The number of the current or next review.
        review: u32,
        /// The maximum number of reviews.
        reviews: u32,
        /// True if the agent publishes the work; no review follows then.
        publishes: bool,
        /// The time since the work began.
        #[serde(serialize_with = "seconds")]
        total: Duration,
    },
    /// An agent on a remote branch has finished.
    BranchEnded {
        /// The agent's name.
        agent: String,
        /// The branch's id.
        branch: String,
        /// The branch's status, in the server's words.
        status: String,
        /// The duration.
        #[serde(rename = "seconds", serialize_with = "seconds")]
        took: Duration,
    },
    /// An independent agent begins to audit the work.
    Auditing,
    /// The audit has ended.
    Audited {
        /// True if the work passed.
        passed: bool,
        /// The auditor's text.
        text: String,
    },
    /// A conversation that had grown too long was replaced by a summary.
    Compressed {
        /// The number of its tokens before.
        tokens_before: u64,
        /// The number of its tokens now.
        tokens_after: u64,
    },
}

impl Event {
    /// Returns a copy with secrets redacted in its texts, apart from the names of models, steps, logs and files.
    pub fn redacted(&self, redactor: &Redactor) -> Self {
        let mut event = self.clone();
        let texts: Vec<&mut String> = match &mut event {
            Self::Notice(text)
            | Self::Warning(text)
            | Self::Prose(text)
            | Self::Retrying { reason: text, .. }
            | Self::Uncontained { reason: text }
            | Self::Progress { message: text, .. }
            | Self::Receiving { piece: text, .. }
            | Self::Status(text)
            | Self::Prompted(text)
            | Self::Shown(text)
            | Self::ShownDiff(text)
            | Self::Thoughts(text)
            | Self::Words(text)
            | Self::Printed(text)
            | Self::Changed { diff: text }
            | Self::Audited { text, .. }
            | Self::Malformed { fault: text, .. }
            | Self::Finished { summary: text, .. } => vec![text],
            Self::Tool { input, subject, .. } => vec![input, subject],
            Self::ToolResult { end, .. } => std::iter::once(&mut end.text)
                .chain(&mut end.brief)
                .chain(&mut end.warnings)
                .collect(),
            Self::Connected { server, protocol } => vec![server, protocol],
            Self::Waiting { branch, status, .. } | Self::BranchEnded { branch, status, .. } => {
                vec![branch, status]
            }
            Self::Failed { error, hint, .. } => std::iter::once(error).chain(hint).collect(),
            Self::Tasks(tasks) => tasks.iter_mut().map(|task| &mut task.text).collect(),
            Self::Todos(todos) => todos
                .iter_mut()
                .flat_map(|todo| std::iter::once(&mut todo.content).chain(&mut todo.active_form))
                .collect(),
            Self::Heard { question, answer } => std::iter::once(question).chain(answer).collect(),
            Self::Built {
                status, reasons, ..
            } => std::iter::once(status).chain(reasons).collect(),
            Self::Reviewed { warnings, .. } => warnings.iter_mut().collect(),
            Self::Started { .. }
            | Self::Session { .. }
            | Self::Asking { .. }
            | Self::Answered { .. }
            | Self::Applied(_)
            | Self::PutBack(_)
            | Self::Building { .. }
            | Self::Auditing
            | Self::Compressed { .. } => Vec::new(),
        };
        for text in texts {
            *text = redactor.text(text).into_owned();
        }
        event
    }
}

/// A receiver of the events of a run.
pub trait Reporter {
    /// Reports an event.
    fn event(&self, event: &Event);

    /// Returns whether someone is watching, which makes showing progress worthwhile.
    fn is_live(&self) -> bool;

    /// Returns the maximum width of a result, in columns; `None` if there is no limit.
    fn columns(&self) -> Option<usize> {
        None
    }

    /// Stops any animation, which would overwrite a question.
    fn pause(&self) {}
}

/// A reporter that passes events to another one, with secrets redacted.
pub struct WithoutKeys<'r> {
    /// The reporter that receives the events.
    pub inner: &'r dyn Reporter,
    /// The redactor for the events.
    pub redactor: Redactor,
}

impl Reporter for WithoutKeys<'_> {
    fn event(&self, event: &Event) {
        self.inner.event(&event.redacted(&self.redactor));
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }

    fn columns(&self) -> Option<usize> {
        self.inner.columns()
    }

    fn pause(&self) {
        self.inner.pause();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::todos::TodoStatus;

    #[test]
    fn texts_of_events_keep_no_secret() {
        const SECRET: &str = "sk-0123456789abcdef";
        let redactor = Redactor::new([SECRET]);
        let s = || SECRET.to_owned();
        let todo = Todo {
            content: s(),
            status: TodoStatus::Pending,
            active_form: Some(s()),
        };
        for event in [
            Event::Prose(s()),
            Event::Todos(vec![todo]),
            Event::Uncontained { reason: s() },
            Event::Retrying {
                next_try: 2,
                wait: Duration::ZERO,
                reason: s(),
            },
            Event::Built {
                status: s(),
                passed: false,
                reasons: vec![s()],
                took: Duration::ZERO,
            },
            Event::Prompted(s()),
            Event::Heard {
                question: s(),
                answer: Some(s()),
            },
        ] {
            let shown = format!("{:?}", event.redacted(&redactor));
            assert!(!shown.contains(SECRET), "{shown}");
        }
    }
}
