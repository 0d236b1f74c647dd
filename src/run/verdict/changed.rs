//! The changed files split into code and gate, and trees with the code of one state and the gate of another. Pure.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::named;
use super::parts::{halves, joined, without_former};
use super::silenced::{self, Balance, Silencer, silencers};
use super::table::{ASSERTS, FileKind, Form, Halves, RUNS, TESTS_WITHIN, extension, kind};
use crate::edit::beneath::split;
use crate::record::gate::GateChange;
use crate::run::past::warnings::{Concern, is_run, signed_lines};
use crate::sys::diff::{Comparison, FileChange, FileState};
use crate::sys::text::regex;

/// Maximum size of an assertion that is examined, in bytes.
const LONGEST: usize = 2000;

/// A line that may end a test early, or exclude a file.
static EARLY: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\s*(?:(?:exit|return|skip|true|pass)\b|// ?[+]build|//go:build)"));
/// A line that changes how other tests are found or run.
static OTHERS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\s*(?:def (?:load_tests|pytest_\w+)\b|collect_ignore|@.*autouse)"));

/// A state of the project: before the run, or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Old,
    New,
}

/// A changed file, with the parts of its change that concern gate and code.
#[derive(Debug)]
struct ChangedFile<'c> {
    change: &'c FileChange,
    kind: FileKind,
    /// The patterns of its parts that belong to the gate, and the parts, before and after.
    patterns: &'static str,
    parts: Option<[Halves; 2]>,
    /// The texts of the gate, before and after, if it consists of tests.
    tests: Option<[String; 2]>,
    /// The lints that are newly silenced in its code.
    silencers: Vec<Silencer>,
    is_gate: bool,
    is_code: bool,
    /// True if it may have changed the gate in a way that cannot be distinguished from a change to the code.
    is_unclear: bool,
    /// True if the build runs the file, so it may be a check.
    may_check: bool,
}

impl<'c> ChangedFile<'c> {
    fn of(change: &'c FileChange, commands: &str) -> Self {
        let path = &change.path;
        let texts = [change.before(), change.after()]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let mut nonblank = texts.iter().filter(|text| !text.trim().is_empty());
        let was = nonblank.next().map_or("", String::as_str);
        let (kind, patterns) = kind(path, was);
        let mut file = Self {
            change,
            kind,
            patterns,
            parts: None,
            tests: None,
            silencers: Vec::new(),
            is_gate: matches!(kind, FileKind::Test | FileKind::Settings),
            is_code: matches!(kind, FileKind::Either | FileKind::Named | FileKind::Code),
            is_unclear: matches!(kind, FileKind::Either | FileKind::Named)
                && change.before.is_some()
                || kind != FileKind::Test && doctests(path, &texts[0]) != doctests(path, &texts[1])
                || kind == FileKind::Code && within(&texts[0]) != within(&texts[1]),
            may_check: false,
        };
        match kind {
            FileKind::Code | FileKind::Named | FileKind::Document => {
                // A script that runs tests or lints.
                let is_shell = matches!(extension(path), "" | "sh" | "bash");
                let is_run = is_run(change, commands);
                file.is_gate = is_shell && RUNS.is_match(was) && is_run;
                file.is_code &= !file.is_gate;
                file.may_check = !file.is_gate && is_run && change.before.is_some();
                file.is_unclear |= file.may_check;
            }
            FileKind::Parts(form) => file.separate_gate(form, &texts),
            FileKind::Test => file.tests = Some(texts),
            _ => {}
        }
        file
    }

    fn separate_gate(&mut self, form: Form, texts: &[String; 2]) {
        let [old, new] = [0, 1].map(|side| halves(form, self.patterns, &texts[side]));
        let Some((old, new)) = old.zip(new) else {
            (self.is_code, self.is_unclear) = (true, true);
            return;
        };
        let new = without_former(form, &old, new);
        self.is_gate = old.gate != new.gate;
        self.is_code = lines(&old.rest).ne(lines(&new.rest));
        self.is_unclear |= old.unclear != new.unclear;
        let text = |side: &Halves| side.gate.iter().map(|(_, text)| text.as_str()).collect();
        // Lint levels have a place, tests do not.
        let mut items = old.gate.iter().chain(&new.gate);
        let has_tests = form == Form::Rust && items.any(|(place, _)| place.is_empty());
        self.tests = (self.is_gate && has_tests).then(|| [text(&old), text(&new)]);
        self.parts = Some([old, new]);
    }

