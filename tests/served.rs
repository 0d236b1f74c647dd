//! The model that answers: a different one than requested, a retired one's successor, or a fallback.

use serde_json::{Value, json};

use crate::support::{Answer, Finished, ModelServer, StoppedClock, TestProject, gemini, openai};

const WRITE: &str = "^^^a\nx\n^^^end\n";

/// A Gemini answer from this model.
fn by(model: &str, text: &str) -> Answer {
    let mut answer = gemini(text);
    answer["modelVersion"] = model.into();
    Answer::json(&answer)
}

fn answered(answers: Vec<Answer>, arguments: &[&str]) -> (Finished, TestProject) {
    let server = ModelServer::start(answers);
    let project = TestProject::new().with(&server).build("test -e ok");
    // Without bubblewrap, a build in a sandbox would add a warning.
    let arguments = [&["--sandbox", "off"], arguments].concat();
    (project.run(&arguments), project)
}

fn warnings(run: &Finished) -> String {
    run.result()["warnings"].to_string()
}

#[test]
fn a_version_of_the_model_is_the_model() {
    for version in [
        "gemini-2.5-pro",
        "gemini-2.5-pro-001",
        "models/gemini-2.5-pro",
    ] {
        let (run, _) = answered(vec![by(version, "^^^ok\n\n^^^end\n")], &["--require-model"]);
        let result = run.exits(0).result();
        assert_eq!(result["warnings"], json!([]));
        assert_eq!(result["attempts"][0].get("served"), None);
        assert_eq!(result["cost"].as_f64(), Some(0.000_614));
    }
}

#[test]
fn another_model_is_a_warning_once_and_priced_by_its_own_price() {
    let answers = vec![
        by("gemini-3.8-flash", WRITE),
        by("gemini-3.8-flash", "^^^ok\n\n^^^end\n"),
    ];
    let (run, project) = answered(answers, &[]);
    let run = run
        .exits(0)
        .says(&["`gemini-2.5-pro` was asked, but `gemini-3.8-flash` answered"]);
    let result = run.result();
    assert_eq!(result["warnings"].as_array().unwrap().len(), 1, "{result}");
    for attempt in result["attempts"].as_array().unwrap() {
        assert_eq!(attempt["model"], "gemini-2.5-pro");
        assert_eq!(attempt["served"], "gemini-3.8-flash");
    }
    // 90 x 0.75 + 10 x 0.075 + 50 x 3.75, for a million, or twice that from 2027 on.
    let cost = result["attempts"][0]["cost"].as_f64().unwrap();
    assert!(
        [0.000_256, 0.000_512]
            .iter()
            .any(|known| (cost - known).abs() < 1e-6),
        "{cost}"
    );
    let steps = std::fs::read_to_string(project.path(&format!("logs/{}/steps.jsonl", run.folder)));
    assert!(steps.unwrap().contains("\"served\":\"gemini-3.8-flash\""));
    let story = project.run(&["log", "last"]).exits(0).stdout;
    let answered = "  gemini-3.8-flash for gemini-2.5-pro, ";
    assert!(story.contains(answered), "{story}");
}

#[test]
fn an_entry_of_the_users_has_the_price() {
    let server = ModelServer::start([by("gemini-3.8-flash", "Nothing.")]);
    let project = TestProject::new().with(&server).file(
        "agent-config/models.json",
        r#"{"models": {"mine": {"provider": "gemini", "id": "gemini-3.8-flash", "price": {"input": 10, "output": 0}}}}"#,
    );
    let run = project.run(&[]).exits(0);
    assert_eq!(run.result()["cost"].as_f64(), Some(0.001));
}

#[test]
fn the_cost_of_a_model_without_a_price_is_unknown() {
    let (run, _) = answered(vec![by("mystery-1", "^^^ok\n\n^^^end\n")], &[]);
    let result = run.exits(0).result();
    assert_eq!(result["cost"], Value::Null);
    assert_eq!(result["attempts"][0]["served"], "mystery-1");
    // With a limit, no further call is made.
    let (run, _) = answered(
        vec![by("mystery-1", WRITE), by("mystery-1", WRITE)],
        &["--max-cost", "5"],
    );
    let run = run.exits(1).says(&[
        "`gemini-2.5-pro` was answered by `mystery-1`, whose price is not known",
        "hint: give the model that answers an entry with a `price`",
    ]);
    assert_eq!(run.result()["attempts"].as_array().unwrap().len(), 1);
}

