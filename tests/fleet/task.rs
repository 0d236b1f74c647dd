//! One task in a separate clone.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{BAD, Fleet, GOOD, MINUTE, change, children, git, kill_all, killed, with};
use crate::signals::kill;
use crate::support::{Answer, ModelServer, gemini};

#[test]
fn a_task_leaves_its_results_and_nothing_else() {
    let server = ModelServer::gemini(&[GOOD]);
    let fleet = Fleet::new(&server);
    let before = fleet.project.tree();
    let labelled = with(change("web-1"), &json!({"labels": {"team": "x"}}));
    fleet.tasks(&[labelled]);
    fleet.task("0").exits(0);
    let found = fs::read_dir(fleet.path("out/web-1")).unwrap();
    let mut names: Vec<_> = found.map(|entry| entry.unwrap().file_name()).collect();
    names.sort_unstable();
    let expected = [
        "branch.bundle",
        "change.patch",
        "log",
        "report.html",
        "result.json",
    ];
    assert_eq!(names, expected);
    let result = fleet.result("web-1");
    assert_eq!(result["exit"]["name"], "done");
    assert_eq!(result["task"]["labels"]["team"], "x");
    assert!(result["task"]["cost"].as_f64().unwrap() > 0.0);
    let log = result["log"].as_str().unwrap();
    assert!(fleet.has(&format!("out/web-1/{log}/steps.jsonl")), "{log}");
    // The repository is unchanged, and accepts the change in both forms.
    let after = fleet.project.tree();
    let kept = before
        .iter()
        .all(|(path, content)| after.get(path) == Some(content));
    assert!(
        kept && after.keys().all(|path| before.contains_key(path)
            || path.starts_with("out")
            || path.starts_with("tasks"))
    );
    let web = fleet.path("web");
    git(&web, &["apply", "--check", "../out/web-1/change.patch"]);
    git(
        &web,
        &[
            "fetch",
            "--quiet",
            "../out/web-1/branch.bundle",
            "code-commit/web-1",
        ],
    );
    assert_eq!(git(&web, &["show", "FETCH_HEAD:answer"]), "42\n");
    assert_eq!(
        git(&web, &["show", "--format=%s", "--name-only", "FETCH_HEAD"]),
        "web-1: Write the answer.\n\nanswer\n"
    );
    // A second run does nothing.
    fleet.task("0").exits(0);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_task_ends_as_its_run_did_and_so_does_a_second_start() {
    let bad = [BAD; 4];
    let server = ModelServer::gemini(&[&bad[..], &["^^^build.sh\nx\n^^^end\n"]].concat());
    let fleet = Fleet::new(&server);
    fleet.tasks(&[
        change("a"),
        with(change("b"), &json!({"query": "word ".repeat(20)})),
        with(change("c"), &json!({"max_cost": 0.0001})),
    ]);
    for (index, code, requests) in [("0", 1, 4), ("1", 5, 5), ("2", 3, 5)] {
        fleet.task(index).exits(code);
        fleet.task(index).exits(code);
        assert_eq!(server.requests().len(), requests);
    }
    assert!(fleet.project.read("out/a/change.patch").contains("+0\n"));
    assert_eq!(fleet.result("b")["exit"]["name"], "reply-rejected");
    let title = fleet.result("b")["task"]["title"].clone();
    assert!(title.as_str().unwrap().ends_with("word wo…"), "{title}");
    assert_eq!(fleet.project.read("out/b/change.patch"), "");
    assert!(!fleet.has("out/b/branch.bundle"));
    let told = fleet.task("3").exits(2);
    told.says(&["there is no task 3"]);
}

#[test]
fn retried_task_reuses_the_replies_already_paid_for() {
    let error = || Answer::error(400, &json!({"error": {"message": "no"}}));
    let answer = |text: &str| Answer::json(&gemini(text));
    let server = ModelServer::start([answer(BAD), error(), answer(BAD), error(), answer(GOOD)]);
    let fleet = Fleet::new(&server);
    fleet.tasks(&[change("a")]);
    for _ in 0..2 {
        fleet.task("0").exits(4);
        assert_eq!(fleet.result("a")["exit"]["name"], "model-failed");
        assert!(fleet.has("out/a/log") && fleet.has("out/a/report.html"));
    }
    let first = fleet.result("a")["task"]["cost"].as_f64().unwrap();
    fleet.task("0").exits(0);
    assert_eq!(server.requests().len(), 5);
    let result = fleet.result("a");
    // The first two replies no longer cost anything, but the task has paid for all three.
    assert!(result["cost"].as_f64().unwrap() < first);
    assert!(result["task"]["cost"].as_f64().unwrap() > first);
    assert!(!fleet.has("out/a/clone"));
}

#[test]
fn a_task_that_was_killed_continues_and_pays_nothing_twice() {
    let (silence, heard) = Answer::silence();
    let answer = |text: &str| Answer::json(&gemini(text));
    let server = ModelServer::start([answer(BAD), silence, answer(GOOD)]);
    let fleet = Fleet::new(&server);
    fleet.tasks(&[with(change("a"), &json!({"max_cost": 5}))]);
    let mut started = fleet
        .project
        .start(&["fleet", "task", "tasks.jsonl", "0", "--out", "out"]);
    heard.recv_timeout(MINUTE).unwrap();
    // Another run finds the first one running.
    fleet
        .task("0")
        .exits(3)
        .says(&["another process works on the task `a`"]);
    let run = children(started.id());
    started.kill().unwrap();
    started.wait().unwrap();
    // The run survives, and holds the clone.
    fleet
        .task("0")
        .exits(3)
        .says(&["another process works on the task `a`"]);
    kill_all(&run);
    fleet.task("0").exits(0);
    assert_eq!(server.requests().len(), 3);
    let ledger = fleet.project.read("out/ledger.jsonl");
    let last: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["reserved"], &last["exit"]),
        (&json!(0.0), &json!([0, "done"]))
    );
    // The interrupted call counts with its maximum cost, but never more than the task's limit.
    let amounts = ledger.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let amount = |name: &str| line[name].as_f64().unwrap();
        (amount("spent"), amount("spent") + amount("reserved"))
    });
    let amounts: Vec<_> = amounts.collect();
    assert!(
        amounts.iter().all(|(_, all)| *all <= 5.000_000_1),
        "{amounts:?}"
    );
    let spent = amounts.last().unwrap().0;
    assert!(0.1 < spent && spent < 2.0, "{spent}");
}

