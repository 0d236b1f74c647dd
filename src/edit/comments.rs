//! Which lines of a file are comments, by the marks of its language. Pure.
//!
//! Reads lines by what they begin with, not by a grammar: a block comment counts where it begins a line, and one
//! behind code where a blank stands in front of it, outside of quotes.

/// The marks of languages, by the ends of their files' names; longer marks stand before those that they begin with.
const LANGUAGES: [(&str, &[&str]); 8] = [
    (
        "c cc cpp cs css cts cxx dart go gradle groovy h hh hpp java js cjs json json5 jsonc jsx kt kts less mjs mm \
         mts proto rs sass scala scss sol sv swift ts tsx wgsl zig",
        &["{/*", "/*", "//"],
    ),
    (
        "astro htm html php svelte vue",
        &["<!--", "{/*", "/*", "//"],
    ),
    (
        "csproj markdown md mdx svg xaml xhtml xml xsl",
        &["<!--", "{/*"],
    ),
    (
        "awk bash bazel cmake coffee conf dockerfile dockerignore env ex exs fish gitignore gql graphql jl justfile \
         makefile mk nix pl pm properties ps1 py pyi r rake rb sh tcl toml yaml yml zsh gemfile rakefile",
        &["#"],
    ),
    ("adb ads elm hs lua sql vhd vhdl", &["--", "/*"]),
    ("clj cljs edn el lisp lsp rkt scm", &[";"]),
    ("asm cfg ini", &[";", "#"]),
    ("bib cls erl hrl sty tex", &["%"]),
];

/// Those of any language.
const ANY: &[&str] = &["<!--", "{/*", "/*", "//", "--", "#", ";", "%"];

/// Beginnings of comments that describe what follows them.
const DOCS: [&str; 4] = ["///", "//!", "/**", "/*!"];

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Nothing.
    Blank,
    /// Anything but a comment, perhaps with one behind it.
    Code,
    /// A comment alone.
    Comment,
    /// A comment that describes what follows it.
    Doc,
}

/// A language, as far as its comments go.
#[derive(Debug, Clone, Copy)]
pub struct Language(&'static [&'static str]);

impl Language {
    /// The language of the file at `path`, by the end of its name.
    pub fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let end = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
        let known = |names: &str| names.split_ascii_whitespace().any(|name| name == end);
        let language = LANGUAGES.iter().find(|(names, _)| known(names));
        Self(language.map_or(ANY, |(_, marks)| marks))
    }

    /// The kinds of a text's lines, first to last.
    pub fn lines(self, text: &str) -> Vec<LineKind> {
        // The block comment that is open: its end, and what its lines are.
        let mut open: Option<(&str, LineKind)> = None;
        let last = ["*/", "-->"].map(|end| (end, text.rfind(end).unwrap_or(0)));
        let mut next = 0;
        let kinds = text.split_inclusive('\n').map(|line| {
            next += line.len();
            if let Some((end, kind)) = open {
                open = open.filter(|_| !line.contains(end));
                return kind;
            }
            let line = line.trim();
            let Some(mark) = self.mark_of(line) else {
                return if line.is_empty() {
                    LineKind::Blank
                } else {
                    LineKind::Code
                };
            };
            let kind = kind_of(line);
            let Some(end) = end_of(mark) else {
                return kind;
            };
            match line[mark.len()..].split_once(end) {
                Some((_, behind)) if !behind.trim_matches(['}', ' ']).is_empty() => LineKind::Code,
                // One that never ends is none: `/*` is a pattern, too.
                None if last.iter().any(|known| known.0 == end && known.1 >= next) => {
                    open = Some((end, kind));
                    kind
                }
                _ => kind,
            }
        });
        kinds.collect()
    }

    /// The comment in a line of this kind, with its marks; none where that describes what follows it.
    pub fn comment(self, line: &str, kind: LineKind) -> Option<&str> {
        match kind {
            LineKind::Comment => Some(line),
            // What is no mark of a language stands in its texts, too.
            LineKind::Code if self.0 != ANY => self.behind_code(line),
            LineKind::Blank | LineKind::Code | LineKind::Doc => None,
        }
    }

    fn behind_code(self, line: &str) -> Option<&str> {
        let mut is_behind_blank = true;
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            if let Some(mark) = self.mark_of(rest).filter(|_| is_behind_blank) {
                let end = end_of(mark).and_then(|end| rest[mark.len()..].find(end));
                let comment = end.map_or(rest, |end| &rest[..mark.len() + end]);
                return (kind_of(comment) == LineKind::Comment).then_some(comment);
            }
            is_behind_blank = next.is_whitespace();
            let skipped = match next {
                '"' | '\'' | '`' => quoted(rest),
                '\\' => rest.chars().take(2).map(char::len_utf8).sum(),
                next => next.len_utf8(),
            };
            rest = &rest[skipped..];
        }
        None
    }

    fn mark_of(self, line: &str) -> Option<&'static str> {
        self.0.iter().find(|mark| line.starts_with(**mark)).copied()
    }
}

fn kind_of(comment: &str) -> LineKind {
    let is_doc = DOCS.iter().any(|mark| comment.starts_with(mark));
    if is_doc && !comment.starts_with("/**/") {
        LineKind::Doc
    } else {
        LineKind::Comment
    }
}

/// The end of a block comment that begins with `mark`.
fn end_of(mark: &str) -> Option<&'static str> {
    match mark {
        "/*" | "{/*" => Some("*/"),
        "<!--" => Some("-->"),
        _ => None,
    }
}

/// The length of the quoted text that `text` begins with; of its first letter where the quote has no end.
fn quoted(text: &str) -> usize {
    let quote = text.as_bytes()[0];
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == quote && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(1, |end| end + 2)
}

#[cfg(test)]
mod tests;
