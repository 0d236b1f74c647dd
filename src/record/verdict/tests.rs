//! Tests of auditors' answers, and of the verdicts read from them.

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
    let expected = "These checks failed:\n\
        | Tests passing | FAIL | 2 tests failing in auth.spec.ts |\n\n\
        Tests are failing. Please fix the failing tests in auth.spec.ts before completing.";
    assert_eq!(verdict.feedback, expected);
}

#[test]
fn shown_verdict_is_never_empty() {
    for (text, told) in [
        ("Overall: PASS", "The work is accepted."),
        ("Overall: PASS\nFeedback: Well done.", "Well done."),
        ("Overall: PASS\nFeedback: None.", "The work is accepted."),
        ("It builds.\n\nOverall: PASS\nFeedback: none", "It builds."),
        (
            "| Check | Status | Notes |\n|---|---|---|\n| It builds | PASS | build.sh |\n\n\
             Overall: PASS\nFeedback: Well done.",
            "| Check | Status | Notes |\n|---|---|---|\n| It builds | PASS | build.sh |\nWell done.",
        ),
        ("Overall: FAIL\nFeedback: Mend it.", "Mend it."),
    ] {
        assert_eq!(read(text).unwrap().message(), told, "{text}");
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
        ("- Overall : pass", true, ""),
        ("Overall: PASS 🎉!", true, ""),
        (
            "Overall: FAIL\nNo: I looked again.\nOverall: PASS\n",
            true,
            "",
        ),
        (
            "# Agent Response\n\n## Thoughts\nWell done.\n\n## Tool Choice\nDONE\n\n## Tool Input\nOverall: PASS\nFeedback: x",
            true,
            "x",
        ),
        ("Overall: ✅ FAIL\nFeedback: x", false, "x"),
        ("Overall: ❌ PASS\nFeedback: x", false, "x"),
        ("Overall: FAIL/PASS\nFeedback: x", false, "x"),
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
fn ambiguous_text_is_not_a_verdict() {
    for text in [
        "",
        "All is well.",
        "PASS",
        "| Check | Status |\n|---|---|\n| a | PASS |\n",
        "Overall:",
        "Overall: Passed",
        "Overall: PASS/FAIL",
        "Overall: PASS | FAIL",
        "Overall: [PASS|FAIL]",
        "Overall: PASS or FAIL",
        "Overall: not PASS",
        "Overall: does not pass",
        "Overall: PASS?",
        "Overall: PASS (one test FAILED)",
        "Overall: PASS (all 12 tests pass)",
        "Overall: PASS if the tests are run",
        "Overall: PASS, but mind the docs",
        "Overall: PASS WITH RESERVATIONS",
        "Overall: **FAIL**",
        "````\nOverall: FAIL\nFeedback: it says\n```\nOverall: PASS\n```\n````",
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
    ] {
        let verdict = read(text);
        assert!(verdict.is_err(), "{text}: {verdict:?}");
    }
}

#[test]
fn a_check_that_failed_fails_the_whole() {
    for (cell, fails) in [
        ("PASS", false),
        ("✅ PASS", false),
        ("PASS (0 failures)", false),
        ("N/A", false),
        ("", false),
        ("Failed logins are counted", false),
        ("it reports FAIL", false),
        ("FAIL", true),
        ("FAIL (2 tests)", true),
        ("❌ **Fail**", true),
        ("❌", true),
        ("✗ two of them", true),
        ("failed", true),
        ("FAILED: x", true),
    ] {
        let row = format!("| a \\| b | {cell} | why |");
        let text = format!(
            "| Check | **Status** | Notes |\n| :-- | --- | --: |\n{row}\n\nOverall: PASS\n"
        );
        let verdict = read(&text).unwrap();
        assert_eq!(verdict.passed, !fails, "{cell}");
        if fails {
            assert_eq!(verdict.feedback, format!("These checks failed:\n{row}"));
        }
    }
    // A FAIL row counts before or after the verdict, with or without praise, but not in a fence.
    let text =
        "| FAIL | one |\n```\n| quoted | FAIL |\n```\nOverall: PASS\nFeedback: fine\n|two|Fail";
    let verdict = read(text).unwrap();
    let expected = "These checks failed:\n| FAIL | one |\n|two|Fail\n\nfine\n|two|Fail";
    assert_eq!(
        (verdict.passed, verdict.feedback.as_str()),
        (false, expected)
    );
}

#[test]
fn a_failed_row_needs_no_outer_pipes() {
    for (row, fails) in [
        ("Tests | FAIL | 2 of 9 fail", true),
        ("- | a | FAIL |", true),
        ("> | a | FAIL |", true),
        ("│ a │ FAIL │", true),
        ("a | PASS", false),
        ("`make | grep FAIL` prints nothing", false),
        ("Overall: PASS | FAIL", false),
    ] {
        let verdict = read(&format!("{row}\n\nOverall: PASS\n")).unwrap();
        assert_eq!(verdict.passed, !fails, "{row}");
    }
}

proptest! {
    #[test]
    fn nothing_but_a_plain_pass_passes(text in "(Overall|:| |PASS|FAIL|\\||\n|`|~|not|/|Status|a|é|\\*){0,30}") {
        if let Ok(verdict) = read(&text) {
            prop_assert!(verdict.passed || !verdict.feedback.is_empty());
            if verdict.passed {
                let passes = |line: &str| line.contains("Overall") && line.contains("PASS");
                prop_assert!(text.lines().any(passes));
                // Without quotations, the last verdict line counts. A line with only the label is not a verdict.
                let is_one = |line: &&str| {
                    let plain = line.replace("**", "");
                    let behind = plain.trim_start_matches([' ', '*']).strip_prefix("Overall");
                    behind.is_some_and(|rest| rest.trim_start().starts_with(':'))
                };
                if !text.contains("```") && !text.contains("~~~") {
                    prop_assert!(passes(text.lines().rfind(is_one).unwrap_or_default()));
                }
            }
        }
    }
}
