//! Lists or calls the tools of any MCP server, which helps to diagnose a server that does not respond as expected.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use ureq::http::{HeaderName, HeaderValue};

use super::cli::values::{parse_duration, parse_variable};
use crate::agent::mcp::{McpAddress, Repeat, ToolDescription};
use crate::commands::error::CommandError;
use crate::commands::mcp_server::{ExchangeLog, McpSource, connect};
use crate::project::home::MCP_TOKEN;
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::secret::{ApiKey, KeyProblem};
use crate::sys::environment::RecordedClock;
use crate::sys::error::Error;
use crate::sys::text::cut;

const AFTER_HELP: &str = include_str!("mcp/after_help.txt").trim_ascii_end();

// A server to ask.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Server to ask: a URL, or stdio:COMMAND
    pub server: String,

    /// Pass this environment variable on to a server that is a program, even though its name suggests
    /// a secret (*_TOKEN, *_KEY, ...); may be repeated
    #[arg(long, value_name = "NAME", value_parser = parse_variable)]
    pub pass_env: Vec<String>,

    /// Send this header, such as "X-Api-Key: k", to a server at a URL; may be repeated
    #[arg(long, value_name = "NAME: VALUE", value_parser = parse_header)]
    pub header: Vec<(HeaderName, HeaderValue)>,
}

// The requests to an MCP server.
#[derive(Debug, Clone, Subcommand)]
#[command(after_help = AFTER_HELP, max_term_width = 80)]
pub enum McpCommand {
    /// List the tools of a server, and what each takes
    Tools {
        /// The server.
        #[command(flatten)]
        server: ServerArgs,

        /// Time limit of a request, retries included, such as 90s, 30m or 1h
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "5m")]
        timeout: Duration,
    },
    /// Call a tool of a server, and print its result
    Call {
        /// The server.
        #[command(flatten)]
        server: ServerArgs,

        /// Tool to call
        tool: String,

        /// Arguments of the tool, a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,

        /// Time limit of the call, retries included, such as 90s, 30m or 1h
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "30m")]
        timeout: Duration,
    },
}

impl ServerArgs {
    /// Returns the parts of the headers that may be keys: each value, and the text after a scheme such as `Bearer`.
    pub fn header_secrets(&self) -> impl Iterator<Item = &str> {
        let headers = self.header.iter();
        let values = headers.filter_map(|(_, value)| value.to_str().ok());
        values.flat_map(|value| [value, value.rsplit(' ').next().unwrap_or(value)])
    }
}

impl McpCommand {
    /// Returns the server to ask: a URL, whose query may contain a key, or `stdio:` and a command.
    pub fn server(&self) -> &ServerArgs {
        match self {
            Self::Tools { server, .. } | Self::Call { server, .. } => server,
        }
    }
}

/// The maximum length of a description in the list, in characters.
const LONGEST_LINE: usize = 100;

/// Sends the server the request that the command line specifies.
///
/// # Errors
/// Fails if the server does not answer, or the tool fails.
pub fn mcp(context: &Context<'_>, command: &McpCommand) -> Result<Outcome, Failure> {
    let server = command.server();
    let exchanges = ExchangeLog::new(context);
    let clock = RecordedClock::new(context.clock);
    let connect = |timeout| {
        let source = source(context, &server.server)?;
        let headers = server.header.iter().cloned().collect();
        connect(context, &source, timeout, &headers, &exchanges, &clock)
    };
    match command {
        McpCommand::Tools { timeout, .. } => {
            let tools = connect(*timeout)?.tools()?;
            let whole: Vec<&Value> = tools.iter().map(|tool| &tool.whole).collect();
            let json = json!({"schema": 1, "tools": whole});
            Ok(Outcome::shown(listed(&tools), json))
        }
        McpCommand::Call {
            tool,
            arguments,
            timeout,
            ..
        } => {
            let arguments = object(arguments)?;
            let client = connect(*timeout)?;
            let (result, mut whole) = client.call_whole(tool, &arguments, Repeat::UnlessBegun)?;
            let text = match &result {
                Value::String(text) => text.clone(),
                result => format!("{result:#}"),
            };
            let mut json = json!({"schema": 1, "result": result});
            for part in ["content", "structuredContent"] {
                if let Some(given) = whole.get_mut(part) {
                    json[part] = given.take();
                }
            }
            Ok(Outcome::shown(text, json))
        }
    }
}

