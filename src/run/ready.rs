//! Checks that a run can start, before anything is sent or written, and lists everything that is missing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::builds::{self, BuildOptions};
use super::code_base::CodeBase;
use super::code_context::{CodeContext, CodeLimit, SeenCode};
use super::context::{Context, Freshness, ModelChoice, QuerySource};
use super::error::{RunError, listed};
use super::not_ready::NotReady;
use super::parts::{Parts, SPECIFICATION};
use super::selection::{ModelKey, Models, SelectedModel, choose, find_recording, named, table_of};
use super::sending::SendingProblem;
use super::served::expected_price;
use super::shown::Shown;
use super::staged;
use super::{recovery, resumption, sending};
use crate::exec::build_script;
use crate::exec::sandbox::{SandboxMode, SandboxProblem};
use crate::model::prompt::Inputs;
use crate::model::{ModelSpec, Purpose, REPAIRS};
use crate::project::dirty;
use crate::project::history::past_commits;
use crate::project::{
    CONFIG, DRAFT, EXAMPLE_QUERY, LOGS, Project, ProjectLock, ProjectProblem, ROLLUP, rollup,
};
use crate::record::replay::Recording;
use crate::secret::credentials::{self, Finding};
use crate::sys::error::Error;
use crate::sys::git::Git;
use crate::sys::parallel::{MUCH_TEXT, side_by_side};

/// The name shown for a code base that is not read from a file.
const ROLLED_UP: &str = "--rollup";

/// Everything that a run starts from.
pub struct Ready<'a> {
    /// The user's inputs, without keys.
    pub inputs: Inputs,
    /// Warnings to the user about the inputs.
    pub warnings: Vec<String>,
    /// The models for the change and its repairs, or for the report.
    pub models: Models<'a>,
    /// The models for each further attempt.
    pub others: Vec<Models<'a>>,
    /// The model's view of the project's files.
    pub shown: Shown,
    /// The code base, if only a part of it is sent.
    pub code: Option<CodeContext>,
    /// The parts that the code base is read by, if it does not fit and may be split.
    pub parts: Option<Parts>,
    /// The draft of the query written in an editor, if any.
    pub draft: Option<PathBuf>,
    /// The lock that keeps other runs out of the project.
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
    /// The models for the change and its repairs, or for the report.
    pub models: Option<Models<'a>>,
    /// The models for each further attempt.
    pub others: Vec<Models<'a>>,
    shown: Shown,
    /// The code base, if only a part of it is sent.
    pub code: Option<CodeContext>,
    /// The parts that the code base is read by, if it does not fit and may be split.
    pub parts: Option<Parts>,
    draft: Option<PathBuf>,
    lock: Option<ProjectLock>,
}

impl<'a> Survey<'a> {
    /// Returns the servers to be asked, by model, if they are not the vendors' own.
    pub fn base_urls(&self) -> BTreeMap<String, String> {
        let models = self.models.as_ref().filter(|models| !models.is_replay);
        models.map(Models::base_urls).unwrap_or_default()
    }

    /// Returns the sources of the models' keys, by model.
    pub fn key_sources(&self) -> BTreeMap<String, String> {
        let models = self.models.as_ref();
        models.map(Models::key_sources).unwrap_or_default()
    }

