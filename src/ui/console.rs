//! Output for people: progress, questions and warnings on stderr, and a mirrored conversation on stdout; a submodule
//! prints the final result.
//!
//! Guarantees that no key is printed, that nothing printed moves the cursor, and that a closed terminal is not
//! an error.

mod outcome;

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use ratatui::style::Style;

use super::annotations::annotations;
use super::blocks::{self, wrapped};
use super::columns::folded;
use super::json::JsonLines;
use super::links::Links;
use super::options::{CiRunner, ConsoleOptions, OutputFormat};
use super::paint::{COLUMNS, colored_stat, columns, paint, painted};
use super::present::{self, Part, Shown, of_run, present};
use super::spinner::Spinner;
use super::steps::{Look, Steps};
use crate::record::event::{Event, Reporter};
use crate::record::finding::ReportFinding;
use crate::secret::Redactor;
use crate::sys::diff::Stat;
use crate::sys::environment::Clock;
use crate::sys::numbers::counted;
use crate::sys::text::{self, truncated};
use crate::ui::{mirror, stderr, stdout};

/// A reporter to the user at the terminal and to the program that reads stdout.
pub struct Output<'r> {
    options: ConsoleOptions,
    redactor: &'r Redactor,
    format: OutputFormat,
    lines: JsonLines<'r>,
    /// Creates links to paths, if the terminal supports them.
    pub(crate) links: Option<Links>,
    /// The indicator for the running step.
    spinner: Spinner,
    /// True while an agent uses a tool, whose result reports the files written.
    in_tool: AtomicBool,
    /// The steps of an agent's work shown at a terminal so far.
    steps: Mutex<Steps>,
    /// True if the current call is an agent's.
    is_agents_call: AtomicBool,
    /// The last branch reported as awaited, with its status.
    last_awaited: Mutex<String>,
}

/// The width of a stat in columns, which is git's default without a terminal.
const WIDTH: usize = 80;
/// The indent of file names.
const INDENT: &str = "            ";
/// The maximum number of lines shown of a model's prose, or of a build's errors.
const PROSE: usize = 12;
/// The number of columns reserved for the elapsed time while waiting.
const TIMER: usize = 20;
/// The line width if the terminal's is unknown.
const WIDEST: usize = 400;

impl<'r> Output<'r> {
    /// Creates an output that redacts the keys known to `redactor`.
    pub fn new(
        options: ConsoleOptions,
        format: OutputFormat,
        clock: &'r dyn Clock,
        redactor: &'r Redactor,
    ) -> Self {
        Self {
            options: options.in_format(format),
            redactor,
            format,
            lines: JsonLines {
                clock,
                redactor,
                reported: AtomicU64::default(),
            },
            links: None,
            spinner: Spinner::default(),
            in_tool: AtomicBool::new(false),
            steps: Mutex::default(),
            is_agents_call: AtomicBool::new(false),
            last_awaited: Mutex::default(),
        }
    }

    /// Returns the format of stdout.
    pub fn format(&self) -> OutputFormat {
        self.format
    }

    /// Styles the program's own text for stderr.
    fn paint(&self, text: &str, style: Style) -> String {
        if self.options.colors.stderr {
            paint(text, style)
        } else {
            text.to_owned()
        }
    }

    /// Cleans untrusted text: redacts keys and removes anything that moves the cursor or changes colours.
    fn printable(&self, text: &str) -> String {
        self.without_commands(text::printable(&self.redactor.text(text), &['\n']))
    }

    /// Neutralizes anything in the text that a CI runner would take for a command.
    fn without_commands(&self, text: String) -> String {
        match self.options.runner {
            CiRunner::None => text,
            CiRunner::Possible | CiRunner::Known => text::without_ci_commands(&text).into_owned(),
        }
    }

    /// Shows an event of a run or of an agent. On a terminal, the spinner shows a run's long operations; its other
    /// events are lines.
    fn display(&self, event: &Event) {
        let Some(shown) = of_run(event) else {
            return self.show(event);
        };
        // The step that is retried continues.
        if !matches!(event, Event::Retrying { .. }) {
            self.spinner.stop();
        }
        if self.is_moving() && matches!(event, Event::Asking { .. } | Event::Building { .. }) {
            let text = self.printable(&shown.subject);
            self.spinner.stage(&shown.verb, &text, &shown.aside);
        } else if !self.options.quiet || matches!(event, Event::Uncontained { .. }) {
            self.line(&shown);
        }
    }

