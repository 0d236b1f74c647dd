//! Runs on a nearly full disk: a small file system of their own.

use std::process::Command;

use crate::support::{Finished, ModelServer, TestProject, skipped};

/// The build does nothing and needs no sandbox, which may not work inside another.
const BUILT: [&str; 2] = ["--sandbox", "off"];

/// Runs a command in a project on a disk with so many KiB left, and with another one for `logs` if its size is given.
/// Brings back what is there at the end.
const ON_DISKS: &str = r#"
room=$1 logs=$2; shift 2
root=$PWD held=$(mktemp -d); trap 'rm -rf "$held"' EXIT
cp -a . "$held"
mount -t tmpfs -o size=8m none "$root"; cd "$root"
[ -z "$logs" ] || { mkdir logs; mount -t tmpfs -o "size=$logs" none logs; }
cp -a "$held/." .
left=$(df -k --output=avail . | tail -n 1)
head -c "$(((left - room) * 1024))" /dev/zero > full
code=0; "$@" || code=$?
rm -rf "$held" full; cp -a . "$held"; cd /
umount -R "$root"; find "$root" -mindepth 1 -delete; cp -a "$held/." "$root"
exit $code
"#;

/// Runs the program with so much room for the project, and for its logs apart; `None` if this machine does not allow that.
fn run(project: &TestProject, [room, logs]: [&str; 2], arguments: &[&str]) -> Option<Finished> {
    let mounts = "mount -t tmpfs none /tmp";
    let tried = Command::new("unshare")
        .args(["-rm", "sh", "-c", mounts])
        .output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        skipped("users cannot mount file systems on this machine");
        return None;
    }
    let program = project.command(arguments);
    let variables = program.get_envs();
    let output = Command::new("unshare")
        .args(["-rm", "sh", "-euc", ON_DISKS, "sh", room, logs])
        .arg(program.get_program())
        .args(arguments)
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .current_dir(project.path(""))
        .output();
    Some(Finished::new(project, arguments, output.unwrap()))
}

fn reply(file: &str, bytes: usize) -> String {
    format!("^^^{file}\n{}\n^^^end\n", "x".repeat(bytes))
}

#[test]
fn no_run_begins_without_room_for_its_result() {
    let server = ModelServer::gemini(&[&reply("src/main.rs", 1)]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    let Some(run) = run(&project, ["1024", "60k"], &BUILT) else {
        return;
    };
    run.exits(6).says(&[
        "-committing-code`: No space left",
        "hint: make room on the disk",
    ]);
    assert!(server.requests().is_empty());
    assert!(project.runs().is_empty());
    assert_eq!(project.tree(), before);
}

#[test]
fn a_run_whose_logs_find_no_more_room_ends_with_its_result() {
    let reply = format!("{}{}", "prose\n".repeat(100_000), reply("src/main.rs", 1));
    let server = ModelServer::gemini(&[&reply]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    let Some(run) = run(&project, ["1024", "400k"], &BUILT) else {
        return;
    };
    let run = run.exits(6).says(&["hint: make room on the disk"]);
    assert_eq!(run.result()["exit"]["name"], "local-io");
    assert_eq!(run.result()["tree"], "unchanged");
    assert_eq!(project.tree(), before);
}

#[test]
fn a_reply_for_which_there_is_no_room_is_not_applied() {
    let server = ModelServer::gemini(&[&(reply("src/a.rs", 1) + &reply("src/main.rs", 200_000))]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    let Some(run) = run(&project, ["64", "8m"], &BUILT) else {
        return;
    };
    let run = run.exits(6).says(&["hint: make room on the disk"]);
    assert_eq!(run.result()["tree"], "unchanged");
    assert_eq!(project.tree(), before);
}

#[test]
fn an_undo_for_which_there_is_no_room_changes_nothing_and_can_be_repeated() {
    let server = ModelServer::gemini(&[&reply("src/main.rs", 1)]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    project.run(&[]).exits(0);
    let after = project.tree();
    assert_ne!(after, before);
    // Where the logs are on another disk, the saved file cannot be linked instead.
    for room in [["32", ""], ["4", "8m"]] {
        let Some(run) = run(&project, room, &["undo"]) else {
            return;
        };
        run.exits(6).says(&["hint: make room on the disk"]);
        assert_eq!(project.tree(), after);
    }
    project.run(&["undo"]).exits(0);
    assert_eq!(project.tree(), before);
}
