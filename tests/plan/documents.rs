//! The plan's document in a run: users' edits are kept, and unreadable parts are not lost.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::sessions::whole;
use crate::support::Answer;
use crate::support::plan::{
    PlanProject, queries, query, response, said, serving, summary, system, tasks,
};

/// Edits a document with `change`.
fn edit(path: &std::path::Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, change(text)).unwrap();
}

#[test]
fn an_edit_between_two_calls_is_kept_and_reported_to_the_model() {
    for line_end in ["\n", "\r\n"] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("document");
        let named = path.clone();
        let happens = move || {
            let path = fs::read_to_string(&named).unwrap();
            edit(path.as_ref(), |text| {
                let text = text.replace("## Acceptance Criteria\n", "<!-- mine -->\n\n## Risks\n- It rains\n\n## Acceptance Criteria\n- [ ] Mine *(check: test -f a.txt)*\n");
                format!("\u{feff}{}", text.replace('\n', line_end))
            });
        };
        let Answer::Raw(written) = said(&whole()[1]) else {
            unreachable!("an answer of the script is sent as it is")
        };
        let mut answers: Vec<Answer> = whole().iter().map(said).collect();
        answers[1] = Answer::After(Box::new(happens), written);
        let server = serving(answers);
        let plan = PlanProject::new(&server);
        // The document's path is known when the plan is made.
        plan.run(&["--plan-only", "-p", "Make a.txt"]).exits(0);
        let document = plan.sessions().pop().unwrap().join("plan_doc.md");
        fs::write(&path, document.to_str().unwrap()).unwrap();
        plan.run(&["--resume", "--yes", "-p", ""]).exits(0);
        assert!(!system(&server, 1)[2].contains("It rains"));
        let told = &system(&server, 2)[2];
        assert!(told.contains("- It rains"), "{told}");
        let text = plan.document();
        assert!(text.starts_with("\u{feff}---"), "{text}");
        for mine in ["<!-- mine -->", "## Risks", "- It rains"] {
            assert!(
                text.contains(&format!("{line_end}{mine}{line_end}")),
                "{text}"
            );
        }
        assert!(
            text.contains("- [x] Mine *(check: test -f a.txt)*"),
            "{text}"
        );
        assert_eq!(text.matches('\n').count(), text.matches(line_end).count());
        assert!(text.contains("**Status:** completed"), "{text}");
    }
}

