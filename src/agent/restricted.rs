//! The commands that an auditor may run: plain ones that look and change nothing, and the project's own
//! checks.
//!
//! A command is parsed into words and run without a shell, so nothing in it is expanded, joined or
//! redirected. Looks at where its file arguments lead, and changes nothing. Guarantees that every word is
//! on a list: a name, a flag that is known to do no harm, or an argument that stays in the project. Git is
//! told to run none of the programs that a repository's configuration names for hooks, pagers, differences
//! and signatures. The filters of a repository's files are run, or git could not tell what has changed.
//! `npm` runs what the project's `package.json` says, as the specification wants it.

use std::path::Path;

use crate::agent::tools::place::{Outside, Place, quoted};

/// What may be run, for the model.
const ALLOWED: &str =
    "cat, head, tail, ls, dir, tree, git status, git diff, git log, npm test, npm run build";

/// What stands before git's own subcommand.
const GIT: [&str; 17] = [
    "git",
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "diff.external=",
    "-c",
    "diff.submodule=short",
    "-c",
    "log.showSignature=false",
    "-c",
    "format.pretty=medium",
    "-c",
    "protocol.allow=never",
];

/// The words of `command`, the first of them the program: to be run as they are in `root`, the project's
/// root with links resolved, and never by a shell.
///
/// # Errors
/// A sentence for the model: what of it is not allowed, and what is.
pub fn words(command: &str, root: &Path) -> Result<Vec<String>, String> {
    let allowed = split(command).and_then(|words| checked(&words, root));
    allowed.map_err(|problem| {
        format!("{problem}. You may run one of these, without a shell: {ALLOWED}")
    })
}

/// Splits a line into words as a shell would, where that takes no more than blanks and quotes.
fn split(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let line = command.trim_matches([' ', '\t', '\n', '\r']);
    for c in line.chars() {
        match (quote, c) {
            (None, ' ' | '\t') => words.extend(word.take()),
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            _ => {
                check_letter(c, quote, word.as_deref())?;
                word.get_or_insert_default().push(c);
            }
        }
    }
    if let Some(quote) = quote {
        return Err(format!("a `{quote}` in it is not closed"));
    }
    words.extend(word);
    if words.is_empty() {
        return Err("there is no command".to_owned());
    }
    Ok(words)
}

/// Refuses what a shell would not take for itself between these quotes, or behind this part of a word.
fn check_letter(c: char, quote: Option<char>, word: Option<&str>) -> Result<(), String> {
    // Behind other letters it stands for itself, as in `HEAD~1`.
    let is_plain_tilde = c == '~' && word.is_some_and(|word| !word.ends_with([':', '=']));
    let problem = match (quote, c) {
        _ if c.is_control() => format!("it has a control character, `{}`", c.escape_default()),
        (Some('\''), _) => return Ok(()),
        (_, '$' | '`' | '\\') => format!("`{c}` is not allowed in it"),
        (None, ';' | '&' | '|' | '<' | '>' | '(' | ')') => {
            format!("`{c}` is not allowed in it: one plain command at a time")
        }
        (None, '{' | '}' | '*' | '?' | '[' | ']' | '~' | '#' | '!') if !is_plain_tilde => {
            format!(
                "`{c}` is not allowed in it: nothing is expanded; in quotes it stands for itself"
            )
        }
        (None, _) if c.is_whitespace() => format!("it has an odd blank, `{}`", c.escape_unicode()),
        _ => return Ok(()),
    };
    Err(problem)
}

/// The words to run, where all of them are allowed.
fn checked(words: &[String], root: &Path) -> Result<Vec<String>, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["npm", "test"] | ["npm", "run", "build"] => Ok(owned(&words)),
        ["npm", ..] => Err("of npm, `npm test` and `npm run build` alone are allowed".to_owned()),
        ["git", rest @ ..] => git(rest, root),
        [name, rest @ ..] => match program(name) {
            Some(rules) => plain(name, rest, &rules, root),
            None => Err(format!("{} is not allowed", quoted(name))),
        },
        [] => Err("there is no command".to_owned()),
    }
}

/// What a command may be given.
#[derive(Clone, Copy, Default)]
struct Rules {
    /// Letters that may stand behind one `-`, in any number.
    letters: &'static str,
    /// Whole flags.
    flags: &'static [&'static str],
    /// Flags that a number follows, in the same word or the next.
    numbers: &'static [&'static str],
    /// Flags with digits in the same word.
    digits: &'static [&'static str],
    /// Flags that a word follows.
    values: &'static [&'static str],
    /// What a flag begins with whose value is in the same word.
    prefixes: &'static [&'static str],
    /// Whether `-5` is a flag.
    is_count: bool,
    /// Whether there must be a file.
    needs_file: bool,
}

