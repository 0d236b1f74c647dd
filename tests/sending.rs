//! Checks before anything is sent: freshness, the model's window, and the cost.

use serde_json::{Value, json};

use crate::support::{Answer, ModelServer, TestProject, gemini};

const FRESH: &str = "--- src/main.rs ---\nfn main() {}\n";

#[test]
fn a_dry_run_shows_tokens_share_largest_files_and_cost_and_sends_nothing() {
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server);
    let before = project.tree();
    let run = project.run(&["--dry-run", "--model", "gpt-5"]).exits(0);
    let prompt =
        regex::Regex::new(r"(?m)^prompt    about [\d,]+ tokens, 0\.\d % of 272,000$").unwrap();
    assert!(prompt.is_match(&run.stdout), "{}", run.stdout);
    for part in [
        "model     gpt-5",
        "  codebase",
        "largest   ",
        "  src/main.rs",
        "cost      likely $0.08",
        ", at most $1.28 for the first call",
        "with 3 repairs",
    ] {
        assert!(run.stdout.contains(part), "{part}\n{}", run.stdout);
    }
    let report = project.run(&["--dry-run", "--cc"]).exits(0).stdout;
    assert!(!report.contains("repairs"), "{report}");
    assert!(project.runs().is_empty() && server.requests().is_empty());
    assert_eq!(project.tree(), before);
}

#[test]
fn the_likely_cost_is_that_of_an_answer_as_long_as_usual() {
    let answers = [10, 4_000, 9_000].map(|tokens| {
        let mut answer = gemini("Nothing.");
        answer["usageMetadata"] =
            json!({"promptTokenCount": 100, "candidatesTokenCount": tokens, "totalTokenCount": 100 + tokens});
        Answer::json(&answer)
    });
    let project = TestProject::new().with(&ModelServer::start(answers));
    let answer_of = || {
        let run = project
            .run(&["--dry-run", "--output-format", "json"])
            .exits(0);
        let cost = &serde_json::from_str::<Value>(&run.stdout).unwrap()["cost"];
        let [likely, least] =
            [&cost["likely"], &cost["first"]["least"]].map(|it| it.as_f64().unwrap());
        // $10 per million tokens.
        ((likely - least) * 1e5).round()
    };
    assert!((answer_of() - 8192.0).abs() < 0.5);
    (0..3).for_each(|_| drop(project.run(&[]).exits(0)));
    assert!((answer_of() - 4000.0).abs() < 0.5);
}

#[test]
fn a_dry_run_shows_programs_the_same_and_the_tokens_are_those_that_are_sent() {
    let server = ModelServer::openai(&["Nothing."]);
    let project = TestProject::new().with(&server);
    let dry = project
        .run(&["--dry-run", "--model", "gpt-5", "--output-format", "json"])
        .exits(0);
    let dry: Value = serde_json::from_str(&dry.stdout).unwrap();
    assert_eq!(dry["prompt"]["exact"], false);
    project.run(&["--model", "gpt-5"]).exits(0);
    let messages = server.requests()[0].json()["messages"].clone();
    let counted: u64 = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            code_commit::measured::tokens::count(message["content"].as_str().unwrap()) + 3
        })
        .sum();
    let told = dry["prompt"]["tokens"].as_u64().unwrap();
    // Each part is rounded up separately.
    assert!(told.abs_diff(counted + 3) * 50 <= told, "{told} {counted}");
}

#[test]
fn a_dry_run_without_a_key_estimates_all_the_same() {
    let project = TestProject::new().without("agent-config/gemini-key.txt");
    let run = project
        .run(&["--dry-run"])
        .exits(3)
        .says(&["`agent-config/gemini-key.txt` is missing"]);
    assert!(run.stdout.contains("for the first call"), "{}", run.stdout);
}

