//! The tool WRITE_FILE: gives a file its content, and makes it where it is not there.
//!
//! Inside the project it writes through [`Files`] alone, which verifies and can undo. Elsewhere, where the
//! user allows that, a file is replaced in one step and keeps its mode; nothing takes that back.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::place::{Found, Outside, Place, unreadable};
use super::{Files, WriteError, line_count};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::sys::atomic_file;
use crate::sys::files::IfThere as _;
use crate::sys::numbers::counted;

/// The largest file whose lines are counted before it is replaced, in bytes.
const LARGEST: u64 = 64 << 20;

/// Its description.
pub static WRITE_FILE: ToolSpec = ToolSpec::new(
    "WRITE_FILE",
    "Gives a file this content as a whole, and makes it and its directories where they are not there.",
    &[
        Parameter {
            name: "path",
            kind: ParameterKind::Path,
            meaning: "the file",
        },
        Parameter {
            name: "content",
            kind: ParameterKind::Block,
            meaning: "its whole content",
        },
    ],
    Effect::Writes,
);

/// Writes files.
#[derive(Clone, Copy)]
pub struct WriteFile<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Whether files elsewhere may be written.
    pub outside: Outside,
    /// Where the project's files are put.
    pub files: &'a dyn Files,
}

impl Tool for WriteFile<'_> {
    fn spec(&self) -> &ToolSpec {
        &WRITE_FILE
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let path = arguments.get("path");
        let content = arguments.get("content").to_owned();
        let place = Place::of(self.root, path, self.outside).map_err(ToolError::Failed)?;
        let before = lines_before(&place, self.root).map_err(ToolError::Failed)?;
        if !matches!(before, Before::Missing) {
            // What was never seen is not replaced.
            place.check_secrets(self.root).map_err(ToolError::Failed)?;
        }
        let lines = counted(line_count(content.as_bytes()) as u64, "line");
        let change = match before {
            Before::Missing => format!("(new, {lines})"),
            Before::Lines(before) => {
                format!("(was {}, now {lines})", counted(before as u64, "line"))
            }
            Before::Unknown => format!("(now {lines})"),
        };
        let said = format!("wrote {} {change}", place.shown());
        put(self.files, &place, content, &said)
    }
}

/// Writes a file where it belongs. The output is `said`, and what is to be warned of behind it.
pub(super) fn put(
    files: &dyn Files,
    place: &Place,
    content: String,
    said: &str,
) -> Result<ToolOutput, ToolError> {
    let path = match place {
        Place::Inside(path) => path,
        Place::Outside(path) => {
            let written = write_outside(path, &content);
            written.map_err(|error| {
                ToolError::Failed(format!("{} cannot be written: {error}", place.shown()))
            })?;
            let warned = "it is outside the project: `undo` does not take this back";
            return Ok(ToolOutput::said(format!("{said}\nwarning: {warned}")));
        }
    };
    let warnings = files.write(path, content).map_err(WriteError::of_tool)?;
    let warnings = warnings
        .iter()
        .map(|warning| format!("\nwarning: {warning}"));
    Ok(ToolOutput::said(format!(
        "{said}{}",
        warnings.collect::<String>()
    )))
}

/// What was there.
enum Before {
    Missing,
    Lines(usize),
    /// Nobody may read it, or it is very large.
    Unknown,
}

/// How many lines the file had.
fn lines_before(place: &Place, root: &Path) -> Result<Before, String> {
    let shown = place.shown();
    match place.look(root) {
        Ok(Found::Missing) => Ok(Before::Missing),
        Ok(Found::Directory) => Err(format!("{shown} is a directory; name a file in it")),
        Ok(Found::Special) => Err(format!(
            "{shown} is a pipe, a device or the like; name a file"
        )),
        Ok(Found::File(file)) => {
            let mut content = Vec::new();
            let read = file.take(LARGEST + 1).read_to_end(&mut content);
            Ok(match read {
                Ok(_) if content.len() as u64 <= LARGEST => Before::Lines(line_count(&content)),
                _ => Before::Unknown,
            })
        }
        // It may still be replaced.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Before::Unknown),
        Err(error) => Err(unreadable(&shown, &error)),
    }
}

