//! Resources outside that a build in a lenient sandbox cannot reach: services that run programs on request, and the
//! program's own files. If bubblewrap does not work, the tests say so and pass.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use rustix::process::getuid;
use tempfile::TempDir;

use crate::support::agent::{AgentProject, PASS, done, last_told, reply};
use crate::support::{Finished, ModelServer, TestProject, bubblewrap_works, skipped};

const NOTHING: &str = "Nothing to do.";

/// Prints those of its arguments at which a service listens.
const REACH: &str = r#"
import os, socket, sys
for path in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("reached " + os.path.basename(path))
    except OSError:
        pass
print("end")
"#;

/// A user's services, in directories of their own.
struct Services {
    dir: TempDir,
    paths: Vec<String>,
    _listening: Vec<UnixListener>,
}

impl Services {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tmux = format!("tmux-{}/default", getuid().as_raw());
        let names = [
            &*tmux,
            "run/bus",
            "run/systemd/private",
            "run/podman/podman.sock",
            "run/emacs/server",
            "home/.docker/run/docker.sock",
            "own.tmux",
            // This service shows windows, and runs nothing.
            "run/wayland-0",
        ];
        let paths = names.map(|name| dir.path().join(name));
        let listening = paths.iter().map(|path| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            UnixListener::bind(path).unwrap()
        });
        Self {
            _listening: listening.collect(),
            paths: paths.map(|path| path.to_str().unwrap().to_owned()).to_vec(),
            dir,
        }
    }

    fn in_environment_of(&self, project: TestProject) -> TestProject {
        let place = |name: &str| self.dir.path().join(name).to_str().unwrap().to_owned();
        project
            .file("reach.py", REACH)
            .variable("TMUX_TMPDIR", &place(""))
            .variable("TMUX", &format!("{},12,0", place("own.tmux")))
            .variable("XDG_RUNTIME_DIR", &place("run"))
            .variable("HOME", &place("home"))
    }

    fn reaching(&self) -> String {
        format!("python3 reach.py {}", self.paths.join(" "))
    }

    /// Returns the path with this name.
    fn path(&self, name: &str) -> &str {
        let mut paths = self.paths.iter();
        paths.find(|path| path.ends_with(name)).unwrap()
    }
}

fn can_be_tested() -> bool {
    let python = Command::new("python3").arg("--version").output();
    if python.is_err() {
        skipped("python3 is not installed");
        return false;
    }
    bubblewrap_works()
}

fn printed(run: &Finished) -> String {
    let log = run.logged("initial-build.txt");
    log.split_once('\n').unwrap().1.to_owned()
}

#[test]
fn a_build_reaches_no_service_that_runs_things_unless_it_is_allowed() {
    if !can_be_tested() {
        return;
    }
    let services = Services::start();
    let podman = services.path("podman.sock");
    let directory = Path::new(podman).parent().unwrap().to_str().unwrap();
    for (flags, expected) in [
        (&[][..], "reached wayland-0\nend\n"),
        (
            &["--allow-socket", services.path("default")],
            "reached default\nreached wayland-0\nend\n",
        ),
        (
            &["--allow-socket", podman, "--allow-socket", "/no/such"],
            "reached podman.sock\nreached wayland-0\nend\n",
        ),
        (
            &["--allow-socket", directory],
            "reached podman.sock\nreached wayland-0\nend\n",
        ),
        (
            &["--sandbox", "off"],
            "reached default\nreached bus\nreached private\nreached podman.sock\nreached server\n\
             reached docker.sock\nreached own.tmux\nreached wayland-0\nend\n",
        ),
    ] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = services.in_environment_of(TestProject::new().with(&server));
        let project = project.build(&services.reaching());
        let run = project.run(flags).exits(0);
        assert_eq!(printed(&run), expected, "{flags:?}");
    }
}

#[test]
fn nor_by_moving_its_directory_away_for_the_next_build() {
    if !can_be_tested() {
        return;
    }
    let services = Services::start();
    let server = ModelServer::gemini(&[NOTHING]);
    let project = services.in_environment_of(TestProject::new().with(&server));
    let directories = ["default", "bus", "private", "podman.sock", "docker.sock"];
    let moving = directories.map(|name| {
        let directory = Path::new(services.path(name)).parent().unwrap();
        format!(
            "mv {0} {0}.gone 2>/dev/null && echo {0}",
            directory.display()
        )
    });
    let project = project.build(&format!("{}; echo end", moving.join("; ")));
    assert_eq!(printed(&project.run(&[]).exits(0)), "end\n");
}

