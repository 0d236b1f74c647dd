//! Locates the replacements of a reply in the files as they were sent, and computes the files' new texts. Pure.
//!
//! Guarantees that a replacement is made only if its lines occur exactly once, as whole lines and byte for byte except
//! for line endings; nothing is guessed. All replacements of a file are located in the same text.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use std::{mem, slice};

use memchr::memmem;
use unicode_normalization::UnicodeNormalization as _;

use super::parse::{ParsedReply, parse_as};
use super::{EditKind, FaultKind, Replacement, ReplyFault, Unlocated};
use crate::model::ReplyFormat;
use crate::sys::numbers::grouped;
use crate::sys::text::{BYTE_ORDER_MARK, cut, ends_lines_with_crlf, escaped, line_of, with_crlf};

/// Maximum number of occurrences counted.
const COUNTED: usize = 100;
/// Maximum number of occurrences named by their lines.
const NAMED: usize = 10;
/// Maximum number of faults per reply that name the nearest matching line.
const EXPLAINED: usize = 3;
/// Maximum number of edit distances computed for a fault.
const DISTANCES: usize = 3000;
/// Maximum number of bytes of a line that are compared and shown.
const LONGEST: usize = 200;

/// The text of a file as it was sent to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The whole text.
    Text(String),
    /// The text, and the ranges of its lines that were shown, counted from 0.
    Excerpts(String, Vec<Range<usize>>),
    /// The file exists, but was not shown.
    NotShown,
    /// The file does not exist.
    Missing,
}

impl Sent {
    /// Creates the text of a file that was shown as a whole; one that is not UTF-8 was not sent.
    pub fn of(content: Option<&[u8]>) -> Self {
        let text = content.and_then(|content| String::from_utf8(content.to_vec()).ok());
        text.map_or(Self::Missing, Self::Text)
    }
}

/// Parses a reply in this format, and computes the new text of each file with replacements from the text that `sent`
/// returns for its path.
pub fn read(reply: &str, format: ReplyFormat, sent: &dyn Fn(&str) -> Sent) -> ParsedReply {
    let mut parsed = parse_as(reply, format);
    let explained = &mut 0;
    let all_lines = 0..usize::MAX;
    for mut edit in mem::take(&mut parsed.edits) {
        if !edit.parts.is_empty() {
            let replaced = match sent(&edit.path) {
                Sent::Text(text) => {
                    replaced(&text, slice::from_ref(&all_lines), &edit.parts, explained)
                }
                Sent::Excerpts(text, lines) => replaced(&text, &lines, &edit.parts, explained),
                Sent::NotShown => Err(vec![(edit.line, Unlocated::NotShown)]),
                Sent::Missing => Err(vec![(edit.line, Unlocated::NoFile)]),
            };
            match replaced {
                Ok(text) => edit.kind = EditKind::Write(text),
                Err(why) => {
                    parsed.faults.extend(why.into_iter().map(|(line, why)| {
                        let path = edit.path.clone();
                        let kind = FaultKind::Unlocated { path, why };
                        ReplyFault { line, kind }
                    }));
                    parsed.unlocated.push(edit);
                    continue;
                }
            }
        }
        parsed.edits.push(edit);
    }
    parsed
}

/// The lines of a text that are replaced.
struct Place<'p> {
    range: Range<usize>,
    put: &'p str,
    /// The line of the `^^^find`.
    line: usize,
}

