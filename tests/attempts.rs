//! Several parallel attempts: `--attempts N`, and `--model a,b,c`.

use std::process::{Child, Command};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Answer, Finished, ModelServer, TestProject, gemini, openai};

/// Fails with an error for each line of `a.txt` that contains `bad`.
const BUILD: &str = "grep -n bad a.txt | sed 's/^\\([0-9]*\\):\\(.*\\)/a.txt:\\1: error: \\2/'; ! grep -q bad a.txt";
const MINUTE: Duration = Duration::from_mins(1);

/// A reply that writes `a.txt`.
fn reply(text: &str) -> String {
    format!("^^^a.txt\n{text}\n^^^end\n")
}

/// Streams this text as an answer, and calls `happens` once it has begun.
fn streamed(text: &str, happens: impl FnOnce() + Send + 'static) -> Answer {
    let event = |text: &str, more: Value| {
        let mut event = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}]});
        if !more.is_null() {
            event["candidates"][0]["finishReason"] = "STOP".into();
            event["usageMetadata"] = more;
        }
        format!("data: {event}\n\n")
    };
    let (one, other) = text.split_at(text.len() / 2);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 20});
    Answer::Between(
        (head.to_owned() + &event(one, Value::Null)).into(),
        Box::new(happens),
        event(other, usage).into(),
    )
}

fn answer(text: &str) -> Answer {
    Answer::json(&gemini(text))
}

fn interrupt(child: &Child) {
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
}

/// Returns the recorded attempts: the step, whether it passed, its changes to the gate, and the number of lines.
fn attempts(run: &Finished) -> Vec<(String, bool, Value, Value)> {
    let result = run.result();
    let attempts = result["choice"]["attempts"].as_array().unwrap().iter();
    let told = attempts.map(|attempt| {
        let step = attempt["step"].as_str().unwrap().to_owned();
        let passed = attempt["passed"] == true;
        (
            step,
            passed,
            attempt["gate"].clone(),
            attempt["lines"].clone(),
        )
    });
    told.collect()
}

#[test]
fn the_first_request_goes_out_alone_and_the_others_when_its_answer_begins() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let (asked, others) = channel();
    let note = |name: &'static str| {
        let order = Arc::clone(&order);
        move || order.lock().unwrap().push(name)
    };
    let begins = note("begins");
    let other = || {
        let (note, asked) = (note("asked"), asked.clone());
        Answer::To(Box::new(move |_: &_| {
            note();
            asked.send(()).unwrap();
            answer(&reply("other"))
        }))
    };
    let first = Answer::To(Box::new(move |_: &_| {
        begins();
        // This answer ends only once the other attempts have been requested.
        streamed(&reply("one"), move || {
            others.recv_timeout(MINUTE).unwrap();
            others.recv_timeout(MINUTE).unwrap();
        })
    }));
    let server = ModelServer::start([first, other(), other()]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--attempts", "3"]).exits(0);
    assert_eq!(*order.lock().unwrap(), ["begins", "asked", "asked"]);
    let bodies: Vec<_> = server
        .requests()
        .iter()
        .map(|one| one.body.clone())
        .collect();
    assert!(bodies[0] == bodies[1] && bodies[1] == bodies[2]);
    for file in [
        "initial-query.txt",
        "initial-build.txt",
        "attempt-query-2.txt",
        "attempt-query-2-response.txt",
        "attempt-query-2-response.json",
        "attempt-query-2-build.txt",
        "attempt-query-3-build.txt",
    ] {
        run.logged(file);
    }
    let result = run.result();
    let steps = result["attempts"].as_array().unwrap().iter();
    let kinds: Vec<_> = steps
        .map(|step| (step["kind"].clone(), step["number"].clone()))
        .collect();
    assert_eq!(
        kinds,
        [
            (json!("initial"), json!(0)),
            (json!("attempt"), json!(2)),
            (json!("attempt"), json!(3))
        ]
    );
    assert_eq!(project.read("a.txt"), "one\n");
    project.run(&["undo"]).exits(0);
    assert!(!project.path("a.txt").exists());
}