#[test]
fn a_run_that_has_ended_without_its_task_is_not_paid_again() {
    let server = ModelServer::gemini(&[GOOD]);
    let fleet = Fleet::new(&server);
    fleet.tasks(&[change("a")]);
    fleet.task("0").exits(0);
    // The state after a kill before `result.json` exists: the log may be in the clone or beside it.
    fs::remove_file(fleet.path("out/a/result.json")).unwrap();
    let clone = fleet.path("out/a/clone");
    git(
        &fleet.path("."),
        &["clone", "--quiet", "web", clone.to_str().unwrap()],
    );
    git(&clone, &["checkout", "--quiet", "-b", "code-commit/a"]);
    fs::write(clone.join("answer"), "42\n").unwrap();
    fleet.task("0").exits(0);
    assert_eq!(server.requests().len(), 1);
    assert!(fleet.project.read("out/a/change.patch").contains("+42\n"));
}

#[test]
fn a_repository_elsewhere_is_fetched_by_one_commit_and_nothing_of_it_is_run() {
    let server = ModelServer::gemini(&[GOOD, GOOD]);
    let fleet = Fleet::new(&server);
    let web = fleet.path("web");
    let touched = fleet.path("touched");
    let touch = format!("touch {}", touched.display());
    // Settings that came with the repository, or are in its configuration.
    fs::write(web.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    git(&web, &["add", "--all"]);
    git(&web, &["commit", "--quiet", "-m", "second"]);
    git(&web, &["tag", "-a", "-m", "v", "v1"]);
    for (key, value) in [
        ("filter.evil.smudge", &touch),
        ("filter.evil.clean", &touch),
        ("diff.evil.textconv", &touch),
        ("core.fsmonitor", &touch),
        ("uploadpack.packObjectsHook", &touch),
    ] {
        git(&web, &["config", key, value]);
    }
    for hook in ["post-checkout", "pre-commit", "reference-transaction"] {
        crate::support::write_program(
            &web.join(".git/hooks").join(hook),
            format!("#!/bin/sh\n{touch}\n"),
        );
    }
    let url = format!("file://{}", web.display());
    let remote = with(change("remote"), &json!({"repository": url, "ref": "v1"}));
    fleet.tasks(&[change("local"), remote]);
    fleet.task("0").exits(0);
    fleet.task("1").exits(0);
    assert!(!touched.exists());
    let commit = git(&web, &["rev-parse", "v1^{commit}"]);
    for id in ["local", "remote"] {
        assert_eq!(fleet.result(id)["task"]["commit"], commit.trim());
        assert!(fleet.has(&format!("out/{id}/branch.bundle")));
    }
}

#[test]
fn a_task_may_have_a_key_and_a_build_of_its_own_and_a_report_needs_neither() {
    let server = ModelServer::gemini(&[GOOD, "# Report\n"]);
    let fleet = Fleet::new(&server);
    let project = fleet
        .project
        .variable("TEAM_KEY", "AIzaSyTeamTeamTeam_0123456789-Team0");
    let fleet = Fleet { project };
    let plain = fleet.repository("plain", "exit 1");
    git(&plain, &["rm", "--quiet", "build.sh"]);
    git(&plain, &["commit", "--quiet", "-m", "without"]);
    fs::write(fleet.path("build-it.sh"), "#!/bin/sh\ngrep -q 42 answer\n").unwrap();
    let own = json!({"id": "own", "repository": "plain", "query": "x", "build": "build-it.sh", "env_key": "TEAM_KEY"});
    let report = json!({"id": "report", "repository": "web", "workflow": "consistency"});
    fleet.tasks(&[own, report]);
    fleet.task("0").exits(0);
    fleet.task("1").exits(0);
    let keys = server.requests();
    let keys: Vec<_> = keys
        .iter()
        .map(|request| request.header("x-goog-api-key"))
        .collect();
    assert_eq!(keys[0], Some("AIzaSyTeamTeamTeam_0123456789-Team0"));
    assert_eq!(keys[1], Some(crate::support::GEMINI_KEY));
    // The script does not belong to the repository.
    assert!(
        !fleet
            .project
            .read("out/own/change.patch")
            .contains("build.sh")
    );
    assert_eq!(fleet.result("report")["workflow"], "consistency");
}

#[test]
fn keys_and_models_of_the_directory_are_lent_to_a_clone_and_reverted() {
    let error = Answer::error(400, &json!({"error": {"message": "no"}}));
    let server = ModelServer::start([error]);
    let fleet = Fleet::new(&server);
    let models = json!({"models": {"own": {"provider": "openai", "id": "x", "baseUrl": format!("{}/v1", server.url()), "keyFile": "own-key.txt"}}});
    let project = fleet
        .project
        .file("agent-config/models.json", models.to_string());
    // No entry names the second file, which holds no key.
    let project = project
        .file("agent-config/own-key.txt", "sk-own-0123456789\n")
        .file("agent-config/azure-key.txt", "put your key here\n");
    let fleet = Fleet { project };
    fleet.tasks(&[with(change("a"), &json!({"model": "own"}))]);
    fleet.task("0").exits(4);
    assert_eq!(
        server.requests()[0].header("authorization"),
        Some("Bearer sk-own-0123456789")
    );
    assert!(fleet.has("out/a/clone/agent-config/models.json"));
    assert!(!fleet.has("out/a/clone/agent-config/own-key.txt"));
    let keyed = json!({"model": "own", "env_key": "TEAM_KEY"});
    fleet.tasks(&[with(change("b"), &keyed)]);
    let told = fleet.task("0").exits(3);
    told.says(&["the model `own` takes no key from a variable"]);
}

#[test]
fn a_task_that_was_not_ready_is_tried_again_by_the_next_start() {
    let fleet = Fleet::new(&ModelServer::gemini(&[GOOD]));
    fleet.tasks(&[change("a")]);
    let words = ["fleet", "task", "tasks.jsonl", "0", "--out", "out"];
    let mut without = fleet.project.command(&words);
    let ended = without.env_remove("GEMINI_API_KEY").output().unwrap();
    assert_eq!(ended.status.code(), Some(3));
    assert_eq!(fleet.result("a")["error"]["reason"], "no-key");
    fleet.task("0").exits(0);
    fleet.task("0").exits(0);
}

fn failed() -> Answer {
    Answer::error(400, &json!({"error": {"message": "no"}}))
}

pub fn answered(text: &str) -> Answer {
    Answer::json(&gemini(text))
}

#[test]
fn a_link_in_place_of_a_directory_that_a_run_writes_to_is_refused() {
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    let outside = fleet.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("gemini-key.txt"), "mine\n").unwrap();
    for name in ["agent-config", "logs"] {
        let repository = fleet.repository(name, "exit 0");
        std::os::unix::fs::symlink("../../../outside", repository.join(name)).unwrap();
        git(&repository, &["add", "--force", name]);
        git(&repository, &["commit", "--quiet", "-m", "link"]);
        fleet.tasks(&[with(change(name), &json!({"repository": name}))]);
        let told = fleet.task("0").exits(3);
        told.says(&[&format!("a file or a link in place of `{name}`")]);
        fleet.run(&["check", "tasks.jsonl"]).exits(3);
    }
    let left: Vec<_> = fs::read_dir(&outside).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(fleet.project.read("outside/gemini-key.txt"), "mine\n");
}

