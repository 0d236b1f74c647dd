//! `update_todos`: the todo list that the agent maintains and the user sees.
//!
//! Changes only that list. Guarantees that at most one todo is in progress, that none is blank, and that the list is
//! limited in size.

use serde::Deserialize;

use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::record::todos::{Todo, TodoStatus};
use crate::record::tool::Verb;
use crate::sys::numbers::counted;
use crate::sys::text::one_line;

/// Maximum length of a todo, in characters, since it is shown next to the conversation.
const LONGEST: usize = 300;

/// The schema of a todo list.
const TODOS: &str = r#"{"type": "array", "maxItems": 100, "items": {
    "type": "object", "required": ["content", "status"], "additionalProperties": false, "properties": {
        "content": {"type": "string", "description": "What is to be done, as one would be told to: Run the tests"},
        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
        "activeForm": {"type": "string", "description": "The same while it is being done: Running the tests"}}}}"#;

/// The description of `update_todos`.
pub static UPDATE_TODOS: ToolSpec = ToolSpec::new(
    "update_todos",
    "Replaces the list of what is to be done, which the user sees, by this one. Use it for work of three steps and more. \
     One todo is in progress at a time; mark it completed as soon as it is.",
    &[Parameter::new(
        "todos",
        ParameterKind::Json(TODOS),
        "The whole list, in its order, with what is completed; an empty one clears it",
    )],
    Effect::Notes,
)
.doing(Verb::Note);

/// Replaces the todo list; this function stores it and shows it.
pub struct UpdateTodos<'a>(pub &'a dyn Fn(Vec<Todo>));

impl Tool for UpdateTodos<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        #[derive(Deserialize)]
        struct Given {
            todos: Vec<Todo>,
        }
        let given: Result<Given, _> = serde_json::from_value(arguments.to_value());
        let Given { todos } = given.map_err(|error| error.to_string())?;
        let todos = checked(todos)?;
        let count = |status| todos.iter().filter(|todo| todo.status == status).count() as u64;
        let brief = format!(
            "{} of {} done",
            count(TodoStatus::Completed),
            counted(todos.len() as u64, "todo")
        );
        let text = match todos.iter().find(|todo| is_current(todo)) {
            Some(todo) => format!("{brief}; in progress: {}", todo.content),
            None => brief.clone(),
        };
        (self.0)(todos);
        Ok(ToolOutput::text(text).in_brief(brief))
    }
}

fn is_current(todo: &Todo) -> bool {
    todo.status == TodoStatus::InProgress
}

/// Validates a list of todos.
fn checked(todos: Vec<Todo>) -> Result<Vec<Todo>, String> {
    if todos.iter().filter(|todo| is_current(todo)).count() > 1 {
        return Err(
            "Complete current task first: one todo may be in progress, and the list has several"
                .to_owned(),
        );
    }
    let line = |text: &str| one_line(text, LONGEST);
    let checked = todos.into_iter().zip(0..).map(|(todo, at)| {
        let content = line(&todo.content);
        if content.is_empty() {
            return Err(format!("`todos[{at}].content` is blank; say what to do"));
        }
        let active_form = todo.active_form.as_deref().map(line);
        Ok(Todo {
            content,
            status: todo.status,
            active_form: active_form.filter(|form| !form.is_empty()),
        })
    });
    checked.collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::{Value, json};

    use super::*;
    use crate::agent::tools::write::tests::told;

    /// Returns the message for the model, and the list that was kept, if any.
    fn update(todos: &Value) -> (Result<String, String>, Option<Vec<Todo>>) {
        let kept = RefCell::new(None);
        let keep = |todos| {
            kept.replace(Some(todos));
        };
        let tool = UpdateTodos(&keep);
        let told = UPDATE_TODOS
            .check(&json!({"todos": todos}))
            .and_then(|arguments| told(tool.run(&arguments)));
        (told, kept.take())
    }

    #[test]
    fn a_list_takes_the_place_of_the_one_before() {
        let (told, kept) = update(&json!([
            {"content": "Read\n the code", "status": "completed"},
            {"content": "Run the tests", "status": "in_progress", "activeForm": "Running the tests"},
            {"content": "Tell \u{202e}the user", "status": "pending", "activeForm": " "},
        ]));
        assert_eq!(
            told.unwrap(),
            "1 of 3 todos done; in progress: Run the tests"
        );
        let shown: Vec<String> = kept
            .unwrap()
            .iter()
            .map(|todo| todo.shown().to_owned())
            .collect();
        assert_eq!(
            shown,
            [
                "Read the code",
                "Running the tests",
                "Tell \u{fffd}the user"
            ]
        );
        let (told, kept) = update(&json!([]));
        assert_eq!(
            (told.unwrap().as_str(), kept),
            ("0 of 0 todos done", Some(vec![]))
        );
    }

    #[test]
    fn invalid_list_is_refused_and_changes_nothing() {
        let one = json!({"content": "a", "status": "in_progress"});
        for (todos, said) in [
            (json!([one, one]), "Complete current task first"),
            (
                json!([{"content": " \n", "status": "pending"}]),
                "`todos[0].content` is blank",
            ),
            (
                json!([one, {"content": "b", "status": "done"}]),
                "`todos[1].status` is `done`, and must be one of",
            ),
            (json!([{"status": "pending"}]), "`todos[0]` needs `content`"),
            (
                json!([{"content": 1, "status": "pending"}]),
                "`todos[0].content` must be a JSON string",
            ),
            (
                json!(vec![one.clone(); 101]),
                "`todos` has 101 entries, and at most 100 are taken",
            ),
            (json!("[]"), "`todos` of update_todos must be a JSON array"),
        ] {
            let (told, kept) = update(&todos);
            let problem = told.unwrap_err();
            assert!(problem.contains(said), "{problem}");
            assert_eq!(kept, None, "{said}");
        }
    }
}
