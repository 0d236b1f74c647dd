//! Messages to and from a model: each has a role and parts, and their text is in pieces that are never joined in
//! memory.
//!
//! Pure data. A 100 MB code base is one borrowed piece of a [`Text`], from the file it was read from
//! to the socket it is sent through.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};

use crate::secret::Redactor;

/// Text made of pieces that follow each other without anything between them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text<'a>(Vec<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// Adds a piece at the end.
    pub fn push(&mut self, piece: impl Into<Cow<'a, str>>) {
        self.0.push(piece.into());
    }

    /// The pieces in their order, as they were added.
    pub fn pieces(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The same text with every piece changed by `change`.
    pub fn map(self, change: impl Fn(Cow<'a, str>) -> Cow<'a, str>) -> Self {
        Self(self.0.into_iter().map(change).collect())
    }

    /// Returns whether the text so far ends a line; the empty text does.
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

impl From<String> for Text<'_> {
    fn from(piece: String) -> Self {
        Self(vec![Cow::Owned(piece)])
    }
}

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(piece: Cow<'a, str>) -> Self {
        Self(vec![piece])
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|piece| f.write_str(piece))
    }
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

/// A tool call that a model asks for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// By which its result is told; no other call of the same reply has it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The tool's input: an object, or the model's text where that is not an object.
    pub input: Value,
    /// The input as the model has written it, where that is not how JSON is written here: a conversation goes back as it
    /// was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

/// The beginning of an id that the program has made up.
const OWN_ID: &str = "call-";

impl Call {
    /// The id of the `number`th call of an answer without ids.
    pub fn own_id(number: usize) -> String {
        format!("{OWN_ID}{number}")
    }

    /// The id, unless the program has made it up.
    pub fn vendors_id(&self) -> Option<&str> {
        Some(&*self.id).filter(|id| !id.starts_with(OWN_ID))
    }

    /// The input where it is an object; of what is none, nothing can be told.
    pub fn object(&self) -> Value {
        let input = Some(&self.input).filter(|input| input.is_object());
        input.cloned().unwrap_or_else(|| json!({}))
    }

    /// The same without keys.
    pub fn redacted(&self, redactor: &Redactor) -> Self {
        let text = |text: &String| redactor.text(text).into_owned();
        Self {
            id: self.id.clone(),
            name: text(&self.name),
            input: redactor.json(&self.input),
            written: self.written.as_ref().map(text),
        }
    }
}

/// The calls of a conversation by their ids, for vendors whose results have the names of the tools.
#[derive(Debug, Default)]
pub struct ToolNames<'m>(HashMap<&'m str, &'m Call>);

impl<'m> ToolNames<'m> {
    /// Notes a call: of several with the same id, a result answers the last.
    pub fn note(&mut self, call: &'m Call) {
        self.0.insert(&call.id, call);
    }

    /// The call of that id.
    pub fn of(&self, id: &str) -> Option<&'m Call> {
        self.0.get(id).copied()
    }
}

/// The result of a tool call, for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// The call's id.
    pub id: String,
    /// The text that the model is sent.
    pub text: String,
    /// True if nothing came of it, and the text says why.
    pub is_error: bool,
}

/// A model's thought. It goes back unchanged, since the vendor signed or sealed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Thought {
    /// Thoughts that can be read, as a summary or as they are.
    Shown {
        /// The visible text; may be empty.
        text: String,
        /// The vendor's proof that they are its own.
        signature: String,
    },
    /// Thoughts that nobody but the vendor can read.
    Sealed {
        /// The vendor's opaque data.
        data: String,
    },
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// Its bytes, in base 64.
    pub data: String,
}

/// A piece of a reply, in its place among the others. A conversation that goes back to the model has them in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReplyPart {
    /// Words.
    Text(String),
    /// A thought.
    Thought(Thought),
    /// The call of this id, which stands among the reply's calls.
    Call(String),
}

impl ReplyPart {
    /// The same without keys; `None` for a thought with one, which nobody may change.
    pub fn redacted(&self, redactor: &Redactor) -> Option<Self> {
        match self {
            Self::Text(text) => Some(Self::Text(redactor.text(text).into_owned())),
            Self::Thought(Thought::Shown { text, .. }) if redactor.text(text) != **text => None,
            as_is => Some(as_is.clone()),
        }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    /// Text.
    Text(Text<'a>),
    /// A tool is to be used.
    Call(Call),
    /// The result of a call.
    Result(CallResult),
    /// A thought of the model before it went on.
    Thought(Thought),
    /// A picture is shown.
    Image(Image),
    /// The conversation up to here begins later requests, too: worth to be cached.
    CacheMark,
}

impl fmt::Display for Part<'_> {
    /// As logs show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text}"),
            Self::Call(call) => write!(f, "[call {} of {}]\n{}", call.id, call.name, call.input),
            Self::Result(result) => write!(f, "[result of {}]\n{}", result.id, result.text),
            Self::Thought(Thought::Shown { text, .. }) => write!(f, "[thought]\n{text}"),
            Self::Thought(Thought::Sealed { .. }) => f.write_str("[sealed thought]"),
            Self::Image(image) => write!(f, "[picture: {}]", image.media_type),
            Self::CacheMark => Ok(()),
        }
    }
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    /// Who says it.
    pub role: Role,
    /// The parts, in order.
    pub parts: Vec<Part<'a>>,
}

