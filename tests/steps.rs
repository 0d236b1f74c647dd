//! Output about recorded runs: with their steps, without them, and after a kill.

use crate::past::in_order;
use crate::support::TestProject;

const RECORDED: &str = "2026-11-21-20-15-03-dev";
const REPLY: &str = "## Thoughts\nOnly in the reply.\n";
const VERDICT: &str = "Overall: PASS\n";
const BRIEF: &str = r#"{"kind": "step", "number": 1, "model": "m", "seconds": 1.0, "finish": "stop", "usage": null, "edits": null,
    "build": null, "tools": [{"name": "COMMAND", "failed": false}, {"name": "READ_FILE", "failed": true}]}"#;
const BRIEF_AUDIT: &str = r#"{"kind": "audit", "number": 2, "model": "m", "seconds": 1.0, "finish": "stop", "usage": null, "edits": null, "build": null}"#;
const WHOLE: &str = concat!(
    r#"{"kind":"step","number":1,"model":"m","seconds":1.0,"finish":"stop","usage":null,"edits":null,"build":null}"#,
    "\n",
    r#"{"kind":"step","number":1,"model":"m","seconds":1.0,"finish":"stop","usage":null,"edits":null,"build":null,"thoughts":"I look.","tools":[{"name":"COMMAND","failed":false,"id":"1","input":{"command":"ls"},"result":"a.txt","exit_code":0,"seconds":0.1},{"name":"READ_FILE","failed":true,"id":"2","input":{"path":"b"},"result":"no such file"}]}"#,
    "\n",
    r#"{"kind":"audit","number":2,"model":"m","seconds":1.0,"finish":"stop","usage":null,"edits":null,"build":null,"passed":true}"#,
    "\n"
);

/// A project with an agent's run of two steps, with these texts as its record and steps.
fn recorded(record: Option<&str>, steps: Option<&str>) -> TestProject {
    let mut project = TestProject::new();
    let files = [
        ("0001-step.txt", Some("prompt")),
        ("0001-step-response.txt", Some(REPLY)),
        ("0002-audit.txt", Some("prompt")),
        ("0002-audit-response.txt", Some(VERDICT)),
        ("result.json", record),
        ("steps.jsonl", steps),
    ];
    for (name, text) in files {
        if let Some(text) = text {
            project = project.file(&format!("logs/{RECORDED}/{name}"), text);
        }
    }
    project
}

/// Returns the story's steps, and the text of the page.
fn told(project: &TestProject) -> (String, String) {
    let story = project.run(&["log", RECORDED]).exits(0).stdout;
    let from = story.find("\n✗ Step 1").unwrap();
    project.run(&["report", RECORDED]).exits(0);
    let page = project.read(&format!("logs/{RECORDED}/report.html"));
    (story[from..].trim().to_owned(), page)
}

fn record() -> String {
    format!(
        r#"{{"schema": 1, "version": "0.1.0", "workflow": "dev", "exit": {{"code": 0, "name": "done"}}, "model": "m",
        "model_version": null, "started": "2026-11-21T20:15:03+01:00", "seconds": 9.5, "attempts": [{BRIEF}, {BRIEF_AUDIT}],
        "warnings": [], "error": null}}"#
    )
}

#[test]
fn a_run_is_reported_by_its_steps() {
    let whole = "✗ Step 1 (1 of 2 tools failed)\n  m, 1.0 s\n    I look.\n  ✓ COMMAND ls (exit code 0, 100 ms)\n      a.txt\n\
                 \x20 ✗ READ_FILE b (failed)\n      no such file\n\n\
                 ✓ Audit 2 (passed)\n  m, 1.0 s\n  The audit passed the work.\n    Overall: PASS";
    let record = record();
    let torn = format!("{WHOLE}{{\"kind\":\"step\",\"num");
    let damaged = format!("\n{{}}\nnull\n\0\n{WHOLE}");
    for (record, steps) in [
        (Some(record.as_str()), WHOLE),
        (Some(&record), &torn),
        (Some(&record), &damaged),
        (None, WHOLE),
        (None, &torn),
    ] {
        let (story, page) = told(&recorded(record, Some(steps)));
        assert_eq!(story, whole);
        in_order(
            &page,
            &[
                "<h2>Step 1 <span class=\"ended bad\">\u{2717} 1 of 2 tools failed</span></h2>",
                "<h3 class=\"call\">COMMAND ls <span class=\"ended good\">\u{2713} exit code 0, 100\u{a0}ms</span></h3>",
                "Its result",
                "a.txt",
                "<h3 class=\"call\">READ_FILE b <span class=\"ended bad\">\u{2717} failed</span></h3>",
                "no such file",
                "<h2>Audit 2 <span class=\"ended good\">\u{2713} passed</span></h2>",
            ],
        );
        assert!(!page.contains("[result]"), "{page}");
    }
}

#[test]
fn a_run_whose_steps_are_gone_is_reported_by_its_record() {
    let (story, page) = told(&recorded(Some(&record()), None));
    assert_eq!(
        story,
        "✗ Step 1 (1 of 2 tools failed)\n  m, 1.0 s\n  ✓ COMMAND (done)\n  ✗ READ_FILE (failed)\n\n\
         ✓ Audit 2 (passed)\n  m, 1.0 s\n  The audit passed the work.\n    Overall: PASS"
    );
    in_order(
        &page,
        &[
            "1 of 2 tools failed",
            "Only in the reply.",
            "<h3 class=\"call\">COMMAND ",
            "<h3 class=\"call\">READ_FILE ",
            "<h2>Audit 2 <span class=\"ended good\">\u{2713} passed</span></h2>",
            "Overall: PASS",
        ],
    );
}
