//! Reminders of the current state, when it changes. Pure.
//!
//! Guarantees that each thing is said once: [`Reminders::next`] gives what is to be said with the next call, and gives
//! it again until [`Reminders::told`] says that the call was made.

use crate::agent::conversation::HistoryMessage;
use crate::record::mode::Mode;
use crate::record::todos::{Todo, TodoStatus};
use crate::sys::text::one_line;

/// After how many calls of tools a todo list that was not touched is stale.
const STALE: u32 = 10;
/// Limit of the files that are named.
const NAMED: usize = 20;
/// Limit of a path's length.
const LONGEST_PATH: usize = 200;

/// The tool that touches the todo list.
const UPDATE_TODOS: &str = "update_todos";

const EMPTY_LIST: &str = "The todo list is empty. Where the request takes three steps or more, write them down with \
                          update_todos before you begin; else leave the list empty. Do not mention this to the user.";
const STALE_LIST: &str = "The todo list has not been touched for a while. Bring it up to date with update_todos where it \
                          does not tell any more what is done and what is under way. Do not mention this to the user.";

/// Reminder of the mode from now on.
fn told_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Regular => {
            "The mode is Regular now: work on what the user asks for. The user is asked before something is changed or \
             run that they have not allowed."
        }
        Mode::AutoPilot => {
            "The mode is Auto-Pilot now: nobody is asked. Carry out what the user asks for to its end, and tell what \
             you do."
        }
        Mode::Planning => {
            "The mode is Planning now: you have no tools, and whatever you call is refused. Discuss and plan; end a \
             plan that is ready with a checklist, one `- [ ] …` line a step, and nothing behind it."
        }
    }
}

/// The state ahead of a call.
#[derive(Debug, Clone, Copy)]
pub struct StepFacts<'s> {
    /// The mode.
    pub mode: Mode,
    /// The todo list.
    pub todos: &'s [Todo],
    /// Number of the user's requests.
    pub requests: usize,
}

/// The state that the model knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Reminded {
    mode: Option<Mode>,
    /// The number of requests when the list was said to be empty.
    empty_at: Option<usize>,
    /// `true` once the model was told that the list is stale.
    stale: bool,
}

/// Changes, and the model's knowledge of them.
#[derive(Debug, Clone, Default)]
pub struct Reminders {
    said: Reminded,
    /// The state after the last reminders.
    next: Reminded,
    /// Calls since the todo list was touched.
    calls: u32,
    /// Pending reminders of other things.
    waiting: Vec<HistoryMessage>,
    /// Number of those given last.
    given: usize,
}

impl Reminders {
    /// A tool was called.
    pub fn called(&mut self, tool: &str) {
        if tool == UPDATE_TODOS {
            (self.calls, self.said.stale, self.next.stale) = (0, false, false);
        } else {
            self.calls = self.calls.saturating_add(1);
        }
    }

    /// Files that the model knows were changed by somebody else.
    pub fn files_changed(&mut self, paths: &[String]) {
        self.name(
            "These files were changed since you last saw them, by the user or a program of theirs. Read them again \
             before you change them, keep what was changed, and do not ask why:",
            paths,
        );
    }

    /// The user has taken back what the last request has changed; these files are as they were before.
    pub fn undone(&mut self, paths: &[String]) {
        self.name(
            "The user has taken back what you changed for their last request, by /undo. These files are as they were \
             before it; do not do it again unless they ask for it:",
            paths,
        );
    }

    /// Notes that the last request was taken out of the conversation, though these files were changed for it and these
    /// commands have run.
    pub fn taken_out(&mut self, files: &[String], commands: &[String]) {
        let done = files.iter().chain(commands).cloned();
        self.name(
            "Your work on the user's last request was taken out of this conversation, since you refused to go on. What \
             you had done by then stays as it is; these files were changed, or these commands have run:",
            &done.collect::<Vec<_>>(),
        );
    }

    /// Notes that these background processes have ended, since the user signed in or out.
    pub fn ended(&mut self, processes: &[String]) {
        self.name(
            "The user has signed in or out, which has ended these background processes:",
            processes,
        );
    }

    /// Something else is to be said, as of the files that a project has for agents.
    pub fn say(&mut self, reminder: HistoryMessage) {
        self.waiting.push(reminder);
    }

    /// Pending reminders, to keep with the session.
    #[must_use]
    pub fn waiting(&self) -> &[HistoryMessage] {
        &self.waiting
    }

    /// Notes that the conversation is another, or shorter: past reminders are gone.
    pub fn forget(&mut self) {
        (self.said, self.next) = (Reminded::default(), Reminded::default());
    }

