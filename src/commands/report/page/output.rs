//! Renders a build's output on a page: the errors found, then a limited number of lines. Pure.
//!
//! Guarantees that the markup it adds is bounded. Omitted lines are replaced by their number; lines around errors are
//! the last to be omitted.

use maud::{Markup, html};

use super::changes::later;
use super::elements::anchor;
use super::text::HtmlEscaper;
use crate::record::finding::Severity;
use crate::run::past::findings::{self, Diagnostic};
use crate::run::past::words::count;
use crate::sys::numbers::grouped;

/// The number of bytes scanned at the beginning and at the end of an output.
const LOOKED_AT: usize = 1 << 20;
/// The maximum size of the shown lines, in bytes.
const SHOWN: usize = 256 << 10;
/// The approximate markup per line in addition to its text, in bytes.
const LINE_COST: usize = 40;
/// The number of lines shown from the beginning.
const FIRST: usize = 500;
/// The number of lines shown from the end.
const LAST: usize = 1500;
/// The number of lines shown around an error.
const AROUND: usize = 8;
/// The maximum number of errors and warnings listed.
const LISTED: usize = 30;

/// The scanned part of an output.
struct ScannedOutput {
    /// The lines with their 1-based numbers.
    lines: Vec<(usize, String)>,
    findings: Vec<Diagnostic>,
    total: usize,
}

/// Renders an output in the block with this anchor.
pub fn show(escaper: HtmlEscaper<'_>, id: &str, output: &str) -> Markup {
    if output.trim().is_empty() {
        return html! { p.note { "It printed nothing." } };
    }
    let output = ScannedOutput::of(escaper, output);
    let shown = output.shown();
    let prefix = format!("{id}-l");
    let lines = output.markup(&prefix, &shown);
    html! {
        (output.list(&prefix, &shown))
        pre.out tabindex="0" style=[later(lines.len())] { code { @for line in &lines { (line) } } }
    }
}

impl ScannedOutput {
    fn of(escaper: HtmlEscaper<'_>, output: &str) -> Self {
        let (head, middle, tail) = ends(output);
        let mut lines: Vec<(usize, String)> = Vec::new();
        let mut push = |text: &str, before: usize| {
            let numbers = before + 1..;
            for (number, line) in numbers.zip(text.lines()) {
                // A carriage return lets later text overwrite earlier text; show both.
                let parts = line.split('\r');
                for part in parts.filter(|part| !part.is_empty() || line.is_empty()) {
                    lines.push((number, escaper.cut_line(part.as_bytes())));
                }
            }
        };
        let (head_lines, middle_lines) = (head.lines().count(), middle.lines().count());
        push(head, 0);
        push(tail, head_lines + middle_lines);
        let texts: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
        Self {
            findings: findings::find(&texts),
            total: head_lines + middle_lines + tail.lines().count(),
            lines,
        }
    }

    /// Determines which lines are shown.
    fn shown(&self) -> Vec<bool> {
        let count = self.lines.len();
        let around = self.findings.iter().flat_map(|finding| {
            finding.line.saturating_sub(AROUND / 4)..(finding.line + AROUND).min(count)
        });
        let last = (count.saturating_sub(LAST)..count).rev();
        let wanted = around.chain(last).chain(0..FIRST.min(count));
        let mut shown = vec![false; count];
        let mut left = SHOWN;
        for at in wanted {
            let cost = self.lines[at].1.len() + LINE_COST;
            if !shown[at] && cost <= left {
                shown[at] = true;
                left -= cost;
            }
        }
        shown
    }

    /// Renders the list of errors, then warnings.
    fn list(&self, prefix: &str, shown: &[bool]) -> Markup {
        let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
        let (errors, warnings): (Vec<_>, Vec<_>) = self.findings.iter().partition(is_error);
        let counts = [(errors.len(), "error"), (warnings.len(), "warning")].into_iter();
        let found = counts.filter(|(found, _)| *found > 0);
        let title: Vec<String> = found.map(|(found, what)| count(found, what)).collect();
        let listed = errors.iter().chain(&warnings);
        let more = self.findings.len().saturating_sub(LISTED);
        let is_all = self.findings.len() < findings::MOST;
        let at_least = if is_all { "" } else { "at least " };
        html! {
            @if !self.findings.is_empty() {
                div.found {
                    h4 { "Found in the output: " (at_least) (title.join(", ")) }
                    ul {
                        @for finding in listed.take(LISTED) { (self.finding(prefix, finding, shown[finding.line])) }
                        @if more > 0 { li { "and " (grouped(more as u64)) " more" } }
                    }
                }
            }
        }
    }

