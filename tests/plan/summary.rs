//! The summary: the model writes it, the program supplies the facts, and the user approves it.

use serde_json::{Value, json};

use crate::support::plan::{
    PlanProject, calls, conversation, queries, response, summary, summary_with_updates, tasks,
    tasks_with_criteria, write,
};

/// Types the first request and the answers in a terminal, and exits.
fn at_the_terminal(plan: &PlanProject, typed: &[(&str, &str)]) -> Option<String> {
    let typed: Vec<(&str, &str)> = std::iter::once(&("plan> ", "Write\r"))
        .chain(typed)
        .chain(&[("plan> ", "\u{4}")])
        .copied()
        .collect();
    let (shown, code) = plan.in_terminal("", &typed)?;
    assert_eq!(code, 0, "{shown}");
    Some(shown)
}

/// The replies of a request that writes a file, up to its summary.
fn written() -> Vec<String> {
    vec![
        tasks(&[("Write", "write_file")]),
        write("a.txt", "a\n"),
        response("It is written."),
    ]
}

/// Returns the entry in the plan's log.
fn entry(document: &str) -> String {
    let (_, log) = document.split_once("## Execution Log\n\n").unwrap();
    let (_, entry) = log.split_once(" - ").unwrap();
    entry.to_owned()
}

#[test]
fn the_program_answers_for_the_facts() {
    let mut claimed: Value = serde_json::from_str(&summary("❌ It failed")).unwrap();
    claimed["log_entry"]["tools_used"] = json!(["shell_exec", "fly"]);
    claimed["decisions_made"] = json!([{"title": "Use a", "rationale": "It is short"}]);
    let mut replies = written();
    replies.push(claimed.to_string());
    let (plan, server) = PlanProject::scripted(&replies);
    let run = plan.work("Write").exits(0);
    assert_eq!(queries(&server), 4, "nobody is asked");
    let shown = "=== Work Summary ===\nAction: Did the work\nDetails: All of it\nResult: ✓ It failed\nTools: write_file\n";
    assert!(run.stdout.starts_with(shown), "{}", run.stdout);
    let document = plan.document();
    assert_eq!(
        entry(&document),
        "Did the work\n**Actions:** All of it\n**Tools:** write_file\n**Result:** ✓ It failed\n"
    );
    assert!(
        document.contains("### Use a\n**Rationale:** It is short\n**Decided:** "),
        "{document}"
    );
    assert!(document.contains("**Status:** completed\n"), "{document}");
    assert_eq!(run.result()["plan"]["status"], "completed");
}

#[test]
fn criteria_are_ticked_by_their_descriptions_and_unknown_ones_are_a_warning() {
    let (plan, _server) = PlanProject::scripted(&[
        &tasks_with_criteria(&[("Write", "write_file")], &["It is written", "It is Read"]),
        &write("a.txt", "a\n"),
        &response("It is written."),
        &summary_with_updates("Written", &["  it IS  written", "It flies"]),
    ]);
    let run = plan.work("Write").exits(0).says(&[
        "there is no criterion `It flies`",
        "all steps are done, but these acceptance criteria are still open: `It is Read`",
    ]);
    assert!(
        run.stdout
            .contains("\nAcceptance Criteria Completed:\n  ✓ it IS written\n"),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains("It flies"));
    let document = plan.document();
    for line in [
        "- [x] It is written\n",
        "- [ ] It is Read\n",
        "**Status:** in_progress\n",
    ] {
        assert!(document.contains(line), "{line}: {document}");
    }
    assert!(!document.contains("It flies"), "{document}");
}

#[test]
fn no_criterion_is_ticked_after_a_failure_whoever_says_so() {
    let look = calls(&[("list_files", json!({}))]);
    let update =
        json!({"acceptance_criteria": [{"description": "It is written", "completed": true}]});
    let mut replies = vec![
        tasks_with_criteria(&[("Write", "write_file")], &["It is written"]),
        calls(&[("update_plan", update)]),
    ];
    replies.extend(vec![look; 9]);
    replies.push(summary_with_updates("✓ Written", &["It is written"]));
    let (plan, _server) = PlanProject::scripted(&replies);
    plan.work("Write").exits(1);
    let document = plan.document();
    assert!(document.contains("- [ ] It is written\n"), "{document}");
    assert!(document.contains("**Result:** ❌ Written\n"), "{document}");
    assert!(
        document.contains("**Tools:** update_plan, list_files\n"),
        "{document}"
    );
}

