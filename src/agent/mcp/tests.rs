//! Tests of the client over a scripted transport: handshake, retries, sessions and replays. Touches nothing.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::LazyLock;

use super::message::RpcError;
use super::*;
use crate::sys::environment::SystemClock;

/// A scripted transport that records its requests.
struct Scripted {
    outcomes: VecDeque<Result<Value, Failed>>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl Transport for Scripted {
    fn open(&mut self, _deadline: Deadline<'_>) -> Result<(), Failed> {
        self.asked.borrow_mut().push("open".to_owned());
        Ok(())
    }

    fn request(&mut self, message: Outgoing<'_>, _: Deadline<'_>) -> Result<Value, Failed> {
        self.asked.borrow_mut().push(message.method.to_owned());
        self.outcomes.pop_front().unwrap()
    }

    fn notify(&mut self, message: Outgoing<'_>, _deadline: Deadline<'_>) -> Result<(), Failed> {
        self.asked.borrow_mut().push(message.method.to_owned());
        Ok(())
    }

    fn notify_last(&mut self, message: Outgoing<'_>) {
        let line = format!("{} {}", message.method, message.params["requestId"]);
        self.asked.borrow_mut().push(line);
    }

    fn close(&mut self, after_signal: bool) {
        let how = if after_signal {
            "close in a hurry"
        } else {
            "close"
        };
        self.asked.borrow_mut().push(how.to_owned());
    }
}

/// Collects the lines of a run's `mcp.jsonl`.
#[derive(Default)]
struct Lines {
    exchanges: RefCell<Vec<String>>,
    retries: RefCell<Vec<String>>,
}

impl McpObserver for Lines {
    fn exchanged(&self, exchange: &Exchange<'_>) {
        let line = serde_json::to_string(exchange).unwrap();
        self.exchanges.borrow_mut().push(format!("{line}\n"));
    }

    fn retrying(&self, next_try: u32, _wait: Duration, reason: &str) {
        self.retries
            .borrow_mut()
            .push(format!("{next_try}: {reason}"));
    }

    fn progress(&self, _text: &str) {}
}

static NO_KEYS: LazyLock<Redactor> = LazyLock::new(Redactor::default);

fn options<'a>(
    observer: &'a dyn McpObserver,
    clock: &'a SystemClock,
    interrupt: &Interrupt,
) -> McpOptions<'a> {
    McpOptions {
        headers: HeaderMap::new(),
        proxies: Proxies::default(),
        token: None,
        env: ChildEnv::default(),
        program: None,
        redactor: &NO_KEYS,
        timeout: Duration::from_mins(1),
        clock,
        interrupt: interrupt.clone(),
        observer,
    }
}

