//! What an auditor says of the work: a table of checks, `Overall:` and `Feedback:`. Pure.
//!
//! Guarantees that nothing but one plain `Overall: PASS` passes, and that under a check that failed not
//! even that does: an answer that may be read in two ways is none.

mod table;

use self::table::{cells, checks};

/// How the verdict is to be written, for the auditor.
const FORM: &str = "end your answer with a line `Overall: PASS` or a line `Overall: FAIL`, outside code \
                    fences and with nothing behind the word, and a line `Feedback: ...` under it";

/// What an auditor found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the work is accepted.
    pub passed: bool,
    /// The table's rows, in their order.
    pub checks: Vec<Check>,
    /// What is to be done, for whoever did the work. Never blank where the work is not accepted.
    pub feedback: String,
}

impl Verdict {
    /// The verdict of an auditor who has given none.
    #[must_use]
    pub fn unclear(feedback: String) -> Self {
        Self {
            passed: false,
            checks: Vec::new(),
            feedback,
        }
    }

    /// What is told of it to a reader: of work that is accepted, what was looked at, too.
    #[must_use]
    pub fn told(&self) -> String {
        let checks = self.checks.iter().filter(|_| self.passed);
        let mut parts: Vec<String> = checks.map(Check::told).collect();
        parts.extend(Some(self.feedback.clone()).filter(|feedback| !feedback.is_empty()));
        if parts.is_empty() {
            parts.push("The work is accepted.".to_owned());
        }
        parts.join("\n")
    }
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: String,
    /// How it is.
    pub status: Status,
    /// What was seen.
    pub notes: String,
}

impl Check {
    /// Its name, with what was seen.
    fn named(&self) -> String {
        match self.notes.as_str() {
            "" => self.name.clone(),
            notes => format!("{} ({notes})", self.name),
        }
    }

    fn told(&self) -> String {
        let status = match self.status {
            Status::Pass => "PASS",
            Status::Fail => "FAIL",
            Status::Other => "----",
        };
        format!("{status} {}", self.named())
    }
}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Well.
    Pass,
    /// Not well.
    Fail,
    /// Neither is said: it was passed over, or the word is another.
    Other,
}

/// Reads an auditor's answer.
///
/// # Errors
/// What is missing or unclear, for the auditor.
pub fn read(text: &str) -> Result<Verdict, String> {
    let lines = unfenced(text);
    let last = lines
        .iter()
        .rposition(|line| line.is_outside && overall_value(line.text).is_some());
    let Some(at) = last else {
        return Err(format!("there is no `Overall:` line: {FORM}"));
    };
    let (before, rest) = lines.split_at(at);
    let line = rest.first().map(|line| line.text).unwrap_or_default();
    let said = overall_value(line)
        .as_deref()
        .and_then(overall)
        .ok_or_else(|| {
            format!(
                "`{}` does not say plainly whether the work passes: {FORM}",
                line.trim().escape_debug()
            )
        })?;
    let values = before.iter().filter(|line| line.is_outside);
    let mut values = values.filter_map(|line| overall(&overall_value(line.text)?));
    if said && values.any(|earlier| !earlier) {
        return Err(format!("it says both PASS and FAIL: {FORM}"));
    }
    let behind = rest.get(1..).unwrap_or_default();
    let checks = checks(&lines);
    let failed: Vec<&Check> = checks
        .iter()
        .filter(|check| check.status == Status::Fail)
        .collect();
    let passed = said && failed.is_empty();
    let mut feedback = feedback(behind);
    if said && !passed {
        // Whoever reads a praise must learn why the work comes back.
        feedback.insert_str(0, &format!("{}\n", failures(&failed)));
        feedback.truncate(feedback.trim_end().len());
    } else if !feedback.is_empty() && !failed.is_empty() {
        feedback.push_str(&format!("\n\n{}", failures(&failed)));
    }
    if !passed && feedback.is_empty() {
        feedback = if failed.is_empty() {
            prose(before)
        } else {
            failures(&failed)
        };
    }
    if !passed && feedback.is_empty() {
        return Err(format!("there is no feedback to work by: {FORM}"));
    }
    Ok(Verdict {
        passed,
        checks,
        feedback,
    })
}

