//! Tests of sessions on disk: saving, finding, listing and removing them, with access for their owner only.

use std::fs;

use super::*;
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::agent::session::file::Outlined;
use crate::agent::session::{Compression, SessionFile, SessionState};
use crate::model::message::{Call, Role};
use crate::record::tasks::{Task, TaskStatus};
use crate::record::tool::CommandEnd;
use crate::sys::error::Problem as _;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::SystemTime;

/// The specification's example, byte by byte.
const EXAMPLE: &str = r##"{
  "id": "550e8400-e29b-41d4-a716-446655440000",
  "createdAt": "2025-01-15T10:30:00Z",
  "updatedAt": "2025-01-15T11:45:00Z",
  "workingDirectory": "C:\\Users\\Belle\\projects\\my-app",
  "originalPrompt": "Add JWT authentication",
  "taskList": [
    { "status": "complete", "text": "Install jsonwebtoken" },
    { "status": "complete", "text": "Create auth middleware" },
    { "status": "in-progress", "text": "Add refresh tokens" }
  ],
  "history": [
    {
      "role": "user",
      "content": "Add JWT authentication"
    },
    {
      "role": "assistant",
      "content": "# Agent Response\n\n## Thoughts\n..."
    }
  ],
  "totalTokens": 15420
}
"##;

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

/// A temporary home, and the redactor for everything written there.
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

    fn store(&self) -> SessionStore<'_, SessionFile> {
        let home = self.dir.path().join("home");
        let store = SessionStore::at(&crate::project::home::DEV, &home, &self.redactor);
        store.make().unwrap();
        store
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("home/sessions").join(name)
    }

    fn put(&self, id: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(&format!("{id}.json"));
        fs::write(&path, content).unwrap();
        path
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("")).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn at(time: &str) -> DateTime<Utc> {
    time.parse().unwrap()
}

fn id(number: u128) -> String {
    Uuid::from_u128(number).to_string()
}

fn create(
    store: &SessionStore<'_, SessionFile>,
    id: &str,
    now: DateTime<Utc>,
    directory: &str,
) -> Result<Session<SessionFile>, SessionError> {
    let id = id.parse().unwrap();
    let directory = store.written(Path::new(directory));
    let mut file = SessionFile::new(id, now, directory);
    *file.model() = "m".to_owned();
    store.create(file)
}

/// Saves a session at `time` and releases it.
fn saved(store: &SessionStore<'_, SessionFile>, number: u128, directory: &str, time: &str) {
    let mut session = create(store, &id(number), at(time), directory).unwrap();
    session.conversation.requests.push(format!("do {number}"));
    store.save(&mut session, at(time)).unwrap();
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

fn age(path: &Path, time: &str) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::from(at(time))).unwrap();
}

#[test]
fn the_specifications_session_is_read_and_written_as_it_stands() {
    let home = Home::new();
    let store = home.store();
    home.put(ID, EXAMPLE);
    let mut session = store.open(ID).unwrap();
    assert_eq!(session.id(), ID);
    assert_eq!(session.file.created_at, at("2025-01-15T10:30:00Z"));
    assert_eq!(session.file.directory, r"C:\Users\Belle\projects\my-app");
    let Conversation {
        requests,
        tasks,
        history,
        ..
    } = &session.conversation;
    assert_eq!(requests, &["Add JWT authentication"]);
    assert_eq!(tasks[2].status, TaskStatus::InProgress);
    assert_eq!(history[1].role, Role::Assistant);
    assert_eq!(session.file.total_tokens, 15_420);

    let then = session.file.updated_at;
    store.save(&mut session, then).unwrap();
    let written = home.json(&format!("{ID}.json"));
    let mut expected: Value = serde_json::from_str(EXAMPLE).unwrap();
    for (name, value) in [
        ("compressionCount", Value::from(0)),
        ("compressions", Value::Array(Vec::new())),
        ("state", "active".into()),
        ("model", "".into()),
        ("requests", vec!["Add JWT authentication"].into()),
    ] {
        expected[name] = value;
    }
    assert_eq!(written, expected);
    let text = fs::read_to_string(home.path(&format!("{ID}.json"))).unwrap();
    let first = EXAMPLE.split("\"taskList\"").next().unwrap();
    assert!(text.starts_with(first), "{text}");
    assert!(text.ends_with("}\n"));
}

