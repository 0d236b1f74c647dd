//! Publishing of the work by an agent, and the check of the agent's report.
//!
//! Only this module puts the token into a prompt. Guarantees that work counts as published only with a repository, a
//! branch and a commit.

use serde_json::{Map, Value};

use super::branches::Specialist;
use super::error::OrchestrateError;
use super::specialists::{FinishedBranch, Specialists};
use crate::agent::AgentError;
use crate::agent::tool::{ToolError, ToolOutput};
use crate::secret::ApiKey;
use crate::sys::text::shell_quoted;

/// The prompt, with placeholders in braces.
const PROMPT: &str = include_str!("../../../prompts/orchestrate_publish.txt").trim_ascii_end();

/// The token and the author for the publishing agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Publishing {
    /// The token for `git push`; `None` in a replay, which pushes nothing.
    pub token: Option<ApiKey>,
    /// The author's name; `None` uses the agent's git configuration.
    pub author_name: Option<String>,
    /// The author's email address; `None` uses the agent's git configuration.
    pub author_email: Option<String>,
}

impl Publishing {
    /// Returns the prompt, including the token, for a task in the user's words and the work directory on each branch.
    pub fn prompt(&self, task: &str, workspace: &str) -> String {
        let token = self.token.as_ref().map_or("", ApiKey::expose);
        // The task is inserted last, so that braces in it are not replaced.
        PROMPT
            .replace("{token}", &shell_quoted(token))
            .replace("{workspace}", workspace)
            .replace("{author}", &self.author())
            .replace("{task}", task)
    }

