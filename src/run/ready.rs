//! Checks that a run can start, before anything is sent or written, and lists everything that is missing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::builds::{self, BuildOptions};
use super::code_base::{CodeBase, NoCodeBase};
use super::context::{Context, Freshness, InputOptions, ModelChoice, QuerySource};
use super::not_ready::{NotClean, NotReady, NotSandboxed, SecretsFound, listed};
use super::parts::SPECIFICATION;
use super::selection::{ModelKey, Models, SelectedModel, choose, find_recording, recording_of};
use super::shown::Shown;
use super::{recovery, resumption, sending};
use crate::exec::build_script;
use crate::exec::sandbox::{SandboxMode, SandboxProblem};
use crate::model::prompt::Inputs;
use crate::model::{ModelSpec, Purpose, REPAIRS};
use crate::project::rollup;
use crate::project::{
    CONFIG, DRAFT, EXAMPLE_QUERY, LOGS, Project, ProjectLock, ProjectProblem, ROLLUP,
};
use crate::record::replay::Recording;
use crate::secret::credentials::{self, Finding};
use crate::sys::error::Error;
use crate::sys::parallel::{MUCH_TEXT, side_by_side};

/// The name shown for a code base that is not read from a file.
const ROLLED_UP: &str = "--rollup";

const IN_INPUTS: &str = "stands in the query or the code base; it was left out of the prompt";

/// Everything that a run starts from.
pub struct Ready<'a> {
    /// The user's inputs, without keys.
    pub inputs: Inputs,
    /// Warnings to the user about the inputs.
    pub warnings: Vec<String>,
    /// The models for the change and its repairs, or for the report.
    pub models: Models<'a>,
    /// The model's view of the project's files.
    pub shown: Shown,
    /// The draft of the query written in an editor, if any.
    pub draft: Option<PathBuf>,
    /// Keeps other runs out of the project.
    _lock: ProjectLock,
}

/// The results of all checks before a run, whatever is missing.
pub struct Survey<'a> {
    /// The user's inputs, without keys.
    pub inputs: Option<Inputs>,
    /// The model of the first query and, if different, that of the repairs.
    pub specs: Vec<ModelSpec>,
    /// Warnings to the user.
    pub warnings: Vec<String>,
    missing: NotReady,
    models: Option<Models<'a>>,
    shown: Shown,
    draft: Option<PathBuf>,
    lock: Option<ProjectLock>,
}

impl<'a> Survey<'a> {
    /// The servers to be asked, by model, if they are not the vendors' own.
    pub fn base_urls(&self) -> BTreeMap<String, String> {
        let models = self.models.as_ref().filter(|models| !models.is_replay);
        models.map(Models::base_urls).unwrap_or_default()
    }

    /// Returns warnings about unencrypted connections to the models.
    pub fn exposed(&self) -> Vec<String> {
        let models = self.models.as_ref();
        models.map_or_else(Vec::new, |models| models.exposed().collect())
    }

    /// Returns the sources of the models' keys, by model.
    pub fn key_sources(&self) -> BTreeMap<String, String> {
        let models = self.models.as_ref();
        models.map(Models::key_sources).unwrap_or_default()
    }

    /// Returns everything that a run starts from.
    ///
    /// # Errors
    /// When anything is missing.
    pub fn ready(self) -> Result<Ready<'a>, NotReady> {
        match (self.inputs, self.models, self.lock) {
            (Some(inputs), Some(models), Some(lock)) if self.missing.problems.is_empty() => {
                Ok(Ready {
                    inputs,
                    warnings: self.warnings,
                    models,
                    shown: self.shown,
                    draft: self.draft,
                    _lock: lock,
                })
            }
            _ => Err(self.missing),
        }
    }
}

