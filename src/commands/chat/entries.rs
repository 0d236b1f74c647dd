//! Converts a conversation to the entries shown on the screen, and shortens text for the normal screen. Pure.

use std::collections::HashMap;

use serde_json::Value;

use super::tools;
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::agent::protocol::FAILED;
use crate::agent::tools::command::NOTHING_PRINTED;
use crate::model::message::{ReplyPart, Role, Thought};
use crate::record::tool::{CommandEnd, ToolEnd, Verb};
use crate::sys::excerpt::text::bounded;
use crate::sys::numbers::counted;
use crate::ui::present::ToolUse;
use crate::ui::tui::Entry;

/// The text for a call without a result, because the program ended during the call.
const CUT_SHORT: &str = "cut short: it has no result";

/// The note to the model after a stopped reply.
pub const STOPPED: &str = "The user has stopped your last reply here.";
/// The corresponding note to the user.
pub const STOPPED_SHOWN: &str = "Agent stopped by user";

/// The arguments that describe a call; the first one present is shown.
const SUBJECTS: [&str; 4] = ["command", "pattern", "path", "description"];

/// Maximum number of lines of the last reply left on the normal screen at the end; `BYTES_AT_END` also limits it.
const LINES_AT_END: usize = 24;
const BYTES_AT_END: usize = 4000;

/// Converts a conversation to entries.
pub fn entries(conversation: &Conversation) -> Vec<Entry> {
    let history = conversation.earlier.iter().chain(&conversation.history);
    let mut entries = Vec::new();
    let mut calls: HashMap<&str, usize> = HashMap::new();
    for said in history {
        match (said.role, &said.tool) {
            // Other tagged messages are meant only for the model.
            _ if said.is_tagged => entries.extend(said.brief.as_deref().map(Entry::user)),
            (Role::User, _) => entries.push(Entry::user(&*said.content)),
            (Role::Assistant, _) => {
                entries.extend(replied(said));
                let first = entries.len() - said.calls.len();
                let ids = said.calls.iter().map(|call| &*call.id);
                calls = ids.zip(first..).collect();
            }
            (Role::Tool, Some(_)) => {
                let call = said.call.as_deref().and_then(|id| calls.get(id));
                if let Some(entry) = call.and_then(|at| entries.get_mut(*at)) {
                    answer(entry, said);
                }
            }
            _ if *said.content == *STOPPED => entries.push(Entry::notice(STOPPED_SHOWN)),
            (Role::Tool | Role::System, _) => entries.push(Entry::notice(&*said.content)),
        }
    }
    entries
}

/// Returns the entries for a reply: the agent's words and its tool calls.
fn replied(said: &HistoryMessage) -> impl Iterator<Item = Entry> {
    let thoughts = said.parts.iter().filter_map(|part| match part {
        ReplyPart::Thought(Thought::Sealed { .. }) => None,
        ReplyPart::Thought(thought) => Some(thought.text()),
        _ => None,
    });
    let thoughts = thoughts.filter(|text| !text.trim().is_empty());
    let content = said.content.trim();
    let words = (!content.is_empty()).then(|| Entry::Agent(content.to_owned()));
    let calls = said.calls.iter().map(|call| {
        let verb = tools::named(&call.name).map_or(Verb::Use, |tool| tool.verb);
        Entry::Tool(Box::new(ToolUse {
            // Applies unless a result follows.
            result: Some(ended(CUT_SHORT, true)),
            ..ToolUse::new(&call.name, verb, subject(&call.input))
        }))
    });
    thoughts.map(Entry::thought).chain(words).chain(calls)
}

fn subject(input: &Value) -> &str {
    let subject = SUBJECTS.iter().find_map(|name| input[name].as_str());
    subject.unwrap_or_default()
}

