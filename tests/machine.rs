//! Output for programs: results and events, checked against their schemas; completions and manual pages.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS, done, reply, write};
use crate::support::{Answer, Finished, ModelServer, TestProject, gemini, skipped};

pub fn schema(name: &str) -> jsonschema::Validator {
    let path = format!(
        "{}/fixtures/schema/{name}.schema.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    close(&mut schema);
    jsonschema::validator_for(&schema).unwrap()
}

/// Closes a schema: readers must accept additional fields later, but every field written today is described.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("properties")
                && !fields["properties"]
                    .get("result")
                    .is_some_and(Value::is_object)
            {
                fields.insert("additionalProperties".to_owned(), false.into());
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

#[track_caller]
pub fn fits(validator: &jsonschema::Validator, value: &Value) {
    let faults: Vec<String> = validator
        .iter_errors(value)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:#?}\n{value:#}");
}

/// Checks a log against the schema of SARIF 2.1.0.
pub fn fits_sarif(log: &Value) {
    let path =
        "target/validators/node_modules/@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let Ok(schema) = std::fs::read_to_string(path) else {
        return skipped("no schema of SARIF; see tests/examples/install.sh");
    };
    // The pattern for languages is valid in JavaScript only.
    let schema = schema.replace("{2}]?$", "{2}$");
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    fits(&schema, log);
}

/// Runs that end in every possible way, each with its arguments.
fn every_ending() -> Vec<(&'static [&'static str], TestProject, i32)> {
    let server = |texts: &[&str]| ModelServer::gemini(texts);
    let write = "^^^a\nb\n^^^end\n";
    vec![
        (&[], TestProject::new().with(&server(&[write])), 0),
        (
            &[],
            TestProject::new()
                .with(&server(&[write, "x", "y", "z"]))
                .build("exit 3"),
            1,
        ),
        (
            &["--on-failure", "revert"],
            TestProject::new()
                .with(&server(&[write; 4]))
                .build("kill -9 $$"),
            1,
        ),
        (&["--replay", "none"], TestProject::new(), 2),
        (&[], TestProject::new().without("agent-config/query.txt"), 3),
        (
            &[],
            TestProject::new().with(&ModelServer::start([Answer::error(400, &Value::Null)])),
            4,
        ),
        (
            &[],
            TestProject::new().with(&server(&["^^^.git/x\ny\n^^^end\n"])),
            5,
        ),
        (
            &["--cc"],
            TestProject::new().with(&server(&["# Report"])),
            0,
        ),
        (&["undo"], TestProject::new(), 2),
        (&["recover"], TestProject::new(), 0),
    ]
}