#[test]
fn nor_does_an_agents_command() {
    if !can_be_tested() {
        return;
    }
    let services = Services::start();
    for (flags, reached) in [
        (&["-p", "Go."][..], false),
        (&["-p", "Go.", "--allow-socket", services.path("bus")], true),
    ] {
        let texts = [
            reply("COMMAND", &services.reaching()),
            done(),
            PASS.to_owned(),
        ];
        let (mut agent, server) = AgentProject::scripted(&texts);
        agent.project = services.in_environment_of(agent.project);
        agent.run(flags).exits(0);
        let told = last_told(&server, 1);
        assert!(told.contains("reached wayland-0"), "{told}");
        assert_eq!(told.contains("reached bus"), reached, "{told}");
        assert!(!told.contains("reached default"), "{told}");
    }
}

#[test]
fn a_socket_is_allowed_by_its_whole_path_and_where_there_are_sockets() {
    let project = TestProject::new();
    for command in [&[][..], &["dev", "-p", "Go."], &["plan", "-p", "Go."]] {
        let with = |more: &[&str]| {
            let run = project.run(&[command, more].concat());
            assert!(project.runs().is_empty());
            run.exits(2)
        };
        with(&["--sandbox", "strict", "--allow-socket", "/run/docker.sock"])
            .says(&["`--allow-socket` needs `--sandbox auto`", "hint: see"]);
        with(&["--allow-socket", "docker.sock"]).says(&["write the whole path"]);
    }
}

/// Tries to change its arguments in many ways, and prints those for which it succeeded.
const VANDAL: &str = r#"
for file; do
    (echo evil >> "$file") 2>/dev/null && echo "appended: $file"
    (echo evil > "$file") 2>/dev/null && echo "written: $file"
    cp "$0" copy && mv -f copy "$file" 2>/dev/null && echo "replaced: $file"
    ln -f "$0" "$file" 2>/dev/null && echo "linked over: $file"
    mv "$file" "$file.gone" 2>/dev/null && echo "moved: $file"
    rm -f "$file" 2>/dev/null && echo "removed: $file"
    directory=$(dirname "$file")
    mv "$directory" "$directory.gone" 2>/dev/null && echo "moved with its directory: $file"
done
echo end
"#;

#[test]
fn a_build_does_not_change_the_program_nor_its_other_names() {
    if !bubblewrap_works() {
        return;
    }
    for (mode, inside) in [("auto", false), ("auto", true), ("strict", true)] {
        let server = ModelServer::gemini(&[NOTHING]);
        let elsewhere = tempfile::tempdir().unwrap();
        let project = TestProject::new().with(&server).file("vandal.sh", VANDAL);
        let programs = if inside {
            project.path("programs")
        } else {
            elsewhere.path().join("programs")
        };
        fs::create_dir(&programs).unwrap();
        let plain = project.command(&["--sandbox", mode]);
        let program = programs.join("code-commit");
        fs::copy(plain.get_program(), &program).unwrap();
        for name in ["dev", "dev-agent", "neighbour"] {
            fs::write(programs.join(name), name).unwrap();
        }
        let file = |name: &str| programs.join(name).display().to_string();
        let names = ["code-commit", "dev", "dev-agent"].map(file).join(" ");
        let neighbour = file("neighbour");
        let project = project.build(&format!(
            "sh vandal.sh {names}; echo more >> {neighbour} && echo 'beside them'"
        ));
        let before = fs::read(&program).unwrap();
        let mut command = Command::new(&program);
        command
            .args(plain.get_args())
            .current_dir(project.path(""))
            .env_clear();
        for (name, value) in plain.get_envs() {
            command.env(name, value.unwrap());
        }
        let run = Finished::new(&project, &[mode], command.output().unwrap()).exits(0);
        assert_eq!(printed(&run), "end\nbeside them\n", "{mode} {inside}");
        assert!(fs::read(&program).unwrap() == before, "{mode} {inside}");
        assert_eq!(fs::read(programs.join("dev")).unwrap(), b"dev");
    }
}
