//! Pipes, sockets, links to endless devices and huge files in place of every file that is read or written: each command
//! ends, uses little memory, and reports the problem or ignores the file.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use crate::support::agent::{AgentProject, PASS, done};
use crate::support::{GEMINI_KEY, ModelServer, TestProject};

/// Things that may be in the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Odd {
    Pipe,
    Socket,
    Directory,
    Endless,
    LinkToPipe,
    /// A sparse file.
    Terabyte,
}

const ALL: [Odd; 6] = [
    Odd::Pipe,
    Odd::Socket,
    Odd::Directory,
    Odd::Endless,
    Odd::LinkToPipe,
    Odd::Terabyte,
];

impl Odd {
    /// Creates it in place of an existing file.
    fn put(self, path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_dir_all(path);
        let _ = fs::remove_file(path);
        let pipe = |path: &Path| {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, 0o600.into(), 0).unwrap();
        };
        match self {
            Self::Pipe => pipe(path),
            Self::Socket => drop(UnixListener::bind(path).unwrap()),
            Self::Directory => fs::create_dir(path).unwrap(),
            Self::Endless => symlink("/dev/zero", path).unwrap(),
            Self::LinkToPipe => {
                let target = path.with_extension("pipe");
                let _ = fs::remove_file(&target);
                pipe(&target);
                symlink(target, path).unwrap();
            }
            Self::Terabyte => fs::File::create(path).unwrap().set_len(1 << 40).unwrap(),
        }
    }
}

/// Runs a command with two gigabytes of address space and a limit of half a minute, and returns its output. A command
/// that exceeds these has an exit code that the program does not use.
#[track_caller]
fn ends(mut command: Command, expected: &[i32]) -> String {
    let mut limited = Command::new("sh");
    limited
        .args([
            "-c",
            "ulimit -v 2000000; exec timeout -s KILL 30 \"$0\" \"$@\"",
        ])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            limited.env(name, value);
        }
    }
    let Output {
        status,
        stdout,
        stderr,
    } = limited.output().unwrap();
    let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    let code = status.code().unwrap_or(-1);
    let arguments: Vec<_> = command.args::<_, &str>([]).get_args().collect();
    assert!(expected.contains(&code), "{arguments:?}: {code}\n{said}");
    said
}

/// Runs the check for each kind of thing in parallel.
fn each(check: impl Fn(Odd) + Sync) {
    thread::scope(|scope| {
        for odd in ALL {
            let check = &check;
            scope.spawn(move || check(odd));
        }
    });
}

const REPLY: &str = "^^^src/new.rs\nx\n^^^end\n";

#[test]
fn in_the_place_of_gits_own_files() {
    each(|odd| {
        for path in [
            ".git/info/exclude",
            ".git/config",
            "src/.gitignore",
            ".git",
            ".gitignore",
        ] {
            let server = ModelServer::gemini(&[REPLY]);
            let project = TestProject::new().with(&server);
            odd.put(&project.path(path));
            // A directory in place of `.git` is an empty repository.
            let is_needed = match path {
                ".gitignore" | ".git/config" => true,
                ".git" => odd != Odd::Directory,
                _ => false,
            };
            let is_told = is_needed || odd == Odd::Terabyte;
            // A nested file is not read before there is a reply.
            let failed = if path == "src/.gitignore" { 6 } else { 3 };
            let expected = if is_told { failed } else { 0 };
            let said = ends(project.command(&[]), &[expected]);
            if odd == Odd::Terabyte && is_told {
                let is_said = said.contains(path) && said.contains("it is larger than ");
                assert!(is_said, "{said}");
            }
            ends(project.command(&["init"]), &[0, 6]);
        }
    });
}

#[test]
fn in_the_place_of_the_users_inputs() {
    each(|odd| {
        for (file, expected) in [
            ("query.txt", 3),
            ("codeRollup.txt", 3),
            ("models.json", 3),
            ("gemini-key.txt", 3),
            // The key in this file is not needed.
            ("openai-key.txt", 0),
        ] {
            let project = TestProject::new();
            odd.put(&project.path(&format!("agent-config/{file}")));
            let said = ends(project.command(&["--dry-run"]), &[expected]);
            let names_it = said.contains(&format!("agent-config/{file}"));
            assert!(expected == 0 || names_it, "{odd:?}: {said}");
            ends(project.command(&["models"]), &[0, 3]);
        }
    });
}