/// A line of the answer.
#[derive(Debug, Clone, Copy)]
struct Line<'t> {
    text: &'t str,
    /// Whether it stands outside code fences.
    is_outside: bool,
}

/// The lines, and which stand in fences; of an answer that is one fenced block, the lines in it.
fn unfenced(text: &str) -> Vec<Line<'_>> {
    let text = text.trim_matches(['\n', '\r', ' ', '\u{feff}']);
    let lines = marked(text.lines());
    let is_one_block = lines.len() > 2
        && lines.iter().all(|line| !line.is_outside)
        && lines.last().is_some_and(|last| fence(last.text).is_some());
    if !is_one_block {
        return lines;
    }
    let inner = lines.get(1..lines.len() - 1).unwrap_or_default();
    let fences = inner.iter().any(|line| is_bare_fence(line.text));
    // Blocks in a row are not one block.
    if fences {
        return lines;
    }
    marked(inner.iter().map(|line| line.text))
}

fn marked<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<Line<'t>> {
    let mut open: Option<(char, usize)> = None;
    let mut marked = Vec::new();
    for text in lines {
        let found = fence(text);
        let is_outside = open.is_none() && found.is_none();
        match (open, found) {
            (None, Some(opened)) => open = Some(opened),
            (Some((mark, length)), Some(closing))
                if closing.0 == mark && closing.1 >= length && is_bare_fence(text) =>
            {
                open = None;
            }
            _ => {}
        }
        marked.push(Line { text, is_outside });
    }
    marked
}

/// The mark of a line that is a code fence, and how many there are.
fn fence(line: &str) -> Option<(char, usize)> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let rest = line.get(length..).unwrap_or_default();
    (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some((mark, length))
}

/// Whether the line is a fence that can close a block.
fn is_bare_fence(line: &str) -> bool {
    let bare = line.trim();
    fence(line).is_some_and(|(mark, _)| bare.chars().all(|c| c == mark))
}

/// What stands behind `Overall:`.
fn overall_value(line: &str) -> Option<String> {
    labelled(line, "overall")
}

/// What stands behind a label and its colon, less the marks of bold text.
fn labelled(line: &str, label: &str) -> Option<String> {
    let plain = line.replace("**", "").replace("__", "");
    let plain = plain
        .trim_start_matches(['#', '-', '*', '_', ' ', '\t'])
        .trim();
    let (start, rest) = plain.split_at_checked(label.len())?;
    let value = rest.trim_start().strip_prefix(':')?;
    start
        .eq_ignore_ascii_case(label)
        .then(|| value.trim().to_owned())
}

/// What a plain word says, with or without a mark that says the same.
fn overall(value: &str) -> Option<bool> {
    let marks = Marks::of(value);
    let words = words(value);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let has_odd = value.contains(['|', '/', '[', '{', '<', '?', '~', '`']);
    match words.as_slice() {
        ["PASS" | "PASSED"] if !marks.bad && !has_odd => Some(true),
        // A reason behind a failure makes it none the less one.
        ["FAIL" | "FAILED", rest @ ..] if !marks.good && !has_odd => {
            let is_clear = !rest.iter().any(|word| word.starts_with("PASS"));
            is_clear.then_some(false)
        }
        _ => None,
    }
}

/// The words in capitals.
fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_uppercase)
        .collect()
}

/// Signs that stand for a word.
struct Marks {
    good: bool,
    bad: bool,
}

impl Marks {
    fn of(text: &str) -> Self {
        Self {
            good: text.contains(['✅', '✓', '✔', '☑', '🟢']),
            bad: text.contains(['❌', '✗', '✘', '✖', '❎', '🔴']),
        }
    }
}

