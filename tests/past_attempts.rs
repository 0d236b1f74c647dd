//! Output about past runs with several attempts, and the commands that apply to them.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Answer, Finished, ModelServer, TestProject, gemini, within_a_minute};

const BUILD: &str = "grep -n bad a.txt | sed 's/^\\([0-9]*\\):\\(.*\\)/a.txt:\\1: error: \\2/'; ! grep -q bad a.txt";

fn answer(text: &str) -> Answer {
    Answer::json(&gemini(&format!("^^^a.txt\n{text}\n^^^end\n")))
}

/// A run with three attempts, of which only the first is answered and built; it is ended by this signal.
fn ended(signal: Signal) -> (ModelServer, TestProject, String) {
    let silent = [(); 2].map(|()| Answer::silence());
    let (silent, told): (Vec<_>, Vec<_>) = silent.into_iter().unzip();
    let server = ModelServer::start([answer("one")].into_iter().chain(silent));
    let project = TestProject::new().with(&server);
    let mut child = project.start(&["--attempts", "3"]);
    for told in told {
        told.recv().unwrap();
    }
    let steps = project.runs()[0].join("steps.jsonl");
    let is_built = || fs::read_to_string(&steps).is_ok_and(|steps| steps.contains("\"build\":{"));
    assert!(within_a_minute(is_built));
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, signal).unwrap();
    child.wait().unwrap();
    let name = project.runs()[0].file_name().unwrap().to_owned();
    (server, project, name.into_string().unwrap())
}

fn passed(run: &Finished) -> Vec<bool> {
    let result = run.result();
    let attempts = result["choice"]["attempts"].as_array().unwrap().iter();
    attempts.map(|attempt| attempt["passed"] == true).collect()
}

#[test]
fn of_a_run_that_was_ended_nothing_was_applied_and_its_attempts_are_listed() {
    for signal in [Signal::KILL, Signal::INT] {
        let (_server, project, run) = ended(signal);
        let log = project.run(&["log", &run]).exits(0).stdout;
        let lines = log.lines().map(|line| line.split_whitespace().collect());
        let lines: Vec<Vec<&str>> = lines.collect();
        // The record of an interrupted run has an error for each attempt.
        let not_built = if signal == Signal::KILL { "-" } else { "no" };
        for (attempt, passed) in [
            (["the", "change"], "yes"),
            (["attempt", "2"], not_built),
            (["attempt", "3"], not_built),
        ] {
            let row = [&attempt[..], &["gemini-2.5-pro", passed]].concat();
            assert!(lines.iter().any(|line| line.starts_with(&row)), "{log}");
        }
        let told = "none is taken: nothing was applied";
        assert!(log.contains(told) && log.contains("built in a scratch tree of its own"));
        assert!(
            !log.contains("changed no files") && !log.contains("a.txt"),
            "{log}"
        );
        let said = "changed nothing: none of its 3 attempts was applied";
        let diff = project.run(&["diff", &run]).exits(0);
        assert!(diff.stdout.contains(said), "{}", diff.stdout);
        project
            .run(&["report", &run, "--output", "page.html"])
            .exits(0);
        let page = project.read("page.html");
        for part in [
            "<h2>Attempts</h2>",
            told,
            "built in a scratch tree of its own.",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("The reply changed no files."));
    }
}

