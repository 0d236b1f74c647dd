//! Malicious repositories, run through every command: no command hangs or panics, nothing outside is written or shown,
//! and no program named by the repository runs.
//!
//! A trap is one way to do harm. Every command meets every trap in a project of its own.

mod traps;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::support::agent::{PASS, done, reply, streamed, write};
use crate::support::{
    Answer, GEMINI_KEY, ModelServer, OPENAI_KEY, TestProject, gemini, write_program,
};

/// The time limit of a command. None needs a tenth of it.
const WATCHDOG: Duration = Duration::from_secs(40);
/// The content of a file outside, which must not be shown.
const SECRET: &str = "outside-secret-5f1c9a77";
/// The folder of the run that a repository contains.
const RUN: &str = "2026-01-02-03-04-05-committing-code";

/// A malicious file or setting of a repository.
struct Trap {
    name: &'static str,
    plant: fn(&Scene),
}

#[rustfmt::skip]
const TRAPS: [Trap; 22] = [
    Trap { name: "odd names", plant: traps::odd_names },
    Trap { name: "links", plant: traps::links },
    Trap { name: "pipes", plant: |scene| ["src/pipe", "AGENTS.md", "Cargo.toml"].iter().for_each(|path| scene.pipe(path)) },
    Trap { name: "pipe for rules", plant: |scene| { scene.file("sub/x", "x"); scene.pipe("sub/.gitignore"); } },
    Trap { name: "pipe for excludes", plant: |scene| scene.pipe(".git/info/exclude") },
    Trap { name: "endless rules", plant: |scene| scene.link("/dev/zero", ".git/info/exclude") },
    Trap { name: "rules that take long", plant: traps::slow_rules },
    Trap { name: "nested repository", plant: traps::nested_repository },
    Trap { name: "git's configuration", plant: traps::git_configuration },
    Trap { name: "bare repository", plant: traps::bare_repository },
    Trap { name: "git in the path", plant: |scene| write_program(&scene.path("git"), scene.touching("git")) },
    Trap { name: "models that git tracks", plant: traps::tracked_models },
    Trap { name: "key that is a link", plant: |scene| { scene.link(&scene.canary("secret.txt"), "agent-config/gemini-key.txt"); } },
    Trap { name: "keys in the code", plant: traps::keys_in_the_code },
    Trap { name: "run with forged records", plant: |scene| traps::forged_run(scene, &traps::forged_changes()) },
    Trap { name: "run with hostile texts", plant: |scene| traps::forged_run(scene, &traps::hostile_texts()) },
    Trap { name: "run of links", plant: traps::run_of_links },
    Trap { name: "run of pipes", plant: |scene| RECORDS.iter().for_each(|file| scene.pipe(&format!("logs/{RUN}/{file}"))) },
    Trap { name: "run without end", plant: |scene| RECORDS.iter().for_each(|file| scene.link("/dev/zero", &format!("logs/{RUN}/{file}"))) },
    Trap { name: "logs elsewhere", plant: |scene| scene.link(&scene.canary(""), "logs") },
    Trap { name: "settings elsewhere", plant: traps::settings_elsewhere },
    Trap { name: "journal", plant: traps::journal },
];

/// The commands, by the name of their test.
const COMMANDS: [(&str, &[&str]); 18] = [
    ("init", &["init"]),
    ("rollup", &["rollup"]),
    ("context", &["context", "-m", "Count words."]),
    ("models", &["models"]),
    ("log", &["log"]),
    ("log of a run", &["log", RUN]),
    ("diff", &["diff"]),
    ("diff of a run", &["diff", RUN]),
    ("report", &["report"]),
    ("report of a run", &["report", RUN]),
    ("report of all", &["report", "--all"]),
    ("dry run", &["--dry-run"]),
    ("run", &["--timeout", "20s", "--build-timeout", "20s"]),
    ("replay", &["--replay", RUN, "--build-timeout", "20s"]),
    ("undo", &["undo"]),
    ("undo of a run", &["undo", RUN]),
    ("recover", &["recover"]),
    ("dev", &["dev", "-p", "Look around."]),
];

