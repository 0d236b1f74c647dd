//! `dev-agent`: starts `code-commit` under the name `dev-agent`, which selects the command `orchestrate`.

mod shim;

use std::process::ExitCode;

fn main() -> ExitCode {
    shim::start_as("dev-agent")
}
