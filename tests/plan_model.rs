//! The stages of a plan with a real language model, if one is installed: each reply must follow the stage's schema.

use serde_json::json;

use crate::dev::model::Server;
use crate::support::{TestProject, skipped};

#[test]
fn a_real_model_keeps_to_the_form_of_every_stage() {
    let Some(server) = Server::start(None) else {
        skipped("no language model; see tests/model/install.sh");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let table = json!({"models": {"small": {"provider": "openai", "baseUrl": format!("{}/v1", server.url),
        "contextWindow": 8192, "maxOutputTokens": 600}}});
    let project = TestProject::new()
        .variable("HOME", home.path().to_str().unwrap())
        .file("agent-config/models.json", table.to_string())
        .file("README.md", "# Cats\n");
    // The model's skill does not matter: a reply may be cut off (4), but a complete one follows the schema (not 5).
    let within = ["--model", "small", "--timeout", "20s"];
    let planning = [
        "plan",
        "--plan-only",
        "--plan-file",
        "PLAN.md",
        "-p",
        "Describe cats in README.md.",
    ];
    let run = project.run(&[&planning[..], &within].concat());
    assert!([0, 4].contains(&run.code), "{}", run.stderr);
    if run.code == 0 {
        let plan = project.read("PLAN.md");
        assert!(plan.contains("\n1. [ ] "), "{plan}");
    }
    let counting = ["plan", "reliability", "-n", "1", "--at-least", "0"];
    let counted = project.run(&[&counting[..], &within].concat());
    assert!([0, 4].contains(&counted.code), "{}", counted.stderr);
}
