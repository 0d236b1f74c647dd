//! A hostile repository that names programs, has its own settings, or is damaged. No program named by it is run, none
//! of its files decides where keys are sent, and nothing outside of it is read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::agent::{AgentProject, PASS, done, last_told, reply, write};
use crate::support::{Finished, GEMINI_KEY, ModelServer, TestProject};

fn git(directory: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(git.status().unwrap().success(), "{arguments:?}");
}

/// A project whose sources git tracks.
fn tracked() -> TestProject {
    let project = TestProject::new();
    git(&project.path(""), &["init", "-q"]);
    git(&project.path(""), &["add", "src", "build.sh"]);
    project
}

const ROLLUP: &str = "--- build.sh ---\n#!/bin/sh\necho built\n--- src/main.rs ---\nfn main() {}\n";

#[test]
fn no_program_that_a_repository_or_the_environment_names_is_run_to_list_files() {
    let project = tracked();
    let root = project.path("");
    let trap = root.join("trapped");
    let touch = format!("touch '{}'", trap.display());
    for name in [
        "core.fsmonitor",
        "core.pager",
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "diff.external",
        "diff.trap.textconv",
        "alias.ls-files",
    ] {
        git(&root, &["config", name, &touch]);
    }
    git(&root, &["config", "include.path", "evil"]);
    fs::write(
        root.join(".git/evil"),
        format!("[core]\nfsmonitor = {touch}\n"),
    )
    .unwrap();
    let script = format!("#!/bin/sh\n{touch}\n");
    let project = project
        .file(".gitattributes", "* filter=trap diff=trap\n")
        .file("tools/README", "")
        .file("hooks/README", "")
        .program("tools/git", &script)
        .program("hooks/post-index-change", &script);
    git(&root, &["config", "core.hooksPath", "hooks"]);
    let _ = fs::remove_file(&trap);
    let path = std::env::var_os("PATH").unwrap();
    let path = std::iter::once(root.join("tools")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).unwrap();
    let project = project
        .variable("PATH", path.to_str().unwrap())
        .variable("GIT_DIR", "/nowhere")
        .variable("GIT_CONFIG_COUNT", "1")
        .variable("GIT_CONFIG_KEY_0", "core.fsmonitor")
        .variable("GIT_CONFIG_VALUE_0", &touch);
    project.run(&["init"]).exits(0);
    project.run(&["rollup"]).exits(0);
    assert_eq!(project.read("agent-config/codeRollup.txt"), ROLLUP);
    project.run(&["demo", "--quiet", "shown"]).exits(0);
    assert!(!trap.exists());
    let project = project.variable("PATH", "");
    project.run(&["rollup"]).exits(0);
}

#[test]
fn the_git_of_a_build_or_a_command_runs_no_program_that_a_clone_brings() {
    let bare = |project: TestProject, trap: &Path| {
        let settings = format!(
            "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = ..\nfsmonitor = touch '{}'\n",
            trap.display()
        );
        project
            .file("kit/HEAD", "ref: refs/heads/main\n")
            .file("kit/config", &settings)
            .file("kit/objects/x", "")
            .file("kit/refs/x", "")
            // The user's own setting still counts.
            .variable("GIT_CONFIG_COUNT", "1")
            .variable("GIT_CONFIG_KEY_0", "user.name")
            .variable("GIT_CONFIG_VALUE_0", "Theirs")
    };
    let look = "(cd kit && git status); git --git-dir=kit status; git config user.name";
    for mode in ["off", "auto"] {
        let elsewhere = tempfile::tempdir().unwrap();
        let trap = elsewhere.path().join("trap");
        let server = ModelServer::gemini(&["Nothing to do."]);
        let project = bare(TestProject::new().with(&server), &trap).build(look);
        let run = project.run(&["--sandbox", mode]).exits(0);
        let log = run.logged("initial-build.txt");
        assert!(log.ends_with("\nTheirs\n"), "{log}");
        assert!(!trap.exists(), "{log}");

        let texts = [reply("COMMAND", look), done(), PASS.to_owned()];
        let (mut agent, server) = AgentProject::scripted(&texts);
        agent.project = bare(agent.project, &trap);
        agent.run(&["-p", "Go.", "--sandbox", mode]).exits(0);
        let told = last_told(&server, 1);
        assert!(told.contains("Theirs"), "{told}");
        assert!(!trap.exists(), "{told}");
    }
}