/// The files of a run's folder that are read.
const RECORDS: [&str; 7] = [
    "result.json",
    "changes.json",
    "steps.jsonl",
    "agent.json",
    "conversation.json",
    "initial-query-response.json",
    "initial-query-response.txt",
];

/// A project with a trap in it, and files outside of it.
struct Scene {
    project: TestProject,
    /// Files that must not be written or read.
    outside: TempDir,
    home: TempDir,
}

impl Scene {
    fn new(trap: &Trap, server: &ModelServer) -> Self {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.txt"), SECRET).unwrap();
        fs::create_dir(outside.path().join("directory")).unwrap();
        fs::write(outside.path().join("report.html"), "mine").unwrap();
        fs::write(outside.path().join(".reserved"), "mine").unwrap();
        let home = tempfile::tempdir().unwrap();
        let project = TestProject::new()
            .with(server)
            .variable("HOME", home.path().to_str().unwrap())
            .variable("DEV_AGENT_HOME", home.path().join("dev").to_str().unwrap())
            .variable("DEV_AGENT_API_URL", &format!("{}/v1", server.url()))
            .variable("DEV_AGENT_MODEL", "test-model");
        let scene = Self {
            project,
            outside,
            home,
        };
        scene.git(&["init", "-q"]);
        scene.track(&["src", "build.sh", ".gitignore"]);
        (trap.plant)(&scene);
        scene
    }

    fn path(&self, path: &str) -> PathBuf {
        self.project.path(path)
    }

    /// Returns a path outside of the project.
    fn canary(&self, path: &str) -> String {
        let path = self.outside.path().join(path);
        path.to_str().unwrap().to_owned()
    }

    fn place(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        path
    }

    fn file(&self, path: &str, content: impl AsRef<[u8]>) {
        fs::write(self.place(path), content).unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        symlink(target, self.place(path)).unwrap();
    }

    fn pipe(&self, path: &str) {
        let mode = Mode::from_raw_mode(0o644);
        mknodat(CWD, self.place(path), FileType::Fifo, mode, 0).unwrap();
    }

    /// Creates a script that leaves a trace outside of the project.
    fn touching(&self, name: &str) -> String {
        format!(
            "#!/bin/sh\ntouch '{}'\n",
            self.canary(&format!("ran-{name}"))
        )
    }

    fn git(&self, arguments: &[&str]) {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.path(""));
        git.env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(git.status().unwrap().success());
    }

    /// Makes git track these paths, as in a cloned repository.
    fn track(&self, paths: &[&str]) {
        self.git(&[&["add", "-f", "--"], paths].concat());
    }

    /// Runs a command, and kills it if it does not end. Returns its output, and how it ended.
    fn run(&self, arguments: &[&str], trap: &str) -> Result<(String, Option<i32>), String> {
        let said = self.home.path().join("said");
        let output = File::create(&said).unwrap();
        let program = self.project.command(arguments);
        // The limit makes a command that fills the memory fail before the machine's memory is full.
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -v 4000000; exec \"$@\"", "sh"])
            .arg(program.get_program())
            .args(program.get_args())
            .current_dir(self.path(""))
            .env_clear()
            .stdin(std::process::Stdio::null())
            .stderr(output.try_clone().unwrap())
            .stdout(output)
            .process_group(0);
        for (name, value) in program.get_envs() {
            command.env(name, value.unwrap());
        }
        if trap == "git in the path" {
            let mut path = OsString::from(".:");
            path.push(std::env::var_os("PATH").unwrap_or_default());
            command.env("PATH", path);
        }
        let mut child = command.spawn().unwrap();
        let group = Pid::from_child(&child);
        let (ended, end) = mpsc::channel();
        let waiting = thread::spawn(move || ended.send(child.wait().unwrap()));
        let status = end.recv_timeout(WATCHDOG).ok();
        if status.is_none() {
            kill_process_group(group, Signal::KILL).unwrap();
        }
        waiting.join().unwrap().ok();
        let said = String::from_utf8_lossy(&fs::read(&said).unwrap()).into_owned();
        match status {
            Some(status) => Ok((said, status.code())),
            None => Err(format!("it hangs\n{said}")),
        }
    }
}

