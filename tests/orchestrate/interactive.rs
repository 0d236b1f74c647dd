//! Interactive runs: every exchange is mirrored, and questions are asked.

use std::io::Read as _;

use serde_json::Value;

use crate::support::orchestra::{
    Branch, OrchestraProject, START, branch, execute, finished, read_log, report, says,
};
use crate::support::screen::Screen;
use crate::support::{Finished, in_terminal};

/// Splits stdout into the mirrored text and the report at its end.
#[track_caller]
fn transcript(run: &Finished) -> (&str, Value) {
    let at = run.stdout.rfind("\n{\n").map_or(0, |at| at + 1);
    let (before, report) = run.stdout.split_at(at);
    (before, serde_json::from_str(report).unwrap())
}

#[test]
fn every_exchange_is_mirrored_and_the_report_comes_last() {
    let output = format!("{}the end", "line\n".repeat(1000));
    let orchestra = OrchestraProject::clean_after(
        [execute("claude_code", "Try it."), read_log()],
        [Branch::done(&output)],
    );
    let run = orchestra.typed(&[], "").exits(0);
    let (mirrored, report) = transcript(&run);
    assert_eq!(report["status"], "completed");
    let heads: Vec<&str> = mirrored
        .lines()
        .filter(|line| line.contains("> ") || line.contains("< "))
        .filter(|line| !line.starts_with(' '))
        .collect();
    let expected = [
        r#"tool> execute_agent {"agent":"claude_code","prompt":"Try it."}"#,
        "tool< branch ",
        r#"tool> read_artifact {"path":"codex_review.log"}"#,
        "tool< error: ",
        r#"tool> execute_agent {"agent":"claude_code","prompt":"Add the flag."}"#,
        "tool< branch ",
        r#"tool> execute_agent {"agent":"codex","prompt":"Review it."}"#,
        "tool< branch ",
        r#"assistant> {"is_finished":true"#,
        r#"tool> execute_agent {"agent":"claude_code","prompt":"Publish"#,
        "tool< branch ",
    ];
    assert!(heads.len() >= expected.len() - 1, "{mirrored}");
    for (head, expected) in heads.iter().zip(expected).take(10) {
        assert!(
            head.starts_with(expected),
            "{head}, not {expected}\n{mirrored}"
        );
    }
    // An agent's long output is bounded.
    assert!(mirrored.lines().count() < 200, "{mirrored}");
    // Progress goes to stderr, and the mirrored text is not repeated there.
    assert!(run.stderr.contains("asking") && !run.stderr.contains("Try it."));
}

