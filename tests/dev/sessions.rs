//! Sessions: saved after each step, resumed, listed, exclusive.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::agent::{
    AgentProject, Endless, PASS, done, last_told, reply, streamed, told, write,
};
use crate::support::{Answer, Finished, ModelServer, openai};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

#[test]
fn a_session_is_kept_for_its_user_alone_and_can_be_resumed() {
    let (agent, server) = AgentProject::scripted(&[
        write("a.txt", "a\n"),
        done(),
        PASS.to_owned(),
        done(),
        PASS.to_owned(),
    ]);
    agent.work("first").exits(0);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&agent.session_path()), 0o600);
    assert_eq!(mode(&agent.home("config.json")), 0o600);
    let id = agent.session()["id"].as_str().unwrap().to_owned();
    let map: Value =
        serde_json::from_slice(&fs::read(agent.home("sessions/directory-map.json")).unwrap())
            .unwrap();
    let root = agent.project.path("").canonicalize().unwrap();
    assert_eq!(map[root.to_str().unwrap()], id.as_str());

    agent.run(&["--resume", "-p", "second"]).exits(0);
    let resumed = told(&server, 3);
    assert!(
        resumed.contains("<user_request>\nfirst\n") && resumed.contains("a.txt"),
        "{resumed}"
    );
    assert!(resumed.contains("<user_request>\nsecond\n"), "{resumed}");
    assert_eq!(agent.session()["id"], id.as_str());
    assert_eq!(agent.session()["originalPrompt"], "first");
}

#[test]
fn a_request_that_the_model_refuses_or_that_is_too_long_does_not_stay() {
    let mut refusal = openai("");
    refusal["choices"][0]["finish_reason"] = "content_filter".into();
    let server = ModelServer::start([
        streamed(&done()),
        streamed(PASS),
        Answer::json(&refusal),
        streamed("What was done."),
        streamed(&done()),
        streamed(PASS),
    ]);
    let agent = AgentProject::new(&server).configured(&json!({"maxContextTokens": 8000}));
    agent.work("a first one").exits(0);
    let refused = agent.run(&["--resume", "-p", "say xyzzy"]).exits(4);
    refused.says(&["hint: the request is not in the session any more"]);
    assert_eq!(agent.session()["state"], "complete", "the first request");
    let long = "plugh ".repeat(16000);
    agent.run(&["--resume", "-p", &long]).exits(4);
    agent.run(&["--resume", "-p", "hello"]).exits(0);
    let asked = server.requests();
    let sent = asked
        .iter()
        .skip(asked.len() - 2)
        .map(|asked| asked.json().to_string());
    for prompt in sent {
        assert!(prompt.contains("hello"), "{prompt}");
        assert!(
            !prompt.contains("xyzzy") && !prompt.contains("plugh"),
            "{prompt}"
        );
    }
}

#[test]
fn the_last_model_of_a_session_is_named_with_a_flag_that_works() {
    let replies = [done(), PASS.to_owned(), done(), PASS.to_owned()];
    let (agent, _server) = AgentProject::scripted(&replies);
    agent.work("first").exits(0);
    let agent = agent.with_variable("DEV_AGENT_MODEL", "another");
    let resumed = agent.run(&["--resume", "-p", "second"]).exits(0);
    resumed.says(&["`another` is asked; the session's last model was `test-model`\n"]);
    let table = r#"{"models": {"another": {"provider": "openai"}}}"#;
    let agent = agent.with_file("agent-config/models.json", table);
    let resumed = agent
        .with_variable("DEV_AGENT_MODEL", "third")
        .run(&["--resume", "-p", "third"]);
    resumed.says(&["last model was `another` (`--model another`)"]);
}

#[test]
fn a_named_session_is_begun_and_resumed() {
    let (agent, server) =
        AgentProject::scripted(&[done(), PASS.to_owned(), done(), PASS.to_owned()]);
    agent.run(&["--session", ID, "-p", "one"]).exits(0);
    agent.run(&["--session", ID, "-p", "two"]).exits(0);
    assert_eq!(agent.session()["id"], ID);
    assert!(told(&server, 2).contains("<user_request>\none\n"));
    agent
        .run(&["--session", "../../etc/passwd", "-p", "x"])
        .exits(2);
    let (other, _server) = AgentProject::scripted(&[done()]);
    other
        .run(&["--resume", "-p", "x"])
        .exits(2)
        .says(&["no session", "hint:"]);
}

