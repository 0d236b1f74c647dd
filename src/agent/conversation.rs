//! The conversation between an agent and its users.
//!
//! Plain data. [`as_text`] renders it as the text to send and puts everything the program did not write itself between
//! tags.

use std::mem::take;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::tagged::{Tag, tagged, tagged_requests};
use crate::model::message::{Call, Image, Message, ReplyPart, Role, Text};
use crate::record::step::input_text;
use crate::record::tasks::Task;
use crate::record::todos::Todo;
use crate::record::tool::CommandEnd;
use crate::secret::Redactor;
use crate::sys::defaults::is_default;
use crate::sys::excerpt::text::bounded;

/// The first line of a summary.
const SUMMARY: &str = "[CONTEXT SUMMARY]";

/// The result of a call that was running when the session was interrupted.
pub const CUT_SHORT: &str = "The session was interrupted during this call: it may have been carried out in full, in \
                         part or not at all. Check before you repeat it.";

/// The note for an agent whose changes were discarded with a scratch tree.
pub const DISCARDED: &str = "The last run of this session worked in a scratch tree alone, and that was discarded: the \
                         project has nothing of what was changed there. Read files again before you rely on them.";

/// A message of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HistoryMessage {
    /// The author; never the system.
    pub role: Role,
    /// The text, or the complete tool result. Shared, since a conversation is copied and compared at each step.
    pub content: Arc<str>,
    /// The tool whose result this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The id of the call whose result this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Set if the call failed or its outcome is unknown.
    #[serde(rename = "isFailed", default, skip_serializing_if = "is_default")]
    pub is_failed: bool,
    /// The outcome of the command that the call ran, for a resumed transcript.
    #[serde(default, skip_serializing_if = "is_default")]
    pub command: CommandEnd,
    /// The result for a person, in a few words; of a tagged message, the user's words that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// The tools that the agent called in this message, if the protocol is the vendor's native one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// The parts of the agent's reply in order, thoughts included, if the wire format has them; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ReplyPart>,
    /// Images attached to a request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Set if the content already consists of tagged parts and is sent unchanged, as a summary is.
    #[serde(rename = "isSummary", default, skip_serializing_if = "is_default")]
    pub is_tagged: bool,
    /// True if the message says that a reply was not understood. Such messages are dropped once a reply is understood.
    #[serde(rename = "isFault", default, skip_serializing_if = "is_default")]
    pub is_fault: bool,
}

impl HistoryMessage {
    fn new(role: Role, content: impl Into<Arc<str>>) -> Self {
        Self {
            role,
            content: content.into(),
            ..Self::default()
        }
    }

