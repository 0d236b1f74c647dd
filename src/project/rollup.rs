//! The rolled-up code base: files after lines of the form `--- path ---`, as `codeRollup.sh` and the command
//! `rollup` write it.
//!
//! Reads the project's files for comparison only. Since a file may itself contain such lines, the extent of a section
//! is determined by the file on disk if that is unchanged.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Component, Path};

use memchr::{memchr, memmem};

use crate::sys::files::{Links, open};

/// Number of bytes of a file compared at a time.
const CHUNK: usize = 64 << 10;

/// A file in the rollup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupFile<'t> {
    /// Path in its header, relative to the root.
    pub path: &'t str,
    /// Text of the file in the rollup.
    pub content: &'t str,
    /// Number of bytes at the end that are not part of the file: a line end that the rollup appended.
    pub added: usize,
    /// State of the file on disk.
    pub state: RollupState,
}

impl RollupFile<'_> {
    /// Returns the bytes in the rollup that are part of the file.
    pub fn own_content(&self) -> &[u8] {
        let content = self.content.as_bytes();
        &content[..content.len() - self.added]
    }
}

/// State of a file on disk, compared to the rollup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollupState {
    /// The file is unchanged.
    Same,
    /// The file has changed.
    Changed,
    /// The file is missing or not a regular file.
    Gone,
}

/// Parses the files in `rollup` and compares them with those below `root`. Text before the first header is ignored.
pub fn sections<'t>(rollup: &'t str, root: &Path) -> Vec<RollupFile<'t>> {
    let mut sections = Vec::new();
    let mut next = next_header(rollup, 0);
    while let Some(header) = next {
        let rest = &rollup[header.end..];
        let up_to_next = || {
            let next = next_header(rollup, header.end);
            next.map_or(rest.len(), |next| next.start - header.end)
        };
        let (state, length, added) = match compare(rest, root, header.path) {
            Some((length, added)) => (RollupState::Same, length + added, added),
            None if is_file(root, header.path) => (RollupState::Changed, up_to_next(), 0),
            None => (RollupState::Gone, up_to_next(), 0),
        };
        sections.push(RollupFile {
            path: header.path,
            content: &rest[..length],
            added,
            state,
        });
        next = next_header(rollup, header.end + length);
    }
    sections
}

/// Like [`sections`]; `None` if `rollup` cannot be compared to the disk: it neither begins with a header, nor does a
/// header name an existing file. In text of another form, a line may look like a header by chance.
pub fn comparable<'t>(rollup: &'t str, root: &Path) -> Option<Vec<RollupFile<'t>>> {
    let sections = sections(rollup, root);
    let is_first = |header: Header<'_>| rollup[..header.start].trim().is_empty();
    let is_there = |section: &RollupFile<'_>| section.state != RollupState::Gone;
    let is_comparable =
        next_header(rollup, 0).is_some_and(is_first) || sections.iter().any(is_there);
    is_comparable.then_some(sections)
}

/// Formats the header line of the file at `path`.
pub fn header(path: &str) -> String {
    format!("--- {path} ---\n")
}

struct Header<'t> {
    path: &'t str,
    /// Offset at which the header line starts.
    start: usize,
    /// Offset at which the header line ends and the file's text starts.
    end: usize,
}

/// Finds the first header at or after `from`, which must be the beginning of a line.
fn next_header(text: &str, from: usize) -> Option<Header<'_>> {
    let bytes = text.as_bytes();
    let mut marks = memmem::find_iter(&bytes[from..], "--- ").map(|at| from + at);
    marks.find_map(|start| {
        if start > from && bytes[start - 1] != b'\n' {
            return None;
        }
        let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at + 1);
        let bare = text[start..end].trim_end_matches(['\n', '\r']);
        let path = bare.strip_prefix("--- ")?.strip_suffix(" ---")?;
        (!path.is_empty()).then_some(Header { path, start, end })
    })
}

