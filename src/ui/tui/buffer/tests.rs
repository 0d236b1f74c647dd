//! Tests of editing by grapheme clusters, at every width.

use super::*;
use proptest::prelude::*;

/// Returns a buffer with this text, and the cursor at the `|`.
fn at(marked: &str) -> TextBuffer {
    let cursor = marked.find('|').unwrap();
    TextBuffer {
        text: marked.replacen('|', "", 1),
        cursor,
        ..TextBuffer::default()
    }
}

fn alt(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::ALT)
}

fn control(letter: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
}

fn marked(buffer: &TextBuffer) -> String {
    let (before, behind) = buffer.text.split_at(buffer.cursor);
    format!("{before}|{behind}")
}

#[test]
fn keys_edit_as_readline_does() {
    for (before, key, after) in [
        ("ab|c", KeyCode::Left.into(), "a|bc"),
        ("|abc", KeyCode::Left.into(), "|abc"),
        ("a👨‍👩‍👧|", KeyCode::Left.into(), "a|👨‍👩‍👧"),
        ("|e\u{301}x", KeyCode::Right.into(), "e\u{301}|x"),
        ("abc|", KeyCode::Right.into(), "abc|"),
        ("one two_x.|", alt(KeyCode::Char('b')), "one |two_x."),
        ("|one two", alt(KeyCode::Char('f')), "one| two"),
        ("one| two", alt(KeyCode::Char('f')), "one two|"),
        ("a\nb|c\nd", control('a'), "a\n|bc\nd"),
        ("a\nb|c\nd", control('e'), "a\nbc|\nd"),
        ("e\u{301}|", KeyCode::Backspace.into(), "|"),
        ("a\n|b", KeyCode::Backspace.into(), "a|b"),
        ("|👨‍👩‍👧x", KeyCode::Delete.into(), "|x"),
        ("a|bc\nd", control('k'), "a|\nd"),
        ("abc|\nd", control('k'), "abc|d"),
        ("a\nbc|d", control('u'), "a\n|d"),
        ("git push --force|", control('w'), "git push |"),
        ("git push --force|", alt(KeyCode::Backspace), "git push --|"),
        ("| one two", alt(KeyCode::Char('d')), "| two"),
    ] {
        let mut buffer = at(before);
        let changes = buffer.key(key);
        assert_eq!(marked(&buffer), after, "{before:?} {key:?}");
        assert_eq!(changes, Some(before != after), "{before:?} {key:?}");
    }
}

#[test]
fn cut_text_can_be_pasted() {
    let mut buffer = at("one two|");
    buffer.key(control('w'));
    buffer.key(control('a'));
    buffer.key(control('y'));
    assert_eq!(marked(&buffer), "two|one ");
    // Text deleted character by character is not cut.
    buffer.key(KeyCode::Backspace.into());
    buffer.key(control('y'));
    assert_eq!(marked(&buffer), "twtwo|one ");
}

#[test]
fn changes_are_undone_word_by_word() {
    let mut buffer = TextBuffer::default();
    for letter in "one two".chars() {
        buffer.insert(&letter.to_string());
    }
    buffer.key(control('u'));
    for expected in ["one two|", "one|", "|", "|"] {
        buffer.key(control('_'));
        assert_eq!(marked(&buffer), expected);
    }
}

fn broken(text: &str, columns: usize) -> Vec<&str> {
    let rows = rows(text, columns, &[]);
    rows.into_iter().map(|row| &text[row]).collect()
}

#[test]
fn rows_break_at_blanks_where_there_are_any() {
    for (text, columns, expected) in [
        ("", 4, &[""][..]),
        ("abc", 4, &["abc"]),
        ("abcd", 4, &["abcd"]),
        ("abcde", 4, &["abcd", "e"]),
        ("ab cd ef", 5, &["ab ", "cd ef"]),
        ("ab cdefgh", 4, &["ab ", "cdef", "gh"]),
        ("a\n\nb\n", 4, &["a", "", "b", ""]),
        ("你好吗", 5, &["你好", "吗"]),
        ("你", 1, &["你"]),
        ("e\u{301}e\u{301}e", 2, &["e\u{301}e\u{301}", "e"]),
        ("a\tb", 4, &["a", "\t", "b"]),
    ] {
        assert_eq!(broken(text, columns), expected, "{text:?}");
    }
}

