//! The rates of models in trials: the shares of their replies that could be read and that were
//! right.
//!
//! Reads and writes a file next to the project's table of models; git must not track it.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde::{Deserialize, Serialize};

use crate::model::ReplyFormat;
use crate::model::price::Usd;
use crate::project::{Project, ProjectProblem, RATES};
use crate::sys::atomic_file;
use crate::sys::error::Error;
use crate::sys::files::PathError;

/// Percentage of right replies below which a dry run warns.
const LOW: u32 = 90;

/// A verdict on a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Incomplete, malformed or forbidden.
    Unreadable,
    /// Readable, but not the requested change.
    Wrong,
    /// The requested change.
    Right,
}

impl Verdict {
    /// Returns the verdict in words, which follow the name of the requested change.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unreadable => "could not be read",
            Self::Wrong => "was wrong",
            Self::Right => "was right",
        }
    }
}

/// The replies to a trial, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The number of requests.
    pub asked: u32,
    /// The number of readable replies.
    pub read: u32,
    /// The number of right replies.
    pub right: u32,
    /// The cost of the calls; null if unknown.
    #[serde(default)]
    pub cost: Option<Usd>,
}

impl Rate {
    /// Counts a reply with this cost.
    pub fn add(&mut self, verdict: Verdict, cost: Option<Usd>) {
        let so_far = self.cost.or((self.asked == 0).then_some(Usd::ZERO));
        self.cost = so_far.zip(cost).map(|(so_far, cost)| so_far + cost);
        self.asked += 1;
        self.read += u32::from(verdict != Verdict::Unreadable);
        self.right += u32::from(verdict == Verdict::Right);
    }

    /// Returns `count` as a percentage of the replies, rounded down so that nothing below a limit reaches it.
    pub fn percent(&self, count: u32) -> u32 {
        count * 100 / self.asked.max(1)
    }
}

/// The rates of a model, by the format of its replies.
pub type ModelRates = BTreeMap<ReplyFormat, Rate>;

/// The rates of all models, by their names.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates(BTreeMap<String, ModelRates>);

impl Rates {
    /// Reads the rates; none if the file is missing or cannot be parsed. The next trial replaces
    /// such a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or git tracks it.
    pub fn read(project: &Project) -> Result<Self, ProjectProblem> {
        let json = project.users_file(RATES)?.unwrap_or_default();
        Ok(serde_json::from_slice(&json).unwrap_or_default())
    }

    /// Returns the rates of a model.
    pub fn of(&self, model: &str) -> Option<&ModelRates> {
        self.0.get(model)
    }

    /// Replaces the rates of a model, and writes the file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn remember(
        mut self,
        project: &Project,
        model: &str,
        rates: ModelRates,
    ) -> Result<(), Error> {
        self.0.entry(model.to_owned()).or_default().extend(rates);
        let config = project.config();
        let path = config.join(RATES);
        let write = || {
            atomic_file::private_directory(&config)?;
            let json = serde_json::to_string_pretty(&self)?;
            atomic_file::replace(&path, |file| writeln!(file, "{json}"))
        };
        Ok(write().map_err(PathError::of("write", &path))?)
    }

    /// Returns a warning if less than 90 % of a model's replies in this format were right.
    pub fn warning(&self, model: &str, format: ReplyFormat) -> Option<String> {
        let rate = self.of(model)?.get(&format)?;
        let Rate { asked, right, .. } = rate;
        (rate.percent(*right) < LOW).then(|| {
            format!(
                "when `{model}` was tried with the reply format `{format}`, {right} of {asked} replies were right: \
                 `code-commit models` shows its rates"
            )
        })
    }
}
