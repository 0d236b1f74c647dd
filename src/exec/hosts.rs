//! The hosts that a sandboxed command may reach, and the parsing of its requests to the proxy. Pure.
//!
//! Guarantees that a request is either read unambiguously or refused, and that a forwarded request is rebuilt from its
//! parsed form; that only the exact names and ports that the user gave are allowed; and that a name which resolves to
//! an address that is not public (this machine, the local network, a cloud's metadata service) is refused unless that
//! address is allowed too.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use httparse::{EMPTY_HEADER, Header, Status};

/// Ports allowed for a host that was given without one.
const USUAL_PORTS: [u16; 2] = [80, 443];
/// Maximum number of header lines in a request.
const MAX_HEADERS: usize = 64;
/// Headers that are not forwarded: they apply only to the connection to the proxy, or are rewritten.
const NOT_SENT_ON: &str =
    "host connection proxy-connection proxy-authorization keep-alive te trailer upgrade";

/// A host, given by its lower-case name or by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostName {
    Domain(String),
    Address(IpAddr),
}

impl HostName {
    /// Parses a host as it appears in a URL, where an IPv6 address is enclosed in brackets.
    fn parse(text: &str) -> Option<Self> {
        let bracketed = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        if let Some(address) = bracketed {
            let address: Ipv6Addr = address.parse().ok()?;
            return Some(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let name = text.to_ascii_lowercase();
        let is_label = |label: &str| {
            let mut bytes = label.bytes();
            (1..=63).contains(&label.len())
                && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        // Resolvers accept `127.1` and `0x7f000001` as addresses.
        let last = name.rsplit('.').next().unwrap_or_default();
        let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
        let is_name = name.len() <= 253 && name.split('.').all(is_label) && !is_number;
        is_name.then_some(Self::Domain(name))
    }

    /// Formats the name as the user would have to allow it: with the port, unless it is a usual one.
    fn with_unusual_port(&self, port: u16) -> String {
        if USUAL_PORTS.contains(&port) {
            self.to_string()
        } else {
            format!("{self}:{port}")
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Parses `HOST` or `HOST:PORT`.
fn parse_authority(text: &str) -> Option<(HostName, Option<u16>)> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !text.ends_with(']') => {
            let digits = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|port| digits && *port != 0)?;
            (name, Some(port))
        }
        _ => (text, None),
    };
    Some((HostName::parse(name)?, port))
}

/// A host that commands may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    name: HostName,
    /// Allowed port; `None` means the usual ports.
    port: Option<u16>,
}

/// The error for text that is not a host name or address.
const NOT_A_HOST: &str = "write a host's name or address, without wildcards, and a port if it is not 80 or 443, like `crates.io` or `127.0.0.1:8080`";

impl FromStr for AllowedHost {
    type Err = &'static str;

    /// Parses `NAME` or `NAME:PORT`.
    fn from_str(text: &str) -> Result<Self, &'static str> {
        let (name, port) = parse_authority(text).ok_or(NOT_A_HOST)?;
        Ok(Self { name, port })
    }
}

impl AllowedHost {
    /// Returns whether `name` denotes this host, whatever its ports.
    pub(super) fn is_named(&self, name: &str) -> bool {
        HostName::parse(name).as_ref() == Some(&self.name)
    }
}

/// Returns whether commands may request this host and port.
pub(super) fn is_allowed(hosts: &[AllowedHost], host: &HostName, port: u16) -> bool {
    let is_usual = USUAL_PORTS.contains(&port);
    let has_port = |allowed: &AllowedHost| allowed.port.map_or(is_usual, |own| own == port);
    hosts
        .iter()
        .any(|allowed| allowed.name == *host && has_port(allowed))
}

/// Returns whether an allowed host may also resolve to this address.
pub(super) fn may_lead_to(
    hosts: &[AllowedHost],
    host: &HostName,
    address: IpAddr,
    port: u16,
) -> bool {
    let address = address.to_canonical();
    let is_localhost = address.is_loopback() && *host == HostName::Domain("localhost".to_owned());
    is_public(address) || is_localhost || is_allowed(hosts, &HostName::Address(address), port)
}

/// Returns whether an address is public, that is, not reserved for this machine, a local network or a cloud's internal
/// services.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            let is_special = matches!(
                (a, b, c),
                (0 | 224.., ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _)
            );
            // 168.63.129.16 serves a cloud's metadata, though it looks public.
            !(is_special
                || address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address == Ipv4Addr::new(168, 63, 129, 16))
        }
        IpAddr::V6(address) => match address.segments() {
            // An IPv4 address translated by NAT64.
            [0x64, 0xff9b, 0, 0, 0, 0, ..] => {
                let [.., a, b, c, d] = address.octets();
                is_public(Ipv4Addr::new(a, b, c, d).into())
            }
            // Special-purpose addresses and tunnels.
            [0x2001, ..=0x1ff, ..] | [0x2002, ..] => false,
            [first, ..] => first & 0xe000 == 0x2000,
        },
    }
}

