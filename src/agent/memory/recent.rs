//! A memory that sends the most recent messages and the current task. Pure.
//!
//! Meant for agents that keep what matters elsewhere, such as in a plan. Guarantees that the prompt fits the model's
//! window by the program's own count, and that the task is always in the last message.

use super::{Frame, Memory, SHARES, View, shortened, size};
use crate::agent::AgentError;
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::model::estimate::FRAMING;
use crate::model::message::{Message, Role};

/// Number of user messages kept as long as shortening the results is enough to make the prompt fit.
const FEWER: usize = 3;

/// Sends the most recent messages and the current task.
#[derive(Clone, Copy)]
pub struct Recent<'a> {
    /// The maximum number of user messages sent, results included, each with the agent's reply to it.
    pub most: usize,
    /// The text at the end of the last message; may be empty.
    pub task: &'a str,
    /// The words before the task in a message that follows results; may be empty.
    pub reminder: &'a str,
    /// The maximum number of tokens in a prompt.
    pub window: u64,
    /// The tokens of the model's window that are kept for its answer; 0 if unknown.
    pub answer: u64,
    /// A shorter version of the last system message, used if everything does not fit.
    pub shorter: &'a dyn Fn() -> String,
    /// A model with a larger window, if the table has one.
    pub larger: Option<&'a str>,
}

impl Memory for Recent<'_> {
    fn view(&self, frame: Frame<'_>, conversation: &mut Conversation) -> Result<View, AgentError> {
        let all = self.with_task(&conversation.history);
        let tokens = |system: &[String], messages: &[Message<'_>]| size(system, messages) + FRAMING;
        // Halves the number of messages repeatedly, but keeps some.
        let half = |many: &usize| Some((many / 2).max(FEWER)).filter(|fewer| fewer < many);
        for most in std::iter::successors(Some(self.most.min(all.len())), half) {
            let messages = frame.protocol.render(last(&all, most));
            if tokens(frame.system, &messages) <= self.window {
                return Ok(View::of(messages));
            }
        }
        let mut system = frame.system.to_vec();
        if let Some(last) = system.last_mut() {
            *last = (self.shorter)();
        }
        let rendered = |most: usize, share| {
            let fewer = last(&all, most.min(self.most)).iter();
            let history: Vec<_> = fewer.map(|text| shortened(text, share)).collect();
            frame.protocol.render(&history)
        };
        let shares = SHARES.map(|share| (FEWER, share)).into_iter();
        for (most, share) in shares.chain([(FEWER, 0), (2, 0), (1, 0)]) {
            let messages = rendered(most, share);
            if tokens(&system, &messages) <= self.window {
                return Ok(View {
                    system: Some(system),
                    ..View::of(messages)
                });
            }
        }
        Err(AgentError::TooLong {
            tokens: tokens(&system, &rendered(1, 0)),
            window: self.window,
            answer: self.answer,
            larger: self.larger.map(str::to_owned),
        })
    }
}

impl Recent<'_> {
    /// Appends the task to the history, unless it is already the last message.
    fn with_task(&self, history: &[HistoryMessage]) -> Vec<HistoryMessage> {
        let mut history = history.to_vec();
        let is_said = history
            .last()
            .is_some_and(|last| *last.content == *self.task);
        if !self.task.is_empty() && !is_said {
            let has_result = history.last().is_some_and(|last| last.tool.is_some());
            if has_result && !self.reminder.is_empty() {
                history.push(HistoryMessage::of_user(self.reminder));
            }
            history.push(HistoryMessage::of_user(self.task));
        }
        history
    }
}

/// Returns the end of a history with at most `most` user messages; everything between two replies of the agent counts
/// as one.
fn last(history: &[HistoryMessage], most: usize) -> &[HistoryMessage] {
    let is_agent = |message: &HistoryMessage| message.role == Role::Assistant;
    let begins = |at: &usize| {
        let before = at.checked_sub(1).and_then(|at| history.get(at));
        history.get(*at).is_some_and(|message| !is_agent(message)) && before.is_none_or(is_agent)
    };
    let mut begun = (0..history.len()).rev().filter(begins);
    let nth = begun.nth(most.saturating_sub(1));
    // Replies of the agent before the first user message are omitted, too.
    let from = nth.or_else(|| (0..history.len()).find(begins));
    from.map_or(&[], |from| &history[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[(&str, &str)]) -> Vec<HistoryMessage> {
        let words = words.iter();
        let message = |(who, words): &(&str, &str)| match *who {
            "agent" => HistoryMessage::of_agent(*words),
            "tool" => HistoryMessage::of_tool("look", "1", *words),
            _ => HistoryMessage::of_user(*words),
        };
        words.map(message).collect()
    }

    #[test]
    fn only_so_many_of_the_users_messages_are_sent_and_results_that_follow_each_other_are_one() {
        let history = said(&[
            ("user", "1"),
            ("agent", "a"),
            ("tool", "2"),
            ("tool", "2 too"),
            ("agent", "b"),
            ("user", "3"),
        ]);
        for (most, from) in [(1, 5), (2, 2), (3, 0), (9, 0)] {
            assert_eq!(last(&history, most), &history[from..], "{most}");
        }
        let begun_by_agent = said(&[("agent", "a"), ("user", "1")]);
        assert_eq!(last(&begun_by_agent, 5), &begun_by_agent[1..]);
        assert!(last(&said(&[("agent", "a")]), 5).is_empty());
    }

    #[test]
    fn the_task_is_said_last_and_once() {
        let recent = Recent {
            most: 5,
            task: "Current task: x",
            reminder: "Do it alone.",
            window: 100,
            answer: 0,
            shorter: &String::new,
            larger: None,
        };
        for history in [
            said(&[]),
            said(&[("user", "Current task: x")]),
            said(&[("agent", "a"), ("tool", "r")]),
        ] {
            let history = recent.with_task(&history);
            let tasks = history
                .iter()
                .filter(|message| &*message.content == "Current task: x");
            assert_eq!(tasks.count(), 1);
            assert_eq!(&*history.last().unwrap().content, "Current task: x");
        }
    }
}