#[test]
fn up_and_down_keep_their_column() {
    let text = "long line\nx\n你好吗 abc";
    let rows = rows(text, 20, &[]);
    let mut buffer = at("long l|ine\nx\n你好吗 abc");
    let mut seen = Vec::new();
    for is_up in [false, false, true, true] {
        assert!(buffer.go_row(&rows, is_up, &[]));
        seen.push(marked(&buffer));
    }
    assert_eq!(
        seen,
        [
            "long line\nx|\n你好吗 abc",
            "long line\nx\n你好吗| abc",
            "long line\nx|\n你好吗 abc",
            "long l|ine\nx\n你好吗 abc",
        ]
    );
    assert!(!buffer.go_row(&rows, true, &[]));
}

#[test]
fn nothing_of_a_text_is_obeyed() {
    for (grapheme, expected) in [
        ("\u{1b}", "␛"),
        ("\u{7}", "␇"),
        ("\u{9b}", "\u{fffd}"),
        ("a\u{202e}", "\u{fffd}"),
        ("\t", TAB),
        ("ä", "ä"),
    ] {
        assert_eq!(shown(grapheme, &[]), expected);
    }
    let labels = ["[Image #1]".to_owned()];
    assert_eq!(shown("\u{F0000}", &labels), "[Image #1]");
    assert_eq!(width("\u{F0000}", &labels), 10);
    assert_eq!(shown("\u{F0007}", &labels), "\u{fffd}");
}

/// Generates texts with all kinds of difficult characters.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "word ",
        " ",
        "\n",
        "\t",
        "ä",
        "e\u{301}",
        "\u{301}",
        "你",
        "👨‍👩‍👧",
        "\u{1b}[",
        "\u{F0000}",
        "\u{200d}",
        "🇩",
        "\r",
    ]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn edits() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..22u8, 0..40)
}

proptest! {
    #[test]
    fn rows_are_the_text_and_fit(text in text(), columns in 1..12usize) {
        let labels = ["[#]".to_owned()];
        let rows = rows(&text, columns, &labels);
        let mut end = 0;
        for (nth, row) in rows.iter().enumerate() {
            let is_line = nth > 0 && row.start == end + 1 && text[end..].starts_with('\n');
            prop_assert!(row.start == end || is_line);
            let graphemes: Vec<&str> = text[row.clone()].graphemes(true).collect();
            let wide: usize = graphemes.iter().map(|one| width(one, &labels)).sum();
            prop_assert!(wide <= columns || graphemes.iter().filter(|one| width(one, &labels) > 0).count() == 1);
            end = row.end;
        }
        prop_assert_eq!(end, text.len());
    }

    #[test]
    fn the_cursor_stands_between_graphemes_whatever_is_done(text in text(), edits in edits(), columns in 1..12usize) {
        let labels = ["[#]".to_owned()];
        let mut buffer = TextBuffer::default();
        buffer.insert(&text);
        for edit in edits {
            let key = match edit {
                0 => KeyCode::Left.into(),
                1 => KeyCode::Right.into(),
                2 => alt(KeyCode::Char('b')),
                3 => alt(KeyCode::Char('f')),
                4 => control('a'),
                5 => control('e'),
                6 => KeyCode::Backspace.into(),
                7 => KeyCode::Delete.into(),
                8 => control('k'),
                9 => control('u'),
                10 => control('w'),
                11 => alt(KeyCode::Backspace),
                12 => alt(KeyCode::Char('d')),
                13 => control('y'),
                14 => control('_'),
                18 => {
                    buffer.insert("\u{301}");
                    continue;
                }
                other => {
                    let rows = rows(&buffer.text, columns, &labels);
                    buffer.go_row(&rows, other % 2 == 0, &labels);
                    continue;
                }
            };
            prop_assert!(buffer.key(key).is_some());
            let mut ends = buffer.text.grapheme_indices(true).map(|(at, _)| at);
            let is_between = buffer.cursor == buffer.text.len() || ends.any(|at| at == buffer.cursor);
            prop_assert!(is_between);
        }
    }
}
