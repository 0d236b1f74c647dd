//! Tests of patterns, and of the paths and values that they protect.

use super::*;

#[test]
fn a_pattern_covers_what_a_line_of_gitignore_would() {
    for (pattern, covered, others) in [
        (
            "Makefile",
            &["Makefile", "a/makefile"][..],
            &["Makefile.am"][..],
        ),
        ("/Makefile", &["Makefile"], &["a/Makefile"]),
        (
            "tests",
            &["tests/a.rs", "Tests/b/c.rs", "tests"],
            &["tests.rs"],
        ),
        ("/tests/", &["tests/a.rs"], &["a/tests/b.rs"]),
        ("*.snap", &["a.snap", "b/c.snap"], &["a.snap.new"]),
        ("ci/**/*.sh", &["ci/a.sh", "ci/b/c.sh"], &["ci/a.py"]),
    ] {
        let protection = Protection::new(&[pattern.to_owned()]);
        for path in covered {
            assert!(protection.covers(path), "{pattern} {path}");
        }
        for path in others {
            assert!(!protection.covers(path), "{pattern} {path}");
        }
    }
}

#[test]
fn a_value_is_compared_by_its_meaning() {
    let protection = Protection::new(&["package.json#/scripts".to_owned()]);
    let before = r#"{"scripts": {"test": "jest", "build": "tsc"}, "version": "1"}"#;
    for (after, changed) in [
        (
            r#"{"version":"2","scripts":{"build":"tsc","test":"jest"}}"#,
            false,
        ),
        (r#"{"scripts": {"test": "true", "build": "tsc"}}"#, true),
        (r#"{"version": "1"}"#, true),
        ("", true),
        ("{", true),
    ] {
        let found = protection.changed("package.json", before, after);
        assert_eq!(found, changed.then_some("/scripts"), "{after}");
        assert_eq!(protection.changed("a/package.json", before, after), None);
    }
    assert_eq!(protection.changed("package.json", "{}", "{}"), None);
    assert!(!protection.covers("package.json"));
}

#[test]
fn nothing_is_exempted() {
    for pattern in [
        "",
        " ",
        "!a",
        "#a",
        "a\nb",
        "[",
        "a[b",
        "package.json#scripts",
    ] {
        assert!(check_pattern(pattern).is_err(), "{pattern:?}");
    }
    // The file that contains a protected value must lie below the root, and be spelled as replies spell it.
    for file in [
        "/a.json",
        "./a.json",
        "../a.json",
        "*/a.json",
        "a//b.json",
        "",
    ] {
        assert!(check_pattern(&format!("{file}#/x")).is_err(), "{file:?}");
    }
    assert!(check_pattern("sub/a.json#/x").is_ok());
}

#[test]
fn a_byte_order_mark_hides_no_value() {
    let protection = Protection::new(&["a.json#/x".to_owned()]);
    let [one, other] = ["{\"x\": 1}", "{\"x\": 2}"].map(|json| format!("\u{feff}{json}"));
    assert_eq!(protection.changed("a.json", &one, &other), Some("/x"));
    assert_eq!(protection.changed("a.json", &one, &one), None);
}