#[test]
fn everything_of_a_session_outlives_the_process() {
    let home = Home::new();
    let store = home.store();
    let now = at("2025-01-15T10:30:00.123456789Z");
    let mut session = create(&store, ID, now, "/work").unwrap();
    session.conversation = Conversation {
        todos: Vec::new(),
        thinker: None,
        truncation: None,
        is_unapplied: true,
        requests: vec!["first".to_owned(), "second".to_owned()],
        settled: 1,
        tasks: vec![Task {
            status: TaskStatus::Pending,
            text: "t".to_owned(),
        }],
        history: vec![HistoryMessage {
            parts: Vec::new(),
            images: Vec::new(),
            role: Role::Tool,
            content: "out\u{0}\n".into(),
            tool: Some("COMMAND".to_owned()),
            call: Some("c1".to_owned()),
            is_failed: false,
            command: CommandEnd::Exited(1),
            brief: Some("exit code: 1".to_owned()),
            calls: Vec::new(),
            is_tagged: false,
            is_fault: false,
        }],
        earlier: vec![HistoryMessage::of_agent("before")],
    };
    session.file.state = SessionState::Failed;
    session.file.total_tokens = u64::MAX;
    let compression = Compression {
        timestamp: at("2025-01-15T11:30:00Z"),
        tokens_before: 128_000,
        tokens_after: 8_500,
    };
    session.compressed(compression);
    let later = at("2025-01-15T12:00:00+02:00");
    store.save(&mut session, later).unwrap();
    let conversation = session.conversation.clone();
    drop(session);

    let json = home.json(&format!("{ID}.json"));
    assert_eq!(json["createdAt"], "2025-01-15T10:30:00.123Z");
    assert_eq!(json["updatedAt"], "2025-01-15T10:00:00Z");
    assert_eq!(json["compressionCount"], 1);
    assert_eq!(json["compressions"][0]["tokensAfter"], 8500);
    assert_eq!(json["history"][0]["tool"], "COMMAND");
    assert_eq!(json["originalPrompt"], "first");

    let session = store.open(ID).unwrap();
    assert_eq!(session.conversation, conversation);
    assert_eq!(session.file.state, SessionState::Failed);
    assert_eq!(
        (session.file.total_tokens, session.file.model.as_str()),
        (u64::MAX, "m")
    );
    assert_eq!(session.file.compressions, [compression]);
    assert_eq!(session.file.updated_at, later);
}

#[test]
fn fields_of_others_are_kept() {
    let home = Home::new();
    let store = home.store();
    let other = r#"{"theirs": {"a": [1, null, "sekret-key-1"]}, "#;
    home.put(ID, EXAMPLE.replacen('{', other, 1));
    let mut session = store.open(ID).unwrap();
    let then = session.file.updated_at;
    store.save(&mut session, then).unwrap();
    let written = home.json(&format!("{ID}.json"));
    let expected = serde_json::json!({"a": [1, null, "[REDACTED]-1"]});
    assert_eq!(written["theirs"], expected);
}

#[test]
fn no_key_is_written_and_the_file_stays_json_whatever_a_key_looks_like() {
    // Written as JSON, the text below has the second key in the middle of an escape.
    let home = Home {
        redactor: Redactor::new(["sekret-key-1", "n1234567", "active"]),
        ..Home::new()
    };
    let store = home.store();
    let now = at("2025-01-15T10:30:00Z");
    let directory = Path::new("/work/sekret-key-1");
    let mut session = create(&store, ID, now, "/work/sekret-key-1").unwrap();
    let text = || "a sekret-key-1 \n1234567".to_owned();
    session.conversation = Conversation {
        todos: Vec::new(),
        thinker: None,
        truncation: None,
        is_unapplied: false,
        requests: vec![text()],
        settled: 0,
        tasks: vec![Task {
            status: TaskStatus::Pending,
            text: text(),
        }],
        history: vec![HistoryMessage {
            parts: Vec::new(),
            images: Vec::new(),
            role: Role::Tool,
            content: text().into(),
            tool: Some(text()),
            call: None,
            is_failed: false,
            command: CommandEnd::Killed,
            brief: Some(text()),
            calls: vec![Call {
                id: "c1".to_owned(),
                name: text(),
                input: serde_json::json!({text(): [text()]}),
                ..Call::default()
            }],
            is_tagged: false,
            is_fault: false,
        }],
        earlier: vec![HistoryMessage::of_agent(text())],
    };
    store.save(&mut session, now).unwrap();
    assert_eq!(session.conversation.requests, [text()]);
    drop(session);
    for name in home.names() {
        let written = fs::read_to_string(home.path(&name)).unwrap();
        assert!(!written.contains("sekret"), "{name}: {written}");
    }
    let session = store.open(ID).unwrap();
    assert_eq!(session.conversation.requests, ["a [REDACTED]-1 \n1234567"]);
    assert_eq!(store.last_in(directory).unwrap(), ID);
    store.check_directory(&session, directory).unwrap();
}

