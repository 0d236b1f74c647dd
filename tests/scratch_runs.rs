//! Runs in a scratch tree: the changes that reach the project, and when they do.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::agent::{self, AgentProject};
use crate::support::anthropic::{call, say, status};
use crate::support::chat::ChatProject;
use crate::support::{
    Answer, Finished, ModelServer, TestProject, bubblewrap_works, for_every_user, gemini,
    open_directory,
};

const ONE: &str = "^^^src/a.rs\none\n^^^end\n^^^src/main.rs\n^^^delete\n";
const TWO: &str = "^^^src/a.rs\ntwo\n^^^end\n";
/// Passes with the second reply, and leaves files of its own.
const BUILD: &str =
    "pwd; mkdir -p target; echo cache > target/cache; echo lock > Cargo.lock; grep -q two src/a.rs";

/// A command for a build that prints the project's own file.
fn peeking(project: &TestProject) -> String {
    // The root of another process leads to the project itself.
    format!(
        "cat /proc/{}/root{}/src/a.rs 2>&1",
        std::process::id(),
        project.path("").display()
    )
}

fn kind(run: &Finished) -> String {
    run.result()["scratch"]["how"].as_str().unwrap().to_owned()
}

#[test]
fn a_change_reaches_the_project_when_its_build_passes() {
    for sandbox in ["off", "auto", "strict"] {
        if sandbox != "off" && !bubblewrap_works() {
            return;
        }
        let server = ModelServer::gemini(&[ONE, TWO]);
        let project = TestProject::new().with(&server).build(BUILD);
        let before = project.tree();
        let run = project.run(&["--scratch", "--sandbox", sandbox]).exits(0);
        assert_eq!(project.read("src/a.rs"), "two\n");
        assert!(!project.path("src/main.rs").exists());
        assert!(!project.path("target").exists() && !project.path("Cargo.lock").exists());
        let result = run.result();
        assert_eq!(result["tree"], "changed");
        assert_eq!(result["attempts"][1]["build"]["sandbox"], sandbox);
        assert!(["overlay", "reflink", "copy"].contains(&&*kind(&run)));
        let root = project.path("").canonicalize().unwrap();
        let log = run.logged("initial-build.txt");
        assert!(
            kind(&run) != "overlay" || log.contains(root.to_str().unwrap()),
            "{log}"
        );
        let undone = project.run(&["undo"]).exits(0);
        undone.says(&[]);
        assert_eq!(project.tree(), before);
    }
}

#[test]
fn the_summary_is_in_the_project_whether_the_change_reaches_it_or_not() {
    for (reply, code) in [(TWO, 0), (ONE, 1)] {
        let server = ModelServer::gemini(&[reply; 4]);
        let project = TestProject::new().with(&server).build(BUILD);
        let run = project.run(&["--scratch", "--summary-file", "s.md"]);
        let run = run.exits(code);
        assert!(!run.stderr.contains("cannot write"), "{}", run.stderr);
        assert!(project.read("s.md").contains("Full record"));
    }
}

#[test]
fn nothing_of_a_failing_run_reaches_the_project_unless_it_is_to_be_kept() {
    let fails = |arguments: &[&str]| {
        let server = ModelServer::gemini(&[ONE; 4]);
        let project = TestProject::new().with(&server).build(BUILD);
        let before = project.tree();
        let run = project.run(arguments).exits(1);
        let same = project.tree() == before;
        (
            run.result()["tree"].clone(),
            same,
            project.run(&["undo"]).code,
            project.tree() == before,
        )
    };
    assert_eq!(fails(&["--scratch"]), (json!("unchanged"), true, 2, true));
    let kept = fails(&["--scratch", "--on-failure", "keep"]);
    assert_eq!(kept, (json!("changed"), false, 0, true));
}

#[test]
fn what_a_failed_run_has_made_is_kept_as_a_diff() {
    let server = ModelServer::gemini(&[ONE; 4]);
    let project = TestProject::new().with(&server).build(BUILD);
    let run = project.run(&["--scratch"]).exits(1);
    let kept = format!("{}/unapplied.diff", run.result()["log"].as_str().unwrap());
    let run = run.says(&[&format!(
        "nothing was applied; what the run has made is in `{kept}`"
    )]);
    assert!(run.logged("unapplied.diff").contains("+one\n"));
}

