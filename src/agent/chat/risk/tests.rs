//! Commands that are plain, and commands that are not, by whatever trick.

use proptest::prelude::*;

use super::judge;

/// What a user who has allowed commands for good is not asked about.
const PLAIN: &str = include_str!("tests/plain.txt");
/// What is asked about always.
const HOSTILE: &str = include_str!("tests/hostile.txt");

/// The commands of a list: one a line, their own line feeds written as signs.
fn commands(list: &str) -> Vec<String> {
    list.lines().map(|line| line.replace('␤', "\n")).collect()
}

#[test]
fn everyday_commands_are_plain() {
    let commands = commands(PLAIN);
    assert!(commands.len() >= 60, "{}", commands.len());
    let asked: Vec<_> = commands
        .iter()
        .map(|command| (command, judge(command)))
        .filter(|(_, reasons)| !reasons.is_empty())
        .collect();
    assert!(asked.is_empty(), "{asked:#?}");
}

#[test]
fn commands_that_may_do_harm_are_not() {
    let commands = commands(HOSTILE);
    assert!(commands.len() >= 200, "{}", commands.len());
    let plain: Vec<_> = commands
        .iter()
        .filter(|command| judge(command).is_empty())
        .collect();
    assert!(plain.is_empty(), "{plain:#?}");
}

#[test]
fn odd_characters_and_great_lengths_are_asked_about() {
    for odd in [
        '\0', '\r', '\u{b}', '\u{a0}', '\u{2028}', '\u{202e}', '\u{1b}',
    ] {
        let command = format!("ls{odd}x");
        assert_eq!(judge(&command), ["cannot be judged"], "{command:?}");
    }
    assert!(judge(&format!("ls {}", "x".repeat(10_000))).is_empty());
    for long in ["x", "CI=1 ", "find;", "'", "\\", "("] {
        assert!(!judge(&long.repeat(1_000_000)).is_empty());
        // Nor does it take long, or much of the stack.
        let _ = judge(&long.repeat(20_000 / long.len()));
    }
    assert!(judge("").is_empty());
}

#[test]
fn the_reasons_name_the_harm() {
    for (command, reasons) in [
        ("rm x", &["deletes"][..]),
        ("mv a b", &["overwrites"]),
        (
            "rm x; git commit; tee y",
            &["changes the repository", "commits", "deletes", "overwrites"],
        ),
        (
            "git push --force",
            &["changes the repository", "commits", "overwrites"],
        ),
        ("echo $(rm x)", &["deletes", "substitutes"]),
        (
            "sh -c 'rm x'",
            &["cannot be judged", "deletes", "runs code"],
        ),
        (
            "find . -delete",
            &["deletes", "has options that may write or run"],
        ),
        ("ls > out", &["overwrites"]),
        (
            "sed -i s/a/b/ x",
            &["has options that may write or run", "overwrites"],
        ),
        ("make -f -", &["runs code"]),
        ("sudo ls", &["runs another program"]),
        ("npx tsc", &[]),
    ] {
        assert_eq!(judge(command), reasons, "{command}");
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
        prop_assert!(judge(&command).contains(&"deletes"), "{command}");
    }
}
