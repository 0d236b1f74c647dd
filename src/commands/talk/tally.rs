//! The status shown at the prompt: model, context, tokens, dollars, time. Pure.

use std::time::Duration;

use crate::commands::last::SessionRuns;
use crate::commands::spent::Spent;
use crate::model::price::Usd;
use crate::record::result::{RunRecord, TreeState};
use crate::sys::numbers::{counted, elapsed, grouped};
use crate::ui::tui::status::percentage;

/// Totals since the program was started.
#[derive(Debug, Default)]
pub struct Tally {
    requests: u64,
    spent: Spent,
    took: Duration,
    /// Duration of the last request.
    pub(super) last_took: Option<Duration>,
    /// The runs of the current session.
    pub session: SessionRuns,
}

impl Tally {
    /// Adds a finished run.
    pub fn add(&mut self, record: &RunRecord) {
        self.spend(record);
        self.took += record.seconds.0;
        self.last_took = Some(record.seconds.0);
        self.session.is_latest = record.tree == TreeState::Changed;
        if self.session.is_latest {
            self.session.changed.extend(record.log.clone());
        }
    }

    /// Counts a run and adds its cost.
    pub fn spend(&mut self, record: &RunRecord) {
        self.requests += 1;
        self.session.used(record);
        self.spent = self.spent.plus(Spent::on(&record.steps));
    }

    /// Returns the tokens of the conversation; 0 if they have not been counted yet.
    pub fn context(&self) -> u64 {
        self.session.context.unwrap_or_default()
    }

    /// Formats the status line: `model · directory · context 4% · 12,345 tokens · $0.0123 · 42s · keys`.
    pub fn line(&self, model: &str, directory: &str, tokens: u64, window: u64) -> String {
        let share = |context| format!("context {}%", percentage(context, window));
        let tokens = (tokens > 0).then(|| counted(tokens, "token"));
        let spent = Some(self.session.spent.dollars).filter(|spent| *spent != Usd::ZERO);
        let parts = [
            Some(model.to_owned()),
            Some(directory.to_owned()),
            self.session.context.map(share),
            tokens,
            spent.map(|spent| spent.to_string()),
            self.last_took.map(elapsed),
            Some("/help, Ctrl-D quits".to_owned()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }

    /// Describes the usage of the session, for an agent that is set up again for each session.
    pub fn cost_of_session(&self) -> String {
        let (spent, took) = (self.session.spent, elapsed(self.took));
        format!("this session: {spent}; since it was opened: {took}")
    }

    /// Describes the usage so far; `tokens` are those of the session.
    pub fn cost(&self, tokens: u64) -> String {
        let spent = match self.requests {
            0 => "nothing spent".to_owned(),
            _ => self.spent.cost(),
        };
        format!(
            "this session: {} tokens; since the start: {}, {spent}, {}",
            grouped(tokens),
            counted(self.requests, "request"),
            elapsed(self.took)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Purpose;
    use crate::model::usage::Usage;
    use crate::record::seconds::Seconds;
    use crate::record::step::Step;

    fn run(cost: Option<f64>, input_tokens: u64, tree: TreeState) -> RunRecord {
        let usage = Usage {
            input_tokens,
            ..Usage::default()
        };
        let step = |purpose, input_tokens| Step {
            purpose,
            usage: Some(Usage {
                input_tokens,
                ..usage
            }),
            cost: cost.map(|cost| cost.try_into().unwrap()),
            ..Step::default()
        };
        RunRecord {
            steps: vec![step(Purpose::STEP, input_tokens), step(Purpose::AUDIT, 7)],
            seconds: Seconds(Duration::from_secs(65)),
            tree,
            ..RunRecord::default()
        }
    }

    #[test]
    fn a_line_shows_the_status() {
        let mut tally = Tally::default();
        assert_eq!(
            tally.line("m", "demo", 0, 1000),
            "m · demo · /help, Ctrl-D quits"
        );
        assert_eq!(
            tally.cost(0),
            "this session: 0 tokens; since the start: 0 requests, nothing spent, 0s"
        );
        for (run, log) in [
            (run(Some(0.25), 110, TreeState::Changed), "logs/1"),
            (run(None, 120, TreeState::Unchanged), "logs/2"),
        ] {
            let log = Some(log.to_owned());
            tally.add(&RunRecord { log, ..run });
        }
        assert_eq!(
            tally.line("m", "demo", 12_345, 1000),
            "m · demo · context 12% · 12,345 tokens · $0.50 · 1m 05s · /help, Ctrl-D quits"
        );
        // As shown in the screen's status bar.
        assert!(tally.line("m", "demo", 0, 128_000).contains("context 0%"));
        for (code, context) in [(4, 120), (0, 30)] {
            let steps = vec![Step {
                purpose: Purpose::COMPRESSION,
                usage: Some(Usage::plain(130, 30)),
                ..Step::default()
            }];
            let mut compaction = RunRecord {
                steps,
                ..RunRecord::default()
            };
            compaction.exit.code = code;
            tally.session.used(&compaction);
            assert_eq!(tally.context(), context);
        }
        assert_eq!(tally.session.changed, ["logs/1"]);
        assert_eq!(
            tally.cost(12_345),
            "this session: 12,345 tokens; since the start: 2 requests, $0.50 and 2 calls at an unknown price, 2m 10s"
        );
    }
}