fn hello() -> Value {
    json!({"protocolVersion": "2025-06-18"})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn reset() -> McpError {
    McpError::no_answer("s", "reset")
}

/// Makes the retry immediate to avoid waiting in tests.
fn at_once(failed: Failed) -> Result<Value, Failed> {
    Err(Failed {
        retry: Retry::After(Some(Duration::ZERO)),
        ..failed
    })
}

/// Makes a call with these outcomes after the first handshake. Returns its result, later requests, and reported
/// retries.
fn called(
    outcomes: Vec<Result<Value, Failed>>,
    repeat: Repeat,
) -> (Result<Value, McpError>, Vec<String>, Vec<String>) {
    let (observer, clock) = (Lines::default(), SystemClock::start());
    let interrupt = Interrupt::never().unwrap();
    let asked = Rc::default();
    let outcomes = std::iter::once(Ok(hello())).chain(outcomes).collect();
    let transport = Scripted {
        outcomes,
        asked: Rc::clone(&asked),
    };
    let options = options(&observer, &clock, &interrupt);
    let client = McpClient::new("s".to_owned(), Box::new(transport), options);
    client.initialize().unwrap();
    let result = client.call("t", json!({}), repeat);
    drop(client);
    let asked = asked.take().split_off(3);
    (result, asked, observer.retries.take())
}

#[test]
fn a_call_is_done_again_where_it_may_be() {
    let gone = || Err(Failed::session_gone(McpError::no_answer("s", "gone")));
    let no = || Failed::unbegun(reset());
    let perhaps = || Failed::broken(reset());
    for (outcomes, repeat, calls, expected) in [
        (
            vec![at_once(no()), Ok(text("a"))],
            Repeat::UnlessBegun,
            2,
            "a",
        ),
        (
            vec![at_once(perhaps()), Ok(text("a"))],
            Repeat::Always,
            2,
            "a",
        ),
        (
            vec![at_once(perhaps())],
            Repeat::UnlessBegun,
            1,
            "may have begun",
        ),
        (
            vec![Err(Failed::answered(reset()))],
            Repeat::Always,
            1,
            "reset",
        ),
        (
            (0..5).map(|_| at_once(no())).collect(),
            Repeat::Always,
            5,
            "(after 5 tries)",
        ),
        (
            vec![gone(), Ok(hello()), Ok(text("a"))],
            Repeat::UnlessBegun,
            2,
            "a",
        ),
        (
            vec![gone(), Ok(hello()), gone()],
            Repeat::UnlessBegun,
            2,
            "gone",
        ),
    ] {
        let (result, asked, retries) = called(outcomes, repeat);
        let told = result.map_or_else(|error| error.to_string(), |value| value.to_string());
        assert!(told.contains(expected), "{told}");
        let count = asked
            .iter()
            .filter(|method| *method == "tools/call")
            .count();
        assert_eq!(count, calls, "{asked:?}");
        assert_eq!(asked.last().unwrap(), "close");
        let renewals = asked.iter().filter(|method| *method == "open").count();
        assert_eq!(retries.len(), calls - 1 - renewals, "{retries:?}");
    }
}

#[test]
fn lost_server_is_distinguished_from_errors_for_the_model() {
    for (outcome, repeat, is_lost) in [
        (Err(Failed::answered(reset())), Repeat::Always, true),
        (Err(Failed::broken(reset())), Repeat::UnlessBegun, false),
        (Ok(json!({"isError": true})), Repeat::Always, false),
    ] {
        let (result, ..) = called(vec![outcome], repeat);
        assert_eq!(result.unwrap_err().is_lost(), is_lost);
    }
}

#[test]
fn a_signal_takes_a_call_back() {
    let signal = crate::sys::interrupt::Signal::Int;
    let interrupted = crate::sys::interrupt::Interrupted { signal };
    let (result, asked, _) = called(vec![Err(interrupted.into())], Repeat::Always);
    assert!(matches!(result, Err(McpError::Interrupted(_))));
    assert_eq!(asked, ["tools/call", "notifications/cancelled 2", "close"]);
}

#[test]
fn a_recorded_run_is_played_again() {
    let (observer, clock) = (Lines::default(), SystemClock::start());
    let interrupt = Interrupt::never().unwrap();
    let data = json!({"supported": ["2026-07-28"]});
    let error = RpcError {
        code: -32602,
        message: "no".to_owned(),
        data,
    };
    let outcomes = [
        Ok(hello()),
        Ok(json!({"tools": [{"name": "t"}]})),
        Ok(text("{\"a\": 1}")),
        Err(Failed::session_gone(reset())),
        Ok(hello()),
        Ok(text("b")),
        Err(Failed::answered(McpError::Server(error))),
        Err(Failed::broken(reset())),
        Ok(json!({"isError": true, "content": []})),
    ];
    let transport = Scripted {
        outcomes: outcomes.into(),
        asked: Rc::default(),
    };
    let run = |client: &McpClient<'_>| {
        let mut said = vec![format!("{:?}", client.tools().unwrap())];
        for _ in 0..5 {
            let result = client.call("t", json!({}), Repeat::UnlessBegun);
            said.push(match result {
                Ok(value) => value.to_string(),
                Err(error) => format!("{error} {}", error.is_lost()),
            });
        }
        said
    };
    let given = options(&observer, &clock, &interrupt);
    let client = McpClient::new("s".to_owned(), Box::new(transport), given);
    client.initialize().unwrap();
    let said = run(&client);
    let record: String = observer.exchanges.take().concat();
    let first = record.lines().next().unwrap();
    assert!(
        first.starts_with(r#"{"method":"initialize","params":{"protocolVersion""#),
        "{first}"
    );
    assert!(
        first.contains(r#""result":{"protocolVersion":"2025-06-18"},"seconds":"#),
        "{first}"
    );

    let recorded = RecordedClock::new(&clock);
    let replayed =
        McpClient::replay(&record, options(&observer, &clock, &interrupt), &recorded).unwrap();
    assert_eq!(run(&replayed), said);
    let more = replayed.call("t", json!({}), Repeat::Always).unwrap_err();
    assert!(more.to_string().contains("ends before `t` is answered") && more.is_lost());

    let cut = &record[..record.len() - 20];
    let replayed =
        McpClient::replay(cut, options(&observer, &clock, &interrupt), &recorded).unwrap();
    let other = replayed.call("t", json!({}), Repeat::Always).unwrap_err();
    assert!(
        other
            .to_string()
            .contains("asked for `tools/list` here, not for `t`"),
        "{other}"
    );
    let wrong = McpClient::replay("{}\n", options(&observer, &clock, &interrupt), &recorded);
    assert!(
        wrong
            .err()
            .unwrap()
            .to_string()
            .contains("line 1 of `mcp.jsonl`")
    );
}
