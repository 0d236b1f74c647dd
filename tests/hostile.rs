//! Child processes and answers that are huge, slow, truncated or malicious.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Stdio;
use std::thread;

use serde_json::{Value, json};

use crate::support::{Answer, ModelServer, TestProject, gemini};

const NOTHING: &str = "Nothing to do.";
const GIB: u64 = 1 << 30;

#[test]
fn two_gigabytes_of_output_that_is_not_text_fit_in_32_megabytes_and_a_log_of_64() {
    if !fs::exists("/proc/self/status").unwrap() {
        return;
    }
    let server = ModelServer::gemini(&[NOTHING]);
    let peak = "grep VmHWM /proc/$PPID/status >> memory";
    let build = format!(
        "{peak}; head -c {} /dev/zero | tr '\\0' '\\377'; {peak}",
        2 * GIB
    );
    let project = TestProject::new().with(&server).build(&build);
    // The log is too large to be checked as in other tests.
    let mut run = project.command(&["--quiet", "--sandbox", "off"]);
    run.stdout(Stdio::null()).stderr(Stdio::null());
    assert!(run.status().unwrap().success());
    let log = project.runs()[0].join("initial-build.txt");
    let length = fs::metadata(log).unwrap().len();
    assert!((63 << 20..=64 << 20).contains(&length), "{length}");
    let peaks = project.read("memory");
    let peaks = peaks.lines().map(|line| {
        let kib = line.split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap()
    });
    let [before, after] = peaks.collect::<Vec<_>>().try_into().unwrap();
    assert!(after - before <= 8 << 10, "{before} KiB, then {after} KiB");
    // Without optimization, the program alone takes a few more.
    let is_release = env!("CARGO_BIN_EXE_code-commit").contains("/release/");
    let most = if is_release { 32 } else { 36 };
    assert!(after <= most << 10, "{after} KiB");
}

/// Runs against a server with this answer, and checks that there is one clear error and no change.
#[track_caller]
fn fails(answer: Answer, arguments: &[&str], expected: &str) {
    let server = ModelServer::start([answer]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    project
        .run(arguments)
        .exits(4)
        .says(&[expected, "hint: ", "log: logs/"]);
    assert_eq!(project.tree(), before);
}

#[test]
fn an_answer_of_a_gigabyte_is_not_read_to_its_end() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = [b"100000\r\n", vec![b' '; 1 << 20].as_slice(), b"\r\n"].concat();
    fails(
        Answer::Flood(head.into(), chunk, 1024),
        &[],
        "larger than 256 MiB",
    );
}

#[test]
fn an_answer_that_trickles_is_given_up_after_the_time_out() {
    let body = gemini("^^^a\nx\n^^^end\n").to_string();
    let whole = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    fails(
        Answer::Trickle(whole.into_bytes()),
        &["--timeout", "3s"],
        "did not finish its answer within 3s",
    );
}

#[test]
fn a_server_that_does_not_speak_tls_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream
                .unwrap()
                .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let project = TestProject::new().variable("GOOGLE_GEMINI_BASE_URL", &url);
    project
        .run(&["--timeout", "20s"])
        .exits(4)
        .says(&["no secure connection to `127.0.0.1", "hint: "]);
}

fn small_gemini() -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": "^^^a\nx\n^^^end\n"}]}, "finishReason": "STOP"}]})
}

fn small_openai() -> Value {
    json!({"choices": [{"message": {"content": "^^^a\nx\n^^^end\n"}, "finish_reason": "stop"}]})
}

/// The answer in every framing: with its length, in chunks, or up to the connection's end.
fn framings(body: &str) -> [Vec<u8>; 3] {
    let length = body.len();
    [
        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"),
        format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
        ),
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}"),
    ]
    .map(String::into_bytes)
}

#[test]
fn an_answer_that_is_cut_at_any_byte_is_never_applied() {
    let mut answers = Vec::new();
    for (model, body) in [
        ("gemini-2.5-pro", small_gemini()),
        ("gpt-5", small_openai()),
    ] {
        for whole in framings(&body.to_string()) {
            // Without its last bytes a chunked answer is incomplete, but its content is complete: keep them.
            let shortest = whole
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
                .unwrap();
            let longest = whole.iter().rposition(|byte| *byte == b'}').unwrap();
            answers.extend((shortest..=longest).map(|cut| (model, whole[..cut].to_vec())));
        }
    }
    assert!(answers.len() > 400, "{}", answers.len());
    // Most of the time they wait for the retry, which ends the run.
    let shares = answers.chunks(answers.len().div_ceil(24));
    thread::scope(|scope| {
        for share in shares {
            scope.spawn(move || {
                for (model, cut) in share {
                    let server = ModelServer::start([Answer::Raw(cut.clone())]);
                    let project = TestProject::new().with(&server);
                    let before = project.tree();
                    project
                        .run(&["--model", model, "--timeout", "30s"])
                        .exits(4);
                    assert_eq!(project.tree(), before, "cut at {}", cut.len());
                }
            });
        }
    });
}

#[test]
fn a_recorded_answer_that_is_cut_at_any_byte_is_never_applied() {
    for (model, body) in [
        ("gemini-2.5-pro", small_gemini()),
        ("gpt-5", small_openai()),
    ] {
        let body = body.to_string();
        for cut in 0..body.len() {
            let project =
                TestProject::new().file("recorded/initial-query-response.json", &body[..cut]);
            let run = project
                .run(&["--model", model, "--replay", "recorded"])
                .exits(4);
            assert!(!project.path("a").exists(), "cut at {cut}: {}", run.stderr);
        }
    }
}
