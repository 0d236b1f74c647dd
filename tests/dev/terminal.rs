//! Output in a terminal, which is provided by `script` from util-linux.

use std::process::Command;

use console::{measure_text_width, strip_ansi_codes};
use serde_json::json;

use crate::support;
use crate::support::agent::{AgentProject, PASS, done, last_told, reply};
use crate::support::orchestra::{OrchestraProject, says};
use crate::support::terminal::Terminal;
use crate::support::{Answer, ModelServer};

/// Runs `dev` in a terminal of this width. Types the second of each pair once the first is visible, since input before
/// the prompt would be lost. Returns all output until the program ends.
pub fn in_terminal(
    agent: &AgentProject,
    columns: usize,
    variables: &[(&str, &str)],
    typed: &[(&str, &str)],
) -> Option<String> {
    with_arguments("", agent, columns, variables, typed)
}

/// Like [`in_terminal`], but resumes the directory's last session.
pub fn resumed_in_terminal(
    agent: &AgentProject,
    columns: usize,
    variables: &[(&str, &str)],
    typed: &[(&str, &str)],
) -> Option<String> {
    with_arguments("--resume", agent, columns, variables, typed)
}

fn with_arguments(
    arguments: &str,
    agent: &AgentProject,
    columns: usize,
    variables: &[(&str, &str)],
    typed: &[(&str, &str)],
) -> Option<String> {
    let arguments = ["--plain"].into_iter().chain(arguments.split_whitespace());
    let arguments: Vec<&str> = arguments.collect();
    let mut command = agent.command(&arguments);
    command.envs(variables.iter().copied());
    let (shown, _) = support::in_terminal(&command, columns, typed)?;
    Some(shown)
}

/// A request and the end of input.
const WORK: &[(&str, &str)] = &[("dev> ", "go\r"), ("log: logs/", ""), ("dev> ", "\u{4}")];

fn agent() -> (AgentProject, crate::support::ModelServer) {
    let wide = reply("READ_FILE", "\"wide.txt\"").replace("On we go.", "我先看看这个项目 🙂 ");
    let (agent, server) = AgentProject::scripted(&[
        wide,
        reply("READ_FILE", "\"no/such\""),
        done(),
        PASS.to_owned(),
    ]);
    let long = "漢字 and words ".repeat(40);
    (agent.with_file("wide.txt", &long), server)
}

#[test]
fn every_step_is_a_line_that_fits_the_terminal_whatever_it_holds() {
    for columns in [60, 200] {
        let (agent, _server) = agent();
        let Some(shown) = in_terminal(&agent, columns, &[], WORK) else {
            return;
        };
        let plain = strip_ansi_codes(&shown).into_owned();
        let lines: Vec<&str> = plain.lines().map(last_written).collect();
        // The rest of stdout may be read by a program.
        for line in lines.iter().filter(|line| !line.contains("`--resume`")) {
            assert!(measure_text_width(line) <= columns, "{line:?}");
        }
        for expected in [
            "• Read wide.txt (1 line)",
            "✗ Read no/such (failed)",
            "  我先看看这个项目 🙂",
            "✓ Audit passed",
            "It is done.",
        ] {
            assert!(lines.contains(&expected), "{expected}: {lines:#?}");
        }
        // The list does not change.
        let lists = lines.iter().filter(|line| **line == "Task List");
        assert_eq!(lists.count(), 1, "{lines:#?}");
        assert!(!plain.contains(['┌', '│']), "{plain}");
    }
}

/// Returns the final state of a line, without cleared spinner frames.
fn last_written(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line).trim_end()
}

#[test]
fn a_spinner_counts_tokens_and_says_what_a_key_does() {
    let (agent, _server) = agent();
    let Some(shown) = in_terminal(&agent, 80, &[], WORK) else {
        return;
    };
    let counting =
        regex::Regex::new(r"[⠁-⣿] Thinking\.\.\. \[[\d,]+ tokens?\] · Ctrl-C stops").unwrap();
    assert!(counting.is_match(&strip_ansi_codes(&shown)), "{shown:?}");
    for painted in [
        "\u{1b}[2m我先看看",
        "\u{1b}[36mTask List",
        "\u{1b}[33m  [~] The work",
        "\u{1b}[1mRead\u{1b}[0m",
        "\u{1b}[31m✗\u{1b}[0m \u{1b}[1mRead",
        "\u{1b}[32m✓ Audit passed",
    ] {
        assert!(shown.contains(painted), "{painted:?}: {shown:?}");
    }
}

