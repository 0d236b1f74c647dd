//! The manifest: one task per line, as JSON.
//!
//! Reads the manifest and the files that it names. Guarantees that an id is a plain, unique file name, that the files
//! of queries and builds are in the manifest's directory, and that flags form a command line of the task's workflow
//! without changing what the fleet itself decides.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::error::FleetError;
use crate::commands::cli::values::{PROGRAM, flag_words};
use crate::model::price::Usd;
use crate::run::context::Context;
use crate::secret::credentials;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::git::PROTOCOLS;
use crate::sys::positions::{self, Entries, Misplaced, Positions};
use crate::sys::sha256;
use crate::sys::text::below;

/// Maximum size of a manifest, in bytes.
const LARGEST: u64 = 64 * MIB;
/// Maximum size of a query or a build, in bytes.
const LARGEST_TEXT: u64 = 16 * MIB;
/// Maximum length of an id, in bytes.
const LONGEST_ID: usize = 100;
/// Beginning of a script, as opposed to the path of a script.
const SHEBANG: &str = "#!";

/// Flags that the fleet sets itself, or that would keep a run from leaving a result.
const OWN_FLAGS: &str = "cc consistency consistency-check diff dry-run edit findings-file help max-cost message \
    model output-format prompt quiet replay resume rollup root session staged summary-file version";
/// Flags that apply only to the beginning of a task; they are left out when a run is resumed.
const BEGINNING_FLAGS: &str =
    "allow-stale baseline context exclude if-changed include require-fresh";

/// Summary for an empty manifest.
pub const NO_TASKS: &str = "done: the manifest has no tasks: there was nothing to do";

/// Checks a command line, and the names of flags set to `false`. The error describes what is wrong with them.
pub type CheckWords<'c> = &'c dyn Fn(&[OsString], &[&str]) -> Result<(), String>;

/// A workflow that a task may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workflow {
    /// A change.
    #[default]
    Commit,
    /// A consistency report.
    Consistency,
    /// The agent `dev`.
    Dev,
    /// The agent `plan`.
    Plan,
}

/// The way in which a task's run starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// The task starts from the beginning.
    Anew,
    /// A dry run checks whether the task could begin.
    Dry,
    /// The run in this folder is resumed.
    From(String),
}

/// A task: a line of the manifest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    #[serde(rename = "$schema", default)]
    _schema: Option<IgnoredAny>,
    /// The task's id, which is also the name of its folder.
    pub id: String,
    /// A path relative to the manifest, or a URL.
    pub repository: String,
    /// The branch, tag or commit at which to begin.
    #[serde(rename = "ref", default = "head")]
    pub reference: String,
    #[serde(default)]
    query: Option<String>,
    #[serde(default)]
    query_file: Option<PathBuf>,
    /// The query, as given or from its file; empty for a consistency report.
    #[serde(skip)]
    pub text: Arc<str>,
    /// The workflow.
    #[serde(default)]
    pub workflow: Workflow,
    /// The model to ask; `None` for the default one.
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    flags: Map<String, Value>,
    #[serde(default)]
    build: Option<String>,
    /// The task's own build script, as given or from its file.
    #[serde(skip)]
    pub script: Option<Arc<str>>,
    /// The environment variable that contains the key.
    #[serde(default)]
    pub env_key: Option<String>,
    /// Maximum cost of the task.
    #[serde(default)]
    pub max_cost: Option<Usd>,
    /// Labels, for reports.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

fn head() -> String {
    "HEAD".to_owned()
}

