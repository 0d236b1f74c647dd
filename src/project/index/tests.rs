//! Tests of indexes in each version, read as git reads them, and of malicious ones.

use std::fs;

use duct::cmd;
use tempfile::TempDir;

use super::*;

fn git(dir: &Path, args: &[&str]) -> String {
    let variables = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"];
    let mut git = cmd("git", args).dir(dir);
    for name in variables {
        git = git.env_remove(name);
    }
    for name in [
        "AUTHOR_NAME",
        "AUTHOR_EMAIL",
        "COMMITTER_NAME",
        "COMMITTER_EMAIL",
    ] {
        git = git.env(format!("GIT_{name}"), "x");
    }
    git.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .read()
        .unwrap()
}

fn work_tree(options: &[&str], files: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &[&["init", "-q"], options].concat());
    for name in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{name}\n")).unwrap();
    }
    git(dir.path(), &["add", "--all"]);
    dir
}

fn listed(root: &Path) -> Vec<String> {
    TrackedPaths::below(root).unwrap().files().collect()
}

#[track_caller]
fn listed_as_by_git(root: &Path) -> Vec<String> {
    let output = git(root, &["ls-files", "-z", "--cached", "--deduplicate"]);
    let mut by_git: Vec<&str> = output.split_terminator('\0').collect();
    by_git.sort_unstable();
    let listed = listed(root);
    assert_eq!(listed, by_git);
    listed
}

const FILES: [&str; 6] = [
    "a",
    "a.b",
    "deep/er/file with a blank",
    "deep/er/\u{fc}",
    "deep/x",
    "z",
];

#[test]
fn every_version_and_both_object_formats_are_read() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let dir = work_tree(options, &FILES);
        for version in ["2", "3", "4"] {
            git(
                dir.path(),
                &[
                    "update-index",
                    "--index-version",
                    version,
                    "--force-write-index",
                ],
            );
            assert_eq!(listed_as_by_git(dir.path()), FILES, "{version}");
        }
        git(dir.path(), &["add", "--intent-to-add", "--force", "."]);
        listed_as_by_git(dir.path());
    }
}

#[test]
fn extended_flags_and_long_paths_are_read() {
    let long = vec!["x".repeat(200); 9].join("/");
    let dir = work_tree(&[], &[&long, "b", "c"]);
    fs::write(dir.path().join("later"), "").unwrap();
    git(dir.path(), &["add", "-N", "later"]);
    git(dir.path(), &["update-index", "--skip-worktree", "b"]);
    git(dir.path(), &["update-index", "--index-version", "4"]);
    assert_eq!(listed_as_by_git(dir.path()).len(), 4);
}

