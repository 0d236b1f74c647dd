//! The attributes that a file keeps when it is replaced, removed or restored.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;

use crate::support::{ModelServer, TestProject, skipped};

const ACL: &str = "system.posix_acl_access";
const DEFAULT_ACL: &str = "system.posix_acl_default";
const NOTE: &str = "user.note";

/// An access control list: permissions of the owner, another user, the group, the mask, and others.
fn acl([owner, somebody, group, mask, others]: [u16; 5]) -> Vec<u8> {
    const NOBODY: u32 = u32::MAX;
    let entries = [
        (0x01, owner, NOBODY),
        (0x02, somebody, 4321),
        (0x04, group, NOBODY),
        (0x10, mask, NOBODY),
        (0x20, others, NOBODY),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(u16::to_le_bytes(tag));
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

fn get(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    match fgetxattr(File::open(path).unwrap(), name, &mut value[..]) {
        Ok(length) => Some(value[..length].to_vec()),
        Err(Errno::NODATA) => None,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// Sets an attribute; prints a message and returns false if the file system has none.
fn set(path: &Path, name: &str, value: &[u8]) -> bool {
    match fsetxattr(File::open(path).unwrap(), name, value, XattrFlags::empty()) {
        Ok(()) => true,
        Err(Errno::NOTSUP | Errno::PERM) => {
            skipped(&format!("{name} cannot be set here"));
            false
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

const REPLY: &str = "^^^a.txt\nnew\n^^^end\n^^^b.txt\n^^^delete\n^^^c.txt\nnew\n^^^end\n";

#[test]
fn access_control_lists_and_attributes_are_kept_and_restored() {
    let server = ModelServer::gemini(&[REPLY]);
    let project = TestProject::new().with(&server);
    // The group has no permission, although the mode looks as if it did.
    let list = acl([6, 6, 0, 6, 0]);
    let files = ["a.txt", "b.txt", "c.txt"].map(|name| project.path(name));
    for file in &files {
        fs::write(file, "old\n").unwrap();
        if !(set(file, ACL, &list) && set(file, NOTE, b"mine")) {
            return;
        }
    }
    // A file with two names is kept as a copy.
    fs::hard_link(&files[2], project.path("other")).unwrap();
    let check = |file: &Path| {
        assert_eq!(mode(file), 0o660);
        assert_eq!(get(file, ACL), Some(list.clone()));
        assert_eq!(get(file, NOTE).as_deref(), Some(b"mine".as_slice()));
    };
    project.run(&[]).exits(0);
    for file in [&files[0], &files[2]] {
        assert_eq!(fs::read_to_string(file).unwrap(), "new\n");
        check(file);
    }
    project.run(&["undo"]).exits(0);
    for file in &files {
        assert_eq!(fs::read_to_string(file).unwrap(), "old\n");
        check(file);
    }
}

#[test]
fn a_directorys_default_acl_grants_no_rights_to_a_replaced_file() {
    let server = ModelServer::gemini(&["^^^d/a\nnew\n^^^end\n"]);
    let project = TestProject::new().with(&server).file("d/a", "old");
    let project = project.mode("d/a", 0o640);
    let (directory, file) = (project.path("d"), project.path("d/a"));
    if !set(&directory, DEFAULT_ACL, &acl([7, 7, 7, 7, 7])) {
        return;
    }
    project.run(&[]).exits(0);
    assert_eq!((mode(&file), get(&file, ACL)), (0o640, None));
    project.run(&["undo"]).exits(0);
    assert_eq!((mode(&file), get(&file, ACL)), (0o640, None));
}

#[test]
fn new_content_does_not_run_with_its_owners_rights() {
    let server = ModelServer::gemini(&["^^^a\nnew\n^^^end\n^^^b\nnew\n^^^end\n"]);
    let project = TestProject::new().with(&server).file("a", "old");
    let project = project.mode("a", 0o6755).file("b", "old").mode("b", 0o755);
    let run = project.run(&[]).exits(0);
    assert_eq!(mode(&project.path("a")), 0o755);
    let run = run.says(&["`a` has lost its set-user-ID, set-group-ID or sticky bit"]);
    assert!(!run.stderr.contains("`b` has lost"), "{}", run.stderr);
    project.run(&["undo"]).exits(0);
    assert_eq!(mode(&project.path("a")), 0o755);
    assert_eq!(project.read("a"), "old");
}

#[test]
fn a_programs_capabilities_do_not_pass_to_new_content() {
    let server = ModelServer::gemini(&["^^^a\nnew\n^^^end\n"]);
    let project = TestProject::new().with(&server).file("a", "old");
    let file = project.path("a");
    // Version 2, effective: CAP_NET_RAW.
    let mut capability = vec![0; 20];
    capability[..4].copy_from_slice(&0x0200_0001_u32.to_le_bytes());
    capability[5] = 0x20;
    let set = fsetxattr(
        File::open(&file).unwrap(),
        "security.capability",
        &capability,
        XattrFlags::empty(),
    );
    // Only root may set capabilities.
    if set.is_ok() {
        let run = project.run(&[]).exits(0);
        run.says(&["`a` has lost the capabilities of a program"]);
        assert_eq!(get(&file, "security.capability"), None);
    }
}
