//! Findings as annotations of GitHub Actions: commands to the runner, which shows them next to the code. Pure.
//!
//! Guarantees that no text ends its command or adds a property to it.

use crate::record::finding::{ReportFinding, Severity};
use crate::secret::Redactor;
use crate::sys::text::printable;

/// Maximum number of annotations.
const MOST: usize = 50;

/// Formats findings as CI commands, the most severe first.
pub fn annotations(findings: &[ReportFinding], redactor: &Redactor) -> Vec<String> {
    let mut findings: Vec<_> = findings.iter().collect();
    findings.sort_by_key(|finding| finding.severity);
    findings.truncate(MOST);
    let command = |finding: &ReportFinding| {
        let name = match finding.severity {
            Severity::Note => "notice",
            severity => severity.into_str(),
        };
        let text = |text: &str| escaped(&printable(&redactor.text(text), &['\n', '\r']));
        let property = |of: &str| text(of).replace(':', "%3A").replace(',', "%2C");
        let path = finding.file.as_ref();
        let file = path.map(|path| format!("file={},", property(path)));
        let line = finding.line.map(|line| format!("line={line},"));
        format!(
            "::{name} {}{}title={}::{}",
            file.unwrap_or_default(),
            line.unwrap_or_default(),
            property(&finding.title),
            text(&finding.message)
        )
    };
    findings.into_iter().map(command).collect()
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(severity: Severity) -> ReportFinding {
        ReportFinding {
            file: None,
            line: None,
            quote: String::new(),
            severity,
            title: "t".to_owned(),
            message: "m".to_owned(),
        }
    }

    #[test]
    fn a_finding_is_always_a_single_command() {
        let hostile = ReportFinding {
            file: Some("a,line=1::x\n::error::y".to_owned()),
            line: Some(7),
            title: "50%: a,b\r\n".to_owned(),
            message: "one: two, 3%\n::set-output name=a::b\u{1b}[2J".to_owned(),
            ..finding(Severity::Note)
        };
        assert_eq!(
            annotations(&[hostile, finding(Severity::Error)], &Redactor::default()),
            [
                "::error title=t::m",
                "::notice file=a%2Cline=1%3A%3Ax%0A%3A%3Aerror%3A%3Ay,line=7,title=50%25%3A a%2Cb%0D%0A\
                 ::one: two, 3%25%0A::set-output name=a::b\u{fffd}[2J",
            ]
        );
    }

    #[test]
    fn the_gravest_are_reported_and_no_more_than_are_shown() {
        let mut findings = vec![finding(Severity::Note); 60];
        findings.push(finding(Severity::Warning));
        findings.push(finding(Severity::Error));
        let told = annotations(&findings, &Redactor::default());
        assert_eq!(told.len(), 50);
        assert!(told[0].starts_with("::error ") && told[1].starts_with("::warning "));
    }
}
