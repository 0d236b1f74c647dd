//! That commands that look are allowed, and no others, however they are written.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use duct::cmd;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

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

/// How long a check may take here.
const CHECK: Duration = Duration::from_secs(600);

/// What is allowed with the git of this machine, and with commands of the user's own.
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

/// The words of a command.
fn words(line: &str, root: &Path) -> Result<Vec<String>, String> {
    command(line, root, &[]).map(|command| command.words)
}

/// What is run, as one line; of git, what stands behind its own options.
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
fn an_auditor_is_told_what_is_allowed() {
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
fn what_the_user_allows_besides_is_taken_word_by_word() {
    let (_dir, root) = project();
    let own = [
        "cargo test --quiet",
        "make 'check all'",
        "sh -c 'true && false'",
    ];
    let own: Vec<_> = own.map(|line| shlex::split(line).unwrap()).to_vec();
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
fn what_only_looks_ends_after_seconds_and_a_check_may_take_its_time() {
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
        // What a shell would make more of.
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

/// A repository with a commit and a change since; and the path of a file that no trap may make.
fn repository() -> (TempDir, PathBuf, PathBuf) {
    let (dir, root) = project();
    fs::remove_dir(root.join(".git")).unwrap();
    let trap = root.with_file_name("trapped");
    git(&root, &["init", "-q"]);
    git(&root, &["add", "src/main.rs"]);
    let identity = ["-c", "user.name=a", "-c", "user.email=b"];
    git(&root, &[&identity[..], &["commit", "-qm", "one"]].concat());
    fs::write(root.join("src/main.rs"), "other\n").unwrap();
    (dir, root, trap)
}

fn git(root: &Path, arguments: &[&str]) {
    let git = cmd("git", arguments).dir(root);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").run().unwrap();
}

fn output(root: &Path, command: &str) -> String {
    let argv = words(command, root).unwrap();
    let (program, arguments) = argv.split_first().unwrap();
    cmd(program, arguments).dir(root).read().unwrap()
}

/// The settings whose value is a program, but for filters and what is included: with those, git is not run.
const PROGRAM_SETTINGS: [&str; 36] = [
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.askPass",
    "core.sshCommand",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "pager.log",
    "pager.diff",
    "pager.status",
    "sequence.editor",
    "diff.external",
    "diff.trap.textconv",
    "diff.trap.command",
    "diff.tool",
    "difftool.trap.cmd",
    "merge.trap.driver",
    "mergetool.trap.cmd",
    "interactive.diffFilter",
    "gpg.program",
    "gpg.openpgp.program",
    "gpg.x509.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultKeyCommand",
    "credential.helper",
    "credential.https://example.invalid.helper",
    "trailer.trap.command",
    "trailer.trap.cmd",
    "browser.trap.cmd",
    "man.trap.cmd",
    "sendemail.toCmd",
    "uploadpack.packObjectsHook",
    "remote.origin.uploadpack",
    "remote.origin.receivepack",
    "tar.trap.command",
    "web.browser",
];

/// Gives a repository every setting that names a program, and what makes git run it: `program` in all of them.
fn set_traps(root: &Path, program: &str) {
    for name in PROGRAM_SETTINGS {
        git(root, &["config", name, program]);
    }
    let shell = format!("!{program}");
    let ext = format!("ext::{program}");
    for (name, value) in [
        ("alias.status", shell.as_str()),
        ("alias.diff", &shell),
        ("alias.log", &shell),
        ("submodule.trap.update", &shell),
        ("log.showSignature", "true"),
        ("format.pretty", "%GG"),
        ("pretty.oneline", "%GG"),
        ("status.submoduleSummary", "true"),
        ("diff.submodule", "log"),
        ("remote.origin.url", &ext),
        ("remote.origin.promisor", "true"),
        ("extensions.partialClone", "origin"),
        ("protocol.ext.allow", "always"),
    ] {
        git(root, &["config", name, value]);
    }
    let hooks = root.join("hooks");
    for directory in [&hooks, &root.join(".git/hooks")] {
        fs::create_dir_all(directory).unwrap();
        for hook in ["post-index-change", "fsmonitor-watchman"] {
            let _ = fs::remove_file(directory.join(hook));
            symlink(program, directory.join(hook)).unwrap();
        }
    }
    git(root, &["config", "core.hooksPath", hooks.to_str().unwrap()]);
}

/// Makes a commit on top of the last one that seems to be signed.
fn commit_signed(root: &Path) {
    let head = cmd!("git", "rev-parse", "HEAD", "HEAD^{tree}").dir(root);
    let head = head.read().unwrap();
    let (parent, tree) = head.split_once('\n').unwrap();
    let commit = format!(
        "tree {tree}\nparent {parent}\nauthor a <b> 1700000000 +0000\ncommitter a <b> 1700000000 +0000\n\
         gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
    );
    let hash = cmd!("git", "hash-object", "-t", "commit", "-w", "--stdin").dir(root);
    let hash = hash.stdin_bytes(commit).read().unwrap();
    git(root, &["update-ref", "HEAD", &hash]);
}

#[test]
fn git_runs_no_program_that_a_repository_names_and_writes_nothing() {
    let (_dir, root, trap) = repository();
    commit_signed(&root);
    fs::write(root.join(".gitattributes"), "* diff=trap\n").unwrap();
    git(&root, &["add", ".gitattributes"]);
    let program = root.with_file_name("program");
    let script = format!("#!/bin/sh\ntouch {}\nexit 1\n", trap.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    set_traps(&root, program.to_str().unwrap());
    // A file that looks changed by its time alone, which git would write down.
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let file = fs::File::options()
        .append(true)
        .open(root.join(".gitattributes"));
    file.unwrap().set_modified(later).unwrap();
    let _ = fs::remove_file(&trap);
    let before = contents(&root);
    for (command, said) in [
        ("git status -s", " M src/main.rs"),
        ("git diff", "+other"),
        ("git diff HEAD -- src", "-content"),
        ("git diff --stat", "main.rs"),
        ("git log -p", "+content"),
        ("git log --oneline", "signed"),
        ("git log --graph --stat --all", "signed"),
    ] {
        let output = output(&root, command);
        assert!(output.contains(said), "{command}: {output}");
        assert!(!trap.exists(), "{command}");
        assert_eq!(contents(&root), before, "{command}");
    }
    // To git as it is, they are traps.
    for command in [&["status"][..], &["diff"], &["log", "-1"]] {
        let plain = cmd("git", command).dir(&root).unchecked();
        let plain = plain.env("GIT_CONFIG_GLOBAL", "/dev/null");
        plain.stdout_null().stderr_null().run().unwrap();
        assert!(trap.exists(), "{command:?}");
        fs::remove_file(&trap).unwrap();
    }
}

/// All files below a directory, with what is in them.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn git_is_not_run_where_the_configuration_has_filters_or_includes() {
    let (_dir, root, trap) = repository();
    let evil = format!("[filter \"trap\"]\n\tclean = touch {}\n", trap.display());
    fs::write(root.join(".git/evil"), &evil).unwrap();
    fs::write(root.join(".gitattributes"), "* filter=trap\n").unwrap();
    let config = fs::read_to_string(root.join(".git/config")).unwrap();
    let process = evil.replace("clean", "process");
    let include = "[Include] path = evil\n".to_owned();
    let conditional = "[includeIf \"gitdir:**\"]\npath = evil\n".to_owned();
    let dotted = evil.replace("filter \"trap\"", "FILTER.trap");
    for (file, added) in [
        ("config", &evil),
        ("config", &process),
        ("config", &include),
        ("config", &conditional),
        ("config", &dotted),
        ("config.worktree", &evil),
    ] {
        fs::write(root.join(".git/config"), &config).unwrap();
        let whole = if file == "config" { &config } else { "" };
        fs::write(root.join(".git").join(file), format!("{whole}{added}")).unwrap();
        let refused = words("git diff", &root).unwrap_err();
        assert!(refused.contains("names filters"), "{added}: {refused}");
        assert!(words("cat src/main.rs", &root).is_ok());
    }
}

#[test]
fn git_does_not_wait_for_what_the_repository_has_it_read() {
    let (_dir, root, _) = repository();
    let pipe = root.with_file_name("pipe");
    make_pipe(&pipe);
    for name in [
        "core.attributesFile",
        "core.excludesFile",
        "diff.orderFile",
        "mailmap.file",
    ] {
        git(&root, &["config", name, pipe.to_str().unwrap()]);
    }
    for command in ["git status -s", "git diff", "git log -p"] {
        assert!(output(&root, command).contains("main.rs"), "{command}");
    }
    for name in [
        ".gitattributes",
        ".gitignore",
        ".mailmap",
        ".git/info/attributes",
        ".git/info/exclude",
    ] {
        let file = root.join(name);
        let _ = fs::remove_file(&file);
        make_pipe(&file);
        let piped = words("git status", &root).unwrap_err();
        fs::remove_file(&file).unwrap();
        symlink("/dev/zero", &file).unwrap();
        let endless = words("git diff", &root).unwrap_err();
        fs::remove_file(&file).unwrap();
        for refused in [piped, endless] {
            let told = refused.contains("git cannot be run: ") && refused.contains(name);
            assert!(told, "{name}: {refused}");
        }
    }
    assert!(words("git status", &root).is_ok());
}

#[test]
fn git_sees_the_projects_repository_and_its_files_and_nothing_else() {
    let (dir, root, _) = repository();
    // A work tree elsewhere, as the configuration would have it.
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("src")).unwrap();
    fs::write(elsewhere.join("src/main.rs"), "secret\n").unwrap();
    let elsewhere = elsewhere.to_str().unwrap();
    git(&root, &["config", "core.worktree", elsewhere]);
    let output = output(&root, "git diff");
    assert!(
        output.contains("+other") && !output.contains("secret"),
        "{output}"
    );
    fs::remove_dir_all(root.join(".git")).unwrap();
    cmd!("git", "init", "-q", "--bare", ".")
        .dir(&root)
        .run()
        .unwrap();
    let refused = words("git status", &root).unwrap_err();
    assert!(refused.contains("in no git repository"), "{refused}");
    let without = AuditCommands {
        root: &root,
        path: None,
        own: &[],
        check_timeout: CHECK,
    };
    assert!(without.command("cat src/main.rs").is_ok());
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
