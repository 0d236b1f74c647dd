//! Reminders of the current state. Pure: the conversation itself shows which ones the model has received.

use clap::ValueEnum as _;

use crate::agent::conversation::HistoryMessage;
use crate::model::message::Role;
use crate::record::mode::Mode;
use crate::record::todos::{Todo, TodoStatus};
use crate::sys::text::{first_lines, one_line};

/// Number of tool calls after which an unchanged to-do list is stale.
const STALE: usize = 10;
/// Maximum number of names listed.
const NAMED: usize = 20;
/// Maximum length of a path, in characters.
const LONGEST_PATH: usize = 200;

/// The tool that updates the to-do list.
const UPDATE_TODOS: &str = "update_todos";

const EMPTY_LIST: &str = "The todo list is empty. Where the request takes three steps or more, write them down with \
                          update_todos before you begin; else leave the list empty. Do not mention this to the user.";
const STALE_LIST: &str = "The todo list has not been touched for a while. Bring it up to date with update_todos where it \
                          does not tell any more what is done and what is under way. Do not mention this to the user.";

/// Returns the reminder that this mode is active from now on.
fn text_of(mode: Mode) -> &'static str {
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

/// Returns the reminders of the mode and the to-do list that are due in the next call after this `history`.
pub fn due(mode: Mode, todos: &[Todo], history: &[HistoryMessage]) -> Vec<HistoryMessage> {
    let reminder = |mode: &Mode| HistoryMessage::reminder(text_of(*mode));
    let modes: Vec<_> = Mode::value_variants().iter().map(reminder).collect();
    let latest = history.iter().rev();
    let earlier = latest.clone().find(|message| modes.contains(message));
    let now = reminder(&mode);
    let mut due = Vec::new();
    if earlier != Some(&now) {
        due.push(now);
    }
    if mode == Mode::Planning {
        return due;
    }
    let is_request = |message: &HistoryMessage| message.role == Role::User && !message.is_tagged;
    let of_request = latest.clone().take_while(|message| !is_request(message));
    let empty = HistoryMessage::reminder(EMPTY_LIST);
    if todos.is_empty() && !of_request.into_iter().any(|message| *message == empty) {
        due.push(empty);
    }
    let touches = |message: &HistoryMessage| message.tool.as_deref() == Some(UPDATE_TODOS);
    let untouched = latest.take_while(|message| !touches(message));
    let calls = untouched.clone().filter(|message| message.tool.is_some());
    let stale = HistoryMessage::reminder(STALE_LIST);
    let is_open = |todo: &Todo| todo.status != TodoStatus::Completed;
    if todos.iter().any(is_open)
        && calls.count() >= STALE
        && !untouched.into_iter().any(|message| *message == stale)
    {
        due.push(stale);
    }
    due
}

/// Creates a reminder with `words` that lists these files, processes or commands; `None` if there are none.
pub fn naming(words: &str, names: &[String]) -> Option<HistoryMessage> {
    let lines = names.iter().map(|name| one_line(name, LONGEST_PATH));
    let named = first_lines(lines, NAMED).join("\n- ");
    (!names.is_empty()).then(|| HistoryMessage::reminder(&format!("{words}\n- {named}")))
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

    /// A conversation whose due reminders are shortened to a few words each.
    #[derive(Default)]
    struct Talk(Vec<HistoryMessage>);

    impl Talk {
        fn asks(&mut self) {
            self.0.push(HistoryMessage::of_user("a request"));
        }

        fn calls(&mut self, tool: &str) {
            self.0.push(HistoryMessage::of_tool(tool, "1", ""));
        }

        fn hears(&mut self, mode: Mode, todos: &[Todo]) -> Vec<&'static str> {
            let due = due(mode, todos, &self.0);
            self.0.extend(due.clone());
            let word = |message: HistoryMessage| {
                let mut words = [
                    "Regular now",
                    "Auto-Pilot now",
                    "Planning now",
                    "is empty",
                    "for a while",
                ]
                .into_iter();
                assert!(message.content.starts_with("<system-reminder>\n"));
                words.find(|word| message.content.contains(word)).unwrap()
            };
            due.into_iter().map(word).collect()
        }
    }

    #[test]
    fn each_thing_is_said_once_when_it_changes() {
        use Mode::{AutoPilot, Planning, Regular};
        let mut talk = Talk::default();
        let open = [todo(TodoStatus::Completed), todo(TodoStatus::Pending)];
        talk.asks();
        assert_eq!(talk.hears(Regular, &[]), ["Regular now", "is empty"]);
        assert_eq!(talk.hears(Regular, &[]), [""; 0]);
        talk.asks();
        assert_eq!(talk.hears(Regular, &[]), ["is empty"]);
        talk.asks();
        assert_eq!(talk.hears(Regular, &open), [""; 0]);
        assert_eq!(talk.hears(Planning, &[]), ["Planning now"]);
        assert_eq!(talk.hears(AutoPilot, &open), ["Auto-Pilot now"]);
        assert_eq!(talk.hears(Regular, &open), ["Regular now"]);
        // A shortened conversation no longer has its reminders.
        talk.0.clear();
        assert_eq!(talk.hears(AutoPilot, &open), ["Auto-Pilot now"]);
    }

    #[test]
    fn a_list_is_stale_after_ten_calls_that_do_not_touch_it() {
        let mut talk = Talk::default();
        let open = [todo(TodoStatus::InProgress)];
        talk.hears(Mode::Regular, &open);
        for round in 0..2 {
            talk.calls(UPDATE_TODOS);
            for _ in 0..9 {
                talk.calls("read_file");
            }
            assert_eq!(talk.hears(Mode::Regular, &open), [""; 0], "{round}");
            talk.calls("read_file");
            assert_eq!(talk.hears(Mode::Regular, &open), ["for a while"]);
            talk.calls("read_file");
            assert_eq!(talk.hears(Mode::Regular, &open), [""; 0]);
        }
        let done = [todo(TodoStatus::Completed)];
        talk.calls(UPDATE_TODOS);
        for _ in 0..20 {
            talk.calls("read_file");
        }
        assert_eq!(talk.hears(Mode::Regular, &done), [""; 0]);
    }

    #[test]
    fn files_are_named_and_of_many_the_first() {
        assert_eq!(naming("These:", &[]), None);
        let few = naming("These:", &["src/a\nb.rs".to_owned()]).unwrap();
        let expected = "<system-reminder>\nThese:\n- src/a b.rs\n</system-reminder>";
        assert_eq!(&*few.content, expected);
        let many = naming("These:", &vec!["d".to_owned(); 25]).unwrap();
        assert!(many.content.contains("\n- and 5 more\n"));
    }
}
