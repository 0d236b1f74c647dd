//! The capabilities of the standard streams. Plain data.

use crate::sys::environment::Environment;
use clap::ValueEnum;

/// The format of stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum OutputFormat {
    /// The result as text
    #[default]
    Text,
    /// One JSON document at the end
    Json,
    /// One JSON line per event
    JsonL,
    /// Findings in SARIF 2.1.0
    Sarif,
    /// The results of a fleet as comma-separated values
    Csv,
}

/// The capabilities of the streams that a console writes to, and what it shows there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsoleOptions {
    /// True if progress is not shown.
    pub quiet: bool,
    /// True if stderr is a terminal that can redraw a line.
    pub terminal: bool,
    /// True if stderr is a terminal of any kind: an agent's work is shown for a person.
    pub stderr_terminal: bool,
    /// True if stdout is a terminal.
    pub stdout_terminal: bool,
    /// The presence of a CI runner that looks for commands in the output.
    pub runner: CiRunner,
    /// True if the runner is GitHub's, which shows annotations.
    pub annotates: bool,
    /// The streams on which colours may be used.
    pub colors: Colors,
    /// True if the conversation between an agent's model, its tools and the user is mirrored to stdout.
    pub mirrors: bool,
    /// True if stdin and stdout are terminals, so input is already visible on stdout.
    pub echoes: bool,
    /// True if the model's text is meant for a user at the terminal, who may be asked to answer it.
    pub asks: bool,
}

impl ConsoleOptions {
    /// Returns the capabilities of stdout and stderr, which may be terminals, according to the environment.
    pub fn new(quiet: bool, (stdout, stderr): (bool, bool), environment: &Environment) -> Self {
        let dumb = is_dumb(environment);
        let colors = !dumb && environment.os("NO_COLOR").is_none();
        let is_known = ["CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"]
            .iter()
            .any(|name| environment.os(name).is_some());
        Self {
            quiet,
            terminal: stderr && !dumb,
            stderr_terminal: stderr,
            stdout_terminal: stdout,
            annotates: environment.get("GITHUB_ACTIONS") == Some("true"),
            runner: match is_known {
                true => CiRunner::Known,
                false if stdout && stderr => CiRunner::None,
                false => CiRunner::Possible,
            },
            colors: Colors {
                stdout: stdout && colors,
                stderr: stderr && colors,
            },
            mirrors: false,
            echoes: false,
            asks: false,
        }
    }

    /// Adapts the options to the `format` of stdout: the conversation is mirrored only in the text format, and
    /// not with `--quiet`.
    pub fn in_format(self, format: OutputFormat) -> Self {
        Self {
            mirrors: self.mirrors && !self.quiet && format == OutputFormat::Text,
            ..self
        }
    }
}

/// Returns whether the terminal, judging by `TERM`, cannot move its cursor or is unknown.
pub fn is_dumb(environment: &Environment) -> bool {
    let is_such = |term: &str| ["dumb", "cons25", "emacs"].contains(&&*term.to_ascii_lowercase());
    environment.get("TERM").is_none_or(is_such)
}

/// The presence of a CI runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CiRunner {
    /// Only a person reads the output.
    None,
    /// A stream is not a terminal, so a CI runner may read it.
    Possible,
    /// The environment indicates a CI runner.
    Known,
}

/// The streams on which colours may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Colors {
    /// True if stdout supports colours.
    pub stdout: bool,
    /// True if stderr supports colours.
    pub stderr: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_mirrored_only_where_a_person_reads_text() {
        let options = |mirrors, quiet| ConsoleOptions {
            mirrors,
            ..ConsoleOptions::new(quiet, (false, false), &Environment::default())
        };
        for (options, format, expected) in [
            (options(true, false), OutputFormat::Text, true),
            (options(true, true), OutputFormat::Text, false),
            (options(true, false), OutputFormat::Json, false),
            (options(true, false), OutputFormat::JsonL, false),
            (options(false, false), OutputFormat::Text, false),
        ] {
            assert_eq!(options.in_format(format).mirrors, expected, "{options:?}");
        }
    }
}
