//! An MCP server that a command uses: the client that is connected to it, and the record of what they say to each
//! other.
//!
//! Guarantees that every exchange of a run is on record as soon as the run has its folder.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::Value;

use crate::agent::mcp::{Exchange, McpAddress, McpClient, McpObserver, McpOptions};
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

/// The server lacks a tool.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the MCP server at `{server}` has no tool `{missing}`: it has {known}")]
#[diagnostic(help("set `MCP_BASE_URL` to a server whose agents work on branches"))]
pub struct NoSuchTool {
    /// Its URL, without a query.
    pub server: String,
    /// The tool.
    pub missing: String,
    /// The tools that it has.
    pub known: String,
}

/// The source of a server's answers.
pub enum McpSource {
    /// The server, which may require a token.
    Server(McpAddress, Option<ApiKey>),
    /// The `mcp.jsonl` of a recorded run.
    Recorded(String),
}

/// Records the messages to a server and from it.
pub struct ExchangeLog<'c> {
    context: &'c Context<'c>,
    /// The messages before the run has its folder.
    before: RefCell<Vec<Value>>,
    log: RefCell<Option<RunLog<'c>>>,
    /// The first error in recording.
    problem: RefCell<Option<Error>>,
}

impl<'c> ExchangeLog<'c> {
    /// One of a run that has no folder yet, or of no run.
    pub fn before_run(context: &'c Context<'c>) -> Self {
        Self {
            context,
            before: RefCell::default(),
            log: RefCell::default(),
            problem: RefCell::default(),
        }
    }

    /// Goes on in the run's folder.
    ///
    /// # Errors
    /// When what was said before cannot be written there.
    pub fn begin(&self, log: RunLog<'c>) -> Result<(), Error> {
        let before = self.before.take();
        before.iter().try_for_each(|line| log.line(MCP, line))?;
        self.log.replace(Some(log));
        Ok(())
    }

    /// Returns the first error in recording, if any.
    ///
    /// # Errors
    /// When something could not.
    pub fn check(&self) -> Result<(), Error> {
        self.problem.take().map_or(Ok(()), Err)
    }
}

impl McpObserver for ExchangeLog<'_> {
    fn exchanged(&self, exchange: &Exchange<'_>) {
        let Some(log) = &*self.log.borrow() else {
            // All of its keys are strings and all of its numbers finite, so that there is always a value.
            let line = serde_json::to_value(exchange).unwrap_or_default();
            return self.before.borrow_mut().push(line);
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
}

/// The server, connected. Of one whose answers are recorded, `clock` shows their time.
///
/// # Errors
/// When there is none.
pub fn connect<'a>(
    context: &Context<'a>,
    source: &McpSource,
    timeout: Duration,
    log: &'a ExchangeLog<'_>,
    clock: &'a RecordedClock<'a>,
) -> Result<McpClient<'a>, Error> {
    let options = |proxies, token| McpOptions {
        proxies,
        token,
        env: server_env(context),
        program: context.program,
        timeout,
        redactor: context.redactor,
        clock: context.clock,
        interrupt: context.interrupt.clone(),
        observer: log,
    };
    Ok(match source {
        McpSource::Server(address, token) => {
            let proxies = Proxies::from_environment(context.environment);
            let proxies = proxies.map_err(NotReady::of)?;
            McpClient::connect(address, options(proxies, token.clone()))?
        }
        McpSource::Recorded(exchanges) => {
            McpClient::replay(exchanges, options(Proxies::default(), None), clock)?
        }
    })
}

/// Checks that a server has these tools.
///
/// # Errors
/// When it lacks one, or does not tell.
pub fn require_tools(client: &McpClient<'_>, tools: &[&str]) -> Result<(), Error> {
    let known: Vec<String> = client.tools()?.into_iter().map(|tool| tool.name).collect();
    let lacks = |name: &&str| !known.iter().any(|tool| tool == name);
    let missing: Vec<&str> = tools.iter().copied().filter(lacks).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let none = known.is_empty().then(|| "no tools".to_owned());
    let problem = NoSuchTool {
        server: client.server().to_owned(),
        missing: missing.join("`, `"),
        known: none.unwrap_or_else(|| known.join(", ")),
    };
    Err(NotReady::of(problem).into())
}
