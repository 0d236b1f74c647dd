//! The builds of a run: each is run by `build.sh`, shut in as far as was asked for.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::context::Context;
use super::not_ready::NotReady;
use crate::exec::build_script::{BuildError, BuildReport, BuildScript};
use crate::exec::sandbox::{Premises, Sandbox, SandboxProblem, Strictness};
use crate::record::SandboxRecord;
use crate::record::run_log::BuildLog;
use crate::sys::environment::KEY_VARIABLES;
use crate::ui::Event;
use crate::workflow::error::Error;

/// How builds are to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildOptions {
    /// How long a build may take.
    pub timeout: Duration,
    /// How far it is shut in.
    pub containment: Containment,
}

/// How far builds are shut in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// Away from keys and other processes, where that is possible.
    WherePossible,
    /// Away from the network and the rest of the disk too; else there are none.
    Strict,
    /// Not at all.
    Off,
}

/// Runs builds.
pub struct Builds<'c> {
    context: &'c Context<'c>,
    options: BuildOptions,
    /// The variables that builds do not get.
    hidden: Vec<OsString>,
    sandbox: Option<Sandbox>,
    /// Whether a build was shut in already: from then on there is no doing without.
    contained: bool,
}

impl<'c> Builds<'c> {
    /// Finds out what builds can be shut in with.
    pub fn new(context: &'c Context<'c>, options: BuildOptions) -> Self {
        let found = match options.containment {
            Containment::Off => None,
            Containment::WherePossible => Some(find(context, Strictness::Lenient)),
            Containment::Strict => Some(find(context, Strictness::Strict)),
        };
        let mut builds = Self {
            context,
            options,
            hidden: key_variables(context),
            sandbox: None,
            contained: false,
        };
        match found {
            None => {}
            Some(Ok(sandbox)) => builds.sandbox = Some(sandbox),
            Some(Err(problem)) => builds.go_without(&problem),
        }
        builds
    }

    /// Runs a build.
    pub fn run(&mut self, log: &mut BuildLog<'_>) -> Result<BuildReport, BuildError> {
        let report = match self.script().run(log) {
            Err(BuildError::Sandbox(problem)) if self.may_go_without(&problem) => {
                self.go_without(&problem);
                self.script().run(log)
            }
            other => other,
        }?;
        if let Some(sandbox) = &self.sandbox {
            self.contained = true;
            sandbox.check_premises()?;
        }
        Ok(report)
    }

    fn may_go_without(&self, problem: &SandboxProblem) -> bool {
        self.options.containment == Containment::WherePossible
            && !self.contained
            && !matches!(problem, SandboxProblem::Moved(_))
    }

    /// How far the last build was shut in.
    pub fn record(&self) -> SandboxRecord {
        match (&self.sandbox, self.options.containment) {
            (None, _) => SandboxRecord::Off,
            (Some(_), Containment::Strict) => SandboxRecord::Strict,
            (Some(_), _) => SandboxRecord::Auto,
        }
    }

    /// The run goes on, and says so.
    fn go_without(&mut self, problem: &SandboxProblem) {
        self.sandbox = None;
        let reason = problem.to_string();
        self.context
            .reporter
            .event(Event::Uncontained { reason: &reason });
    }

    fn script(&self) -> BuildScript<'_> {
        BuildScript {
            root: self.context.project.root(),
            path: self.context.environment.os("PATH"),
            timeout: self.options.timeout,
            clock: self.context.clock,
            interrupt: self.context.interrupt,
            hidden: &self.hidden,
            sandbox: self.sandbox.as_ref(),
        }
    }
}

/// Sees whether builds can be shut in strictly, before anything depends on it.
pub fn check_strict(context: &Context<'_>) -> Result<(), SandboxProblem> {
    find(context, Strictness::Strict)?.try_out(context.interrupt)
}

/// What an agent's commands are shut in, with `key_file` hidden from them besides the project's own keys.
///
/// # Errors
/// When they are to be shut in strictly, and cannot be.
pub fn shut_in(
    context: &Context<'_>,
    containment: Containment,
    key_file: &Path,
) -> Result<Option<Sandbox>, Error> {
    let strictness = match containment {
        Containment::Off => return Ok(None),
        Containment::WherePossible => Strictness::Lenient,
        Containment::Strict => Strictness::Strict,
    };
    let found = find_with(context, strictness, &[key_file]).and_then(|sandbox| {
        sandbox.try_out(context.interrupt)?;
        Ok(sandbox)
    });
    match (found, containment) {
        (Ok(sandbox), _) => Ok(Some(sandbox)),
        (Err(SandboxProblem::Interrupted(interrupted)), _) => Err(interrupted.into()),
        (Err(problem), Containment::Strict) => Err(NotReady::from(problem).into()),
        (Err(problem), _) => {
            let reason = problem.to_string();
            context
                .reporter
                .event(Event::Uncontained { reason: &reason });
            Ok(None)
        }
    }
}

/// The variables that commonly hold keys, and those that hold one of this project's.
pub fn key_variables(context: &Context<'_>) -> Vec<OsString> {
    let holds_key = |value: &str| context.redactor.find(value).next().is_some();
    let mut names = context.environment.names_where(holds_key);
    names.extend(KEY_VARIABLES.map(OsString::from));
    names
}

fn find(context: &Context<'_>, strictness: Strictness) -> Result<Sandbox, SandboxProblem> {
    find_with(context, strictness, &[])
}

/// The same with further key files.
fn find_with(
    context: &Context<'_>,
    strictness: Strictness,
    further: &[&Path],
) -> Result<Sandbox, SandboxProblem> {
    let project = &context.project;
    let key_files = context.key_files().into_iter();
    let key_files = key_files.map(|file| project.config().join(file));
    let further = further.iter().map(|file| file.to_path_buf());
    let premises = Premises {
        root: project.root().to_path_buf(),
        keys: project.config(),
        key_files: key_files.chain(further).collect(),
        git: project.root().join(".git"),
        read_only: vec![project.logs()],
    };
    let Some(program) = context.program else {
        let reason = "the path of this program is not known";
        return Err(SandboxProblem::Unusable(reason.to_owned()));
    };
    let path = context.environment.os("PATH");
    Sandbox::find(path, &program.path, premises, strictness)
}