#[test]
fn tracked_files_where_a_run_writes_are_not_part_of_the_change() {
    let fleet = Fleet::new(&ModelServer::gemini(&[GOOD]));
    let web = fleet.path("web");
    fs::create_dir(web.join("agent-config")).unwrap();
    fs::write(web.join("agent-config/query.txt"), "Another.\n").unwrap();
    git(&web, &["add", "--all"]);
    git(&web, &["commit", "--quiet", "-m", "query"]);
    fleet.tasks(&[change("a")]);
    fleet.task("0").exits(0);
    let patch = fleet.project.read("out/a/change.patch");
    assert!(
        patch.contains("+42\n") && !patch.contains("agent-config"),
        "{patch}"
    );
}

#[test]
fn a_run_that_was_killed_before_its_first_reply_does_not_hide_an_earlier_one() {
    let server = ModelServer::start([answered(BAD), failed(), answered(GOOD)]);
    let fleet = Fleet::new(&server);
    fleet.tasks(&[change("a")]);
    fleet.task("0").exits(4);
    fs::create_dir(fleet.path("out/a/log/2099-01-01-00-00-00-committing-code")).unwrap();
    fleet.task("0").exits(0);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn a_search_and_ci_continue_with_the_replies_that_are_paid_for() {
    for flags in [json!({"strategy": "search"}), json!({"ci": true})] {
        let server = ModelServer::start([answered(BAD), failed(), answered(GOOD)]);
        let fleet = Fleet::new(&server);
        fleet.repository("mild", "test ! -e answer || grep -q 42 answer");
        let task = with(change("a"), &json!({"repository": "mild", "flags": flags}));
        fleet.tasks(&[task]);
        fleet.task("0").exits(4);
        fleet.task("0").exits(0);
        assert_eq!(server.requests().len(), 3, "{flags}");
        assert!(fleet.project.read("out/a/change.patch").contains("+42\n"));
    }
}

#[test]
fn a_build_that_changes_what_git_reads_leaves_no_patch_and_no_success() {
    let fleet = Fleet::new(&ModelServer::gemini(&[GOOD]));
    fleet.repository("odd", "rm -f .mailmap; mkfifo .mailmap");
    let task = json!({"repository": "odd", "flags": {"sandbox": "off"}});
    fleet.tasks(&[with(change("a"), &task)]);
    for _ in 0..2 {
        fleet
            .task("0")
            .exits(1)
            .says(&["has changed the settings of git"]);
    }
    assert_eq!(fleet.result("a")["exit"]["name"], "gate-changed");
    assert!(!fleet.has("out/a/change.patch"));
}

#[test]
fn a_build_that_hides_files_from_git_or_breaks_it_ends_the_task_at_once() {
    let hidden = "echo evil >> code; grep -q 42 answer";
    let builds = [
        ("flags", "git update-index --assume-unchanged code", "done"),
        ("sparse", "git update-index --skip-worktree code", "done"),
        (
            "exclude",
            "echo /new >> .git/info/exclude; echo evil > new",
            "done",
        ),
        (
            "attributes",
            "echo '* -diff' > .git/info/attributes",
            "done",
        ),
        ("index", "rm -rf .git/objects/info", "done"),
        ("hooks", "echo evil > .git/hooks/pre-commit", "done"),
        (
            "nested",
            "git init --quiet sub; echo evil > sub/new",
            "gate-changed",
        ),
    ];
    let server = ModelServer::gemini(&[GOOD; 7]);
    let fleet = Fleet::new(&server);
    let task = |(name, build, _): &(&str, &str, &str)| {
        fleet.repository(name, &format!("{build}; {hidden}"));
        let flags = json!({"sandbox": "auto", "reask": 0});
        with(change(name), &json!({"repository": name, "flags": flags}))
    };
    fleet.tasks(&builds.iter().map(task).collect::<Vec<_>>());
    for (index, (name, _, end)) in builds.iter().enumerate() {
        let code = i32::from(*end != "done");
        let index = index.to_string();
        fleet.task(&index).exits(code);
        assert_eq!(fleet.result(name)["exit"]["name"], *end, "{name}");
        fleet.task(&index).exits(code);
        if code == 0 {
            let patch = fleet.project.read(&format!("out/{name}/change.patch"));
            assert!(
                patch.contains("+evil\n") && patch.contains("+42\n"),
                "{name}: {patch}"
            );
        }
    }
    assert_eq!(server.requests().len(), builds.len());
}

#[test]
fn a_file_that_looks_unchanged_to_its_size_and_time_is_part_of_the_change() {
    let fleet = Fleet::new(&ModelServer::gemini(&[GOOD]));
    let forge =
        "touch -r code .git/then; printf evil 1<>code; touch -r .git/then code; grep -q 42 answer";
    fleet.repository("forged", forge);
    fleet.tasks(&[with(change("a"), &json!({"repository": "forged"}))]);
    fleet.task("0").exits(0);
    let patch = fleet.project.read("out/a/change.patch");
    assert!(patch.contains("+evilcode of forged\n"), "{patch}");
}

#[test]
fn a_report_that_was_killed_continues_with_the_replies_that_are_paid_for() {
    let (silence, heard) = Answer::silence();
    let server = ModelServer::start([
        answered("# Report\n"),
        silence,
        answered("{\"findings\": []}"),
    ]);
    let fleet = Fleet::new(&server);
    let report = json!({"id": "a", "repository": "web", "workflow": "consistency", "flags": {"findings": "json"}});
    fleet.tasks(&[report]);
    let words = ["fleet", "run", "tasks.jsonl", "--out", "out"];
    let started = fleet.project.start(&words);
    heard.recv_timeout(MINUTE).unwrap();
    let left = killed(started);
    kill_all(&left);
    fleet.run(&words[1..]).exits(0);
    // The report itself was not requested again.
    assert_eq!(server.requests().len(), 3);
    let result = fleet.result("a");
    assert_eq!(result["workflow"], "consistency");
    assert_eq!(result["findings"], json!([]));
}

#[test]
fn a_prompt_that_the_vendor_blocks_costs_what_the_vendor_says() {
    let blocked = |usage: Value| {
        let answer = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage});
        Answer::json(&answer)
    };
    let server = ModelServer::start([
        blocked(Value::Null),
        blocked(json!({"promptTokenCount": 1000, "totalTokenCount": 1000})),
    ]);
    let fleet = Fleet::new(&server);
    let task = |id: &str| with(change(id), &json!({"max_cost": 5}));
    fleet.tasks(&[task("a"), task("b")]);
    for (index, id, cost) in [("0", "a", 0.0), ("1", "b", 0.001_25)] {
        fleet.task(index).exits(4);
        assert_eq!(fleet.result(id)["task"]["cost"], cost);
    }
}

