//! The mode of an agent at the terminal: its freedom to act. Plain data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The freedom an agent has to act.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ValueEnum,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "Train-Case", const_into_str)]
#[value(rename_all = "kebab-case")]
pub enum Mode {
    /// Asks before it changes anything
    #[default]
    Regular,
    /// Acts without asking
    AutoPilot,
    /// Only talks; carries out nothing
    Planning,
}

impl Mode {
    /// Returns the next mode; after the last one comes the first.
    pub fn next(self) -> Self {
        Self::VARIANTS[(self as usize + 1) % Self::VARIANTS.len()]
    }
}

/// The mode of a running agent, which its user may change at any time. Cloning is cheap, and clones share one mode.
#[derive(Debug, Clone, Default)]
pub struct SharedMode(Arc<AtomicU8>);

const THERE_ARE: &str = "there are regular, auto-pilot and planning";

impl SharedMode {
    /// Creates a shared mode that starts as `mode`.
    pub fn new(mode: Mode) -> Self {
        let shared = Self::default();
        shared.set(mode);
        shared
    }

    /// Returns the current mode.
    pub fn get(&self) -> Mode {
        let index = usize::from(self.0.load(Ordering::SeqCst));
        Mode::VARIANTS.get(index).copied().unwrap_or_default()
    }

    /// Switches to the mode with this name, if there is one, and returns a message for the user.
    pub fn switch(&self, name: &str) -> String {
        let name = name.to_ascii_lowercase();
        let is_named = |mode: &Mode| {
            let title = mode.into_str().to_ascii_lowercase();
            title == name || title.replace('-', "") == name
        };
        if let Some(mode) = Mode::VARIANTS.iter().copied().find(is_named) {
            self.set(mode);
        } else if !name.is_empty() {
            return format!("there is no mode `{name}`: {THERE_ARE}");
        }
        let now = format!("{} Mode", self.get().into_str());
        if name.is_empty() {
            return format!("{now}; {THERE_ARE}");
        }
        now
    }

    /// Sets the mode.
    pub fn set(&self, mode: Mode) {
        self.0.store(mode as u8, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_go_round_and_all_clones_are_one() {
        let shared = SharedMode::new(Mode::Planning);
        let other = shared.clone();
        let mut seen = Vec::new();
        for _ in Mode::VARIANTS {
            other.set(shared.get().next());
            seen.push(shared.get());
        }
        assert_eq!(seen, Mode::VARIANTS);
    }

    #[test]
    fn a_mode_is_switched_to_by_its_name() {
        let shared = SharedMode::default();
        for (name, mode, said) in [
            ("planning", Mode::Planning, "Planning Mode"),
            (
                "",
                Mode::Planning,
                "Planning Mode; there are regular, auto-pilot and planning",
            ),
            ("AutoPilot", Mode::AutoPilot, "Auto-Pilot Mode"),
            ("auto-pilot", Mode::AutoPilot, "Auto-Pilot Mode"),
            (
                "none",
                Mode::AutoPilot,
                "there is no mode `none`: there are regular, auto-pilot and planning",
            ),
        ] {
            assert_eq!(shared.switch(name), said);
            assert_eq!(shared.get(), mode);
        }
    }
}
