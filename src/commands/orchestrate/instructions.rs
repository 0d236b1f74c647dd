//! The instructions for the model that leads the work. Pure.

use serde_json::{Value, json};

use crate::agent::conversation::HistoryMessage;

/// The system prompt, with the placeholder `{workspace}` for the work directory.
const SYSTEM: &str = include_str!("../../../prompts/orchestrate_system.txt").trim_ascii_end();

/// The reply format, for the protocol with native tool calls.
pub const FORM: &str = "Use the tools that you are given, one call a turn. A reply without a tool call is the final \
                        report, a JSON object and nothing else; it ends the work.";

/// Returns the system prompt for work in this directory on each branch.
pub fn system_prompt(workspace: &str) -> String {
    SYSTEM.replace("{workspace}", workspace)
}

/// The note on work that an earlier run has begun.
const BEGUN: &str = "An earlier run has begun this work: `begun` has its branches, which you may read. Go on from \
                     the last one that succeeded, with the next step of the workflow.";

/// Returns the first messages of the conversation: the task, the start branch, the project and the workspace, as JSON,
/// and the work that an earlier run has begun, if any.
pub fn initial_messages(
    task: &str,
    [branch, project, workspace]: [&str; 3],
    begun: Option<Value>,
) -> Vec<HistoryMessage> {
    let mut first = json!({"task": task, "parent_branch_id": branch, "project_name": project,
        "workspace_dir": workspace});
    if let Some(begun) = begun {
        first["begun"] = begun;
        first["note"] = BEGUN.into();
    }
    vec![HistoryMessage::tagged(first.to_string())]
}

#[cfg(test)]
mod tests {
    use strum::VariantArray as _;

    use super::super::branches::{REVIEW_LOG, Specialist, WORKLOG, in_workspace};
    use super::super::report::FinalReport;
    use super::super::specialists::MAX_REVIEWS;
    use super::super::tools::{EXECUTE_AGENT, READ_ARTIFACT};
    use super::*;
    use crate::agent::conversation::as_text;

    #[test]
    fn the_prompt_speaks_of_what_there_is() {
        let prompt = system_prompt("/home/pan/workspace");
        for tool in [&EXECUTE_AGENT, &READ_ARTIFACT] {
            assert!(prompt.contains(&format!("- `{}` ", tool.name)));
            let mut words = prompt
                .split('`')
                .filter(|word| word.ends_with("_branch_id"));
            assert!(words.all(|word| {
                EXECUTE_AGENT
                    .parameters
                    .iter()
                    .any(|known| known.name == word)
            }));
        }
        for agent in Specialist::VARIANTS {
            assert!(prompt.contains(&format!("- `{}` is ", agent.into_str())));
        }
        for file in [WORKLOG, REVIEW_LOG] {
            let path = in_workspace("/home/pan/workspace", file);
            assert!(prompt.contains(&format!("`{path}`")), "{path}");
        }
        assert!(prompt.contains(&format!("at most {MAX_REVIEWS} reviews")));
        for said in [
            "- P0: ",
            "- P1: ",
            "`VERDICT: CLEAN`",
            "`VERDICT: ISSUES`",
            "word for word",
        ] {
            assert!(prompt.contains(said), "{said}");
        }
        let report = prompt.lines().find(|line| line.starts_with('{')).unwrap();
        assert!(FinalReport::read(report).is_ok());
        assert!(!prompt.contains("{workspace}"));
    }

    #[test]
    fn the_conversation_begins_with_the_task_as_json() {
        let messages = initial_messages("say \"hi\"\n", ["b0", "demo", "/w"], None);
        let sent = as_text(&messages);
        assert_eq!(
            sent[0].to_string(),
            r#"{"task":"say \"hi\"\n","parent_branch_id":"b0","project_name":"demo","workspace_dir":"/w"}"#
        );
    }
}