#[test]
fn no_color_disables_colors() {
    let colors = regex::Regex::new("\u{1b}\\[[\\d;]*m|[⠁-⣿]").unwrap();
    for variable in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (agent, _server) = agent();
        let Some(shown) = in_terminal(&agent, 80, &[variable], WORK) else {
            return;
        };
        assert!(
            shown.contains("Task List\r\n  [~] The work\r\n"),
            "{shown:?}"
        );
        assert!(!colors.is_match(&shown), "{shown:?}");
    }
}

#[test]
fn an_edit_is_a_diff_a_command_its_last_lines_and_the_answer_markdown() {
    let lines = "for n in 1 2 3 4 5 6 7; do echo line $n; done";
    let edit = "\"a.txt\"\n\n```find\ntwo\n```\n\n```replace\n2\n```";
    let answer = "# Title\n\n- **bold**\n\n```\ncode\n```";
    let (agent, _server) = AgentProject::scripted(&[
        format!("Well.\n\n{}", reply("FIND_AND_REPLACE_IN_FILE", edit)),
        reply("COMMAND", lines),
        "Words alone.".to_owned(),
        reply("DONE", answer),
        PASS.to_owned(),
    ]);
    let agent = agent.with_file("a.txt", "one\ntwo\n");
    let Some(shown) = in_terminal(&agent, 80, &[("NO_COLOR", "1")], WORK) else {
        return;
    };
    for expected in [
        "  Well.\r\n",
        "• Edited a.txt (+1 -1)\r\n    @@ -1,2 +1,2 @@\r\n     one\r\n    -two\r\n    +2\r\n",
        ")\r\n    line 3\r\n    line 4\r\n    line 5\r\n    line 6\r\n    line 7\r\n",
        "  Words alone.\r\nreply not understood (1 of 3)",
        "\r\nTitle\r\n\r\n• bold\r\n\r\n    code\r\n",
    ] {
        assert!(shown.contains(expected), "{expected:?}: {shown:?}");
    }
}

#[test]
fn a_command_that_runs_shows_what_it_prints() {
    // The command runs until its line was seen.
    let (agent, _server) = AgentProject::scripted(&[
        reply("COMMAND", "echo under way; sleep 1000"),
        done(),
        PASS.to_owned(),
    ]);
    let typed = &[
        ("dev> ", "go\r"),
        ("Running echo under way", ""),
        ("  \u{1b}[2munder way", "\u{3}"),
        ("say what to do instead", ""),
        ("dev> ", "/exit\r"),
    ];
    in_terminal(&agent, 80, &[], typed);
}

#[test]
fn the_first_interrupt_at_the_prompt_warns_and_the_second_ends() {
    let (agent, _server) = agent();
    let Some(shown) = in_terminal(
        &agent,
        80,
        &[],
        &[("dev> ", "\u{3}"), ("again ends", ""), ("dev> ", "\u{3}")],
    ) else {
        return;
    };
    assert!(shown.contains("Ctrl-C again ends"), "{shown:?}");
    assert!(
        shown.contains("`--resume` continues the session"),
        "{shown:?}"
    );
}

#[test]
fn a_signal_ends_the_prompt_of_every_terminal_and_where_stdout_is_not_seen() {
    for (redirection, term) in [
        ("", "xterm-256color"),
        ("", "dumb"),
        ("", "cons25"),
        ("", "emacs"),
        ("> out.txt", "xterm-256color"),
    ] {
        for (signal, expected) in [("TERM", 143), ("HUP", 129)] {
            let (agent, _server) = agent();
            let mut command = agent.command(&["--plain"]);
            command.env("TERM", term);
            // The shell, whose process ID that is, becomes the program.
            let behind = format!("{redirection} $(echo $$ > pid.txt)");
            let Some(mut terminal) = Terminal::open(&command, 80, &behind) else {
                return;
            };
            terminal.types("dev> ", "");
            let pid = agent.project.read("pid.txt");
            let kill = Command::new("kill")
                .args(["-s", signal, pid.trim()])
                .status();
            assert!(kill.unwrap().success());
            let (shown, code) = terminal.end();
            assert_eq!(code, expected, "{signal} {term} {redirection}: {shown}");
        }
    }
}

