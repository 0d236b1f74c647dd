//! A call as shown to the user for approval: a change as lines with their numbers, without git's headers, and other
//! text in full. Pure.

use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation as _;

use super::columns::folded;
use super::paint::diff_style;
use crate::sys::text::{is_deceptive, is_ignorable, text_width};

/// The number of unchanged lines shown around a change, normally and in a small space.
pub const CONTEXT: [usize; 2] = [3, 1];
/// The mark for lines that are left out.
const GAP: &str = "⋮";
/// The beginnings of git's header lines that say nothing new to a user.
const HEADERS: [&str; 4] = [
    "diff --git ",
    "--- ",
    "new file mode ",
    "deleted file mode ",
];

/// Lays out a unified diff from its first changed line on: each line after its number, with at most `context`
/// unchanged lines around the changes. Any other text stays as it is.
pub fn numbered(diff: &str, context: usize) -> Vec<(String, Style)> {
    let rows = rows(diff);
    let last = rows.iter().map(|(number, _)| *number).max();
    let digits = last.unwrap_or_default().to_string().len();
    let mut out: Vec<(String, Style)> = Vec::new();
    let mut is_begun = false;
    for hunk in rows.chunk_by(|one, next| (one.0 == 0) == (next.0 == 0)) {
        let is_change = |at: usize| hunk.get(at).is_some_and(|(_, line)| !line.starts_with(' '));
        for (at, (number, line)) in hunk.iter().enumerate() {
            is_begun |= is_change(at);
            let is_near = (at.saturating_sub(context)..=at + context).any(is_change);
            let gap = (GAP.to_owned(), Style::new().dim());
            match number {
                0 if *line != GAP => out.push(((*line).to_owned(), diff_style(line, false))),
                1.. if is_begun && is_near => {
                    out.push((format!("{number:>digits$} {line}"), diff_style(line, true)));
                }
                _ if is_begun && out.last() != Some(&gap) => out.push(gap),
                _ => {}
            }
        }
    }
    out.pop_if(|(line, _)| line == GAP);
    out
}

/// Returns the number of added and removed lines: `+3 -1`; `None` if the change is not shown by lines.
pub fn sums(diff: &str) -> Option<String> {
    let mut rows = rows(diff);
    rows.retain(|(number, _)| *number > 0);
    let count = |sign| {
        let lines = rows.iter().filter(|(_, line)| line.starts_with(sign));
        lines.count()
    };
    (!rows.is_empty()).then(|| format!("+{} -{}", count('+'), count('-')))
}

/// Returns the lines of a diff, each with its number in the file, or 0 outside of hunks. Only the path of each file
/// remains of git's headers, and only if there are several files.
fn rows(diff: &str) -> Vec<(usize, &str)> {
    let heads = diff.lines().filter(|line| line.starts_with("diff --git "));
    let has_files = heads.count() > 1;
    let mut rows = Vec::new();
    let (mut before, mut after) = (0_usize..0, 0_usize..0);
    for line in diff.lines() {
        if line.starts_with('\\') {
            rows.push((0, line));
        } else if !before.is_empty() || !after.is_empty() {
            let (old, new) = (!line.starts_with('+'), !line.starts_with('-'));
            rows.push((if new { after.start } else { before.start }, line));
            before.start = before.start.saturating_add(old.into());
            after.start = after.start.saturating_add(new.into());
        } else if let Some([old, new]) = ranges(line) {
            if rows.last().is_some_and(|(number, _)| *number > 0) {
                rows.push((0, GAP));
            }
            (before, after) = (old, new);
        } else if let Some(path) = line.strip_prefix("+++ ") {
            let path = path.strip_prefix("b/").unwrap_or(path);
            rows.extend(has_files.then_some((0, path)));
        } else if !HEADERS.iter().any(|header| line.starts_with(header)) {
            rows.push((0, line));
        }
    }
    rows
}

