//! `delete_file`: removes a file.
//!
//! Inside the project it does so through [`Files`] alone, which can undo it. Elsewhere, where the user allows that, it is
//! gone. Directories and what only looks like a file are left alone, and so are files that hold credentials by name.

use std::fs;

use super::files::{FileAccess, NOT_UNDONE, Proposed, preview_of, with_warnings};
use super::place::{Found, ResolvedPath};
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::edit::EditKind;
use crate::record::tool::Verb;

/// A larger file, in bytes, is not shown before it is removed.
const LARGEST: u64 = 16 << 20;

/// The tool, as the model knows it.
pub static DELETE_FILE: ToolSpec = ToolSpec::new(
    "delete_file",
    "Removes a file. Directories are not removed: an empty one may stay.",
    &[Parameter::path("path", "The file")],
    Effect::Writes,
)
.doing(Verb::Delete);

/// Removes files.
#[derive(Clone, Copy)]
pub struct DeleteFile<'a>(pub FileAccess<'a>);

impl Tool for DeleteFile<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let place = self.look(arguments).map_err(ToolError::failed)?;
        let shown = place.shown();
        let warned = match &place {
            ResolvedPath::Inside(path) => {
                self.0.files.apply(vec![(path.clone(), EditKind::Remove)])?
            }
            ResolvedPath::Outside(path) => {
                fs::remove_file(path).map_err(|error| {
                    ToolError::failed(format!("{shown} cannot be removed: {error}"))
                })?;
                vec![NOT_UNDONE.to_owned()]
            }
        };
        Ok(with_warnings(format!("removed {shown}"), warned))
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        let place = self.look(arguments).map_err(ToolError::failed)?;
        let proposed = Proposed {
            before: Some(place.read(self.0.root, LARGEST)?),
            after: None,
            place,
        };
        preview_of(self.0.files, vec![proposed]).map(Some)
    }

    /// Whatever is there: who is asked need not know more.
    fn hazards(&self, _arguments: &Arguments) -> Vec<&'static str> {
        vec!["deletes"]
    }
}

impl DeleteFile<'_> {
    /// Finds the file.
    fn look(&self, arguments: &Arguments) -> Result<ResolvedPath, String> {
        let place = self.0.resolve(arguments.get("path"))?;
        place.check_secrets(self.0.root)?;
        let shown = place.shown();
        match place.find(self.0.root)? {
            Found::File(_) => Ok(place),
            Found::Directory => Err(format!(
                "{shown} is a directory, and only files are removed; name the files in it"
            )),
            Found::Special | Found::Missing => Err(format!(
                "{shown} is a pipe, a device or the like, and only files are removed"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
