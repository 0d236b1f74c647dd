//! Renders a run's summary as Markdown for the page of a CI job, and writes it to the file that the user names.
//!
//! Guarantees that a CI runner interprets no part of the summary as a command.

use std::io;
use std::path::PathBuf;

use super::output_file::{self, OutputFile};
use crate::commands::command_line::Cli;
use crate::commands::error::CommandError;
use crate::record::result::RunRecord;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome, record_of};
use crate::run::past::history::PastRun;
use crate::run::past::story::block::{Block, Section};
use crate::run::past::story::sources::Sources;
use crate::run::past::story::{block, tell};
use crate::run::past::table::{Row, Table, of_files};
use crate::run::past::words::changed;
use crate::secret::Redactor;
use crate::sys::diff;
use crate::sys::error::Error;
use crate::sys::text::{cut, is_deceptive, printable, without_ci_commands};

/// The maximum number of files in a table.
const FILES: usize = 50;
/// The maximum length of a quoted line, in characters.
const LONGEST_LINE: usize = 500;
/// The maximum number of lines quoted from a text.
const QUOTED: usize = 40;

/// The destination of a run's summary. It is resolved when the command starts, so that a build cannot redirect it.
pub struct SummaryFile {
    /// The path as given.
    path: PathBuf,
    file: io::Result<OutputFile>,
}

impl SummaryFile {
    /// Resolves the path given on the command line; `None` if no summary is requested.
    ///
    /// # Errors
    /// Fails if the path is protected, or leads to a directory.
    pub fn find(cli: &Cli, context: &Context<'_>) -> Result<Option<Self>, Error> {
        let path = cli.summary_file.as_ref().filter(|_| cli.command.is_none());
        let Some(path) = path.cloned() else {
            return Ok(None);
        };
        if let Some(rule) = output_file::broken_rule(&context.project, &path) {
            let (what, why) = ("summary", rule.to_string());
            return Err(CommandError::OutputFile { what, path, why }.into());
        }
        let file = OutputFile::find(&context.project, &path);
        if file.as_ref().is_ok_and(OutputFile::is_directory) {
            let message = format!(
                "the summary cannot be written to `{}`: it is a directory",
                path.display()
            );
            let hint = "name a file in it; nothing was done".to_owned();
            return Err(CommandError::CommandLine { message, hint }.into());
        }
        Ok(Some(Self { path, file }))
    }
}

/// Writes the summary of a run's result. A failure is only a warning, since the run itself is complete.
pub fn summarize(summary: SummaryFile, context: &Context<'_>, done: &Result<Outcome, Failure>) {
    let mut painter = Painter {
        redactor: context.redactor,
        page: String::new(),
    };
    if let Some(record) = record_of(done) {
        painter.run(context, record);
    } else {
        painter.title("## code-commit:", "done");
        painter.quote(done.as_ref().map_or("", |done| &done.summary));
    }
    // The summary may be sent to `/dev/stdout`, or printed by a later step of the CI job.
    let text = without_ci_commands(&painter.page);
    let SummaryFile { path, file } = summary;
    if let Err(error) = file.and_then(|file| file.write(&text)) {
        context.warn(format!(
            "cannot write the summary to `{}`: {error}",
            path.display()
        ));
    }
}

/// A summary in Markdown.
struct Painter<'r> {
    redactor: &'r Redactor,
    page: String,
}

