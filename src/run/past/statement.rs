//! A past run as an in-toto statement, which can be reproduced byte for byte from the run's folder.
//!
//! Reads the run's folder, its saved files and the program's own file; never the project's current files.

use std::iter;
use std::path::Path;

use serde_json::{Value, json};

use super::chain::Chain;
use super::history::PastRun;
use super::recomputation::{Contents, NotRecomputed, Recomputed, saved_files};
use crate::edit::changes::LoggedChange;
use crate::edit::{Digest, undo_log};
use crate::exec::build_script::BUILD_SCRIPT;
use crate::model::StepId;
use crate::project::Project;
use crate::project::run_folder::{CHANGES, REPLACED};
use crate::record::result::RunRecord;
use crate::record::run_files::{self, Artifact, RESULT, STEPS, VERDICT};
use crate::record::step::Step;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links};
use crate::sys::identity::Fingerprint;
use crate::sys::sha256;

/// The type of the document.
pub const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The type of the statement about a run.
pub const PREDICATE: &str = "urn:code-commit:run:v1";
/// The name of the subject that represents all changed files together.
pub const TREE: &str = ".";

/// A statement about a run.
#[derive(Debug)]
pub struct Statement {
    /// The statement.
    pub value: Value,
    /// The number of changed files.
    pub files: usize,
    /// The number of replies that the files were made from; 0 for an agent's run.
    pub replies: usize,
}

impl Statement {
    /// States the recorded facts about a run. `program` is the digest of the program that made it, if known.
    ///
    /// # Errors
    /// Fails if something is missing from the run's record, or contradicts the rest of it.
    pub fn of(project: &Project, run: &PastRun, program: Option<String>) -> Result<Self, Error> {
        let folder = run.relative();
        let no_record = || NotRecomputed::NoRecord(folder.clone());
        let record = run.record.as_ref().ok_or_else(no_record)?;
        if record.steps.iter().all(|step| step.model.is_none()) {
            return Err(NotRecomputed::NoModel(folder).into());
        }
        let chain = Chain::read(project, run).map_err(NotRecomputed::from)?;
        if let Some(gap) = &chain.gap {
            return Err(NotRecomputed::Missing(format!("{gap}/{CHANGES}")).into());
        }
        let changed = chain.changes();
        // Without changes, nothing has reached the project.
        let made = if changed.is_empty() {
            Recomputed::default()
        } else {
            Recomputed::of(project, run, (&chain, &changed))?
        };
        let files: Result<Vec<_>, _> = changed
            .iter()
            .map(|(path, change)| File::of(path, &change.change, &made))
            .collect();
        let files = files?;
        let fields = files
            .iter()
            .map(|file| file.described(run.agent().is_none()));
        let fields: Vec<_> = fields.collect();
        let value = json!({
            "_type": STATEMENT,
            "subject": subject(&files),
            "predicateType": PREDICATE,
            "predicate": predicate(project, run, record, program, &fields)?,
        });
        Ok(Self {
            value,
            files: changed.len(),
            replies: made.replies,
        })
    }

    /// Returns the document as text; the bytes are always the same.
    pub fn text(&self) -> String {
        format!("{:#}\n", self.value)
    }
}

/// Returns the digest of the program that made the run, if its file has not been replaced since.
pub fn program_digest(program: Option<&Path>, record: &RunRecord) -> Option<String> {
    let file = files::open(program?, Links::Followed).ok()?;
    if record.program != Some(Fingerprint::from(&file.metadata().ok()?)) {
        return None;
    }
    sha256::of_file(file).ok()
}

/// A file that the run changed.
struct File<'a> {
    path: &'a str,
    before: Option<&'a Vec<u8>>,
    /// The state after the last reply that changed the file; `None` if it removed the file, or none did.
    replied: Option<&'a Vec<u8>>,
    /// The SHA-256 of the last state; `None` if the file was removed.
    after: Option<String>,
}

impl<'a> File<'a> {
    fn of(
        path: &'a str,
        change: &LoggedChange,
        made: &'a Recomputed,
    ) -> Result<Self, NotRecomputed> {
        let content = |contents: &'a Contents| contents.get(path)?.as_ref();
        let (before, replied) = (content(&made.before), content(&made.replied));
        let last = change.after.last().copied().flatten();
        let is_last = |content: &&Vec<u8>| Some(Digest::of(content)) == last;
        let known = [replied, before].into_iter().flatten().find(is_last);
        let known = known.map(sha256::of).or_else(|| change.sha256.clone());
        let no_digest = || NotRecomputed::NoDigest(path.to_owned());
        Ok(Self {
            path,
            before,
            replied,
            after: last.map(|_| known.ok_or_else(no_digest)).transpose()?,
        })
    }

    /// Describes the file by its digests, that of a reply only if the run is not an agent's.
    fn described(&self, is_replied: bool) -> Value {
        let digest_of = |content: &Vec<u8>| digest(sha256::of(content));
        let mut file = json!({"path": self.path, "before": self.before.map(digest_of)});
        if is_replied {
            file["replied"] = json!(self.replied.map(digest_of));
        }
        file["after"] = json!(self.after.as_ref().map(digest));
        file
    }
}

/// Returns the tree of all changed files, and each file that is left.
fn subject(files: &[File<'_>]) -> Value {
    let line = |file: &File<'_>| {
        let digest = file.after.as_deref().unwrap_or("-");
        format!("{digest}  {}\n", file.path)
    };
    let tree: String = files.iter().map(line).collect();
    let tree = json!({"name": TREE, "digest": digest(sha256::of(&tree))});
    let left = files.iter().filter_map(|file| {
        let after = file.after.as_ref()?;
        Some(json!({"name": file.path, "digest": digest(after)}))
    });
    iter::once(tree).chain(left).collect()
}

