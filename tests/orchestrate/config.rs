//! The configuration: flags, environment, and `.env`.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::support::{Finished, TestProject};

const BRANCH: &str = "6f1a2f3e-8d0b-4c5e-9a7d-0123456789ab";
const AZURE_KEY: &str = "azure-s3cret-0123456789";
const TOKEN: &str = "ghp_s3cret0123456789";

/// Complete settings except for the servers' addresses.
const COMPLETE: [(&str, &str); 5] = [
    ("AZURE_OPENAI_API_KEY", AZURE_KEY),
    ("AZURE_OPENAI_BASE_URL", "http://127.0.0.1:9/"),
    ("AZURE_OPENAI_DEPLOYMENT", "gpt-4.1"),
    ("PROJECT_NAME", "demo"),
    ("GITHUB_TOKEN", TOKEN),
];

fn complete() -> TestProject {
    let set = |project: TestProject, (name, value)| project.variable(name, value);
    COMPLETE.into_iter().fold(TestProject::new(), set)
}

/// Runs the orchestrator on a task; the run ends before anything is sent.
#[track_caller]
fn not_ready(project: &TestProject, flags: &[&str]) -> Finished {
    let task = ["orchestrate", "--parent-branch-id", BRANCH, "--task", "x"];
    let run = project.run(&[&task[..], flags].concat()).exits(3);
    assert!(project.runs().is_empty() && run.stdout.is_empty());
    for secret in [AZURE_KEY, TOKEN, "s3cret"] {
        assert!(!run.stderr.contains(secret), "{}", run.stderr);
    }
    run
}

/// Runs the command with this standard input.
fn typed(project: &TestProject, arguments: &[&str], input: &str) -> Finished {
    let mut child = project
        .command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    Finished::new(project, arguments, child.wait_with_output().unwrap())
}

#[test]
fn all_that_is_missing_or_wrong_is_reported_at_once_with_the_remedy() {
    let project = TestProject::new()
        .variable("MCP_BASE_URL", "http://example.com/sse?code=s3cret-0123")
        .variable("MCP_POLL_BACKOFF_FACTOR", "1")
        .variable("MCP_BEARER_TOKEN", "two words-s3cret")
        .variable("WORKSPACE_DIR", "here");
    not_ready(&project, &[]).says(&[
        "`AZURE_OPENAI_API_KEY` is not set",
        "`AZURE_OPENAI_BASE_URL` is not set",
        "`AZURE_OPENAI_DEPLOYMENT` is not set",
        "by `--model`",
        "`MCP_BASE_URL` is plain http",
        "the key in `MCP_BEARER_TOKEN` has a blank",
        "`MCP_POLL_BACKOFF_FACTOR` is not a number above 1",
        "`PROJECT_NAME` is not set",
        "or use `--project-name`",
        "`WORKSPACE_DIR` is not an absolute path",
        "`GITHUB_TOKEN` is not set",
        "by `--no-publish`",
    ]);
    let flags = ["--project-name", "demo", "--no-publish", "--model", "gpt-5"];
    let run = not_ready(&project, &flags);
    for left_out in ["AZURE", "PROJECT_NAME", "GITHUB_TOKEN"] {
        assert!(!run.stderr.contains(left_out), "{}", run.stderr);
    }
}

