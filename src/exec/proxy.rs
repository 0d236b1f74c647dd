//! The proxy through which commands in a strict sandbox reach the allowed hosts, and nothing else.
//!
//! Before it starts the command, the supervisor opens a port on the sandbox's own loopback interface and passes the
//! open socket to this program: a socket stays in the network namespace where it was created. The program accepts
//! connections, each on its own thread, and connects to the hosts from outside. Touches the network. Guarantees that
//! a connection leads to one allowed host, at an address checked after name resolution, and carries one request or
//! one tunnel; that the number of simultaneous connections is limited; and that nothing outlives the sandbox except a
//! wait of a few seconds.

use std::io::{self, Read, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::descriptors;
use super::hosts::{AllowedHost, Denial, HostName, ProxyRequest, is_allowed, may_lead_to};
use crate::sys::interrupt::{Interrupt, is_readable_within};

/// Port of the proxy in every sandbox. It is always free: the supervisor opens it before any command starts.
const PORT: u16 = 3128;
/// Environment variables that name a proxy, and those that list the hosts to reach without it.
const VARIABLES: &str = "http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY";
const EXCEPTIONS: [&str; 2] = ["no_proxy", "NO_PROXY"];
/// The sandbox's own hosts, as environment variables and as URLs spell them.
const LOOPBACK: [(&str, &str); 3] = [
    ("localhost", "localhost"),
    ("127.0.0.1", "127.0.0.1"),
    ("::1", "[::1]"),
];
/// Maximum number of simultaneous connections; further clients wait.
const MAX_CONNECTIONS: usize = 64;
/// Interval between checks for whether a connection has ended.
const TICK: Duration = Duration::from_millis(20);
/// Maximum size of a request's head in bytes, and the time in which it must arrive.
const MAX_HEAD: usize = 16 * 1024;
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Maximum number of a host's addresses to try, and the time limit for each.
const MAX_ADDRESSES: usize = 4;
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Timeout for writes to a host, since a blocked write would outlive the sandbox. Writes to clients have none.
const WRITE_TIME: Duration = Duration::from_mins(1);
/// Maximum number of refusals to report.
const MAX_REFUSALS: usize = 20;

/// The hosts that the commands of a run may reach, and the refused requests.
#[derive(Debug)]
pub(super) struct HostProxy {
    hosts: Vec<AllowedHost>,
    refusals: Mutex<Refusals>,
    /// Counter of open connections: each holds a clone of the `Arc`.
    connections: Arc<()>,
}

/// Messages about refused requests, each once.
#[derive(Debug, Default)]
struct Refusals {
    all: Vec<String>,
    /// Number of messages that have been reported.
    reported: usize,
}

impl HostProxy {
    pub fn new(hosts: &[AllowedHost]) -> Self {
        Self {
            hosts: hosts.to_vec(),
            refusals: Mutex::default(),
            connections: Arc::default(),
        }
    }

    /// Returns the environment variables that commands need. They exempt the sandbox's own loopback hosts from the
    /// proxy, unless the user has allowed such a name, which then means the host outside.
    pub fn variables(&self) -> impl Iterator<Item = [String; 2]> {
        let url = format!("http://{}:{PORT}", Ipv4Addr::LOCALHOST);
        let is_own = |(_, host): &&(&str, &str)| !self.hosts.iter().any(|one| one.is_named(host));
        let names = LOOPBACK.iter().filter(is_own).map(|(own, _)| *own);
        let own = names.collect::<Vec<_>>().join(",");
        let proxies = VARIABLES
            .split(' ')
            .map(move |name| [name.to_owned(), url.clone()]);
        proxies.chain(EXCEPTIONS.map(|name| [name.to_owned(), own.clone()]))
    }

    /// Returns the refusals that have not been reported yet, as sentences without a full stop.
    pub fn new_refusals(&self) -> Vec<String> {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let new = refusals.all[refusals.reported..].to_vec();
        refusals.reported = refusals.all.len();
        new
    }

    fn remember(&self, refusal: &Denial) {
        let refusal = refusal.to_string();
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.all.len() < MAX_REFUSALS && !refusals.all.contains(&refusal) {
            refusals.all.push(refusal);
        }
    }

    /// Serves a sandbox on a separate thread, once its port arrives. Returns the other end of the line, over which the
    /// supervisor sends the port; closing that end tells the proxy that the sandbox has ended.
    ///
    /// # Errors
    /// Fails if the line or the thread cannot be created.
    pub fn start(self: &Arc<Self>) -> io::Result<UnixStream> {
        let (line, theirs) = UnixStream::pair()?;
        let proxy = Arc::clone(self);
        thread::Builder::new().spawn(move || proxy.serve(&line))?;
        Ok(theirs)
    }

    fn serve(self: &Arc<Self>, line: &UnixStream) -> io::Result<()> {
        let Some(port) = descriptors::receive(line)?.pop() else {
            return Ok(());
        };
        let port = TcpListener::from(port);
        // `accept` must not block: a client that connected may have disconnected by then.
        port.set_nonblocking(true)?;
        let never = Interrupt::never()?;
        loop {
            never.poll(&[port.as_fd(), line.as_fd()], PollFlags::IN, None)?;
            let is_full = Arc::strong_count(&self.connections) > MAX_CONNECTIONS;
            let pause = if is_full { TICK } else { Duration::ZERO };
            if is_readable_within(line.as_fd(), pause) {
                return Ok(());
            }
            if is_full {
                continue;
            }
            match port.accept() {
                Ok((client, _)) => {
                    let (proxy, connection) = (Arc::clone(self), Arc::clone(&self.connections));
                    let serve = move || {
                        proxy.answer(&client);
                        drop(connection);
                    };
                    // If no thread can be started, the connection is closed.
                    let _ = thread::Builder::new().spawn(serve);
                }
                // Too many files may be open; retry after some have been closed.
                Err(_) => thread::sleep(TICK),
            }
        }
    }

    /// Serves a client's request, or responds with the reason for the denial.
    fn answer(&self, mut client: &TcpStream) {
        if let Err(denial) = self.relay(client) {
            if denial.is_refusal() {
                self.remember(&denial);
            }
            // A client that has disconnected does not need the response.
            let _ = client.write_all(denial.response().as_bytes());
        }
        let _ = client.shutdown(Shutdown::Both);
    }

    fn relay(&self, client: &TcpStream) -> Result<(), Denial> {
        let (request, rest) = read_request(client)?;
        let server = self.reach(&request.host, request.port)?;
        for end in [client, &server] {
            // Fails if an end has disconnected, which the exchange will notice.
            let _ = end.set_nodelay(true);
        }
        let _ = server.set_write_timeout(Some(WRITE_TIME));
        exchange(client, &server, request.plain, &rest);
        Ok(())
    }

    /// Connects to a host if it is allowed. Names that are not allowed are not even resolved.
    fn reach(&self, host: &HostName, port: u16) -> Result<TcpStream, Denial> {
        if !is_allowed(&self.hosts, host, port) {
            let host = host.clone();
            return Err(Denial::NotAllowed { host, port });
        }
        let found = addresses(host, port).map_err(|error| unreachable(host, port, &error))?;
        self.connect(host, port, found)
    }

    /// Connects to the first address that responds, among those that the host may resolve to.
    fn connect(
        &self,
        host: &HostName,
        port: u16,
        found: Vec<SocketAddr>,
    ) -> Result<TcpStream, Denial> {
        let mut denial = unreachable(host, port, &"it has no address");
        for address in found.into_iter().take(MAX_ADDRESSES) {
            if !may_lead_to(&self.hosts, host, address.ip(), port) {
                denial = Denial::NotPublic {
                    host: host.clone(),
                    port,
                    address: HostName::Address(address.ip().to_canonical()),
                };
                continue;
            }
            match TcpStream::connect_timeout(&address, CONNECT_TIME) {
                Ok(server) => return Ok(server),
                Err(error) => denial = unreachable(host, port, &error),
            }
        }
        Err(denial)
    }
}

/// Opens the port inside the sandbox and passes it on. The returned stream must be kept until the sandbox ends.
///
/// # Errors
/// Fails if the port cannot be opened or sent.
pub(super) fn listen(line: OwnedFd) -> io::Result<UnixStream> {
    let line = UnixStream::from(line);
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT))?;
    descriptors::send(&line, &[port.as_fd()])?;
    Ok(line)
}

