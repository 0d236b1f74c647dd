//! The status bar: mode, model, connection, context, keys. Pure.
//!
//! Guarantees that it never exceeds its lines: if space is short, it omits first the keys, then the model, then
//! a word.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};

use super::{Connection, Status, theme};
use crate::record::mode::Mode;
use crate::ui::blocks::one_line;

/// The essential keys.
const KEYS: &str = "shift+tab: cycle mode | esc×2: stop | /help: commands";
/// The essential keys of an agent without modes.
const KEYS_WITHOUT_MODES: &str = "esc×2: stop | ctrl+d: quit | /help: commands";
/// The essential keys of an agent that works on one task.
const KEYS_OF_ONE_TASK: &str = "esc×2: end the run | ctrl+d: quit | /help: commands";
/// The effect of Ctrl-D, and its effect at a question with a free answer.
const QUIT: [&str; 2] = ["ctrl+d: quit", "ctrl+d: no answer"];
/// The height with a border, in lines.
pub const HEIGHT: u16 = 3;

/// Draws the status bar, without a border if there is no room. `is_asked` is set while a question with a free answer is
/// open.
pub fn render(status: &Status, mode: Option<Mode>, is_asked: bool, area: Rect, buf: &mut Buffer) {
    let mut inner = area;
    if area.height >= HEIGHT {
        let block = Block::bordered().border_style(theme::BORDER);
        inner = block.inner(area);
        block.render(area, buf);
        // Leave a space on each side, if there is room.
        inner.x = inner.x.saturating_add(1);
        inner.width = inner.width.saturating_sub(2);
    }
    let room = usize::from(inner.width);
    let model = one_line(&status.model);
    let keys = match mode {
        Some(_) => KEYS,
        None if status.is_one_task => KEYS_OF_ONE_TASK,
        None => KEYS_WITHOUT_MODES,
    };
    let [quit, no_answer] = QUIT;
    let keys = keys.replace(quit, if is_asked { no_answer } else { quit });
    let keys = Line::styled(keys, theme::DIM);
    let context = context(status);
    let with_model = left(status, mode, Some(&model));
    let without = left(status, mode, None);
    let bare = context.iter().skip(1).cloned().collect::<Line<'_>>();
    let none = Line::default();
    let forms = [
        [with_model.clone(), context.clone(), keys],
        [with_model, context.clone(), none.clone()],
        [without.clone(), context, none.clone()],
        [without, bare, none],
    ];
    let fits = |parts: &&[Line<'_>; 3]| {
        let gaps = parts.iter().filter(|part| part.width() > 0).count() - 1;
        parts.iter().map(Line::width).sum::<usize>() + gaps <= room
    };
    if let Some(parts) = forms.iter().find(fits).or(forms.last()) {
        draw(parts, parts.each_ref().map(Line::width), inner, buf);
    }
}

/// Draws parts with equal gaps between them, the last at the right edge.
fn draw(parts: &[Line<'_>; 3], widths: [usize; 3], area: Rect, buf: &mut Buffer) {
    let room = usize::from(area.width);
    let [left, middle, right] = widths;
    let gap = room.saturating_sub(left + middle + right);
    let at = match right {
        0 => room.saturating_sub(middle).max(left + 1),
        _ => left + gap / 2,
    };
    let columns = [0, at, room.saturating_sub(right)];
    for (part, column) in parts.iter().zip(columns) {
        let column = u16::try_from(column).unwrap_or(u16::MAX);
        if column < area.width {
            buf.set_line(area.x + column, area.y, part, area.width - column);
        }
    }
}

/// Returns the left part: `● Regular Mode | claude-sonnet-5-5`.
fn left(status: &Status, mode: Option<Mode>, model: Option<&String>) -> Line<'static> {
    let dot = match status.connection {
        Connection::Connected => theme::SUCCESS,
        Connection::Disconnected => theme::WARNING,
        Connection::Error => theme::ERROR,
    };
    let mut spans = vec![Span::styled("● ", dot)];
    if let Some(mode) = mode {
        let color = match mode {
            Mode::Regular => Color::Green,
            Mode::AutoPilot => Color::Yellow,
            Mode::Planning => Color::Blue,
        };
        let style = theme::PLAIN.fg(color).add_modifier(Modifier::BOLD);
        spans.push(Span::styled(format!("{} Mode", mode.into_str()), style));
    }
    if let Some(model) = model.filter(|model| !model.is_empty()) {
        let bar = if mode.is_some() { " | " } else { "" };
        spans.push(Span::styled(format!("{bar}{model}"), theme::DIM));
    }
    Line::from(spans)
}

/// Returns the context usage: `Context: 45.0k/200.0k (23%)`; empty if the window is not known.
fn context(status: &Status) -> Line<'static> {
    if status.window == 0 {
        return Line::default();
    }
    let percent = percentage(status.used, status.window);
    let style = match percent {
        0..60 => theme::SUCCESS,
        60..85 => theme::WARNING,
        _ => theme::ERROR,
    };
    let used = format!("{}/{}", tokens(status.used), tokens(status.window));
    Line::from(vec![
        Span::raw("Context: "),
        Span::styled(used, style),
        Span::styled(format!(" ({percent}%)"), theme::DIM),
    ])
}

