//! What a person sees: progress, warnings and errors on stderr, the result on stdout.
//!
//! Guarantees that no key is printed, that nothing printed moves the cursor, and that a closed terminal
//! is no reason to fail.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use console::{Style, Term};

use super::agent::{self, EventView};
use super::blocks::{self, Painted};
use super::markdown;
use super::spinner::{Spinner, aside, dollars};
use super::steps::{Look, Steps};
use super::{Event, Reporter, to_stdout};
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::record::EditsRecord;
use crate::record::diff::Stat;
use crate::secret::Redactor;
use crate::sys::environment::Environment;
use crate::sys::numbers::grouped;
use crate::sys::text;

/// How a console is to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsoleOptions {
    /// Progress is not shown.
    pub quiet: bool,
    /// stderr is a terminal that can redraw a line.
    pub terminal: bool,
    /// stderr is a terminal of whatever kind: an agent's work is shown for a person.
    pub stderr_terminal: bool,
    /// stdout is a terminal.
    pub stdout_terminal: bool,
    /// Whether a CI runner reads what is printed, and looks for its commands in it.
    pub runner: CiRunner,
    /// Where colours may be used.
    pub colors: Colors,
}

impl ConsoleOptions {
    /// What stdout and stderr, which may be terminals, are capable of by the environment.
    #[must_use]
    pub fn new(quiet: bool, (stdout, stderr): (bool, bool), environment: &Environment) -> Self {
        let dumb = environment.get("TERM").is_none_or(|term| term == "dumb");
        let colors = !dumb && environment.os("NO_COLOR").is_none();
        let is_told = ["CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"]
            .iter()
            .any(|name| environment.os(name).is_some());
        Self {
            quiet,
            terminal: stderr && !dumb,
            stderr_terminal: stderr,
            stdout_terminal: stdout,
            runner: match is_told {
                true => CiRunner::Told,
                false if stdout && stderr => CiRunner::None,
                false => CiRunner::Possible,
            },
            colors: Colors {
                stdout: stdout && colors,
                stderr: stderr && colors,
            },
        }
    }
}

/// Whether there is a CI runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CiRunner {
    /// Nobody but a person reads.
    None,
    /// There may be one: a stream goes somewhere else than to a terminal.
    Possible,
    /// The environment says so.
    Told,
}

/// Where colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colors {
    /// Whether stdout takes them.
    pub stdout: bool,
    /// Whether stderr takes them.
    pub stderr: bool,
}

/// Shows a run on the standard streams.
#[derive(Debug)]
pub struct Console<'r> {
    options: ConsoleOptions,
    redactor: &'r Redactor,
    /// The step that is going on, while it is shown.
    spinner: Spinner,
    /// An agent uses a tool, whose result tells what it has written.
    in_tool: AtomicBool,
    /// What was shown of an agent's work at a terminal.
    steps: Mutex<Steps>,
    /// Whether the call that is under way is an agent's.
    is_agents_call: AtomicBool,
}

/// How many columns a stat takes, as in git's when nobody looks on.
const WIDTH: usize = 80;
/// How many files of a reply are listed by name.
const LISTED: usize = 20;
/// What stands before their names.
const INDENT: &str = "            ";

impl<'r> Console<'r> {
    /// A console that prints nothing `redactor` knows as a key.
    #[must_use]
    pub fn new(options: ConsoleOptions, redactor: &'r Redactor) -> Self {
        Self {
            options,
            redactor,
            spinner: Spinner::default(),
            in_tool: AtomicBool::new(false),
            steps: Mutex::default(),
            is_agents_call: AtomicBool::new(false),
        }
    }

    fn style(&self, style: Style) -> Style {
        style.for_stderr().force_styling(self.options.colors.stderr)
    }

    /// A text of ours for stderr, in a style.
    fn paint(&self, text: &str, style: Style) -> String {
        self.style(style).apply_to(text).to_string()
    }

    /// Anybody's text, without keys and without anything that moves the cursor or changes the colours.
    fn printable(&self, text: &str) -> String {
        self.commanding_nobody(text::printable(&self.redactor.text(text), &['\n']))
    }

    /// The same text, with nothing in it that a CI runner would obey.
    fn commanding_nobody(&self, text: String) -> String {
        match self.options.runner {
            CiRunner::None => text,
            CiRunner::Possible | CiRunner::Told => text::without_ci_commands(&text).into_owned(),
        }
    }

