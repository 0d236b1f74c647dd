//! The flags for builds, and for the sandbox of builds and of agents' commands.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::{SELDOM, parse_absolute, parse_duration, parse_variable};
use crate::exec::hosts::AllowedHost;
use crate::exec::sandbox::SandboxMode;
use crate::run::builds::BuildOptions;

// Flags for builds.
#[derive(Debug, Clone, Args)]
pub struct BuildArgs {
    /// Run build.sh before anything is sent, and stop with exit code 3 if it fails; not repeated for
    /// files that have passed before
    #[arg(long)]
    pub baseline: bool,

    /// Time limit of build.sh, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
    pub build_timeout: Duration,

    /// Flags for the sandbox.
    #[command(flatten)]
    pub sandbox: SandboxArgs,
}

impl BuildArgs {
    /// Returns the options for a run's builds.
    pub fn options(&self) -> BuildOptions<'_> {
        self.sandbox.build(self.build_timeout)
    }
}

// Flags for the sandbox of builds and commands.
#[derive(Debug, Clone, Args)]
pub struct SandboxArgs {
    /// Sandbox builds and commands with bubblewrap: auto hides keys and other processes if possible;
    /// strict also blocks the network and the rest of the disk, or refuses to run; off does not sandbox
    #[arg(long = "sandbox", id = "sandbox", value_name = "HOW", value_enum, default_value_t = SandboxMode::Auto, hide_possible_values = true, help_heading = SELDOM)]
    pub mode: SandboxMode,

    /// Let builds and commands in a strict sandbox reach this host, NAME or NAME:PORT, through a
    /// proxy; may be repeated
    #[arg(long, value_name = "NAME", help_heading = SELDOM)]
    pub allow_host: Vec<AllowedHost>,

    /// Let builds and commands use this socket of a service, such as /run/docker.sock, which would
    /// otherwise be hidden; may be repeated
    #[arg(long, value_name = "PATH", value_parser = parse_absolute, help_heading = SELDOM)]
    pub allow_socket: Vec<PathBuf>,

    /// Pass this environment variable to sandboxed builds and commands even though its name suggests a
    /// secret (*_TOKEN, *_KEY, ...); may be repeated
    #[arg(long, value_name = "NAME", value_parser = parse_variable, help_heading = SELDOM)]
    pub pass_env: Vec<String>,
}

impl SandboxArgs {
    /// Returns the options for builds in this sandbox.
    pub(crate) fn build(&self, timeout: Duration) -> BuildOptions<'_> {
        BuildOptions {
            timeout,
            sandbox: self.mode,
            hosts: &self.allow_host,
        }
    }

    /// Checks that the allowed hosts and sockets fit the sandbox mode.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let is_strict = self.mode == SandboxMode::Strict;
        if !self.allow_host.is_empty() && !is_strict {
            Err(
                "`--allow-host` needs `--sandbox strict`: other builds and commands reach every host",
            )
        } else if !self.allow_socket.is_empty() && is_strict {
            Err(
                "`--allow-socket` needs `--sandbox auto`: a strict sandbox has no sockets of the file system",
            )
        } else {
            Ok(())
        }
    }
}
