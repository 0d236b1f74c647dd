//! Converts a request's messages to the form that Anthropic's API requires. Pure.
//!
//! Guarantees for any conversation that user and assistant alternate, the user first and last; that no text is blank;
//! and that a message with calls is followed by one that begins with exactly one result for each of them.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::message::{Call, CallResult, Image, Message, Part, Role, Thought, Words};
use crate::model::openai::plain_name;

/// Number of messages that may end with a cache mark; one more mark follows the system messages.
const MARKS: usize = 3;

/// The text sent in place of an unknown result.
const NO_RESULT: &str = "No result is known.";
/// The user's text before a conversation that the model would begin.
const BEFORE: &str = "(The beginning of the conversation is left out.)";
/// The user's text after a conversation that the model would end.
const GO_ON: &str = "Go on.";

/// Consecutive content from one side.
#[derive(Debug, Serialize)]
pub struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

/// A content block of a message.
#[derive(Debug, Serialize)]
pub struct Block<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    /// Present if everything sent up to here should be cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: Said<'a>,
    },
    Image {
        source: Value,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: String,
        name: String,
        input: Cow<'a, Value>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Words(Words<'a>),
    Own(Cow<'static, str>),
}

impl<'a> Block<'a> {
    fn new(content: Content<'a>) -> Self {
        Self {
            content,
            cache_control: None,
        }
    }

    fn own(text: impl Into<Cow<'static, str>>) -> Self {
        let text = Said::Own(text.into());
        Self::new(Content::Text { text })
    }

    fn result(id: String, text: &'a str, is_error: bool) -> Self {
        Self::new(Content::ToolResult {
            tool_use_id: id,
            // The API rejects blank text.
            content: if text.trim().is_empty() { "" } else { text },
            is_error,
        })
    }

    fn mark(&mut self) {
        // The API rejects marks on thinking blocks.
        if !matches!(
            self.content,
            Content::Thinking { .. } | Content::RedactedThinking { .. }
        ) {
            self.cache_control = Some(json!({"type": "ephemeral"}));
        }
    }
}

/// The positions of the cache marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// Nothing is cached.
    Nowhere,
    /// One mark follows the system messages; the others are where the messages contain them.
    Explicit,
    /// Marks follow the system messages and the user's last turns: where a request ended, the next finds the cache.
    Rolling,
}

impl Marks {
    /// Chooses the positions for these messages; `goes_on` says whether later requests begin with all of them.
    pub fn of(messages: &[Message<'_>], goes_on: bool) -> Self {
        if messages.iter().any(Message::is_marked) {
            Self::Explicit
        } else if goes_on {
            Self::Rolling
        } else {
            Self::Nowhere
        }
    }
}

/// Returns the system messages, as the blocks at the top of the request.
pub fn system<'a>(messages: &'a [Message<'_>], marks: Marks) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block<'a>> = messages
        .iter()
        .filter(|message| message.role == Role::System)
        .flat_map(|message| message.parts.iter().filter_map(words))
        .collect();
    if let Some(last) = blocks.last_mut()
        && marks != Marks::Nowhere
    {
        last.mark();
    }
    blocks
}

/// Returns the other messages as turns. Without tools in the request, the API accepts neither calls nor results, so
/// they become text. Nothing is added after a paused reply, which the model `continues`.
pub fn turns<'a>(
    messages: &'a [Message<'_>],
    has_tools: bool,
    marks: Marks,
    continues: bool,
) -> Vec<Turn<'a>> {
    let mut writer = Writer {
        has_tools,
        turns: Vec::new(),
        ids: HashSet::new(),
        marked: Vec::new(),
    };
    let mut open = Vec::new();
    for (side, parts) in sides(messages) {
        open = writer.turn(side, &parts, open);
    }
    if !continues {
        writer.close(open);
    }
    if marks != Marks::Nowhere {
        writer.mark(marks);
    }
    writer.turns
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    User,
    Model,
}

/// Groups the sendable parts by side.
fn sides<'a>(messages: &'a [Message<'_>]) -> Vec<(Side, Vec<&'a Part<'a>>)> {
    let mut sides: Vec<(Side, Vec<&Part<'_>>)> = Vec::new();
    for message in messages {
        let side = match message.role {
            Role::System => continue,
            Role::Assistant => Side::Model,
            Role::User | Role::Tool => Side::User,
        };
        for part in message.parts.iter().filter(|part| may_say(side, part)) {
            if side == Side::User {
                end_models(&mut sides);
            }
            match sides.last_mut() {
                Some((last, parts)) if *last == side => parts.push(part),
                _ => sides.push((side, vec![part])),
            }
        }
    }
    end_models(&mut sides);
    sides
}

/// Drops the model's last thinking blocks if nothing follows them: the API rejects a message that ends with one.
fn end_models(sides: &mut Vec<(Side, Vec<&Part<'_>>)>) {
    let Some((Side::Model, parts)) = sides.last_mut() else {
        return;
    };
    let is_said = |part: &&Part<'_>| !matches!(part, Part::Thought(_));
    match parts.iter().rposition(is_said) {
        Some(last) => parts.truncate(last + 1),
        None => drop(sides.pop()),
    }
}

fn may_say(side: Side, part: &Part<'_>) -> bool {
    match part {
        Part::Text(text) => !text.pieces().all(|piece| piece.trim().is_empty()),
        Part::Call(_) => side == Side::Model,
        Part::Thought(
            Thought::Shown {
                signature: sign, ..
            }
            | Thought::Sealed { data: sign },
        ) => side == Side::Model && !sign.is_empty(),
        Part::Thought(Thought::Unsigned(_)) => false,
        Part::Result(_) | Part::Image(_) => side == Side::User,
    }
}

/// A call that waits for its result: its id in the conversation, and the id that is sent.
type Open<'a> = (&'a str, String);

struct Writer<'a> {
    has_tools: bool,
    turns: Vec<Turn<'a>>,
    /// The ids of all calls so far; each is sent only once.
    ids: HashSet<String>,
    /// The blocks with cache marks, by turn and position.
    marked: Vec<(usize, usize)>,
}

