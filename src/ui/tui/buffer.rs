//! A text being edited, with its cursor, cut text and layout in rows. Pure.
//!
//! Guarantees that the cursor is always on a grapheme boundary, and that every row fits the width unless it is
//! a single wider grapheme.

use std::borrow::Cow;
use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};
use unicode_width::UnicodeWidthStr as _;

use crate::sys::text::is_deceptive;

/// The characters that stand for attachments: long pastes and pictures. They belong to a private-use plane, and
/// are removed from all typed and pasted text.
pub const PLACEHOLDERS: Range<u32> = 0xF_0000..0xF_8000;
/// A tab as shown: four spaces, regardless of its position.
const TAB: &str = "    ";

/// Returns the 0-based index of the attachment that a grapheme stands for.
pub fn placeholder(grapheme: &str) -> Option<usize> {
    let code = u32::from(grapheme.chars().next()?);
    let is_one = PLACEHOLDERS.contains(&code);
    is_one.then(|| usize::try_from(code - PLACEHOLDERS.start).unwrap_or_default())
}

/// A text and its cursor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextBuffer {
    text: String,
    /// The cursor's position, in bytes.
    cursor: usize,
    /// The text last cut, inserted by Ctrl-Y.
    killed: String,
    /// The column that Up and Down try to keep.
    goal: Option<usize>,
    /// The changes that Ctrl-_ undoes.
    changes: Vec<TextChange>,
}

/// A replacement of the text `before` by `length` bytes at `start`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TextChange {
    start: usize,
    length: usize,
    before: String,
}

/// A row of the displayed text, as a byte range without the space or newline that ends it.
pub type TextRow = Range<usize>;

impl TextBuffer {
    /// Returns the whole text, with placeholders.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the cursor's position, in bytes.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Replaces the text and moves the cursor to its end. Keeps the cut text.
    pub fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
        self.goal = None;
        self.changes.clear();
    }

    /// Discards the cut text.
    pub fn forget_killed(&mut self) {
        self.killed.clear();
    }

    /// Inserts `text` at the cursor.
    pub fn insert(&mut self, text: &str) {
        self.replace(self.cursor..self.cursor, text);
    }

    /// Replaces a byte range by `text`, and moves the cursor to its end.
    pub fn replace(&mut self, range: Range<usize>, text: &str) {
        if range.is_empty() && text.is_empty() {
            return;
        }
        let before = self.text[range.clone()].to_owned();
        self.text.replace_range(range.clone(), text);
        self.cursor = self.boundary(range.start + text.len());
        self.goal = None;
        let (start, length) = (range.start, text.len());
        // Letters of a word are undone together.
        let is_letter = before.is_empty() && text.chars().all(is_letter);
        match self.changes.last_mut() {
            Some(last) if is_letter && last.start + last.length == start => last.length += length,
            _ => self.changes.push(TextChange {
                start,
                length,
                before,
            }),
        }
    }

    /// Undoes the last change. Returns `false` if there is none.
    fn undo(&mut self) -> bool {
        let Some(change) = self.changes.pop() else {
            return false;
        };
        let end = change.start + change.length;
        self.text.replace_range(change.start..end, &change.before);
        self.go(change.start + change.before.len());
        true
    }

    /// Returns the next grapheme boundary from `at` on: inserted text may have combined with what follows.
    fn boundary(&self, at: usize) -> usize {
        let mut cursor = GraphemeCursor::new(at, self.text.len(), true);
        if matches!(cursor.is_boundary(&self.text, 0), Ok(true)) {
            return at;
        }
        let next = cursor.next_boundary(&self.text, 0).ok().flatten();
        next.unwrap_or(self.text.len())
    }

    /// Returns the start of the grapheme before the cursor.
    fn before(&self) -> usize {
        let mut graphemes = self.text[..self.cursor].grapheme_indices(true);
        graphemes.next_back().map_or(0, |(start, _)| start)
    }

    /// Returns the end of the grapheme after the cursor.
    fn behind(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        let end = self.text[self.cursor..].find('\n');
        end.map_or(self.text.len(), |at| self.cursor + at)
    }

    /// Returns the start of the word before the cursor; `is_word` defines the characters of words.
    fn word_start(&self, is_word: fn(char) -> bool) -> usize {
        let before = self.text[..self.cursor].trim_end_matches(|c| !is_word(c));
        before.trim_end_matches(is_word).len()
    }

    /// Returns the end of the word after the cursor.
    fn word_end(&self) -> usize {
        let rest = self.text[self.cursor..].trim_start_matches(|c| !is_letter(c));
        self.text.len() - rest.trim_start_matches(is_letter).len()
    }

    /// Moves the cursor. Returns whether its position has changed.
    fn go(&mut self, to: usize) -> bool {
        self.goal = None;
        let to = self.boundary(to);
        std::mem::replace(&mut self.cursor, to) != to
    }

    /// Applies an editing key as readline does. Returns whether the text or the cursor has changed; `None` if the key
    /// does not edit.
    pub fn key(&mut self, key: KeyEvent) -> Option<bool> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let (code, by_word) = match key.code {
            KeyCode::Char(letter) if control => (editing_key(letter), false),
            KeyCode::Char(letter @ ('b' | 'd' | 'f')) if alt => (editing_key(letter), true),
            code => (code, control || alt),
        };
        Some(match code {
            KeyCode::Left if by_word => self.go(self.word_start(is_letter)),
            KeyCode::Left => self.go(self.before()),
            KeyCode::Right if by_word => self.go(self.word_end()),
            KeyCode::Right => self.go(self.behind()),
            KeyCode::Home => self.go(self.line_start()),
            KeyCode::End => self.go(self.line_end()),
            KeyCode::Backspace if by_word => {
                self.cut(self.word_start(is_letter)..self.cursor, true)
            }
            KeyCode::Backspace => self.cut(self.before()..self.cursor, false),
            KeyCode::Delete if by_word => self.cut(self.cursor..self.word_end(), true),
            KeyCode::Delete => self.cut(self.cursor..self.behind(), false),
            KeyCode::Char('k') if control => {
                // At the end of a line, cut its newline.
                let end = self.line_end().max(self.behind().min(self.cursor + 1));
                self.cut(self.cursor..end, true)
            }
            KeyCode::Char('u') if control => self.cut(self.line_start()..self.cursor, true),
            KeyCode::Char('w') if control => {
                self.cut(self.word_start(|c| !c.is_whitespace())..self.cursor, true)
            }
            KeyCode::Char('y') if control => {
                let killed = self.killed.clone();
                self.insert(&killed);
                !killed.is_empty()
            }
            // Ctrl-7 and Ctrl-_ send the same byte.
            KeyCode::Char('7' | '_') if control => self.undo(),
            _ => return None,
        })
    }

    fn cut(&mut self, range: Range<usize>, is_kept: bool) -> bool {
        if range.is_empty() {
            return false;
        }
        if is_kept {
            self.killed = self.text[range.clone()].to_owned();
        }
        self.replace(range, "");
        true
    }

    /// Moves the cursor a row up or down. Returns `false` if there is no such row.
    pub fn go_row(&mut self, rows: &[TextRow], is_up: bool, label: &Labels) -> bool {
        let at = row_of(rows, self.cursor);
        let target = if is_up {
            at.checked_sub(1)
        } else {
            Some(at + 1)
        };
        let Some(target) = target.and_then(|target| rows.get(target)) else {
            return false;
        };
        let column = self.goal.unwrap_or_else(|| {
            let before = &self.text[rows[at].start..self.cursor];
            before.graphemes(true).map(|one| width(one, label)).sum()
        });
        let mut cursor = target.start;
        let mut reached = 0;
        let is_last = target.end == self.text.len() || self.text[target.end..].starts_with('\n');
        for grapheme in self.text[target.clone()].graphemes(true) {
            reached += width(grapheme, label);
            // The end of a wrapped row is the beginning of the next.
            let is_end = cursor + grapheme.len() == target.end && !is_last;
            if reached > column || is_end {
                break;
            }
            cursor += grapheme.len();
        }
        self.cursor = self.boundary(cursor);
        self.goal = Some(column);
        true
    }
}

