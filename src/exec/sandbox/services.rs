//! Finds sockets of user services that run programs on request, outside any sandbox: those in the usual places, and
//! those named by environment variables.
//!
//! Reads directories only. Finds only sockets in the file system, not, for example, Linux's abstract sockets.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use super::targets::present;
use crate::sys::environment::Environment;

/// The directories of sockets: variables with their paths, the usual path, and the sockets in them.
const PLACES: [(&str, &str, &str); 4] = [
    ("XDG_RUNTIME_DIR", "/run/user/{uid}", RUNTIME),
    ("TMPDIR TMUX_TMPDIR", "/tmp", TEMPORARY),
    ("HOME", "", HOME),
    ("", "/", ROOT),
];
/// Sockets below `XDG_RUNTIME_DIR` or its usual path. Buses and service managers start programs, terminals and window
/// managers type commands, editors evaluate code, and containers can mount the machine's disk. `{uid}` is the user's
/// ID. A `*` at the end stands for all sockets with that prefix; it is used in directories where a build may have
/// sockets of its own.
const RUNTIME: &str =
    "bus dbus-1 systemd zellij wezterm kitty* hypr i3 sway-ipc.* emacs/* nvim.* docker.sock podman";
/// Sockets below `/tmp`, `TMPDIR` and `TMUX_TMPDIR`.
const TEMPORARY: &str = "tmux-{uid}/* screens emacs{uid}/*";
/// Sockets in the home directory.
const HOME: &str = ".screen .emacs.d/server .docker/run/docker.sock .docker/desktop/docker.sock";
/// Sockets of the machine. The system bus forwards requests to services that run as root.
const ROOT: &str = "run/dbus/system_bus_socket run/systemd/private run/screen var/run/screen run/docker.sock \
    var/run/docker.sock run/podman run/containerd/containerd.sock run/crio/crio.sock run/buildkit/buildkitd.sock \
    run/libvirt var/lib/incus/unix.socket var/lib/lxd/unix.socket var/snap/lxd/common/lxd/unix.socket";

/// Variables that contain the path of such a socket, optionally after one of the prefixes and up to a comma.
const VARIABLES: &str = "CONTAINER_HOST DBUS_SESSION_BUS_ADDRESS DOCKER_HOST EMACS_SOCKET_NAME I3SOCK KITTY_LISTEN_ON \
    NVIM SWAYSOCK TMUX";
const PREFIXES: [&str; 3] = ["unix://", "unix:path=", "unix:"];

/// Returns the possible places of user services, existing or not.
pub fn places(environment: &Environment, uid: u32) -> Vec<PathBuf> {
    let directory = |name: &str| {
        let found = environment.os(name).map(PathBuf::from);
        found.filter(|path| path.is_absolute())
    };
    let of_user = |text: &str| PathBuf::from(text.replace("{uid}", &uid.to_string()));
    let mut places = Vec::new();
    for (variables, usual, names) in PLACES {
        let named = variables.split(' ').filter_map(directory);
        let usual = Some(of_user(usual)).filter(|path| path.is_absolute());
        for base in named.chain(usual) {
            places.extend(names.split(' ').map(|name| base.join(of_user(name))));
        }
    }
    let screens = directory("SCREENDIR").map(|directory| directory.join("*"));
    let named = VARIABLES.split(' ').filter_map(|name| environment.os(name));
    places.extend(screens.into_iter().chain(named.filter_map(path_in)));
    places
}

/// Returns the socket path in a variable's value. The `*` limits it to sockets: the names have other uses, too.
fn path_in(value: &OsStr) -> Option<PathBuf> {
    let value = value.to_str()?;
    let mut prefixes = PREFIXES.iter();
    let behind = prefixes.find_map(|prefix| value.strip_prefix(prefix));
    let path = behind.unwrap_or(value).split(',').next()?;
    path.starts_with('/').then(|| format!("{path}*").into())
}

/// Returns the places that exist now, with links resolved.
pub(super) fn found(places: &[PathBuf]) -> Vec<PathBuf> {
    let all: Vec<PathBuf> = places.iter().flat_map(|place| expanded(place)).collect();
    let mut found: Vec<PathBuf> = present(&all).collect();
    found.sort();
    found.dedup();
    found
}

fn expanded(place: &Path) -> Vec<PathBuf> {
    let name = place.file_name().unwrap_or_default().as_bytes();
    let Some((directory, beginning)) = place.parent().zip(name.strip_suffix(b"*")) else {
        return vec![place.to_path_buf()];
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().as_bytes().starts_with(beginning));
    let is_socket = |path: &PathBuf| {
        let kind = path.metadata().map(|found| found.file_type());
        // Old versions of screen use named pipes.
        kind.is_ok_and(|kind| kind.is_socket() || kind.is_fifo())
    };
    named.map(|entry| entry.path()).filter(is_socket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn places_follow_the_environment() {
        let all = places(
            &Environment::of(&[
                ("HOME", "/home/me"),
                ("XDG_RUNTIME_DIR", "/run/mine"),
                ("TMUX_TMPDIR", "/var/tmux"),
                ("TMUX", "/own/tmux,12,0"),
                ("DOCKER_HOST", "unix:///own/docker.sock"),
                ("CONTAINER_HOST", "ssh://there/run/podman.sock"),
                ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/own/bus,guid=1"),
                ("KITTY_LISTEN_ON", "unix:@abstract"),
                ("NVIM", "relative"),
            ]),
            7,
        );
        for path in [
            "/run/mine/bus",
            "/run/user/7/bus",
            "/run/user/7/systemd",
            "/var/tmux/tmux-7/*",
            "/tmp/tmux-7/*",
            "/tmp/emacs7/*",
            "/home/me/.emacs.d/server",
            "/run/docker.sock",
            "/own/tmux*",
            "/own/docker.sock*",
            "/own/bus*",
        ] {
            assert!(all.contains(&path.into()), "{path}");
        }
        let odd = |path: &&PathBuf| !path.is_absolute() || path.to_string_lossy().contains("there");
        assert_eq!(all.iter().find(odd), None);
        let bare = places(&Environment::default(), 0);
        assert!(bare.contains(&"/run/user/0/podman".into()));
    }

    #[test]
    fn a_star_matches_only_sockets() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let path = |name: &str| dir.join(name);
        let _sockets = ["s.one", "s.two", "other"].map(|name| UnixListener::bind(path(name)));
        fs::write(path("s.file"), "").unwrap();
        fs::create_dir(path("whole")).unwrap();
        let places = [path("s.*"), path("whole"), path("missing"), path("none/*")];
        std::os::unix::fs::symlink("other", path("s.link")).unwrap();
        let expected = [path("other"), path("s.one"), path("s.two"), path("whole")];
        assert_eq!(found(&places), expected);
    }
}
