//! A shell command as a tool's input: as it is, or alone in one code block. Pure.
//!
//! To a shell, a code fence is a command whose output is run, and words that stand beside a command are
//! commands too. So a command that may be more than that is a [`Fault`]; nothing of it is parsed.

use super::super::Fault;
use super::lines::{Line, joined};
use super::sections::Name;

/// What may stand behind a command's fence. Code in another language, and transcripts with their outputs, are
/// no commands.
const SHELLS: [&str; 20] = [
    "",
    "sh",
    "bash",
    "shell",
    "shellscript",
    "zsh",
    "ksh",
    "dash",
    "ash",
    "command",
    "cmd",
    "cli",
    "terminal",
    "text",
    "txt",
    "plain",
    "plaintext",
    "raw",
    "code",
    "tool_input",
];

/// The command that the lines of a code block are; `opening` is its fence.
///
/// # Errors
/// Where it is no shell's, or the shell would run what is meant as text.
pub fn in_block(opening: &Line<'_>, content: &[Line<'_>]) -> Result<String, Fault> {
    let info = opening.fence().map_or("", |fence| fence.info);
    let mut words = info.split_whitespace();
    let label = words
        .next()
        .unwrap_or_default()
        .trim_matches(['{', '}', '.', ',']);
    let is_shell = SHELLS.iter().any(|known| known.eq_ignore_ascii_case(label));
    // Attributes may follow.
    if !is_shell || !words.all(|word| word.contains('=')) {
        return Err(opening.fault(format!(
            "a command stands alone between ```sh and ```, but this code block is labelled `{info}`: the \
             shell `sh` runs it, line by line"
        )));
    }
    check_backticks(content)?;
    Ok(joined(content))
}

/// The command that `lines` are, in no block.
///
/// # Errors
/// Where there may be more than a command.
pub fn raw(lines: &[Line<'_>]) -> Result<String, Fault> {
    if let [line] = lines
        && let Some(quoted) = quoted(line.text().trim())
    {
        return Ok(quoted.to_owned());
    }
    let is_odd = |line: &&Line<'_>| {
        line.raw.contains("```")
            || line.fence().is_some()
            || Name::of(line).is_some()
            || is_result(line)
            || is_tag(line)
    };
    if let Some(line) = lines.iter().find(is_odd) {
        return Err(line.fault(
            "a command is given as it is, or alone in one code block: nothing else may stand beside it; one \
             that has such lines, or ``` in it, goes between longer fences",
        ));
    }
    check_backticks(lines)?;
    Ok(joined(lines))
}

/// That no backticks are run which are meant as text: a here-document keeps them only if its word is quoted.
fn check_backticks(lines: &[Line<'_>]) -> Result<(), Fault> {
    let words = || {
        lines
            .iter()
            .flat_map(|line| line.text().split("<<").skip(1))
    };
    let word = |text: &'_ str| text.trim_start_matches(['-', ' ', '\t']).chars().next();
    let is_bare = words()
        .filter_map(word)
        .any(|c| c.is_alphabetic() || c == '_');
    let is_quoted = words()
        .filter_map(word)
        .any(|c| matches!(c, '\'' | '"' | '\\'));
    let is_run = |line: &&Line<'_>| {
        let text = line.text().replace("\\`", "");
        is_bare && text.contains('`') || !is_quoted && text.trim_start().starts_with("```")
    };
    match lines.iter().find(is_run) {
        None => Ok(()),
        Some(line) => Err(line.fault(
            "the shell would run what stands between these backticks: quote the word of the here-document, \
             as in <<'EOF', or write $(...) where it is meant to be run",
        )),
    }
}

/// What stands between two backticks, as models write a short piece of code.
fn quoted(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.contains('`') && !inner.trim().is_empty()).then_some(inner)
}

/// Whether it is the heading of a result, as models make them up behind a command. `# Output` is a comment, too.
fn is_result(line: &Line<'_>) -> bool {
    let text = line.text().trim().to_ascii_lowercase();
    let title = text.trim_start_matches('#');
    let level = text.len() - title.len();
    let title = title.trim_matches(|c: char| !c.is_alphanumeric());
    let results = ["result", "results", "output", "response", "observation"];
    level > 0
        && results.iter().any(|result| title.ends_with(result))
        && (level > 1 || title.starts_with("tool") || title.starts_with("command"))
}

/// Whether it is a tag that models write around results and thoughts: to a shell, a file to read from, and one to
/// write to.
fn is_tag(line: &Line<'_>) -> bool {
    let tag = line
        .text()
        .trim()
        .strip_prefix('<')
        .and_then(|text| text.split_once('>'));
    let name = tag.and_then(|(tag, _)| tag.trim_start_matches('/').split_whitespace().next());
    let known = ["think", "thinking", "output", "observation", "command"];
    let ends = ["result", "results", "response", "|"];
    name.is_some_and(|name| known.contains(&name) || ends.iter().any(|end| name.ends_with(end)))
}
