//! The destination of a call: the server's base URL and the proxy to reach it. Pure.
//!
//! Guarantees that a key is sent only encrypted or within this machine: an [`Endpoint`] uses https, or http to a
//! loopback host or, without a key, to a host of a private network; and plain http never goes through a proxy.

use std::net::IpAddr;

use ureq::http::Uri;
use ureq::{Proxy, ProxyBuilder, ProxyProtocol};

use super::transport::{PlainAddresses, is_private};
use crate::sys::environment::Environment;

/// The validated base URL of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    base: String,
    host: String,
    plain: Option<PlainAddresses>,
}

/// Errors from reading a base URL or a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[diagnostic(code("/settings"))]
pub enum EndpointProblem {
    /// The value is not a URL, lacks a host, or has a user name, query or fragment.
    #[error("`{variable}` is `{}`, which is not a plain URL of a server", without_user(.value))]
    #[diagnostic(help("set `{variable}` to something like `{example}`, or unset it"))]
    NotAUrl {
        /// Name of the environment variable.
        variable: String,
        /// Value of the variable, shown without a user name.
        value: String,
        /// Example of a valid value.
        example: &'static str,
    },
    /// The URL uses plain http to another machine.
    #[error("`{variable}` is `{value}`: plain http is taken for loopback hosts only{}", if *.has_key { "" } else { ", and for private addresses" })]
    #[diagnostic(help("{}use https in `{variable}`, or unset it", if *has_key { "the key travels in a header: " } else { "" }))]
    Insecure {
        /// True if a key would be sent along.
        has_key: bool,
        /// Name of the environment variable.
        variable: String,
        /// Value of the variable, which is shown.
        value: String,
    },
    /// No server is configured.
    #[error("no server is named: `{variable}` is not set")]
    #[diagnostic(help("set `{variable}` to something like `{example}`"))]
    Unset {
        /// Name of the environment variable.
        variable: String,
        /// Example of a valid value.
        example: &'static str,
    },
    /// The proxy's URL is invalid or of an unsupported kind.
    #[error("`{variable}` does not hold the URL of an http or https proxy")]
    #[diagnostic(help("set `{variable}` to something like `http://host:port`, or unset it"))]
    BadProxy { variable: String },
}

/// Removes the user name and password from a URL: everything before the last `@`.
fn without_user(url: &str) -> String {
    let host = url.rsplit_once('@').map(|(_, host)| format!("…@{host}"));
    host.unwrap_or_else(|| url.to_owned())
}

impl Endpoint {
    /// Validates a base URL; `variable` names its origin, and `has_key` is true if calls carry a key.
    ///
    /// # Errors
    /// Fails if the URL is not acceptable.
    pub fn parse(variable: &str, value: &str, has_key: bool) -> Result<Self, EndpointProblem> {
        let (variable, value) = (variable.to_owned(), value.to_owned());
        let base = value.trim().trim_end_matches('/').to_owned();
        let Some((host, secure)) = plain_server(&base) else {
            return Err(EndpointProblem::NotAUrl {
                variable,
                value,
                example: "https://host/path",
            });
        };
        let plain = if secure {
            None
        } else if is_loopback(&host) {
            Some(PlainAddresses::Loopback)
        } else if !has_key && may_be_private(&host) {
            Some(PlainAddresses::Private)
        } else {
            return Err(EndpointProblem::Insecure {
                has_key,
                variable,
                value,
            });
        };
        Ok(Self { base, host, plain })
    }

    /// Returns the URL of `path`, which must begin with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns the base URL, without a trailing slash.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the server's host, for messages.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns whether calls stay on this machine, unencrypted and without a proxy.
    pub fn is_this_machine(&self) -> bool {
        self.plain == Some(PlainAddresses::Loopback)
    }

    /// Returns whether calls are encrypted.
    pub fn is_secure(&self) -> bool {
        self.plain.is_none()
    }

