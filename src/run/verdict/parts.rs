//! Splits a file into gate and rest, and recombines the rest of one state with the gate of another. Pure.
//!
//! Parts that the rules of the file's form cannot distinguish are reported, not guessed.

mod rust;

use std::sync::LazyLock;

use regex::{Captures, Match, Regex};
use serde_json::{Map, Value};

use self::rust::TOP;
use super::table::{Form, Halves};
use crate::edit::protection::covers;
use crate::project::gitignore::{Case, IgnoreFile};
use crate::project::walk;
use crate::sys::text::{BYTE_ORDER_MARK, regex};

/// Splits a text into gate and rest, by the patterns of the gate's parts; `None` if the form's rules do not apply.
pub fn halves(form: Form, parts: &str, text: &str) -> Option<Halves> {
    let is_gate = |path: &str| {
        let patterns = IgnoreFile::parse(parts.replace(' ', "\n").as_bytes());
        covers(&patterns, path, Case::Sensitive)
    };
    match form {
        Form::Json => json(is_gate, text),
        Form::Sections => sections(is_gate, parts, text),
        Form::Xml => xml(parts, text),
        Form::Rust => rust::halves(text),
    }
}

/// Moves items from the new rest of a file to its gate if they have the name of a former test.
pub fn without_former(form: Form, old: &Halves, new: Halves) -> Halves {
    let tests: String = old.gate.iter().map(|(_, item)| item.as_str()).collect();
    let named = [&tests, &old.rest, &new.rest].map(|text| rust::named(text));
    let (Form::Rust, [Some(tests), Some(others), Some(items)]) = (form, named) else {
        return new;
    };
    let has = |all: &[(_, String)], name: &String| all.iter().any(|(_, other)| other == name);
    let (mut new, items) = (new, items.into_iter().rev());
    for (range, _) in items.filter(|(_, name)| has(&tests, name) && !has(&others, name)) {
        let item: String = new.rest.drain(range).collect();
        new.unclear.retain(|other| *other != item);
        new.gate.push((String::new(), item));
    }
    new
}

/// Inserts these parts into the rest of a file.
pub fn joined(form: Form, rest: &str, gate: &[(String, String)]) -> String {
    let (mut top, mut text) = (String::new(), rest.to_owned());
    for (place, part) in gate {
        match form {
            Form::Json => text = with_pair(&text, place, part),
            Form::Sections | Form::Rust if place == TOP => top.push_str(part),
            Form::Sections => match text.find(place.as_str()).filter(|_| !place.is_empty()) {
                Some(at) => text.insert_str(at + place.len(), part),
                None => text.extend([place.as_str(), part]),
            },
            Form::Xml => {
                let end = format!("</{place}>");
                match (text.find(&end), text.rfind("</")) {
                    (Some(at), _) => text.insert_str(at, part),
                    (None, at) => {
                        text.insert_str(at.unwrap_or(0), &format!("<{place}>{part}{end}\n"));
                    }
                }
            }
            Form::Rust => text.push_str(part),
        }
    }
    top + &text
}

/// Splits an object by its keys, and by those of nested objects.
fn json(is_gate: impl Fn(&str) -> bool, text: &str) -> Option<Halves> {
    let text = if text.is_empty() { "{}" } else { text };
    let mut all: Map<String, Value> = serde_json::from_str(&plain_json(text)).ok()?;
    let mut gate = Vec::new();
    let mut take = |place: &str, object: &mut Map<String, Value>| {
        object.retain(|key, value| {
            let is_gate = is_gate(&walk::joined(place, key));
            if is_gate {
                let pair = Map::from_iter([(key.clone(), value.clone())]);
                gate.push((place.to_owned(), Value::from(pair).to_string()));
            }
            !is_gate
        });
    };
    take("", &mut all);
    for (key, value) in &mut all {
        if let Value::Object(object) = value {
            take(key, object);
        }
    }
    Some(Halves {
        gate,
        rest: format!("{:#}\n", Value::from(all)),
        ..Halves::default()
    })
}

/// Returns the text without the comments and trailing commas that settings in JSON may have.
fn plain_json(text: &str) -> String {
    static COMMENT: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"(?s)("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/"#));
    static COMMA: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"(?s)("(?:\\.|[^"\\])*")|,(\s*[}\]])"#));
    let text = COMMENT.replace_all(text, "$1");
    COMMA.replace_all(&text, "$1$2").into_owned()
}

/// Adds the pair in `part` to the object at this key, or to the top-level object.
fn with_pair(text: &str, place: &str, part: &str) -> String {
    let parsed = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap_or_default();
    let mut all = parsed(text);
    if place.is_empty() {
        all.extend(parsed(part));
    } else if let Value::Object(object) = all.entry(place).or_insert_with(|| Map::new().into()) {
        object.extend(parsed(part));
    }
    format!("{:#}\n", Value::from(all))
}

