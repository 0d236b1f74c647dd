//! The folders of past runs, by name. Reads `logs`.

use std::fs;

use crate::project::{LOGS, Project};
use crate::sys::files::{IfThere as _, PathError};

/// Returns the path of the named folder, relative to the root.
pub fn relative(name: &str) -> String {
    format!("{LOGS}/{name}")
}

/// Returns the names of all run folders, in order.
///
/// # Errors
/// Fails if `logs` cannot be read.
pub fn names(project: &Project) -> Result<Vec<String>, PathError> {
    let logs = project.logs();
    let unreadable = || PathError::of("read", &logs);
    let entries = fs::read_dir(&logs).if_there().map_err(unreadable())?;
    let mut names = Vec::new();
    for entry in entries.into_iter().flatten() {
        let entry = entry.map_err(unreadable())?;
        let is_run = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().into_string();
        names.extend(name.ok().filter(|name| is_run && has_stamp(name)));
    }
    names.sort_unstable();
    for of_one_second in names.chunk_by_mut(|one, next| stamp(one) == stamp(next)) {
        of_one_second.sort_by_key(|name| number(name));
    }
    Ok(names)
}

/// The format of a time stamp, including the hyphen that follows.
const STAMP: &str = "0000-00-00-00-00-00-";

/// Returns the time stamp in the name of a run's folder: `2026-11-21-20-15-03`.
pub fn stamp(name: &str) -> &str {
    name.get(..STAMP.len() - 1).unwrap_or(name)
}

/// Returns whether the name begins with a run's time stamp: `2026-11-21-20-15-03-`.
fn has_stamp(name: &str) -> bool {
    let fits = |(byte, form): (u8, u8)| match form {
        b'-' => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    name.len() >= STAMP.len() && name.bytes().zip(STAMP.bytes()).all(fits)
}

/// Returns the number at the end of the name, which distinguishes runs of the same second.
fn number(name: &str) -> u32 {
    let number = name
        .rsplit_once('-')
        .and_then(|(_, number)| number.parse().ok());
    number.unwrap_or(1)
}
