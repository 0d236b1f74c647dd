//! Reads the steps of a run as they were logged while it ran.
//!
//! Reads `steps.jsonl`, which is untrusted: lines that describe no step, such as a torn last one, are skipped.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;

use super::run_files::STEPS;
use super::step::Step;
use crate::sys::files::{Links, MIB, check_size, open};

/// Maximum size, in bytes, of the steps, which are read line by line.
const LARGEST: u64 = 512 * MIB;
/// Maximum length of a step's line, in bytes; a longer one is split and so yields no step.
const LONGEST: u64 = 16 * MIB;

/// Returns the steps that were logged in a run's folder, in order; for each step, the last complete line is used. None
/// are read through a link, or if there are too many.
pub fn logged_steps(folder: &Path) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut places = BTreeMap::new();
    let lines = lines_of(&folder.join(STEPS)).into_iter().flatten();
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
    check_size(&file, LARGEST).ok()?;
    let mut reader = BufReader::new(file.take(LARGEST));
    Some(std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        read.ok().filter(|amount| *amount > 0).map(|_| line)
    }))
}
