//! What a shell command may do: whether it may delete, overwrite or commit.
//!
//! Pure: a command is split into words as a shell does it, and judged by them, never by what is on the disk. Guarantees
//! that doubt is a reason: what cannot be followed is not plain, and a program that is not known to only look may run
//! every word that it is given. What a plain program does of its own accord, like a test or a script of the project,
//! cannot be known.

mod programs;
mod words;

use std::collections::BTreeSet;

use self::programs::{
    ANY, ASKED, AWK_ACTS, CHANGES_REPOSITORY, CODE, COMMITS, EVALUATING, GNU, HARM,
    HARMLESS_VARIABLES, INTERPRETERS, LOOKING, LOOKING_OPTIONS, MANAGERS, MODULES, NO_SHELLS,
    OVERWRITES, RUNNING_OPTION, SCRIPT_MANAGERS, SED_PRINTS, SHELL_WORDS, SOURCES, WITH_WORDS,
    WITH_WORDS_BEHIND, WITHOUT_SCRIPT, WRITING_OPTION,
};
use self::words::{ShellWord, UNCLEAR, is_device};

/// Why a program is asked about that has other options than are known to be harmless.
const OPTIONS: &str = "has options that may write or run";
/// A longer command is not looked into, in bytes.
const LONGEST: usize = 20_000;

/// Why this command is asked about, each in a few words: `deletes`; none: it is plain, as far as its words tell.
#[must_use]
pub fn judge(command: &str) -> Vec<&'static str> {
    if command.len() > LONGEST {
        return vec![UNCLEAR];
    }
    let mut reasons = Reasons::new();
    match words::commands(command) {
        Ok(commands) => {
            for words in &commands {
                judge_command(words, &mut reasons);
            }
        }
        Err(problem) => {
            add_harm(command, &mut reasons);
            reasons.insert(problem);
        }
    }
    reasons.into_iter().collect()
}

type Reasons = BTreeSet<&'static str>;

fn judge_command(words: &[ShellWord], reasons: &mut Reasons) {
    let is_variable = |word: &&ShellWord| {
        let name = word.text.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| has(HARMLESS_VARIABLES, name))
    };
    let before = words.iter().take_while(is_variable).count();
    let words = words.get(before..).unwrap_or_default();
    let Some((program, arguments)) = words.split_first() else {
        return;
    };
    if words.iter().any(|word| is_device(&word.text)) {
        reasons.insert("uses a device");
    }
    if program.text.contains('=') {
        reasons.insert("sets a variable");
    }
    if program.is_glob || program.text.is_empty() || program.text.starts_with('%') {
        reasons.insert(UNCLEAR);
    }
    let name = name(&program.text);
    let word = SHELL_WORDS.iter().find(|(_, names)| has(names, &name));
    let asked = word.map(|(reason, _)| *reason).or_else(|| asked(&name));
    let reason = match (asked, only_looks(&name, arguments)) {
        (Some(_), _) if is_lookup(&name, arguments) => return,
        (Some(reason), _) => reason,
        // What a server is told to do is more than looking.
        (None, Some(true)) if name == "curl" => return add_harm_of(words, reasons),
        (None, Some(true)) if has(EVALUATING, &name) && has_subscript(arguments) => UNCLEAR,
        (None, Some(true)) => return,
        (None, _) if name == "git" => CHANGES_REPOSITORY,
        (None, Some(false)) => OPTIONS,
        (None, None) if has("awk mawk nawk", &name) => return judge_awk(arguments, reasons),
        (None, None) if name == "sed" => return judge_sed(arguments, reasons),
        (None, None) => return judge_other(&name, words, reasons),
    };
    reasons.insert(reason);
    add_options(arguments, reasons);
    add_harm_of(words, reasons);
}

/// A program's own name, as the tables have it; also where it is what an option is given: `--shell=/bin/sh`.
fn name(program: &str) -> String {
    let base = program.rsplit(['/', '=']).next().unwrap_or(program);
    // Some file systems take letters of either case for the same.
    let name = base.to_ascii_lowercase();
    match name.strip_prefix('g') {
        Some(plain) if has(GNU, &name) => plain.to_owned(),
        _ => name,
    }
}

/// Whether one of `names`, which stand between blanks, is this one.
fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|known| known == name)
}

