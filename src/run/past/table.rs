//! Tables of texts and numbers, however they are rendered. Plain data.

use crate::sys::diff::Stat;
use crate::sys::numbers::grouped;

/// The heading of a column of outcomes.
pub const RESULT: &str = "result";
/// The heading of a column of long texts, which are wrapped.
pub const REQUEST: &str = "request";

/// A table of text columns, then numeric ones.
#[derive(Debug, Default)]
pub struct Table {
    /// The heading, if the table is not part of a section.
    pub title: &'static str,
    /// The headings of the text columns.
    pub texts: Vec<&'static str>,
    /// The headings of the numeric columns.
    pub numbers: Vec<&'static str>,
    /// The rows shown, in order.
    pub rows: Vec<Row>,
    /// The number of rows that are not shown.
    pub left_out: usize,
    /// The quantity that the bars show: `time`, `lines` or `runs`.
    pub bars: &'static str,
}

/// A row of a table.
#[derive(Debug, Default)]
pub struct Row {
    /// The folder, next to the page, that has the row's own page, if there is one.
    pub folder: Option<String>,
    /// Success or failure, if known, as stated in a column named [`RESULT`].
    pub outcome: Option<bool>,
    /// The text cells.
    pub texts: Vec<String>,
    /// A text below the first cell.
    pub note: Option<String>,
    /// The numeric cells.
    pub numbers: Vec<String>,
    /// Two amounts that a page shows in proportion to those of the other rows.
    pub bar: [u64; 2],
}

/// Lists changed files with their numbers of lines, up to `most` of them.
pub fn of_files(stat: &Stat, most: usize) -> Table {
    let rows = stat.files.iter().map(|file| {
        let (added, removed) = (grouped(file.added), grouped(file.removed));
        let lines = [format!("+{added}"), format!("\u{2212}{removed}")];
        Row::new([file.path.clone()], lines).with_bar(file.added, file.removed)
    });
    Table::new(&["file"], &["added", "removed"], "lines", rows, most)
}

impl Row {
    /// Creates a row with these text and numeric cells.
    pub fn new(texts: impl Into<Vec<String>>, numbers: impl IntoIterator<Item = String>) -> Self {
        Self {
            texts: texts.into(),
            numbers: numbers.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Adds the two amounts of its bar.
    pub fn with_bar(self, one: u64, other: u64) -> Self {
        let bar = [one, other];
        Self { bar, ..self }
    }
}

impl Table {
    /// Creates a table with the first `most` of these rows.
    pub fn new(
        texts: &[&'static str],
        numbers: &[&'static str],
        bars: &'static str,
        rows: impl IntoIterator<Item = Row>,
        most: usize,
    ) -> Self {
        let mut rows = rows.into_iter();
        Self {
            texts: texts.to_vec(),
            numbers: numbers.to_vec(),
            bars,
            rows: rows.by_ref().take(most).collect(),
            left_out: rows.count(),
            ..Self::default()
        }
    }

    /// Counts the rows that are not shown, if there are any.
    pub fn others(&self) -> Option<String> {
        (self.left_out > 0).then(|| format!("and {} more", grouped(self.left_out as u64)))
    }

    /// Returns the headings, then the cells of each row.
    pub fn cells(&self) -> Vec<Vec<String>> {
        let heads = self
            .texts
            .iter()
            .chain(&self.numbers)
            .map(|&head| head.to_owned())
            .collect();
        let rows = self
            .rows
            .iter()
            .map(|row| [&row.texts[..], &row.numbers].concat());
        std::iter::once(heads).chain(rows).collect()
    }
}
