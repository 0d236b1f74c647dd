//! All tasks of a manifest on this machine.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::{Fleet, GOOD, MINUTE, change, git, kill_all, killed, with};
use crate::support::{Answer, ModelServer, gemini, within_a_minute};

const RUN: [&str; 6] = ["run", "tasks.jsonl", "--out", "out", "--jobs", "4"];

fn run(fleet: &Fleet, more: &[&str]) -> crate::support::Finished {
    fleet.run(&[&RUN, more].concat())
}

fn answer(text: &str) -> Answer {
    Answer::json(&gemini(text))
}

/// Counts the tasks by how they ended.
fn ends(fleet: &Fleet) -> BTreeMap<String, usize> {
    let mut ends = BTreeMap::new();
    for entry in fs::read_dir(fleet.path("out")).unwrap() {
        let path = entry.unwrap().path().join("result.json");
        let Ok(json) = fs::read_to_string(path) else {
            continue;
        };
        let result: Value = serde_json::from_str(&json).unwrap();
        let name = result["exit"]["name"].as_str().unwrap().to_owned();
        *ends.entry(name).or_default() += 1;
    }
    ends
}

#[test]
fn all_tasks_are_done_and_a_second_start_does_nothing() {
    let server = ModelServer::gemini(&[GOOD; 6]);
    let fleet = Fleet::new(&server);
    let tasks: Vec<Value> = (0..6).map(|task| change(&format!("t{task}"))).collect();
    fleet.tasks(&tasks);
    let ran = run(&fleet, &[]).exits(0);
    assert!(
        ran.stdout.contains("done 6; $") && ran.stdout.contains("done: 6 of 6 tasks"),
        "{}",
        ran.stdout
    );
    assert_eq!(
        ran.stderr
            .lines()
            .filter(|line| line.contains("  done  $"))
            .count(),
        6
    );
    assert_eq!(ends(&fleet), [("done".to_owned(), 6)].into());
    run(&fleet, &[]).exits(0);
    assert_eq!(server.requests().len(), 6);
    // As JSON.
    let told = run(&fleet, &["--output-format", "json"]).exits(0);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        (&told["tasks"], &told["ended"]),
        (&json!(6), &json!({"done": 6}))
    );
}

#[test]
fn a_program_gets_an_event_for_each_task_and_no_table() {
    let fleet = Fleet::new(&ModelServer::gemini(&[GOOD; 2]));
    fleet.tasks(&[change("a"), change("b")]);
    let ran = run(&fleet, &["--output-format", "jsonl"]).exits(0);
    let events: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for id in ["a  done  $", "b  done  $"] {
        let tells = |event: &&Value| event.to_string().contains(id);
        assert_eq!(events.iter().filter(tells).count(), 1, "{}", ran.stdout);
    }
    assert!(!ran.stderr.contains('\x1b'), "{}", ran.stderr);
}