#[test]
fn a_reply_is_not_applied_in_part_where_its_build_replaces_a_file() {
    for replaced in [
        "ln -sf b.txt a.txt",
        "rm a.txt; mkdir a.txt",
        "printf '\\377' > a.txt",
    ] {
        let server = ModelServer::gemini(&["^^^a.txt\none\n^^^end\n^^^b.txt\none\n^^^end\n"]);
        let project = TestProject::new()
            .with(&server)
            .file("a.txt", "old\n")
            .build(replaced);
        let run = project.run(&["--scratch", "--sandbox", "off"]).exits(6);
        let run = run.says(&[
            "nothing was applied: the build has made `a.txt` something other than a text file",
        ]);
        assert_eq!(project.read("a.txt"), "old\n", "{replaced}");
        assert!(!project.path("b.txt").exists(), "{replaced}");
        assert_eq!(run.result()["tree"], "unchanged");
    }
}

#[test]
fn no_special_mode_bit_comes_over() {
    let server = ModelServer::gemini(&["^^^a.txt\none\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .file("a.txt", "old\n")
        .build("chmod 6755 a.txt");
    project.run(&["--scratch", "--sandbox", "off"]).exits(0);
    let mode = project
        .path("a.txt")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[test]
fn ignored_files_come_over_with_their_times_if_they_are_wanted() {
    let server = ModelServer::gemini(&[TWO, ONE, TWO]);
    let build = "mkdir -p target/x/y; echo new > target/x/y/z; touch -d '2001-02-03 04:05:06Z' target/x/y/z; \
        ln -sf y target/x/link; rm -f target/old; echo k > agent-config/k; chmod 700 target/x/y/z; truncate -s 1G target/holes; echo end >> target/holes; echo seen > seen; grep -q two src/a.rs";
    let project = TestProject::new()
        .with(&server)
        .file("target/old", "old")
        .file("target/kept", "kept")
        .build(build);
    project
        .run(&["--scratch=keep-ignored", "--sandbox", "off"])
        .exits(0);
    let path = project.path("target/x/y/z");
    let metadata = path.metadata().unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(981_173_106);
    assert_eq!(metadata.modified().unwrap(), time);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o700);
    assert_eq!(
        fs::read_link(project.path("target/x/link")).unwrap(),
        Path::new("y")
    );
    assert_eq!(project.read("target/kept"), "kept");
    let holes = project.path("target/holes").metadata().unwrap();
    assert_eq!(holes.len(), (1 << 30) + 4);
    assert!(holes.blocks() < 100, "{}", holes.blocks());
    assert!(!project.path("target/old").exists() && !project.path("seen").exists());
    assert_eq!(project.read("src/a.rs"), "two\n");
}

#[test]
fn a_hint_on_a_changed_gate_is_about_what_is_left_in_the_project() {
    let build =
        "mkdir -p sub/.git/objects sub/.git/refs; echo 'ref: refs/heads/main' > sub/.git/HEAD";
    let left = ", and undo it by hand; until then, git may run programs";
    for (flags, is_left) in [(&["--scratch"][..], false), (&[], true)] {
        let server = ModelServer::gemini(&[TWO]);
        let project = TestProject::new().with(&server).build(build);
        let run = project.run(flags).exits(1).says(&["see `gate.diff`"]);
        assert_eq!(run.stderr.contains(left), is_left, "{}", run.stderr);
        assert_eq!(project.path("sub").exists(), is_left);
    }
}

/// A user namespace in which no other one can be created.
const NO_NAMESPACES: &str = "exec unshare -Ur sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_mnt_namespaces; exec \"$@\"' sh \"$@\"";

/// The path at which a build can reach the project itself, from an overlay or from a copy at another path.
fn itself(project: &TestProject, is_mounted: bool) -> String {
    let path = project.path("").display().to_string();
    if is_mounted {
        format!("/proc/{}/root{path}", std::process::id())
    } else {
        path
    }
}

#[test]
fn concurrent_changes_to_ignored_files_are_left_alone() {
    for is_mounted in [true, false] {
        let server = ModelServer::gemini(&[TWO]);
        let project = TestProject::new()
            .with(&server)
            .file("target/old", "old\n")
            .file("target/gone", "old\n")
            .file("target/d/in", "old\n");
        let project_itself = itself(&project, is_mounted);
        let project = project.build(&format!(
            "test ! -e target/new && test ! -e target/both || exit 1
            for f in old both mine; do echo tree > target/$f; done
            rm -r target/gone target/d
            cd {project_itself}
            for f in old gone new both d/new; do echo theirs > target/$f; done"
        ));
        let arguments = ["--scratch=keep-ignored", "--sandbox", "off"];
        let run = if is_mounted {
            project.run(&arguments)
        } else {
            match as_user(&project, NO_NAMESPACES, &arguments) {
                Some(run) => run,
                None => return,
            }
        };
        let run = run.exits(0);
        assert!(is_mounted || kind(&run) != "overlay");
        for name in ["old", "gone", "new", "both", "d/new"] {
            let path = format!("target/{name}");
            assert_eq!(project.read(&path), "theirs\n", "{path} {}", kind(&run));
        }
        assert_eq!(project.read("target/mine"), "tree\n");
        assert!(!project.path("target/d/in").exists());
    }
}

#[test]
fn concurrent_changes_during_the_copy_are_left_alone() {
    let cache = tempfile::tempdir().unwrap();
    let server = ModelServer::gemini(&[TWO]);
    let project = TestProject::new()
        .with(&server)
        .file("target/old", "old\n")
        .variable("XDG_CACHE_HOME", cache.path().to_str().unwrap())
        .build("echo tree > target/old");
    let child = project.start(&["--scratch=keep-ignored", "--sandbox", "off"]);
    crate::support::within_a_minute(|| fs::read_dir(cache.path()).unwrap().next().is_some());
    let (begun, old) = (SystemTime::now(), project.path("target/old"));
    // File times lag behind the clock.
    crate::support::within_a_minute(|| {
        fs::write(&old, "theirs\n").unwrap();
        old.metadata().unwrap().modified().unwrap() > begun
    });
    Finished::new(&project, &[], child.wait_with_output().unwrap()).exits(0);
    assert_eq!(project.read("target/old"), "theirs\n");
}

#[test]
fn an_ignored_file_that_cannot_be_brought_over_holds_up_no_other() {
    let server = ModelServer::gemini(&[TWO]);
    let project = TestProject::new()
        .with(&server)
        .file("target/a/full", "old\n")
        .build("rm -r target/a; echo tree > target/a; echo tree > target/b");
    project
        .run(&["--scratch=keep-ignored", "--sandbox", "off"])
        .exits(0)
        .says(&["not all ignored files were brought over (1 failure): cannot write `target/a`"]);
    assert!(project.path("target/a").is_dir());
    assert_eq!(project.read("target/b"), "tree\n");
}

#[test]
fn concurrent_changes_are_reported_even_if_the_build_fails() {
    let server = ModelServer::gemini(&[TWO; 4]);
    let project = TestProject::new().with(&server).file("src/a.rs", "mine\n");
    let theirs = itself(&project, true);
    let project = project.build(&format!("echo theirs > {theirs}/src/a.rs; exit 1"));
    let run = project
        .run(&["--scratch", "--on-failure", "keep", "--sandbox", "off"])
        .exits(1)
        .says(&["changed while the run went on: `src/a.rs`"]);
    assert_eq!(project.read("src/a.rs"), "theirs\n");
    assert!(run.logged("unapplied.diff").contains("-mine\n+two\n"));
    assert_eq!(run.result()["tree"], "unchanged");
}

#[test]
fn directories_made_for_a_tree_go_where_none_can_be_made() {
    let server = ModelServer::gemini(&[]);
    let project = TestProject::new()
        .with(&server)
        .file("closed", "x")
        .mode("closed", 0);
    assert!(!project.path("logs").exists());
    let Some(run) = as_user(&project, &unreadable(), &["--scratch"]) else {
        return;
    };
    assert_ne!(run.code, 0);
    run.says(&["the project cannot be copied"]);
    assert!(!project.path("logs").exists());
}

/// Disables namespaces, and root's right to read everything.
fn unreadable() -> String {
    NO_NAMESPACES.replace(
        "exec \"$@\"'",
        "exec setpriv --bounding-set=-all --inh-caps=-all \"$@\"'",
    )
}

#[test]
fn concurrent_changes_are_not_overwritten() {
    for (edited, code) in [("src/a.rs", 6), ("src/b.rs", 0)] {
        let server = ModelServer::gemini(&[TWO]);
        let project = TestProject::new().with(&server).file("src/a.rs", "mine\n");
        let gate = project.path("../").join(format!(
            "{}-go",
            project.path("").file_name().unwrap().to_str().unwrap()
        ));
        let project = project.build(&format!(
            "echo ready > {0}; while test -e {0}; do :; done",
            gate.display()
        ));
        let child = project.start(&["--scratch", "--sandbox", "off"]);
        crate::support::within_a_minute(|| gate.exists());
        fs::write(project.path(edited), "theirs\n").unwrap();
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(project.path("src/a.rs"), executable).unwrap();
        fs::remove_file(&gate).unwrap();
        let run = Finished::new(&project, &[], child.wait_with_output().unwrap()).exits(code);
        assert_eq!(project.read(edited), "theirs\n");
        if code == 6 {
            let run = run.says(&[
                "changed while the run went on: `src/a.rs`",
                "unapplied.diff",
            ]);
            assert!(run.logged("unapplied.diff").contains("-mine\n+two\n"));
            assert_eq!(run.result()["tree"], "unchanged");
        } else {
            assert_eq!(project.read("src/a.rs"), "two\n");
            let mode = || {
                let found = project.path("src/a.rs").metadata().unwrap();
                found.permissions().mode() & 0o777
            };
            assert_eq!(mode(), 0o755);
            project.run(&["undo"]).exits(0);
            assert_eq!(project.read("src/a.rs"), "mine\n");
            assert_eq!(mode(), 0o755);
        }
    }
}

#[test]
fn concurrent_changes_are_kept_next_to_the_runs_version() {
    for flags in [&["--scratch"][..], &["--scratch", "--attempts", "2"]] {
        let project = TestProject::new().file("src/a.rs", "mine\n");
        let path = project.path("src/a.rs");
        let theirs = Answer::gemini_after(move || fs::write(path, "theirs\n").unwrap(), TWO);
        let server = ModelServer::start([theirs, Answer::json(&gemini(TWO))]);
        let project = project.with(&server).file(
            "agent-config/codeRollup.txt",
            "--- src/a.rs ---\nmine\n--- src/main.rs ---\nfn main() {}\n",
        );
        let told = "changed while the run went on: `src/a.rs`";
        let run = project.run(flags).exits(6).says(&[told, "unapplied.diff"]);
        assert_eq!(project.read("src/a.rs"), "theirs\n");
        assert!(run.logged("unapplied.diff").contains("-theirs\n+two\n"));
        let result = run.result();
        assert_eq!(result["tree"], "unchanged");
        assert_eq!(result["choice"]["taken"], Value::Null);
        project.run(&["undo"]).exits(2);
    }
}

#[test]
fn a_run_in_a_scratch_tree_holds_the_project() {
    let server = ModelServer::gemini(&[TWO]);
    let project = TestProject::new()
        .with(&server)
        .build("while ! test -e ../go; do :; done");
    let other = project.path("..").join("go");
    assert!(!other.exists());
    let peek = peeking(&project);
    let project = project.build(&format!("{peek}; grep -q two src/a.rs"));
    let run = project.run(&["--scratch", "--sandbox", "off"]).exits(0);
    assert!(
        run.logged("initial-build.txt").contains("No such file"),
        "{}",
        run.logged("initial-build.txt")
    );
    assert_eq!(project.read("src/a.rs"), "two\n");
}

/// Runs as a user without rights, with `prelude` first.
fn as_user(project: &TestProject, prelude: &str, arguments: &[&str]) -> Option<Finished> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let chown = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(project.path(""))
        .status();
    assert!(chown.unwrap().success());
    let command = project.command(arguments);
    let place = open_directory();
    let mut outer = Command::new("setpriv");
    outer
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "sh",
            "-c",
        ])
        .arg(format!("{prelude}\nexec \"$@\""))
        .arg("sh")
        .arg(for_every_user(command.get_program().as_ref(), place.path()))
        .args(command.get_args())
        .current_dir(project.path(""))
        .env_clear();
    for (name, value) in command.get_envs() {
        outer.env(name, value.unwrap());
    }
    Some(Finished::new(project, arguments, outer.output().unwrap()))
}