/// Returns the lines of the old and the new file that a hunk covers, by its header.
fn ranges(header: &str) -> Option<[std::ops::Range<usize>; 2]> {
    let (before, rest) = header.strip_prefix("@@ -")?.split_once(" +")?;
    let (after, _) = rest.split_once(" @@")?;
    let range = |range: &str| {
        let (start, count) = range.split_once(',').unwrap_or((range, "1"));
        let start: usize = start.parse().ok()?;
        Some(start..start.saturating_add(count.parse().ok()?))
    };
    Some([range(before)?, range(after)?])
}

/// Replaces invisible characters with their code points, such as `<U+200B>`. Emoji combined by a joiner stay whole.
pub fn seen(text: &str) -> String {
    let is_hidden = |c: char| {
        let is_blank = c.is_whitespace() && !matches!(c, ' ' | '\n');
        is_blank || c != '\n' && is_deceptive(c) || is_ignorable(c)
    };
    let shown = |grapheme: &str| {
        let is_emoji = text_width(grapheme) == 2 && !grapheme.ends_with('\u{200d}');
        let is_part = |c: char| is_emoji && matches!(c, '\u{200d}' | '\u{fe0f}');
        let shown = |c: char| match c {
            c if is_hidden(c) && !is_part(c) => format!("<U+{:04X}>", u32::from(c)),
            c => c.to_string(),
        };
        grapheme.chars().map(shown).collect::<String>()
    };
    text.graphemes(true).map(shown).collect()
}

/// Wraps a text without hiding any of it, indenting continuation lines by `hang`.
pub fn broken(text: &str, columns: usize, hang: usize) -> Vec<String> {
    let text = folded(&seen(&text.replace('\t', "    ")), Some(columns), hang);
    text.split('\n').map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -8,6 +8,6 @@ fn f()\n a\n b\n--- c\n+++ d\n e\n f\n g\n\
                        @@ -98,3 +98,4 @@\n h\n+i\n j\n k\n\\ No newline at end of file\n";

    fn shown(diff: &str, context: usize) -> Vec<String> {
        let lines = numbered(diff, context).into_iter();
        lines.map(|(line, _)| line).collect()
    }

    #[test]
    fn a_change_begins_at_its_first_changed_line_and_has_numbers() {
        let expected = [
            " 10 --- c",
            " 10 +++ d",
            " 11  e",
            " 12  f",
            " 13  g",
            "⋮",
            " 98  h",
            " 99 +i",
            "100  j",
            "101  k",
            "\\ No newline at end of file",
        ];
        assert_eq!(shown(DIFF, 3), expected);
        let tight = [
            " 10 --- c",
            " 10 +++ d",
            " 11  e",
            "⋮",
            " 98  h",
            " 99 +i",
            "100  j",
            "⋮",
            "\\ No newline at end of file",
        ];
        assert_eq!(shown(DIFF, 1), tight);
        assert_eq!(sums(DIFF).as_deref(), Some("+2 -1"));
    }

    #[test]
    fn several_files_are_distinguished_and_other_text_stays() {
        let two = "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n\
                   diff --git a/y b/y\nold mode 100644\nnew mode 100755\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-b\n+c\n";
        let expected = [
            "x",
            "1 +a",
            "old mode 100644",
            "new mode 100755",
            "y",
            "1 -b",
            "1 +c",
        ];
        assert_eq!(shown(two, 3), expected);
        assert_eq!(sums(two).as_deref(), Some("+2 -1"));
        assert_eq!(sums("Binary files a/x and b/x differ\n"), None);
        let text = "`x` would allow:\n  --- all @@\n";
        assert_eq!(shown(text, 3).join("\n") + "\n", text);
        for odd in [
            "@@ -1,9 +1,9 @@\n",
            "@@ -x +1 @@",
            "@@ -1 +18446744073709551615,9 @@\n+a\n+b",
            "",
        ] {
            shown(odd, 0);
        }
    }
}
