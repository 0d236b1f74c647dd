//! The course of `--strategy search`: the initial state of each attempt, and the final one. Pure.

use std::collections::BTreeMap;

use crate::edit::VerifiedEdits;
use crate::exec::build_script::BuildStatus;
use crate::model::StepId;
use crate::record::finding::Finding;
use crate::record::search::{SearchRecord, StateRecord};
use crate::sys::numbers::counted;

/// Number of states described to an attempt that starts over.
const LISTED: usize = 3;

/// Files by path; `None` for one that was removed.
pub type Files = BTreeMap<String, Option<String>>;

/// Returns the files that edits write or remove.
pub fn files_of(edits: &VerifiedEdits) -> Files {
    let owned = |(path, text): (&str, Option<&str>)| (path.to_owned(), text.map(str::to_owned));
    edits.all().map(owned).collect()
}

/// A state of the project's files that failed its build.
#[derive(Debug, Clone)]
pub struct State {
    /// The step that made it.
    pub step: StepId,
    /// The files that the replies up to it have changed.
    pub files: Files,
    /// The files of its own reply.
    pub edits: Files,
    /// The findings in the build's output.
    pub findings: Vec<Finding>,
    /// The number of lines added and removed since the run began.
    pub lines: u64,
    /// The outcome of its build.
    pub status: BuildStatus,
    /// The build's output, for the model.
    pub output: String,
}

impl State {
    /// Returns the rank by its build; lower is better. A build that did not complete has not found all problems, and
    /// ranks last.
    fn rank(&self) -> (bool, usize) {
        (!self.status.is_complete(), self.findings.len())
    }
}

/// The states seen so far.
#[derive(Debug, Default)]
pub struct Search {
    /// The states, in order.
    pub states: Vec<State>,
    record: Vec<StateRecord>,
    /// The index of the state that the running or next attempt repairs; `None` if it begins with the first query, on
    /// the project as it was before the run.
    pub from: Option<usize>,
}

impl Search {
    /// Adds the state that an attempt has led to, and chooses the one that the next attempt repairs.
    ///
    /// A state, edits or findings that were seen before are a dead end, and so is the state that led there. A state
    /// with more findings than the one before is not built upon.
    pub fn add(&mut self, state: State) {
        let (at, before) = (self.states.len(), self.from);
        let is_seen = |seen: &State| {
            seen.files == state.files
                || seen.edits == state.edits
                || kinds(&seen.findings) == kinds(&state.findings)
        };
        let is_dead_end = self.states.iter().any(is_seen);
        self.push(state, is_dead_end);
        if is_dead_end {
            if let Some(before) = before {
                self.record[before].is_dead_end = true;
            }
            self.from = None;
            return;
        }
        let best = self.best_of(|other| !self.record[other].is_dead_end);
        let rank = |state: usize| self.states[state].rank();
        let is_worse = best.is_some_and(|best| rank(at) > rank(before.unwrap_or(best)));
        self.from = best.filter(|_| is_worse).or(Some(at));
    }

    /// Adds the states of attempts that were made in parallel, and returns the best one, which is repaired.
    pub fn begin(&mut self, states: impl IntoIterator<Item = State>) -> Option<usize> {
        for state in states {
            self.push(state, false);
        }
        self.from = self.best();
        self.from
    }

    fn push(&mut self, state: State, is_dead_end: bool) {
        let before = self.from;
        self.record.push(StateRecord {
            step: state.step.to_string(),
            from: before.map(|before| self.record[before].step.clone()),
            findings: state.findings.len(),
            lines: state.lines,
            is_dead_end,
        });
        self.states.push(state);
    }

    /// Returns the index of the state with the best rank and, among equals, the smallest change.
    pub fn best(&self) -> Option<usize> {
        self.best_of(|_| true)
    }

    fn best_of(&self, counts: impl Fn(usize) -> bool) -> Option<usize> {
        let states = (0..self.states.len()).filter(|state| counts(*state));
        states.min_by_key(|at| (self.states[*at].rank(), self.states[*at].lines))
    }

