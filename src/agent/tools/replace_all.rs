//! `replace_in_files`: replaces the matches of a regular expression in all files of the project.
//!
//! Covers the same files as [`search`](super::search), line by line. Guarantees that either everything is written or
//! nothing, and that the rest of each file stays byte for byte the same. An interrupt ends it before anything is
//! written. Files that are not UTF-8 are left unchanged.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::files::{FileAccess, Proposed, ReadAccess, preview_of, with_warnings};
use super::resolved_path::{Outside, quoted};
use super::search::{LARGEST, READ_AT_MOST, SearchFiles, parsed};
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::record::tool::Category;
use crate::sys::numbers::counted;
use crate::sys::text::regex;

/// Maximum number of files changed by one call.
const MOST_FILES: usize = 1000;
/// Maximum number of files named in the output.
const NAMED: usize = 50;

/// The description of `replace_in_files`.
pub static REPLACE_IN_FILES: ToolSpec = ToolSpec::new(
    "replace_in_files",
    "Replaces what a regular expression matches in all text files of a directory that git does not ignore: in all of \
     them, or where that fails in none. Search first, to see what it matches.",
    &[
        Parameter::text("pattern", "A regular expression in Rust's syntax, matched line by line; `(?i)` before it takes letters of either case"),
        Parameter::block("replacement", "What takes its place: `$1` or `${1}` is what the first group has matched, `$$` a dollar sign"),
        Parameter::path("path", "The directory, or the file").or("."),
    ],
    Effect::Writes,
)
.of_category(Category::Search);

/// A group's name in a replacement, or an escaped dollar sign. A dollar sign without a name is literal.
static REFERENCE: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\$(?:\$|\{(?<braced>[^}]+)\}|(?<bare>[0-9A-Za-z_]+))"));

/// Replaces text in files of the project, never in others.
pub struct ReplaceInFiles<'a>(pub FileAccess<'a>);

impl Tool for ReplaceInFiles<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let changed = self.changed(arguments)?;
        let places: usize = changed.iter().map(|changed| changed.places).sum();
        let all = format!(
            "{} in {}",
            counted(places as u64, "place"),
            counted(changed.len() as u64, "file")
        );
        let mut text = format!("replaced {all}:");
        for changed in changed.iter().take(NAMED) {
            let path = changed.file.place.shown();
            text.push_str(&format!("\n{} in {path}", changed.places));
        }
        if let Some(more @ 1..) = changed.len().checked_sub(NAMED) {
            text.push_str(&format!("\nand {}", counted(more as u64, "more file")));
        }
        let edits = changed.iter().filter_map(|changed| changed.file.edit());
        let warnings = self.0.files.apply(edits.collect())?;
        Ok(with_warnings(text, warnings).in_brief(all))
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        let changed = self.changed(arguments)?;
        let files = changed.into_iter().map(|changed| changed.file);
        preview_of(self.0.files, files.collect()).map(Some)
    }
}

/// A file with all matches replaced, before it is written.
struct ChangedFile {
    file: Proposed,
    /// The number of replacements.
    places: usize,
}

impl ReplaceInFiles<'_> {
    /// Returns the files in which something was replaced; at least one.
    fn changed(&self, arguments: &Arguments) -> Result<Vec<ChangedFile>, ToolError> {
        let changed = self.found(arguments);
        self.0.read.interrupt.check()?;
        changed.map_err(ToolError::from)
    }

    fn found(&self, arguments: &Arguments) -> Result<Vec<ChangedFile>, String> {
        let (pattern, replacement) = (arguments.get("pattern"), arguments.get("replacement"));
        let regex = parsed(pattern)?;
        if regex.is_match("") {
            return Err(format!(
                "{} matches the empty text, which is everywhere; use a pattern that matches a letter at least",
                quoted(pattern)
            ));
        }
        check_groups(&regex, replacement)?;
        let (mut changed, mut read, mut matching) = (Vec::new(), 0, 0);
        // Nothing is replaced outside the project.
        let search = SearchFiles(ReadAccess {
            outside: Outside::Refused,
            ..self.0.read
        });
        let is_whole = search.each_file(arguments.get("path"), |file, content| {
            read += content.len();
            let Ok(before) = String::from_utf8(content) else {
                return true;
            };
            if before.contains('\0') {
                return true;
            }
            let (after, places) = replaced(&regex, replacement, &before);
            matching += places;
            if after != before {
                let file = Proposed {
                    place: file.clone(),
                    before: Some(before.into_bytes()),
                    after: Some(after),
                };
                changed.push(ChangedFile { file, places });
            }
            changed.len() <= MOST_FILES && read < READ_AT_MOST
        })?;
        if !is_whole || changed.len() > MOST_FILES {
            return Err(format!(
                "there is more than is changed at once, {MOST_FILES} files of {} MiB each; name a directory, or a \
                 narrower pattern",
                LARGEST >> 20
            ));
        }
        match (changed.as_slice(), matching) {
            ([], 0) => Err(format!(
                "no line of a text file matches {}",
                quoted(pattern)
            )),
            ([], _) => Err("it changes nothing: what is found is the replacement".to_owned()),
            _ => Ok(changed),
        }
    }
}

/// Replaces all matches within the lines of `text`, and returns their number as well. Line endings are kept.
fn replaced(regex: &Regex, replacement: &str, text: &str) -> (String, usize) {
    let (mut after, mut places) = (String::with_capacity(text.len()), 0);
    for line in text.split_inclusive('\n') {
        let unended = line.trim_end_matches('\n');
        let body = unended.strip_suffix('\r').unwrap_or(unended);
        match regex.replace_all(body, replacement) {
            Cow::Borrowed(_) => after.push_str(line),
            Cow::Owned(replaced) => {
                places += regex.find_iter(body).count();
                after.push_str(&replaced);
                after.push_str(line.get(body.len()..).unwrap_or_default());
            }
        }
    }
    (after, places)
}

/// Checks that the pattern has all groups named in the replacement; an unknown group would be replaced with nothing.
fn check_groups(regex: &Regex, replacement: &str) -> Result<(), String> {
    let is_known = |name: &str| match name.parse::<usize>() {
        Ok(number) => number < regex.captures_len(),
        Err(_) => regex.capture_names().flatten().any(|known| known == name),
    };
    let references = REFERENCE.captures_iter(replacement);
    let mut names = references.filter_map(|found| found.name("braced").or(found.name("bare")));
    match names.find(|name| !is_known(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(format!(
            "the replacement names the group {}, which the pattern has not; `${{1}}` is the first group before \
             letters, and `$$` is a dollar sign",
            quoted(name.as_str())
        )),
    }
}

#[cfg(test)]
mod tests;
