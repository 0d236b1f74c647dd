//! `dev`: starts `code-commit` under the name `dev`, which selects the command `dev`.

mod shim;

use std::process::ExitCode;

fn main() -> ExitCode {
    shim::start_as("dev")
}
