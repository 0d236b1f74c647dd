//! A request from the plan to its summary.

use serde_json::json;

use crate::support::plan::{
    PlanProject, calls, conversation, last_told, queries, response, summary, tasks, write,
};

#[test]
fn a_request_is_planned_worked_off_and_summed_up() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[
            ("Read the code", "read_file"),
            ("Write it anew", "write_file"),
        ]),
        calls(&[("read_file", json!({"file_path": "src/main.rs"}))]),
        response("It is read."),
        write("src/main.rs", "fn main() { loop {} }\n"),
        response("It is written."),
        summary("It works"),
    ]);
    let run = plan.work("Let it loop").exits(0);
    assert_eq!(plan.project.read("src/main.rs"), "fn main() { loop {} }\n");
    assert_eq!(queries(&server), 6);
    assert_eq!(
        conversation(&server, 0),
        [("user".to_owned(), "Let it loop".to_owned())]
    );
    assert!(last_told(&server, 2).ends_with("\n\nCurrent task: Read the code"));
    assert_eq!(run.result()["plan"]["steps"][1]["status"], "done");
    assert!(
        run.stdout
            .contains("Result: ✓ It works\nTools: read_file, write_file\n")
    );
    let document = plan.document();
    assert!(document.contains("\n1. [x] Read the code\n"), "{document}");
}
