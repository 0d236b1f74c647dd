//! A run's output on a terminal: the reasons for a failed build, the model's words, and lists that fit.

use std::process::{Command, Stdio};

use crate::support::{ModelServer, TestProject, skipped};

const EDIT: &str = "^^^src/main.rs\nfn main() { mended() }\n^^^end\n";

/// Returns the output of `code-commit` with these arguments on a terminal of 80 columns and 24 rows; `None` if no
/// terminal can be created.
fn on_terminal(
    project: &TestProject,
    arguments: &str,
    variables: &[(&str, &str)],
) -> Option<String> {
    let command = project.command(&[]);
    let program = command.get_program().to_str().unwrap();
    let line = format!("stty cols 80 rows 24; exec {program} {arguments}");
    let environment = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let shown = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(project.path(""))
        .env_clear()
        .envs(environment)
        .envs([("SHELL", "/bin/sh"), ("TERM", "xterm")])
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output();
    let Ok(shown) = shown else {
        skipped("there is no `script`");
        return None;
    };
    Some(String::from_utf8_lossy(&shown.stdout).replace("\r\n", "\n"))
}

/// Returns the visible part of a line after everything was printed.
fn visible(line: &str) -> String {
    let line = console::strip_ansi_codes(line);
    line.rsplit('\r').next().unwrap_or_default().to_owned()
}

#[track_caller]
fn in_order(text: &str, parts: &[&str]) {
    let mut from = 0;
    for part in parts {
        let found = text[from..].find(part);
        from += found.unwrap_or_else(|| panic!("`{part}` is missing from byte {from} on\n{text}"));
    }
}

#[test]
fn a_failed_build_says_why_and_at_the_end_where_all_of_it_is() {
    let server = ModelServer::gemini(&[EDIT; 4]);
    let long = "x".repeat(300);
    let project = TestProject::new().with(&server).build(&format!(
        "echo compiling; echo 'error[E0308]: mismatched types'; echo '  --> src/main.rs:2:5'\n\
         echo '::error::{long}'; echo 'error: ::set-output'; exit 7"
    ));
    let run = project.run(&[]).exits(1);
    let log = format!("logs/{}/repair-query-3-build.txt", run.folder);
    in_order(
        &run.stderr,
        &[
            "  failed  build.sh, ",
            "            error[E0308]: mismatched types (src/main.rs:2:5)\n",
            "            error: ::set-output\n",
            "for repair 1",
            "error: `build.sh` still fails after 3 repairs: exit code: 7\n",
            &format!("hint: see the build's log, `{log}`"),
        ],
    );
    assert!(!run.stderr.contains("compiling"), "{}", run.stderr);
    let quiet = ModelServer::gemini(&[EDIT; 4]);
    let run = project
        .with(&quiet)
        .run(&["--quiet", "--allow-stale"])
        .exits(1);
    assert!(!run.stderr.contains("E0308"), "{}", run.stderr);
    run.says(&["repair-query-3-build.txt`"]);
}

#[test]
fn a_build_that_names_no_error_is_reported_by_its_last_lines() {
    let server = ModelServer::gemini(&[EDIT, EDIT]);
    let project = TestProject::new().with(&server).build(
        "test -e passes && exit; touch passes; seq 1 30; printf '::set-output\\033[2J\\n'; exit 1",
    );
    let run = project.run(&[]).exits(0);
    in_order(
        &run.stderr,
        &[
            "  failed  build.sh, ",
            "\n            22\n            23\n",
            "            30\n            : :set-output\n",
        ],
    );
    assert!(!run.stderr.contains("            21\n"), "{}", run.stderr);
}

#[test]
fn on_a_terminal_every_line_of_a_failed_build_fits() {
    let server = ModelServer::gemini(&[&format!("{}\n{EDIT}", "many words ".repeat(40)), EDIT]);
    let project = TestProject::new().with(&server).build(&format!(
        "test -e passes && exit; touch passes; echo 'error: {}'; exit 1",
        "long ".repeat(60)
    ));
    let Some(shown) = on_terminal(&project, "", &[]) else {
        return;
    };
    assert!(shown.contains("\u{1b}[2merror: long"), "{shown:?}");
    let mut lines = shown.lines().map(visible);
    let fits = lines.all(|line| {
        let is_aside = line.starts_with("            ");
        !is_aside || console::measure_text_width(&line) < 80
    });
    assert!(fits, "{shown}");
}

