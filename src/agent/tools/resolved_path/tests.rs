//! Tests of path resolution, file access and messages for the model.

use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// Creates a directory with a project in `root` and a neighbour in `beside`.
fn tree() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let root = top.join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::create_dir(top.join("beside")).unwrap();
    fs::write(top.join("beside/secret"), "s").unwrap();
    fs::write(root.join("a/b/c.rs"), "c").unwrap();
    symlink("../beside", root.join("out")).unwrap();
    symlink("a/b", root.join("in")).unwrap();
    symlink("../beside/nothing", root.join("dangling")).unwrap();
    symlink("root", top.join("alias")).unwrap();
    (dir, root)
}

fn inside(path: &str) -> ResolvedPath {
    ResolvedPath::Inside(path.to_owned())
}

#[test]
fn paths_in_the_project_are_normalized() {
    let (_dir, root) = tree();
    for (path, expected) in [
        (".", ""),
        ("./", ""),
        ("./a/b/c.rs", "a/b/c.rs"),
        ("a/../a//b/", "a/b"),
        ("new/deeper/file", "new/deeper/file"),
        ("../root/a", "a"),
        ("in/c.rs", "in/c.rs"),
        ("~/x", "~/x"),
        ("a\\b", "a\\b"),
        ("dangling", "dangling"),
    ] {
        let place = ResolvedPath::of(&root, path, Outside::Refused);
        assert_eq!(place, Ok(inside(expected)), "{path}");
        if !path.contains('~') {
            let absolute = format!("{}/{path}", root.display());
            let place = ResolvedPath::of(&root, &absolute, Outside::Refused);
            assert_eq!(place, Ok(inside(expected)), "{absolute}");
        }
    }
    let by_alias = root.with_file_name("alias").join("a/new");
    let place = ResolvedPath::of(&root, by_alias.to_str().unwrap(), Outside::Refused);
    assert_eq!(place, Ok(inside("a/new")));
}

#[test]
fn paths_outside_the_project_are_refused_unless_allowed() {
    let (_dir, root) = tree();
    let beside = root.with_file_name("beside");
    for path in [
        "..",
        "../beside",
        "a/../../beside",
        "/",
        "/etc/passwd",
        "out",
        "out/secret",
        "out/new/file",
        "../root2",
    ] {
        let refused = ResolvedPath::of(&root, path, Outside::Refused).unwrap_err();
        let refused = refused.message;
        assert!(refused.starts_with(&format!("`{path}` ")), "{refused}");
        assert!(refused.contains("--allow-outside"), "{refused}");
        let allowed = ResolvedPath::of(&root, path, Outside::Allowed);
        assert!(matches!(allowed, Ok(ResolvedPath::Outside(_))), "{path}");
    }
    let place = ResolvedPath::of(&root, "out/secret", Outside::Allowed);
    assert_eq!(place, Ok(ResolvedPath::Outside(beside.join("secret"))));
}

#[test]
fn invalid_paths_are_refused_with_a_reason() {
    let (_dir, root) = tree();
    let long = "a/".repeat(LONGEST);
    for (path, said) in [
        ("", "empty"),
        ("  ", "empty"),
        ("a\0b", "NUL"),
        (long.as_str(), "bytes"),
        ("C:\\a\\b.ts", "Windows"),
        ("c:/a", "Windows"),
        ("\\\\server\\share", "Windows"),
    ] {
        for outside in [Outside::Refused, Outside::Allowed] {
            let refused = ResolvedPath::of(&root, path, outside).unwrap_err();
            let refused = refused.message;
            assert!(refused.contains(said), "{refused}");
        }
    }
}

#[test]
fn kind_of_a_path_is_found_without_blocking() {
    let (_dir, root) = tree();
    let fifo = root.join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let look = |place: &ResolvedPath| {
        let found = place.look(&root).unwrap();
        found.map_or("Missing".to_owned(), |found| format!("{found:?}"))
    };
    for (path, expected) in [
        ("in/c.rs", "File"),
        ("a/b/c.rs", "File"),
        ("", "Directory"),
        ("in", "Directory"),
        ("fifo", "Special"),
        ("none", "Missing"),
        ("dangling", "Missing"),
        ("a/b/c.rs/x", "Missing"),
    ] {
        let found = look(&inside(path));
        assert!(found.starts_with(expected), "{path}: {found}");
    }
    assert_eq!(look(&ResolvedPath::Outside(fifo)), "Special");
    // After the check, a link that leads out was put in place.
    assert!(inside("out/secret").look(&root).is_err());
}

#[test]
fn credentials_are_known_by_name_whatever_links_to_them() {
    let (_dir, root) = tree();
    fs::create_dir(root.join("agent-config")).unwrap();
    for name in [".env", "agent-config/my-key.txt", "agent-config/query.txt"] {
        fs::write(root.join(name), "").unwrap();
    }
    symlink("../.env", root.join("a/notes.txt")).unwrap();
    for (path, is_secret) in [
        (".env", true),
        ("a/notes.txt", true),
        ("agent-config/my-key.txt", true),
        ("agent-config/query.txt", false),
        ("agent-config", false),
        ("a/b/c.rs", false),
        ("not-there/id_rsa", true),
    ] {
        let checked = inside(path).check_secrets(&root);
        assert_eq!(checked.is_err(), is_secret, "{path}");
    }
}

#[test]
fn the_keys_of_every_project_are_known_wherever_it_lies() {
    let (_dir, root) = tree();
    let beside = root.with_file_name("beside");
    for project in [root.join("a/b"), beside.clone()] {
        fs::create_dir(project.join("agent-config")).unwrap();
        fs::write(project.join("agent-config/my-key.txt"), "").unwrap();
    }
    symlink("b/agent-config", root.join("a/settings")).unwrap();
    let outside = |path: &str| ResolvedPath::Outside(beside.join(path));
    for (place, is_secret) in [
        (inside("a/b/agent-config/my-key.txt"), true),
        (inside("in/agent-config/my-key.txt"), true),
        (inside("a/settings/my-key.txt"), true),
        (inside("a/b/Agent-Config/my-key.txt"), true),
        (inside("a/b/agent-config/torn/x"), true),
        (inside("a/b/agent-config/query.txt"), false),
        (inside("a/b/agent-configs/x"), false),
        (outside("agent-config/my-key.txt"), true),
        (outside("deep/agent-config/new"), true),
        (outside("secret"), false),
    ] {
        let checked = place.check_secrets(&root);
        assert_eq!(checked.is_err(), is_secret, "{place:?}");
    }
}

#[test]
fn missing_path_is_reported_with_its_neighbours() {
    let (_dir, root) = tree();
    for (path, expected) in [
        ("a/b/C.rs", "`a/b/C.rs` does not exist; `a/b` holds `c.rs`"),
        ("a/x/y.rs", "`a/x/y.rs` does not exist; `a` holds `b`"),
        (
            "zzz",
            "`zzz` does not exist; `.` holds `a`, `dangling`, `in`, `out`",
        ),
    ] {
        assert_eq!(missing(&root, &inside(path)), expected);
    }
}

#[test]
fn odd_characters_are_escaped() {
    for (text, expected) in [
        ("a b", "a b"),
        ("ä\n\u{1b}[2J", "ä\\n\\u{1b}[2J"),
        ("a\u{202e}b", "a\\u{202e}b"),
    ] {
        assert_eq!(escaped(text), expected);
    }
}
