//! Measures the overhead of a whole run, without the model and the build, against a server on this machine.
//!
//! Goals: a run with one file takes at most 8 ms and 10 MB; 200 files of 5 KB take at most twice as long as `tar xf`
//! for the same files, and 5,000 files of 2 KB at most 1.3 times as long; a file of 50 MB or a code base of 100 MB
//! takes at most twice its size in memory, and at most 2.5 times as long as a plain pipeline; a rollup of 20,000 files
//! takes no longer than with `git ls-files`; a reply that Ollama streams in 200,000 lines of one token takes at most
//! 1.5 times as long as one in as many events. A plan's first request is sent within 30 ms, the program's own part of a
//! step takes at most 10 ms, and at most 20 MB are in use at the peak. The 1,000th step of `dev` takes at most twice as
//! long as the 100th, less the time to write and send its longer body. A task of a fleet takes at most 30 ms longer
//! than the same work by hand, and a start with 10,000 finished tasks 0.3 s; a report on 10,000 tasks takes 3 s and 100
//! MB, in each format. Durability may cost 5 ms for one file, 12 ms for 200, and 35 % for 5,000. Each measurement
//! alternates with the one that it is compared to, and the medians are printed.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and may panic like a test"
)]

#[path = "../tests/support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "the benchmarks need less of it than the tests"
)]
mod support;

use std::fs;
use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use support::agent::{AgentProject, PASS, done, reply};
use support::orchestra::{Branch, OrchestraProject, START, execute, finished, published, read_log};
use support::{Answer, ModelServer, TestProject, gemini, ollama, openai, receive};

/// A build that records the peak memory of the program, in kB.
const RECORD_MEMORY: &str = "grep VmHWM /proc/$PPID/status >memory";

fn main() {
    let all: [(&str, fn()); 10] = [
        ("durability", || {
            durability("one file", 1, 2 << 10, 101);
            durability("200 files of 5 KB", 200, 5 << 10, 41);
            durability("5,000 files of 2 KB", 5_000, 2 << 10, 15);
        }),
        ("files", || {
            one_file();
            many_files("200 files of 5 KB", 200, 5 << 10, 41);
            many_files("5,000 files of 2 KB", 5_000, 2 << 10, 21);
        }),
        ("large", || large_code_base(21)),
        ("rollup", || rollup(20_000, 21)),
        ("streams", || streams(200_000, 21)),
        ("plan", || {
            plan(&log_of(0), 21);
            plan(&log_of(1_000), 21);
        }),
        ("dev", || dev_steps(3)),
        ("orchestrate", || orchestrate(21)),
        ("fleet", || {
            fleet(40, 5);
            finished_fleet(10_000, 11);
            reported_fleet(10_000, 5);
        }),
        ("memory", memories),
    ];
    // `cargo bench --bench runs -- large` runs only that benchmark.
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    for (name, run) in all {
        if chosen.iter().all(|word| word.starts_with("--"))
            || chosen.iter().any(|word| word == name)
        {
            run();
        }
    }
}

/// Creates a repository and, next to it, a directory with a manifest of tasks that change it.
fn manifest(server: &ModelServer, tasks: usize) -> TestProject {
    let project = TestProject::new().with(server).build("exit 0");
    let script = "git init --quiet && git add --all && git -c user.name=a -c user.email=a commit --quiet -m a";
    let mut made = Command::new("sh");
    made.args(["-c", script]).current_dir(project.path("."));
    assert!(made.status().unwrap().success());
    let line = |task| json!({"id": format!("t{task}"), "repository": ".", "query": "x"});
    let lines: String = (0..tasks).map(|task| format!("{}\n", line(task))).collect();
    fs::write(project.path("tasks.jsonl"), lines).unwrap();
    project
}

