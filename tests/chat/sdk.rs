//! A recorded exchange of the vendor's own client, which interprets the streams and builds requests in the same way.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::anthropic::{Anthropic, KEY, Reply, call, say, thinking};
use crate::support::chat::ChatProject;
use crate::support::skipped;

/// The folder into which `tests/examples/install.sh` installs the client.
const FOLDER: &str = "target/validators";

#[test]
fn the_vendors_own_client_has_the_same_exchange() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    if !folder.join("node_modules/@anthropic-ai/sdk").exists() {
        skipped("the vendor's client is not installed");
        return;
    }
    let script = || -> [Reply; 3] {
        [
            thinking("Let me look: \u{1f600} \"é\"\n")
                .sealed("c2VhbGVk")
                .say("I look.")
                .call("read_file", json!({"path": "src/main.rs", "limit": 2}))
                .call("list_files", json!({})),
            call("read_file", json!({"path": "no such file"})),
            say("There is \u{1f600}."),
        ]
    };
    let (chat, server) = ChatProject::scripted(script());
    let run = chat.ask("Look around").exits(0);
    let ours = server.messages();
    let answers: Vec<&Value> = ours[1..].iter().map(last).collect();
    let conversation = json!({"request": ours[0], "answers": answers}).to_string();

    let theirs = Anthropic::start(script());
    let mut node = Command::new("node")
        .args([
            "--input-type=module",
            "-",
            &theirs.url(),
            KEY,
            &conversation,
        ])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let client = include_bytes!("sdk.mjs");
    node.stdin.take().unwrap().write_all(client).unwrap();
    let node = node.wait_with_output().unwrap();
    assert!(node.status.success());
    assert_eq!(String::from_utf8_lossy(&node.stdout), run.stdout);

    let (sent, all) = (theirs.messages(), server.requests("POST"));
    assert_eq!(sent.len(), ours.len());
    for (sent, ours) in sent.into_iter().zip(ours) {
        assert_eq!(unmarked(sent), unmarked(ours));
    }
    for (sent, ours) in theirs.requests("POST").iter().zip(all) {
        assert_eq!(sent.line, ours.line);
        for header in ["x-api-key", "anthropic-version", "content-type"] {
            assert_eq!(sent.header(header), ours.header(header), "{header}");
        }
    }
}

/// The last user content of a request.
fn last(request: &Value) -> &Value {
    request["messages"].as_array().unwrap().last().unwrap()
}

/// Removes cache marks, which are the sender's choice.
fn unmarked(mut request: Value) -> Value {
    match &mut request {
        Value::Object(fields) => {
            fields.remove("cache_control");
            for value in fields.values_mut() {
                *value = unmarked(value.take());
            }
        }
        Value::Array(values) => {
            for value in values {
                *value = unmarked(value.take());
            }
        }
        _ => {}
    }
    request
}
