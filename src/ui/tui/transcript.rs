//! The transcript of a conversation, as lines of which a part is visible. Pure, except for the thread that
//! highlights code.
//!
//! Guarantees that the time for drawing depends on the visible lines, not on all lines: an item is laid out
//! when it is viewed, once per width, and only lines near the visible ones are kept.

mod events;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::code_colors::CodeColors;
use super::item::COLUMNS;
use super::spinner::more_below;
use super::streaming::take_settled;
use super::{Entry, theme};
use crate::record::tasks::Task;
use crate::ui::change::seen;
use crate::ui::steps::{Folding, Look};

/// The number of items that are laid out before distant ones are discarded.
const HELD: usize = 256;
/// The number of items before and after the visible ones whose lines are kept.
const NEAR: usize = 64;
/// The number of bytes by which streamed text must grow before it is checked for complete blocks again.
const SETTLING: usize = 1 << 10;

/// An item and its layout.
#[derive(Debug)]
struct TranscriptItem {
    body: Entry,
    /// The number of running tools around it.
    depth: usize,
    /// True if it comes from the current, streamed reply.
    is_streamed: bool,
    /// The number of lines, including the blank one before it; `None` if not known at this width.
    height: Option<usize>,
    /// The lines; `None` if not laid out, or discarded.
    lines: Option<Vec<Line<'static>>>,
}

/// The position of a line, by item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LinePosition {
    item: usize,
    line: usize,
}

/// The transcript.
#[derive(Default)]
pub struct Transcript {
    items: Vec<TranscriptItem>,
    /// The first visible line; `None` to follow the end.
    top: Option<LinePosition>,
    /// The extent of the transcript when the user scrolled away from its end: the number of items, and of lines
    /// in the last one.
    seen: (usize, usize),
    /// The width and height when it was last drawn.
    size: (usize, usize),
    folding: Folding,
    /// The number of items laid out since distant ones were discarded.
    laid_out: usize,
    /// The last task list shown.
    tasks: Vec<Task>,
    /// The indices of the running tools, innermost last.
    tools: Vec<usize>,
    /// The index of the first item from the latest call.
    step: usize,
    /// True if that call has been answered.
    is_answered: bool,
    /// The size at which the last block is checked again.
    settle_at: usize,
    code: CodeColors,
    /// True if only an agent's steps are shown, not its streamed replies.
    has_steps: bool,
}

impl Transcript {
    /// Creates an empty transcript; with `has_steps`, it shows only an agent's steps, not its streamed replies.
    pub fn new(has_steps: bool) -> Self {
        Self {
            size: (80, 24),
            is_answered: true,
            settle_at: SETTLING,
            has_steps,
            ..Self::default()
        }
    }

    /// Replaces all content with these entries, except for the last notices, which are about the change.
    pub fn replace(&mut self, entries: Vec<Entry>) {
        let is_notice = |item: &TranscriptItem| matches!(item.body, Entry::Event(_));
        let last = self.items.iter().rposition(|item| !is_notice(item));
        let notices = self.items.split_off(last.map_or(0, |last| last + 1));
        *self = Self {
            size: self.size,
            folding: self.folding,
            // Keep the loaded grammars, which take long to load.
            code: std::mem::take(&mut self.code),
            ..Self::new(self.has_steps)
        };
        let notices = notices.into_iter().map(|item| item.body);
        for entry in entries.into_iter().chain(notices) {
            self.add(entry);
        }
        self.step = self.items.len();
    }