    /// Reminders for the next call.
    pub fn next(&mut self, now: &StepFacts<'_>) -> Vec<HistoryMessage> {
        let mut words = Vec::new();
        self.next = self.said;
        if self.said.mode != Some(now.mode) {
            self.next.mode = Some(now.mode);
            words.push(told_of(now.mode));
        }
        let can_write = now.mode != Mode::Planning;
        if can_write && now.todos.is_empty() && self.said.empty_at != Some(now.requests) {
            self.next.empty_at = Some(now.requests);
            words.push(EMPTY_LIST);
        }
        let is_open = |todo: &Todo| todo.status != TodoStatus::Completed;
        let is_stale = self.calls >= STALE && now.todos.iter().any(is_open);
        if can_write && is_stale && !self.said.stale {
            self.next.stale = true;
            words.push(STALE_LIST);
        }
        self.given = self.waiting.len();
        let words = words.into_iter().map(HistoryMessage::reminder);
        words.chain(self.waiting.iter().cloned()).collect()
    }

    /// The call was made, and with it, what was given last is said.
    pub fn told(&mut self) {
        self.said = self.next;
        self.waiting.drain(..self.given.min(self.waiting.len()));
        self.given = 0;
    }

    fn name(&mut self, words: &str, paths: &[String]) {
        if paths.is_empty() {
            return;
        }
        let named = paths.iter().take(NAMED);
        let named = named.map(|path| format!("\n- {}", one_line(path, LONGEST_PATH)));
        let named: String = named.collect();
        let more = match paths.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("\n- and {more} more"),
        };
        self.say(HistoryMessage::reminder(&format!("{words}{named}{more}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(status: TodoStatus) -> Todo {
        Todo {
            content: "Run the tests".to_owned(),
            status,
            active_form: None,
        }
    }

    /// Takes the reminders as a word each; the call is made.
    fn said(
        reminders: &mut Reminders,
        mode: Mode,
        todos: &[Todo],
        requests: usize,
    ) -> Vec<&'static str> {
        let now = StepFacts {
            mode,
            todos,
            requests,
        };
        let next = reminders.next(&now);
        // A call that was not made has said nothing.
        assert_eq!(reminders.next(&now), next);
        reminders.told();
        let word = |message: HistoryMessage| {
            let words = [
                "Regular now",
                "Auto-Pilot now",
                "Planning now",
                "is empty",
                "for a while",
                "by the user or",
                "/undo",
                "- and 5 more",
            ];
            let found = words
                .into_iter()
                .rfind(|word| message.content.contains(word));
            assert!(message.content.starts_with("<system-reminder>\n"));
            found.unwrap()
        };
        next.into_iter().map(word).collect()
    }

    #[test]
    fn each_thing_is_said_once_when_it_changes() {
        use Mode::{AutoPilot, Planning, Regular};
        let mut all = Reminders::default();
        let open = [todo(TodoStatus::Completed), todo(TodoStatus::Pending)];
        assert_eq!(said(&mut all, Regular, &[], 1), ["Regular now", "is empty"]);
        assert_eq!(said(&mut all, Regular, &[], 1), [""; 0]);
        assert_eq!(said(&mut all, Regular, &[], 2), ["is empty"]);
        assert_eq!(said(&mut all, Regular, &open, 3), [""; 0]);
        assert_eq!(said(&mut all, Planning, &[], 3), ["Planning now"]);
        assert_eq!(said(&mut all, AutoPilot, &open, 3), ["Auto-Pilot now"]);
        all.forget();
        assert_eq!(said(&mut all, AutoPilot, &open, 3), ["Auto-Pilot now"]);
    }

    #[test]
    fn a_list_is_stale_after_ten_calls_that_do_not_touch_it() {
        let mut all = Reminders::default();
        let open = [todo(TodoStatus::InProgress)];
        said(&mut all, Mode::Regular, &open, 1);
        for round in 0..2 {
            all.called(UPDATE_TODOS);
            for _ in 0..9 {
                all.called("read_file");
            }
            assert_eq!(said(&mut all, Mode::Regular, &open, 1), [""; 0], "{round}");
            all.called("read_file");
            assert_eq!(said(&mut all, Mode::Regular, &open, 1), ["for a while"]);
            all.called("read_file");
            assert_eq!(said(&mut all, Mode::Regular, &open, 1), [""; 0]);
        }
        let done = [todo(TodoStatus::Completed)];
        for _ in 0..20 {
            all.called("read_file");
        }
        assert_eq!(said(&mut all, Mode::Regular, &done, 1), [""; 0]);
    }

    #[test]
    fn files_are_named_and_of_many_the_first() {
        let mut all = Reminders::default();
        let open = [todo(TodoStatus::Pending)];
        said(&mut all, Mode::Regular, &open, 1);
        all.files_changed(&[]);
        all.files_changed(&["src/a\nb.rs".to_owned()]);
        all.undone(&["c".to_owned()]);
        let now = StepFacts {
            mode: Mode::Regular,
            todos: &open,
            requests: 1,
        };
        assert!(
            all.next(&now)[0]
                .content
                .ends_with("\n- src/a b.rs\n</system-reminder>")
        );
        // What comes up while the call is made waits for the next.
        all.files_changed(&vec!["d".to_owned(); 25]);
        all.told();
        assert_eq!(said(&mut all, Mode::Regular, &open, 1), ["- and 5 more"]);
        assert_eq!(said(&mut all, Mode::Regular, &open, 1), [""; 0]);
    }
}
