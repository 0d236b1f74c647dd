//! The command line of `mcp`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::{parse_duration, parse_variable};

const AFTER_HELP: &str = "\
SERVER is the URL of an MCP endpoint (https, or http on localhost), or stdio:
and a command, as \"stdio:npx -y @modelcontextprotocol/server-everything\".

Exit codes:
  0  done             the answer is on stdout
  2  usage            invalid command line
  3  not-ready        invalid proxy or token
  4  mcp-failed       no server, no answer, or the tool failed
  129, 130, 143       interrupted by SIGHUP, SIGINT or SIGTERM

Environment:
  MCP_BEARER_TOKEN        sent to a URL as Authorization, where set
  HTTPS_PROXY, NO_PROXY   proxy for https, and hosts to reach without it";

/// Arguments of `mcp`.
#[derive(Debug, Clone, Args)]
#[command(after_help = AFTER_HELP, max_term_width = 80)]
pub struct McpArgs {
    /// What to ask the server for.
    #[command(subcommand)]
    pub command: McpCommand,
}

/// Flags for servers that are programs.
#[derive(Debug, Clone, Args)]
pub struct ServerArgs {
    /// Pass this environment variable on to a server that is a program, though its name says that it
    /// holds a secret (*_TOKEN, *_KEY, ...); may be repeated
    #[arg(long, value_name = "NAME", value_parser = parse_variable)]
    pub pass_env: Vec<String>,
}

/// What an MCP server is asked for.
#[derive(Debug, Clone, Subcommand)]
pub enum McpCommand {
    /// List the tools of a server, and what each takes
    Tools {
        /// Server to ask: a URL, or stdio:COMMAND
        server: String,

        /// Time limit of a request, retries included, such as 90s, 30m or 1h
        #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "5m")]
        timeout: Duration,

        /// Flags for the server.
        #[command(flatten)]
        program: ServerArgs,
    },
    /// Call a tool of a server, and print its result
    Call {
        /// Server to ask: a URL, or stdio:COMMAND
        server: String,

        /// Tool to call
        tool: String,

        /// Arguments of the tool, a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,

        /// Time limit of the call, retries included, such as 90s, 30m or 1h
        #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30m")]
        timeout: Duration,

        /// Flags for the server.
        #[command(flatten)]
        program: ServerArgs,
    },
}

impl McpCommand {
    /// The variables that a server gets though their names say that they hold a secret.
    #[must_use]
    pub fn passed_variables(&self) -> &[String] {
        match self {
            Self::Tools { program, .. } | Self::Call { program, .. } => &program.pass_env,
        }
    }

    /// The server that is asked: a URL, whose query may hold a key, or `stdio:` and a command.
    #[must_use]
    pub fn server(&self) -> &str {
        match self {
            Self::Tools { server, .. } | Self::Call { server, .. } => server,
        }
    }
}
