//! The real program under strace, which kills it or makes each file system call fail in turn. If strace is not
//! installed, or tracing is not permitted, the tests say so and pass.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "that is how a test fails"
)]

#[path = "../support/mod.rs"]
#[expect(
    dead_code,
    unused_imports,
    reason = "the sweeps need little of a server"
)]
mod support;

mod calls;
mod chat;
mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};
use std::thread;

use support::{TestProject, skipped};

/// All calls by which the program may change the disk. A kill before any other call leaves the disk in the same state
/// as a kill before the next of these. Of the calls that open files, only those that create or write count.
const CHANGES: [&str; 16] = [
    "openat",
    "openat2",
    "write",
    "rename",
    "renameat",
    "renameat2",
    "link,linkat",
    "unlink,unlinkat",
    "mkdir,mkdirat",
    "fchmod",
    "fsync",
    "syncfs",
    "utimensat",
    "fallocate",
    "copy_file_range",
    "fchown",
];
/// All other calls by which it reads the disk. They fail with a faulty disk, not with a full one.
const LOOKS: [&str; 5] = [
    "read",
    "newfstatat,statx,fstat",
    "lseek",
    "getdents64",
    "flock",
];
/// More than the number of calls of any kind in a run.
const MANY: usize = 2_000;
/// The number of threads that share the faults of a test: one per core of the test machine.
const THREADS: usize = 2;

const REPLY: &str =
    "^^^a\nnew a\n^^^end\n^^^d/e/f\nnew f\n^^^end\n^^^gone\n^^^delete\n^^^src/z\nnew z\n^^^end\n";

type Tree = BTreeMap<String, String>;

/// Returns whether strace is installed and may trace.
fn can_trace() -> bool {
    let tried = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=none", "true"])
        .output();
    let can = tried.is_ok_and(|output| output.status.success());
    if !can {
        skipped("strace is not installed, or may not trace");
    }
    can
}

/// A recorded answer with this text.
fn answer(text: &str) -> String {
    serde_json::json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}).to_string()
}

fn project() -> TestProject {
    let mut project = TestProject::new()
        .file("a", "old a\n")
        .mode("a", 0o751)
        .file("gone", b"\xff\0")
        .build(":");
    for query in [
        "initial-query",
        "repair-query-1",
        "repair-query-2",
        "repair-query-3",
    ] {
        project = project.file(&format!("recorded/{query}-response.json"), answer(REPLY));
    }
    project
}

/// Returns the project's tree without the files in `agent-config`.
fn tree(project: &TestProject) -> Tree {
    let mut tree = project.tree();
    tree.retain(|path, _| !path.starts_with("agent-config"));
    tree
}

/// Runs the program under strace with these options; returns its exit and the calls.
fn traced(project: &TestProject, arguments: &[&str], told: &[&str]) -> (Output, String) {
    let log = project.path("strace.log");
    let program = project.command(arguments);
    let mut command = Command::new("strace");
    command
        // The build is not part of the program, so detach when it begins.
        .args(["-f", "-b", "execve"])
        .args(told)
        .arg("-o")
        .arg(&log)
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(project.path(""))
        .env_clear();
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap());
    }
    let output = command.output().unwrap();
    let calls = fs::read_to_string(&log).unwrap();
    fs::remove_file(&log).unwrap();
    (output, calls)
}

/// Runs the program with a fault at the `nth` call; `None` if there was no such call.
fn run_with(
    project: &TestProject,
    arguments: &[&str],
    calls: &str,
    fault: &str,
    nth: impl Display,
) -> Option<Output> {
    let trace = format!("trace={calls}");
    let inject = format!("inject={calls}:{fault}:when={nth}");
    let (output, traced) = traced(project, arguments, &["-e", &trace, "-e", &inject]);
    // strace exits in the same way as the traced program.
    let killed = output.status.signal() == Some(9);
    let happened = killed || traced.contains("(INJECTED)");
    happened.then_some(output)
}

/// Returns the calls that a fault applies to, counted per thread, as strace does. Opening a file for reading changes
/// nothing, and works on a full disk.
fn concerned(
    prepared: &TestProject,
    arguments: &[&str],
    calls: &str,
    fault: &str,
) -> Box<dyn Iterator<Item = usize>> {
    if fault == "error=EIO" || !calls.starts_with("openat") {
        return Box::new(1..MANY);
    }
    let trace = format!("trace={calls}");
    let (_, traced) = traced(&prepared.clone(), arguments, &["-e", &trace]);
    let mut made = BTreeMap::new();
    let mut changing = BTreeSet::new();
    let begun = format!(" {calls}(");
    for line in traced.lines().filter(|line| line.contains(&begun)) {
        let made: &mut usize = made.entry(line.split(' ').next()).or_default();
        *made += 1;
        if !line.contains("O_RDONLY") || line.contains("O_CREAT") {
            changing.insert(*made);
        }
    }
    Box::new(changing.into_iter())
}

