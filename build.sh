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
# All programs' tests side by side, but what it passes over in silence is a test that was skipped.
if [ -n "${NO_SKIPPED_TESTS-}" ] && cargo nextest --version >/dev/null 2>&1; then
    # Twice as many as there are processors: they wait for servers and the disk as long as they compute.
    step cargo nextest run --locked --no-fail-fast --test-threads $(($(getconf _NPROCESSORS_ONLN) * 2))
else
    step cargo test --locked
fi
