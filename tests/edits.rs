//! Replies in the edit format, end to end: `--reply-format edits`.

use std::fs;

use serde_json::json;

use crate::support::{Answer, Finished, GEMINI_KEY, ModelServer, TestProject, gemini};

const LIB: &str = "fn one() {\n    step();\n}\n\nfn two() {\n    step();\n}\n";
const REPLY: &str = "Here it is.\n^^^src/lib.rs\n^^^find\nfn two() {\n    step();\n^^^put\nfn two() {\n    leap();\n\
    ^^^find\nfn one() {\n^^^put\n/// The first.\nfn one() {\n^^^end\n^^^new.rs\nfn new() {}\n^^^end\n\
    ^^^src/main.rs\n^^^delete\n^^^done 3\n";
const CHANGED: &str = "/// The first.\nfn one() {\n    step();\n}\n\nfn two() {\n    leap();\n}\n";

/// A project with a library, which is sent in full.
fn project(server: &ModelServer) -> TestProject {
    with_file(server, "src/lib.rs", LIB)
}

fn with_file(server: &ModelServer, path: &str, content: &str) -> TestProject {
    let rollup = format!("--- src/main.rs ---\nfn main() {{}}\n--- {path} ---\n{content}");
    TestProject::new()
        .with(server)
        .file(path, content)
        .file("agent-config/codeRollup.txt", rollup)
}

fn edits(project: &TestProject, more: &[&str]) -> Finished {
    project.run(&[&["--reply-format", "edits"], more].concat())
}

/// A reply that replaces lines of a file.
fn reply(path: &str, find: &str, put: &str) -> String {
    format!("^^^{path}\n^^^find\n{find}^^^put\n{put}^^^end\n^^^done 1\n")
}

#[test]
fn edits_whole_files_and_removals_are_applied_together_and_reverted() {
    let server = ModelServer::gemini(&[REPLY]);
    let project = project(&server);
    let before = project.tree();
    let run = edits(&project, &[]).exits(0);
    assert_eq!(project.read("src/lib.rs"), CHANGED);
    assert_eq!(project.read("new.rs"), "fn new() {}\n");
    assert!(!project.path("src/main.rs").exists());
    let request = server.requests()[0].json().to_string();
    assert!(request.contains("^^^done 3"), "{request}");
    let result = run.result();
    let attempt = &result["attempts"][0];
    assert_eq!(attempt["reply_format"], "edits");
    assert_eq!(attempt["edits"]["written"], json!(["new.rs", "src/lib.rs"]));
    let log = project.run(&["log", &run.folder]).exits(0).stdout;
    for told in ["Here it is.", "src/lib.rs  | 3 ++-"] {
        assert!(log.contains(told), "{told}\n{log}");
    }
    let diff = project.run(&["diff", &run.folder]).exits(0).stdout;
    assert!(diff.contains("-    step();\n+    leap();\n"), "{diff}");
    project.run(&["report", &run.folder]).exits(0);
    let page = project.read(&format!("logs/{}/report.html", run.folder));
    assert!(page.contains("leap();") && page.contains("^^^done 3"));
    project.run(&["undo"]).exits(0);
    assert_eq!(project.tree(), before);
    // The recorded reply is parsed in its own format, without the flag.
    let replayed = project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(replayed.result()["attempts"][0]["reply_format"], "edits");
    assert_eq!(project.read("src/lib.rs"), CHANGED);
}

