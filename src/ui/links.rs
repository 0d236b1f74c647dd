//! Links on paths (OSC 8), for terminals known to support them. Pure.
//!
//! Guarantees that a link leads to a file, and that nothing in the path ends the link early.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::sys::environment::Environment;

/// The characters left unescaped in a link.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.');

/// Environment variables set by terminals that support links.
const SET_BY: [&str; 5] = [
    "WT_SESSION",
    "KITTY_WINDOW_ID",
    "KONSOLE_VERSION",
    "DOMTERM",
    "GHOSTTY_RESOURCES_DIR",
];
/// The values of `TERM_PROGRAM` for such terminals.
const PROGRAMS: [&str; 6] = ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "zed"];
/// The first version of VTE, the library of GNOME's terminals, with safe links.
const VTE: u32 = 5000;

/// Creates links to paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// The directory that the paths are relative to.
    base: PathBuf,
}

impl Links {
    /// Links to paths below `base`, an absolute path; `None` unless the terminal is known to support links.
    /// `FORCE_HYPERLINK` enables them, or disables them if it is `0`.
    pub fn of(environment: &Environment, base: &Path) -> Option<Self> {
        let vte = environment.get("VTE_VERSION");
        let is_known = || {
            let program = environment.get("TERM_PROGRAM").unwrap_or_default();
            SET_BY.iter().any(|name| environment.os(name).is_some())
                || PROGRAMS.contains(&program)
                || vte
                    .is_some_and(|version| version.parse().is_ok_and(|version: u32| version >= VTE))
        };
        let forced = environment.get("FORCE_HYPERLINK");
        let takes = forced.map_or_else(is_known, |forced| forced != "0");
        takes.then(|| Self {
            base: base.to_path_buf(),
        })
    }

    /// Returns `path`, which must be printable, as a link to itself.
    pub fn link(&self, path: &str) -> String {
        let absolute = self.base.join(path);
        let target = percent_encode(absolute.as_os_str().as_bytes(), PLAIN);
        format!("\u{1b}]8;;file://{target}\u{1b}\\{path}\u{1b}]8;;\u{1b}\\")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_is_known_or_forced_gets_links() {
        for (variables, expected) in [
            (&[("TERM_PROGRAM", "iTerm.app")][..], true),
            (&[("VTE_VERSION", "7000")], true),
            (&[("KITTY_WINDOW_ID", "1")], true),
            (&[("FORCE_HYPERLINK", "1")], true),
            (&[("FORCE_HYPERLINK", "0"), ("WT_SESSION", "x")], false),
            (&[("VTE_VERSION", "4601")], false),
            (&[("TERM_PROGRAM", "Apple_Terminal")], false),
            (&[], false),
        ] {
            let links = Links::of(&Environment::of(variables), Path::new("/a"));
            assert_eq!(links.is_some(), expected, "{variables:?}");
        }
    }

    #[test]
    fn nothing_in_a_path_ends_its_link() {
        let environment = Environment::of(&[("FORCE_HYPERLINK", "1")]);
        let links = Links::of(&environment, Path::new("/my files")).unwrap();
        assert_eq!(
            links.link("logs/ü;x"),
            "\u{1b}]8;;file:///my%20files/logs/%C3%BC%3Bx\u{1b}\\logs/ü;x\u{1b}]8;;\u{1b}\\"
        );
    }
}
