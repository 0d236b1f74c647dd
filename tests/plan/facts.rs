//! The facts of a plan: steps marked as done were done, and no step is lost or stuck.

use serde_json::{Value, json};

use crate::support::plan::{
    PlanProject, calls, conversation, last_told, queries, query, response, said, serving, summary,
    system, tasks, write,
};
use crate::support::{Answer, Finished, ModelServer, in_terminal};

/// A call of `shell_exec`.
fn shell(command: &str) -> String {
    calls(&[("shell_exec", json!({"command": command}))])
}

const FREE: [&str; 5] = ["-p", "Work", "--yes", "--gate", "off"];

#[test]
fn a_step_whose_last_command_has_failed_is_not_done_by_words() {
    let done = response("It is built.");
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Build", "shell_exec")]),
        shell("echo broken; exit 3"),
        done.clone(),
        shell("echo mended"),
        done.clone(),
        summary("Built"),
    ]);
    plan.run(&FREE).exits(0);
    assert!(last_told(&server, 2).starts_with("Tool results:\n[0] ❌ Error: exit code"));
    let told = last_told(&server, 3);
    assert!(
        told.starts_with("The last command of this step has failed"),
        "{told}"
    );
    assert_eq!(queries(&server), 6);
    // A model that claims the same again has failed.
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Build", "shell_exec")]),
        shell("exit 3"),
        done.clone(),
        done.clone(),
        done,
        summary("Built"),
    ]);
    plan.run(&FREE)
        .exits(1)
        .says(&["step 1 has failed: its last command has failed"]);
    assert!(plan.document().contains("**Result:** ❌ Built\n"));
}

#[test]
fn exit_code_1_is_an_answer_of_grep_diff_and_test_alone() {
    let commands = [
        "false",
        "ls | grep nothing-like-it",
        "test -e no",
        "diff build.sh /dev/null",
        "cd . && grep nothing-like-it build.sh",
        "sh -c 'exit 1' && test -f build.sh",
        "sh check.sh && grep -q . build.sh",
        "cat nothing && grep -q . build.sh",
        "sh check.sh; grep nothing-like-it build.sh",
        "sh check.sh | grep nothing-like-it",
        "true",
    ];
    let made = commands.map(|command| ("shell_exec", json!({"command": command})));
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Look", "shell_exec")]),
        calls(&made),
        response("It is seen."),
        summary("Seen"),
    ]);
    let plan = plan.with_file("check.sh", "exit 1\n");
    plan.run(&FREE).exits(0);
    let told = last_told(&server, 2);
    let signs = [
        "❌ Error:",
        "✓",
        "✓",
        "✓",
        "✓",
        "❌ Error:",
        "❌ Error:",
        "❌ Error:",
        "✓",
        "✓",
        "✓",
    ];
    for (index, sign) in signs.iter().enumerate() {
        assert!(
            told.contains(&format!("[{index}] {sign} ")),
            "{index}: {told}"
        );
    }
}

#[test]
fn a_write_that_changes_nothing_and_a_plan_that_changes_nothing_say_so() {
    const NOTHING: &str = "no file of the project was changed";
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Write", "write_file")]),
        write("a.txt", "a\n"),
        response("It is written."),
        summary("Written"),
    ]);
    let plan = plan.with_file("a.txt", "a\n");
    plan.work("Write").exits(0).says(&[NOTHING]);
    assert!(last_told(&server, 2).contains("is unchanged"));
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Write", "write_file")]),
        write("a.txt", "b\n"),
        response("It is written."),
        summary("Written"),
    ]);
    let run = plan.with_file("a.txt", "a\n").work("Write").exits(0);
    assert!(!run.stderr.contains(NOTHING), "{}", run.stderr);
}

#[test]
fn what_only_commands_have_changed_is_not_said_to_be_unchanged() {
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Make it", "shell_exec")]),
        shell("echo made > made.txt"),
        response("It is made."),
        summary("Made"),
    ]);
    let run = plan.run(&FREE).exits(0);
    let run = run.says(&["no file of the project was changed by a file tool"]);
    let undone = plan.project.run(&["undo", &run.folder]).exits(0);
    assert!(
        undone.stdout.contains("changed nothing by its file tools"),
        "{}",
        undone.stdout
    );
    let log = plan.project.run(&["log", &run.folder]).exits(0).stdout;
    assert!(log.contains("nothing (by its file tools)"), "{log}");
}

