//! Text from models, files and commands, which is treated as data wherever it is printed.

use std::iter;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::thread;

use crate::support::agent::{AgentProject, PASS, reply};
use crate::support::{Finished, ModelServer, TestProject, skipped};

const COMMANDS: &str =
    "::add-mask::x\n  ::set-output name=a::b\na ##[set-env name=c]d\n##vso[task.e]f";
/// Characters that reverse the direction of text, move the cursor, end a line, ring the bell, or are invisible.
const DECEPTIVE: [char; 14] = [
    '\u{202e}',
    '\u{2066}',
    '\u{206a}',
    '\u{200f}',
    '\u{61c}',
    '\u{2028}',
    '\u{85}',
    '\u{90}',
    '\u{9b}',
    '\u{9d}',
    '\r',
    '\u{7}',
    '\u{1b}',
    '\u{e0041}',
];

/// Checks that no line is a command to a CI runner.
#[track_caller]
fn commands_nobody(text: &str) {
    for line in text.lines() {
        let is_command = line.trim_start().starts_with("::");
        assert!(
            !is_command && !line.contains("##[") && !line.contains("##vso["),
            "{text}"
        );
    }
}

#[test]
fn output_of_an_agent_cannot_command_a_ci_runner() {
    let command = format!(
        "printf '%s\\n' '{}'; cat /no/such",
        COMMANDS.replace('\n', "' '")
    );
    let texts = [
        reply("COMMAND", &command).replace("On we go.", COMMANDS),
        reply("DONE", COMMANDS),
        PASS.replace("none", COMMANDS),
    ];
    for (format, arguments) in [
        ("text", &["-p", COMMANDS][..]),
        ("json", &["-p", COMMANDS, "--output-format", "json"]),
        ("jsonl", &["-p", COMMANDS, "--output-format", "jsonl"]),
    ] {
        let (agent, _server) = AgentProject::scripted(&texts);
        let run = agent.run(arguments).exits(0);
        commands_nobody(&run.stderr);
        commands_nobody(&run.stdout);
        assert!(run.stderr.contains(": :add-mask::x"), "{}", run.stderr);
        if format == "json" {
            let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            assert!(document.to_string().contains("##vso[task.e]f"));
        }
        let story = agent.project.run(&["log", &run.folder]).exits(0);
        commands_nobody(&story.stdout);
    }
}

