//! The safety of the user's own work: files replaced by a run are saved, and can be restored.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::Value;

use crate::support::{GEMINI_KEY, ModelServer, TestProject};

const REPLY: &str = "^^^src/main.rs\nfn main() { new() }\n^^^end\n^^^src/deep/new.rs\nfn new() {}\n^^^end\n^^^gone\n^^^delete\n";

/// A project in which a run has replaced, created and removed one file each.
fn after_a_run(build: &str, replies: &[&str]) -> (TestProject, ModelServer) {
    let server = ModelServer::gemini(replies);
    let project = TestProject::new()
        .with(&server)
        .file("gone", b"caf\xe9 \0")
        .mode("gone", 0o751)
        .build(build);
    (project, server)
}

#[test]
fn undo_puts_the_project_back_as_it_was_before_the_last_run() {
    let (project, _server) = after_a_run("echo built", &[REPLY]);
    let before = project.tree();
    let run = project.run(&[]).exits(0);
    assert_ne!(project.tree(), before);
    let kept = |number: &str| {
        fs::read(project.path(&format!("logs/{}/replaced/{number}", run.folder))).unwrap()
    };
    assert_eq!(kept("1"), b"caf\xe9 \0");
    assert_eq!(kept("2"), b"fn main() {}\n");
    let undone = project.run(&["undo"]).exits(0);
    assert!(
        undone.stdout.starts_with(&format!(
            "done: the project is as it was before logs/{}; 2 put back, 1 removed\nlog: logs/",
            run.folder
        )),
        "{}",
        undone.stdout
    );
    assert_eq!(project.tree(), before);
    assert_eq!(undone.result()["workflow"], "undo");
    let again = project.run(&["undo"]).exits(0);
    assert!(again.stdout.contains("already"), "{}", again.stdout);
    // An undo is itself a run.
    project.run(&["undo", &undone.folder]).exits(0);
    assert_eq!(project.read("src/main.rs"), "fn main() { new() }\n");
    assert!(!project.path("gone").exists());
}

#[test]
fn undo_reverts_all_repairs_and_the_builds_changes_to_their_files() {
    let replies = [
        REPLY,
        "^^^src/main.rs\nfn main() { newer() }\n^^^end\n^^^src/deep/new.rs\n^^^delete\n",
    ];
    let build =
        "echo '// formatted' >> src/main.rs; touch src/deep/built; grep -q newer src/main.rs";
    let (project, _server) = after_a_run(build, &replies);
    let before = project.tree();
    let run = project.run(&[]).exits(0);
    assert_eq!(run.result()["attempts"].as_array().unwrap().len(), 2);
    project
        .run(&["undo", &format!("logs/{}", run.folder)])
        .exits(0);
    // The build's own file is not removed, nor is its directory.
    fs::remove_file(project.path("src/deep/built")).unwrap();
    fs::remove_dir(project.path("src/deep")).unwrap();
    assert_eq!(project.tree(), before);
}

#[test]
fn undo_refuses_where_a_file_has_changed_since() {
    let (project, _server) = after_a_run("echo built", &[REPLY]);
    let run = project.run(&[]).exits(0);
    let project = project
        .file("src/main.rs", "mine\n")
        .file("gone", "mine too\n");
    let before = project.tree();
    let kept = format!(
        "`src/main.rs` (before the run it was `logs/{}/replaced/2`)",
        run.folder
    );
    project
        .run(&["undo"])
        .exits(6)
        .says(&[&kept, "`gone` (before", "hint: nothing was undone"]);
    assert_eq!(project.tree(), before);
}

#[test]
fn undo_takes_the_last_run_that_has_really_changed_something() {
    let broken = "^^^other\nbroken\n^^^end\n";
    let (project, _server) =
        after_a_run("! test -e other", &[REPLY, broken, broken, broken, broken]);
    let before = project.tree();
    project.run(&[]).exits(0);
    project
        .run(&["--on-failure", "revert", "--allow-stale"])
        .exits(1);
    project.run(&["undo"]).exits(0);
    assert_eq!(project.tree(), before);
}

#[test]
fn undo_gives_back_modes_that_the_build_has_changed() {
    let (project, _server) = after_a_run("chmod 777 src/main.rs", &[REPLY]);
    let before = project.tree();
    project.run(&[]).exits(0);
    project.run(&["undo"]).exits(0);
    assert_eq!(project.tree(), before);
}

#[test]
fn a_path_that_holds_the_key_is_undone_too() {
    let path = format!("src/{GEMINI_KEY}.txt");
    let server = ModelServer::gemini(&[&format!("^^^{path}\nnew\n^^^end\n")]);
    let project = TestProject::new().with(&server).file(&path, "old\n");
    let before = project.tree();
    let run = project.run(&[]).exits(0);
    assert!(!run.files().contains(&"changes.json".to_owned()));
    assert_eq!(project.read(&path), "new\n");
    project.run(&["undo"]).exits(0);
    let mut after = project.tree();
    after.retain(|path, _| !path.starts_with("agent-config/replaced"));
    assert_eq!(after, before);
}