    /// Describes the latest attempts to one that starts over, one per line.
    pub fn tried(&self) -> String {
        let states = &self.states[self.states.len().saturating_sub(LISTED)..];
        let lines = states.iter().map(|state| {
            let paths: Vec<&str> = state.edits.keys().map(String::as_str).collect();
            let files = match &*paths {
                [] => "nothing".to_owned(),
                paths => paths.join(", "),
            };
            let found = counted(state.findings.len() as u64, "finding");
            let first = state.findings.first().map(described).unwrap_or_default();
            format!("- an attempt that changed {files} failed with {found}: {first}\n")
        });
        lines.collect()
    }

    /// Returns the record of the search; if no state has passed, `kept` is the index of the state that was left in
    /// place.
    pub fn record(&self, kept: Option<usize>) -> Option<SearchRecord> {
        let why = kept.map(|kept| {
            let rank @ (is_incomplete, found) = self.states[kept].rank();
            match self.states.iter().map(State::rank).max() {
                Some((true, _)) if !is_incomplete => {
                    format!("the fewest findings ({found}) of the builds that came to their end")
                }
                Some(most) if most > rank => {
                    let most = most.1;
                    format!("the fewest findings ({found}; others up to {most})")
                }
                _ => {
                    let found = counted(found as u64, "finding");
                    format!("the smallest change of those with {found}")
                }
            }
        });
        (!self.states.is_empty()).then(|| SearchRecord {
            states: self.record.clone(),
            kept: kept.map(|kept| self.record[kept].step.clone()),
            why,
        })
    }
}

/// Findings without line numbers, which edits shift.
fn kinds(findings: &[Finding]) -> Vec<(Option<&str>, &str, &str)> {
    let mut kinds: Vec<_> = findings
        .iter()
        .map(|finding| {
            let (tool, message) = (finding.tool.as_str(), finding.message.as_str());
            (finding.file.as_deref(), tool, message)
        })
        .collect();
    kinds.sort_unstable();
    kinds
}