/// The work of a fleet's task by hand: a clone, a run in it, a patch, a bundle, a page.
const BY_HAND: &str = r#"set -e
objects=$PWD/.git/objects commit=$(git rev-parse HEAD) program=$1
for task in $(seq "$2"); do
    mkdir -p "hand/$task/clone"
    cd "hand/$task/clone"
    git init --quiet --template= --initial-branch=task
    echo "$objects" >.git/objects/info/alternates
    mkdir .git/info agent-config
    printf '/agent-config\n/logs\n' >.git/info/exclude
    git reset --quiet --hard "$commit"
    cp ../../../agent-config/gemini-key.txt agent-config
    "$program" --message x --rollup
    git add --all
    git reset --quiet "$commit" -- agent-config logs
    git diff --cached --binary --full-index --no-renames "$commit" -- >../change.patch
    git -c user.name=a -c user.email=a -c gc.auto=0 -c maintenance.auto=false commit --quiet --no-verify -m x
    git bundle create --quiet ../branch.bundle "$commit..task"
    "$program" report
    cd ../../..
    rm -r "hand/$task/clone"
done"#;

/// Compares the tasks of a fleet with the same work by hand.
fn fleet(tasks: usize, rounds: usize) {
    let reply = || Answer::json(&gemini("^^^a\nx\n^^^end\n"));
    let server = ModelServer::start((0..2 * tasks * rounds).map(|_| reply()));
    let project = manifest(&server, tasks);
    let count = u32::try_from(tasks).unwrap();
    let of_each = |mut command: Command| {
        let began = Instant::now();
        let run = command.output().unwrap();
        assert!(run.status.success(), "{run:?}");
        (began.elapsed() / count).as_secs_f64() * 1000.0
    };
    let in_turn = |_| {
        let words = ["fleet", "run", "tasks.jsonl", "--out", "out", "--jobs", "1"];
        let fleet = project.command(&words);
        let mut by_hand = Command::new("sh");
        by_hand
            .args(["-c", BY_HAND, "sh"])
            .arg(fleet.get_program())
            .arg(tasks.to_string())
            .current_dir(project.path("."))
            .envs(
                fleet
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            );
        let took = (of_each(by_hand), of_each(fleet));
        fs::remove_dir_all(project.path("out")).unwrap();
        fs::remove_dir_all(project.path("hand")).unwrap();
        took
    };
    let (mut by_hand, mut fleet): (Vec<_>, Vec<_>) = (0..rounds).map(in_turn).unzip();
    by_hand.sort_by(f64::total_cmp);
    fleet.sort_by(f64::total_cmp);
    println!(
        "{:<38} {:>8.1} ms, {:.1} ms by hand",
        "a task of a fleet",
        fleet[rounds / 2],
        by_hand[rounds / 2]
    );
}

