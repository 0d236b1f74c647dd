//! The report on all results.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use super::{BAD, Fleet, GOOD, change, with};
use crate::machine::fits_sarif;
use crate::support::{Finished, ModelServer};

/// A campaign of three tasks: `web` is done, `lint` fails with a finding in a file, and `gate` fails because it changes
/// its tests.
fn campaign() -> Fleet {
    let replies = [&[GOOD][..], &[BAD; 8][..]].concat();
    let fleet = Fleet::new(&ModelServer::gemini(&replies));
    let build = "grep -q 42 answer || { echo 'answer:1:1: error: not 42'; echo '../x.c:1:1: error: out'; echo 'nope.c:1:1: error: no'; exit 1; }";
    fleet.repository("lint", build);
    let labelled = |id: &str, repository: &str, team: &str| {
        let more = json!({"id": id, "repository": repository, "labels": {"team": team}});
        with(change(id), &more)
    };
    fleet.tasks(&[
        labelled("web", "web", "=x"),
        labelled("lint", "lint", "y"),
        labelled("gate", "lint", "y"),
    ]);
    for (index, code) in [("0", 0), ("1", 1), ("2", 1)] {
        fleet.task(index).exits(code);
    }
    let path = fleet.path("out/gate/result.json");
    let mut result = fleet.result("gate");
    result["warning_details"] = json!([{
        "code": "test-skipped", "path": "a test.py", "line": 3, "message": "`a test.py` skips a test",
    }]);
    fs::write(path, result.to_string()).unwrap();
    fleet
}

fn report(fleet: &Fleet, format: &str) -> Finished {
    fleet.run(&["report", "out", "--output-format", format])
}

#[test]
fn all_results_are_one_table_and_one_page() {
    let fleet = campaign();
    let told = report(&fleet, "text").exits(0);
    let lines: Vec<&str> = told.stdout.lines().collect();
    let row = |beginning: &str| {
        let words = |line: &&str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut rows = lines.iter().map(words);
        rows.find(|row| row.starts_with(beginning))
            .unwrap_or_default()
    };
    assert!(row("all").starts_with("all 3 1 $"), "{}", told.stdout);
    assert!(row("outcome build-failed").starts_with("outcome build-failed 2 0 $"));
    assert!(row("label team=y").starts_with("label team=y 2 0 $"));
    assert!(row("model gemini-2.5-pro").starts_with("model gemini-2.5-pro 3 1 $"));
    // Files that judge a change come before its size.
    let first = lines
        .iter()
        .position(|line| line.starts_with("task "))
        .unwrap();
    assert!(
        lines[first + 1].starts_with("gate  the gate"),
        "{}",
        told.stdout
    );
    assert!(
        told.stdout
            .ends_with("done: the page is in out/report.html\n")
    );
    let page = fleet.project.read("out/report.html");
    for part in [
        "1 of 3 tasks are done",
        "./gate/report.html",
        "team==x",
        "Write the answer.",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Elsewhere, links would be broken.
    fleet
        .run(&["report", "out", "--output", "sum.html"])
        .exits(0);
    let page = fleet.project.read("sum.html");
    assert!(page.contains("1 of 3 tasks are done") && !page.contains("./gate/report.html"));
}

#[test]
fn the_sums_are_those_of_the_results() {
    let fleet = campaign();
    let told: Value = serde_json::from_str(&report(&fleet, "json").exits(0).stdout).unwrap();
    let cost = |id: &str| fleet.result(id)["task"]["cost"].as_f64().unwrap();
    let sum = cost("web") + cost("lint") + cost("gate");
    assert!((told["total"]["cost"].as_f64().unwrap() - sum).abs() < 1e-9);
    assert_eq!(told["by"]["outcome"]["done"]["tasks"], 1);
    assert_eq!(told["look_first"][0], "gate");
    let tasks = told["tasks"].as_array().unwrap();
    let ids: Vec<_> = tasks
        .iter()
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["web", "lint", "gate"]);
    assert_eq!(tasks[0]["repository"], fleet.path("web").to_str().unwrap());
    let csv = report(&fleet, "csv").exits(0).stdout;
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(rows[0].starts_with("id,index,repository,") && rows[0].ends_with(",labels,error"));
    assert!(
        rows[1].starts_with("web,0,/") && rows[1].contains(",0,done,"),
        "{csv}"
    );
    let columns = rows[0].split(',').count();
    assert!(rows[1].split(',').count() == columns, "{csv}");
}

#[test]
fn sarif_has_a_place_and_a_fingerprint_for_each_result() {
    let fleet = campaign();
    let printed = report(&fleet, "sarif").exits(0).stdout;
    let log: Value = serde_json::from_str(&printed).unwrap();
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    let told: BTreeSet<String> = results.iter().map(place).collect();
    let expected = ["gate a%20test.py 3", "gate answer 1", "lint answer 1"];
    assert_eq!(told, expected.map(str::to_owned).into());
    let fingerprints: BTreeSet<_> = results
        .iter()
        .map(|one| one["partialFingerprints"]["primaryLocationLineHash"].to_string())
        .collect();
    assert_eq!(fingerprints.len(), results.len());
    assert_eq!(report(&fleet, "sarif").stdout, printed);
    fits_sarif(&log);
    let notified = run["invocations"][0]["toolExecutionNotifications"].to_string();
    for told in ["lint: ../x.c: out", "gate: nope.c: no"] {
        assert!(notified.contains(told), "{notified}");
    }
}

