//! The system call filter of a strict sandbox, as a program for the kernel (seccomp).
//!
//! Pure. Guarantees that the only sockets that can be created are those of the sandbox's own network and connected
//! pairs, so that no service of the machine is reachable through a socket in the file system; and that the user's
//! keyrings, other ways around the checks, and kernel features that builds do not need are unavailable.

use std::collections::BTreeMap;
use std::io;

use libc::{AF_INET, AF_INET6, AF_NETLINK, SOCK_DGRAM, SOCK_RAW};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

/// System calls that always fail.
const DENIED: [i64; 9] = [
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // The filter does not see operations submitted through a ring.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];
/// Address families for which sockets can be created.
const FAMILIES: [i32; 3] = [AF_INET, AF_INET6, AF_NETLINK];
/// Socket types that pairs may not have: they can send to any socket by its path. Linux treats RAW as DGRAM.
const DATAGRAMS: [i32; 2] = [SOCK_DGRAM, SOCK_RAW];
/// Bits of a socket's type that are not flags.
const TYPE_BITS: u64 = 0xf;
/// Bit that marks calls with 32-bit pointers (the x32 ABI), where the kernel supports them.
const X32: i64 = if cfg!(target_arch = "x86_64") {
    0x4000_0000
} else {
    0
};

/// Returns the program in the format that `bwrap` reads. A process of another architecture, such as a 32-bit one, is
/// killed at its first system call.
///
/// # Errors
/// Fails if the filter does not support this machine's architecture.
pub(super) fn filter() -> io::Result<Vec<u8>> {
    let program = compile().map_err(io::Error::other)?;
    let instruction = |one: &seccompiler::sock_filter| {
        let mut bytes = one.code.to_ne_bytes().to_vec();
        bytes.extend([one.jt, one.jf]);
        bytes.extend(one.k.to_ne_bytes());
        bytes
    };
    Ok(program.iter().flat_map(instruction).collect())
}

fn compile() -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let is_not = |family: i32| condition(0, SeccompCmpOp::Ne, family);
    let other_family = FAMILIES.into_iter().map(is_not).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(other_family)?]);
    let pair_of =
        |kind| SeccompRule::new(vec![condition(1, SeccompCmpOp::MaskedEq(TYPE_BITS), kind)?]);
    let datagrams = DATAGRAMS
        .into_iter()
        .map(pair_of)
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_socketpair, datagrams);
    let short = rules
        .clone()
        .into_iter()
        .map(|(call, rules)| (call | X32, rules));
    let rules = short.chain(rules).collect();
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, denied, machine)?.try_into()
}

fn condition(
    argument: u8,
    compared: SeccompCmpOp,
    value: i32,
) -> Result<SeccompCondition, BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compared, value)
}
