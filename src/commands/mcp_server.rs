//! The connection to an MCP server, and the record of the messages exchanged.
//!
//! Guarantees that every exchange of a run is recorded once the run has a folder.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use serde_json::Value;
use ureq::http::HeaderMap;

use crate::agent::mcp::{
    Exchange, McpAddress, McpClient, McpObserver, McpOptions, ToolDescription,
};
use crate::record::event::Event;
use crate::record::run_files::MCP;
use crate::record::run_log::RunLog;
use crate::run::builds::server_env;
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::secret::ApiKey;
use crate::sys::environment::RecordedClock;
use crate::sys::error::Error;
use crate::sys::http::endpoint::Proxies;
use crate::sys::text::one_line;

/// The minimum time between two reports of progress.
const PROGRESS_PAUSE: Duration = Duration::from_secs(1);
/// The maximum length of a report of progress, in characters.
const MAX_PROGRESS: usize = 200;

/// The server lacks a required tool.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the MCP server at `{server}` has no tool `{missing}`: it has {known}")]
#[diagnostic(help("set `MCP_BASE_URL` to a server whose agents work on branches"))]
pub struct NoSuchTool {
    /// The server's URL, without the query.
    pub server: String,
    /// The missing tool.
    pub missing: String,
    /// The tools that the server offers.
    pub known: String,
}

/// The source of a server's answers.
pub enum McpSource {
    /// The server, which may require a token.
    Server(McpAddress, Option<ApiKey>),
    /// The `mcp.jsonl` of a recorded run.
    Recorded(String),
}

/// Records the messages sent to and received from a server.
pub struct ExchangeLog<'c> {
    context: &'c Context<'c>,
    /// The messages exchanged before the run has a folder.
    before: RefCell<Vec<Value>>,
    log: RefCell<Option<RunLog<'c>>>,
    /// The first error that occurred while recording.
    problem: RefCell<Option<Error>>,
    /// The time from which progress is shown again.
    next_progress: Cell<Duration>,
}

impl<'c> ExchangeLog<'c> {
    /// Creates a log for use before a run has a folder.
    pub fn new(context: &'c Context<'c>) -> Self {
        Self {
            context,
            before: RefCell::default(),
            log: RefCell::default(),
            problem: RefCell::default(),
            next_progress: Cell::default(),
        }
    }

    /// Continues recording in the run's folder.
    ///
    /// # Errors
    /// Fails if the earlier messages cannot be written there.
    pub fn begin(&self, log: RunLog<'c>) -> Result<(), Error> {
        let before = self.before.take();
        before.iter().try_for_each(|line| log.line(MCP, line))?;
        self.log.replace(Some(log));
        Ok(())
    }

    /// Checks that all exchanges so far were recorded.
    ///
    /// # Errors
    /// Returns the first recording error.
    pub fn check(&self) -> Result<(), Error> {
        self.problem.take().map_or(Ok(()), Err)
    }
}

impl McpObserver for ExchangeLog<'_> {
    fn exchanged(&self, exchange: &Exchange<'_>) {
        let Some(log) = &*self.log.borrow() else {
            // Serialization cannot fail, since all keys are strings and all numbers are finite.
            let exchange = serde_json::to_value(exchange).unwrap_or_default();
            self.before.borrow_mut().push(exchange);
            return;
        };
        if let Err(problem) = log.line(MCP, exchange) {
            self.problem.borrow_mut().get_or_insert(problem.into());
        }
    }

    fn retrying(&self, next_try: u32, wait: Duration, reason: &str) {
        self.context.reporter.event(&Event::Retrying {
            next_try,
            wait,
            reason: reason.to_owned(),
        });
    }

    fn progress(&self, text: &str) {
        let now = self.context.clock.elapsed();
        if self.next_progress.get() <= now {
            self.next_progress.set(now + PROGRESS_PAUSE);
            let text = self.context.redactor.text(text);
            let notice = format!("progress: {}", one_line(&text, MAX_PROGRESS));
            self.context.reporter.event(&Event::Notice(notice));
        }
    }
}

/// Connects to the server, or replays its recorded answers, with `clock` following the recorded
/// times.
///
/// # Errors
/// Fails if the connection fails.
pub fn connect<'a>(
    context: &Context<'a>,
    source: &McpSource,
    timeout: Duration,
    headers: &HeaderMap,
    log: &'a ExchangeLog<'_>,
    clock: &'a RecordedClock<'a>,
) -> Result<McpClient<'a>, Error> {
    let options = |proxies, token| McpOptions {
        proxies,
        token,
        headers: headers.clone(),
        env: server_env(context),
        program: context.sandbox.program,
        timeout,
        redactor: context.redactor,
        clock: context.clock,
        interrupt: context.interrupt.clone(),
        observer: log,
    };
    Ok(match source {
        McpSource::Server(address, token) => {
            let proxies = Proxies::from_environment(context.environment).map_err(NotReady::of)?;
            McpClient::connect(address, options(proxies, token.clone()))?
        }
        McpSource::Recorded(exchanges) => {
            McpClient::replay(exchanges, options(Proxies::default(), None), clock)?
        }
    })
}

/// Checks that a server has these tools, and returns all its tools.
///
/// # Errors
/// Fails if the server lacks one of the tools, or cannot list its tools.
pub fn require_tools(
    client: &McpClient<'_>,
    tools: &[&str],
) -> Result<Vec<ToolDescription>, Error> {
    let all = client.tools()?;
    let known: Vec<&str> = all.iter().map(|tool| &*tool.name).collect();
    let lacks = |name: &&str| !known.iter().any(|tool| tool == name);
    let missing: Vec<&str> = tools.iter().copied().filter(lacks).collect();
    if missing.is_empty() {
        return Ok(all);
    }
    let none = known.is_empty().then(|| "no tools".to_owned());
    let problem = NoSuchTool {
        server: client.server().to_owned(),
        missing: missing.join("`, `"),
        known: none.unwrap_or_else(|| known.join(", ")),
    };
    Err(NotReady::of(problem).into())
}
