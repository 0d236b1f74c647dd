//! Reads the findings in a failed build's output: what is wrong, and where. Pure.
//!
//! Guarantees linear time, and a bounded number of findings.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use regex::bytes::Captures;

use super::table::{Kind, Pattern, pattern};
use crate::exec::build_script::BUILD_SCRIPT;
use crate::record::finding::Finding;
use crate::secret::escapes::without_escapes;
use crate::sys::text::{cut, regex};

/// Maximum number of findings, and of those read to find that many distinct ones.
const MOST: usize = 1000;
const MOST_READ: usize = 10 * MOST;
/// Maximum number of lines between a message and its location: for known tools, and for others.
const NEAR: usize = 40;
const NEAR_OTHERS: usize = 6;
/// Maximum number of characters of a message.
const LONGEST: usize = 300;

/// Numbers that differ from one build to the next: addresses, durations, times, processes.
static PASSING: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"\b0x[0-9a-fA-F]{4,}|\b\d+(?:\.\d+)?\s?(?:[mnuµ]?s|sec(?:onds?)?)\b|\b\d{4}-\d\d-\d\d\b|\b\d\d:\d\d:\d\d(?:\.\d+)?\b|\b(?:pid|PID) \d+",
    )
});
/// The line number after a file name.
static LINE: LazyLock<Regex> = LazyLock::new(|| regex(r"(\.\w+)(?::\d+){1,2}"));

/// Returns the distinct findings in the output of a failed build, in order; at least one. Files of the project at
/// `root` are named from there.
pub fn read(output: &str, root: &Path) -> Vec<Finding> {
    let output = without_escapes(output);
    let mut reader = Reader {
        root: root.as_os_str(),
        ..Reader::default()
    };
    for (at, line) in output.lines().enumerate() {
        reader.line(at, overwritten(line));
        if reader.found.len() == MOST_READ {
            break;
        }
    }
    reader.finish()
}

/// Returns the end of a line after its last carriage return, since that overwrites the rest.
pub fn overwritten(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line)
}

/// A file and a line in it, as far as known.
#[derive(Debug, Clone, Default, PartialEq)]
struct Place {
    file: Option<String>,
    line: Option<usize>,
}

/// A finding whose location or message may follow.
struct Open {
    tool: Option<&'static str>,
    message: String,
    place: Place,
    /// The index of its line in the output.
    at: usize,
    /// True if the next line belongs to the message.
    takes_text: bool,
}

#[derive(Default)]
struct Reader<'o> {
    /// The path of the project's root.
    root: &'o OsStr,
    found: Vec<Finding>,
    /// Summaries, used if nothing else is found.
    rest: Vec<Finding>,
    open: Option<Open>,
    /// The last location that no earlier message has taken, and its line in the output.
    above: Option<(Place, usize)>,
    /// The tool whose output began most recently.
    topic: Option<&'static str>,
    /// The last line that is not indented, and the last that is not blank.
    heading: &'o str,
    last: &'o str,
    /// The line number of the latest message of the kind for which only the first of several counts.
    first: Option<usize>,
}

impl<'o> Reader<'o> {
    fn line(&mut self, at: usize, line: &'o str) {
        let text = line.trim();
        if text.is_empty() {
            return;
        }
        self.last = text;
        if !line.starts_with([' ', '\t']) {
            self.heading = text;
        }
        let matched = pattern(line);
        let kind = matched.map(|pattern| pattern.kind);
        if let Some(open) = self.open.as_mut().filter(|open| open.takes_text)
            && (open.place.line.is_some() || kind != Some(Kind::Line))
        {
            open.takes_text = false;
            let colon = if open.message.is_empty() { "" } else { ": " };
            open.message += &format!("{colon}{text}");
            if !matches!(kind, Some(Kind::Place | Kind::Site)) {
                return;
            }
        }
        if let Some(pattern) = matched
            && !matches!(pattern.kind, Kind::Warning | Kind::Skip)
            && let Some(parts) = pattern.captures(line)
        {
            self.matched(at, text, pattern, &parts);
        }
    }

