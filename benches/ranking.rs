//! Measures the quality and the speed of the ranking of files for a query.
//!
//! `cargo bench --bench ranking -- CLONE [COMMITS]` takes the last commits of any clone, 80 by default, that change
//! program text: the query is the commit's message, and the code base and the history are those of its parent. Goals
//! for the mean recall of the changed files that are shown in whole or in part: 0.62 within 16k tokens, 0.72 within
//! 32k, 0.82 within 64k; for the changed lines that are shown: 0.70 and 0.80. With one round of requests for more
//! files, both prompts of 16k have at most a fifth of the code base's tokens.
//!
//! Without a clone, measures the time and the memory for 100 MB in 20,000 files: at most twice the time of plainly
//! walking and reading them, and 100 MB in addition to the texts.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and may panic like a test"
)]

mod support;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use code_commit::measured::{rank, weight};
use serde_json::Value;

use support::git_text;

/// The limits in tokens.
const LIMITS: [&str; 3] = ["16k", "32k", "64k"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words = arguments.iter().filter(|word| !word.starts_with("--"));
    match words.next() {
        Some(clone) => {
            let commits = words.next().map_or(80, |number| number.parse().unwrap());
            recall(clone, commits);
        }
        None => speed(),
    }
}

/// The recall of the files that commits change.
#[derive(Default)]
struct Sums {
    /// Sums of the shares of files, for each limit.
    files: [f64; LIMITS.len()],
    /// Sums of the shares of lines.
    lines: [f64; LIMITS.len()],
}

/// Asks for the context of each commit's message, in a copy of the clone at the commit's parent.
fn recall(clone: &str, commits: usize) {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path();
    git_text(
        copy,
        &["clone", "-q", "--shared", "--no-checkout", clone, "."],
    );
    let listed = git_text(
        copy,
        &["rev-list", "--no-merges", "--min-parents=1", "HEAD"],
    );
    // The sums for program text alone, and for program text with tests.
    let mut sums = [Sums::default(), Sums::default()];
    let (mut count, mut whole, mut asked) = (0, 0.0, 0.0);
    for commit in listed.lines() {
        let changes = changes(copy, commit);
        let of_weight = |least: f64| {
            let changes = changes.iter();
            let changes = changes.filter(|(path, _)| weight(path) >= least);
            changes.collect::<Vec<_>>()
        };
        let kinds = [1.0, 0.5].map(of_weight);
        if kinds[0].is_empty() {
            continue;
        }
        git_text(copy, &["checkout", "-qf", &format!("{commit}^")]);
        let message = git_text(copy, &["show", "--no-patch", "--format=%B", commit]);
        let all = context(copy, &message, &[]);
        let total = all["tokens"].as_f64().unwrap();
        for (at, limit) in LIMITS.into_iter().enumerate() {
            let sent = context(copy, &message, &["--tokens", limit]);
            let shown = by_path(&sent);
            for (sum, changed) in sums.iter_mut().zip(&kinds) {
                let (files, lines) = in_sight(changed, &shown);
                sum.files[at] += files;
                sum.lines[at] += lines;
            }
            if at == 0 {
                let files = by_path(&all);
                let is_whole = |path| shown.get(path).is_some_and(|file| file["lines"].is_null());
                let missing = kinds[1].iter().map(|(path, _)| path.as_str());
                let missing = missing.filter(|path| !is_whole(*path));
                let missing = missing.filter_map(|path| files.get(path)?["tokens"].as_f64());
                let first = sent["tokens"].as_f64().unwrap();
                asked += (first * 2.0 + missing.sum::<f64>()) / total;
                whole += total;
            }
        }
        count += 1;
        if count == commits {
            break;
        }
    }
    let of = f64::from(u32::try_from(count).unwrap());
    println!(
        "{count} commits, {:.0} tokens; both prompts of 16k with one round of asking: {:.2} of that",
        whole / of,
        asked / of
    );
    for (name, sum) in ["program text", "with tests"].into_iter().zip(&sums) {
        let mean = |sums: &[f64]| {
            let means = sums.iter().map(|sum| format!("{:.3}", sum / of));
            means.collect::<Vec<_>>().join(" ")
        };
        let (files, lines) = (mean(&sum.files), mean(&sum.lines));
        println!("{name:12}  files {files}  lines {lines}");
    }
}

