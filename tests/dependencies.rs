//! The program's dependencies: their licences and sources, no crate in two versions, and one build of each. Asks Cargo,
//! which needs no network for that.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Licences compatible with the program's own.
const LICENCES: [&str; 8] = [
    "Apache-2.0",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "Unicode-3.0",
    "Zlib",
];

/// Crates that are included in two versions, and why.
const TWICE: [(&str, &str); 4] = [
    ("getrandom", "ring has an older one"),
    ("signal-hook", "crossterm has an older one"),
    ("syn", "macros have both; no part of the program"),
    ("unicode-width", "miette has an older one"),
];

/// Common crates that are no longer maintained.
const UNMAINTAINED: [&str; 22] = [
    "adler",
    "ansi_term",
    "async-std",
    "atty",
    "backoff",
    "bincode",
    "derivative",
    "dotenv",
    "failure",
    "fxhash",
    "instant",
    "net2",
    "number_prefix",
    "paste",
    "proc-macro-error",
    "rustls-pemfile",
    "serde_yaml",
    "structopt",
    "tempdir",
    "term",
    "users",
    "yaml-rust",
];
/// Unmaintained crates among the dependencies, and why.
const UNMAINTAINED_AND_THERE: [(&str, &str); 1] = [(
    "bincode",
    "syntect reads its syntaxes with it, which come with the program",
)];

#[test]
fn every_crate_has_a_licence_that_goes_with_ours() {
    let crates = tree(&["--edges", "normal,build", "--format", "{p}\t{l}"]);
    let found = crates.lines().filter(|line| {
        let licence = line.split_once('\t').map_or("", |(_, licence)| licence);
        !is_allowed(licence.trim_end_matches(" (*)"))
    });
    assert_eq!(found.collect::<BTreeSet<_>>(), BTreeSet::new());
}

#[test]
fn licences_are_read_with_their_choices() {
    for (licence, expected) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 / MIT", true),
        ("Apache-2.0 AND GPL-3.0", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("(MIT OR Apache-2.0) AND OpenSSL", false),
    ] {
        assert_eq!(is_allowed(licence), expected, "{licence}");
    }
}

#[test]
fn no_crate_comes_in_two_versions_but_for_a_reason() {
    let crates = tree(&["--edges", "normal,build", "--duplicates", "--depth", "0"]);
    let found: BTreeSet<&str> = crates.lines().filter_map(name).collect();
    let known = TWICE.iter().map(|(name, _)| *name).collect();
    let new: BTreeSet<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "{new:?}");
}

#[test]
fn no_crate_is_unmaintained_but_for_a_reason() {
    let crates = tree(&["--edges", "normal,build"]);
    let names: BTreeSet<&str> = crates.lines().filter_map(name).collect();
    let found = UNMAINTAINED.into_iter().filter(|name| names.contains(name));
    let known = UNMAINTAINED_AND_THERE.map(|(name, _)| name);
    assert_eq!(found.collect::<Vec<_>>(), known);
}

#[test]
fn every_crate_comes_from_the_registry() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
    let lock = std::fs::read_to_string(lock).unwrap();
    let sources = lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = "));
    let found: BTreeSet<&str> = sources.collect();
    let registry = "\"registry+https://github.com/rust-lang/crates.io-index\"";
    assert_eq!(found, BTreeSet::from([registry]));
}

/// Then `cargo build` and `cargo test` share what they build, and so do the program and its build script.
#[test]
fn a_crate_has_the_same_features_wherever_it_is_built() {
    let built = |edges| {
        let crates = tree(&["--edges", edges, "--format", "{p}\t{f}"]);
        let lines = crates.lines().map(|line| line.trim_end_matches(" (*)"));
        lines.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let (program, tests) = (built("normal,build"), built("normal,build,dev"));
    let others: BTreeSet<_> = program.difference(&tests).collect();
    assert!(others.is_empty(), "{others:?}");
    let versions: Vec<_> = tests
        .iter()
        .filter_map(|line| line.split('\t').next())
        .collect();
    let twice = versions.windows(2).filter(|pair| pair[0] == pair[1]);
    let twice: BTreeSet<_> = twice.filter_map(|pair| name(pair[0])).collect();
    // The tests alone ask where a piece of code is.
    assert_eq!(twice, BTreeSet::from(["proc-macro2"]));
}

/// Returns the output of `cargo tree` with these arguments: one crate per line.
fn tree(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--offline", "--locked", "--prefix", "none"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn name(line: &str) -> Option<&str> {
    line.split(' ').next().filter(|name| !name.is_empty())
}

/// Returns whether a licence expression can be satisfied by allowed licences: one alternative of each part.
fn is_allowed(expression: &str) -> bool {
    expression.split(" AND ").all(|part| {
        let part = part.trim_matches(['(', ')']);
        let mut choices = part.split(" OR ").flat_map(|part| part.split('/'));
        choices.any(|choice| LICENCES.contains(&choice.trim()))
    })
}