/// Returns the length of the file at `path` if `rest` begins with its content, and the length of the line end
/// appended to it. A header or the end of the text must follow.
fn compare(rest: &str, root: &Path, path: &str) -> Option<(usize, usize)> {
    let length = same_bytes(rest.as_bytes(), root, path)?;
    let behind = rest.get(length..)?;
    let ends = |behind: &str| {
        let line = behind.split_inclusive('\n').next();
        line.is_none_or(|line| next_header(line, 0).is_some())
    };
    if ends(behind) {
        return Some((length, 0));
    }
    ends(behind.strip_prefix('\n')?).then_some((length, 1))
}

/// Returns the length of the file on disk if `rest` begins with its content.
fn same_bytes(rest: &[u8], root: &Path, path: &str) -> Option<usize> {
    if !is_file(root, path) {
        return None;
    }
    let mut file = open(&root.join(path), Links::Refused).ok()?;
    let mut chunk = vec![0; CHUNK];
    let mut length = 0;
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return Some(length),
            Ok(amount) if rest[length..].starts_with(&chunk[..amount]) => length += amount,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return None,
        }
    }
}

/// Returns whether the path is a regular file below the root that is reached without links.
fn is_file(root: &Path, path: &str) -> bool {
    let mut at = root.to_path_buf();
    let mut found = None;
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => continue,
            Component::Normal(name) => at.push(name),
            _ => return false,
        }
        found = match fs::symlink_metadata(&at) {
            Ok(metadata) if !metadata.is_symlink() => Some(metadata),
            _ => return false,
        };
    }
    found.is_some_and(|found| found.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(rollup: &str, root: &Path) -> Vec<String> {
        let sections = sections(rollup, root);
        let one = |section: &RollupFile<'_>| {
            format!("{} {:?} {:?}", section.path, section.state, section.content)
        };
        sections.iter().map(one).collect()
    }

    #[test]
    fn a_text_of_another_form_is_not_compared() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("there"), "x\n").unwrap();
        for (rollup, expected) in [
            ("", false),
            ("just words\n", false),
            ("<file path=\"a\">\n--- PASS ---\n", false),
            ("\n--- gone ---\nx\n", true),
            ("preface\n--- there ---\ny\n", true),
        ] {
            let sections = comparable(rollup, dir.path());
            assert_eq!(sections.is_some(), expected, "{rollup:?}");
        }
    }

    #[test]
    fn a_line_end_that_was_added_is_not_the_files() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("bare"), "no line end").unwrap();
        let sections = sections("--- bare ---\nno line end\n", dir.path());
        assert_eq!(sections[0].own_content(), b"no line end");
    }

    #[test]
    fn sections_are_compared_with_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let file = |path: &str, content: &str| fs::write(dir.path().join(path), content).unwrap();
        file("same", "a\n--- not a header ---\nb\n");
        file("bare", "no line end");
        file("changed", "new\n");
        file("empty", "");
        for (rollup, expected) in [
            ("", &[][..]),
            ("no headers at all\n", &[]),
            (
                "--- same ---\na\n--- not a header ---\nb\n--- bare ---\nno line end\n--- empty ---\n",
                &[
                    "same Same \"a\\n--- not a header ---\\nb\\n\"",
                    "bare Same \"no line end\\n\"",
                    "empty Same \"\"",
                ],
            ),
            (
                "preface\n--- bare ---\nno line end",
                &["bare Same \"no line end\""],
            ),
            (
                "--- changed ---\nold\n--- empty ---\n",
                &["changed Changed \"old\\n\"", "empty Same \"\""],
            ),
            (
                "--- changed ---\nnew\nmore\n",
                &["changed Changed \"new\\nmore\\n\""],
            ),
            (
                "--- ./same ---\na\n--- not a header ---\nb\n",
                &["./same Same \"a\\n--- not a header ---\\nb\\n\""],
            ),
            ("--- gone ---\nx\n", &["gone Gone \"x\\n\""]),
            ("--- ../out ---\nx\n", &["../out Gone \"x\\n\""]),
            (
                "--- /etc/hostname ---\nx\n",
                &["/etc/hostname Gone \"x\\n\""],
            ),
            ("--- same ---\r\na\r\n", &["same Changed \"a\\r\\n\""]),
        ] {
            assert_eq!(described(rollup, dir.path()), expected, "{rollup:?}");
        }
    }
}
