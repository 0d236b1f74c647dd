#!/bin/sh
# Writes agent-config/codeRollup.txt: every text file that git tracks, each behind a line
# `--- path ---`. Binary files, text that is not UTF-8, symbolic links and Cargo.lock are left out.
set -eu
cd "$(dirname "$0")"

rollup=agent-config/codeRollup.txt
mkdir -p agent-config
trap 'rm -f "$rollup.files" "$rollup.new"' EXIT

# Into a file first, so that a git that fails ends this script.
git ls-files -z >"$rollup.files"

# The names come as arguments, so that none is ever taken apart.
xargs -0 sh -c '
    for path; do
        file=./$path
        if [ ! -f "$file" ] || [ -L "$file" ] || [ "$path" = Cargo.lock ]; then
            continue
        fi
        # A file with a NUL byte is binary.
        if [ "$(tr -d "\000" <"$file" | wc -c)" -ne "$(wc -c <"$file")" ]; then
            continue
        fi
        if command -v iconv >/dev/null && ! iconv -f UTF-8 -t UTF-8 <"$file" >/dev/null 2>&1; then
            echo "left out, since it is not UTF-8: $path" >&2
            continue
        fi
        printf -- "--- %s ---\n" "$path"
        cat "$file"
        # The next header begins a line, whatever the last byte of the file is.
        if [ -n "$(tail -c 1 "$file")" ]; then
            echo
        fi
    done
' sh <"$rollup.files" >"$rollup.new"

mv "$rollup.new" "$rollup"