#[test]
fn a_killed_run_is_replayed_with_the_attempts_that_it_made() {
    let (server, project, run) = ended(Signal::KILL);
    let hint = format!("`code-commit --replay {run}` makes its attempts again, without a call");
    let recovered = project.run(&["recover"]).exits(0).says(&[&hint]);
    assert!(
        !recovered.stderr.contains("--resume"),
        "{}",
        recovered.stderr
    );
    let again = project.run(&["--replay", &run]).exits(0);
    assert_eq!(passed(&again), [true, false, false]);
    assert_eq!(project.read("a.txt"), "one\n");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_replay_of_the_first_pass_shows_that_the_others_were_ended() {
    let (other, _told) = Answer::silence();
    let server = ModelServer::start([answer("one"), other]);
    let project = TestProject::new().with(&server);
    let run = project.run(&["--attempts", "2", "--first-pass"]).exits(0);
    project.run(&["undo"]).exits(0);
    // `last` means the last run, not its undo.
    let again = project.run(&["--replay", "last"]).exits(0);
    assert_eq!(
        again.result()["choice"]["attempts"][1]["error"],
        "ended, since another one has passed"
    );
    assert_eq!(passed(&again), passed(&run));
    assert!(!again.stderr.contains("interrupted"), "{}", again.stderr);
    assert_eq!(project.read("a.txt"), "one\n");
}

#[test]
fn hints_name_what_works() {
    let server = ModelServer::start((0..5).map(|nth| answer(&format!("bad {nth}"))));
    let project = TestProject::new().with(&server).build(BUILD);
    let run = project.run(&["--attempts", "2"]).exits(1);
    let hint = run.result()["error"]["hint"].as_str().unwrap().to_owned();
    assert!(
        hint.contains("run again for other attempts: those of one run are not resumed"),
        "{hint}"
    );
    let project = TestProject::new().file("a.txt", "old\n").file(
        "agent-config/codeRollup.txt",
        "--- src/main.rs ---\nfn main() {}\n--- a.txt ---\nold\n",
    );
    let path = project.path("a.txt");
    let theirs = move || fs::write(path, "theirs\n").unwrap();
    let first = Answer::gemini_after(theirs, "^^^a.txt\none\n^^^end\n");
    let server = ModelServer::start([first, answer("one")]);
    let project = project.with(&server);
    let run = project.run(&["--attempts", "2"]).exits(5);
    run.says(&["`code-commit --replay RUN` makes all attempts again, without a call"]);
}

#[test]
fn the_page_and_the_summary_have_the_table_of_the_terminal() {
    let server = ModelServer::start([answer("one\ntwo"), answer("one")]);
    let project = TestProject::new().with(&server);
    let flags = ["--attempts", "2", "--summary-file", "summary.md"];
    let run = project.run(&flags).exits(0);
    project
        .run(&["report", &run.folder, "--output", "page.html"])
        .exits(0);
    let (page, summary) = (project.read("page.html"), project.read("summary.md"));
    assert!(page.contains("<h2>Attempts</h2>"), "{page}");
    assert!(summary.contains("\n### Attempts\n"), "{summary}");
    let attempts = run.result()["choice"]["attempts"].clone();
    for attempt in attempts.as_array().unwrap() {
        let cells = ["step", "model"].map(|name| attempt[name].as_str().unwrap());
        let lines = &attempt["lines"];
        let row = format!("| {} | {} | yes | none | {lines} | $", cells[0], cells[1]);
        assert!(summary.contains(&row), "{row}\n{summary}");
        assert!(
            page.contains(&format!("<th scope=\"row\">{}</th>", cells[0])),
            "{page}"
        );
    }
    let taken = "attempt 2 is taken: the smallest change that has passed: 1 line";
    assert!(page.contains(taken) && summary.contains(taken));
}

#[test]
fn a_statement_vouches_for_what_repairs_replaced() {
    let server = ModelServer::start([answer("bad"), answer("good")]);
    let project = TestProject::new()
        .with(&server)
        .file("a.txt", "old\n")
        .build(BUILD);
    let run = project.run(&[]).exits(0);
    project.run(&["attest", "-o", "statement"]).exits(0);
    let saved = format!("logs/{}/replaced", run.folder);
    for nth in ["1", "2"] {
        let path = project.path(&format!("{saved}/{nth}"));
        let was = fs::read(&path).unwrap();
        fs::write(&path, [&was[..], b"x"].concat()).unwrap();
        project.run(&["verify", "statement"]).exits(1);
        fs::remove_file(&path).unwrap();
        project.run(&["verify", "statement"]).exits(1);
        fs::write(&path, was).unwrap();
        project.run(&["verify", "statement"]).exits(0);
    }
    let statement: Value = serde_json::from_str(&project.read("statement")).unwrap();
    let log = statement["predicate"]["log"].as_array().unwrap().iter();
    let names: Vec<_> = log.map(|file| &file["name"]).collect();
    assert_eq!(names.last(), Some(&&json!("replaced/2")));
}

#[test]
fn a_build_that_came_to_no_end_is_the_worst_attempt() {
    for hangs in ["sleep 600", "exit 127", "kill -9 $$"] {
        let build = format!("grep -q slow a.txt && {{ {hangs}; }}; {BUILD}");
        let all = ["slow", "bad a\nbad b", "good"];
        let server = ModelServer::start(all.map(answer));
        let project = TestProject::new().with(&server).build(&build);
        let flags = ["--attempts", "2", "--build-timeout", "2s"];
        let run = project.run(&flags).exits(0);
        assert_eq!(run.result()["choice"]["taken"], "attempt 2", "{hangs}");
        assert!(server.requests()[2].user().contains("error: bad b"));
    }
}
