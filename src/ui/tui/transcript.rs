//! The transcript of a conversation, as lines of which a part is seen. Touches nothing, but for the thread that finds
//! the colours of code.
//!
//! Guarantees that drawing takes time by the lines that are seen, not by those that there are: an item becomes lines
//! when it is looked at, once for each width, and only those near to what is seen are kept.

mod events;
mod item;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use self::item::{ItemBody, ItemLook};
use super::Entry;
use super::code_colors::CodeColors;
use super::spinner::more_below;
use super::streaming::{MarkdownBlock, take_settled};
use super::theme;
use crate::record::tasks::Task;

pub use self::item::first_line;

/// The lines of so many items are kept.
const HELD: usize = 256;
/// Of so many before and behind those that are seen.
const NEAR: usize = 64;
/// A text that grows is looked at for settled blocks whenever it has so many bytes more.
const SETTLING: usize = 1 << 10;

/// An item and its lines.
#[derive(Debug)]
struct TranscriptItem {
    body: ItemBody,
    /// The number of tools that are at work around it.
    depth: usize,
    /// True if it came of the reply that is under way.
    is_streamed: bool,
    /// The number of lines it has, the blank one before it included; `None`: not known at this width.
    height: Option<usize>,
    /// Its lines; `None`: not made, or given up again.
    lines: Option<Vec<Line<'static>>>,
}

/// A line: that of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LinePosition {
    item: usize,
    line: usize,
}

/// The transcript.
pub struct Transcript {
    items: Vec<TranscriptItem>,
    /// The first line that is seen; `None`: the last line is.
    top: Option<LinePosition>,
    /// The extent of the transcript when the user scrolled away from its end: the number of items, and of lines of the
    /// last.
    seen: (usize, usize),
    /// The size that it was drawn in last.
    size: (usize, usize),
    is_unfolded: bool,
    /// Which items have lines.
    held: Vec<usize>,
    /// The task list as it was shown last.
    tasks: Vec<Task>,
    /// Which tools are at work, the innermost last.
    tools: Vec<usize>,
    /// Where what came of the latest call begins.
    step: usize,
    /// True if that call was answered.
    is_answered: bool,
    /// The size from which on the last block is looked at again.
    settle_at: usize,
    code: CodeColors,
    /// True if only an agent's steps are shown, and not its replies as they come.
    has_steps: bool,
}

impl Transcript {
    /// An empty one, of an agent of which only the steps are shown, and not its replies as they come, if it `has_steps`.
    #[must_use]
    pub fn new(has_steps: bool) -> Self {
        Self {
            items: Vec::new(),
            top: None,
            seen: (0, 0),
            size: (80, 24),
            is_unfolded: false,
            held: Vec::new(),
            tasks: Vec::new(),
            tools: Vec::new(),
            step: 0,
            is_answered: true,
            settle_at: SETTLING,
            code: CodeColors::default(),
            has_steps,
        }
    }

    /// Has these in the place of all that is there.
    pub fn replace(&mut self, entries: Vec<Entry>) {
        *self = Self {
            size: self.size,
            is_unfolded: self.is_unfolded,
            // It has the grammars, which take long to load.
            code: std::mem::take(&mut self.code),
            ..Self::new(self.has_steps)
        };
        for entry in entries {
            self.add(entry);
        }
        self.step = self.items.len();
    }

    /// Shows all of everything, or the most important of it again.
    pub fn toggle_folding(&mut self) {
        self.is_unfolded = !self.is_unfolded;
        self.forget_lines();
    }

    /// Takes colours that were found meanwhile; whether there are any.
    pub fn poll(&mut self) -> bool {
        let is_any = self.code.poll();
        if is_any {
            for &at in &self.held {
                if let Some(item) = self.items.get_mut(at)
                    && matches!(item.body, ItemBody::Agent(_))
                {
                    item.lines = None;
                }
            }
        }
        is_any
    }

