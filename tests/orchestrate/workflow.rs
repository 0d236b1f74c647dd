//! The workflow end to end: implement, review, fix, publish and report.

use serde_json::{Value, json};

use crate::support::orchestra::{
    AZURE_KEY, Branch, GITHUB_TOKEN, OrchestraProject, START, WORKSPACE, branch, calls, execute,
    finished, published, raw_calls, read_log, report, says,
};

/// A project in which one review finds a problem.
fn fixed_once() -> OrchestraProject {
    OrchestraProject::scripted(
        [
            execute("claude_code", "Add the flag."),
            execute("codex", "Review it."),
            read_log(),
            execute("claude_code", "Fix it."),
            execute("codex", "Review it again."),
            read_log(),
            finished("The flag is there."),
        ],
        [
            Branch::done("implemented"),
            Branch::review("ISSUES"),
            Branch::done("fixed"),
            Branch::review("CLEAN"),
            Branch::done(&published()),
        ],
    )
}

#[test]
fn a_task_is_implemented_reviewed_fixed_and_published() {
    let orchestra = fixed_once();
    let run = orchestra.run(&[]).exits(0);
    let told = report(&run);
    assert_eq!(told["task"], "Add a flag.");
    assert_eq!(told["summary"], "The flag is there.");
    assert_eq!(
        (&told["status"], &told["is_finished"]),
        (&json!("completed"), &json!(true))
    );
    assert_eq!(told["start_branch_id"], START);
    assert_eq!(told["latest_branch_id"], branch(5));
    assert_eq!(told["publish_pantheon_branch_id"], branch(5));
    assert_eq!(told["publish_report"], published());
    assert_eq!(told["iterations"], 2);
    assert_eq!(told["log"], format!("logs/{}", run.folder));
    let parents: Vec<&Value> = told["branches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|branch| &branch["parent"])
        .collect();
    assert_eq!(
        parents,
        [START, &branch(1), &branch(2), &branch(3), &branch(4)]
    );
    let explored = orchestra.pantheon.called("parallel_explore");
    assert_eq!(
        explored[0],
        json!({"project_name": "project", "parent_branch_id": START,
        "shared_prompt_sequence": ["Add the flag."], "num_branches": 1, "agent": "claude_code"})
    );
    assert_eq!(explored[4]["agent"], "claude_code");
    assert!(explored[4].to_string().contains(GITHUB_TOKEN));
}

#[test]
fn the_conversation_goes_back_as_it_was_with_a_result_for_each_call() {
    let orchestra = fixed_once();
    orchestra.run(&[]).exits(0);
    let first = orchestra.sent(0);
    assert_eq!(first[0]["role"], "system");
    let task: Value = serde_json::from_str(first[1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(
        task,
        json!({"task": "Add a flag.", "parent_branch_id": START, "project_name": "project",
        "workspace_dir": WORKSPACE})
    );
    let last = orchestra.sent(6);
    let roles: Vec<&str> = last
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles[2..]
            .chunks(2)
            .filter(|pair| *pair == ["assistant", "tool"])
            .count(),
        6,
        "{roles:?}"
    );
    for (at, before) in (0..7).map(|at| (at, orchestra.sent(at))) {
        assert_eq!(last[..before.len()], before, "request {at}");
    }
    let told: Value = serde_json::from_str(last[3]["content"].as_str().unwrap()).unwrap();
    assert_eq!(
        told,
        json!({"status": "success", "data": {"branch_id": branch(1), "status": "succeed",
        "response": "implemented"}})
    );
    assert_eq!(last[3]["tool_call_id"], "call_0");
}

#[test]
fn arguments_go_back_byte_by_byte() {
    let written = [
        "{\"agent\": \"gpt\",  \"prompt\": \"\\u00e4\"}",
        "{\"path\":\"x\",\"size\":1e5,\"path\":\"y\"}",
        "[1, 2]",
        "no JSON",
    ];
    let calls = written.iter().zip(1..);
    let calls = calls.map(|(text, nth)| (format!("call_{nth}"), "execute_agent", text.to_string()));
    let reply = raw_calls("", &calls.collect::<Vec<_>>());
    let orchestra = OrchestraProject::clean_after([reply], []);
    orchestra.run(&[]).exits(0);
    let sent = orchestra.sent(1);
    let sent = sent[2]["tool_calls"].as_array().unwrap().iter();
    let sent: Vec<&str> = sent
        .map(|call| call["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(sent, written);
}

#[test]
fn the_token_is_in_the_publishing_prompt_alone() {
    let orchestra = fixed_once();
    let run = orchestra.run(&[]).exits(0);
    for secret in [GITHUB_TOKEN, AZURE_KEY] {
        assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret));
        for file in run.files() {
            assert!(!run.logged(&file).contains(secret), "{file}");
        }
    }
    for request in orchestra.azure.requests() {
        assert!(!String::from_utf8_lossy(&request.body).contains(GITHUB_TOKEN));
    }
}

#[test]
fn a_report_counts_only_where_the_last_review_is_clean() {
    let issues = [
        execute("claude_code", "Do it."),
        finished("too early"),
        execute("codex", "Review it."),
        finished("still too early"),
        execute("claude_code", "Fix it."),
        execute("codex", "Review it."),
        finished("now"),
    ];
    let branches = [
        Branch::done("x"),
        Branch::done("x").with_file("codex_review.log", "Findings\n- P1: broken\n"),
        Branch::done("x"),
        Branch::review("CLEAN"),
    ];
    let orchestra = OrchestraProject::scripted(issues, branches);
    let run = orchestra.run(&["--no-publish"]).exits(0);
    assert_eq!(report(&run)["summary"], "now");
    for (at, why) in [(2, "have the change reviewed"), (4, "VERDICT: CLEAN")] {
        let sent = orchestra.sent(at);
        let told = sent.last().unwrap()["content"].as_str().unwrap();
        assert!(told.contains(why), "{told}");
    }
}

#[test]
fn replies_without_a_report_are_repeated_and_three_in_a_row_end_the_work() {
    let orchestra =
        OrchestraProject::scripted([says("Shall I begin?"), says("Well?"), says("Hm.")], []);
    let run = orchestra.run(&[]).exits(5);
    let told = report(&run);
    assert_eq!(
        (&told["status"], &told["is_finished"]),
        (&json!("failed"), &json!(false))
    );
    assert!(
        told["instructions"]
            .as_str()
            .unwrap()
            .contains("dev-agent --parent-branch-id")
    );
}

#[test]
fn after_eight_reviews_the_model_may_sign_off_but_start_no_agent() {
    let rounds = || {
        (0..8).flat_map(|_| {
            [
                execute("claude_code", "Do it."),
                execute("codex", "Review it."),
            ]
        })
    };
    let branches = |verdict: &'static str| {
        (0..8).flat_map(move |_| [Branch::done("x"), Branch::review(verdict)])
    };
    let orchestra = OrchestraProject::scripted(
        rounds().chain([execute("claude_code", "Again.")]),
        branches("ISSUES").chain([Branch::done(&published())]),
    );
    let run = orchestra.run(&[]).exits(1);
    let told = report(&run);
    assert_eq!(told["status"], "iteration_limit");
    assert_eq!(run.result()["exit"]["name"], "iteration-limit");
    assert_eq!(told["iterations"], 8);
    assert_eq!(told["publish_report"], published());
    assert_eq!(told["latest_branch_id"], branch(17));
    let orchestra =
        OrchestraProject::scripted(rounds().chain([finished("done")]), branches("CLEAN"));
    let run = orchestra.run(&["--no-publish"]).exits(0);
    assert_eq!(report(&run)["status"], "completed");
}

#[test]
fn an_agent_that_takes_too_long_ends_the_work_and_what_there_is_is_published() {
    let replies = [
        execute("claude_code", "Do it."),
        execute("codex", "Review it."),
    ];
    let branches = [
        Branch::done("x"),
        Branch::endless(),
        Branch::done(&published()),
    ];
    let orchestra = OrchestraProject::scripted(replies, branches)
        .with_variable("MCP_POLL_TIMEOUT_SECONDS", "0.1");
    let run = orchestra.run(&[]).exits(1);
    let told = report(&run);
    assert_eq!(told["status"], "timeout");
    assert_eq!(run.result()["exit"]["name"], "branch-timeout");
    assert_eq!(told["publish_pantheon_branch_id"], branch(3));
    assert_eq!(
        orchestra.pantheon.called("parallel_explore")[2]["parent_branch_id"],
        branch(1)
    );
}

#[test]
fn a_publication_without_a_full_report_has_failed() {
    for (answer, why) in [
        (Branch::done("I have pushed it."), "repository"),
        (
            Branch::done(r#"{"repository": "r", "branch": "b", "commit": "xyz"}"#),
            "commit",
        ),
        (Branch::failed("no rights"), "no rights"),
    ] {
        let replies = [
            execute("claude_code", "Do it."),
            execute("codex", "Review it."),
            finished("done"),
        ];
        let branches = [Branch::done("x"), Branch::review("CLEAN"), answer];
        let run = OrchestraProject::scripted(replies, branches)
            .run(&[])
            .exits(1);
        let told = report(&run);
        assert_eq!(
            (&told["status"], &told["is_finished"]),
            (&json!("publish_failed"), &json!(false))
        );
        assert!(
            told["publish_error"].as_str().unwrap().contains(why),
            "{told}"
        );
        assert!(told.get("publish_report").is_none());
        assert_eq!(told["latest_branch_id"], branch(2));
    }
}

#[test]
fn ten_failed_calls_in_a_row_end_the_work() {
    let wrong = || calls(&[("execute_agent", json!({"agent": "gpt"}))]);
    let orchestra = OrchestraProject::scripted((0..10).map(|_| wrong()), []);
    let run = orchestra.run(&[]).exits(1);
    assert_eq!(run.result()["exit"]["name"], "tools-failed");
    assert_eq!(report(&run)["status"], "failed");
    let sent = orchestra.sent(9);
    let told: Value =
        serde_json::from_str(sent.last().unwrap()["content"].as_str().unwrap()).unwrap();
    assert_eq!(told["status"], "error");
    assert_eq!(told["error"]["code"], "invalid_arguments");
}
