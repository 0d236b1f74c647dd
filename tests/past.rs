//! Output about past runs: the list, the story, the diff, the summary.

use std::process::Command;

use crate::support::agent::{self, AgentProject, Endless, PASS, done, reply, write};
use crate::support::{Answer, ModelServer, TestProject, gemini};

const FIRST: &str =
    "Here.\n^^^src/main.rs\nfn main() { broken }\n^^^end\n^^^new.txt\none\ntwo\n^^^end\n";
const REPAIR: &str = "^^^src/main.rs\nfn main() { mended() }\n^^^end\n";

/// A project with a run that needed a repair.
fn repaired() -> (TestProject, String) {
    let server = ModelServer::gemini(&[FIRST, REPAIR]);
    let project = TestProject::new()
        .with(&server)
        .build("if grep broken src/main.rs; then echo 'error: it is broken' >&2; exit 7; fi");
    let run = project.run(&[]).exits(0);
    let folder = run.folder.clone();
    (project, folder)
}

#[test]
fn a_run_ends_with_its_warnings_and_the_change_as_git_shows_it() {
    let server = ModelServer::gemini(&[
        "^^^build.rs\nfn main() {}\n^^^end\n^^^src/main.rs\n#[allow(dead_code)]\nfn main() {}\n^^^end\n",
    ]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0);
    let (before, end) = run.stderr.rsplit_once("passed").unwrap();
    // Warnings about the edits themselves were shown with them.
    assert!(before.contains("warning: `build.rs`"), "{before}");
    let (warnings, stat) = end.split_at(end.find(" build.rs ").unwrap());
    assert!(warnings.contains("warning:"), "{end}");
    assert!(warnings.contains("allow"), "{end}");
    assert!(
        stat.contains(" src/main.rs | 1 +\n 2 files changed, 2 insertions(+)\n"),
        "{end}"
    );
    assert_eq!(
        run.result()["stat"],
        serde_json::json!({"files": 2, "added": 2, "removed": 0})
    );
    assert!(!run.stdout.contains("files changed"));
}

