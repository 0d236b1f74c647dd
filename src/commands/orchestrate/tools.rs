//! The tools of the model that leads the work: running a specialist, and reading a file on a branch.
//!
//! Guarantees that no agent is started once the maximum number of reviews is reached, and that only branches of this
//! work are read.

use serde_json::json;

use super::branches::{Specialist, in_workspace};
use super::error::OrchestrateError;
use super::pantheon::failed;
use super::specialists::{FinishedBranch, MAX_REVIEWS, Specialists};
use crate::agent::tool::{
    Arguments, CallFailure, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::record::orchestration;
use crate::record::tool::Verb;
use crate::sys::numbers::counted;
use crate::sys::text::one_line;

/// The maximum length of a wrong name in a message, in characters.
const SHOWN: usize = 80;

/// The description of `execute_agent`.
pub static EXECUTE_AGENT: ToolSpec = ToolSpec::new(
    orchestration::EXECUTE_AGENT,
    "Has a specialist work on a new branch, which begins as the last one that succeeded, and returns when it is done: the \
     new branch's id, its status, and the specialist's response.",
    &[
        Parameter::new(
            "agent",
            ParameterKind::Json(r#"{"type": "string", "enum": ["claude_code", "codex"]}"#),
            "claude_code implements and fixes, codex reviews",
        ),
        Parameter::text("prompt", "All that the specialist is to know and to do"),
        Parameter::text("parent_branch_id", "The last branch that succeeded; no other one is taken. Left out, it is that")
        .optional(),
        Parameter::text("project_name", "Ignored: the project is the one of the first message")
        .optional(),
    ],
    Effect::Runs,
)
.doing(Verb::Use);

/// The description of `read_artifact`.
pub static READ_ARTIFACT: ToolSpec = ToolSpec::new(
    orchestration::READ_ARTIFACT,
    "Shows a file of a branch, such as codex_review.log after a review. At most 12 KiB are shown: of a longer file, the \
     beginning and the end.",
    &[
        Parameter::path("path", "The file; a relative path lies in the workspace")
            .example("codex_review.log"),
        Parameter::text(
            "branch_id",
            "A branch of this work. Left out, it is the last one that succeeded",
        )
        .optional(),
    ],
    Effect::Reads,
);

/// The tool `execute_agent`: has a specialist work on a new branch.
pub struct ExecuteAgent<'s, 'a>(pub &'s Specialists<'a>);

impl Tool for ExecuteAgent<'_, '_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let reviews = self.0.lineage.borrow().record.iterations;
        if reviews >= MAX_REVIEWS {
            return Err(OrchestrateError::IterationLimit(reviews).into());
        }
        let name = arguments.get("agent");
        let unknown = |_| invalid(format!("there is no agent `{name}`"));
        let agent: Specialist = name.parse().map_err(unknown)?;
        let prompt = arguments.get("prompt");
        if prompt.trim().is_empty() {
            return Err(invalid("`prompt` is blank".to_owned()));
        }
        let parent = arguments.get("parent_branch_id");
        let FinishedBranch {
            id,
            status,
            response,
        } = self.0.execute(agent, prompt, parent)?;
        Ok(ToolOutput {
            text: format!("branch {id}: {status}\n\n{response}"),
            brief: Some(format!("branch {id}: {status}")),
            data: Some(json!({"branch_id": id, "status": status, "response": response})),
            ..ToolOutput::default()
        })
    }
}

/// The tool `read_artifact`: reads a file on a branch.
pub struct ReadArtifact<'s, 'a>(pub &'s Specialists<'a>);

impl Tool for ReadArtifact<'_, '_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let path = arguments.get("path").trim();
        if path.is_empty() {
            return Err(invalid("`path` is blank".to_owned()));
        }
        let path = in_workspace(self.0.workspace, path);
        let lineage = &self.0.lineage;
        let latest = lineage.borrow().latest().to_owned();
        let branch = match arguments.get("branch_id").trim() {
            "" => latest,
            known if lineage.borrow().has(known) => known.to_owned(),
            unknown => {
                let message = format!("`{}` is no branch of this work", one_line(unknown, SHOWN));
                let hint = format!("the last branch that succeeded is `{latest}`");
                return Err(failed("unknown_branch", message, hint));
            }
        };
        let content = self.0.read(&branch, &path)?;
        let size = counted(content.len() as u64, "byte");
        let content = self.0.shown(&content);
        Ok(ToolOutput {
            brief: Some(size),
            data: Some(json!({"branch_id": branch, "path": path, "content": content})),
            ..ToolOutput::text(content)
        })
    }
}