/// Why a program of this name is asked about, in whatever version or variant: `vim.tiny`.
fn asked(name: &str) -> Option<&'static str> {
    let is_variant = |c: char| c.is_ascii_digit() || matches!(c, '.' | '@');
    let stem = name.split(is_variant).next().unwrap_or(name);
    let is_known = |known: &str| {
        known == name || known == stem || (known.ends_with('-') && name.starts_with(known))
    };
    let mut rows = ASKED.iter();
    let row = rows.find(|(_, names)| names.split_whitespace().any(is_known));
    row.map(|(reason, _)| *reason).filter(|_| !is_source(name))
}

/// Whether a file of this name, or names of this pattern, is no program, or is a script of the project.
fn is_source(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, ending)| has(SOURCES, ending))
}

/// Whether a program is looked for, and not run: `command -v node`.
fn is_lookup(name: &str, arguments: &[ShellWord]) -> bool {
    let first = arguments.first().map(|word| &*word.text);
    name == "command" && matches!(first, Some("-v" | "-V"))
}

/// Whether the program only looks, with these arguments; `None` where it is not known for that.
fn only_looks(name: &str, arguments: &[ShellWord]) -> Option<bool> {
    let is_git = name == "git";
    let arguments = match arguments.split_first() {
        Some((first, rest)) if is_git && first.text == "--no-pager" => rest,
        _ => arguments,
    };
    let named = |count: usize| {
        let mut full = name.to_owned();
        for word in arguments.get(..count)? {
            full.extend([" ", &word.text]);
        }
        let is_named = |names: &str| {
            if names.starts_with("git ") {
                is_git && names.split(';').any(|known| known == full)
            } else {
                count == 0 && has(names, name)
            }
        };
        let row = LOOKING.iter().position(|(names, ..)| is_named(names))?;
        Some((arguments.get(count..)?, row))
    };
    // The longest name is meant.
    let (arguments, row) = (0..=2).rev().find_map(named)?;
    let ((_, any, operands), options) = LOOKING.get(row).zip(LOOKING_OPTIONS.get(row))?;
    if *any == ANY {
        return Some(true);
    }
    let (given, plain): (Vec<&ShellWord>, Vec<&ShellWord>) =
        arguments.iter().partition(|word| word.may_be_option());
    let is_known = given.iter().all(|word| options.is_match(&word.text));
    Some(is_known && plain.len() <= *operands)
}

/// Whether a word may be taken for a variable's element, or for more of the shell's.
fn has_subscript(words: &[ShellWord]) -> bool {
    words.iter().any(|word| word.text.contains(['$', '`', '[']))
}

/// A program that is not known: it may run each of its words, so that these tell what it may do.
fn judge_other(program: &str, words: &[ShellWord], reasons: &mut Reasons) {
    add_options(words, reasons);
    add_harm_of(words, reasons);
    // `npm version minor` makes one.
    if words.windows(2).any(|pair| pair[0].text == "version") {
        reasons.insert(COMMITS);
    }
    let has_words = has(WITH_WORDS, program);
    let runs_none = has_words || is_managing(words);
    for (at, word) in words.iter().enumerate() {
        let behind = words.get(at + 1..).unwrap_or_default();
        if at == 0 || !runs_none {
            judge_as_program(word, behind, reasons);
        }
        // As a shell would read it, or what a file's name may make of it.
        let is_code = |c| matches!(c, ';' | '|' | '&' | '<' | '>' | '`' | '$' | '\n');
        // Words in one may be a whole command: `npx -c 'reboot now'`.
        let may_be_command = !has_words && word.text.contains(char::is_whitespace);
        if may_be_command || word.text.contains(is_code) || (word.is_glob && word.may_be_option()) {
            reasons.insert(UNCLEAR);
        }
    }
}

/// Whether a program installs, builds, tests or the like, and runs no word that it is given: `uv pip install`.
fn is_managing(words: &[ShellWord]) -> bool {
    let names: Vec<String> = words.iter().map(|word| name(&word.text)).collect();
    let names = match names.as_slice() {
        [python, module, rest @ ..] if python.starts_with("python") && module == "-m" => rest,
        names => names,
    };
    let is_manager = |name: &&String| has(MANAGERS, name.trim_end_matches(is_version));
    let (managers, words) = names.split_at(names.iter().take_while(is_manager).count());
    let (Some(manager), Some(subcommand)) = (managers.last(), words.first()) else {
        return false;
    };
    let is_script = subcommand == "run" && has(SCRIPT_MANAGERS, manager);
    is_script || has(WITH_WORDS_BEHIND, subcommand)
}

