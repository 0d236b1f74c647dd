//! Clones for tasks, and the results that a task leaves in its clone.
//!
//! Runs git so that it starts nothing that a repository configures: a clone has its own configuration, without hooks
//! and filters. A clone of a repository on this machine shares its objects; from any other repository, a single commit
//! is fetched. The user's own configuration, with their credentials, is read only for fetching.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::RawMode;

use super::error::FleetError;
use super::process;
use crate::project::repository::{DOT_GIT, Repository};
use crate::project::{CONFIG, LOGS};
use crate::record::result::StatRecord;
use crate::run::context::Context;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::git::Git;
use crate::sys::interrupt::Interrupt;

/// File with the location of the objects that a repository borrows.
const ALTERNATES: &str = "objects/info/alternates";
/// Names that git ignores in a clone, in addition to those that the repository ignores.
const IGNORED: &str = "/agent-config\n/logs\n";
/// Attributes that hide nothing: a repository's own cannot have text treated as binary.
const SHOWN: &str = "* !diff\n";
/// Arguments of git for committing a task's change.
const IDENTITY: &str = "-c user.name=code-commit -c user.email=code-commit@localhost \
    -c core.logAllRefUpdates=false -c gc.auto=0 -c maintenance.auto=false commit --quiet --no-verify --no-gpg-sign --cleanup=verbatim -m";
const DIFF: &str = "diff --cached --binary --full-index --no-ext-diff --no-textconv --no-renames";
const COUNT: &str = "diff --cached --numstat -z --no-ext-diff --no-textconv --no-renames";
/// Arguments of git for creating a repository that stores refs as files, whatever the default of the installed version.
const INIT: &str = "-c init.defaultRefFormat=files init --quiet --template=";
/// Arguments of git for checking out files without a reflog.
const CHECKOUT: &str = "-c core.logAllRefUpdates=false reset --quiet --hard";
const FETCH: &str =
    "fetch --quiet --no-tags --no-write-fetch-head --no-recurse-submodules --depth=1 --";
/// Maximum size of the list of commits in a shallow repository, in bytes.
const LARGEST_LIST: u64 = 16 * MIB;
/// Time limit of a git command, in seconds.
const LIMIT: u32 = 30 * 60;

/// Access to the repositories of a manifest.
pub struct Repositories {
    git: Git,
    interrupt: Interrupt,
    /// The directory to which paths are relative.
    base: PathBuf,
}

/// The content of a clone before its task begins.
pub struct Origin<'o> {
    /// The repository's path or URL.
    pub repository: &'o str,
    /// The commit at which the task begins.
    pub commit: &'o str,
    /// The branch to create at that commit.
    pub branch: &'o str,
    /// The script to add as `build.sh`, unless the repository has one.
    pub build: Option<&'o str>,
}

impl Repositories {
    /// Finds git.
    ///
    /// # Errors
    /// Fails if git is not installed.
    pub fn find(context: &Context<'_>, base: &Path) -> Result<Self, FleetError> {
        let found = Git::find(context.environment.os("PATH"), context.project.root());
        let place = base.display().to_string();
        let git = found.ok_or_else(|| fails(&place, "use")("git is not installed".to_owned()))?;
        Ok(Self {
            git,
            interrupt: context.interrupt.clone(),
            base: base.to_owned(),
        })
    }

