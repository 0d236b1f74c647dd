//! The claims of the page on the plan agent: a newcomer's commands, the edited plan, and the recorded run.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use tempfile::TempDir;

use crate::docs::{blocks, commands, document, root, stable};
use crate::support::{Answer, ModelServer, ollama, write_program};

/// A newcomer's home, with the fixture's project in it.
struct Newcomer {
    home: TempDir,
    /// The directory in which `ollama` is found.
    programs: TempDir,
}

impl Newcomer {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            programs: tempfile::tempdir().unwrap(),
        }
    }

    /// Runs a line in a shell, in this directory.
    fn types(&self, directory: &Path, line: &str, variables: &[(&str, &str)]) -> Output {
        let program = Path::new(assert_cmd::cargo::cargo_bin!("code-commit"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = [self.programs.path(), program.parent().unwrap()].map(Path::to_path_buf);
        let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)));
        let output = Command::new("sh")
            .args(["-c", line])
            .current_dir(directory)
            .env_clear()
            .env("PATH", path.unwrap())
            .env("HOME", self.home.path())
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        assert!(output.status.success(), "{line}\n{output:?}");
        output
    }
}

/// Returns the lines of the page's `nth` shell block.
fn typed(page: &str, nth: usize) -> Vec<String> {
    let block = format!("```sh\n{}```\n", blocks(page, "sh")[nth]);
    commands(&block).into_iter().map(str::to_owned).collect()
}

/// Returns a section of a Markdown document, with its heading.
fn section<'d>(document: &'d str, heading: &str) -> &'d str {
    let start = document.find(heading).unwrap();
    let rest = &document[start..];
    let end = rest[1..].find("\n## ").map_or(rest.len(), |end| end + 2);
    &rest[..end]
}

#[test]
fn five_commands_lead_from_a_model_to_a_reviewed_plan() {
    let page = document("docs/plan.md");
    let [llama, qwen, plan, edit, resume] = &typed(&page, 0)[..] else {
        panic!("five commands");
    };
    let newcomer = Newcomer::new();
    let project = newcomer.home.path().join("project");
    fs::create_dir(&project).unwrap();
    for file in ["greet.sh", "build.sh"] {
        fs::copy(
            root().join("fixtures/plan-demo").join(file),
            project.join(file),
        )
        .unwrap();
    }
    let script = |name: &str, body: &str| {
        let path = newcomer.programs.path().join(name);
        write_program(&path, format!("#!/bin/sh\n{body}\n"));
        path.to_str().unwrap().to_owned()
    };
    script(
        "ollama",
        "[ \"$1\" = pull ] && echo \"$2\" >>\"$HOME/pulled\"",
    );
    let editor = script("editor", "cp \"$1\" \"$HOME/shown\"");

    newcomer.types(&project, llama, &[]);
    newcomer.types(&project, qwen, &[]);
    let pulled = fs::read_to_string(newcomer.home.path().join("pulled")).unwrap();
    let pulled: Vec<&str> = pulled.lines().collect();

    let recorded = |name: &str| {
        let path = format!("fixtures/plan-demo/recorded-run/{name}-response.json");
        let reply: serde_json::Value = serde_json::from_str(&document(&path)).unwrap();
        reply["message"]["content"].as_str().unwrap().to_owned()
    };
    let describe = json!({"tool_calls": [{"name": "write_file",
        "parameters": {"file_path": "README.md", "content": "--loud shouts.\n"}}]});
    let replies = [
        recorded("0006-step"),
        recorded("0007-step"),
        describe.to_string(),
        json!({"response": "README.md describes it."}).to_string(),
        recorded("0010-summary"),
    ];
    let tags = || Answer::tags(&pulled);
    let lines = |reply: &String| Answer::lines(&ollama(reply));
    let planning = [tags(), lines(&recorded("0001-plan"))];
    let answers = planning.into_iter().chain([tags()]);
    let server = ModelServer::start(answers.chain(replies.iter().map(lines)));
    let url = server.url();
    let variables = [("OLLAMA_HOST", url.as_str()), ("EDITOR", &editor)];

    newcomer.types(&project, plan, &variables);
    newcomer.types(&project, edit, &variables);
    let mut shown = fs::read_to_string(newcomer.home.path().join("shown")).unwrap();
    assert!(
        shown.contains("\n3. [ ] Show what has changed\n"),
        "{shown}"
    );
    let edited = blocks(&page, "markdown")[0];
    for heading in ["## Acceptance Criteria", "## Tasks"] {
        let is = section(&shown, heading).to_owned();
        let is_to_be = format!("{}\n\n", section(edited, heading).trim_end());
        shown = shown.replace(&is, &is_to_be);
    }
    fs::write(project.join("PLAN.md"), shown).unwrap();
    newcomer.types(&project, resume, &variables);

    let plan = fs::read_to_string(project.join("PLAN.md")).unwrap();
    for line in [
        "**Status:** completed",
        "- [x] greet.sh greets as before",
        "- [x] All checks pass *(check: ./build.sh)*",
        "1. [-] Read greet.sh to see how it greets",
        "2. [x] Let greet.sh shout when its first argument is --loud",
        "3. [x] Describe --loud in README.md",
    ] {
        assert!(plan.lines().any(|is| is == line), "{line}\n{plan}");
    }
    assert!(project.join("README.md").exists());
    // The model that was pulled is the model that is called.
    let chats = server.requests().into_iter();
    let chats = chats.filter(|request| request.line.starts_with("POST /api/chat "));
    let asked: Vec<String> = chats
        .map(|chat| chat.json()["model"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(asked[0], pulled[0]);
    assert!(
        asked[1..].iter().all(|model| *model == pulled[1]),
        "{asked:?}"
    );
    assert_eq!(asked.len(), 6);
}

#[test]
fn the_recorded_run_shows_the_three_stages_without_a_server() {
    let page = document("docs/plan.md");
    let [copy, replay] = &typed(&page, 2)[..] else {
        panic!("two commands");
    };
    let newcomer = Newcomer::new();
    newcomer.types(root(), copy, &[]);
    let project = newcomer.home.path().join("plan-demo");
    let nobody = [("OLLAMA_HOST", "http://127.0.0.1:1")];
    let output = newcomer.types(&project, replay, &nobody);
    let [told, shown] = [output.stderr, output.stdout].map(|text| String::from_utf8(text).unwrap());
    for stage in [
        "asking  llama3.1:8b for plan 1\n",
        "asking  qwen2.5-coder:7b for step 2\n",
        "failed  build.sh",
        "passed  build.sh",
        "asking  qwen2.5-coder:7b for summary 10\n",
    ] {
        assert!(told.contains(stage), "{stage}\n{told}");
    }
    assert_eq!(stable(&shown), stable(blocks(&page, "text")[0]));
    let greeted = newcomer.types(&project, "sh greet.sh --loud Ada", &[]);
    assert_eq!(greeted.stdout, b"HELLO, ADA!\n");
}
