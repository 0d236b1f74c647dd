//! Pantheon servers of every kind: their layouts, their names for things, and their ways of disconnecting.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::Answer;
use crate::support::orchestra::{
    Branch, OrchestraProject, START, WORKSPACE, branch, calls, execute, report,
};

/// Returns the result of the last call in the nth request to the model.
fn told(orchestra: &OrchestraProject, nth: usize) -> Value {
    let last = orchestra.sent(nth).pop().unwrap();
    serde_json::from_str(last["content"].as_str().unwrap()).unwrap()
}

/// A reply that reads a file.
fn read(path: &str) -> Answer {
    calls(&[("read_artifact", json!({"path": path}))])
}

#[test]
fn ids_outputs_and_status_words_are_found_where_servers_put_them() {
    let ids: [fn(&str) -> Value; 5] = [
        |id| json!({"branch_id": id, "id": "another"}),
        |id| json!({ "id": id }),
        |id| json!({"branch": {"id": id}}),
        |id| json!({"branches": [{"id": id}, {"id": "another"}]}),
        |id| json!({"result": {"branches": [{"branch_id": id}]}}),
    ];
    let states = [
        json!({"status": "succeed", "output": "said"}),
        json!({"status": "finished", "latest_snap": {"output": "said"}}),
        json!({"status": "ready_for_manifest", "output": null, "manifest": {"summary": "said"}}),
        json!({"status": "manifesting", "output": "", "latest_snap": {"output": "said"}}),
        json!({"branch": {"status": "succeed", "output": "said"}}),
    ];
    for (tell, state) in ids.into_iter().zip(states) {
        // The fields about its parent, and unknown ones, have no effect yet.
        let parents = json!({"status": "succeed", "latest_snap_id": "s0", "parent_id": "s0", "output": "old"});
        let queued = json!({"status": "queued"});
        let first = Branch::of(&[parents, queued, state.clone()]).announced(tell);
        let replies = [execute("claude_code", "Do it.")];
        let orchestra = OrchestraProject::clean_after(replies, [first]);
        orchestra.run(&[]).exits(0);
        let data = &told(&orchestra, 1)["data"];
        assert_eq!(
            (&data["branch_id"], &data["response"]),
            (&json!(branch(1)), &json!("said")),
            "{state}"
        );
        let asked = orchestra.pantheon.called("get_branch").into_iter();
        let asked = asked.filter(|asked| asked["branch_id"] == branch(1));
        // The branch is queried once more before it is cloned.
        assert_eq!(asked.count(), 4, "{state}");
    }
}

#[test]
fn results_are_one_whatever_their_form() {
    let forms: [fn(Value) -> Value; 5] = [
        |told| json!({"content": [], "structuredContent": told}),
        |told| json!({"content": [{"type": "text", "text": "see there"}], "structuredContent": {"result": told}}),
        |told| json!({"content": [{"type": "text", "text": json!({"result": told}).to_string()}]}),
        |told| json!({"content": [{"type": "text", "text": format!("{told:#}\n")}], "isError": false}),
        |told| told,
    ];
    for form in forms {
        let orchestra = OrchestraProject::clean();
        orchestra.pantheon.makes_results(form);
        let run = orchestra.run(&[]).exits(0);
        assert_eq!(report(&run)["publish_pantheon_branch_id"], branch(3));
    }
}

#[test]
fn a_branch_that_fails_is_reported_with_its_end_and_the_lineage_stays() {
    let output = format!("{}no space left", "line\n".repeat(10_000));
    let orchestra = OrchestraProject::clean_after(
        [
            execute("codex", "x"),
            execute("claude_code", "y"),
            execute("codex", "z"),
        ],
        [
            Branch::done("x"),
            Branch::failed(&output),
            Branch::done("z"),
        ],
    );
    let run = orchestra.run(&[]).exits(0);
    let error = &told(&orchestra, 2)["error"];
    assert_eq!(error["code"], "branch_failed");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(&branch(2)) && message.ends_with("no space left"));
    assert!(message.len() < 6000);
    let explored = orchestra.pantheon.called("parallel_explore");
    assert_eq!(explored[2]["parent_branch_id"], branch(1));
    assert_eq!(report(&run)["branches"][1]["status"], "failed");
}

#[test]
fn files_are_read_by_any_path_but_of_this_work_alone() {
    let long = "x".repeat(100_000);
    let files = Branch::done("x")
        .with_file("notes.txt", "in the workspace")
        .with_file("long.txt", &long);
    let absolute = format!("{WORKSPACE}/notes.txt");
    let foreign = json!({"path": "notes.txt", "branch_id": branch(7)});
    let replies = [
        execute("claude_code", "x"),
        read("notes.txt"),
        read(&absolute),
        read("../../etc/passwd"),
        calls(&[("read_artifact", foreign)]),
        calls(&[("read_artifact", json!({"path": "x", "branch_id": START}))]),
        read("long.txt"),
    ];
    let orchestra = OrchestraProject::clean_after(replies, [files]);
    orchestra.run(&[]).exits(0);
    for nth in [2, 3] {
        let data = &told(&orchestra, nth)["data"];
        assert_eq!(data["content"], "in the workspace");
        assert_eq!(data["path"], absolute);
    }
    assert_eq!(told(&orchestra, 4)["error"]["code"], "mcp_error");
    assert_eq!(told(&orchestra, 5)["error"]["code"], "unknown_branch");
    let shown = told(&orchestra, 7)["data"]["content"].to_string();
    assert!((8_000..16_000).contains(&shown.len()), "{}", shown.len());
    let asked = orchestra.pantheon.called("branch_read_file");
    assert_eq!(
        asked[2]["file_path"],
        format!("{WORKSPACE}/../../etc/passwd")
    );
    // A branch of another task is not queried.
    assert_eq!(asked[3]["branch_id"], START);
}