fn invalid(problem: String) -> ToolError {
    failed(CallFailure::INVALID_ARGUMENTS, problem, "")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::scripted::{Scripted, failed_state, succeeded};
    use strum::VariantArray as _;

    use super::*;

    /// Calls a tool. Returns its data, or the code and message of its failure.
    fn call(spec: &ToolSpec, tool: &dyn Tool, input: &Value) -> Result<Value, String> {
        let checked = spec.check(input);
        match tool.run(&checked.map_err(|problem| format!("unfit: {problem}"))?) {
            Ok(output) => Ok(output.data.unwrap()),
            Err(ToolError::Failed(failure)) => Err(format!("{}: {failure}", failure.code)),
            Err(ToolError::Fatal(error)) => Err(format!("fatal: {error}")),
        }
    }

    #[test]
    fn the_agents_are_those_that_there_are() {
        let schema = EXECUTE_AGENT.schema();
        let names = Specialist::VARIANTS.iter().map(Specialist::into_str);
        assert_eq!(
            schema["properties"]["agent"]["enum"],
            json!(names.collect::<Vec<_>>())
        );
        assert_eq!(schema["required"], json!(["agent", "prompt"]));
        assert_eq!(READ_ARTIFACT.schema()["required"], json!(["path"]));
    }

    #[test]
    fn an_agent_is_started_with_the_project_that_is_configured() {
        let script = Scripted::new([succeeded("done"), failed_state("no")]);
        let specialists = script.specialists();
        let tool = ExecuteAgent(&specialists);
        let input = json!({"agent": "claude_code", "prompt": "go", "project_name": "other"});
        assert_eq!(
            call(&EXECUTE_AGENT, &tool, &input),
            Ok(json!({"branch_id": "b1", "status": "succeed", "response": "done"}))
        );
        let log = script.log.borrow().join("\n");
        assert!(
            log.contains("\nstart claude_code from b0 in demo: go\n"),
            "{log}"
        );
        let failure = call(&EXECUTE_AGENT, &tool, &input).unwrap_err();
        assert!(failure.starts_with("branch_failed: `claude_code` has failed on branch `b2`"));
    }

    #[test]
    fn calls_that_cannot_be_carried_out_start_nothing() {
        let script = Scripted::new([]);
        let specialists = script.specialists();
        let tool = ExecuteAgent(&specialists);
        for (input, expected) in [
            (json!({}), "unfit: execute_agent needs `agent`"),
            (
                json!({"agent": "codex"}),
                "unfit: execute_agent needs `prompt`",
            ),
            (
                json!({"agent": 1, "prompt": "x"}),
                "unfit: `agent` of execute_agent must be a JSON string",
            ),
            (
                json!({"agent": "claude", "prompt": "x"}),
                "unfit: `agent` is `claude`, and must be one of claude_code, codex, for execute_agent",
            ),
            (
                json!({"agent": "codex", "prompt": " \n"}),
                "invalid_arguments: `prompt` is blank",
            ),
            (
                json!({"agent": "codex", "prompt": "x", "parent_branch_id": "b9"}),
                "wrong_parent: `b9` cannot be cloned: the work goes on from the last branch that succeeded, `b0`\n\
                 hint: give `parent_branch_id` as `b0`, or leave it out",
            ),
        ] {
            assert_eq!(
                call(&EXECUTE_AGENT, &tool, &input).unwrap_err(),
                expected,
                "{input}"
            );
        }
        assert!(script.log.take().is_empty());
    }

    #[test]
    fn no_agent_is_started_after_the_last_review() {
        let answers = (0..=MAX_REVIEWS).map(|_| succeeded("clean"));
        let script = Scripted::new(answers);
        let specialists = script.specialists();
        let tool = ExecuteAgent(&specialists);
        let implement = json!({"agent": "claude_code", "prompt": "x"});
        let review = json!({"agent": "codex", "prompt": "x"});
        assert!(call(&EXECUTE_AGENT, &tool, &implement).is_ok());
        for _ in 0..MAX_REVIEWS {
            assert!(call(&EXECUTE_AGENT, &tool, &review).is_ok());
        }
        for input in [implement, review] {
            assert_eq!(
                call(&EXECUTE_AGENT, &tool, &input).unwrap_err(),
                "fatal: the iteration limit is reached: 8 reviews came back, and the work was not signed off"
            );
        }
        assert_eq!(specialists.lineage.borrow().record.branches.len(), 9);
    }

    #[test]
    fn files_are_read_from_branches_of_this_work() {
        let script = Scripted::new([]);
        script.files.replace(vec![
            ("/w/codex_review.log", "VERDICT: CLEAN sekret-key-1"),
            ("/etc/hosts", "localhost"),
        ]);
        let specialists = script.specialists();
        let tool = ReadArtifact(&specialists);
        for (input, expected) in [
            (
                json!({"path": "./codex_review.log"}),
                Ok(json!({"branch_id": "b0", "path": "/w/codex_review.log",
                    "content": "VERDICT: CLEAN [REDACTED]-1"})),
            ),
            (
                json!({"path": "/etc/hosts", "branch_id": "b0"}),
                Ok(json!({"branch_id": "b0", "path": "/etc/hosts", "content": "localhost"})),
            ),
            (
                json!({"path": "a/b.log"}),
                Err(
                    "mcp_error: `/w/a/b.log` on branch `b0` cannot be read: {\"error\":\"no such file\"}\n\
                     hint: have the agent write it as text"
                        .to_owned(),
                ),
            ),
            (
                json!({"path": "a", "branch_id": "b9"}),
                Err(
                    "unknown_branch: `b9` is no branch of this work\nhint: the last branch that succeeded is `b0`"
                        .to_owned(),
                ),
            ),
            (
                json!({"path": " "}),
                Err("invalid_arguments: `path` is blank".to_owned()),
            ),
        ] {
            assert_eq!(call(&READ_ARTIFACT, &tool, &input), expected, "{input}");
        }
    }
}
