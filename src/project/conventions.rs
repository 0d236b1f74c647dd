//! `AGENTS.md` files: instructions to agents from a project's authors or the user.
//!
//! Reads only these files. Guarantees that their content is UTF-8 and limited in size.

use std::path::Path;

use crate::sys::files::{self, IfThere as _, Links, is_too_large};
use crate::sys::text::without_mark;

/// Name of the file.
pub const AGENTS_FILE: &str = "AGENTS.md";
/// Maximum size of the file in bytes.
const LARGEST: u64 = 64 << 10;

/// Reason for rejecting a link.
pub(crate) const LINK: &str = "it is a symbolic link";

/// Reads the file in a project's root; `None` if it is missing or blank. Links are not followed, because a
/// repository may contain one to anywhere.
///
/// # Errors
/// Returns the reason when the file cannot be used.
pub fn read(root: &Path) -> Result<Option<String>, String> {
    if is_link(root) {
        return Err(LINK.to_owned());
    }
    read_file(&root.join(AGENTS_FILE), Links::Refused)
}

/// Returns whether the file in a directory is a link.
pub fn is_link(directory: &Path) -> bool {
    directory.join(AGENTS_FILE).is_symlink()
}

/// Reads the user's own file, following links; `None` if it is missing or blank.
///
/// # Errors
/// Returns the reason when the file cannot be used.
pub fn read_users(home: &Path) -> Result<Option<String>, String> {
    read_file(&home.join(AGENTS_FILE), Links::Followed)
}

/// Reads a file with instructions; `None` if it is missing or blank.
///
/// # Errors
/// Returns the reason when the file cannot be used.
pub(crate) fn read_file(path: &Path, links: Links) -> Result<Option<String>, String> {
    let content = match files::read(path, links, LARGEST).if_there() {
        Ok(content) => content.unwrap_or_default(),
        Err(error) if is_too_large(&error) => {
            return Err(format!("it is larger than {} KiB", LARGEST >> 10));
        }
        Err(error) => return Err(error.to_string()),
    };
    let text = str::from_utf8(without_mark(&content)).map_err(|_| "it is not UTF-8")?;
    Ok((!text.trim().is_empty()).then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_file_is_text_of_a_bounded_size_or_it_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(AGENTS_FILE);
        assert_eq!(read(dir.path()), Ok(None));
        let large = vec![b'x'; 65_537];
        for (content, expected) in [
            (&b"\xef\xbb\xbfUse tabs.\n"[..], Ok(Some("Use tabs.\n"))),
            (b" \n", Ok(None)),
            (b"caf\xe9", Err("it is not UTF-8")),
            (&large[1..], Ok(Some(str::from_utf8(&large[1..]).unwrap()))),
            (&large, Err("it is larger than 64 KiB")),
        ] {
            fs::write(&path, content).unwrap();
            let text = read(dir.path());
            let found = text.as_ref().map(Option::as_deref).map_err(String::as_str);
            assert_eq!(found, expected);
        }
        fs::remove_file(&path).unwrap();
        fs::write(dir.path().join("other"), "x").unwrap();
        symlink("other", &path).unwrap();
        assert_eq!(read(dir.path()), Err("it is a symbolic link".to_owned()));
        assert_eq!(read_users(dir.path()), Ok(Some("x".to_owned())));
    }
}
