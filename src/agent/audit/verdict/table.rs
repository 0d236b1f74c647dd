//! The tables of a verdict: what was looked at, and how it came out. Pure.

use super::{Check, Line, Marks, Status, words};

/// Where a table has what.
struct Columns {
    name: usize,
    status: usize,
    notes: Option<usize>,
    count: usize,
}

impl Columns {
    /// Of a table's heading, where it has a column `Status`.
    fn of(heading: &[String]) -> Option<Self> {
        let column = |names: &[&str]| {
            heading.iter().position(|cell| {
                let cell = words(cell).join(" ");
                names.contains(&cell.as_str())
            })
        };
        let status = column(&["STATUS", "RESULT"])?;
        let name = column(&["CHECK", "CHECKS", "ITEM", "REQUIREMENT"]);
        Some(Self {
            name: name.unwrap_or(usize::from(status == 0)),
            status,
            notes: column(&["NOTES", "NOTE", "DETAILS", "EVIDENCE"]),
            count: heading.len(),
        })
    }

    fn check(&self, row: &[String]) -> Check {
        let cell = |at: usize| row.get(at).cloned().unwrap_or_default();
        let mut status = status(&cell(self.status));
        // A `|` in a cell has moved the rest.
        let is_moved = row.len() > self.count;
        if is_moved && row.iter().any(|cell| words(cell) == ["FAIL"]) {
            status = Status::Fail;
        }
        Check {
            name: cell(self.name),
            status,
            notes: self.notes.map(cell).unwrap_or_default(),
        }
    }
}

/// The rows of every table with a column `Status`.
pub(super) fn checks(lines: &[Line<'_>]) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut columns: Option<Columns> = None;
    let mut is_in_table = false;
    for line in lines {
        let Some(row) = cells(line.text).filter(|_| line.is_outside) else {
            is_in_table = false;
            continue;
        };
        if !is_in_table {
            is_in_table = true;
            columns = Columns::of(&row);
            continue;
        }
        let is_rule = row
            .iter()
            .all(|cell| !cell.is_empty() && cell.chars().all(|c| matches!(c, '-' | ':' | ' ')));
        if let Some(columns) = columns.as_ref().filter(|_| !is_rule) {
            checks.push(columns.check(&row));
        }
    }
    checks
}

/// The cells of a table's row.
pub(super) fn cells(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut letters = inner.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '\\' if letters.peek() == Some(&'|') => {
                letters.next();
                if let Some(cell) = cells.last_mut() {
                    cell.push('|');
                }
            }
            '|' => cells.push(String::new()),
            c => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(c);
                }
            }
        }
    }
    Some(cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

/// What a cell says of a check.
fn status(cell: &str) -> Status {
    let marks = Marks::of(cell);
    let words = words(cell);
    let is_pass = |word: &String| matches!(word.as_str(), "PASS" | "PASSED");
    // `0 failures` is none.
    let words = match words.as_slice() {
        [rest @ .., count, what] if count == "0" && what.starts_with("FAIL") => rest,
        words => words,
    };
    let has = |start: &str| words.iter().any(|word| word.starts_with(start));
    if has("FAIL") || marks.bad || (has("NOT") && has("PASS")) {
        Status::Fail
    } else if words.iter().all(is_pass) && (!words.is_empty() || marks.good) {
        Status::Pass
    } else {
        Status::Other
    }
}