    /// Returns whether colours are being looked for: [`Self::poll`] is to be called again soon.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.code.is_pending()
    }

    fn push(&mut self, body: ItemBody) {
        self.items.push(TranscriptItem {
            body,
            depth: self.tools.len(),
            is_streamed: false,
            height: None,
            lines: None,
        });
    }

    /// Adds a whole text of the agent's, block by block.
    fn push_markdown(&mut self, mut text: String) {
        let mut continues = false;
        for block in take_settled(&mut text, &mut continues) {
            self.push(ItemBody::Agent(block));
        }
        if !text.trim().is_empty() {
            self.push(ItemBody::Agent(MarkdownBlock { text, continues }));
        }
    }

    /// An item has changed.
    fn touch(&mut self, at: usize) {
        if let Some(item) = self.items.get_mut(at) {
            (item.height, item.lines) = (None, None);
        }
    }

    /// Takes a piece of a reply.
    fn push_piece(&mut self, piece: &str, is_thought: bool) {
        let is_same = self.items[self.step.min(self.items.len())..].last();
        let is_same = is_same.is_some_and(|last| {
            last.is_streamed && matches!(last.body, ItemBody::Thought(_)) == is_thought
        });
        let of_kind = |block| {
            if is_thought {
                ItemBody::Thought(block)
            } else {
                ItemBody::Agent(block)
            }
        };
        if !is_same {
            self.push(of_kind(MarkdownBlock::default()));
            self.settle_at = SETTLING;
        }
        let Some(last) = self.items.last_mut() else {
            return;
        };
        last.is_streamed = true;
        (last.height, last.lines) = (None, None);
        let (ItemBody::Agent(block) | ItemBody::Thought(block)) = &mut last.body else {
            return;
        };
        block.text.push_str(piece);
        if block.text.len() < self.settle_at {
            return;
        }
        let mut open = std::mem::take(block);
        let settled = if is_thought {
            take_lines(&mut open)
        } else {
            take_settled(&mut open.text, &mut open.continues)
        };
        self.settle_at = open.text.len() + SETTLING;
        self.items.pop();
        for block in settled.into_iter().chain([open]) {
            self.push(of_kind(block));
            if let Some(last) = self.items.last_mut() {
                last.is_streamed = true;
            }
        }
    }

    /// Takes off what came of a reply that is not to count.
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

    /// Scrolls by so many lines, up where they are negative.
    pub fn scroll(&mut self, lines: isize) {
        let mut top = match self.top {
            Some(top) => top,
            None => self.first_at_end(),
        };
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

    /// Looks at what begins at `top`; at the end, where that begins before it.
    fn look_from(&mut self, top: LinePosition) {
        let was_at_end = self.top.is_none();
        // One line says what is below.
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

    /// The first line that is seen where the last one is.
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

    /// Returns the number of lines there are that were not there when the user scrolled away.
    fn new_lines(&mut self) -> usize {
        let (items, lines) = self.seen;
        let from = items.saturating_sub(1);
        let all: usize = (from..self.items.len()).map(|at| self.height(at)).sum();
        all.saturating_sub(lines)
    }

    /// Returns the number of lines an item has, the blank one before it included.
    fn height(&mut self, at: usize) -> usize {
        match self.items.get(at).map(|item| item.height) {
            Some(Some(height)) => height,
            Some(None) => self.make_lines(at),
            None => 0,
        }
    }

    /// Makes an item's lines, if they are not there; how many there are.
    fn make_lines(&mut self, at: usize) -> usize {
        let is_apart = at > 0 && !self.items[at].body.continues(&self.items[at - 1].body);
        let item = &mut self.items[at];
        let indent = (item.depth * 2).min(self.size.0 / 4);
        let look = ItemLook {
            width: self.size.0 - indent,
            code: &self.code,
            is_unfolded: self.is_unfolded,
        };
        let mut lines = item.body.lines(look);
        if indent > 0 {
            for line in &mut lines {
                line.spans.insert(0, " ".repeat(indent).into());
            }
        }
        if is_apart && !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        let height = lines.len();
        (item.height, item.lines) = (Some(height), Some(lines));
        self.held.push(at);
        height
    }

    fn forget_lines(&mut self) {
        for item in &mut self.items {
            (item.height, item.lines) = (None, None);
        }
        self.held.clear();
    }

    /// Takes a new size; what was seen first, is still.
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

    /// Draws what is seen.
    pub fn render(&mut self, area: Rect, buf: &mut Buffer) {
        self.resize(area.width.into(), area.height.into());
        if let Some(top) = self.top {
            // There may be less than before.
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
            let style = theme::ACCENT;
            buf.set_stringn(area.x, bottom, text, area.width.into(), style);
        }
        self.let_go(first.item, at);
    }

    /// Gives up the lines of what is far from what is seen.
    fn let_go(&mut self, first: usize, end: usize) {
        if self.held.len() <= HELD {
            return;
        }
        let near = first.saturating_sub(NEAR)..end + NEAR;
        let items = &mut self.items;
        self.held.retain(|at| {
            let Some(item) = items.get_mut(*at) else {
                return false;
            };
            if !near.contains(at) {
                item.lines = None;
            }
            near.contains(at)
        });
        self.held.sort_unstable();
        self.held.dedup();
    }
}

/// Takes all whole lines off a thought that goes on.
fn take_lines(open: &mut MarkdownBlock) -> Vec<MarkdownBlock> {
    // Without a line end it is one anywhere: nobody thinks that long in one line.
    let end = open.text.rfind('\n').map_or(open.text.len(), |at| at + 1);
    let rest = open.text.split_off(end);
    let text = std::mem::replace(&mut open.text, rest);
    let continues = std::mem::replace(&mut open.continues, true);
    vec![MarkdownBlock { text, continues }]
}

#[cfg(test)]
mod tests;
