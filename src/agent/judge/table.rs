//! The one table of programs: those that only look, those that are asked about whatever is allowed, and those that run
//! others; and how its names and patterns are read. Pure.
//!
//! Names stand between blanks, patterns match whole words. A program in no row is asked about under `ask`, and passes
//! under `always`.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use regex::Regex;

use crate::sys::text::regex;

/// The reason for asking about programs that delete.
const DELETES: &str = "deletes";
/// The reason for asking about programs that overwrite.
pub(super) const OVERWRITES: &str = "overwrites";
/// The reason for asking about programs that commit or publish.
const COMMITS: &str = "commits";
/// The reason for asking about git where it does more than look.
pub(super) const CHANGES_REPOSITORY: &str = "changes the repository";
/// The reason for asking about programs that run others.
pub(super) const RUNS: &str = "runs another program";
/// The reason for asking about programs that take code.
pub(super) const CODE: &str = "runs code";
/// The reason for asking about a script that git does not have, or that the session has written.
pub(super) const NEW_SCRIPT: &str =
    "runs a file that is not tracked by git or that this session has written";
/// The reason for asking about a program that looks, with options that are not in its row.
pub(super) const OPTIONS: &str = "has options that may write or run";
const SYSTEM: &str = "changes the system";

/// Words of the shell that begin more than a plain command. No program has such a name.
pub(super) const SHELL_WORDS: [(&str, &str); 3] = [
    (
        "is more than a list of plain commands",
        "! [[ case coproc do done elif else esac fi for function if in select then until while",
    ),
    (RUNS, ". builtin command compgen eval exec source trap"),
    (
        "changes what later commands mean",
        "alias bind complete declare enable export fc getopts hash let local mapfile read readarray readonly shopt \
         typeset unalias unset",
    ),
];

/// Variables that change how much a program says, and not what it runs.
pub(super) const HARMLESS_VARIABLES: &str = "CARGO_TERM_COLOR CGO_ENABLED CI DEBUG DOCKER_BUILDKIT FORCE_COLOR GOARCH GOOS LANG LC_ALL MIX_ENV NODE_ENV NO_COLOR PYTHONUNBUFFERED RAILS_ENV RUST_BACKTRACE RUST_LOG TZ";

/// The words of a command that are no options.
pub(super) enum Operands {
    /// Any.
    Any,
    /// At most so many; no pattern of file names, which may stand for more.
    AtMost(usize),
    /// A script that only prints, behind the options, then files.
    Script(fn(&str) -> bool),
    /// Words that are harmless each.
    Each(fn(&str) -> bool),
}
use Operands::{Any, AtMost, Each, Script};

