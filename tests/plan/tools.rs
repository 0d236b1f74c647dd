//! The effects of the tools, and the actions that need confirmation.

use serde_json::{Value, json};

use crate::support::plan::{
    PlanProject, calls, conversation, last_told, queries, query, response, summary, tasks,
};

/// Makes these calls in one reply; returns the results sent to the model, and the project.
fn results(
    plan: impl FnOnce(PlanProject) -> PlanProject,
    arguments: &[&str],
    made: &[(&str, Value)],
) -> (String, PlanProject) {
    let (project, server) = PlanProject::scripted(&[
        tasks(&[("Work", "analyze")]),
        calls(made),
        response("Done."),
        summary("Done"),
    ]);
    let project = plan(project);
    let all: Vec<&str> = ["-p", "Work", "--gate", "off"]
        .iter()
        .chain(arguments)
        .copied()
        .collect();
    project.run(&all).exits(0);
    (last_told(&server, 2), project)
}

#[test]
fn every_tool_does_what_it_says() {
    let (told, plan) = results(
        |plan| plan.with_file("src/lib.rs", "fn one() {}\nfn two() {}\n"),
        &["--yes"],
        &[
            (
                "read_file",
                json!({"file_path": "src/lib.rs", "encoding": "utf-8"}),
            ),
            (
                "write_file",
                json!({"file_path": "deep/er/a.txt", "content": "a\n"}),
            ),
            (
                "write_file",
                json!({"file_path": "no/a.txt", "content": "a\n", "create_directories": false}),
            ),
            (
                "replace_in_file",
                json!({"file_path": "src/lib.rs", "find": "fn two", "replace": "fn three"}),
            ),
            ("list_files", json!({"path": "src"})),
            ("list_files", json!({})),
            ("search_files", json!({"pattern": "fn \\w+ee"})),
            ("shell_exec", json!({"command": "echo $((6 * 7))"})),
            ("show_diff", json!({})),
            (
                "initialize_plan",
                json!({"goal": "A new goal", "acceptance_criteria": ["It works"]}),
            ),
            (
                "update_plan",
                json!({
                    "acceptance_criteria": [{"description": "it  WORKS", "completed": true}, {"description": "It is fast"}],
                    "decisions_made": [{"title": "Use Rust", "rationale": "It is safe", "alternatives": ["C", "Go (fast)"]}],
                    "decisions_rejected": [{"title": "Use C", "rationale": "It is not"}],
                }),
            ),
            (
                "read_file",
                json!({"file_path": "src/lib.rs", "encoding": "latin-1"}),
            ),
        ],
    );
    for (index, parts) in [
        (0, &["✓ ", "fn one() {}\nfn two() {}"][..]),
        (1, &["✓ "]),
        (
            2,
            &["❌ Error: ", "no/a.txt", "`create_directories` is false"],
        ),
        (3, &["✓ "]),
        (4, &["✓ ", "lib.rs", "main.rs"]),
        (5, &["✓ ", "deep", "build.sh"]),
        (6, &["✓ ", "src/lib.rs:2: fn three() {}"]),
        (7, &["✓ ", "42"]),
        (
            8,
            &[
                "✓ ",
                "-fn two() {}",
                "+fn three() {}",
                "+++ b/deep/er/a.txt",
            ],
        ),
        (9, &["✓ Plan initialized with 1 acceptance criteria"]),
        (10, &["✓ Plan updated"]),
        (11, &["❌ Error: ", "utf-8"]),
    ] {
        let start = told.find(&format!("[{index}] ")).unwrap();
        let end = told
            .find(&format!("\n[{}] ", index + 1))
            .unwrap_or(told.len());
        for part in parts {
            assert!(
                told[start..end].contains(part),
                "{part} in {}",
                &told[start..end]
            );
        }
    }
    assert_eq!(plan.project.read("deep/er/a.txt"), "a\n");
    assert!(!plan.project.path("no").exists());
    let document = plan.document();
    for part in [
        "# Plan: A new goal\n",
        "- [x] It works\n",
        "- [ ] It is fast\n",
        "### Use Rust\n**Rationale:** It is safe\n**Alternatives considered:** C, Go (fast)\n**Decided:** ",
        "### Use C\n**Rationale:** It is not\n**Rejected:** ",
    ] {
        assert!(document.contains(part), "{part}: {document}");
    }
    // One criterion is not met.
    assert!(document.contains("**Status:** in_progress\n"), "{document}");
}

