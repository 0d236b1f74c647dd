//! What is known of programs: tables. Pure data.

use std::sync::LazyLock;

use regex::Regex;

use crate::sys::text::regex;

const DELETES: &str = "deletes";
pub(super) const OVERWRITES: &str = "overwrites";
pub(super) const COMMITS: &str = "commits";
/// Why git is asked about where it does not only look.
pub(super) const CHANGES_REPOSITORY: &str = "changes the repository";
/// Why a program that runs others is asked about.
const RUNS: &str = "runs another program";
/// Why a program is asked about that takes code.
pub(super) const CODE: &str = "runs code";
const SETS: &str = "changes what later commands mean";
const SYSTEM: &str = "changes the system";
const COMPOUND: &str = "is more than a list of plain commands";

/// Words of the shell that are asked about where they begin a command, and why. No program has such a name.
pub(super) const SHELL_WORDS: [(&str, &str); 3] = [
    (
        COMPOUND,
        "! [[ case coproc do done elif else esac fi for function if in select then until while",
    ),
    (RUNS, ". builtin command compgen eval exec source trap"),
    (
        SETS,
        "alias bind complete declare enable export fc getopts hash let local mapfile read readarray readonly shopt \
         typeset unalias unset",
    ),
];

/// Programs that are asked about as such, and why: their names, and beginnings of names, which end in `-`.
pub(super) const ASKED: [(&str, &str); 6] = [
    (
        RUNS,
        "at batch busybox chroot crontab dc direnv doas dotenv ed emacs emacs- entr env ex expect \
         flock gdb hyperfine ionice ld ld- less lldb ltrace man more nano nc ncat nice nohup nsenter nvim parallel pkexec runuser screen \
         script setsid socat ssh stdbuf strace su sudo systemd-run time timeout tmux toybox unbuffer unshare vi view \
         vim watch xargs",
    ),
    (
        CODE,
        "mariadb mongo mongosh mysql psql r redis-cli sqlcmd sqlite3",
    ),
    (
        DELETES,
        "dropdb fstrim git-clean rm rmdir shred srm unlink wipefs",
    ),
    (
        OVERWRITES,
        "7z 7za 7zz ar aria2c brotli bsdcpio bsdtar bunzip2 bzip2 compress convert cp cpio cpp csplit dd dos2unix fallocate ffmpeg ftp gunzip gzip install jar lbzip2 ln logsave \
         lz4 lzip lzma lzop mac2unix mmv mogrify mv objcopy \
         patch pax pbzip2 pigz rar rclone rename rsync savelog scp sd sftp split sponge strip tar tee truncate uncompress unix2dos unlz4 unlzma unrar unxz unzip unzstd wget xz zip zstd",
    ),
    (CHANGES_REPOSITORY, "bzr cvs darcs fossil git- hg jj svn"),
    (
        SYSTEM,
        "chattr chgrp chmod chown dpkg fdisk halt insmod iptables kill killall launchctl losetup mkfs mkswap modprobe mount \
         nft pacman parted passwd pkill poweroff reboot rmmod rpm service setfacl shutdown swapoff sysctl systemctl umount \
         useradd userdel usermod visudo",
    ),
];

/// What the tools of GNU are called where the system has its own.
pub(super) const GNU: &str = "gawk gcp gchmod gchown gdd genv gfind ginstall gln gmv gnice gnohup grm grmdir gsed gshred \
                              gsort gsplit gstdbuf gtar gtee gtimeout gtruncate gunlink guniq gxargs";

/// Parts of words that name what is asked about, whole, and then as any part of a word.
pub(super) const HARM: [(&str, &str, &str); 4] = [
    (
        DELETES,
        "basetemp del drop erase erases gc prune rm rmdir rmi shred wipe",
        "clean delet destroy discard expunge purg remov rimraf trash truncat uninstall unlink",
    ),
    (
        OVERWRITES,
        "copy cp dd fix force inplace ln mv rename rsync scp symlink tee",
        "checkout clobber overwrit reset restor revert rollback",
    ),
    (
        COMMITS,
        "amend merge push rebase squash",
        "bumpversion commit publish",
    ),
    (SYSTEM, "chmod chown kill killall mkfs pkill", ""),
];

