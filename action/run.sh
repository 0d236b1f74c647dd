#!/bin/sh
# The steps of action.yml, one a name: fingerprint, install, digest, prepare, run, clean, collect, gate.
#
# All that comes from outside comes in variables and is never read as a script. What comes from the model,
# from builds and from the project is never read as a command to the runner either.
set -eu

program=$RUNNER_TEMP/code-commit/bin/code-commit
vendors='gemini openai anthropic azure'

fail() {
    printf '%s\n' "$*" >&2
    exit 2
}

# A word that nobody can guess.
random() {
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# output NAME VALUE: sets an output of the step. A value may hold line breaks.
output() {
    mark=$(random)
    printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >>"$GITHUB_OUTPUT"
}

to_project() {
    cd "$INPUT_WORKING_DIRECTORY" || fail "the input working-directory names no directory"
}

# put FILE: writes what comes in, readable by this user alone. What was there goes, be it a link.
put() {
    rm -f "$1"
    (umask 077 && set -C && cat >"$1")
}

# of_vendor PREFIX: the variable PREFIX_VENDOR_KEY; nothing if there is none.
of_vendor() {
    printenv "$1_$(printf '%s' "$vendor" | tr '[:lower:]' '[:upper:]')_KEY" || true
}

# What the project holds now, as a tree of git's; without keys and logs, whatever .gitignore says.
# The index of the project stays as it is.
snapshot() (
    GIT_INDEX_FILE=$FOLDER/index
    export GIT_INDEX_FILE
    cp "$(git rev-parse --git-path index)" "$GIT_INDEX_FILE" 2>/dev/null || rm -f "$GIT_INDEX_FILE"
    # git rejects paths that are ignored and named, even to leave them out; patterns it takes.
    git -c core.fsmonitor=false add -A -- . ':(exclude)agent-conf[i]g/*' ':(exclude)log[s]/*' 2>/dev/null &&
        git write-tree
)

# The program depends on these files alone, and on the system that it is built on.
fingerprint() {
    cd "$GITHUB_ACTION_PATH"
    files=$(find Cargo.toml Cargo.lock build.rs src prompts fixtures -type f | LC_ALL=C sort)
    sums=$(printf '%s\n' "$files" | git hash-object --no-filters --stdin-paths)
    output fingerprint "$(printf '%s\n' "${ImageOS:-}" "$files" "$sums" | git hash-object --stdin)"
}

# target_of_runner: the target that a release has for this runner.
target_of_runner() {
    case ${RUNNER_OS:-}-${RUNNER_ARCH:-} in
        Linux-X64) echo x86_64-unknown-linux-musl ;;
        Linux-ARM64) echo aarch64-unknown-linux-musl ;;
        macOS-X64) echo x86_64-apple-darwin ;;
        macOS-ARM64) echo aarch64-apple-darwin ;;
        *) return 1 ;;
    esac
}

# Takes the program of the release that the workflow names, if it names one, and if that release was made by this
# repository's own workflow.
take_release() (
    case ${ACTION_REF:-} in v[0-9]*.*.*) ;; *) return 1 ;; esac
    target=$(target_of_runner) && command -v gh >/dev/null || return 1
    folder=$(mktemp -d "$RUNNER_TEMP/code-commit-release.XXXXXX")
    archive=code-commit-$target.tar.gz
    gh release download "$ACTION_REF" --repo "$ACTION_REPOSITORY" --pattern "$archive" --dir "$folder" &&
        gh attestation verify "$folder/$archive" --repo "$ACTION_REPOSITORY" &&
        mkdir -p "$RUNNER_TEMP/code-commit/bin" &&
        tar -xzf "$folder/$archive" -C "$RUNNER_TEMP/code-commit/bin" code-commit dev dev-agent
)

install() {
    # From here, a toolchain file of the project does not count.
    cd "$GITHUB_ACTION_PATH"
    take_release && return
    echo "there is no release to take, so the program is built"
    cargo install --path . --locked --root "$RUNNER_TEMP/code-commit" --target-dir "$RUNNER_TEMP/code-commit-build"
}

sha256() {
    if command -v sha256sum >/dev/null; then
        sha256sum
    else
        shasum -a 256
    fi <"$1" | cut -d ' ' -f 1
}

digest() {
    output digest "$(sha256 "$program")"
}

# Whether the program is still the one that was installed.
is_unchanged() {
    [ "$(sha256 "$program")" = "$DIGEST" ] || {
        echo "$program is not what was installed: a build has changed it, and it is not run" >&2
        return 1
    }
}

