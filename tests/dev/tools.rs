//! The tools, as a model uses them.

use std::fs;

use serde_json::json;

use crate::support::agent::{AgentProject, Endless, PASS, done, last_told, reply, told, write};

/// Runs these replies until the work passes, and returns the message to the model after each.
fn results(
    agent: AgentProject,
    server: &crate::support::ModelServer,
    count: usize,
) -> (AgentProject, Vec<String>) {
    agent.work("go").exits(0);
    let results = (1..=count).map(|nth| last_told(server, nth)).collect();
    (agent, results)
}

fn script(steps: &[String]) -> (AgentProject, crate::support::ModelServer) {
    let mut all = steps.to_vec();
    all.extend([done(), PASS.to_owned()]);
    AgentProject::scripted(&all)
}

#[test]
fn directories_are_listed_as_trees_and_by_globs() {
    let steps = [
        reply("LIST_DIRECTORY", "\".\""),
        reply("LIST_DIRECTORY", "\"src/**/*.ts\""),
        reply("LIST_DIRECTORY", "\"nothing/here\""),
    ];
    let (agent, server) = script(&steps);
    let agent = agent
        .with_file("src/routes/users.ts", "x")
        .with_file("src/index.ts", "x")
        .with_file("target/debug/huge", "x");
    let (_agent, told) = results(agent, &server, 3);
    assert!(
        told[0].contains("├── ") && told[0].contains("main.rs"),
        "{}",
        told[0]
    );
    assert!(
        !told[0].contains("huge") && !told[0].contains("gemini-key"),
        "{}",
        told[0]
    );
    assert!(
        told[1].contains("users.ts") && !told[1].contains("main.rs"),
        "{}",
        told[1]
    );
    assert!(
        told[2].contains("ERROR: ") && told[2].contains("nothing/here"),
        "{}",
        told[2]
    );
}

#[test]
fn a_replacement_needs_exactly_one_match() {
    let replace = |find: &str, replace: &str| {
        let input = format!("\"a.txt\"\n\n```find\n{find}\n```\n\n```replace\n{replace}\n```");
        reply("FIND_AND_REPLACE_IN_FILE", &input)
    };
    let steps = [
        replace("one", "1"),
        replace("absent", "2"),
        replace("two", "2"),
    ];
    let (agent, server) = script(&steps);
    let agent = agent.with_file("a.txt", "one\ntwo\none\n");
    let (agent, told) = results(agent, &server, 3);
    assert!(
        told[0].contains("lines 1") && told[0].contains('3'),
        "{}",
        told[0]
    );
    assert!(told[1].contains("ERROR: "), "{}", told[1]);
    assert_eq!(agent.project.read("a.txt"), "one\n2\none\n");
}

#[test]
fn writes_are_held_against_the_path_policy_and_can_be_undone() {
    let steps = [
        write("../outside.txt", "x\n"),
        write("/etc/outside.txt", "x\n"),
        write("agent-config/models.json", "x\n"),
        write(".git/hooks/pre-commit", "x\n"),
        write("logs/x", "x\n"),
        write("src/main.rs", "fn main() { work() }\n"),
        write("new/deep/file.rs", "x\n"),
    ];
    let (agent, server) = script(&steps);
    let (agent, told) = results(agent, &server, 7);
    for refused in &told[..5] {
        assert!(refused.contains("ERROR: "), "{refused}");
    }
    assert!(told[0].contains("--allow-outside"), "{}", told[0]);
    assert_eq!(agent.project.read("src/main.rs"), "fn main() { work() }\n");
    assert_eq!(agent.project.read("new/deep/file.rs"), "x\n");
    let run = agent.project.runs().pop().unwrap();
    let result: serde_json::Value =
        serde_json::from_slice(&fs::read(run.join("result.json")).unwrap()).unwrap();
    assert_eq!(result["tree"], "changed");
    assert_eq!(result["stat"]["files"], 2);
    agent.project.run(&["diff"]).exits(0);
    agent.project.run(&["undo"]).exits(0);
    assert_eq!(agent.project.read("src/main.rs"), "fn main() {}\n");
    assert!(!agent.project.path("new").exists());
}

