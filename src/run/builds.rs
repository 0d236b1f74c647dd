//! The builds of a run: each runs `build.sh`, in the sandbox mode requested.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::getuid;

use super::context::Context;
use super::error::RunError;
use super::gate::{Gate, GateChanged};
use super::not_ready::NotReady;
use crate::edit::PROTECTED_FILES;
use crate::exec::build_script::{self, BUILD_SCRIPT, BuildReport, BuildScript, BuildStatus};
use crate::exec::child_env::ChildEnv;
use crate::exec::hosts::AllowedHost;
use crate::exec::process::{CommandStatus, ProcessError, ScriptProblem};
use crate::exec::sandbox::{Sandbox, SandboxMode, SandboxPolicy, SandboxProblem, services};
use crate::exec::scratch::{Scratch, ScratchPlace};
use crate::model::price::Usd;
use crate::project::home::{self, AGENT_FOLDER};
use crate::project::repositories::ProjectSearch;
use crate::project::{CONFIG, LOGS, configured, repository};
use crate::record::event::{Event, Reporter};
use crate::record::finding::Finding;
use crate::record::run_log::{BuildLog, BuildOutput, LogError};
use crate::record::seconds::Seconds;
use crate::record::step::BuildRecord;
use crate::run::keys;
use crate::run::past::findings;
use crate::secret::SecretKind;
use crate::sys::error::Error;
use crate::sys::files::{self, Links, MIB, PathError};
use crate::sys::{atomic_file, sha256};

/// Options for running builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildOptions<'b> {
    /// Time limit for a build.
    pub timeout: Duration,
    /// The sandbox mode of the build.
    pub sandbox: SandboxMode,
    /// Hosts that builds may reach in a strict sandbox.
    pub hosts: &'b [AllowedHost],
}

/// A finished build.
pub struct Built {
    /// The outcome.
    pub status: BuildStatus,
    /// The entry for the run's record.
    pub record: BuildRecord,
    /// The problems found in its output, if it failed.
    pub findings: Vec<Finding>,
    /// The output for the next prompt.
    pub output: String,
    /// Warnings about the build.
    pub warnings: Vec<String>,
}

/// The builds of a run: runs and reports them, and detects their changes to the gate.
pub struct Builds<'c> {
    context: &'c Context<'c>,
    options: BuildOptions<'c>,
    gate: Gate,
    env: ChildEnv,
    sandbox: Option<Sandbox>,
    /// The warning that builds are not sandboxed although they should be, until it is taken for the run's record.
    pub uncontained: Option<String>,
    /// True once a build has been sandboxed: later ones may not run without a sandbox.
    sandboxed: bool,
    /// The SHA-256 digest of `build.sh` before the latest build.
    script: Option<String>,
}

impl<'c> Builds<'c> {
    /// Records the state of the gate, and finds a sandbox for builds, which also protects the files that git runs.
    ///
    /// # Errors
    /// Fails if a file cannot be examined, or if a strict sandbox is no longer available although it was when the run
    /// began.
    pub fn new(context: &'c Context<'c>, options: BuildOptions<'c>) -> Result<Self, Error> {
        Self::after(context, options, false)
    }

    /// Like [`new`](Self::new), for builds that follow others: if those were sandboxed, these must be, too.
    ///
    /// # Errors
    /// Same as [`new`](Self::new); also fails if a sandbox is no longer available.
    pub fn after(
        context: &'c Context<'c>,
        options: BuildOptions<'c>,
        sandboxed: bool,
    ) -> Result<Self, Error> {
        let gate = Gate::new(context)?;
        let repositories = gate.repositories().map(Path::to_path_buf).collect();
        let mut builds = Self {
            context,
            options,
            gate,
            env: command_env(context, options.sandbox),
            sandbox: None,
            uncontained: None,
            sandboxed,
            script: None,
        };
        // A sandbox mounts over this directory and would otherwise create it, which could be mistaken for the build's
        // doing. If it cannot be created, the sandbox reports that.
        let _ = atomic_file::private_directory(&context.project.config());
        match find(context, options.sandbox, None, repositories) {
            Ok(sandbox) => {
                builds.sandbox = sandbox.map(|sandbox| sandbox.with_hosts(options.hosts));
            }
            Err(problem) if builds.may_go_without(&problem) => builds.go_without(&problem),
            Err(problem) => return Err(ProcessError::from(problem).into()),
        }
        Ok(builds)
    }