/// Programs, or subcommands of git with a `;` between them, that only look; their options that do no harm, as a pattern;
/// and their operands.
#[rustfmt::skip]
pub(super) const LOOKING: &[(&str, &str, Operands)] = &[
    (": basename cat cd cksum cmp column comm cut df diff dir dirname du echo egrep exit expand expr false fgrep fold \
      free grep head hexdump id join jq ls md5sum nl nproc od paste pgrep popd printenv ps pushd pwd readlink realpath \
      rev seq set sha1sum sha256sum sha512sum shasum sleep stat strings sum tac tail tr true type uname unexpand uptime \
      wc whereis which who whoami", ".*", Any),
    ("[ test", r"-(?:[a-oq-uw-zGLNOS]|ef|eq|ge|gt|le|lt|ne|nt|ot|\d+)", Each(is_not_evaluated)),
    ("wait", "-[fn]", Each(is_not_evaluated)),
    ("env", "", AtMost(0)),
    ("date", r"-[uR]+|-[dI].*|--(?:date|iso-8601|rfc-3339|utc)(?:=.*)?", Each(sets_no_clock)),
    ("printf", "--", Any),
    ("file", "-[bhikLz0]+|--brief|--mime(-type|-encoding)?", Any),
    ("find", r"(?x)-(?: [HLP] | \d+[a-zA-Z]? | a | and | o | or | not | [acm](?:min|time) | depth | empty | executable
        | group | i?(?:name|path|regex|wholename) | inum | links | ls | maxdepth | mindepth | mount | newer\w* | perm
        | print0? | printf | prune | quit | readable | regextype | samefile | size | true | false | type | user
        | writable | xdev )", Any),
    ("fd fdfind", r"-[FHILaegilpstu0]+|--(?:exclude|extension|glob|hidden|max-depth|no-ignore|type)(?:=.*)?", Any),
    ("rg", r"-[a-zA-Z0-9].*|--|--(?:[a-gi-oq-z][\w-]*|hidden|heading|help|passthru|path-separator|pcre2|pretty)(?:=.*)?", Any),
    ("sort", r"(?x)-[CMRVbcdfghimnrsuz]*(?:[Skt].*)? | --(?:field-separator|ignore-case|key|(?:human-)?numeric-sort
        |reverse|stable|unique|version-sort)(?:=.*)?", Any),
    ("uniq", r"-[Dcdiuz]+|-[fsw]\d+", AtMost(1)),
    ("xxd", r"-[Eabeiu]+|-[cgls]\d+", AtMost(1)),
    ("tree", r"-[CDFNadfghilpqstuvx]+|-[ILP]\w*|--(?:dirsfirst|gitignore|noreport|prune)", Any),
    ("sed", "-n|-E|-r|-nE|-nr|-e|-ne", Script(is_printing_sed)),
    ("awk mawk nawk", "-v|-F.*", Each(is_printing_awk)),
    ("git blame;git cat-file;git check-ignore;git cherry;git count-objects;git describe;git diff;git diff-tree;\
      git for-each-ref;git grep;git log;git ls-files;git ls-tree;git merge-base;git name-rev;git range-diff;\
      git rev-list;git rev-parse;git shortlog;git show;git show-ref;git stash list;git stash show;git status;\
      git whatchanged", r"(?x)-[^-O][^O]* | -- | --(?:[a-df-np-su-z].*|encoding=.*|error-unmatch|exact-match|exclude\S*
        |exit-code|extended-regexp|oneline|only\S*|others|ours|tags|text|topo-order|theirs)", Any),
    ("git branch", "-[arv]+|--(?:all|list|remotes|show-current|verbose)", AtMost(0)),
    ("git remote;git tag;git reflog;git worktree list;git submodule status;git version",
        r"-v|--verbose|-l|--list|-n\d*|--porcelain", AtMost(0)),
    ("git remote show;git remote get-url;git reflog show;git config --get", r"-\d+", AtMost(1)),
    ("git config --list;git config -l;git --version", "--(?:show-origin|global|local)", AtMost(0)),
];

/// Programs that only look with nothing but `--version`.
#[rustfmt::skip]
pub(super) const VERSIONED: &str = "bun cargo deno gcc go java javac make node npm perl php pip pip3 python python3 \
                                    ruby rustc tsc";

/// A program that looks, or a subcommand of git, as an auditor may run it without a shell: its name; the flags that it
/// may be given, as a pattern, with a value behind a blank; the flags whose value may be the next word, and what that is;
/// and what git is told besides, behind the subcommand.
pub(in crate::agent) type AuditedProgram = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// The programs and options that an auditor's instructions name.
// A format that a configuration defines may run a program.
#[rustfmt::skip]
pub(in crate::agent) const AUDITED: [AuditedProgram; 9] = [
    ("cat", "-[nbsAETv]+", &[], ""),
    ("head", HEAD_FLAGS, NUMBERS, ""),
    ("tail", HEAD_FLAGS, NUMBERS, ""),
    ("ls", LS_FLAGS, &[], ""),
    ("dir", LS_FLAGS, &[], ""),
    ("tree", r"-[adfsh]+|--noreport|-L ?\d{1,9}|-[IP] .*",
        &[("-L", "a number"), ("-I", "a pattern"), ("-P", "a pattern")], ""),
    ("git status", "-s|--short|-b|--branch|-sb|--porcelain(=v[12])?|-u(no|normal|all)?|--ignored", &[],
        "--ignore-submodules=dirty"),
    ("git diff", r"(?x: -w | -b | -U\d{1,9}
        | --(stat|numstat|shortstat|name-only|name-status|cached|staged|summary|word-diff) )", &[],
        "--no-ext-diff --no-textconv --ignore-submodules=dirty"),
    ("git log", r"(?x: -p | -\d{1,9} | -n\x20?[+-]?\d{1,9}
        | --(oneline|stat|patch|name-only|name-status|graph|decorate|all)
        | --(since|until|author|grep)=.*
        | --(format|pretty)=(oneline|short|medium|full|fuller|reference|raw|.*%.*) )", &[("-n", "a number")],
        "--no-ext-diff --no-textconv"),
];

