//! The effects of the agent's commands on its own files.

use serde_json::json;

use crate::support::bubblewrap_works;
use crate::support::plan::{
    PlanProject, calls, last_told, queries, response, summary, tasks_with_criteria,
};

#[test]
fn commands_reach_neither_the_agents_home_nor_the_plan() {
    for mode in ["auto", "strict"] {
        if !bubblewrap_works() {
            return;
        }
        for file in [&[][..], &["--plan-file", "plan.md"]] {
            let run = |command: &str| calls(&[("shell_exec", json!({ "command": command }))]);
            let (plan, server) = PlanProject::scripted(&[
                tasks_with_criteria(&[("Try", "shell_exec")], &["All is well"]),
                run("ls -a \"$OLLAMA_AGENT_HOME\" | tr '\\n' ' '"),
                run("cat \"$OLLAMA_AGENT_HOME\"/config/models.json"),
                run(
                    "sed -i 's/- \\[ \\]/- [x]/' plan.md \"$OLLAMA_AGENT_HOME\"/sessions/*/plan_doc.md",
                ),
                run("mv plan.md gone.md; echo '- [x] All is well' > plan.md; cat plan.md"),
                response("Tried."),
                summary("Tried"),
            ]);
            // The build uses files that the agent has written.
            let plan = plan.with_build("echo '## Goal' > plan.md || true");
            let arguments = [&["--yes", "--sandbox", mode, "-p", "Try"], file].concat();
            plan.run(&arguments).exits(0);
            let listed = last_told(&server, 2);
            assert!(
                !listed.contains("sessions") && !listed.contains("config"),
                "{listed}"
            );
            assert!(
                last_told(&server, 3).contains("No such file"),
                "{}",
                last_told(&server, 3)
            );
            let document = match file {
                [] => plan.document(),
                _ => plan.project.read("plan.md"),
            };
            assert!(document.contains("- [ ] All is well"), "{mode}: {document}");
            assert!(
                document.contains("**Status:** in_progress"),
                "{mode}: {document}"
            );
            assert!(document.contains("1. [x] Try"), "{mode}: {document}");
        }
    }
}

#[test]
fn a_home_that_cannot_be_written_is_reported_and_nothing_is_sent() {
    let (plan, server) = PlanProject::scripted::<&str>(&[]);
    let plan = plan.with_variable("OLLAMA_AGENT_HOME", "/proc/1/x");
    plan.work("Try").exits(3).says(&[
        "`/proc/1/x/config/models.json` cannot be made",
        "set `OLLAMA_AGENT_HOME` to one that is",
    ]);
    assert_eq!(queries(&server), 0);
}
