//! Table tests of Ollama servers' answers about their models, and tests against a loopback server.

use crate::sys::error::Problem as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::thread;

use super::*;
use crate::model::{Endpoint, Proxies};
use crate::sys::interrupt::Signal;

/// Starts a server that gives each request the next of these answers, and stops answering after the last one. Returns
/// the route to it.
fn serving(answers: Vec<String>) -> Route {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut answers = answers.into_iter();
        let mut silent = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(&stream).lines();
            lines.map(Result::unwrap).find(String::is_empty).unwrap();
            match answers.next() {
                Some(answer) => stream.write_all(answer.as_bytes()).unwrap(),
                None => silent.push(stream),
            }
        }
    });
    Route {
        endpoint: Endpoint::parse("baseUrl", &url, false).unwrap(),
        proxies: Proxies::default(),
        key: None,
    }
}

fn answer(status: u16, body: &str) -> String {
    format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n\r\n{body}")
}

fn pulled(status: u16, body: &str) -> (Vec<String>, Result<(), String>) {
    let server = VendorServer::new(
        Provider::Ollama,
        serving(vec![answer(status, body)]),
        &Interrupt::never().unwrap(),
    );
    let mut seen = Vec::new();
    let done = server.pull("mistral", &mut |progress| {
        seen.push(progress.status.clone());
    });
    (seen, done.map_err(|problem| problem.to_string()))
}

#[test]
fn a_pull_shows_how_far_it_is_and_fails_in_the_servers_words() {
    let loading = r#"{"status":"pulling manifest"}"#;
    let failed = |why: &str| Err(format!("`mistral` could not be pulled: {why}"));
    let broken = || failed("the answer ended before it was done");
    for (status, end, seen, expected) in [
        (200, r#"{"status":"success"}"#, 2, Ok(())),
        (
            200,
            r#"{"error":"no space left on device"}"#,
            1,
            failed("no space left on device"),
        ),
        (200, "", 1, broken()),
        (
            500,
            "",
            0,
            failed(r#"it answers `500`: {\"status\":\"pulling manifest\"}\n"#),
        ),
    ] {
        let (told, done) = pulled(status, &format!("{loading}\n{end}"));
        assert_eq!(done, expected, "{end}");
        assert_eq!(told.len(), seen, "{end}");
    }
    let unknown = r#"{"error":"pull model manifest: file does not exist"}"#;
    let (_, done) = pulled(404, unknown);
    assert_eq!(
        done,
        failed("it answers `404`: pull model manifest: file does not exist")
    );
}

#[test]
fn a_signal_ends_any_wait() {
    for signal in [Signal::Int, Signal::Term] {
        let interrupt = Interrupt::never().unwrap();
        let server = VendorServer::new(Provider::Ollama, serving(Vec::new()), &interrupt);
        interrupt.simulate(signal);
        let installed = server.installed().unwrap_err();
        assert!(
            matches!(installed, ServerProblem::Interrupted(_)),
            "{installed}"
        );
        let pulled = server.pull("m", &mut |_| ()).unwrap_err();
        assert!(matches!(pulled, ServerProblem::Interrupted(_)), "{pulled}");
    }
}

#[test]
fn installed_models_are_listed_by_name() {
    let tags = r#"{"models":[{"name":"a:7b","model":"a:7b"},{"model":"b:latest"},{}]}"#;
    let route = serving(vec![answer(200, tags), answer(200, r#"{"models":[]}"#)]);
    let server = VendorServer::new(Provider::Ollama, route, &Interrupt::never().unwrap());
    assert_eq!(server.installed().unwrap(), ["a:7b", "b:latest"]);
    assert!(server.installed().unwrap().is_empty());
    let installed = ["a:7b".to_owned()];
    assert!(server.lack("a:7b", &installed).is_none());
    let lack = server.lack("b", &installed).unwrap();
    assert_eq!(
        lack.hint().unwrap(),
        "run `ollama pull b`, or use another model with `--model`"
    );
}

#[test]
fn a_model_without_a_tag_is_the_latest() {
    for (installed, asked, expected) in [
        ("llama3.1:8b", "llama3.1:8b", true),
        ("mistral:latest", "mistral", true),
        ("mistral:latest", "mistral:latest", true),
        (
            "hf.co/Org/Model-GGUF:Q4_K_M",
            "hf.co/org/model-gguf:Q4_K_M",
            true,
        ),
        ("llama3.1:8b", "llama3.1", false),
        ("mistral:7b", "mistral:latest", false),
    ] {
        assert_eq!(is_same(installed, asked), expected, "{installed} {asked}");
    }
}

#[test]
fn long_list_of_installed_models_is_cut() {
    assert_eq!(named(&[]), "no model is");
    assert_eq!(
        named(&["a".to_owned(), "b".to_owned()]),
        "installed are a, b"
    );
    let many: Vec<String> = (0..23).map(|n| format!("m{n}")).collect();
    assert!(named(&many).ends_with("m19 and 3 more"));
}

#[test]
fn a_pull_is_done_with_its_last_word_and_failed_with_an_error() {
    let mut seen = Vec::new();
    let mut read =
        |line: &str| read_progress(line.as_bytes(), &mut |progress| seen.push(progress.clone()));
    assert_eq!(
        read(r#"{"status": "pulling abc", "digest": "abc", "total": 9, "completed": 4}"#),
        Ok(false)
    );
    assert_eq!(read(r#"{"status": "success"}"#), Ok(true));
    let failed = read(r#"{"error": "pull model manifest: file does not exist"}"#);
    assert_eq!(
        failed,
        Err("pull model manifest: file does not exist".to_owned())
    );
    assert!(read("{").is_err());
    let loading = PullProgress {
        status: "pulling abc".to_owned(),
        completed: Some(4),
        total: Some(9),
    };
    assert_eq!(seen[0], loading);
    assert_eq!(seen.len(), 2);
}
