//! Prepares a project for its first run. What exists is left as it is; to `.gitignore` the lines that it
//! lacks are added. A `build.sh` that it has written is run once, to say whether it passes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::exec::build_script::{BUILD_SCRIPT, BuildError, PLACEHOLDER};
use crate::exec::sandbox::SandboxMode;
use crate::model::ModelTable;
use crate::model::price::Usd;
use crate::project::gitignore::GITIGNORE;
use crate::project::index::{IndexProblem, TrackedPaths};
use crate::project::kind::ProjectKind;
use crate::project::{CONFIG, EXAMPLE_QUERY, LOGS, ProjectProblem, QUERY, ROLLUP};
use crate::record::event::Event;
use crate::record::step::BuildRecord;
use crate::run::builds::{BuildOptions, Builds, describe, record};
use crate::run::context::Context;
use crate::run::gate::Gate;
use crate::run::outcome::{Failure, Outcome};
use crate::run::{keys, recovery};
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::excerpt::Excerpt;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::text::line_end;

const ROLLUP_SCRIPT: &str = "\
#!/bin/sh
# Writes the text files that git tracks to agent-config/codeRollup.txt.
set -eu
cd \"$(dirname \"$0\")\"
exec code-commit rollup \"$@\"
";

/// The time limit for the build that tries out `build.sh`: the default limit of a run's builds.
const BUILD_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// The number of its last lines shown on failure.
const LAST_LINES: usize = 10;

/// Prepares the project.
///
/// # Errors
/// When another run has it, or a file cannot be written.
pub fn init(context: &Context<'_>) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    let root = context.project.root();
    let kinds = ProjectKind::of(root);
    let files = [
        (QUERY, EXAMPLE_QUERY.to_owned()),
        (BUILD_SCRIPT, build_script(root, &kinds)),
        ("codeRollup.sh", ROLLUP_SCRIPT.to_owned()),
    ];
    let mut lines = vec![ignore(context, &kinds)?];
    for (path, content) in &files {
        let is_new = write_new(&root.join(path), content)?;
        lines.push((*path, if is_new { WRITTEN } else { LEFT }));
    }
    // Where nothing is known of the project, there is nothing to try.
    let made_for = kinds.first().map(|(_, sign)| *sign);
    let made_for = made_for.filter(|_| lines.contains(&(BUILD_SCRIPT, WRITTEN)));
    let built = made_for.map(|_| try_build(context)).transpose()?;
    let mut text: String = lines
        .iter()
        .map(|(path, done)| format!("{done:>13}  {path}\n"))
        .collect();
    text.extend(built.iter().map(FirstBuild::text));
    let done = lines
        .iter()
        .map(|(path, done)| json!({"path": path, "done": done}));
    let done: Vec<_> = done.collect();
    let next = next_steps(context, made_for.zip(built.as_ref()), &lines);
    let build = built.as_ref().map(|built| &built.record);
    Ok(Outcome {
        summary: "done: the project is set up".to_owned(),
        next: Some(next.join("\n")),
        ..Outcome::shown(
            text,
            json!({"schema": 1, "files": done, "build": build, "next": next}),
        )
    })
}

/// The word for what was done with a file.
const WRITTEN: &str = "written";
const EXTENDED: &str = "lines added";
const LEFT: &str = "left as it is";

