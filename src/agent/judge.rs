//! The judge of shell commands, shared by all agents: determines what a command would do.
//!
//! Pure: splits a command into simple commands and words as a shell does, and judges these by the table. It does not
//! access the disk; the caller says which scripts are known. Guarantees that a command that cannot be analysed is never
//! taken for harmless. The effects of the programs themselves, such as tests and build scripts, are unknown.

mod looking;
mod table;
mod words;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gix_glob::wildmatch::Mode;

use self::looking::{only_looks, takes};
use self::table::{
    CHANGES_REPOSITORY, CODE, CONCEALS, DEVICE, NEW_SCRIPT, OPTIONS, OVERWRITES, RUNS, VARIABLE,
    has, is_named, is_script, list, name, rows, stem,
};
pub(in crate::agent) use self::table::{audited, is_whole};
use self::words::{ShellWord, SimpleCommand, UNCLEAR, is_device};

/// The prefix of the rule that covers all read-only programs.
pub const LOOKS: &str = "@looking";
/// The maximum length of a command, in bytes; longer ones are reported as unclear.
const LONGEST: usize = 20_000;

/// The result of judging a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgedCommand {
    /// Reasons to ask about the command even if a rule allows it, each in a few words: `deletes`. If empty, the rules
    /// decide.
    pub reasons: BTreeSet<&'static str>,
    /// The programs that the reasons are about, with their arguments.
    pub cause: Vec<String>,
    /// The programs that the command runs; empty if it is unclear.
    pub programs: Vec<JudgedProgram>,
    /// All words that may begin a program or an argument, where a program may run others or what is run is unclear.
    words: Vec<String>,
}

impl JudgedCommand {
    /// Adds a reason to ask, with the program that it is about.
    fn ask(&mut self, words: &[ShellWord], reason: &'static str) {
        let words: Vec<&str> = words.iter().map(|word| &*word.text).collect();
        self.cause.push(words.join(" "));
        self.reasons.insert(reason);
        // The program may run others.
        let open = [
            CODE, CONCEALS, DEVICE, NEW_SCRIPT, OPTIONS, RUNS, UNCLEAR, VARIABLE,
        ];
        if open.contains(&reason) || rows("shell words").any(|[known]| known == reason) {
            self.words.extend(words.into_iter().map(str::to_owned));
        }
    }

    /// Returns whether a forbidden `prefix` occurs where a program may run others, or where it is unclear what is run.
    pub fn may_run(&self, prefix: &str) -> bool {
        forbidden(&self.words, self.words.len(), prefix).is_some()
    }
}

/// One program of a command with its arguments, without harmless prefixes such as `timeout 60` or `CI=1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedProgram {
    /// The operator before it, such as `&&`; empty for the first one.
    pub operator: String,
    words: Vec<String>,
    /// Set if the program is read-only.
    pub only_looks: bool,
}

impl JudgedProgram {
    /// Returns the prefix of the rule that would cover this program: the program and its subcommand, or [`LOOKS`].
    pub fn prefix(&self) -> String {
        if self.only_looks {
            return LOOKS.to_owned();
        }
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let prefix = words.iter().take(prefix_length(&words)).copied();
        shlex::try_join(prefix).unwrap_or_default()
    }

    /// Returns the number of words of `prefix` if it covers this program, otherwise `None`. [`LOOKS`] counts as 0.
    pub fn covered_by(&self, prefix: &str) -> Option<usize> {
        if prefix == LOOKS {
            return self.only_looks.then_some(0);
        }
        let prefix = shlex::split(prefix)?;
        (!prefix.is_empty() && self.words.starts_with(&prefix)).then_some(prefix.len())
    }

    /// Returns what [`covered_by`](Self::covered_by) does, for a rule that forbids: also for the program by another
    /// path, with options before its subcommand, and behind a runner.
    pub fn forbidden_by(&self, prefix: &str) -> Option<usize> {
        let texts: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (program, arguments) = texts.split_first()?;
        let runs_others = runner(&name(program), arguments).is_some();
        let count = if runs_others { texts.len() } else { 1 };
        let covered = self.covered_by(prefix);
        covered.or_else(|| forbidden(&self.words, count, prefix))
    }
}