#[test]
fn a_build_that_keeps_the_times_of_what_it_changes_is_not_taken_for_a_power_cut() {
    // More files than are flushed to disk at once.
    let many: String = (0..10).map(|n| format!("^^^f{n}\nnew\n^^^end\n")).collect();
    let server = ModelServer::gemini(&[&many, "^^^done\n^^^end\n"]);
    let build = "test -e done && exit; touch -r f0 times; echo more >> f0; touch -r times f0; rm times; exit 1";
    let project = TestProject::new().with(&server).build(build);
    project.run(&[]).exits(0);
    assert_eq!(project.read("f0"), "new\nmore\n");
    assert_eq!(project.read("f9"), "new\n");
}

#[test]
fn undo_refuses_anything_but_an_intact_run() {
    let (project, _server) = after_a_run("echo built", &[REPLY]);
    project.run(&["undo"]).exits(2).says(&["no run in `logs`"]);
    project
        .run(&["undo", "nope"])
        .exits(2)
        .says(&["`nope`", "hint: name a folder"]);
    project.run(&["undo", "src"]).exits(2);
    let run = project.run(&[]).exits(0);
    let after = project.tree();
    let log = format!("logs/{}/changes.json", run.folder);
    let changes = project.read(&log);
    let project = project.file(&log, changes.replace("src/main.rs", "../outside"));
    project.run(&["undo"]).exits(6).says(&["`../outside`"]);
    let tampered = changes.replace("\"directories\":[", "\"directories\":[\".git/refs\",");
    assert_ne!(tampered, changes);
    let project = project.file(&log, tampered);
    project.run(&["undo"]).exits(6).says(&["`.git/refs`"]);
    let project = project.file(&log, "{");
    project
        .run(&["undo"])
        .exits(6)
        .says(&["changes.json", "`replaced`"]);
    let kept = format!("logs/{}/replaced/1", run.folder);
    let project = project.file(&log, changes).file(&kept, "forged");
    project
        .run(&["undo"])
        .exits(6)
        .says(&["replaced/1", "was changed"]);
    assert_eq!(project.tree(), after);
}

#[test]
fn a_record_grants_no_rights_that_no_file_has() {
    let (project, _server) = after_a_run("echo built", &[REPLY]);
    let run = project.run(&[]).exits(0);
    let log = format!("logs/{}/changes.json", run.folder);
    let mut changes: Value = serde_json::from_str(&project.read(&log)).unwrap();
    let before = &mut changes["files"]["src/main.rs"]["before"];
    let mode = before["mode"].as_str().unwrap().to_owned();
    before["mode"] = format!("6{mode}").into();
    before["owner"] = serde_json::json!([4321, 4321]);
    let project = project.file(&log, changes.to_string());
    let owner = |path: &str| std::fs::metadata(project.path(path)).unwrap().uid();
    let own = owner("src/main.rs");
    project.run(&["undo"]).exits(0);
    assert_eq!(owner("src/main.rs"), own);
    let restored = std::fs::metadata(project.path("src/main.rs")).unwrap();
    assert_eq!(format!("{:o}", restored.mode() & 0o7777), mode);
}

#[test]
fn forged_paths_in_a_record_are_not_shown() {
    let (project, _server) = after_a_run("echo built", &[REPLY]);
    let run = project.run(&[]).exits(0);
    let log = format!("logs/{}/changes.json", run.folder);
    let changes = project.read(&log);
    for path in ["../outside", "/etc/passwd", "agent-config/gemini-key.txt"] {
        let forged = changes.replace("src/main.rs", path);
        std::fs::write(project.path(&log), forged).unwrap();
        for command in ["diff", "undo"] {
            let run = project.run(&[command, &run.folder]).exits(6);
            run.says(&[&format!("it names `{path}`, which no run may change")]);
        }
        project.run(&["log", &run.folder]).exits(0);
        project.run(&["report", &run.folder]).exits(0);
    }
}

#[test]
fn a_failing_run_takes_its_edits_back_when_asked_to() {
    let broken = "^^^src/main.rs\nbroken\n^^^end\n^^^new/a\n1\n^^^end\n";
    let (project, _server) = after_a_run("exit 1", &[broken; 4]);
    let before = project.tree();
    let run = project.run(&["--on-failure", "revert"]).exits(1);
    let run = run.says(&[
        "undone  1 put back, 1 removed",
        "/repair-query-3-build.txt`; `code-commit --resume last` asks for more repairs; the project is as it was",
    ]);
    assert_eq!(run.result()["tree"], "put-back");
    assert_eq!(project.tree(), before);
}

#[test]
fn by_default_the_last_edits_of_a_failing_run_stay() {
    let broken = "^^^src/main.rs\nbroken\n^^^end\n";
    let (project, _server) = after_a_run("exit 1", &[broken; 4]);
    let run = project
        .run(&[])
        .exits(1)
        .says(&["`code-commit undo` takes it back"]);
    assert_eq!(run.result()["tree"], "changed");
    assert_eq!(project.read("src/main.rs"), "broken\n");
}

