//! A scripted server for branches, and a clock that advances only by waiting, for tests.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use serde_json::{Value, json};

use super::lineage::BranchTracker;
use super::pantheon::Pantheon;
use super::specialists::{Specialists, Watcher};
use crate::agent::AgentError;
use crate::agent::mcp::{McpError, McpTools, Repeat};
use crate::record::event::Event;
use crate::record::orchestration::Polling;
use crate::record::seconds::Seconds;
use crate::secret::Redactor;
use crate::sys::environment::Clock;
use crate::sys::interrupt::{Interrupted, Signal};

type State = Result<Value, McpError>;

#[expect(
    clippy::unnecessary_wraps,
    reason = "a server's answers stand beside its errors"
)]
fn state(status: &str, output: &str) -> State {
    Ok(json!({"status": status, "output": output}))
}

pub(crate) fn running() -> State {
    state("running", "")
}

pub(crate) fn succeeded(output: &str) -> State {
    state("succeed", output)
}

pub(crate) fn failed_state(output: &str) -> State {
    state("failed", output)
}

/// The branches `b1`, `b2` and so on of the project `demo`, which starts from `b0`.
#[derive(Default)]
pub(crate) struct Scripted {
    states: RefCell<VecDeque<State>>,
    /// The files, by path and content.
    pub(crate) files: RefCell<Vec<(&'static str, &'static str)>>,
    /// The events so far.
    pub(crate) log: RefCell<Vec<String>>,
    /// The number of branches.
    pub(crate) started: Cell<i32>,
    /// The signal that interrupts the next wait.
    pub(crate) signal: Cell<Option<Signal>>,
    clock: Waited,
}

impl Scripted {
    pub(crate) fn new(states: impl IntoIterator<Item = State>) -> Self {
        Self {
            states: RefCell::new(states.into_iter().collect()),
            ..Self::default()
        }
    }

    pub(crate) fn specialists(&self) -> Specialists<'_> {
        static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(["sekret-key-1"]));
        Specialists {
            branches: Pantheon {
                tools: self,
                redactor: &REDACTOR,
                output: None,
            },
            watcher: self,
            clock: &self.clock,
            polling: Polling {
                initial: Seconds(Duration::from_secs(2)),
                max: Seconds(Duration::from_secs(30)),
                timeout: Seconds(Duration::from_hours(3)),
                factor: 2.0,
            },
            project: "demo",
            workspace: "/w",
            lineage: RefCell::new(BranchTracker::new("b0")),
            asks_parents: false,
            started: Duration::ZERO,
        }
    }

    fn note(&self, line: String) {
        self.log.borrow_mut().push(line);
    }
}

impl McpTools for Scripted {
    fn call(&self, tool: &str, arguments: Value, _repeat: Repeat) -> State {
        let text = |name: &str| arguments[name].as_str().unwrap();
        match tool {
            "parallel_explore" => {
                let prompt = arguments["shared_prompt_sequence"][0].as_str().unwrap();
                let (agent, project) = (text("agent"), text("project_name"));
                let parent = text("parent_branch_id");
                self.note(format!(
                    "start {agent} from {parent} in {project}: {prompt}"
                ));
                self.started.set(self.started.get() + 1);
                Ok(json!({"branch_id": format!("b{}", self.started.get())}))
            }
            "get_branch" => {
                self.note(format!("state {}", text("branch_id")));
                self.states.borrow_mut().pop_front().unwrap()
            }
            _ => {
                let path = text("file_path");
                self.note(format!("read {path} of {}", text("branch_id")));
                let files = self.files.borrow();
                let found = files.iter().find(|(known, _)| *known == path);
                Ok(found.map_or_else(
                    || json!({"error": "no such file"}),
                    |(_, content)| json!(content),
                ))
            }
        }
    }
}

impl Watcher for Scripted {
    fn event(&self, event: &Event) {
        if let Event::Waiting {
            agent,
            branch,
            status,
            waited,
            ..
        } = event
        {
            let waited = waited.as_secs();
            self.note(format!(
                "waiting for {agent} on {branch} ({status}), {waited} s so far"
            ));
        }
    }

    fn changed(&self, lineage: &BranchTracker) -> Result<(), AgentError> {
        let past = &lineage.record;
        let last = past.branches.last().filter(|_| past.waiting_for.is_some());
        let waiting = last
            .map(|record| format!("{} ({})", record.id, record.status))
            .or(past.starting.clone())
            .unwrap_or_else(|| "nothing".to_owned());
        let latest = lineage.latest();
        self.note(format!("changed: latest {latest}, waiting for {waiting}"));
        Ok(())
    }

    fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        self.note(format!("sleep {} s", duration.as_secs()));
        self.clock.0.fetch_add(duration.as_secs(), Ordering::SeqCst);
        match self.signal.take() {
            Some(signal) => Err(Interrupted { signal }),
            None => Ok(()),
        }
    }
}

/// The number of seconds waited.
#[derive(Default)]
struct Waited(AtomicU64);

impl Clock for Waited {
    fn now(&self) -> DateTime<FixedOffset> {
        DateTime::default()
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::SeqCst))
    }
}
