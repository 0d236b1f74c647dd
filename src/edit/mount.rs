//! The mounts that files are on. Reads the disk.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A device, and the mount ID if the system reports it.
pub type Mount = (u64, Option<u64>);

/// Returns the mount that a path is on; the device alone would not distinguish bind mounts.
pub fn mount_of(path: &Path, metadata: &Metadata) -> io::Result<Mount> {
    Ok((metadata.dev(), mount_id(path)?))
}

#[cfg(target_os = "linux")]
fn mount_id(path: &Path) -> io::Result<Option<u64>> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    use rustix::io::Errno;
    match statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID) {
        Ok(stat) => {
            let known = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
            Ok(known.then_some(stat.stx_mnt_id))
        }
        // The kernel is too old, or a filter rejects the call.
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn mount_id(_path: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}
