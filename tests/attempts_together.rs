//! Properties of all attempts of a run together: the tree that they start from, the choice among them, and time limits.

use std::fs;

use serde_json::Value;

use crate::support::{Answer, Finished, ModelServer, TestProject, gemini};

const CODE: &str = "def add(a, b):\n    return a + b\n";
const BUILD: &str = "PYTHONPATH=. python3 -m unittest discover -s tests";

/// An answer with these files.
fn answer(files: &[(&str, String)]) -> Answer {
    Answer::json(&gemini(&reply(files)))
}

fn reply(files: &[(&str, String)]) -> String {
    let block = |(path, text): &(&str, String)| format!("^^^{path}\n{text}^^^end\n");
    files.iter().map(block).collect()
}

/// A test that passes on the old code, too.
fn idle_test(name: &str) -> String {
    format!(
        "import unittest\nfrom calc import add\n\n\nclass New(unittest.TestCase):\n    def test_{name}(self):\n        self.assertEqual(add(2, 2), 4)\n"
    )
}

/// Asks for two attempts: the first one has the smaller change.
fn two(attempts: &[Vec<(&str, String)>; 2], flags: &[&str]) -> (TestProject, Finished) {
    let server = ModelServer::start(attempts.iter().map(|files| answer(files)));
    let project = TestProject::new()
        .with(&server)
        .file("calc.py", CODE)
        .file("tests/__init__.py", "")
        .file("tests/test_calc.py", idle_test("add"))
        .build(BUILD);
    let run = project.run(&[&["--attempts", "2"], flags].concat());
    (project, run)
}

fn choice(run: &Finished) -> [Value; 2] {
    let choice = &run.result()["choice"];
    ["taken", "why"].map(|name| choice[name].clone())
}

fn comments(lines: usize) -> (&'static str, String) {
    ("calc.py", CODE.to_owned() + &"# more\n".repeat(lines))
}

const LET_PASS: &str = "the best of those that `--gate` and `--deny-warnings` let pass";

#[test]
fn one_that_ends_the_run_as_done_is_taken_before_a_better_one_that_fails_it() {
    let idle = || vec![comments(1), ("tests/test_new.py", idle_test("new"))];
    let honest = || vec![comments(20)];
    let (project, run) = two(&[idle(), honest()], &["--gate", "strict"]);
    let run = run
        .exits(0)
        .says(&["the change: the build passed, but the new tests prove nothing"]);
    assert_eq!(choice(&run), ["attempt 2", LET_PASS]);
    assert_eq!(run.result()["gate"]["new_tests"], "no-new-tests");
    assert!(!project.path("tests/test_new.py").exists());
    // With `report`, no attempt fails the gate.
    let (_, run) = two(&[idle(), honest()], &["--gate", "report"]);
    assert_eq!(choice(&run.exits(0))[0], "the change");
    let dependent = vec![("go.mod", "module m\n".to_owned())];
    let (project, run) = two(&[dependent, honest()], &["--deny-warnings"]);
    assert_eq!(choice(&run.exits(0)), ["attempt 2", LET_PASS]);
    assert!(!project.path("go.mod").exists());
}

#[test]
fn best_attempt_is_kept_and_the_run_fails_when_all_fail() {
    let larger = vec![comments(9), ("tests/test_new.py", idle_test("new"))];
    let smaller = vec![comments(1), ("tests/test_new.py", idle_test("new"))];
    let (project, run) = two(&[larger, smaller], &["--gate", "strict"]);
    let log = "attempt-query-2-new-tests-build.txt";
    let run = run.exits(1).says(&["the new tests prove nothing", log]);
    assert!(run.logged(log).starts_with("exit code: 0 "));
    let told = ["attempt 2", "the smallest change that has passed: 8 lines"];
    assert_eq!(choice(&run), told);
    assert_eq!(run.result()["gate"]["new_tests"], "not-discriminating");
    assert_eq!(project.read("calc.py"), comments(1).1);
    project.run(&["undo"]).exits(0);
    assert_eq!(project.read("calc.py"), CODE);
}

