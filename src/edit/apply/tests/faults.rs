//! Tests that make each disk call fail once, or be the last before a kill or before the disk fails for good. In every
//! case, the tree must be entirely the old or entirely the new one.

use rustix::io::Errno;

use super::*;
use crate::edit::disk::tests::{InjectedFault, with};
use crate::edit::undo::{UndoError, undo};

const ERRORS: [Errno; 2] = [Errno::IO, Errno::NOSPC];
/// An upper bound on the calls made by any operation here.
const MANY: usize = 10_000;

/// A reply that creates, replaces and removes files, creates a directory, and leaves a file unchanged.
const SMALL: &str = "^^^a\nnew a\n^^^end\n^^^same\nsame\n^^^end\n^^^d/e/f\nnew f\n^^^end\n^^^gone\n^^^delete\n^^^z\nnew z\n^^^end\n";

type Listing = BTreeMap<String, String>;

fn scene() -> Scene {
    let scene = Scene::new(&[("a", "old a"), ("gone", "x"), ("same", "same\n")]);
    fs::set_permissions(scene.path("a"), Permissions::from_mode(0o751)).unwrap();
    scene
}

/// Returns the tree before and after the reply.
fn old_and_new() -> (Listing, Listing) {
    before_and_after(SMALL)
}

fn before_and_after(reply: &str) -> (Listing, Listing) {
    let scene = scene();
    let old = scene.listing();
    scene.apply(&scene.verified(reply)).unwrap();
    (old, scene.listing())
}

/// Applies the reply with an injected fault. Returns whether that succeeded, or `None` if the fault was not triggered.
fn apply_with(scene: &Scene, fault: InjectedFault) -> Option<bool> {
    apply_reply_with(scene, SMALL, fault)
}

fn apply_reply_with(scene: &Scene, reply: &str, fault: InjectedFault) -> Option<bool> {
    let edits = scene.verified(reply);
    let redactor = Redactor::default();
    let mut undo_log = scene.undo_log(&redactor);
    let (applied, happened) = with(fault, || apply(scene.tree(), &edits, Some(&mut undo_log)));
    happened.then_some(applied.is_ok())
}

/// Runs `check` for the index of every call.
fn for_every_call(mut check: impl FnMut(usize) -> bool) {
    let calls = (0..MANY).take_while(|call| check(*call)).count();
    assert!((20..MANY).contains(&calls), "{calls} calls");
}

#[test]
fn an_error_at_any_call_leaves_the_old_tree_or_a_new_one_that_counts() {
    let (old, new) = old_and_new();
    for errno in ERRORS {
        for_every_call(|call| {
            let scene = scene();
            let Some(applied) = apply_with(&scene, InjectedFault::Once(call, errno)) else {
                return false;
            };
            scene.recover().unwrap();
            let expected = if applied { &new } else { &old };
            assert_eq!(&scene.listing(), expected, "{errno} at call {call}");
            assert_eq!(scene.journals(), 0);
            true
        });
    }
}

#[test]
fn an_error_at_any_call_with_many_files_leaves_the_old_tree_or_a_new_one_that_counts() {
    let many: String = (0..=FEW_FILES)
        .map(|n| format!("^^^many/{n}\n{n}\n^^^end\n"))
        .collect();
    let reply = format!("{SMALL}{many}");
    let (old, new) = before_and_after(&reply);
    for_every_call(|call| {
        let scene = scene();
        let fault = InjectedFault::Once(call, Errno::IO);
        let Some(applied) = apply_reply_with(&scene, &reply, fault) else {
            return false;
        };
        scene.recover().unwrap();
        let expected = if applied { &new } else { &old };
        assert_eq!(&scene.listing(), expected, "call {call}");
        assert_eq!(scene.journals(), 0);
        true
    });
}

#[test]
fn a_kill_or_a_dead_disk_at_any_call_leaves_one_of_the_two_trees() {
    let (old, new) = old_and_new();
    let mut seen = (0, 0);
    for_every_call(|call| {
        let scene = scene();
        let Some(applied) = apply_with(&scene, InjectedFault::From(call, Errno::IO)) else {
            return false;
        };
        let recovered = scene.recover().unwrap();
        let now = scene.listing();
        let is_new = now == new;
        assert!(is_new || now == old, "call {call}: {now:#?}");
        assert!(is_new || !applied, "call {call}");
        match recovered {
            Some(Recovered::RolledBack) => assert!(!is_new, "call {call}"),
            Some(Recovered::Completed) => assert!(is_new, "call {call}"),
            None => {}
        }
        seen = (seen.0 + usize::from(!is_new), seen.1 + usize::from(is_new));
        assert_eq!(scene.journals(), 0);
        true
    });
    assert!(seen.0 > 10 && seen.1 > 3, "{seen:?}");
}

#[test]
fn the_recovery_may_be_killed_at_any_call_too() {
    let (old, new) = old_and_new();
    for_every_call(|call| {
        // Not every pair of calls, but for some calls of the application, every call of the recovery.
        for kill in (call % 7..MANY).step_by(7) {
            let scene = scene();
            if apply_with(&scene, InjectedFault::From(call, Errno::IO)).is_none() {
                return false;
            }
            let (_, happened) = with(InjectedFault::From(kill, Errno::IO), || scene.recover());
            scene.recover().unwrap();
            let now = scene.listing();
            assert!(
                now == old || now == new,
                "call {call}, then {kill}: {now:#?}"
            );
            assert_eq!(scene.journals(), 0);
            if !happened {
                break;
            }
        }
        true
    });
}

#[test]
fn undoing_is_all_or_nothing_too() {
    let (old, new) = old_and_new();
    for errno in [None, Some(Errno::IO), Some(Errno::NOSPC)] {
        for_every_call(|call| {
            let scene = scene();
            scene.apply(&scene.verified(SMALL)).unwrap();
            let changes = undo_log::read(scene.root.path(), RUN).unwrap().unwrap();
            let redactor = Redactor::default();
            let mut undo_log = scene.undo_log_in("undo", &redactor);
            let fault = match errno {
                None => InjectedFault::From(call, Errno::IO),
                Some(errno) => InjectedFault::Once(call, errno),
            };
            let (undone, happened) = with(fault, || {
                undo(
                    scene.tree(),
                    RUN,
                    &changes,
                    Some(&mut undo_log),
                    Journalling::On,
                )?;
                Ok::<_, UndoError>(())
            });
            scene.recover().unwrap();
            let now = scene.listing();
            assert!(now == old || now == new, "call {call}: {now:#?}");
            assert!(now == old || undone.is_err(), "call {call}");
            if errno.is_some() {
                assert_eq!(now == old, undone.is_ok(), "call {call}");
            }
            assert_eq!(scene.journals(), 0);
            happened
        });
    }
}