prepare() {
    workspace=$PWD
    to_project
    if [ -L agent-config ]; then
        fail "agent-config is a symbolic link; keys are not written through it"
    fi
    mkdir -p -m 700 agent-config
    case ${INPUT_WORKFLOW:=commit} in
        commit | consistency) ;;
        *) fail "the input workflow is commit or consistency" ;;
    esac
    case ${INPUT_QUERY:+text}${INPUT_QUERY_FILE:+file} in
        text) printf '%s\n' "$INPUT_QUERY" | put agent-config/query.txt ;;
        file)
            case $INPUT_QUERY_FILE in
                /*) ;;
                *) INPUT_QUERY_FILE=$workspace/$INPUT_QUERY_FILE ;;
            esac
            [ -f "$INPUT_QUERY_FILE" ] || fail "the input query-file names no file"
            put agent-config/query.txt <"$INPUT_QUERY_FILE"
            ;;
        '') [ "$INPUT_WORKFLOW" = consistency ] || fail "one of the inputs query and query-file is needed" ;;
        *) fail "only one of the inputs query and query-file can be given" ;;
    esac
    for vendor in $vendors; do
        key=$(of_vendor INPUT)
        [ -z "$key" ] || printf '%s\n' "$key" | put "agent-config/$vendor-key.txt"
    done
    [ -z "${INPUT_MODELS:-}" ] || printf '%s\n' "$INPUT_MODELS" | put agent-config/models.json
    FOLDER=$(mktemp -d "$RUNNER_TEMP/code-commit-run.XXXXXX")
    mkdir "$FOLDER/artifact"
    # Logs of earlier runs may be there, where the runner keeps its folders.
    ls logs >"$FOLDER/logs-before" 2>/dev/null || true
    snapshot >"$FOLDER/tree-before" || fail "the project is not in a git repository"
    output folder "$FOLDER"
}

name_of() {
    case $1 in
        0) echo 'done' ;;
        1)
            # The summary's first table tells which of those it is.
            name=$(sed -n 's/^| \([a-z-]*\).* (exit code 1) |.*/\1/p' "$FOLDER/artifact/summary.md" 2>/dev/null | head -n 1)
            printf '%s\n' "${name:-build-failed}"
            ;;
        2) echo usage ;;
        3) echo not-ready ;;
        4) echo model-failed ;;
        5) echo reply-rejected ;;
        6) echo local-io ;;
        129 | 130 | 143) echo interrupted ;;
        *) echo unknown ;;
    esac
}

# Runs the program, passes a request to end on to it, and gives back its exit code.
supervise() {
    # As if it were not ready: nothing is sent.
    is_unchanged || return 3
    # What a build writes to these would be outputs and variables of the job.
    (
        unset GITHUB_ENV GITHUB_OUTPUT GITHUB_PATH GITHUB_STATE GITHUB_STEP_SUMMARY
        unset ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL ACTIONS_RUNTIME_TOKEN
        exec "$program" "$@"
    ) &
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

# with_lines TEXT COMMAND...: runs the command with one more argument for each line that is not empty.
with_lines() {
    lines=$1
    shift
    while IFS= read -r line; do
        [ -z "$line" ] || set -- "$@" "$line"
    done <<END
$lines
END
    "$@"
}

run() {
    to_project
    if [ "${INPUT_WORKFLOW:-}" = consistency ]; then
        set -- --cc
    else
        set -- --sandbox "$INPUT_SANDBOX"
    fi
    set -- "$@" --summary-file "$FOLDER/artifact/summary.md"
    [ -z "$INPUT_MODEL" ] || set -- "$@" --model "$INPUT_MODEL"
    [ -z "$INPUT_MAX_COST" ] || set -- "$@" --max-cost "$INPUT_MAX_COST"
    if [ "${INPUT_WORKFLOW:-}" = consistency ]; then
        [ "${INPUT_PARTS:-}" != true ] || set -- "$@" --parts
        [ -z "${INPUT_FINDINGS:-}" ] ||
            set -- "$@" --findings "$INPUT_FINDINGS" --findings-file "$FOLDER/artifact/findings.$INPUT_FINDINGS"
        [ -z "${INPUT_FAIL_ON:-}" ] || set -- "$@" --fail-on "$INPUT_FAIL_ON"
        [ "${INPUT_IF_CHANGED:-}" != true ] || set -- "$@" --if-changed
    else
        [ "${INPUT_CI:-}" != true ] || set -- "$@" --require-clean --deny-warnings=tests --reask 1
        [ "${INPUT_BASELINE:-}" != true ] || set -- "$@" --baseline
        [ "${INPUT_REQUIRE_EDITS:-}" != true ] || set -- "$@" --require-edits
        case ${INPUT_GATE:-off} in off) ;; *) set -- "$@" --gate "$INPUT_GATE" ;; esac
        case ${INPUT_SCRATCH:-false} in
            false) ;;
            true) set -- "$@" --scratch ;;
            *) set -- "$@" "--scratch=$INPUT_SCRATCH" ;;
        esac
        [ -z "${INPUT_STRATEGY:-}" ] || set -- "$@" --strategy "$INPUT_STRATEGY"
        case ${INPUT_ATTEMPTS:-1} in 1) ;; *) set -- "$@" --attempts "$INPUT_ATTEMPTS" ;; esac
    fi
    mark=$(random)
    printf '::stop-commands::%s\n' "$mark"
    code=0
    with_lines "$INPUT_ROLLUP" supervise rollup || code=$?
    # A report starts nothing of the project's, and its annotations are the program's own commands.
    if [ "${INPUT_WORKFLOW:-}" = consistency ]; then
        printf '\n::%s::\n' "$mark"
        mark=
    fi
    if [ "$code" = 0 ]; then
        with_lines "$INPUT_ARGUMENTS" supervise "$@" || code=$?
    fi
    [ -z "$mark" ] || printf '\n::%s::\n' "$mark"
    output exit-code "$code"
    output exit-name "$(name_of "$code")"
}

