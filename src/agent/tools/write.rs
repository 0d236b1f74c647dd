//! `WRITE_FILE`: replaces the content of a file, and creates the file if it is missing.
//!
//! Inside the project, it writes only through [`Files`], which verifies changes and can undo them. Outside, if the user
//! allows that, a file is replaced atomically and keeps its permissions, but the change cannot be undone.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use super::files::{
    FileAccess, Files, NOT_UNDONE, Proposed, line_count, preview_of, with_warnings,
};
use super::resolved_path::{Found, ResolvedPath, unreadable};
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::edit::{EditKind, attributes};
use crate::record::tool::Verb;
use crate::sys::atomic_file;
use crate::sys::files::IfThere as _;
use crate::sys::numbers::counted;

/// Maximum size of a file shown before it is replaced, in bytes.
const LARGEST: u64 = 16 << 20;

/// The description of `WRITE_FILE`.
pub static WRITE_FILE: ToolSpec = ToolSpec::new(
    "WRITE_FILE",
    "Gives a file this content as a whole, and makes it and its directories where they are not there.",
    &[
        Parameter::path("path", "the file").example("src/greeting.js"),
        Parameter::block("content", "its whole content")
            .example("export function greeting(name) {\n  return `Hello, ${name}!`;\n}"),
    ],
    Effect::Writes,
)
.doing(Verb::Write);

/// Replaces or creates files.
pub struct WriteFile<'a>(pub FileAccess<'a>);

impl Tool for WriteFile<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let content = arguments.get("content").to_owned();
        let (place, is_new) = self.look(arguments)?;
        let same = |there: Vec<u8>| there == content.as_bytes();
        if !is_new && place.read(self.0.read.root, LARGEST).is_ok_and(same) {
            let text = format!(
                "{} is unchanged: this is its content already",
                place.shown()
            );
            return Ok(ToolOutput::text(text).in_brief("unchanged".to_owned()));
        }
        let secret = place.check_secrets(self.0.read.root);
        let lines = counted(line_count(content.as_bytes()) as u64, "line");
        let new = if is_new { "new, " } else { "" };
        let said = format!("wrote {} ({new}{lines})", place.shown());
        let warning = "such a file commonly holds credentials: git should ignore it";
        let warned = secret.is_err().then(|| warning.to_owned());
        let brief = is_new.then(|| format!("new, {lines}"));
        Ok(put(self.0.files, &place, Some(content), said, warned)?.in_brief(brief))
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        let (place, is_new) = self.look(arguments)?;
        let before = (!is_new).then(|| place.read(self.0.read.root, LARGEST));
        let proposed = Proposed {
            before: before.transpose()?,
            after: Some(arguments.get("content").to_owned()),
            place,
        };
        preview_of(self.0.files, vec![proposed]).map(Some)
    }

    fn hazards(&self, arguments: &Arguments) -> Vec<&'static str> {
        match self.look(arguments) {
            Ok((_, false)) => vec!["overwrites"],
            Ok((_, true)) | Err(_) => Vec::new(),
        }
    }
}

impl WriteFile<'_> {
    /// Resolves the path; also returns `true` if nothing exists there yet.
    fn look(&self, arguments: &Arguments) -> Result<(ResolvedPath, bool), String> {
        let place = self.0.resolve(arguments.get("path"))?;
        let is_new = is_new(&place, self.0.read.root)?;
        // A file with credentials, which the model cannot read, is neither replaced nor created, except for a new
        // `.env`.
        if !(is_new && place.is_environment(self.0.read.root)) {
            place.check_secrets(self.0.read.root)?;
        }
        Ok((place, is_new))
    }
}

/// Writes or removes a file inside or outside the project. The output is `text`, followed by the warnings.
pub(super) fn put(
    files: &dyn Files,
    place: &ResolvedPath,
    after: Option<String>,
    text: String,
    warned: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let warnings = match (place, after) {
        (ResolvedPath::Inside(path), after) => {
            let kind = after.map_or(EditKind::Remove, EditKind::Write);
            files.apply(vec![(path.clone(), kind)])?
        }
        (ResolvedPath::Outside(path), None) => {
            fs::remove_file(path)
                .map_err(|error| format!("{} cannot be removed: {error}", place.shown()))?;
            vec![NOT_UNDONE.to_owned()]
        }
        (ResolvedPath::Outside(path), Some(content)) => {
            let lost = write_outside(path, &content)
                .map_err(|error| format!("{} cannot be written: {error}", place.shown()))?;
            let lost = lost.into_iter().map(|lost| format!("it {lost}"));
            lost.chain([NOT_UNDONE.to_owned()]).collect()
        }
    };
    let all = warned.into_iter().chain(warnings).collect();
    Ok(with_warnings(text, all))
}

/// Returns whether nothing exists at the path; `false` for a file. Anything else there is an error.
fn is_new(place: &ResolvedPath, root: &Path) -> Result<bool, String> {
    let shown = place.shown();
    match place.look(root) {
        Ok(None) => Ok(true),
        Ok(Some(Found::File(_))) => Ok(false),
        Ok(Some(Found::Directory)) => Err(format!("{shown} is a directory; name a file in it")),
        Ok(Some(Found::Special)) => Err(format!(
            "{shown} is a pipe, a device or the like; name a file"
        )),
        // The file may be replaceable even if it cannot be read.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(false),
        Err(error) => Err(unreadable(&shown, &error)),
    }
}

/// Writes a file outside the project. Returns the attributes of the previous file that were lost, as ends of sentences.
fn write_outside(path: &Path, content: &str) -> io::Result<Vec<String>> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let Some(there) = path.metadata().if_there()? else {
        atomic_file::replace(path, |file| file.write_all(content.as_bytes()))?;
        return Ok(Vec::new());
    };
    let mut lost = Vec::new();
    atomic_file::replace_private(path, |file| {
        file.write_all(content.as_bytes())?;
        // Last, because writing clears some mode bits.
        lost = attributes::replace(path, &there, file)?;
        Ok(())
    })?;
    Ok(lost)
}

#[cfg(test)]
pub(super) mod tests;
