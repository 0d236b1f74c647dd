//! Builds that change files which judge the next build.

use std::process::Command;

use crate::support::{ModelServer, TestProject, bubblewrap_works};

const NOTHING: &str = "Nothing to do.";

fn project(server: &ModelServer) -> TestProject {
    TestProject::new()
        .with(server)
        .program("codeRollup.sh", "#!/bin/sh\n")
        .file("sub/.gitignore", "*.o\n")
        .file("LLMInstructions.md", "Be kind.\n")
}

#[test]
fn a_build_that_rewrites_itself_does_not_make_the_next_one_pass() {
    let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n", NOTHING]);
    let build = "echo 'exit 0' > new; cat new >> build.sh; sed -i 2d build.sh; exit 1";
    let project = project(&server).build(build);
    let run = project.run(&["--sandbox", "off"]).exits(1).says(&[
        "error: the build changed files that no build may change: `build.sh` was changed\n",
        "`git checkout -- build.sh` restores what git tracks",
    ]);
    assert_eq!(run.result()["exit"]["name"], "gate-changed");
    assert_eq!(run.result()["tree"], "changed");
    assert_eq!(server.requests().len(), 1, "there was no second build");
    let diff = run.logged("gate.diff");
    let expected = format!("@@ -1,2 +1,2 @@\n #!/bin/sh\n-{build}\n+exit 0\n");
    assert!(
        diff.starts_with("diff --git a/build.sh b/build.sh\n"),
        "{diff}"
    );
    assert!(diff.ends_with(&expected), "{diff}");
    assert_eq!(project.read("a"), "x\n");
}

#[test]
fn any_change_to_a_protected_file_counts_although_the_build_passes() {
    for (build, expected, logged) in [
        (
            "echo x >> codeRollup.sh",
            "`codeRollup.sh` was changed",
            "+x\n",
        ),
        (
            "chmod -x codeRollup.sh",
            "`codeRollup.sh` was changed",
            "new mode 100644",
        ),
        ("rm build.sh", "`build.sh` was removed", "deleted file mode"),
        (
            "rm LLMInstructions.md",
            "`LLMInstructions.md` was removed",
            "deleted file mode",
        ),
        (
            "echo x > UserSpecification.md",
            "`UserSpecification.md` was created",
            "new file mode",
        ),
        (
            "cp build.sh b; ln -sf b build.sh",
            "`build.sh` was replaced by something else",
            "and is a link to `b`",
        ),
        (
            "rm build.sh; mkfifo build.sh",
            "`build.sh` was replaced by something else",
            "cannot be read as a file",
        ),
        (
            "truncate -s 1T codeRollup.sh",
            "`codeRollup.sh` was changed",
            "and is a file of 1099511627776 bytes",
        ),
        (
            "echo >> sub/.gitignore; mv sub/.gitignore sub/.gitignore",
            "`sub/.gitignore` was changed",
            "+\n",
        ),
    ] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = project(&server).build(&format!("{build}; exit 0"));
        let run = project
            .run(&["--sandbox", "off"])
            .exits(1)
            .says(&[expected]);
        assert_eq!(run.result()["exit"]["name"], "gate-changed", "{build}");
        assert_eq!(run.result()["attempts"][0]["build"]["code"], 0, "{build}");
        let diff = run.logged("gate.diff");
        assert!(diff.contains(logged), "{build}: {diff}");
    }
}

#[test]
fn protected_file_that_was_large_before_is_not_read() {
    let server = ModelServer::gemini(&[NOTHING; 2]);
    let project = project(&server);
    let large = std::fs::File::create(project.path("UserSpecification.md")).unwrap();
    large.set_len(1 << 40).unwrap();
    project.run(&["--sandbox", "off"]).exits(0);
    project
        .build("printf x >> UserSpecification.md")
        .run(&["--sandbox", "off"])
        .exits(1)
        .says(&["`UserSpecification.md` was changed"]);
}

