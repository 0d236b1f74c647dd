//! A project in which plans are made and carried out, with a separate home and a scripted Ollama server.

use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::project::{Finished, given, piped};
use super::{Answer, ModelServer, TestProject, in_terminal, ollama};

/// The model of all stages by default.
pub const MODEL: &str = "local";

/// Returns a complete answer with this text, streamed in small pieces.
pub fn said(text: impl AsRef<str>) -> Answer {
    Answer::lines(&ollama(text.as_ref()))
}

/// Returns a server that has the models and gives these answers.
pub fn serving(answers: impl IntoIterator<Item = Answer>) -> ModelServer {
    let models = [
        MODEL,
        "qwen2.5-coder:7b",
        "qwen2.5-coder:32b",
        "llama3.1:8b",
    ];
    ModelServer::with_models(&models, answers)
}

/// Returns a task list: each task, and its tool.
pub fn tasks(tasks: &[(&str, &str)]) -> String {
    let tasks = tasks.iter().zip(1..).map(|((description, tool), step)| {
        json!({"step": step, "description": description, "tool": tool, "params": {}})
    });
    json!({"task_list": tasks.collect::<Vec<_>>()}).to_string()
}

/// Returns a task list with acceptance criteria.
pub fn tasks_with_criteria(list: &[(&str, &str)], criteria: &[&str]) -> String {
    let mut list: Value = serde_json::from_str(&tasks(list)).unwrap();
    list["acceptance_criteria"] = json!(criteria);
    list.to_string()
}

/// Returns a reply that calls these tools.
pub fn calls(calls: &[(&str, Value)]) -> String {
    let calls = calls.iter();
    let calls = calls.map(|(name, parameters)| json!({"name": name, "parameters": parameters}));
    json!({"tool_calls": calls.collect::<Vec<_>>()}).to_string()
}

/// Returns a reply that writes a file.
pub fn write(path: &str, content: &str) -> String {
    calls(&[("write_file", json!({"file_path": path, "content": content}))])
}

/// Returns a reply that ends the step.
pub fn response(words: &str) -> String {
    json!({ "response": words }).to_string()
}

/// Returns a log entry.
pub fn summary(result: &str) -> String {
    summary_with_updates(result, &[])
}

/// Returns a log entry that marks these criteria as met.
pub fn summary_with_updates(result: &str, completed: &[&str]) -> String {
    let completed = completed.iter();
    let completed = completed.map(|text| json!({"description": text, "completed": true}));
    json!({
        "log_entry": {"action": "Did the work", "details": "All of it", "result": result, "tools_used": []},
        "acceptance_criteria_updates": completed.collect::<Vec<_>>(),
        "decisions_made": [],
    })
    .to_string()
}

/// A project in which plans are carried out.
pub struct PlanProject {
    pub project: TestProject,
    pub home: TempDir,
}

