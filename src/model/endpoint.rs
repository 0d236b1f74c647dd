//! Where a call goes: the base URL, and the proxy on the way. Pure.
//!
//! Guarantees that a key travels encrypted, or does not leave the machine: an [`Endpoint`] is https,
//! or http to a loopback host, or, without a key, to one of a private network; and plain http never
//! goes through a proxy.

mod ollama_host;

use std::net::IpAddr;

use ureq::http::Uri;
use ureq::{Proxy, ProxyBuilder, ProxyProtocol};

use super::{ModelSpec, Provider};
use crate::sys::environment::Environment;
use crate::sys::transport::{PlainAddresses, is_private};

/// The variable that names Ollama's server, in spellings of its own.
const OLLAMA_HOST: &str = "OLLAMA_HOST";

/// The variable that names a resource in Azure: each user has one of his own.
pub(super) const AZURE_BASE_URL: &str = "AZURE_OPENAI_BASE_URL";

/// The base URL of a vendor's API, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    base: String,
    host: String,
    plain: Option<PlainAddresses>,
}

/// Why a base URL or a proxy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointProblem {
    /// Not a URL, or one without a host, or with a user name, query or fragment.
    #[error("`{variable}` is `{value}`, which is not a plain URL of a server")]
    NotAUrl {
        /// The environment variable.
        variable: String,
        /// What the variable says, which is shown.
        value: String,
    },
    /// Plain http to another machine.
    #[error("`{variable}` is `{value}`: plain http is taken for loopback hosts only{}", if *.has_key { "" } else { ", and for private addresses" })]
    Insecure {
        /// Whether a key would travel along.
        has_key: bool,
        /// The environment variable.
        variable: String,
        /// What the variable says, which is shown.
        value: String,
    },
    /// Nothing names a server, and the provider has none of its own.
    #[error("no server is named: `{variable}` is not set")]
    Unset {
        /// The environment variable.
        variable: &'static str,
    },
    /// The proxy's URL is none, or of a kind that is not supported.
    #[error("`{variable}` does not hold the URL of an http or https proxy")]
    BadProxy {
        /// The environment variable; its value may hold a password.
        variable: String,
    },
}

impl EndpointProblem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotAUrl { variable, .. } if variable == OLLAMA_HOST => {
                format!("set `{variable}` to something like `127.0.0.1:11434`, or unset it")
            }
            Self::NotAUrl { variable, .. } => {
                format!("set `{variable}` to something like `https://host/path`, or unset it")
            }
            Self::Insecure {
                variable,
                has_key: false,
                ..
            } => format!("use https in `{variable}`, or unset it"),
            Self::Insecure { variable, .. } => {
                format!("the key travels in a header: use https in `{variable}`, or unset it")
            }
            Self::Unset { variable } => format!(
                "set `{variable}` to the resource's URL, like `https://NAME.openai.azure.com`, or give the entry a `baseUrl`"
            ),
            Self::BadProxy { variable } => {
                format!("set `{variable}` to something like `http://host:port`, or unset it")
            }
        }
    }
}

impl Endpoint {
    /// The model's own endpoint, the one that the environment names, or the vendor's; `has_key` says whether calls
    /// carry a key.
    ///
    /// # Errors
    /// When the base URL cannot be used.
    pub fn of(
        spec: &ModelSpec,
        environment: &Environment,
        has_key: bool,
    ) -> Result<Self, EndpointProblem> {
        if let Some(url) = &spec.base_url {
            return Self::parse("baseUrl", url, has_key);
        }
        let (variable, standard) = standard(spec.provider);
        let Some(value) = environment.get(variable) else {
            let standard = standard.ok_or(EndpointProblem::Unset { variable })?;
            return Self::parse(variable, standard, has_key);
        };
        if spec.provider != Provider::Ollama {
            return Self::parse(variable, value, has_key);
        }
        let not_a_url = || EndpointProblem::NotAUrl {
            variable: variable.to_owned(),
            value: value.to_owned(),
        };
        let url = ollama_host::base_url(value).ok_or_else(not_a_url)?;
        Self::parse(variable, &url, has_key)
    }

    /// The base URL, where it is not that of the provider's own service, or of Ollama on this machine.
    #[must_use]
    pub fn differing(&self, provider: Provider) -> Option<&str> {
        let (_, standard) = standard(provider);
        let is_usual = provider == Provider::Ollama && self.is_this_machine();
        (Some(&*self.base) != standard && !is_usual).then_some(&*self.base)
    }

    /// Checks a base URL; `variable` says where it was named, and `has_key` whether calls carry a key.
    pub(crate) fn parse(
        variable: &str,
        value: &str,
        has_key: bool,
    ) -> Result<Self, EndpointProblem> {
        let (variable, value) = (variable.to_owned(), value.to_owned());
        let base = value.trim().trim_end_matches('/').to_owned();
        let Some((host, secure)) = plain_server(&base) else {
            return Err(EndpointProblem::NotAUrl { variable, value });
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

    /// The URL of `path`, which begins with a slash.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The server's host, for messages.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether calls go straight to this machine: no proxy is asked, and nothing is encrypted.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        self.plain == Some(PlainAddresses::Loopback)
    }

    /// Whether calls are encrypted.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.plain.is_none()
    }

    /// The only addresses that calls go to, where they are not encrypted.
    #[must_use]
    pub fn plain(&self) -> Option<PlainAddresses> {
        self.plain
    }
}