/// Returns the number of words of a forbidden `prefix` if one of the first `count` words begins a program that it means.
fn forbidden(words: &[String], count: usize, prefix: &str) -> Option<usize> {
    let prefix = shlex::split(prefix)?;
    let (program, subcommand) = prefix.split_first()?;
    let is_meant = |(own, arguments): (&String, &[String])| {
        let mut is_reached = vec![true];
        is_reached.resize(arguments.len() + 3, false);
        for (at, word) in arguments.iter().enumerate() {
            // An option may take a value.
            if is_reached[at] && word.starts_with(['-', '+']) {
                is_reached[at + 1..=at + 2].fill(true);
            }
        }
        let mut ends = (0..=arguments.len()).filter(|at| is_reached[*at]);
        may_name(own, program) && ends.any(|at| arguments[at..].starts_with(subcommand))
    };
    let mut ends = (0..count).filter_map(|at| words.get(at..)?.split_first());
    ends.any(is_meant).then_some(prefix.len())
}

/// Returns whether a word may name a program, by any path or by a pattern that spells a part of it: `gi[t]`, but not
/// `src/*`.
fn may_name(word: &str, program: &str) -> bool {
    let (word, program) = (name(word), name(program));
    let spells = word.chars().any(|c| program.contains(c));
    spells && gix_glob::wildmatch((&*word).into(), (&*program).into(), Mode::empty())
}

/// The state of a file that a command would run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptState {
    /// Git tracks the file.
    Tracked,
    /// Git does not track the file, or it lies outside the project.
    Untracked,
    /// This session has written the file.
    Written,
}

/// Judges a command. `state_of` returns the state of a script, by its path relative to the directory the command runs
/// in.
pub fn judge(command: &str, state_of: &dyn Fn(&Path) -> ScriptState) -> JudgedCommand {
    if command.len() > LONGEST {
        return unclear(command, UNCLEAR);
    }
    let commands = match words::commands(command) {
        Ok(commands) => commands,
        Err(problem) => return unclear(command, problem),
    };
    let mut judge = Judge {
        state_of,
        directory: Some(PathBuf::new()),
        judged: JudgedCommand::default(),
    };
    for (at, command) in commands.iter().enumerate() {
        // Behind any other operator, a `cd` before may have failed, or have been another process.
        if !matches!(&*command.operator, "&&" | "|" | "|&") {
            let start = Path::new("");
            judge.directory.take_if(|directory| directory != start);
        }
        let next = commands.get(at + 1).map(|next| &*next.operator);
        judge.see(command, next);
    }
    judge.judged
}

fn unclear(command: &str, reason: &'static str) -> JudgedCommand {
    let is_between = |c: char| c.is_whitespace() || ";&|()<>{}$`'\"=".contains(c);
    // A shell joins what is quoted: `pu''sh`.
    let joined = command.replace(['\'', '"', '\\'], "");
    let words = command.split(is_between).chain(joined.split(is_between));
    let words = words.filter(|word| !word.is_empty());
    JudgedCommand {
        reasons: BTreeSet::from([reason]),
        words: words.map(str::to_owned).collect(),
        ..JudgedCommand::default()
    }
}

/// A command while it is being judged.
struct Judge<'s> {
    state_of: &'s dyn Fn(&Path) -> ScriptState,
    /// The directory of the next program, relative to that of the command; `None` if unknown.
    directory: Option<PathBuf>,
    judged: JudgedCommand,
}