#[test]
fn a_branch_and_a_task_must_be_there() {
    let project = complete();
    let branch = ["--parent-branch-id", BRANCH];
    for (arguments, expected) in [
        (&["--task", "x"][..], "--parent-branch-id <UUID>"),
        (&["--task", "x", "--parent-branch-id", "main"], "'main'"),
        (&[&branch[..], &["--task", ""]].concat(), "prompt is blank"),
        (
            &[&branch[..], &["--task", " \n"]].concat(),
            "prompt is blank",
        ),
        (&[&branch[..], &["--task", "-"]].concat(), "prompt is blank"),
        (&branch, "prompt is blank"),
        (&[&branch[..], &["--headless"]].concat(), "prompt is blank"),
        (
            &[&branch[..], &["--task", "x", "--resume"]].concat(),
            "--resume",
        ),
        (
            &[&branch[..], &["--replay", "last"]].concat(),
            "cannot be used with",
        ),
    ] {
        let all = [&["orchestrate"][..], arguments].concat();
        let run = project.run(&all).exits(2).says(&[expected]);
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
    for flags in [&[][..], &["--headless"]] {
        let all = [&["orchestrate"][..], &branch, flags].concat();
        typed(&project, &all, " \n").exits(2).says(&["blank"]);
    }
    assert!(project.runs().is_empty());
}

#[test]
fn the_environment_comes_before_the_file_and_nothing_empty_counts() {
    let initial = "MCP_POLL_INITIAL_SECONDS";
    let told = "`MCP_POLL_INITIAL_SECONDS` (50) is not below `MCP_POLL_MAX_SECONDS` (30)";
    let file = format!("{initial}=50\n");
    let project = |file: &str| complete().file(".env", file);
    not_ready(&project(&file), &[]).says(&[told]);
    not_ready(&project(&file).variable(initial, ""), &[]).says(&[told]);
    not_ready(&project(&file).variable(initial, "40"), &[]).says(&["(40) is not below"]);
    let empty = project("MCP_POLL_MAX_SECONDS=\nPROJECT_NAME=other\n");
    not_ready(&empty.variable(initial, "50"), &[]).says(&[told]);
    let twice = format!("{initial}=60\n{initial}=50\n");
    not_ready(&project(&twice), &[]).says(&[told]);
    let unset = project("GITHUB_TOKEN=\n").variable("GITHUB_TOKEN", "");
    not_ready(&unset, &[]).says(&["`GITHUB_TOKEN` is not set"]);
}

#[test]
fn the_file_may_have_quotes_exports_comments_and_ends_of_lines_of_any_kind() {
    let file = format!(
        "\u{feff}# it's a comment\r\n\r\nexport AZURE_OPENAI_API_KEY={AZURE_KEY} # the key\r\n\
         AZURE_OPENAI_BASE_URL='http://127.0.0.1:9/'\r\nAZURE_OPENAI_DEPLOYMENT = \"gpt-4.1\"  # it's this\r\n\
         PROJECT_NAME='$demo'\nGITHUB_TOKEN={TOKEN}\nMCP_POLL_INITIAL_SECONDS=\"50\"\r\n"
    );
    let project = TestProject::new().file(".env", file);
    let run = not_ready(&project, &[]).says(&["(50) is not below"]);
    assert_eq!(run.stderr.matches("hint: ").count(), 1, "{}", run.stderr);
}

#[test]
fn a_line_that_cannot_be_read_is_reported_by_its_number_alone() {
    let file = format!(
        "A=1\nGITHUB_TOKEN=ab${TOKEN}\nMCP_BEARER_TOKEN='{TOKEN}\nsome s3cret words\nB=it's s3cret\nC='$s3cret'\n"
    );
    let project = TestProject::new().file(".env", file);
    let run = not_ready(&project, &[]).says(&[
        "line 2 of `.env` has a `$`",
        "single quotes",
        "line 3 of `.env` is not of the form `KEY=value`",
        "line 4 of `.env`",
        "line 5 of `.env`",
        "`PROJECT_NAME` is not set",
    ]);
    assert!(!run.stderr.contains("line 6"), "{}", run.stderr);
    let too_large = TestProject::new().file(".env", "# a comment\n".repeat(100_000));
    not_ready(&too_large, &[]).says(&["cannot read `./.env`: it is larger than 1 MiB"]);
}

#[test]
fn a_directory_is_not_a_file_and_the_projects_own_counts_from_below() {
    let project = TestProject::new().file(".env/bin/python", "");
    let run = not_ready(&project, &[]);
    assert!(!run.stderr.contains(".env`:"), "{}", run.stderr);
    let project = TestProject::new()
        .file(".env", "MCP_POLL_FACTOR=1\nMCP_POLL_BACKOFF_FACTOR=1\n")
        .file("below/.keep", "");
    let mut command = project.command(&["orchestrate", "--parent-branch-id", BRANCH]);
    let output = command.current_dir(project.path("below")).output().unwrap();
    let run = Finished::new(&project, &["orchestrate"], output).exits(3);
    run.says(&["`MCP_POLL_BACKOFF_FACTOR` is not a number above 1"]);
}

#[test]
fn it_is_said_that_the_file_names_the_server_to_which_the_token_goes() {
    const SAID: &str = "the token goes to the MCP server that `.env` names";
    let url = "http://127.0.0.1:9/mcp";
    let start = [
        "orchestrate",
        "--parent-branch-id",
        BRANCH,
        "--headless",
        "--task",
        "x",
    ];
    let named = complete().file(".env", format!("MCP_BASE_URL={url}\n"));
    let run = named.run(&start);
    assert!(!run.stderr.contains(SAID), "{}", run.stderr);
    let named = named.variable("MCP_BEARER_TOKEN", TOKEN);
    named.run(&start).says(&[SAID]);
    let run = named
        .variable("MCP_BASE_URL", "http://127.0.0.1:9/")
        .run(&start);
    assert!(!run.stderr.contains(SAID), "{}", run.stderr);
}

#[test]
fn a_file_that_git_would_take_is_a_warning_and_one_that_it_tracks_is_not_used() {
    let file = format!("GITHUB_TOKEN={TOKEN}\n");
    let project = || TestProject::new().file(".env", &file);
    let warning = "git does not ignore `.env`";
    let run = not_ready(&project(), &[]);
    assert!(!run.stderr.contains(warning), "{}", run.stderr);
    not_ready(&project().repository(".git"), &[]).says(&["warning: ", warning]);
    let ignored = project().repository(".git").file(".gitignore", ".env\n");
    let run = not_ready(&ignored, &[]);
    assert!(!run.stderr.contains("warning"), "{}", run.stderr);
    let tracked = project();
    for arguments in [&["init", "-q"][..], &["add", ".env"]] {
        let mut git = Command::new("git");
        let done = git.args(arguments).current_dir(tracked.path("")).status();
        assert!(done.unwrap().success());
    }
    fs::write(tracked.path(".gitignore"), ".env\n").unwrap();
    not_ready(&tracked, &[]).says(&["git tracks `.env`", "git rm --cached .env"]);
}

/// This includes values that the environment overrides.
#[test]
fn the_files_secrets_are_shown_nowhere() {
    let query = "code=s3cret-0123";
    let file = format!(
        "GITHUB_TOKEN={TOKEN}\nMCP_BASE_URL='https://host.test/sse?{query}'\nNPM_TOKEN=np-{AZURE_KEY}\n"
    );
    let project = complete()
        .variable("GITHUB_TOKEN", "ghp_another0123456789")
        .file(".env", file);
    for secret in [TOKEN, AZURE_KEY, query, "s3cret-0123"] {
        let named = format!("no/{secret}/here");
        let task = ["orchestrate", "--parent-branch-id", BRANCH, "--task", "x"];
        let run = project
            .run(&[&task[..], &["--root", &named]].concat())
            .exits(2);
        let shown = run.stderr + &run.stdout;
        assert!(
            shown.contains("[REDACTED]") && !shown.contains(secret),
            "{shown}"
        );
    }
}

#[test]
fn other_commands_read_no_such_file() {
    let project = TestProject::new().file(".env", "nonsense\n");
    let run = project.run(&["models"]).exits(0);
    assert!(!run.stderr.contains(".env"), "{}", run.stderr);
}

#[test]
fn help_names_every_variable() {
    let help = TestProject::new().run(&["orchestrate", "--help"]).exits(0);
    for variable in [
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_BASE_URL",
        "AZURE_OPENAI_DEPLOYMENT",
        "AZURE_OPENAI_API_VERSION",
        "MCP_BASE_URL",
        "MCP_BEARER_TOKEN",
        "MCP_POLL_INITIAL_SECONDS",
        "MCP_POLL_MAX_SECONDS",
        "MCP_POLL_TIMEOUT_SECONDS",
        "MCP_POLL_BACKOFF_FACTOR",
        "PROJECT_NAME",
        "WORKSPACE_DIR",
        "GITHUB_TOKEN",
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
    ] {
        assert!(help.stdout.contains(variable), "{variable}");
    }
}
