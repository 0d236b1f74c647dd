//! The lock file next to a manifest: the commit of each task's ref, and digests of the task's work.
//!
//! Reads and writes that file, and asks repositories for their refs. Guarantees that a task whose ref has moved still
//! begins at the same commit, and that a task with any other change is refused. A ref that cannot be found affects only
//! its own tasks.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::{Deserialize, Serialize};

use super::clone::Repositories;
use super::error::FleetError;
use super::manifest::{Manifest, Task};
use super::records::Records;
use crate::model::prompt::{
    COMMIT_EDITS, COMMIT_EDITS_REPAIR, COMMIT_INITIAL, COMMIT_REPAIR, CONSISTENCY,
};
use crate::run::context::Context;
use crate::sys::error::Error;
use crate::sys::files::{self, Links, PathError};
use crate::sys::parallel::joined;
use crate::sys::sha256;

/// Number of repositories that are queried at the same time.
const ASKED: usize = 8;

/// A line of the lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Pin {
    Program(ProgramPin),
    Task(TaskPin),
}

/// The program that began the tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ProgramPin {
    version: String,
    digest: String,
    prompts: String,
    /// Digest of `digest` and the file's state. It lets the same machine recognize the file without reading it.
    #[serde(default)]
    state: String,
}

/// A task as it was first started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPin {
    /// The task's id.
    pub id: String,
    repository: String,
    #[serde(rename = "ref")]
    reference: String,
    /// The commit at which the task begins.
    pub commit: String,
    query: String,
    task: String,
}

impl TaskPin {
    /// Returns a digest of the task's work and location.
    pub fn digest(&self) -> String {
        sha256::of([&*self.commit, &self.query, &self.task].join(" "))
    }
}

/// Returns the pins of the tasks, in order: those in the lock file, and new ones, which are added to it if
/// `is_written`. The inner error is the reason why a task's ref cannot be found.
///
/// # Errors
/// Fails if the lock file is for other tasks or another program, or cannot be used.
pub fn pins(
    context: &Context<'_>,
    manifest: &Manifest,
    tasks: &[&Task],
    is_written: bool,
) -> Result<Vec<Result<TaskPin, FleetError>>, Error> {
    let lock = manifest.path.with_added_extension("lock");
    let is_pinned = is_written || lock.is_file();
    let mut records = is_pinned.then(|| Records::lock(&lock)).transpose()?;
    let differs = |what: String| FleetError::Differs {
        lock: lock.clone(),
        what,
    };
    let (mut known, mut begun_by) = (HashMap::new(), None);
    let read = records.as_mut().map(Records::read::<Pin>).transpose()?;
    for pin in read.unwrap_or_default() {
        match pin {
            Pin::Program(pin) => begun_by = Some(pin),
            Pin::Task(pin) => drop(known.insert(pin.id.clone(), pin)),
        }
    }
    let program = program(context, begun_by.as_ref())?;
    if begun_by.as_ref().is_some_and(|begun| *begun != program) {
        return Err(differs("program".to_owned()).into());
    }
    let mut places: Commits = known
        .values()
        .map(|pin| (pin.repository.clone(), pin.reference.clone()))
        .zip(known.values().map(|pin| Ok(pin.commit.clone())))
        .collect();
    let is_new = |task: &&&Task| !known.contains_key(&task.id);
    let new: Vec<&&Task> = tasks.iter().filter(is_new).collect();
    places.extend(asked(context, manifest, &new, &places)?);
    let mut added: Vec<Pin> = Vec::new();
    if begun_by.is_none() {
        added.push(Pin::Program(program));
    }
    let (mut pins, mut others) = (Vec::new(), Vec::new());
    for task in tasks {
        let (query, digest) = (sha256::of(&*task.text), task.digest());
        if let Some(pin) = known.get(&task.id) {
            if pin.query != query {
                others.push(format!("query of `{}`", task.id));
            } else if pin.task != digest {
                others.push(format!("task `{}`", task.id));
            }
            pins.push(Ok(pin.clone()));
            continue;
        }
        let commit = places[&(task.repository.clone(), task.reference.clone())].clone();
        let pin = commit.map(|commit| TaskPin {
            id: task.id.clone(),
            repository: task.repository.clone(),
            reference: task.reference.clone(),
            commit,
            query,
            task: digest,
        });
        added.extend(pin.iter().cloned().map(Pin::Task));
        pins.push(pin);
    }
    if !others.is_empty() {
        return Err(differs(others.join(", ")).into());
    }
    if let Some(records) = records.filter(|_| is_written && !added.is_empty()).as_mut() {
        records.append(&added)?;
    }
    Ok(pins)
}

/// A repository and a ref in it.
type RefPlace = (String, String);
/// The commits named by refs, or the reasons why they cannot be found.
type Commits = BTreeMap<RefPlace, Result<String, FleetError>>;

/// Asks the repositories of new tasks for the commits of unknown refs.
fn asked(
    context: &Context<'_>,
    manifest: &Manifest,
    tasks: &[&&Task],
    known: &Commits,
) -> Result<Commits, Error> {
    let place = |task: &&&Task| (task.repository.clone(), task.reference.clone());
    let mut places: Vec<RefPlace> = tasks.iter().map(place).collect();
    places.retain(|place| !known.contains_key(place));
    places.sort_unstable();
    places.dedup();
    if places.is_empty() {
        return Ok(BTreeMap::new());
    }
    let repositories = Repositories::find(context, manifest.directory())?;
    let queue = Mutex::new(places.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut found = BTreeMap::new();
        while let Some((repository, reference)) = next() {
            let commit = match repositories.commit(&repository, &reference) {
                Ok(commit) => Ok(commit),
                Err(error) => Err(error.downcast()?),
            };
            found.insert((repository, reference), commit);
        }
        Ok::<_, Error>(found)
    };
    thread::scope(|scope| {
        let started =
            (1..ASKED).filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
        let others: Vec<_> = started.collect();
        let mut found = work()?;
        for other in others {
            found.extend(joined(other)?);
        }
        Ok(found)
    })
}

fn program(context: &Context<'_>, begun: Option<&ProgramPin>) -> Result<ProgramPin, PathError> {
    let identify = |program: &Path| -> io::Result<_> {
        let file = files::open(program, Links::Refused)?;
        let metadata = file.metadata()?;
        let (ino, len) = (metadata.ino(), metadata.len());
        let found = (ino, len, metadata.ctime(), metadata.ctime_nsec());
        let state_of = |digest: &str| sha256::of(format!("{digest} {found:?}"));
        let is_known = |begun: &&ProgramPin| begun.state == state_of(&begun.digest);
        let known = begun.filter(is_known).map(|begun| begun.digest.clone());
        let digest = known.map_or_else(|| sha256::of_file(file), Ok)?;
        // Keep the state recorded on the machine that began the tasks.
        let begun = begun.filter(|begun| begun.digest == digest);
        let state = begun.map_or_else(|| state_of(&digest), |begun| begun.state.clone());
        Ok((digest, state))
    };
    let program = context.sandbox.program;
    let found = program.map(|path| identify(path).map_err(PathError::of("read", path)));
    let (digest, state) = found.transpose()?.unwrap_or_default();
    let prompts = [
        COMMIT_INITIAL,
        COMMIT_REPAIR,
        COMMIT_EDITS,
        COMMIT_EDITS_REPAIR,
        CONSISTENCY,
    ];
    Ok(ProgramPin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        digest,
        prompts: sha256::of(prompts.concat()),
        state,
    })
}
