//! The names of a run's files, as listed in the contract. Pure.

use crate::model::{Purpose, StepId};

/// The record of the whole run.
pub const RESULT: &str = "result.json";
/// The earlier conversation of an agent's run that continues a session.
pub const CONVERSATION: &str = "conversation.json";
/// The part of the code base that a run shows first, if there is a limit.
pub const SHOWN: &str = "shown.json";
/// An agent's request, and the user's answers so far. The record has them as well, but a killed run has no record.
pub const AGENT: &str = "agent.json";
/// The plan at the start of an agent's run, if the agent follows one.
pub const PLAN: &str = "plan_doc.md";
/// The run's steps as lines of JSON, written as they happen; a later line about a step replaces an earlier one.
pub const STEPS: &str = "steps.jsonl";
/// The branches of an orchestration, rewritten whenever they change.
pub const LINEAGE: &str = "lineage.json";
/// An orchestration's requests to its tool server and the answers, as lines of JSON.
pub const MCP: &str = "mcp.jsonl";
/// The log of the build before anything is sent; in `logs` until the run has a folder.
pub const BASELINE: &str = "baseline-build.txt";
/// The changes that a run in a scratch tree would have made, had the project not been changed in the meantime.
pub const UNAPPLIED: &str = "unapplied.diff";
/// A build's changes to files that no build may change.
pub const GATE: &str = "gate.diff";
/// Logs of the builds for the verdict on the gate: with the old gate, with the old gate except what the query names,
/// with only the old lints, with the old gate and a file that may be a check, and with the new tests on the old code.
pub const OLD_GATE: &str = "old-gate-build.txt";
pub const OLD_GATE_REST: &str = "old-gate-unnamed-build.txt";
pub const OLD_LINTS: &str = "old-lints-build.txt";
pub const OLD_CHECK: &str = "old-check-build.txt";
pub const NEW_TESTS: &str = "new-tests-build.txt";
pub const VERDICT: [&str; 5] = [OLD_GATE, OLD_GATE_REST, OLD_LINTS, OLD_CHECK, NEW_TESTS];
/// The findings of a consistency report, as SARIF or as JSON.
pub const FINDINGS_SARIF: &str = "findings.sarif";
pub const FINDINGS_JSON: &str = "findings.json";
/// The first line of a response file that contains an error instead of a reply.
pub const ERROR_LINE: &str = "ERROR\n";

/// The workflow of a commit.
pub const COMMIT: &str = "commit";
/// The workflow that takes no lock.
pub const ORCHESTRATE: &str = "orchestrate";
/// The workflows whose folders have names of their own.
const FOLDERS: [(&str, &str); 3] = [
    (COMMIT, "committing-code"),
    ("consistency", "consistency-report"),
    ("trial", "trying-model"),
];

/// Returns the name that the folders of a workflow's runs end with.
pub fn folder(workflow: &str) -> &str {
    let found = FOLDERS.iter().find(|(named, _)| *named == workflow);
    found.map_or(workflow, |(_, folder)| folder)
}

/// Returns the workflow that a run's folder is named after, or `?`. Names of runs in the same second end with a number.
pub fn workflow(folder: &str) -> &str {
    let name = folder.trim_matches(|c: char| c == '-' || c.is_ascii_digit());
    match FOLDERS.iter().find(|(_, folder)| *folder == name) {
        Some((workflow, _)) => workflow,
        None if name.bytes().all(|byte| byte.is_ascii_lowercase()) => name,
        None => "?",
    }
}

/// Returns whether the run in this folder locks the project while it lasts, so that no other run can.
pub fn holds_project(folder: &str) -> bool {
    workflow(folder) != ORCHESTRATE
}

/// The purposes of the steps whose queries are found by a number in their file names.
const NUMBERED: &str = "attempt repair context part step audit compression";
/// The suffix of a repeated query's name, followed by its number.
const AGAIN: &str = "-reask-";

/// A file that a step writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifact {
    /// The query, as it was sent.
    Query,
    /// The reply's text, or an error in its place.
    ResponseText,
    /// The vendor's whole answer.
    ResponseJson,
    /// The build's exit code and output; for an agent's step in older runs, the tool's input and result.
    Build,
    /// The beginning and end of the output of an agent's command, by the command's number in the step, from 1 on.
    Output(u32),
}

/// Returns the file's name in the run's folder.
pub fn name(step: &StepId, artifact: Artifact) -> String {
    let number = step.number;
    let again = match step.reask {
        0 => String::new(),
        nth => format!("{AGAIN}{nth}"),
    };
    // A rejected reply is not built, so a query has only one build, however often it is repeated.
    let (query, build) = match step.purpose.name() {
        "initial" => (format!("initial-query{again}"), "initial-build".to_owned()),
        purpose @ ("attempt" | "repair" | "context") => (
            format!("{purpose}-query-{number}{again}"),
            format!("{purpose}-query-{number}-build"),
        ),
        // Reports have no build; the names only complete the table.
        "part" => (format!("part-query-{number}{again}"), "build".to_owned()),
        "report" => ("query".to_owned(), "build".to_owned()),
        "findings" => (format!("findings-query{again}"), "build".to_owned()),
        // The number comes first, so that sorting a folder by name gives the order of events.
        purpose => (
            format!("{number:04}-{purpose}"),
            format!("{number:04}-{purpose}-tool"),
        ),
    };
    match artifact {
        Artifact::Query => format!("{query}.txt"),
        Artifact::ResponseText => format!("{query}-response.txt"),
        Artifact::ResponseJson => format!("{query}-response.json"),
        Artifact::Build => format!("{build}.txt"),
        Artifact::Output(1) => format!("{query}-output.txt"),
        Artifact::Output(nth) => format!("{query}-output-{nth}.txt"),
    }
}

