//! A trial of a model: asks for small changes to an embedded project, and judges the replies by that project's build.
//!
//! Writes into the run's folder, where the project is recreated for each change, and writes the rates next to the table
//! of models. Nothing else in the user's project is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::rates::{ModelRates, Rates, Verdict};
use crate::commands::init;
use crate::edit::undo_log::UndoLog;
use crate::edit::{self, LossGuard, PathPolicy, Sent, VerifyError};
use crate::exec::sandbox::SandboxMode;
use crate::model::estimate::OverBudget;
use crate::model::price::Usd;
use crate::model::prompt::{Inputs, Prompt};
use crate::model::{Delivery, ModelError, Purpose, Reply, ReplyFormat, StepId};
use crate::project::Project;
use crate::project::rollup::header;
use crate::record::run_log::RunLog;
use crate::run::active::Run;
use crate::run::builds::{self, BuildOptions, Builds};
use crate::run::context::{Context, ModelChoice, SandboxSetup};
use crate::run::error::RunError;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::selection::{self, ModelKey, Models};
use crate::run::{agent_models, recovery};
use crate::sys::error::Error;
use crate::sys::files::PathError;
use crate::ui::columns::{
    self,
    Align::{Left, Right},
};

/// Embeds a file of the trial.
macro_rules! fixture {
    ($($part:literal),+) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/trial/", $($part),+))
    };
}

/// Embeds a change.
macro_rules! change {
    ($name:literal) => {
        Change {
            name: $name,
            query: fixture!($name, "/query.txt"),
            build: fixture!($name, "/build.sh"),
        }
    };
}

/// A change that a trial asks for.
struct Change {
    name: &'static str,
    query: &'static str,
    /// The `build.sh` that passes if the change was made.
    build: &'static str,
}

/// All changes that a trial asks for.
const CHANGES: [Change; 8] = [
    change!("rename"),
    change!("flag"),
    change!("off-by-one"),
    change!("delete"),
    change!("new-file"),
    change!("two-places"),
    change!("line-ends"),
    change!("one-of-two"),
];

/// The files of the project, which are shown to the model.
const FILES: [(&str, &str); 6] = [
    ("legacy.sh", fixture!("project/legacy.sh")),
    ("report.sh", fixture!("project/report.sh")),
    ("settings.ini", fixture!("project/settings.ini")),
    ("settings.json", fixture!("project/settings.json")),
    ("stations.csv", fixture!("project/stations.csv")),
    ("text.sh", fixture!("project/text.sh")),
];
/// The file whose lines end in CRLF.
const CRLF: &str = "settings.ini";
const GITIGNORE: &str = "/agent-config\n/logs\n";

/// The formats of replies.
const FORMATS: [ReplyFormat; 2] = [ReplyFormat::Whole, ReplyFormat::Edits];

/// Time limit of a call, retries included.
const CALL: Duration = Duration::from_mins(5);
/// Time limit of a build, which takes less than a second.
const BUILD: Duration = Duration::from_mins(1);

/// Asks the model for each change, `runs` times in each format; prints and records how many replies were right.
///
/// # Errors
/// Fails if the model does not exist or cannot be asked, or a file cannot be written.
pub fn trial(
    context: &Context<'_>,
    name: &str,
    runs: u16,
    max_cost: Option<Usd>,
) -> Result<Outcome, Failure> {
    let spec = selection::named(selection::table_of(context.models)?, name)?;
    let known = Rates::read(&context.project).map_err(NotReady::of)?;
    builds::check_strict(context)
        .map_err(|problem| NotReady::of(RunError::NotSandboxed(problem)))?;
    let _lock = recovery::take(context)?;
    let choice = ModelChoice {
        max_cost,
        delivery: Delivery::Whole,
        ..ModelChoice::streamed(Some(name), CALL)
    };
    let models = agent_models::one_model(context, &choice, None, spec, ModelKey::ByRule)?;
    let mut run = Run::start(context, "trial")?;
    run.note_models(&models);
    models.report_base_urls(context);
    for warning in models.warnings(context) {
        run.warn(warning);
    }
    let mut rates = ModelRates::new();
    let counted = count(context, &mut run, &models, runs, &mut rates);
    // The last project is no longer needed.
    let _ = fs::remove_dir_all(project_of(context, &run));
    let text = text(&rates);
    let remembered = counted.and_then(|()| known.remember(&context.project, name, rates));
    let summary = "done: `code-commit models` shows these rates".to_owned();
    let mut outcome = run.finish(remembered.map(|()| summary), |_| {})?;
    outcome.output.text = Some(text);
    Ok(outcome)
}

/// Asks for all changes, and counts the verdicts in `rates`.
fn count(
    context: &Context<'_>,
    run: &mut Run<'_>,
    models: &Models<'_>,
    runs: u16,
    rates: &mut ModelRates,
) -> Result<(), Error> {
    let changes = (0..runs).flat_map(|_| &CHANGES);
    let tries = changes.flat_map(|change| FORMATS.map(|format| (change, format)));
    let ask = |step: &StepId, asked: &_| {
        let verdict = attempt(context, run, models, step, *asked);
        let cost = run.record.steps.last().and_then(|step| step.cost);
        (verdict, cost)
    };
    let add = |(change, format): (&Change, _), verdict: Verdict, cost| {
        rates.entry(format).or_default().add(verdict, cost);
        let (name, verdict) = (change.name, verdict.word());
        Some(format!("{name} ({format}) {verdict}"))
    };
    if let Some(why) = tried(context, &Purpose::TRIAL, tries.collect(), ask, add)? {
        run.warn(why);
    }
    Ok(())
}

