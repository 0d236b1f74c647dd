//! `code-commit`. All else is in the library.

use std::process::ExitCode;

use code_commit::cli::Cli;

fn main() -> ExitCode {
    code_commit::entry::main(Cli::read)
}