/// Returns the text with all replacements made, or the faults, each with its line of the reply. Only lines that were
/// shown are replaced. `explained` counts the faults explained.
fn replaced(
    text: &str,
    shown: &[Range<usize>],
    parts: &[Replacement],
    explained: &mut usize,
) -> Result<String, Vec<(usize, Unlocated)>> {
    let has_crlf = ends_lines_with_crlf(text) == Some(true);
    let ends = |lines| {
        if has_crlf {
            with_crlf(lines).into()
        } else {
            Cow::Borrowed(lines)
        }
    };
    let parts: Vec<_> = parts
        .iter()
        .map(|part| (part.line, ends(&part.find), ends(&part.put)))
        .collect();
    let (mut places, mut faults) = (Vec::new(), Vec::new());
    for (line, find, put) in &parts {
        match located(text, find, put) {
            Ok(Some((range, put))) => {
                let first = line_of(text.as_bytes(), range.start);
                let mut all = first - 1..first - 1 + lines(&text[range.clone()]).count();
                if all.all(|line| is_shown(shown, line)) {
                    let line = *line;
                    places.push(Place { range, put, line });
                } else {
                    faults.push((*line, Unlocated::LinesNotShown(first)));
                }
            }
            Ok(None) => faults.push((*line, not_there(text, shown, find, explained))),
            Err(why) => faults.push((*line, why)),
        }
    }
    places.sort_by_key(|place| (place.range.start, place.line));
    for (one, next) in places.iter().zip(places.iter().skip(1)) {
        if one.range.end > next.range.start {
            let line = line_of(text.as_bytes(), next.range.start);
            let other = one.line;
            faults.push((next.line, Unlocated::Overlapping { other, line }));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut new = String::with_capacity(text.len());
    let mut done = 0;
    for place in &places {
        new.push_str(&text[done..place.range.start]);
        new.push_str(place.put);
        done = place.range.end;
    }
    new.push_str(&text[done..]);
    Ok(new)
}

/// Returns whether a line, counted from 0, was shown.
fn is_shown(shown: &[Range<usize>], line: usize) -> bool {
    shown.iter().any(|shown| shown.contains(&line))
}

/// Returns the only range of these lines in the text, and the new lines; `None` if the text does not contain them.
fn located<'p>(
    text: &str,
    find: &str,
    put: &'p str,
) -> Result<Option<(Range<usize>, &'p str)>, Unlocated> {
    if find.is_empty() {
        return Err(Unlocated::Empty);
    }
    if find == put {
        return Err(Unlocated::Same);
    }
    match (starts(text, find).as_slice(), bare_end(text, find)) {
        ([], None) => Ok(None),
        ([start], None) => Ok(Some((*start..start + find.len(), put))),
        ([], Some((start, end))) => {
            let bare = put.strip_suffix(end).or(put.strip_suffix('\n'));
            Ok(Some((start..text.len(), bare.unwrap_or(put))))
        }
        (starts, last) => {
            let count = starts.len() + usize::from(last.is_some());
            let starts = starts.iter().copied().chain(last.map(|(start, _)| start));
            let line = |start| grouped(line_of(text.as_bytes(), start) as u64);
            let mut lines: Vec<String> = starts.take(NAMED).map(line).collect();
            if count > NAMED {
                lines.push("…".to_owned());
            }
            let more = if count > COUNTED { "more than " } else { "" };
            Err(Unlocated::Repeated {
                count: format!("{more}{}", count.min(COUNTED)),
                lines: lines.join(", "),
            })
        }
    }
}

/// Returns the offsets of these lines in the text, as whole lines with their line endings; at most `COUNTED` + 1.
fn starts(text: &str, find: &str) -> Vec<usize> {
    let mut starts = Vec::from_iter(text.starts_with(find).then_some(0));
    let lines = format!("\n{find}");
    let finder = memmem::Finder::new(&lines);
    let mut from = 0;
    // Occurrences may overlap each other.
    while starts.len() <= COUNTED
        && let Some(at) = finder.find(&text.as_bytes()[from..])
    {
        from += at + 1;
        starts.push(from);
    }
    starts
}

/// Returns the offset of these lines if they are the last ones of a text without a final line ending, and the line
/// ending that they have in addition.
fn bare_end<'f>(text: &str, find: &'f str) -> Option<(usize, &'f str)> {
    if text.ends_with('\n') {
        return None;
    }
    ["\n", "\r\n"].into_iter().find_map(|end| {
        let bare = find.strip_suffix(end).filter(|bare| !bare.is_empty())?;
        let before = text.strip_suffix(bare)?;
        let is_line = before.is_empty() || before.ends_with('\n');
        is_line.then(|| (before.len(), &find[bare.len()..]))
    })
}

