//! What command lines mean, and what is said of wrong ones.

use super::*;
use crate::commands::log::LogArgs;

fn read(arguments: &[&str]) -> Result<Cli, CliMessage> {
    let all = std::iter::once("code-commit").chain(arguments.iter().copied());
    let all: Vec<OsString> = all.map(Into::into).collect();
    Cli::read(&all)
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn durations_have_a_unit() {
    for (text, seconds) in [
        ("90s", 90),
        ("30m", 1800),
        ("1h", 3600),
        ("720h", 2_592_000),
    ] {
        assert_eq!(
            parse_duration(text),
            Ok(Duration::from_secs(seconds)),
            "{text}"
        );
    }
    for text in [
        "",
        "s",
        "90",
        "1d",
        "0s",
        "-1s",
        "+1s",
        "1.5h",
        "1 h",
        "721h",
        "99999999999999999999h",
        "m1",
        "1µ",
    ] {
        assert!(parse_duration(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    for (arguments, expected) in [
        (
            &["--modle", "gpt-5"][..],
            &[
                "'--modle' found; did you mean `--model`?",
                "`--model`",
                "`--cc`",
                "`--replay`",
            ][..],
        ),
        (&["--max-cost", "much"], &["'much'", "`0.50`"]),
        (&["--output-format", "xml"], &["'xml'", "text, json, jsonl"]),
        (&["--timeout", "soon"], &["'soon'", "`90s`"]),
        (&["dmeo"], &["'dmeo'", "`demo`"]),
        (
            &["--cc", "--build-timeout", "1m"],
            &["--build-timeout", "cannot be used with"],
        ),
        (&["--model"], &["--model", "hint: see `code-commit --help`"]),
        (
            &["demo", "--model", "gpt-5"],
            &[
                "'--model'",
                "\nhint: allowed are `--chat`, `--quiet`, `--output-format`, `--root`, `--help`\n",
            ],
        ),
        (
            &["dev", "sessions", "lst"],
            &[
                "\nhint: allowed are `--quiet`, `--output-format`, `--root`, `--help`, `list`,\n  `help`\n",
            ],
        ),
    ] {
        let usage = read(arguments).unwrap_err();
        assert!(usage.is_error);
        for part in expected {
            assert!(usage.text.contains(part), "{arguments:?}: {}", usage.text);
        }
        for others in ["tip: ", "For more information", "\n\n\n"] {
            assert!(
                !usage.text.contains(others),
                "{arguments:?}: {}",
                usage.text
            );
        }
        let mut lines = usage.text.lines();
        assert!(lines.all(|line| line.len() <= 80 || line.starts_with("error:")));
    }
}

#[test]
fn what_all_commands_take_may_stand_in_front_of_them() {
    let cli = read(&[
        "--root",
        "a",
        "-q",
        "--output-format",
        "json",
        "log",
        "-n",
        "3",
    ])
    .unwrap();
    assert_eq!(cli.place.root, Some("a".into()));
    assert!(cli.output.quiet && cli.output.output_format == OutputFormat::Json);
    assert!(matches!(
        cli.command,
        Some(Command::Log(LogArgs {
            number: Some(3),
            ..
        }))
    ));
    for arguments in [
        &["--stream", "log"][..],
        &["-q", "--model", "gpt-5", "log"],
        &["log", "--stream"],
        &["--timeout", "30m", "undo"],
        &["-q", "-m", "x", "--root", "a", "rollup"],
    ] {
        assert!(read(arguments).unwrap_err().is_error, "{arguments:?}");
    }
}

#[test]
fn the_report_has_three_flags() {
    for flag in ["--consistency-check", "--consistency", "--cc"] {
        assert!(read(&[flag]).unwrap().consistency_check, "{flag}");
    }
}
