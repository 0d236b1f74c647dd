//! Settings of the agent at the terminal: `settings.json` in its home, which need not be there.
//!
//! Reads that file. Guarantees that every value makes sense, and that a mistake is told with its place and what is
//! expected there.

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::sys::home_file::{self, HomeFileProblem};

/// The file, in the agent's home.
pub const FILE: &str = "settings.json";
/// The file for who has none: what holds without it.
pub const DEFAULTS: &str = "{\n  \"compactThreshold\": 80,\n  \"ui\": { \"mouse\": true }\n}\n";
/// Effect of removing the file.
const WITHOUT: &str = "the defaults count then";
/// The least and the most per cent of a window at which a conversation is compacted.
const THRESHOLDS: RangeInclusive<u8> = 60..=90;

/// Settings of the agent at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ChatSettings {
    /// The per cent of a model's window at which a conversation is compacted.
    #[serde(deserialize_with = "threshold")]
    pub compact_threshold: u8,
    /// Settings of the screen.
    pub ui: UiSettings,
}

/// Settings of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UiSettings {
    /// `true` for a screen that handles the mouse; else the terminal does.
    pub mouse: bool,
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
        Self { mouse: true }
    }
}

impl ChatSettings {
    /// The settings in this home.
    ///
    /// # Errors
    /// When the file cannot be read, or there is a mistake in it.
    pub fn load(home: &Path) -> Result<Self, HomeFileProblem> {
        let loaded = home_file::load_json(&home.join(FILE), WITHOUT)?;
        Ok(loaded.unwrap_or_default())
    }
}

fn threshold<'de, D: Deserializer<'de>>(input: D) -> Result<u8, D::Error> {
    let percent = u8::deserialize(input).ok();
    let percent = percent.filter(|percent| THRESHOLDS.contains(percent));
    percent.ok_or_else(|| {
        D::Error::custom(format!(
            "`compactThreshold` must be a whole number of per cent, from {} to {}",
            THRESHOLDS.start(),
            THRESHOLDS.end()
        ))
    })
}
