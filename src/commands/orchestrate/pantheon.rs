//! Branches on a Pantheon server, accessed through its tools.

use serde_json::{Value, json};

use super::branches::{BranchProgress, BranchState, Specialist};
use crate::agent::mcp::{McpError, McpTools, Repeat, ToolDescription};
use crate::agent::tool::{CallFailure, ToolError};
use crate::secret::Redactor;
use crate::sys::text::one_line;

/// The tools that the server must provide.
pub const TOOLS: [&str; 3] = [EXPLORE, GET_BRANCH, READ_FILE];

const EXPLORE: &str = "parallel_explore";
const GET_BRANCH: &str = "get_branch";
const READ_FILE: &str = "branch_read_file";
/// A tool of some servers that returns an agent's response.
const OUTPUT: &str = "branch_output";

/// The statuses that the server reports for an agent that has succeeded, in lower case.
const SUCCEEDED: [&str; 4] = ["succeed", "finished", "ready_for_manifest", "manifesting"];
const FAILED: &str = "failed";

/// JSON pointers to an agent's response; the first one that leads to text is used.
const OUTPUTS: [&str; 3] = ["/output", "/latest_snap/output", "/manifest/summary"];

/// JSON pointers to a file's content; the first one that exists is used.
const CONTENTS: [&str; 5] = [
    "/content",
    "/file_content",
    "/text",
    "/data",
    "/file/content",
];

/// The maximum length of a server's answer in a message, in characters.
const SHOWN: usize = 500;

/// JSON pointers to the id of a branch's last snapshot; the first one that leads to text is used.
const SNAPSHOTS: [&str; 2] = ["/latest_snap_id", "/latest_snap/id"];

/// The state of a branch before it was cloned. The clone shows this state until its agent has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParentState {
    snapshot: String,
    status: String,
}

/// A client for the branches on a Pantheon server.
pub struct Pantheon<'a> {
    /// The server.
    pub tools: &'a dyn McpTools,
    /// Redacts known keys.
    pub redactor: &'a Redactor,
    /// The arguments besides the branch for the server's tool that returns an agent's response; `None` if there is no
    /// such tool.
    pub output: Option<Value>,
}

impl Pantheon<'_> {
    /// Finds the tool for an agent's response among those of the server. Returns its additional arguments.
    pub fn output_tool(tools: &[ToolDescription]) -> Option<Value> {
        let tool = tools.iter().find(|tool| tool.name == OUTPUT)?;
        let full = tool.whole.pointer("/inputSchema/properties/full_output");
        Some(full.map_or(json!({}), |_| json!({"full_output": true})))
    }

    /// Starts an agent on a new branch of `project`, cloned from `parent`. Returns the new branch's id. The call is not
    /// repeated if the server may have begun to process it.
    ///
    /// # Errors
    /// Fails if no agent was started, or it is unknown whether one was.
    pub fn start(
        &self,
        agent: Specialist,
        prompt: &str,
        parent: &str,
        project: &str,
    ) -> Result<String, ToolError> {
        let arguments = json!({"project_name": project, "parent_branch_id": parent,
            "shared_prompt_sequence": [prompt], "num_branches": 1, "agent": agent.into_str()});
        let answer = self.call(EXPLORE, arguments, Repeat::UnlessBegun)?;
        let id = id_in(&answer).map(str::to_owned);
        id.ok_or_else(|| {
            let said = one_line(&self.redactor.json(&answer).to_string(), SHOWN);
            let message = format!("`{EXPLORE}` has named no new branch; it says: {said}");
            failed(MCP_ERROR, message, MAY_BE_AT_WORK)
        })
    }

    /// Returns the state of the agent on a branch. `parent` is the state of the branch from which it was cloned, if
    /// known.
    ///
    /// # Errors
    /// Fails if the server does not report the state.
    pub fn state(
        &self,
        branch: &str,
        parent: Option<&ParentState>,
    ) -> Result<BranchState, ToolError> {
        let mut arguments = json!({"branch_id": branch});
        let answer = self.call(GET_BRANCH, arguments.clone(), Repeat::Always)?;
        let mut state = state_in(answer, parent);
        if let (Some(Value::Object(further)), false) = (
            self.output.clone(),
            state.progress == BranchProgress::Running,
        ) {
            if let Some(arguments) = arguments.as_object_mut() {
                arguments.extend(further);
            }
            match self.call(OUTPUT, arguments, Repeat::Always) {
                Ok(answer) if answer.is_string() => state.output = text_of(answer),
                Ok(answer) => state.output = output_in(answer),
                Err(ToolError::Failed(_)) => {}
                Err(fatal) => return Err(fatal),
            }
        }
        Ok(state)
    }

    /// Returns the state of a branch that is about to be cloned; `None` if the server does not report its snapshot.
    ///
    /// # Errors
    /// Fails only with errors that end the work.
    pub fn parent(&self, branch: &str) -> Result<Option<ParentState>, ToolError> {
        let arguments = json!({"branch_id": branch});
        match self.call(GET_BRANCH, arguments, Repeat::Always) {
            Ok(answer) => {
                let answer = inner(answer);
                let snapshot = snapshot_in(&answer).map(str::to_owned);
                let status = status_in(&answer);
                Ok(snapshot.map(|snapshot| ParentState { snapshot, status }))
            }
            Err(ToolError::Failed(_)) => Ok(None),
            Err(fatal) => Err(fatal),
        }
    }

    /// Reads a file on a branch.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(&self, branch: &str, path: &str) -> Result<String, ToolError> {
        let arguments = json!({"branch_id": branch, "file_path": path});
        let answer = self.call(READ_FILE, arguments, Repeat::Always)?;
        content_of(answer).map_err(|problem| {
            let message = format!("`{path}` on branch `{branch}` cannot be read: {problem}");
            failed(MCP_ERROR, message, "have the agent write it as text")
        })
    }

    fn call(&self, tool: &str, arguments: Value, repeat: Repeat) -> Result<Value, ToolError> {
        self.tools.call(tool, arguments, repeat).map_err(tool_error)
    }
}

