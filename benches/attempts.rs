//! Compares the processor time of three concurrent attempts with that of one, each with a build that takes a few tenths
//! of a second. Goal: a ratio of 3.2.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark may panic like a test, and says what it has measured"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const FILES: usize = 2_000;
const RUNS: usize = 20;
const BUILD: &str = "#!/bin/sh\ni=0\nwhile [ $i -lt 300000 ]; do i=$((i+1)); done\n";

/// Returns the processor time of all children so far, in ticks.
fn ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields = fields.split(' ').skip(13).take(2);
    fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

fn project(root: &Path) {
    let write = |path: &str, content: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    for number in 0..FILES {
        write(
            &format!("src/{}/{number}.rs", number % 50),
            "fn main() {}\n",
        );
    }
    write(".gitignore", "/agent-config\n/logs\n");
    write("agent-config/query.txt", "Do something.\n");
    write(
        "agent-config/codeRollup.txt",
        "--- src/0/0.rs ---\nfn main() {}\n",
    );
    write("build.sh", BUILD);
    fs::set_permissions(root.join("build.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let answer = r#"{"candidates": [{"content": {"parts": [{"text": "^^^a.rs\nfn a() {}\n^^^end\n"}]}, "finishReason": "STOP"}]}"#;
    for query in ["initial-query", "attempt-query-2", "attempt-query-3"] {
        write(&format!("recorded/{query}-response.json"), answer);
    }
}

/// Returns the processor time of a run with these flags, in ticks.
fn measured(root: &Path, flags: &[&str]) -> u64 {
    let before = ticks();
    let mut command = Command::new(env!("CARGO_BIN_EXE_code-commit"));
    command.current_dir(root).args(["--replay", "recorded"]);
    let run = command.args(flags).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    fs::remove_file(root.join("a.rs")).unwrap();
    ticks() - before
}

fn main() {
    let dir = tempfile::tempdir().unwrap();
    project(dir.path());
    let (mut one, mut three) = (0, 0);
    // Alternates between the two, since other programs may be running.
    for _ in 0..RUNS {
        one += measured(dir.path(), &[]);
        three += measured(dir.path(), &["--attempts", "3"]);
    }
    let hundredths = three * 100 / one;
    println!(
        "three attempts take {}.{:02} times the processor time of one ({three} and {one} ticks of {RUNS} runs)",
        hundredths / 100,
        hundredths % 100
    );
}
