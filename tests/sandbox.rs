//! The sandbox of builds. If bubblewrap does not work, the tests that need it say so and pass.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::process::Command;

use crate::support::agent::{AgentProject, PASS, done};
use crate::support::{
    Finished, GEMINI_KEY, ModelServer, TestProject, bubblewrap_works, write_program,
};

const NOTHING: &str = "Nothing to do.";

/// Returns a build's output.
fn output(run: &Finished) -> String {
    let log = run.logged("initial-build.txt");
    log.split_once('\n').unwrap().1.to_owned()
}

/// A build that tries to read the key in many ways, and prints how many bytes of it were found.
const THIEF: &str = r#"
got() { echo "$1: $(cat "$2" 2>/dev/null | wc -c)"; }
key=agent-config/gemini-key.txt
got file $key
ln $key hard 2>/dev/null; got hard-link hard
ln -s $key soft; got symlink soft
mv agent-config moved 2>/dev/null; got rename moved/gemini-key.txt
root=$PWD; mv "$root" "$root-moved" 2>/dev/null; got root "$root-moved/$key"
mv "$root-moved" "$root" 2>/dev/null
umount agent-config 2>/dev/null; got unmounted $key
got the-root-of-1 /proc/1/root"$PWD"/$key
got the-parent /proc/$PPID/cwd/$key
echo "descriptors: $(readlink /proc/$PPID/fd/* 2>/dev/null | wc -l)"
(echo "exited 0" > /proc/$PPID/fd/0) 2>/dev/null
(echo 1 > /proc/sys/kernel/panic) 2>/dev/null && echo "kernel settings"
echo "terminal: $( (: > /dev/tty) 2>/dev/null && echo some || echo none)"
echo "environment: $(cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -c API_KEY)"
echo "processes: $(ls -d /proc/[0-9]* | wc -l | awk '{print ($1 < 10) ? "few" : "many"}')"
"#;

const NOTHING_FOUND: &str = "file: 0\nhard-link: 0\nsymlink: 0\nrename: 0\nroot: 0\nunmounted: 0\n\
    the-root-of-1: 0\nthe-parent: 0\ndescriptors: 0\nterminal: none\nenvironment: 0\nprocesses: few\n";

#[test]
fn a_hostile_build_does_not_get_at_the_key() {
    if !bubblewrap_works() {
        return;
    }
    for mode in ["auto", "strict"] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = TestProject::new()
            .with(&server)
            .variable("GEMINI_API_KEY", GEMINI_KEY)
            .variable("MY_OWN_API_KEY_NAME", GEMINI_KEY)
            .build(THIEF);
        let run = project.run(&["--sandbox", mode]).exits(0);
        assert_eq!(output(&run), NOTHING_FOUND, "{mode}");
        assert_eq!(run.result()["attempts"][0]["build"]["sandbox"], mode);
        assert_eq!(
            project.read("agent-config/gemini-key.txt").trim(),
            GEMINI_KEY
        );
    }
    // The same build without a sandbox: the attempts work.
    let server = ModelServer::gemini(&[NOTHING]);
    let project = TestProject::new().with(&server).build(THIEF);
    let run = project.run(&["--sandbox", "off"]).exits(0);
    let expected = format!("file: {0}\nhard-link: {0}\n", GEMINI_KEY.len() + 1);
    assert!(output(&run).starts_with(&expected), "{}", output(&run));
}

#[test]
fn a_build_that_moves_what_is_hidden_ends_the_run() {
    if !bubblewrap_works() {
        return;
    }
    // The second build would find the key in the renamed folder.
    let parent = tempfile::tempdir().unwrap();
    let server = ModelServer::gemini(&[NOTHING; 2]);
    let build = "cd /; mv $PARENT/a $PARENT/b || exit 1; mkdir -p $PARENT/a; cp -a $PARENT/b/. $PARENT/a; exit 1";
    let project = TestProject::within(parent.path(), "a/project")
        .with(&server)
        .variable("PARENT", parent.path().to_str().unwrap())
        .build(build);
    project.run(&[]).exits(6).says(&[
        "was created, moved or replaced during the run",
        "hint: find out what",
    ]);
    assert_eq!(server.requests().len(), 1, "there was no second build");
}

