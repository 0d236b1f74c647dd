//! A question of permission: its subject, the reason for asking, and the proposed change.

use std::cell::{Cell, Ref, RefCell};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr as _;

use super::line::{CANCEL, TypedLine, is_cancel, put};
use crate::record::question::{Answer, Question, Verdict};
use crate::sys::text::printable;
use crate::ui::columns::folded;
use crate::ui::paint::diff_style;
use crate::ui::steps::HANG;
use crate::ui::tui::theme;

/// A dialog that asks for a permission.
#[derive(Debug)]
pub struct QuestionDialog {
    question: Question,
    /// The proposed change.
    preview: String,
    /// The scrollable part, and the width for which it was laid out.
    body: RefCell<(usize, Vec<(String, Style)>)>,
    /// The index of its first visible line.
    first: Cell<usize>,
    /// The number of visible lines, and of all lines.
    seen: Cell<usize>,
    all: Cell<usize>,
    /// True if the short form of the keys was shown.
    is_short: Cell<bool>,
    /// The alternative instruction being typed, if any.
    instead: Option<TypedLine>,
}

impl QuestionDialog {
    /// Creates the dialog.
    pub fn new(question: Question, preview: Option<&str>) -> Self {
        Self {
            question,
            preview: preview.unwrap_or_default().to_owned(),
            body: RefCell::default(),
            first: Cell::new(0),
            seen: Cell::new(0),
            all: Cell::new(0),
            is_short: Cell::new(false),
            instead: None,
        }
    }

    /// Returns the tool's name, or a general title.
    pub fn title(&self) -> String {
        match self.question.tool.as_str() {
            "" => "Question".to_owned(),
            tool => printable(tool, &[]),
        }
    }

    /// Returns the reason for asking, shown above the scrollable part.
    fn reason(&self, columns: usize) -> Vec<String> {
        match self.question.reasons.as_slice() {
            [] => Vec::new(),
            reasons => broken(&format!("because it {}", reasons.join(", ")), columns, 0),
        }
    }

