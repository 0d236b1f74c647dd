//! The only module that builds commands to run git: for the demo's own repository, a project's history, an auditor's
//! inspections, and the clones of a fleet. Also the settings for git when other commands run it. Everything else about
//! a repository is read without git.
//!
//! Looks up programs, and starts git only to [list](listing) something. Guarantees that git is found through an absolute entry of `PATH` outside the
//! project. Except for [`remote_command`](Git::remote_command), it inherits no environment variables, and reads only
//! the repository's own configuration, with every setting overridden that names a program or a file for these commands.
//! Filters cannot be overridden, because the repository chooses their names: callers that work on an existing
//! repository must check that it configures none.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read as _, Seek as _};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use super::environment::Environment;
use super::files::{self, MIB};
use super::interrupt::Interrupt;
use super::programs::program_outside;

/// The complete environment of git. No protocol may be used, even if a repository's configuration allows it.
const ENVIRONMENT: &str = "GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_SYSTEM=/dev/null GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 \
    GIT_OPTIONAL_LOCKS=0 GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 GIT_TERMINAL_PROMPT=0 GIT_PAGER=cat \
    GIT_EDITOR=false";

/// Settings for any git that runs in an untrusted repository: reading files starts no program, and no directory of a
/// work tree is treated as a bare repository.
const SAFE: [&str; 2] = ["core.fsmonitor=false", "safe.bareRepository=explicit"];

/// Time limit of a command that lists something.
const LIMIT: Duration = Duration::from_secs(30);

/// Variable with the number of settings in the environment.
const COUNT: &str = "GIT_CONFIG_COUNT";

/// Further settings for this program's own git, which override a repository's configuration. They name no program and
/// no file that may be a pipe or endless, and they keep git from writing the index.
const SETTINGS: &str = "core.hooksPath=/dev/null core.pager=cat core.editor=false core.askPass=false core.sshCommand=false \
    core.gitProxy= core.alternateRefsCommand=false core.attributesFile=/dev/null \
    core.excludesFile=/dev/null diff.orderFile=/dev/null mailmap.file=/dev/null credential.helper= \
    diff.autoRefreshIndex=false diff.external= diff.submodule=short format.pretty=medium \
    gpg.program=false log.showSignature=false protocol.allow=never safe.directory=* \
    status.submoduleSummary=false submodule.recurse=false";

/// Protocols by which git may reach other repositories.
pub const PROTOCOLS: [&str; 5] = ["file", "git", "http", "https", "ssh"];

/// Variables that lead git to another repository.
const PLACES: &str = "GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_NAMESPACE GIT_OBJECT_DIRECTORY \
    GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// A repository for git to work on, independent of the current directory.
#[derive(Debug, Clone, Copy)]
pub struct GitPlace<'p> {
    /// The repository's own directory.
    pub own: &'p Path,
    /// Top of its work tree.
    pub top: &'p Path,
}

/// Paths of git, and of `env`, which clears git's environment when others start it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Git {
    env: String,
    git: String,
    /// The index to use in place of the repository's own.
    index: Option<String>,
}

impl Git {
    /// Finds git in `path`, a list of directories, skipping relative directories and programs in `project`, whose links
    /// must be resolved.
    pub fn find(path: Option<&OsStr>, project: &Path) -> Option<Self> {
        let find = |name| program_outside(name, path?, project);
        Some(Self {
            env: find("env")?,
            git: find("git")?,
            index: None,
        })
    }

    /// Uses the index in this file, if there is one, in place of the repository's own.
    pub fn with_index(self, index: Option<&str>) -> Self {
        let index = index.map(|path| format!("GIT_INDEX_FILE={path}"));
        Self { index, ..self }
    }

    /// Builds the words of a command that runs git with `arguments`; `None` if the repository's path is not UTF-8.
    pub fn words(&self, place: Option<GitPlace<'_>>, arguments: &[&str]) -> Option<Vec<String>> {
        let mut words = vec![self.env.clone(), "-i".to_owned()];
        words.extend(self.variables().map(str::to_owned));
        words.push(self.git.clone());
        words.extend(Self::settings().map(str::to_owned));
        if let Some(place) = place {
            words.push(format!("--git-dir={}", place.own.to_str()?));
            words.push(format!("--work-tree={}", place.top.to_str()?));
        }
        words.extend(arguments.iter().map(|&argument| argument.to_owned()));
        Some(words)
    }

    fn variables(&self) -> impl Iterator<Item = &str> {
        ENVIRONMENT.split(' ').chain(self.index.as_deref())
    }