#[test]
fn a_damaged_index_is_reported_by_name() {
    let project = tracked().file(".git/index", "nonsense");
    project.run(&["rollup"]).exits(3).says(&[
        "git does not list the project's files",
        "/.git/index`",
        "hint:",
    ]);
    // It is unknown whether the key came with the repository.
    project
        .run(&["--dry-run"])
        .exits(3)
        .says(&["gemini-key.txt", "/.git/index`"]);
    let run = project.run(&["--rollup", "--require-clean"]).exits(3);
    let hints = run.stderr.matches("hint: fix the repository");
    assert_eq!(hints.count(), 1, "{}", run.stderr);
}

#[track_caller]
fn refused(run: Finished, server: &ModelServer, file: &str) {
    run.exits(3).says(&[
        &format!("git tracks `{file}`"),
        &format!("`git rm --cached {file}`"),
    ]);
    assert!(server.requests().is_empty());
}

#[test]
fn a_repository_that_is_not_where_git_looks_for_it_is_not_ready() {
    for content in ["gitdir: ../nothing\n", "gitdir:\n", "", "nonsense\n"] {
        let project = TestProject::new().file(".git", content);
        let before = project.tree();
        let commands: [&[&str]; 4] = [&[], &["--dry-run"], &["--cc"], &["rollup"]];
        for command in commands {
            let run = project.run(command).exits(3);
            run.says(&[
                ".git` cannot be read: it leads to",
                "`git status` must work",
            ]);
        }
        assert_eq!(project.tree(), before);
        // Without a repository, missing entries are added once.
        project.run(&["init"]).exits(0);
        let ignored = project.read(".gitignore");
        project.run(&["init"]).exits(0);
        assert_eq!(project.read(".gitignore"), ignored);
        fs::remove_file(project.path(".git")).unwrap();
        symlink("nowhere", project.path(".git")).unwrap();
        project.run(&[]).exits(3).says(&["`.git` cannot be read"]);
    }
    let (agent, _server) = AgentProject::scripted::<&str>(&[]);
    let agent = agent.with_file(".git", "gitdir: ../nothing\n");
    agent
        .run(&["-p", "go"])
        .exits(3)
        .says(&["`.git` cannot be read"]);
}

#[test]
fn a_table_of_models_that_git_tracks_does_not_say_where_keys_go() {
    let thief = ModelServer::gemini(&[]);
    let models = format!(
        r#"{{"models": {{"gemini-2.5-pro": {{"baseUrl": "{}"}}}}}}"#,
        thief.url()
    );
    let project = tracked().file("agent-config/models.json", &models);
    git(
        &project.path(""),
        &["add", "-f", "agent-config/models.json"],
    );
    for arguments in [&[][..], &["--dry-run"], &["--cc"], &["models"]] {
        let run = project.run(arguments);
        refused(run, &thief, "agent-config/models.json");
    }
    let told = project.run(&["--dry-run"]).exits(3).stderr;
    assert_eq!(told.matches("git tracks").count(), 1, "{told}");
}

#[test]
fn no_file_that_git_tracks_is_sent_as_a_key() {
    let server = ModelServer::gemini(&["Nothing.", "Nothing."]);
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "not-for-the-server-0123456789\n").unwrap();
    let key = "agent-config/gemini-key.txt";
    let project = tracked().with(&server).without(key);
    symlink(&secret, project.path(key)).unwrap();
    git(&project.path(""), &["add", "-f", key]);
    refused(project.run(&[]), &server, key);
    // The same applies to the key of another model.
    refused(project.run(&["--model", "gpt-5"]), &server, key);
    // The remedy; and a link of the user's own is accepted.
    git(&project.path(""), &["rm", "-q", "--cached", key]);
    project.run(&[]).exits(0);
    fs::write(&secret, GEMINI_KEY).unwrap();
    project.run(&[]).exits(0);
}

#[test]
fn a_vendors_key_file_is_a_key_where_no_model_names_it() {
    let server = ModelServer::gemini(&[]);
    let (file, key) = ("agent-config/azure-key.txt", "0123azurekey456789abcdef");
    let project = tracked().with(&server).file(file, key);
    git(&project.path(""), &["add", "-f", file]);
    refused(project.run(&[]), &server, file);
    git(&project.path(""), &["rm", "-q", "--cached", file]);
    let query = format!("Use {key}.");
    let run = project.run(&["-m", &query]).exits(3);
    run.says(&["`--message`, line 1: an API key of this project"]);
    assert!(server.requests().is_empty());
}

