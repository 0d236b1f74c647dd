//! The sandbox's protection against a hostile build, apart from the project's own keys. If bubblewrap does not work,
//! the tests say so and pass.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::agent::{AgentProject, PASS, done, last_told, reply};
use crate::support::{
    BUBBLEWRAP, Finished, GEMINI_KEY, ModelServer, TestProject, bubblewrap_works, skipped,
};

const NOTHING: &str = "Nothing to do.";

/// Runs a build in a project, and returns its output.
fn output(project: TestProject, build: &str, mode: &str) -> String {
    let server = ModelServer::gemini(&[NOTHING]);
    let project = project.with(&server).build(build);
    printed(&project.run(&["--sandbox", mode]).exits(0))
}

/// A directory outside of those that a strict sandbox replaces, wherever the sources are.
pub fn visible_directory() -> TempDir {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let places = [
        OsString::from(env!("CARGO_TARGET_TMPDIR")),
        home,
        "/".into(),
    ];
    let is_visible = |place: &&OsString| {
        let private = ["/tmp", "/var/tmp", "/dev/shm", "/run"];
        let place = Path::new(place);
        place.is_absolute() && !private.iter().any(|directory| place.starts_with(directory))
    };
    let mut visible = places.iter().filter(is_visible);
    visible
        .find_map(|place| tempfile::tempdir_in(place).ok())
        .unwrap()
}

fn printed(run: &Finished) -> String {
    let log = run.logged("initial-build.txt");
    log.split_once('\n').unwrap().1.to_owned()
}

/// Tries to change each of its arguments in many ways, and names those for which it succeeded.
const VANDAL: &str = r#"
vandalize() {
    for file; do
        (echo evil >> "$file") 2>/dev/null && echo "appended: $file"
        cp "$file" copy && mv -f copy "$file" 2>/dev/null && echo "replaced: $file"
        mv "$file" gone 2>/dev/null && echo "moved: $file"
        rm -f "$file" 2>/dev/null && echo "removed: $file"
        chmod 777 "$file" 2>/dev/null && echo "opened: $file"
        unshare -Urm sh -c 'umount "$0" && echo evil >> "$0"' "$file" 2>/dev/null && echo "unmounted: $file"
    done
}
"#;

#[test]
fn a_build_cannot_change_the_gate() {
    if !bubblewrap_works() {
        return;
    }
    let files = [
        ".gitignore",
        "build.sh",
        "codeRollup.sh",
        "LLMInstructions.md",
        "UserSpecification.md",
    ];
    let build = format!("{VANDAL}vandalize {}; echo over", files.join(" "));
    for mode in ["auto", "strict"] {
        let project = TestProject::new()
            .file("codeRollup.sh", "as it was")
            .file("LLMInstructions.md", "as it was")
            .file("UserSpecification.md", "as it was");
        assert_eq!(output(project, &build, mode), "over\n", "{mode}");
    }
    // Without a sandbox, the attempts succeed.
    let server = ModelServer::gemini(&[NOTHING]);
    let build = format!("{VANDAL}vandalize LLMInstructions.md; true");
    let project = TestProject::new().with(&server).build(&build);
    let project = project.file("LLMInstructions.md", "as it was");
    let done = printed(&project.run(&["--sandbox", "off"]).exits(1));
    assert_eq!(done.lines().count(), 4, "{done}");
}