    fn settings() -> impl Iterator<Item = &'static str> {
        let settings = SAFE.into_iter().chain(SETTINGS.split(' '));
        let options = ["--no-pager", "--no-optional-locks"].into_iter();
        options.chain(settings.flat_map(|setting| ["-c", setting]))
    }

    /// Builds a command that runs in `directory`, with no input and its output discarded.
    pub fn command(&self, directory: &Path, arguments: &[&str]) -> Command {
        let variables = self.variables().filter_map(|one| one.split_once('='));
        let mut command = Command::new(&self.git);
        command
            .args(Self::settings())
            .args(arguments)
            .env_clear()
            .envs(variables)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Builds a command that reaches other repositories with the user's own environment and configuration, which
    /// contain credentials and proxies. `directory` must not be in a repository other than the program's own.
    pub fn remote_command(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.git);
        for setting in SAFE.into_iter().chain(["core.hooksPath=/dev/null"]) {
            command.args(["-c", setting]);
        }
        for variable in PLACES.split(' ') {
            command.env_remove(variable);
        }
        command
            .args(arguments)
            .current_dir(directory)
            .env("GIT_ALLOW_PROTOCOL", PROTOCOLS.join(":"))
            .env("GIT_TERMINAL_PROMPT", "0");
        command
    }
}

/// Runs a command of [`Git::command`], and returns the first `largest` bytes of its output.
///
/// # Errors
/// Fails with git's message if the command fails, takes more than half a minute, or a signal arrives: an object that is
/// a pipe would keep git waiting.
pub fn listing(mut command: Command, largest: usize, interrupt: &Interrupt) -> io::Result<Vec<u8>> {
    // Git would wait for a pipe that nobody reads.
    let mut messages = files::nameless()?;
    let started = command.stdout(Stdio::piped()).stderr(messages.try_clone()?);
    let mut child = started.spawn()?;
    let stdout = child.stdout.take();
    let read = stdout.map(|stdout| output(stdout, largest, interrupt));
    let is_whole = matches!(&read, Some(Ok(output)) if output.len() < largest);
    if !is_whole {
        child.kill()?;
    }
    let status = child.wait()?;
    match read.unwrap_or_else(|| Ok(Vec::new())) {
        Ok(_) if is_whole && !status.success() => {
            let mut message = Vec::new();
            messages.rewind()?;
            messages.take(MIB).read_to_end(&mut message)?;
            Err(io::Error::other(
                String::from_utf8_lossy(&message).trim().to_owned(),
            ))
        }
        read => read,
    }
}

fn output(mut stdout: ChildStdout, largest: usize, interrupt: &Interrupt) -> io::Result<Vec<u8>> {
    let end = Instant::now() + LIMIT;
    let (mut output, mut buffer) = (Vec::new(), [0; 1 << 14]);
    while output.len() < largest {
        let left = end.saturating_duration_since(Instant::now());
        if !interrupt.poll(&[stdout.as_fd()], PollFlags::IN, Some(left))? {
            return Err(ErrorKind::TimedOut.into());
        }
        match stdout.read(&mut buffer)? {
            0 => break,
            size => output.extend(&buffer[..size]),
        }
    }
    output.truncate(largest);
    Ok(output)
}