#[test]
fn a_folder_that_git_tracks_as_a_link_brings_no_key() {
    let server = ModelServer::gemini(&[]);
    let project = tracked().with(&server);
    let elsewhere = project.path("elsewhere");
    fs::rename(project.path("agent-config"), &elsewhere).unwrap();
    symlink("elsewhere", project.path("agent-config")).unwrap();
    git(&project.path(""), &["add", "-f", "agent-config"]);
    let run = project.run(&["--dry-run"]).exits(3);
    run.says(&[
        "git tracks `agent-config`",
        "`git rm --cached agent-config`",
    ]);
}

#[test]
fn an_agent_takes_no_key_that_git_tracks() {
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    git(&agent.project.path(""), &["init", "-q"]);
    let key = "agent-config/openai-key.txt";
    git(&agent.project.path(""), &["add", "-f", key]);
    refused(agent.run(&["-p", "go"]), &server, key);
}

#[test]
fn a_server_that_is_not_the_vendors_is_reported() {
    let server = ModelServer::gemini(&["Nothing."]);
    let project = TestProject::new().with(&server);
    let shown = project.run(&["--dry-run"]).exits(0).stdout;
    assert!(shown.contains(&server.url()), "{shown}");
    let run = project.run(&[]).exits(0);
    assert_eq!(run.result()["base_urls"]["gemini-2.5-pro"], server.url());
    run.says(&[&format!("`gemini-2.5-pro` is asked at {}", server.url())]);
    let vendors = TestProject::new().run(&["--dry-run"]).exits(0).stdout;
    assert!(!vendors.contains("https://"), "{vendors}");
}

#[test]
fn a_reply_that_would_make_a_repository_is_rejected() {
    let block = |path: &str| format!("^^^{path}\nx\n^^^end\n");
    let paths = ["x/HEAD", "x/config", "x/objects/y", "x/refs/y"];
    let made: String = paths.iter().map(|path| block(path)).collect();
    let server = ModelServer::gemini(&[&made]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(5);
    run.says(&["`x/HEAD`", "git would take for a repository"]);
    assert!(!project.path("x").exists());
}

#[test]
fn no_file_of_an_agents_makes_a_repository_of_those_before() {
    let (agent, server) = AgentProject::scripted(&[
        write("x/refs/heads/y", "y\n"),
        write("x/HEAD", "ref: refs/heads/y\n"),
        done(),
        PASS.to_owned(),
    ]);
    agent.work("go").exits(0);
    let told = last_told(&server, 2);
    assert!(told.contains("git would take for a repository"), "{told}");
    assert!(agent.project.path("x/refs/heads/y").exists());
    assert!(!agent.project.path("x/HEAD").exists());
}

#[test]
fn an_audit_sees_what_has_changed_and_runs_nothing_that_the_repository_names() {
    let (agent, server) = AgentProject::scripted(&[
        done(),
        reply("COMMAND", "git diff"),
        reply("COMMAND", "git status -s"),
        PASS.to_owned(),
    ]);
    let root = agent.project.path("");
    git(&root, &["init", "-q"]);
    git(&root, &["add", "src"]);
    let trap = root.join("trapped");
    let touch = format!("touch '{}'", trap.display());
    for name in ["core.fsmonitor", "diff.external", "alias.diff"] {
        git(&root, &["config", name, &touch]);
    }
    fs::write(root.join("src/main.rs"), "changed\n").unwrap();
    let index = fs::read(root.join(".git/index")).unwrap();
    agent.work("go").exits(0);
    let (diff, status) = (last_told(&server, 2), last_told(&server, 3));
    assert!(diff.contains("+changed"), "{diff}");
    assert!(status.contains("AM src/main.rs"), "{status}");
    assert!(!trap.exists());
    assert_eq!(fs::read(root.join(".git/index")).unwrap(), index);
}

#[test]
fn a_rollup_is_not_written_through_a_link() {
    let project = tracked();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::remove_dir_all(project.path("agent-config")).unwrap();
    symlink(elsewhere.path(), project.path("agent-config")).unwrap();
    project
        .run(&["rollup"])
        .exits(6)
        .says(&["`agent-config` is a symbolic link", "hint:"]);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn nothing_outside_is_rolled_up_while_a_directory_and_a_link_are_swapped() {
    let outside = tempfile::tempdir().unwrap();
    let mut project = TestProject::new();
    for nth in 0..100 {
        let name = format!("swapped/f{nth}");
        fs::write(outside.path().join(format!("f{nth}")), "OUTSIDE\n").unwrap();
        project = project.file(&name, "inside\n");
    }
    let root = project.path("");
    git(&root, &["init", "-q"]);
    git(&root, &["add", "src", "swapped"]);
    let (directory, kept) = (root.join("swapped"), root.join("kept"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::rename(&directory, &kept).unwrap();
                symlink(outside.path(), &directory).unwrap();
                fs::remove_file(&directory).unwrap();
                fs::rename(&kept, &directory).unwrap();
            }
        });
        let rolled: Vec<String> = (0..40)
            .map(|_| {
                project.run(&["rollup"]).exits(0);
                project.read("agent-config/codeRollup.txt")
            })
            .collect();
        is_over.store(true, Ordering::Relaxed);
        for rollup in rolled {
            assert!(!rollup.contains("OUTSIDE"));
        }
    });
}