    /// A line of progress: what was done, and how it went.
    fn line(&self, label: &str, style: Style, text: &str) {
        self.spinner.stop();
        if !self.options.quiet {
            let label = self.paint(&format!("{label:>8}"), style);
            self.print(&label, &format!("  {text}"));
        }
    }

    /// A step that takes a while: a spinner on a terminal, else a line.
    /// `figures` are shown by the spinner alone.
    fn step(&self, label: &str, text: &str, figures: &str) {
        self.spinner.stop();
        if self.options.quiet {
            return;
        }
        if !self.options.terminal {
            self.line(label, Style::new(), text);
            return;
        }
        let text = self.printable(text);
        self.spinner.stage(label, text, figures);
    }

    /// Nothing turns any more.
    pub(super) fn stop_spinner(&self) {
        self.spinner.stop();
    }

    /// Whether something may move while an agent works: who wants no colours wants plain text.
    fn is_decorated(&self) -> bool {
        self.options.colors.stderr
    }

    /// How text may look on stderr.
    fn look(&self) -> Look {
        Look {
            columns: Term::stderr().size().1.into(),
            colors: self.options.colors.stderr,
        }
    }

    /// An agent's call, on a terminal.
    fn call(&self, doing: &str) {
        self.spinner.stop();
        if self.is_live() {
            self.spinner.call(doing);
        }
    }

    /// An agent's tool that takes a while, on a terminal.
    fn work(&self, tool: &str) {
        self.spinner.stop();
        if self.is_live() && self.is_decorated() {
            let steps = self.steps.lock();
            let doing = steps.map(|steps| steps.doing(tool, self.look()));
            self.spinner.work(doing.unwrap_or_default());
        }
    }

    /// What the tool that is under way has printed last, behind what turns.
    fn show_printing(&self) {
        if let Ok(steps) = self.steps.lock() {
            self.spinner.beside(steps.printing(self.look()));
        }
    }

    /// Prints a line to stderr, above the spinner where there is one. The label is ours, and may have
    /// colours; the text may be anybody's.
    fn print(&self, label: &str, text: &str) {
        let text = self.printable(text);
        let write = || {
            // A stderr that is closed is no reason to end the run.
            let _ = writeln!(io::stderr(), "{label}{text}");
        };
        self.spinner.suspend(write);
    }

    fn edits(&self, label: &str, verb: &str, edits: &EditsRecord) {
        let (written, removed) = (edits.written.len(), edits.removed.len());
        let text = format!("{written} {verb}, {removed} removed");
        self.line(label, Style::new(), &text);
        if self.options.quiet {
            return;
        }
        let removed = edits.removed.iter().map(|path| format!("{path} (removed)"));
        let paths: Vec<String> = edits.written.iter().cloned().chain(removed).collect();
        for path in paths.iter().take(LISTED) {
            self.print(INDENT, path);
        }
        if paths.len() > LISTED {
            self.print(INDENT, &format!("and {} more", paths.len() - LISTED));
        }
    }
}

