//! The fuzz target: random replies go through the parser and the path policy.
//!
//! `cargo test` tries a few; `cargo test --release --test fuzz -- 10000000` tries ten million, and a second number is
//! the seed. A failure is shown with the seed of its input, which is enough to reproduce it: `cargo test --test fuzz --
//! 1 SEED`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test panics, and one without a harness prints"
)]

use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Component, Path};
use std::thread;

use code_commit::measured::{PathPolicy, ReplyFormat, Sent, VerifyError, read};

/// The default number of inputs.
const FEW: u64 = 20_000;
/// The number of threads, for the test machine.
const THREADS: u8 = 2;

/// The pieces of replies and hostile paths.
const PIECES: [&str; 84] = [
    "^^^",
    "^^^",
    "^^^",
    "^^^^",
    "^^^^^",
    "^^",
    "end",
    "end",
    "delete",
    "^^^end\n",
    "^^^end\n",
    "^^^end",
    "^^^^end\n",
    "^^^delete\n",
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "/",
    "/",
    "/",
    "//",
    ".",
    "..",
    "../",
    "./",
    "/..",
    "/.",
    "~",
    "\\",
    ":",
    "::$DATA",
    "%2e%2e",
    "\0",
    "\u{1b}[2J",
    "a",
    "b.rs",
    "src",
    "src/",
    "src/main.rs",
    "link",
    "link/",
    "nested/",
    "file",
    "file/",
    "new/dir/",
    ".git",
    ".GIT",
    ".git/",
    "git~1",
    ".g\u{200c}it",
    ".gi\u{303}t",
    "\u{feff}.git",
    ".git ",
    ".git.",
    "agent-config",
    "Agent-Config/",
    "agent-config.",
    "logs",
    "LOGS/",
    "target",
    "Target",
    ".gitignore",
    ".GitIgnore",
    "Cargo.lock",
    "cargo.LOCK",
    "build.sh",
    "BUILD.SH",
    "codeRollup.sh",
    "LLMInstructions.md",
    "UserSpecification.md",
    "ignored.tmp",
    "CON",
    "aux.txt",
    "caf\u{e9}",
    "cafe\u{301}",
    "\u{202e}",
    "\u{1f600}",
    "fn main() {}\n",
    "// rest of the code unchanged\n",
    "x",
];

fn main() {
    // A test runner first asks for the names of the tests.
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    if has("--list") {
        if !has("--ignored") {
            println!("fuzz: test");
        }
        return;
    }
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok());
    let count: u64 = numbers.next().unwrap_or(FEW);
    let seed: u64 = numbers.next().unwrap_or(1);
    let verified: u64 = thread::scope(|scope| {
        let shares: Vec<_> = (0..u64::from(THREADS).min(count))
            .map(|share| {
                scope.spawn(move || {
                    try_all((seed + share..seed + count).step_by(usize::from(THREADS)))
                })
            })
            .collect();
        shares.into_iter().map(|share| share.join().unwrap()).sum()
    });
    println!("{count} replies from seed {seed} on: {verified} files verified, none outside");
    assert!(count < FEW || verified > 100, "the inputs are too wild");
}

/// Returns the number of verified files.
fn try_all(seeds: impl Iterator<Item = u64>) -> u64 {
    let project = project();
    let policy = PathPolicy::load(project.path(), None).unwrap();
    let mut verified = 0;
    for seed in seeds {
        let reply = reply(&mut fastrand::Rng::with_seed(seed));
        let tried = catch_unwind(AssertUnwindSafe(|| try_one(&policy, &reply)));
        verified += tried.unwrap_or_else(|panic| {
            println!("seed {seed}: {reply:?}");
            resume_unwind(panic)
        });
    }
    verified
}

fn try_one(policy: &PathPolicy, reply: &str) -> u64 {
    match policy.verify(read(reply, ReplyFormat::Whole, &|_| Sent::Missing)) {
        Ok(edits) => {
            for (path, _) in edits.all() {
                assert!(stays_inside(path), "{path:?} leaves the root");
            }
            edits.edits().len() as u64
        }
        Err(VerifyError::Rejected(rejection)) => {
            assert!(!rejection.faults.is_empty());
            // Formatting a rejection must not panic either.
            let _ = rejection.to_string();
            0
        }
        Err(VerifyError::Io { .. }) => 0,
    }
}

/// Names that must not occur anywhere in a path.
const NOWHERE: [&str; 6] = [".git", "git~1", "..", ".", "", ".gitignore"];
/// Names that no path may begin with.
const NOT_FIRST: [&str; 5] = ["agent-config", "logs", "target", "link", "nested"];
/// Names that must not be a whole path.
const NOT_ALONE: [&str; 5] = [
    "build.sh",
    "cargo.lock",
    "coderollup.sh",
    "llminstructions.md",
    "userspecification.md",
];

/// Returns whether a verified path stays inside, independently of the policy.
fn stays_inside(path: &str) -> bool {
    let names: Vec<String> = Path::new(path)
        .components()
        .map(|component| match component {
            Component::Normal(name) => plain(name.to_str().unwrap_or("..")),
            _ => "..".to_owned(),
        })
        .collect();
    let Some(first) = names.first().map(String::as_str) else {
        return false;
    };
    let last = names.last().map_or("", String::as_str);
    let is_plain = names.join("/") == plain(path);
    let is_barred = names.iter().any(|name| NOWHERE.contains(&name.as_str()))
        || NOT_FIRST.contains(&first)
        || (names.len() == 1 && NOT_ALONE.contains(&first))
        || (names.len() > 1 && first == "file");
    let is_ignored = Path::new(last)
        .extension()
        .is_some_and(|extension| extension == "tmp");
    let is_odd = path.contains(['\0', '\\', ':', '\r', '\n']);
    is_plain && !is_barred && !is_ignored && !is_odd
}

/// Normalizes a name as the most lenient file systems do.
fn plain(name: &str) -> String {
    let visible = name.chars().filter(|c| {
        !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{303}')
    });
    let visible: String = visible.collect();
    visible.trim_end_matches(['.', ' ']).to_lowercase()
}

/// Generates a random reply: pieces in random order, some of them in the grammar's order.
fn reply(random: &mut fastrand::Rng) -> String {
    let mut reply = String::new();
    for _ in 0..random.usize(0..6) {
        match random.u8(0..4) {
            0 => pieces(random, &mut reply, 8),
            1 => {
                reply.push(random.char(..));
            }
            _ => {
                reply.push_str("\n^^^");
                pieces(random, &mut reply, 4);
                reply.push('\n');
                if random.u8(0..4) == 0 {
                    reply.push_str("^^^delete\n");
                } else {
                    pieces(random, &mut reply, 3);
                    reply.push_str("\n^^^end\n");
                }
            }
        }
    }
    reply
}

fn pieces(random: &mut fastrand::Rng, into: &mut String, most: usize) {
    for _ in 0..random.usize(0..=most) {
        into.push_str(PIECES[random.usize(0..PIECES.len())]);
    }
}

/// A project with an obstacle of each kind.
fn project() -> tempfile::TempDir {
    let project = tempfile::tempdir().unwrap();
    let root = project.path();
    for directory in [
        "src",
        "agent-config",
        "logs",
        "target",
        ".git",
        "nested/.git",
    ] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for file in ["file", "src/main.rs", "build.sh", "nested/a"] {
        fs::write(root.join(file), "x\n").unwrap();
    }
    fs::write(root.join(".gitignore"), "/agent-config\n*.tmp\n").unwrap();
    symlink("/tmp", root.join("link")).unwrap();
    project
}