fn write_outside(path: &Path, content: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let there = path.metadata().if_there()?;
    let mode = there.map(|metadata| metadata.permissions().mode() & 0o7777);
    atomic_file::replace(path, |file| {
        file.write_all(content.as_bytes())?;
        // Last: writing takes some bits away.
        mode.map_or(Ok(()), |mode| {
            file.set_permissions(Permissions::from_mode(mode))
        })
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Writes below a directory, and notes what; refuses what begins with `no`.
    pub struct Plain<'a> {
        pub root: &'a Path,
        pub written: RefCell<Vec<(String, String)>>,
        pub warnings: Vec<String>,
    }

    impl<'a> Plain<'a> {
        pub fn below(root: &'a Path) -> Self {
            Self {
                root,
                written: RefCell::default(),
                warnings: Vec::new(),
            }
        }
    }

    impl Files for Plain<'_> {
        fn write(&self, path: &str, content: String) -> Result<Vec<String>, WriteError> {
            if path.starts_with("no") {
                return Err(WriteError::Refused(format!("`{path}` is protected")));
            }
            fs::write(self.root.join(path), &content).unwrap();
            self.written.borrow_mut().push((path.to_owned(), content));
            Ok(self.warnings.clone())
        }
    }

    fn write(
        files: &Plain<'_>,
        outside: Outside,
        path: &str,
        content: &str,
    ) -> Result<ToolOutput, String> {
        let mut arguments = Arguments::default();
        arguments.set("path", path.to_owned());
        arguments.set("content", content.to_owned());
        let tool = WriteFile {
            root: files.root,
            outside,
            files,
        };
        tool.run(&arguments).map_err(|error| match error {
            ToolError::Failed(reason) => reason,
            ToolError::Fatal(error) => panic!("{error}"),
        })
    }

    #[test]
    fn what_was_written_is_told_with_its_lines_and_warnings() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mut files = Plain::below(&root);
        let outside = Outside::Refused;
        let output = write(&files, outside, "./a.rs", "x\ny\n").unwrap();
        assert_eq!(output.text, "wrote `a.rs` (new, 2 lines)");
        files.warnings = vec!["`a.rs` has lost the newline at its end".to_owned()];
        let output = write(&files, outside, "a.rs", "x").unwrap();
        assert_eq!(
            output.text,
            "wrote `a.rs` (was 2 lines, now 1 line)\nwarning: `a.rs` has lost the newline at its end"
        );
        assert_eq!(
            files.written.borrow()[1],
            ("a.rs".to_owned(), "x".to_owned())
        );
    }

    #[test]
    fn what_may_not_be_written_is_told_and_nothing_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let files = Plain::below(&root);
        fs::create_dir(root.join("src")).unwrap();
        for (path, said) in [
            ("no/entry", "`no/entry` is protected"),
            ("src", "is a directory"),
            (".", "is a directory"),
            ("../x", "--allow-outside"),
        ] {
            let refused = write(&files, Outside::Refused, path, "x").unwrap_err();
            assert!(refused.contains(said), "{path}: {refused}");
        }
        assert!(files.written.borrow().is_empty());
    }

    #[test]
    fn a_file_elsewhere_keeps_its_mode_and_links_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("root");
        fs::create_dir(&root).unwrap();
        let script = root.with_file_name("script");
        fs::write(&script, "old\n").unwrap();
        fs::set_permissions(&script, Permissions::from_mode(0o751)).unwrap();
        let link = root.with_file_name("link");
        std::os::unix::fs::symlink("script", &link).unwrap();
        let files = Plain::below(&root);
        let output = write(&files, Outside::Allowed, "../link", "new\n").unwrap();
        assert!(
            output.text.contains("(was 1 line, now 1 line)"),
            "{}",
            output.text
        );
        assert!(
            output.text.contains("does not take this back"),
            "{}",
            output.text
        );
        assert!(files.written.borrow().is_empty());
        assert_eq!(fs::read_to_string(&script).unwrap(), "new\n");
        let mode = script.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o751);
        assert!(link.symlink_metadata().unwrap().is_symlink());
        write(&files, Outside::Allowed, "../new/deep/file", "x").unwrap();
        assert!(root.with_file_name("new").join("deep/file").is_file());
    }
}