/// Splits a text into sections and their keys, each with the lines up to the next; `None` if a program may find other
/// sections or keys in it than the lines show.
fn sections(is_gate: impl Fn(&str) -> bool, parts: &str, text: &str) -> Option<Halves> {
    static HEADER: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\[\[?\s*([\pL_][^\[\]]*?)\s*\]\]?\s*(?:[#;].*)?$"));
    static KEY: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"^\s*([\w"'-]+(?:\s*\.\s*[\w"'-]+)*)\s*(?:([=:])|[#;\[]|$)\s*([{\[])?"#)
    });
    if has_hidden_lines(text) {
        return None;
    }
    let plain = |text: &str| text.replace(['"', '\'', ' ', '\t'], "");
    let mut halves = Halves::default();
    // A key follows its header, or is at the top.
    let (mut header, mut name) = (TOP.to_owned(), String::new());
    let (mut is_section, mut is_key) = (false, false);
    for line in text.lines() {
        let line = format!("{line}\n");
        // These alone are no names, but values of an array.
        let is_name = |found: &Captures<'_>| !["true", "false", "inf", "nan"].contains(&&found[1]);
        if let Some(found) = HEADER.captures(line.trim_end()).filter(is_name) {
            name = plain(&found[1]);
            header.clone_from(&line);
            (is_section, is_key) = (is_gate(&name), false);
            if is_section {
                halves.gate.push((String::new(), String::new()));
            }
        } else if is_ambiguous(&line, name.is_empty()) {
            return None;
        } else if is_section || is_key && line.starts_with([' ', '\t']) {
            // The section, or the value of the key, goes on.
        } else if let Some(found) = KEY.captures(&line)
            // For npm, a word alone is a key that is true.
            && (found.get(2).is_some() || name.is_empty() && !found[1].contains(['"', '\'']))
        {
            let path = format!("{name}.{}", plain(&found[1]));
            let path = path.trim_start_matches('.');
            is_key = is_gate(path);
            let is_above = |part: &str| {
                let below = part.strip_prefix(path);
                below.is_some_and(|below| below.starts_with(['.', '*']))
            };
            if !is_key && found.get(3).is_some() && parts.split(' ').any(is_above) {
                return None;
            }
            if is_key && halves.gate.last().is_none_or(|(place, _)| *place != header) {
                halves.gate.push((header.clone(), String::new()));
            }
        }
        match halves.gate.last_mut() {
            Some((_, part)) if is_section || is_key => part.push_str(&line),
            _ => halves.rest.push_str(&line),
        }
    }
    Some(halves)
}

/// Returns whether programs may see other lines than the text shows: a lone CR ends a line for many, a byte order mark
/// is a blank for npm, and what looks like a header may be a line of a string.
fn has_hidden_lines(text: &str) -> bool {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"(?s)"""(?:\\.|[^\\])*?"{3,5}|'''.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*"#)
    });
    let has_header = |token: Match<'_>| token.as_str().contains("\n[");
    text.contains(BYTE_ORDER_MARK)
        || text.replace("\r\n", "\n").contains('\r')
        || TOKEN.find_iter(text).any(has_header)
}

/// Returns whether a line that is no plain header may be one, or may be a key that is not written out: by escapes or,
/// at the top, by marks of YAML and npm's variables. What looks like an indented header is part of a value in INI.
fn is_ambiguous(line: &str, is_at_top: bool) -> bool {
    static ANYWHERE: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\[|^\s+\[\[?[^\[\],]+\]\]?\s*(?:[#;].*)?$|^[^=:#;]*\\[uUx]"));
    static AT_TOP: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\s*(?:---\s+)?[?{!&*<]|^[^=:#;]*\$"));
    ANYWHERE.is_match(line) || is_at_top && AT_TOP.is_match(line)
}

/// Splits elements by the names of their parents and their own, given as regular expressions.
fn xml(parts: &str, text: &str) -> Option<Halves> {
    let (mut gate, mut rest) = (Vec::new(), text.to_owned());
    for part in parts.split(' ') {
        let (parent, name) = part.split_once('/')?;
        let name = format!(r"(?s)\s*<(?:{name})(?:\s(?:[^>/]|/[^>])*)?(?:/>|>.*?</(?:{name})>)");
        let element = regex(&name);
        let found = element
            .find_iter(&rest)
            .map(|it| (parent.to_owned(), it.as_str().to_owned()));
        gate.extend(found);
        rest = element.replace_all(&rest, "").into_owned();
    }
    Some(Halves {
        gate,
        rest,
        ..Halves::default()
    })
}
