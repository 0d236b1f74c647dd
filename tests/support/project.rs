//! A project in a temporary directory, and runs of the program in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{ModelServer, hear_signals, write_program};

/// The keys in every test project.
pub const GEMINI_KEY: &str = "AIzaSyGeminiTestKey_0123456789-Zz";
pub const OPENAI_KEY: &str = "sk-proj-OpenAiTestKey/0123456789+Yy";

/// A project that is ready for a run; tests change it as needed.
pub struct TestProject {
    root: PathBuf,
    /// The directory, which is removed when this is dropped.
    _dir: Option<TempDir>,
    variables: Vec<(String, String)>,
}

/// Creates another project with the same files in their current state.
impl Clone for TestProject {
    fn clone(&self) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // By a separate process, for the reason given in `write_program`.
        let copied = Command::new("cp")
            .arg("-a")
            .args([self.path("."), dir.path().to_path_buf()])
            .status();
        assert!(copied.unwrap().success());
        Self {
            root: dir.path().to_path_buf(),
            _dir: Some(dir),
            variables: self.variables.clone(),
        }
    }
}

impl TestProject {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_path_buf();
        Self::at(root, Some(dir))
    }

    /// Creates a project below a directory of the test's own.
    pub fn within(directory: &Path, name: &str) -> Self {
        Self::at(directory.join(name), None)
    }

    fn at(root: PathBuf, dir: Option<TempDir>) -> Self {
        hear_signals();
        let project = Self {
            root,
            _dir: dir,
            variables: Vec::new(),
        };
        project
            .file(".gitignore", "/agent-config\n/logs\n/target\n")
            .file("agent-config/query.txt", "Do something.\n")
            .file(
                "agent-config/codeRollup.txt",
                "--- src/main.rs ---\nfn main() {}\n",
            )
            .file("agent-config/gemini-key.txt", format!("{GEMINI_KEY}\n"))
            .file("agent-config/openai-key.txt", format!("{OPENAI_KEY}\n"))
            .file("src/main.rs", "fn main() {}\n")
            .build("echo built")
    }

    /// Sends calls to `server`.
    pub fn with(mut self, server: &ModelServer) -> Self {
        self.variables
            .push(("GOOGLE_GEMINI_BASE_URL".into(), server.url()));
        self.variables
            .push(("OPENAI_BASE_URL".into(), format!("{}/v1", server.url())));
        self
    }

    pub fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Adds an empty repository in git's layout.
    pub fn repository(self, path: &str) -> Self {
        let inner = |part: &str| format!("{path}/{part}");
        self.file(&inner("HEAD"), "ref: refs/heads/main\n")
            .file(&inner("config"), "[core]\n")
            .file(&inner("objects/info/packs"), "")
            .file(&inner("refs/heads/.keep"), "")
    }

    pub fn without(self, path: &str) -> Self {
        fs::remove_file(self.path(path)).unwrap();
        self
    }

    /// Adds a build.sh with this body.
    pub fn build(self, body: &str) -> Self {
        self.program("build.sh", format!("#!/bin/sh\n{body}\n"))
    }

    /// Adds an executable file.
    pub fn program(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        write_program(&self.path(path), content);
        self
    }

    pub fn mode(self, path: &str, mode: u32) -> Self {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Returns the command, with only `PATH` from the machine's environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("code-commit"));
        command.current_dir(&self.root).args(arguments).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Finished {
        Finished::new(self, arguments, self.command(arguments).output().unwrap())
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Returns the folders of all runs, from the oldest to the latest.
    pub fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path("logs")) else {
            return Vec::new();
        };
        let mut runs: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        runs.retain(|run| run.is_dir());
        // By age, since names of the same second do not sort by creation.
        runs.sort_by_key(|run| (fs::metadata(run).unwrap().modified().unwrap(), run.clone()));
        runs
    }

    /// Returns all files with mode and content, and directories, without `logs`.
    pub fn tree(&self) -> BTreeMap<String, String> {
        tree(&self.root)
    }
}

fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            let metadata = path.symlink_metadata().unwrap();
            if name == "logs" {
                continue;
            }
            if metadata.is_dir() {
                pending.push(path.clone());
            }
            let content = if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            let mode = metadata.permissions().mode();
            found.insert(
                name,
                format!("{mode:o} {}", String::from_utf8_lossy(&content)),
            );
        }
    }
    found
}

/// Starts the command with pipes.
pub fn piped(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Passes this standard input to a program, and waits for its end.
pub fn given(mut child: Child, input: &str) -> Output {
    let mut stdin = child.stdin.take().unwrap();
    // A program that has ended reads no more.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// A run that has ended. It holds the files of its folder, so that the project need not outlive it.
pub struct Finished {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// The name of the run's folder; empty if there is none.
    pub folder: String,
    files: BTreeMap<String, Vec<u8>>,
    said: String,
}

impl Finished {
    pub fn new(project: &TestProject, arguments: &[&str], output: Output) -> Self {
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let code = output.status.code().unwrap_or(-1);
        let said = format!(
            "code-commit {arguments:?}\ncode: {code}\n--- stdout\n{stdout}--- stderr\n{stderr}---"
        );
        let folder = project.runs().pop().unwrap_or_default();
        let name = |path: &Path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let entries = fs::read_dir(&folder).into_iter().flatten();
        let paths = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file());
        // A running conversation may replace a file meanwhile.
        let files = paths.filter_map(|path| Some((name(&path), fs::read(&path).ok()?)));
        Self {
            code,
            stdout,
            stderr,
            folder: name(&folder),
            files: files.collect(),
            said,
        }
    }

    /// Checks the exit code; a failure shows all output.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.said);
        self
    }

    /// Checks that stderr contains every part.
    #[track_caller]
    pub fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(
                self.stderr.contains(part),
                "`{part}` is missing\n{}",
                self.said
            );
        }
        self
    }

    #[track_caller]
    pub fn bytes(&self, file: &str) -> &[u8] {
        self.files
            .get(file)
            .unwrap_or_else(|| panic!("no `{file}` in the log\n{}", self.said))
    }

    #[track_caller]
    pub fn logged(&self, file: &str) -> String {
        String::from_utf8_lossy(self.bytes(file)).into_owned()
    }

    #[track_caller]
    pub fn result(&self) -> Value {
        serde_json::from_slice(self.bytes("result.json")).unwrap()
    }

    /// Returns the names of the files in the run's folder.
    pub fn files(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }
}