impl<'a> Message<'a> {
    /// A message that is nothing but words.
    pub fn text(role: Role, text: impl Into<Text<'a>>) -> Self {
        Self {
            role,
            parts: vec![Part::Text(text.into())],
        }
    }

    /// Its words, as one text.
    #[must_use]
    pub fn words(&self) -> Words<'_> {
        Words(&self.parts)
    }

    /// Its pictures.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.parts.iter().filter_map(|part| match part {
            Part::Image(image) => Some(image),
            _ => None,
        })
    }

    /// Its words in as many texts as its cache marks make of it; of a message without a mark, one. All but the last
    /// end at a mark, and so does the last where the message does.
    pub fn segments(&self) -> Vec<Words<'_>> {
        let parts = self.parts.strip_suffix(&[Part::CacheMark]);
        let parts = parts.unwrap_or(&self.parts);
        parts
            .split(|part| *part == Part::CacheMark)
            .map(Words)
            .collect()
    }

    /// Returns whether it ends at a cache mark.
    #[must_use]
    pub fn ends_marked(&self) -> bool {
        self.parts.last() == Some(&Part::CacheMark)
    }

    /// Returns whether it contains a cache mark.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        self.parts.contains(&Part::CacheMark)
    }

    /// The same message with its words and results changed by `change`.
    #[must_use]
    pub fn map(self, change: impl Fn(Cow<'a, str>) -> Cow<'a, str>) -> Self {
        let parts = self.parts.into_iter().map(|part| match part {
            Part::Text(text) => Part::Text(text.map(&change)),
            Part::Result(result) => Part::Result(CallResult {
                text: change(result.text.into()).into_owned(),
                ..result
            }),
            Part::Call(call) => Part::Call(Call {
                name: change(call.name.into()).into_owned(),
                input: changed(call.input, &change),
                written: call
                    .written
                    .map(|written| change(written.into()).into_owned()),
                ..call
            }),
            // These go as they are, or the vendor does not take them.
            as_is @ (Part::Thought(_) | Part::Image(_) | Part::CacheMark) => as_is,
        });
        Self {
            parts: parts.collect(),
            ..self
        }
    }

    /// The pieces of its words, and what else is sent of it.
    pub fn pieces(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.parts.iter().flat_map(|part| match part {
            Part::Text(text) => text.pieces().map(Cow::Borrowed).collect::<Vec<_>>(),
            Part::Call(call) => vec![Cow::Owned(call.input.to_string())],
            Part::Result(result) => vec![Cow::Borrowed(&*result.text)],
            Part::Thought(Thought::Shown { text, .. } | Thought::Sealed { data: text }) => {
                vec![Cow::Borrowed(&**text)]
            }
            Part::Image(_) | Part::CacheMark => Vec::new(),
        })
    }
}

/// The value with its texts changed by `change`.
fn changed<'a>(value: Value, change: &impl Fn(Cow<'a, str>) -> Cow<'a, str>) -> Value {
    match value {
        Value::String(text) => change(text.into()).into_owned().into(),
        Value::Array(values) => {
            let values = values.into_iter();
            values.map(|value| changed(value, change)).collect()
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(name, value)| (name, changed(value, change)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

/// The words of a message, or of a part of one. They serialize as one string, without being joined.
#[derive(Debug, Clone, Copy)]
pub struct Words<'m>(&'m [Part<'m>]);

impl<'m> Words<'m> {
    /// The words of these parts.
    pub fn of(parts: &'m [Part<'m>]) -> Self {
        Self(parts)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts().all(|text| text.pieces().all(str::is_empty))
    }

    fn texts(&self) -> impl Iterator<Item = &'m Text<'m>> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            _ => None,
        })
    }
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts().try_for_each(|text| write!(f, "{text}"))
    }
}

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Message<'_> {
    /// As logs show it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut joint = "";
        for part in &self.parts {
            // A mark is no words of anybody's.
            if *part == Part::CacheMark {
                joint = "";
                continue;
            }
            write!(f, "{joint}{part}")?;
            joint = "\n";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_serialize_as_one_escaped_string() {
        let mut text = Text::from("a\"\n");
        text.push("é\u{1}\u{1F600}".to_owned());
        let message = Message::text(Role::User, text.clone());
        let json = serde_json::to_string(&message.words()).unwrap();
        assert_eq!(
            serde_json::from_str::<String>(&json).unwrap(),
            text.to_string()
        );
    }
}
