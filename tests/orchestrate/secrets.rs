//! Agents that print keys wherever they can: no file of a run contains one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::Answer;
use crate::support::orchestra::{
    AZURE_KEY, Branch, GITHUB_TOKEN, OrchestraProject, branch, calls, execute, finished, published,
    says,
};

const MCP_TOKEN: &str = "mcp-bearer-0123456789abcdef";
const MCP_QUERY: &str = "code=query-0123456789abcdef";
/// A secret that only `.env` contains.
const OTHER: &str = "other-0123456789abcdef";

const SECRETS: [&str; 5] = [
    GITHUB_TOKEN,
    AZURE_KEY,
    MCP_TOKEN,
    "query-0123456789abcdef",
    OTHER,
];

/// All secrets in one text, verbatim and in JSON within JSON.
fn told() -> String {
    let all = SECRETS.join(" ");
    format!("{all}\n{}\n", json!({ "env": all }))
}

/// An orchestration in which every participant prints all that it knows.
fn chatty() -> OrchestraProject {
    let log = format!("VERDICT: CLEAN\n{}", told());
    // On both sides of the position where a long text is cut.
    let long = format!("{}{}", "x".repeat(16_370), told().repeat(1000));
    let replies = [
        calls(&[(
            "execute_agent",
            json!({"agent": "codex", "prompt": told(), told(): told()}),
        )]),
        execute("claude_code", "x"),
        execute("claude_code", &told()),
        calls(&[("read_artifact", json!({"path": "notes.txt"}))]),
        calls(&[("read_artifact", json!({"path": "long.txt"}))]),
        calls(&[("read_artifact", json!({"path": told()}))]),
        calls(&[(
            "execute_agent",
            json!({"agent": GITHUB_TOKEN, "prompt": "x", "parent_branch_id": AZURE_KEY}),
        )]),
        calls(&[(MCP_TOKEN, json!({}))]),
        says(&told()),
        execute("codex", "Review it."),
        calls(&[("read_artifact", json!({"path": "codex_review.log"}))]),
        finished(&told()),
    ];
    let publication = format!("{}{}", told(), published());
    let branches = [
        Branch::failed(&told()),
        Branch::done(&long)
            .with_file("notes.txt", &told())
            .with_file("long.txt", &long),
        Branch::done(&told()).with_file("codex_review.log", &log),
        Branch::done(&publication),
    ];
    let mut orchestra = OrchestraProject::scripted(replies, branches);
    let words = format!("<html><body>{}</body></html>", told());
    let unwell = Answer::new(
        502,
        &[("retry-after-ms", "1"), ("x-token", GITHUB_TOKEN)],
        words,
    );
    orchestra.pantheon.answers("get_branch", 2, unwell);
    let url = format!("{}?{MCP_QUERY}", orchestra.pantheon.url());
    let dotenv =
        format!("GITHUB_TOKEN={GITHUB_TOKEN}\nMCP_BASE_URL='{url}'\nSOME_API_KEY={OTHER}\n");
    orchestra.project = orchestra
        .project
        .variable("MCP_BEARER_TOKEN", MCP_TOKEN)
        .variable("MCP_BASE_URL", "")
        .variable("GITHUB_TOKEN", "")
        .file(".env", dotenv);
    orchestra
}

#[track_caller]
fn has_none(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    for secret in SECRETS {
        // No part of a secret either, as at the position of a cut.
        for part in [secret, &secret[..14], &secret[secret.len() - 14..]] {
            assert!(!text.contains(part), "{part} is in {what}: {text:.3000}");
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, mut found): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    found.extend(folders.iter().flat_map(|folder| files(folder)));
    found
}

#[test]
fn no_key_is_in_anything_that_a_run_leaves_or_sends() {
    for arguments in [
        &["--headless"][..],
        &[],
        &["--output-format", "json"],
        &["--output-format", "jsonl"],
    ] {
        let orchestra = chatty();
        let task = format!("Add a flag. {}", told());
        let arguments = [arguments, &["--task", &task]].concat();
        let output = orchestra.command(&arguments).output().unwrap();
        has_none("stdout", &output.stdout);
        has_none("stderr", &output.stderr);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let project = &orchestra.project;
        project.run(&["report"]).exits(0);
        let folder = project.runs().pop().unwrap();
        assert!(folder.join("report.html").exists());
        for file in files(&folder) {
            has_none(file.to_str().unwrap(), &fs::read(&file).unwrap());
        }
        has_none("the log", project.run(&["log", "last"]).stdout.as_bytes());
        for request in orchestra.azure.requests() {
            has_none("a request to Azure", &request.body);
        }
        let again = project.run(&[
            "orchestrate",
            "--replay",
            folder.file_name().unwrap().to_str().unwrap(),
        ]);
        has_none("the replay", again.exits(0).stdout.as_bytes());
        // The token is only in the publishing prompt.
        let explored = orchestra.pantheon.called("parallel_explore");
        let with_token = explored
            .iter()
            .filter(|sent| sent.to_string().contains(GITHUB_TOKEN));
        assert_eq!(with_token.count(), 1);
        assert!(explored.last().unwrap().to_string().contains(GITHUB_TOKEN));
        assert_eq!(explored.last().unwrap()["parent_branch_id"], branch(3));
    }
}