#[test]
fn reply_of_another_model_is_rejected_when_the_model_is_required() {
    let (run, project) = answered(vec![by("gemini-3.8-flash", WRITE)], &["--require-model"]);
    let run = run
        .exits(4)
        .says(&["`gemini-2.5-pro` was asked, but `gemini-3.8-flash` answered"]);
    assert!(!project.path("a").exists());
    let result = run.result();
    assert_eq!(result["exit"]["name"], "model-failed");
    assert_eq!(result["attempts"][0]["served"], "gemini-3.8-flash");
    assert!(result["attempts"][0]["cost"].as_f64().is_some());
    assert!(
        run.logged("initial-query-response.txt")
            .starts_with("ERROR\n")
    );
}

#[test]
fn a_local_servers_entry_keeps_its_price_whatever_the_server_calls_the_model() {
    let server = ModelServer::openai(&["Nothing."]);
    let entry = format!(
        r#"{{"models": {{"local": {{"provider": "openai", "id": "qwen", "baseUrl": "{}/v1", "price": {{"input": 0, "output": 0}}}}}}}}"#,
        server.url()
    );
    let project = TestProject::new().file("agent-config/models.json", entry);
    let run = project.run(&["--model", "local"]).exits(0);
    assert_eq!(run.result()["cost"].as_f64(), Some(0.0));
    assert!(warnings(&run).contains("`gpt-5-test` answered"));
}

#[test]
fn model_near_retirement_is_reported_with_its_successor() {
    let command = "`code-commit models --add gemini-3.8-flash`";
    let project = TestProject::new();
    project.run(&["--dry-run"]).exits(0).says(&[command]);
    project
        .run(&["models"])
        .exits(0)
        .says(&[command, "gpt-6.1-sol"]);
    let (run, _) = answered(vec![by("gemini-2.5-pro", "Nothing.")], &[]);
    run.says(&[command]);
    let gone = json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "no such model"}});
    let (run, _) = answered(vec![Answer::error(404, &gone)], &[]);
    run.exits(4)
        .says(&["hint: the vendor does not know the model", command]);
}

#[test]
fn from_the_announced_day_on_one_line_a_day_says_who_answers_at_what_price() {
    let project = TestProject::new();
    let told = |day: i64, answers: &str| {
        // Noon of a day in December 2026.
        let clock = StoppedClock::at(1_796_126_400 + (day - 1) * 86_400)?;
        let server = ModelServer::start([by(answers, "Nothing.")]);
        let mut command = project.command(&["--sandbox", "off"]);
        let command = command.env("LD_PRELOAD", clock.library()).env("TZ", "UTC");
        let output = command
            .env("GOOGLE_GEMINI_BASE_URL", server.url())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        Some(
            said.matches("; the price for a million tokens is $0.75 in and $3.75 out\n")
                .count(),
        )
    };
    for (day, answers, lines) in [
        (1, "gemini-3.8-flash", 1),
        (1, "gemini-3.8-flash", 0),
        (2, "gemini-2.5-pro", 0),
        (2, "gemini-3.8-flash", 1),
        (2, "gemini-3.8-flash", 0),
    ] {
        let Some(told) = told(day, answers) else {
            return;
        };
        assert_eq!(told, lines, "{day} {answers}");
    }
}

#[test]
fn an_estimate_goes_by_the_price_of_the_model_that_will_answer() {
    let project = TestProject::new();
    for (day, price) in [(-1, 1.25), (2, 0.75)] {
        let Some(clock) = StoppedClock::at(1_796_126_400 + (day - 1) * 86_400) else {
            return;
        };
        let mut command = project.command(&["--dry-run", "--output-format", "json"]);
        command.env("LD_PRELOAD", clock.library()).env("TZ", "UTC");
        let told = command.output().unwrap().stdout;
        let told: Value = serde_json::from_slice(&told).unwrap();
        let prompt = told["prompt"]["tokens"].as_f64().unwrap();
        let least = told["cost"]["first"]["least"].as_f64().unwrap();
        assert!((least - prompt * price / 1e6).abs() < 1e-6, "{day} {told}");

        // So does the limit.
        let limit = format!("{:.6}", (prompt * 1.0 + 8_192.0 * 6.0) / 1e6);
        let mut command = project.command(&["--dry-run", "--max-cost", &limit]);
        command.env("LD_PRELOAD", clock.library()).env("TZ", "UTC");
        let code = if price < 1.0 { 0 } else { 3 };
        assert_eq!(command.output().unwrap().status.code(), Some(code), "{day}");
    }
}

