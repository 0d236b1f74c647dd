//! Tests of a restored file's permissions, whatever its record says.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::edit::undo::undo;

const REPLACE: &str = "^^^a\nnew\n^^^end\n";
const REMOVE: &str = "^^^a\n^^^delete\n";

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the mode after undoing a change to a file that had the mode `before` and, if given, got the mode `now`
/// afterwards; with `forged`, its record claims that mode. Also returns the attributes that were lost.
fn restored(reply: &str, before: u32, now: Option<u32>, forged: Option<u32>) -> (u32, Vec<String>) {
    let scene = Scene::new(&[("a", "old")]);
    let file = scene.path("a");
    set_mode(&file, before);
    let redactor = Redactor::default();
    let mut undo_log = scene.undo_log(&redactor);
    apply(scene.tree(), &scene.verified(reply), Some(&mut undo_log)).unwrap();
    if let Some(now) = now {
        set_mode(&file, now);
    }
    let mut changes = undo_log.changes().clone();
    let recorded = changes.files.get_mut("a").unwrap().before.as_mut().unwrap();
    recorded.mode = forged.unwrap_or(recorded.mode);
    let undone = undo(scene.tree(), RUN, &changes, None, Journalling::On).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    (mode(&file), undone.applied.unwrap().lost)
}

#[test]
fn a_file_gets_back_what_it_permitted() {
    for before in [0o600, 0o640, 0o644, 0o664, 0o755, 0o777, 0o400] {
        for reply in [REPLACE, REMOVE] {
            assert_eq!(restored(reply, before, None, None), (before, Vec::new()));
        }
        let changed = restored(REPLACE, before, Some(0o600), None);
        assert_eq!(changed, (before, Vec::new()));
    }
}

#[test]
fn no_record_makes_a_file_permit_what_none_on_the_disk_does() {
    for before in [0o600, 0o640, 0o644, 0o755] {
        for forged in [0o777, 0o666, 0o766, 0o677, 0o444] {
            for reply in [REPLACE, REMOVE] {
                let (mode, lost) = restored(reply, before, None, Some(forged));
                assert_eq!(mode, before & forged, "{before:o} {forged:o}");
                let told = lost.iter().any(|lost| lost.contains(&format!("{mode:o}")));
                assert_eq!(told, mode != forged, "{lost:?}");
            }
        }
    }
}

#[test]
fn saved_copy_has_exactly_the_permissions_of_the_file() {
    for before in [0o600, 0o644, 0o755] {
        let scene = Scene::new(&[("a", "old")]);
        set_mode(&scene.path("a"), before);
        // A file with a second name is copied.
        fs::hard_link(scene.path("a"), scene.path("b")).unwrap();
        let redactor = Redactor::default();
        let mut undo_log = scene.undo_log(&redactor);
        apply(scene.tree(), &scene.verified(REMOVE), Some(&mut undo_log)).unwrap();
        assert_eq!(mode(&scene.path("logs/run/replaced/1")), before);
        let changes = undo_log.changes().clone();
        undo(scene.tree(), RUN, &changes, None, Journalling::On).unwrap();
        assert_eq!(mode(&scene.path("a")), before);
    }
}