    /// Prints a line of progress, with the action, its result and additional lines.
    fn line(&self, shown: &Shown) {
        let (label, gap, indent) = match shown.verb.as_str() {
            "" => (String::new(), "", 2),
            verb => (format!("{verb:>8}"), "  ", INDENT.len()),
        };
        let text = format!("{gap}{}", shown.subject);
        self.labelled(&label, shown.style, &text, indent);
        for part in &shown.body {
            match part {
                Part::Output(reasons) => self.reasons(reasons),
                part => self.print(INDENT, &part.text()),
            }
        }
    }

    /// Returns whether animation is possible: stderr is a terminal, and output is not quiet.
    fn is_moving(&self) -> bool {
        self.options.terminal && !self.options.quiet
    }

    /// Returns whether output during an agent's work is decorated; without colours, it is plain text.
    fn is_decorated(&self) -> bool {
        self.options.colors.stderr
    }

    /// Returns the layout of text on stderr.
    fn look(&self) -> Look {
        let columns = columns(io::stderr()).unwrap_or(COLUMNS);
        Look::of_terminal(columns, self.options.colors.stderr)
    }

    /// Shows an agent's call on a terminal.
    fn call(&self, doing: &str) {
        self.spinner.stop();
        if self.is_moving() {
            self.spinner.call(doing);
        }
    }

    /// Shows an agent's long-running tool on a terminal.
    fn work(&self) {
        self.spinner.stop();
        if self.is_moving() && self.is_decorated() {
            let steps = self.steps.lock();
            let doing = steps.map(|steps| steps.doing(self.look()));
            self.spinner.work(doing.unwrap_or_default());
        }
    }

    /// Shows that a branch is awaited: animated at a terminal, otherwise as a line when its status changes.
    fn wait(&self, event: &Event, waited: Duration) {
        if self.is_moving() && self.is_decorated() {
            let awaited = self.printable(&present::awaited_in_all(event));
            let room = self.look().width.saturating_sub(TIMER);
            return self.spinner.wait(&truncated(&awaited, room), waited);
        }
        // Without a spinner, a line per minute shows that the work continues.
        let minute = waited.as_secs() / 60;
        let message = format!("{} {minute}", present::awaited(event));
        if is_news(&self.last_awaited, message) {
            self.show(event);
        }
    }

    /// Shows the last output of the running tool after the spinner.
    fn show_printing(&self) {
        if let Ok(steps) = self.steps.lock() {
            self.spinner.beside(steps.printing(self.look()));
        }
    }

    /// Prints a line to stderr, above the spinner if one is shown. The label is the program's own and may be
    /// coloured; the text may be untrusted.
    fn print(&self, label: &str, text: &str) {
        self.spinner
            .print(&format!("{label}{}\n", self.printable(text)));
    }

    /// Shows the findings of a report next to the code, if the CI runner can.
    pub(crate) fn annotate(&self, findings: &[ReportFinding]) {
        if self.options.annotates && !findings.is_empty() {
            self.spinner.stop();
            for command in annotations(findings, self.redactor) {
                stderr::print(&(command + "\n"));
            }
        }
    }

    /// Prints the first few of some untrusted lines that belong to the line of progress above, and counts the others.
    fn asides(&self, mut lines: Vec<String>) {
        let more = lines.len().saturating_sub(PROSE);
        lines.truncate(PROSE);
        if more > 0 {
            lines.push(format!("… {}", counted(more as u64, "more line")));
        }
        for line in lines {
            let line = self.paint(&self.printable(&line), Style::new().dim());
            self.print(&format!("{INDENT}{line}"), "");
        }
    }

    /// Prints the first lines of a build's errors.
    fn reasons(&self, reasons: &str) {
        // Clean before wrapping, which could split a key.
        let text = folded(&self.printable(reasons), Some(room()), 2);
        self.asides(text.lines().map(str::to_owned).collect());
    }