/// A parsed request to the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    pub host: HostName,
    pub port: u16,
    /// Head to forward and the number of body bytes that follow; `None` for a tunnel to the host.
    pub plain: Option<(Vec<u8>, u64)>,
}

impl ProxyRequest {
    /// Parses the bytes received so far: returns the request and the length of its head, or `None` if it is incomplete.
    ///
    /// # Errors
    /// Fails if the proxy does not support the request.
    pub fn read(received: &[u8]) -> Result<Option<(Self, usize)>, Denial> {
        let mut headers = [EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(received) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Denial::TooLong),
            Err(_) => return Err(Denial::Malformed),
        };
        let request = match (request.method, request.path, request.version) {
            (Some("CONNECT"), Some(target), Some(_)) => Self::tunnel(target),
            (Some(method), Some(url), Some(version)) => {
                Self::plain(method, url, version, request.headers)
            }
            _ => Err(Denial::Malformed),
        };
        Ok(Some((request?, length)))
    }

    fn tunnel(target: &str) -> Result<Self, Denial> {
        match parse_authority(target) {
            Some((host, Some(port))) => Ok(Self {
                host,
                port,
                plain: None,
            }),
            _ => Err(Denial::Malformed),
        }
    }

    fn plain(method: &str, url: &str, version: u8, headers: &[Header<'_>]) -> Result<Self, Denial> {
        let (scheme, rest) = url.split_once("://").ok_or(Denial::Malformed)?;
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = parse_authority(authority)
            .filter(|_| scheme.eq_ignore_ascii_case("http"))
            .ok_or(Denial::Malformed)?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let authority = authority.to_ascii_lowercase();
        let mut head = format!(
            "{method} {slash}{path} HTTP/1.{version}\r\nHost: {authority}\r\nConnection: close\r\n"
        )
        .into_bytes();
        let is_sent_on = |header: &&Header<'_>| {
            let mut others = NOT_SENT_ON.split(' ');
            !others.any(|other| header.name.eq_ignore_ascii_case(other))
        };
        for header in headers.iter().filter(is_sent_on) {
            head.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
        }
        head.extend(b"\r\n");
        Ok(Self {
            host,
            port: port.unwrap_or(80),
            plain: Some((head, body_length(headers)?)),
        })
    }
}

/// Returns the number of body bytes that follow a head. Anything but a single `Content-Length` is refused, because the
/// body could be mistaken for a second request.
fn body_length(headers: &[Header<'_>]) -> Result<u64, Denial> {
    let named = |name: &'static str| {
        let is_it = move |header: &&Header<'_>| header.name.eq_ignore_ascii_case(name);
        headers.iter().filter(is_it)
    };
    let mut lengths = named("content-length");
    match (lengths.next(), lengths.next()) {
        _ if named("transfer-encoding").next().is_some() => Err(Denial::UnknownLength),
        (None, _) => Ok(0),
        (Some(header), None) if header.value.iter().all(u8::is_ascii_digit) => {
            let digits = str::from_utf8(header.value).unwrap_or_default();
            digits.parse().map_err(|_| Denial::UnknownLength)
        }
        _ => Err(Denial::UnknownLength),
    }
}

/// Reasons why the proxy denies a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Denial {
    #[error("this is a proxy for `CONNECT HOST:PORT` and `GET http://HOST/PATH`")]
    Malformed,
    #[error("a body needs one `Content-Length`, and no `Transfer-Encoding`")]
    UnknownLength,
    #[error("the head of the request is too long")]
    TooLong,
    #[error("the head of the request did not come in time")]
    Late,
    #[error("`{host}:{port}` is not allowed; `--allow-host {}` allows it", .host.with_unusual_port(*.port))]
    NotAllowed { host: HostName, port: u16 },
    #[error(
        "`{host}:{port}` leads to an address that is not public; `--allow-host {}` allows that, too",
        .address.with_unusual_port(*.port)
    )]
    NotPublic {
        host: HostName,
        port: u16,
        address: HostName,
    },
    #[error("`{host}:{port}` cannot be reached: {reason}")]
    Unreachable {
        host: HostName,
        port: u16,
        reason: String,
    },
}

impl Denial {
    /// Returns whether allowing the host or its address would have permitted the request.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::NotAllowed { .. } | Self::NotPublic { .. })
    }

    /// Formats the full response. Its first line states the reason, because many programs show nothing else.
    pub fn response(&self) -> String {
        let status = match self {
            Self::Malformed => 400,
            Self::NotAllowed { .. } | Self::NotPublic { .. } => 403,
            Self::Late => 408,
            Self::UnknownLength => 411,
            Self::TooLong => 431,
            Self::Unreachable { .. } => 502,
        };
        let length = self.to_string().len() + 1;
        format!(
            "HTTP/1.1 {status} {self}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{self}\n"
        )
    }
}

#[cfg(test)]
mod tests;
