//! The execution of build.sh.

use std::process::Command;

use serde_json::json;

use crate::support::{ModelServer, TestProject, bubblewrap_works, ends};

const NOTHING: &str = "Nothing to do.";

#[test]
fn it_runs_from_the_root_without_input_and_without_keys() {
    let server = ModelServer::gemini(&[NOTHING]);
    let project = TestProject::new()
        .with(&server)
        .variable("GEMINI_API_KEY", "key-in-the-environment-1")
        .variable("GOOGLE_API_KEY", "key-in-the-environment-2")
        .variable("OPENAI_API_KEY", "key-in-the-environment-3")
        .variable("OTHER", "kept")
        .build("echo \"$0 $OTHER\"; pwd; cat; env | grep API_KEY; exit 0");
    let run = project.run(&[]).exits(0);
    let root = project.path("").canonicalize().unwrap();
    let log = run.logged("initial-build.txt");
    assert_eq!(
        log.split_once('\n').unwrap().1,
        format!("./build.sh kept\n{}\n", root.display())
    );
}

#[test]
fn a_signal_is_reported_by_number_and_name() {
    let server = ModelServer::gemini(&[NOTHING; 4]);
    let run = TestProject::new()
        .with(&server)
        .build("kill -SEGV $$")
        .run(&[])
        .exits(1);
    assert!(
        run.logged("initial-build.txt")
            .starts_with("signal: 11 (SIGSEGV)")
    );
    let build = run.result()["attempts"][0]["build"].clone();
    assert_eq!(
        (&build["code"], &build["signal"]),
        (&serde_json::Value::Null, &11.into())
    );
}

#[test]
fn findings_of_a_failed_build_are_data() {
    let server = ModelServer::gemini(&[NOTHING, NOTHING]);
    let build = "echo x >> count; test $(wc -l < count) -gt 1 && exit 0; echo \"$PWD/a.c:3:5: error: no 0x7ffd12ab\"; echo a.c:3:5: error: no 0x7ffd99ab; echo 'make: *** [Makefile:2: all] Error 1'; exit 2";
    let project = TestProject::new().with(&server).build(build);
    let run = project.run(&[]).exits(0);
    let attempts = run.result()["attempts"].clone();
    let finding = json!({"file": "a.c", "line": 3, "tool": "gcc", "message": "no …"});
    assert_eq!(attempts[0]["findings"], json!([finding]));
    assert_eq!(attempts[1].get("findings"), None);
}

#[test]
fn its_time_is_limited_and_its_group_ends_with_it() {
    let server = ModelServer::gemini(&[NOTHING; 4]);
    let project = TestProject::new().with(&server).build(
        "trap '' TERM; echo before; (sleep 600; touch survived) & echo $! > child; sleep 600",
    );
    let run = project
        .run(&["--build-timeout", "1s", "--sandbox", "off"])
        .exits(1)
        .says(&["ended after 1s without finishing (`--build-timeout`)"]);
    let log = run.logged("initial-build.txt");
    assert!(log.starts_with("ended after 1s without finishing"), "{log}");
    assert!(log.ends_with("before\n"));
    assert_eq!(run.result()["attempts"][0]["build"]["timed_out"], true);
    assert!(
        server.requests()[1]
            .user()
            .contains("before\n[build.sh was ended after 1s without finishing]\n[query]")
    );
    assert!(
        ends(project.read("child").trim()),
        "the child is still running"
    );
}

#[test]
fn a_daemon_that_holds_the_output_does_not_hold_the_run() {
    let server = ModelServer::gemini(&[NOTHING]);
    let project = TestProject::new()
        .with(&server)
        .build("setsid sleep 30 & echo done");
    let run = project.run(&[]).exits(0);
    assert!(run.result()["seconds"].as_f64().unwrap() < 20.0);
    assert!(run.logged("initial-build.txt").ends_with("done\n"));
}

#[test]
fn long_output_is_kept_whole_on_disk_and_cut_in_the_prompt() {
    let server = ModelServer::gemini(&["^^^ok\n^^^end\n^^^fail\n^^^end", "^^^fail\n^^^delete\n"]);
    let body = "i=0; while [ $i -lt 40000 ]; do echo \"line $i of a long build output, padded a bit\"; i=$((i+1)); done; test ! -e fail";
    let run = TestProject::new()
        .with(&server)
        .build(body)
        .run(&[])
        .exits(0);
    let log = run.logged("initial-build.txt");
    assert!(log.contains("line 20000 of") && log.contains("line 39999 of"));
    let output_length = log.len() - log.find('\n').unwrap() - 1;
    let query = server.requests()[1].user();
    assert!(
        query.contains("line 0 of")
            && query.contains("line 39999 of")
            && !query.contains("line 20000 of")
    );
    let left_out = output_length - (1 << 20);
    assert!(
        query.contains(&format!("[... {left_out} bytes left out ...]\n")),
        "{left_out}"
    );
}