    /// Creates a message with the user's words.
    pub fn of_user(content: impl Into<Arc<str>>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message with the agent's words, in the form the protocol records them.
    pub fn of_agent(content: impl Into<Arc<str>>) -> Self {
        Self::new(Role::Assistant, content)
    }

    /// Creates the result of the call with this id.
    pub fn of_tool(tool: &str, id: &str, content: impl Into<Arc<str>>) -> Self {
        Self {
            tool: Some(tool.to_owned()),
            call: Some(id.to_owned()),
            ..Self::new(Role::Tool, content)
        }
    }

    /// Creates the result of a call whose outcome is unknown.
    pub fn not_done(call: &Call, content: &str) -> Self {
        Self {
            is_failed: true,
            ..Self::of_tool(&call.name, &call.id, content)
        }
    }

    /// Creates a message from the program to the agent.
    pub fn note(content: impl Into<Arc<str>>) -> Self {
        Self::new(Role::Tool, content)
    }

    /// Creates a message from the program that describes the current state to the agent.
    pub fn reminder(content: &str) -> Self {
        Self::tagged(tagged(Tag::SystemReminder, &[], content))
    }

    /// Creates a reminder followed by text from elsewhere, which is already tagged.
    pub fn reminder_of(words: &str, shown: &str) -> Self {
        let words = tagged(Tag::SystemReminder, &[], words);
        Self::tagged(format!("{words}\n\n{shown}"))
    }

    /// Creates a message about a fault in the agent's last reply.
    pub fn of_fault(content: impl Into<Arc<str>>) -> Self {
        Self {
            is_fault: true,
            ..Self::note(content)
        }
    }

    /// Creates a summary that replaces a conversation, followed by the user's requests.
    pub fn summary(summary: &str, requests: &[String]) -> Self {
        let summary = tagged(Tag::ContextSummary, &[], summary);
        let requests = tagged_requests(requests);
        Self::tagged(format!(
            "{SUMMARY}\n\n{summary}\n\n[ORIGINAL REQUEST]\n\n{requests}"
        ))
    }

    /// Returns whether this is a summary that replaced a conversation.
    pub fn is_summary(&self) -> bool {
        self.is_tagged && self.content.starts_with(SUMMARY)
    }

    /// Creates a message of tagged parts, which is sent unchanged.
    pub fn tagged(content: String) -> Self {
        Self {
            is_tagged: true,
            ..Self::of_user(content)
        }
    }

    /// Returns the content, followed by the calls, one a line.
    fn with_calls(&self) -> String {
        let calls = self.calls.iter();
        let calls = calls.map(|call| format!("\n[{} {}]", call.name, call.input));
        format!("{}{}", self.content, calls.collect::<String>())
    }

    /// Returns the text to send. Only the agent's own words are not tagged.
    pub(super) fn sent(&self) -> String {
        match (self.role, &self.tool) {
            (Role::Assistant | Role::System, _) => self.with_calls(),
            (Role::User, _) if self.is_tagged => self.content.to_string(),
            (Role::User, _) => tagged(Tag::UserRequest, &[], &self.content),
            (Role::Tool, Some(tool)) => {
                tagged(Tag::ToolResult, &[("tool", tool.as_str())], &self.content)
            }
            (Role::Tool, None) => tagged(Tag::SystemNote, &[], &self.content),
        }
    }
}

/// A user's request and its attachments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserRequest {
    /// The task.
    pub text: String,
    /// Attached texts, such as files, each already tagged.
    pub shown: Vec<String>,
    /// Attached images.
    pub images: Vec<Image>,
}

impl UserRequest {
    /// Returns the request with API keys removed.
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
    /// The number of requests that are finished or were stopped.
    #[serde(default, skip_serializing_if = "is_default")]
    pub settled: usize,
    /// The task list.
    pub tasks: Vec<Task>,
    /// The todo list shown to the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<Todo>,
    /// The account and model that signed the thoughts in the history; others reject them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinker: Option<String>,
    /// The messages in order, without the system prompt.
    pub history: Vec<HistoryMessage>,
    /// Earlier messages, which a summary replaces in the history.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<HistoryMessage>,
    /// The part of the history that is no longer sent; `None` if all of it is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Truncation>,
    /// Set while the changes of the last run are only in a scratch tree. If it is still set when the next run begins,
    /// they were discarded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_unapplied: bool,
}

/// The part of a history that is no longer sent, by message index. It stays the same until the next truncation, so that
/// the vendor's prompt cache remains valid.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truncation {
    /// The index before which only the first request and `request` are sent.
    pub from: usize,
    /// The index of the request that was the latest at the time.
    pub request: usize,
    /// Results before this index are cut to `share` bytes each.
    #[serde(rename = "turn")]
    pub end: usize,
    /// The maximum size of an older result, in bytes.
    #[serde(rename = "old")]
    pub share: usize,
}

impl Conversation {
    /// Makes this a copy of `other`. The messages that both begin with are not copied again, since a conversation grows
    /// only at its end.
    pub fn follow(&mut self, other: &Self) {
        let grown = |mut own: Vec<HistoryMessage>, others: &[HistoryMessage]| {
            let same = own.iter().zip(others).take_while(|(a, b)| a == b).count();
            own.truncate(same);
            own.extend_from_slice(&others[same..]);
            own
        };
        *self = Self {
            history: grown(take(&mut self.history), &other.history),
            earlier: grown(take(&mut self.earlier), &other.earlier),
            requests: other.requests.clone(),
            settled: other.settled,
            tasks: other.tasks.clone(),
            todos: other.todos.clone(),
            thinker: other.thinker.clone(),
            truncation: other.truncation,
            is_unapplied: other.is_unapplied,
        };
    }

