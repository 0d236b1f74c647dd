//! A file as parts, some of which are the gate, and the file made of the code of one state and the gate of another.
//! Pure.
//!
//! Parts keep their text. What cannot be told apart by the form's rules is told, not guessed.

mod group;
mod items;
mod xml;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use self::group::{Group, Parted};
use super::table::Form;
use crate::project::gitignore::IgnoreFile;
use crate::sys::text::regex;

/// Splits a text; `None` if the form's rules do not.
fn parted(form: Form, text: &str) -> Option<Parted> {
    match form {
        Form::Json => json(text),
        Form::Sections => Some(sections(text)),
        Form::Xml => xml::parted(text),
        Form::Blocks => items::blocks(text),
        Form::Rust => items::rust(text),
    }
}

/// The gate and the rest of a file, to compare them with those of another state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Halves {
    /// The parts that are the gate.
    pub gate: String,
    /// All else.
    pub rest: String,
}

/// Tells the parts of a text apart; `None` if the form's rules do not.
pub fn halves(form: Form, gate: &IgnoreFile, text: &str) -> Option<Halves> {
    let parted = parted(form, text)?;
    let side = |is_gate| {
        let groups = parted.sides(gate, is_gate);
        let pieces = groups.map(|group| match group.pieces.as_slice() {
            [] => group.text("").trim().to_owned(),
            // An emptied section is like none.
            pieces => pieces.iter().map(|(_, text)| text.trim_start()).collect(),
        });
        pieces.collect::<Vec<_>>().join("\n")
    };
    Some(Halves {
        gate: side(true),
        rest: side(false),
    })
}

/// Joins the code of one state of a file with the gate of another; `None` if the form's rules do not tell them apart.
pub fn joined(form: Form, gate: &IgnoreFile, code: &str, gates: &str) -> Option<String> {
    let (code, gates) = (parted(form, code)?, parted(form, gates)?);
    // Of what is mostly gate, the rest is put in: plugins stand before dependencies.
    let (mut base, other, from_other) = match form {
        Form::Blocks => (gates, code, false),
        _ => (code, gates, true),
    };
    base.groups = base.sides(gate, !from_other).collect();
    for group in other.sides(gate, from_other) {
        let same = |known: &&mut Group| known.open.trim() == group.open.trim();
        if group.name == items::LINT {
            base.groups.insert(0, group);
        } else if let Some(known) = base.groups.iter_mut().find(same) {
            known.pieces.extend(group.pieces);
        } else {
            base.groups.push(group);
        }
    }
    Some(base.text())
}

fn json(text: &str) -> Option<Parted> {
    let text = if text.is_empty() { "{}" } else { text };
    let Ok(Value::Object(all)) = serde_json::from_str(text) else {
        return None;
    };
    let pair = |name: &str, value: &Value| format!("\n{}: {value:#}", Value::from(name));
    let groups = all.iter().map(|(name, value)| match value {
        Value::Object(inner) => Group {
            pieces: inner
                .iter()
                .map(|(key, value)| (key.clone(), pair(key, value)))
                .collect(),
            close: "\n}".to_owned(),
            ..Group::new(name, &format!("\n{}: {{", Value::from(name.as_str())))
        },
        value => Group::new(name, &pair(name, value)),
    });
    Some(Parted {
        head: "{".to_owned(),
        groups: groups.collect(),
        tail: "\n}\n".to_owned(),
        between: ",",
    })
}

fn sections(text: &str) -> Parted {
    static HEADER: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^\[\[?\s*([^\[\]]+?)\s*\]\]?\s*(?:[#;].*)?$"));
    static KEY: LazyLock<Regex> = LazyLock::new(|| regex(r#"^([\w."'-]+)\s*[=:]"#));
    let mut groups = vec![Group::default()];
    for line in text.lines() {
        let full = format!("{line}\n");
        if let Some(header) = HEADER.captures(line) {
            groups.push(Group::new(&header[1].replace('"', ""), &full));
            continue;
        }
        // There is always the one before the first header.
        let Some(group) = groups.last_mut() else {
            continue;
        };
        match (KEY.captures(line), group.pieces.last_mut()) {
            (Some(key), _) => group.pieces.push((key[1].to_owned(), full)),
            (None, Some((_, piece))) => piece.push_str(&full),
            (None, None) => group.open.push_str(&full),
        }
    }
    Parted {
        groups,
        ..Parted::default()
    }
}