fn next_steps(
    context: &Context<'_>,
    built: Option<(&str, &FirstBuild)>,
    files: &[(&str, &str)],
) -> Vec<String> {
    let mut steps = Vec::new();
    let models = context.models.as_ref().map(ModelTable::models);
    let mut models = models.unwrap_or_default().iter();
    let has_key = models.any(|spec| matches!(keys::find(context, spec), Ok(Some(_))));
    if !has_key && !context.project.config().join("models.json").is_file() {
        steps.push("put an API key into agent-config/gemini-key.txt or GEMINI_API_KEY, or configure a local model in agent-config/models.json".to_owned());
    }
    steps.push(match built {
        Some((sign, FirstBuild { passed: true, .. })) => {
            format!("check build.sh: it was made for {sign}, and passes on the project as it is")
        }
        Some((sign, FirstBuild { status, .. })) => format!(
            "mend the project or build.sh: it was made for {sign}, and fails on the project as it is ({status})"
        ),
        // Where the kind of project is not known.
        None if files.contains(&(BUILD_SCRIPT, WRITTEN)) => {
            "write the commands that build and test the project into build.sh, which fails until then"
                .to_owned()
        }
        None => "check build.sh: it must pass on the project as it is".to_owned(),
    });
    if let Some((_, FirstBuild { made, .. })) = built.filter(|(_, built)| !built.made.is_empty()) {
        let made = made.join("`, `");
        steps.push(format!(
            "the build has made `{made}`: add it to git, or to .gitignore"
        ));
    }
    steps.extend(tracking(context.project.root(), files));
    steps.push(
        "code-commit -m \"WHAT TO CHANGE\" --rollup --baseline --dry-run: it builds the project as it is, and says what \
         would be sent, and what that may cost"
            .to_owned(),
    );
    steps.push(format!(
        "code-commit -m \"WHAT TO CHANGE\" --rollup; {QUERY} may take the place of -m, and {ROLLUP}, which \
         `code-commit rollup` writes, that of --rollup"
    ));
    let numbered = steps.iter().enumerate();
    numbered
        .map(|(at, step)| format!("{}. {step}", at + 1))
        .collect()
}

/// Returns the git command to run first, so that a later diff shows the change alone; `None` if none is needed.
fn tracking(root: &Path, files: &[(&str, &str)]) -> Option<String> {
    let add = "git add --all: the rollup contains the files that git tracks";
    match TrackedPaths::below(root) {
        Err(IndexProblem::NoRepository) => return Some(format!("git init && {add}")),
        Ok(tracked) if tracked == TrackedPaths::default() => return Some(add.to_owned()),
        _ => {}
    }
    let written = files
        .iter()
        .filter(|(path, done)| *done != LEFT && *path != QUERY);
    let written: Vec<&str> = written.map(|(path, _)| *path).collect();
    let written = Some(written.join(" ")).filter(|written| !written.is_empty())?;
    Some(format!(
        "git add {written}: then `git add -N . && git diff` shows the change alone"
    ))
}

/// A `build.sh` for a project of these kinds.
fn build_script(root: &Path, kinds: &[(&ProjectKind, &str)]) -> String {
    let Some((kind, _)) = kinds.first() else {
        return PLACEHOLDER.to_owned();
    };
    let commands = kind.commands(root);
    format!(
        "#!/bin/sh\n# Exits with 0 only if the project builds and its tests pass.\n\
         set -eu\ncd \"$(dirname \"$0\")\"\n{commands}\n"
    )
}

/// The first run of the new script, on the project as it stands.
struct FirstBuild {
    passed: bool,
    /// Its exit status in words.
    status: String,
    record: Option<BuildRecord>,
    /// The end of what it printed.
    last_lines: Vec<String>,
    /// The files it left in the root, visible to git.
    made: Vec<String>,
}

impl FirstBuild {
    /// The reason for the failure, on lines of its own; empty if it passes.
    fn text(&self) -> String {
        if self.passed {
            return String::new();
        }
        let lines = self.last_lines.iter().map(|line| format!("    {line}\n"));
        let lines: String = lines.collect();
        format!("\nbuild.sh fails, {}:\n{lines}\n", self.status)
    }
}