#[test]
fn faults_in_a_reply_or_command_line_print_no_ci_command() {
    let server = ModelServer::gemini(&["^^^::error::x\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(5);
    commands_nobody(&run.stderr);
    let run = project.run(&["--timeout", "\n::error::x\u{202e}"]).exits(2);
    commands_nobody(&run.stderr);
    assert!(!run.stderr.contains(DECEPTIVE), "{}", run.stderr);
}

#[test]
fn nothing_printed_deceives_whoever_reads_it() {
    let deceptive: String = DECEPTIVE.iter().flat_map(|c| ['a', *c, 'b']).collect();
    let server = ModelServer::gemini(&[
        &format!("^^^src/{deceptive}\n^^^end\n"),
        &format!("^^^fail\n{deceptive}\n^^^end\n"),
        "",
        "",
        "",
    ]);
    let project = TestProject::new()
        .with(&server)
        .file("said", &deceptive)
        .build("cat said; test ! -e fail");
    for (expected, arguments) in [
        (5, &["--summary-file", "summary.md"][..]),
        (4, &["--summary-file", "summary.md"]),
    ] {
        let run = project.run(arguments).exits(expected);
        let summary = project.read("summary.md");
        let story = project.run(&["log", &run.folder]).exits(0).stdout;
        for text in [run.stderr, run.stdout, summary, story] {
            assert!(!text.contains(DECEPTIVE), "{text:?}");
        }
    }
}

#[test]
fn no_summary_has_a_command_of_a_ci_runner() {
    let replies = ["1", "2", "3", "4"].map(|content| format!("^^^a\n{content}\n^^^end\n"));
    for path in ["summary.md", "/dev/stdout", "/dev/stderr"] {
        let server = ModelServer::gemini(&replies.each_ref().map(String::as_str));
        let project = TestProject::new()
            .with(&server)
            .file("said", format!("{COMMANDS}\n::error::x\n##[group]y\n"))
            .build("cat said; exit 1");
        let arguments = ["--summary-file", path];
        let output = project
            .command(&arguments)
            .env("GITHUB_ACTIONS", "1")
            .output();
        let run = Finished::new(&project, &arguments, output.unwrap()).exits(1);
        let summary = match path {
            "/dev/stdout" => run.stdout,
            "/dev/stderr" => run.stderr,
            file => project.read(file),
        };
        assert!(summary.contains(": :error::x"), "{summary}");
        commands_nobody(&summary);
    }
}

#[test]
fn each_warning_of_a_run_is_printed_once() {
    let server = ModelServer::gemini(&["^^^build.rs\nfn main() {}\n^^^end\n"]);
    let run = TestProject::new().with(&server).run(&[]).exits(0);
    let warnings: Vec<&str> = run
        .stderr
        .lines()
        .filter(|line| line.contains("build.rs` runs"))
        .collect();
    assert_eq!(warnings.len(), 1, "{}", run.stderr);
}

#[test]
fn a_terminal_has_the_warnings_again_where_the_run_ends() {
    let server = ModelServer::gemini(&["^^^build.rs\nfn main() {}\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    let command = project.command(&[]);
    let line = format!("exec {}", command.get_program().to_str().unwrap());
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(project.path(""))
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null());
    let Ok(shown) = script.output() else {
        return skipped("there is no `script`");
    };
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert_eq!(shown.matches("`build.rs` runs code").count(), 2, "{shown}");
}

#[test]
fn a_diff_on_a_terminal_without_colors_moves_no_cursor() {
    let server = ModelServer::gemini(&["^^^a\nx\u{1b}[2Jy\u{202e}z\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    project.run(&[]).exits(0);
    let command = project.command(&["diff"]);
    let line = format!("exec {} diff", command.get_program().to_str().unwrap());
    let shown = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(project.path(""))
        .env("NO_COLOR", "1")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .output();
    let Ok(shown) = shown else {
        return skipped("there is no `script`");
    };
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("+x\u{fffd}[2Jy\u{fffd}z"), "{shown:?}");
    // In a file, the text is verbatim, since it may be applied.
    let piped = project.run(&["diff"]).exits(0).stdout;
    assert!(piped.contains("+x\u{1b}[2Jy\u{202e}z"), "{piped:?}");
}

#[test]
fn a_diff_commands_no_ci_runner_that_is_known_of_and_is_exact_elsewhere() {
    let file = format!("{COMMANDS}\n\u{1b}]8;;http://x\u{7}y\u{202e}z\n#\u{ad}#[group]x\n");
    let server = ModelServer::gemini(&[&format!("^^^a\n{file}^^^end\n")]);
    let project = TestProject::new().with(&server);
    project.run(&[]).exits(0);
    let exact = project.run(&["diff"]).exits(0).stdout;
    let json = project.run(&["diff", "--output-format", "json"]).exits(0);
    assert!(!json.stdout.contains(DECEPTIVE), "{}", json.stdout);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["diff"], exact);
    for line in file.lines() {
        assert!(exact.contains(&format!("+{line}\n")), "{exact:?}");
    }
    for runner in ["CI", "GITHUB_ACTIONS", "TF_BUILD"] {
        let shown = diff_for(&project, runner).stdout;
        commands_nobody(&shown);
        assert!(!shown.contains(DECEPTIVE), "{shown:?}");
        for line in [
            "+a # #[set-env name=c]d",
            "+# #vso[task.e]f",
            "+# #[group]x",
        ] {
            assert!(shown.contains(&format!("{line}\n")), "{shown:?}");
        }
    }
}

/// Runs `diff` with a variable that indicates this CI runner.
fn diff_for(project: &TestProject, runner: &str) -> Finished {
    let output = project.command(&["diff"]).env(runner, "true").output();
    Finished::new(project, &["diff"], output.unwrap()).exits(0)
}

/// Programs that write to the same terminal or log would otherwise split a line.
#[test]
fn stderr_is_written_in_whole_lines() {
    let project = TestProject::new();
    for (arguments, part) in [
        (&["demo"][..], "   build  build.sh\n"),
        (&["log", "none"], "error: "),
        (&["--model", "none", "Go."], "hint: "),
    ] {
        // Each message is a single write.
        let (reader, stderr) = UnixDatagram::pair().unwrap();
        let end = stderr.try_clone().unwrap();
        let reader = thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            let next = || match reader.recv(&mut bytes).unwrap() {
                0 => None,
                length => Some(String::from_utf8_lossy(&bytes[..length]).into_owned()),
            };
            iter::from_fn(next).collect::<Vec<_>>()
        });
        let mut command = project.command(arguments);
        command.stdout(Stdio::null()).stderr(OwnedFd::from(stderr));
        command.status().unwrap();
        end.send(&[]).unwrap();
        let writes = reader.join().unwrap();
        assert!(writes.iter().all(|text| text.ends_with('\n')), "{writes:?}");
        assert!(writes.iter().any(|text| text.contains(part)), "{writes:?}");
    }
}
