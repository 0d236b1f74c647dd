//! The commands that an agent runs.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use code_commit::measured::{
    AllowedCommand, Arguments, BackgroundAction, BackgroundTool, ChildEnv, CommandStatus,
    Invocation, ProcessError, Processes, Ran, Report, RunCommand, Sandbox, SandboxMode,
    SandboxPolicy, Shell, SpawnOptions, Tool, ToolError,
};
use code_commit::{Environment, Interrupt, Redactor, SystemClock, subreaper};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{BUBBLEWRAP, GEMINI_KEY, bubblewrap_works, skipped, within_a_minute};

const LONG: Duration = Duration::from_mins(1);

/// A directory to run commands in, and the objects needed to run them.
struct Place {
    dir: PathBuf,
    _owned: Option<tempfile::TempDir>,
    clock: SystemClock,
    interrupt: Interrupt,
    redactor: Redactor,
    outputs: AtomicU32,
}

impl Place {
    fn new() -> Self {
        let owned = tempfile::tempdir().unwrap();
        let place = Self::at(owned.path(), Interrupt::never().unwrap());
        Self {
            _owned: Some(owned),
            ..place
        }
    }

    fn at(dir: &Path, interrupt: Interrupt) -> Self {
        Self {
            dir: dir.canonicalize().unwrap(),
            _owned: None,
            clock: SystemClock::start(),
            interrupt,
            redactor: Redactor::new([GEMINI_KEY]),
            outputs: AtomicU32::new(0),
        }
    }

    fn processes(&self) -> Processes<'_> {
        self.processes_in(None)
    }

    fn processes_in(&self, sandbox: Option<Sandbox>) -> Processes<'_> {
        Processes::new(SpawnOptions {
            root: &self.dir,
            program: Some(program()),
            env: ChildEnv::new(&Environment::default(), vec!["CARGO_PKG_NAME".into()]),
            clock: &self.clock,
            interrupt: &self.interrupt,
            redactor: &self.redactor,
            sandbox,
            follower: Box::new(|_| ()),
        })
    }

    fn output_file(&self) -> PathBuf {
        let number = self.outputs.fetch_add(1, Ordering::SeqCst);
        self.dir.join(format!("output-{number}.txt"))
    }

    /// Runs a command line to completion.
    #[track_caller]
    fn run(&self, processes: &mut Processes<'_>, line: &str) -> (CommandStatus, String) {
        let ran = processes.run(Invocation::Shell(line), LONG, &self.output_file());
        match ran.unwrap() {
            (Ran::Ended(status), output) => (status, output),
            other => panic!("{line} did not end: {other:?}"),
        }
    }

    /// Starts a command line in the background.
    #[track_caller]
    fn start(&self, processes: &mut Processes<'_>, line: &str) -> String {
        let ran = processes.run(Invocation::Shell(line), Duration::ZERO, &self.output_file());
        match ran.unwrap() {
            (Ran::InBackground(id), _) => id,
            other => panic!("{line} ended: {other:?}"),
        }
    }

    fn has(&self, file: &str) -> bool {
        self.dir.join(file).exists()
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let fifo = self.dir.join(name);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, 0o600.into(), 0).unwrap();
        fifo
    }

    /// Creates a pipe `life` that shows whether a process still holds its other end.
    fn life_line(&self) -> File {
        let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
        OpenOptions::new()
            .read(true)
            .custom_flags(nonblocking)
            .open(self.fifo("life"))
            .unwrap()
    }
}

fn program() -> &'static Path {
    Path::new(assert_cmd::cargo::cargo_bin!("code-commit"))
}

/// Polls until the condition holds.
#[track_caller]
fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    assert!(within_a_minute(is_so), "{what}");
}

/// Returns whether no process holds the other end.
fn is_over(life: &mut File) -> bool {
    match life.read(&mut [0; 16]) {
        Ok(length) => length == 0,
        Err(_) => false,
    }
}

