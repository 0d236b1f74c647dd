//! Which key counts, and what is told where there is none.

use crate::sys::error::Problem as _;
use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::*;

/// A clock that stands still, or goes on by an hour whenever it is looked at.
struct TestClock {
    goes: bool,
    looked: std::sync::atomic::AtomicU64,
}

impl TestClock {
    fn new(goes: bool) -> Self {
        let looked = 0.into();
        Self { goes, looked }
    }
}

impl Clock for TestClock {
    fn now(&self) -> DateTime<FixedOffset> {
        DateTime::default()
    }

    fn elapsed(&self) -> Duration {
        let looked = self
            .looked
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Duration::from_secs(if self.goes { looked * 3600 } else { 0 })
    }
}

fn accounts(entries: &str) -> Accounts {
    let json = format!(r#"{{"version": 1, "accounts": [{entries}]}}"#);
    super::super::form::parse(json.as_bytes()).unwrap()
}

fn command(script: &str) -> Accounts {
    let words = serde_json::json!(["sh", "-c", script]);
    accounts(&format!(
        r#"{{"name": "work", "api_key_command": {words}}}"#
    ))
}

fn resolved(
    accounts: &Accounts,
    variables: &[(&str, &str)],
    goes: bool,
) -> Result<AccountKey, NoChatKey> {
    let environment = Environment::of(variables);
    let interrupt = Interrupt::never().unwrap();
    resolve(accounts, &environment, &TestClock::new(goes), &interrupt)
}

#[test]
fn the_environments_key_goes_before_the_accounts_one() {
    let stored = accounts(r#"{"name": "work", "api_key": "stored"}"#);
    let printing = command("printf ' printed\\r\\nmore\\n'");
    let variable = [(VARIABLE, " set ")];
    for (accounts, variables, expected, origin) in [
        (&stored, &variable[..], "set", KeyOrigin::Environment),
        (&printing, &variable, "set", KeyOrigin::Environment),
        (
            &Accounts::default(),
            &variable,
            "set",
            KeyOrigin::Environment,
        ),
        (&stored, &[], "stored", KeyOrigin::Account),
        (&stored, &[(VARIABLE, "")], "stored", KeyOrigin::Account),
        (&printing, &[], "printed", KeyOrigin::Account),
    ] {
        let key = resolved(accounts, variables, false).unwrap();
        assert_eq!((key.key.expose(), key.origin), (expected, origin));
    }
}

#[test]
fn a_key_is_told_from_others_without_giving_it_away() {
    let of = |key: &str| resolved(&Accounts::default(), &[(VARIABLE, key)], false).unwrap();
    let identity = of("sk-one").identity();
    assert_eq!(identity, of("sk-one").identity());
    assert_ne!(identity, of("sk-two").identity());
    assert_eq!(identity.len(), 16);
    // Whoever gives the same key is the same account.
    let stored = accounts(r#"{"name": "work", "api_key": "sk-one"}"#);
    assert_eq!(resolved(&stored, &[], false).unwrap().identity(), identity);
}

#[test]
fn without_a_key_the_ways_to_one_are_told_and_nothing_of_what_was_tried() {
    let work = "which is to print the key of the account `work`,";
    for (accounts, variables, goes, expected) in [
        (
            Accounts::default(),
            &[][..],
            false,
            "there is no API key for Anthropic".to_owned(),
        ),
        (
            Accounts::default(),
            &[(VARIABLE, "sekret sekret")],
            false,
            "the key in the environment variable `ANTHROPIC_API_KEY` has a blank,".to_owned(),
        ),
        (
            command("echo sekret; echo sekret >&2; exit 3"),
            &[],
            false,
            format!("`sh`, {work} ended with exit code 3"),
        ),
        (
            command("kill -9 $$"),
            &[],
            false,
            format!("`sh`, {work} ended with a signal"),
        ),
        (
            command("echo; echo sekret"),
            &[],
            false,
            format!("`sh`, {work} prints a first line that is empty"),
        ),
        (
            command("echo sekret sekret"),
            &[],
            false,
            format!("`sh`, {work} prints a first line that has a blank,"),
        ),
        (
            command("echo sekret; exec sleep 600"),
            &[],
            true,
            format!("`sh`, {work} did not end within 60 s"),
        ),
        (
            accounts(r#"{"name": "work", "api_key_command": ["/no/such/program", "sekret"]}"#),
            &[],
            false,
            format!("`/no/such/program`, {work} cannot be run: No such file"),
        ),
    ] {
        let problem = resolved(&accounts, variables, goes).unwrap_err();
        let told = problem.to_string();
        assert!(told.starts_with(&expected), "{told}");
        let hint = problem.hint().unwrap();
        assert!(hint.contains("`ANTHROPIC_API_KEY`"), "{hint}");
        if !matches!(problem, NoChatKey::Variable(_)) {
            assert!(hint.contains("`code-commit chat login`"), "{hint}");
            assert!(hint.contains("`/login`"), "{hint}");
        }
        for told in [told, hint, format!("{problem:?}")] {
            assert!(!told.contains("sekret"), "{told}");
        }
    }
}

#[test]
fn a_stop_ends_a_command_that_waits() {
    let interrupt = Interrupt::never().unwrap();
    interrupt.raise();
    let accounts = command("exec sleep 600");
    let clock = TestClock::new(false);
    let stopped = resolve(&accounts, &Environment::default(), &clock, &interrupt);
    assert!(
        matches!(stopped, Err(NoChatKey::Interrupted(_))),
        "{stopped:?}"
    );
}
