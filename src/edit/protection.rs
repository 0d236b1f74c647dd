//! The files and values that a project protects from replies and builds, besides the program's own.
//!
//! Reads files only to compare their values.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::beneath::ancestors;
use crate::project::gitignore::{Case, IgnoreFile};
use crate::sys::files::{self, Links, MIB};
use crate::sys::text::BYTE_ORDER_MARK;

/// The largest file whose values are compared, in bytes.
const LARGEST: u64 = 64 * MIB;

/// Start of the JSON Pointer to a protected value, after the path of its file.
const POINTER: &str = "#/";

/// Protected files, by patterns as in `.gitignore`, and protected values in JSON files.
#[derive(Debug, Clone, Default)]
pub struct Protection {
    patterns: IgnoreFile,
    /// The patterns without wildcards that name one place.
    names: IgnoreFile,
    /// Paths below the root, each with a JSON Pointer.
    values: Vec<(String, String)>,
}

/// The current protected values, by path and pointer.
pub type ProtectedValues = BTreeMap<(String, String), Option<Value>>;

impl Protection {
    /// Protects everything that matches these patterns; each has passed [`check_pattern`].
    pub fn new(patterns: &[String]) -> Self {
        let (pointers, files): (Vec<&str>, Vec<&str>) = patterns
            .iter()
            .map(String::as_str)
            .partition(|pattern| pattern.contains(POINTER));
        let values = pointers.into_iter().filter_map(|value| {
            let (path, _) = value.split_once(POINTER)?;
            Some((path.to_owned(), value[path.len() + 1..].to_owned()))
        });
        let mut names = files.clone();
        names.retain(|pattern| pattern.contains('/') && !pattern.contains(['*', '?', '[']));
        let parsed = |patterns: &[&str]| IgnoreFile::parse(patterns.join("\n").as_bytes());
        Self {
            patterns: parsed(&files),
            names: parsed(&names),
            values: values.collect(),
        }
    }

    /// Returns whether no pattern can match.
    pub fn covers_none(&self) -> bool {
        self.patterns == IgnoreFile::default()
    }

    /// Returns whether the file at `path` is protected as a whole, in whatever letter case.
    pub fn covers(&self, path: &str) -> bool {
        covers(&self.patterns, path, Case::Fold)
    }

    /// Returns whether a pattern with a slash and without wildcards names the file at `path` itself, and not a directory
    /// above it. A name alone may be that of a file which builds make elsewhere, such as `build/Makefile`.
    pub fn names(&self, path: &str) -> bool {
        self.names.verdict(path.as_bytes(), false, Case::Fold) == Some(true)
    }

    /// Returns whether a value in the file at `path` is protected.
    pub fn has_values(&self, path: &str) -> bool {
        self.values.iter().any(|(known, _)| known == path)
    }

    /// Returns the first protected value of the file at `path` that differs between two contents; JSON that cannot be
    /// parsed has none.
    pub fn changed(&self, path: &str, before: &str, after: &str) -> Option<&str> {
        let is_changed = |pointer: &str| value(before, pointer) != value(after, pointer);
        let mut values = self.values.iter();
        let (_, pointer) = values.find(|(known, at)| known == path && is_changed(at))?;
        Some(pointer)
    }

    /// Reads the protected values of the project at `root`.
    pub fn values(&self, root: &Path) -> ProtectedValues {
        let read = |(path, pointer): &(String, String)| {
            let text = files::read(&root.join(path), Links::Refused, LARGEST).unwrap_or_default();
            value(&String::from_utf8_lossy(&text), pointer)
        };
        let values = self.values.iter();
        values.map(|known| (known.clone(), read(known))).collect()
    }
}

/// Returns whether the patterns match the file at `path`, or a directory above it.
pub fn covers(patterns: &IgnoreFile, path: &str, case: Case) -> bool {
    let is_matched =
        |path: &str, is_dir| patterns.verdict(path.as_bytes(), is_dir, case) == Some(true);
    is_matched(path, false) || ancestors(path).any(|directory| is_matched(directory, true))
}

fn value(text: &str, pointer: &str) -> Option<Value> {
    // A program that reads the file may take a byte order mark.
    let json: Value = serde_json::from_str(text.trim_start_matches(BYTE_ORDER_MARK)).ok()?;
    json.pointer(pointer).cloned()
}

/// Checks a pattern: one line that is neither a comment nor a re-inclusion, without `.` and `..` as names and without
/// an unclosed bracket, which would match nothing; for a value, the path of a file below the root.
///
/// # Errors
/// Advice on how to write it.
pub fn check_pattern(pattern: &str) -> Result<String, &'static str> {
    let is_plain = !pattern.starts_with(['!', '#'])
        && !pattern.contains(['\n', '\r'])
        && (!pattern.contains(".json#") || pattern.contains(POINTER))
        && pattern
            .rfind('[')
            .is_none_or(|at| pattern[at..].contains(']'))
        && !pattern.split('/').any(|name| matches!(name, "." | ".."));
    // A value's path must be that of a single file below the root.
    let is_file = pattern.split_once(POINTER).is_none_or(|(path, _)| {
        let is_name = |name: &str| !matches!(name, "" | "." | "..");
        path.split('/').all(is_name) && !path.contains(['*', '?', '[', '\\'])
    });
    let is_one = is_plain && is_file && !pattern.trim().is_empty();
    is_one.then(|| pattern.to_owned()).ok_or(
        "write it like a line of .gitignore, without `!` or `./`, or like `package.json#/scripts`",
    )
}