    /// Adds an entry.
    pub fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Agent(text) => self.push_markdown(text),
            entry => self.push(entry),
        }
    }

    /// Toggles between showing everything and only the most important parts.
    pub fn toggle_folding(&mut self) {
        self.folding = match self.folding {
            Folding::Unfolded => Folding::Folded,
            _ => Folding::Unfolded,
        };
        self.forget_lines();
    }

    /// Receives finished highlighting. Returns whether there is any.
    pub fn poll(&mut self) -> bool {
        let is_any = self.code.poll();
        if is_any {
            let is_prose = |item: &&mut TranscriptItem| matches!(item.body, Entry::Agent(_));
            let prose = self.items.iter_mut().filter(is_prose);
            prose.for_each(|item| item.lines = None);
        }
        is_any
    }

    /// Returns whether highlighting is in progress, in which case [`Self::poll`] must be called again soon.
    pub fn is_pending(&self) -> bool {
        self.code.is_pending()
    }

    fn push(&mut self, mut body: Entry) {
        if let Entry::Tool(tool) = &mut body {
            tool.is_order = !self.has_steps;
            tool.subject = seen(&tool.subject.replace('\t', "    "));
        }
        self.items.push(TranscriptItem {
            body,
            depth: self.tools.len(),
            is_streamed: false,
            height: None,
            lines: None,
        });
    }

    /// Adds a complete text of the agent, block by block.
    fn push_markdown(&mut self, mut text: String) {
        let blocks = take_settled(&mut text).into_iter().chain([text]);
        for block in blocks.filter(|block| !block.trim().is_empty()) {
            self.push(Entry::Agent(block));
        }
    }

    /// Adds a part of a reply that is being streamed.
    fn push_streamed(&mut self, text: String, is_thought: bool, continues: bool) {
        self.push(if is_thought {
            Entry::Thought { text, continues }
        } else {
            Entry::Agent(text)
        });
        if let Some(last) = self.items.last_mut() {
            last.is_streamed = true;
        }
    }

    /// Discards the layout of a changed item.
    fn touch(&mut self, at: usize) {
        if let Some(item) = self.items.get_mut(at) {
            (item.height, item.lines) = (None, None);
        }
    }

    /// Adds a piece of a streamed reply.
    fn push_piece(&mut self, piece: &str, is_thought: bool) {
        let last = self.items[self.step.min(self.items.len())..].last();
        let is_same = last.is_some_and(|last| {
            last.is_streamed && matches!(last.body, Entry::Thought { .. }) == is_thought
        });
        if !is_same {
            self.push_streamed(String::new(), is_thought, false);
            self.settle_at = SETTLING;
        }
        let Some(last) = self.items.last_mut() else {
            return;
        };
        (last.height, last.lines) = (None, None);
        let (text, mut continues) = match &mut last.body {
            Entry::Agent(text) => (text, false),
            Entry::Thought { text, continues } => (text, *continues),
            _ => return,
        };
        text.push_str(piece);
        if text.len() < self.settle_at {
            return;
        }
        let mut open = std::mem::take(text);
        let settled = if is_thought {
            take_lines(&mut open)
        } else {
            take_settled(&mut open)
        };
        self.settle_at = open.len() + SETTLING;
        self.items.pop();
        for text in settled.into_iter().chain([open]) {
            self.push_streamed(text, is_thought, continues);
            continues = true;
        }
    }

    /// Removes the items of a streamed reply that does not count.
    fn drop_streamed(&mut self) {
        let step = self.step.min(self.items.len());
        let rest = self.items.split_off(step);
        self.items
            .extend(rest.into_iter().filter(|item| !item.is_streamed));
        for at in step..self.items.len() {
            self.touch(at);
        }
        if self.top.is_some_and(|top| top.item >= self.items.len()) {
            self.top = None;
        }
    }

    /// Scrolls by this many lines, up if negative.
    pub fn scroll(&mut self, lines: isize) {
        let mut top = self.top.unwrap_or_else(|| self.first_at_end());
        if lines < 0 {
            let mut up = lines.unsigned_abs();
            while up > top.line {
                if top.item == 0 {
                    (up, top.line) = (0, 0);
                    break;
                }
                up -= top.line;
                top.item -= 1;
                top.line = self.height(top.item);
            }
            top.line -= up;
        } else {
            top.line += lines.unsigned_abs();
            while top.item < self.items.len() && top.line >= self.height(top.item) {
                top.line -= self.height(top.item);
                top.item += 1;
            }
        }
        self.look_from(top);
    }

    /// Scrolls by a page.
    pub fn page(&mut self, is_down: bool) {
        let lines = isize::try_from(self.size.1.saturating_sub(3).max(1)).unwrap_or(1);
        self.scroll(if is_down { lines } else { -lines });
    }

    /// Goes to the first line.
    pub fn show_start(&mut self) {
        self.look_from(LinePosition { item: 0, line: 0 });
    }

    /// Goes to the last line, and stays there.
    pub fn show_end(&mut self) {
        self.top = None;
    }

    /// Shows the lines from `top` on, or the end if that begins before `top`.
    fn look_from(&mut self, top: LinePosition) {
        let was_at_end = self.top.is_none();
        // One line is reserved for the note on lines below.
        let rows = self.size.1.saturating_sub(1);
        let mut below = 0;
        for item in top.item..self.items.len() {
            below += self.height(item);
            if below > rows + top.line + 1 {
                self.top = Some(top);
                if was_at_end {
                    let last = self.items.len() - 1;
                    self.seen = (self.items.len(), self.height(last));
                }
                return;
            }
        }
        self.top = None;
    }

    /// Returns the first visible line when the end is shown.
    fn first_at_end(&mut self) -> LinePosition {
        let mut rows = self.size.1;
        for item in (0..self.items.len()).rev() {
            let height = self.height(item);
            if height >= rows {
                let line = height - rows;
                return LinePosition { item, line };
            }
            rows -= height;
        }
        LinePosition { item: 0, line: 0 }
    }

    /// Returns the number of lines added since the user scrolled away from the end.
    fn new_lines(&mut self) -> usize {
        let (items, lines) = self.seen;
        let from = items.saturating_sub(1);
        let all: usize = (from..self.items.len()).map(|at| self.height(at)).sum();
        all.saturating_sub(lines)
    }

    /// Returns the number of lines of an item, including the blank one before it.
    fn height(&mut self, at: usize) -> usize {
        match self.items.get(at).map(|item| item.height) {
            Some(Some(height)) => height,
            Some(None) => self.make_lines(at),
            None => 0,
        }
    }

    /// Lays out an item if necessary, and returns its number of lines.
    fn make_lines(&mut self, at: usize) -> usize {
        let is_apart = at > 0 && !self.items[at].body.continues(&self.items[at - 1].body);
        let item = &mut self.items[at];
        let indent = (item.depth * 2).min(self.size.0 / 4);
        let look = Look {
            width: self.size.0 - indent,
            is_styled: true,
            folding: self.folding,
        };
        let mut lines = item.body.lines(look, &self.code);
        if indent > 0 {
            for line in &mut lines {
                line.spans.insert(0, " ".repeat(indent).into());
            }
        }
        if is_apart && !lines.is_empty() {
            lines.insert(0, Line::default());
            // A gutter between turns.
            if matches!(item.body, Entry::User { .. }) && !self.has_steps {
                let rule = "─".repeat(look.width.min(COLUMNS));
                lines.insert(1, Line::styled(rule, theme::BORDER));
            }
        }
        let height = lines.len();
        (item.height, item.lines) = (Some(height), Some(lines));
        self.laid_out += 1;
        height
    }

    fn forget_lines(&mut self) {
        for item in &mut self.items {
            (item.height, item.lines) = (None, None);
        }
    }

    /// Sets the size, keeping the first visible text in place.
    fn resize(&mut self, width: usize, rows: usize) {
        let width = width.max(1);
        if width == self.size.0 {
            self.size.1 = rows;
            return;
        }
        let before = self.top.map(|top| self.height(top.item));
        self.size = (width, rows);
        self.forget_lines();
        if let (Some(mut top), Some(before)) = (self.top, before) {
            top.line = top.line * self.height(top.item) / before.max(1);
            self.top = Some(top);
            let last = self.items.len().saturating_sub(1);
            self.seen = (self.items.len(), self.height(last));
        }
    }

    /// Draws the visible part.
    pub fn render(&mut self, area: Rect, buf: &mut Buffer) {
        self.resize(area.width.into(), area.height.into());
        if let Some(top) = self.top {
            // There may be fewer lines than before.
            self.look_from(top);
        }
        let (first, rows) = match self.top {
            Some(top) => (top, area.height.saturating_sub(1)),
            None => (self.first_at_end(), area.height),
        };
        let (mut y, bottom) = (area.y, area.y + rows);
        let mut at = first.item;
        while y < bottom && at < self.items.len() {
            if self.items[at].lines.is_none() {
                self.make_lines(at);
            }
            let skip = if at == first.item { first.line } else { 0 };
            let lines = self.items[at].lines.iter().flatten().skip(skip);
            for line in lines.take(usize::from(bottom - y)) {
                buf.set_line(area.x, y, line, area.width);
                y += 1;
            }
            at += 1;
        }
        if self.top.is_some() && area.height > 0 {
            let text = more_below(self.new_lines());
            buf.set_stringn(area.x, bottom, text, area.width.into(), theme::ACCENT);
        }
        self.discard_distant(first.item, at);
    }

    /// Discards the lines of items far from the visible ones.
    fn discard_distant(&mut self, first: usize, end: usize) {
        if self.laid_out <= HELD {
            return;
        }
        let near = first.saturating_sub(NEAR)..end + NEAR;
        for (at, item) in self.items.iter_mut().enumerate() {
            if !near.contains(&at) {
                item.lines = None;
            }
        }
        self.laid_out = 0;
    }
}

/// Removes all complete lines from an unfinished thought.
fn take_lines(open: &mut String) -> Vec<String> {
    // Without a newline, split anywhere: a thought is rarely that long on one line.
    let end = open.rfind('\n').map_or(open.len(), |at| at + 1);
    let rest = open.split_off(end);
    vec![std::mem::replace(open, rest)]
}

#[cfg(test)]
mod tests;
