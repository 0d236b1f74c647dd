//! Tests that read-only commands are allowed, and all others are not, however they are spelled.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

mod git;

fn project() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("root");
    fs::create_dir_all(root.join("src/deep")).unwrap();
    for file in ["a b.txt", "src/main.rs", "-n", ".env", "it's", "#x"] {
        fs::write(root.join(file), "content\n").unwrap();
    }
    fs::create_dir(root.join(".git")).unwrap();
    symlink("src/deep", root.join("link")).unwrap();
    symlink("../..", root.join("src/out")).unwrap();
    symlink("../.env", root.join("src/notes")).unwrap();
    (dir, root)
}

/// The time limit of a check.
const CHECK: Duration = Duration::from_mins(10);

/// Returns the allowed command, with the git of this machine and the user's own commands.
fn command(line: &str, root: &Path, own: &[Vec<String>]) -> Result<AllowedCommand, String> {
    let path = std::env::var_os("PATH");
    let commands = AuditCommands {
        root,
        path: path.as_deref(),
        own,
        check_timeout: CHECK,
    };
    commands.command(line)
}

/// Returns the words of a command.
fn words(line: &str, root: &Path) -> Result<Vec<String>, String> {
    command(line, root, &[]).map(|command| command.words)
}

/// Returns the command that is run, as one line; for git, only the part after the program's own options.
fn run(root: &Path, command: &str) -> Result<String, String> {
    let words = words(command, root)?;
    let last = words
        .iter()
        .position(|word| word.starts_with("--work-tree="));
    Ok(match last {
        Some(last) => format!("git {}", words[last + 1..].join(" ")),
        None => words.join(" "),
    })
}

#[test]
fn audit_prompt_lists_the_allowed_commands() {
    let told = include_str!("../../../prompts/dev_audit.txt");
    for command in ALLOWED.split(", ") {
        assert!(told.contains(&format!("`{command}`")), "{command}");
    }
}

#[test]
fn plain_commands_are_run_as_they_are() {
    let (_dir, root) = project();
    let diff = "git diff --no-ext-diff --no-textconv --ignore-submodules=dirty";
    let log = "git log --no-ext-diff --no-textconv";
    let status = "git status --ignore-submodules=dirty";
    for (command, expected) in [
        ("cat src/main.rs", "cat src/main.rs".to_owned()),
        ("  cat\tsrc/main.rs \n", "cat src/main.rs".to_owned()),
        ("cat -nA 'a b.txt'", "cat -nA a b.txt".to_owned()),
        ("\"cat\" a' 'b.txt", "cat a b.txt".to_owned()),
        ("cat \"it's\"", "cat it's".to_owned()),
        ("cat '#x'", "cat #x".to_owned()),
        ("cat -- -n", "cat ./-n".to_owned()),
        ("cat ./-n", "cat ./-n".to_owned()),
        ("cat src/deep/../main.rs", "cat src/main.rs".to_owned()),
        ("cat not-there", "cat not-there".to_owned()),
        ("head -n 5 src/main.rs", "head -n 5 src/main.rs".to_owned()),
        ("head -5 src/main.rs", "head -5 src/main.rs".to_owned()),
        (
            "tail -n +2 src/main.rs",
            "tail -n +2 src/main.rs".to_owned(),
        ),
        (
            "tail -c20 -q src/main.rs",
            "tail -c20 -q src/main.rs".to_owned(),
        ),
        ("ls", "ls".to_owned()),
        (
            "ls -la src --color=never",
            "ls -la --color=never src".to_owned(),
        ),
        ("ls .", "ls .".to_owned()),
        ("dir -1", "dir -1".to_owned()),
        (
            "tree -a -L 2 -I 'node_modules|target' src",
            "tree -a -L 2 -I node_modules|target src".to_owned(),
        ),
        ("tree --noreport", "tree --noreport".to_owned()),
        ("npm test", "npm test".to_owned()),
        ("npm  run  build", "npm run build".to_owned()),
        ("./build.sh", "./build.sh".to_owned()),
        ("build.sh", "./build.sh".to_owned()),
        ("bash build.sh", "bash ./build.sh".to_owned()),
        ("bash ./build.sh", "bash ./build.sh".to_owned()),
        ("git status", status.to_owned()),
        (
            "git status -sb --porcelain=v2",
            format!("{status} -sb --porcelain=v2"),
        ),
        ("git status -- src", format!("{status} -- src")),
        ("git diff", diff.to_owned()),
        (
            "git diff --stat HEAD~1 HEAD",
            format!("{diff} --stat HEAD~1 HEAD"),
        ),
        (
            "git diff main..dev -- 'a b.txt'",
            format!("{diff} main..dev -- a b.txt"),
        ),
        (
            "git diff main...origin/dev",
            format!("{diff} main...origin/dev"),
        ),
        (
            "git diff HEAD:src/main.rs src/main.rs",
            format!("{diff} HEAD:src/main.rs src/main.rs"),
        ),
        ("git diff -U10 -w", format!("{diff} -U10 -w")),
        ("git diff HEAD^ --cached", format!("{diff} --cached HEAD^")),
        ("git diff 'HEAD@{1}'", format!("{diff} HEAD@{{1}}")),
        ("git log --oneline -n 5", format!("{log} --oneline -n 5")),
        ("git log -5 -p -- src/", format!("{log} -5 -p -- src")),
        (
            "git log '--format=%h %an %s'",
            format!("{log} --format=%h %an %s"),
        ),
        (
            "git log --pretty=oneline",
            format!("{log} --pretty=oneline"),
        ),
        (
            "git log --since='2 weeks ago' --author=me",
            format!("{log} --since=2 weeks ago --author=me"),
        ),
        (
            "git log --grep='$(x) `y` \\z !'",
            format!("{log} --grep=$(x) `y` \\z !"),
        ),
    ] {
        assert_eq!(run(&root, command), Ok(expected), "{command}");
    }
}

