//! `plan reliability`: the percentage of well-formed replies.

use crate::support::plan::{PlanProject, calls, conversation, queries, query, response, system};
use crate::support::{Answer, ModelServer};
use serde_json::json;

#[test]
fn replies_are_counted_and_nothing_of_them_is_done() {
    let good = calls(&[("write_file", json!({"file_path": "a.txt", "content": "a"}))]);
    let answers = [&*good, "no", &*response("Done."), "{}"];
    for (more, code) in [
        (&["--at-least", "50"][..], 0),
        (&["--at-least", "51"], 1),
        (&[], 1),
    ] {
        let (plan, server) = PlanProject::scripted(&answers);
        let before = plan.project.tree();
        let arguments = [&["reliability", "-n", "4"], more].concat();
        let run = plan.run(&arguments).exits(code);
        assert!(run.stdout.contains("Reliability: 50%\n"), "{}", run.stdout);
        assert_eq!(
            plan.project.tree(),
            before,
            "nothing in the project is changed"
        );
        assert!(plan.project.runs().is_empty());
        assert!(plan.sessions().is_empty());
        assert_eq!(queries(&server), 4);
        // The request is the same as for a step.
        let asked = query(&server, 0);
        assert!(
            asked["format"].to_string().contains("tool_calls"),
            "{asked}"
        );
        assert_eq!(asked["options"]["temperature"], 0.2);
        let [first, second, third] = &system(&server, 0)[..] else {
            panic!("three messages of the system");
        };
        assert!(
            first.contains("# Tools") && first.contains("# Examples"),
            "{first}"
        );
        assert!(
            second.ends_with("Execute the current task step."),
            "{second}"
        );
        assert!(third.starts_with("# Current Plan\n\n"), "{third}");
        assert!(conversation(&server, 0)[0].1.starts_with("Current task: "));
    }
}

#[test]
fn invalid_number_of_calls_is_a_usage_error() {
    let (plan, server) = PlanProject::scripted(&["no"]);
    for arguments in [
        &["reliability", "-n", "0"][..],
        &["reliability", "--at-least", "101"],
        &["reliability", "--model", "none"],
    ] {
        plan.run(arguments).exits(2);
    }
    assert_eq!(queries(&server), 0);
    // A server that does not answer proves nothing about the model.
    let (plan, _server) = PlanProject::scripted::<&str>(&[]);
    plan.run(&["reliability", "-n", "1"]).exits(4);
}

#[test]
fn a_model_that_cannot_be_asked_is_reported_without_the_settings_of_others() {
    let body = json!({"error": {"message": "No."}});
    let answers = [400, 401].map(|status| Answer::error(status, &body));
    let server = ModelServer::start(answers);
    let plan =
        PlanProject::new(&server).with_variable("OPENAI_BASE_URL", &format!("{}/v1", server.url()));
    for hint in ["`contextWindow`", "`agent-config/openai-key.txt`"] {
        let asked = plan.run(&["reliability", "--model", "gpt-5"]).exits(4);
        let asked = asked.says(&[hint]);
        assert!(!asked.stderr.contains("config.json"), "{}", asked.stderr);
    }
}