    fn matched(&mut self, at: usize, text: &str, pattern: &'static Pattern, parts: &Captures<'_>) {
        let tool = pattern.tool.as_deref();
        let mut place = self.place(parts);
        let message = part(parts, "message").unwrap_or_default();
        match pattern.kind {
            Kind::Place | Kind::Site => return self.found_place(at, place, tool),
            Kind::Tag => return self.tag(tool),
            Kind::Topic | Kind::Mark => {
                self.topic = tool.or(self.topic);
                return;
            }
            Kind::Rest => {
                let message = if message.is_empty() { text } else { &message };
                let finding = self.finding(tool, message, place);
                if self.rest.len() < MOST_READ {
                    self.rest.push(finding);
                }
                return;
            }
            Kind::Row => place.file = Some(relative(self.heading, self.root)),
            Kind::First | Kind::Under => {
                let is_first = pattern.kind == Kind::First;
                if is_first && self.first.replace(at + 1) == Some(at) {
                    return;
                }
                let above = self
                    .above
                    .as_ref()
                    .filter(|(_, above)| at - above <= NEAR_OTHERS);
                place = above.map_or(place, |(above, _)| above.clone());
            }
            Kind::Line => {
                // This line gives the subject of the message above it.
                self.open.take_if(|open| {
                    open.tool == tool && open.place == Place::default() || open.takes_text
                });
            }
            _ => {}
        }
        self.close();
        self.open = Some(Open {
            tool,
            takes_text: message.is_empty() || pattern.kind == Kind::Named,
            message,
            place,
            at,
        });
    }

    /// Assigns a location to the message above it, or keeps it for one below.
    fn found_place(&mut self, at: usize, place: Place, tool: Option<&'static str>) {
        let is_foreign = place.file.as_deref().is_some_and(is_foreign);
        if is_foreign && self.above.is_some() {
            return;
        }
        let is_near = |open: &&mut Open| {
            open.place.line.is_none() && at - open.at <= open.tool.map_or(NEAR_OTHERS, |_| NEAR)
        };
        match self.open.as_mut().filter(is_near) {
            Some(_) if is_foreign => {}
            Some(open) => {
                open.place = place;
                open.tool = open.tool.or(tool);
            }
            None => self.above = Some((place, at)),
        }
    }

    /// Replaces the tool of the findings by another name.
    fn tag(&mut self, tools: Option<&'static str>) {
        self.close();
        if let Some((from, to)) = tools.and_then(|tools| tools.split_once('>')) {
            let found = self.found.iter_mut().rev();
            for finding in found.take_while(|finding| finding.tool == from) {
                to.clone_into(&mut finding.tool);
            }
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let finding = self.finding(open.tool, &open.message, open.place);
            self.found.push(finding);
        }
    }

    fn finish(mut self) -> Vec<Finding> {
        self.close();
        if self.found.is_empty() {
            self.found = std::mem::take(&mut self.rest);
        }
        if self.found.is_empty() {
            let last = Some(self.last)
                .filter(|last| !last.is_empty())
                .unwrap_or("it printed nothing");
            self.found = vec![self.finding(None, last, Place::default())];
        }
        let mut seen = HashSet::new();
        self.found.retain(|finding| seen.insert(finding.clone()));
        self.found.truncate(MOST);
        self.found
    }

    fn finding(&self, tool: Option<&'static str>, message: &str, place: Place) -> Finding {
        let joined = message.split_whitespace().collect::<Vec<&str>>().join(" ");
        let placeless = LINE.replace_all(&joined, "$1");
        let message = PASSING.replace_all(&placeless, "…");
        let interpreter = || match place.file.as_deref()?.rsplit_once('.')?.1 {
            "py" => Some("python"),
            "js" | "mjs" | "cjs" => Some("node"),
            _ => None,
        };
        let tool = tool.or(self.topic).or_else(interpreter);
        Finding {
            tool: tool.unwrap_or(BUILD_SCRIPT).to_owned(),
            message: cut(&message, LONGEST).into_owned(),
            file: place.file,
            line: place.line,
        }
    }

    fn place(&self, parts: &Captures<'_>) -> Place {
        Place {
            file: part(parts, "file").map(|file| relative(&file, self.root)),
            line: part(parts, "line")
                .and_then(|line| line.parse().ok())
                .filter(|line| *line > 0),
        }
    }
}

fn part(parts: &Captures<'_>, name: &str) -> Option<String> {
    let part = parts.name(name)?;
    Some(String::from_utf8_lossy(part.as_bytes()).trim().to_owned())
}

/// Returns a file's path, relative to the root if it is below the root.
fn relative(file: &str, root: &OsStr) -> String {
    let named = Path::new(file.strip_prefix("file://").unwrap_or(file));
    let path = named.strip_prefix(root).unwrap_or(named);
    path.strip_prefix(".")
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

/// Returns whether a file in a stack trace belongs to a library or a tool.
fn is_foreign(file: &str) -> bool {
    let libraries = ["node_modules/", "site-packages/", "vendor/"];
    file.starts_with(['/', '<']) || libraries.iter().any(|library| file.contains(library))
}

#[cfg(test)]
mod tests;
