//! The first message: where the agent works, what is missing, and the most important keys.
//!
//! Reads the repository's `HEAD` for the name of the branch.

use std::path::Path;

use super::place::ChatPlace;
use crate::agent::tools::resolved_path::quoted;
use crate::project::repository::Repository;
use crate::sys::files::{self, Links};

/// Maximum number of bytes read from `HEAD`.
const HEAD: u64 = 256;
/// The message if no key is set.
const NO_KEY: &str =
    "**No key is set**: `/login` asks for one, and a request that needed it is taken up then";
/// The hints for the screen.
const KEYS: &str = "Enter sends, Shift+Tab switches modes, `/help` lists keys and commands";
/// The hints for line mode.
const BY_LINES: &str = "`/mode` switches modes, `/help` lists commands";

/// Returns the message, with Markdown emphasis only on the screen.
pub fn welcome(place: &ChatPlace<'_>, is_screen: bool) -> String {
    let directory = place.context.project.directory();
    let branch = branch(directory).map(|name| format!(" on branch {}", quoted(&name)));
    let here = quoted(&directory.to_string_lossy());
    let names = place.briefing.borrow().files.read();
    let read: Vec<String> = names.iter().map(|name| quoted(name)).collect();
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

/// Returns the checked-out branch; `None` outside a repository, or if `HEAD` is detached.
fn branch(directory: &Path) -> Option<String> {
    let repository = Repository::of(directory).ok()??;
    let content = files::beginning(&repository.own.join("HEAD"), Links::Refused, HEAD).ok()?;
    let head = str::from_utf8(&content).ok()?;
    Some(head.strip_prefix("ref: refs/heads/")?.trim_end().to_owned())
}
