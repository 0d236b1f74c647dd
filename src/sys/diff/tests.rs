//! Compares the output with git's.

use crate::sys::text::text_width;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use tempfile::TempDir;

use super::change::{MAX_LINES, MAX_SEARCHED};
use super::*;

/// A file that does not exist.
const ABSENT: Option<FileState> = None;

fn state(content: impl AsRef<[u8]>) -> FileState {
    FileState {
        content: content.as_ref().to_vec(),
        mode: 0o644,
    }
}

fn with_mode(mode: u32, content: &str) -> FileState {
    FileState {
        mode,
        ..state(content)
    }
}

fn change(
    path: &str,
    before: impl Into<Option<FileState>>,
    after: impl Into<Option<FileState>>,
) -> FileChange {
    FileChange {
        path: path.to_owned(),
        before: before.into(),
        after: after.into(),
    }
}

/// Returns this many lines, each with `prefix` and a number.
fn numbered(prefix: &str, count: usize) -> String {
    (0..count).map(|nth| format!("{prefix} {nth}\n")).collect()
}

/// Runs git in `dir`, unaffected by the settings of the user or of a hook that runs the tests.
fn git(dir: &Path) -> Command {
    let mut git = Command::new("git");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
        git.env_remove(variable);
    }
    git.current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap())
        .env("LC_ALL", "C")
        .args(["-c", "core.attributesFile=/dev/null"])
        .args(["-c", "core.quotePath=false"]);
    git
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{command:?}");
    output.stdout
}

fn put(dir: &Path, path: &str, state: Option<&FileState>) {
    let path = dir.join(path);
    let Some(state) = state else {
        if path.exists() {
            fs::remove_file(path).unwrap();
        }
        return;
    };
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &state.content).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(state.mode)).unwrap();
}

/// A repository with one tree before and one after the changes.
struct Repository {
    dir: TempDir,
    trees: [String; 2],
}

impl Repository {
    fn of(changes: &[FileChange]) -> Self {
        let dir = TempDir::new().unwrap();
        output(git(dir.path()).args(["init", "--quiet"]));
        let tree = |side: fn(&FileChange) -> Option<&FileState>| {
            for change in changes {
                put(dir.path(), &change.path, side(change));
            }
            output(git(dir.path()).args(["add", "--all", "--force"]));
            let tree = output(git(dir.path()).arg("write-tree"));
            String::from_utf8(tree).unwrap().trim().to_owned()
        };
        let trees = [
            tree(|change| change.before.as_ref()),
            tree(|change| change.after.as_ref()),
        ];
        Self { dir, trees }
    }

    fn diff(&self, arguments: &[&str]) -> Vec<u8> {
        let mut git = git(self.dir.path());
        git.args(["diff", "--no-renames"]).args(arguments);
        output(git.args(&self.trees))
    }

    /// Returns the output of `git diff` without the lines that contain hashes.
    fn unified(&self) -> Vec<u8> {
        let text = self.diff(&[]);
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines
            .filter(|line| !line.starts_with(b"index "))
            .flatten()
            .copied()
            .collect()
    }
}

/// Changes of every kind.
fn varied() -> Vec<Vec<FileChange>> {
    let one = one_file().into_iter().map(|change| vec![change]);
    one.chain(several_files()).chain([vec![]]).collect()
}

