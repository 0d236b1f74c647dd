//! A shell command as a tool's input: given as is, or alone in one code block. Pure.
//!
//! A shell would run a code fence, and words next to a command, as commands. Input that may contain more than the
//! command is therefore a [`Fault`], and none of it is parsed. Only after the end of the command's block are words
//! allowed; they are ignored.

use std::sync::LazyLock;

use regex::Regex;

use super::super::Fault;
use super::lines::{ReplyLine, joined};
use crate::sys::text::regex;

/// The info strings that may follow a command's opening fence. Code in other languages, and transcripts with output,
/// are not commands.
static SHELLS: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?i)^[{}.,]*(?:(?:|z|k|ba|da|a)sh|shell|shellscript|command|cmd|cli|terminal|te?xt|plain|plaintext|raw|code",
        // Attributes may follow.
        r"|tool_input|)[{}.,]*(?:\s+\S*=\S*)*$"
    ))
});
/// Patterns of text that is not a command: the heading of a result that a model has made up (a comment to the shell,
/// like `# Output`), and the tags that models put around results and thoughts, which the shell would take for
/// redirections.
static NO_COMMAND: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?i)```|^\s*(?:##|#[\W_]*(?:tool|command)).*(?:results?|output|response|observation)[\W_]*$",
        r"|^\s*</*\s*(?:think|thinking|output|observation|command|[^\s>]*(?:results?|response|\|))(?:\s[^>]*)?>"
    ))
});
static BARE_WORD: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:^|[^<])<<[- \t]*[\p{Alphabetic}_]"));
static FENCE: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*```"));
static QUOTED_WORD: LazyLock<Regex> = LazyLock::new(|| regex(r#"<<[- \t]*['"\\]"#));

/// Returns the command in a code block; `opening` is its fence.
///
/// # Errors
/// Fails if the block is not labelled as a shell command, or the shell would run a part that is meant as text.
pub fn in_block(opening: &ReplyLine<'_>, content: &[ReplyLine<'_>]) -> Result<String, Fault> {
    let info = opening.fence().map_or("", |fence| fence.info);
    if !SHELLS.is_match(info) {
        return Err(opening.fault(format!(
            "a command stands alone between ```sh and ```, but this code block is labelled `{info}`: the \
             shell `sh` runs it, line by line"
        )));
    }
    check_backticks(content)?;
    Ok(joined(content))
}

/// Returns the command in `lines`, which are not in a code block.
///
/// # Errors
/// Fails if the lines may contain more than a command.
pub fn raw(lines: &[ReplyLine<'_>]) -> Result<String, Fault> {
    if let [line] = lines
        && let Some(quoted) = quoted(line.text().trim())
    {
        return Ok(quoted.to_owned());
    }
    if let Some(line) = lines.iter().find(|line| is_odd(line)) {
        return Err(line.fault(
            "a command is given as it is, or alone in one code block: nothing else may stand beside it; one \
             that has such lines, or ``` in it, goes between longer fences",
        ));
    }
    check_backticks(lines)?;
    Ok(joined(lines))
}

/// Returns whether the lines `behind` a command's code block only comment on it; `false` if the command has a
/// here-document, which may continue after the closing fence.
pub fn are_words(behind: &[ReplyLine<'_>], command: &[ReplyLine<'_>]) -> bool {
    let is_heading = |line: &ReplyLine<'_>| line.text().trim_start().starts_with('#');
    let may_go_on = joined(command).contains("<<");
    !may_go_on && !behind.iter().any(|line| is_odd(line) || is_heading(line))
}

/// Returns whether a line is part of neither a command nor plain text.
fn is_odd(line: &ReplyLine<'_>) -> bool {
    line.fence().is_some() || line.heading().is_some() || NO_COMMAND.is_match(line.text())
}

/// Checks that the shell runs no backticks that are meant as text: a here-document preserves them only if its delimiter
/// is quoted.
fn check_backticks(lines: &[ReplyLine<'_>]) -> Result<(), Fault> {
    let text = joined(lines).replace("\\`", "");
    let is_run = text.contains('`') && BARE_WORD.is_match(&text)
        || FENCE.is_match(&text) && !QUOTED_WORD.is_match(&text);
    match lines.iter().find(|line| line.text().contains('`')) {
        Some(line) if is_run => Err(line.fault(
            "the shell would run what is between these backticks",
        ).with_remedy("quote the word of the here-document, as in <<'EOF', or write $(...) where it is meant to be run")),
        _ => Ok(()),
    }
}

/// Returns the text between a pair of backticks, which models use for short pieces of code.
fn quoted(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.contains('`') && !inner.trim().is_empty()).then_some(inner)
}
