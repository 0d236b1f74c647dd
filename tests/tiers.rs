//! The service tier: the requested one, the one that served the call, and its price.

use serde_json::{Value, json};

use crate::support::{Answer, Finished, ModelServer, TestProject, agent, gemini, openai};

const WRITE: &str = "^^^a\nx\n^^^end\n";
const DONE: &str = "^^^ok\n\n^^^end\n";
/// The cost of a call to the test servers: 90 x 1.25, 10 x 0.125 and 50 x 10 dollars a million.
const FULL: f64 = 0.000_614;
const HALF: f64 = 0.000_307;

/// A Gemini answer with the tier in its header.
fn gemini_in(tier: &str, text: &str) -> Answer {
    let headers = [("X-Gemini-Service-Tier", tier)];
    Answer::new(200, &headers, gemini(text).to_string())
}

/// An OpenAI answer with the tier in its body.
fn openai_in(tier: &str, text: &str) -> Answer {
    let mut answer = openai(text);
    answer["service_tier"] = tier.into();
    Answer::json(&answer)
}

fn no_room(status: u16) -> Answer {
    let told =
        json!({"error": {"message": "Resource Unavailable", "code": "resource_unavailable"}});
    Answer::error(status, &told)
}

fn run(answers: Vec<Answer>, model: &str, arguments: &[&str]) -> (Finished, Vec<Value>) {
    let server = ModelServer::start(answers);
    let project = TestProject::new().with(&server).build("test -e ok");
    let arguments = [&["--model", model], arguments].concat();
    let run = project.run(&arguments);
    let asked = server.requests().into_iter();
    (run, asked.map(|request| request.json()).collect())
}

fn costs(run: &Finished) -> Vec<Option<f64>> {
    let result = run.result();
    let attempts = result["attempts"].as_array().unwrap();
    attempts.iter().map(|step| step["cost"].as_f64()).collect()
}

#[test]
fn flex_is_asked_for_and_costs_half() {
    // The header precedes the body.
    let mut vague = gemini(DONE);
    vague["usageMetadata"]["serviceTier"] = "unspecified".into();
    let vague = Answer::new(200, &[("x-gemini-service-tier", "FLEX")], vague.to_string());
    for (model, field, answer) in [
        ("gemini-2.5-pro", "serviceTier", gemini_in("flex", DONE)),
        ("gemini-2.5-pro", "serviceTier", vague),
        ("gpt-5", "service_tier", openai_in("flex", DONE)),
    ] {
        let (run, asked) = run(vec![answer], model, &["--tier", "flex"]);
        let run = run.exits(0).says(&["(flex)"]);
        assert_eq!(asked[0][field], "flex");
        assert_eq!(costs(&run), [Some(HALF)]);
        let result = run.result();
        assert_eq!(result["attempts"][0]["tier"], "flex");
        assert_eq!(result["warnings"], json!([]));
        assert_eq!(result["cost"].as_f64(), Some(HALF));
    }
}

#[test]
fn without_a_word_no_tier_is_asked_for_nor_recorded() {
    for (model, answer) in [
        ("gemini-2.5-pro", gemini_in("standard", DONE)),
        ("gpt-5", openai_in("default", DONE)),
    ] {
        let (run, asked) = run(vec![answer], model, &[]);
        let result = run.exits(0).result();
        assert!(!asked[0].to_string().contains("flex"));
        assert_eq!(
            asked[0].get("service_tier").or(asked[0].get("serviceTier")),
            None
        );
        assert_eq!(result["attempts"][0].get("tier"), None);
        assert_eq!(result["cost"].as_f64(), Some(FULL));
    }
}

#[test]
fn the_command_line_goes_before_the_entry() {
    for (entry, argument, expected) in [
        ("flex", None, Some("flex")),
        ("flex", Some("standard"), None),
        ("standard", Some("flex"), Some("flex")),
    ] {
        let server = ModelServer::start([openai_in(expected.unwrap_or("default"), DONE)]);
        let table = json!({"models": {"gpt-5": {"serviceTier": entry}}});
        let project = TestProject::new()
            .with(&server)
            .file("agent-config/models.json", table.to_string());
        let mut arguments = vec!["--model", "gpt-5"];
        arguments.extend(argument.iter().flat_map(|tier| ["--tier", tier]));
        project.run(&arguments).exits(0);
        let asked = server.requests()[0].json();
        assert_eq!(asked.get("service_tier").and_then(Value::as_str), expected);
    }
    let table = r#"{"models": {"gpt-5": {"serviceTier": "priority"}}}"#;
    TestProject::new()
        .file("agent-config/models.json", table)
        .run(&["--dry-run"])
        .exits(3)
        .says(&["unknown variant `priority`, expected `standard` or `flex`"]);
}

#[test]
fn standard_tier_is_used_for_the_rest_of_the_run_when_flex_is_full() {
    for (model, status, answers) in [
        (
            "gpt-5",
            429,
            [openai_in("default", WRITE), openai_in("default", DONE)],
        ),
        (
            "gemini-2.5-pro",
            503,
            [gemini_in("standard", WRITE), gemini_in("standard", DONE)],
        ),
    ] {
        let answers = std::iter::once(no_room(status)).chain(answers).collect();
        let (run, asked) = run(answers, model, &["--tier", "flex"]);
        let run = run.exits(0);
        assert!(!run.stderr.contains("try 2"), "{}", run.stderr);
        assert_eq!(asked.len(), 3);
        assert!(asked[0].to_string().contains("\"flex\""));
        for later in &asked[1..] {
            assert!(!later.to_string().contains("flex"));
        }
        assert_eq!(costs(&run), [Some(FULL), Some(FULL)]);
        let result = run.result();
        assert_eq!(result["attempts"][1]["tier"], "standard");
        let warnings = result["warnings"].as_array().unwrap();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        let told = format!("`{model}` is asked in the tier `standard` instead of `flex`");
        assert!(
            warnings[0].as_str().unwrap().contains(&told),
            "{warnings:?}"
        );
    }
}