#[test]
fn commands_allowed_by_the_user_match_word_by_word() {
    let (_dir, root) = project();
    let own = [
        "cargo test --quiet",
        "make 'check all'",
        "sh -c 'true && false'",
    ]
    .map(|line| shlex::split(line).unwrap());
    for (line, expected) in [
        ("cargo test --quiet", Some(&own[0])),
        (" cargo  test '--quiet'\n", Some(&own[0])),
        ("make 'check all'", Some(&own[1])),
        ("make \"check all\"", Some(&own[1])),
        ("sh -c 'true && false'", Some(&own[2])),
        ("cargo test", None),
        ("cargo test --quiet --release", None),
        ("cargo test --quiet; rm x", None),
        ("cargo test --quiet > x", None),
        ("make check all", None),
        ("sh -c true && false", None),
    ] {
        let allowed = command(line, &root, &own);
        assert_eq!(
            allowed.as_ref().ok().map(|allowed| &allowed.words),
            expected,
            "{line}"
        );
        if let Err(refused) = allowed {
            assert!(
                refused.ends_with(
                    "./build.sh, cargo test --quiet, make 'check all', sh -c 'true && false'"
                ),
                "{refused}"
            );
        }
    }
}

#[test]
fn read_only_commands_have_a_shorter_time_limit_than_checks() {
    let (_dir, root) = project();
    let own = [vec!["make".to_owned()]];
    for (line, expected) in [
        ("cat src/main.rs", LOOK),
        ("git status", LOOK),
        ("./build.sh", CHECK),
        ("npm test", CHECK),
        ("make", CHECK),
    ] {
        let timeout = command(line, &root, &own).unwrap().timeout;
        assert_eq!(timeout, expected, "{line}");
    }
}

