//! The table of programs, `programs.txt`: read-only programs, those for an auditor, those that always need confirmation
//! and those that run others; and the parsing of its names and patterns. Pure.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;

use crate::sys::text::regex;

/// Reason for asking about programs that overwrite files.
pub(super) const OVERWRITES: &str = "overwrites";
/// Reason for asking about git commands that change the repository.
pub(super) const CHANGES_REPOSITORY: &str = "changes the repository";
/// Reason for asking about programs that run others.
pub(super) const RUNS: &str = "runs another program";
/// Reason for asking about programs that are given code to run.
pub(super) const CODE: &str = "runs code";
/// Reason for asking about devices. It comes first, so that the program may also run others.
pub(super) const DEVICE: &str = "uses a device";
/// Reason for asking about a pattern that may expand to an option or a subcommand.
pub(super) const CONCEALS: &str = "has a pattern that may become an option or a subcommand";
/// Reason for asking about a variable that may change what a program runs.
pub(super) const VARIABLE: &str = "sets a variable";
/// Reason for asking about a script that git does not track or that the session has written.
pub(super) const NEW_SCRIPT: &str =
    "runs a file that is not tracked by git or that this session has written";
/// Reason for asking about a read-only program with options that its row does not list.
pub(super) const OPTIONS: &str = "has options that may write or run";

/// The rows of each section of the table, split into columns.
static TABLE: LazyLock<HashMap<&str, Vec<Vec<String>>>> = LazyLock::new(|| {
    let mut sections: HashMap<&str, Vec<String>> = HashMap::new();
    let mut section = "";
    for line in include_str!("programs.txt").lines() {
        let rows = sections.entry(section).or_default();
        match line.strip_prefix("== ") {
            Some(name) => section = name,
            None if line.is_empty() || line.starts_with('#') => {}
            None if line.starts_with(' ') => {
                if let Some(row) = rows.last_mut() {
                    row.push_str(line);
                }
            }
            None => rows.push(line.to_owned()),
        }
    }
    let columns = |row: &String| row.split(" :: ").map(str::to_owned).collect();
    let rows = |rows: Vec<String>| rows.iter().map(columns).collect();
    let sections = sections.into_iter();
    sections.map(|(name, all)| (name, rows(all))).collect()
});

/// Returns the rows of a section; missing columns are empty.
pub(super) fn rows<const N: usize>(section: &str) -> impl Iterator<Item = [&'static str; N]> {
    let rows = TABLE.get(section).into_iter().flatten();
    rows.map(|row| std::array::from_fn(|at| row.get(at).map_or("", String::as_str)))
}

/// Returns the names, or the pattern, in the list called `name`.
pub(super) fn list(name: &str) -> &'static str {
    let found = rows("lists").find(|[known, _]| *known == name);
    found.map_or("", |[_, text]| text)
}

/// Returns whether `name` is in `names`, a list separated by blanks.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// Returns whether one of the table's patterns matches all of a text.
pub(in crate::agent) fn is_whole(text: &str, pattern: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let whole = compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| regex(&format!("^(?:{pattern})$")));
    whole.is_match(text)
}

/// Returns the row of a program or git subcommand that an auditor may run, after its names: its flags, those that take
/// the next word, and the arguments to add.
pub(in crate::agent) fn audited(name: &str) -> Option<[&'static str; 3]> {
    let mut rows = rows::<4>("audited").filter(|[names, ..]| is_named(names, name));
    rows.next()
        .map(|[_, flags, values, added]| [flags, values, added])
}

/// Returns whether a row with these names describes this program or git subcommand.
pub(super) fn is_named(names: &str, name: &str) -> bool {
    if names.starts_with("git ") {
        return names.split(';').any(|known| known == name);
    }
    has(names, name)
}

/// Returns the base name of a program, as the table lists it.
pub(super) fn name(program: &str) -> String {
    let base = program.rsplit('/').next().unwrap_or(program);
    // Some file systems ignore case.
    let name = base.to_ascii_lowercase();
    match name.strip_prefix('g') {
        Some(plain) if has(list("gnu"), &name) => plain.to_owned(),
        _ => name,
    }
}

/// Returns the program name without its version or variant: `python3.12`, `vim.tiny`.
pub(super) fn stem(name: &str) -> &str {
    let mut parts = name.split(|c: char| c.is_ascii_digit() || matches!(c, '.' | '@'));
    parts.next().filter(|_| !is_script(name)).unwrap_or(name)
}

/// Returns whether a word has the file extension of a script.
pub(super) fn is_script(word: &str) -> bool {
    let ending = word.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| has(list("scripts"), ending))
}