fn stdout_lines(run: &Finished) -> Vec<Value> {
    run.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn json_is_one_result_however_it_ends() {
    let schema = schema("result");
    for (arguments, project, code) in every_ending() {
        let arguments = [arguments, &["--output-format", "json"]].concat();
        let run = project.run(&arguments).exits(code);
        let printed: Value = serde_json::from_str(&run.stdout).unwrap();
        if arguments[0] == "recover" {
            continue;
        }
        fits(&schema, &printed);
        assert_eq!(printed["exit"]["code"], code, "{arguments:?}");
        if !run.folder.is_empty() {
            assert_eq!(printed, run.result());
        }
    }
}

#[test]
fn sarif_is_one_log_however_a_run_ends() {
    for (arguments, project, code) in every_ending() {
        let arguments = [arguments, &["--output-format", "sarif"]].concat();
        let run = project.run(&arguments);
        if run.code == 2 {
            continue;
        }
        let run = run.exits(code);
        let printed: Value = serde_json::from_str(&run.stdout).unwrap();
        fits_sarif(&printed);
        let invocation = &printed["runs"][0]["invocations"][0];
        assert_eq!(invocation["exitCode"], code, "{arguments:?}");
        let results = printed["runs"][0]["results"].as_array().unwrap();
        let fails = results.iter().filter(|one| one["level"] == "error");
        assert_eq!(fails.count() > 0, code == 1, "{arguments:?}");
        // Code hosts reject a log if any result has no location.
        let places = results.iter().map(|one| {
            let place = &one["locations"][0]["physicalLocation"];
            assert_eq!(place.get("region"), None, "{one}");
            place["artifactLocation"]["uri"].clone()
        });
        let builds = ["build.sh"].iter().filter(|_| code == 1);
        assert!(places.eq(builds.copied()), "{arguments:?}: {results:?}");
    }
    let run = TestProject::new().run(&["models", "--output-format", "sarif"]);
    let run = run.exits(2);
    assert!(run.stderr.contains("`--output-format sarif` is for runs"));
}

#[test]
fn jsonl_is_an_event_a_line_and_the_result_last() {
    let events = schema("events");
    let mut seen = std::collections::BTreeSet::new();
    for (arguments, project, code) in every_ending() {
        let arguments = [arguments, &["--output-format", "jsonl"]].concat();
        let run = project.run(&arguments).exits(code);
        let lines = stdout_lines(&run);
        for line in &lines {
            fits(&events, line);
            seen.insert(line["event"].as_str().unwrap().to_owned());
        }
        assert_eq!(lines.last().unwrap()["event"], "result");
    }
    for event in [
        "started", "asking", "answered", "applied", "building", "built", "put-back", "reviewed",
        "warning", "result",
    ] {
        assert!(seen.contains(event), "{event} is missing in {seen:?}");
    }
}

#[test]
fn the_record_and_the_events_of_agents_are_as_the_schemas_say() {
    let (result, events) = (schema("result"), schema("events"));
    let lost = "I have lost my way.".to_owned();
    let failing = reply("READ_FILE", "\"no/such\"");
    for (config, replies, name) in [
        (
            json!({}),
            vec![write("a.txt", "a\n"), done(), PASS.to_owned()],
            "done",
        ),
        (
            json!({"maxRetriesAutomated": 1}),
            vec![done(), "Overall: FAIL\nFeedback: no.".to_owned()],
            "audit-failed",
        ),
        (
            json!({"maxRetriesAutomated": 2}),
            vec![failing.clone(), failing.clone()],
            "tools-failed",
        ),
        (json!({"maxLoops": 1}), vec![failing], "loop-limit"),
        (
            json!({"maxRetriesAutomated": 2}),
            vec![lost.clone(), lost],
            "reply-rejected",
        ),
    ] {
        let (agent, _server) = AgentProject::scripted(&replies);
        let agent = agent.configured(&config);
        let run = agent.run(&["-p", "go", "--output-format", "jsonl"]);
        let lines = stdout_lines(&run);
        for line in &lines {
            fits(&events, line);
        }
        let printed = &lines.last().unwrap()["result"];
        fits(&result, printed);
        assert_eq!(*printed, run.result());
        assert_eq!(printed["exit"]["name"], name);
        assert_eq!(printed["workflow"], "dev");
    }
}

#[test]
fn the_record_and_the_events_of_a_plan_are_as_the_schemas_say() {
    let (result, events) = (schema("result"), schema("events"));
    let home = tempfile::tempdir().unwrap();
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/plan-demo");
    let read = |name: &str| std::fs::read_to_string(format!("{demo}/{name}")).unwrap();
    let project = TestProject::new()
        .variable("HOME", home.path().to_str().unwrap())
        .file("greet.sh", read("greet.sh"))
        .program("build.sh", read("build.sh"));
    let recorded = format!("{demo}/recorded-run");
    let arguments = ["plan", "--replay", &recorded, "--output-format", "jsonl"];
    let run = project.run(&arguments).exits(0);
    let lines = stdout_lines(&run);
    for line in &lines {
        fits(&events, line);
    }
    let printed = &lines.last().unwrap()["result"];
    fits(&result, printed);
    assert_eq!(*printed, run.result());
    assert_eq!(printed["plan"]["status"], "completed");
    let steps = printed["plan"]["steps"].as_array().unwrap();
    assert!(
        steps.iter().all(|step| step["status"] == "done"),
        "{steps:?}"
    );
}

#[test]
fn the_schema_refuses_what_it_does_not_describe() {
    let result = schema("result");
    let events = schema("events");
    let run = TestProject::new()
        .with(&ModelServer::gemini(&["Nothing."]))
        .run(&[])
        .exits(0);
    fits(&result, &run.result());
    for (field, value) in [
        ("schema", json!(2)),
        ("exit", json!({"code": 7, "name": "done"})),
        ("cost", json!(-1)),
        ("started", json!("yesterday")),
        ("attempts", json!([{"kind": "other"}])),
        ("surprise", json!(1)),
    ] {
        let mut wrong = run.result();
        wrong[field] = value;
        assert!(!result.is_valid(&wrong), "{field}");
    }
    for wrong in [
        json!({}),
        json!({"schema": 2}),
        json!({"schema": 1, "event": "surprise", "time": "2026-11-22T00:00:00.000+00:00"}),
    ] {
        assert!(
            !result.is_valid(&wrong) && !events.is_valid(&wrong),
            "{wrong}"
        );
    }
}

#[test]
fn a_retry_is_an_event() {
    let busy = Answer::error(503, &json!({"error": {"message": "busy"}}));
    let server = ModelServer::start([busy, Answer::json(&gemini("Nothing."))]);
    let run = TestProject::new()
        .with(&server)
        .run(&["--output-format", "jsonl"])
        .exits(0);
    let lines = stdout_lines(&run);
    let retry = lines
        .iter()
        .find(|line| line["event"] == "retrying")
        .unwrap();
    fits(&schema("events"), retry);
    assert_eq!(retry["next_try"], 2);
}

#[test]
fn completions_know_every_command() {
    let project = TestProject::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = project.run(&["completions", shell]).exits(0).stdout;
        for part in ["rollup", "dry-run", "models"] {
            assert!(script.contains(part), "{shell}: {part}");
        }
        assert!(!script.contains("inside-sandbox"));
    }
    project.run(&["completions", "tcsh"]).exits(2);
}

