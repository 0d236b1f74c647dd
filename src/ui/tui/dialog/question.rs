//! Whether something is allowed: what it is, why it is asked about, and what it would change.

use std::cell::Cell;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::{CANCEL, TypedLine, is_cancel, put};
use crate::sys::text::printable;
use crate::ui::columns::folded;
use crate::ui::question::{Answer, Question};
use crate::ui::tui::Verdict;
use crate::ui::tui::theme::Theme;

/// How many lines of what would be changed are wanted on the screen.
const MOST_SHOWN: usize = 20;

/// A question that is asked.
#[derive(Debug)]
pub struct QuestionDialog {
    question: Question,
    /// What would be changed, line by line, without tabs.
    preview: Vec<String>,
    /// The first line that is seen, of the head and the preview.
    first: Cell<usize>,
    /// How many lines were seen at once, and how many there are.
    seen: Cell<usize>,
    all: Cell<usize>,
    /// What is to be done instead, while that is typed.
    instead: Option<TypedLine>,
}

impl QuestionDialog {
    /// Asks it.
    pub fn new(question: Question, preview: Option<&str>) -> Self {
        let lines = preview.unwrap_or_default().lines();
        Self {
            question,
            preview: lines.map(|line| line.replace('\t', "    ")).collect(),
            first: Cell::new(0),
            seen: Cell::new(0),
            all: Cell::new(0),
            instead: None,
        }
    }

    /// The tool, or that something is asked.
    pub fn title(&self) -> String {
        match self.question.tool.as_str() {
            "" => "Question".to_owned(),
            tool => printable(tool, &[]),
        }
    }

    /// What stands above the preview, each line with its style.
    fn head(&self, columns: usize, theme: &Theme) -> Vec<(String, Style)> {
        let Question {
            sentence,
            subject,
            reasons,
            ..
        } = &self.question;
        let reasons = match reasons.as_slice() {
            [] => String::new(),
            reasons => format!("because it {}", reasons.join(", ")),
        };
        // The title, the subject and the reasons say all that the sentence says.
        let about = match subject.as_str() {
            "" => (sentence, theme.plain),
            _ => (subject, theme.accent),
        };
        let texts = [about, (&reasons, theme.warning)];
        let mut lines = Vec::new();
        for (text, style) in texts {
            let text = printable(&text.replace('\t', "    "), &['\n']);
            let text = folded(&text, Some(columns), 0);
            lines.extend(text.lines().map(|line| (line.to_owned(), style)));
        }
        lines
    }

    /// What each key does.
    fn keys(&self, columns: usize) -> Vec<String> {
        let mut keys = vec!["y yes", "n no", "e no, and say what instead"];
        if self.question.may_last {
            keys.insert(1, "a Always allow for this project");
        }
        if self.question.may_forbid {
            keys.push("d never in this project");
        }
        let text = folded(&keys.join(" | "), Some(columns), 0);
        text.lines()
            .map(str::to_owned)
            .chain([CANCEL.to_owned()])
            .collect()
    }

    /// The same in a word each, for where there is little room.
    fn short_keys(&self, columns: usize) -> Vec<String> {
        let Question {
            may_last,
            may_forbid,
            ..
        } = self.question;
        let keys = [
            ("y yes", true),
            ("a always", may_last),
            ("n no", true),
            ("d never", may_forbid),
            ("e else", true),
        ];
        let keys = keys.iter().filter(|(_, is_there)| *is_there);
        let keys: Vec<&str> = keys.map(|(key, _)| *key).collect();
        let text = folded(&keys.join("  "), Some(columns), 0);
        text.lines().map(str::to_owned).collect()
    }

    /// How many rows it wants.
    pub fn height(&self, columns: usize) -> usize {
        let head = self.head(columns, &Theme::new(true)).len();
        let below = if self.instead.is_some() {
            2
        } else {
            self.keys(columns).len()
        };
        head + self.preview.len().min(MOST_SHOWN) + below
    }

    /// Draws it: the keys in any case, and above them what there is room for; the rest can be scrolled to.
    pub fn render(&self, area: Rect, buf: &mut Buffer, theme: &Theme) {
        let (columns, rows) = (usize::from(area.width).max(1), usize::from(area.height));
        let head = self.head(columns, theme);
        let all = head.len() + self.preview.len();
        let keys = match self.instead {
            Some(_) => vec![String::new(), format!("Enter sends it | {CANCEL}")],
            None => self.keys(columns),
        };
        // What is asked about is not crowded out by the keys.
        let is_crowded = all + keys.len() > rows && keys.len() * 3 > rows;
        let keys = match self.instead {
            None if is_crowded => self.short_keys(columns),
            _ => keys,
        };
        let below = keys.len().min(rows.saturating_sub(1));
        let seen = (rows - below).min(all);
        self.seen.set(seen);
        self.all.set(all);
        self.first.set(self.first.get().min(all - seen));
        let first = self.first.get();
        for row in 0..seen {
            if let Some((line, style)) = head.get(first + row) {
                put(buf, area, row, line, *style);
            } else {
                let line = &self.preview[first + row - head.len()];
                put(buf, area, row, line, style_of(line, theme));
            }
        }
        for (nth, line) in keys.iter().take(below).enumerate() {
            put(buf, area, rows - below + nth, line, theme.dim);
        }
        if let Some(line) = &self.instead {
            line.render(area, rows - below, buf, theme);
        }
    }

    /// Which of its lines were seen, where those were not all.
    pub fn position(&self) -> Option<String> {
        let (first, seen, all) = (self.first.get(), self.seen.get(), self.all.get());
        let is_cut = seen < all;
        is_cut.then(|| format!(" {}-{} of {all}, Up and Down ", first + 1, first + seen))
    }

    /// Takes a key.
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
            KeyCode::Char(c) if (key.modifiers - KeyModifiers::SHIFT).is_empty() => {
                match c.to_ascii_lowercase() {
                    'y' => return verdict(Answer::Yes, false),
                    'n' => return verdict(Answer::No, false),
                    'a' if self.question.may_last => return verdict(Answer::Yes, true),
                    'd' if self.question.may_forbid => return verdict(Answer::No, true),
                    'e' => self.instead = Some(TypedLine::default()),
                    _ => {}
                }
            }
            _ => {}
        }
        None
    }

    /// Takes what was pasted, where a line is typed; whether it is.
    pub fn paste(&mut self, text: &str) -> bool {
        self.instead.as_mut().map(|line| line.paste(text)).is_some()
    }

    /// Scrolls what stands above the keys.
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

/// How a line of a unified diff looks.
fn style_of(line: &str, theme: &Theme) -> Style {
    match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => theme.heading,
        [b'+', ..] => theme.added,
        [b'-', ..] => theme.removed,
        [b'@', ..] => theme.accent,
        _ => theme.plain,
    }
}
