//! The commit workflow from end to end.

use crate::support::{GEMINI_KEY, ModelServer, OPENAI_KEY, TestProject, skipped};

const WRITE_A: &str = "Here it is.\n^^^src/a.rs\npub fn a() {}\n^^^end\n";

#[test]
fn a_reply_is_applied_and_proved_by_the_build() {
    let server =
        ModelServer::gemini(&["^^^src/a.rs\npub fn a() {}\n^^^end\n^^^src/main.rs\n^^^delete\n"]);
    let project = TestProject::new()
        .with(&server)
        .build("ls src; echo noise >&2");
    let run = project.run(&[]).exits(0);
    assert_eq!(project.read("src/a.rs"), "pub fn a() {}\n");
    assert!(!project.path("src/main.rs").exists());
    assert!(
        run.stdout.starts_with(
            "done: build.sh passed at the first try; 1 written, 1 removed\nlog: logs/"
        )
    );
    let expected = [
        "changes.json",
        "initial-build.txt",
        "initial-query-response.json",
        "initial-query-response.txt",
        "initial-query.txt",
        "result.json",
        "steps.jsonl",
    ];
    assert_eq!(run.files(), expected);
    let build = run.logged("initial-build.txt");
    let (first, output) = build.split_once('\n').unwrap();
    assert_eq!(
        (first.trim_end(), output),
        ("exit code: 0", "a.rs\nnoise\n")
    );
}

