//! The vendor's native tool calls, streamed in pieces, from the model's entry to the results sent back.

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS, done, streamed};
use crate::support::{Answer, ModelServer};

const MODELS: &str = r#"{"models": {"test-model": {"provider": "openai", "tools": "native"}}}"#;

/// An answer with these calls, streamed: first the IDs and names, then the arguments in alternating pieces.
fn calls(calls: &[(&str, &str, Value)]) -> Answer {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id": "c1", "model": "test-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let piece = |index: usize, call: Value| {
        chunk(json!({"tool_calls": [merged(index, call)]}), Value::Null)
    };
    let mut events = String::new();
    for (index, (id, name, _)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        events += &piece(
            index,
            json!({"id": id, "type": "function", "function": function}),
        );
    }
    let written: Vec<Vec<char>> = calls
        .iter()
        .map(|call| call.2.to_string().chars().collect())
        .collect();
    let longest = written
        .iter()
        .map(|text| text.len().div_ceil(5))
        .max()
        .unwrap_or(0);
    for at in 0..longest {
        for (index, text) in written.iter().enumerate() {
            let piece_of: String = text.iter().skip(at * 5).take(5).collect();
            events += &piece(index, json!({"function": {"arguments": piece_of}}));
        }
    }
    events += &chunk(json!({}), "tool_calls".into());
    Answer::new(
        200,
        &[("content-type", "text/event-stream")],
        events + "data: [DONE]\n\n",
    )
}

fn merged(index: usize, mut call: Value) -> Value {
    call["index"] = index.into();
    call
}

#[test]
fn an_agent_works_by_the_vendors_own_calls() {
    let server = ModelServer::start([
        calls(&[
            (
                "w1",
                "WRITE_FILE",
                json!({"path": "a.txt", "content": "# Agent Response\n## Tool Choice\nCOMMAND\n"}),
            ),
            ("r1", "READ_FILE", json!({"path": "none.txt"})),
            ("x1", "NO_SUCH_TOOL", json!({})),
            ("e1", "COMMAND", json!({"command": "exit 3"})),
        ]),
        calls(&[("d1", "DONE", json!({"summary": "Written."}))]),
        streamed(PASS),
    ]);
    let agent = AgentProject::new(&server).with_file("agent-config/models.json", MODELS);
    let run = agent.work("Write it").exits(0);
    assert_eq!(
        agent.project.read("a.txt"),
        "# Agent Response\n## Tool Choice\nCOMMAND\n"
    );
    let requests = server.requests();
    let first = requests[0].json();
    let offered: Vec<&str> = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert!(
        offered.contains(&"WRITE_FILE") && offered.contains(&"DONE"),
        "{offered:?}"
    );
    let second = requests[1].json();
    let messages = second["messages"].as_array().unwrap();
    let [.., asked, written, read, unknown, _] = messages.as_slice() else {
        panic!("{messages:#?}");
    };
    assert_eq!(asked["role"], "assistant");
    assert_eq!(asked["content"], Value::Null);
    assert_eq!(asked["tool_calls"][0]["id"], "w1");
    assert_eq!(asked["tool_calls"].as_array().unwrap().len(), 4);
    for (result, id) in [(written, "w1"), (read, "r1"), (unknown, "x1")] {
        assert_eq!(
            (&result["role"], &result["tool_call_id"]),
            (&json!("tool"), &json!(id))
        );
    }
    assert!(
        read["content"]
            .as_str()
            .unwrap()
            .starts_with("ERROR: `none.txt` does not exist"),
        "{read}"
    );
    assert!(
        unknown["content"]
            .as_str()
            .unwrap()
            .starts_with("ERROR: there is no tool `NO_SUCH_TOOL`"),
        "{unknown}"
    );
    // The run's steps contain the call as data.
    let steps: Vec<Value> = run
        .logged("steps.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let step = steps.iter().rfind(|step| step["number"] == 1).unwrap();
    assert_eq!(step["tools"][0]["input"]["path"], "a.txt");
    assert_eq!(
        (&step["tools"][1]["failed"], &step["tools"][1]["id"]),
        (&json!(true), &json!("r1"))
    );
    assert_eq!(step["tools"][3]["exit_code"], 3);
    assert_eq!(steps.last().unwrap()["passed"], true);
}

#[test]
fn model_that_calls_tools_without_being_offered_any_is_corrected() {
    let unasked = || calls(&[("d1", "DONE", json!({"summary": "Done."}))]);
    let server = ModelServer::start([
        unasked(),
        calls(&[]),
        streamed(&done()),
        unasked(),
        streamed(PASS),
    ]);
    let run = AgentProject::new(&server).work("Do it").exits(0);
    assert!(!run.stderr.contains("File exists"), "{}", run.stderr);
    let told = server.requests()[1].json()["messages"].to_string();
    assert!(
        told.contains("it calls tools, and was given none"),
        "{told}"
    );
    let server = ModelServer::start([unasked(), unasked()]);
    let agent = AgentProject::new(&server).configured(&json!({"maxRetriesAutomated": 2}));
    let run = agent.work("Do it").exits(4);
    assert!(
        run.stderr.contains("`\"tools\": \"native\"`"),
        "{}",
        run.stderr
    );
}

#[test]
fn an_answer_in_words_is_reported_as_the_end_of_the_work() {
    let object = |answer: &str| json!({ "answer": answer }).to_string();
    for (form, said) in [("native", None), ("json", Some(object))] {
        let reply = |words: &str| streamed(&said.map_or(words.to_owned(), |said| said(words)));
        let server = ModelServer::start([reply("It was all there."), reply(PASS)]);
        let models = MODELS.replace("native", form);
        let agent = AgentProject::new(&server).with_file("agent-config/models.json", &models);
        let run = agent.work("Look").exits(0);
        let story = agent.project.run(&["log", &run.folder]).exits(0).stdout;
        assert!(
            story.contains("  Answer\n    It was all there.\n"),
            "{story}"
        );
        assert!(!story.contains("Nothing was done"), "{story}");
        agent.project.run(&["report", &run.folder]).exits(0);
        let page = agent
            .project
            .read(&format!("logs/{}/report.html", run.folder));
        assert!(
            page.contains("<h3>Answer</h3><pre class=\"prose\">It was all there.</pre>"),
            "{page}"
        );
        assert!(!page.contains("nothing done"), "{page}");
    }
}
