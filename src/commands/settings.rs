//! Flags from files: the user's `agent-config/run.json`, the model's entry in `models.json`, and the project's
//! `.code-commit.json`.
//!
//! Reads these files. Guarantees that the project's file can only restrict what a change may do, and that the user's
//! file did not come with the repository.

use std::path::Path;

use miette::MietteDiagnostic;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::cli::gate::GateMode;
use super::cli::values::flag_words;
use super::command_line::{Cli, CliMessage};
use super::error::CommandError;
use crate::edit::protection::check_pattern;
use crate::model::{ModelTable, Purpose};
use crate::project::{CONFIG, PROJECT_GATE, Project, USER_FLAGS};
use crate::run::context::ModelsProblem;
use crate::run::past::warnings::check_code;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::positions::{self, Entries, Misplaced, Positions};

/// Flags that files cannot give.
const REFUSED: [&str; 3] = ["root", "help", "version"];

/// The content of `.code-commit.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProjectGate {
    #[serde(deserialize_with = "patterns")]
    protect: Vec<String>,
    #[serde(deserialize_with = "codes")]
    deny_warnings: Vec<String>,
    require_edits: bool,
    baseline: bool,
    require_clean: bool,
    gate: Option<GateMode>,
}

fn patterns<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<String>, D::Error> {
    let patterns = Vec::<String>::deserialize(json)?.into_iter();
    let checked = patterns.map(|pattern| {
        let wrong = |reason| D::Error::custom(format!("`{pattern}` is no pattern: {reason}"));
        check_pattern(&pattern).map_err(wrong)
    });
    checked.collect()
}

/// Deserializes codes of warnings: a list, a single one, or `true` for all.
fn codes<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Codes {
        All(bool),
        One(String),
        Several(Vec<String>),
    }
    let codes = match Codes::deserialize(json)? {
        Codes::All(true) => vec!["all".to_owned()],
        Codes::All(false) => Vec::new(),
        Codes::One(code) => vec![code],
        Codes::Several(codes) => codes,
    };
    let checked = codes.iter().map(|code| check_code(code));
    checked.map(|code| code.map_err(D::Error::custom)).collect()
}

/// The hint for values that no flag accepts.
const FORM: &str = "give flags by their names, with `true`, a text, a number, or a list of texts";

/// Creates the error for invalid flags at `place`, a model's entry.
fn wrong_flags(place: &str, message: &str, hint: &str) -> MietteDiagnostic {
    MietteDiagnostic::new(format!("{place}: {message}"))
        .with_code("/settings")
        .with_help(hint)
}

/// Creates the error for flags at `place` that the command line rejects.
fn refused(place: &str) -> impl Fn(CliMessage) -> MietteDiagnostic {
    move |wrong| match wrong.error {
        Some(CommandError::CommandLine { message, hint }) => wrong_flags(place, &message, &hint),
        _ => wrong_flags(place, &wrong.text, FORM),
    }
}

/// Returns the command line of a workflow with the flags from files. Flags on the command line take precedence over
/// those in `run.json`, and those over the flags of the model's entry, which do not apply to a replay.
///
/// # Errors
/// Fails if a file cannot be used.
pub fn with_files(
    cli: &Cli,
    project: &Project,
    models: &Result<ModelTable, ModelsProblem>,
) -> Result<Cli, Error> {
    let mut cli = match project.users_file(USER_FLAGS)? {
        None => cli.clone(),
        Some(content) => with_users(cli, &content).map_err(|mistake| HomeFileProblem::Mistake {
            path: Path::new(CONFIG).join(USER_FLAGS),
            mistake,
            without: "then the command line's flags alone hold",
        })?,
    };
    // Problems with the table are reported when a model is needed.
    let entry = models.as_ref().ok().and_then(|table| match &cli.model {
        Some(name) => table.named(name),
        None => Some(table.chosen(&Purpose::INITIAL)),
    });
    if let Some(entry) = entry.filter(|entry| !entry.flags().is_empty() && cli.replay.is_none()) {
        let place = format!("the entry `{}` in `models.json`", entry.name);
        let flags =
            flag_words(entry.flags()).map_err(|message| wrong_flags(&place, &message, FORM))?;
        cli = cli.with_flags(&flags).map_err(refused(&place))?;
    }
    let gate = project_gate(project.root())?;
    cli.gate.protect.extend(gate.protect);
    cli.gate.deny_warnings.extend(gate.deny_warnings);
    cli.gate.require_clean |= gate.require_clean;
    cli.gate.gate = cli.gate.gate.max(gate.gate);
    cli.replies.require_edits |= gate.require_edits;
    // A dry run starts nothing that was not requested.
    cli.build.baseline |= gate.baseline && !cli.dry_run;
    Ok(cli)
}

fn project_gate(root: &Path) -> Result<ProjectGate, HomeFileProblem> {
    // A link may lead anywhere.
    let read = files::read(&root.join(PROJECT_GATE), Links::Refused, MIB).if_there();
    let content = read.map_err(|source| HomeFileProblem::Unreadable {
        path: PROJECT_GATE.into(),
        source,
    })?;
    let without = "then the flags alone say what a change may do";
    home_file::parse_file(content.as_deref(), PROJECT_GATE, without)
}

/// Returns the command line with the flags from the user's file, a JSON object with a field for each flag.
fn with_users(cli: &Cli, content: &[u8]) -> Result<Cli, Misplaced> {
    let json = positions::text(content)?;
    let at = Positions(json);
    let entries: Entries<'_> = at.object(json)?;
    let (mut flags, mut places) = (Vec::new(), Vec::new());
    for (name, value) in entries.0 {
        let place = value.get();
        let value: Value = at.parse(place)?;
        if REFUSED.contains(&&*name) {
            let reason = format!("`{name}` can only be given on the command line");
            return Err(at.problem(place, reason));
        }
        // A flag set to `false` adds no argument, so its name is checked here.
        if value == false {
            Cli::check_flag(&[], &name).map_err(|reason| at.problem(place, reason))?;
        }
        // Without a value, the flag would consume the next argument.
        if value == true && Cli::needs_value(&name) {
            let reason = format!("a value is required for `--{name}`");
            return Err(at.problem(place, reason));
        }
        let words = flag_words(Map::from_iter([(name, value)]));
        flags.extend(words.map_err(|reason| at.problem(place, reason))?);
        places.resize(flags.len(), place);
    }
    cli.with_flags(&flags).map_err(|wrong| {
        let is_wrong = |more: &[_]| cli.with_flags(more).err().map(|error| error.reason());
        let reason = wrong.reason();
        let mut counts = 1..=flags.len();
        let first = counts.find(|count| is_wrong(&flags[..*count]).as_ref() == Some(&reason));
        at.problem(first.map_or(json, |count| places[count - 1]), reason)
    })
}
