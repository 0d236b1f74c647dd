//! The TCP transport for ureq: keeps connections alive, and wakes up when a signal arrives.
//!
//! ureq's own transport does not set keepalive (a model can think silently for ten minutes, while some NATs drop
//! connections after one idle minute), and a signal cannot interrupt it. This one also guarantees that plain http
//! reaches only loopback addresses or, if allowed, private ones, whatever a name resolves to.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::time::Duration as Wait;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
};
use ureq::{Error, Timeout};

use crate::sys::interrupt::Interrupt;

/// Idle time before the first keepalive probe, well below the 60 seconds after which NATs with the
/// shortest timeouts drop a connection.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(45);
/// Interval between further probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Interval between checks for a signal while the resolver's thread runs.
const RESOLVER_TICK: Duration = Duration::from_millis(50);

/// A connector that opens TCP connections, unless an earlier one in the chain (a proxy) has already done so.
#[derive(Debug)]
pub struct TcpConnector {
    /// Interrupt that ends every wait.
    pub interrupt: Interrupt,
    /// Addresses that connections may go to, whatever a name resolves to; `None` if the connection is encrypted.
    pub only: Option<PlainAddresses>,
    /// Limit on how long a connection may be silent, if set.
    pub silence: Silence,
    /// Number of connections opened.
    pub opened: Arc<AtomicUsize>,
}

/// Limit on how long a connection may be silent before a read times out. Until it is set, only the limits of the whole
/// call apply.
#[derive(Debug, Clone, Default)]
pub struct Silence(Arc<Mutex<Option<Duration>>>);

impl Silence {
    /// Sets the limit from now on; `None` removes it.
    pub fn allow(&self, most: Option<Duration>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = most;
    }

    fn most(&self) -> Option<Duration> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Addresses that unencrypted connections may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainAddresses {
    /// Only this machine.
    Loopback,
    /// This machine and private networks.
    Private,
}

impl PlainAddresses {
    fn include(self, address: IpAddr) -> bool {
        address.is_loopback() || (self == Self::Private && is_private(address))
    }
}

/// Returns whether an address belongs to a private network: RFC 1918, RFC 6598, or unique-local or link-local in IPv6.
/// IPv4 link-local addresses are excluded, because cloud metadata services use them.
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_private() || (first == 100 && second & 0xc0 == 64)
        }
        IpAddr::V6(address) => address.is_unique_local() || address.is_unicast_link_local(),
    }
}

impl TcpConnector {
    fn connect_any(&self, details: &ConnectionDetails<'_>) -> Result<TcpStream, Error> {
        let deadline = Deadline::from(details.timeout);
        let mut last = Error::HostNotFound;
        let mut untried = details.addrs.len();
        for address in &details.addrs {
            // Each address gets an equal share of the remaining time.
            let share = deadline
                .left()?
                .map(|left| left / u32::try_from(untried).unwrap_or(1));
            untried -= 1;
            match self.connect_one(*address, share) {
                Ok(stream) => return Ok(stream),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    return Err(error.into());
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    last = Error::Timeout(details.timeout.reason);
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    last = error.into();
                }
                // Marked with a kind that established connections never have: nothing was sent.
                Err(error) => last = io::Error::new(io::ErrorKind::NotConnected, error).into(),
            }
        }
        Err(last)
    }

    fn connect_one(&self, address: SocketAddr, limit: Option<Duration>) -> io::Result<TcpStream> {
        let domain = Domain::for_address(address);
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        let keepalive = TcpKeepalive::new()
            .with_time(KEEPALIVE_IDLE)
            .with_interval(KEEPALIVE_INTERVAL);
        socket.set_tcp_keepalive(&keepalive)?;
        match socket.connect(&address.into()) {
            Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {
                let fds = [socket.as_fd()];
                if !self.interrupt.poll(&fds, PollFlags::OUT, limit)? {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                socket.take_error()?.map_or(Ok(()), Err)?;
            }
            other => other?,
        }
        Ok(socket.into())
    }
}

