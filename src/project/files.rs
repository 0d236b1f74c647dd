//! The project that the program runs in: its well-known paths and its required inputs.
//!
//! Only reads the user's files. Guarantees that every input is complete UTF-8 text, that no error contains a key, and
//! that a file which git tracks is never used as a key or as the table of models, which determines where keys are
//! sent: it may have come with the repository.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{Access, access};

use super::gitignore::{Case, GITIGNORE, IgnoreFile, IgnoreRules, LARGEST};
use super::index::TrackedPaths;
use super::problem::ProjectProblem;
use super::repository::Repository;
use crate::secret::{ApiKey, Redactor, bare};
use crate::sys::environment::{Environment, SHORTEST_SECRET};
use crate::sys::excerpt::lossy;
use crate::sys::files::{self, Links, MIB, PathError, is_missing, is_no_file};
use crate::sys::text::{BYTE_ORDER_MARK, without_mark};

/// Folder in the project's root that contains one folder per run.
pub const LOGS: &str = "logs";
/// Folder with the user's files.
pub const CONFIG: &str = "agent-config";
/// Name of the user's flags in [`CONFIG`].
pub const USER_FLAGS: &str = "run.json";
/// Name of the project's own settings, which narrow what a change may do.
pub const PROJECT_GATE: &str = ".code-commit.json";

/// A project, identified by its root.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    directory: PathBuf,
    /// Directory that holds `agent-config` and `logs`: the root, unless that is a copy of the project.
    home: PathBuf,
    /// Directory for the journal of an edit, if it is neither of these.
    journal: Option<PathBuf>,
    /// Paths that git tracks in the project, or the reason why they are unknown; read only once.
    tracked: Arc<OnceLock<Result<TrackedPaths, String>>>,
}

/// Path of the query, relative to the root.
pub const QUERY: &str = "agent-config/query.txt";
/// Path of the rolled-up code base, relative to the root.
pub const ROLLUP: &str = "agent-config/codeRollup.txt";
/// Path of the code base's outline, relative to the root.
pub const OUTLINE: &str = "agent-config/codeOutline.txt";

/// Path of the query while it is written in an editor, relative to the root.
pub const DRAFT: &str = "agent-config/edited-query.txt";

/// Name of the table of models in `agent-config`.
const MODELS: &str = "models.json";

/// Name of the rates of models in trials, in `agent-config`.
pub const RATES: &str = "model-rates.json";

/// Maximum size in bytes of a file that is sent.
const LARGEST_SENT: u64 = 128 * MIB;

/// Example query that `init` writes. It is never sent.
pub const EXAMPLE_QUERY: &str = "\
Replace this text with what is to be done. Say what the result should do, how you would see that it
does, and what must stay as it is. For example:

Add a flag --verbose that prints each file as it is read. Without the flag, nothing changes. Add a
test that runs the program with and without it.
";

