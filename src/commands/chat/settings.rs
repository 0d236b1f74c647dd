//! Settings of the agent at the terminal: `settings.json` in its home, which need not be there.
//!
//! Reads that file. Guarantees that every value makes sense, and that a mistake is told with its place and what is
//! expected there.

#[cfg(test)]
mod tests;

use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::agent::schema::nearest;
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::positions::{self, Entries, Misplaced, Positions};
use crate::sys::text::one_line;

/// The file, in the agent's home.
pub const FILE: &str = "settings.json";
/// The file for who has none: what holds without it.
pub const DEFAULTS: &str = "{\n  \"compactThreshold\": 80,\n  \"ui\": { \"mouse\": true }\n}\n";
/// Effect of removing the file.
const WITHOUT: &str = "the defaults count then";
/// The least and the most per cent of a window at which a conversation is compacted.
const THRESHOLDS: std::ops::RangeInclusive<u8> = 60..=90;
/// Length to which unknown names are cut, in characters.
const SHOWN: usize = 60;

/// Settings of the agent at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChatSettings {
    /// The per cent of a model's window at which a conversation is compacted.
    pub compact_threshold: u8,
    /// `true` for a screen that handles the mouse; else the terminal does.
    pub mouse: bool,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            compact_threshold: 80,
            mouse: true,
        }
    }
}

impl ChatSettings {
    /// The settings in this home.
    ///
    /// # Errors
    /// When the file cannot be read, or there is a mistake in it.
    pub fn load(home: &Path) -> Result<Self, HomeFileProblem> {
        let loaded = home_file::load(&home.join(FILE), WITHOUT, Self::parse)?;
        Ok(loaded.unwrap_or_default())
    }

    /// The settings that the content of a file stands for.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(content: &[u8]) -> Result<Self, Misplaced> {
        let json = positions::text(content)?;
        let at = Positions(json);
        let mut settings = Self::default();
        for (name, value) in at.object::<Entries<'_>>(json)?.0 {
            match &*name {
                "compactThreshold" => settings.compact_threshold = threshold(&at, value)?,
                "ui" => settings.set_ui(&at, value)?,
                _ => return Err(unknown(&at, value, &name, &["compactThreshold", "ui"])),
            }
        }
        Ok(settings)
    }

    fn set_ui(&mut self, at: &Positions<'_>, ui: &RawValue) -> Result<(), Misplaced> {
        for (name, value) in at.object::<Entries<'_>>(ui.get())?.0 {
            match &*name {
                "mouse" => {
                    let expected = || "`mouse` must be `true` or `false`".to_owned();
                    self.mouse = read(at, value, expected)?;
                }
                _ => return Err(unknown(at, value, &name, &["mouse"])),
            }
        }
        Ok(())
    }
}

fn threshold(at: &Positions<'_>, value: &RawValue) -> Result<u8, Misplaced> {
    let (least, most) = THRESHOLDS.into_inner();
    let expected =
        || format!("`compactThreshold` must be a whole number of per cent, from {least} to {most}");
    let percent = read(at, value, expected)?;
    if THRESHOLDS.contains(&percent) {
        return Ok(percent);
    }
    Err(at.problem(value.get(), expected()))
}

fn read<T: DeserializeOwned>(
    at: &Positions<'_>,
    value: &RawValue,
    expected: impl Fn() -> String,
) -> Result<T, Misplaced> {
    serde_json::from_str(value.get()).map_err(|_| at.problem(value.get(), expected()))
}

fn unknown(at: &Positions<'_>, value: &RawValue, name: &str, known: &[&str]) -> Misplaced {
    let meant = match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are `{}`", known.join("`, `")),
    };
    let reason = format!("there is no setting `{}`: {meant}", one_line(name, SHOWN));
    at.problem(value.get(), reason)
}
