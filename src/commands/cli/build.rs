//! The flags of builds.

use clap::error::ErrorKind::ArgumentConflict;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{SELDOM, parse_absolute, parse_duration, parse_variable};
use crate::exec::hosts::AllowedHost;
use crate::exec::sandbox::SandboxMode;

/// Flags for builds.
#[derive(Debug, Clone, Args)]
pub struct BuildArgs {
    /// Run build.sh before anything is sent, and stop with exit code 3 if it fails; not repeated for
    /// files that have passed before
    #[arg(long, conflicts_with = "consistency_check")]
    pub baseline: bool,

    /// Time limit of build.sh, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30m", conflicts_with = "consistency_check", help_heading = SELDOM)]
    pub build_timeout: Duration,

    /// Sandbox builds with bubblewrap: auto hides keys and other processes if possible; strict also
    /// blocks the network and the rest of the disk, or refuses to run; off does not sandbox
    #[arg(long, value_name = "HOW", value_enum, default_value_t = SandboxMode::Auto, hide_possible_values = true, conflicts_with = "consistency_check", help_heading = SELDOM)]
    pub sandbox: SandboxMode,

    /// Let builds in a strict sandbox reach this host, NAME or NAME:PORT, through a proxy; may be
    /// repeated
    #[arg(long, value_name = "NAME", help_heading = SELDOM)]
    pub allow_host: Vec<AllowedHost>,

    /// Let builds use this socket of a service, such as /run/docker.sock, which is hidden from them
    /// otherwise; may be repeated
    #[arg(long, value_name = "PATH", value_parser = parse_absolute, conflicts_with = "consistency_check", help_heading = SELDOM)]
    pub allow_socket: Vec<PathBuf>,

    /// Pass this environment variable on to builds in a sandbox, though its name says that it holds a
    /// secret (*_TOKEN, *_KEY, ...); may be repeated
    #[arg(long, value_name = "NAME", value_parser = parse_variable, conflicts_with = "consistency_check", help_heading = SELDOM)]
    pub pass_env: Vec<String>,
}

/// Hosts are allowed where nothing else is, and sockets where there are any.
pub(crate) fn check_allowed(
    sandbox: SandboxMode,
    hosts: &[AllowedHost],
    sockets: &[PathBuf],
    whole: impl FnOnce() -> clap::Command,
) -> Result<(), clap::Error> {
    let is_strict = sandbox == SandboxMode::Strict;
    let reason = if !hosts.is_empty() && !is_strict {
        "`--allow-host` needs `--sandbox strict`: other builds and commands reach every host"
    } else if !sockets.is_empty() && is_strict {
        "`--allow-socket` needs `--sandbox auto`: a strict sandbox has no sockets of the file system"
    } else {
        return Ok(());
    };
    Err(whole().error(ArgumentConflict, reason))
}
