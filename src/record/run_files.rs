//! The names of a run's files: the contract's table, in one place. Pure.

use crate::record::Attempt;

/// The record of the whole run.
pub const RESULT: &str = "result.json";
/// What was said before an agent's run began, where it goes on with a session.
pub const CONVERSATION: &str = "conversation.json";
/// What an agent's run is about, and what the user has answered so far: the record has it as well, but a run
/// that was killed has none.
pub const AGENT: &str = "agent.json";
/// What the run has done to the project's files.
pub const CHANGES: &str = "changes.json";
/// The folder with the files that the run has replaced or removed, as they were before.
pub const REPLACED: &str = "replaced";
/// The first line of a response file that holds an error in place of a reply.
pub const ERROR_LINE: &str = "ERROR\n";

/// What an attempt leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Artifact {
    /// The query as it was sent.
    Query,
    /// The reply's text, or the error in its place.
    ResponseText,
    /// The vendor's whole answer.
    ResponseJson,
    /// The build's exit code and output; of an agent's step, the tool's input and what came of it.
    Build,
    /// The output of the first, second … command that an agent's step ran: its beginning and its end.
    Output(u32),
}

/// The file's name in the run's folder.
#[must_use]
pub fn name(attempt: Attempt, artifact: Artifact) -> String {
    let (query, build) = match attempt {
        Attempt::Initial => ("initial-query".to_owned(), "initial-build".to_owned()),
        Attempt::Repair(n) => (
            format!("repair-query-{n}"),
            format!("repair-query-{n}-build"),
        ),
        // A report has no build; the name is there so that the table is whole.
        Attempt::Report => ("query".to_owned(), "build".to_owned()),
        // The number goes first, so that a folder that is sorted by name tells the story in its order.
        Attempt::Step(n) => (format!("{n:04}-step"), format!("{n:04}-step-tool")),
        Attempt::Audit(n) => (format!("{n:04}-audit"), format!("{n:04}-audit-tool")),
        Attempt::Compression(n) => (
            format!("{n:04}-compression"),
            format!("{n:04}-compression-tool"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_the_contracts() {
        use Artifact::{Build, Output, Query, ResponseJson, ResponseText};
        for (attempt, artifact, expected) in [
            (Attempt::Initial, Query, "initial-query.txt"),
            (Attempt::Initial, ResponseText, "initial-query-response.txt"),
            (
                Attempt::Initial,
                ResponseJson,
                "initial-query-response.json",
            ),
            (Attempt::Initial, Build, "initial-build.txt"),
            (Attempt::Repair(2), Query, "repair-query-2.txt"),
            (
                Attempt::Repair(2),
                ResponseText,
                "repair-query-2-response.txt",
            ),
            (
                Attempt::Repair(2),
                ResponseJson,
                "repair-query-2-response.json",
            ),
            (Attempt::Repair(2), Build, "repair-query-2-build.txt"),
            (Attempt::Report, Query, "query.txt"),
            (Attempt::Report, ResponseText, "query-response.txt"),
            (Attempt::Report, ResponseJson, "query-response.json"),
            (Attempt::Step(1), Query, "0001-step.txt"),
            (Attempt::Step(1), Build, "0001-step-tool.txt"),
            (Attempt::Step(1), Output(1), "0001-step-output.txt"),
            (Attempt::Audit(12), ResponseText, "0012-audit-response.txt"),
            (
                Attempt::Compression(7),
                ResponseJson,
                "0007-compression-response.json",
            ),
        ] {
            assert_eq!(name(attempt, artifact), expected);
        }
    }
}
