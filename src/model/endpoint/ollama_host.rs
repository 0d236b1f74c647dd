//! Parses `OLLAMA_HOST` in every spelling that Ollama itself accepts. Pure.
//!
//! Follows Ollama's `envconfig.Host` except for an invalid port: Ollama falls back on the default port, which may be
//! another server's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The default port of Ollama's server.
const PORT: u16 = 11434;

/// Returns the base URL of the server; `None` if the value does not name one.
pub fn base_url(value: &str) -> Option<String> {
    let value = value.trim().trim_matches(['"', '\'']).trim();
    let (scheme, rest, port) = match value.split_once("://") {
        Some(("http", rest)) => ("http", rest, 80),
        Some(("https", rest)) => ("https", rest, 443),
        Some(_) => return None,
        None => ("http", value, PORT),
    };
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = host_and_port(server, port)?;
    let path = path.trim_matches('/');
    let slash = if path.is_empty() { "" } else { "/" };
    Some(format!("{scheme}://{host}:{port}{slash}{path}"))
}

/// Returns the host in the form of a URL, and the port, or else the `usual` one.
fn host_and_port(server: &str, usual: u16) -> Option<(String, u16)> {
    if let Ok(address) = server.parse::<Ipv6Addr>() {
        return Some((reachable(address.into()), usual));
    }
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !server.ends_with(']') => (host, port.parse().ok()?),
        _ => (server, usual),
    };
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Some(address) = bracketed {
        return Some((reachable(address.parse::<Ipv6Addr>().ok()?.into()), port));
    }
    match host.parse::<Ipv4Addr>() {
        Ok(address) => Some((reachable(address.into()), port)),
        Err(_) if host.is_empty() => Some((Ipv4Addr::LOCALHOST.to_string(), port)),
        // A port alone would follow a colon, and a number is not a host name.
        Err(_) if host.contains(':') || host.bytes().all(|byte| byte.is_ascii_digit()) => None,
        Err(_) => Some((host.to_owned(), port)),
    }
}

/// Formats an address for a URL. A server that listens on all addresses is reached through loopback.
fn reachable(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) if address.is_unspecified() => format!("[{}]", Ipv6Addr::LOCALHOST),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_of_ollamas_is_taken() {
        for (value, expected) in [
            ("", "http://127.0.0.1:11434"),
            ("1.2.3.4", "http://1.2.3.4:11434"),
            (":1234", "http://127.0.0.1:1234"),
            ("1.2.3.4:1234", "http://1.2.3.4:1234"),
            ("example.com", "http://example.com:11434"),
            ("example.com:1234", "http://example.com:1234"),
            ("localhost", "http://localhost:11434"),
            ("[::1]", "http://[::1]:11434"),
            ("::1", "http://[::1]:11434"),
            ("[::1]:1337", "http://[::1]:1337"),
            ("[0001:002:003:0004::1]:5", "http://[1:2:3:4::1]:5"),
            (" 1.2.3.4 ", "http://1.2.3.4:11434"),
            ("\"1.2.3.4\"", "http://1.2.3.4:11434"),
            (" \" 1.2.3.4 \" ", "http://1.2.3.4:11434"),
            ("'1.2.3.4'", "http://1.2.3.4:11434"),
            ("http://1.2.3.4", "http://1.2.3.4:80"),
            ("http://1.2.3.4:4321/", "http://1.2.3.4:4321"),
            ("https://1.2.3.4", "https://1.2.3.4:443"),
            ("https://1.2.3.4:4321", "https://1.2.3.4:4321"),
            ("http://[::1]", "http://[::1]:80"),
            (
                "https://example.com/ollama",
                "https://example.com:443/ollama",
            ),
            ("example.com:56789/path/", "http://example.com:56789/path"),
            // A server that listens on all addresses.
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("http://0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("::", "http://[::1]:11434"),
            ("[::]:80", "http://[::1]:80"),
        ] {
            assert_eq!(base_url(value).as_deref(), Some(expected), "{value}");
        }
    }

    #[test]
    fn value_without_a_server_is_refused() {
        for value in [
            ":66000",
            ":-1",
            "1.2.3.4:",
            "host:port",
            "11434",
            "ftp://1.2.3.4",
            "1:2:3",
            "[::1",
            "[host]:1",
        ] {
            assert_eq!(base_url(value), None, "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_read_without_panic(value in "[\\PC:/\\[\\]0-9.'\"]{0,20}") {
            let _ = base_url(&value);
        }
    }
}
