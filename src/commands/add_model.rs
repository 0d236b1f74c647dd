//! Adds a model from the built-in catalogue to the project's `models.json`.
//!
//! Writes only that file and preserves its existing content. The result is always a valid table.

use std::fs;
use std::io::{self, Write as _};

use serde_json::{Value, json};

use super::init::write_new;
use crate::commands::error::CommandError;
use crate::model::{ModelTable, catalogue};
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::selection;
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::files::PathError;

const TABLE: &str = ModelTable::FILE;

/// Adds the catalogue's entry for the model `name`.
///
/// # Errors
/// Fails if the catalogue has no such model, the project's table already has one, or the table cannot be used or
/// written.
pub fn add_model(context: &Context<'_>, name: &str) -> Result<Outcome, Failure> {
    // Do not add to a table that cannot be read.
    selection::table_of(context.models)?;
    let known = catalogue::known(name).and_then(|it| it.entry.as_ref());
    let before = context.project.models().map_err(NotReady::of)?;
    // The file may have a model that the catalogue lacks; `{}` only tests whether the name is taken.
    let text = known.map_or("{}", |entry| entry.get());
    let with = ModelTable::with_entry(before.as_deref().unwrap_or("{}\n"), name, text)
        .map_err(io::Error::from)
        .map_err(PathError::of("write", TABLE))?
        .ok_or_else(|| CommandError::ModelIsThere(name.to_owned()))?;
    let entry = known.ok_or_else(|| CommandError::NotInCatalogue {
        name: name.to_owned(),
        known: catalogue::names(),
    })?;
    ModelTable::parse(&with, context.today())
        .map_err(io::Error::other)
        .map_err(PathError::of("write", TABLE))?;
    write(context, before.is_none(), &with)?;
    let value: Value = serde_json::from_str(entry.get()).unwrap_or_default();
    let shown = serde_json::to_string_pretty(&json!({name: value})).unwrap_or_default();
    let json = json!({"schema": 1, "file": TABLE, "model": name, "entry": value});
    Ok(Outcome {
        summary: format!("done: added `{name}` to `{TABLE}`"),
        next: Some(format!(
            "use it with `--model {name}`, or name it in `selectionRules`"
        )),
        ..Outcome::shown(shown, json)
    })
}

fn write(context: &Context<'_>, is_new: bool, text: &str) -> Result<(), Error> {
    let path = context.project.config().join("models.json");
    if is_new && write_new(&path, text)? {
        return Ok(());
    }
    // Follow a user's symbolic link instead of replacing it.
    let target = fs::canonicalize(&path).unwrap_or(path);
    let written = atomic_file::replace(&target, |file| file.write_all(text.as_bytes()));
    Ok(written.map_err(PathError::of("write", TABLE))?)
}
