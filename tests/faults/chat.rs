//! A chat that is killed between its writes, or whose writes fail: the session is complete at any time, and can be
//! continued with requests that Anthropic's API accepts.

use std::thread;

use serde_json::{Value, json};

use crate::support::anthropic::{Anthropic, Reply, say, thinking};
use crate::support::chat::ChatProject;
use crate::{MANY, THREADS, can_trace, run_with};

/// Answers with a write, a read, or the final message, depending on the progress that the request shows.
fn answer(request: &Value) -> Reply {
    let messages = request["messages"].to_string();
    if messages.contains("tool_result") {
        return say("It is there.");
    }
    thinking("I write it.")
        .call("write_file", json!({"path": "a.txt", "content": "a\n"}))
        .call("execute_command", json!({"command": "cat a.txt"}))
}

/// Injects a fault at every `apart`-th of these calls, and then continues the session.
fn sweep(calls: &str, fault: &str, apart: usize, codes: &[i32]) -> usize {
    let one_share = |share: usize| {
        let mut tried = 0;
        for nth in (1 + share * apart..MANY).step_by(THREADS * apart) {
            let server = Anthropic::making(answer);
            let chat = ChatProject::new(&server);
            let arguments = [
                "chat",
                "--auto-pilot",
                "--sandbox",
                "off",
                "-p",
                "Make a.txt",
            ];
            let Some(output) = run_with(&chat.project, &arguments, calls, fault, nth) else {
                break;
            };
            tried += 1;
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let what = format!("{fault} at {calls} {nth}: {stderr}");
            assert!(!stderr.contains("panicked"), "{what}");
            if let Some(code) = output.status.code() {
                assert!(codes.contains(&code), "{code}: {what}");
            }
            let has_session = !chat.sessions().is_empty();
            let resumed = chat.run(&["--auto-pilot", "--resume", "--sandbox", "off", "-p", "on"]);
            let is_fine = resumed.code == 0 || (resumed.code == 2 && !has_session);
            assert!(is_fine, "{what}\n{} {}", resumed.code, resumed.stderr);
            let written = std::fs::read_to_string(chat.project.path("a.txt"));
            assert!(written.as_ref().is_ok_and(|text| text == "a\n") || written.is_err());
            // No request has broken a rule.
            server.assert_clean();
        }
        tried
    };
    let one_share = &one_share;
    thread::scope(|scope| {
        let shares: Vec<_> = (0..THREADS)
            .map(|share| scope.spawn(move || one_share(share)))
            .collect();
        shares.into_iter().map(|share| share.join().unwrap()).sum()
    })
}

#[test]
fn killed_between_any_two_writes_a_session_is_whole_and_resumed() {
    if can_trace() {
        for (calls, apart) in [("rename,renameat,renameat2", 1), ("write", 4)] {
            let tried = sweep(calls, "signal=SIGKILL", apart, &[]);
            assert!(tried > 10, "{tried}");
        }
    }
}

#[test]
fn session_survives_a_full_disk_and_is_resumed() {
    if can_trace() {
        for (calls, apart) in [("fsync", 1), ("write", 4)] {
            let tried = sweep(calls, "error=ENOSPC", apart, &[0, 1, 3, 4, 6]);
            assert!(tried > 5, "{tried}");
        }
    }
}
