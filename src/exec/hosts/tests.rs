//! Tests of names, addresses and requests, in tables.

use super::*;

fn allowed(names: &[&str]) -> Vec<AllowedHost> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn request(text: &str) -> Result<Option<(ProxyRequest, usize)>, Denial> {
    ProxyRequest::read(text.as_bytes())
}

#[test]
fn hosts_are_named_in_full_or_not_at_all() {
    for name in [
        "crates.io",
        "CRATES.io:443",
        "localhost",
        "my_host-1",
        "127.0.0.1:8080",
        "[::1]",
        "[::1]:80",
        "xn--bcher-kva.example",
    ] {
        assert!(name.parse::<AllowedHost>().is_ok(), "{name}");
    }
    for name in [
        "",
        ".",
        "*.io",
        "*",
        "crates.io.",
        ".io",
        "a..b",
        "a b",
        "bücher.example",
        "http://crates.io",
        "crates.io/",
        "user@crates.io",
        "crates.io:",
        "crates.io:0",
        "crates.io:+80",
        "crates.io:65536",
        "::1",
        "[::1",
        "[crates.io]",
        "[fe80::1%eth0]",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0X7F.1",
        "127.0.0.01",
        "1.2.3.4.5",
        "a:80:80",
    ] {
        assert_eq!(name.parse::<AllowedHost>(), Err(NOT_A_HOST), "{name}");
    }
    assert!("a".repeat(64).parse::<AllowedHost>().is_err());
    assert!(["a"; 200].join(".").parse::<AllowedHost>().is_err());
}

#[test]
fn a_host_is_allowed_by_its_very_name_and_port() {
    let hosts = allowed(&[
        "Crates.io",
        "mirror.example:8443",
        "127.0.0.1:8080",
        "[::1]",
    ]);
    for (target, expected) in [
        ("crates.io:443", true),
        ("CRATES.IO:80", true),
        ("crates.io:22", false),
        ("static.crates.io:443", false),
        ("crates.io.evil.example:443", false),
        ("evilcrates.io:443", false),
        ("mirror.example:8443", true),
        ("mirror.example:443", false),
        ("127.0.0.1:8080", true),
        ("[::ffff:127.0.0.1]:8080", true),
        ("127.0.0.1:80", false),
        ("[0:0::1]:443", true),
    ] {
        let (host, port) = parse_authority(target).unwrap();
        assert_eq!(
            is_allowed(&hosts, &host, port.unwrap()),
            expected,
            "{target}"
        );
    }
}

#[test]
fn a_name_leads_to_public_addresses_and_to_those_that_are_named() {
    let hosts = allowed(&["a.example", "10.1.2.3", "localhost:8080"]);
    let leads = |host: &str, address: &str, port| {
        may_lead_to(
            &hosts,
            &HostName::parse(host).unwrap(),
            address.parse().unwrap(),
            port,
        )
    };
    for address in [
        "1.1.1.1",
        "192.0.1.1",
        "172.32.0.1",
        "2606:4700::1111",
        "64:ff9b::101:101",
    ] {
        assert!(leads("a.example", address, 443), "{address}");
    }
    for address in [
        "0.0.0.0",
        "127.0.0.1",
        "127.9.9.9",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "100.100.100.200",
        "169.254.169.254",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::7f00:1",
        "fe80::1",
        "fec0::1",
        "fd00:ec2::254",
        "ff02::1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2001::1",
        "2002:7f00:1::",
    ] {
        assert!(!leads("a.example", address, 443), "{address}");
    }
    assert!(leads("a.example", "10.1.2.3", 443) && leads("a.example", "::ffff:10.1.2.3", 443));
    assert!(
        !leads("a.example", "10.1.2.3", 8443),
        "its port is not named"
    );
    assert!(leads("localhost", "127.0.0.1", 8080) && leads("localhost", "::1", 8080));
    assert!(!leads("localhost", "10.0.0.1", 8080));
}

#[test]
fn a_tunnel_needs_a_host_and_a_port_and_nothing_else() {
    let (read, length) = request("CONNECT Crates.io:443 HTTP/1.1\r\nHost: evil\r\n\r\nrest")
        .unwrap()
        .unwrap();
    assert_eq!(
        (read.host.to_string().as_str(), read.port),
        ("crates.io", 443)
    );
    assert_eq!((read.plain, length), (None, 46));
    assert_eq!(
        request("CONNECT crates.io:443 HTTP/1.1\r\nHost: x\r\n"),
        Ok(None)
    );
    for target in [
        "crates.io",
        "evil@crates.io:443",
        "crates.io:443@evil",
        "http://crates.io:443",
        "crates.io.:443",
        "crates.io:443/",
        "crates.io:443#x",
        "crates.io%00:443",
        ":443",
        "*:443",
        "/",
        "crates.io:4\u{a0}3",
    ] {
        let text = format!("CONNECT {target} HTTP/1.1\r\n\r\n");
        assert_eq!(request(&text), Err(Denial::Malformed), "{target}");
    }
}

