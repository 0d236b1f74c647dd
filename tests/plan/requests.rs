//! Requests to the models: the messages of every stage, the temperature, the reply format, and the model.

use serde_json::{Value, json};

use crate::support::plan::{
    MODEL, PlanProject, calls, conversation, last_told, queries, query, response, said, serving,
    summary, system, tasks, write,
};
use crate::support::{Answer, ModelServer, ollama};

const SPECIFIED_FORMAT: &str = include_str!("../../prompts/plan_response_format.txt");
const SPECIFIED_EXAMPLES: &str = include_str!("../../prompts/plan_examples.txt");
const TEMPLATE: &str = include_str!("../../prompts/plan_agents.md");

/// The queries of a request with one step that reads and one that thinks: the plan, two for each step, and the summary.
fn two_steps() -> Vec<String> {
    vec![
        tasks(&[("Look", "list_files"), ("Think", "analyze")]),
        calls(&[("list_files", json!({}))]),
        response("I have looked."),
        response("I have thought."),
        summary("Done"),
    ]
}

fn roles(query: &Value) -> Vec<&str> {
    let messages = query["messages"].as_array().unwrap().iter();
    messages
        .map(|message| message["role"].as_str().unwrap())
        .collect()
}

/// Returns the headings of the first level.
fn headings(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines.filter(|line| line.starts_with("# ")).collect()
}

#[test]
fn three_messages_of_the_system_stand_ahead_of_a_stages_own() {
    let (plan, server) = PlanProject::scripted(&two_steps());
    let plan = plan.with_file(
        "agent-config/models.json",
        &json!({
            "models": {MODEL: {"provider": "ollama", "contextWindow": 16384, "prompt": "You are Local.\n\n"}},
            "selectionRules": {"byTaskType": {"planning": MODEL, "coding": MODEL, "summarization": MODEL}},
        })
        .to_string(),
    );
    let plan = plan.with_file("AGENTS.md", "Use tabs.\n");
    std::fs::write(plan.home.path().join("AGENTS.md"), "\nBe brief.\n\n").unwrap();
    plan.work("Look and think").exits(0);
    let sentences = [
        "You are a planning model. Break requests into executable steps.",
        "Execute the current task step.",
        "Execute the current task step.",
        "Execute the current task step.",
        "You are a summarizer. Create concise log entries for what was just done.",
    ];
    assert_eq!(queries(&server), sentences.len());
    for (nth, sentence) in sentences.iter().enumerate() {
        assert_eq!(
            roles(&query(&server, nth))[..4],
            ["system", "system", "system", "user"]
        );
        let [first, second, third] = &system(&server, nth)[..] else {
            panic!("three messages of the system");
        };
        assert!(first.starts_with(
            "Be brief.\n\n# Project Instructions\n\nUse tabs.\n\n# Response Format\n\n"
        ));
        assert_eq!(*second, format!("You are Local.\n\n{sentence}"));
        assert!(third.starts_with("# Current Plan\n\n---\n"), "{third}");
        assert!(
            !first.contains("\n\n\n"),
            "one blank line stands between parts: {first}"
        );
    }
    // The document is read again for every call.
    let plans: Vec<String> = (0..5)
        .map(|nth| system(&server, nth).pop().unwrap())
        .collect();
    assert!(!plans[0].contains("## Tasks"));
    assert!(plans[1].contains("1. [~] Look\n") && plans[1].contains("2. [ ] Think\n"));
    assert!(plans[3].contains("1. [x] Look\n") && plans[3].contains("2. [~] Think\n"));
    assert!(plans[4].contains("2. [x] Think\n"));
}