impl Task {
    /// Returns the command line of the task's run in `clone`.
    pub fn words(&self, clone: &Path, start: &Start, limit: Option<Usd>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![PROGRAM.into()];
        let agent: Option<&str> = match self.workflow {
            Workflow::Commit => None,
            Workflow::Consistency => Some("--consistency-check"),
            Workflow::Dev => Some("dev"),
            Workflow::Plan => Some("plan"),
        };
        words.extend(agent.map(Into::into));
        let beginning: &[&str] = match (self.workflow, start) {
            (Workflow::Commit | Workflow::Consistency, Start::Anew) => &["--rollup"],
            (_, Start::Dry) => &["--rollup", "--dry-run"],
            (Workflow::Commit, Start::From(run)) => &["--resume", run, "--allow-stale"],
            (Workflow::Consistency, Start::From(run)) => &["--resume", run],
            (Workflow::Dev | Workflow::Plan, Start::Anew) => &["--prompt", "-"],
            (Workflow::Dev | Workflow::Plan, Start::From(_)) => &["--resume", "--prompt="],
        };
        words.extend(beginning.iter().map(Into::into));
        words.extend(["--output-format", "json", "--root"].map(Into::into));
        words.push(clone.into());
        let model = self.model.iter().map(|model| format!("--model={model}"));
        let limit = limit.map(|limit| format!("--max-cost={:.6}", limit.dollars()));
        words.extend(model.chain(limit).map(Into::into));
        let has_findings = self.flags.get("findings").is_some_and(Value::is_string);
        if *start != Start::Dry && has_findings {
            // Standard output is for the record, which also contains the findings.
            words.push("--findings-file=/dev/null".into());
        }
        let dropped = match start {
            Start::From(_) => BEGINNING_FLAGS,
            // A new clone has no earlier report.
            Start::Dry => "if-changed",
            Start::Anew => "",
        };
        let mut flags = self.flags.clone();
        flags.retain(|name, _| dropped.split(' ').all(|dropped| dropped != name));
        // The flags have been checked.
        let given = flag_words(flags).unwrap_or_default();
        words.extend(given.into_iter().map(|(_, word)| word));
        words
    }

    /// Returns `true` if a failing build is followed by a search, which begins from the unmodified project.
    pub fn searches(&self) -> bool {
        self.flags.get("strategy").is_some_and(|it| it == "search")
    }

    /// Returns `true` if the task makes several attempts at once. Its runs cannot be resumed.
    pub fn has_attempts(&self) -> bool {
        let are_several = self.model.as_ref().is_some_and(|model| model.contains(','));
        let number = self.flags.get("attempts").and_then(Value::as_u64);
        are_several || number.is_some_and(|number| number > 1)
    }

    /// Returns `true` if the task has Ollama pull missing models.
    pub fn pulls(&self) -> bool {
        self.flags.get("pull").is_some_and(|pull| pull == true)
    }

    /// Returns a digest of the task's work, apart from its query.
    pub fn digest(&self) -> String {
        let parts = json!([
            self.repository,
            self.reference,
            format!("{:?}", self.workflow),
            self.model,
            self.flags,
            self.script.as_deref()
        ]);
        sha256::of(parts.to_string())
    }
}

/// A manifest that has been read.
pub struct Manifest {
    /// The manifest's absolute path.
    pub path: PathBuf,
    text: String,
}