#[test]
fn a_successor_is_added_without_a_new_build() {
    let server = ModelServer::start([by("gemini-3.8-flash", "Nothing.")]);
    let project = TestProject::new().with(&server);
    project
        .run(&["--model", "gemini-3.8-flash"])
        .exits(2)
        .says(&["hint: `code-commit models --add gemini-3.8-flash` adds it"]);
    let run = project
        .run(&["models", "--add", "gemini-3.8-flash"])
        .exits(0);
    assert!(
        run.stdout.contains("\"contextWindow\": 1048576"),
        "{}",
        run.stdout
    );
    let table: Value = serde_json::from_str(&project.read("agent-config/models.json")).unwrap();
    assert_eq!(
        table["models"]["gemini-3.8-flash"]["price"]["until"],
        "2026-12-31"
    );
    let run = project
        .run(&["--sandbox", "off", "--model", "gemini-3.8-flash"])
        .exits(0);
    assert_eq!(warnings(&run), r#"["the reply has no edits"]"#);
    let cost = run.result()["cost"].as_f64().unwrap();
    assert!(
        [0.000_256, 0.000_512]
            .iter()
            .any(|known| (cost - known).abs() < 1e-6),
        "{cost}"
    );
}

#[test]
fn adding_a_model_keeps_the_table_and_adds_nothing_twice() {
    let project = TestProject::new().file(
        "agent-config/models.json",
        "{\"selectionRules\": {\"default\":   \"gpt-5\"}}\n",
    );
    project.run(&["models", "--add", "gpt-6.1-sol"]).exits(0);
    let table = project.read("agent-config/models.json");
    assert!(
        table.starts_with("{\"selectionRules\": {\"default\":   \"gpt-5\"},\n"),
        "{table}"
    );
    project
        .run(&["models", "--add", "gpt-6.1-sol"])
        .exits(2)
        .says(&["there is a model `gpt-6.1-sol` already"]);
    project
        .run(&["models", "--add", "gpt-9"])
        .exits(2)
        .says(&["the catalogue has no model `gpt-9`: it has gemini-3.8-flash, gemini-3.1-pro-preview, gpt-6.1-sol"]);
    assert_eq!(project.read("agent-config/models.json"), table);
    let project = project.file("agent-config/models.json", "{");
    project
        .run(&["models", "--add", "gemini-3.8-flash"])
        .exits(3);
    assert_eq!(project.read("agent-config/models.json"), "{");
}

#[test]
fn a_model_that_is_built_in_is_added_to_be_changed() {
    let project = TestProject::new();
    let add = ["models", "--add", "claude-sonnet-5-5"];
    project.run(&add).exits(0);
    let table: Value = serde_json::from_str(&project.read("agent-config/models.json")).unwrap();
    assert_eq!(
        table["models"]["claude-sonnet-5-5"]["provider"],
        "anthropic"
    );
    let there = "there is a model `claude-sonnet-5-5` already";
    project.run(&add).exits(2).says(&[there]);
    let mine = r#"{"models": {"mine": {"provider": "openai"}}}"#;
    let project = project.file("agent-config/models.json", mine);
    let run = project.run(&["models", "--add", "mine"]).exits(2);
    run.says(&["there is a model `mine` already"]);
    assert_eq!(project.read("agent-config/models.json"), mine);
}

fn overloaded() -> Answer {
    let body = json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}});
    Answer::new(
        503,
        &[
            ("x-should-retry", "false"),
            ("content-type", "application/json"),
        ],
        body.to_string(),
    )
}