#[test]
fn paths_stay_in_the_project_and_off_what_is_closed() {
    let (told, plan) = results(
        |plan| {
            let inside = plan.project.path("agent-config");
            std::os::unix::fs::symlink("/etc", plan.project.path("out")).unwrap();
            assert!(inside.is_dir());
            plan
        },
        &["--plan-file", "PLAN.md"],
        &[
            ("read_file", json!({"file_path": "/etc/passwd"})),
            ("read_file", json!({"file_path": "../x"})),
            ("read_file", json!({"file_path": "out/passwd"})),
            (
                "write_file",
                json!({"file_path": "/tmp/x/y", "content": ""}),
            ),
            (
                "write_file",
                json!({"file_path": ".git/hooks/x", "content": ""}),
            ),
            (
                "write_file",
                json!({"file_path": "PLAN.md", "content": "# Mine"}),
            ),
            (
                "replace_in_file",
                json!({"file_path": "./PLAN.md", "find": "Work", "replace": "x"}),
            ),
            (
                "replace_in_file",
                json!({"file_path": "src/main.rs", "find": "nowhere", "replace": "x"}),
            ),
            ("list_files", json!({"path": "/"})),
            ("search_files", json!({"pattern": "(", "path": "."})),
        ],
    );
    for index in 0..10 {
        assert!(
            told.contains(&format!("[{index}] ❌ Error: ")),
            "{index}: {told}"
        );
    }
    for index in [5, 6] {
        let line = told
            .lines()
            .find(|line| line.starts_with(&format!("[{index}] ")))
            .unwrap();
        assert!(
            line.contains("this is the plan document, which update_plan changes"),
            "{line}"
        );
    }
    // An absolute path inside the project is accepted.
    assert!(plan.project.read("PLAN.md").contains("## Goal\nWork\n"));
    let inside = plan.project.path("src/main.rs").canonicalize().unwrap();
    let (told, _plan) = results(
        |plan| plan,
        &[],
        &[("read_file", json!({"file_path": inside}))],
    );
    assert!(told.contains("[0] ❌ Error: "), "another project's: {told}");
}

#[test]
fn questions_without_a_user_are_refusals_unless_all_is_allowed() {
    let made = [
        ("shell_exec", json!({"command": "touch made"})),
        (
            "write_file",
            json!({"file_path": "sub/package.json", "content": "{}\n"}),
        ),
        (
            "replace_in_file",
            json!({"file_path": "Cargo.toml", "find": "a", "replace": "b"}),
        ),
        ("shell_exec", json!({"command": "ls src"})),
        ("shell_exec", json!({"command": "./build.sh"})),
        (
            "write_file",
            json!({"file_path": "package.json.txt", "content": "{}\n"}),
        ),
    ];
    let manifest = |plan: PlanProject| plan.with_file("Cargo.toml", "a\n");
    let (told, plan) = results(manifest, &[], &made);
    for index in 0..3 {
        let line = told
            .lines()
            .find(|line| line.starts_with(&format!("[{index}] ")))
            .unwrap();
        assert!(
            line.contains("❌ Error: nobody is there to allow you to") && line.contains("`--yes`"),
            "{line}"
        );
    }
    for index in 3..6 {
        assert!(told.contains(&format!("[{index}] ✓ ")), "{index}: {told}");
    }
    assert!(!plan.project.path("made").exists() && !plan.project.path("sub").exists());
    assert_eq!(plan.project.read("Cargo.toml"), "a\n");
    assert!(
        plan.document()
            .contains("**Tools:** shell_exec, write_file\n")
    );
    let (told, plan) = results(manifest, &["--yes"], &made);
    assert!(!told.contains("❌"), "{told}");
    assert!(plan.project.path("made").exists());
    assert_eq!(plan.project.read("Cargo.toml"), "b\n");
}

/// A step that runs a command which requires confirmation.
fn touching() -> [String; 4] {
    [
        tasks(&[("Touch", "shell_exec"), ("Think", "analyze")]),
        calls(&[
            ("shell_exec", json!({"command": "touch made"})),
            ("list_files", json!({})),
        ]),
        response("It is made."),
        response("So it is."),
    ]
}

#[test]
fn at_the_terminal_the_user_says_yes() {
    let replies: Vec<String> = touching().into_iter().chain([summary("Made")]).collect();
    let (plan, _server) = PlanProject::scripted(&replies);
    let Some((shown, code)) = plan.in_terminal(
        "",
        &[
            ("What would you like to build?", ""),
            ("plan> ", "Make it\r"),
            ("The agent wants to run `touch made`. May it?", ""),
            ("yes/no> ", "yes\r"),
            ("(yes/no/edit): ", "yes\r"),
            ("plan> ", "\u{4}"),
        ],
    ) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    assert!(plan.project.path("made").exists());
    assert!(plan.document().contains("**Result:** ✓ Made\n"));
}