#[test]
fn a_tracked_link_sends_no_file() {
    for file in ["query.txt", "codeRollup.txt"] {
        let project = tracked();
        let (root, path) = (project.path(""), format!("agent-config/{file}"));
        let outside = tempfile::NamedTempFile::new().unwrap();
        fs::write(outside.path(), ROLLUP).unwrap();
        fs::remove_file(root.join(&path)).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join(&path)).unwrap();
        project.run(&["--dry-run"]).exits(0);
        git(&root, &["add", "-f", &path]);
        let run = project.run(&["--dry-run"]).exits(3);
        run.says(&[&path, "git rm --cached"]);
    }
}

#[test]
fn a_file_that_the_configuration_of_git_names_runs_code() {
    let names = ["hooks/pre-commit", "included", "later", "linked", "other/x"];
    let reply = names
        .map(|name| format!("^^^{name}\n# one\n^^^end\n"))
        .concat();
    let server = ModelServer::gemini(&[&reply]);
    let project = TestProject::new().with(&server);
    let root = project.path("");
    git(&root, &["init", "--quiet"]);
    fs::write(root.join("linked"), "").unwrap();
    symlink("linked", root.join("link")).unwrap();
    for (name, value) in [
        ("core.hooksPath", "hooks"),
        ("include.path", "../included"),
        ("includeIf.onbranch:x.path", "../later"),
        ("include.path", "../link"),
    ] {
        git(&root, &["config", "--add", name, value]);
    }
    let said = names.map(|name| format!("`{name}` runs code when git is used"));
    let run = project
        .run(&[])
        .exits(0)
        .says(&[&said[0], &said[1], &said[2], &said[3]]);
    let warnings = run.result()["warnings"].to_string();
    assert_eq!(warnings.matches("runs code").count(), 4, "{warnings}");
}

#[test]
fn nothing_is_written_where_git_has_files_that_are_not_checked_out() {
    let server = ModelServer::gemini(&[
        "^^^lib/deep/a.rs\nx\n^^^end\n^^^vendor/sub/b.rs\nx\n^^^end\n^^^src/new.rs\nx\n^^^end\n",
    ]);
    let project = tracked().with(&server).file("lib/deep/a.rs", "one\n");
    let root = project.path("");
    git(&root, &["add", "lib"]);
    git(&root, &["update-index", "--skip-worktree", "lib/deep/a.rs"]);
    let module = "160000,0123456789012345678901234567890123456789,vendor/sub";
    git(&root, &["update-index", "--add", "--cacheinfo", module]);
    fs::remove_dir_all(root.join("lib")).unwrap();
    project.run(&[]).exits(5).says(&[
        "`lib/deep/a.rs`: a sparse checkout leaves this path out",
        "`vendor/sub/b.rs`: the path lies in another git repository",
    ]);
    assert!(!root.join("lib").exists() && !root.join("src/new.rs").exists());
}

#[test]
fn nothing_is_written_below_a_directory_that_a_sparse_index_leaves_out() {
    let server = ModelServer::gemini(&["^^^lib/deep/new.rs\nx\n^^^end\n"]);
    let project = tracked().with(&server).file("lib/deep/a.rs", "one\n");
    let root = project.path("");
    let user = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    git(&root, &["add", "lib"]);
    git(&root, &[&user[..], &["commit", "-qm", "first"]].concat());
    git(&root, &["sparse-checkout", "set", "--sparse-index", "src"]);
    assert!(!root.join("lib").exists());
    let run = project.run(&["--allow-stale"]).exits(5);
    run.says(&["`lib/deep/new.rs`: a sparse checkout leaves this path out"]);
}
