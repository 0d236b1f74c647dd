//! Titled boxes around text, as wide as the terminal. Pure.
//!
//! Guarantees that every line of a box takes exactly the columns it is given, whatever the text: wide
//! characters count as what they take on a terminal, and nothing in a box moves the cursor.

use console::{Style, measure_text_width, truncate_str};

use crate::sys::numbers::counted;
use crate::sys::text::{is_deceptive, without_escapes};

/// Below so many columns there is no room for a box.
const NARROWEST: usize = 20;
/// So many lines of text are shown; of a longer one its head and its tail.
const LIMIT: usize = 40;
/// A tab goes to the next multiple of this.
const TAB: usize = 4;
/// So many characters that take no column may follow one that does.
const MARKS: usize = 8;

/// Text in a style.
#[derive(Debug, Clone)]
pub struct Painted {
    /// Anybody's text.
    pub text: String,
    /// The style of all of it.
    pub style: Style,
}

impl Painted {
    /// `text` in `style`.
    pub fn new(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }
}

/// The lines of a box of `columns` columns; of [`plain`], where that is too narrow.
#[must_use]
pub fn drawn(title: &Painted, body: &[Painted], columns: usize) -> Vec<String> {
    if columns < NARROWEST {
        return plain(title, body);
    }
    let inner = columns - "│  │".chars().count();
    let body = shown(body, |line| wrapped(line, inner));
    let middle = body
        .iter()
        .map(|line| framed(&line.text, &line.style, columns));
    let mut lines = vec![top(title, columns)];
    lines.extend(middle);
    lines.push(format!("└{}┘", "─".repeat(columns - 2)));
    lines
}

/// The title on a line, and below it the text, two blanks in.
#[must_use]
pub fn plain(title: &Painted, body: &[Painted]) -> Vec<String> {
    let body = shown(body, |line| vec![line.trim_end().to_owned()]);
    let middle = body.iter().map(|line| match line.text.as_str() {
        "" => String::new(),
        text => format!("  {}", line.style.apply_to(text)),
    });
    let title_text = one_line(&title.text);
    let mut lines = vec![title.style.apply_to(title_text).to_string()];
    lines.extend(middle);
    lines
}

/// `┌─ Title ───┐`
fn top(title: &Painted, columns: usize) -> String {
    let around = measure_text_width("┌─  ─┐");
    let text = one_line(&title.text);
    let text = truncate_str(&text, columns - around, "…");
    let taken = measure_text_width(&format!("┌─ {text} ┐"));
    let rule = "─".repeat(columns.saturating_sub(taken));
    format!("┌─ {} {rule}┐", title.style.apply_to(text))
}

/// `│ text      │`
fn framed(text: &str, style: &Style, columns: usize) -> String {
    // Measured with all that stands around it: a character's width may depend on its neighbours.
    let taken = measure_text_width(&format!("│ {text} │"));
    let blanks = " ".repeat(columns.saturating_sub(taken));
    format!("│ {}{blanks} │", style.apply_to(text))
}

/// The lines that are shown of `body`: each broken by `broken`, and no more than [`LIMIT`] in all.
fn shown(body: &[Painted], broken: impl Fn(&str) -> Vec<String>) -> Vec<Painted> {
    let mut lines = Vec::new();
    for part in body {
        let text = visible(&part.text);
        for line in text.trim_end().trim_start_matches('\n').split('\n') {
            let pieces = broken(line).into_iter();
            lines.extend(pieces.map(|piece| Painted::new(piece, part.style.clone())));
        }
    }
    if lines.iter().all(|line| line.text.is_empty()) {
        return Vec::new();
    }
    if lines.len() > LIMIT {
        let head = LIMIT / 2;
        let left_out = lines.len() - (LIMIT - 1);
        let note = format!("… {} …", counted(left_out as u64, "more line"));
        let note = Painted::new(note, Style::new());
        lines.splice(head..head + left_out, [note]);
    }
    lines
}

/// `text` with nothing in it that moves the cursor, or that terminals disagree on how wide it is: of what is not
/// a character of its own only newlines are left, and tabs are blanks.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut marks, mut last, mut column) = (0, 0, 0);
    for c in without_escapes(text).replace("\r\n", "\n").chars() {
        let c = match c {
            '\t' => {
                let blanks = TAB - column % TAB;
                out.push_str(&" ".repeat(blanks));
                (marks, last, column) = (0, 1, column + blanks);
                continue;
            }
            // What follows it would write over the line.
            '\r' | '\n' | '\u{2028}' | '\u{2029}' => '\n',
            c if is_deceptive(c) => '\u{fffd}',
            c => c,
        };
        let width = width(c);
        column = if c == '\n' { 0 } else { column + width };
        // A selector of a picture's form, and what joins pictures to one: some terminals heed them.
        if c == '\u{fe0f}' || (c == '\u{200d}' && last == 2) {
            continue;
        }
        if width == 0 {
            marks += 1;
        } else {
            (marks, last) = (0, width);
        }
        if marks <= MARKS {
            out.push(c);
        }
    }
    out
}

fn one_line(text: &str) -> String {
    visible(text).replace('\n', " ")
}

/// `line` in pieces of at most `width` columns: broken at blanks where there are any, else anywhere. The
/// first piece keeps the line's indentation.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut rest = line.trim_end();
    let mut pieces = Vec::new();
    while !rest.is_empty() || pieces.is_empty() {
        let (piece, after) = rest.split_at(first_piece(rest, width));
        pieces.push(piece.trim_end().to_owned());
        rest = after.trim_start_matches(' ');
    }
    pieces
}

