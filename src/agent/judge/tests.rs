//! Tests of commands that pass and of those that need confirmation, however disguised.

use std::path::Path;

use proptest::prelude::*;

use super::{JudgedProgram, LOOKS, ScriptState};

/// Commands that pass under `always`.
const PLAIN: &str = include_str!("tests/plain.txt");
/// Commands that need confirmation whatever is allowed.
const HOSTILE: &str = include_str!("tests/hostile.txt");
/// Read-only commands.
const LOOKING: &str = include_str!("tests/looking.txt");

/// Judges a command in a project where the session has written some files and git does not track others.
fn judge(command: &str) -> super::JudgedCommand {
    super::judge(command, &|path: &Path| match path.to_str() {
        Some(path) if path.contains("written") => ScriptState::Written,
        Some(path) if path.contains("new") || path.starts_with(['/']) || path.contains("..") => {
            ScriptState::Untracked
        }
        Some(path) if path.contains("node_modules") || path.contains("rm") => {
            ScriptState::Untracked
        }
        Some("./a.out" | "./gradlew" | "target/debug/app") => ScriptState::Untracked,
        _ => ScriptState::Tracked,
    })
}

/// Returns the reasons for asking about a command whatever is allowed.
fn reasons(command: &str) -> Vec<&'static str> {
    judge(command).reasons.into_iter().collect()
}

/// Returns the commands in a list: one per line, with line feeds escaped.
fn commands(list: &str) -> Vec<String> {
    list.lines().map(|line| line.replace('␤', "\n")).collect()
}

#[test]
fn everyday_commands_pass() {
    let asked: Vec<_> = commands(PLAIN)
        .into_iter()
        .map(|command| (reasons(&command), command))
        .filter(|(reasons, _)| !reasons.is_empty())
        .collect();
    assert!(asked.is_empty(), "{asked:#?}");
}

