//! The demo: creates a small project with recorded replies, then runs the real pipeline on it or plays back a
//! recorded chat.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use clap::Args;

use super::error::CommandError;
use super::init;
use crate::model::ModelTable;
use crate::project::Project;
use crate::project::home::CHAT;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome, RunOutput};
use crate::sys::environment::Environment;
use crate::sys::error::Error;
use crate::sys::files::PathError;
use crate::sys::git::Git;
use crate::sys::text::shell_quoted;

#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// New or empty directory [default: code-commit-demo]
    pub directory: Option<PathBuf>,

    /// Show a recorded chat with the agent of `chat` instead
    #[arg(long)]
    pub chat: bool,
}

/// Runs the command that a command line specifies.
type RunCommand<'r> = &'r dyn Fn(&Context<'_>, &[OsString]) -> Result<Outcome, Failure>;

/// The default directory of the demo.
const DIRECTORY: &str = "code-commit-demo";
/// The folder with the recorded replies.
const RECORDING: &str = "recorded-run";

/// Embeds fixture files by name and content.
macro_rules! fixtures {
    ($folder:literal: $($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../fixtures/", $folder, "/", $name)))),*]
    };
}
type Fixtures = &'static [(&'static str, &'static str)];

/// The project's sources, which make up the code base.
const SOURCES: Fixtures = fixtures!("demo": "slug.sh", "test.sh", "build.sh");
const GITIGNORE: &str = "/agent-config\n/logs\n/recorded-run\n";
const QUERY: &str = include_str!("../../fixtures/demo/query.txt");

/// A recorded run of the commit workflow.
const COMMIT_RUN: Fixtures =
    fixtures!("demo": "initial-query-response.json", "repair-query-1-response.json");
/// A recorded chat in which the user allowed everything.
const CHAT_RUN: Fixtures = fixtures!("chat-demo": "0001-step-response.json", "0002-step-response.json",
    "0003-step-response.json", "0004-step-response.json", "0005-step-response.json", "agent.json", "result.json");

/// The command lines that replay the recordings. They need no sandbox, since their builds run only the demo's own code.
const COMMIT: &str = "code-commit --replay recorded-run --sandbox off --diff";
const CHAT_COMMAND: &str = "code-commit chat --replay recorded-run --sandbox off";

/// Writes the demo's project to the given directory, or to a new default one, and has `run` run the commit workflow or
/// the chat agent in it. The context's project is the one in which the demo was started.
///
/// # Errors
/// Fails if the project cannot be written, or the run fails.
pub fn demo(
    context: &Context<'_>,
    arguments: &DemoArgs,
    run: RunCommand<'_>,
) -> Result<Outcome, Failure> {
    let shown = choose(context.project.root(), arguments.directory.as_deref())?;
    let made = context.project.root().join(&shown);
    let (recorded, command) = if arguments.chat {
        (CHAT_RUN, CHAT_COMMAND)
    } else {
        (COMMIT_RUN, COMMIT)
    };
    write_project(&made, recorded)?;
    let root = made.canonicalize().map_err(PathError::of("write", made))?;
    let tracked = track(context, &root);
    // Ignore the surrounding project's models: the recording uses a built-in one.
    let models = Ok(ModelTable::built_in());
    // Also ignore the settings in the user's home.
    let home = root.join("agent-config/agent").into_os_string();
    // Programs from the surrounding project must not be used in the demo.
    let given = context.environment.os("PATH").unwrap_or_default();
    let is_outside = |entry: &PathBuf| !entry.starts_with(context.project.root());
    let path = env::join_paths(env::split_paths(given).filter(is_outside)).unwrap_or_default();
    let own = [(CHAT.variable.into(), home), ("PATH".into(), path)];
    let environment = Environment::from_iter(own).with_defaults(context.environment);
    let context = Context {
        project: Project::new(&root, &root),
        environment: &environment,
        models: &models,
        ..context.clone()
    };
    introduce(&context, arguments.chat);
    let words: Vec<OsString> = command.split(' ').map(Into::into).collect();
    let mut done = run(&context, &words);
    if let Some(log) = &mut RunOutput::of(&mut done).log {
        *log = shown.join(&*log).display().to_string();
    }
    let look = if tracked {
        "git diff"
    } else {
        "cat slug.sh test.sh"
    };
    let directory = shell_quoted(&shown.display().to_string());
    Ok(Outcome {
        next: Some(format!("see for yourself: cd {directory} && {look}")),
        ..done?
    })
}

/// Prints an introduction for newcomers, and the demo's task.
fn introduce(context: &Context<'_>, is_chat: bool) {
    context.notice("The replies are recorded: no model is asked, and nothing is paid.");
    context.notice(if is_chat {
        "So are the user's answers. The request:"
    } else {
        "The task, in agent-config/query.txt:"
    });
    for line in QUERY.lines() {
        context.notice(format!("  {line}"));
    }
}

/// Returns the directory to use: the given one, which must be empty, or the first free default.
fn choose(here: &Path, named: Option<&Path>) -> Result<PathBuf, Error> {
    let is_free = |directory: &Path| {
        is_free(&here.join(directory)).map_err(PathError::of("write", directory))
    };
    if let Some(named) = named {
        if !is_free(named)? {
            return Err(CommandError::DemoNotEmpty(named.to_path_buf()).into());
        }
        return Ok(named.to_path_buf());
    }
    let mut directory = PathBuf::from(DIRECTORY);
    let mut nth = 1;
    while !is_free(&directory)? {
        nth += 1;
        directory = format!("{DIRECTORY}-{nth}").into();
    }
    Ok(directory)
}

fn is_free(directory: &Path) -> io::Result<bool> {
    match fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_project(root: &Path, recorded: Fixtures) -> Result<(), Error> {
    let rollup = SOURCES
        .iter()
        .map(|(path, content)| format!("--- {path} ---\n{content}"));
    let others = [
        (".gitignore", GITIGNORE),
        ("agent-config/query.txt", QUERY),
        ("agent-config/codeRollup.txt", &rollup.collect::<String>()),
    ];
    for (name, content) in SOURCES.iter().chain(&others) {
        init::write_new(&root.join(name), content)?;
    }
    for (name, content) in recorded {
        init::write_new(&root.join(RECORDING).join(name), content)?;
    }
    Ok(())
}

/// Adds the project's files to a git index, so that `git diff` shows what the run changed. Returns `false` if
/// git is not available; a `git` inside the surrounding project is never used.
fn track(context: &Context<'_>, root: &Path) -> bool {
    let path = context.environment.os("PATH");
    let Some(git) = Git::find(path, context.project.root()) else {
        return false;
    };
    let run = |arguments: &[&str]| {
        let status = git.command(root, arguments).status();
        status.is_ok_and(|status| status.success())
    };
    run(&["init", "--quiet"]) && run(&["add", "--all"])
}