    /// Returns the file's code, before and after; `None` if it cannot be separated from the gate.
    fn code(&self) -> Option<[Cow<'_, str>; 2]> {
        match (&self.parts, self.kind) {
            (Some(parts), _) => Some([0, 1].map(|side| Cow::from(&parts[side].rest))),
            (None, FileKind::Code | FileKind::Named) if self.is_code => {
                Some([self.change.before(), self.change.after()].map(String::from_utf8_lossy))
            }
            _ => None,
        }
    }

    /// Returns the file's new code without newly added silencers, unless the `query` names them.
    fn without_silencers(&self, query: Option<&str>) -> Option<String> {
        let named = |one: &Silencer| query.is_some_and(|query| named::names_lint(query, &one.text));
        let silencers = self.silencers.iter().filter(|one| !named(one));
        let [_, new] = self.code()?;
        Some(silenced::without(&new, silencers))
    }

    fn state(&self, side: Side) -> Option<&FileState> {
        [&self.change.before, &self.change.after][side as usize].as_ref()
    }

    /// Returns the file with the code and the gate of these states, without newly added silencers if `is_loud`; for
    /// tests that a `query` names, the new gate is used.
    fn laid(
        &self,
        code: Side,
        gate: Side,
        query: Option<&str>,
        is_loud: bool,
    ) -> Option<FileState> {
        let path = &self.change.path;
        let is_named = query.is_some_and(|query| named::names_file(query, path));
        let gate = if is_named { Side::New } else { gate };
        let is_loud = is_loud && !self.silencers.is_empty() && !is_named;
        let loud = if is_loud {
            self.without_silencers(query)
        } else {
            None
        };
        if !self.is_gate && (loud.is_none() || self.parts.is_none()) {
            let mut state = self.state(code).cloned()?;
            state.content = loud.map_or(state.content, String::into_bytes);
            return Some(state);
        }
        let with_named = |query| {
            let [old, new] = self.tests.as_ref()?;
            named::without_unnamed(query, path, old, new)
        };
        let tests = query.filter(|_| gate == Side::Old).and_then(with_named);
        let (state, text) = if let (Some(parts), FileKind::Parts(form)) = (&self.parts, self.kind) {
            let tests = tests.and_then(|text| halves(form, self.patterns, &text));
            let gates = tests.as_ref().unwrap_or(&parts[gate as usize]);
            let rest = loud.as_ref().unwrap_or(&parts[code as usize].rest);
            (self.state(code)?, Some(joined(form, rest, &gates.gate)))
        } else {
            let other = tests.as_ref().and(self.state(Side::New));
            (self.state(gate).or(other)?, tests)
        };
        let mut state = state.clone();
        state.content = text.map_or(state.content, String::into_bytes);
        Some(state)
    }

    /// Returns whether its gate has only been extended: new tests were added to the old ones.
    fn is_addition(&self) -> bool {
        let is_new = self.change.before.is_none();
        if !self.silencers.is_empty() {
            return false;
        }
        let Some([old, new]) = &self.tests else {
            // New settings may loosen existing ones.
            return is_new && self.kind != FileKind::Settings;
        };
        if old.is_empty() {
            // Creating tests in an empty file may enable their discovery.
            let is_empty = !is_new && self.kind == FileKind::Test;
            let tests = || signed_lines(&self.change.path, new.as_bytes(), Concern::Test);
            return !new.lines().any(|line| OTHERS.is_match(line))
                && (!is_empty || !tests().is_empty());
        }
        let Some(compared) = Comparison::of(old.as_bytes(), new.as_bytes()) else {
            return false;
        };
        let signs: Vec<usize> = [Concern::Skip, Concern::Only, Concern::Silence]
            .into_iter()
            .flat_map(|sign| signed_lines(&self.change.path, new.as_bytes(), sign))
            .collect();
        let is_early = |line: &&[u8]| {
            let line = String::from_utf8_lossy(line);
            EARLY.is_match(&line) || OTHERS.is_match(&line)
        };
        compared.changes.iter().all(|run| {
            run.before.is_empty()
                && !named::is_decorator(&compared, run)
                && !signs.iter().any(|line| run.after.contains(&(line - 1)))
                && !compared.after[run.after.clone()].iter().any(is_early)
        })
    }