#[test]
fn other_effects_of_builds_are_ignored() {
    let server = ModelServer::gemini(&[NOTHING]);
    let build = "cp build.sh b; cat b > build.sh; touch codeRollup.sh Cargo.lock\n\
        mkdir .cache target/x -p; echo '*' | tee .cache/.gitignore target/x/.gitignore > sub/built.o";
    project(&server)
        .file("target/.gitignore", "x\n")
        .build(&format!("{build}\nrm target/.gitignore"))
        .run(&["--sandbox", "off"])
        .exits(0);
}

#[test]
fn no_sandbox_makes_a_difference() {
    if !bubblewrap_works() {
        return;
    }
    for mode in ["auto", "strict", "off"] {
        let server = ModelServer::gemini(&[NOTHING]);
        let run = project(&server)
            .build("echo x > UserSpecification.md")
            .run(&["--sandbox", mode])
            .exits(1);
        assert_eq!(run.result()["exit"]["name"], "gate-changed", "{mode}");
    }
}

#[test]
fn the_edits_are_reverted_where_that_is_wanted_and_the_gate_is_not() {
    let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n"]);
    let project = project(&server).build("echo >> codeRollup.sh");
    let run = project
        .run(&["--sandbox", "off", "--on-failure", "revert"])
        .exits(1);
    assert_eq!(run.result()["tree"], "put-back");
    assert!(!project.path("a").exists());
    assert_eq!(project.read("codeRollup.sh"), "#!/bin/sh\n\n");
}

#[test]
fn a_build_that_has_git_take_the_keys_is_reported_as_such() {
    let told = "git no longer ignores the keys in `agent-config`";
    for (ignored, build) in [
        ("/agent-config\n", "echo '!/agent-config' >> .gitignore"),
        ("/agent-config\n", "rm .gitignore"),
        // No existing file is changed.
        ("/agent-config/*\n", "echo '!*' > agent-config/.gitignore"),
    ] {
        let server = ModelServer::gemini(&[NOTHING]);
        project(&server)
            .file(".gitignore", ignored)
            .build(build)
            .run(&["--sandbox", "off"])
            .exits(1)
            .says(&[told]);
    }
}

/// Creates a repository with a program in its configuration, as `git init` would.
const INIT: &str =
    "init() { mkdir -p $1/objects $1/refs && echo 'ref: refs/heads/main' > $1/HEAD &&
    printf '[core]\\n\\tfsmonitor = ./evil\\n' > $1/config; }\n";

#[test]
fn a_build_that_makes_a_repository_ends_the_run_whatever_its_kind() {
    for (build, told) in [
        ("init .git", "`.git` is a git repository now"),
        ("init sub/.git", "`sub/.git` is a git repository now"),
        ("init .", "`.` is a git repository now"),
        ("init sub", "`sub` is a git repository now"),
        ("init a/b/c", "`a/b/c` is a git repository now"),
        (
            "init target/x; echo gitdir: ../target/x > sub/.git",
            "`sub/.git` is a git repository now",
        ),
        (
            "init target/x; ln -s target/x .git",
            "`.git` is a git repository now",
        ),
        (
            "init sub/.git; echo '*' > sub/.gitignore",
            "`sub/.git` is a git repository now",
        ),
        (
            "x=$(printf '\\377'); mkdir $x; init $x/.git",
            "/.git` is a git repository now",
        ),
    ] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = project(&server).build(&format!("{INIT}{build}"));
        let run = project.run(&["--sandbox", "off"]).exits(1).says(&[
            told,
            "until then, git may run programs of the build's choice there",
        ]);
        assert_eq!(run.result()["exit"]["name"], "gate-changed", "{build}");
        assert!(run.logged("gate.diff").contains(told), "{build}");
    }
}