/// What stands behind `Feedback:`, to the end; without that, all that is there.
fn feedback(lines: &[Line<'_>]) -> String {
    let start = lines
        .iter()
        .position(|line| line.is_outside && labelled(line.text, "feedback").is_some());
    let Some(start) = start else {
        return prose(lines);
    };
    let (_, rest) = lines.split_at(start);
    let first = rest.first();
    let first = first.and_then(|line| labelled(line.text, "feedback"));
    let below = rest.get(1..).unwrap_or_default();
    format!("{}\n{}", first.unwrap_or_default(), joined(below))
        .trim()
        .to_owned()
}

/// The lines that are no table's.
fn prose(lines: &[Line<'_>]) -> String {
    let is_prose = |line: &&Line<'_>| !line.is_outside || cells(line.text).is_none();
    let lines: Vec<Line<'_>> = lines.iter().filter(is_prose).copied().collect();
    joined(&lines).trim().to_owned()
}

fn joined(lines: &[Line<'_>]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.text).collect();
    lines.join("\n")
}

/// `These checks failed: …`.
fn failures(failed: &[&Check]) -> String {
    let named: Vec<String> = failed.iter().map(|check| check.named()).collect();
    format!("These checks failed: {}.", named.join("; "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLE: &str = "\
| Check | Status | Notes |
|-------|--------|-------|
| File created | PASS | src/auth.ts exists |
| JWT implemented | PASS | Using jsonwebtoken |
| Tests passing | FAIL | 2 tests failing in auth.spec.ts |

Overall: FAIL
Feedback: Tests are failing. Please fix the failing tests in auth.spec.ts before completing.
";

    #[test]
    fn the_specifications_sample_is_read() {
        let verdict = read(SAMPLE).unwrap();
        assert!(!verdict.passed);
        assert_eq!(verdict.checks.len(), 3);
        assert_eq!(
            verdict.checks[2],
            Check {
                name: "Tests passing".into(),
                status: Status::Fail,
                notes: "2 tests failing in auth.spec.ts".into(),
            }
        );
        assert!(verdict.feedback.starts_with("Tests are failing."));
        let rows = "before completing.\n\nThese checks failed: Tests passing (2 tests failing in auth.spec.ts).";
        assert!(verdict.feedback.ends_with(rows), "{}", verdict.feedback);
    }

    #[test]
    fn a_reader_is_told_what_was_looked_at_and_never_nothing() {
        for (text, told) in [
            ("Overall: PASS", "The work is accepted."),
            ("Overall: PASS\nFeedback: Well done.", "Well done."),
            (
                "| Check | Status | Notes |\n|---|---|---|\n| It builds | PASS | build.sh |\n| Docs | SKIPPED | |\n\n\
                 Overall: PASS\nFeedback: Well done.",
                "PASS It builds (build.sh)\n---- Docs\nWell done.",
            ),
            ("Overall: FAIL\nFeedback: Mend it.", "Mend it."),
        ] {
            assert_eq!(read(text).unwrap().told(), told, "{text}");
        }
    }

    #[test]
    fn overall_decides_where_it_is_plain() {
        for (text, passed, feedback) in [
            ("Overall: PASS", true, ""),
            ("overall: pass\n", true, ""),
            ("**Overall: PASS**", true, ""),
            ("**Overall:** PASS.", true, ""),
            ("## Overall: ✅ **PASS**", true, ""),
            ("- Overall : Passed", true, ""),
            (
                "Looks right.\r\n\r\nOverall: PASS\r\nFeedback: none\r\n",
                true,
                "none",
            ),
            ("```\nOverall: PASS\n```", true, ""),
            (
                "```markdown\nAll well.\n\nOverall: PASS\nFeedback: good\n```\n",
                true,
                "good",
            ),
            (
                "Overall: FAIL\nFeedback: a\n\nb\n```\nc\n```",
                false,
                "a\n\nb\n```\nc\n```",
            ),
            ("Overall: ❌ FAIL\n**Feedback:** a", false, "a"),
            ("Overall: FAIL - two tests\nFeedback:\na", false, "a"),
            ("Overall: FAIL\nFix it.", false, "Fix it."),
            (
                "Nothing was done.\n\nOverall: FAIL",
                false,
                "Nothing was done.",
            ),
            ("Feedback: do it\nOverall: FAIL", false, "Feedback: do it"),
            (
                "Overall: PASS\nWait.\nOverall: FAIL\nFeedback: x",
                false,
                "x",
            ),
            (
                "Template:\n```\nOverall: FAIL\n```\nOverall: PASS",
                true,
                "",
            ),
            (
                "Overall: PASS\nFeedback: the file says\n```\nOverall: FAIL\n```",
                true,
                "the file says\n```\nOverall: FAIL\n```",
            ),
        ] {
            let verdict = read(text);
            let got = verdict.as_ref().map(|v| (v.passed, v.feedback.as_str()));
            assert_eq!(got, Ok((passed, feedback)), "{text}");
        }
    }

    #[test]
    fn what_may_be_read_in_two_ways_is_no_verdict() {
        for text in [
            "",
            "All is well.",
            "PASS",
            "| Check | Status |\n|---|---|\n| a | PASS |\n",
            "Overall:",
            "Overall: PASS/FAIL",
            "Overall: PASS | FAIL",
            "Overall: [PASS|FAIL]",
            "Overall: PASS or FAIL",
            "Overall: not PASS",
            "Overall: does not pass",
            "Overall: PASS?",
            "Overall: PASS, but one test fails",
            "Overall: ❌ PASS",
            "Overall: ✅ FAIL\nFeedback: x",
            "Overall: FAIL/PASS\nFeedback: x",
            "Overall: ~~PASS~~",
            "Overall: good",
            "Overall: FAIL",
            "Overall PASS",
            "The Overall: PASS",
            "> Overall: PASS",
            "`Overall: PASS`",
            "The file says:\n```\nOverall: PASS\n```\n",
            "```\nOverall: PASS",
            "```\na\n```\n```\nOverall: PASS\n```",
            "Overall: PASS\nOverall: PASS | FAIL",
            "Overall: FAIL\nNo: I looked again.\nOverall: PASS\n",
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.contains("`Overall: PASS`"), "{text}: {problem}");
        }
    }

    #[test]
    fn a_check_that_failed_fails_the_whole() {
        for (cell, expected) in [
            ("PASS", Status::Pass),
            ("**pass**", Status::Pass),
            ("✅ PASS", Status::Pass),
            ("✅", Status::Pass),
            ("Passed", Status::Pass),
            ("PASS (0 failures)", Status::Pass),
            ("PASS (10 failures)", Status::Fail),
            ("FAIL", Status::Fail),
            ("❌ **Fail**", Status::Fail),
            ("❌", Status::Fail),
            ("failed", Status::Fail),
            ("NOT PASSED", Status::Fail),
            ("PARTIAL FAIL", Status::Fail),
            ("N/A", Status::Other),
            ("skipped", Status::Other),
            ("", Status::Other),
            ("almost pass", Status::Other),
        ] {
            let text = format!(
                "| Check | **Status** | Notes |\n| :-- | --- | --: |\n| a \\| b | {cell} | why |\n\nOverall: PASS\n"
            );
            let verdict = read(&text).unwrap();
            let check = &verdict.checks[0];
            assert_eq!(
                (check.name.as_str(), check.status),
                ("a | b", expected),
                "{cell}"
            );
            assert_eq!(verdict.passed, expected != Status::Fail, "{cell}");
            if !verdict.passed {
                assert_eq!(verdict.feedback, "These checks failed: a | b (why).");
            }
        }
    }

    #[test]
    fn tables_are_told_apart_and_moved_cells_do_not_hide_a_failure() {
        let text = "\
| File | Size |
|---|---|
| a | FAIL |

| Status | Requirement |
|---|---|
| PASS | one |
| FAIL | two |

| Check | Status |
|---|---|
| a | b works | FAIL | x |

```
| Check | Status |
|---|---|
| quoted | FAIL |
```
Overall: PASS
Feedback: fine
";
        let verdict = read(text).unwrap();
        let names: Vec<(&str, Status)> = verdict
            .checks
            .iter()
            .map(|check| (check.name.as_str(), check.status))
            .collect();
        let expected = [
            ("one", Status::Pass),
            ("two", Status::Fail),
            ("a", Status::Fail),
        ];
        assert_eq!(names, expected);
        assert_eq!(verdict.feedback, "These checks failed: two; a.\nfine");
    }

    proptest! {
        #[test]
        fn nothing_but_a_plain_pass_passes(text in "(Overall|:| |PASS|FAIL|\\||\n|`|~|not|/|Status|a|é|\\*){0,30}") {
            if let Ok(verdict) = read(&text) {
                prop_assert!(verdict.passed || !verdict.feedback.is_empty());
                if verdict.passed {
                    prop_assert!(text.contains("PASS"));
                    prop_assert!(verdict.checks.iter().all(|check| check.status != Status::Fail));
                }
            }
        }
    }
}
