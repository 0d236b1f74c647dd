//! Tests that every tool works under this profile's names and descriptions.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::agent::AgentError;
use crate::agent::protocol::Protocol as _;
use crate::agent::protocol::tool_calls::{CLAUDE_CODE, ToolCalls};
use crate::agent::tool::ToolError;
use crate::agent::tools::command::{AllowedCommand, Shell};
use crate::agent::tools::files::{Files, PathEdit};
use crate::agent::tools::resolved_path::Outside;
use crate::commands::plan::forms::{TaskList, WorkSummary};
use crate::commands::plan::plan_tools::PlanUpdate;
use crate::commands::plan::types::Criterion;
use crate::edit::EditKind;
use crate::exec::child_env::ChildEnv;
use crate::exec::process::{Processes, SpawnOptions};
use crate::model::message::Call;
use crate::secret::Redactor;
use crate::sys::environment::SystemClock;
use crate::sys::interrupt::Interrupt;

/// A project in a temporary directory, with a log of the tools' effects and questions.
struct World {
    _dir: TempDir,
    root: PathBuf,
    asked: RefCell<Vec<String>>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a.txt"), "alpha\n").unwrap();
        fs::create_dir(root.join("src")).unwrap();
        Self {
            _dir: dir,
            root,
            asked: RefCell::default(),
        }
    }

    fn note(&self, text: String) {
        self.asked.borrow_mut().push(text);
    }

    /// Calls `work` with the tools. They cannot start commands, since no program supervises them.
    fn with_tools<R>(&self, work: impl FnOnce(&Toolbox<'_>) -> R) -> R {
        let (clock, interrupt, redactor) = (
            SystemClock::start(),
            Interrupt::never().unwrap(),
            Redactor::default(),
        );
        let processes = RefCell::new(Processes::new(SpawnOptions {
            root: &self.root,
            program: None,
            env: ChildEnv::default(),
            clock: &clock,
            interrupt: &interrupt,
            redactor: &redactor,
            sandbox: None,
            follower: Box::new(|_| ()),
        }));
        let harmless = |command: &str| {
            self.note(format!("is {command} harmless?"));
            None::<AllowedCommand>
        };
        let command = RunCommand {
            processes: &processes,
            patience: Duration::from_mins(10),
            shell: Shell::Foreground(&harmless),
            output_files: &|| self.root.join("output"),
        };
        let tools = PlanTools {
            access: FileAccess {
                read: ReadAccess {
                    root: &self.root,
                    outside: Outside::Refused,
                    closed: &[],
                    interrupt: &interrupt,
                },
                files: self,
            },
            command,
            has_failed: &Cell::new(false),
            changes: Box::new(String::new),
            updater: self,
            user: Some(self),
        };
        work(&tools.toolbox())
    }

    fn call(&self, name: &str, input: Value) -> Result<String, String> {
        let call = Call {
            id: "call-1".to_owned(),
            name: name.to_owned(),
            input,
            ..Call::default()
        };
        self.with_tools(|tools| {
            let (tool, call) = tools.resolve(&call).map_err(|failure| failure.message)?;
            let output = tool.run(&call.arguments);
            output
                .map(|output| output.text)
                .map_err(|error| match error {
                    ToolError::Failed(problem) => problem.message,
                    ToolError::Fatal(error) => format!("fatal: {error}"),
                })
        })
    }
}

impl Files for World {
    fn apply(&self, edits: Vec<PathEdit>) -> Result<Vec<String>, ToolError> {
        for (path, edit) in edits {
            match edit {
                EditKind::Write(content) => self.note(format!("{path}: {content}")),
                EditKind::Remove => self.note(format!("{path} is gone")),
            }
        }
        Ok(Vec::new())
    }
}

impl PlanUpdater for World {
    fn update(&self, update: PlanUpdate) -> Result<String, ToolError> {
        match &update.goal {
            Some(goal) => {
                let criteria = update.acceptance_criteria.iter();
                let names: Vec<_> = criteria.map(|known| &*known.description).collect();
                self.note(format!("{goal}: {}", names.join(", ")));
            }
            None => self.note(format!("{update:?}")),
        }
        Ok("plan updated".to_owned())
    }
}

