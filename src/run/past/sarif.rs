//! A run, or many of them, as a log in SARIF 2.1.0, for tools that show findings beside the code. Pure.

use std::collections::HashMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::record::finding::Finding;
use crate::record::result::{RunRecord, WarningRecord};
use chrono::SecondsFormat;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of results, and of notifications, that a code host takes in a log.
const MOST: usize = 25_000;

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

impl Reported<'_> {
    fn result(&self, rule: usize) -> Value {
        json!({
            "ruleId": self.rule, "ruleIndex": rule, "level": self.level,
            "message": {"text": self.message},
        })
    }
}

/// Returns what the last build of a run has found, and the warnings about its change.
fn reported(record: &RunRecord) -> Vec<Reported<'_>> {
    let mut built = record.steps.iter().rev();
    let built = built.find(|step| step.build.is_some());
    let findings = built.into_iter().flat_map(|step| &step.findings);
    let warnings = record.warning_details.iter().map(Reported::from);
    findings.map(Reported::from).chain(warnings).collect()
}

/// Returns the log of a run.
pub fn log(record: &RunRecord) -> Value {
    let reported = reported(record);
    let mut rules: Vec<&str> = Vec::new();
    let results = reported.iter().map(|one| {
        let known = rules.iter().position(|rule| *rule == one.rule);
        let index = known.unwrap_or_else(|| {
            rules.push(one.rule);
            rules.len() - 1
        });
        let mut result = one.result(index);
        if let Some(file) = one.file {
            result["locations"] =
                json!([{"physicalLocation": location(file, one.line, "%SRCROOT%")}]);
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
    let notified = notified.map(|(level, text)| notification(level, text));
    let invocation = json!({
        "executionSuccessful": record.exit.code == 0,
        "exitCode": record.exit.code,
        "exitCodeDescription": record.exit.name,
        "startTimeUtc": record.started.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true),
        "toolExecutionNotifications": notified.collect::<Vec<_>>(),
    });
    whole(json!({
        "tool": tool(&record.version, rules.into_iter()),
        "invocations": [invocation],
        "results": results,
    }))
}

/// The log of many runs, each in a repository of its own, by the rules of code hosts: every result has a place in a
/// repository and a fingerprint that stays the same when lines move. All else is a notification.
#[derive(Default)]
pub struct FleetLog {
    rules: Vec<String>,
    bases: Map<String, Value>,
    results: Vec<Value>,
    notifications: Vec<Value>,
    left_out: usize,
    has_failures: bool,
}

impl FleetLog {
    /// Adds the run of the task with this id.
    pub fn add(&mut self, id: &str, record: &RunRecord) {
        self.has_failures |= record.exit.code != 0;
        let mut same: HashMap<u64, usize> = HashMap::new();
        for one in reported(record) {
            let place = one.file.filter(|file| !file.starts_with('/'));
            let Some(file) = place else {
                self.notify(id, one.level, one.message);
                continue;
            };
            if self.results.len() == MOST {
                self.left_out += 1;
                continue;
            }
            let text = [id, one.rule, file, one.message].join("\0");
            let hash = xxh3_64(text.as_bytes());
            let number = same.entry(hash).or_default();
            *number += 1;
            let mut result = one.result(self.rule(one.rule));
            result["locations"] = json!([{"physicalLocation": location(file, one.line, id)}]);
            let fingerprint = format!("{hash:016x}:{number}");
            result["partialFingerprints"] = json!({"primaryLocationLineHash": fingerprint});
            self.results.push(result);
            let base =
                || json!({"description": {"text": format!("the repository of the task {id}")}});
            self.bases.entry(id).or_insert_with(base);
        }
        if let Some(error) = &record.error {
            self.notify(id, "error", &error.message);
        }
    }

    fn rule(&mut self, name: &str) -> usize {
        let known = self.rules.iter().position(|rule| rule == name);
        known.unwrap_or_else(|| {
            self.rules.push(name.to_owned());
            self.rules.len() - 1
        })
    }

    fn notify(&mut self, id: &str, level: &str, message: &str) {
        if self.notifications.len() == MOST {
            self.left_out += 1;
            return;
        }
        let text = format!("{id}: {message}");
        self.notifications.push(notification(level, &text));
    }

    /// Returns the log.
    pub fn finish(mut self) -> Value {
        if self.left_out > 0 {
            let text = format!("{} more are left out", self.left_out);
            self.notifications.push(notification("warning", &text));
        }
        let mut run = json!({
            "tool": tool(env!("CARGO_PKG_VERSION"), self.rules.iter().map(String::as_str)),
            "invocations": [{"executionSuccessful": !self.has_failures}],
        });
        // They are moved: `json!` would copy them.
        run["invocations"][0]["toolExecutionNotifications"] = self.notifications.into();
        run["originalUriBaseIds"] = self.bases.into();
        run["results"] = self.results.into();
        whole(run)
    }
}

fn whole(run: Value) -> Value {
    let mut log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
    });
    log["runs"] = Value::Array(vec![run]);
    log
}