/// Runs all checks and collects every problem. Without `build`, the model is asked for a report.
///
/// # Errors
/// When the requested model or run does not exist, or the tree cannot be recovered after an earlier run.
pub fn survey<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    build: Option<BuildOptions>,
) -> Result<Survey<'a>, Error> {
    let recording = find_recording(context, choice)?;
    let purpose = build.map_or(Purpose::REPORT, |_| Purpose::INITIAL);
    let resumed = choice.resume.as_deref().filter(|_| choice.model.is_none());
    let resumed = resumed.map(|run| recording_of(context, run)).transpose()?;
    let chosen_by = recording.as_ref().or(resumed.as_ref());
    let specs = choose(context.models, choice, &purpose, chosen_by)?;
    let project = &context.project;
    let lock = project.lock();
    if lock.is_ok() {
        recovery::recover_with_warning(context)?;
    }
    let mut missing = NotReady::default();
    missing.note(context.models.as_ref().map_err(Clone::clone));
    missing.note(project.check_gitignore(context.key_files()));
    missing.note(project.check_keys_untracked(context.key_files()));
    let query = missing.note(query(context, choice, recording.as_ref(), &purpose));
    let (rollup_name, rollup) = code_base(context, &choice.inputs)?;
    let rollup = missing.note(rollup);
    // Replays send nothing.
    let sends = choice.replay.is_none();
    let may_be_stale = !sends || choice.inputs.freshness == Freshness::Stale;
    let compare = |rollup: &String| sending::compare(rollup, project.root(), may_be_stale);
    let ((outdated, shown), findings) = side_by_side(
        rollup.as_ref().map_or(0, String::len) >= MUCH_TEXT,
        || rollup.as_ref().map(compare).unwrap_or_default(),
        || {
            let find = |file, text: &Option<String>| match text {
                Some(text) => credentials::find(file, text, context.redactor),
                None => Vec::new(),
            };
            let query_name = choice.inputs.query.name();
            [find(query_name, &query), find(rollup_name, &rollup)].concat()
        },
    );
    // A resumed run has its own check of the tree.
    let outdated = outdated.filter(|_| choice.resume.is_none());
    if sends && !choice.allow_secrets && !findings.is_empty() {
        missing.extend([SecretsFound(findings.clone())]);
    }
    let mut models = specs.iter().map(|spec| match &recording {
        Some(recording) => Some(SelectedModel::replayed(context, spec.clone(), recording)),
        None => SelectedModel::vendors(
            context,
            choice,
            spec.clone(),
            ModelKey::ByRule,
            &mut missing,
        ),
    });
    let (first, repair) = (models.next().flatten(), models.next().flatten());
    drop(models);
    let repair = Vec::from_iter(repair.map(|repair| (Purpose::REPAIR, repair)));
    let models = first.map(|first| Models {
        reasks: recording.as_ref().map_or(0, Recording::reasks),
        repairs: recording.as_ref().map_or(REPAIRS, Recording::repairs),
        ..Models::new(choice, !sends, first, repair)
    });
    if let Some(models) = &models {
        models.note_missing(context, &mut missing, &|_| Ok(false))?;
    }
    check_build(context, choice, build, &mut missing)?;
    let lock = missing.note(lock);
    let inputs = |(query, rollup)| Inputs { query, rollup };
    let mut inputs = query.zip(rollup).map(inputs);
    let mut warnings = Vec::from_iter(without_specification(project, &purpose, inputs.as_ref()));
    // The search has covered every byte: if it found no key, there is none to remove.
    if let Some(inputs) = inputs
        .as_mut()
        .filter(|_| findings.iter().any(Finding::is_redacted))
    {
        redact(context, inputs);
        let what = if findings.iter().any(Finding::is_own_key) {
            "an API key"
        } else {
            "the value of a secret environment variable"
        };
        warnings.push(format!("{what} {IN_INPUTS}"));
    }
    if sends {
        for directory in written_to(&purpose, &shown) {
            missing.note(project.check_writable(directory));
        }
        warnings.extend(sent_secrets(choice, findings));
        if let (Some(inputs), Some(spec)) = (&inputs, specs.first()) {
            let (refused, noticed) =
                sending::examine(project.root(), choice, &purpose, (inputs, outdated), spec);
            missing.extend(refused);
            let others = specs.iter().skip(1);
            missing.extend(others.filter_map(|spec| sending::without_price(choice, spec)));
            warnings.extend(noticed);
        }
    }
    let is_draft = choice.inputs.query.is_draft();
    Ok(Survey {
        inputs,
        specs,
        warnings,
        missing,
        models,
        shown,
        draft: is_draft.then(|| project.root().join(DRAFT)),
        lock,
    })
}

/// Runs all checks, and returns what a run starts from.
///
/// # Errors
/// When anything is missing.
pub fn check<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    build: Option<BuildOptions>,
) -> Result<Ready<'a>, Error> {
    Ok(survey(context, choice, build)?.ready()?)
}

/// The directories that a run writes to: for a change, those of all files shown to the model.
fn written_to<'s>(purpose: &Purpose, shown: &'s Shown) -> Vec<&'s Path> {
    let mut directories = vec![Path::new(LOGS)];
    if *purpose == Purpose::REPORT {
        directories.push(Path::new(CONFIG));
    } else {
        directories.extend(shown.directories());
    }
    directories
}