    /// Returns the addresses that unencrypted calls may go to; `None` if calls are encrypted.
    pub fn plain(&self) -> Option<PlainAddresses> {
        self.plain
    }
}

/// Returns the host of a URL that consists of a server and a path only, and whether the scheme is https.
fn plain_server(base: &str) -> Option<(String, bool)> {
    let uri: Uri = base.parse().ok()?;
    let (authority, host) = (uri.authority()?, uri.host()?);
    // `Uri` would silently ignore a port that is not a number.
    let has_plain_port = authority.as_str() == host || authority.port_u16().is_some();
    let has_more = authority.as_str().contains('@') || uri.query().is_some() || base.contains('#');
    let secure = uri.scheme_str()? == "https";
    let is_plain = !host.is_empty() && has_plain_port && !has_more;
    (is_plain && (secure || uri.scheme_str() == Some("http"))).then(|| (host.to_owned(), secure))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback())
}

/// Returns whether a host is in a private network, judging by its address, or may be, judging by its name. For a name,
/// the addresses are checked when the connection is made.
fn may_be_private(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return is_private(address);
    }
    let host = host.to_ascii_lowercase();
    let endings = [".local", ".internal", ".lan", ".home.arpa"];
    !host.contains('.') || endings.iter().any(|ending| host.ends_with(ending))
}

/// The proxy for https that the environment configures, if any.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Option<Proxy>);

impl Proxies {
    /// Reads `HTTPS_PROXY` and `ALL_PROXY`, in upper or lower case, with the exceptions in `NO_PROXY`.
    ///
    /// # Errors
    /// Fails if the proxy's URL is not acceptable.
    pub fn from_environment(environment: &Environment) -> Result<Self, EndpointProblem> {
        let variables = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        let Some((variable, value)) = environment.first(&variables) else {
            return Ok(Self(None));
        };
        let exceptions = environment.first(&["NO_PROXY", "no_proxy"]);
        let proxy = proxy(value, exceptions.map_or("", |(_, list)| list));
        let bad = || EndpointProblem::BadProxy {
            variable: variable.into(),
        };
        proxy.map(|proxy| Self(Some(proxy))).ok_or_else(bad)
    }

    /// Returns the proxy for calls to `endpoint`.
    pub fn for_endpoint(&self, endpoint: &Endpoint) -> Option<Proxy> {
        self.0.clone().filter(|_| endpoint.is_secure())
    }
}

