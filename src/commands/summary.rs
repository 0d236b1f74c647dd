//! Renders a run's summary as Markdown for a CI job's page, and writes it wherever the user wants.
//!
//! Guarantees that no part of it is interpreted as a command by a CI runner.

use std::io;
use std::path::PathBuf;

use super::choice;
use super::output_file::{self, OutputFile};
use crate::commands::command_line::Cli;
use crate::commands::error::CommandError;
use crate::record::choice::ChoiceRecord;
use crate::record::result::{RunRecord, TreeState};
use crate::record::run_files::Artifact;
use crate::record::step::Step;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::figures::{Figures, taken_back};
use crate::run::past::history::PastRun;
use crate::secret::Redactor;
use crate::sys::diff::{self, FileChange};
use crate::sys::error::Error;
use crate::sys::numbers::counted;
use crate::sys::text::{cut, first_lines, is_deceptive, printable, without_ci_commands};

/// The maximum number of warnings listed.
const WARNINGS: usize = 50;
/// The maximum number of files in a table.
const FILES: usize = 50;
/// The maximum length of a quoted line, in characters.
const LONGEST_LINE: usize = 500;
/// The maximum number of lines quoted from a failed build.
const QUOTED: usize = 40;

/// The destination of a run's summary. It is opened when the command starts, so that a build cannot redirect
/// it.
pub struct SummaryFile {
    /// The path as given.
    path: PathBuf,
    file: io::Result<OutputFile>,
}

impl SummaryFile {
    /// Resolves the path given on the command line; `None` if no summary is requested.
    ///
    /// # Errors
    /// When the path is protected.
    pub fn find(cli: &Cli, context: &Context<'_>) -> Result<Option<Self>, Error> {
        let path = cli.summary_file.as_ref().filter(|_| cli.command.is_none());
        let Some(path) = path.cloned() else {
            return Ok(None);
        };
        if let Some(rule) = output_file::broken_rule(&context.project, &path) {
            return Err(CommandError::ProtectedSummary { path, rule }.into());
        }
        let file = OutputFile::find(&context.project, &path);
        Ok(Some(Self { path, file }))
    }
}

/// Writes the summary of a run's result. Failing to do so is only a warning, since the run itself is complete.
pub fn summarize(summary: SummaryFile, context: &Context<'_>, done: &Result<Outcome, Failure>) {
    let (record, log, name, said) = match done {
        Ok(done) => (&done.record, &done.log, "done", done.summary.clone()),
        Err(Failure {
            record, log, error, ..
        }) => (record, log, error.exit().name(), error.to_string()),
    };
    // Redact keys before escaping: a backslash inside a key would hide it.
    let text = match record
        .as_ref()
        .and_then(|record| redacted(context.redactor, record))
    {
        Some(record) => of_run(context, &record, log.as_deref()),
        None => format!(
            "## code-commit: {}\n\n{}\n",
            escaped(name),
            fenced(&context.redactor.text(&said))
        ),
    };
    // The summary may be sent to `/dev/stdout`, or printed by a later step of the CI job.
    let text = without_ci_commands(&text);
    let SummaryFile { path, file } = summary;
    if let Err(error) = file.and_then(|file| file.write(&context.project, &text)) {
        context.warn(format!(
            "cannot write the summary to `{}`: {error}",
            path.display()
        ));
    }
}

/// Returns the record with keys redacted, as in its file.
fn redacted(redactor: &Redactor, record: &RunRecord) -> Option<RunRecord> {
    let json = serde_json::to_string(record).ok()?;
    serde_json::from_str(&redactor.text(&json)).ok()
}

fn of_run(context: &Context<'_>, record: &RunRecord, log: Option<&str>) -> String {
    let run = PastRun::at(&context.project, log.unwrap_or_default());
    let sign = if record.exit.code == 0 {
        '\u{2705}'
    } else {
        '\u{274c}'
    };
    let mut page = format!(
        "## code-commit: {sign} {}\n\n{}",
        record.exit.name,
        figures(record)
    );
    if let Some(error) = &record.error {
        page += &format!("\n### Error\n\n{}\n", fenced(&error.message));
        let hint = error
            .hint
            .as_ref()
            .map(|hint| format!("\nHint: {}\n", escaped(hint)));
        page.extend(hint);
    }
    if !record.warnings.is_empty() {
        page += "\n### Warnings\n\n";
        let warnings = record.warnings.iter();
        let warnings = warnings.map(|warning| shortened(warning.lines().take(QUOTED)));
        let warnings = first_lines(warnings, WARNINGS).into_iter();
        page.extend(warnings.map(|warning| format!("- {}\n", escaped(&warning))));
    }
    if let Some(gate) = &record.gate {
        page += "\n### Gate\n\n";
        page.extend(gate.told().map(|line| format!("- {}\n", escaped(&line))));
    }
    if let Some(choice) = &record.choice {
        page += &attempts(choice);
    }
    let changes = run.changes(&context.project).unwrap_or_default().files;
    if !changes.is_empty() {
        page += &changed(context.redactor, &changes, record.tree);
    }
    if !record.steps.is_empty() {
        page += "\n### Steps\n\n| step | model | seconds | finish | files | build |\n|---|---|---:|---|---:|---|\n";
        page.extend(record.steps.iter().map(row));
    }
    if record.exit.code == 1 {
        page += &last_build(record, &run);
    }
    page + &format!("\nFull record: `{}`\n", run.relative())
}

