//! `dev`: starts `code-commit` under the name `dev`, which makes it `code-commit dev`.

mod shim;

use std::process::ExitCode;

fn main() -> ExitCode {
    shim::start_as("dev")
}
