//! Finds the errors and warnings in a build's output, whatever tool wrote them. Pure.

use std::sync::LazyLock;

use regex::Regex;

use crate::sys::text::{regex, without_escapes};

/// How many lines of each kind are found at most.
pub const MOST: usize = 200;
/// How far behind a compiler's message its place is looked for, in lines.
const NEAR: usize = 3;
/// So many lines tell why a build failed.
const REASONS: usize = 10;

/// How bad a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// An error, a failed test.
    Error,
    /// A warning, which by itself fails no build.
    Warning,
}

impl Severity {
    /// The CSS class.
    pub fn class(self) -> &'static str {
        if self == Self::Error { "e" } else { "w" }
    }

    /// The sign for those who do not see colours.
    pub fn mark(self) -> &'static str {
        if self == Self::Error { "\u{2717}" } else { "!" }
    }
}

/// A line that tells of an error or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line's index, from 0 on.
    pub line: usize,
    /// How bad it is.
    pub severity: Severity,
    /// Where it is in the sources, if the next lines tell.
    pub place: Option<String>,
}

/// The lines that tell of errors, as tools write them.
const ERRORS: [&str; 23] = [
    // rustc, cargo, clang, bash's and git's own words.
    r"^\s*(?:fatal |internal compiler |compile |build )?(?i:error)(?:\[[A-Za-z]*\d+\])?\s?:",
    r"^\s*(?i:fatal):",
    // The way out of dubious ownership, which git itself names.
    r"^\s*git config --global --add safe\.directory ",
    // gcc, clang, javac, swift, shellcheck: a place, and then the word.
    r"^\s*\S+?:\d+(?::\d+)?:\s+(?:fatal |internal compiler )?error\b",
    // tsc and MSVC: `a.ts(3,5): error`, `a.ts:3:5 - error`.
    r"\(\d+(?:,\d+)?\)\s?: (?:fatal )?error\b",
    r"^\S+:\d+:\d+ - error\b",
    // go build and go vet.
    r"^\S+\.go:\d+(?::\d+)?: ",
    // Test runners: cargo, pytest, go, jest, TAP, unittest, ctest.
    r"\bFAILED\b",
    r"^(?:--- )?FAIL\b",
    r"^not ok \d",
    r"^\s*(?:✗|✘|✖|×|●) ",
    r"\bpanicked at\b",
    r"^thread '.*' has overflowed its stack",
    // Python, JavaScript, Java, Ruby: the end of a stack trace, or its beginning.
    r"^Traceback \(most recent call last\)",
    r"^(?:Uncaught )?(?:[A-Za-z_][\w.]*)?(?:Error|Exception)(?: \[\w+\])?(?::|$)",
    r"^E   +\S",
    r"^Exception in thread ",
    // npm, make, ninja, linkers.
    r"^npm (?:ERR!|error)",
    r"^(?:\S*/)?g?make(?:\[\d+\])?: \*\*\*",
    r"\bundefined reference to\b|\bundefined symbol\b|^ld: ",
    // Shells.
    r"(?:: |^)(?:command )?not found$|: not found\b",
    r": (?:No such file or directory|Permission denied|cannot execute|Is a directory)\b|\b[Ss]yntax error\b",
    r"^(?:Segmentation fault|Aborted|Killed|Bus error|Illegal instruction)\b|\bcore dumped\b",
];

/// The same for warnings.
const WARNINGS: [&str; 4] = [
    r"^\s*(?i:warning)(?:\[[A-Za-z]*\d+\])?\s?:",
    r"^\s*\S+?:\d+(?::\d+)?:\s+warning\b|^\S+:\d+:\d+ - warning\b|\(\d+(?:,\d+)?\): warning\b",
    r"^npm (?:WARN|warn)\b",
    r"^(?:WARN|WARNING)\b|\bDeprecationWarning\b",
];

/// What rustc puts below its message, and Python above it.
const PLACE: &str = r#"^\s*--> (\S.*:\d+:\d+)\s*$|^\s+File "(.+", line \d+)"#;

