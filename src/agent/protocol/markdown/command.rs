//! A shell command as a tool's input: as it is, or alone in one code block. Pure.
//!
//! To a shell, a code fence is a command whose output is run, and words that stand beside a command are
//! commands too. So a command that may be more than that is a [`Fault`]; nothing of it is parsed. Only behind the end
//! of its block may words stand: they are passed over.

use std::sync::LazyLock;

use regex::Regex;

use super::super::Fault;
use super::lines::{ReplyLine, joined};
use crate::sys::text::regex;

/// The languages that may follow a command's fence. Code in another language, and transcripts with their outputs, are
/// no commands.
static SHELLS: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?i)^[{}.,]*(?:(?:|z|k|ba|da|a)sh|shell|shellscript|command|cmd|cli|terminal|te?xt|plain|plaintext|raw|code",
        // Attributes may follow.
        r"|tool_input|)[{}.,]*(?:\s+\S*=\S*)*$"
    ))
});
/// Signs that text outside a block is no command: the heading of a result, as models make them up after it (`# Output`
/// is a comment, too), and the tags that they write around results and thoughts; to a shell, files to read and write.
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

/// The command that the lines of a code block are; `opening` is its fence.
///
/// # Errors
/// Where it is no shell's, or the shell would run what is meant as text.
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

/// The command that `lines` are, in no block.
///
/// # Errors
/// Where there may be more than a command.
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

/// Returns whether `behind` has nothing but words about the command above it, which the lines of a code block are. A
/// here-document may go on behind the fence that closes the block.
pub fn are_words(behind: &[ReplyLine<'_>], command: &[ReplyLine<'_>]) -> bool {
    let is_heading = |line: &ReplyLine<'_>| line.text().trim_start().starts_with('#');
    let may_go_on = joined(command).contains("<<");
    !may_go_on && !behind.iter().any(|line| is_odd(line) || is_heading(line))
}

/// Returns whether a line is neither a command's own nor words.
fn is_odd(line: &ReplyLine<'_>) -> bool {
    line.fence().is_some() || line.heading().is_some() || NO_COMMAND.is_match(line.text())
}

/// That no backticks are run which are meant as text: a here-document keeps them only if its word is quoted.
fn check_backticks(lines: &[ReplyLine<'_>]) -> Result<(), Fault> {
    let text = joined(lines).replace("\\`", "");
    let is_run = text.contains('`') && BARE_WORD.is_match(&text)
        || FENCE.is_match(&text) && !QUOTED_WORD.is_match(&text);
    match lines.iter().find(|line| line.text().contains('`')) {
        Some(line) if is_run => Err(line.fault(
            "the shell would run what stands between these backticks",
        ).with_remedy("quote the word of the here-document, as in <<'EOF', or write $(...) where it is meant to be run")),
        _ => Ok(()),
    }
}

/// Returns the text between two backticks, as models write a short piece of code.
fn quoted(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.contains('`') && !inner.trim().is_empty()).then_some(inner)
}
