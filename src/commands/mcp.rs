//! Any MCP server's tools: lists them, or calls one. For people whose server does not answer, or not as they think.

use serde_json::{Value, json};

use crate::agent::mcp::{McpAddress, McpTools as _, Repeat, ToolDescription};
use crate::commands::cli::mcp::McpCommand;
use crate::commands::error::CommandError;
use crate::commands::mcp_server::{ExchangeLog, McpSource, connect};
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::environment::RecordedClock;
use crate::sys::error::Error;
use crate::sys::text::cut;

/// The variable with the token that a server may want.
const TOKEN: &str = "MCP_BEARER_TOKEN";
/// The maximum length of a description in the list, in characters.
const LONGEST_LINE: usize = 100;

/// Asks a server for what the command line says.
///
/// # Errors
/// When it does not answer, or the tool fails.
pub fn mcp(context: &Context<'_>, command: &McpCommand) -> Result<Outcome, Failure> {
    let exchanges = ExchangeLog::nowhere(context);
    let clock = RecordedClock::new(context.clock);
    let connect = |server: &str, timeout| {
        connect(
            context,
            &source(context, server)?,
            timeout,
            &exchanges,
            &clock,
        )
    };
    match command {
        McpCommand::Tools {
            server, timeout, ..
        } => {
            let client = connect(server, *timeout)?;
            let tools = client.tools()?;
            let json: Vec<&Value> = tools.iter().map(|tool| &tool.whole).collect();
            let json = json!({"schema": 1, "tools": json});
            Ok(Outcome::shown(listed(&tools), json))
        }
        McpCommand::Call {
            server,
            tool,
            arguments,
            timeout,
            ..
        } => {
            let arguments = object(arguments)?;
            let client = connect(server, *timeout)?;
            let result = client.call(tool, arguments, Repeat::UnlessBegun)?;
            let text = match &result {
                Value::String(text) => text.clone(),
                result => format!("{result:#}"),
            };
            let json = json!({"schema": 1, "result": result});
            Ok(Outcome::shown(text, json))
        }
    }
}

fn source(context: &Context<'_>, server: &str) -> Result<McpSource, Error> {
    let address = McpAddress::parse("SERVER", server)?;
    let mut missing = NotReady::default();
    missing.note_env_file(context);
    let token = missing.note(token(context));
    match token {
        Some(token) if missing.problems.is_empty() => Ok(McpSource::Server(address, token)),
        _ => Err(missing.into()),
    }
}

/// The token that travels along, where one is set.
/// A token in a variable is none.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{0}` {1}")]
#[diagnostic(help("set `{0}` to the token alone, or unset it"))]
pub(crate) struct NoToken(pub &'static str, pub KeyProblem);

fn token(context: &Context<'_>) -> Result<Option<ApiKey>, NoToken> {
    let token = context.environment.get(TOKEN);
    let token = token.filter(|token| !token.trim().is_empty());
    let token = token
        .map(|token| ApiKey::parse(token.as_bytes()))
        .transpose();
    token.map_err(|problem| NoToken(TOKEN, problem))
}

fn object(text: &str) -> Result<Value, Error> {
    let wrong = |problem: String| Err(CommandError::ToolArguments(problem).into());
    match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => Ok(object),
        Ok(_) => wrong("it is JSON, but no object".to_owned()),
        Err(problem) => wrong(problem.to_string()),
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
