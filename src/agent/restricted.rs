//! The commands that an auditor may run: simple read-only ones, and the project's own checks.
//!
//! A command is split into words and run without a shell, so nothing in it is expanded, chained or redirected. This
//! module resolves the command's file arguments and changes nothing. It guarantees that every word is on a list: a
//! program name, a flag known to be harmless, or an argument that stays in the project. Git runs none of the programs
//! that a repository's configuration names, and writes nothing (see `sys::git`); if the configuration has filters, or a
//! file that git reads by its name is a pipe or the like, git is not run. The project's checks are the exception: `npm`
//! runs what `package.json` says, as the specification requires, `build.sh` is a script, and the user's own settings
//! name further commands. A check must match word by word.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;

use crate::agent::judge::{audited, is_whole};
use crate::agent::tools::command::AllowedCommand;
use crate::agent::tools::resolved_path::{Found, Outside, ResolvedPath, quoted};
use crate::project::repository::Repository;
use crate::sys::git::{Git, GitPlace};
use crate::sys::text::regex;

/// The permitted commands, listed for the model.
const ALLOWED: &str = "cat, head, tail, ls, dir, tree, git status, git diff, git log, npm test, npm run build, \
                       ./build.sh";

/// The project's own checks: for each, the words that the model writes and the words to run.
const CHECKS: [(&[&str], &[&str]); 6] = [
    (&["npm", "test"], &["npm", "test"]),
    (&["npm", "run", "build"], &["npm", "run", "build"]),
    (&["./build.sh"], &["./build.sh"]),
    (&["build.sh"], &["./build.sh"]),
    (&["bash", "build.sh"], &["bash", "./build.sh"]),
    (&["bash", "./build.sh"], &["bash", "./build.sh"]),
];

/// The time limit of a read-only command; only one with endless input takes that long.
const LOOK: Duration = Duration::from_secs(30);

/// Programs that would wait for input if no file is given.
const NEED_FILE: [&str; 3] = ["cat", "head", "tail"];

/// Quoted text, which a shell leaves unchanged.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| regex(r#"'[^']*'|"[^"$`\\]*""#));
/// Characters that a shell interprets outside of quotes. After other characters, `~` is literal, as in `HEAD~1`.
static SPECIAL: LazyLock<Regex> =
    LazyLock::new(|| regex(r"[$`\\;&|<>(){}*?\[\]#!]|(?:^|[ \t:=])~"));
/// Options that make git verify signatures, which runs a program.
static SIGNATURE: LazyLock<Regex> = LazyLock::new(|| regex("^--(format|pretty)=.*%[-+ ]*G"));

/// The commands that an auditor may run in a project.
#[derive(Debug, Clone, Copy)]
pub struct AuditCommands<'a> {
    /// The project's root, with links resolved.
    pub root: &'a Path,
    /// The `PATH` that is searched for git.
    pub path: Option<&'a OsStr>,
    /// Further commands that the user allows, each split into words.
    pub own: &'a [Vec<String>],
    /// The time limit of a check.
    pub check_timeout: Duration,
}

