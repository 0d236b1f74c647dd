//! The stages of a plan with a real language model, where one is installed: each reply is held to the stage's schema.

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
        "contextWindow": 8192, "maxOutputTokens": 4000}}});
    let project = TestProject::new()
        .variable("HOME", home.path().to_str().unwrap())
        .file("agent-config/models.json", table.to_string())
        .file("README.md", "# Cats\n");
    // A reply may be cut off for its length, and is then asked for again; the first whole one is of the form.
    let of_one_reply = |project: &TestProject, arguments: &[&str], kind: &str| {
        let run = project.run(arguments).exits(0);
        let steps = run.result()["attempts"].clone();
        let steps = steps.as_array().unwrap();
        assert!(steps.iter().all(|step| step["kind"] == kind), "{steps:#?}");
        let whole: Vec<usize> = (0..steps.len())
            .filter(|at| steps[*at]["finish"] == "stop")
            .collect();
        assert_eq!(whole, [steps.len() - 1], "{steps:#?}");
    };
    let request = "Describe cats in README.md.";
    let planning = [
        "plan",
        "--plan-only",
        "--plan-file",
        "PLAN.md",
        "-p",
        request,
    ];
    of_one_reply(
        &project,
        &[&planning[..], &["--model", "small"]].concat(),
        "plan",
    );
    let plan = project.read("PLAN.md");
    assert!(plan.contains("\n1. [ ] "), "{plan}");

    // What a step does is the model's own; all that it says is a call or a response.
    let counted = project.run(&[
        "plan",
        "reliability",
        "-n",
        "2",
        "--at-least",
        "50",
        "--model",
        "small",
    ]);
    let counted = counted.exits(0).stdout;
    assert!(counted.starts_with("Reliability: "), "{counted}");

    // Of steps that are skipped, the summary alone is left.
    let project = project.file("PLAN.md", plan.replace(". [ ] ", ". [-] "));
    of_one_reply(
        &project,
        &["plan", "--resume", "-p", "", "--model", "small"],
        "summary",
    );
    let log = project.read("PLAN.md");
    assert!(log.contains("**Result:** "), "{log}");
}