#[test]
fn concurrent_changes_reach_no_attempt() {
    let project = TestProject::new()
        .file("b.txt", "b\n")
        .file("c.txt", "c\n")
        .mode("c.txt", 0o751)
        .build("test -x c.txt; ! grep -q broken b.txt");
    let [b, c, new, script] =
        ["b.txt", "c.txt", "new.txt", "build.sh"].map(|path| project.path(path));
    let theirs = move || {
        fs::write(new, "new\n").unwrap();
        fs::write(b, "broken\n").unwrap();
        fs::remove_file(c).unwrap();
        fs::write(script, "#!/bin/sh\nexit 1\n").unwrap();
    };
    let texts = ["one\ntwo\n", "one\n"].map(|text| [("a.txt", text.to_owned())]);
    let first = Answer::gemini_after(theirs, &reply(&texts[0]));
    let server = ModelServer::start([first, answer(&texts[1])]);
    let project = project.with(&server);
    let run = project.run(&["--attempts", "2"]).exits(0);
    let warning = "the attempts were built without what somebody has changed meanwhile: `b.txt`, `build.sh`, `c.txt`";
    let made =
        "the attempts may have been built with files that somebody has made meanwhile: `new.txt`";
    let run = run.says(&[warning, made]);
    let why = "the smallest change that has passed: 1 line";
    assert_eq!(choice(&run), ["attempt 2", why]);
    assert_eq!(project.read("b.txt"), "broken\n");
    assert!(!project.path("c.txt").exists());
    assert!(project.read("build.sh").ends_with("exit 1\n"));
}

#[test]
fn build_is_repeated_when_a_file_changes_during_it() {
    let outside = tempfile::tempdir().unwrap();
    let pipe = |name: &str| {
        let path = outside.path().join(name);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, 0o600.into(), 0).unwrap();
        path
    };
    let (begun, go_on) = (pipe("begun"), pipe("go-on"));
    let place = outside.path().display();
    let build = format!(
        "cd {place}; echo >> builds; mkdir first && echo > begun && read x < go-on; cd -; ! grep -q broken b.txt"
    );
    let texts = ["one\n", "one\ntwo\n"].map(|text| [("a.txt", text.to_owned())]);
    let server = ModelServer::start(texts.iter().map(|files| answer(files)));
    let project = TestProject::new()
        .with(&server)
        .file("b.txt", "b\n")
        .build(&build);
    let b = project.path("b.txt");
    let somebody = std::thread::spawn(move || {
        fs::read(begun).unwrap();
        fs::write(b, "broken\n").unwrap();
        fs::write(go_on, "go on\n").unwrap();
    });
    let run = project
        .run(&["--attempts", "2", "--sandbox", "off"])
        .exits(0);
    somebody.join().unwrap();
    let builds = fs::read_to_string(outside.path().join("builds")).unwrap();
    assert!(builds.len() > 2, "{builds:?}");
    let why = "the smallest change that has passed: 1 line";
    assert_eq!(choice(&run), ["the change", why]);
    run.says(&["the attempts were built without what somebody has changed meanwhile: `b.txt`"]);
    assert_eq!(project.read("b.txt"), "broken\n");
}

#[test]
fn the_time_limit_ends_all_calls_and_what_has_passed_by_then_is_taken() {
    let silent = || Answer::silence();
    let ((one, _a), (two, _b), (three, _c)) = (silent(), silent(), silent());
    let server = ModelServer::start([answer(&[("a.txt", "one\n".to_owned())]), one, two]);
    let project = TestProject::new().with(&server);
    let flags = ["--attempts", "3", "--timeout", "2s"];
    let run = project.run(&flags).exits(0);
    assert_eq!(project.read("a.txt"), "one\n");
    let result = run.result();
    let attempts = result["choice"]["attempts"].as_array().unwrap();
    let ended = attempts
        .iter()
        .filter(|attempt| attempt["error"].is_string());
    let seconds: Vec<f64> = ended
        .map(|attempt| attempt["seconds"].as_f64().unwrap())
        .collect();
    let [one, other] = seconds[..] else {
        panic!("{result}")
    };
    assert!((one - other).abs() < 1.0 && one < 30.0, "{seconds:?}");
    let server = ModelServer::start([three]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    let run = project.run(&flags).exits(4);
    assert_eq!(project.tree(), before);
    assert_eq!(server.requests().len(), 1);
    assert_eq!(choice(&run), [Value::Null, Value::Null]);
}
