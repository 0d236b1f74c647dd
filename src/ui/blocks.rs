//! Lays out untrusted text in blocks: under a title, or wrapped to fit the terminal. Pure.
//!
//! Guarantees that nothing in a block moves the cursor, and that no wrapped line exceeds its width, whatever
//! the text; wide characters count by their width on a terminal.

use crate::secret::escapes::without_styles;
use crate::sys::numbers::counted;
use crate::sys::text::{is_deceptive, text_width};

/// The maximum number of lines under a title; longer text is shortened to its beginning and end.
const LIMIT: usize = 40;
/// The distance between tab stops, in columns.
const TAB: usize = 4;
/// The maximum number of zero-width characters after a visible one.
const MARKS: usize = 8;

/// Returns the title on a line and below it the text, indented by two spaces.
pub fn plain(title: &str, text: &str) -> Vec<String> {
    let lines = shown(text, LIMIT, |line| vec![line.trim_end().to_owned()]);
    let body = lines.into_iter().map(|line| match line.as_str() {
        "" => line,
        line => format!("  {line}"),
    });
    std::iter::once(one_line(title)).chain(body).collect()
}

/// Wraps `text` to at most `width` columns; beyond `limit` lines, only its beginning and end are returned.
pub fn fitted(text: &str, width: usize, limit: usize) -> Vec<String> {
    shown(text, limit, |line| wrapped(line, width.max(1)))
}

/// Returns the lines of `text` to show, each wrapped by `broken`, at most `limit` in all.
fn shown(text: &str, limit: usize, broken: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let text = visible(text);
    let body = text.trim_end().trim_start_matches('\n');
    let lines: Vec<String> = body.split('\n').flat_map(broken).collect();
    if lines.iter().all(String::is_empty) {
        return Vec::new();
    }
    limited(lines, limit)
}

/// Returns the lines or, if there are more than `limit`, the first and the last ones.
pub fn limited(mut lines: Vec<String>, limit: usize) -> Vec<String> {
    if lines.len() > limit {
        let head = limit / 2;
        let left_out = lines.len() - (limit - 1);
        let note = format!("… {} …", counted(left_out as u64, "more line"));
        lines.splice(head..head + left_out, [note]);
    }
    lines
}

/// Removes from `text` everything that moves the cursor or whose width differs between terminals. Newlines are the only
/// control characters that remain; tabs become spaces.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut marks, mut last, mut column) = (0, 0, 0);
    for c in without_styles(text).replace("\r\n", "\n").chars() {
        let c = match c {
            '\t' => {
                let blanks = TAB - column % TAB;
                out.push_str(&" ".repeat(blanks));
                (marks, last, column) = (0, 1, column + blanks);
                continue;
            }
            // Text after a carriage return would overwrite the line.
            '\r' | '\n' | '\u{2028}' | '\u{2029}' => '\n',
            c if is_deceptive(c) => '\u{fffd}',
            c => c,
        };
        let width = width(c);
        column = if c == '\n' { 0 } else { column + width };
        // Drop emoji variation selectors and joiners, which only some terminals support.
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

/// Like [`visible`], but on one line.
pub fn one_line(text: &str) -> String {
    visible(text).replace('\n', " ")
}

/// Wraps `line` to at most `width` columns: at spaces if possible, otherwise after a slash, or anywhere. The first line
/// keeps the indentation.
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

/// Returns the length in bytes of the first wrapped line of `text`: at least one character, at most all of it.
fn first_piece(text: &str, width: usize) -> usize {
    let mut taken = 0;
    let mut beyond = text.char_indices().filter(|(at, c)| {
        taken += self::width(*c);
        *at > 0 && taken > width
    });
    let mut fit = beyond.next().map_or(text, |(at, _)| &text[..at]);
    // Combined characters may be wider than the sum of their widths.
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
    // Breaking right after the indentation would leave an empty line.
    let end = blank.or_else(|| fit.rfind('/'));
    end.map_or(fit.len(), |at| at + 1)
}

/// Returns the width of a single character, in columns.
fn width(c: char) -> usize {
    if matches!(c, ' '..='~') {
        return 1;
    }
    text_width(c.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests;
