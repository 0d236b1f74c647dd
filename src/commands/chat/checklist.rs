//! Converts the checklist at the end of a plan to a todo list. Pure.

use std::sync::LazyLock;

use regex::Regex;

use crate::record::todos::{Todo, TodoStatus};
use crate::sys::text::regex;

/// Maximum number of steps in a plan.
const MOST: usize = 100;

/// Returns the to-do list of a reply that ends in a Markdown checklist: lines like `- [ ] Run the tests`, nested or
/// not, with no text after them. Returns `None` if there is no such list, or all its items are done.
pub fn checklist(reply: &str) -> Option<Vec<Todo>> {
    let mut todos: Vec<Todo> = Vec::new();
    for line in reply.trim_end().lines().rev() {
        let goes_on = line.trim().is_empty() || line.starts_with([' ', '\t']);
        match item(line) {
            Some(todo) => todos.push(todo),
            // Blank lines between items and indented text below them are allowed.
            None if goes_on => {}
            None => break,
        }
    }
    let is_whole = (1..=MOST).contains(&todos.len());
    todos.reverse();
    let is_open = |todo: &Todo| todo.status != TodoStatus::Completed;
    Some(todos).filter(|todos| is_whole && todos.iter().any(is_open))
}

/// Matches a line like `- [x] Run the tests` or `1. [ ] **Build**`.
static ITEM: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\s*(?:[0-9]+[.)]|[-*+]) \s*\[(?: ?|(?<done>[xX]))\] (?<text>.*)$"));

fn item(line: &str) -> Option<Todo> {
    let found = ITEM.captures(line)?;
    let done = found.name("done").map(|_| TodoStatus::Completed);
    let status = done.unwrap_or(TodoStatus::Pending);
    let content = found["text"].replace("**", "").trim().to_owned();
    (!content.is_empty()).then_some(Todo {
        content,
        status,
        active_form: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_ends_in_a_checklist_is_a_todo_list() {
        for (reply, expected) in [
            (
                "Plan:\n\n- [ ] Read it\n- [x] Know it\n",
                Some("Read it|x Know it"),
            ),
            (
                "* [ ] a\n\n  + [ ] b\n\n1. [ ] c\n12) [ ] d\n\n",
                Some("a|b|c|d"),
            ),
            (
                "- [ ] **Build** it\n      with care\n- [ ] b",
                Some("Build it|b"),
            ),
            ("- [ ] early\n\nNow the plan:\n- [ ] a", Some("a")),
            ("- a\n- [ ] b", Some("b")),
            ("- [ ] a\n\nShall I?", None),
            ("```\n- [ ] a\n```", None),
            ("- [x] a", None),
            ("- [ ]\n- [ ] ", None),
            ("- [a](b) c", None),
            ("-[ ] a", None),
            ("", None),
        ] {
            let told = checklist(reply).map(|todos| {
                let todos = todos.iter().map(|todo| match todo.status {
                    TodoStatus::Completed => format!("x {}", todo.content),
                    _ => todo.content.clone(),
                });
                todos.collect::<Vec<_>>().join("|")
            });
            assert_eq!(told.as_deref(), expected, "{reply:?}");
        }
    }
}
