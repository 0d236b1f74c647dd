//! Any MCP server's tools: lists them, or calls one. For people whose server does not answer, or not as they think.

use std::time::Duration;

use serde_json::{Value, json};

use super::run::not_ready::{NotReady, Problem};
use super::{Context, Failure, Outcome};
use crate::agent::AgentError;
use crate::agent::mcp::{
    Exchange, McpAddress, McpClient, McpError, McpObserver, McpOptions, McpTools as _, Repeat,
    ToolDescription,
};
use crate::cli::McpCommand;
use crate::secret::ApiKey;
use crate::sys::environment::KEY_VARIABLES;
use crate::sys::http::endpoint::Proxies;
use crate::sys::text::cut;
use crate::ui::{Event, Reporter};
use crate::workflow::error::Error;

/// The variable with the token that a server may want.
const TOKEN: &str = "MCP_BEARER_TOKEN";
/// How much of a description is listed, in characters.
const LONGEST_LINE: usize = 100;

/// Asks a server for what the command line says.
///
/// # Errors
/// When it does not answer, or the tool fails.
pub fn mcp(context: &Context<'_>, command: &McpCommand) -> Result<Outcome, Failure> {
    Ok(match command {
        McpCommand::Tools { server, timeout } => {
            let tools = connected(context, server, *timeout, |client| client.tools())?;
            let json: Vec<&Value> = tools.iter().map(|tool| &tool.whole).collect();
            let json = json!({"schema": 1, "tools": json});
            Outcome::shown(listed(&tools), json)
        }
        McpCommand::Call {
            server,
            tool,
            arguments,
            timeout,
        } => {
            let arguments = object(arguments)?;
            let result = connected(context, server, *timeout, |client| {
                client.call(tool, arguments, Repeat::UnlessBegun)
            })?;
            let text = match &result {
                Value::String(text) => text.clone(),
                result => format!("{result:#}"),
            };
            Outcome::shown(text, json!({"schema": 1, "result": result}))
        }
    })
}

/// What comes of a client that is connected.
fn connected<T>(
    context: &Context<'_>,
    server: &str,
    timeout: Duration,
    ask: impl FnOnce(&McpClient<'_>) -> Result<T, McpError>,
) -> Result<T, Error> {
    let address = McpAddress::parse("SERVER", server)?;
    let proxies = Proxies::from_environment(context.environment).map_err(NotReady::from)?;
    let observer = Warnings(context.reporter);
    let options = McpOptions {
        proxies,
        token: token(context)?,
        hidden: KEY_VARIABLES.map(Into::into).to_vec(),
        timeout,
        redactor: context.redactor,
        clock: context.clock,
        interrupt: context.interrupt.clone(),
        observer: &observer,
    };
    let asked = McpClient::connect(&address, options).and_then(|client| {
        let asked = ask(&client);
        client.close();
        asked
    });
    asked.map_err(|error| match error {
        McpError::Interrupted(interrupted) => interrupted.into(),
        error => Error::Agent(AgentError::Mcp(error)),
    })
}

/// The token that travels along, where one is set.
fn token(context: &Context<'_>) -> Result<Option<ApiKey>, NotReady> {
    let token = context.environment.get(TOKEN);
    let token = token.filter(|token| !token.trim().is_empty());
    let token = token
        .map(|token| ApiKey::parse(token.as_bytes()))
        .transpose();
    token.map_err(|problem| Problem::Token(TOKEN, problem).into())
}

fn object(text: &str) -> Result<Value, Error> {
    let wrong = |problem: String| Error::ToolArguments(problem);
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => Err(wrong("it is JSON, but no object".to_owned())),
        Err(problem) => Err(wrong(problem.to_string())),
    }
}

/// Tells the user of tries that have failed.
struct Warnings<'a>(&'a dyn Reporter);

impl McpObserver for Warnings<'_> {
    fn exchanged(&self, _exchange: &Exchange<'_>) {}

    fn retrying(&self, next_try: u32, wait: Duration, reason: &str) {
        let seconds = wait.as_secs_f64();
        let text = format!("{reason}; try {next_try} in {seconds:.1}s");
        self.0.event(&Event::Warning(text));
    }
}

fn listed(tools: &[ToolDescription]) -> String {
    if tools.is_empty() {
        return "the server has no tools".to_owned();
    }
    let tools: Vec<String> = tools.iter().map(described).collect();
    tools.join("\n")
}

/// A tool: its name, the first line of its description, and a line for each parameter.
fn described(tool: &ToolDescription) -> String {
    let mut text = tool.name.clone();
    let said = first_line(&tool.whole["description"]);
    if !said.is_empty() {
        text.push_str(&format!("  {said}"));
    }
    let schema = &tool.whole["inputSchema"];
    let required = schema["required"].as_array();
    for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
        let kind = match &parameter["type"] {
            Value::String(kind) => kind.clone(),
            Value::Null => "any".to_owned(),
            kinds => kinds.to_string(),
        };
        let optional = if is_required { "" } else { ", optional" };
        text.push_str(&format!("\n    {name}: {kind}{optional}"));
        let said = first_line(&parameter["description"]);
        if !said.is_empty() {
            text.push_str(&format!("  {said}"));
        }
    }
    text
}

fn first_line(description: &Value) -> String {
    let text = description.as_str().unwrap_or_default().trim();
    cut(text.lines().next().unwrap_or_default(), LONGEST_LINE).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_listed_with_its_parameters() {
        let whole = json!({
            "name": "echo",
            "description": "Says it again.\n\nMore.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "What to say"},
                    "times": {"type": ["integer", "null"]},
                    "how": {},
                },
                "required": ["text"],
            },
        });
        let name = "echo".to_owned();
        let tools = [ToolDescription { name, whole }];
        assert_eq!(
            listed(&tools),
            "echo  Says it again.\n    text: string  What to say\n    times: [\"integer\",\"null\"], optional\n    \
             how: any, optional"
        );
        assert_eq!(listed(&[]), "the server has no tools");
    }

    #[test]
    fn arguments_are_an_object() {
        assert_eq!(object(r#"{"a": 1}"#).unwrap(), json!({"a": 1}));
        for wrong in ["[]", "{", "", "a=1"] {
            assert!(object(wrong).is_err(), "{wrong}");
        }
    }
}
