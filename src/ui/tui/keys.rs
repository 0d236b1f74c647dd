//! A decoder for terminal input: keys, pastes and the mouse wheel. Pure.
//!
//! crossterm's own reader merges two Escapes that arrive together, and cannot be waited for together with other
//! events; this decoder is fed bytes instead. Guarantees that it never panics, that no byte of a paste becomes
//! a key, and that the result does not depend on how the bytes are split. Unknown sequences are ignored.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::sys::text::with_unix_line_ends;

/// The sequence that ends a paste.
const PASTE_END: &[u8] = b"\x1b[201~";
/// The maximum length of an escape sequence, in bytes; longer ones are dropped.
const LONGEST: usize = 64;

/// An input event of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalInput {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted. Line endings are normalized to `\n`; terminals send `\r`.
    Paste(String),
    /// The wheel was turned by this number of notches, up if negative.
    Wheel(i32),
    /// The terminal has gained focus (true) or lost it (false).
    Focus(bool),
}

/// Returns whether a key types a character.
pub fn is_letter(key: KeyEvent) -> bool {
    let others = KeyModifiers::CONTROL | KeyModifiers::ALT;
    matches!(key.code, KeyCode::Char(_)) && !key.modifiers.intersects(others)
}

/// Returns whether a key suspends the process, which the terminal does not do itself in raw mode.
pub fn is_suspend(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('z') && key.modifiers == KeyModifiers::CONTROL
}

/// Returns whether a key works at any time, and can answer a question only by closing it.
pub fn works_anytime(key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char(_) => key.modifiers.contains(KeyModifiers::CONTROL),
        KeyCode::Tab => key.modifiers.contains(KeyModifiers::SHIFT),
        KeyCode::BackTab | KeyCode::Esc | KeyCode::PageUp | KeyCode::PageDown => true,
        _ => false,
    }
}

/// Returns whether a key closes a dialog.
pub fn is_cancel(key: KeyEvent) -> bool {
    let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
    key.code == KeyCode::Esc || is_ctrl_c
}

/// Returns the index that a key selects in a list of `count` items, starting from `at`; `None` if the key does
/// not move the selection.
pub fn moved(key: KeyEvent, at: usize, count: usize) -> Option<usize> {
    let last = count.saturating_sub(1);
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Up => Some(at.checked_sub(1).unwrap_or(last)),
        KeyCode::Char('p') if control => Some(at.checked_sub(1).unwrap_or(last)),
        KeyCode::Down => Some(if at < last { at + 1 } else { 0 }),
        KeyCode::Char('n') if control => Some(if at < last { at + 1 } else { 0 }),
        _ => None,
    }
}

/// A decoder of bytes as they arrive.
#[derive(Debug, Default)]
pub struct KeyDecoder {
    /// The bytes of an incomplete event.
    pending: Vec<u8>,
    /// The current paste, if one has begun.
    paste: Option<Vec<u8>>,
}

/// The result of parsing the first event in some bytes.
enum Parsed {
    /// A complete event and its length in bytes; `None` for an unknown sequence.
    Whole(Option<TerminalInput>, usize),
    /// The beginning of a paste, of this length in bytes.
    Paste(usize),
    /// The event is incomplete.
    Open,
}

impl KeyDecoder {
    /// Decodes new bytes, and returns the complete events.
    pub fn read(&mut self, bytes: &[u8]) -> Vec<TerminalInput> {
        let mut inputs = Vec::new();
        self.pending.extend_from_slice(bytes);
        self.decode(&mut inputs, false);
        inputs
    }

    /// Returns whether the pending bytes are still ambiguous: a lone Escape may begin a sequence.
    pub fn is_open(&self) -> bool {
        self.paste.is_none() && !self.pending.is_empty()
    }

    /// Ends the current paste, if any, and returns its text so far.
    pub fn end_paste(&mut self) -> Option<TerminalInput> {
        self.paste.take().map(|paste| pasted(&paste))
    }

    /// Decodes the pending bytes as they are, after nothing else has followed.
    pub fn settle(&mut self) -> Vec<TerminalInput> {
        let mut inputs = Vec::new();
        self.decode(&mut inputs, true);
        inputs
    }