const HEAD_FLAGS: &str = r"-[qv]+|-\d{1,9}|-[nc] ?[+-]?\d{1,9}";
const NUMBERS: &[(&str, &str)] = &[("-n", "a number"), ("-c", "a number")];
const LS_FLAGS: &str = "-[aAlhRrtS1Fdpsi]+|--color=never|--group-directories-first";

/// Reports whether a word of `test` is taken literally: bash evaluates a subscript, which may substitute commands.
fn is_not_evaluated(word: &str) -> bool {
    !word.contains(['$', '`', '[']) || word == "]"
}

/// Reports whether an operand of `date` is no time, to which the clock would be set.
fn sets_no_clock(word: &str) -> bool {
    !word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Reports whether a program of awk, or a file, does no more than print.
fn is_printing_awk(script: &str) -> bool {
    !script.contains(['>', '|', '@']) && !script.contains("system") && !script.contains("/inet")
}

/// Reports whether a script of sed only prints: addresses with `p`, `d`, `q` or `=`, and substitutions without the flags that
/// write or run.
fn is_printing_sed(script: &str) -> bool {
    is_whole(
        script,
        r"(?x)
        (?: (?:\d+|\$|/[^/\\\n]*/)? (?:,(?:\d+|\$|\+\d+|/[^/\\\n]*/))? !? [pdq=] ;? )+
        | s/[^/\n]*/[^/\n]*/[gpI\d]* | s\|[^|\n]*\|[^|\n]*\|[gpI\d]* | s\#[^\#\n]*\#[^\#\n]*\#[gpI\d]*
        ",
    )
}

/// Options by which a formatter changes nothing.
const CHECKS: &str = "--check(?:-only|-formatted)?|--diff|--dry-run|--lint|--verify-no-changes|-check|-c|--version|--help";

/// Programs that are asked about whatever is allowed: why; their names; the subcommands that are meant, ""
/// for all; words of which one must be there, and words of which none may be there, as patterns.
#[rustfmt::skip]
pub(super) const GUARDED: &[(&str, &str, &str, &str, &str)] = &[
    (DELETES, "dropdb rimraf shred srm trash trash-put wipefs", "", "", ""),
    (DELETES, "py.test pytest", "", "--basetemp.*", ""),
    (OVERWRITES, "7z 7za 7zz ar aria2c brotli bsdtar bunzip2 bzip2 convert cpio cpp csplit ctags dd dos2unix etags \
        fallocate ffmpeg ftp gunzip gzip install jar ln lzma mogrify objcopy patch pax qemu-img rar rclone rsync scp \
        sftp split sponge strip tar tee uncompress unix2dos unlzma unrar unxz unzip unzstd wget xz zip zstd", "", "", ""),
    (OVERWRITES, "curl", "", r"(?x)-[^-]*[oOJKTcDQ].* | --(?:alt-svc|config|cookie-jar|create-dirs|dump-header|etag-save
        |hsts|libcurl|netrc-file|output|quote|remote|stderr|upload|trace)\S*", ""),
    (OVERWRITES, "cmake", "", "-E", ""),
    (CHANGES_REPOSITORY, "bzr cvs darcs fossil hg jj svn", "", "", ""),
    (COMMITS, "bump2version bumpversion semantic-release", "", "", ""),
    (COMMITS, "npm pnpm yarn", "version", "", ""),
    (COMMITS, "mvn mvnw", "deploy release:perform release:prepare", "", ""),
    (DELETES, "npm pnpm yarn", "r un unpublish", "", ""),
    (DELETES, "gmake make", "clobber distclean realclean", "", ""),
    (SYSTEM, "npm pip pip3 pnpm yarn", "config set", "", ""),
    (SYSTEM, "go", "env", "-w", ""),
    (SYSTEM, "gh", "alias extension", "", ""),
    (SYSTEM, "chattr chgrp chmod chown dpkg fdisk halt insmod iptables kill killall launchctl losetup mkfs mkswap \
        modprobe mount nft pacman parted passwd pkill poweroff reboot rmmod rpm service setfacl shutdown swapoff sysctl \
        systemctl umount useradd userdel usermod visudo", "", "", ""),
    (SYSTEM, "cmake gmake make meson ninja", "install", "", ""),
    (RUNS, "at batch busybox bwrap capsh chroot concurrently cross-env crontab dc direnv doas dotenv dotenv-cli entr env expect firejail flock gdb hyperfine ionice ld linux32 \
        linux64 lldb ltrace nc ncat nsenter parallel perf pkexec nodemon prlimit run0 runuser screen script setarch setpriv setsid \
        socat ssh stdbuf strace su sudo sudoedit systemd-inhibit systemd-nspawn systemd-run taskset tmux toybox unbuffer unshare valgrind watch \
        xargs", "", "", ""),
    (CODE, "mariadb mongo mongosh mysql psql r redis-cli sqlcmd sqlite3", "", "", ""),
    (CODE, "gmake make", "", r"--eval.*|-E.*|-[a-zA-Z]*f.+|--(?:make)?file=.*|-|SHELL=.*", ""),
    (CODE, "npm pnpm yarn", "", "--(?:script-shell|node-options).*", ""),
    (CODE, "bun deno elixir mix jruby kotlin swift", "", "-e|-p|--eval|--print|-", ""),
    (CODE, "rails", "r runner", "", ""),
    (RUNS, "cargo", "watch", "", ""),
    (RUNS, "pnpm yarn", "bash git node rimraf sh ts-node tsx", "", ""),
    (RUNS, "rustup", "run", "", ""),
    (CODE, "cargo", "", "--config.*", ""),
    (CODE, "go", "", "-{1,2}(?:toolexec|exec|overlay|vettool).*", ""),
    (CODE, "deno", "eval", "", ""),
    (RUNS, "ansible ansible-playbook crictl ctr docker-compose helmfile istioctl k3s limactl lxc minikube nomad podman-compose", "", "", ""),
    (RUNS, "buildah docker nerdctl podman", "attach create deploy down exec import kill load play restart run save scale start stop \
        unpause up update", "", ""),
    (RUNS, "helm kubectl oc skaffold", "annotate attach autoscale cordon create debug dev drain edit exec expose install \
        label patch replace rollout rsh run scale set taint uncordon upgrade", "", ""),
    (RUNS, "pulumi terraform terragrunt tofu vagrant", "force-unlock import refresh ssh state taint untaint up", "", ""),
    (OVERWRITES, "ed emacs emacs-gtk emacs-nox ex evim gvim helix hx kak less man mcedit mg micro more nano nvim pico \
        rview rvim vi view vim vimdiff", "", "", ""),
    (OVERWRITES, "alejandra autoflake black csharpier docformatter fourmolu isort nixfmt ormolu pint rustfmt scalafmt standardrb \
        stylua swiftformat", "", "", CHECKS),
    (OVERWRITES, "biome buf cargo dart deno dotnet dprint dune flutter go golangci-lint hatch mix nix ruff taplo terraform tofu zig", "fmt format", "", CHECKS),
    (OVERWRITES, "cargo dart go", "fix", "", ""),
    (OVERWRITES, "gradle gradlew mvn mvnw sbt", "formatKotlin ktlintFormat scalafmt scalafmtAll spotlessApply", "", ""),
    (OVERWRITES, "gofmt gofumpt goimports golines prettier shfmt", "", "-{1,2}[a-z]*w(?:=.*)?", ""),
    (OVERWRITES, "autopep8 clang-format google-java-format swift-format yapf yq", "", r"-{1,2}[a-z]*i\S*", ""),
    (OVERWRITES, "rubocop", "", "-[aAx]|--auto-?correct.*|--auto-gen-config", ""),
    (OVERWRITES, "ktlint", "", "-F|--format", ""),
    (OVERWRITES, "php-cs-fixer phpcbf", "", "", ""),
];

/// Options by which any program overwrites files.
pub(super) const OVERWRITING: &str = "--(?:fix|in-?place|overwrite|write)(?:=.*)?";

/// Words that mean the same where a program or its subcommand stands: `rm`, `npm rm`, `make clean`, `kubectl delete`.
#[rustfmt::skip]
pub(super) const HARMFUL: [(&str, &str); 3] = [
    (DELETES, "clean del delete destroy drop erase prune purge remove rm rmdir rmi uninstall unlink wipe"),
    (OVERWRITES, "apply checkout cp mv overwrite rename reset restore revert rollback stash truncate"),
    (COMMITS, "amend commit merge publish push rebase"),
];

/// Programs with several subcommands, or subcommands of subcommands: each of their words may be one.
#[rustfmt::skip]
pub(super) const NESTED: &str = "az aws buildah conda docker flyctl gcloud gh glab gmake gradle gradlew helm heroku just \
                                 kubectl make meson mvn mvnw nerdctl ninja oc php podman pulumi rake rails sbt terraform \
                                 terragrunt tofu uv vagrant";

/// Programs whose subcommands have subcommands.
#[rustfmt::skip]
pub(super) const DEEP: &str = "aws az conda docker flyctl gcloud gh glab helm heroku kubectl oc podman pulumi terraform tofu";

/// Subcommands of git that do more than look and are not asked about always, with their options.
#[rustfmt::skip]
pub(super) const GIT_PASSES: [(&str, &str); 2] = [
    ("add", "-[AfnuvN]+|--(?:all|dry-run|force|intent-to-add|update|verbose)|--"),
    ("fetch", r"-[apqtv]+|--(?:all|depth=\d+|prune|quiet|tags|unshallow|verbose)"),
];

/// Programs without subcommands: their words are files or names.
pub(super) const WITHOUT_SUBCOMMANDS: &str =
    "a.out eslint jest mkdir mypy pyright pytest rspec touch tsc vitest";

/// Programs that run the command behind their options, unchanged: their names, their options, those of them that take
/// the next word, and how many words stand before the command.
pub(super) const WRAPPERS: [(&str, &str, &str, usize); 4] = [
    (
        "timeout",
        "-k.+|-s.+|-v|--(?:foreground|kill-after=.*|preserve-status|signal=.*|verbose)",
        "-k -s",
        1,
    ),
    ("time", "-p", "", 0),
    ("nice", r"-n.+|-\d+|--adjustment=.*", "-n", 0),
    ("nohup", "", "", 0),
];

/// Programs that run another one of a project or a registry: their names, and the subcommand that does; "": all do.
pub(super) const RUNNERS: [(&str, &str); 5] = [
    ("bunx npx pnpx uvx", ""),
    ("npm pnpm yarn", "dlx exec x"),
    ("bun", "exec x"),
    ("bundle", "exec"),
    ("hatch pdm pipenv pipx poetry rye uv", "run"),
];
/// Options of these that change nothing about what is run.
pub(super) const RUNNER_OPTIONS: &str =
    "-q|-y|--yes|--no|--no-install|--|--frozen|--locked|--all-extras";

/// Programs that run a script, or code that they are given.
pub(super) const INTERPRETERS: &str = "ash bash bash-static csh dash elixir erl fish gnuplot groovy guile iex ipython irb jshell julia ksh lksh lua luajit \
                                       m4 mksh node nodejs nu ocaml octave osascript perl php powershell pwsh pypy python racket rbash \
                                       rscript ruby sbcl scala sh tclsh tcsh ts-node tsx xonsh yash zsh";
/// Those that are shells.
pub(super) const SHELLS: &str = "ash bash bash-static dash ksh mksh rbash sh zsh";
/// Options of a shell that change nothing about what its script is.
pub(super) const SHELL_OPTIONS: &str = "-[eunvx]+";
/// Options of other interpreters that change nothing about their script.
pub(super) const SCRIPT_OPTIONS: &str = r"-[uBOvw]+|-W\w+|--max-old-space-size=\d+";
/// Options that take the place of a script.
pub(super) const WITHOUT_SCRIPT: &str = "--check --help --test --version -V";
/// Modules of Python that may be run.
pub(super) const MODULES: &str = "black build compileall coverage flake8 http.server isort json.tool mypy pip py_compile pylint pyright pytest ruff tox unittest venv";
/// Programs that run a file like an interpreter, if one is named: `bun x.ts`, `go run x.go`.
pub(super) const RUN_FILES: &str = "bun coverage dart deno dotnet go java jbang jruby kotlin make mix runghc runhaskell scala-cli streamlit swift zx";
/// Endings of scripts.
pub(super) const SCRIPTS: &str =
    "bash bat cjs dart exs fsx go hs js jsx kts lua mjs mk mts php pl py rb sh swift ts tsx zsh";

/// The names of GNU's tools where the system has its own.
pub(super) const GNU: &str = "gawk gcp gchmod gchown gdd genv gfind ginstall gln gmv gnice gnohup grm grmdir gsed gshred \
                              gsort gsplit gstdbuf gtar gtee gtimeout gtruncate gunlink guniq gxargs";

/// Reports whether `name` is one of `names`, which stand between blanks.
pub(super) fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// Reports whether all of a text matches one of the table's patterns.
pub(super) fn is_whole(text: &str, pattern: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let whole = compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| regex(&format!("^(?:{pattern})$")));
    whole.is_match(text)
}