/// Notes what a word may do if it is run as a program, with the words behind it.
fn judge_as_program(word: &ShellWord, behind: &[ShellWord], reasons: &mut Reasons) {
    let name = name(&word.text);
    if is_source(&name) {
        return;
    }
    reasons.extend(asked(&name));
    if name == "git" {
        reasons.insert(CHANGES_REPOSITORY);
    }
    let stem = name.split(|c| is_version(c) || c == '-').next();
    let stem = stem.unwrap_or_default();
    let is_shell = stem.ends_with("sh") && stem.chars().all(char::is_alphabetic);
    if has(INTERPRETERS, stem) || has(INTERPRETERS, &name) {
        judge_interpreter(behind, reasons);
    } else if is_shell && !has(NO_SHELLS, stem) {
        reasons.insert(CODE);
    }
    // What a shell makes of it may be any program.
    if word.text.contains(['*', '?', '[', ']', '{', '}']) {
        reasons.insert(UNCLEAR);
    }
}

fn is_version(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// An interpreter is given a script, or a module; not code, nor its input. In the place of a script, no further option
/// stands: `node --test --import=data:…`.
fn judge_interpreter(arguments: &[ShellWord], reasons: &mut Reasons) {
    let mut arguments = arguments.iter().map(|word| &*word.text);
    let is_plain = match arguments.next() {
        None => false,
        Some("-m") => arguments.next().is_some_and(|module| has(MODULES, module)),
        Some(first) if has(WITHOUT_SCRIPT, first) => !arguments.any(|word| word.starts_with('-')),
        Some(first) => !first.starts_with('-'),
    };
    if !is_plain {
        reasons.insert(CODE);
    }
}

/// An awk program may do no more than print.
fn judge_awk(arguments: &[ShellWord], reasons: &mut Reasons) {
    let prints = |word: &ShellWord| {
        let acts = || AWK_ACTS.iter().any(|acts| word.text.contains(acts));
        let is_known = word.text == "-v" || word.text.starts_with("-F");
        is_known || !(word.may_be_option() || acts())
    };
    if !arguments.iter().all(prints) {
        reasons.insert(CODE);
    }
}

/// A script of sed may do no more than print: harmless options, the script, and files.
fn judge_sed(arguments: &[ShellWord], reasons: &mut Reasons) {
    let script = arguments.iter().position(|word| !word.may_be_option());
    let (options, rest) = arguments.split_at(script.unwrap_or_default());
    let (script, files) = rest.split_first().unzip();
    let (before, last) = match options.split_last() {
        Some((last, before)) => (before, Some(last)),
        None => (options, None),
    };
    let is_plain = before
        .iter()
        .all(|word| has("-n -E -r -nE -nr", &word.text))
        && last.is_none_or(|word| has("-n -E -r -nE -nr -e -ne", &word.text))
        && script.is_some_and(|script| SED_PRINTS.is_match(&script.text))
        && files.is_some_and(|files| !files.iter().any(ShellWord::may_be_option));
    if !is_plain {
        reasons.insert(OPTIONS);
        add_options(arguments, reasons);
        add_harm_of(arguments, reasons);
    }
}

/// Notes what options do that mean the same to many programs.
fn add_options(words: &[ShellWord], reasons: &mut Reasons) {
    for word in words {
        if WRITING_OPTION.is_match(&word.text) {
            reasons.insert(OVERWRITES);
        }
        if RUNNING_OPTION.is_match(&word.text) {
            reasons.insert(CODE);
        }
    }
}

/// Notes what the words of a command name.
fn add_harm_of(words: &[ShellWord], reasons: &mut Reasons) {
    for word in words {
        add_harm(&word.text, reasons);
    }
}

/// Notes what a text names, in any of its parts.
fn add_harm(text: &str, reasons: &mut Reasons) {
    let text = text.to_lowercase();
    let parts = || text.split(|c: char| !c.is_alphanumeric());
    for (reason, whole, stems) in HARM {
        let is_stem = stems.split_whitespace().any(|stem| text.contains(stem));
        if is_stem || parts().any(|part| has(whole, part)) {
            reasons.insert(reason);
        }
    }
}

#[cfg(test)]
mod tests;
