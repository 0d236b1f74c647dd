//! Reads what a run has logged in its folder.
//!
//! Folders are untrusted input: links are not followed, and anything damaged or too large is treated as missing.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::run_files::STEPS;
use super::step::Step;
use crate::sys::files::{Links, MIB, check_size, open, read};

/// Maximum size, in bytes, of a record.
const MAX_RECORD: u64 = 8 * MIB;
/// Maximum size, in bytes, of the steps, which are read line by line.
const MAX_STEPS: u64 = 512 * MIB;
/// Maximum length of a step's line, in bytes; a longer one is split and so yields no step.
const MAX_STEP: u64 = 16 * MIB;

/// Reads a record of this name from a run's folder.
pub fn json<T: DeserializeOwned>(folder: &Path, name: &str) -> Option<T> {
    let json = read(&folder.join(name), Links::Refused, MAX_RECORD).ok()?;
    serde_json::from_slice(&json).ok()
}

/// Reads `steps.jsonl` from a run's folder; for each step, the last complete line is used.
pub fn steps(folder: &Path) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut places = BTreeMap::new();
    let lines = lines_of(&folder.join(STEPS)).into_iter().flatten();
    // A torn last line is skipped.
    for step in lines.filter_map(|line| serde_json::from_slice::<Step>(&line).ok()) {
        let place = *places.entry(step.id()).or_insert(steps.len());
        match steps.get_mut(place) {
            Some(known) => *known = step,
            None => steps.push(step),
        }
    }
    steps
}

/// Reads the lines of a file; `None` if it is a link or too large. Lines that are too long are split.
fn lines_of(path: &Path) -> Option<impl Iterator<Item = Vec<u8>> + use<>> {
    let file = open(path, Links::Refused).ok()?;
    check_size(&file, MAX_STEPS).ok()?;
    let mut reader = BufReader::new(file.take(MAX_STEPS));
    Some(std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_STEP).read_until(b'\n', &mut line);
        read.ok().filter(|amount| *amount > 0).map(|_| line)
    }))
}
