//! The system calls that make and enter namespaces, on Linux.
//!
//! Guarantees that the mounts are visible only in the new namespace. Paths are passed to the kernel as descriptors,
//! since the options of a mount give some characters a meaning.

use std::fs::File;

/// The descriptors of a mounted tree.
pub(super) struct NamespaceFiles {
    pub root: File,
    pub mount: File,
    pub user: Option<File>,
}

#[cfg(target_os = "linux")]
pub(super) use self::linux::{Lent, become_plain, join, mount_tree, uncover};
#[cfg(not(target_os = "linux"))]
pub(super) use self::other::{Lent, become_plain, join, mount_tree, uncover};

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{CString, OsString};
    use std::fs::File;
    use std::io::{self, Write as _};
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;

    use rustix::mount::{
        MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
        mount_change, unmount,
    };
    use rustix::process::{getegid, geteuid};
    use rustix::thread::{
        CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities, clear_ambient_capability_set,
        configure_capability_in_ambient_set, move_into_link_name_space, set_capabilities,
    };

    use super::NamespaceFiles;
    use crate::exec::descriptors::path_of;
    use crate::exec::mounts::MountTable;
    use crate::sys::files::{self, IfThere as _, Links};

    /// Source shown in mount tables for mounts without one.
    const SOURCE: &str = "code-commit";

    /// Moves this process into new namespaces and mounts the tree at the project's path.
    pub fn mount_tree<'k>(
        project: &Path,
        place: &Path,
        excluded: impl Iterator<Item = &'k str>,
        layers: &[OsString],
    ) -> io::Result<NamespaceFiles> {
        let has_own_user = unshare_mounts()?;
        let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
        mount_change("/", private)?;
        let mut own = Vec::new();
        for path in excluded.map(|name| project.join(name)) {
            let directory = files::open_directory(&path).if_there()?;
            own.extend(directory.map(|directory| (path, directory)));
        }
        if layers.is_empty() {
            mount_bind(place.join("tree"), project)?;
        } else {
            let is_own = |point: &Path| own.iter().any(|(path, _)| point.starts_with(path));
            // Mounts in a lower layer are not part of it.
            let mounts = MountTable::read();
            if mounts.below(project).any(|point| !is_own(point)) {
                return Err(io::ErrorKind::Unsupported.into());
            }
            mount_overlay(project, place, layers, has_own_user)?;
        }
        for (path, directory) in &own {
            mount_bind_recursive(path_of(directory), path)?;
        }
        let root = files::open_directory(project)?;
        // Programs in the tree need not see the files that make it up.
        mount(SOURCE, place, "tmpfs", MountFlags::RDONLY, None)?;
        let namespace = |name| files::open(&Path::new("/proc/self/ns").join(name), Links::Followed);
        Ok(NamespaceFiles {
            root,
            mount: namespace("mnt")?,
            user: has_own_user.then(|| namespace("user")).transpose()?,
        })
    }

    fn mount_overlay(
        project: &Path,
        place: &Path,
        layers: &[OsString],
        has_own_user: bool,
    ) -> io::Result<()> {
        let owner = project.metadata()?;
        let is_own = owner.uid() == geteuid().as_raw() && owner.gid() == getegid().as_raw();
        // Files of other owners cannot be changed in a user namespace that does not know them.
        if has_own_user && !is_own {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let open = |path: &Path| files::open_directory(path);
        let opened = layers.iter().map(|layer| open(layer.as_ref()));
        let layers = opened.collect::<io::Result<Vec<_>>>()?;
        let (upper, work) = (open(&place.join("upper"))?, open(&place.join("work"))?);
        // The root of the tree gets the permissions of the project's.
        upper.set_permissions(owner.permissions())?;
        let shown = |directory: &File| path_of(directory).to_string_lossy().into_owned();
        // A tree need not survive a power failure, so it is never synced.
        let options = format!(
            "userxattr,volatile,index=off,lowerdir={},upperdir={},workdir={}",
            layers.iter().map(shown).collect::<Vec<_>>().join(":"),
            shown(&upper),
            shown(&work)
        );
        let options = CString::new(options)?;
        let none = MountFlags::empty();
        Ok(mount(SOURCE, project, "overlay", none, &*options)?)
    }

    #[expect(
        deprecated,
        reason = "only unsharing descriptors, which this does not, is unsafe"
    )]
    fn unshare(flags: UnshareFlags) -> io::Result<()> {
        Ok(rustix::thread::unshare(flags)?)
    }

    /// Gives this process a mount namespace of its own. Returns whether that required a user namespace of its own.
    fn unshare_mounts() -> io::Result<bool> {
        if unshare(UnshareFlags::NEWNS).is_ok() {
            return Ok(false);
        }
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        let write = |name: &str, text: String| {
            files::append(&Path::new("/proc/self").join(name))?.write_all(text.as_bytes())
        };
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("{user} {user} 1"))?;
        write("gid_map", format!("{group} {group} 1"))?;
        Ok(true)
    }

    /// Capabilities in the user namespace of a tree, lent to the programs that this thread starts, which need them to
    /// make and enter other trees over it.
    #[derive(Debug)]
    pub struct Lent(bool);

    impl Lent {
        /// Lends this thread's capabilities until the result is dropped on the same thread.
        pub fn to_children() -> io::Result<Self> {
            let mut sets = capabilities(None)?;
            // Root's programs have them anyway.
            let has_some = sets.permitted.contains(CapabilitySet::SYS_ADMIN);
            let lent = Self(has_some && !geteuid().is_root());
            if lent.0 {
                sets.inheritable = sets.permitted;
                set_capabilities(None, sets)?;
                for capability in sets.permitted.iter() {
                    configure_capability_in_ambient_set(capability, true)?;
                }
            }
            Ok(lent)
        }
    }

    impl Drop for Lent {
        fn drop(&mut self) {
            if self.0 {
                // Giving up capabilities never fails.
                let _ = become_plain();
            }
        }
    }

    /// Withholds the capabilities that were lent to this process from the programs that it starts.
    pub fn become_plain() -> io::Result<()> {
        clear_ambient_capability_set()?;
        let mut sets = capabilities(None)?;
        sets.inheritable = CapabilitySet::empty();
        Ok(set_capabilities(None, sets)?)
    }

    /// Moves this process into namespaces.
    pub fn join(user: Option<&File>, mount: &File) -> io::Result<()> {
        if let Some(user) = user {
            move_into_link_name_space(user.as_fd(), Some(LinkNameSpaceType::User))?;
        }
        let kind = Some(LinkNameSpaceType::Mount);
        Ok(move_into_link_name_space(mount.as_fd(), kind)?)
    }

    /// Makes the files of the tree that this process is in visible to it.
    pub fn uncover(place: &Path) {
        // Fails if the tree is seen from outside.
        let _ = unmount(place, UnmountFlags::DETACH);
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use super::NamespaceFiles;

    pub fn mount_tree<'k>(
        _project: &Path,
        _place: &Path,
        _kept: impl Iterator<Item = &'k str>,
        _layers: &[OsString],
    ) -> io::Result<NamespaceFiles> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn join(_user: Option<&File>, _mount: &File) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn uncover(_place: &Path) {}

    #[derive(Debug)]
    pub struct Lent(());

    impl Lent {
        pub fn to_children() -> io::Result<Self> {
            Ok(Self(()))
        }
    }

    pub fn become_plain() -> io::Result<()> {
        Ok(())
    }
}