#[test]
fn on_a_terminal_sentences_are_broken_at_words_and_reasons_are_whole() {
    let server = ModelServer::gemini(&[EDIT; 4]);
    let project = TestProject::new().with(&server).build(
        "echo 'error[E0425]: cannot find value `x` in this scope, though it is looked for'\n\
         echo '  --> src/a/long/way/to/main.rs:2:5'; exit 7",
    );
    let Some(shown) = on_terminal(&project, "", &[("NO_COLOR", "1")]) else {
        return;
    };
    in_order(
        &shown,
        &[
            "error[E0425]: cannot find value `x` in this scope, though it is\n",
            "looked for (src/a/long/way/to/main.rs:2:5)\n",
            "hint: see the build's log,\n      `logs/",
            "/repair-query-3-build.txt`",
        ],
    );
    let story = on_terminal(&project, "log last", &[("NO_COLOR", "1"), ("PAGER", "cat")]).unwrap();
    in_order(
        &story,
        &[
            "\n  Hint: see the build's log,",
            "\n    `logs/",
            "/repair-query-3-build.txt`",
        ],
    );
    // A line of progress is broken before a word, and a row of a table is one line.
    assert!(
        shown.contains("20 out (30\n            thought), $0.00061, "),
        "{shown}"
    );
    let rows = story.lines().skip_while(|line| *line != "Calls");
    let rows: Vec<&str> = rows.skip(1).take_while(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 5, "{story}");
    assert!(
        rows.iter()
            .all(|row| console::measure_text_width(row) <= 80),
        "{story}"
    );
    assert!(
        rows[4].starts_with("  Repair 3") && rows[4].ends_with("$0.00061"),
        "{story}"
    );
}

#[test]
fn on_a_terminal_the_next_steps_of_init_are_broken_at_words() {
    let project = TestProject::new();
    let Some(shown) = on_terminal(&project, "init", &[("NO_COLOR", "1")]) else {
        return;
    };
    let fits = |line: &str| console::measure_text_width(line) <= 80;
    assert!(
        shown.lines().all(fits) && shown.contains("\n   "),
        "{shown}"
    );
}

#[test]
fn prose_around_edits_is_shown_and_kept_in_the_story() {
    let after: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    let reply = format!("I rename \u{1b}[2Jit.\n\n{EDIT}\n\n{after}");
    let server = ModelServer::gemini(&[&reply]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0);
    in_order(
        &run.stderr,
        &[
            "answered  ",
            "            I rename \u{fffd}[2Jit.\n            \n            line 1\n",
            "            line 10\n            … 10 more lines\n",
            " applied  ",
        ],
    );
    assert!(!run.stderr.contains("line 11"), "{}", run.stderr);
    let story = project.run(&["log", "last"]).exits(0).stdout;
    in_order(
        &story,
        &[
            "The query\n    ",
            "\n✓ The change (passed)\n",
            "    I rename \u{fffd}[2Jit.\n",
            "    line 1\n",
            "more lines\n",
            "src/main.rs | 2 +-",
        ],
    );
    let quiet = ModelServer::gemini(&[&reply]);
    let run = project
        .with(&quiet)
        .run(&["--quiet", "--allow-stale"])
        .exits(0);
    assert!(!run.stderr.contains("rename"), "{}", run.stderr);
}

#[test]
fn a_story_shows_the_errors_of_a_long_build() {
    let server = ModelServer::gemini(&[EDIT, EDIT]);
    let project = TestProject::new().with(&server).build(
        "test -e passes && exit; touch passes; echo 'error: it is broken'; seq 1 30; exit 1",
    );
    project.run(&[]).exits(0);
    let story = project.run(&["log", "last"]).exits(0).stdout;
    assert!(story.contains("    error: it is broken\n"), "{story}");
    assert!(!story.contains("    30\n"), "{story}");
}

#[test]
fn the_list_has_the_query_and_fits_the_terminal() {
    let server = ModelServer::gemini(&[EDIT]);
    let query = format!(
        "\nAdd a --verbose flag {}\nsecond line\n",
        "and more ".repeat(20)
    );
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/query.txt", &query);
    let folder = project.run(&[]).exits(0).folder;
    let listed = project.run(&["log"]).exits(0).stdout;
    let last = listed.lines().last().unwrap();
    assert!(last.starts_with(&folder) && last.contains("  Add a --verbose flag and more"));
    assert!(!listed.contains("second line"), "{listed}");
    let json = project.run(&["log", "--output-format", "json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert!(
        json["runs"][0]["query"]
            .as_str()
            .unwrap()
            .contains("second line")
    );
    let Some(shown) = on_terminal(&project, "log", &[("NO_COLOR", "1")]) else {
        return;
    };
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines
            .iter()
            .all(|line| console::measure_text_width(line) <= 80),
        "{shown}"
    );
    assert!(lines[1].starts_with(&folder[..19]), "{shown}");
    assert!(
        lines[1].contains("commit    done") && lines[1].contains("Add a --verbose flag"),
        "{shown}"
    );
}

