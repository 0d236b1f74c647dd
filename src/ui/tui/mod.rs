//! The full-screen terminal of an agent: what crosses between it and the engine, each on a thread of its own.
//!
//! The engine sends [`ToScreen`] and the screen [`FromScreen`]; neither waits for the other but where somebody is asked.
//! A stop goes by the process's `Interrupt`, the mode by [`SharedMode`](crate::record::mode::SharedMode): both reach an
//! engine that is busy.

pub mod app;
pub mod channel;
pub mod clipboard;
mod code_colors;
pub mod completion;
pub mod composer;
pub mod dialog;
pub mod history;
pub mod keys;
pub mod sidebar;
pub mod spinner;
pub mod status;
pub mod streaming;
pub mod terminal;
pub mod theme;
pub mod transcript;

use crate::model::message::Image;
use crate::record::event::Event;
use crate::record::question::{Question, Verdict};
use crate::record::todos::Todo;

/// A message from the engine to the screen.
#[derive(Debug, Clone, PartialEq)]
pub enum ToScreen {
    /// Something happened in a run.
    Event(Event),
    /// The conversation so far, which replaces the one on the screen: a session was opened, or a new one begun.
    Transcript(Vec<Entry>),
    /// The same, behind what is there: the answer of a slash command, Markdown.
    Said(String),
    /// The data for the status bar and the input.
    Status(Status),
    /// The whole list of todos.
    Todos(Vec<Todo>),
    /// The user is to say whether something is done; the screen answers with `FromScreen::Answered`.
    Ask {
        /// The action in question.
        question: Question,
        /// The proposed change: a unified diff or the text.
        preview: Option<String>,
    },
    /// The user is to choose; the screen answers with `FromScreen::Chosen`.
    Choose(Menu),
    /// A line is to be typed, as `***` where it is a secret; the screen answers with `FromScreen::Typed`.
    Type {
        /// The text before the input.
        prompt: String,
        /// True if it is not shown.
        is_secret: bool,
    },
    /// The slash commands that there are: those of the program and the user's own.
    Commands(Vec<CommandHint>),
    /// This text is to be in the terminal's clipboard.
    Copy(String),
    /// This text is to be read in the user's pager.
    Page(String),
    /// All is set up anew: until that is `Settled`, Escape stops nothing, and Ctrl-C ends all.
    SettingUp,
    /// The last submission is done, well or not: the next line may come.
    Settled,
    /// The end: the screen gives the terminal back, writes this there, and is over.
    End {
        /// The text left on the normal screen.
        farewell: String,
    },
}

/// A message from the screen to the engine.
#[derive(Debug, Clone, PartialEq)]
pub enum FromScreen {
    /// A line was sent: a request, `/command` or `!command`.
    Line(Submission),
    /// The answer to [`ToScreen::Ask`].
    Answered(Verdict),
    /// The item of a menu, counted from 0; `None`: none.
    Chosen(Option<usize>),
    /// The typed text, or `None`.
    Typed(Option<String>),
    /// The user ends the program.
    Leave,
}

/// A submission by the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Submission {
    /// All that was typed and pasted, as it is sent.
    pub text: String,
    /// The pictures that were attached.
    pub images: Vec<Image>,
    /// The visible form of the text, with each long paste as one piece; `None` if it is the text itself.
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

/// Something that stands in the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A message by the user.
    User(String),
    /// A message by the agent, in Markdown.
    Agent(String),
    /// A thought of the agent's.
    Thought(String),
    /// A tool was used.
    Tool {
        /// The tool's name.
        name: String,
        /// The subject of the use.
        subject: String,
        /// The result.
        result: String,
        /// True if that was nothing.
        failed: bool,
    },
    /// The program's own words.
    Notice(String),
}

/// The data of the status bar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The model's name.
    pub model: String,
    /// The number of tokens of context the last call had, and what came since, about.
    pub used: u64,
    /// The number of the model takes.
    pub window: u64,
    /// The state of the connection to the vendor.
    pub connection: Connection,
}

/// The outcome of the last attempt to reach the vendor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Connection {
    /// It answers, or was not asked yet.
    #[default]
    Connected,
    /// It could not be reached.
    Disconnected,
    /// It answered with an error.
    Error,
}

/// A list of which one is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Menu {
    /// The menu's title, which names the thing to choose.
    pub title: String,
    /// The items: a name and a note on it.
    pub items: Vec<(String, String)>,
    /// The one that is marked at first.
    pub at: usize,
}

/// A slash command, for who types one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHint {
    /// Its name, without the slash.
    pub name: String,
    /// The argument that it takes; "" for none.
    pub argument: String,
    /// A description of the command.
    pub description: String,
}