#[test]
fn a_build_cannot_change_what_git_runs() {
    if !bubblewrap_works() {
        return;
    }
    let build = format!(
        "{VANDAL}vandalize $(cat files)
        mv .git elsewhere 2>/dev/null && echo 'moved: .git'
        touch $(dirname $(head -n 1 files))/../.git/ours 2>/dev/null
        (echo evil > $(grep hooks files | head -n 1 | xargs dirname)/post-commit) 2>/dev/null && echo hook
        echo over"
    );
    let repository = |name: &str| {
        let file = |part: &str| format!("{name}/{part}");
        TestProject::new()
            .file(&file("HEAD"), "ref: refs/heads/main\n")
            .file(&file("config"), "[core]\n")
            .file(&file("hooks/pre-commit"), "")
    };
    for mode in ["auto", "strict"] {
        let plain = repository(".git").file("files", ".git/config .git/hooks/pre-commit");
        assert_eq!(output(plain, &build, mode), "over\n", "{mode}");
        let worktree = repository("main")
            .file(".git", "gitdir: main/worktrees/one\n")
            .file("main/worktrees/one/HEAD", "ref: refs/heads/main\n")
            .file("main/worktrees/one/commondir", "../..\n")
            .file(
                "files",
                ".git main/config main/hooks/pre-commit main/worktrees/one/commondir",
            );
        assert_eq!(output(worktree, &build, mode), "over\n", "{mode}, worktree");
    }
    let server = ModelServer::gemini(&[NOTHING; 4]);
    let project = repository(".git")
        .with(&server)
        .build("echo ../evil > .git/commondir");
    let run = project.run(&[]).exits(6);
    run.says(&["/.git/commondir` was created, moved or replaced"]);
}

#[test]
fn a_build_cannot_change_what_git_runs_in_the_projects_other_repositories() {
    if !bubblewrap_works() {
        return;
    }
    let build = format!(
        "{VANDAL}vandalize config sub/.git/config sub/.git/hooks/sample bare/config bare/hooks/sample
        echo over"
    );
    for mode in ["auto", "strict"] {
        // The root is a bare repository itself.
        let project = ["sub/.git", "bare", "."].into_iter();
        let project = project.fold(TestProject::new(), |project, path| {
            let hook = format!("{path}/hooks/sample");
            project.repository(path).file(&hook, "")
        });
        assert_eq!(output(project, &build, mode), "over\n", "{mode}");
    }
}