#[test]
fn the_models_fit_the_terminal() {
    let project = TestProject::new();
    let Some(shown) = on_terminal(&project, "models", &[("NO_COLOR", "1")]) else {
        return;
    };
    let fits = |line: &str| line.starts_with("warning:") || console::measure_text_width(line) <= 80;
    assert!(
        shown.contains("gpt-5") && shown.lines().all(fits),
        "{shown}"
    );
}

#[test]
fn a_long_text_goes_through_the_users_pager_on_a_terminal_alone() {
    let long: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    let server = ModelServer::gemini(&[&format!("^^^long.txt\n{long}^^^end\n")]);
    let project = TestProject::new()
        .with(&server)
        .program("show.sh", "#!/bin/sh\necho paged $1 with $LESS\ncat\n");
    project.run(&[]).exits(0);
    let pager = project.path("show.sh");
    let pager = format!("{} 'by me'", pager.to_str().unwrap());
    let Some(shown) = on_terminal(&project, "diff", &[("PAGER", &pager)]) else {
        return;
    };
    assert!(shown.contains("paged by me with FRX\n"), "{shown}");
    assert!(shown.contains("\u{1b}[32m+line 60"), "{shown:?}");
    for short_or_none in [
        ("log", pager.as_str()),
        ("diff", "cat"),
        ("diff", "/no/such"),
    ] {
        let (command, pager) = short_or_none;
        let shown = on_terminal(&project, command, &[("PAGER", pager)]).unwrap();
        assert!(!shown.contains("paged"), "{command} {pager}: {shown}");
        assert!(shown.contains("line 60") || command == "log", "{shown}");
    }
    // A manual page is shown on a terminal, and formatted elsewhere.
    let shown = on_terminal(&project, "man log", &[("PAGER", &pager)]).unwrap();
    assert!(
        shown.contains("--prune <DAYS>") && !shown.contains(".TH"),
        "{shown}"
    );
    let shown = on_terminal(&project, "man", &[("PAGER", &pager)]).unwrap();
    assert!(
        shown.contains("paged by me") && !shown.contains(".TH"),
        "{shown}"
    );
    let project = project.variable("PAGER", &pager);
    for command in ["diff", "man"] {
        let piped = project.run(&[command]).exits(0).stdout;
        assert!(!piped.contains("paged"), "{piped}");
        assert_eq!(piped.contains(".TH"), command == "man", "{piped}");
    }
}

/// A project with forged runs that consist of names only.
fn forged(names: &[String]) -> TestProject {
    let file = |project: TestProject, name: &String| {
        let started = "2026-01-02T03:04:05+00:00";
        let record = serde_json::json!({
            "schema": 1, "version": "0.1.0", "workflow": "commit", "model": "gpt-5", "started": started,
            "exit": {"code": 0, "name": "done"}, "seconds": 1.0, "attempts": [], "warnings": [], "error": null,
        });
        project.file(&format!("logs/{name}/result.json"), record.to_string())
    };
    names
        .iter()
        .fold(TestProject::new().variable("TZ", "UTC"), file)
}

#[test]
fn a_run_is_named_by_its_beginning_its_time_or_its_place() {
    let today = chrono::Utc::now().format("%Y-%m-%d");
    let names = [
        "2020-01-02-03-04-05-committing-code".to_owned(),
        "2020-01-02-13-04-05-committing-code".to_owned(),
        format!("{today}-14-05-33-committing-code"),
    ];
    let project = forged(&names);
    let told = |run: &str| project.run(&["log", run]).exits(0).stdout;
    for (run, expected) in [
        ("2020-01-02-03", &names[0]),
        ("logs/2020-01-02-13", &names[1]),
        ("14:05", &names[2]),
        ("14-05", &names[2]),
        ("14:05:33", &names[2]),
        (&names[1], &names[1]),
    ] {
        assert!(
            told(run).starts_with(&format!("logs/{expected}\n")),
            "{run}"
        );
    }
    for command in ["log", "diff", "undo", "report"] {
        project.run(&[command, "2020-01"]).exits(2).says(&[
            "`2020-01` may be any of 2 runs: ",
            &names[0],
            &names[1],
            "hint: give more",
        ]);
        for missing in ["14:06", "-4", "-0", "2021", "4:5"] {
            project
                .run(&[command, missing])
                .exits(2)
                .says(&["there is no run at `"]);
        }
    }
    project
        .run(&["--replay", "2020-01"])
        .exits(2)
        .says(&["`2020-01` may be any of 2 runs"]);
}