fn tool<'r>(version: &str, rules: impl Iterator<Item = &'r str>) -> Value {
    let rules: Vec<Value> = rules.map(|rule| json!({"id": rule})).collect();
    json!({"driver": {"name": "code-commit", "semanticVersion": version, "rules": rules}})
}

fn notification(level: &str, text: &str) -> Value {
    json!({"level": level, "message": {"text": text}})
}

fn location(file: &str, line: Option<usize>, base: &str) -> Value {
    let path = utf8_percent_encode(file, ESCAPED);
    let mut location = if file.starts_with('/') {
        json!({"artifactLocation": {"uri": format!("file://{path}")}})
    } else {
        json!({"artifactLocation": {"uri": path.to_string(), "uriBaseId": base}})
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

    #[test]
    fn of_many_runs_each_result_has_a_place_and_a_fingerprint_that_stays_when_lines_move() {
        let fingerprints = |line| {
            let mut record =
                RunRecord::new("commit", Exit::BuildFailed, chrono::DateTime::default());
            let build = json!({"code": 1, "signal": null, "seconds": 1});
            let mut nowhere = finding("", None);
            nowhere.file = None;
            record.steps = vec![Step {
                build: serde_json::from_value(build).ok(),
                findings: vec![
                    finding("a.rs", Some(line)),
                    finding("a.rs", Some(line + 1)),
                    finding("/usr/x.h", Some(1)),
                    nowhere,
                ],
                ..Step::default()
            }];
            let mut log = FleetLog::default();
            log.add("web", &record);
            log.add("api", &record);
            let log = log.finish();
            let run = &log["runs"][0];
            let notified = run["invocations"][0]["toolExecutionNotifications"].as_array();
            assert_eq!(notified.unwrap().len(), 4);
            let bases = run["originalUriBaseIds"].as_object().unwrap();
            assert_eq!(bases.keys().collect::<Vec<_>>(), ["web", "api"]);
            let results = run["results"].as_array().unwrap();
            let told = results.iter().map(|one| {
                let place = &one["locations"][0]["physicalLocation"]["artifactLocation"];
                assert_eq!(place["uri"], "a.rs");
                one["partialFingerprints"]["primaryLocationLineHash"].to_string()
            });
            told.collect::<Vec<_>>()
        };
        let found = fingerprints(3);
        assert_eq!(found, fingerprints(40));
        let distinct: std::collections::BTreeSet<_> = found.iter().collect();
        assert_eq!((found.len(), distinct.len()), (4, 4));
    }

    #[test]
    fn of_many_runs_no_more_is_told_than_a_code_host_takes() {
        let mut record = RunRecord::new("commit", Exit::Done, chrono::DateTime::default());
        record.warning_details = vec![
            WarningRecord {
                code: "test-skipped".into(),
                path: Some("t.py".to_owned()),
                line: None,
                message: "skips a test".to_owned(),
            };
            MOST + 7
        ];
        let mut log = FleetLog::default();
        log.add("a", &record);
        let run = &log.finish()["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), MOST);
        let notified = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(notified[0]["message"]["text"], "7 more are left out");
    }
}
