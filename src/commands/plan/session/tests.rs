//! Tests that sessions are saved, found and listed as documented, even after a kill or a change by another program.

use super::*;
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::agent::session::{SessionForm as _, SessionState, SessionSummary};
use crate::model::message::Call;
use crate::project::home::PLAN;
use crate::secret::Redactor;
use crate::sys::error::Problem as _;
use crate::sys::file_lock::FileLock;
use chrono::Utc;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// The specification's session, with its placeholders filled in.
const EXAMPLE: &str = r#"{
  "id": "2026-01-07T10:23:21.000MST",
  "startedAt": 1767806601000,
  "model": "qwen2.5-coder:32b",
  "status": "active"
}"#;

const ID: &str = "2026-01-07T10:23:21.000MST";
const FILE: &str = "session.json";
const LOCK: &str = "session.lock";

/// A home directory, and the redactor of the files in it.
struct Home {
    dir: tempfile::TempDir,
    redactor: Redactor,
}

impl Home {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            redactor: Redactor::new(["sekret-key-1"]),
        }
    }

    fn store(&self) -> PlanSessionStore<'_> {
        let home = self.dir.path().join("home");
        let store = PlanSessionStore::at(&PLAN, &home, &self.redactor);
        store.make().unwrap();
        store
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("home/sessions").join(name)
    }

    /// Creates a session's folder with a `session.json` of this content.
    fn put(&self, id: &str, content: impl AsRef<[u8]>) -> PathBuf {
        drop(self.store());
        let folder = self.path(id);
        let _ = fs::create_dir(&folder);
        fs::write(folder.join(FILE), content).unwrap();
        folder
    }

    fn json(&self, id: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(id).join(FILE)).unwrap()).unwrap()
    }

    fn names(&self, id: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(id)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn at(time: &str) -> DateTime<FixedOffset> {
    time.parse().unwrap()
}

fn create(store: &PlanSessionStore<'_>) -> Result<PlanSession, SessionError> {
    create_in(store, "2026-01-07T10:23:21-07:00", "/work", "MST")
}

fn create_in(
    store: &PlanSessionStore<'_>,
    time: &str,
    directory: &str,
    zone: &str,
) -> Result<PlanSession, SessionError> {
    let state = PlanState {
        directory: store.written(Path::new(directory)),
        ..PlanState::default()
    };
    super::create(store, at(time), Some(zone), state)
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn a_session_is_named_by_its_time_and_zone() {
    for (time, zone, expected) in [
        ("2026-01-07T10:23:21-07:00", Some("MST"), ID),
        (
            "2026-01-07T10:23:21-07:00",
            None,
            "2026-01-07T10:23:21.000-0700",
        ),
        (
            "2026-12-31T23:59:59.9876+05:30",
            Some("IST"),
            "2026-12-31T23:59:59.987IST",
        ),
        (
            "2026-01-07T10:23:21.5+03:00",
            Some("+03"),
            "2026-01-07T10:23:21.500+0300",
        ),
        (
            "2026-01-07T10:23:21Z",
            Some("UTC"),
            "2026-01-07T10:23:21.000UTC",
        ),
        (
            "2026-01-07T10:23:21Z",
            Some(""),
            "2026-01-07T10:23:21.000+0000",
        ),
        (
            "2026-01-07T10:23:21Z",
            Some("../x"),
            "2026-01-07T10:23:21.000+0000",
        ),
    ] {
        assert_eq!(name(at(time), zone), expected);
    }
}

#[test]
fn a_new_session_has_its_files_and_they_are_the_users_own() {
    let home = Home::new();
    let store = home.store();
    let session = create(&store).unwrap();
    assert_eq!(session.id(), ID);
    assert_eq!(home.names(ID), [FILE, LOCK]);
    let path = session.document(Path::new("/work"));
    assert_eq!(path, home.path(ID).join("plan_doc.md"));
    assert_eq!(session.chat_log(), home.path(ID).join("chat_history.log"));
    let json = home.json(ID);
    let fields: Vec<&String> = json.as_object().unwrap().keys().take(4).collect();
    assert_eq!(fields, ["id", "startedAt", "model", "status"]);
    let told = json!([json["id"], json["startedAt"], json["model"], json["status"]]);
    assert_eq!(told, json!([ID, 1_767_806_601_000_i64, "", "active"]));
    assert_eq!(json["workingDirectory"], "/work");

    assert_eq!(mode(&home.path("")), 0o700);
    assert_eq!(mode(&home.path(ID)), 0o700);
    for name in home.names(ID) {
        assert_eq!(mode(&home.path(ID).join(&name)), 0o600, "{name}");
    }
}

#[test]
fn sessions_of_one_moment_are_numbered() {
    let home = Home::new();
    let (store, other) = (home.store(), home.store());
    let sessions = [&store, &other, &store].map(|store| create(store).unwrap());
    let ids = sessions.each_ref().map(|session| session.id());
    assert_eq!(ids, [ID, &format!("{ID}-2"), &format!("{ID}-3")]);
    assert_eq!(store.last_in(Path::new("/work")).unwrap(), ids[2]);
}

#[test]
fn session_is_restored_for_a_resume() {
    let home = Home::new();
    let store = home.store();
    let mut session = create(&store).unwrap();
    let state = PlanState {
        requests: vec!["first".to_owned(), "second\nline".to_owned()],
        stage: PlanStage::Execution,
        conversation: Conversation {
            requests: vec!["Current task: x".to_owned()],
            history: vec![HistoryMessage::of_tool("read_file", "call-1", "é\u{0}\n")],
            ..Conversation::default()
        },
        from: 1,
        ..session.file.state.clone()
    };
    session.file.state = state.clone();
    session.file.status = SessionState::Complete;
    session.file.model = "other".to_owned();
    store.save(&mut session, Utc::now()).unwrap();
    drop(session);

    let json = home.json(ID);
    assert_eq!(json["status"], "completed");
    assert_eq!(json["stage"], "execution");
    let session = store.open(ID).unwrap();
    assert_eq!(session.file.state, state);
    assert_eq!(session.file.status, SessionState::Complete);
    assert_eq!(session.file.model, "other");
    store.check_directory(&session, Path::new("/work")).unwrap();
    let elsewhere = store.check_directory(&session, Path::new("/else"));
    assert!(matches!(elsewhere, Err(SessionError::Elsewhere { .. })));
}

#[test]
fn the_specifications_session_and_fields_of_others_are_kept() {
    let home = Home::new();
    let theirs = r#"{"theirs": {"a": [1, null, "sekret-key-1"]}, "#;
    home.put("a copy", EXAMPLE.replacen('{', theirs, 1));
    let store = home.store();
    let mut session = store.open("a copy").unwrap();
    assert_eq!(session.file.state, PlanState::default());
    store.save(&mut session, Utc::now()).unwrap();
    let json = home.json("a copy");
    // The `id` is the folder's name.
    assert_eq!(json["id"], "a copy");
    assert_eq!(json["startedAt"], 1_767_806_601_000_i64);
    assert_eq!(json["model"], "qwen2.5-coder:32b");
    assert_eq!(json["theirs"], json!({"a": [1, null, "[REDACTED]-1"]}));
}

#[test]
fn no_key_is_written_and_the_file_can_be_read_whatever_a_key_looks_like() {
    let home = Home {
        redactor: Redactor::new([
            "sekret-key-1",
            "n1234567",
            "active",
            "planning",
            "assistant",
        ]),
        ..Home::new()
    };
    let store = home.store();
    let mut session =
        create_in(&store, "2026-01-07T10:23:21-07:00", "/sekret-key-1", "MST").unwrap();
    let text = || "a sekret-key-1 \n1234567".to_owned();
    session.file.model = text();
    session.file.state.requests = vec![text()];
    session.file.state.conversation.request(&text());
    let calls = vec![Call {
        id: "c1".to_owned(),
        name: text(),
        input: json!({text(): [text()]}),
        ..Call::default()
    }];
    let said = HistoryMessage {
        calls,
        ..HistoryMessage::of_agent(text())
    };
    session.file.state.conversation.say(said);
    store.save(&mut session, Utc::now()).unwrap();
    drop(session);
    let written = fs::read_to_string(home.path(ID).join(FILE)).unwrap();
    assert!(!written.contains("sekret"), "{written}");
    let session = store.open(ID).unwrap();
    assert_eq!(session.file.state.requests, ["a [REDACTED]-1 \n1234567"]);
    assert_eq!(session.file.status, SessionState::Active);
    let directory = Path::new("/sekret-key-1");
    store.check_directory(&session, directory).unwrap();
    assert_eq!(store.last_in(directory).unwrap(), ID);
}

#[test]
fn only_the_exact_name_opens_a_session() {
    let home = Home::new();
    let store = home.store();
    drop(create(&store).unwrap());
    fs::write(home.path("a file"), "").unwrap();
    symlink(ID, home.path("a link")).unwrap();
    fs::create_dir(home.dir.path().join("home/other")).unwrap();
    let others = [
        "",
        ".",
        "..",
        "../other",
        "/",
        "a/b",
        "2026-01-07T10",
        "2026-01-07t10:23:21.000mst",
        "2026-01-07T10:23:21.000MST/",
        "2026-01-07T10:23:21.000MST-2",
        "a file",
        "a link",
        "a\0b",
    ];
    for id in others {
        let problem = store.open(id).unwrap_err();
        let SessionError::Missing { id: told, .. } = &problem else {
            panic!("{id:?}: {problem}");
        };
        assert_eq!(told, id);
        assert!(matches!(
            document(&store, id),
            Err(SessionError::Missing { .. })
        ));
        let hint = problem.hint().unwrap();
        assert!(hint.contains("`code-commit plan sessions list`"), "{hint}");
    }
    assert_eq!(home.names("../other"), [""; 0]);
    store.open(ID).unwrap();
}

#[test]
fn a_session_is_used_by_one_at_a_time() {
    let home = Home::new();
    let (store, other) = (home.store(), home.store());
    let session = create(&store).unwrap();
    let problem = other.open(ID).unwrap_err();
    assert!(matches!(&problem, SessionError::InUse { id, .. } if id == ID));
    // Reading requires no lock.
    let path = session.document(Path::new("/work"));
    assert_eq!(document(&other, ID).unwrap(), path);
    drop(session);
    other.open(ID).unwrap();
}

#[test]
fn a_damaged_session_is_reported_with_its_position() {
    let home = Home::new();
    let no_status = EXAMPLE.replace(",\n  \"status\": \"active\"", "");
    for (content, expected) in [
        (String::new(), "line 1, column 1: the file is empty"),
        ("[]".to_owned(), "line 1, column 1: an object is expected"),
        (EXAMPLE[..60].to_owned(), "line 3, column "),
        (no_status, "line 5, column 1: missing field `status`"),
        (
            EXAMPLE.replace("1767806601000", "\"today\""),
            "line 3, column ",
        ),
        (
            EXAMPLE.replace("active", "begun"),
            "line 5, column 19: unknown variant `begun`",
        ),
        (
            EXAMPLE.replacen('{', "{\"stage\": \"x\",", 1),
            "line 6, column 1: unknown variant `x`",
        ),
    ] {
        let folder = home.put(ID, &content);
        let problem = home.store().open(ID).unwrap_err();
        let path = folder.join(FILE);
        let expected = format!("`{}` is damaged: {expected}", path.display());
        assert!(problem.to_string().starts_with(&expected), "{problem}");
    }
    fs::remove_file(home.path(ID).join(FILE)).unwrap();
    let problem = home.store().open(ID).unwrap_err();
    let folder = home.path(ID);
    let expected = format!(
        "`{}` is damaged: it has no `session.json`",
        folder.display()
    );
    assert_eq!(problem.to_string(), expected);
    // The folder is unchanged, and its lock is released.
    home.put(ID, EXAMPLE);
    home.store().open(ID).unwrap();
}

#[test]
fn a_document_in_the_project_is_remembered_and_not_made() {
    let home = Home::new();
    let store = home.store();
    let mut session = create(&store).unwrap();
    session.file.state.plan_file = Some("docs/plan.md".to_owned());
    store.save(&mut session, Utc::now()).unwrap();
    drop(session);
    let session = store.open(ID).unwrap();
    let path = session.document(Path::new("/work"));
    assert_eq!(path, Path::new("/work/docs/plan.md"));
    assert_eq!(document(&store, ID).unwrap(), path);
    assert_eq!(home.names(ID), [FILE, LOCK]);
}

#[test]
fn a_session_that_cannot_be_made_is_reported_with_the_remedy() {
    let home = Home::new();
    let store = home.store();
    fs::remove_dir(home.path("")).unwrap();
    fs::write(home.dir.path().join("home/sessions"), "").unwrap();
    let problem = create(&store).unwrap_err();
    let SessionError::Io { what, path, .. } = &problem else {
        panic!("{problem}");
    };
    assert_eq!(
        (*what, path),
        ("written", &home.dir.path().join("home/sessions"))
    );
    assert!(problem.hint().unwrap().contains("`OLLAMA_AGENT_HOME`"));
}

#[test]
fn leftovers_of_a_killed_process_are_removed_or_reported() {
    let home = Home::new();
    let store = home.store();
    drop(create(&store).unwrap());
    // One process was killed while saving `session.json`, another before its first save.
    fs::write(home.path(ID).join(".staged-x"), "{\"id\":").unwrap();
    let begun = home.path("2026-01-08T10:23:21.000MST");
    fs::create_dir(&begun).unwrap();
    drop(store.open(ID).unwrap());
    assert_eq!(home.names(ID), [FILE, LOCK]);
    let told = || {
        let id = |summary: SessionSummary| summary.id;
        store
            .list()
            .unwrap()
            .into_iter()
            .map(id)
            .collect::<Vec<_>>()
    };
    assert_eq!(told(), ["2026-01-08T10:23:21.000MST", ID]);
    // A session that is being created is not listed yet.
    let lock = FileLock::take(&begun.join(LOCK)).unwrap();
    assert_eq!(told(), [ID]);
    drop(lock);
}

#[test]
fn a_list_shows_the_newest_first_and_the_damaged_as_such() {
    let home = Home::new();
    let store = home.store();
    assert_eq!(store.list().unwrap(), []);

    // If sorted by name, the second session would come first.
    let begin = |time, directory, zone| create_in(&store, time, directory, zone).unwrap();
    let mut done = begin("2026-01-07T10:23:21-07:00", "/a", "MST");
    done.file.status = SessionState::Complete;
    done.file.model = "m".to_owned();
    done.file.state.requests = vec!["\n  first line \nsecond".to_owned(), "more".to_owned()];
    store.save(&mut done, Utc::now()).unwrap();
    let killed = begin("2026-01-07T16:00:00+00:00", "/b", "UTC");
    drop(killed);
    let _held = begin("2026-01-07T19:00:00+00:00", "/b", "UTC");
    home.put("damaged", "{\n]");
    let damaged = home.path("damaged");
    let file = fs::File::open(&damaged).unwrap();
    file.set_modified(at("2026-01-07T18:00:00Z").into())
        .unwrap();
    fs::write(home.path("notes.txt"), "").unwrap();

    let listed = store.list().unwrap();
    let line = |summary: &SessionSummary| {
        let state = summary.state::<PlanSessionFile>();
        (summary.id.clone(), state)
    };
    assert_eq!(
        listed.iter().map(line).collect::<Vec<_>>(),
        [
            ("2026-01-07T19:00:00.000UTC".to_owned(), "active"),
            ("damaged".to_owned(), "damaged"),
            (ID.to_owned(), "completed"),
            ("2026-01-07T16:00:00.000UTC".to_owned(), "interrupted"),
        ]
    );
    let told = PlanSessionStore::json(&listed);
    assert_eq!(
        told["sessions"][2],
        json!({
            "id": ID, "startedAt": 1_767_806_601_000_i64, "model": "m", "status": "completed",
            "workingDirectory": "/a", "prompt": "first line", "problem": null,
        })
    );
    assert_eq!(told["sessions"][1]["status"], "damaged");
    assert_eq!(told["schema"], 1);

    let last = |directory: &str| store.last_in(Path::new(directory));
    assert_eq!(last("/b").unwrap(), "2026-01-07T19:00:00.000UTC");
    // The damaged session is newer, and its directory is unknown.
    {
        let problem = last("/a").unwrap_err().to_string();
        assert!(
            problem.contains("damaged/session.json` is damaged"),
            "{problem}"
        );
    }
    fs::remove_dir_all(damaged).unwrap();
    assert_eq!(last("/a").unwrap(), ID);
    let problem = last("/c").unwrap_err();
    assert_eq!(problem.to_string(), "there is no session to resume in `/c`");
    assert!(
        problem
            .hint()
            .unwrap()
            .contains("`code-commit plan sessions list`")
    );
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_session_or_damaged(content in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64)) {
        let home = Home::new();
        let _ = home.store().open(ID);
        home.put(ID, content);
        let _ = home.store().open(ID);
    }
}
