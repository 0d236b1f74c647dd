//! Rows of text in columns, and lines that fit a terminal. Pure. Wide characters count by their width on a
//! terminal.

use crate::sys::text::{text_width, truncated};

use super::blocks::wrapped;

/// The number of spaces between columns.
const GAP: usize = 2;
/// The minimum width of a table's last column.
const LAST: usize = 24;
/// The minimum width of a column that is shortened.
const NARROWEST: usize = 16;

/// The alignment of a cell in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Left-aligned.
    Left,
    /// Right-aligned.
    Right,
}

/// Formats each row as a line, with two spaces between columns and no trailing spaces.
pub fn aligned(rows: &[Vec<String>], aligns: &[Align]) -> Vec<String> {
    let widths = widths(rows);
    let line = |row: &Vec<String>| {
        let columns = widths.iter().zip(aligns);
        let cells = row.iter().zip(columns).map(|(cell, (width, align))| {
            let blanks = " ".repeat(width - text_width(cell));
            match align {
                Align::Left => format!("{cell}{blanks}"),
                Align::Right => format!("{blanks}{cell}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// Returns the width of each column.
fn widths(rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths = Vec::new();
    for row in rows {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = text_width(cell).max(*width);
        }
    }
    widths
}

/// Truncates the cells of the widest of the first `texts` columns, as far as that makes room for the others.
pub fn shorten(rows: &mut [Vec<String>], texts: usize, columns: usize) {
    let widths = widths(rows);
    let wider = (widths.iter().sum::<usize>() + GAP * widths.len()).saturating_sub(GAP + columns);
    let widest = (0..texts).max_by_key(|at| widths.get(*at));
    let Some((at, width)) = widest.and_then(|at| Some((at, *widths.get(at)?))) else {
        return;
    };
    let room = width.saturating_sub(wider).max(NARROWEST);
    for row in rows {
        row[at] = truncated(&row[at], room).into_owned();
    }
}

/// Removes `dispensable` columns from a table, in the given order, until the last column has room.
fn make_room(
    head: &mut Vec<(&str, Align)>,
    rows: &mut [Vec<String>],
    dispensable: &[&str],
    columns: usize,
) {
    for name in dispensable {
        let widths = widths(rows);
        let left_out = widths.last().unwrap_or(&0).saturating_sub(LAST);
        let whole = widths.iter().sum::<usize>() + GAP * widths.len();
        if whole <= columns + GAP + left_out {
            return;
        }
        if let Some(at) = head.iter().position(|(column, _)| column == name) {
            head.remove(at);
            for row in rows.iter_mut() {
                row.remove(at);
            }
        }
    }
}

/// Lays out a table for a terminal of this many columns, if known: drops the `dispensable` columns, in order, while a
/// row is too long, then truncates the lines.
pub fn table(
    mut head: Vec<(&str, Align)>,
    mut rows: Vec<Vec<String>>,
    dispensable: &[&str],
    columns: Option<usize>,
) -> String {
    if let Some(columns) = columns {
        make_room(&mut head, &mut rows, dispensable, columns);
    }
    let aligns: Vec<Align> = head.into_iter().map(|(_, align)| align).collect();
    cut(&aligned(&rows, &aligns).join("\n"), columns)
}

/// Truncates each line to the given number of columns; `None` leaves the text unchanged.
pub fn cut(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let lines = text.lines().map(|line| truncated(line, columns));
    lines.collect::<Vec<_>>().join("\n")
}

/// Wraps each line at spaces to the given number of columns, indenting continuation lines by `hang`; `None`
/// leaves the text unchanged.
pub fn folded(text: &str, columns: Option<usize>, hang: usize) -> String {
    let Some(columns) = columns else {
        return text.to_owned();
    };
    let fold = |line: &str| {
        if text_width(line) <= columns {
            return line.to_owned();
        }
        let text = line.trim_start_matches(' ');
        let own = (line.len() - text.len()).min(columns / 2);
        let pieces = wrapped(text, columns.saturating_sub(own + hang).max(1));
        let further = format!("\n{}", " ".repeat(own + hang));
        format!("{}{}", " ".repeat(own), pieces.join(&further))
    };
    text.lines().map(fold).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_or_folded_where_there_are_columns() {
        let text = "short\na longer line of text\n  \u{4f60}\u{597d} x";
        assert_eq!(cut(text, Some(8)), "short\na longe…\n  \u{4f60}\u{597d} x");
        let folded_text =
            "short\na\n      longer\n      line\n      of\n      text\n  \u{4f60}\u{597d} x";
        assert_eq!(folded(text, Some(12), 6), folded_text);
        assert_eq!(folded("    a b c", Some(8), 2), "    a\n      b\n      c");
        for same in [
            cut(text, None),
            folded(text, None, 6),
            cut(text, Some(80)),
            folded(text, Some(80), 6),
        ] {
            assert_eq!(same, text);
        }
    }

    #[test]
    fn the_widest_text_makes_room_for_numbers() {
        let wide = "\u{4f60}\u{597d}".repeat(10);
        for (columns, expected) in [
            (80, &*wide),
            (54, &*wide),
            (
                53,
                "\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}…",
            ),
            (
                10,
                "\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}\u{597d}\u{4f60}…",
            ),
        ] {
            let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
            let mut rows = [row(["label", "x", "1,000"]), row(["by", &wide, "2"])];
            shorten(&mut rows, 2, columns);
            assert_eq!(rows[1], row(["by", expected, "2"]), "{columns}");
            assert_eq!(rows[0], row(["label", "x", "1,000"]));
        }
        shorten(&mut [], 1, 10);
    }

    #[test]
    fn cells_stand_below_each_other() {
        let cells = [["a", "1"], ["\u{4f60}\u{597d}", "10"], ["", "x"]];
        let rows = cells.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            aligned(&rows, &[Align::Left, Align::Right]),
            ["a      1", "\u{4f60}\u{597d}  10", "       x"]
        );
    }
}
