//! Tests of settings from a file and from variables, and of errors, which show no value.

use super::*;
use crate::sys::error::Problem as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

const COMMANDS: &str = "`auditCommands` must be a list of commands, each a string like `\"cargo test\"` or a list of \
                        its words";

fn mistake(json: &str) -> String {
    Settings::parse(json.as_bytes()).unwrap_err().to_string()
}

#[test]
fn the_default_file_stands_for_the_defaults() {
    let usual = Settings {
        api_url: Some("http://localhost:8005/v1".to_owned()),
        api_key: None,
        model: "devstral-small-2507".to_owned(),
        max_context_tokens: 131_072,
        command_timeout: Duration::from_secs(30),
        max_retries: 3,
        max_retries_automated: 10,
        max_loops: 1000,
        session_retention_days: 30,
        audit_commands: Vec::new(),
    };
    assert_eq!(Settings::parse(DEFAULT.as_bytes()).as_ref(), Ok(&usual));
    assert_eq!(Settings::parse(b"{}").as_ref(), Ok(&usual));
    assert_eq!(Settings::usual(), usual);
}

#[test]
fn every_setting_of_the_file_that_is_made_has_an_effect() {
    let Value::Object(settings) = serde_json::from_str(DEFAULT).unwrap() else {
        panic!("{DEFAULT}");
    };
    for name in settings.keys() {
        assert!(Settings::default().set(name, "{}").is_err(), "{name}");
    }
}

#[test]
fn a_missing_file_is_made_once_and_is_its_owners() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("config/dev-agent");
    let (settings, made) = Settings::load(&home, &Environment::default()).unwrap();
    assert_eq!(settings, Settings::usual());
    let path = home.join("config.json");
    assert_eq!(made.as_ref(), Some(&path));
    assert_eq!(fs::read_to_string(&path).unwrap(), DEFAULT);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&home)), (0o600, 0o700));

    let own = r#"{"model": "mine", "mine": [1, {"x": null}]}"#;
    fs::write(&path, own).unwrap();
    let (settings, made) = Settings::load(&home, &Environment::default()).unwrap();
    assert_eq!((settings.model.as_str(), made), ("mine", None));
    assert_eq!(fs::read_to_string(&path).unwrap(), own);
}

