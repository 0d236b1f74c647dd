//! Finds the five sections of a consistency report. Pure.

use regex::Regex;

use crate::record::result::SectionRecord;
use crate::sys::fences::{FenceLine, FenceScanner};
use crate::sys::text;

/// The titles that the prompt requests for the sections.
pub const TITLES: [&str; 5] = [
    "User Specification Self Consistency",
    "Implementation Consistency with User Specification",
    "Errors and Mistakes within the User Specification",
    "Errors and Mistakes within the Implementation",
    "Suggestions and Other Important Commentary",
];

/// Returns the line ranges of all sections, in the order of [`TITLES`]. A section ends before the next heading
/// or at the end of the report.
pub fn find(report: &str) -> Vec<SectionRecord> {
    let lines: Vec<&str> = report.lines().collect();
    let titles = titles(&lines);
    let headings = [0, 1, 2, 3, 4].map(|title| heading_line(&lines, &titles, title));
    let section = |(title, heading): (&&'static str, &Option<usize>)| {
        let later = |line: usize| headings.iter().flatten().filter(move |at| **at > line);
        SectionRecord {
            title: (*title).into(),
            first_line: *heading,
            last_line: heading.map(|line| later(line).min().map_or(lines.len(), |next| next - 1)),
        }
    };
    TITLES.iter().zip(&headings).map(section).collect()
}

/// Returns for each line the index of the title that it matches, if any. Lines in code blocks do not count as
/// headings.
fn titles(lines: &[&str]) -> Vec<Option<usize>> {
    let patterns = TITLES.map(title_pattern);
    let mut scanner = FenceScanner::default();
    let title = |line| {
        let is_text = matches!(scanner.step(line), FenceLine::Outside);
        let mut patterns = patterns.iter();
        patterns.position(|pattern| is_text && pattern.is_match(line))
    };
    lines.iter().copied().map(title).collect()
}

/// Returns the 1-based line of the heading with the title at that index: the first one that is followed by text and not
/// by another title, as in a table of contents.
fn heading_line(lines: &[&str], titles: &[Option<usize>], title: usize) -> Option<usize> {
    let has_text = |at: &usize| lines[*at].chars().any(char::is_alphanumeric);
    let has_content = |at: &usize| {
        let next = (at + 1..lines.len()).find(has_text);
        next.is_some_and(|next| titles[next].is_none())
    };
    let is_title = |at: &usize| titles[*at] == Some(title);
    let mut found = (0..lines.len()).filter(is_title);
    let heading = found.clone().find(has_content).or_else(|| found.next());
    heading.map(|at| at + 1)
}

/// Builds a pattern for a line that consists of the title, with any numbering and decoration.
fn title_pattern(title: &str) -> Regex {
    // Words may be joined by hyphens ("Self-Consistency") and separated by any white space.
    let words = title.replace(' ', r"[\s-]+");
    let number =
        r"(?:\(?(?:[0-9]+|[ivx]+|[a-e]|one|two|three|four|five)(?:\\?[.):]|\s*[-–—:])?[*_]*\s+)?";
    text::regex(&format!(
        r"(?i)^\s*(?:\#{{1,6}}\s*)?(?:[-+*]\s+)?(?:\*{{1,3}}|_{{1,3}})?(?:section\s+)?{number}(?:[-–—]\s*)?[*_]*{words}[:.]?[*_]*[:.]?\s*\#*\s*$"
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
        let nested = "````\n```\n```\n# User Specification Self Consistency\nquoted\n````\n";
        let expected = |first: usize| (0..5).map(|n| first + n * 4).collect::<Vec<_>>();
        for (report, first) in [
            (format!("{list}\n{body}"), 7),
            (format!("{body}Covered were:\n{list}"), 1),
            (format!("{body}{quote}"), 1),
            (format!("{nested}{body}"), 7),
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
