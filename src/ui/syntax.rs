//! Highlights source code. Pure.
//!
//! Guarantees that the work is bounded: in bytes, per file and in total, by the length of a line, and by the
//! time that the caller reports. Anything beyond is plain text.

use std::sync::LazyLock;
use std::time::Duration;

use syntect::dumps::from_uncompressed_data;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// The maximum number of bytes highlighted on a page.
const ALL: usize = 400 << 10;
/// The maximum combined size of a file's two versions, in bytes.
pub const FILE: usize = 96 << 10;
/// The maximum length of a highlighted line, in bytes; matching time grows with the square of the length.
const LINE: usize = 400;
/// The time limit for all highlighting.
const TIME: Duration = Duration::from_secs(3);
/// The maximum length of a first line used to detect the language, in bytes.
const FIRST_LINE: usize = 200;

/// The CSS class of a piece of text, which determines its colour.
pub type CssClass = &'static str;

/// The class for each scope prefix; the first match applies.
#[rustfmt::skip]
const RULES: [(CssClass, &str); 10] = [
    ("c", "comment punctuation.definition.comment"),
    ("h", "punctuation.definition.heading entity.name.section markup.heading"),
    ("s", "string punctuation.definition.string markup.raw markup.inline.raw"),
    ("n", "constant support.constant storage.type.numeric"),
    ("f", "entity.name.function entity.name.macro entity.other.attribute-name support.function support.macro"),
    ("f", "support.type.property-name variable.function variable.annotation meta.property-name"),
    ("t", "support.type support.class support.module entity.other.inherited-class"),
    ("p", "keyword.operator punctuation"),
    ("k", "keyword storage variable.language entity.name.tag"),
    ("t", "entity.name"),
];

/// The pieces of a line, each with its end and its class.
pub type Pieces = Vec<(usize, Option<CssClass>)>;

/// The syntaxes that the build script has picked. Their patterns are compiled once, when they are first needed.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(|| {
    let picked = include_bytes!(concat!(env!("OUT_DIR"), "/syntaxes.bin"));
    from_uncompressed_data(picked).unwrap_or_default()
});

/// A syntax highlighter with a budget, which all files share.
pub struct Highlighter<'a> {
    rules: Vec<(Scope, CssClass)>,
    left: usize,
    elapsed: &'a dyn Fn() -> Duration,
    until: Duration,
}

impl<'a> Highlighter<'a> {
    /// Creates a highlighter. `elapsed` returns the time since some fixed point.
    pub fn new(elapsed: &'a dyn Fn() -> Duration) -> Self {
        let rules = RULES.iter().flat_map(|(class, scopes)| {
            let scopes = scopes.split_whitespace();
            scopes.filter_map(move |scope| Some((Scope::new(scope).ok()?, *class)))
        });
        Self {
            rules: rules.collect(),
            left: ALL,
            until: elapsed() + TIME,
            elapsed,
        }
    }

    /// Highlights the lines of a file's two versions, given without line endings; `None` for plain text. When
    /// time runs out, only the first lines have pieces.
    pub fn of(&mut self, path: &str, versions: [&[String]; 2]) -> Option<[Vec<Pieces>; 2]> {
        let lines = versions.iter().copied().flatten();
        let bytes: usize = lines.map(|line| line.len() + 1).sum();
        if bytes > FILE.min(self.left) || self.is_late() {
            return None;
        }
        let [before, after] = versions.map(<[String]>::first);
        let first_line = after.or(before).map_or("", String::as_str);
        let syntax = syntax(path, first_line)?;
        let colored = versions.map(|lines| self.lines(syntax, lines));
        self.left -= bytes;
        Some(colored)
    }

    /// Highlights code in the named language; `None` if the language is unknown or the code too long. Does not
    /// count toward the budget of pages.
    pub fn code(&self, language: &str, code: &str) -> Option<Vec<Pieces>> {
        if code.len() > FILE {
            return None;
        }
        let syntax = SYNTAXES.find_syntax_by_token(language)?;
        let lines: Vec<String> = code.split('\n').map(str::to_owned).collect();
        Some(self.lines(syntax, &lines))
    }

    fn lines(&self, syntax: &SyntaxReference, lines: &[String]) -> Vec<Pieces> {
        let (mut state, mut scopes) = (ParseState::new(syntax), ScopeStack::new());
        let in_time = lines.iter().take_while(|_| !self.is_late());
        let pieces = in_time.map_while(|line| self.line(&mut state, &mut scopes, line));
        pieces.collect()
    }

    fn is_late(&self) -> bool {
        (self.elapsed)() > self.until
    }

    fn line(&self, state: &mut ParseState, scopes: &mut ScopeStack, line: &str) -> Option<Pieces> {
        let line = if line.len() > LINE { "" } else { line };
        let operations = state.parse_line(&format!("{line}\n"), &SYNTAXES).ok()?;
        let mut pieces: Pieces = Vec::new();
        let mut from = 0;
        for (at, operation) in operations {
            let at = at.min(line.len());
            self.piece(&mut pieces, scopes, from, at);
            scopes.apply(&operation).ok()?;
            from = at;
        }
        self.piece(&mut pieces, scopes, from, line.len());
        Some(pieces)
    }

    /// Adds a piece, merging it with the previous one if the class is the same.
    fn piece(&self, pieces: &mut Pieces, scopes: &ScopeStack, from: usize, to: usize) {
        if from >= to {
            return;
        }
        let class = self.class(scopes);
        match pieces.last_mut() {
            Some((end, last)) if *last == class => *end = to,
            _ => pieces.push((to, class)),
        }
    }

    /// Returns the class of the innermost scope that has one.
    fn class(&self, scopes: &ScopeStack) -> Option<CssClass> {
        scopes.as_slice().iter().rev().find_map(|scope| {
            let mut rules = self.rules.iter();
            let (_, class) = rules.find(|(prefix, _)| prefix.is_prefix_of(*scope))?;
            Some(*class)
        })
    }
}

/// Detects a file's language by its name, extension or first line.
fn syntax(path: &str, first_line: &str) -> Option<&'static SyntaxReference> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let by_ending = || SYNTAXES.find_syntax_by_extension(name.rsplit_once('.')?.1);
    let tells = first_line.starts_with("#!") && first_line.len() <= FIRST_LINE;
    let by_first_line = || SYNTAXES.find_syntax_by_first_line(first_line);
    SYNTAXES
        .find_syntax_by_extension(name)
        .or_else(by_ending)
        .or_else(|| tells.then(by_first_line)?)
        .filter(|syntax| syntax.name != "Plain Text")
}

#[cfg(test)]
mod tests;
