//! Finds the other names of a file: a directory mounted twice shows the same files in both places.
//!
//! Reads `/proc/self/mountinfo`. Guarantees that each returned name leads to the same file now. Does not find names
//! under mounts that this process cannot see, or hard links.

use std::ffi::OsString;

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::sys::files::{Links, MIB, is_same, read};

/// All mounts, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct MountTable(Vec<MountPoint>);

/// A mounted directory or file.
#[derive(Debug, PartialEq, Eq)]
struct MountPoint {
    /// Device number of its file system.
    device: Vec<u8>,
    /// Path within that file system.
    source: PathBuf,
    /// Path where it is mounted.
    point: PathBuf,
}

impl MountTable {
    /// Reads the current mounts; empty outside Linux.
    pub fn read() -> Self {
        let table = read(Path::new("/proc/self/mountinfo"), Links::Refused, 64 * MIB);
        Self::parse(&table.unwrap_or_default())
    }

    /// Returns the mount points below a directory, whose links must be resolved.
    pub fn below<'m>(&'m self, directory: &'m Path) -> impl Iterator<Item = &'m Path> {
        let points = self.0.iter().map(|mount| mount.point.as_path());
        points.filter(move |point| *point != directory && point.starts_with(directory))
    }

    fn parse(text: &[u8]) -> Self {
        Self(
            text.split(|byte| *byte == b'\n')
                .filter_map(mount)
                .collect(),
        )
    }

    /// Returns a path, whose links must be resolved, and the other names of the same file. If only something inside
    /// it is mounted elsewhere, the names of that part are returned as well.
    pub fn names(&self, path: &Path) -> Vec<PathBuf> {
        let mut names = vec![path.to_path_buf()];
        let Some((device, inner)) = self.place(path) else {
            return names;
        };
        for mount in self.0.iter().filter(|mount| mount.device == device) {
            let (name, original) = if let Ok(rest) = inner.strip_prefix(&mount.source) {
                (joined(&mount.point, rest), path.to_path_buf())
            } else if let Ok(part) = mount.source.strip_prefix(&inner) {
                (mount.point.clone(), joined(path, part))
            } else {
                continue;
            };
            // Another mount may cover either name.
            if !names.contains(&name) && is_same(&name, &original) {
                names.push(name);
            }
        }
        names
    }

    /// Returns the file system that contains a path, and the path within it.
    fn place(&self, path: &Path) -> Option<(&[u8], PathBuf)> {
        let holds = |mount: &&MountPoint| path.starts_with(&mount.point);
        // If several mounts share a mount point, the last one covers the others.
        let depth = |mount: &&MountPoint| mount.point.components().count();
        let mount = self.0.iter().filter(holds).max_by_key(depth)?;
        let rest = path.strip_prefix(&mount.point).ok()?;
        Some((&mount.device, joined(&mount.source, rest)))
    }
}

/// Parses a line such as `36 35 98:0 /source /point rw,noatime - ext4 /dev/root rw`.
fn mount(line: &[u8]) -> Option<MountPoint> {
    let mut words = line.split(|byte| *byte == b' ').skip(2);
    Some(MountPoint {
        device: words.next()?.to_vec(),
        source: unescaped(words.next()?),
        point: unescaped(words.next()?),
    })
}

/// Decodes the octal escapes of blanks, line ends and backslashes.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut parts = word.split(|byte| *byte == b'\\');
    let mut path = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(3));
        let octal = std::str::from_utf8(digits).ok();
        path.extend(octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()));
        path.extend(rest);
    }
    OsString::from_vec(path).into()
}

/// Joins two paths without leaving a trailing slash if `rest` is empty.
fn joined(path: &Path, rest: &Path) -> PathBuf {
    match rest.as_os_str().as_bytes() {
        [] => path.to_path_buf(),
        _ => path.join(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_path_is_found_in_its_file_system() {
        let table = MountTable::parse(
            b"21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
              22 21 8:2 /@home /home rw - btrfs /dev/sda2 rw\n\
              23 22 8:3 /a\\040b\\134c /home/me/d\\011e rw master:1 - ext4 /dev/sda3 rw\n\
              24 21 8:4 / /covered rw - tmpfs tmpfs rw\n\
              25 24 8:5 / /covered rw - tmpfs tmpfs rw\n\
              broken\n",
        );
        for (path, device, inner) in [
            ("/", "8:1", "/"),
            ("/homely", "8:1", "/homely"),
            ("/home/me", "8:2", "/@home/me"),
            ("/home/me/d\te", "8:3", "/a b\\c"),
            ("/home/me/d\te/f", "8:3", "/a b\\c/f"),
            ("/covered/x", "8:5", "/x"),
        ] {
            let place = table.place(Path::new(path));
            let expected = Some((device.as_bytes(), PathBuf::from(inner)));
            assert_eq!(place, expected, "{path}");
        }
        let below: Vec<_> = table.below(Path::new("/home")).collect();
        assert_eq!(below, [Path::new("/home/me/d\te")]);
    }

    #[test]
    fn other_names_are_those_that_lead_to_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir_all(dir.join("project/keys/part")).unwrap();
        // Links stand in for mounts, which need privileges.
        std::os::unix::fs::symlink(dir.join("project"), dir.join("second")).unwrap();
        std::os::unix::fs::symlink(dir.join("project/keys/part"), dir.join("some")).unwrap();
        fs::create_dir_all(dir.join("other/keys")).unwrap();
        let line = |source: &str, point: &str| {
            let (source, point) = (dir.join(source), dir.join(point));
            format!(
                "1 1 8:1 {} {} rw - ext4 x rw\n",
                source.display(),
                point.display()
            )
        };
        let text = [
            "1 1 8:1 / / rw - ext4 x rw\n".to_owned(),
            line("project", "second"),
            line("project/keys/part", "some"),
            // Covered by another mount, or gone.
            line("project", "other"),
            line("project", "missing"),
            line("project/src", "src"),
        ];
        let table = MountTable::parse(text.concat().as_bytes());
        let names = table.names(&dir.join("project/keys"));
        let expected = ["project/keys", "second/keys", "some"].map(|name| dir.join(name));
        assert_eq!(names, expected);
    }
}
