//! The building blocks of the traps.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};

use super::{RECORDS, RUN, SECRET, Scene};
use crate::support::{GEMINI_KEY, gemini, write_program};

pub fn odd_names(scene: &Scene) {
    let long = "n".repeat(255);
    for name in [
        "-rf",
        "--output=x",
        "a\nb",
        "a\u{1b}[2Jb",
        "a\u{202e}b",
        "::set-output name=x::y",
        "$(touch x)",
        "a b",
        "a'b",
        "^^^end",
        "\u{feff}x",
        "~",
        "con",
        "x:y",
        "*",
        "{",
        "[",
        long.as_str(),
    ] {
        scene.file(&format!("src/{name}"), format!("{name}\n"));
    }
    let bad = scene.path("src").join(OsStr::from_bytes(b"caf\xe9"));
    fs::write(bad, "x").unwrap();
    scene.file(&format!("{}x", "d/".repeat(300)), "deep");
    scene.track(&["src"]);
}

pub fn links(scene: &Scene) {
    for (target, path) in [
        (scene.canary(""), "out"),
        (scene.canary("secret.txt"), "src/link.rs"),
        (scene.canary("secret.txt"), "AGENTS.md"),
        ("loop".to_owned(), "loop"),
        ("..".to_owned(), "up"),
        ("/dev/zero".to_owned(), "src/zero.rs"),
        ("/proc/self/environ".to_owned(), "src/environ.rs"),
        ("../.git".to_owned(), "src/git"),
    ] {
        scene.link(&target, path);
    }
    scene.track(&["out", "src", "AGENTS.md"]);
}

pub fn slow_rules(scene: &Scene) {
    let rule = "**/a*a*a*a*a*a*a*a*b\n*a*a*a*a*a*a*a*a*a*a*a*a*b\n";
    scene.file("sub/.gitignore", rule.repeat(20));
    for nth in 0..20 {
        let name = format!("sub/{}/{}{nth}", "a".repeat(100), "a".repeat(200));
        scene.file(&name, "x");
    }
}

pub fn nested_repository(scene: &Scene) {
    let fsmonitor = format!(
        "[core]\n\tfsmonitor = \"touch '{}'\"\n",
        scene.canary("ran-nested")
    );
    scene.file("sub/.git/HEAD", "ref: refs/heads/main\n");
    scene.file("sub/.git/config", &fsmonitor);
    scene.file("sub/.git/objects/x", "");
    scene.file("sub/.git/refs/x", "");
    scene.file("sub/x", "x");
    scene.file(
        "other/.git",
        format!("gitdir: {}\n", scene.canary("directory")),
    );
}

pub fn git_configuration(scene: &Scene) {
    let touch = |name: &str| format!("touch '{}'", scene.canary(&format!("ran-{name}")));
    scene.file(".gitattributes", "* filter=evil diff=evil\n");
    scene.track(&["src", ".gitattributes"]);
    for hook in [
        "post-index-change",
        "pre-commit",
        "post-checkout",
        "fsmonitor-watchman",
    ] {
        write_program(
            &scene.path(&format!(".git/hooks/{hook}")),
            scene.touching(hook),
        );
    }
    let mut config = fs::read_to_string(scene.path(".git/config")).unwrap();
    config.push_str(&format!(
        "[core]\n\tfsmonitor = \"{}\"\n\tpager = \"{}\"\n\teditor = \"{}\"\n[filter \"evil\"]\n\tclean = \"{}\"\n\tsmudge = \
         \"{}\"\n[diff]\n\texternal = \"{}\"\n[diff \"evil\"]\n\ttextconv = \"{}\"\n\tcommand = \"{}\"\n[alias]\n\tls-files = \
         \"!{}\"\n",
        touch("fsmonitor"), touch("pager"), touch("editor"), touch("clean"), touch("smudge"), touch("external"),
        touch("textconv"), touch("command"), touch("alias"),
    ));
    scene.file(".git/config", config);
    // A file newer than the index must be read through the filter.
    scene.file("src/main.rs", "fn main() { }\n");
}

pub fn bare_repository(scene: &Scene) {
    fs::remove_dir_all(scene.path(".git")).unwrap();
    scene.file("HEAD", "ref: refs/heads/main\n");
    let config = format!(
        "[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch '{}'\"\n",
        scene.canary("ran-bare")
    );
    scene.file("config", config);
    scene.file("objects/x", "");
    scene.file("refs/x", "");
}

pub fn tracked_models(scene: &Scene) {
    let models = json!({"models": {"gemini-2.5-pro": {"baseUrl": "http://127.0.0.1:9/"}}});
    scene.file("agent-config/models.json", models.to_string());
    scene.track(&["agent-config/models.json"]);
}

pub fn keys_in_the_code(scene: &Scene) {
    scene.file(
        "src/key.rs",
        format!("const KEY: &str = \"{GEMINI_KEY}\";\n"),
    );
    scene.file(&format!("src/{GEMINI_KEY}.rs"), "x\n");
    scene.file(
        "agent-config/codeRollup.txt",
        format!("--- src/key.rs ---\n{GEMINI_KEY}\n"),
    );
    scene.track(&["src"]);
}

