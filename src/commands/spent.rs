//! Costs of calls to models. Reads the records of runs, and changes nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::record::step::Step;
use crate::run::context::Context;
use crate::run::past::history::{self, PastRun};
use crate::sys::error::Error;
use crate::sys::numbers::{counted, grouped};

/// The amount spent on calls to models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// The number of input and output tokens.
    pub tokens: u64,
    /// The known cost in dollars.
    pub dollars: Usd,
    /// The number of calls whose cost is unknown.
    pub unpriced: u64,
}

impl Spent {
    /// Returns the spending on steps.
    pub fn on(steps: &[Step]) -> Self {
        let usage = steps.iter().filter_map(|step| step.usage);
        let usage = usage.reduce(Usage::plus).unwrap_or_default();
        Self {
            tokens: usage.input_tokens.saturating_add(usage.answered()),
            dollars: steps.iter().filter_map(|step| step.cost).sum(),
            unpriced: steps.iter().filter(|step| step.cost.is_none()).count() as u64,
        }
    }

    /// Formats the cost: the known dollars and the number of calls whose cost is unknown.
    pub fn cost(&self) -> String {
        match self.unpriced {
            0 => self.dollars.to_string(),
            unpriced => {
                let calls = counted(unpriced, "call");
                format!("{} and {calls} at an unknown price", self.dollars)
            }
        }
    }

    /// Returns the sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            dollars: self.dollars + other.dollars,
            unpriced: self.unpriced.saturating_add(other.unpriced),
        }
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens, {}", grouped(self.tokens), self.cost())
    }
}

/// Returns the spending of the existing runs of an agent's session.
///
/// # Errors
/// Fails if the runs cannot be read.
pub fn spent_in(context: &Context<'_>, session: &str) -> Result<Spent, Error> {
    let runs = history::runs(&context.project)?;
    let is_of_session = |run: &&PastRun| {
        let about = run.agent();
        about.and_then(|about| about.session.as_deref()) == Some(session)
    };
    let of_session = runs.iter().filter(is_of_session);
    let spent = of_session.map(|run| Spent::on(&run.known_record().steps));
    Ok(spent.fold(Spent::default(), Spent::plus))
}
