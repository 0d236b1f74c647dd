//! Tests of commands that print a key, and of those that fail.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

use super::*;

/// A clock that stands still, or advances by an hour on every read.
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

fn printed(words: &[&str], goes: bool) -> Result<ApiKey, String> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let interrupt = Interrupt::never().unwrap();
    key(&words, &TestClock::new(goes), &interrupt)
}

#[test]
fn the_key_is_the_first_line() {
    let key = printed(&["sh", "-c", "printf ' printed\\r\\nmore\\n'"], false);
    assert_eq!(key.unwrap().expose(), "printed");
}

#[test]
fn a_command_without_a_key_is_reported_without_its_output() {
    for (script, goes, expected) in [
        (
            "echo sekret; echo sekret >&2; exit 3",
            false,
            "ended with exit code 3",
        ),
        ("kill -9 $$", false, "ended with a signal"),
        (
            "echo; echo sekret",
            false,
            "prints a first line that is empty",
        ),
        (
            "echo sekret sekret",
            false,
            "prints a first line that has a blank,",
        ),
        (
            "echo sekret; exec sleep 600",
            true,
            "did not end within 60 s",
        ),
    ] {
        let told = printed(&["sh", "-c", script], goes).unwrap_err();
        assert!(told.starts_with(expected), "{told}");
        assert!(!told.contains("sekret"), "{told}");
    }
    let failure = printed(&["/no/such/program", "sekret"], false).unwrap_err();
    assert!(failure.starts_with("cannot be run: No such file"));
}

#[test]
fn a_stop_ends_a_command_that_waits() {
    let interrupt = Interrupt::never().unwrap();
    interrupt.raise();
    let words = ["sh", "-c", "exec sleep 600"].map(str::to_owned);
    assert!(key(&words, &TestClock::new(false), &interrupt).is_err());
}
