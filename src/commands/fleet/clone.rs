//! Clones for tasks, and what a task leaves in its own.
//!
//! Starts git, which runs nothing that a repository configures: a clone has a configuration of its own, without hooks
//! and filters. A repository on this machine shares its objects; of another one, a single commit is fetched. The
//! user's own configuration, with their credentials, is read only to fetch.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::FleetError;
use super::process;
use crate::project::repository::{DOT_GIT, Repository};
use crate::project::{CONFIG, LOGS};
use crate::run::context::Context;
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::git::Git;
use crate::sys::interrupt::Interrupt;

/// What git ignores in a clone, besides what the repository ignores.
const IGNORED: &str = "/agent-config\n/logs\n";
/// Attributes that hide nothing: no text is taken for binary.
const SHOWN: &str = "* !diff\n";
/// The commits of a task.
const IDENTITY: &str = "-c user.name=code-commit -c user.email=code-commit@localhost \
    -c gc.auto=0 -c maintenance.auto=false commit --quiet --no-verify --no-gpg-sign --cleanup=verbatim -m";
const DIFF: &str = "diff --cached --binary --full-index --no-ext-diff --no-textconv --no-renames";
const FETCH: &str =
    "fetch --quiet --no-tags --no-write-fetch-head --no-recurse-submodules --depth=1 --";
/// Maximum size of a shallow repository's list of commits, in bytes.
const LARGEST_LIST: u64 = 16 * MIB;
/// Time limit of a command of git, in seconds.
const LIMIT: u32 = 30 * 60;

/// Access to the repositories of a manifest.
pub struct Repositories {
    git: Git,
    interrupt: Interrupt,
    /// The directory that paths are relative to.
    base: PathBuf,
}

/// The content of a clone before its task begins.
pub struct Origin<'o> {
    /// The repository's path or URL.
    pub repository: &'o str,
    /// The commit to begin at.
    pub commit: &'o str,
    /// The branch that is made there.
    pub branch: &'o str,
    /// The script that is laid in as `build.sh`, unless the repository has one.
    pub build: Option<&'o str>,
}