#[test]
fn nothing_is_mirrored_when_quiet_or_for_programs() {
    let orchestra = OrchestraProject::clean();
    let run = orchestra.typed(&["--quiet"], "").exits(0);
    assert_eq!(report(&run)["status"], "completed");
    for format in ["json", "jsonl"] {
        let orchestra = OrchestraProject::clean();
        let run = orchestra.typed(&["--output-format", format], "").exits(0);
        assert!(!run.stdout.contains("tool> "), "{}", run.stdout);
        for line in run.stdout.lines().filter(|_| format == "jsonl") {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
    let orchestra = OrchestraProject::clean();
    let run = orchestra.run(&[]).exits(0);
    assert!(report(&run).is_object());
}

#[test]
fn user_answers_a_question_and_a_blank_line_means_continue() {
    let asks = || says("Shall I add a test?");
    let orchestra = OrchestraProject::clean_after([asks(), asks()], []);
    let run = orchestra.typed(&[], "yes, one\n\n").exits(0);
    let (mirrored, _) = transcript(&run);
    assert!(
        mirrored.contains("assistant> Shall I add a test?"),
        "{mirrored}"
    );
    assert!(mirrored.contains("you> yes, one"), "{mirrored}");
    let told = |nth| {
        let last: Value = orchestra.sent(nth).pop().unwrap();
        assert_eq!(last["role"], "user");
        last["content"].as_str().unwrap().to_owned()
    };
    assert!(told(1).contains("yes, one"), "{}", told(1));
    assert!(told(2).contains("go on with a tool call"), "{}", told(2));
    let answers: Value = serde_json::from_str(&run.logged("agent.json")).unwrap();
    assert_eq!(answers["answers"], serde_json::json!(["yes, one", ""]));
    // A replay sends nothing.
    let again = orchestra
        .project
        .run(&["orchestrate", "--replay", &run.folder])
        .exits(0);
    assert!(again.stdout.contains("you> yes, one"), "{}", again.stdout);
}

#[test]
fn a_slash_command_is_neither_an_answer_nor_a_task() {
    let orchestra = OrchestraProject::clean_after([says("Shall I add a test?")], []);
    let typed = "/nope\n/help\nAdd a flag.\n/undo it\nyes\n";
    orchestra.given(&[], typed).exits(0).says(&[
        "there is no command `/nope` here, only `/exit`, `/help`, `/model`, `/resume`; `/exit` ends",
        "describe the task in one line",
        "`/undo` takes no arguments",
    ]);
    let told = orchestra.sent(1).pop().unwrap()["content"].to_string();
    assert!(told.contains("yes") && !told.contains("undo"), "{told}");
}

#[test]
fn the_commands_of_all_agents_have_an_answer_before_a_task_and_in_it() {
    let orchestra = OrchestraProject::clean_after([says("Shall I add a test?")], []);
    let before = "/cost\n/undo\n/diff\n/clear\n/compact\n/resume\nAdd a flag.\n";
    let within = "/help\n/cost\n/undo\n/diff\n/model x\n/clear\n/compact it\n/resume 1\nyes\n";
    let run = orchestra.given(&[], &format!("{before}{within}")).exits(0);
    let resume = format!("`dev-agent --resume logs/{}", run.folder);
    let run = run.says(&[
        "nothing was spent yet",
        "nothing in this project was changed: the agents work on branches of the server\n",
        "there is nothing to clear: each task is a run of its own",
        "there is nothing to compact yet",
        "there is no earlier run to resume",
        "answer the agent; Esc, or by lines an empty one or Ctrl-D, lets it go on by itself; `/exit` or Ctrl-C ends the run\n  \
           /cost              show tokens and dollars\n  /exit              quit, as `/quit` does\n  /help",
        "this run so far: 150 tokens, ",
        &format!("the last of them `{START}`"),
        &format!("`gpt-5-deployed` is asked until the task is done: `/exit` ends the run, and {resume} --model NAME`"),
        &format!("a task is in progress: `/exit` ends the run, and {resume}` continues it later"),
        &format!("this conversation is kept whole: `/exit` ends the run, and {resume}` continues in a new one"),
    ]);
    let told = orchestra.sent(1).pop().unwrap()["content"].to_string();
    assert!(told.contains("yes") && !told.contains("/cost"), "{told}");
    // They are not recorded as answers, and not shown in output about the run.
    let record: Value = serde_json::from_str(&run.logged("agent.json")).unwrap();
    assert_eq!(record["answers"], serde_json::json!(["yes"]));
}

#[test]
fn a_run_that_its_user_has_left_is_resumed_by_a_command() {
    let orchestra = OrchestraProject::clean_after(
        [execute("claude_code", "Try it."), says("Shall I?")],
        [Branch::done("tried")],
    );
    let left = orchestra.given(&[], "Add a flag.\n/exit\n").exits(1);
    assert!(!left.stderr.contains("SIG"), "{}", left.stderr);
    let (_, report) = transcript(&left);
    assert_eq!(report["status"], "interrupted");
    assert_eq!(report["summary"], "The work is not done: ended by `/exit`.");
    let resume = format!("dev-agent --resume logs/{}", left.folder);
    let told = format!(
        "The work was interrupted. To go on, run `{resume}`. To go on from `{}`, run:\n\n",
        branch(1)
    );
    let instructions = report["instructions"].as_str().unwrap();
    assert!(instructions.starts_with(&told), "{instructions}");
    let run = orchestra.given(&[], "/resume\n9\n/resume 1\n");
    let run = run.exits(0).says(&[
        "stopped          Add a flag.\n",
        "there is no session `9`: choose from 1 to 1",
        "the run goes on: Add a flag.",
    ]);
    let (_, report) = transcript(&run);
    assert_eq!(report["status"], "completed");
    assert_eq!(report["task"], "Add a flag.");
    assert_eq!(report["branches"][0]["id"], branch(1));
    // Completed work is not offered.
    let run = orchestra.given(&[], "/resume\n\n/exit\n").exits(0);
    let run = run.says(&["stopped          Add a flag.\n"]);
    assert_eq!(run.stdout, "nothing was asked for\n");
}

#[test]
fn an_end_of_input_counts_as_continue_and_three_in_a_row_end_it() {
    let orchestra = OrchestraProject::scripted((0..4).map(|_| says("Well?")), []);
    let run = orchestra.typed(&[], "").exits(5);
    assert_eq!(orchestra.azure.requests().len(), 3);
    assert_eq!(transcript(&run).1["status"], "failed");
    // A valid reply in between resets the count.
    let orchestra = OrchestraProject::clean_after(
        [
            says("a?"),
            says("b?"),
            execute("codex", "x"),
            says("c?"),
            says("d?"),
        ],
        [Branch::done("x")],
    );
    orchestra.typed(&[], "").exits(0);
}

#[test]
fn the_task_is_asked_for_where_it_is_left_out() {
    for (arguments, input, task) in [
        (&["--headless"][..], "Add a\nflag.\n", "Add a\nflag."),
        (
            &["--headless", "--task", "-"],
            "Add a\nflag.",
            "Add a\nflag.",
        ),
        (&["--task", "-"], "Add a\nflag.\n", "Add a\nflag."),
        (&[], "Add a flag.\n", "Add a flag."),
        (&[], "\n \nAdd a flag.\n", "Add a flag."),
    ] {
        let orchestra = OrchestraProject::clean();
        let run = orchestra.given(arguments, input).exits(0);
        assert_eq!(transcript(&run).1["task"], task, "{arguments:?}");
    }
    for (arguments, input) in [
        (&["--headless"][..], ""),
        (&[], "\n"),
        (&["--task", "-"], " \n"),
    ] {
        let orchestra = OrchestraProject::clean();
        let run = orchestra.given(arguments, input).exits(2);
        assert!(run.stdout.is_empty() && orchestra.pantheon.messages().is_empty());
    }
}

#[test]
fn terminal_asks_the_user_and_shows_the_wait() {
    let orchestra = OrchestraProject::clean_after([says("Which flag?")], []);
    let typed = [("task> ", "Add a flag.\r"), ("you> ", "--verbose\r")];
    let Some((shown, code)) = in_terminal(&orchestra.command(&["--plain"]), 120, &typed) else {
        return;
    };
    let shown = console::strip_ansi_codes(&shown).into_owned();
    assert_eq!(code, 0, "{shown}");
    for part in [
        "assistant> Which flag?",
        "tool> execute_agent",
        "tool< branch",
        "\"task\": \"Add a flag.\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.trim_end().ends_with('}'), "{shown}");
    let told = orchestra.sent(1).pop().unwrap()["content"].to_string();
    assert!(told.contains("--verbose"), "{told}");
}

#[test]
fn ctrl_c_in_a_terminal_ends_the_wait() {
    let orchestra = OrchestraProject::scripted([execute("claude_code", "x")], [Branch::endless()])
        .with_variable("MCP_POLL_INITIAL_SECONDS", "3600")
        .with_variable("MCP_POLL_MAX_SECONDS", "7200");
    let command = orchestra.command(&["--task", "x", "--plain"]);
    // The spinner shows the agent and its branch.
    let Some((shown, code)) =
        in_terminal(&command, 120, &[("b0000000", ""), ("claude_code", "\u{3}")])
    else {
        return;
    };
    let shown = console::strip_ansi_codes(&shown).into_owned();
    assert_eq!(code, 130, "{shown}");
    assert!(shown.contains("\"status\": \"interrupted\""), "{shown}");
    assert!(shown.contains(&branch(1)), "{shown}");
    let orchestra = OrchestraProject::scripted([says("Which?"), finished("x")], []);
    let command = orchestra.command(&["--task", "x", "--plain"]);
    let (shown, code) = in_terminal(&command, 120, &[("you> ", "\u{3}")]).unwrap();
    assert_eq!(code, 130, "{shown}");
    // Nothing is running before there is a task, so the first Ctrl-C ends the program.
    let orchestra = OrchestraProject::scripted([], []);
    let command = orchestra.command(&["--plain"]);
    let (shown, code) = in_terminal(&command, 120, &[("task> ", "\u{3}")]).unwrap();
    assert_eq!(code, 130, "{shown}");
}

#[test]
fn report_follows_the_screens_questions_and_steps() {
    let orchestra = OrchestraProject::clean_after([says("Which flag?")], [])
        .with_variable("HOME", "/no/such/home");
    let Some(mut screen) = Screen::open(&orchestra.command(&[]), 100, 40) else {
        return;
    };
    screen
        .shows("Ask for something")
        .shows("What should be done?")
        .shows("● gpt-5-deployed")
        .shows("esc×2: end the run")
        .types("/help\r")
        .shows("clear the input, end the run, quit")
        .types("Add a flag.\r")
        .shows("Which flag?")
        .shows("Esc skips it")
        .rests()
        .types("--verbose\r");
    let (shown, code) = screen.ends();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("\"status\": \"completed\""), "{shown}");
    let told = orchestra.sent(1).pop().unwrap()["content"].to_string();
    assert!(told.contains("--verbose"), "{told}");
}

#[test]
fn another_model_can_be_chosen_until_there_is_a_task() {
    let orchestra = OrchestraProject::clean()
        .with_variable("HOME", "/no/such/home")
        .with_variable("OPENAI_API_KEY", "sk-of-the-tests");
    let Some(mut screen) = Screen::open(&orchestra.command(&[]), 100, 40) else {
        return;
    };
    screen
        .shows("● gpt-5-deployed")
        .types("/model no-such\r")
        .shows("`no-such`")
        .types("/model gpt-5\r")
        .shows("gpt-5 is asked from now on")
        .shows("● gpt-5 ")
        .types("/model\r")
        .shows("from the agent's own settings")
        .types("\u{1b}")
        .shows("the model stays the same")
        .types("/model gpt-5-deployed\r")
        .shows("gpt-5-deployed is asked from now on")
        .types("/exit\r");
    assert_eq!(screen.ends().1, 0);
    let mut screen = Screen::open(&orchestra.command(&[]), 100, 40).unwrap();
    screen.shows("● gpt-5-deployed").types("\u{4}");
    assert_eq!(screen.ends().1, 0);
}

#[test]
fn a_full_disk_is_reported() {
    let orchestra = OrchestraProject::clean();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = orchestra.command(&["--headless", "--task", "x"]);
    let mut child = command
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(6), "{said}");
    assert!(said.contains("cannot write to stdout"), "{said}");
}