fn addresses(host: &HostName, port: u16) -> io::Result<Vec<SocketAddr>> {
    match host {
        HostName::Address(address) => Ok(vec![SocketAddr::new(*address, port)]),
        HostName::Domain(name) => Ok((name.as_str(), port).to_socket_addrs()?.collect()),
    }
}

fn unreachable(host: &HostName, port: u16, reason: &dyn std::fmt::Display) -> Denial {
    Denial::Unreachable {
        host: host.clone(),
        port,
        reason: reason.to_string(),
    }
}

/// Reads a client's request, and returns it with any bytes received after its head.
fn read_request(mut client: &TcpStream) -> Result<(ProxyRequest, Vec<u8>), Denial> {
    let began = Instant::now();
    let mut received = Vec::new();
    loop {
        if let Some((request, length)) = ProxyRequest::read(&received)? {
            return Ok((request, received.split_off(length)));
        }
        if received.len() >= MAX_HEAD {
            return Err(Denial::TooLong);
        }
        if !is_readable_within(client.as_fd(), HEAD_TIME.saturating_sub(began.elapsed())) {
            return Err(Denial::Late);
        }
        let mut chunk = [0; 4096];
        match client.read(&mut chunk) {
            Ok(amount @ 1..) => received.extend_from_slice(&chunk[..amount]),
            _ => return Err(Denial::Malformed),
        }
    }
}

