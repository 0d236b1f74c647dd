//! Tests of command lines, and of the errors in them.

use super::*;
use crate::commands::log::LogArgs;
use crate::model::Provider;
use crate::project::home;

fn read(arguments: &[&str]) -> Result<Cli, CliMessage> {
    let words = std::iter::once("code-commit").chain(arguments.iter().copied());
    Cli::read(&words.map(Into::into).collect::<Vec<OsString>>())
}

#[test]
fn the_definition_is_consistent() {
    Cli::command().debug_assert();
}

/// Negative values are rejected with the allowed values, not parsed as flags.
#[test]
fn flags_for_numbers_take_what_begins_with_a_hyphen() {
    fn check(command: &clap::Command) {
        for argument in command.get_arguments() {
            let name = argument.get_value_names().unwrap_or_default().first();
            let is_number = name.is_some_and(|name| {
                ["N", "TIME", "USD", "PERCENT", "TOKENS", "DAYS"].contains(&name.as_str())
            });
            assert!(
                !is_number || argument.is_allow_hyphen_values_set(),
                "{argument}"
            );
        }
        command.get_subcommands().for_each(check);
    }
    let mut whole = Cli::command();
    whole.build();
    check(&whole);
    for (line, flag, allowed) in [
        ("fleet run m --out o --jobs -1", "--jobs", "above 0"),
        ("fleet run m --out o --first -1", "--first", "above 0"),
        (
            "fleet run m --out o --stop-above -20%",
            "--stop-above",
            "`20%`",
        ),
        ("fleet task m -1 --out o", "<INDEX>", "0 or more"),
        ("log -n -3", "--number", "above 0"),
        ("log --prune -3", "--prune", "0 or more"),
        ("--attempts -1", "--attempts", "1..=8"),
        ("--reask -1", "--reask", "0 or more"),
        ("--context -40k", "--context", "`40k`"),
        ("--timeout -5m", "--timeout", "`90s`"),
        ("--max-cost -1", "--max-cost", "`0.50`"),
        ("rollup --budget -3", "--budget", "0 or more"),
        ("models --try x --runs -1", "--runs", "1..=100"),
        ("plan reliability --at-least -1", "--at-least", "0..=100"),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let told = read(&words).unwrap_err().text;
        let is_named = told.contains(&format!(" for '{flag}")) && told.contains(allowed);
        assert!(is_named, "{line}: {told}");
    }
}

#[test]
fn a_command_describes_itself_as_the_list_of_commands_does() {
    let listed = Cli::command();
    let mut whole = listed.clone();
    whole.build();
    for command in listed.get_subcommands() {
        let built = whole.find_subcommand(command.get_name()).unwrap();
        let about = |command: &clap::Command| command.get_about().map(ToString::to_string);
        assert_eq!(about(built), about(command), "{}", command.get_name());
        assert!(built.get_long_about().is_none(), "{}", command.get_name());
    }
}

#[test]
fn help_and_documents_name_every_vendor() {
    let help = |arguments: &[&str]| read(arguments).unwrap_err().text;
    let helps = [help(&["--help"]), help(&["chat", "--help"])];
    for vendor in Provider::ALL.map(Provider::vendor) {
        for variable in vendor.key_variables.iter().chain([&vendor.url_variable]) {
            let is_named = helps.iter().all(|help| help.contains(variable));
            assert!(is_named, "{variable}");
        }
        let word = format!("`{}`", vendor.word);
        assert!(
            include_str!("../../../docs/models.md").contains(&word),
            "{word}"
        );
    }
}

