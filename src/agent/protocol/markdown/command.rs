//! A shell command as a tool's input: as it is, or alone in one fenced block. Pure.
//!
//! To a shell, a code fence is a command whose output is run, and words that stand beside a command are
//! commands too. Guarantees that nothing but the command is taken for one: what may be more is a [`Fault`].
//! Here-documents may hold anything, if their words are quoted: else code between backticks in them is run too.

use super::super::Fault;
use super::blocks::{block, nothing_else, without_last_line_end};
use super::documents::{Place, places};
use super::lines::{Fence, Line, joined};
use super::sections::Name;

/// What may stand behind a command's fence. Code in another language, and transcripts with their outputs, are
/// no commands.
const SHELLS: [&str; 22] = [
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
    "none",
    "input",
    "tool_input",
];

/// The command that `lines` are, the blank ones around it left out.
///
/// # Errors
/// Where there is more than a command.
pub fn command(lines: &[Line<'_>]) -> Result<String, Fault> {
    let Some(fence) = lines.first().and_then(Line::fence) else {
        return raw(lines);
    };
    if !is_shell(&fence) {
        return Err(no_shell(&fence));
    }
    let block = block(lines, &fence)?;
    nothing_else(&block)?;
    check(block.content, |line, place| {
        let inner = line.fence();
        inner.is_some_and(|inner| place != Place::Quoted || inner.closes(&fence))
    })?;
    Ok(without_last_line_end(joined(block.content)))
}

/// Looks whether each line is of the command: what is not text must not be odd.
fn check(lines: &[Line<'_>], is_odd: impl Fn(&Line<'_>, Place) -> bool) -> Result<(), Fault> {
    for (line, place) in lines.iter().zip(places(lines)) {
        match place {
            Place::Expanded if line.raw.replace("\\`", "").contains('`') => return Err(run(line)),
            Place::Document | Place::Expanded => {}
            _ if is_odd(line, place) => return Err(beside(line)),
            _ => {}
        }
    }
    Ok(())
}

fn raw(lines: &[Line<'_>]) -> Result<String, Fault> {
    if let [line] = lines
        && let Some(quoted) = quoted(line.text().trim())
    {
        return Ok(quoted.to_owned());
    }
    check(lines, |line, place| {
        let text = line.raw.trim();
        line.raw.contains("```")
            || line.fence().is_some()
            || Name::of(line).is_some()
            || is_bold_heading(text)
            || place == Place::Command && (is_result(line) || is_tag(text))
    })?;
    Ok(joined(lines).trim().to_owned())
}

/// What stands between two backticks, as models write a short piece of code.
fn quoted(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.contains('`') && !inner.trim().is_empty()).then_some(inner)
}

fn is_bold_heading(text: &str) -> bool {
    let title = text
        .trim_end_matches(':')
        .trim_matches('*')
        .trim_end_matches(':');
    text.starts_with("**")
        && matches!(
            title,
            "Tool Choice" | "Tool Input" | "Task List" | "Thoughts"
        )
}

/// Whether it is the heading of a result, as models make them up behind a command. `# Output` is a comment, too.
fn is_result(line: &Line<'_>) -> bool {
    let Some((level, title)) = line.heading() else {
        return false;
    };
    let title = title.to_ascii_lowercase();
    let results = ["result", "results", "output", "response", "observation"];
    results.iter().any(|result| title.ends_with(result))
        && (level > 1 || title.starts_with("tool") || title.starts_with("command"))
}

/// Whether it is a tag that models write around results and thoughts: to a shell, a file to read from, and one to
/// write to.
fn is_tag(text: &str) -> bool {
    let Some((tag, _)) = text.strip_prefix('<').and_then(|text| text.split_once('>')) else {
        return false;
    };
    let name = tag.trim_start_matches('/').split_whitespace().next();
    let name = name.unwrap_or_default();
    let known = ["think", "thinking", "output", "observation", "command"];
    known.contains(&name)
        || ["result", "results", "response", "|"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Whether what stands behind a fence is a shell's name, and attributes.
fn is_shell(fence: &Fence<'_>) -> bool {
    let label = fence.label().trim_matches(['{', '}', '.', ',']);
    let mut attributes = fence.info.split_whitespace().skip(1);
    SHELLS.iter().any(|known| known.eq_ignore_ascii_case(label))
        && attributes.all(|attribute| attribute.contains('='))
}

fn no_shell(fence: &Fence<'_>) -> Fault {
    let problem = format!(
        "a command stands alone between ```sh and ```, but this code block is labelled `{}`: the shell `sh` \
         runs it, line by line",
        fence.info
    );
    Fault::at(fence.line, problem)
}

fn beside(line: &Line<'_>) -> Fault {
    let problem = "a command is given as it is, or alone in one code block: nothing else may stand beside it; \
        one that has such lines, or ``` in it, goes between longer fences";
    Fault::at(line.number, problem)
}

fn run(line: &Line<'_>) -> Fault {
    let problem = "the shell would run what stands between these backticks: quote the word of the \
        here-document, as in <<'EOF', or write $(...) where it is meant to be run";
    Fault::at(line.number, problem)
}
