//! What is said to a model: messages with roles, their text in pieces that are never joined in
//! memory.
//!
//! Pure data. A 100 MB code base is one borrowed piece of a [`Text`], from the file it was read from
//! to the socket it is sent through.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// Text made of pieces that follow each other without anything between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(Vec<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// Adds a piece at the end.
    pub fn push(&mut self, piece: impl Into<Cow<'a, str>>) {
        self.0.push(piece.into());
    }

    /// The pieces.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The same text with every piece changed by `change`.
    #[must_use]
    pub fn map(self, change: impl Fn(Cow<'a, str>) -> Cow<'a, str>) -> Self {
        Self(self.0.into_iter().map(change).collect())
    }

    /// Whether the text so far ends a line, as the empty text does.
    #[must_use]
    pub fn ends_line(&self) -> bool {
        self.0
            .iter()
            .rev()
            .find(|piece| !piece.is_empty())
            .is_none_or(|last| last.ends_with('\n'))
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(piece: &'a str) -> Self {
        Self(vec![Cow::Borrowed(piece)])
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

impl Serialize for Text<'_> {
    /// One string, written piece by piece: serde_json escapes what `Display` hands it as it comes.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The program's standing instructions.
    System,
    /// The user, or what stands for one.
    User,
    /// The model itself, earlier in the conversation.
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    /// Its name, as logs show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub text: Text<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_serialize_as_one_escaped_string() {
        let mut text = Text::from("a\"\n");
        text.push("é\u{1}\u{1F600}".to_owned());
        let json = serde_json::to_string(&text).unwrap();
        assert_eq!(
            serde_json::from_str::<String>(&json).unwrap(),
            text.to_string()
        );
    }
}