/// States how the run was made, and what it is recorded in.
fn predicate(
    project: &Project,
    run: &PastRun,
    record: &RunRecord,
    program: Option<String>,
    files: &[Value],
) -> Result<Value, NotRecomputed> {
    let folder = run.relative();
    // The fields as in `result.json`.
    let fields = serde_json::to_value(record).unwrap_or_default();
    let steps = &record.steps;
    let applied = steps.iter().rfind(|step| step.is_applied());
    let asked = applied.and_then(|step| step.model.as_ref());
    let mut builds = steps.iter().filter_map(|step| step.build.as_ref());
    let build = builds.next_back().or(record.baseline.as_ref());
    let sent = steps.first().and_then(|step| run.sent(step));
    let request = run.agent().and_then(|agent| agent.request.as_ref());
    let query = sent.as_ref().map(|sent| &sent.query).or(request);
    let attempts = steps.iter().map(|step| described_step(run, step));
    Ok(json!({
        "run": folder,
        "workflow": record.workflow,
        "started": fields["started"],
        "exit": record.exit,
        "tree": fields["tree"],
        "gate": fields["gate"],
        "scratch": fields["scratch"],
        "model": models(asked.or(record.model.as_ref()), record.model_version.as_ref()),
        "cost": record.cost,
        "sandbox": build.map(|build| build.sandbox),
        (BUILD_SCRIPT): build.and_then(|build| build.script.as_ref()).map(digest),
        "program": {"version": record.version, "digest": program.map(digest)},
        "query": query.map(|query| digest(sha256::of(query))),
        "codebase": sent.as_ref().map(|sent| digest(sha256::of(&sent.rollup))),
        "attempts": attempts.collect::<Result<Value, _>>()?,
        "files": files,
        "log": log(project, run, steps)?,
    }))
}

/// Lists the files that record the run as a whole.
fn log(project: &Project, run: &PastRun, steps: &[Step]) -> Result<Value, NotRecomputed> {
    let own = [RESULT, STEPS].map(|name| file(run, name, true));
    let later = steps
        .iter()
        .map(Step::id)
        .filter(|step| *step != StepId::INITIAL);
    let verdicts = iter::once(StepId::INITIAL)
        .chain(later)
        .flat_map(|step| VERDICT.map(|log| run_files::of_verdict(&step, log)))
        .map(|name| file(run, &name, false));
    let files = own
        .into_iter()
        .chain(verdicts)
        .chain([changes(run, project)]);
    let mut files = files.collect::<Result<Vec<Value>, _>>()?;
    files.retain(|file| !file.is_null());
    files.extend(saved(project, &run.relative()));
    Ok(files.into())
}

fn digest(sha256: impl AsRef<str>) -> Value {
    json!({"sha256": sha256.as_ref()})
}

/// Describes a file in a run's folder by its name and digest; null if an optional file is missing.
fn file(run: &PastRun, name: &str, is_needed: bool) -> Result<Value, NotRecomputed> {
    described(run, name, &run.folder.join(name), is_needed)
}

fn described(
    run: &PastRun,
    name: &str,
    path: &Path,
    is_needed: bool,
) -> Result<Value, NotRecomputed> {
    let opened = files::open(path, Links::Refused);
    match opened.and_then(sha256::of_file).if_there() {
        Ok(None) if !is_needed => Ok(Value::Null),
        Ok(Some(found)) => Ok(json!({"name": name, "digest": digest(found)})),
        _ => Err(NotRecomputed::Missing(format!("{}/{name}", run.relative()))),
    }
}

/// Describes the record of changes, which may be stored next to the keys; null if there is none.
fn changes(run: &PastRun, project: &Project) -> Result<Value, NotRecomputed> {
    let path = undo_log::locate(project.root(), &run.relative());
    let described = path.map(|path| described(run, CHANGES, &path, true));
    described.unwrap_or(Ok(Value::Null))
}

/// Describes the files that the run saved before a reply or a repair replaced them.
fn saved(project: &Project, folder: &str) -> impl Iterator<Item = Value> {
    let saved = (1..).zip(saved_files(project, folder.to_owned()));
    saved.map_while(|(nth, file)| {
        let saved = sha256::of_file(file).ok()?;
        Some(json!({"name": format!("{REPLACED}/{nth}"), "digest": digest(saved)}))
    })
}

/// Returns the requested model, and the one that answered, if its vendor reports it.
fn models(asked: Option<&String>, served: Option<&String>) -> Value {
    let mut models = json!({"asked": asked});
    if let Some(served) = served {
        models["served"] = served.as_str().into();
    }
    models
}

/// Describes a step by its files.
fn described_step(run: &PastRun, step: &Step) -> Result<Value, NotRecomputed> {
    let file = |artifact, is_needed| file(run, &run_files::name(&step.id(), artifact), is_needed);
    let (is_asked, is_answered) = (!step.is_own(), step.finish.is_some());
    let build = step.build.as_ref();
    Ok(json!({
        "kind": step.purpose, "number": step.number, "reask": step.reask,
        "model": models(step.model.as_ref(), step.model_version.as_ref()), "tier": step.tier.unwrap_or_default(),
        "cost": step.cost, "applied": step.is_applied(),
        "prompt": file(Artifact::Query, is_asked)?,
        "answer": file(Artifact::ResponseJson, is_answered)?,
        "reply": file(Artifact::ResponseText, is_answered)?,
        "build": build.map(ToString::to_string),
        "build_log": file(Artifact::Build, build.is_some())?,
    }))
}
