//! Compares the ignore rules with git's own verdict, in temporary repositories unaffected by the user's configuration.

use std::collections::BTreeSet;
use std::fs;

use duct::cmd;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn work_tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    git(dir.path(), &["init", "-q"]);
    for (name, content) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

fn git(dir: &Path, args: &[&str]) -> String {
    undisturbed(cmd("git", args), dir).read().unwrap()
}

/// Runs git in `dir`, unaffected by the settings of the user or of a hook that runs the tests.
fn undisturbed(mut git: duct::Expression, dir: &Path) -> duct::Expression {
    for variable in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_PREFIX",
    ] {
        git = git.env_remove(variable);
    }
    git.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .dir(dir)
        .unchecked()
}

/// Returns the `paths` that git itself ignores.
fn ignored_by_git(dir: &Path, paths: &BTreeSet<String>) -> BTreeSet<String> {
    let input: String = paths.iter().map(|path| format!("{path}\0")).collect();
    let output = undisturbed(
        cmd!("git", "check-ignore", "--no-index", "--stdin", "-z"),
        dir,
    )
    .stdin_bytes(input)
    .read()
    .unwrap();
    output
        .split('\0')
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect()
}

fn ignored_by_us(dir: &Path, paths: &BTreeSet<String>) -> BTreeSet<String> {
    let rules = IgnoreRules::load(dir).unwrap();
    paths
        .iter()
        .filter(|path| rules.is_ignored(path, false).unwrap())
        .cloned()
        .collect()
}

#[test]
fn nested_files_negation_and_exclude_are_gits() {
    let dir = work_tree(&[
        (
            ".gitignore",
            "\u{feff}*.secret\r\n!ok.secret\r\nscratch/\n!scratch/keep.rs\n/rooted.txt\n",
        ),
        ("sub/.gitignore", "gen/\n!*.secret\n"),
        (".git/info/exclude", "excluded\n*.both\n"),
        ("other/.gitignore", "!*.both\n"),
    ]);
    let rules = IgnoreRules::load(dir.path()).unwrap();
    for (path, ignored) in [
        ("x.secret", true),
        ("ok.secret", false),
        ("sub/x.secret", false),
        ("scratch/keep.rs", true),
        ("rooted.txt", true),
        ("sub/rooted.txt", false),
        ("sub/gen/out.rs", true),
        ("gen/out.rs", false),
        ("excluded", true),
        ("other/a.both", false),
        ("a.both", true),
    ] {
        assert_eq!(rules.is_ignored(path, false).unwrap(), ignored, "{path}");
    }
}

#[test]
fn case_and_a_linked_exclude_are_as_git_has_them() {
    let dir = work_tree(&[
        (".gitignore", "Secret.txt\nDir/*.key\n"),
        (".git/elsewhere", "mine\n"),
    ]);
    fs::create_dir_all(dir.path().join(".git/info")).unwrap();
    let exclude = dir.path().join(".git/info/exclude");
    let _ = fs::remove_file(&exclude);
    std::os::unix::fs::symlink("../elsewhere", &exclude).unwrap();
    let paths = ["secret.txt", "Secret.txt", "dir/a.KEY", "mine", "Mine"]
        .map(str::to_owned)
        .into();
    for fold in ["true", "false"] {
        git(dir.path(), &["config", "core.ignoreCase", fold]);
        let ours = ignored_by_us(dir.path(), &paths);
        assert_eq!(ours, ignored_by_git(dir.path(), &paths), "{fold}");
        assert_eq!(ours.len(), if fold == "true" { 5 } else { 2 });
    }
}

#[test]
fn a_project_below_the_work_trees_top_obeys_the_files_above() {
    let dir = work_tree(&[(".gitignore", "/app/private\n"), ("app/x", "")]);
    let rules = IgnoreRules::load(&dir.path().join("app")).unwrap();
    assert!(rules.is_ignored("private/key", false).unwrap());
    assert!(!rules.is_ignored("x", false).unwrap());
}