#[track_caller]
fn read_until(
    processes: &mut Processes<'_>,
    id: &str,
    mut such: impl FnMut(&Report) -> bool,
) -> Report {
    let mut report = processes.read(id).unwrap();
    eventually("the report is as expected", || {
        report = processes.read(id).unwrap();
        such(&report)
    });
    report
}

/// Holds `life`, with a child and a daemon that has left the group; all of them ignore SIGTERM.
const STUBBORN: &str = "exec 9>life; trap '' TERM HUP INT
    setsid sh -c 'touch daemon; sleep 600' &
    sleep 601 &
    while ! test -e daemon; do sleep 0.01; done
    touch started; sleep 602";

#[test]
fn a_command_runs_in_the_root_without_input_and_without_hidden_variables() {
    let place = Place::new();
    let mut processes = place.processes();
    let line = "pwd; cat; echo \"[$CARGO_PKG_NAME]\"; echo error >&2; exit 3";
    let (status, output) = place.run(&mut processes, line);
    assert_eq!(status, CommandStatus::Exited(3));
    assert_eq!(output, format!("{}\n[]\nerror\n", place.dir.display()));
    let kept = fs::read_to_string(place.dir.join("output-0.txt")).unwrap();
    assert_eq!(kept, output);
    assert!(processes.list().is_empty());
    let (status, output) = place.run(&mut processes, "kill -SEGV $$");
    assert_eq!((status, output.as_str()), (CommandStatus::Signaled(11), ""));
}

#[test]
fn words_are_run_as_they_are() {
    let place = Place::new();
    let mut processes = place.processes();
    let mut run = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        processes.run(Invocation::Words(&words), LONG, &place.output_file())
    };
    let long = "x".repeat(100_000);
    let ran = run(&["printf", "%s|", "a b; $HOME", &long, &long, &long]).unwrap();
    let expected = format!("a b; $HOME|{long}|{long}|{long}|");
    assert!(matches!(ran, (Ran::Ended(_), output) if output == expected));
    let error = run(&["no-such-program"]).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot start `no-such-program`: No such file"),
        "{error}"
    );
    let error = run(&["printf", &"x".repeat(1 << 20)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot start `printf`: it is longer than 1 MiB"
    );
}

#[test]
fn a_command_that_takes_long_continues_in_the_background() {
    let place = Place::new();
    let gate = place.fifo("gate");
    let mut processes = place.processes();
    let id = place.start(&mut processes, "echo one; cat gate; echo two; exit 5");
    let report = read_until(&mut processes, &id, |report| report.output == "one\n");
    assert_eq!(report.status, None);
    assert_eq!(processes.list()[0].status, None);
    drop(OpenOptions::new().write(true).open(gate).unwrap());
    let ended = |report: &Report| report.status == Some(CommandStatus::Exited(5));
    let report = read_until(&mut processes, &id, ended);
    let output = "one\ntwo\n";
    read_until(&mut processes, &id, |report| report.output == output);
    assert_eq!(report.command, "echo one; cat gate; echo two; exit 5");
    // It stays readable, and ending it again changes nothing.
    assert_eq!(processes.kill(&id).unwrap().output, output);
    let unknown = processes.read("proc_x").unwrap_err();
    assert!(unknown.ends_with(&format!("known: {id}")), "{unknown}");
}

#[test]
fn the_same_commands_have_the_same_names_in_every_session() {
    let names = || {
        let place = Place::new();
        let mut processes = place.processes();
        let mut names: Vec<String> = ["sleep 600", "sleep 600", "sleep 601"]
            .map(|line| place.start(&mut processes, line))
            .into();
        // A session has many runs, whose files have the same names.
        let second = place.dir.join("second-run");
        fs::create_dir(&second).unwrap();
        let file = second.join("output-0.txt");
        let ran = processes.run(Invocation::Shell("sleep 600"), Duration::ZERO, &file);
        let Ok((Ran::InBackground(id), _)) = ran else {
            panic!("{ran:?}");
        };
        names.push(id);
        names
    };
    let first = names();
    let mut different = first.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 4, "{first:?}");
    assert_eq!(names(), first);
}