/// Returns a warning if a report is to compare the code base with a specification that is not in it.
fn without_specification(
    project: &Project,
    purpose: &Purpose,
    inputs: Option<&Inputs>,
) -> Option<String> {
    let inputs = inputs.filter(|_| *purpose == Purpose::REPORT)?;
    let sections = rollup::sections(&inputs.rollup, project.root());
    let mut paths = sections.iter().map(|section| Path::new(section.path));
    let is_there = paths.any(|path| path.ends_with(SPECIFICATION));
    (!is_there).then(|| {
        format!("the code base has no `{SPECIFICATION}`, which the report compares it with")
    })
}

/// Returns a warning if likely credentials are sent.
fn sent_secrets(choice: &ModelChoice, mut findings: Vec<Finding>) -> Option<String> {
    findings.retain(|finding| !finding.is_redacted());
    let is_sent = choice.allow_secrets && !findings.is_empty();
    is_sent.then(|| {
        let list = listed(&findings);
        format!("what looks like credentials is sent, as allowed:{list}")
    })
}

/// The code base and its name: rolled up if requested, or if its file is missing and the query does not come from a
/// file either.
fn code_base(
    context: &Context<'_>,
    inputs: &InputOptions,
) -> Result<(&'static str, Result<String, Error>), Error> {
    if let QuerySource::Recorded(sent) = &inputs.query {
        return Ok(("the recorded code base", Ok(sent.rollup.clone())));
    }
    let project = &context.project;
    let from_file = (!inputs.roll_up).then(|| project.rollup());
    match from_file {
        Some(Err(ProjectProblem::Missing(_))) if inputs.query != QuerySource::File => {}
        Some(read) => return Ok((ROLLUP, read.map_err(Error::from))),
        None => {}
    }
    let code_base = match CodeBase::read(project.root(), &[], false) {
        Err(error) if error.is::<NoCodeBase>() => return Ok((ROLLED_UP, Err(error))),
        read => read?,
    };
    context.notice(format!("rolled up: {}", code_base.summary()));
    Ok((ROLLED_UP, Ok(code_base.into_text())))
}

/// Returns the query; a replay takes the recorded one, unless another is given.
fn query(
    context: &Context<'_>,
    choice: &ModelChoice,
    replayed: Option<&Recording>,
    purpose: &Purpose,
) -> Result<String, ProjectProblem> {
    let recorded = |run: &Recording| resumption::recorded_query(&context.project, run.folder());
    let source = &choice.inputs.query;
    if let (QuerySource::File, Some(query)) = (source, replayed.and_then(recorded)) {
        return Ok(query);
    }
    match source {
        QuerySource::File if *purpose == Purpose::REPORT => match context.project.query() {
            // The prompt of a report works without a query.
            Err(ProjectProblem::Missing(_)) => Ok(String::new()),
            Ok(query) if query == EXAMPLE_QUERY => Ok(String::new()),
            query => query,
        },
        QuerySource::File => query_file(&context.project),
        QuerySource::Given(query) | QuerySource::Edited(query) => Ok(query.clone()),
        QuerySource::Recorded(sent) => Ok(sent.query.clone()),
    }
}

/// Returns the query in `agent-config/query.txt`.
///
/// # Errors
/// When it cannot be read, is blank, or is still the example.
pub fn query_file(project: &Project) -> Result<String, ProjectProblem> {
    let query = project.query()?;
    if query.trim().is_empty() {
        return Err(ProjectProblem::EmptyQuery);
    }
    if query == EXAMPLE_QUERY {
        return Err(ProjectProblem::ExampleQuery);
    }
    Ok(query)
}

/// Redacts keys, which would otherwise be sent to the vendor and written to every log.
fn redact(context: &Context<'_>, inputs: &mut Inputs) {
    for text in [&mut inputs.query, &mut inputs.rollup] {
        if let Cow::Owned(redacted) = context.redactor.text(text) {
            *text = redacted;
        }
    }
}

/// Checks that the project can be built, and is clean if it must be, if a build is requested.
fn check_build(
    context: &Context<'_>,
    choice: &ModelChoice,
    build: Option<BuildOptions>,
    missing: &mut NotReady,
) -> Result<(), Error> {
    let Some(build) = build else {
        return Ok(());
    };
    if choice.require_clean {
        missing.note(NotClean::check(context));
    }
    let path = context.environment.os("PATH");
    missing.note(build_script::inspect(context.project.root(), path));
    if build.sandbox == SandboxMode::Strict {
        match builds::check_strict(context) {
            Err(SandboxProblem::Interrupted(interrupted)) => return Err(interrupted.into()),
            checked => missing.note(checked.map_err(NotSandboxed)),
        };
    }
    Ok(())
}