/// Returns the output of `context` for the project at `root`.
fn context(root: &Path, message: &str, limit: &[&str]) -> Value {
    let mut program = Command::new(env!("CARGO_BIN_EXE_code-commit"));
    let arguments = ["context", "--output-format", "json", "-m", message];
    let output = program
        .args(arguments)
        .args(limit)
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn by_path(context: &Value) -> HashMap<&str, &Value> {
    let files = context["files"].as_array().unwrap().iter();
    let is_limited = !context["outline"].is_null();
    files
        .filter(|file| !is_limited || file["shown"] != "")
        .map(|file| (file["path"].as_str().unwrap(), file))
        .collect()
}

/// Returns the shares of the changed files and of the changed lines that are shown.
fn in_sight(changed: &[(&String, &Vec<u64>)], shown: &HashMap<&str, &Value>) -> (f64, f64) {
    let (mut files, mut lines, mut all) = (0, 0, 0);
    for (path, changes) in changed {
        all += changes.len();
        let Some(file) = shown.get(path.as_str()) else {
            continue;
        };
        files += 1;
        let is_in = |range: &Value, line: u64| {
            range[0].as_u64().unwrap() <= line && line <= range[1].as_u64().unwrap()
        };
        let is_seen = |line: &&u64| match file["lines"].as_array() {
            Some(ranges) => ranges.iter().any(|range| is_in(range, **line)),
            None => true,
        };
        lines += changes.iter().filter(is_seen).count();
    }
    let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
    (share(files, changed.len()), share(lines, all))
}

/// Returns the files that a commit changes, with the numbers of the old lines that change, counted from 1.
fn changes(root: &Path, commit: &str) -> BTreeMap<String, Vec<u64>> {
    let diff = "diff-tree -r -p -U0 --no-renames --diff-filter=DM --no-ext-diff --no-commit-id";
    let arguments: Vec<&str> = diff.split(' ').chain([commit]).collect();
    let (mut changes, mut path) = (BTreeMap::<_, Vec<u64>>::new(), String::new());
    for line in git_text(root, &arguments).lines() {
        if let Some(before) = line.strip_prefix("--- a/") {
            before.clone_into(&mut path);
        } else if let Some(hunk) = line.strip_prefix("@@ -") {
            let place = hunk.split(' ').next().unwrap();
            let (first, count) = place.split_once(',').unwrap_or((place, "1"));
            let (first, count): (u64, u64) = (first.parse().unwrap(), count.parse().unwrap());
            // If lines are only added, the line before them must be shown.
            let first = first.max(1);
            let lines = changes.entry(path.clone()).or_default();
            lines.extend(first..first + count.max(1));
        }
    }
    changes
}

/// Ranks 100 MB in 20,000 files, alternating with plainly walking and reading them.
fn speed() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..20_000 {
        let folder = dir.path().join(format!("d{}", number / 100));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("f{number}.rs")), program(number)).unwrap();
    }
    let query = "Fix the supervisor: a command that is ended must wait for the rest of its output, and `read_rest` \
        reports what it lost. HTTPServer and parse_reply stay as they are, with identity 1234.";
    let (mut plain, mut ranked) = (Vec::new(), Vec::new());
    let mut beside = 0;
    for _ in 0..9 {
        let started = Instant::now();
        let files = read(dir.path());
        plain.push(started.elapsed());
        let sources = files.iter();
        let sources = sources.map(|(path, text)| (&**path, &**text));
        let sources: Vec<(&str, &str)> = sources.collect();
        let before = peak();
        let ranking = rank(query, &sources, &[]);
        ranked.push(started.elapsed());
        beside = peak().saturating_sub(before).max(beside);
        assert_eq!(ranking.files.len(), 20_000);
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64() * 1000.0
    };
    git_text(dir.path(), &["init", "-q"]);
    git_text(dir.path(), &["add", "."]);
    let mut whole: Vec<Duration> = (0..5)
        .map(|_| {
            let started = Instant::now();
            context(dir.path(), query, &[]);
            started.elapsed()
        })
        .collect();
    let (plain, ranked, whole) = (median(&mut plain), median(&mut ranked), median(&mut whole));
    println!(
        "100 MB in 20,000 files: walk and read {plain:.0} ms, ranked {ranked:.0} ms, ratio {:.2} (goal 2.00); \
         {} MB beside the texts (goal 100); the command `context` {whole:.0} ms",
        ranked / plain,
        beside >> 10
    );
}

/// Returns 5 KB of program text.
fn program(number: usize) -> String {
    let mut text = String::new();
    for line in number.. {
        if text.len() >= 5_000 {
            break;
        }
        let name = [
            "parse_reply",
            "HTTPServer",
            "readRest",
            "supervisor",
            "output",
        ][line % 5];
        text += &format!("    let value{line} = self.{name}(&input, {number})?; // and so on\n");
    }
    text
}

fn read(root: &Path) -> Vec<(String, String)> {
    let (mut folders, mut files) = (vec![root.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap();
            files.push((entry.path().to_str().unwrap().to_owned(), text));
        }
    }
    files
}

/// Returns the peak memory of this process, in KB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
