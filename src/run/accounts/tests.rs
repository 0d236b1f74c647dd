//! Tests of reading and writing the accounts file; no error message may show a value.

use super::*;
use crate::sys::error::Problem as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use proptest::prelude::*;

fn key(text: &str) -> ApiKey {
    ApiKey::parse(text.as_bytes()).unwrap()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn names(accounts: &Accounts) -> (Option<&str>, Vec<&str>) {
    let active = accounts.active().map(|account| &*account.name);
    (active, accounts.names().collect())
}

/// Returns a home directory with this accounts file, which other users cannot access.
fn home(json: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(FILE);
    fs::write(&path, json).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    home
}

#[test]
fn without_a_file_nobody_is_signed_in_and_nothing_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join(".agent");
    let accounts = Accounts::load(&home).unwrap();
    assert_eq!(names(&accounts), (None, vec![]));
    assert!(!home.exists());
}

#[test]
fn stored_accounts_are_private_and_can_be_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("a/.agent");
    let mut accounts = Accounts::load(&home).unwrap();
    accounts.store(DEFAULT, USUAL, key("sk-ant-one")).unwrap();
    accounts.save().unwrap();
    let path = home.join(FILE);
    assert_eq!((mode(&home), mode(&path)), (0o700, 0o600));
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\n  \"version\": 1,\n  \"active\": \"default\",\n  \"accounts\": [\n    {\n      \"name\": \"default\",\n      \
         \"api_key\": \"sk-ant-one\"\n    }\n  ]\n}\n"
    );
    assert_eq!(Accounts::load(&home).unwrap(), accounts);
    assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
}

#[test]
fn accounts_are_stored_switched_and_removed() {
    let mut accounts = Accounts::default();
    for (name, secret) in [("a", "one"), ("b", "two"), ("c", "three"), ("b", "four")] {
        accounts.store(name, USUAL, key(secret)).unwrap();
    }
    assert_eq!(names(&accounts), (Some("b"), vec!["a", "b", "c"]));
    let keys: Vec<&str> = accounts.keys().map(ApiKey::expose).collect();
    assert_eq!(keys, ["one", "four", "three"]);
    accounts.switch("c").unwrap();
    assert_eq!(accounts.remove_active().as_deref(), Some("c"));
    assert_eq!(names(&accounts), (Some("a"), vec!["a", "b"]));
    assert_eq!(accounts.remove_active().as_deref(), Some("a"));
    assert_eq!(accounts.remove_active().as_deref(), Some("b"));
    assert_eq!(accounts.remove_active(), None);
    assert_eq!(names(&accounts), (None, vec![]));
    assert!(accounts.json()["active"].is_null());
}

#[test]
fn a_name_is_plain_and_known_and_never_shown_where_it_is_not() {
    let long = "n".repeat(65);
    for name in ["", "a b", "ä", "a/b", "sk-ant-sekret", &long] {
        let mut accounts = Accounts::default();
        for problem in [accounts.store(name, USUAL, key("k")), accounts.switch(name)] {
            let problem = problem.unwrap_err().to_string();
            assert!(problem.starts_with("an account's name is made of up to 64 letters"));
            assert!(!problem.contains("sekret"));
        }
    }
    let mut accounts = Accounts::default();
    let unknown = |accounts: &mut Accounts| accounts.switch("sekret").unwrap_err().to_string();
    assert_eq!(
        unknown(&mut accounts),
        "there is no account of that name; there are none"
    );
    for name in ["a", "Z.9_-"] {
        accounts.store(name, USUAL, key("k")).unwrap();
    }
    assert_eq!(
        unknown(&mut accounts),
        "there is no account of that name; known: a, Z.9_-"
    );
}

#[test]
fn a_vendors_models_have_its_active_account_or_its_only_one() {
    let mut accounts = Accounts::default();
    let counting = |accounts: &Accounts, provider| {
        let account = accounts.of(provider);
        account.map(|account| account.map(|account| account.name.clone()))
    };
    let named = |name: &str| Ok(Some(name.to_owned()));
    assert_eq!(counting(&accounts, USUAL), Ok(None));
    for (name, provider) in [("a", USUAL), ("g", Provider::Gemini), ("b", USUAL)] {
        accounts.store(name, provider, key(name)).unwrap();
    }
    assert_eq!(counting(&accounts, USUAL), named("b"));
    assert_eq!(counting(&accounts, Provider::Gemini), named("g"));
    assert_eq!(counting(&accounts, Provider::OpenAi), Ok(None));
    accounts.switch("g").unwrap();
    let several = Err(vec!["a".to_owned(), "b".to_owned()]);
    assert_eq!(counting(&accounts, USUAL), several);
    let json = accounts.json().to_string();
    let read = parse(json.as_bytes()).unwrap();
    assert_eq!(counting(&read, Provider::Gemini), named("g"));
    assert_eq!(json.matches("provider").count(), 1, "{json}");
}