fn program(name: &str) -> Option<Rules> {
    let rules = match name {
        "cat" => Rules {
            letters: "nbsAETv",
            needs_file: true,
            ..Rules::default()
        },
        "head" | "tail" => Rules {
            letters: "qv",
            numbers: &["-n", "-c"],
            is_count: true,
            needs_file: true,
            ..Rules::default()
        },
        "ls" | "dir" => Rules {
            letters: "aAlhRrtS1Fdpsi",
            flags: &["--color=never", "--group-directories-first"],
            ..Rules::default()
        },
        "tree" => Rules {
            letters: "adfsh",
            flags: &["--noreport"],
            numbers: &["-L"],
            values: &["-I", "-P"],
            ..Rules::default()
        },
        _ => return None,
    };
    Some(rules)
}

/// What a word of a command is.
enum Word {
    /// A flag, whole in itself.
    Flag,
    /// A flag, and the next word belongs to it: a number, or any other.
    Number,
    Value,
    /// The end of flags.
    Dashes,
    /// An argument.
    Argument,
}

impl Rules {
    fn word(&self, name: &str, word: &str) -> Result<Word, String> {
        let Some(rest) = word.strip_prefix('-') else {
            return Ok(Word::Argument);
        };
        if word == "--" {
            return Ok(Word::Dashes);
        }
        if self.numbers.contains(&word) {
            return Ok(Word::Number);
        }
        if self.values.contains(&word) {
            return Ok(Word::Value);
        }
        let is_bundle = !rest.is_empty() && rest.chars().all(|c| self.letters.contains(c));
        let has_number = self
            .numbers
            .iter()
            .any(|flag| word.strip_prefix(flag).is_some_and(is_number));
        let has_digits = self
            .digits
            .iter()
            .any(|flag| word.strip_prefix(flag).is_some_and(is_digits));
        let is_count = self.is_count && is_digits(rest);
        let has_value = self.prefixes.iter().any(|flag| word.starts_with(flag));
        if is_bundle
            || has_number
            || has_digits
            || is_count
            || has_value
            || self.flags.contains(&word)
        {
            return Ok(Word::Flag);
        }
        Err(format!("{} is not allowed with {name}", quoted(word)))
    }
}

fn is_digits(text: &str) -> bool {
    (1..10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number as head and tail take it: `5`, `+5`, `-5`.
fn is_number(text: &str) -> bool {
    is_digits(text.strip_prefix(['+', '-']).unwrap_or(text))
}

/// The words of a command, sorted.
#[derive(Default)]
struct Sorted<'w> {
    /// Flags and what belongs to them.
    flags: Vec<&'w str>,
    /// What stands before `--`.
    arguments: Vec<&'w str>,
    /// What stands behind it.
    behind: Vec<&'w str>,
}

fn sorted<'w>(name: &str, words: &[&'w str], rules: &Rules) -> Result<Sorted<'w>, String> {
    let mut sorted = Sorted::default();
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        match rules.word(name, word)? {
            Word::Argument => sorted.arguments.push(word),
            Word::Flag => sorted.flags.push(word),
            Word::Dashes => sorted.behind.extend(words.by_ref()),
            kind @ (Word::Number | Word::Value) => {
                let value = words.next();
                let fits = |value: &&str| matches!(kind, Word::Value) || is_number(value);
                let value = value
                    .filter(fits)
                    .ok_or_else(|| format!("{} wants {} behind it", quoted(word), wanted(&kind)))?;
                sorted.flags.extend([word, value]);
            }
        }
    }
    Ok(sorted)
}

fn wanted(kind: &Word) -> &'static str {
    if matches!(kind, Word::Number) {
        "a number"
    } else {
        "a pattern"
    }
}

/// A command whose arguments are all files.
fn plain(name: &str, words: &[&str], rules: &Rules, root: &Path) -> Result<Vec<String>, String> {
    let sorted = sorted(name, words, rules)?;
    let files = sorted.arguments.iter().chain(&sorted.behind);
    let files: Vec<String> = files
        .map(|file| file_argument(file, root))
        .collect::<Result<_, _>>()?;
    if files.is_empty() && rules.needs_file {
        return Err(format!("{name} wants a file"));
    }
    let mut argv = vec![name.to_owned()];
    argv.extend(owned(&sorted.flags));
    argv.extend(files);
    Ok(argv)
}

/// A file argument, spelled so that the system finds what was checked, and nobody takes it for a flag.
fn file_argument(path: &str, root: &Path) -> Result<String, String> {
    if path == "-" {
        return Err("`-` is not allowed: there is nothing to read from".to_owned());
    }
    let place = Place::of(root, path, Outside::Allowed)?;
    let Place::Inside(inside) = &place else {
        return Err(format!("{} leads out of the project", quoted(path)));
    };
    place.check_secrets(root)?;
    Ok(match inside.as_str() {
        "" => ".".to_owned(),
        inside if inside.starts_with('-') => format!("./{inside}"),
        inside => inside.to_owned(),
    })
}