/// Calls `ask` for each of `tries`, and shows the text that `count` returns for the verdict on the reply and its cost.
/// Stops and returns the reason if another call could exceed the cost limit.
///
/// # Errors
/// Fails if the model cannot be asked.
pub fn tried<T>(
    context: &Context<'_>,
    purpose: &Purpose,
    tries: Vec<T>,
    mut ask: impl FnMut(&StepId, &T) -> (Result<Verdict, Error>, Option<Usd>),
    mut count: impl FnMut(T, Verdict, Option<Usd>) -> Option<String>,
) -> Result<Option<String>, Error> {
    let all = tries.len();
    for (number, one) in (1..).zip(tries) {
        context.interrupt.check()?;
        let (asked, cost) = ask(&StepId::new(purpose.clone(), number), &one);
        let is_no_reply = |error: &ModelError| error.is_incomplete_reply();
        let verdict = match asked {
            Err(error) if error.downcast_ref().is_some_and(is_no_reply) => Verdict::Unreadable,
            Err(error) if error.is::<OverBudget>() && number > 1 => {
                let asked = number - 1;
                let why = format!("the trial ends after {asked} of {all} calls: {error}");
                return Ok(Some(why));
            }
            asked => asked?,
        };
        if let Some(said) = count(one, verdict, cost) {
            context.notice(format!("{number} of {all}: {said}"));
        }
    }
    Ok(None)
}

/// Asks for a change, applies the reply to a separate project, and builds that.
fn attempt(
    context: &Context<'_>,
    run: &mut Run<'_>,
    models: &Models<'_>,
    step: &StepId,
    (change, format): (&Change, ReplyFormat),
) -> Result<Verdict, Error> {
    let root = project_of(context, run);
    let rollup = write_project(&root, change)?;
    let inputs = Inputs {
        query: change.query.to_owned(),
        rollup,
        is_part: false,
    };
    let prompt = Prompt::initial(&inputs, models.first.spec.prompt_order, format);
    let guard = LossGuard {
        query: change.query.to_owned(),
        ..LossGuard::default()
    };
    let sent = |path: &str| {
        let shown = files().find(|(name, _)| *name == path);
        shown.map_or(Sent::Missing, |(_, text)| Sent::Text(text))
    };
    // Verify as a commit does.
    let verify = |reply: &Reply| {
        let policy = PathPolicy::load(&root, context.sandbox.program)?.guarded(guard);
        policy.verify(edit::read(&reply.text, format, &sent))
    };
    let edits = match run.ask(models, step, prompt, verify)?.1 {
        Err(VerifyError::Rejected(rejection)) => {
            run.note(|step| step.rejected = Some(rejection.to_string()));
            return Ok(Verdict::Unreadable);
        }
        verified => verified?,
    };
    // The replies' code must not read the user's keys, which are outside the trial's project and may be links.
    let config = context.project.config();
    let files = context.key_files().into_iter();
    let key_files = files.map(|file| config.join(file));
    let context = &Context {
        project: Project::new(&root, &root),
        sandbox: SandboxSetup {
            hidden: key_files.chain([config.clone()]).collect(),
            ..context.sandbox.clone()
        },
        ..context.clone()
    };
    let log = RunLog::create(&root, context.clock.now(), "trial", context.redactor)?;
    let mut undo_log = UndoLog::new(&root, log.folder(), context.redactor);
    let journal = context.project.journal_directory();
    edit::apply(context.tree(&journal), &edits, Some(&mut undo_log))?;
    let options = BuildOptions {
        timeout: BUILD,
        sandbox: SandboxMode::Strict,
        hosts: &[],
    };
    let mut builds = Builds::new(context, options)?;
    let built = builds.build(run.spent(), run.log.build(step)?, false)?;
    run.note(|step| step.build = Some(built.record));
    Ok(if built.status.passed() {
        Verdict::Right
    } else {
        Verdict::Wrong
    })
}

/// Returns the root of the project that is recreated for each change.
fn project_of(context: &Context<'_>, run: &Run<'_>) -> PathBuf {
    context.project.root().join(run.log.name()).join("project")
}

/// Replaces the previous project with a new one, and returns its code base.
fn write_project(root: &Path, change: &Change) -> Result<String, Error> {
    if root.exists() {
        fs::remove_dir_all(root).map_err(PathError::of("remove", root))?;
    }
    let mut rollup = String::new();
    for (name, content) in files() {
        init::write_new(&root.join(name), &content)?;
        rollup += &(header(name) + &content);
    }
    // The project is a separate repository, so that the user's ignore rules, such as those for `logs`, do not apply.
    for (name, content) in [
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/objects/none", ""),
        (".git/refs/none", ""),
        (".gitignore", GITIGNORE),
        ("build.sh", change.build),
    ] {
        init::write_new(&root.join(name), content)?;
    }
    Ok(rollup)
}

/// Returns the files of the project, each with its name and content.
fn files() -> impl Iterator<Item = (&'static str, String)> {
    FILES.into_iter().map(|(name, content)| match name {
        CRLF => (name, content.replace('\n', "\r\n")),
        _ => (name, content.to_owned()),
    })
}

fn text(rates: &ModelRates) -> String {
    let head = ["format", "replies", "read", "right", "cost"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    rows.extend(rates.iter().map(|(format, rate)| {
        let share = |count| format!("{count} ({} %)", rate.percent(count));
        let cost = rate.cost.map_or("?".to_owned(), |cost| cost.to_string());
        let (format, asked) = (format.to_string(), rate.asked.to_string());
        vec![format, asked, share(rate.read), share(rate.right), cost]
    }));
    columns::aligned(&rows, &[Left, Right, Right, Right, Right]).join("\n")
}