#[test]
fn a_session_that_is_killed_in_a_command_continues_at_its_last_step() {
    let endless = Endless::new();
    let (agent, server) = AgentProject::scripted(&[
        write("a.txt", "a\n"),
        reply("COMMAND", &endless.command()),
        done(),
        PASS.to_owned(),
    ]);
    let mut child = agent.spawn(&["-p", "go"]);
    endless.begins(&agent);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(endless.ends(), "the command outlives the agent");
    let listed = agent.run(&["sessions", "list", "--json"]).exits(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["sessions"][0]["state"], "interrupted");
    let id = &listed["sessions"][0]["id"];

    let name = agent.project.runs().pop().unwrap();
    let name = name.file_name().unwrap().to_str().unwrap().to_owned();
    let story = agent.project.run(&["log", &name]).exits(0).stdout;
    let cut_short = "The call did not come to its end: the run ended first.";
    assert!(story.contains(cut_short), "{story}");

    // The completed part can be replayed.
    let replayed = agent
        .command(&["--replay", &name])
        .env("PATH", "/nowhere")
        .output();
    let replayed = Finished::new(&agent.project, &[], replayed.unwrap());
    replayed.exits(4).says(&["0003-step-response.json"]);
    assert_eq!(server.requests().len(), 2);

    agent
        .run(&["--session", id.as_str().unwrap(), "-p", ""])
        .exits(0);
    let resumed = told(&server, 2);
    assert!(
        resumed.contains("a.txt") && resumed.contains("sleep 1000"),
        "{resumed}"
    );
    assert!(
        last_told(&server, 2).contains("interrupted"),
        "{}",
        last_told(&server, 2)
    );
    assert_eq!(server.requests().len(), 4);
    assert_eq!(agent.session()["state"], "complete");
}

#[test]
fn a_session_that_is_killed_while_the_model_thinks_asks_it_again() {
    let (silence, waiting) = crate::support::Answer::silence();
    let texts = [done(), PASS.to_owned()];
    let answers = [
        crate::support::agent::streamed(&reply("READ_FILE", "\"src/main.rs\"")),
        silence,
    ]
    .into_iter()
    .chain(
        texts
            .iter()
            .map(|text| crate::support::agent::streamed(text)),
    );
    let server = crate::support::ModelServer::start(answers);
    let agent = AgentProject::new(&server);
    let mut child = agent.spawn(&["-p", "go"]);
    waiting.recv().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    agent.run(&["--resume", "-p", ""]).exits(0);
    assert_eq!(last_told(&server, 1), last_told(&server, 2));
}

#[test]
fn directories_whose_names_are_not_text_have_sessions_of_their_own() {
    let (agent, _server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    let directory = |name: &[u8]| {
        let directory = agent.project.path("").join(OsStr::from_bytes(name));
        fs::create_dir(&directory).unwrap();
        directory
    };
    let run = |directory: &Path, arguments: &[&str]| {
        let output = agent.command(arguments).current_dir(directory).output();
        Finished::new(&agent.project, arguments, output.unwrap())
    };
    run(&directory(b"x\xff"), &["-p", "one"]).exits(0);
    run(&directory(b"x\xfe"), &["--resume", "-p", "two"])
        .exits(2)
        .says(&["no session"]);
}

#[test]
fn tokens_that_a_server_does_not_tell_are_counted() {
    let answer = |text: &str| {
        let message = json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]});
        crate::support::Answer::new(200, &[], message.to_string())
    };
    let server = crate::support::ModelServer::start([answer(&done()), answer(PASS)]);
    let agent = AgentProject::new(&server);
    agent.work("go").exits(0);
    let tokens = agent.session()["totalTokens"].as_u64().unwrap();
    assert!((500..5000).contains(&tokens), "{tokens}");
}

