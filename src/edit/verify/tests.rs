//! Tests of the path policy on a real tree: the corpus in `fixtures/paths.tsv`, and the messages about replies.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::edit::parse;

/// Creates the project that `fixtures/paths.tsv` refers to. Returns the names of entries that could not be created,
/// since some need root.
fn corpus_project() -> (TempDir, Vec<&'static str>, Option<Unmount>) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    for folder in [
        "src",
        "sub",
        "agent-config",
        "submod",
        "mnt",
        ".git",
        "scratch",
    ] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    for (name, content) in [
        (
            ".gitignore",
            "/agent-config\n/target\nscratch/\n!scratch/keep.rs\n*.secret\n!ok.secret\n.env\n/rooted.txt\n",
        ),
        ("sub/.gitignore", "gen/\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("submod/.git", "gitdir: ../.git/modules/submod\n"),
        ("hard.rs", "x"),
        ("exec.sh", "#!/bin/sh\n"),
        ("../outside.rs", "outside"),
    ] {
        fs::write(root.join(name), content).unwrap();
    }
    fs::create_dir(dir.path().join("outside")).unwrap();
    for (name, target) in [
        ("link_out", "../outside"),
        ("link_in", "src"),
        ("link_keys", "agent-config"),
        ("link_file.rs", "../outside.rs"),
        ("loop", "loop"),
        ("proccwd", "/proc/self/cwd"),
    ] {
        symlink(target, root.join(name)).unwrap();
    }
    fs::hard_link(root.join("hard.rs"), root.join("hard2.rs")).unwrap();
    fs::set_permissions(root.join("exec.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    UnixListener::bind(root.join("sock")).unwrap();
    let mut missing = Vec::new();
    let made = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    if !made(
        Command::new("mknod")
            .arg(root.join("devnull"))
            .args(["c", "1", "3"]),
    ) {
        missing.push("devnull");
    }
    let mount = root.join("mnt");
    let mounted = made(
        Command::new("mount")
            .arg("--bind")
            .arg(dir.path().join("outside"))
            .arg(&mount),
    );
    if !mounted {
        missing.push("mnt/x.rs");
    }
    (dir, missing, mounted.then_some(Unmount(mount)))
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Decodes the escapes in `fixtures/paths.tsv`.
fn unescape(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let code = |digits| char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap();
        let (c, length) = match escape.as_bytes()[0] {
            b'x' => (code(&escape[1..3]), 3),
            b'u' => {
                let end = escape.find('}').unwrap();
                (code(&escape[2..end]), end + 1)
            }
            b'n' => ('\n', 1),
            b'r' => ('\r', 1),
            b'"' => ('"', 1),
            b'\\' => ('\\', 1),
            other => panic!("unknown escape {other}"),
        };
        out.push(c);
        rest = &escape[length..];
    }
    out + rest
}

fn rule_of(policy: &PathPolicy, path: &str) -> Option<Rule> {
    let edit = FileEdit {
        path: path.to_owned(),
        line: 1,
        kind: EditKind::Remove,
        parts: Vec::new(),
    };
    let parsed = ParsedReply {
        edits: vec![edit],
        ..ParsedReply::default()
    };
    match policy.verify(parsed) {
        Ok(_) => None,
        Err(VerifyError::Rejected(rejection)) => match &rejection.faults[..] {
            [
                ReplyFault {
                    kind: FaultKind::Path { rule, .. },
                    ..
                },
            ] => Some(*rule),
            faults => panic!("{path}: {faults:?}"),
        },
        Err(error) => panic!("{path}: {error}"),
    }
}

#[test]
fn every_row_of_the_corpus_holds() {
    let (dir, missing, _mount) = corpus_project();
    let policy = PathPolicy::load(&dir.path().join("root"), None).unwrap();
    let mut wrong = BTreeMap::new();
    let mut rows = 0;
    for line in include_str!("../../../fixtures/paths.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let columns: Vec<&str> = line.split('\t').collect();
        let (verdict, rule, path) = (columns[0], columns[1], unescape(columns[2]));
        rows += 1;
        if missing.contains(&path.as_str()) {
            let fails = std::env::var_os("NO_SKIPPED_TESTS").is_some();
            assert!(!fails, "skipped: `{path}` could not be made by this user");
            eprintln!("skipped: `{path}` could not be made by this user");
            continue;
        }
        let found = rule_of(&policy, &path).map(|rule| format!("{rule:?}"));
        let holds = match (verdict, rule.strip_suffix('*')) {
            ("accept", _) => found.is_none(),
            (_, Some(prefix)) => found.as_ref().is_some_and(|name| name.starts_with(prefix)),
            _ => found
                .as_ref()
                .is_some_and(|name| name.eq_ignore_ascii_case(rule)),
        };
        if !holds {
            wrong.insert(path, (verdict, rule, found));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(rows, 109);
}

#[test]
fn the_running_program_is_protected_by_path_and_by_identity() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("code-commit");
    fs::write(&path, "").unwrap();
    fs::hard_link(&path, dir.path().join("alias")).unwrap();
    let policy = PathPolicy::load(dir.path(), Some(&path)).unwrap();
    assert_eq!(
        rule_of(&policy, "code-commit"),
        Some(Rule::ProtectedProgram)
    );
    assert_eq!(rule_of(&policy, "alias"), Some(Rule::ProtectedProgram));
    assert_eq!(rule_of(&policy, "code-commit.md"), None);
}

#[test]
fn all_faults_of_a_reply_are_found_in_the_order_of_its_lines() {
    let dir = tempfile::tempdir().unwrap();
    let reply = "^^^build.sh\n^^^end\n^^^end\n^^^../x\n^^^end\n^^^ok\n^^^end\n^^^A/x\n^^^end\n^^^a/y\n^^^end\n";
    let policy = PathPolicy::load(dir.path(), None).unwrap();
    let Err(VerifyError::Rejected(rejection)) = policy.verify(parse(reply)) else {
        panic!("the reply should be rejected");
    };
    let expected = "the reply is rejected for 4 faults:\n  \
        line 1: `build.sh`: this file is protected\n  \
        line 3: `^^^end` outside a block\n  \
        line 4: `../x`: a path may not have `.` or `..` in it\n  \
        line 10: `a/y`: another path differs from this one in letter case only";
    assert_eq!(rejection.to_string(), expected);
}

#[test]
fn a_name_in_another_case_than_a_removed_one_is_one_fault() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("README"), "a\n").unwrap();
    let policy = PathPolicy::load(dir.path(), None).unwrap();
    let reply = "^^^README\n^^^delete\n^^^Readme\n^^^end\n";
    let Err(VerifyError::Rejected(rejection)) = policy.verify(parse(reply)) else {
        panic!("the reply should be rejected");
    };
    assert_eq!(rejection.faults.len(), 1, "{rejection}");
}

#[test]
fn warnings_name_what_the_supervisor_should_look_at() {
    let dir = tempfile::tempdir().unwrap();
    let reply = "^^^build.rs\n^^^end\n^^^.cargo/config.toml\n^^^end\n^^^gone\n^^^delete\n^^^x\n^^^end\n^^^x\n^^^end\n^^^AGENTS.md\n^^^end\n";
    let policy = PathPolicy::load(dir.path(), None).unwrap();
    let verified = policy.verify(parse(reply)).unwrap();
    let expected = [
        "the reply has more than one block for `x`; the last one counts",
        "`.cargo/config.toml` runs code when the project is built",
        "`AGENTS.md` tells agents what to do",
        "`build.rs` runs code when the project is built",
        "`gone` is to be removed, but is not there",
    ];
    assert_eq!(verified.warnings(), expected);
    assert_eq!(verified.edits().len(), 4);
}

#[test]
fn target_of_a_protected_name_is_protected_too() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for folder in ["cfg", "scripts"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    fs::write(root.join("scripts/build.sh"), "exit 1\n").unwrap();
    fs::write(root.join("scripts/other.sh"), "exit 1\n").unwrap();
    symlink("scripts/build.sh", root.join("build.sh")).unwrap();
    symlink("cfg", root.join("agent-config")).unwrap();
    let policy = PathPolicy::load(root, None).unwrap();
    for (path, rule) in [
        ("scripts/build.sh", Some(Rule::ProtectedFile)),
        ("scripts/other.sh", None),
        ("cfg/models.json", Some(Rule::ProtectedDirectory)),
    ] {
        assert_eq!(rule_of(&policy, path), rule, "{path}");
    }
    let agent = PathPolicy::load_for_agent(root, None).unwrap();
    assert_eq!(rule_of(&agent, "scripts/build.sh"), None);
    let rule = rule_of(&agent, "cfg/models.json");
    assert_eq!(rule, Some(Rule::ProtectedDirectory));
}

#[test]
fn an_agent_may_write_what_a_reply_may_not_and_is_warned() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for folder in ["target", "agent-config", "logs", ".git", "nested/.git"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join(".gitignore"), "/target\n*.log\n").unwrap();
    symlink("agent-config", root.join("keys")).unwrap();
    let policy = PathPolicy::load_for_agent(root, None).unwrap();
    let edit = |path: &str| (path.to_owned(), EditKind::Write("x\n".to_owned()));
    let verify = |path: &str| policy.verify(ParsedReply::of_files(vec![edit(path)]));
    let protected = "is protected: in the commit workflow, no reply may change it";
    for (path, warned) in [
        ("build.sh", Some(format!("`build.sh` {protected}"))),
        (
            "src/.gitignore",
            Some(format!("`src/.gitignore` {protected}")),
        ),
        ("target/x", Some(format!("`target/x` {protected}"))),
        (
            "a.log",
            Some("git ignores `a.log`, so it shows no change to it".to_owned()),
        ),
        ("src/main.rs", None),
    ] {
        let verified = verify(path).unwrap();
        assert_eq!(verified.warnings(), Vec::from_iter(warned), "{path}");
    }
    for (path, rule) in [
        (".git/config", Rule::ProtectedGit),
        ("agent-config/models.json", Rule::ProtectedDirectory),
        ("logs/x", Rule::ProtectedDirectory),
        ("keys/x", Rule::Symlink),
        ("nested/x", Rule::NestedRepo),
        ("../x", Rule::DotComponent),
    ] {
        assert_eq!(rule_of(&policy, path), Some(rule), "{path}");
    }
}

