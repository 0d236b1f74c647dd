//! The files of a change as code and gate, and trees with the code of one state and the gate of another. Pure.

use std::collections::HashMap;

use super::named;
use super::parts::{Halves, halves, joined};
use super::table::{self, FileKind, Form};
use crate::project::gitignore::IgnoreFile;
use crate::record::gate::GateChange;
use crate::run::past::warnings::{Concern, is_run, signed_lines};
use crate::sys::diff::{Comparison, FileChange, FileState};

/// Maximum size of an assertion that is looked at, in bytes.
const LONGEST: usize = 2000;

/// A state of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before the run.
    Old,
    /// After it.
    New,
}

/// A changed file.
#[derive(Debug)]
struct ChangedFile<'c> {
    change: &'c FileChange,
    kind: FileKind,
    /// The parts that are the gate.
    parts: &'static IgnoreFile,
    /// The texts of the gate, before and after, where it consists of tests.
    tests: Option<[String; 2]>,
    is_gate: bool,
    is_code: bool,
    /// True if it may have changed the gate in a way that cannot be told from the code.
    is_unclear: bool,
}

/// A change, file by file.
#[derive(Debug)]
pub struct Changed<'c>(Vec<ChangedFile<'c>>);

impl<'c> ChangedFile<'c> {
    fn of(change: &'c FileChange, build_script: &str) -> Self {
        let (mut kind, parts) = table::kind(&change.path);
        let states = [&change.before, &change.after];
        let bytes = states.map(|state| state.as_ref().map_or(&[][..], |it| &it.content));
        let texts = bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let is_check = || {
            let was = texts.iter().find(|text| !text.is_empty());
            is_shell(&change.path)
                && is_run(change, build_script)
                && was.is_some_and(|text| table::runs_checks(text))
        };
        if kind == FileKind::Code && is_check() {
            kind = FileKind::Settings;
        }
        let mut file = Self {
            change,
            kind,
            parts,
            tests: None,
            is_gate: false,
            is_code: false,
            is_unclear: doctests(&change.path, &texts[0]) != doctests(&change.path, &texts[1]),
        };
        match kind {
            FileKind::Test => {
                file.is_gate = true;
                file.tests = Some(texts);
            }
            FileKind::Settings | FileKind::Build => file.is_gate = true,
            FileKind::Document => file.is_unclear = false,
            FileKind::Code => file.is_code = true,
            FileKind::Either => (file.is_code, file.is_unclear) = (true, true),
            FileKind::Parts(form) => {
                let [old, new] = [&texts[0], &texts[1]].map(|text| halves(form, parts, text));
                file.tell_apart(form, old.zip(new));
            }
        }
        file
    }

    fn tell_apart(&mut self, form: Form, halves: Option<(Halves, Halves)>) {
        let Some((old, new)) = halves else {
            (self.is_code, self.is_unclear) = (true, true);
            return;
        };
        self.is_gate = old.gate != new.gate;
        self.is_code = old.rest != new.rest;
        self.tests = (form == Form::Rust && self.is_gate).then_some([old.gate, new.gate]);
    }

    fn state(&self, side: Side) -> Option<&FileState> {
        match side {
            Side::Old => self.change.before.as_ref(),
            Side::New => self.change.after.as_ref(),
        }
    }

    /// The file with the code and the gate of these states; for the tests that a `query` names, the gate is the new
    /// one.
    fn laid(&self, code: Side, gate: Side, query: Option<&str>) -> Option<FileState> {
        let is_named = query.is_some_and(|query| named::names_file(query, &self.change.path));
        let gate = if is_named { Side::New } else { gate };
        let old_tests = || {
            let [old, new] = self.tests.as_ref()?;
            named::without_unnamed(query?, &self.change.path, old, new)
        };
        let tests = (gate == Side::Old).then(old_tests).flatten();
        let with = |state: Option<&FileState>, text: Option<String>| {
            let content = text.map(String::into_bytes);
            let state = state?.clone();
            Some(match content {
                Some(content) => FileState { content, ..state },
                None => state,
            })
        };
        match self.kind {
            _ if !self.is_gate => self.state(code).cloned(),
            FileKind::Parts(form) => {
                let state = self.state(code);
                let text = |state: Option<&FileState>| {
                    let content = state.map_or(&[][..], |state| &state.content);
                    String::from_utf8_lossy(content).into_owned()
                };
                let gates = tests.unwrap_or_else(|| text(self.state(gate)));
                with(state, joined(form, self.parts, &text(state), &gates))
            }
            // With tests that the query names, a file that is gone or new is there.
            _ => with(
                self.state(gate)
                    .or(tests.as_ref().and(self.state(Side::New))),
                tests,
            ),
        }
    }

