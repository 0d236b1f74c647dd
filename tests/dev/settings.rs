//! The configuration.

use std::fs;

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS, done, told};
use crate::support::{Answer, ModelServer};

#[test]
fn the_first_start_writes_the_defaults_of_the_specification() {
    let (agent, _server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    agent.work("go").exits(0).says(&["config.json"]);
    let written = fs::read_to_string(agent.home("config.json")).unwrap();
    let config: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(
        config,
        json!({
            "apiUrl": "http://localhost:8005/v1", "apiKey": "", "model": "devstral-small-2507",
            "maxContextTokens": 131_072, "commandTimeout": 30, "maxRetries": 3,
            "maxRetriesAutomated": 10, "maxLoops": 1000, "sessionRetentionDays": 30
        })
    );
}

#[test]
fn mistakes_are_reported_by_line_and_column_and_nothing_is_started() {
    for (config, expected) in [
        ("{\n  \"maxLoops\": 0\n}", "line 2, column 15"),
        ("{\n  \"maxLoops\": 5,\n}", "line 3"),
        ("{\"apiUrl\": \"ftp://x\"}", "line 1, column 12"),
        ("[]", "line 1"),
    ] {
        let (agent, server) = AgentProject::scripted(&[done()]);
        fs::write(agent.home("config.json"), config).unwrap();
        agent
            .work("go")
            .exits(3)
            .says(&["config.json", expected, "hint:"]);
        assert!(server.requests().is_empty());
        assert_eq!(
            fs::read_to_string(agent.home("config.json")).unwrap(),
            config
        );
    }
}

#[test]
fn without_an_address_the_model_is_one_of_the_table() {
    let (agent, _server) = AgentProject::scripted::<&str>(&[]);
    let agent = agent
        .configured(&json!({"apiUrl": "", "model": "mine"}))
        .with_variable("DEV_AGENT_API_URL", "")
        .with_variable("DEV_AGENT_MODEL", "");
    let settings = "no table of models has `mine`, the settings' `model`";
    agent.work("go").exits(3).says(&[settings, "`dev config`"]);
    let named = agent.run(&["-p", "go", "--model", "yours"]).exits(2);
    named.says(&["there is no model `yours`"]);
}

#[test]
fn unknown_fields_are_preserved_and_variables_override() {
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    let config = json!({"apiUrl": "http://127.0.0.1:1/v1", "model": "other", "apiKey": "file-key-123456", "theme": "dark"});
    let agent = agent
        .configured(&config)
        .with_variable("DEV_AGENT_API_KEY", "variable-key-123456");
    agent.work("go").exits(0);
    let request = &server.requests()[0];
    assert_eq!(
        request.header("authorization"),
        Some("Bearer variable-key-123456")
    );
    assert_eq!(request.json()["model"], "test-model");
    let kept: Value =
        serde_json::from_slice(&fs::read(agent.home("config.json")).unwrap()).unwrap();
    assert_eq!(kept, config);
}

#[test]
fn a_rejected_key_is_named_by_the_place_it_comes_from() {
    let file = json!({"apiKey": "file-key-123456"});
    for (variable, place) in [
        (None, "into `apiKey` of the agent's `config.json`"),
        (Some(""), "into `apiKey` of the agent's `config.json`"),
        (
            Some("variable-key-123456"),
            "set `DEV_AGENT_API_KEY` to a valid one",
        ),
    ] {
        let refusal = Answer::error(401, &json!({"error": {"message": "who?"}}));
        let mut agent = AgentProject::new(&ModelServer::start([refusal])).configured(&file);
        if let Some(key) = variable {
            agent = agent.with_variable("DEV_AGENT_API_KEY", key);
        }
        agent.work("go").exits(4).says(&[place]);
    }
}

#[test]
fn a_model_of_the_table_is_asked_by_its_name() {
    let (agent, _unused) = AgentProject::scripted::<String>(&[]);
    let gemini = crate::support::ModelServer::gemini(&[&done(), PASS]);
    let agent = AgentProject {
        project: agent.project.with(&gemini),
        ..agent
    };
    agent
        .run(&["-p", "go", "--model", "gemini-2.5-pro"])
        .exits(0);
    assert_eq!(gemini.requests().len(), 2);
    agent
        .run(&["-p", "go", "--model", "nosuch"])
        .exits(2)
        .says(&["nosuch", "gpt-5"]);
}

#[test]
fn the_configuration_opens_in_the_users_editor() {
    let (agent, _server) = AgentProject::scripted::<String>(&[]);
    let agent = agent
        .with_variable("VISUAL", "sh -c 'echo edited \"$1\"' editor")
        .with_variable("EDITOR", "false");
    let run = agent.run(&["config"]).exits(0);
    assert!(
        run.stdout.contains("edited") && run.stdout.contains("config.json"),
        "{}",
        run.stdout
    );
    assert!(agent.home("config.json").exists());
    let agent = agent.with_variable("VISUAL", "no-such-editor-here");
    agent
        .run(&["config"])
        .exits(3)
        .says(&["no-such-editor-here", "hint:"]);
}

#[test]
fn the_prompt_may_come_from_standard_input() {
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    agent
        .typed(&["-p", "-"], "from a pipe\nin two lines\n")
        .exits(0);
    assert!(
        told(&server, 0).contains("<user_request>\nfrom a pipe\nin two lines\n</user_request>")
    );
    agent.typed(&["-p", "-"], " \n").exits(2).says(&["hint:"]);
    agent.run(&["-p", ""]).exits(2).says(&["hint:"]);
}