    /// Returns everything that a run starts from.
    ///
    /// # Errors
    /// Fails if anything is missing.
    pub fn ready(self) -> Result<Ready<'a>, NotReady> {
        match (self.inputs, self.models, self.lock) {
            (Some(inputs), Some(models), Some(lock)) if self.missing.problems.is_empty() => {
                Ok(Ready {
                    inputs,
                    warnings: self.warnings,
                    models,
                    others: self.others,
                    shown: self.shown,
                    code: self.code,
                    parts: self.parts,
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
/// Fails if the requested model or run does not exist, or the tree cannot be recovered after an earlier run.
pub fn survey<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    build: Option<BuildOptions<'_>>,
) -> Result<Survey<'a>, Error> {
    let recording = find_recording(context, choice.replay.as_deref())?;
    let purpose = build.map_or(Purpose::REPORT, |_| Purpose::INITIAL);
    let resumed = find_recording(context, choice.resume.as_deref())?;
    let again = recording.as_ref().or(resumed.as_ref());
    let chosen_by = again.filter(|_| recording.is_some() || choice.model.is_none());
    let mut specs = choose(context.models, choice, &purpose, chosen_by)?;
    let project = &context.project;
    let lock = project.lock();
    if lock.is_ok() {
        recovery::recover_with_warning(context, again.map(Recording::folder))?;
    }
    let mut missing = NotReady::default();
    missing.note(context.models.as_ref().map_err(Clone::clone));
    missing.note(project.check_gitignore(&context.key_files()));
    missing.note(project.check_keys_untracked(&context.key_files()));
    missing.note(check_places(project, &purpose));
    let recorded = recording
        .as_ref()
        .and_then(|run| resumption::recorded_query(project, run.folder()));
    let is_recorded = recorded.is_some();
    let query = missing.note(query(context, choice, recorded, &purpose));
    // A report reads all of the code base.
    let entry = specs.first().filter(|_| build.is_some());
    let limit = limit(choice, recording.as_ref(), entry)?;
    let code = match code_base(context, choice, limit.as_ref(), is_recorded) {
        Err(problem) if !problem.is::<RunError>() && !problem.is::<ProjectProblem>() => {
            return Err(problem);
        }
        code => missing.note(code),
    };
    // Replays send nothing.
    let sends = choice.replay.is_none();
    let (differing, shown, findings) = look_at(context, choice, query.as_deref(), code.as_ref());
    // A resumed change has its own check of the tree.
    let is_compared = choice.resume.is_none() || build.is_none();
    let outdated = differing.filter(|_| is_compared && !choice.inputs.is_staged);
    if sends && !choice.allow_secrets && !findings.is_empty() {
        missing.extend([RunError::SecretsFound(findings.clone())]);
    }
    let models = models_of(context, choice, recording.as_ref(), &specs, &mut missing);
    let first = (models.is_some(), &*specs);
    let (others, other_specs) =
        others_of(context, choice, recording.as_ref(), first, &mut missing)?;
    // Estimates are for the model that will answer.
    for spec in &mut specs {
        spec.price = expected_price(context, spec);
    }
    for models in models.iter().chain(&others) {
        models.note_missing(context, &mut missing, &|_| Ok(false))?;
    }
    check_build(context, choice, build, &mut missing)?;
    let lock = missing.note(lock);
    let chosen = query
        .zip(code)
        .map(|both| chosen(context, choice, both, limit.as_ref()));
    let (mut inputs, code) = chosen.transpose()?.unzip();
    let code = code.flatten();
    let mut warnings = Vec::from_iter(without_specification(project, &purpose, inputs.as_ref()));
    let redacted = inputs
        .as_mut()
        .and_then(|inputs| redact(context, inputs, &findings));
    warnings.extend(redacted);
    let parts = inputs
        .as_ref()
        .zip(specs.first())
        .filter(|_| purpose == Purpose::REPORT)
        .and_then(|(inputs, spec)| Parts::of(inputs, project.root(), spec));
    if sends {
        for directory in written_to(&purpose, &shown) {
            missing.note(project.check_writable(directory));
        }
        warnings.extend(sent_secrets(choice, findings));
        if let Some(inputs) = &inputs {
            let sent = (inputs, outdated, parts.as_ref());
            let asked = (&*specs, &*other_specs);
            warnings.extend(examine(
                project.root(),
                choice,
                &purpose,
                sent,
                asked,
                &mut missing,
            ));
        }
    }
    let is_draft = choice.inputs.query.is_draft();
    Ok(Survey {
        inputs,
        specs,
        warnings,
        missing,
        models,
        others,
        shown,
        code,
        parts: parts.filter(|_| choice.inputs.by_parts),
        draft: is_draft.then(|| project.home().join(DRAFT)),
        lock,
    })
}

/// Examines the first query to the first of the models, which repairs by the second, and to each other attempt's. Notes
/// what prevents sending it; returns warnings.
fn examine(
    root: &Path,
    choice: &ModelChoice,
    purpose: &Purpose,
    (inputs, outdated, parts): (&Inputs, Option<SendingProblem>, Option<&Parts>),
    (models, others): (&[ModelSpec], &[ModelSpec]),
    missing: &mut NotReady,
) -> Vec<String> {
    let first = models.first().map(|spec| (spec, (inputs, outdated, parts)));
    let others = others.iter().map(|spec| (spec, (inputs, None, None)));
    let mut warnings = Vec::new();
    for (spec, sent) in first.into_iter().chain(others) {
        let (refused, noticed) = sending::examine(root, choice, purpose, sent, spec);
        missing.extend(refused);
        warnings.extend(noticed);
    }
    let repair = models.get(1);
    missing.extend(repair.and_then(|spec| sending::without_price(choice, spec)));
    warnings
}

/// Creates the models for the first call and for the repairs from their entries: live ones, or those of a recording.
fn models_of<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    recording: Option<&Recording>,
    specs: &[ModelSpec],
    missing: &mut NotReady,
) -> Option<Models<'a>> {
    let mut models = specs.iter().map(|spec| match recording {
        Some(recording) => Some(SelectedModel::replayed(context, spec.clone(), recording)),
        None => SelectedModel::vendors(context, choice, spec.clone(), ModelKey::ByRule, missing),
    });
    let (first, repair) = (models.next().flatten(), models.next().flatten());
    let repair = Vec::from_iter(repair.map(|repair| (Purpose::REPAIR, repair)));
    first.map(|first| Models {
        reasks: recording.map_or(0, Recording::reasks),
        repairs: recording.map_or(REPAIRS, Recording::repairs),
        ..Models::new(choice, choice.replay.is_some(), first, repair)
    })
}

/// Returns the models of the attempts besides the first, which uses the entries `first`, and any further entries that
/// they use.
fn others_of<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    recording: Option<&Recording>,
    (is_known, first): (bool, &[ModelSpec]),
    missing: &mut NotReady,
) -> Result<(Vec<Models<'a>>, Vec<ModelSpec>), Error> {
    let (mut others, mut specs) = (Vec::new(), Vec::new());
    let recorded = recording
        .map(Recording::others)
        .filter(|recorded| !recorded.is_empty());
    for name in recorded.as_ref().unwrap_or(&choice.others) {
        let own = match name {
            Some(name) => vec![other(context, choice, name)?],
            None => first.to_vec(),
        };
        // Anything missing for the first one is reported once.
        if name.is_some() || is_known {
            others.extend(models_of(context, choice, recording, &own, missing));
        }
        specs.extend(name.as_ref().and(own.into_iter().next()));
    }
    Ok((others, specs))
}

