//! Tests of application and roll-back on real trees: failures, concurrent changes and crashes at any step.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::edit::recovery::{Recovered, recover};
use crate::edit::{PathPolicy, VerifiedEdit, VerifiedEdits, apply, parse, undo_log};
use crate::project::run_folder::RunFolder;
use crate::secret::Redactor;

const RUN: &str = "logs/run";

/// Returns the time assumed by tests; files they write later are newer.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789)
}

/// A tree, with a directory for its journal next to it.
struct Scene {
    root: TempDir,
    journal: TempDir,
}

impl Scene {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self {
            root: tempfile::tempdir().unwrap(),
            journal: tempfile::tempdir().unwrap(),
        };
        for (path, content) in files {
            let path = tree.root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        tree
    }

    fn verified(&self, reply: &str) -> VerifiedEdits {
        let policy = PathPolicy::load(self.root.path(), None).unwrap();
        policy.verify(parse(reply)).unwrap()
    }

    /// Applies edits like a run that completes.
    fn apply(&self, edits: &VerifiedEdits) -> Result<(), ApplyError> {
        let redactor = Redactor::default();
        let mut undo_log = self.undo_log(&redactor);
        let applied = apply(self.tree(), edits, Some(&mut undo_log))?.unwrap();
        assert!(applied.left.is_none(), "{applied:?}");
        Ok(())
    }

    fn tree(&self) -> Tree<'_> {
        Tree {
            root: self.root.path(),
            journal: self.journal.path(),
            now: now(),
            staged: None,
        }
    }

    fn undo_log_in<'r>(&self, name: &str, redactor: &'r Redactor) -> UndoLog<'r> {
        let logs = self.root.path().join("logs");
        fs::create_dir_all(logs.join(name)).unwrap();
        let folder = RunFolder::of(logs, name.to_owned()).unwrap();
        UndoLog::new(self.root.path(), folder.into(), redactor)
    }

    fn undo_log<'r>(&self, redactor: &'r Redactor) -> UndoLog<'r> {
        self.undo_log_in("run", redactor)
    }

    fn recover(&self) -> Result<Option<Recovered>, ApplyError> {
        recover(self.tree())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn journals(&self) -> usize {
        self.journal_files().len()
    }

    fn journal_files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.journal.path()).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    /// Returns the file of the only journal.
    fn journal_file(&self) -> PathBuf {
        let mut files = self.journal_files();
        assert_eq!(files.len(), 1, "{files:?}");
        files.remove(0)
    }

    /// Returns every file with its mode and content, and every directory with a trailing slash.
    fn listing(&self) -> BTreeMap<String, String> {
        let mut listing = BTreeMap::new();
        let mut pending = vec![self.root.path().to_path_buf()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path
                    .strip_prefix(self.root.path())
                    .unwrap()
                    .display()
                    .to_string();
                if name == "logs" || name == "agent-config" {
                    continue;
                }
                let metadata = path.symlink_metadata().unwrap();
                if metadata.is_dir() {
                    listing.insert(format!("{name}/"), String::new());
                    pending.push(path);
                } else {
                    let content = fs::read_to_string(&path).unwrap_or_default();
                    listing.insert(name, format!("{:o} {content}", metadata.mode() & 0o7777));
                }
            }
        }
        listing
    }
}

const REPLY: &str =
    "^^^a\nnew a\n^^^end\n^^^d/e/f\nnew f\n^^^end\n^^^gone\n^^^delete\n^^^z\nnew z\n^^^end\n";

#[test]
fn files_are_written_made_and_removed_and_modes_kept() {
    let tree = Scene::new(&[("a", "old a"), ("gone", "x"), ("other", "untouched")]);
    fs::set_permissions(tree.root.path().join("a"), Permissions::from_mode(0o4751)).unwrap();
    tree.apply(&tree.verified(REPLY)).unwrap();
    let listing = tree.listing();
    assert_eq!(listing["a"], "751 new a\n");
    assert!(listing["d/e/f"].ends_with("new f\n"));
    assert!(!listing.contains_key("gone"));
    assert_eq!(listing.len(), 6, "nothing is left behind: {listing:?}");
}