#[test]
fn a_fallback_is_asked_where_the_model_is_overloaded() {
    let answers = vec![overloaded(), Answer::json(&openai("^^^ok\n\n^^^end\n"))];
    let server = ModelServer::start(answers);
    let project = TestProject::new().with(&server).build("test -e ok").file(
        "agent-config/models.json",
        r#"{"models": {"gemini-2.5-pro": {"fallback": "gpt-5"}}}"#,
    );
    let run = project.run(&[]).exits(0).says(&[
        "answered `503` `UNAVAILABLE`: overloaded: `gpt-5` is asked in place of `gemini-2.5-pro`",
    ]);
    let result = run.result();
    assert_eq!(result["model"], "gemini-2.5-pro");
    assert_eq!(result["attempts"][0]["model"], "gpt-5");
    assert_eq!(result["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(result["cost"].as_f64(), Some(0.000_614));
    assert_eq!(server.requests()[1].json()["model"], "gpt-5");
    // The replay interprets each reply as coming from the model that gave it.
    std::fs::remove_file(project.path("ok")).unwrap();
    project.run(&["--replay", &run.folder]).exits(0);
}

#[test]
fn fallback_model_repairs_its_own_change() {
    let repair = || Answer::json(&openai("^^^b\n\n^^^end\n"));
    let answers = vec![overloaded(), repair(), repair(), repair(), repair()];
    let server = ModelServer::start(answers);
    let project = TestProject::new().with(&server).build("exit 1").file(
        "agent-config/models.json",
        r#"{"models": {"gemini-2.5-pro": {"fallback": "gpt-5"}}}"#,
    );
    let run = project.run(&[]).exits(1);
    let attempts = run.result()["attempts"].as_array().unwrap().clone();
    assert_eq!(attempts.len(), 4);
    assert!(attempts.iter().all(|attempt| attempt["model"] == "gpt-5"));
    assert_eq!(server.requests().len(), 5);
}

#[test]
fn a_successor_that_is_in_the_table_is_asked_by_its_name() {
    let gone = json!({"error": {"code": 404, "status": "NOT_FOUND", "message": "no such model"}});
    let server = ModelServer::start([Answer::error(404, &gone)]);
    let project = TestProject::new().with(&server);
    project
        .run(&["models", "--add", "gemini-3.8-flash"])
        .exits(0);
    for (arguments, exit) in [(&["--dry-run"][..], 0), (&["models"], 0), (&[], 4)] {
        let run = project.run(arguments).exits(exit);
        let text = format!("{}{}", run.stdout, run.stderr);
        assert!(
            text.contains("`--model gemini-3.8-flash` asks the successor"),
            "{text}"
        );
        assert!(text.contains("`selectionRules.default`"), "{text}");
        assert!(!text.contains("--add gemini-3.8-flash"), "{text}");
    }
}

#[test]
fn a_fallback_that_cannot_be_one_is_a_mistake_with_its_position() {
    for (models, expected) in [
        (
            r#""gpt-5": {"fallback": "none"}"#,
            "line 1, column 22: there is no model `none` for the `fallback` of `gpt-5`",
        ),
        (
            r#""gpt-5": {"fallback": "gpt-5"}"#,
            "`gpt-5` cannot be its own `fallback`",
        ),
        (
            r#""gpt-5": {"fallback": "gemini-2.5-pro"}, "gemini-2.5-pro": {"fallback": "gpt-5"}"#,
            "has a `fallback` itself",
        ),
        (
            r#""gpt-5": {"reasoningEffort": "max"}"#,
            "`gpt-5` does not take the `reasoningEffort` `max`, but minimal, low, medium, high",
        ),
        (
            r#""flash": {"provider": "gemini", "id": "gemini-3.8-flash", "reasoningEffort": "minimal"}"#,
            "`gemini-3.8-flash` does not take the `reasoningEffort` `minimal`, but low, medium, high",
        ),
    ] {
        TestProject::new()
            .file(
                "agent-config/models.json",
                format!("{{\"models\": {{{models}}}}}"),
            )
            .run(&["--dry-run"])
            .exits(3)
            .says(&[
                "`agent-config/models.json` is invalid: line 1, column ",
                expected,
            ]);
    }
}