    /// Runs a build, reports it, with the reasons for a failure if `gives_reasons`, and finishes its log.
    ///
    /// # Errors
    /// Fails if the build could not be run, or its log cannot be written.
    pub fn build(
        &mut self,
        spent: Usd,
        mut log: BuildLog<'_>,
        gives_reasons: bool,
    ) -> Result<Built, Error> {
        let report = self.run(spent, &mut log);
        self.ended(report, log, gives_reasons)
    }

    /// Runs a build in a scratch tree, and finishes its log. Also returns its changes to the tree's gate.
    ///
    /// # Errors
    /// Fails if the build could not be run, or its log cannot be written.
    pub fn build_apart(
        &mut self,
        scratch: &Scratch,
        mut log: BuildLog<'_>,
    ) -> Result<(Built, Option<GateChanged>), Error> {
        let project = self.context.project.clone();
        let apart = Context {
            project: project.in_scratch(scratch.root(), scratch.private()),
            ..self.context.clone()
        };
        let mut gate = Gate::new(&apart)?;
        gate.before_build()?;
        self.script = script_digest(&apart);
        let built = self.ended(self.build_in(scratch, &mut log), log, true)?;
        let changed = gate.change(&apart)?;
        Ok((built, changed))
    }

    /// Reports the end of a build, with the reasons for a failure if `gives_reasons`, and finishes its log.
    fn ended(
        &self,
        report: Result<BuildReport, Error>,
        log: BuildLog<'_>,
        gives_reasons: bool,
    ) -> Result<Built, Error> {
        let report = match report {
            Ok(report) => report,
            Err(error) => {
                // An error is ignored: the one that stopped the build explains the unfinished log.
                let _ = log.finish(&error.to_string());
                return Err(error);
            }
        };
        let (output, warnings) = self.finish(&report, log)?;
        let (mut reasons, mut found) = (Vec::new(), Vec::new());
        if !report.status.passed() {
            found = findings::read(&output.text, self.context.project.root());
            if gives_reasons {
                reasons = findings::reasons(&output.text);
            }
        }
        Ok(Built {
            status: report.status,
            record: self.report(&report, reasons),
            findings: found,
            output: output.text,
            warnings,
        })
    }

    /// Runs a build; its output goes to `log`.
    ///
    /// # Errors
    /// Fails if the build could not be run.
    pub fn run(&mut self, spent: Usd, log: &mut (dyn Write + Send)) -> Result<BuildReport, Error> {
        self.gate.before_build()?;
        self.script = script_digest(self.context);
        self.context.reporter.event(&Event::Building { spent });
        let report = match self.script(None).run(log) {
            Err(ProcessError::Sandbox(problem)) if self.may_go_without(&problem) => {
                self.go_without(&problem);
                self.script(None).run(log)
            }
            other => other,
        }?;
        if let Some(sandbox) = &self.sandbox {
            self.sandboxed = true;
            sandbox.check_unmoved()?;
        }
        Ok(report)
    }

    /// Runs a build in a scratch tree, without reporting it or checking the gate; its output goes to `log`.
    ///
    /// # Errors
    /// Fails if the build could not be run.
    pub fn build_in(
        &self,
        scratch: &Scratch,
        log: &mut (dyn Write + Send),
    ) -> Result<BuildReport, Error> {
        let script = self.script(Some(scratch));
        match script.run(log) {
            Err(ProcessError::Sandbox(problem)) if self.may_go_without(&problem) => {
                let sandbox = None;
                Ok(BuildScript { sandbox, ..script }.run(log)?)
            }
            other => Ok(other?),
        }
    }