#[test]
fn a_plain_request_is_written_again() {
    let sent = "POST HTTP://A.Example:8080?q=1 HTTP/1.0\r\nHost: evil.example\r\nHOST: other\r\n\
        Connection: keep-alive\r\nProxy-Authorization: x\r\nUpgrade: h2c\r\nX-Mine:  y \nContent-Length: 3\r\n\r\nabc";
    let (read, length) = request(sent).unwrap().unwrap();
    assert_eq!(&sent[length..], "abc");
    assert_eq!(
        (read.host.to_string().as_str(), read.port),
        ("a.example", 8080)
    );
    let (head, body) = read.plain.unwrap();
    let expected = "POST /?q=1 HTTP/1.0\r\nHost: a.example:8080\r\nConnection: close\r\nX-Mine: y\r\n\
        Content-Length: 3\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), expected);
    assert_eq!(body, 3);
    let (read, _) = request("GET http://a.example/x HTTP/1.1\r\n\r\n")
        .unwrap()
        .unwrap();
    assert_eq!(read.port, 80);
    assert!(
        read.plain
            .unwrap()
            .0
            .starts_with(b"GET /x HTTP/1.1\r\nHost: a.example\r\n")
    );
}

#[test]
fn ambiguous_requests_are_refused() {
    for line in [
        "GET / HTTP/1.1",
        "GET //a.example/ HTTP/1.1",
        "GET https://a.example/ HTTP/1.1",
        "GET ftp://a.example/ HTTP/1.1",
        "GET http:/a.example/ HTTP/1.1",
        "GET http:///x HTTP/1.1",
        "GET http://user@a.example/ HTTP/1.1",
        "GET http://a.example#@evil/ HTTP/1.1",
        "GET http://a.example\\@evil/ HTTP/1.1",
        "GET http://a.example./ HTTP/1.1",
        "GET  http://a.example/ HTTP/1.1",
        "GET http://a.example/ x HTTP/1.1",
        "GET http://a.example/ HTTP/2.0",
        "PRI * HTTP/2.0",
        "\u{16}\u{3}\u{1}",
    ] {
        assert_eq!(
            request(&format!("{line}\r\n\r\n")),
            Err(Denial::Malformed),
            "{line}"
        );
    }
    for header in ["X: a\rY: b", "X: a\r\n folded", "X : a", "X: a\0b", "X"] {
        let text = format!("GET http://a.example/ HTTP/1.1\r\n{header}\r\n\r\n");
        assert_eq!(request(&text), Err(Denial::Malformed), "{header:?}");
    }
    for header in [
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: +1",
        "Content-Length: 1, 1",
        "Content-Length:",
        "Content-Length: 99999999999999999999",
        "Transfer-Encoding: chunked",
        "Content-Length: 1\r\nTransfer-Encoding: identity",
    ] {
        let text = format!("GET http://a.example/ HTTP/1.1\r\n{header}\r\n\r\n");
        assert_eq!(request(&text), Err(Denial::UnknownLength), "{header:?}");
    }
    let many = format!(
        "GET http://a.example/ HTTP/1.1\r\n{}\r\n",
        "X: y\r\n".repeat(65)
    );
    assert_eq!(request(&many), Err(Denial::TooLong));
}

#[test]
fn a_refusal_says_in_a_line_what_allows_it() {
    let host = HostName::parse("a.example").unwrap();
    let not_allowed = |port| Denial::NotAllowed {
        host: host.clone(),
        port,
    };
    let expected = "`a.example:443` is not allowed; `--allow-host a.example` allows it";
    assert_eq!(not_allowed(443).to_string(), expected);
    let response = not_allowed(443).response();
    assert!(response.starts_with(&format!("HTTP/1.1 403 {expected}\r\n")));
    assert!(response.ends_with(&format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n{expected}\n",
        expected.len() + 1
    )));
    assert!(
        not_allowed(22)
            .to_string()
            .contains("`--allow-host a.example:22`")
    );
    let not_public = Denial::NotPublic {
        host,
        port: 443,
        address: HostName::parse("[fd00::1]").unwrap(),
    };
    assert!(not_public.to_string().contains("`--allow-host [fd00::1]`"));
}
