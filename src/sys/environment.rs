//! The process's environment, captured once by `main`: environment variables and clocks.
//!
//! All other code receives these as arguments, which keeps runs reproducible and lets tests run in parallel.

mod secrets;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use chrono::{DateTime, FixedOffset, Local};
use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use self::secrets::{SHORTEST_SECRET, query_secrets};

/// Snapshot of the environment variables.
#[derive(Debug, Clone, Default)]
pub struct Environment(HashMap<OsString, OsString>);

impl Environment {
    /// Returns the variable's value; `None` if it is unset, empty or not UTF-8.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.os(name)?.to_str()
    }

    /// Returns the variable's value; `None` if it is unset or empty.
    pub fn os(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        let value = self.0.get(name.as_ref())?;
        Some(value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// Returns whether the variable is set to the empty string.
    pub fn is_empty(&self, name: &str) -> bool {
        let value = self.0.get(OsStr::new(name));
        value.is_some_and(|value| value.is_empty())
    }

    /// Returns a copy in which unset or empty variables are taken from `defaults`.
    pub fn with_defaults(&self, defaults: &Self) -> Self {
        let is_set = |(_, value): &(&OsString, &OsString)| !value.is_empty();
        let all = defaults.0.iter().chain(&self.0).filter(is_set);
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// Returns the names of the variables whose value is UTF-8 and satisfies the predicate `such`.
    pub fn names_where(&self, such: impl Fn(&str) -> bool) -> Vec<OsString> {
        let is_such = |value: &OsString| value.to_str().is_some_and(&such);
        let found = self.0.iter().filter(|(_, value)| is_such(value));
        found.map(|(name, _)| name.clone()).collect()
    }

    /// Returns the names of the variables that hold a secret, judging by their names or values.
    pub fn secret_names(&self) -> impl Iterator<Item = &OsStr> {
        let found = self.0.iter().filter(|(name, value)| {
            secrets::is_secret(&name.to_string_lossy(), &value.to_string_lossy())
        });
        found.map(|(name, _)| name.as_os_str())
    }

    /// Returns the texts to search for in order to redact the values of secret variables.
    pub fn secrets(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let names = self.secret_names();
        let values = names.filter_map(|name| self.os(name)?.to_str());
        values.flat_map(secrets::searched)
    }

    /// Returns the first of `names` that is set, with its value.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }
}

#[cfg(test)]
impl Environment {
    /// Creates an environment with these variables, for tests.
    pub fn of(variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter();
        variables
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }
}

impl FromIterator<(OsString, OsString)> for Environment {
    fn from_iter<I: IntoIterator<Item = (OsString, OsString)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

/// A source of time, passed as an argument.
pub trait Clock: Sync {
    /// Returns the wall-clock time in the local time zone.
    fn now(&self) -> DateTime<FixedOffset>;
    /// Returns the time since some fixed point; never decreases.
    fn elapsed(&self) -> Duration;
    /// Returns the name of the local time zone at that time, such as `MST` or `+03`; `None` if unknown.
    fn zone(&self, _at: DateTime<FixedOffset>) -> Option<String> {
        None
    }
}

/// A clock that can show the times of a recording, so that a replay takes no time.
pub struct RecordedClock<'c> {
    inner: &'c dyn Clock,
    recorded: Mutex<Option<Duration>>,
}

impl<'c> RecordedClock<'c> {
    /// Creates a clock that follows `inner` until it is [`set`](Self::set); the date always comes from `inner`.
    pub fn new(inner: &'c dyn Clock) -> Self {
        Self {
            inner,
            recorded: Mutex::default(),
        }
    }

    /// Makes the clock show this elapsed time until it is set again.
    pub fn set(&self, elapsed: Duration) {
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(elapsed);
    }
}

impl Clock for RecordedClock<'_> {
    fn now(&self) -> DateTime<FixedOffset> {
        self.inner.now()
    }

    fn elapsed(&self) -> Duration {
        let recorded = *self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.unwrap_or_else(|| self.inner.elapsed())
    }
}

/// The system's wall clock and monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Checks that the wall-clock time `now` is plausible: before 1970, no certificate is valid, and time stamps make
    /// no sense.
    ///
    /// # Errors
    /// Fails if `now` is before 1970.
    pub fn check(now: SystemTime) -> Result<(), &'static str> {
        let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH);
        since_1970
            .map(drop)
            .map_err(|_| "the clock shows a time before 1970")
    }

    /// Creates a clock whose `Clock::elapsed` counts from now.
    pub fn start() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> DateTime<FixedOffset> {
        DateTime::<Local>::from(SystemTime::now()).fixed_offset()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn zone(&self, at: DateTime<FixedOffset>) -> Option<String> {
        let timestamp = Timestamp::from_second(at.timestamp()).ok()?;
        let zone = TimeZone::try_system().ok()?;
        let found = zone.to_offset_info(timestamp);
        let is_same = found.offset().seconds() == at.offset().local_minus_utc();
        is_same.then(|| found.abbreviation().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_counts_where_nothing_is_set() {
        let own = Environment::of(&[("A", "own"), ("B", ""), ("D", "")]);
        let merged = own.with_defaults(&Environment::of(&[("A", "a"), ("B", "b"), ("C", "")]));
        let value = |name| merged.get(name);
        assert_eq!((value("A"), value("B")), (Some("own"), Some("b")));
        assert_eq!((value("C"), value("D")), (None, None));
    }

    #[test]
    fn a_clock_from_before_the_epoch_is_refused() {
        let second = Duration::from_secs(1);
        assert!(SystemClock::check(SystemTime::UNIX_EPOCH).is_ok());
        assert!(SystemClock::check(SystemTime::UNIX_EPOCH - second).is_err());
    }

    #[test]
    fn a_zone_is_named_only_at_its_own_offset() {
        let clock = SystemClock::start();
        let nowhere = FixedOffset::east_opt(86_340).unwrap();
        assert_eq!(clock.zone(clock.now().with_timezone(&nowhere)), None);
    }
}