    /// Adds a request of the user.
    pub fn request(&mut self, text: &str) {
        self.ask(text.into());
    }

    /// Adds a request with all its attachments.
    pub fn ask(&mut self, request: UserRequest) {
        self.requests.push(request.text.clone());
        self.history.push(HistoryMessage {
            images: request.images,
            ..HistoryMessage::of_user(request.text)
        });
        let shown = request.shown.into_iter().map(HistoryMessage::tagged);
        self.history.extend(shown);
    }

    /// Marks all requests so far as finished or stopped, before a new one is made.
    pub fn settle(&mut self) {
        self.settled = self.requests.len();
    }

    /// Returns the unfinished requests; always includes the last one.
    pub fn open_requests(&self) -> &[String] {
        let last = self.requests.len().saturating_sub(1);
        self.requests
            .get(self.settled.min(last)..)
            .unwrap_or_default()
    }

    /// Appends a message. Fault messages are dropped as soon as a reply of the agent is understood.
    pub fn say(&mut self, message: HistoryMessage) {
        if message.role == Role::Assistant {
            self.history.retain(|earlier| !earlier.is_fault);
        }
        self.history.push(message);
    }

    /// Returns the words of the paused replies at the end, which the next reply continues.
    pub fn paused(&self) -> String {
        let is_paused =
            |message: &HistoryMessage| message.role == Role::Assistant && message.calls.is_empty();
        let last = self.history.iter().rposition(|message| !is_paused(message));
        let paused = self.history[last.map_or(0, |last| last + 1)..].iter();
        paused.map(|message| &*message.content).collect()
    }

    /// Replaces the history with a summary; the messages remain in `earlier`.
    pub fn sum_up(&mut self, summary: HistoryMessage) {
        self.earlier.append(&mut self.history);
        self.history.push(summary);
        self.truncation = None;
    }

    /// Returns the messages added since `before`, an earlier state of the conversation. Its messages about faults may be
    /// gone.
    pub fn since(&self, before: &Self) -> impl Iterator<Item = &HistoryMessage> + Clone {
        let is_lasting = |message: &&HistoryMessage| !message.is_fault;
        let known = before.earlier.len() + before.history.iter().filter(is_lasting).count();
        self.earlier.iter().chain(&self.history).skip(known)
    }

    /// Returns whether the model has not replied since `before`, an earlier state of the conversation.
    pub fn is_unanswered_since(&self, before: &Self) -> bool {
        !self
            .since(before)
            .any(|message| message.role == Role::Assistant)
    }

    /// Returns the messages after those that a truncation leaves out; they are sent whole.
    pub fn untruncated(&self) -> &[HistoryMessage] {
        let from = self.truncation.map_or(0, |truncation| truncation.from);
        self.history.get(from..).unwrap_or_default()
    }

    /// Sets the account and model that sign the next thoughts. Thoughts signed by another are dropped, since the vendor
    /// would reject them.
    pub fn set_thinker(&mut self, thinker: &str) {
        if self.thinker.as_deref() != Some(thinker) {
            for message in &mut self.history {
                message.parts.retain(|part| !part.is_thought());
            }
            self.thinker = Some(thinker.to_owned());
        }
    }

    /// Returns the last request and the agent's last message, for a user who resumes the conversation; `None` if
    /// nothing was requested.
    pub fn recap(&self) -> Option<String> {
        let request = format!("> {}", self.requests.last()?.replace('\n', "\n> "));
        let mut history = self.history.iter().rev();
        let entry = history.find(|message| message.role == Role::Assistant);
        let Some(entry) = entry else {
            return Some(request);
        };
        // The template puts the tool input last.
        let input = entry.content.rsplit_once("\n## Tool Input\n");
        let words = match entry.calls.last() {
            Some(call) => input_text(&call.input),
            None => input.map_or(&*entry.content, |(_, input)| input).to_owned(),
        };
        Some(format!("{request}\n\n{words}"))
    }