#[test]
fn a_models_entry_names_the_format_and_the_flag_overrides_it() {
    for (entry, flag, expected) in [
        (json!({"replyFormat": "edits"}), None, "edits"),
        (json!({"replyFormat": "edits"}), Some("whole"), "whole"),
        (json!({}), None, "whole"),
        (json!({}), Some("edits"), "edits"),
    ] {
        let text = if expected == "edits" {
            REPLY
        } else {
            "^^^a\n^^^end\n"
        };
        let server = ModelServer::gemini(&[text]);
        let models = json!({"models": {"gemini-2.5-pro": entry}});
        let project = project(&server).file("agent-config/models.json", models.to_string());
        let flag = flag.map(|flag| ["--reply-format", flag]);
        project.run(flag.as_ref().map_or(&[], |flag| flag)).exits(0);
        let asked = server.requests()[0].json().to_string();
        assert_eq!(
            asked.contains("^^^find"),
            expected == "edits",
            "{entry} {flag:?}"
        );
    }
    let server = ModelServer::gemini(&[]);
    let wrong = r#"{"models": {"gpt-5": {"replyFormat": "diff"}}}"#;
    let project = project(&server).file("agent-config/models.json", wrong);
    project.run(&[]).exits(3).says(&["unknown variant `diff`"]);
}

#[test]
fn every_fault_is_listed_and_nothing_is_applied() {
    let text = "^^^src/lib.rs\n^^^find\n    step();\n^^^put\n    leap();\n^^^find\nfn three() {\n^^^put\n\
        ^^^find\nfn one() {\n^^^put\nfn one() {\n^^^end\n^^^hidden.rs\n^^^find\nx\n^^^put\ny\n^^^end\n\
        ^^^gone.rs\n^^^find\nx\n^^^put\ny\n^^^end\n^^^build.sh\n^^^find\nx\n^^^put\ny\n^^^end\n\
        ^^^good.rs\nfn good() {}\n^^^end\n^^^done 5\n";
    let server = ModelServer::gemini(&[text]);
    let project = project(&server).file("hidden.rs", "x\n");
    let before = project.tree();
    let run = edits(&project, &[]).exits(5);
    run.says(&[
        "rejected for 6 faults",
        "line 2: `src/lib.rs`: the lines are in the file 2 times, on lines 2, 6",
        "line 6: `src/lib.rs`: there is no line `fn three() {` in the file as it was sent; the nearest is line",
        "line 9: `src/lib.rs`: the `^^^put` is the same as the `^^^find`",
        "line 14: `hidden.rs`: the file was not shown",
        "line 20: `gone.rs`: the file does not exist",
        "line 26: `build.sh`: this file is protected",
        "hint: the reply was not applied",
    ]);
    assert_eq!(project.tree(), before);
}

#[test]
fn no_fault_shows_a_line_that_was_not_sent() {
    let secret = "PASSWORD = hunter2\n";
    let asks = reply("PATH", "PASSWORD = hunter1\n", "x\n");
    let shown = format!("<file path=\"src/lib.rs\">\n{LIB}</file>\n");
    for (rollup, path, why) in [
        // A rollup in another format, which cannot be compared with the disk.
        (shown.as_str(), ".env", "the file was not shown"),
        (
            &format!("--- Cargo.lock ---\n{secret}"),
            "Cargo.lock",
            "this file is protected",
        ),
    ] {
        let server = ModelServer::gemini(&[&asks.replace("PATH", path), REPLY]);
        let project = project(&server)
            .file(path, secret)
            .file("agent-config/codeRollup.txt", rollup);
        let run = edits(&project, &["--allow-stale"]).exits(5);
        let run = run.says(&["rejected for 1 fault", why]);
        assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    }
    // The text in the rollup was sent.
    let server = ModelServer::gemini(&[&reply("src/lib.rs", "fn one() {\n", "fn three() {\n")]);
    let project = project(&server).file("agent-config/codeRollup.txt", shown);
    edits(&project, &["--allow-stale"]).exits(0);
    assert!(project.read("src/lib.rs").starts_with("fn three() {"));
}

