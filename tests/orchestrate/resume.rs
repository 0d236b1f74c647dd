//! Work that another run continues or publishes.

use std::io::{BufRead as _, BufReader};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::orchestra::{
    Branch, OrchestraProject, START, branch, execute, finished, published, report,
};
use crate::support::{Answer, Finished};

/// Runs `orchestrate` with these arguments only.
fn run(orchestra: &OrchestraProject, arguments: &[&str]) -> Finished {
    let arguments = [&["orchestrate", "--headless"], arguments].concat();
    orchestra.project.run(&arguments)
}

/// A run that was killed while its reviewer was working; returns its folder, too.
fn killed() -> (OrchestraProject, String) {
    let states = [
        json!({"status": "running"}),
        json!({"status": "running"}),
        json!({"status": "succeed", "output": "reviewed"}),
    ];
    let orchestra = OrchestraProject::scripted(
        [
            execute("claude_code", "Add the flag."),
            execute("codex", "Review it."),
            finished("The flag is there."),
        ],
        [
            Branch::done("implemented"),
            Branch::of(&states).with_file("codex_review.log", "VERDICT: CLEAN\n"),
            Branch::done(&published()),
        ],
    );
    let slow = orchestra.with_variable("MCP_POLL_INITIAL_SECONDS", "3600");
    let slow = slow.with_variable("MCP_POLL_MAX_SECONDS", "7200");
    let mut child = slow.spawn(&["--headless", "--task", "Add a flag."]);
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let waits = format!("on branch {} (running), review 1 of 8", branch(2));
    let mut told = stderr.lines().map(Result::unwrap);
    assert!(told.any(|line| line.contains(&waits)));
    let folder = slow.project.runs().pop().unwrap();
    let folder = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let listed = slow.project.run(&["log"]).exits(0).stdout;
    assert!(listed.contains("running"), "{listed}");
    let early = run(&slow, &["--resume", &folder]).exits(3);
    early.says(&["is still going on", "hint: wait until it has ended"]);
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    child.wait().unwrap();
    let listed = slow.project.run(&["log"]).exits(0).stdout;
    assert!(listed.contains("killed"), "{listed}");
    let slow = slow.with_variable("MCP_POLL_INITIAL_SECONDS", "0.01");
    (slow.with_variable("MCP_POLL_MAX_SECONDS", "0.02"), folder)
}

#[test]
fn a_killed_run_is_resumed_at_the_agent_at_work() {
    let (orchestra, folder) = killed();
    let resumed = run(&orchestra, &["--resume", &folder]).exits(0);
    let told = report(&resumed);
    assert_eq!(
        (&told["status"], &told["task"]),
        (&json!("completed"), &json!("Add a flag."))
    );
    assert_eq!(
        (&told["start_branch_id"], &told["iterations"]),
        (&json!(START), &json!(1))
    );
    assert_eq!(told["publish_pantheon_branch_id"], branch(3));
    assert_eq!(orchestra.pantheon.called("parallel_explore").len(), 3);
    let first = orchestra.sent(2)[1]["content"].to_string();
    assert!(first.contains("begun") && first.contains(&branch(2)) && first.contains("reviewed"));
    let again = format!("logs/{}", resumed.folder);
    let again = run(&orchestra, &["--replay", &again]).exits(0);
    assert_eq!(report(&again)["publish_pantheon_branch_id"], branch(3));
    assert_eq!(orchestra.pantheon.called("parallel_explore").len(), 3);
}

#[test]
fn an_agent_that_took_too_long_is_waited_for_once_more() {
    let mut states = vec![json!({"status": "running"}); 50];
    states.push(json!({"status": "succeed", "output": "implemented"}));
    let replies = ["claude_code", "codex"].map(|agent| execute(agent, "Do it."));
    let orchestra = OrchestraProject::scripted(
        replies.into_iter().chain([finished("The flag is there.")]),
        [Branch::of(&states), Branch::review("CLEAN")],
    );
    let hurried = orchestra.with_variable("MCP_POLL_TIMEOUT_SECONDS", "0.1");
    let late = hurried.run(&["--no-publish"]).exits(1);
    let told = report(&late);
    assert_eq!(told["status"], "timeout");
    let command = format!("run `dev-agent --resume logs/{}`", late.folder);
    let instructions = told["instructions"].as_str().unwrap();
    assert!(instructions.contains(&command), "{instructions}");
    let orchestra = hurried.with_variable("MCP_POLL_TIMEOUT_SECONDS", "60");
    let resumed = run(&orchestra, &["--resume", &late.folder]).exits(0);
    assert_eq!(report(&resumed)["branches"][0]["id"], branch(1));
    assert_eq!(orchestra.pantheon.called("parallel_explore").len(), 2);
}