/// Returns the key for which a letter stands with Ctrl or Alt.
fn editing_key(letter: char) -> KeyCode {
    match letter {
        'a' => KeyCode::Home,
        'b' => KeyCode::Left,
        'd' => KeyCode::Delete,
        'e' => KeyCode::End,
        'f' => KeyCode::Right,
        'h' => KeyCode::Backspace,
        other => KeyCode::Char(other),
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The label of each attachment.
pub type Labels = [String];

/// Returns the visible form of a grapheme, which never moves the cursor or reverses text.
pub fn shown<'t>(grapheme: &'t str, labels: &'t Labels) -> Cow<'t, str> {
    if let Some(index) = placeholder(grapheme) {
        let label = labels.get(index).map_or("\u{fffd}", String::as_str);
        return Cow::Borrowed(label);
    }
    match grapheme.chars().next() {
        Some('\t') => Cow::Borrowed(TAB),
        Some('\n') => Cow::Borrowed(""),
        Some(c @ '\0'..'\u{20}') => {
            let picture = char::from_u32(0x2400 + u32::from(c));
            Cow::Owned(picture.unwrap_or('\u{fffd}').to_string())
        }
        Some(_) if grapheme.contains(is_deceptive) => Cow::Borrowed("\u{fffd}"),
        _ => Cow::Borrowed(grapheme),
    }
}

/// Returns the number of columns a grapheme takes.
pub fn width(grapheme: &str, labels: &Labels) -> usize {
    shown(grapheme, labels).width()
}

/// Wraps `text` into rows of `columns`, at spaces if possible. There is always at least one row, and an empty
/// one after a final newline.
pub fn rows(text: &str, columns: usize, labels: &Labels) -> Vec<TextRow> {
    let mut rows = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        let end = start + line.len();
        let (mut row, mut used) = (start, 0);
        // The possible end of the row, and its width up to there.
        let mut blank: Option<(usize, usize)> = None;
        for (at, grapheme) in line.grapheme_indices(true) {
            let (at, wide) = (start + at, width(grapheme, labels));
            while used + wide > columns && at > row {
                let (to, before) = blank.take().unwrap_or((at, used));
                rows.push(row..to);
                (row, used) = (to, used - before);
            }
            used += wide;
            if grapheme == " " || grapheme == "\t" {
                blank = Some((at + grapheme.len(), used));
            }
        }
        rows.push(row..end);
        start = end + 1;
    }
    rows
}

/// Returns the row that contains the cursor.
pub fn row_of(rows: &[TextRow], cursor: usize) -> usize {
    rows.iter()
        .rposition(|row| row.start <= cursor)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