#[test]
fn a_build_cannot_change_what_gits_configuration_names() {
    if !bubblewrap_works() {
        return;
    }
    let build = format!(
        "{VANDAL}vandalize ../.gitconfig ../.husky/pre-commit settings hooks/commit-msg
        (echo x > hooks/new) 2>/dev/null && echo new; echo over"
    );
    let config = "[include]\n\tpath = ../.gitconfig\n[core]\n\thooksPath = .husky\n";
    let included = "[includeIf \"gitdir:/nowhere\"]\n\tpath = part/settings\n";
    for mode in ["auto", "strict"] {
        let parent = visible_directory();
        for (name, content) in [
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", config),
            (".gitconfig", included),
            (".husky/pre-commit", ""),
        ] {
            let path = parent.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let project = TestProject::within(parent.path(), "part")
            .file("settings", "[core]\n\thooksPath = part/hooks\n")
            .file("hooks/commit-msg", "");
        assert_eq!(output(project, &build, mode), "over\n", "{mode}");
    }
}

#[test]
fn build_in_a_subdirectory_cannot_write_what_git_runs() {
    if !bubblewrap_works() {
        return;
    }
    for mode in ["auto", "strict"] {
        let parent = visible_directory();
        for name in ["HEAD", "config", "hooks/pre-commit"] {
            let path = parent.path().join(".git").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let build = format!("{VANDAL}vandalize ../.git/config ../.git/hooks/pre-commit; echo over");
        let project = TestProject::within(parent.path(), "part");
        assert_eq!(output(project, &build, mode), "over\n", "{mode}");
    }
}

#[test]
fn in_a_lenient_sandbox_git_commits() {
    if !bubblewrap_works() {
        return;
    }
    let project = TestProject::new();
    let made = project.path("").join(".git");
    let git = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(project.path(""))
        .status();
    if !git.is_ok_and(|status| status.success()) {
        return skipped("git is not installed");
    }
    let build =
        "git add src && git -c user.name=A -c user.email=a@example.org commit --quiet -m One &&
        git switch --quiet -c other && git stash list && git gc --quiet && git log --format=%s &&
        ! git config user.name Evil 2>/dev/null";
    assert_eq!(output(project, build, "auto"), "One\n");
    assert!(!made.exists(), "the project is removed with the test");
}

#[test]
fn no_summary_takes_a_protected_file_by_a_name_that_it_is_mounted_under() {
    if !bubblewrap_works() {
        return;
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let (second, keys) = (
        elsewhere.path().join("second"),
        elsewhere.path().join("keys"),
    );
    let server = ModelServer::gemini(&[NOTHING]);
    let project = TestProject::new().with(&server);
    for directory in [&second, &keys] {
        std::fs::create_dir(directory).unwrap();
    }
    let before = project.tree();
    for (summary, code) in [
        (second.join("build.sh"), 2),
        (second.join("agent-config/gemini-key.txt"), 2),
        (keys.join("gemini-key.txt"), 2),
        (second.join("summary.md"), 0),
    ] {
        let plain = project.command(&["--summary-file"]);
        let mut command = Command::new(BUBBLEWRAP[0]);
        command.args(&BUBBLEWRAP[1..]);
        for (own, other) in [("", &second), ("agent-config", &keys)] {
            command.arg("--bind").args([&project.path(own), other]);
        }
        command.arg("--chdir").arg(project.path("")).arg("--");
        command.arg(plain.get_program()).args(plain.get_args());
        command.arg(&summary).env_clear();
        let variables = plain.get_envs();
        command.envs(variables.filter_map(|(name, value)| Some((name, value?))));
        let run = Finished::new(&project, &["--summary-file"], command.output().unwrap());
        let run = run.exits(code);
        if code != 0 {
            run.says(&["name another file; nothing was done"]);
            assert_eq!(project.tree(), before, "{}", summary.display());
        }
    }
    assert!(project.path("summary.md").exists());
}

#[test]
fn the_keys_are_hidden_by_every_name_that_the_project_is_mounted_under() {
    if !bubblewrap_works() {
        return;
    }
    let build = format!(
        "{VANDAL}for key in agent-config second/agent-config keys; do
            cat $key/gemini-key.txt 2>/dev/null | wc -c; (echo x > $key/made) 2>/dev/null
        done
        cat second/name; cat key 2>/dev/null | wc -c
        vandalize second/.gitignore second/.git/config; true"
    );
    for mode in ["auto", "strict"] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = TestProject::new()
            .with(&server)
            .file("name", "it is mounted\n")
            .file("key", "")
            .file("keys/empty", "")
            .file("second/empty", "")
            .file(".git/config", "[core]\n")
            .build(&build);
        let (root, config) = (project.path(""), project.path("agent-config"));
        let plain = project.command(&["--sandbox", mode]);
        let mut command = Command::new(BUBBLEWRAP[0]);
        command
            .args(&BUBBLEWRAP[1..])
            .arg("--bind")
            .args([&root, &project.path("second")]);
        command.arg("--bind").args([&config, &project.path("keys")]);
        command
            .arg("--bind")
            .args([&config.join("gemini-key.txt"), &project.path("key")]);
        command
            .arg("--chdir")
            .arg(&root)
            .arg("--")
            .arg(plain.get_program());
        command.args(plain.get_args()).env_clear();
        command.envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        let run = Finished::new(&project, &["--sandbox", mode], command.output().unwrap());
        assert_eq!(
            printed(&run.exits(0)),
            "0\n0\n0\nit is mounted\n0\n",
            "{mode}"
        );
        assert_eq!(
            project.read("agent-config/gemini-key.txt").trim(),
            GEMINI_KEY
        );
    }
}

#[test]
fn the_keys_of_the_agent_and_of_other_projects_are_hidden() {
    if !bubblewrap_works() {
        return;
    }
    let build = "for file in $HOME/.dev-agent/config.json $HOME/linked.json $HOME/.agent/auth.json ../agent-config/key \
        ../two/agent-config/key part/agent-config/key; do cat $file 2>/dev/null | wc -c; done; cat ../two/other part/other
        cat $HOME/other; ! mv ../two ../three 2>/dev/null";
    for mode in ["auto", "strict"] {
        let parent = visible_directory();
        let write = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "secret\n").unwrap();
        };
        for file in [
            "agent-config/key",
            "two/agent-config/key",
            "one/part/agent-config/key",
        ] {
            write(file);
        }
        for file in [
            "two/other",
            "one/part/other",
            "home/other",
            "home/linked.json",
            "home/.agent/auth.json",
        ] {
            write(file);
        }
        fs::create_dir(parent.path().join("home/.dev-agent")).unwrap();
        let link = parent.path().join("home/.dev-agent/config.json");
        symlink("../linked.json", link).unwrap();
        // An earlier build may have made these.
        symlink(parent.path().join("two"), parent.path().join("planted")).unwrap();
        symlink(parent.path().join("one"), parent.path().join("itself")).unwrap();
        let project = TestProject::within(parent.path(), "one")
            .variable("HOME", parent.path().join("home").to_str().unwrap());
        let expected = "0\n0\n0\n0\n0\n0\nsecret\nsecret\nsecret\n";
        assert_eq!(output(project, build, mode), expected, "{mode}");
        assert!(parent.path().join("two/agent-config/key").exists());
    }
}