#[test]
fn a_server_that_does_not_know_the_tier_is_asked_without() {
    let told =
        json!({"error": {"message": "Unsupported value: service_tier", "param": "service_tier"}});
    let answers = vec![Answer::error(400, &told), Answer::json(&openai(DONE))];
    let (run, asked) = run(answers, "gpt-5", &["--tier", "flex"]);
    assert_eq!(costs(&run.exits(0)), [Some(FULL)]);
    assert_eq!((asked.len(), asked[1].get("service_tier")), (2, None));
}

#[test]
fn another_failure_is_not_blamed_on_the_tier() {
    let slower = json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}});
    let answers = vec![
        Answer::new(
            429,
            &[
                ("content-type", "application/json"),
                ("retry-after-ms", "1"),
            ],
            slower.to_string(),
        ),
        openai_in("flex", DONE),
    ];
    let (limited, asked) = run(answers, "gpt-5", &["--tier", "flex"]);
    assert_eq!(costs(&limited.exits(0)), [Some(HALF)]);
    assert_eq!(asked[1]["service_tier"], "flex");
    let spent = json!({"error": {"message": "no credit", "code": "insufficient_quota"}});
    let (spent, asked) = run(
        vec![Answer::error(429, &spent)],
        "gpt-5",
        &["--tier", "flex"],
    );
    spent.exits(4);
    assert_eq!(asked.len(), 1);
}

#[test]
fn the_cost_is_that_of_the_tier_that_was_served() {
    for (answer, asks, cost, tier, warning) in [
        (
            openai_in("default", DONE),
            &["--tier", "flex"][..],
            FULL,
            json!("standard"),
            "was asked in the tier `flex`, and served in `standard`, at the full price",
        ),
        (
            Answer::json(&openai(DONE)),
            &["--tier", "flex"],
            FULL,
            Value::Null,
            "its reply does not say which tier has served it: the cost is that of `standard`",
        ),
        // The project's settings at the vendor may cause this.
        (openai_in("flex", DONE), &[], HALF, json!("flex"), "(flex)"),
    ] {
        let (run, _) = run(vec![answer], "gpt-5", asks);
        let run = run.exits(0).says(&[warning]);
        assert_eq!(costs(&run), [Some(cost)]);
        assert_eq!(run.result()["attempts"][0]["tier"], tier);
    }
    // Without a price, there is no cost to name.
    let server = ModelServer::openai(&[DONE]);
    let entry = json!({"provider": "openai", "baseUrl": format!("{}/v1", server.url())});
    let project = TestProject::new()
        .file(
            "agent-config/models.json",
            json!({"models": {"own": entry}}).to_string(),
        )
        .build("test -e ok");
    let run = project.run(&["--model", "own", "--tier", "flex"]).exits(0);
    assert!(
        run.stderr
            .contains("does not say which tier has served it\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_limit_of_cost_reckons_with_the_full_price() {
    let (limited, asked) = run(
        vec![openai_in("flex", DONE)],
        "gpt-5",
        &["--tier", "flex", "--max-cost", "0.5"],
    );
    limited.exits(0);
    let allowed = asked[0]["max_completion_tokens"].as_u64().unwrap();
    // The remaining budget limits the answer, at $10 a million.
    assert!((48_000..50_000).contains(&allowed), "{allowed}");
}

#[test]
fn a_replay_costs_what_the_run_has_and_the_pages_tell_the_tier() {
    let server = ModelServer::start([gemini_in("flex", DONE)]);
    let project = TestProject::new().with(&server).build("test -e ok");
    let run = project.run(&["--tier", "flex"]).exits(0);
    let told = project.run(&["log", &run.folder]).exits(0);
    assert!(
        told.stdout.contains("gemini-2.5-pro (flex), 100 tokens in"),
        "{}",
        told.stdout
    );
    project.run(&["report", &run.folder]).exits(0);
    let page = project.read(&format!("logs/{}/report.html", run.folder));
    assert!(page.contains("gemini-2.5-pro (flex)"), "{page}");
    // The cached share of the prompts, for the call and the run.
    assert!(
        page.contains("10 (10.0 %)") && page.contains("10 cached, 10.0 %"),
        "{page}"
    );
    std::fs::remove_file(project.path("ok")).unwrap();
    let again = project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(costs(&again), [Some(HALF)]);
    assert_eq!(again.result()["warnings"], json!([]));
}

#[test]
fn a_dry_run_shows_the_tier() {
    let run = TestProject::new()
        .run(&["--dry-run", "--tier", "flex"])
        .exits(0);
    assert!(
        run.stdout.contains("tier      flex, at half of this cost"),
        "{}",
        run.stdout
    );
}

#[test]
fn an_agent_asks_in_the_tier_and_leaves_its_conversation_to_the_vendors_cache() {
    let server = agent::server(&[agent::done(), agent::PASS.to_owned()]);
    let table = json!({"models": {"test-model": {"provider": "openai", "id": "gpt-6.1-sol"}}});
    let run = agent::AgentProject::new(&server)
        .with_file("agent-config/models.json", &table.to_string())
        .run(&["-p", "go", "--tier", "flex"]);
    run.exits(0);
    for asked in server.requests() {
        assert_eq!(asked.json()["service_tier"], "flex");
        assert_eq!(asked.json().get("prompt_cache_options"), None);
    }
}
