//! Writes the profile of macOS's own sandbox (Seatbelt), in place of bubblewrap's arguments. Untested.
//!
//! Pure text. The profile keeps the same paths from being read or changed. Other processes stay visible.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Directories of temporary files, and devices that programs write to.
const TEMPORARY: [&str; 3] = ["/private/tmp", "/private/var/folders", "/dev"];

/// The paths that a profile closes, all without links.
pub(super) struct Seatbelt<'a> {
    /// Paths that may be neither read nor changed.
    pub hidden: &'a [PathBuf],
    /// Paths that may not be changed.
    pub read_only: &'a [PathBuf],
    /// The only directory, apart from temporary ones, that may be written to, with no network but this machine's own
    /// ports; `None` leaves the rest of the disk and the network open.
    pub only: Option<&'a Path>,
    /// A directory, and the project in it, the only part of the directory that may be read or changed.
    pub around: Option<(&'a Path, &'a Path)>,
}

impl Seatbelt<'_> {
    /// Returns the profile's text. If several rules match a path, the last one applies.
    pub fn profile(&self) -> String {
        let mut text = "(version 1)\n(allow default)\n".to_owned();
        if let Some(root) = self.only {
            text += "(deny network*)\n\
                (allow network-bind network-inbound (local ip \"localhost:*\"))\n\
                (allow network-outbound (remote ip \"localhost:*\"))\n\
                (deny file-write*)\n";
            let places = TEMPORARY.iter().map(Path::new).chain([root]);
            rule(&mut text, "allow file-write*", "subpath", places);
        }
        if let Some((directory, root)) = self.around {
            // Programs ask for the metadata of each directory above their own.
            for (verb, path) in [("deny", directory), ("allow", root)] {
                let what = format!("{verb} file-read-data file-write*");
                rule(&mut text, &what, "subpath", [path]);
            }
        }
        let paths = self.hidden.iter().chain(self.read_only);
        let closed: BTreeSet<&Path> = paths.map(PathBuf::as_path).collect();
        // Moving a directory above a path would evade the rule for that path.
        let above: BTreeSet<&Path> = closed.iter().flat_map(|path| path.ancestors()).collect();
        rule(&mut text, "deny file-write-unlink", "literal", above);
        rule(&mut text, "deny file-write*", "subpath", closed);
        let hidden = self.hidden.iter().map(PathBuf::as_path);
        rule(&mut text, "deny file-read*", "subpath", hidden);
        text
    }
}

/// Adds a rule for these paths, unless there are none.
fn rule<'a>(text: &mut String, what: &str, how: &str, paths: impl IntoIterator<Item = &'a Path>) {
    let names = paths.into_iter().map(|path| {
        // macOS accepts only names in UTF-8.
        let name = path
            .to_string_lossy()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        format!(" ({how} \"{name}\")")
    });
    let names = names.collect::<Vec<_>>().concat();
    if !names.is_empty() {
        text.extend(["(", what, &names, ")\n"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_lenient_profile_hides_keys_and_keeps_what_git_runs() {
        let sandbox = Seatbelt {
            hidden: &paths(&["/p/agent-config"]),
            read_only: &paths(&["/p/.git/hooks", "/p/a \"b\" \\c"]),
            only: None,
            around: None,
        };
        assert_eq!(
            sandbox.profile(),
            r#"(version 1)
(allow default)
(deny file-write-unlink (literal "/") (literal "/p") (literal "/p/.git") (literal "/p/.git/hooks") (literal "/p/a \"b\" \\c") (literal "/p/agent-config"))
(deny file-write* (subpath "/p/.git/hooks") (subpath "/p/a \"b\" \\c") (subpath "/p/agent-config"))
(deny file-read* (subpath "/p/agent-config"))
"#
        );
    }

    #[test]
    fn a_strict_profile_writes_to_the_project_alone_and_closes_the_network_first() {
        let sandbox = Seatbelt {
            hidden: &[],
            read_only: &paths(&["/p/.git"]),
            only: Some(Path::new("/p")),
            around: None,
        };
        let profile = sandbox.profile();
        let place = |part: &str| profile.find(part).unwrap();
        assert!(place("(deny file-write*)\n") < place(r#"(subpath "/p")"#));
        assert!(place(r#"(subpath "/p")"#) < place(r#"(deny file-write* (subpath "/p/.git"))"#));
        assert!(place("(deny network*)") < place("(allow network-outbound"));
        assert!(!profile.contains("file-read"), "{profile}");
    }

    #[test]
    fn of_a_campaign_the_project_alone_is_read_and_changed_but_for_what_is_closed() {
        let sandbox = Seatbelt {
            hidden: &paths(&["/d/a/clone/agent-config"]),
            read_only: &[],
            only: None,
            around: Some((Path::new("/d"), Path::new("/d/a/clone"))),
        };
        let profile = sandbox.profile();
        let place = |part: &str| profile.find(part).unwrap();
        let inside = place("(allow file-read-data file-write* (subpath \"/d/a/clone\"))");
        assert!(place("(deny file-read-data file-write* (subpath \"/d\"))") < inside);
        assert!(inside < place("(deny file-write* (subpath \"/d/a/clone/agent-config\"))"));
    }
}
