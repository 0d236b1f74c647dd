//! Classifies the lines of a file as code or comments, by the comment markers of its language. Pure.
//!
//! Looks at the beginnings of lines rather than parsing: a block comment is recognized at the beginning of a line, and
//! a comment after code only if preceded by white space and outside of quotes.

/// Comment markers by file extension; longer markers precede their own prefixes.
const LANGUAGES: [(&str, &[&str]); 18] = [
    (
        "c cc cpp cs css cts cxx dart go gradle groovy h hh hpp java js cjs json json5 jsonc jsx kt kts less mjs mm \
         mts proto rs sass scala scss sol sv swift ts tsx wgsl zig",
        &["{/*", "/*", "//"],
    ),
    ("astro svelte vue", &["<!--", "{/*", "/*", "//"]),
    ("htm html", &["<!--", "{# ", "{#-", "{/*", "/*", "//"]),
    // An attribute begins with `#[`, and Blade is PHP by its extension.
    ("php", &["<!--", "{{--", "{/*", "/*", "//", "# "]),
    (
        "aspx cshtml ejs handlebars hbs jsp mustache njk razor twig",
        &[
            "<!--", "<%--", "<%#", "{{!--", "{{--", "{#", "@*", "{/*", "/*", "//",
        ],
    ),
    (
        "csproj markdown md mdx svg xaml xhtml xml xsl",
        &["<!--", "{/*"],
    ),
    (
        "awk bash bats bazel cmake coffee conf dockerfile dockerignore env ex exs fish gitignore gql graphql jl justfile \
         makefile mk nix pl pm properties py pyi r rake rb sh tcl toml yaml yml zsh gemfile rakefile",
        &["#"],
    ),
    ("ps1 psd1 psm1", &["<#", "#"]),
    ("adb ads lua vhd vhdl", &["--", "/*"]),
    ("sql", &["--", "/*", "# "]),
    ("elm hs", &["--", "{-"]),
    ("clj cljs edn el lisp lsp rkt scm", &["#|", ";"]),
    ("fs fsi fsx", &["(*", "//"]),
    ("ml mli", &["(*"]),
    ("bas frm vb vbs", &["'"]),
    ("f f03 f08 f90 f95 for", &["!"]),
    ("asm cfg ini", &[";", "#"]),
    ("bib cls erl hrl sty tex", &["%"]),
];

/// The markers for files of an unknown language.
const ANY: &[&str] = &["<!--", "{# ", "{#-", "{/*", "/*", "//", "--", "#", ";", "%"];

/// Beginnings and ends of block comments.
pub(super) const BLOCKS: [(&str, &str); 15] = [
    ("/*", "*/"),
    ("{/*", "*/"),
    ("<!--", "-->"),
    ("<%--", "--%>"),
    ("{{--", "--}}"),
    ("{{!--", "--}}"),
    ("<%#", "%>"),
    ("{#", "#}"),
    ("{# ", "#}"),
    ("{#-", "#}"),
    ("@*", "*@"),
    ("<#", "#>"),
    ("{-", "-}"),
    ("#|", "|#"),
    ("(*", "*)"),
];

/// Prefixes of documentation comments, and of instructions to a compiler.
const DOCS: [&str; 9] = ["///", "//!", "/**", "/*!", "(**", "{-|", "'''", "{-#", "!$"];

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// White space only.
    Blank,
    /// Code, possibly followed by a comment.
    Code,
    /// A comment without code.
    Comment,
    /// A documentation comment.
    Doc,
}

/// The comment syntax of a language.
#[derive(Debug, Clone, Copy)]
pub struct Language(&'static [&'static str]);

impl Language {
    /// Returns the language of the file at `path`, by its extension.
    pub fn of(path: &str) -> Self {
        let end = path.rsplit(['/', '.']).next().unwrap_or(path);
        let is_it = |name: &str| name.eq_ignore_ascii_case(end);
        let known = |names: &str| names.split_ascii_whitespace().any(is_it);
        let language = LANGUAGES.iter().find(|(names, _)| known(names));
        Self(language.map_or(ANY, |(_, marks)| marks))
    }

    /// Returns whether `line` is blank or a comment as a whole, or goes on with a block comment behind a `*`.
    pub fn begins(self, line: &str) -> bool {
        let is_code = || self.lines(line).first() == Some(&LineKind::Code);
        self.0.contains(&"/*") && line.trim_start().starts_with('*') || !is_code()
    }

    /// Classifies the lines of a text, in order.
    pub fn lines(self, text: &str) -> Vec<LineKind> {
        // The open block comment: its end marker, and the kind of its lines.
        let mut open: Option<(&str, LineKind)> = None;
        let last = BLOCKS.map(|(_, end)| (end, text.rfind(end).unwrap_or(0)));
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
                // An unterminated `/*` is not a comment; it may be a glob pattern.
                None if last.iter().any(|known| known.0 == end && known.1 >= next) => {
                    open = Some((end, kind));
                    kind
                }
                _ => kind,
            }
        });
        kinds.collect()
    }

    /// Returns the comment in a line of this kind, with its markers; `None` for documentation comments.
    pub fn comment(self, line: &str, kind: LineKind) -> Option<&str> {
        match kind {
            LineKind::Comment => Some(line),
            // In an unknown language, a marker after code may be part of a string.
            LineKind::Code if self.0 != ANY => self.behind_code(line),
            LineKind::Blank | LineKind::Code | LineKind::Doc => None,
        }
    }

    fn behind_code(self, line: &str) -> Option<&str> {
        let mut is_behind_blank = true;
        let mut rest = line;
        while let Some(next) = rest.chars().next() {
            // `# ` behind code is an operator of SQL, or text of a page.
            let is_mark = |mark: &&str| is_behind_blank && *mark != "# ";
            if let Some(mark) = self.mark_of(rest).filter(is_mark) {
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
        // An operator of F#.
        let is_operator = line.starts_with("(*)");
        let mut marks = self.0.iter().filter(|_| !is_operator);
        marks.find(|mark| line.starts_with(**mark)).copied()
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

/// Returns the end marker of a block comment that begins with `mark`.
fn end_of(mark: &str) -> Option<&'static str> {
    let block = BLOCKS.iter().find(|(start, _)| *start == mark);
    block.map(|(_, end)| *end)
}

/// Returns the length of the quoted string at the beginning of `text`, or of the quote alone if it is not closed.
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