/// The hint if the server did not return a new branch.
pub(super) const MAY_BE_AT_WORK: &str =
    "an agent may be at work all the same, on a branch that is not known";
/// The code of failures reported by the server.
const MCP_ERROR: &str = "mcp_error";

/// Converts a server error. Most are reported to the model, but a lost connection or a signal ends the work.
fn tool_error(error: McpError) -> ToolError {
    if error.is_lost() {
        return error.into();
    }
    failed(MCP_ERROR, error.to_string(), "")
}

/// Creates a failure that is reported to the model.
pub(super) fn failed(
    code: &'static str,
    message: impl Into<String>,
    hint: impl Into<String>,
) -> ToolError {
    ToolError::Failed(CallFailure::new(code, message, hint))
}

/// Returns the new branch's id: at the top level, in `branch`, or in the first of `branches`.
fn id_in(answer: &Value) -> Option<&str> {
    let places = [answer, &answer["branch"], &answer["branches"][0]];
    let ids = places
        .into_iter()
        .flat_map(|place| [&place["branch_id"], &place["id"]]);
    let mut ids = ids.filter_map(Value::as_str).map(str::trim);
    ids.find(|id| !id.is_empty())
}

/// Returns the state in an answer. Large texts are moved, not copied.
fn state_in(answer: Value, parent: Option<&ParentState>) -> BranchState {
    let answer = inner(answer);
    let status = status_in(&answer);
    let word = status.to_ascii_lowercase();
    let is_success = SUCCEEDED.contains(&&*word);
    let is_old = |parent: &ParentState| {
        snapshot_in(&answer) == Some(&parent.snapshot)
            && (is_success || status.eq_ignore_ascii_case(&parent.status))
    };
    let progress = match &*word {
        _ if is_parents(&answer) || parent.is_some_and(is_old) => BranchProgress::Running,
        FAILED => BranchProgress::Failed,
        _ if is_success => BranchProgress::Succeeded,
        _ => BranchProgress::Running,
    };
    BranchState {
        status,
        progress,
        output: output_in(answer),
    }
}

