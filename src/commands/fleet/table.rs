//! The live table of a campaign. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::price::Usd;
use crate::sys::numbers::{counted, elapsed, grouped};
use crate::sys::text::truncated;

/// Maximum width of the id of a running task, in columns.
const LONGEST_ID: usize = 20;

/// The state of a campaign, as shown to the user.
#[derive(Debug, Default)]
pub struct Progress<'p> {
    /// The number of all tasks.
    pub tasks: usize,
    /// The number of tasks that have ended, by the names of their exits.
    pub ended: BTreeMap<&'p str, usize>,
    /// The running tasks, each with the time since it began.
    pub running: Vec<(&'p str, Duration)>,
    /// The cost of all calls.
    pub spent: Usd,
    /// The limit on the cost.
    pub limit: Option<Usd>,
    /// The time of day until which calls wait, if a server's rate limit is exhausted.
    pub paced: Option<String>,
    /// The number of tasks that have ended since the campaign was started this time, and the time
    /// since then.
    pub pace: (usize, Duration),
}

impl Progress<'_> {
    /// Formats the table: the total, the running tasks, and the outcomes of the others.
    pub fn lines(&self) -> Vec<String> {
        let ended: usize = self.ended.values().sum();
        let of = |limit| format!(" of {limit}");
        let limit = self.limit.map_or_else(String::new, of);
        let (tasks, spent) = (counted(self.tasks as u64, "task"), self.spent);
        let sum = format!(
            "{} of {tasks}  {spent}{limit}{}",
            grouped(ended as u64),
            self.rate()
        );
        let running = self.running.iter().map(|(id, time)| {
            let id = truncated(id, LONGEST_ID);
            format!("{id} {}", elapsed(*time))
        });
        let end = |(name, count): (&&str, &usize)| format!("{name} {}", grouped(*count as u64));
        let ends = self.ended.iter().map(end);
        let line = |label: &str, text: String| format!("{label:>7}  {text}");
        let mut lines = vec![
            line("fleet", sum),
            line("running", running.collect::<Vec<_>>().join(", ")),
            line("ended", ends.collect::<Vec<_>>().join(", ")),
        ];
        let paced = self.paced.iter();
        lines.extend(paced.map(|time| line("", format!("paced until {time}"))));
        lines
    }

    /// Formats the number of tasks that end per minute; empty if it is not known yet.
    fn rate(&self) -> String {
        let (ended, time) = self.pace;
        if ended == 0 || time < Duration::from_secs(1) {
            return String::new();
        }
        #[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
        let rate = ended as f64 * 60.0 / time.as_secs_f64();
        format!("  {rate:.1} a minute")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_the_sum_what_runs_and_how_the_others_have_ended() {
        let progress = Progress {
            tasks: 1000,
            ended: [("build-failed", 12), ("done", 200)].into(),
            running: vec![
                ("api", Duration::from_secs(65)),
                ("web-7", Duration::from_secs(3)),
                ("a-name-that-leaves-no-room", Duration::ZERO),
            ],
            spent: Usd::try_from(12.5).unwrap(),
            limit: Usd::try_from(50.0).ok(),
            pace: (17, Duration::from_mins(5)),
            paced: Some("12:00:05".to_owned()),
        };
        assert_eq!(
            progress.lines(),
            [
                "  fleet  212 of 1,000 tasks  $12.50 of $50.00  3.4 a minute",
                "running  api 1m 05s, web-7 3s, a-name-that-leaves-… 0s",
                "  ended  build-failed 12, done 200",
                "         paced until 12:00:05",
            ]
        );
        let nothing = Progress {
            tasks: 1,
            ..Progress::default()
        };
        assert_eq!(nothing.lines()[0], "  fleet  0 of 1 task  $0");
    }
}
