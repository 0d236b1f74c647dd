//! Reads a run's query from the command line, standard input or the user's editor instead of
//! `agent-config/query.txt`.
//!
//! Reads standard input, and writes the file that the editor opens.

use std::fs;

use crate::commands::cli::inputs::InputArgs;
use crate::project::DRAFT;
use crate::run::context::{Context, Freshness, InputOptions, QuerySource};
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::files::{self, Links, PathError};
use crate::ui::editor;
use crate::ui::input::{self, InputError};

/// Returns the inputs that the flags select.
///
/// # Errors
/// Fails if the query is blank, or cannot be read.
pub fn inputs(context: &Context<'_>, arguments: &InputArgs) -> Result<InputOptions, Error> {
    let query = match arguments.message.as_deref() {
        None if arguments.edit => QuerySource::Edited(edited(context)?),
        None => QuerySource::File,
        Some("-") => QuerySource::Given(from_stdin(context)?),
        Some(text) => QuerySource::Given(input::prompt_from(text.as_bytes())?),
    };
    let freshness = if arguments.allow_stale {
        Freshness::Stale
    } else if arguments.require_fresh {
        Freshness::Required
    } else {
        Freshness::Compared
    };
    Ok(InputOptions {
        query,
        roll_up: arguments.rollup,
        is_staged: arguments.staged,
        by_parts: arguments.parts,
        freshness,
        limit: arguments.chosen.limit(arguments.context),
    })
}

/// Returns an agent's prompt; `-` reads it from standard input.
///
/// # Errors
/// Fails if standard input is blank or cannot be read.
pub fn prompt(context: &Context<'_>, prompt: Option<&str>) -> Result<Option<String>, Error> {
    match prompt {
        Some("-") => Ok(Some(from_stdin(context)?)),
        prompt => Ok(prompt.map(str::to_owned)),
    }
}

/// Reads standard input to its end.
///
/// # Errors
/// Fails if standard input is blank or cannot be read.
pub fn from_stdin(context: &Context<'_>) -> Result<String, Error> {
    let stdin = input::stdin(context.interrupt.clone()).map_err(InputError::from)?;
    Ok(input::prompt_from(stdin)?)
}

/// Returns the text that the user writes in their editor. The draft stays on disk until a run has begun, so that it is
/// not lost if the run fails to start.
fn edited(context: &Context<'_>) -> Result<String, Error> {
    let command = editor::chosen(context.environment)?;
    let config = context.project.config();
    atomic_file::private_directory(&config).map_err(PathError::of("make", config))?;
    let path = context.project.root().join(DRAFT);
    drop(files::append(&path).map_err(PathError::of("write", DRAFT))?);
    editor::open(command, &path, context.interrupt)?;
    let file = files::open(&path, Links::Refused).map_err(PathError::of("read", DRAFT))?;
    let query = input::prompt_from(file);
    if matches!(query, Err(InputError::Blank)) {
        let _ = fs::remove_file(path);
    }
    Ok(query?)
}
