//! A SARIF 2.1.0 log of a run, or of many, for tools that show findings next to the code. Pure, except for
//! [`verify_places`].

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Component, Path};

use chrono::SecondsFormat;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::exec::build_script::BUILD_SCRIPT;
use crate::record::finding::{Finding, ReportFinding};
use crate::record::gate::GateFault;
use crate::record::result::{RunRecord, WarningRecord};

/// Maximum number of results, and of notifications, that a code host accepts in a log.
const MOST: usize = 25_000;

/// The characters of a path that are escaped in its URI.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~');

/// The fingerprint by which code hosts recognize a result.
const FINGERPRINT: &str = "primaryLocationLineHash";

/// Removes the location of each build finding that is not in a file of the tree at `root`, and names the file in the
/// message instead. If that tree is gone, any path that could be in it is accepted.
pub fn verify_places(record: &mut RunRecord, root: &Path) {
    let is_place = |file: &str| {
        let mut names = Path::new(file).components();
        let is_inside = names.all(|name| matches!(name, Component::Normal(_)));
        is_inside && !file.is_empty() && (!root.is_dir() || root.join(file).is_file())
    };
    for finding in record.steps.iter_mut().flat_map(|step| &mut step.findings) {
        if let Some(file) = finding.file.take_if(|file| !is_place(file)) {
            finding.message = format!("{file}: {}", finding.message);
            finding.line = None;
        }
    }
}

/// A result of a run: something to review, and its location.
struct Reported<'r> {
    /// The tool or the kind of warning that reported it.
    rule: &'r str,
    level: &'static str,
    message: Cow<'r, str>,
    file: Option<&'r str>,
    line: Option<usize>,
    /// The text that identifies it in its file, even if its wording or its line changes.
    identity: &'r str,
}

impl<'r> Reported<'r> {
    /// Creates a result that is identified by its message.
    fn new(
        rule: &'r str,
        level: &'static str,
        message: &'r str,
        (file, line): (Option<&'r str>, Option<usize>),
    ) -> Self {
        Self {
            rule,
            level,
            message: message.into(),
            file,
            line,
            identity: message,
        }
    }

    fn of_finding(finding: &'r Finding) -> Self {
        let place = (finding.file.as_deref(), finding.line);
        Self::new(&finding.tool, "error", &finding.message, place)
    }

    fn of_warning(warning: &'r WarningRecord) -> Self {
        let place = (warning.path.as_deref(), warning.line);
        Self::new(&warning.code, "warning", &warning.message, place)
    }

    fn of_report_finding(finding: &'r ReportFinding) -> Self {
        let quote =
            Some(finding.quote.trim()).filter(|quote| finding.file.is_some() && !quote.is_empty());
        let (level, identity) = (finding.severity.into_str(), quote.unwrap_or(&finding.title));
        let place = (finding.file.as_deref(), finding.line);
        Self {
            message: format!("{}: {}", finding.title, finding.message).into(),
            ..Self::new("consistency", level, identity, place)
        }
    }
}

/// Returns each fault in the verdict on the gate, once for every changed file of the gate.
fn judged(record: &RunRecord) -> impl Iterator<Item = Reported<'_>> {
    let faults = record.gate.iter().flat_map(|gate| {
        let faults = gate.faults().into_iter().map(GateFault::name_and_message);
        faults.flat_map(|fault| gate.files.iter().map(move |file| (fault, file)))
    });
    faults.map(|([rule, message], file)| {
        let ends_run = rule == record.exit.name;
        let level = if ends_run { "error" } else { "warning" };
        Reported::new(rule, level, message, (Some(file), None))
    })
}

/// Returns the last build of a run, if it failed, located at its script.
fn failed_build(record: &RunRecord) -> Option<Reported<'_>> {
    let mut builds = record.steps.iter().filter_map(|step| step.build.as_ref());
    let failed = builds.next_back().filter(|build| !build.passed())?;
    Some(Reported {
        message: format!("`{BUILD_SCRIPT}` has failed: {failed}").into(),
        ..Reported::new("build-failed", "error", "", (Some(BUILD_SCRIPT), None))
    })
}

/// Returns the findings of a run's last build, the warnings about its change, the verdict on the gate, and a report's
/// findings.
fn reported(record: &RunRecord) -> impl Iterator<Item = Reported<'_>> {
    let built = record.steps.iter().rev().find(|step| step.build.is_some());
    let findings = built.into_iter().flat_map(|step| &step.findings);
    let warnings = record.warning_details.iter().map(Reported::of_warning);
    let of_report = record.findings.iter().flatten();
    let findings = findings.map(Reported::of_finding).chain(warnings);
    let findings = findings.chain(judged(record));
    findings.chain(of_report.map(Reported::of_report_finding))
}