    fn finding(&self, prefix: &str, finding: &Diagnostic, linked: bool) -> Markup {
        let text = self.lines[finding.line].1.trim();
        html! {
            li class=(class(finding.severity)) {
                span.mark { (finding.severity.mark()) } " "
                @if linked { a href={ "#" (anchor(prefix, finding.line)) } { (text) } }
                @else { (text) }
                @if let Some(place) = &finding.place { " " span.place { (place) } }
            }
        }
    }

    fn markup(&self, prefix: &str, shown: &[bool]) -> Vec<Markup> {
        let width = self.total.max(1).ilog10() as usize + 1;
        let mut findings = self.findings.iter().peekable();
        let mut lines = Vec::new();
        let mut last = 0;
        for (at, (number, text)) in self.lines.iter().enumerate() {
            let finding = findings.next_if(|finding| finding.line == at);
            if !shown[at] {
                continue;
            }
            lines.extend(gap(last, *number, width));
            last = *number;
            let severity = finding.map(|finding| finding.severity);
            let mark = severity.map_or(" ", Severity::mark);
            lines.push(html! {
                span id=[severity.map(|_| anchor(prefix, at))] class=[severity.map(class)]
                    data-n=(format!("{mark} {number:>width$}")) { (text) "\n" }
            });
        }
        lines.extend(gap(last, self.total + 1, width));
        lines
    }
}

/// Renders the marker for omitted lines.
fn gap(last: usize, next: usize, width: usize) -> Option<Markup> {
    let left_out = next.saturating_sub(last + 1);
    let text = format!("\u{2026} {} left out\n", count(left_out, "line"));
    (left_out > 0).then(|| html! { span.at data-n=(" ".repeat(width + 2)) { (text) } })
}

/// Splits a text into its beginning, middle and end, at line ends.
fn ends(output: &str) -> (&str, &str, &str) {
    if output.len() <= 2 * LOOKED_AT {
        return (output, "", "");
    }
    let from = output.floor_char_boundary(LOOKED_AT);
    let to = output.floor_char_boundary(output.len() - LOOKED_AT);
    let head = output[..from].rfind('\n').map_or(from, |end| end + 1);
    let tail = output[to..].find('\n').map_or(to, |end| to + end + 1);
    (&output[..head], &output[head..tail], &output[tail..])
}

/// Returns the CSS class of a severity.
fn class(it: Severity) -> &'static str {
    if it == Severity::Error { "e" } else { "w" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Redactor;

    fn shown(output: &str) -> String {
        show(HtmlEscaper::new(&Redactor::default()), "a1", output).into_string()
    }

    #[test]
    fn errors_are_listed_with_links_to_their_lines() {
        let page = shown("ok\nerror[E0308]: mismatched <types>\n --> a.rs:1:2\nwarning: x\n");
        for part in [
            "Found in the output: 1 error, 1 warning",
            "<a href=\"#a1-l2\">error[E0308]: mismatched &lt;types&gt;</a>",
            "<span class=\"place\">a.rs:1:2</span>",
            "<span id=\"a1-l2\" class=\"e\" data-n=\"\u{2717} 2\">error",
            "<span data-n=\"  1\">ok\n</span>",
            "data-n=\"! 4\">warning",
        ] {
            assert!(page.contains(part), "{part} is missing in {page}");
        }
        assert!(shown(" \n").contains("It printed nothing."));
    }

    #[test]
    fn of_a_long_output_the_ends_and_the_errors_are_shown() {
        let mut lines: Vec<String> = (1..=10_000).map(|n| format!("line {n}")).collect();
        lines[4999] = "error: in the middle".to_owned();
        let page = shown(&lines.join("\n"));
        for part in [
            "line 1\n",
            "line 10000\n",
            "error: in the middle\n",
            "line 5007\n",
            "left out",
        ] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("line 3000\n"));
        let counted = regex::Regex::new(r"\u{2026} ([\d,]+) lines? left out").unwrap();
        let left_out = counted.captures_iter(&page).map(|found| {
            let count = found[1].replace(',', "");
            count.parse::<usize>().unwrap()
        });
        let shown = page.matches("data-n").count();
        let gaps = counted.captures_iter(&page).count();
        assert_eq!(left_out.sum::<usize>() + shown - gaps, 10_000);
    }

    #[test]
    fn however_long_an_output_is_the_page_stays_small() {
        for output in [
            "x".repeat(9 << 20),
            "error: y\n".repeat(1 << 20),
            "\n".repeat(5 << 20),
        ] {
            let page = shown(&output);
            assert!(page.len() < 6 * SHOWN, "{}", page.len());
        }
        assert!(shown("10%\r20%\rdone\r\nx\n").contains("\">20%\n</span>"));
    }
}
