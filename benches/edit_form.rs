//! Compares both formats of replies on real commits: `cargo bench --bench edit_form -- [CLONE] [COMMITS]`.
//!
//! Converts each of a clone's last commits (by default 300 of this repository's) to a reply of whole files and to one
//! of edits, reads both with the program's own code, and prints how many reproduce the commit's tree byte for byte, how
//! many the guard against losses refuses, and their tokens. Goals: every tree, and at most 25 % of the tokens. Merges,
//! protected paths, and files that are not UTF-8 or lack a final newline are left out.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and may panic like a test"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use code_commit::measured::{EditKind, PathPolicy, ReplyFormat, Sent, VerifyError, read, tokens};

use support::{git, git_text};

/// The files and directories that no reply may change.
const PROTECTED: [&str; 8] = [
    ".code-commit.json",
    ".git",
    "Cargo.lock",
    "LLMInstructions.md",
    "UserSpecification.md",
    "agent-config",
    "build.sh",
    "codeRollup.sh",
];

/// A file before and after a commit; `None` if it does not exist.
type Change = (Option<String>, Option<String>);

#[derive(Default)]
struct Sum {
    commits: usize,
    files: usize,
    in_parts: usize,
    equal: [usize; 2],
    refused: [usize; 2],
    tokens: [u64; 2],
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut words = words.iter().filter(|word| !word.starts_with("--"));
    let clone = PathBuf::from(
        words
            .next()
            .map_or(env!("CARGO_MANIFEST_DIR"), String::as_str),
    );
    let count = words.next().map_or("300", String::as_str);
    let log = git_text(&clone, &["log", "--no-merges", "--format=%H", "-n", count]);
    let mut sum = Sum::default();
    for commit in log.lines() {
        let changes = changes(&clone, commit);
        if !changes.is_empty() {
            measure(commit, &changes, &mut sum);
        }
    }
    println!(
        "{} commits, {} files, {} of them in parts",
        sum.commits, sum.files, sum.in_parts
    );
    for (at, form) in ["whole", "edits"].into_iter().enumerate() {
        println!(
            "{form}: {} tokens, the tree to the byte of {}, {} refused",
            sum.tokens[at], sum.equal[at], sum.refused[at]
        );
    }
    let share = sum.tokens[1] * 1000 / sum.tokens[0].max(1);
    println!("edits / whole: {}.{} %", share / 10, share % 10);
}

/// Returns the files that a commit changes, by path.
fn changes(clone: &Path, commit: &str) -> BTreeMap<String, Change> {
    let listed = [
        "diff-tree",
        "-r",
        "-z",
        "--root",
        "--no-commit-id",
        "--no-renames",
        "--raw",
        commit,
    ];
    let listed = git_text(clone, &listed);
    let mut fields = listed.split('\0');
    let mut changes = BTreeMap::new();
    while let (Some(raw), Some(path)) = (fields.next(), fields.next()) {
        let raw: Vec<&str> = raw.trim_start_matches(':').split(' ').collect();
        let is_plain = |mode: &str| matches!(mode, "100644" | "100755" | "000000");
        let is_protected = path.split('/').any(|name| name == ".gitignore")
            || PROTECTED
                .iter()
                .any(|own| path == *own || path.starts_with(&format!("{own}/")));
        if is_protected || !is_plain(raw[0]) || !is_plain(raw[1]) || raw[2] == raw[3] {
            continue;
        }
        let text = |blob: &str| {
            if blob.bytes().all(|byte| byte == b'0') {
                return Some(None);
            }
            String::from_utf8(git(clone, &["cat-file", "blob", blob])?)
                .ok()
                .map(Some)
        };
        // A file in whole form always ends with a newline.
        let can_be_whole = |text: &Option<String>| {
            text.as_ref()
                .is_none_or(|text| text.is_empty() || text.ends_with('\n'))
        };
        if let (Some(before), Some(after)) = (text(raw[2]), text(raw[3]))
            && can_be_whole(&after)
        {
            changes.insert(path.to_owned(), (before, after));
        }
    }
    changes
}

fn measure(commit: &str, changes: &BTreeMap<String, Change>, sum: &mut Sum) {
    sum.commits += 1;
    sum.files += changes.len();
    let mut replies = [String::new(), String::new()];
    for (path, (before, after)) in changes {
        let Some(after) = after else {
            for reply in &mut replies {
                reply.push_str(&format!(
                    "^^^{path}
^^^delete
"
                ));
            }
            continue;
        };
        let whole = whole(path, after);
        let parts = before
            .as_ref()
            .and_then(|before| in_parts(path, before, after));
        let parts = parts.filter(|parts| parts.len() < whole.len());
        sum.in_parts += usize::from(parts.is_some());
        replies[1].push_str(parts.as_ref().unwrap_or(&whole));
        replies[0].push_str(&whole);
    }
    replies[1].push_str(&format!("^^^done {}\n", changes.len()));
    let project = tempfile::tempdir().unwrap();
    for (path, (before, _)) in changes {
        if let Some(before) = before {
            let path = project.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, before).unwrap();
        }
    }
    for (at, format) in [ReplyFormat::Whole, ReplyFormat::Edits]
        .into_iter()
        .enumerate()
    {
        sum.tokens[at] += tokens::count(&replies[at]);
        let sent = |path: &str| {
            let before = changes.get(path).and_then(|(before, _)| before.clone());
            before.map_or(Sent::Missing, Sent::Text)
        };
        let parsed = read(&replies[at], format, &sent);
        let is_equal = parsed.faults.is_empty()
            && parsed.edits.len() == changes.len()
            && parsed
                .edits
                .iter()
                .all(|edit| match (&edit.kind, &changes[&edit.path].1) {
                    (EditKind::Write(text), Some(after)) => text == after,
                    (EditKind::Remove, None) => true,
                    _ => false,
                });
        sum.equal[at] += usize::from(is_equal);
        if !is_equal {
            println!("{commit} {format:?}: another tree; {:?}", parsed.faults);
        }
        match PathPolicy::load(project.path(), None)
            .unwrap()
            .verify(parsed)
        {
            Err(VerifyError::Rejected(rejection)) => {
                sum.refused[at] += 1;
                println!("{commit} {format:?}: {rejection}");
            }
            verified => drop(verified.unwrap()),
        }
    }
}

