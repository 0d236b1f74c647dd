//! Runs specialists, each on a separate branch, and waits until they have finished.
//!
//! Uses the clock and sleeps only through its dependencies. Guarantees that the lineage is reported before each wait
//! and after each run, and that a response is of bounded length and contains no known key.

use std::cell::RefCell;
use std::time::Duration;

use super::branches::{BranchProgress, BranchState, REVIEW_LOG, Specialist, in_workspace};
use super::error::OrchestrateError;
use super::lineage::BranchTracker;
use super::pantheon::{MAY_BE_AT_WORK, Pantheon, ParentState, failed};
use super::review::verdict_of;
use crate::agent::AgentError;
use crate::agent::tool::ToolError;
use crate::record::branches::BranchRecord;
use crate::record::event::Event;
use crate::record::orchestration::Polling;
use crate::sys::environment::Clock;
use crate::sys::excerpt::text::{bounded, tail_of};
use crate::sys::interrupt::Interrupted;

/// The maximum length of a response or a file, in bytes: eight rounds of both fit into a context window of 128,000
/// tokens.
const LONGEST_TEXT: usize = 12 << 10;
/// The maximum number of reviews.
pub const MAX_REVIEWS: u32 = 8;
/// The number of consecutive failed polls that ends the wait.
const POLL_TRIES: u32 = 5;
/// The maximum length of a failed agent's response in an error, in bytes.
const END: usize = 4 << 10;

/// Observes the specialists, and sleeps between polls.
pub trait Watcher {
    /// Receives an event.
    fn event(&self, event: &Event);

    /// Receives the lineage after a change: an agent is starting, has started or has ended, or the work continues from
    /// another branch.
    ///
    /// # Errors
    /// Fails if the change cannot be saved.
    fn changed(&self, lineage: &BranchTracker) -> Result<(), AgentError>;

    /// Sleeps for this duration.
    ///
    /// # Errors
    /// Fails if a signal arrives.
    fn sleep(&self, duration: Duration) -> Result<(), Interrupted>;
}

/// The result of an agent that has succeeded on a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedBranch {
    /// The branch's id.
    pub id: String,
    /// The branch's last status.
    pub status: String,
    /// The agent's response, without known keys and no longer than [`LONGEST_TEXT`].
    pub response: String,
}

/// The specialists and their branches.
pub struct Specialists<'a> {
    /// The server that hosts the branches.
    pub branches: Pantheon<'a>,
    /// Observes the work.
    pub watcher: &'a dyn Watcher,
    /// Measures how long an agent takes.
    pub clock: &'a dyn Clock,
    /// The intervals between polls of a branch, and the time limit.
    pub polling: Polling,
    /// The project that the branches belong to.
    pub project: &'a str,
    /// The work directory on each branch, without a trailing slash.
    pub workspace: &'a str,
    /// The branches so far.
    pub lineage: RefCell<BranchTracker>,
    /// `true` if the state of a branch is queried before it is cloned; runs recorded by older versions did not do so.
    pub asks_parents: bool,
    /// The time when the work began.
    pub started: Duration,
}