#[test]
fn read_only_commands_and_the_gate_need_no_question_but_npm_does() {
    let (_dir, root) = project();
    let path = std::env::var_os("PATH");
    let commands = AuditCommands {
        root: &root,
        path: path.as_deref(),
        own: &[],
        check_timeout: CHECK,
    };
    for (line, words) in [
        ("ls -l src", Some(&["ls", "-l", "src"][..])),
        ("./build.sh", Some(&["./build.sh"])),
        ("bash build.sh", Some(&["bash", "./build.sh"])),
        ("npm test", None),
        ("npm run build", None),
        ("./build.sh; ls", None),
        ("ls > x", None),
        ("cat .env", None),
        ("", None),
    ] {
        let harmless = commands.harmless(line).map(|command| command.words);
        let words = words.map(|words| words.iter().map(|&word| word.to_owned()).collect());
        assert_eq!(harmless, words, "{line}");
    }
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
#[test]
fn all_else_is_refused_and_what_is_wrong_is_named() {
    let (_dir, root) = project();
    let inside = format!("cat {}/src/out/x", root.display());
    for (command, said) in [
        ("", "there is no command"),
        (" \n ", "there is no command"),
        ("rm -rf .", "`rm` is not allowed"),
        ("sh -c ls", "`sh` is not allowed"),
        ("env ls", "`env` is not allowed"),
        ("sudo cat x", "`sudo` is not allowed"),
        ("A=1 cat x", "`A=1` is not allowed"),
        ("/bin/cat x", "`/bin/cat` is not allowed"),
        ("./cat x", "`./cat` is not allowed"),
        ("CAT x", "`CAT` is not allowed"),
        ("''", "`` is not allowed"),
        ("catx", "`catx` is not allowed"),
        // Syntax that a shell would interpret.
        ("git status; rm -rf .", "`;`"),
        ("git status;", "`;`"),
        ("ls && rm x", "`&`"),
        ("ls & rm x", "`&`"),
        ("cat x | sh", "`|`"),
        ("cat < x", "`<`"),
        ("cat x > y", "`>`"),
        ("cat $(id)", "`$`"),
        ("cat `id`", "```"),
        ("cat \"`id`\"", "```"),
        ("ls \"$HOME\"", "`$`"),
        ("ls $HOME", "`$`"),
        ("cat a\\ b", "`\\`"),
        ("cat \"a\\\"b\"", "`\\`"),
        ("cat *.rs", "`*`"),
        ("cat a?b", "`?`"),
        ("cat [a]", "`[`"),
        ("cat {a,b}", "`{`"),
        ("cat ~/x", "`~`"),
        ("git log --grep=~root", "`~`"),
        ("ls # x", "`#`"),
        ("! ls", "`!`"),
        ("(ls)", "`(`"),
        ("git status\nrm x", "control character, `\\n`"),
        ("git status\r\nrm x", "control character, `\\r`"),
        ("cat 'a\nb'", "control character, `\\n`"),
        ("cat a\0b", "control character"),
        ("cat \u{1b}[2J", "control character"),
        ("cat\u{a0}x", "`\\u{a0}`"),
        ("cat\u{3000}x", "`\\u{3000}`"),
        ("cat\u{2028}x", "`\\u{2028}`"),
        ("cat 'x", "a quote in it is not closed"),
        ("cat \"x", "a quote in it is not closed"),
        // Flags.
        ("cat -x src/main.rs", "`-x` is not allowed with cat"),
        (
            "cat --show-all src/main.rs",
            "`--show-all` is not allowed with cat",
        ),
        ("cat -", "`-` is not allowed"),
        ("cat", "cat wants a file"),
        ("cat -n", "cat wants a file"),
        ("tail -f src/main.rs", "`-f` is not allowed"),
        ("tail -5f src/main.rs", "`-5f` is not allowed"),
        ("tail --follow src/main.rs", "`--follow` is not allowed"),
        ("tail -n src/main.rs", "`-n` wants a number"),
        ("tail -n", "`-n` wants a number"),
        ("ls --color=always", "`--color=always` is not allowed"),
        ("ls -lZ", "`-lZ` is not allowed"),
        ("ls --hyperlink", "not allowed"),
        ("tree -o x", "`-o` is not allowed"),
        ("tree -ao x", "`-ao` is not allowed"),
        ("tree -R -H x", "`-R` is not allowed"),
        ("tree --fromfile x", "not allowed"),
        ("tree -I", "`-I` wants a pattern"),
        // Files.
        (
            "cat ../../etc/passwd",
            "`../../etc/passwd` leads out of the project",
        ),
        ("cat /etc/passwd", "`/etc/passwd` leads out of the project"),
        ("cat src/out/x", "leads out of the project"),
        (&inside, "leads out of the project"),
        ("cat -- /etc/passwd", "leads out of the project"),
        ("cat .env", "holds credentials"),
        ("cat src/notes", "holds credentials"),
        ("cat agent-config/gemini-key.txt", "holds credentials"),
        ("cat 'C:\\x'", "Windows"),
        ("ls ..", "leads out of the project"),
        ("tree /", "leads out of the project"),
        ("cat ''", "the path is empty"),
        // npm.
        ("npm", "`npm test`"),
        ("npm test -- x", "`npm test`"),
        ("npm test; x", "`;`"),
        ("npm run build:all", "`npm run build`"),
        ("npm run build --prefix /tmp", "`npm run build`"),
        ("npm run", "`npm run build`"),
        ("npm --prefix x test", "`npm test`"),
        ("npm install", "`npm test`"),
        // Scripts.
        ("./build.sh release", "without arguments"),
        ("bash build.sh -x", "without arguments"),
        ("bash -x build.sh", "`./build.sh` alone"),
        ("bash -c ls", "`./build.sh` alone"),
        ("bash", "`./build.sh` alone"),
        ("sh build.sh", "`sh` is not allowed"),
        ("src/build.sh", "`src/build.sh` is not allowed"),
        ("./build.sh; rm x", "`;`"),
        // git.
        ("git", "`git` is not allowed"),
        ("git commit", "`git commit` is not allowed"),
        ("git Status", "`git Status` is not allowed"),
        ("git -C /tmp status", "`git -C` is not allowed"),
        ("git -c alias.status=!sh status", "`!`"),
        (
            "git -c 'alias.status=!sh' status",
            "`git -c` is not allowed",
        ),
        ("git --git-dir=x log", "`git --git-dir=x` is not allowed"),
        ("git --exec-path=x log", "not allowed"),
        ("git -p log", "`git -p` is not allowed"),
        ("git diff --output=x", "`--output=x` is not allowed"),
        ("git diff --outp=x", "`--outp=x` is not allowed"),
        ("git diff --output x", "`--output` is not allowed"),
        ("git diff --ext-diff", "`--ext-diff` is not allowed"),
        ("git diff --textconv", "not allowed"),
        ("git diff --no-index a b", "`--no-index` is not allowed"),
        ("git diff --no-in /etc/passwd x", "not allowed"),
        ("git diff -O/etc/passwd", "not allowed"),
        ("git diff --stat=200", "`--stat=200` is not allowed"),
        ("git diff -Ux", "`-Ux` is not allowed"),
        ("git diff -U 5", "`-U` is not allowed"),
        (
            "git diff /etc/passwd /etc/group",
            "`/etc/passwd` leads out of the project",
        ),
        ("git diff ../x", "`..` for a directory"),
        ("git diff a/../../x", "`..` for a directory"),
        ("git diff HEAD:../x", "`..` for a directory"),
        ("git diff src/out/x", "leads out of the project"),
        ("git diff -- ../x", "leads out of the project"),
        ("git diff -- ':(top)x'", "`:(top)x` is not allowed"),
        ("git diff :/x", "`:/x` is not allowed"),
        ("git diff HEAD:.env", "holds credentials"),
        ("git diff -- .env", "holds credentials"),
        ("git log -p .env", "holds credentials"),
        ("git log --exec=x", "`--exec=x` is not allowed"),
        ("git log --show-signature", "not allowed"),
        ("git log --format=%GG", "`--format=%GG` is not allowed"),
        ("git log --format=%+G?", "`?`"),
        (
            "git log '--format=%h%+G?'",
            "`--format=%h%+G?` is not allowed",
        ),
        ("git log --pretty=mine", "`--pretty=mine` is not allowed"),
        ("git log --pretty", "`--pretty` is not allowed"),
        ("git log --format x", "`--format` is not allowed"),
        ("git log --onelin", "not allowed"),
        ("git log -L1,2:x", "not allowed"),
        ("git log -n x", "`-n` wants a number"),
        ("git log -n 5; x", "`;`"),
        ("git status --ignored=matching", "not allowed"),
    ] {
        let refused = words(command, &root).unwrap_err();
        assert!(refused.contains(said), "{command}: {refused}");
        assert!(refused.contains(ALLOWED), "{command}: {refused}");
    }
}

#[test]
fn nothing_that_a_program_would_wait_for_is_named_to_it() {
    let (_dir, root) = project();
    make_pipe(&root.join("pipe"));
    make_pipe(&root.join("src/deep/pipe"));
    symlink("src/deep/pipe", root.join("notes")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    for command in [
        "cat pipe",
        "cat -n src/main.rs pipe",
        "cat -- ./pipe",
        "head -n 5 link/pipe",
        "tail notes",
        "cat socket",
        "ls pipe",
        "git diff -- pipe",
        "git diff HEAD:src/main.rs notes",
    ] {
        let refused = words(command, &root).unwrap_err();
        assert!(
            refused.contains("is a pipe, a device"),
            "{command}: {refused}"
        );
        assert!(refused.contains(ALLOWED), "{command}: {refused}");
    }
    assert!(words("ls src/deep", &root).is_ok());
}

fn make_pipe(path: &Path) {
    let kind = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
}

proptest! {
    #[test]
    fn any_line_is_refused_or_begins_with_a_known_program(
        line in "(cat|git|log|diff| |-|'|\"|;|\\$|\\.\\./|/|src|\\PC){0,12}",
    ) {
        let dir = tempfile::tempdir().unwrap();
        if let Ok(words) = words(&line, &dir.path().canonicalize().unwrap()) {
            let known = ["cat", "head", "tail", "ls", "dir", "tree", "npm"];
            prop_assert!(known.contains(&words[0].as_str()));
        }
    }
}