#[test]
fn to_kill_ends_the_whole_group_and_daemons_too() {
    let place = Place::new();
    let mut life = place.life_line();
    let mut processes = place.processes();
    let id = place.start(&mut processes, STUBBORN);
    eventually("it starts", || place.has("started"));
    assert!(!is_over(&mut life));
    let began = Instant::now();
    let report = processes.kill(&id).unwrap();
    assert_eq!(report.status, Some(CommandStatus::Signaled(9)));
    assert!(began.elapsed() >= Duration::from_secs(2), "it had its time");
    assert!(is_over(&mut life), "something is left");
}

#[test]
fn command_has_less_time_to_end_while_a_user_waits() {
    let place = Place::new();
    let mut life = place.life_line();
    let mut processes = place.processes().with_grace(Duration::from_millis(200));
    let id = place.start(&mut processes, STUBBORN);
    eventually("it starts", || place.has("started"));
    let began = Instant::now();
    let report = processes.kill(&id).unwrap();
    let took = began.elapsed();
    assert_eq!(report.status, Some(CommandStatus::Signaled(9)));
    assert!(took >= Duration::from_millis(200), "it had its time");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(is_over(&mut life), "something is left");
}

#[test]
fn a_command_that_is_killed_is_asked_to_end_first() {
    let place = Place::new();
    let mut processes = place.processes();
    let line = "trap 'echo bye; exit 7' TERM; touch started; sleep 600 & wait";
    let id = place.start(&mut processes, line);
    eventually("it starts", || place.has("started"));
    let report = processes.kill(&id).unwrap();
    assert_eq!(report.status, Some(CommandStatus::Exited(7)));
    // Some shells first report how the killed child ended.
    assert!(report.output.ends_with("bye\n"), "{}", report.output);
}

#[test]
fn leftover_processes_end_with_their_command() {
    let place = Place::new();
    let mut life = place.life_line();
    let mut processes = place.processes();
    let line = "exec 9>life; setsid sleep 600 & sleep 601 & echo done";
    let (status, output) = place.run(&mut processes, line);
    assert_eq!(status, CommandStatus::Exited(0));
    assert_eq!(
        output,
        "done\n[2 processes that the command had left running were ended with it]\n"
    );
    assert!(is_over(&mut life), "something is left");
    // Processes that end by themselves belong to the command.
    let (_, output) = place.run(&mut processes, "(sleep 0.1; echo from a job) & echo done");
    assert_eq!(output, "done\nfrom a job\n");
}

#[test]
fn nothing_is_left_when_the_session_ends() {
    let place = Place::new();
    let mut life = place.life_line();
    let mut processes = place.processes();
    place.start(&mut processes, STUBBORN);
    eventually("it starts", || place.has("started"));
    drop(processes);
    assert!(is_over(&mut life), "something is left");
}

#[test]
fn long_output_takes_little_room() {
    let place = Place::new();
    let mut processes = place.processes();
    let line = "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo last";
    let (status, output) = place.run(&mut processes, line);
    assert_eq!(status, CommandStatus::Exited(0));
    assert!(output.starts_with("first\nxxx") && output.ends_with("xxxlast\n"));
    let left_out = 100_000_011 - (1 << 20);
    assert!(output.contains(&format!("\n[... {left_out} bytes left out ...]\n")));
    let file = place.dir.join("output-0.txt");
    assert!(fs::metadata(&file).unwrap().len() < (1 << 20) + 100);
    assert_eq!(fs::read_to_string(file).unwrap(), output);
}