#[test]
fn work_that_was_not_summed_up_is_in_the_log_before_its_steps_are_replaced() {
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Write", "write_file"), ("Think", "analyze")]),
        write("a.txt", "a\n"),
        response("It is written."),
        response("It is thought."),
        "no".to_owned(),
        "no".to_owned(),
        "no".to_owned(),
        tasks(&[("Else", "analyze")]),
        response("It is done."),
        summary("Done"),
    ]);
    plan.work("Write it").exits(5);
    plan.run(&["--resume", "-p", "Something else"]).exits(0);
    let document = plan.document();
    let entry = " - Write it\n**Actions:** Not summed up. Done: Write; Think. Open: nothing. Files: a.txt.\n\
                 **Tools:** write_file\n**Result:** ✓ 2 of 2 steps are done\n";
    assert!(document.contains(entry), "{document}");
    assert!(document.ends_with("**Result:** ✓ Done\n"), "{document}");
}

#[test]
fn the_status_is_planning_in_progress_or_failed_as_it_stands() {
    let no = response("I have written it.");
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Write", "write_file")]),
        no.clone(),
        no.clone(),
        no,
        summary("Tried"),
        write("a.txt", "a\n"),
        response("It is written."),
        summary("Written"),
        tasks(&[("Think", "analyze")]),
        response("It is thought."),
        summary("Thought"),
    ]);
    plan.work("Write").exits(1);
    assert!(plan.document().contains("**Status:** failed\n"));
    plan.run(&["--resume", "-p", ""]).exits(0);
    plan.run(&["--resume", "-p", "Think"]).exits(0);
    for (nth, status) in [(5, "in_progress"), (8, "planning")] {
        let shown = system(&server, nth).pop().unwrap();
        assert!(
            shown.contains(&format!("**Status:** {status}\n")),
            "{nth}: {shown}"
        );
    }
    assert!(plan.document().contains("**Status:** completed\n"));
}

#[test]
fn a_question_ends_no_step_and_ten_calls_in_vain_say_what_was_done() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Think", "analyze")]),
        response("Which file contains the bug?"),
        response("It is main.rs."),
        summary("Found"),
    ]);
    plan.work("Think").exits(0);
    assert!(last_told(&server, 2).starts_with("A question does not end a step."));
    let mut replies = vec![tasks(&[("Look", "list_files")])];
    replies.extend(vec![calls(&[("list_files", json!({}))]); 10]);
    replies.push(summary("Looked"));
    let (plan, _server) = PlanProject::scripted(&replies);
    plan.work("Look")
        .exits(1)
        .says(&["it was not done in 10 calls; list_files succeeded"]);
}

#[test]
fn a_step_that_fails_for_want_of_consent_names_the_flag_that_gives_it() {
    let refused = calls(&[("shell_exec", json!({"command": "rm old.txt"}))]);
    let words = response("It is removed.");
    let steps = [tasks(&[("Remove", "shell_exec")]), refused.clone()];
    let by_words = [&steps[..], &vec![words; 3]].concat();
    for replies in [by_words, [&steps[..], &vec![refused; 9]].concat()] {
        let (plan, _server) = PlanProject::scripted(&[&replies[..], &[summary("Failed")]].concat());
        plan.work("Remove").exits(1).says(&[
            "no tool has succeeded",
            "; a call was refused that `--yes` allows",
        ]);
    }
}

