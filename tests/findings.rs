//! The findings of the consistency report as data.

use std::fs;

use serde_json::{Value, json};

use crate::consistency::{REPORT, large};
use crate::machine::{fits, schema};
use crate::support::{Answer, Finished, ModelServer, TestProject, gemini};

fn finding(file: &str, line: u64, quote: &str, severity: &str) -> Value {
    json!({"file": file, "line": line, "quote": quote, "severity": severity,
        "title": format!("A {severity} in {file}"), "message": "It is wrong."})
}

fn reply(findings: &[Value]) -> String {
    json!({"findings": findings}).to_string()
}

/// A report of one finding with a location, one without, and one with an invented location.
fn three() -> String {
    reply(&[
        finding("src/main.rs", 70, "fn main() {}", "error"),
        finding("", 0, "", "note"),
        finding("src/gone.rs", 3, "fn gone() {}", "warning"),
    ])
}

/// Returns the locations of the findings in `result.json`.
fn places(run: &Finished) -> Vec<Value> {
    let result = run.result();
    let findings = result["findings"].as_array().unwrap().iter();
    findings
        .map(|one| json!([one["file"], one["line"]]))
        .collect()
}

fn calls(run: &Finished) -> Vec<String> {
    let result = run.result();
    let steps = result["attempts"].as_array().unwrap().iter();
    let told = steps.map(|step| {
        let again = if step["reask"].is_null() {
            ""
        } else {
            " again"
        };
        let paid = if step["recorded"].is_null() {
            ""
        } else {
            " recorded"
        };
        format!("{}{again}{paid}", step["kind"].as_str().unwrap())
    });
    told.collect()
}

#[test]
fn a_second_call_turns_the_report_into_findings_with_verified_places() {
    for format in ["json", "sarif"] {
        let server = ModelServer::gemini(&[REPORT, &three()]);
        let project = TestProject::new().with(&server);
        let run = project.run(&["--cc", "--findings", format]).exits(0);
        assert_eq!(project.read("agent-config/consistency-report.txt"), REPORT);
        let printed: Value = serde_json::from_str(&run.stdout).unwrap();
        let logged: Value =
            serde_json::from_slice(run.bytes(&format!("findings.{format}"))).unwrap();
        assert_eq!(printed, logged);
        assert_eq!(
            places(&run),
            [
                json!(["src/main.rs", 1]),
                json!([null, null]),
                json!([null, null])
            ]
        );
        fits(&schema("result"), &run.result());
        if format == "json" {
            assert_eq!(printed["findings"], run.result()["findings"]);
            assert_eq!(printed["log"], format!("logs/{}", run.folder));
        } else {
            let log = &printed["runs"][0];
            let results = log["results"].as_array().unwrap();
            let told = |result: &Value| format!("{} {}", result["ruleId"], result["level"]);
            assert_eq!(
                results.iter().map(told).collect::<Vec<_>>(),
                ["\"consistency\" \"error\""]
            );
            assert_eq!(
                results[0]["locations"],
                json!([{"physicalLocation": {"artifactLocation": {"uri": "src/main.rs", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 1}}}])
            );
            // Code hosts reject a log with a result that has no location.
            let invocation = &log["invocations"][0];
            let notified = invocation["toolExecutionNotifications"].as_array().unwrap();
            assert_eq!(
                json!(notified[notified.len() - 2..]),
                json!([{"level": "note", "message": {"text": "A note in: It is wrong."}},
                    {"level": "warning", "message": {"text": "A warning in src/gone.rs: It is wrong."}}])
            );
            assert_eq!(invocation["exitCode"], 0);
        }
        run.says(&["the report is in agent-config/consistency-report.txt, and has 1 error, 1 warning and 1 note"]);
        let asked = &server.requests()[1];
        assert_eq!(asked.user(), format!("[report]\n{REPORT}[codebase]\n"));
        assert_eq!(
            asked.json()["generationConfig"]["responseJsonSchema"]["required"],
            json!(["findings"])
        );
    }
}