#[test]
fn an_unchanged_gate_wins_then_the_smallest_change() {
    let test = "tests/test_a.py";
    let loosened = format!("^^^a.txt\none\n^^^end\n^^^{test}\ndef test_a():\n    pass\n^^^end\n");
    let server = ModelServer::start([
        answer(&loosened),
        answer(&reply("one\ntwo\nthree")),
        answer(&reply("one\ntwo")),
    ]);
    let project = TestProject::new()
        .with(&server)
        .file(test, "def test_a():\n    assert 1 == 1\n");
    let run = project.run(&["--attempts", "3"]).exits(0);
    assert_eq!(project.read("a.txt"), "one\ntwo\n");
    assert!(project.read(test).contains("assert"));
    let mut told = attempts(&run);
    assert_eq!(
        told.remove(0),
        ("the change".into(), true, json!("changed"), json!(3))
    );
    let choice = &run.result()["choice"];
    assert_eq!(
        choice["why"],
        "the smallest change that has passed: 2 lines"
    );
    // Only one attempt has edits, and they are recorded with it.
    let result = run.result();
    let steps = result["attempts"].as_array().unwrap().iter();
    let applied: Vec<_> = steps.filter(|step| !step["edits"].is_null()).collect();
    let [applied] = &*applied else {
        panic!("{result}")
    };
    assert_eq!(applied["edits"]["written"], json!(["a.txt"]));
    let log = project.run(&["log", &run.folder]).exits(0);
    assert!(
        log.stdout.contains("is taken: the smallest change"),
        "{}",
        log.stdout
    );
}

#[test]
fn repairs_continue_from_the_best_attempt_when_none_passes() {
    let server = ModelServer::start([
        answer(&reply("bad a\nbad b")),
        answer(&reply("bad c")),
        answer(&reply("bad c")),
        answer(&reply("good")),
    ]);
    let project = TestProject::new().with(&server).build(BUILD);
    let run = project.run(&["--attempts", "3"]).exits(0);
    assert_eq!(project.read("a.txt"), "good\n");
    let asked = server.requests()[3].user();
    assert!(
        asked.contains("error: bad c") && !asked.contains("bad b"),
        "{asked}"
    );
    let result = run.result();
    assert_eq!(result["search"]["states"].as_array().unwrap().len(), 3);
    assert_eq!(
        result["choice"]["why"],
        "the fewest findings (1; others up to 2)"
    );
    let taken = result["choice"]["taken"].as_str().unwrap();
    assert!(taken.starts_with("attempt "), "{taken}");
    project
        .run(&["attest", &run.folder, "-o", "statement"])
        .exits(0);
    project.run(&["verify", "statement"]).exits(0);
    project.run(&["undo"]).exits(0);
    assert!(!project.path("a.txt").exists());
}

#[test]
fn a_run_in_which_nothing_passes_ends_in_its_best_state() {
    for (flags, left) in [
        (&[][..], "bad c\n"),
        (&["--scratch"], ""),
        (&["--on-failure", "revert"], ""),
    ] {
        let all = [
            "bad a\nbad b",
            "bad c",
            "bad d\nbad e",
            "bad f\nbad g",
            "bad h\nbad i",
        ];
        let server = ModelServer::start(all.iter().map(|text| answer(&reply(text))));
        let project = TestProject::new().with(&server).build(BUILD);
        let run = project
            .run(&[&["--attempts", "2"], flags].concat())
            .exits(1);
        assert_eq!(
            std::fs::read_to_string(project.path("a.txt")).unwrap_or_default(),
            left
        );
        let steps = run.result()["attempts"].as_array().unwrap().len();
        assert_eq!(steps, 5);
    }
}

