//! Tests of files that the build runs, and of data that tests read.

use super::change;
use crate::record::gate::GateChange;
use crate::run::verdict::changed::Changed;
use crate::run::verdict::data;

#[test]
fn a_script_that_the_build_runs_is_the_gate_if_it_runs_tests() {
    let (before, after) = ("pytest tests\n", "pytest tests || true\n");
    for (path, script, expected) in [
        ("go.sh", "sh go.sh\n", GateChange::Changed),
        ("go.sh", "true\n", GateChange::None),
        ("check.sh", "true\n", GateChange::Changed),
        ("go.py", "true\n", GateChange::None),
        ("go.py", "python3 go.py\n", GateChange::Changed),
    ] {
        let changes = [change(path, before, after)];
        assert_eq!(
            Changed::of(&changes, script).gate_change(),
            expected,
            "{path}"
        );
    }
    let changes = [change("greet.sh", "echo hi\n", "echo hello\n")];
    assert_eq!(
        Changed::of(&changes, "true\n").gate_change(),
        GateChange::None
    );
    // The file may be a program or a check.
    let changed = Changed::of(&changes, "./greet.sh\n");
    assert!(changed.is_unclear() && changed.has_code() && !changed.has_gate());
    let tree = changed.tree_with_check("Greet.").unwrap();
    assert_eq!(tree[0], ("greet.sh", changes[0].before.clone()));
    assert!(changed.tree_with_check("Change greet.sh.").is_none());
    // The examples in a document may be checks too.
    let changes = [change("README.md", ">>> a()\n1\n", ">>> a()\n2\n")];
    for (script, is_run) in [("python3 -m doctest README.md\n", true), ("true\n", false)] {
        let changed = Changed::of(&changes, script);
        assert_eq!(changed.is_unclear(), is_run);
        assert_eq!(changed.tree_with_check("").is_some(), is_run);
        assert!(!changed.has_code() && !changed.has_gate());
    }
}

#[test]
fn data_that_only_tests_name_is_the_gate() {
    let root = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| duct::cmd("git", words).dir(root.path()).run().unwrap();
    for (path, text) in [
        (
            "tests/test_a.py",
            "open('data/cases.json'); open('both.csv')\n",
        ),
        ("a.py", "open('both.csv'); open('codes.txt')\n"),
        ("check.py", "open('expected.txt')\n"),
    ] {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    run(&["init", "-q"]);
    run(&["add", "--all"]);
    for (path, expected) in [
        ("data/cases.json", Some(false)),
        ("expected.txt", Some(false)),
        ("direct.out", Some(false)),
        ("both.csv", Some(true)),
        ("codes.txt", None),
        ("my_cases.json", None),
        ("requirements.txt", None),
        ("tests/cases.json", None),
    ] {
        let changes = [change(path, "1\n", "2\n"), change("a.py", "", "a\n")];
        let commands = "python3 check.py | diff - direct.out && pip install -r requirements.txt\n";
        let data = data::named(root.path(), &changes, commands);
        let expected: Vec<_> = expected
            .map(|code| (path.to_owned(), code))
            .into_iter()
            .collect();
        assert_eq!(data, expected, "{path}");
        let changed = Changed::of(&changes, commands).with_data(&data);
        let is_gate = expected
            .first()
            .map_or(path.starts_with("tests"), |(_, by_code)| !by_code);
        assert_eq!(changed.has_gate(), is_gate, "{path}");
        assert_eq!(
            changed.is_unclear(),
            data.iter().any(|(_, by_code)| *by_code)
        );
    }
}