    /// Returns whether its gate only has more than before: new tests beside the old ones.
    fn is_addition(&self) -> bool {
        if self.is_unclear {
            return false;
        }
        let Some([old, new]) = &self.tests else {
            return self.change.before.is_none();
        };
        let Some(compared) = Comparison::of(old.as_bytes(), new.as_bytes()) else {
            return old.is_empty();
        };
        let signs = |concern| signed_lines(&self.change.path, new.as_bytes(), concern);
        let starts = signs(Concern::Test);
        let first = starts.first().copied().unwrap_or(0);
        let dims: Vec<usize> = [Concern::Skip, Concern::Only, Concern::Silence]
            .into_iter()
            .flat_map(signs)
            .collect();
        old.is_empty()
            || compared.changes.iter().all(|run| {
                let is_in = |line: &usize| run.after.contains(&(line - 1));
                let mut lines = compared.after[run.after.clone()].iter();
                // Without tests, its language is not known.
                let is_test = if starts.is_empty() {
                    !lines.any(|line| ends_early(line))
                } else {
                    run.after.end < first || starts.iter().any(is_in)
                };
                run.before.is_empty() && is_test && !dims.iter().any(is_in)
            })
    }

    /// Returns whether these are new tests of code that the old state does not have.
    fn is_orphan(&self, all: &[ChangedFile<'_>]) -> bool {
        let is_new = |file: &ChangedFile<'_>| file.change.before.is_none();
        let path = &self.change.path;
        match (self.kind, path.rsplit_once('/')) {
            (FileKind::Parts(Form::Rust), _) => is_new(self) && self.tests.is_some(),
            // A module in a file of its own.
            (FileKind::Test, Some((above, name))) if table::extension(name) == "rs" => {
                let parents = [format!("{above}.rs"), format!("{above}/mod.rs")];
                let is_parent = |file: &&ChangedFile<'_>| parents.contains(&file.change.path);
                all.iter().any(|file| is_parent(&file) && is_new(file))
            }
            _ => false,
        }
    }
}

impl<'c> Changed<'c> {
    /// Tells code and gate of the changes apart.
    pub fn of(changes: &'c [FileChange], build_script: &str) -> Self {
        let files = changes.iter();
        Self(
            files
                .map(|change| ChangedFile::of(change, build_script))
                .collect(),
        )
    }

    /// The files that are gate, or may be, wholly or in part.
    pub fn gate_files(&self) -> impl Iterator<Item = &str> {
        let files = self.0.iter().filter(|file| file.is_gate || file.is_unclear);
        files.map(|file| file.change.path.as_str())
    }

    /// Returns how the gate has changed.
    pub fn gate_change(&self) -> GateChange {
        let mut files = self.0.iter().filter(|file| file.is_gate || file.is_unclear);
        match self.gate_files().next() {
            None => GateChange::None,
            Some(_) if files.all(ChangedFile::is_addition) => GateChange::Added,
            Some(_) => GateChange::Changed,
        }
    }

    /// Returns whether the gate has changed where it can be laid back.
    pub fn has_gate(&self) -> bool {
        self.0.iter().any(|file| file.is_gate)
    }

    /// Returns whether the gate may have changed where it cannot be laid back.
    pub fn is_unclear(&self) -> bool {
        self.0.iter().any(|file| file.is_unclear)
    }

    /// Returns whether code has changed.
    pub fn has_code(&self) -> bool {
        self.0.iter().any(|file| file.is_code)
    }

