//! A question of permission: its subject, the reason for asking, the proposed change, and the answers.

use std::cell::{Cell, Ref, RefCell};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use crate::record::question::{Answer, Question, Verdict};
use crate::ui::change::{CONTEXT, broken, numbered, seen, sums};
use crate::ui::steps::HANG;
use crate::ui::tui::keys::is_cancel;
use crate::ui::tui::list::{CANCEL, SENDS, put};
use crate::ui::tui::theme;

/// The maximum number of rows for the reason.
const REASON: usize = 4;

/// A part of the dialog, wrapped into styled lines.
type Lines = Vec<(String, Style)>;

/// An answer to choose: its letter, its words, and a short form for small screens.
type Choice = (char, &'static str, &'static str);

/// A dialog that asks for a permission.
#[derive(Debug, Default)]
pub struct QuestionDialog {
    question: Question,
    /// The proposed change.
    preview: String,
    /// The scrollable part, and the width and context for which it was laid out.
    body: RefCell<((usize, usize), Lines)>,
    /// The index of its first visible line.
    first: Cell<usize>,
    /// The number of visible lines, and of all lines.
    seen: Cell<usize>,
    all: Cell<usize>,
    /// True if the short form of the keys was shown.
    is_short: Cell<bool>,
    /// The index of the answer selected with the arrow keys.
    chosen: Option<usize>,
    /// True while the user types what to do instead.
    pub is_redirecting: bool,
}

impl QuestionDialog {
    /// Creates the dialog.
    pub fn new(question: Question, preview: Option<&str>) -> Self {
        Self {
            question,
            preview: preview.unwrap_or_default().to_owned(),
            ..Self::default()
        }
    }

    /// Returns whether no answer is selected and none is being typed.
    pub fn awaits_letter(&self) -> bool {
        self.chosen.is_none() && !self.is_redirecting
    }

    /// Returns the tool's name with the file and the size of its change, or a general title.
    pub fn title(&self, columns: usize) -> String {
        let tool = match self.question.tool.as_str() {
            "" => "Question".to_owned(),
            tool => seen(tool).replace('\n', " "),
        };
        match self.changed_file(columns) {
            Some(file) => format!("{tool} {file}"),
            None => tool,
        }
    }

    /// Returns the file that would be changed, with the size of the change; `None` if it does not fit into the title.
    fn changed_file(&self, columns: usize) -> Option<String> {
        let Question { subject, tool, .. } = &self.question;
        let sums = sums(&self.preview).map(|sums| format!(" ({sums})"));
        let file = seen(subject) + &sums.unwrap_or_default();
        let has_room = tool.width() + file.width() + 3 <= columns;
        // Only the program's own question, which names no tool, comes with plain lines.
        let is_change = !tool.is_empty() && !self.preview.is_empty();
        let is_file = !subject.is_empty() && !subject.contains('\n');
        (has_room && is_change && is_file).then_some(file)
    }

    /// Returns the reason for asking, shown above the scrollable part, with the relevant parts of a long command.
    fn reason(&self, columns: usize) -> Vec<String> {
        let Question { reasons, cause, .. } = &self.question;
        if reasons.is_empty() {
            return Vec::new();
        }
        let is_long = broken(&self.question.subject, columns, 0).len() > 1;
        // A cause at the beginning of the command is seen there.
        let is_seen = |cause: &str| self.question.subject.trim_start().starts_with(cause);
        let cause = match cause.join("; ") {
            cause if is_long && !is_seen(&cause) => format!(": {cause}"),
            _ => String::new(),
        };
        let reason = format!("because it {}{cause}", reasons.join(", "));
        let mut lines = broken(&reason, columns, HANG);
        lines.truncate(REASON);
        lines
    }

