//! The todo list: next to the transcript, or in a few lines above the input. Pure.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Widget};

use super::theme;
use crate::record::todos::{Todo, TodoStatus};
use crate::sys::numbers::counted;
use crate::ui::blocks::{one_line, wrapped};

/// The minimum screen width for showing the list next to the transcript.
const FROM: u16 = 100;
/// The maximum number of lines above the input.
const MOST_LINES: usize = 5;

/// Returns the width of the list next to the transcript; 0 if it is shown above the input.
pub fn width(columns: u16) -> u16 {
    if columns < FROM {
        0
    } else {
        (columns / 4).clamp(30, 40)
    }
}

/// Returns the height of the list above the input.
pub fn height(todos: &[Todo]) -> u16 {
    u16::try_from(todos.len().min(MOST_LINES)).unwrap_or_default()
}

/// Draws the list next to the transcript, as much as fits.
pub fn render(todos: &[Todo], area: Rect, buf: &mut Buffer) {
    let done = todos.iter().filter(|todo| is_done(todo)).count();
    let title = format!(" Todos {done}/{} ", todos.len());
    let block = Block::new()
        .borders(Borders::LEFT)
        .border_style(theme::BORDER)
        .title(Span::styled(title, theme::HEADING));
    let inner = block.inner(area);
    block.render(area, buf);
    let room = usize::from(inner.height);
    let width = usize::from(inner.width).saturating_sub(3).max(1);
    let lines = |todo: &Todo| {
        let text = wrapped(&one_line(todo.shown()), width).into_iter();
        let lines = text.enumerate().map(|(at, text)| line(at == 0, text, todo));
        lines.collect::<Vec<_>>()
    };
    let all: Vec<Vec<Line<'_>>> = todos.iter().map(lines).collect();
    // Keep the current todo visible.
    let current = current(todos);
    let mut first = 0;
    let taken = |first: usize| all[first..=current].iter().map(Vec::len).sum::<usize>();
    while first < current && taken(first) > room {
        first += 1;
    }
    let shown: Text<'_> = all.into_iter().skip(first).flatten().collect();
    shown.render(inner, buf);
}

/// Draws the list above the input, one line per todo.
pub fn render_lines(todos: &[Todo], area: Rect, buf: &mut Buffer) {
    let room = usize::from(area.height);
    if room == 0 {
        return;
    }
    let first = match todos.len().checked_sub(room) {
        None => 0,
        Some(most) if room < 3 => current(todos).min(most),
        // Show the previous todo, which was just completed, as well.
        Some(most) => current(todos).saturating_sub(1).min(most),
    };
    let row = |todo: &Todo| line(true, one_line(todo.shown()), todo);
    let mut lines: Vec<_> = todos.iter().skip(first).take(room).map(row).collect();
    let more = todos.len().saturating_sub(first + room);
    if more > 0 && room > 1 {
        let text = format!("  … {}", counted(more as u64 + 1, "more todo"));
        lines.pop();
        lines.push(Line::styled(text, theme::DIM));
    }
    Text::from(lines).render(area, buf);
}

fn is_done(todo: &Todo) -> bool {
    todo.status == TodoStatus::Completed
}

/// Returns the index of the todo in progress, or else of the first pending one.
fn current(todos: &[Todo]) -> usize {
    let at = |status| todos.iter().position(|todo| todo.status == status);
    let first = at(TodoStatus::InProgress).or_else(|| at(TodoStatus::Pending));
    first.unwrap_or(todos.len().saturating_sub(1))
}

/// Returns a line of a todo; the first one has its mark.
fn line(is_first: bool, text: String, todo: &Todo) -> Line<'static> {
    let (mark, sign, words, modifier) = match todo.status {
        TodoStatus::Pending => ("☐", theme::DIM, theme::PLAIN, Modifier::empty()),
        TodoStatus::InProgress => ("▶", theme::ACCENT, theme::ACCENT, Modifier::BOLD),
        TodoStatus::Completed => ("☒", theme::SUCCESS, theme::DIM, Modifier::CROSSED_OUT),
    };
    let mark = if is_first { mark } else { " " };
    Line::from(vec![
        Span::styled(format!(" {mark} "), sign),
        Span::styled(text, words.add_modifier(modifier)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(content: &str, status: TodoStatus) -> Todo {
        Todo {
            content: content.to_owned(),
            status,
            active_form: Some(format!("{content}ing")),
        }
    }

    fn list(count: usize, current: usize) -> Vec<Todo> {
        let of = |at: usize| {
            let status = match at.cmp(&current) {
                std::cmp::Ordering::Less => TodoStatus::Completed,
                std::cmp::Ordering::Equal => TodoStatus::InProgress,
                std::cmp::Ordering::Greater => TodoStatus::Pending,
            };
            todo(&format!("todo {at}"), status)
        };
        (0..count).map(of).collect()
    }

    fn text(buf: &Buffer) -> String {
        let area = buf.area;
        let row = |y| {
            (0..area.width)
                .map(|x| buf[(x, y)].symbol())
                .collect::<String>()
        };
        let rows = (0..area.height).map(|y| row(y).trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n")
    }

    fn beside(todos: &[Todo], width: u16, height: u16) -> Buffer {
        let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
        render(todos, buf.area, &mut buf);
        buf
    }

    fn above(todos: &[Todo], height: u16) -> String {
        let mut buf = Buffer::empty(Rect::new(0, 0, 30, height));
        render_lines(todos, buf.area, &mut buf);
        text(&buf)
    }

    #[test]
    fn it_stands_next_to_the_transcript_where_there_is_room() {
        let widths = [40, 99, 100, 130, 160, 300].map(width);
        assert_eq!(widths, [0, 0, 30, 32, 40, 40]);
        let buf = beside(&list(4, 1), 20, 6);
        insta::assert_snapshot!(text(&buf), @r"
        │ Todos 1/4
        │ ☒ todo 0
        │ ▶ todo 1ing
        │ ☐ todo 2
        │ ☐ todo 3
        │
        ");
        let struck = buf[(4, 1)].style().add_modifier;
        assert!(struck.contains(Modifier::CROSSED_OUT));
        assert!(
            !buf[(4, 2)]
                .style()
                .add_modifier
                .contains(Modifier::CROSSED_OUT)
        );
    }

    #[test]
    fn current_todo_is_always_visible() {
        assert!(text(&beside(&list(50, 40), 20, 6)).contains("todo 40ing"));
        insta::assert_snapshot!(above(&list(9, 5), 5), @r"
         ☒ todo 4
         ▶ todo 5ing
         ☐ todo 6
         ☐ todo 7
         ☐ todo 8
        ");
        insta::assert_snapshot!(above(&list(9, 1), 5), @r"
         ☒ todo 0
         ▶ todo 1ing
         ☐ todo 2
         ☐ todo 3
          … 5 more todos
        ");
        insta::assert_snapshot!(above(&list(9, 5), 2), @r"
         ▶ todo 5ing
          … 3 more todos
        ");
        assert_eq!(above(&list(9, 5), 1), " ▶ todo 5ing");
        insta::assert_snapshot!(above(&list(2, 5), 2), @r"
         ☒ todo 0
         ☒ todo 1
        ");
    }

    #[test]
    fn nothing_and_no_room_are_no_fault() {
        assert_eq!(height(&[]), 0);
        beside(&[], 1, 1);
        above(&[], 0);
        above(&list(9, 5), 1);
    }
}
