//! The packages of a release: a wheel and an npm package, built from the program under test, installed from the file by
//! their own installers, and run. The wheel is tested only with `--ignored`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Answer, Finished, ModelServer, TestProject, skipped};

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[track_caller]
fn passes(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs an installed program in an empty folder.
fn run(program: &Path, arguments: &[&str]) -> Output {
    let nowhere = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).current_dir(nowhere.path());
    command.env("HOME", nowhere.path()).output().unwrap()
}

/// Checks several ways in which the installed program can end.
#[track_caller]
fn works(program: &Path) {
    for (arguments, code, said) in [
        (
            &["--version"][..],
            0,
            concat!("code-commit ", env!("CARGO_PKG_VERSION")),
        ),
        (&["demo"], 0, "done"),
        (&["--frobnicate"], 2, "--frobnicate"),
        (&["-m", "a", "--rollup"], 3, "error: "),
    ] {
        let output = run(program, arguments);
        let told = [output.stdout, output.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{told}");
        assert!(told.contains(said), "{arguments:?}\n{told}");
    }
}

#[test]
#[ignore = "maturin has cargo put the program in its place anew, while other tests start it; to be run alone"]
fn pip_installs_a_wheel_whose_program_works() {
    let tools = source("target/validators/bin");
    if !tools.join("maturin").exists() {
        skipped("no maturin; see tests/examples/install.sh");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let wheels = dir.path().join("wheels");
    let mut build = Command::new(tools.join("maturin"));
    build.current_dir(source("packaging/pypi"));
    build.args(["build", "--quiet", "--locked", "--offline"]);
    // Cargo sets them for tests; a dependency is built anew where they differ, and all that needs it.
    let is_of_package = |name: &str| {
        name == "OUT_DIR" || name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for (name, _) in std::env::vars().filter(|(name, _)| is_of_package(name)) {
        build.env_remove(name);
    }
    build.args(["--profile", "dev", "--compatibility", "linux"]);
    passes(build.arg("--out").arg(&wheels));
    let wheel = fs::read_dir(&wheels)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let name = wheel.file_name().unwrap().to_str().unwrap();
    let version = concat!(
        "code_commit-",
        env!("CARGO_PKG_VERSION"),
        "-py3-none-linux_"
    );
    assert!(name.starts_with(version), "{name}");

    let installed = dir.path().join("installed");
    let mut install = Command::new(tools.join("python"));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
    ]);
    passes(install.arg(&installed).arg(&wheel));
    works(&installed.join("bin/code-commit"));
    let dev = run(&installed.join("bin/dev"), &["--version"]);
    assert_eq!(
        dev.stdout,
        format!("dev {}\n", env!("CARGO_PKG_VERSION")).as_bytes()
    );
}

/// Installs the npm package, and returns the program that it contains; `None` without npm.
fn npm_installed(dir: &Path) -> Option<PathBuf> {
    let is_there = |tool| Command::new(tool).arg("--version").output().is_ok();
    if !is_there("npm") || !is_there("node") {
        skipped("npm or node is not installed");
        return None;
    }
    // As in a release, whose programs are in cargo's folder of a target.
    let project = dir.join("project");
    let target = "x86_64-unknown-linux-musl";
    let built = project.join("target").join(target).join("release");
    fs::create_dir_all(&built).unwrap();
    fs::create_dir_all(project.join("packaging/npm")).unwrap();
    for name in [
        "packaging/pack.sh",
        "packaging/npm/package.json",
        "packaging/npm/code-commit.js",
        "README.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
    ] {
        fs::copy(source(name), project.join(name)).unwrap();
    }
    let program = assert_cmd::cargo::cargo_bin!("code-commit");
    fs::copy(program, built.join("code-commit")).unwrap();
    let npm = |command: &mut Command| passes(command.env("npm_config_cache", dir.join("cache")));
    npm(Command::new("sh")
        .arg(project.join("packaging/pack.sh"))
        .args(["npm", target]));
    let package = format!("target/dist/code-commit-{}.tgz", env!("CARGO_PKG_VERSION"));
    let mut install = Command::new("npm");
    install.args([
        "install",
        "--silent",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--prefix",
    ]);
    npm(install.arg(dir).arg(project.join(package)));
    Some(dir.join("node_modules/.bin/code-commit"))
}

#[test]
fn npm_installs_a_package_whose_program_works_and_gets_signals() {
    let dir = tempfile::tempdir().unwrap();
    let Some(program) = npm_installed(dir.path()) else {
        return;
    };
    works(&program);

    // A signal that ends the launcher ends the program in the same way.
    let (silence, told) = Answer::silence();
    let server = ModelServer::start([silence]);
    let project = TestProject::new().with(&server);
    let ours = project.command(&[]);
    let mut launched = Command::new(&program);
    launched.current_dir(project.path("")).env_clear();
    launched.envs(
        ours.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    launched
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = launched.spawn().unwrap();
    told.recv().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let ended = child.wait_with_output().unwrap();
    let run = Finished::new(&project, &[], ended).exits(143);
    assert_eq!(run.result()["exit"]["name"], "interrupted");
}
