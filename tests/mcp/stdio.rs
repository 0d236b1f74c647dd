//! Servers that are programs.

use super::interrupt;
use crate::support::{GEMINI_KEY, TestProject, ends, within_a_minute};

/// A server written in shell, which performs the handshake, and runs `body` on the next request.
fn server(body: &str) -> String {
    let hello =
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
    format!(
        "stdio:sh -c 'read hello; echo \"\"; echo noise; echo '\\''{hello}'\\''; read initialized; read request; {body}'"
    )
}

fn say(text: &str) -> String {
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":2,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    );
    format!(r"echo '\''{answer}'\''")
}

#[test]
fn a_program_is_asked_through_its_pipes() {
    let ping =
        r#"echo '\''{"jsonrpc":"2.0","id":9,"method":"ping"}'\''; read pong; echo "$pong" > pong"#;
    let body = format!("{ping}; {}; cat > rest; echo ended > end", say("far"));
    let project = TestProject::new();
    let run = project
        .run(&["mcp", "call", &server(&body), "say"])
        .exits(0);
    assert_eq!((&*run.stdout, &*run.stderr), ("far\n", ""));
    assert_eq!(
        project.read("pong"),
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n"
    );
    // The server had time to end by itself.
    assert_eq!(project.read("end"), "ended\n");
}

#[test]
fn a_program_that_does_not_speak_is_reported_with_its_last_words() {
    let project = TestProject::new();
    let doubt = "the call may have begun";
    for (server, said) in [
        (
            server("echo oh no >&2; exec >&-; sleep 0.2"),
            format!("`sh` has ended before it has answered: oh no; {doubt}"),
        ),
        (
            server("exit 3"),
            format!("`sh` has ended before it has answered; {doubt}"),
        ),
        (
            "stdio:./missing".to_owned(),
            "`./missing` cannot be started: No such file or directory (os error 2)\nhint: name a program that speaks MCP"
                .to_owned(),
        ),
    ] {
        let run = project.run(&["mcp", "call", &server, "say"]).exits(4);
        run.says(&[&said]);
    }
    let run = project.run(&["mcp", "tools", &server("exit 3")]).exits(4);
    run.says(&["hint: see why the server has ended"]);
    let late = server("sleep 600");
    let run = project.run(&["mcp", "call", &late, "say", "--timeout", "1s"]);
    run.exits(4).says(&["has not answered within 1 s"]);
}

#[test]
fn a_program_gets_no_key_of_ours_and_is_gone_after_a_signal() {
    let body = "echo \"$request\" \"$GEMINI_API_KEY\" > got; sleep 600 & echo $! > child; read more; echo \"$more\" > more; wait";
    let project = TestProject::new().variable("GEMINI_API_KEY", GEMINI_KEY);
    let child = project.start(&["mcp", "call", &server(body), "say"]);
    let started = || project.path("child").exists() && project.read("child").ends_with('\n');
    assert!(within_a_minute(started));
    interrupt(&project, child);
    assert!(!project.read("got").contains(GEMINI_KEY));
    assert!(project.read("more").contains("notifications/cancelled"));
    assert!(ends(project.read("child").trim()));
}

#[test]
fn a_program_gets_no_secret_unless_it_is_passed() {
    let names = ["MCP_BEARER_TOKEN", "GITHUB_TOKEN", "DB_PASSWORD", "DB_URL"];
    let told = "echo \"$MCP_BEARER_TOKEN,$GITHUB_TOKEN,$DB_PASSWORD,$DB_URL,$PLAIN\" > got";
    let body = format!("{told}; {}", say("far"));
    let project = names.iter().fold(TestProject::new(), |project, name| {
        project.variable(name, &format!("https://a:{name}@b"))
    });
    let project = project.variable("PLAIN", "plain");
    for (flags, expected) in [
        (&[][..], ",,,,plain\n"),
        (
            &["--pass-env", "GITHUB_TOKEN", "--pass-env", "DB_URL"],
            ",https://a:GITHUB_TOKEN@b,,https://a:DB_URL@b,plain\n",
        ),
    ] {
        let server = server(&body);
        let command = [&["mcp", "call", &server, "say"], flags].concat();
        project.run(&command).exits(0);
        assert_eq!(project.read("got"), expected);
    }
    project
        .run(&["mcp", "tools", "stdio:x", "--pass-env", "GEMINI_API_KEY"])
        .exits(2)
        .says(&["it holds a key of this program's own"]);
}

#[test]
fn daemon_in_its_own_session_ends_with_the_program() {
    let daemon = "(setsid sh -c \"echo \\$\\$ > daemon; exec sleep 600\" </dev/null >/dev/null 2>&1 &); \
        until test -s daemon; do :; done";
    for (answer, is_killed) in [(say("far"), false), ("sleep 600".to_owned(), true)] {
        let project = TestProject::new();
        let body = format!("{daemon}; {answer}");
        let mut child = project.start(&["mcp", "call", &server(&body), "say"]);
        let started = || project.path("daemon").exists() && project.read("daemon").ends_with('\n');
        assert!(within_a_minute(started));
        if is_killed {
            child.kill().unwrap();
        }
        assert_eq!(child.wait().unwrap().success(), !is_killed);
        assert!(ends(project.read("daemon").trim()), "{is_killed}");
    }
}

#[test]
fn a_program_that_never_stops_printing_is_left_at_the_time_limit() {
    let project = TestProject::new();
    for flood in ["exec yes", r#"exec yes """#] {
        let server = server(flood);
        let run = project.run(&["mcp", "call", &server, "say", "--timeout", "1s"]);
        run.exits(4).says(&["within 1 s"]);
    }
}