/// The results and notifications of one run or many, by the rules of code hosts: every result has a location in a
/// repository and a fingerprint that stays the same when lines move. Everything else is a notification.
#[derive(Default)]
struct Log {
    rules: Vec<String>,
    /// The results as JSON text, which takes a tenth of the memory of parsed values.
    results: Vec<Box<RawValue>>,
    notifications: Vec<Box<RawValue>>,
    left_out: usize,
    /// The number of results so far by the hash of their identity; it tells results with the same hash apart.
    same: HashMap<u64, usize>,
}

impl Log {
    /// Adds a result. Paths are relative to the base of this name, which is part of the result's identity. Returns
    /// whether it has a location.
    fn add(&mut self, base: &str, one: &Reported<'_>) -> bool {
        // A code host rejects a whole log because of a result without a location.
        let Some(file) = one.file.filter(|file| !file.starts_with('/')) else {
            return false;
        };
        let known = self.rules.iter().position(|rule| rule == one.rule);
        let rule = known.unwrap_or_else(|| {
            self.rules.push(one.rule.to_owned());
            self.rules.len() - 1
        });
        // The line is left out, since edits move it.
        let text = [base, one.rule, file, one.identity].join("\0");
        let hash = xxh3_64(text.as_bytes());
        let number = self.same.entry(hash).or_default();
        *number += 1;
        let result = json!({
            "ruleId": one.rule, "ruleIndex": rule, "level": one.level,
            "message": {"text": one.message},
            "partialFingerprints": {FINGERPRINT: format!("{hash:016x}:{number}")},
            "locations": [{"physicalLocation": location(file, one.line, base)}],
        });
        self.left_out += push(&mut self.results, &result);
        true
    }

    fn notify(&mut self, level: &str, message: &str) {
        let notification = json!({"level": level, "message": {"text": message}});
        self.left_out += push(&mut self.notifications, &notification);
    }

    /// Returns the document, by the version of the program that made the runs.
    fn finish(mut self, version: &str, outcome: Value, bases: Map<String, Value>) -> Document {
        if self.left_out > 0 {
            if self.notifications.len() == MOST {
                self.notifications.pop();
                self.left_out += 1;
            }
            self.notify("warning", &format!("{} more are left out", self.left_out));
        }
        let rules = self.rules.iter().map(|rule| json!({"id": rule}));
        let rules: Vec<Value> = rules.collect();
        Document {
            schema: "https://json.schemastore.org/sarif-2.1.0.json",
            version: "2.1.0",
            runs: [SarifRun {
                tool: json!({"driver": {"name": env!("CARGO_PKG_NAME"), "semanticVersion": version, "rules": rules}}),
                invocations: [Invocation {
                    outcome,
                    tool_execution_notifications: self.notifications,
                }],
                original_uri_base_ids: bases,
                results: self.results,
            }],
        }
    }
}

/// Returns the log of a run.
pub fn log(record: &RunRecord) -> Value {
    let mut log = Log::default();
    let coded = || record.warning_details.iter().map(|one| &one.message);
    for text in &record.warnings {
        if !coded().any(|coded| coded == text) {
            log.notify("warning", text);
        }
    }
    if let Some(error) = &record.error {
        log.notify("error", &error.message);
    }
    for one in reported(record).chain(failed_build(record)) {
        if !log.add("%SRCROOT%", &one) {
            log.notify(one.level, &one.message);
        }
    }
    let outcome = json!({
        "executionSuccessful": record.exit.code == 0,
        "exitCode": record.exit.code,
        "exitCodeDescription": record.exit.name,
        "startTimeUtc": record.started.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true),
    });
    json!(log.finish(&record.version, outcome, Map::new()))
}

/// The log of many runs, each in its own repository.
#[derive(Default)]
pub struct MergedLog {
    log: Log,
    bases: Map<String, Value>,
    has_failures: bool,
}

impl MergedLog {
    /// Adds the run of the task with this id.
    pub fn add(&mut self, id: &str, record: &RunRecord) {
        self.has_failures |= record.exit.code != 0;
        for one in reported(record) {
            if self.log.add(id, &one) {
                let base =
                    || json!({"description": {"text": format!("the repository of the task {id}")}});
                self.bases.entry(id).or_insert_with(base);
            } else {
                self.log
                    .notify(one.level, &format!("{id}: {}", one.message));
            }
        }
        if let Some(error) = &record.error {
            self.log
                .notify("error", &format!("{id}: {}", error.message));
        }
    }