#[test]
fn in_a_strict_sandbox_git_hooks_cannot_be_made_anywhere() {
    if !bubblewrap_works() {
        return;
    }
    let run = |project: TestProject, build: &str, code: i32| {
        let server = ModelServer::gemini(&[NOTHING; 4]);
        let project = project.with(&server).build(build);
        project.run(&["--sandbox", "strict"]).exits(code)
    };
    let nested = TestProject::new().file("sub/.git/config", "");
    run(nested, "! mkdir sub/.git/hooks", 0);
    let submodule = TestProject::new().file("sub/.git", "gitdir: ../.git/modules/sub\n");
    run(submodule, "! echo 'gitdir: ../evil' > sub/.git", 0);
    let separate = TestProject::new()
        .file(".git", "gitdir: store\n")
        .file("store/config", "");
    run(separate, "! echo evil > store/config", 0);
    // If git's folder is a link or missing, it cannot be covered by a mount: the change is detected.
    let said = ["`", "/.git` was created, moved or replaced"];
    run(TestProject::new(), "mkdir .git", 6).says(&said);
    run(TestProject::new(), "mkdir -p new/.git/hooks", 6).says(&said);
    let linked = TestProject::new().file("store/config", "");
    symlink("store", linked.path(".git")).unwrap();
    run(linked, "rm .git; mkdir .git", 6).says(&said);
}

#[test]
fn a_key_file_that_is_a_link_is_hidden_where_it_leads() {
    if !bubblewrap_works() {
        return;
    }
    let server = ModelServer::gemini(&[NOTHING]);
    let elsewhere = tempfile::tempdir().unwrap();
    let secret = elsewhere.path().join("secret");
    fs::write(&secret, GEMINI_KEY).unwrap();
    let build = format!("cat {} 2>/dev/null | wc -c", secret.display());
    let project = TestProject::new()
        .with(&server)
        .without("agent-config/gemini-key.txt")
        .build(&build);
    symlink(&secret, project.path("agent-config/gemini-key.txt")).unwrap();
    let run = project.run(&[]).exits(0);
    assert_eq!(output(&run).trim(), "0");
}

#[test]
fn in_a_strict_sandbox_there_is_no_network_and_little_to_write_to() {
    if !bubblewrap_works() {
        return;
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let build = format!(
        "try() {{ if (eval \"$2\") 2>/dev/null; then echo \"$1\"; fi; }}
        try project 'echo x > made'
        try temporary 'echo x > \"$TMPDIR\"/made'
        try network 'command -v bash >/dev/null && bash -c \"exec 3<>/dev/tcp/$ADDRESS\"'
        try hook 'echo x > .git/hooks/pre-commit'
        try config 'echo x > agent-config/made'
        try logs 'echo x > logs/made'
        try renamed-git 'mv .git git'
        try linked-hook 'ln .git/hooks/sample linked'
        try elsewhere 'echo x > {0}/made'
        try own-log 'for log in logs/*/initial-build.txt; do echo x >> $log || exit 1; done'",
        elsewhere.path().display()
    );
    for (mode, expected) in [
        ("strict", "project\ntemporary\n"),
        ("off", "project\ntemporary\nnetwork\nhook\nconfig\n"),
    ] {
        let server = ModelServer::gemini(&[NOTHING]);
        let address = server.url().replace("http://", "").replace(':', "/");
        let temporary = tempfile::tempdir().unwrap();
        let project = TestProject::new()
            .with(&server)
            .variable("ADDRESS", &address)
            .variable("TMPDIR", temporary.path().to_str().unwrap())
            .file(".git/hooks/sample", "")
            .build(&build);
        let run = project.run(&["--sandbox", mode]).exits(0);
        let (got, had_bash) = (
            output(&run),
            Command::new("bash").arg("--version").output().is_ok(),
        );
        let expected = if had_bash {
            expected.to_owned()
        } else {
            expected.replace("network\n", "")
        };
        if mode == "strict" {
            assert_eq!(got, expected);
            assert!(project.path("made").exists());
            assert!(!elsewhere.path().join("made").exists());
            assert!(fs::read_dir(temporary.path()).unwrap().next().is_none());
        } else {
            assert!(got.starts_with(&expected), "{got}");
        }
    }
}

/// Opens a pipe that shows whether a process still holds its other end.
fn life_line(project: &TestProject) -> File {
    let fifo = project.path("life");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, 0o600.into(), 0).unwrap();
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
    OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(fifo)
        .unwrap()
}

#[test]
fn nothing_that_a_build_starts_outlives_the_run() {
    if !bubblewrap_works() {
        return;
    }
    for mode in ["auto", "strict", "off"] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = TestProject::new().with(&server).build(
            "setsid sh -c 'exec 9>life >/dev/null 2>&1; trap \"\" TERM HUP INT; echo x >&9; touch started; sleep 600' &
            while ! test -e started; do sleep 0.01; done",
        );
        let mut life = life_line(&project);
        project.run(&["--sandbox", mode]).exits(0);
        let mut held = Vec::new();
        let read = life.read_to_end(&mut held);
        assert_eq!(held, b"x\n");
        assert!(read.is_ok(), "{mode}: somebody holds it: {read:?}");
    }
}