/// Returns the variables that add [`SAFE`] to the settings that `environment` already passes to any command's git.
/// Empty if the number of those settings is invalid, which git itself reports.
pub fn safe_variables(environment: &Environment) -> Vec<(String, String)> {
    let count = environment.os(COUNT).map_or(Some(0), |count| {
        count.to_str()?.trim_start().parse::<u32>().ok()
    });
    let Some(count) = count else {
        return Vec::new();
    };
    let pairs = SAFE.iter().filter_map(|setting| setting.split_once('='));
    let numbered = (u64::from(count)..).zip(pairs);
    let mut variables: Vec<_> = numbered
        .flat_map(|(number, (key, value))| {
            [
                (format!("GIT_CONFIG_KEY_{number}"), key.to_owned()),
                (format!("GIT_CONFIG_VALUE_{number}"), value.to_owned()),
            ]
        })
        .collect();
    let total = u64::from(count) + SAFE.len() as u64;
    variables.push((COUNT.to_owned(), total.to_string()));
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::interrupt::Signal;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    #[test]
    fn every_git_gets_two_settings_more() {
        for (count, expected) in [
            ("", Some(0)),
            ("0", Some(0)),
            ("2", Some(2)),
            (" 7", Some(7)),
            ("4294967295", Some(4_294_967_295)),
            ("many", None),
            ("2x", None),
            ("-1", None),
        ] {
            let environment = Environment::of(&[(COUNT, count)]);
            let expected = expected.map_or_else(Vec::new, |first: u64| {
                [
                    (format!("GIT_CONFIG_KEY_{first}"), "core.fsmonitor".into()),
                    (format!("GIT_CONFIG_VALUE_{first}"), "false".into()),
                    (
                        format!("GIT_CONFIG_KEY_{}", first + 1),
                        "safe.bareRepository".into(),
                    ),
                    (format!("GIT_CONFIG_VALUE_{}", first + 1), "explicit".into()),
                    (COUNT.into(), (first + 2).to_string()),
                ]
                .to_vec()
            });
            assert_eq!(safe_variables(&environment), expected, "{count}");
        }
    }

    #[test]
    fn a_listing_ends_by_a_signal_and_has_a_maximum_size() {
        let interrupt = Interrupt::never().unwrap();
        let sh = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            command
        };
        let list = |script: &str, largest| listing(sh(script), largest, &interrupt);
        assert_eq!(list("echo 12; echo 3 >&2", 9).unwrap(), b"12\n");
        assert_eq!(list("echo 12345; exec sleep 60", 4).unwrap(), b"1234");
        let failed = list("echo 12; echo 3 >&2; false", 9).unwrap_err();
        assert_eq!(failed.to_string(), "3");
        interrupt.simulate(Signal::Term);
        let ended = list("exec sleep 60", 9).unwrap_err();
        assert_eq!(ended.kind(), ErrorKind::Interrupted);
    }

    #[test]
    fn git_is_not_taken_from_the_project_nor_by_a_relative_entry() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let project = dir.join("project");
        let tools = dir.join("tools");
        for directory in [&project, &tools] {
            fs::create_dir(directory).unwrap();
            for name in ["git", "env"] {
                let file = directory.join(name);
                fs::write(&file, "").unwrap();
                fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        let disguised = dir.join("disguised");
        symlink(&project, &disguised).unwrap();
        let linked = dir.join("linked");
        fs::create_dir(&linked).unwrap();
        for name in ["git", "env"] {
            symlink(project.join(name), linked.join(name)).unwrap();
        }
        let relative = PathBuf::from(".");
        let bad = [&relative, &project, &disguised, &linked];
        let found =
            |path: &[&PathBuf]| Git::find(Some(&std::env::join_paths(path).unwrap()), &project);
        assert_eq!(found(&bad), None);
        let git = found(&[&bad[..], &[&tools]].concat()).unwrap();
        assert_eq!(Path::new(&git.git), tools.join("git"));
        assert_eq!(Path::new(&git.env), tools.join("env"));
        assert_eq!(Git::find(None, &project), None);
    }

    #[test]
    fn no_variable_reaches_git_and_no_configuration_but_the_repositorys() {
        let dir = tempfile::tempdir().unwrap();
        let path = std::env::var_os("PATH");
        let git = Git::find(path.as_deref(), dir.path()).unwrap();
        let run = |arguments: &[&str]| {
            let words = git.words(None, arguments).unwrap();
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).current_dir(dir.path());
            let elsewhere = dir.path().join("elsewhere");
            command.env("GIT_DIR", &elsewhere).env("HOME", dir.path());
            command.env("GIT_CONFIG_COUNT", "1");
            command.env("GIT_CONFIG_KEY_0", "user.name");
            command.env("GIT_CONFIG_VALUE_0", "theirs");
            command.stdout(Stdio::piped()).output().unwrap()
        };
        fs::write(dir.path().join(".gitconfig"), "[user]\nname = theirs\n").unwrap();
        assert!(run(&["init", "--quiet"]).status.success());
        assert!(dir.path().join(".git").is_dir());
        assert!(!run(&["config", "user.name"]).status.success());
        let output = run(&["config", "--get", "core.fsmonitor"]).stdout;
        assert_eq!(output, b"false\n");
        // The same without `env`, whose arguments name the variables.
        let mut command = git.command(dir.path(), &["-c", "alias.told=!env", "told"]);
        let output = command.stdout(Stdio::piped()).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        let has = |variable: &str| told.lines().any(|line| line == variable);
        assert!(ENVIRONMENT.split_whitespace().all(has), "{told}");
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert!(
            !told.contains("CARGO_") && !told.contains("HOME="),
            "{told}"
        );
    }
}
