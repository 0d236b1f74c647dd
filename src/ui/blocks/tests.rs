//! Tests of blocks at every width: nothing is lost, nothing is wider, and nothing controls the terminal. Pure.

use super::*;
use proptest::prelude::*;

#[test]
fn text_stands_below_its_title() {
    let lines = plain("Result", "a\n  b\n\nc\n");
    assert_eq!(lines, ["Result", "  a", "    b", "", "  c"]);
    for nothing in ["", "\n", " \n\t\n"] {
        assert_eq!(plain("T", nothing), ["T"]);
    }
}

#[test]
fn a_tree_keeps_its_shape() {
    let body = "src/\n├── index.ts\n│   └── users.ts\n\n    indented and wrapped\n\n";
    let expected = [
        "src/",
        "├── index.ts",
        "│   └── users.ts",
        "",
        "    indented and",
        "wrapped",
    ];
    assert_eq!(fitted(body, 16, LIMIT), expected);
}

#[test]
fn of_a_long_text_both_ends_are_shown() {
    let body = |count: usize| (1..=count).map(|n| format!("{n}\n")).collect::<String>();
    for count in [1, LIMIT] {
        assert_eq!(fitted(&body(count), 30, LIMIT).len(), count);
    }
    let lines = fitted(&body(1234), 30, LIMIT);
    assert_eq!(lines.len(), LIMIT);
    let around = &lines[LIMIT / 2 - 1..=LIMIT / 2 + 1];
    assert_eq!(around, ["20", "… 1,195 more lines …", "1216"]);
    assert_eq!(lines.last().unwrap(), "1234");
}

#[test]
fn lines_are_broken_at_blanks_where_there_are_any() {
    for (line, expected) in [
        ("", &[""][..]),
        ("abcdefgh", &["abcdefgh"]),
        ("abcdefghi", &["abcdefgh", "i"]),
        ("a/bcd/efgh/i", &["a/bcd/", "efgh/i"]),
        ("a b/cdefghi", &["a", "b/", "cdefghi"]),
        ("ab cdefgh i", &["ab", "cdefgh i"]),
        ("abcdefgh i", &["abcdefgh", "i"]),
        ("  abcdefgh", &["  abcdef", "gh"]),
        ("  ab cdefgh", &["  ab", "cdefgh"]),
        ("a  b    c d e", &["a  b", "c d e"]),
        (
            "\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}",
            &["\u{4f60}\u{597d}\u{4f60}\u{597d}", "\u{4f60}"],
        ),
        (
            "abc\u{4f60}\u{597d}\u{4f60}",
            &["abc\u{4f60}\u{597d}", "\u{4f60}"],
        ),
        (
            "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
            &["e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}"],
        ),
    ] {
        assert_eq!(wrapped(line, 8), expected, "{line:?}");
    }
}

#[test]
fn nothing_that_moves_the_cursor_is_left() {
    for (text, expected) in [
        ("\u{1b}[1;31mred\u{1b}[0m", "red"),
        ("\u{1b}[38:5:1mx\u{1b}[m", "x"),
        ("a\u{1b}[2Jb", "ab"),
        ("\u{1b}]0;title\u{7}x", "\u{fffd}]0;title\u{fffd}x"),
        ("\u{1b}[", "\u{fffd}["),
        ("\u{9b}2J\u{0}", "\u{fffd}"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\tb", "a   b"),
        ("a\n\tb", "a\n    b"),
        ("\u{202e}evil", "\u{fffd}evil"),
        (
            "\u{26a0}\u{fe0f} \u{1f468}\u{200d}\u{1f469}",
            "\u{26a0} \u{1f468}\u{1f469}",
        ),
    ] {
        assert_eq!(visible(text), expected, "{text:?}");
    }
    let marks = format!("e{}x", "\u{301}".repeat(1000));
    assert_eq!(visible(&marks).chars().count(), 2 + MARKS);
}

#[test]
fn tabs_are_blanks_up_to_the_next_stop() {
    for (line, expected) in [
        ("\tx", "    x"),
        ("abc\tx", "abc x"),
        ("abcd\tx", "abcd    x"),
        ("\u{4f60}\tx", "\u{4f60}  x"),
    ] {
        assert_eq!(visible(line), expected, "{line:?}");
    }
}

/// Generates hostile text: any characters, many of them special.
fn any_text() -> impl Strategy<Value = String> {
    let special = prop::sample::select(vec![
        "\u{4f60}",
        "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
        "\u{26a0}\u{fe0f}",
        "\u{1f1e9}\u{1f1ea}",
        "\u{1f44d}\u{1f3fd}",
        "e\u{301}",
        "\u{200b}",
        "\u{200d}",
        "\u{644}\u{627}",
        "1\u{fe0f}\u{20e3}",
        "\t",
        "\n",
        "\r",
        " ",
        "    ",
        "\u{1b}[31m",
        "\u{1b}[2J",
        "\u{ad}",
        "\u{3000}",
        "word",
        "a-very-long-word-that-has-no-blank",
        "\u{1100}\u{1161}\u{11a8}",
        "<\u{338}",
        "\u{fe0e}",
        "\u{e0020}",
    ]);
    let piece = prop_oneof![3 => special.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from), 1 => "[ -~]{0,12}"];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_line_takes_more_than_its_columns(body in any_text(), columns in 16usize..=250) {
        for line in fitted(&body, columns, LIMIT) {
            prop_assert!(text_width(&line) <= columns, "{:?}", line);
            prop_assert!(!line.contains(char::is_control), "{:?}", line);
        }
    }

    #[test]
    fn no_line_of_plain_text_has_control_characters(title in any_text(), body in any_text()) {
        for line in plain(&title, &body) {
            prop_assert!(!line.contains(char::is_control), "{:?}", line);
        }
    }

    #[test]
    fn wrapping_loses_nothing_but_blanks(line in "[a-z\u{4f60}\u{e9} ]{0,200}", width in 16usize..80) {
        let pieces = wrapped(&line, width);
        prop_assert_eq!(pieces.concat().replace(' ', ""), line.replace(' ', ""));
        for piece in &pieces {
            prop_assert!(text_width(piece) <= width, "{:?}", piece);
        }
    }
}
