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

/// What the engine tells the screen.
#[derive(Debug, Clone, PartialEq)]
pub enum ToScreen {
    /// Something happened in a run.
    Event(Event),
    /// What was said so far, in the place of what the screen shows: a session was opened, or a new one begun.
    Transcript(Vec<Entry>),
    /// The same, behind what is there: the answer of a slash command, Markdown.
    Said(String),
    /// What the status bar and the input need to know.
    Status(Status),
    /// What is to be done, all of it.
    Todos(Vec<Todo>),
    /// The user is to say whether something is done; the screen answers with `FromScreen::Answered`.
    Ask {
        /// What is to be done.
        question: Question,
        /// What that would change, a unified diff or the text.
        preview: Option<String>,
    },
    /// The user is to choose; the screen answers with `FromScreen::Chosen`.
    Choose(Menu),
    /// A line is to be typed, as `***` where it is a secret; the screen answers with `FromScreen::Typed`.
    Type {
        /// What stands before it.
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
    /// What was sent is done, well or not: the next line may come.
    Settled,
    /// The end: the screen gives the terminal back, writes this there, and is over.
    End {
        /// What stands on the normal screen then.
        farewell: String,
    },
}

/// What the screen tells the engine.
#[derive(Debug, Clone, PartialEq)]
pub enum FromScreen {
    /// A line was sent: a request, `/command` or `!command`.
    Line(Submission),
    /// The answer to [`ToScreen::Ask`].
    Answered(Verdict),
    /// The item of a menu, counted from 0; `None`: none.
    Chosen(Option<usize>),
    /// What was typed; `None`: nothing.
    Typed(Option<String>),
    /// The user ends the program.
    Leave,
}

/// What a user has sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Submission {
    /// All that was typed and pasted, as it is sent.
    pub text: String,
    /// The pictures that were attached.
    pub images: Vec<Image>,
    /// What is shown of it: long pastes are one piece each. `None`: the text.
    pub shown: Option<String>,
}

/// Something that stands in the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// What the user has sent.
    User(String),
    /// What the agent says, Markdown.
    Agent(String),
    /// What it has thought.
    Thought(String),
    /// A tool was used.
    Tool {
        /// The tool's name.
        name: String,
        /// What it was about.
        subject: String,
        /// What came of it.
        result: String,
        /// True if that was nothing.
        failed: bool,
    },
    /// The program's own words.
    Notice(String),
}

/// What the status bar shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The model's name.
    pub model: String,
    /// The number of tokens of context the last call had, and what came since, about.
    pub used: u64,
    /// The number of the model takes.
    pub window: u64,
    /// How the vendor was reached last.
    pub connection: Connection,
}

/// How a vendor was reached last.
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
    /// What is chosen.
    pub title: String,
    /// What there is: a name, and what is said of it.
    pub items: Vec<(String, String)>,
    /// The one that is marked at first.
    pub at: usize,
}

/// A slash command, for who types one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHint {
    /// Its name, without the slash.
    pub name: String,
    /// What it takes; "" for nothing.
    pub argument: String,
    /// What it does.
    pub description: String,
}