impl AuditCommands<'_> {
    /// Returns the command to run for `line`. It must be run in the root, exactly as returned, and never by a shell.
    ///
    /// # Errors
    /// A sentence for the model that says what is not allowed and what is.
    pub fn command(&self, line: &str) -> Result<AllowedCommand, String> {
        self.allowed(line).map_err(|problem| {
            let own: String = self.shown().map(|own| format!(", {own}")).collect();
            format!("{problem}. You may run one of these, without a shell: {ALLOWED}{own}")
        })
    }

    /// Returns the command to run for `line`, if it is read-only or `build.sh`. It must be run in the root, exactly as
    /// returned, and never by a shell. Checks run by `npm` are excluded, since the project defines them.
    pub fn harmless(&self, line: &str) -> Option<AllowedCommand> {
        let command = self.allowed(line).ok();
        command.filter(|command| {
            command
                .words
                .first()
                .is_some_and(|program| program != "npm")
        })
    }

    /// Describes to the model which further commands the user allows, and the time limits.
    pub fn text(&self) -> String {
        let commands: Vec<String> = self.shown().map(|own| format!("`{own}`")).collect();
        let own = match commands.join(", ") {
            none if none.is_empty() => none,
            all => {
                format!("- The user allows these commands, too, exactly as they are here: {all}.\n")
            }
        };
        let (look, check) = (LOOK.as_secs_f64(), self.check_timeout.as_secs_f64());
        format!(
            "{own}- A command that only looks is ended after {look} s, a check after {check} s.\n"
        )
    }

    fn shown(&self) -> impl Iterator<Item = String> {
        let own = self.own.iter();
        own.map(|words| shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default())
    }

    fn allowed(&self, line: &str) -> Result<AllowedCommand, String> {
        // A command that the user allows may contain anything that a shell leaves unchanged in quotes.
        if let Some(words) = shlex::split(line).filter(|words| self.own.contains(words)) {
            return Ok(self.check(words));
        }
        let typed = split(line)?;
        if let Some((_, run)) = CHECKS.iter().find(|(written, _)| typed == *written) {
            return Ok(self.check(run.iter().map(|word| (*word).to_owned()).collect()));
        }
        let words = match checked(&typed, self.root)? {
            words if words[0] == "git" => with_safe_git(&words[1..], self.root, self.path)?,
            words => words,
        };
        Ok(AllowedCommand {
            words,
            timeout: LOOK,
        })
    }

    fn check(&self, words: Vec<String>) -> AllowedCommand {
        AllowedCommand {
            words,
            timeout: self.check_timeout,
        }
    }
}

/// Returns the words that run git with these arguments on the project's repository, without starting any other program.
fn with_safe_git(
    arguments: &[String],
    root: &Path,
    path: Option<&OsStr>,
) -> Result<Vec<String>, String> {
    let repository = Repository::of(root)
        .map_err(|error| error.to_string())?
        .ok_or("the project is in no git repository")?;
    let unreadable = |error| format!("the project's git repository cannot be read: {error}");
    if repository.may_filter().map_err(unreadable)? {
        return Err(
            "git cannot be run: the repository's configuration names filters, which are programs, or \
             includes other files"
                .to_owned(),
        );
    }
    let readable = repository.check_readable();
    readable.map_err(|error| format!("git cannot be run: {error}"))?;
    let git = Git::find(path, root).ok_or("git is not installed")?;
    let place = GitPlace {
        own: &repository.own,
        top: &repository.top,
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let words = git.words(Some(place), &arguments);
    words.ok_or_else(|| "the project's path is not UTF-8".to_owned())
}

/// Splits a line into words as a shell would, if blanks and quotes are enough for that.
fn split(command: &str) -> Result<Vec<String>, String> {
    let line = command.trim_matches([' ', '\t', '\n', '\r']);
    let is_odd = |c: &char| (c.is_control() || c.is_whitespace()) && !matches!(c, ' ' | '\t');
    if let Some(c) = line.chars().find(is_odd) {
        let c = c.escape_default();
        return Err(format!("it has a blank or control character, `{c}`"));
    }
    if let Some(special) = SPECIAL.find(&QUOTED.replace_all(line, "_")) {
        return Err(format!(
            "`{}` is not allowed in it: it is one plain command, and nothing is expanded; between ' it stands \
             for itself",
            special.as_str().trim_start_matches([' ', '\t', ':', '='])
        ));
    }
    shlex::split(line).ok_or_else(|| "a quote in it is not closed".to_owned())
}

/// Returns the words to run, if all of them are allowed.
fn checked(words: &[String], root: &Path) -> Result<Vec<String>, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (name, rest) = match words.as_slice() {
        ["npm", ..] => {
            return Err("of npm, `npm test` and `npm run build` alone are allowed".to_owned());
        }
        ["./build.sh" | "build.sh" | "bash", ..] => {
            return Err("of scripts, `./build.sh` alone is allowed, without arguments".to_owned());
        }
        ["git", subcommand, rest @ ..] => (format!("git {subcommand}"), rest),
        [name, rest @ ..] => ((*name).to_owned(), rest),
        [] => return Err("there is no command".to_owned()),
    };
    let program = audited(&name).ok_or_else(|| format!("{} is not allowed", quoted(&name)))?;
    checked_words(&name, program, rest, root)
}

