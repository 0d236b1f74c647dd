//! The audit: independent, read-only, and final.

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS, done, last_told, reply, told, write};

const FAIL: &str = "| Check | Status | Notes |\n|---|---|---|\n| File created | PASS | yes |\n\
                    | Tests passing | FAIL | 2 fail |\n\nOverall: FAIL\nFeedback: Mend the tests.";

#[test]
fn a_failed_audit_goes_back_to_the_worker_and_a_passed_one_ends_the_session() {
    let (agent, server) =
        AgentProject::scripted(&[done(), FAIL.to_owned(), done(), PASS.to_owned()]);
    let run = agent.work("Make the tests pass").exits(0);
    // The auditor sees the request, the task list and the summary, but none of the work's history.
    let audit = told(&server, 1);
    assert!(
        audit.contains("<user_request>\nMake the tests pass\n</user_request>"),
        "{audit}"
    );
    assert!(
        audit.contains("[~] The work") && audit.contains("It is done."),
        "{audit}"
    );
    assert!(!audit.contains("On we go."), "{audit}");
    assert!(
        !audit.contains("WRITE_FILE"),
        "an auditor has no such tool: {audit}"
    );
    let back = last_told(&server, 2);
    assert!(
        back.contains("tool=\"DONE\"") && back.contains("Mend the tests."),
        "{back}"
    );
    let kinds: Vec<Value> = run.result()["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["kind"].clone())
        .collect();
    assert_eq!(kinds, ["step", "audit", "step", "audit"]);
}

#[test]
fn an_audit_that_never_passes_ends_the_run_with_1() {
    let replies: Vec<String> = (0..10).flat_map(|_| [done(), FAIL.to_owned()]).collect();
    let (agent, server) = AgentProject::scripted(&replies);
    let run = agent.work("go").exits(1).says(&["Mend the tests."]);
    assert_eq!(run.result()["exit"]["name"], "audit-failed");
    assert_eq!(server.requests().len(), 20);
    assert_eq!(agent.session()["state"], "failed");
}

#[test]
fn a_row_that_fails_fails_the_whole_and_words_without_a_verdict_are_none() {
    let contradictory = FAIL.replace("Overall: FAIL", "Overall: PASS");
    let (agent, server) = AgentProject::scripted(&[
        done(),
        contradictory,
        done(),
        "Looks good to me!".to_owned(),
        PASS.to_owned(),
    ]);
    agent.work("go").exits(0);
    assert!(
        last_told(&server, 2).contains("FAIL"),
        "{}",
        last_told(&server, 2)
    );
    assert!(
        last_told(&server, 4).contains("Overall:"),
        "{}",
        last_told(&server, 4)
    );
}

#[test]
fn a_verdict_may_stand_in_the_form_of_a_tools_reply_and_who_forgets_it_is_told_how_to_end() {
    let (agent, server) = AgentProject::scripted(&[
        done(),
        reply("DONE", "All is well."),
        reply("COMMND", "cat src/main.rs").replace("On we go.", "Overall: PASS if it builds."),
        reply("NONE", "Overall: PASS\nFeedback: none"),
        reply("DONE", "Overall: PASS\nFeedback: none"),
    ]);
    agent.work("go").exits(0);
    let told = last_told(&server, 4);
    let no_tool = "`NONE` is no tool, and an answer has no `# Agent Response`: when you know enough, end your answer, \
                   in the place of a tool, with a line `Overall: PASS`";
    assert!(told.contains(no_tool), "{told}");
    let told = last_told(&server, 2);
    assert!(
        told.contains("end your answer, in the place of a tool, with a line `Overall: PASS`"),
        "{told}"
    );
    let told = last_told(&server, 3);
    assert!(
        told.contains("there is no tool `COMMND`: there are READ_FILE, LIST_DIRECTORY, DONE"),
        "{told}"
    );
}

#[test]
fn an_error_for_the_user_leaves_out_the_advice_for_the_auditor() {
    let replies: Vec<String> = [done()]
        .into_iter()
        .chain((0..10).map(|_| "hm".to_owned()))
        .collect();
    let (agent, server) = AgentProject::scripted(&replies);
    let ended = agent.work("go").exits(5);
    assert!(last_told(&server, 2).contains("end your answer, in the place of a tool"));
    let ended = ended.says(&["the last reply was not understood: there is no `Overall:` line\n"]);
    assert!(
        !ended.stderr.contains("end your answer"),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_auditor_can_look_and_nothing_else() {
    let refused = [
        reply("COMMAND", "git status; touch pwned"),
        reply("COMMAND", "cat src/main.rs > pwned"),
        reply("COMMAND", "ls $(touch pwned)"),
        reply("COMMAND", "git diff --output=pwned"),
        reply("COMMAND", "cat /etc/passwd"),
        reply("COMMAND", "tail -f src/main.rs"),
        write("pwned", "x\n"),
    ];
    let mut replies = vec![done()];
    replies.extend(refused.iter().cloned());
    replies.push(reply("COMMAND", "cat src/main.rs"));
    replies.push(reply("READ_FILE", "\"src/main.rs\""));
    replies.push(reply("LIST_DIRECTORY", "\"src\""));
    replies.push(PASS.to_owned());
    let (agent, server) = AgentProject::scripted(&replies);
    agent.work("go").exits(0);
    assert!(!agent.project.path("pwned").exists());
    for nth in 2..2 + refused.len() {
        let told = last_told(&server, nth);
        assert!(
            told.contains("ERROR: ") || told.contains("not understood"),
            "{nth}: {told}"
        );
    }
    let after = 2 + refused.len();
    assert!(last_told(&server, after).contains("fn main() {}"));
    assert!(last_told(&server, after + 1).contains("fn main() {}"));
    assert!(last_told(&server, after + 2).contains("main.rs"));
}

#[test]
fn an_auditor_has_the_tries_of_an_unattended_agent_and_its_input_is_logged() {
    let (agent, _server) = AgentProject::scripted(&[
        done(),
        reply("COMMAND", "cargo test"),
        reply("COMMAND", "cargo test --quiet"),
        "Looks good.".to_owned(),
        reply("READ_FILE", "\"src/main.rs\""),
        PASS.to_owned(),
    ]);
    let agent = agent.configured(&json!({"maxRetries": 1, "maxRetriesAutomated": 4}));
    let run = agent.typed(&[], "go\n").exits(0);
    assert_eq!(run.result()["exit"]["name"], "done");
    let last = run.logged("0006-audit.txt");
    assert!(last.contains("fn main() {}"), "{last}");
}

#[test]
fn an_auditor_that_never_judges_ends_the_run() {
    let mut replies = vec![done()];
    replies.extend(vec![reply("COMMAND", "rm -rf src"); 12]);
    let (agent, server) = AgentProject::scripted(&replies);
    let run = agent.work("go").exits(1);
    assert_eq!(run.result()["exit"]["name"], "tools-failed");
    assert_eq!(server.requests().len(), 11);
}

#[test]
fn an_auditor_may_build_and_run_what_the_user_allows() {
    let (agent, server) = AgentProject::scripted(&[
        done(),
        reply("COMMAND", "./build.sh"),
        reply("COMMAND", "grep -c main src/main.rs"),
        reply("COMMAND", "grep -c fn src/main.rs"),
        reply("COMMAND", "./build.sh --release"),
        PASS.to_owned(),
    ]);
    let agent = agent
        .with_file("build.sh", "#!/bin/sh\necho built; exit 3\n")
        .configured(&json!({"auditCommands": ["grep -c main src/main.rs", ["true"]]}));
    agent.work("go").exits(0);
    let instructions = told(&server, 1);
    assert!(
        instructions.contains("exactly as they are here: `grep -c main src/main.rs`, `true`."),
        "{instructions}"
    );
    for (nth, said) in [
        (2, "exit code: 3\nbuilt\n"),
        (3, "exit code: 0\n1\n"),
        (4, "`grep` is not allowed. You may run one of these"),
        (5, "`./build.sh` alone is allowed, without arguments"),
    ] {
        let told = last_told(&server, nth);
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn auditors_prompt_lists_changes_of_the_run_and_earlier_ones() {
    let (agent, server) = AgentProject::scripted(&[
        write("src/main.rs", "fn main() {\n    work()\n}\n"),
        write("new.txt", "x\n"),
        reply("COMMAND", "touch made-by-a-command"),
        done(),
        PASS.to_owned(),
    ]);
    let agent = agent.with_file("tracked.txt", "one\n");
    for arguments in [&["init", "-q"][..], &["add", "--all"]] {
        let mut git = std::process::Command::new("git");
        let git = git.args(arguments).current_dir(agent.project.path(""));
        let git = git.env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(
            git.env("GIT_CONFIG_NOSYSTEM", "1")
                .status()
                .unwrap()
                .success()
        );
    }
    let agent = agent
        .with_file("tracked.txt", "other\n")
        .with_file("notes.txt", "mine\n");
    agent.work("go").exits(0);
    let told = told(&server, 4);
    let (_, changes) = told.rsplit_once("<project_changes>\n").unwrap();
    let (run, before) = changes.split_once("\n\n").unwrap();
    assert!(
        run.ends_with("\n A new.txt (+1 -0)\n M src/main.rs (+3 -1)"),
        "{run}"
    );
    assert!(
        before.contains(":\n?? notes.txt\n M tracked.txt\n</project_changes>"),
        "{before}"
    );
}

#[test]
fn an_auditor_judges_what_is_still_asked_for() {
    let passed = || [done(), PASS.to_owned()];
    let mut replies = passed().to_vec();
    replies.extend(passed());
    let (agent, server) = AgentProject::scripted(&replies);
    agent
        .typed(&[], "the first thing\nthe second thing\n")
        .exits(0);
    for (nth, asked, other) in [
        (1, "the first thing", "the second thing"),
        (3, "the second thing", "the first thing"),
    ] {
        let told = last_told(&server, nth);
        assert!(
            told.contains(&format!("<user_request>\n{asked}\n")),
            "{told}"
        );
        assert!(!told.contains(other), "{told}");
    }
}