#[test]
fn a_reply_that_lacks_its_end_is_incomplete_though_the_model_stopped() {
    let unended = REPLY.replace("^^^done 3\n", "");
    let behind = format!("{REPLY}^^^b\n^^^delete\n");
    for (text, why) in [
        (unended.as_str(), "it does not end with `^^^done N`"),
        (
            &unended.replace("^^^src/main.rs\n^^^delete\n", "^^^done 3"),
            "it says `^^^done 3`, and names 2 files",
        ),
        (&behind, "there is more after its `^^^done`, on line 21"),
        (
            &REPLY[..REPLY.len() / 2],
            "it does not end with `^^^done N`",
        ),
        (
            "I have changed nothing.\n",
            "it does not end with `^^^done N`",
        ),
    ] {
        let server = ModelServer::gemini(&[text, REPLY]);
        let project = project(&server);
        let before = project.tree();
        let run = edits(&project, &["--reask", "1"]).exits(4);
        let run = run.says(&[
            "the model's reply is incomplete: ",
            why,
            "hint: the reply was not applied",
        ]);
        assert_eq!(project.tree(), before);
        assert_eq!(server.requests().len(), 1);
        assert!(
            run.logged("initial-query-response.txt")
                .starts_with("ERROR\n")
        );
        assert_eq!(run.result()["error"]["reason"], "cut-short");
        assert!(run.result()["cost"].as_f64().unwrap() > 0.0);
        // The request is repeated in the recorded format.
        project.run(&["--resume", &run.folder]).exits(0);
        assert_eq!(project.read("src/lib.rs"), CHANGED);
    }
    let nothing = "It is there already.\n^^^done 0\n";
    let server = ModelServer::gemini(&[nothing]);
    edits(&project(&server), &[]).exits(0);
}

#[test]
fn a_whole_reply_may_say_the_number_of_its_files() {
    for (text, code) in [
        ("^^^a\nx\n^^^end\n^^^done 1\n", 0),
        ("^^^a\nx\n^^^end\n^^^done 2\n", 4),
        ("^^^done 2\nx\n^^^end\n", 0),
    ] {
        let server = ModelServer::gemini(&[text]);
        project(&server).run(&[]).exits(code);
    }
}

#[test]
fn a_rejected_reply_is_asked_for_again_with_its_faults() {
    let wrong = reply("src/lib.rs", "    step();\n", "    leap();\n");
    let right = reply(
        "src/lib.rs",
        "fn two() {\n    step();\n",
        "fn two() {\n    leap();\n",
    );
    let server = ModelServer::gemini(&[&wrong, &right]);
    let project = project(&server);
    edits(&project, &["--reask", "1"]).exits(0);
    let told = server.requests()[1].user();
    assert!(
        told.contains("2 times, on lines 2, 6: add lines around them"),
        "{told}"
    );
    assert!(project.read("src/lib.rs").contains("leap();"));
}

#[test]
fn code_that_is_left_out_of_a_put_is_reported_by_its_line() {
    let body: String = (0..8).map(|n| format!("    step({n});\n")).collect();
    let file = format!("fn f() {{\n{body}}}\n{}", "// more\n".repeat(60));
    let cut = reply(
        "src/f.rs",
        &format!("fn f() {{\n{body}"),
        "fn f() {\n    // ... as before\n",
    );
    let fenced = reply("src/f.rs", "fn f() {\n", "```rust\nfn f() {\n```\n");
    for (text, fault, flag) in [
        (
            &cut,
            "line 14: `src/f.rs`: a comment on line 2 of the new text takes the place of",
            "--allow-elision",
        ),
        (
            &fenced,
            "line 5: `src/f.rs`: the text stands between code fences",
            "--allow-form",
        ),
    ] {
        let server = ModelServer::gemini(&[text, text]);
        let project = with_file(&server, "src/f.rs", &file);
        edits(&project, &[])
            .exits(5)
            .says(&["rejected for 1 fault", fault]);
        edits(&project, &[flag]).exits(0);
    }
    // Prose may contain such fences.
    let prose = reply("notes.md", "more\n", "```sh\nmake\n```\n");
    let server = ModelServer::gemini(&[&prose]);
    edits(&with_file(&server, "notes.md", "first\nmore\n"), &[]).exits(0);
}

