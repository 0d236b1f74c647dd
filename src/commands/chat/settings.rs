//! Settings of the terminal agent: `settings.json` in its home, which is optional.
//!
//! Reads only that file. Guarantees that every value is valid, and that a mistake is reported with its position and the
//! expected value.

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::sys::home_file::{self, HomeFileProblem};

/// The file, in the agent's home.
pub const FILE: &str = "settings.json";
/// Initial content of the file, equal to the defaults.
pub const DEFAULTS: &str =
    "{\n  \"compactThreshold\": 80,\n  \"ui\": { \"mouse\": true, \"notify\": true }\n}\n";
/// Consequence of removing the file, for error messages.
const WITHOUT: &str = "the defaults count then";
/// Allowed range of the compaction threshold, in per cent of a model's window.
const THRESHOLDS: RangeInclusive<u8> = 60..=90;

/// Settings of the terminal agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ChatSettings {
    /// Share of a model's window at which a conversation is compacted, in per cent.
    #[serde(deserialize_with = "threshold")]
    pub compact_threshold: u8,
    /// Settings of the screen.
    pub ui: UiSettings,
}

/// Settings of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UiSettings {
    /// `true` if the screen handles the mouse; otherwise the terminal does.
    pub mouse: bool,
    /// `true` to ring the bell and send a notification about a question while the terminal does not have the focus.
    pub notify: bool,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            compact_threshold: 80,
            ui: UiSettings::default(),
        }
    }
}

impl Default for UiSettings {
    fn default() -> Self {
        Self {
            mouse: true,
            notify: true,
        }
    }
}

impl ChatSettings {
    /// Loads the settings in this home, or the defaults if the file does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be read or contains a mistake.
    pub fn load(home: &Path) -> Result<Self, HomeFileProblem> {
        home_file::load_json(&home.join(FILE), WITHOUT)
    }
}

fn threshold<'de, D: Deserializer<'de>>(input: D) -> Result<u8, D::Error> {
    match u8::deserialize(input) {
        Ok(percent) if THRESHOLDS.contains(&percent) => Ok(percent),
        _ => Err(D::Error::custom(format!(
            "`compactThreshold` must be a whole number of per cent, from {} to {}",
            THRESHOLDS.start(),
            THRESHOLDS.end()
        ))),
    }
}
