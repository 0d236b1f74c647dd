//! Converts events and earlier conversation to items of the transcript. Pure.

use super::Transcript;
use crate::record::event::Event;
use crate::record::tool::ToolEnd;
use crate::ui::present::{ToolUse, asked, present};
use crate::ui::tui::Entry;

impl Transcript {
    fn push_event(&mut self, event: &Event) {
        if let Some(shown) = present(event) {
            self.push(Entry::Event(Box::new(shown)));
        }
    }

    /// Adds a step of an agent with structured replies. Returns whether the event was one.
    fn step(&mut self, event: &Event) -> bool {
        match event {
            Event::Receiving { .. } => {}
            Event::Words(_)
            | Event::Thoughts(_)
            | Event::Session { .. }
            | Event::Uncontained { .. } => self.push_event(event),
            Event::Finished { summary, log } => {
                self.push_markdown(summary.clone());
                if let Some(log) = log {
                    self.push(Entry::notice(format!("log: {log}")));
                }
            }
            Event::Tool {
                subject,
                asks: true,
                ..
            } => self.push(Entry::Event(Box::new(asked(subject)))),
            Event::Heard {
                answer: Some(answer),
                ..
            } => self.push(Entry::user(answer)),
            Event::Reviewed { stat, .. } => {
                self.push_event(&Event::Shown(stat.text(self.size.0)));
            }
            _ => return false,
        }
        true
    }

    /// Adds an event.
    pub fn event(&mut self, event: Event) {
        if self.has_steps && self.step(&event) {
            return;
        }
        match event {
            Event::Asking { .. } => {
                // A rejected reply is requested again, so remove it.
                if !self.is_answered {
                    self.drop_streamed();
                }
                (self.step, self.is_answered) = (self.items.len(), false);
            }
            Event::Receiving {
                piece, is_thought, ..
            } => self.push_piece(&piece, is_thought),
            Event::Retrying { .. } => self.drop_streamed(),
            Event::Answered { .. } => self.is_answered = true,
            Event::Words(text) | Event::Thoughts(text) | Event::Prose(text) => self.say(text),
            Event::Finished { summary, .. } => self.say(summary),
            Event::Tool {
                name,
                verb,
                subject,
                ..
            } => {
                let tool = ToolUse::new(&name, verb, &subject);
                self.push(Entry::Tool(Box::new(tool)));
                self.tools.push(self.items.len() - 1);
            }
            Event::Printed(text) => self.with_tool(|tool| tool.printed = text),
            Event::Changed { diff } => self.with_tool(|tool| tool.diff.push_str(&diff)),
            Event::ToolResult { name, end, .. } => self.end_tool(&name, end),
            Event::Tasks(ref tasks) if *tasks != self.tasks => {
                self.tasks.clone_from(tasks);
                self.push_event(&event);
            }
            Event::Failed { .. } => {
                if !self.is_answered {
                    self.drop_streamed();
                }
                self.push_event(&event);
            }
            Event::Warning(_)
            | Event::Notice(_)
            | Event::Status(_)
            | Event::Shown(_)
            | Event::ShownDiff(_)
            | Event::Malformed { .. }
            | Event::Auditing
            | Event::Audited { .. }
            | Event::Compressed { .. }
            | Event::Built { .. }
            | Event::Connected { .. }
            | Event::BranchEnded { .. } => self.push_event(&event),
            _ => {}
        }
    }

    /// Notes that the user is asked about the running tool.
    pub fn asked(&mut self) {
        self.with_tool(|tool| tool.is_asked = true);
    }

    /// Ends the work on a submission: no tool is running any more, even if its end was not reported.
    pub fn settle(&mut self) {
        for at in std::mem::take(&mut self.tools) {
            self.with_tool_at(at, |tool| {
                tool.result.get_or_insert_with(|| ToolEnd {
                    brief: Some("stopped".to_owned()),
                    failed: true,
                    ..ToolEnd::default()
                });
            });
        }
        self.is_answered = true;
        self.step = self.items.len();
    }

    /// Adds the agent's message, unless it was already streamed.
    fn say(&mut self, text: String) {
        let step = self.step.min(self.items.len());
        let mut since = self.items[step..].iter();
        if !since.any(|item| item.is_streamed && matches!(item.body, Entry::Agent(_))) {
            self.push_markdown(text);
        }
    }

    /// Applies `change` to the innermost running tool.
    fn with_tool(&mut self, change: impl FnOnce(&mut ToolUse)) {
        if let Some(&at) = self.tools.last() {
            self.with_tool_at(at, change);
        }
    }

    fn with_tool_at(&mut self, at: usize, change: impl FnOnce(&mut ToolUse)) {
        if let Some(Entry::Tool(tool)) = self.items.get_mut(at).map(|item| &mut item.body) {
            change(tool);
        }
        self.touch(at);
    }

    /// Ends a tool, and any tools running within it.
    fn end_tool(&mut self, name: &str, end: ToolEnd) {
        let is_it = |at: &usize| match self.items.get(*at).map(|item| &item.body) {
            Some(Entry::Tool(tool)) => tool.name == name,
            _ => false,
        };
        let Some(nth) = self.tools.iter().rposition(is_it) else {
            return;
        };
        let at = self.tools[nth];
        self.tools.truncate(nth);
        self.with_tool_at(at, |tool| tool.result = Some(end));
    }
}