/// Adds the result of a call to its entry.
fn answer(entry: &mut Entry, said: &HistoryMessage) {
    if let Entry::Tool(tool) = entry {
        let failure = said.content.strip_prefix(FAILED);
        let text = failure.filter(|_| said.is_failed).unwrap_or(&said.content);
        // The result of a command that has ended is its status, then its output.
        let output = said.brief.as_deref().and_then(|end| text.strip_prefix(end));
        let printed = output.unwrap_or_default().trim_start_matches('\n');
        if said.command != CommandEnd::None && printed != NOTHING_PRINTED {
            printed.clone_into(&mut tool.printed);
        }
        tool.result = Some(ToolEnd {
            command: said.command,
            brief: said.brief.clone(),
            ..ended(text, said.is_failed)
        });
    }
}

fn ended(text: &str, failed: bool) -> ToolEnd {
    ToolEnd {
        text: text.to_owned(),
        failed,
        ..ToolEnd::default()
    }
}

/// Returns the end of a text, about one screenful.
pub fn ending(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LINES_AT_END));
    let shown = bounded(&last.join("\n"), BYTES_AT_END);
    match before.len() as u64 {
        0 => shown,
        before => format!(
            "[{} before: `/transcript` has all]\n{shown}",
            counted(before, "line")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::Call;
    use serde_json::json;

    #[test]
    fn a_failed_command_and_the_users_own_are_shown_as_they_were() {
        let command = |command, brief: &str| HistoryMessage {
            command,
            brief: Some(brief.to_owned()),
            ..HistoryMessage::of_tool("execute_command", "1", "exit code: 1\nno")
        };
        let mut conversation = Conversation::default();
        conversation.request("look");
        conversation.say(HistoryMessage {
            brief: Some("!ls (exit code: 0)".to_owned()),
            ..HistoryMessage::tagged("<tool-result>".to_owned())
        });
        conversation.say(HistoryMessage {
            calls: vec![Call {
                id: "1".to_owned(),
                name: "execute_command".to_owned(),
                ..Call::default()
            }],
            ..HistoryMessage::of_agent("")
        });
        conversation.say(command(CommandEnd::Exited(1), "exit code: 1"));
        let written = serde_json::to_value(&conversation.history).unwrap();
        let history: Vec<HistoryMessage> = serde_json::from_value(written).unwrap();
        assert_eq!(history, conversation.history);
        let shown = entries(&conversation);
        let [_, Entry::User { text, .. }, Entry::Tool(tool)] = &shown[..] else {
            panic!("{shown:?}");
        };
        assert_eq!(text, "!ls (exit code: 0)");
        let shown = tool.shown().unwrap();
        assert_eq!((shown.sign, &*shown.aside), ("✗", "exit code: 1"));
        assert_eq!(
            shown.body,
            [crate::ui::present::Part::Output("no".to_owned())]
        );
    }

    #[test]
    fn a_call_without_a_result_was_cut_short_and_a_failure_is_reported_without_its_mark() {
        let call = |id: &str| Call {
            id: id.to_owned(),
            name: "read_file".to_owned(),
            input: json!({}),
            written: None,
        };
        let mut conversation = Conversation::default();
        conversation.request("look");
        conversation.say(HistoryMessage {
            calls: vec![call("1"), call("2"), call("3")],
            ..HistoryMessage::of_agent("")
        });
        conversation.say(HistoryMessage::of_tool(
            "read_file",
            "1",
            "ERROR: as it is in the file",
        ));
        conversation.say(HistoryMessage {
            is_failed: true,
            ..HistoryMessage::of_tool("read_file", "2", "ERROR: there is no such file")
        });
        let shown: Vec<_> = entries(&conversation)
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::Tool(tool) => tool.result.map(|end| (end.text, end.failed)),
                _ => None,
            })
            .collect();
        let expected = [
            ("ERROR: as it is in the file", false),
            ("there is no such file", true),
            (CUT_SHORT, true),
        ];
        assert_eq!(
            shown,
            expected.map(|(text, failed)| (text.to_owned(), failed))
        );
    }
}
