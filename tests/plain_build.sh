#!/bin/sh
# Runs the program as users build it. `cargo test` builds it together with what only the tests need,
# which once hid that a library lacked a feature: the report's sections were not found.
set -eu
manifest=$PWD/Cargo.toml
project=$(mktemp -d)
trap 'rm -rf "$project"' EXIT
mkdir -p "$project/agent-config" "$project/recorded"
cd "$project"
echo /agent-config >.gitignore
: >agent-config/query.txt
: >agent-config/codeRollup.txt
cat >recorded/query-response.json <<'END'
{"candidates": [{"content": {"parts": [{"text": "## 1. User Specification Self-Consistency\nFine."}]}, "finishReason": "STOP"}]}
END
cargo run --quiet --locked --manifest-path "$manifest" -- --cc --quiet --replay recorded >/dev/null 2>&1
grep -q '"first_line": 1,' logs/*/result.json
cargo run --quiet --locked --manifest-path "$manifest" -- demo --quiet demo >/dev/null
