//! Tests of Markdown rendered for a terminal, with and without colours. Pure.

use super::*;
use crate::ui::paint::painted;

fn plain(text: &str, columns: usize) -> String {
    let lines = rendered(text, columns, false, None);
    lines
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn markdown_becomes_text_that_reads_well_without_colors() {
    for (text, expected) in [
        ("one two", "one two"),
        (
            "# Head\n\nText **bold** and `code`.",
            "Head\n\nText bold and `code`.",
        ),
        ("- a\n- b\n  - c\n\nend", "• a\n• b\n  • c\n\nend"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("> said\n> more", "│ said\n│ more"),
        (
            "a\n\n```rust\nfn x() {\n    y\n}\n```\nb",
            "a\n\n    [rust]\n    fn x() {\n        y\n    }\n\nb",
        ),
        ("[here](http://a.b/c)", "here (http://a.b/c)"),
        ("<http://a.b/c>", "http://a.b/c"),
        (
            "| a | long |\n|---|---|\n| **1** | `2` |\n\nend",
            "a  long\n───────\n1  `2`\n\nend",
        ),
        ("a <b>c</b>", "a <b>c</b>"),
        ("a**b**c", "abc"),
        ("~~gone~~ and", "~~gone~~ and"),
        ("HEAD~1 and HEAD~2, ~x~", "HEAD~1 and HEAD~2, ~x~"),
        ("", ""),
    ] {
        assert_eq!(plain(text, 40), expected, "{text:?}");
    }
}

#[test]
fn marks_become_colors() {
    let lines = rendered("# Head\n\n**bold** and `code` ~~gone~~.", 40, true, None);
    let shown: String = lines.iter().map(|line| painted(line, true)).collect();
    for painted in [
        "\u{1b}[1mHead\u{1b}[0m",
        "\u{1b}[1mbold\u{1b}[0m and",
        "\u{1b}[36mcode\u{1b}[0m",
        "\u{1b}[9mgone\u{1b}[0m.",
    ] {
        assert!(shown.contains(painted), "{painted:?}: {shown:?}");
    }
}

#[test]
fn lines_fit_whatever_they_hold() {
    let text = format!(
        "- 漢字 and **words** that {} go on\n  - deeper {}\n",
        "x".repeat(90),
        "y ".repeat(60)
    );
    for columns in [30, 60, 80, 200] {
        for line in rendered(&text, columns, true, None) {
            assert!(line.width() <= columns, "{columns}: {line:?}");
        }
    }
    assert_eq!(
        plain("aa bb cc dd ee ff gg hh", 20),
        "aa bb cc dd ee ff gg\nhh"
    );
}

#[test]
fn nothing_in_it_moves_the_cursor() {
    let text = "a\u{1b}[2Jb\u{202e}c &#27;[2J `\u{1b}]0;t\u{7}x`\n\n```\n\u{1b}[31m\u{9b}2J\n```\n";
    let shown = plain(text, 60);
    assert!(
        !shown.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{7}']),
        "{shown:?}"
    );
}

#[test]
fn a_table_is_aligned_as_it_says() {
    let table = "| name | size | kind |\n|---|--:|:-:|\n| a | 5 | x |\n| long | 1000 | wide |";
    assert_eq!(
        plain(table, 40),
        "name  size  kind\n────────────────\na        5   x\nlong  1000  wide"
    );
}

#[test]
fn the_widest_column_of_a_table_is_wrapped() {
    let table = "| name | meaning |\n|---|---|\n| a | some words here, and more than fit |\n| b | **more** |";
    assert_eq!(
        plain(table, 28),
        "name  meaning\n────────────────────────────\na     some words here, and\n      more than fit\nb     more"
    );
}

#[test]
fn a_table_that_is_too_wide_has_a_line_for_each_cell() {
    let table = "| name | meaning |\n|---|---|\n| a | some words here |\n| b | more |\n| c | |";
    assert_eq!(
        plain(table, 20),
        "name: a\nmeaning: some words\nhere\n\nname: b\nmeaning: more\n\nname: c"
    );
}
