//! Tests of written files, and of the messages about them.

use std::cell::RefCell;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::agent::tools::files::{PathEdit, ReadAccess};
use crate::agent::tools::resolved_path::Outside;

/// The content recorded for a removed file.
pub const REMOVED: &str = "(removed)";

/// Writes below a directory and records the edits; refuses paths that begin with `no`.
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
    fn apply(&self, edits: Vec<PathEdit>) -> Result<Vec<String>, ToolError> {
        if let Some((path, _)) = edits.iter().find(|(path, _)| path.starts_with("no")) {
            return Err(ToolError::from(format!("`{path}` is protected")));
        }
        for (path, edit) in edits {
            let place = self.root.join(&path);
            let written = match edit {
                EditKind::Write(content) => {
                    fs::write(place, &content).unwrap();
                    content
                }
                EditKind::Remove => {
                    fs::remove_file(place).unwrap();
                    REMOVED.to_owned()
                }
            };
            self.written.borrow_mut().push((path, written));
        }
        Ok(self.warnings.clone())
    }
}

/// Returns the text sent to the model for an output or failure.
pub fn told(output: Result<ToolOutput, ToolError>) -> Result<String, String> {
    output.map(|output| output.text).map_err(failure)
}

fn failure(error: ToolError) -> String {
    match error {
        ToolError::Failed(failure) => failure.to_string(),
        ToolError::Fatal(error) => panic!("{error}"),
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
    let tool = WriteFile(FileAccess {
        read: ReadAccess::to(files.root, outside),
        files,
    });
    tool.run(&arguments).map_err(failure)
}

#[test]
fn written_file_is_reported_with_its_lines_and_warnings() {
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
        "wrote `a.rs` (1 line)\nwarning: `a.rs` has lost the newline at its end"
    );
    assert_eq!(
        files.written.borrow()[1],
        ("a.rs".to_owned(), "x".to_owned())
    );
}

#[test]
fn forbidden_write_is_reported_and_changes_nothing() {
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
    assert!(output.text.contains("(1 line)"), "{}", output.text);
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

#[test]
fn nothing_is_written_to_another_projects_settings() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("root");
    fs::create_dir_all(&root).unwrap();
    let config = root.with_file_name("beside").join("agent-config");
    fs::create_dir_all(&config).unwrap();
    std::os::unix::fs::symlink(&config, root.with_file_name("link")).unwrap();
    let files = Plain::below(&root);
    for path in [
        "../beside/agent-config/models.json",
        "../beside/agent-config/deep/new",
        "../beside/agent-config",
        "../link/query.txt",
        "../new/agent-config/models.json",
    ] {
        let refused = write(&files, Outside::Allowed, path, "x").unwrap_err();
        assert!(
            refused.contains("agent-config") && !refused.contains("wrote"),
            "{path}: {refused}"
        );
    }
    assert_eq!(fs::read_dir(&config).unwrap().count(), 0);
    assert!(!root.with_file_name("new").exists());
}

#[test]
fn preview_shows_the_change_and_the_loss() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("a"), "x\ny\n").unwrap();
    fs::write(root.join("id_rsa"), "x").unwrap();
    let files = Plain::below(&root);
    let tool = WriteFile(FileAccess {
        read: ReadAccess::to(&root, Outside::Refused),
        files: &files,
    });
    let replaced = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n";
    let created = "new file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1,2 @@\n+x\n+z\n";
    for (path, shown, hazards) in [
        ("a", Some(replaced), &["overwrites"][..]),
        ("./a", Some(replaced), &["overwrites"]),
        ("b", Some(created), &[]),
        ("src", None, &[]),
        ("id_rsa", None, &[]),
        ("../b", None, &[]),
    ] {
        let mut arguments = Arguments::default();
        arguments.set("path", path);
        arguments.set("content", "x\nz\n");
        assert_eq!(tool.hazards(&arguments), hazards, "{path}");
        let preview = tool.preview(&arguments).ok().flatten();
        assert_eq!(preview.is_some(), shown.is_some(), "{path}");
        let preview = preview.unwrap_or_default();
        assert!(preview.ends_with(shown.unwrap_or_default()), "{preview}");
    }
    assert!(files.written.borrow().is_empty() && !root.join("b").exists());
}
