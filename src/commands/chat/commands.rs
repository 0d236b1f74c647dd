//! User-defined slash commands: Markdown files with frontmatter, and the substitution of their arguments.
//!
//! Reads the files below `.agent/commands` of the project, then those of the user's home; runs nothing. Guarantees that
//! arguments are plain text: only the file itself can name other files or commands, and commands are taken from the
//! file verbatim.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use clap::ValueEnum as _;
use regex::{Captures, Regex};

use crate::commands::talk::slash::{self, Slash};
use crate::project::conventions::read_file;
use crate::project::home::SLASH_COMMANDS;
use crate::record::mode::Mode;
use crate::sys::fences::enclosed;
use crate::sys::files::Links;
use crate::sys::text::{escaped, line_end, one_line, regex};

/// The folder for commands, inside the agent folder of a project and of the user.
pub const FOLDER: &str = "commands";
/// File name extension of commands.
const ENDING: &str = ".md";
/// Maximum number of commands read from a folder, and maximum depth of its subfolders.
const MOST: usize = 500;
const DEEPEST: usize = 4;
/// Maximum length of a description taken from the first line of a file, in characters.
const LONGEST: usize = 100;

/// Returns `true` if this is the name of a built-in command.
pub fn is_known(name: &str) -> bool {
    slash::named(name, Slash::ALL).is_some()
}

/// A user-defined command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandFile {
    /// Name without the slash, such as `git:commit` for `git/commit.md`.
    pub name: String,
    /// Description for the completion list.
    pub description: String,
    /// Description of the arguments; may be blank.
    pub argument_hint: String,
    /// The model to use, if specified.
    pub model: Option<String>,
    /// The mode in which to run it, if specified.
    pub mode: Option<Mode>,
    /// The path from the root and the content of a project's command; `None` for the user's own.
    source: Option<(String, String)>,
    template: String,
}

/// A piece of an expanded command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Plain text.
    Text(String),
    /// The content of the file at this path.
    File(String),
    /// The output of a command.
    Command {
        /// The command, exactly as in the file.
        command: String,
        /// Text typed after the name: the variable `ARGUMENTS` in the command's shell.
        arguments: String,
    },
}

impl CommandFile {
    /// Returns the path from the project's root and the content of a project's command; `None` for the user's own.
    pub fn source(&self) -> Option<(&str, &[u8])> {
        let (path, content) = self.source.as_ref()?;
        Some((path, content.as_bytes()))
    }

    /// Returns `true` for a command of the project, `false` for one of the user's own.
    pub fn is_projects(&self) -> bool {
        self.source.is_some()
    }

    /// Returns the shell commands that this command runs.
    pub fn commands(&self) -> Vec<String> {
        let commands = self.expand("").into_iter().filter_map(|piece| match piece {
            Piece::Command { command, .. } => Some(command),
            Piece::Text(_) | Piece::File(_) => None,
        });
        commands.collect()
    }

    /// Expands the command with the arguments typed after its name. They are appended if the template has no
    /// placeholder.
    pub fn expand(&self, arguments: &str) -> Vec<Piece> {
        let arguments = arguments.trim();
        let words = shlex::split(arguments)
            .unwrap_or_else(|| arguments.split_whitespace().map(str::to_owned).collect());
        let mut expansion = Expansion {
            arguments,
            words,
            pieces: Vec::new(),
            is_used: false,
        };
        expansion.run(&self.template);
        if !expansion.is_used && !arguments.is_empty() {
            expansion.text(&format!("\n\nArguments: {arguments}"));
        }
        expansion.pieces
    }

    /// Parses a command's file. Also returns warnings about unknown keys.
    fn parse(
        name: String,
        source: Option<(String, String)>,
        text: &str,
    ) -> Result<(Self, Vec<String>), String> {
        let mut command = Self {
            name,
            source,
            ..Self::default()
        };
        let (front, template) = split_front(text)?;
        template.trim().clone_into(&mut command.template);
        let mut oddities = Vec::new();
        for (line, number) in front.lines().map(str::trim).zip(2..) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, text) = line
                .split_once(':')
                .ok_or_else(|| format!("line {number} of its frontmatter is not `key: value`"))?;
            let value = unquoted(text.trim());
            match key.trim() {
                "description" => value.clone_into(&mut command.description),
                "argument-hint" => value.clone_into(&mut command.argument_hint),
                "model" => command.model = Some(value.to_owned()).filter(|name| !name.is_empty()),
                "mode" => {
                    let mode = Mode::from_str(value, true).map_err(|_| {
                        let named = one_line(value, LONGEST);
                        format!("line {number}: `{named}` is no mode: it is regular, auto-pilot or planning")
                    })?;
                    command.mode = Some(mode);
                }
                other => oddities.push(format!(
                    "`{}` in its frontmatter means nothing here",
                    one_line(other, LONGEST)
                )),
            }
        }
        if command.template.is_empty() {
            return Err("there is nothing in it but its frontmatter".to_owned());
        }
        if command.description.is_empty() {
            let first = command.template.lines().next().unwrap_or_default();
            command.description = one_line(first.trim_start_matches(['#', ' ']), LONGEST);
        }
        Ok((command, oddities))
    }
}