#[test]
fn replaced_file_with_a_key_is_kept_beside_the_keys() {
    let server = ModelServer::gemini(&["^^^src/main.rs\nfn main() {}\n^^^end\n"]);
    let old = format!("const KEY: &str = \"{GEMINI_KEY}\";\n");
    let project = TestProject::new()
        .with(&server)
        .file("src/main.rs", &old)
        .mode("src/main.rs", 0o640);
    let run = project.run(&["--allow-stale"]).exits(0);
    assert!(
        !project
            .path(&format!("logs/{}/replaced", run.folder))
            .exists()
    );
    let kept = format!("agent-config/replaced/{}/1", run.folder);
    assert_eq!(project.read(&kept), old);
    project.run(&["undo"]).exits(0);
    assert_eq!(project.read("src/main.rs"), old);
    let mode = fs::metadata(project.path("src/main.rs"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn staged_files_of_a_killed_run_are_removed() {
    let (killed, done) = (
        "logs/2026-01-01-00-00-00-dev",
        "logs/2026-01-02-00-00-00-dev",
    );
    let staged = [
        "logs/.staged-a".to_owned(),
        "agent-config/.staged-a".to_owned(),
        "agent-config/replaced/2026-01-01-00-00-00-dev/.staged-a".to_owned(),
        format!("{killed}/.staged-a"),
    ];
    let mut project = TestProject::new()
        .file(&format!("{killed}/notes"), "mine")
        .file(&format!("{done}/result.json"), "{}");
    for path in &staged {
        project = project.file(path, "x");
    }
    project.run(&["recover"]).exits(0);
    assert!(staged.iter().all(|path| !project.path(path).exists()));
    assert_eq!(project.read(&format!("{killed}/notes")), "mine");
}

#[test]
fn undo_goes_further_back_past_what_was_undone() {
    let second = "^^^second\nx\n^^^end\n";
    let newer = "^^^src/main.rs\nfn main() { newer() }\n^^^end\n";
    let (project, _server) = after_a_run("echo built", &[REPLY, newer, second]);
    let before = project.tree();
    project.run(&[]).exits(0);
    project.run(&["--allow-stale"]).exits(0);
    project.run(&["--allow-stale"]).exits(0);
    project.run(&["undo"]).exits(0);
    assert!(!project.path("second").exists());
    project.run(&["undo"]).exits(0);
    project.run(&["undo"]).exits(0);
    assert_eq!(project.tree(), before);
    let project = project.file("src/main.rs", "mine\n");
    let more = project.run(&["undo"]).exits(0);
    assert_eq!(
        more.stdout,
        "done: every run with changes is already undone\n"
    );
    let none = project.run(&["log", "-n", "0"]).exits(2);
    none.says(&["'0' for '--number <N>': write a whole number above 0"]);
}

#[test]
fn undo_says_what_a_build_has_put_in_the_place_of_a_file() {
    for make in ["ln -s deep/new.rs src/main.rs", "mkfifo src/main.rs"] {
        let build = format!("rm src/main.rs; {make}");
        let (project, _server) = after_a_run(&build, &[REPLY]);
        project.run(&[]).exits(0);
        project
            .file("gone", "mine\n")
            .run(&["undo"])
            .exits(6)
            .says(&[
                "files were changed after the run: `gone` (before",
                "`src/main.rs` (now something else, such as a link; before",
            ]);
    }
}

#[test]
fn saved_files_that_are_gone_are_named() {
    let (project, _server) = after_a_run("echo built", &[REPLY]);
    let run = project.run(&[]).exits(0);
    let saved = format!("logs/{}/replaced", run.folder);
    fs::remove_dir_all(project.path(&saved)).unwrap();
    let gone = format!("`{saved}/1`, which keeps it, is gone");
    project.run(&["undo"]).exits(6).says(&[&gone]);
}

#[test]
fn text_too_large_to_compare_is_reported_as_such() {
    let large = "0123456789abcde\n".repeat((16 << 20) / 16 + 1);
    let reply = format!("^^^large\n{large}^^^end\n");
    let (project, _server) = after_a_run("echo built", &[&reply]);
    let run = project.run(&[]).exits(0);
    let lines = large.len() / 16;
    assert_eq!(run.result()["stat"]["added"], lines);
    let diff = project.run(&["diff"]).exits(0).stdout;
    let last = "\nFiles /dev/null and b/large are too large to compare, and differ\n";
    assert!(diff.ends_with(last), "{diff}");
    // git does not make an empty file of it.
    fs::write(project.path("x.diff"), &diff).unwrap();
    project.run(&["undo"]).exits(0);
    let git = std::process::Command::new("git")
        .args(["apply", "x.diff"])
        .current_dir(project.path(""))
        .output();
    assert!(!git.unwrap().status.success() && !project.path("large").exists());
}