#[test]
fn files_are_the_users_own_and_nothing_is_left_next_to_them() {
    let home = Home::new();
    let store = home.store();
    saved(&store, 1, "/work", "2025-01-15T10:30:00Z");
    let session = format!("{}.json", id(1));
    let lock = format!("{}.lock", id(1));
    assert_eq!(
        home.names(),
        [&session, &lock, "directory-map.json", "directory-map.lock"]
    );
    for name in home.names() {
        assert_eq!(mode(&home.path(&name)), 0o600, "{name}");
    }
    assert_eq!(mode(&home.path("")), 0o700);
    assert_eq!(mode(&home.dir.path().join("home")), 0o700);
}

#[test]
fn a_reader_never_sees_half_a_session() {
    let home = Home::new();
    let store = home.store();
    saved(&store, 1, "/work", "2025-01-15T10:30:00Z");
    let mut session = store.open(&id(1)).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for length in 0..30 {
                session.conversation.requests = vec!["x".repeat(length << 10)];
                store
                    .save(&mut session, at("2025-01-15T10:31:00Z"))
                    .unwrap();
            }
        });
        while !writer.is_finished() {
            let listed = home.store().list().unwrap();
            assert!(matches!(&listed[..], [one] if one.outline.is_ok()));
        }
    });
}

#[test]
fn a_session_is_used_by_one_at_a_time() {
    let home = Home::new();
    let (store, other) = (home.store(), home.store());
    saved(&store, 1, "/work", "2025-01-15T10:30:00Z");
    let session = store.open(&id(1)).unwrap();
    let problem = other.open(&id(1)).unwrap_err();
    let SessionError::InUse { process, .. } = problem else {
        panic!("it should be in use: {problem}");
    };
    if cfg!(target_os = "linux") {
        assert_eq!(process, Some(std::process::id()));
        let expected = format!(
            "the session `{}` is in use: process {}",
            id(1),
            process.unwrap()
        );
        assert_eq!(problem.to_string(), expected);
    }
    drop(session);
    drop(other.open(&id(1)).unwrap());
    let missing = other.open(&id(2)).unwrap_err();
    assert!(matches!(missing, SessionError::Missing { id: it, .. } if it == id(2)));
    let exists = create(&other, &id(1), at("2025-01-15T10:30:00Z"), "/");
    assert!(matches!(exists, Err(SessionError::Exists(_))));
}

#[test]
fn a_session_that_is_never_saved_leaves_nothing_behind() {
    let home = Home::new();
    let store = home.store();
    let now = at("2025-01-15T10:30:00Z");
    let session = create(&store, ID, now, "/work").unwrap();
    let again = create(&home.store(), ID, now, "/work");
    assert!(matches!(again, Err(SessionError::InUse { .. })));
    drop(session);
    assert!(home.names().is_empty());
    let problem = store.last_in(Path::new("/work")).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "there is no session to resume in `/work`"
    );
    assert!(problem.hint().unwrap().contains("--resume"));
    assert!(home.names().is_empty());
}

