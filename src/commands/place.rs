//! Finds the project of a command, and resolves the paths that its user gives.
//!
//! Only reads directories.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::commands::command::Command;
use crate::commands::command_line::Cli;
use crate::commands::error::CommandError;
use crate::project::place::{self, FoundRoot};
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome, RunOutput};
use crate::sys::files::open_directory;

/// The project of a command, and its position relative to the current directory.
pub struct ProjectPlace {
    here: PathBuf,
    found: FoundRoot,
    /// Notice that names the project; `None` if the user is in its root or has named it.
    notice: Option<String>,
    /// Value of `--root` that is not a usable directory, and the system's error.
    wrong: Option<(PathBuf, i32)>,
}

impl ProjectPlace {
    /// Uses the directory given with `--root`, or else searches for the project from `here`, an absolute path. Commands
    /// that need no project use the current directory.
    pub fn find(cli: &Cli, here: &Path) -> Self {
        let command = cli.command.as_ref();
        let is_here = command.is_some_and(Command::is_without_project);
        let (mut notice, mut wrong) = (None, None);
        let at = |root: &Path| FoundRoot {
            root: root.to_path_buf(),
            passed_over: None,
        };
        let found = match &cli.place.root {
            Some(named) => {
                let root = directory(&here.join(named)).map_err(|error| {
                    wrong = Some((named.clone(), error.raw_os_error().unwrap_or_default()));
                });
                at(&root.unwrap_or_else(|()| here.to_path_buf()))
            }
            None if is_here => at(here),
            None => {
                let found = place::find(here, geteuid().as_raw());
                let way = place::relative(here, &found.root);
                notice = (found.root != here).then(|| format!("project: {}", way.display()));
                found
            }
        };
        Self {
            here: here.to_path_buf(),
            found,
            notice,
            wrong,
        }
    }

    /// Returns the project's root.
    pub fn root(&self) -> &Path {
        &self.found.root
    }

    /// Returns the directory whose sessions an agent resumes: the one given with `--root`, or the current one.
    pub fn working_directory(&self) -> &Path {
        if self.notice.is_some() {
            &self.here
        } else {
            self.root()
        }
    }

    /// Tells the user which project is used, unless that is obvious.
    ///
    /// # Errors
    /// Fails if `--root` does not name a directory.
    pub fn enter(&self, context: &Context<'_>) -> Result<(), Failure> {
        if let Some((path, error)) = self.wrong.clone() {
            let source = io::Error::from_raw_os_error(error);
            return Err(CommandError::NoRoot { path, source }.into());
        }
        if let Some(passed_over) = &self.found.passed_over {
            let path = place::relative(&self.here, passed_over);
            let way = path.display();
            context.warn(format!(
                "`{way}` belongs to another user and is not taken for the project; `--root {way}` names it, and \
                 `git config --global --add safe.directory {}` makes git use it",
                passed_over.display()
            ));
        }
        if let Some(notice) = &self.notice {
            context.notice(notice.clone());
        }
        Ok(())
    }

    /// Returns the command line with its paths, which the user gives relative to the current directory, made valid from
    /// the root.
    pub fn resolve(&self, cli: &Cli) -> Cli {
        let mut cli = cli.clone();
        if self.is_here() {
            return cli;
        }
        let from_here = |path: &mut PathBuf| *path = self.here.join(&*path);
        // A value that is not an existing path may be the name of a run.
        let run_from_here = |run: &mut PathBuf| {
            if self.here.join(&*run).exists() {
                from_here(run);
            }
        };
        let report = &mut cli.report.findings_file;
        let files = cli.summary_file.iter_mut().chain(report);
        files.for_each(from_here);
        let runs = cli.replay.iter_mut().chain(&mut cli.replies.resume);
        runs.for_each(run_from_here);
        if let Some(command) = &mut cli.command {
            command.named_runs().into_iter().for_each(run_from_here);
            command.paths().into_iter().for_each(from_here);
        }
        let chosen = cli.inputs.chosen.paths();
        let others = cli.command.iter_mut().flat_map(Command::code_paths);
        for path in chosen.chain(others) {
            let named = self.here.join(&*path);
            // Settings in files name paths from the root.
            if named.exists() {
                *path = place::relative(self.root(), &path_clean::clean(named));
            }
        }
        cli
    }

    /// Returns the command's outcome, with the path of the run's folder relative to the current directory.
    pub fn seen_from(&self, mut done: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
        if let Some(log) = &mut RunOutput::of(&mut done).log
            && !self.is_here()
        {
            let way = place::relative(&self.here, self.root());
            *log = way.join(&*log).display().to_string();
        }
        done
    }

    fn is_here(&self) -> bool {
        self.here == self.found.root
    }
}

/// Resolves the links in a directory's path, after checking that the directory can be opened.
fn directory(path: &Path) -> io::Result<PathBuf> {
    open_directory(path)?;
    path.canonicalize()
}
