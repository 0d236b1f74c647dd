//! The names of a run's files: the contract's table, in one place. Pure.

use crate::model::{Purpose, StepId};

/// The record of the whole run.
pub const RESULT: &str = "result.json";
/// The conversation before an agent's run, where it goes on with a session.
pub const CONVERSATION: &str = "conversation.json";
/// An agent's request, and the user's answers so far: the record has them as well, but a run that was killed has none.
pub const AGENT: &str = "agent.json";
/// The plan as it was when the run of an agent began that works by one.
pub const PLAN: &str = "plan_doc.md";
/// The run's steps, a line of JSON each, written as they happen; a later line about a step takes the place of an
/// earlier one.
pub const STEPS: &str = "steps.jsonl";
/// The branches of an orchestration, written anew whenever they change.
pub const LINEAGE: &str = "lineage.json";
/// An orchestration's requests to its tool server and the answers, a line of JSON each.
pub const MCP: &str = "mcp.jsonl";
/// The log of the build before anything was sent; in `logs` until the run has its folder.
pub const BASELINE: &str = "baseline-build.txt";
/// A build's changes to the files that no build may change.
pub const GATE: &str = "gate.diff";
/// The first line of a response file that holds an error in place of a reply.
pub const ERROR_LINE: &str = "ERROR\n";

/// The workflow that takes no lock, as folders are named after it.
pub const ORCHESTRATE: &str = "orchestrate";

/// The workflow that a run's folder is named after: runs of one second have numbers behind it.
pub fn workflow(folder: &str) -> &str {
    folder.trim_matches(|c: char| c == '-' || c.is_ascii_digit())
}

/// Returns whether the run in this folder holds the project while it goes on, so that nobody else's does.
pub fn holds_project(folder: &str) -> bool {
    workflow(folder) != ORCHESTRATE
}

/// The suffix of a query's name where the query is asked again, before the number.
const AGAIN: &str = "-reask-";

/// A file that a step leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifact {
    /// The query as it was sent.
    Query,
    /// The reply's text, or the error in its place.
    ResponseText,
    /// The vendor's whole answer.
    ResponseJson,
    /// The build's exit code and output; of an agent's step, in runs of before, the tool's input and what came of it.
    Build,
    /// The output of the first, second … command that an agent's step ran: its beginning and its end.
    Output(u32),
}

/// The file's name in the run's folder.
pub fn name(step: &StepId, artifact: Artifact) -> String {
    let number = step.number;
    let again = match step.reask {
        0 => String::new(),
        nth => format!("{AGAIN}{nth}"),
    };
    // A rejected reply is not built, so that a query has one build however often it is asked.
    let (query, build) = match step.purpose.name() {
        "initial" => (format!("initial-query{again}"), "initial-build".to_owned()),
        "repair" => (
            format!("repair-query-{number}{again}"),
            format!("repair-query-{number}-build"),
        ),
        // A report has no build; the name is there so that the table is whole.
        "report" => ("query".to_owned(), "build".to_owned()),
        // The number goes first, so that a folder that is sorted by name tells the story in its order.
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

/// The step whose query has this file name.
pub fn asked(file: &str) -> Option<StepId> {
    let stem = file.strip_suffix(".txt")?;
    let (stem, reask) = match stem.split_once(AGAIN) {
        Some((stem, nth)) => (stem, nth.parse().ok()?),
        None => (stem, 0),
    };
    let step = match (stem, stem.strip_prefix("repair-query-")) {
        ("initial-query", _) => StepId::INITIAL,
        ("query", _) => StepId::REPORT,
        (_, Some(number)) => StepId::repair(number.parse().ok()?),
        (_, None) => {
            let (number, name) = stem.split_once('-')?;
            let mut agents = [Purpose::STEP, Purpose::AUDIT, Purpose::COMPRESSION].into_iter();
            let purpose = agents.find(|purpose| purpose.name() == name)?;
            StepId::new(purpose, number.parse().ok()?)
        }
    };
    let step = StepId { reask, ..step };
    (name(&step, Artifact::Query) == file).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (StepId::REPORT, Query, "query.txt"),
            (StepId::REPORT, ResponseText, "query-response.txt"),
            (StepId::REPORT, ResponseJson, "query-response.json"),
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
    fn a_query_tells_which_step_it_is_of_and_other_files_do_not() {
        for step in [
            StepId::INITIAL,
            StepId::repair(2),
            StepId::REPORT,
            StepId::INITIAL.again(),
            StepId::repair(3).again(),
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
