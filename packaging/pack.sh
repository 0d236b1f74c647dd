#!/bin/sh
# Packs built programs for a release, into target/dist/: pack.sh tarball TARGET, pack.sh npm TARGET...
# The programs of a target are taken from target/TARGET/release.
set -eu
cd "$(dirname "$0")/.."

folder=target/dist
mkdir -p "$folder"

# npm_name TARGET: the system's name for node.
npm_name() {
    case $1 in
        x86_64-unknown-linux-*) echo linux-x64 ;;
        aarch64-unknown-linux-*) echo linux-arm64 ;;
        x86_64-apple-darwin) echo darwin-x64 ;;
        aarch64-apple-darwin) echo darwin-arm64 ;;
        *)
            echo "no name for the target \`$1\`" >&2
            return 2
            ;;
    esac
}

# As `cargo binstall` and the action expect it: the programs, at the top.
tarball() {
    tar -czf "$folder/code-commit-$1.tar.gz" -C "target/$1/release" code-commit dev dev-agent \
        -C "$PWD" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT
}

npm() (
    package=$(mktemp -d)
    trap 'rm -rf "$package"' EXIT
    cp packaging/npm/* README.md LICENSE-APACHE LICENSE-MIT "$package"
    for target; do
        system=$(npm_name "$target")
        mkdir -p "$package/programs/$system"
        cp "target/$target/release/code-commit" "$package/programs/$system"
    done
    command npm pack --silent --pack-destination "$folder" "$package"
)

"$@"
