//! What the user is told to do with what came of the work. Pure.

use super::branches::{REVIEW_LOG, WORKLOG, in_workspace};
use super::lineage::BranchTracker;
use super::tools::MAX_REVIEWS;
use crate::record::orchestration::OrchestrationStatus;

/// How the work ended, and what there is of it.
#[derive(Debug, Clone, Copy)]
pub struct Handover<'h> {
    /// How it ended.
    pub status: OrchestrationStatus,
    /// The task, in the user's words.
    pub task: &'h str,
    /// The project that the branches are of.
    pub project: &'h str,
    /// The directory of each branch in which the work is, without a slash at its end.
    pub workspace: &'h str,
    /// The branches.
    pub lineage: &'h BranchTracker,
    /// Whether the work was to be published.
    pub publishes: bool,
    /// Whether it was.
    pub is_published: bool,
    /// Whether that was tried in vain, where it is not how the work ended.
    pub is_publishing_failed: bool,
}

impl Handover<'_> {
    /// What to do now, in sentences; with the command that goes on, unless all is done.
    #[must_use]
    pub fn instructions(&self) -> String {
        let (start, latest) = (self.lineage.start(), self.lineage.latest());
        let worklog = in_workspace(self.workspace, WORKLOG);
        let log = in_workspace(self.workspace, REVIEW_LOG);
        let mut told = match (self.status, self.is_published) {
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
            (OrchestrationStatus::Timeout, _) => vec![format!(
                "An agent took too long. The last branch that succeeded is `{latest}`."
            )],
            (OrchestrationStatus::PublishFailed, _) => vec![format!(
                "The work was not published. It is on Pantheon branch `{latest}`: commit and push it from there by \
                 hand, or go on."
            )],
            (OrchestrationStatus::Failed, _) => vec![format!(
                "The work ended early; the run's log tells why. The last branch that succeeded is `{latest}`."
            )],
            (OrchestrationStatus::Interrupted, _) => vec![format!(
                "The work was interrupted. The last branch that succeeded is `{latest}`."
            )],
        };
        if self.status == OrchestrationStatus::Completed {
            return told.join(" ");
        }
        if self.is_publishing_failed {
            told.push("It could not be published, either: `publish_error` tells why.".to_owned());
        }
        if self.is_published {
            told.push(
                "It was published all the same, though no review has passed it: `publish_report` names the GitHub \
                 repository, the branch and the commit."
                    .to_owned(),
            );
        }
        told.extend(self.lineage.working().map(|branch| {
            format!("On Pantheon branch `{branch}` an agent may still be at work: look at it before you go on.")
        }));
        if let Some(agent) = self.lineage.is_starting() {
            told.push(format!(
                "`{}` may have been started on a further branch, whose id is not known: look at the project on the server \
                 before you go on.",
                agent.name()
            ));
        }
        if start == latest {
            told.push("No branch has succeeded yet: to begin again, run".to_owned());
        } else {
            told.push(format!("To go on from `{latest}`, run"));
        }
        format!("{}:\n\n{}", told.join(" "), self.command())
    }

    /// The command that goes on from the last branch that succeeded, for a shell.
    fn command(&self) -> String {
        let mut words = vec![
            "dev-agent",
            "--parent-branch-id",
            self.lineage.latest(),
            "--project-name",
            self.project,
        ];
        if !self.publishes {
            words.push("--no-publish");
        }
        let known = words.len();
        words.extend(["--task", self.task]);
        let command = shlex::try_join(words.iter().copied());
        // A task with a NUL in it is none that a command can have: it is asked for.
        let command = command.or_else(|_| shlex::try_join(words[..known].iter().copied()));
        command.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::branches::Specialist;
    use super::*;
    use OrchestrationStatus::{
        Completed, Failed, Interrupted, IterationLimit, PublishFailed, Timeout,
    };

    const COMMAND: &str = "dev-agent --parent-branch-id b7 --project-name 'my demo' --task ";

    fn instructions(
        status: OrchestrationStatus,
        working: Option<&str>,
        is_published: bool,
    ) -> String {
        let mut lineage = BranchTracker::new("b0");
        lineage.started("b7", "b0", Specialist::Codex);
        lineage.ended();
        lineage.succeeded(Specialist::Codex);
        if let Some(working) = working {
            lineage.started(working, "b7", Specialist::Codex);
        }
        Handover {
            status,
            task: "don't stop",
            project: "my demo",
            workspace: "/w",
            lineage: &lineage,
            publishes: true,
            is_published,
            is_publishing_failed: false,
        }
        .instructions()
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
                PublishFailed,
                None,
                false,
                &["was not published", "`b7`", "by hand"],
            ),
            (Failed, None, false, &["the run's log tells why", "`b7`"]),
            (
                Interrupted,
                Some("b8"),
                false,
                &["interrupted", "`b7`", "On Pantheon branch `b8` an agent"],
            ),
        ] {
            let told = instructions(status, working, is_published);
            for said in expected {
                assert!(told.contains(said), "{status:?}: {told}");
            }
            assert_eq!(
                told.contains("publish_report"),
                is_published,
                "{status:?}: {told}"
            );
            let goes_on = format!("To go on from `b7`, run:\n\n{COMMAND}\"don't stop\"");
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
            let told = Handover {
                status: Failed,
                task,
                project: "demo",
                workspace: "/w",
                lineage: &lineage,
                publishes: false,
                is_published: false,
                is_publishing_failed: false,
            }
            .instructions();
            let expected = format!(
                "No branch has succeeded yet: to begin again, run:\n\n\
                 dev-agent --parent-branch-id b0 --project-name demo {expected}"
            );
            assert!(told.ends_with(&expected), "{told}");
        }
    }
}
