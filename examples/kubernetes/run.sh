#!/bin/sh
# One index of the Job: `clone` takes its repository, `run` asks for the change there and keeps what comes of it.
#
# Line N+1 of $TASKS/repositories is for index N: an address, and behind a blank a branch, where it is not the usual one.
# The query is $TASKS/query-N.txt; where that is missing, $TASKS/query.txt.
set -eu

index=$JOB_COMPLETION_INDEX
tasks=${TASKS:-/tasks}
keys=${KEYS:-/keys}
work=${WORK:-/work}
project=$work/project
results=${RESULTS:-/results}
message=${TERMINATION_MESSAGE:-/dev/termination-log}

# The Job does not try again what ends with 2: the list is wrong.
fail() {
    printf '%s\n' "$*" | tee -a "$message" >&2
    exit 2
}

clone() {
    line=$(sed -n "$((index + 1))p" "$tasks/repositories")
    address=${line%% *}
    branch=
    case $line in *' '*) branch=${line#* } ;; esac
    [ -n "$address" ] || fail "there is no line for index $index in the list of repositories"
    [ -f "$(query)" ] || fail "there is no query for index $index"
    set -- --depth 1
    [ -z "$branch" ] || set -- "$@" --branch "$branch"
    rm -rf "$project"
    # The credentials are mounted for this container alone; builds never see them. They are read only.
    # shellcheck disable=SC2016 # the helper's shell expands it
    helper='!helper() { test "$1" != get || git credential-store --file="${GIT_CREDENTIALS:-/git/credentials}" get; }; helper'
    GIT_TERMINAL_PROMPT=0 git -c credential.helper="$helper" clone "$@" -- "$address" "$project" ||
        {
            echo "could not clone the repository of index $index" >>"$message"
            exit 1
        }
}

query() {
    if [ -f "$tasks/query-$index.txt" ]; then
        echo "$tasks/query-$index.txt"
    else
        echo "$tasks/query.txt"
    fi
}

# Runs the program, passes a request to end on to it, and gives back its exit code.
supervise() {
    code-commit "$@" &
    child=$!
    trap 'kill -TERM "$child" 2>/dev/null || true' HUP INT TERM
    while :; do
        code=0
        wait "$child" || code=$?
        kill -0 "$child" 2>/dev/null || break
    done
    trap - HUP INT TERM
    return "$code"
}

run() {
    cd "$project"
    if [ -L agent-config ]; then
        fail "agent-config is a symbolic link; keys are not written through it"
    fi
    rm -rf agent-config
    (
        umask 077
        mkdir -m 700 agent-config
        cat "$(query)" >agent-config/query.txt
        for key in gemini-key.txt openai-key.txt; do
            if [ -f "$keys/$key" ]; then
                cat "$keys/$key" >"agent-config/$key"
            fi
        done
    )
    code=0
    supervise rollup || code=$?
    if [ "$code" = 0 ]; then
        # Arguments of the Job come last.
        supervise --summary-file "$work/summary.md" "$@" || code=$?
    fi
    rm -f agent-config/gemini-key.txt agent-config/openai-key.txt

    echo "$code" >"$results/exit-code"
    # The record says where trying again does not help: the key is rejected, say. The Job does not then.
    case $code in
        4 | 6) ! grep -qs '"retryable": false' logs/*/result.json || code=1 ;;
    esac
    if [ -d logs ]; then
        cp -RP logs "$results/"
    fi
    if [ -f "$work/summary.md" ]; then
        cp "$work/summary.md" "$results/"
        # Kubernetes keeps 4096 bytes of it, for `kubectl describe`.
        head -c 4096 "$work/summary.md" >"$message"
    fi
    # The logs are no part of the change, whatever .gitignore says. (git rejects paths that are ignored and
    # named, even to leave them out; patterns it takes.)
    if git -c core.fsmonitor=false add -A -- . ':(exclude)agent-conf[i]g/*' ':(exclude)log[s]/*'; then
        git diff --cached --binary --no-ext-diff --no-textconv HEAD -- >"$results/change.patch"
    fi
    exit "$code"
}

case ${1:-} in
    clone | run) "$@" ;;
    *) fail "usage: code-commit-index clone | run [ARGUMENT...]" ;;
esac