#[test]
fn bash_completes_the_flags_of_subcommands() {
    let project = TestProject::new();
    let script = project.run(&["completions", "bash"]).exits(0).stdout;
    for (words, typed, expected) in [
        ("code-commit", "--mod", "--model"),
        ("code-commit log", "--to", "--total"),
        ("code-commit fleet", "ch", "check"),
    ] {
        let all = words
            .split(' ')
            .chain([typed])
            .map(|word| format!("'{word}'"));
        let all = all.collect::<Vec<_>>().join(" ");
        let last = words.split(' ').count();
        let call = format!(
            "{script}\nCOMP_WORDS=({all})\nCOMP_CWORD={last}\n_code__commit code-commit '{typed}' ''\necho \"${{COMPREPLY[@]}}\""
        );
        let completed = Command::new("bash").args(["-c", &call]).output().unwrap();
        let completed = String::from_utf8_lossy(&completed.stdout).into_owned();
        assert!(
            completed.split_whitespace().any(|word| word == expected),
            "{words}: {completed}"
        );
    }
}

#[test]
fn there_is_a_manual_page_for_the_program_and_each_command() {
    let project = TestProject::new();
    let whole = project.run(&["man"]).exits(0).stdout;
    assert!(
        whole.contains(".TH") && whole.contains("max\\-cost"),
        "{whole}"
    );
    let rollup = project.run(&["man", "rollup"]).exits(0).stdout;
    assert!(rollup.contains("budget"), "{rollup}");
    let call = project.run(&["man", "mcp", "call"]).exits(0).stdout;
    assert!(call.contains("JSON"), "{call}");
    for (command, told) in [
        (&["man", "surprise"][..], "there is no command `surprise`"),
        (
            &["man", "mcp", "surprise"],
            "there is no command `mcp surprise`",
        ),
    ] {
        project.run(command).exits(2).says(&[told]);
        let format = ["--output-format", "json"];
        let run = project.run(&[command, &format].concat()).exits(2);
        let record: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(record["error"]["reason"], "usage", "{record}");
    }
    assert_eq!(project.runs().len(), 0);
}

#[test]
fn a_program_that_cannot_be_given_the_record_is_reported_by_the_exit_code() {
    for format in ["json", "jsonl"] {
        for stdout in [full, closed] {
            let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n"]);
            let project = TestProject::new().with(&server);
            let mut run = project.command(&["--output-format", format]);
            let done = run.stdout(stdout()).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(6), "{said}");
            for part in ["cannot write to stdout", "hint: ", "log: logs/"] {
                assert_eq!(said.matches(part).count(), 1, "{said}");
            }
            assert_eq!(project.read("a"), "x\n");
            for command in ["log", "diff", "undo"] {
                let mut command = project.command(&[command, "--output-format", format]);
                let done = command.stdout(stdout()).output().unwrap();
                let said = String::from_utf8_lossy(&done.stderr);
                assert_eq!(done.status.code(), Some(6), "{command:?}: {said}");
                assert_eq!(said.matches("cannot write to stdout").count(), 1, "{said}");
            }
            assert!(!project.path("a").exists());
        }
    }
}

fn full() -> Stdio {
    let full = std::fs::File::options().write(true).open("/dev/full");
    full.unwrap().into()
}

/// A pipe whose reader is closed.
fn closed() -> Stdio {
    let (_, writer) = std::io::pipe().unwrap();
    writer.into()
}
