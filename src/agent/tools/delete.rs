//! `delete_file`: removes a file.
//!
//! Inside the project, it removes files only through `Files`, which can undo that. Files outside, if the user allows
//! access to them, are removed permanently. Directories and special files are never removed, nor are files whose name
//! suggests that they contain credentials.

use super::files::{FileAccess, Proposed, preview_of};
use super::resolved_path::{Found, ResolvedPath};
use super::write::put;
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::record::tool::Verb;

/// Maximum size of a file shown before it is removed, in bytes.
const LARGEST: u64 = 16 << 20;

/// The description of `delete_file`.
pub static DELETE_FILE: ToolSpec = ToolSpec::new(
    "delete_file",
    "Removes a file. Directories are not removed: an empty one may stay.",
    &[Parameter::path("path", "The file")],
    Effect::Writes,
)
.doing(Verb::Delete);

/// Removes files.
pub struct DeleteFile<'a>(pub FileAccess<'a>);

impl Tool for DeleteFile<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let place = self.look(arguments)?;
        let text = format!("removed {}", place.shown());
        put(self.0.files, &place, None, text, None)
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        let place = self.look(arguments)?;
        let proposed = Proposed {
            before: Some(place.read(self.0.read.root, LARGEST)?),
            after: None,
            place,
        };
        preview_of(self.0.files, vec![proposed]).map(Some)
    }

    /// Names a removal as a hazard in any case, whatever the path refers to.
    fn hazards(&self, _arguments: &Arguments) -> Vec<&'static str> {
        vec!["deletes"]
    }
}

impl DeleteFile<'_> {
    /// Resolves the path and checks that it may be removed.
    fn look(&self, arguments: &Arguments) -> Result<ResolvedPath, String> {
        let place = self.0.resolve(arguments.get("path"))?;
        place.check_secrets(self.0.read.root)?;
        let shown = place.shown();
        match place.find(self.0.read.root)? {
            Found::File(_) => Ok(place),
            Found::Directory => Err(format!(
                "{shown} is a directory, and only files are removed; name the files in it"
            )),
            Found::Special => Err(format!(
                "{shown} is a pipe, a device or the like, and only files are removed"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