/// The variable that names another server, and the base URL of the provider's own, if it has one.
fn standard(provider: Provider) -> (&'static str, Option<&'static str>) {
    let (variable, own) = match provider {
        Provider::Gemini => (
            "GOOGLE_GEMINI_BASE_URL",
            "https://generativelanguage.googleapis.com",
        ),
        Provider::OpenAi => ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
        Provider::Ollama => (OLLAMA_HOST, "http://127.0.0.1:11434"),
        Provider::Azure => return (AZURE_BASE_URL, None),
    };
    (variable, Some(own))
}

/// The host of a URL that names nothing but a server and a path, and whether that is https.
fn plain_server(base: &str) -> Option<(String, bool)> {
    let uri: Uri = base.parse().ok()?;
    let (authority, host) = (uri.authority()?, uri.host()?);
    // A port that is no number is no port for `Uri`, and would be passed over.
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

/// Whether a host is one of a private network, by its address, or may be, by its name: what the name resolves to is
/// looked at when the connection is made.
fn may_be_private(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse::<IpAddr>() {
        return is_private(address);
    }
    let host = host.to_ascii_lowercase();
    let endings = [".local", ".internal", ".lan", ".home.arpa"];
    !host.contains('.') || endings.iter().any(|ending| host.ends_with(ending))
}

/// The proxy that the environment names for https.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Option<Proxy>);

impl Proxies {
    /// Reads `HTTPS_PROXY` and `ALL_PROXY`, in either case, less what `NO_PROXY` takes out.
    ///
    /// # Errors
    /// When the proxy's URL cannot be used.
    pub fn from_environment(environment: &Environment) -> Result<Self, EndpointProblem> {
        let variables = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        let Some((variable, value)) = environment.first(&variables) else {
            return Ok(Self(None));
        };
        let excepted = environment
            .first(&["NO_PROXY", "no_proxy"])
            .map_or("", |(_, list)| list);
        match proxy(value, excepted) {
            Some(proxy) => Ok(Self(Some(proxy))),
            None => Err(EndpointProblem::BadProxy {
                variable: variable.into(),
            }),
        }
    }

    /// The proxy for calls to `endpoint`.
    pub(super) fn for_endpoint(&self, endpoint: &Endpoint) -> Option<Proxy> {
        self.0.clone().filter(|_| endpoint.is_secure())
    }
}

fn proxy(value: &str, excepted: &str) -> Option<Proxy> {
    // `Proxy::new` takes no exceptions, so what it read goes through the builder once more.
    let read = Proxy::new(value).ok()?;
    if !matches!(read.protocol(), ProxyProtocol::Http | ProxyProtocol::Https) {
        return None;
    }
    let builder = Proxy::builder(read.protocol())
        .host(read.host())
        .port(read.port());
    let builder = read
        .username()
        .into_iter()
        .fold(builder, ProxyBuilder::username);
    let builder = read
        .password()
        .into_iter()
        .fold(builder, ProxyBuilder::password);
    let entries = excepted.split(',').map(str::trim);
    let entries = entries.filter(|entry| !entry.is_empty());
    entries.fold(builder, ProxyBuilder::no_proxy).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(!problem.hint().contains("key"));
    }

    #[test]
    fn a_server_that_is_not_the_vendors_is_told() {
        let gemini = ModelSpec::new("x", Provider::Gemini);
        let at = |url: &str| ModelSpec {
            base_url: Some(url.to_owned()),
            ..gemini.clone()
        };
        let variable = [("GOOGLE_GEMINI_BASE_URL", "https://proxy.test/g/")];
        let none = Environment::of(&[]);
        let set = Environment::of(&variable);
        for (spec, environment, expected) in [
            (&gemini, &none, None),
            (&gemini, &set, Some("https://proxy.test/g")),
            (&at("https://a.test"), &set, Some("https://a.test")),
            (
                &at("https://generativelanguage.googleapis.com/"),
                &set,
                None,
            ),
        ] {
            let endpoint = Endpoint::of(spec, environment, true).unwrap();
            assert_eq!(endpoint.differing(spec.provider), expected);
        }
    }

    #[test]
    fn ollamas_server_is_the_entrys_or_the_variables_in_its_spellings() {
        let ollama = ModelSpec::new("x", Provider::Ollama);
        let own = ModelSpec {
            base_url: Some("http://10.0.0.2:80".to_owned()),
            ..ollama.clone()
        };
        let set = |value| Environment::of(&[("OLLAMA_HOST", value)]);
        for (spec, value, expected) in [
            (&ollama, "", "http://127.0.0.1:11434/api/tags"),
            (&ollama, "gpu:8080", "http://gpu:8080/api/tags"),
            (&ollama, "0.0.0.0", "http://127.0.0.1:11434/api/tags"),
            (&own, "gpu:8080", "http://10.0.0.2:80/api/tags"),
        ] {
            let endpoint = Endpoint::of(spec, &set(value), false).unwrap();
            assert_eq!(endpoint.url("/api/tags"), expected);
        }
        for (value, expected) in [
            (
                ":99999",
                "`OLLAMA_HOST` is `:99999`, which is not a plain URL",
            ),
            (
                "example.com",
                "`OLLAMA_HOST` is `http://example.com:11434`: plain http",
            ),
        ] {
            let problem = Endpoint::of(&ollama, &set(value), false).unwrap_err();
            assert!(problem.to_string().starts_with(expected), "{problem}");
        }
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
