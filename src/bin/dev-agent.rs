//! `dev-agent`: starts `code-commit` under the name `dev-agent`, which makes it `code-commit orchestrate`.

mod shim;

use std::process::ExitCode;

fn main() -> ExitCode {
    shim::start_as("dev-agent")
}