impl Specialists<'_> {
    /// Has an agent work on a clone of the last branch that succeeded, and continues the work from the clone. `parent`
    /// is the id of the branch to clone, or blank for that branch.
    ///
    /// # Errors
    /// Same as for [`run`](Self::run); also fails, before anything is started, if `parent` is any other branch.
    pub fn execute(
        &self,
        agent: Specialist,
        prompt: &str,
        parent: &str,
    ) -> Result<FinishedBranch, ToolError> {
        let checked = self.lineage.borrow().check_parent(parent);
        checked.map_err(ToolError::Failed)?;
        let finished = self.run(agent, prompt, false)?;
        self.go_on_from_last()?;
        Ok(finished)
    }

    /// Has an agent work on a clone of the last branch that succeeded, or publish it. The work does not continue from
    /// the clone.
    ///
    /// # Errors
    /// Returns [`ToolError::Failed`] if it is not certain that an agent has started, the agent has failed, or the
    /// server does not report its state. Returns [`ToolError::Fatal`] if the agent exceeds its time limit, or a signal
    /// arrives. An agent that may still be working is still recorded as waited for.
    pub fn run(
        &self,
        agent: Specialist,
        prompt: &str,
        publishes: bool,
    ) -> Result<FinishedBranch, ToolError> {
        let parent = self.lineage.borrow().latest().to_owned();
        let before = self.before(&parent)?;
        // Recorded before the call, so that a kill does not hide an agent that may have started.
        self.lineage.borrow_mut().starting(agent, publishes);
        self.report_change()?;
        let started = self.branches.start(agent, prompt, &parent, self.project);
        if !matches!(started, Err(ToolError::Fatal(_))) {
            let record = &mut self.lineage.borrow_mut().record;
            (record.starting, record.publishes) = (None, false);
        }
        let id = started?;
        let began = self.clock.elapsed();
        if self.lineage.borrow().has(&id) {
            let message = format!(
                "the server named `{id}` as the new branch, but that branch existed before"
            );
            return Err(failed("no_new_branch", message, MAY_BE_AT_WORK));
        }
        self.lineage.borrow_mut().started(&id, &parent, agent);
        self.lineage.borrow_mut().record.publishes = publishes;
        self.report_change()?;
        self.reported(self.wait_for(&id, agent, began, before.as_ref()))
    }

    /// Waits for the agent that an earlier run has left working. The work does not continue from its branch.
    ///
    /// # Errors
    /// Same as for [`run`](Self::run).
    pub fn take_up(
        &self,
        (agent, last): (Specialist, BranchRecord),
    ) -> Result<FinishedBranch, ToolError> {
        let before = self.before(&last.parent)?;
        let began = self.clock.elapsed();
        self.reported(self.wait_for(&last.id, agent, began, before.as_ref()))
    }

    /// Queries the state of a branch that is about to be cloned.
    fn before(&self, parent: &str) -> Result<Option<ParentState>, ToolError> {
        let asked = self.asks_parents.then(|| self.branches.parent(parent));
        Ok(asked.transpose()?.flatten())
    }

    /// Reports the change at the end of a wait, successful or not.
    fn reported<T>(&self, done: Result<T, ToolError>) -> Result<T, ToolError> {
        let reported = self.report_change();
        let finished = done?;
        reported?;
        Ok(finished)
    }

    /// Continues the work from the branch on which the last agent was started.
    ///
    /// # Errors
    /// Fails if the change cannot be saved.
    pub fn go_on_from_last(&self) -> Result<(), AgentError> {
        self.lineage.borrow_mut().succeeded();
        self.report_change()
    }

    /// Reads a file on a branch, neither shortened nor redacted. A relative path starts at the workspace. If the file
    /// is a review's log, records the verdict in it.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn read(&self, branch: &str, path: &str) -> Result<String, ToolError> {
        let path = in_workspace(self.workspace, path);
        let content = self.branches.read(branch, &path)?;
        if path == in_workspace(self.workspace, REVIEW_LOG)
            && let Some(verdict) = verdict_of(&content)
            && self.lineage.borrow_mut().reviewed(branch, verdict)
        {
            self.report_change()?;
        }
        Ok(content)
    }

    fn wait_for(
        &self,
        id: &str,
        agent: Specialist,
        began: Duration,
        parent: Option<&ParentState>,
    ) -> Result<FinishedBranch, ToolError> {
        let [mut delay, longest, timeout] =
            [self.polling.initial, self.polling.max, self.polling.timeout].map(|time| time.0);
        let (mut last, mut failures) = (String::new(), 0);
        loop {
            let state = self.branches.state(id, parent);
            let waited = self.clock.elapsed().saturating_sub(began);
            let state = match state {
                // A failed poll does not mean that the agent has stopped working.
                Err(ToolError::Failed(_)) if failures + 1 < POLL_TRIES => {
                    failures += 1;
                    BranchState {
                        status: std::mem::take(&mut last),
                        ..BranchState::default()
                    }
                }
                Err(error) => return Err(self.unknown(id, agent, error)),
                Ok(state) => {
                    failures = 0;
                    state
                }
            };
            self.lineage.borrow_mut().seen(&state.status, waited);
            if state.progress != BranchProgress::Running {
                self.lineage.borrow_mut().ended();
                self.watcher.event(&Event::BranchEnded {
                    agent: agent.into_str().to_owned(),
                    branch: id.to_owned(),
                    status: state.status.clone(),
                    took: waited,
                });
                let response = self.shown(&state.output);
                if state.progress == BranchProgress::Failed {
                    return Err(self.failure(id, agent, &response));
                }
                return Ok(FinishedBranch {
                    id: id.to_owned(),
                    status: state.status,
                    response,
                });
            }
            let left = timeout.saturating_sub(waited);
            if left.is_zero() {
                return Err(OrchestrateError::BranchTimeout {
                    branch: id.to_owned(),
                    agent: agent.into_str(),
                    waited,
                }
                .into());
            }
            // The record of the branches also serves as the run's heartbeat.
            self.report_change()?;
            self.watcher.event(&Event::Waiting {
                agent: agent.into_str().to_owned(),
                branch: id.to_owned(),
                status: state.status.clone(),
                waited,
                is_review: agent == Specialist::Codex,
                review: (self.lineage.borrow().record.iterations + 1).min(MAX_REVIEWS),
                reviews: MAX_REVIEWS,
                publishes: self.lineage.borrow().record.publishes,
                total: self.clock.elapsed().saturating_sub(self.started),
            });
            delay = delay.min(longest);
            self.watcher.sleep(delay.min(left))?;
            let longer = delay.as_secs_f64() * self.polling.factor;
            delay = Duration::try_from_secs_f64(longer).unwrap_or(longest);
            last = state.status;
        }
    }

    /// Prepares a text of any length for a model. Redacts keys before shortening the text, since a cut through a key
    /// would leave part of it visible.
    pub(crate) fn shown(&self, text: &str) -> String {
        bounded(&self.branches.redactor.text(text), LONGEST_TEXT)
    }

    fn failure(&self, id: &str, agent: Specialist, output: &str) -> ToolError {
        let end = match tail_of(output, END).trim() {
            "" => "it has said nothing".to_owned(),
            end => format!("the end of what it says:\n{end}"),
        };
        let message = format!("`{}` has failed on branch `{id}`; {end}", agent.into_str());
        let lineage = self.lineage.borrow();
        let latest = lineage.latest();
        let hint = format!("the work goes on from branch `{latest}`, as before");
        failed("branch_failed", message, hint)
    }

    /// Returns the error for a branch whose state the server does not report.
    fn unknown(&self, id: &str, agent: Specialist, error: ToolError) -> ToolError {
        let ToolError::Failed(failure) = error else {
            return error;
        };
        let (message, agent) = (failure.message, agent.into_str());
        let message = format!("it is not known what has become of branch `{id}`: {message}");
        let lineage = self.lineage.borrow();
        let latest = lineage.latest();
        let hint = format!(
            "`{agent}` may still be at work on branch `{id}`; the work goes on from branch `{latest}`"
        );
        failed(failure.code, message, hint)
    }

    /// Reports the lineage to the watcher.
    ///
    /// # Errors
    /// Fails if the lineage cannot be saved.
    pub fn report_change(&self) -> Result<(), AgentError> {
        self.watcher.changed(&self.lineage.borrow())
    }
}

