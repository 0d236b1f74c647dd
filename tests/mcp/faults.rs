//! A whole orchestration over each transport, with a server that fails at every call.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::server::{Got, McpServer, Reply};
use crate::support::orchestra::{
    Branch, OrchestraProject, Played, call, execute, finished, published, read_log, report,
};

/// What a server does with a call before, or instead of, answering it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// Answers 503.
    Busy,
    /// Forgets the session.
    Forgets,
    /// Performs the call, but loses the answer; of calls that change nothing, every fourth one.
    Breaks,
    /// Ends the answer's stream, and continues it for a client that reconnects.
    Interrupts,
    /// Answers, and then closes, so that the stream of answers ends between two calls.
    GoesAway,
}

/// A server with this fault, and the state of its branches.
fn server(is_older: bool, fault: Fault) -> (McpServer, Arc<Mutex<Played>>) {
    let review = |verdict| Branch::review(verdict);
    let played = Arc::new(Mutex::new(Played::of([
        Branch::done("implemented"),
        review("ISSUES"),
        Branch::done("fixed"),
        review("CLEAN"),
        Branch::done(&published()),
    ])));
    let shared = Arc::clone(&played);
    let (mut asked, mut has_failed, mut held) = (0, false, String::new());
    let answer = move |got: &Got| {
        if got.method() == "GET" {
            return Some(Reply::events(&held));
        }
        let message = got.json();
        asked += 1;
        let is_start = message["params"]["name"] == "parallel_explore";
        has_failed = !has_failed;
        let fails = has_failed;
        let now = "retry-after-ms: 1\r\n";
        match fault {
            Fault::Busy if fails => return Some(Reply::status(503, now, "busy")),
            Fault::Forgets if fails => return Some(Reply::status(404, "", "no such session")),
            Fault::Breaks if asked % 4 == 0 && !is_start => {
                let _ = result(&message, &mut shared.lock().unwrap());
                return Some(Reply::Bytes(Vec::new()));
            }
            _ => {}
        }
        let answer = result(&message, &mut shared.lock().unwrap());
        let event = format!("data: {answer}\n\n");
        Some(match fault {
            Fault::Interrupts => {
                held = event;
                Reply::events("id: 1\nretry: 1\ndata:\n\n")
            }
            Fault::GoesAway if is_older => Reply::Last(event.into()),
            _ if is_older => Reply::Bytes(event.into()),
            Fault::None => Reply::events(&event),
            _ => Reply::json(&answer),
        })
    };
    (McpServer::answering(is_older, answer), played)
}

fn result(message: &Value, played: &mut Played) -> Value {
    let result = if message["method"] == "tools/list" {
        let names = ["parallel_explore", "get_branch", "branch_read_file"];
        let tools = names.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        json!({ "tools": tools })
    } else {
        match call(&message["params"], played) {
            Ok(told) => json!({"content": [{"type": "text", "text": told.to_string()}]}),
            Err(words) => json!({"isError": true, "content": [{"type": "text", "text": words}]}),
        }
    };
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

#[test]
fn no_agent_runs_twice_and_none_is_lost_whatever_the_server_does() {
    for (is_older, fault) in [
        (false, Fault::None),
        (false, Fault::Busy),
        (false, Fault::Forgets),
        (false, Fault::Breaks),
        (false, Fault::Interrupts),
        (true, Fault::None),
        (true, Fault::Busy),
        (true, Fault::Forgets),
        (true, Fault::Breaks),
        (true, Fault::GoesAway),
    ] {
        let (server, played) = server(is_older, fault);
        let replies = [
            execute("claude_code", "Add the flag."),
            execute("codex", "Review it."),
            read_log(),
            execute("claude_code", "Fix it."),
            execute("codex", "Review it again."),
            read_log(),
            finished("The flag is there."),
        ];
        let orchestra = OrchestraProject::scripted(replies, []);
        let orchestra = orchestra.with_variable("MCP_BASE_URL", &server.url());
        let run = orchestra.run(&[]).exits(0);
        assert_eq!(report(&run)["status"], "completed", "{is_older} {fault:?}");
        assert_eq!(played.lock().unwrap().started(), 5, "{is_older} {fault:?}");
        // The recorded data suffices for a replay.
        let folder = format!("logs/{}", run.folder);
        let again = orchestra
            .project
            .run(&["orchestrate", "--headless", "--replay", &folder])
            .exits(0);
        assert_eq!(report(&again)["branches"].as_array().unwrap().len(), 5);
        assert_eq!(played.lock().unwrap().started(), 5);
    }
}