impl Painter<'_> {
    /// Renders the story of a run, with details only for its last step.
    fn run(&mut self, context: &Context<'_>, record: &RunRecord) {
        let mut run = PastRun::at(&context.project, record.log.as_deref().unwrap_or_default());
        run.record = Some(record.clone());
        let sources = Sources::read(&run, &context.project);
        let story = tell(&run, &sources);
        let sign = ["\u{274c}", "\u{2705}"][usize::from(record.exit.code == 0)];
        self.title(&format!("## code-commit: {sign}"), &story.headline);
        for sentence in &story.about {
            self.line(sentence);
        }
        let names: Vec<_> = story.facts.iter().map(|fact| fact.0).collect();
        let values: Vec<_> = story.facts.iter().map(block::value).collect();
        self.table(&Table::new(&names, &[], "", [Row::new(values, [])], 1));
        let sections = story.sections.iter().chain(&story.calls);
        // If there were several attempts, the last one may not be the one that was taken.
        let mut steps = sources.steps.iter();
        let taken = steps.rposition(|past| past.step.is_applied());
        let last = match taken.filter(|_| record.exit.code == 0) {
            Some(taken) => story.steps.get(taken),
            None => story.steps.last(),
        };
        for section in sections.chain(&story.changes).chain(last) {
            self.section("###", section);
        }
        if record.log.is_some() {
            self.page += &format!("Full record: `{}`\n", story.folder);
        }
    }

    /// Escapes a text, after redacting keys: a backslash inside a key would hide it.
    fn escaped(&self, text: &str) -> String {
        escaped(&self.redactor.text(text))
    }

    /// Shortens a message that should be short, after redacting keys.
    fn passage(&self, text: &str) -> String {
        shortened(self.redactor.text(text).lines().take(QUOTED))
    }

    fn line(&mut self, text: &str) {
        self.page += &format!("{}\n\n", self.escaped(text));
    }

    fn title(&mut self, sign: &str, text: &str) {
        self.page += &format!("{sign} {}\n\n", self.escaped(text));
    }

    /// Adds a text in a code fence.
    fn quote(&mut self, text: &str) {
        self.page += &format!("{}\n\n", fenced(&self.redactor.text(text)));
    }

    fn section(&mut self, sign: &str, section: &Section<'_>) {
        self.title(sign, &titled(&section.title, section.outcome.as_ref()));
        for block in &section.blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block<'_>) {
        match block {
            Block::Note(text) => self.line(&self.passage(text)),
            Block::Title(title, outcome) => self.title("####", &titled(title, outcome.as_ref())),
            Block::Items(items) => {
                for item in items {
                    let item = self.escaped(&self.passage(item));
                    self.page += &format!("- {item}\n");
                }
                self.page.push('\n');
            }
            Block::Text(_, text, extent) => {
                let lines = extent.lines(&self.redactor.text(text), QUOTED);
                if !lines.is_empty() {
                    self.quote(&shortened(lines.iter().map(String::as_str)));
                }
            }
            Block::Changes(changes) => {
                let stat = diff::stat(changes);
                self.line(&changed(&stat));
                self.table(&of_files(&stat, FILES));
            }
            Block::Table(table) => self.table(table),
            Block::Tools(tools) => tools.iter().for_each(|tool| self.section("####", tool)),
            Block::Details(..) => {}
        }
    }

    fn table(&mut self, table: &Table) {
        let (texts, numbers) = (table.texts.len(), table.numbers.len());
        let aligns = "---|".repeat(texts) + &"---:|".repeat(numbers);
        for (at, row) in table.cells().iter().enumerate() {
            let cells: Vec<_> = row.iter().map(|cell| self.escaped(cell)).collect();
            self.page += &format!("| {} |\n", cells.join(" | "));
            if at == 0 {
                self.page += &format!("|{aligns}\n");
            }
        }
        self.page.push('\n');
        if let Some(others) = table.others() {
            self.line(&others);
        }
    }
}

/// Formats a title with an outcome.
fn titled(title: &str, outcome: Option<&block::Outcome>) -> String {
    outcome.map_or(title.to_owned(), |(_, words)| format!("{title}: {words}"))
}

/// Joins lines, and cuts long ones.
fn shortened<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let short = lines.map(|line| cut(line, LONGEST_LINE));
    short.collect::<Vec<_>>().join("\n")
}

/// Escapes a text for Markdown and HTML, on one line.
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

/// Wraps a text in a code fence longer than any in it.
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