#[test]
fn a_pattern_for_directories_holds_for_a_directory_alone() {
    let dir = work_tree(&[(".gitignore", "target/\nkept/*\n!kept/this\n")]);
    let rules = IgnoreRules::load(dir.path()).unwrap();
    assert!(rules.is_ignored("target", true).unwrap());
    assert!(!rules.is_ignored("target", false).unwrap());
    assert!(!rules.is_ignored("kept", true).unwrap());
    assert!(rules.is_ignored("kept/other", true).unwrap());
}

#[test]
fn a_linked_work_tree_obeys_the_shared_exclude() {
    let dir = work_tree(&[(".git/common/info/exclude", "hidden\n")]);
    let linked = tempfile::tempdir().unwrap();
    let own = dir.path().join(".git/worktrees/linked");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("commondir"), "../../common\n").unwrap();
    fs::write(
        linked.path().join(".git"),
        format!("gitdir: {}\n", own.display()),
    )
    .unwrap();
    let rules = IgnoreRules::load(linked.path()).unwrap();
    assert!(rules.is_ignored("hidden", false).unwrap());
}

fn pattern() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[ab.]{1,2}",
        2 => Just("*".to_owned()),
        1 => Just("**".to_owned()),
        1 => Just("?".to_owned()),
        1 => Just("[ab]".to_owned()),
        1 => Just("[!a]".to_owned()),
        1 => Just("[^b]".to_owned()),
        1 => Just("[[:alpha:]]".to_owned()),
        1 => Just("[a".to_owned()),
        1 => Just("\\a".to_owned()),
        1 => Just("{a,b}".to_owned()),
        1 => Just("\\*".to_owned()),
        3 => Just("/".to_owned()),
    ];
    let tail = prop_oneof![4 => Just(""), 1 => Just("/"), 1 => Just(" "), 1 => Just("\\ "), 1 => Just("\r"), 1 => Just("/**"), 1=> Just("\\")];
    let head = prop_oneof![4 => Just(""), 1 => Just("!"), 1 => Just("/"), 1 => Just("**/"), 1 => Just("#"), 1 => Just("\\!")];
    (head, prop::collection::vec(piece, 1..5), tail)
        .prop_map(|(head, pieces, tail)| format!("{head}{}{tail}", pieces.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn random_rules_and_paths_get_gits_verdict(
        root in prop::collection::vec(pattern(), 0..5),
        nested in prop::collection::vec(pattern(), 0..4),
        exclude in prop::collection::vec(pattern(), 0..3),
        paths in prop::collection::btree_set("[ab*]{1,2}(/[ab.]?[ab ]){0,3}", 1..60),
    ) {
        let mut paths = paths; paths.remove("a"); // a directory here; policy rejects those
        let dir = work_tree(&[
            (".gitignore", &root.join("\n")), ("a/.gitignore", &nested.join("\n")), (".git/info/exclude", &exclude.join("\n")),
        ]);
        prop_assert_eq!(ignored_by_us(dir.path(), &paths), ignored_by_git(dir.path(), &paths), "{:?} {:?} {:?}", root, nested, exclude);
    }
}

#[test]
fn a_directory_is_examined_once_however_deep_it_is() {
    let dir = work_tree(&[(".gitignore", "*.o\n"), ("d/.gitignore", "!x.o\n/no\n")]);
    let rules = IgnoreRules::load(dir.path()).unwrap();
    let deep = "d/".repeat(1_500);
    // This took hours when all parent directories were examined for every path.
    for end in (1..deep.len()).step_by(2) {
        assert!(!rules.is_ignored(&deep[..end], true).unwrap());
    }
    assert!(!rules.is_ignored(&format!("{deep}x.o"), false).unwrap());
    assert!(rules.is_ignored(&format!("{deep}y.o"), false).unwrap());
    assert!(rules.is_ignored("d/no/x.o", false).unwrap());
    // The root, the 1,500 nested directories, and `d/no`.
    assert_eq!(rules.directories.borrow().len(), 1_502);
}