static ERROR: LazyLock<Regex> = LazyLock::new(|| regex(&ERRORS.join("|")));
static WARNING: LazyLock<Regex> = LazyLock::new(|| regex(&WARNINGS.join("|")));
static AT: LazyLock<Regex> = LazyLock::new(|| regex(PLACE));

/// The lines that tell of errors and warnings, in their order.
pub fn find(lines: &[&str]) -> Vec<Diagnostic> {
    let mut left = [MOST, MOST];
    let mut findings = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(severity) = severity(line) else {
            continue;
        };
        let left = &mut left[usize::from(severity == Severity::Warning)];
        if *left > 0 {
            *left -= 1;
            findings.push(Diagnostic {
                line: at,
                severity,
                place: place(&lines[at + 1..]),
            });
        }
    }
    findings
}

/// Why a build failed, in a few lines: the errors in its output, or its last lines, where no error is found.
pub fn reasons(output: &str) -> Vec<String> {
    let lines = seen_lines(output);
    let errors = errors_in(&lines);
    if !errors.is_empty() {
        return errors;
    }
    let told = lines.into_iter().filter(|line| !line.is_empty());
    let mut last: Vec<String> = told.rev().take(REASONS).collect();
    last.reverse();
    if last.is_empty() {
        last.push("it printed nothing".to_owned());
    }
    last
}

/// The first errors in an output, each with its place.
pub fn errors(output: &str) -> Vec<String> {
    errors_in(&seen_lines(output))
}

/// The lines of an output as a terminal shows them.
fn seen_lines(output: &str) -> Vec<String> {
    // What stands before a lone return was written over.
    let seen = |line: &str| {
        let seen = line.trim_end().rsplit('\r').next().unwrap_or_default();
        seen.replace('\t', "    ")
    };
    without_escapes(output).lines().map(seen).collect()
}

fn errors_in(lines: &[String]) -> Vec<String> {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let found = find(&lines);
    let errors = found.iter().filter(|one| one.severity == Severity::Error);
    let mut errors: Vec<String> = errors.map(|error| error.told(&lines)).collect();
    let at_least = if errors.len() < MOST { "" } else { "at least " };
    let more = errors.len().saturating_sub(REASONS);
    errors.truncate(REASONS);
    if more > 0 {
        errors.push(format!("and {at_least}{more} more"));
    }
    errors
}

impl Diagnostic {
    /// The line itself, with its place, and with the next line, where it ends by pointing to that.
    fn told(&self, lines: &[&str]) -> String {
        let line = lines[self.line].trim();
        let next = lines.get(self.line + 1).map(|next| next.trim());
        let next = next.filter(|_| line.ends_with(':') && self.place.is_none());
        let behind = self.place.as_deref().map(|place| format!("({place})"));
        let behind = behind.or_else(|| next.map(str::to_owned));
        behind.map_or_else(|| line.to_owned(), |behind| format!("{line} {behind}"))
    }
}

fn severity(line: &str) -> Option<Severity> {
    if ERROR.is_match(line) {
        return Some(Severity::Error);
    }
    WARNING.is_match(line).then_some(Severity::Warning)
}