#[test]
fn a_build_that_carries_off_the_keys_of_a_project_within_ends_the_run() {
    if !bubblewrap_works() {
        return;
    }
    let server = ModelServer::gemini(&[NOTHING; 2]);
    let project = TestProject::new()
        .with(&server)
        .file("a/b/agent-config/key", "secret")
        .build("mv a c; exit 1");
    project
        .run(&[])
        .exits(6)
        .says(&["a/b/agent-config` was created, moved or replaced"]);
    assert_eq!(server.requests().len(), 1, "there was no second build");
}

#[test]
fn in_a_strict_sandbox_credentials_in_the_home_directory_are_hidden() {
    if !bubblewrap_works() {
        return;
    }
    let files = [
        ".ssh/id_ed25519",
        ".netrc",
        ".aws/credentials",
        ".npmrc",
        ".gnupg/secring",
        ".config/gh/hosts.yml",
        ".docker/config.json",
        ".kube/config",
        ".cargo/credentials.toml",
        ".pypirc",
        ".git-credentials",
        ".azure/token",
        ".config/gcloud/token",
        ".pgpass",
        ".my.cnf",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
        ".terraform.d/credentials.tfrc.json",
        ".composer/auth.json",
        ".config/hub",
        ".config/rclone/rclone.conf",
        ".cache/huggingface/token",
        ".config/sops/age/keys.txt",
        ".nuget/NuGet/NuGet.Config",
        ".databrickscfg",
        ".s3cfg",
        ".bundle/config",
        ".yarnrc",
        ".yarnrc.yml",
        ".local/share/opencode/auth.json",
    ];
    let home = visible_directory();
    for file in files.iter().chain(&[".cargo/config.toml"]) {
        let path = home.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "secret\n").unwrap();
    }
    let build = format!(
        "cd $HOME; for file in {}; do cat $file 2>/dev/null; done; cat .cargo/config.toml",
        files.join(" ")
    );
    let variable = home.path().to_str().unwrap();
    let project = TestProject::within(home.path(), "project").variable("HOME", variable);
    assert_eq!(output(project, &build, "strict"), "secret\n");
    let project = TestProject::within(home.path(), "another").variable("HOME", variable);
    let shown = output(project, &build, "auto");
    assert_eq!(shown.lines().count(), files.len() + 1, "{shown}");
}

/// Tries operations that a strict sandbox denies or must allow; prints those that work.
const CALLS: &str = r#"
import ctypes, os, platform, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
numbers = {"x86_64": (248, 250, 425, 321, 298, 323), "aarch64": (217, 219, 425, 280, 241, 282)}
names = ("add_key", "keyctl", "io_uring_setup", "bpf", "perf_event_open", "userfaultfd")
def attempt(name, action):
    try:
        action()
        print(name)
    except PermissionError:
        pass
for name, number in zip(names, numbers[platform.machine()]):
    libc.syscall(number, 0, 0, 0, 0, 0)
    if ctypes.get_errno() != 1:
        print(name)