    /// Shows the beginning of the text that a model writes around its edits.
    fn prose(&self, text: &str) {
        // Redact before wrapping, which could split a key.
        let text = self.redactor.text(text.trim()).replace('\t', "    ");
        let room = room();
        let mut lines: Vec<String> = text.lines().flat_map(|line| wrapped(line, room)).collect();
        lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
        if lines.is_empty() {
            return;
        }
        self.spinner.stop();
        if !self.options.quiet {
            self.asides(lines);
        }
    }

    /// Prints a labelled sentence, wrapped to the terminal's width.
    fn sentence(&self, label: &str, style: Style, text: &str) {
        self.labelled(label, style, &format!(" {text}"), "hint: ".len());
    }

    /// Prints untrusted text behind a label, wrapped to the terminal's width, with this indent of further lines.
    fn labelled(&self, label: &str, style: Style, text: &str, indent: usize) {
        let words = self.printable(&format!("{label}{text}"));
        let own = label.len() - label.trim_start().len();
        let lines = folded(&words, columns(io::stderr()), indent.saturating_sub(own));
        match lines.strip_prefix(label) {
            Some(text) if !label.is_empty() => self.print(&self.paint(label, style), text),
            _ => self.print("", &lines),
        }
    }
}

impl Reporter for Output<'_> {
    fn event(&self, event: &Event) {
        self.progress(event);
        if self.format == OutputFormat::JsonL {
            self.lines.event(event);
        }
    }

    fn is_live(&self) -> bool {
        self.format == OutputFormat::JsonL || self.is_moving()
    }

    fn columns(&self) -> Option<usize> {
        self.stdout_columns()
    }

    fn pause(&self) {
        self.spinner.stop();
    }
}