#[test]
fn another_name_of_the_file_keeps_its_bytes() {
    let tree = Scene::new(&[("a", "old a"), ("gone", "x")]);
    fs::hard_link(tree.root.path().join("a"), tree.root.path().join("other")).unwrap();
    tree.apply(&tree.verified(REPLY)).unwrap();
    assert!(tree.listing()["other"].ends_with("old a"));
}

#[test]
fn any_failure_part_way_restores_everything() {
    type Trouble = fn(&Path);
    let troubles: [(&str, Trouble); 5] = [
        ("a file appears", |root| {
            fs::write(root.join("z"), "somebody else's").unwrap();
        }),
        ("a directory appears", |root| {
            fs::create_dir(root.join("z")).unwrap();
        }),
        ("a link appears", |root| {
            symlink("/tmp", root.join("d")).unwrap();
        }),
        ("a file is replaced", |root| {
            fs::write(root.join("later"), "theirs").unwrap();
            fs::rename(root.join("later"), root.join("gone")).unwrap();
        }),
        ("a file disappears", |root| {
            fs::remove_file(root.join("gone")).unwrap();
        }),
    ];
    for (name, trouble) in troubles {
        let tree = Scene::new(&[("a", "old a"), ("gone", "x"), ("other", "untouched")]);
        let edits = tree.verified(REPLY);
        trouble(tree.root.path());
        let before = tree.listing();
        let error = tree.apply(&edits).expect_err(name);
        assert!(
            !matches!(error, ApplyError::NotRolledBack { .. }),
            "{name}: {error}"
        );
        assert_eq!(tree.journals(), 0, "{name}");
        assert_eq!(tree.listing(), before, "{name}");
    }
}

#[test]
fn many_files_are_staged_in_several_threads() {
    let tree = Scene::new(&[]);
    let reply: String = (0..500)
        .map(|n| format!("^^^d{}/f{n}\n{n}\n^^^end\n", n % 7))
        .collect();
    tree.apply(&tree.verified(&reply)).unwrap();
    let listing = tree.listing();
    assert_eq!(listing.len(), 507);
    for n in 0..500 {
        assert!(listing[&format!("d{}/f{n}", n % 7)].ends_with(&format!(" {n}\n")));
    }
}

/// Simulates a crash after some steps: completed steps remain, and nothing is undone.
fn crash(tree: &Scene, edits: &VerifiedEdits, steps: usize) -> bool {
    let root = Root::open(tree.root.path()).unwrap();
    let all: Vec<_> = edits.edits().iter().map(VerifiedEdit::operation).collect();
    let whole = ChangeSet {
        steps: &all,
        directories: Vec::new(),
        journalling: Journalling::On,
    };
    let plan = ApplyPlan::of(&root, &whole, now()).unwrap();
    let redactor = Redactor::default();
    let record = plan.record(Some(&mut tree.undo_log(&redactor))).unwrap();
    let mut journal = Journal::arm(tree.journal.path(), &record).unwrap();
    let (files, units) = (all.len(), plan.units.len());
    let staged = steps.min(files);
    if steps > 0 {
        make_directories(&plan).unwrap();
        stage(&plan, 0..staged, None).unwrap();
    }
    if staged == files {
        journal.advance(JournalState::Installing).unwrap();
        install(&plan, 0..(steps - staged).min(units)).unwrap();
    }
    let is_whole = steps > files + units;
    if is_whole {
        journal.install().unwrap();
    }
    is_whole
}

const FILES: [(&str, &str); 4] = [
    ("a", "old a"),
    ("gone", "x"),
    ("other", "untouched"),
    ("s/keep", "y"),
];