fn one_file() -> Vec<FileChange> {
    let function = "fn a() {\n    one();\n}\n\n";
    let twice = format!("{function}{}", function.replace("a()", "b()"));
    let long = numbered("    two", 30);
    let edited = long.replace("two 15\n", "three\n").replace("two 22\n", "");
    let headed = |body: &str| state(format!("{}\n{body}", "long name ".repeat(20)));
    vec![
        change("same", state("a\n"), state("a\n")),
        change("new.txt", ABSENT, state("a\nb\n")),
        change("old.txt", state("a\nb\n"), ABSENT),
        change("empty", ABSENT, state("")),
        change("empty", state(""), ABSENT),
        change("emptied", state("a\n"), state("")),
        change("mode", state("a\n"), with_mode(0o755, "a\n")),
        change("mode", with_mode(0o755, "a\n"), state("b\n")),
        change("new-tool", ABSENT, with_mode(0o755, "a\n")),
        change("group", state("a\n"), with_mode(0o664, "a\n")),
        change("bin", state(b"a\0b"), state(b"a\0bcdefghijkl")),
        change("bin", state(b"a\0b"), state(b"a\0c")),
        change("bin", state("a\0b"), with_mode(0o755, "a\0b")),
        change(
            "late",
            state("a\n"),
            state(["a".repeat(7999), "\0".into()].concat()),
        ),
        change(
            "later",
            state("a\n"),
            state(["a".repeat(8000), "\0".into()].concat()),
        ),
        change("end", state("a\nb"), state("a\nb\n")),
        change("end", state("a\nb\n"), state("a\nb")),
        change("end", state("a\nb"), state("c\nb")),
        change("crlf", state("a\r\nb\r\n"), state("a\nb\n")),
        change("latin", state(b"gr\xfc\xdfe\n"), state(b"gr\xfc\xdf\n")),
        change(
            "a/long/name/of-a-file/".repeat(4).trim_end_matches('/'),
            ABSENT,
            state(""),
        ),
        change("slide.rs", state(function), state(twice)),
        change(
            "head.rs",
            state(format!("{function}{long}")),
            state(format!("{function}{edited}")),
        ),
        change("long.c", headed(&long), headed(&edited)),
    ]
}

fn several_files() -> Vec<Vec<FileChange>> {
    let long = "a-directory-with-a-name/and-another-in-it/that-does-not-fit/file.rs";
    vec![
        vec![
            change("bin", ABSENT, state(b"\0")),
            change("text", state("a\n"), ABSENT),
        ],
        vec![
            change("with space.txt", state("a\n"), state("b\n")),
            change("quote\"back\\slash", state("a\n"), state("b\n")),
            change("größe/日本語.txt", state("a\n"), state("b\n")),
            change("größe/mit blank.txt", ABSENT, state("b\n")),
            change("tab\there", ABSENT, state("b\n")),
            change("apostrophe's", state("b\n"), ABSENT),
        ],
        vec![
            change(
                "src/b.rs",
                state(numbered("a", 500)),
                state(numbered("b", 300)),
            ),
            change(
                "src/a.rs",
                state(numbered("a", 9)),
                state(numbered("a", 10)),
            ),
            change(
                "src-a.rs",
                state(numbered("a", 9)),
                state(numbered("a", 1000)),
            ),
            change("src.rs", state(numbered("a", 70)), state(numbered("b", 1))),
            change("z.bin", ABSENT, state([0; 123_456])),
            change("empty", ABSENT, state("")),
        ],
        vec![
            change(long, state(numbered("a", 5)), state(numbered("b", 6))),
            change(&long.replace('/', "-"), state(numbered("a", 500)), ABSENT),
            change(&format!("größe/{long}"), ABSENT, state("a\n")),
            change(&format!("b/{long}"), state(b"\0"), state([0; 1_000_000])),
        ],
    ]
}

#[test]
fn the_summary_is_gits() {
    for changes in varied() {
        let repository = Repository::of(&changes);
        for width in [0, 20, 33, 40, 60, 79, 80, 100, 500] {
            // Git takes zero as its default.
            let option = format!("--stat={}", width.max(1));
            let expected = repository.diff(&[&option]);
            let cuts = expected.windows(4).any(|bytes| bytes == b" ...");
            if cuts && changes.iter().any(|change| !change.path.is_ascii()) {
                // Git may cut within a multi-byte character.
                continue;
            }
            let expected = String::from_utf8(expected).unwrap();
            assert_eq!(stat(&changes).text(width), expected, "{width}");
        }
        let default = String::from_utf8_lossy(&repository.diff(&["--stat"])).into_owned();
        let is_cut = default.contains('\u{fffd}');
        assert!(is_cut || stat(&changes).text(80) == default, "{default}");
    }
}

