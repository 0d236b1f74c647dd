//! The final report of the model that leads the work, and the conditions for accepting it.
//!
//! Reads one file on a branch. Guarantees that work counts as done only if the last run that succeeded is a review
//! whose log reports no issues.

use serde::Deserialize;
use serde_json::{Value, json};

use super::branches::{REVIEW_LOG, Specialist};
use super::review::verdict_of;
use super::specialists::Specialists;
use crate::agent::protocol::object;
use crate::agent::tool::ToolError;
use crate::agent::{AgentError, Objection, schema};
use crate::record::branches::ReviewVerdict;

/// The model's final report.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FinalReport {
    /// The summary of the work.
    pub summary: String,
    is_finished: bool,
}

impl FinalReport {
    /// Parses a report: a JSON object, alone or in one code fence.
    ///
    /// # Errors
    /// Returns a description of the mistake, for the model.
    pub fn read(reply: &str) -> Result<Self, String> {
        let text = json!({"type": "string"});
        let form = json!({"type": "object", "required": ["is_finished", "task", "summary"],
            "properties": {"is_finished": {"type": "boolean"}, "task": text, "summary": text}});
        let read = object::read(reply)
            .map_err(|fault| fault.to_string())
            .and_then(|object| schema::read(&Value::Object(object), &form));
        let problem = match read {
            Ok(Self {
                is_finished: false, ..
            }) => "`is_finished` is false".to_owned(),
            Ok(report) if report.summary.trim().is_empty() => "`summary` is empty".to_owned(),
            Ok(report) => return Ok(report),
            Err(problem) => problem,
        };
        Err(format!(
            "it is neither a tool call nor the final report ({problem}); go on with a tool call, or, where the last \
             review is clean, reply with {{\"is_finished\": true, \"task\": \"...\", \"summary\": \"...\"}} and \
             nothing else"
        ))
    }
}

/// Checks that a review has passed the work, before the model's final report is accepted. If no review has, the report
/// is treated as a malformed reply.
///
/// # Errors
/// Returns the objection to the report, or an error from reading the review's log that ends the work.
pub fn ending(specialists: &Specialists<'_>) -> Result<(), Objection> {
    let message = |(why, advice)| format!("the report does not count: {why}{advice}");
    let missing = missing_review(specialists).map_err(Objection::Over)?;
    missing.map_or(Ok(()), |missing| Err(message(missing).into()))
}