impl User for World {
    fn ask(&self, question: &str) -> Result<Option<String>, AgentError> {
        Ok(Some(question.replace("Shall I?", "no")))
    }
}

#[test]
fn every_tool_does_its_work_under_the_profiles_words() {
    for (name, input, said, asked) in [
        ("read_file", json!({"file_path": "a.txt"}), "alpha\n", ""),
        (
            "read_file",
            json!({"file_path": "a.txt", "encoding": "UTF-8"}),
            "alpha\n",
            "",
        ),
        (
            "write_file",
            json!({"file_path": "new/b.txt", "content": "x\n"}),
            "wrote `new/b.txt` (new, 1 line)",
            "new/b.txt: x\n",
        ),
        (
            "write_file",
            json!({"file_path": "src/b.txt", "content": "x\n", "create_directories": false}),
            "wrote `src/b.txt` (new, 1 line)",
            "src/b.txt: x\n",
        ),
        (
            "replace_in_file",
            json!({"file_path": "a.txt", "find": "alpha", "replace": "beta"}),
            "changed `a.txt`:\n>1 | beta",
            "a.txt: beta\n",
        ),
        ("list_files", json!({}), "./\n├── a.txt\n└── src/\n", ""),
        (
            "search_files",
            json!({"pattern": "al"}),
            "a.txt:1: alpha\n",
            "",
        ),
        ("show_diff", json!({}), "nothing was changed so far", ""),
        (
            "initialize_plan",
            json!({"goal": " Build it\n", "acceptance_criteria": [" a\nb ", "c"]}),
            "Plan initialized with 2 acceptance criteria",
            "Build it: a b, c",
        ),
        (
            "initialize_plan",
            json!({"goal": "Build it"}),
            "Plan initialized with 0 acceptance criteria",
            "Build it: ",
        ),
        ("ask_user", json!({"question": "Which?"}), "Which?", ""),
        (
            "request_approval",
            json!({"question": "yes"}),
            "the user says yes",
            "",
        ),
    ] {
        let world = World::new();
        assert_eq!(world.call(name, input).unwrap(), said);
        assert_eq!(world.asked.take().concat(), asked, "{name}");
    }
}

#[test]
fn failures_of_tools_use_the_profiles_terms() {
    for (name, input, expected) in [
        (
            "read_file",
            json!({"file_path": "a.txt", "encoding": "latin1"}),
            "files are read as utf-8 alone, not as `latin1`",
        ),
        (
            "read_file",
            json!({"file_path": "b.txt"}),
            "`b.txt` does not exist; `.` holds `a.txt`",
        ),
        (
            "read_file",
            json!({"path": "a.txt"}),
            "read_file takes no `path`: did you mean `file_path`?",
        ),
        (
            "read_file",
            json!({"file_path": "a.txt", "lines": "1-2"}),
            "read_file takes no `lines`",
        ),
        (
            "write_file",
            json!({"file_path": "new/b.txt", "content": "", "create_directories": false}),
            "the directory of `new/b.txt` does not exist, and `create_directories` is false",
        ),
        (
            "write_file",
            json!({"file_path": "../b", "content": ""}),
            "leads out of the project",
        ),
        (
            "replace_in_file",
            json!({"file_path": "a.txt", "find": "", "replace": ""}),
            "`find` is empty",
        ),
        (
            "shell_exec",
            json!({"command": " "}),
            "the command is empty",
        ),
        ("initialize_plan", json!({"goal": " "}), "the goal is blank"),
        (
            "initialize_plan",
            json!({"goal": "a", "acceptance_criteria": [""]}),
            "a criterion is blank",
        ),
        ("update_plan", json!({}), "nothing is to be changed"),
        ("update_plan", json!({"goal": "\n"}), "the goal is blank"),
        (
            "update_plan",
            json!({"decisions_made": [{"title": "a"}]}),
            "`decisions_made[0]` needs `rationale`, for update_plan",
        ),
        (
            "update_plan",
            json!({"decisions_made": [{"title": "a", "rationale": " "}]}),
            "is blank, where it is to say something",
        ),
        (
            "request_approval",
            json!({"question": "Shall I?"}),
            "fatal: User rejected: Shall I?",
        ),
    ] {
        let world = World::new();
        let problem = world.call(name, input).unwrap_err();
        assert!(problem.contains(expected), "{name}: {problem}");
        assert!(world.asked.take().is_empty(), "{name}");
    }
}