    /// Returns whether the file is new and has tests, or is the test module of a new file.
    fn is_orphan(&self, all: &[ChangedFile<'_>]) -> bool {
        let is_new = |file: &ChangedFile<'_>| file.change.before.is_none();
        let (above, _) = split(&self.change.path);
        let parents = [format!("{above}.rs"), format!("{above}/mod.rs")];
        let mut others = all
            .iter()
            .filter(|file| parents.contains(&file.change.path));
        match self.kind {
            FileKind::Parts(_) => is_new(self) && self.tests.is_some(),
            _ => self.tests.is_some() && others.any(is_new),
        }
    }
}

/// A change, file by file.
#[derive(Debug)]
pub struct Changed<'c>(Vec<ChangedFile<'c>>);

impl<'c> Changed<'c> {
    /// Separates code and gate of the changes, given the commands of the build.
    pub fn of(changes: &'c [FileChange], commands: &str) -> Self {
        let mut files: Vec<ChangedFile<'_>> = changes
            .iter()
            .map(|change| ChangedFile::of(change, commands))
            .collect();
        let mut balance = Balance::new();
        for file in &mut files {
            if let Some([old, new]) = file.code() {
                file.silencers = silencers(&file.change.path, [&old, &new], &mut balance);
            }
        }
        // Code in a new file was not linted before, unless it was moved there.
        let is_removed = |file: &ChangedFile<'_>| file.is_code && file.change.after.is_none();
        let may_have_moved = files.iter().any(is_removed);
        for file in &mut files {
            file.silencers.retain(|one| silenced::is_new(one, &balance));
            let is_new = file.change.before.is_none() && !may_have_moved;
            for one in &mut file.silencers {
                one.is_removable &= !is_new;
            }
            file.is_unclear |= file.silencers.iter().any(|one| !one.is_removable);
        }
        Self(files)
    }

    /// Assigns data files to the gate if only the gate names them, and marks them as unclear if code does, too.
    pub fn with_data(mut self, data: &[(String, bool)]) -> Self {
        for (path, is_unclear) in data {
            if let Some(file) = self.0.iter_mut().find(|file| file.change.path == *path) {
                (file.is_gate, file.is_code) = (!is_unclear, *is_unclear);
                file.is_unclear |= is_unclear;
            }
        }
        self
    }

    /// Returns all changed files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|file| file.change.path.as_str())
    }

    /// Returns the files that belong, or may belong, to the gate, in whole or in part.
    fn gates(&self) -> impl Iterator<Item = &ChangedFile<'c>> {
        let files = self.0.iter();
        files.filter(|file| file.is_gate || file.is_unclear || !file.silencers.is_empty())
    }

    /// Returns the paths of these files.
    pub fn gate_files(&self) -> impl Iterator<Item = &str> {
        self.gates().map(|file| file.change.path.as_str())
    }

    /// Returns the effect on the gate.
    pub fn gate_change(&self) -> GateChange {
        let is_added = |file: &ChangedFile<'_>| !file.is_unclear && file.is_addition();
        match self.gates().next() {
            None => GateChange::None,
            Some(_) if self.gates().all(is_added) => GateChange::Added,
            Some(_) => GateChange::Changed,
        }
    }

    /// Returns whether the gate has changed in a way that can be reverted.
    pub fn has_gate(&self) -> bool {
        let mut files = self.0.iter();
        files.any(|file| file.is_gate || file.silencers.iter().any(|one| one.is_removable))
    }

    /// Returns whether the only change to the gate is that lints are silenced.
    pub fn only_silences(&self) -> bool {
        self.has_gate() && !self.0.iter().any(|file| file.is_gate)
    }

    /// Returns whether the gate may have changed in a way that cannot be reverted.
    pub fn is_unclear(&self) -> bool {
        self.0.iter().any(|file| file.is_unclear)
    }

    /// Returns whether code has changed.
    pub fn has_code(&self) -> bool {
        self.0.iter().any(|file| file.is_code)
    }

    /// Returns whether some of the new tests are for code that the old state does not have.
    pub fn has_orphans(&self) -> bool {
        self.0.iter().any(|file| file.is_orphan(&self.0))
    }

    /// Returns the tests in files that have changed, before and after, with the path of the file.
    pub fn tests(&self) -> impl Iterator<Item = (&str, &[String; 2])> {
        let files = self.0.iter();
        files.filter_map(|file| Some((file.change.path.as_str(), file.tests.as_ref()?)))
    }

    /// Returns whether tests contain assertions that are new.
    pub fn has_new_assertions(&self) -> bool {
        let mut counts: HashMap<String, isize> = HashMap::new();
        for (_, [old, new]) in self.tests() {
            for (text, count) in [(old, -1), (new, 1)] {
                for assertion in assertions(text) {
                    *counts.entry(assertion).or_default() += count;
                }
            }
        }
        counts.values().any(|count| *count > 0)
    }

    /// Returns the files whose gate the query names, and the named tests in other files.
    pub fn named(&self, query: &str) -> Vec<String> {
        let laid = |file: &&ChangedFile<'_>| file.is_gate || !file.silencers.is_empty();
        let names = self.gates().filter(laid).flat_map(|file| {
            let path = &file.change.path;
            if named::names_file(query, path) {
                return vec![path.clone()];
            }
            let mut names = named::named_tests(query, path, file.tests.iter().flatten());
            let lints = file.silencers.iter().map(|one| one.text.clone());
            names.extend(lints.filter(|lint| named::names_lint(query, lint)));
            names
        });
        names.collect()
    }

    /// Returns the files to change in the new tree to get the code of one state and the gate of another, except for the
    /// parts of the gate that the `query` names. A file to remove has no state.
    pub fn tree(
        &self,
        code: Side,
        gate: Side,
        query: Option<&str>,
    ) -> Vec<(&'c str, Option<FileState>)> {
        let is_loud = (code, gate) == (Side::New, Side::Old);
        let files = self.0.iter();
        differing(files.map(|file| (file.change, file.laid(code, gate, query, is_loud))))
    }

    /// Returns the files to change in the new tree to get rid of newly added silencers, except for lints that the
    /// `query` names.
    pub fn tree_without_silencers(&self, query: &str) -> Vec<(&'c str, Option<FileState>)> {
        let files = self.0.iter().filter(|file| !file.silencers.is_empty());
        let laid = |file: &ChangedFile<'_>| file.laid(Side::New, Side::New, Some(query), true);
        differing(files.map(|file| (file.change, laid(file))))
    }

    /// Returns the tree with the new code, the old gate, and the old version of the one unclear file. `None` unless
    /// there is exactly one, the build runs it, and the `query` does not name it.
    pub fn tree_with_check(&self, query: &str) -> Option<Vec<(&'c str, Option<FileState>)>> {
        let mut unclear = self.0.iter().filter(|file| file.is_unclear);
        let check = unclear.next().filter(|file| file.may_check)?.change;
        let is_named = named::names_file(query, &check.path);
        let mut tree = self.tree(Side::New, Side::Old, None);
        tree.retain(|(path, _)| *path != check.path);
        tree.push((&check.path, check.before.clone()));
        (unclear.next().is_none() && !is_named).then_some(tree)
    }
}