    /// Returns the commit that a ref names.
    ///
    /// # Errors
    /// Fails if the repository cannot be reached, or has no such ref.
    pub fn commit(&self, repository: &str, reference: &str) -> Result<String, Error> {
        let fails = fails(repository, "find the ref of");
        if !is_url(repository) {
            let place = format!("--git-dir={}", self.local(repository)?.own.display());
            let name = format!("{reference}^{{commit}}");
            let fails = |problem: String| fails(format!("`{reference}`: {problem}"));
            let words = [&*place, "rev-parse", "--verify", "--end-of-options", &name];
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
        let bytes = self.output(&fails, command)?;
        let output = String::from_utf8_lossy(&bytes);
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

    /// Creates a clone at `directory`.
    ///
    /// # Errors
    /// Fails if the clone cannot be created.
    pub fn clone(&self, origin: &Origin<'_>, directory: &Path) -> Result<(), Error> {
        let (repository, commit) = (origin.repository, origin.commit);
        let fails = fails(repository, "clone");
        self.init(&fails, origin, directory)?;
        // A sandbox protects the directory only if it exists.
        let hooks = directory.join(".git/hooks");
        fs::create_dir_all(&hooks).map_err(PathError::of("make", hooks))?;
        if is_url(repository) {
            let words: Vec<&str> = FETCH.split(' ').chain([repository, commit]).collect();
            self.output(&fails, self.git.remote_command(directory, &words))?;
        } else {
            self.share(repository, directory)?;
        }
        let words = CHECKOUT.split(' ').chain([commit, "--"]);
        self.git(&fails, directory, &words.collect::<Vec<_>>())?;
        let build = origin.build;
        build.map_or(Ok(()), |build| lay_build(directory, build))
    }

    /// Creates an empty repository for a task.
    fn init(&self, fails: Fails<'_>, origin: &Origin<'_>, directory: &Path) -> Result<(), Error> {
        fs::create_dir_all(directory).map_err(PathError::of("make", directory))?;
        let branch = format!("--initial-branch={}", origin.branch);
        let mut init: Vec<&str> = INIT.split(' ').chain([&*branch]).collect();
        if origin.commit.len() > 40 {
            init.push("--object-format=sha256");
        }
        self.git(fails, directory, &init)?;
        // Ignore rules do not apply to files that the repository tracks.
        let build = origin.build.map_or("", |_| "/build.sh\n");
        let exclude = directory.join(".git/info/exclude");
        write(&exclude, 0o666, format!("{IGNORED}{build}").as_bytes())
    }

    /// Reverts all changes in a clone since its first commit, except those to files that git ignores.
    ///
    /// # Errors
    /// Fails if git fails, or may not run in the clone.
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
        write(&git.join(ALTERNATES), 0o666, objects.as_bytes())?;
        let shallow = common.join("shallow");
        let list = files::read(&shallow, Links::Followed, LARGEST_LIST)
            .if_there()
            .map_err(PathError::of("read", &shallow))?;
        list.map_or(Ok(()), |list| write(&git.join("shallow"), 0o666, &list))
    }

    /// Copies the repository of a new clone, which will be at `clone`, to `own`, out of reach of a sandboxed build. Its
    /// index lets git find later changes without reading unchanged files, since it contains the time of each file's
    /// last status change (ctime), which programs cannot set.
    ///
    /// # Errors
    /// Fails if the repository cannot be copied.
    #[expect(clippy::disallowed_methods, reason = "git has just written them")]
    pub fn set_apart(
        &self,
        origin: &Origin<'_>,
        (new, clone): (&Path, &Path),
        own: &Path,
    ) -> Result<(), Error> {
        self.hide_nothing(origin, clone, own)?;
        let (from, to) = (new.join(DOT_GIT), own.join(DOT_GIT));
        for name in ["HEAD", "config", "index", "info/exclude"] {
            let copied = fs::copy(from.join(name), to.join(name));
            copied.map_err(PathError::of("write", to.join(name)))?;
        }
        let branch = to.join("refs/heads").join(origin.branch);
        write(&branch, 0o666, format!("{}\n", origin.commit).as_bytes())
    }

    /// Makes a repository next to a clone use the clone's objects, and show all files.
    fn hide_nothing(&self, origin: &Origin<'_>, clone: &Path, own: &Path) -> Result<(), Error> {
        let dot_git = own.join(DOT_GIT);
        if is_url(origin.repository) {
            let objects = format!("{}\n", clone.join(".git/objects").display());
            let shallow = format!("{}\n", origin.commit);
            write(&dot_git.join(ALTERNATES), 0o666, objects.as_bytes())?;
            write(&dot_git.join("shallow"), 0o666, shallow.as_bytes())?;
        } else {
            self.share(origin.repository, own)?;
        }
        write(&dot_git.join("info/attributes"), 0o666, SHOWN.as_bytes())
    }

    /// Commits the changes since the clone's first commit, and writes them as a `patch`, which may be empty, and the
    /// branch as a `bundle`. Works in a repository at `own`, not in the clone's, where a build may have hidden files.
    /// That repository is the one at `apart`, or a new one if an earlier attempt has used it.
    ///
    /// # Errors
    /// Fails if git fails.
    pub fn change(
        &self,
        id: &str,
        origin: &Origin<'_>,
        (clone, apart, own): (&Path, &Path, &Path),
        message: &str,
        (patch, bundle): (&Path, &Path),
    ) -> Result<StatRecord, Error> {
        let fails = check_safe(id, clone)?;
        let commit = origin.commit;
        let is_new = fs::rename(apart, own).is_err();
        if is_new {
            self.init(&fails, origin, own)?;
            self.hide_nothing(origin, clone, own)?;
        }
        let git_dir = format!("--git-dir={}", own.join(DOT_GIT).display());
        let tree = format!("--work-tree={}", clone.display());
        let git = |words: &str, more: &[&str]| {
            let words: Vec<&str> = [&*git_dir, &tree]
                .into_iter()
                .chain(words.split(' '))
                .chain(more.iter().copied())
                .collect();
            self.git(&fails, clone, &words)
        };
        if is_new {
            git("reset --quiet", &[commit, "--"])?;
        }
        git("add --all", &[])?;
        // These are left out even if the repository tracks them.
        git("reset --quiet", &[commit, "--", CONFIG, LOGS])?;
        let found = own.join("change.patch");
        let output = format!("--output={}", found.display());
        git(DIFF, &[&output, commit, "--"])?;
        let size = found.metadata().map(|found| found.len());
        let mut stat = StatRecord::default();
        if size.map_err(PathError::of("read", &found))? > 0 {
            stat = counted(&git(COUNT, &[commit, "--"])?);
            git(IDENTITY, &[message])?;
            let range = format!("{commit}..{}", origin.branch);
            let bundle = bundle.display().to_string();
            git("bundle create --quiet", &[&bundle, &range])?;
        }
        fs::rename(&found, patch).map_err(PathError::of("write", patch))?;
        Ok(stat)
    }

    /// Finds a repository on this machine.
    fn local(&self, repository: &str) -> Result<Repository, FleetError> {
        let path = self.base.join(repository);
        let fails = fails(repository, "open");
        let real = path.canonicalize().map_err(|error| error.to_string());
        let found = real.and_then(|path| Repository::within(&path).map_err(|it| it.to_string()));
        found.map_err(fails)
    }

    /// Runs git with this program's settings, and returns its output.
    fn git(&self, fails: Fails<'_>, directory: &Path, words: &[&str]) -> Result<Vec<u8>, Error> {
        self.output(fails, self.git.command(directory, words))
    }

    /// Runs a git command, and returns its output.
    fn output(&self, fails: Fails<'_>, command: Command) -> Result<Vec<u8>, Error> {
        self.interrupt.check()?;
        let ended = ended(command, &self.interrupt);
        self.interrupt.check()?;
        Ok(ended.map_err(fails)?)
    }
}

/// Sums up git's counts of added and removed lines, one file a record; a binary file has none.
fn counted(numstat: &[u8]) -> StatRecord {
    let text = String::from_utf8_lossy(numstat);
    let mut stat = StatRecord::default();
    for file in text.split_terminator('\0') {
        let mut counts = file.split('\t').map(|count| count.parse().unwrap_or(0));
        stat.files += 1;
        stat.added += counts.next().unwrap_or(0);
        stat.removed += counts.next().unwrap_or(0);
    }
    stat
}

/// Creates an error from git's message.
type Fails<'f> = &'f dyn Fn(String) -> FleetError;

/// Runs a git command. Returns its output, or its last error message, possibly followed by advice.
///
/// # Errors
/// Fails if the command fails, or exceeds its time limit.
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

/// Returns whether a command has succeeded, its output and its errors. These are written to files, since a process that
/// the command leaves behind may keep pipes open.
fn outputs(mut command: Command, interrupt: &Interrupt) -> io::Result<(bool, Vec<u8>, Vec<u8>)> {
    let (output, errors) = (files::nameless()?, files::nameless()?);
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

/// Writes a script into a clone as `build.sh`, unless the clone has one.
fn lay_build(clone: &Path, script: &str) -> Result<(), Error> {
    let path = clone.join("build.sh");
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    write(&path, 0o755, script.as_bytes())
}

/// Checks that git runs nothing that the configuration of a task's clone names. Returns a function that creates errors
/// from git's messages about the clone.
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

/// Returns `true` if a repository is given as a URL or, for ssh, as a host and a path.
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

/// Writes one of the program's own files and creates its directory. A restarted task writes it again.
pub fn write(path: &Path, mode: RawMode, content: &[u8]) -> Result<(), Error> {
    let written = create(path, mode).and_then(|mut file| file.write_all(content));
    Ok(written.map_err(PathError::of("write", path))?)
}

/// Creates one of the program's own files, replacing any existing one.
pub fn create(path: &Path, mode: RawMode) -> io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::remove_file(path).if_there()?;
    files::create_new(path, mode)
}
