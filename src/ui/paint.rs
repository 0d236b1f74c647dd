//! Styled text as what a terminal is sent: ANSI sequences. Pure, but for the size of terminals.

use std::os::fd::AsFd;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use crate::sys::text::{self, text_width};

/// `text` in a style.
pub fn paint(text: &str, style: Style) -> String {
    let color = match style.fg {
        Some(Color::Red) => "\x1b[31m",
        Some(Color::Green) => "\x1b[32m",
        Some(Color::Yellow) => "\x1b[33m",
        Some(Color::Blue) => "\x1b[34m",
        Some(Color::Magenta) => "\x1b[35m",
        Some(Color::Cyan) => "\x1b[36m",
        _ => "",
    };
    let modifiers = [
        (Modifier::BOLD, "\x1b[1m"),
        (Modifier::DIM, "\x1b[2m"),
        (Modifier::ITALIC, "\x1b[3m"),
        (Modifier::CROSSED_OUT, "\x1b[9m"),
    ];
    let set = modifiers
        .iter()
        .filter(|(of, _)| style.add_modifier.contains(*of));
    let codes: String = std::iter::once(color)
        .chain(set.map(|(_, code)| *code))
        .collect();
    match &*codes {
        "" => text.to_owned(),
        codes => format!("{codes}{text}\x1b[0m"),
    }
}

/// A line in its styles; without them where there are no colours.
pub fn painted(line: &Line<'_>, colors: bool) -> String {
    if !colors {
        return line.to_string();
    }
    let spans = line.iter();
    spans
        .map(|span| paint(&span.content, line.style.patch(span.style)))
        .collect()
}

/// The style that git gives a line of a diff: of a hunk, or of whatever part.
pub fn diff_style(line: &str, is_in_hunk: bool) -> Style {
    let is_head = |line: &str| {
        ["diff", "--- ", "+++ "]
            .iter()
            .any(|head| line.starts_with(head))
    };
    match (line.as_bytes().first(), Style::new()) {
        _ if !is_in_hunk && is_head(line) => Style::new().bold(),
        (Some(b'+'), style) => style.green(),
        (Some(b'-'), style) => style.red(),
        (Some(b'@'), style) => style.cyan(),
        (_, style) => style,
    }
}

/// A line of a diff without anything that moves the cursor, in the colours that git gives it if there are `colors`.
pub fn diff_line(line: &str, colors: bool) -> String {
    let plain = line.trim_end_matches('\n');
    let style = if colors {
        diff_style(plain, false)
    } else {
        Style::new()
    };
    paint(&text::printable(plain, &['\t']), style) + "\n"
}

/// A line of another result in its colours: errors and warnings as on stderr, and dim what a story quotes, which is
/// indented by four.
pub fn told_line(line: &str) -> String {
    let plain = line.trim_end_matches('\n');
    let label = |label: &str, style: Style| {
        let text = plain.strip_prefix(label)?;
        Some(format!("{}{text}\n", paint(label, style)))
    };
    let quoted = || {
        let is_quoted = plain.starts_with("    ");
        is_quoted.then(|| paint(plain, Style::new().dim()) + "\n")
    };
    label("error:", Style::new().red().bold())
        .or_else(|| label("warning:", Style::new().yellow()))
        .or_else(quoted)
        .unwrap_or_else(|| line.to_owned())
}

/// Rows and columns of a terminal; `None` for what is none, or does not say.
pub fn size(stream: impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    let is_known = size.ws_row > 0 && size.ws_col > 0;
    is_known.then(|| (size.ws_row.into(), size.ws_col.into()))
}

/// Lines of a terminal that `text`, unstyled, takes.
pub fn lines_taken(text: &str, columns: usize) -> usize {
    let taken = |line| text_width(line).div_ceil(columns.max(1)).max(1);
    text.lines().map(taken).sum()
}
