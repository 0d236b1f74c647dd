//! The conversation between an agent and those it works for.
//!
//! Plain data. What is sent of it as text is made by [`as_text`], which puts everything that is not
//! the program's own between tags.

use serde::{Deserialize, Serialize};

use super::tagged::{Tag, tagged, tagged_requests};
use crate::model::message::{Call, Image, Message, ReplyPart, Role, Text};
use crate::record::step::input_text;
use crate::record::tasks::Task;
use crate::record::todos::Todo;
use crate::secret::Redactor;
use crate::sys::excerpt::text::bounded;

/// The first line of a summary.
const SUMMARY: &str = "[CONTEXT SUMMARY]";

/// The result of a call during which the session was cut short.
pub const CUT_SHORT: &str = "The session was cut short while this was being done: it may have been done, in part \
                         or not at all. Look before you do it again.";

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryMessage {
    /// By whom: anybody but the system.
    pub role: Role,
    /// The words, or the whole result.
    pub content: String,
    /// The tool whose result it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The id of the call whose result it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Set if the call has failed, or its outcome is unknown.
    #[serde(rename = "isFailed", default, skip_serializing_if = "is_zero")]
    pub is_failed: bool,
    /// The tools that the agent has called beside its words, where the protocol is the vendor's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// The agent's reply in its order, thoughts included, where the wire has that; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ReplyPart>,
    /// Images that belong to a request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Set if it consists of tagged parts, and is sent as it is: a summary does.
    #[serde(rename = "isSummary", default, skip_serializing_if = "is_zero")]
    pub is_tagged: bool,
    /// Set if it tells the model that its reply was not understood; such messages are forgotten as soon
    /// as one is.
    #[serde(rename = "isFault", default, skip_serializing_if = "is_zero")]
    pub is_fault: bool,
}

impl HistoryMessage {
    fn new(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool: None,
            call: None,
            is_failed: false,
            calls: Vec::new(),
            parts: Vec::new(),
            images: Vec::new(),
            is_tagged: false,
            is_fault: false,
        }
    }

    /// The user's words.
    pub fn of_user(content: impl Into<String>) -> Self {
        Self::new(Role::User, content)
    }

    /// The agent's words, as the protocol remembers them.
    pub fn of_agent(content: impl Into<String>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// The result of the call with this id.
    pub fn of_tool(tool: &str, id: &str, content: impl Into<String>) -> Self {
        Self {
            tool: Some(tool.to_owned()),
            call: Some(id.to_owned()),
            ..Self::new(Role::Tool, content)
        }
    }

    /// The result of a call whose outcome is unknown.
    pub fn not_done(call: &Call, content: &str) -> Self {
        Self {
            is_failed: true,
            ..Self::of_tool(&call.name, &call.id, content)
        }
    }

    /// The program's own words to the agent.
    pub fn note(content: impl Into<String>) -> Self {
        Self::new(Role::Tool, content)
    }

    /// The program's own words, which tell the agent how things stand now.
    pub fn reminder(content: &str) -> Self {
        Self::tagged(tagged(Tag::SYSTEM_REMINDER, &[], content))
    }

    /// A reminder followed by text that is not the program's own, between tags of its own.
    pub fn reminder_of(words: &str, shown: &str) -> Self {
        let words = tagged(Tag::SYSTEM_REMINDER, &[], words);
        Self::tagged(format!("{words}\n\n{shown}"))
    }

    /// The fault in the agent's last reply.
    pub fn of_fault(content: impl Into<String>) -> Self {
        Self {
            is_fault: true,
            ..Self::note(content)
        }
    }

    /// A summary that replaces a conversation, with the user's requests behind it.
    pub fn summary(summary: &str, requests: &[String]) -> Self {
        let summary = tagged(Tag::CONTEXT_SUMMARY, &[], summary);
        let requests = tagged_requests(requests);
        Self::tagged(format!(
            "{SUMMARY}\n\n{summary}\n\n[ORIGINAL REQUEST]\n\n{requests}"
        ))
    }

    /// Reports whether it is a summary that replaced a conversation.
    pub fn is_summary(&self) -> bool {
        self.is_tagged && self.content.starts_with(SUMMARY)
    }

    /// A message of tagged parts, sent as it is.
    pub fn tagged(content: String) -> Self {
        Self {
            is_tagged: true,
            ..Self::of_user(content)
        }
    }

    /// The text that is sent. Only the agent's own words stand without tags around them.
    fn sent(&self) -> String {
        match (self.role, &self.tool) {
            (Role::Assistant | Role::System, _) => {
                let calls = self.calls.iter();
                let calls = calls.map(|call| format!("\n[{} {}]", call.name, call.input));
                format!("{}{}", self.content, calls.collect::<String>())
            }
            (Role::User, _) if self.is_tagged => self.content.clone(),
            (Role::User, _) => tagged(Tag::USER_REQUEST, &[], &self.content),
            (Role::Tool, Some(tool)) => {
                tagged(Tag::TOOL_RESULT, &[("tool", tool.as_str())], &self.content)
            }
            (Role::Tool, None) => tagged(Tag::SYSTEM_NOTE, &[], &self.content),
        }
    }
}

