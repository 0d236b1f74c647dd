//! The manifest, its lock file, and the check of both.

use std::fs;

use serde_json::{Value, json};

use super::{Fleet, change, git, with};
use crate::docs::document;
use crate::support::{GEMINI_KEY, ModelServer};

/// Invalid tasks, each with the field and the error message.
fn mistakes() -> Vec<(Value, &'static str)> {
    let base = || change("a");
    let flags = |flags: Value| with(base(), &json!({"flags": flags}));
    let field = |name: &str, value: Value| with(base(), &json!({name: value}));
    let report = |more: Value| {
        let task = json!({"id": "a", "repository": "web", "workflow": "consistency"});
        with(task, &more)
    };
    vec![
        (field("id", json!("../a")), "an id is made of"),
        (field("id", json!("a/b")), "an id is made of"),
        (field("id", json!(".git")), "an id is made of"),
        (field("id", json!("a.lock")), "an id is made of"),
        (field("id", json!("")), "an id is made of"),
        (field("repository", json!("")), "name a repository"),
        (
            field("repository", json!("--upload-pack=x")),
            "name a repository",
        ),
        (
            field("repository", json!("ext::sh -c x")),
            "a transport of git's",
        ),
        (field("id", json!("Ledger.jsonl")), "the campaign's ledger"),
        (field("id", json!("Report.HTML")), "an id is made of"),
        (field("id", json!("a.Lock")), "an id is made of"),
        (field("max_cost", json!(0)), "it must be more than 0"),
        (
            field("repository", json!("ext://sh")),
            "a URL begins with one of",
        ),
        (
            field("repository", json!("https://me:word@example.com/x")),
            "may hold a secret",
        ),
        (
            field("repository", json!("https://token@example.com/x")),
            "may hold a secret",
        ),
        (field("ref", json!("--all")), "name a branch"),
        (field("ref", json!("a..b c")), "name a branch"),
        (field("ref", json!("HEAD~1")), "name a branch"),
        (field("query", json!(" ")), "the query is empty"),
        (field("query_file", json!("q.txt")), "give either"),
        (
            json!({"id": "a", "repository": "web"}),
            "a task needs a `query`",
        ),
        (
            json!({"id": "a", "repository": "web", "query_file": "../q"}),
            "name a file in the manifest's directory",
        ),
        (
            json!({"id": "a", "repository": "web", "query_file": "/etc/passwd"}),
            "name a file in the manifest's directory",
        ),
        (
            json!({"id": "a", "repository": "web", "query_file": "link"}),
            "leads out of the manifest's directory",
        ),
        (
            json!({"id": "a", "repository": "web", "query_file": "none.txt"}),
            "No such file",
        ),
        (report(json!({"query": "x"})), "takes no query"),
        (
            report(json!({"flags": {"ci": true}})),
            "cannot be used with",
        ),
        (field("workflow", json!("chat")), "unknown variant `chat`"),
        (field("color", json!("red")), "unknown field `color`"),
        (field("max_cost", json!(-1)), "an amount of dollars"),
        (
            field("env_key", json!("a-b")),
            "name the environment variable",
        ),
        (field("build", json!("none.sh")), "No such file"),
        (flags(json!({"root": "/"})), "given by the fleet"),
        (flags(json!({"staged": true})), "given by the fleet"),
        (
            flags(json!({"output-format": "text"})),
            "given by the fleet",
        ),
        (flags(json!({"cc": true})), "given by the fleet"),
        (flags(json!({"root=/": true})), "no name of a flag"),
        (flags(json!({"ci": {}})), "a value that no flag takes"),
        (
            flags(json!({"colour": true})),
            "unexpected argument '--colour'",
        ),
        (flags(json!({"tier": "gold"})), "invalid value 'gold'"),
        (
            flags(json!({"allow-stale": true, "require-fresh": true})),
            "cannot be used with",
        ),
    ]
}