#[test]
fn a_criterion_with_a_command_is_ticked_by_that_alone() {
    for (check, is_claimed, ticked) in [
        ("ls a.txt", false, true),
        ("ls b.txt", true, false),
        ("`ls a.txt`", true, true),
    ] {
        let claimed: &[&str] = if is_claimed { &["It is there"] } else { &[] };
        let mut replies = written();
        replies.push(summary_with_updates("Written", claimed));
        let (plan, server) = PlanProject::scripted(&replies);
        plan.run(&["-p", "Write", "--plan-only"]).exits(0);
        // The user's own words in the plan.
        let path = plan.sessions().pop().unwrap().join("plan_doc.md");
        let criterion = format!("## Acceptance Criteria\n- [ ] It is there *(check: {check})*\n");
        let document = plan
            .document()
            .replace("## Acceptance Criteria\n", &criterion);
        assert!(document.contains("check: "), "{document}");
        std::fs::write(path, document).unwrap();
        let run = plan.run(&["--resume", "-p", ""]).exits(0);
        let sign = if ticked { 'x' } else { ' ' };
        let document = plan.document();
        assert!(
            document.contains(&format!("- [{sign}] It is there *(check: {check})*\n")),
            "{document}"
        );
        let status = if ticked { "completed" } else { "in_progress" };
        assert!(
            document.contains(&format!("**Status:** {status}\n")),
            "{document}"
        );
        assert_eq!(
            run.stderr.contains("is decided by its command"),
            is_claimed,
            "{}",
            run.stderr
        );
        assert!(!run.stdout.contains("✓ It is there"), "{}", run.stdout);
        let failed = format!(
            "`ls b.txt`, by which `It is there` is checked, has failed (exit code: 2): its output is in `logs/{}`",
            run.folder
        );
        assert_eq!(run.stderr.contains(&failed), !ticked, "{}", run.stderr);
        assert_eq!(queries(&server), 4);
    }
}

#[test]
fn a_check_that_may_do_more_than_look_is_asked_about_like_any_command() {
    for (arguments, sign) in [
        (&["--resume", "-p", ""][..], ' '),
        (&["--resume", "-p", "", "--yes"], 'x'),
    ] {
        let mut replies = written();
        replies.push(summary("Written"));
        let (plan, _server) = PlanProject::scripted(&replies);
        plan.run(&["-p", "Write", "--plan-only"]).exits(0);
        let path = plan.sessions().pop().unwrap().join("plan_doc.md");
        let criterion = "## Acceptance Criteria\n- [ ] It is made *(check: touch made)*\n";
        std::fs::write(
            path,
            plan.document()
                .replace("## Acceptance Criteria\n", criterion),
        )
        .unwrap();
        let run = plan.run(arguments).exits(0);
        let is_run = sign == 'x';
        assert_eq!(plan.project.path("made").exists(), is_run);
        assert_eq!(
            run.stderr
                .contains("`touch made`, by which `It is made` is checked, was not run; a call was refused that `--yes` allows"),
            !is_run
        );
        assert!(
            plan.document().contains(&format!("- [{sign}] It is made")),
            "{}",
            plan.document()
        );
    }
}

#[test]
fn the_user_says_yes_or_nothing() {
    for answer in ["yes\r", "\u{4}", "\r"] {
        let mut replies = written();
        replies.push(summary("Written"));
        let (plan, server) = PlanProject::scripted(&replies);
        let Some(shown) = at_the_terminal(&plan, &[("(yes/no/edit): ", answer)]) else {
            return;
        };
        assert!(shown.contains("=== Work Summary ==="), "{shown}");
        assert!(
            shown.contains("Does this summary look correct? (yes/no/edit): "),
            "{shown}"
        );
        assert_eq!(queries(&server), 4);
        assert!(entry(&plan.document()).starts_with("Did the work\n**Actions:** All of it\n"));
    }
}

