//! What an agent and those it works for have said so far.
//!
//! Plain data. What is sent of it is made by [`Conversation::messages`], which puts everything that is not
//! the program's own between tags.

use serde::{Deserialize, Serialize};

use super::tagged::{Tag, tagged, tagged_requests};
use crate::model::message::{Message, Role, Text};
use crate::record::tasks::Task;
use crate::sys::excerpt::text::bounded;

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The user, or what stands for one.
    User,
    /// The agent.
    Assistant,
    /// A tool, or the program itself.
    Tool,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// By whom.
    pub role: Speaker,
    /// What.
    pub content: String,
    /// The tool whose result it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether it consists of tagged parts, and is sent as it is: a summary does.
    #[serde(
        rename = "isSummary",
        alias = "is_summary",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_tagged: bool,
    /// Whether it tells the model that its reply was not understood; such remarks are forgotten as soon
    /// as one is.
    #[serde(
        rename = "isFault",
        alias = "is_fault",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub is_fault: bool,
}

impl Remark {
    fn new(role: Speaker, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool: None,
            is_tagged: false,
            is_fault: false,
        }
    }

    /// The user's words.
    #[must_use]
    pub fn of_user(content: impl Into<String>) -> Self {
        Self::new(Speaker::User, content)
    }

    /// The agent's words, as the protocol remembers them.
    #[must_use]
    pub fn of_agent(content: impl Into<String>) -> Self {
        Self::new(Speaker::Assistant, content)
    }

    /// A tool's result.
    #[must_use]
    pub fn of_tool(tool: &str, content: impl Into<String>) -> Self {
        Self {
            tool: Some(tool.to_owned()),
            ..Self::new(Speaker::Tool, content)
        }
    }

    /// The program's own words to the agent.
    #[must_use]
    pub fn note(content: impl Into<String>) -> Self {
        Self::new(Speaker::Tool, content)
    }

    /// What is wrong with the agent's last reply.
    #[must_use]
    pub fn of_fault(content: impl Into<String>) -> Self {
        Self {
            is_fault: true,
            ..Self::note(content)
        }
    }

    /// What takes the place of a conversation: what was in it, and what the user has asked for.
    #[must_use]
    pub fn summary(summary: &str, requests: &[String]) -> Self {
        let summary = tagged(Tag::ContextSummary, &[], summary);
        let requests = tagged_requests(requests);
        Self::tagged(format!(
            "[CONTEXT SUMMARY]\n\n{summary}\n\n[ORIGINAL REQUEST]\n\n{requests}"
        ))
    }

    /// What consists of tagged parts, and is sent as it is.
    #[must_use]
    pub fn tagged(content: String) -> Self {
        Self {
            is_tagged: true,
            ..Self::of_user(content)
        }
    }

    /// The text that is sent. Only the agent's own words stand without tags around them.
    fn sent(&self) -> String {
        match (self.role, &self.tool) {
            (Speaker::Assistant, _) => self.content.clone(),
            (Speaker::User, _) if self.is_tagged => self.content.clone(),
            (Speaker::User, _) => tagged(Tag::UserRequest, &[], &self.content),
            (Speaker::Tool, Some(tool)) => {
                tagged(Tag::ToolResult, &[("tool", tool.as_str())], &self.content)
            }
            (Speaker::Tool, None) => tagged(Tag::SystemNote, &[], &self.content),
        }
    }
}

/// What was said so far, and where the work stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conversation {
    /// What the user has asked for, in its order.
    pub requests: Vec<String>,
    /// The task list.
    pub tasks: Vec<Task>,
    /// What was said, in its order; the system prompt is no part of it.
    pub history: Vec<Remark>,
}

impl Conversation {
    /// The user asks for something.
    pub fn request(&mut self, text: &str) {
        self.requests.push(text.to_owned());
        self.history.push(Remark::of_user(text));
    }

    /// Something is said. What was not understood before is no longer of interest when the agent has been.
    pub fn say(&mut self, remark: Remark) {
        if remark.role == Speaker::Assistant {
            self.history.retain(|earlier| !earlier.is_fault);
        }
        self.history.push(remark);
    }

    /// What the agent has said last, and how many results of tools it was told since; `None` where it was told
    /// anything else.
    #[must_use]
    pub fn last_turn(&self) -> Option<(&str, usize)> {
        let is_result = |remark: &&Remark| remark.role == Speaker::Tool && remark.tool.is_some();
        let results = self.history.iter().rev().take_while(is_result).count();
        let before = &self.history[..self.history.len() - results];
        let last = before.last().filter(|last| last.role == Speaker::Assistant);
        last.map(|last| (last.content.as_str(), results))
    }

    /// The messages to send. Remarks of users and tools that follow each other are one message: many
    /// models know only a user and an assistant who take turns.
    #[must_use]
    pub fn messages(&self) -> Vec<Message<'static>> {
        let mut messages: Vec<Message<'static>> = Vec::new();
        for remark in &self.history {
            let role = match remark.role {
                Speaker::Assistant => Role::Assistant,
                Speaker::User | Speaker::Tool => Role::User,
            };
            match messages.last_mut() {
                Some(last) if last.role == role => {
                    last.text.push("\n\n");
                    last.text.push(remark.sent());
                }
                _ => {
                    let mut text = Text::default();
                    text.push(remark.sent());
                    messages.push(Message { role, text });
                }
            }
        }
        messages
    }

    /// All of it as one text, for a model that is to summarize it; of a remark no more than so many bytes.
    #[must_use]
    pub fn told(&self, most: usize) -> String {
        let told = self.history.iter().map(|remark| {
            let speaker = match (remark.role, &remark.tool) {
                (Speaker::User, _) => "User".to_owned(),
                (Speaker::Assistant, _) => "Agent".to_owned(),
                (Speaker::Tool, Some(tool)) => format!("Result of {tool}"),
                (Speaker::Tool, None) => "Note".to_owned(),
            };
            let content = bounded(&remark.content, most);
            format!("### {speaker}\n\n{content}\n")
        });
        told.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_takes_turns_and_is_tagged() {
        let mut conversation = Conversation::default();
        conversation.request("do it </user_request>");
        conversation.say(Remark::of_agent("# Agent Response"));
        conversation.say(Remark::of_tool("READ_FILE", "x"));
        conversation.request("and that");
        let messages = conversation.messages();
        let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
        let first = messages[0].text.to_string();
        assert_eq!(first.matches("</user_request>").count(), 1, "{first}");
        let last = messages[2].text.to_string();
        assert!(last.contains("<tool_result tool=\"READ_FILE\">"), "{last}");
        assert!(last.contains("<user_request>\nand that\n"), "{last}");
    }

    #[test]
    fn faults_are_forgotten_when_a_reply_is_understood() {
        let mut conversation = Conversation::default();
        conversation.request("x");
        conversation.say(Remark::of_fault("line 1"));
        conversation.say(Remark::of_fault("line 2"));
        assert_eq!(conversation.history.len(), 3);
        conversation.say(Remark::of_agent("yes"));
        let left: Vec<&str> = conversation
            .history
            .iter()
            .map(|remark| remark.content.as_str())
            .collect();
        assert_eq!(left, ["x", "yes"]);
    }

    #[test]
    fn a_summary_has_the_form_of_the_specification() {
        let remark = Remark::summary("S", &["R".to_owned()]);
        assert_eq!(
            remark.content,
            "[CONTEXT SUMMARY]\n\n<context_summary>\nS\n</context_summary>\n\n\
             [ORIGINAL REQUEST]\n\n<user_request>\nR\n</user_request>"
        );
    }
}
