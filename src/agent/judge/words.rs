//! Splitting of shell commands into words. Pure.
//!
//! Splits lists and pipes of simple commands as bash and every POSIX shell would. Guarantees that anything that one of
//! them would expand further is refused: a returned word is exactly what the program receives, except for `*`, `?`, `[`
//! and `~`.

use std::iter::Peekable;
use std::path::Path;
use std::str::Chars;

use super::table::OVERWRITES;
use crate::sys::text::is_deceptive;

/// Reason for asking about a command that cannot be analysed.
pub(super) const UNCLEAR: &str = "cannot be judged";
/// The characters that begin a pattern of file names.
const WILDCARDS: [char; 3] = ['*', '?', '['];
/// Reason for asking about `$`, backquotes and braces.
const EXPANDS: &str = "substitutes";

/// A word of a command, without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// The text of the word.
    pub text: String,
    /// Set if the shell may replace it with file names.
    pub is_glob: bool,
    /// Set if any part of it was quoted.
    is_quoted: bool,
}

impl ShellWord {
    /// Returns whether the shell may expand the word to a file name that looks like an option.
    pub(super) fn may_be_option(&self) -> bool {
        self.text.starts_with('-') || (self.is_glob && self.text.starts_with(WILDCARDS))
    }

    /// Returns whether the shell may expand the word to an option that the word does not spell out: `-?xec=id`, but not
    /// `--include=*.rs`.
    pub(super) fn conceals_option(&self) -> bool {
        let name = self.text.split('=').next().unwrap_or_default();
        self.is_glob && self.may_be_option() && name.contains(WILDCARDS)
    }

    /// Returns whether the shell may expand the word to a subcommand that it does not spell out: `cl?an`, but not `a*.c`.
    pub(super) fn conceals_subcommand(&self) -> bool {
        let is_path =
            self.text.contains('/') || self.text.contains('.') && !self.text.contains('[');
        self.is_glob && !is_path
    }
}

/// A simple command of a list or a pipe.
pub(super) struct SimpleCommand {
    /// The operator before it, `&&`, `|` or a line feed; empty for the first command.
    pub operator: String,
    /// Its words; there is at least one.
    pub words: Vec<ShellWord>,
}

/// Splits a list or a pipe into its commands, and each command into words; redirections that write nothing are omitted.
///
/// # Errors
/// The reason why the command cannot be split.
pub(super) fn commands(text: &str) -> Result<Vec<SimpleCommand>, &'static str> {
    let is_odd = |c: char| {
        let is_blank = matches!(c, ' ' | '\t' | '\n');
        !is_blank && (is_deceptive(c) || c.is_control() || c.is_whitespace())
    };
    if text.contains(is_odd) {
        return Err(UNCLEAR);
    }
    let mut splitter = Splitter {
        rest: text.chars().peekable(),
        commands: Vec::new(),
        operator: String::new(),
        words: Vec::new(),
        word: None,
        redirection: None,
    };
    splitter.split()?;
    Ok(splitter.commands)
}

/// Returns whether a word names a device or a file opened by a process, even as part of an option: `-f/dev/stdin`.
pub(super) fn is_device(word: &str) -> bool {
    let path = path_clean::clean(match word.split_once('/') {
        Some((before, rest)) if before.starts_with('-') || before.ends_with('=') => {
            format!("/{rest}")
        }
        _ => word.to_owned(),
    });
    let is_below = ["/dev", "/proc"].iter().any(|top| path.starts_with(top));
    // Relative paths may lead there, too: `../../dev/stdin`.
    let text = path.to_string_lossy();
    let is_open =
        text.ends_with("dev/stdin") || text.contains("dev/fd/") || text.contains("self/fd/");
    (is_below || is_open) && path != Path::new("/dev/null")
}

/// The use of the word after a redirection operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redirection {
    Reads,
    Writes,
    Duplicates,
}

struct Splitter<'t> {
    rest: Peekable<Chars<'t>>,
    commands: Vec<SimpleCommand>,
    /// The operators since the last command.
    operator: String,
    words: Vec<ShellWord>,
    word: Option<ShellWord>,
    redirection: Option<Redirection>,
}

