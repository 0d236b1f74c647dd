//! Parses the variables in a `.env` file, one per line. Pure.
//!
//! Guarantees that the process's own environment is neither read nor changed, that variables are not expanded, that a
//! line is parsed completely or not at all, and that a problem gives the line's number but never its content.

use std::path::PathBuf;

use super::text::without_mark;

/// Maximum number of reported problems.
const MOST_PROBLEMS: usize = 10;

/// Errors from using a `.env` file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[diagnostic(code("/settings"))]
pub enum DotenvProblem {
    /// The file exists but cannot be read.
    #[error("cannot read `{}`: {cause}", .path.display())]
    #[diagnostic(help("make it a file of at most 1 MiB that you can read, or remove it"))]
    Unreadable { path: PathBuf, cause: String },
    /// The file came with the repository, so its author could choose where keys are sent.
    #[error("git tracks `.env`: others may have written it, and its keys are in the repository")]
    #[diagnostic(help("read it; if it is yours, `git rm --cached .env` and ignore it"))]
    Tracked,
    /// The line is not a complete assignment.
    #[error("line {0} of `.env` is not of the form `KEY=value`")]
    #[diagnostic(help(
        "write one variable a line, a value with blanks in quotes, and a newline in it as `\\n` in double quotes"
    ))]
    Malformed(usize),
    /// The value contains a `$`, which other programs would expand; a guess could yield a wrong key.
    #[error("line {0} of `.env` has a `$`, and variables are not expanded there")]
    #[diagnostic(help("put the value in single quotes"))]
    Dollar(usize),
}

/// A constructor of a problem, given the line's number.
type Fault = fn(usize) -> DotenvProblem;
const MALFORMED: Fault = DotenvProblem::Malformed;

/// Returns the variables in the file's order, and the first problems.
pub fn parse(content: &[u8]) -> (Vec<(String, String)>, Vec<DotenvProblem>) {
    let (mut variables, mut problems) = (Vec::new(), Vec::new());
    for (line, content) in (1..).zip(without_mark(content).split(|byte| *byte == b'\n')) {
        match assignment(content) {
            Ok(variable) => variables.extend(variable),
            Err(fault) => problems.push(fault(line)),
        }
    }
    problems.truncate(MOST_PROBLEMS);
    (variables, problems)
}

/// Parses the variable that a line sets; `None` for a blank line or a comment.
fn assignment(line: &[u8]) -> Result<Option<(String, String)>, Fault> {
    let line = str::from_utf8(line).map_err(|_| MALFORMED)?.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (left, right) = line.split_once('=').ok_or(MALFORMED)?;
    // `export` may precede a name, or be the name itself.
    let name = match left.trim_end().strip_prefix("export") {
        Some(rest) if rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => left.trim_end(),
    };
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let value = value(right.trim_start())?;
    if !begins || !name.chars().all(is_in_name) || value.contains('\0') {
        return Err(MALFORMED);
    }
    Ok(Some((name.to_owned(), value)))
}

/// Parses a value that may be quoted, completely or in parts, and followed by a comment.
fn value(text: &str) -> Result<String, Fault> {
    let (mut value, mut quote) = (String::new(), None);
    if text.starts_with('#') {
        return Ok(value);
    }
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('\''), _) => value.push(c),
            (_, '$') => return Err(DotenvProblem::Dollar),
            (_, '\\') => value.push(match rest.next() {
                Some((_, 'n')) => '\n',
                Some((_, c @ ('\\' | '\'' | '"' | '$' | ' '))) => c,
                _ => return Err(MALFORMED),
            }),
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ' | '\t') => {
                let behind = text[at..].trim_start();
                let is_comment = behind.is_empty() || behind.starts_with('#');
                return is_comment.then_some(value).ok_or(MALFORMED);
            }
            _ => value.push(c),
        }
    }
    quote.is_none().then_some(value).ok_or(MALFORMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_sets_a_variable() {
        for (line, expected) in [
            ("KEY=value", "value"),
            ("KEY=value\r", "value"),
            ("  export   KEY = value  ", "value"),
            ("KEY=", ""),
            ("KEY=   # nothing", ""),
            ("KEY=#nothing", ""),
            ("KEY=a#b", "a#b"),
            ("KEY=value # it's \"a\" $comment", "value"),
            ("KEY=value  # it's \"a\" $comment", "value"),
            ("KEY='value'\t# it's $1", "value"),
            ("KEY='a b # c'", "a b # c"),
            ("KEY='$HOME ${X}'", "$HOME ${X}"),
            ("KEY='a\"b'", "a\"b"),
            ("KEY='a\\b'", "a\\b"),
            ("KEY=\"a b # c\"", "a b # c"),
            ("KEY=\"it's\"", "it's"),
            ("KEY=\"a\\nb\"", "a\nb"),
            ("KEY=\"a\\\"b\"", "a\"b"),
            ("KEY=\\$HOME", "$HOME"),
            ("KEY=\"\\$HOME\"", "$HOME"),
            ("KEY=a\"b c\"'$d'", "ab c$d"),
            ("KEY=a=b==", "a=b=="),
            ("KEY=https://host/path?a=b&c=d", "https://host/path?a=b&c=d"),
            ("KEY=größe", "größe"),
        ] {
            let (variables, problems) = parse(line.as_bytes());
            assert_eq!(problems, [], "{line}");
            assert_eq!(
                variables,
                [("KEY".to_owned(), expected.to_owned())],
                "{line}"
            );
        }
    }

    #[test]
    fn a_line_that_is_not_whole_is_reported_by_its_number() {
        let malformed = &DotenvProblem::Malformed(2);
        let dollar = &DotenvProblem::Dollar(2);
        for (line, expected) in [
            (&b"nonsense"[..], malformed),
            (b"export KEY", malformed),
            (b"=value", malformed),
            (b"1KEY=value", malformed),
            (b"KEY NAME=value", malformed),
            (b"KEY=two words", malformed),
            (b"KEY='open", malformed),
            (b"KEY=\"open", malformed),
            (b"KEY=\"open\\\"", malformed),
            (b"KEY=it's", malformed),
            (b"KEY=value\\", malformed),
            (b"KEY=a\\b", malformed),
            (b"KEY=\xff", malformed),
            (b"KEY=a\0b", malformed),
            (b"KEY=$HOME", dollar),
            (b"KEY=${HOME}", dollar),
            (b"KEY=pa$$word", dollar),
            (b"KEY=price$", dollar),
            (b"KEY=\"a $b\"", dollar),
            (b"KEY='a'$b", dollar),
            (b"KEY=\"it's $b\"", dollar),
            (b"KEY=\\\\$b", dollar),
        ] {
            let content = [b"ONE=1\n", line, b"\r\nTHREE=3"].concat();
            let (variables, problems) = parse(&content);
            let shown = String::from_utf8_lossy(line);
            assert_eq!(problems, std::slice::from_ref(expected), "{shown}");
            assert_eq!(variables.len(), 2, "{shown}");
        }
    }

    #[test]
    fn a_mark_blank_lines_and_comments_are_passed_over() {
        let content = "\u{feff}A=1\r\n\r\n# it's $a comment\r\n   # another\n\nB=2 ";
        let (variables, problems) = parse(content.as_bytes());
        assert_eq!(problems, []);
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["A", "B"]);
        assert_eq!(parse(b""), (vec![], vec![]));
        assert_eq!(
            parse("nonsense\n".repeat(1000).as_bytes()).1.len(),
            MOST_PROBLEMS
        );
    }
}