/// Splits a file into the frontmatter and the text after it.
fn split_front(text: &str) -> Result<(&str, &str), String> {
    let is_mark = |line: &str| line.trim_end() == "---";
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|first| is_mark(first)) else {
        return Ok(("", text));
    };
    let mut end = first.len();
    for line in lines {
        if is_mark(line) {
            let front = text.get(first.len()..end).unwrap_or_default();
            return Ok((front, text.get(end + line.len()..).unwrap_or_default()));
        }
        end += line.len();
    }
    Err("its frontmatter does not end: a line `---` is missing".to_owned())
}

/// Strips one pair of quotes, if the value is enclosed in them.
fn unquoted(value: &str) -> &str {
    let quotes = ['"', '\''].into_iter();
    let mut inner = quotes.filter_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    inner.next().unwrap_or(value)
}

/// Placeholders of a template: commands and paths at the beginning of a word, and arguments.
static SIGN: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?P<before>^|[\s(\["'])(?:!`(?P<command>[^`\n]+)`|@(?P<path>[^\s`]+))|\$(?:ARGUMENTS\b|[0-9]+)"#,
    )
});
/// Placeholders of arguments only; `$100` is not one.
static ARGUMENT: LazyLock<Regex> = LazyLock::new(|| regex(r"\$(?P<name>ARGUMENTS\b|[0-9]+)"));

/// Characters that end a sentence rather than a path.
const BEHIND_PATH: [char; 10] = ['.', ',', ';', ':', '!', '?', ')', ']', '"', '\''];

/// A template that is being expanded.
struct Expansion<'a> {
    arguments: &'a str,
    words: Vec<String>,
    pieces: Vec<Piece>,
    /// `true` if the template has a placeholder for arguments.
    is_used: bool,
}

impl Expansion<'_> {
    fn run(&mut self, template: &str) {
        let mut from = 0;
        for found in SIGN.captures_iter(template) {
            let Some(whole) = found.get(0) else { break };
            self.text(template.get(from..whole.start()).unwrap_or_default());
            self.text(found.name("before").map_or("", |before| before.as_str()));
            from = whole.end();
            if let Some(command) = found.name("command") {
                self.is_used |= command.as_str().contains("ARGUMENTS");
                self.pieces.push(Piece::Command {
                    command: command.as_str().to_owned(),
                    arguments: self.arguments.to_owned(),
                });
            } else if let Some(named) = found.name("path") {
                let path = named.as_str().trim_end_matches(BEHIND_PATH);
                match self.filled(path) {
                    path if path.is_empty() => self.text("@"),
                    path => self.pieces.push(Piece::File(path)),
                }
                self.text(named.as_str().strip_prefix(path).unwrap_or_default());
            } else {
                let value = self.filled(whole.as_str());
                self.text(&value);
            }
        }
        self.text(template.get(from..).unwrap_or_default());
    }

    /// Replaces the placeholders in a text with the arguments.
    fn filled(&mut self, text: &str) -> String {
        let filled = ARGUMENT.replace_all(text, |found: &Captures<'_>| {
            let value = match found["name"].as_bytes() {
                [digit @ b'1'..=b'9'] => {
                    let word = self.words.get(usize::from(digit - b'1'));
                    word.cloned().unwrap_or_default()
                }
                b"ARGUMENTS" => self.arguments.to_owned(),
                _ => return found[0].to_owned(),
            };
            self.is_used = true;
            value
        });
        filled.into_owned()
    }

    fn text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }
}

/// Loads the commands of the project at `root` and those of the user, whose folder for agents is `home`, sorted by
/// name. If both define the same name, the project's command wins. Names of built-in commands cannot be redefined. Also
/// returns warnings about unusable files.
pub fn load(root: &Path, home: &Path) -> (Vec<CommandFile>, Vec<String>) {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let projects = Folder::load(&root.join(SLASH_COMMANDS), Some(root));
    let own = Folder::load(&home.join(FOLDER), None);
    let mut warnings = [projects.warnings, own.warnings].concat();
    let mut commands = [projects.commands, own.commands].concat();
    // The sort is stable, so a project's command stays before the user's of the same name.
    commands.sort_by(|one, other| one.name.cmp(&other.name));
    commands.dedup_by(|later, earlier| later.name == earlier.name);
    commands.retain(|command| {
        let is_taken = is_known(&command.name);
        if is_taken {
            warnings.push(format!(
                "the command file for `/{0}` is not used: `/{0}` is the program's own",
                command.name
            ));
        }
        !is_taken
    });
    (commands, warnings)
}

