//! Open files that are handed from one process to another, over a socket pair.
//!
//! Guarantees that what is received is closed in whatever this process starts, on Linux.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The number of are handed over at once, at the most.
const MAX: usize = 3;

#[cfg(target_os = "linux")]
const SENDING: SendFlags = SendFlags::NOSIGNAL;
/// Rust's runtime ignores the signal.
#[cfg(not(target_os = "linux"))]
const SENDING: SendFlags = SendFlags::empty();

#[cfg(target_os = "linux")]
const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
/// Elsewhere than on Linux, whoever starts a command gives them away.
#[cfg(not(target_os = "linux"))]
const RECEIVING: RecvFlags = RecvFlags::empty();

/// Hands these over, with a byte that carries them.
pub(super) fn send(line: &UnixStream, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(line, &[IoSlice::new(&[0])], &mut control, SENDING)?;
    Ok(())
}

/// Waits for such a byte, and gives what it carries; nothing where the other end is closed instead.
pub(super) fn receive(line: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut mark = [0];
    recvmsg(
        line,
        &mut [IoSliceMut::new(&mut mark)],
        &mut control,
        RECEIVING,
    )?;
    let mut found = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            found.extend(fds);
        }
    }
    Ok(found)
}