/// Returns the paths and states of the files that differ from the new ones.
fn differing<'c>(
    laid: impl Iterator<Item = (&'c FileChange, Option<FileState>)>,
) -> Vec<(&'c str, Option<FileState>)> {
    laid.filter(|(change, state)| change.after != *state)
        .map(|(change, state)| (change.path.as_str(), state))
        .collect()
}

/// Returns the non-blank lines of a text, without trailing white space.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim_end);
    lines.filter(|line| !line.is_empty())
}

/// Returns the rest of a code file, from its first test on.
fn within(text: &str) -> &str {
    let first = TESTS_WITHIN.find(text);
    first.map_or("", |first| &text[first.start()..])
}

/// Returns the tests in a file's documentation.
fn doctests<'t>(path: &str, text: &'t str) -> Vec<&'t str> {
    let is_rust = match extension(path) {
        "rs" => true,
        "py" => false,
        _ => return Vec::new(),
    };
    let mut is_open = false;
    let tests = text.lines().map(str::trim).filter(|line| {
        let words = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let is_fence = is_rust && words.is_some_and(|it| it.trim_start().starts_with("```"));
        is_open = if is_rust {
            is_open != is_fence
        } else {
            line.starts_with(">>>") || is_open && !matches!(*line, "" | "\"\"\"")
        };
        is_open || is_fence
    });
    tests.collect()
}

/// Returns the assertions in a text, each to its last bracket.
fn assertions(text: &str) -> Vec<String> {
    const NONE: [&str; 10] = [
        "//", "# ", "import ", "from ", "use ", "using ", "#include", "const ", "let ", "var ",
    ];
    let is_open = |text: &str| text.matches('(').count() > text.matches(')').count();
    let (mut found, mut lines) = (Vec::new(), text.lines().map(str::trim));
    while let Some(line) = lines.next() {
        if NONE.iter().any(|start| line.starts_with(start)) || !ASSERTS.is_match(line) {
            continue;
        }
        let mut whole = line.to_owned();
        while whole.len() < LONGEST && is_open(&whole) {
            let Some(next) = lines.next() else {
                break;
            };
            whole.push_str(next);
        }
        found.push(whole);
    }
    found
}