impl Reporter for Console<'_> {
    fn event(&self, event: &Event) {
        match event {
            Event::Started { log } => self.line("log", Style::new(), log),
            Event::Asking {
                step,
                model,
                prompt,
                spent,
            } => {
                let prompt = prompt.as_ref().map(|size| format!("  {} in", size.text()));
                let figures = format!("{}{}", prompt.unwrap_or_default(), dollars(*spent));
                let asked = format!("{model} for {step}");
                let doing = agent::doing(step);
                self.is_agents_call
                    .store(doing.is_some(), Ordering::Relaxed);
                match doing {
                    Some(doing) if self.is_decorated() => self.call(doing),
                    Some(_) if self.options.stderr_terminal => {}
                    Some(_) => self.line("asking", Style::new(), &asked),
                    None => self.step("asking", &asked, &figures),
                }
            }
            Event::Receiving {
                output_tokens,
                thought_tokens,
                spent,
                ..
            } => self.spinner.update(*output_tokens, *thought_tokens, *spent),
            Event::Retrying {
                next_try,
                wait,
                reason,
            } => {
                let text = format!("{reason}; try {next_try} in {}", seconds(*wait));
                self.print("   retry  ", &text);
            }
            // What follows tells of it.
            Event::Answered { .. }
                if self.options.stderr_terminal && self.is_agents_call.load(Ordering::Relaxed) =>
            {
                self.spinner.stop();
            }
            Event::Answered {
                model,
                usage,
                cost,
                took,
            } => self.answered(model, *usage, *cost, *took),
            Event::Applied(_) if self.in_tool.load(Ordering::Relaxed) => {}
            Event::Applied(edits) => self.edits("applied", "written", edits),
            Event::PutBack(edits) => self.edits("undone", "put back", edits),
            Event::Uncontained { reason } => {
                let text = format!("none: {reason}; builds and commands can read the keys");
                self.spinner.stop();
                // Even where it is to be quiet.
                let label = self.paint(" sandbox", Style::new());
                self.print(&label, &format!("  {text}"));
            }
            Event::Building { spent } => self.step("build", "build.sh", &dollars(*spent)),
            Event::Built {
                status,
                passed,
                took,
            } => {
                let (label, style) = match passed {
                    true => ("passed", Style::new().green()),
                    false => ("failed", Style::new().red()),
                };
                let text = format!("build.sh, {} ({status})", seconds(*took));
                self.line(label, style, &text);
            }
            Event::Warning(text) => self.warning(text),
            Event::Reviewed {
                warnings,
                told,
                stat,
            } => self.review(warnings, *told, stat),
            Event::Tool { name, asks, .. } => {
                self.in_tool.store(true, Ordering::Relaxed);
                self.show(event);
                if !asks {
                    self.work(name);
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
            _ => self.show(event),
        }
    }

    fn is_live(&self) -> bool {
        self.options.terminal && !self.options.quiet
    }
}

impl Console<'_> {
    fn answered(&self, model: &str, usage: Option<Usage>, cost: Option<Usd>, took: Duration) {
        let cost = cost.filter(|cost| *cost != Usd::ZERO);
        let cost = cost.map(|cost| format!(", {cost}")).unwrap_or_default();
        let usage = usage.map(|usage| format!(": {}", tokens(usage)));
        let usage = usage.unwrap_or_default();
        let text = format!("{model}{usage}{cost}, {}", seconds(took));
        self.line("answered", Style::new(), &text);
    }

    /// Shows what an agent did. Even where it is to be quiet, it shows its questions and how it ended.
    fn show(&self, event: &Event) {
        let is_wanted = match event {
            Event::Finished { .. } | Event::Failed { .. } | Event::Shown(_) => true,
            Event::Tool { asks, .. } => *asks,
            _ => false,
        };
        if self.options.stderr_terminal {
            return self.show_step(event, is_wanted);
        }
        match agent::view(event) {
            Some(EventView::Titled { .. }) if self.options.quiet && !is_wanted => {
                self.spinner.stop();
            }
            Some(EventView::Titled { title, body }) => self.titled(title, body),
            Some(EventView::Line { label: "", text }) => self.plain_line(&text.text, text.style),
            Some(EventView::Line { label, text }) => self.line(label, text.style, &text.text),
            None => {}
        }
    }

    /// The same at a terminal, where somebody looks on.
    fn show_step(&self, event: &Event, is_wanted: bool) {
        let Ok(mut steps) = self.steps.lock() else {
            return;
        };
        // Before the text is broken into lines, which would break a key as well.
        let lines = steps.lines(&event.redacted(self.redactor), self.look());
        if !matches!(event, Event::Printed(_) | Event::Changed { .. }) {
            self.spinner.stop();
        }
        if lines.is_empty() || self.options.quiet && !is_wanted {
            return;
        }
        let text = lines.iter().map(|line| format!("{line}\n")).collect();
        let text = self.commanding_nobody(text);
        // A stderr that is closed is no reason to end the run.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// A line without a label, all of it in a style.
    fn plain_line(&self, text: &str, style: Style) {
        self.spinner.stop();
        if !self.options.quiet {
            let text = self.printable(text).replace('\n', " ");
            self.print(&self.paint(&text, style), "");
        }
    }

    /// Text under a title.
    fn titled(&self, title: Painted, body: Vec<Painted>) {
        self.spinner.stop();
        let ready = |part: Painted| {
            let text = self.redactor.text(&part.text).into_owned();
            Painted::new(text, self.style(part.style))
        };
        let title = ready(title);
        let body: Vec<Painted> = body.into_iter().map(ready).collect();
        let lines = blocks::plain(&title, &body);
        let text = lines.iter().map(|line| format!("{line}\n")).collect();
        let text = self.commanding_nobody(text);
        // A stderr that is closed is no reason to end the run.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    fn warning(&self, text: &str) {
        let label = self.paint("warning:", Style::new().yellow());
        self.print(&label, &format!(" {text}"));
    }

    /// What a reviewer reads first: the warnings, again on a terminal where they have scrolled by, and the change as git shows it.
    fn review(&self, warnings: &[String], told: usize, stat: &Stat) {
        self.spinner.stop();
        let again = self.options.stderr_terminal && !self.options.quiet;
        let told = if again { 0 } else { told };
        for warning in warnings.iter().skip(told) {
            self.warning(warning);
        }
        if self.options.quiet {
            return;
        }
        let stat = self.printable(&stat.text(WIDTH));
        // A stderr that is closed is no reason to end the run.
        let _ = write!(io::stderr(), "{}", self.colored(&stat));
    }

    /// The signs of a stat in the colours that git gives them.
    fn colored(&self, stat: &str) -> String {
        let line = |line: &str| match line.rsplit_once(['|', ' ']) {
            Some((_, graph)) if !graph.is_empty() && graph.chars().all(|c| "+-".contains(c)) => {
                let (text, graph) = line.split_at(line.len() - graph.len());
                let plus = graph.trim_end_matches('-');
                let minus = &graph[plus.len()..];
                let plus = self.paint(plus, Style::new().green());
                format!("{text}{plus}{}\n", self.paint(minus, Style::new().red()))
            }
            _ => format!("{line}\n"),
        };
        stat.lines().map(line).collect()
    }

    /// Prints the run's result to stdout.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn result(&self, text: &str) -> io::Result<()> {
        self.spinner.stop();
        let mut text = self.redactor.text(text).into_owned();
        if text.starts_with("diff --git ") {
            // Elsewhere as bytes: it may be applied.
            if self.options.stdout_terminal || self.options.runner == CiRunner::Told {
                let lines = text.split_inclusive('\n');
                let colors = self.options.colors.stdout;
                let lines = lines.map(|line| diff_line(line, colors)).collect();
                text = self.commanding_nobody(lines);
            }
        } else {
            text = self.commanding_nobody(text::printable(&text, &['\n', '\t']));
        }
        to_stdout(&text)
    }

    /// Prints an agent's answer to stdout: at a terminal, as its Markdown means it.
    ///
    /// # Errors
    /// When it cannot be written, though somebody wants to read it.
    pub fn answer(&self, text: &str) -> io::Result<()> {
        if !self.options.stdout_terminal {
            return self.result(&format!("{text}{}", text::line_end(text)));
        }
        self.spinner.stop();
        let columns = usize::from(Term::stdout().size().1).saturating_sub(1);
        let text = self.redactor.text(text);
        let lines = markdown::rendered(&text, columns, self.options.colors.stdout).into_iter();
        let text = lines.map(|line| format!("{line}\n")).collect();
        to_stdout(&self.commanding_nobody(text))
    }

    /// Prints why the run failed, and the folder that tells more.
    pub fn error(&self, message: &dyn Display, hint: Option<&str>, log: Option<&str>) {
        self.spinner.stop();
        let label = self.paint("error:", Style::new().red().bold());
        self.print(&label, &format!(" {message}"));
        for (label, text) in [("hint: ", hint), ("log: ", log)] {
            if let Some(text) = text {
                self.print(label, text);
            }
        }
    }
}

/// A line of a diff without anything that moves the cursor, and, if there are to be `colors`, in those that git gives
/// it.
fn diff_line(line: &str, colors: bool) -> String {
    let plain = line.trim_end_matches('\n');
    let is_any = |signs: &[&str]| signs.iter().any(|sign| plain.starts_with(sign));
    let style = match Style::new() {
        style if is_any(&["diff", "--- ", "+++ "]) => style.bold(),
        style if is_any(&["@@"]) => style.cyan(),
        style if is_any(&["+"]) => style.green(),
        style if is_any(&["-"]) => style.red(),
        style => style,
    };
    let printable = text::printable(plain, &['\t']);
    format!("{}\n", style.force_styling(colors).apply_to(printable))
}

fn tokens(usage: Usage) -> String {
    let Usage {
        input_tokens,
        cached_tokens,
        thought_tokens,
        output_tokens,
    } = usage;
    let cached = aside(cached_tokens, "cached");
    let thoughts = aside(thought_tokens, "thought");
    let (input, output) = (grouped(input_tokens), grouped(output_tokens));
    format!("{input} tokens in{cached}, {output} out{thoughts}")
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}