#[test]
fn a_document_in_the_project_is_the_sessions() {
    let mut answers = whole();
    answers.extend([
        tasks(&[("More", "analyze")]),
        response("More."),
        summary("More"),
    ]);
    let (plan, server) = PlanProject::scripted(&answers);
    let plan = plan.with_file("docs/.keep", "");
    plan.run(&["--plan-file", "docs/plan.md", "-p", "Make a.txt"])
        .exits(0);
    let path = plan.project.path("docs/plan.md");
    assert!(!plan.sessions()[0].join("plan_doc.md").exists());
    assert_eq!(plan.session()["planFile"], "docs/plan.md");
    assert!(
        plan.project
            .read("docs/plan.md")
            .contains("**Status:** completed")
    );
    let names = fs::read_dir(plan.project.path("docs")).unwrap();
    assert_eq!(names.count(), 2, "nothing is left beside it");
    assert_eq!(
        plan.run(&["show"]).exits(0).stdout,
        plan.project.read("docs/plan.md")
    );
    // The user decides who may read the document.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    plan.run(&["--resume", "--plan-file", "docs/plan.md", "-p", "More"])
        .exits(0);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert!(plan.project.read("docs/plan.md").contains("1. [x] More"));

    let asked = queries(&server);
    plan.run(&["--resume", "--plan-file", "other.md", "-p", "More"])
        .exits(2)
        .says(&["docs/plan.md", "other.md"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
    plan.run(&["--resume", "-p", "More"])
        .exits(3)
        .says(&["docs/plan.md", "hint: "]);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    plan.run(&["--resume", "-p", "More"])
        .exits(3)
        .says(&["docs/plan.md"]);
    fs::remove_dir(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    plan.run(&["--resume", "-p", "More"])
        .exits(3)
        .says(&["docs/plan.md"]);
    assert_eq!(queries(&server), asked);
}

#[test]
fn a_document_is_a_file_of_the_project() {
    let (plan, server) = PlanProject::scripted(&whole());
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path().join("x.md"), plan.project.path("link.md")).unwrap();
    symlink(outside.path(), plan.project.path("linked")).unwrap();
    let absolute = outside.path().join("x.md");
    for path in [
        "../x.md",
        absolute.to_str().unwrap(),
        "src",
        "link.md",
        "linked/x.md",
        "none/x.md",
        ".git/x.md",
        "logs/x.md",
        "agent-config/x.md",
    ] {
        plan.run(&["--plan-file", path, "-p", "x"])
            .exits(2)
            .says(&["is not a file of the project", "hint: "]);
    }
    assert!(plan.sessions().is_empty());
    assert_eq!(queries(&server), 0);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// Documents that are not plans, and the message for each.
fn damaged() -> [(Vec<u8>, &'static str); 5] {
    [
        (b"## Goal\nx\xff\n".to_vec(), "line 2 is not UTF-8"),
        (b"## Goal\n\0\n".to_vec(), "line 2 has a NUL byte"),
        (b"Nothing of a plan.\n".to_vec(), "no heading of a plan"),
        (
            b"---\nstatus: planning\n\n## Goal\n".to_vec(),
            "front matter never ends",
        ),
        (
            [b"## Goal\n", &*vec![b'x'; 1 << 20]].concat(),
            "more than 1 MiB",
        ),
    ]
}

#[test]
fn damaged_document_is_copied_and_repaired_once_by_the_model() {
    for (content, what) in damaged() {
        let made = "# Plan: Make a.txt\n\n## Goal\nMake a.txt\n\n## Acceptance Criteria\n- [ ] a.txt is there\n\n## Tasks\n1. [x] Old\n2. [ ] Write a.txt\n   **Tool:** write_file\n3. [ ] Look\n";
        let mut answers = whole();
        answers.insert(1, format!("```markdown\n{made}```"));
        let (plan, server) = PlanProject::scripted(&answers);
        plan.run(&["--plan-only", "-p", "Make a.txt"]).exits(0);
        let document = plan.sessions().pop().unwrap().join("plan_doc.md");
        fs::write(&document, &content).unwrap();
        let run = plan.run(&["--resume", "-p", ""]).exits(0);
        let run = run.says(&["warning: ", what, "plan_doc.md.damaged"]);
        assert_eq!(
            fs::read(document.with_extension("md.damaged")).unwrap(),
            content
        );
        let asked = query(&server, 1);
        assert_eq!(asked.get("format"), None);
        let told = system(&server, 1).concat();
        assert!(
            told.contains("The previous plan format was invalid: "),
            "{told}"
        );
        assert!(
            told.contains("regenerate the plan following this EXACT format"),
            "{told}"
        );
        assert!(
            plan.document().contains("2. [x] Write a.txt"),
            "{}",
            plan.document()
        );
        assert!(run.files().contains(&"0001-plan-repair.txt".to_owned()));
        assert_eq!(run.result()["attempts"][0]["kind"], "plan-repair");
        assert_eq!(queries(&server), whole().len() + 1);

        // A replay has the same result.
        fs::remove_file(plan.project.path("a.txt")).unwrap();
        plan.run(&["--replay", &run.folder]).exits(0);
        assert!(
            plan.document().contains("2. [x] Write a.txt"),
            "{}",
            plan.document()
        );
        assert_eq!(queries(&server), whole().len() + 1);
    }
}

#[test]
fn unrepairable_plan_is_made_again() {
    let (content, what) = damaged()[2].clone();
    // The format that the model is told has no tasks.
    let obedient = "# Plan: Make a.txt\n\n## Goal\nMake a.txt\n\n## Acceptance Criteria\n- [ ] a.txt is there\n";
    for (reply, by) in [
        ("I cannot.", "an empty plan"),
        (obedient, "what the model made of it"),
    ] {
        let mut answers = whole();
        answers.splice(1..1, [reply.to_owned(), whole()[0].clone()]);
        let (plan, server) = PlanProject::scripted(&answers);
        plan.run(&["--plan-only", "-p", "Make a.txt"]).exits(0);
        let document = plan.sessions().pop().unwrap().join("plan_doc.md");
        for copy in ["plan_doc.md.damaged", "plan_doc.md.damaged-2"] {
            fs::write(document.with_file_name(copy), "an earlier one").unwrap();
        }
        fs::write(&document, &content).unwrap();
        plan.run(&["--resume", "-p", ""])
            .exits(0)
            .says(&["warning: ", what, by]);
        let copy = document.with_file_name("plan_doc.md.damaged-3");
        assert_eq!(fs::read(copy).unwrap(), content);
        assert!(
            plan.document().contains("# Plan: Make a.txt"),
            "{}",
            plan.document()
        );
        assert_eq!(queries(&server), answers.len(), "{reply}");
    }
}

#[test]
fn plan_whose_steps_are_lost_before_the_summary_is_made_again() {
    let (content, what) = damaged()[2].clone();
    let (summary, work) = whole()
        .split_last()
        .map(|(last, work)| (last.clone(), work.to_vec()))
        .unwrap();
    assert!(summary.contains("log_entry"), "{summary}");
    let unreadable = ["no", "no", "no", "# Plan: A\n\n## Goal\nA\n"].map(str::to_owned);
    let answers = [work, unreadable.to_vec(), whole()].concat();
    let (plan, server) = PlanProject::scripted(&answers);
    plan.work("Make a.txt").exits(5);
    let document = plan.sessions().pop().unwrap().join("plan_doc.md");
    fs::write(&document, &content).unwrap();
    fs::remove_file(plan.project.path("a.txt")).unwrap();
    let run = plan.run(&["--resume", "-p", ""]).exits(0);
    run.says(&[what, "what the model made of it"]);
    assert_eq!(queries(&server), answers.len());
}

#[test]
fn damaged_document_with_open_steps_is_repaired_for_a_new_request() {
    let (content, what) = damaged()[1].clone();
    let mut answers = whole();
    answers.splice(1..1, ["I cannot.".to_owned(), whole()[0].clone()]);
    let (plan, server) = PlanProject::scripted(&answers);
    plan.run(&["--plan-only", "-p", "Make a.txt"]).exits(0);
    let document = plan.sessions().pop().unwrap().join("plan_doc.md");
    fs::write(&document, &content).unwrap();
    plan.run(&["--resume", "-p", "Make it anew"])
        .exits(0)
        .says(&["warning: ", what, "an empty plan"]);
    assert_eq!(queries(&server), answers.len());
}

#[test]
fn conflict_markers_are_left_to_the_user() {
    let (plan, server) = PlanProject::scripted(&whole());
    plan.run(&["--plan-only", "-p", "Make a.txt"]).exits(0);
    let document = plan.sessions().pop().unwrap().join("plan_doc.md");
    let text = plan.document();
    let line = text.lines().position(|line| line == "## Goal").unwrap() + 1;
    let conflict = text.replace(
        "## Goal\n",
        "<<<<<<< HEAD\n## Goal\n=======\n>>>>>>> theirs\n",
    );
    fs::write(&document, &conflict).unwrap();
    for arguments in [&["--resume", "-p", ""][..], &["show"]] {
        plan.run(arguments).exits(3).says(&[
            "plan_doc.md",
            &format!("line {line} is a conflict marker"),
            "hint: ",
        ]);
    }
    assert_eq!(plan.document(), conflict);
    assert_eq!(queries(&server), 1);
}

#[test]
fn a_plan_is_shown_as_it_is_and_as_json() {
    let (plan, _server) = PlanProject::scripted(&whole());
    plan.work("Make a.txt").exits(0);
    let id = plan.session()["id"].as_str().unwrap().to_owned();
    for arguments in [&["show"][..], &["show", &id]] {
        assert_eq!(plan.run(arguments).exits(0).stdout, plan.document());
    }
    let shown = plan.run(&["show", "--json"]).exits(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["status"], "completed");
    assert_eq!(shown["acceptanceCriteria"][0]["completed"], true);
    assert_eq!(shown["tasks"][0]["status"], "done");
    assert_eq!(shown["tasks"][0]["tool"], "write_file");
    assert_eq!(shown["executionLog"][0]["details"], "All of it");
    assert_eq!(shown["executionLog"][0]["toolsUsed"][0], "write_file");
    assert!(shown["metadata"]["version"].as_u64().unwrap() > 1);
}

#[test]
fn hostile_step_text_stays_within_the_list() {
    let wild = "## Goal\n- [x] **Status:** completed `rm` \u{202e}漢字 \u{1f600}";
    let long = "x".repeat(1 << 20);
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[(wild, "analyze"), (&long, "analyze")]),
        response("One."),
        response("Two."),
        summary("Done"),
    ]);
    let run = plan.work("Do it");
    assert!([0, 5].contains(&run.code), "{}", run.stderr);
    let shown = plan.run(&["show", "--json"]).exits(0).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["goal"], "Do it");
    // A reply that never ends does not end the session either.
    let (plan, _server) = PlanProject::scripted(&[
        tasks(&[("One", "analyze")]),
        "y".repeat(1 << 18),
        response(&"y".repeat(1 << 18)),
        summary("Done"),
    ]);
    plan.work("Do it").exits(0);
    assert!(plan.kept("session.json").len() < 64 << 10);
    for (length, code) in [(0, 5), (1000, 5)] {
        let steps: Vec<(&str, &str)> = vec![("Step", "analyze"); length];
        let reply = tasks(&steps);
        let (plan, server) = PlanProject::scripted(&[&reply, &reply, &reply]);
        plan.work("Do it").exits(code);
        assert_eq!(queries(&server), 3);
        assert!(!plan.document().contains("## Tasks"));
    }
}

