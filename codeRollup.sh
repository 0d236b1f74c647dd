#!/bin/sh
# Writes agent-config/codeRollup.txt: every text file that git tracks, each behind a line
# `--- path ---`. Binary files, symbolic links and Cargo.lock are left out.
set -eu

rollup=agent-config/codeRollup.txt
mkdir -p agent-config
: >"$rollup.new"

# -z, so that git does not quote names; tr, since sh reads lines.
git ls-files -z | tr '\0' '\n' | LC_ALL=C sort | while IFS= read -r path; do
    if [ ! -f "$path" ] || [ -L "$path" ] || [ "$path" = Cargo.lock ]; then
        continue
    fi
    # grep takes a file with a NUL byte for binary.
    if [ -s "$path" ] && ! LC_ALL=C grep -Iq '' "$path"; then
        continue
    fi
    printf -- '--- %s ---\n' "$path"
    cat -- "$path"
    # The next header begins a line, whatever the file's last byte is.
    if [ -n "$(tail -c 1 -- "$path")" ]; then
        echo
    fi
done >>"$rollup.new"

mv "$rollup.new" "$rollup"
