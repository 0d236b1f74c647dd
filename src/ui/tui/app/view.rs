//! The screen's layout and drawing.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr as _;

use super::{App, EngineState};
use crate::record::mode::SharedMode;
use crate::sys::numbers::counted;
use crate::ui::blocks::{one_line, wrapped};
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::item::first_line;
use crate::ui::tui::{sidebar, status, theme};

/// The maximum number of lines shown of queued submissions.
const QUEUED: usize = 3;
/// The screen height below which everything but the transcript takes fewer lines.
const LOW: u16 = 16;
/// The screen height below which the status bar has no border.
const LOWEST: u16 = 10;

/// The areas of the screen.
#[derive(Debug, Default)]
struct ScreenLayout {
    transcript: Rect,
    sidebar: Rect,
    wait: Rect,
    todos: Rect,
    queue: Rect,
    asked: Rect,
    input: Rect,
    status: Rect,
}

impl App {
    /// Draws the whole screen. Returns the cursor's position; `None` if it is hidden.
    pub fn draw(&mut self, buf: &mut Buffer) -> Option<Position> {
        self.is_changed = false;
        let layout = self.layout(buf.area);
        self.transcript.render(layout.transcript, buf);
        if !layout.sidebar.is_empty() {
            sidebar::render(&self.todos, layout.sidebar, buf);
        }
        if !layout.wait.is_empty() {
            self.draw_wait(layout.wait, buf);
        }
        sidebar::render_lines(&self.todos, layout.todos, buf);
        self.draw_queue(layout.queue, buf);
        if let Some(dialog) = self.dialog.as_ref().filter(|_| !layout.asked.is_empty()) {
            dialog.render(layout.asked, buf);
        }
        let cursor = self.composer.render(layout.input, buf);
        if !layout.status.is_empty() {
            let mode = self.mode.as_ref().map(SharedMode::get);
            let is_asked = matches!(self.dialog, Some(Dialog::Line(..)));
            status::render(&self.status, mode, is_asked, layout.status, buf);
        }
        if self.is_plain {
            theme::take_colors_out(buf, layout.transcript);
        }
        cursor
    }

    /// Returns the temporary hint, wrapped to the given number of columns.
    fn hint_lines(&self, columns: u16) -> (Vec<String>, Style) {
        let (text, style) = match (&self.armed, &self.hint) {
            (Some(_), _) => ("(esc again to stop)", theme::WARNING),
            (None, Some((text, _))) => (text.as_str(), theme::DIM),
            (None, None) => return (Vec::new(), theme::DIM),
        };
        (wrapped(&one_line(text), columns.max(1).into()), style)
    }

    /// Draws the current wait in the space left by the hint.
    fn draw_wait(&self, area: Rect, buf: &mut Buffer) {
        let (lines, style) = self.hint_lines(area.width);
        let widest = lines.iter().map(|line| line.width()).max().unwrap_or(0);
        let columns = area.width.min(u16::try_from(widest).unwrap_or(u16::MAX));
        if let (Some(wait), None, ..2) = (&self.wait, &self.dialog, lines.len()) {
            let gap = u16::from(columns > 0);
            let width = area.width.saturating_sub(columns + gap);
            wait.render(self.now, self.status.vendor, Rect { width, ..area }, buf);
        }
        for (line, y) in lines.iter().zip(area.y..area.bottom()) {
            buf.set_stringn(area.right() - columns, y, line, columns.into(), style);
        }
    }

    /// Draws the queued submissions.
    fn draw_queue(&self, area: Rect, buf: &mut Buffer) {
        let how = match self.engine {
            _ if self.dialog.is_some() => "until you have answered",
            EngineState::Idle => "Enter sends it, Up takes it back",
            _ => "Up takes it back",
        };
        let more = self.queue.len().saturating_sub(area.height.into());
        let rows = area.y..area.bottom();
        for ((nth, waiting), y) in self.queue.iter().enumerate().zip(rows) {
            let is_last = nth + 1 == usize::from(area.height);
            let text = if is_last && more > 0 {
                format!("  … {}", counted(more as u64 + 1, "more message"))
            } else {
                let around = "  waits: … ()".len() + how.len();
                let room = usize::from(area.width).saturating_sub(around);
                let shown = super::shown(waiting);
                let mut text = first_line(shown, room);
                if text.len() < shown.trim().len() {
                    text.push('…');
                }
                format!("  waits: {text} ({how})")
            };
            buf.set_stringn(area.x, y, text, area.width.into(), theme::DIM);
        }
    }

    /// Divides the screen. Input and questions take precedence over what is only displayed, but the transcript
    /// always keeps a line.
    fn layout(&self, area: Rect) -> ScreenLayout {
        let is_low = area.height < LOW;
        let sidebar_width = if self.todos.is_empty() {
            0
        } else {
            sidebar::width(area.width)
        };
        let mut rest = area.height;
        let mut take = |wanted: u16| {
            let taken = wanted.min(rest.saturating_sub(1));
            rest -= taken;
            taken
        };
        let status = take(if area.height < LOWEST {
            1
        } else {
            status::HEIGHT
        });
        // On a low screen, a question takes precedence over everything else.
        let is_asked_low = is_low && self.dialog.is_some();
        let most = match area.height.saturating_sub(status) {
            rows if is_asked_low => rows,
            rows => rows * 2 / 3,
        };
        // The draft stays visible.
        let is_shown = |dialog: &Dialog| dialog.wants_text() || self.is_typing();
        let wanted_input = match &self.dialog {
            None => self.composer.height(area.width).min(most),
            Some(dialog) if is_shown(dialog) => {
                let rows = self.composer.height(area.width);
                rows.min(if is_low { 1 } else { most / 3 })
            }
            Some(_) => 0,
        };
        let dialog = self.dialog.as_ref();
        let wanted = dialog.map_or(0, |dialog| dialog.height(area.width));
        let input = take(wanted_input.max(u16::from(wanted == 0)));
        let asked = take(wanted.min(most.saturating_sub(input)));
        let height = u16::try_from(self.hint_lines(area.width).0.len()).unwrap_or(u16::MAX);
        let wait = take(match &self.wait {
            _ if is_asked_low => 0,
            Some(_) if !is_low => height.max(2),
            _ => height.max(1),
        });
        let queue = take(u16::try_from(self.queue.len().min(QUEUED)).unwrap_or_default());
        let todos = match sidebar_width {
            0 if is_low => take(sidebar::height(&self.todos).min(2)),
            0 => take(sidebar::height(&self.todos)),
            _ => 0,
        };
        let mut y = area.y;
        let mut row = |height: u16, width: u16| {
            let row = Rect::new(area.x, y, width, height);
            y += height;
            row
        };
        let above = row(rest, area.width - sidebar_width);
        ScreenLayout {
            transcript: above,
            sidebar: Rect::new(above.right(), above.y, sidebar_width, above.height),
            wait: row(wait, area.width),
            todos: row(todos, area.width),
            queue: row(queue, area.width),
            asked: row(asked, area.width),
            input: row(input, area.width),
            status: row(status, area.width),
        }
    }
}
