//! Read-only programs: those in the table, with options and operands that do no harm. Pure.

use super::table::{is_named, is_whole, name, rows};
use super::words::ShellWord;

/// Returns whether a program is read-only with these arguments.
pub(super) fn only_looks(words: &[ShellWord]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    // Other paths may lead to any program.
    let name = match &*program.text {
        path if path.starts_with("/bin/") || path.starts_with("/usr/bin/") => name(path),
        path if path.contains('/') => return false,
        path => name(path),
    };
    let first = arguments.first().map(|word| &*word.text);
    if let ("command", Some("-v" | "-V")) = (name.as_str(), first) {
        return true;
    }
    let arguments = match arguments.split_first() {
        Some((first, rest)) if name == "git" && first.text == "--no-pager" => rest,
        Some((first, rest)) if name == "git" && first.text == "-C" => match rest.split_first() {
            Some((directory, rest)) if !directory.is_glob => rest,
            _ => return false,
        },
        _ => arguments,
    };
    // The longest matching name wins.
    let found = (0..=2).rev().find_map(|count| {
        let mut full = name.clone();
        for word in arguments.get(..count)? {
            full.extend([" ", &word.text]);
        }
        let row = rows::<3>("looking").find(|[names, ..]| is_named(names, &full))?;
        Some((row, arguments.get(count..)?))
    });
    found.is_some_and(|(row, rest)| takes(row, rest))
}

/// Returns whether a row allows these arguments.
pub(super) fn takes([_, options, operands]: [&str; 3], words: &[ShellWord]) -> bool {
    let is_operand = |word: &&ShellWord| !word.may_be_option();
    let plain = || words.iter().filter(is_operand);
    let mut given = words.iter().filter(|word| !is_operand(word));
    let conceals = |word: &ShellWord| options != ".*" && word.conceals_option();
    // A bare letter may take an operand: `-v a=b`, but not `-F,`.
    let is_bare = |word: &&ShellWord| word.text.len() == 2 && word.text != "--";
    let count = given.clone().filter(is_bare).count();
    given.all(|word| !conceals(word) && is_whole(&word.text, options))
        && match operands.split_once(' ') {
            None => operands.is_empty(),
            // A file name pattern may expand to more operands.
            Some(("at-most", most)) => {
                plain().count() <= most.parse().unwrap_or(0) && !plain().any(|word| word.is_glob)
            }
            Some((kind @ ("none" | "first"), pattern)) => {
                let is_unclear =
                    |(at, word): (_, &ShellWord)| word.is_glob && (kind == "none" || at <= count);
                !plain().enumerate().any(is_unclear)
                    && !plain().any(|word| is_whole(&word.text, pattern))
            }
            // After the options comes a script that must only print, then files.
            Some((_, pattern)) => {
                let mut behind = words.iter().skip_while(|word| !is_operand(word));
                let script = behind.next();
                script.is_some_and(|script| !script.is_glob && is_whole(&script.text, pattern))
                    && behind.all(|word| is_operand(&word))
            }
        }
}
