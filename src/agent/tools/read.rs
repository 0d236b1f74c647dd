//! The tool READ_FILE: what is in a file.
//!
//! Reads the file, and refuses those whose name says that they hold credentials. Other keys are for the
//! caller to redact, who also leaves out the middle of what is long.

use std::path::Path;

use super::place::{Outside, ResolvedPath};
use super::{OUTPUT_LIMIT, line_count};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::sys::numbers::counted;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 64 << 20;

/// The description of READ_FILE.
pub static READ_FILE: ToolSpec = ToolSpec::new(
    "READ_FILE",
    "Shows what is in a file. Of a long one, the beginning and the end.",
    &[Parameter::new("path", ParameterKind::Path, "the file")],
    Effect::Reads,
);

/// Reads files.
#[derive(Debug, Clone, Copy)]
pub struct ReadFile<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Whether files elsewhere may be read.
    pub outside: Outside,
}

impl Tool for ReadFile<'_> {
    fn spec(&self) -> &ToolSpec {
        &READ_FILE
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let path = arguments.get("path");
        let place = ResolvedPath::of(self.root, path, self.outside).map_err(ToolError::Failed)?;
        let content = place.read(self.root, LARGEST)?;
        Ok(ToolOutput {
            brief: Some(counted(line_count(&content) as u64, "line")),
            ..ToolOutput::said(shown(&place.shown(), content))
        })
    }
}

/// A file's content as a model is shown it.
fn shown(name: &str, content: Vec<u8>) -> String {
    let bytes = counted(content.len() as u64, "byte");
    let lines = counted(line_count(&content) as u64, "line");
    let (text, note) = match String::from_utf8(content) {
        Ok(text) if text.is_empty() => return format!("{name} is empty"),
        Ok(text) => (text, None),
        Err(error) if is_mostly_text(error.as_bytes()) => (
            String::from_utf8_lossy(error.as_bytes()).into_owned(),
            Some("what is not UTF-8 in it is shown as \u{fffd}"),
        ),
        Err(_) => return format!("{name} is a binary file, {bytes}"),
    };
    let cut = (text.len() > OUTPUT_LIMIT)
        .then_some("the middle is left out; a command can show parts of it");
    let notes: Vec<&str> = note.into_iter().chain(cut).collect();
    if notes.is_empty() {
        return text;
    }
    format!(
        "[{name} has {lines}, {bytes}; {}]\n{text}",
        notes.join("; ")
    )
}

/// Whether few enough bytes are not UTF-8 for the rest to be read, as in Latin-1.
fn is_mostly_text(content: &[u8]) -> bool {
    let chunks = content.utf8_chunks();
    let bad: usize = chunks.map(|chunk| chunk.invalid().len()).sum();
    !content.contains(&0) && bad <= content.len() / 10
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(root: &Path, path: &str) -> Result<String, String> {
        let outside = Outside::Refused;
        let mut arguments = Arguments::default();
        arguments.set("path", path.to_owned());
        match (ReadFile { root, outside }).run(&arguments) {
            Ok(output) => Ok(output.text),
            Err(ToolError::Failed(reason)) => Err(reason),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_is_shown_byte_by_byte_up_to_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let long: String = (1..=9000).map(|line| format!("line {line}\n")).collect();
        for (name, content) in [
            ("text", b"a\r\n  b" as &[u8]),
            ("empty", b""),
            ("bad", b"caf\xe9 au lait, s'il vous plait\n"),
            ("binary", &[0, 159, 146, 150]),
            ("long", long.as_bytes()),
        ] {
            fs::write(root.join(name), content).unwrap();
        }
        symlink("text", root.join("link")).unwrap();
        assert_eq!(read(&root, "text").unwrap(), "a\r\n  b");
        assert_eq!(read(&root, "link").unwrap(), "a\r\n  b");
        assert_eq!(read(&root, "empty").unwrap(), "`empty` is empty");
        assert_eq!(
            read(&root, "binary").unwrap(),
            "`binary` is a binary file, 4 bytes"
        );
        let bad = read(&root, "bad").unwrap();
        assert!(
            bad.starts_with("[`bad` has 1 line, 30 bytes; what is not UTF-8"),
            "{bad}"
        );
        assert!(bad.contains("\ncaf\u{fffd} au lait"), "{bad}");
        let shown = read(&root, "long").unwrap();
        assert!(
            shown.starts_with("[`long` has 9,000 lines, 88,893 bytes; "),
            "{}",
            &shown[..80]
        );
        assert!(shown.ends_with(&long));
    }

    #[test]
    fn what_is_no_file_fails_with_the_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/main.rs"), "").unwrap();
        fs::write(root.join(".env"), "KEY=1").unwrap();
        let fifo = root.join("fifo");
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, 0o600.into(), 0).unwrap();
        for (path, said) in [
            ("src", "is a directory; list it"),
            ("src/mian.rs", "`src` holds `main.rs`"),
            ("fifo", "is a pipe"),
            (".env", "holds credentials"),
            ("/etc/passwd", "--allow-outside"),
            ("C:\\x", "Windows"),
        ] {
            let error = read(&root, path).unwrap_err();
            assert!(error.contains(said), "{path}: {error}");
        }
    }
}
