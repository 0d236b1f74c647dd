//! The consistency report.

use code_commit::measured::tokens;
use serde_json::{Value, json};

use crate::fleet::git;
use crate::support::{Answer, ModelServer, Recorded, TestProject, gemini};

pub const REPORT: &str = "\
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
        for part in ["✓ The report (answered)\n  gemini-2.5-pro", "\n    # "] {
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
fn the_list_of_runs_has_the_query_of_a_report() {
    let server = ModelServer::gemini(&[REPORT]);
    let project = TestProject::new().with(&server);
    project.run(&["--cc", "-m", "Look at the parser"]).exits(0);
    let listed = project.run(&["log"]).exits(0).stdout;
    assert!(listed.contains("Look at the parser"), "{listed}");
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
        // The warning comes before the call, which costs money.
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

/// The window of the model that reads by parts, in tokens.
const WINDOW: u64 = 9000;

/// A project with a code base that exceeds the window: 12 files of about 1,500 tokens each in four directories, and a
/// specification.
pub fn large() -> TestProject {
    let files = (0..12).map(|nth| {
        let path = format!("src/{}/f{nth:02}.rs", ["a", "b", "c", "d"][nth / 3]);
        (
            path,
            format!(
                "pub fn name_{nth:02}() {{}}\n{}",
                "let x = 1;\n".repeat(220)
            ),
        )
    });
    let specification = (
        "UserSpecification.md".to_owned(),
        "# It has names.\n".to_owned(),
    );
    let mut project = TestProject::new().file(
        "agent-config/models.json",
        json!({"models": {"gemini-2.5-pro": {"contextWindow": WINDOW, "maxOutputTokens": 1000}}})
            .to_string(),
    );
    let mut rollup = String::new();
    for (path, content) in [specification].into_iter().chain(files) {
        rollup += &format!("--- {path} ---\n{content}");
        project = project.file(&path, content);
    }
    project.file("agent-config/codeRollup.txt", rollup)
}

#[test]
fn a_code_base_that_does_not_fit_is_read_by_parts_and_their_findings_are_joined() {
    let findings = [
        "First findings.",
        "Second findings.",
        "Third findings.",
        "Fourth findings.",
    ];
    let server = ModelServer::gemini(&[&findings[..], &[REPORT]].concat());
    let project = large().with(&server);
    let run = project.run(&["--cc", "--parts"]).exits(0);
    let requests = server.requests();
    let prompts: Vec<String> = requests.iter().map(Recorded::user).collect();
    assert_eq!(prompts.len(), 5, "{}", run.stderr);
    for (prompt, directory) in prompts.iter().zip(["a", "b", "c", "d"]) {
        let is_here = |nth: usize| prompt.contains(&format!("pub fn name_{nth:02}() {{}}\nlet x"));
        let here: Vec<usize> = (0..12).filter(|nth| is_here(*nth)).collect();
        let first = (u32::from(directory.as_bytes()[0]) - u32::from(b'a')) as usize * 3;
        assert_eq!(here, [first, first + 1, first + 2]);
        assert!(prompt.starts_with(
            "[specification]\n--- UserSpecification.md ---\n# It has names.\n[part]\nPart "
        ));
        let (_, outline) = prompt.split_once("\n[outline]\n").unwrap();
        let (outline, codebase) = outline
            .split_once("\n[query]\nDo something.\n[codebase]\n")
            .unwrap();
        let file = format!("src/{directory}/");
        assert!(
            !outline.contains(&file) && outline.contains("f0"),
            "{outline}"
        );
        assert!(codebase.starts_with(&format!("--- {file}")) && codebase.contains("let x = 1;\n"));
        assert!(tokens::count(prompt) < WINDOW * 4 / 5);
    }
    for (nth, found) in (1..).zip(findings) {
        let part = format!("--- Part {nth} of 4: 3 files, about ");
        let at = prompts[4]
            .find(&part)
            .unwrap_or_else(|| panic!("{}", prompts[4]));
        assert!(prompts[4][at..].contains(&format!(" ---\n{found}\n")));
        let logged = [
            format!("part-query-{nth}.txt"),
            format!("part-query-{nth}-response.txt"),
        ];
        assert!(run.logged(&logged[0]).ends_with(&prompts[nth - 1]));
        assert_eq!(run.logged(&logged[1]), found);
    }
    let report = project.read("agent-config/consistency-report.txt");
    let seen = report.strip_prefix(REPORT).unwrap();
    assert!(
        seen.starts_with("\nThe code base was read by parts:\n\n+ Part 1 of 4: 3 files, about ")
    );
    assert!(
        seen.contains(" tokens, from src/d/f09.rs to src/d/f11.rs\n"),
        "{seen}"
    );
    let result = run.result();
    assert_eq!(result["sections"][4]["last_line"], REPORT.lines().count());
    let steps = result["attempts"].as_array().unwrap().iter();
    let steps: Vec<String> = steps
        .map(|step| format!("{} {}", step["kind"].as_str().unwrap(), step["number"]))
        .collect();
    assert_eq!(steps, ["part 1", "part 2", "part 3", "part 4", "report 0"]);
    let story = project.run(&["log", &run.folder]).exits(0).stdout;
    for part in [
        "Part 2 (answered)\n  gemini-2.5-pro, ",
        "    Second findings.\n",
        "The report (answered)\n  gemini-2.5-pro",
    ] {
        assert!(story.contains(part), "`{part}` is missing\n{story}");
    }
    let again = large();
    std::fs::rename(
        project.path(&format!("logs/{}", run.folder)),
        again.path("recorded"),
    )
    .unwrap();
    again
        .run(&["--cc", "--parts", "--replay", "recorded"])
        .exits(0);
    assert_eq!(again.read("agent-config/consistency-report.txt"), report);
}

#[test]
fn oversized_report_is_refused_with_the_cost_of_parts_and_a_dry_run_lists_them() {
    let server = ModelServer::start([]);
    let project = large().with(&server);
    let calls = "5 calls, which cost $0.0";
    project.run(&["--cc"]).exits(3).says(&[
        "the prompt does not fit the context window of `gemini-2.5-pro`",
        &format!("hint: `--parts` reads it by parts, in {calls}"),
        "; or leave files out of the rollup",
    ]);
    let refused = project.run(&["-m", "Do it."]).exits(3);
    assert!(!refused.stderr.contains("--parts"), "{}", refused.stderr);
    let told = project
        .run(&["--cc", "--parts", "--dry-run"])
        .exits(0)
        .stdout;
    for part in [
        "parts     Part 1 of 4: 3 files, about ",
        " tokens, from src/a/f00.rs to src/a/f02.rs\n",
        "          Part 4 of 4: ",
        &format!("cost      {calls}"),
    ] {
        assert!(told.contains(part), "`{part}` is missing\n{told}");
    }
    let arguments = ["--cc", "--parts", "--dry-run", "--output-format", "json"];
    let told: Value = serde_json::from_str(&project.run(&arguments).exits(0).stdout).unwrap();
    assert_eq!(told["by_parts"]["calls"], 5);
    let least = told["by_parts"]["cost"]["least"].as_f64().unwrap();
    assert!(least < told["by_parts"]["cost"]["most"].as_f64().unwrap());
    project
        .run(&["--cc", "--parts", "--max-cost", &format!("{}", least * 0.9)])
        .exits(3)
        .says(&["a report by parts would exceed `--max-cost` $0.0", calls]);
    project.run(&["--parts"]).exits(2);
    assert!(server.requests().is_empty() && project.runs().is_empty());
}

#[test]
fn a_code_base_that_fits_is_sent_whole_with_parts_too() {
    let server = ModelServer::gemini(&[REPORT]);
    let project = TestProject::new().with(&server);
    project.run(&["--cc", "--parts"]).exits(0);
    assert_eq!(project.read("agent-config/consistency-report.txt"), REPORT);
    assert_eq!(
        server.requests()[0].user(),
        "[query]\nDo something.\n[codebase]\n--- src/main.rs ---\nfn main() {}\n"
    );
}

#[test]
fn a_file_larger_than_a_part_is_read_over_several_and_the_report_says_so() {
    let long: String = (1..=3000)
        .map(|at| format!("let long_{at} = 1;\n"))
        .collect();
    let server = ModelServer::gemini(&[REPORT; 12]);
    let project = large()
        .file("src/long.rs", &long)
        .file(
            "agent-config/codeRollup.txt",
            format!("--- src/long.rs ---\n{long}"),
        )
        .with(&server);
    project.run(&["--cc", "--parts"]).exits(0);
    let requests = server.requests();
    let (_, parts) = requests.split_last().unwrap();
    let texts: Vec<String> = parts.iter().map(Recorded::user).collect();
    assert!(texts.len() > 1);
    for text in &texts {
        assert!(tokens::count(text) < WINDOW);
        assert!(text.contains("--- src/long.rs (lines "), "{text}");
    }
    let lines = texts.iter().flat_map(|text| text.lines());
    let lines: Vec<&str> = lines.filter(|line| line.starts_with("let long_")).collect();
    assert_eq!(lines, long.lines().collect::<Vec<_>>());
    let report = project.read("agent-config/consistency-report.txt");
    assert!(report.contains("src/long.rs (lines 1-"), "{report}");
    assert!(report.contains("-3000 of 3000)"), "{report}");
}

#[test]
fn a_part_that_fails_or_costs_too_much_ends_the_run_and_leaves_the_old_report() {
    // Each call costs as much as 900,000 tokens of answer.
    let mut dear = gemini("Findings.");
    dear["usageMetadata"] = json!({"promptTokenCount": 500, "candidatesTokenCount": 900_000});
    for (flags, code, said) in [
        (
            &["--max-cost", "9"][..],
            1,
            "the next call may cost more than is left: $9.00 of $9.00",
        ),
        (&[], 4, "the script is over"),
    ] {
        let server = ModelServer::start([Answer::json(&dear)]);
        let project = large()
            .with(&server)
            .file("agent-config/consistency-report.txt", "old");
        let run = project
            .run(&[&["--cc", "--parts"], flags].concat())
            .exits(code)
            .says(&[said]);
        assert_eq!(project.read("agent-config/consistency-report.txt"), "old");
        assert_eq!(run.logged("part-query-1-response.txt"), "Findings.");
        assert!(!run.files().contains(&"query.txt".to_owned()));
    }
}

#[test]
fn a_report_that_is_resumed_asks_only_what_has_no_reply_yet() {
    let failed = Answer::error(400, &json!({"error": {"message": "no"}}));
    let found = || Answer::json(&gemini("It has names.\n"));
    let answers = [found(), found(), failed].into_iter();
    let server = ModelServer::start(answers.chain((0..20).map(|_| found())));
    let project = large().with(&server);
    git(&project.path("."), &["init", "--quiet"]);
    git(&project.path("."), &["add", "--all"]);
    let report = ["--cc", "--parts", "--rollup"];
    project.run(&report).exits(4);
    let first = project.runs().remove(0);
    project
        .run(&["--cc", "--parts", "--resume", "last"])
        .exits(0);
    let asked: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.json().to_string())
        .collect();
    assert_eq!(asked[3], asked[2]);
    let distinct: std::collections::BTreeSet<_> = asked.iter().collect();
    assert_eq!(distinct.len(), asked.len() - 1);
    // Replies to requests that are no longer made are not used.
    let path = "src/a/f00.rs";
    let changed = project.read(path) + "let y = 2;\n";
    std::fs::write(project.path(path), changed).unwrap();
    let first = first.to_str().unwrap();
    let run = project
        .run(&["--cc", "--parts", "--resume", first])
        .exits(3);
    run.says(&["is not what", "--resume"]);
    assert_eq!(server.requests().len(), asked.len());
}
