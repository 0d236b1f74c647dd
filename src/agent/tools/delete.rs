//! `delete_file`: removes a file.
//!
//! Inside the project it does so through [`Files`] alone, which can undo it. Elsewhere, where the user allows that, it is
//! gone. Directories and what only looks like a file are left alone, and so are files that hold credentials by name.

use std::fs;
use std::path::Path;

use super::files::{Files, NOT_UNDONE, Proposed, preview_of, with_warnings};
use super::place::{Found, Outside, ResolvedPath, leads_through_config, missing, unreadable};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::edit::EditKind;
use crate::record::tool::Verb;

/// A larger file, in bytes, is not shown before it is removed.
const LARGEST: u64 = 16 << 20;

/// The tool, as the model knows it.
pub static DELETE_FILE: ToolSpec = ToolSpec::new(
    "delete_file",
    "Removes a file. Directories are not removed: an empty one may stay.",
    &[Parameter::new("path", ParameterKind::Path, "The file")],
    Effect::Writes,
)
.doing(Verb::Delete);

/// Removes files.
#[derive(Clone, Copy)]
pub struct DeleteFile<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Allows or refuses files elsewhere.
    pub outside: Outside,
    /// Removes the project's files.
    pub files: &'a dyn Files,
}

impl Tool for DeleteFile<'_> {
    fn spec(&self) -> &ToolSpec {
        &DELETE_FILE
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let place = self.look(arguments).map_err(ToolError::failed)?;
        let shown = place.shown();
        let warned = match &place {
            ResolvedPath::Inside(path) => {
                self.files.apply(vec![(path.clone(), EditKind::Remove)])?
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
            before: Some(place.read(self.root, LARGEST)?),
            after: None,
            place,
        };
        preview_of(self.files, vec![proposed]).map(Some)
    }

    /// Whatever is there: who is asked need not know more.
    fn hazards(&self, _arguments: &Arguments) -> Vec<&'static str> {
        vec!["deletes"]
    }
}

impl DeleteFile<'_> {
    /// Finds the file.
    fn look(&self, arguments: &Arguments) -> Result<ResolvedPath, String> {
        let place = ResolvedPath::of(self.root, arguments.get("path"), self.outside)?;
        place.check_secrets(self.root)?;
        let shown = place.shown();
        match place.look(self.root) {
            Ok(Found::File(_)) => {}
            Ok(Found::Missing) => return Err(missing(self.root, &place)),
            Ok(Found::Directory) => {
                return Err(format!(
                    "{shown} is a directory, and only files are removed; name the files in it"
                ));
            }
            Ok(Found::Special) => {
                return Err(format!(
                    "{shown} is a pipe, a device or the like, and only files are removed"
                ));
            }
            Err(error) => return Err(unreadable(&shown, &error)),
        }
        match &place {
            ResolvedPath::Outside(path) if leads_through_config(path) => Err(format!(
                "{shown} is in another project's `agent-config`, where nothing may be changed"
            )),
            _ => Ok(place),
        }
    }
}

#[cfg(test)]
mod tests;