#[test]
fn key_does_not_reach_the_disk_and_a_prompt_appears_immediately() {
    let place = Place::new();
    let gate = place.fifo("gate");
    let mut processes = place.processes();
    let (start, rest) = GEMINI_KEY.split_at(9);
    let line = format!("printf 'a prompt> {start}'; cat gate; echo '{rest}'");
    let id = place.start(&mut processes, &line);
    // A possible beginning of the key is not shown.
    read_until(&mut processes, &id, |report| report.output == "a prompt> ");
    drop(OpenOptions::new().write(true).open(gate).unwrap());
    let shown = "a prompt> [REDACTED]Zz\n";
    read_until(&mut processes, &id, |report| report.output == shown);
    let kept = fs::read_to_string(place.dir.join("output-0.txt")).unwrap();
    assert_eq!(kept, shown);
}

/// A sandbox for commands in this place, with this key file and the folder `keys` hidden; `None` if bubblewrap does not
/// work.
fn sandbox(place: &Place, mode: SandboxMode, key_file: &Path) -> Option<Sandbox> {
    let policy = SandboxPolicy {
        root: place.dir.clone(),
        keys: place.dir.join("keys"),
        key_files: vec![key_file.to_owned()],
        git: place.dir.join(".git"),
        ..SandboxPolicy::default()
    };
    fs::create_dir(&policy.keys).unwrap();
    fs::write(policy.keys.join("key"), GEMINI_KEY).unwrap();
    let path = std::env::var_os("PATH");
    let found = Sandbox::find(path.as_deref(), program(), policy, mode);
    let usable = found.and_then(|sandbox| sandbox.try_out(&place.interrupt).map(|()| sandbox));
    if usable.is_err() {
        skipped("bubblewrap does not work on this machine");
    }
    usable.ok()
}

/// Saves a file as many editors do, by replacing it.
fn save(file: &Path, content: &str) {
    let new = file.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(&new, file).unwrap();
}

#[test]
fn a_key_file_may_be_saved_between_commands() {
    let place = Place::new();
    let home = tempfile::tempdir().unwrap();
    let config = home.path().canonicalize().unwrap().join("config.json");
    save(&config, "old secret");
    let Some(sandbox) = sandbox(&place, SandboxMode::Auto, &config) else {
        return;
    };
    let mut processes = place.processes_in(Some(sandbox));
    let line = format!("cat {} 2>/dev/null | wc -c", config.display());
    assert_eq!(place.run(&mut processes, &line).1.trim(), "0");
    save(&config, "new secret");
    let refused = |processes: &mut Processes<'_>| {
        let (file, command) = (place.output_file(), Invocation::Shell(&line));
        let ran = processes.run(command, LONG, &file);
        ran.unwrap_err().to_string()
    };
    assert_eq!(place.run(&mut processes, &line).1.trim(), "0");
    // The sandbox of a running command was set up with the old file.
    let id = place.start(&mut processes, "sleep 600");
    save(&config, "newer secret");
    let said = refused(&mut processes);
    assert!(said.contains("config.json` was created, moved"), "{said}");
    processes.kill(&id).unwrap();
    assert_eq!(place.run(&mut processes, &line).1.trim(), "0");
}

#[test]
fn a_key_file_that_was_carried_off_is_not_taken_for_saved() {
    let place = Place::new();
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let config = home.join("agent/config.json");
    fs::create_dir(home.join("agent")).unwrap();
    save(&config, "secret");
    let Some(sandbox) = sandbox(&place, SandboxMode::Auto, &config) else {
        return;
    };
    let mut processes = place.processes_in(Some(sandbox));
    let line = "cd $(dirname $0) && mv agent carried && mkdir agent && echo {} > agent/config.json";
    let line = line.replace("$0", &home.join("agent").display().to_string());
    place.run(&mut processes, &line);
    assert!(
        home.join("carried/config.json").exists(),
        "it was carried off"
    );
    let command = Invocation::Shell("true");
    let ran = processes.run(command, LONG, &place.output_file());
    assert!(matches!(ran, Err(ProcessError::Sandbox(_))), "{ran:?}");
}