/// Options by which many programs write a file.
pub(super) static WRITING_OPTION: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:-[iw]|-i\..*|-o.*|--(?:in-?place|out|write).*)$"));

/// Options by which many programs take code, or read it from a pipe.
pub(super) static RUNNING_OPTION: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?:-|-.*[^-]-|eval|--?(?:call|command|eval)\b.*|--?exec.*|-toolexec.*|--config\b.*)$")
});

/// Programs that run a script, or code that they are given.
pub(super) const INTERPRETERS: &str = "ash bash bun csh dash deno elixir erl fish gnuplot groovy guile iex ipython irb jshell julia ksh lua luajit m4 mksh node nodejs nu ocaml octave \
                                       osascript perl php powershell pwsh pypy python racket rscript ruby sbcl scala sh tclsh tcsh ts-node \
                                       tsx zsh";
/// Words that end as the names of shells do.
pub(super) const NO_SHELLS: &str = "crash flush fresh hash mesh refresh";
/// How the names of files end that are no programs, or a script of the project.
pub(super) const SOURCES: &str = "c cc cjs cpp cs css csv go h hpp html ini java js json jsx kt less lock lua md mjs php pl proto py \
                                  rb rs scss sh sql svelte svg swift toml ts tsx txt vue xml yaml yml";
/// What an interpreter may be given in the place of a script.
pub(super) const WITHOUT_SCRIPT: &str = "--check --help --test --version -V";
/// Python's modules that may be run.
pub(super) const MODULES: &str = "flake8 http.server mypy pip pylint pyright pytest ruff unittest";

