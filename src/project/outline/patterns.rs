//! Patterns of the lines that declare names, by language. Pure.
//!
//! No language is parsed: each line is judged by itself, and nesting is inferred from indentation.

use std::sync::{LazyLock, OnceLock};

use clap::ValueEnum;
use regex::RegexSet;

/// Effect of a line that matches a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rule {
    /// A type whose members are public unless they say otherwise.
    Open,
    /// A type whose members are public only if they say so.
    Closed,
    /// A type like `Open`, but not listed itself.
    Group,
    /// A public name, unless it is in something without public names.
    Item,
    /// An item whose braces list names.
    List,
    /// A public name if it is directly in an open type or group.
    Member,
    /// A private name, which is not listed, nor is anything in it.
    Local,
    /// The members that follow are private.
    Hide,
    /// The members that follow are public.
    Show,
}

/// The patterns of a language.
pub struct Language {
    /// Extensions of its files, and names of its interpreters.
    names: &'static str,
    /// The effects and the patterns; the first that matches a line decides.
    rules: Vec<(Rule, &'static str)>,
    patterns: OnceLock<RegexSet>,
}

static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let blocks = include_str!("languages.txt").split("\n\n");
    blocks.filter_map(Language::read).collect()
});

impl Language {
    /// Parses a block of the table; `None` if it contains only comments.
    fn read(block: &'static str) -> Option<Self> {
        let mut lines = block.lines().filter(|line| !line.starts_with('#'));
        let names = lines.next()?;
        let rules = lines.filter_map(|line| {
            let (word, pattern) = line.split_once(' ')?;
            let rule = Rule::from_str(word, false).ok()?;
            Some((rule, pattern.trim_start()))
        });
        Some(Self {
            names,
            rules: rules.collect(),
            patterns: OnceLock::new(),
        })
    }

    /// Returns the language of a file by its extension, or if it has none, by the interpreter in its first line.
    pub fn of(path: &str, text: &str) -> Option<&'static Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let first = text.lines().next().filter(|line| line.starts_with("#!"));
        let mut words = match name.rsplit_once('.') {
            Some((_, extension)) => extension,
            None => first?,
        }
        .split(['/', ' ']);
        words.find_map(|word| {
            let word = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let is_of = |language: &&Self| language.names.split(' ').any(|name| name == word);
            LANGUAGES.iter().find(is_of)
        })
    }

    /// Returns the rule of the first pattern that matches the line.
    pub fn rule(&self, line: &str) -> Option<Rule> {
        let patterns = self.rules.iter().map(|(_, pattern)| pattern);
        #[expect(clippy::expect_used, reason = "constants, which the tests compile")]
        let set = || RegexSet::new(patterns).expect("valid patterns");
        let matches = self.patterns.get_or_init(set).matches(line);
        matches.iter().next().map(|first| self.rules[first].0)
    }
}