#[test]
fn in_the_place_of_what_a_run_has_left() {
    let server = ModelServer::gemini(&[REPLY]);
    let project = TestProject::new().with(&server).build("echo built");
    let run = project.run(&[]).exits(0).folder;
    let copy = |to: &TestProject| {
        let copied = Command::new("cp")
            .arg("-a")
            .args([project.path("logs"), to.path("")])
            .status();
        assert!(copied.unwrap().success());
    };
    each(|odd| {
        for file in [
            "result.json",
            "changes.json",
            "steps.jsonl",
            "report.html",
            "initial-build.txt",
            "initial-query-response.txt",
            "initial-query-response.json",
            "replaced",
        ] {
            let project = TestProject::new();
            copy(&project);
            odd.put(&project.path(&format!("logs/{run}/{file}")));
            for (arguments, expected) in [
                (&["log"][..], &[0][..]),
                (&["log", &run], &[0]),
                (&["diff", &run], &[0, 6]),
                (&["report", "--all"], &[0]),
                (&["report"], &[0, 6]),
                (&["undo", &run], &[0, 6]),
                (&["--replay", &format!("logs/{run}")], &[0, 4, 6]),
            ] {
                ends(project.command(arguments), expected);
            }
        }
    });
}

#[test]
fn in_the_place_of_a_journal() {
    each(|odd| {
        for name in [
            "agent-config/.code-commit-journal",
            "logs/.code-commit-journal-installed",
        ] {
            let project = TestProject::new();
            odd.put(&project.path(name));
            let said = ends(project.command(&["recover"]), &[6]);
            assert!(said.contains(name), "{odd:?}: {said}");
        }
    });
}

