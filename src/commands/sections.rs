//! Finds the five sections of a consistency report. Pure.

use std::cmp::Reverse;

use regex::{Captures, Regex};

use crate::record::result::SectionRecord;
use crate::sys::text;

/// The sections that the prompt asks for.
pub const TITLES: [&str; 5] = [
    "User Specification Self Consistency",
    "Implementation Consistency with User Specification",
    "Errors and Mistakes within the User Specification",
    "Errors and Mistakes within the Implementation",
    "Suggestions and Other Important Commentary",
];

/// Evidence that a line is a section's heading; greater is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Evidence {
    /// Text follows, and not just another title, as in a table of contents.
    has_content: bool,
    /// The strength of its markup as a heading: best by Markdown, else in bold, or underlined.
    marked: u8,
}

/// The line ranges of all sections, in the order of [`TITLES`]. A section goes up to the next one's
/// heading, or to the end.
pub fn find(report: &str) -> Vec<SectionRecord> {
    let lines: Vec<&str> = report.lines().collect();
    let titles = candidates(&lines);
    let headings = std::array::from_fn::<_, 5, _>(|title| heading_line(&lines, &titles, title));
    let section = |(title, heading): (&&'static str, &Option<usize>)| {
        let next = |line: usize| {
            headings
                .iter()
                .flatten()
                .filter(move |other| **other > line)
                .min()
        };
        SectionRecord {
            title: (*title).into(),
            first_line: *heading,
            last_line: heading.map(|line| next(line).map_or(lines.len(), |next| next - 1)),
        }
    };
    TITLES.iter().zip(&headings).map(section).collect()
}

/// For each line the title that it consists of, by its index, and how it is marked. Lines of code
/// blocks are quotes, and no headings.
fn candidates(lines: &[&str]) -> Vec<Option<(usize, u8)>> {
    let patterns = TITLES.map(title_pattern);
    let mut in_code = false;
    let candidate = |(index, line): (usize, &&str)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence {
            return None;
        }
        let next = lines.get(index + 1).copied();
        let mut patterns = patterns.iter().enumerate();
        patterns.find_map(|(title, pattern)| Some((title, mark(&pattern.captures(line)?, next))))
    };
    lines.iter().enumerate().map(candidate).collect()
}

fn mark(heading: &Captures<'_>, next: Option<&str>) -> u8 {
    let is_underline = |line: &str| {
        let line = line.trim();
        let of = |mark: char| line.trim_matches(mark).is_empty();
        line.len() >= 3 && (of('=') || of('-') || of('~'))
    };
    if heading.name("hash").is_some() {
        2
    } else {
        u8::from(heading.name("bold").is_some() || next.is_some_and(is_underline))
    }
}

/// The line, from 1 on, of the heading of the title of that index: of the candidates with the best
/// evidence the first.
fn heading_line(lines: &[&str], titles: &[Option<(usize, u8)>], title: usize) -> Option<usize> {
    let has_content = |index: usize| {
        let is_text = |at: &usize| lines[*at].chars().any(char::is_alphanumeric);
        (index + 1..lines.len())
            .find(is_text)
            .is_some_and(|at| titles[at].is_none())
    };
    let evidence = titles.iter().enumerate().filter_map(|(index, found)| {
        let (found, marked) = (*found)?;
        let evidence = Evidence {
            has_content: has_content(index),
            marked,
        };
        (found == title).then_some((evidence, Reverse(index)))
    });
    evidence.max().map(|(_, Reverse(index))| index + 1)
}