/// The place that the lines behind a message tell, before the next message.
fn place(behind: &[&str]) -> Option<String> {
    let near = behind.iter().take(NEAR);
    let mut near = near.take_while(|line| severity(line).is_none());
    near.find_map(|line| {
        let found = AT.captures(line)?;
        let place = found.get(1).or(found.get(2))?;
        Some(place.as_str().replace('"', ""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_many_tools_are_found() {
        for line in [
            "error[E0308]: mismatched types",
            "error: could not compile `x` (lib) due to 1 previous error",
            "  error: x",
            "ERROR: no such thing",
            "Error: it broke",
            "fatal: not a git repository",
            "src/a.c:3:5: error: expected ';'",
            "src/a.c:3:5: fatal error: x.h: No such file",
            "a.ts(3,5): error TS2322: Type",
            "a.ts:3:5 - error TS2322: Type",
            "./main.go:7:2: undefined: x",
            "test tests::a ... FAILED",
            "FAILED: '  Hello ' -> '-hello-', wanted 'hello'",
            "--- FAIL: TestX (0.00s)",
            "FAIL src/a.test.js",
            "not ok 3 - adds",
            "thread 'main' panicked at src/main.rs:1:2:",
            "Traceback (most recent call last):",
            "ModuleNotFoundError: No module named 'x'",
            "TypeError: x is not a function",
            "java.lang.IllegalStateException: x",
            "E       assert 1 == 2",
            "npm ERR! code 1",
            "npm error code 1",
            "make: *** [Makefile:2: all] Error 1",
            "make[2]: *** No rule to make target",
            "/usr/bin/ld: a.o: undefined reference to `f'",
            "./build.sh: 3: cargo: not found",
            "build.sh: line 3: cargo: command not found",
            "cat: x: No such file or directory",
            "build.sh: 7: Syntax error: \"fi\" unexpected",
            "Segmentation fault (core dumped)",
        ] {
            assert_eq!(severity(line), Some(Severity::Error), "{line}");
        }
    }

    #[test]
    fn warnings_are_told_apart_and_other_lines_are_neither() {
        for line in [
            "warning: unused variable: `x`",
            "warning[E0001]: x",
            "a.c:1:2: warning: unused",
            "npm WARN deprecated x",
            "WARNING: x",
        ] {
            assert_eq!(severity(line), Some(Severity::Warning), "{line}");
        }
        for line in [
            "",
            "test tests::errors_are_told ... ok",
            "test result: ok. 3 passed; 0 failed; 0 ignored",
            "Compiling thiserror v2.0.0",
            "ok: 'Hello' -> 'hello'",
            "0 errors, 0 warnings",
            "running the error tests",
            "https://x/y: fine",
        ] {
            assert_eq!(severity(line), None, "{line}");
        }
    }

    #[test]
    fn a_failed_build_is_told_by_its_errors_or_else_by_its_end() {
        let compiler = "warning: x\n\u{1b}[31merror[E0308]: mismatched\u{1b}[0m\n  --> a.rs:2:5\n\nerror: aborting\n";
        let panic = "thread 'x' panicked at src/lib.rs:1:2:\nassertion failed: no\nnote: y\n";
        let long: String = (1..=30).map(|n| format!("line {n}\n\n")).collect();
        let many = "error: again\n".repeat(12);
        for (output, expected) in [
            (
                compiler,
                &["error[E0308]: mismatched (a.rs:2:5)", "error: aborting"][..],
            ),
            (
                panic,
                &["thread 'x' panicked at src/lib.rs:1:2: assertion failed: no"],
            ),
            ("10%\r\tdone\r\n", &["    done"]),
            ("", &["it printed nothing"]),
        ] {
            assert_eq!(reasons(output), expected);
        }
        let end = reasons(&long);
        assert_eq!((end[0].as_str(), end.len()), ("line 21", 10));
        let errors = reasons(&many);
        assert_eq!(errors.last().map(String::as_str), Some("and 2 more"));
        assert_eq!(errors.len(), 11);
    }

    #[test]
    fn the_place_of_a_message_is_the_one_below_it() {
        let output = "error[E0308]: mismatched types\n  --> src/main.rs:2:5\n   |\nwarning: x\nerror: y\n --> a.rs:1:1\n";
        let lines: Vec<&str> = output.lines().collect();
        let found = find(&lines);
        let told: Vec<_> = found
            .iter()
            .map(|finding| (finding.line, finding.place.as_deref()))
            .collect();
        assert_eq!(
            told,
            [
                (0, Some("src/main.rs:2:5")),
                (3, None),
                (4, Some("a.rs:1:1"))
            ]
        );
    }
}
