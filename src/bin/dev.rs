//! `dev`: nothing but `code-commit dev`.

use std::process::ExitCode;

use code_commit::cli::Cli;

fn main() -> ExitCode {
    code_commit::entry::main(Cli::read_dev)
}
