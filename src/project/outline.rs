//! The outline of a code base: its files, and the lines that declare their public names. Pure.
//!
//! Files are listed below their directory, indented by one column, and their signatures by two, so that no line looks
//! like the header of a file in a rollup. Takes time linear in the size of the files.

mod patterns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use self::patterns::{Language, Rule};
use crate::sys::numbers::counted;
use crate::sys::text::regex;

/// Maximum length of a line that is examined, in bytes: longer ones are not written by hand.
const LONGEST_LINE: usize = 1000;
/// Maximum number of characters of a signature.
const LONGEST: usize = 100;
/// Maximum number of characters of a signature that lists names.
const LONGEST_LIST: usize = 400;
/// Share of a file, as one part in this many, above which its signatures are shortened.
const LARGE_PART: usize = 14;
/// Size of a file in bytes below which shortening saves nothing.
const SMALL: usize = 500;

/// Matches modifiers, which add nothing in a list of public names.
static MODIFIERS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^(?:(?:pub(?:\([^)]*\))?|public|export|static|inline|extern|virtual|override|constexpr|template <[^<>]*(?:<[^<>]*>[^<>]*)*>) )+",
    )
});
/// A function's name, with its type parameters, before its parameters.
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| regex(r"([\w:$?!~]+(?:<[^(]*>)?)\("));

/// A line that declares a public name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The line's number, counted from 1.
    pub line: usize,
    /// The line's text, trimmed and truncated, with the parameters on the lines that follow.
    pub text: String,
}

/// A declaration that contains the lines after it that are indented further.
struct Scope {
    indent: usize,
    rule: Rule,
    /// True if members are private.
    hides: bool,
}

impl Scope {
    fn is_type(&self) -> bool {
        matches!(self.rule, Rule::Open | Rule::Closed | Rule::Group)
    }
}

/// Returns the signatures of a file's public names, in order; none if its language is not known.
pub fn signatures(path: &str, text: &str) -> Vec<Signature> {
    let Some(language) = Language::of(path, text) else {
        return Vec::new();
    };
    let (mut signatures, mut scopes) = (Vec::new(), Vec::<Scope>::new());
    let mut rest = text;
    for (index, line) in text.lines().enumerate() {
        let from = rest;
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        let bare = line.trim();
        if bare.is_empty() || line.len() > LONGEST_LINE {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let rule = language.rule(line);
        if let Some(hides @ (Rule::Hide | Rule::Show)) = rule {
            // In C++, these are labels, and may be indented as much as their class.
            let is_label = bare.contains(':');
            scopes.retain(|scope| scope.indent < indent + usize::from(is_label));
            if let Some(scope) = scopes.iter_mut().rfind(|scope| scope.is_type()) {
                scope.hides = hides == Rule::Hide;
            }
            continue;
        }
        let closes = bare.starts_with('}') && !bare.ends_with('{');
        if rule.is_some() || closes {
            scopes.retain(|scope| scope.indent < indent);
        }
        let Some(rule) = rule else {
            continue;
        };
        let is_listed = match rule {
            Rule::Member => scopes.last().is_some_and(|scope| !scope.hides),
            Rule::Group | Rule::Local => false,
            _ => true,
        };
        if is_listed && scopes.iter().all(Scope::is_type) {
            let text = declaration(from, rule == Rule::List);
            let line = index + 1;
            signatures.push(Signature { line, text });
        }
        let is_macro = rule == Rule::Item && bare.starts_with('#');
        if !is_macro && !bare.ends_with(['}', ';']) && !bare.ends_with("end") {
            let hides = rule == Rule::Closed;
            scopes.push(Scope {
                indent,
                rule,
                hides,
            });
        }
    }
    signatures
}

/// Formats the declaration that `text` begins with: one line, without its body.
fn declaration(text: &str, is_list: bool) -> String {
    let limit = if is_list { LONGEST_LIST } else { LONGEST };
    let mut lines = text.lines();
    let mut joined = lines.next().unwrap_or_default().trim().to_owned();
    while joined.len() < limit && depth(&joined, is_list) > 0 {
        let Some(line) = lines.next().filter(|line| line.len() <= LONGEST_LINE) else {
            break;
        };
        let line = line.trim();
        if line.starts_with([')', '}', ']']) {
            joined.truncate(joined.trim_end_matches(',').len());
        } else if !joined.ends_with(['(', '[']) {
            joined.push(' ');
        }
        joined.push_str(line);
    }
    let body = if is_list { None } else { body(&joined) };
    let end = joined[..body.unwrap_or(joined.len())]
        .trim_end_matches([' ', '{', ';', ':', '=', '\\'])
        .len();
    joined.truncate(end);
    match joined.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", joined[..at].trim_end()),
        None => joined,
    }
}