#[test]
fn the_last_run_and_those_before_it_are_named_by_their_place_in_the_list() {
    let server = ModelServer::gemini(&[EDIT, "Nothing."]);
    let project = TestProject::new().with(&server);
    let first = project.run(&[]).exits(0).folder;
    let second = project.run(&["--allow-stale"]).exits(0).folder;
    for (run, expected) in [("last", &second), ("-1", &second), ("-2", &first)] {
        let story = project.run(&["log", run]).exits(0).stdout;
        assert!(story.starts_with(&format!("logs/{expected}\n")), "{run}");
    }
    let replayed = project.run(&["--replay", "-2"]).exits(0);
    assert!(
        replayed.stderr.contains("src/main.rs"),
        "{}",
        replayed.stderr
    );
    let listed = project.run(&["log", "-n", "1"]).exits(0).stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains(&replayed.folder), "{listed}");
    project.run(&["undo", "-3"]).exits(0);
    assert!(project.read("src/main.rs").contains("main() {}"));
}

#[test]
fn an_undo_that_does_nothing_leaves_no_folder() {
    let server = ModelServer::gemini(&[EDIT]);
    let project = TestProject::new().with(&server);
    let folder = project.run(&[]).exits(0).folder;
    let project = project.file("src/main.rs", "mine");
    project.run(&["undo"]).exits(6).says(&["`src/main.rs`"]);
    assert_eq!(project.runs().len(), 1);
    let project = project.file("src/main.rs", "fn main() {}\n");
    let run = project.run(&["undo", &folder]).exits(0);
    assert!(
        run.stdout.contains("already as it was before"),
        "{}",
        run.stdout
    );
    assert_eq!(project.runs().len(), 1);
}

#[test]
fn a_diff_shows_names_as_they_are() {
    let server = ModelServer::gemini(&[&format!("^^^\u{fc}ber \u{4f60}.txt\nx\n^^^end\n{EDIT}")]);
    let project = TestProject::new().with(&server);
    project.run(&[]).exits(0);
    let diff = project.run(&["diff"]).exits(0).stdout;
    assert!(diff.contains("+++ b/\u{fc}ber \u{4f60}.txt"), "{diff}");
    let stat = project.run(&["diff", "--stat"]).exits(0).stdout;
    assert!(
        stat.contains(" src/main.rs | 2 +-\n \u{fc}ber \u{4f60}.txt | 1 +\n"),
        "{stat}"
    );
}

#[test]
fn quiet_leaves_the_result_alone() {
    let project = TestProject::new();
    for (arguments, expected) in [
        (&["init"][..], "done: the project is set up\n"),
        (&["recover"], "done: nothing to recover\n"),
        (&["demo", "shown"], "log: shown/logs/"),
    ] {
        let run = project.run(&[arguments, &["--quiet"]].concat()).exits(0);
        assert_eq!(run.stderr, "", "{arguments:?}");
        let last = run.stdout.lines().last().unwrap();
        assert!(
            format!("{last}\n").starts_with(expected),
            "{arguments:?}: {}",
            run.stdout
        );
    }
}

#[test]
fn paths_are_links_on_a_terminal_that_takes_them_and_nowhere_else() {
    let server = ModelServer::gemini(&[EDIT]);
    let project = TestProject::new().with(&server);
    let folder = project.run(&[]).exits(0).folder;
    let link = format!("/logs/{folder}/report.html\u{1b}\\logs/{folder}/report.html\u{1b}]8;;");
    let forced = [("FORCE_HYPERLINK", "1")];
    let Some(shown) = on_terminal(&project, "report", &forced) else {
        return;
    };
    assert!(
        shown.contains("the page is in \u{1b}]8;;file:///") && shown.contains(&link),
        "{shown:?}"
    );
    let plain = [&forced[..], &[("NO_COLOR", "1")]].concat();
    for variables in [&[][..], &plain] {
        let shown = on_terminal(&project, "report", variables).unwrap();
        assert!(!shown.contains("]8;;"), "{shown:?}");
    }
    let project = project.variable("FORCE_HYPERLINK", "1");
    let piped = project.run(&["report"]).exits(0).stdout;
    assert!(!piped.contains("]8;;"), "{piped:?}");
}
