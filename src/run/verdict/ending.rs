//! The reason that a build of the verdict failed, by what tools print. Pure.

use std::sync::LazyLock;

use regex::Regex;

use crate::exec::build_script::BuildStatus;
use crate::secret::escapes::without_escapes;
use crate::sys::text::regex;

/// How a build of the verdict ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It passed.
    Passed,
    /// A test failed.
    TestFailed,
    /// A lint found something.
    LintFailed,
    /// It failed for a reason that is not known.
    Failed,
    /// It was not built, or something was missing, so that nothing was tested.
    NotBuilt,
}

/// Lines of test runners that name a failed test, or count them.
const TESTS: [&str; 10] = [
    // Cargo, and panics.
    r"^test .* \.\.\. FAILED|\bpanicked at\b|^\s*FAIL \[\s*[\d.]+s\]",
    // pytest and unittest.
    r"^FAILED \S+::|\b[1-9]\d* failed\b.* in [\d.]+s|^FAIL: |\bfailures=[1-9]",
    // Assertions.
    r"\bAssertionError\b|\bAssertion (?:failed|.*' failed)|\bassert(?:ion)?\b.* failed\b",
    // Go.
    r"^\s*--- FAIL: ",
    // Jest, vitest, mocha, node, TAP.
    r"^\s*Tests:?\s+[1-9]\d* failed|^\s*[1-9]\d* failing\b|^\s*not ok \d|^\s*✕ |^[#ℹ] fail [1-9]",
    // JUnit, Maven, Gradle.
    r"Tests run: \d+, Failures: (?:[1-9]\d*|0, Errors: [1-9])|There (?:were|are) (?:test failures|failing tests)|^\S+ > .+ FAILED$",
    // googletest, Catch2, ctest, Check.
    r"^\[  FAILED  \]|^test cases:.*\b[1-9]\d* failed|\*\*\*Failed\b|^\d+%: Checks: .*(?:Failures: [1-9])",
    // .NET.
    r"^\s*Failed!\s+- Failed:\s+[1-9]|^\s*Failed \S+ \[\d+ m?s\]|^\s*Assert\.\w+\(\) Failure",
    // RSpec, minitest, PHPUnit.
    r"\b[1-9]\d* examples?, [1-9]\d* failures?\b|\b[1-9]\d* runs?, .*\b[1-9]\d* failures\b|^There (?:was|were) [1-9]\d* failures?:|^Tests: \d+, .*Failures: [1-9]",
    // Snapshots.
    r"\b[1-9]\d* snapshots? failed|snapshot assertion for",
];

/// Lines of lints, and of compilers that take warnings for errors.
const LINTS: [&str; 8] = [
    r"\[-?-?Werror\b|-Werror\b|\bwarnings being treated as errors\b|warnings found and -Werror",
    r"`-[DF] \S+`? implied by|requested on the command line with `-[DF]|lint level is defined here|#\[(?:deny|forbid)\(|\bclippy::",
    r"\berror TS(?:253[123]|1804[6-9]|2564|6133|6138|6192|6196|7\d{3})\b|\berror TS2(?:322|345): .*\b(?:null|undefined)\b",
    r"\berror (?:CA|IDE|SA|CS8[67]|CS0168|CS0219|CS0414)\d*\b",
    r"✖ \d+ problems?|^\s*\d+:\d+\s+(?:error|warning)\s+.*\S+$|\beslint\b.*\berror|\bbiome\b",
    r"^\S+:\d+:\d+: [A-Z]{1,4}\d{2,4}\b|\bSC\d{4}\b|^\S+:\d+:\d+: [CWEFR]: |^Found \d+ errors?\.?$|\bFound \d+ errors? in \d+ files?|: error: .*\[[a-z][a-z-]+\]$",
    r"\boffenses? detected|\bYou have \d+ .*violations?|Checkstyle|\bPMD\b|SpotBugs|PHPStan|\[ERROR\] Found \d+ error|detekt|\((?:errcheck|govet|staticcheck|revive|unused|gosec|gosimple)\)$",
    r"(?i)\bcoverage\b.*\b(?:below|less than|not met|fail|threshold)|\bwould (?:be )?reformat(?:ted)?\b|^Diff in |not formatted|\bcode style issues\b",
];