/// Matches a line that consists of the title, however it is numbered and decorated.
fn title_pattern(title: &str) -> Regex {
    // Words may be joined by hyphens ("Self-Consistency") and separated by any blanks.
    let words = title.replace(' ', r"[\s-]+");
    let number =
        r"(?:\(?(?:[0-9]+|[ivx]+|[a-e]|one|two|three|four|five)(?:\\?[.):]|\s*[-–—:])?[*_]*\s+)?";
    text::regex(&format!(
        r"(?i)^\s*(?<hash>\#{{1,6}}\s*)?(?:[-+*]\s+)?(?<bold>\*{{1,3}}|_{{1,3}})?(?:section\s+)?{number}(?:[-–—]\s*)?[*_]*{words}[:.]?[*_]*[:.]?\s*\#*\s*$"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(report: &str) -> Vec<Option<(usize, usize)>> {
        find(report)
            .iter()
            .map(|s| s.first_line.zip(s.last_line))
            .collect()
    }

    #[test]
    fn the_titles_are_those_of_the_prompt() {
        let listed: Vec<&str> = crate::model::prompt::CONSISTENCY
            .lines()
            .filter_map(|line| line.strip_prefix("+ "))
            .collect();
        assert_eq!(listed, TITLES);
    }

    #[test]
    fn sections_are_found_in_the_forms_that_models_write() {
        let forms: [fn(usize, &str) -> String; 19] = [
            |_, title| title.to_owned(),
            |_, title| format!("# {title}"),
            |n, title| format!("## {n}. {title}"),
            |n, title| format!("{n}) {title}"),
            |_, title| format!("**{title}**"),
            |n, title| format!("**{n}. {title}:**"),
            |_, title| format!("+ {title}"),
            |_, title| title.to_uppercase(),
            |_, title| format!("{title}\n====="),
            |n, title| format!("**{n}.** {title}"),
            |n, title| format!("({n}) {title}"),
            |n, title| format!("{n} - {title}"),
            |n, title| format!("Section {n} - {title}"),
            |n, title| format!("## Section {n} \u{2014} {title}"),
            |_, title| format!("Section One: {title}"),
            |_, title| format!("*{title}*"),
            |_, title| format!("***{title}***"),
            |_, title| format!("{title}."),
            |n, title| format!("## {n}\\. {title}"),
        ];
        for form in forms {
            let report: String = (1..)
                .zip(TITLES)
                .map(|(n, title)| format!("{}\n\ntext\n\n", form(n, title)))
                .collect();
            let height = report.lines().count() / 5;
            let expected: Vec<_> = (0..5)
                .map(|n| Some((n * height + 1, (n + 1) * height)))
                .collect();
            assert_eq!(ranges(&report), expected, "{report}");
        }
    }

    #[test]
    fn a_table_of_contents_is_not_the_sections() {
        let contents: String = TITLES.iter().map(|title| format!("+ {title}\n")).collect();
        let body: String = TITLES
            .iter()
            .map(|title| format!("{title}\n---\ntext\n"))
            .collect();
        let found = ranges(&format!("{contents}\n{body}"));
        assert_eq!(found[0], Some((7, 9)));
        assert_eq!(found[4], Some((19, 21)));
    }

    #[test]
    fn lists_of_the_titles_and_quotes_are_not_the_sections() {
        let list: String = TITLES
            .iter()
            .map(|title| format!("**{title}**\n"))
            .collect();
        let body: String = TITLES
            .iter()
            .map(|title| format!("{title}\n\ntext\n\n"))
            .collect();
        let quote = "```\n# User Specification Self Consistency\nquoted\n```\n";
        let expected = |first: usize| (0..5).map(|n| first + n * 4).collect::<Vec<_>>();
        for (report, first) in [
            (format!("{list}\n{body}"), 7),
            (format!("{body}Covered were:\n{list}"), 1),
            (format!("{body}{quote}"), 1),
        ] {
            let found: Vec<usize> = find(&report).iter().filter_map(|s| s.first_line).collect();
            assert_eq!(found, expected(first), "{report}");
        }
    }

    #[test]
    fn a_missing_section_is_missing_and_a_mention_is_no_heading() {
        let report = "# User Specification Self-Consistency\nAs said in Suggestions and Other Important Commentary below.\n";
        assert_eq!(ranges(report), [Some((1, 2)), None, None, None, None]);
        assert_eq!(ranges(""), [None; 5]);
    }
}
