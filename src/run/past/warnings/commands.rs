//! The files that a build runs, judging by the words of its scripts. Reads the scripts that it reaches.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::exec::build_script::BUILD_SCRIPT;
use crate::sys::diff::FileChange;
use crate::sys::files::{self, Links, MIB};
use crate::sys::text::regex;

/// Words of a shell that may be followed by the path of a file to run. The first [`READERS`] of them read the file, and
/// take any name for a path.
const RUNNERS: [&str; 24] = [
    "sh", "bash", "dash", "zsh", "python", "python3", "node", "ruby", "perl", "php", "deno", "bun",
    "uv", "source", ".", "exec", "env", "time", "if", "then", "else", "do", "while", "!",
];
const READERS: usize = 15;

/// Programs that run the scripts in `package.json`.
const PACKAGE_RUNNERS: [&str; 5] = ["npm", "yarn", "pnpm", "bun", "npx"];
const MANIFEST: &str = "package.json";
const MAKEFILES: [&str; 3] = ["Makefile", "makefile", "GNUmakefile"];

/// A command substitution.
static CAPTURED: LazyLock<Regex> = LazyLock::new(|| regex(r"\$\([^()]*\)|`[^`\n]*`"));

/// Maximum number of scripts that are read.
const MOST_SCRIPTS: usize = 50;

/// Returns the commands of `build.sh`, and of the scripts, the Makefile and the `scripts` of `package.json` that it
/// reaches, as they were before these changes.
pub(crate) fn build_commands(root: &Path, changes: &[FileChange]) -> String {
    let read = |path: &str| match changes.iter().find(|change| change.path == path) {
        Some(change) => change.before().to_vec(),
        None => files::read(&root.join(path), Links::Refused, MIB).unwrap_or_default(),
    };
    let (mut all, mut paths, mut at) = (String::new(), vec![BUILD_SCRIPT.to_owned()], 0);
    while let Some(path) = paths.get(at).filter(|_| at < MOST_SCRIPTS) {
        let content = String::from_utf8_lossy(&read(path)).into_owned();
        let text = match scripts(content.as_bytes()) {
            Some(Value::Object(scripts)) if path == MANIFEST => {
                let texts = scripts.values().filter_map(Value::as_str);
                texts.collect::<Vec<_>>().join("\n")
            }
            // A script runs its command substitutions only for their output.
            _ if at > 0 => CAPTURED.replace_all(&content, "").into_owned(),
            _ => content,
        };
        let is_script = |path: &&str| {
            let extension = Path::new(path).extension();
            !path.starts_with('/')
                && extension.is_none_or(|extension| extension == "sh" || extension == "bash")
        };
        let mut more: Vec<&str> = run_by(&text).filter(is_script).collect();
        if words(&text).any(|word| word == "make") {
            more.extend(MAKEFILES);
        }
        if words(&text).any(|word| PACKAGE_RUNNERS.contains(&word)) {
            more.push(MANIFEST);
        }
        more.retain(|path| !paths.iter().any(|known| known == path));
        paths.extend(more.into_iter().map(str::to_owned));
        all.extend([text.as_str(), "\n"]);
        at += 1;
    }
    all
}

/// Returns whether the commands run the file, either by its path or through a program that takes its commands from it:
/// `make`, or one that runs the scripts in `package.json`.
pub(crate) fn is_run(change: &FileChange, commands: &str) -> bool {
    match change.path.as_str() {
        path if MAKEFILES.contains(&path) => words(commands).any(|word| word == "make"),
        MANIFEST => {
            words(commands).any(|word| PACKAGE_RUNNERS.contains(&word))
                && scripts(change.before()) != scripts(change.after())
        }
        path => run_by(commands).any(|run| run == path),
    }
}

/// Returns the paths of the files that these commands run.
pub(crate) fn run_by(commands: &str) -> impl Iterator<Item = &str> {
    self::commands(commands).flat_map(|words| {
        // `sh -n` runs nothing.
        let is_read =
            words.iter().any(|word| RUNNERS[..READERS].contains(word)) && !words.contains(&"-n");
        let count = match words.first() {
            Some(first) if RUNNERS.contains(first) => words.len(),
            _ => 1,
        };
        let paths = words
            .into_iter()
            .take(count)
            .filter(move |word| is_read || word.contains('/'));
        paths.map(|word| word.trim_start_matches("./"))
    })
}

fn words(commands: &str) -> impl Iterator<Item = &str> {
    self::commands(commands).flatten()
}

/// Returns the words of each command, without redirections and the variables set for it.
fn commands(script: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = script
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    let commands = lines.flat_map(|line| line.split(['&', '|', ';', '(', '`']));
    commands.filter_map(|command| {
        let all = command
            .split(['<', '>'])
            .next()?
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'', ')']));
        let is_variable = |word: &&str| word.contains('=') && !word.starts_with(['=', '-', '/']);
        let mut words: Vec<&str> = all.skip_while(is_variable).collect();
        if let Some(first) = words.first_mut() {
            // Prefixes of commands in a Makefile.
            *first = first.trim_start_matches(['@', '-', '+']);
        }
        Some(words)
    })
}

fn scripts(manifest: &[u8]) -> Option<Value> {
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    manifest.get("scripts").cloned()
}