#[test]
fn a_build_that_replaces_a_repository_ends_the_run() {
    for (build, told) in [
        ("rm .git/HEAD", "`.git` is no git repository any more"),
        (
            "echo evil > .git/HEAD",
            "`.git` is no git repository any more",
        ),
        ("rm -r .git", "`.git` is no git repository any more"),
        (
            "mv .git a; init .git",
            "`.git` is another git repository now",
        ),
        (
            "init target/x; echo gitdir: ../target/x > linked/.git",
            "`linked/.git` is another git repository now",
        ),
        (
            "mv bare a; init bare",
            "`bare` is another git repository now",
        ),
    ] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = project(&server)
            .repository(".git")
            .repository("bare")
            .file("linked/.git", "gitdir: ../.git\n")
            .build(&format!("{INIT}{build}"));
        let run = project.run(&["--sandbox", "off"]).exits(1).says(&[told]);
        assert_eq!(run.result()["exit"]["name"], "gate-changed", "{build}");
    }
}

#[test]
fn a_repository_around_the_project_counts_as_well() {
    for (build, told) in [
        ("init ..", "` is a git repository now"),
        ("init ../.git", "/.git` is a git repository now"),
    ] {
        let parent = tempfile::tempdir().unwrap();
        let server = ModelServer::gemini(&[NOTHING]);
        let project = TestProject::within(parent.path(), "part").with(&server);
        let project = project.build(&format!("{INIT}{build}"));
        let run = project.run(&["--sandbox", "off"]).exits(1).says(&[told]);
        assert_eq!(run.result()["exit"]["name"], "gate-changed", "{build}");
    }
}

#[test]
fn repositories_made_by_tests_in_ignored_places_are_accepted() {
    let server = ModelServer::gemini(&[NOTHING]);
    let build = format!("{INIT}init target/one/.git; init target/two; init node_modules/x");
    project(&server)
        .file(
            ".gitignore",
            "/agent-config\n/logs\n/target\nnode_modules\n",
        )
        .repository(".git")
        // Not a repository, as far as git is concerned.
        .file("other/.git/config", "")
        .build(&format!(
            "{build}\nmv other/.git other/gone; echo 'ref: refs/heads/x' > .git/HEAD; touch .git/index"
        ))
        .run(&["--sandbox", "off"])
        .exits(0);
}

#[test]
fn a_repository_is_noticed_in_every_sandbox() {
    if !bubblewrap_works() {
        return;
    }
    for mode in ["auto", "strict"] {
        let server = ModelServer::gemini(&[NOTHING]);
        let run = project(&server)
            .build(&format!("{INIT}init sub"))
            .run(&["--sandbox", mode])
            .exits(1)
            .says(&["`sub` is a git repository now"]);
        assert_eq!(run.result()["exit"]["name"], "gate-changed", "{mode}");
    }
    let server = ModelServer::gemini(&[NOTHING]);
    project(&server)
        .build(&format!("{INIT}init .git"))
        .run(&[])
        .exits(1)
        .says(&["`.git` is a git repository now"]);
}

#[test]
fn work_tree_files_named_by_git_config_are_compared() {
    let config = "[include]\n\tpath = ../.gitconfig\n[core]\n\thooksPath = hooks\n";
    for (build, told) in [
        ("echo x > .gitconfig", "`.gitconfig` was created"),
        (
            "mkdir hooks/x; echo x > hooks/pre-push",
            "`hooks/pre-push` was created",
        ),
        ("echo x >> hooks/mine", "`hooks/mine` was changed"),
        ("rm -r hooks", "`hooks/mine` was removed"),
        ("mv hooks a; ln -s a hooks", "`hooks` was created"),
    ] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = project(&server)
            .repository(".git")
            .file(".git/config", config)
            .file("hooks/mine", "")
            .build(build);
        let run = project.run(&["--sandbox", "off"]).exits(1).says(&[told]);
        assert_eq!(run.result()["exit"]["name"], "gate-changed", "{build}");
    }
}

#[test]
fn a_reply_may_change_hooks_that_git_tracks() {
    let server = ModelServer::gemini(&["^^^hooks/mine\nx\n^^^end\n^^^hooks/other\nx\n^^^end\n"]);
    project(&server)
        .repository(".git")
        .file(".git/config", "[core]\n\thooksPath = hooks\n")
        .file("hooks/mine", "")
        .build("mkdir hooks/directory")
        .run(&["--sandbox", "off"])
        .exits(0);
}