fn proxy(value: &str, excepted: &str) -> Option<Proxy> {
    // `Proxy::new` takes no exceptions, so its result is passed through the builder.
    let read = Proxy::new(value).ok()?;
    if !matches!(read.protocol(), ProxyProtocol::Http | ProxyProtocol::Https) {
        return None;
    }
    let builder = Proxy::builder(read.protocol())
        .host(read.host())
        .port(read.port());
    let (user, password) = (read.username().into_iter(), read.password().into_iter());
    let with_user = user.fold(builder, ProxyBuilder::username);
    let with_login = password.fold(with_user, ProxyBuilder::password);
    let names = excepted.split(',').map(str::trim);
    let exceptions = names.filter(|name| !name.is_empty());
    let builder = exceptions.fold(with_login, ProxyBuilder::no_proxy);
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::error::Problem as _;

    #[test]
    fn https_and_loopback_http_are_taken_and_nothing_else() {
        for (url, expected) in [
            (
                "https://example.com/base/",
                Some("https://example.com/base/x"),
            ),
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080/x")),
            ("http://127.9.9.9", Some("http://127.9.9.9/x")),
            ("http://[::1]:80/v1", Some("http://[::1]:80/v1/x")),
            ("http://LOCALHOST:1", Some("http://LOCALHOST:1/x")),
            ("http://example.com", None),
            ("http://127.0.0.1.example.com", None),
            ("http://localhost.example.com", None),
            ("http://127.0.0.1@example.com", None),
            ("http://10.0.0.1", None),
            ("http://0.0.0.0", None),
            ("http://127.0.0.1:99999", None),
            ("http://127.0.0.1:", None),
            ("https://user:secret@example.com", None),
            ("https://example.com/?key=1", None),
            ("https://example.com/#x", None),
            ("ftp://localhost", None),
            ("localhost:80", None),
            ("https://", None),
            ("nonsense", None),
            ("", None),
        ] {
            let endpoint = Endpoint::parse("OPENAI_BASE_URL", url, true);
            assert_eq!(
                endpoint.ok().map(|e| e.url("/x")).as_deref(),
                expected,
                "{url}"
            );
        }
    }

    #[test]
    fn a_password_in_a_url_is_not_told() {
        for (url, told) in [
            ("http://u:PW@host/mcp", "`…@host/mcp`"),
            ("https://u:P@W@host", "`…@host`"),
            ("u:PW@host", "`…@host`"),
            ("nonsense", "`nonsense`"),
        ] {
            let error = Endpoint::parse("SERVER", url, true).unwrap_err();
            let problem = error.to_string();
            assert!(
                problem.contains(told) && !problem.contains("PW"),
                "{problem}"
            );
        }
    }

    #[test]
    fn without_a_key_plain_http_goes_to_private_addresses_and_names_of_them() {
        for (url, expected) in [
            ("http://10.0.0.1:8080/v1", Some(PlainAddresses::Private)),
            ("http://192.168.1.9", Some(PlainAddresses::Private)),
            ("http://[fd00::1]:80", Some(PlainAddresses::Private)),
            (
                "http://host.docker.internal:11434",
                Some(PlainAddresses::Private),
            ),
            ("http://gpu:8000/v1", Some(PlainAddresses::Private)),
            ("http://Gpu.LOCAL", Some(PlainAddresses::Private)),
            ("http://127.0.0.1", Some(PlainAddresses::Loopback)),
            ("http://localhost", Some(PlainAddresses::Loopback)),
            ("http://8.8.8.8", None),
            ("http://169.254.169.254", None),
            ("http://0.0.0.0", None),
            ("http://example.com", None),
            ("http://127.0.0.1.example.com", None),
            ("http://local.example.com", None),
        ] {
            let endpoint = Endpoint::parse("baseUrl", url, false);
            assert_eq!(
                endpoint.ok().and_then(|found| found.plain()),
                expected,
                "{url}"
            );
        }
        let problem = Endpoint::parse("baseUrl", "http://example.com", false).unwrap_err();
        assert!(!problem.hint().unwrap().contains("key"));
    }

    #[test]
    fn a_proxy_is_for_https_only_and_knows_its_exceptions() {
        let environment = Environment::of(&[
            ("https_proxy", "http://user:pw@proxy.test:3128"),
            ("NO_PROXY", "internal.test, other.test"),
        ]);
        let proxies = Proxies::from_environment(&environment).unwrap();
        let secure = Endpoint::parse("V", "https://api.test", true).unwrap();
        let proxy = proxies.for_endpoint(&secure).unwrap();
        assert_eq!(
            (proxy.host(), proxy.port(), proxy.username()),
            ("proxy.test", 3128, Some("user"))
        );
        assert!(proxy.is_no_proxy(&"https://internal.test/x".parse().unwrap()));
        assert!(!proxy.is_no_proxy(&"https://api.test/x".parse().unwrap()));
        let local = Endpoint::parse("V", "http://localhost", true).unwrap();
        assert!(proxies.for_endpoint(&local).is_none());
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named_without_its_value() {
        for value in ["socks5://user:secret@p", "::", "ftp://p"] {
            let problem =
                Proxies::from_environment(&Environment::of(&[("ALL_PROXY", value)])).unwrap_err();
            assert!(problem.to_string().contains("ALL_PROXY"));
            assert!(!problem.to_string().contains("secret"));
        }
    }
}