#[test]
fn a_user_without_rights_gets_the_same() {
    for sandbox in ["off", "auto", "strict"] {
        let server = ModelServer::gemini(&[ONE, TWO]);
        let project = TestProject::new().with(&server).build(BUILD);
        let arguments = ["--scratch", "--sandbox", sandbox];
        let Some(run) = as_user(&project, "", &arguments) else {
            return;
        };
        let run = run.exits(0);
        assert_eq!(kind(&run), "overlay");
        assert_eq!(run.result()["attempts"][1]["build"]["sandbox"], sandbox);
        assert_eq!(project.read("src/a.rs"), "two\n");
        assert!(!project.path("target").exists());
    }
}

#[test]
fn a_tree_may_lie_on_another_file_system_than_the_project() {
    // In an overlay over two file systems, the devices of files are not those of their directories.
    let cache = tempfile::tempdir_in("/dev/shm").unwrap();
    let server = ModelServer::gemini(&[ONE, TWO]);
    let project = TestProject::new()
        .with(&server)
        .file("src/a.rs", "old\n")
        .variable("XDG_CACHE_HOME", cache.path().to_str().unwrap())
        .build(BUILD);
    let before = project.tree();
    project.run(&["--scratch"]).exits(0);
    assert_eq!(project.read("src/a.rs"), "two\n");
    project.run(&["undo"]).exits(0);
    assert_eq!(project.tree(), before);
}

