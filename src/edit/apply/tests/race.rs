//! Tests in which another thread keeps swapping a directory with a symbolic link out of the root while replies are
//! verified, applied and undone.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::*;
use crate::edit::undo::undo;

/// The minimum number of replies to try.
const ROUNDS: usize = 400;
/// The maximum number of replies to try until some succeed and some fail.
const MAX_ROUNDS: usize = 100 * ROUNDS;

const REPLY: &str = "^^^d/keep\nnew\n^^^end\n^^^d/sub/made\nnew\n^^^end\n^^^d/gone\n^^^delete\n^^^top\nnew\n^^^end\n";

/// Returns the files outside, which must not change; they have the same names as those inside.
fn outside(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.push((path.clone(), Vec::new()));
                pending.push(path);
            } else {
                let content = fs::read(&path).unwrap();
                found.push((path, content));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn nothing_escapes_while_a_directory_and_a_link_are_swapped() {
    let target = tempfile::tempdir().unwrap();
    fs::create_dir(target.path().join("sub")).unwrap();
    for name in ["keep", "gone", "sub/other"] {
        fs::write(target.path().join(name), "outside").unwrap();
    }
    let before = outside(target.path());
    let scene = Scene::new(&[("d/keep", "old"), ("d/gone", "old"), ("top", "old")]);
    let (directory, link) = (scene.path("d"), scene.path("link"));
    symlink(target.path(), &link).unwrap();
    let redactor = Redactor::default();
    let stop = AtomicBool::new(false);
    let mut seen = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = renameat_with(CWD, &directory, CWD, &link, RenameFlags::EXCHANGE);
            }
        });
        for round in 0..MAX_ROUNDS {
            if round >= ROUNDS && seen.0 > 0 && seen.1 > 0 {
                break;
            }
            let policy = PathPolicy::load(scene.root.path(), None).unwrap();
            let Ok(edits) = policy.verify(parse(REPLY)) else {
                continue;
            };
            let mut undo_log = scene.undo_log(&redactor);
            let _ = fs::remove_dir_all(scene.path("logs/run/replaced"));
            match apply(scene.tree(), &edits, Some(&mut undo_log)) {
                Ok(_) => seen.0 += 1,
                Err(_) => seen.1 += 1,
            }
            let changes = undo_log.changes().clone();
            let _ = undo(
                scene.tree(),
                RUN,
                &changes,
                Some(&mut undo_log),
                Journalling::On,
            );
            let _ = scene.recover();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(outside(target.path()), before, "something has escaped");
    assert!(seen.0 > 0 && seen.1 > 0, "it was no race: {seen:?}");
}
