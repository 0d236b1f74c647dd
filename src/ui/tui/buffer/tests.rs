//! That editing keeps the text whole, letter by letter as people see them, at every width.

use super::*;
use proptest::prelude::*;

/// A buffer of this text, with the cursor at the `|`.
fn at(marked: &str) -> TextBuffer {
    let cursor = marked.find('|').unwrap();
    TextBuffer {
        text: marked.replacen('|', "", 1),
        cursor,
        ..TextBuffer::default()
    }
}

fn marked(buffer: &TextBuffer) -> String {
    let (before, behind) = buffer.text.split_at(buffer.cursor);
    format!("{before}|{behind}")
}

#[test]
fn keys_edit_as_readline_does() {
    for (before, edit, after) in [
        ("ab|c", EditCommand::Left, "a|bc"),
        ("|abc", EditCommand::Left, "|abc"),
        ("a👨‍👩‍👧|", EditCommand::Left, "a|👨‍👩‍👧"),
        ("|e\u{301}x", EditCommand::Right, "e\u{301}|x"),
        ("abc|", EditCommand::Right, "abc|"),
        ("one two_x.|", EditCommand::WordLeft, "one |two_x."),
        ("|one two", EditCommand::WordRight, "one| two"),
        ("one| two", EditCommand::WordRight, "one two|"),
        ("a\nb|c\nd", EditCommand::LineStart, "a\n|bc\nd"),
        ("a\nb|c\nd", EditCommand::LineEnd, "a\nbc|\nd"),
        ("e\u{301}|", EditCommand::DeleteLeft, "|"),
        ("a\n|b", EditCommand::DeleteLeft, "a|b"),
        ("|👨‍👩‍👧x", EditCommand::DeleteRight, "|x"),
        ("a|bc\nd", EditCommand::KillToEnd, "a|\nd"),
        ("abc|\nd", EditCommand::KillToEnd, "abc|d"),
        ("a\nbc|d", EditCommand::KillToStart, "a\n|d"),
        ("git push --force|", EditCommand::KillWord, "git push |"),
        (
            "git push --force|",
            EditCommand::KillWordLeft,
            "git push --|",
        ),
        ("| one two", EditCommand::KillWordRight, "| two"),
    ] {
        let mut buffer = at(before);
        let changes = buffer.edit(edit);
        assert_eq!(marked(&buffer), after, "{before:?} {edit:?}");
        assert_eq!(changes, before != after, "{before:?} {edit:?}");
    }
}

#[test]
fn what_was_cut_comes_back() {
    let mut buffer = at("one two|");
    buffer.edit(EditCommand::KillWord);
    buffer.edit(EditCommand::LineStart);
    buffer.edit(EditCommand::Yank);
    assert_eq!(marked(&buffer), "two|one ");
    // What is deleted letter by letter is not cut.
    buffer.edit(EditCommand::DeleteLeft);
    buffer.edit(EditCommand::Yank);
    assert_eq!(marked(&buffer), "twtwo|one ");
}

#[test]
fn what_was_changed_is_undone_word_by_word() {
    let mut buffer = TextBuffer::default();
    for letter in "one two".chars() {
        buffer.insert(&letter.to_string());
    }
    buffer.edit(EditCommand::KillToStart);
    for expected in ["one two|", "one|", "|", "|"] {
        buffer.edit(EditCommand::Undo);
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

/// Texts with everything in them that is hard.
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
            let edit = match edit {
                0 => EditCommand::Left,
                1 => EditCommand::Right,
                2 => EditCommand::WordLeft,
                3 => EditCommand::WordRight,
                4 => EditCommand::LineStart,
                5 => EditCommand::LineEnd,
                6 => EditCommand::DeleteLeft,
                7 => EditCommand::DeleteRight,
                8 => EditCommand::KillToEnd,
                9 => EditCommand::KillToStart,
                10 => EditCommand::KillWord,
                11 => EditCommand::KillWordLeft,
                12 => EditCommand::KillWordRight,
                13 => EditCommand::Yank,
                14 => EditCommand::Undo,
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
            buffer.edit(edit);
            let mut ends = buffer.text.grapheme_indices(true).map(|(at, _)| at);
            let is_between = buffer.cursor == buffer.text.len() || ends.any(|at| at == buffer.cursor);
            prop_assert!(is_between);
        }
    }
}