impl Project {
    /// Creates a project at `root`, whose user works in `directory`: absolute paths with links resolved.
    pub fn new(root: &Path, directory: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            directory: directory.to_path_buf(),
            home: root.to_path_buf(),
            journal: None,
            tracked: Arc::default(),
        }
    }

    /// Returns the same project in a scratch tree at `root`. The journal of its edits is kept elsewhere, so that
    /// recovery of the project itself does not find it.
    pub fn in_scratch(self, root: PathBuf, journal: PathBuf) -> Self {
        Self {
            root,
            journal: Some(journal),
            ..self
        }
    }

    /// Returns whether this is a scratch tree.
    pub fn is_scratch(&self) -> bool {
        self.journal.is_some()
    }

    /// Returns the directory that holds `agent-config` and `logs`.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the project's root, to which all paths are relative.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory whose sessions an agent continues: the root, or a directory below it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the folder with the user's files.
    pub fn config(&self) -> PathBuf {
        self.home.join(CONFIG)
    }

    /// Returns the folder that contains one folder per run.
    pub fn logs(&self) -> PathBuf {
        self.home.join(LOGS)
    }

    /// Returns the directories for the journal of an edit: next to the keys, where no build can write, or `logs` if
    /// that folder is mounted read-only.
    pub fn journal_directories(&self) -> [PathBuf; 2] {
        match &self.journal {
            Some(journal) => [journal.clone(), journal.clone()],
            None => [self.config(), self.logs()],
        }
    }

    /// Returns the first writable journal directory, or the first one if neither is writable.
    pub fn journal_directory(&self) -> PathBuf {
        let [beside_keys, in_logs] = self.journal_directories();
        let writable = |directory: &Path| access(directory, Access::WRITE_OK).is_ok();
        if !writable(&beside_keys) && writable(&in_logs) {
            in_logs
        } else {
            beside_keys
        }
    }

    /// Checks that files can be created in a directory, relative to the root, or, if it is missing, in the nearest
    /// existing parent.
    ///
    /// # Errors
    /// Fails if the directory is not writable.
    pub fn check_writable(&self, directory: &Path) -> Result<(), ProjectProblem> {
        let path = self.root.join(directory);
        let nearest = path.ancestors().find(|path| path.is_dir());
        let there = nearest.unwrap_or(&self.root);
        access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(|_| {
            let inside = there.strip_prefix(&self.root).unwrap_or(there);
            let is_root = inside.as_os_str().is_empty();
            let named = if is_root { &self.root } else { inside };
            ProjectProblem::NotWritable(named.display().to_string())
        })
    }

    /// Checks that one of the program's directories, if it exists, is a real directory and not a link.
    ///
    /// # Errors
    /// Fails if it exists and is not a directory.
    pub fn check_directory(&self, name: &str) -> Result<(), ProjectProblem> {
        match self.home.join(name).symlink_metadata() {
            Ok(found) if !found.is_dir() => Err(ProjectProblem::NotADirectory(name.to_owned())),
            _ => Ok(()),
        }
    }

    /// Returns the path of the consistency report.
    pub fn consistency_report(&self) -> PathBuf {
        self.config().join("consistency-report.txt")
    }

    /// Reads the query.
    ///
    /// # Errors
    /// Fails if the file is missing or not text.
    pub fn query(&self) -> Result<String, ProjectProblem> {
        self.read_sent("query.txt")
    }

    /// Reads the rolled-up code base, without copying it.
    ///
    /// # Errors
    /// Fails if the file is missing or not text.
    pub fn rollup(&self) -> Result<String, ProjectProblem> {
        self.read_sent("codeRollup.txt")
    }

    /// Reads a file that is sent to the model. The user may have linked it, but a tracked link is refused.
    fn read_sent(&self, file: &str) -> Result<String, ProjectProblem> {
        let text = text(file, self.read(file, LARGEST_SENT)?)?;
        let config = self.config();
        if config.is_symlink() || config.join(file).is_symlink() {
            self.check_untracked(file)?;
        }
        Ok(text)
    }

    /// Reads a file in `agent-config` that must be the user's own; `None` if it does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or git tracks it.
    pub fn users_file(&self, name: &str) -> Result<Option<Vec<u8>>, ProjectProblem> {
        match self.read(name, MIB) {
            Err(ProjectProblem::Missing(_)) => Ok(None),
            read => {
                self.check_untracked(name)?;
                read.map(Some)
            }
        }
    }

    /// Reads the table of models, which must be the user's own; `None` if it does not exist.
    ///
    /// # Errors
    /// Fails if the file is tracked by git, or not text.
    pub fn models(&self) -> Result<Option<String>, ProjectProblem> {
        let content = self.users_file(MODELS)?;
        content.map(|content| text(MODELS, content)).transpose()
    }

    /// Reads the table of models even if git tracks it. Use this only to find what to redact.
    ///
    /// # Errors
    /// Fails if the file is missing or not text.
    pub fn unverified_models(&self) -> Result<String, ProjectProblem> {
        text(MODELS, self.read(MODELS, MIB)?)
    }

    /// Reads a key file in `agent-config`, which must be the user's own.
    ///
    /// # Errors
    /// Fails if the file is missing, tracked by git, or does not contain a key.
    pub fn key(&self, file: &str) -> Result<ApiKey, ProjectProblem> {
        let content = self.read(file, MIB)?;
        self.check_untracked(file)?;
        ApiKey::of_file(&content).map_err(|problem| ProjectProblem::Key {
            path: format!("{CONFIG}/{file}"),
            problem,
        })
    }

    /// Checks that git tracks none of the existing key files, so that they are the user's own.
    ///
    /// # Errors
    /// Fails if git tracks one of them, or its index cannot be read.
    pub fn check_keys_untracked(&self, key_files: &[&str]) -> Result<(), ProjectProblem> {
        let mut there = self.there(key_files).into_iter();
        there.try_for_each(|file| self.check_untracked(file))
    }

    /// Returns the given files that exist in `agent-config`.
    fn there<'k>(&self, files: &[&'k str]) -> Vec<&'k str> {
        let is_there = |file: &&str| self.config().join(file).symlink_metadata().is_ok();
        files.iter().copied().filter(is_there).collect()
    }

    fn check_untracked(&self, file: &str) -> Result<(), ProjectProblem> {
        let path = format!("{CONFIG}/{file}");
        let tracked = self.tracked.get_or_init(|| {
            TrackedPaths::below(&self.root).or_else(|problem| match problem {
                ProjectProblem::NoRepository => Ok(TrackedPaths::default()),
                problem => Err(problem.to_string()),
            })
        });
        match tracked.as_ref().map(|tracked| tracked.find(&path)) {
            Ok(None) => Ok(()),
            Ok(Some(tracked)) => Err(ProjectProblem::Tracked {
                tracked: tracked.to_owned(),
                path,
            }),
            Err(problem) => Err(ProjectProblem::Index {
                problem: problem.clone(),
                path,
            }),
        }
    }

    /// Checks that git ignores the folder with the keys: `.gitignore`, or the repository's own `info/exclude`, has a
    /// line for it, and no later line overrides that.
    ///
    /// # Errors
    /// Fails if git does not ignore the folder, or `.gitignore` cannot be read.
    pub fn check_gitignore(&self, key_files: &[&str]) -> Result<(), ProjectProblem> {
        let path = self.root.join(GITIGNORE);
        // Git does not follow a link here.
        let read = files::read(&path, Links::Refused, LARGEST);
        let is_ignored = read.as_ref().is_ok_and(|content| ignores_config(content));
        if (is_ignored || self.is_excluded()) && self.hides(key_files)? {
            return Ok(());
        }
        match read {
            Ok(_) => Err(ProjectProblem::NotIgnored),
            Err(error) if is_missing(&error) => Err(ProjectProblem::NoGitignore),
            Err(error) => Err(unusable(GITIGNORE.to_owned(), error)),
        }
    }

    /// Returns whether the repository's own `info/exclude`, which a clone does not copy, has a line for the folder with
    /// the keys.
    fn is_excluded(&self) -> bool {
        let Ok(Some(found)) = Repository::of(&self.root) else {
            return false;
        };
        let read = || files::read(&found.common.join("info/exclude"), Links::Refused, LARGEST);
        found.top == self.root && read().is_ok_and(|content| ignores_config(&content))
    }

    /// Checks that git ignores the existing key files, by any ignore file.
    ///
    /// # Errors
    /// Fails if git does not ignore one of them, so that it could be committed by accident.
    pub fn check_keys_ignored(&self, key_files: &[&str]) -> Result<(), ProjectProblem> {
        if self.hides(&self.there(key_files))? {
            Ok(())
        } else if self.root.join(GITIGNORE).symlink_metadata().is_ok() {
            Err(ProjectProblem::NotIgnored)
        } else {
            Err(ProjectProblem::NoGitignore)
        }
    }

    /// Returns whether git ignores a directory of the project; `false` if that is unknown.
    pub fn ignores(&self, directory: &str) -> bool {
        let rules = IgnoreRules::load(&self.root);
        rules.is_ok_and(|rules| rules.is_ignored(directory, true).unwrap_or_default())
    }

    /// Returns whether git ignores the key files, taking ignore files in `agent-config` itself into account.
    ///
    /// # Errors
    /// Fails if a link leads to a key that git does not ignore there, or git's rules cannot be read.
    fn hides(&self, key_files: &[&str]) -> Result<bool, ProjectProblem> {
        let unreadable = |error| self.unreadable(error);
        let rules = IgnoreRules::load(&self.root).map_err(unreadable)?;
        for file in key_files {
            let path = format!("{CONFIG}/{file}");
            if !rules.is_ignored(&path, false).map_err(unreadable)? {
                return Ok(false);
            }
            if let Some(target) = self.target(&path)
                && !rules.is_ignored(&target, false).map_err(unreadable)?
            {
                return Err(ProjectProblem::LinkNotIgnored { path, target });
            }
        }
        Ok(true)
    }

    /// Returns the path below the root to which an existing path leads; `None` if that is elsewhere.
    fn target(&self, path: &str) -> Option<String> {
        let root = self.root.canonicalize().ok()?;
        let target = self.root.join(path).canonicalize().ok()?;
        Some(target.strip_prefix(root).ok()?.to_str()?.to_owned())
    }

    fn unreadable(&self, error: PathError) -> ProjectProblem {
        let path = error.path.strip_prefix(&self.root).unwrap_or(&error.path);
        ProjectProblem::Unreadable {
            path: path.display().to_string(),
            source: error.source,
        }
    }

    /// Creates a redactor for all known keys (in `further` and in the key files, which may belong to other models) and
    /// for the secrets in the environments.
    pub fn redactor<'f>(
        &self,
        environments: &[&Environment],
        key_files: impl IntoIterator<Item = &'f str>,
        further: impl IntoIterator<Item = String>,
    ) -> Redactor {
        let key_files = key_files.into_iter();
        let files = key_files.filter_map(|file| Some(lossy(self.read(file, MIB).ok()?)));
        // Short values are often placeholders, such as `none` or `ollama`.
        let is_long = |key: &String| key.len() >= SHORTEST_SECRET;
        let secrets: Vec<String> = files.chain(further.into_iter().filter(is_long)).collect();
        // The path of an existing file only refers to a secret.
        let is_path = |value: &str| value.starts_with('/') && Path::new(value).exists();
        let mut values: Vec<_> = environments.iter().flat_map(|all| all.secrets()).collect();
        values.retain(|value| !is_path(value));
        // A malformed file may contain several keys, one per line.
        let lines = secrets.iter().flat_map(|secret| secret.lines());
        let keys = lines.flat_map(|line| [line.trim(), bare(line)]);
        Redactor::with_values(keys, values.iter().map(AsRef::as_ref))
    }

    fn read(&self, file: &str, max_bytes: u64) -> Result<Vec<u8>, ProjectProblem> {
        let absolute = self.config().join(file);
        let path = format!("{CONFIG}/{file}");
        // These files, and links in their place, are the user's own.
        match files::read(&absolute, Links::Followed, max_bytes) {
            Ok(mut content) => {
                content.drain(..content.len() - without_mark(&content).len());
                Ok(content)
            }
            Err(error) if is_missing(&error) => Err(ProjectProblem::Missing(path)),
            Err(error) => Err(unusable(path, error)),
        }
    }
}