    /// Returns whether there are tests that are new or changed.
    pub fn has_new_tests(&self) -> bool {
        let mut tests = self.0.iter().filter_map(|file| file.tests.as_ref());
        tests.any(|[_, new]| !new.is_empty())
    }

    /// Returns whether some of the new tests are of code that the old state does not have.
    pub fn has_orphans(&self) -> bool {
        self.0.iter().any(|file| file.is_orphan(&self.0))
    }

    /// Returns whether tests assert what none has asserted before.
    pub fn has_new_assertions(&self) -> bool {
        let mut counts: HashMap<String, isize> = HashMap::new();
        for [old, new] in self.0.iter().filter_map(|file| file.tests.as_ref()) {
            for (text, count) in [(old, -1), (new, 1)] {
                for assertion in assertions(text) {
                    *counts.entry(assertion).or_default() += count;
                }
            }
        }
        counts.values().any(|count| *count > 0)
    }

    /// The names of the files of tests, new or changed.
    pub fn test_files(&self) -> impl Iterator<Item = &str> {
        let tests = self.0.iter().filter(|file| file.tests.is_some());
        tests.map(|file| file.change.path.as_str())
    }

    /// All changed files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|file| file.change.path.as_str())
    }

    /// The files whose gate the query names, and the tests in others.
    pub fn named(&self, query: &str) -> Vec<String> {
        let names = self.0.iter().filter(|file| file.is_gate).flat_map(|file| {
            let path = &file.change.path;
            if named::names_file(query, path) {
                return vec![path.clone()];
            }
            let [old, new] = file.tests.clone().unwrap_or_default();
            named::named_tests(query, path, &[&old, &new])
        });
        names.collect()
    }

    /// The files that differ from their new state in the tree with the code of one state and the gate of another, but
    /// for what the `query` names of the gate. A file that is not there has no state.
    pub fn tree(
        &self,
        code: Side,
        gate: Side,
        query: Option<&str>,
    ) -> Vec<(&'c str, Option<FileState>)> {
        let laid = self.0.iter().map(|file| {
            let state = file.laid(code, gate, query);
            (file.change, state)
        });
        let differing = laid.filter(|(change, state)| change.after != *state);
        differing
            .map(|(change, state)| (change.path.as_str(), state))
            .collect()
    }
}

fn is_shell(path: &str) -> bool {
    matches!(table::extension(path), "" | "sh" | "bash")
}

/// Returns whether a line may leave out what follows.
fn ends_early(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    ["exit", "return", "skip", "true"]
        .iter()
        .any(|word| line.starts_with(word.as_bytes()))
}

/// The tests in a file's documentation.
fn doctests(path: &str, text: &str) -> Vec<String> {
    let extension = table::extension(path);
    let (is_python, is_rust) = (extension == "py", extension == "rs");
    let (mut tests, mut is_open) = (Vec::new(), false);
    for line in text.lines().map(str::trim).filter(|_| is_python || is_rust) {
        let words = ["///", "//!"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        let is_fence = words.is_some_and(|words| words.trim_start().starts_with("```"));
        is_open = if is_python {
            line.starts_with(">>>") || is_open && !line.is_empty() && !line.starts_with("\"\"\"")
        } else {
            is_open != is_fence
        };
        if is_open || is_fence {
            tests.push(line.to_owned());
        }
    }
    tests
}

/// The assertions in a text, each to its last bracket.
fn assertions(text: &str) -> Vec<String> {
    const NONE: [&str; 10] = [
        "//", "# ", "import ", "from ", "use ", "using ", "#include", "const ", "let ", "var ",
    ];
    let depth = |text: &str| {
        let count = |c| text.matches(c).count();
        count('(') > count(')')
    };
    let (mut found, mut lines) = (Vec::new(), text.lines().map(str::trim));
    while let Some(line) = lines.next() {
        if NONE.iter().any(|start| line.starts_with(start)) || !table::asserts(line) {
            continue;
        }
        let mut whole = line.to_owned();
        while whole.len() < LONGEST && depth(&whole) {
            let Some(next) = lines.next() else {
                break;
            };
            whole.push_str(next);
        }
        found.push(whole);
    }
    found
}
