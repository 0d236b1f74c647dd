//! The one table of programs, `programs.txt`: those that only look, those that are asked about whatever is allowed, and
//! those that run others; and how its names and patterns are read. Pure.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;

use crate::sys::text::regex;

/// The reason for asking about programs that overwrite.
pub(super) const OVERWRITES: &str = "overwrites";
/// The reason for asking about git where it does more than look.
pub(super) const CHANGES_REPOSITORY: &str = "changes the repository";
/// The reason for asking about programs that run others.
pub(super) const RUNS: &str = "runs another program";
/// The reason for asking about programs that take code.
pub(super) const CODE: &str = "runs code";
/// The reason for asking about a script that git does not have, or that the session has written.
pub(super) const NEW_SCRIPT: &str =
    "runs a file that is not tracked by git or that this session has written";
/// The reason for asking about a program that looks, with options that are not in its row.
pub(super) const OPTIONS: &str = "has options that may write or run";

/// The rows of each section of the table, as their columns.
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

/// The rows of a section; a column that a row has not is "".
pub(super) fn rows<const N: usize>(section: &str) -> impl Iterator<Item = [&'static str; N]> {
    let rows = TABLE.get(section).into_iter().flatten();
    rows.map(|row| std::array::from_fn(|at| row.get(at).map_or("", String::as_str)))
}

/// The names, or the pattern, of a list.
pub(super) fn list(name: &str) -> &'static str {
    let mut lists = rows("lists");
    lists
        .find_map(|[known, text]| (known == name).then_some(text))
        .unwrap_or_default()
}

/// A program that looks, or a subcommand of git, as an auditor may run it without a shell: its name; the flags that it
/// may be given, as a pattern, with a value behind a blank; the flags whose value may be the next word, and what that is;
/// and what git is told besides, behind the subcommand.
pub(in crate::agent) type AuditedProgram = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// The programs and options that an auditor's instructions name.
// A format that a configuration defines may run a program.
#[rustfmt::skip]
pub(in crate::agent) const AUDITED: [AuditedProgram; 9] = [
    ("cat", "-[nbsAETv]+", &[], ""),
    ("head", HEAD_FLAGS, NUMBERS, ""),
    ("tail", HEAD_FLAGS, NUMBERS, ""),
    ("ls", LS_FLAGS, &[], ""),
    ("dir", LS_FLAGS, &[], ""),
    ("tree", r"-[adfsh]+|--noreport|-L ?\d{1,9}|-[IP] .*",
        &[("-L", "a number"), ("-I", "a pattern"), ("-P", "a pattern")], ""),
    ("git status", "-s|--short|-b|--branch|-sb|--porcelain(=v[12])?|-u(no|normal|all)?|--ignored", &[],
        "--ignore-submodules=dirty"),
    ("git diff", r"(?x: -w | -b | -U\d{1,9}
        | --(stat|numstat|shortstat|name-only|name-status|cached|staged|summary|word-diff) )", &[],
        "--no-ext-diff --no-textconv --ignore-submodules=dirty"),
    ("git log", r"(?x: -p | -\d{1,9} | -n\x20?[+-]?\d{1,9}
        | --(oneline|stat|patch|name-only|name-status|graph|decorate|all)
        | --(since|until|author|grep)=.*
        | --(format|pretty)=(oneline|short|medium|full|fuller|reference|raw|.*%.*) )", &[("-n", "a number")],
        "--no-ext-diff --no-textconv"),
];

const HEAD_FLAGS: &str = r"-[qv]+|-\d{1,9}|-[nc] ?[+-]?\d{1,9}";
const NUMBERS: &[(&str, &str)] = &[("-n", "a number"), ("-c", "a number")];
const LS_FLAGS: &str = "-[aAlhRrtS1Fdpsi]+|--color=never|--group-directories-first";

/// Reports whether `name` is one of `names`, which stand between blanks.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// Reports whether all of a text matches one of the table's patterns.
pub(super) fn is_whole(text: &str, pattern: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let whole = compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| regex(&format!("^(?:{pattern})$")));
    whole.is_match(text)
}