#[test]
fn in_a_strict_sandbox_a_command_may_make_repositories_and_none_may_change_them() {
    let place = Place::new();
    let host = tempfile::tempdir().unwrap();
    fs::write(host.path().join("secret"), GEMINI_KEY).unwrap();
    fs::create_dir_all(place.dir.join("old/.git")).unwrap();
    let no_file = place.dir.join("keys/other");
    let Some(sandbox) = sandbox(&place, SandboxMode::Strict, &no_file) else {
        return;
    };
    let mut processes = place.processes_in(Some(sandbox));
    let line = "mkdir -p a/.git b c && echo x > a/.git/config && echo y > a/file";
    assert_eq!(place.run(&mut processes, line).0, CommandStatus::Exited(0));
    let line = "echo evil > a/.git/config";
    assert_ne!(place.run(&mut processes, line).0, CommandStatus::Exited(0));
    let line = "cat a/.git/config; echo z > a/file && mkdir a/.hg";
    let ran = place.run(&mut processes, line);
    assert_eq!(ran, (CommandStatus::Exited(0), "x\n".to_owned()));
    // Links show nothing that the sandbox hides.
    let line = format!(
        "ln -s {0} b/.git; echo gitdir: {0} > c/.git; mkdir d; ln -s /nowhere d/.git",
        host.path().display()
    );
    place.run(&mut processes, &line);
    let line = "cat b/.git/secret 2>/dev/null; cat $(cut -c9- c/.git)/secret 2>/dev/null; echo";
    assert_eq!(place.run(&mut processes, line).1, "\n");
    // Existing repositories stay as they were, and the root does not become one.
    let line = "mv old older && mkdir -p old/.git";
    place.run(&mut processes, line);
    let run = |processes: &mut Processes<'_>| {
        let (file, command) = (place.output_file(), Invocation::Shell("true"));
        processes.run(command, LONG, &file)
    };
    let ran = run(&mut processes);
    assert!(matches!(ran, Err(ProcessError::Sandbox(_))), "{ran:?}");
    fs::remove_dir_all(place.dir.join("old")).unwrap();
    fs::rename(place.dir.join("older"), place.dir.join("old")).unwrap();
    place.run(&mut processes, "mkdir .git");
    let ran = run(&mut processes);
    assert!(matches!(ran, Err(ProcessError::Sandbox(_))), "{ran:?}");
}

#[test]
fn in_a_sandbox_it_is_all_the_same() {
    let place = Place::new();
    let no_file = place.dir.join("keys/other");
    let Some(sandbox) = sandbox(&place, SandboxMode::Auto, &no_file) else {
        return;
    };
    let mut life = place.life_line();
    let mut processes = place.processes_in(Some(sandbox));
    let (status, output) = place.run(&mut processes, "pwd; cat keys/key | wc -c; exit 4");
    assert_eq!(status, CommandStatus::Exited(4));
    assert!(
        output.contains("No such file") && output.contains("\n0\n"),
        "{output}"
    );
    let (_, output) = place.run(&mut processes, "setsid sleep 600 & echo done");
    assert!(output.starts_with("done\n[1 process that"), "{output}");
    let id = place.start(&mut processes, STUBBORN);
    eventually("it starts", || place.has("started"));
    let report = processes.kill(&id).unwrap();
    assert!(report.status.is_some());
    assert!(is_over(&mut life), "something is left");
}

