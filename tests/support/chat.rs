//! A project for chats, with a separate home and a server in place of Anthropic's.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::TestProject;
use super::anthropic::{Anthropic, KEY, Reply};
use super::project::{Finished, given, piped};

/// The path of a project's permissions.
pub const PERMISSIONS: &str = ".agent/permissions.json";

/// A project for chats. Its key is in the environment, unless a test removes it.
pub struct ChatProject {
    pub project: TestProject,
    pub home: TempDir,
}

impl ChatProject {
    pub fn new(server: &Anthropic) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
        let project = TestProject::new()
            .without("agent-config/query.txt")
            .without("agent-config/codeRollup.txt")
            .variable("HOME", home.path().to_str().unwrap())
            .variable("AGENT_HOME", &path("agent"))
            .variable("ANTHROPIC_BASE_URL", &server.url())
            .variable("ANTHROPIC_API_KEY", KEY);
        Self { project, home }
    }

    /// Creates a project, and a server with this script.
    pub fn scripted(script: impl IntoIterator<Item = Reply>) -> (Self, Anthropic) {
        let server = Anthropic::start(script);
        (Self::new(&server), server)
    }

    /// Removes the key from the environment.
    pub fn without_key(self) -> Self {
        self.with_variable("ANTHROPIC_API_KEY", "")
    }

    /// Sets another key.
    pub fn with_key(self, key: &str) -> Self {
        self.with_variable("ANTHROPIC_API_KEY", key)
    }

    pub fn with_file(mut self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.project = self.project.file(path, content);
        self
    }

    /// Adds a file to the agent's home.
    pub fn with_setting(self, name: &str, content: &str) -> Self {
        let path = self.home(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Adds permissions that the user trusts.
    pub fn with_permissions(self, content: &str) -> Self {
        self.with_file(PERMISSIONS, content)
            .trusting(&[PERMISSIONS])
    }

    /// Makes the user trust the current content of these files.
    pub fn trusting(self, paths: &[&str]) -> Self {
        let root = self.project.path("").canonicalize().unwrap();
        let digest = |path: &&str| {
            let digest = Sha256::digest(fs::read(self.project.path(path)).unwrap());
            let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            ((*path).to_owned(), json!(format!("sha256:{digits}")))
        };
        let files: Map<String, Value> = paths.iter().map(digest).collect();
        let trusted = json!({"version": 1, "folders": {root.to_str().unwrap(): files}});
        self.with_setting("trusted.json", &trusted.to_string())
    }

    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.project = self.project.variable(name, value);
        self
    }

    /// Returns a path in the agent's home.
    pub fn home(&self, path: &str) -> PathBuf {
        self.home.path().join("agent").join(path)
    }

    /// Returns `code-commit chat` with these arguments.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let all: Vec<&str> = std::iter::once("chat")
            .chain(arguments.iter().copied())
            .collect();
        self.project.command(&all)
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        let output = self.command(arguments).output().unwrap();
        Finished::new(&self.project, arguments, output)
    }

    /// Runs `chat -p` with this request.
    pub fn ask(&self, request: &str) -> Finished {
        self.run(&["-p", request])
    }

    /// Runs `chat -p` with this request, in the mode that asks no questions.
    pub fn let_work(&self, request: &str) -> Finished {
        self.run(&["--auto-pilot", "-p", request])
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

    /// Returns the session files, the latest one last.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.home("sessions")).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.file_stem().is_some_and(|stem| stem.len() == 36))
            .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
            .collect();
        paths.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
        paths
    }

    /// Returns the latest session.
    pub fn session(&self) -> Value {
        let path = self.sessions().pop().unwrap();
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }
}