    /// Returns the log as JSON.
    pub fn finish(self) -> String {
        let outcome = json!({"executionSuccessful": !self.has_failures});
        let log = self
            .log
            .finish(env!("CARGO_PKG_VERSION"), outcome, self.bases);
        // All keys are strings and all numbers are finite, so the conversion succeeds.
        serde_json::to_string(&log).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct Document {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: [SarifRun; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRun {
    tool: Value,
    invocations: [Invocation; 1],
    #[serde(skip_serializing_if = "Map::is_empty")]
    original_uri_base_ids: Map<String, Value>,
    results: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    #[serde(flatten)]
    outcome: Value,
    tool_execution_notifications: Vec<Box<RawValue>>,
}

/// Appends a text unless there are enough already; returns the number of texts left out.
fn push(texts: &mut Vec<Box<RawValue>>, value: &Value) -> usize {
    let text = to_raw_value(value).ok().filter(|_| texts.len() < MOST);
    let left_out = usize::from(text.is_none());
    texts.extend(text);
    left_out
}

fn location(file: &str, line: Option<usize>, base: &str) -> Value {
    let path = utf8_percent_encode(file, ESCAPED);
    let mut location = json!({"artifactLocation": {"uri": path.to_string(), "uriBaseId": base}});
    if let Some(line) = line {
        location["region"] = json!({"startLine": line});
    }
    location
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::gate::{GateRecord, NewTests, OldGate};
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
        record.gate = Some(GateRecord {
            files: vec!["t.py".to_owned(), "ci.yml".to_owned()],
            old_gate: OldGate::Failed,
            new_tests: NewTests::NotDiscriminating,
            ..GateRecord::default()
        });
        verify_places(&mut record, Path::new("/no/such/tree"));
        let reported = log(&record);
        let results = reported["runs"][0]["results"].as_array().unwrap().iter();
        let levels: Vec<&Value> = results.map(|result| &result["level"]).collect();
        assert_eq!(levels[2..6], ["warning"; 4]);
        record.exit.name = "gate-weakened".into();
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
                r#""test-skipped" 1 "warning" "t.py" null"#,
                r#""gate-weakened" 2 "error" "t.py" null"#,
                r#""gate-weakened" 2 "error" "ci.yml" null"#,
                r#""not-proven" 3 "warning" "t.py" null"#,
                r#""not-proven" 3 "warning" "ci.yml" null"#,
                r#""build-failed" 4 "error" "build.sh" null"#,
            ]
        );
        assert_eq!(
            run["tool"]["driver"]["rules"],
            json!([{"id": "rustc"}, {"id": "test-skipped"}, {"id": "gate-weakened"}, {"id": "not-proven"}, {"id": "build-failed"}])
        );
        let notified = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(
            notified,
            &json!([
                {"level": "warning", "message": {"text": "other"}},
                {"level": "error", "message": {"text": "/usr/x.h: no"}},
            ])
        );
    }

    #[test]
    fn a_place_is_a_file_of_the_tree_as_far_as_that_is_there() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("a.c"), "").unwrap();
        let gone = tree.path().join("gone");
        let absolute = tree.path().join("a.c").display().to_string();
        for (file, is_place, was_place) in [
            ("a.c", true, true),
            ("nope.c", false, true),
            ("../a.c", false, false),
            ("x/../a.c", false, false),
            (&*absolute, false, false),
            ("", false, false),
        ] {
            for (root, expected) in [(tree.path(), is_place), (&*gone, was_place)] {
                let mut record =
                    RunRecord::new("commit", Exit::BuildFailed, chrono::DateTime::default());
                record.steps = vec![Step {
                    findings: vec![finding(file, Some(1))],
                    ..Step::default()
                }];
                verify_places(&mut record, root);
                let found = &record.steps[0].findings[0];
                let prefix = if expected { "" } else { &format!("{file}: ") };
                let told = (found.file.is_some(), found.message.clone());
                assert_eq!(told, (expected, format!("{prefix}no")));
                assert_eq!(found.line.is_some(), expected);
            }
        }
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
            let mut log = MergedLog::default();
            log.add("web", &record);
            log.add("api", &record);
            let log: Value = serde_json::from_str(&log.finish()).unwrap();
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
    fn a_sarif_log_is_limited_to_what_code_hosts_accept() {
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
        let mut log = MergedLog::default();
        log.add("a", &record);
        let log: Value = serde_json::from_str(&log.finish()).unwrap();
        let run = &log["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), MOST);
        let notified = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(notified[0]["message"]["text"], "7 more are left out");
    }

    #[test]
    fn a_fingerprint_is_the_same_on_another_line_and_of_nothing_else() {
        let mut record = RunRecord::new("commit", Exit::BuildFailed, chrono::DateTime::default());
        let mut fingerprints = |findings| {
            record.steps = vec![Step {
                build: serde_json::from_value(json!({"code": 1, "signal": null, "seconds": 1}))
                    .ok(),
                findings,
                ..Step::default()
            }];
            let log = log(&record);
            let results = log["runs"][0]["results"].as_array().unwrap().clone();
            let fingerprint = |one: &Value| one["partialFingerprints"][FINGERPRINT].to_string();
            results.iter().map(fingerprint).collect::<Vec<_>>()
        };
        let before = fingerprints(vec![
            finding("a", Some(1)),
            finding("a", Some(2)),
            finding("b", None),
        ]);
        let after = fingerprints(vec![
            finding("a", Some(3)),
            finding("a", Some(9)),
            finding("b", Some(1)),
        ]);
        assert_eq!(before, after);
        let all: std::collections::BTreeSet<_> = before.iter().collect();
        assert_eq!(all.len(), 4);
    }
}
