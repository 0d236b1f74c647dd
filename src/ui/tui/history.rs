//! The history of submissions for Up, Down and the search by Ctrl-R. Pure, except that it reads the file of
//! `History` once and adds to it.
//!
//! Guarantees that browsing the history does not lose the text in the input.

use crate::ui::history::History;

/// Commands followed by a secret; their arguments are never stored.
const SECRET_COMMANDS: [&str; 2] = ["/login", "/logout"];

/// Returns whether `text` may contain a key being typed, which must be neither stored nor shown.
pub fn is_secret(text: &str) -> bool {
    let command = text.split_whitespace().next();
    command.is_some_and(|command| SECRET_COMMANDS.contains(&command))
}

/// The entries of earlier sessions and of this one, with the current position.
#[derive(Debug, Default)]
pub struct Recall {
    file: Option<History>,
    entries: Vec<String>,
    /// The entry shown in the input; `None` if the user's own draft is.
    at: Option<usize>,
    /// The draft in the input before an entry was shown.
    draft: String,
}

impl Recall {
    /// Loads the entries of `file`; without a file, the history lasts only for this session.
    pub fn new(file: Option<History>) -> Self {
        let entries = file.as_ref().map(History::entries).unwrap_or_default();
        Self {
            file,
            entries,
            ..Self::default()
        }
    }

    /// Adds a submission, unless it is blank, secret or the same as the last one.
    pub fn add(&mut self, text: &str) {
        self.reset();
        if text.trim().is_empty() || is_secret(text) {
            return;
        }
        if let Some(file) = &self.file {
            file.add(text);
        }
        self.keep(text);
    }

    /// Adds a text for this session only, unless it is secret or the same as the last one.
    pub fn keep(&mut self, text: &str) {
        if !is_secret(text) && self.entries.last().is_none_or(|last| last != text) {
            self.entries.push(text.to_owned());
        }
    }

    /// Makes the current text of the input the draft.
    pub fn reset(&mut self) {
        self.at = None;
        self.draft.clear();
    }

    /// Returns the entry before the current one; `now` is the text in the input.
    pub fn older(&mut self, now: &str) -> Option<&str> {
        let at = self.at.unwrap_or(self.entries.len()).checked_sub(1)?;
        if self.at.is_none() {
            now.clone_into(&mut self.draft);
        }
        self.at = Some(at);
        self.entries.get(at).map(String::as_str)
    }

    /// Returns the entry after the current one, and the draft after the last one.
    pub fn newer(&mut self) -> Option<&str> {
        let at = self.at? + 1;
        self.at = (at < self.entries.len()).then_some(at);
        Some(self.entries.get(at).map_or(&self.draft, |entry| entry))
    }

    /// Returns the index of the latest entry that contains `wanted`, ignoring case: of those before index `before`, if
    /// given.
    pub fn find(&self, wanted: &str, before: Option<usize>) -> Option<usize> {
        let wanted = wanted.to_lowercase();
        let mut earlier = self.entries.iter().take(before.unwrap_or(usize::MAX));
        earlier.rposition(|entry| entry.to_lowercase().contains(&wanted))
    }

    /// Returns the entry at this index.
    pub fn entry(&self, at: usize) -> Option<&str> {
        self.entries.get(at).map(String::as_str)
    }
}

/// A search through the history, started by Ctrl-R.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HistorySearch {
    /// The text to look for.
    pub wanted: String,
    /// The index of the matching entry.
    pub at: Option<usize>,
}

impl HistorySearch {
    /// Returns the part of a match to show: its matching line, cut to the given width around the searched text.
    pub fn seen(&self, found: &str, columns: usize) -> String {
        let wanted = self.wanted.to_lowercase();
        let place = |line: &str| Some(line.to_lowercase().split_once(&wanted)?.0.chars().count());
        let mut lines = found.lines();
        let matching = lines.find_map(|line| place(line).map(|place| (line, place)));
        let (line, place) = matching.unwrap_or_default();
        if place + wanted.len() < columns {
            return line.to_owned();
        }
        let rest = line.chars().skip(place.saturating_sub(columns / 2));
        std::iter::once('…').chain(rest).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Redactor;

    fn recall(entries: &[&str]) -> Recall {
        let mut recall = Recall::default();
        for entry in entries {
            recall.add(entry);
        }
        recall
    }

    #[test]
    fn draft_comes_back_after_the_last_entry() {
        let mut recall = recall(&["one", "two", "two"]);
        assert_eq!(recall.newer(), None);
        assert_eq!(recall.older("draft"), Some("two"));
        assert_eq!(recall.older("two"), Some("one"));
        assert_eq!(recall.older("one"), None);
        assert_eq!(recall.newer(), Some("two"));
        assert_eq!(recall.newer(), Some("draft"));
        assert_eq!(recall.newer(), None);
    }

    #[test]
    fn a_search_goes_back_from_the_latest() {
        let recall = recall(&["Fix the lexer", "run", "fix it"]);
        assert_eq!(recall.find("FIX", None), Some(2));
        assert_eq!(recall.find("FIX", Some(2)), Some(0));
        assert_eq!(recall.find("FIX", Some(0)), None);
        assert_eq!(recall.entry(0), Some("Fix the lexer"));
    }

    #[test]
    fn no_key_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("history.jsonl");
        let file = History::of(path, &Redactor::new(["known-key-1234"]));
        let mut first = Recall::new(Some(file.clone()));
        for text in [
            "/login abcdef",
            " /login x",
            "/logout",
            "",
            "use known-key-1234",
            "fine",
        ] {
            first.add(text);
        }
        assert_eq!(Recall::new(Some(file)).entries, ["fine"]);
        assert!(!first.entries.iter().any(|entry| entry.contains("login")));
    }
}
