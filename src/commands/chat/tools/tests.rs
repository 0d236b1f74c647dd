//! Tests that every tool works under this profile's names, and that errors name the field.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::agent::AgentError;
use crate::agent::tool::ToolError;
use crate::agent::tools::command::Shell;
use crate::agent::tools::files::{Files, PathEdit, ReadAccess};
use crate::agent::tools::resolved_path::Outside;
use crate::edit::EditKind;
use crate::exec::child_env::ChildEnv;
use crate::exec::process::{Processes, SpawnOptions};
use crate::model::message::Call;
use crate::secret::Redactor;
use crate::sys::environment::SystemClock;
use crate::sys::interrupt::Interrupt;

/// A project in a temporary directory, with a log of the changes to it.
struct World {
    _dir: TempDir,
    root: PathBuf,
    done: RefCell<Vec<String>>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a.txt"), "alpha\nbeta\n").unwrap();
        fs::create_dir_all(root.join(".agent/commands")).unwrap();
        fs::write(root.join(".agent/commands/c.md"), "alpha\n").unwrap();
        Self {
            _dir: dir,
            root,
            done: RefCell::default(),
        }
    }

    fn note(&self, text: String) {
        self.done.borrow_mut().push(text);
    }

    /// Calls `work` with the tools. They cannot start commands, since no program supervises them.
    fn with_tools<R>(&self, work: impl FnOnce(ChatTools<'_, '_>) -> R) -> R {
        let clock = SystemClock::start();
        let interrupt = Interrupt::never().unwrap();
        let redactor = Redactor::default();
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
        let spawn =
            |prompt: &str| -> Result<String, AgentError> { Ok(format!("looked: {prompt}")) };
        work(ChatTools {
            access: FileAccess {
                read: ReadAccess {
                    root: &self.root,
                    outside: Outside::Refused,
                    closed: &[self.root.join(".agent/commands")],
                    interrupt: &interrupt,
                },
                files: self,
            },
            command: RunCommand {
                processes: &processes,
                patience: Duration::from_mins(2),
                shell: Shell::Full,
                output_files: &|| self.root.join("output"),
            },
            todos: &|todos| self.note(format!("{} todos", todos.len())),
            spawn: Some(&spawn),
        })
    }

    fn call(&self, name: &str, input: Value) -> Result<String, String> {
        let call = Call {
            id: "call-1".to_owned(),
            name: name.to_owned(),
            input,
            ..Call::default()
        };
        self.with_tools(|tools| {
            let tools = tools.toolbox();
            let (tool, call) = tools.resolve(&call).map_err(|failure| failure.message)?;
            let output = tool.run(&call.arguments).map(|output| output.text);
            output.map_err(|error| match error {
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
                EditKind::Write(content) => self.note(format!("{path}={content}")),
                EditKind::Remove => self.note(format!("{path} is gone")),
            }
        }
        Ok(Vec::new())
    }
}

#[test]
fn every_tool_does_its_work_by_its_name() {
    for (name, input, said, done) in [
        ("read_file", json!({"path": "a.txt"}), "alpha\nbeta\n", ""),
        (
            "list_files",
            json!({"pattern": "*.txt"}),
            "./\n└── a.txt\n",
            "",
        ),
        (
            "search_project",
            json!({"pattern": "al"}),
            "a.txt:1: alpha\n",
            "",
        ),
        (
            "write_file",
            json!({"path": "b.txt", "content": "x\n"}),
            "wrote `b.txt` (new, 1 line)",
            "b.txt=x\n",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "beta", "new_string": "x"}),
            "changed `a.txt`:\n 1 | alpha\n>2 | x",
            "a.txt=alpha\nx\n",
        ),
        (
            "replace_in_files",
            json!({"pattern": "(al)pha", "replacement": "${1}l"}),
            "replaced 1 place in 1 file:\n1 in `a.txt`",
            "a.txt=all\nbeta\n",
        ),
        (
            "delete_file",
            json!({"path": "a.txt"}),
            "removed `a.txt`",
            "a.txt is gone",
        ),
        (
            "list_background",
            json!({}),
            "There are no background processes.\n",
            "",
        ),
        (
            "update_todos",
            json!({"todos": [{"content": "a", "status": "pending", "activeForm": "b"}]}),
            "0 of 1 todo done",
            "1 todos",
        ),
        (
            "spawn_agent",
            json!({"description": "look", "prompt": "see"}),
            "looked: see",
            "",
        ),
    ] {
        let world = World::new();
        assert_eq!(world.call(name, input).as_deref(), Ok(said));
        assert_eq!(world.done.take().concat(), done, "{name}");
    }
}