/// Returns the entry of another attempt's model.
fn other(context: &Context<'_>, choice: &ModelChoice, name: &str) -> Result<ModelSpec, Error> {
    let mut spec = named(table_of(context.models)?, name)?;
    spec.reply_format = choice.reply_format.unwrap_or(spec.reply_format);
    Ok(spec)
}

/// Runs all checks, and returns what a run starts from.
///
/// # Errors
/// Fails if anything is missing.
pub fn check<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    build: Option<BuildOptions<'_>>,
) -> Result<Ready<'a>, Error> {
    Ok(survey(context, choice, build)?.ready()?)
}

/// Returns the directories that a run writes to: for a change, those of all files shown to the model.
fn written_to<'s>(purpose: &Purpose, shown: &'s Shown) -> Vec<&'s Path> {
    let mut directories = vec![Path::new(LOGS)];
    if *purpose == Purpose::REPORT {
        directories.push(Path::new(CONFIG));
    } else {
        directories.extend(shown.directories());
    }
    directories
}

/// Checks that nothing else is at the path of `logs`, or of a report.
fn check_places(project: &Project, purpose: &Purpose) -> Result<(), ProjectProblem> {
    project.check_directory(LOGS)?;
    let report = project.consistency_report().symlink_metadata();
    if *purpose == Purpose::REPORT && report.is_ok_and(|found| found.is_dir()) {
        let path = format!("{CONFIG}/consistency-report.txt");
        return Err(ProjectProblem::NotAFile(path));
    }
    Ok(())
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
        let list = listed(findings.iter().map(Finding::to_string));
        format!("what looks like credentials is sent, as allowed:{list}")
    })
}