/// Returns the task, the file and the line of a result.
fn place(result: &Value) -> String {
    let place = &result["locations"][0]["physicalLocation"];
    let (file, line) = (&place["artifactLocation"], &place["region"]["startLine"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    format!("{} {} {line}", text(&file["uriBaseId"]), text(&file["uri"]))
}

#[test]
fn a_task_that_was_killed_counts_with_what_it_has_cost() {
    let fleet = campaign();
    fs::remove_file(fleet.path("out/lint/result.json")).unwrap();
    let told: Value = serde_json::from_str(&report(&fleet, "json").exits(0).stdout).unwrap();
    let unfinished = &told["by"]["outcome"]["unfinished"];
    assert_eq!(
        (&unfinished["tasks"], &unfinished["done"]),
        (&json!(1), &json!(0))
    );
    assert!(unfinished["cost"].as_f64().unwrap() > 0.0);
    assert_eq!(told["by"]["model"]["unknown"]["cost"], unfinished["cost"]);
    assert_eq!(told["tasks"][2]["exit"], Value::Null);
}

#[test]
fn a_result_that_cannot_be_read_is_a_row_and_so_is_a_task_that_has_not_begun() {
    let fleet = campaign();
    fs::write(fleet.path("out/lint/result.json"), "{\"exit\": ").unwrap();
    let unpaid = with(change("unpaid"), &json!({"max_cost": 1.0}));
    fleet.tasks(&[unpaid]);
    fleet
        .run(&["run", "tasks.jsonl", "--out", "out", "--max-cost", "0.5"])
        .exits(1);
    let told = report(&fleet, "json").exits(0);
    let told = told.says(&["cannot read", "out/lint/result.json"]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    let outcomes = &told["by"]["outcome"];
    for name in ["unreadable", "not-begun", "done"] {
        assert_eq!(outcomes[name]["tasks"], 1, "{name}: {outcomes}");
    }
    let tasks = told["tasks"].as_array().unwrap();
    let lint = tasks.iter().find(|task| task["id"] == "lint").unwrap();
    assert!(lint["error"].as_str().unwrap().contains("result.json"));
    assert!(lint["cost"].as_f64().unwrap() > 0.0);
    for format in ["text", "csv", "sarif"] {
        report(&fleet, format).exits(0);
    }
    assert!(fleet.project.read("out/report.html").contains("unreadable"));
    let published = fleet.run(&["publish", "out", "--branch", "fix"]).exits(0);
    published.says(&["out/lint/result.json"]);
}

#[test]
fn tasks_without_a_folder_are_rows() {
    let fleet = campaign();
    let cost = |told: &Value| told["total"]["cost"].as_f64().unwrap();
    let read = |fleet: &Fleet| -> Value {
        serde_json::from_str(&report(fleet, "json").exits(0).stdout).unwrap()
    };
    let before = read(&fleet);
    // What it has cost stays spent.
    fs::remove_dir_all(fleet.path("out/lint")).unwrap();
    let first = with(change("first"), &json!({"ref": "no-such"}));
    fleet.tasks(&[first, change("second")]);
    let stopped = ["--first", "1", "--stop-above", "0%"];
    fleet
        .run(&[&["run", "tasks.jsonl", "--out", "out"], &stopped[..]].concat())
        .exits(1);
    let told = read(&fleet);
    assert!((cost(&told) - cost(&before)).abs() < 1e-6, "{told}");
    let outcome = |name: &str| told["by"]["outcome"][name]["tasks"].clone();
    assert_eq!(
        (&told["total"]["done"], outcome("not-begun")),
        (&before["total"]["done"], json!(1)),
        "{told}"
    );
}

#[test]
fn there_is_no_report_on_nothing_and_no_csv_of_anything_else() {
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    fs::create_dir(fleet.path("out")).unwrap();
    report(&fleet, "text")
        .exits(2)
        .says(&["there is no result of a task in"]);
    assert!(!fleet.has("out/report.html") && !fleet.has("out/ledger.jsonl"));
    let told = fleet
        .project
        .run(&["models", "--output-format", "csv"])
        .exits(2);
    told.says(&["`--output-format csv` is for `fleet report`"]);
    // A file of the user's own is kept.
    let fleet = campaign();
    fs::write(fleet.path("out/report.html"), "mine").unwrap();
    report(&fleet, "text")
        .exits(6)
        .says(&["there is a file that is no page"]);
    assert_eq!(fleet.project.read("out/report.html"), "mine");
}