fn described(finding: &Finding) -> String {
    let message = &finding.message;
    match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: {message}"),
        (Some(file), None) => format!("{file}: {message}"),
        (None, _) => message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a state from its content, reply, findings and lines.
    fn state(step: u16, (content, edits, findings, lines): (&str, &str, &str, u64)) -> State {
        let file = |text: &str| Files::from([("a".to_owned(), Some(text.to_owned()))]);
        State {
            step: StepId::repair(step),
            files: file(content),
            edits: file(edits),
            findings: findings
                .chars()
                .enumerate()
                .map(|(line, found)| Finding {
                    file: None,
                    line: Some(line + 1),
                    tool: "cc".to_owned(),
                    message: found.to_string(),
                })
                .collect(),
            lines,
            status: BuildStatus::Exited(if findings.contains('!') { 127 } else { 1 }),
            output: String::new(),
        }
    }

    #[test]
    fn each_attempt_begins_where_there_is_most_hope() {
        for (name, states, expected, best) in [
            (
                "ever fewer",
                &[
                    ("1", "1", "abc", 1),
                    ("2", "2", "ab", 2),
                    ("3", "3", "a", 3),
                ][..],
                &[Some(0), Some(1), Some(2)][..],
                2,
            ),
            (
                "as many others",
                &[("1", "1", "ab", 1), ("2", "2", "cd", 2)],
                &[Some(0), Some(1)],
                0,
            ),
            (
                "more",
                &[
                    ("1", "1", "a", 1),
                    ("2", "2", "abcdefghi", 2),
                    ("3", "3", "abcdefghj", 3),
                ],
                &[Some(0), Some(0), Some(0)],
                0,
            ),
            (
                "the same state",
                &[("1", "1", "a", 1), ("2", "2", "b", 2), ("1", "3", "c", 1)],
                &[Some(0), Some(1), None],
                0,
            ),
            (
                "the same edits",
                &[("1", "1", "a", 1), ("2", "1", "b", 2)],
                &[Some(0), None],
                0,
            ),
            (
                "the same findings in other lines",
                &[("1", "1", "ab", 1), ("2", "2", "ba", 2)],
                &[Some(0), None],
                0,
            ),
            (
                "1, 9, 9, 9",
                &[
                    ("1", "1", "a", 1),
                    ("2", "2", "bcdefghij", 2),
                    ("3", "3", "bcdefghij", 2),
                    ("4", "4", "bcdefghij", 2),
                ],
                &[Some(0), Some(0), None, None],
                0,
            ),
            (
                "afresh and better",
                &[("1", "1", "ab", 1), ("2", "2", "ab", 2), ("3", "3", "c", 3)],
                &[Some(0), None, Some(2)],
                2,
            ),
            (
                "afresh and worse than what is spent",
                &[("1", "1", "a", 1), ("2", "2", "a", 2), ("3", "3", "cd", 3)],
                &[Some(0), None, Some(2)],
                0,
            ),
            (
                "a build that came to no end",
                &[("1", "1", "!", 1), ("2", "2", "abc", 2), ("3", "3", "!", 3)],
                &[Some(0), Some(1), None],
                1,
            ),
            (
                "a smaller change",
                &[("1", "1", "a", 9), ("2", "2", "b", 2)],
                &[Some(0), Some(1)],
                1,
            ),
        ] {
            let mut search = Search::default();
            let next = (0..).zip(states).map(|(step, one)| {
                search.add(state(step, *one));
                search.from
            });
            assert_eq!(next.collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(search.best(), Some(best), "{name}");
        }
    }

    #[test]
    fn a_build_that_came_to_no_end_is_worse_than_any_number_of_findings() {
        let mut search = Search::default();
        let attempts = [("1", "1", "!", 1), ("2", "2", "ab", 2), ("3", "3", "a", 3)];
        let states = (0..).zip(attempts).map(|(step, one)| state(step, one));
        assert_eq!(search.begin(states), Some(2));
        let why = |kept| search.record(Some(kept)).unwrap().why.unwrap();
        assert_eq!(
            why(2),
            "the fewest findings (1) of the builds that came to their end"
        );
    }

    #[test]
    fn attempts_made_side_by_side_are_no_dead_ends_and_the_best_is_repaired() {
        let mut search = Search::default();
        let attempts = [("1", "1", "ab", 1), ("2", "2", "c", 3), ("3", "3", "c", 2)];
        let states = (0..).zip(attempts).map(|(step, one)| state(step, one));
        assert_eq!(search.begin(states), Some(2));
        search.add(state(3, ("4", "4", "de", 1)));
        assert_eq!(search.from, Some(2));
        let record = search.record(None).unwrap();
        assert!(record.states.iter().all(|state| !state.is_dead_end));
        assert_eq!(record.states[3].from.as_ref(), Some(&record.states[2].step));
    }

    #[test]
    fn a_fresh_attempt_is_told_of_three_and_the_record_says_why_one_is_kept() {
        let mut search = Search::default();
        assert_eq!((search.best(), search.record(None)), (None, None));
        for (step, findings) in (0..).zip(["a", "bc", "de", "fg"]) {
            let content = format!("{step}");
            search.add(state(step, (&content, &content, findings, 1)));
        }
        let line = |found| format!("- an attempt that changed a failed with 2 findings: {found}\n");
        assert_eq!(search.tried(), ["b", "d", "f"].map(line).concat());
        let record = search.record(search.best()).unwrap();
        assert_eq!(record.kept.as_ref(), Some(&record.states[0].step));
        let why = "the fewest findings (1; others up to 2)";
        assert_eq!(record.why.as_deref(), Some(why));
        assert_eq!(record.states[3].from, record.kept);
    }
}