#[test]
fn a_plan_is_told_what_has_changed() {
    let world = World::new();
    let input = json!({"acceptance_criteria": [{"description": "a\nb"}, {"description": "c", "completed": true}],
        "decisions_rejected": [{"title": "bcrypt", "rationale": "slow", "alternatives": ["scrypt", " "]}]});
    assert_eq!(world.call("update_plan", input).unwrap(), "plan updated");
    let criterion = |description: &str, completed| Criterion {
        description: description.to_owned(),
        completed,
        notes: String::new(),
    };
    let rejected = serde_json::from_value(json!(
        {"title": "bcrypt", "rationale": "slow", "alternatives": ["scrypt"]}
    ));
    let expected = PlanUpdate {
        acceptance_criteria: vec![criterion("a b", false), criterion("c", true)],
        decisions_rejected: vec![rejected.unwrap()],
        ..PlanUpdate::default()
    };
    assert_eq!(world.asked.take(), [format!("{expected:?}")]);
}

#[test]
fn a_long_file_is_read_on_by_a_command() {
    let world = World::new();
    fs::write(world.root.join("long"), "x\n".repeat(40_000)).unwrap();
    let said = world
        .call("read_file", json!({"file_path": "long"}))
        .unwrap();
    let first = said.lines().next().unwrap();
    assert!(
        first.contains("read on with a command, such as `tail -n +"),
        "{first}"
    );
}

#[test]
fn a_command_that_is_known_to_be_harmless_needs_no_shell() {
    let world = World::new();
    let problem = world
        .call("shell_exec", json!({"command": "git status"}))
        .unwrap_err();
    assert!(problem.starts_with("fatal: "), "{problem}");
    assert_eq!(world.asked.take(), ["is git status harmless?"]);
}

/// Finds the places where a schema sets no limit or allows unknown fields.
fn loose_ends(schema: &Value, at: &str, found: &mut Vec<String>) {
    let is_bounded = match schema["type"].as_str() {
        Some("string") => schema["maxLength"].is_u64() || schema["enum"].is_array(),
        Some("array") => schema["maxItems"].is_u64(),
        Some("object") => schema["additionalProperties"] == false,
        Some(_) => true,
        None => schema["anyOf"].is_array(),
    };
    if !is_bounded {
        found.push(at.to_owned());
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        loose_ends(below, &format!("{at}/{name}"), found);
    }
    for below in schema["anyOf"].as_array().into_iter().flatten() {
        loose_ends(below, at, found);
    }
    if !schema["items"].is_null() {
        loose_ends(&schema["items"], at, found);
    }
}

#[test]
fn files_contents_alone_have_no_end_in_the_schemas() {
    let world = World::new();
    let format = ToolCalls {
        are_words_tagged: false,
        keys: &CLAUDE_CODE,
        format: "",
        examples: "",
        no_tools: NO_TOOLS,
    };
    let (step, plan) = world.with_tools(|tools| {
        let plan = TaskList::protocol(tools).schema;
        (format.offer(tools).form.schema.unwrap(), plan)
    });
    let mut found = Vec::new();
    for (name, schema) in [
        ("step", step),
        ("plan", plan),
        ("summary", WorkSummary::protocol().schema),
    ] {
        loose_ends(&schema, name, &mut found);
    }
    let parameter = |name: &str| format!("step/tool_calls/parameters/{name}");
    assert_eq!(found, ["content", "find", "replace"].map(parameter));
}