clean() {
    to_project
    [ ! -L agent-config ] || return 0
    for vendor in $vendors; do
        [ "$(of_vendor HAS)" != true ] || rm -f "agent-config/$vendor-key.txt"
    done
}

# The folders in logs that were not there before. What has another name than a run's is none.
new_logs() {
    for folder in logs/*; do
        name=${folder#logs/}
        case $name in *[!0-9A-Za-z-]*) continue ;; esac
        if [ -d "$folder" ] && [ ! -L "$folder" ] && ! grep -qxF -e "$name" "$FOLDER/logs-before"; then
            printf '%s\n' "$name"
        fi
    done
}

# A fence that is longer than any within FILE.
fence_for() {
    fence='```'
    while grep -qF -e "$fence" "$1"; do
        fence="$fence\`"
    done
    printf '%s' "$fence"
}

# The input with a sign in the place of what moves a cursor, turns text around or is not to be seen: control
# characters but tabs, Unicode's marks of direction and separators of lines, and its tags.
printable() {
    controls=$(printf '[\001-\010\013-\037\177]|\302[\200-\237]')
    marks=$(printf '\330\234|\342\200[\216\217\250-\256]|\342\201[\246-\257]|\363\240[\200\201][\200-\277]')
    LC_ALL=C sed -E "s/$controls|$marks/$(printf '\357\277\275')/g"
}

collect() {
    to_project
    artifact=$FOLDER/artifact
    patch=$artifact/change.patch
    summary=$artifact/summary.md

    log=
    for name in $(new_logs); do
        log=$PWD/logs/$name
        mkdir -p "$artifact/logs"
        cp -RP "$log" "$artifact/logs/"
    done
    if [ -n "$log" ]; then
        # An upload would follow links.
        find "$artifact/logs" -type l -exec rm -f {} +
        { is_unchanged && "$program" report "logs/$name" --output "$artifact/report.html" >/dev/null 2>&1; } ||
            rm -f "$artifact/report.html"
    fi

    before=$(cat "$FOLDER/tree-before")
    : >"$patch"
    if after=$(snapshot); then
        git diff --binary --no-ext-diff --no-textconv --no-color "$before" "$after" -- >"$patch"
    fi

    if [ ! -s "$summary" ]; then
        if [ -n "$EXIT_CODE" ]; then
            echo "code-commit ended with exit code $EXIT_CODE ($(name_of "$EXIT_CODE")) and left no summary."
        else
            echo "code-commit was stopped before it ended."
        fi >"$summary"
    fi
    # A step's summary may have 1 MiB.
    {
        head -c 300000 "$summary"
        if [ -s "$patch" ]; then
            fence=$(fence_for "$patch")
            printf '\n\n<details><summary>The change</summary>\n\n%sdiff\n' "$fence"
            head -c 500000 "$patch" | printable
            printf '\n%s\n\n</details>\n' "$fence"
        fi
    } >>"$GITHUB_STEP_SUMMARY"

    findings=
    for file in "$artifact/findings.sarif" "$artifact/findings.json"; do
        [ ! -s "$file" ] || findings=$file
    done
    output log "$log"
    output findings "$findings"
    output summary "$summary"
    output patch "$patch"
}

gate() {
    exit "$EXIT_CODE"
}

case $1 in
    fingerprint | install | digest | prepare | run | clean | collect | gate) "$1" ;;
    *) fail "no such step" ;;
esac