/// Checks that a build with this script ends the run because it changes the gate.
fn changes_the_gate(project: TestProject, build: &str, told: &str) {
    let server = ModelServer::gemini(&[NOTHING]);
    let project = project
        .with(&server)
        .build(&format!("{INIT}{build}\nexit 0"));
    let run = project.run(&["--sandbox", "off"]).exits(1).says(&[told]);
    assert_eq!(run.result()["exit"]["name"], "gate-changed", "{build}");
}

#[test]
fn git_settings_and_hooks_are_compared_in_every_repository() {
    for (build, told) in [
        (
            "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit",
            "`.git/hooks/pre-commit` was created",
        ),
        (
            "echo evil >> .git/hooks/pre-commit.sample",
            "`.git/hooks/pre-commit.sample` was changed",
        ),
        (
            "echo '[core] fsmonitor = ./evil' >> .git/config",
            "`.git/config` was ",
        ),
        ("echo x > sub/.git/config", "`sub/.git/config` was changed"),
        (
            "echo x > .git/modules/lib/config",
            "`.git/modules/lib/config` was created",
        ),
        (
            "echo .. > .git/worktrees/w/commondir",
            "`.git/worktrees/w/commondir` was changed",
        ),
        (
            "mkdir .git/rebase-merge; echo 'exec evil' > .git/rebase-merge/git-rebase-todo",
            "`.git/rebase-merge/git-rebase-todo` was created",
        ),
        ("echo evil > sub/shared", "`sub/shared` was created"),
        ("echo evil > tool", "`tool` was changed"),
    ] {
        let project = TestProject::new()
            .repository(".git")
            .repository("sub/.git")
            .repository("hidden/.git")
            .file(
                "hidden/.git/config",
                "[include]\n\tpath = ../../sub/shared\n[core]\n\thooksPath = ../hooks\n",
            )
            .file("hooks/sample", "")
            .file(".git/hooks/pre-commit.sample", "")
            .file("tool", "")
            .file(".git/modules/lib/HEAD", "ref: refs/heads/main\n")
            .file(".git/worktrees/w/commondir", "../..\n");
        std::os::unix::fs::symlink("../tool", project.path("hooks/pre-commit")).unwrap();
        changes_the_gate(project, build, told);
    }
}

#[test]
fn a_link_to_a_repository_in_an_ignored_directory_counts() {
    let project = TestProject::new().file("src/x", "x\n");
    let build = "init target/r/.git; mv src/* target/r/; rmdir src; ln -s target/r src";
    changes_the_gate(project, build, "`src/.git` is a git repository now");
}

#[test]
fn a_repository_among_tracked_files_counts_though_they_are_ignored() {
    let project = TestProject::new()
        .file(".gitignore", "/agent-config\n/logs\n/target\n/lib\n")
        .file("lib/x", "x\n");
    let git = |arguments: &[&str]| {
        let status = std::process::Command::new("git")
            .args(arguments)
            .current_dir(project.path(""))
            .status();
        assert!(status.unwrap().success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-f", "lib/x"]);
    changes_the_gate(project, "init lib", "`lib` is a git repository now");
}

#[test]
fn a_directory_that_can_no_longer_be_listed_ends_the_run() {
    let server = ModelServer::gemini(&[NOTHING]);
    let project = TestProject::new().file("src/x", "x\n").with(&server);
    let project = project.build("mkdir new; chmod 311 src new; exit 0");
    let mut command = project.command(&["--sandbox", "off"]);
    if rustix::process::geteuid().is_root() {
        command = without_roots_rights(&command);
    }
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    let told = "`src` cannot be listed, so repositories in it are not known";
    assert!(said.contains(told), "{said}");
}

/// The same command without root's right to ignore permissions.
fn without_roots_rights(command: &Command) -> Command {
    let mut without = Command::new("setpriv");
    without
        .arg("--bounding-set=-dac_override,-dac_read_search")
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    without
}
