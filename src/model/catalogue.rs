//! Facts about the vendors' models that the table lacks, such as successors and retirement dates. Pure.
//!
//! The facts are in `catalogue.json`, taken from the vendors' pages on the date given there as `read`. Each `entry` has
//! the format of an entry in `models.json`, and can be copied there.

use std::sync::LazyLock;

use chrono::{Days, NaiveDate};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::served::is_same;
use super::{ModelSpec, ReasoningEffort};
use crate::sys::positions::Entries;

/// The time before a model's retirement from which its users are warned.
const NEAR: Days = Days::new(30);

/// The embedded catalogue; a test checks that it can be read.
static CATALOGUE: LazyLock<Vec<(String, Known)>> =
    LazyLock::new(|| read(include_str!("catalogue.json")).unwrap_or_default());

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    models: Entries<'a>,
}

/// The known facts about a model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The model's entry for `models.json`; `None` if it is built in, or if its limits and prices are unknown.
    pub entry: Option<Box<RawValue>>,
    /// The reasoning efforts that it accepts; `None`: all of them.
    pub efforts: Option<Vec<ReasoningEffort>>,
    /// The service tiers besides the standard one.
    #[serde(default)]
    pub tiers: Vec<String>,
    /// True if the vendor caches only what cache marks request, since writing to its cache costs extra.
    #[serde(default, rename = "cacheMarks")]
    pub cache_marks: bool,
    /// The model's retirement, if known.
    pub end: Option<Retirement>,
}

/// The retirement of a model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retirement {
    /// The first day on which the model is unavailable.
    on: NaiveDate,
    becomes: Afterwards,
    /// The replacement that the vendor names.
    pub successor: String,
}

/// The vendor's handling of calls to a retired model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Afterwards {
    /// The successor answers the calls.
    Answered,
    /// The calls fail.
    Gone,
}

fn read(json: &str) -> serde_json::Result<Vec<(String, Known)>> {
    let file: File<'_> = serde_json::from_str(json)?;
    let entry = |(name, known): (_, &RawValue)| Ok((name, serde_json::from_str(known.get())?));
    file.models.0.into_iter().map(entry).collect()
}

/// Returns the facts about the model that the vendor calls `id`.
pub fn known(id: &str) -> Option<&'static Known> {
    found(|name| name == id)
}

/// Returns the facts about the vendor's model `id`, or about the model it is a version of.
pub fn matching(id: &str) -> Option<&'static Known> {
    found(|name| is_same(name, id))
}

fn found(is_it: impl Fn(&str) -> bool) -> Option<&'static Known> {
    let mut models = CATALOGUE.iter();
    models.find(|(name, _)| is_it(name)).map(|(_, known)| known)
}

/// Returns whether the model that the vendor calls `id` supports cache marks.
pub fn takes_cache_marks(id: &str) -> bool {
    matching(id).is_some_and(|known| known.cache_marks)
}

/// Returns the names of all models with an entry, separated by commas.
pub fn names() -> String {
    let name = |(name, known): &'static (String, Known)| known.entry.as_ref().map(|_| &**name);
    let names: Vec<_> = CATALOGUE.iter().filter_map(name).collect();
    names.join(", ")
}

/// Returns the successor to a model that is retired or soon will be.
pub fn successor(id: &str) -> Option<&'static str> {
    let end = known(id).and_then(|known| known.end.as_ref());
    end.map(|end| &*end.successor).or_else(|| retired(id))
}

/// Returns the successor to a model that Anthropic no longer serves.
pub fn retired(id: &str) -> Option<&'static str> {
    const RETIRED: [&str; 4] = ["claude-2", "claude-3", "claude-instant", "claude-1"];
    if !RETIRED.iter().any(|family| id.starts_with(family)) {
        return None;
    }
    let successors = ["claude-opus-5-5", "claude-haiku-5-5"];
    let is_named = |successor: &&str| id.contains(successor.split('-').nth(1).unwrap_or_default());
    let named = successors.into_iter().find(is_named);
    Some(named.unwrap_or("claude-sonnet-5-5"))
}

