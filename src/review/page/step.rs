//! What came of an agent's call: the tools that it used, or the verdict. Pure.
//!
//! Folders are what anybody may have made of them: what cannot be read is empty.

use crate::model::StepId;
use crate::record::{Action, EditsRecord, Step, verdict};
use crate::review::history::PastAttempt;

/// A tool that an agent has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it failed.
    pub failed: bool,
    /// What it was given.
    pub input: &'a str,
    /// What the model was told of it.
    pub result: &'a str,
}

/// What came of a call that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came<'a> {
    /// Tools were used, in this order.
    Tools(Vec<UsedTool<'a>>),
    /// The work was judged.
    Verdict {
        /// Whether it is accepted.
        passed: bool,
    },
    /// There is a summary of what was said before.
    Summary,
    /// Neither: the reply was not understood, or the run has ended before.
    Nothing,
}

/// Whether the attempt is a call of an agent.
#[must_use]
pub fn is_agents(step: &StepId) -> bool {
    !step.purpose.is_workflows()
}

/// What came of a call of an agent that was answered with `reply`.
#[must_use]
pub fn came_of<'a>(attempt: &'a PastAttempt, reply: &str) -> Came<'a> {
    let tools = tools(attempt);
    if !tools.is_empty() {
        return Came::Tools(tools);
    }
    match attempt.step.purpose.name() {
        "compression" => Came::Summary,
        "audit" => verdict::read(reply).map_or(Came::Nothing, |verdict| Came::Verdict {
            passed: verdict.passed,
        }),
        _ => Came::Nothing,
    }
}

/// The files that a call of an agent has changed, in words.
#[must_use]
pub fn edits(record: Option<&Step>) -> Vec<(&'static str, &str)> {
    let edits = record.and_then(|record| record.edits.as_ref());
    let edits = edits
        .into_iter()
        .flat_map(|EditsRecord { written, removed }| {
            let written = written.iter().map(|path| ("wrote", path.as_str()));
            written.chain(removed.iter().map(|path| ("removed", path.as_str())))
        });
    edits.collect()
}

/// What the agent thought, by its reply.
#[must_use]
pub fn thoughts(reply: &str) -> String {
    let lines = reply
        .lines()
        .skip_while(|line| !is_heading(line, "Thoughts"));
    let thoughts = lines.skip(1).take_while(|line| {
        let ends = ["Thoughts", "Task List", "Tool Choice", "Tool Input"];
        !ends.iter().any(|title| is_heading(line, title))
    });
    thoughts.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn is_heading(line: &str, title: &str) -> bool {
    let text = line.trim_start_matches('#');
    text.len() < line.len() && text.trim().eq_ignore_ascii_case(title)
}

/// The tools that the attempt has used, by its record and the file about them.
fn tools(attempt: &PastAttempt) -> Vec<UsedTool<'_>> {
    let Some(record) = &attempt.record else {
        return unrecorded(attempt).into_iter().collect();
    };
    let tools: &[Action] = &record.actions;
    // The first line is the first tool's name.
    let mut rest = attempt.build.as_ref().map_or("", |(_, text)| text.as_str());
    let mut used = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        let (own, behind) = tools
            .get(at + 1)
            .and_then(|next| split_before(rest, &next.tool))
            .unwrap_or((rest, ""));
        rest = behind;
        let (input, result) = own.split_once("\n[result]\n").unwrap_or((own, ""));
        used.push(UsedTool {
            name: &tool.tool,
            failed: tool.failed,
            input,
            result: result.trim_end_matches('\n'),
        });
    }
    used
}

/// The tool that an attempt has used of a run that was killed: only a record tells of several, and of
/// failures.
fn unrecorded(attempt: &PastAttempt) -> Option<UsedTool<'_>> {
    let (name, text) = attempt.build.as_ref()?;
    let (input, result) = text.split_once("\n[result]\n")?;
    Some(UsedTool {
        name: name.trim().trim_matches(['[', ']']),
        failed: false,
        input,
        result: result.trim_end_matches('\n'),
    })
}

/// What is said before the next tool's name, and what behind it. The name may stand in an input, too: it
/// counts behind a result.
fn split_before<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let result = text.find("\n[result]\n")?;
    let line = format!("\n[{name}]\n");
    let at = result + text.get(result..)?.find(&line)?;
    Some((text.get(..at)?, text.get(at + line.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Purpose;

    fn attempt(tools: &[(&'static str, bool)], text: &str) -> PastAttempt {
        let mut record = Step::new(StepId::new(Purpose::STEP, 1), "m", Vec::new());
        let tools = tools.iter().map(|(name, failed)| Action {
            tool: (*name).into(),
            failed: *failed,
            ..Action::default()
        });
        record.actions = tools.collect();
        let (name, rest) = text.split_once('\n').unwrap_or((text, ""));
        PastAttempt {
            step: StepId::new(Purpose::STEP, 1),
            record: Some(record),
            reply: None,
            build: Some((name.to_owned(), rest.to_owned())),
            changes: Vec::new(),
        }
    }

    fn used(tools: &[(&'static str, bool)], text: &str) -> Vec<(String, String)> {
        let attempt = attempt(tools, text);
        let used = super::tools(&attempt).into_iter();
        used.map(|tool| (tool.input.to_owned(), tool.result.to_owned()))
            .collect()
    }

    #[test]
    fn a_tools_file_holds_each_input_and_result() {
        let pair = |input: &str, result: &str| (input.to_owned(), result.to_owned());
        assert_eq!(
            used(&[("A", false)], "[A]\n\"x\"\n\ny\n[result]\nz\n\n"),
            [pair("\"x\"\n\ny", "z")]
        );
        assert_eq!(
            used(
                &[("A", false), ("B", true), ("B", false)],
                "[A]\nx\n[B]\nx\n[result]\none\n[B]\n\n[result]\n\n[B]\ny\n[result]\nthree\n"
            ),
            [pair("x\n[B]\nx", "one"), pair("", ""), pair("y", "three")]
        );
        assert_eq!(used(&[("A", false)], "damaged"), [pair("", "")]);
        assert_eq!(
            used(&[("A", false), ("B", false)], "[A]\nx"),
            [pair("x", ""), pair("", "")]
        );
        assert_eq!(used(&[], "[A]\nx\n[result]\ny\n"), []);
    }

    #[test]
    fn thoughts_stand_under_their_heading() {
        for (reply, expected) in [
            (
                "# Agent Response\n\n## Thoughts\nOn we\ngo.\n\n## Task List\n",
                "On we\ngo.",
            ),
            (
                "### thoughts\n# Not a section\n## Tool Choice\nA",
                "# Not a section",
            ),
            ("Thoughts\nnone", ""),
            ("", ""),
        ] {
            assert_eq!(thoughts(reply), expected, "{reply:?}");
        }
    }
}
