//! Tests with random keys, as terminals send them, and random messages of the engine between them.

use super::*;
use crate::ui::tui::keys::{KeyDecoder, TerminalInput};

/// A user's action at the terminal, or a message from the engine.
#[derive(Debug, Clone)]
enum Move {
    Bytes(Vec<u8>),
    Settle,
    Message(u8),
    Size(u16, u16),
    Wait(u64),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let sequences = [
        "\x1b[A",
        "\x1b[B",
        "\x1b[C",
        "\x1b[D",
        "\x1b[5~",
        "\x1b[6~",
        "\x1b[H",
        "\x1b[F",
        "\x1b[Z",
        "\x1b[3~",
        "\x1b\r",
        "\x1b",
        "\x1b\x1b",
        "\x1b[200~",
        "\x1b[201~",
        "\x1b[<64;3;4M",
        "\r",
        "\t",
        "/",
        "/mo",
        "!",
        "@",
        "你",
        "e\u{301}",
        "👧🏽",
        "\x1b[13;2u",
        "\x1bb",
        "\x1bd",
    ];
    let sequence =
        prop::sample::select(sequences.to_vec()).prop_map(|text| text.as_bytes().to_vec());
    prop::collection::vec(
        prop_oneof![
            4 => sequence.prop_map(Move::Bytes),
            3 => prop::collection::vec(0x20..0x7f_u8, 1..4).prop_map(Move::Bytes),
            2 => (0..0x20_u8).prop_map(|key| Move::Bytes(vec![key])),
            1 => prop::collection::vec(any::<u8>(), 1..6).prop_map(Move::Bytes),
            1 => Just(Move::Settle),
            3 => (0..11_u8).prop_map(Move::Message),
            1 => (1..130_u16, 1..40_u16).prop_map(|(width, height)| Move::Size(width, height)),
            1 => (0..3000_u64).prop_map(Move::Wait),
        ],
        0..200,
    )
}

/// Returns a message that the engine may send at any time.
fn message(nth: u8) -> ToScreen {
    let todo = Todo {
        content: "Write it".to_owned(),
        ..Todo::default()
    };
    match nth {
        0 => question(),
        1 => ToScreen::Settled,
        2 => ToScreen::Event(asking()),
        3 => ToScreen::Event(piece("# A *reply*\n\n- of two")),
        4 => ToScreen::Event(answered(1)),
        5 => ToScreen::Event(tool("execute_command", "make")),
        6 => ToScreen::Event(result("execute_command", "exit code: 0")),
        7 => ToScreen::Choose(Menu {
            title: "Which?".to_owned(),
            items: vec![("a".to_owned(), "b".to_owned()); 3],
            at: 1,
            is_unasked: false,
        }),
        8 => ToScreen::Type {
            prompt: "Key".to_owned(),
            is_secret: true,
        },
        9 => ToScreen::Todos(vec![todo; 3]),
        _ => ToScreen::Transcript(vec![Entry::user("hi".to_owned())]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_keys_break_the_screen(moves in moves()) {
        let (mut app, mut decoder) = (app(), KeyDecoder::default());
        let (mut now, mut size) = (0, (80, 24));
        for step in moves {
            let inputs = match step {
                Move::Bytes(bytes) => decoder.read(&bytes),
                Move::Settle => decoder.settle(),
                Move::Message(nth) => {
                    app.handle(message(nth), at(now));
                    Vec::new()
                }
                Move::Size(width, height) => {
                    size = (width, height);
                    Vec::new()
                }
                Move::Wait(millis) => {
                    now += millis;
                    app.unfollowed(at(now));
                    app.tick(at(now));
                    Vec::new()
                }
            };
            for input in inputs {
                match input {
                    TerminalInput::Key(key) => { app.key(key, at(now)); }
                    TerminalInput::Paste(text) => app.paste(&text),
                    TerminalInput::Wheel(notches) => app.wheel(notches),
                    TerminalInput::Focus(_) => {}
                }
            }
            let buf = drawn(&mut app, size.0, size.1);
            for cell in buf.content() {
                prop_assert!(!cell.symbol().chars().any(is_deceptive), "{:?}", cell.symbol());
            }
        }
    }
}
