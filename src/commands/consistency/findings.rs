//! Findings of a report as data: a second call lists them, and the locations that they claim are verified.
//!
//! Guarantees that a finding has a location only if its file is in the code base that was sent and contains the line
//! that it quotes.

use std::ffi::OsStr;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::protocol::object;
use crate::agent::schema;
use crate::commands::error::CommandError;
use crate::model::prompt::{CONSISTENCY_FINDINGS, Prompt};
use crate::model::{StepId, estimate, tokens};
use crate::project::rollup::RollupFile;
use crate::record::finding::{ReportFinding, Severity};
use crate::run::active::Run;
use crate::run::parts::{SPECIFICATION, rolled};
use crate::run::ready::Ready;
use crate::sys::error::Error;
use crate::sys::text::{cut, one_line};

/// Maximum number of findings.
const MOST: u32 = 200;
/// Maximum lengths of a title and of other texts, in characters.
const LONGEST_TITLE: usize = 200;
const LONGEST: usize = 4_000;
/// Maximum number of times that the query is repeated after an unreadable reply.
const REASKS: u16 = 1;

/// The findings as claimed by the model; what does not apply is empty or 0.
#[derive(Deserialize)]
struct Claims {
    findings: Vec<ReportFinding>,
}

/// Asks for the findings of this report on these files.
///
/// # Errors
/// Fails if a call fails, or no reply can be read.
pub fn ask(
    run: &mut Run<'_>,
    ready: &Ready<'_>,
    report: &str,
    files: &[RollupFile<'_>],
) -> Result<Vec<ReportFinding>, Error> {
    let mut step = StepId::FINDINGS;
    let room = estimate::room(&prompt(report, ""), &ready.models.model(&step).spec) / 5 * 4;
    let named = named(report, files, room);
    let mut fault: Option<String> = None;
    loop {
        let mut prompt = prompt(report, &named);
        if let Some(fault) = &fault {
            prompt = prompt.after_rejection(fault);
        }
        let read = |text: &str| read(text, files);
        let (_, found) = run.ask(&ready.models, &step, prompt, |reply| read(&reply.text))?;
        let wrong = match found {
            Ok(found) => return Ok(found),
            Err(wrong) => wrong,
        };
        run.note(|step| step.rejected = Some(wrong.clone()));
        run.log_step()?;
        let error = CommandError::NoFindings(wrong.clone());
        if step.reask == REASKS {
            return Err(error.into());
        }
        run.warn(format!("{error}; the model is asked again"));
        step = step.again();
        fault = Some(wrong);
    }
}

fn prompt<'p>(report: &'p str, files: &'p str) -> Prompt<'p> {
    let sections = [("report", report.into()), ("codebase", files.into())];
    let mut prompt = Prompt::of_sections(CONSISTENCY_FINDINGS, sections);
    prompt.form.schema = Some(form());
    prompt
}

/// Returns the schema of the reply.
fn form() -> Value {
    let text = json!({"type": "string"});
    let levels = Severity::ALL.map(<&str>::from);
    json!({"type": "object", "required": ["findings"], "additionalProperties": false, "properties": {
        "findings": {"type": "array", "maxItems": MOST, "items": {
            "type": "object", "additionalProperties": false,
            "required": ["file", "line", "quote", "severity", "title", "message"],
            "properties": {"file": text, "line": {"type": "integer", "minimum": 0}, "quote": text,
                "severity": {"type": "string", "enum": levels}, "title": text, "message": text}}}}})
}

/// Returns the files that the report names, by path or by name, and the specification, as far as they fit into `room`.
fn named(report: &str, files: &[RollupFile<'_>], room: u64) -> String {
    let is_named = |file: &&RollupFile<'_>| {
        let name = Path::new(file.path).file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| name == SPECIFICATION || report.contains(name))
    };
    let mut named: Vec<_> = files.iter().filter(is_named).collect();
    named.sort_by_key(|file| !report.contains(file.path));
    let (mut text, mut left) = (String::new(), room);
    for file in named {
        let file = rolled(file.path, file.content);
        if let Some(rest) = left.checked_sub(tokens::count(&file)) {
            left = rest;
            text += &file;
        }
    }
    text
}

