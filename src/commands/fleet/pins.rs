//! The lock file beside a manifest: the commit of each task's ref, and digests of what the task does.
//!
//! Reads and writes that file, and asks repositories for their refs. Guarantees that a task whose ref has moved since
//! begins at the same commit, and that one which has changed otherwise is refused.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
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

/// Number of repositories that are asked at a time.
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
}

/// A task, as it was first begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TaskPin {
    id: String,
    repository: String,
    #[serde(rename = "ref")]
    reference: String,
    commit: String,
    query: String,
    task: String,
}

/// Returns the commits of the tasks, in order: those of the lock file, to which new tasks are added.
///
/// # Errors
/// When the lock file is for other tasks or another program, or a ref cannot be found.
pub fn commits(
    context: &Context<'_>,
    manifest: &Manifest,
    tasks: &[&Task],
) -> Result<Vec<String>, Error> {
    let mut lock = OsString::from(&manifest.path);
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let mut records = Records::lock(&lock)?;
    let differs = |what: String| FleetError::Differs {
        lock: lock.clone(),
        what,
    };
    let program = program(context)?;
    let (mut known, mut begun_by) = (HashMap::new(), None);
    for pin in records.read::<Pin>()? {
        match pin {
            Pin::Program(pin) => begun_by = Some(pin),
            Pin::Task(pin) => drop(known.insert(pin.id.clone(), pin)),
        }
    }
    if begun_by.as_ref().is_some_and(|begun| *begun != program) {
        return Err(differs("program".to_owned()).into());
    }
    let places = known.values();
    let places = places.map(|pin| (pin.repository.clone(), pin.reference.clone()));
    let mut places: BTreeMap<_, _> = places
        .zip(known.values().map(|pin| pin.commit.clone()))
        .collect();
    let new = tasks.iter().filter(|task| !known.contains_key(&task.id));
    let new: Vec<&&Task> = new.collect();
    places.extend(asked(context, manifest, &new, &places)?);
    let mut pins: Vec<Pin> = Vec::new();
    if begun_by.is_none() {
        pins.push(Pin::Program(program));
    }
    let mut commits = Vec::new();
    for task in tasks {
        // The manifest has been checked, so that its files can be read.
        let query = manifest.query(task).unwrap_or_default();
        let build = manifest.build(task).unwrap_or_default();
        let (query, digest) = (sha256::of(query), task.digest(build.as_deref()));
        let pin = match known.get(&task.id) {
            Some(pin) => pin.clone(),
            None => TaskPin {
                id: task.id.clone(),
                repository: task.repository.clone(),
                reference: task.reference.clone(),
                commit: places[&(task.repository.clone(), task.reference.clone())].clone(),
                query: query.clone(),
                task: digest.clone(),
            },
        };
        if pin.query != query {
            return Err(differs(format!("query of `{}`", task.id)).into());
        }
        if pin.task != digest {
            return Err(differs(format!("task `{}`", task.id)).into());
        }
        commits.push(pin.commit.clone());
        if !known.contains_key(&task.id) {
            pins.push(Pin::Task(pin));
        }
    }
    if !pins.is_empty() {
        records.append(&pins)?;
    }
    Ok(commits)
}

/// A repository and a ref in it.
type RefPlace = (String, String);

/// Asks the repositories of new tasks for the commits of refs that are not known.
fn asked(
    context: &Context<'_>,
    manifest: &Manifest,
    tasks: &[&&Task],
    known: &BTreeMap<RefPlace, String>,
) -> Result<BTreeMap<RefPlace, String>, Error> {
    let places = tasks
        .iter()
        .map(|task| (task.repository.clone(), task.reference.clone()));
    let mut places: Vec<RefPlace> = places.filter(|place| !known.contains_key(place)).collect();
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
            let commit = repositories.commit(&repository, &reference)?;
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

fn program(context: &Context<'_>) -> Result<ProgramPin, PathError> {
    let digest = context.sandbox.program.map(|program| {
        let file = files::open(program, Links::Refused);
        file.and_then(sha256::of_reader)
            .map_err(PathError::of("read", program))
    });
    let digest = digest.transpose()?;
    let prompts = [
        COMMIT_INITIAL,
        COMMIT_REPAIR,
        COMMIT_EDITS,
        COMMIT_EDITS_REPAIR,
        CONSISTENCY,
    ];
    Ok(ProgramPin {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        digest: digest.unwrap_or_default(),
        prompts: sha256::of(prompts.concat()),
    })
}