#[test]
fn the_record_has_what_the_contract_says() {
    let server = ModelServer::gemini(&[WRITE_A]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    let result = run.result();
    assert_eq!(result["schema"], 1);
    assert_eq!(result["workflow"], "commit");
    assert_eq!(
        result["exit"],
        serde_json::json!({"code": 0, "name": "done"})
    );
    assert_eq!(result["model"], "gemini-2.5-pro");
    assert_eq!(result["model_version"], "gemini-2.5-pro-test");
    let attempt = &result["attempts"][0];
    assert_eq!(
        (&attempt["kind"], &attempt["number"]),
        (&"initial".into(), &0.into())
    );
    assert_eq!(attempt["finish"], "STOP");
    let usage = serde_json::json!({"input_tokens": 100, "cached_tokens": 10, "thought_tokens": 30, "output_tokens": 20});
    assert_eq!(attempt["usage"], usage);
    assert_eq!(
        attempt["edits"],
        serde_json::json!({"written": ["src/a.rs"], "removed": []})
    );
    assert_eq!(
        (&attempt["build"]["code"], &attempt["build"]["signal"]),
        (&0.into(), &serde_json::Value::Null)
    );
    assert_eq!(
        (&result["warnings"], &result["error"]),
        (&serde_json::json!([]), &serde_json::Value::Null)
    );
    assert!(result["seconds"].is_f64() && attempt["seconds"].is_f64());
    assert_eq!(
        result["started"].as_str().unwrap().len(),
        "2026-11-21T20:15:03+01:00".len()
    );
}

#[test]
fn gemini_is_asked_as_its_wire_wants_it() {
    let server = ModelServer::gemini(&[WRITE_A]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    let request = &server.requests()[0];
    assert_eq!(
        request.line,
        "POST /v1beta/models/gemini-2.5-pro:generateContent HTTP/1.1"
    );
    assert_eq!(request.header("x-goog-api-key"), Some(GEMINI_KEY));
    assert_eq!(request.header("content-type"), Some("application/json"));
    let body = request.json();
    let system = body["systemInstruction"]["parts"][0]["text"]
        .as_str()
        .unwrap();
    assert_eq!(system, include_str!("../prompts/commit_initial.txt"));
    let user = "[query]\nDo something.\n[codebase]\n--- src/main.rs ---\nfn main() {}\n";
    assert_eq!(request.user(), user);
    assert_eq!(run.logged("initial-query.txt"), format!("{system}{user}"));
}

#[test]
fn gpt_5_is_asked_as_its_wire_wants_it() {
    let server = ModelServer::openai(&[WRITE_A]);
    let run = TestProject::new()
        .with(&server)
        .run(&["--model", "gpt-5"])
        .exits(0);
    let request = &server.requests()[0];
    assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(
        request.header("authorization"),
        Some(&*format!("Bearer {OPENAI_KEY}"))
    );
    let body = request.json();
    assert_eq!(body["model"], "gpt-5");
    assert_eq!(body["messages"][0]["role"], "developer");
    assert_eq!(
        body["messages"][0]["content"],
        include_str!("../prompts/commit_initial.txt")
    );
    assert_eq!(body.get("temperature"), None);
    assert_eq!(body.get("max_tokens"), None);
    assert!(request.user().starts_with("[query]\n"));
    let result = run.result();
    assert_eq!(
        (&result["model"], &result["model_version"]),
        (&"gpt-5".into(), &"gpt-5-test".into())
    );
    assert_eq!(result["attempts"][0]["usage"]["output_tokens"], 20);
}

#[test]
fn a_failing_build_is_repaired_with_the_specified_query() {
    let server = ModelServer::gemini(&[
        "^^^z.rs\none\n^^^end\n^^^a.rs\nfirst\n^^^end\n^^^src/main.rs\n^^^delete\n",
        "^^^a.rs\nsecond\n^^^end\n^^^z.rs\n^^^delete\n",
        "^^^ok\n^^^end\n",
    ]);
    let project = TestProject::new()
        .with(&server)
        .build("echo out; echo err >&2; test -e ok || exit 7");
    let run = project.run(&[]).exits(0);
    assert!(
        run.stdout
            .contains("build.sh passed after 2 repairs; 2 written, 2 removed")
    );
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    let inputs = "[build.sh output]\nout\nerr\n[query]\nDo something.\n[codebase]\n--- src/main.rs ---\nfn main() {}\n";
    let first = format!(
        "{inputs}[file replacements]\n--- FILE REPLACEMENT a.rs ---\nfirst\n--- FILE REMOVED src/main.rs ---\n--- FILE REPLACEMENT z.rs ---\none\n"
    );
    assert_eq!(requests[1].user(), first);
    let second = format!(
        "{inputs}[file replacements]\n--- FILE REPLACEMENT a.rs ---\nsecond\n--- FILE REMOVED src/main.rs ---\n--- FILE REMOVED z.rs ---\n"
    );
    assert_eq!(requests[2].user(), second);
    let system = include_str!("../prompts/commit_repair.txt");
    assert_eq!(
        requests[1].json()["systemInstruction"]["parts"][0]["text"],
        system
    );
    assert_eq!(
        run.logged("repair-query-2.txt"),
        format!("{system}{second}")
    );
    assert!(
        run.logged("repair-query-1-build.txt")
            .starts_with("exit code: 7")
    );
    let kinds: Vec<_> = run.result()["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| {
            format!(
                "{} {} {}",
                attempt["kind"], attempt["number"], attempt["build"]["code"]
            )
        })
        .collect();
    assert_eq!(
        kinds,
        ["\"initial\" 0 7", "\"repair\" 1 7", "\"repair\" 2 0"]
    );
}

#[test]
fn after_three_repairs_the_run_has_failed_and_the_last_edits_stay() {
    let replies: Vec<String> = (0..5).map(|n| format!("^^^n\n{n}\n^^^end\n")).collect();
    let server = ModelServer::gemini(&replies.iter().map(String::as_str).collect::<Vec<_>>());
    let project = TestProject::new().with(&server).build("exit 3");
    let run = project.run(&[]).exits(1).says(&[
        "`build.sh` still fails after 3 repairs: exit code: 3",
        "hint:",
    ]);
    assert_eq!(server.requests().len(), 4);
    assert_eq!(project.read("n"), "3\n");
    assert_eq!(run.stdout, "");
    assert!(run.files().contains(&"repair-query-3-build.txt".to_owned()));
    let result = run.result();
    assert_eq!(result["exit"]["name"], "build-failed");
    assert!(
        result["error"]["message"]
            .as_str()
            .unwrap()
            .contains("3 repairs")
    );
    assert!(result["error"]["hint"].is_string());
}

#[test]
fn a_reply_without_edits_leaves_the_decision_to_the_build() {
    let server = ModelServer::gemini(&["There is nothing to do."]);
    let run = TestProject::new()
        .with(&server)
        .run(&[])
        .exits(0)
        .says(&["warning: the reply has no edits"]);
    assert_eq!(run.result()["warnings"][0], "the reply has no edits");
    assert_eq!(
        run.result()["attempts"][0]["edits"],
        serde_json::json!({"written": [], "removed": []})
    );
}

#[test]
fn odd_bytes_arrive_as_they_were_sent() {
    let body = "\u{feff}CRLF\r\nno\u{0}nul \u{1F600}\ttab \u{7f}\\u0041 \"quoted\"\r\n\r\n";
    let big = "0123456789abcde\n".repeat(200_000);
    let reply = format!("^^^odd\n{body}^^^end\n^^^empty\n^^^end\n^^^big\n{big}^^^end\n");
    for (server, model) in [
        (ModelServer::gemini(&[&reply]), "gemini-2.5-pro"),
        (ModelServer::openai(&[&reply]), "gpt-5"),
    ] {
        let project = TestProject::new().with(&server);
        let run = project.run(&["--model", model]).exits(0);
        assert_eq!(project.read("odd"), body);
        assert_eq!(project.read("empty"), "");
        assert_eq!(project.read("big"), big);
        assert_eq!(run.logged("initial-query-response.txt"), reply);
    }
}

#[test]
fn two_hundred_files_in_one_reply() {
    let reply: String = (0..200)
        .map(|n| format!("^^^d{}/f{n}\n{n}\n^^^end\n", n % 9))
        .collect();
    let server = ModelServer::gemini(&[&reply]);
    let project = TestProject::new().with(&server);
    let run = project
        .run(&[])
        .exits(0)
        .says(&["200 written", "and 180 more"]);
    for n in 0..200 {
        assert_eq!(project.read(&format!("d{}/f{n}", n % 9)), format!("{n}\n"));
    }
    assert_eq!(
        run.result()["attempts"][0]["edits"]["written"]
            .as_array()
            .unwrap()
            .len(),
        200
    );
}

#[test]
fn a_warning_that_every_repair_brings_again_is_reported_once() {
    let reply = "^^^package.json\n{}\n^^^end\n^^^gone\n^^^delete\n";
    for flags in [&["--quiet"][..], &[]] {
        let server = ModelServer::gemini(&[reply; 4]);
        let project = TestProject::new().with(&server).build("exit 1");
        let run = project.run(flags).exits(1);
        for warning in [
            "`package.json` runs code when the project is built",
            "`gone` is to be removed, but is not there",
            "changed manifest `package.json`",
        ] {
            // Only a terminal repeats the warnings at the end.
            let told = run.stderr.matches(warning).count();
            assert_eq!(told, 1, "{}", run.stderr);
        }
        let recorded = project.read(&format!("logs/{}/result.json", run.folder));
        assert_eq!(recorded.matches("is to be removed").count(), 1);
    }
}

#[test]
fn the_steps_are_reported_on_stderr_and_quiet_means_quiet() {
    let server = ModelServer::gemini(&[WRITE_A, "^^^src/b.rs\npub fn b() {}\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0);
    let lines = [
        "log  logs/",
        "asking  gemini-2.5-pro for the change",
        "answered  gemini-2.5-pro: 100 tokens in (10 cached), 20 out (30 thought), ",
        "applied  1 written, 0 removed",
        "  src/a.rs",
        "build  build.sh",
        "passed  build.sh, ",
    ];
    run.says(&lines);
    let quiet = project.run(&["--quiet"]).exits(0);
    assert_eq!(quiet.stderr, "");
    assert!(quiet.stdout.starts_with("done: "));
}

#[test]
fn the_folder_carries_the_local_time() {
    let server = ModelServer::gemini(&[WRITE_A]);
    let project = TestProject::new().with(&server).variable("TZ", "XYZ-05:30");
    let run = project.run(&[]).exits(0);
    let started = run.result()["started"].as_str().unwrap().to_owned();
    assert!(started.ends_with("+05:30"), "{started}");
    let stamp = started[..19].replace(['T', ':'], "-");
    assert_eq!(run.folder, format!("{stamp}-committing-code"));
}

#[test]
fn a_config_folder_that_is_mounted_read_only_is_enough() {
    let server = ModelServer::gemini(&[WRITE_A]);
    let project = TestProject::new().with(&server);
    let config = project.path("agent-config");
    let mount = |arguments: &[&str]| {
        let mut command = std::process::Command::new("mount");
        command
            .args(arguments)
            .arg(&config)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let source = config.to_str().unwrap();
    if !mount(&["--bind", source]) || !mount(&["-o", "remount,ro,bind"]) {
        return skipped("this user cannot mount");
    }
    let run = project.run(&[]);
    let unmounted = std::process::Command::new("umount").arg(&config).status();
    run.exits(0);
    assert!(unmounted.unwrap().success());
    assert_eq!(project.read("src/a.rs"), "pub fn a() {}\n");
}

#[test]
fn a_low_limit_of_open_files_costs_no_call() {
    let server = ModelServer::gemini(&["^^^a\nb\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let program = project.command(&[]);
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -Sn 16; exec \"$0\""]);
    limited
        .arg(program.get_program())
        .current_dir(project.path(""));
    limited.envs(
        program
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let output = limited.output().unwrap();
    crate::support::Finished::new(&project, &[], output).exits(0);
    assert_eq!(project.read("a"), "b\n");
}