#[test]
fn a_failure_that_may_pass_is_tried_twice_more_and_no_other() {
    let busy = || Answer::error(503, &json!({"error": {"message": "busy"}}));
    let refused = || Answer::error(400, &json!({"error": {"message": "no"}}));
    // A call is retried several times within its time limit.
    let server = ModelServer::start((0..200).map(|_| busy()));
    let fleet = Fleet::new(&server);
    fleet.tasks(&[with(change("a"), &json!({"flags": {"timeout": "1s"}}))]);
    let ran = run(&fleet, &[]).exits(1);
    ran.says(&["1 of 1 tasks have failed"]);
    let runs = fs::read_dir(fleet.path("out/a/log")).unwrap();
    let runs = runs.filter(|entry| entry.as_ref().unwrap().path().is_dir());
    assert_eq!(runs.count(), 3);
    let server = ModelServer::start([refused(), answer(GOOD)]);
    let fleet = Fleet::new(&server);
    fleet.tasks(&[change("a")]);
    let told = run(&fleet, &["--output-format", "json"]).exits(1);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert!(told["cost"].is_number(), "{told}");
    assert_eq!(server.requests().len(), 1);
    // Running it again has the same effect as an engine's requeueing.
    run(&fleet, &[]).exits(0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn the_first_tasks_decide_whether_the_others_begin() {
    let bad = "^^^build.sh\nx\n^^^end\n";
    let server = ModelServer::gemini(&[&[bad, GOOD][..], &[GOOD; 8]].concat());
    let fleet = Fleet::new(&server);
    let tasks: Vec<Value> = (0..5).map(|task| change(&format!("t{task}"))).collect();
    fleet.tasks(&tasks);
    let one_by_one = [
        "run",
        "tasks.jsonl",
        "--out",
        "out",
        "--jobs",
        "1",
        "--first",
        "2",
        "--stop-above",
    ];
    let stopped = fleet.run(&[&one_by_one[..], &["49%"]].concat()).exits(1);
    let stopped = stopped.says(&["1 of the first 2 tasks have failed, more than 49 %"]);
    let counts = stopped.stdout.lines().next().unwrap();
    for part in ["done 1", "open ", "$0.0"] {
        assert!(counts.contains(part), "{counts}");
    }
    assert_eq!(server.requests().len(), 2);
    fleet.run(&[&one_by_one[..], &["50"]].concat()).exits(1);
    assert_eq!(server.requests().len(), 5);
    assert_eq!(ends(&fleet)["done"], 4);
}

#[test]
fn task_does_not_start_unless_its_budget_is_covered() {
    let server = ModelServer::gemini(&[GOOD; 10]);
    let fleet = Fleet::new(&server);
    let task = |id: usize| with(change(&format!("t{id}")), &json!({"max_cost": 0.2}));
    fleet.tasks(&[change("a")]);
    let told = run(&fleet, &["--max-cost", "1"]).exits(3);
    told.says(&["`--max-cost` needs a `max_cost` of each task, and `a` has none"]);
    fleet.tasks(&(0..5).map(task).collect::<Vec<_>>());
    let told = run(&fleet, &["--max-cost", "0.19"]).exits(1);
    told.says(&["is not begun: it may cost $0.20"]);
    assert!(server.requests().is_empty());
    // At most two run at a time, and all of them in the end, since none costs as much as it may.
    run(&fleet, &["--max-cost", "0.45"]).exits(0);
    assert_eq!(server.requests().len(), 5);
    let most = reserved(&fleet).into_iter().fold(0.0, f64::max);
    assert!((0.2..=0.45).contains(&most), "{most}");
}

#[test]
fn unusable_repository_fails_only_its_own_task() {
    let server = ModelServer::gemini(&[GOOD; 4]);
    let fleet = Fleet::new(&server);
    fleet.tasks(&[
        change("a"),
        with(change("b"), &json!({"repository": "nowhere"})),
        with(change("c"), &json!({"ref": "no-such"})),
        change("d"),
    ]);
    let told = run(&fleet, &[]).exits(1);
    let told = told.says(&["b  not-ready", "line 2: ", "c  not-ready", "line 3: "]);
    assert!(
        told.stdout.contains("done 2, not-ready 2; $"),
        "{}",
        told.stdout
    );
    for (id, problem) in [("b", "cannot open `nowhere`"), ("c", "`no-such`: ")] {
        let result = fleet.result(id);
        assert_eq!(result["exit"]["code"], 3);
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains(problem), "{message}");
    }
    let checked = fleet.run(&["check", "tasks.jsonl"]).exits(3);
    checked.says(&["2 of 4 tasks are not ready"]);
    fleet.repository("nowhere", "grep -q 42 answer");
    git(&fleet.path("web"), &["branch", "no-such"]);
    run(&fleet, &[]).exits(0);
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_task_of_another_manifest_does_not_pass_for_the_one_of_its_id() {
    let server = ModelServer::gemini(&[GOOD; 2]);
    let fleet = Fleet::new(&server);
    fleet.tasks(&[change("a")]);
    fleet.task("0").exits(0);
    let other = with(change("a"), &json!({"query": "Write another answer."}));
    fs::write(fleet.path("other.jsonl"), format!("{other}\n")).unwrap();
    for words in [
        &["task", "other.jsonl", "0", "--out", "out"][..],
        &["run", "other.jsonl", "--out", "out"],
    ] {
        let told = fleet.run(words).exits(3);
        told.says(&[
            "out/a` is the folder of another task `a`",
            "another `--out`",
        ]);
    }
    fleet
        .run(&["run", "other.jsonl", "--out", "other"])
        .exits(0);
    run(&fleet, &[]).exits(0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn larger_limit_reopens_a_task_that_ran_out_of_money() {
    let mut dear = gemini(super::BAD);
    dear["usageMetadata"]["candidatesTokenCount"] = json!(15_000);
    let answers = [Answer::json(&dear), answer(super::BAD), answer(GOOD)];
    let server = ModelServer::start(answers);
    let fleet = Fleet::new(&server);
    let limited = |limit: f64| {
        let first = with(change("a"), &json!({"max_cost": limit}));
        [first, with(change("b"), &json!({"max_cost": 0.0001}))]
    };
    // Enough for a first call only.
    fleet.tasks(&limited(0.2));
    for _ in 0..2 {
        run(&fleet, &[]).exits(1);
        assert_eq!(fleet.result("a")["error"]["reason"], "budget");
        assert_eq!(fleet.result("b")["error"]["reason"], "budget");
        assert_eq!(server.requests().len(), 1);
    }
    fleet.tasks(&limited(5.0));
    run(&fleet, &[]).exits(1);
    assert_eq!(fleet.result("a")["exit"]["name"], "done");
    assert_eq!(fleet.result("b")["exit"]["name"], "not-ready");
    assert_eq!(server.requests().len(), 3);
    assert!(fleet.project.read("out/a/change.patch").contains("+42\n"));
}

#[test]
fn nothing_is_done_of_an_empty_manifest() {
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    fleet.tasks(&[]);
    let ran = run(&fleet, &[]).exits(0);
    assert!(ran.stdout.contains("no tasks; $0"), "{}", ran.stdout);
    let checked = fleet.run(&["check", "tasks.jsonl"]).exits(0);
    for run in [ran, checked] {
        let told = "the manifest has no tasks";
        assert!(run.stdout.contains(told), "{}", run.stdout);
    }
    let lines = format!("{}\n\n{}\n", change("a"), change("b"));
    fs::write(fleet.path("tasks.jsonl"), lines).unwrap();
    let blank = fleet.run(&["check", "tasks.jsonl"]).exits(3);
    blank.says(&[
        "tasks.jsonl` has mistakes",
        "line 2, column 1: the line is blank",
    ]);
    fs::write(fleet.path("tasks.jsonl"), "\n \n").unwrap();
    let blank = fleet.run(&["check", "tasks.jsonl"]).exits(3);
    blank.says(&[
        "line 1, column 1: the line is blank",
        "line 2, column 1: the line is blank",
    ]);
    let none = fleet.run(&["run", "tasks.jsonl", "--out", "out", "--jobs", "0"]);
    let none = none.exits(2);
    none.says(&["'0' for '--jobs <N>': write a whole number above 0"]);
}

/// Returns the amount spent and reserved after each line of the ledger.
fn reserved(fleet: &Fleet) -> Vec<f64> {
    let mut accounts = BTreeMap::new();
    let ledger = fleet.project.read("out/ledger.jsonl");
    let sums = ledger.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let amount = |name: &str| line[name].as_f64().unwrap();
        let task = line["task"].as_str().unwrap().to_owned();
        accounts.insert(task, amount("spent") + amount("reserved"));
        accounts.values().sum()
    });
    sums.collect()
}

#[test]
fn an_interrupt_ends_all_in_order_and_the_next_start_continues_there() {
    let (silence, heard) = Answer::silence();
    let server = ModelServer::start([silence, answer(GOOD), answer(GOOD)]);
    let fleet = Fleet::new(&server);
    fleet.tasks(&[change("a"), change("b")]);
    let words = ["fleet", "run", "tasks.jsonl", "--out", "out", "--jobs", "1"];
    let started = fleet.project.start(&words);
    heard.recv_timeout(MINUTE).unwrap();
    let process = started.id().to_string();
    Command::new("kill")
        .args(["-INT", &process])
        .status()
        .unwrap();
    let ended = started.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert_eq!(server.requests().len(), 1);
    assert!(ends(&fleet).is_empty());
    run(&fleet, &[]).exits(0);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_rate_limit_that_one_task_has_used_up_paces_the_others() {
    let headers = [
        ("content-type", "application/json"),
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1h"),
    ];
    let used_up = || Answer::new(200, &headers, gemini(GOOD).to_string());
    let server = ModelServer::start([used_up(), used_up()]);
    let fleet = Fleet::new(&server);
    // The time limit of a call limits the wait.
    let patient = json!({"flags": {"timeout": "2s"}});
    fleet.tasks(&[change("a"), with(change("b"), &patient)]);
    let words = ["run", "tasks.jsonl", "--out", "out", "--jobs", "1"];
    fleet.run(&words).exits(0);
    let waits = "waits 2s: the server's rate limit is used up";
    let told = |id: &str| fleet.project.read(&format!("out/{id}/log/stderr.txt"));
    assert!(!told("a").contains("waits"), "{}", told("a"));
    assert!(told("b").contains(waits), "{}", told("b"));
    let files = fs::read_dir(fleet.path("out/.pace")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    fleet.run(&["report", "out"]).exits(0);
}

#[test]
fn a_campaign_that_is_killed_again_and_again_pays_nothing_twice() {
    let answers = (0..40).map(|_| answer(GOOD));
    let server = ModelServer::start(answers);
    let fleet = Fleet::new(&server);
    let limited = |task| with(task, &json!({"max_cost": 0.5}));
    let tasks = (0..12).map(|task| limited(change(&format!("t{task}"))));
    let gone = with(change("gone"), &json!({"repository": "nowhere"}));
    fleet.tasks(&tasks.chain([limited(gone)]).collect::<Vec<_>>());
    for wanted in [1, 4, 8] {
        let words = "fleet run tasks.jsonl --out out --jobs 3 --max-cost 1.5".split(' ');
        let mut started = fleet.project.start(&words.collect::<Vec<_>>());
        assert!(within_a_minute(|| server.requests().len() >= wanted));
        started.kill().unwrap();
        started.wait().unwrap();
    }
    run(&fleet, &["--max-cost", "1.5"]).exits(1);
    let expected = [("done".to_owned(), 12), ("not-ready".to_owned(), 1)];
    assert_eq!(ends(&fleet), expected.into());
    assert_eq!(server.requests().len(), 12);
    // The budget was never exceeded, and the amounts spent match the results.
    let sums = reserved(&fleet);
    assert!(sums.iter().all(|sum| *sum < 1.500_000_1), "{sums:?}");
    let costs = (0..12).map(|task| fleet.result(&format!("t{task}"))["task"]["cost"].as_f64());
    let paid: f64 = costs.map(Option::unwrap).sum();
    assert!((paid - sums.last().unwrap()).abs() < 1e-7, "{paid}");
}

#[test]
fn ten_thousand_finished_tasks_begin_at_once() {
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    let count = 10_000;
    let tasks: Vec<Value> = (0..count).map(|task| change(&format!("t{task}"))).collect();
    fleet.tasks(&tasks);
    let mut ledger = String::new();
    for task in 0..count {
        let folder = fleet.path(&format!("out/t{task}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("result.json"), "{}").unwrap();
        let account = json!({"task": format!("t{task}"), "spent": 0.01, "reserved": 0.0, "exit": [0, "done"]});
        ledger += &format!("{account}\n");
    }
    fs::write(fleet.path("out/ledger.jsonl"), ledger).unwrap();
    run(&fleet, &[]).exits(0);
    let began = Instant::now();
    let ran = run(&fleet, &[]).exits(0);
    assert!(ran.stdout.contains("done 10000; $100.00"), "{}", ran.stdout);
    // A release build needs a fraction of it: `cargo bench --bench runs -- fleet`.
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[test]
fn a_task_that_a_killed_campaign_has_left_behind_is_awaited() {
    let (silence, heard) = Answer::silence();
    let server = ModelServer::start([silence, answer(GOOD)]);
    let fleet = Fleet::new(&server);
    // The second task needs no server, since the budget does not cover it.
    let unpaid = with(change("b"), &json!({"max_cost": 0.0001}));
    fleet.tasks(&[change("a"), unpaid]);
    let words = ["fleet", "run", "tasks.jsonl", "--out", "out", "--jobs", "1"];
    let started = fleet.project.start(&words);
    heard.recv_timeout(MINUTE).unwrap();
    let left = killed(started);
    let mut again = fleet.project.start(&words);
    // It finds the first task running, and finishes the second one meanwhile.
    assert!(within_a_minute(|| fleet.has("out/b/result.json")));
    assert!(again.try_wait().unwrap().is_none() && !fleet.has("out/a/result.json"));
    kill_all(&left);
    let ended = again.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let expected = [("done".to_owned(), 1), ("not-ready".to_owned(), 1)];
    assert_eq!(ends(&fleet), expected.into());
    assert_eq!(server.requests().len(), 2);
}
