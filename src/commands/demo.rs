//! The demo: writes a small project with recorded replies, and runs the real pipeline on it, or has a recorded chat
//! told.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use super::chat::command::chat;
use super::commit::{CommitOptions, commit};
use super::init;
use super::workspace::{AgentOptions, SessionChoice};
use crate::agent::tools::place::Outside;
use crate::commands::cli::replies::{OnFailure, ReplyArgs};
use crate::commands::error::CommandError;
use crate::exec::sandbox::SandboxMode;
use crate::model::{Delivery, ModelTable};
use crate::project::Project;
use crate::project::home::CHAT;
use crate::run::builds::BuildOptions;
use crate::run::context::{Context, InputOptions, ModelChoice, Stdin};
use crate::run::outcome::{Failure, Outcome};
use crate::sys::environment::Environment;
use crate::sys::error::Error;
use crate::sys::files::PathError;
use crate::sys::git::Git;

/// The default directory of the demo.
const DIRECTORY: &str = "code-commit-demo";
/// The folder with the recorded replies.
const RECORDING: &str = "recorded-run";
/// Far more than the demo's build needs.
const BUILD_TIMEOUT: Duration = Duration::from_secs(60);

/// The project's sources: what goes into the code base.
const SOURCES: [(&str, &str); 3] = [
    ("slug.sh", include_str!("../../fixtures/demo/slug.sh")),
    ("test.sh", include_str!("../../fixtures/demo/test.sh")),
    ("build.sh", include_str!("../../fixtures/demo/build.sh")),
];

/// The project's other files.
const OTHERS: [(&str, &str); 2] = [
    (".gitignore", "/agent-config\n/logs\n/recorded-run\n"),
    (
        "agent-config/query.txt",
        include_str!("../../fixtures/demo/query.txt"),
    ),
];

/// A recorded run, in [`RECORDING`].
type RecordedFiles = &'static [(&'static str, &'static str)];

/// One of the commit workflow.
const COMMIT: RecordedFiles = &[
    (
        "initial-query-response.json",
        include_str!("../../fixtures/demo/initial-query-response.json"),
    ),
    (
        "repair-query-1-response.json",
        include_str!("../../fixtures/demo/repair-query-1-response.json"),
    ),
];

/// One of a chat, whose user has allowed everything.
const CHAT_RUN: RecordedFiles = &[
    (
        "0001-step-response.json",
        include_str!("../../fixtures/chat-demo/0001-step-response.json"),
    ),
    (
        "0002-step-response.json",
        include_str!("../../fixtures/chat-demo/0002-step-response.json"),
    ),
    (
        "0003-step-response.json",
        include_str!("../../fixtures/chat-demo/0003-step-response.json"),
    ),
    (
        "0004-step-response.json",
        include_str!("../../fixtures/chat-demo/0004-step-response.json"),
    ),
    (
        "0005-step-response.json",
        include_str!("../../fixtures/chat-demo/0005-step-response.json"),
    ),
    (
        "agent.json",
        include_str!("../../fixtures/chat-demo/agent.json"),
    ),
    (
        "result.json",
        include_str!("../../fixtures/chat-demo/result.json"),
    ),
];