/// `git`'s words behind its name.
fn git(words: &[&str], root: &Path) -> Result<Vec<String>, String> {
    let Some((subcommand, words)) = words.split_first() else {
        return Err("git wants to know what: status, diff or log".to_owned());
    };
    let (rules, added): (Rules, &[&str]) = match *subcommand {
        "status" => (STATUS, &["--ignore-submodules=dirty"]),
        "diff" => (
            DIFF,
            &[
                "--no-ext-diff",
                "--no-textconv",
                "--ignore-submodules=dirty",
            ],
        ),
        "log" => (LOG, &["--no-ext-diff", "--no-textconv"]),
        option if option.starts_with('-') => {
            return Err(format!(
                "{} is not allowed: git's own options stay as they are",
                quoted(option)
            ));
        }
        other => return Err(format!("`git {}` is not allowed", other.escape_debug())),
    };
    let name = format!("git {subcommand}");
    let sorted = sorted(&name, words, &rules)?;
    sorted
        .flags
        .iter()
        .try_for_each(|flag| check_format(flag))?;
    let mut argv = owned(&GIT);
    argv.push((*subcommand).to_owned());
    argv.extend(owned(added));
    argv.extend(owned(&sorted.flags));
    for argument in &sorted.arguments {
        argv.push(revision_or_path(argument, root)?);
    }
    if !sorted.behind.is_empty() {
        argv.push("--".to_owned());
        for path in &sorted.behind {
            check_magic(path)?;
            argv.push(file_argument(path, root)?);
        }
    }
    Ok(argv)
}

const STATUS: Rules = Rules {
    letters: "",
    flags: &[
        "-s",
        "--short",
        "-b",
        "--branch",
        "-sb",
        "--porcelain",
        "--porcelain=v1",
        "--porcelain=v2",
        "-u",
        "-uno",
        "-unormal",
        "-uall",
        "--ignored",
    ],
    numbers: &[],
    digits: &[],
    values: &[],
    prefixes: &[],
    is_count: false,
    needs_file: false,
};

const DIFF: Rules = Rules {
    flags: &[
        "--stat",
        "--numstat",
        "--shortstat",
        "--name-only",
        "--name-status",
        "--cached",
        "--staged",
        "--summary",
        "-w",
        "-b",
        "--word-diff",
    ],
    digits: &["-U"],
    ..STATUS
};

const LOG: Rules = Rules {
    flags: &[
        "--oneline",
        "--stat",
        "-p",
        "--patch",
        "--name-only",
        "--name-status",
        "--graph",
        "--decorate",
        "--all",
    ],
    numbers: &["-n"],
    prefixes: &[
        "--since=",
        "--until=",
        "--author=",
        "--grep=",
        "--format=",
        "--pretty=",
    ],
    is_count: true,
    ..STATUS
};

/// Refuses formats that make git check signatures, which runs a program, and those that a configuration
/// defines, which may.
fn check_format(flag: &str) -> Result<(), String> {
    const NAMED: [&str; 8] = [
        "oneline",
        "short",
        "medium",
        "full",
        "fuller",
        "reference",
        "raw",
        "format:",
    ];
    let value = ["--format=", "--pretty="]
        .iter()
        .find_map(|name| flag.strip_prefix(name));
    let Some(value) = value else { return Ok(()) };
    let mut placeholders = value.split('%').skip(1);
    if placeholders.any(|rest| rest.trim_start_matches(['+', '-', ' ']).starts_with('G')) {
        return Err("`%G` is not allowed: it runs a program to check signatures".to_owned());
    }
    if value.contains('%') || NAMED.contains(&value) {
        return Ok(());
    }
    Err(format!(
        "{} is no format that is allowed: take `oneline`, `short`, `medium`, `full`, `fuller`, `reference`, \
         `raw` or one with `%`",
        quoted(value)
    ))
}

/// What git takes for a revision or a path.
fn revision_or_path(argument: &str, root: &Path) -> Result<String, String> {
    check_magic(argument)?;
    if argument.split(['/', ':']).any(|name| name == "..") {
        return Err(format!(
            "{} has a `..` for a directory; name paths from the project's root",
            quoted(argument)
        ));
    }
    let place = Place::of(root, argument, Outside::Allowed)?;
    if matches!(place, Place::Outside(_)) {
        return Err(format!("{} leads out of the project", quoted(argument)));
    }
    place.check_secrets(root)?;
    // A file of a revision: `HEAD:path`.
    if let Some((_, path)) = argument.split_once(':') {
        file_argument(if path.is_empty() { "." } else { path }, root)?;
    }
    Ok(argument.to_owned())
}

/// Refuses what git takes for more than a path or a revision.
fn check_magic(argument: &str) -> Result<(), String> {
    if argument.starts_with(':') {
        return Err(format!(
            "{} is not allowed: name paths and revisions plainly",
            quoted(argument)
        ));
    }
    Ok(())
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests;