    fn decode(&mut self, inputs: &mut Vec<TerminalInput>, is_settled: bool) {
        let mut pending = std::mem::take(&mut self.pending);
        let mut at = 0;
        while at < pending.len() {
            if let Some(paste) = &mut self.paste {
                // The end sequence may have begun in the previous bytes.
                let from = paste.len().saturating_sub(PASTE_END.len());
                paste.extend_from_slice(&pending[at..]);
                at = pending.len();
                let Some(end) = memchr::memmem::find(&paste[from..], PASTE_END) else {
                    continue;
                };
                let rest = paste.split_off(from + end);
                inputs.push(pasted(paste));
                self.paste = None;
                pending = rest;
                at = PASTE_END.len();
                continue;
            }
            match parse(&pending[at..], is_settled) {
                Parsed::Whole(input, length) => {
                    inputs.extend(input);
                    at += length;
                }
                Parsed::Paste(length) => {
                    self.paste = Some(Vec::new());
                    at += length;
                }
                Parsed::Open => break,
            }
        }
        pending.drain(..at);
        self.pending = pending;
    }
}

fn pasted(bytes: &[u8]) -> TerminalInput {
    TerminalInput::Paste(with_unix_line_ends(&String::from_utf8_lossy(bytes)))
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> TerminalInput {
    TerminalInput::Key(KeyEvent::new(code, modifiers))
}

/// Parses the first event in `bytes`, which is not empty. If the bytes are settled, the result is never open.
fn parse(bytes: &[u8], is_settled: bool) -> Parsed {
    let open = |otherwise: Parsed| if is_settled { otherwise } else { Parsed::Open };
    let escape = || Parsed::Whole(Some(key(KeyCode::Esc, KeyModifiers::NONE)), 1);
    match bytes {
        [0x1b] => open(escape()),
        // Two Escapes are two keys.
        [0x1b, 0x1b, ..] => escape(),
        [0x1b, b'[', rest @ ..] => match control_sequence(rest) {
            Parsed::Whole(input, length) => Parsed::Whole(input, length + 2),
            Parsed::Paste(length) => Parsed::Paste(length + 2),
            Parsed::Open if rest.is_empty() => open(with_alt(&bytes[1..], is_settled)),
            Parsed::Open => open(Parsed::Whole(None, bytes.len())),
        },
        [0x1b, b'O'] => open(with_alt(&bytes[1..], is_settled)),
        [0x1b, b'O', last, ..] => {
            let code = match last {
                b'M' => Some(KeyCode::Enter),
                letter => cursor_key(*letter),
            };
            let input = code.map(|code| key(code, KeyModifiers::NONE));
            // A byte that cannot end this sequence begins the next.
            let length = if last.is_ascii_graphic() { 3 } else { 2 };
            Parsed::Whole(input, length)
        }
        [0x1b, rest @ ..] => with_alt(rest, is_settled),
        _ => character(bytes, is_settled),
    }
}

/// Parses a character after an Escape, which means it was typed with Alt.
fn with_alt(bytes: &[u8], is_settled: bool) -> Parsed {
    match character(bytes, is_settled) {
        Parsed::Whole(Some(TerminalInput::Key(mut key)), length) => {
            key.modifiers |= KeyModifiers::ALT;
            Parsed::Whole(Some(TerminalInput::Key(key)), length + 1)
        }
        Parsed::Whole(input, length) => Parsed::Whole(input, length + 1),
        parsed => parsed,
    }
}

/// Parses a UTF-8 character or a control character.
fn character(bytes: &[u8], is_settled: bool) -> Parsed {
    let (none, control) = (KeyModifiers::NONE, KeyModifiers::CONTROL);
    let first = bytes.first().copied().unwrap_or_default();
    let (code, modifiers) = match first {
        b'\r' => (KeyCode::Enter, none),
        b'\t' => (KeyCode::Tab, none),
        0x7f => (KeyCode::Backspace, none),
        0x1b => (KeyCode::Esc, none),
        0 => (KeyCode::Char(' '), control),
        1..=26 => (KeyCode::Char(char::from(first - 1 + b'a')), control),
        28..=31 => (KeyCode::Char(char::from(first - 28 + b'4')), control),
        0x20..=0x7e => (KeyCode::Char(char::from(first)), none),
        _ => {
            let length = match first {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => return Parsed::Whole(None, 1),
            };
            let there = &bytes[..length.min(bytes.len())];
            return match std::str::from_utf8(there) {
                Ok(text) => {
                    let c = text.chars().next();
                    Parsed::Whole(c.map(|c| key(KeyCode::Char(c), none)), length)
                }
                // The character is incomplete.
                Err(error) if error.error_len().is_none() && !is_settled => Parsed::Open,
                Err(_) => Parsed::Whole(None, 1),
            };
        }
    };
    Parsed::Whole(Some(key(code, modifiers)), 1)
}

/// Parses the rest of a sequence after `ESC [`.
fn control_sequence(bytes: &[u8]) -> Parsed {
    // F1 to F5 on the Linux console.
    if let [b'[', rest @ ..] = bytes {
        return match rest {
            [] => Parsed::Open,
            [_, ..] => Parsed::Whole(None, 2),
        };
    }
    let is_final = |byte: &u8| (0x40..=0x7e).contains(byte);
    let is_inner = |byte: &u8| (0x20..=0x3f).contains(byte);
    let Some(end) = bytes.iter().take(LONGEST).position(|byte| !is_inner(byte)) else {
        return if bytes.len() < LONGEST {
            Parsed::Open
        } else {
            Parsed::Whole(None, LONGEST)
        };
    };
    // A new sequence begins inside this one.
    if !is_final(&bytes[end]) {
        return Parsed::Whole(None, end);
    }
    let Ok(inner) = std::str::from_utf8(&bytes[..end]) else {
        return Parsed::Whole(None, end + 1);
    };
    match (inner, bytes[end]) {
        ("200", b'~') => Parsed::Paste(end + 1),
        _ => Parsed::Whole(sequence(inner, bytes[end]), end + 1),
    }
}

/// Interprets a complete sequence.
fn sequence(inner: &str, last: u8) -> Option<TerminalInput> {
    if let Some(mouse) = inner.strip_prefix('<') {
        return wheel(mouse, last);
    }
    // In a parameter with subparameters, the first is the value; `kind` is kitty's event type: 3 is a key
    // release.
    let mut fields = inner.split(';').map(|field| field.split(':'));
    let mut number = || {
        let mut parts = fields.next()?;
        let first = parts.next()?.parse::<u32>().ok();
        Some((
            first,
            parts.next().and_then(|kind| kind.parse::<u32>().ok()),
        ))
    };
    let (first, _) = number().unwrap_or_default();
    let (second, kind) = number().unwrap_or_default();
    let (third, _) = number().unwrap_or_default();
    if kind == Some(3) {
        return None;
    }
    let modifiers = modifiers(second.unwrap_or(1));
    let code = match last {
        b'~' if first == Some(27) => return coded(third?, modifiers),
        b'~' => match first? {
            1 | 7 => KeyCode::Home,
            3 => KeyCode::Delete,
            4 | 8 => KeyCode::End,
            5 => KeyCode::PageUp,
            6 => KeyCode::PageDown,
            _ => return None,
        },
        b'u' => return coded(first?, modifiers),
        b'I' | b'O' if inner.is_empty() => return Some(TerminalInput::Focus(last == b'I')),
        b'Z' => return Some(key(KeyCode::BackTab, KeyModifiers::SHIFT)),
        letter => cursor_key(letter)?,
    };
    Some(key(code, modifiers))
}

/// Returns the cursor or function key for a sequence's final letter.
fn cursor_key(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        _ => return None,
    })
}