impl<In: Transport> Connector<In> for TcpConnector {
    type Out = Either<In, TcpTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        if let Some(transport) = chained {
            return Ok(Some(Either::A(transport)));
        }
        if let Some(only) = self.only {
            require(only, &details.addrs)?;
        }
        let stream = self.connect_any(details)?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        let interrupt = self.interrupt.clone();
        let transport = TcpTransport {
            stream,
            buffers,
            interrupt,
            silence: self.silence.clone(),
            answered_early: false,
        };
        Ok(Some(Either::B(transport)))
    }
}

fn require(only: PlainAddresses, addresses: &[SocketAddr]) -> io::Result<()> {
    if addresses.iter().all(|address| only.include(address.ip())) {
        return Ok(());
    }
    let refusal = match only {
        PlainAddresses::Loopback => "the name of a loopback host resolves to another machine",
        PlainAddresses::Private => {
            "plain http goes to private addresses only, and the name resolves to another one"
        }
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal))
}

/// A connection whose reads and writes wait for the socket and for signals at the same time.
#[derive(Debug)]
pub struct TcpTransport {
    stream: TcpStream,
    buffers: LazyBuffers,
    interrupt: Interrupt,
    silence: Silence,
    /// True if the server responded and closed before it had read the whole request. The rest of the
    /// request is dropped, so that the response can be read.
    answered_early: bool,
}

impl TcpTransport {
    /// Returns whether the server, which accepts no more data, has already sent some.
    fn has_answer(&self) -> bool {
        let mut byte = [0];
        self.stream.peek(&mut byte).is_ok_and(|amount| amount > 0)
    }
}

