//! The instructions of the plan agent: `AGENTS.md`, the reply format, and examples.
//!
//! Reads only the `AGENTS.md` of the user and of the project. Guarantees that the instructions are UTF-8, of bounded
//! length, and free of known keys.

use std::path::{Path, PathBuf};

use crate::project::conventions::{self, AGENTS_FILE};
use crate::secret::Redactor;
use crate::sys::files;

/// The specification's template, for users who have no `AGENTS.md`.
const TEMPLATE: &str = include_str!("../../../prompts/plan_agents.md").trim_ascii_end();
/// The reply format, in the specification's words.
pub const RESPONSE_FORMAT: &str =
    include_str!("../../../prompts/plan_response_format.txt").trim_ascii_end();
/// The specification's examples of replies, separated by blank lines.
pub const EXAMPLES: &str = include_str!("../../../prompts/plan_examples.txt").trim_ascii_end();

/// The reply to a model that only describes what it would do: `spec/plan-prompts.md`, 12.3.
pub const USE_TOOLS: &str = "When the user asks you to perform an action (read, write, create, etc.), you MUST use tools. \
                         Do not describe what you would do - actually do it using tool_calls.";

/// The text before the task once something has been done for it.
pub const REMINDER: &str = "Do the current task alone. If it is done, do not call a tool again: say so with \
                        {\"response\": \"...\"}.";
/// The reply to a model that ends a step although its last command has failed.
pub const COMMAND_FAILED: &str = "The last command of this step has failed, so the step is not done. Mend what made it \
                              fail, and run a command that shows it.";
/// The reply to a model that ends a step with a question.
pub const NO_QUESTION: &str = "A question does not end a step. Find out what you need with the tools, or decide yourself, \
                           and say in a `response` what you have found or done.";

/// The heading above the project's instructions.
const PROJECT_HEADING: &str = "# Project Instructions";

/// The combined content of the `AGENTS.md` files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instructions {
    /// The user's file followed by the project's, without surrounding blank lines.
    pub text: String,
    /// The reason for ignoring the project's file; `None` unless it was ignored.
    pub warning: Option<String>,
}

/// An `AGENTS.md` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("`{}` cannot be used: {reason}", .path.display())]
#[diagnostic(
    code("/settings"),
    help("make it a readable file of at most 64 KiB of UTF-8, or move it away")
)]
pub struct InstructionsProblem {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub reason: String,
}

impl InstructionsProblem {
    fn of(directory: &Path) -> impl FnOnce(String) -> Self {
        let path = directory.join(AGENTS_FILE);
        |reason| Self { path, reason }
    }
}

/// Reads the instructions of the user with this home directory and of the project at `root`. A template replaces a
/// missing or blank file of the user. If the project's file is a link, it is ignored with a warning.
///
/// # Errors
/// Fails if a file cannot be read, is not UTF-8, or is larger than 64 KiB.
pub fn read(
    home: Option<&Path>,
    root: &Path,
    redactor: &Redactor,
) -> Result<Instructions, InstructionsProblem> {
    let own = match home {
        Some(home) => conventions::read_users(home).map_err(InstructionsProblem::of(home))?,
        None => None,
    };
    let is_home = home.is_some_and(|home| files::is_same(home, root));
    let is_link = !is_home && conventions::is_link(root);
    let projects = if is_home || is_link {
        None
    } else {
        conventions::read(root).map_err(InstructionsProblem::of(root))?
    };
    let warning = "the project's `AGENTS.md` is not used: it is a symbolic link";
    let mut text = without_blank(own.as_deref().unwrap_or(TEMPLATE)).to_owned();
    if let Some(projects) = projects {
        text += &format!("\n\n{PROJECT_HEADING}\n\n{}", without_blank(&projects));
    }
    Ok(Instructions {
        text: redactor.text(&text).into_owned(),
        warning: is_link.then(|| warning.to_owned()),
    })
}

