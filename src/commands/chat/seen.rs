//! The files that the model has seen, so that it can be told of those that somebody else has changed since.
//!
//! Looks at their sizes and times, and reads none.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// State of a file: size and time to the nanosecond; `None` if it does not exist.
type Stamp = Option<(u64, i64, i64)>;

/// The files that the model has seen, and how they were then.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SeenFiles(BTreeMap<PathBuf, Stamp>);

impl SeenFiles {
    /// The model has seen a file, or has written it: it knows it as it is now. A directory is none.
    pub fn saw(&mut self, path: &Path) {
        if !path.is_dir() {
            self.0.insert(path.to_owned(), stamp(path));
        }
    }

    /// A command of the agent's own has run: what that has changed, it need not be told.
    pub fn restamp(&mut self) {
        for (path, known) in &mut self.0 {
            *known = stamp(path);
        }
    }

    /// Files that have changed; each change is returned once.
    pub fn changed(&mut self) -> Vec<PathBuf> {
        let mut changed = Vec::new();
        for (path, known) in &mut self.0 {
            let now = stamp(path);
            if now != *known {
                *known = now;
                changed.push(path.clone());
            }
        }
        changed
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_change_is_told_once_and_what_the_agent_changes_never() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, new] = ["a", "b", "new"].map(|name| dir.path().join(name));
        fs::write(&a, "1").unwrap();
        fs::write(&b, "1").unwrap();
        let mut seen = SeenFiles::default();
        seen.saw(dir.path());
        for path in [&a, &b, &new] {
            seen.saw(path);
        }
        assert!(seen.changed().is_empty());
        fs::write(&a, "22").unwrap();
        fs::write(&new, "").unwrap();
        assert_eq!(seen.changed(), [a.clone(), new.clone()]);
        assert!(seen.changed().is_empty());
        fs::remove_file(&b).unwrap();
        assert_eq!(seen.changed(), std::slice::from_ref(&b));
        fs::write(&a, "333").unwrap();
        seen.restamp();
        assert!(seen.changed().is_empty());
        fs::write(&a, "4444").unwrap();
        seen.saw(&a);
        assert!(seen.changed().is_empty());
    }
}