#[test]
fn every_field_is_read() {
    let settings = Settings::parse(
            b"\xef\xbb\xbf{\"apiUrl\": \" https://host.test/v1 \", \"apiKey\": \" sekret-key \", \"model\": \"a@b c\",
            \"maxContextTokens\": 1024, \"commandTimeout\": 1, \"maxRetries\": 0, \"maxRetriesAutomated\": 1000,
            \"maxLoops\": 1, \"sessionRetentionDays\": 0,
            \"auditCommands\": [\"cargo test -- 'a b'\", [\"make\", \"check all\"]], \"theme\": \"dark\"}",
        );
    let expected = Settings {
        api_url: Some("https://host.test/v1".to_owned()),
        api_key: Some(ApiKey::parse(b"sekret-key").unwrap()),
        model: "a@b c".to_owned(),
        max_context_tokens: 1024,
        command_timeout: Duration::from_secs(1),
        max_retries: 0,
        max_retries_automated: 1000,
        max_loops: 1,
        session_retention_days: 0,
        audit_commands: vec![
            ["cargo", "test", "--", "a b"].map(str::to_owned).to_vec(),
            ["make", "check all"].map(str::to_owned).to_vec(),
        ],
    };
    assert!(!format!("{settings:?}").contains("sekret"));
    assert_eq!(settings, Ok(expected));
    let by_table = Settings::parse(br#"{"apiUrl": " "}"#).unwrap();
    assert_eq!(by_table.api_url, None);
}

#[test]
fn a_mistake_is_reported_with_its_position_and_what_is_expected() {
    let seconds = "`commandTimeout` must be a whole number of seconds, from 1 to 86400";
    for (json, expected) in [
            ("", "line 1, column 1: the file is empty".to_owned()),
            ("[]", "line 1, column 1: an object is expected here, in `{` and `}`".to_owned()),
            ("{\n  \"maxLoops\": }", "line 2, column 15: expected value".to_owned()),
            ("{\n  \"model\": \"a\",\n}", "line 3, column 1: trailing comma".to_owned()),
            (r#"{"commandTimeout": 0}"#, format!("line 1, column 20: {seconds}")),
            (r#"{"commandTimeout": -1}"#, format!("line 1, column 20: {seconds}")),
            ("{\n \"commandTimeout\":\n  1.5}", format!("line 3, column 3: {seconds}")),
            (r#"{"commandTimeout": "30"}"#, format!("line 1, column 20: {seconds}")),
            (r#"{"commandTimeout": null}"#, format!("line 1, column 20: {seconds}")),
            (r#"{"auditCommands": "cargo test"}"#, format!("line 1, column 19: {COMMANDS}")),
            ("{\n  \"auditCommands\": [3]}", format!("line 2, column 20: {COMMANDS}")),
            (r#"{"auditCommands": ["cargo 'test"]}"#, format!("line 1, column 19: {COMMANDS}")),
            (r#"{"auditCommands": [" "]}"#, format!("line 1, column 19: {COMMANDS}")),
            (r#"{"auditCommands": [["make", 1]]}"#, format!("line 1, column 19: {COMMANDS}")),
            (r#"{"auditCommands": [["make", "a\nb"]]}"#, format!("line 1, column 19: {COMMANDS}")),
            (r#"{"commandTimeout": 86401}"#, format!("line 1, column 20: {seconds}")),
            (
                r#"{"maxContextTokens": 1023}"#,
                "line 1, column 22: `maxContextTokens` must be a whole number of tokens, from 1024 to 1000000000"
                    .to_owned(),
            ),
            (
                r#"{"maxLoops": 0}"#,
                "line 1, column 14: `maxLoops` must be a whole number of calls, from 1 to 65535".to_owned(),
            ),
            (
                r#"{"maxRetries": 99999999999999999999}"#,
                "line 1, column 16: `maxRetries` must be a whole number of retries, from 0 to 1000".to_owned(),
            ),
            (r#"{"model": 7}"#, "line 1, column 11: `model` must be a string, in quotes".to_owned()),
            (
                r#"{"model": " "}"#,
                "line 1, column 11: `model` must be a model's name, of 200 bytes at the most".to_owned(),
            ),
        ] {
            assert_eq!(mistake(json), expected, "{json}");
        }
    let twice = mistake(r#"{"model": "a", "model": "b"}"#);
    assert!(twice.ends_with("`model` is there twice"), "{twice}");
    assert!(mistake(r#"{"apiUrl": "http://host.test"}"#).contains("must be https"));
    for url in ["ftp://host.test", "localhost:80", "https://host.test/?x=1"] {
        let mistake = mistake(&format!(r#"{{"apiUrl": "{url}"}}"#));
        assert!(
            mistake.contains("`apiUrl` must be the plain URL"),
            "{mistake}"
        );
    }
}

#[test]
fn no_mistake_shows_a_key() {
    for json in [
        r#"{"apiKey": "sekret key"}"#,
        r#"{"apiKey": "sekret\nkey"}"#,
        r#"{"apiKey": ["sekret"]}"#,
        r#"{"apiKey": "sekret}"#,
        r#"{"apiKey": sekret}"#,
        r#"{"apiUrl": "https://user:sekret@host.test"}"#,
        r#"{"apiUrl": "https://host.test/?key=sekret"}"#,
        r#"{"maxLoops": "sekret"}"#,
        r#""sekret""#,
    ] {
        let mistake = mistake(json);
        assert!(!mistake.contains("sekret"), "{mistake}");
        assert!(mistake.starts_with("line 1, column "), "{mistake}");
    }
}

#[test]
fn variables_win_over_the_file_and_their_mistakes_name_them() {
    let dir = tempfile::tempdir().unwrap();
    let load = |variables: &[(&str, &str)]| Settings::load(dir.path(), &Environment::of(variables));
    let (settings, _) = load(&[
        ("DEV_AGENT_API_URL", "https://host.test"),
        ("DEV_AGENT_API_KEY", "sekret-key"),
        ("DEV_AGENT_MODEL", "other"),
    ])
    .unwrap();
    assert_eq!(settings.api_url.as_deref(), Some("https://host.test"));
    assert_eq!(settings.api_key.unwrap().expose(), "sekret-key");
    assert_eq!(settings.model, "other");
    for (variable, value) in [
        ("DEV_AGENT_API_URL", "http://sekret.test"),
        ("DEV_AGENT_API_KEY", "two sekrets"),
        ("DEV_AGENT_MODEL", "sekret\u{7}"),
    ] {
        let problem = load(&[(variable, value)]).unwrap_err();
        assert!(problem.to_string().starts_with(&format!("`{variable}` ")));
        assert!(!problem.to_string().contains("sekret"), "{problem}");
        assert!(problem.hint().unwrap().contains(variable));
    }
}

#[test]
fn unreadable_settings_are_an_error_with_their_path() {
    let dir = tempfile::tempdir().unwrap();
    let load = |home: &Path| Settings::load(home, &Environment::default()).unwrap_err();
    let path = dir.path().join(FILE);
    fs::create_dir(&path).unwrap();
    assert!(
        matches!(load(dir.path()), SettingsProblem::File(HomeFileProblem::Unreadable { path: at, .. }) if at == path)
    );
    fs::remove_dir(&path).unwrap();
    symlink("nowhere", &path).unwrap();
    assert!(matches!(
        load(dir.path()),
        SettingsProblem::File(HomeFileProblem::NotMade { .. })
    ));
    fs::remove_file(&path).unwrap();
    fs::write(&path, "{\n\"model\": \"\u{e9}\",\n\"maxLoops\": 0}").unwrap();
    let problem = load(dir.path());
    let expected = format!(
        "`{}`, line 3, column 13: `maxLoops` must be",
        path.display()
    );
    assert!(problem.to_string().starts_with(&expected), "{problem}");
    fs::write(&path, b"{\n \xff}").unwrap();
    assert!(
        load(dir.path())
            .to_string()
            .ends_with("line 2, column 2: this is not UTF-8")
    );
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_settings_or_a_mistake(content in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64)) {
        let _ = Settings::parse(&content);
    }
}
