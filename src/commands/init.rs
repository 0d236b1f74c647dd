//! Prepares a project for its first run. Leaves existing files alone, except that missing lines are added to
//! `.gitignore`. A newly written `build.sh` is run once to see whether it passes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::exec::build_script::{BUILD_SCRIPT, PLACEHOLDER, inspect};
use crate::exec::process::{ProcessError, ScriptProblem};
use crate::exec::sandbox::SandboxMode;
use crate::model::price::Usd;
use crate::model::{ModelTable, Purpose, catalogue};
use crate::project::gitignore::GITIGNORE;
use crate::project::index::TrackedPaths;
use crate::project::kind::ProjectKind;
use crate::project::{
    CONFIG, EXAMPLE_QUERY, LOGS, PROJECT_GATE, Project, ProjectProblem, QUERY, ROLLUP, walk,
};
use crate::record::step::BuildRecord;
use crate::run::builds::{BuildOptions, Builds, describe};
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::{keys, recovery};
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::excerpt::Excerpt;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::text::{line_end, listed};

const ROLLUP_SCRIPT: &str = "\
#!/bin/sh
# Writes the text files that git tracks to agent-config/codeRollup.txt.
set -eu
cd \"$(dirname \"$0\")\"
exec code-commit rollup \"$@\"
";

/// The time limit for trying out `build.sh`; equals the default limit of a run's builds.
const BUILD_TIMEOUT: Duration = Duration::from_mins(30);
/// The number of final output lines shown when the build fails.
const LAST_LINES: usize = 10;
/// The maximum number of files left by the build that are named.
const NAMED: usize = 20;

/// Prepares the project.
///
/// # Errors
/// Fails if another run has locked the project, or a file cannot be written.
pub fn init(context: &Context<'_>) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    let root = context.project.root();
    let kinds = ProjectKind::of(root);
    let files = [
        (QUERY, EXAMPLE_QUERY.to_owned()),
        (BUILD_SCRIPT, build_script(root, &kinds)),
        ("codeRollup.sh", ROLLUP_SCRIPT.to_owned()),
    ];
    let leaves = kinds.iter().flat_map(|(kind, _)| kind.leaves());
    let mut lines = vec![(GITIGNORE, ignore(context, leaves)?)];
    for (path, content) in &files {
        let is_new = write_new(&root.join(path), content)?;
        lines.push((*path, if is_new { WRITTEN } else { LEFT }));
    }
    if let Some(table) = successors_table(context)
        && write_new(&root.join(ModelTable::FILE), &table)?
    {
        lines.push((ModelTable::FILE, WRITTEN));
    }
    // Without a known project type, `build.sh` is only a placeholder and not worth running.
    let is_made = lines.contains(&(BUILD_SCRIPT, WRITTEN));
    let made_for = kinds.first().map(|(_, sign)| *sign).filter(|_| is_made);
    let protected = made_for.map_or_else(Vec::new, |sign| rests_on(sign, &files[1].1));
    if !protected.is_empty() {
        let content = format!("{:#}\n", json!({"protect": protected}));
        let is_new = write_new(&root.join(PROJECT_GATE), &content)?;
        lines.push((PROJECT_GATE, if is_new { WRITTEN } else { LEFT }));
    }
    let built = made_for.map(|_| try_build(context)).transpose()?;
    if let (Some(built), (_, done @ LEFT)) = (&built, &mut lines[0]) {
        *done = built.ignored;
    }
    let line = |(path, done): &(&str, &str)| format!("{done:>13}  {path}\n");
    let listed = lines.iter().map(line);
    let text: String = listed.chain(built.iter().map(FirstBuild::text)).collect();
    let file = |(path, done): &(&str, &str)| json!({"path": path, "done": done});
    let done: Vec<_> = lines.iter().map(file).collect();
    let next = next_steps(context, made_for.zip(built.as_ref()), &lines);
    let build = built.as_ref().map(|built| &built.record);
    let data = json!({"schema": 1, "files": done, "build": build, "next": next});
    Ok(Outcome {
        summary: "done: the project is set up".to_owned(),
        next: Some(next.join("\n")),
        ..Outcome::shown(text, data)
    })
}

/// Descriptions of what was done with a file.
const WRITTEN: &str = "written";
const EXTENDED: &str = "lines added";
const LEFT: &str = "left as it is";