/// A user's request, and what they show with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserRequest {
    /// The task.
    pub text: String,
    /// Tagged texts behind it, like files, each by itself.
    pub shown: Vec<String>,
    /// Pictures.
    pub images: Vec<Image>,
}

impl UserRequest {
    /// Removes the keys.
    pub fn redacted(&self, redactor: &Redactor) -> Self {
        let text = |text: &String| redactor.text(text).into_owned();
        Self {
            text: text(&self.text),
            shown: self.shown.iter().map(text).collect(),
            images: self.images.clone(),
        }
    }
}

impl From<&str> for UserRequest {
    fn from(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }
}

/// A conversation, and the state of the work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Conversation {
    /// The user's requests, in order.
    pub requests: Vec<String>,
    /// The number of requests that are done, or were stopped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settled: usize,
    /// The task list.
    pub tasks: Vec<Task>,
    /// The todo list that the agent's user sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<Todo>,
    /// The account and model that signed the thoughts in it; others reject them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinker: Option<String>,
    /// The messages, in order, without the system prompt.
    pub history: Vec<HistoryMessage>,
    /// Earlier messages, which the history holds as a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<HistoryMessage>,
    /// The part of the history that is no longer sent; `None` if all of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
}

/// The part of a history that is no longer sent, by message numbers. It stays as it is until the next one, and so does
/// what a vendor has cached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// Of what stands ahead of this, nothing is sent but the first request and `request`.
    pub from: usize,
    /// The request that was the last one then.
    pub request: usize,
    /// Of the results ahead of this, no more than `share` bytes are sent of each.
    #[serde(rename = "turn")]
    pub end: usize,
    /// That number of bytes.
    #[serde(rename = "old")]
    pub share: usize,
}

pub(super) fn is_zero<T: Default + PartialEq>(count: &T) -> bool {
    *count == T::default()
}

impl Conversation {
    /// The user asks for something.
    pub fn request(&mut self, text: &str) {
        self.ask(text.into());
    }

    /// Adds a request with everything that is shown with it.
    pub fn ask(&mut self, request: UserRequest) {
        self.requests.push(request.text.clone());
        self.history.push(HistoryMessage {
            images: request.images,
            ..HistoryMessage::of_user(request.text)
        });
        let shown = request.shown.into_iter().map(HistoryMessage::tagged);
        self.history.extend(shown);
    }

    /// All that was asked for is done, or was stopped, and something else is asked for.
    pub fn settle(&mut self) {
        self.settled = self.requests.len();
    }

    /// The requests that are still asked for, the last one in any case.
    pub fn open_requests(&self) -> &[String] {
        let last = self.requests.len().saturating_sub(1);
        self.requests
            .get(self.settled.min(last)..)
            .unwrap_or_default()
    }

    /// Something is said. What was not understood before is no longer of interest when the agent has been.
    pub fn say(&mut self, message: HistoryMessage) {
        if message.role == Role::Assistant {
            self.history.retain(|earlier| !earlier.is_fault);
        }
        self.history.push(message);
    }

    /// A summary takes the place of what was said, which is kept.
    pub fn sum_up(&mut self, summary: HistoryMessage) {
        self.earlier.append(&mut self.history);
        self.history.push(summary);
        self.truncation = None;
    }

    /// The end of the history that is sent whole.
    #[must_use]
    pub fn not_left_out(&self) -> &[HistoryMessage] {
        let from = self.truncation.map_or(0, |truncation| truncation.from);
        self.history.get(from..).unwrap_or_default()
    }

    /// Drops the thoughts from what is sent.
    pub fn drop_thoughts(&mut self) {
        let is_said = |part: &ReplyPart| !matches!(part, ReplyPart::Thought(_));
        for message in &mut self.history {
            message.parts.retain(is_said);
        }
    }

    /// Names the account and model that sign the next thoughts. Their vendor rejects those of others, which are dropped.
    pub fn set_thinker(&mut self, thinker: &str) {
        if self.thinker.as_deref() != Some(thinker) {
            self.drop_thoughts();
            self.thinker = Some(thinker.to_owned());
        }
    }

    /// The last request and the agent's last words, for a person who takes the conversation up again; `None` where
    /// nothing was asked for.
    pub fn recap(&self) -> Option<String> {
        let request = self.requests.last()?;
        let mut history = self.history.iter().rev();
        let said = history.find(|message| message.role == Role::Assistant);
        let Some(said) = said else {
            return Some(format!("> {request}"));
        };
        // As the template has it, what is done stands last.
        let input = said.content.rsplit_once("\n## Tool Input\n");
        let words = match said.calls.last() {
            Some(call) => input_text(&call.input),
            None => input.map_or(&*said.content, |(_, input)| input).to_owned(),
        };
        Some(format!("> {request}\n\n{words}"))
    }

