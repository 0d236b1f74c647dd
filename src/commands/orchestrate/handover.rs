//! Instructions for the user at the end of an orchestration. Pure.

use super::branches::{REVIEW_LOG, WORKLOG, in_workspace};
use super::lineage::BranchTracker;
use super::specialists::MAX_REVIEWS;
use crate::record::orchestration::{
    OrchestrationRecord, OrchestrationSettings, OrchestrationStatus,
};

/// Writes the instructions for the user: the next step and, unless everything is done, the command to continue. Ignores
/// the `instructions` in the report itself.
pub fn instructions(
    report: &OrchestrationRecord,
    settings: &OrchestrationSettings,
    lineage: &BranchTracker,
) -> String {
    let (status, latest) = (report.status, &report.latest_branch_id);
    let is_published = report.publish_report.is_some();
    // Publishing was refused before it was tried.
    let begun = settings.begun.as_ref();
    let is_refused =
        begun.is_some_and(|begun| begun.publish_only) && report.publish_error.is_none();
    let worklog = in_workspace(&settings.workspace_dir, WORKLOG);
    let log = in_workspace(&settings.workspace_dir, REVIEW_LOG);
    let mut parts = match (status, is_published) {
            (OrchestrationStatus::Completed, true) => vec![
                "A review has passed the work, and it is published: `publish_report` names the GitHub repository, \
                 the branch and the commit. Open a pull request from that branch."
                    .to_owned(),
                format!("Pantheon branch `{latest}` has the workspace; `{worklog}` there tells what was done."),
            ],
            (OrchestrationStatus::Completed, false) => vec![format!(
                "A review has passed the work, and it was not published, as asked. Take it from Pantheon branch \
                 `{latest}`; `{worklog}` there tells what was done."
            )],
            (OrchestrationStatus::IterationLimit, _) => vec![
                format!("{MAX_REVIEWS} reviews came back, and the work was not signed off."),
                format!("Read `{log}` on Pantheon branch `{latest}`, and finish the work by hand or go on with it."),
            ],
            (OrchestrationStatus::Timeout, _) => vec!["An agent took too long.".to_owned()],
            (OrchestrationStatus::PublishFailed, _) if is_refused => vec![format!(
                "The work was not published, since no review has passed it. It is on Pantheon branch `{latest}`; \
                 `{log}` there is the last review's log."
            )],
            (OrchestrationStatus::PublishFailed, _) => vec![format!(
                "The work was not published. It is on Pantheon branch `{latest}`: commit and push it from there by \
                 hand, or go on."
            )],
            (OrchestrationStatus::Failed, _) => {
                vec!["The work ended early; the run's log tells why.".to_owned()]
            }
            (OrchestrationStatus::Interrupted, _) => vec!["The work was interrupted.".to_owned()],
        };
    if status == OrchestrationStatus::Completed {
        return parts.join(" ");
    }
    // An agent that is still publishing after an interrupt is named below.
    let is_said = matches!(
        status,
        OrchestrationStatus::PublishFailed | OrchestrationStatus::Interrupted
    );
    if report.publish_error.is_some() && !is_said {
        parts.push("It could not be published, either: `publish_error` tells why.".to_owned());
    }
    if is_published {
        parts.push(
                "It was published all the same, though no review has passed it: `publish_report` names the GitHub \
                 repository, the branch and the commit."
                    .to_owned(),
            );
    }
    parts.extend(lineage.working().map(|branch| {
            format!("On Pantheon branch `{branch}` an agent may still be at work: look at it before you go on.")
        }));
    let starting = lineage.record.starting.iter();
    parts.extend(starting.map(|agent| format!("{} before you go on.", unknown_branch(agent))));
    let resumes = match status {
        OrchestrationStatus::Interrupted | OrchestrationStatus::Failed => true,
        // Once another agent publishes the work, the late one is no longer waited for.
        OrchestrationStatus::Timeout => lineage.waiting().is_some(),
        _ => false,
    };
    let is_publishing =
        lineage.publishing().is_some() && status == OrchestrationStatus::PublishFailed;
    let is_waited_for = is_publishing || resumes && lineage.working().next().is_some();
    let further = match status {
        _ if is_publishing => Some(("wait for it", "--publish-only")),
        _ if is_waited_for => Some(("wait for it and go on", "--resume")),
        _ if resumes => Some(("go on", "--resume")),
        OrchestrationStatus::PublishFailed if !is_refused => Some(("publish it", "--publish-only")),
        _ => None,
    };
    if let Some((purpose, flag)) = further {
        let command = shlex::try_join(["dev-agent", flag, &report.log]).unwrap_or_default();
        parts.push(format!("To {purpose}, run `{command}`."));
    }
    if is_waited_for {
        parts.push(format!("To go on from `{latest}` without it, run"));
    } else if report.start_branch_id == *latest {
        parts.push("No branch has succeeded yet: to begin again, run".to_owned());
    } else {
        parts.push(format!("To go on from `{latest}`, run"));
    }
    format!("{}:\n\n{}", parts.join(" "), command(report, settings))
}

/// Returns the warning about an agent that may have been started although the call failed.
pub fn unknown_branch(agent: &str) -> String {
    format!(
        "`{agent}` may have been started on a further branch, whose id is not known: look at the project on the server"
    )
}

