//! Tests that an auditor's git runs no program, waits for nothing and reads no file that the repository names.

use duct::cmd;

use super::*;

/// Creates a repository with a commit and an uncommitted change; also returns the path of a file that no trap may
/// create.
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

/// Settings whose value is a program, except for filters and includes; if those are set, git is not run.
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

/// Sets every setting that names a program to `program`, and creates the conditions under which git would run it.
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

/// Makes a commit on top of the last one that appears to be signed.
fn commit_signed(root: &Path) {
    let revisions = cmd!("git", "rev-parse", "HEAD", "HEAD^{tree}").dir(root);
    let head = revisions.read().unwrap();
    let (parent, tree) = head.split_once('\n').unwrap();
    let commit = format!(
        "tree {tree}\nparent {parent}\nauthor a <b> 1700000000 +0000\ncommitter a <b> 1700000000 +0000\n\
         gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n"
    );
    let hashing = cmd!("git", "hash-object", "-t", "commit", "-w", "--stdin").dir(root);
    let hash = hashing.stdin_bytes(commit).read().unwrap();
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
    // A file that looks modified by its timestamp alone, so git would update its index.
    let later = std::time::SystemTime::now() + std::time::Duration::from_mins(1);
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
    // With unrestricted git, the traps work.
    for command in [&["status"][..], &["diff"], &["log", "-1"]] {
        let plain = cmd("git", command).dir(&root).unchecked();
        let quiet = plain.stdout_null().stderr_null();
        quiet.env("GIT_CONFIG_GLOBAL", "/dev/null").run().unwrap();
        assert!(trap.exists(), "{command:?}");
        fs::remove_file(&trap).unwrap();
    }
}

/// Returns all files below a directory, with their contents.
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
    // A work tree elsewhere, as set in the configuration.
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
