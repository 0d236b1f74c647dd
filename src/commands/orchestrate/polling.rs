//! Timing of the requests for a branch's state. Pure.

use std::time::Duration;

use crate::record::orchestration::Polling;

/// The waits between two questions.
#[derive(Debug, Clone)]
pub struct PollDelays {
    limits: Polling,
    next: Duration,
}

impl PollDelays {
    /// Creates the state before the first wait.
    #[must_use]
    pub fn new(limits: Polling) -> Self {
        Self {
            limits,
            next: limits.initial.0,
        }
    }

    /// The next wait, where so much time has passed since the agent was started; the last one ends with the time that
    /// it may take. `None`: that is over.
    pub fn next(&mut self, waited: Duration) -> Option<Duration> {
        let Polling {
            max,
            timeout,
            factor,
            ..
        } = self.limits;
        let (max, timeout) = (max.0, timeout.0);
        let left = timeout.checked_sub(waited).filter(|left| !left.is_zero())?;
        let delay = self.next.min(max);
        let longer = Duration::try_from_secs_f64(delay.as_secs_f64() * factor);
        self.next = longer.unwrap_or(max);
        Some(delay.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::seconds::Seconds;

    /// The waits where nothing but waiting takes time.
    fn waits(initial: f64, max: f64, timeout: f64, factor: f64) -> Vec<f64> {
        let seconds = |seconds| Seconds(Duration::from_secs_f64(seconds));
        let limits = Polling {
            initial: seconds(initial),
            max: seconds(max),
            timeout: seconds(timeout),
            factor,
        };
        let (mut delays, mut waited) = (PollDelays::new(limits), Duration::ZERO);
        let waits = std::iter::from_fn(|| {
            let delay = delays.next(waited)?;
            waited += delay;
            Some(delay.as_secs_f64())
        });
        waits.collect()
    }

    #[test]
    fn waits_grow_up_to_the_longest_and_end_with_the_timeout() {
        assert_eq!(
            waits(2.0, 30.0, 100.0, 2.0),
            [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 10.0]
        );
        assert_eq!(waits(1.0, 1.5, 4.0, 10.0), [1.0, 1.5, 1.5]);
        assert_eq!(waits(0.25, 1.0, 2.0, 1.5), [0.25, 0.375, 0.5625, 0.8125]);
        // No factor is too large for the clock.
        assert_eq!(waits(1.0, 2.0, 5.0, f64::MAX), [1.0, 2.0, 2.0]);
    }

    #[test]
    fn what_the_questions_took_counts() {
        let limits = Polling {
            initial: Seconds(Duration::from_secs(2)),
            max: Seconds(Duration::from_secs(30)),
            timeout: Seconds(Duration::from_secs(60)),
            factor: 2.0,
        };
        let mut delays = PollDelays::new(limits);
        for (waited, expected) in [
            (0, Some(2)),
            (5, Some(4)),
            (57, Some(3)),
            (60, None),
            (90, None),
        ] {
            let delay = delays.next(Duration::from_secs(waited));
            assert_eq!(delay, expected.map(Duration::from_secs), "{waited}");
        }
    }
}
