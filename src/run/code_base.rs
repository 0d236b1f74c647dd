//! The code base as sent: the text files that git tracks, each preceded by a header.
//!
//! Reads the index and the files without starting git. Guarantees that nothing outside the project is included: each
//! file is read through handles below the root.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};

use super::error::RunError;
use crate::edit::Digest;
use crate::edit::beneath::{Beneath, PathEntry, Root};
use crate::model::tokens;
use crate::project::index::TrackedPaths;
use crate::project::rollup::{RollupFile, RollupState, header};
use crate::project::{CONFIG, LOGS};
use crate::secret::{Redactor, credentials};
use crate::sys::error::Error;
use crate::sys::files::{PathError, read_open};
use crate::sys::numbers::counted;
use crate::sys::parallel::in_parallel;
use crate::sys::text::line_end;

/// Maximum size of a file to roll up, in bytes: no model accepts more.
pub(super) const LARGEST: u64 = 64 << 20;
/// Lock files: written by tools to pin dependencies, and not worth sending.
const LOCK_FILES: &str = "Cargo.lock package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock \
    bun.lockb deno.lock poetry.lock pdm.lock uv.lock Pipfile.lock Gemfile.lock composer.lock go.sum mix.lock \
    flake.lock pubspec.lock Package.resolved";

/// A file included in the rollup.
pub struct Rolled {
    /// The file's path, relative to the root.
    pub path: String,
    /// The file's text.
    pub content: String,
    /// Approximate number of tokens, header included.
    pub tokens: u64,
}

impl Rolled {
    /// Creates the entry for the file at `path` with this text.
    pub fn of(path: String, content: String) -> Self {
        // The header is sent, too.
        let tokens = tokens::count(&header(&path)) + tokens::count(&content);
        Self {
            path,
            content,
            tokens,
        }
    }

    /// Returns the header, the text, and a newline if the text lacks a final one, so that the next header begins a
    /// line.
    pub(super) fn parts(&self) -> [Cow<'_, str>; 3] {
        [
            header(&self.path).into(),
            self.content.as_str().into(),
            line_end(&self.content).into(),
        ]
    }

    /// Returns the file's path, and the digest of its text.
    pub fn digest(&self) -> (String, Digest) {
        (self.path.clone(), Digest::of(self.content.as_bytes()))
    }
}

/// The path of a file that is left out, and the reason.
pub type LeftOut = (String, &'static str);

/// The files of a project that are rolled up, and those that are left out.
pub struct CodeBase {
    /// The files to roll up, ordered by path: at least one.
    pub files: Vec<Rolled>,
    /// Other files that git tracks, with the reasons they are left out.
    pub left_out: Vec<LeftOut>,
}

impl CodeBase {
    /// Reads all files that git tracks, or only those that are `named`; lock files are included only with `all`.
    ///
    /// # Errors
    /// Fails if the tracked files cannot be determined, a file cannot be read, or nothing is left to roll up.
    pub fn read(root: &Path, named: &[PathBuf], all: bool) -> Result<Self, Error> {
        let tracked = TrackedPaths::below(root).map_err(RunError::NoIndex)?;
        let paths = chosen(tracked.files().collect(), named)?;
        let (files, left_out) = read(root, &paths, all)?;
        Ok(Self::of(files, left_out)?)
    }

    /// Creates the code base of these files.
    ///
    /// # Errors
    /// Fails if there are no files.
    pub(super) fn of(files: Vec<Rolled>, left_out: Vec<LeftOut>) -> Result<Self, RunError> {
        let code_base = Self { files, left_out };
        if code_base.files.is_empty() {
            return Err(RunError::NothingToRollUp(code_base.left_out_text()));
        }
        Ok(code_base)
    }

    /// Returns the files that are `named`, or lie below a named directory, whether or not they are left out.
    ///
    /// # Errors
    /// Fails if a name matches nothing.
    pub fn named(&self, named: &[PathBuf]) -> Result<BTreeSet<String>, Error> {
        if named.is_empty() {
            return Ok(BTreeSet::new());
        }
        let files = self.files.iter().map(|file| &file.path);
        let paths = files.chain(self.left_out.iter().map(|(path, _)| path));
        Ok(chosen(paths.cloned().collect(), named)?
            .into_iter()
            .collect())
    }

    /// Leaves out the files that seem to hold credentials or secrets that `redactor` knows.
    pub fn without_credentials(self, redactor: &Redactor) -> Self {
        let Ok(halves) = in_parallel(self.files.len(), |range| {
            let holds = |file: &Rolled| !credentials::find("", &file.content, redactor).is_empty();
            Ok::<Vec<bool>, Infallible>(self.files[range].iter().map(holds).collect())
        });
        let mut holds = halves.into_iter().flatten();
        let (out, files): (Vec<_>, Vec<_>) =
            (self.files.into_iter()).partition(|_| holds.next().unwrap_or_default());
        let mut left_out = self.left_out;
        left_out.extend(out.into_iter().map(|file| (file.path, "with credentials")));
        Self { files, left_out }
    }

    /// Returns the files in the form that a rollup is parsed into.
    pub fn sections(&self) -> Vec<RollupFile<'_>> {
        let files = self.files.iter().map(|file| RollupFile {
            path: &file.path,
            content: &file.content,
            added: 0,
            state: RollupState::Same,
        });
        files.collect()
    }

    /// Writes the rollup.
    ///
    /// # Errors
    /// Fails if writing to `out` fails.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let mut parts = self.files.iter().flat_map(Rolled::parts);
        parts.try_for_each(|part| out.write_all(part.as_bytes()))
    }

    /// Returns the rollup as a string. Each file is freed once it has been copied, so that nothing is held twice.
    pub fn into_text(self) -> String {
        let sizes = self.files.iter().flat_map(Rolled::parts);
        let mut rollup = String::with_capacity(sizes.map(|part| part.len()).sum());
        for file in self.files {
            rollup.extend(file.parts());
        }
        rollup
    }

    /// Returns the approximate number of tokens.
    pub fn tokens(&self) -> u64 {
        self.files.iter().map(|file| file.tokens).sum()
    }

    /// Returns a summary: the numbers of files and tokens, and what is left out.
    pub fn summary(&self) -> String {
        format!(
            "{}, about {}; {} left out",
            counted(self.files.len() as u64, "file"),
            counted(self.tokens(), "token"),
            self.left_out_text()
        )
    }

    fn left_out_text(&self) -> String {
        if self.left_out.is_empty() {
            return "nothing".to_owned();
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, reason) in &self.left_out {
            *counts.entry(reason).or_default() += 1;
        }
        let reasons = counts
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"));
        reasons.collect::<Vec<_>>().join(", ")
    }
}