#[test]
fn cargo_builds_nothing_again_in_a_scratch_tree() {
    let manifest = |name: &str, rest: &str| {
        format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{rest}")
    };
    let server = ModelServer::gemini(&[
        "^^^README.md\none\n^^^end\n",
        "^^^README.md\ntwo\n^^^end\n",
        "^^^src/main.rs\nfn main() { let _ = part::two(); }\n^^^end\n",
    ]);
    let project = TestProject::new()
        .with(&server)
        .file("part/Cargo.toml", manifest("part", ""))
        .file("part/src/lib.rs", "pub fn two() -> u8 { 2 }\n")
        .file("part/build.rs", "fn main() {}\n")
        .file(
            "Cargo.toml",
            manifest("whole", "[dependencies]\npart = { path = \"part\" }\n"),
        )
        .build("cargo build --offline --verbose");
    let built = |arguments: &[&str]| {
        let run = project.run(&[&["--allow-stale", "--sandbox", "off"], arguments].concat());
        let log = run.exits(0).logged("initial-build.txt");
        let said = [
            "Fresh part",
            "Fresh whole",
            "Compiling part",
            "Compiling whole",
        ];
        said.map(|said| log.contains(said))
    };
    assert_eq!(built(&[]), [false, false, true, true]);
    assert_eq!(built(&["--scratch"]), [true, true, false, false]);
    assert_eq!(built(&["--scratch"]), [true, false, false, true]);
}

