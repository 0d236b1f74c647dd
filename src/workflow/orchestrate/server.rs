//! The server that the agents work on: the client that is connected to it, and the record of what they say to each
//! other.
//!
//! Guarantees that every exchange is on record as soon as the run has its folder.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::Value;

use super::place::Answers;
use crate::agent::mcp::{Exchange, McpClient, McpError, McpObserver, McpOptions};
use crate::agent::orchestrate::pantheon;
use crate::record::run_files::MCP;
use crate::record::run_log::RunLog;
use crate::sys::http::endpoint::Proxies;
use crate::ui::Event;
use crate::workflow::error::Error;
use crate::workflow::run::context::Context;
use crate::workflow::run::not_ready::{NotReady, Problem};

/// What is said to the server and by it.
pub struct ExchangeLog<'c> {
    context: &'c Context<'c>,
    /// What was said before the run had its folder.
    before: RefCell<Vec<Value>>,
    /// The run's folder.
    log: RefCell<Option<RunLog<'c>>>,
    /// Why something could not be written down.
    problem: RefCell<Option<Error>>,
}

impl<'c> ExchangeLog<'c> {
    /// One of a run that has no folder yet.
    pub fn new(context: &'c Context<'c>) -> Self {
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

    /// Why something could not be written down, if so.
    pub fn take_problem(&self) -> Option<Error> {
        self.problem.take()
    }
}

impl McpObserver for ExchangeLog<'_> {
    fn exchanged(&self, exchange: &Exchange<'_>) {
        let log = self.log.borrow();
        let Some(log) = log.as_ref() else {
            // All of its keys are strings and all of its numbers finite, so that there is always a value.
            let line = serde_json::to_value(exchange).unwrap_or_default();
            self.before.borrow_mut().push(line);
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
}

/// The server, of which it is known that it has the tools.
///
/// # Errors
/// When there is none, or it lacks one.
pub fn connect<'a>(
    context: &'a Context<'a>,
    answers: &'a Answers<'a>,
    timeout: Duration,
    log: &'a dyn McpObserver,
) -> Result<McpClient<'a>, Error> {
    let options = |proxies, token| McpOptions {
        proxies,
        token,
        hidden: Vec::new(),
        timeout,
        redactor: context.redactor,
        clock: context.clock,
        interrupt: context.interrupt.clone(),
        observer: log,
    };
    let client = match answers {
        Answers::Sent(address, token) => {
            let proxies = Proxies::from_environment(context.environment);
            let proxies = proxies.map_err(NotReady::from)?;
            McpClient::connect(address, options(proxies, token.clone()))?
        }
        Answers::Recorded {
            exchanges, clock, ..
        } => McpClient::replay(exchanges, clock, options(Proxies::default(), None))?,
    };
    check_tools(&client)?;
    context.reporter.event(&Event::Connected {
        server: client.server().to_owned(),
        protocol: client.protocol().to_owned(),
    });
    Ok(client)
}

/// Sees that the server has the tools.
fn check_tools(client: &McpClient<'_>) -> Result<(), Error> {
    let known: Vec<String> = client.tools()?.into_iter().map(|tool| tool.name).collect();
    let lacks = |name: &&str| !known.iter().any(|tool| tool == name);
    let missing: Vec<&str> = pantheon::TOOLS.into_iter().filter(lacks).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let problem = Problem::Tools {
        server: client.server().to_owned(),
        missing: missing.join("`, `"),
        known: match known.join(", ") {
            none if none.is_empty() => "no tools".to_owned(),
            known => known,
        },
    };
    Err(NotReady::from(problem).into())
}

impl From<McpError> for Error {
    fn from(error: McpError) -> Self {
        crate::agent::AgentError::from(error).into()
    }
}