/// The code base before a part of it is chosen.
struct Code {
    /// Name shown to the user.
    name: &'static str,
    /// Text of the rollup; empty if only a part of it is sent.
    text: String,
    /// The files of the code base, if only a part of them is sent.
    whole: Option<CodeBase>,
}

/// Compares the code base with the disk, and searches the query and the code base for credentials. Returns the
/// difference, the model's view of the files, and what looks like credentials.
fn look_at(
    context: &Context<'_>,
    choice: &ModelChoice,
    query: Option<&str>,
    code: Option<&Code>,
) -> (Option<SendingProblem>, Shown, Vec<Finding>) {
    let root = context.project.root();
    let may_be_stale = choice.replay.is_some() || choice.inputs.freshness == Freshness::Stale;
    let compare = |code: &Code| match &code.whole {
        // These files have just been read.
        Some(whole) => (None, Shown::of(Some(&whole.sections()), root, may_be_stale)),
        None => sending::compare(&code.text, root, may_be_stale),
    };
    let find = |name, text: &str| credentials::find(name, text, context.redactor);
    let ((outdated, shown), findings) = side_by_side(
        code.map_or(0, |code| code.text.len()) >= MUCH_TEXT,
        || code.map(compare).unwrap_or_default(),
        || {
            let in_query = query.map(|query| find(choice.inputs.query.name(), query));
            // Without this permission, files with findings have been left out.
            let whole = code
                .and_then(|code| code.whole.as_ref())
                .filter(|_| choice.allow_secrets)
                .into_iter();
            let files = whole.flat_map(|whole| whole.files.iter().map(|file| &*file.content));
            let texts = code.map(|code| &*code.text).into_iter().chain(files);
            let name = code.map_or("", |code| code.name);
            let in_code = texts.flat_map(|text| find(name, text));
            in_query.into_iter().flatten().chain(in_code).collect()
        },
    );
    (outdated, shown, findings)
}

/// Returns the inputs to send; under a limit, also the code base that they are chosen from.
fn chosen(
    context: &Context<'_>,
    choice: &ModelChoice,
    (query, code): (String, Code),
    limit: Option<&CodeLimit>,
) -> Result<(Inputs, Option<CodeContext>), Error> {
    let select = |(whole, limit)| -> Result<_, Error> {
        let path = context.environment.os("PATH");
        let history = past_commits(context.project.root(), path, context.interrupt)?;
        CodeContext::select(whole, &query, &history, limit)
    };
    let selected = code.whole.zip(limit).map(select).transpose()?;
    let rollup = match (&choice.inputs.query, &selected) {
        (_, None) => code.text,
        (QuerySource::Recorded(sent), _) => sent.rollup.clone(),
        (_, Some(selected)) => selected.text(),
    };
    let inputs = Inputs {
        is_part: selected.is_some(),
        query,
        rollup,
    };
    Ok((inputs, selected))
}

/// Returns the limit on the part of the code base that is sent, if any: that of the run being resumed or replayed, the
/// flag's, or the model entry's.
fn limit(
    choice: &ModelChoice,
    replayed: Option<&Recording>,
    spec: Option<&ModelSpec>,
) -> Result<Option<CodeLimit>, RunError> {
    let mut limit = choice.inputs.limit.clone();
    if let (None, Some(replayed)) = (limit.tokens, replayed) {
        limit.shown = SeenCode::of_run(replayed.folder());
    }
    let is_new = choice.resume.is_none() && replayed.is_none();
    let of_entry = spec.and_then(|spec| spec.context_tokens).filter(|_| is_new);
    let of_shown = limit.shown.as_ref().map(|shown| shown.tokens);
    limit.tokens = of_shown.or(limit.tokens).or(of_entry);
    let chooses = !(limit.include.is_empty() && limit.exclude.is_empty());
    match limit.tokens {
        None if chooses => Err(RunError::NoLimit),
        tokens => Ok(tokens.map(|_| limit)),
    }
}