    /// Reports the end of a build, with these reasons for its failure. Returns the entry for the run's record.
    pub fn report(&self, report: &BuildReport, reasons: Vec<String>) -> BuildRecord {
        self.context.reporter.event(&Event::Built {
            status: describe(report.status),
            passed: report.status.passed(),
            reasons,
            took: report.took,
        });
        let (code, signal) = match report.status {
            BuildStatus::Exited(code) => (Some(code), None),
            BuildStatus::Signaled(signal) => (None, Some(signal)),
            BuildStatus::TimedOut(_) => (None, None),
        };
        let is_sandboxed = self.sandbox.is_some();
        BuildRecord {
            code,
            signal,
            timed_out: matches!(report.status, BuildStatus::TimedOut(_)),
            seconds: Seconds(report.took),
            sandbox: if is_sandboxed {
                self.options.sandbox
            } else {
                SandboxMode::Off
            },
            script: self.script.clone(),
        }
    }

    /// Returns the changes that builds have made to the gate, if any.
    ///
    /// # Errors
    /// Fails if a file or directory cannot be examined.
    pub fn gate_change(&self) -> Result<Option<GateChanged>, PathError> {
        self.gate.change(self.context)
    }

    /// Finishes the log of a build. Returns the build's output and warnings about it.
    fn finish(
        &self,
        report: &BuildReport,
        log: BuildLog<'_>,
    ) -> Result<(BuildOutput, Vec<String>), LogError> {
        let refused = self
            .sandbox
            .iter()
            .flat_map(Sandbox::new_refusals)
            .map(|refusal| format!("build.sh could not reach a host: {refusal}"));
        let mut warnings: Vec<String> = refused.collect();
        if report.left_behind && !matches!(report.status, BuildStatus::TimedOut(_)) {
            warnings.push("build.sh has left something running that held its output: it was ended, where it could be, and what it still had to print is not in the log".to_owned());
        }
        let output = log.finish(&describe(report.status))?;
        if !output.redacted.is_empty() {
            warnings.push(format!(
                "the build printed secrets, which are neither in its log nor sent: {}",
                output.redacted.join(", ")
            ));
        }
        Ok((output, warnings))
    }

    fn may_go_without(&self, problem: &SandboxProblem) -> bool {
        self.options.sandbox == SandboxMode::Auto
            && !self.sandboxed
            && !matches!(problem, SandboxProblem::Moved(_))
    }

    /// Continues without a sandbox, and reports that.
    fn go_without(&mut self, problem: &SandboxProblem) {
        self.sandbox = None;
        self.uncontained = Some(report_uncontained(self.context.reporter, problem));
    }

    fn script<'s>(&'s self, scratch: Option<&'s Scratch>) -> BuildScript<'s> {
        BuildScript {
            root: self.context.project.root(),
            path: self.context.environment.os("PATH"),
            timeout: self.options.timeout,
            clock: self.context.clock,
            interrupt: self.context.interrupt,
            env: &self.env,
            sandbox: self.sandbox.as_ref(),
            scratch,
        }
    }
}

fn script_digest(context: &Context<'_>) -> Option<String> {
    let path = context.project.root().join(BUILD_SCRIPT);
    let script = files::read(&path, Links::Followed, MIB).ok();
    script.map(sha256::of)
}

/// Makes another scratch tree that begins as a copy of the project, or of the scratch tree that the command works in.
///
/// # Errors
/// Fails if neither an overlay nor a copy can be made.
pub fn fork(context: &Context<'_>) -> Result<Scratch, Error> {
    let own = context.scratch.map(|run| run.scratch.fork());
    own.unwrap_or_else(|| scratch(context))
}

/// Returns the first line of a build's log: how the build ended.
pub fn describe(status: BuildStatus) -> String {
    match status {
        BuildStatus::Exited(code) => CommandStatus::Exited(code).to_string(),
        BuildStatus::Signaled(signal) => CommandStatus::Signaled(signal).to_string(),
        BuildStatus::TimedOut(limit) => format!(
            "ended after {} without finishing",
            crate::model::human_duration(limit)
        ),
    }
}