impl Repositories {
    /// Finds git.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(context: &Context<'_>, base: &Path) -> Result<Self, FleetError> {
        let git = Git::find(context.environment.os("PATH"), context.project.root());
        let git = git.ok_or_else(|| FleetError::Repository {
            action: "use",
            repository: base.display().to_string(),
            problem: "git is not installed".to_owned(),
        })?;
        Ok(Self {
            git,
            interrupt: context.interrupt.clone(),
            base: base.to_owned(),
        })
    }

    /// Returns the commit that a ref names.
    ///
    /// # Errors
    /// When the repository cannot be reached, or has no such ref.
    pub fn commit(&self, repository: &str, reference: &str) -> Result<String, Error> {
        let fails = fails(repository, "find the ref of");
        if !is_url(repository) {
            let git_dir = format!("--git-dir={}", self.local(repository)?.own.display());
            let name = format!("{reference}^{{commit}}");
            let words = ["rev-parse", "--verify", "--end-of-options", &name];
            let words = [&[&*git_dir], &words[..]].concat();
            let output = self.git(&fails, Path::new("/"), &words)?;
            return Ok(String::from_utf8_lossy(&output).trim().to_owned());
        }
        let is_commit =
            reference.len() >= 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_commit {
            return Ok(reference.to_lowercase());
        }
        let words = ["ls-remote", "--quiet", "--", repository];
        let command = self.git.remote_command(Path::new("/"), &words);
        let output = self.output(&fails, command)?;
        let output = String::from_utf8_lossy(&output);
        let named = |name: String| {
            let mut refs = output.lines().filter_map(|line| line.split_once('\t'));
            refs.find_map(|(commit, found)| (found == name).then(|| commit.to_owned()))
        };
        let names = [
            reference.to_owned(),
            format!("refs/tags/{reference}^{{}}"),
            format!("refs/tags/{reference}"),
            format!("refs/heads/{reference}"),
        ];
        let found = names.into_iter().find_map(named);
        Ok(found.ok_or_else(|| fails(format!("it has no ref `{reference}`")))?)
    }

    /// Makes a clone at `directory`.
    ///
    /// # Errors
    /// When the clone cannot be made.
    pub fn clone(&self, origin: &Origin<'_>, directory: &Path) -> Result<(), Error> {
        let (repository, commit) = (origin.repository, origin.commit);
        let fails = fails(repository, "clone");
        self.init(&fails, origin, directory)?;
        // A sandbox protects it only if it is there.
        let hooks = directory.join(".git/hooks");
        fs::create_dir_all(&hooks).map_err(PathError::of("make", hooks))?;
        if is_url(repository) {
            let words: Vec<&str> = FETCH.split(' ').chain([repository, commit]).collect();
            self.output(&fails, self.git.remote_command(directory, &words))?;
        } else {
            self.share(repository, directory)?;
        }
        let words = ["reset", "--quiet", "--hard", commit, "--"];
        self.git(&fails, directory, &words)?;
        let build = origin.build;
        build.map_or(Ok(()), |build| lay_build(directory, build))
    }

    /// Makes an empty repository for a task.
    fn init(&self, fails: Fails<'_>, origin: &Origin<'_>, directory: &Path) -> Result<(), Error> {
        fs::create_dir_all(directory).map_err(PathError::of("make", directory))?;
        let branch = format!("--initial-branch={}", origin.branch);
        let mut init = vec!["init", "--quiet", "--template=", &branch];
        if origin.commit.len() > 40 {
            init.push("--object-format=sha256");
        }
        self.git(fails, directory, &init)?;
        // What the repository tracks is not ignored.
        let build = origin.build.map_or("", |_| "/build.sh\n");
        let exclude = directory.join(".git/info/exclude");
        write(&exclude, format!("{IGNORED}{build}").as_bytes())
    }

    /// Takes back what has changed in a clone since the commit that it began with, but for what git ignores.
    ///
    /// # Errors
    /// When git fails, or may not be run in it.
    pub fn reset(&self, id: &str, clone: &Path, commit: &str) -> Result<(), Error> {
        let fails = check_safe(id, clone)?;
        self.git(&fails, clone, &["reset", "--quiet", "--hard", commit, "--"])?;
        self.git(&fails, clone, &["clean", "--quiet", "-ffd"])
            .map(drop)
    }

    /// Lets a clone use the objects of a repository on this machine.
    fn share(&self, repository: &str, clone: &Path) -> Result<(), Error> {
        let common = self.local(repository)?.common;
        let git = clone.join(DOT_GIT);
        let objects = format!("{}\n", common.join("objects").display());
        write(&git.join("objects/info/alternates"), objects.as_bytes())?;
        let shallow = common.join("shallow");
        let list = files::read(&shallow, Links::Followed, LARGEST_LIST).if_there();
        let list = list.map_err(PathError::of("read", &shallow))?;
        list.map_or(Ok(()), |list| write(&git.join("shallow"), &list))
    }

    /// Commits what differs from the commit that the clone began with, and returns it as a patch, which may be empty.
    /// The branch is written to `bundle`. A repository that is made at `own` takes the place of the clone's, in which a
    /// build may have hidden files.
    ///
    /// # Errors
    /// When git fails.
    pub fn change(
        &self,
        id: &str,
        origin: &Origin<'_>,
        (clone, own): (&Path, &Path),
        (message, bundle): (&str, &Path),
    ) -> Result<Vec<u8>, Error> {
        let fails = check_safe(id, clone)?;
        let (repository, commit) = (origin.repository, origin.commit);
        self.init(&fails, origin, own)?;
        let dot_git = own.join(DOT_GIT);
        if is_url(repository) {
            let objects = format!("{}\n", clone.join(".git/objects").display());
            write(&dot_git.join("objects/info/alternates"), objects.as_bytes())?;
            write(&dot_git.join("shallow"), format!("{commit}\n").as_bytes())?;
        } else {
            self.share(repository, own)?;
        }
        write(&dot_git.join("info/attributes"), SHOWN.as_bytes())?;
        let git_dir = format!("--git-dir={}", dot_git.display());
        let tree = format!("--work-tree={}", clone.display());
        let git = |words: &str, more: &[&str]| {
            let words = [&*git_dir, &tree].into_iter().chain(words.split(' '));
            let words: Vec<&str> = words.chain(more.iter().copied()).collect();
            self.git(&fails, clone, &words)
        };
        git("reset --quiet", &[commit, "--"])?;
        git("add --all", &[])?;
        // Even where the repository tracks them.
        git("reset --quiet", &[commit, "--", CONFIG, LOGS])?;
        let patch = git(DIFF, &[commit, "--"])?;
        if !patch.is_empty() {
            git(IDENTITY, &[message])?;
            let range = format!("{commit}..{}", origin.branch);
            let bundle = bundle.display().to_string();
            git("bundle create --quiet", &[&bundle, &range])?;
        }
        Ok(patch)
    }

    /// Finds a repository on this machine.
    fn local(&self, repository: &str) -> Result<Repository, FleetError> {
        let path = self.base.join(repository);
        let fails = fails(repository, "open");
        let path = path
            .canonicalize()
            .map_err(|error| fails(error.to_string()))?;
        let dot_git = path.join(DOT_GIT);
        let is_bare = dot_git.symlink_metadata().is_err();
        let found = Repository::of_git(if is_bare { &path } else { &dot_git });
        found.map_err(|error| fails(error.to_string()))
    }

    /// Runs git by the program's own settings, and returns its output.
    fn git(&self, fails: Fails<'_>, directory: &Path, words: &[&str]) -> Result<Vec<u8>, Error> {
        let command = self.git.command(directory, words);
        let command = command.ok_or_else(|| fails("a path is not UTF-8".to_owned()))?;
        self.output(fails, command)
    }

    /// Runs git, and returns its output.
    fn output(&self, fails: Fails<'_>, command: Command) -> Result<Vec<u8>, Error> {
        self.interrupt.check()?;
        let ended = ended(command, &self.interrupt);
        self.interrupt.check()?;
        Ok(ended.map_err(fails)?)
    }
}