/// Returns the share as a percentage, with halves rounded up.
pub fn percentage(used: u64, window: u64) -> u64 {
    let window = u128::from(window.max(1));
    let percent = (u128::from(used) * 200 + window) / (window * 2);
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// Formats a number of tokens: `999`, `45.0k`.
fn tokens(count: u64) -> String {
    if count < 1000 {
        return count.to_string();
    }
    // Round halves up.
    let tenths = count.saturating_add(50) / 100;
    format!("{}.{}k", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    fn status(used: u64) -> Status {
        Status {
            model: "claude-sonnet-5-5".to_owned(),
            used,
            window: 200_000,
            ..Status::default()
        }
    }

    fn drawn(status: &Status, mode: Mode, width: u16, height: u16) -> (Vec<String>, Buffer) {
        let area = Rect::new(0, 0, width, height);
        let mut buf = Buffer::empty(area);
        render(status, Some(mode), false, area, &mut buf);
        let row = |y| (0..width).map(|x| buf[(x, y)].symbol()).collect();
        ((0..height).map(row).collect(), buf)
    }

    /// Returns the style of the first occurrence of this text.
    fn style_of(words: &str, (lines, buf): &(Vec<String>, Buffer)) -> Style {
        let (y, line) = (0..)
            .zip(lines)
            .find(|(_, line)| line.contains(words))
            .unwrap();
        let x = line[..line.find(words).unwrap()].chars().count();
        buf[(u16::try_from(x).unwrap(), y)].style()
    }

    #[test]
    fn it_says_what_the_specification_says_at_every_width() {
        let lines = |width| drawn(&status(45_000), Mode::Regular, width, 3).0[1].clone();
        assert_eq!(
            lines(120),
            "│ ● Regular Mode | claude-sonnet-5-5 Context: 45.0k/200.0k (23%) \
             shift+tab: cycle mode | esc×2: stop | /help: commands │"
        );
        assert_eq!(
            lines(80),
            "│ ● Regular Mode | claude-sonnet-5-5               Context: 45.0k/200.0k (23%) │"
        );
        assert_eq!(
            lines(60),
            "│ ● Regular Mode               Context: 45.0k/200.0k (23%) │"
        );
        assert_eq!(lines(40), "│ ● Regular Mode    45.0k/200.0k (23%) │");
        let narrow = drawn(&status(45_000), Mode::AutoPilot, 40, 3);
        assert_eq!(narrow.0[1], "│ ● Auto-Pilot Mode 45.0k/200.0k (23%) │");
        assert_eq!(
            drawn(&status(0), Mode::Planning, 60, 1).0[0]
                .trim_end()
                .len(),
            62
        );
    }

    #[test]
    fn without_a_window_there_is_no_share_of_it() {
        let status = Status {
            window: 0,
            ..status(150)
        };
        for width in [20, 40, 80, 200] {
            let (lines, _) = drawn(&status, Mode::Regular, width, 3);
            assert!(lines[1].contains("● Regular Mode"), "{lines:?}");
            assert!(
                !lines[1].contains('%') && !lines[1].contains("Context"),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn tokens_and_shares_are_rounded() {
        for (count, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0k"),
            (1049, "1.0k"),
            (1050, "1.1k"),
            (45_000, "45.0k"),
            (1_000_000, "1000.0k"),
        ] {
            assert_eq!(tokens(count), expected);
        }
        for (used, window, expected) in [(45, 200, 23), (0, 0, 0), (1, 1000, 0), (300, 200, 150)] {
            assert_eq!(percentage(used, window), expected);
        }
    }

    #[test]
    fn colours_tell_modes_connections_and_how_full_it_is() {
        for (used, expected) in [
            (118_999, theme::SUCCESS),
            (119_000, theme::WARNING),
            (168_999, theme::WARNING),
            (169_000, theme::ERROR),
        ] {
            let drawn = drawn(&status(used), Mode::Regular, 100, 3);
            let words = format!("{}/", tokens(used));
            assert_eq!(style_of(&words, &drawn).fg, expected.fg, "{used}");
        }
        for (mode, words, color) in [
            (Mode::Regular, "Regular Mode", Color::Green),
            (Mode::AutoPilot, "Auto-Pilot Mode", Color::Yellow),
            (Mode::Planning, "Planning Mode", Color::Blue),
        ] {
            let style = style_of(words, &drawn(&status(0), mode, 100, 3));
            assert_eq!(style.fg, Some(color));
            assert!(style.add_modifier.contains(Modifier::BOLD));
        }
        for (connection, color) in [
            (Connection::Connected, Color::Green),
            (Connection::Disconnected, Color::Yellow),
            (Connection::Error, Color::Red),
        ] {
            let status = Status {
                connection,
                ..status(0)
            };
            let drawn = drawn(&status, Mode::Regular, 100, 3);
            assert_eq!(style_of("●", &drawn).fg, Some(color));
        }
        let border = drawn(&status(0), Mode::Regular, 100, 3);
        assert_eq!(style_of("┌", &border).fg, Some(Color::DarkGray));
    }
}
