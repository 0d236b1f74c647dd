//! The project that the program runs in: its well-known paths, and the inputs that must be there.
//!
//! Reads the user's files and changes nothing. Guarantees that an input which is read is
//! whole UTF-8 text, that a key's content is in no error, and that what git tracks is taken neither for a key nor for
//! the table of models, which says where keys go: it may have come with the repository.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{Access, access};

use super::gitignore::{Case, GITIGNORE, IgnoreFile, IgnoreRules, LARGEST};
use super::index::{IndexProblem, TrackedPaths};
use super::repository::MEND_REPOSITORY;
use crate::secret::{ApiKey, KeyProblem, Redactor};
use crate::sys::environment::{Environment, KEY_VARIABLES, SHORTEST_SECRET};
use crate::sys::file_lock;
use crate::sys::files::{self, Links, MIB, PathError, is_missing, is_no_file, is_too_large};
use crate::sys::text::without_mark;

/// The folder, below the project's root, that holds a folder for each run.
pub const LOGS: &str = "logs";
/// The folder with the user's files.
pub const CONFIG: &str = "agent-config";

/// A project, by its root.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    /// The paths that git tracks in it, or why they are not known; read once.
    tracked: Arc<OnceLock<Result<TrackedPaths, String>>>,
}

/// The query, relative to the root.
pub const QUERY: &str = "agent-config/query.txt";
/// The rolled-up code base, relative to the root.
pub const ROLLUP: &str = "agent-config/codeRollup.txt";

/// The query that is written in an editor, relative to the root.
pub const DRAFT: &str = "agent-config/edited-query.txt";

/// The table of models, in `agent-config`.
const MODELS: &str = "models.json";

/// The query that `init` writes; nobody means it.
pub const EXAMPLE_QUERY: &str = "\
Replace this text with what is to be done. Say what the result should do, how you would see that it
does, and what must stay as it is. For example:

Add a flag --verbose that prints each file as it is read. Without the flag, nothing changes. Add a
test that runs the program with and without it.
";

/// Faults of a project's inputs.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ProjectProblem {
    /// There is no `.gitignore`.
    #[error("`.gitignore` is missing")]
    #[diagnostic(help(
        "run `code-commit init`, which sets the project up, or write one with the line `/agent-config`, so that keys are never committed"
    ))]
    NoGitignore,
    /// `.gitignore` does not ignore the folder with the keys.
    #[error("`.gitignore` does not ignore `/agent-config`")]
    #[diagnostic(help(
        "run `code-commit init`, which sets the project up, or add the line `/agent-config` at its end, so that keys are never committed"
    ))]
    NotIgnored,
    /// A file is missing.
    #[error("`{0}` is missing")]
    #[diagnostic(help("{}", to_make(.0)))]
    Missing(String),
    /// A file cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    #[diagnostic(help("{}", to_read(path, source)))]
    Unreadable { path: String, source: io::Error },
    /// A file is a directory, a pipe or the like.
    #[error("`{0}` is not a file")]
    #[diagnostic(help("make `{0}` a file"))]
    NotAFile(String),
    /// A file is not UTF-8.
    #[error("`{path}` is not UTF-8: see byte {offset}")]
    #[diagnostic(help("save `{path}` as UTF-8, and leave binary files out of it"))]
    NotUtf8 { path: String, offset: usize },
    /// The query has no words.
    #[error("`agent-config/query.txt` is empty")]
    #[diagnostic(help("write what is to be done into it"))]
    EmptyQuery,
    /// The query is the example.
    #[error("`agent-config/query.txt` is still the example that `code-commit init` wrote")]
    #[diagnostic(help("write what is to be done into it"))]
    ExampleQuery,
    /// A key file does not hold a key.
    #[error("the key in `{path}` {problem}")]
    #[diagnostic(help("put the API key alone on one line of `{path}`"))]
    Key { path: String, problem: KeyProblem },
    /// A file that only the user is to make may have come with the repository.
    #[error("git tracks `{tracked}`: `{path}` may have come with the repository, and is not used")]
    #[diagnostic(help(
        "if `{path}` is yours, run `git rm --cached {tracked}`; otherwise remove it"
    ))]
    Tracked { path: String, tracked: String },
    /// Git's index does not tell whether it tracks a file.
    #[error("whether git tracks `{path}` is not known: {problem}")]
    #[diagnostic(help("{MEND_REPOSITORY}"))]
    Index { path: String, problem: String },
    /// A directory that a run writes to cannot be written to.
    #[error("`{0}` cannot be written to")]
    #[diagnostic(help("make it writable, or leave what is in it out of the rollup"))]
    NotWritable(String),
    /// Another run is under way in the project.
    #[error("another run holds the project{}", file_lock::holder_words(*.process))]
    #[diagnostic(help("wait until it has ended, or end it"))]
    Held { process: Option<u32> },
    /// The project cannot be locked.
    #[error("cannot lock the project: {0}")]
    #[diagnostic(help("put the project on a file system that can lock"))]
    Unlockable(io::Error),
}

