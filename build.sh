#!/bin/sh
# The project's gate: format, lints, build, tests. Needs a Rust toolchain, git and sh.
set -eu
cd "$(dirname "$0")"

step() {
    echo "==> $*"
    "$@"
}

step cargo fmt --check
step cargo clippy --locked --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" step cargo doc --locked --no-deps --document-private-items
# Builds it, too.
step sh tests/plain_build.sh
step cargo test --locked
