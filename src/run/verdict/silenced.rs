//! The lints that a change silences in code files, and the text of these files without the silencers. Pure.

use std::collections::HashMap;
use std::ops::Range;

use crate::run::past::warnings::{Concern, signs};
use crate::sys::diff::Comparison;

/// A comment or an attribute that silences lints, with its whole line if there is nothing else on it.
#[derive(Debug)]
pub struct Silencer {
    range: Range<usize>,
    pub text: String,
    /// True if it can be removed: its end is known, and the code may have been linted before.
    pub is_removable: bool,
    is_added: bool,
}

/// The silencers in all files of a change, by their text: the number after the change less the number before.
pub type Balance = HashMap<String, isize>;

/// Finds the silencers in the new text, marks those on added lines, and counts them and the old ones in `balance`.
pub fn silencers(path: &str, [old, new]: [&str; 2], balance: &mut Balance) -> Vec<Silencer> {
    for one in found(path, old) {
        *balance.entry(one.text).or_default() -= 1;
    }
    let mut found = found(path, new);
    if found.is_empty() {
        return found;
    }
    let compared = Comparison::of(old.as_bytes(), new.as_bytes());
    for one in &mut found {
        *balance.entry(one.text.clone()).or_default() += 1;
        let line = new[..one.range.start].matches('\n').count();
        let is_in = |compared: &Comparison<'_>| {
            compared.changes.iter().any(|run| run.after.contains(&line))
        };
        one.is_added = compared.as_ref().is_none_or(is_in);
    }
    found
}

/// Returns whether a silencer is new, rather than present before or moved.
pub fn is_new(one: &Silencer, balance: &Balance) -> bool {
    one.is_added && balance.get(&one.text).is_some_and(|count| *count > 0)
}

/// Returns the text without these silencers, given in order.
pub fn without<'s>(text: &str, silencers: impl Iterator<Item = &'s Silencer>) -> String {
    let (mut rest, mut at) = (String::new(), 0);
    for one in silencers.filter(|one| one.is_removable) {
        rest.push_str(&text[at..one.range.start]);
        at = one.range.end;
    }
    rest + &text[at..]
}

fn found(path: &str, text: &str) -> Vec<Silencer> {
    let signs = signs(path, text.as_bytes(), Concern::Silence).into_iter();
    let mut silencers: Vec<Silencer> = signs
        .map(|sign| {
            let whole = whole(text, sign.clone());
            let range = whole.clone().unwrap_or(sign);
            Silencer {
                text: text[range.clone()].trim().to_owned(),
                range,
                is_removable: whole.is_some(),
                is_added: false,
            }
        })
        .collect();
    // Two silencers may share a comment.
    silencers.dedup_by(|next, before| next.range.start < before.range.end);
    silencers
}

/// Returns the whole comment or attribute that a sign begins.
fn whole(text: &str, sign: Range<usize>) -> Option<Range<usize>> {
    let line = text[..sign.start].rfind('\n').map_or(0, |at| at + 1);
    let end = |at: usize| text[at..].find('\n').map_or(text.len(), |found| at + found);
    let behind = |mark: &str| Some(sign.start + text[sign.start..].find(mark)? + mark.len());
    let found = &text[sign.clone()];
    let close = if found.contains('(') { ")]" } else { "]" };
    let (start, stop) = match found.as_bytes() {
        [b'/', b'*', ..] => (sign.start, behind("*/")?),
        [b'{', b'-', ..] => (sign.start, behind("-}")?),
        [b'#', b'[' | b'!', ..] => (sign.start, behind(close)?),
        [b'@', ..] if found.contains('(') => (sign.start, behind(")")?),
        [b'@' | b'_', ..] => (sign.start, sign.end),
        // The sign is inside an attribute, which may contain others.
        [b'S' | b'E', ..] if text[line..sign.start].trim() == "[" => (line, behind(close)?),
        [b'S' | b'E', ..] => return None,
        // The sign may extend into the next line.
        _ => (sign.start, end(sign.start)),
    };
    let count = |one: char| text[start..stop].matches(one).count();
    let is_comment = matches!(
        found.as_bytes(),
        [b'/', ..] | [b'#', b' ' | b'a'..=b'z', ..]
    );
    if !is_comment && (count('(') != count(')') || count('[') != count(']')) {
        return None;
    }
    let (before, end) = (text[line..start].trim_end(), end(stop));
    Some(match (before, text[stop..end].trim()) {
        ("", "") => line..(end + 1).min(text.len()),
        (before, "") => line + before.len()..end,
        _ => start..stop,
    })
}
