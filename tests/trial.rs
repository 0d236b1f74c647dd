//! `models --try`: a model is asked for small changes, and the verdicts on its replies are counted and remembered.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::confinement::visible_directory;
use crate::support::{Answer, ModelServer, TestProject, bubblewrap_works, gemini};

/// The changes in the order in which they are requested.
const CHANGES: [&str; 8] = [
    "rename",
    "flag",
    "off-by-one",
    "delete",
    "new-file",
    "two-places",
    "line-ends",
    "one-of-two",
];

fn source(name: &str) -> String {
    let path = format!(
        "{}/fixtures/trial/project/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    fs::read_to_string(path).unwrap()
}

fn whole(files: &[(&str, String)]) -> String {
    let blocks = files
        .iter()
        .map(|(path, content)| format!("^^^{path}\n{content}^^^end\n"));
    blocks.collect()
}

/// Whole files with each change.
fn right() -> [String; 8] {
    let [report, text] = ["report.sh", "text.sh"].map(source);
    let (stations, settings) = (source("stations.csv"), source("settings.json"));
    let counting = "if [ \"${1:-}\" = --count ]; then\n    grep -c . stations.csv\n    exit\nfi\nshout \"stations\"";
    let flag = report
        .replace("./report.sh\n", "./report.sh [--count]\n")
        .replace("shout \"stations\"", counting);
    let largest = "largest() {\n    largest=$1\n    for number in \"$@\"; do\n        \
        [ \"$number\" -le \"$largest\" ] || largest=$number\n    done\n    echo \"$largest\"\n}\n";
    let stations = stations
        .replace("Valley,928,auto", "Valley,402,auto")
        .replace("Valley,629,staffed", "Valley,629,auto");
    let ini = source("settings.ini")
        .replace("=en", "=fr")
        .replace("=80", "=100");
    let (download, upload) = settings.split_once("\"upload\"").unwrap();
    let upload = upload.replace("\"retries\": 3", "\"retries\": 5");
    [
        whole(&[
            ("report.sh", report.replace("shout", "capitals")),
            ("text.sh", text.replace("shout", "capitals")),
        ]),
        whole(&[("report.sh", flag)]),
        whole(&[("text.sh", text.replace("-le", "-lt"))]),
        "^^^legacy.sh\n^^^delete\n".to_owned(),
        whole(&[("numbers.sh", largest.to_owned())]),
        whole(&[("stations.csv", stations)]),
        whole(&[("settings.ini", ini)]),
        whole(&[("settings.json", format!("{download}\"upload\"{upload}"))]),
    ]
}

/// A file as edits: lines to find, and their replacements.
fn edited(path: &str, parts: &[(&str, &str)]) -> String {
    let parts = parts
        .iter()
        .map(|(find, put)| format!("^^^find\n{find}\n^^^put\n{put}\n"));
    format!("^^^{path}\n{}^^^end\n", parts.collect::<String>())
}

/// Replies with each change, as whole files and edits in turn.
fn both() -> Vec<String> {
    let [_, flag, _, delete, new, ..] = right();
    let report = edited(
        "report.sh",
        &[("shout \"stations\"", "capitals \"stations\"")],
    );
    let text = edited("text.sh", &[("shout() {", "capitals() {")]);
    let stations = [
        (
            "S093,Maple Valley,629,staffed",
            "S093,Maple Valley,629,auto",
        ),
        ("S017,Aspen Valley,928,auto", "S017,Aspen Valley,402,auto"),
    ];
    let upload = "  \"upload\": {\n    \"retries\": ";
    let (three, five) = (format!("{upload}3,"), format!("{upload}5,"));
    let dashes = |test| format!("    while [ \"$i\" {test} \"$1\" ]; do");
    let edits = [
        format!("{report}{text}^^^done 2\n"),
        format!("{flag}^^^done 1\n"),
        edited("text.sh", &[(&dashes("-le"), &dashes("-lt"))]) + "^^^done 1\n",
        format!("{delete}^^^done 1\n"),
        format!("{new}^^^done 1\n"),
        edited("stations.csv", &stations) + "^^^done 1\n",
        edited(
            "settings.ini",
            &[("language=en", "language=fr"), ("width=80", "width=100")],
        ) + "^^^done 1\n",
        edited("settings.json", &[(&three, &five)]) + "^^^done 1\n",
    ];
    right()
        .into_iter()
        .zip(edits)
        .flat_map(|(whole, edits)| [whole, edits])
        .collect()
}

fn answers(texts: &[String]) -> Vec<Answer> {
    texts
        .iter()
        .map(|text| Answer::json(&gemini(text)))
        .collect()
}

fn remembered(project: &TestProject) -> Value {
    serde_json::from_str(&project.read("agent-config/model-rates.json")).unwrap()
}

#[test]
fn right_replies_are_counted_and_remembered_next_to_the_table_alone() {
    if !bubblewrap_works() {
        return;
    }
    let server = ModelServer::start(answers(&both()));
    // The repository ignores the folders of runs, which contain the trial's project.
    let project = TestProject::new().with(&server).repository(".git");
    let before = project.tree();
    let run = project.run(&["models", "--try", "gemini-2.5-pro"]).exits(0);
    assert!(
        run.stdout
            .contains("whole         8  8 (100 %)  8 (100 %)  $0.0049"),
        "{}",
        run.stdout
    );
    let rate = json!({"asked": 8, "read": 8, "right": 8, "cost": 0.00491});
    assert_eq!(
        remembered(&project)["gemini-2.5-pro"],
        json!({"whole": rate, "edits": rate})
    );
    let told = project.run(&["log", "last"]).exits(0).stdout;
    assert!(!told.contains("Nothing was done"), "{told}");
    let mut after = project.tree();
    after.remove("agent-config/model-rates.json");
    assert_eq!(after, before);
    let requests = server.requests();
    for (request, change) in requests.iter().step_by(2).zip(CHANGES) {
        let query = format!(
            "{}/fixtures/trial/{change}/query.txt",
            env!("CARGO_MANIFEST_DIR")
        );
        let query = fs::read_to_string(query).unwrap();
        let user = request.user();
        assert!(
            user.starts_with(&format!("[query]\n{query}[codebase]\n--- legacy.sh ---\n")),
            "{user}"
        );
        assert!(user.contains("\nlanguage=en\r\nunits=metric\r\n"));
        assert!(
            !user.contains("build.sh ---"),
            "a check is no part of the code base"
        );
    }
    let result = run.result();
    assert_eq!(result["workflow"], "trial");
    assert_eq!(result["attempts"][15]["build"]["code"], 0);
    assert!(
        run.logged("0015-trial-response.txt")
            .starts_with("^^^settings.json\n")
    );
    let story = project.run(&["log", &run.folder]).exits(0).stdout;
    assert!(story.contains(" tried gemini-2.5-pro.\n"), "{story}");
    let listed = project.run(&["models"]).exits(0).stdout;
    assert!(
        listed.contains("\n    100 % of 8 replies right in the format `whole`\n"),
        "{listed}"
    );
    let dry = project.run(&["--dry-run"]).exits(0);
    assert!(!dry.stderr.contains("was tried"), "{}", dry.stderr);
}

#[test]
fn replies_that_cannot_be_read_or_are_wrong_count_as_what_they_are_and_a_dry_run_says_so() {
    if !bubblewrap_works() {
        return;
    }
    let mut cut = gemini("^^^legacy.sh\n^^^del");
    cut["candidates"][0]["finishReason"] = "MAX_TOKENS".into();
    let mut replies = answers(&both());
    for (at, text) in [
        (0, "^^^report.sh\nwithout an end\n"),
        (2, "I have no changes."),
        (4, "^^^build.sh\n#!/bin/sh\n^^^end\n"),
    ] {
        replies[at] = Answer::json(&gemini(text));
    }
    replies[6] = Answer::json(&cut);
    let server = ModelServer::start(replies);
    let project = TestProject::new().with(&server);
    let run = project.run(&["models", "--try", "gemini-2.5-pro"]).exits(0);
    let listed = project.run(&["models", "--output-format", "json"]).exits(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let listed = listed["models"].as_array().unwrap().iter();
    let listed = listed.filter(|model| model["name"] == "gemini-2.5-pro");
    let rate = &remembered(&project)["gemini-2.5-pro"]["whole"];
    assert_eq!(
        (&rate["asked"], &rate["read"], &rate["right"]),
        (&json!(8), &json!(5), &json!(4))
    );
    assert!(listed.clone().count() == 1);
    listed.for_each(|model| assert_eq!(&model["rates"]["whole"], rate));
    for (number, verdict) in [(1, "could not be read"), (3, "was wrong"), (9, "was right")] {
        let change = CHANGES[number / 2];
        let said = format!("{number} of 16: {change} (whole) {verdict}");
        assert!(run.stderr.contains(&said), "{said}\n{}", run.stderr);
    }
    project.run(&["--dry-run"]).exits(0).says(&[
        "warning: when `gemini-2.5-pro` was tried with the reply format `whole`, 4 of 8 replies were right",
    ]);
    let edits = project
        .run(&["--dry-run", "--reply-format", "edits"])
        .exits(0);
    assert!(!edits.stderr.contains("was tried"), "{}", edits.stderr);
    let other = project.run(&["--dry-run", "--model", "gpt-5"]).exits(0);
    let report = project.run(&["--dry-run", "--cc"]).exits(0);
    assert!(![other.stderr, report.stderr].concat().contains("was tried"));
}

#[test]
fn a_trial_costs_no_more_than_it_may_and_what_was_counted_stays() {
    if !bubblewrap_works() {
        return;
    }
    let mut dear = gemini("^^^legacy.sh\n^^^delete\n");
    dear["usageMetadata"] = json!({"promptTokenCount": 500, "candidatesTokenCount": 20_000});
    let server = ModelServer::start([Answer::json(&dear), Answer::json(&dear)]);
    let project = TestProject::new().with(&server);
    let arguments = [
        "models",
        "--try",
        "gemini-2.5-pro",
        "--max-cost",
        "0.45",
        "--runs",
        "3",
    ];
    project.run(&arguments).exits(0).says(&[
        "warning: the trial ends after 2 of 48 calls: the next call may cost more than is left",
    ]);
    assert_eq!(remembered(&project)["gemini-2.5-pro"]["whole"]["asked"], 1);
    let poor = ["models", "--try", "gemini-2.5-pro", "--max-cost", "0.001"];
    let run = project.run(&poor);
    assert_ne!(run.code, 0, "{}", run.stderr);
    assert_eq!(remembered(&project)["gemini-2.5-pro"]["whole"]["asked"], 1);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_trial_that_cannot_be_made_is_refused_and_counts_nothing() {
    if !bubblewrap_works() {
        return;
    }
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server);
    project
        .run(&["models", "--try", "none"])
        .exits(2)
        .says(&["there is no model `none`"]);
    project.run(&["models", "--runs", "2"]).exits(2);
    project
        .run(&["models", "--try", "gpt-5", "--runs", "0"])
        .exits(2);
    // A server that does not answer proves nothing about the model.
    project.run(&["models", "--try", "gemini-2.5-pro"]).exits(4);
    assert!(!project.path("agent-config/model-rates.json").exists());
    let project = project.without("agent-config/gemini-key.txt");
    project.run(&["models", "--try", "gemini-2.5-pro"]).exits(3);
}

#[test]
fn without_a_sandbox_no_model_is_tried() {
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server).variable("PATH", "/none");
    project
        .run(&["models", "--try", "gemini-2.5-pro"])
        .exits(3)
        .says(&[
            "bubblewrap (`bwrap`) is not installed",
            "hint: install bubblewrap",
        ]);
    assert!(server.requests().is_empty() && project.runs().is_empty());
}

#[test]
fn the_code_of_a_reply_does_not_see_the_keys() {
    if !bubblewrap_works() {
        return;
    }
    let spying = "ls ../../../agent-config >&2 && echo SEEN >&2\n\
        if grep -q AIza ../../../agent-config/gemini-key.txt ../../../../key.txt; then echo READ >&2; fi\n\
        . ./text.sh\n";
    let spy = source("report.sh").replace(". ./text.sh\n", spying);
    let mut replies = both();
    replies[6] += &whole(&[("report.sh", spy)]);
    let server = ModelServer::start(answers(&replies));
    let directory = visible_directory();
    let project = TestProject::within(directory.path(), "project").with(&server);
    let (key, target) = (
        project.path("agent-config/gemini-key.txt"),
        directory.path().join("key.txt"),
    );
    fs::rename(&key, &target).unwrap();
    symlink(&target, &key).unwrap();
    let run = project.run(&["models", "--try", "gemini-2.5-pro"]).exits(0);
    let log = run.logged("0007-trial-tool.txt");
    assert!(log.contains("SEEN") && !log.contains("READ"), "{log}");
    assert_eq!(remembered(&project)["gemini-2.5-pro"]["whole"]["right"], 8);
}