#[test]
fn large_outputs_are_bounded() {
    let output = "An agent says very much.\n".repeat(600_000);
    let orchestra = OrchestraProject::clean_after(
        [execute("claude_code", "x")],
        [Branch::done(&output).with_file("large", &output)],
    );
    orchestra.run(&[]).exits(0);
    let shown = told(&orchestra, 1)["data"]["response"].to_string();
    assert!((8_000..16_000).contains(&shown.len()), "{}", shown.len());
    // An answer that is too large does not end the work.
    let orchestra =
        OrchestraProject::clean_after([execute("claude_code", "x")], [Branch::done("x")]);
    orchestra
        .pantheon
        .answers("get_branch", 2, Answer::json(&json!(output.repeat(2))));
    let run = orchestra.run(&[]);
    assert!([0, 1, 4].contains(&run.code), "{}", run.stderr);
}

#[test]
fn a_server_that_lacks_a_tool_is_not_ready() {
    let orchestra = OrchestraProject::clean();
    orchestra.pantheon.has_tools(&["get_branch", "other"]);
    let run = orchestra.run(&[]).exits(3).says(&[
        "`parallel_explore`, `branch_read_file`",
        "get_branch, other",
    ]);
    assert!(run.folder.is_empty() && run.stdout.is_empty());
    assert!(orchestra.azure.requests().is_empty());
}

#[test]
fn a_dead_server_costs_nothing() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let orchestra =
        OrchestraProject::clean().with_variable("MCP_BASE_URL", &format!("http://{free}/mcp"));
    // The time limit spares the test the waits between retries.
    let run = orchestra.run(&["--timeout", "1s"]).exits(4);
    let run = run.says(&["no answer from the MCP server", "hint: "]);
    assert!(run.stdout.is_empty(), "{}", run.stdout);
    assert!(orchestra.azure.requests().is_empty());
}

/// The answer of a failing server, with a long wait before the next retry.
fn unwell() -> Answer {
    Answer::new(500, &[("retry-after-ms", "1")], "<html>out of order</html>")
}

#[test]
fn a_server_that_dies_while_a_branch_is_looked_at_ends_the_work() {
    let orchestra = OrchestraProject::clean();
    for nth in 2..=6 {
        orchestra.pantheon.answers("get_branch", nth, unwell());
    }
    let run = orchestra.run(&[]).exits(4).says(&["out of order"]);
    assert_eq!(run.result()["exit"]["name"], "mcp-failed");
    assert_eq!(run.stderr.matches("; try ").count(), 4, "{}", run.stderr);
    // The cloned branch is queried first.
    let asked = orchestra.pantheon.called("get_branch");
    let asked: Vec<&Value> = asked.iter().map(|asked| &asked["branch_id"]).collect();
    let new = branch(1);
    assert_eq!(asked, [START, &new, &new, &new, &new, &new]);
    let told = report(&run);
    assert_eq!(told["status"], "failed");
    let instructions = told["instructions"].as_str().unwrap();
    assert!(instructions.contains(&branch(1)), "{instructions}");
    assert_eq!(orchestra.pantheon.called("parallel_explore").len(), 1);
}

#[test]
fn a_server_that_comes_back_is_resumed() {
    let orchestra = OrchestraProject::clean_after(
        [execute("claude_code", "x"), read("notes.txt")],
        [Branch::done("x").with_file("notes.txt", "y")],
    );
    for tool in ["get_branch", "branch_read_file"] {
        orchestra.pantheon.answers(tool, 1, unwell());
        orchestra.pantheon.answers(tool, 2, unwell());
    }
    let busy = Answer::new(503, &[("retry-after-ms", "1")], "");
    orchestra.pantheon.answers("parallel_explore", 1, busy);
    let run = orchestra.run(&[]).exits(0);
    assert_eq!(run.stderr.matches("; try ").count(), 5, "{}", run.stderr);
    assert_eq!(orchestra.pantheon.called("parallel_explore").len(), 5);
}

#[test]
fn an_agent_that_may_have_begun_is_not_started_again() {
    for answer in [Answer::close(), unwell(), Answer::new(200, &[], "{\"jsonr")] {
        let orchestra = OrchestraProject::clean_after([execute("claude_code", "x")], []);
        orchestra.pantheon.answers("parallel_explore", 1, answer);
        orchestra.run(&[]).exits(0);
        let told = told(&orchestra, 1);
        assert_eq!(told["status"], "error");
        assert_eq!(told["error"]["code"], "mcp_error");
        let message = told.to_string();
        assert!(message.contains("the call may have begun"), "{message}");
        assert_eq!(orchestra.pantheon.called("parallel_explore").len(), 4);
    }
}

#[test]
fn refusal_by_a_tool_is_reported_to_the_model() {
    let error = |id: &Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "no such project"}});
    let refused = Answer::To(Box::new(move |request| {
        Answer::json(&error(&request.json()["id"]))
    }));
    let orchestra = OrchestraProject::clean_after(
        (0..3)
            .map(|_| execute("claude_code", "x"))
            .collect::<Vec<_>>(),
        [],
    );
    let failed = json!({"isError": true, "content": [{"type": "text", "text": "no room"}]});
    orchestra.pantheon.results("parallel_explore", 1, failed);
    orchestra.pantheon.answers("parallel_explore", 2, refused);
    let none = json!({"content": [{"type": "text", "text": "queued for later"}]});
    orchestra.pantheon.results("parallel_explore", 3, none);
    orchestra.run(&[]).exits(0);
    for (nth, words) in [
        (1, "no room"),
        (2, "no such project"),
        (3, "queued for later"),
    ] {
        let error = &told(&orchestra, nth)["error"];
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(words), "{error}");
    }
}