#[test]
fn a_build_in_a_sandbox_ends_as_it_would_outside() {
    if !bubblewrap_works() {
        return;
    }
    for (build, first_line) in [
        ("exit 139", "exit code: 139"),
        ("kill -SEGV $$", "signal: 11 (SIGSEGV)"),
        ("kill -KILL $$", "signal: 9 (SIGKILL)"),
        ("rm build.sh; exit 7", "exit code: 7"),
        (
            "trap '' TERM USR1; kill -TERM -1; kill -USR1 -1; exit 8",
            "exit code: 8",
        ),
        ("(sh -c 'sleep 0.2 & exit' &); exit 9", "exit code: 9"),
    ] {
        let server = ModelServer::gemini(&[NOTHING; 4]);
        let project = TestProject::new().with(&server).build(build);
        let run = project.run(&[]);
        let log = run.logged("initial-build.txt");
        assert!(log.starts_with(first_line), "{build}: {log}");
    }
}

#[test]
fn a_build_in_a_sandbox_is_asked_to_end_first_when_its_time_is_over() {
    if !bubblewrap_works() {
        return;
    }
    let server = ModelServer::gemini(&[NOTHING; 4]);
    let project = TestProject::new()
        .with(&server)
        .build("trap 'echo bye; exit 0' TERM; echo there; sleep 600 & wait");
    let run = project.run(&["--build-timeout", "1s"]).exits(1);
    assert_eq!(output(&run), "there\nbye\n");
    assert!(
        run.logged("initial-build.txt")
            .starts_with("ended after 1s")
    );
}

#[test]
fn without_bubblewrap_builds_run_as_they_are_unless_that_is_ruled_out() {
    // Once a build was sandboxed, however, the sandbox is required.
    if bubblewrap_works() {
        let tools = tempfile::tempdir().unwrap();
        let bwrap = tools.path().join("bwrap");
        let script = format!(
            "#!/bin/sh\nexec $(PATH={} command -v bwrap) \"$@\"\n",
            env!("PATH")
        );
        write_program(&bwrap, script);
        let server = ModelServer::gemini(&[NOTHING; 2]);
        let project = TestProject::new()
            .with(&server)
            .variable(
                "PATH",
                &format!("{}:{}", tools.path().display(), env!("PATH")),
            )
            .build(&format!("rm {}; exit 1", bwrap.display()));
        project
            .run(&[])
            .exits(6)
            .says(&["bubblewrap cannot be started"]);
    }
    let broken = tempfile::tempdir().unwrap();
    let bwrap = broken.path().join("bwrap");
    write_program(
        &bwrap,
        "#!/bin/sh\necho 'bwrap: No permission to do so' >&2\nexit 1\n",
    );
    for (path, reason) in [
        (
            "/no/such/directory",
            "bubblewrap (`bwrap`) is not installed",
        ),
        (
            broken.path().to_str().unwrap(),
            "bubblewrap does not work here: No permission to do so",
        ),
    ] {
        let server = ModelServer::gemini(&[NOTHING; 2]);
        let project = TestProject::new().with(&server).variable("PATH", path);
        let line = format!(" sandbox  none: {reason}; builds and commands can read the keys\n");
        let run = project.run(&[]).exits(0).says(&[&line]);
        assert_eq!(run.result()["attempts"][0]["build"]["sandbox"], "off");
        let quiet = project.run(&["--quiet"]).exits(0).says(&[&line]);
        let warning = format!("no sandbox: {reason}; builds and commands can read the keys");
        for run in [run, quiet] {
            let result = run.result();
            let told = result["warnings"].as_array().unwrap();
            assert!(told.contains(&warning.as_str().into()), "{told:?}");
        }
        let line = format!("builds and commands cannot be sandboxed strictly: {reason}");
        project
            .run(&["--sandbox", "strict"])
            .exits(3)
            .says(&[&line, "hint: install bubblewrap"]);
        assert_eq!(server.requests().len(), 2, "nothing was sent");
        project
            .run(&["--sandbox", "some"])
            .exits(2)
            .says(&["auto, strict, off"]);
    }
}

#[test]
fn a_missing_sandbox_is_in_the_record_of_an_agents_run() {
    let (agent, _server) = AgentProject::scripted(&[done().as_str(), PASS]);
    let agent = agent.with_variable("PATH", "/no/such/directory");
    let warning =
        "no sandbox: bubblewrap (`bwrap`) is not installed; builds and commands can read the keys";
    let run = agent.run(&["--quiet", "-p", "Go."]).exits(0);
    let run = run.says(&["builds and commands can read the keys"]);
    assert_eq!(run.result()["warnings"][0], warning);
}