/// Returns the code base: rolled up if requested, or if its file is missing and the query does not come from a file
/// either, but from a recorded run, for instance.
fn code_base(
    context: &Context<'_>,
    choice: &ModelChoice,
    limit: Option<&CodeLimit>,
    is_recorded: bool,
) -> Result<Code, Error> {
    let (project, inputs) = (&context.project, &choice.inputs);
    let as_text = |name, text| Code {
        name,
        text,
        whole: None,
    };
    match &inputs.query {
        _ if limit.is_some() => {}
        QuerySource::Recorded(sent) => {
            return Ok(as_text("the recorded code base", sent.rollup.clone()));
        }
        _ if inputs.roll_up || inputs.is_staged => {}
        query => match project.rollup() {
            Err(ProjectProblem::Missing(_)) if *query != QuerySource::File || is_recorded => {}
            read => return Ok(as_text(ROLLUP, read?)),
        },
    }
    let mut code_base = if inputs.is_staged {
        staged::read(context)?
    } else {
        CodeBase::read(project.root(), &[], false)?
    };
    // If not all files are sent anyway, files with credentials are simply left out.
    if limit.is_some() && !choice.allow_secrets {
        code_base = code_base.without_credentials(context.redactor);
    }
    context.notice(format!("rolled up: {}", code_base.summary()));
    Ok(match limit {
        Some(_) => Code {
            name: "the code base",
            text: String::new(),
            whole: Some(code_base),
        },
        None => as_text(ROLLED_UP, code_base.into_text()),
    })
}

/// Returns the query; a replay takes the recorded one, unless another is given.
fn query(
    context: &Context<'_>,
    choice: &ModelChoice,
    recorded: Option<String>,
    purpose: &Purpose,
) -> Result<String, ProjectProblem> {
    let source = &choice.inputs.query;
    if let (QuerySource::File, Some(query)) = (source, recorded) {
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
/// Fails if it cannot be read, is blank, or is still the example.
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

/// Redacts the keys that were found, which would otherwise be sent to the vendor and written to every log. Returns a
/// warning if there are any.
fn redact(context: &Context<'_>, inputs: &mut Inputs, findings: &[Finding]) -> Option<String> {
    // The search has covered every byte: without a finding, there is nothing to remove.
    let what = match findings {
        _ if !findings.iter().any(Finding::is_redacted) => return None,
        _ if findings.iter().any(Finding::is_own_key) => "an API key",
        _ => "the value of a secret environment variable",
    };
    for text in [&mut inputs.query, &mut inputs.rollup] {
        if let Cow::Owned(redacted) = context.redactor.text(text) {
            *text = redacted;
        }
    }
    Some(format!(
        "{what} stands in the query or the code base; it was left out of the prompt"
    ))
}

/// Checks that all files of the project are as the last commit has them.
fn check_clean(context: &Context<'_>) -> Result<(), RunError> {
    let root = context.project.root();
    let git = Git::find(context.environment.os("PATH"), root);
    let mut changed = dirty::dirty(root).map_err(RunError::CleanUnknown)?;
    let staged = dirty::staged(root, git.as_ref(), None, context.interrupt);
    changed.extend(staged.map_err(RunError::StagedUnknown)?);
    match *changed {
        [] => Ok(()),
        _ => Err(RunError::NotClean(changed)),
    }
}

/// Checks that the project can be built and, if required, is clean; does nothing unless a build is requested.
fn check_build(
    context: &Context<'_>,
    choice: &ModelChoice,
    build: Option<BuildOptions<'_>>,
    missing: &mut NotReady,
) -> Result<(), Error> {
    let Some(build) = build else {
        return Ok(());
    };
    if choice.require_clean {
        missing.note(check_clean(context));
        context.interrupt.check()?;
    }
    let path = context.environment.os("PATH");
    missing.note(build_script::inspect(context.project.root(), path));
    if build.sandbox == SandboxMode::Strict {
        match builds::check_strict(context) {
            Err(SandboxProblem::Interrupted(interrupted)) => return Err(interrupted.into()),
            checked => missing.note(checked.map_err(RunError::NotSandboxed)),
        };
    }
    Ok(())
}
