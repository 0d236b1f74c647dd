//! Network access in a strict sandbox: only the named hosts can be reached.

use std::process::Command;

use crate::support::agent::{AgentProject, PASS, done, last_told, reply};
use crate::support::{Answer, Finished, ModelServer, TestProject, bubblewrap_works, skipped};

const NOTHING: &str = "Nothing to do.";

/// Functions of a build that speaks to the proxy directly. `say` sends a text with printf's escapes, and prints the
/// answer; `status` prints only the status code.
const TALK: &str = r#"#!/usr/bin/env bash
trap '' PIPE
proxy=/dev/tcp/127.0.0.1/${http_proxy##*:}
say() { exec 3<>$proxy; printf "$1" >&3 2>/dev/null; cat <&3 2>/dev/null; exec 3>&-; }
status() { echo "$1: $(say "$2" | head -n 1 | cut -d ' ' -f 2)"; }
"#;

/// Returns whether builds can be strict here, and speak to the proxy.
fn can_talk() -> bool {
    if Command::new("bash").arg("--version").output().is_err() {
        skipped("there is no bash");
        return false;
    }
    bubblewrap_works()
}

/// A host that says hello on every request.
fn host() -> ModelServer {
    ModelServer::start((0..100).map(|_| Answer::new(200, &[], "hello")))
}

/// Returns host and port in the form of `--allow-host`.
fn name(server: &ModelServer) -> String {
    server.url().replace("http://", "")
}

/// Runs this build in a strict sandbox, with these flags.
fn run(build: &str, flags: &[&str]) -> Finished {
    let server = ModelServer::gemini(&[NOTHING; 4]);
    let project = TestProject::new()
        .with(&server)
        .program("build.sh", format!("{TALK}{build}\n"));
    project.run(&[&["--sandbox", "strict"], flags].concat())
}

/// Returns a build's output.
fn output(run: &Finished) -> String {
    let log = run.logged("initial-build.txt");
    log.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn a_named_host_is_reached_and_no_other() {
    if !can_talk() {
        return;
    }
    let (named, other) = (host(), host());
    let (a, b) = (name(&named), name(&other));
    let build = format!(
        r"
        say 'GET http://{a}/x HTTP/1.1\r\n\r\n' | tail -n 1; echo
        say 'CONNECT {a} HTTP/1.1\r\n\r\nGET /y HTTP/1.1\r\n\r\n' | tail -n 1; echo
        say 'CONNECT {b} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n' | tail -n 1
        status plain 'GET http://{b}/ HTTP/1.1\r\n\r\n'
        status outside 'CONNECT 198.51.100.1:443 HTTP/1.1\r\n\r\n'
        status metadata 'GET http://169.254.169.254/latest/ HTTP/1.1\r\n\r\n'
        for direct in {a} {b}; do
            (exec 4<>/dev/tcp/${{direct/://}}) 2>/dev/null && echo direct
        done
        true"
    );
    let run = run(&build, &["--allow-host", &a]).exits(0);
    let refused = |host: &str| format!("`{host}` is not allowed; `--allow-host {host}` allows it");
    let expected = format!(
        "hello\nhello\n{}\nplain: 403\noutside: 403\nmetadata: 403\n",
        refused(&b)
    );
    assert_eq!(output(&run), expected);
    let lines: Vec<_> = named.requests().into_iter().map(|one| one.line).collect();
    assert_eq!(lines, ["GET /x HTTP/1.1", "GET /y HTTP/1.1"]);
    assert!(other.requests().is_empty());
    // Each host once, although one of them was requested twice.
    let warnings = run.result()["warnings"].clone();
    let about = |host: &str| format!("build.sh could not reach a host: {}", refused(host));
    let expected = [
        "the reply has no edits".into(),
        about(&b),
        "build.sh could not reach a host: `198.51.100.1:443` is not allowed; `--allow-host 198.51.100.1` allows it".into(),
        "build.sh could not reach a host: `169.254.169.254:80` is not allowed; `--allow-host 169.254.169.254` allows it".into(),
    ];
    assert_eq!(warnings, serde_json::json!(expected));
    run.says(&[&about(&b)]);
}

/// Requests, without the empty line at their end, and the status of each. `LOCAL` is the allowed host, with a name and
/// the `PORT`; `OTHER` is not allowed.
const SPELLINGS: [(&str, &str, &str); 18] = [
    ("odd-case", "CONNECT LocalHost:PORT HTTP/1.1", "200"),
    ("its-address", "CONNECT 127.0.0.1:PORT HTTP/1.1", "403"),
    (
        "mapped-address",
        "CONNECT [::ffff:127.0.0.1]:PORT HTTP/1.1",
        "403",
    ),
    ("short-address", "CONNECT 127.1:PORT HTTP/1.1", "400"),
    ("number", "CONNECT 2130706433:PORT HTTP/1.1", "400"),
    ("user", "CONNECT OTHER@LOCAL HTTP/1.1", "400"),
    ("user-of-other", "CONNECT LOCAL@OTHER HTTP/1.1", "400"),
    ("user-in-url", "GET http://LOCAL@OTHER/ HTTP/1.1", "400"),
    ("dot", "CONNECT localhost.:PORT HTTP/1.1", "400"),
    ("backslash", r"GET http://OTHER\\@LOCAL/ HTTP/1.1", "400"),
    (
        "bare-return",
        r"GET http://LOCAL/ HTTP/1.1\rHost: OTHER",
        "400",
    ),
    (
        "folded",
        r"GET http://LOCAL/ HTTP/1.1\r\nX: a\r\n OTHER",
        "400",
    ),
    ("relative", r"GET / HTTP/1.1\r\nHost: LOCAL", "400"),
    ("https", "GET https://LOCAL/ HTTP/1.1", "400"),
    (
        "chunked",
        r"POST http://LOCAL/ HTTP/1.1\r\nTransfer-Encoding: chunked",
        "411",
    ),
    (
        "lengths",
        r"POST http://LOCAL/ HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 9",
        "411",
    ),
    (
        "host-header",
        r"GET http://LOCAL/ HTTP/1.1\r\nHost: OTHER",
        "200",
    ),
    ("huge", "GET http://LOCAL/HUGE HTTP/1.1", "431"),
];

#[test]
fn no_spelling_leads_to_another_host() {
    if !can_talk() {
        return;
    }
    let (named, other) = (host(), host());
    let port = name(&named).replace("127.0.0.1:", "");
    let local = format!("localhost:{port}");
    let (mut build, mut expected) = (String::new(), String::new());
    for (what, request, status) in SPELLINGS {
        let request = request
            .replace("LOCAL", &local)
            .replace("OTHER", &name(&other))
            .replace("PORT", &port)
            .replace("HUGE", &"x".repeat(20_000));
        let is_tunnel = request.starts_with("CONNECT");
        let rest = if is_tunnel {
            r"GET / HTTP/1.1\r\n\r\n"
        } else {
            ""
        };
        build += &format!("status {what} '{request}\\r\\n\\r\\n{rest}'\n");
        expected += &format!("{what}: {status}\n");
    }
    let run = run(&build, &["--allow-host", &local]).exits(0);
    assert_eq!(output(&run), expected);
    assert!(other.requests().is_empty());
    let requests = named.requests();
    let hosts: Vec<_> = requests.iter().map(|one| one.header("host")).collect();
    assert_eq!(hosts, [None, Some(local.as_str())]);
}

#[test]
fn a_connection_carries_one_request() {
    if !can_talk() {
        return;
    }
    let (first, second) = (host(), host());
    let (a, b) = (name(&first), name(&second));
    // Both are allowed, so that only the connection matters; the second request comes at once, or after the first was
    // answered.
    let build = format!(
        r"
        say 'POST http://{a}/1 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET http://{b}/2 HTTP/1.1\r\n\r\n' >/dev/null
        exec 3<>$proxy
        printf 'GET http://{a}/3 HTTP/1.1\r\nConnection: keep-alive\r\n\r\n' >&3
        cat <&3 | tail -n 1; echo
        printf 'GET http://{b}/4 HTTP/1.1\r\n\r\n' >&3 2>/dev/null
        cat <&3 2>/dev/null
        true"
    );
    let run = run(&build, &["--allow-host", &a, "--allow-host", &b]).exits(0);
    assert_eq!(output(&run), "hello\n");
    let requests = first.requests();
    assert!(
        requests
            .iter()
            .all(|one| one.header("connection") == Some("close"))
    );
    assert!(requests.iter().any(|one| one.line == "GET /3 HTTP/1.1"));
    assert!(requests.len() <= 2 && second.requests().is_empty());
}

#[test]
fn idle_connections_block_no_others() {
    if !can_talk() {
        return;
    }
    let named = host();
    let a = name(&named);
    // More connections than a sandbox may have: the last one waits until these are closed.
    let build = format!(
        r"
        exec 9<>$proxy; printf 'GET http' >&9
        for n in {{1..100}}; do eval 'exec {{fd}}<>$proxy'; done
        status late 'GET http://{a}/ HTTP/1.1\r\n\r\n'
        echo silent: $(head -n 1 <&9 | cut -d ' ' -f 2)"
    );
    let run = run(&build, &["--allow-host", &a]).exits(0);
    assert_eq!(output(&run), "late: 200\nsilent: 408\n");
}

#[test]
fn a_tunnel_ends_with_its_sandbox() {
    if !can_talk() {
        return;
    }
    // The server handles one connection at a time, and keeps the first one until it is closed.
    let (silence, _told) = Answer::silence();
    let named = ModelServer::start([silence, Answer::new(200, &[], "hello")]);
    let a = name(&named);
    let build = format!(
        r"
        if test -e second; then say 'GET http://{a}/ HTTP/1.1\r\n\r\n' | tail -n 1; exit; fi
        touch second
        exec 3<>$proxy
        printf 'CONNECT {a} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n' >&3
        head -n 1 <&3
        (trap '' TERM; setsid sleep 1000) >/dev/null 2>&1 &
        exit 1"
    );
    let run = run(&build, &["--allow-host", &a]).exits(0);
    assert!(output(&run).contains("200 Connection established"));
    assert!(run.logged("repair-query-1-build.txt").ends_with("hello"));
}

#[test]
fn programs_find_the_proxy_by_the_variables_that_they_know() {
    if Command::new("curl").arg("--version").output().is_err() {
        return skipped("there is no curl");
    }
    if !can_talk() {
        return;
    }
    let (named, other) = (host(), host());
    let (a, b) = (name(&named), name(&other));
    let port = b.rsplit(':').next().unwrap();
    let build = format!(
        r#"
        curl -sS http://{a}/plain; echo
        curl -sS --proxytunnel http://{a}/tunnel; echo
        curl -sS -o /dev/null -w '%{{http_code}}\n' http://127.0.0.2:{port}/
        # What the sandbox itself serves is not outside.
        curl -s http://localhost:{port}/ || echo "nobody there""#
    );
    let run = run(&build, &["--allow-host", &a]).exits(0);
    assert_eq!(output(&run), "hello\nhello\n403\nnobody there\n");
    let lines: Vec<_> = named.requests().into_iter().map(|one| one.line).collect();
    assert_eq!(lines, ["GET /plain HTTP/1.1", "GET /tunnel HTTP/1.1"]);
}

#[test]
fn without_a_named_host_there_is_no_proxy() {
    if !can_talk() {
        return;
    }
    let build = "env | grep -i _proxy; (exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null || echo none";
    assert_eq!(output(&run(build, &[]).exits(0)), "none\n");
}

#[test]
fn an_agents_commands_reach_the_named_host_and_no_other() {
    if !can_talk() {
        return;
    }
    let (named, other) = (host(), host());
    let (a, b) = (name(&named), name(&other));
    let command = format!(
        "bash -c 'for host in {a} {b}; do exec 3<>/dev/tcp/127.0.0.1/3128; printf \"GET http://$host/ HTTP/1.1\\r\\n\\r\\n\" >&3; tail -n 1 <&3; echo; done'"
    );
    let (agent, server) =
        AgentProject::scripted(&[reply("COMMAND", &command), done(), PASS.to_owned()]);
    let run = agent.run(&["-p", "go", "--sandbox", "strict", "--allow-host", &a]);
    let refusal = format!("`{b}` is not allowed; `--allow-host {b}` allows it");
    let warning = format!("a command could not reach a host: {refusal}");
    let run = run.exits(0).says(&[&warning]);
    assert_eq!(run.result()["warnings"], serde_json::json!([warning]));
    let told = last_told(&server, 1);
    assert!(
        told.contains("hello\n") && told.contains(&refusal),
        "{told}"
    );
    assert!(other.requests().is_empty());
}

#[test]
fn hosts_are_allowed_in_a_strict_sandbox_alone_and_by_their_names() {
    let project = TestProject::new();
    for arguments in [
        &["--allow-host", "crates.io"][..],
        &["--sandbox", "off", "--allow-host", "crates.io"],
        &["--cc", "--allow-host", "crates.io"],
        &["dev", "-p", "go", "--allow-host", "crates.io"],
    ] {
        let run = project.run(arguments).exits(2);
        run.says(&["`--allow-host` needs `--sandbox strict`", "hint: see"]);
    }
    for wrong in ["*.crates.io", "https://crates.io", "crates.io.", ""] {
        let run = project.run(&["--sandbox", "strict", "--allow-host", wrong]);
        run.exits(2)
            .says(&["without wildcards", "`127.0.0.1:8080`"]);
    }
    assert!(project.runs().is_empty());
}