    fn author(&self) -> String {
        let known = [("name", &self.author_name), ("email", &self.author_email)];
        let settings = known.into_iter().filter_map(|(key, value)| {
            let setting = format!("user.{key}={}", value.as_ref()?);
            Some(format!("`-c {}`", shell_quoted(&setting)))
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

/// Characters that may surround a value in a line of a report.
const MARKS: &[char] = &['*', '`', '_', '"', ' ', '\t'];

/// Checks that a response states where the work was published: in the last JSON object with a `repository` or, without
/// one, in lines such as `branch: fix-login`.
fn check_report(answer: &str) -> Result<(), String> {
    if answer.trim().is_empty() {
        return Err("the agent has given no report".to_owned());
    }
    let report = last_object(answer).unwrap_or_else(|| lines(answer));
    let text = |name: &str| report.get(name).and_then(Value::as_str);
    let is_given = |name| text(name).is_some_and(|value| !value.trim().is_empty());
    let commit = text("commit_hash").or(text("commit")).unwrap_or_default();
    let parts = [
        ("repository", is_given("repository")),
        ("branch", is_given("branch")),
        ("commit hash of 7 to 40 hex digits", is_hash(commit)),
    ];
    match parts.iter().find(|(_, is_there)| !is_there) {
        Some((missing, _)) => Err(format!("the agent's report has no {missing}")),
        None => Ok(()),
    }
}

fn last_object(answer: &str) -> Option<Map<String, Value>> {
    let (mut last, mut rest) = (None, answer);
    while let Some(at) = rest.find('{') {
        let text = rest.get(at..)?;
        let mut objects = serde_json::Deserializer::from_str(text).into_iter();
        let read = objects.next().and_then(Result::ok);
        let length = read.as_ref().map_or(1, |_| objects.byte_offset());
        last = read
            .filter(|object: &Map<String, Value>| object.contains_key("repository"))
            .or(last);
        rest = text.get(length..)?;
    }
    last
}

/// Collects all labelled lines, without Markdown marks around labels and values.
fn lines(answer: &str) -> Map<String, Value> {
    let labelled = answer.lines().filter_map(|line| line.split_once(':'));
    let fields = labelled.map(|(label, value)| {
        let bare = label.trim_matches(|c: char| !c.is_alphabetic());
        let name = bare.to_lowercase().replace(' ', "_");
        (name, value.trim_matches(MARKS).into())
    });
    fields.collect()
}

fn is_hash(value: &str) -> bool {
    (7..=40).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Has the work published from the last branch that succeeded, or waits for the agent that an earlier run has left
/// publishing it. Continues from the new branch, and returns the agent's report.
///
/// # Errors
/// Returns [`ToolError::Failed`] if the agent does not publish the work, does not say where, or exceeds its time limit.
/// Returns [`ToolError::Fatal`] for anything else that ends the work, such as a signal.
pub fn publish(specialists: &Specialists<'_>, prompt: &str) -> Result<ToolOutput, ToolError> {
    const AGENT: Specialist = Specialist::ClaudeCode;
    let publishing = specialists.lineage.borrow().publishing();
    let finished = match publishing {
        Some(waiting) => specialists.take_up(waiting),
        None => specialists.run(AGENT, prompt, true),
    };
    let FinishedBranch { id, response, .. } = match finished {
        Err(ToolError::Fatal(error)) if is_timeout(&error) => {
            return Err(error.to_string().into());
        }
        finished => finished?,
    };
    let checked = check_report(&response);
    checked.map_err(|problem| format!("{problem}, on branch `{id}`"))?;
    specialists.go_on_from_last()?;
    Ok(ToolOutput::text(response))
}

fn is_timeout(error: &AgentError) -> bool {
    matches!(error.host(), Some(OrchestrateError::BranchTimeout { .. }))
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{Scripted, failed_state, running, succeeded};
    use super::*;
    use crate::sys::interrupt::Signal;

    fn publishing() -> Publishing {
        Publishing {
            token: Some(ApiKey::parse(b"ghp_abc").unwrap()),
            ..Publishing::default()
        }
    }

    #[test]
    fn the_prompt_says_all_that_is_to_be_kept_to() {
        let prompt = publishing().prompt("say {token}", "/w");
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
            "`/w/worklog.md` tells what was done",
            "the author that git is configured with",
            "\"repository\"",
            "\"branch\"",
            "\"commit_hash\"",
            "\"worklog\"",
            "\"test_logs\"",
        ] {
            assert!(prompt.contains(said), "{said}");
        }
        let prompt = Publishing {
            author_name: Some("Ada O'Neil".to_owned()),
            author_email: Some("ada@example.org".to_owned()),
            ..publishing()
        }
        .prompt("x", "/w");
        let author = "`-c \"user.name=Ada O'Neil\"` `-c 'user.email=ada@example.org'`.";
        assert!(prompt.contains(author), "{prompt}");
    }

    #[test]
    fn a_report_is_the_last_object_or_lines() {
        const REPORT: &str = r#"{"repository": "https://github.com/acme/demo", "branch": "fix-login", "commit_hash": "0123abc"}"#;
        for answer in [
            REPORT,
            &REPORT.replace("_hash", ""),
            &format!("Pushed `{{}}`.\n\n```json\n{REPORT}\n```\nThat is {{all}}."),
            &format!("{}\n{REPORT}", REPORT.replace("0123abc", "...")),
            &REPORT.replace('}', ", \"logs\": {\"repository\": 1}}"),
            "repository: https://github.com/acme/demo\nbranch: fix-login\ncommit: 0123abc",
            "Published:\n- **Repository:** https://github.com/acme/demo\n- **Branch**: `fix-login`\r\n1. Commit hash: 0123abc",
            &format!("repository: r\nbranch: b\ncommit_hash: {}", "A1".repeat(20)),
        ] {
            assert_eq!(check_report(answer), Ok(()), "{answer}");
        }
    }

    #[test]
    fn a_report_without_one_of_the_three_is_none() {
        let (repository, branch) = (
            "the agent's report has no repository",
            "the agent's report has no branch",
        );
        let hash = "the agent's report has no commit hash of 7 to 40 hex digits";
        let with = |commit: &str| format!("repository: r/x\nbranch: b\ncommit: {commit}");
        for (answer, expected) in [
            (" \n", "the agent has given no report"),
            ("Done, it is pushed.", repository),
            ("branch: b\ncommit: 0123abc", repository),
            ("repository:\nbranch: b\ncommit: 0123abc", repository),
            ("repository: r/x\ncommit: 0123abc", branch),
            ("repository: r/x\nbranch: b", hash),
            (&with("012abc"), hash),
            (&with("pending"), hash),
            (&with(&"a".repeat(41)), hash),
            (
                r#"{"repository": "r/x", "branch": null, "commit": "0123abc"}"#,
                branch,
            ),
            (
                r#"{"repository": "r/x", "branch": "", "commit": "0123abc"}"#,
                branch,
            ),
            // Fields missing in a report are not taken from text elsewhere.
            (
                "{\"repository\": \"r/x\", \"branch\": \"b\"}\ncommit: 0123abc",
                hash,
            ),
            (
                "| Repository | r/x |\n- the branch: b\n- commit: 0123abc",
                repository,
            ),
            (&publishing().prompt("x", "/w"), hash),
        ] {
            assert_eq!(check_report(answer), Err(expected.to_owned()), "{answer}");
        }
    }

    #[test]
    fn the_work_continues_from_where_it_was_published() {
        let answer = "repository: r/x\nbranch: b\ncommit: 0123abc\nworklog: /w/worklog.md";
        let script = Scripted::new([succeeded(answer)]);
        let specialists = script.specialists();
        let published = publish(&specialists, "publish it").unwrap();
        assert_eq!(published.text, answer);
        assert_eq!(specialists.lineage.borrow().latest(), "b1");
    }

    #[test]
    fn failed_publication_leaves_the_lineage_unchanged() {
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
            match publish(&specialists, "publish it").unwrap_err() {
                ToolError::Failed(failure) => assert_eq!(failure.message, expected),
                fatal @ ToolError::Fatal(_) => panic!("{fatal:?}"),
            }
            assert_eq!(specialists.lineage.borrow().latest(), "b0");
        }
        let script = Scripted::new([running()]);
        script.signal.set(Some(Signal::Term));
        let specialists = script.specialists();
        let error = publish(&specialists, "publish it").unwrap_err();
        assert!(
            matches!(error, ToolError::Fatal(AgentError::Interrupted(_))),
            "{error:?}"
        );
    }
}