/// Injects a fault at every call of every applicable kind. `arguments` are run in a copy of `prepared`, and `check`
/// examines the result.
fn sweep(
    prepared: &TestProject,
    arguments: &[&str],
    fault: &str,
    check: impl Fn(&TestProject, &Output, &str) + Sync,
) {
    let looks = LOOKS.iter().filter(|_| fault == "error=EIO");
    let calls: Vec<&str> = CHANGES.iter().chain(looks).copied().collect();
    let one_share = |share: usize| {
        let mut tried = 0;
        for calls in calls.iter().skip(share).step_by(THREADS) {
            for nth in concerned(prepared, arguments, calls, fault) {
                let project = prepared.clone();
                let Some(output) = run_with(&project, arguments, calls, fault, nth) else {
                    break;
                };
                let what = format!("{fault} at {calls} {nth} of {arguments:?}");
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(!said.contains("panicked"), "{what}: {said}");
                check(&project, &output, &what);
                tried += 1;
            }
        }
        tried
    };
    let one_share = &one_share;
    let tried: usize = thread::scope(|scope| {
        let shares: Vec<_> = (0..THREADS)
            .map(|share| scope.spawn(move || one_share(share)))
            .collect();
        shares.into_iter().map(|share| share.join().unwrap()).sum()
    });
    assert!(tried > 10, "{tried} calls");
}

const RUN: [&str; 5] = ["--quiet", "--sandbox", "off", "--replay", "recorded"];

fn after_a_run() -> TestProject {
    let project = project();
    project.run(&RUN).exits(0);
    project
}

fn old_and_new() -> (Tree, Tree) {
    (tree(&project()), tree(&after_a_run()))
}

/// Checks that a recovery leaves the old tree or the new one, whenever the run was killed.
fn sweep_kills(prepared: &TestProject, arguments: &[&str]) {
    if !can_trace() {
        return;
    }
    let (old, new) = old_and_new();
    sweep(prepared, arguments, "signal=SIGKILL", |project, _, what| {
        project.run(&["recover"]).exits(0);
        let now = tree(project);
        assert!(now == old || now == new, "{what}: {now:#?}");
    });
}

#[test]
fn killed_at_any_call_a_run_leaves_the_old_tree_or_the_new_one() {
    sweep_kills(&project(), &RUN);
}

/// The same in a scratch tree, where only the second reply passes.
#[test]
fn killed_at_any_call_a_run_in_a_scratch_tree_leaves_the_old_tree_or_the_new_one() {
    let build = "test -e d/again || { touch d/again; exit 1; }";
    let scratch = [&RUN[..], &["--scratch"]].concat();
    if !can_trace() {
        return;
    }
    let (old, new) = old_and_new();
    let without_script = |mut tree: Tree| {
        tree.remove("build.sh");
        tree
    };
    let (old, new) = (without_script(old), without_script(new));
    let prepared = project().build(build);
    sweep(&prepared, &scratch, "signal=SIGKILL", |project, _, what| {
        project.run(&["recover"]).exits(0);
        let now = without_script(tree(project));
        assert!(now == old || now == new, "{what}: {now:#?}");
    });
}