#[test]
fn the_list_has_a_line_for_each_run() {
    let (project, folder) = repaired();
    project.run(&["undo"]).exits(0);
    let listed = project.run(&["log"]).exits(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(lines[0].starts_with("run "), "{listed}");
    let words: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(
        words[..7],
        [
            folder.as_str(),
            "commit",
            "gemini-2.5-pro",
            "done",
            "1",
            "200",
            "100"
        ]
    );
    assert_eq!(words[7], "$0.0012");
    assert!(lines[2].contains("undo"), "{listed}");
    let told = |words: &[&str]| -> serde_json::Value {
        let words = [words, &["--output-format", "json"]].concat();
        serde_json::from_str(&project.run(&words).exits(0).stdout).unwrap()
    };
    let (all, one) = (told(&["log"]), told(&["log", "last"]));
    assert_eq!(all["runs"][0]["result"]["exit"]["name"], "done");
    assert_eq!(one["result"], all["runs"][1]["result"]);
    assert_eq!([&all["schema"], &one["schema"]], [1, 1]);
}

#[test]
fn a_run_that_was_undone_says_so_until_the_undo_is_undone() {
    let (project, folder) = repaired();
    let undo = project.run(&["undo"]).exits(0);
    assert_eq!(undo.result()["undid"], format!("logs/{folder}"));
    let told = || {
        let listed = project.run(&["log"]).exits(0).stdout;
        let run = listed.lines().find(|line| line.starts_with(&folder));
        let story = project.run(&["log", &folder]).exits(0).stdout;
        project.run(&["report", &folder]).exits(0);
        let page = project.read(&format!("logs/{folder}/report.html"));
        [
            run.unwrap().contains("(undone) "),
            story.contains(&format!(
                "Its changes were undone by logs/{}.\n",
                undo.folder
            )),
            page.contains("the changes were undone later"),
            project
                .run(&["diff", &folder])
                .stderr
                .contains(&format!("were undone by logs/{}", undo.folder)),
        ]
    };
    assert_eq!(told(), [true; 4]);
    project.run(&["report", "--all"]).exits(0);
    assert!(project.read("logs/report.html").contains("done, undone"));
    project.run(&["undo", &undo.folder]).exits(0);
    assert_eq!(told(), [false; 4]);
}

/// Moves the start of a run into the past.
fn age(project: &TestProject, folder: &str, started: &str) {
    let path = project.path(&format!("logs/{folder}/result.json"));
    let mut record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    record["started"] = started.into();
    std::fs::write(path, record.to_string()).unwrap();
}

#[test]
fn old_runs_are_removed_but_never_the_newest() {
    let (project, old) = repaired();
    age(&project, &old, "2020-01-31T10:00:00+00:00");
    let beside_keys = format!("agent-config/replaced/{old}");
    let open = "logs/2020-01-30-10-00-00-orchestrate";
    let project = project
        .file(&format!("{beside_keys}/0"), "x")
        .file(&format!("{open}/x"), "x");
    let newer = project.run(&["undo"]).exits(0).folder;
    project.run(&["log", "--prune", "30", "-n", "1"]).exits(2);
    let wrong = project.run(&["log", "--prune", "x"]).exits(2);
    wrong.says(&["write a whole number of 0 or more"]);
    let pruned = project.run(&["log", "--prune", "30"]).exits(0);
    assert_eq!(
        pruned.stdout,
        format!("removed logs/{old}\ndone: 1 run removed\n")
    );
    assert!(!project.path(&format!("logs/{old}")).exists());
    assert!(!project.path(&beside_keys).exists());
    // Another process may still be working on it.
    assert!(project.path(open).exists());
    // The target of a link belongs to another project.
    std::fs::rename(project.path("logs"), project.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", project.path("logs")).unwrap();
    age(&project, &newer, "2020-01-30T10:00:00+00:00");
    let pruned = project.run(&["log", "--prune", "30"]).exits(0);
    assert_eq!(pruned.stdout, "done: 0 runs removed\n");
    std::fs::remove_file(project.path("logs")).unwrap();
    std::fs::rename(project.path("elsewhere"), project.path("logs")).unwrap();
    age(&project, &newer, "2020-01-31T10:00:00+00:00");
    std::fs::remove_dir_all(project.path(open)).unwrap();
    let pruned = project
        .run(&["log", "--prune", "0", "--output-format", "json"])
        .exits(0);
    let pruned: serde_json::Value = serde_json::from_str(&pruned.stdout).unwrap();
    assert_eq!(pruned, serde_json::json!({"schema": 1, "removed": []}));
    assert!(project.path(&format!("logs/{newer}")).exists());
}

#[test]
fn what_a_build_made_of_a_replys_file_is_told() {
    let server = ModelServer::gemini(&["^^^a\none\n^^^end\n"; 2]);
    for (build, whole) in [(":", 0), ("echo two > a", 1)] {
        let project = TestProject::new().with(&server).build(build);
        project.run(&[]).exits(0);
        let told = project.run(&["log", "last"]).exits(0).stdout;
        let shown = told.matches("The whole change").count();
        assert_eq!(shown, whole, "{told}");
    }
}

#[test]
fn calls_of_unknown_cost_are_counted() {
    let mut answer = gemini("^^^a\n1\n^^^end\n");
    answer.as_object_mut().unwrap().remove("usageMetadata");
    let server = ModelServer::start([Answer::json(&answer), Answer::new(400, &[], "{}")]);
    let project = TestProject::new().with(&server);
    project.run(&[]).exits(0);
    // Nothing is charged for a call that is refused.
    let refused = project.run(&[]).exits(4);
    assert_eq!(refused.result()["cost"], 0.0);
    let listed = project.run(&["log", "-n", "1"]).exits(0).stdout;
    assert!(listed.contains("  $0  "), "{listed}");
    let total = project.run(&["log", "--total"]).exits(0).stdout;
    assert_eq!(
        total,
        "2 runs: 0 tokens, $0 and 1 call at an unknown price\n"
    );
}

#[test]
fn costs_of_runs_are_summed_since_a_time() {
    let (project, old) = repaired();
    age(&project, &old, "2020-01-31T10:00:00+00:00");
    project.run(&["undo"]).exits(0);
    for (arguments, expected) in [
        (&["log", "--total"][..], "2 runs: 300 tokens, $0.0012\n"),
        (
            &["log", "--total", "--since", "7d"],
            "1 run: 0 tokens, $0\n",
        ),
        (
            &["log", "--total", "--since", "2020-01-31"],
            "2 runs: 300 tokens, $0.0012\n",
        ),
        (
            &["log", "--total", "--since", "2020-02-01"],
            "1 run: 0 tokens, $0\n",
        ),
    ] {
        assert_eq!(
            project.run(arguments).exits(0).stdout,
            expected,
            "{arguments:?}"
        );
    }
    let listed = project
        .run(&["log", "-n", "5", "--since", "7d"])
        .exits(0)
        .stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let none = project.run(&["log", "--since", "0d"]).exits(0).stdout;
    assert_eq!(none, "no runs in `logs` since then\n");
    project
        .run(&["log", "--since", "yesterday"])
        .exits(2)
        .says(&["neither a date such as 2026-01-31"]);
}

#[test]
fn uncommitted_changes_that_a_reply_replaces_are_named() {
    let replaces = "uncommitted changes, which `code-commit undo` brings back: `src/main.rs`";
    for (content, is_named) in [("fn main() {}\n", false), ("fn main() { mine() }\n", true)] {
        let server = ModelServer::gemini(&[FIRST, REPAIR]);
        let project = TestProject::new()
            .with(&server)
            .build("! grep broken src/main.rs");
        for command in ["init", "add"] {
            let mut git = Command::new("git");
            let git = git.args([command, "."]).current_dir(project.path(""));
            assert!(git.output().unwrap().status.success());
        }
        let project = project.file("src/main.rs", content);
        let run = project.run(&["--rollup"]).exits(0);
        let named = run.stderr.matches(replaces).count();
        // The repair replaces files that the run itself has written.
        assert_eq!(named > 0, is_named, "{}", run.stderr);
        let warnings = run.result()["warnings"].to_string();
        assert_eq!(warnings.matches(replaces).count(), usize::from(is_named));
    }
}

#[test]
fn staged_changes_that_a_reply_replaces_are_named() {
    let project = TestProject::new()
        .with(&ModelServer::gemini(&[FIRST]))
        .build("true");
    let git = |words: &str| {
        let mut git = Command::new("git");
        let git = git.args(words.split(' ')).current_dir(project.path(""));
        assert!(git.output().unwrap().status.success());
    };
    git("init");
    git("add .");
    git("-c user.name=a -c user.email=a@b commit -m a");
    std::fs::write(project.path("src/main.rs"), "fn main() { mine() }\n").unwrap();
    git("add src/main.rs");
    project
        .run(&["--rollup"])
        .exits(0)
        .says(&["brings back: `src/main.rs`"]);
}

#[test]
fn a_story_shows_query_change_build_and_end() {
    let (project, folder) = repaired();
    let story = project.run(&["log", &folder]).exits(0).stdout;
    let mut from = 0;
    for part in [
        folder.as_str(),
        "✓ The build passed after 1 repair\n",
        "asked gemini-2.5-pro for a change.\n",
        "  Result      done (exit code 0)\n",
        "  Cost        $0.0012\n",
        "  Tokens in   200 (",
        "  Tokens out  100 (",
        "The query\n    ",
        "\nCalls\n  call ",
        "\n  The change  failed, exit code 7  ",
        "\n  Repair 1    passed  ",
        "The whole change\n",
        "\n  2 files changed, +3 \u{2212}1 lines\n",
        "✗ The change (failed, exit code 7)\n  gemini-2.5-pro, 100 tokens in, 50 out, $0.00061",
        "new.txt     | 2 ++",
        "src/main.rs | 2 +-",
        "✗ build.sh (failed, exit code 7, ",
        "error: it is broken",
        "✓ Repair 1 (passed)\n  gemini-2.5-pro",
        "\n  1 file changed, +1 \u{2212}1 lines\n",
        "✓ build.sh (passed, ",
    ] {
        let found = story[from..].find(part);
        from += found.unwrap_or_else(|| panic!("`{part}` is missing from byte {from} on\n{story}"));
    }
    project
        .run(&["log", "none"])
        .exits(2)
        .says(&["there is no run at `none`"]);
}

#[test]
fn a_run_that_was_killed_is_listed_and_reported() {
    let (project, folder) = repaired();
    std::fs::remove_file(project.path(&format!("logs/{folder}/result.json"))).unwrap();
    let listed = project.run(&["log"]).exits(0).stdout;
    for part in ["  killed  ", "gemini-2.5-pro", "$0.0012"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    project.run(&["report", "--all"]).exits(0);
    let page = project.read("logs/report.html");
    let fact = "<dt>Cost</dt><dd>$0.0012</dd>";
    assert!(page.contains(fact), "{page}");
    let story = project.run(&["log", &folder]).exits(0).stdout;
    assert!(
        story.contains("… Not finished: it was killed\n") && story.contains("Repair 1"),
        "{story}"
    );
    // The process that holds the lock may be that run.
    let root = std::fs::File::open(project.path("")).unwrap();
    root.lock().unwrap();
    assert!(project.run(&["log"]).exits(0).stdout.contains("unfinished"));
    let story = project.run(&["log", &folder]).exits(0).stdout;
    assert!(story.contains("it is still running, or"), "{story}");
}

#[test]
fn the_diff_of_a_run_is_what_it_changed_whatever_came_later() {
    let (project, folder) = repaired();
    let diff = project.run(&["diff"]).exits(0).stdout;
    assert!(
        diff.contains("-fn main() {}\n+fn main() { mended() }\n"),
        "{diff}"
    );
    assert!(!diff.contains("broken"), "{diff}");
    // Applied to the original project, the patch gives the new one.
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir(elsewhere.path().join("src")).unwrap();
    std::fs::write(elsewhere.path().join("src/main.rs"), "fn main() {}\n").unwrap();
    std::fs::write(elsewhere.path().join("change.patch"), &diff).unwrap();
    let applied = Command::new("git")
        .args(["apply", "change.patch"])
        .current_dir(elsewhere.path())
        .status();
    assert!(applied.unwrap().success());
    for file in ["src/main.rs", "new.txt"] {
        let applied = std::fs::read_to_string(elsewhere.path().join(file)).unwrap();
        assert_eq!(applied, project.read(file));
    }
    // A week later the files are different.
    let project = project
        .file("src/main.rs", "fn main() { later() }\n")
        .without("new.txt");
    assert_eq!(project.run(&["diff", &folder]).exits(0).stdout, diff);
    let stat = project.run(&["diff", &folder, "--stat"]).exits(0).stdout;
    assert!(
        stat.ends_with(" 2 files changed, 3 insertions(+), 1 deletion(-)\n"),
        "{stat}"
    );
}

#[test]
fn what_an_agent_wrote_is_not_shown_as_removed_when_it_is_not_known() {
    let replies = [
        agent::write("src/main.rs", "fn main() { one() }\n"),
        agent::done(),
        agent::PASS.to_owned(),
    ];
    let (agent, _server) = AgentProject::scripted(&replies);
    agent.work("go").exits(0);
    let project = agent.project.file("src/main.rs", "fn main() { two() }\n");
    let diff = project
        .run(&["diff"])
        .exits(0)
        .says(&["what the agent made of `src/main.rs` is not recorded: its change is left out"]);
    assert!(!diff.stdout.contains("-fn main"), "{}", diff.stdout);
    assert!(!diff.stdout.contains("changed nothing"), "{}", diff.stdout);
}

#[test]
fn the_diff_of_an_undo_is_the_way_back() {
    let (project, _) = repaired();
    let undone = project.run(&["undo"]).exits(0);
    let diff = project.run(&["diff", &undone.folder]).exits(0).stdout;
    assert!(
        diff.contains("-fn main() { mended() }\n+fn main() {}\n"),
        "{diff}"
    );
    assert!(diff.contains("deleted file mode"), "{diff}");
}

#[test]
fn a_build_that_rewrites_what_the_reply_wrote_is_in_the_diff() {
    let server = ModelServer::gemini(&["^^^a.txt\nreply\n^^^end\n"]);
    let project = TestProject::new().with(&server).build("echo built > a.txt");
    project.run(&[]).exits(0);
    let diff = project.run(&["diff"]).exits(0).stdout;
    assert!(diff.contains("+built\n"), "{diff}");
}

#[test]
fn the_whole_diff_is_shown_at_the_end_where_it_is_asked_for() {
    let server = ModelServer::gemini(&[REPAIR]);
    let run = TestProject::new().with(&server).run(&["--diff"]).exits(0);
    assert!(
        run.stdout
            .starts_with("diff --git a/src/main.rs b/src/main.rs\n"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("\ndone: build.sh passed"),
        "{}",
        run.stdout
    );
}

#[test]
fn a_summary_is_written_however_the_run_ends() {
    let hostile = "^^^a_b.txt\n<script>\n^^^end\n";
    for (reply, build, code, parts) in [
        (
            hostile,
            "true",
            0,
            &[
                "## code-commit: \u{2705} The build passed\n",
                "| done (exit code 0) |",
                "1 file changed, +1 \u{2212}0 lines\n",
                "| a\\_b.txt | +1 |",
                "| The change |",
            ][..],
        ),
        (
            hostile,
            "echo '```<b>'; exit 1",
            1,
            &[
                "| build-failed (exit code 1) |",
                "### Error",
                "````text\n```<b>\n````",
            ],
        ),
        (
            "^^^../x\ny\n^^^end\n",
            "true",
            5,
            &["| reply-rejected (exit code 5) |", "### Error"],
        ),
    ] {
        let server = ModelServer::gemini(&[reply, reply, reply, reply]);
        let project = TestProject::new().with(&server).build(build);
        project.run(&["--summary-file", "summary.md"]).exits(code);
        let summary = project.read("summary.md");
        for part in parts {
            assert!(summary.contains(part), "`{part}` is missing\n{summary}");
        }
    }
    let began_not = "The run did not begin: nothing was sent, and nothing was changed.\n";
    for (missing, arguments, code, parts) in [
        (
            "agent-config/query.txt",
            &[][..],
            3,
            &[
                "## code-commit: \u{274c} The project was not ready\n",
                "| not-ready (exit code 3) |",
                "`agent-config/query.txt\\` is missing",
                "hint: describe the task in",
            ][..],
        ),
        (
            "src/main.rs",
            &["--model", "none"],
            2,
            &[
                "## code-commit: \u{274c} The run was refused\n",
                "| usage (exit code 2) |",
                "there is no model \\`none\\`",
                "\nHint: \\`code-commit models\\` shows them",
            ],
        ),
    ] {
        let project = TestProject::new().without(missing);
        let arguments = [&["--summary-file", "summary.md"], arguments].concat();
        project.run(&arguments).exits(code);
        let summary = project.read("summary.md");
        for part in parts.iter().chain(&[began_not]) {
            assert!(summary.contains(part), "`{part}` is missing\n{summary}");
        }
        assert!(!summary.contains("Full record"), "{summary}");
    }
}

#[test]
fn a_file_that_was_written_removed_and_written_again_is_in_the_diff() {
    let write = "^^^a.txt\nsame\n^^^end\n";
    let server = ModelServer::gemini(&[write, "^^^a.txt\n^^^delete\n^^^b\nx\n^^^end\n", write]);
    let project = TestProject::new()
        .with(&server)
        .build("test -e a.txt && test -e b");
    project.run(&[]).exits(0);
    let diff = project.run(&["diff"]).exits(0).stdout;
    assert!(diff.contains("+same\n"), "{diff}");
    project.run(&["undo"]).exits(0);
    assert!(!project.path("a.txt").exists() && !project.path("b").exists());
}

#[test]
fn a_run_that_wrote_what_was_there_is_not_the_last_that_changed_anything() {
    let server = ModelServer::gemini(&[REPAIR, REPAIR]);
    let project = TestProject::new().with(&server);
    let first = project.run(&[]).exits(0);
    project.run(&["--allow-stale"]).exits(0);
    let diff = project.run(&["diff"]).exits(0).stdout;
    assert!(diff.contains("mended"), "{diff}");
    project.run(&["undo"]).exits(0);
    assert_eq!(
        project.read("src/main.rs"),
        "fn main() {}\n",
        "{}",
        first.folder
    );
}

#[test]
fn the_diff_is_shown_too_where_the_build_fails() {
    let server = ModelServer::gemini(&[REPAIR, "Sorry.", "Sorry.", "Sorry."]);
    let project = TestProject::new().with(&server).build("exit 1");
    let run = project.run(&["--diff"]).exits(1);
    assert!(
        run.stdout.contains("+fn main() { mended() }"),
        "{}",
        run.stdout
    );
}

#[test]
fn missing_kept_content_is_reported() {
    let (project, folder) = repaired();
    std::fs::remove_dir_all(project.path(&format!("logs/{folder}/replaced"))).unwrap();
    project
        .run(&["diff"])
        .exits(0)
        .says(&["what `src/main.rs` was before is not in the run's record any more"]);
}

#[test]
fn a_story_does_not_move_the_cursor() {
    let server = ModelServer::gemini(&["Nothing."; 4]);
    let project = TestProject::new()
        .with(&server)
        .build("printf '\\033]0;title\\007\\033[2J'; exit 1");
    let run = project.run(&[]).exits(1);
    let story = project.run(&["log", &run.folder]).exits(0).stdout;
    assert!(
        story.contains("]0;title") && !story.contains('\u{1b}'),
        "{story:?}"
    );
}

#[test]
fn a_summary_goes_through_what_lies_at_its_path() {
    let server = ModelServer::gemini(&["Nothing."]);
    let project = TestProject::new().with(&server).file("elsewhere.md", "old");
    std::os::unix::fs::symlink("elsewhere.md", project.path("link.md")).unwrap();
    project.run(&["--summary-file", "link.md"]).exits(0);
    assert!(project.read("elsewhere.md").contains("code-commit"));
    assert!(project.path("link.md").is_symlink());
}

#[test]
fn foreign_folders_are_not_runs() {
    let (project, folder) = repaired();
    let project = project.file("logs/notes/x.txt", "mine");
    std::os::unix::fs::symlink("/", project.path("logs/2026-01-01-01-01-01-link")).unwrap();
    let listed = project.run(&["log"]).exits(0).stdout;
    assert!(
        listed.contains(&folder) && !listed.contains("notes") && !listed.contains("link"),
        "{listed}"
    );
    project.run(&["log", "2026-01-01-01-01-01-link"]).exits(2);
}

#[test]
fn a_closed_stdout_is_an_error_only_for_requested_output() {
    let (project, _) = repaired();
    let commands: [&[&str]; 12] = [
        &["log"],
        &["diff"],
        &["diff", "--stat"],
        &["report"],
        &["report", "--output", "/dev/stdout"],
        &["models"],
        &["--dry-run", "--allow-stale"],
        &["completions", "bash"],
        &["man"],
        &["--help"],
        &["dev", "--help"],
        &["--version"],
    ];
    for arguments in commands {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = project.command(arguments);
        let done = command.stdout(full.unwrap()).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(6), "{arguments:?}: {said}");
        assert!(
            said.contains("error: cannot write"),
            "{arguments:?}: {said}"
        );
        if arguments.contains(&"/dev/stdout") {
            // The page was named by its file.
            continue;
        }
        // A reader that closes the pipe has read enough.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = project.command(arguments);
        let done = command.stdout(writer).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{arguments:?}: {said}");
        assert!(!said.contains("error: "), "{arguments:?}: {said}");
    }
}

/// A run of an agent: a file, a failing tool and reply, a command, an audit that does not pass, and one that does.
pub fn agents_run() -> (AgentProject, ModelServer, String) {
    let (agent, server) = AgentProject::scripted(&[
        write("greeting.txt", "hello\nworld\n"),
        reply("READ_FILE", "\"../none.txt\""),
        "nonsense".to_owned(),
        reply("COMMAND", "seq 1 100; echo the end"),
        done(),
        "The file is wrong.\n\nOverall: FAIL\nFeedback: Greet the moon.".to_owned(),
        write("greeting.txt", "hello\nmoon\n"),
        done(),
        PASS.to_owned(),
    ]);
    let run = agent.work("Write a greeting\nto the moon").exits(0);
    let folder = run.folder.clone();
    (agent, server, folder)
}

#[test]
fn a_story_shows_what_an_agent_did_step_by_step() {
    let (agent, _server, folder) = agents_run();
    let session = agent.session()["id"].as_str().unwrap().to_owned();
    let story = agent.project.run(&["log", &folder]).exits(0).stdout;
    in_order(
        &story,
        &[
            "✓ The work is done, and the audit has passed it\n",
            "ran test-model as an agent.\n",
            "  Tokens in   900\n",
            "  Tokens out  450\n",
            "The request\n    Write a greeting\n    to the moon\n",
            &format!("  Session: {session}\n"),
            "Changes\n  greeting.txt | 2 ++\n  1 file changed, +2 \u{2212}0 lines\n",
            "✓ Step 1 (WRITE_FILE)\n  test-model, 100 tokens in, 50 out, ",
            "    On we go.\n  ✓ WRITE_FILE greeting.txt … (done, ",
            "  wrote greeting.txt\n",
            "✗ Step 2 (READ_FILE failed)\n  test-model",
            "    On we go.\n  ✗ READ_FILE ../none.txt (failed, ",
            "✗ Step 3 (nothing done)\n  test-model",
            "    nonsense\n  Nothing was done: the reply was not understood",
            "✓ Step 4 (COMMAND)\n  test-model",
            "    On we go.\n  ✓ COMMAND seq 1 100; echo the end (exit code 0, ",
            " more lines\n\n",
            "✓ Step 5 (DONE)\n  test-model",
            "    On we go.\n  ✓ DONE It is done. (done, ",
            "✗ Audit 6 (not passed)\n  test-model",
            "  The audit did not pass the work.\n    The file is wrong.\n",
            "    Feedback: Greet the moon.\n",
            "✓ Step 7 (WRITE_FILE)\n  test-model",
            "✓ Audit 9 (passed)\n  test-model",
            "  The audit passed the work.\n",
        ],
    );
    for wrong in ["build.sh", "changed no file", "[result]", "repair"] {
        assert!(!story.contains(wrong), "{wrong}: {story}");
    }
    let listed = agent.project.run(&["log"]).exits(0).stdout;
    let words: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().collect();
    // No number of repairs comes before the tokens.
    assert_eq!(
        words[..6],
        [&folder, "dev", "test-model", "done", "900", "450"]
    );
}

#[test]
fn a_story_shows_why_an_agent_did_not_get_to_its_end() {
    let failing = reply("READ_FILE", "\"none.txt\"");
    let (agent, server) = AgentProject::scripted(&vec![failing; 10]);
    let run = agent.work("Read it").exits(1);
    let story = agent.project.run(&["log", &run.folder]).exits(0).stdout;
    in_order(
        &story,
        &[
            "✗ The agent's tools failed again and again\n",
            "  Result      tools-failed (exit code 1)\n",
            "✗ Error\n  gave up after 10 failures in a row: ",
            "✗ Step 10 (",
            "✗ READ_FILE none.txt (failed",
        ],
    );
    assert!(!story.contains("\nChanges"), "{story}");
    drop(server);
    let server = agent::server(&[done(), PASS.to_owned()]);
    let agent = agent.with_variable("DEV_AGENT_API_URL", &format!("{}/v1", server.url()));
    let run = agent.run(&["--resume", "-p", ""]).exits(0);
    let story = agent.project.run(&["log", &run.folder]).exits(0).stdout;
    in_order(
        &story,
        &["It continued the previous task.\n", "✓ Step 1 (DONE)\n"],
    );
}

#[test]
fn a_story_reports_summaries_and_what_is_no_longer_known() {
    let (agent, _server) = AgentProject::scripted(&[
        reply("READ_FILE", "\"long.txt\""),
        "SUMMARY OF IT ALL".to_owned(),
        write("a.txt", "a\n"),
        done(),
        PASS.to_owned(),
    ]);
    let agent = agent
        .with_file("long.txt", &"word ".repeat(4000))
        .configured(&serde_json::json!({"maxContextTokens": 4000}));
    let run = agent.work("read it").exits(0);
    let tell = || agent.project.run(&["log", &run.folder]).exits(0).stdout;
    in_order(
        &tell(),
        &[
            "  a.txt | 1 +\n",
            "Compression 2 (answered)\n  test-model",
            "  The reply summarizes the conversation so far.\n",
        ],
    );
    let lost = "What was in some of these files is not known any more";
    assert!(!tell().contains(lost));
    std::fs::write(agent.project.path("a.txt"), "mine\n").unwrap();
    assert!(tell().contains(lost));
    agent.project.run(&["report"]).exits(0);
    let page = agent
        .project
        .read(&format!("logs/{}/report.html", run.folder));
    assert!(page.contains(lost) && page.contains("1 compression, 1 audit call</small>"));
}

/// Checks that the text contains each part after the previous one.
pub fn in_order(text: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        let found = text[from..].find(part);
        from += found.unwrap_or_else(|| panic!("`{part}` is missing from byte {from} on\n{text}"));
    }
}

#[test]
fn an_agents_run_that_was_killed_shows_how_far_it_came() {
    let endless = Endless::new();
    let (agent, _server) =
        AgentProject::scripted(&[write("a.txt", "a\n"), reply("COMMAND", &endless.command())]);
    let mut child = agent.spawn(&["-p", "go"]);
    endless.begins(&agent);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(endless.ends());
    let run = agent.project.runs().pop().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    let story = agent.project.run(&["log", name]).exits(0).stdout;
    let command = &*endless.command();
    for part in ["Not finished: it ", "WRITE_FILE a.txt", "Step 2", command] {
        assert!(story.contains(part), "{part}: {story}");
    }
    agent.project.run(&["report", name]).exits(0);
    agent.project.run(&["undo"]).exits(0);
    assert!(!agent.project.path("a.txt").exists());
}

#[test]
fn the_last_run_is_the_last_by_time_whatever_the_folders_are_called() {
    let server = ModelServer::gemini(&["^^^one\nx\n^^^end\n", "^^^two\nx\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let first = project.run(&[]).exits(0).folder;
    // The clock or the time zone was changed meanwhile.
    let later = project.path("logs/2099-01-01-00-00-00-committing-code");
    std::fs::rename(project.path(&format!("logs/{first}")), later).unwrap();
    project.run(&[]).exits(0);
    let is_second = |name: &str| name.starts_with("20") && !name.starts_with("2099");
    let reported = project.run(&["report"]).exits(0).stdout;
    let (_, reported) = reported.split_once("logs/").unwrap();
    assert!(is_second(reported), "{reported}");
    assert!(project.run(&["diff"]).exits(0).stdout.contains("two"));
    let listed = project.run(&["log"]).exits(0).stdout;
    let (older, newer) = listed.split_once("2099-").unwrap();
    assert!(
        !older.contains("committing-code") && newer.contains("\n20"),
        "{listed}"
    );
    project.run(&["undo"]).exits(0);
    assert!(project.path("one").exists() && !project.path("two").exists());
}

#[test]
fn an_agents_run_of_before_is_reported_by_its_files() {
    let missing = reply("READ_FILE", "\"b.txt\"");
    let (agent, _server) =
        AgentProject::scripted(&[write("a.txt", "a\n"), missing, done(), PASS.to_owned()]);
    let folder = agent.work("go").exits(0).folder;
    let file = |name: &str| format!("logs/{folder}/{name}");
    // The records of the steps contained no more than this.
    std::fs::remove_file(agent.project.path(&file("steps.jsonl"))).unwrap();
    let mut record: serde_json::Value =
        serde_json::from_str(&agent.project.read(&file("result.json"))).unwrap();
    for step in record["attempts"].as_array_mut().unwrap() {
        step.as_object_mut().unwrap().remove("passed");
    }
    std::fs::write(agent.project.path(&file("result.json")), record.to_string()).unwrap();
    let tool = "[READ_FILE]\nb.txt\n[result]\n`b.txt` does not exist\n";
    std::fs::write(agent.project.path(&file("0002-step-tool.txt")), tool).unwrap();
    let story = agent.project.run(&["log", &folder]).exits(0).stdout;
    in_order(
        &story,
        &[
            "  ✓ WRITE_FILE (done)\n",
            "  ✗ READ_FILE (failed)\n    [READ_FILE]\n    b.txt\n    [result]\n    `b.txt` does not exist\n",
            "  ✓ DONE (done)\n",
            "  The audit passed the work.\n",
        ],
    );
    agent.project.run(&["report", &folder]).exits(0);
    let page = agent.project.read(&file("report.html"));
    assert!(page.contains("does not exist"), "{page}");
    // After a kill, there is no record either.
    std::fs::remove_file(agent.project.path(&file("result.json"))).unwrap();
    let story = agent.project.run(&["log", &folder]).exits(0).stdout;
    in_order(
        &story,
        &["Not finished", "Step 2", "    [READ_FILE]\n", "Audit 4"],
    );
}

#[test]
fn a_commit_run_of_before_that_was_killed_is_reported_by_its_files() {
    let (project, folder) = repaired();
    for name in ["result.json", "steps.jsonl"] {
        std::fs::remove_file(project.path(&format!("logs/{folder}/{name}"))).unwrap();
    }
    let story = project.run(&["log", &folder]).exits(0).stdout;
    in_order(
        &story,
        &[
            "Not finished",
            "… The change (exit code: 7)\n",
            "new.txt     | 2 ++",
            "… build.sh (exit code: 7)",
            "error: it is broken",
            "Repair 1 (",
            "… build.sh (exit code: 0)",
        ],
    );
    project.run(&["report", &folder]).exits(0);
    let page = project.read(&format!("logs/{folder}/report.html"));
    assert!(
        page.contains("it is broken") && page.contains("mended"),
        "{page}"
    );
}