#[test]
fn the_difference_is_gits() {
    for changes in varied() {
        let expected = Repository::of(&changes).unified();
        assert_eq!(
            String::from_utf8_lossy(&unified(&changes)),
            String::from_utf8_lossy(&expected)
        );
    }
}

#[test]
fn hunks_number_their_lines() {
    let before = numbered("a", 20);
    let after = before.replace("a 0\n", "").replace("a 19\n", "b");
    let hunks = hunks(before.as_bytes(), after.as_bytes()).unwrap();
    let places: Vec<_> = hunks
        .iter()
        .map(|hunk| {
            (
                hunk.before_start,
                hunk.before_count(),
                hunk.after_start,
                hunk.after_count(),
            )
        })
        .collect();
    assert_eq!(places, [(1, 4, 1, 3), (17, 4, 16, 4)]);
    assert_eq!(
        hunks[1].lines[2..],
        [
            Line {
                kind: LineKind::Context,
                text: b"a 18",
                newline: true,
                before_line: Some(19),
                after_line: Some(18)
            },
            Line {
                kind: LineKind::Removed,
                text: b"a 19",
                newline: true,
                before_line: Some(20),
                after_line: None
            },
            Line {
                kind: LineKind::Added,
                text: b"b",
                newline: false,
                before_line: None,
                after_line: Some(19)
            },
        ]
    );
    assert_eq!(hunks[1].heading, Some(&b"a 15"[..]));
}

#[test]
fn binary_and_large_files_have_no_hunks() {
    let large = vec![b'a'; MAX_BYTES + 1];
    let many = vec![b'\n'; MAX_LINES];
    for odd in [b"\0", &large[..], &many[..]] {
        assert_eq!(hunks(odd, b"a\n"), None);
        assert_eq!(hunks(b"a\n", odd), None);
    }
    assert!(hunks(&large[1..], &many[1..]).is_some());
    assert_eq!(hunks(b"a\n", b"a\n"), Some(vec![]));
    assert_eq!(
        stat(&[change("large", state("a\n"), state(&large))]).text(80),
        " large | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n"
    );
    let changed = text(&[change("many", state("a\n"), state(&many))]);
    assert!(changed.ends_with("Files a/many and b/many are too large to compare, and differ\n"));
}

#[test]
fn the_hardest_cases_are_counted_all_the_same() {
    let mut random = fastrand::Rng::with_seed(3);
    let shuffled = |random: &mut fastrand::Rng, of: &str| {
        let mut lines: Vec<&str> = of.split_inclusive('\n').collect();
        random.shuffle(&mut lines);
        lines.concat()
    };
    // Too many lines for the cost limit of the search, with and without unique lines.
    let unique = numbered("a", 60_000);
    let few: String = (0..60_000)
        .map(|_| format!("{}\n", random.u8(0..9)))
        .collect();
    for before in [unique, few] {
        let after = shuffled(&mut random, &before);
        assert_eq!(
            rebuilt(before.as_bytes(), after.as_bytes()),
            after.as_bytes()
        );
    }
    // More lines than are searched.
    let before = numbered("a", MAX_SEARCHED + 2);
    let mut lines: Vec<&str> = before.split_inclusive('\n').collect();
    lines[1..].reverse();
    let reversed = stat(&[change("f", state(&before), state(lines.concat()))]);
    let replaced = MAX_SEARCHED as u64 + 1;
    assert_eq!((reversed.added(), reversed.removed()), (replaced, replaced));
    // Large, but easy: every hundredth line changed.
    let before = numbered("a", 200_000);
    let after = before.replace("00\n", "00!\n");
    let stat = stat(&[change("f", state(&before), state(&after))]);
    assert_eq!((stat.added(), stat.removed()), (1999, 1999));
}