#[test]
fn the_result_of_an_earlier_try_is_gone_while_the_next_one_continues() {
    let (silence, heard) = Answer::silence();
    let server = ModelServer::start([failed(), silence]);
    let fleet = Fleet::new(&server);
    // A limit too low for the task leaves the result unchanged.
    let limited = |limit: f64| with(change("a"), &json!({"max_cost": limit}));
    fleet.tasks(&[limited(2.0)]);
    fleet.task("0").exits(4);
    let words = [
        "task",
        "tasks.jsonl",
        "0",
        "--out",
        "out",
        "--max-cost",
        "1",
    ];
    fleet.run(&words).exits(1).says(&["is not begun"]);
    assert!(fleet.has("out/a/result.json") && fleet.has("out/a/log"));
    let words = ["fleet", "task", "tasks.jsonl", "0", "--out", "out"];
    let started = fleet.project.start(&words);
    heard.recv_timeout(MINUTE).unwrap();
    assert!(!fleet.has("out/a/result.json"));
    kill(&started, Signal::TERM);
    assert_eq!(started.wait_with_output().unwrap().status.code(), Some(143));
}

#[test]
fn a_signal_ends_a_fetch_that_gets_no_answer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/web", listener.local_addr().unwrap());
    let fleet = Fleet::new(&ModelServer::gemini(&[]));
    fleet.tasks(&[with(change("a"), &json!({"repository": url}))]);
    let words = ["fleet", "task", "tasks.jsonl", "0", "--out", "out"];
    let started = fleet.project.start(&words);
    let _connection = listener.accept().unwrap();
    kill(&started, Signal::TERM);
    assert_eq!(started.wait_with_output().unwrap().status.code(), Some(143));
}