#[test]
fn the_last_list_of_steps_that_is_shown_is_that_of_the_plan() {
    let words = response("It is done.");
    for (last, expected) in [
        (&[write("b.txt", "b\n"), words.clone()][..], "complete"),
        (&vec![words.clone(); 3], "pending"),
    ] {
        let begun = [
            tasks(&[("Write a.txt", "write_file"), ("Write b.txt", "write_file")]),
            write("a.txt", "a\n"),
            words.clone(),
        ];
        let (plan, _server) =
            PlanProject::scripted(&[&begun[..], last, &[summary("Ended")]].concat());
        let run = plan.run(&["-p", "Write", "--output-format", "jsonl"]);
        let events = run
            .stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut lists = events.filter_map(|event| event.get("tasks").cloned());
        let shown = lists.next_back().unwrap();
        assert_eq!(
            (&shown[0]["status"], &shown[1]["status"]),
            (&json!("complete"), &json!(expected))
        );
    }
}

#[test]
fn prompts_list_the_projects_files_and_how_a_step_ends() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Look", "list_files")]),
        calls(&[("list_files", json!({}))]),
        response("It is seen."),
        summary("Seen"),
    ]);
    let plan = plan.with_file("docs/deep/a.md", "a\n");
    plan.work("Look").exits(0);
    let shown = system(&server, 0).pop().unwrap();
    let (_, files) = shown.split_once("\n# Project Files\n\n").unwrap();
    assert!(
        files.contains("docs") && files.contains("build.sh") && !files.contains("deep"),
        "{files}"
    );
    assert!(!system(&server, 1).join("\n").contains("# Project Files"));
    assert_eq!(query(&server, 1)["keep_alive"], "30m");
    // The first message of a step contains only the task.
    assert_eq!(last_told(&server, 1), "Current task: Look");
    let told = last_told(&server, 2);
    let end = "\n\nDo the current task alone. If it is done, do not call a tool again: say so with \
               {\"response\": \"...\"}.\n\nCurrent task: Look";
    assert!(told.ends_with(end), "{told}");
}

#[test]
fn the_example_of_an_entry_is_no_entry() {
    let prompt = include_str!("../../prompts/plan_log_entry.txt");
    let example = &prompt[prompt.find('{').unwrap()..=prompt.rfind("\n}").unwrap() + 1];
    assert!(serde_json::from_str::<Value>(example).is_ok());
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Think", "analyze")]),
        response("It is thought."),
        example.to_owned(),
        summary("Thought").replace("Did the work", "Updated README.md with recent changes."),
        summary("Thought"),
    ]);
    plan.work("Think").exits(0);
    for nth in [3, 4] {
        assert!(last_told(&server, nth).contains("`log_entry` is the example's"));
    }
    assert!(plan.document().ends_with("**Result:** ✓ Thought\n"));
}

/// The same with a prompt window of this many tokens, and a larger model in a cloud.
fn with_window(plan: PlanProject, prompt: u64) -> PlanProject {
    let cloudy = json!({"provider": "openai", "contextWindow": 2300});
    plan.with_window(prompt, "cloudy", &cloudy)
}

#[test]
fn results_are_shortened_to_nothing_where_that_is_what_fits() {
    let read = ("read_file", json!({"file_path": "long.txt"}));
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Read", "read_file")]),
        calls(&vec![read; 60]),
        response("It is read."),
        summary("Read"),
    ]);
    let plan = with_window(plan.with_file("long.txt", &"word ".repeat(1500)), 7000);
    plan.work("Read").exits(0);
    let told = last_told(&server, 2);
    assert!(told.contains("[59] ✓ ") && told.len() < 60 * 300, "{told}");
}

#[test]
fn a_step_that_did_not_fit_is_begun_afresh_and_no_cloud_is_named() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Think", "analyze")]),
        response("It is thought."),
        summary("Thought"),
    ]);
    let plan = with_window(plan, 2200);
    let run = plan.work("Think").exits(4);
    assert!(!run.stderr.contains("cloudy"), "{}", run.stderr);
    assert_eq!(plan.session()["conversation"]["history"], json!([]));
    let plan = with_window(plan, 8000);
    plan.run(&["--resume", "-p", ""]).exits(0);
    let task = ("user".to_owned(), "Current task: Think".to_owned());
    assert_eq!(conversation(&server, 1), [task]);
}