/// Measures the start of a fleet that has nothing left to do.
fn finished_fleet(tasks: usize, rounds: usize) {
    let project = manifest(&ModelServer::gemini(&[]), tasks);
    let mut ledger = String::new();
    for task in 0..tasks {
        let folder = project.path(&format!("out/t{task}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("result.json"), "{}").unwrap();
        let account = json!({"task": format!("t{task}"), "spent": 0.01, "reserved": 0.0, "exit": [0, "done"]});
        ledger += &format!("{account}\n");
    }
    fs::write(project.path("out/ledger.jsonl"), ledger).unwrap();
    let mut took = Vec::new();
    for _ in 0..rounds {
        let began = Instant::now();
        let run = project
            .command(&["fleet", "run", "tasks.jsonl", "--out", "out"])
            .output();
        assert!(run.unwrap().status.success());
        took.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    took.sort_by(f64::total_cmp);
    println!(
        "{:<38} {:>8.1} ms",
        format!("a start with {tasks} finished tasks"),
        took[rounds / 2]
    );
}

/// Measures reports, in every format, on tasks that have failed after three repairs, each with three findings.
fn reported_fleet(tasks: usize, rounds: usize) {
    let build = "for n in 1 2 3; do echo \"a:$n:1: error: wrong in line $n\"; done; exit 1";
    let reply = |nth| Answer::json(&gemini(&format!("^^^a\n{nth}\n^^^end\n")));
    let server = ModelServer::start((0..4).map(reply));
    let project = manifest(&server, 1);
    fs::write(project.path("build.sh"), format!("#!/bin/sh\n{build}\n")).unwrap();
    let commit = "git -c user.name=a -c user.email=a commit --quiet --all -m b";
    let mut made = Command::new("sh");
    made.args(["-c", commit]).current_dir(project.path("."));
    assert!(made.status().unwrap().success());
    let words = ["fleet", "task", "tasks.jsonl", "0", "--out", "out"];
    let run = project.command(&words).output().unwrap();
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let result = fs::read_to_string(project.path("out/t0/result.json")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    for task in 0..tasks {
        let folder = project.path(&format!("out/t{task}"));
        fs::create_dir_all(&folder).unwrap();
        let mut result = result.clone();
        result["task"]["index"] = task.into();
        result["task"]["labels"] = json!({"team": format!("team-{}", task % 30)});
        fs::write(folder.join("result.json"), format!("{result:#}")).unwrap();
    }
    for format in ["text", "json", "csv", "sarif"] {
        let report = project.command(&["fleet", "report", "out", "--output-format", format]);
        let mut figures = Vec::new();
        for _ in 0..rounds {
            let mut measured = Command::new("python3");
            measured.args(["-c", MEASURE]);
            measured.arg(report.get_program()).args(report.get_args());
            measured.current_dir(report.get_current_dir().unwrap());
            figures.push(figures_of(&mut measured));
        }
        print_medians(&format!("a report on {tasks} tasks, {format}"), &figures);
    }
}

/// A script that runs a command and prints the time and the processor time that it took, in seconds, and its peak
/// memory, in kB. The memory is polled while the command runs, because the system's figure for a child that has ended
/// includes the parent that it was forked from.
const MEASURE: &str = "import resource, subprocess, sys, time
began, peak = time.perf_counter(), 0
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while child.poll() is None:
    try:
        told = open(f'/proc/{child.pid}/status').read()
        peak = int(told.split('VmHWM:')[1].split()[0])
    except (OSError, IndexError):
        pass
    time.sleep(0.001)
took, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
assert child.returncode == 0
print(took, used.ru_utime + used.ru_stime, peak)";

/// Compares an orchestration of 17 agents with a plain script that makes the same requests.
fn orchestrate(rounds: usize) {
    let mut figures = [(); 2].map(|()| Vec::new());
    for _ in 0..rounds {
        for (nth, figures) in figures.iter_mut().enumerate() {
            let orchestra = seventeen_agents();
            let run = orchestra.command(&["--headless", "--task", "Add a flag."]);
            let mut measured = Command::new("python3");
            measured.args(["-c", MEASURE]);
            if nth == 0 {
                measured.arg(run.get_program()).args(run.get_args());
            } else {
                let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/orchestrate.py");
                measured.args(["python3", script, START]);
            }
            measured.env_clear();
            for (name, value) in run.get_envs() {
                measured.env(name, value.unwrap_or_default());
            }
            figures.push(figures_of(
                measured.current_dir(run.get_current_dir().unwrap()),
            ));
        }
    }
    for (what, figures) in ["an orchestration", "a plain script"].iter().zip(figures) {
        print_medians(&format!("{what}, 17 agents"), &figures);
    }
}

/// Runs the measuring script, and returns its figures.
fn figures_of(measured: &mut Command) -> [f64; 3] {
    let told = String::from_utf8(measured.output().unwrap().stdout).unwrap();
    let figures = told
        .split_whitespace()
        .map(|figure| figure.parse().unwrap());
    <[f64; 3]>::try_from(figures.collect::<Vec<_>>()).unwrap()
}

fn print_medians(what: &str, figures: &[[f64; 3]]) {
    let middle = |of: usize| {
        let mut all: Vec<f64> = figures.iter().map(|figure| figure[of]).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    println!(
        "{what:<38} {:>8.1} ms, {:.1} ms of processor time, {:.1} MB",
        middle(0) * 1000.0,
        middle(1) * 1000.0,
        middle(2) / 1000.0
    );
}

/// Creates a project with eight rounds of work and review, followed by publishing.
fn seventeen_agents() -> OrchestraProject {
    let round = |nth: usize| {
        let verdict = if nth < 8 { "ISSUES" } else { "CLEAN" };
        let replies = [
            execute("claude_code", "Do it."),
            execute("codex", "Review it."),
            read_log(),
        ];
        let branches = [
            Branch::done(&"It is done. ".repeat(100)),
            Branch::review(verdict),
        ];
        (replies, branches)
    };
    let (replies, branches): (Vec<_>, Vec<_>) = (1..=8).map(round).unzip();
    OrchestraProject::scripted(
        replies.into_iter().flatten().chain([finished("done")]),
        branches
            .into_iter()
            .flatten()
            .chain([Branch::done(&published())]),
    )
}

fn memories() {
    memory("nothing much", &"x\n".repeat(10), "");
    memory(
        "a reply that replaces a file of 50 MB",
        &"0123456789 abcdef \"quoted\"\n".repeat((50 << 20) / 27),
        "",
    );
    memory(
        "a code base of 100 MB",
        "x\n",
        &"0123456789 abcdef \"quoted\"\n".repeat((100 << 20) / 27),
    );
}

fn one_file() {
    const MODES: [&str; 3] = ["off", "auto", "strict"];
    let mut runs = MODES.map(|_| Vec::new());
    for _ in 0..51 {
        for (mode, runs) in MODES.iter().zip(&mut runs) {
            let server = ModelServer::gemini(&["^^^a.rs\nfn a() {}\n^^^end\n"]);
            let project = TestProject::new().with(&server).build(":");
            runs.push(overhead_in(&project, mode));
        }
    }
    for (mode, runs) in MODES.iter().zip(runs) {
        let what = format!("a run with one file, --sandbox {mode}");
        println!("{what:<38} {:>8.1} ms", ms(median(runs)));
    }
}

/// Measures the cost of syncing to disk, by comparing runs in which `fsync` does nothing with others. Both include the
/// single `syncfs` that replaces it for more than eight files.
fn durability(what: &str, count: usize, size: usize, rounds: usize) {
    let folder = tempfile::tempdir().unwrap();
    let [none, other] =
        [("none", "fsync"), ("other", "code_commit_no_such_function")].map(|(name, function)| {
            let library = folder.path().join(format!("lib{name}.so"));
            let source = folder.path().join(format!("{name}.rs"));
            let code = format!(
                "#[unsafe(no_mangle)] pub extern \"C\" fn {function}(_: i32) -> i32 {{ 0 }}"
            );
            fs::write(&source, code).unwrap();
            let rustc = Command::new("rustc")
                .args(["--edition", "2024", "--crate-type", "cdylib", "-O", "-o"])
                .args([&library, &source])
                .status();
            assert!(rustc.unwrap().success());
            library
        });
    let answer = gemini(&files(count, size));
    let mut times = [Vec::new(), Vec::new()];
    let mut used = Vec::new();
    for _ in 0..rounds {
        for (library, times) in [&none, &other].into_iter().zip(&mut times) {
            let server = ModelServer::start([Answer::json(&answer)]);
            let project = TestProject::new()
                .with(&server)
                .variable("LD_PRELOAD", library.to_str().unwrap())
                .build(":");
            times.push(overhead(&project));
            used.push(project);
        }
    }
    let [without, with] = times.map(median);
    println!(
        "{:<38} {:>8.1} ms, without fsync {:.1} ms: {:+.1} ms, {:+.0} %",
        format!("{what}, durable"),
        ms(with),
        ms(without),
        ms(with) - ms(without),
        (with.as_secs_f64() / without.as_secs_f64() - 1.0) * 100.0
    );
}

/// Returns a reply with `count` files of `size` bytes.
fn files(count: usize, size: usize) -> String {
    let body = "0123456789 abcde\n".repeat(size / 17);
    (0..count)
        .map(|n| format!("^^^d{}/f{n}.rs\n{body}^^^end\n", n % 50))
        .collect()
}

fn many_files(what: &str, count: usize, size: usize, rounds: usize) {
    let body = "0123456789 abcde\n".repeat(size / 17);
    let answer = gemini(&files(count, size));
    let archive = tempfile::tempdir().unwrap();
    for n in 0..count {
        let path = archive.path().join(format!("d{}/f{n}.rs", n % 50));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &body).unwrap();
    }
    let tar = |arguments: &[&str]| {
        assert!(
            Command::new("tar")
                .args(arguments)
                .current_dir(archive.path())
                .status()
                .unwrap()
                .success()
        );
    };
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("all.tar");
    let packed = packed.to_str().unwrap();
    tar(&["cf", packed, "."]);
    let (mut runs, mut unpackings) = (Vec::new(), Vec::new());
    // Nothing is deleted in between, because ext4 is slow to reuse inodes that were just freed.
    let mut used = Vec::new();
    for _ in 0..rounds {
        let server = ModelServer::start([Answer::json(&answer)]);
        let project = TestProject::new().with(&server).build(":");
        runs.push(overhead(&project));
        let into = tempfile::tempdir().unwrap();
        let started = Instant::now();
        tar(&["xf", packed, "-C", into.path().to_str().unwrap()]);
        unpackings.push(started.elapsed());
        used.push((project, into));
    }
    let (run, unpacking) = (median(runs), median(unpackings));
    println!(
        "{what:<38} {:>8.1} ms, tar xf {:.1} ms: {:.2} times",
        ms(run),
        ms(unpacking),
        run.as_secs_f64() / unpacking.as_secs_f64()
    );
}

/// Compares a run on a code base of 100 MB, whose files are compared with the rollup, with the least possible work:
/// reading the rollup, logging it, and sending it as JSON.
fn large_code_base(rounds: usize) {
    let body = "let words = [\"some\", \"thing\"]; // task-list\n".repeat(200);
    let paths: Vec<_> = (0..(100 << 20) / body.len())
        .map(|n| format!("d{}/f{n}.rs", n % 50))
        .collect();
    let rollup: String = paths
        .iter()
        .map(|path| format!("--- {path} ---\n{body}"))
        .collect();
    let mut project = TestProject::new().build(":").file(
        "agent-config/models.json",
        r#"{"models": {"gemini-2.5-pro": {"contextWindow": 1000000000}}}"#,
    );
    for path in &paths {
        project = project.file(path, &body);
    }
    let project = project.file("agent-config/codeRollup.txt", rollup);
    let (mut runs, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let server = ModelServer::gemini(&["^^^a.rs\nfn a() {}\n^^^end\n"]);
        let mut command = project.command(&["--quiet", "--sandbox", "off"]);
        command.env("GOOGLE_GEMINI_BASE_URL", server.url());
        let started = Instant::now();
        let run = command.stderr(Stdio::null()).status().unwrap();
        runs.push(started.elapsed());
        assert!(run.success());
        drop(server);
        let server = ModelServer::gemini(&["x"]);
        let started = Instant::now();
        send_plainly(&project, server.url().trim_start_matches("http://"));
        plain.push(started.elapsed());
        fs::remove_dir_all(project.path("logs")).unwrap();
    }
    let (run, plain) = (median(runs), median(plain));
    println!(
        "{:<38} {:>8.1} ms, a plain pipeline {:.1} ms: {:.2} times",
        "a code base of 100 MB, sent",
        ms(run),
        ms(plain),
        run.as_secs_f64() / plain.as_secs_f64()
    );
}

/// Compares a reply of this many tokens that Ollama streams in one line per token with the same reply as events.
fn streams(tokens: usize, rounds: usize) {
    let text = format!("^^^big\n{}^^^end\n", "abc\n".repeat(tokens / 2));
    let mut pieces = ollama("");
    let last = pieces.pop().unwrap();
    let line = pieces.pop().unwrap();
    let tokens: Vec<&str> = text.split_inclusive(['c', '\n']).collect();
    let (mut lines, mut events) = (String::new(), String::new());
    for token in &tokens {
        let mut line = line.clone();
        line["message"] = json!({"role": "assistant", "content": token});
        lines += &format!("{line}\n");
        let choice = json!({"index": 0, "delta": {"content": token}, "finish_reason": null});
        let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "local", "choices": [choice]});
        events += &format!("data: {chunk}\n\n");
    }
    lines += &format!("{last}\n");
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    events += &format!("data: {end}\n\ndata: [DONE]\n\n");
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let ndjson = Answer::new(200, &[("content-type", "application/x-ndjson")], &lines);
        let sse = Answer::new(200, &[("content-type", "text/event-stream")], &events);
        let asked = [
            ("ollama", vec![Answer::tags(&["local"]), ndjson]),
            ("openai", vec![sse]),
        ];
        for ((provider, answers), times) in asked.into_iter().zip(&mut times) {
            let server = ModelServer::start(answers);
            let table = json!({"models": {"local": {"provider": provider, "baseUrl": server.url()}},
                "selectionRules": {"default": "local"}});
            let project = TestProject::new()
                .file("agent-config/models.json", table.to_string())
                .build(":");
            let mut command = project.command(&["--quiet", "--stream", "--sandbox", "off"]);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let started = Instant::now();
            assert!(command.status().unwrap().success());
            times.push(started.elapsed());
        }
    }
    let [lines, events] = times.map(median);
    println!(
        "{:<38} {:>8.1} ms, in events {:.1} ms: {:.2} times",
        format!("a reply in {} lines", tokens.len()),
        ms(lines),
        ms(events),
        lines.as_secs_f64() / events.as_secs_f64()
    );
}

/// Returns a plan with this many entries in its log.
fn log_of(entries: usize) -> String {
    let entry = "\n### 2026-01-07 14:20 - Set up the server\n**Actions:** Created src/index.ts, configured TypeScript\n\
                 **Tools:** write_file, shell_exec\n**Result:** \u{2713} The server runs\n";
    format!(
        "# Plan: Serve\n\n## Goal\nServe\n\n## Execution Log\n{}",
        entry.repeat(entries)
    )
}

/// Measures a plan of 20 steps with a plan document in the project: the time from the start to the first request, the
/// program's own time for a step (two calls, a file that is read, updates of the document), and its peak memory.
fn plan(document: &str, rounds: usize) {
    const STEPS: u32 = 20;
    let words = |reply: serde_json::Value| Answer::lines(&ollama(&reply.to_string()));
    let tasks: Vec<_> = (1..=STEPS)
        .map(|step| json!({"step": step, "description": "Read", "tool": "read_file", "params": {}}))
        .collect();
    let call = json!({"name": "read_file", "parameters": {"file_path": "src/main.rs"}});
    let entry = json!({"action": "Read", "details": "", "result": "Read"});
    let mut replies = vec![json!({"task_list": tasks})];
    for _ in 0..STEPS {
        replies.push(json!({"tool_calls": [call]}));
        replies.push(json!({"response": "It is read."}));
    }
    replies.push(json!({"log_entry": entry}));
    let (mut starts, mut steps) = (Vec::new(), Vec::new());
    let mut peak = 0.0_f64;
    let home = tempfile::tempdir().unwrap();
    for _ in 0..rounds {
        let (sender, asked) = channel();
        let process = Arc::new(AtomicU32::new(0));
        let answers = replies.iter().map(|reply| {
            let (sender, process, answer) =
                (sender.clone(), Arc::clone(&process), words(reply.clone()));
            Answer::To(Box::new(move |_| {
                let at = Instant::now();
                let status = format!("/proc/{}/status", process.load(Ordering::SeqCst));
                let _ = sender.send((at, fs::read_to_string(status).unwrap_or_default()));
                answer
            }))
        });
        let server = ModelServer::start(std::iter::once(Answer::tags(&["local"])).chain(answers));
        let table = json!({"models": {"local": {"provider": "ollama", "baseUrl": server.url()}}});
        let project = TestProject::new()
            .variable("HOME", home.path().to_str().unwrap())
            .file("agent-config/models.json", table.to_string())
            .file("PLAN.md", document);
        let arguments = [
            "plan",
            "-p",
            "Read",
            "--model",
            "local",
            "--plan-file",
            "PLAN.md",
        ];
        let mut command = project.command(&arguments);
        let started = Instant::now();
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        process.store(child.id(), Ordering::SeqCst);
        assert!(child.wait().unwrap().success());
        let asked: Vec<(Instant, String)> = asked.try_iter().collect();
        let times: Vec<Instant> = asked.iter().map(|(at, _)| *at).collect();
        starts.push(times[0] - started);
        steps.extend(
            times[1..]
                .windows(3)
                .step_by(2)
                .map(|calls| calls[2] - calls[0]),
        );
        let memory = asked
            .last()
            .unwrap()
            .1
            .lines()
            .find(|line| line.starts_with("VmHWM:"));
        let kb: f64 = memory
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        peak = peak.max(kb / 1024.0);
    }
    println!(
        "{:<38} {:>8.1} ms to the first request, {:.1} ms a step, {peak:.1} MB",
        format!(
            "a plan with {} log entries",
            document.matches("\n### ").count()
        ),
        ms(median(starts)),
        ms(median(steps))
    );
}

/// Measures the steps of a long task, and the time that a plain client takes to write and send the same bodies.
fn dev_steps(rounds: usize) {
    const SHOWN: [usize; 2] = [100, 1_000];
    const AROUND: usize = 15;
    let mut steps = [Vec::new(), Vec::new()];
    let mut sending = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let around = |shown: usize| shown - AROUND..shown + AROUND;
        let reads = std::iter::repeat_n(reply("READ_FILE", "a.txt"), SHOWN[1] + 2 * AROUND);
        let replies = reads.chain([done(), PASS.to_owned()]);
        let is_shown =
            move |number: usize| SHOWN.iter().any(|shown| around(*shown).contains(&number));
        let (url, asked) = answer_in_turn(replies.collect(), is_shown);
        let limits = json!({"maxContextTokens": 100_000_000, "maxLoops": 5_000});
        let agent = AgentProject::new(&ModelServer::start([]))
            .configured(&limits)
            .with_file("a.txt", &"a line of text\n".repeat(100));
        let mut command = agent.command(&["--sandbox", "off", "-p", "Read"]);
        command.env("DEV_AGENT_API_URL", url);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert!(status.unwrap().success());
        let asked: Vec<(Instant, Vec<u8>)> = asked.try_iter().collect();
        for (at, shown) in SHOWN.into_iter().enumerate() {
            let around = &asked[around(shown)];
            steps[at].extend(around.windows(2).map(|two| two[1].0 - two[0].0));
            sending[at].extend(around.iter().map(|(_, body)| sent(body)));
        }
    }
    for (shown, (steps, sending)) in SHOWN.into_iter().zip(steps.into_iter().zip(sending)) {
        println!(
            "{:<38} {:>8.1} ms, of which a plain client takes {:.1} ms to write and send the body",
            format!("step {shown} of `dev`"),
            ms(median(steps)),
            ms(median(sending))
        );
    }
}