impl Output<'_> {
    /// Shows an event to the user at the terminal.
    fn progress(&self, event: &Event) {
        match event {
            Event::Asking { step, .. } => {
                let doing = present::doing(step);
                self.is_agents_call
                    .store(doing.is_some(), Ordering::Relaxed);
                match doing {
                    Some(doing) if self.is_decorated() => self.call(doing),
                    Some(_) if self.options.stderr_terminal => {}
                    _ => self.display(event),
                }
            }
            Event::Receiving {
                output_tokens,
                thought_tokens,
                spent,
                ..
            } => self.spinner.update(*output_tokens, *thought_tokens, *spent),
            // The next event reports the answer.
            Event::Answered { .. }
                if self.options.stderr_terminal && self.is_agents_call.load(Ordering::Relaxed) =>
            {
                self.spinner.stop();
            }
            Event::Applied(_) if self.in_tool.load(Ordering::Relaxed) => {}
            Event::Prose(text) => self.prose(text),
            Event::Warning(text) => self.warning(text),
            Event::Reviewed {
                warnings,
                shown,
                stat,
            } => self.review(warnings, *shown, stat),
            Event::Tool { asks, .. } => {
                self.in_tool.store(true, Ordering::Relaxed);
                self.show(event);
                if !asks {
                    self.work();
                }
            }
            Event::Printed(_) => {
                self.show(event);
                self.show_printing();
            }
            Event::ToolResult { .. } => {
                self.in_tool.store(false, Ordering::Relaxed);
                self.show(event);
            }
            Event::Waiting { waited, .. } => self.wait(event, *waited),
            Event::Progress { .. } => {}
            _ => self.display(event),
        }
    }

    /// Shows an agent's event. With `--quiet`, shows only its questions and the outcome.
    fn show(&self, event: &Event) {
        let is_wanted = match event {
            Event::Finished { .. }
            | Event::Failed { .. }
            | Event::Shown(_)
            | Event::ShownDiff(_) => true,
            Event::Tool { asks, .. } => *asks,
            Event::Words(_) => self.options.asks,
            _ => false,
        };
        // The user must see a question wherever stdout goes.
        let is_question = matches!(event, Event::Words(_)) && is_wanted;
        if self.mirrored(event) && (self.options.stdout_terminal || !is_question) {
            return;
        }
        if self.options.stderr_terminal {
            return self.show_step(event, is_wanted);
        }
        // The status is only useful to a user who is asked again.
        let shown = present(event).filter(|_| !matches!(event, Event::Status(_)));
        let Some(shown) = shown else {
            return;
        };
        self.spinner.stop();
        match shown {
            _ if self.options.quiet && !is_wanted => {}
            shown if shown.body.is_empty() => self.line(&shown),
            shown => self.titled(&shown),
        }
    }

    /// Prints an event that belongs to a mirrored conversation. Returns `true` if stdout handles the event, which is
    /// then not shown as progress.
    fn mirrored(&self, event: &Event) -> bool {
        let columns = self.stdout_columns();
        let width = columns.map_or(WIDEST, |columns| columns.saturating_sub(1));
        let mirrored = || mirror::lines(event, self.redactor, width);
        let Some(lines) = self.options.mirrors.then(mirrored).flatten() else {
            return false;
        };
        // The terminal has already echoed what the user typed.
        if !(self.options.echoes && matches!(event, Event::Heard { .. })) {
            self.spinner.stop();
            let text = lines.iter().map(|line| format!("{line}\n")).collect();
            // A persistent error is reported when the result is written.
            let _ = stdout::print(&self.without_commands(text));
        }
        true
    }

    /// Returns the width of stdout in columns; `None` if it is not a terminal.
    fn stdout_columns(&self) -> Option<usize> {
        let columns = columns(io::stdout());
        columns.filter(|_| self.options.stdout_terminal)
    }

    /// Shows an agent's event at a terminal.
    fn show_step(&self, event: &Event, is_wanted: bool) {
        let Ok(mut steps) = self.steps.lock() else {
            return;
        };
        // Redact before wrapping, which could split a key.
        let lines = steps.lines(&event.redacted(self.redactor), self.look());
        if !matches!(event, Event::Printed(_) | Event::Changed { .. }) {
            self.spinner.stop();
        }
        if lines.is_empty() || self.options.quiet && !is_wanted {
            return;
        }
        let line = |line| painted(line, self.options.colors.stderr) + "\n";
        stderr::print(&self.without_commands(lines.iter().map(line).collect()));
    }

    /// Prints text under a title.
    fn titled(&self, shown: &Shown) {
        let title = match &*shown.subject {
            "" => shown.verb.clone(),
            subject => format!("{} ({subject})", shown.verb),
        };
        let body: Vec<String> = shown.body.iter().map(Part::text).collect();
        let texts = [title, body.join("\n")];
        let [title, body] = texts.map(|text| self.redactor.text(&text).into_owned());
        let lines = blocks::plain(&title, &body);
        let text = lines.iter().map(|line| format!("{line}\n")).collect();
        stderr::print(&self.without_commands(text));
    }

    fn warning(&self, text: &str) {
        self.sentence("warning:", Style::new().yellow(), text);
    }

    /// Shows a reviewer the warnings, repeated on a terminal if they have scrolled by, and the change as git shows it.
    fn review(&self, warnings: &[String], shown: usize, stat: &Stat) {
        self.spinner.stop();
        let again = self.options.stderr_terminal && !self.options.quiet;
        for warning in warnings.iter().skip(if again { 0 } else { shown }) {
            self.warning(warning);
        }
        if self.options.quiet {
            return;
        }
        let stat = self.printable(&stat.text(WIDTH));
        stderr::print(&colored_stat(&stat, |text, style| self.paint(text, style)));
    }
}

/// Returns whether the awaited branch or its status differs from the last one shown, and remembers it.
fn is_news(last: &Mutex<String>, awaited: String) -> bool {
    let Ok(mut last) = last.lock() else {
        return true;
    };
    let is_news = *last != awaited;
    *last = awaited;
    is_news
}

/// Returns the number of columns on stderr after [`INDENT`].
fn room() -> usize {
    let columns = columns(io::stderr()).unwrap_or(WIDEST);
    columns.saturating_sub(INDENT.len() + 1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_reported_again_only_if_its_status_changes() {
        let told = Mutex::default();
        for (awaited, expected) in [
            ("a (new)", true),
            ("a (new)", false),
            ("a (running)", true),
            ("a (running)", false),
            ("b (running)", true),
        ] {
            assert_eq!(is_news(&told, awaited.to_owned()), expected, "{awaited}");
        }
    }
}
