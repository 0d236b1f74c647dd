//! Converts the checklist at the end of a plan to a todo list. Pure.

use crate::record::todos::{Todo, TodoStatus};

/// Maximum number of steps in a plan.
const MOST: usize = 100;

/// Returns the todo list of a reply that ends in a Markdown checklist: lines like `- [ ] Run the tests`, nested or not,
/// with no text after them. `None` if there is no such list, or everything on it is done.
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

/// Parses a line like `- [x] Run the tests` or `1. [ ] **Build**`.
fn item(line: &str) -> Option<Todo> {
    let line = line.trim();
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let behind = if digits.len() < line.len() {
        digits.strip_prefix(['.', ')'])
    } else {
        line.strip_prefix(['-', '*', '+'])
    };
    let boxed = behind?.strip_prefix(' ')?.trim_start().strip_prefix('[')?;
    let (mark, text) = boxed.split_once(']')?;
    let status = match mark {
        " " | "" => TodoStatus::Pending,
        "x" | "X" => TodoStatus::Completed,
        _ => return None,
    };
    let content = text.strip_prefix(' ')?.replace("**", "").trim().to_owned();
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
