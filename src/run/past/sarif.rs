//! A run as a log in SARIF 2.1.0, for tools that show findings beside the code. Pure.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::record::finding::Finding;
use crate::record::result::{RunRecord, WarningRecord};
use chrono::SecondsFormat;

/// The characters of a path that its URI has escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');

/// A result of a run: something to look at, in a place.
struct Reported<'r> {
    /// What has found it.
    rule: &'r str,
    level: &'static str,
    message: &'r str,
    file: Option<&'r str>,
    line: Option<usize>,
}

impl<'r> From<&'r Finding> for Reported<'r> {
    fn from(finding: &'r Finding) -> Self {
        Self {
            rule: &finding.tool,
            level: "error",
            message: &finding.message,
            file: finding.file.as_deref(),
            line: finding.line,
        }
    }
}

impl<'r> From<&'r WarningRecord> for Reported<'r> {
    fn from(warning: &'r WarningRecord) -> Self {
        Self {
            rule: &warning.code,
            level: "warning",
            message: &warning.message,
            file: warning.path.as_deref(),
            line: warning.line,
        }
    }
}

/// Returns the log of a run: what its last build has found, and the warnings about its change.
pub fn log(record: &RunRecord) -> Value {
    let mut built = record.steps.iter().rev();
    let built = built.find(|step| step.build.is_some());
    let findings = built.iter().flat_map(|step| &step.findings);
    let warnings = record.warning_details.iter().map(Reported::from);
    let reported: Vec<Reported<'_>> = findings.map(Reported::from).chain(warnings).collect();
    let mut rules: Vec<&str> = Vec::new();
    let results = reported.iter().map(|one| {
        let known = rules.iter().position(|rule| *rule == one.rule);
        let index = known.unwrap_or_else(|| {
            rules.push(one.rule);
            rules.len() - 1
        });
        let mut result = json!({
            "ruleId": one.rule, "ruleIndex": index, "level": one.level,
            "message": {"text": one.message},
        });
        if let Some(file) = one.file {
            result["locations"] = json!([{"physicalLocation": location(file, one.line)}]);
        }
        result
    });
    let results: Vec<Value> = results.collect();
    let coded = |text: &&String| {
        record
            .warning_details
            .iter()
            .any(|one| one.message == **text)
    };
    let others = record.warnings.iter().filter(|text| !coded(text));
    let notified = others.map(|text| ("warning", text));
    let notified = notified.chain(record.error.iter().map(|error| ("error", &error.message)));
    let notified = notified.map(|(level, text)| json!({"level": level, "message": {"text": text}}));
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "code-commit",
                "semanticVersion": record.version,
                "rules": rules.iter().map(|rule| json!({"id": rule})).collect::<Vec<_>>(),
            }},
            "invocations": [{
                "executionSuccessful": record.exit.code == 0,
                "exitCode": record.exit.code,
                "exitCodeDescription": record.exit.name,
                "startTimeUtc": record.started.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true),
                "toolExecutionNotifications": notified.collect::<Vec<_>>(),
            }],
            "results": results,
        }],
    })
}

fn location(file: &str, line: Option<usize>) -> Value {
    let path = utf8_percent_encode(file, ESCAPED);
    let mut location = if file.starts_with('/') {
        json!({"artifactLocation": {"uri": format!("file://{path}")}})
    } else {
        json!({"artifactLocation": {"uri": path.to_string(), "uriBaseId": "%SRCROOT%"}})
    };
    if let Some(line) = line {
        location["region"] = json!({"startLine": line});
    }
    location
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::step::{BuildRecord, Step};
    use crate::sys::exit::Exit;

    fn finding(file: &str, line: Option<usize>) -> Finding {
        Finding {
            file: Some(file.to_owned()),
            line,
            tool: "rustc".to_owned(),
            message: "no".to_owned(),
        }
    }

    #[test]
    fn the_last_build_and_the_warnings_are_results() {
        let step = |findings| {
            let build = json!({"code": 1, "signal": null, "seconds": 1});
            Step {
                build: serde_json::from_value::<BuildRecord>(build).ok(),
                findings,
                ..Step::default()
            }
        };
        let mut record = RunRecord::new("commit", Exit::BuildFailed, chrono::DateTime::default());
        let last = vec![finding("src/a b.rs", Some(3)), finding("/usr/x.h", None)];
        record.steps = vec![
            step(vec![finding("gone.rs", None)]),
            step(last),
            Step::default(),
        ];
        record.warning_details.push(WarningRecord {
            code: "test-skipped".into(),
            path: Some("t.py".to_owned()),
            line: None,
            message: "skips a test".to_owned(),
        });
        record.warnings = vec!["skips a test".to_owned(), "other".to_owned()];
        let log = log(&record);
        let run = &log["runs"][0];
        let told = |result: &Value| {
            let place = &result["locations"][0]["physicalLocation"];
            let parts = [
                &result["ruleId"],
                &result["ruleIndex"],
                &result["level"],
                &place["artifactLocation"]["uri"],
                &place["region"]["startLine"],
            ];
            parts.map(ToString::to_string).join(" ")
        };
        let results = run["results"].as_array().unwrap();
        assert_eq!(
            results.iter().map(told).collect::<Vec<_>>(),
            [
                r#""rustc" 0 "error" "src/a%20b.rs" 3"#,
                r#""rustc" 0 "error" "file:///usr/x.h" null"#,
                r#""test-skipped" 1 "warning" "t.py" null"#,
            ]
        );
        assert_eq!(
            run["tool"]["driver"]["rules"],
            json!([{"id": "rustc"}, {"id": "test-skipped"}])
        );
        let notified = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(
            notified,
            &json!([{"level": "warning", "message": {"text": "other"}}])
        );
    }
}