/// Starts a server that gives these replies in turn. Sends on the time of each request, with its body if that is
/// wanted: holding gigabytes would take longer than what is measured.
fn answer_in_turn(
    replies: Vec<String>,
    is_wanted: impl Fn(usize) -> bool + Send + 'static,
) -> (String, Receiver<(Instant, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, asked) = channel();
    thread::spawn(move || {
        for (number, text) in replies.into_iter().enumerate() {
            let (stream, _) = listener.accept().unwrap();
            let request = receive(&mut BufReader::new(&stream)).unwrap();
            let body = if is_wanted(number) {
                request.body
            } else {
                Vec::new()
            };
            let _ = sender.send((Instant::now(), body));
            let answer = openai(&text).to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let length = answer.len();
            write!(
                &stream,
                "{head}\r\ncontent-length: {length}\r\n\r\n{answer}"
            )
            .unwrap();
        }
    });
    (url, asked)
}

/// Returns the time that it takes to write a body as JSON and to send it to a server on this machine that receives it.
fn sent(body: &[u8]) -> Duration {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap();
    let server = ModelServer::start([Answer::To(Box::new(|request| {
        Answer::json(&json!(request.body.len()))
    }))]);
    let started = Instant::now();
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    let body = serde_json::to_vec(&body).unwrap();
    write!(
        stream,
        "POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(&body).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    started.elapsed()
}

/// Compares the rollup of files of 2 KB with the least possible work: listing the files with git, and reading them.
fn rollup(count: usize, rounds: usize) {
    let body = "let words = [\"some\", \"thing\"]; // task-list\n".repeat(46);
    let mut project = TestProject::new();
    for n in 0..count {
        project = project.file(&format!("a/d{}/f{n}.rs", n % 200), &body);
    }
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(project.path(""));
        let output = git.output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "--quiet"]);
    git(&["add", "a"]);
    let (mut runs, mut listed, mut read) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let mut command = project.command(&["rollup", "--quiet"]);
        let started = Instant::now();
        let run = command.stdout(Stdio::null()).status().unwrap();
        runs.push(started.elapsed());
        assert!(run.success());
        let started = Instant::now();
        let names = git(&["ls-files", "-z", "--cached"]);
        listed.push(started.elapsed());
        for name in names.split_terminator('\0') {
            assert_eq!(fs::read(project.path(name)).unwrap().len(), body.len());
        }
        read.push(started.elapsed());
    }
    let [run, listed, read] = [runs, listed, read].map(median);
    println!(
        "{:<38} {:>8.1} ms, git ls-files {:.1} ms, and reading them {:.1} ms",
        format!("a rollup of {count} files"),
        ms(run),
        ms(listed),
        ms(read)
    );
}