impl Judge<'_> {
    /// Judges a command; `next` is the operator behind it.
    fn see(&mut self, command: &SimpleCommand, next: Option<&str>) {
        let words = match unwrapped(&command.words) {
            Ok(words) => words,
            Err(reason) => return self.judged.ask(&command.words, reason),
        };
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        let only_looks = only_looks(words);
        if let Some(reason) = self.guard(words, only_looks) {
            self.judged.ask(words, reason);
        }
        self.judged.programs.push(JudgedProgram {
            operator: command.operator.clone(),
            words: words.iter().map(|word| word.text.clone()).collect(),
            only_looks,
        });
        if matches!(&*program.text, "cd" | "pushd" | "popd") {
            // Neither skipped, nor in a process of its own, as in `x || cd a`, `cd a | x` and `timeout 5 cd a`.
            let is_run = matches!(&*command.operator, "" | ";" | "\n" | "&&");
            let is_done = is_run && next == Some("&&") && words.len() == command.words.len();
            let known = self.directory.take();
            self.directory = known.and_then(|known| match arguments {
                [to] if is_done && !to.may_be_option() && !to.is_glob => Some(known.join(&to.text)),
                _ => None,
            });
        }
    }

    /// Finds a reason to ask about a program even if a rule allows it; `None` leaves the decision to the rules.
    fn guard(&self, words: &[ShellWord], only_looks: bool) -> Option<&'static str> {
        let (program, arguments) = words.split_first()?;
        if words.iter().any(|word| is_device(&word.text)) {
            return Some(DEVICE);
        }
        if program.text.contains('=') {
            return Some(VARIABLE);
        }
        let is_odd = |c: char| c.is_whitespace() || c == '%';
        if program.is_glob || program.text.is_empty() || program.text.contains(is_odd) {
            return Some(UNCLEAR);
        }
        if only_looks {
            return None;
        }
        // A script of the project may share its name with a system tool: `bin/test`.
        let is_inside = program.text.contains('/') && !program.text.starts_with('/');
        if is_inside && self.state(program) == ScriptState::Tracked {
            return None;
        }
        let name = &*name(&program.text);
        if let Some([reason, _]) = rows("shell words").find(|[_, names]| has(names, name)) {
            return Some(reason);
        }
        if let Some(reason) = guarded(name, arguments) {
            return Some(reason);
        }
        let looks = rows("looking").any(|[names]| is_named(names, name));
        let overwrites = |word: &ShellWord| is_whole(&word.text, list("overwriting"));
        match name {
            // The pattern may expand to several operands.
            _ if looks && arguments.iter().any(|word| word.is_glob) => Some(UNCLEAR),
            _ if looks => Some(OPTIONS),
            "git" => harmful(name, arguments)
                .or_else(|| (!is_passing_git(arguments)).then_some(CHANGES_REPOSITORY)),
            name if name.starts_with("git-") => Some(CHANGES_REPOSITORY),
            name if name.starts_with("ld-") => Some(RUNS),
            _ if arguments.iter().any(overwrites) => Some(OVERWRITES),
            _ if has(list("interpreters"), name) || has(list("interpreters"), stem(name)) => {
                self.guard_interpreter(name, arguments)
            }
            _ => self
                .guard_script(program, name, arguments)
                .or_else(|| self.guard_run(name, arguments))
                .or_else(|| conceals(name, arguments).then_some(CONCEALS)),
        }
    }

    /// Finds a reason to ask about code, modules and scripts passed to an interpreter, unless they are known.
    fn guard_interpreter(&self, name: &str, arguments: &[ShellWord]) -> Option<&'static str> {
        let harmless = if has(list("shells"), name) {
            list("shell options")
        } else {
            list("script options")
        };
        let takes_its_place = |option: &ShellWord| {
            let mut rows = rows("without script");
            rows.any(|[names, options]| has(names, stem(name)) && is_whole(&option.text, options))
        };
        let is_harmless =
            |word: &&ShellWord| is_whole(&word.text, harmless) && !takes_its_place(word);
        let count = arguments.iter().take_while(is_harmless).count();
        let Some((first, rest)) = arguments.split_at(count).1.split_first() else {
            return Some(CODE);
        };
        match &*first.text {
            "-m" if matches!(stem(name), "pypy" | "python") => self.guard_module(rest),
            option if takes_its_place(first) => {
                // Further options may name code: `node --test --import=data:…`.
                let code = rest.iter().any(ShellWord::may_be_option);
                // `--check` only parses its files. Patterns and directories name tests, as `--test` alone does.
                let is_named = |file: &&ShellWord| is_script(&file.text) && !file.is_glob;
                let mut scripts = rest.iter().filter(|_| option != "--check").filter(is_named);
                let script = || scripts.find_map(|file| self.guard_file(file));
                code.then_some(CODE).or_else(script)
            }
            _ if first.may_be_option() => Some(CODE),
            _ => self.guard_file(first),
        }
    }

    /// Finds a reason to ask about a module of Python, before which a file of its name in the directory would run.
    fn guard_module(&self, words: &[ShellWord]) -> Option<&'static str> {
        let is_known = |module: &&ShellWord| has(list("modules"), &module.text);
        let Some(module) = words.first().filter(is_known) else {
            return Some(CODE);
        };
        let package = module.text.split('.').next().unwrap_or_default();
        let path = module.text.replace('.', "/");
        let files = [
            format!("{package}.py"),
            format!("{package}/__init__.py"),
            format!("{path}.py"),
            format!("{path}/__main__.py"),
        ];
        let is_written = files.iter().any(|file| self.is_written(file));
        is_written
            .then_some(NEW_SCRIPT)
            .or_else(|| self.guard(words, only_looks(words)))
    }

    /// Finds a reason to ask about a program that is, or runs, an unknown script.
    fn guard_script(
        &self,
        program: &ShellWord,
        name: &str,
        arguments: &[ShellWord],
    ) -> Option<&'static str> {
        if has(list("run files"), name) {
            let mut scripts = arguments.iter().filter(|word| is_script(&word.text));
            return scripts.find_map(|script| self.guard_file(script));
        }
        (program.text.contains('/') && self.is_written(&program.text)).then_some(NEW_SCRIPT)
    }

    fn guard_file(&self, script: &ShellWord) -> Option<&'static str> {
        (self.state(script) != ScriptState::Tracked).then_some(NEW_SCRIPT)
    }

    fn state(&self, script: &ShellWord) -> ScriptState {
        match self.directory.as_deref().filter(|_| !script.is_glob) {
            Some(directory) => (self.state_of)(&directory.join(&script.text)),
            None => ScriptState::Untracked,
        }
    }

    /// Returns whether this session has written a file, or may have since the directory is unknown.
    fn is_written(&self, path: &str) -> bool {
        let directory = self.directory.as_deref();
        let known = directory.or(path.starts_with('/').then_some(Path::new("/")));
        known.is_none_or(|known| (self.state_of)(&known.join(path)) == ScriptState::Written)
    }

    /// Judges the program that a runner starts (`npx prettier --write .`), or else its subcommand.
    fn guard_run(&self, name: &str, arguments: &[ShellWord]) -> Option<&'static str> {
        let texts: Vec<&str> = arguments.iter().map(|word| &*word.text).collect();
        let Some(before) = runner(name, &texts) else {
            return harmful(name, arguments);
        };
        let inner = arguments.get(before..).unwrap_or_default();
        match inner.first() {
            Some(first) if first.may_be_option() => Some(OPTIONS),
            Some(first) if is_script(&first.text) => self.guard_file(first),
            _ => self.guard(inner, only_looks(inner)),
        }
    }
}

