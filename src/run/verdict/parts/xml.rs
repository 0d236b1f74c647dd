//! The elements below the root of an XML file, and theirs.

use super::group::{Group, Parted};

/// Splits a text; `None` if its tags are not balanced.
pub fn parted(text: &str) -> Option<Parted> {
    let (mut parted, mut depth, mut rest) = (Parted::default(), 0_usize, text);
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        let tag = &from[..end(from)?];
        rest = &from[tag.len()..];
        sink(&mut parted, depth).push_str(before);
        let is_markup = tag.starts_with("<!") || tag.starts_with("<?");
        let name = tag[1..].split(|c: char| c.is_whitespace() || "/>".contains(c));
        let name = name.into_iter().next().unwrap_or_default();
        match (depth, tag.starts_with("</")) {
            _ if is_markup => sink(&mut parted, depth).push_str(tag),
            (0, true) => return None,
            (1, true) => {
                parted.tail = format!("{tag}{rest}");
                return Some(parted);
            }
            (2, true) => parted.groups.last_mut()?.close.push_str(tag),
            (1, false) => parted.groups.push(Group::new(name, tag)),
            (2, false) => {
                let pieces = &mut parted.groups.last_mut()?.pieces;
                pieces.push((name.to_owned(), tag.to_owned()));
            }
            _ => sink(&mut parted, depth).push_str(tag),
        }
        if tag.starts_with("</") {
            depth -= 1;
        } else if !is_markup && !tag.ends_with("/>") {
            depth += 1;
        }
    }
    text.trim().is_empty().then(Parted::default)
}

/// The text that takes what stands at this depth.
fn sink(parted: &mut Parted, depth: usize) -> &mut String {
    let Some(group) = parted.groups.last_mut() else {
        return &mut parted.head;
    };
    match (depth, group.pieces.last_mut()) {
        (0 | 1, _) => &mut group.close,
        (_, Some((_, piece))) => piece,
        (_, None) => &mut group.open,
    }
}

/// The length of the tag, comment or the like that a text begins with.
fn end(text: &str) -> Option<usize> {
    let until = |mark: &str| text.find(mark).map(|at| at + mark.len());
    for (start, mark) in [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")] {
        if text.starts_with(start) {
            return until(mark);
        }
    }
    let mut quote = None;
    let found = text.char_indices().find(|(_, c)| match quote {
        None if matches!(c, '"' | '\'') => {
            quote = Some(*c);
            false
        }
        Some(open) if open == *c => {
            quote = None;
            false
        }
        _ => quote.is_none() && *c == '>',
    });
    found.map(|(at, _)| at + 1)
}
