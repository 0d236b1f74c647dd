//! Tests of reading, checking and saving `permissions.json`.

use crate::sys::error::Problem as _;
use std::os::unix::fs::symlink;

use super::*;

use serde_json::{Value, json};

use PermissionAction::{Always, Ask, Never};

fn project(content: Option<&str>) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    if let Some(content) = content {
        fs::create_dir(dir.path().join(AGENT_FOLDER)).unwrap();
        put(&dir, content);
    }
    dir
}

fn put(dir: &tempfile::TempDir, content: &str) {
    atomic_file::replace(&dir.path().join(FILE), |file| {
        file.write_all(content.as_bytes())
    })
    .unwrap();
}

fn on_disk(dir: &tempfile::TempDir) -> String {
    String::from_utf8(read(dir.path()).unwrap().unwrap()).unwrap()
}

/// Loads the permissions of the project at `root`, with the user's home inside it.
fn load(root: &Path) -> Result<PermissionFile, PermissionsProblem> {
    let trusted = TrustedFiles::load(&root.join("home"), root).unwrap();
    PermissionFile::load(root, trusted)
}

/// Loads the permissions for a user who trusts the file.
fn load_trusted(root: &Path) -> PermissionFile {
    let mut file = load(root).unwrap();
    file.trust(&[]).unwrap();
    file
}

fn tool(name: &str, action: PermissionAction) -> Choice {
    Choice::Tool(name.to_owned(), action)
}

fn now() -> DateTime<FixedOffset> {
    DateTime::parse_from_rfc3339("2026-11-21T20:15:03.250+01:00").unwrap()
}

#[test]
fn without_a_file_the_defaults_hold_and_are_saved_with_the_first_choice() {
    let dir = project(None);
    let mut file = load(dir.path()).unwrap();
    for (tool, action) in [
        ("read_file", Always),
        ("list_files", Always),
        ("write_file", Ask),
        ("edit_file", Ask),
        ("execute_command", Ask),
        ("search_project", Ask),
        ("delete_file", Ask),
    ] {
        assert_eq!(file.action(tool), action, "{tool}");
    }
    assert!(!dir.path().join(AGENT_FOLDER).exists());
    file.remember(&tool("edit_file", Always), now()).unwrap();
    file.remember(&tool("search_project", Never), now())
        .unwrap();
    let expected = r#"{
  "version": 1,
  "permissions": [
    {
      "tool": "read_file",
      "action": "always"
    },
    {
      "tool": "list_files",
      "action": "always"
    },
    {
      "tool": "write_file",
      "action": "ask"
    },
    {
      "tool": "edit_file",
      "action": "always"
    },
    {
      "tool": "execute_command",
      "action": "ask"
    },
    {
      "tool": "search_project",
      "action": "never"
    }
  ],
  "timestamp": "2026-11-21T19:15:03.250Z"
}
"#;
    assert_eq!(on_disk(&dir), expected);
    let again = load(dir.path()).unwrap();
    assert_eq!(again.action("edit_file"), Always);
    assert_eq!(again.action("search_project"), Never);
    // The entries keep their order in the file.
    let last = again.markdown().lines().nth(7).map(str::to_owned);
    assert_eq!(last.as_deref(), Some("| search_project | never |"));
}

#[test]
fn unlisted_tools_are_asked_about_and_unknown_fields_preserved() {
    let written = r#"{"note": {"by": "me"}, "permissions": [{"why": [1.5], "tool": "execute_command", "action": "never"},
        {"tool": "update_todos", "action": "always"}], "timestamp": "then", "version": 1, "more": null}"#;
    let dir = project(Some(written));
    let mut file = load_trusted(dir.path());
    for (tool, action) in [
        ("read_file", Ask),
        ("execute_command", Never),
        ("update_todos", Always),
    ] {
        assert_eq!(file.action(tool), action, "{tool}");
    }
    file.remember(&tool("execute_command", Always), now())
        .unwrap();
    let expected = json!({
        "version": 1,
        "permissions": [
            {"tool": "execute_command", "action": "always", "why": [1.5]},
            {"tool": "update_todos", "action": "always"},
        ],
        "timestamp": "2026-11-21T19:15:03.250Z",
        "note": {"by": "me"},
        "more": null,
    });
    assert_eq!(on_disk(&dir), format!("{expected:#}\n"));
}