#[test]
fn the_form_of_a_steps_reply_is_reported_in_the_specifications_words() {
    let (plan, server) = PlanProject::scripted(&two_steps());
    plan.work("Look and think").exits(0);
    let first = system(&server, 1).remove(0);
    let format = SPECIFIED_FORMAT.trim_end();
    let start = format!(
        "{}\n\n# Response Format\n\n{format}\n\n# Tools\n\n### read_file\n",
        TEMPLATE.trim_end()
    );
    assert!(first.starts_with(&start), "{first}");
    let end = format!("\n```\n\n# Examples\n\n{}", SPECIFIED_EXAMPLES.trim_end());
    assert!(first.ends_with(&end), "{first}");
    let read = "### read_file\nRead the complete contents of a file from the filesystem. Use this when you need to view \
                file contents.\n\n**Parameters:**\n  - file_path: string (required) - Path to the file, relative to the \
                project or absolute inside it\n  - encoding: string (optional) [default: utf-8] - File encoding\n\n\
                **Example:**\n```json\n{\n  \"tool_calls\": [\n    {\n      \"name\": \"read_file\",\n      \
                \"parameters\": {\n        \"file_path\": \"/path/to/file.ext\"\n      }\n    }\n  ]\n}\n```\n\n---\n\n\
                ### write_file\n";
    assert!(first.contains(read), "{first}");
    let tools: Vec<&str> = first
        .lines()
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    assert_eq!(
        tools,
        [
            "read_file",
            "write_file",
            "replace_in_file",
            "list_files",
            "search_files",
            "shell_exec",
            "show_diff",
            "initialize_plan",
            "update_plan",
        ],
        "nobody is there to be asked"
    );
    // A task list and a log entry have forms of their own.
    let planning = system(&server, 0).remove(0);
    assert!(
        planning.contains("\"task_list\": [") && !planning.contains("\"tool_calls\""),
        "{planning}"
    );
    assert!(headings(&planning).ends_with(&[
        "# Response Format",
        "# Tools",
        "# Examples",
        "# Example: Updating a document"
    ]));
    let summing = system(&server, 4).remove(0);
    assert!(
        summing.contains("\"log_entry\": {") && !summing.contains("# Tools"),
        "{summing}"
    );
    assert!(headings(&summing).ends_with(&[
        "# Response Format",
        "# Examples",
        "# Example: A document that was updated"
    ]));
}