/// Decodes modifiers, which terminals send as a bit mask plus one.
fn modifiers(number: u32) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    let bit = |bit: u32, modifier| match bits & bit {
        0 => KeyModifiers::NONE,
        _ => modifier,
    };
    // Meta is another name for Alt; ignore lock keys, Hyper and the like.
    bit(1, KeyModifiers::SHIFT)
        | bit(2 | 32, KeyModifiers::ALT)
        | bit(4, KeyModifiers::CONTROL)
        | bit(8, KeyModifiers::SUPER)
}

/// Returns the key for a character code, as sent by kitty and xterm.
fn coded(code: u32, modifiers: KeyModifiers) -> Option<TerminalInput> {
    let code = match code {
        9 if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        // The numeric keypad.
        57399..=57408 => KeyCode::Char(char::from_digit(code - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57426 => KeyCode::Delete,
        // Other keys without a character.
        57344..=63743 => return None,
        code => match char::from_u32(code).filter(|c| !c.is_control())? {
            // The code is that of the unshifted key.
            c if modifiers.contains(KeyModifiers::SHIFT) => {
                KeyCode::Char(c.to_uppercase().next().unwrap_or(c))
            }
            c => KeyCode::Char(c),
        },
    };
    Some(key(code, modifiers))
}

/// Decodes a turn of the wheel, sent as `CSI < BUTTON ; COLUMN ; ROW M`. Clicks are ignored.
fn wheel(fields: &str, last: u8) -> Option<TerminalInput> {
    let button: u32 = fields.split(';').next()?.parse().ok()?;
    // Mask out the bits for Shift, Alt and Ctrl.
    match (button & !0b1_1100, last) {
        (64, b'M') => Some(TerminalInput::Wheel(-1)),
        (65, b'M') => Some(TerminalInput::Wheel(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the events of a terminal that sends nothing more.
    fn inputs(bytes: &[u8]) -> Vec<TerminalInput> {
        let mut decoder = KeyDecoder::default();
        let mut inputs = decoder.read(bytes);
        inputs.extend(decoder.settle());
        assert!(!decoder.is_open());
        inputs
    }

    fn keys(bytes: &[u8]) -> Vec<(KeyCode, KeyModifiers)> {
        let key = |input| match input {
            TerminalInput::Key(key) => (key.code, key.modifiers),
            other => panic!("{other:?}"),
        };
        inputs(bytes).into_iter().map(key).collect()
    }

    #[test]
    fn keys_are_those_that_terminals_mean() {
        use KeyCode as Code;
        const NONE: KeyModifiers = KeyModifiers::NONE;
        const CONTROL: KeyModifiers = KeyModifiers::CONTROL;
        const ALT: KeyModifiers = KeyModifiers::ALT;
        const SHIFT: KeyModifiers = KeyModifiers::SHIFT;
        for (bytes, expected) in [
            ("a", &[(Code::Char('a'), NONE)][..]),
            (
                "ä€😀",
                &[
                    (Code::Char('ä'), NONE),
                    (Code::Char('€'), NONE),
                    (Code::Char('😀'), NONE),
                ],
            ),
            (
                "\r\n\t",
                &[
                    (Code::Enter, NONE),
                    (Code::Char('j'), CONTROL),
                    (Code::Tab, NONE),
                ],
            ),
            (
                "\x01\x1a",
                &[(Code::Char('a'), CONTROL), (Code::Char('z'), CONTROL)],
            ),
            (
                "\x7f\x08",
                &[(Code::Backspace, NONE), (Code::Char('h'), CONTROL)],
            ),
            ("\x1b", &[(Code::Esc, NONE)]),
            ("\x1b\x1b", &[(Code::Esc, NONE), (Code::Esc, NONE)]),
            (
                "\x1b\x1b\x1b",
                &[(Code::Esc, NONE), (Code::Esc, NONE), (Code::Esc, NONE)],
            ),
            ("\x1b\x1b[A", &[(Code::Esc, NONE), (Code::Up, NONE)]),
            (
                "\x1bb\x1b\r\x1b\x7f\x1bä",
                &[
                    (Code::Char('b'), ALT),
                    (Code::Enter, ALT),
                    (Code::Backspace, ALT),
                    (Code::Char('ä'), ALT),
                ],
            ),
            (
                "\x1b[A\x1bOB\x1bOM",
                &[(Code::Up, NONE), (Code::Down, NONE), (Code::Enter, NONE)],
            ),
            (
                "\x1b[1;5C\x1b[1;3D",
                &[(Code::Right, CONTROL), (Code::Left, ALT)],
            ),
            (
                "\x1b[H\x1b[4~\x1b[3~\x1b[3;5~",
                &[
                    (Code::Home, NONE),
                    (Code::End, NONE),
                    (Code::Delete, NONE),
                    (Code::Delete, CONTROL),
                ],
            ),
            (
                "\x1b[5~\x1b[6~",
                &[(Code::PageUp, NONE), (Code::PageDown, NONE)],
            ),
            (
                "\x1b[Z\x1b[9;2u",
                &[(Code::BackTab, SHIFT), (Code::BackTab, SHIFT)],
            ),
            (
                "\x1b[13;2u\x1b[27;2;13~",
                &[(Code::Enter, SHIFT), (Code::Enter, SHIFT)],
            ),
            ("\x1b[27u\x1b[27;1:3u", &[(Code::Esc, NONE)]),
            (
                "\x1b[99;5u\x1b[97;2u",
                &[(Code::Char('c'), CONTROL), (Code::Char('A'), SHIFT)],
            ),
            ("\x1b[57404u\x1b[57358u", &[(Code::Char('5'), NONE)]),
            // Unknown or truncated sequences are ignored, and the bytes after them count.
            ("\x1b[?1;2c\x1b[[Ax", &[(Code::Char('x'), NONE)]),
            (
                "\x1b[1;\x1b[Bx",
                &[(Code::Down, NONE), (Code::Char('x'), NONE)],
            ),
            ("\x1b[1;", &[]),
            ("\x1b[", &[(Code::Char('['), ALT)]),
            ("\x1bO", &[(Code::Char('O'), ALT)]),
        ] {
            assert_eq!(keys(bytes.as_bytes()), expected, "{bytes:?}");
        }
        assert_eq!(keys(b"\xffa\xc3"), [(Code::Char('a'), NONE)]);
        assert_eq!(keys(b"\x1b[\xff1x").len(), 2);
    }

    #[test]
    fn a_paste_is_text_whatever_is_in_it() {
        let paste = |text: &str| TerminalInput::Paste(text.to_owned());
        let a = TerminalInput::Key(KeyEvent::new(KeyCode::Char('a'), KeyModifiers::NONE));
        for (bytes, expected) in [
            (
                "\x1b[200~x\ry\r\nz\x1b[A\x03\x1b[201~a",
                &[paste("x\ny\nz\x1b[A\x03"), a.clone()][..],
            ),
            (
                "\x1b[200~\x1b[201~\x1b[200~b\x1b[201~",
                &[paste(""), paste("b")],
            ),
            ("\x1b[200~never ended", &[]),
        ] {
            assert_eq!(inputs(bytes.as_bytes()), expected, "{bytes:?}");
        }
    }

    #[test]
    fn only_the_wheel_of_a_mouse_counts() {
        let seen = inputs(b"\x1b[<64;1;2M\x1b[<65;300;200M\x1b[<69;1;1M\x1b[<0;3;4M\x1b[<0;3;4m");
        assert_eq!(seen, [-1, 1, 1].map(TerminalInput::Wheel));
        let seen = inputs(b"\x1b[I\x1b[O");
        assert_eq!(seen, [true, false].map(TerminalInput::Focus));
    }

    #[test]
    fn an_escape_waits_for_what_follows() {
        let mut decoder = KeyDecoder::default();
        assert!(decoder.read(b"\x1b").is_empty() && decoder.is_open());
        let up = TerminalInput::Key(KeyEvent::new(KeyCode::Up, KeyModifiers::NONE));
        assert_eq!(decoder.read(b"[A"), [up]);
        assert!(!decoder.is_open());
        // A paste has no time limit.
        assert!(decoder.read(b"\x1b[200~x").is_empty() && !decoder.is_open());
        assert!(decoder.settle().is_empty());
        assert_eq!(
            decoder.read(b"y\x1b[201~"),
            [TerminalInput::Paste("xy".to_owned())]
        );
    }

    /// Generates bytes as sent by a terminal or an attacker.
    fn stream() -> impl Strategy<Value = Vec<u8>> {
        const PIECES: &[&[u8]] = &[
            b"\x1b",
            b"[",
            b"O",
            b"A",
            b"1;5C",
            b"200~",
            b"\x1b[200~",
            b"\x1b[201~",
            b"<64;1;1M",
            b"\r",
            b"a",
            "ä".as_bytes(),
            "😀".as_bytes(),
            b"27;2;13~",
            b"13;2u",
            b"\x03",
            b"99999999999u",
        ];
        let piece = prop_oneof![
            prop::sample::select(PIECES).prop_map(<[u8]>::to_vec),
            prop::collection::vec(any::<u8>(), 0..3),
        ];
        prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn bytes_mean_the_same_however_they_are_split(bytes in stream(), cuts in prop::collection::vec(0..40usize, 0..6)) {
            let whole = inputs(&bytes);
            let mut decoder = KeyDecoder::default();
            let mut seen = Vec::new();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            for pair in cuts.windows(2) {
                seen.extend(decoder.read(&bytes[pair[0]..pair[1]]));
            }
            seen.extend(decoder.settle());
            prop_assert_eq!(seen, whole);
        }
    }
}