#[test]
fn output_that_is_not_text_is_logged_as_it_is() {
    let server = ModelServer::gemini(&["^^^fail\n^^^end", "^^^fail\n^^^delete\n"]);
    let project = TestProject::new()
        .with(&server)
        .build("printf 'a\\377b\\000c'; test ! -e fail");
    let run = project.run(&[]).exits(0);
    let log = run.bytes("initial-build.txt");
    assert!(log.ends_with(b"\na\xffb\0c"));
    assert!(
        server.requests()[1]
            .user()
            .starts_with("[build.sh output]\na\u{fffd}b\0c\n[query]\n")
    );
}

#[test]
fn output_on_stderr_is_not_a_failure() {
    let server = ModelServer::gemini(&[NOTHING]);
    TestProject::new()
        .with(&server)
        .build("echo warning >&2")
        .run(&[])
        .exits(0);
}

#[test]
fn a_build_that_destroys_itself_is_a_local_fault() {
    let server = ModelServer::gemini(&["^^^fail\n^^^end", "^^^fail\n^^^delete\n"]);
    let project = TestProject::new()
        .with(&server)
        .program("interpreter", "#!/bin/sh\nrm interpreter; exit 1\n");
    let interpreter = project.path("interpreter").display().to_string();
    let script = format!("#!{interpreter}\n");
    let run = project.program("build.sh", script).run(&[]).exits(6);
    run.says(&[
        &format!("cannot start `build.sh`: the interpreter of `build.sh`, `{interpreter}`"),
        "the project is as it was before the run",
    ]);
}

#[test]
fn output_of_filters_and_background_jobs_is_included() {
    let server = ModelServer::gemini(&[NOTHING]);
    let build =
        "(sleep 0.05; echo from a job) & { echo from a filter; exit 3; } | sed -u 's/^/[x] /'";
    let run = TestProject::new()
        .with(&server)
        .build(build)
        .run(&[])
        .exits(0);
    let log = run.logged("initial-build.txt");
    assert!(
        log.contains("[x] from a filter\n") && log.contains("from a job\n"),
        "{log}"
    );
}