    /// Returns the part that scrolls: the subject and the proposed change.
    fn body(&self, columns: usize) -> Ref<'_, [(String, Style)]> {
        if self.body.borrow().0 != columns {
            let Question {
                sentence, subject, ..
            } = &self.question;
            // Together, the title, subject and reasons say as much as the sentence.
            let (about, style) = match subject.as_str() {
                "" => (sentence, theme::PLAIN),
                _ => (subject, theme::ACCENT),
            };
            let about = broken(about, columns, 0).into_iter();
            let mut lines: Vec<(String, Style)> = about.map(|line| (line, style)).collect();
            if self.question.may_last && !self.question.lasting.is_empty() {
                let lasting = format!("`a` allows for good: {}", self.question.lasting);
                let lasting = broken(&lasting, columns, HANG).into_iter();
                lines.extend(lasting.map(|line| (line, theme::DIM)));
            }
            for line in self.preview.lines() {
                let pieces = broken(line, columns, HANG).into_iter();
                lines.extend(pieces.map(|piece| (piece, diff_style(line, false))));
            }
            self.body.replace((columns, lines));
        }
        Ref::map(self.body.borrow(), |(_, lines)| lines.as_slice())
    }

    /// Returns the description of each available key.
    fn keys(&self, columns: usize) -> Vec<String> {
        let question = &self.question;
        let keys = [
            ("y yes", true),
            ("a Always allow for this project", question.may_last),
            ("n no", true),
            ("e no, and say what instead", question.may_redirect),
            ("d never in this project", question.may_forbid),
        ];
        let mut lines = listed(&keys, " | ", columns);
        lines.push(CANCEL.to_owned());
        lines
    }

    /// Like [`Self::keys`], in a short form for small screens.
    fn short_keys(&self, columns: usize) -> Vec<String> {
        let question = &self.question;
        let keys = [
            ("y yes", true),
            ("a always", question.may_last),
            ("n no", true),
            ("d never", question.may_forbid),
            ("e else", question.may_redirect),
        ];
        listed(&keys, "  ", columns)
    }

    /// Returns the number of rows needed.
    pub fn height(&self, columns: usize) -> usize {
        let above = self.reason(columns).len() + self.body(columns).len();
        let below = if self.instead.is_some() {
            2
        } else {
            self.keys(columns).len()
        };
        above + below
    }

    /// Draws the dialog: always the keys and the reason, and between them as much of the scrollable part as
    /// fits.
    pub fn render(&self, area: Rect, buf: &mut Buffer) {
        let (columns, rows) = (usize::from(area.width).max(1), usize::from(area.height));
        let reason = self.reason(columns);
        let body = self.body(columns);
        let all = body.len();
        let keys = match self.instead {
            Some(_) => vec![String::new(), format!("Enter sends it | {CANCEL}")],
            None => self.keys(columns),
        };
        // Do not let the keys crowd out the subject.
        let is_crowded = reason.len() + all + keys.len() > rows && keys.len() * 3 > rows;
        self.is_short.set(is_crowded && self.instead.is_none());
        let keys = if self.is_short.get() {
            self.short_keys(columns)
        } else {
            keys
        };
        let below = keys.len().min(rows.saturating_sub(1));
        let above = reason.len().min(rows.saturating_sub(below + 1));
        let seen = (rows - below - above).min(all);
        self.seen.set(seen);
        self.all.set(all);
        self.first.set(self.first.get().min(all - seen));
        let first = self.first.get();
        for (row, line) in reason.iter().take(above).enumerate() {
            put(buf, area, row, line, theme::WARNING);
        }
        for (row, (line, style)) in body[first..first + seen].iter().enumerate() {
            put(buf, area, above + row, line, *style);
        }
        for (nth, line) in keys.iter().take(below).enumerate() {
            put(buf, area, rows - below + nth, line, theme::DIM);
        }
        if let Some(line) = &self.instead {
            line.render(area, rows - below, buf);
        }
    }

    /// Returns the texts in the lower border: the key that closes the dialog, if it has no row of its own and
    /// there is room, and the range of visible lines, if not all are visible.
    pub fn border(&self, columns: usize) -> [String; 2] {
        let (first, seen, all) = (self.first.get(), self.seen.get(), self.all.get());
        let position = if seen < all {
            format!(" {}-{} of {all} ↑↓ ", first + 1, first + seen)
        } else {
            String::new()
        };
        let cancel = format!(" {CANCEL} ");
        let has_room = cancel.len() + position.width() <= columns;
        let is_there = self.is_short.get() && has_room;
        [if is_there { cancel } else { String::new() }, position]
    }

    /// Returns whether a key is a letter that may answer the question.
    pub fn is_letter(&self, key: KeyEvent) -> bool {
        let is_bare = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        self.instead.is_none() && matches!(key.code, KeyCode::Char(_)) && is_bare
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Option<Verdict> {
        let verdict = |answer, is_for_good| {
            Some(Verdict {
                answer,
                is_for_good,
            })
        };
        if let Some(line) = &mut self.instead {
            if is_cancel(key) {
                self.instead = None;
            } else if line.key(key) && !line.text.trim().is_empty() {
                return verdict(Answer::Instead(std::mem::take(&mut line.text)), false);
            }
            return None;
        }
        if is_cancel(key) {
            return verdict(Answer::No, false);
        }
        let page = i32::try_from(self.seen.get().max(1)).unwrap_or(i32::MAX);
        match key.code {
            KeyCode::Up => self.scroll(-1),
            KeyCode::Down => self.scroll(1),
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::PageDown => self.scroll(page),
            KeyCode::Home => self.scroll(i32::MIN),
            KeyCode::End => self.scroll(i32::MAX),
            KeyCode::Char(c) if self.is_letter(key) => match c.to_ascii_lowercase() {
                'y' => return verdict(Answer::Yes, false),
                'n' => return verdict(Answer::No, false),
                'a' if self.question.may_last => return verdict(Answer::Yes, true),
                'd' if self.question.may_forbid => return verdict(Answer::No, true),
                'e' if self.question.may_redirect => self.instead = Some(TypedLine::default()),
                _ => {}
            },
            _ => {}
        }
        None
    }

    /// Inserts a paste into the text field. Returns `false` if none is open.
    pub fn paste(&mut self, text: &str) -> bool {
        self.instead.as_mut().map(|line| line.paste(text)).is_some()
    }

    /// Scrolls the part above the keys.
    pub fn scroll(&self, rows: i32) {
        let by = usize::try_from(rows.unsigned_abs()).unwrap_or(usize::MAX);
        let first = match rows {
            ..0 => self.first.get().saturating_sub(by),
            _ => self.first.get().saturating_add(by),
        };
        let last = self.all.get().saturating_sub(self.seen.get());
        self.first.set(first.min(last));
    }
}

/// Joins the available keys with `between`, wrapped to the given number of columns.
fn listed(keys: &[(&str, bool)], between: &str, columns: usize) -> Vec<String> {
    let keys = keys.iter().filter(|(_, is_there)| *is_there);
    let keys: Vec<&str> = keys.map(|(key, _)| *key).collect();
    broken(&keys.join(between), columns, 0)
}

/// Wraps a text, indenting continuation lines by `hang`.
fn broken(text: &str, columns: usize, hang: usize) -> Vec<String> {
    let text = printable(&text.replace('\t', "    "), &['\n']);
    let text = folded(&text, Some(columns), hang);
    text.split('\n').map(str::to_owned).collect()
}
