//! A run's changes to the project's files, as recorded in `changes.json`, and the places where previous contents are
//! saved. Plain data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::fs::RawMode;
use serde::{Deserialize, Serialize};

use super::attributes::PERMISSIONS;
use super::beneath::split;
use super::digest::Digest;
use super::spelling::{self, PathScope};
use crate::project::CONFIG;
use crate::project::run_folder::REPLACED;
use crate::sys::defaults::is_default;
use crate::sys::identity::Stamp;

/// Version of the format of `changes.json`.
pub(super) const SCHEMA: u32 = 1;

/// A file as it was before a reply replaced or removed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    /// The name of the file that holds its bytes.
    pub kept: u32,
    /// True if that file is stored next to the keys because it contains one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside_keys: bool,
    /// The permission bits of its mode. Anyone may have altered a run's folder, so no owner is taken from it, and only
    /// those permissions that the disk confirms.
    #[serde(with = "octal")]
    pub mode: RawMode,
    /// The digest of its content.
    #[serde(flatten)]
    pub digest: Digest,
}

/// A file that a run has saved.
#[derive(Debug, Clone)]
pub struct SavedFile {
    /// The place of its bytes.
    pub path: PathBuf,
    /// The permission bits of its mode.
    pub mode: RawMode,
    /// The digest of its content.
    pub digest: Digest,
}

impl Before {
    /// Returns the file as saved by the run in `folder`, relative to `home`.
    pub fn saved(&self, home: &Path, folder: &str) -> SavedFile {
        SavedFile {
            path: home.join(saved_path(folder, self)),
            mode: self.mode,
            digest: self.digest,
        }
    }
}

/// Serializes mode bits in octal.
mod octal {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::{PERMISSIONS, RawMode};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde asks for a reference"
    )]
    pub fn serialize<S: Serializer>(mode: &RawMode, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&format_args!("{mode:o}"))
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(input: D) -> Result<RawMode, D::Error> {
        match RawMode::from_str_radix(&String::deserialize(input)?, 8) {
            Ok(mode) => Ok(mode & PERMISSIONS),
            Err(_) => Err(D::Error::custom("these are no mode bits")),
        }
    }
}

/// A run's changes to one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedChange {
    /// The file before the run; `None` if it did not exist.
    pub before: Option<Before>,
    /// The states that the run and its builds have left, each once and the latest last; `None` if the file did not
    /// exist.
    pub after: Vec<Option<Digest>>,
    /// The SHA-256 digest of the latest state, if no reply gives its bytes: a build has left it, or an agent wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The modification time of the latest state.
    #[serde(skip)]
    pub(super) stamp: Stamp,
}

/// A run's changes to the tree: the content of `changes.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeLog {
    pub(super) schema: u32,
    /// The scope of the paths.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) scope: PathScope,
    /// The changes by path, relative to the root.
    pub files: BTreeMap<String, LoggedChange>,
    /// Directories that were created.
    pub directories: BTreeSet<String>,
}

impl ChangeLog {
    /// Creates the log of a run that has not changed anything yet.
    pub(super) fn none() -> Self {
        Self {
            schema: SCHEMA,
            ..Self::default()
        }
    }

    /// Returns the first path that no run in this scope may change, if any.
    pub(super) fn forbidden(&self) -> Option<&String> {
        let mut paths = self.files.keys().chain(&self.directories);
        paths.find(|path| spelling::broken_rule(path, self.scope).is_some())
    }

    /// Returns whether every file is in its state before the run.
    pub fn are_none(&self) -> bool {
        self.files.values().all(|change| {
            let before = change.before.as_ref().map(|before| before.digest);
            change.after.last().copied().flatten() == before
        })
    }
}

/// Returns the path of the file that holds these bytes for the run in `folder`, relative to the root.
pub fn saved_path(folder: &str, before: &Before) -> String {
    format!("{}/{}", vault(folder, before.beside_keys), before.kept)
}

/// Returns the directory of saved files for the run in `folder`, relative to the root.
pub fn vault(folder: &str, beside_keys: bool) -> String {
    if beside_keys {
        format!("{CONFIG}/{REPLACED}/{}", split(folder).1)
    } else {
        format!("{folder}/{REPLACED}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_content_is_recorded_as_plain_json() {
        let before = Before {
            kept: 3,
            beside_keys: false,
            mode: 0o644,
            digest: Digest::of(b"x"),
        };
        let json = serde_json::to_value(&before).unwrap();
        assert_eq!(json["kept"], 3);
        assert_eq!(json["mode"], "644");
        assert_eq!(json["size"], 1);
        let mut record = json.clone();
        assert_eq!(serde_json::from_value::<Before>(json).unwrap(), before);
        record["mode"] = "6644".into();
        record["owner"] = serde_json::json!([0, 0]);
        assert_eq!(serde_json::from_value::<Before>(record).unwrap(), before);
        assert_eq!(saved_path("logs/run", &before), "logs/run/replaced/3");
        let beside_keys = Before {
            beside_keys: true,
            ..before
        };
        assert_eq!(
            saved_path("logs/run", &beside_keys),
            "agent-config/replaced/run/3"
        );
    }
}