impl<'a> Writer<'a> {
    /// Writes one side's turn, given the calls that are still `open`. Returns those that are open afterwards.
    fn turn(&mut self, side: Side, parts: &[&'a Part<'a>], open: Vec<Open<'a>>) -> Vec<Open<'a>> {
        let is_models = side == Side::Model;
        if is_models && self.turns.is_empty() {
            self.push("user", vec![Block::own(BEFORE)]);
        }
        let mut now_open = Vec::new();
        let mut content = Vec::new();
        let result = |part: &&'a Part<'a>| match part {
            Part::Result(result) => Some(result),
            _ => None,
        };
        let mut results: Vec<&CallResult> = parts.iter().filter_map(result).collect();
        // Results must come first, whatever was said between them.
        for (id, sent) in open {
            let found = results.iter().position(|result| result.id == id);
            content.push(match found.map(|at| results.remove(at)) {
                Some(result) => Block::result(sent, &result.text, result.is_error),
                None => Block::result(sent, NO_RESULT, true),
            });
        }
        for part in parts {
            match part {
                Part::Call(call) if self.has_tools => {
                    let id = self.id(&call.id);
                    now_open.push((&*call.id, id.clone()));
                    content.push(Block::new(tool_use(call, id)));
                }
                Part::Result(result) => {
                    // A result that answers no call is sent as text.
                    if results.iter().any(|other| std::ptr::eq(*other, result)) {
                        content.push(Block::own(part.to_string()));
                    }
                }
                part => {
                    content.extend(words(part).or_else(|| seen(part)));
                    if part.is_marked()
                        && let Some(last) = content.len().checked_sub(1)
                    {
                        self.marked.push((self.turns.len(), last));
                    }
                }
            }
        }
        self.push(if is_models { "assistant" } else { "user" }, content);
        now_open
    }

    /// Ends the conversation with a turn of the user.
    fn close(&mut self, open: Vec<Open<'a>>) {
        if self.turns.last().is_some_and(|last| last.role == "user") {
            return;
        }
        let result = |(_, sent)| Block::result(sent, NO_RESULT, true);
        let mut content: Vec<Block<'a>> = open.into_iter().map(result).collect();
        if content.is_empty() {
            content.push(Block::own(GO_ON));
        }
        self.push("user", content);
    }

    fn push(&mut self, role: &'static str, content: Vec<Block<'a>>) {
        self.turns.push(Turn { role, content });
    }

    /// Returns the id with which a call is sent: unique, and made of characters that the API accepts.
    fn id(&mut self, id: &str) -> String {
        let plain = plain_name(id);
        let mut sent = plain.clone();
        let mut number = 2;
        while !self.ids.insert(sent.clone()) {
            sent = format!("{plain}-{number}");
            number += 1;
        }
        sent
    }

    fn mark(&mut self, marks: Marks) {
        if marks == Marks::Rolling {
            let turns = (0..).zip(&self.turns);
            let users = turns.filter(|(_, turn)| turn.role == "user");
            self.marked = users
                .map(|(at, turn)| (at, turn.content.len() - 1))
                .collect();
        }
        for &(turn, block) in self.marked.iter().rev().take(MARKS) {
            self.turns[turn].content[block].mark();
        }
    }
}

/// Converts a text part to a block; `None` if it is blank.
fn words<'a>(part: &'a Part<'a>) -> Option<Block<'a>> {
    let is_text = matches!(part, Part::Text(_)) && may_say(Side::User, part);
    let text = Said::Words(Words::of(std::slice::from_ref(part)));
    is_text.then(|| Block::new(Content::Text { text }))
}

/// Returns the block of a part that is not a text, a result or a mark.
fn seen<'a>(part: &'a Part<'a>) -> Option<Block<'a>> {
    let content = match part {
        Part::Image(Image { media_type, data }) => Content::Image {
            source: json!({"type": "base64", "media_type": media_type, "data": data}),
        },
        Part::Thought(Thought::Shown { text, signature }) => Content::Thinking {
            thinking: text,
            signature,
        },
        Part::Thought(Thought::Sealed { data }) => Content::RedactedThinking { data },
        Part::Call(_) => return Some(Block::own(part.to_string())),
        Part::Text(_) | Part::Result(_) | Part::Thought(Thought::Unsigned(_)) => return None,
    };
    Some(Block::new(content))
}

fn tool_use(call: &Call, id: String) -> Content<'_> {
    let input = match &call.input {
        object @ Value::Object(_) => Cow::Borrowed(object),
        // The API accepts only objects; the vendor passes anything else to the model in this form.
        Value::String(written) => Cow::Owned(json!({"INVALID_JSON": written})),
        other => Cow::Owned(json!({"INVALID_JSON": other.to_string()})),
    };
    Content::ToolUse {
        id,
        name: plain_name(&call.name),
        input,
    }
}