#[test]
fn a_command_that_ends_its_supervisor_is_ended() {
    let place = Place::new();
    let mut life = place.life_line();
    let mut processes = place.processes();
    let line = "exec 9>life; trap '' TERM; setsid sleep 641 & kill -9 $PPID; sleep 642";
    let (status, _) = place.run(&mut processes, line);
    assert_eq!(status, CommandStatus::Lost);
    assert!(is_over(&mut life), "something is left");
    // Another process's command is found when the search takes place.
    let line = "exec 9>life; touch started; sleep 643 & while test -e started; do sleep 0.01; done
        kill -9 $PPID; sleep 644";
    let id = place.start(&mut processes, line);
    eventually("it starts", || place.has("started"));
    assert!(!is_over(&mut life));
    fs::remove_file(place.dir.join("started")).unwrap();
    read_until(&mut processes, &id, |report| {
        report.status == Some(CommandStatus::Lost)
    });
    assert!(is_over(&mut life), "something is left");
}

/// Started by another test: its process is a subreaper without other children.
#[test]
#[ignore = "another test starts it"]
fn plays_a_session_whose_command_hides() {
    let Some(dir) = std::env::var_os("PLACE") else {
        return;
    };
    let place = Place::at(Path::new(&dir), Interrupt::never().unwrap());
    // Like a process that a container's entry point may leave behind.
    let mut earlier = Command::new("setsid");
    earlier.args(["sh", "-c", "touch earlier; exec sleep 603"]);
    let earlier = earlier
        .current_dir(&place.dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    eventually("it starts", || place.has("earlier"));
    subreaper::install().unwrap();
    let mut processes = place.processes();
    let other = place.start(&mut processes, "sleep 600");
    let own = Command::new("sleep").arg("601").spawn();
    let line = "(setsid sh -c 'exec 9>life; touch daemon; setsid sleep 645 & sleep 646' &)
        while ! test -e daemon; do sleep 0.01; done; kill -9 $PPID";
    let (status, _) = place.run(&mut processes, line);
    // The command may have ended before its supervisor.
    assert!(
        matches!(status, CommandStatus::Lost | CommandStatus::Exited(0)),
        "{status}"
    );
    fs::write(place.dir.join("seen"), "").unwrap();
    let report = processes.read(&other).unwrap();
    assert_eq!(report.status, None);
    place.run(&mut processes, "true");
    for mut own in [own.unwrap(), earlier] {
        assert!(own.try_wait().unwrap().is_none(), "it is no command's");
        own.kill().unwrap();
        own.wait().unwrap();
    }
    drop(processes);
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let children = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")));
    let children: String = children.map(Result::unwrap_or_default).collect();
    assert_eq!(children, "", "all were reaped");
}

#[test]
fn a_command_that_hides_and_ends_its_supervisor_is_ended_too() {
    let place = Place::new();
    let mut life = place.life_line();
    let mut holder = holder_whose_command_hides(&place, &[]).spawn().unwrap();
    eventually("it has run", || {
        place.has("seen") || holder.try_wait().unwrap().is_some()
    });
    assert!(is_over(&mut life), "something is left");
    assert!(holder.wait().unwrap().success());
}

/// Containers often start the program like this.
#[test]
fn it_is_ended_where_the_program_cannot_see_its_own_session() {
    if !bubblewrap_works() {
        return;
    }
    let place = Place::new();
    let mut life = place.life_line();
    let mut holder = holder_whose_command_hides(&place, &BUBBLEWRAP);
    let output = holder.stdout(Stdio::piped()).output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("1 passed"), "{output}");
    assert!(is_over(&mut life), "something is left");
}

fn holder_whose_command_hides(place: &Place, beneath: &[&str]) -> Command {
    holder_of(place, beneath, "plays_a_session_whose_command_hides", "")
}

/// Starts another process that holds commands, in the directory of a test of this one.
fn holder(place: &Place, role: &str) -> Child {
    let mut holder = holder_of(place, &[], "plays_a_session", role);
    holder.spawn().unwrap()
}