#[test]
fn after_a_crash_at_any_step_the_tree_is_wholly_old_or_wholly_new() {
    let reply = format!("{REPLY}^^^d/e/g\ng\n^^^end\n^^^d/h\nh\n^^^end\n^^^s/new\ns\n^^^end\n");
    let done = Scene::new(&FILES);
    let old = done.listing();
    done.apply(&done.verified(&reply)).unwrap();
    let new = done.listing();
    let mut seen = (0, 0);
    for steps in 0..=20 {
        let tree = Scene::new(&FILES);
        let is_whole = crash(&tree, &tree.verified(&reply), steps);
        let recovered = tree.recover().unwrap();
        if is_whole {
            seen.1 += 1;
            assert_eq!(recovered, Some(Recovered::Completed), "{steps}");
            assert_eq!(tree.listing(), new, "{steps}");
        } else {
            seen.0 += 1;
            assert_eq!(recovered, Some(Recovered::RolledBack), "{steps}");
            assert_eq!(tree.listing(), old, "{steps}");
        }
        assert_eq!(tree.journals(), 0, "{steps}");
        assert_eq!(tree.recover().unwrap(), None, "{steps}");
    }
    assert!(seen.0 > 10 && seen.1 > 3, "{seen:?}");
}

#[test]
fn recovery_leaves_files_edited_after_a_crash() {
    type Edit = fn(&Path);
    let edits: [(&str, Edit); 4] = [
        ("a", |root| fs::write(root.join("a"), "edited").unwrap()),
        ("z", |root| fs::write(root.join("z"), "edited").unwrap()),
        ("gone", |root| {
            fs::write(root.join("gone"), "made again").unwrap();
        }),
        ("d", |root| {
            fs::write(root.join("d/e/mine"), "mine").unwrap();
        }),
    ];
    for (path, edit) in edits {
        let tree = Scene::new(&FILES);
        // All files are in place, but not committed.
        assert!(!crash(&tree, &tree.verified(REPLY), 8), "{path}");
        edit(tree.root.path());
        let before = tree.listing();
        let Err(ApplyError::Changed(changed)) = tree.recover() else {
            panic!("{path} was changed");
        };
        assert_eq!(changed.len(), 1, "{changed:?}");
        assert!(changed[0].starts_with(&format!("`{path}`")), "{changed:?}");
        assert_eq!(tree.listing(), before, "{path}");
        assert_eq!(tree.journals(), 1, "{path}");
    }
}

#[test]
fn a_roll_back_that_is_done_is_not_done_again() {
    let tree = Scene::new(&FILES);
    crash(&tree, &tree.verified(REPLY), 8);
    let (mut journal, record) = Journal::find(tree.journal.path()).unwrap().unwrap();
    let root = Root::open(tree.root.path()).unwrap();
    rollback::roll_back(&root, &record, &mut journal).unwrap();
    // The process is killed here, and another one then creates a file of the same name.
    fs::write(tree.path("z"), "mine").unwrap();
    assert_eq!(tree.recover().unwrap(), Some(Recovered::RolledBack));
    assert!(tree.listing()["z"].ends_with("mine"));
    assert_eq!(tree.journals(), 0);
}

#[test]
fn a_journal_that_a_build_could_have_planted_is_not_obeyed() {
    let tree = Scene::new(&FILES);
    let journal = tree.journal.path().join(".code-commit-journal-installing");
    for (target, staged, folder) in [
        ("moved", "agent-config", "logs/run"),
        ("moved", "other", "logs/run"),
        (".git/hooks/x", ".git/hooks/.code-commit-0-0", "logs/run"),
        ("../x", "../.code-commit-0-0", "logs/run"),
        ("a", "s/.code-commit-0-0", "logs/run"),
        ("a", ".code-commit-0-0", "logs/../src"),
        ("a", ".code-commit-0-0", "src"),
    ] {
        let planted = serde_json::json!({
            "version": 2, "folder": folder, "durable": false, "stamp": [0, 0], "directories": [],
            "units": [{"target": target, "staged": staged, "change": {"remove": {"old": null}}}],
        });
        fs::write(&journal, planted.to_string()).unwrap();
        let before = tree.listing();
        assert!(
            matches!(tree.recover(), Err(ApplyError::EarlierJournal(_))),
            "{planted}"
        );
        assert_eq!(tree.listing(), before);
    }
}