/// Describes the end of a build for the user, who can give it longer.
pub fn explain(status: BuildStatus) -> String {
    let limit = match status {
        BuildStatus::TimedOut(_) => " (`--build-timeout`)",
        BuildStatus::Exited(_) | BuildStatus::Signaled(_) => "",
    };
    format!("{}{limit}", describe(status))
}

/// Returns the directories for trees and copies, in order of preference.
pub fn bases(context: &Context<'_>) -> Vec<PathBuf> {
    let cache = context
        .environment
        .os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(context.home()?.join(".cache")));
    let temporary = context
        .environment
        .os("TMPDIR")
        .map_or("/tmp".into(), PathBuf::from);
    let bases = cache
        .into_iter()
        .chain([temporary, "/dev/shm".into()])
        .filter(|base| base.is_absolute());
    bases.filter_map(|base| base.canonicalize().ok()).collect()
}

/// Makes a scratch tree over the project.
///
/// # Errors
/// Fails if neither an overlay nor a copy can be made.
pub fn scratch(context: &Context<'_>) -> Result<Scratch, Error> {
    let options = ScratchPlace {
        program: context.sandbox.program,
        bases: &bases(context),
        excluded: &[CONFIG, LOGS],
        interrupt: context.interrupt,
    };
    Scratch::new(context.project.root(), &options)
}

/// Checks that `build.sh` can be started if there is one, before a model is asked for work that it must prove. The work
/// may add the script, or replace the placeholder.
pub fn check_script(context: &Context<'_>) -> Result<(), NotReady> {
    let path = context.environment.os("PATH");
    match build_script::inspect(context.project.root(), path) {
        Ok(()) | Err(ScriptProblem::Missing | ScriptProblem::Placeholder) => Ok(()),
        Err(problem) => Err(NotReady::of(problem)),
    }
}

/// Checks that builds can be sandboxed strictly, before anything depends on it.
pub fn check_strict(context: &Context<'_>) -> Result<(), SandboxProblem> {
    // Hiding the project's other repositories does not affect whether the sandbox works.
    try_out(context, SandboxMode::Strict, None, Vec::new()).map(drop)
}

/// Returns the sandbox for an agent's commands, in which `key_file` is hidden along with the project's own keys; or, if
/// commands should be sandboxed but are not, the warning for the run's record.
///
/// # Errors
/// Fails if a strict sandbox is required and not available.
pub fn command_sandbox(
    context: &Context<'_>,
    mode: SandboxMode,
    key_file: &Path,
) -> Result<(Option<Sandbox>, Option<String>), Error> {
    let repositories = match mode {
        SandboxMode::Off => Vec::new(),
        _ => {
            ProjectSearch::new(context.project.root())
                .run(|_| false)?
                .repositories
        }
    };
    match try_out(context, mode, Some(key_file), repositories) {
        Ok(sandbox) => Ok((sandbox, None)),
        Err(SandboxProblem::Interrupted(interrupted)) => Err(interrupted.into()),
        Err(problem) if mode == SandboxMode::Strict => {
            Err(NotReady::of(RunError::NotSandboxed(problem)).into())
        }
        Err(problem) => Ok((None, Some(report_uncontained(context.reporter, &problem)))),
    }
}

/// Reports that builds and commands are not sandboxed, and returns the warning for the record.
fn report_uncontained(reporter: &dyn Reporter, problem: &SandboxProblem) -> String {
    let reason = problem.to_string();
    let warning = format!("no sandbox: {reason}; builds and commands can read the keys");
    reporter.event(&Event::Uncontained { reason });
    warning
}

/// Returns the environment of builds and commands: without the variables that commonly hold keys or that hold one of
/// this project's keys; and, in a sandbox, without those that hold other secrets unless they are explicitly passed.
pub fn command_env(context: &Context<'_>, mode: SandboxMode) -> ChildEnv {
    let mut names = key_holders(context);
    if mode != SandboxMode::Off {
        let secrets = context.environment.secret_names().map(OsString::from);
        names.extend(secrets.filter(|name| !is_passed(context.sandbox.passed, name)));
    }
    names.extend(keys::key_variables().map(OsString::from));
    ChildEnv::new(context.environment, names)
}

