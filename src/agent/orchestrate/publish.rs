//! Having the work published, and what the agent says of it.
//!
//! The one place where the token goes into a prompt. Guarantees that nothing counts as published without a repository, a
//! branch and a commit.

use std::sync::LazyLock;

use regex::Regex;

use super::branches::Specialist;
use super::specialists::{FinishedBranch, Specialists};
use crate::agent::AgentError;
use crate::agent::tool::ToolError;
use crate::sys::text::regex;

/// The prompt, with names in braces in the place of what differs.
const PROMPT: &str = include_str!("../../../prompts/orchestrate_publish.txt").trim_ascii_end();

/// What the agent that publishes is to know.
#[derive(Clone, Copy)]
pub struct PublishOrder<'o> {
    /// The task, in the user's words.
    pub task: &'o str,
    /// The directory of each branch in which the work is, without a slash at its end.
    pub workspace: &'o str,
    /// By which it may push.
    pub token: &'o str,
    /// The author's name; `None`: as git is configured there.
    pub author_name: Option<&'o str>,
    /// The author's address; `None`: as git is configured there.
    pub author_email: Option<&'o str>,
}

impl PublishOrder<'_> {
    /// The prompt, with the token in it.
    #[must_use]
    pub fn prompt(&self) -> String {
        // The task last: braces in it are its own.
        PROMPT
            .replace("{token}", &quoted(self.token))
            .replace("{workspace}", self.workspace)
            .replace("{author}", &self.author())
            .replace("{task}", self.task)
    }

    fn author(&self) -> String {
        let known = [("name", self.author_name), ("email", self.author_email)];
        let settings = known.into_iter().filter_map(|(key, value)| {
            let setting = format!("user.{key}={}", value?);
            Some(format!("`-c {}`", quoted(&setting)))
        });
        let settings: Vec<String> = settings.collect();
        if settings.is_empty() {
            return "Commit with the author that git is configured with; if there is none, say so and stop."
                .to_owned();
        }
        format!(
            "Commit with this author, by options of `git` in front of `commit`: {}.",
            settings.join(" ")
        )
    }
}

/// As a word of a shell's command.
fn quoted(word: &str) -> String {
    // What has a NUL in it is no word; no variable of an environment has.
    shlex::try_quote(word).unwrap_or_default().into_owned()
}

/// Where the work was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishReport {
    /// The repository, in the agent's words.
    pub repository: String,
    /// The branch.
    pub branch: String,
    /// The hash of its last commit: 7 to 40 hex digits.
    pub commit: String,
}

/// A value with its label, at the beginning of a line or in a JSON object.
static LABELLED: LazyLock<Regex> = LazyLock::new(|| {
    const LABELS: &str = "(?<repository>repo(?:sitory)?(?:[ _-]?url)?)|(?<branch>branch(?:[ _-]?name)?)\
                          |commit(?:[ _-]?(?:hash|sha|id))?|hash|sha";
    regex(&format!(
        r#"(?im)(?:^[ \t>*+|#-]*|[{{,][ \t]*)["'`*_]*(?:git(?:hub)?[ _-]?)?(?:{LABELS})["'`*_]*[ \t]*[:=|]["'`*_ \t]*(?<value>[^\s"'`*,|<>{{}}]+)"#
    ))
});

impl PublishReport {
    /// Finds the report in an agent's answer: as JSON, or as lines such as `branch: fix-login`. Of what is said twice,
    /// the last counts.
    ///
    /// # Errors
    /// What is missing.
    pub fn read(answer: &str) -> Result<Self, String> {
        let [mut repository, mut branch, mut commit] = [None, None, None];
        for found in LABELLED.captures_iter(answer) {
            let value = found["value"].trim_end_matches(['.', ';', ')', ']']);
            let (at, is_fit) = match (found.name("repository"), found.name("branch")) {
                (Some(_), _) => (&mut repository, is_named(value)),
                (_, Some(_)) => (&mut branch, is_named(value)),
                _ => (&mut commit, is_hash(value)),
            };
            if is_fit {
                *at = Some(value.replace("\\/", "/"));
            }
        }
        let missing = |what: &str| match answer.trim() {
            "" => "the agent has given no report".to_owned(),
            _ => format!("the agent's report has no {what}"),
        };
        Ok(Self {
            repository: repository.ok_or_else(|| missing("repository"))?,
            branch: branch.ok_or_else(|| missing("branch"))?,
            commit: commit.ok_or_else(|| missing("commit hash of 7 to 40 hex digits"))?,
        })
    }
}

