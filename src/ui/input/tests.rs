//! Tests of typed and piped lines and prompts. Reads only from its own pipes.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use super::*;
use crate::sys::interrupt::Signal;

fn watched(source: UnixStream, interrupt: &Interrupt) -> Watched<UnixStream> {
    let interrupt = interrupt.clone();
    Watched { source, interrupt }
}

fn all(input: &[u8]) -> Vec<Typed> {
    let mut lines = Lines::new(input, None);
    let mut typed = Vec::new();
    loop {
        typed.push(lines.line("> ").unwrap());
        if typed.last() == Some(&Typed::End) {
            return typed;
        }
    }
}

#[test]
fn lines_come_without_their_ends() {
    for (input, expected) in [
        (&b""[..], &[][..]),
        (b"a\nb\n", &["a", "b"]),
        (b"a\r\nb", &["a", "b"]),
        (b"\n\n", &["", ""]),
        (b"a\rb\r", &["a\rb"]),
        ("caf\u{e9}\n".as_bytes(), &["caf\u{e9}"]),
    ] {
        let line = |text: &&str| Typed::Line((*text).to_owned());
        let expected: Vec<_> = expected.iter().map(line).chain([Typed::End]).collect();
        assert_eq!(all(input), expected, "{input:?}");
    }
}

#[test]
fn a_line_may_come_in_pieces_and_have_the_limit() {
    /// A reader that returns one byte at a time, like a slow pipe.
    struct Slow<'a>(&'a [u8]);
    impl Read for Slow<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let count = 1.min(bytes.len());
            self.0.read(bytes.split_at_mut(count).0)
        }
    }
    let mut lines = Lines::new(Slow(b"ab\r\ncd"), None);
    assert_eq!(lines.line("").unwrap(), Typed::Line("ab".to_owned()));
    assert_eq!(lines.line("").unwrap(), Typed::Line("cd".to_owned()));
    for end in ["", "\n", "\r\n"] {
        let longest = format!("{}{end}", "x".repeat(LINE_LIMIT));
        let typed = Lines::new(longest.as_bytes(), None).line("").unwrap();
        assert!(matches!(typed, Typed::Line(line) if line.len() == LINE_LIMIT));
    }
}

#[test]
fn a_line_beyond_the_limit_is_an_error_however_much_follows() {
    let longer = format!("a\n{}\n", "x".repeat(LINE_LIMIT + 1));
    let mut lines = Lines::new(longer.as_bytes(), None);
    assert_eq!(lines.line("").unwrap(), Typed::Line("a".to_owned()));
    let error = lines.line("").unwrap_err();
    assert!(matches!(error, InputError::LineTooLong(2)));
    let error = Lines::new(io::repeat(b'x'), None).line("").unwrap_err();
    assert!(matches!(error, InputError::LineTooLong(1)));
}

#[test]
fn invalid_utf8_is_reported_with_its_line() {
    let mut lines = Lines::new(&b"a\n\xff\n"[..], None);
    assert_eq!(lines.line("").unwrap(), Typed::Line("a".to_owned()));
    let error = lines.line("").unwrap_err().to_string();
    assert!(
        error.starts_with("line 2 of the input is not UTF-8"),
        "{error}"
    );
}

#[test]
fn a_signal_ends_the_wait_for_a_line() {
    let interrupt = Interrupt::never().unwrap();
    let (reader, writer) = UnixStream::pair().unwrap();
    let mut lines = Lines::new(watched(reader, &interrupt), None);
    (&writer).write_all(b"a\nb\n").unwrap();
    assert_eq!(lines.line("").unwrap(), Typed::Line("a".to_owned()));
    interrupt.simulate(Signal::Term);
    // Input read earlier is available; further input would have to be awaited.
    assert_eq!(lines.line("").unwrap(), Typed::Line("b".to_owned()));
    let error = lines.line("").unwrap_err();
    assert!(matches!(
        error,
        InputError::Interrupted(Interrupted {
            signal: Signal::Term
        })
    ));
}

#[test]
fn a_signal_ends_the_wait_for_a_prompt() {
    let interrupt = Interrupt::never().unwrap();
    let (reader, _writer) = UnixStream::pair().unwrap();
    let error = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| prompt_from(watched(reader, &interrupt)));
        interrupt.simulate(Signal::Int);
        waiting.join().unwrap().unwrap_err()
    });
    assert_eq!(error.to_string(), "interrupted by SIGINT");
}

#[test]
fn a_prompt_is_all_there_is_less_its_last_newline() {
    for (input, expected) in [
        ("do it", "do it"),
        ("do it\n", "do it"),
        ("do it\r\n", "do it"),
        ("a\n\nb\n\n", "a\n\nb\n"),
        ("  x", "  x"),
    ] {
        assert_eq!(
            prompt_from(input.as_bytes()).unwrap(),
            expected,
            "{input:?}"
        );
    }
}

#[test]
fn an_empty_prompt_is_an_error() {
    for blank in ["", "\n", " \t\r\n"] {
        let error = prompt_from(blank.as_bytes()).unwrap_err();
        assert!(matches!(error, InputError::Blank), "{blank:?}");
    }
    let error = prompt_from(&b"a\nb\xff"[..]).unwrap_err();
    assert!(matches!(error, InputError::NotUtf8(2)));
    let error = prompt_from(io::repeat(b'x')).unwrap_err();
    assert!(matches!(error, InputError::TooLong));
}