#[test]
fn a_second_reply_that_fails_leaves_the_undo_log_of_the_first() {
    let tree = Scene::new(&FILES);
    let redactor = Redactor::default();
    let mut undo_log = tree.undo_log(&redactor);
    apply(tree.tree(), &tree.verified(REPLY), Some(&mut undo_log)).unwrap();
    let second = tree.verified("^^^a\nnewer\n^^^end\n");
    fs::write(tree.path("a"), "theirs").unwrap();
    assert!(apply(tree.tree(), &second, Some(&mut undo_log)).is_err());
    let changes = undo_log::read(tree.root.path(), RUN).unwrap().unwrap();
    assert_eq!(&changes.files.len(), &undo_log.changes().files.len());
    assert_eq!(changes.files.len(), 4);
}

#[test]
fn recovery_leaves_files_written_before_the_first_install() {
    let tree = Scene::new(&FILES);
    crash(&tree, &tree.verified(REPLY), 2);
    fs::write(tree.path("z"), "mine").unwrap();
    fs::write(tree.path("a"), "mine too").unwrap();
    assert_eq!(tree.recover().unwrap(), Some(Recovered::RolledBack));
    let listing = tree.listing();
    assert!(listing["z"].ends_with("mine") && listing["a"].ends_with("mine too"));
    assert_eq!(listing.len(), FILES.len() + 2);
}

#[test]
fn a_reply_that_could_not_be_applied_leaves_no_undo_log() {
    let tree = Scene::new(&FILES);
    let edits = tree.verified(REPLY);
    fs::create_dir(tree.path("z")).unwrap();
    assert!(tree.apply(&edits).is_err());
    assert!(undo_log::locate(tree.root.path(), RUN).is_none());
}

#[test]
fn replaced_files_are_kept_and_those_with_a_key_beside_the_keys() {
    let tree = Scene::new(&[("a", "old a"), ("gone", "with sekret-key-1")]);
    let redactor = Redactor::new(["sekret-key-1"]);
    let mut undo_log = tree.undo_log(&redactor);
    apply(tree.tree(), &tree.verified(REPLY), Some(&mut undo_log)).unwrap();
    let read = |path: &str| fs::read_to_string(tree.root.path().join(path)).unwrap();
    assert_eq!(read("logs/run/replaced/1"), "old a");
    assert_eq!(read("agent-config/replaced/run/2"), "with sekret-key-1");
    assert!(!tree.root.path().join("logs/run/replaced/2").exists());
    let changes = undo_log::read(tree.root.path(), RUN).unwrap().unwrap();
    let kept: Vec<_> = changes
        .files
        .iter()
        .map(|(path, change)| {
            (
                path.as_str(),
                change.before.as_ref().map(|before| before.kept),
            )
        })
        .collect();
    assert_eq!(
        kept,
        [
            ("a", Some(1)),
            ("d/e/f", None),
            ("gone", Some(2)),
            ("z", None)
        ]
    );
    assert_eq!(
        changes.directories.into_iter().collect::<Vec<_>>(),
        ["d", "d/e"]
    );
}

#[test]
fn a_journal_that_cannot_be_read_stops_everything() {
    let tree = Scene::new(&FILES);
    crash(&tree, &tree.verified(REPLY), 8);
    let journal = tree.journal_file();
    fs::write(&journal, "{\"version\": 1").unwrap();
    assert!(matches!(tree.recover(), Err(ApplyError::EarlierJournal(_))));
    fs::write(
        &journal,
        "{\"version\": 99, \"stamp\": [0, 0], \"units\": [], \"directories\": []}",
    )
    .unwrap();
    assert!(matches!(tree.recover(), Err(ApplyError::EarlierJournal(_))));
}

mod faults;
mod race;
mod rights;