#[cfg(test)]
mod tests {
    use super::super::scripted::{Scripted, failed_state, running, succeeded};
    use super::Specialist::{ClaudeCode, Codex};
    use super::*;
    use crate::agent::mcp::McpError;
    use crate::record::seconds::Seconds;
    use crate::sys::interrupt::Signal;

    #[test]
    fn an_agent_is_waited_for_and_the_work_continues_from_its_branch() {
        let script = Scripted::new([running(), running(), succeeded("done")]);
        let specialists = script.specialists();
        let finished = specialists.execute(ClaudeCode, "build it", "").unwrap();
        let expected = FinishedBranch {
            id: "b1".to_owned(),
            status: "succeed".to_owned(),
            response: "done".to_owned(),
        };
        assert_eq!(finished, expected);
        assert_eq!(
            script.log.take(),
            [
                "changed: latest b0, waiting for claude_code",
                "start claude_code from b0 in demo: build it",
                "changed: latest b0, waiting for b1 ()",
                "state b1",
                "changed: latest b0, waiting for b1 (running)",
                "waiting for claude_code on b1 (running), 0 s so far",
                "sleep 2 s",
                "state b1",
                "changed: latest b0, waiting for b1 (running)",
                "waiting for claude_code on b1 (running), 2 s so far",
                "sleep 4 s",
                "state b1",
                "changed: latest b0, waiting for nothing",
                "changed: latest b1, waiting for nothing",
            ]
        );
        let lineage = specialists.lineage.borrow();
        assert_eq!(lineage.record.branches[0].seconds.0, Duration::from_secs(6));
    }