#[test]
fn the_second_call_has_the_files_that_the_report_names() {
    let report = format!("{REPORT}\nSee src/main.rs.\n");
    let server = ModelServer::gemini(&[&report, &reply(&[])]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--cc", "--findings", "json"]).exits(0);
    let prompt = server.requests()[1].user();
    assert!(
        prompt.ends_with("[codebase]\n--- src/main.rs ---\nfn main() {}\n"),
        "{prompt}"
    );
    assert_eq!(run.result()["findings"], json!([]));
    let story = project.run(&["log", &run.folder]).exits(0).stdout;
    assert!(
        story.contains("The findings (answered)\n  gemini-2.5-pro"),
        "{story}"
    );
    let page = project.run(&["report", &run.folder]).exits(0);
    assert!(page.stdout.contains("done"));
}

#[test]
fn fingerprints_stay_the_same_when_lines_move_and_words_change() {
    let prints = |rollup: &str, title: &str| {
        let mut one = finding("src/a.rs", 9, "let x = 1;", "error");
        one["title"] = title.into();
        let twin = one.clone();
        let server = ModelServer::gemini(&[
            REPORT,
            &reply(&[one, twin, finding("src/a.rs", 0, "", "note")]),
        ]);
        let project = TestProject::new()
            .with(&server)
            .file("src/a.rs", rollup)
            .file(
                "agent-config/codeRollup.txt",
                format!("--- src/a.rs ---\n{rollup}"),
            );
        let run = project.run(&["--cc", "--findings", "sarif"]).exits(0);
        let log: Value = serde_json::from_str(&run.stdout).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap().clone();
        let print = |one: &Value| one["partialFingerprints"]["primaryLocationLineHash"].to_string();
        results.iter().map(print).collect::<Vec<_>>()
    };
    let before = prints("let x = 1;\n", "One");
    assert_eq!(before, prints("// more\n\n  let x = 1;\n", "Other words"));
    assert!(
        before[0].ends_with(":1\"")
            && before[1].ends_with(":2\"")
            && before[0][..17] == before[1][..17]
    );
    assert_ne!(before[0][..17], before[2][..17]);
}

#[test]
fn a_reply_of_another_form_is_asked_for_once_more_and_then_given_up() {
    let server = ModelServer::gemini(&[REPORT, "I have none.", &three()]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--cc", "--findings", "json"]).exits(0);
    assert_eq!(calls(&run), ["report", "findings", "findings again"]);
    let prompt = server.requests()[2].user();
    assert!(
        prompt.contains("[rejected reply]\n") && prompt.contains("does not begin with `{`"),
        "{prompt}"
    );

    let server = ModelServer::gemini(&[REPORT, "None.", "None.", &three()]);
    let project = TestProject::new().with(&server);
    let failed = project.run(&["--cc", "--findings", "json"]).exits(5);
    assert_eq!(failed.stdout, "");
    assert_eq!(project.read("agent-config/consistency-report.txt"), REPORT);
    let failed = failed.says(&[
        "the reply does not have the report's findings: ",
        "--resume last",
    ]);
    assert!(failed.result()["findings"].is_null());
    // The report already exists.
    let run = project
        .run(&["--cc", "--findings", "json", "--resume", "last"])
        .exits(0);
    assert_eq!(calls(&run), ["report recorded", "findings"]);
    assert_eq!(places(&run).len(), 3);
}

#[test]
fn findings_that_are_denied_fail_the_run_and_are_printed_all_the_same() {
    let warning = reply(&[finding("", 0, "", "warning"), finding("", 0, "", "note")]);
    for (limit, findings, code) in [
        ("error", three(), 1),
        ("warning", three(), 1),
        ("warning", warning.clone(), 1),
        ("error", warning, 0),
        ("warning", reply(&[finding("", 0, "", "note")]), 0),
    ] {
        let server = ModelServer::gemini(&[REPORT, &findings]);
        let project = TestProject::new().with(&server);
        let run = project
            .run(&["--cc", "--findings", "sarif", "--fail-on", limit])
            .exits(code);
        let log: Value = serde_json::from_str(&run.stdout).unwrap();
        let invocation = &log["runs"][0]["invocations"][0];
        assert_eq!(invocation["exitCode"], code);
        assert_eq!(run.result()["exit"]["code"], code);
        if code == 1 {
            assert_eq!(run.result()["exit"]["name"], "findings");
            assert_eq!(run.result()["error"]["reason"], "findings");
            assert_eq!(invocation["exitCodeDescription"], "findings");
            run.says(&[&format!("and `--fail-on {limit}` was given")]);
        }
    }
    for wrong in [
        &["--cc", "--fail-on", "error"][..],
        &["--cc", "--findings", "json", "--fail-on", "note"],
        &["--findings", "json"],
        &["--if-changed"],
        &["--cc", "--findings-file", "a"],
        &["--cc", "--if-changed", "--dry-run"],
    ] {
        TestProject::new().run(wrong).exits(2);
    }
}

#[test]
fn findings_go_to_the_file_that_is_asked_for_or_with_the_record() {
    let server = ModelServer::gemini(&[REPORT, &three(), REPORT, &three()]);
    let project = TestProject::new().with(&server);
    let to_file = [
        "--cc",
        "--findings",
        "sarif",
        "--findings-file",
        "found.sarif",
    ];
    let run = project.run(&to_file).exits(0);
    assert!(run.stdout.starts_with(
        "done: the report is in agent-config/consistency-report.txt, and has 1 error"
    ));
    let written: Value = serde_json::from_str(&project.read("found.sarif")).unwrap();
    assert_eq!(written["runs"][0]["results"].as_array().unwrap().len(), 1);
    let run = project
        .run(&["--cc", "--findings", "json", "--output-format", "json"])
        .exits(0);
    let printed: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(printed, run.result());
    for protected in ["build.sh", "agent-config/found", "logs/found"] {
        let wrong = ["--cc", "--findings", "json", "--findings-file", protected];
        project
            .run(&wrong)
            .exits(2)
            .says(&["the findings cannot be written to"]);
    }
    std::fs::create_dir(project.path("directory")).unwrap();
    for unwritable in ["missing/found", "directory", "/proc/found"] {
        let wrong = ["--cc", "--findings", "json", "--findings-file", unwritable];
        project
            .run(&wrong)
            .exits(2)
            .says(&["the findings cannot be written to"]);
    }
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn github_shows_the_findings_next_to_the_code() {
    let mut hostile = finding("src/main.rs", 1, "fn main() {}", "error");
    hostile["title"] = "50%: a, b".into();
    hostile["message"] = "One.\n::set-output name=a::b".into();
    let mut found = vec![finding("", 0, "", "note"); 60];
    found.push(hostile);
    let annotated = |variables: &[(&str, &str)], quiet: &[&str]| {
        let server = ModelServer::gemini(&[REPORT, &reply(&found)]);
        let mut project = TestProject::new().with(&server);
        for (name, value) in variables {
            project = project.variable(name, value);
        }
        let arguments = [&["--cc", "--findings", "json"], quiet].concat();
        let told = project.run(&arguments).exits(0).stderr;
        let lines = told.lines().filter(|line| line.starts_with("::"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = annotated(&[("GITHUB_ACTIONS", "true")], &[]);
    assert_eq!(lines.len(), 50);
    assert_eq!(
        lines[0],
        "::error file=src/main.rs,line=1,title=50%25%3A a%2C b::One.%0A::set-output name=a::b"
    );
    assert_eq!(lines[1], "::notice title=A note in::It is wrong.");
    assert_eq!(
        annotated(&[("GITHUB_ACTIONS", "true")], &["--quiet"]).len(),
        50
    );
    for other in [&[][..], &[("GITHUB_ACTIONS", "false")], &[("CI", "true")]] {
        assert!(annotated(other, &[]).is_empty());
    }
}

#[test]
fn a_report_by_parts_has_findings_on_all_files_and_continues_where_it_failed() {
    let parts = ["One.", "Two.", "Three.", "Four."];
    let found = reply(&[
        finding("src/c/f07.rs", 1, "pub fn name_07() {}", "error"),
        finding("src/a/f00.rs", 5, "let x = 1;", "note"),
        finding("UserSpecification.md", 1, "# It has names.", "warning"),
    ]);
    let fails = Answer::error(400, &json!({"error": {"code": 400, "message": "no"}}));
    let texts = |texts: &[&str]| {
        let answers = texts.iter().map(|text| Answer::json(&gemini(text)));
        answers.collect::<Vec<_>>()
    };
    let mut answers = texts(&parts[..2]);
    answers.push(fails);
    let report = format!("{REPORT}\nf07.rs and src/a/f00.rs are wrong.\n");
    answers.extend(texts(&[parts[2], parts[3], &report, &found]));
    let server = ModelServer::start(answers);
    let project = large().with(&server);
    let arguments = ["--cc", "--parts", "--findings", "json"];
    project.run(&arguments).exits(4);
    let again = [&arguments[..], &["--resume", "last"]].concat();
    let run = project.run(&again).exits(0);
    assert_eq!(
        calls(&run),
        [
            "part recorded",
            "part recorded",
            "part",
            "part",
            "report",
            "findings"
        ]
    );
    assert_eq!(
        places(&run),
        [
            json!(["src/c/f07.rs", 1]),
            json!(["src/a/f00.rs", 5]),
            json!(["UserSpecification.md", 1])
        ]
    );
    let prompt = server.requests()[6].user();
    for path in ["src/a/f00.rs", "src/c/f07.rs", "UserSpecification.md"] {
        assert!(prompt.contains(&format!("--- {path} ---\n")), "{prompt}");
    }
    assert!(!prompt.contains("--- src/a/f01.rs ---"));
    project
        .run(&again)
        .exits(3)
        .says(&["there is nothing to resume"]);
    // Recorded replies can be replayed, too.
    let recorded = project.path(&format!("logs/{}", run.folder));
    let other = large();
    fs::rename(recorded, other.path("recorded")).unwrap();
    let replayed = other
        .run(&[&arguments[..], &["--replay", "recorded"]].concat())
        .exits(0);
    assert_eq!(replayed.result()["findings"], run.result()["findings"]);
}

#[test]
fn a_report_is_resumed_only_on_what_it_sent() {
    let server = ModelServer::gemini(&[REPORT, &three()]);
    let project = TestProject::new().with(&server);
    let first = project.run(&["--cc"]).exits(0);
    project
        .run(&["--cc", "--resume", "last"])
        .exits(3)
        .says(&["there is nothing to resume"]);
    // The current file does not matter as long as the code is the same.
    let project = project.file("agent-config/query.txt", "Something else.\n");
    let run = project
        .run(&["--cc", "--resume", "last", "--findings", "json"])
        .exits(0);
    assert_eq!(calls(&run), ["report recorded", "findings"]);
    assert_eq!(
        run.result()["attempts"][0]["recorded"],
        format!("logs/{}", first.folder)
    );
    assert_eq!(run.logged("query.txt"), first.logged("query.txt"));
    let project = project.file("src/main.rs", "fn other() {}\n");
    let arguments = ["--cc", "--resume", &first.folder, "--findings", "json"];
    project
        .run(&arguments)
        .exits(3)
        .says(&["differs from the files on disk"]);
    let change = ModelServer::gemini(&["nothing"]);
    let project = project.with(&change).build("exit 0");
    project.run(&["--allow-stale"]).exits(0);
    let other = ["--cc", "--resume", "last"];
    project
        .run(&other)
        .exits(3)
        .says(&["is not a run that asked for a report"]);
}

#[test]
fn the_cost_limit_and_the_estimate_hold_for_both_calls() {
    // The first answer uses half of the budget.
    let mut dear = gemini(REPORT);
    dear["usageMetadata"]["candidatesTokenCount"] = 5_000.into();
    let server = ModelServer::start([Answer::json(&dear)]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--cc", "--findings", "json", "--max-cost", "0.12"]);
    assert_eq!(server.requests().len(), 1, "{}", run.stderr);
    assert_eq!(project.read("agent-config/consistency-report.txt"), REPORT);
    run.exits(1)
        .says(&["the next call may cost more than is left"]);
    let arguments = ["--cc", "--findings", "json", "--dry-run"];
    let told = project.run(&arguments).exits(0).stdout;
    assert!(told.contains(" for the call for the findings\n"), "{told}");
    let told = project
        .run(&[&arguments[..], &["--output-format", "json"]].concat())
        .exits(0);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let cost = &told["cost"]["findings"];
    assert!(cost["least"].as_f64().unwrap() < cost["most"].as_f64().unwrap());
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn nothing_is_asked_where_nothing_has_changed() {
    let server = ModelServer::gemini(&[
        REPORT,
        &three(),
        REPORT,
        REPORT,
        &three(),
        REPORT,
        REPORT,
        REPORT,
    ]);
    let project = TestProject::new().with(&server);
    let arguments = [
        "--cc",
        "--findings",
        "sarif",
        "--fail-on",
        "error",
        "--if-changed",
    ];
    let first = project.run(&arguments).exits(1);
    let second = project.run(&arguments).exits(1);
    assert_eq!((server.requests().len(), project.runs().len()), (2, 1));
    assert_eq!(second.stdout, first.stdout);
    let third = project.run(&["--cc", "--if-changed"]).exits(0);
    assert_eq!(
        third.stdout.lines().next().unwrap(),
        format!(
            "done: nothing has changed since logs/{}, whose report is in agent-config/consistency-report.txt",
            first.folder
        )
    );
    let json = project
        .run(&["--cc", "--if-changed", "--output-format", "json"])
        .exits(0);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&json["exit"]["name"], &json["error"]),
        (&json!("done"), &json!(null))
    );
    assert_eq!(
        (&json["cost"], &json["attempts"]),
        (&json!(0.0), &json!([])),
        "nothing was asked"
    );
    assert_eq!(server.requests().len(), 2);
    // Another query makes another report, and a report without findings does not suffice if they are requested.
    let query = ["--cc", "--if-changed", "-m", "Look at main."];
    for requests in [3, 3] {
        project.run(&query).exits(0);
        assert_eq!(server.requests().len(), requests);
    }
    let with_findings = [&query[..], &["--findings", "json"]].concat();
    for requests in [5, 5] {
        project.run(&with_findings).exits(0);
        assert_eq!(server.requests().len(), requests);
    }
    // The same applies to changed code, and to a deleted report.
    let code = "fn main() {}\n// more\n";
    let rollup = format!("--- src/main.rs ---\n{code}");
    let project = project.file("src/main.rs", code);
    let project = project.file("agent-config/codeRollup.txt", rollup);
    project.run(&query).exits(0);
    let path = "agent-config/consistency-report.txt";
    let project = project.without(path);
    project.run(&query).exits(0);
    assert_eq!(server.requests().len(), 7);
    // A file in the report's place is not the report.
    let project = project.file(path, "");
    project.run(&query).exits(0);
    assert_eq!(server.requests().len(), 8);
    assert_eq!(project.read(path), REPORT);
    let model = [&query[..], &["--model", "gpt-5"]].concat();
    let openai = ModelServer::openai(&[REPORT]);
    project.with(&openai).run(&model).exits(0);
    assert_eq!(openai.requests().len(), 1);
}
