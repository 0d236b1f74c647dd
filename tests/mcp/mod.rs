//! MCP servers queried by `code-commit mcp`: faulty ones, and real ones.

mod faults;
mod older;
mod real;
mod server;
mod stdio;
mod streamable;

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use self::server::{McpServer, Reply};
use crate::support::{Finished, TestProject};

/// Sends SIGINT, and returns how the program ends, which must be at once.
fn interrupt(project: &TestProject, child: Child) -> Finished {
    let asked = Instant::now();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let run = Finished::new(project, &["mcp"], child.wait_with_output().unwrap());
    assert!(asked.elapsed() < Duration::from_secs(10));
    run.exits(130).says(&["interrupted by SIGINT"])
}

#[test]
fn invalid_server_is_a_usage_error() {
    let project = TestProject::new();
    for (arguments, said) in [
        (
            &["mcp", "tools", "nonsense?key=s3cret"][..],
            "hint: name a server like",
        ),
        (
            &["mcp", "tools", "http://example.com/mcp?key=s3cret"],
            "loopback",
        ),
        (&["mcp", "tools", "stdio:"], "is not a command"),
        (
            &["mcp", "call", "http://127.0.0.1:1", "t", "[]"],
            "a JSON object",
        ),
        (
            &["mcp", "call", "http://127.0.0.1:1", "t", "{"],
            "a JSON object",
        ),
    ] {
        let run = project.run(arguments).exits(2).says(&[said, "hint: "]);
        assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
    }
    let project = project.variable("MCP_BEARER_TOKEN", "a b");
    let asked = project.run(&["mcp", "tools", "http://127.0.0.1:1"]);
    asked.exits(3).says(&["`MCP_BEARER_TOKEN` has a blank"]);
}

#[test]
fn a_query_is_not_shown_whoever_says_it() {
    let server = McpServer::streamable([Reply::status(400, "", "no: key=s3cret-longer")]);
    let url = format!("{}?key=s3cret-longer", server.url());
    let run = TestProject::new().run(&["mcp", "tools", &url]).exits(4);
    let run = run.says(&["answers 400: no: "]);
    assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
}

#[test]
fn a_connection_that_was_not_made_has_begun_nothing() {
    // No connection to a broadcast address is possible.
    let url = "http://127.255.255.255:1/mcp";
    let asked = ["mcp", "tools", url, "--timeout", "1s"];
    let run = TestProject::new().run(&asked).exits(4);
    run.says(&["no answer", "unreachable", "try 2 in"]);
}

#[test]
fn a_server_that_is_not_there_is_tried_again() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?key=s3cret", listener.local_addr().unwrap());
    drop(listener);
    let project = TestProject::new();
    let asked = ["mcp", "tools", &url, "--timeout", "1s"];
    let run = project.run(&asked).exits(4);
    let run = run.says(&["no answer from the MCP server", "try 2 in", "hint: "]);
    assert!(!run.stderr.contains("s3cret"));
    assert!(project.runs().is_empty());
    let run = project.run(&[&asked[..], &["--output-format", "json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(json["exit"]["name"], "mcp-failed");
}