/// Returns the branch in an answer, which is at the top level or in `branch`.
fn inner(mut answer: Value) -> Value {
    if answer.get("status").is_some() {
        return answer;
    }
    let branch = answer.get_mut("branch").map(Value::take);
    branch.unwrap_or(answer)
}

fn status_in(branch: &Value) -> String {
    let status = branch["status"].as_str().unwrap_or_default();
    status.trim().to_owned()
}

fn snapshot_in(branch: &Value) -> Option<&str> {
    let mut found = SNAPSHOTS
        .iter()
        .filter_map(|place| branch.pointer(place)?.as_str());
    found.find(|id| !id.is_empty())
}

/// Returns an agent's response, which is in one of the known fields.
fn output_in(mut answer: Value) -> String {
    let mut outputs = OUTPUTS.iter().filter_map(|place| {
        let output = text_of(answer.pointer_mut(place)?.take());
        (!output.trim().is_empty()).then_some(output)
    });
    outputs.next().unwrap_or_default()
}

/// Returns `true` if the state is still that of the parent, with which a new branch starts.
fn is_parents(state: &Value) -> bool {
    let (snap, parent) = (&state["latest_snap_id"], &state["parent_id"]);
    !snap.is_null() && snap == parent
}

/// Returns a file's content: the first of the known fields, or else the answer itself.
///
/// # Errors
/// Returns a description of the problem.
fn content_of(mut answer: Value) -> Result<String, String> {
    if !answer["error"].is_null() || answer["status"] == "error" {
        return Err(one_line(&answer.to_string(), SHOWN));
    }
    if let Some(encoding) = answer["encoding"].as_str().filter(|name| !is_text(name)) {
        return Err(format!("it is encoded as {}", one_line(encoding, SHOWN)));
    }
    let found = CONTENTS
        .iter()
        .find(|place| answer.pointer(place).is_some());
    match found.and_then(|place| answer.pointer_mut(place)) {
        Some(Value::String(content)) => Ok(std::mem::take(content)),
        Some(other) => Err(format!(
            "its content is {}",
            one_line(&other.to_string(), SHOWN)
        )),
        // Without a known field, the answer is the file itself, which may be JSON.
        None => Ok(text_of(answer)),
    }
}

fn is_text(encoding: &str) -> bool {
    ["utf-8", "utf8", "text", ""]
        .iter()
        .any(|text| encoding.eq_ignore_ascii_case(text))
}

