//! The system calls that fail in a strict sandbox, as the program that the kernel takes (seccomp).
//!
//! Pure. Guarantees that no socket comes about but those of the sandbox's own network and connected pairs, so that
//! none of the machine's services is reached by a socket in the file system; and that the user's keyrings, other
//! ways past the checks, and parts of the kernel that builds have no use for are out of reach.

use std::collections::BTreeMap;
use std::io;

use libc::{AF_INET, AF_INET6, AF_NETLINK, SOCK_DGRAM, SOCK_RAW};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

/// Fail whatever they are given.
const DENIED: [i64; 9] = [
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // What goes through a ring is not seen here.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];
/// Sockets of these families can be made.
const FAMILIES: [i32; 3] = [AF_INET, AF_INET6, AF_NETLINK];
/// Pairs of these types can not: they send to any socket whose path they know. The second means the first.
const DATAGRAMS: [i32; 2] = [SOCK_DGRAM, SOCK_RAW];
/// The bits of a socket's type that are no flags.
const TYPE_BITS: u64 = 0xf;
/// The bit by which the same calls are made with short pointers, where the kernel has that.
const X32: i64 = if cfg!(target_arch = "x86_64") {
    0x4000_0000
} else {
    0
};

/// The program, as `bwrap` reads it. A program for another kind of processor, such as a 32-bit one, is ended by its
/// first call.
///
/// # Errors
/// Where nobody knows this machine's calls.
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
    rules.insert(libc::SYS_socket, vec![other_family()?]);
    let datagrams = DATAGRAMS
        .into_iter()
        .map(pair_of)
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_socketpair, datagrams);
    let short = rules
        .iter()
        .map(|(call, rules)| (call | X32, rules.clone()));
    let rules = short
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .chain(rules)
        .collect();
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, denied, machine)?.try_into()
}

fn other_family() -> Result<SeccompRule, BackendError> {
    let is_not = |family: i32| condition(0, SeccompCmpOp::Ne, family);
    SeccompRule::new(FAMILIES.into_iter().map(is_not).collect::<Result<_, _>>()?)
}

fn pair_of(kind: i32) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![condition(1, SeccompCmpOp::MaskedEq(TYPE_BITS), kind)?])
}

fn condition(
    argument: u8,
    compared: SeccompCmpOp,
    value: i32,
) -> Result<SeccompCondition, BackendError> {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compared, value)
}