fn send_plainly(project: &TestProject, host: &str) {
    let text = project.read("agent-config/codeRollup.txt");
    fs::write(project.path("logs/plain.txt"), &text).unwrap();
    let json = serde_json::to_vec(&text).unwrap();
    let mut server = TcpStream::connect(host).unwrap();
    let length = json.len();
    write!(
        server,
        "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\n\r\n"
    )
    .unwrap();
    server.write_all(&json).unwrap();
    // Once the answer begins, the server has read the whole request.
    server.read_exact(&mut [0]).unwrap();
}

fn memory(what: &str, body: &str, rollup: &str) {
    let server = ModelServer::gemini(&[&format!("^^^big\n{body}^^^end\n")]);
    let project = TestProject::new().with(&server).build(RECORD_MEMORY);
    let project = project
        .file("agent-config/codeRollup.txt", rollup)
        .file(
            "agent-config/models.json",
            r#"{"models": {"gemini-2.5-pro": {"contextWindow": 1000000000}}}"#,
        )
        // The file that is replaced is as large as its replacement.
        .file("big", body);
    let started = Instant::now();
    project.run(&["--quiet", "--sandbox", "off"]).exits(0);
    let took = started.elapsed();
    let recorded = project.read("memory");
    let kb: f64 = recorded.split_whitespace().nth(1).unwrap().parse().unwrap();
    println!("{what:<38} {:>8.1} MB, {:.0} ms", kb / 1024.0, ms(took));
}

/// Returns the time of a run without that of its build.
fn overhead(project: &TestProject) -> Duration {
    overhead_in(project, "off")
}

fn overhead_in(project: &TestProject, sandbox: &str) -> Duration {
    let mut command = project.command(&["--quiet", "--sandbox", sandbox]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    assert!(command.status().unwrap().success());
    let run = started.elapsed();
    let started = Instant::now();
    assert!(
        Command::new("./build.sh")
            .current_dir(project.path(""))
            .status()
            .unwrap()
            .success()
    );
    run.saturating_sub(started.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