    /// Returns the agent's last message and the results received since; `None` if any other message has followed.
    pub fn last_turn(&self) -> Option<(&HistoryMessage, &[HistoryMessage])> {
        let is_result =
            |message: &&HistoryMessage| message.role == Role::Tool && message.tool.is_some();
        let results = self.history.iter().rev().take_while(is_result).count();
        let (before, results) = self.history.split_at(self.history.len() - results);
        let last = before.last().filter(|last| last.role == Role::Assistant);
        last.map(|last| (last, results))
    }
}

/// Renders a history as the messages to send, all of it as text.
pub fn as_text(history: &[HistoryMessage]) -> Vec<Message<'static>> {
    let pieces = history.iter();
    in_turns(pieces.map(|message| (message.role, "\n\n", message.sent())))
}

/// Joins texts into messages, each given with its author and the separator from the text before. Consecutive texts of
/// users and tools become one message: many models expect user and assistant to alternate.
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

/// Renders the messages as one text for a model to summarize, with at most `max_bytes` of each.
pub fn transcript<'m>(
    history: impl IntoIterator<Item = &'m HistoryMessage>,
    max_bytes: usize,
) -> String {
    let texts = history.into_iter().map(|message| {
        let speaker = match (message.role, &message.tool) {
            (Role::User | Role::System, _) => "User".to_owned(),
            (Role::Assistant, _) => "Agent".to_owned(),
            (Role::Tool, Some(tool)) => format!("Result of {tool}"),
            (Role::Tool, None) => "Note".to_owned(),
        };
        let content = bounded(&message.with_calls(), max_bytes);
        format!("### {speaker}\n\n{content}\n")
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_follows_whatever_becomes_of_a_conversation() {
        let mut conversation = Conversation::default();
        let mut copy = Conversation::default();
        let changes: [fn(&mut Conversation); 5] = [
            |it| it.request("one"),
            |it| it.say(HistoryMessage::of_fault("a fault")),
            |it| it.say(HistoryMessage::of_agent("words")),
            |it| it.sum_up(HistoryMessage::summary("all", &[])),
            |it| *it = Conversation::default(),
        ];
        for change in changes {
            change(&mut conversation);
            copy.follow(&conversation);
            assert_eq!(copy, conversation);
        }
    }

    #[test]
    fn messages_alternate_and_are_tagged() {
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
    fn settled_requests_are_not_open() {
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
    fn a_recap_shows_the_last_request_and_the_last_words() {
        let mut conversation = Conversation::default();
        assert_eq!(conversation.recap(), None);
        conversation.request("do it\nwell");
        assert_eq!(conversation.recap().unwrap(), "> do it\n> well");
        let content = "# Agent Response\n\n## Tool Choice\nDONE\n\n## Tool Input\nIt is.";
        conversation.say(HistoryMessage::of_agent(content));
        conversation.say(HistoryMessage::of_tool("DONE", "call-1", "Audit: PASS"));
        assert_eq!(conversation.recap().unwrap(), "> do it\n> well\n\nIt is.");
    }

    #[test]
    fn a_reply_since_an_earlier_state_is_seen_whatever_was_forgotten_or_summed_up() {
        let mut before = Conversation::default();
        before.request("one");
        before.say(HistoryMessage::of_fault("line 1"));
        let mut conversation = before.clone();
        conversation.request("two");
        assert!(conversation.is_unanswered_since(&before));
        conversation.say(HistoryMessage::of_agent("Well."));
        assert!(!conversation.is_unanswered_since(&before));
        conversation.sum_up(HistoryMessage::summary("all", &[]));
        assert!(!conversation.is_unanswered_since(&before));
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
            .map(|message| &*message.content)
            .collect();
        assert_eq!(left, ["x", "yes"]);
    }

    #[test]
    fn a_summary_has_the_form_of_the_specification() {
        let message = HistoryMessage::summary("S", &["R".to_owned()]);
        assert_eq!(
            &*message.content,
            "[CONTEXT SUMMARY]\n\n<context_summary>\nS\n</context_summary>\n\n\
             [ORIGINAL REQUEST]\n\n<user_request>\nR\n</user_request>"
        );
    }
}