#[test]
fn a_session_that_ends_at_once_can_be_resumed() {
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Think", "analyze")]),
        response("It is thought."),
        summary("Thought"),
    ]);
    // The run cannot begin, since its sandbox cannot.
    let strict = ["-p", "Think", "--sandbox", "strict"];
    let output = plan.command(&strict).env("PATH", "/none").output();
    Finished::new(&plan.project, &strict, output.unwrap()).says(&["bwrap"]);
    assert!(plan.project.runs().is_empty());
    plan.run(&["--resume", "-p", ""]).exits(0);
    assert_eq!(plan.session()["requests"], json!(["Think"]));
    assert!(plan.document().contains("1. [x] Think\n"));
}

#[test]
fn a_wrong_path_is_reported_before_any_file_is_made_or_any_server_asked() {
    let (plan, server) = PlanProject::scripted(&["no"]);
    plan.run(&["-p", "Think", "--plan-file", "../PLAN.md"])
        .exits(2);
    assert!(!plan.home("config").exists());
    assert!(server.requests().is_empty());
}

#[test]
fn questions_are_shown_whole_on_a_narrow_terminal() {
    let step =
        "Move the old database aside and put a new one in its place, then delete the old one";
    let mut long: Value = serde_json::from_str(&summary("Moved")).unwrap();
    long["log_entry"]["details"] =
        json!("Put a new database in place of the old one, and then deleted every backup of it");
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[(step, "analyze")]),
        response("It is done."),
        long.to_string(),
    ]);
    let typed = [
        ("plan> ", "Go\r"),
        ("(yes/no/edit): ", "yes\r"),
        ("plan> ", "\u{4}"),
    ];
    let Some((shown, _)) = in_terminal(&plan.command(&["--plain"]), 40, &typed) else {
        return;
    };
    let shown = console::strip_ansi_codes(&shown);
    let words: Vec<&str> = shown.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("delete the old one"), "{shown}");
    assert!(words.contains("deleted every backup of it"), "{shown}");
}

#[test]
fn a_plan_file_is_shown_by_its_path() {
    let (plan, _server) = PlanProject::scripted(&[tasks(&[("Think", "analyze")])]);
    plan.run(&["-p", "Think", "--plan-only", "--plan-file", "PLAN.md"])
        .exits(0);
    let shown = plan.run(&["show", "--plan-file", "PLAN.md"]).exits(0);
    assert_eq!(shown.stdout, plan.project.read("PLAN.md"));
    plan.run(&["show", "--plan-file", "no.md"]).exits(2);
    let (none, _server) = PlanProject::scripted(&["no"]);
    let none = none.run(&["show"]).exits(2);
    assert!(!none.stderr.contains("--resume"), "{}", none.stderr);
    none.says(&["there is no plan in", "hint: `code-commit plan` makes one"]);
}

#[test]
fn a_server_that_is_gone_leaves_the_programs_own_entry() {
    let replies = [
        tasks(&[("Write", "write_file"), ("Think", "analyze")]),
        write("a.txt", "a\n"),
        response("It is written."),
        response("It is thought."),
        summary("Done"),
    ];
    for (answered, done, open, result) in [
        (3, "Write", "Think", "🚧 1 of 2 steps are done"),
        (4, "Write; Think", "nothing", "✓ 2 of 2 steps are done"),
    ] {
        let (before, after) = replies.split_at(answered);
        let gone = || Answer::error(503, &json!({"error": "gone"}));
        let refused = || Answer::error(400, &json!({"error": "gone"}));
        let answers = before.iter().map(said);
        let answers = answers.chain([gone(), refused(), refused()]);
        let server = serving(answers.chain(after.iter().map(said)));
        let plan = PlanProject::new(&server);
        let run = plan.work("Write\nand think").exits(4);
        assert!(!run.stderr.contains("config.json"), "{}", run.stderr);
        let entry = format!(
            "- Write and think\n**Actions:** Not summed up. Done: {done}. Open: {open}. Files: a.txt.\n\
             **Tools:** write_file\n**Result:** {result}\n"
        );
        let document = plan.document();
        assert!(document.ends_with(&entry), "{document}");
        assert!(document.contains("**Status:** in_progress\n"), "{document}");
        // The next entry would be the same, and is not written again.
        let run = plan.run(&["--resume", "-p", ""]).exits(4);
        run.says(&["hint: the server rejected", "`contextWindow` in"]);
        assert_eq!(plan.document().matches("Not summed up").count(), 1);
        plan.run(&["--resume", "-p", ""]).exits(0);
        let document = plan.document();
        assert!(document.contains(&entry), "{document}");
        assert!(document.ends_with("**Result:** ✓ Done\n"), "{document}");
    }
}