/// Returns the reason given by the first row of the table that matches a program.
fn guarded(name: &str, arguments: &[ShellWord]) -> Option<&'static str> {
    let any = |pattern: &str| arguments.iter().any(|word| is_whole(&word.text, pattern));
    let mut guarded = rows("guarded").filter(|[_, names, only, with, without]| {
        (has(names, name) || has(names, stem(name)))
            && (only.is_empty() || subcommands(name, arguments).any(|word| has(only, &word.text)))
            && (with.is_empty() || any(with))
            && (without.is_empty() || !any(without))
    });
    guarded.next().map(|[reason, ..]| reason)
}

/// Returns the words that may be a program's subcommand: the first word if it is not an option. After a leading option,
/// which may take a value, and for programs with several subcommands, any word may be one.
fn subcommands<'w>(name: &str, arguments: &'w [ShellWord]) -> impl Iterator<Item = &'w ShellWord> {
    let is_option = |word: &ShellWord| word.text.starts_with(['-', '+']);
    let first = arguments.first().map(|word| &*word.text);
    let is_first = !first.is_some_and(|word| word.starts_with('-'));
    let count = match name {
        name if has(list("without subcommands"), name) => 0,
        name if !is_first || has(list("nested"), name) => usize::MAX,
        // `npm run clean`
        _ if first == Some("run") => 2,
        _ => 1,
    };
    let arguments = arguments.iter().take_while(|word| word.text != "--");
    arguments.filter(move |word| !is_option(word)).take(count)
}

/// Returns whether a pattern may expand to an option or a subcommand that decides what the program does.
fn conceals(name: &str, arguments: &[ShellWord]) -> bool {
    arguments.iter().any(ShellWord::conceals_option)
        || subcommands(name, arguments).any(ShellWord::conceals_subcommand)
}

/// Finds a reason in the name of a program or of its subcommand.
fn harmful(name: &str, arguments: &[ShellWord]) -> Option<&'static str> {
    let is_one = |names: &str| {
        let mut words = subcommands(name, arguments);
        let is_part = |part: &str| has(names, &part.to_lowercase());
        let is_one = |word: &ShellWord| word.text.split(':').any(is_part);
        has(names, name) || words.any(is_one)
    };
    // `dotnet restore` and `dotnet publish` write no more than a build does.
    let mut harmful = rows("harmful").filter(|[_, names]| name != "dotnet" && is_one(names));
    harmful.next().map(|[reason, _]| reason)
}

