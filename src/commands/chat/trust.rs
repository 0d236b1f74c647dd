//! The files of projects that the user trusts: `trusted.json` in the agent's home.
//!
//! Accesses only that file. A project's file is trusted as long as its content has the recorded digest. Until then,
//! nothing that it allows takes effect, so a cloned repository cannot grant itself permissions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::run::accounts::Accounts;
use crate::sys::home_file::{self, HomeFileProblem, first_version};
use crate::sys::sha256;

/// The file, in the agent's home.
pub const FILE: &str = "trusted.json";
/// Consequence of removing the file, for error messages.
const WITHOUT: &str = "no project's files are trusted then";

/// The digests of a project's files, `sha256:` and hexadecimal digits, by path relative to its root.
type Digests = BTreeMap<String, String>;

/// The complete content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    #[serde(deserialize_with = "first_version")]
    version: u64,
    /// Digests by project root, with links resolved.
    folders: BTreeMap<String, Digests>,
}

impl Default for Form {
    fn default() -> Self {
        Self {
            version: 1,
            folders: BTreeMap::new(),
        }
    }
}

/// The files of one project that its user trusts.
#[derive(Debug, Clone)]
pub struct TrustedFiles {
    home: PathBuf,
    root: String,
    digests: Digests,
}

impl TrustedFiles {
    /// Loads the trusted files of the project at `root`, a path with links resolved, from this home.
    ///
    /// # Errors
    /// Fails if the file cannot be read or contains a mistake.
    pub fn load(home: &Path, root: &Path) -> Result<Self, HomeFileProblem> {
        let root = root.to_string_lossy().into_owned();
        Ok(Self {
            home: home.to_owned(),
            digests: read(home)?.folders.remove(&root).unwrap_or_default(),
            root,
        })
    }

    /// Returns `true` if the user trusts this content of the file at `path`, which is relative to the project's root.
    pub fn has(&self, path: &str, content: &[u8]) -> bool {
        let known = self.digests.get(path);
        known.is_some_and(|known| *known == digest(content))
    }

    /// Records that the user trusts these files, given by path and content.
    ///
    /// # Errors
    /// Fails if the trust cannot be saved; the files are then not trusted.
    pub fn add<'f>(
        &mut self,
        files: impl IntoIterator<Item = (&'f str, &'f [u8])>,
    ) -> Result<(), HomeFileProblem> {
        let _lock = Accounts::lock(&self.home)?;
        let mut form = read(&self.home)?;
        let digests = form.folders.entry(self.root.clone()).or_default();
        let files = files.into_iter();
        digests.extend(files.map(|(path, content)| (path.to_owned(), digest(content))));
        let known = digests.clone();
        home_file::save_json(&self.home.join(FILE), &form)?;
        self.digests = known;
        Ok(())
    }
}

fn read(home: &Path) -> Result<Form, HomeFileProblem> {
    home_file::load_json(&home.join(FILE), WITHOUT)
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", sha256::of(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_trusted_at_one_path_of_one_project() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (Path::new("/p/one"), Path::new("/p/other"));
        let load = |root| TrustedFiles::load(home.path(), root).unwrap();
        let mut trusted = load(one);
        assert!(!trusted.has("a", b"x"));
        trusted.add([("a", &b"x"[..]), ("b", b"")]).unwrap();
        for trusted in [trusted, load(one)] {
            assert!(trusted.has("a", b"x") && trusted.has("b", b""));
            assert!(!trusted.has("a", b"y") && !trusted.has("c", b"x"));
        }
        assert!(!load(other).has("a", b"x"));
        // Entries added by another process are kept.
        let mut old = load(other);
        load(one).add([("c", &b"z"[..])]).unwrap();
        old.add([("a", &b"1"[..])]).unwrap();
        assert!(load(one).has("c", b"z") && load(one).has("a", b"x"));
        let content = std::fs::read(home.path().join(FILE)).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&content).unwrap();
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(json["version"], 1);
        assert_eq!(json["folders"]["/p/one"]["b"], empty);
    }

    #[test]
    fn a_mistake_is_reported_with_its_position_and_nothing_is_trusted() {
        for (content, said) in [
            ("{", "line 1"),
            ("[]", "an object is expected"),
            (r#"{"version": 2, "folders": {}}"#, "`version` must be 1"),
            (
                r#"{"version": 1, "folders": {}, "x": 1}"#,
                "unknown field `x`",
            ),
            (r#"{"version": 1, "folders": {"/p": []}}"#, "column"),
        ] {
            let home = tempfile::tempdir().unwrap();
            std::fs::write(home.path().join(FILE), content).unwrap();
            let problem = TrustedFiles::load(home.path(), Path::new("/p")).unwrap_err();
            assert!(problem.to_string().contains(said), "{problem}");
        }
    }
}
