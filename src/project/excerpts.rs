//! The passages of a long text that are most relevant to a query's terms. Pure, and linear in the text's size.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::ranking::terms;
use crate::sys::text::line_end;

/// Number of lines of the longest passage.
const LONGEST: usize = 24;
/// Number of lines shown around a passage.
const AROUND: usize = 3;

/// Finds the passages of `text` that best match terms with these weights, and includes surrounding lines. Returns
/// non-adjacent ranges of lines, counted from 0, in order; [`numbered`] shows them in at most `limit` tokens by
/// `measure`. The terms are those of [`terms`].
pub fn excerpts(
    text: &str,
    weights: &HashMap<String, f64>,
    measure: &dyn Fn(&str) -> u64,
    limit: u64,
) -> Vec<Range<usize>> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut chosen = BTreeSet::new();
    let mut left = limit;
    for passage in by_score(&lines, weights) {
        let wide = passage.start.saturating_sub(AROUND)..lines.len().min(passage.end + AROUND);
        let new: Vec<usize> = wide.filter(|line| !chosen.contains(line)).collect();
        let added = ranges(new.iter().copied());
        let cost = measure(&shown(&lines, &added));
        if let Some(rest) = left.checked_sub(cost) {
            left = rest;
            chosen.extend(new);
        }
    }
    ranges(chosen)
}

/// Formats the ranges of `text`: each line follows its number, counted from 1, and a tab; a line `…` stands for lines
/// that are left out.
pub fn numbered(text: &str, ranges: &[Range<usize>]) -> String {
    shown(&text.split_inclusive('\n').collect::<Vec<_>>(), ranges)
}

fn shown(lines: &[&str], ranges: &[Range<usize>]) -> String {
    let (mut shown, mut end) = (String::new(), 0);
    for range in ranges {
        if range.start > end {
            shown.push_str("…\n");
        }
        end = range.end.min(lines.len());
        for (number, line) in (range.start + 1..).zip(&lines[range.start.min(end)..end]) {
            shown.push_str(&format!("{number}\t{line}{}", line_end(line)));
        }
    }
    if end < lines.len() {
        shown.push_str("…\n");
    }
    shown
}

/// Joins sorted line numbers into ranges.
pub(crate) fn ranges(lines: impl IntoIterator<Item = usize>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some(last) if last.end == line => last.end += 1,
            _ => ranges.push(line..line + 1),
        }
    }
    ranges
}

/// Returns the passages that contain any of the terms, best first. The more passages contain a term, the less it
/// counts.
fn by_score(lines: &[&str], weights: &HashMap<String, f64>) -> Vec<Range<usize>> {
    let passages = passages(lines);
    let found: Vec<BTreeMap<Cow<'_, str>, f64>> = passages
        .iter()
        .map(|passage| {
            let mut counts = BTreeMap::new();
            let terms = lines[passage.clone()].iter().flat_map(|line| terms(line));
            for term in terms.filter(|term| weights.contains_key(&**term)) {
                *counts.entry(term).or_default() += 1.0;
            }
            counts
        })
        .collect();
    let mut spread: HashMap<&str, f64> = HashMap::new();
    for term in found.iter().flat_map(BTreeMap::keys) {
        *spread.entry(term).or_default() += 1.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "passages are few")]
    let all = passages.len() as f64;
    let score = |counts: &BTreeMap<Cow<'_, str>, f64>| -> f64 {
        let of_term = |(term, count): (&Cow<'_, str>, &f64)| {
            let rarity = (1.0 + all / spread[&**term]).ln();
            weights[&**term] * rarity * count / (count + 1.0)
        };
        counts.iter().map(of_term).sum()
    };
    let mut scored: Vec<(f64, Range<usize>)> = found.iter().map(score).zip(passages).collect();
    scored.retain(|(score, _)| *score > 0.0);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, passage)| passage).collect()
}

/// Divides lines into passages, at blank lines before unindented lines, and after every [`LONGEST`] lines.
fn passages(lines: &[&str]) -> Vec<Range<usize>> {
    let (mut passages, mut start) = (Vec::new(), 0);
    for end in 1..=lines.len() {
        let is_end = lines.get(end).is_none_or(|next| {
            let is_flush = next.starts_with(|c: char| !c.is_whitespace());
            is_flush && lines[end - 1].trim().is_empty()
        });
        if is_end || end - start == LONGEST {
            passages.push(start..end);
            start = end;
        }
    }
    passages
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "one range of lines is what is expected"
)]
mod tests {
    use super::*;

    fn weights(terms: &[(&str, f64)]) -> HashMap<String, f64> {
        let weights = terms.iter();
        weights
            .map(|(term, weight)| ((*term).to_owned(), *weight))
            .collect()
    }

    /// Counts lines.
    fn measure(text: &str) -> u64 {
        text.lines().count() as u64
    }

    #[test]
    fn the_best_passages_come_with_their_neighbourhood() {
        let mut lines = vec!["x".to_owned(); 200];
        lines[60] = "fn parse_reply()".to_owned();
        lines[150] = "parse".to_owned();
        let text = lines.join("\n");
        let weights = weights(&[("parse", 1.0), ("reply", 2.0), ("gone", 9.0)]);
        let found = |limit| excerpts(&text, &weights, &measure, limit);
        assert_eq!(found(10), Vec::<Range<usize>>::new());
        assert_eq!(found(40), [45..75]);
        assert_eq!(found(80), [45..75, 141..171]);
        assert_eq!(
            excerpts(&text, &HashMap::new(), &measure, 80),
            Vec::<Range<usize>>::new()
        );
        assert_eq!(
            excerpts("", &weights, &measure, 80),
            Vec::<Range<usize>>::new()
        );
    }

    #[test]
    fn excerpts_are_shown_with_the_numbers_of_their_lines() {
        for (text, ranges, expected) in [
            ("a\nb\nc\nd", &[0..1, 3..4][..], "1\ta\n…\n4\td\n"),
            ("a\nb\r\nc\n", &[1..2], "…\n2\tb\r\n…\n"),
            ("a\n", &[], "…\n"),
            ("a\n", &[0..7], "1\ta\n"),
            ("", &[], ""),
        ] {
            assert_eq!(numbered(text, ranges), expected, "{text:?}");
        }
    }
}