    /// Returns the part that scrolls: the subject and the proposed change.
    fn body(&self, columns: usize, context: usize) -> Ref<'_, [(String, Style)]> {
        if self.body.borrow().0 != (columns, context) {
            let Question {
                sentence, subject, ..
            } = &self.question;
            // Together, the title, subject and reasons say as much as the sentence.
            let (about, style) = match subject.as_str() {
                _ if self.changed_file(columns).is_some() => ("", theme::ACCENT),
                "" => (sentence.as_str(), theme::PLAIN),
                subject => (subject, theme::ACCENT),
            };
            let mut lines = Lines::new();
            let mut add = |text: &str, hang, style| {
                let pieces = broken(text, columns, hang).into_iter();
                lines.extend(pieces.map(|piece| (piece, style)));
            };
            if !about.is_empty() {
                add(about, 0, style);
            }
            if self.question.may_be_permanent && !self.question.lasting.is_empty() {
                let lasting = format!("`a` allows for good: {}", self.question.lasting);
                add(&lasting, HANG, theme::DIM);
            }
            for (line, style) in numbered(&self.preview, context) {
                add(&line, HANG, style);
            }
            self.body.replace(((columns, context), lines));
        }
        Ref::map(self.body.borrow(), |(_, lines)| lines.as_slice())
    }

    /// Returns the answers that can be chosen.
    fn choices(&self) -> impl Iterator<Item = Choice> {
        let question = &self.question;
        let choices = [
            (('y', "yes", "yes"), true),
            (
                ('a', "Always allow for this project", "always"),
                question.may_be_permanent,
            ),
            (('n', "no", "no"), true),
            (
                ('e', "no, and say what instead", "else"),
                question.may_redirect,
            ),
            (('d', "never in this project", "never"), question.may_forbid),
        ];
        let available = choices.into_iter().filter(|(_, is_there)| *is_there);
        available.map(|(choice, _)| choice)
    }

    /// Arranges the question, if `asks`, and its answers in rows; only the last row of the long form explains the keys.
    fn keys(&self, columns: usize, is_short: bool, asks: bool) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        let mut row = Line::raw("");
        // Without a subject, the question is in the body.
        if asks && !self.question.subject.is_empty() {
            let asks = match self.question.asks {
                "" => "Allow this?",
                asks => asks,
            };
            row.push_span(Span::styled(asks, theme::HEADING));
            row.push_span(" ");
        }
        let between = if is_short { "  " } else { " | " };
        for (at, (letter, long, short)) in self.choices().enumerate() {
            let text = format!("{letter} {}", if is_short { short } else { long });
            let style = match self.chosen {
                Some(chosen) if chosen == at => theme::SELECTED,
                _ => theme::DIM,
            };
            if row.width() > 0 && row.width() + between.len() + text.len() > columns {
                rows.push(std::mem::take(&mut row));
            } else if at > 0 {
                row.push_span(Span::styled(between, theme::DIM));
            }
            row.push_span(Span::styled(text, style));
        }
        rows.push(row);
        if !is_short {
            let keys = format!("←→ Enter choose | {CANCEL}");
            rows.push(Line::styled(keys, theme::DIM));
        }
        rows
    }

    /// Returns the rows below the scrollable part.
    fn below(&self, columns: usize, is_short: bool, asks: bool) -> Vec<Line<'static>> {
        if self.is_redirecting {
            return vec![Line::styled(SENDS, theme::DIM)];
        }
        self.keys(columns, is_short, asks)
    }

    /// Returns the number of rows needed.
    pub fn height(&self, columns: usize) -> usize {
        let above = self.reason(columns).len() + self.body(columns, CONTEXT[0]).len();
        above + self.below(columns, false, true).len()
    }

    /// Draws the dialog: always the keys and the reason, and between them as much of the scrollable part as
    /// fits.
    pub fn render(&self, area: Rect, buf: &mut Buffer) {
        let (columns, rows) = (usize::from(area.width).max(1), usize::from(area.height));
        let reason = self.reason(columns);
        let mut below = self.below(columns, false, true);
        let is_tight = self.height(columns) > rows;
        // Do not let the keys crowd out the subject.
        let is_crowded = is_tight && below.len() * 3 > rows;
        self.is_short.set(is_crowded && !self.is_redirecting);
        if is_crowded {
            // Only the answers take precedence over the question itself.
            below = self.below(columns, true, true);
            if below.len() >= rows {
                below = self.below(columns, true, false);
            }
        }
        let body = self.body(columns, CONTEXT[usize::from(is_tight)]);
        let all = body.len();
        let under = below.len().min(rows.saturating_sub(1));
        let above = reason.len().min(rows.saturating_sub(under + 1));
        let seen = (rows - under - above).min(all);
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
        let top = area.bottom() - u16::try_from(under).unwrap_or_default();
        for (line, y) in below.iter().zip(top..area.bottom()) {
            buf.set_line(area.x, y, line, area.width);
        }
    }

    /// Returns the texts in the lower border: the key that closes the dialog, if it has no row of its own and
    /// there is room, and the range of visible lines, if not all are visible.
    pub fn border(&self, columns: usize) -> [String; 2] {
        let (first, seen, all) = (self.first.get(), self.seen.get(), self.all.get());
        let position = if seen < all {
            format!(" {}-{} of {all} Pg↑↓ ", first + 1, first + seen)
        } else {
            String::new()
        };
        let cancel = format!(" {CANCEL} ");
        let is_there = self.is_short.get() && cancel.len() + position.width() <= columns;
        [if is_there { cancel } else { String::new() }, position]
    }

    /// Returns whether a key is the letter of an answer.
    pub fn is_letter(&self, key: KeyEvent) -> bool {
        let is_bare = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        let is_one = |c: char| {
            self.choices()
                .any(|(letter, ..)| letter == c.to_ascii_lowercase())
        };
        is_bare && matches!(key.code, KeyCode::Char(c) if is_one(c))
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Option<Verdict> {
        let page = i32::try_from(self.seen.get().max(1)).unwrap_or(i32::MAX);
        match key.code {
            KeyCode::PageUp => self.scroll(-page),
            KeyCode::PageDown => self.scroll(page),
            _ if self.is_redirecting => self.is_redirecting = !is_cancel(key),
            _ if is_cancel(key) => return self.answer('n'),
            KeyCode::Left | KeyCode::Up => {
                let last = self.choices().count() - 1;
                self.chosen = Some(self.chosen.and_then(|at| at.checked_sub(1)).unwrap_or(last));
            }
            KeyCode::Right | KeyCode::Down => {
                let next = self.chosen.map_or(0, |at| at + 1);
                self.chosen = Some(next % self.choices().count());
            }
            KeyCode::Home => self.scroll(i32::MIN),
            KeyCode::End => self.scroll(i32::MAX),
            KeyCode::Enter => {
                let chosen = self.choices().nth(self.chosen?);
                return chosen.and_then(|(letter, ..)| self.answer(letter));
            }
            KeyCode::Char(c) if self.is_letter(key) => return self.answer(c.to_ascii_lowercase()),
            _ => {}
        }
        None
    }

    /// Gives the answer of a letter that can be chosen.
    fn answer(&mut self, letter: char) -> Option<Verdict> {
        self.is_redirecting = letter == 'e';
        let answer = match letter {
            'y' | 'a' => Answer::Yes,
            _ => Answer::No,
        };
        (!self.is_redirecting).then_some(Verdict {
            answer,
            is_for_good: matches!(letter, 'a' | 'd'),
        })
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
