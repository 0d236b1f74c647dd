//! Colours program text by its syntax. Pure.
//!
//! Guarantees that the work is bounded: by bytes, for each file and for all of them, by the length of a
//! line, and by the time that the caller tells. What is beyond is plain text.

use std::cell::OnceCell;
use std::time::Duration;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

/// How many bytes of text are coloured on a page.
const ALL: usize = 400 << 10;
/// How many bytes of one file's two versions are coloured.
pub const FILE: usize = 96 << 10;
/// A longer line is not coloured, in bytes: what patterns take for it grows with its square.
const LINE: usize = 400;
/// How long all of that may take.
const TIME: Duration = Duration::from_secs(3);
/// A longer first line is not looked at to tell the language, in bytes.
const FIRST_LINE: usize = 200;

/// What a piece of text is, as its colour tells: the CSS class.
pub type Class = &'static str;

/// What scopes are shown as, by what they begin with; the first that fits counts.
const RULES: [(Class, &str); 9] = [
    ("c", "comment punctuation.definition.comment"),
    (
        "h",
        "punctuation.definition.heading entity.name.section markup.heading",
    ),
    (
        "s",
        "string punctuation.definition.string markup.raw markup.inline.raw",
    ),
    ("n", "constant support.constant storage.type.numeric"),
    (
        "f",
        "entity.name.function entity.name.macro entity.other.attribute-name support.function support.macro \
        support.type.property-name variable.function variable.annotation meta.property-name",
    ),
    (
        "t",
        "support.type support.class support.module entity.other.inherited-class",
    ),
    ("p", "keyword.operator punctuation"),
    ("k", "keyword storage variable.language entity.name.tag"),
    ("t", "entity.name"),
];

/// Pieces of a line: where each ends, and what it is.
pub type Pieces = Vec<(usize, Option<Class>)>;

/// Colours files, until what it may spend is spent.
pub struct Colors<'a> {
    /// Loaded for the first file that is coloured.
    syntaxes: OnceCell<SyntaxSet>,
    rules: Vec<(Scope, Class)>,
    left: usize,
    elapsed: &'a dyn Fn() -> Duration,
    until: Duration,
}

impl<'a> Colors<'a> {
    /// `elapsed` tells the time since some fixed point.
    #[must_use]
    pub fn new(elapsed: &'a dyn Fn() -> Duration) -> Self {
        let rules = RULES.iter().flat_map(|(class, scopes)| {
            let scopes = scopes.split_whitespace();
            scopes.filter_map(move |scope| Some((Scope::new(scope).ok()?, *class)))
        });
        Self {
            syntaxes: OnceCell::new(),
            rules: rules.collect(),
            left: ALL,
            until: elapsed() + TIME,
            elapsed,
        }
    }

    /// The pieces of the lines of a file's two versions, or `None`, where it is to be plain text. Lines
    /// come without their ends. Where the time is over, there are pieces for the first lines only.
    #[must_use]
    pub fn of(&mut self, path: &str, versions: [&[String]; 2]) -> Option<[Vec<Pieces>; 2]> {
        let bytes = versions.iter().copied().flatten();
        let bytes: usize = bytes.map(|line| line.len() + 1).sum();
        if bytes > FILE.min(self.left) || self.is_late() {
            return None;
        }
        let syntaxes = self.syntaxes.get_or_init(two_face::syntax::extra_newlines);
        let [before, after] = versions.map(<[String]>::first);
        let first_line = after.or(before).map_or("", String::as_str);
        let syntax = syntax(syntaxes, path, first_line)?;
        let colored = versions.map(|lines| self.lines(syntaxes, syntax, lines));
        self.left -= bytes;
        Some(colored)
    }

    fn is_late(&self) -> bool {
        (self.elapsed)() > self.until
    }

    fn lines(
        &self,
        syntaxes: &SyntaxSet,
        syntax: &SyntaxReference,
        lines: &[String],
    ) -> Vec<Pieces> {
        let mut state = ParseState::new(syntax);
        let mut scopes = ScopeStack::new();
        let in_time = lines.iter().take_while(|_| !self.is_late());
        in_time
            .map_while(|line| self.line(&mut state, &mut scopes, syntaxes, line))
            .collect()
    }

