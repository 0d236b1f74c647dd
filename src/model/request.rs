//! A request to a model. Plain data.

use serde_json::Value;

use super::message::Message;
use super::step_id::StepId;
use super::tier::Tier;

/// The form of an answer: plain words unless set otherwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Form {
    /// The tools that it can call by the vendor's own means.
    pub tools: Vec<ToolSchema>,
    /// The JSON schema that its words are to follow, where the server can hold it to that.
    pub schema: Option<Value>,
    /// The sampling temperature, unless the model's entry sets one; `None`: the server decides.
    pub temperature: Option<f64>,
    /// The permission to call them.
    pub tool_choice: ToolChoice,
}

/// The permission to call the tools that a model is told of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it sees fit.
    #[default]
    Auto,
    /// Not now. They are described all the same: what is cached stays the same.
    None,
}

/// The kind of thing that a tool works on, for people and for the words that they are told of it by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Files and directories as a whole.
    File,
    /// Programs.
    Shell,
    /// The content of many files.
    Search,
    /// The content of one file.
    Edit,
    /// A server's offer; the tool came at run time.
    Mcp,
    /// The agent's own: its list, its helpers, its last words.
    Agent,
}

/// A tool, as a vendor is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSchema {
    /// The name by which the model calls it.
    pub name: String,
    /// The description, for the model.
    pub description: String,
    /// The JSON schema of what it is given: an object.
    pub schema: Value,
}

/// A request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'a> {
    /// Which call of the run this is.
    pub step: StepId,
    /// The conversation so far.
    pub messages: Vec<Message<'a>>,
    /// The form of the answer.
    pub form: Form,
    /// The number of tokens the answer may have, thoughts included; `None`: the server decides.
    pub max_output_tokens: Option<u32>,
    /// The tier of service in which it is to be answered.
    pub tier: Tier,
    /// True if the vendor is to cache up to the marks only, and without any nothing; else, as it likes.
    pub cached_by_marks: bool,
    /// True if a call whose answer has begun and then broke off is not to be made again.
    pub once: bool,
}

/// The form in which a vendor sends its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// At once, when it is whole.
    Whole,
    /// Piece by piece, as it comes to be.
    Streamed,
    /// The same from a server that does not want to be asked for the usage.
    StreamedPlainly,
}