/// The way to a file of the user's that is missing.
fn to_make(path: &str) -> String {
    match path.rsplit('/').next() {
        Some("query.txt") => format!("write what is to be done into `{path}`, or say it by `-m`"),
        Some("codeRollup.txt") => format!(
            "run `./codeRollup.sh` or `code-commit rollup`, which write `{path}`, \
             or let the run roll up by `--rollup`"
        ),
        _ => format!("put the API key into `{path}`"),
    }
}

/// The way out of a file that cannot be read.
fn to_read(path: &str, error: &io::Error) -> String {
    match path.rsplit('/').next() {
        _ if is_too_large(error) => format!("make `{path}` smaller"),
        Some(".git" | "commondir") => MEND_REPOSITORY.to_owned(),
        _ => format!("make `{path}` readable"),
    }
}

impl Project {
    /// The project at `root`, an absolute path with links resolved.
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            tracked: Arc::default(),
        }
    }

    /// The directory that everything is relative to.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder with the user's files.
    pub fn config(&self) -> PathBuf {
        self.root.join(CONFIG)
    }

    /// The folder with a folder for each run.
    pub fn logs(&self) -> PathBuf {
        self.root.join(LOGS)
    }

    /// Directories for the journal of an application: beside the keys, where no build is to write; or,
    /// where that folder is mounted read-only, in `logs`.
    pub fn journal_directories(&self) -> [PathBuf; 2] {
        [self.config(), self.logs()]
    }

    /// The first of those that can be written to; the first of all, where none can.
    pub fn journal_directory(&self) -> PathBuf {
        let [beside_keys, in_logs] = self.journal_directories();
        let writable = |directory: &Path| access(directory, Access::WRITE_OK).is_ok();
        if !writable(&beside_keys) && writable(&in_logs) {
            in_logs
        } else {
            beside_keys
        }
    }

    /// Looks whether files can be made in a directory below the root, or where that is missing in the one that it would
    /// be made in.
    ///
    /// # Errors
    /// When they cannot.
    pub fn check_writable(&self, directory: &Path) -> Result<(), ProjectProblem> {
        let path = self.root.join(directory);
        let there = path.ancestors().find(|path| path.is_dir());
        let there = there.unwrap_or(&self.root);
        access(there, Access::WRITE_OK | Access::EXEC_OK).map_err(|_| {
            let inside = there.strip_prefix(&self.root).unwrap_or(there);
            let is_root = inside.as_os_str().is_empty();
            let named = if is_root { &self.root } else { inside };
            ProjectProblem::NotWritable(named.display().to_string())
        })
    }

    /// The consistency report.
    pub fn consistency_report(&self) -> PathBuf {
        self.config().join("consistency-report.txt")
    }

    /// Reads the query.
    ///
    /// # Errors
    /// When it is not there, or not text.
    pub fn query(&self) -> Result<String, ProjectProblem> {
        self.read_sent("query.txt")
    }

    /// Reads the rolled-up code base. The file's bytes become the text's: nothing is copied.
    ///
    /// # Errors
    /// When it is not there, or not text.
    pub fn rollup(&self) -> Result<String, ProjectProblem> {
        self.read_sent("codeRollup.txt")
    }

    /// Reads a file that is sent: it may be a link of the user's, and none that came with the repository.
    fn read_sent(&self, file: &str) -> Result<String, ProjectProblem> {
        let text = self.read_text(file)?;
        let config = self.config();
        if config.is_symlink() || config.join(file).is_symlink() {
            self.check_untracked(file)?;
        }
        Ok(text)
    }

    /// Reads the table of models, which is the user's.
    ///
    /// # Errors
    /// When it is not there, git tracks it, or it is not text.
    pub fn models(&self) -> Result<String, ProjectProblem> {
        let text = self.anybodys_models()?;
        self.check_untracked(MODELS)?;
        Ok(text)
    }

    /// Reads the table of models whoever has made it: for what is to be kept out of sight, and for nothing else.
    ///
    /// # Errors
    /// When it is not there, or not text.
    pub fn anybodys_models(&self) -> Result<String, ProjectProblem> {
        self.read_text(MODELS)
    }

    /// Reads a key file of `agent-config`, which is the user's.
    ///
    /// # Errors
    /// When it is not there, git tracks it, or it holds no key.
    pub fn key(&self, file: &str) -> Result<ApiKey, ProjectProblem> {
        let content = self.read(file)?;
        self.check_untracked(file)?;
        ApiKey::parse(&content).map_err(|problem| ProjectProblem::Key {
            path: format!("{CONFIG}/{file}"),
            problem,
        })
    }

    /// Looks whether the key files that are there are the user's: git tracks none of them.
    ///
    /// # Errors
    /// When git tracks one, or that cannot be told.
    pub fn check_keys_untracked<'k>(
        &self,
        key_files: impl IntoIterator<Item = &'k str>,
    ) -> Result<(), ProjectProblem> {
        self.there(key_files)
            .try_for_each(|file| self.check_untracked(file))
    }

    /// Those of these files of `agent-config` that are there.
    fn there<'k>(&self, files: impl IntoIterator<Item = &'k str>) -> impl Iterator<Item = &'k str> {
        let files = files.into_iter();
        files.filter(|file| self.config().join(file).symlink_metadata().is_ok())
    }

    fn check_untracked(&self, file: &str) -> Result<(), ProjectProblem> {
        let path = format!("{CONFIG}/{file}");
        let tracked = self.tracked.get_or_init(|| {
            TrackedPaths::below(&self.root).or_else(|problem| match problem {
                IndexProblem::NoRepository => Ok(TrackedPaths::default()),
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

    /// Looks whether git really ignores the folder with the keys: `.gitignore` has a line for it,
    /// and no later line takes that back.
    ///
    /// # Errors
    /// When that is not so.
    pub fn check_gitignore<'k>(
        &self,
        key_files: impl IntoIterator<Item = &'k str>,
    ) -> Result<(), ProjectProblem> {
        let path = self.root.join(GITIGNORE);
        // Git does not follow a link here.
        match files::read(&path, Links::Refused, LARGEST) {
            Ok(content) if ignores_config(&content) && self.hides(key_files)? => Ok(()),
            Ok(_) => Err(ProjectProblem::NotIgnored),
            Err(error) if is_missing(&error) => Err(ProjectProblem::NoGitignore),
            Err(error) if is_no_file(&error) => Err(ProjectProblem::NotAFile(GITIGNORE.into())),
            Err(source) => Err(ProjectProblem::Unreadable {
                path: GITIGNORE.into(),
                source,
            }),
        }
    }

    /// Looks whether git ignores the key files that are there, by whatever ignore file.
    ///
    /// # Errors
    /// When it does not, so that they could be committed.
    pub fn check_keys_ignored<'k>(
        &self,
        key_files: impl IntoIterator<Item = &'k str>,
    ) -> Result<(), ProjectProblem> {
        if self.hides(self.there(key_files))? {
            Ok(())
        } else if self.root.join(GITIGNORE).symlink_metadata().is_ok() {
            Err(ProjectProblem::NotIgnored)
        } else {
            Err(ProjectProblem::NoGitignore)
        }
    }

    /// Reports whether git ignores a directory of the project's. Where that cannot be told, it does not.
    pub fn ignores(&self, directory: &str) -> bool {
        let rules = IgnoreRules::load(&self.root);
        rules.is_ok_and(|rules| rules.is_ignored(directory, true).unwrap_or_default())
    }

    /// Reports whether git ignores the key files, ignore files in `agent-config` itself considered.
    fn hides<'k>(
        &self,
        key_files: impl IntoIterator<Item = &'k str>,
    ) -> Result<bool, ProjectProblem> {
        let unreadable = |error| self.unreadable(error);
        let rules = IgnoreRules::load(&self.root).map_err(unreadable)?;
        for file in key_files {
            let is_ignored = rules.is_ignored(&format!("{CONFIG}/{file}"), false);
            if !is_ignored.map_err(unreadable)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn unreadable(&self, error: PathError) -> ProjectProblem {
        let path = error.path.strip_prefix(&self.root).unwrap_or(&error.path);
        ProjectProblem::Unreadable {
            path: path.display().to_string(),
            source: error.source,
        }
    }

    /// A redactor for every key that is known: those in the key files, which need not be of the
    /// model in use, those in the environments, and `further` ones; and for the environments' other secrets.
    pub fn redactor<'f>(
        &self,
        environments: &[&Environment],
        key_files: impl IntoIterator<Item = &'f str>,
        further: impl IntoIterator<Item = String>,
    ) -> Redactor {
        let files = key_files
            .into_iter()
            .filter_map(|file| self.read(file).ok());
        let files = files.map(|content| String::from_utf8_lossy(&content).into_owned());
        let variables = environments.iter().flat_map(|environment| {
            let set = KEY_VARIABLES
                .iter()
                .filter_map(|name| environment.get(name));
            set.map(str::to_owned)
        });
        // Placeholders like `none` or `ollama` are common there.
        let given = variables
            .chain(further)
            .filter(|key| key.len() >= SHORTEST_SECRET);
        let secrets: Vec<String> = files.chain(given).collect();
        // A malformed file may hold several keys, a line each.
        let lines = secrets.iter().flat_map(|secret| secret.lines());
        // A path that is there says where a secret is, and is none.
        let is_path = |value: &str| value.starts_with('/') && Path::new(value).exists();
        let values = environments
            .iter()
            .flat_map(|environment| environment.secrets());
        let values: Vec<_> = values.filter(|value| !is_path(value)).collect();
        Redactor::with_values(lines.map(str::trim), values.iter().map(AsRef::as_ref))
    }

    fn read_text(&self, file: &str) -> Result<String, ProjectProblem> {
        String::from_utf8(self.read(file)?).map_err(|error| ProjectProblem::NotUtf8 {
            path: format!("{CONFIG}/{file}"),
            offset: error.utf8_error().valid_up_to(),
        })
    }

    fn read(&self, file: &str) -> Result<Vec<u8>, ProjectProblem> {
        let absolute = self.config().join(file);
        let path = format!("{CONFIG}/{file}");
        // These are the user's own, and so are links to them.
        match files::read(&absolute, Links::Followed, max_bytes(file)) {
            Ok(mut content) => {
                let mark = content.len() - without_mark(&content).len();
                content.drain(..mark);
                Ok(content)
            }
            Err(error) if is_no_file(&error) => Err(ProjectProblem::NotAFile(path)),
            Err(error) if is_missing(&error) => Err(ProjectProblem::Missing(path)),
            Err(source) => Err(ProjectProblem::Unreadable { path, source }),
        }
    }
}

/// The most bytes that a file of `agent-config` may have.
fn max_bytes(file: &str) -> u64 {
    match file {
        "query.txt" | "codeRollup.txt" => 128 * MIB,
        _ => MIB,
    }
}

/// Reports whether a line is one for `agent-config`, at the root or at any depth, or for all that is in it.
fn names_config(line: &str) -> bool {
    let line = line.strip_prefix('\u{feff}').unwrap_or(line).trim_end();
    let path = line.trim_start_matches("**/").trim_start_matches('/');
    let rest = path.strip_prefix(CONFIG);
    rest.is_some_and(|rest| ["", "/", "/*", "/**"].contains(&rest))
}

/// Reports whether a `.gitignore` of this content keeps everything in `agent-config` out of git, by a line
/// for that folder.
fn ignores_config(content: &[u8]) -> bool {
    let rules = IgnoreFile::parse(content);
    let verdict = |path: &str, is_dir| rules.verdict(path.as_bytes(), is_dir, Case::Sensitive);
    // Where the folder itself is not ignored, a later line may have taken back any file in it:
    // then each of ours must be ignored by itself, and so must one with any other name.
    let mut files = [
        "gemini-key.txt",
        "openai-key.txt",
        "query.txt",
        "codeRollup.txt",
        "any.other",
    ]
    .into_iter();
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