    fn line(
        &self,
        state: &mut ParseState,
        scopes: &mut ScopeStack,
        syntaxes: &SyntaxSet,
        line: &str,
    ) -> Option<Pieces> {
        let line = if line.len() > LINE { "" } else { line };
        let operations = state.parse_line(&format!("{line}\n"), syntaxes).ok()?;
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

    /// Adds a piece; to the one before, where it is the same.
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

    /// What the innermost scope that says anything says.
    fn class(&self, scopes: &ScopeStack) -> Option<Class> {
        scopes.as_slice().iter().rev().find_map(|scope| {
            let mut rules = self.rules.iter();
            let (_, class) = rules.find(|(prefix, _)| prefix.is_prefix_of(*scope))?;
            Some(*class)
        })
    }
}

/// A file's language, by its name, its ending, or its first line.
fn syntax<'s>(
    syntaxes: &'s SyntaxSet,
    path: &str,
    first_line: &str,
) -> Option<&'s SyntaxReference> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    let by_ending = || syntaxes.find_syntax_by_extension(ending?);
    let by_first_line = || {
        let tells = first_line.starts_with("#!") && first_line.len() <= FIRST_LINE;
        tells.then(|| syntaxes.find_syntax_by_first_line(first_line))?
    };
    let found = syntaxes.find_syntax_by_extension(name);
    let found = found.or_else(by_ending).or_else(by_first_line);
    found.filter(|syntax| syntax.name != "Plain Text")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use syntect::parsing::syntax_definition::Pattern;

    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    /// The line with its pieces' classes behind them.
    fn told(line: &str, pieces: &Pieces) -> String {
        let mut from = 0;
        let mut text = String::new();
        for (to, class) in pieces {
            text += &line[from..*to];
            if let Some(class) = class {
                text += &format!("<{class}>");
            }
            from = *to;
        }
        text
    }

    #[test]
    fn the_common_languages_are_told_apart_and_coloured() {
        let elapsed = || Duration::ZERO;
        let mut colors = Colors::new(&elapsed);
        for (path, text, expected) in [
            (
                "a.rs",
                "fn main() { \"x\"; }",
                "fn<k> main<f>()<p> {<p> \"x\"<s>;<p> }<p>",
            ),
            ("b/c.py", "x = 12  # why", "x =<p> 12<n>  # why<c>"),
            ("x.sh", "echo 'a' # b", "echo<f> 'a'<s> # b<c>"),
            ("run", "#!/bin/sh\necho 'a'", "#!/bin/sh<c>"),
            ("Cargo.toml", "name = \"x\"", "name<k> =<p> \"x\"<s>"),
            (
                "a.ts",
                "let a: string = 1",
                "let<k> a:<p> string<t> =<p> 1<n>",
            ),
            ("a.md", "# Title", "# Title<h>"),
        ] {
            let text = lines(text);
            let [_, after] = colors.of(path, [&[], &text]).unwrap();
            assert_eq!(told(&text[0], &after[0]), expected, "{path}");
        }
        assert!(colors.of("notes.txt", [&[], &lines("if x")]).is_none());
    }

    #[test]
    fn a_comment_goes_on_in_the_next_line() {
        let elapsed = || Duration::ZERO;
        let text = lines("/* a\nb */ let c");
        let [_, after] = Colors::new(&elapsed).of("x.rs", [&[], &text]).unwrap();
        assert_eq!(told(&text[1], &after[1]), "b */<c> let<k> c");
    }

    #[test]
    fn what_is_too_much_is_plain() {
        let elapsed = || Duration::ZERO;
        let line = vec!["let x = 1;".repeat(20); 400];
        let mut colors = Colors::new(&elapsed);
        assert!(colors.of("x.rs", [&line, &line]).is_none());
        let coloured = (0..9).filter(|_| colors.of("x.rs", [&[], &line]).is_some());
        assert_eq!(coloured.count(), ALL / (400 * 201));
    }

    #[test]
    fn what_takes_too_long_is_plain() {
        let seconds = std::cell::Cell::new(0);
        let elapsed = || {
            seconds.set(seconds.get() + 1);
            Duration::from_secs(seconds.get())
        };
        let text = lines("a\nb\nc\nd\ne");
        let mut colors = Colors::new(&elapsed);
        let [_, after] = colors.of("x.rs", [&[], &text]).unwrap();
        assert_eq!(after.len(), 2);
        assert!(colors.of("x.rs", [&[], &text]).is_none());
    }

    /// The release build cannot catch a panic, and a pattern that does not compile is one.
    #[test]
    fn the_patterns_of_all_languages_compile() {
        let builder = two_face::syntax::extra_newlines().into_builder();
        let reference = regex::Regex::new(r"\\\d").unwrap();
        let mut patterns = BTreeSet::new();
        let contexts = builder.syntaxes().iter();
        let contexts = contexts.flat_map(|syntax| syntax.contexts.values());
        for pattern in contexts.flat_map(|context| &context.patterns) {
            if let Pattern::Match(found) = pattern {
                let regex = found.regex.regex_str();
                // What refers to an outer pattern's find is filled in when that is known.
                let filled = reference.replace_all(regex, "x");
                let references = found.has_captures;
                patterns.insert(if references { filled } else { regex.into() });
            }
        }
        assert!(patterns.len() > 5000, "{}", patterns.len());
        for regex in patterns {
            let error = syntect::parsing::Regex::try_compile(&regex);
            assert!(error.is_none(), "{regex}");
        }
    }
}
