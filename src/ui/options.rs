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
    /// One document at the end
    Json,
    /// A line for each event
    JsonL,
}

/// Options of a console.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the streams"
)]
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
    /// True if a CI runner reads what is printed, and looks for its commands in it.
    pub runner: CiRunner,
    /// Where colours may be used.
    pub colors: Colors,
    /// An exchange between an agent's model, its tools and the user goes to stdout as it happens.
    pub mirrors: bool,
    /// stdin and stdout are terminals: what is typed is seen on stdout by itself.
    pub echoes: bool,
    /// True if the model's text is for somebody at the terminal, who may be asked for an answer to it.
    pub asks: bool,
}

impl ConsoleOptions {
    /// Returns the capabilities of stdout and stderr, which may be terminals, according to the environment.
    pub fn new(quiet: bool, (stdout, stderr): (bool, bool), environment: &Environment) -> Self {
        let dumb = is_dumb(environment);
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
            mirrors: false,
            echoes: false,
            asks: false,
        }
    }

    /// The same where stdout gets `format`: nothing is mirrored between what programs read, nor where it is to be quiet.
    pub fn in_format(self, format: OutputFormat) -> Self {
        Self {
            mirrors: self.mirrors && !self.quiet && format == OutputFormat::Text,
            ..self
        }
    }
}

/// Returns whether the terminal, by its name, cannot move its cursor, or has no name.
pub fn is_dumb(environment: &Environment) -> bool {
    let is_such = |term: &str| ["dumb", "cons25", "emacs"].contains(&&*term.to_ascii_lowercase());
    environment.get("TERM").is_none_or(is_such)
}

/// The presence of a CI runner.
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
    /// True if stdout takes them.
    pub stdout: bool,
    /// True if stderr takes them.
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
