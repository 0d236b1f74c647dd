//! Tests of parsing the replies of stages without tools.

use proptest::prelude::*;

use super::*;
use crate::agent::protocol::{Decision, Protocol};
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::model::Reply;

static WRITE_FILE: ToolSpec = ToolSpec::new(
    "write_file",
    "Write a file",
    &[
        Parameter::path("file_path", "The file"),
        Parameter::block("content", "Its content"),
    ],
    Effect::Writes,
);

struct Write;

impl Tool for Write {
    fn run(&self, _arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(""))
    }
}

fn tools() -> Toolbox<'static> {
    Toolbox::default().with(&WRITE_FILE, Write)
}

/// Returns the first JSON object in a text.
fn object_in(text: &str) -> Value {
    let start = text.find('{').unwrap();
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter();
    values.next().unwrap().unwrap()
}

fn task(description: &str) -> Value {
    json!({"step": 1, "description": description, "tool": "analyze", "params": {}})
}

#[test]
fn examples_shown_to_the_model_parse() {
    let example = TaskList::protocol(&tools()).examples;
    let list = TaskList::read(&object_in(example)).unwrap();
    let told: Vec<(&str, usize)> = list
        .task_list
        .iter()
        .map(|task| (&*task.tool, task.params.len()))
        .collect();
    let expected = [
        ("read_file", 1),
        (ANALYZE, 0),
        (ANALYZE, 0),
        ("write_file", 1),
        ("show_diff", 0),
    ];
    assert_eq!(told, expected);

    let shown = object_in(WorkSummary::protocol().examples);
    let summary = WorkSummary::read(&shown).unwrap();
    assert_eq!(
        summary.log_entry.action,
        "Updated README.md with recent changes"
    );
    assert_eq!(
        summary.log_entry.tools_used,
        ["read_file", "write_file", "show_diff"]
    );
    let met = Criterion {
        description: "Document authentication flow".to_owned(),
        completed: true,
        notes: String::new(),
    };
    assert_eq!(summary.acceptance_criteria_updates, [met]);
    assert!(jsonschema::is_valid(&WorkSummary::schema(), &shown));
}

#[test]
fn an_invalid_task_list_is_reported_with_its_position() {
    let list = |tasks: Vec<Value>| json!({"task_list": tasks});
    let mut without = task("a");
    without.as_object_mut().unwrap().remove("tool");
    for (reply, expected) in [
        (json!({}), "the reply needs `task_list`"),
        (
            json!({"tasks": []}),
            "the reply takes no `tasks`: did you mean `task_list`?",
        ),
        (
            json!({"task_list": "a"}),
            "`task_list` must be a JSON array",
        ),
        (list(vec![]), "`task_list` is empty"),
        (
            list(vec![task("a"); 1000]),
            "`task_list` has 1000 entries, and at most 100 are taken",
        ),
        (
            list(vec![task("a"), without]),
            "`task_list[1]` needs `tool`",
        ),
        (
            list(vec![task(" \n")]),
            "a text in the reply is blank, where it is to say something",
        ),
        (
            json!({"task_list": [task("a")], "acceptance_criteria": [1]}),
            "`acceptance_criteria[0]` must be a JSON string",
        ),
    ] {
        assert_eq!(TaskList::read(&reply).unwrap_err(), expected);
    }
}

#[test]
fn plan_entries_are_short_single_lines() {
    let mut long = task(&format!(
        " Read\r\n\t**it** `now`\u{2028}, \u{5d0} \u{1b}[2J {}",
        "x".repeat(1 << 20)
    ));
    long["params"] = json!({"file_path": "a", "content": "x".repeat(1000)});
    let reply = json!({"task_list": [long], "acceptance_criteria": ["a\nb", " "]});
    let list = TaskList::read(&reply).unwrap();
    let planned = &list.task_list[0];
    assert!(
        planned
            .description
            .starts_with("Read **it** `now` , \u{5d0} \u{fffd}[2J xxx")
    );
    assert_eq!(planned.description.chars().count(), 1001);
    assert_eq!(
        Value::Object(planned.params.clone()),
        json!({"file_path": "a"})
    );
    assert_eq!(list.acceptance_criteria, ["a b"]);
}