#[test]
fn without_namespaces_a_copy_takes_the_place() {
    let server = ModelServer::gemini(&[ONE, TWO]);
    let project = TestProject::new().with(&server).build(BUILD);
    let Some(run) = as_user(&project, NO_NAMESPACES, &["--scratch=keep-ignored"]) else {
        return;
    };
    let run = run.exits(0);
    assert!(["reflink", "copy"].contains(&&*kind(&run)));
    let run = run.says(&["no scratch tree can be mounted here"]);
    assert_eq!(project.read("src/a.rs"), "two\n");
    assert_eq!(project.read("target/cache"), "cache\n");
    assert!(!project.path("Cargo.lock").exists());
    let log = run.logged("initial-build.txt");
    assert!(log.contains("code-commit-scratch"), "{log}");
}

#[test]
fn a_dry_run_makes_no_tree_and_a_report_takes_none() {
    let server = ModelServer::gemini(&[]);
    let project = TestProject::new().with(&server);
    project.run(&["--scratch", "--dry-run"]).exits(0);
    project.run(&["--scratch", "--cc"]).exits(2);
    project.run(&["--scratch=other"]).exits(2);
}

#[test]
fn an_interrupted_run_leaves_the_project_as_it_was() {
    let server = ModelServer::gemini(&[TWO]);
    let project = TestProject::new()
        .with(&server)
        .build("kill -INT $PPID; sleep 60");
    let before = project.tree();
    let run = project.run(&["--scratch", "--sandbox", "off"]).exits(130);
    assert_eq!(run.result()["tree"], "unchanged");
    assert_eq!(project.tree(), before);
}

