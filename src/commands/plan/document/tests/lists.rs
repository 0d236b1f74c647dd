//! Tests of reading and changing criteria and tasks, written by hand or by the program.

use super::*;
use crate::commands::plan::types::{Criterion, PlanTask, PlanTaskStatus};

/// Formats the criteria of a list as `x description|notes`.
fn criteria(list: &str) -> Vec<String> {
    let found = plan(&format!("## Acceptance Criteria\n{list}\n")).acceptance_criteria;
    let shown = found.iter().map(|criterion| {
        let mark = if criterion.completed { 'x' } else { '-' };
        let notes = if criterion.notes.is_empty() { "" } else { "|" };
        format!("{mark} {}{notes}{}", criterion.description, criterion.notes)
    });
    shown.collect()
}

/// Formats the tasks of a list as `step status description|tool`.
fn tasks(list: &str) -> Vec<String> {
    let found = plan(&format!("## Tasks\n{list}\n")).tasks;
    let shown = found.iter().map(|task| {
        let (step, mark) = (task.step, task.status.mark());
        format!("{step} [{mark}] {}|{}", task.description, task.tool)
    });
    shown.collect()
}

#[test]
fn tasks_stand_before_the_log_and_only_where_there_are_any() {
    let mut document = PlanDocument::empty(7);
    let mut first = task("Read README.md to understand current state");
    first.tool = "read_file".to_owned();
    first.params = serde_json::from_str(r#"{"file_path": "README.md"}"#).unwrap();
    first.status = PlanTaskStatus::Done;
    set_tasks(
        &mut document,
        &[first.clone(), task("Compare it with the plan")],
    );
    document.edit(|plan| plan.tasks[1].status = PlanTaskStatus::Active);
    let list = "## Tasks\n1. [x] Read README.md to understand current state\n   **Tool:** read_file \
                {\"file_path\":\"README.md\"}\n2. [~] Compare it with the plan\n   **Tool:** analyze\n\n";
    assert_eq!(
        document.text(),
        EMPTY.replace("## Execution Log", &format!("{list}## Execution Log"))
    );
    let read = document.plan().tasks;
    assert_eq!(read[0], PlanTask { step: 1, ..first });
    assert_eq!(
        (read[1].tool.as_str(), read[1].status),
        ("analyze", PlanTaskStatus::Active)
    );

    set_tasks(&mut document, &[task("Something else")]);
    assert_eq!(document.plan().tasks.len(), 1);
}

#[test]
fn criteria_are_read_however_they_are_written() {
    for (list, expected) in [
        (
            "- [x] a\n- [X] b\n- [✓] c\n- [✔\u{fe0f}] d\n- [ x ] e",
            &["x a", "x b", "x c", "x d", "x e"][..],
        ),
        (
            "- [ ] a\n- [] b\n- [?] c\n- [-] d\n-[ ] e",
            &["- a", "- b", "- c", "- d", "- e"],
        ),
        (
            "- no box\n* [x] star\n+ plus\n1. [x] number",
            &["- no box", "x star", "- plus", "x number"],
        ),
        (
            "- [link](https://a.test) works\n- [a](b)\n- [a]: b",
            &["- [link](https://a.test) works", "- [a](b)", "- [a]: b"],
        ),
        (
            "- [ ] API\n  - [x] login\n\t- logout",
            &["- API", "x login", "- logout"],
        ),
        ("- [ ] wrapped\n      text", &["- wrapped\ntext"]),
        ("- [ ] a\nprose\n-b\n---\n\n  far", &["- a"]),
        ("- [ ] 2 * 3 *is* **six**", &["- 2 * 3 *is* **six**"]),
        ("- [ ] login *(needs JWT)*", &["- login|needs JWT"]),
        ("- [ ] f*(x) *(a (b) c)*  ", &["- f*(x)|a (b) c"]),
        (
            "- [ ] wrapped\n  *(check: make test)*",
            &["- wrapped|check: make test"],
        ),
        ("- [ ] not \\*(notes)*", &["- not *(notes)*"]),
        ("- [ ] *(alone)*\n- [ ]\n- \n-", &["- *(alone)*"]),
        ("- [ ] [Criteria will be added once goal is defined]", &[]),
        (
            "```\n- [x] code\n```\n<!--\n- [x] comment\n-->\n- [ ] a",
            &["- a"],
        ),
    ] {
        assert_eq!(criteria(list), expected, "{list}");
    }
}

#[test]
fn a_note_can_be_a_command_that_checks() {
    for (notes, command) in [
        ("check: cargo test", Some("cargo test")),
        ("check:`grep -c '(a)' b`", Some("grep -c '(a)' b")),
        ("check: `a` `b`", Some("`a` `b`")),
        ("check: ", None),
        ("Check : a: b", Some("a: b")),
        ("to check: a", None),
        ("", None),
    ] {
        let criterion = &plan(&format!("## Acceptance Criteria\n- [ ] a *({notes})*\n"));
        assert_eq!(criterion.acceptance_criteria[0].check(), command, "{notes}");
    }
}

#[test]
fn ticked_item_is_normalized_and_the_rest_unchanged() {
    let text =
        "## Acceptance Criteria\r\n* [ ]  The  API\tworks *(a)*  \n- no box\r\nprose\r\n- [✓] done";
    let mut document = document(text);
    document.edit(|plan| plan.acceptance_criteria[0].completed = true);
    let ticked = "## Acceptance Criteria\r\n- [x] The API works *(a)*\r\n- no box\r\nprose\r\n- [✓] done\r\n";
    assert_eq!(document.text(), ticked);
    document.edit(|plan| plan.acceptance_criteria[2].completed = false);
    assert_eq!(document.text(), ticked.replace("✓", " "));
}

#[test]
fn criteria_are_added_at_the_end() {
    let mut document = document(
        "## Acceptance Criteria\nAll of:\n- [ ] a\n  ```\n\n  code\n  ```\nprose\n\n<!-- end -->\n\n## X",
    );
    let criterion = |description: &str| Criterion {
        description: description.to_owned(),
        completed: true,
        notes: "n".to_owned(),
    };
    document.edit(|plan| plan.acceptance_criteria.push(criterion("b")));
    let text = document.text();
    assert!(
        text.contains("  ```\nprose\n\n<!-- end -->\n- [x] b *(n)*\n\n## X\n"),
        "{text}"
    );
}

#[test]
fn tasks_are_read_however_they_are_written() {
    for (list, expected) in [
        (
            "1. [ ] a\n2. [~] b\n3. [x] c\n4. [!] d\n5. [-] e\n6. [X] f\n7. [✔] g",
            &[
                "1 [ ] a|analyze",
                "2 [~] b|analyze",
                "3 [x] c|analyze",
                "4 [!] d|analyze",
                "5 [-] e|analyze",
                "6 [x] f|analyze",
                "7 [x] g|analyze",
            ][..],
        ),
        (
            "3. a\n- b\n* [?] c\n7) [x] d",
            &[
                "1 [ ] a|analyze",
                "2 [ ] b|analyze",
                "3 [ ] c|analyze",
                "4 [x] d|analyze",
            ],
        ),
        (
            "1. a\n   - more\n     and more\n   **Tool:** `read_file` {broken\n   rest\n\n   - far\n  2. far",
            &["1 [ ] a\n- more\nand more|read_file"],
        ),
        (
            "- a\n  - [ ] nested\n  **Tool**: list_files\n",
            &["1 [ ] a\n- [ ] nested|list_files"],
        ),
        (
            "1. a\n   **Tool:**\n<!--\n2. b\n-->\n3. c",
            &["1 [ ] a|analyze", "2 [ ] c|analyze"],
        ),
        ("prose\n   **Tool:** x", &[]),
    ] {
        assert_eq!(tasks(list), expected, "{list}");
    }
}

#[test]
fn lists_that_can_be_read_in_two_ways_are_refused() {
    let indented = "an indented task: begin the line with its number";
    for (text, expected) in [
        (
            "1. [ ] a\n## Tasks\n2. [ ] b\n",
            "line 5 is a second heading `## Tasks`",
        ),
        (
            "1. [ ] a\n## Acceptance Criteria\n## Mine\n\n## acceptance criteria:\n",
            "line 8 is a second heading `## Acceptance Criteria`",
        ),
        ("  1. [ ] a\n2. [ ] b\n", &format!("line 4 is {indented}")),
        ("  - [x] a\n- [ ] b\n", &format!("line 4 is {indented}")),
        (
            "1. [ ] a\n   more\n  2. [ ] b\n",
            &format!("line 6 is {indented}"),
        ),
    ] {
        let text = format!("---\n---\n## Tasks\n{text}");
        let problem = PlanDocument::parse(text.as_bytes()).unwrap_err();
        assert_eq!(problem.to_string(), expected, "{text}");
    }
}

#[test]
fn new_tasks_take_the_place_of_the_former_ones_also_where_parts_are_missing() {
    let mut document = document(
        "# Plan: a\n## Tasks\nFirst:\n1. [x] b\n   more\n<!-- c -->\n2. d\n\n   - far\n## Mine\n1. e\n",
    );
    set_tasks(&mut document, &[task("f")]);
    let list = "## Tasks\nFirst:\n1. [ ] f\n   **Tool:** analyze\n<!-- c -->\n\n   - far\n";
    assert!(document.text().contains(list), "{}", document.text());
    assert!(document.text().ends_with("## Mine\n1. e\n"));
}

#[test]
fn nothing_is_put_into_a_comment_or_a_code_block() {
    for block in ["<!--\n\n# Plan:\n-->", "```\n\n## Tasks\n```"] {
        let mut document = document(&format!("## Tasks\n1. a\n{block}\n2. b\n"));
        set_tasks(&mut document, &[task("c")]);
        assert_eq!(document.plan().tasks.len(), 1, "{}", document.text());
        assert!(document.text().contains(&format!(
            "## Tasks\n1. [ ] c\n   **Tool:** analyze\n{block}\n"
        )));
    }
}

#[test]
fn tasks_that_were_changed_by_hand_are_numbered_again_when_one_changes() {
    let list =
        "9. [x] done\r\n   **Tool:** analyze\r\n- new\r\n<!-- 8. [ ] no -->\r\n3. as it is\r\n";
    let mut document = document(&format!("{EMPTY}## Tasks\n{list}"));
    document.edit(|plan| plan.tasks[1].status = PlanTaskStatus::Done);
    let numbered = "1. [x] done\r\n   **Tool:** analyze\r\n2. [x] new\n   **Tool:** analyze\n<!-- 8. [ ] no -->\r\n3. as it is\r\n";
    assert!(
        document.text().ends_with(&format!("## Tasks\n{numbered}")),
        "{}",
        document.text()
    );
}
