//! Output for programs, cost limits, and working directories.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::machine::{fits, schema};
use crate::support::orchestra::{
    AZURE_KEY, Branch, GITHUB_TOKEN, OrchestraProject, execute, finished, report, says,
};
use crate::support::{Answer, ModelServer, ollama, openai};

/// Orchestrations that end in every way that has a name of its own.
fn endings() -> Vec<(&'static str, OrchestraProject, i32)> {
    let steps = || {
        [
            execute("claude_code", "x"),
            execute("codex", "y"),
            finished("done"),
        ]
    };
    let retried = Answer::new(429, &[("retry-after-ms", "1")], "");
    let rejected = (0..3).map(|_| says("Well?"));
    vec![
        ("completed", OrchestraProject::clean_after([retried], []), 0),
        (
            "timeout",
            OrchestraProject::scripted(steps(), [Branch::endless()])
                .with_variable("MCP_POLL_TIMEOUT_SECONDS", "0.1"),
            1,
        ),
        (
            "publish_failed",
            OrchestraProject::scripted(
                steps(),
                [
                    Branch::done("x"),
                    Branch::review("CLEAN"),
                    Branch::failed("no"),
                ],
            ),
            1,
        ),
        ("failed", OrchestraProject::scripted(rejected, []), 5),
        ("failed", OrchestraProject::scripted([], []), 4),
    ]
}

#[test]
fn programs_get_one_document_or_events_that_the_schemas_know() {
    let (result, events) = (schema("result"), schema("events"));
    for (status, orchestra, code) in endings() {
        let run = orchestra.run(&["--output-format", "json"]).exits(code);
        let printed: Value = serde_json::from_str(&run.stdout).unwrap();
        fits(&result, &printed);
        assert_eq!(printed, run.result());
        assert_eq!(printed["workflow"], "orchestrate");
        assert_eq!(printed["orchestration"]["status"], status);
    }
    for (status, orchestra, code) in endings() {
        let run = orchestra.run(&["--output-format", "jsonl"]).exits(code);
        let lines = run
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<Value> = lines.collect();
        for line in &lines {
            fits(&events, line);
        }
        let last = lines.last().unwrap();
        assert_eq!(last["result"]["orchestration"]["status"], status);
    }
    // The same holds if nothing was started.
    let orchestra = OrchestraProject::clean().with_variable("GITHUB_TOKEN", "");
    let run = orchestra.run(&["--output-format", "json"]).exits(3);
    fits(&result, &serde_json::from_str(&run.stdout).unwrap());
}

/// A table with a deployment at this price.
fn table(orchestra: &OrchestraProject, price: &str) -> String {
    let url = orchestra.azure.url();
    format!(
        r#"{{"models": {{"az": {{"provider": "azure", "id": "ours", "baseUrl": "{url}"{price}}}}}}}"#
    )
}