fn holder_of(place: &Place, beneath: &[&str], session: &str, role: &str) -> Command {
    let program = std::env::current_exe().unwrap();
    let mut words: Vec<OsString> = beneath.iter().map(OsString::from).collect();
    words.push(program.into());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .args(["--exact", &format!("processes::{session}"), "--ignored"])
        .env("PLACE", &place.dir)
        .env("ROLE", role)
        .stdout(Stdio::null());
    command
}

/// Started by `holder`, not a test of its own.
#[test]
#[ignore = "other tests start it"]
fn plays_a_session() {
    let (Some(dir), Some(role)) = (std::env::var_os("PLACE"), std::env::var_os("ROLE")) else {
        return;
    };
    let place = Place::at(Path::new(&dir), Interrupt::install().unwrap());
    let mut processes = place.processes();
    let id = place.start(&mut processes, STUBBORN);
    eventually("it starts", || place.has("started"));
    let line = "exec 9>front; touch ready; sleep 600";
    let ran = processes.run(Invocation::Shell(line), LONG, &place.output_file());
    assert!(matches!(ran, Ok((Ran::Stopped, _))), "{ran:?}");
    assert_eq!(role, "interrupted");
    let report = processes.read(&id).unwrap();
    assert_eq!(report.status, None, "the background stays");
    fs::write(place.dir.join("seen"), "").unwrap();
}

#[test]
fn nothing_is_left_when_the_program_is_killed() {
    let place = Place::new();
    let mut life = place.life_line();
    let mut holder = holder(&place, "killed");
    eventually("it starts", || place.has("ready"));
    assert!(!is_over(&mut life));
    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually("nothing is left", || is_over(&mut life));
}

