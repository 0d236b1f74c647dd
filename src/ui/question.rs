//! What a user is asked before an agent does something, and what they answer. Plain data: it can cross to another thread.

/// What is to be allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// All of it in a sentence.
    pub sentence: String,
    /// The tool that is to be used.
    pub tool: String,
    /// The path or the command that it is about; "" where there is none.
    pub subject: String,
    /// Why it is asked about, each in a word or two: `overwrites`, `deletes`.
    pub reasons: Vec<String>,
    /// Whether the answer may be for good: what is asked about always is answered once.
    pub may_last: bool,
}

impl From<String> for Question {
    /// A question that is nothing but a sentence.
    fn from(sentence: String) -> Self {
        Self {
            sentence,
            ..Self::default()
        }
    }
}

/// What the user says to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may be done.
    Yes,
    /// It may not.
    No,
    /// It may not, and this is to be done instead.
    Instead(String),
}