/// Returns the name of a log for the verdict on an attempt; except for the initial step, it begins with the name of the
/// step's query.
pub fn of_verdict(step: &StepId, log: &str) -> String {
    let query = name(step, Artifact::Query);
    let stem = query.strip_suffix(".txt").unwrap_or(&query);
    if *step == StepId::INITIAL {
        log.to_owned()
    } else {
        format!("{stem}-{log}")
    }
}

/// Returns the step whose query has this file name.
pub fn asked(file: &str) -> Option<StepId> {
    let whole = file.strip_suffix(".txt")?;
    let (stem, reask) = match whole.split_once(AGAIN) {
        Some((stem, nth)) => (stem, nth.parse().ok()?),
        None => (whole, 0),
    };
    let id = match stem {
        "initial-query" => StepId::INITIAL,
        "query" => StepId::REPORT,
        "findings-query" => StepId::FINDINGS,
        _ => {
            let numbered = stem.split_once("-query-");
            let (name, number) =
                numbered.or_else(|| stem.split_once('-').map(|(n, name)| (name, n)))?;
            let purpose = NUMBERED.split(' ').find(|purpose| *purpose == name)?;
            StepId::new(Purpose::new(purpose), number.parse().ok()?)
        }
    };
    let step = StepId { reask, ..id };
    (name(&step, Artifact::Query) == file).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_its_workflow() {
        for workflow in ["commit", "consistency", "trial", "undo", "orchestrate"] {
            let name = format!("2026-01-02-03-04-05-{}", folder(workflow));
            assert_eq!(super::workflow(&name), workflow);
            assert_eq!(super::workflow(&format!("{name}-2")), workflow);
        }
        assert_eq!(super::workflow("2026-01-02-03-04-05-of-another"), "?");
    }

    #[test]
    fn the_names_are_the_contracts() {
        use Artifact::{Build, Output, Query, ResponseJson, ResponseText};
        for (step, artifact, expected) in [
            (StepId::INITIAL, Query, "initial-query.txt"),
            (StepId::INITIAL, ResponseText, "initial-query-response.txt"),
            (StepId::INITIAL, ResponseJson, "initial-query-response.json"),
            (StepId::INITIAL, Build, "initial-build.txt"),
            (StepId::repair(2), Query, "repair-query-2.txt"),
            (StepId::INITIAL.again(), Query, "initial-query-reask-1.txt"),
            (
                StepId::INITIAL.again(),
                ResponseJson,
                "initial-query-reask-1-response.json",
            ),
            (StepId::INITIAL.again(), Build, "initial-build.txt"),
            (
                StepId::repair(2).again().again(),
                Query,
                "repair-query-2-reask-2.txt",
            ),
            (
                StepId::repair(2),
                ResponseText,
                "repair-query-2-response.txt",
            ),
            (
                StepId::repair(2),
                ResponseJson,
                "repair-query-2-response.json",
            ),
            (StepId::repair(2), Build, "repair-query-2-build.txt"),
            (
                StepId::new(Purpose::ATTEMPT, 2),
                Build,
                "attempt-query-2-build.txt",
            ),
            (StepId::REPORT, Query, "query.txt"),
            (StepId::REPORT, ResponseText, "query-response.txt"),
            (StepId::REPORT, ResponseJson, "query-response.json"),
            (
                StepId::new(Purpose::PART, 3),
                ResponseText,
                "part-query-3-response.txt",
            ),
            (StepId::new(Purpose::STEP, 1), Query, "0001-step.txt"),
            (StepId::new(Purpose::STEP, 1), Build, "0001-step-tool.txt"),
            (
                StepId::new(Purpose::STEP, 1),
                Output(1),
                "0001-step-output.txt",
            ),
            (
                StepId::new(Purpose::AUDIT, 12),
                ResponseText,
                "0012-audit-response.txt",
            ),
            (
                StepId::new(Purpose::COMPRESSION, 7),
                ResponseJson,
                "0007-compression-response.json",
            ),
        ] {
            assert_eq!(name(&step, artifact), expected);
        }
    }

    #[test]
    fn a_query_shows_which_step_it_is_of_and_other_files_do_not() {
        for step in [
            StepId::INITIAL,
            StepId::repair(2),
            StepId::REPORT,
            StepId::FINDINGS,
            StepId::FINDINGS.again(),
            StepId::new(Purpose::PART, 2),
            StepId::INITIAL.again(),
            StepId::repair(3).again(),
            StepId::new(Purpose::ATTEMPT, 2),
            StepId::new(Purpose::STEP, 1),
            StepId::new(Purpose::AUDIT, 12),
            StepId::new(Purpose::COMPRESSION, 10_000),
        ] {
            assert_eq!(asked(&name(&step, Artifact::Query)), Some(step.clone()));
            for other in [Artifact::ResponseText, Artifact::Build, Artifact::Output(1)] {
                assert_eq!(asked(&name(&step, other)), None);
            }
        }
        for file in [
            "1-step.txt",
            "0001-plan.txt",
            "repair-query-+1.txt",
            "0001-step",
            "-step.txt",
        ] {
            assert_eq!(asked(file), None, "{file}");
        }
    }
}