#[test]
fn a_run_continues_and_is_replayed_in_a_scratch_tree() {
    let server = ModelServer::gemini(&[ONE, ONE, ONE, ONE, TWO]);
    let project = TestProject::new().with(&server).build(BUILD);
    let before = project.tree();
    let run = project.run(&["--scratch"]).exits(1);
    project
        .run(&["--resume", &run.folder, "--scratch"])
        .exits(0);
    assert_eq!(project.read("src/a.rs"), "two\n");
    project.run(&["undo"]).exits(0);
    assert_eq!(project.tree(), before);
    let last = project
        .runs()
        .iter()
        .rev()
        .nth(1)
        .unwrap()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let run = project.run(&["--replay", &last, "--scratch", "--diff", "--baseline"]);
    let run = if run.code == 3 {
        project.run(&["--replay", &last, "--scratch", "--diff"])
    } else {
        run
    };
    let run = run.exits(0);
    assert!(run.stdout.contains("+two"), "{}", run.stdout);
}

/// Replies of an agent that writes a file, runs a command that changes others, and ends.
fn agents_work(verdict: &str) -> (AgentProject, ModelServer) {
    let command = "echo by command > made.txt; chmod 700 made.txt; rm src/main.rs; mkdir -p target; \
        echo cache > target/cache; printf '\\377' > binary";
    let replies = [
        agent::write("written.txt", "by tool\n"),
        agent::reply("COMMAND", command),
        agent::done(),
        verdict.to_owned(),
    ];
    AgentProject::scripted(&replies)
}

#[test]
fn an_agents_request_is_brought_over_at_its_end_and_undone_as_one() {
    let (agent, _server) = agents_work(agent::PASS);
    let before = agent.project.tree();
    let run = agent
        .run(&["-p", "go", "--scratch", "--sandbox", "off"])
        .exits(0);
    let run =
        run.says(&["left behind in the scratch tree (only text files are applied): `binary`"]);
    assert_eq!(agent.project.read("written.txt"), "by tool\n");
    assert_eq!(agent.project.read("made.txt"), "by command\n");
    let mode = agent
        .project
        .path("made.txt")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    for gone in ["src/main.rs", "target", "binary"] {
        assert!(!agent.project.path(gone).exists(), "{gone}");
    }
    assert_eq!(run.result()["tree"], "changed");
    assert!(run.result()["scratch"]["how"].is_string());
    agent.project.run(&["undo"]).exits(0);
    assert_eq!(agent.project.tree(), before);
}

#[test]
fn files_of_a_directory_that_a_command_removes_or_moves_are_gone_in_the_project() {
    let command = "mv src/old src/new; rm -r sub";
    let replies = [
        agent::reply("COMMAND", command),
        agent::done(),
        agent::PASS.to_owned(),
    ];
    let (agent, _server) = AgentProject::scripted(&replies);
    let agent = agent
        .with_file("src/old/m.py", "m\n")
        .with_file("sub/deep/er.txt", "x\n");
    let project = &agent.project;
    let before = project.tree();
    agent
        .run(&["-p", "go", "--scratch", "--sandbox", "off"])
        .exits(0);
    assert_eq!(project.read("src/new/m.py"), "m\n");
    assert!(!project.path("src/old/m.py").exists());
    assert!(!project.path("sub/deep/er.txt").exists());
    project.run(&["undo"]).exits(0);
    assert_eq!(project.tree(), before);
}

#[test]
fn a_build_may_remove_the_directory_of_a_reply() {
    let server = ModelServer::gemini(&["^^^sub/k.txt\none\n^^^end\n"]);
    let project = TestProject::new().with(&server).build("rm -r sub");
    let run = project.run(&["--scratch"]).exits(0);
    assert!(!project.path("sub/k.txt").exists(), "{}", run.stdout);
}

