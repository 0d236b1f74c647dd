//! Checks on the spelling of a path alone: its form, and protected names. Pure.
//!
//! Guarantees that a path which passes is relative, consists of plain names, and denotes the same file on Linux, macOS
//! and Windows, so that it cannot be another spelling of a protected path. Based on git's `verify_path` and its tests
//! (t1014, t0060, t7450), and on the naming rules of Windows.

use unicode_normalization::{UnicodeNormalization, is_nfc};

use serde::{Deserialize, Serialize};

use super::Rule;
use crate::project::CONFIG;
use crate::sys::text::is_ignorable;

/// The files below the root that no reply may touch.
pub const PROTECTED_FILES: [&str; 7] = [
    ".code-commit.json",
    ".gitignore",
    "Cargo.lock",
    "build.sh",
    "codeRollup.sh",
    "LLMInstructions.md",
    "UserSpecification.md",
];

/// The directories below the root that no reply may touch, besides `.git` and `agent-config` at any depth: deeper
/// ones hold the keys of other projects.
pub const PROTECTED_DIRECTORIES: [&str; 3] = [CONFIG, "logs", "target"];

/// The directories that agents may not write to either.
pub const CLOSED_DIRECTORIES: [&str; 2] = [CONFIG, "logs"];

/// The kind of writer that a path is checked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PathScope {
    /// A reply, whose edits are applied without review.
    #[default]
    Reply,
    /// An agent's tools, which may reversibly change files that the agent's commands could change unnoticed.
    Agent,
}

impl PathScope {
    /// Returns the narrowest scope that allows all of these paths, each of which some scope allows.
    pub fn of<'p>(mut paths: impl Iterator<Item = &'p str>) -> Self {
        if paths.any(|path| broken_rule(path, Self::Reply).is_some()) {
            Self::Agent
        } else {
            Self::Reply
        }
    }

    /// Returns the protected directories below the root.
    pub fn directories(self) -> &'static [&'static str] {
        match self {
            Self::Reply => &PROTECTED_DIRECTORIES,
            Self::Agent => &CLOSED_DIRECTORIES,
        }
    }
}

/// Pairs of characters that may enclose a path.
const DECORATIONS: [(&str, &str); 9] = [
    ("[", "]"),
    ("(", ")"),
    ("<", ">"),
    ("`", "`"),
    ("\"", "\""),
    ("'", "'"),
    ("“", "”"),
    ("**", "**"),
    ("*", "*"),
];

/// Maximum length of a name on common file systems, in bytes.
const LONGEST_NAME: usize = 255;
/// Maximum length of a path, in bytes: the limit on Linux is 4,096, which includes the root's own path.
const LONGEST_PATH: usize = 4000;

/// Returns the rule that the spelling of `path` breaks; protected paths are reported before malformed ones.
pub fn broken_rule(path: &str, scope: PathScope) -> Option<Rule> {
    protected_rule(path, scope)
        .or_else(|| path_rule(path))
        .or_else(|| path.split('/').find_map(name_rule))
}

/// Returns the rule if `path` is a spelling of a protected path, with separators and names interpreted as any system
/// might.
pub fn protected_rule(path: &str, scope: PathScope) -> Option<Rule> {
    let mut names: Vec<String> = path.split(['/', '\\']).map(fold).collect();
    names.retain(|name| !name.is_empty());
    let first = names.first()?;
    let is_one_of = |protected: &[&str]| protected.iter().any(|name| is_spelling_of(first, name));
    if is_one_of(scope.directories()) {
        return Some(Rule::ProtectedDirectory);
    }
    let are_files_protected = scope == PathScope::Reply;
    if are_files_protected && names.len() == 1 && is_one_of(&PROTECTED_FILES) {
        return Some(Rule::ProtectedFile);
    }
    names.iter().find_map(|name| {
        if is_spelling_of(name, ".git") {
            Some(Rule::ProtectedGit)
        } else if is_spelling_of(name, CONFIG) {
            Some(Rule::ProtectedDirectory)
        } else {
            // The short name of `.gitignore` on Windows if `GITIGN~1` to `GITIGN~4` are taken.
            let is_hashed = name.starts_with("gi250a~");
            let is_ignore_file = is_hashed || is_spelling_of(name, ".gitignore");
            (are_files_protected && is_ignore_file).then_some(Rule::ProtectedFile)
        }
    })
}

/// Folds a name as the most lenient file system would: compatibility forms resolved, invisible characters dropped
/// (HFS+), lower case (APFS, NTFS), no alternate stream, no trailing dots or spaces (NTFS).
pub fn fold(name: &str) -> String {
    let mut folded = if name.is_ascii() {
        name.to_ascii_lowercase()
    } else {
        let visible = name.nfkc().filter(|c| !is_ignorable(*c));
        visible.flat_map(char::to_lowercase).collect()
    };
    folded.truncate(folded.find(':').unwrap_or(folded.len()));
    folded.truncate(folded.trim_end_matches(['.', ' ']).len());
    folded
}