/// Describes why the text does not contain these lines; only the first few faults name the nearest line that was shown.
fn not_there(text: &str, shown: &[Range<usize>], find: &str, explained: &mut usize) -> Unlocated {
    if *explained == EXPLAINED {
        return Unlocated::NotInARow;
    }
    *explained += 1;
    let mut missing: HashSet<&str> = lines(find).collect();
    for line in lines(text) {
        missing.remove(line);
    }
    let Some(sought) = lines(find).find(|line| missing.contains(line)) else {
        return Unlocated::NotInARow;
    };
    // Lines that look alike are near, however short they are. The time is bounded.
    let alike = (1..).zip(lines(text)).filter(|(number, line)| {
        is_shown(shown, number - 1)
            && sought.len().max(line.len()) <= LONGEST
            && !difference(sought, line).is_empty()
    });
    let nearest = alike
        .min_by_key(|(_, line)| line.len().abs_diff(sought.len()))
        .or_else(|| nearest(text, shown, sought));
    Unlocated::NoLine {
        sought: shown_line(sought),
        nearest: nearest.map(|(line, text)| (line, shown_line(text), difference(sought, text))),
    }
}

/// Returns the lines of a text, without their line feeds.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}

/// Returns the shown line with the smallest edit distance from `sought`, and its number; `None` if no line has anything
/// in common with it. The time is bounded: after many candidates, the best one so far is returned.
fn nearest<'t>(text: &'t str, shown: &[Range<usize>], sought: &str) -> Option<(usize, &'t str)> {
    let sought = sought.as_bytes()[..sought.len().min(LONGEST)].to_vec();
    let mut counts = [0_i32; 256];
    for byte in &sought {
        counts[usize::from(*byte)] += 1;
    }
    let (mut best, mut least, mut distances) = (None, sought.len(), 0);
    for (number, line) in lines(text).enumerate() {
        let bytes = &line.as_bytes()[..line.len().min(LONGEST)];
        if bytes.len().abs_diff(sought.len()) >= least || !is_shown(shown, number) {
            continue;
        }
        // The number of bytes that only one of the lines has is a lower bound on the distance, and faster to compute.
        let mut counts = counts;
        for byte in bytes {
            counts[usize::from(*byte)] -= 1;
        }
        let more: i32 = counts.iter().filter(|count| **count > 0).sum();
        if usize::try_from(more).is_ok_and(|more| more >= least) {
            continue;
        }
        let distance = strsim::generic_levenshtein(&sought, &bytes.to_vec());
        if distance < least {
            (best, least) = (Some((number + 1, line)), distance);
        }
        distances += 1;
        if distances == DISTANCES {
            break;
        }
    }
    best
}

/// Returns the difference between two lines that look alike.
fn difference(one: &str, other: &str) -> &'static str {
    let (bare, others) = (one.trim_end_matches('\r'), other.trim_end_matches('\r'));
    if bare == others {
        " (another line end)"
    } else if one.trim_start_matches(BYTE_ORDER_MARK) == other.trim_start_matches(BYTE_ORDER_MARK) {
        " (a byte order mark)"
    } else if one.split_whitespace().eq(other.split_whitespace()) {
        " (other blanks)"
    } else if !(one.is_ascii() && other.is_ascii()) && one.nfc().eq(other.nfc()) {
        " (another normal form of Unicode)"
    } else {
        ""
    }
}

/// Returns a line in the form shown in a fault.
fn shown_line(line: &str) -> String {
    escaped(&cut(line.trim_end_matches('\r'), LONGEST))
}

#[cfg(test)]
mod tests;
