//! How many system calls a file of a reply costs. They do not depend on the machine's load, as times do.

use std::fs;
use std::process::Command;

use super::support::TestProject;
use super::{RUN, can_trace};

/// More are made for no file: to verify, compare, write and date it, and to look what the build has made of it.
const MOST_CALLS: f64 = 8.5;

/// The system calls of a run whose reply has so many files, in 50 new directories.
fn calls(count: usize) -> usize {
    let files = (0..count).map(|n| format!("^^^d{}/f{n}.rs\nfn f() {{}}\n^^^end\n", n % 50));
    let reply: String = files.collect();
    let answer = serde_json::json!({"candidates": [{"content": {"parts": [{"text": reply}]}, "finishReason": "STOP"}]});
    let project = TestProject::new()
        .build(":")
        .file("recorded/initial-query-response.json", answer.to_string());
    let log = project.path("strace.log");
    let program = project.command(&RUN);
    let mut command = Command::new("strace");
    command
        // The build is nothing of the program's.
        .args(["-f", "-b", "execve", "-o"])
        .arg(&log)
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(project.path(""))
        .env_clear();
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap());
    }
    assert!(command.output().unwrap().status.success());
    let traced = fs::read_to_string(&log).unwrap();
    let is_call = |line: &&str| {
        let call = line.split_whitespace().nth(1).unwrap_or_default();
        call.starts_with(|c: char| c.is_ascii_lowercase())
            // The allocator's and the threads' calls are no matter of files.
            && !["mmap", "munmap", "madvise", "brk", "futex", "mremap"]
                .iter()
                .any(|other| call.starts_with(other))
    };
    traced.lines().filter(is_call).count()
}

#[test]
fn a_file_costs_few_system_calls() {
    if !can_trace() {
        return;
    }
    let (few, many) = (200, 600);
    let more = calls(many) - calls(few);
    let each =
        f64::from(u32::try_from(more).unwrap()) / f64::from(u32::try_from(many - few).unwrap());
    assert!(each <= MOST_CALLS, "{each} calls a file");
}