/// Returns whether a folded name is `protected` or its short name on Windows: up to six of its letters, `~` and a
/// digit, and up to three letters of the extension.
fn is_spelling_of(folded: &str, protected: &str) -> bool {
    if folded.eq_ignore_ascii_case(protected) {
        return true;
    }
    let Some((stem, number)) = folded.split_once('~') else {
        return false;
    };
    let before_dot = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let base = before_dot(protected.trim_start_matches('.')).to_ascii_lowercase();
    let digits = before_dot(number);
    // Protected names are ASCII.
    stem == &base[..base.len().min(6)]
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the path inside brackets, quotes, Markdown markup, after `file:`, or before a remark, if there is one. Marks
/// in the middle, as in `app/[slug]/page.tsx`, are part of the path.
pub fn undecorated(path: &str) -> Option<&str> {
    let mut plain = path.trim();
    while let Some(inner) = without_decoration(plain) {
        plain = inner.trim();
    }
    (plain != path.trim() && !plain.is_empty() && !plain.ends_with('/')).then_some(plain)
}

fn without_decoration(path: &str) -> Option<&str> {
    let inner = |(open, close): &(&str, &str)| {
        let inner = path.strip_prefix(open)?.strip_suffix(close)?;
        let is_pair = match (inner.find(open), inner.find(close)) {
            (None, None) => true,
            (Some(opened), Some(closed)) => opened < closed,
            _ => false,
        };
        is_pair.then_some(inner)
    };
    DECORATIONS
        .iter()
        .find_map(inner)
        .or_else(|| path.strip_prefix("file:"))
        .or_else(|| path.strip_suffix(':'))
        .or_else(|| Some(path.strip_suffix(')')?.rsplit_once('(')?.0))
}

fn path_rule(path: &str) -> Option<Rule> {
    let rules = [
        (path.chars().any(char::is_control), Rule::Control),
        (path.contains('\\'), Rule::Backslash),
        (path.contains(':'), Rule::Colon),
        (path.chars().any(is_deceptive), Rule::Unicode),
        (!is_nfc(path), Rule::NotNfc),
        (path.contains(['<', '>', '"', '|', '?', '*']), Rule::BadChar),
        (path.starts_with('/'), Rule::Absolute),
        (path.starts_with('~'), Rule::Tilde),
        (path.len() > LONGEST_PATH, Rule::NameTooLong),
    ];
    let broken = rules.into_iter().find(|(is_broken, _)| *is_broken);
    broken.map(|(_, rule)| rule)
}

fn name_rule(name: &str) -> Option<Rule> {
    match name {
        "" => Some(Rule::EmptyComponent),
        "." | ".." => Some(Rule::DotComponent),
        _ if name.len() > LONGEST_NAME => Some(Rule::NameTooLong),
        _ if is_device(name) => Some(Rule::Reserved),
        _ if name.ends_with(['.', ' ']) => Some(Rule::TrailingDotSpace),
        _ if name.starts_with(' ') => Some(Rule::LeadingSpace),
        _ => None,
    }
}

/// Returns whether Windows reserves the name for a device, whatever its extension.
fn is_device(name: &str) -> bool {
    let folded = fold(name);
    let stem = folded.split('.').next().unwrap_or_default();
    let base = stem.trim_end_matches(' ');
    let number = base.strip_prefix("com").or(base.strip_prefix("lpt"));
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"].contains(&base)
        || number.is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']))
}

/// Returns whether a character is invisible, changes the text direction, or resembles a separator or a dot.
fn is_deceptive(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    is_ignorable(c)
        || c.is_whitespace()
        || matches!(
            c,
            '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{2216}' | '\u{29f5}' | '\u{fffd}'
        )
        || std::iter::once(c)
            .nfkc()
            .any(|plain| plain.is_ascii() && !plain.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use path_clean::PathClean as _;
    use proptest::prelude::*;
    use std::path::{Component, Path};

    #[test]
    fn paths_protected_by_the_prompts_are_protected() {
        for prompt in [
            crate::model::prompt::COMMIT_INITIAL,
            crate::model::prompt::COMMIT_REPAIR,
            crate::model::prompt::COMMIT_EDITS,
            crate::model::prompt::COMMIT_EDITS_REPAIR,
        ] {
            let listed: Vec<&str> = prompt
                .lines()
                .filter_map(|line| line.strip_prefix("+ "))
                .collect();
            assert_eq!(listed.len(), 11, "the prompt's list has changed");
            for entry in listed
                .iter()
                .filter(|entry| !entry.contains(".gitignore file"))
            {
                let path = match entry.strip_prefix("anything in the ") {
                    Some(folder) => format!("{}/x", folder.strip_suffix(" folder").unwrap()),
                    None => (*entry).to_owned(),
                };
                let rule = format!("{:?}", broken_rule(&path, PathScope::Reply));
                assert!(rule.starts_with("Some(Protected"), "`{path}`: {rule}");
            }
        }
    }

    #[test]
    fn spellings_beyond_the_corpus() {
        for (path, expected) in [
            ("AGENT-~1/x", Some(Rule::ProtectedDirectory)),
            ("CARGO~1.LOC", Some(Rule::ProtectedFile)),
            ("codero~2.sh", Some(Rule::ProtectedFile)),
            ("agent-con\u{fb01}g/x", Some(Rule::ProtectedDirectory)),
            ("a/b/.GITIGNORE ", Some(Rule::ProtectedFile)),
            ("sub/agent-config/x", Some(Rule::ProtectedDirectory)),
            ("a/b/Agent-Config", Some(Rule::ProtectedDirectory)),
            ("sub/agent-configs/x", None),
            ("src/Cargo.lock", None),
            ("targets/x", None),
            ("src/target/x", None),
            (" a", Some(Rule::LeadingSpace)),
            ("a/ b", Some(Rule::LeadingSpace)),
            ("a\u{a0}b", Some(Rule::Unicode)),
            ("a|b", Some(Rule::BadChar)),
            ("a*b", Some(Rule::BadChar)),
            ("conin$", Some(Rule::Reserved)),
            ("console.rs", None),
            ("com10", None),
            ("~x", Some(Rule::Tilde)),
            ("x~", None),
            ("x~1", None),
            ("\u{65e5}\u{672c}/\u{8a9e}.rs", None),
        ] {
            assert_eq!(broken_rule(path, PathScope::Reply), expected, "{path}");
        }
        assert_eq!(
            broken_rule(&"a/".repeat(2001), PathScope::Reply),
            Some(Rule::NameTooLong)
        );
    }

    #[test]
    fn only_decoration_around_a_whole_path_is_stripped() {
        for (path, expected) in [
            ("[src/app.js]", Some("src/app.js")),
            ("<src/app.js>", Some("src/app.js")),
            ("`src/app.js`", Some("src/app.js")),
            ("\"src/app.js\"", Some("src/app.js")),
            ("'src/app.js'", Some("src/app.js")),
            ("**src/app.js**", Some("src/app.js")),
            ("**`src/app.js`**:", Some("src/app.js")),
            ("*src/app.js*", Some("src/app.js")),
            ("“src/app.js”", Some("src/app.js")),
            ("file:src/app.js", Some("src/app.js")),
            ("file: src/app.js", Some("src/app.js")),
            ("(src/app.js)", Some("src/app.js")),
            ("src/app.js (new)", Some("src/app.js")),
            ("src/app.js:", Some("src/app.js")),
            ("[app/[slug]/page.tsx]", Some("app/[slug]/page.tsx")),
            ("app/[slug]/page.tsx", None),
            ("[slug]/page.tsx", None),
            ("[a]/[b]", None),
            ("'a'/'b'", None),
            ("app/(group)", None),
            ("app/(group)/page.tsx", None),
            ("(group)/page.tsx", None),
            ("[id].tsx", None),
            ("src/app.js", None),
            (" src/app.js", None),
            ("[]", None),
            ("file.js", None),
        ] {
            assert_eq!(undecorated(path), expected, "{path}");
        }
    }

    #[test]
    fn an_agent_may_write_all_but_git_and_what_is_the_programs_own() {
        for path in [
            "build.sh",
            ".gitignore",
            "src/.gitignore",
            "Cargo.lock",
            "target/x",
            "UserSpecification.md",
        ] {
            assert!(broken_rule(path, PathScope::Reply).is_some(), "{path}");
            assert_eq!(broken_rule(path, PathScope::Agent), None, "{path}");
        }
        for path in [
            ".git/config",
            "a/.GIT/hooks/x",
            "git~1/x",
            "agent-config/gemini-key.txt",
            "AGENT-~1/x",
            "logs/x",
            "Logs./x",
            "../x",
            "a\\b",
        ] {
            let reply = broken_rule(path, PathScope::Reply);
            assert!(reply.is_some(), "{path}");
            assert_eq!(broken_rule(path, PathScope::Agent), reply, "{path}");
        }
        for (paths, expected) in [
            (&["a", "b"][..], PathScope::Reply),
            (&["a", "build.sh"], PathScope::Agent),
        ] {
            assert_eq!(PathScope::of(paths.iter().copied()), expected);
        }
    }

    proptest! {
        #[test]
        fn a_path_that_passes_is_plain_and_relative(path in r"([a./~: \\]|\.\.|//|\.git|\PC|\u{202e})*") {
            if broken_rule(&path, PathScope::Reply).is_none() && !path.is_empty() {
                let plain = Path::new(&path);
                prop_assert_eq!(plain.clean(), plain);
                prop_assert!(plain.components().all(|c| matches!(c, Component::Normal(_))));
            }
        }
    }
}