/// Returns the paths in a reply that are refused because git would take their directory for a repository.
fn made_repositories(root: &Path, reply: &str) -> Vec<String> {
    let policy = PathPolicy::load(root, None).unwrap();
    match policy.verify(parse(reply)) {
        Ok(_) => Vec::new(),
        Err(VerifyError::Rejected(rejection)) => {
            let faults = rejection.faults.into_iter();
            let paths = faults.filter_map(|fault| match fault.kind {
                FaultKind::Path {
                    path,
                    rule: Rule::MadeRepo,
                } => Some(path),
                _ => None,
            });
            paths.collect()
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn no_reply_makes_a_directory_a_repository() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for path in [
        "half/HEAD",
        "other/refs/x",
        "whole.git/HEAD",
        "whole.git/refs/x",
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let write = |path: &str| format!("^^^{path}\nx\n^^^end\n");
    for (paths, refused) in [
        (&["HEAD", "src/refs.rs", "src/objects/a.rs"][..], &[][..]),
        (&["a/HEAD", "a/config", "a/b/refs/x"], &[]),
        (&["a/HEAD", "a/refs/x"], &["a/HEAD", "a/refs/x"]),
        (&["a/HEAD", "a/objects/x/y"], &["a/HEAD", "a/objects/x/y"]),
        (&["a/head", "a/Objects"], &["a/Objects", "a/head"]),
        (
            &["a/HEAD", "a/commondir", "b/x"],
            &["a/HEAD", "a/commondir"],
        ),
        (&["HEAD", "objects/x", "b/x"], &["HEAD", "b/x", "objects/x"]),
        (&["half/refs/x"], &["half/refs/x"]),
        (&["half/config"], &[]),
        (&["other/HEAD"], &["other/HEAD"]),
        (&["whole.git/config"], &["whole.git/config"]),
        (&["whole.git/hooks/x"], &["whole.git/hooks/x"]),
    ] {
        let reply: String = paths.iter().map(|path| write(path)).collect();
        let mut found = made_repositories(root, &reply);
        found.sort();
        assert_eq!(found, refused, "{paths:?}");
    }
    // A removed file no longer counts.
    let reply = write("half/refs/x") + "^^^half/HEAD\n^^^delete\n";
    assert!(made_repositories(root, &reply).is_empty());
}

/// A line with a mark for a secret must already be in the file, or in the one that it is moved from.
#[test]
fn a_mark_for_a_secret_stands_only_on_lines_that_were_there() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let token = format!("ghp_{}", "a0".repeat(18));
    let marked = "A = [REDACTED]Zz\r\nother\nK = secretZz";
    fs::write(root.join("old"), marked).unwrap();
    fs::write(root.join("with-token"), format!("T = {token}\n")).unwrap();
    fs::write(root.join("plain"), "K = secretZz\n").unwrap();
    let marks = ["[REDACTED]Zz", "[REDACTED: a GitHub token]"].map(str::to_owned);
    let guard = LossGuard {
        marks: BTreeSet::from(marks),
        ..LossGuard::default()
    };
    let policy = PathPolicy::load(root, None).unwrap().guarded(guard);
    let write = |path: &str, text: &str| format!("^^^{path}\n{text}\n^^^end\n");
    let delete = "^^^old\n^^^delete\n";
    for (reply, is_refused) in [
        (write("old", "  A = [REDACTED]Zz\nK = secretZz"), false),
        (write("old", "K = [REDACTED]Zz"), true),
        (write("old", "A = [REDACTED]Zz\nA = [REDACTED]Zz"), true),
        (write("with-token", "T = [REDACTED: a GitHub token]"), true),
        (write("old", "T = [REDACTED: a GitHub token]"), false),
        (write("old", "T = [REDACTED: a kind]"), false),
        (write("new", "A = [REDACTED]Zz"), true),
        (write("new", "A = [REDACTED]Zz") + delete, false),
        (
            write("new", "A = [REDACTED]Zz") + &write("old", "other"),
            false,
        ),
        (write("new", "K = [REDACTED]Zz") + delete, true),
        (write("plain", "A = [REDACTED]Zz") + delete, true),
        (write("[REDACTED]Zz", "A") + delete, true),
    ] {
        let refused = match policy.verify(parse(&reply)) {
            Ok(_) => false,
            Err(VerifyError::Rejected(rejection)) => {
                let mut kinds = rejection.faults.iter().map(|fault| &fault.kind);
                assert!(kinds.all(|kind| matches!(kind, FaultKind::Redacted { .. })));
                true
            }
            Err(error) => panic!("{error}"),
        };
        assert_eq!(refused, is_refused, "{reply}");
    }
}