#[test]
fn the_schema_of_a_task_list_has_an_end_everywhere() {
    let schema = TaskList::protocol(&tools()).schema;
    let list = |params: Value| json!({"task_list": [{"step": 1, "description": "a", "tool": "write_file", "params": params}]});
    for (reply, is_allowed) in [
        (list(json!({"file_path": "a"})), true),
        (list(json!({})), true),
        (list(json!({"file_path": "x".repeat(501)})), false),
        (list(json!({"content": "a"})), false),
        (
            json!({"task_list": vec![task("a"); 20], "acceptance_criteria": ["b"]}),
            true,
        ),
        (json!({"task_list": vec![task("a"); 21]}), false),
        (json!({"task_list": []}), false),
        (json!({"task_list": [task(&"x".repeat(301))]}), false),
    ] {
        assert_eq!(jsonschema::is_valid(&schema, &reply), is_allowed, "{reply}");
        // Every reply that the enforced schema allows can be parsed.
        assert!(!is_allowed || TaskList::read(&reply).is_ok(), "{reply}");
    }
}

#[test]
fn such_a_reply_is_its_compact_object_and_a_fault_shows_what_is_right() {
    let form = TaskList::protocol(&tools());
    let read = |text: String| form.read(&Reply::of_text(text), &Toolbox::default());
    let list = json!({"task_list": [task("a")]});
    let turn = read(format!("<think>x</think>\n```json\n{list:#}\n```\n")).unwrap();
    assert_eq!(turn.decision, Decision::Answer(list.to_string()));
    assert_eq!(turn.remembered, list.to_string());
    for (text, expected) in [
        (
            json!({"response": "no"}).to_string(),
            "the reply takes no `response`.\n❌ WRONG: {\"tasks\"",
        ),
        (format!("{list}{list}"), "a second JSON object"),
        (String::new(), "the reply is empty"),
    ] {
        let told = read(text).unwrap_err().message();
        assert!(told.contains(expected), "{told}");
        assert!(told.contains("\n✅ CORRECT: {\"task_list\""), "{told}");
    }
}

#[test]
fn the_stages_are_reported_the_tools_without_calls_of_them() {
    let told = TaskList::protocol(&tools()).offer(&tools()).instructions;
    assert!(
        told.starts_with("# Response Format\n\nBreak down"),
        "{told}"
    );
    assert!(
        told.contains("\n\n# Tools\n\n### write_file\nWrite a file\n"),
        "{told}"
    );
    assert!(!told.contains("tool_calls"), "{told}");
    let told = WorkSummary::protocol()
        .offer(&Toolbox::default())
        .instructions;
    assert!(!told.contains("# Tools"), "{told}");
}

#[test]
fn the_constant_schemas_are_schemas() {
    for schema in [CRITERIA, CRITERION_UPDATES, DECISIONS] {
        let schema: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(schema["type"], "array");
        assert!(schema["maxItems"].is_u64());
    }
}

proptest! {
    #[test]
    fn any_summary_of_the_form_is_read_as_lines(action in ".*[a-z].*", details in any::<String>(), done in any::<bool>()) {
        let reply = json!({"log_entry": {"action": action, "details": details, "result": "x", "tools_used": [details]},
            "acceptance_criteria_updates": [{"description": action, "completed": done}]});
        let summary = WorkSummary::read(&reply).unwrap();
        let entry = summary.log_entry;
        for line in [&entry.action, &entry.details].into_iter().chain(&entry.tools_used) {
            prop_assert_eq!(line.trim(), line);
            prop_assert!(!line.contains(char::is_control) && line.lines().count() <= 1, "{:?}", line);
        }
        prop_assert_eq!(summary.acceptance_criteria_updates[0].completed, done);
    }
}