/// A folder of commands that is being read.
#[derive(Default)]
struct Folder {
    /// The project's root, if this is its folder: files outside the root are not read. `None` for the user's folder.
    root: Option<PathBuf>,
    commands: Vec<CommandFile>,
    warnings: Vec<String>,
}

impl Folder {
    fn load(directory: &Path, root: Option<PathBuf>) -> Self {
        let mut folder = Self {
            root,
            ..Self::default()
        };
        folder.read(directory, "", 0);
        folder
    }

    fn read(&mut self, directory: &Path, prefix: &str, depth: usize) {
        if !directory.exists() {
            return;
        }
        if let Err(problem) = self.place(directory) {
            return self.warn(directory, &problem);
        }
        let entries = match directory.read_dir() {
            Ok(entries) => entries,
            Err(error) => return self.warn(directory, &error.to_string()),
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let stem = name.strip_suffix(ENDING).unwrap_or(&name);
            if path.is_dir() {
                // Links are skipped, as they may lead to a parent directory.
                if is_part(&name) && depth < DEEPEST && !path.is_symlink() {
                    self.read(&path, &format!("{prefix}{name}:"), depth + 1);
                }
            } else if self.commands.len() >= MOST {
                let problem = format!("no more than {MOST} commands are read");
                return self.warn(&path, &problem);
            } else if stem.len() < name.len()
                && let Err(problem) = self.file(&path, format!("{prefix}{stem}"), is_part(stem))
            {
                self.warn(&path, &problem);
            }
        }
    }

    fn file(&mut self, path: &Path, name: String, is_named: bool) -> Result<(), String> {
        if !is_named {
            return Err(format!("{NAMES}, followed by `{ENDING}`"));
        }
        let text =
            read_file(&self.place(path)?, Links::Refused)?.ok_or("there is nothing in it")?;
        let source = self.root.as_ref().map(|root| {
            let named = path.strip_prefix(root).unwrap_or(path);
            (named.to_string_lossy().into_owned(), text.clone())
        });
        let (command, oddities) = CommandFile::parse(name, source, &text)?;
        for oddity in oddities {
            let path = escaped(&path.to_string_lossy());
            self.warnings.push(format!("`{path}`: {oddity}"));
        }
        self.commands.push(command);
        Ok(())
    }

    /// Resolves the links of a path, which must stay inside the project if the folder is the project's.
    fn place(&self, path: &Path) -> Result<PathBuf, String> {
        let place = path.canonicalize().map_err(|error| error.to_string())?;
        match &self.root {
            Some(root) if !place.starts_with(root) => {
                Err("it is a link that leads out of the project".to_owned())
            }
            _ => Ok(place),
        }
    }

    fn warn(&mut self, path: &Path, problem: &str) {
        let path = escaped(&path.to_string_lossy());
        self.warnings
            .push(format!("`{path}` is not used: {problem}"));
    }
}

/// Rule for the names of commands.
pub const NAMES: &str =
    "a command's name is small letters, digits, `_` and `-`, a letter or a digit first";

/// Returns `true` for a valid name of a command, or of a folder of commands.
fn is_part(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c == '_' || c == '-')
}

/// Returns the path of a command's file, relative to the project's root: `.agent/commands/git/commit.md` for
/// `git:commit`. Returns `None` if the name is invalid or that of a built-in command.
pub fn file_for(name: &str) -> Option<String> {
    let parts: Vec<&str> = name.split(':').collect();
    let is_name = parts.iter().all(|part| is_part(part)) && parts.len() <= DEEPEST + 1;
    let file = format!("{SLASH_COMMANDS}/{}{ENDING}", parts.join("/"));
    (is_name && !is_known(name)).then_some(file)
}

/// Returns the file in a reply, without a fence that encloses the whole reply.
pub fn template(reply: &str) -> String {
    let reply = reply.trim();
    let around = enclosed(reply).filter(|(fence, _)| matches!(fence.info, "" | "markdown" | "md"));
    let file = around.map_or(reply, |(_, content)| content);
    format!("{file}{}", line_end(file))
}

#[cfg(test)]
mod tests;