#[test]
fn commands_that_may_do_harm_do_not() {
    let passed: Vec<_> = commands(HOSTILE)
        .into_iter()
        .filter(|command| reasons(command).is_empty())
        .collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn only_harmless_commands_are_classified_as_read_only() {
    let looks = |command: &str| {
        let judged = judge(command);
        judged.reasons.is_empty() && judged.programs.iter().all(|program| program.only_looks)
    };
    let unknown: Vec<_> = commands(LOOKING)
        .into_iter()
        .filter(|it| !looks(it))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
    let known: Vec<_> = commands(HOSTILE)
        .into_iter()
        .filter(|it| looks(it))
        .collect();
    assert!(known.is_empty(), "{known:#?}");
}

#[test]
fn odd_characters_and_great_lengths_are_unclear() {
    for odd in [
        '\0', '\r', '\u{b}', '\u{a0}', '\u{2028}', '\u{202e}', '\u{1b}',
    ] {
        let command = format!("ls{odd}x");
        assert_eq!(reasons(&command), ["cannot be judged"], "{command:?}");
    }
    assert!(reasons(&format!("ls {}", "x".repeat(10_000))).is_empty());
    for long in ["x", "CI=1 ", "find;", "'", "\\", "("] {
        assert!(!reasons(&long.repeat(1_000_000)).is_empty());
        // Judging takes neither long nor much stack.
        let _ = judge(&long.repeat(20_000 / long.len()));
    }
    assert!(reasons("").is_empty());
}

#[test]
fn a_module_that_the_session_has_written_is_asked_about() {
    for (written, command, is_asked) in [
        ("mypy.py", "python3 -m mypy src", true),
        ("mypy/__main__.py", "python -m mypy", true),
        ("http.py", "python -m http.server", true),
        ("http/server.py", "python -m http.server", true),
        ("sub/mypy.py", "cd sub && python -m mypy", true),
        ("sub/mypy.py", "python -m mypy", false),
        ("pytest.py", "python -m mypy", false),
    ] {
        let judged = super::judge(command, &|path| match path.to_str() {
            Some(path) if path == written => ScriptState::Written,
            _ => ScriptState::Untracked,
        });
        assert_eq!(!judged.reasons.is_empty(), is_asked, "{written}: {command}");
    }
}

#[test]
fn a_rule_is_for_the_program_and_its_subcommand() {
    for (command, prefixes) in [
        ("cargo test remove_user", &["cargo test"][..]),
        ("cargo +nightly test -q", &["cargo +nightly test"]),
        (
            "cargo --manifest-path web/Cargo.toml test",
            &["cargo --manifest-path web/Cargo.toml test"],
        ),
        (
            "cargo +nightly -p a/b test",
            &["cargo +nightly -p a/b test"],
        ),
        (
            "npm --prefix ./web test; make -C sub test",
            &["npm --prefix ./web test", "make -C sub test"],
        ),
        ("cargo --version", &["cargo --version"]),
        ("./build.sh --all", &["./build.sh"]),
        ("pytest -q", &["pytest"]),
        ("timeout 60 cargo test", &["cargo test"]),
        ("CI=1 npm test", &["npm test"]),
        ("npm run lint -- --quiet", &["npm run lint"]),
        ("npm install", &["npm install"]),
        ("npx --yes eslint src", &["npx --yes eslint"]),
        ("npx tsc -p x", &["npx tsc"]),
        ("uv run pytest -q", &["uv run pytest"]),
        (
            "poetry run python tools/a.py x",
            &["poetry run python tools/a.py"],
        ),
        ("python manage.py test", &["python manage.py"]),
        ("python3 -m pytest tests", &["python3 -m pytest"]),
        ("bash 'my tool.sh' x", &["bash 'my tool.sh'"]),
        ("pytest tests/a.py", &["pytest"]),
        ("make", &["make"]),
        ("make test", &["make test"]),
        ("go test ./...", &["go test"]),
        ("go run ./cmd", &["go run"]),
        ("./gradlew check", &["./gradlew check"]),
        ("./build.sh", &["./build.sh"]),
        ("git add -A", &["git add"]),
        (
            "cd sub && cargo test | tail -5",
            &[LOOKS, "cargo test", LOOKS],
        ),
        ("ls", &[LOOKS]),
        ("ls $(x)", &[]),
        ("", &[]),
    ] {
        let judged = judge(command);
        let found: Vec<String> = judged.programs.iter().map(JudgedProgram::prefix).collect();
        assert_eq!(found, prefixes, "{command}");
        // A rule covers the program it was written for.
        for program in judged.programs {
            assert!(program.covered_by(&program.prefix()).is_some(), "{command}");
        }
    }
}

#[test]
fn a_prefix_covers_whole_words_of_the_same_program() {
    for (command, prefix, expected) in [
        ("cargo test x", "cargo test", Some(2)),
        ("cargo test", "cargo", Some(1)),
        ("cargo testx", "cargo test", None),
        ("cargo 'test x'", "cargo test", None),
        ("cargo --locked test", "cargo test", None),
        ("./cargo test", "cargo test", None),
        ("/tmp/cargo test", "cargo test", None),
        ("git status", LOOKS, Some(0)),
        ("git status", "git status", Some(2)),
        ("cargo test", LOOKS, None),
        ("cargo test", "", None),
        ("cargo test", "'", None),
    ] {
        let judged = judge(command);
        assert_eq!(judged.programs[0].covered_by(prefix), expected, "{command}");
    }
}

#[test]
fn a_forbidden_prefix_is_known_by_any_path_and_behind_options() {
    for (command, is_forbidden) in [
        ("git push", true),
        ("/usr/bin/git push -f", true),
        ("git -C . push", true),
        ("git --no-pager push", true),
        ("timeout 5 git push", true),
        ("GIT_TRACE=1 git push", true),
        ("env git push", true),
        ("xargs -n1 git push", true),
        ("xargs -n 1 git push", true),
        ("time -v git push", true),
        ("nohup -- git push", true),
        ("timeout --signal KILL 5 git push", true),
        ("env -u X timeout 5 git push", true),
        ("uv run git push", true),
        ("npx git push", true),
        ("sudo /usr/bin/env git push", true),
        ("if true; then git push; fi", true),
        ("git push > log", true),
        ("(git push)", true),
        ("echo $(/usr/bin/git -C . push)", true),
        ("find . -maxdepth 0 -exec git push \\;", true),
        ("/usr/bin/gi[t] push", true),
        ("gi\\t pu''sh > x", true),
        ("rustup run stable git push", true),
        ("sh new.sh git push", true),
        ("xargs -a /dev/stdin git push", true),
        ("git pushes", false),
        ("git log push", false),
        ("git -C . stash push", false),
        ("git -C . commit -m push", false),
        ("git", false),
        ("cargo push", false),
        ("echo git push", false),
        ("command -v git push", false),
        ("rm git push", false),
        ("grep 'git push' a", false),
        ("git log > push", false),
        ("cargo test > log", false),
        ("echo $(git)", false),
    ] {
        let judged = judge(command);
        let by_program = |program: &JudgedProgram| program.forbidden_by("git push") == Some(2);
        let found = judged.programs.iter().any(by_program) || judged.may_run("git push");
        assert_eq!(found, is_forbidden, "{command}");
    }
    for (command, is_forbidden) in [
        ("echo $(/bin/r[m] x)", true),
        ("for f in src/*; do wc -l \"$f\"; done", false),
        ("curl -H 'Accept: */*' \"$URL\"", false),
        ("python3 new.py data/*", false),
    ] {
        assert_eq!(judge(command).may_run("rm"), is_forbidden, "{command}");
    }
    for (command, prefix) in [
        ("/usr/bin/touch x", "touch"),
        ("sudo x", "sudo"),
        ("sub/deploy.sh", "./deploy.sh"),
        ("npm --silent test", "npm test"),
        ("ls", LOOKS),
    ] {
        let judged = judge(command);
        assert!(
            judged.programs[0].forbidden_by(prefix).is_some(),
            "{command}"
        );
    }
}

#[test]
fn the_reasons_name_the_harm() {
    for (command, reasons) in [
        ("rm x", &["deletes"][..]),
        ("mv a b", &["overwrites"]),
        (
            "rm x; git commit; tee y",
            &["commits", "deletes", "overwrites"],
        ),
        ("echo $(rm x)", &["substitutes"]),
        ("ls > out", &["overwrites"]),
        ("sort -o x y", &["has options that may write or run"]),
        ("uniq a*", &["cannot be judged"]),
        (
            "make cl?an",
            &["has a pattern that may become an option or a subcommand"],
        ),
        ("sh -c 'rm x'", &["runs code"]),
        (
            "sh new.sh",
            &["runs a file that is not tracked by git or that this session has written"],
        ),
        ("sudo ls", &["runs another program"]),
        ("cargo test remove_user", &[]),
        ("npx tsc", &[]),
    ] {
        assert_eq!(self::reasons(command), reasons, "{command}");
    }
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in "\\PC*", shell in "[-rm ;&|<>(){}$`'\"\\\\#*?=\n]{0,40}") {
        for command in [text, shell] {
            let _ = judge(&command);
        }
    }

    #[test]
    fn rm_is_known_however_it_is_quoted(
        quotes in prop::collection::vec(0_usize..6, 2),
        path in prop::sample::select(&["", "/bin/", "./", "../x/", "'/bin'/"][..]),
        before in prop::sample::select(&["", "ls;", "ls &&", "ls\n", "true |", "a 2>&1 & ", "echo 'x' ; ", "CI=1 "][..]),
        behind in "[ a-z./*]{0,10}",
    ) {
        let quoted = |(letter, quote): (char, &usize)| match quote {
            0 => letter.to_string(),
            1 => format!("\\{letter}"),
            2 => format!("'{letter}'"),
            3 => format!("\"{letter}\""),
            4 => format!("''{letter}\"\""),
            _ => format!("\\\n{letter}"),
        };
        let rm: String = ['r', 'm'].into_iter().zip(&quotes).map(quoted).collect();
        let command = format!("{before} {path}{rm} {behind}");
        prop_assert!(reasons(&command).contains(&"deletes"), "{command}");
    }
}