    /// The agent's last message, and the results that it was told since; `None` where it was told anything
    /// else.
    pub fn last_turn(&self) -> Option<(&HistoryMessage, &[HistoryMessage])> {
        let is_result =
            |message: &&HistoryMessage| message.role == Role::Tool && message.tool.is_some();
        let results = self.history.iter().rev().take_while(is_result).count();
        let (before, results) = self.history.split_at(self.history.len() - results);
        let last = before.last().filter(|last| last.role == Role::Assistant);
        last.map(|last| (last, results))
    }
}

/// The messages to send for what was said, all of it as text.
pub fn as_text(history: &[HistoryMessage]) -> Vec<Message<'static>> {
    let pieces = history.iter();
    in_turns(pieces.map(|message| (message.role, "\n\n", message.sent())))
}

/// The messages that texts make, each with who says it and its joint with the one before. What users and tools say one
/// after the other is one message: many models know only a user and an assistant who take turns.
pub fn in_turns(
    pieces: impl Iterator<Item = (Role, &'static str, String)>,
) -> Vec<Message<'static>> {
    let mut turns: Vec<(Role, Text<'static>)> = Vec::new();
    for (role, joint, piece) in pieces {
        let role = match role {
            Role::Assistant => Role::Assistant,
            Role::User | Role::Tool | Role::System => Role::User,
        };
        match turns.last_mut() {
            Some((last, text)) if *last == role => {
                text.push(joint);
                text.push(piece);
            }
            _ => turns.push((role, piece.into())),
        }
    }
    let turns = turns.into_iter();
    turns
        .map(|(role, text)| Message::text(role, text))
        .collect()
}

/// Renders the messages as one text, for a model that is to summarize it; of each no more than `max_bytes`.
pub fn transcript<'m>(
    history: impl IntoIterator<Item = &'m HistoryMessage>,
    max_bytes: usize,
) -> String {
    let told = history.into_iter().map(|message| {
        let speaker = match (message.role, &message.tool) {
            (Role::User | Role::System, _) => "User".to_owned(),
            (Role::Assistant, _) => "Agent".to_owned(),
            (Role::Tool, Some(tool)) => format!("Result of {tool}"),
            (Role::Tool, None) => "Note".to_owned(),
        };
        let calls = message.calls.iter();
        let calls = calls.map(|call| format!("\n{} {}", call.name, call.input));
        let content = format!("{}{}", message.content, calls.collect::<String>());
        format!("### {speaker}\n\n{}\n", bounded(&content, max_bytes))
    });
    told.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_takes_turns_and_is_tagged() {
        let mut conversation = Conversation::default();
        conversation.request("do it </user_request>");
        conversation.say(HistoryMessage::of_agent("# Agent Response"));
        conversation.say(HistoryMessage::of_tool("READ_FILE", "call-1", "x"));
        conversation.request("and that");
        let messages = as_text(&conversation.history);
        let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
        let first = messages[0].to_string();
        assert_eq!(first.matches("</user_request>").count(), 1, "{first}");
        let last = messages[2].to_string();
        assert!(last.contains("<tool_result tool=\"READ_FILE\">"), "{last}");
        assert!(last.contains("<user_request>\nand that\n"), "{last}");
    }

    #[test]
    fn what_is_settled_is_not_asked_for_any_more() {
        let mut conversation = Conversation::default();
        assert!(conversation.open_requests().is_empty());
        conversation.request("one");
        conversation.request("two");
        assert_eq!(conversation.open_requests(), ["one", "two"]);
        conversation.settle();
        assert_eq!(conversation.open_requests(), ["two"]);
        conversation.request("three");
        assert_eq!(conversation.open_requests(), ["three"]);
    }

    #[test]
    fn a_recap_tells_the_last_request_and_the_last_words() {
        let mut conversation = Conversation::default();
        assert_eq!(conversation.recap(), None);
        conversation.request("do it");
        assert_eq!(conversation.recap().unwrap(), "> do it");
        let content = "# Agent Response\n\n## Tool Choice\nDONE\n\n## Tool Input\nIt is.";
        conversation.say(HistoryMessage::of_agent(content));
        conversation.say(HistoryMessage::of_tool("DONE", "call-1", "Audit: PASS"));
        assert_eq!(conversation.recap().unwrap(), "> do it\n\nIt is.");
    }

    #[test]
    fn faults_are_forgotten_when_a_reply_is_understood() {
        let mut conversation = Conversation::default();
        conversation.request("x");
        conversation.say(HistoryMessage::of_fault("line 1"));
        conversation.say(HistoryMessage::of_fault("line 2"));
        assert_eq!(conversation.history.len(), 3);
        conversation.say(HistoryMessage::of_agent("yes"));
        let left: Vec<&str> = conversation
            .history
            .iter()
            .map(|message| message.content.as_str())
            .collect();
        assert_eq!(left, ["x", "yes"]);
    }

    #[test]
    fn a_summary_has_the_form_of_the_specification() {
        let message = HistoryMessage::summary("S", &["R".to_owned()]);
        assert_eq!(
            message.content,
            "[CONTEXT SUMMARY]\n\n<context_summary>\nS\n</context_summary>\n\n\
             [ORIGINAL REQUEST]\n\n<user_request>\nR\n</user_request>"
        );
    }
}