/// Returns the text without blank lines around it.
fn without_blank(text: &str) -> &str {
    text.trim_start_matches(['\r', '\n']).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// A user's home and a project.
    struct Places {
        _dir: tempfile::TempDir,
        home: PathBuf,
        root: PathBuf,
    }

    impl Places {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let [home, root] = ["home", "project"].map(|name| dir.path().join(name));
            for path in [&home, &root] {
                fs::create_dir(path).unwrap();
            }
            Self {
                _dir: dir,
                home,
                root,
            }
        }

        fn put(&self, users: Option<&[u8]>, projects: Option<&[u8]>) {
            for (place, content) in [(&self.home, users), (&self.root, projects)] {
                let path = place.join(AGENTS_FILE);
                match content {
                    Some(content) => fs::write(path, content).unwrap(),
                    None => drop(fs::remove_file(path)),
                }
            }
        }

        fn read(&self) -> Result<Instructions, InstructionsProblem> {
            let redactor = Redactor::new(["sekret-key-1"]);
            read(Some(&self.home), &self.root, &redactor)
        }
    }

    #[test]
    fn the_users_file_comes_first_and_the_projects_behind_it() {
        let places = Places::new();
        let both = |projects: &str| format!("{TEMPLATE}\n\n# Project Instructions\n\n{projects}");
        for (users, projects, expected) in [
            (None, None, TEMPLATE.to_owned()),
            (Some("\n \n"), None, TEMPLATE.to_owned()),
            (Some("Mine.\n\n"), None, "Mine.".to_owned()),
            (None, Some("\r\nUse tabs.\r\n"), both("Use tabs.")),
            (
                Some("\u{feff}Mine: sekret-key-1\n"),
                Some("Theirs.\n\n## More\n"),
                "Mine: [REDACTED]-1\n\n# Project Instructions\n\nTheirs.\n\n## More".to_owned(),
            ),
        ] {
            places.put(users.map(str::as_bytes), projects.map(str::as_bytes));
            let read = places.read().unwrap();
            assert_eq!((read.text, read.warning), (expected, None));
        }
        let nobodys = read(None, &places.home, &Redactor::default()).unwrap();
        assert!(nobodys.text.starts_with(TEMPLATE));
    }

    #[test]
    fn a_project_in_the_users_home_has_the_file_once() {
        let places = Places::new();
        places.put(Some(b"Mine."), None);
        let link = places.root.join("link to home");
        symlink(&places.home, &link).unwrap();
        for root in [&places.home, &link] {
            let read = read(Some(&places.home), root, &Redactor::default()).unwrap();
            assert_eq!((read.text.as_str(), read.warning), ("Mine.", None));
        }
    }

    #[test]
    fn a_file_that_is_not_text_or_too_large_is_named() {
        let places = Places::new();
        let large = vec![b'x'; (64 << 10) + 1];
        for (users, projects, at, reason) in [
            (Some(&b"\xff"[..]), None, &places.home, "it is not UTF-8"),
            (None, Some(&b"\xff"[..]), &places.root, "it is not UTF-8"),
            (Some(&large), None, &places.home, "it is larger than 64 KiB"),
            (None, Some(&large), &places.root, "it is larger than 64 KiB"),
        ] {
            places.put(users, projects);
            let problem = places.read().unwrap_err();
            let path = at.join(AGENTS_FILE);
            let expected = format!("`{}` cannot be used: {reason}", path.display());
            assert_eq!(problem.to_string(), expected);
        }
    }

    #[test]
    fn the_users_link_is_followed_and_the_projects_is_not() {
        let places = Places::new();
        let dotfiles = places.home.join("dotfiles");
        fs::write(&dotfiles, "Mine.").unwrap();
        symlink("dotfiles", places.home.join(AGENTS_FILE)).unwrap();
        symlink(&dotfiles, places.root.join(AGENTS_FILE)).unwrap();
        let read = places.read().unwrap();
        assert_eq!(read.text, "Mine.");
        assert!(read.warning.unwrap().contains("symbolic link"));
    }

    #[test]
    fn the_examples_are_replies_of_the_form_that_they_show() {
        let examples = EXAMPLES.matches("# Example").count();
        let mut replies = 0;
        for example in EXAMPLES.split("Assistant: ").skip(1) {
            let mut values = serde_json::Deserializer::from_str(example).into_iter();
            let reply: serde_json::Value = values.next().unwrap().unwrap();
            let fields: Vec<&String> = reply.as_object().unwrap().keys().collect();
            assert!(
                fields == ["tool_calls"] || fields == ["response"],
                "{reply}"
            );
            replies += 1;
        }
        // The third example has two replies.
        assert_eq!((examples, replies), (7, 8));
        assert!(EXAMPLES.contains(r"export interface User {\n  id: string;\n"));
        assert!(RESPONSE_FORMAT.contains("NEVER mix tool_calls and response"));
    }
}