#[test]
fn every_mistake_is_reported_by_its_line_and_column() {
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    std::os::unix::fs::symlink("/etc/passwd", fleet.path("link")).unwrap();
    let (tasks, expected): (Vec<Value>, Vec<&str>) = mistakes().into_iter().unzip();
    for (task, expected) in tasks.iter().zip(expected) {
        fleet.tasks(&[change("first"), task.clone()]);
        let checked = fleet.run(&["check", "tasks.jsonl"]).exits(3);
        checked.says(&[expected]);
        if !expected.is_empty() {
            let checked = fleet.run(&["check", "tasks.jsonl"]);
            checked.says(&["tasks.jsonl` has mistakes:\n  line 2, column "]);
        }
    }
    // The position is that of the value.
    let line = r#"{"id": "b", "repository": "web", "query": "x", "flags": {"colour": 1}}"#;
    fs::write(fleet.path("tasks.jsonl"), format!("{line}\n\n{{\n")).unwrap();
    let column = line.find(r#"{"colour"#).unwrap() + 1;
    let told = fleet.run(&["check", "tasks.jsonl"]).exits(3);
    told.says(&[
        &format!("line 1, column {column}: "),
        "line 2, column 1: ",
        "line 3, column 2: ",
    ]);
}

#[test]
fn a_flag_that_is_off_exists_in_the_tasks_workflow() {
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    for (workflow, flag) in [("commit", "baselin"), ("dev", "baseline"), ("plan", "cc-")] {
        let more = json!({"workflow": workflow, "flags": {flag: false}});
        fleet.tasks(&[change("first"), with(change("a"), &more)]);
        let checked = fleet.run(&["check", "tasks.jsonl"]).exits(3);
        checked.says(&[
            "tasks.jsonl` has mistakes:\n  line 2, column ",
            &format!("there is no flag `--{flag}`"),
        ]);
    }
    let flags = json!({"flags": {"baseline": false}});
    fleet.tasks(&[with(change("a"), &flags)]);
    fleet.run(&["check", "tasks.jsonl"]).exits(0);
}

#[test]
fn an_id_is_there_once_however_it_is_written() {
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    fleet.tasks(&[change("web-1"), change("Web-1")]);
    // A single task is reported, too.
    for told in [
        fleet.run(&["check", "tasks.jsonl"]),
        fleet.task("0"),
        fleet.task("1"),
    ] {
        let told = told.exits(3);
        told.says(&["line 2, column 7: there is a task `Web-1` already"]);
    }
    fleet.tasks(&[change("a"), with(change("b"), &json!({"color": "red"}))]);
    fleet.task("0").exits(3).says(&["unknown field `color`"]);
    assert!(!fleet.has("out"));
}

#[test]
fn a_key_in_a_manifest_is_refused_and_never_shown() {
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    for (field, value) in [("env_key", GEMINI_KEY), ("query", GEMINI_KEY)] {
        fleet.tasks(&[with(change("a"), &json!({field: value}))]);
        for arguments in [
            &["check", "tasks.jsonl"][..],
            &["task", "tasks.jsonl", "0", "--out", "out"],
        ] {
            let told = fleet.run(arguments).exits(3);
            assert!(!told.stderr.contains(GEMINI_KEY), "{}", told.stderr);
            told.says(&["contains credentials", "line 1: "]);
        }
    }
}

#[test]
fn a_check_shows_the_cost_and_what_is_not_ready_and_sends_nothing() {
    let server = ModelServer::gemini(&[]);
    let fleet = Fleet::new(&server);
    fleet.repository("none", "exit 1");
    fs::remove_file(fleet.path("none/build.sh")).unwrap();
    git(
        &fleet.path("none"),
        &["commit", "--quiet", "-am", "without"],
    );
    let script = "#!/bin/sh\nexit 0\n";
    let built = json!({"id": "built", "repository": "none", "query": "x", "build": script});
    let report = json!({"id": "report", "repository": "web", "workflow": "consistency"});
    let limited = with(change("limited"), &json!({"max_cost": 0.25}));
    fleet.tasks(&[change("a"), limited, report, built]);
    let checked = fleet.run(&["check", "tasks.jsonl"]).exits(0);
    let line = |id: &str| {
        let mut lines = checked.stdout.lines();
        lines.find(|line| line.starts_with(id)).unwrap().to_owned()
    };
    assert!(line("a: ").contains("likely $0.08"), "{}", checked.stdout);
    assert!(
        line("limited: ").ends_with("at most $0.25"),
        "{}",
        checked.stdout
    );
    assert!(
        line("4 tasks: ").contains("likely $0."),
        "{}",
        checked.stdout
    );
    fleet.tasks(&[
        change("a"),
        json!({"id": "b", "repository": "nowhere", "query": "x"}),
        json!({"id": "c", "repository": "none", "query": "x"}),
        with(change("d"), &json!({"ref": "no-such"})),
        with(change("e"), &json!({"env_key": "NOT_SET"})),
        with(change("f"), &json!({"model": "no-such"})),
    ]);
    let told = fleet.run(&["check", "tasks.jsonl"]).exits(3);
    let told = told.says(&["5 of 6 tasks are not ready"]);
    for problem in [
        "6 tasks: likely unknown, at most unknown",
        "b: not ready: ",
        "`build.sh`",
        "no-such",
        "`NOT_SET`",
    ] {
        assert!(told.stdout.contains(problem), "{problem}: {}", told.stdout);
    }
    let told = fleet
        .run(&["check", "tasks.jsonl", "--output-format", "json"])
        .exits(3);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let problems = told["error"]["problems"].as_array().unwrap();
    let messages = problems
        .iter()
        .map(|problem| problem["message"].as_str().unwrap());
    let ids: Vec<&str> = messages
        .map(|it| it.split(": not ready: ").next().unwrap())
        .collect();
    assert_eq!(ids, ["b", "c", "d", "e", "f"]);
    assert_eq!(problems[3]["hint"], "set it to the API key");
    assert!(server.requests().is_empty() && !fleet.has("tasks.jsonl.lock"));
}

#[test]
fn a_check_shows_what_an_agents_model_lacks() {
    let server = ModelServer::gemini(&[]);
    let mut fleet = Fleet::new(&server);
    let home = fleet.path("home").display().to_string();
    fs::create_dir(&home).unwrap();
    let project = fleet.project.variable("HOME", &home);
    fleet.project = project.without("agent-config/openai-key.txt");
    let agent = |id: &str, workflow: &str, model: &str| {
        let more = json!({"workflow": workflow, "model": model, "max_cost": 1});
        with(change(id), &more)
    };
    let own = with(
        agent("f", "dev", "gpt-5"),
        &json!({"env_key": "GEMINI_API_KEY"}),
    );
    let tasks = [
        agent("a", "dev", "no-such"),
        agent("b", "plan", "no-such"),
        agent("c", "dev", "gpt-5"),
        agent("d", "plan", "gpt-5"),
        agent("e", "dev", "gemini-2.5-pro"),
        own,
        agent("g", "plan", "gemini-2.5-pro"),
    ];
    fleet.tasks(&tasks);
    let told = fleet.run(&["check", "tasks.jsonl"]).exits(3);
    let told = told.says(&["4 of 7 tasks are not ready"]);
    let lines = told.stdout.lines().filter(|line| !line.starts_with(' '));
    for (line, expected) in lines.zip([
        "a: not ready: ",
        "b: not ready: ",
        "c: not ready: ",
        "d: not ready: ",
        "e: likely unknown, at most $1.00",
        "f: likely unknown, at most $1.00",
        "g: likely unknown, at most $1.00",
    ]) {
        assert!(line.starts_with(expected), "{}", told.stdout);
    }
    for (problem, count) in [("there is no model `no-such`", 2), ("openai-key.txt", 2)] {
        let told = &told.stdout;
        assert!(told.matches(problem).count() >= count, "{told}");
    }
    assert!(server.requests().is_empty());
}

#[test]
fn a_check_says_what_the_start_will_say() {
    let server = ModelServer::gemini(&[super::GOOD]);
    let fleet = Fleet::new(&server);
    let limited = |limit: f64| with(change("a"), &json!({"max_cost": limit}));
    let report = json!({"id": "r", "repository": "web", "workflow": "consistency", "flags": {"if-changed": true, "findings": "json"}});
    fleet.tasks(&[limited(0.0001), report.clone()]);
    let told = fleet.run(&["check", "tasks.jsonl"]).exits(3);
    let told = told.says(&["1 of 2 tasks is not ready"]);
    assert!(
        told.stdout.contains("a: not ready: ")
            && told
                .stdout
                .contains("the first call would exceed `--max-cost`")
            && told.stdout.contains("r: likely $0."),
        "{}",
        told.stdout
    );
    fleet.tasks(&[limited(2.0), report]);
    fleet.run(&["check", "tasks.jsonl"]).exits(0);
    fleet.task("0").exits(0);
    // Changes since the lock are reported by both, and completely.
    let other = with(limited(2.0), &json!({"query": "Another."}));
    fleet.tasks(&[other]);
    for told in [
        fleet.run(&["check", "tasks.jsonl"]),
        fleet.run(&["run", "tasks.jsonl", "--out", "out"]),
    ] {
        told.exits(3)
            .says(&["tasks.jsonl.lock` is for another query of `a`"]);
    }
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn lock_file_of_another_program_is_refused() {
    let fleet = Fleet::new(&ModelServer::gemini(&[super::GOOD]));
    fleet.tasks(&[change("a")]);
    fleet.task("0").exits(0);
    let lock = fleet.project.read("tasks.jsonl.lock");
    let (first, tasks) = lock.split_once('\n').unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    let begun_by = |program: Value| {
        let first = json!({"program": with(first["program"].clone(), &program)});
        fs::write(fleet.path("tasks.jsonl.lock"), format!("{first}\n{tasks}")).unwrap();
        fleet.task("0")
    };
    // As if another machine had written it.
    begun_by(json!({"state": "x"})).exits(0);
    let told = begun_by(json!({"digest": "0".repeat(64)})).exits(3);
    told.says(&["is for another program"]);
}

#[test]
fn restart_refuses_changed_inputs_except_a_moved_branch() {
    let server = ModelServer::gemini(&[super::GOOD, super::GOOD]);
    let fleet = Fleet::new(&server);
    let begun = git(&fleet.path("web"), &["rev-parse", "HEAD"]);
    fs::write(fleet.path("q.txt"), "Write the answer.\n").unwrap();
    let task = json!({"id": "b", "repository": "web", "query_file": "q.txt"});
    fleet.tasks(&[change("a"), task.clone()]);
    fleet.task("0").exits(0);
    fleet.task("1").exits(0);
    let lock = fleet.project.read("tasks.jsonl.lock");
    let written: Value = serde_json::from_str(lock.lines().nth(1).unwrap()).unwrap();
    // `printf 'Write the answer.' | sha256sum`
    assert_eq!(
        written["task"]["query"],
        "c5d24cd978ee81521375f7535d66f31a960fe9daba5a0500ac28fefdf0f657a8"
    );
    // Results are regenerated from the lock file.
    fs::remove_dir_all(fleet.path("out/b")).unwrap();
    git(
        &fleet.path("web"),
        &["commit", "--quiet", "--allow-empty", "-m", "more"],
    );
    fs::write(fleet.path("q.txt"), "Write another answer.\n").unwrap();
    let told = fleet.task("1").exits(3);
    told.says(&["tasks.jsonl.lock` is for another query of `b`"]);
    fs::write(fleet.path("q.txt"), "Write the answer.\n").unwrap();
    let other = with(task.clone(), &json!({"flags": {"reask": 1}}));
    fleet.tasks(&[change("a"), other]);
    fleet.task("1").exits(3).says(&["is for another task `b`"]);
    // Labels and limits may change.
    fleet.tasks(&[
        change("a"),
        with(task, &json!({"labels": {"team": "x"}, "max_cost": 2})),
    ]);
    fleet.task("1").exits(4);
    assert_eq!(fleet.result("b")["task"]["commit"], begun.trim());
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn the_published_schema_says_what_the_program_says() {
    let schema: Value = serde_json::from_str(&document("examples/fleet/task.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    for line in document("examples/fleet/tasks.jsonl").lines() {
        let task: Value = serde_json::from_str(line).unwrap();
        assert!(schema.is_valid(&task), "{line}");
    }
    // The task does not include data that only the program has: files, other tasks, and its flags.
    let beyond = [
        "No such file",
        "leads out",
        "unexpected argument",
        "invalid value",
        "cannot be used",
        "",
    ];
    for (task, expected) in mistakes() {
        let is_beyond = beyond
            .iter()
            .any(|it| *it == expected || (!it.is_empty() && expected.contains(it)));
        assert!(is_beyond || !schema.is_valid(&task), "{task}");
    }
    let whole = json!({"$schema": "task.schema.json", "id": "a", "repository": "web", "ref": "main", "query": "x",
        "workflow": "commit", "model": "gpt-5", "flags": {"ci": true, "reask": 2, "protect": ["a", "b"]},
        "build": "#!/bin/sh\n", "env_key": "MY_KEY", "max_cost": 0.5, "labels": {"team": "x"}});
    assert!(schema.is_valid(&whole));
    fleet.tasks(&[whole]);
    fleet
        .run(&["check", "tasks.jsonl"])
        .exits(3)
        .says(&["1 of 1 task"]);
}