/// Relays data between client and server until one of them is done. `rest` is data already received from the client.
fn exchange(client: &TcpStream, server: &TcpStream, plain: Option<(Vec<u8>, u64)>, rest: &[u8]) {
    let end_both = || {
        for end in [client, server] {
            let _ = end.shutdown(Shutdown::Both);
        }
    };
    let (mut to_client, mut to_server) = (client, server);
    let begun = match &plain {
        Some((head, _)) => to_server.write_all(head),
        None => to_client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n"),
    };
    if begun.is_err() {
        return;
    }
    thread::scope(|scope| {
        let answering = thread::Builder::new().spawn_scoped(scope, move || {
            let mut from_server = server;
            let _ = io::copy(&mut from_server, &mut to_client);
            end_both();
        });
        if answering.is_ok() {
            let mut from_client = rest.chain(client);
            let limit = plain.map_or(u64::MAX, |(_, body)| body);
            let _ = io::copy(&mut from_client.by_ref().take(limit), &mut to_server);
            // Data after a body would be another request, which needs its own connection. Otherwise this read waits
            // until the client disconnects or the response is complete.
            let _ = from_client.read(&mut [0]);
        }
        end_both();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(hosts: &[&str]) -> HostProxy {
        let hosts: Vec<_> = hosts.iter().map(|host| host.parse().unwrap()).collect();
        HostProxy::new(&hosts)
    }

    #[test]
    fn loopback_bypasses_the_proxy_unless_named() {
        for (named, expected) in [
            (&["crates.io"][..], "localhost,127.0.0.1,::1"),
            (&["127.0.0.1:8080", "LOCALHOST"], "::1"),
            (&["[0::1]:80", "crates.io"], "localhost,127.0.0.1"),
        ] {
            for [name, value] in proxy(named).variables() {
                let is_exception = name.eq_ignore_ascii_case("no_proxy");
                let proxy = "http://127.0.0.1:3128";
                assert_eq!(value, if is_exception { expected } else { proxy }, "{name}");
            }
        }
    }

    #[test]
    fn each_refusal_is_reported_once_and_not_without_end() {
        let proxy = proxy(&["a.example"]);
        let ask = |port| {
            let host = HostName::Address(Ipv4Addr::LOCALHOST.into());
            let denial = proxy.reach(&host, port).unwrap_err();
            proxy.remember(&denial);
        };
        [1, 2, 1].into_iter().for_each(ask);
        assert_eq!(proxy.new_refusals().len(), 2);
        [1, 3].into_iter().for_each(ask);
        let said = "`127.0.0.1:3` is not allowed; `--allow-host 127.0.0.1:3` allows it";
        assert_eq!(proxy.new_refusals(), [said]);
        (1..=100).for_each(ask);
        assert_eq!(proxy.new_refusals().len(), MAX_REFUSALS - 3);
    }

    #[test]
    fn a_name_that_leads_to_this_machine_needs_the_address_to_be_named() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let found = port.local_addr().unwrap();
        let host = HostName::Domain("a.example".to_owned());
        let number = found.port();
        let connect = |hosts: &[&str]| proxy(hosts).connect(&host, number, vec![found]);
        let name = format!("a.example:{number}");
        let said = format!(
            "`{name}` leads to an address that is not public; `--allow-host {found}` allows that, too"
        );
        assert_eq!(connect(&[&name]).unwrap_err().to_string(), said);
        assert!(connect(&[&name, &found.to_string()]).is_ok());
    }
}
