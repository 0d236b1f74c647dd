//! Clones for tasks, and what a task leaves in its own.
//!
//! Starts git, which runs nothing that a repository configures: a clone has a configuration of its own, without hooks
//! and filters. A repository on this machine shares its objects; of another one, a single commit is fetched. The
//! user's own configuration, with their credentials, is read only to fetch.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::FleetError;
use crate::project::repository::{DOT_GIT, Repository};
use crate::run::context::Context;
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::git::Git;

/// What git ignores in a clone, besides what the repository ignores.
const IGNORED: &str = "/agent-config\n/logs\n";
/// The commits of a task.
const IDENTITY: &str = "-c user.name=code-commit -c user.email=code-commit@localhost \
    -c gc.auto=0 -c maintenance.auto=false commit --quiet --no-verify --no-gpg-sign --cleanup=verbatim -m";
const DIFF: &str = "diff --cached --binary --full-index --no-ext-diff --no-textconv --no-renames";
/// Maximum size of a shallow repository's list of commits, in bytes.
const LARGEST_LIST: u64 = 16 * MIB;

/// Access to the repositories of a manifest.
pub struct Repositories {
    git: Git,
    /// The directory that paths are relative to.
    base: PathBuf,
}

/// The change that a task has left in its clone.
pub enum Change {
    /// Files differ, and are committed to the task's branch.
    Made(Vec<u8>),
    /// Nothing differs.
    None,
    /// The clone's own configuration was changed, so that git is not run in it.
    Unsafe,
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
        let base = base.to_owned();
        Ok(Self { git, base })
    }

    /// Returns the URL of a repository, or its absolute path.
    pub fn place(&self, repository: &str) -> String {
        if is_url(repository) {
            return repository.to_owned();
        }
        let path = path_clean::clean(self.base.join(repository));
        path.display().to_string()
    }

    /// Returns the commit that a ref names.
    ///
    /// # Errors
    /// When the repository cannot be reached, or has no such ref.
    pub fn commit(&self, repository: &str, reference: &str) -> Result<String, FleetError> {
        let fails = fails(repository, "find the ref of");
        if !is_url(repository) {
            let found = self.local(repository)?;
            let git_dir = format!("--git-dir={}", found.own.display());
            let name = format!("{reference}^{{commit}}");
            let words = [
                &*git_dir,
                "rev-parse",
                "--verify",
                "--end-of-options",
                &name,
            ];
            let output = self.git(Path::new("/"), &words).map_err(fails)?;
            return Ok(first_word(&output));
        }
        let is_commit =
            reference.len() >= 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_commit {
            return Ok(reference.to_lowercase());
        }
        let dereferenced = format!("refs/tags/{reference}^{{}}");
        let words = ["ls-remote", "--quiet", "--", repository];
        let command = self.git.remote_command(Path::new("/"), &words);
        let output = ended(command).map_err(&fails)?;
        let output = String::from_utf8_lossy(&output).into_owned();
        let named = |name: &str| {
            let refs = output.lines().filter_map(|line| line.split_once('\t'));
            let mut refs = refs.filter(|(_, found)| *found == name);
            refs.next().map(|(commit, _)| commit.to_owned())
        };
        let (tag, branch) = (
            format!("refs/tags/{reference}"),
            format!("refs/heads/{reference}"),
        );
        let names = [reference, &dereferenced, &tag, &branch];
        let found = names.into_iter().find_map(named);
        found.ok_or_else(|| fails(format!("it has no ref `{reference}`")))
    }

    /// Makes a clone at `directory`, with the commit on a branch of this name.
    ///
    /// # Errors
    /// When the clone cannot be made.
    pub fn clone(
        &self,
        repository: &str,
        commit: &str,
        branch: &str,
        directory: &Path,
    ) -> Result<(), Error> {
        let fails = fails(repository, "clone");
        fs::create_dir_all(directory).map_err(PathError::of("make", directory))?;
        let branch = format!("--initial-branch={branch}");
        let mut init = vec!["init", "--quiet", "--template=", &branch];
        if commit.len() > 40 {
            init.push("--object-format=sha256");
        }
        self.git(directory, &init).map_err(&fails)?;
        if is_url(repository) {
            let words = [
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                "--no-recurse-submodules",
                "--depth=1",
                "--",
                repository,
                commit,
            ];
            ended(self.git.remote_command(directory, &words)).map_err(&fails)?;
        } else {
            self.share(repository, directory)?;
        }
        write(&directory.join(".git/info/exclude"), IGNORED.as_bytes())?;
        let words = ["reset", "--quiet", "--hard", commit, "--"];
        Ok(self.git(directory, &words).map(drop).map_err(fails)?)
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

    /// Lays a script into a clone as `build.sh`, unless the clone has one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn lay_build(clone: &Path, script: &str) -> Result<(), Error> {
        let path = clone.join("build.sh");
        if path.symlink_metadata().is_ok() {
            return Ok(());
        }
        write(&path, script.as_bytes())?;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&path, mode).map_err(PathError::of("write", &path))?;
        let ignored = format!("{IGNORED}/build.sh\n");
        write(&clone.join(".git/info/exclude"), ignored.as_bytes())
    }

    /// Commits what differs from the commit that the clone began with, and returns it as a patch. The branch is written
    /// to `bundle`.
    ///
    /// # Errors
    /// When git fails.
    pub fn change(
        &self,
        clone: &Path,
        (commit, branch): (&str, &str),
        message: &str,
        bundle: &Path,
    ) -> Result<Change, FleetError> {
        let shown = clone.display().to_string();
        let fails = fails(&shown, "commit to");
        let found = Repository::of(clone).ok().flatten();
        let is_safe = found.is_some_and(|found| {
            found.top == clone
                && found.check_readable().is_ok()
                && found.may_filter().is_ok_and(|filters| !filters)
        });
        if !is_safe {
            return Ok(Change::Unsafe);
        }
        self.git(clone, &["add", "--all"]).map_err(&fails)?;
        let words: Vec<&str> = DIFF.split(' ').chain([commit, "--"]).collect();
        let patch = self.git(clone, &words).map_err(&fails)?;
        if patch.is_empty() {
            return Ok(Change::None);
        }
        // A task that was killed here has committed already.
        let soft = ["reset", "--quiet", "--soft", commit, "--"];
        self.git(clone, &soft).map_err(&fails)?;
        let words: Vec<&str> = IDENTITY.split(' ').chain([message]).collect();
        self.git(clone, &words).map_err(&fails)?;
        let bundle = bundle.display().to_string();
        let range = format!("{commit}..{branch}");
        let words = ["bundle", "create", "--quiet", &bundle, &range];
        self.git(clone, &words).map_err(&fails)?;
        Ok(Change::Made(patch))
    }

    /// Finds a repository on this machine.
    fn local(&self, repository: &str) -> Result<Repository, FleetError> {
        let path = self.base.join(repository);
        let fails = fails(repository, "open");
        let path = path
            .canonicalize()
            .map_err(|error| fails(error.to_string()))?;
        if path.join(DOT_GIT).symlink_metadata().is_ok() {
            let found = Repository::of(&path).map_err(|error| fails(error.to_string()))?;
            let found = found.filter(|found| found.top == path);
            return found.ok_or_else(|| fails("it is no repository".to_owned()));
        }
        let (own, common, top) = (path.clone(), path.clone(), path);
        Ok(Repository { top, own, common })
    }

    /// Runs git by the program's own settings, and returns its output.
    fn git(&self, directory: &Path, words: &[&str]) -> Result<Vec<u8>, String> {
        let command = self.git.command(directory, words);
        ended(command.ok_or("a path is not UTF-8")?)
    }
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

/// Runs a command of git; returns its output, or the last line of its errors.
///
/// # Errors
/// When it fails.
pub fn ended(mut command: Command) -> Result<Vec<u8>, String> {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let last = errors.trim_end().lines().next_back().unwrap_or_default();
    Err(last.trim_start_matches("fatal: ").to_owned())
}

fn first_word(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Writes a file of the program's own, and its directory.
pub fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        atomic_file::replace(path, |file| file.write_all(content))
    };
    Ok(write().map_err(PathError::of("write", path))?)
}
