//! The number of system calls and instructions per file of a reply. Unlike times, these do not depend on the machine's
//! load.

use std::fs;
use std::process::{Command, Output};

use super::support::{TestProject, skipped};
use super::{RUN, can_trace};

/// Maximum number of calls per file, to verify, compare and write it, and to check it after the build.
const MOST_CALLS: f64 = 6.3;
/// Maximum number of instructions per file, in a build without optimisation.
const MOST_INSTRUCTIONS: f64 = 320_000.0;

/// The number of files in a small and in a large reply.
const FILES: [usize; 2] = [200, 600];

/// A project with a recorded reply of this many files, in 50 new directories.
fn project(files: usize) -> TestProject {
    let blocks = (0..files).map(|n| format!("^^^d{}/f{n}.rs\nfn f() {{}}\n^^^end\n", n % 50));
    let reply: String = blocks.collect();
    let answer = serde_json::json!({"candidates": [{"content": {"parts": [{"text": reply}]}, "finishReason": "STOP"}]});
    TestProject::new()
        .build(":")
        .file("recorded/initial-query-response.json", answer.to_string())
}

/// Runs the program under a tool that measures it.
fn measured(project: &TestProject, tool: &[&str]) -> Output {
    let program = project.command(&RUN);
    let mut command = Command::new(tool[0]);
    command
        .args(&tool[1..])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(project.path(""))
        .env_clear();
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

/// Returns the increase per additional file.
fn each(measure: impl Fn(usize) -> usize) -> f64 {
    let [few, many] = FILES;
    let float = |count: usize| f64::from(u32::try_from(count).unwrap());
    float(measure(many) - measure(few)) / float(many - few)
}

fn calls(files: usize) -> usize {
    let project = project(files);
    let log = project.path("strace.log");
    // The build does not count as part of the program.
    let tool = ["strace", "-f", "-b", "execve", "-o", log.to_str().unwrap()];
    measured(&project, &tool);
    let traced = fs::read_to_string(&log).unwrap();
    let is_call = |line: &&str| {
        let call = line.split_whitespace().nth(1).unwrap_or_default();
        call.starts_with(|c: char| c.is_ascii_lowercase())
            // Calls by the allocator and for threads do not depend on files.
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
    let each = each(calls);
    assert!(each <= MOST_CALLS, "{each} calls a file");
}

fn instructions(files: usize) -> usize {
    let tool = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=no",
        "--cachegrind-out-file=/dev/null",
    ];
    let output = measured(&project(files), &tool);
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.lines().rev().find_map(|line| line.split_once("refs:"));
    let (_, count) = count.unwrap_or_else(|| panic!("no count: {text}"));
    count.trim().replace(',', "").parse().unwrap()
}

#[test]
fn a_file_costs_few_instructions() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skipped("valgrind is not installed");
    }
    let each = each(instructions);
    assert!(each <= MOST_INSTRUCTIONS, "{each} instructions a file");
}
