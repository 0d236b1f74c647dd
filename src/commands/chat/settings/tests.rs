//! Tests of reading the settings file, and of the messages about mistakes in it.

use super::*;
use crate::sys::error::Problem as _;

#[test]
fn a_file_sets_what_it_names_and_no_file_nothing() {
    let of = |compact_threshold, mouse| ChatSettings {
        compact_threshold,
        ui: UiSettings {
            mouse,
            notify: true,
        },
    };
    for (json, expected) in [
        ("{}", of(80, true)),
        ("\u{feff}{\"compactThreshold\": 60}", of(60, true)),
        (r#"{"compactThreshold": 90, "ui": {}}"#, of(90, true)),
        (r#"{"ui": {"mouse": false}}"#, of(80, false)),
        (DEFAULTS, of(80, true)),
    ] {
        let parsed = home_file::parse_json::<ChatSettings>(json.as_bytes());
        assert_eq!(parsed, Ok(expected), "{json}");
    }
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(ChatSettings::load(dir.path()).unwrap(), of(80, true));
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_mistake_is_reported_with_its_position_and_what_is_expected() {
    let percent = "`compactThreshold` must be a whole number of per cent, from 60 to 90";
    for (json, (line, reason)) in [
        ("", (1, "the file is empty".to_owned())),
        (
            "[]",
            (1, "an object is expected here, in `{` and `}`".to_owned()),
        ),
        ("{\n \"ui\": }", (2, "expected value".to_owned())),
        (r#"{"compactThreshold": 59}"#, (1, percent.to_owned())),
        ("{\"compactThreshold\":\n 91}", (2, percent.to_owned())),
        (r#"{"compactThreshold": 0.8}"#, (1, percent.to_owned())),
        (r#"{"compactThreshold": "80"}"#, (1, percent.to_owned())),
        (r#"{"compactThreshold": null}"#, (1, percent.to_owned())),
        (
            r#"{"ui": {"mouse": "no"}}"#,
            (
                1,
                "invalid type: string \"no\", expected a boolean".to_owned(),
            ),
        ),
        (
            r#"{"compactTreshold": 70}"#,
            (
                1,
                "unknown field `compactTreshold`, expected `compactThreshold` or `ui`".to_owned(),
            ),
        ),
        (
            r#"{"ui": {"mouses": true}}"#,
            (
                1,
                "unknown field `mouses`, expected `mouse` or `notify`".to_owned(),
            ),
        ),
        (
            r#"{"ui": {}, "ui": {}}"#,
            (1, "duplicate field `ui`".to_owned()),
        ),
    ] {
        let mistake = home_file::parse_json::<ChatSettings>(json.as_bytes()).unwrap_err();
        assert_eq!((mistake.line, mistake.reason), (line, reason), "{json}");
    }
}

#[test]
fn the_file_is_named_and_so_is_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    std::fs::write(&path, "{\"compactThreshold\": 95}").unwrap();
    let problem = ChatSettings::load(dir.path()).unwrap_err();
    assert_eq!(
        problem.to_string(),
        format!(
            "`{}`, line 1, column 24: `compactThreshold` must be a whole number of per cent, from 60 to 90",
            path.display()
        )
    );
    assert_eq!(
        problem.hint().unwrap(),
        "fix it there, or remove the file: the defaults count then"
    );
}