#[test]
fn unknown_fields_are_preserved() {
    let json = r#"{"theme": [1], "version": 1, "accounts": [
        {"note": {"a": null}, "name": "old", "api_key": "one"},
        {"name": "chain", "api_key_command": ["pass", "show", "x"], "since": 2026}], "active": "chain"}"#;
    let home = home(json);
    let mut accounts = Accounts::load(home.path()).unwrap();
    assert_eq!(accounts.warning, None);
    let command = ["pass", "show", "x"].map(str::to_owned).to_vec();
    let active = accounts.active().unwrap();
    assert_eq!(active.credential, Credential::Command(command));
    accounts.store("old", USUAL, key("new")).unwrap();
    accounts.save().unwrap();
    let json = fs::read_to_string(home.path().join(FILE)).unwrap();
    let content: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        content,
        json!({
            "version": 1, "active": "old", "theme": [1], "accounts": [
                {"name": "old", "api_key": "new", "note": {"a": null}},
                {"name": "chain", "api_key_command": ["pass", "show", "x"], "since": 2026}
            ]
        })
    );
}

#[test]
fn without_a_name_the_first_account_counts() {
    for active in ["", "\"active\": null, "] {
        let json =
            format!(r#"{{"version": 1, {active}"accounts": [{{"name": "a", "api_key": "k"}}]}}"#);
        let accounts = parse(json.as_bytes()).unwrap();
        assert_eq!(names(&accounts), (Some("a"), vec!["a"]));
    }
}

/// Loads a file with a mistake, and checks that the error names it without a value.
fn assert_mistaken(json: &str, expected: &str) {
    let home = home(json);
    let problem = Accounts::load(home.path()).unwrap_err();
    let path = home.path().join(FILE);
    let told = problem.to_string();
    let expected = format!("`{}`, {expected}", path.display());
    assert!(told.starts_with(&expected), "{json}: {told}");
    let is_shown = told.contains("sekret") || told.contains("se kret");
    assert!(!is_shown, "{told}");
    assert!(problem.hint().unwrap().contains("code-commit chat login"));
    // The file is unchanged.
    assert_eq!(fs::read_to_string(path).unwrap(), json);
}

#[test]
fn a_mistake_is_reported_with_its_position_and_without_a_value() {
    for (json, expected) in [
        ("", "line 1, column 1: the file is empty"),
        ("\"sekret\"", "line 1, column 1: an object is expected here"),
        ("{\n\"version\": 1,\n}", "line 3, column 1: trailing comma"),
        ("{}", "line 1, column 1: `version` is missing: it is 1"),
        (
            "{\"version\": 2, \"accounts\": []}",
            "line 1, column 13: `version` must be 1",
        ),
        (
            "{\"version\": \"1\", \"accounts\": []}",
            "line 1, column 13: `version` must be 1",
        ),
        (
            "{\"version\": 1}",
            "line 1, column 1: `accounts` is missing: a list",
        ),
        (
            "{\"version\": 1, \"accounts\": \"sekret\"}",
            "line 1, column 28: `accounts` must be a list",
        ),
        (
            "{\"version\": 1, \"accounts\": [\"sekret\"]}",
            "line 1, column 29: an object is expected here",
        ),
        (
            "{\"version\": 1, \"accounts\": [], \"active\": \"sekret\"}",
            "line 1, column 42: `active` names no account of the list",
        ),
        (
            "{\"version\": 1, \"accounts\": [], \"active\": {\"sekret\": 1}}",
            "line 1, column 42: `active` must be the name of an account, in quotes",
        ),
        (
            "{\"version\": 1, \"version\": 1, \"accounts\": []}",
            "line 1, column 27: `version` is there twice",
        ),
    ] {
        assert_mistaken(json, expected);
    }
    let binary = parse(b"{\n\xff").unwrap_err();
    assert_eq!(binary.to_string(), "line 2, column 1: this is not UTF-8");
}

#[test]
fn a_mistake_in_an_account_is_reported_likewise() {
    let either = "2: an account has either an `api_key` or an `api_key_command`";
    let command = "35: `api_key_command` must be a program and its arguments";
    for (fields, expected) in [
        (r#""name": "a""#, either),
        (
            r#""name": "a", "api_key": "sekret", "api_key_command": ["sekret"]"#,
            either,
        ),
        (r#""api_key": "sekret""#, "2: an account needs a `name`"),
        (
            r#""name": 7, "api_key": "sekret""#,
            "11: `name` must be a string, in quotes",
        ),
        (
            r#""name": "se kret", "api_key": "sekret""#,
            "11: `name` is none: an account's name is made of",
        ),
        (
            r#""name": "a", "api_key": ["sekret"]"#,
            "27: `api_key` must be a string",
        ),
        (
            r#""name": "a", "provider": "sekret", "api_key": "sekret""#,
            "28: `provider` must be `anthropic`, `gemini`, `openai` or `azure`",
        ),
        (
            r#""name": "a", "api_key": " ""#,
            "27: `api_key` is empty, which no key has",
        ),
        (
            r#""name": "a", "api_key": "sekret\nsekret""#,
            "27: `api_key` has more than one line, which no key has",
        ),
        (r#""name": "a", "api_key_command": "sekret""#, command),
        (r#""name": "a", "api_key_command": []"#, command),
        (r#""name": "a", "api_key_command": ["", "sekret"]"#, command),
        (
            r#""name": "a", "api_key_command": ["./own.sh"]"#,
            "35: `api_key_command` must begin with a program's name, or its absolute path",
        ),
        (
            r#""name": "a", "api_key_command": ["bin/sekret"]"#,
            "35: `api_key_command` must begin with",
        ),
        (
            r#""name": "a", "api_key": "sekret"}, {"name": "a", "api_key": "sekret""#,
            "38: there is an account `a` already",
        ),
    ] {
        let json = format!("{{\"version\": 1, \"accounts\": [\n {{{fields}}}]}}");
        assert_mistaken(&json, &format!("line 2, column {expected}"));
    }
}

#[test]
fn accounts_that_are_not_a_regular_file_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join(FILE)).unwrap();
    let problem = Accounts::load(directory.path()).unwrap_err();
    assert!(matches!(problem, HomeFileProblem::Unreadable { .. }));
    assert!(problem.hint().unwrap().starts_with("make `/"));
    let huge = home(&" ".repeat(2 << 20));
    let problem = Accounts::load(huge.path()).unwrap_err();
    assert!(problem.to_string().ends_with("larger than 1 MiB"));
    assert!(
        problem
            .hint()
            .unwrap()
            .ends_with("auth.json` smaller, or remove it")
    );
}

#[test]
fn a_file_that_others_can_read_is_closed_to_them() {
    let home = home(r#"{"version": 1, "accounts": []}"#);
    let path = home.path().join(FILE);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let accounts = Accounts::load(home.path()).unwrap();
    let told = format!("others could read `{}`", path.display());
    assert!(accounts.warning.unwrap().starts_with(&told));
    assert_eq!(mode(&path), 0o600);
    assert_eq!(Accounts::load(home.path()).unwrap().warning, None);
}

#[test]
fn a_home_that_was_open_is_closed_when_a_key_comes_into_it() {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut accounts = Accounts::load(home.path()).unwrap();
    assert_eq!(mode(home.path()), 0o755);
    accounts.store("a", USUAL, key("k")).unwrap();
    accounts.save().unwrap();
    assert_eq!(mode(home.path()), 0o700);
}

#[test]
fn a_file_that_cannot_be_written_stays_as_it_was() {
    let outside = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    // A file is in the place of the home directory.
    let mut accounts = Accounts::load(&file).unwrap();
    accounts.store("a", USUAL, key("sk-sekret")).unwrap();
    let problem = accounts.save().unwrap_err().to_string();
    assert!(problem.starts_with("cannot write `/"), "{problem}");
    assert!(!problem.contains("sekret"));
    // A link is followed for reading, and replaced rather than written through.
    let target = outside.path().join("elsewhere");
    fs::write(&target, "{\"version\": 1, \"accounts\": []}").unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    let path = home.path().join(FILE);
    symlink(&target, &path).unwrap();
    let mut accounts = Accounts::load(home.path()).unwrap();
    accounts.store("a", USUAL, key("sk-sekret")).unwrap();
    accounts.save().unwrap();
    assert!(path.symlink_metadata().unwrap().is_file());
    assert!(!fs::read_to_string(target).unwrap().contains("sekret"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_operations_leave_a_loadable_file_with_one_active_account(
        done in prop::collection::vec((0..3u8, "[ab._-]{1,2}", "[!-~]{1,9}"), 0..12)
    ) {
        let home = tempfile::tempdir().unwrap();
        for (what, name, secret) in done {
            let mut accounts = Accounts::load(home.path()).unwrap();
            match what {
                0 => drop(accounts.remove_active()),
                1 => drop(accounts.switch(&name)),
                _ => accounts.store(&name, USUAL, key(&secret)).unwrap(),
            }
            accounts.save().unwrap();
            let loaded = Accounts::load(home.path()).unwrap();
            prop_assert_eq!(&loaded, &accounts);
            prop_assert_eq!(loaded.active().is_some(), loaded.names().next().is_some());
        }
    }
}