/// If the files can be neither installed nor restored, they are left to `recover`, and the tree is left to the user.
#[test]
fn scratch_tree_is_kept_when_it_can_be_neither_applied_nor_reverted() {
    if !can_trace() {
        return;
    }
    let scratch = [&RUN[..], &["--scratch"]].concat();
    let old = tree(&project());
    let mut seen = 0;
    for nth in 1..MANY {
        let project = project();
        let from = format!("{nth}+");
        let Some(output) = run_with(&project, &scratch, "renameat2", "error=EIO", from) else {
            break;
        };
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if let Some((_, kept)) = said.split_once("what the run has made is kept in `") {
            let kept = std::path::Path::new(kept.split('`').next().unwrap());
            assert_eq!(fs::read_to_string(kept.join("a")).unwrap(), "new a\n");
            fs::remove_dir_all(kept.parent().unwrap()).unwrap();
            let run = project.runs().pop().unwrap();
            let result = fs::read_to_string(run.join("result.json")).unwrap();
            assert!(result.contains(r#""tree": "changed""#), "{result}");
            seen += 1;
        } else {
            assert_eq!(tree(&project), old, "{nth}: {said}");
        }
        project.run(&["recover"]).exits(0);
        assert_eq!(tree(&project), old, "{nth}: {said}");
    }
    assert!(seen > 0);
}

/// Of two attempts, only the second passes.
#[test]
fn killed_at_any_call_a_run_of_attempts_leaves_the_old_tree_or_the_new_one() {
    if !can_trace() {
        return;
    }
    let failing = answer("^^^bad\nx\n^^^end\n");
    let prepared = project()
        .build("test ! -e bad")
        .file("recorded/initial-query-response.json", failing)
        .file("recorded/attempt-query-2-response.json", answer(REPLY));
    let attempts = [&RUN[..], &["--attempts", "2"]].concat();
    let done = prepared.clone();
    done.run(&attempts).exits(0);
    let (old, new) = (tree(&prepared), tree(&done));
    sweep(
        &prepared,
        &attempts,
        "signal=SIGKILL",
        |project, _, what| {
            project.run(&["recover"]).exits(0);
            let now = tree(project);
            assert!(now == old || now == new, "{what}: {now:#?}");
        },
    );
}

#[test]
fn killed_at_any_call_the_recovery_can_be_done_again() {
    if !can_trace() {
        return;
    }
    // The run was killed with one or three of its files in place.
    for nth in [2, 4] {
        let killed = project();
        run_with(&killed, &RUN, "renameat2", "signal=SIGKILL", nth).unwrap();
        sweep_kills(&killed, &["recover"]);
    }
}

#[test]
fn killed_at_any_call_an_undo_leaves_one_of_the_two_trees() {
    sweep_kills(&after_a_run(), &["undo"]);
}

/// Checks that the exit code tells which tree is present, without any recovery, whatever fails.
fn sweep_errors(error: &str) {
    if !can_trace() {
        return;
    }
    let (old, new) = old_and_new();
    sweep(
        &project(),
        &RUN,
        &format!("error={error}"),
        |project, output, what| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let now = tree(project);
            match output.status.code() {
                Some(0) if said.contains("not all removed yet") => {}
                Some(0) => assert_eq!(now, new, "{what}: {said}"),
                // 127: the system could not load the program. 2: the program could not read `recorded`.
                Some(2 | 3 | 4 | 6 | 127) => assert_eq!(now, old, "{what}: {said}"),
                other => panic!("{what} ends with {other:?}: {said}"),
            }
            project.run(&["recover"]).exits(0);
        },
    );
}

#[test]
fn exit_code_shows_the_tree_when_any_call_finds_a_full_disk() {
    sweep_errors("ENOSPC");
}

#[test]
fn exit_code_shows_the_tree_when_any_call_fails() {
    sweep_errors("EIO");
}

#[test]
fn exit_code_shows_the_tree_when_a_call_of_the_second_reply_fails() {
    if !can_trace() {
        return;
    }
    let (old, new) = old_and_new();
    let prepared = project().build("test -e logs/again || { touch logs/again; exit 1; }");
    let without_script = |mut tree: Tree| {
        tree.remove("build.sh");
        tree
    };
    let (old, new) = (without_script(old), without_script(new));
    sweep(&prepared, &RUN, "error=EIO", |project, output, what| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let now = without_script(tree(project));
        match output.status.code() {
            Some(0) if said.contains("not all removed yet") => {}
            Some(0) => assert_eq!(now, new, "{what}: {said}"),
            Some(6 | 127) => assert_eq!(now, old, "{what}: {said}"),
            // The recording could not be read, before or after the first reply.
            Some(2..=4) => assert!(now == old || now == new, "{what}: {said}"),
            other => panic!("{what} ends with {other:?}: {said}"),
        }
        project.run(&["recover"]).exits(0);
    });
}

#[test]
fn the_journal_is_on_the_disk_before_anything_changes() {
    if !can_trace() {
        return;
    }
    let project = project();
    let log = project.path("logs.strace");
    let program = project.command(&RUN);
    // Only root may read the program's memory: strace, too, cannot show the text in its calls.
    let mut strace = Command::new("strace");
    if !rustix::process::geteuid().is_root() {
        strace = Command::new("unshare");
        strace.args(["--map-root-user", "strace"]);
    }
    let traced = strace
        .args([
            "-f",
            "-y",
            "-b",
            "execve",
            "-e",
            "trace=fsync,openat,renameat2,rename",
            "-o",
        ])
        .arg(&log)
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(project.path(""))
        .output();
    assert!(traced.unwrap().status.success());
    let calls = fs::read_to_string(&log).unwrap();
    let place = |part: &str| {
        let lines = calls.lines().position(|line| line.contains(part));
        lines.unwrap_or_else(|| panic!("no `{part}` in\n{calls}"))
    };
    let flush = |path: &str| {
        let mut lines = calls.lines();
        let flushed = lines.position(|line| line.contains("fsync(") && line.contains(path));
        flushed.unwrap_or_else(|| panic!("no fsync of `{path}` in\n{calls}"))
    };
    let journal = flush("/agent-config/.code-commit-journal-new>");
    let directory = flush("/agent-config>");
    let staged = place("-0\", O_RDWR|O_CREAT|O_EXCL");
    let undo_log = flush("/.staged-");
    assert!(
        undo_log < journal && journal < directory && directory < staged,
        "{calls}"
    );
}