#[test]
fn however_quiet_it_is_a_question_is_shown_whole_and_a_command_is_not_an_answer_to_it() {
    let [planned, touched, ..] = touching();
    let (plan, server) = PlanProject::scripted(&[planned, touched]);
    let run = plan.typed(&["--quiet"], "Make it\n/undo\n/exit\n").exits(1);
    let question = "The agent wants to run `touch made`. May it?\nyes/no> \n";
    assert_eq!(run.stderr.matches(question).count(), 2, "{}", run.stderr);
    assert!(!plan.project.path("made").exists());
    assert_eq!(queries(&server), 2);
    assert_eq!(plan.session()["status"], "interrupted");
}

#[test]
fn a_no_of_the_users_ends_the_list() {
    let [planned, touched, ..] = touching();
    let (plan, server) = PlanProject::scripted(&[planned, touched, summary("✓ Made")]);
    let Some((shown, _)) = plan.in_terminal(
        "",
        &[
            ("plan> ", "Make it\r"),
            ("yes/no> ", "no\r"),
            ("(yes/no/edit): ", "\u{4}"),
            ("plan> ", "\u{4}"),
        ],
    ) else {
        return;
    };
    assert!(shown.contains("User rejected"), "{shown}");
    assert!(!plan.project.path("made").exists());
    assert_eq!(queries(&server), 3);
    let document = plan.document();
    for line in [
        "**Status:** blocked\n",
        "status: blocked\n",
        "2. [ ] Think\n",
        "**Result:** 🚧 Made\n",
    ] {
        assert!(document.contains(line), "{line}: {document}");
    }
    assert!(
        !document.contains("shell_exec\n**Result"),
        "it was not used: {document}"
    );
    let run = plan.project.runs().pop().unwrap();
    let result: Value =
        serde_json::from_slice(&std::fs::read(run.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["exit"], json!({"code": 1, "name": "stopped"}));
}

#[test]
fn the_user_is_asked_by_tools_that_are_there_at_the_terminal_alone() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Ask", "ask_user"), ("Approve", "request_approval")]),
        calls(&[("ask_user", json!({"question": "Which color?"}))]),
        response("It is known."),
        calls(&[("request_approval", json!({"question": "Paint it all?"}))]),
        response("It may be."),
        summary("Asked"),
    ]);
    let Some((shown, code)) = plan.in_terminal(
        "",
        &[
            ("plan> ", "Paint\r"),
            ("Which color?", ""),
            ("answer> ", "blue\r"),
            ("Paint it all?", ""),
            ("> ", "yes\r"),
            ("(yes/no/edit): ", "yes\r"),
            ("plan> ", "\u{4}"),
        ],
    ) else {
        return;
    };
    assert_eq!(code, 0, "{shown}");
    assert!(
        last_told(&server, 2).contains("[0] ✓ blue") || last_told(&server, 2).contains("blue"),
        "{shown}"
    );
    let names = query(&server, 1)["format"].to_string();
    assert!(names.contains("request_approval") && names.contains("ask_user"));
    assert!(
        plan.document()
            .contains("**Tools:** ask_user, request_approval\n")
    );
}

#[test]
fn an_approval_that_is_not_given_ends_the_list() {
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Approve", "request_approval"), ("Think", "analyze")]),
        calls(&[("request_approval", json!({"question": "Paint it all?"}))]),
        summary("Asked"),
    ]);
    let typed = [
        ("plan> ", "Paint\r"),
        ("Paint it all?", ""),
        ("> ", "no\r"),
        ("(yes/no/edit): ", "yes\r"),
        ("plan> ", "\u{4}"),
    ];
    let Some((shown, _)) = plan.in_terminal("", &typed) else {
        return;
    };
    assert!(shown.contains("User rejected"), "{shown}");
    assert!(plan.document().contains("**Status:** blocked\n"));
}

#[test]
fn a_tool_of_the_list_that_is_not_there_is_a_step_that_needs_none() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Fly", "fly"), ("Ask", "ask_user"), ("Think", "analyze")]),
        response("I fly."),
        response("I ask."),
        response("I think."),
        summary("Done"),
    ]);
    plan.work("Go").exits(0);
    assert_eq!(plan.document().matches("   **Tool:** analyze\n").count(), 3);
    assert_eq!(conversation(&server, 3).len(), 5);
}

#[test]
fn long_results_are_bounded() {
    let (told, _plan) = results(
        |plan| plan.with_file("long.txt", &"0123456789abcdef\n".repeat(1 << 14)),
        &[],
        &[("read_file", json!({"file_path": "long.txt"}))],
    );
    assert!(told.len() < 100 << 10, "{}", told.len());
}
