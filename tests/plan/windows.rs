//! The parts left out when a prompt is too long for the model, in order.

use serde_json::json;

use crate::support::plan::{
    PlanProject, calls, conversation, queries, query, response, summary, system, tasks,
};

/// The same with a prompt window of this many tokens, and another model with a larger one.
fn with_window(plan: PlanProject, prompt: u64) -> PlanProject {
    plan.with_window(
        prompt,
        "wide",
        &json!({"provider": "ollama", "numCtx": 8192}),
    )
}

/// Text of about this many tokens.
fn words(tokens: usize) -> String {
    "word ".repeat(tokens)
}

/// Calls of a step that reads a file repeatedly.
fn reading(times: usize) -> Vec<String> {
    let read = calls(&[("read_file", json!({"file_path": "long.txt"}))]);
    let mut replies = vec![tasks(&[("Read", "read_file")])];
    replies.extend(vec![read; times]);
    replies.extend([response("It is read."), summary("Read")]);
    replies
}

fn users(sent: &[(String, String)]) -> usize {
    sent.iter().filter(|(role, _)| role == "user").count()
}

#[test]
fn three_messages_are_sent_where_five_do_not_fit() {
    let (plan, server) = PlanProject::scripted(&reading(6));
    let plan = with_window(plan.with_file("long.txt", &words(1500)), 8000);
    plan.work("Read").exits(0);
    let counts: Vec<usize> = (1..=7)
        .map(|nth| users(&conversation(&server, nth)))
        .collect();
    assert_eq!(counts, [1, 2, 3, 4, 3, 3, 3]);
    let last = conversation(&server, 7);
    assert!(
        last.iter()
            .filter(|(role, _)| role == "user")
            .all(|(_, text)| text.len() > 7000)
    );
}

#[test]
fn the_last_ten_log_entries_are_sent_where_all_do_not_fit() {
    let (plan, server) = PlanProject::scripted(&reading(1));
    let plan = with_window(plan.with_file("long.txt", "short\n"), 8000);
    plan.run(&["-p", "Read", "--plan-only"]).exits(0);
    let entries: String = (1..=40)
        .map(|nth| {
            let details = words(200);
            format!("\n### 2026-01-01 10:00 - Entry {nth}.\n**Actions:** {details}\n**Result:** ✓ Done\n")
        })
        .collect();
    let path = plan.sessions().pop().unwrap().join("plan_doc.md");
    let document = plan.document() + &entries;
    std::fs::write(path, document).unwrap();
    plan.run(&["--resume", "-p", ""]).exits(0);
    let shown = system(&server, 1).pop().unwrap();
    for (nth, is_there) in [(1, false), (30, false), (31, true), (40, true)] {
        assert_eq!(
            shown.contains(&format!("- Entry {nth}.\n")),
            is_there,
            "{nth}: {shown}"
        );
    }
    assert!(
        shown.contains("## Goal\nRead\n") && shown.contains("1. [~] Read\n"),
        "{shown}"
    );
    // Only the request is shortened.
    let document = plan.document();
    assert_eq!(document.matches("- Entry ").count(), 40);
    assert!(document.ends_with("**Result:** ✓ Read\n"), "{document}");
}

#[test]
fn the_middle_of_a_result_is_left_out_where_all_of_it_does_not_fit() {
    let (plan, server) = PlanProject::scripted(&reading(1));
    let long = format!("BEGINS\n{}\nENDS\n", "line of words\n".repeat(1000));
    let plan = with_window(plan.with_file("long.txt", &long), 6000);
    plan.work("Read").exits(0);
    let told = conversation(&server, 2).pop().unwrap().1;
    assert!(told.contains("BEGINS") && told.contains("ENDS"), "{told}");
    assert!(told.len() < 9 << 10, "{}", told.len());
    assert!(told.ends_with("Current task: Read"), "{told}");
    assert!(
        plan.kept("session.json").len() > long.len(),
        "what was said is kept"
    );
}

#[test]
fn oversized_request_is_reported_with_the_window_and_a_larger_model() {
    // Nothing was sent.
    let (plan, server) = PlanProject::scripted(&["no"]);
    let plan = with_window(plan, 1200);
    let run = plan.work("Read").exits(3);
    assert_eq!(queries(&server), 0);
    let run = run.says(&[
        "and the model takes 1,200: its window has 2,200, and 1,000 are for the answer",
        "`--model wide` asks one with a larger window",
    ]);
    assert_eq!(run.result()["exit"]["name"], "not-ready");
    // The plan was sent, but the steps cannot be.
    let (plan, server) = PlanProject::scripted(&[tasks(&[("Think", "analyze")])]);
    let plan = with_window(plan, 2200);
    let run = plan.work("Read");
    assert_eq!(queries(&server), 1, "{}", run.stderr);
    let run = run
        .exits(4)
        .says(&["and the model takes 2,200", "`--model wide`"]);
    assert_eq!(run.result()["exit"]["name"], "model-failed");
}

#[test]
fn the_window_is_one_for_a_model_whatever_is_sent() {
    let (plan, server) = PlanProject::scripted(&reading(3));
    let plan = with_window(plan.with_file("long.txt", &words(1500)), 8000);
    plan.work("Read").exits(0);
    for nth in 0..queries(&server) {
        let options = &query(&server, nth)["options"];
        assert_eq!(options["num_ctx"], 9000);
        assert_eq!(options["num_predict"], 1000);
    }
}