#[test]
fn each_directory_has_its_last_session() {
    let home = Home::new();
    let store = home.store();
    saved(&store, 1, "/a", "2025-01-15T10:30:00Z");
    saved(&store, 2, "/b", "2025-01-15T10:31:00Z");
    saved(&store, 3, "/a", "2025-01-15T10:32:00Z");
    let last = |directory: &str| store.last_in(Path::new(directory)).ok();
    assert_eq!((last("/a"), last("/b")), (Some(id(3)), Some(id(2))));
    let expected = serde_json::json!({"/a": id(3), "/b": id(2)});
    assert_eq!(home.json("directory-map.json"), expected);

    // A session that is used again becomes the last one again.
    let mut first = store.open(&id(1)).unwrap();
    assert_eq!(last("/a"), Some(id(3)));
    store.save(&mut first, at("2025-01-15T10:33:00Z")).unwrap();
    assert_eq!(last("/a"), Some(id(1)));

    let problem = store.check_directory(&first, Path::new("/b")).unwrap_err();
    let expected = format!("the session `{}` works in `/a`, and this is `/b`", id(1));
    assert_eq!(problem.to_string(), expected);
    assert!(problem.hint().unwrap().contains("`/a`"));
    store.check_directory(&first, Path::new("/a")).unwrap();

    // If the last one was removed, the newest remaining one is found.
    fs::remove_file(home.path(&format!("{}.json", id(1)))).unwrap();
    assert_eq!(last("/a"), Some(id(3)));
}

#[test]
fn a_map_that_is_damaged_or_gone_is_made_from_the_sessions() {
    let home = Home::new();
    let store = home.store();
    saved(&store, 1, "/a", "2025-01-15T10:32:00Z");
    saved(&store, 2, "/a", "2025-01-15T10:31:00Z");
    saved(&store, 3, "/b", "2025-01-15T10:30:00Z");
    home.put(&id(4), "{");
    let map = home.path("directory-map.json");
    for damage in ["", "{\"/a\": ", "[]", "{\"/a\": \"../x\"}", "\u{0}"] {
        fs::write(&map, damage).unwrap();
        assert_eq!(store.last_in(Path::new("/a")).unwrap(), id(1), "{damage}");
    }
    fs::remove_file(&map).unwrap();
    assert_eq!(store.last_in(Path::new("/b")).unwrap(), id(3));
    fs::create_dir(&map).unwrap();
    assert_eq!(store.last_in(Path::new("/b")).unwrap(), id(3));
    fs::remove_dir(&map).unwrap();

    // When the map is rebuilt, it includes the others, but no removed ones.
    fs::remove_file(home.path(&format!("{}.json", id(3)))).unwrap();
    saved(&store, 5, "/c", "2025-01-15T10:34:00Z");
    let expected = serde_json::json!({"/a": id(1), "/c": id(5)});
    assert_eq!(home.json("directory-map.json"), expected);
    fs::remove_file(home.path(&format!("{}.json", id(5)))).unwrap();
    assert!(store.last_in(Path::new("/c")).is_err());
}

#[test]
fn no_entry_of_another_process_is_lost() {
    let home = Home::new();
    thread::scope(|scope| {
        for thread in 0..4 {
            let home = &home;
            scope.spawn(move || {
                let store = home.store();
                for number in 0..10 {
                    let number = thread * 10 + number;
                    let directory = format!("/{number}");
                    saved(&store, number, &directory, "2025-01-15T10:30:00Z");
                }
            });
        }
    });
    let map = home.json("directory-map.json");
    assert_eq!(map.as_object().unwrap().len(), 40);
}

#[test]
fn old_sessions_are_removed_and_nothing_else() {
    let home = Home::new();
    let store = home.store();
    saved(&store, 1, "/old", "2025-01-01T00:00:00Z");
    saved(&store, 2, "/used", "2025-01-01T00:00:00Z");
    saved(&store, 3, "/new", "2025-01-02T00:00:01Z");
    let damaged = home.put(&id(4), "damaged");
    age(&damaged, "2025-01-01T00:00:00Z");
    home.put(&id(5), "damaged, but new");
    let used = store.open(&id(2)).unwrap();
    let others = [
        "notes.json",
        "NOTES.txt",
        "x.lock",
        &format!("{}.bak", id(1)),
    ];
    for name in others {
        fs::write(home.path(name), "{\"updatedAt\": \"2001-01-01T00:00:00Z\"}").unwrap();
    }
    let left_behind = [
        home.path(".staged-x"),
        home.path(&format!("{}.lock", id(9))),
    ];
    for path in &left_behind {
        fs::write(path, "").unwrap();
        age(path, "2025-01-01T00:00:00Z");
    }
    fs::write(home.path(".staged-new"), "").unwrap();

    let now = at("2025-02-01T00:00:01Z");
    assert_eq!(store.clean(now, 31).unwrap(), 2);
    for number in [2, 3, 5] {
        assert!(home.path(&format!("{}.json", id(number))).exists());
    }
    for number in [1, 4] {
        assert!(!home.path(&format!("{}.json", id(number))).exists());
        assert!(!home.path(&format!("{}.lock", id(number))).exists());
    }
    for name in others {
        assert!(home.path(name).exists(), "{name}");
    }
    assert!(home.path(".staged-new").exists());
    assert!(left_behind.iter().all(|path| !path.exists()));
    let expected = serde_json::json!({"/new": id(3), "/used": id(2)});
    assert_eq!(home.json("directory-map.json"), expected);

    drop(used);
    fs::write(&left_behind[0], "").unwrap();
    age(&left_behind[0], "2025-01-31T22:59:59Z");
    assert_eq!(store.clean(now, 0).unwrap(), 0);
    assert!(!left_behind[0].exists());
    assert_eq!(store.clean(now, 36_500).unwrap(), 0);
    assert_eq!(store.clean(now, 31).unwrap(), 1);
}