#[test]
fn in_the_place_of_what_an_agent_keeps() {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    each(|odd| {
        for (file, expected) in [
            ("config.json".to_owned(), &[3][..]),
            (format!("sessions/{id}.json"), &[3, 6]),
            (format!("sessions/{id}.lock"), &[3]),
            ("sessions/directory-map.json".to_owned(), &[0, 6]),
            ("sessions/directory-map.lock".to_owned(), &[3]),
        ] {
            let (agent, _server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
            odd.put(&agent.home(&file));
            let (session, resume) = (["--session", id, "-p", "x"], ["--resume", "-p", "x"]);
            let is_locked = file.ends_with("lock") && odd == Odd::Terabyte;
            let expected = if is_locked { &[0][..] } else { expected };
            ends(agent.command(&session), expected);
            // The script has no more replies.
            ends(agent.command(&resume), &[0, 2, 3, 4, 6]);
            ends(agent.command(&["sessions", "list"]), &[0, 3]);
        }
    });
}

#[test]
fn in_the_place_of_what_a_build_works_on() {
    each(|odd| {
        // Two replies: the second one finds the files created by the first one's build.
        let server = ModelServer::gemini(&["^^^a.txt\nx\n^^^end\n"; 2]);
        let project = TestProject::new().with(&server).build("test -e ready");
        let make = match odd {
            Odd::Pipe => "mkfifo a.txt",
            Odd::Socket | Odd::Directory => "mkdir a.txt",
            Odd::Endless => "ln -s /dev/zero a.txt",
            Odd::LinkToPipe => "mkfifo p; ln -s p a.txt",
            Odd::Terabyte => "truncate -s 1T a.txt",
        };
        let build = format!("test -e ready && exit 0; touch ready; rm a.txt; {make}; exit 1");
        let project = project.build(&build);
        ends(project.command(&["--diff"]), &[0, 1, 4, 5, 6]);
        ends(project.command(&["undo"]), &[0, 6]);
    });
}

/// A run with a summary at `path` and this build; returns the output, too.
fn summarized(path: &str, build: &str) -> (TestProject, String) {
    let server = ModelServer::gemini(&["Nothing."]);
    let project = TestProject::new()
        .with(&server)
        .file("build/keep", "")
        .file("elsewhere.md", "mine")
        .build(build);
    let run = project.run(&["--summary-file", path]).exits(0);
    (project, run.stderr)
}

#[test]
fn a_build_does_not_choose_where_the_summary_goes() {
    for (path, build) in [
        ("summary.md", "ln -s elsewhere.md summary.md"),
        ("summary.md", "ln -s agent-config/gemini-key.txt summary.md"),
        ("summary.md", "ln -s ../outside.md summary.md"),
        ("summary.md", "mkfifo summary.md"),
        ("build/summary.md", "mkfifo build/summary.md"),
    ] {
        let (project, said) = summarized(path, build);
        assert!(!said.contains("cannot write the summary"), "{said}");
        assert!(!project.path(path).is_symlink());
        assert!(
            project.read(path).contains("code-commit"),
            "{path}: {build}"
        );
        assert_eq!(project.read("elsewhere.md"), "mine");
        let key = project.read("agent-config/gemini-key.txt");
        assert_eq!(key.trim_end(), GEMINI_KEY);
    }
    // A directory that is replaced meanwhile is not entered.
    let swap = "mv build old; mkdir src/other; ln -s src/other build";
    let (project, said) = summarized("build/summary.md", swap);
    assert!(said.contains("cannot write the summary"), "{said}");
    assert!(!project.path("src/other/summary.md").exists());
}

#[test]
fn a_link_that_came_with_the_project_does_not_lead_the_summary_out_of_it_or_to_the_keys() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("mine.md");
    fs::write(&file, "mine").unwrap();
    for (target, why) in [
        (file.as_path(), "it leads out of the project"),
        (Path::new("/dev/zero"), "it is not a file"),
        (
            Path::new("agent-config/gemini-key.txt"),
            "that folder is for keys and inputs",
        ),
        (Path::new(".git/config"), "that folder is git's own"),
    ] {
        let server = ModelServer::gemini(&["Nothing."]);
        let project = TestProject::new().with(&server).file(".git/config", "mine");
        symlink(target, project.path("summary.md")).unwrap();
        project
            .run(&["--summary-file", "summary.md"])
            .exits(0)
            .says(&["cannot write the summary to `", why]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        assert_eq!(project.read(".git/config"), "mine");
        let key = project.read("agent-config/gemini-key.txt");
        assert_eq!(key.trim_end(), GEMINI_KEY);
    }
}

#[test]
fn no_summary_or_page_takes_the_place_of_what_is_protected() {
    let server = ModelServer::gemini(&[]);
    let project = TestProject::new().with(&server).file(".git/config", "mine");
    symlink("agent-config", project.path("link")).unwrap();
    let before = project.tree();
    for path in [
        "build.sh",
        "./src/../build.sh",
        ".gitignore",
        "src/.gitignore",
        "Cargo.lock",
        "codeRollup.sh",
        "UserSpecification.md",
        "agent-config/query.txt",
        "agent-config/new/summary.md",
        "link/summary.md",
        "src/agent-config/summary.md",
        ".git/summary.md",
        "logs/summary.md",
        project.path("build.sh").to_str().unwrap(),
    ] {
        let run = project.run(&["--summary-file", path]).exits(2);
        run.says(&[
            &format!("the summary cannot be written to `{path}`: "),
            "hint: ",
        ]);
        let page = project.run(&["report", "--all", "--output", path]);
        page.exits(6).says(&["cannot write `"]);
    }
    assert_eq!(project.tree(), before);
    assert!(server.requests().is_empty());
    // The target of a link is refused when the summary is written.
    let server = ModelServer::gemini(&["Nothing."]);
    let project = TestProject::new().with(&server);
    let before = project.read("build.sh");
    symlink("build.sh", project.path("summary.md")).unwrap();
    let run = project.run(&["--summary-file", "summary.md"]).exits(0);
    run.says(&["cannot write the summary to `summary.md`: this file is protected"]);
    assert_eq!(project.read("build.sh"), before);
}

#[test]
fn a_summary_goes_to_a_file_elsewhere_or_to_the_device_that_the_user_names() {
    let server = ModelServer::gemini(&["Nothing.", "Nothing."]);
    let project = TestProject::new().with(&server);
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("summary.md");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    project
        .run(&["--summary-file", file.to_str().unwrap()])
        .exits(0);
    assert!(fs::read_to_string(&file).unwrap().contains("code-commit"));
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let run = project.run(&["--summary-file", "/dev/stdout"]).exits(0);
    assert!(run.stdout.contains("## code-commit"), "{}", run.stdout);
}

#[test]
fn odd_file_in_place_of_a_page_is_not_opened() {
    let server = ModelServer::gemini(&[REPLY]);
    let project = TestProject::new().with(&server);
    let run = project.run(&[]).exits(0).folder;
    let page = format!("logs/{run}/report.html");
    for odd in ALL {
        odd.put(&project.path(&page));
        let said = ends(project.command(&["report"]), &[6]);
        assert!(said.contains("report.html"), "{odd:?}: {said}");
    }
}