fn figures(record: &RunRecord) -> String {
    let figures = Figures::of(record);
    let tokens = [figures.tokens_in, figures.tokens_out].join(" | ");
    let (repairs, cost) = (figures.repairs, figures.cost);
    let (model, seconds) = (record.model.as_deref().unwrap_or("none"), record.seconds);
    format!(
        "| model | repairs | tokens in | tokens out | cost | seconds |\n|---|---|---|---|---|---|\n\
         | {} | {repairs} | {tokens} | {cost} | {seconds} |\n",
        escaped(model)
    )
}

fn attempts(choice: &ChoiceRecord) -> String {
    let [texts, numbers] = choice::HEADS;
    let head = [texts, numbers].concat().join(" | ");
    let aligns = "---|".repeat(texts.len()) + &"---:|".repeat(numbers.len());
    let rows = choice::rows(choice).map(|row| {
        let cells: Vec<_> = row.concat().iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    });
    let (rows, taken) = (rows.collect::<String>(), escaped(&choice::taken(choice)));
    format!("\n### Attempts\n\n| {head} |\n|{aligns}\n{rows}\n{taken}\n")
}

fn changed(redactor: &Redactor, changes: &[FileChange], tree: TreeState) -> String {
    let stat = diff::stat(changes);
    let (added, removed) = (stat.added(), stat.removed());
    let files = counted(stat.files.len() as u64, "file");
    let taken_back = taken_back(tree);
    let mut text = format!(
        "\n### {files} changed, +{added} −{removed}{taken_back}\n\n| file | + | − |\n|---|---:|---:|\n"
    );
    text.extend(stat.files.iter().take(FILES).map(|file| {
        let path = escaped(&redactor.text(&file.path));
        format!(
            "| <code>{path}</code> | {} | {} |\n",
            file.added, file.removed
        )
    }));
    if stat.files.len() > FILES {
        text += &format!("\nand {} more files\n", stat.files.len() - FILES);
    }
    text
}

fn row(step: &Step) -> String {
    let none = || "–".to_owned();
    let files = step
        .edits
        .as_ref()
        .map(|_| step.changed_files().count().to_string());
    let build = step.build.as_ref().map(ToString::to_string);
    let id = step.id();
    let name = match id.number + id.reask {
        0 => id.purpose.name().to_owned(),
        _ => id.to_string(),
    };
    format!(
        "| {name} | {} | {} | {} | {} | {} |\n",
        escaped(step.model.as_deref().unwrap_or_default()),
        step.seconds,
        escaped(step.finish.as_deref().unwrap_or("–")),
        files.unwrap_or_else(none),
        build.unwrap_or_else(none),
    )
}

fn last_build(record: &RunRecord, run: &PastRun) -> String {
    let built = record.steps.iter().rfind(|step| step.build.is_some());
    let log = built.and_then(|step| run.text(&step.id(), Artifact::Build));
    let Some((status, output)) = log.as_ref().and_then(|log| log.split_once('\n')) else {
        return String::new();
    };
    let from = output.lines().count().saturating_sub(QUOTED);
    let quoted = fenced(&shortened(output.lines().skip(from)));
    format!("\n### Last build: {}\n\n{quoted}\n", escaped(status))
}

/// Joins the lines, cutting long ones.
fn shortened<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let short = lines.map(|line| cut(line, LONGEST_LINE));
    short.collect::<Vec<_>>().join("\n")
}

/// Escapes text for Markdown and HTML, on one line.
fn escaped(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => line.push_str("&lt;"),
            '>' => line.push_str("&gt;"),
            '&' => line.push_str("&amp;"),
            '\n' => line.push_str("<br>"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' | '@' => {
                line.push('\\');
                line.push(c);
            }
            c if is_deceptive(c) => line.push('\u{fffd}'),
            c => line.push(c),
        }
    }
    line
}

/// Wraps text in a code fence longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let text = printable(text, &['\n', '\t']);
    format!("{fence}text\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_break_out_of_the_page() {
        assert_eq!(
            escaped("<b>|`x`\n[a](b)"),
            "&lt;b&gt;\\|\\`x\\`<br>\\[a\\](b)"
        );
        assert_eq!(fenced("a"), "```text\na\n```");
        assert_eq!(
            fenced("````\nx\u{1b}[0m"),
            "`````text\n````\nx\u{fffd}[0m\n`````"
        );
    }
}