#[test]
fn a_list_shows_the_newest_first_and_the_damaged_as_such() {
    let home = Home::new();
    let store = home.store();
    assert_eq!(store.list().unwrap(), []);
    saved(&store, 1, "/a", "2025-01-15T10:31:00Z");
    saved(&store, 2, "/b", "2025-01-15T10:32:00Z");
    let held = store.open(&id(2)).unwrap();
    let mut done = create(&store, &id(3), at("2025-01-15T10:30:00Z"), "/c").unwrap();
    done.file.state = SessionState::Complete;
    done.conversation.requests = vec!["\n  first line \nsecond".to_owned()];
    store.save(&mut done, at("2025-01-15T10:30:00Z")).unwrap();
    let damaged = home.put(&id(4), "{\n]");
    age(&damaged, "2025-01-15T10:33:00Z");
    fs::create_dir(home.path(&format!("{}.json", id(5)))).unwrap();
    fs::write(home.path("x.json"), "{}").unwrap();

    let listed = store.list().unwrap();
    let ids: Vec<String> = listed.iter().map(|summary| summary.id.clone()).collect();
    assert_eq!(ids, [id(5), id(4), id(2), id(1), id(3)]);
    let outlines: Vec<_> = listed.iter().map(|summary| &summary.outline).collect();
    assert!(
        outlines[0]
            .as_ref()
            .unwrap_err()
            .contains("it is not a file")
    );
    assert!(
        outlines[1]
            .as_ref()
            .unwrap_err()
            .starts_with("line 2, column 1")
    );
    let state = |at: usize| outlines[at].as_ref().unwrap().state;
    assert_eq!(state(2), SessionState::Active);
    assert_eq!(state(3), SessionState::Interrupted);
    assert_eq!(state(4), SessionState::Complete);
    assert_eq!(outlines[4].as_ref().unwrap().prompt, "first line");
    drop(held);
}

#[test]
fn a_damaged_session_is_reported_with_its_position() {
    let home = Home::new();
    let store = home.store();
    for (content, expected) in [
        (String::new(), "line 1, column 1: the file is empty"),
        (
            "[]".to_owned(),
            "line 1, column 1: an object is expected here",
        ),
        ("{}".to_owned(), "line 1, column 2: missing field `id`"),
        (
            EXAMPLE.replace("15420", "\"many\""),
            "line 22, column 23: invalid type: string \"many\", expected u64",
        ),
        (
            EXAMPLE.replace("in-progress", "begun"),
            "line 10, column 23: unknown variant `begun`",
        ),
        (
            EXAMPLE.replace("2025-01-15T10:30:00Z", "today"),
            "line 3, column 22: ",
        ),
        (
            EXAMPLE.chars().take(300).collect(),
            "line 8, column 51: EOF while parsing",
        ),
    ] {
        let path = home.put(ID, content);
        let problem = store.open(ID).unwrap_err();
        let expected = format!("`{}` is damaged: {expected}", path.display());
        assert!(problem.to_string().starts_with(&expected), "{problem}");
        assert!(problem.hint().unwrap().contains("remove"));
    }
    // The session is free again.
    home.put(ID, EXAMPLE);
    store.open(ID).unwrap();
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_a_session_or_damaged(content in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64)) {
        let _ = parse_json::<SessionFile>(&content);
        let _ = parse_json::<Outlined>(&content);
    }
}
