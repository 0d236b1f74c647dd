//! Names open file descriptors, and passes them from one process to another over a socket pair.
//!
//! Guarantees, on Linux, that received descriptors are not inherited by the programs that this process starts.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// Maximum number of descriptors per message.
const MAX: usize = 3;

#[cfg(target_os = "linux")]
const SENDING: SendFlags = SendFlags::NOSIGNAL;
/// No flags outside Linux, which lacks `MSG_NOSIGNAL`; Rust's runtime ignores SIGPIPE.
#[cfg(not(target_os = "linux"))]
const SENDING: SendFlags = SendFlags::empty();

#[cfg(target_os = "linux")]
const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
/// No flags outside Linux, which lacks `MSG_CMSG_CLOEXEC`: programs started while the descriptors are open inherit
/// them.
#[cfg(not(target_os = "linux"))]
const RECEIVING: RecvFlags = RecvFlags::empty();

/// Returns the path that leads to an open file, for this process and for a program that it is about to become.
pub(super) fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Returns this process's standard input, which must be a socket.
pub(super) fn standard_input() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Sends descriptors, together with one byte that carries them.
pub(super) fn send(line: &UnixStream, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(line, &[IoSlice::new(&[0])], &mut control, SENDING)?;
    Ok(())
}

/// Waits for descriptors from [`send`] and returns them; empty if the other end was closed.
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
