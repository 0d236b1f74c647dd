//! Finds the five sections of a consistency report. Pure.

use regex::Regex;

use crate::record::SectionRecord;

/// The sections that the prompt asks for.
pub const TITLES: [&str; 5] = [
    "User Specification Self Consistency",
    "Implementation Consistency with User Specification",
    "Errors and Mistakes within the User Specification",
    "Errors and Mistakes within the Implementation",
    "Suggestions and Other Important Commentary",
];

/// How surely a line is a heading; the surest lines count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sureness {
    /// The title alone, perhaps with a number or a bullet: an entry of a list looks the same.
    Bare,
    /// The title in bold, or underlined.
    Marked,
    /// A Markdown heading.
    Heading,
}

/// The line ranges of all sections, in the order of [`TITLES`]. A section goes up to the next one's
/// heading, or to the end.
pub fn find(report: &str) -> Vec<SectionRecord> {
    let lines: Vec<&str> = report.lines().collect();
    let headings = TITLES.map(|title| heading_line(&lines, title));
    let section = |(title, heading): (&&'static str, &Option<usize>)| {
        let next = heading.and_then(|line| {
            headings
                .iter()
                .flatten()
                .filter(|other| **other > line)
                .min()
                .copied()
        });
        let last = next.map_or(lines.len(), |next| next - 1);
        SectionRecord {
            title,
            first_line: *heading,
            last_line: heading.map(|_| last),
        }
    };
    TITLES.iter().zip(&headings).map(section).collect()
}

/// The line, from 1 on, of the section's heading: of the surest candidates the last, since a table
/// of contents comes first.
fn heading_line(lines: &[&str], title: &str) -> Option<usize> {
    let heading = Heading::of(title)?;
    let candidates = lines.iter().enumerate().filter_map(|(index, line)| {
        Some((
            heading.sureness(line, lines.get(index + 1).copied())?,
            index + 1,
        ))
    });
    candidates.max().map(|(_, line)| line)
}

struct Heading {
    pattern: Regex,
    underline: Regex,
}

impl Heading {
    fn of(title: &str) -> Option<Self> {
        // Words may be joined by hyphens ("Self-Consistency") and separated by any blanks.
        let words = title
            .split(' ')
            .map(regex::escape)
            .collect::<Vec<_>>()
            .join(r"[\s-]+");
        let number = r"(?:section\s+)?(?:(?:\d+|[ivx]+|[a-e])[.):]?\s+)?";
        let pattern = format!(
            r"(?i)^\s*(?<hash>\#{{1,6}}\s*)?(?:[-+*]\s+)?{number}(?<bold>\*\*|__)?{number}{words}:?(?:\*\*|__)?:?\s*\#*\s*$"
        );
        Some(Self {
            pattern: Regex::new(&pattern).ok()?,
            underline: Regex::new(r"^\s*[=~-]{3,}\s*$").ok()?,
        })
    }

    fn sureness(&self, line: &str, next: Option<&str>) -> Option<Sureness> {
        let found = self.pattern.captures(line)?;
        let underlined = next.is_some_and(|next| self.underline.is_match(next));
        Some(if found.name("hash").is_some() {
            Sureness::Heading
        } else if found.name("bold").is_some() || underlined {
            Sureness::Marked
        } else {
            Sureness::Bare
        })
    }
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
        let listed: Vec<&str> = crate::prompt::CONSISTENCY
            .lines()
            .filter_map(|line| line.strip_prefix("+ "))
            .collect();
        assert_eq!(listed, TITLES);
    }

    #[test]
    fn sections_are_found_in_the_forms_that_models_write() {
        let forms: [fn(usize, &str) -> String; 9] = [
            |_, title| title.to_owned(),
            |_, title| format!("# {title}"),
            |n, title| format!("## {n}. {title}"),
            |n, title| format!("{n}) {title}"),
            |_, title| format!("**{title}**"),
            |n, title| format!("**{n}. {title}:**"),
            |_, title| format!("+ {title}"),
            |_, title| title.to_uppercase(),
            |_, title| format!("{title}\n====="),
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
    fn a_missing_section_is_missing_and_a_mention_is_no_heading() {
        let report = "# User Specification Self-Consistency\nAs said in Suggestions and Other Important Commentary below.\n";
        assert_eq!(ranges(report), [Some((1, 2)), None, None, None, None]);
        assert_eq!(ranges(""), [None; 5]);
    }
}