#[test]
fn a_signal_ends_what_runs_in_the_foreground() {
    let place = Place::new();
    let mut life = place.life_line();
    let mut holder = holder(&place, "interrupted");
    eventually("it starts", || place.has("ready"));
    let pid = Pid::from_raw(i32::try_from(holder.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    assert!(holder.wait().unwrap().success());
    assert!(place.has("seen"));
    assert!(is_over(&mut life), "something is left");
}

fn arguments(name: &'static str, value: &str) -> Arguments {
    let mut arguments = Arguments::default();
    arguments.set(name, value.to_owned());
    arguments
}

#[test]
fn the_tools_tell_how_commands_stand() {
    let place = Place::new();
    let gate = place.fifo("gate");
    let processes = RefCell::new(place.processes());
    let output_files = || place.output_file();
    let command = |patience, shell| RunCommand {
        processes: &processes,
        patience,
        shell,
        output_files: &output_files,
    };
    let run = |tool: &dyn Tool, arguments: &Arguments| tool.run(arguments).unwrap().text;
    let tool = command(LONG, Shell::Full);
    let said = run(&tool, &arguments("command", "echo x; exit 2"));
    assert_eq!(said, "exit code: 2\nx\n");
    let said = run(&tool, &arguments("command", "kill -KILL $$"));
    assert_eq!(said, "signal: 9 (SIGKILL)\n(nothing was printed)\n");
    let failed = tool.run(&arguments("command", "echo \0"));
    assert!(matches!(failed, Err(ToolError::Failed(_))), "{failed:?}");

    let tool = command(Duration::ZERO, Shell::Full);
    let mut input = arguments("command", "echo x");
    input.set("timeout_seconds", 600);
    assert_eq!(run(&tool, &input), "exit code: 0\nx\n");
    let long = tool.run(&arguments("command", &"x".repeat(30 << 20)));
    let told =
        matches!(&long, Err(ToolError::Failed(told)) if told.message.contains("longer than 1 MiB"));
    assert!(told, "{:?}", long.err());

    let said = run(&tool, &arguments("command", "cat gate; echo end"));
    let id = said.lines().next().unwrap();
    let id = id.strip_prefix("Command backgrounded as ").unwrap();
    let list = BackgroundTool {
        action: BackgroundAction::List,
        processes: &processes,
    };
    let listed = run(&list, &Arguments::default());
    assert!(
        listed.starts_with(&format!("{id}: running for ")),
        "{listed}"
    );
    assert!(listed.ends_with(" s: cat gate; echo end\n"), "{listed}");
    let read = BackgroundTool {
        action: BackgroundAction::Read,
        processes: &processes,
    };
    drop(OpenOptions::new().write(true).open(gate).unwrap());
    eventually("it ends", || {
        let said = run(&read, &arguments("process", id));
        said.starts_with(&format!("{id}: exit code: 0, after ")) && said.ends_with("\nend\n")
    });
    let kill = BackgroundTool {
        action: BackgroundAction::Kill,
        processes: &processes,
    };
    let failed = kill.run(&arguments("process", "proc_000000"));
    let Err(ToolError::Failed(why)) = failed else {
        panic!("{failed:?}");
    };
    assert!(why.message.ends_with(&format!("known: {id}")), "{why}");
    run(&tool, &arguments("command", "sleep 600"));
    let second = processes.borrow_mut().list()[1].id.clone();
    let said = run(&kill, &arguments("process", &second));
    assert!(
        said.starts_with(&format!("{second}: signal: 15 (SIGTERM), after ")),
        "{said}"
    );
}

#[test]
fn a_restricted_command_is_run_without_a_shell_and_never_in_the_background() {
    let place = Place::new();
    let processes = RefCell::new(place.processes());
    let output_files = || place.output_file();
    let run = |line: &str, timeout| {
        let allowed = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            match words.first().map(String::as_str) {
                Some("echo" | "sleep") => Ok(AllowedCommand { words, timeout }),
                _ => Err("not allowed".to_owned()),
            }
        };
        let tool = RunCommand {
            processes: &processes,
            patience: LONG,
            shell: Shell::Restricted(&allowed),
            output_files: &output_files,
        };
        tool.run(&arguments("command", line))
    };
    let said = run("echo $HOME; ls", LONG);
    assert_eq!(said.unwrap().text, "exit code: 0\n$HOME; ls\n");
    let failed = run("rm -rf x", LONG);
    assert!(matches!(failed, Err(ToolError::Failed(why)) if why.message == "not allowed"));
    let said = run("sleep 600", Duration::ZERO).unwrap().text;
    assert!(
        said.starts_with("The command did not end within 0 s, and was ended."),
        "{said}"
    );
    assert!(!said.contains("proc_"), "{said}");
    // It is not listed later either.
    assert_eq!(processes.borrow_mut().list(), []);
}

#[test]
fn a_command_in_the_foreground_has_a_shell_unless_it_is_known_and_is_ended_when_it_takes_too_long()
{
    let place = Place::new();
    let processes = RefCell::new(place.processes());
    let output_files = || place.output_file();
    let run = |line: &str, patience| {
        let known = |command: &str| {
            let words = ["echo", "known"].map(str::to_owned).to_vec();
            let timeout = LONG;
            (command == "git status").then_some(AllowedCommand { words, timeout })
        };
        let tool = RunCommand {
            processes: &processes,
            patience,
            shell: Shell::Foreground(&known),
            output_files: &output_files,
        };
        tool.run(&arguments("command", line))
    };
    let said = run("echo a | tr a b; exit 3", LONG).unwrap();
    assert_eq!(
        (said.text.as_str(), said.command.code()),
        ("exit code: 3\nb\n", Some(3))
    );
    let said = run("git status", Duration::ZERO).unwrap();
    assert_eq!(said.text, "exit code: 0\nknown\n");
    let failed = run("echo \0", LONG);
    assert!(matches!(failed, Err(ToolError::Failed(_))), "{failed:?}");
    let said = run("echo begun; sleep 600 & sleep 600", Duration::ZERO).unwrap();
    assert!(
        said.text
            .starts_with("The command did not end within 0 s, and was ended."),
        "{}",
        said.text
    );
    assert_eq!(processes.borrow_mut().list(), []);
}