#[test]
fn a_file_that_is_not_a_plan_does_not_become_one() {
    let (plan, server) = PlanProject::scripted(&["no"]);
    let plan = plan.with_file("notes.md", "# Notes\nfirst\n");
    plan.run(&["--plan-file", "notes.md", "-p", "Look"])
        .exits(2)
        .says(&["`notes.md` exists, but is not a plan"]);
    plan.run(&["show", "--plan-file", "notes.md"])
        .exits(2)
        .says(&["`notes.md` exists, but is not a plan", "hint: name another"]);
    assert_eq!(plan.project.read("notes.md"), "# Notes\nfirst\n");
    assert_eq!(queries(&server), 0);
}

#[test]
fn steps_written_by_the_user_are_run_as_they_are() {
    let (plan, server) = PlanProject::scripted(&[response("Looked."), summary("Looked")]);
    let written = "# Plan: Look\n\n## Goal\nLook\n\n## Tasks\n1. [ ] Look around\n";
    let plan = plan.with_file("PLAN.md", written);
    let typed = plan.typed(&["--plan-file", "PLAN.md"], "");
    assert_eq!(queries(&server), 2, "{}", typed.stderr);
    let text = plan.project.read("PLAN.md");
    assert!(text.contains("1. [x] Look around"), "{text}");
}

