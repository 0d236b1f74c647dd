//! The command line: help, version, and mistakes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{ModelServer, StoppedClock, TestProject, write_program};

#[test]
fn help_shows_every_flag_the_files_and_the_exit_codes() {
    let project = TestProject::new();
    for flag in ["--help", "help"] {
        let help = project.run(&[flag]).exits(0).stdout;
        for part in [
            "--consistency-check",
            "--consistency, --cc",
            "--model",
            "gemini-2.5-pro, gpt-5",
            "--timeout",
            "--build-timeout",
            "--replay",
            "--quiet",
            "--version",
            "demo",
            "agent-config/query.txt",
            "result.json",
            "0  done",
            "1  build-failed",
            "gate-changed",
            "2  usage",
            "3  not-ready",
            "4  model-failed",
            "5  reply-rejected",
            "6  local-io",
            "129, 130, 143",
        ] {
            assert!(
                help.contains(part),
                "{flag}: `{part}` is missing in\n{help}"
            );
        }
    }
    let version = project.run(&["--version"]).exits(0).stdout;
    assert_eq!(
        version,
        concat!("code-commit ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn short_help_is_broken_at_words_where_there_is_little_room() {
    let project = TestProject::new();
    for arguments in [&["-h"][..], &["orchestrate", "-h"], &["chat", "-h"]] {
        let mut command = project.command(arguments);
        let help = command.env("COLUMNS", "60").output().unwrap().stdout;
        let (help, whole) = (
            String::from_utf8(help).unwrap(),
            project.run(arguments).stdout,
        );
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(60), "{help}");
        assert!(
            help.split_whitespace().eq(whole.split_whitespace()),
            "{help}"
        );
    }
    let wrong = project.run(&["dev", "--allow-host", "x"]).exits(2);
    wrong.says(&["Usage: code-commit dev [OPTIONS]"]);
}

#[test]
fn a_wrong_command_line_touches_nothing() {
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    for (arguments, expected) in [
        (&["--frobnicate"][..], "--frobnicate"),
        (&["--model", "gpt-4"], "gemini-2.5-pro, gpt-5"),
        (&["--model", "GPT-5"], "gemini-2.5-pro, gpt-5"),
        (&["--timeout", "1 fortnight"], "`90s`, `30m` or `1h`"),
        (&["--build-timeout", "0s"], "longer than nothing"),
        (&["--stream", "demo"], "demo"),
        (&["surprise"], "surprise"),
        (&["--cc", "--cc"], "--consistency-check"),
        (
            &["--replay", "no/such/run"],
            "there is no recorded run at `no/such/run`",
        ),
    ] {
        let run = project.run(arguments).exits(2).says(&[expected]);
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
    let mixed = project.run(&["--diff", "--output-format", "json"]).exits(2);
    mixed.says(&["`--diff` is for `--output-format text`"]);
    assert_eq!(project.tree(), before);
    assert!(project.runs().is_empty() && server.requests().is_empty());
}

#[test]
fn arguments_are_judged_before_the_project_is() {
    let project = TestProject::new().without("agent-config/query.txt");
    project.run(&["--model", "gpt-4"]).exits(2);
}

/// The programs that run `code-commit` under another name, with that name.
fn shims() -> [(&'static str, &'static Path); 2] {
    [
        ("dev", assert_cmd::cargo::cargo_bin!("dev")),
        ("dev-agent", assert_cmd::cargo::cargo_bin!("dev-agent")),
    ]
}

/// `dev` and `dev-agent` start `code-commit` under their own names; so does a link with such a name.
#[test]
fn a_program_of_another_name_is_a_part_of_the_program() {
    let program = assert_cmd::cargo::cargo_bin!("code-commit");
    let folder = tempfile::tempdir().unwrap();
    for (name, shim) in shims() {
        let link = folder.path().join(name);
        symlink(program, &link).unwrap();
        for program in [shim, &link] {
            let help = Command::new(program).arg("--help").output().unwrap();
            let help = String::from_utf8(help.stdout).unwrap();
            assert!(help.contains(&format!("Usage: {name} [OPTIONS]")), "{help}");
            let wrong = Command::new(program).arg("--cc").output().unwrap();
            assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
        }
    }
}

#[test]
fn a_program_of_another_name_says_where_code_commit_is_to_be() {
    let folder = tempfile::tempdir().unwrap();
    for (name, shim) in shims() {
        let alone = folder.path().join(name);
        write_program(&alone, fs::read(shim).unwrap());
        let run = Command::new(&alone)
            .env("PATH", folder.path())
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(6), "{run:?}");
        let said = String::from_utf8(run.stderr).unwrap();
        assert!(
            said.starts_with("error: cannot start `code-commit`: "),
            "{said}"
        );
        let hint = format!("hint: install `code-commit` beside `{name}`");
        assert!(said.contains(&hint), "{said}");
    }
}

#[test]
fn a_clock_from_before_1970_is_reported() {
    let Some(clock) = StoppedClock::at(-1000) else {
        return;
    };
    let project = TestProject::new().variable("LD_PRELOAD", &clock.library());
    project
        .run(&["--dry-run"])
        .exits(6)
        .says(&["the clock shows a time before 1970", "hint: "]);
}

#[test]
fn a_blank_prompt_is_refused_by_every_agent_in_the_same_words() {
    let homes = tempfile::tempdir().unwrap();
    let home = homes.path().to_str().unwrap();
    let project = TestProject::new()
        .variable("AGENT_HOME", home)
        .variable("DEV_AGENT_HOME", home)
        .variable("OLLAMA_AGENT_HOME", home);
    let branch = "00000000-0000-4000-8000-000000000000";
    for agent in [
        &["chat", "-p"][..],
        &["dev", "-p"],
        &["plan", "-p"],
        &["orchestrate", "--parent-branch-id", branch, "--task"],
    ] {
        for blank in ["", " \n"] {
            let run = project.run(&[agent, &[blank]].concat()).exits(2);
            run.says(&["error: the prompt is blank: describe the task\n"]);
        }
    }
}
