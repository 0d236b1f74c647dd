//! Moves the process into a scratch tree, before any thread is started.

use std::path::Path;

use super::command_line::Cli;
use crate::project::run_folder::make_directory;
use crate::project::{CONFIG, LOGS, Project};
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::run::scratch::{ScratchRun, remove_made};
use crate::run::{builds, recovery};
use crate::sys::error::Error;
use crate::sys::files::{IfThere as _, PathError};
use crate::sys::identity::stamp;

/// An agent cannot work in a copy whose path differs from its project's.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("no scratch tree can be mounted here, since namespaces are not allowed")]
#[diagnostic(
    code("/sandbox"),
    help("allow user namespaces, or do without `--scratch`")
)]
struct NotMounted;

/// Creates the scratch tree that this command line requests, if any, and moves the process into it. The user works in
/// `directory`. Also returns the project in the tree.
///
/// # Errors
/// Fails if another run has locked the project, or no tree can be created.
pub fn enter_scratch(
    cli: &Cli,
    context: &Context<'_>,
    directory: &Path,
) -> Result<Option<(ScratchRun, Project)>, Error> {
    let mode = match &cli.command {
        None => cli.scratch.filter(|_| !cli.dry_run),
        Some(command) => command.agent().and_then(|agent| agent.scratch),
    };
    let Some(mode) = mode else {
        return Ok(None);
    };
    let lock = recovery::take_for_scratch(context)?;
    let root = context.project.root();
    let mut made = Vec::new();
    for name in [CONFIG, LOGS] {
        // A directory created in the tree would be lost with it.
        let path = root.join(name);
        let found = path.symlink_metadata().if_there();
        if found.map_err(PathError::of("read", &path))?.is_none() {
            make_directory(&path).map_err(PathError::of("write", &path))?;
            made.push(name);
        }
    }
    let began = stamp(context.clock.now());
    let scratch = builds::scratch(context).inspect_err(|_| remove_made(root, &made))?;
    let run = ScratchRun {
        made,
        mode,
        lock,
        began,
        journal: context.project.journal_directory(),
        scratch,
    };
    let entered = run.scratch.enter(directory);
    let is_mounted = entered.map_err(PathError::of("enter", root))?;
    if !is_mounted && cli.command.is_some() {
        return Err(NotReady::of(NotMounted).into());
    }
    let mut tree = root.to_path_buf();
    if !is_mounted {
        tree = run.scratch.root();
        context.warn("no scratch tree can be mounted here, so builds run in a copy at another path: absolute paths in caches lead into the project");
    }
    let private = run.scratch.private();
    let project = context.project.clone().in_scratch(tree, private);
    Ok(Some((run, project)))
}