/// Creates a run in the repository, with these files and a plausible record.
pub fn forged_run(scene: &Scene, files: &[(&str, String)]) {
    for (name, content) in files {
        scene.file(&format!("logs/{RUN}/{name}"), content);
    }
    scene.file(&format!("logs/{RUN}/replaced/1"), SECRET);
    scene.track(&["logs"]);
}

fn result(extra: &Value) -> String {
    let mut result = json!({"schema": 1, "version": "9", "workflow": "commit", "exit": {"code": 0, "name": "done"},
        "tree": "changed", "model": "gemini-2.5-pro", "model_version": null, "started": "2026-01-02T03:04:05+00:00",
        "seconds": 1.0, "cost": 0.1, "stat": null, "attempts": [], "warnings": [], "error": null});
    for (name, value) in extra.as_object().unwrap() {
        result[name] = value.clone();
    }
    result.to_string()
}

/// Records that name files outside, and grant rights.
pub fn forged_changes() -> Vec<(&'static str, String)> {
    let before =
        json!({"kept": 1, "mode": "6777", "owner": [0, 0], "size": SECRET.len(), "hash": 1});
    let change = json!({"before": before, "after": [null, {"size": 23, "hash": 7}]});
    let files = json!({"../outside": change, "/etc/passwd": change, ".git/hooks/pre-commit": change,
        "agent-config/gemini-key.txt": change, "src/../../x": change});
    let changes = json!({"schema": 1, "files": files, "directories": ["..", "/tmp", ".git"]});
    let step =
        json!({"kind": "x/../../../../../secret", "number": 1, "model": "m", "seconds": 1.0});
    let agent = json!({"session": "../../x", "request": "x", "interactive": false, "answers": [],
        "limits": {"max_context_tokens": 0, "max_retries": 0, "max_retries_automated": 0, "max_loops": 65535,
            "command_timeout": 1e15}});
    vec![
        ("changes.json", changes.to_string()),
        ("steps.jsonl", format!("{step}\n")),
        ("agent.json", agent.to_string()),
        ("result.json", result(&json!({"attempts": [step]}))),
        (
            "initial-query-response.json",
            gemini("^^^../outside\nx\n^^^end\n").to_string(),
        ),
        (
            "initial-query-response.txt",
            "^^^../outside\nx\n^^^end\n".to_owned(),
        ),
    ]
}

/// Records with extreme values.
pub fn hostile_texts() -> Vec<(&'static str, String)> {
    let deep = "[".repeat(1 << 20);
    let step = json!({"kind": "initial", "number": 0, "model": "gemini-2.5-pro\u{1b}[2J", "seconds": 1.8e19, "cost": 1e300,
        "usage": {"input_tokens": u64::MAX, "cached_tokens": u64::MAX, "thought_tokens": u64::MAX,
            "output_tokens": u64::MAX},
        "edits": {"written": ["\u{202e}x\n::error::x"], "removed": ["../../x"]},
        "build": {"code": 0, "signal": null, "seconds": 1.8e19}, "tools": [{"name": "\u{1b}]0;x\u{7}", "failed": false}]});
    let repair = json!({"kind": "repair", "number": 65535, "model": "x", "seconds": 1.8e19, "cost": 1e300, "usage": step["usage"]});
    let stat = json!({"files": u64::MAX, "added": u64::MAX, "removed": u64::MAX});
    let record = result(
        &json!({"started": "+262142-12-31T23:59:59+23:59", "seconds": 1.8e19, "cost": 1e300, "stat": stat,
        "attempts": [step, repair], "warnings": ["\u{1b}[2J::error::x"], "workflow": "<script>",
        "exit": {"code": 255, "name": "\u{1b}[2J"}}),
    );
    vec![
        ("steps.jsonl", format!("{step}\n{repair}\n{deep}\n")),
        ("changes.json", deep.clone()),
        ("agent.json", deep.clone()),
        ("conversation.json", deep.clone()),
        ("result.json", record),
        ("initial-query-response.json", deep),
        ("initial-query-response.txt", "^".repeat(1 << 20)),
        ("initial-build.txt", "\u{1b}[2J".repeat(1 << 16)),
    ]
}

pub fn run_of_links(scene: &Scene) {
    for file in RECORDS {
        scene.link(&scene.canary("secret.txt"), &format!("logs/{RUN}/{file}"));
    }
    scene.link(
        &scene.canary("report.html"),
        &format!("logs/{RUN}/report.html"),
    );
    scene.link(&scene.canary("report.html"), "logs/report.html");
    scene.link(&scene.canary("directory"), &format!("logs/{RUN}/replaced"));
}

pub fn settings_elsewhere(scene: &Scene) {
    fs::rename(
        scene.path("agent-config"),
        scene.outside.path().join("settings"),
    )
    .unwrap();
    scene.link(&scene.canary("settings"), "agent-config");
}

/// Creates a journal that names files outside, and one that is invalid.
pub fn journal(scene: &Scene) {
    let unit = json!({"target": "../outside", "staged": "../.code-commit-1", "change": {"create": {"new": {"size": 0, "hash": 0}}}});
    let journal = json!({"version": 2, "folder": "logs/x", "durable": false, "stamp": [0, 0], "units": [unit],
        "directories": ["../directory"]});
    scene.link(&scene.canary(""), "logs/x");
    scene.file(
        "agent-config/.code-commit-journal-installing",
        journal.to_string(),
    );
    scene.track(&["logs/x"]);
}