#[test]
fn invalid_input_is_reported_by_field_and_nothing_is_run() {
    let world = World::new();
    for (name, input, said) in [
        (
            "write_file",
            json!({"path": "b"}),
            "write_file needs `content`",
        ),
        (
            "write_file",
            json!({"path": 1, "content": ""}),
            "`path` of write_file must be a JSON string",
        ),
        (
            "execute_command",
            json!({"command": ["ls"]}),
            "`command` of execute_command must be a JSON string",
        ),
        (
            "execute_command",
            json!({"command": "ls", "timeout_seconds": 601}),
            "`timeout_seconds` must be 600 or less, for execute_command",
        ),
        (
            "execute_command",
            json!({"command": "ls", "timeout_seconds": 0}),
            "`timeout_seconds` must be 1 or more, for execute_command",
        ),
        (
            "execute_command",
            json!({"command": " \n"}),
            "the command is empty",
        ),
        (
            "write_file",
            json!({"path": "a.txt", "content": "[redacted: a GitHub token]"}),
            "stands for a credential that was kept from you",
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "alpha", "new_string": "[redacted: a private key]"}),
            "stands for a credential that was kept from you",
        ),
        (
            "replace_in_files",
            json!({"pattern": "alpha", "replacement": "[redacted: an npm token]"}),
            "stands for a credential that was kept from you",
        ),
        (
            "read_background",
            json!({"process": "proc_aaaaaa"}),
            "proc_aaaaaa",
        ),
        (
            "kill_background",
            json!({}),
            "kill_background needs `process`",
        ),
        (
            "delete_file",
            json!({"paths": "a.txt"}),
            "delete_file takes no `paths`: did you mean `path`?",
        ),
        (
            "remove_file",
            json!({}),
            "there is no tool `remove_file`: there are read_file, list_files, search_project, write_file, edit_file, \
             replace_in_files, delete_file, execute_command, read_background, list_background, kill_background, \
             update_todos, spawn_agent",
        ),
    ] {
        let told = world.call(name, input).unwrap_err();
        assert!(told.contains(said), "{told}");
    }
    assert!(world.done.take().is_empty());
}

#[test]
fn hazards_are_shown_before_a_call_is_allowed() {
    let world = World::new();
    for (name, input, hazards) in [
        (
            "write_file",
            json!({"path": "a.txt", "content": ""}),
            &["overwrites"][..],
        ),
        ("write_file", json!({"path": "b.txt", "content": ""}), &[]),
        ("delete_file", json!({"path": "a.txt"}), &["deletes"]),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "a", "new_string": ""}),
            &[],
        ),
        ("read_file", json!({"path": "a.txt"}), &[]),
    ] {
        let call = Call {
            name: name.to_owned(),
            input,
            ..Call::default()
        };
        let found = world.with_tools(|tools| {
            let tools = tools.toolbox();
            let resolved = tools.resolve(&call).map(|(_, call)| call.hazards);
            resolved.unwrap()
        });
        assert_eq!(found, hazards, "{call:?}");
    }
}

#[test]
fn every_tool_may_be_listed_among_the_permissions() {
    let world = World::new();
    let names = |tools: ChatTools<'_, '_>| -> BTreeSet<String> {
        let toolbox = tools.toolbox();
        let names = toolbox.specs().map(|spec| spec.name.to_string());
        names.collect()
    };
    let listed = super::names().map(str::to_owned);
    assert_eq!(world.with_tools(names), listed.into());
}

#[test]
fn tools_are_of_their_categories_and_a_helper_has_no_helpers() {
    let told = |tools: Toolbox<'_>| -> Vec<String> {
        let told = tools.specs().map(|spec| {
            let streams = if spec.streams { ", streams" } else { "" };
            let asks = if spec.requires_approval() {
                ", asks"
            } else {
                ""
            };
            format!("{}: {:?}{asks}{streams}", spec.name, spec.category)
        });
        told.collect()
    };
    let world = World::new();
    let looking = [
        "read_file: File, asks",
        "list_files: File, asks",
        "search_project: Search, asks",
    ];
    let others = [
        "write_file: Edit, asks",
        "edit_file: Edit, asks",
        "replace_in_files: Search, asks",
        "delete_file: Edit, asks",
        "execute_command: Shell, asks, streams",
        "read_background: Shell, asks",
        "list_background: Shell, asks",
        "kill_background: Shell, asks",
        "update_todos: Agent",
    ];
    world.with_tools(|tools| {
        assert_eq!(told(super::looking(tools.access.read)), looking);
        let helper = ChatTools {
            spawn: None,
            ..tools
        };
        let both = [looking.as_slice(), &others].concat();
        assert_eq!(told(helper.toolbox()), both);
        let all = [both.as_slice(), &["spawn_agent: Agent"]].concat();
        assert_eq!(told(tools.toolbox()), all);
    });
}
