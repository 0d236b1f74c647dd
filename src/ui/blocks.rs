//! Blocks of anybody's text: under a title, or broken into lines that fit the terminal. Pure.
//!
//! Guarantees that nothing in a block moves the cursor, and that no broken line takes more columns than it is given,
//! whatever the text: wide characters count as what they take on a terminal.

use crate::secret::escapes::without_escapes;
use crate::sys::numbers::counted;
use crate::sys::text::{is_deceptive, text_width};

/// So many lines of text are shown under a title; of a longer one its head and its tail.
const LIMIT: usize = 40;
/// A tab goes to the next multiple of this.
const TAB: usize = 4;
/// So many characters that take no column may follow one that does.
const MARKS: usize = 8;

/// The title on a line, and below it the text, two blanks in.
pub fn plain(title: &str, text: &str) -> Vec<String> {
    let body = shown(text, LIMIT, |line| vec![line.trim_end().to_owned()]);
    let body = body.into_iter().map(|line| match line.as_str() {
        "" => line,
        line => format!("  {line}"),
    });
    std::iter::once(one_line(title)).chain(body).collect()
}

/// `text` in lines of at most `width` columns, no more than `limit` of them: of a longer one its head and its tail.
pub fn fitted(text: &str, width: usize, limit: usize) -> Vec<String> {
    shown(text, limit, |line| wrapped(line, width.max(1)))
}

/// The lines that are shown of `text`: each broken by `broken`, and no more than `limit` in all.
fn shown(text: &str, limit: usize, broken: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let text = visible(text);
    let lines = text.trim_end().trim_start_matches('\n').split('\n');
    let mut lines: Vec<String> = lines.flat_map(broken).collect();
    if lines.iter().all(String::is_empty) {
        return Vec::new();
    }
    if lines.len() > limit {
        let head = limit / 2;
        let left_out = lines.len() - (limit - 1);
        let note = format!("… {} …", counted(left_out as u64, "more line"));
        lines.splice(head..head + left_out, [note]);
    }
    lines
}

/// `text` with nothing in it that moves the cursor, or that terminals disagree on how wide it is: of what is not
/// a character of its own only newlines are left, and tabs are blanks.
pub fn visible(text: &str) -> String {
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

/// The same on one line.
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', " ")
}

/// `line` in pieces of at most `width` columns: broken at blanks where there are any, else anywhere. The
/// first piece keeps the line's indentation.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut rest = line.trim_end();
    let mut pieces = Vec::new();
    while !rest.is_empty() || pieces.is_empty() {
        let (piece, after) = rest.split_at(first_piece(rest, width));
        pieces.push(piece.trim_end().to_owned());
        rest = after.trim_start_matches(' ');
    }
    pieces
}

/// Returns the number of bytes of `text` are the first line of it; at least a character, at most all.
fn first_piece(text: &str, width: usize) -> usize {
    let mut taken = 0;
    let mut beyond = text.char_indices().filter(|(at, c)| {
        taken += self::width(*c);
        *at > 0 && taken > width
    });
    let mut fit = beyond.next().map_or(text, |(at, _)| &text[..at]);
    // Together they may take more than each by itself.
    while text_width(fit) > width
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

/// Returns the number of columns a character takes by itself.
fn width(c: char) -> usize {
    if matches!(c, ' '..='~') {
        return 1;
    }
    text_width(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests;
