//! The attributes of a file other than its content (mode, owner and group, access control list, user-defined extended
//! attributes), and their transfer to the file that replaces it.
//!
//! Touches only the given files. Guarantees that the new file never grants more access than the old one, even if some
//! attributes cannot be copied; the loss is then reported.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use rustix::fs::{
    RawMode, Stat, XattrFlags, fgetxattr, fgetxattr_query, flistxattr, flistxattr_query,
    fremovexattr, fsetxattr,
};
use rustix::io::Errno;

use super::disk;
use crate::sys::files::{Links, open_regular};

/// The mode bits that a file keeps when its content changes. The set-user-ID and set-group-ID bits are cleared, as they
/// are by any write to the file.
pub const PERMISSIONS: RawMode = 0o777;
/// The mode bits kept if the group or access control list cannot be copied: with a list, the group bits are the maximum
/// granted to any entry in it.
const WITHOUT_GROUP: RawMode = 0o707;

/// The attribute that holds the access control list.
const ACL: &str = "system.posix_acl_access";
/// The prefix of user-defined attributes.
const USER: &str = "user.";
/// The attribute that holds a program's capabilities, which must not pass to another program.
const CAPABILITIES: &str = "security.capability";

/// The mode bits, owner and group that a file should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// The mode bits.
    pub mode: RawMode,
    /// User and group ID.
    pub owner: (u32, u32),
}

impl Rights {
    /// Returns the permissions and owner in this stat.
    pub fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode & PERMISSIONS,
            owner: (stat.st_uid, stat.st_gid),
        }
    }

    /// Returns the permissions and owner in these metadata.
    pub fn of_metadata(metadata: &Metadata) -> Self {
        Self {
            mode: metadata.mode() as RawMode & PERMISSIONS,
            owner: (metadata.uid(), metadata.gid()),
        }
    }
}

/// Gives `new`, which is still private, the attributes of `old`, whose mode bits are `mode`, and these `rights`.
/// Returns what could not be copied, as sentence fragments to follow the file's name.
///
/// # Errors
/// Fails if the mode of `new` cannot be set.
pub fn preserve_metadata(
    old: &File,
    mode: RawMode,
    new: &File,
    rights: Rights,
) -> io::Result<Vec<String>> {
    let mut lost = Vec::new();
    if mode & 0o7000 != 0 {
        lost.push("has lost its set-user-ID, set-group-ID or sticky bit".to_owned());
    }
    let mut mode = rights.mode & PERMISSIONS;
    // The owner is kept if this process may change it. It comes first because changing the owner clears mode bits.
    let (user, group) = rights.owner;
    let given = fchown(new, Some(user), Some(group)).or_else(|_| fchown(new, None, Some(group)));
    if let Err(error) = given {
        mode &= WITHOUT_GROUP;
        lost.push(format!("has lost its group: {error}"));
    }
    match copy_attributes(old, new) {
        Ok(true) => {}
        Ok(false) => lost.push("has lost the capabilities of a program".to_owned()),
        Err(error) => {
            mode &= WITHOUT_GROUP;
            lost.push(format!(
                "has lost extended attributes or its access control list: {error}"
            ));
        }
    }
    disk::set_mode(new, mode)?;
    Ok(lost)
}

/// Gives `new` the attributes of the file at `path`, whose metadata are `there`, outside of any tree.
///
/// # Errors
/// Fails if the mode of `new` cannot be set.
pub fn replace(path: &Path, there: &Metadata, new: &File) -> io::Result<Vec<String>> {
    let rights = Rights::of_metadata(there);
    if let Ok(Some(old)) = open_regular(path, Links::Followed) {
        return preserve_metadata(&old, there.mode() as RawMode, new, rights);
    }
    // A file that cannot be read may still be replaced.
    disk::set_mode(new, rights.mode & WITHOUT_GROUP)?;
    Ok(vec![
        "has lost its group's rights and extended attributes".to_owned(),
    ])
}

/// Copies the access control list and user-defined extended attributes. Returns false if the old file has capabilities,
/// which are not copied.
///
/// # Errors
/// Fails if an attribute could not be copied. The list may then differ from the old file's, so the mode must grant the
/// group nothing.
fn copy_attributes(old: &File, new: &File) -> io::Result<bool> {
    let names = names(old)?;
    if !names.iter().any(|name| name == ACL) && fgetxattr_query(new, ACL).is_ok() {
        // The directory has a default list, which new files inherit.
        fremovexattr(new, ACL)?;
    }
    let is_copied = |name: &&String| *name == ACL || name.starts_with(USER);
    for name in names.iter().filter(is_copied) {
        let mut value = vec![0; fgetxattr_query(old, name.as_str())?];
        if !value.is_empty() {
            let length = fgetxattr(old, name.as_str(), &mut value[..])?;
            value.truncate(length);
        }
        fsetxattr(new, name.as_str(), &value, XattrFlags::empty())?;
    }
    Ok(!names.iter().any(|name| name == CAPABILITIES))
}

/// Returns the names of a file's extended attributes; empty if the file system does not support them.
fn names(file: &File) -> io::Result<Vec<String>> {
    let mut list = match flistxattr_query(file) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        length => vec![0; length?],
    };
    let length = flistxattr(file, &mut list[..])?;
    let names = list[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned());
    Ok(names.collect())
}