    #[test]
    fn an_agent_that_fails_leaves_the_lineage_as_it_was() {
        let long = format!("{}the end", "line\n".repeat(100_000));
        for (output, expected) in [
            ("", "`codex` has failed on branch `b1`; it has said nothing"),
            (
                "no disk",
                "`codex` has failed on branch `b1`; the end of what it says:\nno disk",
            ),
            (&long, "line\nthe end"),
        ] {
            let script = Scripted::new([failed_state(output)]);
            let specialists = script.specialists();
            match specialists.execute(Codex, "review", "b0") {
                Err(ToolError::Failed(failure)) => {
                    assert_eq!(failure.code, "branch_failed");
                    assert!(failure.message.ends_with(expected), "{}", failure.message);
                    assert!(failure.message.len() < END + 200);
                    assert_eq!(failure.hint, "the work goes on from branch `b0`, as before");
                }
                other => panic!("{other:?}"),
            }
            let lineage = specialists.lineage.borrow();
            assert_eq!(
                (lineage.latest(), &lineage.record.waiting_for),
                ("b0", &None)
            );
            assert_eq!(lineage.record.branches[0].status, "failed");
        }
    }

    #[test]
    fn nothing_is_started_from_another_branch() {
        let script = Scripted::new([]);
        let done = script.specialists().execute(Codex, "review", "b7");
        assert!(matches!(done, Err(ToolError::Failed(failure)) if failure.code == "wrong_parent"));
        assert!(script.log.take().is_empty());
    }

    #[test]
    fn an_existing_branch_does_not_count_as_new() {
        let script = Scripted::new([]);
        script.started.set(-1);
        let specialists = script.specialists();
        let done = specialists.execute(Codex, "review", "");
        assert!(matches!(done, Err(ToolError::Failed(failure)) if failure.code == "no_new_branch"));
        assert!(specialists.lineage.borrow().record.branches.is_empty());
    }