/// Returns the environment of a local MCP server: as in a sandbox, except that passed variables may hold a key, such as
/// the token for `git push`.
pub fn server_env(context: &Context<'_>) -> ChildEnv {
    let secrets = context.environment.secret_names().map(OsString::from);
    let mut names: Vec<_> = secrets.chain(key_holders(context)).collect();
    names.retain(|name| !is_passed(context.sandbox.passed, name));
    names.extend(keys::key_variables().map(OsString::from));
    ChildEnv::new(context.environment, names)
}

/// Returns the variables that hold a known key.
fn key_holders(context: &Context<'_>) -> Vec<OsString> {
    let is_key = |(_, kind)| kind == SecretKind::Key;
    let holds_key = |value: &str| context.redactor.find(value).any(is_key);
    context.environment.names_where(holds_key)
}

fn is_passed(passed: &[String], name: &OsStr) -> bool {
    passed.iter().any(|passed| name == &**passed)
}

fn try_out(
    context: &Context<'_>,
    mode: SandboxMode,
    key_file: Option<&Path>,
    repositories: Vec<PathBuf>,
) -> Result<Option<Sandbox>, SandboxProblem> {
    let sandbox = find(context, mode, key_file, repositories)?;
    if let Some(sandbox) = &sandbox {
        sandbox.try_out(context.interrupt)?;
    }
    Ok(sandbox)
}

/// Returns the directory with the results of other tasks, if the project is a clone made for one of many.
fn campaign(context: &Context<'_>) -> Option<PathBuf> {
    let folder = context.task_folder()?.canonicalize().ok()?;
    let campaign = folder.parent().filter(|it| it.parent().is_some())?;
    let is_task = context.project.root().starts_with(&folder);
    is_task.then(|| campaign.to_path_buf())
}

/// Returns the sandbox of this mode: for builds, or, with one more key file, for an agent's commands; `None` if the
/// mode is off.
fn find(
    context: &Context<'_>,
    mode: SandboxMode,
    key_file: Option<&Path>,
    mut repositories: Vec<PathBuf>,
) -> Result<Option<Sandbox>, SandboxProblem> {
    if mode == SandboxMode::Off {
        return Ok(None);
    }
    let (project, setup) = (&context.project, &context.sandbox);
    let key_files = context
        .key_files()
        .into_iter()
        .map(|file| project.config().join(file));
    // The files may be links to other places, and the directories may contain the project.
    let hidden = home::ALL
        .iter()
        .flat_map(|home| home.hidden(context.environment));
    // An agent's commands may change these files as they may change any other. `Cargo.lock` is left out because builds
    // write it.
    let is_protected = |name: &&&str| key_file.is_none() && **name != "Cargo.lock";
    let protected = PROTECTED_FILES
        .iter()
        .filter(is_protected)
        .map(|name| project.root().join(name));
    // Commands may not change the rules for approving commands, nor the user's own commands.
    let decides = key_file.map(|_| project.root().join(AGENT_FOLDER));
    let git = repository::enclosing(project.root());
    repositories.retain(|other| *other != git);
    let all_git = repositories.iter().chain([&git]).map(PathBuf::as_path);
    let named = configured::paths(project.root(), all_git, context.home());
    let policy = SandboxPolicy {
        root: project.root().to_path_buf(),
        keys: project.config(),
        campaign: campaign(context),
        key_files: key_files.chain(key_file.map(Path::to_path_buf)).collect(),
        git,
        repositories,
        hidden: hidden.chain(setup.hidden.clone()).collect(),
        home: context.home().map(Path::to_path_buf),
        services: services::places(context.environment, getuid().as_raw()),
        allowed_sockets: setup.allowed_sockets.to_vec(),
        protected: protected.chain(named).collect(),
        read_only: std::iter::once(project.logs())
            .chain(setup.document.clone())
            .chain(decides)
            .collect(),
    };
    let Some(program) = setup.program else {
        let reason = "the path of this program is not known";
        return Err(SandboxProblem::Unusable(reason.to_owned()));
    };
    Sandbox::find(context.environment.os("PATH"), program, policy, mode).map(Some)
}