/// Programs, or subcommands of one, that only look: their names; the options that they may be given, as a pattern; and how
/// many words that are none.
pub(super) const LOOKING: [(&str, &str, usize); 18] = [
    (
        ": basename cat cd cksum cmp column comm cut df diff dirname du echo egrep exit expand expr false fgrep fold free \
         grep head hexdump id join jq ls md5sum nl nproc od paste pgrep popd printenv ps pushd pwd readlink realpath rev seq \
         set sha1sum sha256sum sha512sum shasum sleep stat strings sum tac tail tr true type uname unexpand uptime wc \
         whereis which who whoami",
        ANY,
        MANY,
    ),
    (
        "[ test",
        r"-(?:[a-oq-uw-zGLNOS]|ef|eq|ge|gt|le|lt|ne|nt|ot|\d+)",
        MANY,
    ),
    ("wait", "-[fn]", MANY),
    ("printf", "--", MANY),
    ("file", "-[bhikLz0]+|--brief|--mime(-type|-encoding)?", MANY),
    (
        "find",
        r"(?x)-(?: [HLP] | \d+[a-zA-Z]? | a | and | o | or | not | [acm](?:min|time) | depth | empty | executable | group
        | i?(?:name|path|regex|wholename) | inum | links | ls | maxdepth | mindepth | mount | newer\w* | perm | print0?
        | printf | prune | quit | readable | regextype | samefile | size | true | false | type | user | writable | xdev )",
        MANY,
    ),
    (
        "fd fdfind",
        r"-[FHILaegilpstu0]+|--(?:exclude|extension|glob|hidden|max-depth|no-ignore|type)(?:=.*)?",
        MANY,
    ),
    (
        "rg",
        r"-[a-zA-Z0-9].*|--|--(?:[a-gi-oq-z][\w-]*|hidden|heading|help|passthru|path-separator|pcre2|pretty)(?:=.*)?",
        MANY,
    ),
    (
        "sort",
        r"-[CMRVbcdfghimnrsuz]*(?:[Skt].*)?|--(?:field-separator|ignore-case|key|(?:human-)?numeric-sort|reverse|stable|unique|version-sort)(?:=.*)?",
        MANY,
    ),
    ("uniq", r"-[Dcdiuz]+|-[fsw]\d+", 1),
    ("xxd", r"-[Eabeiu]+|-[cgls]\d+", 1),
    (
        "tree",
        r"-[CDFNadfghilpqstuvx]+|-[ILP]\w*|--(?:dirsfirst|gitignore|noreport|prune)",
        MANY,
    ),
    (
        "curl",
        r"-[46LNISfgiksv]*[AHXdmu]?|--(?:compressed|data|fail|head|header|include|insecure|json|location|max-time|request|retry|show-error|silent|verbose|version)",
        MANY,
    ),
    (
        "git blame;git cat-file;git check-ignore;git cherry;git count-objects;git describe;git diff;git diff-tree;\
         git for-each-ref;git grep;git log;git ls-files;git ls-tree;git merge-base;git name-rev;git range-diff;\
         git rev-list;git rev-parse;git shortlog;git show;git show-ref;git stash list;git stash show;git status;\
         git whatchanged",
        r"-[^-O][^O]*|--|--(?:[a-df-np-z].*|encoding=.*|error-unmatch|exact-match|exclude\S*|exit-code|extended-regexp|oneline|only\S*|others|ours)",
        MANY,
    ),
    (
        "git branch",
        "-[arv]+|--(?:all|list|remotes|show-current|verbose)",
        0,
    ),
    (
        "git remote;git tag;git reflog;git worktree list;git submodule status;git version",
        r"-v|--verbose|-l|--list|-n\d*|--porcelain",
        0,
    ),
    (
        "git remote show;git remote get-url;git reflog show;git config --get",
        r"-\d+",
        1,
    ),
    (
        "git config --list;git config -l;git --version",
        "--(?:show-origin|global|local)",
        0,
    ),
];
/// Whatever option there is.
pub(super) const ANY: &str = ".*";
/// Builtins whose words bash may evaluate: as a subscript, which may substitute commands.
pub(super) const EVALUATING: &str = "[ test wait";
/// Programs that are not known to look only, whose words are no commands: names, and what tests are to match.
pub(super) const WITH_WORDS: &str = "mkdir pytest touch";
/// Programs with subcommands, and those of them whose words are no commands either: packages, tests and settings.
pub(super) const MANAGERS: &str = "brew bun bundle cargo composer conda dotnet gem gh go mvn mvnw npm pip pipx pnpm poetry uv yarn";
pub(super) const WITH_WORDS_BEHIND: &str =
    "add bench build check ci clippy doc env get i install issue pr repo test vet";
/// Those whose `run` knows the project's own scripts alone.
pub(super) const SCRIPT_MANAGERS: &str = "npm pnpm yarn";
/// As many as anybody likes.
const MANY: usize = usize::MAX;

/// The patterns of the options, row by row.
pub(super) static LOOKING_OPTIONS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let whole = |(_, options, _): &(_, &str, _)| regex(&format!("^(?:{options})$"));
    LOOKING.iter().map(whole).collect()
});

/// What an awk program does that is more than printing.
pub(super) const AWK_ACTS: [&str; 4] = [">", "|", "@", "system"];

/// The scripts of sed that only print: addresses with `p`, `d`, `q` or `=`, and substitutions without the flags that write
/// or run.
pub(super) static SED_PRINTS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?x)^(?:
        (?: (?:\d+|\$|/[^/\\\n]*/)? (?:,(?:\d+|\$|\+\d+|/[^/\\\n]*/))? !? [pdq=] ;? )+
        | s/[^/\n]*/[^/\n]*/[gpI\d]* | s\|[^|\n]*\|[^|\n]*\|[gpI\d]* | s\#[^\#\n]*\#[^\#\n]*\#[gpI\d]* )$",
    )
});

/// Variables that change how much a program says, and not what it runs.
pub(super) const HARMLESS_VARIABLES: &str =
    "CARGO_TERM_COLOR CI FORCE_COLOR NODE_ENV NO_COLOR RUST_BACKTRACE RUST_LOG TZ";