/// Explains how to use the successor: by its name in the table, or by adding it first.
pub(super) fn way_to(successor: &str, in_table: Option<&str>) -> String {
    match in_table {
        Some(name) => format!(
            "`--model {name}` asks the successor, and `selectionRules.default` in `agent-config/models.json` makes it the \
             default"
        ),
        None => format!("`code-commit models --add {successor}` adds the successor"),
    }
}

/// Returns the notice for a model that is retired or soon will be; `in_table` is the successor's name in the table.
pub fn near_end(id: &str, today: NaiveDate, in_table: Option<&str>) -> Option<String> {
    let end = known(id)?.end.as_ref()?;
    let Retirement { on, successor, .. } = end;
    if today.checked_add_days(NEAR)? < *on {
        return None;
    }
    let what = match end.becomes {
        Afterwards::Answered => {
            format!("from {on} on, its vendor has `{successor}` answer, at that model's price")
        }
        Afterwards::Gone => format!("from {on} on, its vendor does not serve it any more"),
    };
    Some(format!("{what}; {}", way_to(successor, in_table)))
}

/// Returns the model that answers in place of the one that the vendor calls `id`, if its vendor has announced that.
pub fn answering(id: &str, today: NaiveDate) -> Option<&'static str> {
    let end = known(id)?.end.as_ref()?;
    let is_answered = end.becomes == Afterwards::Answered && today >= end.on;
    is_answered.then_some(&end.successor)
}

impl ModelSpec {
    /// Returns whether the entry's price applies whatever model its server reports: the server is the user's own, and
    /// the model is not one of the vendors'.
    pub(crate) fn has_own_price(&self) -> bool {
        self.base_url.is_some() && known(&self.id).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_can_be_read_and_every_successor_is_in_it() {
        let models = read(include_str!("catalogue.json")).unwrap();
        for (name, known) in &models {
            let is_there = |end: &Retirement| models.iter().any(|model| model.0 == end.successor);
            assert!(known.end.as_ref().is_none_or(is_there), "{name}");
        }
        assert_eq!(
            names(),
            "gemini-3.8-flash, gemini-3.1-pro-preview, gpt-6.1-sol, claude-fable-5-1, claude-opus-5-5, \
             claude-sonnet-5-5, claude-haiku-5-5"
        );
    }

    #[test]
    fn an_end_is_reported_thirty_days_ahead_and_ever_after() {
        let told = |id, day: &str| near_end(id, day.parse().unwrap(), None);
        assert_eq!(told("gemini-2.5-pro", "2026-10-31"), None);
        for day in ["2026-11-01", "2026-12-01", "2027-05-05"] {
            assert_eq!(
                told("gemini-2.5-pro", day).unwrap(),
                "from 2026-12-01 on, its vendor has `gemini-3.8-flash` answer, at that model's price; \
                 `code-commit models --add gemini-3.8-flash` adds the successor"
            );
        }
        assert_eq!(told("gpt-5", "2026-11-10"), None);
        let gone = told("gpt-5", "2026-11-11").unwrap();
        assert!(gone.starts_with("from 2026-12-11 on, its vendor does not serve it any more;"));
        assert!(gone.contains("`code-commit models --add gpt-6.1-sol`"));
        assert_eq!(told("gpt-6.1-sol", "2030-01-01"), None);
    }

    #[test]
    fn a_successor_answers_from_the_announced_day_on() {
        for (id, day, answers) in [
            ("gemini-2.5-pro", "2026-11-30", None),
            ("gemini-2.5-pro", "2026-12-01", Some("gemini-3.8-flash")),
            ("gpt-5", "2027-01-01", None),
        ] {
            assert_eq!(answering(id, day.parse().unwrap()), answers, "{id} {day}");
        }
    }
}