/// Whether a value is more than a word for nothing.
fn is_named(value: &str) -> bool {
    let nothing = ["", "null", "none", "n/a", "unknown"];
    !nothing.iter().any(|word| value.eq_ignore_ascii_case(word))
}

fn is_hash(value: &str) -> bool {
    (7..=40).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What came of publishing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The branch on which that was done, from which the work goes on.
    pub branch_id: String,
    /// Where the work is now.
    pub report: PublishReport,
    /// The agent's answer, which has more in it: where its logs are.
    pub answer: String,
}

/// Has the work published from the last branch that succeeded.
///
/// # Errors
/// [`AgentError::PublishFailed`] where the agent has not published it, does not say where, or takes too long; and what
/// ends the work else, such as a signal.
pub fn publish(
    specialists: &Specialists<'_>,
    order: &PublishOrder<'_>,
) -> Result<Publication, AgentError> {
    const AGENT: Specialist = Specialist::ClaudeCode;
    let before = specialists.lineage.borrow().records().len();
    let failed = |reason: String| {
        let lineage = specialists.lineage.borrow();
        let branch = lineage.records().get(before);
        AgentError::PublishFailed {
            reason,
            branch: branch.map(|record| record.id.clone()),
        }
    };
    let finished = match specialists.run(AGENT, &order.prompt()) {
        Ok(finished) => finished,
        Err(ToolError::Failed(failure)) => return Err(failed(failure.message)),
        Err(ToolError::Fatal(error @ AgentError::BranchTimeout { .. })) => {
            return Err(failed(error.to_string()));
        }
        Err(ToolError::Fatal(error)) => return Err(error),
    };
    let FinishedBranch { id, response, .. } = finished;
    let report = PublishReport::read(&response)
        .map_err(|problem| failed(format!("{problem}, on branch `{id}`")))?;
    specialists.go_on_from_last(AGENT)?;
    Ok(Publication {
        branch_id: id,
        report,
        answer: response,
    })
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{Scripted, failed_state, running, succeeded};
    use super::*;
    use crate::sys::interrupt::Signal;

    const ORDER: PublishOrder<'static> = PublishOrder {
        task: "say {token}",
        workspace: "/w",
        token: "ghp_abc",
        author_name: None,
        author_email: None,
    };

    #[test]
    fn the_prompt_says_all_that_is_to_be_kept_to() {
        let prompt = ORDER.prompt();
        assert_eq!(prompt.matches("ghp_abc").count(), 1);
        assert!(
            prompt.contains("export GITHUB_TOKEN=ghp_abc\n")
                && prompt.contains("unset GITHUB_TOKEN\n")
        );
        assert!(prompt.ends_with("\n\nsay {token}"));
        for said in [
            "Leave out `worklog.md` and `codex_review.log`",
            "kebab-case",
            "do not ask anything",
            "must not be printed",
            "`/w`",
            "the author that git is configured with",
            "\"repository\"",
            "\"branch\"",
            "\"commit_hash\"",
            "\"worklog\"",
            "\"test_logs\"",
        ] {
            assert!(prompt.contains(said), "{said}");
        }
        let prompt = PublishOrder {
            author_name: Some("Ada O'Neil"),
            author_email: Some("ada@example.org"),
            ..ORDER
        }
        .prompt();
        let author = "`-c \"user.name=Ada O'Neil\"` `-c 'user.email=ada@example.org'`.";
        assert!(prompt.contains(author), "{prompt}");
    }

    #[test]
    fn the_prompts_own_form_is_no_report() {
        let told = PublishReport::read(&ORDER.prompt()).unwrap_err();
        assert_eq!(told, "the agent's report has no repository");
    }

    #[test]
    fn a_report_is_found_in_what_agents_say() {
        let expected = PublishReport {
            repository: "https://github.com/acme/demo".to_owned(),
            branch: "fix-login".to_owned(),
            commit: "0123abc".to_owned(),
        };
        for answer in [
            r#"{"repository": "https://github.com/acme/demo", "branch": "fix-login", "commit_hash": "0123abc"}"#,
            r#"{"repo":"https:\/\/github.com\/acme\/demo","branch":"fix-login","commit":"0123abc","worklog":"/w"}"#,
            "Pushed.\n\n```json\n{\n  \"repository\": \"https://github.com/acme/demo\",\n  \"branch\": \"fix-login\",\n  \
             \"commit_hash\": \"0123abc\"\n}\n```\nBye.",
            "repository: https://github.com/acme/demo\nbranch: fix-login\ncommit: 0123abc",
            "Published:\n- **Repository:** https://github.com/acme/demo\n- **Branch**: `fix-login`\n- Commit hash: 0123abc.",
            "GitHub repository: https://github.com/acme/demo\nGitHub branch: fix-login\nSHA = 0123abc (pushed)",
            "| Repository | https://github.com/acme/demo |\n| Branch | fix-login |\n| Commit | 0123abc |",
            // An echo of what was asked for, and then the answer.
            "{\"repository\": \"...\", \"branch\": \"...\", \"commit_hash\": \"...\"}\nbranch: wip\n\
             repository: https://github.com/acme/demo\nbranch: fix-login\ncommit: 0123abc",
        ] {
            assert_eq!(
                PublishReport::read(answer).as_ref(),
                Ok(&expected),
                "{answer}"
            );
        }
    }

    #[test]
    fn a_report_without_one_of_the_three_is_none() {
        let hash = "the agent's report has no commit hash of 7 to 40 hex digits";
        let with = |commit: &str| format!("repository: r/x\nbranch: b\ncommit: {commit}");
        for (answer, expected) in [
            (String::new(), "the agent has given no report"),
            (
                "Done, it is pushed.".to_owned(),
                "the agent's report has no repository",
            ),
            (
                "branch: b\ncommit: 0123abc".to_owned(),
                "the agent's report has no repository",
            ),
            (
                "repository: r/x\ncommit: 0123abc".to_owned(),
                "the agent's report has no branch",
            ),
            (
                r#"{"repository": "r/x", "branch": null, "commit": "0123abc"}"#.to_owned(),
                "the agent's report has no branch",
            ),
            (
                r#"{"repository": "r/x", "branch": "", "commit": "0123abc"}"#.to_owned(),
                "the agent's report has no branch",
            ),
            (
                "repository:\nbranch: b\ncommit: 0123abc".to_owned(),
                "the agent's report has no repository",
            ),
            ("repository: r/x\nbranch: b".to_owned(), hash),
            (with("012abc"), hash),
            (with("pending"), hash),
            (with(&"a".repeat(41)), hash),
        ] {
            assert_eq!(
                PublishReport::read(&answer).unwrap_err(),
                expected,
                "{answer}"
            );
        }
        assert!(PublishReport::read(&with(&"A1".repeat(20))).is_ok());
    }

    #[test]
    fn the_work_goes_on_from_where_it_was_published() {
        let answer = "repository: r/x\nbranch: b\ncommit: 0123abc\nworklog: /w/worklog.md";
        let script = Scripted::new([succeeded(answer)]);
        let specialists = script.specialists();
        let published = publish(&specialists, &ORDER).unwrap();
        assert_eq!((&*published.branch_id, &*published.answer), ("b1", answer));
        assert_eq!(specialists.lineage.borrow().latest(), "b1");
        assert_eq!(published.report.branch, "b");
    }

    #[test]
    fn what_was_not_published_leaves_the_lineage_as_it_was() {
        for (state, expected) in [
            (
                succeeded("It is pushed."),
                "the agent's report has no repository, on branch `b1`",
            ),
            (
                failed_state("denied"),
                "`claude_code` has failed on branch `b1`; the end of what it says:\ndenied",
            ),
        ] {
            let script = Scripted::new([state]);
            let specialists = script.specialists();
            match publish(&specialists, &ORDER).unwrap_err() {
                AgentError::PublishFailed { reason, branch } => {
                    assert_eq!((&*reason, branch.as_deref()), (expected, Some("b1")));
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(specialists.lineage.borrow().latest(), "b0");
        }
        let script = Scripted::new([running()]);
        script.signal.set(Some(Signal::Term));
        let specialists = script.specialists();
        let error = publish(&specialists, &ORDER).unwrap_err();
        assert!(matches!(error, AgentError::Interrupted(_)), "{error:?}");
    }
}
