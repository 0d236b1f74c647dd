//! Addresses of MCP servers. Pure.

use ureq::http::Uri;

use super::error::McpError;
use crate::sys::http::endpoint::Endpoint;

/// The prefix of a command used in place of a URL.
const STDIO: &str = "stdio:";

/// The address of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpAddress {
    /// A server at a URL.
    Http {
        /// The URL without its query.
        endpoint: Endpoint,
        /// The query, which may contain a key and is never shown; may be empty.
        query: String,
    },
    /// A program to start, as its name and arguments.
    Stdio(Vec<String>),
}

impl McpAddress {
    /// Parses an address: an https URL; an http URL of this machine only, since a token may be sent; or `stdio:` and a
    /// command, which is run without a shell. `name` says where the address was given.
    ///
    /// # Errors
    /// Fails if the address is invalid.
    pub fn parse(name: &str, text: &str) -> Result<Self, McpError> {
        if let Some(command) = text.strip_prefix(STDIO) {
            let words = shlex::split(command).filter(|words| !words.is_empty());
            let problem = || McpError::Command(text.to_owned());
            return words.map(Self::Stdio).ok_or_else(problem);
        }
        let (base, query) = text.trim().split_once('?').unwrap_or((text, ""));
        let endpoint = Endpoint::parse(name, base, true)?;
        let address = Self::Http {
            query: query.to_owned(),
            endpoint,
        };
        let is_url = !query.contains('#') && address.url().parse::<Uri>().is_ok();
        is_url
            .then_some(address)
            .ok_or_else(|| McpError::Query(name.to_owned()))
    }

    /// Returns the URL with its query; empty for a program.
    pub fn url(&self) -> String {
        match self {
            Self::Http { endpoint, query } if query.is_empty() => endpoint.url(""),
            Self::Http { endpoint, query } => format!("{}?{query}", endpoint.base()),
            Self::Stdio(_) => String::new(),
        }
    }
}

/// Returns a URL for display: without user, query and fragment, which may contain a key.
pub(super) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("//") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}//{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::error::Problem as _;

    #[test]
    fn a_url_keeps_its_query_and_does_not_show_it() {
        for (text, expected) in [
            ("https://host/mcp/", Some("https://host/mcp")),
            (
                "https://host/mcp?key=s3cret&a=%20",
                Some("https://host/mcp?key=s3cret&a=%20"),
            ),
            (
                " http://localhost:8000/sse ",
                Some("http://localhost:8000/sse"),
            ),
            ("http://127.0.0.1:1?a=b", Some("http://127.0.0.1:1?a=b")),
            ("http://host/mcp?key=s3cret", None),
            ("http://10.0.0.1/mcp?key=s3cret", None),
            ("https://host/mcp?key=s3cret#x", None),
            ("https://host/mcp?key= s3cret", None),
            ("https://user:pw@host?key=s3cret", None),
            ("nonsense?key=s3cret", None),
            ("", None),
        ] {
            let address = McpAddress::parse("URL", text);
            let url = address.as_ref().map(McpAddress::url);
            assert_eq!(url.ok().as_deref(), expected, "{text}");
            if let Err(problem) = address {
                assert!(
                    !format!("{problem} {}", problem.hint().unwrap()).contains("s3cret"),
                    "{problem}"
                );
            }
        }
    }

    #[test]
    fn possible_keys_are_not_shown() {
        for (url, expected) in [
            ("https://u:p@host:1/a/?key=k#x", "https://host:1/a/"),
            ("//u@host", "//host"),
            ("/a@b?key=k", "/a@b"),
            ("https://host/a@b", "https://host/a@b"),
            ("https://host?u@h", "https://host"),
            ("nowhere", "nowhere"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }

    #[test]
    fn a_command_is_split_into_words_without_a_shell() {
        for (text, expected) in [
            ("stdio:npx 'a b' $HOME", Some(vec!["npx", "a b", "$HOME"])),
            ("stdio:", None),
            ("stdio:'a", None),
        ] {
            let address = McpAddress::parse("URL", text).ok();
            let words = expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(address, words.map(McpAddress::Stdio), "{text}");
        }
    }
}