/// Runs the script that was written, sandboxed as a run's builds are. That it cannot be run is no error.
fn try_build(context: &Context<'_>) -> Result<FirstBuild, Failure> {
    let options = BuildOptions {
        timeout: BUILD_TIMEOUT,
        sandbox: SandboxMode::Auto,
    };
    let root = context.project.root();
    let before = names(root);
    let mut output = Excerpt::default();
    let spent = Usd::ZERO;
    context.reporter.event(&Event::Building { spent });
    let mut gate = Gate::new(root, context.home()).map_err(Error::from)?;
    gate.before_build().map_err(Error::from)?;
    let repositories = gate.repositories().map(Path::to_path_buf).collect();
    let built = Builds::new(context, options, &[], repositories).and_then(|mut builds| {
        let report = builds.run(&mut output)?;
        Ok((
            report.status.passed(),
            describe(report.status),
            record(&report, builds.record()),
            report.took,
        ))
    });
    let changed = gate.change(&context.project, &context.key_files());
    let changed = changed.map_err(Error::from)?;
    let (mut passed, mut status, record) = match built {
        Ok((passed, status, record, took)) => {
            let told = Event::Built {
                status: status.clone(),
                passed,
                // What the summary has, too.
                reasons: Vec::new(),
                took,
            };
            context.reporter.event(&told);
            (passed, status, Some(record))
        }
        Err(BuildError::Interrupted(interrupted)) => return Err(Error::from(interrupted).into()),
        Err(error) => (false, error.to_string(), None),
    };
    if let Some(changed) = changed {
        (passed, status) = (false, changed.to_string());
    }
    let output = context.redactor.text(&output.into_text()).into_owned();
    let lines: Vec<&str> = output.lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(LAST_LINES));
    let made = names(root).into_iter();
    let made = made.filter(|name| !before.contains(name) && !context.project.ignores(name));
    Ok(FirstBuild {
        passed,
        status,
        record,
        last_lines: last.map(|line| (*line).to_owned()).collect(),
        made: made.collect(),
    })
}

/// Returns the names of a directory's entries.
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.collect()
}

/// Appends lines to `.gitignore`, so that git ignores the folders with keys and logs, and build artefacts.
fn ignore(
    context: &Context<'_>,
    kinds: &[(&ProjectKind, &str)],
) -> Result<(&'static str, &'static str), Error> {
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
        let added = lacking.map(|(line, _)| line.to_owned());
        let left = left_by_builds(context, kinds);
        let left = left.iter().map(|line| format!("{line}\n"));
        let added: String = added.chain(left).collect();
        if added.is_empty() {
            return Ok(LEFT);
        }
        files::append(&path)?.write_all(format!("{}{added}", line_end(&text)).as_bytes())?;
        Ok(before.map_or(WRITTEN, |_| EXTENDED))
    };
    Ok((GITIGNORE, add().map_err(PathError::of("write", GITIGNORE))?))
}

/// Returns the build artefacts of such projects that git does not ignore yet and tracks nothing under the name of.
fn left_by_builds(context: &Context<'_>, kinds: &[(&ProjectKind, &str)]) -> BTreeSet<&'static str> {
    let tracked = TrackedPaths::below(context.project.root()).unwrap_or_default();
    let tracked: BTreeSet<String> = tracked
        .files()
        .flat_map(|path| path.split('/').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let left = kinds.iter().flat_map(|(kind, _)| kind.leaves());
    let is_lacking = |line: &&str| {
        let name = line.trim_start_matches('/').replace('*', "x");
        !tracked.contains(&name) && !context.project.ignores(&name)
    };
    left.filter(is_lacking).collect()
}

/// Writes a file unless it exists, a script as an executable one. Returns `true` if it was written.
pub fn write_new(path: &Path, content: &str) -> Result<bool, Error> {
    let write = || {
        let folder = path.parent().unwrap_or(path);
        if folder.is_symlink() {
            return Err(io::Error::other("its folder is a symbolic link"));
        }
        if folder.ends_with(CONFIG) {
            atomic_file::private_directory(folder)?;
        } else {
            fs::create_dir_all(folder)?;
        }
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