fn checked_words(
    name: &str,
    [flags_allowed, takes, added]: [&str; 3],
    words: &[&str],
    root: &Path,
) -> Result<Vec<String>, String> {
    let is_allowed = |flag: &str| is_whole(flag, flags_allowed);
    let values = takes.split(';').filter_map(|one| one.split_once(' '));
    let is_git = name.starts_with("git ");
    let (mut flags, mut files, mut paths) = (Vec::new(), Vec::new(), Vec::new());
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "--" {
            paths.extend(words.by_ref());
        } else if !word.starts_with('-') {
            files.push(word);
        } else if let Some((_, value)) = values.clone().find(|(flag, _)| *flag == word) {
            let next = words.next().unwrap_or_default();
            if next.is_empty() || !is_allowed(&format!("{word} {next}")) {
                return Err(format!("{} wants {value} after it", quoted(word)));
            }
            flags.extend([word, next]);
        } else if is_allowed(word) && !SIGNATURE.is_match(word) {
            flags.push(word);
        } else {
            return Err(format!("{} is not allowed with {}", quoted(word), name));
        }
    }
    if NEED_FILE.contains(&name) && files.is_empty() && paths.is_empty() {
        return Err(format!("{name} wants a file"));
    }
    let own = name.split(' ').chain(added.split_terminator(' '));
    let mut argv: Vec<String> = own.chain(flags).map(str::to_owned).collect();
    for file in files {
        argv.push(if is_git {
            revision_or_path(file, root)?
        } else {
            file_argument(file, root)?
        });
    }
    if is_git && !paths.is_empty() {
        argv.push("--".to_owned());
    }
    for path in paths {
        argv.push(file_argument(path, root)?);
    }
    Ok(argv)
}

/// Spells a file argument so that it refers to the checked path, cannot be taken for a flag, and is only a path to git.
fn file_argument(path: &str, root: &Path) -> Result<String, String> {
    if path == "-" || path.starts_with(':') {
        return Err(format!(
            "{} is not allowed: name files plainly",
            quoted(path)
        ));
    }
    Ok(match inside(path, root)?.as_str() {
        "" => ".".to_owned(),
        inside if inside.starts_with('-') => format!("./{inside}"),
        inside => inside.to_owned(),
    })
}

/// Resolves a path that must be inside the project.
fn inside(path: &str, root: &Path) -> Result<String, String> {
    let resolved = ResolvedPath::of(root, path, Outside::Allowed)?;
    resolved.check_secrets(root)?;
    // A program would wait for a pipe or a device. If the path cannot be read, the program itself reports that.
    if let Ok(Some(Found::Special)) = resolved.look(root) {
        return Err(format!(
            "{} is a pipe, a device or the like, not a file; there is nothing to read",
            resolved.shown()
        ));
    }
    match resolved {
        ResolvedPath::Inside(inside) => Ok(inside),
        ResolvedPath::Outside(_) => Err(format!("{} leads out of the project", quoted(path))),
    }
}

/// Checks an argument that git may take for a revision or a path.
fn revision_or_path(argument: &str, root: &Path) -> Result<String, String> {
    if argument.starts_with(':') {
        return Err(format!(
            "{} is not allowed: name revisions plainly",
            quoted(argument)
        ));
    }
    if argument.split(['/', ':']).any(|name| name == "..") {
        return Err(format!(
            "{} has a `..` for a directory; name paths from the project's root",
            quoted(argument)
        ));
    }
    inside(argument, root)?;
    // A file in a revision: `HEAD:path`.
    if let Some((_, path)) = argument.split_once(':') {
        file_argument(if path.is_empty() { "." } else { path }, root)?;
    }
    Ok(argument.to_owned())
}

#[cfg(test)]
mod tests;
