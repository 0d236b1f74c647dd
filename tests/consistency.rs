//! The consistency report.

use crate::support::{ModelServer, TestProject};

const REPORT: &str = "\
# User Specification Self Consistency

Fine.

# Implementation Consistency with User Specification

Fine.

# Errors and Mistakes within the User Specification

None.

# Suggestions and Other Important Commentary

None.
";

#[test]
fn the_report_is_written_and_nothing_else_changes() {
    for flag in ["--cc", "--consistency", "--consistency-check"] {
        let server = ModelServer::gemini(&[REPORT]);
        let project = TestProject::new().with(&server).without("build.sh");
        let mut before = project.tree();
        let run = project.run(&[flag]).exits(0);
        assert!(
            run.stdout
                .starts_with("done: the report is in agent-config/consistency-report.txt\n")
        );
        assert_eq!(project.read("agent-config/consistency-report.txt"), REPORT);
        let mut after = project.tree();
        after.remove("agent-config/consistency-report.txt");
        before.remove("agent-config/consistency-report.txt");
        assert_eq!(after, before);
        assert_eq!(
            run.files(),
            [
                "query-response.json",
                "query-response.txt",
                "query.txt",
                "result.json",
                "steps.jsonl"
            ]
        );
        assert!(
            run.folder.ends_with("-consistency-report"),
            "{}",
            run.folder
        );
        let story = project.run(&["log", &run.folder]).exits(0).stdout;
        for part in [
            "The call for the report, to gemini-2.5-pro",
            "  The reply is the report.\n",
        ] {
            assert!(story.contains(part), "`{part}` is missing\n{story}");
        }
        assert!(!story.contains("changed no files"), "{story}");
        let system = server.requests()[0].json()["systemInstruction"]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(system, include_str!("../prompts/consistency.txt"));
        assert_eq!(
            run.logged("query.txt"),
            format!("{system}{}", server.requests()[0].user())
        );
    }
}

#[test]
fn the_record_lists_the_sections_and_a_missing_one_is_a_warning() {
    let server = ModelServer::gemini(&[REPORT]);
    let run = TestProject::new().with(&server).run(&["--cc"]).exits(0);
    let result = run.result();
    assert_eq!(result["workflow"], "consistency");
    assert_eq!(
        (
            &result["attempts"][0]["kind"],
            &result["attempts"][0]["number"]
        ),
        (&"report".into(), &0.into())
    );
    let sections: Vec<String> = result["sections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|section| format!("{}-{}", section["first_line"], section["last_line"]))
        .collect();
    assert_eq!(sections, ["1-4", "5-8", "9-12", "null-null", "13-15"]);
    run.says(&[
        "warning: the report has no section `Errors and Mistakes within the Implementation`",
    ]);
}

#[test]
fn an_empty_query_is_fine() {
    let server = ModelServer::openai(&[REPORT]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/query.txt", "");
    project.run(&["--cc", "--model", "gpt-5"]).exits(0);
    assert!(
        server.requests()[0]
            .user()
            .starts_with("[query]\n[codebase]\n")
    );
}

#[test]
fn a_call_that_fails_leaves_the_old_report() {
    let server = ModelServer::gemini(&[""]);
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/consistency-report.txt", "old");
    let run = project.run(&["--cc"]).exits(4);
    assert_eq!(project.read("agent-config/consistency-report.txt"), "old");
    assert!(run.logged("query-response.txt").starts_with("ERROR\n"));
}

#[test]
fn edits_in_a_report_are_only_words() {
    let server = ModelServer::gemini(&["^^^src/main.rs\n^^^delete\n"]);
    let project = TestProject::new().with(&server);
    project.run(&["--cc"]).exits(0);
    assert!(project.path("src/main.rs").exists());
}

#[test]
fn a_report_needs_no_query_and_says_what_it_has_nothing_to_compare_with() {
    for project in [
        TestProject::new().without("agent-config/query.txt"),
        initialised(),
    ] {
        let server = ModelServer::gemini(&["# Report"]);
        let project = project.with(&server);
        let run = project.run(&["--cc"]).exits(0);
        assert!(
            server.requests()[0]
                .user()
                .starts_with("[query]\n[codebase]\n")
        );
        let warning = "the code base has no `UserSpecification.md`";
        assert!(
            run.result()["warnings"][0]
                .as_str()
                .unwrap()
                .starts_with(warning)
        );
        // Told before the call, which costs.
        let (told, asked) = (run.stderr.find(warning), run.stderr.find("asking"));
        assert!(
            told.is_some() && asked.is_none_or(|asked| told < Some(asked)),
            "{}",
            run.stderr
        );
    }
    let specified = "--- docs/UserSpecification.md ---\n# Specification\n";
    let project = TestProject::new()
        .file("docs/UserSpecification.md", "# Specification\n")
        .file("agent-config/codeRollup.txt", specified)
        .with(&ModelServer::gemini(&["# Report"]));
    let warnings = project.run(&["--cc"]).exits(0).result()["warnings"].to_string();
    assert!(!warnings.contains("UserSpecification"), "{warnings}");
}

/// A project with the example query.
fn initialised() -> TestProject {
    let project = TestProject::new().without("agent-config/query.txt");
    project.run(&["init"]).exits(0);
    project
}