    #[test]
    fn an_agent_that_takes_too_long_is_still_waited_for() {
        let script = Scripted::new([running(), running(), running(), running()]);
        let specialists = Specialists {
            polling: Polling {
                timeout: Seconds(Duration::from_secs(9)),
                ..script.specialists().polling
            },
            ..script.specialists()
        };
        match specialists.execute(ClaudeCode, "x", "") {
            Err(ToolError::Fatal(error)) => assert_eq!(
                error.to_string(),
                "`claude_code` has not ended within 9 seconds on branch `b1`"
            ),
            other => panic!("{other:?}"),
        }
        let lineage = specialists.lineage.borrow();
        assert_eq!(lineage.record.waiting_for.as_deref(), Some("b1"));
        assert_eq!(lineage.latest(), "b0");
        let log = script.log.take();
        let sleeps: Vec<_> = log
            .iter()
            .filter(|line| line.starts_with("sleep"))
            .collect();
        assert_eq!(sleeps, ["sleep 2 s", "sleep 4 s", "sleep 3 s"]);
    }

    #[test]
    fn waits_grow_up_to_the_longest() {
        let states = [running(), running(), running(), running(), running()];
        let script = Scripted::new(states.into_iter().chain([succeeded("done")]));
        let specialists = Specialists {
            polling: Polling {
                max: Seconds(Duration::from_secs(7)),
                ..script.specialists().polling
            },
            ..script.specialists()
        };
        specialists.execute(ClaudeCode, "x", "").unwrap();
        let log = script.log.take();
        let sleeps: Vec<_> = log
            .iter()
            .filter_map(|line| line.strip_prefix("sleep "))
            .collect();
        assert_eq!(sleeps, ["2 s", "4 s", "7 s", "7 s", "7 s"]);
    }

    #[test]
    fn a_signal_while_waiting_leaves_the_branch_named() {
        let script = Scripted::new([running()]);
        script.signal.set(Some(Signal::Int));
        let specialists = script.specialists();
        let done = specialists.execute(ClaudeCode, "x", "");
        assert!(matches!(
            done,
            Err(ToolError::Fatal(AgentError::Interrupted(_)))
        ));
        let lineage = specialists.lineage.borrow();
        assert_eq!(lineage.record.waiting_for.as_deref(), Some("b1"));
    }

    #[test]
    fn a_branch_of_which_the_server_does_not_tell_is_still_named_as_working() {
        let unknown = || Err(McpError::Tool("boom".to_owned()));
        // All polls fail, except for the last one of the third wait.
        let tries = || (0..POLL_TRIES).map(|_| unknown());
        let answers = tries().chain(tries()).chain(tries().skip(1));
        let script = Scripted::new(answers.chain([succeeded("done")]));
        let specialists = script.specialists();
        for id in ["b1", "b2"] {
            match specialists.execute(ClaudeCode, "x", "") {
                Err(ToolError::Failed(failure)) => {
                    let message = format!("it is not known what has become of branch `{id}`: ");
                    assert!(failure.message.starts_with(&message), "{failure}");
                    assert!(failure.message.ends_with("boom"), "{failure}");
                    let hint = format!(
                        "`claude_code` may still be at work on branch `{id}`; the work goes on from branch `b0`"
                    );
                    assert_eq!(failure.hint, hint);
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(
                specialists.lineage.borrow().record.waiting_for.as_deref(),
                Some(id)
            );
        }
        assert!(specialists.execute(ClaudeCode, "x", "").is_ok());
        let lineage = specialists.lineage.borrow();
        assert_eq!(lineage.record.waiting_for, None);
        assert!(lineage.working().eq(["b1", "b2"]));
    }

    #[test]
    fn an_answer_is_bounded_behind_its_keys() {
        let script = Scripted::new([]);
        let specialists = script.specialists();
        assert_eq!(specialists.shown("a sekret-key-1 b"), "a [REDACTED]-1 b");
        // A key would lie across each of the cuts.
        let keys = "sekret-key-1".repeat(200_000);
        let shown = specialists.shown(&keys);
        assert!(shown.len() <= LONGEST_TEXT && !shown.contains("sekret"));
        let escapes = "\u{1b}[1m".repeat(4 << 20);
        let shown = specialists.shown(&escapes);
        assert!(shown.len() <= LONGEST_TEXT, "{}", shown.len());
        assert!(shown.contains(" bytes left out ...]"));
    }
}