impl PlanProject {
    /// Creates a project that uses this server, with a build.sh that passes.
    pub fn new(server: &ModelServer) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
        let project = TestProject::new()
            .without("agent-config/query.txt")
            .without("agent-config/codeRollup.txt")
            .variable("HOME", home.path().to_str().unwrap())
            .variable("OLLAMA_AGENT_HOME", &path("agent"))
            .variable("OLLAMA_HOST", &server.url().replace("http://", ""));
        let models = json!({
            "models": {MODEL: {"provider": "ollama", "contextWindow": 16384}},
            "selectionRules": {"byTaskType": {"planning": MODEL, "coding": MODEL, "summarization": MODEL}},
        });
        Self { project, home }.with_file("agent-config/models.json", &models.to_string())
    }

    /// Creates a project whose server has the models, and gives these texts.
    pub fn scripted<T: AsRef<str>>(texts: &[T]) -> (Self, ModelServer) {
        let server = serving(texts.iter().map(|text| said(text.as_ref())));
        (Self::new(&server), server)
    }

    pub fn with_file(mut self, path: &str, content: &str) -> Self {
        self.project = self.project.file(path, content);
        self
    }

    /// Sets a prompt window of this many tokens, and adds another model with this entry.
    pub fn with_window(self, prompt: u64, name: &str, entry: &Value) -> Self {
        let models = json!({
            "models": {
                MODEL: {"provider": "ollama", "numCtx": prompt + 1000, "maxOutputTokens": 1000},
                name: entry,
            },
            "selectionRules": {"byTaskType": {"planning": MODEL, "coding": MODEL, "summarization": MODEL}},
        });
        self.with_file("agent-config/models.json", &models.to_string())
    }

    pub fn with_build(mut self, body: &str) -> Self {
        self.project = self.project.build(body);
        self
    }

    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.project = self.project.variable(name, value);
        self
    }

    /// Returns a path in the agent's home.
    pub fn home(&self, path: &str) -> PathBuf {
        self.home.path().join("agent").join(path)
    }

    /// Returns `code-commit plan` with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let all: Vec<&str> = std::iter::once("plan")
            .chain(arguments.iter().copied())
            .collect();
        self.project.command(&all)
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        let output = self.command(arguments).output().unwrap();
        Finished::new(&self.project, arguments, output)
    }

    /// Runs `plan -p` with this request.
    pub fn work(&self, request: &str) -> Finished {
        self.run(&["-p", request])
    }

    /// Runs with this standard input, which is not a terminal.
    pub fn typed(&self, arguments: &[&str], input: &str) -> Finished {
        let output = given(self.spawn(arguments), input);
        Finished::new(&self.project, arguments, output)
    }

    /// Starts with a pipe as standard input.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        piped(self.command(arguments))
    }

    /// Runs in a terminal. Types the second of each pair once the first is visible. Returns all output and the exit
    /// code; `None` if no terminal can be created.
    pub fn in_terminal(&self, arguments: &str, typed: &[(&str, &str)]) -> Option<(String, i32)> {
        let arguments = shlex::split(arguments).unwrap();
        let arguments = arguments.iter().map(String::as_str).chain(["--plain"]);
        let arguments: Vec<&str> = arguments.collect();
        let (shown, code) = in_terminal(&self.command(&arguments), 120, typed)?;
        Some((console::strip_ansi_codes(&shown).into_owned(), code))
    }

    /// Returns the folders of the sessions, the oldest first.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.home("sessions"))
            .into_iter()
            .flatten();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| path.join("session.json").is_file())
            .collect();
        let started = |path: &PathBuf| {
            let session = std::fs::read(path.join("session.json")).unwrap();
            let session: Value = serde_json::from_slice(&session).unwrap();
            session["startedAt"].as_u64().unwrap()
        };
        paths.sort_by_key(|path| (started(path), path.clone()));
        paths
    }

    /// Returns a file from the latest session's folder.
    pub fn kept(&self, name: &str) -> String {
        let path = self.sessions().pop().unwrap().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the latest session's plan.
    pub fn document(&self) -> String {
        self.kept("plan_doc.md")
    }

    /// Returns the latest session's `session.json`.
    pub fn session(&self) -> Value {
        serde_json::from_str(&self.kept("session.json")).unwrap()
    }
}

/// Returns the n-th query to the model; earlier requests list the models.
pub fn query(server: &ModelServer, nth: usize) -> Value {
    let requests = server.requests();
    let mut chats = requests
        .iter()
        .filter(|request| request.line.starts_with("POST /api/chat "));
    chats
        .nth(nth)
        .unwrap_or_else(|| panic!("no query {nth}"))
        .json()
}

/// Returns the number of queries to the model.
pub fn queries(server: &ModelServer) -> usize {
    let requests = server.requests();
    let chats = requests
        .iter()
        .filter(|request| request.line.starts_with("POST /api/chat "));
    chats.count()
}

/// Returns the roles and texts of the n-th query's messages after the system messages.
pub fn conversation(server: &ModelServer, nth: usize) -> Vec<(String, String)> {
    let query = query(server, nth);
    let messages = query["messages"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    messages
        .map(|message| (text(&message["role"]), text(&message["content"])))
        .filter(|(role, _)| role != "system")
        .collect()
}

/// Returns the last message of the n-th query.
pub fn last_told(server: &ModelServer, nth: usize) -> String {
    conversation(server, nth).pop().unwrap().1
}

/// Returns the system messages of the n-th query.
pub fn system(server: &ModelServer, nth: usize) -> Vec<String> {
    let query = query(server, nth);
    let messages = query["messages"].as_array().unwrap().iter();
    messages
        .filter(|message| message["role"] == "system")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}
