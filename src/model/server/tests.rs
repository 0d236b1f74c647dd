//! Tests of Anthropic's answers other than replies, from a loopback server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::*;

/// Starts a server that gives each request the next of these answers. Also returns the head and body of each request.
fn serving(answers: Vec<(u16, Value)>) -> (VendorServer, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (seen, asked) = channel();
    thread::spawn(move || {
        for (status, answer) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                reader.read_line(&mut head).unwrap();
            }
            let lower = head.to_lowercase();
            let length = match lower.split_once("content-length: ") {
                Some((_, rest)) => rest.lines().next().unwrap().parse().unwrap(),
                None => 0,
            };
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let _ = seen.send((head, String::from_utf8(body).unwrap()));
            let head = format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n\r\n");
            stream
                .write_all(format!("{head}{answer}").as_bytes())
                .unwrap();
        }
    });
    let route = Route {
        endpoint: Endpoint::parse("baseUrl", &url, true).unwrap(),
        proxies: Proxies::default(),
        key: Some(ApiKey::parse(b"sk-ant-test-0123456789").unwrap()),
    };
    (
        VendorServer::new(Provider::Anthropic, route, &Interrupt::never().unwrap()),
        asked,
    )
}

fn listed(id: &str) -> Value {
    json!({"type": "model", "id": id, "display_name": "N", "created_at": "2026-10-01T00:00:00Z",
        "max_input_tokens": 1_000_000, "max_tokens": null, "capabilities": {}})
}

#[test]
fn all_pages_of_models_are_read() {
    let page = |ids: &[&str], has_more| {
        let models: Vec<Value> = ids.iter().map(|id| listed(id)).collect();
        json!({"data": models, "has_more": has_more, "first_id": ids.first(), "last_id": ids.last()})
    };
    let pages = vec![
        (200, page(&["a", "claude-opus-5-5"], true)),
        (200, page(&["c"], false)),
    ];
    let (server, asked) = serving(pages);
    let models = server.models().unwrap();
    let ids: Vec<&str> = models.iter().map(|model| &*model.id).collect();
    assert_eq!(ids, ["a", "claude-opus-5-5", "c"]);
    assert_eq!(
        (models[0].max_input_tokens, models[0].max_tokens),
        (Some(1_000_000), None)
    );
    let heads: Vec<String> = asked.iter().map(|(head, _)| head.to_lowercase()).collect();
    assert!(
        heads[0].starts_with("get /v1/models?limit=1000 "),
        "{heads:?}"
    );
    assert!(heads[1].contains("&after_id=claude-opus-5-5 "), "{heads:?}");
    for header in [
        "x-api-key: sk-ant-test-0123456789",
        "anthropic-version: 2026-10-21",
    ] {
        assert!(heads.iter().all(|head| head.contains(header)), "{heads:?}");
    }
}

#[test]
fn a_refused_key_is_distinguished_from_other_failures() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "no"}});
    for (status, answer, is_refused) in [
        (401, error("authentication_error"), true),
        (403, error("permission_error"), true),
        (529, error("overloaded_error"), false),
        (200, json!({"page": "of something else"}), false),
        (302, json!({}), false),
    ] {
        let (server, _asked) = serving(vec![(status, answer)]);
        let problem = server.models().unwrap_err();
        assert_eq!(problem.refuses_key(), is_refused, "{problem}");
    }
}
