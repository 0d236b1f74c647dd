//! Converts styled text to ANSI sequences. Pure, except for querying the size of terminals.

use std::os::fd::AsFd;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::sys::text::{self, text_width};

/// Returns `text` in a style.
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

/// Returns a line in its styles, or without them if `colors` is false.
pub fn painted(line: &Line<'_>, colors: bool) -> String {
    if !colors {
        return line.to_string();
    }
    let painted = |span: &Span<'_>| paint(&span.content, line.style.patch(span.style));
    line.iter().map(painted).collect()
}

/// Colours the signs of a stat as git does.
pub fn colored_stat(stat: &str, paint: impl Fn(&str, Style) -> String) -> String {
    let line = |line: &str| match line.rsplit_once(['|', ' ']) {
        Some((_, graph)) if !graph.is_empty() && graph.chars().all(|c| "+-".contains(c)) => {
            let (text, graph) = line.split_at(line.len() - graph.len());
            let (plus, minus) = graph.split_at(graph.trim_end_matches('-').len());
            let added = paint(plus, Style::new().green());
            format!("{text}{added}{}\n", paint(minus, Style::new().red()))
        }
        _ => format!("{line}\n"),
    };
    stat.lines().map(line).collect()
}

/// Returns git's style for a line of a diff; `is_in_hunk` excludes header lines.
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

/// Returns a line of a diff without anything that moves the cursor, in git's colours if `colors`.
pub fn diff_line(line: &str, colors: bool) -> String {
    let plain = line.trim_end_matches('\n');
    let style = if colors {
        diff_style(plain, false)
    } else {
        Style::new()
    };
    paint(&text::printable(plain, &['\t']), style) + "\n"
}

/// Colours a line of any other result: errors and warnings as on stderr, and quotations, which are indented by
/// four, dim.
pub fn result_line(line: &str) -> String {
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

/// The width of a terminal whose width is unknown, in columns.
pub const COLUMNS: usize = 80;

/// Returns the columns of a terminal; `None` if the stream is not a terminal or its size is unknown.
pub fn columns(stream: impl AsFd) -> Option<usize> {
    Some(size(stream)?.1)
}

/// Returns the rows and columns of a terminal; `None` if the stream is not a terminal or its size is unknown.
pub fn size(stream: impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    let is_known = size.ws_row > 0 && size.ws_col > 0;
    is_known.then(|| (size.ws_row.into(), size.ws_col.into()))
}

/// Returns the number of terminal lines that the unstyled `text` takes.
pub fn lines_taken(text: &str, columns: usize) -> usize {
    let taken = |line| text_width(line).div_ceil(columns.max(1)).max(1);
    text.lines().map(taken).sum()
}