/// Returns `before` with the hunks applied.
fn rebuilt(before: &[u8], after: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let mut made = Vec::new();
    let mut at = 0;
    for hunk in hunks(before, after).unwrap() {
        let start = hunk.before_start - usize::from(hunk.before_count() > 0);
        made.extend(lines[at..start].concat());
        at = start + hunk.before_count();
        for line in hunk
            .lines
            .iter()
            .filter(|line| line.kind != LineKind::Removed)
        {
            made.extend(line.text);
            made.extend(line.newline.then_some(b'\n'));
        }
        for line in &hunk.lines {
            if let Some(number) = line.before_line {
                assert!(lines[number - 1].starts_with(line.text));
            }
        }
    }
    made.extend(lines[at..].concat());
    made
}

/// Generates files with few distinct lines, so that many lines are equal.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        &b"a"[..],
        b"b",
        b"c",
        b"  a",
        b"    b",
        b"\ta",
        b"",
        b"}",
        b"{",
        b"fn x",
        b"x\r",
        b"\xff\xfe",
        b"-- a",
        b"+++ b",
        b"\\ No",
    ]);
    (prop::collection::vec(line, 0..40), any::<bool>()).prop_map(|(lines, ends)| {
        let mut content = lines.join(&b'\n');
        if ends {
            content.push(b'\n');
        }
        content
    })
}

fn states() -> impl Strategy<Value = (Option<FileState>, Option<FileState>)> {
    let mode = || prop::sample::select(vec![0o644, 0o755]);
    let other = prop::option::weighted(0.9, (content(), mode()));
    let edit = (0..40_usize, 0..5_usize, content());
    (
        content(),
        mode(),
        other,
        prop::option::weighted(0.7, edit),
        any::<bool>(),
    )
        .prop_map(|(content, mode, other, edit, swap)| {
            let other = other.map(|(other, mode)| match &edit {
                // In most cases, much of the file stays.
                Some((from, length, new)) => {
                    let mut content = content.clone();
                    let from = (*from).min(content.len());
                    let to = (from + length).min(content.len());
                    content.splice(from..to, new.iter().copied().take(9));
                    FileState { content, mode }
                }
                None => FileState {
                    content: other,
                    mode,
                },
            });
            let one = Some(FileState { content, mode });
            if swap { (other, one) } else { (one, other) }
        })
}

proptest! {
    #[test]
    fn hunks_make_one_file_of_the_other((before, after) in states()) {
        let (before, after) = (content_of(before), content_of(after));
        prop_assert_eq!(rebuilt(&before, &after), after);
    }
}

fn content_of(state: Option<FileState>) -> Vec<u8> {
    state.map(|state| state.content).unwrap_or_default()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn git_can_apply_it(states in prop::collection::vec(states(), 1..4)) {
        let paths = ["plain", "dir/with space", "ü\"\t\\"];
        let changes: Vec<FileChange> = states.into_iter().zip(paths)
            .map(|((before, after), path)| change(path, before, after))
            .collect();
        let dir = TempDir::new().unwrap();
        for change in &changes {
            put(dir.path(), &change.path, change.before.as_ref());
        }
        let patch = TempDir::new().unwrap();
        fs::write(patch.path().join("patch"), unified(&changes)).unwrap();
        if changes.iter().any(FileChange::is_shown) {
            let mut git = git(dir.path());
            git.args(["apply", "--whitespace=nowarn"]).arg(patch.path().join("patch"));
            output(&mut git);
        }
        for change in &changes {
            let path = dir.path().join(&change.path);
            prop_assert_eq!(path.exists(), change.after.is_some());
            if let Some(after) = &change.after {
                prop_assert_eq!(&fs::read(&path).unwrap(), &after.content);
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                prop_assert_eq!(mode & 0o100, after.mode & 0o100);
            }
        }
    }
}

#[test]
fn a_name_is_cut_between_letters() {
    let long = change(&"größe日本語".repeat(9), ABSENT, state("a\n"));
    for width in 20..60 {
        let text = stat(std::slice::from_ref(&long)).text(width);
        let line = text.lines().next().unwrap();
        assert!(text_width(line) <= width.max(24), "{width}: {line}");
        assert!(line.starts_with(" ..."), "{width}: {line}");
    }
}