#[test]
fn every_stage_has_its_messages_and_temperature_and_options() {
    let (plan, server) = PlanProject::scripted(&two_steps());
    plan.work("Look and think").exits(0);
    for (nth, temperature) in [0.3, 0.2, 0.2, 0.2, 0.1].into_iter().enumerate() {
        let query = query(&server, nth);
        for (field, expected) in [
            ("model", json!(MODEL)),
            ("stream", json!(true)),
            ("truncate", json!(false)),
            ("shift", json!(false)),
            (
                "options",
                json!({"temperature": temperature, "num_ctx": 16384, "num_predict": 4096}),
            ),
        ] {
            assert_eq!(query[field], expected, "{nth} {field}");
        }
    }
    let user = |text: &str| ("user".to_owned(), text.to_owned());
    let agent = |text: &str| ("assistant".to_owned(), text.to_owned());
    assert_eq!(conversation(&server, 0), [user("Look and think")]);
    assert_eq!(conversation(&server, 1), [user("Current task: Look")]);
    let second = conversation(&server, 2);
    assert_eq!(
        second[1],
        agent(r#"{"tool_calls":[{"name":"list_files","parameters":{}}]}"#)
    );
    assert!(
        second[2].1.starts_with("Tool results:\n[0] ✓ "),
        "{second:?}"
    );
    assert!(
        second[2].1.ends_with("\n\nCurrent task: Look"),
        "{second:?}"
    );
    assert_eq!(
        conversation(&server, 3)[3],
        agent(r#"{"response":"I have looked."}"#)
    );
    assert_eq!(last_told(&server, 3), "Current task: Think");
    let summed = conversation(&server, 4);
    assert_eq!(summed.len(), 7, "all of the steps: {summed:?}");
    assert_eq!(summed[5], agent(r#"{"response":"I have thought."}"#));
    assert_eq!(
        summed[6],
        user("Write the log entry for what was just done.")
    );
}

#[test]
fn a_stages_schema_allows_what_the_stage_can_use_and_nothing_else() {
    let (plan, server) = PlanProject::scripted(&two_steps());
    plan.work("Look and think").exits(0);
    let planned = query(&server, 0)["format"].clone();
    assert_eq!(planned["required"], json!(["task_list"]));
    let names = &planned["properties"]["task_list"]["items"]["properties"]["tool"]["enum"];
    assert!(
        names.as_array().unwrap().contains(&json!("analyze")),
        "{names}"
    );
    let step = query(&server, 1)["format"].clone();
    assert_eq!(step["anyOf"][1]["required"], json!(["response"]));
    let list = &step["anyOf"][0]["properties"]["tool_calls"];
    assert_eq!(list["minItems"], 1);
    let read = &list["items"]["anyOf"][0]["properties"];
    assert_eq!(read["name"]["enum"], json!(["read_file"]));
    assert_eq!(read["parameters"]["additionalProperties"], false);
    assert_eq!(read["parameters"]["required"], json!(["file_path"]));
    assert_eq!(
        query(&server, 4)["format"]["required"],
        json!(["log_entry"])
    );
    for nth in [0, 1, 4] {
        ends_everywhere(&query(&server, nth)["format"], "");
    }
}

/// Checks that every list and text has a maximum length, except the content of files.
fn ends_everywhere(schema: &Value, name: &str) {
    let is_of = |kind: &str| schema["type"] == kind;
    if is_of("string")
        && schema.get("enum").is_none()
        && !["content", "find", "replace"].contains(&name)
    {
        assert!(schema["maxLength"].is_u64(), "{name}: {schema}");
    }
    if is_of("array") {
        assert!(schema["maxItems"].is_u64(), "{name}: {schema}");
        ends_everywhere(&schema["items"], name);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        ends_everywhere(property, name);
    }
    for one in schema["anyOf"].as_array().into_iter().flatten() {
        ends_everywhere(one, name);
    }
}

#[test]
fn five_messages_of_the_users_are_sent_and_the_task_is_in_the_last() {
    let mut replies = vec![tasks(&[("Look around", "analyze")])];
    for _ in 0..8 {
        replies.push(calls(&[
            ("list_files", json!({})),
            ("list_files", json!({"path": "src"})),
        ]));
    }
    replies.extend([response("Enough."), summary("Done")]);
    let (plan, server) = PlanProject::scripted(&replies);
    plan.work("Look").exits(0);
    for nth in 1..=9 {
        let sent = conversation(&server, nth);
        let users: Vec<&String> = sent
            .iter()
            .filter(|(role, _)| role == "user")
            .map(|(_, text)| text)
            .collect();
        assert_eq!(users.len(), nth.min(5), "{nth}");
        assert_eq!(sent[0].0, "user", "{nth}");
        let last = users.last().unwrap();
        assert!(last.ends_with("Current task: Look around"), "{last}");
        let tasks = users
            .iter()
            .filter(|text| text.contains("Current task: "))
            .count();
        assert!(tasks <= 2, "{users:?}");
    }
    // The summary's conversation includes all of them.
    assert_eq!(
        conversation(&server, 10)
            .iter()
            .filter(|(role, _)| role == "user")
            .count(),
        10
    );
}

#[test]
fn each_stage_asks_the_model_of_its_rule_and_model_is_for_all() {
    let rules = json!({
        "models": {"a": {"provider": "ollama"}, "b": {"provider": "ollama", "keepAlive": "10m"}},
        "selectionRules": {"default": "gpt-5", "byTaskType": {"planning": "a", "summarization": "b", "commit": "gpt-5"}},
    })
    .to_string();
    for (arguments, asked) in [
        // The project's default model is meant for commits.
        (&["-p", "Think"][..], ["a", "qwen2.5-coder:7b", "b"]),
        (
            &["-p", "Think", "--model", "llama3.1:8b"],
            ["llama3.1:8b"; 3],
        ),
    ] {
        let replies = [
            tasks(&[("Think", "analyze")]),
            response("So it is."),
            summary("Done"),
        ];
        let answers = replies.map(said);
        let models = ["a", "b", "qwen2.5-coder:7b", "llama3.1:8b"];
        let server = crate::support::ModelServer::with_models(&models, answers);
        let plan = PlanProject::new(&server).with_file("agent-config/models.json", &rules);
        let run = plan.run(arguments).exits(0);
        let models: Vec<String> = (0..3)
            .map(|nth| query(&server, nth)["model"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(models, asked);
        // The agent's own table is created on the first start.
        run.says(&["config/models.json` was made"]);
        let own = std::fs::read_to_string(plan.home("config/models.json")).unwrap();
        assert_eq!(own, include_str!("../../prompts/plan_models.json"));
        if asked[2] == "b" {
            assert_eq!(query(&server, 2)["keep_alive"], "10m");
        }
        let coder = system(&server, 1).remove(1);
        assert!(
            coder.starts_with("You are "),
            "its own prompt stands first: {coder}"
        );
        assert!(
            coder.ends_with("\n\nExecute the current task step."),
            "{coder}"
        );
        assert_eq!(plan.session()["model"], asked[1]);
    }
}

#[test]
fn a_plan_is_asked_for_with_the_plan_as_it_is_and_the_request_alone() {
    let (plan, server) = PlanProject::scripted(&[
        tasks(&[("Think", "analyze")]),
        response("So it is."),
        summary("Done"),
        tasks(&[("Write", "write_file")]),
        write("a.txt", "a\n"),
        response("It is there."),
        summary("Written"),
    ]);
    plan.work("First").exits(0);
    plan.run(&["--resume", "-p", "Second"]).exits(0);
    assert_eq!(
        conversation(&server, 3),
        [("user".to_owned(), "Second".to_owned())]
    );
    let shown = system(&server, 3).pop().unwrap();
    assert!(
        shown.contains("- Did the work\n") && shown.contains("## Goal\nFirst\n"),
        "{shown}"
    );
    // The new list replaces the old one; earlier results are still known.
    let document = plan.document();
    assert!(
        document.contains("1. [x] Write\n") && !document.contains("Think"),
        "{document}"
    );
    assert_eq!(last_told(&server, 4), "Current task: Write");
    assert!(conversation(&server, 4).len() > 1);
}

#[test]
fn thoughts_are_neither_kept_nor_sent_and_a_cut_reply_is_asked_for_again() {
    let mut cut = ollama(&response("So it"));
    cut.last_mut().unwrap()["done_reason"] = json!("length");
    let server = serving([
        said(tasks(&[("Think", "analyze")])),
        Answer::lines(&cut),
        said(format!(
            "<think>Hm, {{}}.</think>\n```json\n{}\n```\n",
            response("So it is.")
        )),
        said(summary("Done")),
    ]);
    let plan = PlanProject::new(&server);
    plan.work("Think").exits(0);
    assert_eq!(query(&server, 2)["options"]["temperature"], 0.1);
    let summed = conversation(&server, 3);
    assert_eq!(summed[1].1, r#"{"response":"So it is."}"#, "{summed:?}");
    assert!(!plan.kept("session.json").contains("Hm, "));
}

#[test]
fn a_server_that_refuses_the_temperature_is_asked_without_one_from_then_on() {
    let refusal = r#"{"error": "Unsupported value: 'temperature' does not support 0.3"}"#;
    let refused = Answer::new(400, &[("content-type", "application/json")], refusal);
    let replies = [
        tasks(&[("Think", "analyze")]),
        response("Thought."),
        summary("Done"),
    ];
    let server = serving(std::iter::once(refused).chain(replies.iter().map(said)));
    let plan = PlanProject::new(&server);
    plan.work("Think").exits(0);
    let warm: Vec<bool> = (0..queries(&server))
        .map(|nth| !query(&server, nth)["options"]["temperature"].is_null())
        .collect();
    assert_eq!(warm, [true, false, false, false]);
}

#[test]
fn a_model_with_a_tag_that_ollama_lacks_is_named_with_its_pull_or_pulled() {
    let asked = ["-p", "Look", "--model", "qwen3:8b"];
    let server = serving([]);
    let refused = PlanProject::new(&server).run(&asked).exits(3);
    refused.says(&[
        "`qwen3:8b` is not installed",
        "hint: run `ollama pull qwen3:8b`",
    ]);

    let [none, there] = [&[][..], &["qwen3:8b"]];
    let [pulled, shown] = [json!({"status": "success"}), json!({})];
    let looked = [
        tasks(&[("Look", "analyze")]),
        response("Seen."),
        summary("Done"),
    ];
    let before = [
        Answer::tags(none),
        Answer::tags(none),
        Answer::json(&pulled),
    ];
    let after = [
        Answer::tags(there),
        Answer::json(&shown),
        Answer::tags(there),
    ];
    let answers = before.into_iter().chain(after);
    let server = ModelServer::start(answers.chain(looked.iter().map(said)));
    let plan = PlanProject::new(&server);
    plan.run(&[&asked[..], &["--pull"]].concat()).exits(0);
    let requests = server.requests();
    assert_eq!(requests[2].line, "POST /api/pull HTTP/1.1");
    assert_eq!(query(&server, 0)["model"], "qwen3:8b");
}