/// Returns all files below a directory, without following links.
fn listing(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let content = if metadata.is_dir() {
                pending.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes()
            } else if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.insert(path, content);
        }
    }
    found
}

/// The answers to an agent.
fn answers() -> Vec<Answer> {
    let looks = [
        reply("LIST_DIRECTORY", "\".\""),
        reply("LIST_DIRECTORY", "\"**/*\""),
        reply("READ_FILE", "\"src/link.rs\""),
        reply("READ_FILE", "\"src/pipe\""),
        write("out/x", "x\n"),
        write("src/new.rs", "x\n"),
        done(),
        PASS.to_owned(),
    ];
    looks.iter().map(|text| streamed(text)).collect()
}

/// The answers to a commit.
fn commit_answers() -> Vec<Answer> {
    let edit = |path: &str| gemini(&format!("^^^{path}\nx\n^^^end\n"));
    let paths = ["src/new.rs", "out/x", "src/pipe", "HEAD"];
    paths.iter().map(|path| Answer::json(&edit(path))).collect()
}

/// Runs a command against every trap, and reports all that had an effect.
#[track_caller]
fn meets_every_trap(name: &str) {
    let (_, arguments) = COMMANDS.iter().find(|(known, _)| *known == name).unwrap();
    let mut fell = Vec::new();
    for trap in &TRAPS {
        let is_commit = ["run", "replay"].contains(&name);
        let server = ModelServer::start(if is_commit {
            commit_answers()
        } else {
            answers()
        });
        if let Err(why) = check(&Scene::new(trap, &server), trap, arguments, &server) {
            fell.push(format!("=== {}: {why}", trap.name));
        }
    }
    assert!(fell.is_empty(), "{arguments:?}\n{}", fell.join("\n"));
}

fn check(
    scene: &Scene,
    trap: &Trap,
    arguments: &[&str],
    server: &ModelServer,
) -> Result<(), String> {
    let (outside, before) = (listing(scene.outside.path()), listing(&scene.path("")));
    let (said, code) = scene.run(arguments, trap.name)?;
    let fail = |why: &str| Err(format!("{why}\ncode: {code:?}\n{said}"));
    if !matches!(code, Some(0..=8)) || said.contains("panicked") {
        return fail("it does not end as programs do");
    }
    let now = listing(scene.outside.path());
    if now != outside {
        return fail(&format!("something outside has changed: {:?}", now.keys()));
    }
    let is_new = |path: &Path, content: &[u8]| before.get(path).is_none_or(|old| old != content);
    let mut heard = vec![("what was said".to_owned(), said.clone().into_bytes())];
    let files = listing(&scene.path("")).into_iter();
    let files = files.filter(|(path, content)| is_new(path, content));
    heard.extend(files.map(|(path, content)| (path.display().to_string(), content)));
    let requests = server.requests().into_iter();
    heard.extend(requests.map(|request| ("a request".to_owned(), request.body)));
    for (place, text) in heard {
        let holds = |secret: &str| memchr::memmem::find(&text, secret.as_bytes()).is_some();
        // The rollup is next to the keys; the part of it that is sent is redacted.
        let is_rollup = place.ends_with("codeRollup.txt");
        if holds(SECRET) || !is_rollup && (holds(GEMINI_KEY) || holds(OPENAI_KEY)) {
            return fail(&format!("{place} holds what nobody is to hear"));
        }
    }
    Ok(())
}

macro_rules! commands {
    ($($test:ident: $name:literal,)*) => {$(
        #[test]
        fn $test() {
            meets_every_trap($name);
        }
    )*
        #[test]
        fn every_command_has_its_test() {
            let tested = [$($name),*];
            assert_eq!(tested, COMMANDS.map(|(name, _)| name));
        }
    };
}

commands! {
    init: "init",
    rollup: "rollup",
    context: "context",
    models: "models",
    log: "log",
    log_of_a_run: "log of a run",
    diff: "diff",
    diff_of_a_run: "diff of a run",
    report: "report",
    report_of_a_run: "report of a run",
    report_of_all: "report of all",
    dry_run: "dry run",
    run: "run",
    replay: "replay",
    undo: "undo",
    undo_of_a_run: "undo of a run",
    recover: "recover",
    dev: "dev",
}
