//! Prepares a project for its first run. What exists is left as it is; to `.gitignore` the lines that it
//! lacks are added.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use super::run::{keys, recovery};
use super::{Context, Failure, Outcome};
use crate::model::ModelTable;
use crate::project::gitignore::GITIGNORE;
use crate::project::{EXAMPLE_QUERY, LOGS, ProjectProblem, QUERY};
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::text::line_end;
use crate::workflow::error::Error;

const ROLLUP_SCRIPT: &str = "\
#!/bin/sh
# Writes the text files that git tracks to agent-config/codeRollup.txt.
set -eu
cd \"$(dirname \"$0\")\"
exec code-commit rollup \"$@\"
";

/// What builds a project, by a file in its root.
const BUILDS: [(&str, &str); 8] = [
    ("Cargo.toml", "cargo build --all-targets\ncargo test"),
    ("go.mod", "go vet ./...\ngo build ./...\ngo test ./..."),
    ("pom.xml", "mvn --batch-mode verify"),
    ("gradlew", "./gradlew build"),
    ("package.json", "npm test"),
    ("pyproject.toml", "python3 -m pytest"),
    ("setup.py", "python3 -m pytest"),
    ("Makefile", "make\nmake test"),
];

/// Where there is none of these files. What proves nothing must not pass.
const UNKNOWN_BUILD: &str = "\
echo \"build.sh: replace this with the commands that build and test the project\" >&2
exit 1";

/// Prepares the project.
///
/// # Errors
/// When another run has it, or a file cannot be written.
pub fn init(context: &Context<'_>) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    let root = context.project.root();
    let (tool, build) = build_script(root);
    let files = [
        (QUERY, EXAMPLE_QUERY.to_owned()),
        ("build.sh", build),
        ("codeRollup.sh", ROLLUP_SCRIPT.to_owned()),
    ];
    let mut lines = vec![ignore(context)?];
    for (path, content) in &files {
        let is_new = write_new(&root.join(path), content)?;
        lines.push((*path, if is_new { "written" } else { "left as it is" }));
    }
    let text = lines
        .iter()
        .map(|(path, done)| format!("{done:>13}  {path}"));
    let text: Vec<String> = text.collect();
    let done = lines
        .iter()
        .map(|(path, done)| json!({"path": path, "done": done}));
    let done: Vec<_> = done.collect();
    let made_for = tool.filter(|_| lines.contains(&("build.sh", "written")));
    let next = next_steps(context, made_for, root);
    Ok(Outcome {
        summary: "done: the project is set up".to_owned(),
        next: Some(next.join("\n")),
        ..Outcome::shown(
            text.join("\n"),
            json!({"schema": 1, "files": done, "next": next}),
        )
    })
}

fn next_steps(context: &Context<'_>, made_for: Option<&str>, root: &Path) -> Vec<String> {
    let mut steps = Vec::new();
    let models = context.models.as_ref().map(ModelTable::models);
    let mut models = models.unwrap_or_default().iter();
    let has_key = models.any(|spec| matches!(keys::find(context, spec), Ok(Some(_))));
    if !has_key && !context.project.config().join("models.json").is_file() {
        steps.push("put an API key into agent-config/gemini-key.txt or GEMINI_API_KEY, or configure a local model in agent-config/models.json".to_owned());
    }
    steps.push(match made_for {
        Some(tool) => {
            format!("check build.sh: it was made for {tool}, and must pass on the project as it is")
        }
        None => "check build.sh: it must pass on the project as it is".to_owned(),
    });
    steps.push(format!("describe the change in {QUERY}"));
    if !root.join(".git").exists() {
        steps.push(
            "git init && git add --all: the rollup contains the files that git tracks".to_owned(),
        );
    }
    steps.push("code-commit rollup && code-commit --dry-run && code-commit".to_owned());
    let numbered = steps.iter().enumerate();
    numbered
        .map(|(at, step)| format!("{}. {step}", at + 1))
        .collect()
}

/// A `build.sh` for the project, and what it was made for.
fn build_script(root: &Path) -> (Option<&'static str>, String) {
    let known = BUILDS.iter().find(|(file, _)| root.join(file).is_file());
    let commands = known.map_or(UNKNOWN_BUILD, |(_, commands)| commands);
    let script = format!(
        "#!/bin/sh\n# Exits with 0 only if the project builds and its tests pass.\n\
         set -eu\ncd \"$(dirname \"$0\")\"\n{commands}\n"
    );
    (known.map(|(file, _)| *file), script)
}

/// Sees that git ignores the folders with keys and logs, by lines at the end of `.gitignore`.
fn ignore(context: &Context<'_>) -> Result<(&'static str, &'static str), Error> {
    let project = &context.project;
    let path = project.root().join(GITIGNORE);
    let add = || {
        // What a link leads to may lie anywhere.
        if path.is_symlink() {
            return Err(io::Error::other("it is a symbolic link"));
        }
        let before = files::read(&path, Links::Refused, MIB).if_there()?;
        let text = String::from_utf8_lossy(before.as_deref().unwrap_or_default());
        let is_logs = |line: &str| line.trim().trim_matches('/') == LOGS;
        // Where the repository cannot be read, a line that is there is enough.
        let lacks_config = matches!(
            project.check_gitignore(context.key_files()),
            Err(ProjectProblem::NoGitignore | ProjectProblem::NotIgnored)
        );
        let lines = [
            ("/agent-config\n", lacks_config),
            ("/logs\n", !text.lines().any(is_logs)),
        ];
        let lacking = lines.into_iter().filter(|(_, lacks)| *lacks);
        let added: String = lacking.map(|(line, _)| line).collect();
        if added.is_empty() {
            return Ok("left as it is");
        }
        files::append(&path)?.write_all(format!("{}{added}", line_end(&text)).as_bytes())?;
        Ok(before.map_or("written", |_| "lines added"))
    };
    Ok((GITIGNORE, add().map_err(PathError::of("write", GITIGNORE))?))
}

/// Writes a file that is not there yet, a script as one that can be run; says whether it was not there.
pub fn write_new(path: &Path, content: &str) -> Result<bool, Error> {
    let write = || {
        let folder = path.parent().unwrap_or(path);
        if folder.is_symlink() {
            return Err(io::Error::other("its folder is a symbolic link"));
        }
        fs::create_dir_all(folder)?;
        let mut file = match files::create_new(path, 0o666) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            created => created?,
        };
        file.write_all(content.as_bytes())?;
        if content.starts_with("#!") {
            file.set_permissions(fs::Permissions::from_mode(0o755))?;
        }
        Ok(true)
    };
    Ok(write().map_err(PathError::of("write", path))?)
}
