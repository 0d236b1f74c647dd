//! Rows of text in columns. Pure. Wide characters count as what they take on a terminal.

use console::measure_text_width;

/// On which side of its column a cell stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// On the left.
    Left,
    /// On the right.
    Right,
}

/// A line for each row, with two blanks between columns and none at the end.
#[must_use]
pub fn aligned(rows: &[Vec<String>], aligns: &[Align]) -> Vec<String> {
    let mut widths = vec![0; aligns.len()];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(measure_text_width(cell));
        }
    }
    let line = |row: &Vec<String>| {
        let columns = widths.iter().zip(aligns);
        let cells = row.iter().zip(columns).map(|(cell, (width, align))| {
            let blanks = " ".repeat(width - measure_text_width(cell));
            match align {
                Align::Left => format!("{cell}{blanks}"),
                Align::Right => format!("{blanks}{cell}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other() {
        let rows = [["a", "1"], ["\u{4f60}\u{597d}", "10"], ["", "x"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            aligned(&rows, &[Align::Left, Align::Right]),
            ["a      1", "\u{4f60}\u{597d}  10", "       x"]
        );
    }
}