#[test]
fn a_change_that_loses_code_is_refused_and_a_file_that_is_split_may_shrink() {
    let lines = |numbers: std::ops::Range<u32>| {
        numbers
            .map(|n| format!("fn f{n}() {{}}\n"))
            .collect::<String>()
    };
    let rest = lines(5..100);
    let replace =
        format!("\"src/long.rs\"\n\n```find\n{rest}```\n\n```replace\n// [остальной код]\n```");
    let steps = [
        write("src/long.rs", "fn f0() {}\n// ... le reste du code\n"),
        reply("FIND_AND_REPLACE_IN_FILE", &replace),
        write("src/long.rs", "mod part;\n"),
        write("[src/new.rs]", "fn a() {}\n"),
        write(
            "src/new.rs",
            "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        ),
        write("src/part.rs", &lines(0..90)),
        write("src/long.rs", "mod part;\n"),
    ];
    let (agent, server) = script(&steps);
    let agent = agent.with_file("src/long.rs", &lines(0..100));
    let run = agent.work("go").exits(0);
    let told: Vec<String> = (1..=7).map(|nth| last_told(&server, nth)).collect();
    for (told, fault) in told.iter().zip([
        "ERROR: `src/long.rs`: a comment on line 2 of the new text takes the place of 99 lines",
        "ERROR: `src/long.rs`: a comment on line 6 of the new text takes the place of 95 lines",
        "ERROR: `src/long.rs` would shrink from 100 lines to 1",
        "ERROR: `[src/new.rs]` is a path with something around it: write `src/new.rs`",
        "ERROR: `src/new.rs`: a conflict or search/replace marker, on line 1",
    ]) {
        assert!(told.contains(fault), "{told}");
    }
    assert!(
        !told[5].contains("ERROR: ") && !told[6].contains("ERROR: "),
        "{told:?}"
    );
    assert_eq!(agent.project.read("src/long.rs"), "mod part;\n");
    assert!(!agent.project.path("[src/new.rs]").exists());
    run.says(&[
        "`--allow-elision` accepts it",
        "`--allow-shrink` accepts it",
        "`--allow-form` accepts it",
    ]);
}

#[test]
fn the_user_may_let_an_agent_shrink_a_file() {
    let long = "fn f() {}\n".repeat(100);
    let steps = [write("src/long.rs", "fn f() {}\n")];
    for arguments in [&["-p", "go", "--allow-shrink"][..], &["-p", "cut long.rs"]] {
        let (agent, _server) = script(&steps);
        let agent = agent.with_file("src/long.rs", &long);
        agent.run(arguments).exits(0);
        assert_eq!(agent.project.read("src/long.rs"), "fn f() {}\n");
    }
}

#[test]
fn agent_writes_protected_files_with_a_warning_and_undo_restores_them() {
    let replace = "\"build.sh\"\n\n```find\necho one\n```\n\n```replace\necho two\n```";
    let steps = [
        write("build.sh", "#!/bin/sh\necho one\n"),
        reply("FIND_AND_REPLACE_IN_FILE", replace),
        write("local.txt", "new\n"),
        write("src/.gitignore", "*.tmp\n"),
        write("logs/x", "x\n"),
    ];
    let (agent, server) = script(&steps);
    let ignored = format!("{}\n/local.txt\n", agent.project.read(".gitignore"));
    let agent = agent
        .with_file(".gitignore", &ignored)
        .with_file("local.txt", "old\n");
    let before = agent.project.read("build.sh");
    let run = agent.work("go").exits(0);
    for (nth, said) in [
        (1, "\nwarning: `build.sh` is protected: "),
        (2, "\nwarning: `build.sh` is protected: "),
        (3, "\nwarning: git ignores `local.txt`"),
        (4, "\nwarning: `src/.gitignore` is protected: "),
        (5, "ERROR: `logs/x`: this directory is protected"),
    ] {
        let told = last_told(&server, nth);
        assert!(told.contains(said), "{told}");
    }
    let warnings = run.result()["warnings"].to_string();
    assert_eq!(
        warnings.matches("`build.sh` is protected").count(),
        1,
        "{warnings}"
    );
    assert_eq!(agent.project.read("build.sh"), "#!/bin/sh\necho two\n");
    assert_eq!(agent.project.read("local.txt"), "new\n");
    agent.project.run(&["diff"]).exits(0).says(&[]);
    agent.project.run(&["undo"]).exits(0);
    assert_eq!(agent.project.read("build.sh"), before);
    assert_eq!(agent.project.read("local.txt"), "old\n");
    assert!(!agent.project.path("src/.gitignore").exists());
}

#[test]
fn forged_record_cannot_undo_files_reserved_for_agents() {
    let (agent, _server) = script(&[write("src/main.rs", "x\n")]);
    let run = agent.work("go").exits(0);
    let log = format!("logs/{}/changes.json", run.folder);
    let forged = agent.project.read(&log).replace("src/main.rs", "build.sh");
    fs::write(agent.project.path(&log), forged).unwrap();
    agent
        .project
        .run(&["undo"])
        .exits(6)
        .says(&["it names `build.sh`, which no run may change"]);
}

#[test]
fn outside_is_reached_where_that_is_allowed() {
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().join("o.txt");
    let shown = path.to_str().unwrap();
    let replies = [
        write(shown, "out\n"),
        reply("READ_FILE", &format!("\"{shown}\"")),
        done(),
        PASS.to_owned(),
    ];
    let (agent, server) = AgentProject::scripted(&replies);
    agent.run(&["-p", "go", "--allow-outside"]).exits(0);
    assert_eq!(fs::read_to_string(&path).unwrap(), "out\n");
    let told = last_told(&server, 2);
    assert!(told.contains(">\nout\n<"), "{told}");
    let told = last_told(&server, 1);
    assert!(
        told.contains("\nwarning: it is outside the project"),
        "{told}"
    );
}

#[test]
fn the_homes_and_permissions_of_all_agents_are_closed_to_the_file_tools() {
    let homes = tempfile::tempdir().unwrap();
    let home = |path: &str| homes.path().join(path);
    for (path, content) in [
        ("chat/auth.json", r#"{"version": 1, "accounts": []}"#),
        ("chat/trusted.json", "{}"),
        ("plan/history", "a request of mine"),
    ] {
        fs::create_dir_all(home(path).parent().unwrap()).unwrap();
        fs::write(home(path), content).unwrap();
    }
    let shown = |path: &str| home(path).to_str().unwrap().to_owned();
    let never =
        r#"{"version": 1, "permissions": [{"tool": "execute_command", "action": "never"}]}"#;
    let steps = [
        write(".agent/permissions.json", "{}\n"),
        write(".agent/commands/x.md", "x\n"),
        reply("READ_FILE", &format!("\"{}\"", shown("chat/auth.json"))),
        write(&shown("chat/trusted.json"), "{\"version\": 1}\n"),
        reply("READ_FILE", &format!("\"{}\"", shown("plan/history"))),
    ];
    let replies = [&steps[..], &[done(), PASS.to_owned()]].concat();
    let (agent, server) = AgentProject::scripted(&replies);
    let agent = agent
        .with_file(".agent/permissions.json", never)
        .with_variable("AGENT_HOME", &shown("chat"))
        .with_variable("OLLAMA_AGENT_HOME", &shown("plan"));
    agent.run(&["-p", "go", "--allow-outside"]);
    for step in 1..=steps.len() {
        let told = last_told(&server, step);
        assert!(
            told.contains("belongs to the agents' settings and sessions"),
            "{step}: {told}"
        );
        assert!(!told.contains("accounts") && !told.contains("of mine"));
    }
    assert_eq!(agent.project.read(".agent/permissions.json"), never);
    assert!(!agent.project.path(".agent/commands/x.md").exists());
    assert_eq!(fs::read_to_string(home("chat/trusted.json")).unwrap(), "{}");
}

#[test]
fn credential_files_are_neither_read_nor_replaced() {
    let steps = [
        reply("READ_FILE", "\".env\""),
        write(".env", "A=2\n"),
        write("id_rsa", "A=2\n"),
        write("new/server.pem", "A=2\n"),
        write("new/.env", "A=3\n"),
    ];
    let (agent, server) = script(&steps);
    let agent = agent.with_file(".env", "A=1\n");
    let (agent, results) = results(agent, &server, 5);
    for told in &results[..4] {
        assert!(
            told.contains("commonly holds credentials, and is neither"),
            "{told}"
        );
    }
    assert!(results[4].contains("\nwarning: such a file commonly holds credentials"));
    for key in ["id_rsa", "new/server.pem"] {
        assert!(!agent.project.path(key).exists(), "{key}");
    }
    assert_eq!(agent.project.read(".env"), "A=1\n");
    // The agent may use files that it has created itself.
    assert_eq!(agent.project.read("new/.env"), "A=3\n");
}

#[test]
fn a_command_that_takes_long_continues_in_the_background_and_ends_with_the_session() {
    let endless = Endless::new();
    let replies = [
        reply("COMMAND", &format!("echo early; {}", endless.command())),
        reply("LIST_BACKGROUND_PROCESSES", ""),
        reply("READ_BACKGROUND_PROCESS", "proc_nosuch"),
        done(),
        PASS.to_owned(),
    ];
    let (agent, server) = AgentProject::scripted(&replies);
    let agent = agent.configured(&json!({"commandTimeout": 1}));
    agent.work("go").exits(0);
    let first = last_told(&server, 1);
    assert!(first.contains("Command backgrounded as proc_"), "{first}");
    assert!(first.contains("early"), "{first}");
    let id = &first[first.find("proc_").unwrap()..][.."proc_abc123".len()];
    assert!(
        last_told(&server, 2).contains(id),
        "{}",
        last_told(&server, 2)
    );
    let unknown = last_told(&server, 3);
    assert!(
        unknown.contains("ERROR: ") && unknown.contains(id),
        "{unknown}"
    );
    assert!(endless.ends(), "the command goes on after the session");
}

#[test]
fn output_is_bounded_and_the_middle_is_counted() {
    let steps = [reply("COMMAND", "seq 1 200000")];
    let (agent, server) = script(&steps);
    let (_agent, told) = results(agent, &server, 1);
    assert!(told[0].len() < 40_000, "{}", told[0].len());
    assert!(told[0].contains("\n1\n2\n") && told[0].contains("\n200000\n"));
    assert!(told[0].contains("left out"), "{}", &told[0][..300]);
}

#[test]
fn a_file_is_read_by_its_lines() {
    let long: String = (1..=9000).map(|line| format!("line {line}\n")).collect();
    let steps = [
        reply("READ_FILE", "\"long.txt\"\n10-11"),
        reply("READ_FILE", "\"long.txt\"\n\nLines: 12"),
        reply("READ_FILE", "\"long.txt\""),
        reply("READ_FILE", "\"long.txt\"\nand quickly"),
    ];
    let (agent, server) = script(&steps);
    let (_agent, told) = results(agent.with_file("long.txt", &long), &server, 4);
    for (told, said) in told.iter().zip([
        "these are lines 10-11]\nline 10\nline 11\n</tool_result>",
        "these are lines 12-12]\nline 12\n</tool_result>",
        "the middle is left out; read on with `lines` 1",
        "nothing is expected here but a range of lines such as `10-80`",
    ]) {
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn a_question_is_for_interactive_sessions() {
    let question = reply("ASK_USER", "JWT or sessions?");
    let (agent, server) = script(std::slice::from_ref(&question));
    agent.work("go").exits(0);
    assert!(!told(&server, 0).contains("ASK_USER"));
    assert!(
        last_told(&server, 1).contains("ASK_USER"),
        "{}",
        last_told(&server, 1)
    );

    let (agent, server) = script(&[question]);
    agent.typed(&[], "go\nJWT, please\n").exits(0);
    assert!(
        last_told(&server, 1).contains("JWT, please"),
        "{}",
        last_told(&server, 1)
    );
}

#[test]
fn odd_files_left_by_a_command_do_not_end_the_run() {
    let steps = [
        write("a.txt", "a\n"),
        reply("COMMAND", "rm a.txt; mkfifo a.txt"),
        reply("COMMAND", "rm -rf logs; echo gone"),
        write("b.txt", "b\n"),
    ];
    let (agent, server) = script(&steps);
    let run = agent
        .run(&["--sandbox", "off", "-p", "go"])
        .exits(0)
        .says(&["a command has removed the run's folder"]);
    assert!(
        last_told(&server, 3).contains("gone"),
        "{}",
        last_told(&server, 3)
    );
    assert!(run.files().contains(&"0004-step-tool.txt".to_owned()));
    assert_eq!(agent.project.read("b.txt"), "b\n");
}

/// A command that agents often run.
const ADD_ALL: &str = "git init --quiet && git add --all && git status --short";

#[test]
fn a_project_needs_no_set_up_and_none_of_the_programs_own_files_get_into_git() {
    let steps = [
        reply("COMMAND", ADD_ALL),
        reply("COMMAND", "echo still here"),
        reply("LIST_DIRECTORY", "\".\""),
    ];
    let (agent, server) = script(&steps);
    for path in [".gitignore", "agent-config", "logs", "target"] {
        let path = agent.project.path(path);
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    }
    let (_agent, results) = results(agent, &server, 3);
    assert!(results[0].contains("A  src/main.rs"), "{}", results[0]);
    for told in [&results[0], &results[2]] {
        assert!(
            !told.contains("agent-config") && !told.contains("logs"),
            "{told}"
        );
    }
    assert!(results[1].contains("still here"), "{}", results[1]);
}

#[test]
fn logs_among_files_of_the_projects_own_stay_out_of_git() {
    let (agent, server) = script(&[reply("COMMAND", ADD_ALL)]);
    let agent = agent.with_file("logs/app.log", "mine\n");
    fs::remove_file(agent.project.path(".gitignore")).unwrap();
    fs::remove_dir_all(agent.project.path("agent-config")).unwrap();
    let (_agent, results) = results(agent, &server, 1);
    let told = &results[0];
    assert!(
        told.contains("logs/app.log") && !told.contains("-dev"),
        "{told}"
    );
}

#[test]
fn an_agent_does_not_begin_where_a_key_could_be_committed() {
    let (agent, server) = script(&[]);
    fs::remove_file(agent.project.path(".gitignore")).unwrap();
    agent.work("go").exits(3).says(&[
        "`.gitignore` is missing",
        "so that keys are never committed",
    ]);
    let agent = agent.with_file(".gitignore", "/target\n");
    agent
        .work("go")
        .exits(3)
        .says(&["does not ignore `/agent-config`", "hint:"]);
    assert!(server.requests().is_empty());
}

#[test]
fn a_question_is_shown_however_quiet_the_rest_is() {
    let question = reply("ASK_USER", "JWT or sessions?");
    let (agent, _server) = script(&[question]);
    agent
        .typed(&["--quiet"], "go\nJWT\n")
        .exits(0)
        .says(&["JWT or sessions?"]);
}

#[test]
fn the_undo_of_an_agents_run_is_kept_from_git_as_the_run_is() {
    let (agent, _server) =
        AgentProject::scripted(&[write("a.txt", "a\n"), done(), PASS.to_owned()]);
    let agent = agent
        .with_file(".gitignore", "/agent-config\n")
        .with_file("logs/keep", "");
    let run = agent.work("go").exits(0);
    let undo = agent.project.run(&["undo"]).exits(0);
    for folder in [run.folder, undo.folder] {
        let ignored = agent.project.read(&format!("logs/{folder}/.gitignore"));
        assert_eq!(ignored, "*\n", "{folder}");
    }
}
