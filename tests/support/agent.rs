//! An agent's project with a separate home, and replies in the form of `# Agent Response`.

use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::project::{Finished, given, piped};
use super::{Answer, ModelServer, TestProject, within_a_minute};

/// A passing verdict.
pub const PASS: &str = "All is as it should be.\n\nOverall: PASS\nFeedback: none";

/// Returns a reply that names a tool.
pub fn reply(tool: &str, input: &str) -> String {
    format!(
        "# Agent Response\n\n## Thoughts\nOn we go.\n\n## Task List\n[~] The work\n[ ] The rest\n\n\
         ## Tool Choice\n{tool}\n\n## Tool Input\n{input}\n"
    )
}

/// Returns a reply that writes a file.
pub fn write(path: &str, content: &str) -> String {
    reply("WRITE_FILE", &format!("\"{path}\"\n\n```\n{content}```"))
}

/// Returns a reply that ends the work.
pub fn done() -> String {
    reply("DONE", "It is done.")
}

/// Returns an answer that is streamed in small pieces, after thoughts.
pub fn streamed(text: &str) -> Answer {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "c1", "object": "chat.completion.chunk", "model": "test-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let characters: Vec<char> = text.chars().collect();
    let mut events = vec![chunk(
        json!({"reasoning_content": "secret thoughts "}),
        Value::Null,
    )];
    events.extend(characters.chunks(40).map(|piece| {
        let piece: String = piece.iter().collect();
        chunk(json!({ "content": piece }), Value::Null)
    }));
    events.push(chunk(json!({}), "stop".into()));
    events.push(json!({"id": "c1", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 50}}));
    let events: String = events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    Answer::new(
        200,
        &[("content-type", "text/event-stream")],
        events + "data: [DONE]\n\n",
    )
}

/// Returns a server that streams these texts.
pub fn server<T: AsRef<str>>(texts: &[T]) -> ModelServer {
    ModelServer::start(texts.iter().map(|text| streamed(text.as_ref())))
}

/// A project in which an agent works.
pub struct AgentProject {
    pub project: TestProject,
    pub home: TempDir,
}

impl AgentProject {
    pub fn new(server: &ModelServer) -> Self {
        Self::at(&server.url())
    }

    /// Creates such a project with the model's server at `url`.
    pub fn at(url: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let project = TestProject::new()
            .variable("DEV_AGENT_HOME", home.path().to_str().unwrap())
            .variable("DEV_AGENT_API_URL", &format!("{url}/v1"))
            .variable("DEV_AGENT_MODEL", "test-model");
        Self { project, home }
    }

    /// Creates a project whose agent receives these texts as replies.
    pub fn scripted<T: AsRef<str>>(texts: &[T]) -> (Self, ModelServer) {
        let server = server(texts);
        (Self::new(&server), server)
    }

    pub fn with_file(mut self, path: &str, content: &str) -> Self {
        self.project = self.project.file(path, content);
        self
    }

    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.project = self.project.variable(name, value);
        self
    }

    /// Adds a configuration with these fields.
    pub fn configured(self, config: &Value) -> Self {
        std::fs::write(self.home("config.json"), config.to_string()).unwrap();
        self
    }

    pub fn home(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// Returns `code-commit dev` with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let all: Vec<&str> = std::iter::once("dev")
            .chain(arguments.iter().copied())
            .collect();
        self.project.command(&all)
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        let output = self.command(arguments).output().unwrap();
        Finished::new(&self.project, arguments, output)
    }

    /// Runs `dev -p` with this prompt.
    pub fn work(&self, prompt: &str) -> Finished {
        self.run(&["-p", prompt])
    }

    /// Runs with this standard input.
    pub fn typed(&self, arguments: &[&str], input: &str) -> Finished {
        let output = given(self.spawn(arguments), input);
        Finished::new(&self.project, arguments, output)
    }

    /// Starts with a pipe as standard input.
    pub fn spawn(&self, arguments: &[&str]) -> Child {
        piped(self.command(arguments))
    }

    /// Returns the only session, or the latest one.
    pub fn session(&self) -> Value {
        let path = self.session_path();
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    pub fn session_path(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.home("sessions")).unwrap();
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "json")
                    && path.file_stem().is_some_and(|stem| stem.len() == 36)
            })
            .collect();
        paths.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
        paths.pop().unwrap()
    }
}

/// Returns all text of the n-th request, including the system prompt.
pub fn told(server: &ModelServer, nth: usize) -> String {
    let request = server.requests()[nth].json();
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| format!("{}\n", message["content"].as_str().unwrap()))
        .collect()
}

/// Returns the last message of the n-th request.
pub fn last_told(server: &ModelServer, nth: usize) -> String {
    let request = server.requests()[nth].json();
    let messages = request["messages"].as_array().unwrap();
    messages.last().unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// A command that never ends by itself. It is identified by its words, since in a sandbox its process ID differs inside
/// and outside.
pub struct Endless(String);

impl Endless {
    pub fn new() -> Self {
        Self(format!("1000.{}", Uuid::new_v4().as_u128()))
    }

    /// Returns a shell command that creates the file `started` and then runs forever.
    pub fn command(&self) -> String {
        format!("echo started > started; sleep {}", self.0)
    }

    /// Waits until the command runs.
    pub fn begins(&self, agent: &AgentProject) {
        let has_begun = || agent.project.path("started").exists() && self.runs();
        assert!(within_a_minute(has_begun), "no command was started");
    }

    /// Waits for the command's end, which takes a moment after a kill; returns whether it has ended.
    pub fn ends(&self) -> bool {
        within_a_minute(|| !self.runs())
    }

    fn runs(&self) -> bool {
        let processes = std::fs::read_dir("/proc").unwrap();
        processes.flatten().any(|process| {
            let words = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let mut words = words.split(|byte| *byte == 0);
            words.any(|word| word == self.0.as_bytes())
        })
    }
}