/// The contents of the files that a manifest names, by path.
type Files = HashMap<PathBuf, Result<Arc<str>, String>>;

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// Fails if the manifest cannot be read, or contains credentials.
    pub fn read(context: &Context<'_>, path: &Path) -> Result<Self, Error> {
        let given = context.project.root().join(path);
        let found = given.canonicalize().if_there();
        let path = found
            .map_err(PathError::of("read", path))?
            .ok_or_else(|| FleetError::NoManifest(path.to_owned()))?;
        let content =
            files::read(&path, Links::Refused, LARGEST).map_err(PathError::of("read", &path))?;
        let text = positions::text(&content).map_err(|mistake| FleetError::Manifest {
            path: path.clone(),
            mistakes: vec![mistake],
        })?;
        let found = credentials::find("manifest", text, context.redactor);
        if !found.is_empty() {
            let lines = found
                .iter()
                .map(|it| format!("line {}: {}", it.line, it.kind));
            let found = below(lines);
            return Err(FleetError::Secrets { path, found }.into());
        }
        let text = text.to_owned();
        Ok(Self { path, text })
    }

    /// Returns the directory to which paths are relative.
    pub fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Returns all tasks.
    ///
    /// # Errors
    /// Returns the first mistake of each line.
    pub fn tasks(&self, check: CheckWords<'_>) -> Result<Vec<Task>, FleetError> {
        let (mut tasks, mut mistakes) = (Vec::new(), Vec::new());
        let mut ids = HashSet::new();
        let (mut files, mut checked) = (Files::new(), HashMap::new());
        for line in self.text.lines() {
            let parsed = self.parse(line, &mut files, &mut |task| {
                let key = (task.workflow, Value::from(task.flags.clone()).to_string());
                let known = checked.entry(key).or_insert_with(|| {
                    let flags = task.flags.iter().filter(|(_, value)| **value == false);
                    let off: Vec<&str> = flags.map(|(name, _)| name.as_str()).collect();
                    check(&task.words(Path::new("."), &Start::Anew, None), &off)
                });
                known.clone()
            });
            match parsed {
                Ok(task) if !ids.insert(task.id.to_lowercase()) => {
                    let reason = format!("there is a task `{}` already", task.id);
                    mistakes.push(self.mistake(line, "id", reason));
                }
                Ok(task) => tasks.push(task),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if mistakes.is_empty() {
            return Ok(tasks);
        }
        let path = self.path.clone();
        Err(FleetError::Manifest { path, mistakes })
    }

    /// Reads a file in the manifest's directory or below it, unless it is among the `known` ones.
    fn file(&self, known: &mut Files, path: &Path) -> Result<Arc<str>, String> {
        let read = || {
            let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
            if !path.components().all(is_plain) {
                return Err("name a file in the manifest's directory, or below it".to_owned());
            }
            let real = self.directory().join(path).canonicalize();
            let found = real.map_err(|error| error.to_string())?;
            if !found.starts_with(self.directory()) {
                return Err("it leads out of the manifest's directory".to_owned());
            }
            let content = files::read(&found, Links::Refused, LARGEST_TEXT)
                .map_err(|error| error.to_string())?;
            let text = String::from_utf8(content).map_err(|_| "it is not UTF-8".to_owned())?;
            ensure(!text.trim().is_empty(), "it is empty").map(|()| text.into())
        };
        let described = |reason: String| format!("`{}`: {reason}", path.display());
        let read = || read().map_err(described);
        known.entry(path.to_owned()).or_insert_with(read).clone()
    }

    fn parse(
        &self,
        line: &str,
        files: &mut Files,
        check: &mut dyn FnMut(&Task) -> Result<(), String>,
    ) -> Result<Task, Misplaced> {
        let mut task: Task = Positions(&self.text).object(line)?;
        let text = match &task.query_file {
            Some(path) => self.file(files, path),
            None => Ok(task.query.as_deref().unwrap_or_default().into()),
        };
        let script = task.build.as_deref().map(|build| match build {
            script if script.starts_with(SHEBANG) => Ok(script.into()),
            path => self.file(files, Path::new(path)),
        });
        let free = "it must be more than 0: leave it out for a model that costs nothing";
        let faults = [
            ("id", check_id(&task.id)),
            ("repository", check_repository(&task.repository)),
            ("ref", check_ref(&task.reference)),
            ("query", check_query(&task)),
            ("query_file", text.map(|text| task.text = text)),
            (
                "build",
                script.transpose().map(|script| task.script = script),
            ),
            ("flags", check_flags(&task.flags)),
            ("env_key", check_key(&task)),
            ("max_cost", ensure(task.max_cost != Some(Usd::ZERO), free)),
        ];
        for (field, fault) in faults {
            fault.map_err(|reason| self.mistake(line, field, reason))?;
        }
        let checked = check(&task).map_err(|reason| self.mistake(line, "flags", reason));
        checked.map(|()| task)
    }

    /// Locates a mistake at a field's value, or at the beginning of the line if the field is missing.
    fn mistake(&self, line: &str, field: &str, reason: String) -> Misplaced {
        let at = Positions(&self.text);
        let fields: Entries<'_> = serde_json::from_str(line).unwrap_or_default();
        let value = fields.0.iter().find(|(name, _)| name == field);
        at.problem(value.map_or(line, |(_, value)| value.get()), reason)
    }
}

fn ensure(is_right: bool, problem: &str) -> Result<(), String> {
    is_right.then_some(()).ok_or_else(|| problem.to_owned())
}

fn check_id(id: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_name = (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(is_plain);
    // The id becomes the name of a branch and of a folder, which is next to files of the fleet itself.
    let is_branch = !id.starts_with(['.', '-']) && !id.contains("..");
    let lower = id.to_ascii_lowercase();
    let endings = [".", ".lock", ".html", ".jsonl"];
    let is_taken = endings.iter().any(|end| lower.ends_with(end));
    let form = "an id is made of up to 100 letters, digits, `.`, `_` and `-`, does not begin with `.` or \
        `-`, has no `..`, and does not end with `.` or `.lock`, nor with `.html` or `.jsonl` as the campaign's ledger and \
        report do";
    ensure(is_name && is_branch && !is_taken, form)
}

fn check_repository(repository: &str) -> Result<(), String> {
    if repository.is_empty() || repository.starts_with('-') || repository.contains(char::is_control)
    {
        return Err("name a repository by its path or its URL".to_owned());
    }
    let Some((scheme, rest)) = repository.split_once("://") else {
        // Git would start a helper program of this name.
        let is_helpers = repository.split('/').any(|part| part.contains("::"));
        let problem = "a repository is not named by a transport of git's, like `ext::`";
        return ensure(!is_helpers, problem);
    };
    if !PROTOCOLS.contains(&scheme) {
        let known = PROTOCOLS.join("`, `");
        return Err(format!("a URL begins with one of `{known}`"));
    }
    let place = rest.split('/').next().unwrap_or_default();
    match place.rsplit_once('@') {
        Some((user, _)) if user.contains(':') || scheme != "ssh" => {
            Err("a URL with a user's name or password may hold a secret: let git's credential helper give it".to_owned())
        }
        _ => Ok(()),
    }
}

fn check_ref(reference: &str) -> Result<(), String> {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
    let is_word = !reference.is_empty() && !reference.starts_with('-');
    let is_ref = is_word && !reference.contains(is_odd);
    ensure(is_ref, "name a branch, a tag or a commit")
}

fn check_query(task: &Task) -> Result<(), String> {
    let wrong = match (&task.query, &task.query_file, task.workflow) {
        (None, None, Workflow::Consistency) => return Ok(()),
        (_, _, Workflow::Consistency) => "a consistency report takes no query",
        (Some(_), Some(_), _) => "give either `query` or `query_file`",
        (None, None, _) => "a task needs a `query` or a `query_file`",
        (Some(query), None, _) if query.trim().is_empty() => "the query is empty",
        _ => return Ok(()),
    };
    Err(wrong.to_owned())
}

fn check_flags(flags: &Map<String, Value>) -> Result<(), String> {
    let is_own = |name: &&String| OWN_FLAGS.split(' ').any(|own| own == *name);
    match flags.keys().find(is_own) {
        Some(own) => Err(format!("`{own}` is given by the fleet itself")),
        None => flag_words(flags.clone()).map(drop),
    }
}

fn check_key(task: &Task) -> Result<(), String> {
    let Some(variable) = &task.env_key else {
        return Ok(());
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = variable.chars().all(is_part) && !variable.is_empty();
    if !is_name || variable.starts_with(|c: char| c.is_ascii_digit()) {
        // The value is not shown, since it may be the key itself.
        return Err("name the environment variable that holds the key".to_owned());
    }
    if task.model.is_none() && matches!(task.workflow, Workflow::Dev | Workflow::Plan) {
        let needed = "a task of an agent needs a `model`, which says whose key this is";
        return Err(needed.to_owned());
    }
    Ok(())
}