/// Makes an error of the reason that git gives.
type Fails<'f> = &'f dyn Fn(String) -> FleetError;

/// Runs a command of git; returns its output, or the last of its errors, behind which it may give advice.
///
/// # Errors
/// When it fails, or has run for too long.
pub fn ended(command: Command, interrupt: &Interrupt) -> Result<Vec<u8>, String> {
    let ran = outputs(command, interrupt).map_err(|error| error.to_string());
    let (is_success, output, errors) = ran?;
    if is_success {
        return Ok(output);
    }
    let errors = String::from_utf8_lossy(&errors);
    let lines = || errors.trim_end().lines().rev();
    let reason = |line: &str| {
        let reason = line.strip_prefix("fatal: ");
        reason.or(line.strip_prefix("error: ")).map(str::to_owned)
    };
    let last = || lines().next().unwrap_or_default().to_owned();
    Err(lines().find_map(reason).unwrap_or_else(last))
}

/// Returns whether a command has succeeded, its output and its errors. Files take them: a process that it leaves behind
/// may keep them open.
fn outputs(mut command: Command, interrupt: &Interrupt) -> io::Result<(bool, Vec<u8>, Vec<u8>)> {
    let (output, errors) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(Stdio::null());
    command
        .stdout(output.try_clone()?)
        .stderr(errors.try_clone()?);
    let status = process::wait(command.spawn()?, interrupt, Some(LIMIT))?;
    Ok((status.success(), content(output)?, content(errors)?))
}

fn content(mut file: File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut content)?;
    Ok(content)
}

/// Lays a script into a clone as `build.sh`, unless the clone has one.
fn lay_build(clone: &Path, script: &str) -> Result<(), Error> {
    let path = clone.join("build.sh");
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    write(&path, script.as_bytes())?;
    let mode = fs::Permissions::from_mode(0o755);
    Ok(fs::set_permissions(&path, mode).map_err(PathError::of("write", &path))?)
}

/// Checks that git runs nothing in a task's clone that the clone's own configuration names; makes an error of what git
/// says there.
fn check_safe(id: &str, clone: &Path) -> Result<impl Fn(String) -> FleetError, FleetError> {
    let is_safe = Repository::of(clone).ok().flatten().is_some_and(|found| {
        found.top == clone
            && found.check_readable().is_ok()
            && found.may_filter().is_ok_and(|filters| !filters)
    });
    let fails = |problem| FleetError::Unsafe {
        id: id.to_owned(),
        problem,
    };
    let changed = || fails("a build has changed the settings of git there".to_owned());
    if is_safe { Ok(fails) } else { Err(changed()) }
}

/// Returns the URL of a repository, or its absolute path.
pub fn place(base: &Path, repository: &str) -> String {
    if is_url(repository) {
        return repository.to_owned();
    }
    let path = path_clean::clean(base.join(repository));
    path.display().to_string()
}

/// Returns whether a repository is named by a URL or, as ssh does, by a host and a path.
pub fn is_url(repository: &str) -> bool {
    let host = repository.split_once(':').map(|(host, _)| host);
    host.is_some_and(|host| !host.contains('/'))
}

fn fails<'r>(repository: &'r str, action: &'static str) -> impl Fn(String) -> FleetError + 'r {
    move |problem| {
        let repository = repository.to_owned();
        if is_url(&repository) {
            return FleetError::Remote {
                action,
                repository,
                problem,
            };
        }
        FleetError::Repository {
            action,
            repository,
            problem,
        }
    }
}

/// Writes a file of the program's own, and its directory.
pub fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        atomic_file::replace(path, |file| file.write_all(content))
    };
    Ok(write().map_err(PathError::of("write", path))?)
}