fn with_entries(entries: &str) -> String {
    format!("{{\"version\": 1, \"permissions\": [\n{entries}]}}")
}

/// Asserts that a file with this content has a mistake on this line.
fn assert_mistaken(content: &str, line: usize, said: &str) {
    let dir = project(Some(content));
    let error = load(dir.path()).unwrap_err();
    let told = error.to_string();
    let path = dir.path().join(FILE);
    let place = format!("`{}`, line {line}, column ", path.display());
    assert!(
        told.starts_with(&place) && told.contains(said),
        "{content}: {told}"
    );
    assert!(!error.hint().unwrap().is_empty());
}

#[test]
fn a_mistake_is_reported_by_its_position() {
    for (content, said) in [
        ("", "the file is empty"),
        ("{", "EOF while parsing an object"),
        ("[]", "an object is expected here, in `{` and `}`"),
        ("{}", "missing field `version`"),
        (r#"{"version": 1}"#, "missing field `permissions`"),
        (
            r#"{"version": 2, "permissions": []}"#,
            "`version` must be 1",
        ),
        (
            r#"{"version": "1", "permissions": []}"#,
            "invalid type: string \"1\"",
        ),
        (
            r#"{"version": 1, "version": 1, "permissions": []}"#,
            "duplicate field `version`",
        ),
        (
            r#"{"version": 1, "permissions": [], "timestamp": 5}"#,
            "invalid type: integer `5`, expected a string",
        ),
        (
            r#"{"version": 1, "permissions": []} x"#,
            "trailing characters",
        ),
    ] {
        assert_mistaken(content, 1, said);
    }
}

#[test]
fn a_mistake_in_an_entry_is_reported_with_its_position() {
    let tools = "there is no tool `execute_comand`; known: read_file, list_files, search_project, write_file, \
                 edit_file, replace_in_files, delete_file, execute_command, read_background, list_background, \
                 kill_background, update_todos, spawn_agent";
    for (entry, said) in [
        ("5", "invalid type: integer `5`"),
        (r#"["edit_file", "ask"]"#, "invalid type: sequence"),
        (r#"{"tool": "edit_file"}"#, "missing field `action`"),
        (r#"{"action": "ask"}"#, "missing field `tool`"),
        (r#"{"tool": " ", "action": "ask"}"#, "there is no tool ``"),
        (
            r#"{"tool": [], "action": "ask"}"#,
            "invalid type: sequence, expected a string",
        ),
        (
            r#"{"tool": "edit_file", "action": "Always"}"#,
            "`action` must be `\"always\"`, `\"ask\"` or `\"never\"`",
        ),
        (r#"{"tool": "execute_comand", "action": "never"}"#, tools),
    ] {
        assert_mistaken(&with_entries(entry), 2, said);
    }
    for (rules, said) in [
        ("{}", "invalid type: map, expected a sequence"),
        (r#"[{"prefix": "x"}]"#, "missing field `action`"),
        (r#"[{"prefix": " ", "action": "ask"}]"#, "`prefix` must be"),
        (r#"[{"prefix": "'", "action": "ask"}]"#, "`prefix` must be"),
        (
            r#"[{"prefix": "@all", "action": "always"}]"#,
            "`prefix` must be",
        ),
        (r#"[{"prefix": "x", "action": "yes"}]"#, "`action` must be"),
    ] {
        let content = format!("{{\"version\": 1, \"permissions\": [],\n \"commands\": {rules}}}");
        assert_mistaken(&content, 2, said);
    }
}

#[test]
fn of_two_entries_of_a_tool_the_one_that_allows_less_counts() {
    let twice = with_entries(
        r#"{"tool": "edit_file", "action": "never"}, {"tool": "edit_file", "action": "always"}"#,
    );
    let mut file = load(project(Some(&twice)).path()).unwrap();
    assert_eq!(file.action("edit_file"), Never);
    file.holding.set(&tool("edit_file", Always));
    assert_eq!(file.action("edit_file"), Always);
}

#[test]
fn non_regular_file_is_neither_read_nor_written() {
    let elsewhere = project(Some(r#"{"version": 1, "permissions": []}"#));
    let linked = project(None);
    symlink(
        elsewhere.path().join(AGENT_FOLDER),
        linked.path().join(AGENT_FOLDER),
    )
    .unwrap();
    let link = project(Some("{}"));
    fs::remove_file(link.path().join(FILE)).unwrap();
    symlink(elsewhere.path().join(FILE), link.path().join(FILE)).unwrap();
    let directory = project(Some("{}"));
    fs::remove_file(directory.path().join(FILE)).unwrap();
    fs::create_dir(directory.path().join(FILE)).unwrap();
    for dir in [linked, link, directory] {
        let error = load(dir.path()).unwrap_err();
        assert!(
            matches!(error, PermissionsProblem::NoFile { .. }),
            "{error}"
        );
    }
    let file = tempfile::tempdir().unwrap();
    fs::write(file.path().join(AGENT_FOLDER), "").unwrap();
    let error = load(file.path()).unwrap_err();
    assert!(error.to_string().ends_with("is a link, or not a directory"));
    let hint = error.hint().unwrap();
    assert!(hint.starts_with("replace `"), "{hint}");
    let huge = project(Some("{}"));
    let file = fs::File::options().write(true).open(huge.path().join(FILE));
    file.unwrap().set_len(LARGEST + 1).unwrap();
    let error = load(huge.path()).unwrap_err();
    assert!(error.hint().unwrap().ends_with("smaller, or remove it"));
    let message = error.to_string();
    assert!(message.ends_with("it is larger than 2 MiB"), "{message}");
    let broken = project(Some(""));
    atomic_file::replace(&broken.path().join(FILE), |file| file.write_all(b"{\n\xff")).unwrap();
    let error = load(broken.path()).unwrap_err().to_string();
    assert!(
        error.ends_with("line 2, column 1: this is not UTF-8"),
        "{error}"
    );
}

#[test]
fn a_directory_that_has_become_a_link_leads_to_nothing_that_is_changed() {
    for before in [None, Some("{\"version\": 1, \"permissions\": []}")] {
        let dir = project(before);
        let mut file = load(dir.path()).unwrap();
        let elsewhere = project(Some("theirs"));
        let _ = fs::remove_dir_all(dir.path().join(AGENT_FOLDER));
        symlink(
            elsewhere.path().join(AGENT_FOLDER),
            dir.path().join(AGENT_FOLDER),
        )
        .unwrap();
        assert!(file.changed_on_disk().unwrap().1.is_err());
        file.put_back().unwrap_err();
        file.remember(&tool("edit_file", Never), now()).unwrap_err();
        assert_eq!(on_disk(&elsewhere), "theirs");
    }
}

#[test]
fn a_change_on_the_disk_counts_only_once_the_user_has_agreed() {
    let free =
        r#"{"version": 1, "permissions": [{"tool": "execute_command", "action": "always"}]}"#;
    for before in [None, Some(r#"{"version": 1, "permissions": []}"#)] {
        let dir = project(before);
        let mut file = load(dir.path()).unwrap();
        assert!(file.changed_on_disk().is_none());
        fs::create_dir_all(dir.path().join(AGENT_FOLDER)).unwrap();
        put(&dir, free);
        assert_eq!(file.action("execute_command"), Ask);
        // A choice does not overwrite the changed file.
        let error = file.remember(&tool("edit_file", Never), now()).unwrap_err();
        assert!(matches!(error, PermissionsProblem::Changed(_)), "{error}");
        assert_eq!(
            (on_disk(&dir).as_str(), file.action("edit_file")),
            (free, Never)
        );
        let (diff, changed) = file.changed_on_disk().unwrap();
        assert!(diff.contains("+{\"version\""), "{diff}");
        let mut agreed = changed.unwrap();
        assert_eq!(agreed.action("execute_command"), Ask);
        agreed.trust(&[]).unwrap();
        assert_eq!(agreed.action("execute_command"), Always);
        let refused = on_disk(&dir);
        file.put_back().unwrap();
        // The rejected content may be the user's own work.
        let kept = fs::read_to_string(dir.path().join(REFUSED)).unwrap();
        assert_eq!(kept, refused);
        assert_eq!(
            read(dir.path()).unwrap().as_deref(),
            before.map(str::as_bytes)
        );
        assert!(file.changed_on_disk().is_none());
        file.remember(&tool("edit_file", Never), now()).unwrap();
        assert!(file.changed_on_disk().is_none());
        // Removing the file is also a change.
        fs::remove_file(dir.path().join(FILE)).unwrap();
        assert!(
            file.changed_on_disk()
                .unwrap()
                .0
                .contains("\n+++ /dev/null\n")
        );
        put(&dir, "{");
        assert!(file.changed_on_disk().unwrap().1.is_err());
    }
}

#[test]
fn untrusted_project_file_can_only_restrict() {
    let brought = r#"{"version": 1, "permissions": [
        {"tool": "read_file", "action": "always"}, {"tool": "list_files", "action": "never"},
        {"tool": "write_file", "action": "always"}, {"tool": "execute_command", "action": "always"}],
        "commands": [{"prefix": "@looking", "action": "always"}, {"prefix": "git log", "action": "never"},
        {"prefix": "cargo test", "action": "always"}, {"prefix": "npm", "action": "ask"}]}"#;
    let dir = project(Some(brought));
    let actions = |file: &PermissionFile| {
        let tools = ["read_file", "list_files", "write_file"].map(|tool| file.action(tool));
        let commands = [
            "ls",
            "git log -1",
            "git status",
            "cargo test x",
            "npm test",
            "make",
            "rm x",
        ]
        .map(|command| {
            let judged = judge(command, &|_| ScriptState::Tracked);
            file.action_on("execute_command", &judged)
        });
        (tools, commands)
    };
    let narrowed = ([Always, Never, Ask], [Ask, Never, Ask, Ask, Ask, Ask, Ask]);
    let trusted = (
        [Always, Never, Always],
        [Always, Never, Always, Always, Ask, Always, Ask],
    );
    let mut file = load(dir.path()).unwrap();
    assert_eq!(actions(&file), narrowed);
    let withheld = [
        "`write_file`",
        "every command",
        "commands that only look",
        "commands that begin with `cargo test`",
    ];
    assert_eq!(file.withheld(), withheld);
    // A choice made before the file is trusted takes effect, but is not written.
    let choice = Choice::Commands(vec!["make".to_owned()]);
    assert!(file.needs_trust(&choice));
    file.remember(&choice, now()).unwrap();
    assert!(file.allows_command("make x") && !file.allows_command("cargo test"));
    assert_eq!(on_disk(&dir), brought);
    // A prohibition is written, without making the file trusted.
    assert!(!file.needs_trust(&tool("edit_file", Never)));
    file.remember(&tool("edit_file", Never), now()).unwrap();
    assert!(on_disk(&dir).contains("edit_file") && !on_disk(&dir).contains("make"));
    assert_eq!(actions(&load(dir.path()).unwrap()), narrowed);

    load_trusted(dir.path());
    let mut file = load(dir.path()).unwrap();
    assert_eq!(actions(&file), trusted);
    assert!(file.withheld().is_empty() && !file.needs_trust(&choice));
    // The file stays trusted when the program writes it.
    file.remember(&choice, now()).unwrap();
    file.remember(&choice, now()).unwrap();
    let json: Value = serde_json::from_str(&on_disk(&dir)).unwrap();
    assert_eq!(json["commands"].as_array().unwrap().len(), 5);
    assert_eq!(actions(&load(dir.path()).unwrap()), trusted);
    // Another program's change is not trusted.
    put(
        &dir,
        &on_disk(&dir).replace("\"edit_file\"", "\"edit_file\" "),
    );
    assert_eq!(actions(&load(dir.path()).unwrap()), narrowed);
}

#[test]
fn what_is_forbidden_by_prefix_is_forbidden_in_every_spelling() {
    let rules = r#"{"version": 1, "permissions": [{"tool": "execute_command", "action": "always"}],
        "commands": [{"prefix": "npm", "action": "always"}, {"prefix": "npm test", "action": "never"}]}"#;
    let dir = project(Some(rules));
    let file = load_trusted(dir.path());
    for (command, action) in [
        ("npm run lint", Always),
        ("npm test", Never),
        ("/usr/bin/npm test", Never),
        ("npm --silent test", Never),
        ("env npm test", Never),
        ("npm test > log", Never),
        ("npm run lint > log", Ask),
        ("ls; npm test", Never),
    ] {
        let judged = judge(command, &|_| ScriptState::Tracked);
        assert_eq!(
            file.action_on("execute_command", &judged),
            action,
            "{command}"
        );
    }
}