#[test]
fn question_is_visible_and_an_interrupt_ends_it() {
    for (arguments, question, redirection, term) in [
        (&["--task", "x", "--quiet"][..], "you> ", "", "xterm"),
        (&["--task", "x", "--quiet"], "you> ", "", "dumb"),
        (&["--task", "x"], "you> ", "> out.txt", "xterm"),
        (&["--task", "x", "--quiet"], "you> ", "> out.txt", "xterm"),
        (&[], "task> ", "", "dumb"),
        (&["--headless"], "task> ", "> out.txt", "xterm"),
    ] {
        let orchestra = OrchestraProject::scripted([says("Which *branch* is it?")], []);
        let mut command = orchestra.command(arguments);
        command.env("TERM", term);
        let Some(mut terminal) = Terminal::open(&command, 80, redirection) else {
            return;
        };
        if question == "you> " {
            terminal.types("Which *branch* is it?", "");
        }
        terminal.types(question, "\u{3}");
        let (shown, code) = terminal.end();
        assert_eq!(code, 130, "{arguments:?} {redirection} {term}: {shown}");
        assert_eq!(
            shown.matches("Which *branch*").count(),
            usize::from(question == "you> "),
            "{shown}"
        );
    }
}

#[test]
fn an_interrupt_at_a_question_stops_the_request_and_the_next_one_ends() {
    let (agent, _server) = AgentProject::scripted(&[reply("ASK_USER", "Which?")]);
    let typed = &[
        ("dev> ", "go\r"),
        ("answer> ", "\u{3}"),
        ("say what to do instead", ""),
        ("dev> ", "\u{3}"),
    ];
    let Some(shown) = in_terminal(&agent, 80, &[], typed) else {
        return;
    };
    assert!(
        shown.contains("`--resume` continues the session"),
        "{shown:?}"
    );
}

#[test]
fn a_slash_command_at_a_question_is_not_an_answer_and_an_exit_leaves() {
    let ask = || reply("ASK_USER", "Which?");
    let (agent, server) = AgentProject::scripted(&[ask(), ask()]);
    let typed = "go\n/help\n/undo\n/nope\nblue\n/exit\nnever read\n";
    let run = agent.typed(&[], typed).exits(1).says(&[
        "answer the question; Esc or Ctrl-D, or by lines an empty one, is no answer",
        "`/undo` works between requests: answer the question, or leave by `/exit`",
        "there is no command `/nope` here, only `/exit`, `/help`",
        "ended by `/exit`",
    ]);
    assert!(
        run.stdout.contains("`--resume` continues it"),
        "{}",
        run.stdout
    );
    assert!(!run.stderr.contains("/clear"), "{}", run.stderr);
    assert!(last_told(&server, 1).contains("blue"));
    assert_eq!(server.requests().len(), 2);
    assert_eq!(run.result()["exit"]["name"], "stopped");
}

#[test]
fn a_new_session_does_not_change_the_exit_code() {
    let server = ModelServer::start([Answer::error(400, &json!({"error": "not now"}))]);
    let agent = AgentProject::new(&server);
    let run = agent.typed(&[], "go\n/clear\n").exits(4);
    run.says(&["the last request was not completed"]);
}

#[test]
fn typeahead_goes_to_the_prompt_and_answers_no_question() {
    let (agent, server) = AgentProject::scripted(&[
        done(),
        PASS.to_owned(),
        reply("ASK_USER", "Delete all?"),
        done(),
        PASS.to_owned(),
    ]);
    let typed = &[
        ("dev> ", "one\rtwo\ryes\r"),
        ("answer> ", "no\r"),
        ("log: logs/", ""),
        ("dev> ", "\u{4}"),
    ];
    if in_terminal(&agent, 80, &[], typed).is_none() {
        return;
    }
    assert!(
        last_told(&server, 2).contains("two"),
        "{}",
        last_told(&server, 2)
    );
    let answer = last_told(&server, 3);
    assert!(answer.contains("no") && !answer.contains("yes"), "{answer}");
}
