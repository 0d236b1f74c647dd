//! The outline of a code base: its files, and the lines that declare their public names. Pure.
//!
//! Files stand below their directory, each one column deeper, and their signatures another; so no line looks like the
//! header of a file in a rollup. Takes time linear in the size of the files.

mod patterns;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use self::patterns::{Language, Rule};
use crate::sys::numbers::counted;

/// Maximum length of a line that is looked at, in bytes: no one writes longer ones.
const LONGEST_LINE: usize = 1000;
/// Maximum number of characters of a signature.
const LONGEST: usize = 100;
/// Maximum number of characters of a signature that lists names.
const LONGEST_LIST: usize = 400;
/// Signatures that are more than this part of a file are shortened.
const LARGE_PART: usize = 14;
/// Size of a file in bytes below which that saves nothing.
const SMALL: usize = 500;
/// Words that tell nothing where all names are public.
const MODIFIERS: &str = "pub public export static inline extern virtual override constexpr";

/// A line that declares a public name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature<'t> {
    /// Its number, counted from 1.
    pub line: usize,
    /// Its text, trimmed and cut, with the parameters of the lines that follow.
    pub text: Cow<'t, str>,
}

/// A declaration that the lines below it, if indented further, stand in.
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

/// Returns the signatures of a file's public names in their order; none if its language is not known.
pub fn signatures<'t>(path: &str, text: &'t str) -> Vec<Signature<'t>> {
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
fn declaration(text: &str, is_list: bool) -> Cow<'_, str> {
    let limit = if is_list { LONGEST_LIST } else { LONGEST };
    let mut lines = text.lines();
    let mut joined = Cow::Borrowed(lines.next().unwrap_or_default().trim());
    while joined.len() < limit && depth(&joined, is_list) > 0 {
        let Some(line) = lines.next().filter(|line| line.len() <= LONGEST_LINE) else {
            break;
        };
        let (line, joined) = (line.trim(), joined.to_mut());
        if line.starts_with([')', '}', ']']) {
            joined.truncate(joined.trim_end_matches(',').len());
        } else if !joined.ends_with(['(', '[']) {
            joined.push(' ');
        }
        joined.push_str(line);
    }
    let end = if is_list { None } else { body(&joined) };
    let end = joined[..end.unwrap_or(joined.len())]
        .trim_end_matches([' ', '{', ';', ':', '=', '\\'])
        .len();
    let cut = joined.char_indices().nth(limit).filter(|(at, _)| *at < end);
    match (joined, cut) {
        (joined, Some((at, _))) => format!("{}…", joined[..at].trim_end()).into(),
        (Cow::Borrowed(joined), None) => joined[..end].into(),
        (Cow::Owned(mut joined), None) => {
            joined.truncate(end);
            joined.into()
        }
    }
}

/// Counts the brackets that are open at the end of `text`, and with `braces` these too.
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

/// The outline of files.
#[derive(Debug, PartialEq, Eq)]
pub struct Outline {
    /// Its lines, ordered by path.
    pub text: String,
    /// Number of files that it names.
    pub listed: usize,
    /// Number of these with signatures.
    pub signed: usize,
}

/// Outlines files, given by rank as paths and texts, in at most `limit` tokens by `measure`. Half of that is for the
/// paths, the rest for signatures of the first ranks, at most a quarter of it for a single file. Files whose text is
/// empty are listed by path alone. Paths must not contain line ends.
pub fn outline(files: &[(&str, &str)], measure: &dyn Fn(&str) -> u64, limit: u64) -> Outline {
    let mut draft = Draft::default();
    let reserved = measure(&remainder(files.len(), files.len()));
    let limit = limit.saturating_sub(reserved);
    draft.list(files, measure, limit / 2);
    let mut left = limit.saturating_sub(measure(&draft.text()));
    for (path, text) in &files[..draft.paths.len()] {
        // No more texts are read for what is hardly a line.
        if left <= limit / 64 {
            break;
        }
        let (lines, cost) = fitting(&lines(path, text), measure, left.min(limit / 4));
        left -= cost;
        if !lines.is_empty() {
            draft.signatures.insert(path, lines);
        }
    }
    let used = measure(&draft.text());
    draft.list(files, measure, limit.saturating_sub(used));
    let mut text = draft.text();
    let rest = &files[draft.paths.len()..];
    if !rest.is_empty() && limit > 0 {
        let directories: BTreeSet<&str> = rest.iter().map(|(path, _)| split(path).0).collect();
        text.push_str(&remainder(rest.len(), directories.len()));
    }
    Outline {
        text,
        listed: draft.paths.len(),
        signed: draft.signatures.len(),
    }
}