/// Leaves a run behind that was killed at the nth call of a tool; returns its folder.
fn killed_at(orchestra: &OrchestraProject, tool: &str, nth: usize) -> String {
    let (silence, reached) = Answer::silence();
    orchestra.pantheon.answers(tool, nth, silence);
    let mut child = orchestra.spawn(&["--headless", "--task", "Add a flag."]);
    reached.recv().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let folder = orchestra.project.runs().pop().unwrap();
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

/// An orchestration whose work is published after so many reviews with this verdict.
fn published_after(reviews: usize, verdict: &str) -> OrchestraProject {
    let replies = (0..reviews).flat_map(|_| [execute("claude_code", "x"), execute("codex", "y")]);
    let branches = (0..reviews).flat_map(|_| [Branch::done("x"), Branch::review(verdict)]);
    OrchestraProject::scripted(
        replies.chain([finished("done")]),
        branches.chain([Branch::done(&published()), Branch::done(&published())]),
    )
}

#[test]
fn work_that_is_being_published_is_not_published_again() {
    for (flag, reviews, verdict, status, code) in [
        ("--resume", 1, "CLEAN", "completed", 0),
        ("--publish-only", 1, "CLEAN", "completed", 0),
        ("--resume", 8, "ISSUES", "iteration_limit", 1),
        ("--publish-only", 8, "ISSUES", "iteration_limit", 1),
    ] {
        let orchestra = published_after(reviews, verdict);
        let agents = 2 * reviews + 1;
        // The branch that is cloned is asked for, too.
        let folder = killed_at(&orchestra, "get_branch", 2 * agents);
        let asked = orchestra.azure.requests().len();
        let resumed = run(&orchestra, &[flag, &folder]).exits(code);
        let again = ["--replay", &resumed.folder];
        for run in [&resumed, &run(&orchestra, &again).exits(code)] {
            let told = report(run);
            assert_eq!(told["status"], status, "{flag}");
            assert_eq!(told["publish_report"], published(), "{flag}");
            assert_eq!(told["publish_pantheon_branch_id"], branch(agents), "{flag}");
        }
        assert_eq!(orchestra.pantheon.called("parallel_explore").len(), agents);
        assert_eq!(orchestra.azure.requests().len(), asked);
    }
}

#[test]
fn an_agent_that_was_being_started_is_not_forgotten() {
    let warning = "`claude_code` may have been started on a further branch";
    let orchestra = published_after(1, "CLEAN");
    let folder = killed_at(&orchestra, "parallel_explore", 3);
    let refused = run(&orchestra, &["--resume", &folder]).exits(1);
    let refused = refused.says(&[
        warning,
        "may already be published",
        "`--publish-only` publishes",
    ]);
    assert_eq!(report(&refused)["status"], "publish_failed");
    assert_eq!(orchestra.pantheon.called("parallel_explore").len(), 3);
    // Who has looked may have it published.
    let done = run(&orchestra, &["--publish-only", &refused.folder]).exits(0);
    let done = done.says(&[warning]);
    assert_eq!(report(&done)["status"], "completed");

    let orchestra = OrchestraProject::clean();
    let folder = killed_at(&orchestra, "parallel_explore", 1);
    let again = run(&orchestra, &["--resume", &folder]);
    again.says(&[warning]);
}

#[test]
fn work_is_published_where_a_review_has_passed_it() {
    let orchestra = OrchestraProject::clean();
    let folder = orchestra.run(&["--no-publish"]).exits(0).folder;
    let calls = orchestra.azure.requests().len();
    // No model is called, so none need be configured.
    let orchestra = orchestra.with_variable("AZURE_OPENAI_API_KEY", "");
    let orchestra = orchestra.with_variable("AZURE_OPENAI_DEPLOYMENT", "");
    let told = report(&run(&orchestra, &["--publish-only", &folder]).exits(0));
    assert_eq!(
        (&told["status"], &told["publish_pantheon_branch_id"]),
        (&json!("completed"), &json!(branch(3)))
    );
    assert_eq!(orchestra.azure.requests().len(), calls);

    // Completed work is neither repeated nor paid for again.
    let done = OrchestraProject::clean();
    let folder = done.run(&[]).exits(0).folder;
    let (calls, agents) = (done.azure.requests().len(), 3);
    let told = report(&run(&done, &["--publish-only", &folder]).exits(0));
    assert_eq!(
        (&told["status"], &told["publish_pantheon_branch_id"]),
        (&json!("completed"), &json!(branch(3)))
    );
    run(&done, &["--resume", &folder])
        .exits(3)
        .says(&["there is nothing to resume"]);
    assert_eq!(done.azure.requests().len(), calls);
    assert_eq!(done.pantheon.called("parallel_explore").len(), agents);

    let unreviewed = OrchestraProject::scripted(
        [execute("claude_code", "Add the flag.")],
        [Branch::done("implemented")],
    );
    let folder = unreviewed.run(&["--no-publish"]).folder;
    let refused = run(&unreviewed, &["--publish-only", &folder]).exits(1);
    refused.says(&["no review by `codex`"]);
    assert_eq!(unreviewed.pantheon.called("parallel_explore").len(), 1);

    // The output is for people. Runs are named as everywhere else.
    let broken = OrchestraProject::scripted(
        [
            execute("claude_code", "Add the flag."),
            execute("codex", "Review it."),
        ],
        [
            Branch::done("implemented"),
            Branch::done("reviewed").with_file("codex_review.log", "Findings\n- P1: broken\n"),
        ],
    );
    broken.run(&["--no-publish"]);
    let again = run(&broken, &["--resume", "-1"]);
    assert_ne!(again.code, 2, "{}", again.stderr);
    let refused = run(&broken, &["--publish-only", "-2"]).exits(1);
    let refused = refused.says(&["does not say `VERDICT: CLEAN`", "`--resume` continues"]);
    let told = format!("{}{}", refused.stderr, refused.stdout);
    for other in ["read_artifact", "by hand", "the report does not count"] {
        assert!(!told.contains(other), "{other}: {told}");
    }
    assert_eq!(report(&refused)["status"], "publish_failed");
}

#[test]
fn an_earlier_run_is_named_from_where_the_user_is() {
    let orchestra = OrchestraProject::clean();
    let folder = orchestra.run(&[]).exits(0).folder;
    std::fs::create_dir(orchestra.project.path("sub")).unwrap();
    let named = format!("../logs/{folder}");
    for (flag, code, said) in [
        ("--replay", 0, "\"status\": \"completed\""),
        ("--publish-only", 0, "\"status\": \"completed\""),
        ("--resume", 3, "there is nothing to resume"),
    ] {
        let arguments = ["orchestrate", "--headless", flag, &named];
        let mut command = orchestra.project.command(&arguments);
        let output = command.current_dir(orchestra.project.path("sub")).output();
        let run = Finished::new(&orchestra.project, &arguments, output.unwrap()).exits(code);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(told.contains(said), "{flag}: {told}");
    }
}

#[test]
fn a_damaged_lineage_is_named_with_its_cause() {
    let orchestra = OrchestraProject::clean();
    let folder = killed_at(&orchestra, "parallel_explore", 2);
    let lineage = orchestra
        .project
        .path(&format!("logs/{folder}/lineage.json"));
    std::fs::write(&lineage, "{").unwrap();
    for flag in ["--resume", "--publish-only"] {
        run(&orchestra, &[flag, &folder]).exits(3).says(&[
            "/lineage.json` is missing or damaged: EOF while parsing",
            "hint: restore it, or start a new run",
        ]);
    }
    std::fs::remove_file(lineage).unwrap();
    let missing = run(&orchestra, &["--resume", &folder]).exits(3);
    missing.says(&["/lineage.json` is missing or damaged: No such file"]);
}