fn source(context: &Context<'_>, server: &str) -> Result<McpSource, Error> {
    let address = McpAddress::parse("SERVER", server)?;
    let mut missing = NotReady::default();
    missing.note_env_file(context);
    match missing.note(token(context)) {
        Some(token) if missing.problems.is_empty() => Ok(McpSource::Server(address, token)),
        _ => Err(missing.into()),
    }
}

/// The token's environment variable does not hold a valid token.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{0}` {1}")]
#[diagnostic(help("set `{0}` to the token alone, or unset it"))]
pub(crate) struct NoToken(pub &'static str, pub KeyProblem);

/// Returns the token to send, if one is set.
fn token(context: &Context<'_>) -> Result<Option<ApiKey>, NoToken> {
    let is_set = |token: &&str| !token.trim().is_empty();
    let token = context.environment.get(MCP_TOKEN).filter(is_set);
    let key = token.map(|token| ApiKey::parse(token.as_bytes()));
    key.transpose()
        .map_err(|problem| NoToken(MCP_TOKEN, problem))
}

fn object(text: &str) -> Result<Value, Error> {
    let problem = match serde_json::from_str(text) {
        Ok(object @ Value::Object(_)) => return Ok(object),
        Ok(_) => "it is JSON, but no object".to_owned(),
        Err(problem) => problem.to_string(),
    };
    Err(CommandError::ToolArguments(problem).into())
}

fn listed(tools: &[ToolDescription]) -> String {
    if tools.is_empty() {
        return "the server has no tools".to_owned();
    }
    let tools: Vec<String> = tools.iter().map(described).collect();
    tools.join("\n")
}

/// Describes a tool: its name, the first line of its description, and one line per parameter.
fn described(tool: &ToolDescription) -> String {
    let mut text = tool.name.clone() + &summary(&tool.whole);
    let schema = &tool.whole["inputSchema"];
    let required = schema["required"].as_array();
    for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
        let kind = match &parameter["type"] {
            _ if parameter["enum"].is_array() => choices(&parameter["enum"]),
            Value::String(kind) => kind.clone(),
            Value::Null => "any".to_owned(),
            kinds => kinds.to_string(),
        };
        let optional = if is_required { "" } else { ", optional" };
        text += &format!("\n    {name}: {kind}{optional}{}", summary(parameter));
    }
    text
}

/// Lists the values that a parameter may have: `"fast" | "slow"`.
fn choices(values: &Value) -> String {
    let all = values.as_array().into_iter().flatten();
    let choices: Vec<String> = all.map(Value::to_string).collect();
    cut(&choices.join(" | "), LONGEST_LINE).into_owned()
}

/// Parses a header: a name, a colon and a value.
fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let header = text.split_once(':').and_then(|(name, value)| {
        let (name, value) = (name.trim().parse().ok()?, value.trim().parse().ok()?);
        Some((name, value))
    });
    header.ok_or_else(|| "is not like `X-Api-Key: value`".to_owned())
}

/// Returns the first line of a description, preceded by two spaces; empty without a description.
fn summary(described: &Value) -> String {
    let text = described["description"].as_str().unwrap_or_default().trim();
    match &*cut(text.lines().next().unwrap_or_default(), LONGEST_LINE) {
        "" => String::new(),
        line => format!("  {line}"),
    }
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
                    "pace": {"type": "string", "enum": ["fast", "slow"], "description": "How fast"},
                },
                "required": ["text"],
            },
        });
        let name = "echo".to_owned();
        let tools = [ToolDescription { name, whole }];
        assert_eq!(
            listed(&tools),
            "echo  Says it again.\n    text: string  What to say\n    times: [\"integer\",\"null\"], optional\n    \
             how: any, optional\n    pace: \"fast\" | \"slow\", optional  How fast"
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