/// Writes the demo's project to `directory`, or to a new one beside the others, and runs the commit
/// workflow on it, or `is_chat`: the agent at the terminal, without one. The context's project is where the command
/// was given.
///
/// # Errors
/// When the project cannot be written, or whatever can go wrong in such a run.
pub fn demo(
    context: &Context<'_>,
    directory: Option<&Path>,
    is_chat: bool,
) -> Result<Outcome, Failure> {
    let shown = choose(context.project.root(), directory)?;
    let root = context.project.root().join(&shown);
    write_project(&root, if is_chat { CHAT_RUN } else { COMMIT })?;
    let resolved = root.canonicalize();
    let root = resolved.map_err(PathError::of("write", root))?;
    let tracked = track(context, &root);
    // Whatever models the surrounding project has: the recording is of a built-in one.
    let models = Ok(ModelTable::built_in());
    // Nor is it about what its user has in their home.
    let home = root.join("agent-config/agent").into_os_string();
    let home = [(CHAT.variable.into(), home)];
    let environment = Environment::from_iter(home).with_defaults(context.environment);
    let context = Context {
        project: Project::new(root.clone()),
        directory: &root,
        environment: &environment,
        models: &models,
        ..context.clone()
    };
    introduce(&context, is_chat);
    let outcome = if is_chat {
        let nobody = Stdin {
            is_terminal: false,
            is_seen: false,
        };
        chat(&context, &chat_options(), None, None, nobody)
    } else {
        commit(&context, &commit_options())
    };
    let below = |log: String| shown.join(log).display().to_string();
    let outcome = outcome.map_err(|failure| Failure {
        log: failure.log.clone().map(below),
        ..failure
    })?;
    let look = if tracked {
        "git diff"
    } else {
        "cat slug.sh test.sh"
    };
    let directory = shown.display().to_string();
    let directory = shlex::try_quote(&directory).unwrap_or_default();
    let next = format!("see for yourself: cd {directory} && {look}");
    Ok(Outcome {
        log: outcome.log.clone().map(below),
        next: Some(next),
        ..outcome
    })
}

/// The recorded run in place of a model.
fn recorded() -> ModelChoice {
    ModelChoice {
        model: None,
        replay: Some(RECORDING.into()),
        resume: None,
        timeout: Duration::ZERO, // nothing is called
        delivery: Delivery::Whole,
        allow_secrets: false,
        inputs: InputOptions::default(),
        require_model: false,
        tier: None,
        max_cost: None,
    }
}

fn commit_options() -> CommitOptions {
    CommitOptions {
        choice: recorded(),
        build: BuildOptions {
            timeout: BUILD_TIMEOUT,
            // Nothing of it is anybody else's.
            sandbox: SandboxMode::Off,
        },
        baseline: false,
        hosts: Vec::new(),
        replies: ReplyArgs::default(),
        on_failure: OnFailure::Keep,
        show_diff: true,
    }
}

fn chat_options() -> AgentOptions {
    AgentOptions {
        request: None,
        session: SessionChoice::New,
        choice: recorded(),
        sandbox: SandboxMode::Off,
        hosts: Vec::new(),
        outside: Outside::Refused,
    }
}

/// Prints an introduction for newcomers, and the demo's task.
fn introduce(context: &Context<'_>, is_chat: bool) {
    context.notice("The replies are recorded: no model is asked, and nothing is paid.");
    if is_chat {
        context.notice("So are the user's answers. The request:");
    } else {
        context.notice("The task, in agent-config/query.txt:");
    }
    let task = include_str!("../../fixtures/demo/query.txt");
    for line in task.lines() {
        context.notice(format!("  {line}"));
    }
}

/// The directory to use: the one named, which must be empty, or the first that is free.
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

fn write_project(root: &Path, recorded: RecordedFiles) -> Result<(), Error> {
    let rollup: String = SOURCES
        .map(|(path, content)| format!("--- {path} ---\n{content}"))
        .concat();
    let files = SOURCES.iter().chain(&OTHERS).copied();
    for (name, content) in files.chain([("agent-config/codeRollup.txt", rollup.as_str())]) {
        init::write_new(&root.join(name), content)?;
    }
    for (name, content) in recorded {
        init::write_new(&root.join(RECORDING).join(name), content)?;
    }
    Ok(())
}

/// Puts the project's files into a git index, so that `git diff` shows what the run changed. Says
/// whether there is a git to do so. It is not taken from the project that the command was given in.
fn track(context: &Context<'_>, root: &Path) -> bool {
    let path = context.environment.os("PATH");
    let Some(git) = Git::find(path, context.project.root()) else {
        return false;
    };
    let run = |arguments: &[&str]| {
        let status = git
            .command(root, arguments)
            .and_then(|mut git| git.status().ok());
        status.is_some_and(|status| status.success())
    };
    run(&["init", "--quiet"]) && run(&["add", "--all"])
}
