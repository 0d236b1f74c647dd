//! Shows text longer than the terminal in the user's pager, and waits for the pager to exit.
//!
//! Starts `$PAGER`, or `less`, with the process's own standard output. Guarantees that `less` is never taken
//! from the project; [`Pager::show`] returns `false` if the caller has to print the text itself.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::lent;
use crate::sys::environment::Environment;
use crate::sys::interrupt::Interrupt;
use crate::sys::programs::program_outside;

/// The default pager.
const USUAL: &str = "less";
/// The default options for pagers, the same as git's: exit if the text fits on one screen, pass colours
/// through, and leave the text on the screen.
const OPTIONS: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// A program that shows long texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pager {
    /// The program and its arguments.
    words: Vec<String>,
    /// The environment variables to set for it.
    options: Vec<(&'static str, String)>,
}

impl Pager {
    /// Finds the user's pager: `$PAGER`, or else `less` from an absolute directory of `PATH` outside `project`; `None`
    /// if there is none, or the user disables it with an empty `PAGER` or `cat`.
    pub fn of(environment: &Environment, project: &Path) -> Option<Self> {
        let words = match environment.os("PAGER").map(OsStr::to_str) {
            Some(command) => shlex::split(command?)?,
            None => vec![program_outside(USUAL, environment.os("PATH")?, project)?],
        };
        let is_wanted = words.first().is_some_and(|program| program != "cat");
        let unset = OPTIONS
            .into_iter()
            .filter(|(name, _)| environment.os(name).is_none())
            .map(|(name, options)| (name, options.to_owned()));
        is_wanted.then(|| Self {
            words,
            options: unset.collect(),
        })
    }

    /// Like [`Self::of`], for a full-screen program that redraws afterwards: `less` stays open, however short
    /// the text.
    pub fn of_screen(environment: &Environment, project: &Path) -> Option<Self> {
        let mut pager = Self::of(environment, project)?;
        let own = environment.get("LESS");
        let options = own.map_or_else(|| "R".to_owned(), |own| format!("{own} -+F"));
        pager.options.retain(|(name, _)| *name != "LESS");
        pager.options.push(("LESS", options));
        Some(pager)
    }

    /// Shows `text`, and returns whether that worked. A pager closed early, by the user or by a persistent
    /// signal on `interrupt`, counts as success.
    pub fn show(&self, text: &str, interrupt: &Interrupt) -> bool {
        let Some((program, arguments)) = self.words.split_first() else {
            return false;
        };
        let mut command = Command::new(OsString::from(program));
        command.args(arguments).stdin(Stdio::piped());
        command.envs(self.options.iter().map(|(name, value)| (name, value)));
        let feed = |pager: &mut Child| {
            if let Some(mut input) = pager.stdin.take() {
                // A pager closed before the end is not an error.
                let _ = input.write_all(text.as_bytes());
            }
        };
        lent::run(&mut command, interrupt, feed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pager(variables: &[(&str, &str)]) -> Option<Pager> {
        Pager::of(&Environment::of(variables), Path::new("/project"))
    }

    #[test]
    fn the_users_own_pager_goes_first_and_none_is_one_too() {
        let own = pager(&[("PAGER", "most -s 'a b'"), ("LESS", "R")]).unwrap();
        assert_eq!(own.words, ["most", "-s", "a b"]);
        assert_eq!(own.options, [("LV", "-c".to_owned())]);
        for none in ["", "cat", "'open"] {
            assert_eq!(pager(&[("PAGER", none)]), None, "{none}");
        }
        assert_eq!(pager(&[("PATH", "bin:/no/such")]), None);
    }

    #[test]
    fn a_pager_of_a_screen_stays_open() {
        for (variable, expected) in [(&[][..], "R"), (&[("LESS", "FRX")], "FRX -+F")] {
            let environment = [&[("PAGER", "less")], variable].concat();
            let pager = Pager::of_screen(&Environment::of(&environment), Path::new("/project"));
            assert!(
                pager
                    .unwrap()
                    .options
                    .contains(&("LESS", expected.to_owned()))
            );
        }
    }

    #[test]
    fn a_pager_that_is_closed_early_or_is_missing_is_not_an_error() {
        let long = "line\n".repeat(100_000);
        let interrupt = Interrupt::never().unwrap();
        let shows = |pager: Option<Pager>, text| pager.unwrap().show(text, &interrupt);
        assert!(shows(pager(&[("PAGER", "true")]), &long));
        assert!(!shows(pager(&[("PAGER", "no-such-pager-here")]), "x"));
    }
}
