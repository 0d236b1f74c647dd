//! Compares five workloads with a floor: a plain program that does the least possible work. It reads the prompt's
//! parts, asks a server on this machine once, parses the reply, checks its paths, writes its files and runs a build.
//!
//! Goals for the ratios of the medians: W1, one file, 2.0; W2, 200 files of 5 KB, 1.4; W3, 5,000 files of 2 KB, 1.2;
//! W4, one file of 50 MB, 1.1; W5, a code base of 100 MB, 1.5. `tests/faults/calls.rs` checks what does not depend on
//! the machine's load: the system calls for each file.

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
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Component, Path};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{ModelServer, TestProject};

/// The argument that makes this program act as the floor.
const FLOOR: &str = "be-the-floor";

struct Workload {
    name: &'static str,
    goal: f64,
    rounds: usize,
    reply: String,
    rollup: String,
    /// The files in the rollup.
    files: Vec<(String, String)>,
}

type Make = fn() -> Workload;

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    if chosen.first().is_some_and(|word| word == FLOOR) {
        return floor(&std::env::var("GOOGLE_GEMINI_BASE_URL").unwrap());
    }
    let is_chosen = |name: &str| {
        let mut words = chosen.iter().filter(|word| !word.starts_with("--"));
        words.clone().next().is_none() || words.any(|word| name.starts_with(word.as_str()))
    };
    let all: [(&str, Make); 5] = [
        ("W1", || reply("W1, one file", 2.0, 101, (1, 2 << 10))),
        ("W2", || {
            reply("W2, 200 files of 5 KB", 1.4, 41, (200, 5 << 10))
        }),
        ("W3", || {
            reply("W3, 5,000 files of 2 KB", 1.2, 15, (5_000, 2 << 10))
        }),
        ("W4", || {
            reply("W4, one file of 50 MB", 1.1, 15, (1, 50 << 20))
        }),
        ("W5", || code_base(100 << 20)),
    ];
    for (name, make) in all {
        if is_chosen(name) {
            measure(&make());
        }
    }
}

/// Creates a workload whose reply has this many files of this many bytes.
fn reply(name: &'static str, goal: f64, rounds: usize, (count, size): (usize, usize)) -> Workload {
    let body = "0123456789 abcdef \"quoted\"\n".repeat(size / 27);
    let files = (0..count).map(|n| format!("^^^d{}/f{n}.rs\n{body}^^^end\n", n % 50));
    Workload {
        name,
        goal,
        rounds,
        reply: files.collect(),
        rollup: "x\n".to_owned(),
        files: Vec::new(),
    }
}

/// Creates a workload with a code base of this many bytes, in files that are compared with the rollup.
fn code_base(size: usize) -> Workload {
    let body = "let words = [\"some\", \"thing\"]; // task-list\n".repeat(200);
    let paths = (0..size / body.len()).map(|n| format!("d{}/f{n}.rs", n % 50));
    let files: Vec<_> = paths.map(|path| (path, body.clone())).collect();
    let sections = files
        .iter()
        .map(|(path, body)| format!("--- {path} ---\n{body}"));
    Workload {
        name: "W5, a code base of 100 MB",
        goal: 1.5,
        rounds: 11,
        reply: "^^^a.rs\nfn a() {}\n^^^end\n".to_owned(),
        rollup: sections.collect(),
        files,
    }
}

fn measure(workload: &Workload) {
    let mut times = [Vec::new(), Vec::new()];
    // Nothing is deleted in between, because ext4 is slow to reuse inodes that were just freed.
    let mut used = Vec::new();
    for _ in 0..workload.rounds {
        for (is_floor, times) in [false, true].into_iter().zip(&mut times) {
            let server = ModelServer::gemini(&[&workload.reply]);
            let mut project = TestProject::new().with(&server).build(":").file(
                "agent-config/models.json",
                r#"{"models": {"gemini-2.5-pro": {"contextWindow": 1000000000}}}"#,
            );
            for (path, content) in &workload.files {
                project = project.file(path, content);
            }
            let project = project.file("agent-config/codeRollup.txt", &workload.rollup);
            let mut command = project.command(&["--quiet", "--sandbox", "off"]);
            if is_floor {
                let mut floor = Command::new(std::env::current_exe().unwrap());
                floor.arg(FLOOR).current_dir(project.path("")).env_clear();
                floor.envs(
                    command
                        .get_envs()
                        .filter_map(|(name, value)| Some((name, value?))),
                );
                command = floor;
            }
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let started = Instant::now();
            assert!(command.status().unwrap().success());
            times.push(started.elapsed());
            used.push(project);
        }
    }
    let [run, floor] = times.map(|mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64()
    });
    println!(
        "{:<28} {:>8.1} ms, the floor {:>8.1} ms: {:.2} times, goal {:.1}",
        workload.name,
        run * 1000.0,
        floor * 1000.0,
        run / floor,
        workload.goal
    );
}

/// Does the least possible work for a run.
fn floor(url: &str) {
    let read = |name: &str| fs::read_to_string(Path::new("agent-config").join(name)).unwrap();
    let key = read("gemini-key.txt");
    let prompt = format!("{}\n\n{}", read("query.txt"), read("codeRollup.txt"));
    let body = json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]}).to_string();
    let host = url.trim_start_matches("http://");
    let mut server = TcpStream::connect(host).unwrap();
    let head = format!(
        "POST /v1beta/models/gemini-2.5-pro:generateContent HTTP/1.1\r\nhost: {host}\r\nx-goog-api-key: {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        key.trim(),
        body.len()
    );
    server.write_all(head.as_bytes()).unwrap();
    server.write_all(body.as_bytes()).unwrap();
    let answer = receive(&mut server);
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let reply = answer["candidates"][0]["content"]["parts"][0]["text"].as_str();
    let mut rest = reply.unwrap();
    while let Some((path, file)) = rest
        .strip_prefix("^^^")
        .and_then(|rest| rest.split_once('\n'))
    {
        let (content, behind) = file.split_once("^^^end\n").unwrap();
        let path = Path::new(path);
        let is_plain = |part| matches!(part, Component::Normal(_));
        assert!(path.components().all(is_plain));
        let written = fs::write(path, content);
        if written.is_err() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        rest = behind;
    }
    assert!(Command::new("./build.sh").status().unwrap().success());
}

/// Receives an answer, and returns its body.
fn receive(server: &mut TcpStream) -> Vec<u8> {
    let (mut answer, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let amount = server.read(&mut chunk).unwrap();
        answer.extend_from_slice(&chunk[..amount]);
        let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.unwrap().trim().parse().unwrap();
        answer.drain(..end + 4);
        let missing = length - answer.len();
        answer.reserve(missing);
        server
            .take(missing as u64)
            .read_to_end(&mut answer)
            .unwrap();
        return answer;
    }
}
