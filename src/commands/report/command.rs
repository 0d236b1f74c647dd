//! Writes a page about one run or all runs, and opens it. Reads the runs' folders and changes nothing but the
//! page.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::page;
use crate::commands::output_file::OutputFile;
use crate::project::{LOGS, Project};
use crate::run::context::Context;
use crate::run::error::RunError;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::history::PastRun;
use crate::run::past::story::sources::Sources;
use crate::run::past::{history, naming, story};
use crate::sys::error::Error;
use crate::sys::files::{self, Links, PathError};
use crate::ui::browser;

#[derive(Debug, Clone, Default, Args)]
pub struct ReportArgs {
    /// Run, named as for `log` [default: the last run]
    #[arg(allow_negative_numbers = true)]
    pub run: Option<PathBuf>,

    /// Report on all runs: success, repairs and cost per day
    #[arg(long, conflicts_with = "run")]
    pub all: bool,

    /// HTML file to write [default: report.html in the run's folder or in logs]
    #[arg(long = "output", value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// Add a search box and copy buttons, using a script in the page
    #[arg(long)]
    pub interactive: bool,

    /// Open the report in the browser: $BROWSER, or the system's
    #[arg(long)]
    pub open: bool,
}

/// The page's file name, in a run's folder or in `logs`.
const PAGE: &str = "report.html";

/// Writes the page, and opens it if requested.
///
/// # Errors
/// Fails if there is no such run, or the page cannot be written.
pub fn report(context: &Context<'_>, options: &ReportArgs) -> Result<Outcome, Failure> {
    let project = &context.project;
    let (text, usual) = if options.all {
        (of_all(context, options)?, format!("{LOGS}/{PAGE}"))
    } else {
        let run = match &options.run {
            Some(run) => PastRun::find(project, &naming::find(project, run, context.today())?),
            None => last(project)?,
        };
        of_run(context, &run, options.interactive)
    };
    let path = write_page(project, options.page.as_deref(), usual.into(), &text)?;
    let problem = options.open.then(|| open(context, &path)).flatten();
    let page = path.display().to_string();
    Ok(Outcome {
        data: Some(json!({"schema": 1, "page": page})),
        warnings: problem.into_iter().collect(),
        ..Outcome::new(format!("done: the page is in {page}"))
    })
}

/// Opens the page in the browser; returns a message if that fails.
fn open(context: &Context<'_>, path: &Path) -> Option<String> {
    let root = context.project.root();
    let file = root.join(path);
    let problem = browser::open(context.environment, root, &file).err()?;
    let page = file.display();
    Some(format!(
        "the page was not opened: {problem}; it is in `{page}`"
    ))
}

/// Returns the last run that asked a model or, if none did, the last run.
fn last(project: &Project) -> Result<PastRun, Error> {
    let mut runs = history::runs(project)?;
    let asked = |run: &PastRun| match &run.record {
        Some(record) => !record.steps.is_empty(),
        None => run.workflow() != "undo",
    };
    let at = runs.iter().rposition(asked);
    let last = at.map(|at| runs.swap_remove(at)).or_else(|| runs.pop());
    Ok(last.ok_or(RunError::NoRun("been recorded"))?)
}

/// Renders the page about a run, and returns it with its default path.
fn of_run(context: &Context<'_>, run: &PastRun, interactive: bool) -> (String, String) {
    let sources = Sources::read(run, &context.project);
    let story = story::tell(run, &sources);
    let elapsed = &|| context.clock.elapsed();
    let text = page::run(&story, context.redactor, interactive, elapsed);
    (text, format!("{}/{PAGE}", run.relative()))
}

fn of_all(context: &Context<'_>, options: &ReportArgs) -> Result<String, Error> {
    let project = &context.project;
    let runs = history::runs(project)?;
    if runs.is_empty() && options.page.is_none() {
        return Err(RunError::NoRun("been recorded").into());
    }
    // The relative links would be broken on a page elsewhere.
    let beside = options.page.is_none();
    let has_page = |run: &PastRun| beside && project.logs().join(&run.name).join(PAGE).is_file();
    Ok(page::overview(
        &runs,
        has_page,
        PastRun::request,
        context.redactor,
        options.interactive,
    ))
}

/// Writes the page to the path that the user wants, or else to its usual path, and returns that path. The page may be a
/// new file, replace an earlier page, or go into a pipe or a device; any other file may be the user's own and is not
/// replaced.
///
/// # Errors
/// Fails if there is another file, or the page cannot be written.
pub fn write_page(
    project: &Project,
    wanted: Option<&Path>,
    usual: PathBuf,
    text: &str,
) -> Result<PathBuf, PathError> {
    let find = match wanted {
        Some(_) => OutputFile::find,
        None => OutputFile::usual,
    };
    let path = wanted.map_or(usual, Path::to_owned);
    let file = project.root().join(&path);
    let write = || {
        if file.is_file() && !is_page(&file)? {
            return Err(io::Error::other("there is a file that is no page"));
        }
        find(project, &file)?.write(text)
    };
    write().map_err(PathError::of("write", &file))?;
    Ok(path)
}

/// Returns `true` if the file is a page or is empty.
fn is_page(path: &Path) -> io::Result<bool> {
    let beginning = files::beginning(path, Links::Followed, page::BEGINNING.len() as u64)?;
    Ok(beginning.is_empty() || beginning == page::BEGINNING.as_bytes())
}
