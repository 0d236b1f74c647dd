//! The full-screen terminal of an agent: the messages between the screen and the engine, which run on separate
//! threads.
//!
//! The engine sends [`ToScreen`] and the screen [`FromScreen`]; neither waits for the other, except for the
//! answer to a question. Stops go through the process's `Interrupt`, and mode changes through
//! [`SharedMode`](crate::record::mode::SharedMode): both reach an engine that is busy.

pub mod app;
pub(crate) mod attachment;
pub(crate) mod buffer;
pub mod channel;
pub mod clipboard;
mod code_colors;
pub mod completion;
pub mod composer;
pub mod dialog;
pub mod history;
pub(crate) mod item;
pub mod keys;
mod list;
pub mod sidebar;
pub mod spinner;
pub mod status;
pub mod streaming;
pub mod terminal;
pub mod theme;
pub mod transcript;

use ratatui::style::Style;
use strum::EnumTryAs;

use crate::model::message::Image;
use crate::record::event::Event;
use crate::record::question::{Question, Verdict};
use crate::record::todos::Todo;
use crate::sys::interrupt::Signal;
use crate::ui::present::{Shown, ToolUse};

/// A message from the engine to the screen.
#[derive(Debug, Clone, PartialEq)]
pub enum ToScreen {
    /// An event of a run.
    Event(Event),
    /// The conversation so far, which replaces the one on the screen: a session was opened or started.
    Transcript(Vec<Entry>),
    /// The answer to a slash command, in Markdown, to append to the conversation.
    Said(String),
    /// The data for the status bar and the input.
    Status(Status),
    /// The complete list of todos.
    Todos(Vec<Todo>),
    /// Asks the user for a permission; the screen replies with `FromScreen::Answered`.
    Ask {
        /// The action in question.
        question: Question,
        /// The proposed change: a unified diff or the text.
        preview: Option<String>,
    },
    /// Lets the user choose from a list; the screen replies with `FromScreen::Chosen`.
    Choose(Menu),
    /// Asks the user for a line, masked if it is a secret; the screen replies with `FromScreen::Typed`.
    Type {
        /// The text before the input.
        prompt: String,
        /// True if the input is masked.
        is_secret: bool,
    },
    /// The available slash commands: the program's and the user's own.
    Commands(Vec<CommandHint>),
    /// Sends this submission again as soon as the engine is ready: it now has what was missing.
    SendAgain(Submission),
    /// Copies this text to the terminal's clipboard.
    Copy(String),
    /// Shows this text in the user's pager.
    Page(String),
    /// Setup has begun again: until `Settled`, Escape stops nothing, and Ctrl-C exits.
    SettingUp,
    /// The last submission is finished, successfully or not: the engine is ready for the next.
    Settled,
    /// Restores the terminal, prints the farewell, and closes the screen.
    End(String),
}

/// A message from the screen to the engine.
#[derive(Debug, Clone, PartialEq, EnumTryAs)]
pub enum FromScreen {
    /// A submitted line: a request, `/command` or `!command`.
    Line(Submission),
    /// The answer to [`ToScreen::Ask`].
    Answered(Verdict),
    /// The 0-based index of the chosen item; `None` if the user cancelled.
    Chosen(Option<usize>),
    /// The typed text; `None` if the user cancelled.
    Typed(Option<String>),
    /// The user exits the program, or this signal ends it; SIGINT stands for the user.
    Leave(Signal),
}

/// A submission by the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Submission {
    /// The full text with pastes inserted, as sent.
    pub text: String,
    /// The attached pictures.
    pub images: Vec<Image>,
    /// The visible form of the text, with each long paste as a placeholder; `None` if it equals the text.
    pub shown: Option<String>,
}

impl From<String> for Submission {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// An entry of the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A message from the user.
    User {
        /// The shortened form of the message.
        shown: String,
        /// The full text.
        text: String,
    },
    /// A message from the agent, or a block of it, in Markdown.
    Agent(String),
    /// A thought of the agent, or a part of it.
    Thought {
        /// The text.
        text: String,
        /// True if it continues the previous part, without a blank line between.
        continues: bool,
    },
    /// A tool call.
    Tool(Box<ToolUse>),
    /// Any other event.
    Event(Box<Shown>),
}

impl Entry {
    /// Creates a message from the user.
    pub fn user(text: impl Into<String>) -> Self {
        let text = text.into();
        let shown = text.clone();
        Self::User { shown, text }
    }

    /// Creates a thought of the agent.
    pub fn thought(text: impl Into<String>) -> Self {
        let text = text.into();
        let continues = false;
        Self::Thought { text, continues }
    }

    /// Creates a message from the program itself.
    pub fn notice(text: impl Into<String>) -> Self {
        Self::Event(Box::new(Shown {
            subject: text.into(),
            style: Style::new().dim(),
            ..Shown::default()
        }))
    }
}

/// The data of the status bar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The model's name.
    pub model: String,
    /// The name of the model's vendor.
    pub vendor: &'static str,
    /// The approximate number of tokens in the context: those of the last call, plus later text.
    pub used: u64,
    /// The size of the model's context window, in tokens.
    pub window: u64,
    /// The state of the connection to the vendor.
    pub connection: Connection,
    /// True if stopping the work ends the program.
    pub is_one_task: bool,
}

/// The result of the last attempt to reach the vendor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Connection {
    /// The vendor answers, or has not been called yet.
    #[default]
    Connected,
    /// The vendor could not be reached.
    Disconnected,
    /// The vendor answered with an error.
    Error,
}

/// A list to choose from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Menu {
    /// The menu's title, which names the thing to choose.
    pub title: String,
    /// The items, each with a name and a note.
    pub items: Vec<(String, String)>,
    /// The index of the item selected at first.
    pub at: usize,
    /// True if the user has not asked for the menu, and may be typing: letters go to the draft, not to a filter.
    pub is_unasked: bool,
}

/// A slash command, as suggested to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHint {
    /// The name, without the slash.
    pub name: String,
    /// The argument; "" for none.
    pub argument: String,
    /// A description of the command.
    pub description: String,
}