/// Returns a fence with which no line of the text begins.
fn fence(text: &str) -> String {
    let carets = text
        .lines()
        .map(|line| line.len() - line.trim_start_matches('^').len());
    "^".repeat(carets.max().unwrap_or_default().max(2) + 1)
}

fn whole(path: &str, text: &str) -> String {
    let fence = fence(text);
    format!("{fence}{path}\n{text}{fence}end\n")
}

/// Returns a block with the changed lines of a file; `None` if the change cannot be expressed as edits.
fn in_parts(path: &str, before: &str, after: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [("a", before), ("b", after)] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let diff = Command::new("git")
        .args([
            "diff",
            "--no-index",
            "--no-color",
            "-U0",
            "--diff-algorithm=histogram",
            "a",
            "b",
        ])
        .current_dir(dir.path())
        .output();
    let diff = String::from_utf8(diff.unwrap().stdout).unwrap();
    let [old, new] = [before, after].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let bare = |lines: &[&str]| lines.last().is_some_and(|line| !line.ends_with('\n'));
    if bare(&old) != bare(&new) || old.is_empty() {
        return None;
    }
    let hunks = diff.lines().filter_map(|line| {
        let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (from, to) = ranges.split_once(" +")?;
        Some((range(from)?, range(to)?))
    });
    let hunks: Vec<(Range<usize>, Range<usize>)> = hunks.collect();
    // Each part consists of old lines with all changes that touch them, and as few others as make them occur only once.
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (from, _) in &hunks {
        let mut part = from.clone();
        let mut up = true;
        loop {
            for (from, _) in &hunks {
                if from.start <= part.end && part.start <= from.end {
                    part = from.start.min(part.start)..from.end.max(part.end);
                }
            }
            if !part.is_empty() && is_once(&old, &part) {
                break;
            }
            let can = [part.end < old.len(), part.start > 0];
            match can[usize::from(up)] {
                true if up => part.start -= 1,
                true => part.end += 1,
                false if !can.contains(&true) => return None,
                false => {}
            }
            up = !up;
        }
        while let Some(last) = parts.pop_if(|last| last.end >= part.start) {
            part = last.start.min(part.start)..last.end.max(part.end);
        }
        parts.push(part);
    }
    let shift = |is_before: &dyn Fn(&Range<usize>) -> bool, at: usize| {
        let before = hunks.iter().filter(|(from, _)| is_before(from));
        let (less, more) = before.fold((0, 0), |(less, more), (from, to)| {
            (less + from.len(), more + to.len())
        });
        at + more - less
    };
    let parts = parts.into_iter().map(|part| {
        let start = shift(&|from| from.end < part.start, part.start);
        let end = shift(&|from| from.start <= part.end, part.end);
        (part, start..end)
    });
    let parts: Vec<_> = parts.collect();
    let text = |lines: &[&str]| -> String {
        let text = lines.concat();
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        text + end
    };
    let parts: Vec<[String; 2]> = parts
        .iter()
        .map(|(from, to)| [text(&old[from.clone()]), text(&new[to.clone()])])
        .collect();
    let fence = fence(&parts.concat().concat());
    let parts = parts
        .iter()
        .map(|[find, put]| format!("{fence}find\n{find}{fence}put\n{put}"));
    Some(format!(
        "{fence}{path}\n{}{fence}end\n",
        parts.collect::<String>()
    ))
}

/// Parses `START,COUNT` from a hunk's header as a range of lines, counted from 0.
fn range(head: &str) -> Option<Range<usize>> {
    let (start, count) = head.split_once(',').unwrap_or((head, "1"));
    let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
    // An empty range is given by the number of the line before it.
    let start = if count == 0 { start } else { start - 1 };
    Some(start..start + count)
}

fn is_once(lines: &[&str], part: &Range<usize>) -> bool {
    let bare = |line: &str| line.trim_end_matches('\n').to_owned();
    let part: Vec<String> = lines[part.clone()].iter().map(|line| bare(line)).collect();
    let is_it = |window: &&[&str]| {
        window
            .iter()
            .zip(&part)
            .all(|(line, own)| bare(line) == *own)
    };
    lines.windows(part.len()).filter(is_it).count() == 1
}