#[test]
fn two_processes_on_one_session_exclude_each_other() {
    let (silence, waiting) = crate::support::Answer::silence();
    let server = crate::support::ModelServer::start([silence]);
    let agent = AgentProject::new(&server);
    let mut child = agent.spawn(&["--session", ID, "-p", "go"]);
    waiting.recv().unwrap();
    agent
        .run(&["--session", ID, "-p", "me too"])
        .exits(3)
        .says(&[ID, "in use", &child.id().to_string()]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn sessions_are_listed_newest_first() {
    let replies: Vec<String> = (0..2).flat_map(|_| [done(), PASS.to_owned()]).collect();
    let (agent, _server) = AgentProject::scripted(&replies);
    agent.run(&["sessions", "list"]).exits(0);
    assert!(
        agent.home("config.json").exists(),
        "made at the first start"
    );
    agent.work("the first one\nwith a second line").exits(0);
    agent.work("the second one").exits(0);
    let list = agent.run(&["sessions", "list"]).exits(0).stdout.clone();
    let second = list.find("the second one").unwrap();
    assert!(second < list.find("the first one").unwrap(), "{list}");
    assert!(
        list.contains("complete") && !list.contains("with a second line"),
        "{list}"
    );
    for flags in [&["--json"][..], &["--output-format", "json"]] {
        let arguments: Vec<&str> = ["sessions", "list"].iter().chain(flags).copied().collect();
        let json: Value = serde_json::from_str(&agent.run(&arguments).exits(0).stdout).unwrap();
        assert_eq!(json["sessions"].as_array().unwrap().len(), 2, "{json}");
    }
}

#[test]
fn sessions_unused_for_long_are_removed() {
    let (agent, _server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    agent.run(&["--session", ID, "-p", "old"]).exits(0);
    let path = agent.home(&format!("sessions/{ID}.json"));
    let mut old: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    old["updatedAt"] = json!("2020-01-01T00:00:00Z");
    fs::write(&path, old.to_string()).unwrap();
    fs::write(agent.home("sessions/notes.txt"), "mine").unwrap();
    agent.run(&["sessions", "list"]).exits(0);
    assert!(!path.exists());
    assert!(agent.home("sessions/notes.txt").exists());
}

#[test]
fn a_damaged_session_is_reported_with_its_position() {
    let (agent, _server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    agent.run(&["--session", ID, "-p", "go"]).exits(0);
    fs::write(agent.home(&format!("sessions/{ID}.json")), "{\"id\": 3}").unwrap();
    agent
        .run(&["--session", ID, "-p", "go"])
        .exits(3)
        .says(&[ID, "line 1", "hint:"]);
    let list = agent.run(&["sessions", "list"]).exits(0);
    assert!(list.stdout.contains("damaged"), "{}", list.stdout);
}

#[test]
fn a_recorded_session_replays_without_a_server() {
    let (agent, server) = AgentProject::scripted(&[
        write("a.txt", "a\n"),
        reply("ASK_USER", "Which?"),
        reply("COMMAND", "cat a.txt"),
        done(),
        PASS.to_owned(),
    ]);
    agent.typed(&[], "go\nthe second\n").exits(0);
    drop(server);
    let run = agent.project.runs().pop().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    agent.project.run(&["undo"]).exits(0);
    assert!(!agent.project.path("a.txt").exists());
    let replayed = agent.run(&["--replay", &name]).exits(0);
    assert_eq!(agent.project.read("a.txt"), "a\n");
    let answers = &replayed.result()["agent"]["answers"];
    assert_eq!(*answers, json!(["the second"]));
}

#[test]
fn a_conversation_that_grows_too_long_is_compressed() {
    let long = "word ".repeat(4000);
    let (agent, server) = AgentProject::scripted(&[
        reply("READ_FILE", "\"long.txt\""),
        "SUMMARY OF IT ALL".to_owned(),
        done(),
        PASS.to_owned(),
    ]);
    let agent = agent
        .with_file("long.txt", &long)
        .configured(&json!({"maxContextTokens": 4000}));
    agent.work("read it").exits(0);
    let asked = told(&server, 1);
    assert!(
        asked.contains("You are a context compression assistant."),
        "{asked}"
    );
    assert!(
        asked.contains("<conversation>") && asked.contains("READ_FILE"),
        "{asked}"
    );
    let after = last_told(&server, 2);
    assert!(
        after.starts_with("[CONTEXT SUMMARY]\n\n") && after.contains("SUMMARY OF IT ALL"),
        "{after}"
    );
    assert!(
        after.contains("[ORIGINAL REQUEST]\n\n") && after.contains("read it"),
        "{after}"
    );
    let session = agent.session();
    assert_eq!(session["compressionCount"], 1);
    let event = &session["compressions"][0];
    assert!(
        event["tokensBefore"].as_u64() > event["tokensAfter"].as_u64(),
        "{event}"
    );
}

#[test]
fn thoughts_in_a_summary_are_dropped() {
    let long = "word ".repeat(4000);
    let (agent, server) = AgentProject::scripted(&[
        reply("READ_FILE", "\"long.txt\""),
        "<think>\nThey read a file.\n</think>\n\nSUMMARY".to_owned(),
        done(),
        PASS.to_owned(),
    ]);
    let agent = agent
        .with_file("long.txt", &long)
        .configured(&json!({"maxContextTokens": 4000}));
    agent.work("read it").exits(0);
    let after = last_told(&server, 2);
    assert!(
        after.starts_with("[CONTEXT SUMMARY]\n\n<context_summary>\nSUMMARY\n</context_summary>"),
        "{after}"
    );
    assert!(!agent.session()["history"].to_string().contains("They read"));
}

#[test]
fn a_summary_that_is_a_thought_alone_is_asked_for_again() {
    let long = "word ".repeat(4000);
    let (agent, server) = AgentProject::scripted(&[
        reply("READ_FILE", "\"long.txt\""),
        "<think>\nThey read a file.".to_owned(),
        "SUMMARY".to_owned(),
        done(),
        PASS.to_owned(),
    ]);
    let agent = agent
        .with_file("long.txt", &long)
        .configured(&json!({"maxContextTokens": 4000}));
    agent.work("read it").exits(0);
    assert!(last_told(&server, 3).contains("<context_summary>\nSUMMARY\n"));
}

/// The answer of a server whose model accepts less than the settings say.
fn too_long() -> Answer {
    Answer::error(
        400,
        &json!({"error": {"code": "context_length_exceeded", "type": "invalid_request_error",
            "message": "This model's maximum context length is 4096 tokens."}}),
    )
}

#[test]
fn a_prompt_that_the_model_does_not_take_is_compressed_once() {
    let answers = || {
        [
            streamed(&reply("READ_FILE", "\"long.txt\"")),
            too_long(),
            streamed("SUMMARY OF IT ALL"),
        ]
    };
    let project = |server: &ModelServer| {
        AgentProject::new(server).with_file("long.txt", &"word ".repeat(4000))
    };
    let server = ModelServer::start(
        answers()
            .into_iter()
            .chain([streamed(&done()), streamed(PASS)]),
    );
    let agent = project(&server);
    let run = agent.work("read it").exits(0);
    let asked = told(&server, 2);
    assert!(asked.contains("You are a context compression assistant."));
    assert!(asked.len() < told(&server, 1).len() * 2 / 3, "{asked}");
    let after = last_told(&server, 3);
    assert!(
        after.starts_with("[CONTEXT SUMMARY]\n\n") && after.contains("SUMMARY OF IT ALL"),
        "{after}"
    );
    assert_eq!(agent.session()["compressionCount"], 1);
    drop(server);
    let replayed = agent.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(
        replayed.result()["attempts"].as_array().map(Vec::len),
        run.result()["attempts"].as_array().map(Vec::len)
    );

    let server = ModelServer::start(answers().into_iter().chain([too_long()]));
    let agent = project(&server);
    let run = agent.work("read it").exits(4);
    run.says(&["400", "context_length_exceeded", "hint:"]);
    assert_eq!(server.requests().len(), 4);

    // A conversation that is still too long after compression ends with the model's first message.
    let server = ModelServer::start([too_long(), too_long()]);
    let agent = AgentProject::new(&server);
    let run = agent.work("go").exits(4).says(&["context_length_exceeded"]);
    assert_eq!(server.requests().len(), 2);
    let session = agent.session();
    assert_eq!(session["compressionCount"], 0, "{session}");
    drop(server);
    agent
        .run(&["--replay", &run.folder])
        .exits(4)
        .says(&["context_length_exceeded"]);
}

#[test]
fn a_compression_that_does_not_shrink_is_an_error_and_keeps_the_history() {
    let long = "word ".repeat(4000);
    let (agent, _server) =
        AgentProject::scripted(&[reply("READ_FILE", "\"long.txt\""), "much ".repeat(5000)]);
    let agent = agent
        .with_file("long.txt", &long)
        .configured(&json!({"maxContextTokens": 4000}));
    agent.work("read it").exits(4).says(&["tokens", "hint:"]);
    let session = agent.session();
    assert_eq!(session["compressionCount"], 0);
    assert!(session["history"].to_string().contains("word word"));
}

#[test]
fn an_unanswered_question_is_reported_when_the_user_is_gone() {
    let (agent, server) = AgentProject::scripted(&[
        reply("ASK_USER", "Which?"),
        reply("COMMAND", "true"),
        done(),
        PASS.to_owned(),
    ]);
    let mut child = agent.spawn(&[]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"go\n").unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("Which?")));
    child.kill().unwrap();
    child.wait().unwrap();
    agent.run(&["--resume", "-p", ""]).exits(0);
    let request = server.requests()[1].json();
    let last = request["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone();
    assert_eq!(last["role"], "user", "{last}");
    assert!(
        last["content"].as_str().unwrap().contains("interrupted"),
        "{last}"
    );
}

#[test]
fn a_replay_equals_the_run_and_cannot_be_resumed() {
    let long = "word ".repeat(4000);
    let replies = [
        reply("READ_FILE", "\"long.txt\""),
        "SUMMARY".to_owned(),
        done(),
        PASS.to_owned(),
    ];
    let (agent, server) = AgentProject::scripted(&replies);
    let agent = agent
        .with_file("long.txt", &long)
        .configured(&json!({"maxContextTokens": 4000}));
    agent.work("read it").exits(0);
    drop(server);
    let map = || fs::read_to_string(agent.home("sessions/directory-map.json")).unwrap();
    let before = map();
    fs::remove_file(agent.home("config.json")).unwrap();
    let run = agent.project.runs().pop().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap();
    let replayed = agent.run(&["--replay", name]).exits(0);
    assert_eq!(replayed.result()["attempts"][1]["kind"], "compression");
    assert_eq!(map(), before);
    agent.run(&["--replay", name, "-p", "x"]).exits(2);
}

#[test]
fn a_session_without_a_request_is_not_saved() {
    let (agent, _server) = AgentProject::scripted(&[done()]);
    // Text meant as a command is not sent either.
    for (typed, told) in [
        ("", ""),
        ("/nope\n", "`/exit` ends"),
        (
            "/help\n",
            "describe the task in one line (`-p -` reads several)",
        ),
        ("/help\n", "\n  /exit              quit, as `/quit` does\n"),
        ("!ls\n", "`!` runs no command here"),
    ] {
        let run = agent.typed(&[], typed).exits(0).says(&[told]);
        assert_eq!(run.stdout, "nothing was asked for\n");
    }
    agent.run(&["--resume", "-p", "x"]).exits(2);
}

#[test]
fn in_a_subdirectory_the_project_above_is_worked_on() {
    let (agent, server) = AgentProject::scripted(&[write("a.txt", "x\n"), done(), PASS.to_owned()]);
    let agent = agent
        .with_file("AGENTS.md", "Use tabs.\n")
        .with_file("sub/x", "text\n");
    let arguments = ["-p", "go"];
    let mut command = agent.command(&arguments);
    let output = command.current_dir(agent.project.path("sub")).output();
    let run = Finished::new(&agent.project, &arguments, output.unwrap()).exits(0);
    run.says(&["project: .."]);
    assert_eq!(agent.project.read("a.txt"), "x\n");
    let entries = std::fs::read_dir(agent.project.path("sub")).unwrap();
    assert_eq!(entries.count(), 1);
    assert!(told(&server, 0).contains("Use tabs."));
}