#[test]
fn changes_by_the_build_are_applied_with_the_reply_and_can_be_verified() {
    let server = ModelServer::start([answer(&reply("badly formatted")), answer(&reply("x\ny\nz"))]);
    let project = TestProject::new()
        .with(&server)
        .file("a.txt", "old\n")
        .build("sed -i s/badly/well/ a.txt; echo left > other.txt");
    let run = project.run(&["--attempts", "2"]).exits(0);
    assert_eq!(project.read("a.txt"), "well formatted\n");
    assert!(!project.path("other.txt").exists());
    project
        .run(&["attest", &run.folder, "-o", "statement"])
        .exits(0);
    let verified = project.run(&["verify", "statement"]).exits(0);
    assert!(verified.stdout.contains("made again from its reply"));
    let diff = project.run(&["diff", &run.folder]).exits(0);
    assert!(
        diff.stdout.contains("-old\n+well formatted\n"),
        "{}",
        diff.stdout
    );
    project.run(&["undo"]).exits(0);
    assert_eq!(project.read("a.txt"), "old\n");
}

#[test]
fn a_replay_makes_the_same_attempts_and_the_same_choice() {
    let server = ModelServer::start([
        answer(&reply("bad\nx")),
        answer(&reply("one\ntwo")),
        answer(&reply("one")),
    ]);
    let project = TestProject::new().with(&server).build(BUILD);
    let run = project.run(&["--attempts", "3"]).exits(0);
    project.run(&["undo"]).exits(0);
    let again = project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(attempts(&again), attempts(&run));
    assert_eq!(
        again.result()["choice"]["taken"],
        run.result()["choice"]["taken"]
    );
    assert_eq!(project.read("a.txt"), "one\n");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn attempt_beyond_the_budget_does_not_start() {
    // Each answer uses 0.80 of the two dollars; the shortest answer allowed would cost 0.82.
    let dear = |text: &str| {
        let mut answer = gemini(text);
        answer["usageMetadata"] = json!({"promptTokenCount": 1, "candidatesTokenCount": 8000});
        Answer::json(&answer)
    };
    let models = json!({"models": {"dear": {"provider": "gemini", "id": "gemini-2.5-pro", "keyFile": "gemini-key.txt",
        "maxOutputTokens": 60000, "price": {"input": 0.001, "output": 100}}}});
    let server = ModelServer::start([dear(&reply("a")), dear(&reply("b\nc"))]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/models.json", models.to_string());
    let flags = ["--attempts", "3", "--model", "dear", "--max-cost", "2"];
    let run = project.run(&flags).exits(0);
    assert_eq!(server.requests().len(), 2);
    assert_eq!(project.read("a.txt"), "a\n");
    run.says(&[
        "came to no build: the next call may cost more than is left: $1.60 of $2.00 is spent",
    ]);
}

#[test]
fn a_signal_ends_all_attempts_and_nothing_is_applied() {
    let (other, told) = Answer::silence();
    let server = ModelServer::start([answer(&reply("one")), other]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    let child = project.start(&["--attempts", "2"]);
    told.recv_timeout(MINUTE).unwrap();
    interrupt(&child);
    let run = Finished::new(&project, &[], child.wait_with_output().unwrap()).exits(130);
    assert_eq!(project.tree(), before);
    assert!(
        run.logged("attempt-query-2-response.txt")
            .starts_with("ERROR\n")
    );
    assert_eq!(
        run.result()["choice"]["attempts"].as_array().unwrap().len(),
        2
    );
}

#[test]
fn one_that_fails_is_reported_and_another_is_taken() {
    let busy = |status| {
        let body = json!({"error": {"message": "busy"}}).to_string();
        Answer::new(status, &[("retry-after-ms", "1")], body)
    };
    let refused = || Answer::error(400, &json!({"error": {"message": "no such thing"}}));
    for (answers, passed) in [
        (vec![refused(), answer(&reply("b"))], 1),
        (vec![busy(429), answer(&reply("b")), answer(&reply("b"))], 2),
        (vec![answer("^^^a.txt\nno end\n"), answer(&reply("b"))], 1),
        (
            (0..5)
                .map(|_| busy(500))
                .chain([answer(&reply("b"))])
                .collect(),
            1,
        ),
    ] {
        let server = ModelServer::start(answers);
        let project = TestProject::new().with(&server);
        let run = project.run(&["--attempts", "2"]).exits(0);
        assert_eq!(project.read("a.txt"), "b\n");
        let told = attempts(&run);
        assert_eq!(told.iter().filter(|attempt| attempt.1).count(), passed);
    }
    let server = ModelServer::start([refused(), refused()]);
    let project = TestProject::new().with(&server);
    let run = project
        .run(&["--attempts", "2"])
        .exits(4)
        .says(&["no such thing"]);
    assert_eq!(run.result()["choice"]["taken"], Value::Null);
}

#[test]
fn the_first_pass_ends_the_others() {
    let (other, _told) = Answer::silence();
    let server = ModelServer::start([answer(&reply("one")), other]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--attempts", "2", "--first-pass"]).exits(0);
    assert_eq!(project.read("a.txt"), "one\n");
    let ended = &run.result()["choice"]["attempts"][1]["error"];
    assert_eq!(*ended, "ended, since another one has passed");
}

#[test]
fn several_models_are_asked_for_one_attempt_each() {
    let answers = |request: &crate::support::Recorded| {
        if request.line.contains("gemini") {
            answer(&reply("one\ntwo"))
        } else {
            Answer::json(&openai(&reply("one")))
        }
    };
    let server = ModelServer::start((0..2).map(|_| Answer::To(Box::new(answers))));
    let project = TestProject::new().with(&server);
    let run = project.run(&["--model", "gemini-2.5-pro,gpt-5"]).exits(0);
    assert_eq!(project.read("a.txt"), "one\n");
    let told = run
        .stderr
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let told = told.collect::<Vec<_>>().join("\n");
    for part in [
        "attempt model pass gate lines dollars seconds",
        "the change gemini-2.5-pro yes none 2 $",
        "attempt 2 gpt-5 yes none 1 $",
        "attempt 2 is taken: the smallest change that has passed: 1 line",
    ] {
        assert!(told.contains(part), "`{part}` is missing\n{told}");
    }
    project.run(&["undo"]).exits(0);
    let again = project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(attempts(&again), attempts(&run));
}

#[test]
fn no_call_waits_for_a_build() {
    let place = tempfile::tempdir().unwrap();
    let pipe = |name: &str| {
        let path = place.path().join(name);
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        path
    };
    let (started, go) = (pipe("started"), pipe("go"));
    let build = format!(
        "if grep -q one a.txt; then echo > {}; timeout 60 cat {}; fi",
        started.display(),
        go.display()
    );
    // The second attempt is answered during the first one's build, which ends later.
    let second = Answer::To(Box::new(move |_: &_| {
        std::fs::read(&started).unwrap();
        let Answer::Raw(bytes) = answer(&reply("x\ny")) else {
            unreachable!("what is JSON is sent as it is");
        };
        Answer::Between(
            bytes,
            Box::new(move || std::fs::write(&go, "go").unwrap()),
            Vec::new(),
        )
    }));
    let server = ModelServer::start([answer(&reply("one")), second]);
    let project = TestProject::new().with(&server).build(&build);
    let run = project
        .run(&["--attempts", "2", "--sandbox", "off"])
        .exits(0);
    assert_eq!(project.read("a.txt"), "one\n");
    assert!(run.logged("initial-build.txt").ends_with("\ngo"));
}

#[test]
fn concurrent_changes_are_not_overwritten() {
    let project = TestProject::new().file("a.txt", "old\n");
    let path = project.path("a.txt");
    let first = Answer::gemini_after(
        move || std::fs::write(path, "theirs\n").unwrap(),
        &reply("one"),
    );
    let server = ModelServer::start([first, answer(&reply("one"))]);
    let project = project.with(&server).file(
        "agent-config/codeRollup.txt",
        "--- src/main.rs ---\nfn main() {}\n--- a.txt ---\nold\n",
    );
    let run = project.run(&["--attempts", "2"]).exits(5);
    assert_eq!(project.read("a.txt"), "theirs\n");
    let result = run.result();
    assert_eq!(result["tree"], "unchanged");
    assert_eq!(result["choice"]["taken"], Value::Null);
}

#[test]
fn build_that_changes_the_gate_does_not_pass() {
    let server = ModelServer::start([answer(&reply("one")), answer(&reply("two\nlines"))]);
    let project = TestProject::new()
        .with(&server)
        .build("if grep -q one a.txt; then echo exit 0 > build.sh; fi");
    let run = project
        .run(&["--attempts", "2", "--sandbox", "off"])
        .exits(0);
    assert_eq!(project.read("a.txt"), "two\nlines\n");
    assert!(run.logged("gate.diff").contains("exit 0"));
    assert!(project.read("build.sh").contains("grep"));
}

#[test]
fn a_build_that_puts_a_link_in_the_place_of_a_file_takes_no_file_from_the_project() {
    let server = ModelServer::start([answer(&reply("one")), answer(&reply("one\nmore"))]);
    let project = TestProject::new()
        .with(&server)
        .file("a.txt", "old\n")
        .build("ln -sf build.sh a.txt");
    let run = project
        .run(&["--attempts", "2", "--sandbox", "off"])
        .exits(6);
    assert!(run.stderr.contains("`a.txt`"), "{}", run.stderr);
    assert_eq!(project.read("a.txt"), "old\n");
    assert_eq!(run.result()["tree"], "unchanged");
}

#[test]
fn a_dry_run_shows_the_number_of_attempts() {
    let server = ModelServer::gemini(&[]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/run.json", r#"{"attempts": 3}"#);
    let run = project.run(&["--dry-run"]).exits(0);
    assert!(run.stdout.contains("attempts  3"), "{}", run.stdout);
}

#[test]
fn a_dry_run_adds_up_the_first_calls_of_all_attempts() {
    let server = ModelServer::gemini(&[]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/openai-key.txt", "sk-test-0123456789abcdef\n");
    let cost = |flags: &[&str]| {
        let run = project.run(&[&["--dry-run", "--output-format", "json"], flags].concat());
        let shown: Value = serde_json::from_str(&run.exits(0).stdout).unwrap();
        [
            "/cost/likely",
            "/cost/first/most",
            "/cost/with_repairs/most",
        ]
        .map(|place| shown.pointer(place).and_then(Value::as_f64).unwrap())
    };
    let (one, three) = (cost(&[]), cost(&["--attempts", "3"]));
    let near = |one: f64, other: f64| (one - other).abs() < 1e-5;
    let sums = near(three[0], 3.0 * one[0]) && near(three[1], 3.0 * one[1]);
    assert!(sums, "{one:?} {three:?}");
    assert!(near(three[2], one[2] + 2.0 * one[1]));
    let (gpt, both) = (
        cost(&["--model", "gpt-5"]),
        cost(&["--model", "gemini-2.5-pro,gpt-5"]),
    );
    assert!(near(both[1], one[1] + gpt[1]), "{both:?}");
}

#[test]
fn flags_that_do_not_go_together_are_refused() {
    let project = TestProject::new();
    for flags in [
        &["--attempts", "9"][..],
        &["--attempts", "0"],
        &["--attempts", "2", "--model", "gemini-2.5-pro,gpt-5"],
        &["--model", "a,b", "--consistency-check"],
        &["--model", "a,b,c,d,e,f,g,h,i"],
        &["--attempts", "2", "--consistency-check"],
        &["--attempts", "2", "--resume", "x"],
        &["--attempts", "2", "--context", "16k"],
        &["--attempts", "2", "--scratch=keep-ignored"],
        &["--replay", "x", "--model", "a,b"],
        &["--first-pass"],
    ] {
        project.run(flags).exits(2);
    }
    let server = ModelServer::start([answer(&reply("bad")), answer(&reply("bad"))]);
    let project = TestProject::new().with(&server).build(BUILD);
    let run = project.run(&["--attempts", "2"]).exits(4);
    project
        .run(&["--resume", &run.folder])
        .exits(3)
        .says(&["has made several attempts at once"]);
}