/// Parses a reply; the error describes what is wrong with it.
fn read(reply: &str, files: &[RollupFile<'_>]) -> Result<Vec<ReportFinding>, String> {
    let object = object::read(reply).map_err(|fault| fault.to_string())?;
    let claims: Claims = schema::read(&Value::Object(object), &form())?;
    let findings = claims.findings.into_iter().enumerate().map(|(at, claim)| {
        if claim.title.trim().is_empty() || claim.message.trim().is_empty() {
            return Err(format!("`findings[{at}]` has no title or no message"));
        }
        Ok(verified(claim, files))
    });
    findings.collect()
}

/// Keeps the file of a claim only if it exists and has the quoted line, and the line only if one matches, or the claimed
/// one does.
fn verified(claim: ReportFinding, files: &[RollupFile<'_>]) -> ReportFinding {
    let quote = claim.quote.trim();
    let mut files = files.iter();
    let file = files.find(|file| claim.file.as_deref() == Some(file.path));
    let lines = file
        .into_iter()
        .flat_map(|file| (1..).zip(file.content.lines()));
    let is_quoted = |(_, line): &(usize, &str)| !quote.is_empty() && line.trim() == quote;
    let quoted: Vec<usize> = lines.filter(is_quoted).map(|(number, _)| number).collect();
    let is_there = file.is_some() && (quote.is_empty() || !quoted.is_empty());
    ReportFinding {
        line: match quoted[..] {
            [line] => Some(line),
            _ => claim.line.filter(|line| quoted.contains(line)),
        },
        file: claim.file.filter(|_| is_there),
        quote: cut(&claim.quote, LONGEST).into_owned(),
        title: one_line(&claim.title, LONGEST_TITLE),
        message: cut(claim.message.trim(), LONGEST).into_owned(),
        severity: claim.severity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::rollup;

    const ROLLUP: &str = "\
--- UserSpecification.md ---
+ It prints x.
--- src/main.rs ---
fn main() {
    print(1);
    print(1);
    end();
}
--- src/large.rs ---
fn large() {}
--- docs/other.md ---
x
";

    fn files() -> Vec<RollupFile<'static>> {
        rollup::sections(ROLLUP, Path::new("/nowhere"))
    }

    #[test]
    fn a_finding_has_the_location_of_the_line_it_quotes_if_any() {
        for (file, line, quote, expected) in [
            (
                "src/main.rs",
                0,
                "    end();",
                (Some("src/main.rs"), Some(4)),
            ),
            ("src/main.rs", 1, "end();\n", (Some("src/main.rs"), Some(4))),
            (
                "src/main.rs",
                3,
                "print(1);",
                (Some("src/main.rs"), Some(3)),
            ),
            ("src/main.rs", 9, "print(1);", (Some("src/main.rs"), None)),
            ("src/main.rs", 4, "", (Some("src/main.rs"), None)),
            ("src/main.rs", 4, "end()", (None, None)),
            ("src/main.rs", 2, "print(1);\n    print(1);", (None, None)),
            ("src/main.rs", 1, "fn large() {}", (None, None)),
            ("./src/main.rs", 4, "end();", (None, None)),
            ("../etc/passwd", 1, "x", (None, None)),
            ("", 0, "", (None, None)),
        ] {
            let reply = json!({"findings": [{"file": file, "line": line, "quote": quote, "severity": "note",
                "title": "t", "message": "m"}]});
            let found = read(&reply.to_string(), &files()).unwrap();
            assert_eq!(
                (found[0].file.as_deref(), found[0].line),
                expected,
                "{file} {quote}"
            );
        }
    }

    #[test]
    fn a_reply_of_another_form_is_a_fault() {
        let one = json!({"file": "", "line": 0, "quote": "", "severity": "error", "title": "t", "message": "m"});
        let with = |name: &str, value: Value| {
            let mut other = one.clone();
            other[name] = value;
            json!({"findings": [other]}).to_string()
        };
        for (reply, expected) in [
            ("Nothing is wrong.".to_owned(), "does not begin with `{`"),
            ("{}".to_owned(), "needs `findings`"),
            (
                with("severity", json!("fatal")),
                "must be one of error, warning, note",
            ),
            (with("line", json!(null)), "must be a JSON integer"),
            (with("line", json!(-1)), "must be 0 or more"),
            (
                with("message", json!(" ")),
                "`findings[0]` has no title or no message",
            ),
            (with("place", json!("x")), "takes no `place`"),
        ] {
            let fault = read(&reply, &files()).unwrap_err();
            assert!(fault.contains(expected), "{reply}: {fault}");
        }
        assert_eq!(
            read("```json\n{\"findings\": []}\n```", &files()),
            Ok(Vec::new())
        );
    }

    #[test]
    fn the_files_that_the_report_names_are_sent_as_far_as_there_is_room() {
        let report = "In src/main.rs, large.rs is not called.";
        let named = |room| super::named(report, &files(), room);
        let paths = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with("--- "));
            lines
                .map(|line| line.trim_matches(['-', ' ']).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            paths(&named(u64::MAX)),
            ["src/main.rs", "UserSpecification.md", "src/large.rs"]
        );
        let sent = files()
            .into_iter()
            .filter(|file| file.path != "docs/other.md");
        let all: u64 = sent
            .map(|file| tokens::count(&rolled(file.path, file.content)))
            .sum();
        assert_eq!(
            paths(&named(all - 1)),
            ["src/main.rs", "UserSpecification.md"]
        );
        assert_eq!(named(0), "");
    }
}
