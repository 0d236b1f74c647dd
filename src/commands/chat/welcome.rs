//! The first message: where the agent works, what is missing, and the first keys.
//!
//! Reads `.git/HEAD` for the name of the branch.

use std::path::Path;

use super::place::ChatPlace;
use crate::agent::tools::place::quoted;
use crate::sys::files::{self, Links};

/// The maximum number of bytes read of `.git/HEAD`.
const HEAD: u64 = 256;
/// The way to go on without a key.
const NO_KEY: &str =
    "**No key is set**: `/login` asks for one, and a request that needed it is taken up then";
/// The first keys on the screen, and what there is by lines.
const KEYS: &str = "Enter sends, Shift+Tab switches modes, `/help` lists keys and commands";
const BY_LINES: &str = "`/mode` switches modes, `/help` lists commands";

/// Returns the message, in Markdown for the screen.
pub fn welcome(place: &ChatPlace<'_>, is_screen: bool) -> String {
    let directory = place.context.project.directory();
    let branch = branch(directory).map(|name| format!(" on branch {}", quoted(&name)));
    let here = quoted(&directory.to_string_lossy());
    let read = place.briefing.borrow().files_read();
    let read: Vec<String> = read.iter().map(|name| quoted(name)).collect();
    let (no_key, keys) = if is_screen {
        (NO_KEY.to_owned(), KEYS)
    } else {
        (NO_KEY.replace("**", ""), BY_LINES)
    };
    let lines = [
        Some(format!("In {here}{}", branch.unwrap_or_default())),
        place.check_key().is_err().then_some(no_key),
        (!read.is_empty()).then(|| format!("Read: {}", read.join(", "))),
        Some(keys.to_owned()),
    ];
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Returns the branch that is checked out; `None` outside of a repository, or if it is not known.
fn branch(directory: &Path) -> Option<String> {
    let mut heads = directory
        .ancestors()
        .map(|directory| directory.join(".git/HEAD"));
    let head = heads.find(|head| head.is_file())?;
    let head = files::beginning(&head, Links::Refused, HEAD).ok()?;
    let head = String::from_utf8(head).ok()?;
    Some(head.strip_prefix("ref: refs/heads/")?.trim_end().to_owned())
}