#[test]
fn the_user_edits_the_summary() {
    let mut replies = written();
    replies.push(summary("Written"));
    let (plan, server) = PlanProject::scripted(&replies);
    let typed = [
        ("(yes/no/edit): ", "Edit\r"),
        ("Action: ", "Wrote a file\r"),
        ("Details: ", "a.txt, AND more\r"),
    ];
    // Text in the summary itself is not a prompt.
    let Some(_) = at_the_terminal(&plan, &typed) else {
        return;
    };
    assert_eq!(queries(&server), 4);
    let document = plan.document();
    assert_eq!(
        entry(&document),
        "Wrote a file\n**Actions:** a.txt, AND more\n**Tools:** write_file\n**Result:** ✓ Written\n"
    );
}

#[test]
fn the_user_says_what_is_wrong_and_it_is_written_once_more() {
    let mut replies = written();
    replies.extend([summary("Written"), summary("Written, and read")]);
    let (plan, server) = PlanProject::scripted(&replies);
    let typed = [
        ("(yes/no/edit): ", "no\r"),
        ("What is wrong? ", "it was read, too\r"),
    ];
    let Some(shown) = at_the_terminal(&plan, &typed) else {
        return;
    };
    assert_eq!(queries(&server), 5);
    let again = conversation(&server, 4);
    let [.., (agent, first), (user, told)] = &again[..] else {
        panic!("what was said: {again:?}");
    };
    assert_eq!((&**agent, &**user), ("assistant", "user"));
    assert!(first.contains("\"result\":\"Written\""), "{first}");
    assert!(told.contains("it was read, too"), "{told}");
    assert!(shown.contains("Result: ✓ Written, and read"), "{shown}");
    let document = plan.document();
    assert_eq!(document.matches("**Actions:**").count(), 1, "{document}");
    assert!(
        entry(&document).ends_with("**Result:** ✓ Written, and read\n"),
        "{document}"
    );
}

#[test]
fn who_does_not_say_what_is_wrong_is_asked_about_the_summary_again() {
    for (no, nothing) in [
        ("no\r", "\r"),
        ("it was read, too\r", " \r"),
        ("nope\r", "\u{4}"),
    ] {
        let mut replies = written();
        replies.push(summary("Written"));
        let (plan, server) = PlanProject::scripted(&replies);
        let typed = [
            ("(yes/no/edit): ", no),
            ("What is wrong? ", nothing),
            ("(yes/no/edit): ", "yes\r"),
        ];
        let Some(_) = at_the_terminal(&plan, &typed) else {
            return;
        };
        assert_eq!(queries(&server), 4, "{no:?}, {nothing:?}");
        assert!(entry(&plan.document()).ends_with("**Result:** ✓ Written\n"));
    }
}

#[test]
fn a_summary_that_is_not_understood_leaves_the_plan_as_it_was_worked_off() {
    let mut replies = written();
    replies.extend([
        "no".to_owned(),
        "no".to_owned(),
        "no".to_owned(),
        summary("Written"),
    ]);
    let (plan, server) = PlanProject::scripted(&replies);
    plan.work("Write").exits(5);
    let document = plan.document();
    assert!(
        document.contains("1. [x] Write\n") && !document.contains("**Result:**"),
        "{document}"
    );
    // Nothing else is left to do.
    plan.run(&["--resume", "-p", ""]).exits(0);
    assert_eq!(queries(&server), 7);
    assert!(entry(&plan.document()).ends_with("**Result:** ✓ Written\n"));
}

#[test]
fn a_summary_that_cannot_be_written_to_stdout_is_an_error() {
    let mut replies = written();
    replies.push(summary("Written"));
    let (plan, _server) = PlanProject::scripted(&replies);
    let full = std::fs::File::options().write(true).open("/dev/full");
    let mut command = plan.command(&["-p", "Write"]);
    let done = command.stdout(full.unwrap()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(6), "{said}");
    assert!(said.contains("error: cannot write to stdout"), "{said}");
    assert!(entry(&plan.document()).ends_with("**Result:** ✓ Written\n"));
}