/// Counts the brackets that are open at the end of `text`, including braces if `braces` is set.
fn depth(text: &str, braces: bool) -> i32 {
    let depth = |c| match c {
        '(' | '[' => 1,
        ')' | ']' => -1,
        '{' if braces => 1,
        '}' if braces => -1,
        _ => 0,
    };
    text.chars().map(depth).sum()
}

/// Returns the offset of a body that begins in the line of its declaration.
fn body(text: &str) -> Option<usize> {
    if text.starts_with("typedef ") {
        return None;
    }
    let mut braces = text.match_indices(" {").map(|(at, _)| at);
    braces.find(|at| depth(&text[..*at], false) == 0)
}

/// The files that are listed, by directory and name, each with the lines of its signatures.
type Listed<'t> = BTreeMap<&'t str, BTreeMap<&'t str, String>>;

/// Outlines files, given by rank as paths and texts, in at most `limit` tokens by `measure`: all paths, then the
/// signatures of the highest-ranked files, at most a quarter of `limit` for a single file. If not all paths fit, half
/// is reserved for signatures. Files without text are listed by path alone. Paths must not contain line ends.
pub fn outline(files: &[(&str, &str)], measure: &dyn Fn(&str) -> u64, limit: u64) -> String {
    let mut listed = Listed::new();
    let reserved = measure(&remainder(files.len(), files.len()));
    let limit = limit.saturating_sub(reserved);
    let mut rest = list(&mut listed, files, measure, limit);
    if !rest.is_empty() {
        listed.clear();
        rest = list(&mut listed, files, measure, limit / 2);
    }
    let mut left = limit.saturating_sub(measure(&formatted(&listed)));
    for (path, text) in &files[..files.len() - rest.len()] {
        // Hardly a line would fit, so no more texts are read.
        if left <= limit / 64 {
            break;
        }
        let lines = lines(path, text);
        let cost = measure(&lines);
        if cost <= left.min(limit / 4) {
            left -= cost;
            let (directory, name) = split(path);
            listed.entry(directory).or_default().insert(name, lines);
        }
    }
    rest = list(&mut listed, rest, measure, left);
    let mut text = formatted(&listed);
    if !rest.is_empty() && limit > 0 {
        let directories: BTreeSet<&str> = rest.iter().map(|(path, _)| split(path).0).collect();
        text.push_str(&remainder(rest.len(), directories.len()));
    }
    text
}

/// Lists files up to the first that does not fit, and returns the rest.
fn list<'t, 'f>(
    listed: &mut Listed<'t>,
    files: &'f [(&'t str, &'t str)],
    measure: &dyn Fn(&str) -> u64,
    mut room: u64,
) -> &'f [(&'t str, &'t str)] {
    for (at, (path, _)) in files.iter().enumerate() {
        let (directory, name) = split(path);
        let heading = if listed.contains_key(directory) {
            String::new()
        } else {
            format!("{directory}/\n")
        };
        let Some(left) = room.checked_sub(measure(&format!("{heading} {name}\n"))) else {
            return &files[at..];
        };
        room = left;
        let names = listed.entry(directory).or_default();
        names.insert(name, String::new());
    }
    &[]
}

fn formatted(listed: &Listed<'_>) -> String {
    let mut text = String::new();
    for (directory, files) in listed {
        text.push_str(&format!("{directory}/\n"));
        for (name, signatures) in files {
            text.push_str(&format!(" {name}\n{signatures}"));
        }
    }
    text
}

/// Splits a path into its directory and its name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

/// Formats the lines of a file's signatures. If they make up a large part of the file, only the names are listed.
fn lines(path: &str, text: &str) -> String {
    let signatures = signatures(path, text);
    let sizes = signatures.iter().map(|signature| signature.text.len());
    let is_brief = sizes.sum::<usize>() > text.len().max(SMALL) / LARGE_PART;
    let line = |signature: &Signature| {
        let text = &*signature.text;
        format!("  {}\n", if is_brief { brief(text) } else { text })
    };
    let mut lines: Vec<String> = signatures.iter().map(line).collect();
    // Overloads.
    if is_brief {
        lines.dedup();
    }
    lines.concat()
}

/// Returns a signature without its visibility, parameters and value: of a function, its name and type parameters.
fn brief(text: &str) -> &str {
    let brief = &text[MODIFIERS.find(text).map_or(0, |found| found.end())..];
    let function = FUNCTION.captures(brief).and_then(|found| found.get(1));
    let head = &brief[..function.map_or(brief.len(), |name| name.start())];
    match head.find(" = ").or_else(|| head.find(" => ")) {
        Some(end) => &head[..end],
        None if head.starts_with("type ") => brief,
        None => function.map_or(brief, |name| name.as_str()),
    }
}

/// Formats the line that counts the files left out.
fn remainder(files: usize, directories: usize) -> String {
    let files = counted(files as u64, "more file");
    format!("and {files} in {}\n", counted(directories as u64, "folder"))
}

#[cfg(test)]
mod tests;