/// How many bytes of `text` are the first line of it; at least a character, at most all.
fn first_piece(text: &str, width: usize) -> usize {
    let mut taken = 0;
    let mut beyond = text.char_indices().filter(|(at, c)| {
        taken += self::width(*c);
        *at > 0 && taken > width
    });
    let mut fit = beyond.next().map_or(text, |(at, _)| &text[..at]);
    // Together they may take more than each by itself.
    while measure_text_width(fit) > width
        && let Some((at @ 1.., _)) = fit.char_indices().next_back()
    {
        fit = &fit[..at];
    }
    if text[fit.len()..].starts_with(' ') || fit.len() == text.len() {
        return fit.len();
    }
    let indent = fit.len() - fit.trim_start_matches(' ').len();
    let blank = fit.rfind(' ').filter(|at| *at >= indent);
    // After the indentation alone would come a line with nothing on it.
    blank.map_or(fit.len(), |at| at + 1)
}

/// How many columns a character takes by itself.
fn width(c: char) -> usize {
    if matches!(c, ' '..='~') {
        return 1;
    }
    measure_text_width(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unstyled(text: &str) -> Painted {
        Painted::new(text, Style::new().force_styling(false))
    }

    fn text(title: &str, body: &str, columns: usize) -> String {
        drawn(&unstyled(title), &[unstyled(body)], columns).join("\n")
    }

    #[test]
    fn a_box_looks_as_specified() {
        let body =
            "The user wants to add authentication. I'll start by examining the current project.";
        let expected = "\
┌─ Thoughts ───────────────────────┐
│ The user wants to add            │
│ authentication. I'll start by    │
│ examining the current project.   │
└──────────────────────────────────┘";
        assert_eq!(text("Thoughts", body, 36), expected);
    }

    #[test]
    fn a_tree_keeps_its_shape() {
        let expected = "\
┌─ Result ─────────┐
│ src/             │
│ ├── index.ts     │
│ │   └── users.ts │
│                  │
│     indented and │
│ wrapped          │
└──────────────────┘";
        let body = "src/\n├── index.ts\n│   └── users.ts\n\n    indented and wrapped\n\n";
        assert_eq!(text("Result", body, 20), expected);
    }

    #[test]
    fn a_box_without_text_is_its_borders() {
        for body in ["", "\n", " \n\t\n"] {
            let expected = "┌─ Tool: DONE ─────┐\n└──────────────────┘";
            assert_eq!(text("Tool: DONE", body, 20), expected);
        }
    }

    #[test]
    fn lines_are_broken_at_blanks_where_there_are_any() {
        for (line, expected) in [
            ("", &[""][..]),
            ("abcdefgh", &["abcdefgh"]),
            ("abcdefghi", &["abcdefgh", "i"]),
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
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}[", ""),
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

    #[test]
    fn of_a_long_text_both_ends_are_shown() {
        let body = |count: usize| (1..=count).map(|n| format!("{n}\n")).collect::<String>();
        for count in [1, LIMIT] {
            assert_eq!(text("T", &body(count), 30).lines().count(), count + 2);
        }
        let long = text("T", &body(1234), 30);
        let lines: Vec<&str> = long.lines().collect();
        assert_eq!(lines.len(), LIMIT + 2);
        assert!(lines[20].starts_with("│ 20 "), "{long}");
        assert!(lines[21].starts_with("│ … 1,195 more lines …"), "{long}");
        assert!(lines[22].starts_with("│ 1216 "), "{long}");
        assert!(lines[40].starts_with("│ 1234 "), "{long}");
    }

    #[test]
    fn a_title_that_is_too_long_is_cut() {
        let title = "Tool: FIND_AND_REPLACE_IN_FILE";
        let expected = "┌─ Tool: FIND_AN… ─┐\n└──────────────────┘";
        assert_eq!(text(title, "", 20), expected);
    }

    #[test]
    fn without_room_for_a_box_there_is_none() {
        let expected = "Result\n  a\n    b and more than fits\n\n  c";
        assert_eq!(
            text("Result", "a\n  b and more than fits\n\nc\n", 19),
            expected
        );
    }

    #[test]
    fn colors_take_no_columns() {
        let red = Style::new().red().force_styling(true);
        let body = Painted::new("words that are wrapped over lines", red.clone());
        let lines = drawn(&Painted::new("T", red), &[body], 24);
        assert_eq!(lines.len(), 4);
        for line in lines {
            assert_eq!(measure_text_width(&line), 24, "{line:?}");
        }
    }

    /// Text as hostile as it comes: any characters, many of them special.
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
        fn every_line_takes_exactly_its_columns(title in any_text(), body in any_text(), columns in NARROWEST..=250) {
            for line in text(&title, &body, columns).lines() {
                prop_assert_eq!(measure_text_width(line), columns, "{:?}", line);
                prop_assert!(!line.contains(char::is_control), "{:?}", line);
            }
        }

        #[test]
        fn no_line_of_plain_text_has_control_characters(title in any_text(), body in any_text()) {
            for line in plain(&unstyled(&title), &[unstyled(&body)]) {
                prop_assert!(!line.contains(char::is_control), "{:?}", line);
            }
        }

        #[test]
        fn wrapping_loses_nothing_but_blanks(line in "[a-z\u{4f60}\u{e9} ]{0,200}", width in 16usize..80) {
            let pieces = wrapped(&line, width);
            prop_assert_eq!(pieces.concat().replace(' ', ""), line.replace(' ', ""));
            for piece in &pieces {
                prop_assert!(measure_text_width(piece) <= width, "{:?}", piece);
            }
        }
    }
}