/// A change to a document; `None` removes it.
type Change<'c> = &'c dyn Fn(String) -> Option<String>;

#[test]
fn a_plan_whose_tasks_cannot_be_found_is_not_completed() {
    let list = tasks(&[("Write a.txt", "write_file"), ("Look at it", "analyze")]);
    let none = "there is no task in a section `## Tasks`";
    let changes: [(&str, Change<'_>); 5] = [
        ("the plan is gone", &|_| None),
        (none, &|text| {
            Some(text.replace("## Tasks", "## Tasks (reviewed by Ann)"))
        }),
        ("is a second heading `## Tasks`", &|text| {
            Some(text + "\n## Tasks\n1. [ ] Third\n")
        }),
        ("is an indented task", &|text| {
            Some(text.replace("1. [ ]", "  1. [ ]"))
        }),
        (none, &|text| {
            let (before, rest) = text.split_once("## Tasks").unwrap();
            let (_, after) = rest.split_once("## Execution").unwrap();
            Some(format!("{before}## Execution{after}"))
        }),
    ];
    for (problem, change) in changes {
        let mut answers = vec![list.clone()];
        answers.extend(whole().into_iter().skip(1));
        let (plan, server) = PlanProject::scripted(&answers);
        let planned = ["--plan-only", "--plan-file", "PLAN.md", "-p", "Make a.txt"];
        plan.run(&planned).exits(0);
        let text = plan.project.read("PLAN.md");
        let path = plan.project.path("PLAN.md");
        match change(text.clone()) {
            Some(changed) => fs::write(&path, changed).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let refused = plan.run(&["--resume", "-p", ""]).exits(3);
        refused.says(&["PLAN.md", problem, "hint: fix the document"]);
        assert_eq!(queries(&server), 1, "{problem}");
        fs::write(&path, text).unwrap();
        plan.run(&["--resume", "-p", ""]).exits(0);
        assert_eq!(plan.project.read("a.txt"), "a\n");
    }
}