#[test]
fn a_prompt_that_cannot_fit_is_not_sent_and_its_parts_are_reported() {
    let server = ModelServer::start([]);
    let code = "let x = 1;\n".repeat(2000);
    let rollup = format!("--- big.rs ---\n{code}--- small.rs ---\nx\n");
    let project = TestProject::new()
        .with(&server)
        .file("big.rs", &code)
        .file("small.rs", "x\n")
        .file("agent-config/codeRollup.txt", rollup)
        .file(
            "agent-config/models.json",
            r#"{"models": {"gemini-2.5-pro": {"contextWindow": 9000}}}"#,
        );
    let run = project.run(&[]).exits(3).says(&[
        "the prompt does not fit the context window of `gemini-2.5-pro`: about 1",
        "`--context 4k` sends what ranks first for the query; or ",
        "% of 9,000",
        "  codebase",
        "  big.rs",
        "`code-commit rollup --budget TOKENS`",
    ]);
    assert!(server.requests().is_empty() && project.runs().is_empty());
    assert!(run.stderr.find("big.rs") < run.stderr.find("small.rs"));
}

#[test]
fn oversized_code_base_is_reported_with_the_sizes_of_its_directories() {
    let code = "let x = 1;\n".repeat(1000);
    let paths = ["src/api/a.rs", "src/api/b.rs", "src/ui/c.rs", "d.rs"];
    let rollup: String = paths
        .iter()
        .map(|path| format!("--- {path} ---\n{code}"))
        .collect();
    let project = TestProject::new().file(
        "agent-config/models.json",
        r#"{"models": {"gemini-2.5-pro": {"contextWindow": 16000}}}"#,
    );
    let project = paths
        .iter()
        .fold(project, |project, path| project.file(path, &code));
    let project = project.file("agent-config/codeRollup.txt", rollup);
    let run = project.run(&[]).exits(3).says(&[
        "\n    its largest directories:",
        "hint: `code-commit rollup src/api` makes it about ",
        " tokens; or leave files out",
        "`code-commit dev` do it",
    ]);
    let sums = run.stderr.split("its largest directories:").nth(1).unwrap();
    let named: Vec<&str> = sums.split_whitespace().skip(1).step_by(2).take(3).collect();
    assert_eq!(named, ["src/", "src/api/", "src/ui/"], "{sums}");
}