/// An agent missing from one of these lists would still start, but without its sandbox flags or with its keys exposed.
#[test]
fn an_agent_is_known_wherever_agents_are_told_apart() {
    let mut whole = Cli::command();
    whole.build();
    let is_agent = |command: &&clap::Command| {
        let mut flags = command.get_arguments();
        flags.any(|flag| flag.get_id() == "prove")
    };
    let names: Vec<_> = whole
        .get_subcommands()
        .filter(is_agent)
        .map(clap::Command::get_name)
        .collect();
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let cli = read(&[name, "--replay", "run"]).unwrap();
        let mut command = cli.command.unwrap();
        assert!(command.agent().is_some(), "`Command::agent`: {name}");
        assert_eq!(
            command.named_runs(),
            [Path::new("run")],
            "`Command::named_runs`: {name}"
        );
        let mut homes = home::ALL.iter();
        assert!(
            homes.any(|home| home.command == name),
            "`home::ALL`: {name}"
        );
    }
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
fn usage_errors_list_the_allowed_values() {
    for (arguments, expected) in [
        (
            &["--frobnicate", "gpt-5"][..],
            &[
                "'--frobnicate' found\n",
                "`--model`",
                "`--cc`",
                "`--replay`",
            ][..],
        ),
        (&["--max-cost", "much"], &["'much'", "`0.50`"]),
        (&["--output-format", "xml"], &["'xml'", "text, json, jsonl"]),
        (&["--timeout", "soon"], &["'soon'", "`90s`"]),
        (
            &["--cc", "--build-timeout", "1m"],
            &["--build-timeout", "cannot be used with"],
        ),
        (&["--model"], &["--model", "hint: see `code-commit --help`"]),
        // A value is no command.
        (
            &["--gate", "report", "--timeout", "x"],
            &["hint: see `code-commit --help`"],
        ),
        (
            &["plan", "-p", "x", "--gate", "report"],
            &["hint: see `code-commit plan --help`"],
        ),
        (
            &["mcp", "tols"],
            &["`tools`", "hint: see `code-commit mcp --help`"],
        ),
        (
            &["demo", "--model", "gpt-5"],
            &[
                "'--model'",
                "\nhint: allowed are `--chat`, `--help`, `--quiet`, `--output-format`, `--root`\n",
            ],
        ),
        (
            &["dev", "sessions", "prune"],
            &["'prune'", "\nhint: allowed are `list`, `help`\n"],
        ),
        (&["help", "-h"], &["'-h'", "hint: allowed are `--"]),
        (
            &["help", "nope"],
            &["'nope'", "hint: allowed are `init`, `rollup`"],
        ),
        (&["dev", "help", "nope"], &["'nope'", "hint: allowed are `"]),
        (
            &["help", "--output-format", "json"],
            &["'--output-format'\n", "hint: see `code-commit --help`"],
        ),
        (
            &["help", "--output-format=json"],
            &["'--output-format=json'\n", "hint: see `code-commit --help`"],
        ),
        (
            &["--protect", "./tests"],
            &["'./tests'", "without `!` or `./`"],
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
    let told = read(&["--findings-file", "x"]).unwrap_err().text;
    assert!(
        told.ends_with("hint: add `--cc --findings sarif`\n"),
        "{told}"
    );
}

#[test]
fn a_typo_has_one_suggestion_if_a_name_is_near() {
    for (arguments, meant) in [
        (&["--modle", "gpt-5"][..], Some("--model")),
        (&["--dryrun"], Some("--dry-run")),
        (&["dmeo"], Some("demo")),
        (&["logs"], Some("log")),
        (&["lgo", "-n", "3"], Some("log")),
        (&["dev", "sessions", "lst"], Some("list")),
        (&["models", "--ad", "x"], Some("--add")),
        (&["--output", "json"], Some("--output-format")),
        (&["--allow"], None),
        (&["comit"], None),
        (&["build"], None),
        (&["--json"], None),
        (&["rollup", "--stdout"], None),
    ] {
        let told = read(arguments).unwrap_err().text;
        let rests = told.split("did you mean `").skip(1);
        let suggested: Vec<_> = rests.map(|rest| rest.split('`').next()).collect();
        assert_eq!(suggested, Vec::from_iter(meant.map(Some)), "{told}");
        assert_eq!(told.contains("allowed are "), meant.is_none(), "{told}");
        assert_eq!(told.matches("\nhint: ").count(), 1, "{told}");
    }
}

#[test]
fn the_short_help_fits_a_screen_and_names_what_there_is() {
    for command in [
        &["code-commit"][..],
        &["code-commit", "chat"],
        &["code-commit", "dev"],
        &["code-commit", "plan"],
        &["code-commit", "orchestrate"],
        &["code-commit", "mcp"],
        &["dev"],
        &["dev-agent"],
    ] {
        let help = |flag| {
            let arguments = command.iter().chain([&flag]).map(Into::into);
            Cli::read(&arguments.collect::<Vec<_>>()).unwrap_err().text
        };
        let (short, whole) = (help("-h"), help("--help"));
        assert!(short.lines().count() <= 25, "{short}");
        if command.last() == Some(&"mcp") {
            continue;
        }
        assert!(short.contains("--help") && whole.len() > 3 * short.len());
        for seldom in [SELDOM, "--tier", "--timeout", "Exit codes"] {
            assert!(!short.contains(seldom), "{seldom}\n{short}");
        }
        assert!(whole.contains(SELDOM) && whole.contains("--timeout"));
        for line in short.lines().filter(|line| line.starts_with("  ")) {
            let names = line.trim_start().split("  ").next().unwrap();
            for name in names
                .split(", ")
                .map(|name| name.split(' ').next().unwrap())
            {
                let mut lines = whole.lines().map(str::trim_start);
                let is_there =
                    lines.any(|line| line.starts_with(name) || line.contains(&format!(", {name}")));
                assert!(is_there, "{name}");
            }
        }
    }
}

#[test]
fn global_flags_may_precede_the_command() {
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
            number: Some(number),
            ..
        })) if number.get() == 3
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