impl Splitter<'_> {
    fn split(&mut self) -> Result<(), &'static str> {
        while let Some(c) = self.rest.next() {
            match c {
                ' ' | '\t' => self.end_word()?,
                ';' | '&' | '|' | '\n' => {
                    self.end_command()?;
                    // Behind another operator, a line feed is a blank.
                    if c != '\n' || self.operator.is_empty() {
                        self.operator.push(c);
                    }
                }
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '<' | '>' => self.redirect(c)?,
                '(' | ')' => return Err(UNCLEAR),
                '$' if self.rest.next_if_eq(&'?').is_some() => self.push('0', true),
                // As in `HEAD@{1}`: without a comma or a range, nothing is expanded.
                '{' if self.is_literal_brace() => {
                    self.push(c, true);
                    while let Some(inner) = self.rest.next() {
                        self.push(inner, true);
                        if inner == '}' {
                            break;
                        }
                    }
                }
                '$' | '`' | '{' | '}' => return Err(EXPANDS),
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => match self.rest.next().ok_or(UNCLEAR)? {
                    '\n' => {}
                    c => self.push(c, true),
                },
                c => self.push(c, false),
            }
        }
        self.end_command()
    }

    /// Returns whether the brace just read is inside a word and encloses a plain name or number.
    fn is_literal_brace(&self) -> bool {
        let mut rest = self.rest.clone();
        while rest
            .next_if(|c| c.is_ascii_alphanumeric() || *c == '-')
            .is_some()
        {}
        self.word.is_some() && rest.next() == Some('}')
    }

    fn push(&mut self, c: char, is_quoted: bool) {
        let word = self.word.get_or_insert_default();
        word.text.push(c);
        word.is_quoted |= is_quoted;
        word.is_glob |= !is_quoted && matches!(c, '*' | '?' | '[');
    }

    fn single_quoted(&mut self) -> Result<(), &'static str> {
        self.word.get_or_insert_default().is_quoted = true;
        loop {
            match self.rest.next().ok_or(UNCLEAR)? {
                '\'' => return Ok(()),
                c => self.push(c, true),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), &'static str> {
        self.word.get_or_insert_default().is_quoted = true;
        loop {
            match self.rest.next().ok_or(UNCLEAR)? {
                '"' => return Ok(()),
                '`' => return Err(EXPANDS),
                '$' => match self.rest.peek() {
                    Some('?') => {
                        self.rest.next();
                        self.push('0', true);
                    }
                    // Here `$` is literal: the end of a line in a pattern.
                    Some('"' | ' ' | '|' | ')') => self.push('$', true),
                    _ => return Err(EXPANDS),
                },
                '\\' => match self.rest.next().ok_or(UNCLEAR)? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => self.push(c, true),
                    c => {
                        self.push('\\', true);
                        self.push(c, true);
                    }
                },
                c => self.push(c, true),
            }
        }
    }

    fn redirect(&mut self, c: char) -> Result<(), &'static str> {
        // The redirected file descriptor: `2>`.
        let is_number =
            |word: &ShellWord| !word.is_quoted && word.text.chars().all(|c| c.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word()?;
        if self.redirection.is_some() {
            return Err(UNCLEAR);
        }
        let redirection = match (c, self.rest.peek()) {
            ('<', Some('<' | '>' | '(')) | ('>', Some('(')) => return Err(UNCLEAR),
            (_, Some('&')) => {
                self.rest.next();
                Redirection::Duplicates
            }
            ('<', _) => Redirection::Reads,
            (_, Some('>' | '|')) => {
                self.rest.next();
                Redirection::Writes
            }
            _ => Redirection::Writes,
        };
        self.redirection = Some(redirection);
        Ok(())
    }

    fn end_word(&mut self) -> Result<(), &'static str> {
        let Some(mut word) = self.word.take() else {
            return Ok(());
        };
        // `[` alone is the name of a program.
        if word.text == "[" {
            word.is_glob = false;
        }
        let is_number = || word.text.chars().all(|c| c.is_ascii_digit());
        match self.redirection.take() {
            None => self.words.push(word),
            Some(Redirection::Reads) if word.is_glob || is_device(&word.text) => {
                return Err(UNCLEAR);
            }
            Some(Redirection::Writes) if word.text != "/dev/null" => return Err(OVERWRITES),
            Some(Redirection::Duplicates) if word.text != "-" && !is_number() => {
                return Err(OVERWRITES);
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn end_command(&mut self) -> Result<(), &'static str> {
        self.end_word()?;
        if self.redirection.is_some() {
            return Err(UNCLEAR);
        }
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            let operator = std::mem::take(&mut self.operator);
            self.commands.push(SimpleCommand { operator, words });
        }
        Ok(())
    }
}