/// Returns the tracked files that are named or lie below a named directory.
fn chosen(tracked: Vec<String>, named: &[PathBuf]) -> Result<Vec<String>, Error> {
    if named.is_empty() {
        return Ok(tracked);
    }
    let clean: Vec<PathBuf> = named.iter().map(path_clean::clean).collect();
    let is_below =
        |path: &str, named: &Path| named == Path::new(".") || Path::new(path).starts_with(named);
    for (clean, named) in clean.iter().zip(named) {
        if !tracked.iter().any(|path| is_below(path, clean)) {
            return Err(RunError::NotTracked(named.clone()).into());
        }
    }
    let is_named = |path: &String| clean.iter().any(|named| is_below(path, named));
    Ok(tracked.into_iter().filter(is_named).collect())
}

/// Reads the text files, and lists those left out.
pub(super) fn read(
    root: &Path,
    paths: &[String],
    all: bool,
) -> Result<(Vec<Rolled>, Vec<LeftOut>), Error> {
    let handle = Root::open(root).map_err(PathError::of("read", root))?;
    let halves = in_parallel(paths.len(), |range| {
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        let mut beneath = Beneath::to_read(handle.clone());
        for path in &paths[range] {
            let content = unwanted(path, all).map_or_else(
                || content(beneath.entry(path)?, &root.join(path)),
                |reason| Ok(Err(reason)),
            );
            match content.map_err(PathError::of("read", path))? {
                Ok(content) => files.push(Rolled::of(path.clone(), content)),
                Err(reason) => left_out.push((path.clone(), reason)),
            }
        }
        Ok::<_, Error>((files, left_out))
    })?;
    let (files, left_out): (Vec<_>, Vec<_>) = halves.into_iter().unzip();
    Ok((
        files.into_iter().flatten().collect(),
        left_out.into_iter().flatten().collect(),
    ))
}

/// Returns the reason to leave a file out, judged by its path alone. Paths from an index are untrusted.
pub(super) fn unwanted(path: &str, all: bool) -> Option<&'static str> {
    let mut names = path.split('/');
    let is = |name: &str, known: &str| name.eq_ignore_ascii_case(known);
    if path.contains('\n') || names.clone().any(|name| matches!(name, "" | "." | "..")) {
        return Some("odd name");
    }
    let in_git = names.clone().any(|name| is(name, ".git"));
    let first = names.next().unwrap_or_default();
    if in_git || is(first, CONFIG) || is(first, LOGS) {
        return Some("protected");
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if credentials::is_secret_file(path) {
        return Some("secret");
    }
    (!all && LOCK_FILES.split(' ').any(|lock| lock == name)).then_some("lock file")
}

/// Returns the text of a file, or the reason it is left out.
fn content(entry: PathEntry, path: &Path) -> io::Result<Result<String, &'static str>> {
    let file = match entry {
        PathEntry::File(file) => file,
        PathEntry::Nothing => return Ok(Err("gone")),
        PathEntry::SomethingElse if path.is_dir() && !path.is_symlink() => {
            return Ok(Err("directory"));
        }
        PathEntry::SomethingElse => return Ok(Err("link")),
    };
    match read_open(file, LARGEST) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(Err("huge")),
        content => Ok(text(content?)),
    }
}

/// Returns the content as text, or the reason why it is not text.
pub(super) fn text(content: Vec<u8>) -> Result<String, &'static str> {
    let text = String::from_utf8(content).ok();
    text.filter(|text| !text.contains('\0')).ok_or("binary")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_hostile_index_names_nothing_that_is_rolled_up() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("a")).unwrap();
        for file in ["../outside", ".git/config", "a/b"] {
            fs::write(root.join(file), "text\n").unwrap();
        }
        let outside = dir.path().join("outside").to_str().unwrap().to_owned();
        for (path, expected) in [
            ("../outside", Some("odd name")),
            ("a/../../outside", Some("odd name")),
            (&outside, Some("odd name")),
            ("a//b", Some("odd name")),
            ("./a/b", Some("odd name")),
            ("a/b\n", Some("odd name")),
            (".git/config", Some("protected")),
            ("a/.GIT/config", Some("protected")),
            ("Agent-Config/gemini-key.txt", Some("protected")),
            ("a", Some("directory")),
            ("a/b/c", Some("link")),
            ("a/c", Some("gone")),
            ("a/b", None),
        ] {
            let (files, left_out) = read(&root, &[path.to_owned()], false).unwrap();
            let reason = left_out.first().map(|(_, reason)| *reason);
            assert_eq!(reason, expected, "{path}");
            assert_eq!(files.is_empty(), expected.is_some(), "{path}");
        }
    }
}