/// Returns whether a git command does nothing that always needs confirmation.
fn is_passing_git(arguments: &[ShellWord]) -> bool {
    let Some((subcommand, rest)) = arguments.split_first() else {
        return false;
    };
    rows::<3>("git").any(|row| row[0] == subcommand.text && takes(row, rest))
}

/// Counts the words between a runner and the program it starts; `None` if it starts none.
fn runner(name: &str, words: &[&str]) -> Option<usize> {
    let [_, subcommands] = rows("runners").find(|[names, _]| has(names, name))?;
    let subcommand = usize::from(!subcommands.is_empty());
    if subcommand == 1 && !words.first().is_some_and(|word| has(subcommands, word)) {
        // Options before the subcommand may take values of their own.
        let is_behind_options = words.first().is_some_and(|word| word.starts_with('-'))
            && words.iter().any(|word| has(subcommands, word));
        return is_behind_options.then_some(0);
    }
    let options = words
        .iter()
        .skip(subcommand)
        .take_while(|word| is_whole(word, list("runner options")));
    Some(subcommand + options.count())
}

/// Counts the words at the start of a command that form a rule: the program and its subcommand, or its script.
fn prefix_length(words: &[&str]) -> usize {
    let Some((program, arguments)) = words.split_first() else {
        return 0;
    };
    let name = &*name(program);
    if let Some(before) = runner(name, arguments) {
        let inner = arguments.get(before..).unwrap_or_default();
        return 1 + before + prefix_length(inner);
    }
    let is_interpreter = has(list("interpreters"), name) || has(list("interpreters"), stem(name));
    let plain = arguments
        .iter()
        .position(|word| !word.starts_with(['-', '+']));
    let mut behind_toolchain = arguments.iter().skip_while(|word| word.starts_with('+'));
    let is_option = |word: &&str| word.starts_with('-');
    match plain.and_then(|at| Some((at, *arguments.get(at)?))) {
        Some((at, _)) if is_interpreter => at + 2,
        Some(_) if name == "curl" => words.len(),
        _ if has(list("without subcommands"), name) => 1,
        None if is_script(program) => 1,
        // An option may take the next word, so the subcommand is not known: the rule is for exactly this command.
        _ if behind_toolchain.next().is_some_and(is_option) => words.len(),
        // In `npm run lint`, `lint` identifies the command.
        Some((at, word)) if word == "run" || has(list("deep"), name) && is_name(word) => {
            let next = arguments.get(at + 1).filter(|word| is_name(word));
            at + 2 + usize::from(next.is_some())
        }
        Some((at, word)) if is_name(word) => at + 2,
        _ => 1,
    }
}

/// Returns whether a word may be the name of a subcommand rather than a path.
fn is_name(word: &str) -> bool {
    is_whole(word, "[A-Za-z][A-Za-z0-9:_-]*")
}

/// Strips harmless prefixes from a command: variable assignments and wrappers such as `timeout 5`.
fn unwrapped(mut words: &[ShellWord]) -> Result<&[ShellWord], &'static str> {
    let is_variable = |word: &&ShellWord| {
        let name = word.text.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| has(list("harmless variables"), name))
    };
    let variables = words.iter().take_while(is_variable).count();
    words = words.get(variables..).unwrap_or_default();
    while let Some((program, arguments)) = words.split_first() {
        let name = name(&program.text);
        let mut wrappers = rows::<4>("wrappers").filter(|[known, ..]| *known == name);
        let Some([_, options, values, operands]) = wrappers.next() else {
            break;
        };
        let mut at = 0;
        while let Some(word) = arguments.get(at).filter(|word| word.may_be_option()) {
            at += match &*word.text {
                value if has(values, value) => 2,
                option if is_whole(option, options) => 1,
                _ => return Err(RUNS),
            };
        }
        match arguments.split_at_checked(at + operands.parse().unwrap_or(0)) {
            Some((own, inner)) if !inner.is_empty() && !own.iter().any(|word| word.is_glob) => {
                words = inner;
            }
            _ => return Err(RUNS),
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests;