#[test]
fn a_split_index_is_the_shared_one_with_what_has_changed() {
    let dir = work_tree(&[], &FILES);
    git(dir.path(), &["update-index", "--split-index"]);
    assert_eq!(listed_as_by_git(dir.path()), FILES);
    fs::write(dir.path().join("z"), "changed\n").unwrap();
    fs::write(dir.path().join("new"), "").unwrap();
    git(dir.path(), &["add", "z", "new"]);
    git(dir.path(), &["rm", "-q", "--cached", "a", "deep/x"]);
    let listed = listed_as_by_git(dir.path());
    assert!(listed.contains(&"new".to_owned()) && !listed.contains(&"a".to_owned()));
    for entry in fs::read_dir(dir.path().join(".git")).unwrap() {
        let entry = entry.unwrap();
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("sharedindex.")
        {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let problem = TrackedPaths::below(dir.path()).unwrap_err().to_string();
    assert!(
        problem.contains("sharedindex.") && problem.ends_with("it is missing"),
        "{problem}"
    );
}

#[test]
fn a_file_with_a_conflict_is_listed_once() {
    let dir = work_tree(&[], &["x", "y"]);
    let run = |args: &[&str]| git(dir.path(), args);
    run(&["commit", "-qm", "one"]);
    run(&["checkout", "-qb", "other"]);
    fs::write(dir.path().join("x"), "theirs\n").unwrap();
    run(&["commit", "-qam", "two"]);
    run(&["checkout", "-q", "-"]);
    fs::write(dir.path().join("x"), "ours\n").unwrap();
    run(&["commit", "-qam", "three"]);
    let _ = cmd!("git", "merge", "-q", "other")
        .dir(dir.path())
        .stdout_null()
        .stderr_null()
        .unchecked()
        .run();
    assert!(run(&["ls-files", "--unmerged"]).lines().count() > 1);
    assert_eq!(listed_as_by_git(dir.path()), ["x", "y"]);
}

#[test]
fn a_directory_that_a_sparse_checkout_leaves_out_is_not_listed_but_tracked() {
    let dir = work_tree(&[], &["in/a", "out/b/c", "top"]);
    let run = |args: &[&str]| git(dir.path(), args);
    run(&["commit", "-qm", "one"]);
    run(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    assert!(run(&["ls-files", "--sparse"]).contains("out/\n"));
    let tracked = TrackedPaths::below(dir.path()).unwrap();
    assert_eq!(tracked.find("out/b/c"), Some("out"));
    assert_eq!(tracked.find("outer"), None);
    assert_eq!(tracked.find("IN/A"), Some("in/a"));
    assert_eq!(tracked.find("in"), None);
    assert_eq!(listed(dir.path()), ["in/a", "top"]);
}

#[test]
fn below_the_top_paths_are_those_of_the_directory() {
    let dir = work_tree(&[], &FILES);
    assert_eq!(
        listed_as_by_git(&dir.path().join("deep")),
        ["er/file with a blank", "er/\u{fc}", "x"]
    );
}

#[test]
fn linked_work_trees_and_submodules_have_an_index_of_their_own() {
    let dir = work_tree(&[], &["a", "b"]);
    git(dir.path(), &["commit", "-qm", "one"]);
    let other = tempfile::tempdir().unwrap();
    let linked = other.path().join("linked");
    git(
        dir.path(),
        &["worktree", "add", "-q", linked.to_str().unwrap()],
    );
    git(&linked, &["rm", "-q", "--cached", "a"]);
    assert_eq!(listed_as_by_git(&linked), ["b"]);
    let bare = dir.path().join("module");
    fs::create_dir(&bare).unwrap();
    git(
        dir.path(),
        &["init", "-q", "--separate-git-dir", "elsewhere", "module"],
    );
    fs::write(bare.join("m"), "").unwrap();
    git(&bare, &["add", "m"]);
    assert_eq!(listed_as_by_git(&bare), ["m"]);
}

#[test]
fn without_an_index_nothing_is_tracked_and_without_a_repository_that_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let problem = TrackedPaths::below(dir.path()).unwrap_err();
    assert!(matches!(problem, ProjectProblem::NoRepository));
    git(dir.path(), &["init", "-q"]);
    assert!(listed(dir.path()).is_empty());
}

#[test]
fn an_index_without_a_checksum_and_one_with_caches_are_read() {
    let dir = work_tree(&[], &FILES);
    git(dir.path(), &["commit", "-qm", "one"]);
    git(dir.path(), &["update-index", "--untracked-cache"]);
    git(dir.path(), &["status"]);
    assert_eq!(listed_as_by_git(dir.path()), FILES);
    git(dir.path(), &["config", "index.skipHash", "true"]);
    git(dir.path(), &["update-index", "--force-write-index"]);
    assert_eq!(listed_as_by_git(dir.path()), FILES);
}

/// Replaces the checksum with the correct one.
fn checked(mut index: Vec<u8>) -> Vec<u8> {
    let mut hasher = hasher(Kind::Sha1);
    hasher.update(&index);
    index.extend(hasher.try_finalize().unwrap().as_slice());
    index
}

fn header(version: u32, entries: u32) -> Vec<u8> {
    [
        b"DIRC".as_slice(),
        &version.to_be_bytes(),
        &entries.to_be_bytes(),
    ]
    .concat()
}

/// Returns an entry of version 4 that keeps the whole path before it.
fn addition(path: &[u8]) -> Vec<u8> {
    [&[0; 40 + 20 + 2][..], &[0], path, &[0]].concat()
}

#[test]
fn a_damaged_index_is_one_error_that_names_it() {
    let dir = work_tree(&[], &FILES);
    let path = dir.path().join(".git/index");
    let whole = fs::read(&path).unwrap();
    let body = &whole[..whole.len() - 20];
    let amplified = [addition(&[b'x'; 3000]), addition(b"")].concat();
    let nested = [&b"UNTR"[..], &30_000_000_u32.to_be_bytes()].concat();
    for (index, told) in [
        (Vec::new(), "it is too short"),
        (whole[..40].to_vec(), "its checksum is wrong"),
        ([&whole[..], b"x"].concat(), "its checksum is wrong"),
        (checked(b"nonsense".repeat(9)), "damaged"),
        (checked(header(9, 0)), "version 9"),
        (checked(header(2, 1)), "its entries do not fit"),
        (checked(header(2, u32::MAX)), "its entries do not fit"),
        (checked([body, b"mine\0\0\0\0"].concat()), "mine"),
        (
            checked([body, b"UNTR\xff\xff\xff\xff"].concat()),
            "do not fit",
        ),
        (checked([body, &nested].concat()), "do not fit"),
        (
            checked([header(4, 2), addition(&[b'x'; 5000])].concat()),
            "do not fit",
        ),
        (
            checked([header(4, 3), amplified, addition(&[b'x'; 3000])].concat()),
            "do not fit",
        ),
    ] {
        fs::write(&path, index).unwrap();
        let problem = TrackedPaths::below(dir.path()).unwrap_err().to_string();
        assert!(problem.contains(".git/index`"), "{problem}");
        assert!(problem.contains(told), "{told}: {problem}");
    }
    fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &path,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    let problem = TrackedPaths::below(dir.path()).unwrap_err().to_string();
    assert!(problem.contains("it is not a file"), "{problem}");
}

#[test]
fn caches_however_deep_cost_nothing() {
    let dir = work_tree(&[], &FILES);
    let path = dir.path().join(".git/index");
    let whole = fs::read(&path).unwrap();
    // Nested directories: one without a name, without files, and with one subdirectory.
    let directories = [0, 1, 0].repeat(1 << 20);
    let head = [&[1, b'x'][..], &[0; 36 + 36 + 4 + 40], &[0, 1]].concat();
    let cache = [head, directories, vec![0]].concat();
    let size = u32::try_from(cache.len()).unwrap().to_be_bytes();
    let body = &whole[..whole.len() - 20];
    let index = [body, b"UNTR", &size, &cache].concat();
    fs::write(&path, checked(index)).unwrap();
    assert_eq!(listed(dir.path()), FILES);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 128, ..Default::default() })]
    #[test]
    fn no_damage_makes_it_panic(at in 0..4000_usize, byte: u8, version in 2_u32..5) {
        let parts = [header(version, 2), addition(b"abc"), addition(b"d"), b"TREE\0\0\0\0".to_vec()];
        let mut index = parts.concat();
        let size = index.len();
        index[at % size] = byte;
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        fs::write(dir.path().join(".git/index"), checked(index)).unwrap();
        let _ = TrackedPaths::below(dir.path());
    }
}
