//! The order of the prompt's sections, and its effect on a vendor's cache.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::{Answer, Finished, ModelServer, TestProject};

const WRITE: &str = "^^^a\nx\n^^^end\n";

/// A code base for which a request has about 100,000 tokens.
fn code_base() -> String {
    let code = "let x = f(a, b, c);\n".repeat(18_800);
    format!("--- src/main.rs ---\n{code}")
}

/// The number of bytes that the vendor counts as one token here.
const TOKEN: usize = 4;

/// Returns the number of bytes in the common prefix.
fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// A run of four calls, of which the last one's reply passes the build.
fn run(entry: &Value) -> (Finished, Vec<Vec<u8>>) {
    let replies = [WRITE, WRITE, WRITE, "^^^ok\n\n^^^end\n"];
    let server = ModelServer::openai(&replies);
    let project = project(entry).with(&server).build("echo no; test -e ok");
    let run = project.run(&["--model", "gpt-5"]).exits(0);
    let asked = server.requests().into_iter().map(|request| request.body);
    (run, asked.collect())
}

fn project(entry: &Value) -> TestProject {
    TestProject::new()
        .file("src/main.rs", &code_base()["--- src/main.rs ---\n".len()..])
        .file("agent-config/codeRollup.txt", code_base())
        .file(
            "agent-config/models.json",
            json!({"models": {"gpt-5": entry}}).to_string(),
        )
}

#[test]
fn in_the_cached_order_a_repair_begins_with_all_of_the_first_request() {
    let (run, asked) = run(&json!({"promptOrder": "cached"}));
    let [first, repairs @ ..] = &*asked else {
        panic!("four requests")
    };
    assert_eq!(repairs.len(), 3);
    for repair in repairs {
        // All but the end of the message and the fields after the messages.
        let end = first.len() - shared(first, repair);
        assert!(end < 100, "{end}");
        assert!(shared(first, repair) * 100 > 95 * repair.len());
    }
    let first: Value = serde_json::from_slice(first).unwrap();
    let repair: Value = serde_json::from_slice(&repairs[0]).unwrap();
    let parts = |body: &Value| body["messages"][1]["content"].as_array().unwrap().clone();
    assert_eq!(first["messages"].as_array().unwrap().len(), 2);
    assert_eq!(repair["messages"][0], first["messages"][0]);
    assert_eq!(parts(&repair)[0], parts(&first)[0]);
    let text = parts(&first)[0]["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("[codebase]\n--- src/main.rs ---\n"));
    assert!(text.ends_with("[query]\nDo something.\n"));
    let new = parts(&repair)[1]["text"].as_str().unwrap().to_owned();
    assert!(new.contains("Your task today is to fix code that is broken."));
    assert!(
        new.contains("[build.sh output]\n") && new.ends_with("--- FILE REPLACEMENT a ---\nx\n")
    );
    // The logs show the text that was sent.
    let system = first["messages"][0]["content"].as_str().unwrap();
    assert_eq!(run.logged("initial-query.txt"), format!("{system}{text}"));
    assert_eq!(
        run.logged("repair-query-1.txt"),
        format!("{system}{text}{new}")
    );
}

#[test]
fn gemini_gets_the_same_text_in_two_parts() {
    let answers = [WRITE, "^^^ok\n\n^^^end\n"];
    let server = ModelServer::gemini(&answers);
    let project = TestProject::new().with(&server).build("test -e ok").file(
        "agent-config/models.json",
        r#"{"models": {"gemini-2.5-pro": {"promptOrder": "cached"}}}"#,
    );
    project.run(&[]).exits(0);
    let asked = server.requests();
    let (first, repair) = (asked[0].json(), asked[1].json());
    assert_eq!(first["systemInstruction"], repair["systemInstruction"]);
    let parts = |body: &Value| body["contents"][0]["parts"].as_array().unwrap().clone();
    assert_eq!((parts(&first).len(), parts(&repair).len()), (1, 2));
    assert_eq!(parts(&first)[0], parts(&repair)[0]);
    assert_eq!(repair["contents"].as_array().unwrap().len(), 1);
}

#[test]
fn without_a_word_the_order_is_the_specified_one() {
    for entry in [json!({}), json!({"promptOrder": "specified"})] {
        let (run, asked) = run(&entry);
        assert!(shared(&asked[0], &asked[1]) * 100 < 5 * asked[1].len());
        let user = |body: &[u8]| -> String {
            let body: Value = serde_json::from_slice(body).unwrap();
            body["messages"][1]["content"].as_str().unwrap().to_owned()
        };
        assert!(user(&asked[0]).starts_with("[query]\nDo something.\n[codebase]\n"));
        assert!(user(&asked[1]).starts_with("[build.sh output]\n"));
        assert!(
            run.logged("repair-query-1.txt")
                .ends_with("--- FILE REPLACEMENT a ---\nx\n")
        );
    }
    TestProject::new()
        .file(
            "agent-config/models.json",
            r#"{"models": {"gpt-5": {"promptOrder": "other"}}}"#,
        )
        .run(&["--dry-run"])
        .exits(3)
        .says(&["unknown variant `other`, expected `specified` or `cached`"]);
}

/// A vendor with a cache: it reads as much of each request as an earlier one began with.
fn caching_vendor(replies: [&'static str; 4]) -> ModelServer {
    let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    ModelServer::start(replies.map(|reply| {
        let seen = Arc::clone(&seen);
        Answer::To(Box::new(move |asked| {
            let mut seen = seen.lock().unwrap();
            let known = seen.iter().map(|earlier| shared(earlier, &asked.body));
            let cached = known.max().unwrap_or(0) / TOKEN;
            seen.push(asked.body.clone());
            Answer::json(&json!({
                "model": "gpt-5", "service_tier": asked.json().get("service_tier"),
                "choices": [{"index": 0, "message": {"content": reply}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": asked.body.len() / TOKEN, "completion_tokens": 7000,
                    "prompt_tokens_details": {"cached_tokens": cached}},
            }))
        }))
    }))
}

#[test]
fn cached_prompt_is_cheaper() {
    let cost = |entry: &Value, arguments: &[&str]| {
        let server = caching_vendor([WRITE, WRITE, WRITE, "^^^ok\n\n^^^end\n"]);
        let project = project(entry).with(&server).build("date +%s%N; test -e ok");
        let arguments = [&["--model", "gpt-5"], arguments].concat();
        let run = project.run(&arguments).exits(0);
        format!("{:.2}", run.result()["cost"].as_f64().unwrap())
    };
    let specified = cost(&json!({}), &[]);
    let cached = cost(&json!({"promptOrder": "cached"}), &[]);
    let flex = cost(&json!({"promptOrder": "cached"}), &["--tier", "flex"]);
    assert_eq!([specified, cached, flex], ["0.78", "0.44", "0.22"]);
}