/// Returns the problem with an existing file that cannot be read.
fn unusable(path: String, source: io::Error) -> ProjectProblem {
    if is_no_file(&source) {
        ProjectProblem::NotAFile(path)
    } else {
        ProjectProblem::Unreadable { path, source }
    }
}

/// Returns the content of a file in `agent-config` as text.
fn text(file: &str, content: Vec<u8>) -> Result<String, ProjectProblem> {
    String::from_utf8(content).map_err(|error| ProjectProblem::NotUtf8 {
        path: format!("{CONFIG}/{file}"),
        offset: error.utf8_error().valid_up_to(),
    })
}

/// Returns whether a line of `.gitignore` names `agent-config`, at the root or at any depth, or all of its contents.
fn names_config(line: &str) -> bool {
    let path = line
        .trim_start_matches(BYTE_ORDER_MARK)
        .trim_start_matches("**/")
        .trim_start_matches('/');
    let rest = path.trim_end().strip_prefix(CONFIG);
    rest.is_some_and(|rest| ["", "/", "/*", "/**"].contains(&rest))
}

/// Returns whether a `.gitignore` with this content keeps everything in `agent-config` out of git, through a line
/// for that folder.
fn ignores_config(content: &[u8]) -> bool {
    let rules = IgnoreFile::parse(content);
    let verdict = |path: &str, is_dir| rules.verdict(path.as_bytes(), is_dir, Case::Sensitive);
    // If the folder itself is not ignored, a later line may have re-included any file in it. So each of
    // the known files must be ignored, and so must a file with any other name.
    let mut files = "gemini-key.txt openai-key.txt query.txt codeRollup.txt any.other".split(' ');
    let is_file_ignored = |file: &str| verdict(&format!("{CONFIG}/{file}"), false) == Some(true);
    String::from_utf8_lossy(content).lines().any(names_config)
        && verdict(CONFIG, true).unwrap_or_else(|| files.all(is_file_ignored))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gitignore_must_really_ignore_the_config_folder() {
        for (content, expected) in [
            ("/agent-config\n", true),
            ("agent-config", true),
            ("agent-config/", true),
            ("/agent-config/\r\n", true),
            ("target\r\n/agent-config\r\n", true),
            ("\u{feff}/agent-config\n", true),
            ("**/agent-config\n", true),
            ("/agent-config/*\n", true),
            ("/agent-config/**\n", true),
            ("/agent-config   \n", true),
            ("/agent-config\n!/agent-config/query.txt\n", true), // git: no way back below a folder
            ("!/agent-config\n/agent-config\n", true),
            ("", false),
            ("# /agent-config\n", false),
            ("#/agent-config\n", false),
            ("/agent-configs\n", false),
            ("/agent-config.bak\n", false),
            ("/sub/agent-config\n", false),
            ("\\/agent-config\n", false),
            ("/Agent-Config\n", false),
            (" /agent-config\n", false),
            ("/agent-config\n!/agent-config\n", false),
            ("/agent-config\n!agent-config/\n", false),
            ("/agent-config/*\n!/agent-config/gemini-key.txt\n", false),
            ("/agent-config/*.txt\n", false),
            ("*\n", false),
            ("!/agent-config\n", false),
        ] {
            assert_eq!(ignores_config(content.as_bytes()), expected, "{content:?}");
        }
    }
}
