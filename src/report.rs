//! What a person sees while a run goes on. The only code that prints.
//!
//! Writes to the standard streams: progress, warnings and errors to stderr, the result alone to
//! stdout. Guarantees that no key is printed, and that a closed terminal is no reason to fail.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::time::Duration;

use console::{Style, Term};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::record::{Attempt, EditsRecord, Usage};
use crate::secret::Redactor;

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The run has its folder.
    Started {
        /// The folder, relative to the project's root.
        log: &'a str,
    },
    /// The model is being asked.
    Asking {
        /// For what.
        attempt: Attempt,
        /// Which model.
        model: &'a str,
    },
    /// A try failed; the next one follows.
    Retrying {
        /// The number of the next try.
        next_try: u32,
        /// How long until then.
        wait: Duration,
        /// Why the last one failed.
        reason: &'a str,
    },
    /// The reply is there.
    Answered {
        /// Which model.
        model: &'a str,
        /// What it took, where the vendor tells.
        usage: Option<Usage>,
        /// How long it took.
        took: Duration,
    },
    /// The reply's edits are on the disk.
    Applied(&'a EditsRecord),
    /// What a run had applied was taken back.
    PutBack(&'a EditsRecord),
    /// Builds are not shut in.
    Uncontained {
        /// Why not.
        reason: &'a str,
    },
    /// build.sh is running.
    Building,
    /// build.sh has ended.
    Built {
        /// How, in words.
        status: &'a str,
        /// Whether it passed.
        passed: bool,
        /// How long it took.
        took: Duration,
    },
    /// The supervisor should look at something.
    Warning(&'a str),
}

/// Hears what happens.
pub trait Reporter {
    /// Something happened.
    fn event(&self, event: Event<'_>);
    /// The run's result, for stdout.
    fn result(&self, text: &str);
    /// Why the run failed, and the folder that tells more.
    fn error(&self, message: &dyn Display, hint: Option<&str>, log: Option<&str>);
}

/// How a console is to be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsoleOptions {
    /// Progress is not shown.
    pub quiet: bool,
    /// stderr is a terminal that can redraw a line.
    pub terminal: bool,
    /// Colours may be used.
    pub colors: bool,
}

/// Shows a run on the standard streams.
#[derive(Debug)]
pub struct Console<'r> {
    options: ConsoleOptions,
    redactor: &'r Redactor,
    /// The step that is going on, while it is shown.
    spinner: Mutex<Option<ProgressBar>>,
}

/// How many files of a reply are listed by name.
const LISTED: usize = 20;

impl<'r> Console<'r> {
    /// A console that prints nothing `redactor` knows as a key.
    #[must_use]
    pub fn new(options: ConsoleOptions, redactor: &'r Redactor) -> Self {
        Self {
            options,
            redactor,
            spinner: Mutex::new(None),
        }
    }

    fn style(&self, style: Style) -> Style {
        style.for_stderr().force_styling(self.options.colors)
    }

    /// A line of progress: what was done, and how it went.
    fn line(&self, label: &str, style: Style, text: &str) {
        self.stop_spinner();
        if !self.options.quiet {
            let label = self
                .style(style)
                .apply_to(format!("{label:>8}"))
                .to_string();
            self.print(&label, &format!("  {text}"));
        }
    }

    /// A step that takes a while: a spinner on a terminal, else a line.
    fn step(&self, label: &str, text: &str) {
        self.stop_spinner();
        if self.options.quiet {
            return;
        }
        if !self.options.terminal {
            self.line(label, Style::new(), text);
            return;
        }
        let bar = ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::term_like_with_hz(Box::new(Narrow(Term::stderr())), 10),
        );
        // A template that indicatif does not take would only look plainer.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:>6}  {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.set_prefix(label.to_owned());
        bar.set_message(self.redactor.text(text).into_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        if let Ok(mut spinner) = self.spinner.lock() {
            *spinner = Some(bar);
        }
    }

    fn stop_spinner(&self) {
        if let Some(bar) = self
            .spinner
            .lock()
            .ok()
            .and_then(|mut spinner| spinner.take())
        {
            bar.finish_and_clear();
        }
    }

    /// Prints a line to stderr, above the spinner where there is one. The label is ours, and may have
    /// colours; the text may be anybody's.
    fn print(&self, label: &str, text: &str) {
        let text = printable(&self.redactor.text(text));
        let write = || {
            // A stderr that is closed is no reason to end the run.
            let _ = writeln!(io::stderr(), "{label}{text}");
        };
        match self.spinner.lock().ok().and_then(|spinner| spinner.clone()) {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn edits(&self, label: &str, verb: &str, edits: &EditsRecord) {
        let (written, removed) = (edits.written.len(), edits.removed.len());
        self.line(
            label,
            Style::new(),
            &format!("{written} {verb}, {removed} removed"),
        );
        if self.options.quiet {
            return;
        }
        let removed = edits.removed.iter().map(|path| format!("{path} (removed)"));
        let paths: Vec<String> = edits.written.iter().cloned().chain(removed).collect();
        for path in paths.iter().take(LISTED) {
            self.print("            ", path);
        }
        if paths.len() > LISTED {
            self.print(
                "            ",
                &format!("and {} more", paths.len() - LISTED),
            );
        }
    }
}

impl Reporter for Console<'_> {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Started { log } => self.line("log", Style::new(), log),
            Event::Asking { attempt, model } => {
                let purpose = match attempt {
                    Attempt::Initial => "the change".to_owned(),
                    Attempt::Repair(number) => format!("repair {number}"),
                    Attempt::Report => "the report".to_owned(),
                };
                self.step("asking", &format!("{model} for {purpose}"));
            }
            Event::Retrying {
                next_try,
                wait,
                reason,
            } => {
                self.print(
                    "   retry  ",
                    &format!("{reason}; try {next_try} in {}", seconds(wait)),
                );
            }
            Event::Answered { model, usage, took } => {
                let usage = usage
                    .map(|usage| format!(": {}", tokens(usage)))
                    .unwrap_or_default();
                self.line(
                    "answered",
                    Style::new(),
                    &format!("{model}{usage}, {}", seconds(took)),
                );
            }
            Event::Applied(edits) => self.edits("applied", "written", edits),
            Event::PutBack(edits) => self.edits("undone", "put back", edits),
            Event::Uncontained { reason } => {
                self.line(
                    "sandbox",
                    Style::new(),
                    &format!("none: {reason}; builds can read the keys"),
                );
            }
            Event::Building => self.step("build", "build.sh"),
            Event::Built {
                status,
                passed,
                took,
            } => {
                let style = if passed {
                    Style::new().green()
                } else {
                    Style::new().red()
                };
                let label = if passed { "passed" } else { "failed" };
                self.line(
                    label,
                    style,
                    &format!("build.sh, {} ({status})", seconds(took)),
                );
            }
            Event::Warning(text) => {
                let label = self
                    .style(Style::new().yellow())
                    .apply_to("warning:")
                    .to_string();
                self.print(&label, &format!(" {text}"));
            }
        }
    }

    fn result(&self, text: &str) {
        self.stop_spinner();
        // As with stderr: whoever closed it does not want to know.
        let _ = writeln!(io::stdout(), "{}", self.redactor.text(text));
    }

    fn error(&self, message: &dyn Display, hint: Option<&str>, log: Option<&str>) {
        self.stop_spinner();
        let label = self
            .style(Style::new().red().bold())
            .apply_to("error:")
            .to_string();
        self.print(&label, &format!(" {message}"));
        if let Some(hint) = hint {
            self.print("hint: ", hint);
        }
        if let Some(log) = log {
            self.print("log: ", log);
        }
    }
}

/// A terminal that is a little narrower than it is. The spinner's line is filled up to the end, where
/// the `^C` that the terminal echoes would begin a new line, and clearing would clear that one.
#[derive(Debug)]
struct Narrow(Term);

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        const ECHO: u16 = 4;
        self.0.size().1.saturating_sub(ECHO)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_left(columns)
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.0.write_line(line)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A vendor's or a file's text must not move the cursor or change the colours.
fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "\u{fffd}")
}

fn tokens(usage: Usage) -> String {
    let Usage {
        input_tokens,
        cached_tokens,
        thought_tokens,
        output_tokens,
    } = usage;
    let cached = if cached_tokens > 0 {
        format!(" ({cached_tokens} cached)")
    } else {
        String::new()
    };
    let thoughts = if thought_tokens > 0 {
        format!(" ({thought_tokens} thought)")
    } else {
        String::new()
    };
    format!("{input_tokens} tokens in{cached}, {output_tokens} out{thoughts}")
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}
