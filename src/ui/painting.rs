//! The colours of what is printed to stdout, line by line. Pure.

use console::{Style, measure_text_width};

use crate::sys::text;

/// A line of a diff without anything that moves the cursor, and, if there are to be `colors`, in those that git gives
/// it.
pub fn diff_line(line: &str, colors: bool) -> String {
    let plain = line.trim_end_matches('\n');
    let is_any = |signs: &[&str]| signs.iter().any(|sign| plain.starts_with(sign));
    let style = match Style::new() {
        style if is_any(&["diff", "--- ", "+++ "]) => style.bold(),
        style if is_any(&["@@"]) => style.cyan(),
        style if is_any(&["+"]) => style.green(),
        style if is_any(&["-"]) => style.red(),
        style => style,
    };
    let printable = text::printable(plain, &['\t']);
    format!("{}\n", style.force_styling(colors).apply_to(printable))
}

/// A line of another result in its colours: errors and warnings as on stderr, and dim what a story quotes, which is
/// indented by four.
pub fn told_line(line: &str) -> String {
    let plain = line.trim_end_matches('\n');
    let label = |label: &str, style: Style| {
        let text = plain.strip_prefix(label)?;
        let label = style.force_styling(true).apply_to(label);
        Some(format!("{label}{text}\n"))
    };
    let quoted = || {
        let style = Style::new().dim().force_styling(true);
        let is_quoted = plain.starts_with("    ");
        is_quoted.then(|| format!("{}\n", style.apply_to(plain)))
    };
    label("error:", Style::new().red().bold())
        .or_else(|| label("warning:", Style::new().yellow()))
        .or_else(quoted)
        .unwrap_or_else(|| line.to_owned())
}

/// How many lines of a terminal `text` takes.
pub fn lines_taken(text: &str, columns: u16) -> usize {
    let columns = usize::from(columns.max(1));
    let taken = |line| measure_text_width(line).div_ceil(columns).max(1);
    text.lines().map(taken).sum()
}