impl Transport for TcpTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        let deadline = Deadline::from(timeout.for_write());
        if self.answered_early {
            return Ok(());
        }
        let mut sent = 0;
        while sent < amount {
            deadline.left()?;
            match self.stream.write(&self.buffers.output()[sent..amount]) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Ok(more) => sent += more,
                Err(error) if is_closed(&error) && self.has_answer() => {
                    self.answered_early = true;
                    return Ok(());
                }
                Err(error) => {
                    deadline.wait_after(error, &self.interrupt, &self.stream, PollFlags::OUT)?;
                }
            }
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let deadline = Deadline::from(timeout.for_read()).or_after(self.silence.most());
        let buffer = self.buffers.input_append_buf();
        loop {
            // Checked on every read, to stop a server that never pauses, too.
            deadline.left()?;
            match self.stream.read(buffer) {
                Ok(amount) => {
                    self.buffers.input_appended(amount);
                    return Ok(amount > 0);
                }
                Err(error) => {
                    deadline.wait_after(error, &self.interrupt, &self.stream, PollFlags::IN)?;
                }
            }
        }
    }

    /// Returns whether the connection can be reused: the server has neither closed it nor sent unrequested data.
    fn is_open(&mut self) -> bool {
        let silent = self.stream.peek(&mut [0]);
        !self.answered_early && silent.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// Time by which ureq requires an operation to finish.
#[derive(Debug)]
struct Deadline {
    at: Option<Instant>,
    reason: Timeout,
}

impl From<NextTimeout> for Deadline {
    fn from(timeout: NextTimeout) -> Self {
        let after = timeout.not_zero().map(|after| *after);
        // A time that the clock cannot represent means no limit.
        let at = after.and_then(|after| Instant::now().checked_add(after));
        Self {
            at,
            reason: timeout.reason,
        }
    }
}

impl Deadline {
    /// Returns the earlier of this deadline and `most` from now.
    fn or_after(self, most: Option<Duration>) -> Self {
        let sooner = most.and_then(|most| Instant::now().checked_add(most));
        Self {
            at: self.at.into_iter().chain(sooner).min(),
            ..self
        }
    }

    /// Returns the time left; `None` if there is no limit.
    fn left(&self) -> Result<Option<Duration>, Error> {
        match self
            .at
            .map(|at| at.saturating_duration_since(Instant::now()))
        {
            Some(left) if left.is_zero() => Err(Error::Timeout(self.reason)),
            left => Ok(left),
        }
    }

    /// Waits until the socket is ready if `error` says that it is not.
    fn wait_after(
        &self,
        error: io::Error,
        interrupt: &Interrupt,
        stream: &TcpStream,
        events: PollFlags,
    ) -> Result<(), Error> {
        match error.kind() {
            io::ErrorKind::WouldBlock => {
                // The caller's loop checks whether the deadline has passed.
                interrupt.poll(&[stream.as_fd()], events, self.left()?)?;
                Ok(())
            }
            // A signal that this program does not handle.
            io::ErrorKind::Interrupted => Ok(()),
            _ => Err(error.into()),
        }
    }
}

/// ureq's resolver on a thread, so that a signal can end the wait for it. Literal addresses need no thread.
#[derive(Debug)]
pub struct InterruptibleResolver(pub Interrupt);

impl Resolver for InterruptibleResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        mut timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        if host.parse::<IpAddr>().is_ok() {
            timeout.after = Wait::NotHappening;
            return DefaultResolver::default().resolve(uri, config, timeout);
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        let (uri, config) = (uri.clone(), config.clone());
        std::thread::spawn(move || {
            let resolved = DefaultResolver::default().resolve(&uri, &config, timeout);
            // Fails if the wait was ended by a signal.
            let _ = sender.send(resolved);
        });
        loop {
            match receiver.recv_timeout(RESOLVER_TICK) {
                Ok(resolved) => return resolved,
                Err(RecvTimeoutError::Timeout) => {
                    self.0.check().map_err(io::Error::from)?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Error::HostNotFound),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_name_must_resolve_to_this_machine_alone() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let here = [
            address("127.0.0.1:1"),
            address("127.9.9.9:1"),
            address("[::1]:1"),
        ];
        assert!(require(PlainAddresses::Loopback, &here).is_ok());
        for elsewhere in [
            "10.0.0.1:1",
            "192.0.2.7:443",
            "[2001:db8::1]:1",
            "0.0.0.0:1",
        ] {
            let addresses = [here[0], address(elsewhere)];
            assert!(
                require(PlainAddresses::Loopback, &addresses).is_err(),
                "{elsewhere}"
            );
        }
    }

    #[test]
    fn an_address_is_its_own_resolution() {
        let resolver = InterruptibleResolver(Interrupt::never().unwrap());
        for address in ["127.0.0.1:8080", "[::1]:8080"] {
            let uri = format!("http://{address}/path").parse().unwrap();
            let resolved = resolver.resolve(&uri, &Config::default(), NextTimeout::default());
            let expected = [address.parse::<SocketAddr>().unwrap()];
            assert_eq!(&resolved.unwrap()[..], &expected[..], "{address}");
        }
    }

    #[test]
    fn a_private_name_must_resolve_to_private_addresses_alone() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        for private in [
            "127.0.0.1:1",
            "10.1.2.3:1",
            "172.31.0.1:1",
            "192.168.65.254:1",
            "100.64.0.1:1",
            "[fd00::1]:1",
            "[fe80::1]:1",
            "[::ffff:10.0.0.1]:1",
        ] {
            assert!(
                require(PlainAddresses::Private, &[address(private)]).is_ok(),
                "{private}"
            );
        }
        for public in [
            "192.0.2.7:1",
            "172.32.0.1:1",
            "100.128.0.1:1",
            "169.254.169.254:1",
            "0.0.0.0:1",
            "[2001:db8::1]:1",
            "[::ffff:8.8.8.8]:1",
        ] {
            let addresses = [address("10.0.0.1:1"), address(public)];
            assert!(
                require(PlainAddresses::Private, &addresses).is_err(),
                "{public}"
            );
        }
    }
}