#[test]
fn line_ends_are_the_files() {
    for (content, find, put, expected) in [
        ("a\r\nb\r\nc\r\n", "b\n", "x\ny\n", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\nb", "b\n", "x\n", "a\nx"),
        ("a\r\nb", "b\n", "x\n", "a\r\nx"),
    ] {
        let server = ModelServer::gemini(&[&reply("src/f", find, put)]);
        let project = with_file(&server, "src/f", content);
        edits(&project, &[]).exits(0);
        assert_eq!(project.read("src/f"), expected);
    }
}

#[test]
fn a_key_that_was_left_out_of_the_prompt_stays_in_the_file() {
    let content = format!("first\nkey = \"{GEMINI_KEY}\"\nlast\n");
    let server = ModelServer::gemini(&[&reply("src/f", "last\n", "changed\n")]);
    let project = with_file(&server, "src/f", &content);
    edits(&project, &["--allow-secrets"]).exits(0);
    assert!(!server.requests()[0].user().contains(GEMINI_KEY));
    assert_eq!(project.read("src/f"), content.replace("last", "changed"));
}

/// A file of 900 lines, with one line replaced.
fn large(line: usize, text: &str) -> String {
    let lines = (1..=900).map(|n| {
        if n == line {
            text.to_owned()
        } else {
            format!("line {n}\n")
        }
    });
    lines.collect()
}

#[test]
fn a_repair_shows_the_files_as_they_are_and_is_located_there() {
    let first = "^^^big\n^^^find\nline 500\n^^^put\nwrong\n^^^end\n^^^small\n1\n^^^end\n^^^gone\n^^^delete\n^^^done 3\n";
    let stale = reply("big", "line 500\n", "x\n");
    let repair = "^^^big\n^^^find\nwrong\n^^^put\nright\n^^^end\n^^^small\n^^^find\nbuilt\n^^^put\n2\n^^^end\n^^^done 2\n";
    let server = ModelServer::gemini(&[first, &stale, repair]);
    let project = with_file(&server, "big", &large(0, ""))
        .file("gone", "")
        .build("grep -q right big || { echo built >> small; exit 1; }");
    let run = edits(&project, &["--reask", "1", "--allow-stale"]).exits(0);
    let asked = server.requests()[1].user();
    let (_, shown) = asked.split_once("[file replacements]\n").unwrap();
    assert!(
        shown.starts_with("--- CHANGED REGIONS big ---\n[lines 468 to 534 of 900]\nline 468\n"),
        "{shown}"
    );
    assert!(shown.contains("line 499\nwrong\nline 501\n"), "{shown}");
    // The build has added a line.
    assert!(
        shown.ends_with(
            "line 534\n--- FILE REMOVED gone ---\n--- FILE REPLACEMENT small ---\n1\nbuilt\n"
        ),
        "{shown}"
    );
    let told = server.requests()[2].user();
    assert!(told.contains("there is no line `line 500`"), "{told}");
    assert_eq!(project.read("big"), large(500, "right\n"));
    assert_eq!(project.read("small"), "1\n2\n");
    let log = project.run(&["log", &run.folder]).exits(0).stdout;
    assert!(log.contains("big"), "{log}");
    project.run(&["undo"]).exits(0);
    assert_eq!(project.read("big"), large(0, ""));
    let replayed = project.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(replayed.result()["attempts"].as_array().unwrap().len(), 3);
    assert_eq!(project.read("small"), "1\n2\n");
}

#[test]
fn a_run_continues_with_its_edits_on_the_disk_or_reverted() {
    for is_undone in [false, true] {
        let first = reply("src/lib.rs", "fn two() {\n", "fn second() {\n");
        let second = reply("src/lib.rs", "fn second() {\n", "fn last() {\n");
        let idle = "Nothing.\n^^^done 0\n";
        let server = ModelServer::gemini(&[&first, idle, idle, idle, &second]);
        let project = project(&server).build("grep -q last src/lib.rs");
        let run = edits(&project, &[]).exits(1);
        if is_undone {
            project.run(&["undo"]).exits(0);
        }
        // The lines changed by the first edits no longer exist.
        let again = project.run(&["--resume", &run.folder]).exits(0);
        assert!(project.read("src/lib.rs").contains("fn last() {\n"));
        let asked = server.requests()[4].user();
        assert!(
            asked.ends_with(&format!(
                "[file replacements]\n--- FILE REPLACEMENT src/lib.rs ---\n{}",
                LIB.replace("two", "second")
            )),
            "{asked}"
        );
        let folder = &again.folder;
        let diff = project.run(&["diff", folder]).exits(0).stdout;
        assert!(diff.contains("+fn last() {\n"), "{diff}");
    }
}

#[test]
fn file_changed_in_the_meantime_is_not_edited() {
    let server_project = TestProject::new();
    let path = server_project.path("src/lib.rs");
    let happens = move || fs::write(path, LIB.replace("step", "mine")).unwrap();
    let server = ModelServer::start([Answer::gemini_after(happens, REPLY)]);
    let rollup = format!("--- src/main.rs ---\nfn main() {{}}\n--- src/lib.rs ---\n{LIB}");
    let project = server_project
        .with(&server)
        .file("src/lib.rs", LIB)
        .file("agent-config/codeRollup.txt", rollup);
    edits(&project, &[])
        .exits(5)
        .says(&["changed while the model was at work: `src/lib.rs`"]);
    assert!(project.read("src/lib.rs").contains("mine"));
}

#[test]
fn a_reply_that_was_cut_is_never_applied() {
    // One project suffices, since none of the replies is applied.
    let cuts: Vec<usize> = (0..REPLY.trim_end().len()).step_by(9).collect();
    let answers = cuts
        .iter()
        .map(|cut| Answer::json(&gemini(&format!("x{}", &REPLY[..*cut]))));
    let server = ModelServer::start(answers);
    let project = project(&server);
    let before = project.tree();
    for cut in cuts {
        let run = edits(&project, &[]);
        assert_eq!((run.code, project.tree() == before), (4, true), "{cut}");
    }
}

#[test]
fn marks_of_a_file_have_carets_of_one_number() {
    for mixed in [
        "^^^^src/lib.rs\n^^^find\nfn one() {\n^^^put\nfn uno() {\n^^^^end\n^^^done 1\n",
        "^^^^^src/lib.rs\n^^^^find\nfn one() {\n^^^^put\nfn uno() {\n^^^^^end\n^^^done 1\n",
    ] {
        let server = ModelServer::gemini(&[mixed]);
        let project = project(&server);
        let before = project.tree();
        edits(&project, &[])
            .exits(5)
            .says(&["line 2: ", "`src/lib.rs`"]);
        assert_eq!(project.tree(), before, "{mixed}");
    }
}

#[test]
fn edits_of_what_a_build_has_formatted_are_reported_by_their_lines() {
    let first = reply("src/lib.rs", "fn one() {\n", "fn uno(){\n");
    // The build has inserted a space before the brace.
    let second = reply("src/lib.rs", "fn uno() {\n", "fn due() {\n");
    let server = ModelServer::gemini(&[&*first, &*second]);
    let project =
        project(&server).build("sed -i 's/(){/() {/' src/lib.rs; ! grep -q uno src/lib.rs");
    let run = edits(&project, &[]).exits(0);
    let log = project.run(&["log", &run.folder]).exits(0).stdout;
    let told = "\n  wrote src/lib.rs\n    -fn uno() {\n    +fn due() {\n";
    assert!(log.contains(told), "{log}");
    assert!(!log.contains("changed no files"), "{log}");
}
