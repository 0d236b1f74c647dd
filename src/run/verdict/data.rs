//! Changed data that tests may read, found by names in other files. Reads the files of the project.

use std::path::Path;

use super::named::names_test;
use super::table::{DATA, FileKind, Form, kind};
use crate::run::passed_trees::files_of;
use crate::run::past::warnings::{is_manifest, run_by};
use crate::sys::diff::FileChange;
use crate::sys::files::{self, Links, MIB};

/// Returns the changed data files that the gate names, each with a flag that is true if code names it too.
pub fn named(root: &Path, changes: &[FileChange], commands: &str) -> Vec<(String, bool)> {
    let is_data = |change: &&FileChange| {
        let path = &change.path;
        let is_code = kind(path, "").0 == FileKind::Code && DATA.is_match(path);
        is_code && change.before.is_some() && !is_manifest(change)
    };
    let data: Vec<&str> = changes
        .iter()
        .filter(is_data)
        .map(|one| one.path.as_str())
        .collect();
    if data.is_empty() {
        return Vec::new();
    }
    let mut by = vec![[false; 2]; data.len()];
    let mut see = |text: &str, is_code: bool| {
        for (path, by) in data.iter().zip(&mut by) {
            let name = path.rsplit('/').next().unwrap_or(path);
            by[usize::from(is_code)] |= names_test(text, name);
        }
    };
    see(commands, false);
    let files = files_of(root).into_iter().flatten().filter_map(|path| {
        let text = files::read(&root.join(&path), Links::Refused, MIB).ok()?;
        Some((path, text))
    });
    let before = changes
        .iter()
        .map(|one| (one.path.clone(), one.before().to_vec()));
    for (path, text) in files.chain(before).filter(|(path, _)| !DATA.is_match(path)) {
        let text = String::from_utf8_lossy(&text);
        let is_code = match kind(&path, &text).0 {
            FileKind::Test | FileKind::Settings => false,
            FileKind::Code | FileKind::Named => run_by(commands).all(|run| run != path),
            FileKind::Either | FileKind::Parts(Form::Rust) => true,
            _ => continue,
        };
        see(&text, is_code);
    }
    let named = data
        .into_iter()
        .zip(by)
        .filter(|(_, [by_gate, _])| *by_gate);
    named
        .map(|(path, [_, by_code])| (path.to_owned(), by_code))
        .collect()
}