/// An outline in the making.
#[derive(Default)]
struct Draft<'t> {
    /// The files that are listed: the first ranks.
    paths: Vec<&'t str>,
    directories: BTreeSet<&'t str>,
    /// The lines of signatures by path.
    signatures: HashMap<&'t str, String>,
}

impl<'t> Draft<'t> {
    /// Lists more files, up to the first that there is no room for.
    fn list(&mut self, files: &[(&'t str, &str)], measure: &dyn Fn(&str) -> u64, mut room: u64) {
        for (path, _) in &files[self.paths.len()..] {
            let (directory, name) = split(path);
            let is_new = !self.directories.contains(directory);
            let mut lines = if is_new {
                heading(directory)
            } else {
                String::new()
            };
            lines.push_str(&format!(" {name}\n"));
            let Some(left) = room.checked_sub(measure(&lines)) else {
                break;
            };
            room = left;
            self.directories.insert(directory);
            self.paths.push(path);
        }
    }

    fn text(&self) -> String {
        let mut paths: Vec<_> = self.paths.iter().map(|path| (split(path), path)).collect();
        paths.sort_unstable();
        let (mut text, mut before) = (String::new(), None);
        for ((directory, name), path) in paths {
            if before.replace(directory) != Some(directory) {
                text.push_str(&heading(directory));
            }
            text.push_str(&format!(" {name}\n"));
            text.push_str(self.signatures.get(path).map_or("", String::as_str));
        }
        text
    }
}

/// Splits a path into its directory and its name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

/// Formats the line above the files of a directory.
fn heading(directory: &str) -> String {
    format!("{directory}/\n")
}

/// Formats the lines of a file's signatures. Where they are a large part of the file, only its names are worth their
/// tokens.
fn lines(path: &str, text: &str) -> Vec<String> {
    let signatures = signatures(path, text);
    let size: usize = signatures
        .iter()
        .map(|signature| signature.text.len())
        .sum();
    let is_brief = size > text.len().max(SMALL) / LARGE_PART;
    let line = |signature: &Signature<'_>| {
        let text = &*signature.text;
        format!("  {}\n", if is_brief { brief(text) } else { text })
    };
    let mut lines: Vec<String> = signatures.iter().map(line).collect();
    // Overloads.
    if is_brief {
        lines.dedup();
    }
    lines
}

/// Returns a signature without its visibility, parameters and value.
fn brief(text: &str) -> &str {
    let mut brief = text;
    while let Some((_, rest)) = brief.split_once(' ').filter(|(word, _)| {
        let word = word.split('(').next();
        word.is_some_and(|word| MODIFIERS.split(' ').any(|modifier| modifier == word))
    }) {
        brief = rest;
    }
    let is_name = |c: char| c.is_alphanumeric() || "_$?!~>".contains(c);
    let mut heads = brief.match_indices('(').map(|(at, _)| &brief[..at]);
    let function = heads.find(|head| head.ends_with(is_name));
    let head = function.unwrap_or(brief);
    if let Some(at) = head.find(" = ").or_else(|| head.find(" => ")) {
        return &head[..at];
    }
    if function.is_none() || head.starts_with("typedef ") || head.starts_with("type ") {
        return function.map_or(head, |_| brief);
    }
    // Behind a function's name stand its type parameters.
    let mut depth = 0;
    let mut from_end = head.char_indices().rev().filter(|(_, c)| {
        depth += i32::from(*c == '>') - i32::from(*c == '<');
        depth == 0 && !is_name(*c) && *c != '<' && *c != ':'
    });
    let start = from_end.next().map_or(0, |(at, c)| at + c.len_utf8());
    &head[start..]
}

/// Joins as many lines as there is room for, and returns their cost.
fn fitting(lines: &[String], measure: &dyn Fn(&str) -> u64, room: u64) -> (String, u64) {
    let all = lines.concat();
    let cost = measure(&all);
    if cost <= room {
        return (all, cost);
    }
    let (mut some, mut cost) = (String::new(), measure("  …\n"));
    for line in lines {
        let more = measure(line);
        if cost + more > room {
            break;
        }
        cost += more;
        some.push_str(line);
    }
    if some.is_empty() {
        return (some, 0);
    }
    some.push_str("  …\n");
    (some, cost)
}

/// Formats the line on files that are left out.
fn remainder(files: usize, directories: usize) -> String {
    let files = counted(files as u64, "more file");
    format!("and {files} in {}\n", counted(directories as u64, "folder"))
}

#[cfg(test)]
mod tests;