#[test]
fn a_log_that_cannot_be_written_leaves_the_project_as_it_was() {
    // The first build replaces the second one's log.
    let server = ModelServer::gemini(&["^^^a\n1\n^^^end\n", "^^^a\n2\n^^^end\n"]);
    let build = "for run in logs/*; do mkdir $run/repair-query-1-build.txt; done; exit 1";
    let project = TestProject::new().with(&server).build(build);
    project
        .run(&["--sandbox", "off"])
        .exits(6)
        .says(&["cannot write", "repair-query-1-build.txt"]);
    assert!(!project.path("a").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_forks_and_exits_again_and_again_ends_with_the_build() {
    let server = ModelServer::gemini(&["Nothing to do."]);
    // Ends by itself after 10,000 processes.
    let chain = "i=0
f() {
    i=$((i + 1))
    echo x >> late
    if [ $i -lt 500 ]; then f $1 & else [ $1 -eq 0 ] || exec sh ./chain $(($1 - 1)); fi
}
f $1
";
    let outside = tempfile::tempdir().unwrap();
    let held = outside.path().join("held");
    let made = Command::new("mkfifo").arg(&held).status();
    assert!(made.unwrap().success());
    let project = TestProject::new()
        .with(&server)
        .file("chain", chain)
        .build(&format!(
            "setsid sh ./chain 20 9<> '{}' > late.log 2>&1",
            held.display()
        ));
    // The end of the pipe comes when the last process of the chain has ended.
    let reader = std::thread::spawn(move || std::fs::read(held).unwrap());
    project.run(&["--sandbox", "off"]).exits(0);
    assert_eq!(reader.join().unwrap(), b"");
    let length = std::fs::metadata(project.path("late")).unwrap().len();
    assert!(length < 10_000, "{length}");
}

#[test]
fn odd_file_in_place_of_the_steps_is_not_opened() {
    for trap in [
        "mkfifo $steps",
        "ln -s \"$PWD/outside\" $steps",
        "mkfifo pipe; ln -s \"$PWD/pipe\" $steps",
        ":",
    ] {
        let server = ModelServer::gemini(&["Nothing to do."]);
        let build = format!("steps=$(ls -d logs/*)/steps.jsonl; rm $steps; {trap}");
        let project = TestProject::new().with(&server).build(&build);
        let run = project.run(&["--sandbox", "off"]).exits(0);
        assert!(run.logged("steps.jsonl").ends_with("}\n"), "{trap}");
        assert!(!project.path("outside").exists(), "{trap}");
    }
}

#[test]
fn a_build_that_prints_without_end_fills_neither_disk_nor_prompt() {
    let server = ModelServer::gemini(&["Nothing to do.", "^^^ok\n^^^end\n"]);
    // Bytes that JSON escapes to six each, so that they would dominate the request.
    let run = TestProject::new()
        .with(&server)
        .build("echo first; head -c 70000000 /dev/zero; echo; echo last; test -e ok")
        .run(&[])
        .exits(0);
    let log = run.bytes("initial-build.txt");
    assert!(log.len() <= 64 << 20, "{}", log.len());
    let end = String::from_utf8_lossy(&log[log.len() - 600_000..]).into_owned();
    let (_, end) = end.split_once("\n[... ").unwrap();
    let (left_out, end) = end.split_once(" bytes left out ...]\n").unwrap();
    assert!(left_out.parse::<u32>().unwrap() > 2_000_000);
    assert!(end.ends_with("\0\nlast\n"));
    let sent = server.requests()[1].body.len();
    assert!(sent < 1_100_000, "{sent}");
    assert!(server.requests()[1].user().contains("first\n\u{fffd}"));
}

/// A run's folder stays the run's own, whatever a build puts in its place.
#[test]
fn a_folder_in_the_place_of_the_runs_own_gets_nothing() {
    let seize = "cd logs; run=$(ls); mv $run x";
    for (build, seized) in [
        (format!("{seize}; ln -s ../seized $run"), "seized"),
        (
            "mv logs x; ln -s seized logs; mkdir seized/$(ls x)".to_owned(),
            "seized",
        ),
        (format!("{seize}; mv ../seized $run"), "logs/*"),
    ] {
        let server = ModelServer::gemini(&["^^^a\nnew\n^^^end\n"]);
        let project = TestProject::new()
            .with(&server)
            .file("a", "old\n")
            .file("seized/result.json", "mine")
            .file("seized/steps.jsonl", "mine")
            .build(&build);
        let run = project.run(&["--sandbox", "off"]).exits(6).says(&[
            "the run's folder was moved or replaced while the run went on",
            "the project is as it was before the run",
        ]);
        drop(run);
        assert_eq!(project.read("a"), "old\n", "{build}");
        let seized = match seized {
            "seized" => project.path("seized"),
            _ => project.runs().remove(0),
        };
        for file in ["result.json", "steps.jsonl"] {
            let content = std::fs::read_to_string(seized.join(file)).unwrap();
            assert_eq!(content, "mine", "{build}");
        }
        assert!(!seized.join("changes.json").exists(), "{build}");
    }
}

#[test]
fn a_file_of_the_reply_that_the_build_removes_is_a_removed_file() {
    let server = ModelServer::gemini(&["^^^a\nnew\n^^^end\n"]);
    let project = TestProject::new().with(&server).file("a", "old\n");
    let run = project.build("rm a").run(&[]).exits(0);
    let stat = json!({"files": 1, "added": 0, "removed": 1});
    assert_eq!(run.result()["stat"], stat);
}

#[test]
fn an_undo_is_not_promised_where_what_was_saved_is_gone() {
    let server = ModelServer::gemini(&["^^^a\nnew\n^^^end\n"; 4]);
    let project = TestProject::new()
        .with(&server)
        .file("a", "old\n")
        .build("rm -rf logs/*/replaced; exit 1");
    let run = project
        .run(&["--sandbox", "off", "--on-failure", "revert"])
        .exits(1)
        .says(&["`code-commit undo` cannot take it back"]);
    assert_eq!(run.result()["tree"], "changed");
}

#[test]
fn a_sandboxed_build_writes_nothing_to_the_logs() {
    if !bubblewrap_works() {
        return;
    }
    for mode in ["auto", "strict"] {
        let server = ModelServer::gemini(&["^^^a\nnew\n^^^end\n"]);
        let project = TestProject::new().with(&server).file("a", "old\n").build(
            "echo x > logs/made; echo x >> $(ls -d logs/*/initial-build.txt); mv logs x; rm -r logs/*; \
             test -e logs/made || exit 0",
        );
        let run = project.run(&["--sandbox", mode]).exits(0);
        project.run(&["undo", &run.folder]).exits(0);
        assert_eq!(project.read("a"), "old\n", "{mode}");
    }
}