attempt("file socket", lambda: socket.socket(socket.AF_UNIX))
attempt("other family", lambda: socket.socket(socket.AF_VSOCK))
attempt("datagram pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt("pair", lambda: socket.socketpair())
attempt("loopback", lambda: socket.create_server(("127.0.0.1", 0)))
attempt("routes", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
"#;

#[test]
fn in_a_strict_sandbox_there_are_no_sockets_in_files_and_no_keyrings() {
    if !bubblewrap_works() {
        return;
    }
    if !Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|run| run.status.success())
    {
        return skipped("python3 is not installed");
    }
    let run = |mode| {
        output(
            TestProject::new().file("calls.py", CALLS),
            "python3 calls.py",
            mode,
        )
    };
    assert_eq!(run("strict"), "pair\nloopback\nroutes\n");
    assert!(run("auto").contains("file socket\n"));
}

#[test]
fn an_agents_commands_may_change_the_gate_and_nothing_that_git_runs() {
    if !bubblewrap_works() {
        return;
    }
    let command = "for file in .gitignore build.sh .git/config .git/hooks/sample; do
        (echo >> $file) 2>/dev/null && echo \"changed: $file\"
        done; ls -A $DEV_AGENT_HOME | wc -l";
    for mode in ["auto", "strict"] {
        let (agent, server) =
            AgentProject::scripted(&[reply("COMMAND", command), done(), PASS.to_owned()]);
        let agent = agent
            .with_file(".git/config", "[core]\n")
            .with_file(".git/hooks/sample", "");
        agent.run(&["-p", "go", "--sandbox", mode]).exits(0);
        let told = last_told(&server, 1);
        let expected = "changed: .gitignore\nchanged: build.sh\n0\n";
        assert!(told.contains(expected), "{mode}: {told}");
    }
}

#[test]
fn what_an_agents_last_command_has_planted_ends_the_run() {
    if !bubblewrap_works() {
        return;
    }
    let in_background =
        "trap 'echo ../x > .git/commondir; exit' TERM; echo; while :; do sleep 0.1; done";
    for (command, path) in [
        ("echo ../x > .git/commondir", ".git/commondir"),
        ("mv .husky .h; cp -r .h .husky", ".husky"),
        ("rm link; mkdir link", "link"),
        (in_background, ".git/commondir"),
    ] {
        for mode in ["auto", "strict"] {
            let (agent, _server) =
                AgentProject::scripted(&[reply("COMMAND", command), done(), PASS.to_owned()]);
            let agent = agent
                .with_file(".git/HEAD", "ref: refs/heads/main\n")
                .with_file(
                    ".git/config",
                    "[core]\n\thooksPath = link\n[include]\n\tpath = ../.husky/git\n",
                )
                .with_file(".husky/git", "")
                .with_file(".husky/_/pre-commit", "");
            symlink(".husky/_", agent.project.path("link")).unwrap();
            let settings = "{\"commandTimeout\": 1}";
            fs::write(agent.home("config.json"), settings).unwrap();
            let ran = agent.run(&["-p", "go", "--sandbox", mode]);
            if mode == "strict" && path.starts_with(".git") {
                // All of it is read-only.
                ran.exits(0);
                continue;
            }
            ran.exits(6).says(&[&format!(
                "{path}` was created, moved or replaced during the run"
            )]);
        }
    }
}

#[test]
fn a_project_may_be_renamed_within_by_an_agents_command() {
    if !bubblewrap_works() {
        return;
    }
    let command = "mv libs/old.c src/new.c && ln src/new.c libs/again.c && mv docs d";
    let (agent, _server) =
        AgentProject::scripted(&[reply("COMMAND", command), done(), PASS.to_owned()]);
    let agent = agent
        .with_file(".git/config", "[core]\n\thooksPath = libs/hooks\n")
        .with_file("libs/hooks/pre-commit", "")
        .with_file("libs/old.c", "x")
        .with_file("src/a.c", "")
        .with_file("docs/page", "");
    agent.run(&["-p", "go"]).exits(0);
    assert!(agent.project.path("src/new.c").exists() && agent.project.path("d/page").exists());
}