/// Converts a value to text: a string unchanged, `null` to an empty text, and anything else to JSON.
fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::LazyLock;

    use super::*;
    use crate::sys::interrupt::Interrupted;

    /// A server that answers once, and records the request.
    struct Answer {
        answer: RefCell<Option<Result<Value, McpError>>>,
        asked: RefCell<Option<(String, Value, Repeat)>>,
    }

    impl Answer {
        fn new(answer: Result<Value, McpError>) -> Self {
            Self {
                answer: RefCell::new(Some(answer)),
                asked: RefCell::default(),
            }
        }
    }

    impl McpTools for Answer {
        fn call(&self, tool: &str, arguments: Value, repeat: Repeat) -> Result<Value, McpError> {
            self.asked
                .replace(Some((tool.to_owned(), arguments, repeat)));
            self.answer.take().unwrap()
        }
    }

    fn pantheon(tools: &Answer) -> Pantheon<'_> {
        static NO_KEYS: LazyLock<Redactor> = LazyLock::new(Redactor::default);
        Pantheon {
            tools,
            redactor: &NO_KEYS,
            output: None,
        }
    }

    fn start(server: &Answer) -> Result<String, ToolError> {
        pantheon(server).start(Specialist::Codex, "review it", "b0", "demo")
    }

    #[test]
    fn tools_are_called_with_what_they_take() {
        let server = Answer::new(Ok(json!({"branch_id": "b1"})));
        assert_eq!(start(&server).unwrap(), "b1");
        let explore = json!({"project_name": "demo", "parent_branch_id": "b0",
            "shared_prompt_sequence": ["review it"], "num_branches": 1, "agent": "codex"});
        let asked = ("parallel_explore".to_owned(), explore, Repeat::UnlessBegun);
        assert_eq!(server.asked.take(), Some(asked));

        let server = Answer::new(Ok(json!({"status": "running"})));
        let tools = &server;
        pantheon(tools).state("b1", None).unwrap();
        let asked = (
            "get_branch".to_owned(),
            json!({"branch_id": "b1"}),
            Repeat::Always,
        );
        assert_eq!(server.asked.take(), Some(asked));

        let server = Answer::new(Ok("text".into()));
        let tools = &server;
        assert_eq!(pantheon(tools).read("b1", "/w/a.log").unwrap(), "text");
        let read = json!({"branch_id": "b1", "file_path": "/w/a.log"});
        let asked = ("branch_read_file".to_owned(), read, Repeat::Always);
        assert_eq!(server.asked.take(), Some(asked));
    }

    #[test]
    fn the_new_branch_is_found_where_servers_put_it() {
        for (answer, expected) in [
            (json!({"branch_id": "a", "id": "b"}), Some("a")),
            (json!({"id": " b ", "branch": {"id": "c"}}), Some("b")),
            (json!({"branch": {"branch_id": "c"}}), Some("c")),
            (json!({"branch": {"id": "c"}}), Some("c")),
            (
                json!({"branches": [{"branch_id": "d"}, {"id": "e"}]}),
                Some("d"),
            ),
            (json!({"branches": [{"id": "d"}]}), Some("d")),
            (
                json!({"branch_id": "", "branches": [{"id": "d"}]}),
                Some("d"),
            ),
            (json!({"branches": []}), None),
            (json!({"branch_id": 7}), None),
            (json!("started"), None),
            (json!([]), None),
            (Value::Null, None),
        ] {
            assert_eq!(id_in(&answer), expected, "{answer}");
        }
        let server = Answer::new(Ok(json!({"message": "queued"})));
        match start(&server) {
            Err(ToolError::Failed(failure)) => assert_eq!(
                failure.message,
                "`parallel_explore` has named no new branch; it says: {\"message\":\"queued\"}"
            ),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn states_are_distinguished() {
        use BranchProgress::{Failed, Running, Succeeded};
        for (answer, status, progress, output) in [
            (
                json!({"status": "succeed", "output": "a"}),
                "succeed",
                Succeeded,
                "a",
            ),
            (
                json!({"status": "finished", "output": " ", "latest_snap": {"output": "b"}}),
                "finished",
                Succeeded,
                "b",
            ),
            (
                json!({"status": "ready_for_manifest", "latest_snap": null, "manifest": {"summary": "c"}}),
                "ready_for_manifest",
                Succeeded,
                "c",
            ),
            (
                json!({"status": "manifesting"}),
                "manifesting",
                Succeeded,
                "",
            ),
            (
                json!({"status": "failed", "output": {"error": 1}}),
                "failed",
                Failed,
                "{\"error\":1}",
            ),
            (
                json!({"branch": {"status": "succeed", "output": "d"}}),
                "succeed",
                Succeeded,
                "d",
            ),
            // The new branch has no results yet.
            (
                json!({"status": "succeed", "latest_snap_id": "s0", "parent_id": "s0", "output": "old"}),
                "succeed",
                Running,
                "old",
            ),
            (
                json!({"status": "succeed", "latest_snap_id": "s1", "parent_id": "s0"}),
                "succeed",
                Succeeded,
                "",
            ),
            (
                json!({"status": "succeed", "latest_snap_id": null, "parent_id": null}),
                "succeed",
                Succeeded,
                "",
            ),
            (json!({"status": "SUCCEED"}), "SUCCEED", Succeeded, ""),
            (json!({"status": "Failed"}), "Failed", Failed, ""),
            (json!({"status": "pending"}), "pending", Running, ""),
            (json!({"status": 3}), "", Running, ""),
            (json!({}), "", Running, ""),
            (json!("busy"), "", Running, ""),
        ] {
            let expected = BranchState {
                status: status.to_owned(),
                progress,
                output: output.to_owned(),
            };
            assert_eq!(state_in(answer.clone(), None), expected, "{answer}");
        }
    }

    #[test]
    fn the_snapshot_that_was_there_is_no_end() {
        use BranchProgress::{Failed, Running, Succeeded};
        let state = json!({"branch": {"status": "succeed", "latest_snap": {"id": "s0"}}});
        let parent = pantheon(&Answer::new(Ok(state))).parent("b0").unwrap();
        for (answer, progress) in [
            (
                json!({"status": "succeed", "latest_snap_id": "s0"}),
                Running,
            ),
            (
                json!({"status": "Finished", "latest_snap_id": "s0"}),
                Running,
            ),
            (
                json!({"branch": {"status": "succeed", "latest_snap": {"id": "s0"}}}),
                Running,
            ),
            (
                json!({"status": "succeed", "latest_snap_id": "s1"}),
                Succeeded,
            ),
            (json!({"status": "succeed"}), Succeeded),
            // An agent that fails immediately leaves no snapshot.
            (json!({"status": "failed", "latest_snap_id": "s0"}), Failed),
        ] {
            let state = state_in(answer.clone(), parent.as_ref());
            assert_eq!(state.progress, progress, "{answer}");
        }
        let failed = McpError::Tool("no such branch".to_owned());
        for answer in [Ok(json!({"status": "succeed"})), Err(failed)] {
            assert_eq!(pantheon(&Answer::new(answer)).parent("b0").unwrap(), None);
        }
    }

    #[test]
    fn a_response_is_that_of_the_servers_own_tool() {
        let tool = |properties| ToolDescription {
            name: OUTPUT.to_owned(),
            whole: json!({"inputSchema": {"properties": properties}}),
        };
        let full = json!({"full_output": {"type": "boolean"}});
        for (tools, expected) in [
            (vec![], None),
            (vec![tool(json!({}))], Some(json!({}))),
            (vec![tool(full)], Some(json!({"full_output": true}))),
        ] {
            assert_eq!(Pantheon::output_tool(&tools), expected);
        }
        assert_eq!(output_in(json!({"output": "said"})), "said");
    }

    #[test]
    fn a_file_is_the_answer_or_its_content() {
        for (answer, expected) in [
            (json!("VERDICT: CLEAN\n"), Ok("VERDICT: CLEAN\n")),
            (json!({"content": "x", "size": 1}), Ok("x")),
            (json!({"content": "x", "encoding": "UTF-8"}), Ok("x")),
            (json!({"file": {"content": "x"}}), Ok("x")),
            (json!({"data": "x"}), Ok("x")),
            (json!([1]), Ok("[1]")),
            (json!({"a": 1}), Ok("{\"a\":1}")),
            (Value::Null, Ok("")),
            (json!({"content": null}), Err("its content is null")),
            (
                json!({"content": "eA==", "encoding": "base64"}),
                Err("it is encoded as base64"),
            ),
            (
                json!({"error": "not found"}),
                Err("{\"error\":\"not found\"}"),
            ),
            (json!({"status": "error"}), Err("{\"status\":\"error\"}")),
        ] {
            let content = content_of(answer.clone());
            let told = content.as_deref().map_err(String::as_str);
            assert_eq!(told, expected, "{answer}");
        }
    }

    #[test]
    fn a_server_that_says_no_is_reported_to_the_model_and_one_that_is_gone_ends_the_work() {
        let signal = Interrupted::CTRL_C;
        let state = |error| {
            let server = Answer::new(Err(error));
            pantheon(&server).state("b", None).unwrap_err()
        };
        match state(McpError::Tool("no such branch".to_owned())) {
            ToolError::Failed(failure) => {
                assert_eq!(failure.code, "mcp_error");
                assert!(failure.message.contains("no such branch"));
            }
            fatal @ ToolError::Fatal(_) => panic!("{fatal:?}"),
        }
        let lost = McpError::NoAnswer {
            server: "http://localhost".to_owned(),
            reason: "refused".to_owned(),
            tries: 1,
        };
        for (error, expected) in [
            (lost, "no answer from the MCP server at `http://localhost`"),
            (signal.into(), "interrupted by SIGINT"),
        ] {
            match state(error) {
                ToolError::Fatal(error) => assert!(error.to_string().starts_with(expected)),
                failed @ ToolError::Failed(_) => panic!("{failed:?}"),
            }
        }
    }
}