/// Returns the shell command that continues from the last branch that succeeded.
fn command(report: &OrchestrationRecord, settings: &OrchestrationSettings) -> String {
    let mut words = vec![
        "dev-agent",
        "--parent-branch-id",
        &report.latest_branch_id,
        "--project-name",
        &settings.project_name,
    ];
    if settings.names_model {
        words.extend(["--model", &settings.model]);
    }
    if !settings.publishes {
        words.push("--no-publish");
    }
    let task = ["--task", &report.task];
    let command = shlex::try_join(words.iter().copied().chain(task));
    // A task that contains NUL cannot be an argument; without it, the command asks for the task.
    command
        .or_else(|_| shlex::try_join(words))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::branches::Specialist;
    use super::*;
    use OrchestrationStatus::{
        Completed, Failed, Interrupted, IterationLimit, PublishFailed, Timeout,
    };

    const COMMAND: &str = "dev-agent --parent-branch-id b7 --project-name 'my demo' --task ";

    fn told(
        status: OrchestrationStatus,
        task: &str,
        lineage: &BranchTracker,
        (project, publishes, is_published): (&str, bool, bool),
    ) -> String {
        let report = OrchestrationRecord {
            task: task.to_owned(),
            summary: String::new(),
            status,
            is_finished: status.is_finished(),
            start_branch_id: lineage.record.start_branch_id.clone(),
            latest_branch_id: lineage.latest().to_owned(),
            instructions: String::new(),
            publish_report: is_published.then(String::new),
            publish_pantheon_branch_id: None,
            publish_error: None,
            iterations: 0,
            log: "r1".to_owned(),
            branches: Vec::new(),
        };
        let settings: OrchestrationSettings = serde_json::from_value(serde_json::json!({
            "model": "m", "provider": "azure", "parent_branch_id": "b0", "project_name": project,
            "workspace_dir": "/w", "publishes": publishes,
            "polling": {"initial": 1.0, "max": 2.0, "timeout": 3.0, "factor": 2.0}}))
        .unwrap();
        instructions(&report, &settings, lineage)
    }

    fn told_of(status: OrchestrationStatus, working: Option<&str>, is_published: bool) -> String {
        let mut lineage = BranchTracker::new("b0");
        lineage.started("b7", "b0", Specialist::Codex);
        lineage.ended();
        lineage.succeeded();
        if let Some(working) = working {
            lineage.started(working, "b7", Specialist::Codex);
        }
        if is_published {
            lineage.started("b9", "b7", Specialist::ClaudeCode);
            lineage.ended();
        }
        told(
            status,
            "don't stop",
            &lineage,
            ("my demo", true, is_published),
        )
    }

    #[test]
    fn each_end_has_its_own_instructions() {
        let publish_report =
            "`publish_report` names the GitHub repository, the branch and the commit";
        for (status, working, is_published, expected) in [
            (
                Completed,
                None,
                true,
                &[
                    publish_report,
                    "Open a pull request",
                    "`b7`",
                    "/w/worklog.md",
                ][..],
            ),
            (Completed, None, false, &["not published, as asked", "`b7`"]),
            (
                IterationLimit,
                None,
                true,
                &[
                    "not signed off",
                    "/w/codex_review.log",
                    "`b7`",
                    publish_report,
                ],
            ),
            (
                IterationLimit,
                None,
                false,
                &["not signed off", "/w/codex_review.log", "`b7`"],
            ),
            (
                Timeout,
                Some("b8"),
                true,
                &[
                    "too long",
                    "`b7`",
                    "On Pantheon branch `b8` an agent",
                    publish_report,
                ],
            ),
            (
                Timeout,
                Some("b8"),
                false,
                &["too long", "On Pantheon branch `b8` an agent"],
            ),
            (
                PublishFailed,
                None,
                false,
                &["was not published", "`b7`", "by hand"],
            ),
            (
                Failed,
                None,
                false,
                &["the run's log tells why.", "To go on from `b7`"],
            ),
            (
                Interrupted,
                Some("b8"),
                false,
                &["interrupted", "`b7`", "On Pantheon branch `b8` an agent"],
            ),
        ] {
            let told = told_of(status, working, is_published);
            for said in expected {
                assert!(told.contains(said), "{status:?}: {told}");
            }
            assert_eq!(
                told.contains("publish_report"),
                is_published,
                "{status:?}: {told}"
            );
            let is_waited_for = status == Interrupted || status == Timeout && !is_published;
            let further = match status {
                _ if is_waited_for => "To wait for it and go on, run `dev-agent --resume r1`.",
                Failed => "To go on, run `dev-agent --resume r1`.",
                PublishFailed => "To publish it, run `dev-agent --publish-only r1`.",
                _ => "",
            };
            assert!(told.contains(further), "{told}");
            assert_eq!(told.contains(" r1`"), !further.is_empty(), "{told}");
            let without = if is_waited_for { " without it" } else { "" };
            let goes_on = format!("To go on from `b7`{without}, run:\n\n{COMMAND}\"don't stop\"");
            assert_eq!(
                told.ends_with(&goes_on),
                status != Completed,
                "{status:?}: {told}"
            );
        }
    }

    #[test]
    fn the_command_is_one_for_a_shell() {
        let lineage = BranchTracker::new("b0");
        for (task, expected) in [
            ("build it", "--no-publish --task 'build it'"),
            ("a\n`b` $c", "--no-publish --task 'a\n`b` $c'"),
            ("a\0b", "--no-publish"),
        ] {
            let told = told(Failed, task, &lineage, ("demo", false, false));
            let expected = format!(
                "To go on, run `dev-agent --resume r1`. No branch has succeeded yet: to begin again, run:\n\n\
                 dev-agent --parent-branch-id b0 --project-name demo {expected}"
            );
            assert!(told.ends_with(&expected), "{told}");
        }
    }
}
