//! The kinds of files that judge a change, from tables for each ecosystem. Pure.

use std::sync::LazyLock;

use regex::Regex;
use strum::EnumString;

use crate::edit::executed;
use crate::edit::protection::covers;
use crate::project::gitignore::{Case, IgnoreFile};
use crate::sys::text::regex;

/// One table per ecosystem; `common.txt` describes the format.
const TABLES: [&str; 11] = [
    include_str!("tables/common.txt"),
    include_str!("tables/rust.txt"),
    include_str!("tables/python.txt"),
    include_str!("tables/javascript.txt"),
    include_str!("tables/go.txt"),
    include_str!("tables/java.txt"),
    include_str!("tables/c.txt"),
    include_str!("tables/dotnet.txt"),
    include_str!("tables/ruby.txt"),
    include_str!("tables/php.txt"),
    include_str!("tables/shell.txt"),
];

/// The kind of a file. If several match a path, the first one applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum FileKind {
    /// A test, its data, or its expected results.
    Test,
    /// A source file named like a test, but neither found by tools under that name nor containing tests.
    Named,
    /// Settings of tests, lints, coverage, the build or CI.
    Settings,
    /// A manifest, parts of which belong to the gate.
    #[strum(disabled)]
    Parts(Form),
    /// A file that may be code or gate.
    Either,
    /// A file that is neither.
    Document,
    /// Any other file.
    Code,
}

/// The form of a file that is split into gate and code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Form {
    /// JSON, split by keys.
    Json,
    /// Sections with keys, as in TOML and INI.
    Sections,
    /// XML, split by elements.
    Xml,
    /// Rust, split by items.
    Rust,
}

/// A file split into the gate and the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Halves {
    /// The parts that belong to the gate: the place of each (a section, an element, a key), and its text.
    pub gate: Vec<(String, String)>,
    /// The text without those parts.
    pub rest: String,
    /// The parts of the rest that may belong to the gate.
    pub unclear: Vec<String>,
}

/// A line of a table.
struct Row {
    kind: FileKind,
    files: IgnoreFile,
    /// The patterns of the parts that belong to the gate.
    parts: &'static str,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let rows = lines().filter_map(|(word, rest)| {
        let parts = || word.parse().ok().map(FileKind::Parts);
        let kind = word.parse().ok().or_else(parts)?;
        let (patterns, parts) = rest.split_once(": ").unwrap_or((rest, ""));
        let files = IgnoreFile::parse(patterns.replace(' ', "\n").as_bytes());
        Some(Row { kind, files, parts })
    });
    rows.collect()
});

/// A line that asserts something.
pub static ASSERTS: LazyLock<Regex> = LazyLock::new(|| any("asserts"));
/// A line of a script that runs tests or lints.
pub static RUNS: LazyLock<Regex> = LazyLock::new(|| any("runs"));
/// The path of a file that may be test data.
pub static DATA: LazyLock<Regex> = LazyLock::new(|| any("data"));
/// A line by which a program reports that it does not work with the code.
pub static MISFIT: LazyLock<Regex> = LazyLock::new(|| any("misfit"));
/// The path of a source file that is a test only if its text shows one.
static SOURCE: LazyLock<Regex> = LazyLock::new(|| any("source"));
/// Words found only in tests, or in checks for tests.
static SIGNS: LazyLock<Regex> = LazyLock::new(|| any("signs"));
/// The start of a test in a code file.
pub static TESTS_WITHIN: LazyLock<Regex> = LazyLock::new(|| any("within"));

/// Returns the lines of all tables, each with its first word.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = TABLES.iter().flat_map(|table| table.lines());
    lines.filter_map(|line| Some((line.split_once(' ')?.0, line.split_once(' ')?.1.trim())))
}

/// Returns a regular expression that matches what any of the lines with this first word match.
pub fn any(word: &str) -> Regex {
    let all: Vec<String> = lines()
        .filter(|(first, _)| *first == word)
        .map(|(_, pattern)| format!("(?:{pattern})"))
        .collect();
    regex(&all.join("|"))
}

/// Returns the kind of the file at `path` with this text, and the patterns of its parts that belong to the gate.
pub fn kind(path: &str, text: &str) -> (FileKind, &'static str) {
    let rows = ROWS
        .iter()
        .filter(|row| covers(&row.files, path, Case::Sensitive));
    let is_code = rows.clone().any(|row| row.kind == FileKind::Code);
    let fitting = rows.filter(|row| !is_code || row.kind > FileKind::Named);
    let is_rust = extension(path) == "rs";
    if let Some(row) = fitting.min_by_key(|row| row.kind) {
        let shows_test = || SIGNS.is_match(text) || TESTS_WITHIN.is_match(text);
        let kind = match row.kind {
            FileKind::Named if !SOURCE.is_match(path) || shows_test() => FileKind::Test,
            FileKind::Named if is_rust => FileKind::Parts(Form::Rust),
            kind => kind,
        };
        return (kind, row.parts);
    }
    let kind = match executed::warning(path) {
        Some(executed::IN_CI | executed::IN_CHECKS) => FileKind::Settings,
        _ if is_rust => FileKind::Parts(Form::Rust),
        _ => FileKind::Code,
    };
    (kind, "")
}

/// Returns the extension of a file's name; empty if it has none.
pub fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}