/// Returns the reason why no review has passed the work, with advice for the model; `None` if a review has.
///
/// # Errors
/// Fails with errors from reading the review's log that end the work.
pub fn missing_review(
    specialists: &Specialists<'_>,
) -> Result<Option<(String, &'static str)>, AgentError> {
    let lineage = specialists.lineage.borrow().clone();
    let branch = match lineage.last_success() {
        Some((Specialist::Codex, branch)) => branch,
        Some((agent, branch)) => {
            let (agent, reviewer) = (agent.into_str(), Specialist::Codex.into_str());
            let why = format!(
                "the last run that succeeded, on branch `{branch}`, is by `{agent}`, and no review by `{reviewer}`"
            );
            return Ok(Some((why, "; have the change reviewed")));
        }
        None => {
            let advice = "; have the task implemented and the change reviewed";
            return Ok(Some(("no run has succeeded".to_owned(), advice)));
        }
    };
    let log = match specialists.read(branch, REVIEW_LOG) {
        Ok(log) => log,
        Err(ToolError::Fatal(error)) => return Err(error),
        Err(ToolError::Failed(failure)) => {
            let why = format!(
                "the review's log, `{REVIEW_LOG}` on branch `{branch}`, cannot be read: {failure}"
            );
            return Ok(Some((why, "")));
        }
    };
    Ok(match verdict_of(&log) {
        Some(ReviewVerdict::Clean) | None => None,
        Some(ReviewVerdict::Issues) => Some((
            format!(
                "the log of the last review, `{REVIEW_LOG}` on branch `{branch}`, does not say `VERDICT: CLEAN` \
                 without P0 or P1 findings"
            ),
            "; read it with `read_artifact`, have its P0 and P1 findings fixed, and have the change reviewed again",
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{Scripted, failed_state, succeeded};
    use super::*;

    const REPORT: &str = r#"{"is_finished": true, "task": "t", "summary": "s"}"#;

    #[test]
    fn a_report_is_an_object_alone_or_in_a_fence() {
        let fenced = format!("```json\n{REPORT}\n```");
        let more = REPORT.replace('}', ", \"reviews\": 2}");
        for reply in [REPORT, &fenced, &format!(" \n{REPORT}\n"), &more] {
            let report = FinalReport::read(reply).unwrap();
            assert_eq!(report.summary, "s", "{reply}");
        }
        for (reply, problem) in [
            ("I am done.".to_owned(), "does not begin with `{`"),
            (format!("Done: {REPORT}"), "does not begin with `{`"),
            (
                format!("{REPORT}\nThat is all."),
                "text follows the JSON object",
            ),
            (format!("{REPORT}{REPORT}"), "a second JSON object"),
            (REPORT.replace("true", "false"), "`is_finished` is false"),
            (
                REPORT.replace("true", "\"true\""),
                "`is_finished` must be a JSON boolean",
            ),
            (
                REPORT.replace("\"s\"", "3"),
                "`summary` must be a JSON string",
            ),
            (r#"{"is_finished": true}"#.to_owned(), "needs `task`"),
            (r#"{"is_finished": true, "#.to_owned(), "is no JSON object"),
            ("[true]".to_owned(), "does not begin with `{`"),
            (String::new(), "is empty"),
        ] {
            let told = FinalReport::read(&reply).unwrap_err();
            assert!(told.contains(problem), "{reply}: {told}");
            assert!(told.contains("\"is_finished\": true, "), "{told}");
        }
    }

    /// Checks a final report after runs of these agents, with this log of the review.
    fn objection(runs: &[(Specialist, bool)], log: Option<&'static str>) -> Result<(), String> {
        let states = runs.iter().map(|(_, succeeds)| match succeeds {
            true => succeeded(""),
            false => failed_state(""),
        });
        let script = Scripted::new(states);
        let files = log.map(|log| ("/w/codex_review.log", log));
        script.files.replace(files.into_iter().collect());
        let specialists = script.specialists();
        for (agent, succeeds) in runs {
            assert_eq!(specialists.execute(*agent, "x", "").is_ok(), *succeeds);
        }
        match ending(&specialists) {
            Ok(()) => Ok(()),
            Err(Objection::Words(told)) => Err(told.problem),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_report_counts_only_after_a_review_that_passes_the_work() {
        use Specialist::{ClaudeCode, Codex};
        let implemented = (ClaudeCode, true);
        let reviewed = (Codex, true);
        for (runs, log, expected) in [
            (&[implemented, reviewed][..], Some("VERDICT: CLEAN"), ""),
            (&[implemented, reviewed], Some("No findings."), ""),
            // A failed run has changed nothing.
            (
                &[implemented, reviewed, (ClaudeCode, false)],
                Some("VERDICT: CLEAN"),
                "",
            ),
            (&[], None, "no run has succeeded"),
            (&[(ClaudeCode, false)], None, "no run has succeeded"),
            (
                &[implemented],
                None,
                "on branch `b1`, is by `claude_code`, and no review",
            ),
            (
                &[implemented, (Codex, false)],
                None,
                "on branch `b1`, is by `claude_code`",
            ),
            (
                &[reviewed, implemented],
                Some("VERDICT: CLEAN"),
                "on branch `b2`, is by `claude_code`",
            ),
            (
                &[implemented, reviewed],
                Some("VERDICT: ISSUES"),
                "`codex_review.log` on branch `b2`, does not say",
            ),
            (&[implemented, reviewed], None, "cannot be read: "),
        ] {
            let told = objection(runs, log).err().unwrap_or_default();
            assert!(told.contains(expected), "{runs:?}: {told}");
            assert_eq!(told.is_empty(), expected.is_empty(), "{runs:?}: {told}");
        }
    }
}