#[test]
fn a_budget_needs_a_price_and_is_kept() {
    let orchestra = OrchestraProject::clean();
    let run = orchestra.run(&["--max-cost", "1"]).exits(3).says(&[
        "price",
        "hint: ",
        "and name it by `--model`",
    ]);
    assert!(run.folder.is_empty() && orchestra.azure.requests().is_empty());
    for (dollars, code) in [("100", 0), ("0.000001", 3), ("40", 1)] {
        // A reply that costs fifty dollars.
        let mut dear = openai("Well?");
        dear["usage"]["prompt_tokens"] = 1_000_000.into();
        let mut orchestra = OrchestraProject::clean_after([Answer::json(&dear)], []);
        let table = table(&orchestra, r#", "price": {"input": 50, "output": 100}"#);
        orchestra.project = orchestra.project.file("agent-config/models.json", table);
        let run = orchestra.run(&["--model", "az", "--max-cost", dollars]);
        assert_eq!(run.code, code, "{dollars}: {}", run.stderr);
        let told = (code != 3).then(|| report(&run));
        match code {
            0 => assert_eq!(told.unwrap()["status"], "completed"),
            1 => {
                assert_eq!(
                    run.result()["exit"]["name"],
                    "over-budget",
                    "{}",
                    run.stderr
                );
                assert_eq!(told.unwrap()["status"], "failed");
            }
            _ => assert!(orchestra.azure.requests().is_empty()),
        }
    }
}

#[test]
fn another_model_may_be_asked_and_a_slow_one_is_given_up() {
    let mut orchestra = OrchestraProject::clean();
    let table = table(&orchestra, "");
    orchestra.project = orchestra
        .project
        .file("agent-config/models.json", table)
        .variable("AZURE_OPENAI_DEPLOYMENT", "another");
    orchestra.run(&["--model", "az"]).exits(0);
    for request in orchestra.azure.requests() {
        assert!(
            request.line.contains("/deployments/ours/"),
            "{}",
            request.line
        );
        assert_eq!(request.header("api-key"), Some(AZURE_KEY));
    }
    orchestra
        .run(&["--model", "none"])
        .exits(2)
        .says(&["`none`"]);
    let (silence, _told) = Answer::silence();
    let orchestra = OrchestraProject::scripted([silence], []);
    let run = orchestra.run(&["--timeout", "1s"]).exits(4);
    assert_eq!(report(&run)["status"], "failed");
}

#[test]
fn an_earlier_run_is_continued_with_its_model() {
    let rejected = ["Shall I?", "Well?", "Hm."].map(says);
    let mut orchestra = OrchestraProject::clean_after(rejected, []);
    let table = table(&orchestra, "");
    orchestra.project = orchestra
        .project
        .file("agent-config/models.json", table)
        .variable("AZURE_OPENAI_DEPLOYMENT", "another");
    let ended = orchestra.run(&["--model", "az"]).exits(5);
    let told = report(&ended);
    let instructions = told["instructions"].as_str().unwrap();
    let named = "--project-name project --model az --task";
    assert!(instructions.contains(named), "{instructions}");
    let resume = ["orchestrate", "--headless", "--resume", &ended.folder];
    orchestra.project.run(&resume).exits(0);
    for request in orchestra.azure.requests() {
        let line = &request.line;
        assert!(line.contains("/deployments/ours/"), "{line}");
    }
}

#[test]
fn ollama_model_needs_no_entry_and_its_problems_are_listed() {
    let shown = json!({"model_info": {"x.context_length": 32_768}});
    let rejected = (0..3).map(|_| Answer::lines(&ollama("Well?")));
    let server = ModelServer::with_models(
        &["new:latest"],
        [Answer::json(&shown)].into_iter().chain(rejected),
    );
    let mut orchestra = OrchestraProject::clean().with_variable("OLLAMA_HOST", &server.url());
    orchestra.run(&["--model", "new"]).exits(5);
    assert_eq!(server.requests().pop().unwrap().json()["model"], "new");
    let table = r#"{"models": {"gone": {"provider": "ollama"}}}"#;
    orchestra.project = orchestra.project.file("agent-config/models.json", table);
    let orchestra = orchestra.with_variable("WORKSPACE_DIR", "here");
    orchestra.run(&["--model", "gone"]).exits(3).says(&[
        "the model `gone` is not installed",
        "`WORKSPACE_DIR` is not an absolute path",
    ]);
    assert!(orchestra.azure.requests().is_empty());
}

#[test]
fn all_of_it_may_be_in_a_file() {
    let orchestra = OrchestraProject::clean();
    let names = [
        ("AZURE_OPENAI_API_KEY", AZURE_KEY.to_owned()),
        (
            "AZURE_OPENAI_BASE_URL",
            format!("{}/", orchestra.azure.url()),
        ),
        ("AZURE_OPENAI_DEPLOYMENT", "from-the-file".to_owned()),
        ("MCP_BASE_URL", format!("{}/", orchestra.pantheon.url())),
        ("GITHUB_TOKEN", GITHUB_TOKEN.to_owned()),
        ("PROJECT_NAME", "filed".to_owned()),
        ("WORKSPACE_DIR", "/home/pan/workspace/".to_owned()),
        ("GIT_AUTHOR_NAME", "Ada L.".to_owned()),
        ("GIT_AUTHOR_EMAIL", "ada@example.org".to_owned()),
    ];
    let file = names
        .iter()
        .map(|(name, value)| format!("export {name}='{value}'\n"));
    let file: String = file.collect();
    let emptied = names.iter().fold(orchestra, |orchestra, (name, _)| {
        orchestra.with_variable(name, "")
    });
    fs::write(emptied.project.path(".env"), file).unwrap();
    emptied.run(&[]).exits(0);
    let asked = &emptied.azure.requests()[0];
    assert!(
        asked
            .line
            .starts_with("POST /openai/deployments/from-the-file/chat/completions?")
    );
    let explored = emptied.pantheon.called("parallel_explore");
    assert_eq!(explored[0]["project_name"], "filed");
    let publishing = explored[2].to_string();
    assert!(publishing.contains("Ada L.") && publishing.contains("ada@example.org"));
}

#[test]
fn any_number_may_run_in_one_directory_and_no_file_is_touched() {
    let (silence, told) = Answer::silence();
    let mut replies = vec![silence];
    replies.extend([execute("codex", "x"), finished("second")]);
    let orchestra = OrchestraProject::scripted(replies, [Branch::review("CLEAN")]);
    let before = orchestra.project.tree();
    let mut first = orchestra
        .command(&["--headless", "--task", "x"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    told.recv().unwrap();
    // The server of a model handles one request at a time, so the second project has its own.
    let second = OrchestraProject::clean();
    let command = orchestra
        .command(&["--headless", "--task", "x"])
        .env("AZURE_OPENAI_BASE_URL", second.azure.url())
        .env("MCP_BASE_URL", second.pantheon.url())
        .output()
        .unwrap();
    assert_eq!(command.status.code(), Some(0));
    assert_eq!(orchestra.project.tree(), before);
    assert_eq!(orchestra.project.runs().len(), 2);
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn it_needs_no_repository_and_no_project_but_a_place_for_its_log() {
    let orchestra = OrchestraProject::clean();
    let bare = tempfile::tempdir().unwrap();
    let mut command = orchestra.command(&["--headless", "--task", "x"]);
    let output = command.current_dir(bare.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        bare.path()
            .join(told["log"].as_str().unwrap())
            .join("lineage.json")
            .exists()
    );
    let left: Vec<_> = fs::read_dir(bare.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["logs"]);
}

#[test]
fn file_in_place_of_the_logs_is_reported_before_a_call() {
    let orchestra = OrchestraProject::clean();
    orchestra.run(&[]).exits(0);
    let calls = orchestra.azure.requests().len();
    let started = orchestra.pantheon.called("parallel_explore").len();
    fs::rename(orchestra.project.path("logs"), orchestra.project.path("x")).unwrap();
    let recorded = orchestra.project.path("x").read_dir().unwrap().next();
    let recorded = recorded.unwrap().unwrap().path();
    let replay = [
        "orchestrate",
        "--headless",
        "--replay",
        recorded.to_str().unwrap(),
    ];
    for make in ["touch logs", "mkfifo logs", "ln -s x logs"] {
        let make = format!("rm -f logs; {make}");
        let made = Command::new("sh")
            .args(["-c", &make])
            .current_dir(orchestra.project.path(""))
            .status();
        assert!(made.unwrap().success());
        for run in [orchestra.run(&[]), orchestra.project.run(&replay)] {
            let run = run.exits(3).says(&["`logs` is not a directory"]);
            assert!(run.stdout.is_empty(), "{}", run.stdout);
        }
    }
    assert_eq!(orchestra.azure.requests().len(), calls);
    assert_eq!(orchestra.pantheon.called("parallel_explore").len(), started);
}