#[test]
fn a_rollup_that_is_not_the_disks_is_reported_and_sent_only_where_that_is_allowed() {
    let server = ModelServer::gemini(&["Nothing.", "Nothing."]);
    let project = TestProject::new().with(&server);
    let fresh = project.run(&["--require-fresh"]).exits(0);
    assert!(!fresh.stderr.contains("codeRollup"), "{}", fresh.stderr);
    let project = project
        .file("src/main.rs", "fn main() { changed() }\n")
        .file(
            "agent-config/codeRollup.txt",
            format!("{FRESH}--- gone.rs ---\n"),
        );
    let said = "the code base in `agent-config/codeRollup.txt` differs from the files on disk: `src/main.rs` has changed, `gone.rs` is not there";
    let run = project.run(&["--allow-stale"]).exits(0).says(&[said]);
    assert!(run.result()["warnings"][0].as_str().unwrap().contains(said));
    for arguments in [&[][..], &["--require-fresh"]] {
        project
            .run(arguments)
            .exits(3)
            .says(&[said, "code-commit rollup"]);
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_call_that_would_pass_the_money_is_not_made() {
    let server = ModelServer::start([]);
    let project = TestProject::new().with(&server);
    project.run(&["--max-cost", "0.01"]).exits(3).says(&[
        "the first call would exceed `--max-cost` $0.010",
        "raise `--max-cost`",
    ]);
    project
        .file(
            "agent-config/models.json",
            r#"{"models": {"free": {"provider": "openai"}}}"#,
        )
        .run(&["--max-cost", "5", "--model", "free"])
        .exits(3)
        .says(&["the price of `free` is not known"]);
    assert!(server.requests().is_empty());
}

#[test]
fn an_answer_may_be_as_long_as_the_money_allows_and_a_repair_that_it_does_not_allow_is_not_asked_for()
 {
    let broken = "^^^a\nb\n^^^end\n";
    let mut answer = crate::support::gemini(broken);
    // 6,000 tokens of output: 6 cents.
    answer["usageMetadata"] =
        serde_json::json!({"promptTokenCount": 500, "candidatesTokenCount": 6000});
    let server = ModelServer::start([crate::support::Answer::json(&answer)]);
    let project = TestProject::new().with(&server).build("exit 1");
    let run = project
        .run(&["--max-cost", "0.10"])
        .exits(1)
        .says(&["the next call may cost more than is left: $0.061 of $0.10 is spent"]);
    let allowed = server.requests()[0].json()["generationConfig"]["maxOutputTokens"]
        .as_u64()
        .unwrap();
    assert!((8192..10_000).contains(&allowed), "{allowed}");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(run.result()["exit"]["name"], "build-failed");
    assert_eq!(project.read("a"), "b\n");
}

#[test]
fn the_money_is_kept_for_repairs_by_a_model_without_a_price() {
    let server = ModelServer::start([]);
    let json = r#"{"models": {"other": {"provider": "openai"}}, "selectionRules": {"byTaskType": {"repair": "other"}}}"#;
    let project = TestProject::new()
        .with(&server)
        .file("agent-config/models.json", json);
    project
        .run(&["--max-cost", "5"])
        .exits(3)
        .says(&["the price of `other` is not known"]);
}

#[test]
fn a_call_without_a_token_count_costs_the_maximum() {
    let mut untold = crate::support::gemini("^^^a\nb\n^^^end\n");
    for usage in [
        serde_json::Value::Null,
        serde_json::json!({"promptTokenCount": "x"}),
    ] {
        untold["usageMetadata"] = usage;
        let server = ModelServer::start([crate::support::Answer::json(&untold)]);
        let project = TestProject::new().with(&server).build("exit 1");
        let run = project
            .run(&["--max-cost", "0.70"])
            .exits(1)
            .says(&["the next call may cost more than is left: $0.66 of $0.70 is spent"]);
        assert_eq!(run.result()["cost"], serde_json::Value::Null);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn a_repair_that_does_not_fit_is_not_sent() {
    let server = ModelServer::gemini(&["^^^a\nb\n^^^end\n"]);
    let project = TestProject::new()
        .with(&server)
        .file(
            "agent-config/models.json",
            r#"{"models": {"gemini-2.5-pro": {"contextWindow": 2000}}}"#,
        )
        .build("seq 5000; exit 1");
    project.run(&[]).exits(1).says(&[
        "the next prompt does not fit the context window of `gemini-2.5-pro`",
        "and the window has 2,000",
    ]);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_replay_costs_nothing_whatever_may_be_spent() {
    let server = ModelServer::gemini(&["Nothing."]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0);
    project
        .run(&["--replay", &run.folder, "--max-cost", "0.000001"])
        .exits(0);
}

#[test]
fn a_rollup_that_names_no_file_is_not_fresh() {
    let project = TestProject::new().file("agent-config/codeRollup.txt", "just words\n");
    project
        .run(&["--require-fresh"])
        .exits(3)
        .says(&["`agent-config/codeRollup.txt` has no file after"]);
}

#[test]
fn with_a_cost_limit_a_call_that_breaks_off_is_made_once() {
    for (flags, requests, exit) in [(&["--max-cost", "1"][..], 1, 4), (&[], 2, 0)] {
        let server = ModelServer::start([
            Answer::close(),
            Answer::json(&gemini("^^^a.txt\none\n^^^end\n")),
        ]);
        let project = TestProject::new().with(&server);
        project.run(flags).exits(exit);
        assert_eq!(server.requests().len(), requests, "{flags:?}");
    }
}

#[test]
fn a_call_without_usage_counts_as_what_it_was_allowed() {
    let mut answer = gemini("^^^a.txt\none\n^^^end\n");
    answer.as_object_mut().unwrap().remove("usageMetadata");
    let server = ModelServer::start([Answer::json(&answer)]);
    let project = TestProject::new().with(&server).build("exit 1");
    let run = project.run(&["--max-cost", "0.3"]).exits(1);
    run.says(&["$0.30 of $0.30 is spent"]);
}