fn next_steps(
    context: &Context<'_>,
    built: Option<(&str, &FirstBuild)>,
    files: &[(&str, &str)],
) -> Vec<String> {
    let mut steps = Vec::new();
    let models = context.models.as_ref().map_or(&[][..], ModelTable::models);
    if !models.iter().any(|spec| keys::find(context, spec).is_ok()) {
        steps.push("put an API key into agent-config/gemini-key.txt or GEMINI_API_KEY, or configure a local model in agent-config/models.json".to_owned());
    }
    steps.push(match built {
        Some((sign, FirstBuild { passed: true, .. })) => {
            format!("check build.sh: it was made for {sign}, and passes on the project as it is")
        }
        Some((sign, FirstBuild { status, .. })) => format!(
            "fix the project or build.sh: it was made for {sign}, and fails on the project as it is ({status})"
        ),
        // The kind of project is unknown.
        None if matches!(inspect(context.project.root(), None), Err(ScriptProblem::Placeholder)) => {
            "write the commands that build and test the project into build.sh, which fails until then"
                .to_owned()
        }
        None => "check build.sh: it must pass on the project as it is".to_owned(),
    });
    let made = built.map(|(_, built)| &built.made);
    steps.extend(made.filter(|made| !made.is_empty()).map(|made| {
        let named = listed(made.iter().map(|name| format!("`{name}`")), NAMED);
        format!("the build has made {named}: add it to git, or to .gitignore")
    }));
    if files.contains(&(PROJECT_GATE, WRITTEN)) {
        steps.push(format!(
            "check {PROJECT_GATE}: no reply may change what it protects, which build.sh rests on"
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
    let numbered = (1..).zip(steps).map(|(at, step)| format!("{at}. {step}"));
    numbered.collect()
}

/// Returns the git command to run first, so that a later diff shows only the change; `None` if none is needed.
fn tracking(root: &Path, files: &[(&str, &str)]) -> Option<String> {
    let add = "git add --all: the rollup contains the files that git tracks";
    match TrackedPaths::below(root) {
        Err(ProjectProblem::NoRepository) => return Some(format!("git init && {add}")),
        Ok(tracked) if tracked == TrackedPaths::default() => return Some(add.to_owned()),
        _ => {}
    }
    let is_new = |(path, done): &&(&str, &str)| *done != LEFT && !path.starts_with(CONFIG);
    let new = files.iter().filter(is_new).map(|(path, _)| *path);
    let written = new.collect::<Vec<_>>().join(" ");
    let only = format!("git add {written}: then `git add -N . && git diff` shows the change alone");
    Some(only).filter(|_| !written.is_empty())
}

/// Returns a table that offers the successor of the default model; `None` if there is none, or it is already offered.
fn successors_table(context: &Context<'_>) -> Option<String> {
    let table = context.models.as_ref().ok()?;
    let successor = catalogue::successor(&table.chosen(&Purpose::INITIAL).id)?;
    let entry = catalogue::known(successor)?.entry.as_ref()?;
    let with = ModelTable::with_entry("{}\n", successor, entry.get()).ok()?;
    with.filter(|_| table.named(successor).is_none())
}

/// Generates a `build.sh` for a project of these kinds.
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

/// Returns the files and settings that replies must not change if the script is to judge them: the file that identifies
/// the kind of project, or the part of it that the script runs, and files that would take precedence over it.
fn rests_on(sign: &str, script: &str) -> Vec<&'static str> {
    let runs = |program: &str| script.lines().any(|line| line.starts_with(program));
    match sign {
        "package.json" if runs("npm ") => vec!["package.json#/scripts", "/.npmrc"],
        // Patterns ignore letter case, and make prefers `GNUmakefile`.
        "Makefile" | "makefile" | "GNUmakefile" => vec!["/Makefile", "/GNUmakefile"],
        _ => Vec::new(),
    }
}

/// The first run of the new script, on the unmodified project.
struct FirstBuild {
    passed: bool,
    /// The exit status in words.
    status: String,
    record: Option<BuildRecord>,
    /// The end of its output, indented.
    last_lines: String,
    /// The change to `.gitignore` for the files left by the build.
    ignored: &'static str,
    /// The files and directories that the build left, as visible to git.
    made: BTreeSet<String>,
}

impl FirstBuild {
    /// Returns the reason for the failure on separate lines; empty if the build passed.
    fn text(&self) -> String {
        if self.passed {
            return String::new();
        }
        let (status, lines) = (&self.status, &self.last_lines);
        format!("\nbuild.sh fails, {status}:\n{lines}\n")
    }
}

/// Runs the new script in the same sandbox as a run's builds. A script that cannot be run is not an error.
fn try_build(context: &Context<'_>) -> Result<FirstBuild, Failure> {
    let options = BuildOptions {
        timeout: BUILD_TIMEOUT,
        sandbox: SandboxMode::Auto,
        hosts: &[],
    };
    let root = context.project.root();
    let before = entries(root, None);
    let mut output = Excerpt::default();
    let mut builds = Builds::new(context, options)?;
    let (mut passed, mut status, record) = match builds.run(Usd::ZERO, &mut output) {
        Ok(report) => {
            // The summary also gives the reasons.
            let record = builds.report(&report, Vec::new());
            let status = describe(report.status);
            (report.status.passed(), status, Some(record))
        }
        Err(error) => match error.downcast_ref() {
            None | Some(ProcessError::Interrupted(_)) => return Err(error.into()),
            Some(error) => (false, error.to_string(), None),
        },
    };
    if let Some(changed) = builds.gate_change().map_err(Error::from)? {
        (passed, status) = (false, changed.to_string());
    }
    let output = context.redactor.text(&output.into_text()).into_owned();
    let lines = output.lines().count();
    let last = output.lines().skip(lines.saturating_sub(LAST_LINES));
    let mut made = &entries(root, Some(&before)) - &before;
    let ignored = ignore(context, ProjectKind::ignoring(&made))?;
    made.retain(|path| !context.project.ignores(path));
    Ok(FirstBuild {
        passed,
        status,
        record,
        last_lines: last.map(|line| format!("    {line}\n")).collect(),
        ignored,
        made,
    })
}

/// Returns the paths below `root` that git does not ignore; directories that are not `known` are not searched.
fn entries(root: &Path, known: Option<&BTreeSet<String>>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk::each_in_project(root, |path, _| {
        let is_known = known.is_none_or(|known| known.contains(&path));
        found.insert(path);
        is_known
    });
    found
}

/// Appends lines to `.gitignore`, so that git ignores the folders with keys and logs, as well as build artefacts.
fn ignore(
    context: &Context<'_>,
    leaves: impl Iterator<Item = &'static str>,
) -> Result<&'static str, Error> {
    let project = &context.project;
    let path = project.root().join(GITIGNORE);
    let add = || {
        // A symbolic link may lead anywhere.
        if path.is_symlink() {
            return Err(io::Error::other("it is a symbolic link"));
        }
        let before = files::read(&path, Links::Refused, MIB).if_there()?;
        let text = String::from_utf8_lossy(before.as_deref().unwrap_or_default());
        let is_logs = |line: &str| line.trim().trim_matches('/') == LOGS;
        // If the repository cannot be read, an existing line is enough.
        let lacks_config = matches!(
            project.check_gitignore(&context.key_files()),
            Err(ProjectProblem::NoGitignore | ProjectProblem::NotIgnored)
        );
        let lines = [
            ("/agent-config\n", lacks_config),
            ("/logs\n", !text.lines().any(is_logs)),
        ];
        let lacking = lines.into_iter().filter(|(_, lacks)| *lacks);
        let own = lacking.map(|(line, _)| line.to_owned());
        let directories = left_by_builds(&context.project, leaves);
        let left = directories.iter().map(|line| format!("{line}\n"));
        let added: String = own.chain(left).collect();
        if added.is_empty() {
            return Ok(LEFT);
        }
        files::append(&path)?.write_all(format!("{}{added}", line_end(&text)).as_bytes())?;
        Ok(before.map_or(WRITTEN, |_| EXTENDED))
    };
    Ok(add().map_err(PathError::of("write", GITIGNORE))?)
}

/// Returns the build artefacts that git neither ignores nor tracks under the same names.
fn left_by_builds(
    project: &Project,
    leaves: impl Iterator<Item = &'static str>,
) -> BTreeSet<&'static str> {
    let tracked: BTreeSet<String> = TrackedPaths::below(project.root())
        .unwrap_or_default()
        .files()
        .flat_map(|path| path.split('/').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let is_lacking = |line: &&str| {
        let name = line.trim_start_matches('/').replace('*', "x");
        !tracked.contains(&name) && !project.ignores(&name)
    };
    leaves.filter(is_lacking).collect()
}

/// Writes a file unless it exists, making a script executable. Returns `true` if it was written.
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