#[test]
fn usage_errors_are_reported_before_anything_is_asked_or_created() {
    let (plan, server) = PlanProject::scripted(&[""]);
    for arguments in [
        &["-p", ""][..],
        &["-p", " "],
        &["--resume", "-p", "x"],
        &["--session", "none", "-p", "x"],
        &["show"],
        &["--replay", "none"],
        &["-p", "x", "--plan-file", "../PLAN.md"],
    ] {
        plan.run(arguments).exits(2);
        assert!(!plan.home("config").exists(), "{arguments:?}");
        assert!(!plan.home("sessions").exists(), "{arguments:?}");
        assert!(server.requests().is_empty(), "{arguments:?}");
    }
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Think", "analyze")]),
        response("So it is."),
        summary("Done"),
    ]);
    plan.work("Think").exits(0);
    let asked = server.requests().len();
    plan.run(&["--resume", "-p", ""]).exits(2);
    assert_eq!(server.requests().len(), asked);
}

#[test]
fn questions_are_shown_where_the_answers_are_piped() {
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("Build", "shell_exec")]),
        shell("echo built > a.txt"),
        response("It is built."),
        summary("Built"),
    ]);
    let run = plan.typed(&["--gate", "off"], "Build\nyes\nyes\n").exits(0);
    let [first, second] = [
        "yes/no> \n",
        "Does this summary look correct? (yes/no/edit): \n",
    ]
    .map(|question| run.stderr.find(question));
    assert!(first.is_some() && first < second, "{}", run.stderr);
    assert!(!run.stderr.contains("plan> "), "{}", run.stderr);
}

#[test]
fn unattended_prompts_do_not_mention_a_user() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Build", "shell_exec")]),
        shell("cp a b"),
        response("What next?"),
        response("It is built."),
        response("It is built."),
        summary("Built"),
    ]);
    plan.work("Build").exits(1);
    let specified = [
        include_str!("../../prompts/plan_agents.md"),
        include_str!("../../prompts/plan_examples.txt"),
        "4. Includes user interaction points (approval, feedback, etc.)",
        "Show diff to user for approval",
    ];
    for nth in 0..queries(&server) {
        let mut sent = system(&server, nth).join("\n");
        sent += &last_told(&server, nth);
        for words in specified {
            sent = sent.replace(words.trim_end(), "");
        }
        for word in ["approv", "ask the user", "Ask the user"] {
            assert!(!sent.contains(word), "{word}: {sent}");
        }
    }
}

#[test]
fn a_model_that_ollama_has_needs_no_entry() {
    let shown = json!({"model_info": {"general.architecture": "x", "x.context_length": 20_000}});
    for (name, window) in [("new", 20_000), ("new:latest", 20_000)] {
        let answers = [
            tasks(&[("Think", "analyze")]),
            response("So it is."),
            summary("Done"),
        ];
        let answers = [Answer::json(&shown)].into_iter().chain(answers.map(said));
        let server = ModelServer::with_models(&["new:latest"], answers);
        let plan = PlanProject::new(&server);
        plan.run(&["-p", "Think", "--model", name]).exits(0);
        for nth in 0..3 {
            let asked = query(&server, nth);
            assert_eq!(asked["model"], name);
            assert_eq!(asked["options"]["num_ctx"], window);
        }
        let shows = server.requests();
        let shows = shows.iter().filter(|asked| asked.line.contains("/show"));
        assert_eq!(shows.count(), 1);
        let run = plan.project.runs().pop().unwrap();
        let before = server.requests().len();
        plan.run(&["--replay", run.to_str().unwrap()]).exits(0);
        assert_eq!(server.requests().len(), before);
        plan.run(&["-p", "Think", "--model", "other"])
            .exits(2)
            .says(&["there is no model `other`"]);
    }
}