#[test]
fn a_build_may_write_into_what_is_watched() {
    let server = ModelServer::gemini(&["^^^a.txt\ntwo\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .build("mkdir .git/more; git status");
    let git = Command::new("git")
        .args(["init", "-q"])
        .current_dir(project.path(""))
        .status();
    assert!(git.unwrap().success());
    project.run(&["--scratch"]).exits(0);
    assert_eq!(project.read("a.txt"), "two\n");
}

#[test]
fn paths_that_may_not_be_applied_do_not_hold_up_the_rest() {
    let command = "git init -q .; mkdir -p sub/.git; echo x > sub/.git/config; echo made > sub/made.txt; \
        truncate -s 65M large.txt; echo x > aux.txt; echo x > 'a|b'; echo x > Name; echo x > name; \
        for n in 1 2 3 4 5 6; do printf '\\377' > binary$n; done; echo made > made.txt";
    let replies = [
        agent::write("written.txt", "by tool\n"),
        agent::reply("COMMAND", command),
        agent::done(),
        agent::PASS.to_owned(),
    ];
    let (agent, _server) = AgentProject::scripted(&replies);
    let run = agent
        .run(&["-p", "go", "--scratch", "--sandbox", "off"])
        .exits(0);
    for path in ["written.txt", "made.txt", "sub/made.txt"] {
        assert!(agent.project.path(path).exists(), "{path}");
    }
    for path in [
        ".git",
        "sub/.git",
        "large.txt",
        "aux.txt",
        "a|b",
        "name",
        "binary1",
    ] {
        assert!(!agent.project.path(path).exists(), "{path}");
    }
    let warnings = run.result()["warnings"].to_string();
    let left = "left behind in the scratch tree (only text files are applied): `.git`, ";
    assert!(
        warnings.contains(left) && warnings.contains(" more"),
        "{warnings}"
    );
    assert!(!warnings.contains(".git/"), "{warnings}");
}

#[test]
fn a_failed_request_of_an_agent_leaves_the_project_as_it_was() {
    let (agent, _server) = agents_work("Overall: FAIL\nFeedback: no");
    let before = agent.project.tree();
    let run = agent.run(&["-p", "go", "--scratch", "--sandbox", "off"]);
    assert_ne!(run.code, 0);
    assert_eq!(agent.project.tree(), before);
    assert_eq!(run.result()["tree"], "unchanged");
    assert!(run.logged("unapplied.diff").contains("+by tool"));
}

/// The note to an agent whose scratch tree was discarded.
const DISCARDED: &str = "in a scratch tree alone, and that was discarded";
/// The note to an agent whose files were changed by someone else.
const CHANGED: &str = "changed since you last saw them";

#[test]
fn dev_is_informed_once_of_a_discarded_scratch_tree() {
    let write = || agent::streamed(&agent::write("a.txt", "a\n"));
    let end = || [agent::done(), agent::PASS.to_owned()].map(|text| agent::streamed(&text));
    let scratch = ["--scratch", "-p", "go"];
    for is_killed in [true, false] {
        let (silence, waiting) = Answer::silence();
        let refused = Answer::error(400, &json!({"error": "no"}));
        let cut = if is_killed { silence } else { refused };
        let rest = [end(), end()].into_iter().flatten();
        let server = ModelServer::start([write(), cut].into_iter().chain(rest));
        let agent = AgentProject::new(&server);
        if is_killed {
            let mut child = agent.spawn(&scratch);
            waiting.recv().unwrap();
            child.kill().unwrap();
            child.wait().unwrap();
        } else {
            agent.run(&scratch).exits(4);
        }
        assert!(!agent.project.path("a.txt").exists());
        let run = agent.run(&["--resume", "-p", ""]).exits(0);
        run.says(&["was not applied"]);
        let run = agent.run(&["--resume", "-p", "on"]).exits(0);
        assert!(!run.stderr.contains("was not applied"), "{}", run.stderr);
        for nth in [2, 4] {
            let sent = server.requests()[nth].json().to_string();
            assert_eq!(sent.matches(DISCARDED).count(), 1, "{sent}");
        }
    }
    let server = ModelServer::start([write()].into_iter().chain(end()).chain(end()));
    let agent = AgentProject::new(&server);
    agent.run(&scratch).exits(0);
    assert!(agent.project.path("a.txt").exists());
    agent.run(&["--resume", "-p", "on"]).exits(0);
    let sent = server.requests()[3].json().to_string();
    assert!(!sent.contains(DISCARDED), "{sent}");
}

#[test]
fn chat_is_informed_once_of_a_discarded_scratch_tree() {
    let write = |path| call("write_file", json!({"path": path, "content": "a\n"}));
    let (chat, server) = ChatProject::scripted([
        write("a.txt"),
        status(400),
        say("Again."),
        say("Yes."),
        write("b.txt"),
        say("It is written."),
        say("Still."),
        say("Seen."),
    ]);
    let scratch = ["--auto-pilot", "--scratch", "-p", "write it"];
    chat.run(&scratch).exits(4);
    for request in ["again", "on"] {
        chat.run(&["--resume", "-p", request]).exits(0);
    }
    chat.run(&[&scratch[..], &["--resume"]].concat()).exits(0);
    chat.run(&["--resume", "-p", "on"]).exits(0);
    assert!(!chat.project.path("a.txt").exists() && chat.project.path("b.txt").exists());
    fs::write(chat.project.path("b.txt"), "by the user\n").unwrap();
    chat.run(&["--resume", "-p", "on"]).exits(0);
    let requests = server.messages();
    for (nth, sent) in requests.iter().enumerate().skip(2) {
        let sent = sent.to_string();
        assert_eq!(sent.matches(DISCARDED).count(), 1, "{sent}");
        assert_eq!(sent.contains(CHANGED), nth == 7, "{nth}: {sent}");
    }
}

#[test]
fn a_scratch_tree_in_which_nothing_was_changed_is_not_discarded() {
    let (chat, server) = ChatProject::scripted([
        call("read_file", json!({"path": "build.sh"})),
        status(400),
        say("Again."),
    ]);
    chat.run(&["--auto-pilot", "--scratch", "-p", "look"])
        .exits(4);
    let run = chat.run(&["--resume", "-p", "again"]).exits(0);
    assert!(!run.stderr.contains("was not applied"), "{}", run.stderr);
    let sent = server.messages()[2].to_string();
    assert!(!sent.contains(DISCARDED), "{sent}");
    assert!(!sent.contains(CHANGED), "{sent}");
}

#[test]
fn a_file_that_a_command_has_only_touched_was_not_changed_by_the_user() {
    let (chat, server) = ChatProject::scripted([
        call("read_file", json!({"path": "build.sh"})),
        call(
            "execute_command",
            json!({"command": "touch build.sh; echo b > b.txt"}),
        ),
        say("It is built."),
        say("Seen."),
    ]);
    chat.run(&["--auto-pilot", "--scratch", "-p", "build"])
        .exits(0);
    assert!(chat.project.path("b.txt").exists());
    chat.run(&["--resume", "-p", "on"]).exits(0);
    let sent = server.messages()[3].to_string();
    assert!(!sent.contains(CHANGED), "{sent}");
}

#[test]
fn effects_of_a_refused_request_in_a_scratch_tree_are_reported_as_discarded() {
    let (chat, server) = ChatProject::scripted([
        call("write_file", json!({"path": "n.txt", "content": "1\n"})),
        say("I will not say tha").stop("refusal"),
        say("I see."),
    ]);
    chat.run(&["--auto-pilot", "--scratch", "-p", "BAD WISH"])
        .exits(4);
    chat.run(&["--resume", "-p", "what now?"]).exits(0);
    let sent = server.messages()[2]["messages"].to_string();
    assert_eq!(sent.matches(DISCARDED).count(), 1, "{sent}");
    for told in ["BAD WISH", "n.txt", "stays as it is", CHANGED] {
        assert!(!sent.contains(told), "{told}: {sent}");
    }
}

#[test]
fn a_talk_takes_no_scratch_tree() {
    let project = TestProject::new();
    for agent in ["dev", "plan", "chat"] {
        project
            .run(&[agent, "--scratch"])
            .exits(2)
            .says(&["--prompt"]);
    }
}

/// Checks a run whose builds print the file system that they run on.
fn all_in_overlays(project: &TestProject, run: &Finished) {
    let gate = run.result()["gate"].clone();
    assert_eq!(gate["change"], "added", "{gate}");
    assert_eq!(project.read("src/a.rs"), "two\n");
    for name in run
        .files()
        .iter()
        .filter(|name| name.ends_with("build.txt"))
    {
        let log = run.logged(name);
        assert!(
            kind(run) != "overlay" || log.contains("overlay"),
            "{name}: {log}"
        );
    }
}

#[test]
fn a_verdict_on_the_gate_is_given_in_overlays_over_the_scratch_tree() {
    let test = "^^^tests/a.sh\ngrep -q two src/a.rs\n^^^end\n";
    let prepared = |server: &ModelServer| {
        let build = "stat -f -c %T . >&2; for test in tests/*.sh; do sh $test || exit 1; done";
        TestProject::new()
            .with(server)
            .file("tests/old.sh", "true\n")
            .file("src/a.rs", "one\n")
            .build(build)
    };
    let reply = format!("{TWO}{test}");
    for sandbox in ["off", "auto"] {
        let arguments = ["--scratch", "--gate", "report", "--sandbox", sandbox];
        let server = ModelServer::gemini(&[reply.as_str()]);
        let project = prepared(&server);
        all_in_overlays(&project, &project.run(&arguments).exits(0));
        let server = ModelServer::gemini(&[reply.as_str()]);
        let project = prepared(&server);
        if let Some(run) = as_user(&project, "", &arguments) {
            all_in_overlays(&project, &run.exits(0));
        }
    }
}