/// Lines that tell that something was not built or not found.
const BUILDS: [&str; 12] = [
    r"^\s*error\[E\d{4}\]|^error: (?:cannot find|expected|unexpected|failed to parse manifest|no such command|couldn't read|environment variable)",
    // Compilers.
    r"^\S+:\d+(?::\d+)?:? (?:fatal )?error\b|\(\d+(?:,\d+)?\)\s?: error\b|^\S+:\d+:\d+ - error\b|\berror (?:TS|CS|MSB|NU)\d+",
    r"\[(?:build|setup) failed\]|^\S+\.go:\d+(?::\d+)?: (?:undefined|cannot|too many|not enough|unknown|assignment mismatch|missing|no required|syntax error|invalid)",
    r"COMPILATION ERROR|Compilation (?:failed|error)|:compile\w* FAILED|^e: \S+|cannot find symbol|\[ERROR\] .*Could not resolve",
    r"\bundefined reference to\b|\bundefined symbol|^ld: |^collect2: error|CMake Error|No rule to make target",
    // Interpreters.
    r"\b(?:ModuleNotFoundError|ImportError|SyntaxError|IndentationError|TabError)\b|\bERROR collecting\b|errors? during collection",
    r"Test suite failed to run|Cannot find (?:module|package)|does not provide an export|ERR_MODULE_NOT_FOUND|Failed to (?:load|resolve)|No test files? found|Missing script",
    r"\bLoadError\b|cannot load such file|uninitialized constant|outside of examples",
    r"PHP (?:Parse|Fatal) error|\bParse error\b|Class \S+ not found|undefined function",
    // Shells.
    r"\bcommand not found\b|: not found$|can't open (?:file|')|No such file or directory|cannot open\b|[Ss]yntax error",
    r"(?i)no tests? (?:ran|found|to run|collected|were found)|collected 0 items",
    r"npm (?:ERR!|error) (?:code E|missing)|Could not (?:find|resolve) dependenc",
];

/// What is left of a build that failed, if nothing else says why.
const UNBUILT: &str = r"^error: could not compile|^(?:\S*/)?g?make(?:\[\d+\])?: \*\*\*.*\.o\b";
/// Words of a failed test that a runner of its own may print.
const WORDS: &str = r"(?i)\bfail(?:s|ed|ure|ures)?\b|\bassert|\bmismatch|\bnot equal\b|\bexpected\b|\bwant(?:ed)?\b.*\bgot\b|\bgot\b.*\bwant(?:ed)?\b|\bwrong\b|^\s*(?:[<>✗✘×] |left: )|^[-+]\S";

static TEST: LazyLock<Regex> = LazyLock::new(|| any(&TESTS));
static LINT: LazyLock<Regex> = LazyLock::new(|| any(&LINTS));
static BUILD: LazyLock<Regex> = LazyLock::new(|| any(&BUILDS));
static REST: LazyLock<[Regex; 2]> = LazyLock::new(|| [UNBUILT, WORDS].map(|one| any(&[one])));

fn any(patterns: &[&str]) -> Regex {
    let all: Vec<String> = patterns.iter().map(|one| format!("(?:{one})")).collect();
    regex(&all.join("|"))
}

impl Ending {
    /// Tells why a build ended as it did. What is found in `tests`, which the other state of the code may not fit, was
    /// not built rather than wrong.
    pub fn of(status: BuildStatus, output: &str, tests: &[&str]) -> Self {
        match status {
            BuildStatus::Exited(0) => return Self::Passed,
            BuildStatus::TimedOut(_) => return Self::NotBuilt,
            _ => {}
        }
        let output = without_escapes(output);
        let has = |pattern: &Regex| output.lines().any(|line| pattern.is_match(line));
        let lints: Vec<&str> = output.lines().filter(|line| LINT.is_match(line)).collect();
        let mut unbuilt = output.lines().filter(|line| BUILD.is_match(line));
        let names_test = |line: &&str| tests.iter().any(|test| line.contains(test));
        let has_place = |line: &&&str| line.contains(':') && line.contains(['.', '/']);
        let mut placed = lints.iter().filter(has_place).peekable();
        let [rest, words] = &*REST;
        if has(&TEST) {
            Self::TestFailed
        } else if unbuilt.any(|line| !LINT.is_match(line))
            || placed.peek().is_some() && placed.all(names_test)
        {
            Self::NotBuilt
        } else if !lints.is_empty() {
            Self::LintFailed
        } else if has(rest) {
            Self::NotBuilt
        } else if has(words) {
            Self::TestFailed
        } else {
            Self::Failed
        }
    }
}
