//! Measures the outlines of clones, by language: their tokens as a share of the files', and the public names that
//! Universal Ctags, if installed, finds but the outlines lack. Goal: at most 8 %, and every name.
//!
//! Usage: `cargo bench --bench outline -- CLONE…`; the default is this repository.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and may panic like a test"
)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use code_commit::measured::{outline, signatures, tokens};
use serde_json::Value;

/// The languages: names, extensions, and the kinds of Ctags' names that may be public.
const LANGUAGES: [(&str, &str, &str); 11] = [
    (
        "Rust",
        "rs",
        "function method struct enum interface typedef constant module variable",
    ),
    ("Python", "py pyi", "function class member variable"),
    (
        "JavaScript",
        "js jsx mjs cjs",
        "class method generator constant",
    ),
    (
        "TypeScript",
        "ts tsx mts cts",
        "function class method interface enum alias namespace constant variable",
    ),
    (
        "Go",
        "go",
        "func type const var talias interface struct methodSpec",
    ),
    (
        "Java",
        "java",
        "method class interface enum annotation field",
    ),
    (
        "C",
        "c h",
        "function struct union enum typedef macro prototype",
    ),
    (
        "C++",
        "cc cpp cxx hh hpp hxx",
        "function class struct union enum typedef prototype alias variable macro",
    ),
    (
        "Ruby",
        "rb",
        "method class module singletonMethod constant accessor alias",
    ),
    (
        "C#",
        "cs",
        "method class interface struct enum property field event typedef",
    ),
    (
        "PHP",
        "php",
        "function class interface trait define constant variable",
    ),
];

struct Measured {
    files: usize,
    tokens: u64,
    outlined: u64,
    time: Duration,
    names: usize,
    found: usize,
}

fn main() {
    let arguments = std::env::args().skip(1);
    let mut clones: Vec<String> = arguments.filter(|word| !word.starts_with("--")).collect();
    if clones.is_empty() {
        clones.push(env!("CARGO_MANIFEST_DIR").to_owned());
    }
    println!(
        "{:<28}{:<12}{:>6}{:>10}{:>9}{:>9}{:>14}",
        "clone", "language", "files", "tokens", "outline", "MB/s", "names"
    );
    for clone in clones {
        for (language, measured) in measure(Path::new(&clone)) {
            let share = 100.0 * measured.outlined as f64 / measured.tokens as f64;
            let speed = measured.tokens as f64 * 4.0 / 1e6 / measured.time.as_secs_f64();
            let name = clone.rsplit('/').next().unwrap_or_default();
            println!(
                "{name:<28}{language:<12}{:>6}{:>10}{share:>7.1} %{speed:>9.0}{:>14}",
                measured.files,
                measured.tokens,
                format!("{}/{}", measured.found, measured.names)
            );
        }
    }
}

fn measure(clone: &Path) -> BTreeMap<&'static str, Measured> {
    let names = names(clone);
    let mut all: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    let listed = output(Command::new("git").arg("-C").arg(clone).arg("ls-files"));
    for path in listed.lines() {
        let extension = path.rsplit('.').next().unwrap_or_default();
        let is_of = |extensions: &str| extensions.split(' ').any(|known| known == extension);
        let mut languages = LANGUAGES.iter();
        if let Some((language, ..)) = languages.find(|(_, extensions, _)| is_of(extensions))
            && let Ok(text) = fs::read_to_string(clone.join(path))
        {
            all.entry(language)
                .or_default()
                .push((path.to_owned(), text));
        }
    }
    let of_language = |(language, files): (_, Vec<_>)| (language, measure_files(&files, &names));
    all.into_iter().map(of_language).collect()
}

fn measure_files(
    files: &[(String, String)],
    names: &HashMap<String, Vec<(String, usize)>>,
) -> Measured {
    let pairs: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    let started = Instant::now();
    let outlined = outline(&pairs, &tokens::count, u64::MAX);
    let time = started.elapsed();
    let (mut all, mut found) = (0, 0);
    for (path, text) in pairs.iter().copied() {
        let own = outline(&[(path, text)], &tokens::count, u64::MAX);
        let words: HashSet<&str> = own
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .collect();
        let signatures = signatures(path, text);
        for (name, line) in names.get(path).into_iter().flatten() {
            let is_signed = signatures.iter().any(|signature| signature.line == *line);
            all += 1;
            found += usize::from(is_signed || words.contains(&**name));
        }
    }
    Measured {
        files: files.len(),
        tokens: pairs.iter().map(|(_, text)| tokens::count(text)).sum(),
        outlined: tokens::count(&outlined),
        time,
        names: all,
        found,
    }
}

/// Returns the public names that Ctags finds in each file, and their lines.
fn names(clone: &Path) -> HashMap<String, Vec<(String, usize)>> {
    let arguments = [
        "-R",
        "--kinds-C=+p",
        "--kinds-C++=+p",
        "--output-format=json",
        "--fields=*",
        "--extras=-q",
        "-f",
        "-",
        ".",
    ];
    let found = output(Command::new("ctags").args(arguments).current_dir(clone));
    let mut names: HashMap<String, Vec<(String, usize)>> = HashMap::new();
    for tag in found
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
    {
        let text = |field: &str| tag[field].as_str().unwrap_or_default();
        let path = text("path").trim_start_matches("./");
        if is_public(&text, path) {
            let line = tag["line"].as_u64().unwrap_or_default();
            let name = (text("name").to_owned(), usize::try_from(line).unwrap());
            names.entry(path.to_owned()).or_default().push(name);
        }
    }
    names
}

fn is_public<'t>(text: &impl Fn(&str) -> &'t str, path: &str) -> bool {
    let (name, language, kind) = (text("name"), text("language"), text("kind"));
    let source = text("pattern").trim_start_matches("/^");
    let kinds = LANGUAGES.iter().find(|(known, ..)| *known == language);
    let is_kind = kinds.is_some_and(|(_, _, kinds)| kinds.split(' ').any(|known| known == kind));
    let is_local = matches!(text("scopeKind"), "function" | "method" | "member" | "func");
    let is_hidden = matches!(text("access"), "private" | "default" | "package");
    let is_anonymous = name.starts_with("__anon") || name.to_lowercase().starts_with("anonymous");
    if !is_kind || is_local || is_hidden || is_anonymous {
        return false;
    }
    match language {
        "Rust" => source.trim_start().starts_with("pub"),
        "Python" => {
            // A variable is public only if it has an annotation or begins with an upper-case letter.
            let is_private = |name: &str| name.starts_with('_');
            let is_told =
                source.starts_with(char::is_uppercase) || source.starts_with(&format!("{name}:"));
            !is_private(name)
                && !text("scope").split('.').any(is_private)
                && (kind != "variable" || is_told)
        }
        "Go" => name.starts_with(char::is_uppercase),
        "JavaScript" | "TypeScript" => {
            let is_value = matches!(kind, "constant" | "variable" | "alias" | "namespace");
            !name.starts_with(['_', '#']) && (!is_value || source.starts_with("export"))
        }
        // A macro whose name ends in `_H` is an include guard.
        "C" | "C++" => {
            let is_definition = !matches!(
                kind,
                "typedef" | "prototype" | "alias" | "variable" | "macro"
            );
            !source.starts_with("static")
                && (is_definition || path.ends_with('h') && !name.ends_with("_H"))
        }
        _ => true,
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}
